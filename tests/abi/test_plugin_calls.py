"""Calls into plugins go through abigen's `call_X`; the guard behind them is a library of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from abigen import emit_calls, header, native_build

from .test_library import exported, needed

CXX_LIBRARIES = {"libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6"}


@pytest.fixture(scope="module")
def abi() -> header.Abi:
    return header.read(*native_build.HEADERS)


def test_every_function_of_a_plugin_has_its_call(abi: header.Abi) -> None:
    """All slots of the structs that plugins fill in; none of the host's tables."""
    texts = {call.text for call in emit_calls.plugin_calls(abi)}
    assert {
        "OrtEp::Compile",
        "OrtCustomOp::KernelCompute",
        "OrtAllocator::Alloc",
        "CreateEpFactories",
    } <= texts
    assert not any(text.startswith(("OrtApi::", "OrtEpApi::", "OrtApiBase::")) for text in texts)
    assert len(texts) == len(emit_calls.plugin_calls(abi)) > 120


def test_the_host_calls_plugins_in_no_other_way(abi: header.Abi) -> None:
    """No `x->Slot(...)`, and no call of a function pointer that was read from a plugin's struct."""
    slots = {call.function.name for call in emit_calls.plugin_calls(abi)}
    direct = re.compile(rf"(?:->|\.)({'|'.join(sorted(slots))})\(")
    wrong = []
    for path in native_build.library_sources():
        if native_build.LOOPS in path.parents:
            continue  # the built-in EP is a plugin itself
        text = path.read_text(encoding="utf-8")
        pointers = set(re.findall(r"\(ORT_API_CALL ?\* ?(\w+)\)\(", text))
        pointers |= set(re.findall(r"(\w+) =\s+GUARD_SLOT\(", text))
        read = re.compile(rf"(?<![\w.>*])(?:\w+->)?({'|'.join(pointers)})\((?!\))") if pointers else None
        for number, line in enumerate(text.splitlines(), 1):
            is_call = read is not None and read.search(line) and not re.match(r"\w", line)
            if direct.search(line) or is_call:
                wrong.append(f"{path.relative_to(native_build.ROOT)}:{number}: {line.strip()}")
    assert wrong == []


def test_the_guard_exports_one_function_and_needs_no_library_but_cxx(native_dir: Path) -> None:
    guard = native_dir / native_build.GUARD_NAME
    assert exported(guard) == {"ortabi_cxx_guard"}
    assert needed(guard) <= CXX_LIBRARIES
    assert "libstdc++.so.6" in needed(guard)


def test_the_guard_lies_in_the_package_beside_the_library() -> None:
    import ort_abi

    package = Path(ort_abi.__file__).parent
    assert (package / native_build.GUARD_NAME).exists() and (package / native_build.LIBRARY_NAME).exists()


def test_without_a_cxx_compiler_the_build_goes_on(
    tmp_path: Path, native_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so, and leaves no guard of an earlier build."""
    (tmp_path / native_build.GUARD_NAME).write_text("of an earlier build")
    native_build.build_guard(tmp_path, native_build.Options(cxx="no-such-compiler"))
    assert "no C++ compiler (no-such-compiler)" in capsys.readouterr().err
    assert not (tmp_path / native_build.GUARD_NAME).exists()
