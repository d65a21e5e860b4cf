"""A plugin library for each provider class, which hosts can register under any name.

It is a file in memory: nothing of it is left when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

import ort_abi._native
from ort_abi._locks import registration_lock
from ort_abi._native import ffi, lib
from ort_abi.ep._ep.provider import ExecutionProvider

__all__ = ["class_of", "path_of"]

_MARK = b"ort_abi: entry.\0"  # csrc/bridge/entry/entry.c

_classes: list[type[ExecutionProvider]] = []
"""Class number n has the id n + 1. They stay: a path can be kept as long as the process lives."""

_files: dict[type[ExecutionProvider], tuple[int, os.stat_result]] = {}
_numbers: set[int] = set()
"""File descriptors that were part of a path. A loader knows libraries by path: no path is used twice."""


def class_of(number: int) -> type[ExecutionProvider]:
    """The class of an id that is in a library. Raises LookupError."""
    if not 0 < number <= len(_classes):
        raise LookupError(f"there is no provider class with id {number} (released, or never made)")
    return _classes[number - 1]


def path_of(cls: type[ExecutionProvider]) -> str:
    """The path of the class's library, the same each time. *keeps alive* the class. Raises OSError."""
    with registration_lock:
        if not _is_open(cls):
            if cls not in _classes:
                _classes.append(cls)
            descriptor = _make(_classes.index(cls) + 1)
            _files[cls] = descriptor, os.fstat(descriptor)
        return f"/proc/self/fd/{_files[cls][0]}"


def _is_open(cls: type[ExecutionProvider]) -> bool:
    """False for a file that somebody closed, though its number may be another file's now."""
    if cls not in _files:
        return False
    descriptor, made = _files[cls]
    try:
        return os.path.samestat(os.fstat(descriptor), made)
    except OSError:
        return False


def _make(number: int) -> int:
    data = (Path(ort_abi._native.__file__).parent / "_entry.so").read_bytes()
    functions = (ffi.addressof(lib, name) for name in ("bridge_create_factories", "bridge_release_factory"))
    addresses = [int(ffi.cast("uintptr_t", function)) for function in functions]
    place = data.index(_MARK)
    filled = struct.pack("16sQQQ", _MARK, number, *addresses)
    descriptor = os.memfd_create(f"ort_abi {_classes[number - 1].name}"[:200])
    try:
        while descriptor in _numbers:
            again = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, descriptor + 1)
            os.close(descriptor)
            descriptor = again
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data[:place] + filled + data[place + len(filled) :])
    except BaseException:
        os.close(descriptor)
        raise
    _numbers.add(descriptor)
    return descriptor
