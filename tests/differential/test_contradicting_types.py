"""Models whose declared types contradict: refused when the session is made, as stock onnxruntime does it.

What stock accepts is accepted here; what it refuses for its types is refused here, in every mode, by an error
that names the node, the value and both types. Shapes that contradict are what stock has for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T

import ort_abi
from ort_abi.errors import OrtError

from ..support import contradicting_models
from ..support.models import generated_models

FEEDS = contradicting_models.FEEDS
CASES = {name: (model, feeds) for name, model, feeds in contradicting_models.cases()}
MODES = {"with_onnx": "1", "without": "0"}
"""Whether the `onnx` package infers shapes before the host sees the model."""

OF_TYPES = (
    "Type Error",
    "TypeInferenceError",
    "type information",
    "inconsistent type",
    "element type mismatch",
)
"""Words of both hosts in errors about types."""

OTHER = {T.FLOAT: T.INT64, T.INT64: T.FLOAT, T.BOOL: T.FLOAT, T.DOUBLE: T.FLOAT, T.STRING: T.FLOAT}
EVERY = 12
"""Of so many generated models one is changed and tried."""

OWN_FUNCTIONS = "Optype (MatMul) bound to different types"
"""Stock runs Attention as a function of its own, and refuses what its MatMul does not take."""


def our_session(data: bytes, mode: str) -> ort_abi.InferenceSession:
    """A session of ours; silent."""
    options = ort_abi.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.ort_abi_shape_inference", mode)
    return ort_abi.InferenceSession(data, options)


def stock_session(data: bytes) -> Any:
    """A session of stock onnxruntime; silent."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def refusal(make: Any, *arguments: Any) -> str | None:
    """The error of a session; None: it could be made."""
    try:
        make(*arguments)
    except Exception as error:
        return str(error)
    return None


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("name", CASES)
def test_what_stock_refuses_is_refused_and_nothing_else(name: str, mode: str) -> None:
    model, feeds = CASES[name]
    data = model.SerializeToString()
    if refusal(lambda: stock_session(data).run(None, feeds)) is not None:
        with pytest.raises(OrtError, match=r"Type Error|does not have type information"):
            our_session(data, mode)
        return
    results = our_session(data, mode).run(None, feeds)
    for ours, stock in zip(results, stock_session(data).run(None, feeds), strict=True):
        assert ours.dtype == stock.dtype
        np.testing.assert_array_equal(ours, stock)


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "value_element": r"node 'n0' \(Relu\): output 'a' is tensor\(float\), .* declared as tensor\(int8\)",
        "value_of_Gather": r"node 'n0' \(Gather\): output 'a' is tensor\(float\), .* as tensor\(int8\)",
        "output_sequence": r"output 'y' is tensor\(float\), .* declared as seq\(tensor\(float\)\)",
        "initializer_smaller_ir3": r"initializer 'w' is tensor\(float\), .* is tensor\(int8\)",
        "initializer_rank_ir8": r"initializer 'w' is tensor\(float\) of shape \{3\}, .* of shape \{1,3\}",
        "inputs_of_add": r"node 'n0' \(Add\): input 'x' is tensor\(float\), .*'w'.* T, is tensor\(double\)",
        "inputs_of_where": r"node 'n0' \(Where\): input 'x' is tensor\(float\), .* takes tensor\(bool\)",
        "if_branches_differ": r"\(If\): .* 'b' is tensor\(int64\), .* other branch .* as tensor\(float\)",
        "loop_input": r"\(Loop\): the body's input 'a' is tensor\(int8\), but it gets tensor\(float\)",
        "loop_carried_changes_1_1": r"\(Loop\): the body's output 'b' is tensor\(int64\), .* tensor\(float\)",
        "scan_item_dimension": r"\(Scan\): .*'i' is tensor\(float\) of shape \{3\}, .* slices of .* \{3,2\}",
        "function_output": r"\(Neg\): output 'y' is tensor\(float\), .* tensor\(int8\)",
    }.items(),
)
def test_the_error_names_node_value_and_both_types(name: str, words: str) -> None:
    with pytest.raises(OrtError, match=words):
        our_session(CASES[name][0].SerializeToString(), "0")


@pytest.mark.parametrize("name", ["output_rank", "output_dimension", "value_rank", "value_dimension"])
def test_a_shape_that_contradicts_is_a_warning(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    data = CASES[name][0].SerializeToString()
    onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    assert capfd.readouterr().err.count("Error merging shape info") == 1
    for mode in MODES.values():
        options = ort_abi.SessionOptions()
        options.add_session_config_entry("session.ort_abi_shape_inference", mode)
        session = ort_abi.InferenceSession(data, options)
        assert session.run(None, FEEDS)[0].shape == (3,)
        log = capfd.readouterr().err
        declared = {"rank": "{3,1}", "dimension": "{4}"}[name.split("_")[1]]
        value = {"output": "y", "value": "a"}[name.split("_")[0]]
        assert f"output '{value}' is tensor(float) of shape {{3}}, but it is declared as" in log
        assert log.count("\n") == log.count(f"tensor(float) of shape {declared}") == 1


def test_what_does_not_contradict_is_no_warning(capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("output_right", "if_right", "loop_right", "scan_right", "scan_input_axis", "function_right"):
        ort_abi.InferenceSession(CASES[name][0].SerializeToString())
    assert capfd.readouterr().err == ""


def changed_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Models of the `onnx` package, each with another element type for one of its inputs or outputs."""
    for name, model in list(generated_models())[::EVERY]:
        for kind in ("input", "output"):
            for index, value in enumerate(getattr(model.graph, kind)):
                if not value.type.HasField("tensor_type"):
                    continue
                changed = onnx.ModelProto()
                changed.CopyFrom(model)
                tensor = getattr(changed.graph, kind)[index].type.tensor_type
                tensor.elem_type = OTHER.get(tensor.elem_type, T.DOUBLE)
                yield f"{name}: {kind} '{value.name}'", changed


def test_models_of_the_onnx_package_with_a_changed_type() -> None:
    """Ours refuses for types whatever stock does, and nothing that stock accepts."""
    differences, refused = [], 0
    for name, model in changed_models():
        data = model.SerializeToString()
        ours, stock = refusal(our_session, data, "0"), refusal(stock_session, data)
        is_ours = ours is not None and any(words in ours for words in OF_TYPES)
        is_stocks = stock is not None and any(words in stock for words in OF_TYPES)
        refused += is_ours
        if (is_ours and stock is None) or (is_stocks and not is_ours and OWN_FUNCTIONS not in stock):
            differences.append((name, ours, stock))
    assert not differences
    assert refused > 300


def test_models_of_the_onnx_package_as_they_are() -> None:
    """No model that stock accepts is refused for its types."""
    refused = []
    for name, model in generated_models():
        data = model.SerializeToString()
        ours = refusal(our_session, data, "0")
        if ours is not None and any(words in ours for words in OF_TYPES):
            refused.append((name, ours, refusal(stock_session, data)))
    assert [each for each in refused if each[2] is None] == []
