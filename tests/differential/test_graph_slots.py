"""What the Graph_*, Node_* and ValueInfo_* slots say about graphs that are made here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper

from tests.differential import expected_model as expected
from tests.fuzz.mutate import BYTES, VARINT, Field, serialize
from tests.support.native_model import NativeHost, NativeModel, OrtError

FLOAT = TensorProto.FLOAT
NOT_IMPLEMENTED, INVALID_PROTOBUF, INVALID_GRAPH, INVALID_ARGUMENT, NOT_FOUND = 9, 7, 10, 2, 14
FLAGS = [
    "IsRequiredGraphInput",
    "IsOptionalGraphInput",
    "IsGraphOutput",
    "IsConstantInitializer",
    "IsFromOuterScope",
]

Read = Callable[..., NativeModel]


def info(name: str, shape: list[Any] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, [2] if shape is None else shape)


def weight(name: str) -> TensorProto:
    return helper.make_tensor(name, FLOAT, [2], [1.0, 2.0])


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[str],
    outputs: list[str],
    weights: list[str] | None = None,
    ir_version: int = 8,
    opset: int = 17,
) -> onnx.ModelProto:
    """A model of float tensors of shape [2]."""
    initializers = [weight(name) for name in weights or []]
    graph = helper.make_graph(
        nodes, "main", [info(n) for n in inputs], [info(n) for n in outputs], initializers
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


@pytest.fixture
def read(native_host: NativeHost) -> Any:
    """Reads a model; all are released at the end."""
    models = []

    def read_one(proto: onnx.ModelProto | bytes) -> NativeModel:
        source = proto if isinstance(proto, bytes) else proto.SerializeToString()
        models.append(NativeModel(native_host, source))
        return models[-1]

    yield read_one
    for one in models:
        one.close()


def refused(read: Read, proto: onnx.ModelProto | bytes, code: int, *parts: str) -> None:
    """The model is refused with that code and a message that has all parts."""
    with pytest.raises(OrtError) as raised:
        read(proto)
    assert raised.value.code == code
    for part in parts:
        assert part in str(raised.value)


def by_name(native: NativeModel, graph: Any = None) -> dict[str, Any]:
    """Every value that a graph's inputs, outputs, initializers and nodes name."""
    graph = native.graph_handle() if graph is None else graph
    found: dict[str, Any] = {}
    for what in ("Graph_Inputs", "Graph_Outputs", "Graph_Initializers"):
        found |= {native.name(value): value for value in native.values(what, graph)}
    for node in native.node_handles(graph):
        for what in ("Node_Inputs", "Node_Outputs", "Node_ImplicitInputs"):
            found |= {native.name(value): value for value in native.values(what, node)}
    return found


def flags(native: NativeModel, value: Any) -> set[str]:
    """The `ValueInfo_Is...` slots that say yes."""
    return {flag for flag in FLAGS if native.host.get(f"ValueInfo_{flag}", "bool", value)}


def node_names(native: NativeModel, graph: Any = None) -> list[str]:
    graph = native.graph_handle() if graph is None else graph
    return [native.host.text("Node_GetName", node) for node in native.node_handles(graph)]


def consumers(native: NativeModel, value: Any) -> list[tuple[str, int]]:
    """(node name, input index) of every use."""
    host = native.host
    count = host.get("ValueInfo_GetValueNumConsumers", "size_t", value)
    nodes, indices = host.ffi.new("const OrtNode*[]", count), host.ffi.new("int64_t[]", count)
    host.check(host.api.ValueInfo_GetValueConsumers(value, nodes, indices, count))
    return [(host.text("Node_GetName", node), index) for node, index in zip(nodes, indices, strict=True)]


def producer(native: NativeModel, value: Any) -> tuple[str, int] | None:
    """(node name, output index), or None."""
    host = native.host
    node, index = host.ffi.new("const OrtNode**"), host.ffi.new("size_t*")
    host.check(host.api.ValueInfo_GetValueProducer(value, node, index))
    return None if node[0] == host.ffi.NULL else (host.text("Node_GetName", node[0]), index[0])


