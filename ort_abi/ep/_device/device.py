"""Devices of execution providers written in Python: memory, allocators, copies, streams, notifications.

A provider with memory of its own says so with `ExecutionProvider.memory_infos`, and makes an `Allocator`, a
`DataTransfer` and, if it works asynchronously, `SyncStream`s. Addresses mean something to the provider only:
the host hands them around and never touches what is behind them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ort_abi import dtypes
from ort_abi._lib import CData, check, ffi, text
from ort_abi._tensor import address_of, array_at, type_and_shape
from ort_abi.ep._call.calls import plain_call
from ort_abi.ep._lend import dlpack
from ort_abi.ep._lend.loans import CAN_LEND, HandedOut, Lent, array_loan, kept, kept_after_all, refusal

__all__ = [
    "Allocator",
    "DataTransfer",
    "DeviceTensor",
    "MemoryDevice",
    "MemoryInfo",
    "SyncNotification",
    "SyncStream",
    "device_tensor",
    "lent_tensors",
    "memory_device",
    "memory_name",
    "tensor_of",
]

DEVICE_TYPES = ("CPU", "GPU", "FPGA", "NPU")
_NVIDIA = 0x10DE
_HOST_ACCESSIBLE = 5
_KINDS = {"default": (0, 0), "host_accessible": (_HOST_ACCESSIBLE, 0), "read_only": (0, 2)}
"""Memory type and allocator type (`OrtDeviceMemoryType`, `OrtAllocatorType`) of each kind."""


@dataclass(frozen=True)
class MemoryDevice:
    """Where memory is (`MemoryDevice_*`, API 23)."""

    type: str
    """"CPU", "GPU", "FPGA" or "NPU"."""
    vendor_id: int = 0
    device_id: int = 0
    host_accessible: bool = False
    """Memory of the device that the CPU can read and write."""

    @property
    def is_host(self) -> bool:
        """True if the CPU can read and write this memory."""
        return self.type == "CPU" or self.host_accessible


@dataclass(frozen=True)
class MemoryInfo:
    """A memory that a provider allocates from, on a GPU or NPU, say (`CreateMemoryInfo_V2`, API 23).

    `kind` is "default", "host_accessible", or "read_only": memory for initializers, which a session asks for
    once it has some. Raises ValueError for unknown words.
    """

    name: str
    device_type: str = "GPU"
    vendor_id: int = 0
    device_id: int = 0
    kind: str = "default"
    alignment: int = 0

    def __post_init__(self) -> None:
        if self.device_type not in DEVICE_TYPES or self.kind not in _KINDS:
            raise ValueError(
                f"memory {self.name!r}: the device type is one of {', '.join(DEVICE_TYPES)} and the kind one "
                f"of {', '.join(_KINDS)}, not {self.device_type!r} and {self.kind!r}"
            )

    @property
    def device(self) -> MemoryDevice:
        """Where it is."""
        return MemoryDevice(self.device_type, self.vendor_id, self.device_id, self.kind == "host_accessible")

    def _create(self, api: CData) -> CData:
        """*gives* an `OrtMemoryInfo*` (caller releases with `ReleaseMemoryInfo`)."""
        out = ffi.new("OrtMemoryInfo**")
        memory_type, allocator_type = _KINDS[self.kind]
        head = (self.name.encode(), DEVICE_TYPES.index(self.device_type), self.vendor_id, self.device_id)
        check(api.CreateMemoryInfo_V2(*head, memory_type, self.alignment, allocator_type, out), api)
        return out[0]


def memory_name(api: CData, pointer: CData) -> str:
    """The name of an `OrtMemoryInfo*`."""
    name = ffi.new("const char**")
    check(api.MemoryInfoGetName(pointer, name), api)
    return text(name[0])


class Allocator:
    """Gives out memory of a device. Derive and define `alloc` and `free`; any thread may call them.

    `alloc_on_stream`, `stats` and `shrink` are optional: a host sees only those that are defined. What
    `alloc`, `reserve`, `free` raise cannot be told to a host: it is printed and counted
    (`ep.unreported_errors`), and a failed allocation is one without memory.
    """

    def alloc(self, size: int) -> int:
        """The address of `size` bytes, unique and not 0; 0 if there is no memory (`OrtAllocator::Alloc`)."""
        raise NotImplementedError(f"{type(self).__qualname__} does not define alloc(size)")

    def free(self, address: int) -> None:
        """Takes memory back (`OrtAllocator::Free`). Not called for 0."""
        raise NotImplementedError(f"{type(self).__qualname__} does not define free(address)")

    def reserve(self, size: int) -> int:
        """Memory that stays for long, such as weights (`OrtAllocator::Reserve`, API 18). As `alloc`."""
        return self.alloc(size)

    def alloc_on_stream(self, size: int, stream: SyncStream | None) -> int:
        """As `alloc`, for work on a stream: memory whose last user was that stream can be had at once
        (`OrtAllocator::AllocOnStream`, API 23). None: a stream that is not this provider's."""
        return self.alloc(size)

    def stats(self) -> Mapping[str, Any]:
        """What there is to say about the allocator (`OrtAllocator::GetStats`, API 23)."""
        return {}

    def shrink(self) -> None:
        """Gives unused memory back to the device (`OrtAllocator::Shrink`, API 25)."""

    def close(self) -> None:
        """Called when the host releases the allocator."""


