"""samples/py_plugin_cupy: its code with NumPy in CuPy's place; on a CUDA device where there is one."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_abi
from ort_abi import OrtValue, ep
from ort_abi._lib import ffi

from ..support.fake_cupy import FakeCupy

SAMPLE = Path(__file__).resolve().parent.parent.parent / "samples" / "py_plugin_cupy"
NVIDIA = 0x10DE
X = np.array([[1, 2], [-3, 4]], np.float32)
HOSTS: list[ModuleType] = [ort_abi, onnxruntime]


def load(name: str) -> Any:
    """A module of the sample."""
    spec = importlib.util.spec_from_file_location(name, SAMPLE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


cupy_ep = load("cupy_ep")
sample = load("run")
CUDA = "class cuda:\n class runtime:\n  @staticmethod\n"
EXPECTED = np.maximum(X @ sample.W + sample.B, 0)


def provider(xp: Any) -> Any:
    """The provider on a device that hangs on the CPU: this machine need not have a GPU."""
    take_cpu = classmethod(lambda cls, devices: [device for device in devices if device.type == "CPU"][:1])
    return type("CupyEp", (cupy_ep.CupyEp,), {"gpu": cupy_ep.Gpu(xp), "get_supported_devices": take_cpu})


@pytest.fixture
def fake() -> Iterator[FakeCupy]:
    """CuPy's place is taken by NumPy; at the end the device is empty."""
    xp, objects = FakeCupy(), ep.live_objects()
    yield xp
    gc.collect()
    assert len(xp.memory) == 0
    assert ep.live_objects() == objects


@pytest.fixture
def gpu(fake: FakeCupy) -> Iterator[Any]:
    made = cupy_ep.Gpu(fake)
    yield made
    made.pool.free_all_blocks()


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_the_model_runs(host: ModuleType, fake: FakeCupy) -> None:
    y = sample.run(host, provider(fake), X)
    np.testing.assert_allclose(y, EXPECTED)
    counts = fake.counts
    assert counts["on stream"] == 3 and counts["on default"] == 0
    assert (counts["copy kind 1"], counts["copy kind 2"]) == (3, 1)  # x, w, b; y
    assert counts["streams"] == 1


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_what_the_user_made_current_does_not_matter(host: ModuleType, fake: FakeCupy) -> None:
    with fake.cuda.Stream(non_blocking=True), fake.cuda.Device(1):
        np.testing.assert_allclose(sample.run(host, provider(fake), X), EXPECTED)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_a_model_is_split_between_the_device_and_the_cpu(host: ModuleType, fake: FakeCupy) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]> g (float[2,2] x) => (float[2,2] y)'
        " { a = Mul(x, x) b = Exp(a) y = Relu(b) }"
    )
    cls = provider(fake)
    name = ep.register_with(host, cls)
    options = host.SessionOptions()
    options.add_provider_for_devices([d for d in host.get_ep_devices() if d.ep_name == cls.name], {})
    session = host.InferenceSession(model.SerializeToString(), options)
    np.testing.assert_allclose(session.run(None, {"x": X})[0], np.exp(X * X), rtol=1e-6)
    assert fake.counts["on stream"] == 2 and fake.counts["on default"] == 0
    assert (fake.counts["copy kind 1"], fake.counts["copy kind 2"]) == (2, 2)
    del session
    ep.unregister_from(host, name)


def test_memory_of_a_run_comes_from_its_stream(fake: FakeCupy) -> None:
    sample.run(ort_abi, provider(fake), X)
    assert fake.counts["malloc on stream"] > 0


@pytest.fixture
def registered(fake: FakeCupy) -> Iterator[ort_abi.OrtEpDevice]:
    cls = provider(fake)
    ort_abi.register(cls)
    yield next(device for device in ort_abi.get_ep_devices() if device.ep_name == cls.name)
    gc.collect()
    ort_abi.unregister_execution_provider_library(cls.name)


def test_values_on_the_device(registered: ort_abi.OrtEpDevice, fake: FakeCupy) -> None:
    value = OrtValue.ortvalue_from_numpy(X, "cuda")
    assert value.device_name() == "cuda"
    assert fake.counts["copy kind 1"] == 1 and fake.pending() == 0
    other = OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32, "cuda")
    ort_abi.copy_tensors([value], [other])
    assert fake.counts["copy kind 3"] == 1 and fake.pending() == 0
    np.testing.assert_array_equal(other.numpy(), X)
    memory = registered.memory_info()
    assert memory is not None and ort_abi.allocator_stats(memory)["InUse"] == "32"
    del value
    assert ort_abi.allocator_stats(memory)["InUse"] == "16"


