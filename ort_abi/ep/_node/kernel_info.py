"""`KernelInfo`: what a kernel is told about its node when it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from ort_abi import errors
from ort_abi._lib import CData, check, ffi, lib
from ort_abi._tensor import copy_tensor
from ort_abi.graph import TensorType, ValueType, read_type

__all__ = ["KernelInfo"]

_MISSING = object()


class KernelInfo:
    """Attributes, constant inputs and types of the node that a kernel is made for (`KernelInfo_*`, API 14 to
    25).

    Valid while the kernel's `__init__` runs; arrays are copies and can be kept.
    """

    def __init__(self, host: CData, pointer: CData) -> None:
        self._host = host
        self._pointer: CData | None = pointer

    def _open(self) -> tuple[CData, CData]:
        if self._pointer is None:
            raise RuntimeError(
                "a KernelInfo is valid only while the kernel is made: read what you need in __init__"
            )
        return self._host.api, self._pointer

    def _close(self) -> None:
        self._pointer = None

    def _text(self, slot: str, *arguments: Any) -> str:
        api, pointer = self._open()
        size = ffi.new("size_t*")
        check(getattr(api, slot)(pointer, *arguments, ffi.NULL, size), api)
        buffer = ffi.new("char[]", max(size[0], 1))
        check(getattr(api, slot)(pointer, *arguments, buffer, size), api)
        length = max(size[0] - 1, 0)  # a terminator is counted; there may be NULs before it
        return bytes(ffi.buffer(buffer, length)).decode("utf-8", "surrogateescape")

    def _count(self, slot: str) -> int:
        api, pointer = self._open()
        out = ffi.new("size_t*")
        check(getattr(api, slot)(pointer, out), api)
        return int(out[0])

    @property
    def name(self) -> str:
        """The node's name, may be ""."""
        return self._text("KernelInfo_GetNodeName")

    @property
    def op_type(self) -> str:
        """The operator's name."""
        return self._text("KernelInfo_GetOperatorType")

    @property
    def domain(self) -> str:
        """The operator's domain, "" for ONNX's own."""
        return self._text("KernelInfo_GetOperatorDomain")

    @property
    def since_version(self) -> int:
        """First opset with this form of the operator."""
        api, pointer = self._open()
        out = ffi.new("int*")
        check(api.KernelInfo_GetOperatorSinceVersion(pointer, out), api)
        return int(out[0])

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs, "" for a missing optional one."""
        return [
            self._text("KernelInfo_GetInputName", i) for i in range(self._count("KernelInfo_GetInputCount"))
        ]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs, "" for one that nobody uses."""
        return [
            self._text("KernelInfo_GetOutputName", i) for i in range(self._count("KernelInfo_GetOutputCount"))
        ]

    def input_type(self, index: int) -> ValueType | None:
        """The type of an input."""
        return self._type("KernelInfo_GetInputTypeInfo", index)

    def output_type(self, index: int) -> ValueType | None:
        """The type of an output."""
        return self._type("KernelInfo_GetOutputTypeInfo", index)

    def _type(self, slot: str, index: int) -> ValueType | None:
        api, pointer = self._open()
        out = ffi.new("OrtTypeInfo**")
        check(getattr(api, slot)(pointer, index, out), api)
        if out[0] == ffi.NULL:
            return None
        try:
            return read_type(api, out[0])
        finally:
            api.ReleaseTypeInfo(out[0])

    def constant_input(self, index: int) -> NDArray[Any] | None:
        """The value of an input that is a constant, else None. *copies*.

        Raises RuntimeError for one in memory of a device, where hosts put it before kernels are made.
        """
        api, pointer = self._open()
        constant, value = ffi.new("int*"), ffi.new("const OrtValue**")
        check(api.KernelInfoGetConstantInput_tensor(pointer, index, constant, value), api)
        if not constant[0] or value[0] == ffi.NULL:
            return None
        memory, device_type = ffi.new("const OrtMemoryInfo**"), ffi.new("OrtMemoryInfoDeviceType*")
        check(api.GetTensorMemoryInfo(value[0], memory), api)
        api.MemoryInfoGetDeviceType(memory[0], device_type)
        in_cpu_memory = api.MemoryInfoGetDeviceMemType(memory[0]) == lib.OrtDeviceMemoryType_HOST_ACCESSIBLE
        if device_type[0] != lib.OrtMemoryInfoDeviceType_CPU and not in_cpu_memory:
            raise RuntimeError(
                f"the constant input {index} is in memory of a device: read it in compute, or name it in the"
                " cpu_inputs of the kernel"
            )
        return copy_tensor(api, value[0])

    def attribute(self, name: str, default: Any = _MISSING) -> Any:
        """An attribute: int, float, str, a list of those or an array. `default` if the node has none.

        Raises KeyError without a default. Lists of strings need a host with API 25.
        """
        self._open()
        found: list[Any] | None = None
        for read in (
            self._int,
            self._float,
            self._string,
            self._tensor,
            self._ints,
            self._floats,
            self._strings,
        ):
            try:
                value = read(name.encode())
            except errors.OrtError:
                continue
            if not isinstance(value, list) or value:
                return value
            found = value  # empty; or of another kind, which stock hosts read as empty
        if found is not None and self._host.version < 25:
            raise errors.NotImplemented(f"attribute {name!r}: lists of strings need a host with API 25")
        if found is not None:
            return found
        if default is _MISSING:
            raise KeyError(f"node {self.name!r} ({self.op_type}) has no attribute {name!r}")
        return default

    def _int(self, name: bytes) -> int:
        return int(self._scalar("KernelInfoGetAttribute_int64", name, "int64_t*"))

    def _float(self, name: bytes) -> float:
        return float(self._scalar("KernelInfoGetAttribute_float", name, "float*"))

    def _scalar(self, slot: str, name: bytes, out_type: str) -> Any:
        api, pointer = self._open()
        out = ffi.new(out_type)
        check(getattr(api, slot)(pointer, name, out), api)
        return out[0]

    def _string(self, name: bytes) -> str:
        return self._text("KernelInfoGetAttribute_string", name)

    def _ints(self, name: bytes) -> list[int]:
        return self._array("KernelInfoGetAttributeArray_int64", name, "int64_t[]", int)

    def _floats(self, name: bytes) -> list[float]:
        return self._array("KernelInfoGetAttributeArray_float", name, "float[]", float)

    def _array(self, slot: str, name: bytes, out_type: str, convert: Callable[[Any], Any]) -> list[Any]:
        api, pointer = self._open()
        size = ffi.new("size_t*")
        check(getattr(api, slot)(pointer, name, ffi.NULL, size), api)
        out = ffi.new(out_type, max(size[0], 1))
        check(getattr(api, slot)(pointer, name, out, size), api)
        return [convert(out[i]) for i in range(size[0])]

    def _strings(self, name: bytes) -> list[str]:
        api, pointer = self._open()
        if self._host.version < 25:
            raise errors.NotImplemented("lists of strings need API 25")
        allocator, out, size = self._allocator(), ffi.new("char***"), ffi.new("size_t*")
        check(api.KernelInfoGetAttributeArray_string(pointer, name, allocator, out, size), api)
        try:
            return [ffi.string(out[0][i]).decode("utf-8", "surrogateescape") for i in range(size[0])]
        finally:
            for i in range(size[0]):
                allocator.Free(allocator, out[0][i])
            if out[0] != ffi.NULL:
                allocator.Free(allocator, out[0])

    def _tensor(self, name: bytes) -> NDArray[Any]:
        api, pointer = self._open()
        out = ffi.new("OrtValue**")
        check(api.KernelInfoGetAttribute_tensor(pointer, name, self._allocator(), out), api)
        try:
            return copy_tensor(api, out[0])
        finally:
            api.ReleaseValue(out[0])

    def _allocator(self) -> CData:
        api, _ = self._open()
        out = ffi.new("OrtAllocator**")
        check(api.GetAllocatorWithDefaultOptions(out), api)
        return out[0]

    def element_types(self, names: list[str]) -> list[int]:
        """The element types of the outputs, 0 for those that are not used or no tensors."""
        kinds = [self.output_type(i) if name else None for i, name in enumerate(names)]
        return [kind.element_type if isinstance(kind, TensorType) else 0 for kind in kinds]