class DataTransfer:
    """Copies tensors from and to a device. Derive and define `can_copy` and `copy`; any thread may call them.

    One object a registration, and others for sessions of hosts that want that
    (`OrtEpFactory::CreateDataTransfer`, API 23).
    """

    def can_copy(self, source: MemoryDevice, target: MemoryDevice) -> bool:
        """True if `copy` can go this way (`OrtDataTransferImpl::CanCopy`). What it raises is printed and
        counted, and means no."""
        raise NotImplementedError(f"{type(self).__qualname__} does not define can_copy(source, target)")

    def copy(self, source: DeviceTensor, target: DeviceTensor, stream: SyncStream | None) -> None:
        """Copies `source.nbytes` bytes. The tensors are valid during the call: keep addresses, not tensors.

        Without a stream the copy is done when the call returns. With one it may go on, in order with the
        stream's other work; what is read from the host must then be taken before the call returns.
        """
        raise NotImplementedError(f"{type(self).__qualname__} does not define copy(source, target, stream)")

    def copy_tensors(
        self,
        sources: Sequence[DeviceTensor],
        targets: Sequence[DeviceTensor],
        streams: Sequence[SyncStream | None],
    ) -> None:
        """A batch of copies (`OrtDataTransferImpl::CopyTensors`): by default one after the other. Never of
        tensors without bytes."""
        for source, target, stream in zip(sources, targets, streams, strict=True):
            plain_call(self.copy, source, target, stream)

    def close(self) -> None:
        """Called when the host releases the data transfer."""


class SyncStream:
    """A queue of work on a device (`OrtSyncStreamImpl`, API 23). Derive and define `flush` and
    `create_notification`.

    Made by `ExecutionProvider.create_sync_stream` and `create_session_stream`; kernels find the one to use as
    `ctx.stream`.
    """

    _factory: Any = None  # that of the provider

    def handle(self) -> int:
        """What others know the stream by, a `cudaStream_t`, say (`OrtSyncStreamImpl::GetHandle`). A
        Loop's copies find their stream among the provider's by it."""
        return 0

    def create_notification(self) -> SyncNotification:
        """A notification of this stream (`OrtSyncStreamImpl::CreateNotification`)."""
        raise NotImplementedError(f"{type(self).__qualname__} does not define create_notification()")

    def flush(self) -> None:
        """Waits until the work given so far is done (`OrtSyncStreamImpl::Flush`)."""
        raise NotImplementedError(f"{type(self).__qualname__} does not define flush()")

    def on_session_run_end(self) -> None:
        """A run that used the stream is over: temporary things can go
        (`OrtSyncStreamImpl::OnSessionRunEnd`)."""

    def close(self) -> None:
        """Called when the host releases the stream."""


class SyncNotification:
    """A mark in a stream that others wait for (`OrtSyncNotificationImpl`, API 23). Derive and define
    `activate` and `wait_on_host`."""

    def activate(self) -> None:
        """Sets the mark behind the stream's work so far (`OrtSyncNotificationImpl::Activate`)."""
        raise NotImplementedError(f"{type(self).__qualname__} does not define activate()")

    def wait_on_device(self, consumer: SyncStream) -> None:
        """Makes a stream of this provider wait for the mark (`OrtSyncNotificationImpl::WaitOnDevice`).

        By default, and for streams of other providers, the host waits.
        """
        self.wait_on_host()

    def wait_on_host(self) -> None:
        """Waits for the mark (`OrtSyncNotificationImpl::WaitOnHost`)."""
        raise NotImplementedError(f"{type(self).__qualname__} does not define wait_on_host()")

    def close(self) -> None:
        """Called when the host releases the notification."""


