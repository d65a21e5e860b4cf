"""Sessions whose weights the built-in CPU provider packs: containers, and originals that are released."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_abi

SIDE = 256  # weights of 256 kB: large enough for their memory to be given back
RANDOM = np.random.default_rng(0)
WEIGHT = (RANDOM.standard_normal((SIDE, SIDE)) / SIDE**0.5).astype(np.float32)
X = RANDOM.standard_normal((2, SIDE)).astype(np.float32)
PRODUCT = X @ WEIGHT @ WEIGHT


def two_products(padding: int) -> onnx.ModelProto:
    """y = x w w, with two initializers of the same elements."""
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["a"]), helper.make_node("MatMul", ["a", "w2"], ["y"])]
    weights = [numpy_helper.from_array(WEIGHT, name) for name in ("w1", "w2")]
    return as_model(nodes, padding, weights=weights)


def function_called_twice(padding: int) -> onnx.ModelProto:
    """The same, by a function whose constant is read at both calls: two tensors over the same bytes."""
    body = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(WEIGHT)),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
    ]
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("test", "Product", ["a"], ["b"], body, opsets)
    nodes = [helper.make_node("Product", [i], [o], domain="test") for i, o in (("x", "a"), ("a", "y"))]
    return as_model(nodes, padding, functions=[function])


def as_model(
    nodes: list[onnx.NodeProto],
    padding: int,
    weights: list[onnx.TensorProto] | None = None,
    functions: list[onnx.FunctionProto] | None = None,
) -> onnx.ModelProto:
    """`padding` moves the weights to other addresses: those that lie badly are copied."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, SIDE]) for name in "xy")
    graph = helper.make_graph(nodes, "graph", [x], [y], weights or [])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("test", 1)]
    model = helper.make_model(
        graph, opset_imports=opsets, ir_version=8, functions=functions or [], producer_name="p" * padding
    )
    return model


MODELS = {"two_products": two_products, "function_called_twice": function_called_twice}


def open_session(
    model: str | bytes, container: ort_abi.PrepackedWeightsContainer | None = None, **config: str
) -> ort_abi.InferenceSession:
    options = ort_abi.SessionOptions()
    for key, value in config.items():
        options.add_session_config_entry(f"session.{key}", value)
    options.add_session_config_entry("session.ort_abi_shape_inference", "0")  # the host reads it itself
    return ort_abi.InferenceSession(
        model,
        options,
        providers=["CPUExecutionProvider"],
        fallback=False,
        prepacked_weights_container=container,
    )


def check(session: ort_abi.InferenceSession) -> None:
    np.testing.assert_allclose(session.run(None, {"x": X})[0], PRODUCT, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("padding", range(4))
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("source", ["path", "bytes"])
def test_results(name: str, padding: int, shared: bool, source: str, tmp_path: Path) -> None:
    """Right in two sessions over one model, wherever the weights lie and whatever is released."""
    data = MODELS[name](padding).SerializeToString()
    (tmp_path / "model.onnx").write_bytes(data)
    container = ort_abi.PrepackedWeightsContainer() if shared else None
    sessions = [
        open_session(str(tmp_path / "model.onnx") if source == "path" else data, container) for _ in range(2)
    ]
    for session in sessions:
        check(session)
        session.close()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("padding", range(4))
def test_weights_that_nobody_packs_stay(name: str, padding: int) -> None:
    """What lies around them in the model's bytes goes, they do not."""
    session = open_session(MODELS[name](padding).SerializeToString(), disable_prepacking="1")
    for _ in range(2):
        check(session)


def branches() -> bytes:
    """z = x w, and y = x w in one branch, which captures w, and x v in the other, which has v."""
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, SIDE]) for name in ("t", "e")]
    captured = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t"])], "then", [], outputs[:1])
    own = numpy_helper.from_array(WEIGHT.T.copy(), "v")
    other = helper.make_graph([helper.make_node("MatMul", ["x", "v"], ["e"])], "else", [], outputs[1:], [own])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["z"]),
        helper.make_node("If", ["c"], ["y"], then_branch=captured, else_branch=other),
    ]
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, SIDE]) for name in "xyz")
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    graph = helper.make_graph(nodes, "branches", [x, c], [y, z], [numpy_helper.from_array(WEIGHT, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("shared", [False, True])
def test_weights_in_branches(shared: bool) -> None:
    """Right with what kernels of subgraphs pack: what they capture and what is theirs."""
    container = ort_abi.PrepackedWeightsContainer() if shared else None
    session = open_session(branches(), container)
    for _ in range(2):
        for c, weight in ((True, WEIGHT), (False, WEIGHT.T)):
            y, z = session.run(None, {"x": X, "c": np.array(c)})
            np.testing.assert_allclose(y, X @ weight, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(z, X @ WEIGHT, rtol=1e-4, atol=1e-5)


MEASURE = """
import os, sys, numpy, ort_abi

class Fuses(ort_abi.ep.ExecutionProvider):
    name = "FusesExecutionProvider"
    def get_capability(self, graph):
        return [graph.nodes]
    def compile(self, graph):
        return lambda *arrays: arrays[0]

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

def open_session(model):
    options = ort_abi.SessionOptions()
    options.add_session_config_entry("session.ort_abi_shape_inference", "0")
    return ort_abi.InferenceSession(model, options, providers=[provider], fallback=False)

small, big, source, provider = sys.argv[1:]
if provider == Fuses.name:
    ort_abi.register(Fuses)
open_session(small)
if source == "bytes":
    with open(big, "rb") as file:
        big = file.read()
before = resident()
session = open_session(big)
print(resident() - before)
"""


def big_graph() -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """Weights of 16 MB in 64 tensors, and y of x by them."""
    weights = [numpy_helper.from_array(np.roll(WEIGHT, i), f"w{i}") for i in range(64)]
    names = ["x", *(f"v{i}" for i in range(63)), "y"]
    return [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(64)], weights


def in_branch(nodes: list[onnx.NodeProto], own: list[onnx.TensorProto]) -> list[onnx.NodeProto]:
    """y of the nodes if c, else x."""
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, SIDE]) for name in ("y", "other")]
    then = helper.make_graph(nodes, "then", [], outputs[:1], own)
    otherwise = helper.make_graph([helper.make_node("Identity", ["x"], ["other"])], "else", [], outputs[1:])
    always = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    return [always, helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)]


