"""The one door to the native module: its tables, and the few conversions that every caller needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ort_abi import _failures
from ort_abi._native import ffi, lib

__all__ = [
    "API_VERSION",
    "NULL",
    "CData",
    "Handle",
    "api",
    "base",
    "c_strings",
    "check",
    "create",
    "default_allocator",
    "encode",
    "ep_api",
    "ffi",
    "key_values",
    "lib",
    "read_key_values",
    "take_text",
    "text",
]

CData = Any
"""A cffi value. Type checkers do not tell the ABI's pointers apart; cffi does, at run time."""

API_VERSION = 30
"""The newest API version whose slots are all known; what this package asks the host for."""

NULL: CData = ffi.NULL
base: CData = lib.ortabi_get_api_base()
api: CData = base.GetApi(API_VERSION)
if api == NULL:
    raise ImportError(f"libort_abi.so beside this package does not have API version {API_VERSION}")
ep_api: CData = api.GetEpApi()


def check(status: CData, table: CData = api) -> None:
    """Returns for OK (NULL), else releases the status and raises its `ort_abi.errors` exception.

    `table` is the `OrtApi` of the host that made the status. What Python code raised on the way is its
    `__cause__`; KeyboardInterrupt, SystemExit and the like are raised themselves.
    """
    if status == NULL:
        return
    code = table.GetErrorCode(status)
    message = text(table.GetErrorMessage(status))
    table.ReleaseStatus(status)
    raise _failures.exception(code, message)


def text(pointer: CData) -> str:
    """The UTF-8 text behind a `const char*`; "" for NULL. copies."""
    return ffi.string(pointer).decode("utf-8", "replace") if pointer != NULL else ""


def encode(value: str | bytes | os.PathLike[str] | os.PathLike[bytes], what: str = "text") -> bytes:
    """Text or a path as the ABI takes it. Raises ValueError for a NUL inside, which C would cut at."""
    if isinstance(value, str):
        encoded = value.encode("utf-8", "surrogateescape")
    elif isinstance(value, bytes):
        encoded = value
    else:
        encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError(f"{what} must not contain a NUL character: {value!r}")
    return encoded


class Handle:
    """Owns one object of the ABI: releases it once, by `close` or when nobody refers to it any more.

    Keeps `parents` alive until then, so that an environment outlives its sessions and a session its values.
    """

    __slots__ = ("__weakref__", "_parents", "_release", "pointer")

    def __init__(self, pointer: CData, release: CData, *parents: object) -> None:
        self.pointer = pointer
        self._release = release
        self._parents = parents

    def close(self) -> None:
        """Releases the object; later calls do nothing."""
        pointer, self.pointer = self.pointer, None
        if pointer is not None:
            self._release(pointer)
            self._parents = ()

    __del__ = close

    def keep(self, _pointer: CData) -> None:
        """A destructor for cffi's `gc` that does nothing: what refers to it keeps this object alive."""


def create(
    c_type: str, release: CData, make: CData, *arguments: object, parents: tuple[object, ...] = ()
) -> Handle:
    """Calls a slot whose last parameter gives an object, and owns what it gave.

    `c_type` is the object's type, `release` the slot that releases it, `make` the slot that makes it.
    """
    out = ffi.new(f"{c_type}**")
    check(make(*arguments, out))
    return Handle(out[0], release, *parents)


def _default_allocator() -> CData:
    out = ffi.new("OrtAllocator**")
    check(api.GetAllocatorWithDefaultOptions(out))
    return out[0]


default_allocator: CData = _default_allocator()
"""The host's CPU allocator: belongs to the host, never released."""


def take_text(make: CData, *arguments: object) -> str:
    """The text that a slot gives in memory of the default allocator, which is released. "" for NULL."""
    out = ffi.new("char**")
    check(make(*arguments, default_allocator, out))
    try:
        return text(out[0])
    finally:
        if out[0] != NULL:
            check(api.AllocatorFree(default_allocator, out[0]))


def c_strings(values: list[bytes]) -> tuple[CData, list[CData]]:
    """An array of `const char*`, and what keeps its strings alive."""
    alive = [ffi.new("char[]", value) for value in values]
    return ffi.new("const char*[]", alive), alive


def key_values(pairs: Mapping[str, str]) -> Handle:
    """An `OrtKeyValuePairs` (API 22) with a copy of `pairs`."""
    out = ffi.new("OrtKeyValuePairs**")
    api.CreateKeyValuePairs(out)
    if out[0] == NULL:
        raise MemoryError("CreateKeyValuePairs gave no object")
    handle = Handle(out[0], api.ReleaseKeyValuePairs)
    for key, value in pairs.items():
        api.AddKeyValuePair(handle.pointer, encode(key, "a key"), encode(value, f"the value of {key!r}"))
    return handle


def read_key_values(pairs: CData) -> dict[str, str]:
    """What an `OrtKeyValuePairs` (API 22) holds; {} for NULL. copies."""
    if pairs == NULL:
        return {}
    keys, values, count = ffi.new("const char* const**"), ffi.new("const char* const**"), ffi.new("size_t*")
    api.GetKeyValuePairs(pairs, keys, values, count)
    return {text(keys[0][i]): text(values[0][i]) for i in range(count[0])}
