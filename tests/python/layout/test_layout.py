"""Providers that prefer channels last, in Python: what becomes of their graphs, and that results stay what
they were. `channels_last.py` has the providers."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from channels_last import NHWC, ChannelsFirst, ChannelsLast, FuseChannelsLast
from ep_support import HOSTS, open_session, registered, run_once
from image_models import RANDOM, WEIGHT, X, conv, model, node
from numpy.typing import NDArray
from onnx import TensorProto, helper
from random_graphs import RandomGraph

import ort_abi
from ort_abi import ep
from tests.support.models import wheel_models

Array = NDArray[Any]


def plain(model: bytes | Path, feeds: dict[str, Array]) -> list[Array]:
    """What stock onnxruntime's own provider makes of a model, without changing it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return [np.asarray(output) for output in session.run(None, feeds)]


def graph_after(name: str = "test", cls: type[ChannelsLast] = ChannelsLast) -> Counter[str]:
    """Operators of the graph that the provider was last asked about, with an "nhwc " in front of converted
    ones."""
    return Counter(("nhwc " if domain == NHWC else "") + op for domain, op, _ in cls.seen[name])


def check(
    host: ModuleType,
    model_bytes: bytes,
    cls: type[ChannelsLast] = ChannelsLast,
    **feeds: Array,
) -> Counter[str]:
    """Runs the model: results are what they should be. Returns `graph_after`."""
    found = run_once(
        host, cls, model_bytes, {"x": X, **feeds}, fallback=True, optimize=host is not onnxruntime
    )
    for output, wanted in zip(found, plain(model_bytes, {"x": X, **feeds}), strict=True):
        assert output.dtype == wanted.dtype
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    return graph_after(cls=cls)


# ---- what is converted ----


def test_a_node_stands_between_two_transposes(host: ModuleType) -> None:
    assert check(host, model([conv(y="y")])) == {"Transpose": 2, "nhwc Conv": 1}


def test_nothing_is_converted_without_a_preference(host: ModuleType) -> None:
    assert check(host, model([conv(y="y")]), ChannelsFirst) == {"Conv": 1}


SENSITIVE: dict[str, tuple[onnx.NodeProto, dict[str, Array]]] = {
    "AveragePool": (
        node("AveragePool", ["x"], ["y"], kernel_shape=[2, 3], strides=[1, 2], pads=[1, 0, 0, 1]),
        {},
    ),
    "BatchNormalization": (
        node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"]),
        {
            name: np.array(pair, np.float32)
            for name, pair in zip("sbmv", [(1, 2), (0, 3), (4, 1), (1, 4)], strict=True)
        },
    ),
    "ConvTranspose": (node("ConvTranspose", ["x", "t"], ["y"], strides=[2, 1]), {"t": WEIGHT[:2]}),
    "DepthToSpace": (node("DepthToSpace", ["x4"], ["y"], blocksize=2), {}),
    "GlobalAveragePool": (node("GlobalAveragePool", ["x"], ["y"]), {}),
    "GlobalMaxPool": (node("GlobalMaxPool", ["x"], ["y"]), {}),
    "InstanceNormalization": (
        node("InstanceNormalization", ["x", "s", "b"], ["y"]),
        {"s": np.array([1, 2], np.float32), "b": np.array([0, 3], np.float32)},
    ),
    "MaxPool": (node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2]), {}),
    "SpaceToDepth": (node("SpaceToDepth", ["x4"], ["y"], blocksize=2), {}),
}


@pytest.mark.parametrize("op", SENSITIVE)
def test_operators_that_depend_on_the_layout_are_converted(host: ModuleType, op: str) -> None:
    sensitive, constants = SENSITIVE[op]
    nodes = [sensitive]
    if "x4" in sensitive.input:  # of eight channels, four by four
        nodes = [
            node("Concat", ["x", "x", "x", "x"], ["x8"], axis=1),
            node("Slice", ["x8", "from", "to"], ["x4"]),
            sensitive,
        ]
        constants = {"from": np.array([0, 0, 0], np.int64), "to": np.array([9, 9, 4], np.int64)}
    assert check(host, model(nodes, constants))[f"nhwc {op}"] == 1


