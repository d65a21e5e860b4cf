"""Calls of a model's own functions become the function's nodes, as in `onnx.inliner`."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, helper, inliner

from tests.differential import expected_model as expected
from tests.support.native_model import NativeHost, NativeModel, OrtError

FLOAT = TensorProto.FLOAT
INVALID_GRAPH = 10
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def info(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, [2])


def function(
    name: str,
    inputs: list[str],
    outputs: list[str],
    nodes: list[NodeProto],
    attributes: list[str] | None = None,
) -> FunctionProto:
    return helper.make_function("own", name, inputs, outputs, nodes, OPSETS, attributes)


def call(
    name: str, inputs: list[str], outputs: list[str], node_name: str = "", **attributes: Any
) -> NodeProto:
    return helper.make_node(name, inputs, outputs, node_name, domain="own", **attributes)


def reference(
    op_type: str, inputs: list[str], outputs: list[str], attribute: str, kind: Any, to: str
) -> NodeProto:
    """A node whose attribute is that of the function's call."""
    node = helper.make_node(op_type, inputs, outputs)
    node.attribute.append(AttributeProto(name=attribute, type=kind, ref_attr_name=to))
    return node


def model(
    nodes: list[NodeProto], functions: list[FunctionProto], outputs: list[str] | None = None
) -> onnx.ModelProto:
    inputs = [info("x"), info("y"), helper.make_tensor_value_info("c", TensorProto.BOOL, [1])]
    graph = helper.make_graph(nodes, "g", inputs, [info(name) for name in outputs or ["z"]])
    return helper.make_model(graph, functions=functions, opset_imports=OPSETS, ir_version=10)


def anonymous(graph: dict[str, Any], names: dict[str, str] | None = None, prefix: str = "") -> Any:
    """The graph with its own values named by place: equal for graphs that differ in names only."""
    names = dict(names or {})
    for i, name in enumerate(graph["inputs"]):
        names[name] = f"{prefix}input{i}"
    for n, node in enumerate(graph["nodes"]):
        for i, name in enumerate(node["outputs"]):
            names[name] = f"{prefix}{n}.{i}"
    names[""] = ""
    nodes = []
    for n, node in enumerate(graph["nodes"]):
        attributes = {
            key: (kind, anonymous(value, names, f"{prefix}{n}/{key}/") if kind == "GRAPH" else value)
            for key, (kind, value) in node["attributes"].items()
        }
        ends = {part: [names[name] for name in node[part]] for part in ("inputs", "outputs")}
        nodes.append((node["op_type"], node["domain"], node["since_version"], ends, attributes))
    return nodes, [names[name] for name in graph["outputs"]]


def check(host: NativeHost, proto: onnx.ModelProto) -> dict[str, Any]:
    """Our graph is the one that `onnx.inliner` makes, and no value is without a type; gives it."""
    with NativeModel(host, proto.SerializeToString()) as native:
        graph = native.graph()
        types = native.value_types()
    inlined = inliner.inline_local_functions(proto)
    assert not inlined.functions
    assert anonymous(graph) == anonymous(expected.graph(inlined.graph, expected.opset_versions(inlined)))
    assert None not in types.values()
    return graph


def refused(host: NativeHost, proto: onnx.ModelProto, code: int, *parts: str) -> None:
    """The model is refused with that code and a message that has all parts."""
    with pytest.raises(OrtError) as raised:
        NativeModel(host, proto.SerializeToString())
    assert raised.value.code == code
    for part in parts:
        assert part in str(raised.value)


SQUARE_SUM = function(
    "SquareSum",
    ["a", "b"],
    ["s"],
    [helper.make_node("Mul", ["a", "a"], ["t"], "square"), helper.make_node("Add", ["t", "b"], ["s"], "sum")],
)


def test_two_calls_do_not_share_names(native_host: NativeHost) -> None:
    nodes = [call("SquareSum", ["x", "y"], ["t"], "one"), call("SquareSum", ["t", "x"], ["z"], "two")]
    graph = check(native_host, model(nodes, [SQUARE_SUM]))
    assert [node["op_type"] for node in graph["nodes"]] == ["Mul", "Add", "Mul", "Add"]
    outputs = [name for node in graph["nodes"] for name in node["outputs"]]
    assert len(set(outputs)) == 4 and "t" in outputs and "z" in outputs
    names = [node["name"] for node in graph["nodes"]]
    assert len(set(names)) == 4 and names[0].endswith("square")