def pinned_value(registered: ort_abi.OrtEpDevice) -> OrtValue:
    memory = registered.memory_info(ort_abi.OrtDeviceMemoryType.HOST_ACCESSIBLE)
    return OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32, memory_info=memory)


def test_what_a_stream_reads_from_the_host_is_taken_before_the_copy_returns(
    registered: ort_abi.OrtEpDevice,
) -> None:
    pinned, pageable = pinned_value(registered), OrtValue.ortvalue_from_numpy(X.copy())
    stream = registered.create_sync_stream()
    for value in (pinned, pageable):
        value.numpy()[...] = X
        there = OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32, "cuda")
        ort_abi.copy_tensors([value], [there], stream)
        value.numpy()[...] = 0
        stream.flush()
        np.testing.assert_array_equal(there.numpy(), X)


def test_copies_to_the_host_go_on_behind_the_stream(registered: ort_abi.OrtEpDevice, fake: FakeCupy) -> None:
    there, pinned = OrtValue.ortvalue_from_numpy(X, "cuda"), pinned_value(registered)
    pinned.numpy()[...] = 0
    stream = registered.create_sync_stream()
    ort_abi.copy_tensors([there], [pinned], stream)
    assert fake.pending() == 1
    # On the host alone the next one could run away from the stream.
    here = OrtValue.ortvalue_from_numpy(np.zeros((2, 2), np.float32))
    ort_abi.copy_tensors([pinned], [here], stream)
    assert fake.counts["copy kind 0"] == 1
    np.testing.assert_array_equal(here.numpy(), X)


def test_values_go_through_dlpack(registered: ort_abi.OrtEpDevice) -> None:
    value, pinned = OrtValue.ortvalue_from_numpy(X, "cuda"), pinned_value(registered)
    assert value.__dlpack_device__() == (2, 0) and pinned.__dlpack_device__() == (3, 0)
    again = OrtValue.from_dlpack(value)
    assert (again.data_ptr(), again.device_name()) == (value.data_ptr(), "cuda")
    np.testing.assert_array_equal(again.numpy(), X)
    np.testing.assert_array_equal(np.from_dlpack(value, device="cpu"), X)  # type: ignore[arg-type,call-arg]
    with pytest.raises(BufferError, match="as no copy"):
        value.__dlpack__(dl_device=(1, 0), copy=False)
    there = np.from_dlpack(pinned)  # type: ignore[arg-type]
    assert there.ctypes.data == pinned.data_ptr()


class DlpackCupy(FakeCupy):
    """Takes tensors by way of DLPack."""

    def asarray(self, tensor: Any) -> Any:
        capsule = tensor.__dlpack__(stream=self.stream().ptr or 1, max_version=(1, 0))
        name = b"dltensor_versioned"
        get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
        address = get(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, name)
        managed = ffi.cast("DLManagedTensorVersioned*", address)
        told = managed.dl_tensor
        assert (told.device_type, told.device_id, told.code, told.bits) == (2, 0, 2, 32)
        self.counts["read-only" if managed.flags == 1 else "writeable"] += 1
        shape = tuple(ffi.unpack(told.shape, told.ndim))
        return self.memory.view(int(ffi.cast("uintptr_t", told.data)), shape, np.float32)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_the_model_runs_by_way_of_dlpack(host: ModuleType) -> None:
    xp = DlpackCupy()
    # The tests' device hangs on the CPU, but its memory says that it is CUDA's.
    np.testing.assert_allclose(sample.run(host, provider(xp), X), EXPECTED)
    assert (xp.counts["read-only"], xp.counts["writeable"]) == (5, 3)


class ForeignStream(ep.SyncStream):
    """A stream of another provider."""

    def __init__(self) -> None:
        self.flushed = 0

    def flush(self) -> None:
        self.flushed += 1


def tensor(address: int, kind: str = "GPU") -> ep.DeviceTensor:
    """Four floats."""
    where = ep.MemoryDevice(kind, NVIDIA if kind == "GPU" else 0)
    return ep.DeviceTensor(address, 1, (4,), where, True)


def floats(fake: FakeCupy, address: int) -> list[float]:
    found: list[float] = fake.memory.view(address, (4,), np.float32).tolist()
    return found


