"""Hosts, models and comparisons for the tests of the built-in CPU EP."""

from __future__ import annotations

import gc
import os
import shlex
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from abigen import native_build

CC = os.environ.get("CC", "cc")
ROOT = native_build.ROOT

Array = NDArray[Any]
DType = type[Any]
Feeds = Mapping[str, Array]

STOCK_EP_NAME = "OrtAbiCpuExecutionProvider"

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
SIGNED = INTEGERS[:4]
WIDE_INTEGERS = [np.int32, np.int64, np.uint32, np.uint64]
REALS = [np.float16, np.float32, np.float64]
NUMBERS = [*INTEGERS, *REALS]
TOLERANCE = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 2e-6, np.dtype(np.float64): 1e-13}


def name_of(value: object) -> str:
    """A parameter's name in a test id."""
    return value.__name__ if isinstance(value, type) else str(value).replace(" ", "")


# ---- Hosts ----


class Session(Protocol):
    """What the tests need of an inference session."""

    def run(self, output_names: Sequence[str] | None, feeds: Feeds) -> list[Array]:
        """Runs the model."""


class Host(Protocol):
    """Something that makes sessions in which every node runs on the CPU EP."""

    ep_name: str

    def session(self, model: onnx.ModelProto, config: Mapping[str, str] | None = None) -> Session:
        """A session with these config entries; raises if the CPU EP does not take every node."""


class StockHost:
    """Stock onnxruntime with the CPU EP as a plugin library and its own fallback forbidden."""

    def __init__(self, library: Path, ep_name: str = STOCK_EP_NAME) -> None:
        self.ep_name = ep_name
        onnxruntime.register_execution_provider_library(ep_name, str(library))
        self.devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == ep_name]

    def session(self, model: onnx.ModelProto, config: Mapping[str, str] | None = None) -> Session:
        """A session without graph optimizations: what the model says is what the EP sees."""
        options = onnxruntime.SessionOptions()
        for key, value in {"session.disable_cpu_ep_fallback": "1", **(config or {})}.items():
            options.add_session_config_entry(key, value)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.add_provider_for_devices(self.devices, {})
        session: Session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        return session

    def close(self) -> None:
        """Unregisters the library."""
        self.devices = []
        gc.collect()  # sessions in caught exceptions: stock crashes when they go after the library
        onnxruntime.unregister_execution_provider_library(self.ep_name)


class OurHost:
    """Our host, which has the EP built in; without the Python fallbacks."""

    ep_name = "CPUExecutionProvider"

    def session(self, model: onnx.ModelProto, config: Mapping[str, str] | None = None) -> Session:
        """A session on the built-in EP alone."""
        import ort_abi

        options = ort_abi.SessionOptions()
        for key, value in (config or {}).items():
            options.add_session_config_entry(key, value)
        session: Session = ort_abi.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"], fallback=False
        )
        return session


