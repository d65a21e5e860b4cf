"""DLPack: what `DeviceTensor` and `OrtValue` hand to other libraries, and what `OrtValue` takes from them."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import onnxruntime
import pytest

import ort_abi
from ort_abi import OrtValue, dtypes, ep
from ort_abi._lib import ffi
from ort_abi.ep._lend import dlpack

CPU = ep.MemoryDevice("CPU")
CUDA = ep.MemoryDevice("GPU", 0x10DE, 3)
USED = b"used_dltensor"  # as long as the process: capsules do not copy names
X = np.arange(6, dtype=np.float32).reshape(2, 3)

_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def inside(capsule: Any) -> Any:
    """The managed tensor in a capsule."""
    name = _name(capsule)
    kinds = {b"dltensor": "DLManagedTensor*", b"dltensor_versioned": "DLManagedTensorVersioned*"}
    return ffi.cast(kinds[name], _pointer(capsule, name))


def value_of(array: Any) -> OrtValue:
    return OrtValue.ortvalue_from_numpy(array)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    objects = ep.live_objects()
    yield
    gc.collect()
    assert ep.live_objects() == objects


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (CPU, (1, 0)),
        (CUDA, (2, 3)),
        (ep.MemoryDevice("GPU", 0x10DE, 3, True), (3, 0)),
        (ep.MemoryDevice("GPU", 0x1002, 1), (10, 1)),
        (ep.MemoryDevice("GPU", 0x1002, 1, True), (11, 0)),
        (ep.MemoryDevice("GPU", 0x8086, 2), (12, 2)),
        (ep.MemoryDevice("NPU", 0x10DE, 2), (12, 2)),
        (ep.MemoryDevice("NPU", 0x1234, 2, True), (1, 0)),
    ],
)
def test_devices(device: ep.MemoryDevice, expected: tuple[int, int]) -> None:
    tensor = ep.DeviceTensor(0x1000, 1, (2,), device, True)
    assert tensor.__dlpack_device__() == expected
    capsule = tensor.__dlpack__()
    told = inside(capsule).dl_tensor
    assert (told.device_type, told.device_id) == expected


def test_a_capsule_of_before_there_were_versions() -> None:
    capsule = ep.DeviceTensor(0x1000, 10, (2, 3, 4), CUDA, True).__dlpack__(stream=1)
    assert _name(capsule) == b"dltensor"
    tensor = inside(capsule).dl_tensor
    assert (tensor.ndim, tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset) == (3, 2, 16, 1, 0)
    assert int(ffi.cast("uintptr_t", tensor.data)) == 0x1000
    assert ffi.unpack(tensor.shape, 3) == [2, 3, 4] and ffi.unpack(tensor.strides, 3) == [12, 4, 1]


@pytest.mark.parametrize("writeable", [False, True])
def test_a_capsule_with_a_version_tells_what_is_read_only(writeable: bool) -> None:
    tensor = ep.DeviceTensor(0x1000, 1, (), CUDA, writeable)
    capsule = tensor.__dlpack__(stream=None, max_version=(1, 0))
    assert _name(capsule) == b"dltensor_versioned"
    managed = inside(capsule)
    assert (managed.major, managed.flags, managed.dl_tensor.ndim) == (1, not writeable, 0)
    assert _name(tensor.__dlpack__(max_version=(0, 8))) == b"dltensor"


def test_the_layout_is_that_of_the_protocol() -> None:
    """Offsets as dlpack.h has them on 64-bit machines."""
    assert ffi.sizeof("DLTensor") == 48 and ffi.offsetof("DLTensor", "ndim") == 16
    assert ffi.offsetof("DLTensor", "code") == 20 and ffi.offsetof("DLTensor", "lanes") == 22
    assert ffi.offsetof("DLTensor", "shape") == 24 and ffi.offsetof("DLTensor", "byte_offset") == 40
    assert ffi.sizeof("DLManagedTensor") == 64 and ffi.offsetof("DLManagedTensor", "deleter") == 56
    versioned = [("manager_ctx", 8), ("deleter", 16), ("flags", 24), ("dl_tensor", 32)]
    assert all(ffi.offsetof("DLManagedTensorVersioned", name) == at for name, at in versioned)


@pytest.mark.parametrize("number", [number for number in dlpack._TYPES if number not in (14, 15, 26)])
def test_dtypes_are_told_as_stock_onnxruntime_tells_them(number: int) -> None:
    ours = OrtValue.ortvalue_from_shape_and_type([2, 3], number).__dlpack__()
    told = inside(ours).dl_tensor
    stock = onnxruntime.OrtValue.ortvalue_from_shape_and_type([2, 3], number).__dlpack__()
    theirs = inside(stock).dl_tensor
    assert (told.code, told.bits, told.lanes) == (theirs.code, theirs.bits, theirs.lanes)
    assert ffi.unpack(told.shape, 2) == ffi.unpack(theirs.shape, 2)
    assert ffi.unpack(told.strides, 2) == ffi.unpack(theirs.strides, 2)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128, np.bool_, np.float16, np.uint8, np.int64])
def test_numpy_reads_dtypes_right(dtype: Any) -> None:
    array = np.array([0, 1, 2, 3]).astype(dtype)
    there = np.from_dlpack(value_of(array))  # type: ignore[arg-type]
    assert there.dtype == dtype and there.tolist() == array.tolist()
    assert there.ctypes.data == array.ctypes.data
    back = OrtValue.from_dlpack(array)
    assert back.numpy().dtype == dtype and back.data_ptr() == array.ctypes.data


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
def test_several_elements_a_byte_are_refused(name: str) -> None:
    number = dtypes.to_onnx(name)
    tensor = ep.DeviceTensor(0x1000, number, (2,), CUDA, True)
    with pytest.raises(BufferError, match=f"tensors of {name} cannot go through DLPack"):
        tensor.__dlpack__()
    value = OrtValue.ortvalue_from_numpy(np.zeros(2, dtypes.from_onnx(number)))
    with pytest.raises(BufferError, match=f"tensors of {name} cannot go through DLPack"):
        value.__dlpack__()


def test_strings_and_what_is_no_tensor_are_refused() -> None:
    with pytest.raises(BufferError, match="strings"):
        value_of(np.array(["a"])).__dlpack__()
    capsule = onnxruntime.OrtValue.ortvalue_from_shape_and_type([2], 22).__dlpack__()
    with pytest.raises(BufferError, match="type code 0 with 4 bits and 1 lanes"):
        OrtValue.from_dlpack(capsule)
    capsule = value_of(X).__dlpack__()
    inside(capsule).dl_tensor.lanes = 4
    with pytest.raises(BufferError, match="type code 2 with 32 bits and 4 lanes"):
        OrtValue.from_dlpack(capsule)


def test_a_device_tensor_is_handed_out_as_it_is_and_during_its_call() -> None:
    tensor = ep.DeviceTensor(0x1000, 1, (2,), CUDA, True)
    for options in ({"copy": True}, {"dl_device": (1, 0)}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError, match="handed out as it is"):
            tensor.__dlpack__(**options)
    tensor.__dlpack__(copy=False, dl_device=(2, 3), stream=2)
    with pytest.raises(BufferError, match="ambiguous"):
        tensor.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="no stream 1"):
        ep.DeviceTensor(0x1000, 1, (2,), CPU, True).__dlpack__(stream=1)
    tensor._close()
    with pytest.raises(RuntimeError, match="valid only during the call"):
        tensor.__dlpack__()


@pytest.mark.parametrize("writeable", [False, True])
@pytest.mark.parametrize("device", [CPU, ep.MemoryDevice("GPU", 0x10DE, 0, True)])
def test_numpy_takes_what_the_cpu_can_use(device: ep.MemoryDevice, writeable: bool) -> None:
    array = X.copy()
    tensor = ep.DeviceTensor(array.ctypes.data, 1, X.shape, device, writeable)
    there = np.from_dlpack(tensor)  # type: ignore[arg-type]
    assert there.ctypes.data == array.ctypes.data and there.tolist() == X.tolist()
    assert there.flags.writeable is writeable


def test_a_capsule_keeps_the_value_alive_until_its_consumer_is_done() -> None:
    memory = X.copy()
    gone = weakref.ref(memory)
    value = value_of(memory)
    there = np.from_dlpack(value)  # type: ignore[arg-type]
    del value, memory
    gc.collect()
    assert gone() is not None and there.tolist() == X.tolist()
    del there
    assert gone() is None


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_capsule_that_nobody_takes_releases_what_it_keeps(max_version: Any) -> None:
    memory = X.copy()
    gone = weakref.ref(memory)
    capsule = value_of(memory).__dlpack__(max_version=max_version)
    del memory
    assert gone() is not None
    del capsule
    assert gone() is None


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_capsule_that_was_taken_releases_nothing(max_version: Any) -> None:
    memory = X.copy()
    gone = weakref.ref(memory)
    capsule = value_of(memory).__dlpack__(max_version=max_version)
    del memory
    taken = OrtValue.from_dlpack(capsule)
    assert _name(capsule) == (b"used_dltensor_versioned" if max_version else b"used_dltensor")
    with pytest.raises(BufferError, match="used before"):
        OrtValue.from_dlpack(capsule)
    del capsule
    assert gone() is not None and taken.numpy().tolist() == X.tolist()
    del taken
    gc.collect()
    assert gone() is None


def test_stock_onnxruntime_takes_ours_and_we_take_its() -> None:
    value = value_of(X)
    stock = onnxruntime.OrtValue.from_dlpack(value)
    assert stock.data_ptr() == value.data_ptr() and stock.numpy().tolist() == X.tolist()
    del value
    ours = OrtValue.from_dlpack(stock)
    assert ours.data_ptr() == stock.data_ptr() and ours.numpy().tolist() == X.tolist()


def test_copies_and_devices_that_a_consumer_asks_for() -> None:
    value = value_of(X)
    copy = np.from_dlpack(value, copy=True)  # type: ignore[arg-type,call-arg]
    assert copy.ctypes.data != X.ctypes.data and copy.tolist() == X.tolist()
    capsule = value.__dlpack__(copy=True, max_version=(1, 0))
    assert inside(capsule).flags == 2
    same = np.from_dlpack(value, device="cpu", copy=False)  # type: ignore[arg-type,call-arg]
    assert same.ctypes.data == X.ctypes.data
    with pytest.raises(BufferError, match=r"device \(2, 0\)"):
        value.__dlpack__(dl_device=(2, 0))


@pytest.mark.parametrize("array", [X.T, X[:, ::2], X[::-1], np.broadcast_to(X[:1], (4, 3))])
def test_what_is_not_row_after_row_is_copied(array: Any) -> None:
    value = OrtValue.from_dlpack(array)
    assert value.numpy().tolist() == array.tolist()
    assert value.data_ptr() != array.ctypes.data


def test_what_is_read_only_is_copied() -> None:
    array = X.copy()
    array.setflags(write=False)
    value = OrtValue.from_dlpack(array)
    assert value.data_ptr() != array.ctypes.data and value.numpy().tolist() == X.tolist()
    value.numpy()[...] = 0
    assert array.tolist() == X.tolist()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_odd_shapes_both_ways(shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.float32)
    assert np.from_dlpack(value_of(array)).shape == shape  # type: ignore[arg-type]
    value = OrtValue.from_dlpack(array)
    assert value.shape() == list(shape) and value.numpy().tolist() == array.tolist()


def test_strides_do_not_matter_where_there_is_one_element_or_none() -> None:
    assert dlpack._is_compact((2, 1, 3), (3, 77, 1)) and dlpack._is_compact((0, 5), (9, 9))
    assert not dlpack._is_compact((2, 3), (4, 1)) and not dlpack._is_compact((2,), (0,))


class Old:
    """Speaks DLPack as libraries did before there were versions."""

    def __init__(self, device: tuple[int, int] = (1, 0)) -> None:
        self.array, self.device = X.copy(), device

    def __dlpack__(self, stream: Any = None) -> Any:
        address = self.array.ctypes.data
        return dlpack.capsule(
            address, 1, X.shape, self.device, stream=None, max_version=None, read_only=False
        )


def test_objects_that_know_no_versions() -> None:
    old = Old()
    assert OrtValue.from_dlpack(old).data_ptr() == old.array.ctypes.data
    pinned = Old((3, 0))
    assert OrtValue.from_dlpack(pinned).data_ptr() == pinned.array.ctypes.data


def test_what_cannot_be_taken() -> None:
    with pytest.raises(TypeError, match="does not speak DLPack"):
        OrtValue.from_dlpack(3)
    with pytest.raises(BufferError, match="device type 12"):
        OrtValue.from_dlpack(Old((12, 0)))
    with pytest.raises(ort_abi.errors.NotFound, match="no registered execution provider has memory"):
        OrtValue.from_dlpack(Old((2, 7)))
    capsule = value_of(X).__dlpack__(max_version=(1, 0))
    inside(capsule).major = 2
    with pytest.raises(BufferError, match=r"DLPack 2\.1 is not known"):
        OrtValue.from_dlpack(capsule)


def test_a_deleter_may_come_from_a_thread_that_python_does_not_know() -> None:
    memory = X.copy()
    gone = weakref.ref(memory)
    capsule = value_of(memory).__dlpack__()
    del memory
    managed = inside(capsule)
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), ctypes.c_char_p(USED))
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    deleter, address = (int(ffi.cast("uintptr_t", p)) for p in (managed.deleter, managed))
    start = ctypes.c_void_p(deleter)
    assert libc.pthread_create(ctypes.byref(thread), None, start, ctypes.c_void_p(address)) == 0
    assert libc.pthread_join(thread, None) == 0
    assert gone() is None


def test_an_exception_that_passes_a_capsule_stays_as_it_is() -> None:
    value = value_of(X)
    with pytest.raises(ZeroDivisionError):
        (value.__dlpack__(), 1 / 0)


EXIT = """
import ctypes
import numpy as np
import ort_abi
from ort_abi._lib import ffi
value = ort_abi.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32))
"""


@pytest.mark.parametrize(
    "code",
    [
        "capsule = value.__dlpack__()",
        "array = np.from_dlpack(value)",
        "taken = ort_abi.OrtValue.from_dlpack(value)",
        # A consumer in C that lets go when Python is no more.
        "capsule = value.__dlpack__()\n"
        "get = ctypes.pythonapi.PyCapsule_GetPointer\n"
        "get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]\n"
        "managed = ffi.cast('DLManagedTensor*', get(capsule, b'dltensor'))\n"
        "deleter, address = (int(ffi.cast('uintptr_t', p)) for p in (managed.deleter, managed))\n"
        "name = ctypes.create_string_buffer(b'used_dltensor')\n"
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(name))\n"
        "ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), name)\n"
        "exit = ctypes.CDLL(None).__cxa_atexit\n"
        "exit(ctypes.c_void_p(deleter), ctypes.c_void_p(address), None)\n",
    ],
)
def test_at_the_end_of_python(code: str) -> None:
    command = [sys.executable, "-c", EXIT + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
