"""abigen on a header of a few lines: what it reads, writes and refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cffi import FFI

from abigen import emit_c, emit_py, header, native_build

MINI = """
#define ORT_API_VERSION 3
#ifdef __cplusplus
extern "C" {
#endif
typedef struct OrtStatus OrtStatus; /* comment; with a semicolon */
typedef struct OrtNode OrtNode;
typedef struct OrtApi OrtApi;
typedef enum OrtErrorCode {
  ORT_OK = 0, ORT_NOT_IMPLEMENTED = 9 ABI_SINCE(2), ORT_LAST, ORT_ALIAS = ORT_OK
} OrtErrorCode ABI_SINCE(1);
typedef void (ORT_API_CALL* OrtCallback)(ABI_IN_OPT void* state) ABI_SINCE(2);
struct OrtPoint {
  bool on;
  OrtErrorCode code;
  OrtCallback callback ABI_SINCE(2) ABI_OPTIONAL;
  union { uint64_t word; uint32_t halves[2]; } value;
  char tail;
};
struct OrtApi {
  OrtStatus* (ORT_API_CALL* Run)(ABI_IN const OrtNode* node,
      ABI_IN_READS(count) const ORTCHAR_T* const* names, ABI_IN size_t count,
      ABI_OUTPTR_BUFFER_MAYBENULL(*count) OrtNode*** out) ABI_SINCE(1);
  int (ORT_API_CALL* Count)(const OrtNode* ) ABI_SINCE(1);
  ABI_RET_MAYBENULL const char* (ORT_API_CALL* Name)(void) ABI_SINCE(2) ABI_OPTIONAL;
  void (ORT_API_CALL* ReleaseNode)(ABI_FREES_OPT OrtNode* node) ABI_SINCE(3);
  OrtStatus* (ORT_API_CALL* Each)(void (*visit)(void*, size_t), void* state) ABI_SINCE(3);
} ABI_SINCE(1);
ORT_ABI_EXPORT const OrtApi* ORT_API_CALL OrtGetTheApi(uint32_t version);
ORT_ABI_EXPORT OrtStatus* ORT_API_CALL ReleaseEpFactory(ABI_IN OrtNode* factory) ABI_SINCE(2);
#ifdef __cplusplus
}
#endif
"""

MINI_BASE_H = """
#include <stdarg.h>
#include "ort_abi.h"
struct OrtStatus { OrtErrorCode code; char text[64]; };
OrtStatus* status_new(OrtErrorCode code, const char* format, ...);
void log_unimplemented_slot(const char* slot_name);
"""

MINI_BASE_C = """
#include <stdio.h>
#include "api_slots.h"
#include "base/base.h"
__attribute__((visibility("default"))) char last_log[64];
OrtStatus* status_new(OrtErrorCode code, const char* format, ...) {
  static OrtStatus status;
  va_list arguments;
  va_start(arguments, format);
  status.code = code;
  vsnprintf(status.text, sizeof status.text, format, arguments);
  va_end(arguments);
  return &status;
}
void log_unimplemented_slot(const char* slot_name) {
  snprintf(last_log, sizeof last_log, "%s", slot_name);
}
void api_ReleaseNode(OrtNode* node) {
  (void)node;
  snprintf(last_log, sizeof last_log, "implemented");
}
__attribute__((visibility("default"))) const OrtApi* get_table(void);
const OrtApi* get_table(void) {
  return &ort_api_table;
}
"""


@pytest.fixture
def mini() -> header.Abi:
    return header.parse(MINI)


def test_reads_marks_of_slots(mini: header.Abi) -> None:
    run, count, name, release, _ = mini.structs["OrtApi"].slots
    assert [slot.since for slot in mini.structs["OrtApi"].slots] == [1, 1, 2, 3, 3]
    assert [param.marks for param in run.params] == [
        ("in",),
        ("in_reads(count)",),
        ("in",),
        ("outptr_buffer_maybenull(*count)",),
    ]
    assert (name.optional, name.returns_maybe_null) == (True, True)
    assert (run.optional, run.returns_maybe_null) == (False, False)
    assert release.params[0].marks == ("frees_opt",)
    assert count.params[0].marks == ()


def test_reads_types_and_prints_prototypes(mini: header.Abi) -> None:
    prototypes = [slot.prototype(f"api_{slot.name}") for slot in mini.structs["OrtApi"].slots]
    assert prototypes == [
        "OrtStatus* api_Run(const OrtNode* node, const char* const* names, size_t count, OrtNode*** out)",
        "int api_Count(const OrtNode* arg0)",
        "const char* api_Name(void)",
        "void api_ReleaseNode(OrtNode* node)",
        "OrtStatus* api_Each(void (*visit)(void*, size_t), void* state)",
    ]


def test_computes_layout(mini: header.Abi) -> None:
    point = mini.structs["OrtPoint"]
    assert [(member.name, member.offset, member.size) for member in point.members] == [
        ("on", 0, 1),
        ("code", 4, 4),
        ("callback", 8, 8),
        ("value", 16, 8),
        ("tail", 24, 1),
    ]
    assert point.size == 32
    assert [member.optional for member in point.members] == [False, False, True, False, False]


def test_reads_enums_opaque_types_and_exports(mini: header.Abi) -> None:
    enum = mini.enums["OrtErrorCode"]
    assert [(value.name, value.value, value.since) for value in enum.values] == [
        ("ORT_OK", 0, None),
        ("ORT_NOT_IMPLEMENTED", 9, 2),
        ("ORT_LAST", 10, None),
        ("ORT_ALIAS", 0, None),
    ]
    assert enum.since == 1
    assert mini.opaque == ["OrtStatus", "OrtNode"]
    assert mini.function_types["OrtCallback"].since == 2
    assert [export.name for export in mini.host_exports()] == ["OrtGetTheApi"]
    assert mini.version == 3


def test_refuses_one_slot_name_in_two_tables() -> None:
    text = MINI + "struct OrtEpApi { void (*Run)(void) ABI_SINCE(1); };"
    with pytest.raises(header.HeaderError, match=r"unique.*Run"):
        header.parse(text)


def test_refuses_a_type_of_unknown_size() -> None:
    with pytest.raises(header.HeaderError, match="size of OrtNode"):
        header.parse(MINI + "struct OrtPair { OrtNode node; };")


def test_stub_answers_with_its_name_and_a_definition_replaces_it(
    mini: header.Abi, tmp_path: Path, compile_c: Callable[..., Path]
) -> None:
    (tmp_path / "base").mkdir()
    marks = "".join(f"#define {mark}\n" for mark in ("ORT_API_CALL", "ORT_ABI_EXPORT"))
    types = "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    public = f"#ifndef MINI\n#define MINI\n{types}{marks}{header.strip_marks(header.plain_c(MINI))}\n#endif\n"
    files = {
        "ort_abi.h": public,
        "ort_abi_host.h": '#include "ort_abi.h"\n',
        "base/base.h": MINI_BASE_H,
        "base.c": MINI_BASE_C,
        "api_slots.h": emit_c.api_slots_h(mini),
        "stubs.c": emit_c.api_stubs_c(mini),
        "tables.c": emit_c.api_tables_c(mini),
        "asserts.c": emit_c.abi_asserts_c(mini),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    sources = [tmp_path / name for name in ("base.c", "stubs.c", "tables.c", "asserts.c")]
    library = compile_c("libmini.so", sources, f"-iquote{tmp_path}", "-fvisibility=hidden")

    ffi = FFI()
    ffi.cdef("typedef struct OrtStatus { int code; char text[64]; } OrtStatus;")
    ffi.cdef(public.split(marks)[1].rsplit("#endif", 1)[0].replace("typedef struct OrtStatus OrtStatus;", ""))
    ffi.cdef("const OrtApi* get_table(void); extern char last_log[64];")
    lib = ffi.dlopen(str(library))
    table = lib.get_table()
    status = table.Run(ffi.NULL, ffi.NULL, 0, ffi.NULL)
    assert (status.code, ffi.string(status.text)) == (9, b"Run is not implemented")
    assert table.Count(ffi.NULL) == 0
    assert ffi.string(lib.last_log) == b"Count"
    assert table.Name() == ffi.NULL
    assert ffi.string(lib.last_log) == b"Name"
    table.ReleaseNode(ffi.NULL)
    assert ffi.string(lib.last_log) == b"implemented"


def test_layout_assert_fails_on_another_layout(mini: header.Abi, compile_c: Callable[..., Path]) -> None:
    text = emit_c.abi_asserts_c(header.read(native_build.HEADERS[0]))
    right = "offsetof(struct OrtApi, CreateEnv) == 24"
    assert right in text
    with pytest.raises(AssertionError, match=r"offset of OrtApi\.CreateEnv"):
        compile_c(
            "wrong.so", text.replace(right, right.replace("24", "32")), f"-I{native_build.CSRC / 'include'}"
        )


def test_enum_classes_are_python(mini: header.Abi) -> None:
    namespace: dict[str, type] = {}
    exec(emit_py.enums_py(mini), namespace)
    members = namespace["OrtErrorCode"].__members__  # type: ignore[attr-defined]
    assert {name: int(value) for name, value in members.items()} == {
        "ORT_OK": 0,
        "ORT_NOT_IMPLEMENTED": 9,
        "ORT_LAST": 10,
        "ORT_ALIAS": 0,
    }


def test_native_types_name_functions_constants_and_callbacks(mini: header.Abi) -> None:
    text = emit_py.native_pyi(mini, ["py_compute"])
    assert "def OrtGetTheApi(self, version: int, /) -> CData: ..." in text
    assert "    ORT_LAST: int\n" in text
    assert "    py_compute: CData\n" in text
    assert "ReleaseEpFactory" not in text


def test_bridge_adds_to_the_cdef_what_it_marks(tmp_path: Path) -> None:
    (tmp_path / "bridge.h").write_text(
        "int not_seen(void);\n/* cdef begin */\nint seen(int a);\n/* cdef end */\nint nor_this(void);\n"
    )
    (tmp_path / "callbacks.cdef").write_text(
        'extern "Python" {\n  /* not(this); */\n  int py_one(int a,\n    int b);\n  void py_two(void);\n}\n'
    )
    text = emit_py.cdef(native_build.HEADERS, tmp_path)
    assert "int seen(int a);" in text
    assert "not_seen" not in text
    assert "nor_this" not in text
    assert "CreateEpFactories" not in text
    assert emit_py.callback_names(tmp_path) == ["py_one", "py_two"]


def test_build_compiles_again_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "csrc" / "one.c"
    (tmp_path / "csrc" / "include").mkdir(parents=True)
    (tmp_path / "csrc" / "part.h").write_text("enum { PART = 1 };\n")
    source.write_text('#include "part.h"\n__attribute__((visibility("default"))) int part = PART;\n')
    monkeypatch.setattr(native_build, "CSRC", tmp_path / "csrc")
    monkeypatch.setattr(native_build, "generate", lambda folder: [])
    monkeypatch.setattr(native_build, "build_guard", lambda out, options: None)
    monkeypatch.setattr(native_build, "build_standin", lambda out, options: None)
    out = tmp_path / "out"
    library = native_build.build(out)
    target = out / "obj" / "one.o"
    first = target.stat().st_mtime_ns, library.stat().st_mtime_ns
    native_build.build(out)
    assert (target.stat().st_mtime_ns, library.stat().st_mtime_ns) == first
    (tmp_path / "csrc" / "part.h").write_text("enum { PART = 2 };\n")
    native_build.build(out)
    second = target.stat().st_mtime_ns, library.stat().st_mtime_ns
    assert second[0] > first[0]
    assert second[1] > first[1]
    native_build.build(out, native_build.Options(sanitize="address"))
    assert target.stat().st_mtime_ns > second[0]


def test_build_error_holds_what_the_compiler_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "csrc" / "include").mkdir(parents=True)
    (tmp_path / "csrc" / "bad.c").write_text("int f(void) { return nothing; }\n")
    monkeypatch.setattr(native_build, "CSRC", tmp_path / "csrc")
    monkeypatch.setattr(native_build, "generate", lambda folder: [])
    with pytest.raises(native_build.BuildError, match=r"bad\.c.*nothing"):
        native_build.build(tmp_path / "out")