def view_of(native: NativeModel, names: list[str], graph: Any = None) -> Any:
    """A view of the nodes of those names; the caller releases it."""
    host = native.host
    graph = native.graph_handle() if graph is None else graph
    nodes = [node for node in native.node_handles(graph) if host.text("Node_GetName", node) in names]
    array = host.ffi.new("const OrtNode*[]", nodes)
    return host.get("Graph_GetGraphView", "OrtGraph*", graph, array, len(nodes))


# ---- Values ----


def test_graph_input_with_an_initializer_is_optional_and_not_constant(read: Read) -> None:
    native = read(model([helper.make_node("Add", ["x", "w"], ["y"], "n")], ["x", "w"], ["y"], ["w"]))
    values = by_name(native)
    assert flags(native, values["x"]) == {"IsRequiredGraphInput"}
    assert flags(native, values["w"]) == {"IsOptionalGraphInput"}
    assert flags(native, values["y"]) == {"IsGraphOutput"}
    assert native.names("Graph_Inputs", native.graph_handle()) == ["x", "w"]
    assert native.names("Graph_Initializers", native.graph_handle()) == ["w"]


def test_before_ir_version_4_no_initializer_can_be_overridden(read: Read) -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"], "n")]
    native = read(model(nodes, ["x", "w"], ["y"], ["w"], ir_version=3))
    assert flags(native, by_name(native)["w"]) == {"IsConstantInitializer"}


def test_initializer_that_is_no_input_is_constant(read: Read) -> None:
    native = read(model([helper.make_node("Add", ["x", "w"], ["y"], "n")], ["x"], ["y"], ["w"]))
    w = by_name(native)["w"]
    assert flags(native, w) == {"IsConstantInitializer"}
    assert native.tensor(native.host.get("ValueInfo_GetInitializerValue", "const OrtValue*", w))[1] == (2,)
    null = native.host.ffi.NULL
    assert native.host.get("ValueInfo_GetExternalInitializerInfo", "OrtExternalInitializerInfo*", w) == null
    x = by_name(native)["x"]
    assert native.host.get("ValueInfo_GetInitializerValue", "const OrtValue*", x) == null


def test_producers_and_consumers(read: Read) -> None:
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], "split"),
        helper.make_node("Mul", ["a", "a"], ["c"], "square"),
        helper.make_node("Add", ["c", "b"], ["y"], "sum"),
    ]
    native = read(model(nodes, ["x"], ["y"]))
    values = by_name(native)
    assert producer(native, values["x"]) is None
    assert producer(native, values["b"]) == ("split", 1)
    assert consumers(native, values["a"]) == [("square", 0), ("square", 1)]
    assert consumers(native, values["b"]) == [("sum", 1)]
    assert consumers(native, values["y"]) == []


def test_missing_optional_inputs_and_unwanted_outputs_are_null(read: Read) -> None:
    nodes = [
        helper.make_node("Clip", ["x", "", "high"], ["a"], "clip"),
        helper.make_node("TopK", ["a", "k"], ["", "y"], "topk"),
    ]
    proto = model(nodes, ["x", "high"], [])
    proto.graph.input.append(helper.make_tensor_value_info("k", TensorProto.INT64, [1]))
    proto.graph.output.append(helper.make_tensor_value_info("y", TensorProto.INT64, [2]))
    native = read(proto)
    clip, topk = native.node_handles(native.graph_handle())
    null = native.host.ffi.NULL
    assert [value == null for value in native.values("Node_Inputs", clip)] == [False, True, False]
    assert [value == null for value in native.values("Node_Outputs", topk)] == [True, False]


def test_symbolic_dimensions(read: Read) -> None:
    proto = model([helper.make_node("Neg", ["x"], ["y"], "n")], [], [])
    proto.graph.input.append(info("x", ["N", 3, None]))
    proto.graph.output.append(helper.make_tensor_value_info("y", FLOAT, None))
    types = read(proto).value_types()
    assert types["x"] == ("tensor", FLOAT, ["N", 3, None])
    assert types["y"] == ("tensor", FLOAT, None)


# ---- Subgraphs ----


