"""The cffi side of the build: what the native module `ort_abi._native` is made of."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # build frontends run this file with another folder as sys.path[0]

from abigen import emit_py, header, native_build  # noqa: E402

BRIDGE = native_build.CSRC / "bridge"
MODULE = "ort_abi._native"


def make_ffi() -> FFI:
    """The FFI object whose C source is the native module."""
    ffi = FFI()
    ffi.cdef(emit_py.cdef(native_build.HEADERS, BRIDGE))
    includes = ['#include "ort_abi_host.h"']
    includes += [f'#include "bridge/{path.name}"' for path in sorted(BRIDGE.glob("*.h"))]
    ffi.set_source(MODULE, "\n".join(includes), source_extension=".c")
    return ffi


def bridge_sources() -> list[Path]:
    """The C files of the bridge, compiled into the native module."""
    return sorted(BRIDGE.glob("*.c"))


def build_entry(out: Path, cc: str) -> Path:
    """Builds the library that `ort_abi.ep.library_path` makes copies of; returns its path.

    Raises `native_build.BuildError` with the compiler's output.
    """
    library = out / "_entry.so"
    flags = ["-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", *native_build.WARNINGS[:4], "-shared", "-s"]
    command = [*shlex.split(cc), *flags, f"-I{native_build.CSRC / 'include'}"]
    done = subprocess.run(
        [*command, "-o", str(library), str(BRIDGE / "entry" / "entry.c")],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise native_build.BuildError(done.stderr)
    return library


def write_c_source(path: Path) -> None:
    """Writes the module's generated C source."""
    path.parent.mkdir(parents=True, exist_ok=True)
    make_ffi().emit_c_code(str(path))


def write_python(package: Path) -> None:
    """Writes the generated Python files into the package folder `package`."""
    abi = header.read(*native_build.HEADERS)
    native_abi = header.parse(emit_py.native_text(native_build.HEADERS, BRIDGE))
    pyi = emit_py.native_pyi(native_abi, emit_py.callback_names(BRIDGE))
    native_build.write_if_changed(package / "_enums.py", emit_py.enums_py(abi))
    native_build.write_if_changed(package / "_native.pyi", pyi)
