"""The operators of the onnxruntime-extensions package, on our host and on stock onnxruntime."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ep_support import model
from onnx import TensorProto, helper

pytestmark = pytest.mark.third_party

DOMAIN = "ai.onnx.contrib"
TEXT, FLOAT, INT64 = (TensorProto.STRING, [None]), (TensorProto.FLOAT, [2, 2]), (TensorProto.INT64, [None])
WORDS = ["One", "deux", "DREIßIG", ""]
MATRIX = [[1.0, -2.0], [3.0, -4.0]]

RUN = """
import importlib, json, sys
import numpy as np
from onnxruntime_extensions import get_library_path
host = importlib.import_module(sys.argv[1])
results = {}
for path, feeds in json.loads(sys.argv[2]).items():
    options = host.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    session = host.InferenceSession(path, options)
    arrays = {name: np.array(data, dtype) for name, (data, dtype) in feeds.items()}
    results[path] = [output.tolist() for output in session.run(None, arrays)]
print(json.dumps(results))
"""
"""One process a host: the library keeps the table of the host that it met first."""


def node(op_type: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    return helper.make_node(op_type, inputs, outputs, domain=DOMAIN, **attributes)


CASES: dict[str, tuple[list[Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "StringUpper": ([node("StringUpper", ["x"], ["y"])], {"x": TEXT}, {"y": TEXT}, {"x": (WORDS, "O")}),
    "StringLower": ([node("StringLower", ["x"], ["y"])], {"x": TEXT}, {"y": TEXT}, {"x": (WORDS, "O")}),
    "StringConcat": (
        [node("StringConcat", ["x", "x"], ["y"])],
        {"x": TEXT},
        {"y": TEXT},
        {"x": (WORDS, "O")},
    ),
    "StringLength, then Add": (
        [node("StringLength", ["x"], ["n"]), helper.make_node("Add", ["n", "n"], ["y"])],
        {"x": TEXT},
        {"y": INT64},
        {"x": (WORDS, "O")},
    ),
    "StringEqual": (
        [node("StringEqual", ["x", "z"], ["y"])],
        {"x": TEXT, "z": TEXT},
        {"y": (TensorProto.BOOL, [None])},
        {"x": (WORDS, "O"), "z": (WORDS[::-1], "O")},
    ),
    "MaskedFill": (
        [node("MaskedFill", ["x", "m"], ["y"])],
        {"x": TEXT, "m": (TensorProto.BOOL, [None])},
        {"y": TEXT},
        {"x": (WORDS, "O"), "m": ([True, False, True, True], "?")},
    ),
    "NegPos": (
        [node("NegPos", ["x"], ["n", "p"])],
        {"x": FLOAT},
        {"n": FLOAT, "p": FLOAT},
        {"x": (MATRIX, "f")},
    ),
    "Inverse": ([node("Inverse", ["x"], ["y"])], {"x": FLOAT}, {"y": FLOAT}, {"x": (MATRIX, "f")}),
    "RaggedTensorToDense": (
        [node("RaggedTensorToDense", ["a", "b", "c", "d"], ["y"], missing_value=-1)],
        dict.fromkeys("abcd", INT64),
        {"y": (TensorProto.INT64, [None, None])},
        {"a": ([2, 3], "q"), "b": ([1, 2, 3, 4, 5], "q"), "c": ([0], "q"), "d": ([0, 2, 5], "q")},
    ),
}


def run(host: str, models: dict[str, Any]) -> dict[str, Any]:
    """The outputs of all models, by path."""
    command = [sys.executable, "-c", RUN, host, json.dumps(models)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_operators_of_onnxruntime_extensions_give_what_stock_gives(tmp_path: Path) -> None:
    if importlib.util.find_spec("onnxruntime_extensions") is None:
        pytest.skip("the package onnxruntime-extensions is not installed")
    models = {}
    for name, (nodes, inputs, outputs, feeds) in CASES.items():
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(model(nodes, inputs, outputs, domains={DOMAIN: 1}))
        models[str(path)] = feeds
    ours, stock = run("ort_abi", models), run("onnxruntime", models)
    assert ours == stock
    assert ours[str(tmp_path / "StringUpper.onnx")][0][:2] == ["ONE", "DEUX"]
    inverse = np.array(ours[str(tmp_path / "Inverse.onnx")][0])
    np.testing.assert_allclose(inverse @ np.array(MATRIX), np.eye(2), atol=1e-6)
