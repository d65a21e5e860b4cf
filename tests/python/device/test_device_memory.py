"""Memory, copies and streams of an EP's device, from Python.

On the virtual device of samples/c_plugin_device, whose memory the host cannot read.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ep_support import model
from onnx import TensorProto, helper

import ort_abi
from ort_abi import OrtDevice, OrtDeviceMemoryType, OrtValue, errors
from tests.support import virtual_device
from tests.support.virtual_device import EP_NAME, VENDOR_ID, Control, Counters

A = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
DEFAULT, HOST_ACCESSIBLE = OrtDeviceMemoryType.DEFAULT, OrtDeviceMemoryType.HOST_ACCESSIBLE


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return virtual_device.build(tmp_path_factory.mktemp("device"))


@pytest.fixture
def control(library: Path) -> Iterator[Control]:
    """The device is registered; afterwards nothing of it is left."""
    ort_abi.register_execution_provider_library("virtual", library)
    control = virtual_device.control_of(library)
    yield control
    gc.collect()
    assert control.live_chunks == 0
    ort_abi.unregister_execution_provider_library("virtual")
    assert control.live_objects == 0


def ep_device() -> ort_abi.OrtEpDevice:
    return next(device for device in ort_abi.get_ep_devices() if device.ep_name == EP_NAME)


def on_device(array: np.ndarray) -> OrtValue:
    return OrtValue.ortvalue_from_numpy(array, "gpu")


def open_session(model_bytes: bytes, **config: str) -> ort_abi.InferenceSession:
    options = ort_abi.SessionOptions()
    options.add_provider_for_devices([ep_device()], {})
    return ort_abi.InferenceSession(model_bytes, options, fallback=False)


def chain() -> bytes:
    """y = relu(a * b + a), which the device takes whole."""
    spec = (TensorProto.FLOAT, [2, 3])
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["m"]),
        helper.make_node("Add", ["m", "a"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    return model(nodes, {"a": spec, "b": spec}, {"y": spec})


EXPECTED = np.maximum(A * A + A, 0)


# ---- what a device is ----


def test_memory_infos_of_a_device(control: Control) -> None:
    default, host = ep_device().memory_info(DEFAULT), ep_device().memory_info(HOST_ACCESSIBLE)
    assert default is not None and host is not None
    for memory in (default, host):
        assert memory.device_type == ort_abi.OrtMemoryInfoDeviceType.GPU
        assert (memory.device_vendor_id, memory.device_id) == (VENDOR_ID, 0)
    assert (default.device_mem_type, host.device_mem_type) == (DEFAULT, HOST_ACCESSIBLE)
    assert (default.mem_type, host.mem_type) == (ort_abi.OrtMemType.DEFAULT, ort_abi.OrtMemType.CPU_OUTPUT)
    assert default != host and default == ep_device().memory_info()


def test_the_cpu_provider_has_no_memory_of_its_own() -> None:
    cpu = next(d for d in ort_abi.get_ep_devices() if d.ep_name == "CPUExecutionProvider")
    assert cpu.memory_info(DEFAULT) is None
    with pytest.raises(errors.NotImplemented, match="CPUExecutionProvider"):
        cpu.create_sync_stream()


# ---- split models ----


def test_a_split_model(host: ModuleType, library: Path) -> None:
    """Device, CPU, device, with streams that delay. Stock makes nodes of the copies and asks for kernels."""
    spec = (TensorProto.FLOAT, [2, 3])
    nodes = [
        helper.make_node("Mul", ["a", "w"], ["m"]),
        helper.make_node("Sigmoid", ["m"], ["s"]),
        helper.make_node("Add", ["s", "w"], ["y"]),
    ]
    graph = model(nodes, {"a": spec}, {"y": spec}, {"w": A})
    host.register_execution_provider_library("virtual", str(library))
    control = virtual_device.control_of(library)
    options = host.SessionOptions()
    options.add_provider_for_devices([d for d in host.get_ep_devices() if d.ep_name == EP_NAME], {})
    session = host.InferenceSession(graph, options)
    control.max_delay_us = 300
    counters = Counters(control)
    for n in range(20):
        expected = 1 / (1 + np.exp(-((A + n) * A))) + A
        np.testing.assert_allclose(session.run(None, {"a": A + n})[0], expected, rtol=1e-6)
    assert counters.launches == 40 and counters.copies_to_device == 40 and counters.copies_to_host == 40
    assert counters.waits_on_host == 20
    control.max_delay_us = 0
    del session
    gc.collect()
    assert control.live_chunks == 0
    host.unregister_execution_provider_library("virtual")
    assert control.live_objects == 0


# ---- values and copies ----


@pytest.mark.parametrize("vendor_id", [-1, VENDOR_ID])
def test_an_array_goes_to_the_device_and_back(control: Control, vendor_id: int) -> None:
    counters = Counters(control)
    value = OrtValue.ortvalue_from_numpy(A, "gpu", 0, vendor_id)
    assert (counters.copies_to_device, counters.copies_to_host) == (1, 0)
    assert value.device_name() == "gpu" and value.shape() == [2, 3] and value.is_tensor()
    np.testing.assert_array_equal(value.numpy(), A)
    np.testing.assert_array_equal(np.asarray(value), A)
    assert (counters.copies_to_device, counters.copies_to_host) == (1, 2)


def test_devices_can_be_told_by_an_ort_device(control: Control) -> None:
    device = OrtDevice.make("gpu", 0, VENDOR_ID)
    value = OrtValue.ortvalue_from_numpy(A, device)
    empty = OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, device)
    ort_abi.copy_tensors([value], [empty])
    np.testing.assert_array_equal(empty.numpy(), A)


def test_host_accessible_memory_is_read_in_place(control: Control) -> None:
    counters = Counters(control)
    memory = ep_device().memory_info(HOST_ACCESSIBLE)
    value = OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, memory_info=memory)
    value.numpy()[...] = A
    np.testing.assert_array_equal(value.numpy(), A)
    assert counters.copies_to_host == counters.copies_to_device == 0
    there = on_device(np.zeros_like(A))
    ort_abi.copy_tensors([value], [there])
    np.testing.assert_array_equal(there.numpy(), A)


def test_copies_in_every_direction(control: Control) -> None:
    first, second = on_device(A), on_device(np.zeros_like(A))
    host = OrtValue.ortvalue_from_numpy(np.zeros_like(A))
    counters = Counters(control)
    ort_abi.copy_tensors([first], [second])
    assert counters.copies_on_device == 1
    ort_abi.copy_tensors([second], [host])
    assert counters.copies_to_host == 1
    np.testing.assert_array_equal(host.numpy(), A)
    second.update_inplace(2 * A)
    np.testing.assert_array_equal(second.numpy(), 2 * A)


def test_a_batch_of_copies(control: Control) -> None:
    sources = [OrtValue.ortvalue_from_numpy(A + i) for i in range(40)]
    targets = [OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, "gpu") for _ in sources]
    counters = Counters(control)
    ort_abi.copy_tensors(sources, targets)
    assert counters.copies_to_device == 40
    for i, target in enumerate(targets):
        np.testing.assert_array_equal(target.numpy(), A + i)


def test_empty_tensors_are_not_copied(control: Control) -> None:
    counters = Counters(control)
    assert on_device(np.empty((0, 3), np.float32)).numpy().shape == (0, 3)
    assert counters.copies_to_device == counters.copies_to_host == 0


def test_what_cannot_be_copied_is_an_error(control: Control) -> None:
    value = on_device(A)
    with pytest.raises(ValueError, match="1 sources cannot be copied to 0 targets"):
        ort_abi.copy_tensors([value], [])
    with pytest.raises(errors.InvalidArgument, match="24 and 8 bytes"):
        ort_abi.copy_tensors([value], [OrtValue.ortvalue_from_numpy(np.zeros(2, np.float32))])
    with pytest.raises(errors.OrtError):  # strings stay on the CPU
        on_device(np.array(["a", "b"]))
    control.failing_callback = b"CopyTensors"
    with pytest.raises(errors.EPFail, match="CopyTensors was asked to fail"):
        value.numpy()
    np.testing.assert_array_equal(value.numpy(), A)


def test_a_device_that_nobody_has_is_an_error(control: Control) -> None:
    for make in (
        lambda: OrtValue.ortvalue_from_numpy(A, "npu"),
        lambda: OrtValue.ortvalue_from_numpy(A, "gpu", 7),
    ):
        with pytest.raises(errors.NotFound, match="no registered execution provider has memory on"):
            make()
    with pytest.raises(ValueError, match="'abacus' is not known"):
        OrtValue.ortvalue_from_numpy(A, "abacus")


def test_a_value_keeps_its_library(library: Path) -> None:
    ort_abi.register_execution_provider_library("kept", library)
    value = on_device(A)
    with pytest.raises(errors.OrtError, match="kept"):
        ort_abi.unregister_execution_provider_library("kept")
    with pytest.raises(errors.Fail, match="values on devices are alive"):
        ort_abi.shutdown()
    np.testing.assert_array_equal(value.numpy(), A)
    del value
    ort_abi.unregister_execution_provider_library("kept")


# ---- streams ----


def test_a_copy_on_a_stream_is_done_when_the_stream_is(control: Control) -> None:
    stream = ep_device().create_sync_stream()
    assert stream.get_handle() != 0
    control.max_delay_us = 2000
    counters = Counters(control)
    target = OrtValue.ortvalue_from_numpy(np.zeros_like(A))
    there = OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, "gpu")
    ort_abi.copy_tensors([OrtValue.ortvalue_from_numpy(A)], [there], stream)
    ort_abi.copy_tensors([there], [target], stream=stream)
    assert counters.copies_with_stream == 2
    stream.flush()
    control.max_delay_us = 0
    np.testing.assert_array_equal(target.numpy(), A)
    assert counters.flushes == 1
    stream.close()
    stream.close()
    with pytest.raises(RuntimeError, match="the stream is closed"):
        stream.get_handle()


def test_a_stream_keeps_its_library(library: Path) -> None:
    ort_abi.register_execution_provider_library("kept", library)
    stream = ep_device().create_sync_stream({"priority": "high"})
    with pytest.raises(errors.OrtError, match="kept"):
        ort_abi.unregister_execution_provider_library("kept")
    stream.close()
    ort_abi.unregister_execution_provider_library("kept")


def test_a_stream_of_a_gone_device_is_an_error(library: Path) -> None:
    ort_abi.register_execution_provider_library("gone", library)
    device = ep_device()
    ort_abi.unregister_execution_provider_library("gone")
    with pytest.raises(errors.InvalidArgument, match="its library was unregistered"):
        device.create_sync_stream()


def test_a_failing_stream_is_an_error(control: Control) -> None:
    control.failing_callback = b"CreateSyncStreamForDevice"
    with pytest.raises(errors.EPFail, match="CreateSyncStreamForDevice was asked to fail"):
        ep_device().create_sync_stream()
    stream = ep_device().create_sync_stream()
    control.failing_callback = b"Flush"
    with pytest.raises(errors.EPFail, match="Flush was asked to fail"):
        stream.flush()


def test_a_run_on_the_callers_stream(control: Control) -> None:
    session, stream, options = open_session(chain()), ep_device().create_sync_stream(), ort_abi.RunOptions()
    options.set_sync_stream(stream)
    a, counters = on_device(A), Counters(control)
    control.max_delay_us = 500
    outputs = session.run(None, {"a": a, "b": a}, options)
    control.max_delay_us = 0
    np.testing.assert_array_equal(outputs[0], EXPECTED)
    assert counters.streams == 0
    options.set_sync_stream(None)
    session.run(None, {"a": a, "b": a}, options)
    assert counters.streams == 1
    options.set_sync_stream(stream)
    stream.close()
    with pytest.raises(RuntimeError, match="the stream is closed"):
        session.run(None, {"a": a, "b": a}, options)


# ---- sessions ----


def test_bound_device_values_are_not_copied(control: Control) -> None:
    session = open_session(chain())
    a, b, y = on_device(A), on_device(A), on_device(np.zeros_like(A))
    binding, counters = session.io_binding(), Counters(control)
    binding.bind_ortvalue_input("a", a)
    binding.bind_ortvalue_input("b", b)
    binding.bind_ortvalue_output("y", y)
    session.run_with_iobinding(binding)
    assert counters.launches == 3
    assert counters.copies_to_device == counters.copies_to_host == counters.copies_on_device == 0
    np.testing.assert_array_equal(y.numpy(), EXPECTED)


def test_bound_addresses_and_outputs_made_on_the_device(control: Control) -> None:
    session, a = open_session(chain()), on_device(A)
    binding, counters = session.io_binding(), Counters(control)
    for name in ("a", "b"):
        binding.bind_input(name, "gpu", 0, np.float32, [2, 3], a.data_ptr())
    binding.bind_output("y", "gpu")
    session.run_with_iobinding(binding)
    assert counters.copies_to_device == counters.copies_to_host == counters.copies_on_device == 0
    (y,) = binding.get_outputs()
    assert y.device_name() == "gpu"
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], EXPECTED)
    assert counters.copies_to_host == 1
    with pytest.raises(errors.NotFound, match="no registered execution provider has memory on"):
        binding.bind_output("y", "npu")


def test_outputs_on_the_device_keep_the_session(control: Control) -> None:
    session, a = open_session(chain()), on_device(A)
    binding = session.io_binding()
    binding.bind_ortvalue_input("a", a)
    binding.bind_ortvalue_input("b", a)
    binding.bind_output("y", "gpu", 0)
    session.run_with_iobinding(binding)
    (y,) = binding.get_outputs()
    session.close()
    del session, binding
    gc.collect()
    np.testing.assert_array_equal(y.numpy(), EXPECTED)


def test_where_a_session_wants_its_values(control: Control) -> None:
    session = open_session(chain())
    memory = ep_device().memory_info()
    assert session.get_input_memory_infos() == [memory, memory]
    assert session.get_output_memory_infos() == [memory]


# ---- shared allocators ----


def test_an_arena_around_the_devices_allocator(control: Control) -> None:
    memory = ep_device().memory_info(HOST_ACCESSIBLE)
    assert memory is not None
    arena = ort_abi.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    ort_abi.create_shared_allocator(ep_device(), HOST_ACCESSIBLE, arena, {"arena.max_mem": str(1 << 20)})
    value = OrtValue.ortvalue_from_shape_and_type([4], np.float32, memory_info=memory)
    assert int(ort_abi.allocator_stats(memory)["InUse"]) >= 16
    with pytest.raises(errors.OrtError):
        OrtValue.ortvalue_from_shape_and_type([1 << 20], np.float32, memory_info=memory)
    del value
    ort_abi.release_shared_allocator(ep_device(), HOST_ACCESSIBLE)
    with pytest.raises(errors.NotFound, match="no shared allocator for OrtMemoryInfo"):
        OrtValue.ortvalue_from_shape_and_type([4], np.float32, memory_info=memory)
    ort_abi.create_shared_allocator(ep_device(), HOST_ACCESSIBLE)


def test_what_a_provider_does_not_have_is_an_error(control: Control) -> None:
    cpu = next(d for d in ort_abi.get_ep_devices() if d.ep_name == "CPUExecutionProvider")
    with pytest.raises(errors.InvalidArgument, match="no memory of type 0"):
        ort_abi.create_shared_allocator(cpu)
    with pytest.raises(errors.InvalidArgument, match="no memory of type 0"):
        ort_abi.release_shared_allocator(cpu)


# ---- the end of the process ----


def test_values_and_streams_may_be_alive_at_exit(library: Path) -> None:
    code = f"""
import numpy as np, ort_abi
ort_abi.register_execution_provider_library("virtual", {str(library)!r})
device = [d for d in ort_abi.get_ep_devices() if d.ep_name == {EP_NAME!r}][0]
value = ort_abi.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32), "gpu")
stream = device.create_sync_stream()
print(value.numpy().sum())
"""
    done: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3.0\n", "")
