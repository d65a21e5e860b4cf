"""Tensors of the host: `OrtValue`, made from NumPy arrays and read as NumPy arrays without a copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ort_abi import dtypes, env, errors
from ort_abi._lib import NULL, CData, Handle, api, check, create, default_allocator, ffi, lib
from ort_abi._tensor import array_at, fill_strings, read_strings
from ort_abi.device import OrtDevice, OrtDeviceMemoryType, OrtMemoryInfo, OrtMemoryInfoDeviceType
from ort_abi.graph import MapType, OptionalType, SequenceType, TensorType, ValueType, read_type

if TYPE_CHECKING:
    from ort_abi.stream import OrtSyncStream

__all__ = ["OrtValue", "copy_tensors"]

_cpu_memory_handle = create("OrtMemoryInfo", api.ReleaseMemoryInfo, api.CreateCpuMemoryInfo, 0, 0)
cpu_memory: CData = _cpu_memory_handle.pointer


host_memories: tuple[CData, CData] = (lib.ortabi_host_memory(0), lib.ortabi_host_memory(1))
"""Of values in the host's own memory, which need nobody else."""

# Slots that every run calls: reading one from the table makes an object.
_create_over: CData = api.CreateTensorWithDataAsOrtValue
_describe: CData = api.GetTensorElementTypeAndShapeDataReference
_mutable_data: CData = api.GetTensorMutableData
_memory_info: CData = api.GetTensorMemoryInfo
_release: CData = api.ReleaseValue

# Element types by dtype, of dtypes whose elements a tensor has in the same form.
flat_types: dict[np.dtype[Any], int] = {}

# Where ONNX's name of an element type is not NumPy's name without underscores.
_ONNX_NAMES = {
    "float32": "float",
    "float64": "double",
    "float4_e2m1fn": "float4e2m1",
    "float8_e8m0fnu": "float8e8m0",
}


def onnx_name(element_type: int) -> str:
    """ONNX's name of an element type of the ABI: "float", "int64", "bfloat16", ..."""
    name = dtypes.name_of(element_type)
    return _ONNX_NAMES.get(name, name.replace("_", ""))


def type_text(kind: ValueType | None) -> str:
    """A type as onnxruntime writes it: "tensor(float)", "seq(tensor(int64))", ..."""
    if isinstance(kind, TensorType):
        return f"{'sparse_tensor' if kind.sparse else 'tensor'}({onnx_name(kind.element_type)})"
    if isinstance(kind, SequenceType):
        return f"seq({type_text(kind.element)})"
    if isinstance(kind, OptionalType):
        return f"optional({type_text(kind.element)})"
    if isinstance(kind, MapType):
        return f"map({onnx_name(kind.key_type)},{type_text(kind.value)})"
    return "" if kind is None else f"unknown({kind.kind})"


def dtype_of(tensor_type: str) -> np.dtype[Any]:
    """The dtype of a type such as "tensor(float)". Raises TypeError for what is no tensor of a known type."""
    name = tensor_type.removeprefix("tensor(").removesuffix(")")
    for number in range(1, 27):
        if f"tensor({onnx_name(number)})" == tensor_type:
            return dtypes.from_onnx(number)
    raise TypeError(f"no dtype is known for {name!r}")


def tensor_over(array: NDArray[Any]) -> tuple[CData, object]:
    """A tensor over an array's memory, and what must stay alive as long as the tensor.

    *gives* the `OrtValue*` (caller releases with `ReleaseValue`). No copy is made unless the array is not
    C-contiguous, not in native byte order, of strings or of a type below a byte. Raises TypeError for a dtype
    that ONNX lacks.
    """
    element_type = flat_types.get(array.dtype)
    if element_type is None:
        return _tensor_of_other_type(array)
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return _tensor_over(array, array.shape, element_type)


def _tensor_over(memory: NDArray[Any], shape: tuple[int, ...], element_type: int) -> tuple[CData, object]:
    buffer, out = ffi.from_buffer(memory), ffi.new("OrtValue**")
    dims = ffi.new("int64_t[]", shape)
    check(_create_over(cpu_memory, buffer, memory.nbytes, dims, len(shape), element_type, out))
    return out[0], buffer