def test_two_axes_need_no_transpose(host: ModuleType) -> None:
    """Such a node is converted all the same: its provider may have kernels of the internal domain only."""
    nodes = [node("Flatten", ["x"], ["f"]), node("BatchNormalization", ["f", "s", "s", "s", "s"], ["y"])]
    found = check(host, model(nodes, {"s": np.linspace(1, 2, 40, dtype=np.float32)}))
    assert found["nhwc BatchNormalization"] == 1
    assert found["Transpose"] == 0 or host is onnxruntime


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 18, 22])
def test_versions_of_converted_nodes_are_stocks(opset: int) -> None:
    """Those of the schemas of the internal domain, where it has one."""
    nodes = [
        conv(),
        node("BatchNormalization", ["a", "s", "s", "s", "s"], ["b"]),
        node("AveragePool", ["b"], ["c"], kernel_shape=[2, 2]),
        node("LpPool", ["c"], ["d"], kernel_shape=[1, 1]),
        node("GlobalMaxPool", ["d"], ["y"]),
    ]
    seen = []
    for each in HOSTS.values():
        run_once(
            each,
            ChannelsLast,
            model(nodes, {"s": np.ones(3, np.float32)}, opset),
            {"x": X},
            fallback=True,
            optimize=False,
        )
        seen.append(sorted(each for each in ChannelsLast.seen["test"] if each[0] == NHWC))
    assert len(seen[0]) == 5
    assert seen[0] == seen[1]


def test_the_graph_imports_the_internal_domain(host: ModuleType) -> None:
    opsets = []

    class Look(ChannelsLast):
        def get_capability(self, graph: Any) -> Any:
            opsets.append(graph.opsets)
            return super().get_capability(graph)

    check(host, model([conv(y="y")], opset=17), Look)
    assert opsets[-1][NHWC] == opsets[-1][""] == 17
    assert list(opsets[-1]) == sorted(opsets[-1])


# ---- Resize ----

RESIZES: dict[str, tuple[list[str], dict[str, Array], dict[str, Any], int]] = {
    "scales": (["a", "", "f"], {"f": np.array([1, 1, 2, 1.5], np.float32)}, {}, 18),
    "sizes": (["a", "", "", "n"], {"n": np.array([1, 3, 5, 7], np.int64)}, {}, 18),
    "scales_of_channels": (["a", "", "f"], {"f": np.array([1, 2, 2, 3], np.float32)}, {}, 18),
    "axes": (["a", "", "f"], {"f": np.array([3, 2], np.float32)}, {"axes": [3, 2]}, 18),
    "negative_axes": (["a", "", "", "n"], {"n": np.array([8, 5], np.int64)}, {"axes": [-2, -1]}, 18),
    "roi": (
        ["a", "r", "f"],
        {
            "r": np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 0.7], np.float32),
            "f": np.array([1, 1, 2, 3], np.float32),
        },
        {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"},
        18,
    ),
    "empty_roi": (
        ["a", "r", "f"],
        {"r": np.zeros(0, np.float32), "f": np.array([1, 1, 2, 2], np.float32)},
        {},
        11,
    ),
    "version_10": (["a", "f"], {"f": np.array([1, 1, 2, 3], np.float32)}, {}, 10),
}


@pytest.mark.parametrize("case", RESIZES)
def test_resize_is_converted_with_what_names_its_axes(case: str) -> None:
    """Ours only: stock leaves roi and axes as they were, and scales that are not four."""
    inputs, constants, attributes, opset = RESIZES[case]
    nodes = [conv(), node("Resize", inputs, ["y"], **attributes)]
    found = check(ort_abi, model(nodes, constants, opset))
    assert found == {"Transpose": 2, "nhwc Conv": 1, "nhwc Resize": 1}


def test_resize_is_converted_as_in_stock(host: ModuleType) -> None:
    nodes = [conv(), node("Resize", ["a", "", "f"], ["y"])]
    found = check(host, model(nodes, {"f": np.array([1, 1, 2, 3], np.float32)}))
    assert found == {"Transpose": 2, "nhwc Conv": 1, "nhwc Resize": 1}


# ---- what Transposes move through ----

ROW = np.array([0.5, 2, -1], np.float32)


def ints(*numbers: int) -> Array:
    """A list of int64."""
    return np.array(numbers, np.int64)


def one(op: str, *more: str, **attributes: Any) -> list[onnx.NodeProto]:
    """A node that reads a, the Conv's output [1,3,4,3], and `more`, and makes y."""
    return [node(op, ["a", *more], ["y"], **attributes)]


POOL = node("AveragePool", ["b"], ["y"], kernel_shape=[1, 1])

