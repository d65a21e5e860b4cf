"""What samples/py_plugin_cupy uses of CuPy, made of NumPy on a device that is only there for this module.

Streams work later than they are asked to, in threads; memory has addresses that nobody else can use.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .virtual_memory import VirtualMemory
from .worker import Worker


class FakeCupy:
    """Stands in for the module `cupy`: `CupyEp.xp = FakeCupy()`."""

    def __init__(self, delay: float = 0.001) -> None:
        self.memory = VirtualMemory()
        self.counts: Counter[str] = Counter()
        self.current = threading.local()
        self.cuda = _Cuda(self, delay)

    def asarray(self, tensor: Any) -> NDArray[Any]:
        interface = tensor.__cuda_array_interface__
        address, _ = interface["data"]
        return self.memory.view(address, interface["shape"], interface["typestr"])

    def do(self, task: Any) -> None:
        """On the current stream, as CuPy does; at once on the default stream."""
        stream = getattr(self.current, "stream", None)
        self.counts["on stream" if stream else "on default"] += 1
        if stream is None:
            task()
        else:
            stream.worker.add(task)

    def __getattr__(self, name: str) -> Any:
        ufunc = getattr(np, name)

        def launch(*inputs: Any, out: NDArray[Any]) -> None:
            self.do(lambda: ufunc(*inputs, out=out))

        return launch


class _Cuda:
    def __init__(self, xp: FakeCupy, delay: float) -> None:
        self.xp, self.delay = xp, delay
        self.runtime = _Runtime(xp)
        self.streams: dict[int, _Stream] = {}

    def MemoryPool(self) -> _Pool:
        return _Pool(self.xp)

    def Stream(self, non_blocking: bool) -> _Stream:
        assert non_blocking
        return _Stream(self.xp, self.delay)

    def Event(self, disable_timing: bool) -> _Event:
        self.xp.counts["events"] += 1
        return _Event()

    def alloc_pinned_memory(self, size: int) -> Any:
        return _Pinned(size)


class _Pinned:
    def __init__(self, size: int) -> None:
        self.array = np.empty(size, np.uint8)
        self.ptr = self.array.ctypes.data


class _Block:
    """Gives its memory back when nobody has it any more, as CuPy's does."""

    def __init__(self, memory: VirtualMemory, size: int) -> None:
        self.memory, self.ptr = memory, memory.alloc(size)

    def __del__(self) -> None:
        self.memory.free(self.ptr)


class _Pool:
    def __init__(self, xp: FakeCupy) -> None:
        self.xp = xp

    def malloc(self, size: int) -> _Block:
        self.xp.counts["malloc on stream" if getattr(self.xp.current, "stream", None) else "malloc"] += 1
        return _Block(self.xp.memory, size)

    def used_bytes(self) -> int:
        return self.xp.memory.in_use()

    total_bytes = used_bytes

    def free_all_blocks(self) -> None:
        self.xp.counts["free_all_blocks"] += 1


class _Runtime:
    def __init__(self, xp: FakeCupy) -> None:
        self.xp = xp

    def _bytes(self, address: int, size: int, on_device: bool) -> NDArray[Any]:
        if on_device:
            return self.xp.memory.view(address, (size,))
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    def _pair(self, target: int, source: int, size: int, kind: int) -> tuple[NDArray[Any], NDArray[Any]]:
        self.xp.counts[f"copy kind {kind}"] += 1
        return self._bytes(target, size, bool(kind & 1)), self._bytes(source, size, bool(kind & 2))

    def memcpy(self, target: int, source: int, size: int, kind: int) -> None:
        np.copyto(*self._pair(target, source, size, kind))

    def memcpyAsync(self, target: int, source: int, size: int, kind: int, stream: int) -> None:
        to, from_ = self._pair(target, source, size, kind)
        taken = from_ if kind & 2 else from_.copy()  # pageable memory is taken before the call returns
        self.xp.cuda.streams[stream].worker.add(lambda: np.copyto(to, taken))

    def streamSynchronize(self, stream: int) -> None:
        self.xp.counts["synchronize"] += 1

    def deviceSynchronize(self) -> None:
        self.xp.counts["device synchronize"] += 1
        for stream in list(self.xp.cuda.streams.values()):
            stream.synchronize()


class _Stream:
    def __init__(self, xp: FakeCupy, delay: float) -> None:
        self.xp, self.worker = xp, Worker(delay)
        self.ptr = id(self)
        xp.cuda.streams[self.ptr] = self
        xp.counts["streams"] += 1

    def __enter__(self) -> _Stream:
        self.xp.current.stream = self
        return self

    def __exit__(self, *_: object) -> None:
        self.xp.current.stream = None

    def synchronize(self) -> None:
        self.worker.wait()

    def wait_event(self, event: _Event) -> None:
        self.xp.counts["wait_event"] += 1
        done = event.done
        self.worker.add(done.wait)


class _Event:
    def __init__(self) -> None:
        self.done = threading.Event()

    def record(self, stream: _Stream) -> None:
        self.done = threading.Event()
        stream.worker.add(self.done.set)

    def synchronize(self) -> None:
        self.done.wait()
