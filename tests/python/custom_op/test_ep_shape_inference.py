"""Shapes that custom operators of Python providers infer."""

from __future__ import annotations

import gc
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from ep_support import HOSTS, model, open_session, registered
from onnx import helper

from ort_abi import ep
from ort_abi.graph import TensorType

DOMAIN = "test.shapes"
FLOAT = 1


class Boom(Exception):
    """Raised by the functions under test."""


class Repeats(ep.ExecutionProvider):
    """Repeats rows; says what becomes of the shape."""

    name = "RepeatsExecutionProvider"
    seen: ClassVar[list[Any]] = []
    kept: ClassVar[list[ep.ShapeInferContext]] = []
    answer: ClassVar[Any] = None

    @staticmethod
    def shapes(ctx: ep.ShapeInferContext) -> Any:
        Repeats.kept.append(ctx)
        times, text = ctx.attribute("times"), ctx.attribute("text", None)
        Repeats.seen.append((ctx.inputs, times, text))
        if Repeats.answer is not None:
            return Repeats.answer(ctx)
        (x,) = ctx.inputs
        assert x.shape is not None
        rows, *rest = x.shape
        return [(rows * times if isinstance(rows, int) else None, *rest)]

    custom_ops: ClassVar[Any] = [
        ep.CustomOp("Repeat", DOMAIN, [None], [None], infer_shapes=shapes),
        ep.CustomOp("Silent", DOMAIN, [None], [None]),
    ]

    def get_capability(self, graph: Any) -> Any:
        return graph.nodes

    def compile(self, graph: Any) -> Any:
        times = graph.nodes[0].attributes.get("times", 1)
        return lambda x: np.concatenate([x] * times)


@pytest.fixture(autouse=True)
def clean() -> None:
    Repeats.seen.clear()
    Repeats.kept.clear()
    Repeats.answer = None


def shape_of(host: ModuleType, op: str = "Repeat", rows: Any = 2, **attributes: Any) -> Any:
    """The shape of the session's output, which the model does not state."""
    node = helper.make_node(op, ["x"], ["y"], domain=DOMAIN, name="n", **attributes)
    bytes_ = model([node], {"x": (np.float32, [rows, 3])}, {"y": (np.float32, None)}, domains={DOMAIN: 1})
    with registered(host, Repeats):
        session = open_session(host, Repeats, bytes_)
        shape = session.get_outputs()[0].shape
        x = np.ones((2, 3), np.float32)
        assert np.shape(session.run(None, {"x": x})[0]) == (2 * attributes.get("times", 1), 3)
        del session
        gc.collect()
    return shape


def test_a_shape_is_inferred(host: ModuleType) -> None:
    assert list(shape_of(host, times=3)) == [6, 3]


def test_what_the_function_is_told(host: ModuleType) -> None:
    shape_of(host, times=3, text="ä")
    assert Repeats.seen
    for inputs, times, text in Repeats.seen:
        assert (inputs, times, text) == ((TensorType(FLOAT, (2, 3)),), 3, "ä")


def test_names_of_dimensions_go_through(host: ModuleType) -> None:
    Repeats.answer = lambda ctx: [("out", *ctx.inputs[0].shape[1:])]
    assert list(shape_of(host, rows="n", times=2)) == ["out", 3]
    assert Repeats.seen[0][0] == (TensorType(FLOAT, ("n", 3)),)


def test_operators_without_the_function_have_no_shape(host: ModuleType) -> None:
    assert not shape_of(host, op="Silent")


def test_none_is_an_unknown_shape(host: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    Repeats.answer = lambda ctx: [None]
    assert not shape_of(host, times=2)
    assert "InferOutputShapeFn" not in capfd.readouterr().err


def test_the_context_is_dead_after_the_call(host: ModuleType) -> None:
    shape_of(host, times=2)
    with pytest.raises(RuntimeError, match="valid only during infer_shapes"):
        Repeats.kept[0].attribute("times")


def raises(ctx: ep.ShapeInferContext) -> Any:
    raise Boom("it broke here")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (raises, "Boom: it broke here"),
        (lambda ctx: ctx.attribute("none"), "KeyError: 'none'"),
        (lambda ctx: 5, "TypeError: 'int' object is not iterable"),
    ],
)
def test_what_the_function_raises(
    host: ModuleType, answer: Any, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The shape stays unknown. Our host logs why, stock onnxruntime drops it."""
    Repeats.answer = answer
    assert not shape_of(host, times=2)
    told = capfd.readouterr().err
    if host is HOSTS["ours"]:
        assert "RepeatsExecutionProvider: OrtCustomOp::InferOutputShapeFn: " in told and message in told
    assert Repeats.seen


def test_numbers_of_numpy_are_dimensions(host: ModuleType) -> None:
    Repeats.answer = lambda ctx: [np.array([2, 1]) * ctx.inputs[0].shape]
    assert list(shape_of(host, times=2)) == [4, 3]


def test_a_dimension_that_is_no_number_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    Repeats.answer = lambda ctx: [(4.0, 3)]
    assert not shape_of(HOSTS["ours"], times=2)
    assert "InferOutputShapeFn: TypeError" in capfd.readouterr().err
