"""`ort_abi.graph`: what providers see of a model, in every host."""

from __future__ import annotations

import contextlib
import gc
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import FuseAll, model, mul_model, open_session, registered, run_once, skip_old_stock
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from ort_abi import graph as graph_module

A = np.array([1, 2, 3], np.float32)
SPEC = (np.float32, [3])


def looked_at(host: ModuleType, model_bytes: bytes | Path, look: Any, main_only: bool = True) -> list[Any]:
    """What `look(graph)` returned in get_capability. The session itself runs on the host's CPU provider."""
    found: list[Any] = []

    class Looks(FuseAll):
        name = "LooksExecutionProvider"

        def get_capability(self, graph: Any) -> Any:
            if graph.parent_node is None or not main_only:
                found.append(look(graph))
            return []

    with (
        registered(host, Looks),
        contextlib.suppress(Exception),
    ):  # a model that nobody else runs is fine here
        session = open_session(host, Looks, model_bytes, fallback=True, optimize=False)
        del session
    gc.collect()
    assert found, "get_capability was not called, or look() raised"
    return found[:1]  # our host asks again for what nobody claimed


def test_names_types_and_shapes(host: ModuleType) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["t"], name="m"),
        helper.make_node("Relu", ["t"], ["y"], name="r"),
    ]
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    bytes_ = model(nodes, {"x": (np.float32, ["batch", 3])}, {"y": (np.float32, ["batch", 2])}, {"w": w})

    def look(graph: Any) -> Any:
        (x,), (y,) = graph.inputs, graph.outputs
        assert (graph.name, graph.opsets[""], graph.ir_version) == ("test", 18, 10)
        assert x.type == graph_module.TensorType(1, ("batch", 3))
        assert (x.dtype, x.shape, y.shape) == (np.dtype("float32"), ("batch", 3), ("batch", 2))
        assert x.is_required_graph_input and not x.is_optional_graph_input
        assert y.is_graph_output and not x.is_graph_output
        assert list(graph.initializers) == ["w"]
        weight = graph.initializers["w"]
        assert weight.is_constant_initializer and not x.is_constant_initializer
        assert x.initializer is None
        matmul, relu = graph.nodes
        assert [(n.name, n.op_type, n.domain, n.since_version) for n in graph.nodes] == [
            ("m", "MatMul", "", 13),
            ("r", "Relu", "", 14),
        ]
        assert [v.name for v in matmul.inputs] == ["x", "w"]
        assert relu.inputs[0] is matmul.outputs[0]
        assert matmul.outputs[0].producer == (matmul, 0)
        assert matmul.outputs[0].consumers == [(relu, 0)]
        assert x.producer is None
        assert matmul.graph is not None and matmul.id != relu.id
        assert matmul.ep_name == ""
        return weight.initializer

    (kept,) = looked_at(host, bytes_, look)
    np.testing.assert_array_equal(kept, w, strict=True)


