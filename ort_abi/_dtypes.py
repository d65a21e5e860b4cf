"""Element types of tensors: the ABI's numbers, ONNX's names, NumPy's dtypes.

Types that NumPy lacks (bfloat16, the float8 and 4-bit and 2-bit ones) are those of the `ml_dtypes` package and need
it. Source: `ONNXTensorElementDataType` (API 1; 4-bit types since API 20, 2-bit and float8e8m0 later).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

__all__ = ["STRING", "ElementType", "element_type", "from_dtype", "from_name", "from_onnx", "pack", "unpack"]


class ElementType(NamedTuple):
    """One element type: `number` in the ABI and `onnx` in `TensorProto.DataType`, ONNX's `name`, `bits` (0: no fixed
    size), and the `dtype_name` in NumPy or `ml_dtypes`."""

    number: int
    name: str
    bits: int
    dtype_name: str
    onnx: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype (object for strings). Raises TypeError if it needs `ml_dtypes`, which is not installed."""
        return _dtype(self.dtype_name, self.name)

    def byte_size(self, count: int) -> int:
        """Bytes that `count` elements take in a tensor: elements below a byte are packed."""
        return (count * self.bits + 7) // 8


STRING = 8

_TYPES = [
    ElementType(1, "float", 32, "float32", 1),
    ElementType(2, "uint8", 8, "uint8", 2),
    ElementType(3, "int8", 8, "int8", 3),
    ElementType(4, "uint16", 16, "uint16", 4),
    ElementType(5, "int16", 16, "int16", 5),
    ElementType(6, "int32", 32, "int32", 6),
    ElementType(7, "int64", 64, "int64", 7),
    ElementType(STRING, "string", 0, "object", 8),
    ElementType(9, "bool", 8, "bool", 9),
    ElementType(10, "float16", 16, "float16", 10),
    ElementType(11, "double", 64, "float64", 11),
    ElementType(12, "uint32", 32, "uint32", 12),
    ElementType(13, "uint64", 64, "uint64", 13),
    ElementType(14, "complex64", 64, "complex64", 14),
    ElementType(15, "complex128", 128, "complex128", 15),
    ElementType(16, "bfloat16", 16, "bfloat16", 16),
    ElementType(17, "float8e4m3fn", 8, "float8_e4m3fn", 17),
    ElementType(18, "float8e4m3fnuz", 8, "float8_e4m3fnuz", 18),
    ElementType(19, "float8e5m2", 8, "float8_e5m2", 19),
    ElementType(20, "float8e5m2fnuz", 8, "float8_e5m2fnuz", 20),
    ElementType(21, "uint4", 4, "uint4", 21),
    ElementType(22, "int4", 4, "int4", 22),
    ElementType(23, "float4e2m1", 4, "float4_e2m1fn", 23),
    ElementType(24, "uint2", 2, "uint2", 25),
    ElementType(25, "int2", 2, "int2", 26),
    ElementType(26, "float8e8m0", 8, "float8_e8m0fnu", 24),
]
_BY_NUMBER = {each.number: each for each in _TYPES}
_BY_ONNX = {each.onnx: each for each in _TYPES}
_BY_NAME = {each.name: each for each in _TYPES}
_BY_DTYPE_NAME = {each.dtype_name: each for each in _TYPES}


def element_type(number: int) -> ElementType:
    """By the ABI's number. Raises TypeError for a number that is not known."""
    try:
        return _BY_NUMBER[number]
    except KeyError:
        raise TypeError(f"element type {number} is not known") from None


def from_onnx(number: int) -> ElementType:
    """By the number in `TensorProto.DataType`. Raises TypeError for a number that is not known."""
    try:
        return _BY_ONNX[number]
    except KeyError:
        raise TypeError(f"ONNX element type {number} is not known") from None


def from_name(name: str) -> ElementType:
    """By ONNX's name ("float", "int64", ...). Raises TypeError for a name that is not known."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise TypeError(f"element type {name!r} is not known") from None


@lru_cache(maxsize=256)
def from_dtype(dtype: np.dtype[Any]) -> ElementType:
    """By NumPy dtype; text dtypes of any length and object are strings. Raises TypeError for one that ONNX lacks."""
    if dtype.kind in "USOT":
        return _BY_NUMBER[STRING]
    found = _BY_DTYPE_NAME.get(dtype.name)
    if found is None:
        raise TypeError(f"ONNX has no element type for the NumPy dtype {dtype!r}")
    return found


@lru_cache(maxsize=64)
def _dtype(dtype_name: str, name: str) -> np.dtype[Any]:
    try:
        return np.dtype(dtype_name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"tensors of {name} need the package ml_dtypes, which is not installed") from None
    try:
        return np.dtype(getattr(ml_dtypes, dtype_name))
    except AttributeError:
        raise TypeError(f"tensors of {name} need a newer ml_dtypes: it has no {dtype_name}") from None


def pack(array: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A flat byte array of elements below a byte, first element lowest, from one element a byte. copies."""
    per_byte = 8 // bits
    flat = np.ascontiguousarray(array).view(np.uint8).reshape(-1) & np.uint8((1 << bits) - 1)
    padded = np.zeros(-(-flat.size // per_byte) * per_byte, np.uint8)
    padded[: flat.size] = flat
    lanes = padded.reshape(-1, per_byte)
    packed = np.zeros(lanes.shape[0], np.uint8)
    for lane in range(per_byte):
        packed |= lanes[:, lane] << np.uint8(lane * bits)
    return packed


def unpack(
    packed: np.ndarray[Any, np.dtype[np.uint8]], shape: tuple[int, ...], kind: ElementType
) -> np.ndarray[Any, Any]:
    """The reverse of `pack`: an array of `kind`'s dtype and `shape`. copies."""
    per_byte = 8 // kind.bits
    lanes = np.empty((packed.size, per_byte), np.uint8)
    for lane in range(per_byte):
        lanes[:, lane] = (packed >> np.uint8(lane * kind.bits)) & np.uint8((1 << kind.bits) - 1)
    flat = lanes.reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    if kind.name.startswith("int"):  # the stored byte of a negative number has its sign bits set
        shift = np.uint8(8 - kind.bits)
        flat = ((flat << shift).view(np.int8) >> shift.astype(np.int8)).view(np.uint8)
    return np.ascontiguousarray(flat).view(kind.dtype).reshape(shape)