# What is behind the Conv, its constants, the opset. Two Transposes are around the whole.
MOVES: dict[str, tuple[list[onnx.NodeProto], dict[str, Array], int]] = {
    "Relu": (one("Relu"), {}, 18),
    "Clip": (one("Clip", "low", "high"), {"low": np.float32(-1), "high": np.float32(2)}, 18),
    "Clip-6": (one("Clip", min=-1.0, max=2.0), {}, 10),
    "Add of a scalar": (one("Add", "c"), {"c": np.float32(2)}, 18),
    "Add of one element": (one("Add", "c"), {"c": np.array([2], np.float32)}, 18),
    "Add of a row": (one("Add", "c"), {"c": ROW}, 18),
    "Mul of channels": (one("Mul", "c"), {"c": ROW.reshape(3, 1, 1)}, 18),
    "Sub of all": (one("Sub", "c"), {"c": np.arange(36, dtype=np.float32).reshape(1, 3, 4, 3)}, 18),
    "Sub from": ([node("Sub", ["c", "a"], ["y"])], {"c": ROW.reshape(3, 1, 1)}, 18),
    "PRelu": (one("PRelu", "c"), {"c": ROW.reshape(3, 1, 1)}, 18),
    "Add of itself": (one("Add", "a"), {}, 18),
    "Max of three": (one("Max", "c", "d"), {"c": ROW, "d": ROW.reshape(1, 3, 1, 1)}, 18),
    "Where": (
        [node("Greater", ["a", "c"], ["g"]), node("Where", ["g", "a", "d"], ["b"]), POOL],
        {"c": ROW, "d": ROW.reshape(3, 1, 1)},
        18,
    ),
    "Softmax": (one("Softmax", axis=1), {}, 18),
    "Softmax of the last": (one("Softmax"), {}, 18),
    "LogSoftmax": (one("LogSoftmax", axis=-2), {}, 18),
    "Softmax-11": (one("Softmax", axis=1), {}, 12),
    "Concat": (one("Concat", "a", axis=1), {}, 18),
    "Concat with a constant": (one("Concat", "c", axis=-3), {"c": np.ones((1, 2, 4, 3), np.float32)}, 18),
    "Split": (
        [node("Split", ["a", "parts"], ["c", "d"], axis=1), node("Add", ["c", "d"], ["b"]), POOL],
        {"parts": ints(1, 2)},
        18,
    ),
    "ReduceMean of space": (one("ReduceMean", axes=[2, 3]), {}, 17),
    "ReduceMean of one": (one("ReduceMean", axes=[-1], keepdims=0), {}, 17),
    "ReduceMax": (one("ReduceMax", "axes"), {"axes": ints(1)}, 18),
    "ReduceSum": (one("ReduceSum", "axes", keepdims=0), {"axes": ints(0, 3)}, 18),
    "ReduceSum of nothing": (one("ReduceSum", noop_with_empty_axes=1, keepdims=0), {}, 18),
    "ArgMax": (one("ArgMax", axis=1), {}, 18),
    "ArgMin without the axis": (one("ArgMin", axis=2, keepdims=0), {}, 18),
    "Squeeze": (one("Squeeze", "axes"), {"axes": ints(0)}, 18),
    "Squeeze-11": (one("Squeeze", axes=[0]), {}, 12),
    "Unsqueeze": (one("Unsqueeze", "axes"), {"axes": ints(-1, 1)}, 18),
    "Unsqueeze-11": (one("Unsqueeze", axes=[0, 2]), {}, 12),
    "Slice": (
        one("Slice", "from", "to", "axes", "steps"),
        {"from": ints(0, 3), "to": ints(2, 0), "axes": ints(1, -2), "steps": ints(1, -2)},
        18,
    ),
    "Slice of the first": (one("Slice", "from", "to"), {"from": ints(0, 1), "to": ints(1, 3)}, 18),
    "Slice of int32": (
        one("Slice", "from", "to"),
        {"from": np.array([0, 1], np.int32), "to": np.array([1, 3], np.int32)},
        18,
    ),
    "Slice-1": (one("Slice", starts=[0, 1], ends=[1, 3]), {}, 9),
    "Slice-1 of axes": (one("Slice", starts=[1], ends=[3], axes=[2]), {}, 9),
    "Pad": (one("Pad", "pads"), {"pads": ints(0, 1, 2, 0, 0, 0, 1, 3)}, 13),
    "Pad of axes": (one("Pad", "pads", "", "axes"), {"pads": ints(1, 2, 3, 0), "axes": ints(3, 1)}, 18),
    "Pad-2": (one("Pad", pads=[0, 1, 2, 0, 0, 0, 1, 3]), {}, 10),
    "Tile": (one("Tile", "times"), {"times": ints(1, 2, 3, 1)}, 18),
    "Expand": (
        [node("ReduceMax", ["a", "axes"], ["b"]), node("Expand", ["b", "shape"], ["y"])],
        {"axes": ints(2), "shape": ints(1, 3, 5, 3)},
        18,
    ),
    "Gather of one": (one("Gather", "at", axis=3), {"at": np.array(2, np.int64)}, 18),
    "Gather of several": (one("Gather", "at", axis=-2), {"at": ints(2, 0, 0)}, 18),
    "QuantizeLinear": (
        [node("QuantizeLinear", ["a", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])],
        {"s": np.array([0.5, 0.25, 1], np.float32), "z": np.array([1, 2, 3], np.uint8)},
        21,
    ),
    "QuantizeLinear of one scale": (
        [node("QuantizeLinear", ["a", "s"], ["q"]), node("DequantizeLinear", ["q", "s"], ["y"])],
        {"s": np.float32(0.5)},
        21,
    ),
    "Transpose": (
        [node("Relu", ["a"], ["b"]), node("Transpose", ["b"], ["y"], perm=[3, 1, 0, 2])],
        {},
        18,
    ),
}