@pytest.mark.parametrize("shapes", [True, False])
def test_the_path_of_the_model(host: ModuleType, tmp_path: Path, shapes: bool) -> None:
    """Also where the shapes of values were added to what is in the file."""
    nodes = [helper.make_node("Neg", ["a"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    made = onnx.load_model_from_string(model(nodes, {"a": SPEC}, {"y": SPEC}))
    if shapes:
        made = onnx.shape_inference.infer_shapes(made)
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    look = lambda graph: (graph.model_path, graph.nodes[0].outputs[0].shape)  # noqa: E731
    assert looked_at(host, path, look) == [(str(path), (3,))]
    assert looked_at(host, path.read_bytes(), look) == [("", (3,))]


def test_missing_optional_values_are_none(host: ModuleType) -> None:
    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    bytes_ = model([node], {"x": SPEC, "high": (np.float32, [])}, {"y": SPEC})
    (names,) = looked_at(
        host, bytes_, lambda graph: [value and value.name for value in graph.nodes[0].inputs]
    )
    assert names == ["x", None, "high"]


def test_every_kind_of_attribute(host: ModuleType) -> None:
    value = onnx.numpy_helper.from_array(np.array([2.5], np.float64))
    nodes = [
        helper.make_node("LeakyRelu", ["x"], ["a"], alpha=0.25),
        helper.make_node("ConstantOfShape", ["s"], ["b"], value=value),
        helper.make_node("Transpose", ["d"], ["e"], perm=[0, 1, 3, 2]),
        helper.make_node("DepthToSpace", ["d"], ["f"], blocksize=2, mode="CRD"),
        helper.make_node(
            "LabelEncoder",
            ["t"],
            ["g"],
            domain="ai.onnx.ml",
            keys_strings=["k" * 400, "", "ü"],
            values_floats=[1.0, 2.0, 3.0],
        ),
    ]
    image = (np.float32, [1, 4, 2, 2])
    bytes_ = model(
        nodes,
        {"x": SPEC, "s": (np.int64, [1]), "d": image, "t": (TensorProto.STRING, [1])},
        {
            "a": SPEC,
            "b": (np.float64, ["n"]),
            "e": image,
            "f": (np.float32, [1, 1, 4, 4]),
            "g": (np.float32, [1]),
        },
        domains={"ai.onnx.ml": 3},
    )
    (found,) = looked_at(host, bytes_, lambda graph: {node.op_type: node.attributes for node in graph.nodes})
    assert found["LeakyRelu"] == {"alpha": 0.25}
    assert found["Transpose"] == {"perm": [0, 1, 3, 2]}
    assert found["DepthToSpace"] == {"blocksize": 2, "mode": "CRD"}
    np.testing.assert_array_equal(found["ConstantOfShape"]["value"], np.array([2.5]), strict=True)
    encoder = found["LabelEncoder"]
    assert encoder["keys_strings"] == ["k" * 400, "", "ü"]
    assert encoder["values_floats"] == [1.0, 2.0, 3.0]


def test_attributes_that_the_abi_cannot_carry(host: ModuleType) -> None:
    """They are there, do not hide the others, and cannot be read. "__": what no schema is asked about."""
    kind = onnx.AttributeProto
    tensor = helper.make_tensor("t", TensorProto.FLOAT, [2], [1, 2])
    branch = helper.make_graph([helper.make_node("Neg", ["a"], ["o"])], "g", [], [])
    known = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    lists = [
        kind(name="__tensors", type=kind.TENSORS, tensors=[tensor, tensor]),
        kind(name="__none", type=kind.TENSORS),
        kind(name="__graphs", type=kind.GRAPHS, graphs=[branch]),
        kind(name="__type", type=kind.TYPE_PROTO, tp=known),
        kind(name="__types", type=kind.TYPE_PROTOS, type_protos=[known]),
    ]
    node = helper.make_node("Elu", ["a"], ["y"], alpha=0.5)
    node.attribute.extend(lists)

    def look(graph: Any) -> Any:
        (seen,) = graph.nodes
        assert set(seen.op_attributes) == {"alpha", *(item.name for item in lists)}
        assert seen.attributes == {"alpha": 0.5} and seen.subgraphs == {} and seen.implicit_inputs == ()
        for item in lists:
            assert seen.op_attributes[item.name].type == 0
            with pytest.raises(TypeError, match=item.name):
                seen.op_attributes[item.name].value  # noqa: B018
        with pytest.raises(TypeError, match=r"'__.*cannot carry"):
            graph.to_model_proto()
        return "looked"

    assert looked_at(host, model([node], {"a": SPEC}, {"y": SPEC}), look) == ["looked"]


def if_model() -> bytes:
    """y = c ? a + w : a - a, both branches capture."""

    def branch(op: str, second: str) -> Any:
        value = helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])
        return helper.make_graph([helper.make_node(op, ["a", second], ["o"])], op, [], [value])

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("Add", "w"), else_branch=branch("Sub", "a")
    )
    return model([node], {"c": (bool, []), "a": SPEC}, {"y": SPEC}, {"w": A * 10})


def test_subgraphs(host: ModuleType) -> None:
    def look(graph: Any) -> Any:
        (node,) = graph.nodes
        assert sorted(value.name for value in node.implicit_inputs) == ["a", "w"]
        then = node.subgraphs["then_branch"]
        assert then.parent_node is node
        (add,) = then.nodes
        assert [value.name for value in add.inputs] == ["a", "w"]
        assert add.inputs[0].is_from_outer_scope
        assert node.attributes["then_branch"] is then
        return [inner.op_type for inner in node.subgraphs["else_branch"].nodes]

    assert looked_at(host, if_model(), look) == [["Sub"]]


