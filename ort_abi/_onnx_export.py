"""`Graph.to_model_proto`: a host's graph as an `onnx.ModelProto`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from ort_abi import dtypes
from ort_abi._tensor import encode_element
from ort_abi.graph import (
    Graph,
    MapType,
    Node,
    OpAttr,
    OptionalType,
    SequenceType,
    TensorType,
    ValueInfo,
    ValueType,
)

__all__ = ["model_from_graph"]

MAX_IR_VERSION = 10


def model_from_graph(graph: Graph) -> onnx.ModelProto:
    """See `Graph.to_model_proto`."""
    proto = _graph(graph, outer=set())
    opsets = [
        helper.make_opsetid("" if domain == "ai.onnx" else domain, version)
        for domain, version in graph.opsets.items()
    ]
    model = helper.make_model(proto, opset_imports=opsets)
    model.ir_version = graph.ir_version or MAX_IR_VERSION
    return model


def _graph(graph: Graph, outer: set[str]) -> onnx.GraphProto:
    """`outer`: names that an enclosing graph defines."""
    constants = dict(graph.initializers)
    inputs = [value for value in graph.inputs if value.name not in constants]
    known = outer | {value.name for value in graph.inputs} | constants.keys()
    known |= {value.name for node in graph.nodes for value in node.outputs if value is not None}
    for value in _used(graph.nodes):
        if value.name not in known and value.is_constant_initializer:
            constants[value.name] = value
            known.add(value.name)
    return helper.make_graph(
        [_node(node, known) for node in graph.nodes],
        graph.name or "graph",
        [_value_info(value) for value in inputs],
        [_value_info(value) for value in graph.outputs],
        [_initializer(value) for value in constants.values()],
    )


def _domains(graph: Graph) -> Iterable[str]:
    for node in graph.nodes:
        yield node.domain
        for subgraph in node.subgraphs.values():
            yield from _domains(subgraph)


def _used(nodes: Iterable[Node]) -> Iterable[ValueInfo]:
    for node in nodes:
        yield from (value for value in (*node.inputs, *node.implicit_inputs) if value is not None)


def _initializer(value: ValueInfo) -> onnx.TensorProto:
    array = value.initializer
    if array is None:
        raise TypeError(f"initializer {value.name!r} has no value that the ABI can carry")
    return _tensor(array, value.name)


def _tensor(array: NDArray[Any], name: str) -> onnx.TensorProto:
    element_type = dtypes.to_onnx(array.dtype)
    proto = onnx.TensorProto(name=name, dims=array.shape, data_type=dtypes.to_proto(element_type))
    if element_type == dtypes.STRING:  # what they are, UTF-8 or not
        proto.string_data.extend(encode_element(item) for item in array.reshape(-1).tolist())
        return proto
    packed = dtypes.is_packed(element_type)
    proto.raw_data = (dtypes.pack(array, element_type) if packed else np.ascontiguousarray(array)).tobytes()
    return proto


def _node(node: Node, known: set[str]) -> onnx.NodeProto:
    proto = helper.make_node(
        node.op_type,
        ["" if value is None else value.name for value in node.inputs],
        ["" if value is None else value.name for value in node.outputs],
        name=node.name,
        domain=node.domain,
    )
    for name, attribute in node.op_attributes.items():
        if name not in node.subgraphs:
            proto.attribute.append(_attribute(node, attribute))
    for name, subgraph in node.subgraphs.items():
        proto.attribute.append(
            onnx.AttributeProto(name=name, type=onnx.AttributeProto.GRAPH, g=_graph(subgraph, known))
        )
    return proto


_KINDS = {
    1: onnx.AttributeProto.INT,
    2: onnx.AttributeProto.INTS,
    3: onnx.AttributeProto.FLOAT,
    4: onnx.AttributeProto.FLOATS,
    5: onnx.AttributeProto.STRING,
    6: onnx.AttributeProto.STRINGS,
}


def _attribute(node: Node, attribute: OpAttr) -> onnx.AttributeProto:
    try:
        value = attribute.value
    except TypeError as error:
        raise TypeError(f"node {node.label}: {error}") from error
    if isinstance(value, np.ndarray):
        return onnx.AttributeProto(
            name=attribute.name, type=onnx.AttributeProto.TENSOR, t=_tensor(value, attribute.name)
        )
    return helper.make_attribute(attribute.name, value, attr_type=_KINDS[attribute.type])


def _value_info(value: ValueInfo) -> onnx.ValueInfoProto:
    proto = onnx.ValueInfoProto(name=value.name)
    if value.type is not None:
        proto.type.CopyFrom(_type(value.name, value.type))
    return proto


def _type(name: str, kind: ValueType | None) -> onnx.TypeProto:
    if isinstance(kind, TensorType) and not kind.sparse:
        return helper.make_tensor_type_proto(dtypes.to_proto(kind.element_type), kind.shape)
    if isinstance(kind, SequenceType):
        return helper.make_sequence_type_proto(_type(name, kind.element))
    if isinstance(kind, OptionalType):
        return helper.make_optional_type_proto(_type(name, kind.element))
    if isinstance(kind, MapType):
        return helper.make_map_type_proto(dtypes.to_proto(kind.key_type), _type(name, kind.value))
    raise TypeError(f"value {name!r} has a type that cannot be exported: {kind}")
