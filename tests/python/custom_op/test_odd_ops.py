"""Custom operators that do what few do, in both hosts: the library is odd_ops.cc."""

from __future__ import annotations

import gc
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import ort_abi
from abigen import native_build

SOURCE = Path(__file__).with_name("odd_ops.cc")
EP_SOURCE = Path(__file__).with_name("custom_ops.c")
EP_NAME = "CustomOpsExecutionProvider"
X = np.array([1, -2], np.float32)
I = np.array([3, 4], np.int64)  # noqa: E741
FUNCTIONS = {  # of an operator -> the operators that have it
    "RegisterCustomOps": ("Throws",),
    "GetName": ("Throws",),
    "GetExecutionProviderType": ("Throws",),
    "GetInputType": ("Throws",),
    "GetInputTypeCount": ("Throws",),
    "GetOutputType": ("Throws",),
    "GetOutputTypeCount": ("Throws",),
    "GetInputCharacteristic": ("Throws",),
    "GetOutputCharacteristic": ("Throws",),
    "GetInputMemoryType": ("Throws",),
    "GetStartVersion": ("Throws",),
    "GetEndVersion": ("Throws",),
    "CreateKernel": ("Throws",),
    "CreateKernelV2": ("ThrowsV2",),
    "KernelCompute": ("Throws",),
    "KernelComputeV2": ("ThrowsV2",),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library's file."""
    path = tmp_path_factory.mktemp("odd_ops") / "libodd_ops.so"
    command = [
        *shlex.split(os.environ.get("CXX", "c++")),
        "-std=c++14",
        "-g",
        "-Wall",
        "-Wextra",
        "-shared",
        "-fPIC",
    ]
    command += [f"-I{native_build.CSRC / 'include'}", str(SOURCE), "-o", str(path)]
    subprocess.run(command, check=True)
    return path


@pytest.fixture(scope="module")
def ep_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An EP that brings the domain test.ep, with an EpTwice that doubles its input."""
    path = tmp_path_factory.mktemp("ep") / "libcustom_ops.so"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", f"-I{native_build.CSRC / 'include'}"]
    subprocess.run(
        [*shlex.split(os.environ.get("CC", "cc")), *flags, str(EP_SOURCE), "-o", str(path)], check=True
    )
    return path


def node(op_type: str, inputs: list[str], outputs: list[str], domain: str = "odd") -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, outputs, name=f"the {op_type}", domain=domain)


def odd_model(
    nodes: list[onnx.NodeProto], outputs: dict[str, int], opset: int = 14, version: int = 2
) -> bytes:
    """A model with inputs x, floats, and i, int64s, both of two elements."""
    inputs = {"x": TensorProto.FLOAT, "i": TensorProto.INT64}
    infos = [
        [helper.make_tensor_value_info(name, kind, [2]) for name, kind in values.items()]
        for values in (inputs, outputs)
    ]
    imports = {"": opset, "odd": version, "test.ep": version}
    opsets = [helper.make_opsetid(domain, number) for domain, number in imports.items()]
    model = helper.make_model(helper.make_graph(nodes, "odd", *infos), opset_imports=opsets, ir_version=8)
    return model.SerializeToString()


def run(host: ModuleType, built: Path, model: bytes, wanted: list[str] | None = None) -> list[Any]:
    options = host.SessionOptions()
    options.register_custom_ops_library(str(built))
    session = host.InferenceSession(model, options)
    return list(session.run(wanted, {"x": X, "i": I}))


FLOAT_Y = {"y": TensorProto.FLOAT}


# ---- C++ exceptions ----


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_exception_is_an_error(
    host: ModuleType, built: Path, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the registration, the session or the run, with the exception's text; without it all is well."""
    for op_type in FUNCTIONS[function]:
        model = odd_model([node(op_type, ["x"], ["y"])], FLOAT_Y)
        monkeypatch.setenv("ODD_THROW_AT", function)
        with pytest.raises(Exception, match=f"thrown in {function}") as raised:
            run(host, built, model)
        if host is ort_abi:
            assert "C++ exception std::runtime_error: " in str(raised.value)
            assert any(name in str(raised.value) for name in ("'Throws'", "'the Throws", "libodd_ops.so"))
        monkeypatch.delenv("ODD_THROW_AT")
        np.testing.assert_array_equal(run(host, built, model)[0], X)


def test_an_exception_of_shape_inference_is_as_a_failure_of_it(
    host: ModuleType, built: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Our host warns, as it does of a status; stock onnxruntime makes no session."""
    model = odd_model([node("ThrowsV2", ["x"], ["y"])], FLOAT_Y)
    monkeypatch.setenv("ODD_THROW_AT", "InferOutputShapeFn")
    if host is not ort_abi:
        with pytest.raises(Exception, match="thrown in InferOutputShapeFn"):
            run(host, built, model)
        return
    np.testing.assert_array_equal(run(host, built, model)[0], X)
    warned = capfd.readouterr().err
    assert "node 'the ThrowsV2' (ThrowsV2): OrtCustomOp::InferOutputShapeFn failed" in warned
    assert "C++ exception std::runtime_error: thrown in InferOutputShapeFn" in warned


def test_an_exception_of_destroy_is_logged(built: Path, tmp_path: Path) -> None:
    """It ends a process of stock onnxruntime: so in a process where there is none."""
    (tmp_path / "model.onnx").write_bytes(odd_model([node("Throws", ["x"], ["y"])], FLOAT_Y))
    program = f"""
import numpy as np
import ort_abi

options = ort_abi.SessionOptions()
options.register_custom_ops_library({str(built)!r})
session = ort_abi.InferenceSession({str(tmp_path / "model.onnx")!r}, options)
feeds = {{"x": np.ones(2, np.float32), "i": np.ones(2, np.int64)}}
print(session.run(None, feeds)[0])
session.close()
print("closed")
"""
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "ODD_THROW_AT": "KernelDestroy"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "[1. 1.]\nclosed\n"), done.stderr
    expected = "EP 'CPUExecutionProvider': OrtCustomOp::KernelDestroy: C++ exception std::runtime_error: "
    assert done.stderr.count(expected) == 1


# ---- Versions ----


@pytest.mark.parametrize("version", [1, 2, 5])
def test_an_end_version_of_minus_one_is_none(host: ModuleType, built: Path, version: int) -> None:
    """It starts with 2; the largest uint32_t is the same int."""
    model = odd_model([node("Endless", ["x"], ["y"])], FLOAT_Y, version=version)
    if version < 2:
        with pytest.raises(Exception, match="Endless"):
            run(host, built, model)
        return
    np.testing.assert_array_equal(run(host, built, model)[0], X)


@pytest.mark.parametrize("start", [13, 14, 15])
@pytest.mark.parametrize("opset", [13, 14, 18])
def test_an_operator_stands_in_for_onnx_from_a_version_on(
    host: ModuleType, built: Path, start: int, opset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernels that EPs have for ONNX's constrain type parameters that it does not have."""
    monkeypatch.setenv("ODD_RELU_FROM", str(start))
    model = odd_model([node("Relu", ["x"], ["y"], "")], FLOAT_Y, opset=opset)
    expected = X + 100 if start <= opset else np.maximum(X, 0)
    np.testing.assert_array_equal(run(host, built, model)[0], expected)


# ---- Variadic inputs ----


@pytest.mark.parametrize("op_type", ["Join", "Mixed", "FloatJoin"])
@pytest.mark.parametrize("inputs", [["x", "x"], ["x", "i"], ["i", "x"]], ids="".join)
def test_only_heterogeneous_variadic_inputs_are_of_mixed_types(
    host: ModuleType, built: Path, op_type: str, inputs: list[str]
) -> None:
    """Join takes any type, but one; Mixed takes any; FloatJoin takes floats."""
    kind = TensorProto.FLOAT if inputs[0] == "x" else TensorProto.INT64
    model = odd_model([node(op_type, inputs, ["y"])], {"y": kind})
    if op_type != "Mixed" and inputs != ["x", "x"]:
        text = f"Type Error: node 'the {op_type}' .*: input '[xi]' is tensor"
        with pytest.raises(Exception, match=text if host is ort_abi else "the (Float)?Join"):
            run(host, built, model)
        return
    np.testing.assert_array_equal(run(host, built, model)[0], X if inputs[0] == "x" else I)


# ---- Outputs that are not made ----


def test_an_output_that_nobody_reads_need_not_be_made(host: ModuleType, built: Path) -> None:
    model = odd_model([node("Half", ["x"], ["y", "z"])], FLOAT_Y)
    np.testing.assert_array_equal(run(host, built, model)[0], X)


def test_a_missing_output_of_the_model_is_none(host: ModuleType, built: Path, capfd: Any) -> None:
    outputs = {**FLOAT_Y, "z": TensorProto.FLOAT}
    model = odd_model([node("Half", ["x"], ["y", "z"])], outputs)
    for _ in range(2):
        y, z = run(host, built, model)
        np.testing.assert_array_equal(y, X)
        assert z is None
    if host is ort_abi:
        expected = "EP 'CPUExecutionProvider': node 'the Half' said OK and did not make its output 'z'"
        assert capfd.readouterr().err.count(expected) == 2
    np.testing.assert_array_equal(run(host, built, model, ["y"])[0], X)
    if host is ort_abi:
        assert capfd.readouterr().err == ""


def test_a_missing_output_is_an_ort_value_without_content(host: ModuleType, built: Path) -> None:
    options = host.SessionOptions()
    options.register_custom_ops_library(str(built))
    model = odd_model([node("Mute", ["x"], ["y"])], FLOAT_Y)
    session = host.InferenceSession(model, options)
    feeds = {name: host.OrtValue.ortvalue_from_numpy(array) for name, array in (("x", X), ("i", I))}
    (value,) = session.run_with_ort_values(None, feeds)
    assert not value.has_value()


@pytest.mark.parametrize("wanted", [None, ["y"]], ids=["all", "not the reader's"])
@pytest.mark.parametrize("reader", ["Endless", "Relu"])
def test_a_missing_output_that_a_node_reads_is_an_error(
    host: ModuleType, built: Path, reader: str, wanted: list[str] | None
) -> None:
    nodes = [
        node("Half", ["x"], ["y", "z"]),
        node(reader, ["z"], ["w"], "odd" if reader == "Endless" else ""),
    ]
    model = odd_model(nodes, {**FLOAT_Y, "w": TensorProto.FLOAT})
    text = r"node 'the Half' \(Half, odd, version 1\) failed: it said OK and did not make its output 'z'"
    with pytest.raises(Exception, match=text if host is ort_abi else f"the {reader}"):
        run(host, built, model, wanted)


# ---- A domain of an EP and a library ----


def test_a_domain_is_merged_operator_by_operator(
    host: ModuleType, built: Path, ep_library: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """What the options have an operator for is theirs; stock onnxruntime leaves out the EP's whole domain."""
    monkeypatch.setenv("ODD_DOMAIN", "test.ep")
    host.register_execution_provider_library("custom ops", str(ep_library))
    options = host.SessionOptions()
    options.register_custom_ops_library(str(built))
    options.add_provider_for_devices([d for d in host.get_ep_devices() if d.ep_name == EP_NAME], {})
    nodes = [node("Placeholder", ["x"], ["y"], "test.ep"), node("Endless", ["x"], ["z"], "test.ep")]
    model = odd_model(nodes, dict.fromkeys("yz", TensorProto.FLOAT))
    if host is ort_abi:
        session = host.InferenceSession(model, options)
        y, z = session.run(None, {"x": X, "i": I})
        np.testing.assert_array_equal(y, 3 * X)
        np.testing.assert_array_equal(z, X)
        text = f"EP '{EP_NAME}': its custom operator 'EpTwice' of domain 'test.ep' is left out"
        assert capfd.readouterr().err.count(text) == 1
        del session
    else:
        with pytest.raises(Exception, match="Placeholder"):
            host.InferenceSession(model, options)
    del options
    gc.collect()
    host.unregister_execution_provider_library("custom ops")
