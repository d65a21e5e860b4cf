"""DLPack: tensors for other libraries (`capsule`), and from other libraries (`Import`), without a copy.

The structs, and how what they keep alive is released, are in csrc/bridge/dlpack.c.
"""

from __future__ import annotations

import ctypes
from typing import Any

from ort_abi import dtypes
from ort_abi._lib import CData, ffi, lib
from ort_abi.ep._call import objects

__all__ = ["CPU", "CPU_KINDS", "Import", "capsule", "device_of", "element_type_of", "vendor_of"]

CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, EXTENSION, CUDA_MANAGED = 1, 2, 3, 10, 11, 12, 13  # DLDeviceType
CPU_KINDS = (CPU, CUDA_HOST, ROCM_HOST, CUDA_MANAGED)
"""Devices whose memory the CPU can use."""

_GPUS = {0x10DE: (CUDA, CUDA_HOST), 0x1002: (ROCM, ROCM_HOST)}  # by PCI vendor
_READ_ONLY, _IS_COPIED = 1, 2  # flags
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6  # DLDataTypeCode
_TYPES = {  # code and bits, by ONNXTensorElementDataType
    1: (_FLOAT, 32),
    2: (_UINT, 8),
    3: (_INT, 8),
    4: (_UINT, 16),
    5: (_INT, 16),
    6: (_INT, 32),
    7: (_INT, 64),
    9: (_BOOL, 8),
    10: (_FLOAT, 16),
    11: (_FLOAT, 64),
    12: (_UINT, 32),
    13: (_UINT, 64),
    14: (_COMPLEX, 64),
    15: (_COMPLEX, 128),
    16: (_BFLOAT, 16),
    17: (10, 8),
    18: (11, 8),
    19: (12, 8),
    20: (13, 8),
    26: (14, 8),
}
_ELEMENT_TYPES = {pair: number for number, pair in _TYPES.items()}


def _python(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's C API, under a prototype of our own: `ctypes.pythonapi.x` is everybody's."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new_capsule = _python("PyCapsule_New", ctypes.py_object, *[ctypes.c_void_p] * 3)
_is_valid = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_get_pointer = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
_set_name = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_void_p)


def _address(pointer: CData) -> int:
    return int(ffi.cast("uintptr_t", pointer))


# By [versioned]: the names live as long as the process, as capsules refer to them.
_NAMES = [_address(lib.bridge_dlpack_name(versioned, 0)) for versioned in (0, 1)]
_USED_NAMES = [_address(lib.bridge_dlpack_name(versioned, 1)) for versioned in (0, 1)]
_STRUCTS = ["DLManagedTensor*", "DLManagedTensorVersioned*"]
_gone = _address(ffi.addressof(lib, "bridge_dlpack_capsule_gone"))


def device_of(kind: str, vendor_id: int, device_id: int, host_accessible: bool) -> tuple[int, int]:
    """DLPack's type and number of a memory device, `kind` being "CPU", "GPU", "FPGA" or "NPU"."""
    if kind == "CPU":
        return CPU, 0
    device, host = _GPUS.get(vendor_id, (EXTENSION, CPU)) if kind == "GPU" else (EXTENSION, CPU)
    return (host, 0) if host_accessible else (device, device_id)


def vendor_of(device_type: int) -> int:
    """The PCI vendor of a GPU's memory. Raises BufferError for memory of other devices."""
    for vendor, (device, _) in _GPUS.items():
        if device == device_type:
            return vendor
    raise BufferError(
        f"memory of DLPack's device type {device_type} cannot be taken: only the CPU's and GPUs'"
    )


def _no_type(what: str) -> BufferError:
    return BufferError(f"tensors of {what} cannot go through DLPack")