@pytest.mark.parametrize("case", MOVES)
def test_transposes_move_through(case: str) -> None:
    nodes, constants, opset = MOVES[case]
    constants = {name: np.asarray(array) for name, array in constants.items()}
    kind = TensorProto.INT64 if case.startswith("Arg") else TensorProto.FLOAT
    found = check(ort_abi, model([conv(), *nodes], constants, opset, kind=kind))
    others = Counter(each.op_type for each in nodes if each.op_type not in ("Transpose", "AveragePool"))
    pools = {"nhwc AveragePool": 1} if POOL in nodes else {}
    assert found == {"Transpose": 2, "nhwc Conv": 1, **pools, **others}
    assert ChannelsLast.seen["test"][-1][1] == "Transpose"


def test_a_constant_that_follows_takes_the_place_of_the_old_one() -> None:
    names: list[set[str]] = []

    class Look(ChannelsLast):
        def get_capability(self, graph: Any) -> Any:
            names.append({*graph.initializers})
            return super().get_capability(graph)

    for case, is_same in (("Mul of channels", False), ("Add of a scalar", True)):
        nodes, constants, opset = MOVES[case]
        check(ort_abi, model([conv(), *nodes], constants, opset), Look)
        assert names[0] == {"w", "c"}
        assert len(names[-1]) == 2
        assert ("c" in names[-1]) == is_same
        names.clear()


def test_axes_of_a_slice_have_the_type_of_its_starts() -> None:
    dtypes = []

    class Look(ChannelsLast):
        def get_capability(self, graph: Any) -> Any:
            dtypes.extend(each.inputs[3].dtype for each in graph.nodes if len(each.inputs) > 3)
            return super().get_capability(graph)

    nodes, constants, opset = MOVES["Slice of int32"]
    check(ort_abi, model([conv(), *nodes], constants, opset), Look)
    assert dtypes == [np.int32]


# The same, but they stay where they are.
STAYS: dict[str, tuple[list[onnx.NodeProto], dict[str, Array], int]] = {
    "Softmax-11 of space": (one("Softmax", axis=2), {}, 12),
    "Reshape": (one("Reshape", "shape"), {"shape": ints(1, 9, 4)}, 18),
    "MatMul": (one("MatMul", "c"), {"c": np.ones((3, 2), np.float32)}, 18),
    "QuantizeLinear of blocks": (
        [
            node("QuantizeLinear", ["a", "s"], ["q"], axis=2, block_size=2),
            node("DequantizeLinear", ["q", "s"], ["y"], axis=2, block_size=2),
        ],
        {"s": np.full((1, 3, 2, 3), 0.5, np.float32)},
        21,
    ),
    "Gather of a table": (one("Gather", "at", axis=1), {"at": ints(2, 0).reshape(1, 2)}, 18),
    "Expand to more axes": (one("Expand", "shape"), {"shape": ints(2, 1, 3, 4, 3)}, 18),
}


@pytest.mark.parametrize("case", STAYS)
def test_transposes_do_not_move_through(case: str) -> None:
    nodes, constants, opset = STAYS[case]
    cut = [node("AveragePool", ["y"], ["z"], kernel_shape=[1, 1])]
    four = case in ("Softmax-11 of space", "MatMul")
    found = check(
        ort_abi,
        model([conv(), *nodes, *(cut if four else [])], constants, opset, outputs=("z" if four else "y",)),
    )
    assert found["Transpose"] == (4 if four else 2)
    assert found["nhwc Conv"] == 1


@pytest.mark.parametrize("part", [{}, {"start": 1, "end": -1}, {"start": -2}])
def test_a_shape_is_read_before_the_transpose(part: dict[str, int]) -> None:
    nodes = [conv(), node("Shape", ["a"], ["y"], **part)]
    found = check(ort_abi, model(nodes, kind=TensorProto.INT64))
    assert found == {"Transpose": 1, "nhwc Conv": 1, "Shape": 1, "Gather": 1}


