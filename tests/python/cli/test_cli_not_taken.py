"""`ort-abi run` says why a provider that was to run the model left nodes to others."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from test_cli import main

PROVIDER = """
import numpy as np
from ort_abi import ep

class Narrow(ep.ExecutionProvider):
    name = "NarrowEp"

    @ep.kernel("Mul", since_version=(7, 12), types={"T": [np.float32]})
    def mul(a, b):
        return a * b

    @ep.kernel("Neg", since_version=13, types={"T": [np.float32]})
    def neg(x):
        return -x
"""


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """To run a model of five Muls, a Neg and an If on the provider."""
    names = ["x", *"abcde"]
    nodes = [
        helper.make_node("Mul", [first, first], [second], f"mul_{second}" if second != "b" else "")
        for first, second in itertools.pairwise(names)
    ]
    bodies = [
        helper.make_graph(
            [helper.make_node("Erf" if name == "then" else "Neg", ["e"], [f"{name}_y"], f"in_{name}")],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, [2])],
        )
        for name in ("then", "else")
    ]
    nodes.append(
        helper.make_node("If", ["go"], ["y"], "choice", then_branch=bodies[0], else_branch=bodies[1])
    )
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, [2]), value("go", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "main", inputs, [value("y", TensorProto.FLOAT, [2])])
    path, provider = tmp_path / "model.onnx", tmp_path / "narrow.py"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    provider.write_text(PROVIDER)
    return ["run", str(path), "--py-ep", f"{provider}:Narrow"]


def test_nodes_that_were_not_taken_are_told_with_the_reason(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 100
    text = " ".join(said.split())
    assert "NarrowEp did not take 7 node(s):" in text
    assert (
        "5x Mul (mul_a, that makes b, mul_c and 2 more): it has kernels for Mul of versions 7 to 12," in text
    )
    assert "Erf (in_then in then_branch of If 'choice'): it has no kernel for Erf" in text
    assert "CPUExecutionProvider did not" not in text


def test_json_has_all_of_them(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["not_taken"]
    mine = [each["node_name"] for each in found if each["ep_name"] == "NarrowEp"]
    assert sorted(mine) == ["", "choice", "in_then", "mul_a", "mul_c", "mul_d", "mul_e"]
    assert [each["output_name"] for each in found if each["node_name"] == ""] == ["b"]
