"""Programs that were linked against stock's library start on the stand-in, and nobody notices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ort_abi

from .conftest import CLIENT, call, compile_text, compile_with, silent, stub_library

NEGATED = " -1 -2 -3 -4 -5 -6\n"
OURS = f"{ort_abi.get_version_string()}:{NEGATED}"
START = """#include <stdio.h>
#include "onnxruntime_c_api.h"
int main(void) { puts(OrtGetApiBase()->GetVersionString()); return 0; }
"""
# fmt: off
PATCHES = {
    0: "0", 1: "012", 2: "0", 3: "01", 4: "0", 5: "123", 6: "0", 7: "012", 8: "012", 9: "01", 10: "0",
    11: "01", 12: "01", 13: "1", 14: "01", 15: "01", 16: "0123", 17: "013", 18: "01", 19: "02",
    20: "01", 21: "01", 22: "01", 23: "012", 24: "1234", 25: "01", 26: "0", 27: "0", 28: "0", 29: "0",
    30: "0", 31: "01", 32: "0",
}
# fmt: on
"""Of each minor version of stock, as PyPI has them from 1.15 on."""
RELEASED = [f"1.{minor}.{patch}" for minor, patches in PATCHES.items() for patch in patches]


@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_a_program_runs_a_model(
    standin: Path, stock: Path, model: Path, tmp_path: Path, binding: str
) -> None:
    headers = f"-I{standin / 'include'}"
    program = compile_with(tmp_path / "client", CLIENT, headers, f"-L{stock}", "-lonnxruntime")
    needs = call("readelf", "-V", program).stdout
    version = (stock / "libonnxruntime.so").resolve().name.removeprefix("libonnxruntime.so.")
    assert f"Name: VERS_{version} " in needs
    now = {"LD_BIND_NOW": "1"} if binding == "now" else {}
    assert silent(program, model, LD_LIBRARY_PATH=stock, **now) == f"{version}:{NEGATED}"
    assert silent(program, model, LD_LIBRARY_PATH=standin / "lib", **now) == OURS


@pytest.mark.parametrize("release", ["1.0.0", "1.14.1", "1.18.2", "1.19.2", "1.22.2", "1.31.1"])
def test_programs_of_other_releases_start(standin: Path, tmp_path: Path, release: str) -> None:
    """To 1.18 the program asks for a file that is named after the release, from 1.19 on for `.so.1`."""
    full = int(release.split(".")[1]) < 19
    soname = f"libonnxruntime.so.{release if full else 1}"
    stub = stub_library(tmp_path / "stub", release, soname)
    program = compile_text(tmp_path / "start", START, f"-I{standin / 'include'}", stub)
    assert soname in call("readelf", "-d", program).stdout
    started = silent(program, LD_LIBRARY_PATH=standin / "lib")
    assert started == f"{ort_abi.get_version_string()}\n"


def test_both_functions_have_the_versions_of_all_releases(standin: Path) -> None:
    symbols = call("readelf", "--dyn-syms", "-W", standin / "lib" / "libonnxruntime.so").stdout
    found = set(re.findall(r"FUNC .* (\w+)@VERS_(\S+)\n", symbols))
    for name in ("OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"):
        assert {(name, release) for release in RELEASED} <= found
        assert re.search(rf"FUNC .* {name}\n", symbols), "a program that is linked now needs no version"
    assert {name for name, _ in found} == set(re.findall(r"FUNC +GLOBAL.* (?!UND)\d+ (\w+)", symbols))


def test_a_release_that_is_not_known_is_refused_by_the_loader(standin: Path, tmp_path: Path) -> None:
    """Which is why all of them have to be there."""
    stub = stub_library(tmp_path / "stub", "1.99.0", "libonnxruntime.so.1")
    program = compile_text(tmp_path / "start", START, f"-I{standin / 'include'}", stub)
    done = call(program, LD_LIBRARY_PATH=standin / "lib")
    assert done.returncode != 0 and "version `VERS_1.99.0' not found" in done.stderr


def test_a_library_in_between_is_linked_to_a_new_program(standin: Path, stock: Path, tmp_path: Path) -> None:
    """The linker finds what a library needs that was linked against stock."""
    headers = f"-I{standin / 'include'}"
    text = """#include "onnxruntime_c_api.h"
const char* host_version(void);
const char* host_version(void) { return OrtGetApiBase()->GetVersionString(); }
"""
    between = compile_text(tmp_path / "libbetween.so", text, headers, f"-L{stock}", "-lonnxruntime")
    text = START.replace("OrtGetApiBase()->GetVersionString()", "host_version()").replace(
        "int main", "const char* host_version(void);\nint main"
    )
    paths = [f"-Wl,-rpath-link,{standin / 'lib'}", f"-Wl,-rpath,{tmp_path}"]
    program = compile_text(tmp_path / "program", text, headers, between, *paths)
    started = silent(program, LD_LIBRARY_PATH=standin / "lib")
    assert started == f"{ort_abi.get_version_string()}\n"


def test_a_plugin_that_was_linked_against_stock_finds_the_program_s_host(
    standin: Path, stock: Path, tmp_path: Path
) -> None:
    headers = f"-I{standin / 'include'}"
    text = """#include "onnxruntime_ep_c_api.h"
OrtStatus* CreateEpFactories(const char* name, const OrtApiBase* base, const OrtLogger* logger,
                             OrtEpFactory** factories, size_t max_factories, size_t* num_factories) {
  (void)name, (void)logger, (void)factories, (void)max_factories;
  *num_factories = 0;
  return base->GetApi(22)->CreateStatus(ORT_FAIL, base == OrtGetApiBase() ? "the same host" : "another host");
}
OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) { (void)factory; return NULL; }
"""
    plugin = compile_text(tmp_path / "libplugin.so", text, headers, f"-L{stock}", "-lonnxruntime")
    text = """#include <stdio.h>
#include "onnxruntime_c_api.h"
int main(int argc, char** argv) {
  const OrtApi* api = OrtGetApiBase()->GetApi(22);
  OrtEnv* env = NULL;
  if (argc != 2 || api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "plugin", &env) != NULL) return 1;
  OrtStatus* status = api->RegisterExecutionProviderLibrary(env, "plugin", argv[1]);
  if (status == NULL) return 2;
  puts(api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  api->ReleaseEnv(env);
  return 0;
}
"""
    program = compile_text(tmp_path / "program", text, headers, f"-L{stock}", "-lonnxruntime")
    assert "the same host" in silent(program, plugin, LD_LIBRARY_PATH=standin / "lib")
