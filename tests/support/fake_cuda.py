"""CuPy itself on a CUDA runtime that is made up: for a process of its own, as it changes CuPy's machine code.

The CUDA runtime is linked into CuPy; `install` has its functions jump to those of `Runtime`. The device is as
in `fake_cupy`: nothing is done before somebody waits, and nobody else can use its memory. Kernels cannot
run: operators are NumPy's, on the arrays and on the stream that CuPy has.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from cupy_backends.cuda.api import runtime as cupy_runtime
from numpy.typing import NDArray

from .virtual_memory import VirtualMemory

OPERATORS = ("add", "matmul", "maximum", "multiply", "subtract", "tanh")
INVALID = 1  # cudaErrorInvalidValue
int_, pointer, size_t = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t


class Attributes(ctypes.Structure):
    """cudaPointerAttributes."""

    _fields_ = (("type", int_), ("device", int_), ("device_pointer", pointer), ("host_pointer", pointer))


class Runtime:
    """The functions of CUDA, by their names, with the types of their parameters. Two devices; ours is 0."""

    def __init__(self) -> None:
        self.memory = VirtualMemory()
        self.pinned: dict[int, Any] = {}
        self.streams: dict[int, list[Callable[[], object]]] = {0: []}
        self.events: dict[int, tuple[int, threading.Event] | None] = {}
        self.counts: Counter[str] = Counter()
        self.lock = threading.RLock()
        self.thread = threading.local()
        self.handles = iter(range(0x1000, 1 << 40, 0x100))

    def device(self) -> int:
        return int(getattr(self.thread, "device", 0))

    def run(self, stream: int, enough: Callable[[], bool] = lambda: False) -> None:
        with self.lock:
            tasks = self.streams[stream]
            while tasks and not enough():
                tasks.pop(0)()

    def pending(self) -> int:
        return sum(map(len, self.streams.values()))

    def bytes_at(self, address: int, size: int) -> NDArray[Any]:
        if address in self.memory:
            return self.memory.view(address, (size,))
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    def cudaGetDeviceCount(self, out: pointer) -> None:
        give(out, int_, 2)

    def cudaGetDevice(self, out: pointer) -> None:
        give(out, int_, self.device())

    def cudaSetDevice(self, device: int_) -> None:
        self.thread.device = device

    def cudaDeviceGetPCIBusId(self, out: pointer, size: int_, device: int_) -> None:
        ctypes.memmove(out, (b"0000:0A:00.0\0", b"0000:03:00.0\0")[device], 13)

    def cudaMemGetInfo(self, free: pointer, total: pointer) -> None:
        give(free, size_t, 1 << 30)
        give(total, size_t, 1 << 30)

    def cudaGetLastError(self) -> None:
        pass

    def cudaMalloc(self, out: pointer, size: size_t) -> None:
        assert self.device() == 0
        give(out, size_t, self.memory.alloc(size))

    def cudaFree(self, address: pointer) -> None:
        self.cudaDeviceSynchronize()
        if address:
            self.memory.free(address)

    def cudaHostAlloc(self, out: pointer, size: size_t, flags: int_) -> None:
        array = np.empty(size, np.uint8)
        self.pinned[array.ctypes.data] = array
        give(out, size_t, array.ctypes.data)

    def cudaFreeHost(self, address: pointer) -> None:
        del self.pinned[address]

    def cudaPointerGetAttributes(self, out: pointer, address: pointer) -> None:
        kind = 2 if address in self.memory else 1
        give(out, Attributes, Attributes(kind, 0, address, None))

    def cudaMemcpyAsync(
        self, target: pointer, source: pointer, size: size_t, kind: int_, stream: pointer
    ) -> None:
        assert kind == 2 * (source in self.memory) + (target in self.memory)
        assert stream or self.device() == 0
        to, from_ = self.bytes_at(target, size), self.bytes_at(source, size)
        if kind == 0:
            np.copyto(to, from_)
        else:
            self.streams[stream or 0].append(lambda: np.copyto(to, from_))

    def cudaDeviceSynchronize(self) -> None:
        assert self.device() == 0
        for stream in list(self.streams):
            self.run(stream)

    def cudaStreamCreateWithPriority(self, out: pointer, flags: int_, priority: int_) -> None:
        assert flags == 1 and self.device() == 0  # cudaStreamNonBlocking
        handle = next(self.handles)
        self.streams[handle] = []
        give(out, size_t, handle)

    def cudaStreamDestroy(self, stream: pointer) -> None:
        self.run(stream)
        del self.streams[stream]

    def cudaStreamSynchronize(self, stream: pointer) -> None:
        assert stream or self.device() == 0
        self.run(stream or 0)

    def cudaStreamWaitEvent(self, stream: pointer, event: pointer, flags: int_) -> None:
        self.streams[stream or 0].append(self.mark(event))

    def cudaEventCreateWithFlags(self, out: pointer, flags: int_) -> None:
        assert flags == 2 and self.device() == 0  # cudaEventDisableTiming
        handle = next(self.handles)
        self.events[handle] = None
        give(out, size_t, handle)

    def cudaEventDestroy(self, event: pointer) -> None:
        del self.events[event]

    def cudaEventRecord(self, event: pointer, stream: pointer) -> None:
        done = threading.Event()
        self.events[event] = (stream or 0, done)
        self.streams[stream or 0].append(done.set)

    def cudaEventSynchronize(self, event: pointer) -> None:
        self.mark(event)()

    def mark(self, event: int) -> Callable[[], object]:
        recorded = self.events[event]
        assert recorded is not None
        stream, done = recorded
        return lambda: self.run(stream, done.is_set)


def give(out: Any, kind: Any, value: Any) -> None:
    ctypes.cast(out, ctypes.POINTER(kind))[0] = value


class Cupy:
    """CuPy, with operators that work on the made-up device."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def __getattr__(self, name: str) -> Any:
        if name not in OPERATORS:
            return getattr(cupy, name)
        ufunc = getattr(np, name)

        def launch(*inputs: Any, out: Any) -> None:
            stream = cupy.cuda.get_current_stream()
            self.runtime.counts["launches on stream" if stream.ptr else "launches on default"] += 1
            arrays, target = [self._view(array) for array in inputs], self._view(out)
            self.runtime.streams[stream.ptr].append(lambda: ufunc(*arrays, out=target))

        return launch

    def _view(self, array: Any) -> Any:
        if not isinstance(array, cupy.ndarray):
            return array
        assert array.flags.c_contiguous and array.data.device_id == self.runtime.device() == 0
        return self.runtime.memory.view(array.data.ptr, array.shape, array.dtype)


