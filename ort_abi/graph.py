"""Read-only graphs over the tables of any host: what `get_capability` and `compile` of a provider are given.

Everything here belongs to the host and is valid during one callback; use afterwards raises RuntimeError.
Arrays (attributes, initializers) are copies and can be kept. Source: the `Graph_*`, `Node_*`, `ValueInfo_*`
and `OpAttr_*` slots (API 23) and `OrtTypeInfo` queries.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ort_abi import dtypes
from ort_abi._lib import CData, check, ffi
from ort_abi._tensor import copy_tensor
from ort_abi.errors import InvalidArgument

if TYPE_CHECKING:
    import onnx

__all__ = [
    "Graph",
    "MapType",
    "Node",
    "OpAttr",
    "OptionalType",
    "OtherType",
    "SequenceType",
    "TensorType",
    "ValueInfo",
    "ValueType",
    "open_graph",
    "open_objects",
    "read_shape_info",
    "read_type",
]

_T = TypeVar("_T")
NULL = ffi.NULL


@dataclass(frozen=True)
class TensorType:
    """A tensor: `element_type` is an `ONNXTensorElementDataType`; `shape` has an int, a name or None a
    dimension and is None if even the rank is unknown."""

    element_type: int
    shape: tuple[int | str | None, ...] | None
    sparse: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype (raises as `ort_abi.dtypes.from_onnx`)."""
        return dtypes.from_onnx(self.element_type)


@dataclass(frozen=True)
class SequenceType:
    """A sequence of values."""

    element: ValueType | None


@dataclass(frozen=True)
class OptionalType:
    """A value that may be missing."""

    element: ValueType | None


@dataclass(frozen=True)
class MapType:
    """A map; `key_type` is an `ONNXTensorElementDataType`."""

    key_type: int
    value: ValueType | None


@dataclass(frozen=True)
class OtherType:
    """A kind of value (an `ONNXType`) that cannot be looked into."""

    kind: int


ValueType = TensorType | SequenceType | OptionalType | MapType | OtherType


class _Scope:
    """The time in which a host's objects are valid, and the Python objects made for them."""

    __slots__ = ("api", "objects")

    def __init__(self, api: CData) -> None:
        self.api: CData | None = api
        self.objects: dict[tuple[Any, CData], Any] = {}

    def open(self) -> CData:
        if self.api is None:
            raise RuntimeError(
                "this object belongs to the host and was valid only during the callback that it came with: "
                "read what you need there (arrays and strings can be kept)"
            )
        return self.api

    def get(self, cls: Callable[[_Scope, CData], _T], pointer: CData) -> _T:
        """The one Python object of a pointer."""
        self.open()
        key = (cls, pointer)
        found = self.objects.get(key)
        if found is None:
            found = self.objects[key] = cls(self, pointer)
        return found


class _Object:
    def __init__(self, scope: _Scope, pointer: CData) -> None:
        self._scope = scope
        self._pointer = pointer

    def _get(self, slot: str, out_type: str) -> Any:
        api = self._scope.open()
        out = ffi.new(out_type)
        check(getattr(api, slot)(self._pointer, out), api)
        return out[0]

    def _text(self, slot: str) -> str:
        pointer = self._get(slot, "const char**")
        return "" if pointer == NULL else ffi.string(pointer).decode("utf-8", "surrogateescape")

    def _list(self, count_slot: str, slot: str, item_type: str) -> list[Any]:
        api = self._scope.open()
        count = self._get(count_slot, "size_t*")
        if not count:
            return []
        out = ffi.new(f"{item_type}[]", count)
        check(getattr(api, slot)(self._pointer, out, count), api)
        return list(out)

    def _values(self, count_slot: str, slot: str) -> tuple[ValueInfo | None, ...]:
        found = self._list(count_slot, slot, "const OrtValueInfo*")
        return tuple(None if pointer == NULL else self._scope.get(ValueInfo, pointer) for pointer in found)


