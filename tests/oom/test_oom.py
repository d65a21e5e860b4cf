"""Out of memory: each allocation of registration, session creation and Run fails in turn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ..conftest import ROOT
from ..support.c_programs import build_plugin, build_program, run_program


def mul_add_relu() -> list[onnx.NodeProto]:
    """Nodes that the sample plugin runs all, fused."""
    return [
        helper.make_node("Mul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "x"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]


def on_two_providers() -> list[onnx.NodeProto]:
    """Nodes of which the plugin runs some and the built-in CPU EP the others."""
    return [
        helper.make_node("Mul", ["x", "w"], ["a"]),
        helper.make_node("Sigmoid", ["a"], ["b"]),
        helper.make_node("Shape", ["b"], ["shape"]),
        helper.make_node("Reshape", ["b", "flat"], ["c"]),
        helper.make_node("Reshape", ["c", "shape"], ["d"]),
        helper.make_node("Softmax", ["d"], ["e"], axis=-1),
        helper.make_node("Cast", ["e"], ["f"], to=TensorProto.DOUBLE),
        helper.make_node("Cast", ["f"], ["g"], to=TensorProto.FLOAT),
        helper.make_node("Relu", ["g"], ["y"]),
    ]


def with_bodies() -> list[onnx.NodeProto]:
    """Nodes that run subgraphs, one in the other; the plugin runs those inside."""
    value, node, graph = helper.make_tensor_value_info, helper.make_node, helper.make_graph
    then = graph([node("Add", ["v", "x"], ["p"])], "then", [], [value("p", 1, [2, 3])])
    other = graph([node("Mul", ["v", "w"], ["q"])], "else", [], [value("q", 1, [2, 3])])
    loop = graph(
        [
            node("Identity", ["go"], ["on"]),
            node("Equal", ["i", "flat"], ["first"]),
            node("If", ["first"], ["next"], then_branch=then, else_branch=other),
        ],
        "loop",
        [value("i", 7, []), value("go", 9, []), value("v", 1, [2, 3])],
        [value("on", 9, []), value("next", 1, [2, 3]), value("v", 1, [2, 3])],
    )
    scan = graph(
        [node("Add", ["s", "row"], ["t"]), node("Relu", ["t"], ["u"])],
        "scan",
        [value("s", 1, [3]), value("row", 1, [3])],
        [value("t", 1, [3]), value("u", 1, [3])],
    )
    return [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "flat"], ["count"]),
        node("Loop", ["count", "", "x"], ["a", "all"], body=loop),
        node("Scan", ["w", "a"], ["last", "columns"], body=scan, num_scan_inputs=1, scan_output_axes=[1]),
        node("Transpose", ["columns"], ["y"]),
    ]


MODELS = {"plugin": mul_add_relu, "two_providers": on_two_providers, "bodies": with_bodies}


def save_model(path: Path, nodes: list[onnx.NodeProto]) -> Path:
    """Writes a model of the nodes, of x: float[2,3], y, and two initializers."""
    graph = helper.make_graph(
        nodes,
        "oom",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [
            numpy_helper.from_array(np.array([1, -2, 3], np.float32), "w"),
            numpy_helper.from_array(np.array([-1], np.int64), "flat"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture(scope="module")
def programs(sanitized_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the test program and the sample plugin."""
    folder = tmp_path_factory.mktemp("oom")
    build_program(ROOT / "tests" / "oom" / "session_oom.c", sanitized_dir, folder / "session_oom")
    build_plugin(ROOT / "samples" / "c_plugin" / "c_plugin.c", folder / "libc_plugin.so")
    return folder


@pytest.mark.parametrize("model", MODELS)
def test_every_allocation_fails_once(programs: Path, tmp_path: Path, model: str) -> None:
    """Each failure is an error, leaks nothing, and the next try works and is right."""
    path = save_model(tmp_path / "model.onnx", MODELS[model]())
    run_program(programs / "session_oom", tmp_path, programs / "libc_plugin.so", path)
