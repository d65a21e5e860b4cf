"""Reads models with libort_abi.so through the ABI's own slots, into plain Python data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cffi import FFI

from abigen import emit_py, native_build

STRING = 8
ATTRIBUTE_KINDS = ["undefined", "INT", "INTS", "FLOAT", "FLOATS", "STRING", "STRINGS", "GRAPH", "TENSOR"]


class OrtError(RuntimeError):
    """An OrtStatus: `code` and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class NativeHost:
    """libort_abi.so through cffi's ABI mode; slots are called by name and raise `OrtError`."""

    def __init__(self, library: Path) -> None:
        """Loads `library`."""
        self.ffi = FFI()
        self.ffi.cdef(emit_py.cdef(native_build.HEADERS, Path("no bridge here")))
        self.lib: Any = self.ffi.dlopen(str(library))
        self.api: Any = self.lib.OrtGetApiBase().GetApi(30)

    def check(self, status: Any) -> None:
        """Raises `OrtError` for a status and releases it."""
        if status != self.ffi.NULL:
            code = self.api.GetErrorCode(status)
            message = self.ffi.string(self.api.GetErrorMessage(status)).decode(errors="replace")
            self.api.ReleaseStatus(status)
            raise OrtError(code, message)

    def get(self, slot: str, c_type: str, *arguments: Any) -> Any:
        """Calls a slot whose last parameter is where the result goes."""
        out = self.ffi.new(f"{c_type}*")
        self.check(getattr(self.api, slot)(*arguments, out))
        return out[0]

    def text(self, slot: str, owner: Any) -> str:
        """A slot that gives a borrowed C string."""
        found: bytes = self.ffi.string(self.get(slot, "char*", owner))
        return found.decode()

    def array(self, what: str, c_type: str, owner: Any) -> list[Any]:
        """A pair of slots `X_GetNumY`, `X_GetY`."""
        scope, name = what.split("_")
        count = self.get(f"{scope}_GetNum{name}", "size_t", owner)
        out = self.ffi.new(f"{c_type}[]", count)
        self.check(getattr(self.api, f"{scope}_Get{name}")(owner, out, count))
        return list(out)


