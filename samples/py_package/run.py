"""Uses the package as any plugin package is used: nothing here knows that the provider is written in Python.

python run.py [ort_abi] [onnxruntime]
"""

import importlib
import sys

import acme_ort_ep
import numpy as np
from onnx import TensorProto, helper


def model():
    nodes = [helper.make_node("Mul", ["x", "x"], ["xx"]), helper.make_node("Relu", ["xx"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    graph = helper.make_graph(nodes, "squares", [x], [y])
    opset = helper.make_opsetid("", 18)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()


def run(host, x):
    host.register_execution_provider_library("whatever you like", acme_ort_ep.get_library_path())
    options = host.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    devices = [d for d in host.get_ep_devices() if d.ep_name == acme_ort_ep.get_ep_name()]
    options.add_provider_for_devices(devices, {})
    session = host.InferenceSession(model(), options)
    y = session.run(None, {"x": x})[0].tolist()
    del session, devices
    host.unregister_execution_provider_library("whatever you like")
    return y


if __name__ == "__main__":
    for host in map(importlib.import_module, sys.argv[1:] or ["ort_abi", "onnxruntime"]):
        y = run(host, np.array([1, -2, 3], np.float32))
        print(f"{host.__name__} {host.__version__}, {', '.join(acme_ort_ep.get_ep_names())}: {y}")