def test_functions_that_call_functions(native_host: NativeHost) -> None:
    twice = function(
        "Twice", ["a"], ["b"], [call("SquareSum", ["a", "a"], ["t"]), call("SquareSum", ["t", "a"], ["b"])]
    )
    check(native_host, model([call("Twice", ["x"], ["z"])], [SQUARE_SUM, twice]))


def test_inputs_and_outputs_that_a_call_leaves_out(native_host: NativeHost) -> None:
    clip = function(
        "Own",
        ["a", "low", "high"],
        ["b", "extra"],
        [helper.make_node("Clip", ["a", "low", "high"], ["b"]), helper.make_node("Neg", ["b"], ["extra"])],
    )
    check(native_host, model([call("Own", ["x", "", "y"], ["z"])], [clip]))
    check(native_host, model([call("Own", ["x"], ["", "z"])], [clip]))


def test_attributes_come_from_the_call(native_host: NativeHost) -> None:
    nodes = [
        reference("Elu", ["a"], ["t"], "alpha", AttributeProto.FLOAT, "slope"),
        reference("LeakyRelu", ["t"], ["b"], "alpha", AttributeProto.FLOAT, "leak"),
    ]
    own = function("Own", ["a"], ["b"], nodes, ["slope", "leak"])
    graph = check(native_host, model([call("Own", ["x"], ["z"], slope=0.25)], [own]))
    assert [node["attributes"] for node in graph["nodes"]] == [{"alpha": ("FLOAT", 0.25)}, {}]


def test_attributes_pass_through_nested_calls(native_host: NativeHost) -> None:
    inner = function(
        "Inner", ["a"], ["b"], [reference("Elu", ["a"], ["b"], "alpha", AttributeProto.FLOAT, "p")], ["p"]
    )
    body = call("Inner", ["a"], ["b"])
    body.attribute.append(AttributeProto(name="p", type=AttributeProto.FLOAT, ref_attr_name="q"))
    outer = function("Outer", ["a"], ["b"], [body], ["q"])
    graph = check(native_host, model([call("Outer", ["x"], ["z"], q=0.75)], [inner, outer]))
    assert graph["nodes"][0]["attributes"] == {"alpha": ("FLOAT", 0.75)}


def test_attributes_have_defaults(native_host: NativeHost) -> None:
    own = function("Own", ["a"], ["b"], [reference("Elu", ["a"], ["b"], "alpha", AttributeProto.FLOAT, "p")])
    own.attribute_proto.append(helper.make_attribute("p", 0.5))  # onnx.inliner does not know these
    cases: list[tuple[dict[str, Any], float]] = [({}, 0.5), ({"p": 2.0}, 2.0)]
    for given, expected_value in cases:
        proto = model([call("Own", ["x"], ["z"], **given)], [own])
        with NativeModel(native_host, proto.SerializeToString()) as native:
            assert native.graph()["nodes"][0]["attributes"] == {"alpha": ("FLOAT", expected_value)}


def branch(nodes: list[NodeProto], output: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, "branch", [], [info(output)])


def test_subgraphs_in_a_function_see_its_names(native_host: NativeHost) -> None:
    then_branch = branch(
        [helper.make_node("Add", ["a", "t"], ["y"])], "y"
    )  # its own y, while the call gives y for a
    else_branch = branch([call("SquareSum", ["t", "a"], ["q"])], "q")
    nodes = [
        helper.make_node("Neg", ["a"], ["t"]),
        helper.make_node("If", ["p"], ["b"], then_branch=then_branch, else_branch=else_branch),
    ]
    own = function("Own", ["p", "a"], ["b"], nodes)
    graph = check(native_host, model([call("Own", ["c", "y"], ["z"])], [SQUARE_SUM, own]))
    assert "y" in graph["nodes"][1]["implicit_inputs"]


def test_calls_in_subgraphs(native_host: NativeHost) -> None:
    body = branch([call("SquareSum", ["x", "y"], ["q"])], "q")
    node = helper.make_node("If", ["c"], ["z"], then_branch=body, else_branch=body)
    check(native_host, model([node], [SQUARE_SUM]))


