"""`OrtValue`: every element type, no copies, lifetimes, errors."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto

import ort_abi
from ort_abi import OrtValue

NUMPY_TYPES = {
    np.float32: "float",
    np.float64: "double",
    np.float16: "float16",
    np.int8: "int8",
    np.int16: "int16",
    np.int32: "int32",
    np.int64: "int64",
    np.uint8: "uint8",
    np.uint16: "uint16",
    np.uint32: "uint32",
    np.uint64: "uint64",
    np.bool_: "bool",
    np.complex64: "complex64",
    np.complex128: "complex128",
}
OTHER_TYPES = {
    ml_dtypes.bfloat16: ("bfloat16", TensorProto.BFLOAT16),
    ml_dtypes.float8_e4m3fn: ("float8e4m3fn", TensorProto.FLOAT8E4M3FN),
    ml_dtypes.float8_e4m3fnuz: ("float8e4m3fnuz", TensorProto.FLOAT8E4M3FNUZ),
    ml_dtypes.float8_e5m2: ("float8e5m2", TensorProto.FLOAT8E5M2),
    ml_dtypes.float8_e5m2fnuz: ("float8e5m2fnuz", TensorProto.FLOAT8E5M2FNUZ),
    ml_dtypes.float8_e8m0fnu: ("float8e8m0", TensorProto.FLOAT8E8M0),
    ml_dtypes.uint4: ("uint4", TensorProto.UINT4),
    ml_dtypes.int4: ("int4", TensorProto.INT4),
    ml_dtypes.float4_e2m1fn: ("float4e2m1", TensorProto.FLOAT4E2M1),
    ml_dtypes.uint2: ("uint2", TensorProto.UINT2),
    ml_dtypes.int2: ("int2", TensorProto.INT2),
}
PACKED = (ml_dtypes.uint4, ml_dtypes.int4, ml_dtypes.float4_e2m1fn, ml_dtypes.uint2, ml_dtypes.int2)


def address(array: NDArray[Any]) -> int:
    """Where the elements are."""
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("dtype", NUMPY_TYPES, ids=lambda dtype: dtype.__name__)
def test_numpy_types_go_in_and_out_without_a_copy(dtype: Any) -> None:
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    value = OrtValue.ortvalue_from_numpy(array)
    assert value.data_type() == f"tensor({NUMPY_TYPES[dtype]})"
    assert value.shape() == [2, 3]
    assert value.tensor_size_in_bytes() == array.nbytes
    assert value.data_ptr() == address(array) == address(value.numpy())
    assert value.numpy().dtype == array.dtype
    np.testing.assert_array_equal(value.numpy(), array)


@pytest.mark.parametrize("dtype", OTHER_TYPES, ids=lambda dtype: dtype.__name__)
def test_types_that_numpy_lacks(dtype: Any) -> None:
    name, number = OTHER_TYPES[dtype]
    array = np.array([1, 0.5, 2, 1, 0.5]).astype(dtype)
    value = OrtValue.ortvalue_from_numpy(array)
    assert value.data_type() == f"tensor({name})"
    assert value.element_type() == number
    assert value.numpy().dtype == array.dtype
    assert value.numpy().tobytes() == array.tobytes()
    assert (value.data_ptr() == address(array)) is (dtype not in PACKED)


def test_negative_numbers_below_a_byte() -> None:
    for dtype, numbers in ((ml_dtypes.int4, [-8, 7, -1, 0, 3]), (ml_dtypes.int2, [-2, 1, -1, 0, 1, -2])):
        array = np.array(numbers, np.int8).astype(dtype)
        value = OrtValue.ortvalue_from_numpy(array)
        assert value.numpy().astype(np.int8).tolist() == numbers
        assert value.tensor_size_in_bytes() < len(numbers)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 1, 3, 1, 2, 1, 2)], ids=str)
def test_shapes(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    value = OrtValue.ortvalue_from_numpy(array)
    assert value.shape() == list(shape)
    assert value.numpy().shape == shape
    np.testing.assert_array_equal(value.numpy(), array)


def test_arrays_that_no_tensor_can_lie_over_are_copied() -> None:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for array in (base.T, base[::2, 1::2], base.astype(">f4"), np.asfortranarray(base)):
        value = OrtValue.ortvalue_from_numpy(array)
        assert value.data_ptr() != address(array)
        np.testing.assert_array_equal(value.numpy(), array)


def test_a_read_only_array_is_copied_since_a_tensor_can_be_written() -> None:
    array = np.frombuffer(bytes(16), np.float32)
    value = OrtValue.ortvalue_from_numpy(array)
    value.numpy()[:] = 1
    assert array.sum() == 0


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a", "héllo", ""]),
        np.array([["a", "b"], ["", "x" * 5000]], dtype=object),
        np.array([], dtype=object),
        np.array("scalar"),
    ],
    ids=["unicode", "object", "empty", "scalar"],
)
def test_strings(array: NDArray[Any]) -> None:
    value = OrtValue.ortvalue_from_numpy(array)
    assert value.data_type() == "tensor(string)"
    assert value.numpy().dtype == object
    assert value.numpy().shape == array.shape
    assert value.numpy().tolist() == array.tolist()


def test_byte_strings_become_text() -> None:
    assert OrtValue.ortvalue_from_numpy(np.array([b"ab", b""])).numpy().tolist() == ["ab", ""]


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match=r"datetime64|M8"):
        OrtValue.ortvalue_from_numpy(np.array(["2020-01-01"], dtype="datetime64[D]"))
    with pytest.raises(TypeError, match="str or bytes, not int"):
        OrtValue.ortvalue_from_numpy(np.array(["a", 1], dtype=object))


def test_the_array_keeps_the_tensor_alive() -> None:
    value = OrtValue.ortvalue_from_shape_and_type([1000], np.int64)
    array = value.numpy()
    array[:] = 7
    del value
    gc.collect()
    others = [OrtValue.ortvalue_from_shape_and_type([1000], np.int64) for _ in range(20)]
    for other in others:
        other.numpy()[:] = 1
    assert (array == 7).all()


@pytest.mark.parametrize(
    "make",
    [
        OrtValue.ortvalue_from_numpy,
        lambda array: OrtValue.ortvalue_from_numpy_with_onnx_type(array, TensorProto.INT64),
    ],
    ids=["by_dtype", "by_number"],
)
def test_the_tensor_keeps_the_array_alive(make: Callable[[NDArray[Any]], OrtValue]) -> None:
    array = np.full(1000, 7, np.int64)
    alive = weakref.ref(array)
    value = make(array)
    del array
    gc.collect()
    assert alive() is not None
    assert (value.numpy() == 7).all()
    del value
    gc.collect()
    assert alive() is None


def test_new_tensors_by_dtype_and_by_onnx_number() -> None:
    value = OrtValue.ortvalue_from_shape_and_type([2, 3], np.float64)
    assert (value.data_type(), value.shape(), value.device_name()) == ("tensor(double)", [2, 3], "cpu")
    value = OrtValue.ortvalue_from_shape_and_type([2], TensorProto.UINT2)
    assert (value.data_type(), value.element_type()) == ("tensor(uint2)", TensorProto.UINT2)
    with pytest.raises(TypeError):
        OrtValue.ortvalue_from_shape_and_type([2], "no such type")
    with pytest.raises(ort_abi.errors.InvalidArgument):
        OrtValue.ortvalue_from_shape_and_type([-2], np.float32)


def test_bits_in_an_array_of_another_type() -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)
    value = OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    assert value.data_type() == "tensor(bfloat16)"
    assert value.numpy().astype(np.float32).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="uint16"):
        OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.FLOAT)


@pytest.mark.parametrize(
    "array",
    [np.arange(6, dtype=np.float32), np.array(["x", "yz"]), np.array([1, -2, 3]).astype(ml_dtypes.int4)],
    ids=["float", "string", "int4"],
)
def test_update_inplace(array: NDArray[Any]) -> None:
    value = OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype)
    value.update_inplace(array)
    assert value.numpy().tolist() == array.tolist()
    other = OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype)
    other.update_inplace(value)
    assert other.numpy().tolist() == array.tolist()


def test_update_inplace_names_both_types() -> None:
    value = OrtValue.ortvalue_from_shape_and_type([2], np.float32)
    with pytest.raises(ValueError, match=r"float\[2\].*double\[2\]"):
        value.update_inplace(np.zeros(2))
    with pytest.raises(ValueError, match=r"float\[2\].*float\[3\]"):
        value.update_inplace(np.zeros(3, np.float32))


def test_copy_tensors_on_the_cpu() -> None:
    sources = [OrtValue.ortvalue_from_numpy(np.full(n, n, np.float32)) for n in (3, 5)]
    targets = [OrtValue.ortvalue_from_shape_and_type([n], np.float32) for n in (3, 5)]
    ort_abi.copy_tensors(sources, targets)
    assert [target.numpy().tolist() for target in targets] == [[3.0] * 3, [5.0] * 5]
    with pytest.raises(ValueError, match="2 sources"):
        ort_abi.copy_tensors(sources, targets[:1])


def test_dlpack_both_ways() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = OrtValue.ortvalue_from_numpy(array)
    assert value.__dlpack_device__() == (1, 0)
    assert address(np.from_dlpack(value)) == address(array)  # type: ignore[arg-type]
    assert OrtValue.from_dlpack(array).data_ptr() == address(array)


def test_what_a_value_says_of_itself() -> None:
    value = OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    assert value.has_value() and value.is_tensor()
    assert not value.is_sparse_tensor() and not value.is_tensor_sequence()
    assert repr(value) == "OrtValue(tensor(float), shape=[2, 3], device='cpu')"


def test_devices_that_nobody_has() -> None:
    with pytest.raises(ValueError, match="'fpu' is not known; there are cpu, cuda"):
        OrtValue.ortvalue_from_numpy(np.zeros(1), "fpu")
    with pytest.raises(ort_abi.errors.NotFound, match="GPU"):
        OrtValue.ortvalue_from_numpy(np.zeros(1), "gpu")
    with pytest.raises(ort_abi.errors.NotFound, match="NPU"):
        OrtValue.ortvalue_from_shape_and_type([1], np.float32, "npu", 3)


def test_large_tensors_lie_in_whole_huge_pages() -> None:
    huge_page = 2 << 20
    values = [OrtValue.ortvalue_from_shape_and_type([size], np.uint8) for size in (4 << 20, 5 << 20, 4 << 20)]
    assert [value.data_ptr() % huge_page for value in values] == [0, 0, 0]
    for value in values:
        array = value.numpy()
        array[:] = 7  # all of it is there
        assert array.sum(dtype=np.int64) == 7 * array.size
    small = OrtValue.ortvalue_from_shape_and_type([(4 << 20) - 1], np.uint8)
    assert small.data_ptr() % 64 == 0