def capsule(
    address: int,
    element_type: int,
    shape: tuple[int, ...],
    device: tuple[int, int],
    *,
    stream: Any,
    max_version: tuple[int, int] | None,
    read_only: bool,
    copied: bool = False,
    owner: object = None,
) -> Any:
    """A `PyCapsule` over a tensor's memory, which *keeps alive* `owner` until the consumer is done with it.

    A "dltensor_versioned" for consumers of version 1 or later, else a "dltensor", which cannot say that it is
    read-only. Raises BufferError for strings, types below a byte, and a `stream` that the device lacks.
    """
    code, bits = _TYPES.get(element_type, (0, 0))
    if not bits:
        raise _no_type(dtypes.name_of(element_type))
    if stream is not None and device[0] not in (CUDA, ROCM):
        raise BufferError(f"memory of DLPack's device type {device[0]} has no stream {stream!r}")
    if stream == 0 and device[0] == CUDA:
        raise BufferError("stream 0 is ambiguous for DLPack: 1 is CUDA's default stream, 2 a thread's own")
    versioned = max_version is not None and max_version[0] >= 1
    dims = ffi.new("int64_t[]", shape)
    tensor = ffi.new("DLTensor*")
    tensor.data, tensor.shape, tensor.ndim = ffi.cast("void*", address), dims, len(shape)
    tensor.device_type, tensor.device_id = device
    tensor.code, tensor.bits, tensor.lanes = code, bits, 1
    flags = _READ_ONLY * read_only | _IS_COPIED * copied
    number = 0 if owner is None else objects.add(owner)
    managed = lib.bridge_dlpack_new(tensor, versioned, flags, number)
    try:
        if managed == ffi.NULL:
            raise MemoryError("no memory for a DLPack tensor")
        made = _new_capsule(_address(managed), _NAMES[versioned], _gone)
    except BaseException:
        if managed != ffi.NULL:
            ffi.cast(_STRUCTS[versioned], managed).deleter(managed)
        elif number:
            objects.remove(number)
        raise
    return made


class Import:
    """Takes the tensor out of a capsule; its memory is good as long as this object.

    Raises TypeError for what is no capsule, BufferError for one that was used or is of a version to come.
    """

    def __init__(self, data: Any) -> None:
        self._managed: CData | None = None
        for versioned in (0, 1):
            if _is_valid(data, _NAMES[versioned]):
                pointer = _get_pointer(data, _NAMES[versioned])
                _set_name(data, _USED_NAMES[versioned])
                self._managed = managed = ffi.cast(_STRUCTS[versioned], pointer)
                break
        else:
            if any(_is_valid(data, name) for name in _USED_NAMES):
                raise BufferError("the DLPack capsule was used before")
            raise TypeError(f"{type(data).__name__} is no DLPack capsule, and does not speak DLPack")
        if versioned and managed.major > 1:
            raise BufferError(f"DLPack {managed.major}.{managed.minor} is not known")
        self.read_only = bool(versioned and managed.flags & _READ_ONLY)
        tensor = managed.dl_tensor
        self.device = (tensor.device_type, tensor.device_id)
        self.address = _address(tensor.data) + tensor.byte_offset
        self.shape: tuple[int, ...] = tuple(ffi.unpack(tensor.shape, tensor.ndim)) if tensor.ndim else ()
        self.element_type = element_type_of(tensor)
        self.strides: tuple[int, ...] | None = None
        """In elements; None if they are row after row."""
        if tensor.ndim and tensor.strides != ffi.NULL:
            strides = tuple(ffi.unpack(tensor.strides, tensor.ndim))
            self.strides = None if _is_compact(self.shape, strides) else strides

    def __del__(self) -> None:
        managed, self._managed = self._managed, None
        if managed is not None and managed.deleter != ffi.NULL:
            managed.deleter(managed)


def element_type_of(tensor: CData) -> int:
    """The `ONNXTensorElementDataType` of a `DLTensor`. Raises BufferError for types that ONNX lacks."""
    found = _ELEMENT_TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if found is None:
        raise _no_type(f"DLPack's type code {tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes")
    return found


def _is_compact(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    if 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
