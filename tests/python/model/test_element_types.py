"""Element types in model files: ONNX's numbers are not all the ABI's, and small ones lie in wider fields."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import NO_FALLBACK, FuseAll, open_session, registered
from onnx import TensorProto, helper, numpy_helper

import ort_abi
from ort_abi import dtypes
from ort_abi._enums import ONNXTensorElementDataType

NAMES = {
    name.removeprefix("ONNX_TENSOR_ELEMENT_DATA_TYPE_"): member.value
    for name, member in ONNXTensorElementDataType.__members__.items()
}
PROTO = {name: number for name, number in TensorProto.DataType.items() if name in NAMES and number}
NEWEST = ["FLOAT4E2M1", "FLOAT8E8M0", "UINT2", "INT2"]


class Shows(FuseAll):
    """Remembers the graph; never runs."""

    name = "ShowsExecutionProvider"
    graph: Any
    types: dict[str, int]

    def get_capability(self, graph: Any) -> Any:
        values = [value for node in graph.nodes for value in (*node.inputs, *node.outputs)]
        Shows.types = {value.name: value.type.element_type for value in values if value is not None}
        Shows.constants = {value.name: value.initializer for value in graph.initializers.values()}
        Shows.proto = graph.to_model_proto()
        return super().get_capability(graph)

    def compile(self, graph: Any) -> Any:
        raise RuntimeError("not to be run")

    constants: dict[str, Any]
    proto: onnx.ModelProto


def shown(nodes: list[onnx.NodeProto], outputs: dict[str, int], *constants: onnx.TensorProto) -> None:
    """Lets `Shows` see a model; x is float[4]."""
    values = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    graph = helper.make_graph(nodes, "g", [x], values, list(constants))
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    with registered(ort_abi, Shows), pytest.raises(ort_abi.errors.OrtError, match="not to be run"):
        open_session(ort_abi, Shows, proto.SerializeToString(), NO_FALLBACK)


def test_every_number_of_the_abi_has_one_of_onnx() -> None:
    numbers = {number: NAMES[name] for name, number in PROTO.items()}
    assert len(numbers) == 26 and {"FLOAT8E8M0", "UINT2", "INT2"} <= PROTO.keys()
    for proto, number in numbers.items():
        assert (dtypes.from_proto(proto), dtypes.to_proto(number)) == (number, proto)
    for unknown in (0, 27, 28, 99, -1):
        with pytest.raises(TypeError, match=f"TensorProto.DataType {unknown}"):
            dtypes.from_proto(unknown)


@pytest.mark.parametrize("name", [name for name in PROTO if name != "STRING"])
def test_constants_and_attributes(name: str) -> None:
    """What the graph says, the constant's elements, what Cast makes, and the graph as ONNX again."""
    number = PROTO[name]
    constant = helper.make_tensor("k", number, [4], [1, 0, 1, 1])
    nodes = [
        helper.make_node("Identity", ["k"], ["y"]),
        helper.make_node("Cast", ["x"], ["c"], to=number),
        helper.make_node("Identity", ["c"], ["z"]),
    ]
    if name.startswith("COMPLEX"):  # Cast makes none
        nodes = nodes[:1]
    shown(nodes, {"y": number}, constant)
    assert Shows.types["k"] == Shows.types["y"] == NAMES[name]
    assert len(nodes) == 1 or Shows.types["c"] == Shows.types["z"] == NAMES[name]
    expected = numpy_helper.to_array(constant)
    assert Shows.constants["k"].dtype == expected.dtype
    np.testing.assert_array_equal(Shows.constants["k"], expected)
    back = {tensor.name: tensor for tensor in Shows.proto.graph.initializer}["k"]
    assert back.data_type == number
    np.testing.assert_array_equal(numpy_helper.to_array(back), expected)


@pytest.mark.parametrize("name", NEWEST)
def test_other_attributes_with_element_types(name: str) -> None:
    number = PROTO[name]
    nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=number)]
    outputs = {"q": number}
    if name != "FLOAT8E8M0":  # which only scales are
        nodes.append(helper.make_node("DequantizeLinear", ["q", "s"], ["d"]))
        outputs = {"d": TensorProto.FLOAT}
    scale = helper.make_tensor("s", TensorProto.FLOAT, [], [1])
    shown(nodes, outputs, scale)
    assert Shows.types["q"] == NAMES[name]


@pytest.mark.parametrize("name", NEWEST)
def test_values_of_users(name: str) -> None:
    number = PROTO[name]
    value = ort_abi.OrtValue.ortvalue_from_shape_and_type([8], number)
    assert value.element_type() == number and value.data_type() == f"tensor({name.lower()})"
    size = value.tensor_size_in_bytes()
    bits = np.zeros(size, np.uint8) if name == "FLOAT8E8M0" else np.zeros(8, dtypes.from_onnx(NAMES[name]))
    array = ort_abi.OrtValue.ortvalue_from_numpy(bits)
    assert array.element_type() == (number if name != "FLOAT8E8M0" else TensorProto.UINT8)


def test_types_that_nobody_knows() -> None:
    for number in (27, 28, 99):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
        x.type.tensor_type.elem_type = number
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [x])
        graph.output[0].name = "y"
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
        with pytest.raises(ort_abi.errors.OrtError, match=f"'x' has the unknown element type {number}"):
            ort_abi.InferenceSession(proto.SerializeToString())


# ---- int32_data ----

OVER = [0, 1, 2, 127, 255, 256, 300, 65535, 65536, 70000, -1, -5, -300]


def constant(tensor: onnx.TensorProto) -> Any:
    """The tensor as our host reads it."""
    output = helper.make_tensor_value_info("k", tensor.data_type, None)
    graph = helper.make_graph([], "g", [], [output], [tensor])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return ort_abi.InferenceSession(proto.SerializeToString()).run(None, {})[0]


@pytest.mark.parametrize(
    "kind", ["INT8", "UINT8", "INT16", "UINT16", "FLOAT16", "BFLOAT16", "FLOAT8E4M3FN", "INT4", "UINT2"]
)
def test_what_does_not_fit_is_cut_as_the_onnx_package_does(kind: str) -> None:
    number = TensorProto.DataType.Value(kind)
    elements = {"INT4": 2, "UINT2": 4}.get(kind, 1)
    tensor = onnx.TensorProto(name="k", data_type=number, dims=[len(OVER) * elements], int32_data=OVER)
    expected, got = numpy_helper.to_array(tensor), constant(tensor)
    assert got.dtype == expected.dtype and got.tobytes() == expected.tobytes()


def test_bool_is_by_value() -> None:
    """As in stock: neither the lowest byte of a number decides, nor does a byte stay what it was."""
    tensor = onnx.TensorProto(name="k", data_type=TensorProto.BOOL, dims=[len(OVER)], int32_data=OVER)
    assert constant(tensor).view(np.uint8).tolist() == [0] + [1] * (len(OVER) - 1)
    tensor = onnx.TensorProto(name="k", data_type=TensorProto.BOOL, dims=[4], raw_data=b"\0\1\2\xff")
    assert constant(tensor).view(np.uint8).tolist() == [0, 1, 1, 1]
    tensor = onnx.TensorProto(name="k", data_type=TensorProto.BOOL, dims=[2], raw_data=b"\1\0")
    assert constant(tensor).tolist() == [True, False]