def nested_model() -> onnx.ModelProto:
    """If in If: the inner branches use values of both graphs around them."""
    leaf = helper.make_graph([helper.make_node("Add", ["x", "mid"], ["p"], "add")], "leaf", [], [info("p")])
    other = helper.make_graph([helper.make_node("Mul", ["w", "w"], ["q"], "mul")], "other", [], [info("q")])
    inner = helper.make_node("If", ["c"], ["r"], "inner", then_branch=leaf, else_branch=other)
    middle_nodes = [helper.make_node("Neg", ["x"], ["mid"], "neg"), inner]
    middle = helper.make_graph(middle_nodes, "middle", [], [info("r")])
    plain = helper.make_graph([helper.make_node("Identity", ["w"], ["s"], "id")], "plain", [], [info("s")])
    outer = helper.make_node("If", ["c"], ["y"], "outer", then_branch=middle, else_branch=plain)
    proto = model([outer], ["x"], ["y"], ["w"])
    proto.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, [1]))
    return proto


def test_implicit_inputs_at_every_level(read: Read) -> None:
    native = read(nested_model())
    graph = native.graph_handle()
    (outer,) = native.node_handles(graph)
    assert native.names("Node_Inputs", outer) == ["c"]
    assert native.names("Node_ImplicitInputs", outer) == ["w", "x", "c"]
    subgraphs = native.subgraph_handles(outer)
    assert list(subgraphs) == ["else_branch", "then_branch"]
    middle = subgraphs["then_branch"]
    inner = native.node_handles(middle)[1]
    assert sorted(native.names("Node_ImplicitInputs", inner)) == ["mid", "w", "x"]
    assert consumers(native, by_name(native)["x"]) == [("outer", -1)]
    assert consumers(native, by_name(native)["c"]) == [("outer", 0), ("outer", -1)]
    assert consumers(native, by_name(native, middle)["mid"]) == [("inner", -1)]
    assert consumers(native, by_name(native, middle)["x"]) == [("neg", 0), ("inner", -1)]


def test_captured_values_know_that_they_come_from_outside(read: Read) -> None:
    native = read(nested_model())
    (outer,) = native.node_handles(native.graph_handle())
    middle = native.subgraph_handles(outer)["then_branch"]
    inner = native.node_handles(middle)[1]
    leaf = native.subgraph_handles(inner)["then_branch"]
    values = by_name(native, leaf)
    assert flags(native, values["x"]) == {"IsFromOuterScope"}
    assert flags(native, values["mid"]) == {"IsFromOuterScope"}
    assert producer(native, values["mid"]) is None
    assert flags(native, values["p"]) == {"IsGraphOutput"}
    assert native.value_types(leaf)["x"] == ("tensor", FLOAT, [2])
    w = by_name(native, native.subgraph_handles(inner)["else_branch"])["w"]
    assert flags(native, w) == {"IsFromOuterScope", "IsConstantInitializer"}
    tensor = native.host.get("ValueInfo_GetInitializerValue", "const OrtValue*", w)
    assert native.tensor(tensor)[:2] == (FLOAT, (2,))
    assert native.values("Graph_Initializers", native.subgraph_handles(inner)["else_branch"]) == []


def test_parents_of_subgraphs(read: Read) -> None:
    native = read(nested_model())
    host = native.host
    graph = native.graph_handle()
    (outer,) = native.node_handles(graph)
    middle = native.subgraph_handles(outer)["then_branch"]
    assert host.get("Graph_GetParentNode", "const OrtNode*", graph) == host.ffi.NULL
    assert host.get("Graph_GetParentNode", "const OrtNode*", middle) == outer
    assert host.get("Node_GetGraph", "const OrtGraph*", outer) == graph
    assert host.text("Graph_GetName", middle) == "middle"
    assert host.text("Graph_GetModelPath", middle) == ""


def test_a_subgraph_may_give_a_name_of_its_own(read: Read) -> None:
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["w"], "inside")], "b", [], [info("w")])
    node = helper.make_node("If", ["c"], ["y"], "if", then_branch=body, else_branch=body)
    proto = model([node], ["x"], ["y"], ["w"])
    proto.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, [1]))
    native = read(proto)
    (handle,) = native.node_handles(native.graph_handle())
    assert native.names("Node_ImplicitInputs", handle) == ["x"]


# ---- Attributes ----