class DeviceTensor:
    """A tensor in some memory: address, shape and dtype. Valid during the call that it was given to.

    It speaks DLPack, so that `torch.from_dlpack(tensor)` is a view of it, and on CUDA devices has
    `__cuda_array_interface__`, for `cupy.asarray(tensor)`. Views do not know when the call ends: drop them.
    """

    __slots__ = ("_device", "_element_type", "_lent", "_pointer", "_shape", "_writeable")

    def __init__(
        self, address: int, element_type: int, shape: tuple[int, ...], device: MemoryDevice, writeable: bool
    ) -> None:
        self._pointer: int | None = address
        self._element_type = element_type
        self._shape = shape
        self._device = device
        self._writeable = writeable
        self._lent: list[Lent] = []

    @property
    def ptr(self) -> int:
        """The address, as the allocator gave it. Raises RuntimeError after the call."""
        if self._pointer is None:
            raise RuntimeError("a DeviceTensor is valid only during the call that it was given to")
        return self._pointer

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return dtypes.from_onnx(self._element_type)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return dtypes.bytes_for(self._element_type, self.size)

    @property
    def device(self) -> MemoryDevice:
        """Where the memory is."""
        return self._device

    def numpy(self) -> NDArray[Any]:
        """An array over memory that the CPU can use. Good as long as the tensor, and for work on the call's
        stream: keep copies. Raises TypeError for other memory, RuntimeError after the call."""
        return self._array(self._element_type, self._shape)

    def bytes(self) -> NDArray[np.uint8]:
        """The same as bytes (uint8, one dimension), whatever the dtype."""
        return self._array(dtypes.to_onnx(np.uint8), (self.nbytes,))

    def _array(self, element_type: int, shape: tuple[int, ...]) -> NDArray[Any]:
        if not self._device.is_host:
            raise TypeError(f"memory on {self._device} cannot be an array of NumPy")
        address, size, name = self.ptr, self.nbytes, repr(self)
        if dtypes.is_packed(element_type):
            return array_at(address, element_type, shape)
        dtype = dtypes.from_onnx(element_type)
        loan = array_loan(dtype, shape, size, address if size else 0, writeable=self._writeable, name=name)
        if CAN_LEND:
            loan.begin()
            self._lent.append(loan)
        array: NDArray[Any] = loan.item
        return array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._device.type != "GPU" or self._device.vendor_id != _NVIDIA:
            raise AttributeError(f"memory on {self._device} is not CUDA's")
        return {
            "shape": self._shape,
            "typestr": self.dtype.str,
            "data": (self.ptr if self.size else 0, not self._writeable),
            "version": 3,
            "strides": None,
        }

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule over the memory; from `max_version` 1.0 on it tells that inputs are read-only.

        Nothing is waited for: the elements are there for work on the kernel's `ctx.stream`, whatever `stream`
        says. Raises RuntimeError after the call, BufferError for a copy, another device, or a dtype that
        DLPack lacks (strings, types below a byte).
        """
        device = self.__dlpack_device__()
        if copy or (dl_device is not None and tuple(dl_device) != device):
            raise BufferError(f"memory on {self._device} is handed out as it is, without a copy")
        how = {"stream": stream, "max_version": max_version, "read_only": not self._writeable}
        pointer, owner = self.ptr, None
        if self._device.is_host:  # on a device work may go on in order with the stream's
            handed = HandedOut(repr(self))
            owner = handed.token()
            self._lent.append(handed)
        return dlpack.capsule(pointer, self._element_type, self._shape, device, **how, owner=owner)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's device type and number: CPU 1, CUDA 2 (pinned 3), ROCm 10 (pinned 11), others 12."""
        device = self._device
        return dlpack.device_of(device.type, device.vendor_id, device.device_id, device.host_accessible)

    def _close(self) -> list[Lent]:
        """Ends it: what authors have of its memory."""
        self._pointer = None
        lent, self._lent = self._lent, []
        return lent

    def __repr__(self) -> str:
        where = "closed" if self._pointer is None else f"{self._pointer:#x}"
        return f"DeviceTensor({where}, {self.dtype}, {self._shape}, {self._device})"


@contextlib.contextmanager
def lent_tensors(*groups: list[DeviceTensor], streams: Sequence[SyncStream | None] = ()) -> Iterator[None]:
    """Ends the tensors that are in the lists then. Raises RuntimeError if something of their memory is kept,
    unless there is a stream: its work may go on."""
    try:
        yield
    finally:
        lent = [loan for group in groups for tensor in group for loan in tensor._close()]
    if all(stream is None for stream in streams) and kept(lent) and (found := kept_after_all(lent)):
        raise refusal(found)


def memory_device(ep_api: CData, pointer: CData) -> MemoryDevice:
    """What an `OrtMemoryDevice*` says."""
    return MemoryDevice(
        DEVICE_TYPES[ep_api.MemoryDevice_GetDeviceType(pointer)],
        ep_api.MemoryDevice_GetVendorId(pointer),
        ep_api.MemoryDevice_GetDeviceId(pointer),
        ep_api.MemoryDevice_GetMemoryType(pointer) == _HOST_ACCESSIBLE,
    )


def tensor_of(host: CData, value: CData, writeable: bool) -> DeviceTensor:
    """An `OrtValue*` that is a tensor. *borrows* it."""
    element_type, shape = type_and_shape(host.api, value)
    address = address_of(host.api, value)
    return device_tensor(host.ep_api, value, address, element_type, shape, writeable)


def device_tensor(
    ep_api: CData, value: CData, address: int, element_type: int, shape: tuple[int, ...], writeable: bool
) -> DeviceTensor:
    """The same with what is known of it. Raises MemoryError for elements at 0: stock hosts go on after
    an allocation that failed."""
    device = memory_device(ep_api, ep_api.Value_GetMemoryDevice(value))
    tensor = DeviceTensor(address, element_type, shape, device, writeable)
    if not address and tensor.nbytes:
        raise MemoryError(f"the host has a tensor of {tensor.nbytes} bytes on {device} without memory for it")
    return tensor