def test_a_copy_on_a_stream_of_another_provider_comes_after_its_work(gpu: Any, fake: FakeCupy) -> None:
    allocator, stream = cupy_ep.Allocator(gpu), ForeignStream()
    address, source = allocator.alloc(16), np.arange(4, dtype=np.float32)
    cupy_ep.Transfer(gpu).copy(tensor(source.ctypes.data, "CPU"), tensor(address), stream)
    assert (stream.flushed, fake.pending()) == (1, 0)
    assert floats(fake, address) == [0, 1, 2, 3]
    allocator.free(address)


def test_memory_of_no_stream_is_not_given_out_while_the_device_may_use_it(gpu: Any, fake: FakeCupy) -> None:
    allocator, stream = cupy_ep.Allocator(gpu), cupy_ep.Stream(gpu)
    address = allocator.alloc(16)
    with gpu.current(stream):
        fake.do(lambda: fake.memory.view(address, (16,)).fill(0))
    allocator.free(address)
    assert fake.pending() == 0
    with fake.cuda.Stream(non_blocking=True):  # the user's, who says nothing about ours
        again = allocator.alloc(16)
    assert again == address
    source = np.arange(4, dtype=np.float32)
    cupy_ep.Transfer(gpu).copy(tensor(source.ctypes.data, "CPU"), tensor(again), None)
    stream.flush()
    assert floats(fake, again) == [0, 1, 2, 3]
    allocator.free(again)
    stream.close()


def test_memory_of_a_stream_is_given_out_to_it_at_once(gpu: Any, fake: FakeCupy) -> None:
    allocator = cupy_ep.Allocator(gpu)
    stream, other = cupy_ep.Stream(gpu), cupy_ep.Stream(gpu)
    address = allocator.alloc_on_stream(16, stream)
    with gpu.current(stream):
        fake.do(lambda: None)
    allocator.free(address)
    assert fake.pending() == 1
    elsewhere, again = allocator.alloc_on_stream(16, other), allocator.alloc_on_stream(16, stream)
    assert again == address != elsewhere
    stream.close()
    other.close()
    with gpu.current():
        fake.do(lambda: None)
    allocator.free(again)  # there is no stream any more that it could be behind
    assert fake.pending() == 0
    allocator.free(elsewhere)


def test_a_closed_stream_keeps_no_memory(gpu: Any, fake: FakeCupy) -> None:
    allocator, stream = cupy_ep.Allocator(gpu), cupy_ep.Stream(gpu)
    address = allocator.alloc_on_stream(16, stream)
    with gpu.current(stream):
        fake.do(lambda: None)
    allocator.free(address)
    assert len(fake.memory) == 1
    stream.close()
    assert len(fake.memory) == fake.pending() == 0


def test_pinned_memory_is_not_given_out_while_the_device_may_use_it(gpu: Any, fake: FakeCupy) -> None:
    memory, pinned, stream = cupy_ep.Allocator(gpu), cupy_ep.PinnedAllocator(gpu), cupy_ep.Stream(gpu)
    source, target = memory.alloc(16), pinned.alloc(16)
    cupy_ep.Transfer(gpu).copy(tensor(source), tensor(target, "CPU"), stream)
    assert fake.pending() == 1
    pinned.free(target)
    assert fake.pending() == 0
    memory.free(source)


def test_a_kernel_without_a_stream_waits_for_its_inputs_and_is_done(gpu: Any, fake: FakeCupy) -> None:
    allocator, stream = cupy_ep.Allocator(gpu), cupy_ep.Stream(gpu)
    x, y = allocator.alloc(16), allocator.alloc(16)
    with gpu.current(stream):  # as a copy that is on its way
        fake.do(lambda: fake.memory.view(x, (4,), np.float32).__setitem__(..., [-1, 2, -3, 4]))
    kernel = cupy_ep.Launch.__new__(cupy_ep.Launch)
    kernel.gpu, kernel.op_type, kernel.order = gpu, "Relu", [0]
    kernel.compute(SimpleNamespace(inputs=[tensor(x)], output=lambda *_: tensor(y), stream=None))
    assert fake.pending() == 0
    assert floats(fake, y) == [0, 2, 0, 4]
    allocator.free(x)
    allocator.free(y)


def test_events_order_streams(gpu: Any, fake: FakeCupy) -> None:
    first, second = cupy_ep.Stream(gpu), cupy_ep.Stream(gpu)
    order: list[str] = []
    notification = first.create_notification()
    for _ in range(2):
        order.clear()
        with gpu.current(first):
            fake.do(lambda: order.append("first"))
        notification.activate()
        notification.wait_on_device(second)
        with gpu.current(second):
            fake.do(lambda: order.append("second"))
        second.flush()
        assert order == ["first", "second"]
    assert fake.counts["wait_event"] == 2
    for wait in (notification.wait_on_host, lambda: notification.wait_on_device(ForeignStream())):
        with gpu.current(first):
            fake.do(lambda: None)
        notification.activate()
        assert fake.pending() > 0
        wait()
        assert fake.pending() == 0


