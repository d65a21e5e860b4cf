"""Element types: `ONNXTensorElementDataType` numbers and NumPy dtypes, packed 4-bit and 2-bit types, strings.

NumPy has no bfloat16, float8, int4 and so on: those are the dtypes of the `ml_dtypes` package, which is
optional.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "STRING",
    "bytes_for",
    "from_onnx",
    "from_proto",
    "is_packed",
    "name_of",
    "pack",
    "to_onnx",
    "to_proto",
    "unpack",
]

STRING = 8
"""`ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING`: NumPy object arrays of `str`."""

_NUMPY = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    STRING: "object",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
}
_ML_DTYPES = {
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "uint2",
    25: "int2",
    26: "float8_e8m0fnu",
}
_PROTO = {24: 25, 25: 26, 26: 24}
"""`TensorProto.DataType` of the types that ONNX numbers otherwise than the ABI."""
_BITS = {21: 4, 22: 4, 23: 4, 24: 2, 25: 2}
_BY_NAME = {name: number for number, name in (_NUMPY | _ML_DTYPES).items()}


def name_of(element_type: int) -> str:
    """The dtype's name, for messages; "string" for strings."""
    if element_type == STRING:
        return "string"
    return (_NUMPY | _ML_DTYPES).get(element_type, f"element type {element_type}")


def to_proto(element_type: int) -> int:
    """The `TensorProto.DataType`, which ONNX files and attributes have, of an `ONNXTensorElementDataType`."""
    return _PROTO.get(element_type, element_type)


def from_proto(number: int) -> int:
    """The `ONNXTensorElementDataType` of a `TensorProto.DataType`: that of an attribute such as Cast's `to`.

    Raises TypeError for a number that no type of the ABI has.
    """
    found = next((mine for mine, theirs in _PROTO.items() if theirs == number), number)
    if found not in _NUMPY | _ML_DTYPES:
        raise TypeError(f"no element type of the ABI has the TensorProto.DataType {number}")
    return found


@functools.cache
def from_onnx(element_type: int) -> np.dtype[Any]:
    """The NumPy dtype of an `ONNXTensorElementDataType`.

    Raises TypeError if NumPy and the installed `ml_dtypes` do not have it, ImportError without `ml_dtypes`.
    """
    if element_type in _NUMPY:
        return np.dtype(_NUMPY[element_type])
    name = _ML_DTYPES.get(element_type)
    if name is None:
        raise TypeError(f"there is no NumPy dtype for element type {element_type}")
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"tensors of {name} need the package ml_dtypes (pip install ml_dtypes)") from error
    try:
        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
    except AttributeError as error:
        raise TypeError(f"ml_dtypes {ml_dtypes.__version__} has no {name}: install a newer one") from error


def to_onnx(dtype: Any) -> int:
    """The `ONNXTensorElementDataType` of a dtype, a scalar class, a dtype's name or such a number itself.

    `str` and "string" are strings. Raises TypeError for anything that no tensor can hold.
    """
    if isinstance(dtype, int) and not isinstance(dtype, bool) and dtype in (_NUMPY | _ML_DTYPES):
        return int(dtype)
    if dtype is str or dtype == "string":
        return STRING
    if isinstance(dtype, str) and dtype in _BY_NAME:
        return _BY_NAME[dtype]
    try:
        resolved = np.dtype(dtype)
    except TypeError:
        resolved = None
    if resolved is not None:
        number = STRING if resolved.kind in "OUT" else _BY_NAME.get(resolved.name)
        if number is not None:
            return number
    raise TypeError(f"no tensor can hold elements of {dtype!r}")


def is_packed(element_type: int) -> bool:
    """True for types with several elements a byte."""
    return element_type in _BITS


def bytes_for(element_type: int, count: int) -> int:
    """Size of `count` elements in a host's tensor. 0 for strings, which have no flat form."""
    if element_type == STRING:
        return 0
    bits = _BITS.get(element_type)
    return count * from_onnx(element_type).itemsize if bits is None else (count * bits + 7) // 8


def unpack(packed: NDArray[np.uint8], element_type: int, count: int) -> NDArray[Any]:
    """One element a byte, as `ml_dtypes` wants it, from a host's packed bytes (first element lowest).
    copies."""
    bits, dtype = _BITS[element_type], from_onnx(element_type)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    raw: NDArray[Any] = ((packed[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count].astype(np.uint8)
    if dtype.name.startswith("int"):  # sign-extend
        sign = 1 << (bits - 1)
        raw = (raw ^ sign).astype(np.int8) - np.int8(sign)
        return raw.astype(dtype)
    return raw.astype(dtype) if dtype.name.startswith("uint") else raw.view(dtype)


def pack(array: NDArray[Any], element_type: int) -> NDArray[np.uint8]:
    """A host's packed bytes from an `ml_dtypes` array of any shape. copies."""
    bits = _BITS[element_type]
    flat = np.ascontiguousarray(array).reshape(-1)
    raw = flat.view(np.uint8) if flat.dtype.name.startswith("float") else flat.astype(np.int8).view(np.uint8)
    per_byte = 8 // bits
    padded = np.zeros(-(-raw.size // per_byte) * per_byte, np.uint8)
    padded[: raw.size] = raw & ((1 << bits) - 1)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1)
    return packed.astype(np.uint8)
