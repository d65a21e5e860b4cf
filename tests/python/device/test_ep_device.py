"""Providers in Python with a device of their own: memory, copies, streams and notifications, in both hosts.

The device is that of numpy_device.py: NumPy arrays behind addresses that nobody else can use, and streams
that work later than they are asked to.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy_device
import pytest
from device_support import (
    EXPECTED,
    FEEDS,
    SPEC,
    SPLIT_EXPECTED,
    A,
    Plug,
    W,
    chain,
    has_streams,
    left_nothing,
    split,
)
from ep_support import HOSTS, model, open_session, registered, run_once
from numpy_device import NAME, VENDOR_ID, Boom, StreamAllocator, device_class
from onnx import TensorProto, helper

import ort_abi
from ort_abi import OrtDeviceMemoryType, OrtValue, ep, errors

OURS = HOSTS["ours"]


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
    on_streams = stream_aware and has_streams(host)
    assert counts["create_sync_stream"] == counts["close stream"] == (3 if on_streams else 0)
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
    assert cls.state.counts["copy"] == 0


# ---- split models ----


@pytest.mark.parametrize("stream_aware", [False, True])
def test_a_split_model(host: ModuleType, stream_aware: bool) -> None:
    """Stock gives the copies to kernels that providers in Python have for it."""
    cls = device_class(stream_aware=stream_aware)
    cls.state.delay = 0.002
    with registered(host, cls):
        session = open_session(host, cls, split(), fallback=True)
        for _ in range(20):
            np.testing.assert_allclose(session.run(None, FEEDS)[0], SPLIT_EXPECTED, rtol=1e-6)
        del session
        gc.collect()
    counts = cls.state.counts
    assert counts["CPU to GPU"] == 1 + 2 * 20  # the weight once; a and s in every run
    assert counts["GPU to CPU"] == 2 * 20
    assert counts["wait_on_host"] == (20 if stream_aware and has_streams(host) else 0)
    assert counts["read_only"] == 1
    transfers = 1 if host is OURS else 3  # stock has one a session, and its copying kernels share one
    assert counts["close transfer"] == counts["create_data_transfer"] == transfers
    assert left_nothing(cls)


def test_kernels_for_stocks_copies_of_the_providers_own(host: ModuleType) -> None:
    """What the author defines comes before ours; our host asks for neither."""

    class FromHost(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            (here,) = ctx.inputs
            there = ctx.output(0, here.shape)
            cls.state.memory.view(there.ptr, there.shape, there.dtype)[...] = here
            cls.state.counts["own"] += 1

    cls = device_class(FromHost=ep.kernel("MemcpyFromHost", (1, None), cpu_inputs=[0])(FromHost))
    (result,) = run_once(host, cls, split(), FEEDS, fallback=True)
    np.testing.assert_allclose(result, SPLIT_EXPECTED, rtol=1e-6)
    assert cls.state.counts["own"] == (0 if host is OURS else 1)
    assert left_nothing(cls)


def test_a_weight_that_subgraphs_capture_is_uploaded_once() -> None:
    """y = a * w + (a + w, or a * w), with the branches of the If on the device."""
    cls = device_class()
    branches = {
        f"{op}_branch": helper.make_graph(
            [helper.make_node(kind, ["a", "w"], [op])], op, [], [helper.make_tensor_value_info(op, *SPEC)]
        )
        for op, kind in (("then", "Add"), ("else", "Mul"))
    }
    nodes = [
        helper.make_node("Mul", ["a", "w"], ["m"]),
        helper.make_node("If", ["c"], ["i"], **branches),
        helper.make_node("Add", ["m", "i"], ["y"]),
    ]
    graph = model(nodes, {"a": SPEC, "c": (np.bool_, [])}, {"y": SPEC}, {"w": W})
    with registered(OURS, cls):
        session = open_session(OURS, cls, graph, fallback=True)
        assert cls.state.counts["CPU to GPU"] == 1
        for c, expected in ((True, A * W + A + W), (False, 2 * A * W)):
            result = session.run(None, {"a": A, "c": np.array(c)})[0]
            np.testing.assert_array_equal(result, expected)
        assert cls.state.counts["compute"] == 6
        del session
        gc.collect()
    assert left_nothing(cls)


@pytest.mark.parametrize("stream_aware", [False, True])
def test_threads_share_a_session(host: ModuleType, stream_aware: bool) -> None:
    cls = device_class(stream_aware=stream_aware)
    cls.state.delay = 0.001
    wrong: list[Any] = []

    def work(session: Any, factor: float) -> None:
        for _ in range(5):
            result = session.run(None, {"a": np.float32(factor) * A})[0]
            expected = 1 / (1 + np.exp(-(A * factor * W))) + W
            if not np.allclose(result, expected, rtol=1e-5):
                wrong.append(result)

    with registered(host, cls):
        session = open_session(host, cls, split(), fallback=True)
        threads = [threading.Thread(target=work, args=(session, n / 8)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del session, threads
        gc.collect()
    assert not wrong and cls.state.counts["compute"] == 2 * 40
    assert (cls.state.counts["CPU to GPU"], cls.state.counts["GPU to CPU"]) == (1 + 2 * 40, 2 * 40)
    assert left_nothing(cls)


# ---- outside of sessions ----


def test_values_and_streams_in_both_hosts(host: ModuleType) -> None:
    cls = device_class(stream_aware=True)
    cls.state.delay = 0.01

    def work() -> None:
        found = next(device for device in host.get_ep_devices() if device.ep_name == NAME)
        sources = [host.OrtValue.ortvalue_from_numpy(A + n, "gpu", 0, VENDOR_ID) for n in range(3)]
        targets = [host.OrtValue.ortvalue_from_numpy(0 * A, "gpu", 0, VENDOR_ID) for _ in sources]
        if not has_streams(host):
            with pytest.raises(RuntimeError, match="does not support streams"):
                found.create_sync_stream()
            return
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


# ---- the end of the process ----


@pytest.mark.parametrize("host_name", ["ort_abi", "onnxruntime"])
def test_everything_may_be_alive_at_exit(host_name: str) -> None:
    here = Path(__file__).resolve().parents[1]
    code = f"""
import sys; sys.path[:0] = [{str(here)!r}, {str(here.parent.parent)!r}]
import {host_name} as host, numpy as np, numpy_device, device_support as t
from ep_support import open_session
from ort_abi import ep
cls = numpy_device.device_class(stream_aware=True)
ep.register_with(host, cls)
has_streams = t.has_streams(host)
session = open_session(host, cls, t.chain())
device = [d for d in host.get_ep_devices() if d.ep_name == cls.name][0]
stream = device.create_sync_stream() if has_streams else None
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
