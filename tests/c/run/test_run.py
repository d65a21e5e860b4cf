"""Builds and runs the C programs that test sessions: partition, kernels, Run, failures, threads.

Every program is linked to a sanitized library. It gets the path of `run_plugin.so`, an execution provider
that does what the program tells it, and a folder of small models that are made here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ...conftest import SANITIZERS
from ...support.c_programs import build_plugin, build_program, run_program

HERE = Path(__file__).resolve().parent
PROGRAMS = sorted(HERE.glob("test_*.c"))


def value(name: str, shape: list[int | str], dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """A tensor-typed input or output."""
    return helper.make_tensor_value_info(name, dtype, shape)


def save(
    folder: Path,
    name: str,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    **initializers: np.ndarray,
) -> None:
    """Writes `name`.onnx (opset 17, and version 1 of the domains `test` and `com.microsoft`)."""
    tensors = [numpy_helper.from_array(array, key) for key, array in initializers.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, tensors)
    domains = {"": 17, "test": 1, "com.microsoft": 1}
    opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / f"{name}.onnx")


def layout_models() -> dict[str, list[onnx.NodeProto]]:
    """The nodes of models x float[1,2,5,4] -> y, windowed ones among them."""
    node = helper.make_node
    one = node("Conv", ["x", "w"], ["a"], "one", kernel_shape=[2, 2])
    relu = node("Relu", ["a"], ["b"], "relu")
    pool = node("MaxPool", ["x"], ["a"], "pool", kernel_shape=[2, 2])
    chains = {
        "conv": [node("Conv", ["x", "w"], ["y"], "one")],
        "conv_conv": [one, node("Conv", ["a", "v"], ["y"], "two")],
        "conv_relu_conv": [one, relu, node("Conv", ["b", "v"], ["y"], "two")],
        "conv_relu": [one, node("Relu", ["a"], ["y"], "relu")],
        "pool_conv": [pool, node("Conv", ["a", "w"], ["y"], "one")],
        "twice": [
            one,
            node("Conv", ["x", "w"], ["b"], "two"),
            node("Add", ["a", "b"], ["y"], "add"),
        ],
        "residual": [
            one,
            node("Conv", ["a", "u"], ["b"], "two"),
            node("Add", ["b", "a"], ["c"], "add"),
            node("Mul", ["c", "half"], ["y"], "mul"),
        ],
        "read_twice": [
            one,
            node("Conv", ["a", "v"], ["b"], "two"),
            node("MatMul", ["a", "m"], ["c"], "matmul"),
            node("ReduceSum", ["c"], ["d"], "sum"),
            node("Add", ["b", "d"], ["y"], "add"),
        ],
    }
    chains["moved"] = [
        one,
        node("Add", ["a", "r"], ["b"], "row"),
        node("Slice", ["b", "from", "to"], ["c"], "slice"),
        node("Concat", ["c", "k"], ["d"], "concat", axis=1),
        node("Transpose", ["d"], ["e"], "transpose", perm=[0, 2, 3, 1]),
        node("ReduceMax", ["d"], ["g"], "max", axes=[2, 3], keepdims=0),
        node("Shape", ["d"], ["s"], "shape"),
        node("Cast", ["s"], ["f"], "cast", to=TensorProto.FLOAT),
        node("Add", ["g", "f"], ["h"], "sum"),
        node("Add", ["e", "h"], ["y"], "last"),
    ]
    chains["renamed"] = [
        one,
        node("Transpose", ["a"], ["b"], "t1", perm=[0, 2, 3, 1]),
        node("Transpose", ["a"], ["c"], "t2", perm=[0, 2, 3, 1]),
        node("Relu", ["b"], ["d"], "relu"),
        node("Relu", ["c"], ["e"], "again"),
        node("Add", ["d", "e"], ["f"], "add"),
        node("MatMul", ["a", "m"], ["g"], "matmul"),
        node("ReduceSum", ["g"], ["h"], "sum"),
        node("Add", ["f", "h"], ["y"], "last"),
    ]
    chains["no_output"] = [
        one,
        node("Shape", ["a"], [""], "shape"),
        node("Conv", ["x", "w"], ["y"], "two"),
    ]
    branches = [
        helper.make_graph([inner], inner.name, [], [value(inner.output[0], ["n", "c", "h", "w"])])
        for inner in (node("Conv", ["p", "v"], ["t"], "two"), node("Relu", ["p"], ["e"], "relu"))
    ]
    chains["if_conv"] = [
        node("Conv", ["x", "w"], ["p"], "one"),
        node("If", ["yes"], ["y"], "choice", then_branch=branches[0], else_branch=branches[1]),
    ]
    return chains


def save_layout_models(folder: Path) -> None:
    """Saves `layout_models`, and NAME.expected: y of 0, 1, 2, ... as float32."""
    image = value("x", [1, 2, 5, 4])
    weights: dict[str, np.ndarray] = {"w": (np.arange(24, dtype=np.float32).reshape(3, 2, 2, 2) % 5) - 1}
    weights["v"] = (np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2) % 7) - 2
    weights["u"] = np.arange(9, dtype=np.float32).reshape(3, 3, 1, 1) - 4
    weights["half"] = np.array(0.5, np.float32)
    weights["m"] = np.arange(6, dtype=np.float32).reshape(3, 2)
    weights["r"] = np.arange(3, dtype=np.float32).reshape(3, 1, 1)
    weights["k"] = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    weights["from"], weights["to"] = np.array([0, 0, 1], np.int64), np.array([1, 3, 3], np.int64)
    weights["yes"] = np.array(True)
    for name, nodes in layout_models().items():
        inner = [each for outer in nodes for attribute in outer.attribute for each in attribute.g.node]
        read = {key for each in (*nodes, *inner) for key in each.input}
        used = {key: array for key, array in weights.items() if key in read}
        shape: list[int | str] = ["n", "c", "h", "w"]
        save(folder, name, nodes, [image], [value("y", shape)], **used)
        x = np.arange(40, dtype=np.float32).reshape(1, 2, 5, 4)
        (y,) = ReferenceEvaluator(str(folder / f"{name}.onnx")).run(None, {"x": x})
        (folder / f"{name}.expected").write_bytes(np.asarray(y, np.float32).tobytes())


def save_models_with_bodies(folder: Path) -> None:
    """If, Loop, and If in a Loop; all have x and y of float[2,3]."""
    node = helper.make_node
    x, y = value("x", [2, 3]), value("y", [2, 3])
    branches = [
        helper.make_graph([node(op, ["x"], [name], f"in_{name}")], name, [], [value(name, [2, 3])])
        for op, name in (("Relu", "then"), ("Identity", "else"))
    ]
    choice = [node("If", ["c"], ["y"], "choice", then_branch=branches[0], else_branch=branches[1])]
    save(folder, "if", choice, [value("c", [], TensorProto.BOOL), x], [y])
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"], "on"), node("Add", ["v", "x"], ["next"], "step")],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", [2, 3])],
        [value("on", [], TensorProto.BOOL), value("next", [2, 3]), value("next", [2, 3])],
    )
    loop = [node("Loop", ["most", "", "x"], ["y", "seen"], "loop", body=body)]
    save(folder, "loop", loop, [x], [y, value("seen", [3, 2, 3])], most=np.array(3, np.int64))
    arms = [
        helper.make_graph([node(op, ["v", by], [name], f"in_{name}")], name, [], [value(name, [2, 3])])
        for op, by, name in (("Add", "x", "added"), ("Mul", "w", "doubled"))
    ]
    turn = [
        node("Identity", ["go"], ["on"], "on"),
        node("Equal", ["i", "zero"], ["first"], "first"),
        node("If", ["first"], ["next"], "choice", then_branch=arms[0], else_branch=arms[1]),
    ]
    outputs = [value("on", [], TensorProto.BOOL), value("next", [2, 3])]
    outer = helper.make_graph(turn, "turn", list(body.input), outputs)
    nested = [node("Loop", ["most", "", "x"], ["y"], "loop", body=outer)]
    numbers = {
        "most": np.array(3, np.int64),
        "zero": np.array(0, np.int64),
        "w": np.full((2, 3), 2, np.float32),
    }
    save(folder, "nested", nested, [x], [y], **numbers)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of models."""
    folder = tmp_path_factory.mktemp("models")
    node = helper.make_node
    x, y = value("x", [2, 3]), value("y", [2, 3])
    ones = np.ones((2, 3), np.float32)
    chain = [
        node("Add", ["x", "w"], ["a"], "add"),
        node("Mul", ["a", "x"], ["b"], "mul"),
        node("Relu", ["b"], ["y"], "relu"),
    ]
    save(folder, "chain", chain, [x], [y], w=ones)
    twice = [node("Add", ["x", "w"], ["a"], "one"), node("Add", ["a", "w"], ["y"], "two")]
    save(folder, "weight", twice, [x], [y], w=ones)
    save(folder, "empty", [], [x], [x])
    rows = [
        node("Relu", ["x"], ["a"], "one"),
        node("Relu", ["a"], ["b"], "two"),
        node("Relu", ["b"], ["y"], "three"),
    ]
    save(folder, "rows", rows, [value("x", ["n", 3])], [value("y", ["m", 3])])
    diamond = [
        node("Relu", ["x"], ["a"], "first"),
        node("Identity", ["a"], ["b"], "middle"),
        node("Add", ["a", "b"], ["y"], "last"),
    ]
    save(folder, "diamond", diamond, [x], [y])
    pairs = [
        node("Relu", ["x"], ["a"], "a1"),
        node("Relu", ["x"], ["b"], "b1"),
        node("Add", ["a", "b"], ["c"], "a2"),
        node("Add", ["b", "a"], ["d"], "b2"),
        node("Add", ["c", "d"], ["y"], "probe"),
    ]
    save(folder, "pairs", pairs, [x], [y])
    wide = [node("Add", ["x", "k"], ["y"], "add")]
    outputs = [value("y", ["n", 3]), value("x", ["n", 3]), value("w", [2, 3])]
    save(
        folder,
        "inputs",
        wide,
        [value("x", ["n", 3]), value("k", [1])],
        outputs,
        k=np.full(1, 10, np.float32),
        w=ones,
    )
    two = [node("Add", ["x", "z"], ["y"], "add")]
    save(folder, "two", two, [x, value("z", [2, 3])], [y])
    integers = [value(name, [2], TensorProto.INT32) for name in "xy"]
    save(folder, "integers", [node("Add", ["x", "x"], ["y"], "add")], integers[:1], integers[1:])
    relus = [node("Relu", ["x"], ["spare"], "spare"), node("Relu", ["x"], ["y"], "relu")]
    save(folder, "unused", relus, [x], [y])
    save_models_with_bodies(folder)
    context = [node("EPContext", ["x"], ["y"], "compiled", domain="com.microsoft", source="AcmeEp")]
    save(folder, "context", context, [x], [y])
    probe = node(
        "Probe",
        ["x", "", "w"],
        ["y"],
        "probe",
        domain="test",
        i=7,
        f=0.5,
        s="text",
        ints=[1, 2, 3],
        floats=[1.5, 2.5],
        strings=["one", "two"],
        t=numpy_helper.from_array(np.arange(4, dtype=np.int64), "t"),
    )
    save(folder, "attributes", [probe], [x], [y], w=ones)
    save_layout_models(folder)
    save(folder, "defaults", [node("LeakyRelu", ["x"], ["y"], "leaky")], [x], [y])
    return folder


def build_and_run(
    source: Path, library: Path, models: Path, folder: Path, sanitize: str = SANITIZERS
) -> None:
    """Compiles one program and the plugin; runs it: all checks hold, and its sanitizers say nothing."""
    build_program(source, library, folder / source.stem, sanitize)
    build_plugin(HERE / "run_plugin.c", folder / "run_plugin.so", sanitize)
    run_program(folder / source.stem, folder, folder / "run_plugin.so", models)


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_program(source: Path, models: Path, sanitized_dir: Path, tmp_path: Path) -> None:
    """The program's checks all hold, nothing leaks, nothing is undefined."""
    build_and_run(source, sanitized_dir, models, tmp_path)


def test_threads_do_not_race(models: Path, tsan_dir: Path, tmp_path: Path) -> None:
    """The same program under ThreadSanitizer."""
    build_and_run(HERE / "test_threads.c", tsan_dir, models, tmp_path, "thread")
