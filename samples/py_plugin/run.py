"""Runs relu(x @ w + b) on the two providers of this folder, in our host and in stock onnxruntime.

python run.py [ort_abi] [onnxruntime]
"""

import importlib
import sys

import numpy as np
from my_ep import MyEp
from my_kernel_ep import MyKernelEp
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
    name = ep.register_with(host, provider)  # in our host also: ort_abi.register(provider)
    options = host.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    devices = [device for device in host.get_ep_devices() if device.ep_name == provider.name]
    options.add_provider_for_devices(devices, {})
    session = host.InferenceSession(model(), options)
    y = session.run(None, {"x": x})[0].copy()
    del session, devices
    ep.unregister_from(host, name)
    return y


if __name__ == "__main__":
    x = np.array([[1, 2], [-3, 4]], np.float32)
    for host in map(importlib.import_module, sys.argv[1:] or ["ort_abi", "onnxruntime"]):
        for provider in (MyEp, MyKernelEp):
            y = run(host, provider, x)
            np.testing.assert_allclose(y, np.maximum(x @ W + B, 0))
            print(f"{host.__name__} {host.__version__}, {provider.name}: {y.tolist()}")