def test_a_part_of_a_shape_that_is_the_same_needs_no_gather() -> None:
    nodes = [conv(), node("Shape", ["a"], ["y"], end=1)]
    found = check(ort_abi, model(nodes, kind=TensorProto.INT64))
    assert found == {"Transpose": 1, "nhwc Conv": 1, "Shape": 1}


@pytest.mark.parametrize(
    ("end", "constants"),
    [
        (node("Flatten", ["p"], ["y"]), {}),
        (node("Flatten", ["p"], ["y"], axis=-1), {}),
        (node("Reshape", ["p", "shape"], ["y"]), {"shape": ints(0, -1)}),
        (node("Reshape", ["p", "shape"], ["y"]), {"shape": ints(3, 1)}),
    ],
)
def test_axes_of_one_element_are_not_transposed_to_be_flattened(
    end: onnx.NodeProto, constants: dict[str, Array]
) -> None:
    nodes = [conv(), node("GlobalAveragePool", ["a"], ["p"]), end]
    found = check(ort_abi, model(nodes, constants))
    assert found == {"Transpose": 1, "nhwc Conv": 1, "nhwc GlobalAveragePool": 1, end.op_type: 1}


def test_a_zero_of_a_reshape_stays_the_same_dimension() -> None:
    nodes = [conv(), node("GlobalAveragePool", ["a"], ["p"]), node("Reshape", ["p", "shape"], ["y"])]
    found = check(ort_abi, model(nodes, {"shape": ints(1, 0)}))
    assert found["Transpose"] == 2


# ---- the model's own Transposes ----

TO_FIRST, TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]


def test_the_models_transposes_cancel_with_those_of_converted_nodes(host: ModuleType) -> None:
    """A model with channels last, as converters make them. Stock keeps an Identity's place by renaming."""
    x = np.ascontiguousarray(X.transpose(TO_LAST))
    nodes = [
        node("Transpose", ["i"], ["t"], perm=TO_FIRST),
        conv("t"),
        node("Transpose", ["a"], ["b"], perm=TO_LAST),
        node("Relu", ["b"], ["c"]),
        node("Transpose", ["c"], ["d"], perm=TO_FIRST),
        node("AveragePool", ["d"], ["e"], kernel_shape=[2, 2]),
        node("Transpose", ["e"], ["y"], perm=TO_LAST),
    ]
    found = check(host, model(nodes, inputs={"i": x}), i=x)
    assert found == {"nhwc Conv": 1, "Relu": 1, "nhwc AveragePool": 1}


def test_a_value_that_others_need_by_name_stays() -> None:
    """It is an output twice: under its own name, and turned twice."""
    nodes = [
        conv(),
        node("Transpose", ["a"], ["b"], perm=TO_LAST),
        node("Transpose", ["b"], ["y"], perm=TO_FIRST),
        node("Transpose", ["a"], ["z"], perm=TO_LAST),
    ]
    found = check(ort_abi, model(nodes, outputs=("a", "b", "y", "z")))
    assert found["nhwc Conv"] == 1
    assert found["Transpose"] == 2  # to the Conv, and to a
    assert found["Identity"] == 2


def test_transposes_that_cancel_leave_nothing() -> None:
    """What the model turns twice is read as it was, by who cannot move too."""
    nodes = [
        conv(y="y"),
        node("Transpose", ["x"], ["b"], perm=TO_LAST),
        node("Transpose", ["b"], ["c"], perm=TO_FIRST),
        node("MatMul", ["c", "m"], ["z"]),
    ]
    found = check(ort_abi, model(nodes, {"m": np.ones((4, 1), np.float32)}, outputs=("y", "z")))
    assert found == {"nhwc Conv": 1, "Transpose": 2, "MatMul": 1}


def test_a_transpose_without_a_permutation_turns_all_axes_around() -> None:
    nodes = [conv(), node("Transpose", ["a"], ["b"]), node("Relu", ["b"], ["y"])]
    found = check(ort_abi, model(nodes))
    assert found == {"Transpose": 2, "nhwc Conv": 1, "Relu": 1}


# ---- as few as can be ----


def test_a_value_that_is_read_with_channels_first_keeps_its_transpose() -> None:
    """Moving the Relu would make a second one."""
    nodes = [
        conv(),
        node("Relu", ["a"], ["b"]),
        node("MatMul", ["a", "m"], ["c"]),
        node("MatMul", ["b", "m"], ["d"]),
        node("Add", ["c", "d"], ["y"]),
    ]
    found = check(ort_abi, model(nodes, {"m": np.ones((3, 2), np.float32)}))
    assert found["Transpose"] == 2


