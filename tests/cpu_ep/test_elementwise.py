"""Operators that work element by element: arithmetic, comparisons, logic, functions, Clip, Pow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.cpu_ep import (
    INTEGERS,
    NUMBERS,
    REALS,
    SIGNED,
    Array,
    DType,
    Host,
    assert_same,
    check_fails,
    check_node,
    make_unranked_binary,
    name_of,
    onnx_type,
    run_ep,
    values,
)

BROADCASTS = [
    ((2, 3), (2, 3)),
    ((2, 3), ()),
    ((), (2, 3)),
    ((), ()),
    ((4, 1, 3), (2, 1)),
    ((2, 1, 4, 1), (3, 1, 5)),
    ((3,), (2, 5, 3)),
    ((0, 3), (1, 3)),
    ((1, 1), (2, 0)),
    ((5, 70), (5, 70)),
]


@pytest.mark.parametrize("dtype", NUMBERS, ids=name_of)
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Min", "Max", "Less", "Greater", "Equal"])
def test_binary_operators_broadcast(ep_host: Host, op_type: str, dtype: DType) -> None:
    """Every pair of shapes, for every type."""
    output = TensorProto.BOOL if op_type in ("Less", "Greater", "Equal") else onnx_type(dtype)
    session = ep_host.session(make_unranked_binary(op_type, onnx_type(dtype), output))
    functions: dict[str, Callable[[Array, Array], Any]] = {
        "Add": np.add,
        "Sub": np.subtract,
        "Mul": np.multiply,
        "Min": np.minimum,
        "Max": np.maximum,
        "Less": np.less,
        "Greater": np.greater,
        "Equal": np.equal,
        "Div": divide,
    }
    for a_shape, b_shape in BROADCASTS:
        a, b = values(a_shape, dtype), values(b_shape, dtype)
        if op_type == "Div":
            b[...] = np.where(b == 0, dtype(3), b)
        with np.errstate(all="ignore"):
            assert_same(session.run(None, {"a": a, "b": b})[0], np.asarray(functions[op_type](a, b)))


def divide(a: Array, b: Array) -> Array:
    """ONNX's Div: integers towards zero, as in C."""
    if np.asarray(a).dtype.kind == "f":
        return np.asarray(a / b)
    quotient = np.asarray(np.abs(a.astype(object)) // np.abs(b.astype(object)) * np.sign(a) * np.sign(b))
    return quotient.astype(a.dtype)


@pytest.mark.parametrize("opset", [7, 13, 14])
def test_add_in_all_its_versions(ep_host: Host, opset: int) -> None:
    """One kernel serves the schema's versions 7, 13 and 14."""
    check_node(ep_host, "Add", {"a": values((2, 3), np.float32), "b": values((3,), np.float32)}, opset=opset)


@pytest.mark.parametrize("dtype", SIGNED, ids=name_of)
def test_integer_arithmetic_wraps(ep_host: Host, dtype: DType) -> None:
    """Overflow is not undefined: it wraps, as in NumPy."""
    info = np.iinfo(dtype)
    a = np.array([info.max, info.min, info.min], dtype)
    b = np.array([1, -1, info.min], dtype)
    for op_type in ("Add", "Sub", "Mul"):
        check_node(ep_host, op_type, {"a": a, "b": b})
    check_node(ep_host, "Neg", {"a": a})
    check_node(ep_host, "Abs", {"a": a})


@pytest.mark.parametrize("dtype", INTEGERS, ids=name_of)
@pytest.mark.parametrize("divisor", [0, [1, 1, 0], [[1], [0]]], ids=name_of)
def test_integer_division_by_zero_is_an_error(ep_host: Host, dtype: DType, divisor: Any) -> None:
    """No signal: a status that names the node."""
    inputs = {"a": np.ones((2, 3), dtype), "b": np.array(divisor, dtype)}
    check_fails(ep_host, "Div", inputs, "integer division by zero")


@pytest.mark.parametrize("dtype", SIGNED, ids=name_of)
def test_smallest_integer_divided_by_minus_one_is_an_error(ep_host: Host, dtype: DType) -> None:
    """The other division that traps."""
    a = np.array([4, np.iinfo(dtype).min], dtype)
    check_fails(ep_host, "Div", {"a": a, "b": np.array(-1, dtype)}, "integer overflow")


def test_division_of_reals_by_zero_is_infinite(ep_host: Host) -> None:
    """Reals have values for it."""
    a = np.array([1, -1, 0], np.float32)
    got = run_ep(ep_host, "Div", {"a": a, "b": np.zeros(3, np.float32)})
    np.testing.assert_array_equal(got[0], [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("op_type", ["And", "Or"])
def test_logic_broadcasts(ep_host: Host, op_type: str) -> None:
    """All four combinations, and a broadcast scalar."""
    a, b = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    check_node(ep_host, op_type, {"a": a, "b": b})
    check_node(ep_host, op_type, {"a": a, "b": np.array(True)})
    check_node(ep_host, "Not", {"a": a}, opset=13)
    check_node(ep_host, "Equal", {"a": a, "b": b}, output_type=TensorProto.BOOL)


@pytest.mark.parametrize("op_type", ["Min", "Max"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64], ids=name_of)
def test_min_and_max_take_any_number_of_inputs(ep_host: Host, op_type: str, dtype: DType) -> None:
    """One, two and four inputs; the first may be the one that is widened."""
    for shapes in ([(2, 3)], [(), (2, 1), (3,), (1, 3)], [(2, 0), (1, 1)]):
        check_node(ep_host, op_type, {f"x{i}": values(s, dtype) for i, s in enumerate(shapes)})


def test_min_and_max_keep_nan(ep_host: Host) -> None:
    """A NaN on either side is the result."""
    a = np.array([np.nan, 1, np.nan], np.float32)
    b = np.array([1, np.nan, np.nan], np.float32)
    for op_type in ("Min", "Max"):
        got = run_ep(ep_host, op_type, {"a": a, "b": b})
        assert np.isnan(got[0]).all()


def test_inputs_that_do_not_broadcast_are_an_error(ep_host: Host) -> None:
    """The status says which dimension."""
    inputs = {"a": values((2, 3), np.float32), "b": values((4,), np.float32)}
    check_fails(ep_host, "Add", inputs, "inputs do not broadcast: 4 against 3 in dimension 1 of 2")


UNARY_SHAPES: list[tuple[int, ...]] = [(), (0,), (2, 0, 3), (7,), (3, 100)]


@pytest.mark.parametrize("dtype", REALS, ids=name_of)
@pytest.mark.parametrize(
    "op_type",
    ["Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Neg", "Abs", "Floor", "Ceil", "LeakyRelu"],
)
def test_unary_operators_on_reals(ep_host: Host, op_type: str, dtype: DType) -> None:
    """Shapes of all kinds, and every special value."""
    for shape in UNARY_SHAPES:
        x = values(shape, dtype)
        check_node(ep_host, op_type, {"x": np.asarray(np.abs(x)) if op_type in ("Log", "Sqrt") else x})
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5, 0.5, -60, 60], dtype)
    check_node(ep_host, op_type, {"x": special})


@pytest.mark.parametrize("dtype", SIGNED, ids=name_of)
@pytest.mark.parametrize("op_type", ["Relu", "Neg", "Abs"])
def test_unary_operators_on_integers(ep_host: Host, op_type: str, dtype: DType) -> None:
    """The operators that integers have."""
    for shape in UNARY_SHAPES:
        check_node(ep_host, op_type, {"x": values(shape, dtype)})


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64], ids=name_of)
def test_abs_of_unsigned_is_the_value(ep_host: Host, dtype: DType) -> None:
    """Also of values with the highest bit set."""
    check_node(ep_host, "Abs", {"x": np.array([0, 1, np.iinfo(dtype).max], dtype)})