def test_calls_that_are_out_of_order(native_host: NativeHost) -> None:
    nodes = [call("SquareSum", ["t", "x"], ["z"], "two"), call("SquareSum", ["x", "y"], ["t"], "one")]
    with NativeModel(native_host, model(nodes, [SQUARE_SUM]).SerializeToString()) as native:
        graph = native.graph()
    made: set[str] = {"x", "y", "c"}
    for node in graph["nodes"]:
        assert set(node["inputs"]) <= made
        made |= set(node["outputs"])


def test_overloads(native_host: NativeHost) -> None:
    one, two = FunctionProto(), FunctionProto()
    one.CopyFrom(function("Own", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])]))
    two.CopyFrom(function("Own", ["a"], ["b"], [helper.make_node("Abs", ["a"], ["b"])]))
    one.overload, two.overload = "first", "second"
    node = call("Own", ["x"], ["z"])
    node.overload = "second"
    assert [item["op_type"] for item in check(native_host, model([node], [one, two]))["nodes"]] == ["Abs"]


def test_functions_that_give_an_input_back_or_an_output_twice(native_host: NativeHost) -> None:
    """An Identity makes the caller's value; at a call in a call too."""
    own = function("Own", ["a"], ["a", "b", "b"], [helper.make_node("Neg", ["a"], ["b"])])
    outer = function("Outer", ["a"], ["p", "q", "r"], [call("Own", ["a"], ["p", "q", "r"])])
    with NativeModel(
        native_host, model([call("Outer", ["x"], ["z", "u", "v"])], [own, outer]).SerializeToString()
    ) as native:
        nodes = native.graph()["nodes"]
    ends = {(node["op_type"], *node["inputs"], *node["outputs"]) for node in nodes}
    assert ends == {("Neg", "x", "u"), ("Identity", "x", "z"), ("Identity", "u", "v")}


def test_a_function_has_its_own_operator_versions(native_host: NativeHost) -> None:
    own = function("Own", ["a"], ["b"], [helper.make_node("Softmax", ["a"], ["b"])])
    del own.opset_import[:]
    own.opset_import.append(helper.make_opsetid("", 12))
    proto = model([call("Own", ["x"], ["z"])], [own])
    with NativeModel(native_host, proto.SerializeToString()) as native:
        assert native.graph()["nodes"][0]["since_version"] == 11


def test_functions_that_cannot_be_are_refused(native_host: NativeHost) -> None:
    endless = function("Own", ["a"], ["b"], [call("Own", ["a"], ["b"])])
    refused(
        native_host, model([call("Own", ["x"], ["z"], "it")], [endless]), INVALID_GRAPH, "'it' (Own)", "64"
    )
    bomb = function("Own", ["a"], ["b"], [call("Own", ["a"], [f"t{i}"]) for i in range(100)])
    refused(native_host, model([call("Own", ["x"], ["z"])], [bomb]), INVALID_GRAPH)
    proto = model([call("SquareSum", ["x", "y", "x"], ["z"], "it")], [SQUARE_SUM])
    refused(native_host, proto, INVALID_GRAPH, "'it' (SquareSum)", "3 inputs", "has 2")
    proto = model([call("SquareSum", ["x", "y"], ["z"])], [SQUARE_SUM, SQUARE_SUM])
    refused(native_host, proto, INVALID_GRAPH, "'SquareSum'", "twice")
    closed = function("Own", ["a"], ["b"], [helper.make_node("Add", ["a", "y"], ["b"])])
    refused(native_host, model([call("Own", ["x"], ["z"])], [closed]), INVALID_GRAPH, "'y'")
    again = function(
        "Own", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["a"]), helper.make_node("Abs", ["a"], ["b"])]
    )
    refused(native_host, model([call("Own", ["x"], ["z"])], [again]), INVALID_GRAPH, "'Own'", "'a'", "twice")
    twice = function("Own", ["a", "a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])])
    refused(native_host, model([call("Own", ["x", "y"], ["z"])], [twice]), INVALID_GRAPH, "'a'", "twice")


def test_a_bomb_of_functions_is_refused(native_host: NativeHost) -> None:
    functions = [function("F0", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])])]
    for level in range(1, 30):
        calls = [call(f"F{level - 1}", ["a"], ["t"]), call(f"F{level - 1}", ["t"], ["b"])]
        functions.append(function(f"F{level}", ["a"], ["b"], calls))
    refused(native_host, model([call("F29", ["x"], ["z"])], functions), INVALID_GRAPH, "500000 nodes")