def big_model(padding: int, kind: str = "plain") -> bytes:
    """`big_graph` as it is, in a branch that captures the weights, or in one that has them."""
    nodes, weights = big_graph()
    if kind == "captured":
        nodes = in_branch(nodes, [])
    elif kind == "own":
        nodes, weights = in_branch(nodes, weights), []
    return as_model(nodes, padding, weights=weights).SerializeToString()


def check_memory(folder: Path, model: bytes, source: str, provider: str, limit: float) -> None:
    """What a session on the model adds to the memory of a process is at most `limit` bytes."""
    (folder / "model.onnx").write_bytes(model)
    (folder / "small.onnx").write_bytes(two_products(0).SerializeToString())
    command = [sys.executable, "-c", MEASURE, folder / "small.onnx", folder / "model.onnx", source, provider]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= limit


@pytest.mark.parametrize("source", ["path", "bytes"])
@pytest.mark.parametrize("padding", range(4))
def test_memory(source: str, padding: int, tmp_path: Path) -> None:
    """A session needs what its packed weights need, and nothing of the model's bytes."""
    check_memory(tmp_path, big_model(padding), source, "CPUExecutionProvider", 1.1 * 64 * WEIGHT.nbytes)


@pytest.mark.parametrize("padding", range(4))
@pytest.mark.parametrize("kind", ["captured", "own"])
def test_memory_of_branches(kind: str, padding: int, tmp_path: Path) -> None:
    """Weights that kernels of branches packed go too, wherever they were."""
    check_memory(tmp_path, big_model(padding, kind), "path", "CPUExecutionProvider", 1.1 * 64 * WEIGHT.nbytes)


@pytest.mark.parametrize("padding", range(4))
@pytest.mark.parametrize("kind", ["plain", "captured", "own"])
def test_memory_of_fused_nodes(kind: str, padding: int, tmp_path: Path) -> None:
    """What a provider could copy when it compiled is its own business."""
    check_memory(
        tmp_path, big_model(padding, kind), "bytes", "FusesExecutionProvider", 0.1 * 64 * WEIGHT.nbytes
    )


@pytest.mark.parametrize("padding", range(4))
def test_memory_of_small_weights(padding: int, tmp_path: Path) -> None:
    """malloc keeps freed blocks of 64 kB for itself; the system gets them all the same."""
    pair = WEIGHT[:, : SIDE // 4], WEIGHT[: SIDE // 4]
    weights = [numpy_helper.from_array(pair[i % 2].copy(), f"w{i}") for i in range(256)]
    names = ["x", *(f"v{i}" for i in range(255)), "y"]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(256)]
    model = as_model(nodes, padding, weights=weights).SerializeToString()
    check_memory(tmp_path, model, "bytes", "FusesExecutionProvider", 0.1 * 256 * pair[0].nbytes)


@pytest.mark.parametrize("padding", range(4))
def test_bytes_that_the_caller_lends_stay_as_they_are(padding: int) -> None:
    """Released originals are never the caller's memory."""
    data = two_products(padding).SerializeToString()
    copy = bytes(bytearray(data))
    session = open_session(data, use_ort_model_bytes_directly="1")
    check(session)
    session.close()
    del session
    gc.collect()
    assert data == copy


def test_sessions_of_several_threads_over_one_container() -> None:
    """Made, run and closed at once."""
    data = two_products(0).SerializeToString()
    container = ort_abi.PrepackedWeightsContainer()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                session = open_session(data, container)
                check(session)
                session.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_container_can_go_first() -> None:
    """Sessions keep alive what they share."""
    container = ort_abi.PrepackedWeightsContainer()
    session = open_session(two_products(0).SerializeToString(), container)
    del container
    gc.collect()
    check(session)