@pytest.mark.parametrize("dtype", REALS, ids=name_of)
def test_erf(ep_host: Host, dtype: DType) -> None:
    """Against the C library's: the reference's own is an approximation."""
    x = np.array([0, -0.5, 0.5, 1, 2, -3, 10, np.inf, -np.inf, np.nan], dtype)
    expected = np.array([math.erf(float(value)) for value in x]).astype(dtype)
    assert_same(run_ep(ep_host, "Erf", {"x": x})[0], expected)


def test_sigmoid_does_not_overflow(ep_host: Host) -> None:
    """exp is never taken of a large positive number: the ends are exact."""
    got = run_ep(ep_host, "Sigmoid", {"x": np.array([-1000, 1000, -88, 88], np.float32)})
    np.testing.assert_array_equal(got[0][:2], [0, 1])
    assert 0 < got[0][2] < 1e-37


def test_leaky_relu_reads_alpha(ep_host: Host) -> None:
    """Attribute and default."""
    x = np.array([-2, 3], np.float32)
    check_node(ep_host, "LeakyRelu", {"x": x}, alpha=0.25)
    check_node(ep_host, "LeakyRelu", {"x": x})


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
def test_float16_rounds_once_per_operator(ep_host: Host, op_type: str) -> None:
    """Bit for bit what NumPy makes of 20,000 random pairs, subnormals and overflow among them."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2**16, 20000).astype(np.uint16).view(np.float16)
    b = rng.integers(0, 2**16, 20000).astype(np.uint16).view(np.float16)
    got = run_ep(ep_host, op_type, {"a": a, "b": b})
    with np.errstate(all="ignore"):
        expected = {"Add": a + b, "Sub": a - b, "Mul": a * b, "Div": a / b}[op_type]
    np.testing.assert_array_equal(got[0], expected)


def test_bfloat16_arithmetic(ep_host: Host) -> None:
    """float -> bfloat16, Add, Mul, MatMul -> float, as ml_dtypes computes it."""
    nodes = [
        helper.make_node("Cast", ["a"], ["a16"], to=TensorProto.BFLOAT16),
        helper.make_node("Cast", ["b"], ["b16"], to=TensorProto.BFLOAT16),
        helper.make_node("Add", ["a16", "b16"], ["sum16"]),
        helper.make_node("Mul", ["sum16", "b16"], ["product16"]),
        helper.make_node("Cast", ["product16"], ["out"], to=TensorProto.FLOAT),
    ]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [100]) for n in ("a", "b")]
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, [100])]
    graph = helper.make_graph(nodes, "graph", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=100).astype(np.float32), rng.normal(size=100).astype(np.float32)
    got = ep_host.session(model).run(None, {"a": a, "b": b})[0]
    a16, b16 = a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(got, ((a16 + b16) * b16).astype(np.float32))


@pytest.mark.parametrize("dtype", NUMBERS, ids=name_of)
def test_clip_takes_bounds_from_inputs(ep_host: Host, dtype: DType) -> None:
    """Both bounds, either, none."""
    x, low, high = values((4, 5), dtype), np.array(2, dtype), np.array(5, dtype)
    check_node(ep_host, "Clip", {"x": x, "low": low, "high": high})
    check_node(ep_host, "Clip", {"x": x, "low": low})
    check_node(ep_host, "Clip", {"x": x, "low": None, "high": high})
    check_node(ep_host, "Clip", {"x": x})


@pytest.mark.parametrize("dtype", REALS, ids=name_of)
def test_clip_takes_bounds_from_attributes(ep_host: Host, dtype: DType) -> None:
    """Version 6."""
    x = values((4, 5), dtype)
    got = run_ep(ep_host, "Clip", {"x": x}, opset=10, min=-1.5, max=2.25)
    np.testing.assert_array_equal(got[0], np.clip(x, -1.5, 2.25))
    got = run_ep(ep_host, "Clip", {"x": x}, opset=6 + 1, max=2.25)
    np.testing.assert_array_equal(got[0], np.minimum(x, dtype(2.25)))


def test_clip_refuses_a_list_of_bounds(ep_host: Host) -> None:
    """A bound is one element."""
    x = values((3,), np.float32)
    check_fails(ep_host, "Clip", {"x": x, "low": x}, "'min' must be one element of the input's type")


@pytest.mark.parametrize("exponent", NUMBERS, ids=name_of)
@pytest.mark.parametrize("base", [np.int32, np.int64, *REALS], ids=name_of)
def test_pow_mixes_types(ep_host: Host, base: DType, exponent: DType) -> None:
    """The result has the base's type."""
    x = np.array([[1, 2, 3], [4, 5, 6]], base)
    y = np.array([0, 1, 3], exponent)
    got = run_ep(ep_host, "Pow", {"x": x, "y": y})
    assert_same(got[0], np.power(x.astype(np.float64), y.astype(np.float64)).astype(base))


def test_pow_of_integers_is_exact(ep_host: Host) -> None:
    """Beyond what a double holds, and with negative bases and exponents."""
    x = np.array([3, -3, 10, -1, 1, 2], np.int64)
    y = np.array([39, 39, 18, -3, -2, -1], np.int64)
    got = run_ep(ep_host, "Pow", {"x": x, "y": y})
    np.testing.assert_array_equal(got[0], np.array([3**39, -(3**39), 10**18, -1, 1, 0], np.int64))
