"""A program that uses a host through its C tables, the same for every host: ours or stock's."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from .native_model import NativeHost, OrtError

ELEMENT_TYPES = {"float32": 1, "int32": 6, "int64": 7, "float64": 11}
STRING = 8
FAIL, INVALID_ARGUMENT, NO_SUCHFILE, INVALID_PROTOBUF, NOT_IMPLEMENTED = 1, 2, 3, 7, 9


def stock_library() -> Path:
    """The C library inside stock onnxruntime's package."""
    import onnxruntime

    return next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*"))


def floats(name: str, shape: Sequence[int | str] | None) -> onnx.ValueInfoProto:
    """A float tensor that a graph reads or makes."""
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    """A model that both hosts read."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def neg(shape: Sequence[int | str] = (2, 3)) -> onnx.ModelProto:
    """y = -x."""
    return model([helper.make_node("Neg", ["x"], ["y"])], [floats("x", shape)], [floats("y", shape)])


class Client:
    """A host's tables and an environment; what is made lives until `close`, or for the whole process."""

    def __init__(self, library: Path) -> None:
        self.host = NativeHost(library)
        self.library = ctypes.CDLL(str(library))
        self.api, self.ffi, self.check, self.get = (
            self.host.api,
            self.host.ffi,
            self.host.check,
            self.host.get,
        )
        self.env = self.get("CreateEnv", "OrtEnv*", 4, b"test")
        self.cpu = self.get("CreateCpuMemoryInfo", "OrtMemoryInfo*", 0, 0)
        self.allocator = self.get("GetAllocatorWithDefaultOptions", "OrtAllocator*")
        self._alive: list[Any] = []
        self._made: list[tuple[Any, Any]] = []

    def owned(self, kind: str, slot: str, release: str, *arguments: Any) -> Any:
        """What a slot gives through its last parameter, released with `release` at `close`."""
        made = self.get(slot, kind, *arguments)
        self._made.append((getattr(self.api, release), made))
        return made

    def close(self) -> None:
        """Releases what was made, the newest first."""
        while self._made:
            release, made = self._made.pop()
            release(made)
        self._alive.clear()

    def texts(self, texts: Sequence[str]) -> Any:
        """An array of `const char*`."""
        strings = [self.ffi.new("char[]", text.encode()) for text in texts]
        array = self.ffi.new("const char*[]", strings)
        self._alive += [strings, array]
        return array

    def options(self) -> Any:
        """New session options."""
        return self.owned("OrtSessionOptions*", "CreateSessionOptions", "ReleaseSessionOptions")

    def address(self, pointer: Any) -> int:
        """For ctypes."""
        return int(self.ffi.cast("intptr_t", pointer))

    def session(self, source: onnx.ModelProto | bytes | Path, options: Any = None) -> Any:
        """A session from bytes, or from a file."""
        options = self.ffi.NULL if options is None else options
        if isinstance(source, Path):
            arguments = (self.env, str(source).encode(), options)
            return self.owned("OrtSession*", "CreateSession", "ReleaseSession", *arguments)
        data = source if isinstance(source, bytes) else source.SerializeToString()
        view = self.ffi.from_buffer(data)
        self._alive.append(view)
        arguments = (self.env, view, len(data), options)
        return self.owned("OrtSession*", "CreateSessionFromArray", "ReleaseSession", *arguments)

    def value(self, array: np.ndarray) -> Any:
        """A tensor over an array, or of strings."""
        dims = self.ffi.new("int64_t[]", array.shape)
        if array.dtype.kind in "OU":
            arguments = (self.allocator, dims, array.ndim, STRING)
            return self.owned("OrtValue*", "CreateTensorAsOrtValue", "ReleaseValue", *arguments)
        array = np.ascontiguousarray(array)
        self._alive.append(array)
        data = self.ffi.cast("void*", array.ctypes.data)
        arguments = (self.cpu, data, array.nbytes, dims, array.ndim, ELEMENT_TYPES[array.dtype.name])
        return self.owned("OrtValue*", "CreateTensorWithDataAsOrtValue", "ReleaseValue", *arguments)

    def values(self, arrays: Sequence[np.ndarray]) -> Any:
        """An array of `OrtValue*`."""
        return self.ffi.new("const OrtValue*[]", [self.value(array) for array in arrays])

    def run(
        self,
        session: Any,
        feeds: Mapping[str, np.ndarray],
        names: Sequence[str],
        options: Any = None,
        given: Sequence[np.ndarray] = (),
    ) -> list[Any]:
        """`Run`: the outputs as `OrtValue*`. `given`: preallocated ones."""
        options = self.ffi.NULL if options is None else options
        outputs = self.ffi.new("OrtValue*[]", len(names))
        for i, array in enumerate(given):
            outputs[i] = self.value(array)
        where = (session, options, self.texts(list(feeds)), self.values(list(feeds.values())), len(feeds))
        self.check(self.api.Run(*where, self.texts(names), len(names), outputs))
        if not given:
            self._made += [(self.api.ReleaseValue, value) for value in outputs]
        return list(outputs)

    def floats(self, value: Any) -> list[float]:
        """The elements of a tensor of floats."""
        size = self.get("GetTensorSizeInBytes", "size_t", value)
        data = self.get("GetTensorMutableData", "void*", value)
        numbers: list[float] = np.frombuffer(self.ffi.buffer(data, size), np.float32).tolist()
        return numbers

    def memory_type(self, info: Any) -> int:
        """`OrtAllocatorType` of a memory info."""
        return int(self.get("MemoryInfoGetType", "OrtAllocatorType", info))


def failure(call: Any, *arguments: Any) -> tuple[int, str]:
    """Code and message of what `call` raises. Fails if it raises nothing."""
    try:
        result = call(*arguments)
    except OrtError as error:
        return error.code, str(error)
    raise AssertionError(f"no error, but {result!r}")
