"""Models of several nodes, Constant, and the EP as a library."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.support.cpu_ep import (
    Host,
    StockHost,
    assert_same,
    build_plugin,
    check_node,
    make_model,
    run_ep,
    values,
)


def perceptron() -> onnx.ModelProto:
    """Gemm, Relu, MatMul, Add, Softmax with initializers."""
    rng = np.random.default_rng(3)
    weights = {
        "w1": rng.normal(size=(4, 8)).astype(np.float32),
        "b1": rng.normal(size=8).astype(np.float32),
        "w2": rng.normal(size=(8, 3)).astype(np.float32),
        "b2": rng.normal(size=3).astype(np.float32),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h1"], name="gemm"),
        helper.make_node("Relu", ["h1"], ["h2"], name="relu"),
        helper.make_node("MatMul", ["h2", "w2"], ["h3"], name="matmul"),
        helper.make_node("Add", ["h3", "b2"], ["h4"], name="add"),
        helper.make_node("Softmax", ["h4"], ["y"], name="softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(w, n) for n, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_a_model_of_several_nodes_runs_on_many_threads(ep_host: Host) -> None:
    """Kernels do not change after they were created, so one session serves all threads."""
    model = perceptron()
    session = ep_host.session(model)
    reference: Any = ReferenceEvaluator(model)
    batches = [np.random.default_rng(i).normal(size=(i % 5, 4)).astype(np.float32) for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: session.run(None, {"x": x})[0], batches))
    for batch, result in zip(batches, results, strict=True):
        assert_same(result, reference.run(None, {"x": batch})[0])


def test_intermediate_values_in_place(ep_host: Host) -> None:
    """A chain whose kernels may write over their inputs, and a value that two of them read."""
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Add", ["a", "x"], ["b"]),
        helper.make_node("Sub", ["x", "a"], ["c"]),
        helper.make_node("Mul", ["c", "c"], ["d"]),
        helper.make_node("Add", ["b", "d"], ["e"]),
        helper.make_node("Squeeze", ["e"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 5])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "d")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = values((1, 5), np.float32)
    got = ep_host.session(model).run(None, {"x": x})
    reference: Any = ReferenceEvaluator(model)
    for mine, theirs in zip(got, reference.run(None, {"x": x}), strict=True):
        assert_same(mine, theirs)


@pytest.mark.parametrize(
    ("attribute", "output_type"),
    [
        ({"value": numpy_helper.from_array(np.arange(6, dtype=np.int16).reshape(2, 3))}, TensorProto.INT16),
        ({"value": numpy_helper.from_array(np.array(1.5))}, TensorProto.DOUBLE),
        ({"value": numpy_helper.from_array(np.zeros((0, 2), np.bool_))}, TensorProto.BOOL),
        ({"value_int": 7}, TensorProto.INT64),
        ({"value_float": 1.25}, TensorProto.FLOAT),
        ({"value_ints": [1, 2, 3]}, TensorProto.INT64),
        ({"value_floats": [0.5, -1.5]}, TensorProto.FLOAT),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else str(value),
)
def test_constant(ep_host: Host, attribute: dict[str, Any], output_type: int) -> None:
    """Every kind of value that is a tensor of numbers. (Stock onnxruntime folds the node itself.)"""
    model = make_model("Constant", {}, [output_type], **attribute)
    reference: Any = ReferenceEvaluator(model)
    assert_same(ep_host.session(model).run(None, {})[0], np.asarray(reference.run(None, {})[0]))


def test_the_library_unloads(tmp_path: Path) -> None:
    """Register, run and unregister ten times: each time it is gone from the process."""
    name = "OrtAbiCpuUnloadTest"
    library = build_plugin(tmp_path / "libcpu_ep_unload.so", name)
    for _ in range(10):
        stock = StockHost(library, name)
        assert [d.ep_vendor for d in stock.devices] == ["ort-abi"]
        assert str(library) in Path("/proc/self/maps").read_text()
        check_node(stock, "Add", {"a": values((2,), np.float32), "b": values((2,), np.float32)})
        stock.close()
        assert str(library) not in Path("/proc/self/maps").read_text()


def test_operators_it_does_not_have_are_not_claimed(ep_host: Host) -> None:
    """With fallback forbidden the session says which node nobody took."""
    with pytest.raises(Exception, match=r"Det|assigned to the default CPU EP"):
        run_ep(ep_host, "Det", {"x": values((2, 2), np.float32)})
