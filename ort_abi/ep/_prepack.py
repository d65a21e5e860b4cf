"""Pre-packing by Python kernels: what `Kernel.prepack` gets, and the shared arrays of kernels.

Memory of the host is lent: arrays over it that somebody keeps get their own elements when the time is over,
as in `_compute`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ort_abi import dtypes
from ort_abi._lib import CData, check, ffi
from ort_abi._tensor import address_of, read_strings, type_and_shape
from ort_abi.ep._compute import _view, _Views
from ort_abi.ep._device import memory_device, plain_call, tensor_of
from ort_abi.ep._provider import Kernel

__all__ = ["PrepackAllocator", "SharedWeights", "packs", "prepack", "release_shared", "set_shared"]

Array = NDArray[Any]
_Layout = list[tuple[int, tuple[int, ...]]]  # element type and shape of each stored array

_stored: dict[tuple[int, int], _Layout] = {}
"""What the kernel of an id stored for an input, until the host brings it back."""
_shared: dict[int, list[_Views]] = {}
"""The arrays that the kernel of an id was given by `set_shared`."""


class _Block:
    """Memory of the host's allocator, and the array over it that the user has."""

    __slots__ = ("memory", "size", "views")

    def __init__(self, memory: CData, size: int, views: _Views) -> None:
        self.memory = memory
        self.size = size
        self.views = views


def _take_back(views: _Views) -> bool:
    """Gives arrays that were kept their own elements. False where a view of one was kept: it has none."""
    return not views.kept() or not views.revoke()


def _kept(what: str) -> RuntimeError:
    return RuntimeError(f"a view of {what} was kept; its memory belongs to the host: keep a copy instead")


class PrepackAllocator:
    """Memory for packed weights, so that `shared.store` has nothing to copy. Valid during `prepack`."""

    def __init__(self, host: CData, allocator: CData) -> None:
        self._allocator: CData | None = allocator
        self._ep_api = host.ep_api
        self._blocks: list[_Block] = []

    def empty(self, shape: int | Sequence[int], dtype: Any = np.float32) -> Array:
        """A writable array in the host's memory, of any dtype but strings and those smaller than a byte.

        One that is kept after `prepack` gets its own elements then. Write every element before you store it:
        hosts compare packed weights by their bytes. Raises TypeError for other dtypes, and where the host's
        memory is a device's.
        """
        dims = (int(shape),) if isinstance(shape, int) else tuple(map(int, shape))
        element_type = dtypes.to_onnx(np.dtype(dtype))
        if element_type == dtypes.STRING or dtypes.is_packed(element_type):
            raise TypeError(f"{dtypes.name_of(element_type)} cannot be packed into shared memory")
        block = self._new_block(dtypes.bytes_for(element_type, math.prod(dims)))
        array, root = _view(int(ffi.cast("uintptr_t", block.memory)), element_type, dims, writeable=True)
        block.views = _Views([array], [root])
        del array, root
        block.views.start()
        packed: Array = block.views.outer[0]
        return packed

    def _new_block(self, size: int) -> _Block:
        if self._allocator is None:
            raise RuntimeError("an allocator is valid only during prepack()")
        info = self._allocator.Info(self._allocator)
        device = memory_device(self._ep_api, self._ep_api.MemoryInfo_GetMemoryDevice(info))
        if not device.is_host:
            raise TypeError(f"memory on {device} cannot be an array of NumPy: use memory of your own")
        memory = self._allocator.Alloc(self._allocator, max(size, 1))
        if memory == ffi.NULL:
            raise MemoryError(f"the host has no memory for {size} bytes of packed weights")
        block = _Block(memory, size, _Views([], []))
        self._blocks.append(block)
        return block

    def _block_of(self, array: Array) -> _Block:
        """The block that `array` is, or a new one with its elements."""
        for block in self._blocks:
            if block.views.outer and block.views.outer[0] is array:
                return block
        elements = np.ascontiguousarray(array)
        block = self._new_block(elements.nbytes)
        if elements.nbytes:
            ffi.memmove(block.memory, elements.reshape(-1).view(np.uint8), elements.nbytes)
        return block

    def _close(self, stored: Sequence[_Block]) -> bool:
        """Ends the allocator; frees what was not stored. False if views of arrays were kept."""
        allocator, self._allocator = self._allocator, None
        assert allocator is not None
        done = [_take_back(block.views) for block in self._blocks]
        for block in self._blocks:
            if not any(block is other for other in stored):
                allocator.Free(allocator, block.memory)
        self._blocks = []
        return all(done)