class ValueInfo(_Object):
    """A value of a graph: an input, an initializer or an output of a node."""

    def __repr__(self) -> str:
        return f"<ValueInfo {self.name!r}>"

    @cached_property
    def name(self) -> str:
        """The value's name (`GetValueInfoName`, API 22)."""
        return self._text("GetValueInfoName")

    @cached_property
    def type(self) -> ValueType | None:
        """The type, None if the host does not know it (`GetValueInfoTypeInfo`, API 22)."""
        pointer = self._get("GetValueInfoTypeInfo", "const OrtTypeInfo**")
        return None if pointer == NULL else read_type(self._scope.open(), pointer)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type. Raises TypeError if the value is no tensor."""
        return self._tensor_type().dtype

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """The shape as in `TensorType`. Raises TypeError if the value is no tensor."""
        return self._tensor_type().shape

    def _tensor_type(self) -> TensorType:
        if not isinstance(self.type, TensorType):
            raise TypeError(f"value {self.name!r} is no tensor but {self.type}")
        return self.type

    @property
    def is_graph_output(self) -> bool:
        """True for an output of the graph (`ValueInfo_IsGraphOutput`)."""
        return bool(self._get("ValueInfo_IsGraphOutput", "bool*"))

    @property
    def is_required_graph_input(self) -> bool:
        """True for an input that has no default (`ValueInfo_IsRequiredGraphInput`)."""
        return bool(self._get("ValueInfo_IsRequiredGraphInput", "bool*"))

    @property
    def is_optional_graph_input(self) -> bool:
        """True for an input that an initializer gives a default (`ValueInfo_IsOptionalGraphInput`)."""
        return bool(self._get("ValueInfo_IsOptionalGraphInput", "bool*"))

    @property
    def is_constant_initializer(self) -> bool:
        """True for a constant, also one of an outer graph (`ValueInfo_IsConstantInitializer`)."""
        return bool(self._get("ValueInfo_IsConstantInitializer", "bool*"))

    @property
    def is_from_outer_scope(self) -> bool:
        """True for a value that a subgraph captures (`ValueInfo_IsFromOuterScope`)."""
        return bool(self._get("ValueInfo_IsFromOuterScope", "bool*"))

    @property
    def producer(self) -> tuple[Node, int] | None:
        """The node that makes the value and which of its outputs it is (`ValueInfo_GetValueProducer`)."""
        api = self._scope.open()
        node, index = ffi.new("const OrtNode**"), ffi.new("size_t*")
        check(api.ValueInfo_GetValueProducer(self._pointer, node, index), api)
        return None if node[0] == NULL else (self._scope.get(Node, node[0]), int(index[0]))

    @property
    def consumers(self) -> list[tuple[Node, int]]:
        """Nodes that read the value, each with the input's index; -1 for one that a subgraph captures
        (`ValueInfo_GetValueConsumers`)."""
        api = self._scope.open()
        count = self._get("ValueInfo_GetValueNumConsumers", "size_t*")
        if not count:
            return []
        nodes, indices = ffi.new("const OrtNode*[]", count), ffi.new("int64_t[]", count)
        check(api.ValueInfo_GetValueConsumers(self._pointer, nodes, indices, count), api)
        return [(self._scope.get(Node, nodes[i]), int(indices[i])) for i in range(count)]

    @property
    def initializer(self) -> NDArray[Any] | None:
        """The initializer's value, None for a value without one. *copies*
        (`ValueInfo_GetInitializerValue`)."""
        api = self._scope.open()
        out = ffi.new("const OrtValue**")
        check(api.ValueInfo_GetInitializerValue(self._pointer, out), api)
        return None if out[0] == NULL else copy_tensor(api, out[0])


class OpAttr(_Object):
    """An attribute of a node."""

    def __init__(self, scope: _Scope, pointer: CData) -> None:
        super().__init__(scope, pointer)
        self._subgraph: Graph | None = None

    def __repr__(self) -> str:
        return f"<OpAttr {self.name!r}>"

    @cached_property
    def name(self) -> str:
        """The attribute's name (`OpAttr_GetName`)."""
        return self._text("OpAttr_GetName")

    @cached_property
    def type(self) -> int:
        """The kind, an `OrtOpAttrType` (`OpAttr_GetType`); 0 for kinds that the ABI cannot carry."""
        try:
            return int(self._get("OpAttr_GetType", "OrtOpAttrType*"))
        except InvalidArgument:
            return 0

    @cached_property
    def value(self) -> Any:
        """int, float, str, lists of those, a NumPy array (*copies*) or a `Graph`. str falls back to bytes
        where the attribute is no UTF-8. Raises TypeError for kinds that the ABI cannot carry."""
        kind = self.type
        if kind == 7:
            if self._subgraph is None:
                raise RuntimeError(f"attribute {self.name!r}: read a graph through Node.attributes")
            return self._subgraph
        if kind == 8:
            return self._tensor()
        decode = _ATTRIBUTE_DECODERS.get(kind)
        if decode is None:
            raise TypeError(
                f"attribute {self.name!r} has a kind that the ABI cannot carry (OrtOpAttrType {kind})"
            )
        return decode(self._read(kind))

    def _read(self, kind: int) -> bytes:
        api = self._scope.open()
        size, needed = 256, ffi.new("size_t*")
        while True:
            buffer = ffi.new("char[]", size)
            status = api.ReadOpAttr(self._pointer, kind, buffer, size, needed)
            if status == NULL or needed[0] <= size:
                check(status, api)
                return bytes(ffi.buffer(buffer, needed[0]))
            api.ReleaseStatus(status)
            size = needed[0]

    def _tensor(self) -> NDArray[Any] | None:
        api = self._scope.open()
        value = self._get("OpAttr_GetTensorAttributeAsOrtValue", "OrtValue**")
        if value == NULL:
            return None
        try:
            return copy_tensor(api, value)
        finally:
            api.ReleaseValue(value)