def test_use_after_the_callback_is_an_error(host: ModuleType) -> None:
    kept: list[Any] = []
    looked_at(host, mul_model(), lambda graph: kept.extend([graph, graph.nodes[0], graph.inputs[0]]))
    graph, node, value = kept
    for read in (
        lambda: graph.outputs,
        lambda: node.op_type,
        lambda: node.inputs[0].name,
        lambda: value.name,
        lambda: value.initializer,
        lambda: graph.to_model_proto(),
    ):
        with pytest.raises(RuntimeError, match="valid only during the callback"):
            read()


def test_what_was_read_during_the_callback_can_be_kept(host: ModuleType) -> None:
    kept: list[Any] = []

    def look(graph: Any) -> None:
        kept.append(graph.nodes[0])
        assert kept[0].op_type == "Mul"

    looked_at(host, mul_model(), look)
    assert kept[0].op_type == "Mul"


def test_types_of_values_that_are_no_tensors(host: ModuleType) -> None:
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    node = helper.make_node("SequenceInsert", ["s", "x"], ["y"])
    bytes_ = model([node], {"s": sequence, "x": SPEC}, {"y": sequence})
    (kind,) = looked_at(host, bytes_, lambda graph: graph.inputs[0].type)
    assert isinstance(kind, graph_module.SequenceType)
    assert isinstance(kind.element, graph_module.TensorType)
    assert kind.element.element_type == 1


@pytest.mark.parametrize("number", [TensorProto.BFLOAT16, TensorProto.INT4, TensorProto.FLOAT8E5M2])
def test_initializers_of_types_that_numpy_lacks(host: ModuleType, number: int) -> None:
    weight = helper.make_tensor(
        "w", number, [3], [1.0, 2.0, 3.0] if number != TensorProto.INT4 else [1, -2, 3]
    )
    node = helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)
    graph = helper.make_graph(
        [node], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])], [weight]
    )
    bytes_ = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    ).SerializeToString()
    (found,) = looked_at(host, bytes_, lambda graph: graph.initializers["w"].initializer)
    np.testing.assert_array_equal(found.astype(float), onnx.numpy_helper.to_array(weight).astype(float))


class Exported(FuseAll):
    """Runs what it exported."""

    name = "ExportedExecutionProvider"
    proto: onnx.ModelProto

    def get_capability(self, graph: Any) -> Any:
        return [] if graph.parent_node is not None else [graph.nodes]

    def compile(self, graph: Any) -> Any:
        proto = type(self).proto = graph.to_model_proto()
        onnx.checker.check_model(proto, full_check=True)
        evaluator = ReferenceEvaluator(proto)
        names = [value.name for value in proto.graph.input]
        return lambda *arrays: tuple(evaluator.run(None, dict(zip(names, arrays, strict=True))))


def test_export_with_subgraphs_and_captured_constants(host: ModuleType) -> None:
    skip_old_stock(host)
    for condition, expected in ((True, A * 11), (False, A * 0)):
        feeds = {"c": np.array(condition), "a": A}
        np.testing.assert_array_equal(run_once(host, Exported, if_model(), feeds)[0], expected)
    branches = {attribute.name: attribute.g for attribute in Exported.proto.graph.node[0].attribute}
    assert [node.op_type for node in branches["then_branch"].node] == ["Add"]


def test_export_keeps_attributes_and_constants(host: ModuleType) -> None:
    value = onnx.numpy_helper.from_array(np.array([7], np.float32))
    nodes = [
        helper.make_node("LeakyRelu", ["x"], ["t"], alpha=0.25, name="leak"),
        helper.make_node("Add", ["t", "w"], ["u"], name="add"),
        helper.make_node("ConstantOfShape", ["s"], ["v"], value=value, name="const"),
        helper.make_node("Concat", ["u", "v"], ["y"], axis=0, name="cat"),
    ]
    bytes_ = model(nodes, {"x": SPEC, "s": (np.int64, [1])}, {"y": (np.float32, ["n"])}, {"w": A})
    x = np.array([-4, 0, 4], np.float32)
    outputs = run_once(host, Exported, bytes_, {"x": x, "s": np.array([2], np.int64)})
    np.testing.assert_array_equal(outputs[0], [-1 + 1, 0 + 2, 4 + 3, 7, 7])
    assert sorted(node.name for node in Exported.proto.graph.node) == ["add", "cat", "const", "leak"]
