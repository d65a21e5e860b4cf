"""The built-in CPU EP in stock onnxruntime and in ours: every kernel against the ONNX reference or NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.support.cpu_ep import (
    INTEGERS,
    NUMBERS,
    REALS,
    SIGNED,
    WIDE_INTEGERS,
    Array,
    DType,
    Host,
    OurHost,
    StockHost,
    assert_same,
    build_plugin,
    check_fails,
    check_node,
    make_model,
    make_unranked_binary,
    name_of,
    onnx_type,
    run_ep,
    values,
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The EP as a plugin library."""
    return build_plugin(tmp_path_factory.mktemp("cpu_ep") / "libcpu_ep.so")


@pytest.fixture(scope="module", params=["stock", "ours"])
def ep_host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """Stock onnxruntime, and our own host."""
    if request.param == "ours":
        yield OurHost()
        return
    stock = StockHost(request.getfixturevalue("library"))
    yield stock
    stock.close()


# ---- Element by element ----

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


# ---- Cast ----

CASTABLE = [*NUMBERS, np.bool_]


@pytest.mark.parametrize("source", CASTABLE, ids=name_of)
def test_cast_between_all_types(ep_host: Host, source: DType) -> None:
    """Every pair of types, with values that both hold, 0-d and empty tensors among them."""
    for target in CASTABLE:
        x = values((3, 200), source, low=0 if np.dtype(target).kind == "u" else -9)
        for part in (x, x[:0], x[0, 0:1].reshape(())):
            got = run_ep(ep_host, "Cast", {"x": part}, output_type=onnx_type(target), to=onnx_type(target))
            np.testing.assert_array_equal(got[0], part.astype(target))
            assert got[0].dtype == np.dtype(target) and got[0].shape == part.shape


def test_cast_widens_every_float16_exactly(ep_host: Host) -> None:
    """All 65,536 of them."""
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    got = run_ep(ep_host, "Cast", {"x": x}, output_type=TensorProto.FLOAT, to=TensorProto.FLOAT)
    np.testing.assert_array_equal(got[0], x.astype(np.float32))


