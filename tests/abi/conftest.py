"""Fixtures of the ABI tests: the facts, the parsed header and the library through cffi."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cffi import FFI

from abigen import emit_py, header, native_build


@pytest.fixture(scope="session")
def facts() -> dict[str, Any]:
    """What is known of the ABI from released libraries and their headers; not made from our header."""
    loaded: dict[str, Any] = json.loads((Path(__file__).parent / "facts.json").read_text())
    return loaded


@pytest.fixture(scope="session")
def abi() -> header.Abi:
    """`ort_abi.h` as abigen reads it."""
    return header.read(native_build.HEADERS[0])


@dataclass(frozen=True)
class Host:
    """libort_abi.so through cffi's ABI mode: no compiled module stands between test and library."""

    ffi: FFI
    lib: Any
    api: Any

    def tables(self) -> dict[str, Any]:
        """Pointer to each host table by its struct's name."""
        return {
            "OrtApi": self.api,
            "OrtEpApi": self.api.GetEpApi(),
            "OrtModelEditorApi": self.api.GetModelEditorApi(),
            "OrtCompileApi": self.api.GetCompileApi(),
            "OrtInteropApi": self.api.GetInteropApi(),
        }

    def neutral_call(self, table: Any, slot: str) -> Any:
        """Calls a slot with 0, NULL or an empty value for every argument."""
        function = getattr(table, slot)
        arguments = [self.neutral(argument) for argument in self.ffi.typeof(function).args]
        return function(*arguments)

    def neutral(self, c_type: Any) -> Any:
        """0 of an arithmetic type, NULL of a pointer type."""
        if c_type.kind in ("pointer", "function"):
            return self.ffi.NULL
        return self.ffi.cast(c_type, 0) if c_type.kind == "primitive" else 0

    def take_status(self, status: Any) -> tuple[int, str]:
        """Code and message of a status, which is released."""
        code = self.api.GetErrorCode(status)
        message = self.ffi.string(self.api.GetErrorMessage(status)).decode()
        self.api.ReleaseStatus(status)
        return code, message


@pytest.fixture(scope="session")
def host(libort_abi: Path) -> Host:
    """The library under test."""
    ffi = FFI()
    ffi.cdef(emit_py.cdef(native_build.HEADERS, Path("no bridge here")))
    lib = ffi.dlopen(str(libort_abi))
    api = lib.OrtGetApiBase().GetApi(30)
    assert api != ffi.NULL
    return Host(ffi, lib, api)
