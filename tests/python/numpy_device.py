"""An execution provider in Python with a device of its own.

Its memory is NumPy arrays behind made-up addresses; its streams work later than they are asked to.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ort_abi import ep
from ort_abi.graph import Graph
from tests.support.virtual_memory import VirtualMemory
from tests.support.worker import Worker

VENDOR_ID = 0xBE58
NAME = "NumpyDeviceExecutionProvider"
OPERATORS = {"Mul": np.multiply, "Add": np.add, "Relu": lambda x, out: np.maximum(x, 0, out=out)}


class Boom(Exception):
    """What a callback raises that is asked to."""


class State:
    """What tests watch and change of a device."""

    def __init__(self) -> None:
        self.memory = VirtualMemory()
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.failing = ""
        self.delay = 0.0
        self.given: Any = None
        """Returned by the callback `failing`, if it is not None, instead of raising."""

    def count(self, name: str) -> None:
        """Counts something, on any thread."""
        with self._lock:
            self.counts[name] += 1

    def called(self, name: str) -> Any:
        """Counts a call of a callback; fails it if asked to."""
        self.count(name)
        if name == self.failing and self.given is None:
            raise Boom(f"{name} broke here")
        return self.given if name == self.failing else None


class Allocator(ep.Allocator):
    def __init__(self, state: State, kind: str) -> None:
        self.state, self.kind = state, kind
        self.host: dict[int, Any] = {}

    def alloc(self, size: int) -> int:
        if (given := self.state.called("alloc")) is not None:
            return given
        if self.kind == "host_accessible":
            block = np.empty(max(size, 1), np.uint8)
            self.host[block.ctypes.data] = block
            return block.ctypes.data
        if self.kind == "read_only":
            self.state.count("read_only")
        return self.state.memory.alloc(size)

    def free(self, address: int) -> None:
        self.state.called("free")
        if self.host.pop(address, None) is None:
            self.state.memory.free(address)

    def reserve(self, size: int) -> int:
        given = self.state.called("reserve")
        return self.alloc(size) if given is None else given

    def stats(self) -> Mapping[str, Any]:
        if (given := self.state.called("stats")) is not None:
            return given
        return {"InUse": self.state.memory.in_use()}

    def close(self) -> None:
        self.state.called("close allocator")


class StreamAllocator(Allocator):
    def alloc_on_stream(self, size: int, stream: ep.SyncStream | None) -> int:
        given = self.state.called("alloc_on_stream")
        assert isinstance(stream, Stream)
        return self.alloc(size) if given is None else given

    def shrink(self) -> None:
        self.state.called("shrink")


class Transfer(ep.DataTransfer):
    def __init__(self, state: State) -> None:
        self.state = state

    def can_copy(self, source: ep.MemoryDevice, target: ep.MemoryDevice) -> bool:
        self.state.called("can_copy")
        ours = [device.vendor_id == VENDOR_ID for device in (source, target)]
        return any(ours) and all(o or d.type == "CPU" for o, d in zip(ours, (source, target), strict=True))

    def copy_tensors(self, sources: Any, targets: Any, streams: Any) -> None:
        self.state.count("batches")
        super().copy_tensors(sources, targets, streams)

    def copy(self, source: ep.DeviceTensor, target: ep.DeviceTensor, stream: ep.SyncStream | None) -> None:
        self.state.called("copy")
        self.state.count(f"{source.device.type} to {target.device.type}")
        self.state.given_tensor = source  # type: ignore[attr-defined]
        from_, to = self._bytes(source), self._bytes(target)
        if stream is None:
            to[...] = from_
            return
        assert isinstance(stream, Stream)
        self.state.count("on stream")
        taken = from_.copy() if source.device.is_host else from_
        stream.worker.add(lambda: np.copyto(to, taken))

    def _bytes(self, tensor: ep.DeviceTensor) -> Any:
        if tensor.device.is_host:
            return tensor.bytes()
        return self.state.memory.view(tensor.ptr, (tensor.nbytes,))

    def close(self) -> None:
        self.state.called("close transfer")


class Stream(ep.SyncStream):
    def __init__(self, state: State) -> None:
        self.state, self.worker = state, Worker(state.delay)

    def handle(self) -> int:
        given = self.state.called("handle")
        return id(self) if given is None else given

    def create_notification(self) -> ep.SyncNotification:
        given = self.state.called("create_notification")
        return Notification(self) if given is None else given

    def flush(self) -> None:
        self.worker.wait()  # also where it is to fail: the host frees what the work writes to
        self.state.called("flush")

    def on_session_run_end(self) -> None:
        self.state.called("on_session_run_end")

    def close(self) -> None:
        self.worker.stop()
        self.state.called("close stream")


class Notification(ep.SyncNotification):
    def __init__(self, stream: Stream) -> None:
        self.stream, self.state = stream, stream.state
        self.event = threading.Event()
        self.event.set()  # nothing to wait for yet

    def activate(self) -> None:
        self.state.called("activate")
        self.event = threading.Event()
        self.stream.worker.add(self.event.set)

    def wait_on_device(self, consumer: ep.SyncStream) -> None:
        self.state.called("wait_on_device")
        assert isinstance(consumer, Stream)
        event = self.event
        consumer.worker.add(event.wait)

    def wait_on_host(self) -> None:
        self.state.called("wait_on_host")
        self.event.wait()

    def close(self) -> None:
        self.state.called("close notification")


class Launch(ep.Kernel):
    """One operator, whose work is given to the run's stream."""

    def __init__(self, state: State, graph: Graph) -> None:
        (node,) = graph.nodes
        self.state, self.op_type = state, node.op_type
        names = [value.name for value in node.inputs if value is not None]
        self.order = [graph.argument_names.index(name) for name in names]

    def compute(self, ctx: ep.KernelContext) -> None:
        self.state.called("compute")
        shape = np.broadcast_shapes(*(tensor.shape for tensor in ctx.inputs))
        output = ctx.output(0, shape)
        self.state.given_tensor = output  # type: ignore[attr-defined]
        inputs = [self._array(ctx.inputs[index]) for index in self.order]
        out, operator = self._array(output), OPERATORS[self.op_type]
        stream = ctx.stream
        if stream is None:
            operator(*inputs, out=out)
        else:
            assert isinstance(stream, Stream)
            stream.worker.add(lambda: operator(*inputs, out=out))

    def _array(self, tensor: Any) -> Any:
        assert type(tensor) is ep.DeviceTensor and not tensor.device.is_host
        return self.state.memory.view(tensor.ptr, tensor.shape, tensor.dtype)