@pytest.mark.parametrize("source", [np.float32, np.float64], ids=name_of)
def test_cast_to_float16_rounds_to_nearest_even(ep_host: Host, source: DType) -> None:
    """Around every tie between two neighbours, as NumPy rounds."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(source)
    ties = (halves[:-1] + halves[1:]) / 2
    x = np.concatenate([ties, np.nextafter(ties, source(0)), np.nextafter(ties, source(np.inf)), -ties])
    x = np.concatenate([x, np.array([65519.99, 65520, 1e9, np.inf, -np.inf, np.nan, 1e-30], source)]).astype(
        source
    )
    got = run_ep(ep_host, "Cast", {"x": x}, output_type=TensorProto.FLOAT16, to=TensorProto.FLOAT16)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got[0], x.astype(np.float16))


def test_cast_large_integers_exactly(ep_host: Host) -> None:
    """uint64 beyond int64, and int64 to float in one rounding."""
    large = np.array([2**63 + 2**40, 2**64 - 1, 2**53 + 1], np.uint64)
    for target in (np.float32, np.float64, np.int64, np.uint8):
        got = run_ep(ep_host, "Cast", {"x": large}, output_type=onnx_type(target), to=onnx_type(target))
        np.testing.assert_array_equal(got[0], large.astype(target))
    reals = np.array([2.0**63, 1.5 * 2.0**63, 255.9], np.float64)
    got = run_ep(ep_host, "Cast", {"x": reals}, output_type=TensorProto.UINT64, to=TensorProto.UINT64)
    np.testing.assert_array_equal(got[0], np.array([2**63, 3 * 2**62, 255], np.uint64))


def test_cast_of_what_does_not_fit_is_defined(ep_host: Host) -> None:
    """NaN, infinities and huge values give some integer, never a trap; bool is whether it is not zero."""
    x = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    for target in (np.int8, np.int32, np.int64, np.uint64):
        got = run_ep(ep_host, "Cast", {"x": x}, output_type=onnx_type(target), to=onnx_type(target))
        assert got[0].shape == (4,)
    got = run_ep(ep_host, "Cast", {"x": np.array([0.25, 0, np.nan], np.float32)}, output_type=9, to=9)
    np.testing.assert_array_equal(got[0], [True, False, True])


# ---- Matrices ----

MATRICES = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3,)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((1, 2, 3), (0, 3, 2)),
    ((1, 200), (200, 65)),
]


@pytest.mark.parametrize("dtype", [*REALS, *WIDE_INTEGERS], ids=name_of)
def test_matmul(ep_host: Host, dtype: DType) -> None:
    """Vectors, stacks that broadcast, empty matrices, more than one block."""
    session = ep_host.session(make_unranked_binary("MatMul", onnx_type(dtype), onnx_type(dtype)))
    for a_shape, b_shape in MATRICES:
        a, b = values(a_shape, dtype), values(b_shape, dtype)
        wide = np.float64 if np.dtype(dtype).kind == "f" else dtype
        expected = np.asarray(np.matmul(a.astype(wide), b.astype(wide))).astype(dtype)
        assert_same(session.run(None, {"a": a, "b": b})[0], expected)


def test_matmul_of_16_bit_reals_rounds_once(ep_host: Host) -> None:
    """4,096 times 1: a sum kept in float16 would stop at 2,048."""
    a, b = np.ones((1, 4096), np.float16), np.ones((4096, 1), np.float16)
    got = run_ep(ep_host, "MatMul", {"a": a, "b": b})
    assert got[0][0, 0] == 4096


def test_matmul_refuses_what_does_not_fit(ep_host: Host) -> None:
    """Inner dimensions, stacks and scalars."""
    f = np.float32
    check_fails(
        ep_host,
        "MatMul",
        {"a": values((2, 3), f), "b": values((4, 2), f)},
        "3 columns on the left, 4 rows on the right",
    )
    check_fails(ep_host, "MatMul", {"a": values((2, 2, 3), f), "b": values((3, 3, 2), f)}, "do not broadcast")


@pytest.mark.parametrize("dtype", [*REALS, *WIDE_INTEGERS], ids=name_of)
@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_gemm(ep_host: Host, dtype: DType, trans_a: int, trans_b: int) -> None:
    """All shapes of C, none, and factors."""
    a = values((3, 2) if trans_a else (2, 3), dtype)
    b = values((4, 3) if trans_b else (3, 4), dtype)
    product = np.matmul(
        (a.T if trans_a else a).astype(np.float64), (b.T if trans_b else b).astype(np.float64)
    )
    for shape in (None, (), (1,), (4,), (1, 4), (2, 1), (2, 4)):
        c = None if shape is None else values(shape, dtype)
        inputs = {"a": a, "b": b, **({} if c is None else {"c": c})}
        for alpha, beta in ((1.0, 1.0), (2.0, 3.0)):
            got = run_ep(ep_host, "Gemm", inputs, transA=trans_a, transB=trans_b, alpha=alpha, beta=beta)
            expected = alpha * product + (0 if c is None else beta * c.astype(np.float64))
            assert_same(got[0], expected.astype(dtype))


@pytest.mark.parametrize("prepack", ["1", "0"], ids=["packed", "not packed"])
@pytest.mark.parametrize("dtype", [*REALS, *WIDE_INTEGERS], ids=name_of)
def test_constant_weights(ep_host: Host, dtype: DType, prepack: str) -> None:
    """MatMul and Gemm pack a constant right side once; the result is the same, run after run."""
    config = {"session.disable_prepacking": "0" if prepack == "1" else "1"}
    cases: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, int]]] = [
        ("MatMul", (5, 20), (20, 19), {}),
        ("MatMul", (3,), (4, 3, 2), {}),
        ("MatMul", (2, 3), (3,), {}),
        ("MatMul", (2, 0), (0, 3), {}),
        ("Gemm", (5, 20), (20, 19), {}),
        ("Gemm", (20, 5), (19, 20), {"transA": 1, "transB": 1}),
    ]
    for op_type, a_shape, b_shape, attributes in cases:
        a, b = values(a_shape, dtype), values(b_shape, dtype)
        model = make_model(op_type, {"a": a, "b": b}, [onnx_type(dtype)], **attributes)
        del model.graph.input[1:]
        model.graph.initializer.append(numpy_helper.from_array(b, "b"))
        session = ep_host.session(model, config)
        left, right = (a.T, b.T) if attributes else (a, b)
        wide = np.float64 if np.dtype(dtype).kind == "f" else dtype
        expected = np.asarray(np.matmul(left.astype(wide), right.astype(wide))).astype(dtype)
        for _ in range(2):
            assert_same(session.run(None, {"a": a})[0], expected)


def test_gemm_of_empty_matrices(ep_host: Host) -> None:
    """No inner dimension leaves C; no rows leave nothing."""
    f = np.float32
    c = values((4,), f)
    got = run_ep(ep_host, "Gemm", {"a": np.zeros((2, 0), f), "b": np.zeros((0, 4), f), "c": c})
    np.testing.assert_array_equal(got[0], np.broadcast_to(c, (2, 4)))
    check_node(ep_host, "Gemm", {"a": np.zeros((0, 3), f), "b": values((3, 4), f), "c": c})


def test_gemm_refuses_what_does_not_fit(ep_host: Host) -> None:
    """Inner dimension, and a C that would widen the result."""
    f = np.float32
    a, b = values((2, 3), f), values((3, 4), f)
    check_fails(ep_host, "Gemm", {"a": a, "b": a}, "3 columns on the left, 2 rows on the right")
    check_fails(ep_host, "Gemm", {"a": a, "b": b, "c": values((3, 4), f)}, "broadcast to 2 x 4")


# ---- Shapes ----

MOVED = [*NUMBERS, np.bool_]


def ints(*numbers: int) -> Array:
    """An int64 tensor."""
    return np.array(numbers, np.int64)


@pytest.mark.parametrize("dtype", MOVED, ids=name_of)
def test_operators_that_only_move_elements_take_every_type(ep_host: Host, dtype: DType) -> None:
    """One case each; the shapes are tested below."""
    x = values((2, 1, 3), dtype)
    check_node(ep_host, "Identity", {"x": x})
    check_node(ep_host, "Identity", {"x": x}, opset=13)
    check_node(ep_host, "Reshape", {"x": x, "shape": ints(3, 2)})
    check_node(ep_host, "Squeeze", {"x": x, "axes": ints(1)})
    check_node(ep_host, "Unsqueeze", {"x": x, "axes": ints(0, -1)})
    check_node(ep_host, "Flatten", {"x": x})
    check_node(ep_host, "Transpose", {"x": x}, perm=[2, 0, 1])
    check_node(ep_host, "Concat", {"x": x, "y": x, "z": x[:, :, :1]}, axis=-1)
    check_node(ep_host, "Shape", {"x": x}, output_type=TensorProto.INT64)
    check_node(ep_host, "Gather", {"x": x, "indices": ints(2, 0)}, axis=2)
    check_node(
        ep_host, "Slice", {"x": x, "starts": ints(2), "ends": ints(-9), "axes": ints(2), "steps": ints(-1)}
    )
    check_node(ep_host, "Split", {"x": x, "split": ints(1, 2)}, output_count=2, axis=2)
    check_node(ep_host, "Expand", {"x": x, "shape": ints(4, 1)})
    condition = np.array([True, False, True])
    check_node(ep_host, "Where", {"c": condition, "x": x, "y": x[:1]}, output_type=onnx_type(dtype))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_identity_of_scalars_and_empty_tensors(ep_host: Host, shape: tuple[int, ...]) -> None:
    """Any shape passes."""
    check_node(ep_host, "Identity", {"x": values(shape, np.float32)})


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((2, 3, 4), (4, 6)),
        ((2, 3, 4), (0, -1)),
        ((2, 3, 4), (-1,)),
        ((2, 3, 4), (2, 0, 2, 2)),
        ((1, 1), ()),
        ((), (1, 1)),
        ((0, 3), (0, 5)),
        ((0, 3), (3, 0)),
    ],
)
def test_reshape(ep_host: Host, shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """0 copies a dimension, -1 is what is left."""
    x = values(shape, np.float32)
    if target == (3, 0):
        check_fails(ep_host, "Reshape", {"x": x, "shape": ints(0, 5, 0)}, "shape[2] is 0")
        return
    check_node(ep_host, "Reshape", {"x": x, "shape": ints(*target)})
    check_node(ep_host, "Reshape", {"x": x, "shape": ints(*target)}, opset=13)


def test_reshape_with_allowzero(ep_host: Host) -> None:
    """0 is a dimension of zero."""
    x = np.zeros((0, 3), np.float32)
    check_node(ep_host, "Reshape", {"x": x, "shape": ints(3, 4, 0)}, allowzero=1)
    check_fails(ep_host, "Reshape", {"x": x, "shape": ints(0, -1)}, "both 0 and -1", allowzero=1)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ((5, 5), "24 elements do not fit"),
        ((-1, -1), "more than one -1"),
        ((-2, 3), "shape[0] is -2"),
        ((-1, 7), "24 elements do not fit"),
        ((2**40, 2**40), "24 elements do not fit"),
    ],
)
def test_reshape_refuses_other_counts(ep_host: Host, target: tuple[int, ...], problem: str) -> None:
    """Also where the product overflows."""
    check_fails(ep_host, "Reshape", {"x": values((2, 3, 4), np.float32), "shape": ints(*target)}, problem)


@pytest.mark.parametrize("opset", [11, 13, 21])
def test_squeeze_and_unsqueeze_in_all_their_versions(ep_host: Host, opset: int) -> None:
    """Axes as an attribute before version 13, as an input since."""

    def check(op_type: str, x: Array, *axes: int) -> None:
        if opset < 13:
            check_node(ep_host, op_type, {"x": x}, opset=opset, axes=list(axes))
        else:
            check_node(ep_host, op_type, {"x": x, "axes": ints(*axes)}, opset=opset)

    check("Squeeze", values((1, 2, 1, 3), np.float32), 0)
    check("Squeeze", values((1, 2, 1, 3), np.float32), -2, 0)
    check_node(ep_host, "Squeeze", {"x": values((1, 2, 1, 3), np.float32)}, opset=opset)
    check_node(ep_host, "Squeeze", {"x": values((1, 1), np.float32)}, opset=opset)
    check("Unsqueeze", values((2, 3), np.float32), 0, 2, -1)
    check("Unsqueeze", values((), np.float32), 0)
    check("Unsqueeze", values((0,), np.float32), 1)


def test_squeeze_and_unsqueeze_refuse_wrong_axes(ep_host: Host) -> None:
    """Not 1, out of range, twice."""
    x = values((2, 1, 3), np.float32)
    check_fails(ep_host, "Squeeze", {"x": x, "axes": ints(0)}, "dimension 0 is 2, only 1 can be squeezed")
    check_fails(ep_host, "Squeeze", {"x": x, "axes": ints(3)}, "axis 3 is outside [-3, 3)")
    check_fails(ep_host, "Unsqueeze", {"x": x, "axes": ints(0, 0)}, "axis 0 is given twice")
    check_fails(ep_host, "Unsqueeze", {"x": x, "axes": ints(-5)}, "axis -5 is outside [-4, 4)")


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2, 3])
def test_flatten(ep_host: Host, axis: int) -> None:
    """Every axis, the end too."""
    for shape in ((2, 3, 4), (2, 0, 4)):
        x = values(shape, np.float32)
        got = run_ep(ep_host, "Flatten", {"x": x}, axis=axis)
        assert_same(got[0], x.reshape(int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))))


@pytest.mark.parametrize(
    "attributes",
    [{}, {"start": 1}, {"end": -1}, {"start": -2, "end": 9}, {"start": 2, "end": 1}, {"start": -9}],
)
def test_shape(ep_host: Host, attributes: dict[str, int]) -> None:
    """Parts of it are clamped to what there is."""
    check_node(
        ep_host, "Shape", {"x": values((2, 0, 4), np.float32)}, output_type=TensorProto.INT64, **attributes
    )


def test_shape_of_a_scalar_is_empty(ep_host: Host) -> None:
    """In its first version too."""
    for opset in (12, 21):
        check_node(
            ep_host, "Shape", {"x": np.array(1, np.float32)}, output_type=TensorProto.INT64, opset=opset
        )


@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((2, 3), None),
        ((2, 3, 4, 5), None),
        ((2, 3, 4, 5), [0, 2, 1, 3]),
        ((2, 3, 4, 5), [2, 3, 0, 1]),
        ((2, 3, 4, 5), [0, 1, 2, 3]),
        ((2, 1, 3, 1), [3, 2, 1, 0]),
        ((2, 0, 3), [2, 1, 0]),
        ((), None),
        ((4,), [0]),
    ],
)
def test_transpose(ep_host: Host, shape: tuple[int, ...], perm: list[int] | None) -> None:
    """Axes that move together, axes of one, empty tensors."""
    check_node(
        ep_host, "Transpose", {"x": values(shape, np.float32)}, **({} if perm is None else {"perm": perm})
    )


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_concat(ep_host: Host, axis: int) -> None:
    """Inputs of different lengths, an empty one among them."""
    shapes = [[2, 3, 4] for _ in range(3)]
    for shape, length in zip(shapes, (1, 0, 5), strict=True):
        shape[axis] = length
    inputs = {f"x{i}": values(shape, np.float32) for i, shape in enumerate(shapes)}
    check_node(ep_host, "Concat", inputs, axis=axis)
    check_node(ep_host, "Concat", {"x": inputs["x0"]}, axis=axis)


def test_concat_refuses_inputs_that_do_not_fit(ep_host: Host) -> None:
    """A dimension, and the axis."""
    inputs = {"x": values((2, 3), np.float32), "y": values((2, 4), np.float32)}
    check_fails(ep_host, "Concat", inputs, "input 1 has 4 in dimension 1, input 0 has 3", axis=0)


@pytest.mark.parametrize("index_type", [np.int32, np.int64], ids=name_of)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(ep_host: Host, axis: int, index_type: DType) -> None:
    """Scalar, matrix, empty and negative indices."""
    x = values((3, 4, 5), np.float32)
    for indices in (1, [[0, 2], [-1, -3]], np.zeros((0, 2))):
        check_node(ep_host, "Gather", {"x": x, "indices": np.array(indices, index_type)}, axis=axis)


@pytest.mark.parametrize("index", [3, -4])
def test_gather_refuses_indices_outside(ep_host: Host, index: int) -> None:
    """Instead of reading past the tensor."""
    inputs = {"x": values((3, 4), np.float32), "indices": ints(0, index)}
    check_fails(ep_host, "Gather", inputs, f"index {index} (at position 1) is outside [-3, 3)")
    check_fails(ep_host, "Gather", {"x": np.zeros((0, 4), np.float32), "indices": ints(0)}, "index 0")


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ((1,), (3,), None, None),
        ((0, 1), (2, 100), None, None),
        ((-2,), (2**63 - 1,), (1,), None),
        ((5,), (-100,), (2,), (-1,)),
        ((5,), (-100,), (2,), (-2,)),
        ((0, 0), (9, 9), (-1, 0), (2, 3)),
        ((3,), (1,), (1,), None),
        ((0,), (9,), (1,), (2**62,)),
        ((9,), (-9,), (1,), (-(2**62),)),
    ],
)
def test_slice(
    ep_host: Host,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...] | None,
    steps: tuple[int, ...] | None,
) -> None:
    """Clamped, negative, empty and strided ranges, with int32 and int64."""
    for dtype in (np.int32, np.int64):
        limit = np.iinfo(dtype)
        inputs: dict[str, Array | None] = {"x": values((4, 5, 6), np.float32)}
        for name, numbers in (("starts", starts), ("ends", ends), ("axes", axes), ("steps", steps)):
            clipped = None if numbers is None else [min(max(n, limit.min), limit.max) for n in numbers]
            inputs[name] = None if clipped is None else np.array(clipped, dtype)
        check_node(ep_host, "Slice", {k: v for k, v in inputs.items() if v is not None or k != "steps"})


def test_slice_by_attributes(ep_host: Host) -> None:
    """Version 1."""
    x = values((4, 5), np.float32)
    check_node(ep_host, "Slice", {"x": x}, opset=9, starts=[1, -2], ends=[3, 9])
    check_node(ep_host, "Slice", {"x": x}, opset=9, starts=[1], ends=[-1], axes=[1])


def test_slice_of_an_empty_dimension(ep_host: Host) -> None:
    """Nothing to take, in either direction."""
    x = np.zeros((0, 3), np.float32)
    for step in (1, -1):
        inputs = {"x": x, "starts": ints(-5), "ends": ints(-9 if step < 0 else 9), "axes": ints(0)}
        check_node(ep_host, "Slice", {**inputs, "steps": ints(step)})


def test_slice_refuses_a_step_of_zero(ep_host: Host) -> None:
    """And lists of different lengths."""
    inputs = {"x": values((4,), np.float32), "starts": ints(0), "ends": ints(4), "axes": ints(0)}
    check_fails(ep_host, "Slice", {**inputs, "steps": ints(0)}, "the step of axis 0 is 0")
    check_fails(ep_host, "Slice", {**inputs, "ends": ints(4, 4)}, "must have the same length")


def test_split(ep_host: Host) -> None:
    """By attribute, by input, evenly, with a shorter last part."""
    x = values((3, 7), np.float32)
    check_node(ep_host, "Split", {"x": x}, output_count=3, opset=11, axis=1, split=[2, 4, 1])
    check_node(ep_host, "Split", {"x": x}, output_count=3, opset=11)
    check_node(ep_host, "Split", {"x": x, "split": ints(0, 7)}, output_count=2, opset=13, axis=-1)
    check_node(ep_host, "Split", {"x": x}, output_count=3, axis=1, num_outputs=3)
    check_node(ep_host, "Split", {"x": x[:, :0]}, output_count=3, axis=0, num_outputs=3)


def test_split_refuses_parts_that_do_not_add_up(ep_host: Host) -> None:
    """Too little, too much, negative."""
    x = values((3, 7), np.float32)
    for parts in ((3, 3), (4, 4), (-1, 8)):
        inputs = {"x": x, "split": ints(*parts)}
        check_fails(
            ep_host, "Split", inputs, "split must add up to the dimension, which is 7", output_count=2, axis=1
        )


@pytest.mark.parametrize("shape", [(3, 1), (2, 3, 4), (1,), (2, 1, 1), (0, 3, 4)])
def test_expand(ep_host: Host, shape: tuple[int, ...]) -> None:
    """The result may be larger than both."""
    check_node(ep_host, "Expand", {"x": values((3, 1), np.float32), "shape": ints(*shape)})


def test_where_broadcasts_three_ways(ep_host: Host) -> None:
    """Each input widens another dimension."""
    inputs = {
        "c": values((4, 1, 1), np.bool_),
        "x": values((3, 1), np.float32),
        "y": values((2,), np.float32),
    }
    check_node(ep_host, "Where", inputs, output_type=TensorProto.FLOAT)


# ---- Rows ----


@pytest.mark.parametrize("dtype", REALS, ids=name_of)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax(ep_host: Host, axis: int, dtype: DType) -> None:
    """Along one axis since version 13, over all that follow before."""
    x = values((2, 3, 5), dtype)
    check_node(ep_host, "Softmax", {"x": x}, axis=axis)
    check_node(ep_host, "Softmax", {"x": x[:, :0]}, axis=axis)
    flat = x.reshape(int(np.prod(x.shape[:axis])), -1).astype(np.float64)
    exponentials = np.exp(flat - flat.max(axis=1, keepdims=True))
    expected = (exponentials / exponentials.sum(axis=1, keepdims=True)).reshape(x.shape).astype(dtype)
    got = run_ep(ep_host, "Softmax", {"x": x}, opset=11, axis=axis)
    assert_same(got[0], expected)


def test_softmax_defaults(ep_host: Host) -> None:
    """The last axis now, axis 1 before; large values do not overflow."""
    x = np.array([[[1000, 1001], [999, 1000]]], np.float32)
    check_node(ep_host, "Softmax", {"x": x})
    got = run_ep(ep_host, "Softmax", {"x": x}, opset=12)
    np.testing.assert_allclose(got[0].sum(), 1, rtol=1e-6)


REDUCTIONS: list[tuple[tuple[int, ...], list[int] | None]] = [
    ((2, 3, 4), None),
    ((2, 3, 4), [1]),
    ((2, 3, 4), [0, 2]),
    ((2, 3, 4), [-1]),
    ((2, 3, 4), []),
    ((), None),
    ((5, 1), [1]),
    ((3, 100), [0]),
]


@pytest.mark.parametrize("dtype", [*REALS, *WIDE_INTEGERS], ids=name_of)
@pytest.mark.parametrize(("op_type", "since"), [("ReduceSum", 13), ("ReduceMean", 18), ("ReduceMax", 18)])
def test_reductions(ep_host: Host, op_type: str, since: int, dtype: DType) -> None:
    """Axes as an attribute and as an input, with and without keeping them."""
    reduce: Any = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max}[op_type]
    for shape, axes in REDUCTIONS:
        x = values(shape, dtype, low=0)
        wide = x.astype(np.float64)
        for keep in (0, 1):
            every = tuple(range(x.ndim))
            expected = reduce(wide, axis=tuple(axes) if axes else every, keepdims=bool(keep)).astype(dtype)
            inputs: dict[str, Array | None] = {"x": x}
            if axes is not None:
                inputs["axes"] = ints(*axes)
            got = run_ep(ep_host, op_type, inputs, opset=since, keepdims=keep)
            assert_same(got[0], np.asarray(expected))
            attributes: dict[str, Any] = {} if axes is None else {"axes": axes}
            if axes != []:
                got = run_ep(ep_host, op_type, {"x": x}, opset=11, keepdims=keep, **attributes)
                assert_same(got[0], np.asarray(expected))


def test_reductions_may_do_nothing(ep_host: Host) -> None:
    """noop_with_empty_axes."""
    x = values((2, 3), np.float32)
    for op_type in ("ReduceSum", "ReduceMean", "ReduceMax"):
        check_node(ep_host, op_type, {"x": x}, opset=18, noop_with_empty_axes=1)


def test_reductions_of_no_elements(ep_host: Host) -> None:
    """0, NaN and minus infinity; an integer mean is an error, not a trap."""
    inputs = {"x": np.zeros((2, 0), np.float32), "axes": ints(1)}
    for op_type, expected in (("ReduceSum", 0), ("ReduceMean", np.nan), ("ReduceMax", -np.inf)):
        model = make_model(op_type, inputs, [TensorProto.FLOAT], 20, keepdims=0)
        got = ep_host.session(model).run(None, inputs)
        np.testing.assert_array_equal(got[0], np.full(2, expected, np.float32))
    check_fails(
        ep_host,
        "ReduceMean",
        {"x": np.zeros((2, 0), np.int32), "axes": ints(1)},
        "no mean of no elements",
        opset=18,
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.bool_], ids=name_of)
def test_reduce_max_of_small_types(ep_host: Host, dtype: DType) -> None:
    """Types that only ReduceMax has."""
    x = values((4, 5), dtype)
    got = run_ep(ep_host, "ReduceMax", {"x": x, "axes": ints(1)}, opset=20, keepdims=0)
    np.testing.assert_array_equal(got[0], x.max(axis=1))


def test_sums_are_accurate(ep_host: Host) -> None:
    """A million times 0.1 in float32, rounded once."""
    x = np.full(10**6, 0.1, np.float32)
    got = run_ep(ep_host, "ReduceSum", {"x": x}, keepdims=0)
    assert got[0] == np.float32(x.astype(np.float64).sum())


# ---- Models of several nodes ----


def perceptron() -> onnx.ModelProto:
    """Gemm, Relu, MatMul, Add, Softmax with initializers."""
    rng = np.random.default_rng(3)
    weights = {
        "w1": rng.normal(size=(4, 8)).astype(np.float32),
        "b1": rng.normal(size=8).astype(np.float32),
        "w2": rng.normal(size=(8, 3)).astype(np.float32),
        "b2": rng.normal(size=3).astype(np.float32),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h1"], name="gemm"),
        helper.make_node("Relu", ["h1"], ["h2"], name="relu"),
        helper.make_node("MatMul", ["h2", "w2"], ["h3"], name="matmul"),
        helper.make_node("Add", ["h3", "b2"], ["h4"], name="add"),
        helper.make_node("Softmax", ["h4"], ["y"], name="softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(w, n) for n, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_a_model_of_several_nodes_runs_on_many_threads(ep_host: Host) -> None:
    """Kernels do not change after they were created, so one session serves all threads."""
    model = perceptron()
    session = ep_host.session(model)
    reference: Any = ReferenceEvaluator(model)
    batches = [np.random.default_rng(i).normal(size=(i % 5, 4)).astype(np.float32) for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: session.run(None, {"x": x})[0], batches))
    for batch, result in zip(batches, results, strict=True):
        assert_same(result, reference.run(None, {"x": batch})[0])


def test_intermediate_values_in_place(ep_host: Host) -> None:
    """A chain whose kernels may write over their inputs, and a value that two of them read."""
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Add", ["a", "x"], ["b"]),
        helper.make_node("Sub", ["x", "a"], ["c"]),
        helper.make_node("Mul", ["c", "c"], ["d"]),
        helper.make_node("Add", ["b", "d"], ["e"]),
        helper.make_node("Squeeze", ["e"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 5])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "d")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = values((1, 5), np.float32)
    got = ep_host.session(model).run(None, {"x": x})
    reference: Any = ReferenceEvaluator(model)
    for mine, theirs in zip(got, reference.run(None, {"x": x}), strict=True):
        assert_same(mine, theirs)


@pytest.mark.parametrize(
    ("attribute", "output_type"),
    [
        ({"value": numpy_helper.from_array(np.arange(6, dtype=np.int16).reshape(2, 3))}, TensorProto.INT16),
        ({"value": numpy_helper.from_array(np.array(1.5))}, TensorProto.DOUBLE),
        ({"value": numpy_helper.from_array(np.zeros((0, 2), np.bool_))}, TensorProto.BOOL),
        ({"value_int": 7}, TensorProto.INT64),
        ({"value_float": 1.25}, TensorProto.FLOAT),
        ({"value_ints": [1, 2, 3]}, TensorProto.INT64),
        ({"value_floats": [0.5, -1.5]}, TensorProto.FLOAT),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else str(value),
)
def test_constant(ep_host: Host, attribute: dict[str, Any], output_type: int) -> None:
    """Every kind of value that is a tensor of numbers. (Stock onnxruntime folds the node itself.)"""
    model = make_model("Constant", {}, [output_type], **attribute)
    reference: Any = ReferenceEvaluator(model)
    assert_same(ep_host.session(model).run(None, {})[0], np.asarray(reference.run(None, {})[0]))


# ---- The library ----


def test_the_library_unloads(tmp_path: Path) -> None:
    """Register, run and unregister ten times: each time it is gone from the process."""
    name = "OrtAbiCpuUnloadTest"
    library = build_plugin(tmp_path / "libcpu_ep_unload.so", name)
    for _ in range(10):
        stock = StockHost(library, name)
        assert [d.ep_vendor for d in stock.devices] == ["ort-abi"]
        assert str(library) in Path("/proc/self/maps").read_text()
        check_node(stock, "Add", {"a": values((2,), np.float32), "b": values((2,), np.float32)})
        stock.close()
        assert str(library) not in Path("/proc/self/maps").read_text()


def test_operators_it_does_not_have_are_not_claimed(ep_host: Host) -> None:
    """With fallback forbidden the session says which node nobody took."""
    with pytest.raises(Exception, match=r"Det|assigned to the default CPU EP"):
        run_ep(ep_host, "Det", {"x": values((2, 2), np.float32)})