class SharedWeights:
    """Where `prepack` leaves arrays that kernels may share. Valid during the call."""

    def __init__(self, host: CData, cache: CData, allocator: PrepackAllocator) -> None:
        self._host = host
        self._cache: CData | None = cache
        self._allocator = allocator
        self._blocks: list[_Block] = []
        self._layout: _Layout = []

    def store(self, *arrays: Array) -> None:
        """Gives the packed arrays to the host: those of `allocator.empty` as they are, others are copied.

        `prepack` must return True then. Once a call (`SharedPrePackedWeightCache_StoreWeightData`, API 24).
        """
        if self._cache is None:
            raise RuntimeError("shared weights can be stored only during prepack()")
        if self._blocks:
            raise RuntimeError("store() was called already")
        if not arrays:
            raise ValueError("store() needs an array")
        layout = [(dtypes.to_onnx(array.dtype), tuple(array.shape)) for array in arrays]
        for element_type, _ in layout:
            if element_type == dtypes.STRING or dtypes.is_packed(element_type):
                raise TypeError(f"{dtypes.name_of(element_type)} cannot be packed into shared memory")
        blocks = [self._allocator._block_of(array) for array in arrays]
        pointers = ffi.new("void*[]", [block.memory for block in blocks])
        sizes = ffi.new("size_t[]", [block.size for block in blocks])
        store = self._host.ep_api.SharedPrePackedWeightCache_StoreWeightData
        check(store(self._cache, pointers, sizes, len(blocks)), self._host.api)
        self._blocks, self._layout = blocks, layout

    def _close(self) -> None:
        self._cache = None


def packs(kernel: Any) -> bool:
    """True if the kernel's class defines `prepack`."""
    return isinstance(kernel, Kernel) and type(kernel).prepack is not Kernel.prepack


def _lent_tensor(host: CData, value: CData) -> _Views:
    api, ep_api = host.api, host.ep_api
    if not memory_device(ep_api, ep_api.Value_GetMemoryDevice(value)).is_host:
        return _Views([tensor_of(host, value, writeable=False)], [None], cacheable=False)
    element_type, shape = type_and_shape(api, value)
    if element_type == dtypes.STRING:
        return _Views([read_strings(api, value, shape)], [None])
    array, root = _view(address_of(api, value), element_type, shape, writeable=False)
    return _Views([array], [root])


def prepack(
    host: CData, number: int, kernel: Kernel, value: CData, index: int, allocator: CData, cache: CData
) -> bool:
    """Calls `kernel.prepack` for one constant input; `number` is the kernel's id."""
    memory = PrepackAllocator(host, allocator)
    shared = SharedWeights(host, cache, memory) if cache != ffi.NULL else None
    views = _lent_tensor(host, value)
    views.start()
    try:
        packed = bool(plain_call(kernel.prepack, index, views.outer[0], memory, shared))
    finally:  # after an error too; then its own text counts
        if shared is not None:
            shared._close()
        views.close()
        are_back = _take_back(views), memory._close(shared._blocks if shared is not None else [])
    if not all(are_back):
        raise _kept(f"the weight that is input {index}" if not are_back[0] else "an array of the allocator")
    if shared is not None and shared._layout:
        _stored[number, index] = shared._layout
    return packed


def set_shared(number: int, kernel: Kernel, index: int, addresses: Sequence[int]) -> None:
    """Gives a kernel the arrays that it stored, or equal ones."""
    layout = _stored.pop((number, index), [])
    if not layout or len(layout) != len(addresses):
        raise RuntimeError(f"the host brings {len(addresses)} buffers for input {index}, not {len(layout)}")
    arrays: list[Array | None] = []
    roots: list[Array | None] = []
    for (element_type, shape), address in zip(layout, addresses, strict=True):
        array, root = _view(address, element_type, shape, writeable=False)
        arrays.append(array)
        roots.append(root)
    views = _Views(arrays, roots)
    del arrays, roots, array, root
    views.start()
    _shared.setdefault(number, []).append(views)
    plain_call(kernel.set_shared, index, (*views.outer,))


def release_shared(number: int) -> None:
    """The kernel of this id is released: shared arrays that somebody still has get their own elements."""
    for key in [key for key in _stored if key[0] == number]:
        del _stored[key]
    are_back = [_take_back(views) for views in _shared.pop(number, [])]
    if not all(are_back):
        raise _kept("a shared weight")