def test_attributes_by_name(read: Read) -> None:
    native = read(model([helper.make_node("Elu", ["x"], ["y"], "n", alpha=2.0)], ["x"], ["y"]))
    host = native.host
    (node,) = native.node_handles(native.graph_handle())
    attribute = host.get("Node_GetAttributeByName", "const OrtOpAttr*", node, b"alpha")
    assert host.text("OpAttr_GetName", attribute) == "alpha"
    with pytest.raises(OrtError, match="no attribute 'beta'") as raised:
        host.get("Node_GetAttributeByName", "const OrtOpAttr*", node, b"beta")
    assert raised.value.code == NOT_FOUND


def test_an_optional_attribute_that_is_not_set_is_null_without_an_error(read: Read) -> None:
    native = read(model([helper.make_node("Elu", ["x"], ["y"], "n")], ["x"], ["y"]))
    (node,) = native.node_handles(native.graph_handle())
    found = native.host.get("Node_GetAttributeByName", "const OrtOpAttr*", node, b"alpha")
    assert found == native.host.ffi.NULL


def test_a_node_that_no_ep_has_taken_has_an_empty_ep_name(read: Read) -> None:
    native = read(model([helper.make_node("Neg", ["x"], ["y"], "n")], ["x"], ["y"]))
    (node,) = native.node_handles(native.graph_handle())
    assert native.host.text("Node_GetEpName", node) == ""


# ---- Order ----


def test_nodes_are_sorted_when_the_file_is_not(read: Read) -> None:
    nodes = [
        helper.make_node("Add", ["b", "c"], ["y"], "last"),
        helper.make_node("Neg", ["a"], ["b"], "second"),
        helper.make_node("Abs", ["a"], ["c"], "third"),
        helper.make_node("Exp", ["x"], ["a"], "first"),
    ]
    assert node_names(read(model(nodes, ["x"], ["y"]))) == ["first", "second", "third", "last"]


def test_sorting_respects_what_subgraphs_capture(read: Read) -> None:
    body = helper.make_graph([helper.make_node("Neg", ["a"], ["z"], "inside")], "b", [], [info("z")])
    nodes = [
        helper.make_node("If", ["c"], ["y"], "if", then_branch=body, else_branch=body),
        helper.make_node("Exp", ["x"], ["a"], "first"),
    ]
    proto = model(nodes, ["x"], ["y"])
    proto.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, [1]))
    assert node_names(read(proto)) == ["first", "if"]


def test_a_hundred_thousand_nodes_backwards(read: Read) -> None:
    count = 100_000
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    native = read(model(nodes[::-1], ["v0"], [f"v{count}"]))
    handles = native.node_handles(native.graph_handle())
    assert len(handles) == count
    assert native.names("Node_Inputs", handles[0]) == ["v0"]
    assert native.names("Node_Outputs", handles[-1]) == [f"v{count}"]


# ---- Graphs that are wrong ----


def test_a_value_made_twice_is_refused(read: Read) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["y"], "one"), helper.make_node("Abs", ["x"], ["y"], "two")]
    refused(read, model(nodes, ["x"], ["y"]), INVALID_GRAPH, "'two' (Abs)", "'y'", "twice")
    nodes = [helper.make_node("Neg", ["x"], ["w"], "one")]
    refused(read, model(nodes, ["x"], ["w"], ["w"]), INVALID_GRAPH, "'one' (Neg)", "'w'", "twice")
    refused(read, model([], ["x", "x"], ["x"]), INVALID_GRAPH, "'x'", "twice")
    refused(read, model([], ["x"], ["x"], ["w", "w"]), INVALID_GRAPH, "'w'", "twice")


def test_an_input_that_nothing_makes_is_refused(read: Read) -> None:
    nodes = [helper.make_node("Add", ["x", "ghost"], ["y"], "one")]
    refused(read, model(nodes, ["x"], ["y"]), INVALID_GRAPH, "'one' (Add)", "input 1 'ghost'")
    refused(read, model([], ["x"], ["ghost"]), INVALID_GRAPH, "output 'ghost'")
    body = helper.make_graph([helper.make_node("Neg", ["ghost"], ["z"], "inside")], "b", [], [info("z")])
    node = helper.make_node("If", ["x"], ["y"], "if", then_branch=body, else_branch=body)
    refused(read, model([node], ["x"], ["y"]), INVALID_GRAPH, "'if' (If)", "'inside' (Neg)", "'ghost'")


