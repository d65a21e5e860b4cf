"""Outputs whose shape is not what the model says: a warning, and the output as the provider made it."""

from __future__ import annotations

import gc
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ep_support import FuseAll, model, open_session, registered, run_once, skip_old_stock
from onnx import TensorProto, helper

import ort_abi
from ort_abi import ep

WARNING = "Expected shape from model of {} does not match actual shape of {} for output {}"
X = np.ones((2, 3), np.float32)


class Widens(ep.ExecutionProvider):
    """y = x and zeros behind it: one column more than the model says."""

    name = "WidensExecutionProvider"

    @staticmethod
    @ep.kernel("Relu", (6, None))
    def relu(x: np.ndarray) -> np.ndarray:
        return np.concatenate([x, np.zeros_like(x[:, :1])], axis=1)


class WidensFused(FuseAll):
    """The same by one fused node."""

    name = "WidensFusedExecutionProvider"

    def compile(self, graph: Any) -> Any:
        return Widens.relu


def relus(shape: list[Any] | None, middle: list[Any] | None = None) -> bytes:
    """y = Relu(x); or, with the shape `middle`, m = Relu(x) and y = Relu(m), m an output as well."""
    names = ["x", "y"] if middle is None else ["x", "m", "y"]
    nodes = [
        helper.make_node("Relu", [names[i]], [names[i + 1]], name=f"relu{i}") for i in range(len(names) - 1)
    ]
    outputs = {"y": (np.float32, shape)} | ({} if middle is None else {"m": (np.float32, middle)})
    made: bytes = model(nodes, {"x": (np.float32, ["N", 3])}, outputs)
    return made


@pytest.mark.parametrize("cls", [Widens, WidensFused])
def test_an_output_of_another_shape_is_a_warning(
    host: ModuleType, cls: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    skip_old_stock(host)
    (y,) = run_once(host, cls, relus(["N", 3]), {"x": X}, optimize=False)
    assert y.tolist() == [[1, 1, 1, 0]] * 2
    log = capfd.readouterr().err
    assert log.count(WARNING.format("{-1,3}", "{2,4}", "y")) == 1
    if host is ort_abi:
        assert f"EP '{cls.name}'" in log


def test_an_output_that_fits_is_none(host: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    (y,) = run_once(host, Widens, relus(["N", 4]), {"x": X}, optimize=False)
    assert y.shape == (2, 4)
    assert "actual shape" not in capfd.readouterr().err


@pytest.mark.parametrize("shape", [[2, 3, 1], [], ["N", "M", 1]], ids=str)
def test_what_contradicts_the_node_is_said_when_the_session_is_made(
    shape: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    """As in stock onnxruntime; no shape is known from then on."""
    run_once(ort_abi, Widens, relus(shape), {"x": X})
    log = capfd.readouterr().err
    assert log.count("output 'y' is tensor(float) of shape {?,3}, but it is declared as tensor(float)") == 1
    assert "actual shape" not in log


@pytest.mark.parametrize(
    ("shape", "shown"), [(["N", 3], "{-1,3}"), ([5, "M"], "{5,-1}"), (["N", "M"], ""), (None, "")], ids=str
)
def test_what_contradicts_the_model(
    shape: list[Any] | None, shown: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Stock onnxruntime takes shapes that it infers where the model's are less."""
    run_once(ort_abi, Widens, relus(shape), {"x": X})
    log = capfd.readouterr().err
    assert (WARNING.format(shown, "{2,4}", "y") in log) == (shown != "")
    assert ("actual shape" in log) == (shown != "")


def test_only_outputs_that_are_asked_for_are_compared(
    host: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    with registered(host, Widens):
        session = open_session(host, Widens, relus(["N", 3], middle=["N", 3]), optimize=False)
        for names, compared in ((["y"], "y"), (["m"], "m"), (["m", "y"], "my")):
            session.run(names, {"x": X})
            log = capfd.readouterr().err
            for name, columns in (("m", 4), ("y", 5)):
                warning = WARNING.format("{-1,3}", f"{{2,{columns}}}", name)
                assert log.count(warning) == (name in compared), names
        del session
        gc.collect()


def test_a_run_that_logs_no_warnings_has_none(capfd: pytest.CaptureFixture[str]) -> None:
    with registered(ort_abi, Widens):
        session = open_session(ort_abi, Widens, relus(["N", 3]))
        options = ort_abi.RunOptions()
        options.log_severity_level = 3
        session.run(None, {"x": X}, options)
        quiet = capfd.readouterr().err
        session.run(None, {"x": X})
        del session
        gc.collect()
    assert "actual shape" not in quiet
    assert "actual shape" in capfd.readouterr().err


def test_outputs_of_a_subgraph_are_compared_too(capfd: pytest.CaptureFixture[str]) -> None:
    """Stock onnxruntime makes them beforehand, as the model says, and fails."""

    def branch(op: str) -> Any:
        value = helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])
        return helper.make_graph([helper.make_node(op, ["a", "b"], ["o"])], op, [], [value])

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Add"), else_branch=branch("Sub"))
    given = {"a": (np.float32, ["N"]), "b": (np.float32, ["N"]), "c": (np.bool_, [])}
    session = ort_abi.InferenceSession(model([node], given, {"y": (np.float32, ["N"])}))
    five = np.ones(5, np.float32)
    assert session.run(None, {"a": five, "b": five, "c": np.array(True)})[0].tolist() == [2] * 5
    assert capfd.readouterr().err.count(WARNING.format("{3}", "{5}", "o")) == 1


def test_a_preallocated_output_of_another_shape_is_an_error() -> None:
    with registered(ort_abi, Widens):
        session = open_session(ort_abi, Widens, relus(["N", "M"]))
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_ortvalue_output("y", ort_abi.OrtValue.ortvalue_from_numpy(X))
        with pytest.raises(ort_abi.errors.OrtError, match=r"makes its output 'y' with shape \[2,4\]"):
            session.run_with_iobinding(binding)
        del session, binding
        gc.collect()
