"""Softmax and the reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.support.cpu_ep import (
    REALS,
    WIDE_INTEGERS,
    Array,
    DType,
    Host,
    assert_same,
    check_fails,
    check_node,
    ints,
    make_model,
    name_of,
    run_ep,
    values,
)


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
