"""samples/py_plugin_cupy: its code with NumPy in CuPy's place; on a CUDA device where there is one."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytest

import ort_abi
from ort_abi import OrtValue, ep

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
EXPECTED = np.maximum(X @ sample.W + sample.B, 0)


def provider(xp: Any) -> Any:
    """The provider on a device that hangs on the CPU: this machine need not have a GPU."""
    take_cpu = classmethod(lambda cls, devices: [device for device in devices if device.type == "CPU"][:1])
    return type("CupyEp", (cupy_ep.CupyEp,), {"xp": xp, "get_supported_devices": take_cpu})


@pytest.fixture
def fake() -> Iterator[FakeCupy]:
    """CuPy's place is taken by NumPy; at the end the device is empty."""
    xp, objects = FakeCupy(), ep.live_objects()
    yield xp
    gc.collect()
    assert len(xp.memory) == 0
    assert ep.live_objects() == objects


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_the_model_runs(host: ModuleType, fake: FakeCupy) -> None:
    y = sample.run(host, provider(fake), X)
    np.testing.assert_allclose(y, EXPECTED)
    counts = fake.counts
    assert counts["on stream"] == 3 and counts["on default"] == 0
    assert (counts["copy kind 1"], counts["copy kind 2"]) == (3, 1)  # x, w, b; y
    assert counts["streams"] == 1


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
    other = OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32, "cuda")
    ort_abi.copy_tensors([value], [other])
    assert fake.counts["copy kind 3"] == fake.counts["synchronize"] == 1
    np.testing.assert_array_equal(other.numpy(), X)
    memory = registered.memory_info()
    assert memory is not None and ort_abi.allocator_stats(memory)["InUse"] == "32"
    del value
    assert ort_abi.allocator_stats(memory)["InUse"] == "16"


def test_pinned_memory(registered: ort_abi.OrtEpDevice) -> None:
    pinned = registered.memory_info(ort_abi.OrtDeviceMemoryType.HOST_ACCESSIBLE)
    value = OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32, memory_info=pinned)
    value.numpy()[...] = X
    there = OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32, "cuda")
    stream = registered.create_sync_stream()
    ort_abi.copy_tensors([value], [there], stream)
    stream.flush()
    np.testing.assert_array_equal(there.numpy(), X)


def test_events_order_streams(fake: FakeCupy) -> None:
    first, second = cupy_ep.Stream(fake), cupy_ep.Stream(fake)
    order: list[str] = []
    notification = first.create_notification()
    for _ in range(20):
        order.clear()
        with first.cuda:
            fake.do(lambda: order.append("first"))
        notification.activate()
        notification.wait_on_device(second)
        with second.cuda:
            fake.do(lambda: order.append("second"))
        second.flush()
        assert order == ["first", "second"]
    notification.activate()
    notification.wait_on_host()
    assert fake.counts["wait_event"] == 20
    for stream in (first, second):
        stream.cuda.worker.stop()


def test_only_nvidia_gpus_are_taken() -> None:
    gpu = ep.Device("GPU", "NVIDIA", NVIDIA, 1, {})
    others = [ep.Device("CPU", "Intel", 0x8086, 0, {}), ep.Device("GPU", "AMD", 0x1002, 0, {})]
    assert cupy_ep.CupyEp.get_supported_devices([*others, gpu]) == [gpu]
    assert cupy_ep.CupyEp.get_supported_devices(others) == []


def test_without_cupy_the_sample_says_so(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('none here')")
    assert told(tmp_path) == (
        "This sample needs CuPy and a CUDA device. CuPy is not installed (none here): "
        "pip install cupy-cuda12x\n"
    )


def test_without_a_device_the_sample_says_so(tmp_path: Path) -> None:
    runtime = "class cuda:\n class runtime:\n  @staticmethod\n  def getDeviceCount(): "
    (tmp_path / "cupy.py").write_text(runtime + "return 0")
    assert told(tmp_path) == "This sample needs CuPy and a CUDA device. CUDA finds no device\n"
    (tmp_path / "cupy.py").write_text(runtime + "raise RuntimeError('no driver')")
    expected = "This sample needs CuPy and a CUDA device. CUDA cannot be used: no driver\n"
    assert told(tmp_path) == expected


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