def test_a_cycle_is_refused(read: Read) -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], "one"), helper.make_node("Neg", ["a"], ["b"], "two")]
    refused(read, model(nodes, ["x"], ["b"]), INVALID_GRAPH, "cycle", "'main'")
    refused(
        read, model([helper.make_node("Add", ["x", "y"], ["y"], "own")], ["x"], ["y"]), INVALID_GRAPH, "cycle"
    )


def nested_ifs(depth: int) -> bytes:
    """A model of that many graphs in each other; the `onnx` package cannot make deep ones."""
    parts = onnx.GraphProto(name="b", output=[info("y")])
    body = onnx.GraphProto(node=[helper.make_node("Neg", ["x"], ["y"])]).SerializeToString()
    for _ in range(depth - 1):
        branch = [Field(1, BYTES, data=b"then_branch"), Field(20, VARINT, value=AttributeProto.GRAPH)]
        branch.append(Field(6, BYTES, data=body + parts.SerializeToString()))
        node = helper.make_node("Own", ["c"], ["y"], domain="own").SerializeToString()
        node += serialize([Field(5, BYTES, data=serialize(branch))])
        body = serialize([Field(1, BYTES, data=node)])
    parts.input.extend([info("x"), helper.make_tensor_value_info("c", TensorProto.BOOL, [1])])
    proto = onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)])
    head: bytes = proto.SerializeToString()
    return head + serialize([Field(7, BYTES, data=body + parts.SerializeToString())])


def test_subgraphs_that_are_too_deep_are_refused(read: Read) -> None:
    native = read(nested_ifs(64))
    assert node_names(native) == [""]
    refused(read, nested_ifs(65), INVALID_GRAPH, "64")
    refused(read, nested_ifs(5000), INVALID_GRAPH, "64")


def test_types_that_are_too_deep_are_refused(read: Read) -> None:
    proto = helper.make_tensor_type_proto(FLOAT, [1])
    for _ in range(40):
        proto = helper.make_sequence_type_proto(proto)
    deep = model([], [], [])
    deep.graph.input.append(helper.make_value_info("x", proto))
    refused(read, deep, INVALID_GRAPH, "'x'", "32")


@pytest.mark.parametrize(
    ("node", "part"),
    [
        (helper.make_node("Add", ["x"], ["y"], "n"), "1 inputs, the operator takes 2 to 2"),
        (helper.make_node("Neg", ["x", "x"], ["y"], "n"), "2 inputs, the operator takes 1 to 1"),
        (helper.make_node("Concat", [], ["y"], "n", axis=0), "0 inputs, the operator needs at least 1"),
        (helper.make_node("Neg", ["x"], ["y", "z"], "n"), "2 outputs, the operator takes 1 to 1"),
        (helper.make_node("Add", ["x", ""], ["y"], "n"), "input 1 'B' is missing"),
        (helper.make_node("Neg", ["x"], ["y"], "n", alpha=1.0), "no attribute 'alpha'"),
        (
            helper.make_node("Elu", ["x"], ["y"], "n", alpha=1),
            "'alpha' has ONNX type 2, the operator's has 1",
        ),
        (helper.make_node("Concat", ["x"], ["y"], "n"), "lacks the attribute 'axis'"),
        (helper.make_node("Upsample", ["x", "x"], ["y"], "n"), "deprecated since version 10"),
    ],
)
def test_nodes_that_their_operator_does_not_allow_are_refused(
    read: Read, node: onnx.NodeProto, part: str
) -> None:
    refused(read, model([node], ["x"], ["y"]), INVALID_GRAPH, f"'n' ({node.op_type})", part)


def test_attributes_of_other_tools_are_left_alone(read: Read) -> None:
    node = helper.make_node("Neg", ["x"], ["y"], "n", __of_a_tool=1)
    assert read(model([node], ["x"], ["y"])).graph()["nodes"][0]["attributes"] == {"__of_a_tool": ("INT", 1)}