def test_what_two_readers_would_pass_on_keeps_its_transpose() -> None:
    nodes = [conv(), node("Relu", ["a"], ["y"]), node("Neg", ["a"], ["z"])]
    found = check(ort_abi, model(nodes, outputs=("y", "z")))
    assert found == {"Transpose": 2, "nhwc Conv": 1, "Relu": 1, "Neg": 1}


def test_an_input_is_transposed_if_that_saves_more() -> None:
    """One Transpose of i instead of one out of the first Conv and one into the second."""
    i = np.ones((1, 3, 4, 3), np.float32)
    nodes = [conv(), node("Add", ["a", "i"], ["b"]), conv("b", "y", "v", "two")]
    constants = {"v": np.ones((1, 3, 2, 2), np.float32)}
    found = check(ort_abi, model(nodes, constants, inputs={"i": i}), i=i)
    assert found == {"Transpose": 3, "nhwc Conv": 2, "Add": 1}


def test_an_input_that_is_read_twice_counts_once() -> None:
    i = np.ones((1, 3, 4, 3), np.float32)
    nodes = [conv(), node("Max", ["a", "i", "i"], ["b"]), conv("b", "y", "v", "two")]
    found = check(ort_abi, model(nodes, {"v": np.ones((1, 3, 2, 2), np.float32)}, inputs={"i": i}), i=i)
    assert found == {"Transpose": 3, "nhwc Conv": 2, "Max": 1}


def test_an_input_is_not_transposed_for_nothing() -> None:
    i = np.ones((1, 3, 4, 3), np.float32)
    nodes = [conv(), node("Add", ["a", "i"], ["y"])]
    found = check(ort_abi, model(nodes, inputs={"i": i}), i=i)
    assert found == {"Transpose": 2, "nhwc Conv": 1, "Add": 1}
    assert ChannelsLast.seen["test"][-1][1] == "Add"


class _Counting(ChannelsLast):
    """Never runs."""

    name = "CountingExecutionProvider"

    def compile(self, graph: Any) -> Any:
        return lambda *arrays: None


def _count(host: ModuleType, model: bytes | str, config: dict[str, str] | None = None) -> tuple[int, int]:
    """Converted nodes and Transposes of the model when it is partitioned."""
    _Counting.seen.clear()
    with registered(host, _Counting):
        session = open_session(host, _Counting, model, fallback=True, optimize=False, config=config)
        del session
        gc.collect()
    nodes = [each for graph in _Counting.seen.values() for each in graph]
    return sum(domain == NHWC for domain, _, _ in nodes), sum(op == "Transpose" for _, op, _ in nodes)


def test_real_models_have_no_more_transposes_than_in_stock() -> None:
    """Nor without the shapes that Python sessions infer: ranks follow from the operators."""
    no_shapes = {"session.ort_abi_shape_inference": "0"}
    for path in wheel_models():
        stocks_converted, stocks = _count(onnxruntime, str(path))
        for config in (None, no_shapes):
            converted, transposes = _count(ort_abi, str(path), config)
            assert converted >= stocks_converted, (path.name, config)
            assert transposes <= stocks, (path.name, config)


# ---- random graphs ----


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_give_what_they_gave(seed: int) -> None:
    graph = RandomGraph(seed)
    model_bytes = graph.model()
    wanted = plain(model_bytes, {"x": graph.x})
    for cls in (ChannelsLast, FuseChannelsLast):
        found = run_once(ort_abi, cls, model_bytes, {"x": graph.x}, fallback=True)
        for name, output, known in zip(graph.outputs, found, wanted, strict=True):
            assert output.shape == known.shape, name
            np.testing.assert_allclose(output, known, rtol=1e-5, atol=1e-5, err_msg=name)


def test_random_graphs_have_fewer_transposes_than_in_stock() -> None:
    """All together: of one graph there may be some more."""
    counts: Counter[str] = Counter()
    for seed in range(20):
        model_bytes = RandomGraph(seed, 20).model()
        for host in (ort_abi, onnxruntime):
            counts[host.__name__] += _count(host, model_bytes)[1]
    assert counts["ort_abi"] < counts["onnxruntime"]


# ---- subgraphs ----

PREFER = [ChannelsLast, FuseChannelsLast]


def branch(name: str, *nodes: onnx.NodeProto, out: str) -> onnx.GraphProto:
    """A body without inputs."""
    return helper.make_graph(
        list(nodes), name, [], [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)]
    )


