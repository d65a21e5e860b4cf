"""Builds and runs the C programs that test pre-packed weights, with the models that they need."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from ...conftest import SANITIZERS
from ...support.c_programs import build_plugin, build_program, run_program

HERE = Path(__file__).resolve().parent


def value(name: str, shape: list[int]) -> ValueInfoProto:
    """A float input or output."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def save(
    path: Path,
    nodes: list[NodeProto],
    outputs: list[str],
    weights: Mapping[str, np.ndarray],
    inputs: tuple[str, ...] = ("x",),
    opset: int = 17,
) -> None:
    """Writes a model whose inputs and outputs are float[2,3]."""
    tensors = [numpy_helper.from_array(array, key) for key, array in weights.items()]
    values = [[value(name, [2, 3]) for name in names] for names in (inputs, outputs)]
    graph = helper.make_graph(nodes, "prepack", *values, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)


def many_muls() -> tuple[list[NodeProto], dict[str, np.ndarray]]:
    """200 nodes whose weights all differ, and multiply to w."""
    names = ["x", *(f"v{i}" for i in range(199)), "y"]
    nodes = [helper.make_node("Mul", [names[i], f"w{i}" if i else "w"], [names[i + 1]]) for i in range(200)]
    powers = [0.0, *(power * sign for power in range(1, 100) for sign in (1, -1)), 0.0]
    weights = {f"w{i}": np.full((2, 3), 2.0 ** powers[i], np.float32) for i in range(1, 200)}
    return nodes, weights


def save_branches(folder: Path, w: np.ndarray) -> None:
    """Models y = If(c), where the then-branch is x * w, and the other one reads w in another way, or not."""
    node = helper.make_node

    def branch(name: str, op: str, *inputs: str) -> onnx.GraphProto:
        return helper.make_graph([node(op, inputs, [name])], name, [], [value(name, [2, 3])])

    def choice(
        otherwise: onnx.GraphProto, then: onnx.GraphProto | None = None, output: str = "y"
    ) -> NodeProto:
        then = then or branch(f"{output}_then", "Mul", "x", "w")
        return node("If", ["c"], [output], then_branch=then, else_branch=otherwise)

    inner = helper.make_graph(
        [choice(branch("other", "Mul", "x", "w"), output="in")], "inner", [], [value("in", [2, 3])]
    )
    gives = helper.make_graph([], "gives", [], [value("w", [2, 3])])
    both = choice(branch("other", "Mul", "x", "w"))
    nodes = {
        "captured": [both],
        "captured_twice": [both, node("Mul", ["x", "w"], ["z"])],
        "captured_nested": [choice(branch("other", "Mul", "x", "x"), inner)],
        "captured_reader": [choice(branch("other", "Add", "x", "w"))],
        "captured_fused": [choice(branch("other", "Sub", "x", "w"))],
        "captured_output": [choice(gives)],
    }
    for name, graph in nodes.items():
        save(folder / f"{name}.onnx", graph, ["y"], {"w": w, "c": np.array(True)})


def save_floats(path: Path, outputs: list[str], w: np.ndarray) -> None:
    """y = x - w, where w is a list of numbers: its tensor has memory of its own."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, w.shape, w.flatten().tolist())
    nodes = [helper.make_node("Sub", ["x", "w"], ["y"])]
    graph = helper.make_graph(
        nodes, "sub", [value("x", [2, 3])], [value(name, [2, 3]) for name in outputs], [weight]
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of models; see prepack_test.h."""
    folder = tmp_path_factory.mktemp("models")
    node = helper.make_node
    w = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    mul, first = node("Mul", ["x", "w"], ["y"], "mul"), node("Mul", ["x", "w"], ["a"], "mul")
    save(folder / "mul.onnx", [mul], ["y"], {"w": w})
    save(folder / "two.onnx", [first, node("Mul", ["a", "w"], ["y"])], ["y"], {"w": w})
    save(folder / "renamed.onnx", [node("Mul", ["x", "weight"], ["y"], "product")], ["y"], {"weight": w})
    constant = node("Constant", [], ["w"], value=numpy_helper.from_array(w))
    save(folder / "constant.onnx", [constant, mul], ["y"], {})
    other = w.copy()
    other[1, 2] = 7
    save(folder / "other.onnx", [mul], ["y"], {"w": other})
    save(folder / "version13.onnx", [mul], ["y"], {"w": w}, opset=13)
    save(folder / "computed.onnx", [node("Add", ["x", "x"], ["w"]), mul], ["y"], {})
    save(folder / "overridable.onnx", [mul], ["y"], {"w": w}, inputs=("x", "w"))
    save(folder / "output.onnx", [mul], ["y", "w"], {"w": w})
    save(folder / "reader.onnx", [first, node("Add", ["a", "w"], ["y"])], ["y"], {"w": w})
    save(folder / "fused.onnx", [first, node("Sub", ["a", "w"], ["y"])], ["y"], {"w": w})
    save(folder / "two_uses.onnx", [mul, node("Mul", ["x", "w"], ["b"])], ["y", "b"], {"w": w})
    then, otherwise = (
        helper.make_graph([node("Identity", ["w"], [name])], name, [], [value(name, [2, 3])])
        for name in ("then", "else")
    )
    choice = node("If", ["c"], ["z"], "choice", then_branch=then, else_branch=otherwise)
    save(folder / "branch.onnx", [mul, choice], ["y", "z"], {"w": w, "c": np.array(True)})
    save_branches(folder, w)
    save_floats(folder / "sub.onnx", ["y"], w)
    save_floats(folder / "sub_output.onnx", ["y", "w"], w)
    nodes, weights = many_muls()
    save(folder / "many.onnx", nodes, ["y"], {"w": w, **weights})
    return folder


def build_and_run(name: str, library: Path, models: Path, folder: Path, sanitize: str = SANITIZERS) -> None:
    """Compiles one program and the plugin; runs it: all checks hold, and its sanitizers say nothing."""
    build_program(HERE / f"{name}.c", library, folder / name, sanitize)
    build_plugin(HERE / "prepack_plugin.c", folder / "prepack_plugin.so", sanitize)
    run_program(folder / name, folder, folder / "prepack_plugin.so", models)


@pytest.mark.parametrize("name", ["test_prepack", "test_prepack_device", "test_prepack_oom"])
def test_program(name: str, models: Path, sanitized_dir: Path, tmp_path: Path) -> None:
    """The program's checks all hold, nothing leaks, nothing is undefined."""
    build_and_run(name, sanitized_dir, models, tmp_path)


def test_threads_do_not_race(models: Path, tsan_dir: Path, tmp_path: Path) -> None:
    """Sessions of several threads over one container, under ThreadSanitizer."""
    build_and_run("test_prepack_threads", tsan_dir, models, tmp_path, "thread")