def build_plugin(output: Path, ep_name: str = STOCK_EP_NAME) -> Path:
    """Compiles the EP into a plugin library under a name that stock onnxruntime does not use."""
    sources = [*(ROOT / "csrc" / "cpu_ep").glob("*.c"), ROOT / "tests" / "c" / "cpu_ep_plugin.c"]
    command = [*shlex.split(CC), "-std=c11", "-O1", "-g", "-shared", "-fPIC", "-fvisibility=hidden"]
    command += [*native_build.Options(CC).warnings(), f'-DCPU_EP_NAME="{ep_name}"']
    command += [
        f"-I{ROOT / 'csrc' / 'include'}",
        f"-I{ROOT / 'csrc'}",
        *map(str, sources),
        "-o",
        str(output),
        "-lm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


# ---- Models ----


def make_model(
    op_type: str,
    inputs: Mapping[str, Array | None],
    outputs: Sequence[int],
    opset: int = 21,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node named 'the_node'. Dimensions are unknown; `None` is an optional input left out."""
    names = [name if value is not None else "" for name, value in inputs.items()]
    output_names = [f"out{i}" for i in range(len(outputs))]
    node = helper.make_node(op_type, names, output_names, name="the_node", **attributes)
    graph_inputs = [
        helper.make_tensor_value_info(name, onnx_type(value), [f"{name}_{i}" for i in range(value.ndim)])
        for name, value in inputs.items()
        if value is not None
    ]
    graph_outputs = [
        helper.make_tensor_value_info(n, t, None) for n, t in zip(output_names, outputs, strict=True)
    ]
    graph = helper.make_graph([node], "graph", graph_inputs, graph_outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def make_unranked_binary(op_type: str, input_type: int, output_type: int) -> onnx.ModelProto:
    """A model of one node whose inputs may have any rank."""
    inputs = [helper.make_tensor_value_info(name, input_type, None) for name in ("a", "b")]
    node = helper.make_node(op_type, ["a", "b"], ["out"], name="the_node")
    output = helper.make_tensor_value_info("out", output_type, None)
    graph = helper.make_graph([node], "graph", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=10)


def onnx_type(value: Array | DType) -> int:
    """The ONNX element type of an array or of a NumPy scalar type."""
    dtype = value.dtype if isinstance(value, np.ndarray) else np.dtype(value)
    return int(helper.np_dtype_to_tensor_dtype(dtype))


def run_ep(
    host: Host,
    op_type: str,
    inputs: Mapping[str, Array | None],
    output_type: int | None = None,
    output_count: int = 1,
    opset: int = 21,
    **attributes: Any,
) -> list[Array]:
    """What the EP makes of one node; its outputs have the first input's type unless said otherwise."""
    first = next(iter(inputs.values()))
    assert first is not None
    types = [output_type or onnx_type(first)] * output_count
    model = make_model(op_type, inputs, types, opset, **attributes)
    return host.session(model).run(None, {k: v for k, v in inputs.items() if v is not None})


def run_reference(
    op_type: str,
    inputs: Mapping[str, Array | None],
    output_type: int | None = None,
    output_count: int = 1,
    opset: int = 21,
    **attributes: Any,
) -> list[Array]:
    """What the ONNX reference makes of the same node."""
    types = [output_type or TensorProto.FLOAT] * output_count
    model = make_model(op_type, inputs, types, opset, **attributes)
    feeds = {name: value for name, value in inputs.items() if value is not None}
    with np.errstate(all="ignore"):
        return [np.asarray(value) for value in ReferenceEvaluator(model).run(None, feeds)]


def assert_same(got: Array, expected: Array, tolerance: float | None = None) -> None:
    """Same type, shape and values; reals within the type's tolerance."""
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if got.dtype.kind == "f":
        close = TOLERANCE[got.dtype] if tolerance is None else tolerance
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(got, expected, rtol=close, atol=close)
    else:
        np.testing.assert_array_equal(got, expected)


def check_node(host: Host, op_type: str, inputs: Mapping[str, Array | None], **keywords: Any) -> None:
    """The EP's outputs are the reference's."""
    got = run_ep(host, op_type, inputs, **keywords)
    expected = run_reference(op_type, inputs, **keywords)
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        assert_same(mine, theirs)


def check_fails(
    host: Host, op_type: str, inputs: Mapping[str, Array | None], part: str, **keywords: Any
) -> None:
    """Creating or running the session fails with a message that names EP, node, operator and problem."""
    with pytest.raises(Exception) as caught:
        run_ep(host, op_type, inputs, **keywords)
    message = str(caught.value)
    for said in (host.ep_name, "'the_node'", op_type):
        assert said in message
    assert part in message


def values(shape: Sequence[int], dtype: DType, low: int = -9, high: int = 9) -> Array:
    """Reproducible values of every sign the type has; small, so that they are exact in float16."""
    rng = np.random.default_rng(zlib.crc32(f"{tuple(shape)} {np.dtype(dtype).name}".encode()))
    if dtype is np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if np.dtype(dtype).kind == "u":
        low = max(low, 0)
    if np.dtype(dtype).kind == "f":
        return np.asarray(rng.integers(low * 8, high * 8, shape) / 8).astype(dtype)
    return np.asarray(rng.integers(low, high, shape)).astype(dtype)


def ints(*numbers: int) -> Array:
    """An int64 tensor."""
    return np.array(numbers, np.int64)