_alive: list[Any] = []  # what the machine code jumps to


def install() -> Runtime:
    """Puts a `Runtime` in place of CUDA's. Raises LookupError if CuPy hides where its functions are."""
    runtime, path = Runtime(), cupy_runtime.__file__
    lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    places = {name: int(at, 16) for at, name in re.findall(r"^(\w+) [tT] (cuda[A-Z]\w+)$", lines, re.M)}
    maps = Path("/proc/self/maps").read_text()
    base = next(int(line.split("-")[0], 16) for line in maps.splitlines() if path in line)
    for name, at in places.items():
        _redirect(base + at, _function(runtime, name))
    missing = {name for name in vars(Runtime) if name.startswith("cuda")} - {*places}
    if missing:
        raise LookupError(f"{path} does not have {', '.join(sorted(missing))}")
    return runtime


def _function(runtime: Runtime, name: str) -> Any:
    """The C function of a name; it fails, and says so, for what `Runtime` does not have."""
    method = getattr(runtime, name, None)
    kinds = [kind for kind in _kinds(name) if kind is not None] if method else []

    def call(*arguments: Any) -> int:
        runtime.counts[name] += 1
        try:
            if method is None:
                raise NotImplementedError(name)
            method(*arguments)
        except BaseException:
            runtime.counts["failed"] += 1
            traceback.print_exc()
            return INVALID
        return 0

    return ctypes.CFUNCTYPE(int_, *kinds)(call)


def _kinds(name: str) -> list[Any]:
    kinds = {"pointer": pointer, "int_": int_, "size_t": size_t}
    annotations = getattr(Runtime, name).__annotations__
    return [kinds.get(kind) for parameter, kind in annotations.items() if parameter != "return"]


def _redirect(address: int, function: Any) -> None:
    """Writes `movabs rax, function; jmp rax`."""
    _alive.append(function)
    target = ctypes.cast(function, pointer).value or 0
    libc = ctypes.CDLL(None)
    assert libc.mprotect(pointer(address & ~4095), size_t(8192), 7) == 0
    code = b"\x48\xb8" + target.to_bytes(8, "little") + b"\xff\xe0"
    ctypes.memmove(address, code, len(code))