@pytest.mark.parametrize("cls", PREFER)
@pytest.mark.parametrize("taken", [True, False])
def test_nodes_in_the_branches_of_an_if_are_converted(cls: type[ChannelsLast], taken: bool) -> None:
    """What a branch captures lies with channels first, for the graph around it has its own Transposes."""
    then = branch(
        "then", conv("a", "t1", "v"), node("Relu", ["t1"], ["t2"]), conv("t2", "t", "u", "two"), out="t"
    )
    other = branch(
        "else", node("MaxPool", ["a"], ["e1"], kernel_shape=[2, 2]), node("Neg", ["e1"], ["e"]), out="e"
    )
    nodes = [
        conv(name="outer"),
        node("If", ["c"], ["b"], then_branch=then, else_branch=other),
        node("Relu", ["b"], ["y"]),
    ]
    constants = {
        "v": RANDOM.integers(-2, 3, (3, 3, 1, 1)).astype(np.float32),
        "u": RANDOM.integers(-2, 3, (3, 3, 2, 2)).astype(np.float32),
    }
    condition = np.array(taken)
    check(ort_abi, model(nodes, constants, inputs={"c": condition}), cls, c=condition)
    assert graph_after("then", cls) == {"Transpose": 2, "nhwc Conv": 2, "Relu": 1}
    assert graph_after("else", cls) == {"Transpose": 2, "nhwc MaxPool": 1, "Neg": 1}
    assert graph_after("test", cls)["nhwc Conv"] == 1


