"""Pre-packing by Python kernels: what `Kernel.prepack` gets, and the shared arrays of kernels.

What `prepack` gets, and what it packs into, are arrays of its own, to keep or to store. Arrays over the
host's memory are only those that `set_shared` gives: they are lent (`_lend`) for as long as the kernel lives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ort_abi import dtypes
from ort_abi._lib import CData, check, ffi
from ort_abi._tensor import copy_tensor
from ort_abi.ep._call.calls import plain_call
from ort_abi.ep._device.device import lent_tensors, memory_device, tensor_of
from ort_abi.ep._lend.loans import CAN_LEND, Loan, array_loan, kept, kept_after_all, refusal
from ort_abi.ep._node.kernel import Kernel

__all__ = ["PrepackAllocator", "SharedWeights", "packs", "prepack", "release_shared", "set_shared"]

Array = NDArray[Any]
_Layout = list[tuple[int, tuple[int, ...]]]  # element type and shape of each stored array

_stored: dict[tuple[int, int], _Layout] = {}
"""What the kernel of an id stored for an input, until the host brings it back."""
_shared: dict[int, list[Loan]] = {}
"""The arrays that the kernel of an id was given by `set_shared`."""


class PrepackAllocator:
    """The host's memory for packed weights, which `shared.store` copies arrays to. Valid during `prepack`."""

    def __init__(self, host: CData, allocator: CData) -> None:
        self._allocator: CData | None = allocator
        self._ep_api = host.ep_api

    def empty(self, shape: int | Sequence[int], dtype: Any = np.float32) -> Array:
        """A writable array to pack into, of any dtype but strings and those smaller than a byte: the kernel's
        own.

        Write every element before you store it: hosts compare packed weights by their bytes. Raises TypeError
        for other dtypes, and where the host's memory is a device's.
        """
        self._check_memory()
        _storable(dtypes.to_onnx(np.dtype(dtype)))
        return np.empty(shape, dtype)

    def _check_memory(self) -> CData:
        """The allocator, whose memory is NumPy's too."""
        if self._allocator is None:
            raise RuntimeError("an allocator is valid only during prepack()")
        info = self._allocator.Info(self._allocator)
        device = memory_device(self._ep_api, self._ep_api.MemoryInfo_GetMemoryDevice(info))
        if not device.is_host:
            raise TypeError(f"memory on {device} cannot be an array of NumPy: use memory of your own")
        return self._allocator

    def _copy(self, array: Array) -> CData:
        """The elements in memory of the host, to be released with `_free`."""
        allocator = self._check_memory()
        memory = allocator.Alloc(allocator, max(array.nbytes, 1))
        if memory == ffi.NULL:
            raise MemoryError(f"the host has no memory for {array.nbytes} bytes of packed weights")
        if array.nbytes:
            ffi.memmove(memory, array.reshape(-1).view(np.uint8), array.nbytes)
        return memory

    def _free(self, memory: CData) -> None:
        assert self._allocator is not None
        self._allocator.Free(self._allocator, memory)

    def _close(self) -> None:
        self._allocator = None


def _storable(element_type: int) -> int:
    if element_type == dtypes.STRING or dtypes.is_packed(element_type):
        raise TypeError(f"{dtypes.name_of(element_type)} cannot be packed into shared memory")
    return element_type


def _plain(array: Any) -> Array:
    """The array as hosts have them: row after row, in the machine's byte order."""
    if np.ma.is_masked(array):
        raise TypeError("a masked array cannot be packed into shared memory: fill it (`.filled(…)`)")
    array = np.asarray(array)
    _storable(dtypes.to_onnx(array.dtype))
    return np.asarray(array, array.dtype.newbyteorder("="), order="C")


class SharedWeights:
    """Where `prepack` leaves arrays that kernels may share. Valid during the call."""

    def __init__(self, host: CData, cache: CData, allocator: PrepackAllocator) -> None:
        self._host = host
        self._cache: CData | None = cache
        self._allocator = allocator
        self._layout: _Layout = []

    def store(self, *arrays: Array) -> None:
        """Gives the packed arrays to the host. *copies*: what kernels share is what `set_shared` gets.

        `prepack` must return True then. Once a call (`SharedPrePackedWeightCache_StoreWeightData`, API 24).
        """
        if self._cache is None:
            raise RuntimeError("shared weights can be stored only during prepack()")
        if self._layout:
            raise RuntimeError("store() was called already")
        if not arrays:
            raise ValueError("store() needs an array")
        plain = [*map(_plain, arrays)]
        memory: list[CData] = []
        try:
            memory.extend(self._allocator._copy(array) for array in plain)
            pointers, sizes = ffi.new("void*[]", memory), [array.nbytes for array in plain]
            store = self._host.ep_api.SharedPrePackedWeightCache_StoreWeightData
            check(store(self._cache, pointers, ffi.new("size_t[]", sizes), len(plain)), self._host.api)
        except BaseException:  # nothing was taken
            for block in memory:
                self._allocator._free(block)
            raise
        self._layout = [(dtypes.to_onnx(array.dtype), array.shape) for array in plain]

    def _close(self) -> None:
        self._cache = None


def packs(kernel: Any) -> bool:
    """True if the kernel's class defines `prepack`."""
    return isinstance(kernel, Kernel) and type(kernel).prepack is not Kernel.prepack


def prepack(
    host: CData, number: int, kernel: Kernel, value: CData, index: int, allocator: CData, cache: CData
) -> bool:
    """Calls `kernel.prepack` for one constant input; `number` is the kernel's id."""
    memory = PrepackAllocator(host, allocator)
    shared = SharedWeights(host, cache, memory) if cache != ffi.NULL else None
    ep_api, tensors = host.ep_api, []
    weight: Any
    if memory_device(ep_api, ep_api.Value_GetMemoryDevice(value)).is_host:
        weight = copy_tensor(host.api, value)
    else:
        weight = tensor_of(host, value, writeable=False)
        tensors.append(weight)
    try:
        with lent_tensors(tensors):
            packed = bool(plain_call(kernel.prepack, index, weight, memory, shared))
    finally:
        if shared is not None:
            shared._close()
        memory._close()
    if shared is not None and shared._layout:
        _stored[number, index] = shared._layout
    return packed


def set_shared(number: int, kernel: Kernel, index: int, addresses: Sequence[int]) -> None:
    """Gives a kernel the arrays that it stored, or equal ones."""
    layout = _stored.pop((number, index), [])
    if not layout or len(layout) != len(addresses):
        raise RuntimeError(f"the host brings {len(addresses)} buffers for input {index}, not {len(layout)}")
    loans: list[Loan] = []
    for (element_type, shape), address in zip(layout, addresses, strict=True):
        size, name = dtypes.bytes_for(element_type, math.prod(shape)), f"shared weight {len(loans)}"
        dtype, lent = dtypes.from_onnx(element_type), address if size else 0
        loans.append(array_loan(dtype, shape, size, lent, writeable=False, name=f"{name} of input {index}"))
    for loan in loans:
        loan.begin()
    _shared.setdefault(number, []).extend(loans)
    plain_call(kernel.set_shared, index, tuple(loan.item for loan in loans))


def release_shared(number: int) -> None:
    """The kernel of this id is released. Raises RuntimeError if somebody still has its shared arrays."""
    for key in [key for key in _stored if key[0] == number]:
        del _stored[key]
    loans = _shared.pop(number, [])
    if CAN_LEND and kept(loans) and (found := kept_after_all(loans)):
        raise refusal(found)