def test_models_without_versions_are_refused(read: Read) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["y"], "n")]
    proto = model(nodes, ["x"], ["y"])
    del proto.opset_import[:]
    refused(read, proto, INVALID_GRAPH, "operator set")
    proto.opset_import.append(helper.make_opsetid("other", 1))
    refused(read, proto, INVALID_GRAPH, "'n' (Neg)")
    proto = model(nodes, ["x"], ["y"])
    proto.ClearField("ir_version")
    refused(read, proto, INVALID_PROTOBUF, "IR version")
    refused(read, b"", INVALID_PROTOBUF, "0 graphs")


def test_tensors_of_another_size_than_their_shape_are_refused(read: Read) -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"], "n")]
    changes: list[tuple[dict[str, Any], str]] = [
        ({"dims": [3]}, "2 data entries"),
        ({"dims": [-2]}, "negative"),
        ({"dims": [2**40, 2**40]}, "too large"),
        ({"data_type": 99}, "element type 99"),
        ({"raw_data": b"1234567"}, "7 bytes"),
    ]
    for change, part in changes:
        proto = model(nodes, ["x"], ["y"], ["w"])
        tensor = proto.graph.initializer[0]
        for name, value in change.items():
            if name == "dims":
                del tensor.dims[:]
                tensor.dims.extend(value)
            else:
                setattr(tensor, name, value)
        refused(read, proto, INVALID_GRAPH, "initializer 'w'", part)


def list_attributes() -> list[AttributeProto]:
    """One of each kind that the ABI has no number for, by kind and number of elements."""
    kind = AttributeProto
    branch = helper.make_graph([helper.make_node("Neg", ["x"], ["o"])], "branch", [], [info("o")])
    sparse = onnx.SparseTensorProto(values=weight("s"), dims=[4])
    sparse.indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, [2], [0, 1]))
    known = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    return [
        kind(name="TENSORS2", type=kind.TENSORS, tensors=[weight("t"), weight("u")]),
        kind(name="TENSORS0", type=kind.TENSORS),
        kind(name="GRAPHS2", type=kind.GRAPHS, graphs=[branch, branch]),
        kind(name="SPARSE_TENSOR1", type=kind.SPARSE_TENSOR, sparse_tensor=sparse),
        kind(name="SPARSE_TENSORS1", type=kind.SPARSE_TENSORS, sparse_tensors=[sparse]),
        kind(name="TYPE_PROTO1", type=kind.TYPE_PROTO, tp=known),
        kind(name="TYPE_PROTOS2", type=kind.TYPE_PROTOS, type_protos=[known, known]),
    ]


def list_model(*attributes: AttributeProto) -> onnx.ModelProto:
    node = helper.make_node("Own", ["x"], ["y"], "n", domain="own", last=1)
    node.attribute.extend(attributes)
    return model([node], ["x"], ["y"])


def test_lists_of_tensors_graphs_and_types_are_there(read: Read) -> None:
    """Graphs among them are no subgraphs and capture nothing, as in stock onnxruntime."""
    proto = list_model(*list_attributes())
    native = read(proto)
    assert native.graph() == expected.graph(proto.graph, expected.opset_versions(proto))
    (node,) = native.graph()["nodes"]
    assert node["implicit_inputs"] == set()
    assert node["attributes"] == {item.name: ("undefined", None) for item in list_attributes()} | {
        "last": ("INT", 1)
    }


@pytest.mark.parametrize("attribute", list_attributes(), ids=lambda item: item.name)
def test_nothing_reads_what_the_abi_has_no_kind_for(read: Read, attribute: AttributeProto) -> None:
    native = read(list_model(attribute))
    host, (node,) = native.host, native.node_handles(native.graph_handle())
    handle = host.array("Node_Attributes", "const OrtOpAttr*", node)[1]
    assert host.text("OpAttr_GetName", handle) == attribute.name
    data = host.ffi.new("char[]", 64)
    calls: list[tuple[str, str, tuple[Any, ...]]] = [
        ("OpAttr_GetType", "OrtOpAttrType", (handle,)),
        ("OpAttr_GetTensorAttributeAsOrtValue", "OrtValue*", (handle,)),
        *(("ReadOpAttr", "size_t", (handle, kind, data, 64)) for kind in range(9)),
    ]
    for slot, result, arguments in calls:
        with pytest.raises(OrtError, match=f"{slot}: attribute '{attribute.name}'") as caught:
            host.get(slot, result, *arguments)
        assert caught.value.code == INVALID_ARGUMENT
    assert host.get("Node_GetNumSubgraphs", "size_t", node) == 0


