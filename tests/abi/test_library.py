"""What the built libraries export and need."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from abigen import header, native_build

ALLOWED_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"}


def exported(library: Path) -> set[str]:
    command = ["nm", "-D", "--defined-only", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}


def needed(library: Path) -> set[str]:
    done = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True)
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", done.stdout))


def test_library_exports_what_the_headers_declare_and_nothing_else(libort_abi: Path) -> None:
    declared = {export.name for export in header.read(*native_build.HEADERS).host_exports()}
    ours = {name for name in declared if name.startswith("ortabi_")}
    assert declared - ours == {"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"}
    assert exported(libort_abi) == declared


def test_library_needs_only_the_c_library(libort_abi: Path) -> None:
    assert needed(libort_abi) <= ALLOWED_LIBRARIES


def test_library_has_no_python_symbol(libort_abi: Path) -> None:
    done = subprocess.run(["nm", "-D", str(libort_abi)], capture_output=True, text=True, check=True)
    assert re.findall(r"\b_?Py[A-Z_]\w*", done.stdout) == []


def test_native_module_exports_its_init_and_the_plugin_functions() -> None:
    from ort_abi import _native

    assert exported(Path(_native.__file__)) == {"PyInit__native", "CreateEpFactories", "ReleaseEpFactory"}
    assert native_build.LIBRARY_NAME in needed(Path(_native.__file__))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_bridge_compiles_without_warnings(compiler: str, native_dir: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    flags = native_build.Options(cc=compiler).cflags(native_dir / "generated")
    flags += ["-isystem", sysconfig.get_path("include"), "-DPy_LIMITED_API=0x030A0000"]
    for source in sorted((native_build.CSRC / "bridge").glob("*.c")):
        command = [compiler, *flags, "-fsyntax-only", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
