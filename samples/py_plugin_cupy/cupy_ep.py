"""An execution provider for CUDA devices, in Python with CuPy.

Memory comes from CuPy's pools, copies are cudaMemcpyAsync, streams and notifications are CUDA's streams and
events, operators are CuPy's.

`CupyEp.gpu` is where it all happens: set it to a `Gpu` of `find_cupy()` before the provider is registered.

Streams here are non-blocking, so nothing is in order with them by itself: not the default stream, not a copy
that has returned to the caller. Where one has to wait for another it is written down.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ort_abi import ep
from ort_abi.graph import Graph, Node, TensorType

INSTALL = 'pip install "cupy-cuda12x[ctk]"'
NVIDIA = 0x10DE
FLOATS = (1, 10, 11)  # float32, float16, float64, as ONNX counts them
DEVICE = 0  # CUDA's number of the GPU; CUDA_VISIBLE_DEVICES says which one that is
OPERATORS = {
    "Add": lambda xp, a, b, out: xp.add(a, b, out=out),
    "MatMul": lambda xp, a, b, out: xp.matmul(a, b, out=out),
    "Mul": lambda xp, a, b, out: xp.multiply(a, b, out=out),
    "Relu": lambda xp, x, out: xp.maximum(x, 0, out=out),
    "Sub": lambda xp, a, b, out: xp.subtract(a, b, out=out),
    "Tanh": lambda xp, x, out: xp.tanh(x, out=out),
}


class NoDevice(Exception):
    """Something is missing that the provider needs; the text says what, and what to do."""


def find_cupy() -> Any:
    """The module `cupy`, if there is a CUDA device for it and what its operators need. Raises NoDevice."""
    try:
        import cupy
    except ImportError as error:
        raise NoDevice(f"CuPy is not installed ({error}): {INSTALL}") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # a driver that is missing, too old, or says no
        hint = "is there an NVIDIA GPU, and a driver that is new enough?"
        raise NoDevice(f"CUDA cannot be used: {error} ({hint})") from None
    if count == 0:
        raise NoDevice("CUDA finds no device")
    try:  # CuPy finds these when an operator first needs them: too late to say so
        cupy.cuda.nvrtc.getVersion()
        cupy.cuda.cublas.create  # noqa: B018
    except Exception as error:
        missing = str(error).strip().splitlines()[0]
        raise NoDevice(f"CuPy lacks a library of CUDA ({missing}): {INSTALL}") from None
    return cupy


class Gpu:
    """CUDA's device, by way of `cupy` or what looks like it (`xp`). Any thread."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.pool = xp.cuda.MemoryPool()

    @contextmanager
    def current(self, stream: ep.SyncStream | None = None) -> Iterator[Any]:
        """Makes the device and a stream of ours current, else CUDA's default stream. Gives CuPy's stream.

        Both belong to the thread, where the user's own code may have made others current.
        """
        on = stream.cuda if isinstance(stream, Stream) else self.xp.cuda.Stream.null
        with self.xp.cuda.Device(DEVICE), on:
            yield on

    def wait(self) -> None:
        """Waits for all work on the device."""
        with self.current():
            self.xp.cuda.runtime.deviceSynchronize()


class Allocator(ep.Allocator):
    """Device memory from the pool.

    Freed memory goes back to the pool's arena of the stream that it was allocated on, and is given out again
    for work on that stream only: whoever comes next is behind who was there. Memory of no stream has nobody
    to be behind: it goes back when the device is done, as with cudaFree.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.lock = threading.Lock()
        self.blocks: dict[int, tuple[Any, Stream | None]] = {}

    def alloc(self, size: int) -> int:
        return self.alloc_on_stream(size, None)

    def alloc_on_stream(self, size: int, stream: ep.SyncStream | None) -> int:
        with self.gpu.current(stream):
            block = self.gpu.pool.malloc(max(size, 1))
        with self.lock:
            self.blocks[block.ptr] = block, stream if isinstance(stream, Stream) else None
        return int(block.ptr)

    def free(self, address: int) -> None:
        with self.lock:
            block, stream = self.blocks.pop(address)
        if stream is None or stream.closed:
            self.gpu.wait()
        del block

    def stats(self) -> Mapping[str, Any]:
        with self.gpu.current():
            return {"InUse": self.gpu.pool.used_bytes(), "TotalAllocated": self.gpu.pool.total_bytes()}

    def shrink(self) -> None:
        with self.gpu.current():
            self.gpu.pool.free_all_blocks()

    def close(self) -> None:
        self.shrink()  # the pool would keep it, even when it is gone itself


class PinnedAllocator(ep.Allocator):
    """Memory of the host that the device reads and writes directly."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.lock = threading.Lock()
        self.blocks: dict[int, Any] = {}

    def alloc(self, size: int) -> int:
        with self.gpu.current():
            block = self.gpu.xp.cuda.alloc_pinned_memory(max(size, 1))
        with self.lock:
            self.blocks[block.ptr] = block
        return int(block.ptr)

    def free(self, address: int) -> None:
        with self.lock:
            block = self.blocks.pop(address)
        self.gpu.wait()  # a copy may be on its way
        del block


