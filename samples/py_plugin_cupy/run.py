"""Runs relu(x @ w + b) on a CUDA device with CuPy, in our host and in stock onnxruntime.

python run.py [ort_abi] [onnxruntime]
"""

import importlib
import sys

import numpy as np
from cupy_ep import CupyEp, Gpu, NoDevice, find_cupy
from onnx import TensorProto, helper, numpy_helper

from ort_abi import ep

W = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
B = np.array([1, -1, 0.5], np.float32)


def model():
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Add", ["xw", "b"], ["xwb"]),
        helper.make_node("Relu", ["xwb"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(W, "w"), numpy_helper.from_array(B, "b")],
    )
    opset = helper.make_opsetid("", 18)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()


def run(host, provider, x):
    """The model's output on the provider, with no other provider to help."""
    name = ep.register_with(host, provider)
    devices = [device for device in host.get_ep_devices() if device.ep_name == provider.name]
    if not devices:
        ep.unregister_from(host, name)
        raise NoDevice(f"{host.__name__} lists no NVIDIA GPU on this machine")
    options = host.SessionOptions()
    options.graph_optimization_level = (
        host.GraphOptimizationLevel.ORT_DISABLE_ALL
    )  # no Gemm of MatMul and Add
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_provider_for_devices(devices, {})
    session = host.InferenceSession(model(), options)
    y = session.run(None, {"x": x})[0].copy()
    del session, devices
    ep.unregister_from(host, name)
    return y


def main(hosts):
    CupyEp.gpu = Gpu(find_cupy())
    x = np.array([[1, 2], [-3, 4]], np.float32)
    for host in map(importlib.import_module, hosts):
        y = run(host, CupyEp, x)
        np.testing.assert_allclose(y, np.maximum(x @ W + B, 0))
        print(f"{host.__name__} {host.__version__}, {CupyEp.name}: {y.tolist()}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:] or ["ort_abi", "onnxruntime"])
    except NoDevice as error:
        sys.exit(f"This sample needs CuPy and a CUDA device. {error}")