def test_copies_are_taken_for_the_one_device() -> None:
    transfer = cupy_ep.Transfer(None)
    cpu, ours = ep.MemoryDevice("CPU"), ep.MemoryDevice("GPU", NVIDIA, 0)
    pinned = ep.MemoryDevice("GPU", NVIDIA, 0, True)
    for source, target in ((cpu, ours), (ours, cpu), (ours, ours), (cpu, pinned), (pinned, ours)):
        assert transfer.can_copy(source, target)
    others = [ep.MemoryDevice("GPU", NVIDIA, 1), ep.MemoryDevice("GPU", 0x1002, 0), ep.MemoryDevice("NPU")]
    for other in others:
        assert not transfer.can_copy(ours, other) and not transfer.can_copy(other, cpu)
    assert not transfer.can_copy(cpu, cpu)


def test_of_several_gpus_the_one_that_cuda_counts_first_is_taken(fake: FakeCupy) -> None:
    gpus = [
        ep.Device("GPU", "NVIDIA", NVIDIA, 1, {"pci_bus_id": slot.lower()})
        for slot in ("0000:03:00.0", "0000:0A:00.0")
    ]
    cls = type("CupyEp", (cupy_ep.CupyEp,), {"gpu": cupy_ep.Gpu(fake)})
    assert cls.get_supported_devices(gpus) == [gpus[1]]
    unnamed = [ep.Device("GPU", "NVIDIA", NVIDIA, number, {}) for number in (1, 2)]
    assert cls.get_supported_devices(unnamed) == [unnamed[0]]


def test_only_nvidia_gpus_are_taken() -> None:
    gpu = ep.Device("GPU", "NVIDIA", NVIDIA, 1, {})
    others = [ep.Device("CPU", "Intel", 0x8086, 0, {}), ep.Device("GPU", "AMD", 0x1002, 0, {})]
    assert cupy_ep.CupyEp.get_supported_devices([*others, gpu]) == [gpu]
    assert cupy_ep.CupyEp.get_supported_devices(others) == []


def test_without_cupy_the_sample_says_so(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('none here')")
    assert told(tmp_path) == (
        "This sample needs CuPy and a CUDA device. CuPy is not installed (none here): "
        'pip install "cupy-cuda12x[ctk]"\n'
    )


def test_without_a_device_the_sample_says_so(tmp_path: Path) -> None:
    runtime = f"{CUDA}  def getDeviceCount(): "
    (tmp_path / "cupy.py").write_text(runtime + "return 0")
    assert told(tmp_path) == "This sample needs CuPy and a CUDA device. CUDA finds no device\n"
    (tmp_path / "cupy.py").write_text(runtime + "raise RuntimeError('no driver')")
    assert told(tmp_path) == (
        "This sample needs CuPy and a CUDA device. CUDA cannot be used: no driver "
        "(is there an NVIDIA GPU, and a driver that is new enough?)\n"
    )


@pytest.mark.parametrize("library", ["nvrtc", "cublas"])
def test_without_a_library_of_cuda_the_sample_says_so(library: str, tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text(
        f"{CUDA}  def getDeviceCount(): return 1\n"
        " class nvrtc:\n  @staticmethod\n"
        "  def getVersion():\n"
        f"   if {library == 'nvrtc'}: raise RuntimeError('no libnvrtc.so.12\\nnowhere')\n"
        " class _Lazy(type):\n"
        "  @property\n"
        "  def cublas(self): raise ImportError('no libcublas.so.12\\nnowhere')\n"
        "class cuda(cuda, metaclass=cuda._Lazy): pass\n"
    )
    assert told(tmp_path) == (
        f"This sample needs CuPy and a CUDA device. CuPy lacks a library of CUDA (no lib{library}.so.12): "
        'pip install "cupy-cuda12x[ctk]"\n'
    )


def told(modules: Path) -> str:
    """What run.py says, with modules of a folder before others."""
    path = os.pathsep.join([str(modules), os.path.dirname(ort_abi.__path__[0])])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=SAMPLE, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_on_a_cuda_device(host: ModuleType) -> None:
    try:
        xp = cupy_ep.find_cupy()
    except cupy_ep.NoDevice as error:
        pytest.skip(str(error))
    np.testing.assert_allclose(sample.run(host, provider(xp), X), EXPECTED, rtol=1e-6)