class Transfer(ep.DataTransfer):
    """Copies between the host and the device, and on the device."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    def can_copy(self, source: ep.MemoryDevice, target: ep.MemoryDevice) -> bool:
        ours = [(d.type, d.vendor_id, d.device_id) == ("GPU", NVIDIA, DEVICE) for d in (source, target)]
        return any(ours) and all(o or d.type == "CPU" for o, d in zip(ours, (source, target), strict=True))

    def copy(self, source: ep.DeviceTensor, target: ep.DeviceTensor, stream: ep.SyncStream | None) -> None:
        if stream is not None and not isinstance(stream, Stream):
            stream.flush()  # another provider's: the copy cannot go into its queue
        kind = 2 * (not source.device.is_host) + (not target.device.is_host)  # cudaMemcpyKind
        with self.gpu.current(stream) as on:
            if kind == 0:  # of the host alone: CUDA need not have it wait for the stream
                on.synchronize()
            self.gpu.xp.cuda.runtime.memcpyAsync(target.ptr, source.ptr, source.nbytes, kind, on.ptr)
            # What is read from the host has to be taken when this returns. CUDA takes it later if the memory
            # is pinned, or if the GPU can read pageable memory itself.
            if source.device.is_host or not isinstance(stream, Stream):
                on.synchronize()


class Stream(ep.SyncStream):
    """A CUDA stream."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.closed = False
        with gpu.current():
            self.cuda = gpu.xp.cuda.Stream(non_blocking=True)

    def handle(self) -> int:
        return int(self.cuda.ptr)

    def create_notification(self) -> ep.SyncNotification:
        return Notification(self)

    def flush(self) -> None:
        self.cuda.synchronize()

    def close(self) -> None:
        self.closed = True
        self.cuda.synchronize()
        with self.gpu.current():
            self.gpu.pool.free_all_blocks(self.cuda)  # nobody else could have them


class Notification(ep.SyncNotification):
    """A CUDA event."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        with stream.gpu.current():
            self.event = stream.gpu.xp.cuda.Event(disable_timing=True)

    def activate(self) -> None:
        with self.stream.gpu.current():
            self.event.record(self.stream.cuda)

    def wait_on_device(self, consumer: ep.SyncStream) -> None:
        if not isinstance(consumer, Stream):  # another provider's
            self.wait_on_host()
            return
        with consumer.gpu.current():
            consumer.cuda.wait_event(self.event)

    def wait_on_host(self) -> None:
        self.event.synchronize()


class Launch(ep.Kernel):
    """One node. CuPy sees the host's tensors in place, through `__cuda_array_interface__`."""

    def __init__(self, gpu: Gpu, graph: Graph) -> None:
        (node,) = graph.nodes
        self.gpu, self.op_type = gpu, node.op_type
        names = [value.name for value in node.inputs if value is not None]
        self.order = [graph.argument_names.index(name) for name in names]

    def compute(self, ctx: ep.KernelContext) -> None:
        inputs = [ctx.inputs[index] for index in self.order]
        output = ctx.output(0, self._shape(*(tensor.shape for tensor in inputs)))
        if output.size == 0:
            return
        stream, xp = ctx.stream, self.gpu.xp
        if stream is None:  # in a host older than API 28: what the inputs come from is not known
            self.gpu.wait()
        with self.gpu.current(stream) as on:
            arrays = [xp.asarray(tensor) for tensor in inputs]
            OPERATORS[self.op_type](xp, *arrays, out=xp.asarray(output))
            if stream is None:
                on.synchronize()

    def _shape(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        if self.op_type != "MatMul":
            return np.broadcast_shapes(*shapes)
        (*a_batch, rows, _), (*b_batch, _, columns) = shapes
        return (*np.broadcast_shapes(tuple(a_batch), tuple(b_batch)), rows, columns)


class CupyEp(ep.ExecutionProvider):
    """Float operators on CUDA's device 0."""

    name, vendor, version, vendor_id = "CupyExecutionProvider", "ort-abi samples", "1.0.0", NVIDIA
    stream_aware = True
    gpu: ClassVar[Gpu]

    @classmethod
    def get_supported_devices(cls, devices: Sequence[ep.Device]) -> Iterable[ep.Device]:
        gpus = [device for device in devices if device.type == "GPU" and device.vendor_id == NVIDIA]
        if len(gpus) > 1:  # hosts count them by their slots, CUDA the fastest first
            slot = cls.gpu.xp.cuda.runtime.deviceGetPCIBusId(DEVICE).lower()
            gpus.sort(key=lambda device: device.metadata.get("pci_bus_id", "").lower() != slot)
        return gpus[:1]

    @classmethod
    def memory_infos(cls, device: ep.Device) -> Iterable[ep.MemoryInfo]:
        return [
            ep.MemoryInfo("Cuda", "GPU", NVIDIA, DEVICE),
            ep.MemoryInfo("CudaPinned", "GPU", NVIDIA, DEVICE, "host_accessible"),
        ]

    @classmethod
    def create_allocator(cls, memory: ep.MemoryInfo, options: Mapping[str, str]) -> ep.Allocator:
        return PinnedAllocator(cls.gpu) if memory.kind == "host_accessible" else Allocator(cls.gpu)

    @classmethod
    def create_data_transfer(cls) -> ep.DataTransfer:
        return Transfer(cls.gpu)

    @classmethod
    def create_sync_stream(cls, device: ep.MemoryDevice, options: Mapping[str, str]) -> ep.SyncStream:
        return Stream(cls.gpu)

    def get_capability(self, graph: Graph) -> Iterable[ep.Fuse]:
        # Weights stay inputs: the host has them on the device, once.
        return [ep.Fuse([node], drop_constants=False) for node in graph.nodes if can_run(node)]

    def compile(self, graph: Graph) -> ep.Kernel:
        return Launch(self.gpu, graph)

    def sync(self) -> None:
        self.gpu.wait()


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
