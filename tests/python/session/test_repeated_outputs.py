"""One output in several places: named twice by a graph, asked for twice by a caller, an input or a constant.

Every place gets a value of its own, whatever way a run goes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from device_support import Plug
from ep_support import NO_FALLBACK, FuseAll, open_session, registered
from numpy_device import device_class
from onnx import TensorProto, helper, numpy_helper

import ort_abi

X = np.array([1, 2, 3], np.float32)
SPEC = (TensorProto.FLOAT, [3])


def value(name: str, spec: tuple[int, list[Any] | None] = SPEC) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, *spec)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> bytes:
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(constants))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))
    return made.SerializeToString()


NEG = model([helper.make_node("Neg", ["x"], ["y"])], [value("x")], [value("y"), value("y")])


def session(data: bytes, host: ModuleType = ort_abi, options: Any = None) -> Any:
    return host.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def equal(outputs: Sequence[Any], *expected: Any) -> None:
    """Values, and (ours) that none lies in another one's memory."""
    assert len(outputs) == len(expected)
    for output, right in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(output, right)
    for i, a in enumerate(outputs):
        assert not any(np.shares_memory(a, b) for b in outputs[:i])


def test_a_graph_that_names_an_output_twice() -> None:
    ours = session(NEG)
    assert [output.name for output in ours.get_outputs()] == ["y", "y"]
    equal(ours.run(None, {"x": X}), -X, -X)
    kept = [ours.run(["y"], {"x": X * i})[0] for i in range(50)]
    for i, output in enumerate(kept):
        np.testing.assert_array_equal(output, -X * i)
    equal(ours.run(["y", "y", "y"], {"x": X}), -X, -X, -X)
    equal(ours.run(["y"], {"x": X}), -X)


def test_an_output_that_is_asked_for_twice() -> None:
    two = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Add", ["y", "y"], ["z"])]
    ours = session(model(two, [value("x")], [value("y"), value("z")]))
    equal(ours.run(["z", "y", "y", "z"], {"x": X}), -2 * X, -X, -X, -2 * X)
    options = ort_abi.RunOptions()
    equal(ours.run(["y", "y"], {"x": X}, options), -X, -X)
    feed = {"x": ort_abi.OrtValue.ortvalue_from_numpy(X.copy())}
    values = ours.run_with_ort_values(["y", "z", "y"], feed)
    equal([v.numpy() for v in values], -X, -2 * X, -X)


def test_stock_gives_the_same_numbers(host: ModuleType) -> None:
    for names in (None, ["y"], ["y", "y"]):
        for output in session(NEG, host).run(names, {"x": X}):
            np.testing.assert_array_equal(output, -X)


def test_a_binding_made_and_preallocated() -> None:
    ours = session(NEG)
    binding = ours.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    for _ in range(20):
        ours.run_with_iobinding(binding)
        equal(binding.copy_outputs_to_cpu(), -X)
    given = ort_abi.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32))
    binding.bind_ortvalue_output("y", given)
    ours.run_with_iobinding(binding)
    np.testing.assert_array_equal(given.numpy(), -X)


def test_an_input_and_a_constant_as_output_twice() -> None:
    w = numpy_helper.from_array(X, "w")
    ours = session(model([], [value("x")], [value("x"), value("x"), value("w"), value("w")], [w]))
    equal(ours.run(None, {"x": -X}), -X, -X, X, X)
    equal(ours.run(["w", "x", "w"], {"x": -X}), X, -X, X)
    over = session(model([], [value("w")], [value("w"), value("w")], [w]))
    equal(over.run(None, {}), X, X)
    equal(over.run(None, {"w": -X}), -X, -X)
    text = helper.make_tensor("t", TensorProto.STRING, [2], [b"a\0b", b"c"])
    strings = session(model([], [], [value("t", (TensorProto.STRING, [2]))] * 2, [text]))
    equal(strings.run(None, {}), ["a\0b", "c"], ["a\0b", "c"])


def branch(name: str, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), name, [], [value(output) for output in outputs])


def test_bodies_of_if() -> None:
    then = branch("then", [helper.make_node("Neg", ["x"], ["t"])], ["t", "t"])
    other = branch("else", [], ["x", "x"])
    node = helper.make_node("If", ["c"], ["y", "z"], then_branch=then, else_branch=other)
    ours = session(
        model([node], [value("c", (TensorProto.BOOL, [])), value("x")], [value("y"), value("z"), value("y")])
    )
    equal(ours.run(None, {"c": np.array(True), "x": X}), -X, -X, -X)
    equal(ours.run(None, {"c": np.array(False), "x": X}), X, X, X)


