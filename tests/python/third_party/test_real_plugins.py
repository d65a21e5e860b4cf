"""Third-party EP libraries from PyPI on our host: nxrt-ep-cpu and onnxruntime-ep-openvino."""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import model
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import ort_abi

pytestmark = pytest.mark.third_party

INTEL = 0x8086


@dataclass(frozen=True)
class Plugin:
    """A package with an EP library; `options` make it compute in float32."""

    package: str
    ep_name: str
    options: dict[str, str]

    @property
    def path(self) -> str:
        """The library. Skips the test if the package is not installed."""
        if importlib.util.find_spec(self.package) is None:
            pytest.skip(f"the package {self.package.replace('_', '-')} is not installed")
        return str(importlib.import_module(self.package).get_library_path())


NXRT = Plugin("nxrt_ep_cpu", "cpu_ep", {})
OPENVINO = Plugin(
    "onnxruntime_ep_openvino",
    "OpenVINOExecutionProvider",
    {"load_config": '{"CPU":{"INFERENCE_PRECISION_HINT":"f32"}}'},
)
PLUGINS = [NXRT, OPENVINO]


@pytest.fixture(params=PLUGINS, ids=lambda plugin: plugin.package)
def plugin(request: pytest.FixtureRequest) -> Iterator[Plugin]:
    """A registered plugin."""
    chosen: Plugin = request.param
    path = chosen.path
    if not any(device.vendor_id == INTEL for device in ort_abi.get_hardware_devices()):
        # OpenVINO takes Intel's devices only, though it runs on other CPUs.
        ort_abi.inject_hardware_device(ort_abi.OrtHardwareDeviceType.CPU, INTEL, 0, "Intel")
    ort_abi.register_execution_provider_library(chosen.package, path)
    yield chosen
    gc.collect()
    ort_abi.unregister_execution_provider_library(chosen.package)


def open_session(plugin: Plugin, data: bytes, fallback: bool = False) -> ort_abi.InferenceSession:
    """A session on the plugin, by its first device."""
    options = ort_abi.SessionOptions()
    if not fallback:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    devices = [device for device in ort_abi.get_ep_devices() if device.ep_name == plugin.ep_name]
    options.add_provider_for_devices(devices[:1], plugin.options)
    return ort_abi.InferenceSession(data, options)


RANDOM = np.random.default_rng(0)


def uniform(*shape: int) -> NDArray[Any]:
    """Numbers from -1 to 1."""
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


X, W, BIAS = uniform(4, 16), uniform(16, 8), uniform(8)
IMAGE, FILTER = uniform(1, 3, 8, 8), uniform(5, 3, 3, 3)


def matmul_model(rows: int | str = 4) -> bytes:
    """y = Relu(x @ w + b)."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["t"], "matmul"),
        helper.make_node("Add", ["t", "b"], ["u"], "add"),
        helper.make_node("Relu", ["u"], ["y"], "relu"),
    ]
    inputs, outputs = {"x": (TensorProto.FLOAT, [rows, 16])}, {"y": (TensorProto.FLOAT, [rows, 8])}
    return model(nodes, inputs, outputs, {"w": W, "b": BIAS})


def conv_model() -> bytes:
    """y = Relu(Conv(x, w)), padded."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["t"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["t"], ["y"], "relu"),
    ]
    inputs = {"x": (TensorProto.FLOAT, [1, 3, 8, 8])}
    return model(nodes, inputs, {"y": (TensorProto.FLOAT, [1, 5, 8, 8])}, {"w": FILTER})


def test_devices_tell_of_the_plugin(plugin: Plugin) -> None:
    device = next(device for device in ort_abi.get_ep_devices() if device.ep_name == plugin.ep_name)
    assert device.ep_vendor
    assert device.ep_metadata["version"]
    assert device.ep_metadata["library_path"] == plugin.path


def test_matmul_add_relu(plugin: Plugin) -> None:
    session = open_session(plugin, matmul_model())
    assert session.get_providers() == [plugin.ep_name]
    assert {step.ep_name for step in session.assignment()} == {plugin.ep_name}
    assert sum(step.original_nodes for step in session.assignment()) == 3
    for _ in range(3):
        x = uniform(4, 16)
        np.testing.assert_allclose(
            session.run(None, {"x": x})[0], np.maximum(x @ W + BIAS, 0), rtol=1e-5, atol=1e-5
        )


def test_conv_relu(plugin: Plugin) -> None:
    session = open_session(plugin, conv_model())
    assert sum(step.original_nodes for step in session.assignment()) == 2
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.maximum(np.einsum("ncyxij,ocij->noyx", windows, FILTER), 0)
    np.testing.assert_allclose(session.run(None, {"x": IMAGE})[0], expected, rtol=1e-5, atol=1e-5)


def test_a_size_that_changes_from_run_to_run(plugin: Plugin) -> None:
    session = open_session(plugin, matmul_model("rows"))
    for rows in (1, 4, 2, 7):
        x = uniform(rows, 16)
        np.testing.assert_allclose(
            session.run(None, {"x": x})[0], np.maximum(x @ W + BIAS, 0), rtol=1e-5, atol=1e-5
        )


def test_what_the_plugin_leaves_runs_elsewhere(plugin: Plugin) -> None:
    spec = (TensorProto.FLOAT, [4, 16])
    nodes = [
        helper.make_node("Relu", ["x"], ["t"], "relu"),
        helper.make_node("Reshape", ["t", "shape"], ["s"], "reshape"),
        helper.make_node("Det", ["s"], ["u"], "det"),
        helper.make_node("Relu", ["u"], ["y"], "relu2"),
    ]
    shape = {"shape": np.array([4, 4, 4], np.int64)}
    data = model(nodes, {"x": spec}, {"y": (TensorProto.FLOAT, [4])}, shape)
    session = open_session(plugin, data, fallback=True)
    where = {step.ep_name for step in session.assignment()}
    assert plugin.ep_name in where
    assert len(where) > 1
    expected = ReferenceEvaluator(onnx.load_from_string(data)).run(None, {"x": X})[0]
    np.testing.assert_allclose(session.run(None, {"x": X})[0], expected, rtol=1e-4, atol=1e-5)


