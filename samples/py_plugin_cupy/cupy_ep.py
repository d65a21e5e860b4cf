"""An execution provider for CUDA devices, in Python with CuPy.

Memory comes from CuPy's pools, copies are cudaMemcpyAsync, streams and notifications are CUDA's streams and
events, operators are CuPy's.

The module that computes is `CupyEp.xp`: `cupy`, or whatever looks like it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np

from ort_abi import ep
from ort_abi.graph import Graph, Node, TensorType

NVIDIA = 0x10DE
FLOATS = (1, 10, 11)  # float32, float16, float64, as ONNX counts them
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3  # cudaMemcpyKind
OPERATORS = {
    "Add": lambda xp, a, b, out: xp.add(a, b, out=out),
    "MatMul": lambda xp, a, b, out: xp.matmul(a, b, out=out),
    "Mul": lambda xp, a, b, out: xp.multiply(a, b, out=out),
    "Relu": lambda xp, x, out: xp.maximum(x, 0, out=out),
    "Sub": lambda xp, a, b, out: xp.subtract(a, b, out=out),
    "Tanh": lambda xp, x, out: xp.tanh(x, out=out),
}


class NoDevice(Exception):
    """CuPy or a CUDA device is missing; the text says which, and what to do."""


def find_cupy() -> Any:
    """The module `cupy`, if there is a CUDA device for it. Raises NoDevice."""
    try:
        import cupy
    except ImportError as error:
        raise NoDevice(f"CuPy is not installed ({error}): pip install cupy-cuda12x") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # a driver that is missing, too old, or says no
        raise NoDevice(f"CUDA cannot be used: {error}") from None
    if count == 0:
        raise NoDevice("CUDA finds no device")
    return cupy


class Allocator(ep.Allocator):
    """Device memory from a pool.

    Freed memory goes back to the pool's arena of the stream that it was allocated on, and is given out again
    for work on that stream only: whoever comes next is behind who was there.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.pool = xp.cuda.MemoryPool()
        self.lock = threading.Lock()
        self.blocks: dict[int, Any] = {}

    def alloc(self, size: int) -> int:
        return self._keep(self.pool.malloc(max(size, 1)))

    def alloc_on_stream(self, size: int, stream: ep.SyncStream | None) -> int:
        with stream.cuda if isinstance(stream, Stream) else nullcontext():
            return self._keep(self.pool.malloc(max(size, 1)))

    def _keep(self, block: Any) -> int:
        with self.lock:
            self.blocks[block.ptr] = block
        return int(block.ptr)

    def free(self, address: int) -> None:
        with self.lock:
            del self.blocks[address]

    def stats(self) -> Mapping[str, Any]:
        return {"InUse": self.pool.used_bytes(), "TotalAllocated": self.pool.total_bytes()}

    def shrink(self) -> None:
        self.pool.free_all_blocks()


class PinnedAllocator(ep.Allocator):
    """Memory of the host that the device reads and writes directly."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.lock = threading.Lock()
        self.blocks: dict[int, Any] = {}

    def alloc(self, size: int) -> int:
        block = self.xp.cuda.alloc_pinned_memory(max(size, 1))
        with self.lock:
            self.blocks[block.ptr] = block
        return int(block.ptr)

    def free(self, address: int) -> None:
        with self.lock:
            del self.blocks[address]


class Transfer(ep.DataTransfer):
    """Copies between the host and the device, and on the device."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def can_copy(self, source: ep.MemoryDevice, target: ep.MemoryDevice) -> bool:
        ours = [device.type == "GPU" and device.vendor_id == NVIDIA for device in (source, target)]
        return any(ours) and all(o or d.type == "CPU" for o, d in zip(ours, (source, target), strict=True))

    def copy(self, source: ep.DeviceTensor, target: ep.DeviceTensor, stream: ep.SyncStream | None) -> None:
        runtime = self.xp.cuda.runtime
        kind = DEVICE_TO_DEVICE
        if source.device.is_host or target.device.is_host:
            kind = HOST_TO_DEVICE if source.device.is_host else DEVICE_TO_HOST
        if isinstance(stream, Stream):
            # CUDA takes pageable memory before the call returns.
            runtime.memcpyAsync(target.ptr, source.ptr, source.nbytes, kind, stream.cuda.ptr)
            return
        runtime.memcpy(target.ptr, source.ptr, source.nbytes, kind)
        if kind == DEVICE_TO_DEVICE:  # the only one that is not done yet
            runtime.streamSynchronize(0)