class NumpyDevice(ep.ExecutionProvider):
    """Add, Mul and Relu on the device; each node is compiled to one `Launch`. See `device_class`."""

    name, vendor, vendor_id = NAME, "ort-abi tests", VENDOR_ID
    state: ClassVar[State]
    kinds: ClassVar[Sequence[str]] = ("default", "host_accessible", "read_only")
    wanted: ClassVar[Sequence[str]] = tuple(OPERATORS)
    allocator: ClassVar[type[Allocator]] = Allocator

    @classmethod
    def memory_infos(cls, device: ep.Device) -> Iterable[ep.MemoryInfo]:
        given = cls.state.called("memory_infos")
        if given is not None:
            return given
        return [ep.MemoryInfo(f"Numpy {kind}", "GPU", VENDOR_ID, 0, kind) for kind in cls.kinds]

    @classmethod
    def create_allocator(cls, memory: ep.MemoryInfo, options: Mapping[str, str]) -> ep.Allocator | None:
        given = cls.state.called("create_allocator")
        return cls.allocator(cls.state, memory.kind) if given is None else given

    @classmethod
    def create_data_transfer(cls) -> ep.DataTransfer | None:
        given = cls.state.called("create_data_transfer")
        return Transfer(cls.state) if given is None else given

    @classmethod
    def create_sync_stream(cls, device: ep.MemoryDevice, options: Mapping[str, str]) -> ep.SyncStream:
        cls.state.options = dict(options)  # type: ignore[attr-defined]
        given = cls.state.called("create_sync_stream")
        return Stream(cls.state) if given is None else given

    def get_capability(self, graph: Graph) -> Any:
        claims = [ep.Fuse([node], drop_constants=False) for node in graph.nodes]
        return [claim for claim in claims if claim.nodes[0].op_type in self.wanted]

    def compile(self, graph: Graph) -> ep.Kernel:
        return Launch(self.state, graph)

    def sync(self) -> None:
        self.state.called("sync")


def device_class(**members: Any) -> type[NumpyDevice]:
    """A provider with a device of its own, with some members replaced."""
    return type("NumpyDevice", (NumpyDevice,), {"state": State()} | members)