@pytest.mark.parametrize("through", [False, True], ids=["made", "passed through"])
def test_bodies_of_loop(through: bool) -> None:
    """Carried twice and kept twice."""
    made = "a" if through else "s"
    nodes = [helper.make_node("Identity", ["on"], ["go"]), helper.make_node("Add", ["a", "b"], ["s"])]
    inputs = [
        value("i", (TensorProto.INT64, [])),
        value("on", (TensorProto.BOOL, [])),
        value("a"),
        value("b"),
    ]
    outputs = [value("go", (TensorProto.BOOL, [])), *[value(made)] * 4]
    node = helper.make_node(
        "Loop",
        ["n", "", "x", "x"],
        ["p", "q", "u", "v"],
        body=helper.make_graph(nodes, "body", inputs, outputs),
    )
    ours = session(
        model(
            [node],
            [value("n", (TensorProto.INT64, [])), value("x")],
            [*[value(name) for name in "pq"], *[value(name, (TensorProto.FLOAT, None)) for name in "uv"]],
        )
    )
    steps = [X] * 3 if through else [X * 2, X * 4, X * 8]
    equal(ours.run(None, {"n": np.array(3), "x": X}), steps[-1], steps[-1], steps, steps)


def test_a_loop_that_keeps_its_condition() -> None:
    inputs = [value("i", (TensorProto.INT64, [])), value("on", (TensorProto.BOOL, []))]
    three = numpy_helper.from_array(np.array(2), "two")
    body = helper.make_graph(
        [helper.make_node("Less", ["i", "two"], ["go"])],
        "body",
        inputs,
        [value("go", (TensorProto.BOOL, []))] * 3,
        [three],
    )
    node = helper.make_node("Loop", ["n", ""], ["u", "v"], body=body)
    outputs = [value(name, (TensorProto.BOOL, None)) for name in "uv"]
    ours = session(model([node], [value("n", (TensorProto.INT64, []))], outputs))
    equal(ours.run(None, {"n": np.array(9)}), [True, True, False], [True, True, False])


def test_bodies_of_scan() -> None:
    scalar = (TensorProto.FLOAT, [])
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["s"])],
        "body",
        [value("a", scalar), value("b", scalar)],
        [value("s", scalar)] * 3,
    )
    node = helper.make_node("Scan", ["zero", "x"], ["p", "q", "r"], body=body, num_scan_inputs=1)
    ours = session(
        model([node], [value("zero", scalar), value("x")], [value("p", scalar), value("q"), value("r")])
    )
    sums = np.cumsum(X)
    equal(ours.run(None, {"zero": np.array(0, np.float32), "x": X}), sums[-1], sums, sums)


@pytest.mark.parametrize("outputs", [["b", "b"], ["a", "a"], ["a", "b"]], ids=" ".join)
def test_functions(outputs: list[str]) -> None:
    opset = [helper.make_opsetid("", 17)]
    nodes = [helper.make_node("Neg", ["a"], ["b"])]
    function = helper.make_function("mine", "F", ["a"], outputs, nodes, opset)
    node = helper.make_node("F", ["x"], ["y", "z"], domain="mine")
    ours = session(model([node], [value("x")], [value("y"), value("z"), value("y")], functions=[function]))
    y, z = (X if name == "a" else -X for name in outputs)
    equal(ours.run(None, {"x": X}), y, z, y)


def test_a_profile(tmp_path: Path) -> None:
    options = ort_abi.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "p")
    ours = session(NEG, options=options)
    equal(ours.run(None, {"x": X}), -X, -X)
    events = json.loads(Path(ours.end_profiling()).read_text())
    assert sum(event["name"].endswith("_kernel_time") for event in events) == 1


class Negates(FuseAll):
    """One fused node, with one output however often the graph names it."""

    name = "NegatesExecutionProvider"
    outputs = 0

    def compile(self, graph: Any) -> Any:
        Negates.outputs = len(graph.outputs)
        return lambda x: (-x,)


def test_a_fused_graph(host: ModuleType) -> None:
    with registered(host, Negates):
        equal_values = open_session(host, Negates, NEG, NO_FALLBACK).run(None, {"x": X})
        assert len(equal_values) == 2
        for output in equal_values:
            np.testing.assert_array_equal(output, -X)
    assert Negates.outputs == 1


def test_values_on_a_device(device: Plug) -> None:
    found = device(device_class())
    data = model([helper.make_node("Relu", ["x"], ["y"])], [value("x")], [value("y"), value("y"), value("x")])
    options = ort_abi.SessionOptions()
    options.add_provider_for_devices([found], {})
    ours = ort_abi.InferenceSession(data, options)
    assert [step.ep_name for step in ours.assignment()] == [found.ep_name] * 2
    equal(ours.run(None, {"x": -X}), X * 0, X * 0, -X)
    equal(ours.run(["y", "x", "y", "x"], {"x": X}), X, X, X, X)
    binding = ours.io_binding()
    binding.bind_cpu_input("x", X)
    memory = found.memory_info()
    assert memory is not None
    binding.bind_output("y", ort_abi.OrtDevice.make("gpu", 0, memory.device_vendor_id))
    ours.run_with_iobinding(binding)
    equal(binding.copy_outputs_to_cpu(), X)
    del binding, ours
