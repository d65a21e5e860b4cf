"""Execution providers written in Python, for our own host and for stock onnxruntime.

    class MyEp(ort_abi.ep.ExecutionProvider):
        name = "MyExecutionProvider"

        @ort_abi.ep.kernel("Mul", (7, None))
        def mul(a, b):
            return a * b

    ort_abi.register(MyEp)                       # our host
    ort_abi.ep.register_with(onnxruntime, MyEp)  # stock onnxruntime, in the same process

How callbacks live and die is told in `_call/calls.py`.
"""

from __future__ import annotations

from ort_abi._lib import lib
from ort_abi.ep import _release  # noqa: F401  (attaches the callback)
from ort_abi.ep._call.objects import live_objects
from ort_abi.ep._custom_op.custom_ops import CustomOp, Formal, ShapeInferContext
from ort_abi.ep._device.device import (
    Allocator,
    DataTransfer,
    DeviceTensor,
    MemoryDevice,
    MemoryInfo,
    SyncNotification,
    SyncStream,
)
from ort_abi.ep._device.hardware import Device
from ort_abi.ep._ep.ep_context import Compiled, EpContext
from ort_abi.ep._ep.partition import partition
from ort_abi.ep._ep.provider import ExecutionProvider, Fuse
from ort_abi.ep._ep.run_options import RunOptions
from ort_abi.ep._ep.slots import GraphicsInterop, Incompatibility
from ort_abi.ep._factory.registration import library_path, prepare, register_with, unregister_from
from ort_abi.ep._importer.importer import ExternalMemory, ExternalSemaphore, ResourceImporter
from ort_abi.ep._node.compute import KernelContext
from ort_abi.ep._node.kernel import Kernel, KernelSpec, kernel
from ort_abi.ep._node.kernel_info import KernelInfo
from ort_abi.ep._node.prepack import PrepackAllocator, SharedWeights
from ort_abi.ep._profiler.profiler import HostEvent, Profiler, ProfilingEvent

__all__ = [
    "Allocator",
    "Compiled",
    "CustomOp",
    "DataTransfer",
    "Device",
    "DeviceTensor",
    "EpContext",
    "ExecutionProvider",
    "ExternalMemory",
    "ExternalSemaphore",
    "Formal",
    "Fuse",
    "GraphicsInterop",
    "HostEvent",
    "Incompatibility",
    "Kernel",
    "KernelContext",
    "KernelInfo",
    "KernelSpec",
    "MemoryDevice",
    "MemoryInfo",
    "PrepackAllocator",
    "Profiler",
    "ProfilingEvent",
    "ResourceImporter",
    "RunOptions",
    "ShapeInferContext",
    "SharedWeights",
    "SyncNotification",
    "SyncStream",
    "kernel",
    "library_path",
    "live_objects",
    "partition",
    "prepare",
    "register_with",
    "unregister_from",
    "unreported_errors",
]


def unreported_errors() -> int:
    """How many failures could not be told to a host, because the slot returns nothing, or an address
    (`close` of a provider or a kernel, `Allocator.alloc`). Each was printed to stderr."""
    return int(lib.bridge_unreported_errors())
