"""What the `onnx` package says about a model, as the plain data that `tests.support.native_model` gives."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

KINDS = {
    AttributeProto.INT: "INT",
    AttributeProto.INTS: "INTS",
    AttributeProto.FLOAT: "FLOAT",
    AttributeProto.FLOATS: "FLOATS",
    AttributeProto.STRING: "STRING",
    AttributeProto.STRINGS: "STRINGS",
    AttributeProto.GRAPH: "GRAPH",
    AttributeProto.TENSOR: "TENSOR",
}
ALIASES = {"ai.onnx": ""}
_FACTS = json.loads((Path(__file__).parents[1] / "abi" / "facts.json").read_text())
_PREFIX = "ONNX_TENSOR_ELEMENT_DATA_TYPE_"
_ELEMENT_TYPES = {
    name.removeprefix(_PREFIX): number
    for enum in _FACTS["enums"].values()
    for name, number in enum["values"].items()
    if name.startswith(_PREFIX)
}


def element_type(proto: int) -> int:
    """The ABI's number of an element type: that of ONNX's name for it."""
    return _ELEMENT_TYPES[TensorProto.DataType.Name(proto)]


def onnx_domain(domain: str) -> str:
    """The domain's one name: "ai.onnx" is ""."""
    return ALIASES.get(domain, domain)


def opset_versions(model: onnx.ModelProto) -> dict[str, int]:
    """Imported operator sets; models before IR version 3 mean version 1 of ONNX's."""
    return {onnx_domain(entry.domain): entry.version for entry in model.opset_import} or {"": 1}


def properties(model: onnx.ModelProto) -> dict[str, Any]:
    """IR version, operator sets and metadata."""
    return {
        "ir_version": model.ir_version,
        "opsets": opset_versions(model),
        "metadata": {
            "ProducerName": model.producer_name,
            "GraphName": model.graph.name,
            "Domain": model.domain,
            "Description": model.doc_string,
            "GraphDescription": model.graph.doc_string,
            "Version": model.model_version,
            "custom": {entry.key: entry.value for entry in model.metadata_props},
        },
    }


def tensor(proto: TensorProto, folder: Path | None = None) -> tuple[int, tuple[int, ...], Any]:
    """Element type, shape, and the bytes as raw data would have them, or the strings."""
    shape = tuple(proto.dims)
    if proto.data_type == TensorProto.STRING:
        return element_type(proto.data_type), shape, list(proto.string_data)
    if proto.HasField("raw_data"):
        return element_type(proto.data_type), shape, proto.raw_data
    values = numpy_helper.to_array(proto, str(folder or ""))
    return element_type(proto.data_type), shape, numpy_helper.from_array(values).raw_data


def sparse_tensor(proto: onnx.SparseTensorProto) -> tuple[int, tuple[int, ...], Any]:
    """The dense form."""
    values = numpy_helper.to_array(proto.values)
    indices = numpy_helper.to_array(proto.indices)
    shape = tuple(proto.dims)
    dense = np.zeros(shape, values.dtype)
    flat = np.ravel_multi_index(tuple(indices.T), shape) if indices.ndim == 2 else indices
    dense.reshape(-1)[flat] = values
    return element_type(proto.values.data_type), shape, dense.tobytes()


def attribute(proto: AttributeProto, scope: set[str], opsets: dict[str, int], folder: Path | None) -> Any:
    """Kind and value; ("undefined", None) for the kinds that the ABI does not have."""
    kind = KINDS.get(proto.type, "undefined")
    if kind == "GRAPH":
        return kind, graph(proto.g, opsets, folder, scope)
    if kind == "TENSOR":
        return kind, tensor(proto.t, folder)
    value: Any = onnx.helper.get_attribute_value(proto) if kind != "undefined" else []
    if kind == "undefined":
        return kind, None
    return kind, list(value) if kind in ("INTS", "FLOATS", "STRINGS") else value


def since_version(node: onnx.NodeProto, opsets: dict[str, int]) -> int:
    """Version of the node's operator; of the operator set where the operator is unknown, else 1."""
    domain = onnx_domain(node.domain)
    version = opsets.get(domain, 0)
    try:
        return int(onnx.defs.get_schema(node.op_type, version, domain).since_version)
    except onnx.defs.SchemaError:
        return version or 1


