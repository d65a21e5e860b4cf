"""What the tests of Python providers share: hosts, small models, sessions on one provider."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import ort_abi
from ort_abi import ep

HOSTS: dict[str, ModuleType] = {"stock": onnxruntime}
if hasattr(ort_abi, "InferenceSession"):
    HOSTS["ours"] = ort_abi

OLD_STOCK = tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 27)
"""The stock host lacks OnSessionInitializationEnd, lists of strings for kernels, and loses captured
values."""

NO_FALLBACK = {"session.disable_cpu_ep_fallback": "1"}


def skip_old_stock(host: ModuleType) -> None:
    """Skips what onnxruntime before 1.27 cannot do."""
    if host is onnxruntime and OLD_STOCK:
        pytest.skip(f"onnxruntime {onnxruntime.__version__} is too old for this")


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    constants: dict[str, np.ndarray] | None = None,
    opset: int = 18,
    domains: dict[str, int] | None = None,
) -> bytes:
    """A model's bytes. `inputs` and `outputs`: (dtype or TensorProto number, shape) or a TypeProto, by
    name."""

    def value(name: str, spec: Any) -> onnx.ValueInfoProto:
        if isinstance(spec, onnx.TypeProto):
            return helper.make_value_info(name, spec)
        kind, shape = spec
        number = kind if isinstance(kind, int) else helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return helper.make_tensor_value_info(name, number, shape)

    graph = helper.make_graph(
        list(nodes),
        "test",
        [value(*item) for item in inputs.items()],
        [value(*item) for item in outputs.items()],
        [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    opsets = [
        helper.make_opsetid("", opset),
        *(helper.make_opsetid(*item) for item in (domains or {}).items()),
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def mul_model(shape: Sequence[int] = (3,)) -> bytes:
    """y = a * b, float32."""
    spec = (TensorProto.FLOAT, list(shape))
    return model(
        [helper.make_node("Mul", ["a", "b"], ["y"], name="mul1")], {"a": spec, "b": spec}, {"y": spec}
    )


@contextmanager
def registered(host: ModuleType, cls: type[ep.ExecutionProvider]) -> Iterator[None]:
    """The provider is registered inside the `with` block."""
    name = ep.register_with(host, cls)
    try:
        yield
    finally:
        ep.unregister_from(host, name)


def open_session(
    host: ModuleType,
    cls: type[ep.ExecutionProvider],
    model_bytes: bytes | Path,
    options: dict[str, str] | None = None,
    config: dict[str, str] | None = None,
    fallback: bool = False,
    optimize: bool = True,
) -> Any:
    """A session on the registered provider, without CPU fallback unless asked for."""
    session_options = host.SessionOptions()
    if not optimize:
        session_options.graph_optimization_level = host.GraphOptimizationLevel.ORT_DISABLE_ALL
    for key, value in ({} if fallback else NO_FALLBACK).items() | (config or {}).items():
        session_options.add_session_config_entry(key, value)
    devices = [device for device in host.get_ep_devices() if device.ep_name == cls.name]
    session_options.add_provider_for_devices(devices, options or {})
    no_retry = (
        {"enable_fallback": 0} if host is onnxruntime else {}
    )  # stock would try again on its CPU provider
    return host.InferenceSession(model_bytes, session_options, **no_retry)


def run_once(
    host: ModuleType, cls: type[ep.ExecutionProvider], model_bytes: bytes, feeds: dict[str, Any], **more: Any
) -> Any:
    """Registers, runs, unregisters; the outputs. No traceback of an error keeps the session alive."""
    with registered(host, cls):
        session = None
        try:
            session = open_session(host, cls, model_bytes, **more)
            return [np.array(output) for output in session.run(None, feeds)]  # ours keep their session alive
        except Exception as error:
            raise error.with_traceback(None) from None
        finally:
            del session
            gc.collect()


class FuseAll(ep.ExecutionProvider):
    """Base of test providers: claims the whole graph as one."""

    name = "FuseAllExecutionProvider"

    def get_capability(self, graph: Any) -> Any:
        return [graph.nodes]
