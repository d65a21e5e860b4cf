"""MatMul and Gemm, with weights that are packed and not."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from tests.support.cpu_ep import (
    REALS,
    WIDE_INTEGERS,
    DType,
    Host,
    assert_same,
    check_fails,
    check_node,
    make_model,
    make_unranked_binary,
    name_of,
    onnx_type,
    run_ep,
    values,
)

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