class NativeModel:
    """A model read by `ortabi_load_model`; released with `close` or at the end of a `with` block."""

    def __init__(self, host: NativeHost, source: Path | bytes, folder: Path | None = None) -> None:
        """Reads a file or bytes; `folder` is where the external data of bytes lies. Raises `OrtError`."""
        self.host = host
        ffi = host.ffi
        model = ffi.new("OrtModel**")
        if isinstance(source, bytes):
            self._bytes = ffi.from_buffer(source)  # borrowed until ReleaseModel
            path = ffi.NULL if folder is None else str(folder / "model.onnx").encode()
            host.check(host.lib.ortabi_load_model(path, self._bytes, len(source), model))
        else:
            host.check(host.lib.ortabi_load_model(str(source).encode(), ffi.NULL, 0, model))
        self.model = model[0]

    def __enter__(self) -> NativeModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the model; a second call does nothing."""
        if self.model is not None:
            self.host.api.ReleaseModel(self.model)
            self.model = None

    def graph_handle(self) -> Any:
        """The main graph; borrowed."""
        return self.host.lib.ortabi_model_graph(self.model)

    def properties(self) -> dict[str, Any]:
        """IR version, operator sets and metadata."""
        host, graph = self.host, self.graph_handle()
        count = host.get("Graph_GetNumOperatorSets", "size_t", graph)
        domains, versions = host.ffi.new("const char*[]", count), host.ffi.new("int64_t[]", count)
        host.check(host.api.Graph_GetOperatorSets(graph, domains, versions, count))
        return {
            "ir_version": host.get("Graph_GetOnnxIRVersion", "int64_t", graph),
            "opsets": {
                host.ffi.string(domain).decode(): version
                for domain, version in zip(domains, versions, strict=True)
            },
            "metadata": self._metadata(),
        }

    def _metadata(self) -> dict[str, Any]:
        host, ffi = self.host, self.host.ffi
        allocator = host.get("GetAllocatorWithDefaultOptions", "OrtAllocator*")
        metadata = host.get("Graph_GetModelMetadata", "OrtModelMetadata*", self.graph_handle())

        def take(text: Any) -> str:
            copy: bytes = ffi.string(text)
            host.check(host.api.AllocatorFree(allocator, text))
            return copy.decode()

        names = ["ProducerName", "GraphName", "Domain", "Description", "GraphDescription"]
        result: dict[str, Any] = {
            name: take(host.get(f"ModelMetadataGet{name}", "char*", metadata, allocator)) for name in names
        }
        result["Version"] = host.get("ModelMetadataGetVersion", "int64_t", metadata)
        keys, count = ffi.new("char***"), ffi.new("int64_t*")
        host.check(host.api.ModelMetadataGetCustomMetadataMapKeys(metadata, allocator, keys, count))
        texts = [take(keys[0][i]) for i in range(count[0])]
        if keys[0] != ffi.NULL:
            host.check(host.api.AllocatorFree(allocator, keys[0]))
        slot = "ModelMetadataLookupCustomMetadataMap"
        result["custom"] = {
            key: take(host.get(slot, "char*", metadata, allocator, key.encode())) for key in texts
        }
        host.api.ReleaseModelMetadata(metadata)
        return result

    # ---- Graphs ----

    def graph(self, handle: Any = None) -> dict[str, Any]:
        """A graph and its subgraphs: names, inputs, outputs, initializers, nodes."""
        host = self.host
        handle = self.graph_handle() if handle is None else handle
        initializers = self.values("Graph_Initializers", handle)
        return {
            "name": host.text("Graph_GetName", handle),
            "inputs": self.names("Graph_Inputs", handle),
            "outputs": self.names("Graph_Outputs", handle),
            "initializers": {
                self.name(value): self.tensor(
                    host.get("ValueInfo_GetInitializerValue", "const OrtValue*", value)
                )
                for value in initializers
            },
            "nodes": [self._node(node) for node in self.node_handles(handle)],
        }

    def node_handles(self, graph: Any) -> list[Any]:
        """The nodes of a graph; borrowed."""
        return self.host.array("Graph_Nodes", "const OrtNode*", graph)

    def name(self, value: Any) -> str:
        """A value's name; "" for NULL."""
        return "" if value == self.host.ffi.NULL else self.host.text("GetValueInfoName", value)

    def names(self, what: str, owner: Any) -> list[str]:
        """Names of a list of values such as "Node_Inputs"."""
        return [self.name(value) for value in self.values(what, owner)]

    def values(self, what: str, owner: Any) -> list[Any]:
        """A list of values such as "Graph_Outputs"; borrowed."""
        return self.host.array(what, "const OrtValueInfo*", owner)

    def _node(self, node: Any) -> dict[str, Any]:
        host = self.host
        return {
            "name": host.text("Node_GetName", node),
            "op_type": host.text("Node_GetOperatorType", node),
            "domain": host.text("Node_GetDomain", node),
            "since_version": host.get("Node_GetSinceVersion", "int", node),
            "inputs": self.names("Node_Inputs", node),
            "outputs": self.names("Node_Outputs", node),
            "implicit_inputs": set(self.names("Node_ImplicitInputs", node)),
            "attributes": self._attributes(node),
        }

    def subgraph_handles(self, node: Any) -> dict[str, Any]:
        """The subgraphs of a node by attribute name; borrowed."""
        host = self.host
        count = host.get("Node_GetNumSubgraphs", "size_t", node)
        graphs, names = host.ffi.new("const OrtGraph*[]", count), host.ffi.new("const char*[]", count)
        host.check(host.api.Node_GetSubgraphs(node, graphs, count, names))
        return {host.ffi.string(name).decode(): graph for name, graph in zip(names, graphs, strict=True)}

    def _attributes(self, node: Any) -> dict[str, Any]:
        host = self.host
        subgraphs = self.subgraph_handles(node)
        result: dict[str, Any] = {}
        for attribute in host.array("Node_Attributes", "const OrtOpAttr*", node):
            name = host.text("OpAttr_GetName", attribute)
            try:
                kind = ATTRIBUTE_KINDS[host.get("OpAttr_GetType", "OrtOpAttrType", attribute)]
            except OrtError:
                kind = "undefined"
            if kind == "GRAPH":
                result[name] = (kind, self.graph(subgraphs[name]))
            elif kind == "TENSOR":
                tensor = host.get("OpAttr_GetTensorAttributeAsOrtValue", "OrtValue*", attribute)
                result[name] = (kind, self.tensor(tensor))
                host.api.ReleaseValue(tensor)
            else:
                result[name] = (kind, None if kind == "undefined" else self._read(attribute, kind))
        return result

    def _read(self, attribute: Any, kind: str) -> Any:
        host, ffi = self.host, self.host.ffi
        size = ffi.new("size_t*")
        number = ATTRIBUTE_KINDS.index(kind)
        status = host.api.ReadOpAttr(attribute, number, ffi.NULL, 0, size)  # the way to ask for the size
        if size[0] == 0:
            host.check(status)
            return b"" if kind == "STRING" else []
        assert status != ffi.NULL
        host.api.ReleaseStatus(status)
        data = ffi.new("char[]", size[0])
        host.check(host.api.ReadOpAttr(attribute, number, data, size[0], size))
        raw = bytes(ffi.buffer(data, size[0]))
        if kind in ("STRING", "STRINGS"):
            parts = raw.split(b"\0")[:-1]
            return raw if kind == "STRING" else parts
        numbers = list(memoryview(raw).cast("q" if kind in ("INT", "INTS") else "f"))
        return numbers[0] if kind in ("INT", "FLOAT") else numbers

    # ---- Tensors and types ----

    def tensor(self, value: Any) -> tuple[int, tuple[int, ...], Any]:
        """Element type, shape, and the bytes or the strings."""
        host, ffi = self.host, self.host.ffi
        kind, dims, rank = ffi.new("ONNXTensorElementDataType*"), ffi.new("int64_t**"), ffi.new("size_t*")
        host.check(host.api.GetTensorElementTypeAndShapeDataReference(value, kind, dims, rank))
        shape = tuple(dims[0][i] for i in range(rank[0]))
        if int(kind[0]) == STRING:
            return STRING, shape, self._strings(value, shape)
        size = host.get("GetTensorSizeInBytes", "size_t", value)
        data = host.get("GetTensorMutableData", "void*", value)
        return int(kind[0]), shape, bytes(ffi.buffer(data, size)) if size else b""

    def _strings(self, value: Any, shape: tuple[int, ...]) -> list[bytes]:
        host, ffi = self.host, self.host.ffi
        count = 1
        for dim in shape:
            count *= dim
        result = []
        for index in range(count):
            length = host.get("GetStringTensorElementLength", "size_t", value, index)
            text = ffi.new("char[]", length + 1)
            host.check(host.api.GetStringTensorElement(value, length, index, text))
            result.append(bytes(ffi.buffer(text, length)))
        return result

    def value_types(self, graph: Any = None) -> dict[str, Any]:
        """Types of the values that a graph's nodes, inputs and outputs name; None: unknown."""
        host = self.host
        graph = self.graph_handle() if graph is None else graph
        values = [
            v for part in ("Inputs", "Outputs", "Initializers") for v in self.values(f"Graph_{part}", graph)
        ]
        for node in self.node_handles(graph):
            values += self.values("Node_Inputs", node) + self.values("Node_Outputs", node)
        types = {}
        for value in values:
            if value != host.ffi.NULL:
                types[self.name(value)] = self.type(
                    host.get("GetValueInfoTypeInfo", "const OrtTypeInfo*", value)
                )
        return types

    def type(self, info: Any) -> Any:
        """("tensor", element type, dimensions or None), ("seq", element), ("map", key, value), ...; or None.

        A dimension is a number, a name, or None.
        """
        host, ffi = self.host, self.host.ffi
        if info == ffi.NULL:
            return None
        kind = int(host.get("GetOnnxTypeFromTypeInfo", "ONNXType", info))
        if kind in (1, 5):
            tensor = host.get("CastTypeInfoToTensorInfo", "const OrtTensorTypeAndShapeInfo*", info)
            return ("tensor" if kind == 1 else "sparse", *self._tensor_type(tensor))
        if kind == 2:
            sequence = host.get("CastTypeInfoToSequenceTypeInfo", "const OrtSequenceTypeInfo*", info)
            return self._owned("seq", "GetSequenceElementType", sequence)
        if kind == 6:
            optional = host.get("CastTypeInfoToOptionalTypeInfo", "const OrtOptionalTypeInfo*", info)
            return self._owned("optional", "GetOptionalContainedTypeInfo", optional)
        if kind == 3:
            entries = host.get("CastTypeInfoToMapTypeInfo", "const OrtMapTypeInfo*", info)
            key = int(host.get("GetMapKeyType", "ONNXTensorElementDataType", entries))
            return ("map", key, self._owned("", "GetMapValueType", entries)[1])
        return ("unknown",)

    def _owned(self, name: str, slot: str, container: Any) -> tuple[str, Any]:
        info = self.host.get(slot, "OrtTypeInfo*", container)
        element = self.type(info)
        self.host.api.ReleaseTypeInfo(info)
        return name, element

    def _tensor_type(self, info: Any) -> tuple[int, list[Any] | None]:
        host, ffi = self.host, self.host.ffi
        element = int(host.get("GetTensorElementType", "ONNXTensorElementDataType", info))
        if not self._has_shape(info):
            return element, None
        rank = host.get("GetDimensionsCount", "size_t", info)
        dims, names = ffi.new("int64_t[]", rank), ffi.new("const char*[]", rank)
        host.check(host.api.GetDimensions(info, dims, rank))
        host.check(host.api.GetSymbolicDimensions(info, names, rank))
        shape = [
            dim if dim >= 0 else ffi.string(name).decode() or None
            for dim, name in zip(dims, names, strict=True)
        ]
        return element, shape

    def _has_shape(self, info: Any) -> bool:
        return bool(self.host.api.TensorTypeAndShape_HasShape(info))