def test_lists_are_arguments_of_functions(read: Read) -> None:
    kind = AttributeProto
    inner = helper.make_node("Own", ["a"], ["b"], domain="own")
    inner.attribute.append(kind(name="many", type=kind.TENSORS, ref_attr_name="given"))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Calls", ["a"], ["b"], [inner], opsets, ["given"])
    call = helper.make_node("Calls", ["x"], ["y"], domain="own")
    call.attribute.append(kind(name="given", type=kind.TENSORS, tensors=[weight("t")]))
    proto = model([call], ["x"], ["y"])
    proto.functions.append(function)
    (node,) = read(proto).graph()["nodes"]
    assert (node["op_type"], node["attributes"]) == ("Own", {"many": ("undefined", None)})


@pytest.mark.parametrize(
    "attribute", [item for item in list_attributes() if item.name != "TENSORS0"], ids=lambda item: item.name
)
def test_damaged_elements_are_refused(read: Read, attribute: AttributeProto) -> None:
    member = next(field for field, _ in attribute.ListFields() if field.message_type is not None)
    whole = list_model(attribute).SerializeToString()
    element = getattr(attribute, member.name)
    data = (element if member.name in ("tp", "sparse_tensor") else element[0]).SerializeToString()
    assert whole.count(data) >= 1
    refused(read, whole.replace(data, b"\x0a\x7f" + data[2:], 1), INVALID_PROTOBUF, attribute.name)


# ---- Views ----


def view_model() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Neg", ["x"], ["a"], "n0"),
        helper.make_node("Add", ["a", "w"], ["b"], "n1"),
        helper.make_node("Mul", ["b", "v"], ["c"], "n2"),
        helper.make_node("Sub", ["c", "b"], ["d"], "n3"),
        helper.make_node("Add", ["d", "a"], ["y"], "n4"),
    ]
    return model(nodes, ["x", "v"], ["y", "c"], ["w", "v"])


def test_border_of_a_view(read: Read) -> None:
    native = read(view_model())
    view = view_of(native, ["n1", "n2"])
    assert node_names(native, view) == ["n1", "n2"]
    assert native.names("Graph_Inputs", view) == ["a", "w", "v"]
    assert native.names("Graph_Outputs", view) == ["b", "c"]
    assert native.names("Graph_Initializers", view) == ["w", "v"]
    values = by_name(native, view)
    assert flags(native, values["a"]) == {"IsRequiredGraphInput"}
    assert flags(native, values["w"]) == {"IsOptionalGraphInput", "IsConstantInitializer"}
    assert flags(native, values["v"]) == {"IsOptionalGraphInput"}
    assert flags(native, values["b"]) == {"IsGraphOutput"}
    native.host.api.ReleaseGraph(view)


def test_inside_of_a_view_only_its_nodes_count(read: Read) -> None:
    native = read(view_model())
    view = view_of(native, ["n1", "n3"])
    values = by_name(native, view)
    assert consumers(native, values["b"]) == [("n3", 1)]
    assert consumers(native, by_name(native)["b"]) == [("n2", 0), ("n3", 1)]
    assert producer(native, values["c"]) is None
    assert producer(native, values["b"]) == ("n1", 0)
    nodes = native.node_handles(view)
    graph = native.host.get("Node_GetGraph", "const OrtGraph*", nodes[0])
    assert graph == view
    ids = [native.host.get("Node_GetId", "size_t", node) for node in nodes]
    everywhere = native.node_handles(native.graph_handle())
    assert ids == [native.host.get("Node_GetId", "size_t", everywhere[i]) for i in (1, 3)]
    native.host.api.ReleaseGraph(view)


def test_a_view_of_a_view_and_of_nothing(read: Read) -> None:
    native = read(view_model())
    view = view_of(native, ["n1", "n2", "n3"])
    part = view_of(native, ["n3"], view)
    assert native.names("Graph_Inputs", part) == ["c", "b"]
    assert native.names("Graph_Outputs", part) == ["d"]
    nothing = view_of(native, [])
    assert node_names(native, nothing) == [] and native.names("Graph_Inputs", nothing) == []
    for graph in (part, nothing, view):
        native.host.api.ReleaseGraph(graph)


