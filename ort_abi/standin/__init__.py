"""A folder in place of stock onnxruntime's C distribution: `python -m ort_abi.standin DIR`.

Programs that were linked against stock's library run on it (`LD_LIBRARY_PATH=DIR/lib`). Others are built
against it as against stock, by pkg-config (`libonnxruntime`) or CMake (`find_package(onnxruntime)`).
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import ort_abi

__all__ = ["lay_out"]

PACKAGE = Path(ort_abi.__file__).resolve().parent
HERE = Path(__file__).resolve().parent
LIBRARY = "libonnxruntime.so"
SONAME = f"{LIBRARY}.1"
OWN_LIBRARY = "libort_abi_standin.so"
FIRST_WITH_SHORT_SONAME = 19
"""Programs that were linked against 1.18 or older look for a file that is named after the whole release."""


def lay_out(folder: Path) -> None:
    """Fills `folder`, which may exist: files of the same names are replaced, others stay.

    Nothing in it refers to the Python package or to the folder's own place. Raises `OSError`.
    """
    version = ort_abi.get_version_string()
    lib, include = folder / "lib", folder / "include"
    _libraries(lib, version)
    for header in (PACKAGE / "include" / "ort_abi.h", *sorted((HERE / "include").glob("*.h"))):
        _copy(header, include / header.name)
        _link(include / "onnxruntime" / header.name, f"../{header.name}")
    templates = {
        "libonnxruntime.pc": lib / "pkgconfig",
        "onnxruntimeConfig.cmake": lib / "cmake" / "onnxruntime",
        "onnxruntimeConfigVersion.cmake": lib / "cmake" / "onnxruntime",
    }
    for name, target in templates.items():
        text = (HERE / "templates" / name).read_text(encoding="utf-8").replace("@VERSION@", version)
        _place(target / name).write_text(text, encoding="utf-8")


def _libraries(lib: Path, version: str) -> None:
    """The stand-in under all its names, the host that it passes calls on to, and what belongs to that."""
    own = [path for path in PACKAGE.glob("libort_abi*.so*") if path.name != OWN_LIBRARY]
    for path in own:
        _copy(path, lib / path.name)
    full = f"{SONAME}.{version.removeprefix('1.')}"
    _copy(PACKAGE / OWN_LIBRARY, lib / full)
    _link(lib / SONAME, full)
    _link(lib / LIBRARY, SONAME)
    for release in _releases():
        if int(release.split(".")[1]) < FIRST_WITH_SHORT_SONAME:
            _link(lib / f"{LIBRARY}.{release}", SONAME)


def _releases() -> list[str]:
    """The releases whose symbol versions the stand-in has; they are texts in it."""
    found = re.findall(rb"\0VERS_(1\.\d+\.\d+)(?=\0)", (PACKAGE / OWN_LIBRARY).read_bytes())
    return sorted({release.decode() for release in found})


def _place(path: Path) -> Path:
    """Makes room for `path`: its folder is there and the name is free.

    A file that a running program has mapped is not written to: it is removed, and the program keeps it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    return path


def _copy(source: Path, target: Path) -> None:
    shutil.copy2(source, _place(target))


def _link(path: Path, target: str) -> None:
    os.symlink(target, _place(path))