def test_two_sessions_end_in_any_order(plugin: Plugin) -> None:
    expected = np.maximum(X @ W + BIAS, 0)
    for first in (0, 1):
        sessions = [open_session(plugin, matmul_model()) for _ in range(2)]
        sessions.pop(first).close()
        gc.collect()
        np.testing.assert_allclose(sessions[0].run(None, {"x": X})[0], expected, rtol=1e-5, atol=1e-5)


def test_unregister_waits_for_the_session(plugin: Plugin) -> None:
    session = open_session(plugin, matmul_model())
    with pytest.raises(ort_abi.errors.OrtError, match=plugin.package):
        ort_abi.unregister_execution_provider_library(plugin.package)
    assert session.run(None, {"x": X})[0].shape == (4, 8)


def installed(package: str, version: str) -> str:
    """The path of the package's library. Skips the test unless this version is installed."""
    plugin = Plugin(package, "", {})
    path, found = plugin.path, importlib.metadata.version(package.replace("_", "-"))
    if found != version:
        pytest.skip(f"{package} is {found}; the numbers are those of {version}")
    return path


def test_every_kernel_of_nxrt_is_registered() -> None:
    """Each session asks for them anew."""
    path = installed("nxrt_ep_cpu", "0.1.0.dev6")
    ort_abi.register_execution_provider_library("nxrt", path)
    for _ in range(2):
        kernels = open_session(NXRT, matmul_model()).get_kernels("cpu_ep")
        assert Counter(kernel.domain for kernel in kernels) == {"": 184, "com.microsoft": 23, "pkg.nxrt": 8}
    gc.collect()
    ort_abi.unregister_execution_provider_library("nxrt")


WEBGPU = """
import gc, importlib, json, sys
import numpy as np
from test_real_plugins import IMAGE, X, conv_model, matmul_model

host, path = importlib.import_module(sys.argv[1]), sys.argv[2]
host.set_default_logger_severity(3)
host.register_execution_provider_library("webgpu", path)
devices = [device for device in host.get_ep_devices() if device.ep_name == "WebGpuExecutionProvider"]
answer = {"device": [devices[0].ep_vendor, dict(devices[0].ep_metadata), dict(devices[0].ep_options)]}
options = host.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
options.add_provider_for_devices(devices, {})
try:
    for name, data, x in (("matmul", matmul_model(), X), ("conv", conv_model(), IMAGE)):
        session = host.InferenceSession(data, options)
        answer[name] = session.run(None, {"x": x})[0].tolist()
        if hasattr(session, "get_kernels"):
            print(json.dumps(len(session.get_kernels("WebGpuExecutionProvider"))))
        del session
        gc.collect()
except Exception as error:
    answer["error"] = [type(error).__name__, "Failed to get a WebGPU adapter" in str(error)]
host.unregister_execution_provider_library("webgpu")
print(json.dumps(answer))
"""


def test_webgpu_with_or_without_a_device() -> None:
    """As in stock onnxruntime: its kernels are registered and run, or no session comes to be.

    They run where a Vulkan driver is, be it one in software.
    """
    pytest.importorskip("onnxruntime")
    path = installed("onnxruntime_ep_webgpu", "0.4.0")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
        "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",
    }
    answers = []
    for host in ("ort_abi", "onnxruntime"):
        command = [sys.executable, "-c", WEBGPU, host, path]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        *kernels, answer = (json.loads(line) for line in done.stdout.splitlines())
        answers.append(answer)
        if host == "ort_abi":
            assert kernels == ([] if "error" in answer else [371, 371])
    ours, stock = answers
    assert ours["device"] == stock["device"]
    assert ours.get("error") == stock.get("error") in (None, ["EPFail", True])
    for name in ("matmul", "conv") if "error" not in ours else ():
        np.testing.assert_allclose(ours[name], stock[name], rtol=1e-5, atol=1e-5)


CYCLES = """
import gc, os, sys
import numpy as np
import ort_abi
from test_real_plugins import INTEL, PLUGINS, X, W, BIAS, matmul_model, open_session

plugin = next(plugin for plugin in PLUGINS if plugin.package == sys.argv[1])
data, expected = matmul_model(), np.maximum(X @ W + BIAS, 0)
ort_abi.set_default_logger_severity(3)
ort_abi.inject_hardware_device(ort_abi.OrtHardwareDeviceType.CPU, INTEL, 0, "Intel")
for cycle in range(25):
    ort_abi.register_execution_provider_library("cycle", plugin.path)
    session = open_session(plugin, data)
    assert np.abs(session.run(None, {"x": X})[0] - expected).max() < 1e-5
    del session
    gc.collect()
    ort_abi.unregister_execution_provider_library("cycle")
    if cycle in (4, 24):
        kilobytes = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        print(kilobytes, len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")))
"""


@pytest.mark.parametrize("chosen", PLUGINS, ids=lambda plugin: plugin.package)
def test_25_cycles_of_register_run_and_unregister_do_not_grow(chosen: Plugin) -> None:
    assert chosen.path
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", CYCLES, chosen.package],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    before, after = ([int(word) for word in line.split()] for line in done.stdout.splitlines())
    assert after[0] - before[0] < 1024, "resident kilobytes"
    assert after[1] <= before[1], "threads: OpenVINO's end some time after their session"
    assert after[2] == before[2], "open files"
