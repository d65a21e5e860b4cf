"""Programs that are built against the laid-out folder, as against a folder of stock's."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

import ort_abi

from .conftest import CLIENT, call, compile_text, compile_with, silent
from .test_linked_against_stock import NEGATED, OURS

PROJECT = """cmake_minimum_required(VERSION 3.13)
project(client C)
find_package(onnxruntime {version} REQUIRED)
add_executable(client "{client}")
target_link_libraries(client PRIVATE onnxruntime::onnxruntime)
message(STATUS "found ${{onnxruntime_VERSION}} in ${{onnxruntime_DIR}}")
"""
HEADERS = [
    "cpu_provider_factory.h",
    "onnxruntime_c_api.h",
    "onnxruntime_ep_c_api.h",
    "onnxruntime_run_options_config_keys.h",
    "onnxruntime_session_options_config_keys.h",
]


def pkg_config(standin: Path, *arguments: str) -> list[str]:
    folder = standin / "lib" / "pkgconfig"
    return shlex.split(silent("pkg-config", *arguments, "libonnxruntime", PKG_CONFIG_PATH=folder))


def configure(standin: Path, folder: Path, version: str) -> tuple[int, str]:
    """Configures a project that wants that version in `folder`/build; exit status and output."""
    (folder / "CMakeLists.txt").write_text(PROJECT.format(version=version, client=CLIENT))
    done = call("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={standin}")
    return done.returncode, done.stdout + done.stderr


def test_by_pkg_config(standin: Path, model: Path, tmp_path: Path) -> None:
    program = compile_with(tmp_path / "client", CLIENT, *pkg_config(standin, "--cflags", "--libs"))
    assert silent(program, model, LD_LIBRARY_PATH=standin / "lib") == OURS
    assert pkg_config(standin, "--modversion") == [ort_abi.get_version_string()]


def test_by_find_package(standin: Path, model: Path, tmp_path: Path) -> None:
    status, output = configure(standin, tmp_path, "1.17")
    assert status == 0 and f"found {ort_abi.get_version_string()} in {standin}" in output, output
    done = call("cmake", "--build", tmp_path / "build")
    assert done.returncode == 0, done.stdout + done.stderr
    assert silent(tmp_path / "build" / "client", model) == OURS


@pytest.mark.parametrize("version", ["2.0", "1.99"])
def test_find_package_refuses_versions_that_this_is_not(standin: Path, tmp_path: Path, version: str) -> None:
    status, output = configure(standin, tmp_path, version)
    assert status != 0 and f"version: {ort_abi.get_version_string()}" in output


def test_the_program_runs_on_stock_too(standin: Path, stock: Path, model: Path, tmp_path: Path) -> None:
    """It needs the name `libonnxruntime.so.1`, and no version of a symbol: any stock release has them."""
    program = compile_with(tmp_path / "client", CLIENT, *pkg_config(standin, "--cflags", "--libs"))
    assert "libonnxruntime.so.1]" in call("readelf", "-d", program).stdout
    assert silent(program, model, LD_LIBRARY_PATH=stock).endswith(NEGATED)


@pytest.mark.parametrize("folder", ["include", "include/onnxruntime"])
@pytest.mark.parametrize("header", HEADERS)
def test_headers_stand_alone(standin: Path, tmp_path: Path, header: str, folder: str) -> None:
    """Each compiles by itself, twice, in C and in C++."""
    source = tmp_path / "alone.c"
    source.write_text(
        f'#include "{header}"\n#include "{header}"\nint alone(void);\nint alone(void) {{ return 0; }}\n'
    )
    flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", f"-I{standin / folder}"]
    for command in (["gcc", "-std=c11"], ["clang", "-std=c17"], ["g++", "-x", "c++", "-std=c++17"]):
        assert shutil.which(command[0]), f"{command[0]} is not installed"
        done = call(*command, *flags, source)
        assert done.returncode == 0, done.stderr


def test_all_headers_are_named_here(standin: Path) -> None:
    assert sorted(path.name for path in (standin / "include").glob("*.h")) == sorted([*HEADERS, "ort_abi.h"])


def test_words_of_stock_s_header(standin: Path, tmp_path: Path) -> None:
    """A library of custom operators as users write it, with the header's macros."""
    text = """#include <onnxruntime/onnxruntime_c_api.h>
ORT_EXPORT OrtStatus* ORT_API_CALL RegisterCustomOps(_In_ OrtSessionOptions* options,
                                                     _In_ const OrtApiBase* base);
ORT_EXPORT OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  (void)options;
  return base->GetApi(1)->CreateStatus(ORT_NOT_IMPLEMENTED, ORT_TSTR("no operators"));
}
ORT_API_STATUS(helper, _In_opt_ const ORTCHAR_T* path, _Out_ size_t* size, _Outptr_ void** data);
"""
    flags = [f"-I{standin / 'include'}", "-fvisibility=hidden"]
    library = compile_text(tmp_path / "libops.so", text, *flags)
    assert " T RegisterCustomOps" in call("nm", "-D", library).stdout


def test_keys_are_those_that_the_host_reads(standin: Path, native_dir: Path) -> None:
    """Every key that a header names is in the library's text, in the form that clients give."""
    library = (native_dir / "libort_abi.so").read_bytes()
    for header in ("onnxruntime_session_options_config_keys.h", "onnxruntime_run_options_config_keys.h"):
        keys = [
            line.split('"')[1]
            for line in (standin / "include" / header).read_text().splitlines()
            if '"' in line
        ]
        assert keys
        for key in keys:
            assert key.encode() + b"\0" in library, key


def test_the_folder_can_move(standin: Path, model: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(standin, moved, symlinks=True)
    flags = pkg_config(moved, "--cflags", "--libs")
    assert f"-I{moved}/include" in " ".join(map(os.path.normpath, flags)).replace("-I/", "-I/")
    program = compile_with(tmp_path / "client", CLIENT, *flags)
    assert silent(program, model, LD_LIBRARY_PATH=moved / "lib") == OURS


def test_laying_out_twice_gives_the_same(tmp_path: Path) -> None:
    def layout() -> list[tuple[str, str]]:
        silent(sys.executable, "-m", "ort_abi.standin", tmp_path / "d")
        paths = sorted((tmp_path / "d").rglob("*"))
        return [(str(path), os.readlink(path) if path.is_symlink() else "") for path in paths]

    assert layout() == layout()


def test_the_command_says_what_went_wrong(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = call(sys.executable, "-m", "ort_abi.standin", file)
    assert done.returncode == 1 and str(file) in done.stderr and "Traceback" not in done.stderr
    assert call(sys.executable, "-m", "ort_abi.standin").returncode == 2


def test_the_folder_has_all_that_the_library_needs(standin: Path) -> None:
    """It finds its parts there and not in the Python package, also the guard against C++ exceptions."""
    names = {path.name for path in (standin / "lib").iterdir() if path.is_file()}
    full = f"libonnxruntime.so.{ort_abi.get_version_string()}"
    assert {"libonnxruntime.so", "libonnxruntime.so.1", full, "libort_abi_cxx_guard.so"} <= names
    found = call("ldd", standin / "lib" / "libonnxruntime.so.1").stdout
    ours = [line for line in found.splitlines() if "libort_abi" in line]
    assert len(ours) == 1 and f"=> {standin}/lib/libort_abi.so" in ours[0]
