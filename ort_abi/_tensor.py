"""Tensors of any host as NumPy arrays, over the `OrtApi` (API 24 or later) of that host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ort_abi import dtypes
from ort_abi._lib import CData, check, ffi

__all__ = [
    "address_of",
    "array_at",
    "copy_tensor",
    "encode_element",
    "fill_strings",
    "read_strings",
    "type_and_shape",
    "view_tensor",
]

Array = NDArray[Any]

_buffer, _cast, _Elements = ffi.buffer, ffi.cast, ffi.typeof("char*")
_ndarray = np.ndarray
_flat: dict[int, np.dtype[Any]] = {}
"""Dtypes by element type, of types whose elements an array has in the same form."""


def array_at(address: int, element_type: int, shape: tuple[int, ...]) -> Array:
    """An array over memory of the host. *borrows*: valid as long as the host says. Packed types are
    copied."""
    count = math.prod(shape)
    dtype = _flat.get(element_type)
    if dtype is None:
        if dtypes.is_packed(element_type):
            packed = array_at(address, dtypes.to_onnx(np.uint8), (dtypes.bytes_for(element_type, count),))
            return dtypes.unpack(packed, element_type, count).reshape(shape)
        if element_type == dtypes.STRING:
            raise TypeError("there is no array over a host's strings")
        dtype = _flat[element_type] = dtypes.from_onnx(element_type)
    size = count * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    array: Array = _ndarray(shape, dtype, _buffer(_cast(_Elements, address), size))
    return array


def type_and_shape(api: CData, value: CData) -> tuple[int, tuple[int, ...]]:
    """Element type and shape of a tensor (`GetTensorElementTypeAndShapeDataReference`, API 24)."""
    kind, dims, rank = ffi.new("ONNXTensorElementDataType*"), ffi.new("const int64_t**"), ffi.new("size_t*")
    check(api.GetTensorElementTypeAndShapeDataReference(value, kind, dims, rank), api)
    return kind[0], tuple(ffi.unpack(dims[0], rank[0])) if rank[0] else ()


def address_of(api: CData, value: CData) -> int:
    """Where a tensor's elements are (`GetTensorData`, API 23). *borrows* them."""
    data = ffi.new("const void**")
    check(api.GetTensorData(value, data), api)
    return int(ffi.cast("uintptr_t", data[0]))


def view_tensor(api: CData, value: CData) -> Array:
    """An `OrtValue` that is a tensor in CPU memory. *borrows* its memory; strings and packed types are
    copied."""
    element_type, shape = type_and_shape(api, value)
    if element_type == dtypes.STRING:
        return read_strings(api, value, shape)
    return array_at(address_of(api, value), element_type, shape)


def copy_tensor(api: CData, value: CData) -> Array:
    """The same as an array of its own. *copies*."""
    view = view_tensor(api, value)
    return view if view.base is None or view.dtype == object else view.copy()


def read_strings(api: CData, value: CData, shape: tuple[int, ...]) -> Array:
    """A string tensor as an object array of `str`. *copies*."""
    count = math.prod(shape)
    result = np.empty(count, object)
    if count:
        size = ffi.new("size_t*")
        check(api.GetStringTensorDataLength(value, size), api)
        text, offsets = ffi.new("char[]", size[0] + 1), ffi.new("size_t[]", count)
        check(api.GetStringTensorContent(value, text, size[0], offsets, count), api)
        raw = bytes(ffi.buffer(text, size[0]))
        ends = [*ffi.unpack(offsets, count)[1:], size[0]]
        result[:] = [
            raw[start:end].decode("utf-8", "surrogateescape")
            for start, end in zip(offsets, ends, strict=True)
        ]
    return result.reshape(shape)


def fill_strings(api: CData, value: CData, strings: Sequence[Any]) -> None:
    """Writes `str` or `bytes` elements, in order, into a string tensor. *copies*.

    Raises TypeError for other elements. One with a NUL character inside, which `FillStringTensor` (API 1)
    would cut, is written by itself (`GetResizedStringTensorElementBuffer`, API 15).
    """
    encoded = [encode_element(item) for item in strings]
    alive = [ffi.new("char[]", item) for item in encoded]
    check(api.FillStringTensor(value, ffi.new("const char*[]", alive), len(alive)), api)
    buffer = ffi.new("char**")
    for index, item in enumerate(encoded):
        if b"\0" in item:
            check(api.GetResizedStringTensorElementBuffer(value, index, len(item), buffer), api)
            ffi.memmove(buffer[0], item, len(item))


def encode_element(item: Any) -> bytes:
    """An element of a string tensor as hosts have it. Raises TypeError for what is no `str` or `bytes`."""
    if not isinstance(item, (str, bytes)):
        raise TypeError(f"a string tensor holds str or bytes, not {type(item).__name__}")
    return item.encode("utf-8", "surrogateescape") if isinstance(item, str) else bytes(item)
