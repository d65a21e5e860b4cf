"""`ort_abi.eps.reference`: every ONNX operator, in groups, with subgraphs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import NO_FALLBACK, model, open_session, registered, run_once, skip_old_stock
from onnx import TensorProto, helper

from ort_abi import ep
from ort_abi.eps.reference import ReferenceExecutionProvider

SPEC = (np.float32, [3])
A = np.array([1, 2, 3], np.float32)


def tensor(name: str, kind: int = TensorProto.FLOAT, shape: Any = ()) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, list(shape))


def test_a_conv_net(host: ModuleType) -> None:
    chance = np.random.default_rng(0)
    w = chance.standard_normal((4, 1, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"]),
    ]
    bytes_ = model(nodes, {"x": (np.float32, [1, 1, 4, 4])}, {"y": (np.float32, [1, 16])}, {"w": w})
    x = chance.standard_normal((1, 1, 4, 4)).astype(np.float32)
    expected = onnx.reference.ReferenceEvaluator(onnx.load_from_string(bytes_)).run(None, {"x": x})[0]
    found = run_once(host, ReferenceExecutionProvider, bytes_, {"x": x})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def loop_model() -> bytes:
    """y = a * (1 + w)^n, as a Loop that captures w."""
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["v", "w1"], ["next"]),
            helper.make_node("Identity", ["go"], ["go_on"]),
        ],
        "body",
        [tensor("i", TensorProto.INT64), tensor("go", TensorProto.BOOL), tensor("v", shape=[3])],
        [tensor("go_on", TensorProto.BOOL), tensor("next", shape=[3])],
    )
    nodes = [
        helper.make_node("Add", ["w", "one"], ["w1"]),
        helper.make_node("Loop", ["n", "", "a"], ["y"], body=body),
    ]
    return model(
        nodes,
        {"n": (np.int64, []), "a": SPEC, "w": SPEC},
        {"y": SPEC},
        {"one": np.ones(3, np.float32)},
    )


def test_loop_with_captured_values(host: ModuleType) -> None:
    feeds = {"n": np.array(3), "a": A, "w": A}
    np.testing.assert_allclose(
        run_once(host, ReferenceExecutionProvider, loop_model(), feeds)[0], A * (1 + A) ** 3
    )


def test_nested_if(host: ModuleType) -> None:
    skip_old_stock(host)
    inner = helper.make_node(
        "If",
        ["d"],
        ["io"],
        then_branch=helper.make_graph(
            [helper.make_node("Add", ["a", "w"], ["t1"])], "t", [], [tensor("t1", shape=[3])]
        ),
        else_branch=helper.make_graph(
            [helper.make_node("Sub", ["a", "w"], ["t2"])], "e", [], [tensor("t2", shape=[3])]
        ),
    )
    outer = helper.make_node(
        "If",
        ["c"],
        ["y"],
        then_branch=helper.make_graph([inner], "ot", [], [tensor("io", shape=[3])]),
        else_branch=helper.make_graph(
            [helper.make_node("Neg", ["a"], ["n"])], "oe", [], [tensor("n", shape=[3])]
        ),
    )
    bytes_ = model([outer], {"c": (bool, []), "d": (bool, []), "a": SPEC}, {"y": SPEC}, {"w": A * 10})
    with registered(host, ReferenceExecutionProvider):
        session = open_session(host, ReferenceExecutionProvider, bytes_)
        for c, d, expected in ((True, True, A * 11), (True, False, A * -9), (False, True, -A)):
            feeds = {"c": np.array(c), "d": np.array(d), "a": A}
            np.testing.assert_array_equal(session.run(None, feeds)[0], expected)
        del session


def test_sequences_stay_inside_a_group(host: ModuleType) -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["a"], ["s"], axis=0, keepdims=0),
        helper.make_node("SequenceAt", ["s", "i"], ["e"]),
        helper.make_node("Add", ["e", "e"], ["y"]),
    ]
    bytes_ = model(nodes, {"a": SPEC, "i": (np.int64, [])}, {"y": (np.float32, [])})
    assert run_once(host, ReferenceExecutionProvider, bytes_, {"a": A, "i": np.array(1)})[0] == 4


def test_strings(host: ModuleType) -> None:
    node = helper.make_node("StringConcat", ["a", "b"], ["y"])
    spec = (TensorProto.STRING, [2])
    bytes_ = model([node], {"a": spec, "b": spec}, {"y": spec}, opset=20)
    feeds = {"a": np.array(["x", "y"], object), "b": np.array(["1", "ü"], object)}
    assert run_once(host, ReferenceExecutionProvider, bytes_, feeds)[0].tolist() == ["x1", "yü"]


def test_takes_what_another_provider_left(host: ModuleType) -> None:
    """A way around: the first provider takes the middle; the rest must be two groups, not one."""

    class Middle(ep.ExecutionProvider):
        name = "MiddleExecutionProvider"

        @ep.kernel("Neg", (6, None))
        def neg(x: np.ndarray) -> np.ndarray:
            return -x

    nodes = [
        helper.make_node("Abs", ["a"], ["t"]),
        helper.make_node("Neg", ["t"], ["u"]),
        helper.make_node("Sub", ["t", "u"], ["y"]),
    ]
    bytes_ = model(nodes, {"a": SPEC}, {"y": SPEC})
    with registered(host, Middle), registered(host, ReferenceExecutionProvider):
        options = host.SessionOptions()
        for key, value in NO_FALLBACK.items():
            options.add_session_config_entry(key, value)
        for name in (Middle.name, ReferenceExecutionProvider.name):
            devices = [device for device in host.get_ep_devices() if device.ep_name == name]
            options.add_provider_for_devices(devices, {})
        session = host.InferenceSession(bytes_, options)
        np.testing.assert_array_equal(session.run(None, {"a": -A})[0], 2 * A)
        del session, devices


def test_functions_of_onnx_run_too(host: ModuleType) -> None:
    """Operators that onnx defines as functions of others."""
    node = helper.make_node("Celu", ["a"], ["y"], alpha=2.0)
    found = run_once(host, ReferenceExecutionProvider, model([node], {"a": SPEC}, {"y": SPEC}), {"a": -A})[0]
    np.testing.assert_allclose(found, 2 * (np.exp(-A / 2) - 1), rtol=1e-5)


@pytest.mark.parametrize("op", ["Nonexistent", "FusedMatMul"])
def test_unknown_operators_are_not_claimed(op: str) -> None:
    from ort_abi.eps import reference

    assert not reference._has_code("", op, 18)
    assert not reference._has_code("com.microsoft", op, 1)
    assert reference._has_code("", "Relu", 14)
    assert reference._has_code("ai.onnx.ml", "LabelEncoder", 2)


def test_loop_scan_outputs(host: ModuleType) -> None:
    """Two-dimensional values of each iteration are stacked along a new first axis."""
    skip_old_stock(host)
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "v"], ["next"]),
            helper.make_node("Identity", ["next"], ["seen"]),
            helper.make_node("Less", ["i", "last"], ["go_on"]),
        ],
        "body",
        [tensor("i", TensorProto.INT64), tensor("go", TensorProto.BOOL), tensor("v", shape=[2, 3])],
        [tensor("go_on", TensorProto.BOOL), tensor("next", shape=[2, 3]), tensor("seen", shape=[2, 3])],
    )
    node = helper.make_node("Loop", ["", "c", "a"], ["y", "all"], body=body)
    matrix = (np.float32, [2, 3])
    bytes_ = model(
        [node],
        {"a": matrix, "c": (bool, []), "last": (np.int64, [])},
        {"y": matrix, "all": (np.float32, ["n", 2, 3])},
    )
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    feeds = {"a": a, "c": np.array(True), "last": np.array(2)}
    y, seen = run_once(host, ReferenceExecutionProvider, bytes_, feeds)
    np.testing.assert_array_equal(y, a * 8)
    np.testing.assert_array_equal(seen, np.stack([a * 2, a * 4, a * 8]))


def test_loop_inside_a_loop(host: ModuleType) -> None:
    inner = helper.make_graph(
        [
            helper.make_node("Add", ["iv", "a"], ["inext"]),
            helper.make_node("Identity", ["igo"], ["igo_on"]),
        ],
        "inner",
        [tensor("ii", TensorProto.INT64), tensor("igo", TensorProto.BOOL), tensor("iv", shape=[3])],
        [tensor("igo_on", TensorProto.BOOL), tensor("inext", shape=[3])],
    )
    outer = helper.make_graph(
        [
            helper.make_node("Loop", ["n", "", "v"], ["next"], body=inner),
            helper.make_node("Identity", ["go"], ["go_on"]),
        ],
        "outer",
        [tensor("i", TensorProto.INT64), tensor("go", TensorProto.BOOL), tensor("v", shape=[3])],
        [tensor("go_on", TensorProto.BOOL), tensor("next", shape=[3])],
    )
    node = helper.make_node("Loop", ["n", "", "a"], ["y"], body=outer)
    bytes_ = model([node], {"n": (np.int64, []), "a": SPEC}, {"y": SPEC})
    found = run_once(host, ReferenceExecutionProvider, bytes_, {"n": np.array(2), "a": A})[0]
    np.testing.assert_array_equal(found, A * 5)