@pytest.mark.parametrize("cls", PREFER)
def test_nodes_in_the_body_of_a_loop_are_converted(cls: type[ChannelsLast]) -> None:
    """State goes from iteration to iteration with channels first; a value is collected, too."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["on"]),
            conv("s", "s1", "v", "inner"),
            node("Add", ["s1", "a"], ["s2"]),
            node("AveragePool", ["s2"], ["next"], kernel_shape=[1, 1]),
            node("ReduceMax", ["next", "space"], ["most"], keepdims=0),
        ],
        "body",
        [
            info("i", TensorProto.INT64, []),
            info("go", TensorProto.BOOL, []),
            info("s", TensorProto.FLOAT, [1, 3, 4, 3]),
        ],
        [
            info("on", TensorProto.BOOL, []),
            info("next", TensorProto.FLOAT, None),
            info("most", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        conv(name="outer"),
        node("Relu", ["a"], ["r"]),
        node("Loop", ["times", "", "r"], ["y", "z"], body=body),
    ]
    constants = {
        "v": RANDOM.integers(-1, 2, (3, 3, 1, 1)).astype(np.float32),
        "times": np.array(3, np.int64),
        "space": ints(2, 3),
    }
    check(ort_abi, model(nodes, constants, outputs=("y", "z")), cls)
    found = graph_after("body", cls)
    assert (found["nhwc Conv"], found["nhwc AveragePool"]) == (1, 1)
    assert found["Transpose"] == 3  # of s and a, and to next


@pytest.mark.parametrize("cls", PREFER)
def test_bodies_in_bodies_are_converted(cls: type[ChannelsLast]) -> None:
    inner = branch("inner", conv("a", "t", "v", "deep"), out="t")
    same = branch("same", node("Identity", ["a"], ["f"]), out="f")
    outer = branch(
        "outer",
        node("If", ["c"], ["g"], then_branch=inner, else_branch=same),
        node("MaxPool", ["g"], ["h"], kernel_shape=[2, 2]),
        out="h",
    )
    last = branch("last", node("Relu", ["a"], ["k"]), out="k")
    nodes = [conv(), node("If", ["c"], ["y"], then_branch=outer, else_branch=last)]
    constants = {"v": RANDOM.integers(-1, 2, (3, 3, 1, 1)).astype(np.float32)}
    for taken in (True, False):
        condition = np.array(taken)
        model_bytes = model(nodes, constants, inputs={"c": condition})
        check(ort_abi, model_bytes, cls, c=condition)
        assert graph_after("inner", cls) == {"Transpose": 2, "nhwc Conv": 1}
        assert graph_after("outer", cls)["nhwc MaxPool"] == 1


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cls", PREFER)
def test_random_bodies_give_what_they_gave(cls: type[ChannelsLast], seed: int) -> None:
    """A random graph as a branch, behind another one."""
    graph = RandomGraph(seed, 6)
    inside = RandomGraph(seed, 8, body=True)
    assert inside.x.shape == graph.x.shape
    other = helper.make_graph(
        [node("Identity", ["x"], [f"other_{name}"]) for name in inside.outputs],
        "other",
        [],
        [helper.make_tensor_value_info(f"other_{name}", TensorProto.FLOAT, None) for name in inside.outputs],
    )
    outputs = [f"of_{name}" for name in inside.outputs]
    choice = node("If", ["c"], outputs, then_branch=inside.graph("inside", inputs=False), else_branch=other)
    whole = graph.graph()
    whole.node.append(choice)
    whole.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    whole.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs)
    model_bytes = helper.make_model(
        whole, opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    ).SerializeToString()
    feeds = {"x": graph.x, "c": np.array(True)}
    wanted = plain(model_bytes, feeds)
    found = run_once(ort_abi, cls, model_bytes, feeds, fallback=True)
    for output, known in zip(found, wanted, strict=True):
        assert output.shape == known.shape
        np.testing.assert_allclose(output, known, rtol=1e-5, atol=1e-5)


class FuseAll(FuseChannelsLast):
    """Fuses an If with its branches, too."""

    name = "FuseAllChannelsLastExecutionProvider"

    def claims(self, graph: Any) -> Any:
        return [graph.nodes]


def test_an_if_that_is_fused_has_converted_branches() -> None:
    then = branch("then", conv("a", "t", "v", "inner"), out="t")
    other = branch("else", node("Neg", ["a"], ["e"]), out="e")
    nodes = [conv(), node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    constants = {"v": RANDOM.integers(-2, 3, (3, 3, 1, 1)).astype(np.float32)}
    for taken in (True, False):
        condition = np.array(taken)
        found = check(ort_abi, model(nodes, constants, inputs={"c": condition}), FuseAll, c=condition)
        assert found == {"Transpose": 2, "nhwc Conv": 1, "If": 1}
        assert graph_after("then", FuseAll) == {"Transpose": 2, "nhwc Conv": 1}


# ---- fused nodes ----


def test_converted_nodes_are_fused(host: ModuleType) -> None:
    """Their graph has what they read and make in that order, and the domain among its imports."""
    seen: list[Any] = []

    class Look(FuseChannelsLast):
        def compile(self, graph: Any) -> Any:
            seen.append((graph.opsets[NHWC], [(each.domain, each.op_type) for each in graph.nodes]))
            seen.append({value.name: value.shape for each in graph.nodes for value in each.outputs})
            return super().compile(graph)

    nodes = [conv(), node("Relu", ["a"], ["b"]), node("MaxPool", ["b"], ["y"], kernel_shape=[2, 2])]
    check(host, model(nodes), Look)
    [(opset, inside), shapes] = seen
    assert opset == 18
    assert inside == [("", "Transpose"), (NHWC, "Conv"), ("", "Relu"), (NHWC, "MaxPool"), ("", "Transpose")]
    assert list(shapes.values()) == [(1, 5, 4, 2), (1, 4, 3, 3), (1, 4, 3, 3), (1, 3, 2, 3), (1, 3, 3, 2)]


def test_two_fused_nodes_meet_with_channels_last() -> None:
    """What the provider does not take lies between them: the host's own runs it on channels last."""

    class Gap(FuseChannelsLast):
        def claims(self, graph: Any) -> Any:
            return ep.partition(graph, [each for each in graph.nodes if each.op_type != "Relu"])

    nodes = [conv(), node("Relu", ["a"], ["b"]), node("MaxPool", ["b"], ["y"], kernel_shape=[2, 2])]
    assert check(ort_abi, model(nodes), Gap) == {"Transpose": 2, "nhwc Conv": 1, "Relu": 1, "nhwc MaxPool": 1}


# ---- real models ----


@pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # of the reference evaluator
def test_real_models_give_what_they_gave() -> None:
    line, page = (RANDOM.uniform(-1, 1, (1, 3, *size)).astype(np.float32) for size in ((48, 192), (64, 96)))
    speech: dict[str, Array] = {
        "input": np.sin(np.arange(576, dtype=np.float32) / 5)[None] / 2,
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(16000, np.int64),
    }
    feeds: dict[str, dict[str, Array]] = {
        "ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x": line},
        "ch_PP-OCRv4_det_infer.onnx": {"x": page},
        "silero_vad.onnx": speech,
        "silero_vad_op18_ifless.onnx": speech,
    }
    for path in wheel_models():
        if path.name not in feeds:
            continue
        wanted = plain(path, feeds[path.name])
        found = run_once(ort_abi, FuseChannelsLast, str(path), feeds[path.name], fallback=True)
        for output, known in zip(found, wanted, strict=True):
            np.testing.assert_allclose(output, known, rtol=1e-3, atol=1e-4, err_msg=path.name)