def _decode_text(raw: bytes) -> str | bytes:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


def _decode_texts(raw: bytes) -> list[str | bytes]:
    return [_decode_text(part) for part in raw.split(b"\0")[:-1]]


_ATTRIBUTE_DECODERS: dict[int, Callable[[bytes], Any]] = {
    1: lambda raw: struct.unpack("=q", raw[:8])[0],
    2: lambda raw: np.frombuffer(raw, np.int64).tolist(),
    3: lambda raw: struct.unpack("=f", raw[:4])[0],
    4: lambda raw: np.frombuffer(raw, np.float32).tolist(),
    5: _decode_text,
    6: _decode_texts,
}


class Node(_Object):
    """A node of a graph."""

    def __repr__(self) -> str:
        return f"<Node {self.label}>"

    @cached_property
    def label(self) -> str:
        """Name and operator, for messages: `'conv1' (Conv)`."""
        domain = f"{self.domain}::" if self.domain else ""
        return f"{self.name!r} ({domain}{self.op_type})"

    @cached_property
    def id(self) -> int:
        """The node's number in its graph (`Node_GetId`)."""
        return int(self._get("Node_GetId", "size_t*"))

    @cached_property
    def name(self) -> str:
        """The node's name, may be "" (`Node_GetName`)."""
        return self._text("Node_GetName")

    @cached_property
    def op_type(self) -> str:
        """The operator's name (`Node_GetOperatorType`)."""
        return self._text("Node_GetOperatorType")

    @cached_property
    def domain(self) -> str:
        """The operator's domain, "" for ONNX's own (`Node_GetDomain`)."""
        return _domain(self._text("Node_GetDomain"))

    @cached_property
    def since_version(self) -> int:
        """First opset with this form of the operator (`Node_GetSinceVersion`)."""
        return int(self._get("Node_GetSinceVersion", "int*"))

    @cached_property
    def inputs(self) -> tuple[ValueInfo | None, ...]:
        """The inputs, None for an optional one that is missing (`Node_GetInputs`)."""
        return self._values("Node_GetNumInputs", "Node_GetInputs")

    @cached_property
    def outputs(self) -> tuple[ValueInfo | None, ...]:
        """The outputs, None for an optional one that is missing (`Node_GetOutputs`)."""
        return self._values("Node_GetNumOutputs", "Node_GetOutputs")

    @cached_property
    def implicit_inputs(self) -> tuple[ValueInfo, ...]:
        """Values that the node's subgraphs capture (`Node_GetImplicitInputs`)."""
        found = self._values("Node_GetNumImplicitInputs", "Node_GetImplicitInputs")
        return tuple(value for value in found if value is not None)

    @cached_property
    def op_attributes(self) -> dict[str, OpAttr]:
        """The attributes by name (`Node_GetAttributes`), those with a graph included."""
        found = self._list("Node_GetNumAttributes", "Node_GetAttributes", "const OrtOpAttr*")
        attributes = {attr.name: attr for attr in (self._scope.get(OpAttr, pointer) for pointer in found)}
        for name, graph in self.subgraphs.items():
            if name in attributes:
                attributes[name]._subgraph = graph
        return attributes

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes' values by name; see `OpAttr.value`. Graphs are there and in `subgraphs`. Kinds that
        the ABI cannot carry are in `op_attributes` only."""
        return {
            name: attr.value for name, attr in self.op_attributes.items() if attr.type != 0
        } | self.subgraphs

    @cached_property
    def subgraphs(self) -> dict[str, Graph]:
        """The graphs of If, Loop, Scan and the like, by attribute name (`Node_GetSubgraphs`)."""
        api = self._scope.open()
        count = self._get("Node_GetNumSubgraphs", "size_t*")
        if not count:
            return {}
        graphs, names = ffi.new("const OrtGraph*[]", count), ffi.new("const char*[]", count)
        check(api.Node_GetSubgraphs(self._pointer, graphs, count, names), api)
        return {ffi.string(names[i]).decode(): self._scope.get(Graph, graphs[i]) for i in range(count)}

    @property
    def graph(self) -> Graph | None:
        """The graph that has the node (`Node_GetGraph`)."""
        pointer = self._get("Node_GetGraph", "const OrtGraph**")
        return None if pointer == NULL else self._scope.get(Graph, pointer)

    @property
    def ep_name(self) -> str:
        """The provider that has claimed the node, "" if none has yet (`Node_GetEpName`)."""
        return self._text("Node_GetEpName")


class Graph(_Object):
    """A graph, a subgraph of a node, or the part of a graph that was fused."""

    fused_node: Node | None = None
    """In `compile`: the node that stands for this graph in the host's graph."""
    argument_names: list[str]
    """In `compile`: which value each argument of the callable is. The graph's inputs; with
    `Fuse(drop_constants= False)` its constants after them."""

    def __repr__(self) -> str:
        return f"<Graph {self.name!r}>"

    @cached_property
    def name(self) -> str:
        """The graph's name (`Graph_GetName`)."""
        return self._text("Graph_GetName")

    @cached_property
    def model_path(self) -> str:
        """The file that the model came from, "" if from memory (`Graph_GetModelPath`)."""
        return self._text("Graph_GetModelPath")

    @cached_property
    def ir_version(self) -> int:
        """The model's IR version (`Graph_GetOnnxIRVersion`)."""
        return int(self._get("Graph_GetOnnxIRVersion", "int64_t*"))

    @cached_property
    def opsets(self) -> dict[str, int]:
        """Opset versions by domain, "" for ONNX's own (`Graph_GetOperatorSets`)."""
        api = self._scope.open()
        count = self._get("Graph_GetNumOperatorSets", "size_t*")
        if not count:
            return {}
        domains, versions = ffi.new("const char*[]", count), ffi.new("int64_t[]", count)
        check(api.Graph_GetOperatorSets(self._pointer, domains, versions, count), api)
        return {_domain(ffi.string(domains[i]).decode()): int(versions[i]) for i in range(count)}

    @cached_property
    def inputs(self) -> tuple[ValueInfo, ...]:
        """The inputs (`Graph_GetInputs`)."""
        found = self._values("Graph_GetNumInputs", "Graph_GetInputs")
        return tuple(value for value in found if value is not None)

    @cached_property
    def outputs(self) -> tuple[ValueInfo, ...]:
        """The outputs (`Graph_GetOutputs`)."""
        found = self._values("Graph_GetNumOutputs", "Graph_GetOutputs")
        return tuple(value for value in found if value is not None)

    @cached_property
    def initializers(self) -> dict[str, ValueInfo]:
        """The initializers by name; their arrays are `ValueInfo.initializer` (`Graph_GetInitializers`)."""
        found = self._values("Graph_GetNumInitializers", "Graph_GetInitializers")
        return {value.name: value for value in found if value is not None}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, producers before consumers (`Graph_GetNodes`)."""
        found = self._list("Graph_GetNumNodes", "Graph_GetNodes", "const OrtNode*")
        return tuple(self._scope.get(Node, pointer) for pointer in found)

    @cached_property
    def parent_node(self) -> Node | None:
        """The node that this is a subgraph of, None for the main graph (`Graph_GetParentNode`)."""
        pointer = self._get("Graph_GetParentNode", "const OrtNode**")
        return None if pointer == NULL else self._scope.get(Node, pointer)

    def to_model_proto(self) -> onnx.ModelProto:
        """The graph with all its constants as an `onnx.ModelProto` of its own. Needs the package `onnx`.

        Raises TypeError for what the ABI cannot carry: attributes that are types, sparse tensors, or lists of
        tensors or graphs.
        """
        from ort_abi._onnx_export import model_from_graph

        return model_from_graph(self)


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def read_type(api: CData, info: CData) -> ValueType:
    """The Python form of a borrowed `OrtTypeInfo`."""
    kind = ffi.new("ONNXType*")
    check(api.GetOnnxTypeFromTypeInfo(info, kind), api)
    if kind[0] in (1, 5):
        return _read_tensor_type(api, info, sparse=kind[0] == 5)
    if kind[0] == 2:
        return SequenceType(
            _read_contained(api, info, "CastTypeInfoToSequenceTypeInfo", "GetSequenceElementType")
        )
    if kind[0] == 6:
        return OptionalType(
            _read_contained(api, info, "CastTypeInfoToOptionalTypeInfo", "GetOptionalContainedTypeInfo")
        )
    if kind[0] == 3:
        value = _read_contained(api, info, "CastTypeInfoToMapTypeInfo", "GetMapValueType")
        view, key = ffi.new("const OrtMapTypeInfo**"), ffi.new("ONNXTensorElementDataType*")
        check(api.CastTypeInfoToMapTypeInfo(info, view), api)
        check(api.GetMapKeyType(view[0], key), api)
        return MapType(int(key[0]), value)
    return OtherType(int(kind[0]))


_VIEWS = {
    "CastTypeInfoToSequenceTypeInfo": "const OrtSequenceTypeInfo**",
    "CastTypeInfoToOptionalTypeInfo": "const OrtOptionalTypeInfo**",
    "CastTypeInfoToMapTypeInfo": "const OrtMapTypeInfo**",
}


def _read_contained(api: CData, info: CData, cast: str, get: str) -> ValueType | None:
    view, contained = ffi.new(_VIEWS[cast]), ffi.new("OrtTypeInfo**")
    check(getattr(api, cast)(info, view), api)
    if view[0] == NULL:
        return None
    check(getattr(api, get)(view[0], contained), api)
    try:
        return None if contained[0] == NULL else read_type(api, contained[0])
    finally:
        api.ReleaseTypeInfo(contained[0])


def _read_tensor_type(api: CData, info: CData, sparse: bool) -> ValueType:
    tensor = ffi.new("const OrtTensorTypeAndShapeInfo**")
    check(api.CastTypeInfoToTensorInfo(info, tensor), api)
    return OtherType(5 if sparse else 1) if tensor[0] == NULL else read_shape_info(api, tensor[0], sparse)


def read_shape_info(api: CData, tensor: CData, sparse: bool = False) -> TensorType:
    """The Python form of a borrowed `OrtTensorTypeAndShapeInfo`."""
    element, rank = ffi.new("ONNXTensorElementDataType*"), ffi.new("size_t*")
    check(api.GetTensorElementType(tensor, element), api)
    if not api.TensorTypeAndShape_HasShape(tensor):
        return TensorType(int(element[0]), None, sparse)
    check(api.GetDimensionsCount(tensor, rank), api)
    count = rank[0]
    dims, names = ffi.new("int64_t[]", count), ffi.new("const char*[]", count)
    check(api.GetDimensions(tensor, dims, count), api)
    check(api.GetSymbolicDimensions(tensor, names, count), api)
    shape: list[int | str | None] = []
    for size, name in zip(dims, names, strict=True):
        symbol = "" if name == NULL else ffi.string(name).decode("utf-8", "replace")
        shape.append(int(size) if size >= 0 else symbol or None)
    return TensorType(int(element[0]), tuple(shape), sparse)


@contextmanager
def open_graph(api: CData, *graphs: CData) -> Iterator[list[Graph]]:
    """`Graph` objects for `const OrtGraph*` of the host with the table `api` (API 24 or later), valid inside
    the `with` block. *borrows* the graphs."""
    with open_objects(api, Graph, *graphs) as views:
        yield views


@contextmanager
def open_objects(api: CData, cls: Callable[[_Scope, CData], _T], *pointers: CData) -> Iterator[list[_T]]:
    """The same for other objects of the host."""
    scope = _Scope(api)
    try:
        yield [scope.get(cls, pointer) for pointer in pointers]
    finally:
        scope.api = None
        scope.objects.clear()
