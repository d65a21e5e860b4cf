"""`ort-abi demo`: a third-party EP and a Python provider on our host, the latter also in onnxruntime."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ort_abi
from ort_abi.cli import demo_ep
from ort_abi.cli._common import CommandError, register_libraries
from ort_abi.cli.run import print_assignment

__all__ = ["add_parser", "main"]

_HINT = "pip install 'ort-abi[demo]'"
_REPEAT = 200
_OLDEST_STOCK = (1, 24)


def add_parser(commands: Any) -> None:
    """Adds the subcommand."""
    parser = commands.add_parser("demo", help="a third-party EP and a Python EP run a small model")
    parser.set_defaults(main=main)


def main(arguments: argparse.Namespace) -> None:
    """Runs the demonstration. Raises CommandError if outputs differ or the `onnx` package is missing."""
    del arguments
    model, feed, expected = _model()
    print("Model: y = Relu(x @ w + b), float32, made on the spot.\n")

    print("1. A third-party provider, a shared library from PyPI, on this host:")
    library = _library_of("nxrt_ep_cpu")
    if library is None:
        print(f"   skipped: the package nxrt-ep-cpu is not installed ({_HINT})\n")
    else:
        print(f"   {library}")
        device = register_libraries([library])[0][0]
        _show(lambda: _our_session(model, device), feed, expected)

    print("2. A provider written in Python, on this host:")
    print(f"   {demo_ep.__file__}")
    ort_abi.register(demo_ep.NumpyExecutionProvider)
    ours = next(d for d in ort_abi.get_ep_devices() if d.ep_name == demo_ep.NumpyExecutionProvider.name)
    here = _show(lambda: _our_session(model, ours), feed, expected)

    print("3. The same Python provider in stock onnxruntime, in this process:")
    if importlib.util.find_spec("onnxruntime") is None:
        print(f"   skipped: the package onnxruntime is not installed ({_HINT})")
        return
    stock = importlib.import_module("onnxruntime")
    print(f"   onnxruntime {stock.__version__}")
    if tuple(int(number) for number in stock.__version__.split(".")[:2]) < _OLDEST_STOCK:
        oldest = ".".join(map(str, _OLDEST_STOCK))
        print(f"   skipped: providers in Python need onnxruntime {oldest} or later")
        return
    ort_abi.ep.register_with(stock, demo_ep.NumpyExecutionProvider)
    there = _show(lambda: _stock_session(stock, model), feed, expected)
    if not np.array_equal(here, there):
        raise CommandError("the outputs of both hosts differ")
    print("Both hosts give the same bits.")


def _model() -> tuple[bytes, dict[str, NDArray[Any]], NDArray[Any]]:
    """The model, its input, and its output by NumPy."""
    if importlib.util.find_spec("onnx") is None:
        raise CommandError(f"the demonstration makes its model with the package onnx: {_HINT}")
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 16), (16, 8)))
    b = random.standard_normal(8).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"], "matmul"),
        helper.make_node("Add", ["xw", "b"], ["xwb"], "add"),
        helper.make_node("Relu", ["xwb"], ["y"], "relu"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 8])]
    constants = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")]
    graph = helper.make_graph(nodes, "demo", inputs, outputs, constants)
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    return model.SerializeToString(), {"x": x}, np.maximum(x @ w + b, 0)


def _library_of(package: str) -> str | None:
    if importlib.util.find_spec(package) is None:
        return None
    path = importlib.import_module(package).get_library_path()
    return str(path) if Path(path).exists() else None


def _our_session(model: bytes, device: ort_abi.OrtEpDevice) -> Any:
    options = ort_abi.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_provider_for_devices([device], {})
    return ort_abi.InferenceSession(model, options)


def _stock_session(stock: ModuleType, model: bytes) -> Any:
    options = stock.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    # Else MatMul and Add are fused into an operator that the provider does not have.
    options.graph_optimization_level = stock.GraphOptimizationLevel.ORT_DISABLE_ALL
    name = demo_ep.NumpyExecutionProvider.name
    options.add_provider_for_devices([d for d in stock.get_ep_devices() if d.ep_name == name], {})
    return stock.InferenceSession(model, options)


def _show(make: Callable[[], Any], feed: dict[str, Any], expected: NDArray[Any]) -> NDArray[Any]:
    """Runs the model, checks it against NumPy, prints how it went, and returns the output."""
    session = make()
    output: NDArray[Any] = session.run(None, feed)[0].copy()
    started = time.perf_counter()
    for _ in range(_REPEAT):
        session.run(None, feed)
    microseconds = (time.perf_counter() - started) / _REPEAT * 1e6
    error = float(np.abs(output - expected).max())
    if error > 1e-5:
        raise CommandError(f"the output differs from NumPy's by {error:.3g}")
    print(f"   y[0, :4] = {np.array2string(output[0, :4], precision=4)}, {error:.1e} from NumPy's")
    print(f"   {microseconds:.1f} microseconds a run")
    if isinstance(session, ort_abi.InferenceSession):
        session.set_timing(True)
        for _ in range(_REPEAT):
            session.run(None, feed)
        print_assignment(session.assignment(), indent="   ")
    print()
    return output
