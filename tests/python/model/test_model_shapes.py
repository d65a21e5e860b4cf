"""Shapes that providers see of models from the wild: stale declarations, shapes computed from shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import NO_FALLBACK, FuseAll, open_session, registered
from onnx import TensorProto, helper, numpy_helper

import ort_abi


class Sees(FuseAll):
    """Remembers the shapes of what nodes make; never runs."""

    name = "SeesExecutionProvider"
    shapes: dict[str, Any]

    def get_capability(self, graph: Any) -> Any:
        made = [value for node in graph.nodes for value in node.outputs]
        Sees.shapes = {value.name: value.type.shape for value in made}
        return super().get_capability(graph)

    def compile(self, graph: Any) -> Any:
        raise RuntimeError("not to be run")


def seen(proto: onnx.ModelProto) -> dict[str, Any]:
    with registered(ort_abi, Sees), pytest.raises(ort_abi.errors.OrtError, match="not to be run"):
        open_session(ort_abi, Sees, proto.SerializeToString(), NO_FALLBACK)
    return Sees.shapes


def exported(declared: list[str]) -> onnx.ModelProto:
    """x [N, 3, 4] as [N, 12], as exporters write it. `declared`: what value_info names, as float[1, 2]."""
    node, value = helper.make_node, helper.make_tensor_value_info
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Shape", ["r"], ["s"]),
        node("Gather", ["s", "zero"], ["g"]),
        node("Unsqueeze", ["g", "axes"], ["u"]),
        node("Concat", ["u", "rest"], ["c"], axis=0),
        node("Reshape", ["r", "c"], ["q"]),
        node("Relu", ["q"], ["y"]),
    ]
    numbers = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([12])}
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, ["N", 3, 4])],
        [value("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array.astype(np.int64), name) for name, array in numbers.items()],
        value_info=[value(name, TensorProto.FLOAT, [1, 2]) for name in declared],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


KNOWN = {"r": ("N", 3, 4), "s": (3,), "g": (), "u": (1,), "c": (2,), "q": ("N", 12), "y": ("N", 12)}


def test_shapes_computed_from_shapes_come_through() -> None:
    assert seen(exported([])) == KNOWN


@pytest.mark.parametrize("count", [1, 6, 7, 30])
def test_declarations_of_values_that_are_not_there_hide_nothing(count: int) -> None:
    assert seen(exported([f"stale{i}" for i in range(count)])) == KNOWN


def test_long_names_and_outputs_that_nobody_wants() -> None:
    proto = exported([])
    shapes = seen(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    assert shapes == KNOWN
    for node in proto.graph.node:
        node.input[:] = [name * 300 if name in ("r", "q") else name for name in node.input]
        node.output[:] = [name * 300 if name in ("r", "q") else name for name in node.output]
        node.name = node.output[0] + "/node"
    proto.graph.value_info.extend(exported([f"stale{i}" for i in range(9)]).graph.value_info)
    shapes = seen(proto)
    assert (shapes["r" * 300], shapes["q" * 300]) == (KNOWN["r"], KNOWN["q"])