def _tensor_of_other_type(array: NDArray[Any]) -> tuple[CData, object]:
    """Types seen for the first time, and those whose elements have another form in a tensor."""
    if array.dtype.kind == "S":
        array = array.astype(object)
    dtype = array.dtype
    element_type = dtypes.to_onnx(dtype)
    if element_type == dtypes.STRING:
        return _string_tensor(array), None
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
    if dtypes.is_packed(element_type):
        return _tensor_over(dtypes.pack(array, element_type), array.shape, element_type)
    flat_types[array.dtype] = element_type
    return tensor_over(array)


def _string_tensor(array: NDArray[Any]) -> CData:
    dims, out = ffi.new("int64_t[]", array.shape), ffi.new("OrtValue**")
    check(api.CreateTensorAsOrtValue(default_allocator, dims, array.ndim, dtypes.STRING, out))
    try:
        fill_strings(api, out[0], array.reshape(-1).tolist())
    except BaseException:
        api.ReleaseValue(out[0])
        raise
    return out[0]


def describe(pointer: CData) -> tuple[int, tuple[int, ...]]:
    """Element type and shape of a tensor (`GetTensorElementTypeAndShapeDataReference`, API 24)."""
    kind, dims, rank = ffi.new("ONNXTensorElementDataType*"), ffi.new("const int64_t**"), ffi.new("size_t*")
    check(_describe(pointer, kind, dims, rank))
    return kind[0], tuple(ffi.unpack(dims[0], rank[0])) if rank[0] else ()


def owned(pointer: CData, session: Handle) -> Handle:
    """Takes a value that a session gave.

    *keeps alive* the session, unless the value is in the host's own memory, which needs no provider.
    """
    out = ffi.new("const OrtMemoryInfo**")
    status = _memory_info(pointer, out)
    if status == NULL and out[0] in host_memories:
        return Handle(pointer, _release)
    api.ReleaseStatus(status)
    return Handle(pointer, _release, session)


def to_array(handle: Handle) -> NDArray[Any]:
    """The tensor as an array over its memory, which the array keeps alive.

    Strings, types below a byte and memory that the CPU cannot reach are copied. Raises
    `errors.NotImplemented` for a value that is no tensor.
    """
    pointer = handle.pointer
    try:
        element_type, shape = describe(pointer)
    except errors.OrtError:
        raise errors.NotImplemented(f"only tensors can become arrays, not {_type_of(pointer)}") from None
    if element_type == dtypes.STRING:
        return read_strings(api, pointer, shape)
    if not _in_host_memory(pointer):
        copy = _new_tensor(default_allocator, shape, element_type)
        _copy([pointer], [copy.pointer])
        return to_array(copy)
    data = ffi.new("void**")
    check(_mutable_data(pointer, data))
    size = dtypes.bytes_for(element_type, math.prod(shape))
    memory = ffi.buffer(ffi.gc(ffi.cast("char*", data[0]), handle.keep), size)
    if dtypes.is_packed(element_type):
        packed = np.frombuffer(memory, np.uint8) if size else np.empty(0, np.uint8)
        return dtypes.unpack(packed, element_type, math.prod(shape)).reshape(shape)
    array: NDArray[Any] = np.ndarray(shape, dtypes.from_onnx(element_type), memory)
    return array


def output_array(handle: Handle) -> NDArray[Any] | None:
    """What `to_array` gives; None for a value without content: an output that no kernel made."""
    has_value = ffi.new("int*")
    check(api.HasValue(handle.pointer, has_value))
    return to_array(handle) if has_value[0] else None


def _type_of(pointer: CData) -> str:
    out = ffi.new("OrtTypeInfo**")
    check(api.GetTypeInfo(pointer, out))
    if out[0] == NULL:
        return ""
    try:
        return type_text(read_type(api, out[0]))
    finally:
        api.ReleaseTypeInfo(out[0])


def _memory_of(pointer: CData) -> CData:
    out = ffi.new("const OrtMemoryInfo**")
    check(_memory_info(pointer, out))
    return out[0]


def _in_host_memory(pointer: CData) -> bool:
    memory = _memory_of(pointer)
    if memory in host_memories:
        return True
    kind = ffi.new("OrtMemoryInfoDeviceType*")
    api.MemoryInfoGetDeviceType(memory, kind)
    if kind[0] == OrtMemoryInfoDeviceType.CPU:
        return True
    return bool(api.MemoryInfoGetDeviceMemType(memory) == OrtDeviceMemoryType.HOST_ACCESSIBLE)