def test_a_view_of_a_node_with_subgraphs_takes_what_they_capture(read: Read) -> None:
    native = read(nested_model())
    view = view_of(native, ["outer"])
    assert native.names("Graph_Inputs", view) == ["c", "w", "x"]
    assert native.names("Graph_Initializers", view) == ["w"]
    assert list(native.subgraph_handles(native.node_handles(view)[0]))
    native.host.api.ReleaseGraph(view)


def test_views_of_nodes_that_do_not_fit_are_refused(read: Read) -> None:
    native, other = read(view_model()), read(view_model())
    host, graph = native.host, native.graph_handle()
    own, foreign = native.node_handles(graph)[0], other.node_handles(other.graph_handle())[0]
    for nodes, part in [([foreign], "'n0'"), ([own, own], "twice"), ([host.ffi.NULL], "NULL")]:
        array = host.ffi.new("const OrtNode*[]", nodes)
        with pytest.raises(OrtError, match=part) as raised:
            host.get("Graph_GetGraphView", "OrtGraph*", graph, array, len(nodes))
        assert raised.value.code == INVALID_ARGUMENT


# ---- Arguments ----


def test_arrays_that_are_too_small_are_refused(read: Read) -> None:
    native = read(view_model())
    host = native.host
    array = host.ffi.new("const OrtNode*[5]")
    with pytest.raises(OrtError, match="Graph_GetNodes: 'nodes' has room for 4 entries, 5 are needed"):
        host.check(host.api.Graph_GetNodes(native.graph_handle(), array, 4))
    host.check(host.api.Graph_GetNodes(native.graph_handle(), array, 6))


SLOTS = [
    "GetValueInfoName",
    "GetValueInfoTypeInfo",
    "CreateExternalInitializerInfo",
    "CreateOpAttr",
    "ReadOpAttr",
    "OpAttr_GetName",
    "OpAttr_GetType",
    "OpAttr_GetTensorAttributeAsOrtValue",
    *(f"ValueInfo_{name}" for name in FLAGS),
    *(f"ValueInfo_Get{name}" for name in ["ValueProducer", "ValueNumConsumers", "ValueConsumers"]),
    *(f"ValueInfo_Get{name}" for name in ["InitializerValue", "ExternalInitializerInfo"]),
    *(f"Graph_Get{name}" for name in ["Name", "ModelPath", "OnnxIRVersion", "ParentNode", "GraphView"]),
    *(f"Graph_Get{name}" for name in ["ModelMetadata", "NumOperatorSets", "OperatorSets"]),
    *(
        f"Graph_Get{num}{name}"
        for num in ("", "Num")
        for name in ["Inputs", "Outputs", "Initializers", "Nodes"]
    ),
    *(
        f"Node_Get{name}"
        for name in ["Id", "Name", "OperatorType", "Domain", "SinceVersion", "Graph", "EpName"]
    ),
    *(f"Node_Get{num}{name}" for num in ("", "Num") for name in ["Inputs", "Outputs", "ImplicitInputs"]),
    *(f"Node_Get{num}{name}" for num in ("", "Num") for name in ["Attributes", "Subgraphs"]),
    "Node_GetAttributeByName",
    *(
        f"ModelMetadataGet{name}"
        for name in ["ProducerName", "GraphName", "Domain", "Description", "Version"]
    ),
    *(
        f"ModelMetadata{name}"
        for name in ["GetGraphDescription", "LookupCustomMetadataMap", "GetCustomMetadataMapKeys"]
    ),
]


@pytest.mark.parametrize("slot", SLOTS)
def test_null_arguments_are_refused_by_name(native_host: NativeHost, slot: str) -> None:
    ffi, function = native_host.ffi, getattr(native_host.api, slot)
    arguments = ffi.typeof(function).args
    nulls = [ffi.NULL if argument.kind in ("pointer", "function") else 0 for argument in arguments]
    with pytest.raises(OrtError, match=rf"^{slot}: argument '\w+' is NULL$") as raised:
        native_host.check(function(*nulls))
    assert raised.value.code == INVALID_ARGUMENT
