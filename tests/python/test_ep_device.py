"""Providers in Python with a device of their own: memory, copies, streams and notifications, in both hosts.

The device is that of numpy_device.py: NumPy arrays behind addresses that nobody else can use, and streams
that work later than they are asked to.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy_device
import pytest
from ep_support import HOSTS, model, open_session, registered, run_once
from numpy_device import NAME, VENDOR_ID, Boom, NumpyDevice, StreamAllocator, device_class
from onnx import TensorProto, helper

import ort_abi
from ort_abi import OrtDeviceMemoryType, OrtValue, ep, errors

A = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
W = np.array([[1, 2, 3], [-4, 5, 6]], np.float32)
SPEC = (TensorProto.FLOAT, [2, 3])
EXPECTED = np.maximum(A * W + A, 0)
FEEDS = {"a": A}
OURS = HOSTS["ours"]


def chain() -> bytes:
    """y = relu(a * w + a), which the device takes whole."""
    nodes = [
        helper.make_node("Mul", ["a", "w"], ["m"], name="mul1"),
        helper.make_node("Add", ["m", "a"], ["s"], name="add1"),
        helper.make_node("Relu", ["s"], ["y"], name="relu1"),
    ]
    return model(nodes, {"a": SPEC}, {"y": SPEC}, {"w": W})


def split() -> bytes:
    """Device, CPU, device: y = sigmoid(a * w) + w."""
    nodes = [
        helper.make_node("Mul", ["a", "w"], ["m"]),
        helper.make_node("Sigmoid", ["m"], ["s"]),
        helper.make_node("Add", ["s", "w"], ["y"]),
    ]
    return model(nodes, {"a": SPEC}, {"y": SPEC}, {"w": W})


Plug = Callable[[type[NumpyDevice]], ort_abi.OrtEpDevice]


@pytest.fixture
def device() -> Iterator[Plug]:
    """A function that registers a provider in our host and gives its device; afterwards nothing is left."""
    objects, plugged = ep.live_objects(), []

    def plug(cls: type[NumpyDevice]) -> ort_abi.OrtEpDevice:
        ort_abi.register(cls)
        plugged.append(cls)
        return next(found for found in ort_abi.get_ep_devices() if found.ep_name == NAME)

    yield plug
    gc.collect()
    for cls in plugged:
        ort_abi.unregister_execution_provider_library(NAME)
        assert len(cls.state.memory) == 0
    assert ep.live_objects() == objects


def left_nothing(cls: type[NumpyDevice]) -> bool:
    gc.collect()
    return len(cls.state.memory) == 0 and ep.live_objects() == 0


# ---- whole models, in both hosts ----


@pytest.mark.parametrize("stream_aware", [False, True])
def test_a_model_runs_on_the_device(host: ModuleType, stream_aware: bool) -> None:
    cls = device_class(stream_aware=stream_aware)
    cls.state.delay = 0.002
    for _ in range(3):
        np.testing.assert_array_equal(run_once(host, cls, chain(), FEEDS)[0], EXPECTED)
    counts = cls.state.counts
    assert counts["compute"] == 9 and counts["GPU to CPU"] == 3
    assert counts["CPU to GPU"] == 6  # the input and the weight
    assert counts["create_sync_stream"] == counts["close stream"] == (3 if stream_aware else 0)
    assert left_nothing(cls)


def test_weights_and_inputs_reach_kernels_on_the_device(host: ModuleType) -> None:
    """With kernels instead of compiled nodes."""
    seen: list[Any] = []

    class Mul(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            state = cls.state
            views = [state.memory.view(t.ptr, t.shape, t.dtype) for t in ctx.inputs]
            out = ctx.output(0, ctx.inputs[0].shape)
            seen.extend([*ctx.inputs, out])
            assert ctx.stream is None
            np.multiply(*views, out=state.memory.view(out.ptr, out.shape, out.dtype))

    cls = device_class(
        Mul=ep.kernel("Mul", (7, None))(Mul), get_capability=ep.ExecutionProvider.get_capability
    )
    graph = model([helper.make_node("Mul", ["a", "w"], ["y"])], {"a": SPEC}, {"y": SPEC}, {"w": W})
    np.testing.assert_array_equal(run_once(host, cls, graph, FEEDS)[0], A * W)
    assert [tensor.shape for tensor in seen] == [(2, 3)] * 3
    assert all(tensor.dtype == np.float32 and tensor.nbytes == 24 and tensor.size == 6 for tensor in seen)
    assert {tensor.device for tensor in seen} == {ep.MemoryDevice("GPU", VENDOR_ID)}
    with pytest.raises(RuntimeError, match="valid only during the call"):
        _ = seen[0].ptr
    with pytest.raises(RuntimeError, match="valid only during the call"):
        _ = seen[2].ptr


def test_kernels_choose_what_is_in_cpu_memory(host: ModuleType) -> None:
    class Mul(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            there, here = ctx.inputs
            assert type(there) is ep.DeviceTensor and type(here) is np.ndarray
            out = ctx.output(0, here.shape)
            assert type(out) is np.ndarray
            np.multiply(cls.state.memory.view(there.ptr, there.shape, there.dtype), here, out=out)

    cls = device_class(
        Mul=ep.kernel("Mul", (7, None), cpu_inputs=[1], cpu_outputs=[0])(Mul),
        get_capability=ep.ExecutionProvider.get_capability,
    )
    graph = model([helper.make_node("Mul", ["a", "b"], ["y"])], {"a": SPEC, "b": SPEC}, {"y": SPEC})
    np.testing.assert_array_equal(run_once(host, cls, graph, {"a": A, "b": W})[0], A * W)
    assert (cls.state.counts["CPU to GPU"], cls.state.counts["GPU to CPU"]) == (1, 0)


def test_constants_are_where_the_kernel_reads_them(host: ModuleType) -> None:
    """Also while it is made: kernels may keep what they get then."""
    made: list[Any] = []

    class Mul(ep.Kernel):
        def __init__(self, info: ep.KernelInfo) -> None:
            with pytest.raises(RuntimeError, match="input 1 is in memory of a device"):
                info.constant_input(1)

        def compute(self, ctx: ep.KernelContext) -> None:
            *views, out = (
                cls.state.memory.view(t.ptr, (2, 3), np.float32) for t in (*ctx.inputs, ctx.output(0, (2, 3)))
            )
            np.multiply(*views, out=out)

    class Add(ep.Kernel):
        def __init__(self, info: ep.KernelInfo) -> None:
            made.append(info.constant_input(1))

        def compute(self, ctx: ep.KernelContext) -> None:
            there, here = ctx.inputs
            np.add(cls.state.memory.view(there.ptr, (2, 3), np.float32), here, out=ctx.output(0, (2, 3)))

    cls = device_class(
        Mul=ep.kernel("Mul", (7, None))(Mul),
        Add=ep.kernel("Add", (7, None), cpu_inputs=[1], cpu_outputs=[0])(Add),
        get_capability=ep.ExecutionProvider.get_capability,
    )
    nodes = [helper.make_node("Mul", ["a", "v"], ["m"]), helper.make_node("Add", ["m", "w"], ["y"])]
    graph = model(nodes, {"a": SPEC}, {"y": SPEC}, {"v": A, "w": W})
    np.testing.assert_array_equal(run_once(host, cls, graph, FEEDS)[0], A * A + W)
    np.testing.assert_array_equal(made, [W])


def test_outputs_on_the_device_end_with_the_run_also_where_inputs_are_known() -> None:
    """Inputs in CPU memory that come again are not read again; outputs on the device are new in every run."""
    kept: list[Any] = []

    class Mul(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            out = ctx.output(0, ctx.inputs[0].shape)
            kept.append(out)
            np.multiply(*ctx.inputs, out=cls.state.memory.view(out.ptr, out.shape, out.dtype))

    cls = device_class(
        Mul=ep.kernel("Mul", (7, None), cpu_inputs=[0, 1])(Mul),
        get_capability=ep.ExecutionProvider.get_capability,
    )
    graph = model([helper.make_node("Mul", ["a", "b"], ["y"])], {"a": SPEC, "b": SPEC}, {"y": SPEC})
    with registered(OURS, cls):
        session = open_session(OURS, cls, graph)
        for _ in range(4):
            np.testing.assert_array_equal(session.run(None, {"a": A, "b": W})[0], A * W)
        del session
        gc.collect()
    assert len(kept) == 4
    for tensor in kept:
        with pytest.raises(RuntimeError, match="valid only during the call"):
            _ = tensor.ptr


def test_empty_tensors_never_reach_a_copy(host: ModuleType) -> None:
    cls = device_class()
    spec = (TensorProto.FLOAT, [0, 3])
    graph = model([helper.make_node("Relu", ["a"], ["y"])], {"a": spec}, {"y": spec})
    assert run_once(host, cls, graph, {"a": np.empty((0, 3), np.float32)})[0].shape == (0, 3)
    assert cls.state.counts["compute"] == 1
    assert cls.state.counts["copy"] == 0 or host is HOSTS["stock"]


# ---- split models: our host only ----


@pytest.mark.parametrize("stream_aware", [False, True])
def test_a_split_model(stream_aware: bool) -> None:
    cls = device_class(stream_aware=stream_aware)
    cls.state.delay = 0.002
    expected = 1 / (1 + np.exp(-(A * W))) + W
    with registered(OURS, cls):
        session = open_session(OURS, cls, split(), fallback=True)
        for _ in range(20):
            np.testing.assert_allclose(session.run(None, FEEDS)[0], expected, rtol=1e-6)
        del session
        gc.collect()
    counts = cls.state.counts
    assert counts["CPU to GPU"] == 1 + 2 * 20  # the weight once; a and s in every run
    assert counts["GPU to CPU"] == 2 * 20
    assert counts["wait_on_host"] == (20 if stream_aware else 0)
    assert counts["read_only"] == 1
    assert left_nothing(cls)


def test_threads_share_a_session() -> None:
    cls = device_class(stream_aware=True)
    cls.state.delay = 0.001
    wrong: list[Any] = []

    def work(session: Any, factor: int) -> None:
        for _ in range(5):
            result = session.run(None, {"a": A * factor})[0]
            if not np.array_equal(result, np.maximum(A * factor * W + A * factor, 0)):
                wrong.append(result)

    with registered(OURS, cls):
        session = open_session(OURS, cls, chain())
        threads = [threading.Thread(target=work, args=(session, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del session
        gc.collect()
    assert not wrong and cls.state.counts["compute"] == 60
    assert left_nothing(cls)


# ---- outside of sessions ----


def test_values_and_streams_in_both_hosts(host: ModuleType) -> None:
    cls = device_class(stream_aware=True)
    cls.state.delay = 0.01

    def work() -> None:
        found = next(device for device in host.get_ep_devices() if device.ep_name == NAME)
        sources = [host.OrtValue.ortvalue_from_numpy(A + n, "gpu", 0, VENDOR_ID) for n in range(3)]
        targets = [host.OrtValue.ortvalue_from_numpy(0 * A, "gpu", 0, VENDOR_ID) for _ in sources]
        stream = found.create_sync_stream()
        assert stream.get_handle() != 0
        host.copy_tensors(sources, targets, stream)
        assert cls.state.counts["on stream"] == 3
        host.copy_tensors(sources[:1], targets[:1], stream)
        assert cls.state.counts["on stream"] == 4
        del stream  # does what is left
        gc.collect()
        for n, target in enumerate(targets):
            np.testing.assert_array_equal(target.numpy(), A + n)
        assert cls.state.counts["GPU to GPU"] == 4

    with registered(host, cls):
        work()
        gc.collect()
    assert left_nothing(cls)


def test_memories_of_the_device(device: Plug) -> None:
    found = device(device_class())
    default, host = (found.memory_info(kind) for kind in OrtDeviceMemoryType)
    assert default is not None and host is not None
    assert (default.name, default.device_vendor_id, default.device_id) == ("Numpy default", VENDOR_ID, 0)
    assert host.name == "Numpy host_accessible"
    assert host.device_mem_type == OrtDeviceMemoryType.HOST_ACCESSIBLE
    assert host != default


def test_a_device_without_memory_of_its_own(device: Plug) -> None:
    found = device(device_class(kinds=()))
    assert found.memory_info() is None and found.memory_info(OrtDeviceMemoryType.HOST_ACCESSIBLE) is None


def test_values_go_to_the_device_and_back(device: Plug) -> None:
    cls = device_class()
    found = device(cls)
    value = OrtValue.ortvalue_from_numpy(A, "gpu", 0, VENDOR_ID)
    assert value.data_ptr() in cls.state.memory
    np.testing.assert_array_equal(value.numpy(), A)
    other = OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, "gpu")
    ort_abi.copy_tensors([value], [other])
    np.testing.assert_array_equal(other.numpy(), A)
    assert cls.state.counts["GPU to GPU"] == 1
    memory = found.memory_info(OrtDeviceMemoryType.HOST_ACCESSIBLE)
    accessible = OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, memory_info=memory)
    copies = cls.state.counts["copy"]
    accessible.numpy()[...] = W
    np.testing.assert_array_equal(accessible.numpy(), W)
    assert cls.state.counts["copy"] == copies
    ort_abi.copy_tensors([accessible], [other])
    np.testing.assert_array_equal(other.numpy(), W)


@pytest.mark.parametrize("count", [1, 3])
def test_copies_get_the_callers_stream(device: Plug, count: int) -> None:
    """Also the copy of a single tensor."""
    cls = device_class(stream_aware=True)
    cls.state.delay = 0.01
    found = device(cls)
    stream = found.create_sync_stream({"priority": "high"})
    assert cls.state.options == {"priority": "high"}  # type: ignore[attr-defined]
    assert stream.get_handle() != 0
    sources = [OrtValue.ortvalue_from_numpy(A + n) for n in range(count)]
    targets = [OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, "gpu") for _ in sources]
    ort_abi.copy_tensors(sources, targets, stream)
    assert cls.state.counts["on stream"] == count and cls.state.counts["batches"] == 1
    stream.flush()
    for n, target in enumerate(targets):
        np.testing.assert_array_equal(target.numpy(), A + n)
    assert cls.state.counts["on stream"] == count  # without a stream there is none
    stream.close()
    assert cls.state.counts["close stream"] == 1


def test_a_run_on_the_callers_stream(device: Plug) -> None:
    cls = device_class(stream_aware=True)
    cls.state.delay = 0.002
    found = device(cls)
    session, stream = open_session(OURS, cls, chain()), found.create_sync_stream()
    options = ort_abi.RunOptions()
    options.set_sync_stream(stream)
    np.testing.assert_array_equal(session.run(None, FEEDS, options)[0], EXPECTED)
    assert cls.state.counts["create_sync_stream"] == 1


def test_bound_values_are_not_copied(device: Plug) -> None:
    cls = device_class()
    device(cls)
    session = open_session(OURS, cls, chain())
    a, y = (OrtValue.ortvalue_from_numpy(array, "gpu") for array in (A, np.zeros_like(A)))
    binding, copies = session.io_binding(), cls.state.counts["copy"]
    binding.bind_ortvalue_input("a", a)
    binding.bind_ortvalue_output("y", y)
    session.run_with_iobinding(binding)
    assert cls.state.counts["copy"] == copies and cls.state.counts["sync"] == 1
    np.testing.assert_array_equal(y.numpy(), EXPECTED)


def test_an_allocator_that_knows_streams() -> None:
    cls = device_class(stream_aware=True, allocator=StreamAllocator)
    np.testing.assert_array_equal(run_once(OURS, cls, chain(), FEEDS)[0], EXPECTED)
    assert cls.state.counts["alloc_on_stream"] > 0
    assert left_nothing(cls)


def test_statistics_of_an_allocator(device: Plug) -> None:
    cls = device_class()
    found = device(cls)
    memory = found.memory_info()
    assert memory is not None
    value = OrtValue.ortvalue_from_numpy(A, "gpu")
    assert ort_abi.allocator_stats(memory) == {"InUse": "24"}
    assert value.tensor_size_in_bytes() == 24


def test_an_arena_of_the_host_around_the_allocator(device: Plug) -> None:
    cls = device_class()
    arena = ort_abi.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    found = device(cls)
    ort_abi.create_shared_allocator(found, OrtDeviceMemoryType.DEFAULT, arena)
    values = [OrtValue.ortvalue_from_numpy(A + n, "gpu") for n in range(10)]
    assert cls.state.counts["alloc"] == 1  # one region, the tensors are parts of it
    for n, value in enumerate(values):
        np.testing.assert_array_equal(value.numpy(), A + n)


def test_a_full_device_is_an_error(device: Plug) -> None:
    cls = device_class()
    cls.state.memory.limit = 100
    device(cls)
    with pytest.raises(errors.OrtError, match="memory"):
        OrtValue.ortvalue_from_shape_and_type([1000], np.float32, "gpu")


def test_a_value_keeps_the_library() -> None:
    """Whoever is released first."""
    cls = device_class()
    ort_abi.register(cls)
    value = OrtValue.ortvalue_from_numpy(A, "gpu")
    with pytest.raises(errors.OrtError, match=NAME):
        ort_abi.unregister_execution_provider_library(NAME)
    np.testing.assert_array_equal(value.numpy(), A)
    del value
    ort_abi.unregister_execution_provider_library(NAME)
    assert left_nothing(cls)


# ---- what a tensor of a copy is ----


def test_tensors_of_a_copy_end_with_it(device: Plug) -> None:
    cls = device_class()
    device(cls)
    OrtValue.ortvalue_from_numpy(A, "gpu")
    tensor: ep.DeviceTensor = cls.state.given_tensor  # type: ignore[attr-defined]
    assert tensor.device == ep.MemoryDevice("CPU") and tensor.device.is_host
    with pytest.raises(RuntimeError, match="valid only during the call"):
        tensor.numpy()
    assert "closed" in repr(tensor)


def test_memory_of_a_device_is_no_array() -> None:
    gpu = ep.MemoryDevice("GPU", VENDOR_ID)
    tensor = ep.DeviceTensor(numpy_device.VirtualMemory().alloc(24), 1, (2, 3), gpu, True)
    for read in (tensor.numpy, tensor.bytes):
        with pytest.raises(TypeError, match="cannot be an array of NumPy"):
            read()
    assert not hasattr(tensor, "__cuda_array_interface__")


def test_cuda_memory_has_the_cuda_array_interface() -> None:
    cuda = ep.MemoryDevice("GPU", 0x10DE, 1)
    tensor = ep.DeviceTensor(0x7000, 1, (2, 3), cuda, False)
    assert tensor.__cuda_array_interface__ == {
        "shape": (2, 3),
        "typestr": "<f4",
        "data": (0x7000, True),
        "version": 3,
        "strides": None,
    }


def test_memory_infos_are_checked() -> None:
    for arguments in ({"device_type": "TPU"}, {"kind": "fast"}):
        with pytest.raises(
            ValueError, match="the device type is one of CPU, GPU, FPGA, NPU and the kind one of"
        ):
            ep.MemoryInfo("x", **arguments)  # type: ignore[arg-type]


# ---- failures ----

CREATING = {
    "memory_infos": "OrtEpFactory::GetSupportedDevices",
    "create_allocator": "OrtEpFactory::CreateAllocator",
    "create_data_transfer": "OrtEpFactory::CreateDataTransfer",
}


@pytest.mark.parametrize("callback", CREATING)
def test_what_fails_at_registration(host: ModuleType, callback: str) -> None:
    objects, cls = ep.live_objects(), device_class()
    cls.state.failing = callback
    with pytest.raises(Exception, match="broke here") as caught:
        ep.register_with(host, cls)
    told = str(caught.value)
    assert CREATING[callback] in told and NAME in told and "Boom" in told and "Traceback" in told
    assert ep.live_objects() == objects
    cls.state.failing = ""
    np.testing.assert_array_equal(run_once(host, cls, chain(), FEEDS)[0], EXPECTED)
    assert left_nothing(cls)


RUNNING = {
    "create_sync_stream": "CreateSyncStreamForDevice",
    "copy": "OrtDataTransferImpl::CopyTensors",
    "compute": "OrtNodeComputeInfo::Compute",
    "create_notification": "OrtSyncStreamImpl::CreateNotification",
    "activate": "OrtSyncNotificationImpl::Activate",
    "wait_on_host": "OrtSyncNotificationImpl::WaitOnHost",
    "flush": "OrtSyncStreamImpl::Flush",
    "on_session_run_end": "OrtSyncStreamImpl::OnSessionRunEnd",
}


@pytest.mark.parametrize("callback", RUNNING)
def test_what_fails_in_a_run(callback: str) -> None:
    cls = device_class(stream_aware=True)
    with registered(OURS, cls):
        session = open_session(OURS, cls, split(), fallback=True)
        cls.state.failing = callback
        with pytest.raises(errors.RuntimeException, match=f"{callback} broke here") as caught:
            session.run(None, FEEDS)
        told = str(caught.value)
        assert RUNNING[callback] in told and NAME in told and "Boom" in told and "Traceback" in told
        cls.state.failing = ""
        expected = 1 / (1 + np.exp(-(A * W))) + W
        np.testing.assert_allclose(session.run(None, FEEDS)[0], expected, rtol=1e-6)
        del session, caught
        gc.collect()
    assert left_nothing(cls)


@pytest.mark.parametrize("callback", ["copy", "compute", "flush", "create_sync_stream"])
def test_what_fails_in_a_run_of_stock(callback: str) -> None:
    """Stock onnxruntime drops the error of a flush, the others are errors there too."""
    stock, cls = HOSTS["stock"], device_class(stream_aware=True)
    with registered(stock, cls):
        session = open_session(stock, cls, chain())
        cls.state.failing = callback
        if callback != "flush":
            with pytest.raises(Exception, match=f"{callback} broke here"):
                session.run(None, FEEDS)
        cls.state.failing = ""
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        del session
        gc.collect()


def test_sync_that_fails(device: Plug) -> None:
    cls = device_class()
    device(cls)
    session, a = open_session(OURS, cls, chain()), OrtValue.ortvalue_from_numpy(A, "gpu")
    cls.state.failing = "sync"
    with pytest.raises(errors.RuntimeException, match=r"OrtEp::Sync.*sync broke here"):
        session.run(None, {"a": a})
    cls.state.failing = ""
    np.testing.assert_array_equal(session.run(None, {"a": a})[0], EXPECTED)


def test_statistics_that_fail(device: Plug) -> None:
    cls = device_class()
    found = device(cls)
    memory = found.memory_info()
    assert memory is not None
    cls.state.failing = "stats"
    with pytest.raises(errors.RuntimeException, match=r"OrtAllocator::GetStats.*stats broke here"):
        ort_abi.allocator_stats(memory)
    cls.state.given = 5
    with pytest.raises(errors.RuntimeException, match=r"OrtAllocator::GetStats.*TypeError"):
        ort_abi.allocator_stats(memory)
    cls.state.failing = ""
    assert ort_abi.allocator_stats(memory) == {"InUse": "0"}


def unreported(cls: type[NumpyDevice], callback: str, act: Callable[[], Any], given: Any = None) -> int:
    """How many failures `act` could not tell to the host while `callback` fails."""
    before = ep.unreported_errors()
    cls.state.failing, cls.state.given = callback, given
    act()
    cls.state.failing, cls.state.given = "", None
    return ep.unreported_errors() - before


def test_slots_without_a_status_print_and_count(device: Plug, capfd: pytest.CaptureFixture[str]) -> None:
    cls = device_class(stream_aware=True)
    found = device(cls)
    value, stream = OrtValue.ortvalue_from_numpy(A, "gpu"), found.create_sync_stream()

    def fails(act: Callable[[], Any]) -> Callable[[], None]:
        def expect() -> None:
            with pytest.raises(errors.OrtError):
                act()

        return expect

    def allocate() -> OrtValue:
        return OrtValue.ortvalue_from_shape_and_type([4], np.float32, "gpu")

    assert unreported(cls, "alloc", fails(allocate)) == 1
    assert unreported(cls, "can_copy", fails(value.numpy)) >= 1
    assert unreported(cls, "handle", lambda: stream.get_handle() == 0) == 1
    assert unreported(cls, "close stream", stream.close) == 1
    printed = capfd.readouterr().err
    for slot in ("OrtAllocator::Alloc", "OrtDataTransferImpl::CanCopy", "OrtSyncStreamImpl::GetHandle"):
        assert f"{NAME}: {slot}: numpy_device.Boom: " in printed
    assert f"{NAME}: OrtSyncStreamImpl::Release: numpy_device.Boom: close stream broke here" in printed
    np.testing.assert_array_equal(value.numpy(), A)

    kept = [value]
    del value
    assert unreported(cls, "free", kept.clear) == 1
    assert f"{NAME}: OrtAllocator::Free: numpy_device.Boom: free broke here" in capfd.readouterr().err
    (address,) = cls.state.memory._blocks
    cls.state.memory.free(address)


@pytest.mark.parametrize(
    "callback, given, told",
    [
        ("memory_infos", [1], r"memory_infos\(\) must give MemoryInfo objects, not 1"),
        ("create_allocator", 1, r"create_allocator\(\) must return an ort_abi.ep.Allocator, not 1"),
        (
            "create_data_transfer",
            1,
            r"create_data_transfer\(\) must return an ort_abi.ep.DataTransfer, not 1",
        ),
    ],
)
def test_wrong_results_at_registration(host: ModuleType, callback: str, given: Any, told: str) -> None:
    cls = device_class()
    cls.state.failing, cls.state.given = callback, given
    with pytest.raises(Exception, match=told):
        ep.register_with(host, cls)
    assert ep.live_objects() == 0


def test_wrong_results_later(device: Plug, capfd: pytest.CaptureFixture[str]) -> None:
    cls = device_class(stream_aware=True)
    found = device(cls)
    stream = found.create_sync_stream()
    cls.state.given, cls.state.failing = "x", "create_sync_stream"
    with pytest.raises(errors.RuntimeException, match=r"must return an ort_abi.ep.SyncStream, not 'x'"):
        found.create_sync_stream()
    session = open_session(OURS, cls, split(), fallback=True)
    cls.state.given, cls.state.failing = "x", "create_notification"
    with pytest.raises(errors.RuntimeException, match=r"must return an ort_abi.ep.SyncNotification, not 'x'"):
        session.run(None, FEEDS)
    assert unreported(cls, "handle", lambda: stream.get_handle() == 0, "x") == 1
    assert "handle() must return an address, not 'x'" in capfd.readouterr().err


def test_a_provider_without_streams_says_so(device: Plug) -> None:
    undefined = ep.ExecutionProvider.create_sync_stream
    found = device(device_class(stream_aware=True, create_sync_stream=undefined))
    with pytest.raises(errors.NotImplemented, match="does not define create_sync_stream"):
        found.create_sync_stream()


def test_only_a_stream_aware_provider_has_streams(device: Plug) -> None:
    found = device(device_class())
    with pytest.raises(errors.NotImplemented, match=f"{NAME} has no streams"):
        found.create_sync_stream()


def test_a_callable_cannot_write_device_memory() -> None:
    cls = device_class(compile=lambda self, graph: lambda *inputs: A)
    with pytest.raises(errors.NotImplemented, match=r"the output is in device memory: a Kernel can write it"):
        run_once(OURS, cls, chain(), FEEDS)
    assert left_nothing(cls)


def test_no_data_transfer_is_an_error_that_names_the_devices(device: Plug) -> None:
    cls = device_class(create_data_transfer=classmethod(lambda cls: None))
    device(cls)
    with pytest.raises(errors.NotImplemented, match=r"GPU .vendor 0xbe58, device 0"):
        OrtValue.ortvalue_from_numpy(A, "gpu")


def test_without_an_allocator_kernels_work_in_cpu_memory(host: ModuleType) -> None:
    cls = device_class(
        create_allocator=classmethod(lambda cls, memory, options: None),
        kinds=() if host is HOSTS["stock"] else ("default",),  # stock refuses to register such a provider
        get_capability=lambda self, graph: [graph.nodes],
        compile=lambda self, graph: lambda a: np.maximum(a * W + a, 0),
    )
    np.testing.assert_array_equal(run_once(host, cls, chain(), FEEDS)[0], EXPECTED)
    assert cls.state.counts["copy"] == 0


def test_no_allocator_means_the_cpus(device: Plug) -> None:
    cls = device_class(create_allocator=classmethod(lambda cls, memory, options: None), wanted=())
    found = device(cls)
    value = OrtValue.ortvalue_from_shape_and_type([3], np.float32, memory_info=found.memory_info())
    assert value.device_name() == "cpu"


# ---- the end of the process ----


@pytest.mark.parametrize("host_name", ["ort_abi", "onnxruntime"])
def test_everything_may_be_alive_at_exit(host_name: str) -> None:
    here = Path(__file__).resolve().parent
    code = f"""
import sys; sys.path[:0] = [{str(here)!r}, {str(here.parent.parent)!r}]
import {host_name} as host, numpy as np, numpy_device, test_ep_device as t
from ort_abi import ep
cls = numpy_device.device_class(stream_aware=True)
ep.register_with(host, cls)
session = t.open_session(host, cls, t.chain())
device = [d for d in host.get_ep_devices() if d.ep_name == cls.name][0]
stream = device.create_sync_stream()
value = host.OrtValue.ortvalue_from_numpy(t.A, "gpu", 0, numpy_device.VENDOR_ID)
print(session.run(None, t.FEEDS)[0].sum())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, f"{EXPECTED.sum()}\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_boom_is_what_the_tests_think() -> None:
    with pytest.raises(Boom, match="x broke here"):
        state = numpy_device.State()
        state.failing = "x"
        state.called("x")