def _new_tensor(allocator: CData, shape: Sequence[int], element_type: int, *parents: object) -> Handle:
    dims = ffi.new("int64_t[]", list(shape))
    arguments = (allocator, dims, len(dims), element_type)
    return create("OrtValue", api.ReleaseValue, api.CreateTensorAsOrtValue, *arguments, parents=parents)


def _copy(sources: list[CData], targets: list[CData], stream: CData = NULL) -> None:
    src, dst = ffi.new("const OrtValue*[]", sources), ffi.new("OrtValue*[]", targets)
    check(api.CopyTensors(env.environment().pointer, src, dst, stream, len(sources)))


def _new_on(memory: OrtMemoryInfo, shape: Sequence[int], element_type: int) -> OrtValue:
    """A tensor from the shared allocator of a memory. *keeps alive* the environment."""
    handle = _new_tensor(env.shared_allocator(memory), shape, element_type, env.environment())
    env.track(handle)
    return OrtValue(handle)


def _capsule_of(data: Any) -> Any:
    """The capsule of what speaks DLPack; another object is taken for one."""
    if not hasattr(data, "__dlpack__"):
        return data
    try:
        return data.__dlpack__(max_version=(1, 1))
    except TypeError:  # from before there were versions
        return data.__dlpack__()


def _copy_of(taken: Any) -> NDArray[Any]:
    """The elements of a `dlpack.Import` in CPU memory, row after row."""
    if 0 in taken.shape:
        return np.empty(taken.shape, dtypes.from_onnx(taken.element_type))
    if taken.strides is None:
        array = array_at(taken.address, taken.element_type, taken.shape)
    else:
        first = array_at(taken.address, taken.element_type, (1,))
        strides = [stride * first.itemsize for stride in taken.strides]
        array = np.lib.stride_tricks.as_strided(first, taken.shape, strides)
    return np.array(array, order="C")


def device_for(device: str | OrtDevice, device_id: int = 0, vendor_id: int = -1) -> OrtDevice:
    """A device as users name it."""
    return device if isinstance(device, OrtDevice) else OrtDevice.make(device, device_id, vendor_id)