def defined_names(proto: onnx.GraphProto) -> set[str]:
    """Names of values that the graph itself defines."""
    names = {value.name for value in proto.input} | {item.name for item in proto.initializer}
    names |= {item.values.name for item in proto.sparse_initializer}
    return names | {name for node in proto.node for name in node.output}


def captured_names(proto: onnx.GraphProto) -> set[str]:
    """Names that a subgraph uses but does not define."""
    used = {value.name for value in proto.output}
    for node in proto.node:
        used |= set(node.input)
        for item in node.attribute:
            if item.type == AttributeProto.GRAPH:
                used |= captured_names(item.g)
    return used - defined_names(proto) - {""}


def graph(
    proto: onnx.GraphProto, opsets: dict[str, int], folder: Path | None = None, scope: Iterable[str] = ()
) -> dict[str, Any]:
    """A graph and its subgraphs."""
    names = set(scope) | defined_names(proto)
    initializers = {item.name: tensor(item, folder) for item in proto.initializer}
    initializers |= {item.values.name: sparse_tensor(item) for item in proto.sparse_initializer}
    nodes = []
    for node in proto.node:
        subgraphs = [item.g for item in node.attribute if item.type == AttributeProto.GRAPH]
        nodes.append(
            {
                "name": node.name,
                "op_type": node.op_type,
                "domain": onnx_domain(node.domain),
                "since_version": since_version(node, opsets),
                "inputs": list(node.input),
                "outputs": list(node.output),
                "implicit_inputs": set().union(*map(captured_names, subgraphs)),
                "attributes": {item.name: attribute(item, names, opsets, folder) for item in node.attribute},
            }
        )
    return {
        "name": proto.name,
        "inputs": [value.name for value in proto.input],
        "outputs": [value.name for value in proto.output],
        "initializers": initializers,
        "nodes": nodes,
    }


# ---- Types ----


def value_type(proto: onnx.TypeProto) -> Any:
    """As `NativeModel.type` gives it."""
    kind = proto.WhichOneof("value")
    if kind is None:
        return None
    part = getattr(proto, kind)
    if kind in ("tensor_type", "sparse_tensor_type"):
        shape = [dimension(dim) for dim in part.shape.dim] if part.HasField("shape") else None
        return ("tensor" if kind == "tensor_type" else "sparse", element_type(part.elem_type), shape)
    if kind == "map_type":
        return ("map", element_type(part.key_type), value_type(part.value_type))
    if kind == "opaque_type":
        return ("unknown",)
    name = "seq" if kind == "sequence_type" else "optional"
    return (name, value_type(part.elem_type) or ("unknown",))


def dimension(proto: Any) -> int | str | None:
    """A number, a name, or None."""
    if proto.WhichOneof("value") == "dim_value":
        return int(proto.dim_value) if proto.dim_value >= 0 else None
    return str(proto.dim_param) or None


def declared_types(proto: onnx.GraphProto) -> dict[str, Any]:
    """Types that the graph states: of inputs, then initializers, then outputs, then other values."""
    types: dict[str, Any] = {}
    for value in proto.input:
        types.setdefault(value.name, value_type(value.type))
    for item in proto.initializer:
        if types.get(item.name) is None:
            types[item.name] = ("tensor", element_type(item.data_type), list(item.dims))
    for value in [*proto.output, *proto.value_info]:
        if types.get(value.name) is None:
            types[value.name] = value_type(value.type)
    return {name: known for name, known in types.items() if known is not None}


def without_shapes(known: Any) -> Any:
    """The type with nothing said of dimensions."""
    if known is None:
        return None
    if known[0] in ("tensor", "sparse"):
        return known[:2]
    return tuple(without_shapes(part) if isinstance(part, tuple) else part for part in known)


def without_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that states no types but those of its main graph's inputs and of initializers."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _forget_types(copy.graph)
    return copy


def _forget_types(proto: onnx.GraphProto) -> None:
    del proto.value_info[:]
    for value in proto.output:
        value.ClearField("type")
    for node in proto.node:
        for item in node.attribute:
            if item.type == AttributeProto.GRAPH:
                for value in item.g.input:
                    value.ClearField("type")
                _forget_types(item.g)
