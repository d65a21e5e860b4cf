"""A host as a C program uses it, for what Python's interfaces do not offer: ours, or stock's library.

Stock's library is another copy than the one in the module `onnxruntime`, with an environment of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime

import ort_abi
from ort_abi import ep
from ort_abi._lib import base as our_base
from ort_abi._lib import check, ffi

FLOAT = 1


def api_version() -> int:
    """That of stock onnxruntime."""
    return int(onnxruntime.__version__.split(".")[1])


def _table(host: ModuleType) -> Any:
    if host is ort_abi:
        return our_base.GetApi(30)
    (path,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    get_base = ctypes.CDLL(str(path)).OrtGetApiBase
    get_base.restype = ctypes.c_void_p
    return ffi.cast("const OrtApiBase*", get_base()).GetApi(min(api_version(), 30))


class CHost:
    """The tables of a host, and an environment in which libraries are registered."""

    def __init__(self, host: ModuleType) -> None:
        self.api = _table(host)
        self.ep_api = self.api.GetEpApi()
        self.env = self.made("OrtEnv*", self.api.CreateEnv, 3, b"test")

    def close(self) -> None:
        """Releases the environment."""
        self.api.ReleaseEnv(self.env)

    def check(self, status: Any) -> None:
        """Raises what a status says."""
        check(status, self.api)

    def made(self, kind: str, slot: Any, *arguments: Any) -> Any:
        """What a slot gives through its last parameter."""
        out = ffi.new(f"{kind}*")
        self.check(slot(*arguments, out))
        return out[0]

    def register(self, cls: type[ep.ExecutionProvider]) -> None:
        """Registers a provider under its name."""
        name = ep.prepare(cls)
        path = ep.library_path().encode()
        self.check(self.api.RegisterExecutionProviderLibrary(self.env, name.encode(), path))

    def unregister(self, cls: type[ep.ExecutionProvider]) -> None:
        """The opposite."""
        self.check(self.api.UnregisterExecutionProviderLibrary(self.env, cls.name.encode()))

    def device(self, cls: type[ep.ExecutionProvider]) -> Any:
        """The `OrtEpDevice*` of a provider."""
        count = ffi.new("size_t*")
        found = ffi.new("const OrtEpDevice* const**")
        self.check(self.api.GetEpDevices(self.env, found, count))
        devices = [found[0][i] for i in range(count[0])]
        return next(d for d in devices if ffi.string(self.api.EpDevice_EpName(d)).decode() == cls.name)

    def memory(self, cls: type[ep.ExecutionProvider], kind: int = 0) -> Any:
        """The `OrtMemoryInfo*` of its device, of an `OrtDeviceMemoryType`."""
        return self.api.EpDevice_MemoryInfo(self.device(cls), kind)

    def shared_allocator(self, memory: Any) -> Any:
        """The allocator that all use for a memory; NULL if there is none."""
        return self.made("OrtAllocator*", self.api.GetSharedAllocator, self.env, memory)

    def stream(self, cls: type[ep.ExecutionProvider]) -> Any:
        """A stream of a provider (release with `ReleaseSyncStream`)."""
        return self.made("OrtSyncStream*", self.api.CreateSyncStreamForEpDevice, self.device(cls), ffi.NULL)

    def tensor(self, array: np.ndarray) -> Any:
        """An `OrtValue*` over an array of float32 (release with `ReleaseValue`)."""
        cpu = self.made("OrtMemoryInfo*", self.api.CreateCpuMemoryInfo, 0, 0)
        dims = ffi.new("int64_t[]", array.shape)
        where = (cpu, ffi.cast("void*", array.ctypes.data), array.nbytes, dims, array.ndim, FLOAT)
        value = self.made("OrtValue*", self.api.CreateTensorWithDataAsOrtValue, *where)
        self.api.ReleaseMemoryInfo(cpu)
        return value

    @contextmanager
    def session(self, cls: type[ep.ExecutionProvider], model: bytes) -> Iterator[CSession]:
        """A session on a provider, in which graphs stay as they are."""
        options = self.made("OrtSessionOptions*", self.api.CreateSessionOptions)
        self.check(self.api.SetSessionGraphOptimizationLevel(options, 0))
        devices = ffi.new("const OrtEpDevice*[]", [self.device(cls)])
        append = self.api.SessionOptionsAppendExecutionProvider_V2
        self.check(append(options, self.env, devices, 1, ffi.NULL, ffi.NULL, 0))
        arguments = (self.env, ffi.from_buffer(model), len(model), options)
        session = CSession(self, self.made("OrtSession*", self.api.CreateSessionFromArray, *arguments))
        self.api.ReleaseSessionOptions(options)
        try:
            yield session
        finally:
            self.api.ReleaseSession(session.pointer)


class CSession:
    """An `OrtSession*`."""

    def __init__(self, host: CHost, pointer: Any) -> None:
        self.host, self.pointer = host, pointer

    def run(self, feeds: Mapping[str, np.ndarray], output: np.ndarray, stream: Any = ffi.NULL) -> None:
        """Runs with a stream of the caller's, or without; writes the model's only output "y" to an array."""
        host, api = self.host, self.host.api
        options = host.made("OrtRunOptions*", api.CreateRunOptions)
        if stream != ffi.NULL:
            api.RunOptionsSetSyncStream(options, stream)
        texts = [ffi.new("char[]", name.encode()) for name in (*feeds, "y")]
        values = [host.tensor(array) for array in feeds.values()]
        inputs, outputs = ffi.new("const OrtValue*[]", values), ffi.new("OrtValue*[]", [host.tensor(output)])
        names = ffi.new("const char*[]", texts)
        status = api.Run(self.pointer, options, names, inputs, len(feeds), names + len(feeds), 1, outputs)
        for value in (*values, outputs[0]):
            api.ReleaseValue(value)
        api.ReleaseRunOptions(options)
        host.check(status)


@contextmanager
def c_host(host: ModuleType) -> Iterator[CHost]:
    """A `CHost`, closed afterwards."""
    made = CHost(host)
    try:
        yield made
    finally:
        made.close()