class OrtValue:
    """A value of the host. Made with `ortvalue_from_numpy` and the like, and by sessions."""

    __slots__ = ("__weakref__", "_handle")

    def __init__(self, handle: Handle) -> None:
        """Takes the handle of an `OrtValue*`; users call the static methods."""
        self._handle = handle

    @staticmethod
    def ortvalue_from_numpy(
        numpy_obj: NDArray[Any], device_type: str | OrtDevice = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """A tensor with an array's elements: on the CPU over its memory without a copy (if that is writable,
        for the tensor is), elsewhere a copy.

        `device_type` is a name ("gpu", "npu", ...), or an `OrtDevice`. Raises TypeError for a dtype that ONNX
        lacks, `errors.NotFound` if no registered provider has memory on the device.
        """
        array = np.asarray(numpy_obj)
        pointer, memory = tensor_over(array if array.flags.writeable else array.copy())
        value = OrtValue(Handle(pointer, api.ReleaseValue, memory))
        device = device_for(device_type, device_id, vendor_id)
        if device.is_cpu():
            return value
        element_type, shape = describe(pointer)
        on_device = _new_on(env.memory_on(device), shape, element_type)
        copy_tensors([value], [on_device])
        return on_device

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: NDArray[Any], onnx_element_type: int) -> OrtValue:
        """A CPU tensor of a `TensorProto.DataType` over an array whose elements have as many bits.

        For types that NumPy lacks, held in an array of another type. Raises ValueError if the sizes differ.
        """
        element_type = dtypes.from_proto(onnx_element_type)
        array = np.ascontiguousarray(data)
        if dtypes.bytes_for(element_type, array.size) != array.nbytes:
            raise ValueError(f"an array of {array.dtype} cannot hold elements of {onnx_name(element_type)}")
        pointer, memory = _tensor_over(array, array.shape, element_type)
        return OrtValue(Handle(pointer, api.ReleaseValue, memory))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int],
        element_type: Any = np.float32,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> OrtValue:
        """A tensor whose elements are not set. `element_type`: a dtype or a number of `TensorProto.DataType`.

        With a `memory_info` (from `OrtEpDevice.memory_info`) the other arguments say nothing: so is
        host-accessible memory allocated. Raises TypeError for an unknown type, `errors.NotFound` if no
        provider has memory on the device.
        """
        if isinstance(element_type, int):
            number = dtypes.from_proto(element_type)
        else:
            number = dtypes.to_onnx(element_type)
        if memory_info is not None:
            return _new_on(memory_info, shape, number)
        device = device_for(device_type, device_id, vendor_id)
        if device.is_cpu():
            return OrtValue(_new_tensor(default_allocator, shape, number))
        return _new_on(env.memory_on(device), shape, number)

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """A tensor over another library's memory, of an object that speaks DLPack or a capsule.

        In CPU memory what is read-only or not contiguous is copied. On a GPU it has to be contiguous, and a
        registered provider must have memory there; the other library's work on it must be done, and neither
        side is told what the other writes. Raises BufferError for dtypes that ONNX lacks or that have several
        elements a byte, and for other devices, `errors.NotFound` without such a provider, TypeError for an
        object that does not speak DLPack.
        """
        from ort_abi.ep._lend import dlpack

        taken = dlpack.Import(_capsule_of(data))
        element_type, shape = taken.element_type, taken.shape
        if taken.device[0] in dlpack.CPU_KINDS:
            if taken.strides is not None or taken.read_only:
                return cls.ortvalue_from_numpy(_copy_of(taken))
            memory = cpu_memory
        else:
            vendor, mem_type = dlpack.vendor_of(taken.device[0]), OrtDeviceMemoryType.DEFAULT
            device = OrtDevice(OrtMemoryInfoDeviceType.GPU, mem_type, vendor, taken.device[1])
            if taken.strides is not None:
                raise BufferError(f"a tensor on {device} must be contiguous to be taken without a copy")
            info = env.memory_on(device)
            memory = info._handle.pointer
        size, dims = dtypes.bytes_for(element_type, math.prod(shape)), ffi.new("int64_t[]", shape)
        over = (memory, ffi.cast("void*", taken.address), size, dims, len(shape), element_type)
        return cls(create("OrtValue", _release, _create_over, *over, parents=(taken,)))

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule over the tensor's memory, which it *keeps alive* until its consumer is done.

        What a run or a copy without a stream has written is there; nothing is waited for, whatever `stream`
        says. With `copy=True` or another `dl_device` it is over a copy, which can be made in CPU memory only.
        Raises BufferError for what cannot be done, strings, and types below a byte.
        """
        from ort_abi.ep._lend import dlpack

        device, value = self.__dlpack_device__(), self
        wanted = device if dl_device is None else tuple(dl_device)
        on_cpu = wanted[0] == dlpack.CPU
        if copy or not (wanted == device or (on_cpu and device[0] in dlpack.CPU_KINDS)):
            if copy is False or not on_cpu:
                raise BufferError(
                    f"a tensor on {self.device_name()} goes to DLPack's device {wanted} as no copy"
                )
            value, stream = OrtValue.ortvalue_from_numpy(np.array(self.numpy())), None
        element_type, shape = describe(value.pointer)
        if element_type == dtypes.STRING:
            raise BufferError("tensors of strings cannot go through DLPack")
        return dlpack.capsule(
            value.data_ptr(),
            element_type,
            shape,
            (wanted[0], wanted[1]),
            stream=stream,
            max_version=max_version,
            read_only=False,
            copied=value is not self,
            owner=value._handle,
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's device type and number: CPU 1, CUDA 2 (pinned 3), ROCm 10 (pinned 11), others 12."""
        from ort_abi.ep._lend import dlpack

        memory, kind, number = _memory_of(self.pointer), ffi.new("OrtMemoryInfoDeviceType*"), ffi.new("int*")
        api.MemoryInfoGetDeviceType(memory, kind)
        check(api.MemoryInfoGetId(memory, number))
        host = api.MemoryInfoGetDeviceMemType(memory) == OrtDeviceMemoryType.HOST_ACCESSIBLE
        vendor = api.MemoryInfoGetVendorId(memory)
        return dlpack.device_of(OrtMemoryInfoDeviceType(kind[0]).name, vendor, number[0], host)

    @property
    def pointer(self) -> CData:
        """The `OrtValue*`. *borrows*: valid as long as this object."""
        return self._handle.pointer

    def numpy(self) -> NDArray[Any]:
        """The tensor as an array over its memory, which the array keeps alive.

        Strings, types below a byte and device memory are copied. Raises `errors.NotImplemented` for
        what is no tensor.
        """
        return to_array(self._handle)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """For `numpy.asarray(value)`."""
        array = self.numpy()
        return np.array(array, dtype) if copy else np.asarray(array, dtype)

    def shape(self) -> list[int]:
        """The tensor's dimensions."""
        return list(describe(self.pointer)[1])

    def data_type(self) -> str:
        """The type as text: "tensor(float)"."""
        return _type_of(self.pointer)

    def element_type(self) -> int:
        """The element type as a number of `TensorProto.DataType`."""
        return dtypes.to_proto(describe(self.pointer)[0])

    def data_ptr(self) -> int:
        """Address of the first element."""
        out = ffi.new("const void**")
        check(api.GetTensorData(self.pointer, out))
        return int(ffi.cast("uintptr_t", out[0]))

    def tensor_size_in_bytes(self) -> int:
        """Size of the elements in memory (API 23). Raises `errors.InvalidArgument` for strings."""
        out = ffi.new("size_t*")
        check(api.GetTensorSizeInBytes(self.pointer, out))
        return int(out[0])

    def device_name(self) -> str:
        """Where the memory is: "cpu", "gpu", "npu", ...; "cuda" for NVIDIA's."""
        memory, kind = _memory_of(self.pointer), ffi.new("OrtMemoryInfoDeviceType*")
        api.MemoryInfoGetDeviceType(memory, kind)
        name = OrtMemoryInfoDeviceType(kind[0]).name.lower()
        return "cuda" if name == "gpu" and api.MemoryInfoGetVendorId(memory) == 0x10DE else name

    def has_value(self) -> bool:
        """False for an optional that is empty."""
        return self._flag(api.HasValue)

    def is_tensor(self) -> bool:
        """True for a dense tensor."""
        return self._flag(api.IsTensor)

    def is_sparse_tensor(self) -> bool:
        """True for a sparse tensor."""
        return self._flag(api.IsSparseTensor)

    def is_tensor_sequence(self) -> bool:
        """True for a sequence of tensors."""
        return self.data_type().startswith("seq(tensor(")

    def update_inplace(self, data: NDArray[Any] | OrtValue) -> None:
        """Copies elements in. Raises ValueError if dtype or shape differ."""
        source = data if isinstance(data, OrtValue) else OrtValue.ortvalue_from_numpy(np.asarray(data))
        if (ours := describe(self.pointer)) != (theirs := describe(source.pointer)):
            have, got = (f"{onnx_name(kind)}{list(shape)}" for kind, shape in (ours, theirs))
            raise ValueError(f"a tensor of {have} cannot take the elements of {got}")
        if ours[0] == dtypes.STRING:
            fill_strings(api, self.pointer, source.numpy().reshape(-1).tolist())
        elif _in_host_memory(self.pointer) and _in_host_memory(source.pointer):
            target = ffi.cast("void*", self.data_ptr())
            ffi.memmove(target, ffi.cast("void*", source.data_ptr()), self.tensor_size_in_bytes())
        else:
            copy_tensors([source], [self])

    def _flag(self, slot: CData) -> bool:
        out = ffi.new("int*")
        check(slot(self.pointer, out))
        return bool(out[0])

    def __repr__(self) -> str:
        if not self.is_tensor():
            return f"OrtValue({self.data_type()})"
        return f"OrtValue({self.data_type()}, shape={self.shape()}, device={self.device_name()!r})"


def copy_tensors(
    src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: OrtSyncStream | None = None
) -> None:
    """Copies tensors, within a device or between devices (`CopyTensors`, API 23).

    All sources are on one device, all targets on one. With a stream the copies may go on after the call: keep
    the values until the stream has been waited for. Raises ValueError if the counts differ, an
    `errors.OrtError` for tensors that nobody can copy.
    """
    if len(src) != len(dst):
        raise ValueError(f"{len(src)} sources cannot be copied to {len(dst)} targets")
    if src:
        on = NULL if stream is None else stream.pointer
        _copy([value.pointer for value in src], [value.pointer for value in dst], on)
