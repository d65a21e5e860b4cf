"""What samples/py_plugin_cupy uses of CuPy, made of NumPy on a device that is only there for this module.

The device is as lazy as CUDA may be: work of any stream is done when somebody waits for it
and not before. Memory has addresses that nobody else can use; freed memory is given out again at once, in the
arena of its stream. Current device and stream belong to the thread.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .virtual_memory import VirtualMemory


class FakeCupy:
    """Stands in for the module `cupy`."""

    def __init__(self) -> None:
        self.memory = VirtualMemory()
        self.counts: Counter[str] = Counter()
        self.current = _Current()
        self.lock = threading.RLock()  # whoever waits does the work, of several streams perhaps
        self.cuda = _Cuda(self)

    def asarray(self, tensor: Any) -> NDArray[Any]:
        interface = tensor.__cuda_array_interface__
        address, _ = interface["data"]
        view = self.memory.view(address, interface["shape"], interface["typestr"])
        # CuPy copies what is not on the current device.
        return view if self.current.device == 0 else view.copy()

    def do(self, task: Callable[[], object]) -> None:
        """On the current stream, as CuPy does."""
        stream = self.stream()
        self.counts["on stream" if stream.ptr else "on default"] += 1
        stream.add(task)

    def stream(self) -> _Stream:
        """The current stream."""
        return self.current.streams[-1] if self.current.streams else self.cuda.Stream.null

    def pending(self) -> int:
        """How much work is not done."""
        return sum(len(stream.tasks) for stream in self.cuda.streams.values())

    def __getattr__(self, name: str) -> Any:
        ufunc = getattr(np, name)

        def launch(*inputs: Any, out: NDArray[Any]) -> None:
            self.do(lambda: ufunc(*inputs, out=out))

        return launch


class _Current(threading.local):
    def __init__(self) -> None:
        self.device = 0
        self.streams: list[_Stream] = []


class _Cuda:
    def __init__(self, xp: FakeCupy) -> None:
        self.xp = xp
        self.runtime = _Runtime(xp)
        self.streams: dict[int, _Stream] = {}
        self.Stream = _StreamClass(xp, self.streams)

    def MemoryPool(self) -> _Pool:
        return _Pool(self.xp)

    def Device(self, device: int) -> _Device:
        return _Device(self.xp, device)

    def Event(self, disable_timing: bool) -> _Event:
        assert disable_timing and self.xp.current.device == 0
        self.xp.counts["events"] += 1
        return _Event()

    def alloc_pinned_memory(self, size: int) -> Any:
        assert self.xp.current.device == 0
        return _Pinned(size)


class _Device:
    def __init__(self, xp: FakeCupy, device: int) -> None:
        self.xp, self.device = xp, device

    def __enter__(self) -> _Device:
        self.before, self.xp.current.device = self.xp.current.device, self.device
        return self

    def __exit__(self, *_: object) -> None:
        self.xp.current.device = self.before


class _Pinned:
    def __init__(self, size: int) -> None:
        self.array = np.empty(size, np.uint8)
        self.ptr = self.array.ctypes.data


class _Block:
    """Goes back to its arena when nobody has it any more, as CuPy's does."""

    def __init__(self, ptr: int, size: int, arena: list[tuple[int, int]], pool: _Pool) -> None:
        self.ptr, self.size, self.arena, self.pool = ptr, size, arena, pool

    def __del__(self) -> None:
        self.pool.used -= self.size
        self.arena.append((self.ptr, self.size))


class _Pool:
    """As CuPy's, it does not give its memory back when it is gone itself."""

    def __init__(self, xp: FakeCupy) -> None:
        self.xp, self.used = xp, 0
        self.arenas: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)

    def malloc(self, size: int) -> _Block:
        assert self.xp.current.device == 0
        stream = self.xp.stream()
        self.xp.counts["malloc on stream" if stream.ptr else "malloc"] += 1
        arena = self.arenas[stream.ptr]
        found = next((block for block in arena if block[1] == size), None)
        if found is None:
            found = self.xp.memory.alloc(size), size
        else:
            arena.remove(found)
        self.used += size
        return _Block(*found, arena, self)

    def used_bytes(self) -> int:
        assert self.xp.current.device == 0
        return self.used

    def total_bytes(self) -> int:
        assert self.xp.current.device == 0
        return self.xp.memory.in_use()

    def free_all_blocks(self, stream: _Stream | None = None) -> None:
        assert self.xp.current.device == 0
        self.xp.counts["free_all_blocks"] += 1
        for key in list(self.arenas) if stream is None else [stream.ptr]:
            for address, _ in self.arenas[key]:
                self.xp.memory.free(address)
            self.arenas[key].clear()


class _Runtime:
    def __init__(self, xp: FakeCupy) -> None:
        self.xp = xp
        self.slots = ["0000:0A:00.0", "0000:03:00.0"]

    def _bytes(self, address: int, size: int, on_device: bool) -> NDArray[Any]:
        assert on_device == (address in self.xp.memory)
        if on_device:
            return self.xp.memory.view(address, (size,))
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:
        assert stream or self.xp.current.device == 0
        self.xp.counts[f"copy kind {kind}"] += 1
        to, from_ = self._bytes(dst, size, bool(kind & 1)), self._bytes(src, size, bool(kind & 2))
        if kind == 0:
            np.copyto(to, from_)
        else:
            self.xp.cuda.streams[stream].add(lambda: np.copyto(to, from_))

    def deviceSynchronize(self) -> None:
        assert self.xp.current.device == 0
        self.xp.counts["device synchronize"] += 1
        for stream in list(self.xp.cuda.streams.values()):
            stream.synchronize()

    def deviceGetPCIBusId(self, device: int) -> str:
        return self.slots[device]


class _StreamClass:
    def __init__(self, xp: FakeCupy, streams: dict[int, _Stream]) -> None:
        self.xp, self.streams = xp, streams
        self.null = streams[0] = _Stream(xp, 0)

    def __call__(self, non_blocking: bool) -> _Stream:
        assert non_blocking and self.xp.current.device == 0
        self.xp.counts["streams"] += 1
        ptr = 0x100 * len(self.streams)
        stream = self.streams[ptr] = _Stream(self.xp, ptr)
        return stream


class _Stream:
    def __init__(self, xp: FakeCupy, ptr: int) -> None:
        self.xp, self.ptr = xp, ptr
        self.tasks: list[Callable[[], object]] = []

    def add(self, task: Callable[[], object]) -> None:
        with self.xp.lock:
            self.tasks.append(task)

    def __enter__(self) -> _Stream:
        assert self.xp.current.device == 0  # CuPy raises RuntimeError
        self.xp.current.streams.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.xp.current.streams.pop()

    def synchronize(self) -> None:
        self.run(lambda: False)

    def run(self, enough: Callable[[], bool]) -> None:
        """Does work, in order, until it is enough or all done."""
        with self.xp.lock:
            while self.tasks and not enough():
                self.tasks.pop(0)()

    def wait_event(self, event: _Event) -> None:
        self.xp.counts["wait_event"] += 1
        self.add(event.mark())


class _Event:
    def __init__(self) -> None:
        self.stream: _Stream | None = None
        self.done = threading.Event()

    def record(self, stream: _Stream) -> None:
        self.stream, self.done = stream, threading.Event()
        stream.add(self.done.set)

    def mark(self) -> Callable[[], object]:
        """Waits for what was recorded last."""
        stream, done = self.stream, self.done
        assert stream is not None
        return lambda: stream.run(done.is_set)

    def synchronize(self) -> None:
        self.mark()()