class Stream(ep.SyncStream):
    """A CUDA stream."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.cuda = xp.cuda.Stream(non_blocking=True)

    def handle(self) -> int:
        return int(self.cuda.ptr)

    def create_notification(self) -> ep.SyncNotification:
        return Notification(self)

    def flush(self) -> None:
        self.cuda.synchronize()


class Notification(ep.SyncNotification):
    """A CUDA event."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.event = stream.xp.cuda.Event(disable_timing=True)

    def activate(self) -> None:
        self.event.record(self.stream.cuda)

    def wait_on_device(self, consumer: ep.SyncStream) -> None:
        assert isinstance(consumer, Stream)
        consumer.cuda.wait_event(self.event)

    def wait_on_host(self) -> None:
        self.event.synchronize()


class Launch(ep.Kernel):
    """One node. CuPy sees the host's tensors in place, through `__cuda_array_interface__`."""

    def __init__(self, xp: Any, graph: Graph) -> None:
        (node,) = graph.nodes
        self.xp, self.op_type = xp, node.op_type
        names = [value.name for value in node.inputs if value is not None]
        self.order = [graph.argument_names.index(name) for name in names]

    def compute(self, ctx: ep.KernelContext) -> None:
        inputs = [ctx.inputs[index] for index in self.order]
        output = ctx.output(0, self._shape(*(tensor.shape for tensor in inputs)))
        if output.size == 0:
            return
        stream = ctx.stream
        with stream.cuda if isinstance(stream, Stream) else nullcontext():
            arrays = [self.xp.asarray(tensor) for tensor in inputs]
            OPERATORS[self.op_type](self.xp, *arrays, out=self.xp.asarray(output))

    def _shape(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        if self.op_type != "MatMul":
            return np.broadcast_shapes(*shapes)
        (*a_batch, rows, _), (*b_batch, _, columns) = shapes
        return (*np.broadcast_shapes(tuple(a_batch), tuple(b_batch)), rows, columns)


class CupyEp(ep.ExecutionProvider):
    """Float operators on the first CUDA device."""

    name, vendor, version, vendor_id = "CupyExecutionProvider", "ort-abi samples", "1.0.0", NVIDIA
    stream_aware = True
    xp: ClassVar[Any] = None

    @classmethod
    def get_supported_devices(cls, devices: Sequence[ep.Device]) -> Iterable[ep.Device]:
        return [device for device in devices if device.type == "GPU" and device.vendor_id == NVIDIA][:1]

    @classmethod
    def memory_infos(cls, device: ep.Device) -> Iterable[ep.MemoryInfo]:
        return [
            ep.MemoryInfo("Cuda", "GPU", NVIDIA, 0),
            ep.MemoryInfo("CudaPinned", "GPU", NVIDIA, 0, "host_accessible"),
        ]

    @classmethod
    def create_allocator(cls, memory: ep.MemoryInfo, options: Mapping[str, str]) -> ep.Allocator:
        return PinnedAllocator(cls.xp) if memory.kind == "host_accessible" else Allocator(cls.xp)

    @classmethod
    def create_data_transfer(cls) -> ep.DataTransfer:
        return Transfer(cls.xp)

    @classmethod
    def create_sync_stream(cls, device: ep.MemoryDevice, options: Mapping[str, str]) -> ep.SyncStream:
        return Stream(cls.xp)

    def get_capability(self, graph: Graph) -> Iterable[ep.Fuse]:
        # Weights stay inputs: the host has them on the device, once.
        return [ep.Fuse([node], drop_constants=False) for node in graph.nodes if can_run(node)]

    def compile(self, graph: Graph) -> ep.Kernel:
        return Launch(self.xp, graph)

    def sync(self) -> None:
        self.xp.cuda.runtime.deviceSynchronize()


def can_run(node: Node) -> bool:
    """True for operators on floats that CuPy has."""
    if node.op_type not in OPERATORS or node.domain not in ("", "ai.onnx"):
        return False
    kinds = [value.type for value in node.inputs if value is not None]
    if not all(isinstance(kind, TensorType) and kind.element_type in FLOATS for kind in kinds):
        return False
    # A vector in a product has a shape rule of its own.
    return node.op_type != "MatMul" or all(
        isinstance(kind, TensorType) and kind.shape is not None and len(kind.shape) >= 2 for kind in kinds
    )
