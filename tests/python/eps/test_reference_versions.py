"""`ort_abi.eps.reference`: operators mean what they meant in the version that a model states.

From opset 7 on stock onnxruntime says what is right; before, where it has few kernels, NumPy does.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from ep_support import model, open_session, registered
from onnx import TensorProto, defs, helper, numpy_helper

import ort_abi
from ort_abi import errors
from ort_abi.eps.reference import ReferenceExecutionProvider
from tests.support.models import node_test_cases

F32 = np.float32
CHANCE = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def provider() -> Iterator[None]:
    """The reference provider is registered, and is alone in the sessions of these tests."""
    with registered(ort_abi, ReferenceExecutionProvider):
        yield


def ours(data: bytes, feeds: dict[str, Any]) -> list[Any]:
    session = open_session(ort_abi, ReferenceExecutionProvider, data)
    return [np.array(output) for output in session.run(None, feeds)]


def stock(data: bytes, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def random(*shape: int) -> np.ndarray:
    return CHANCE.standard_normal(shape).astype(F32)


def one_node(
    opset: int,
    op_type: str,
    inputs: list[Any],
    outputs: int = 1,
    constants: tuple[int, ...] = (),
    **attributes: Any,
) -> tuple[bytes, dict[str, Any]]:
    """A model of one node and its feeds. `inputs`: arrays, None for one that is left out."""
    arrays = {f"i{k}": np.asarray(array) for k, array in enumerate(inputs) if array is not None}
    names = ["" if array is None else f"i{k}" for k, array in enumerate(inputs)]
    made = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(op_type, names, made, **attributes)
    fixed = {name: array for name, array in arrays.items() if int(name[1:]) in constants}
    fed = {name: array for name, array in arrays.items() if name not in fixed}
    graph = helper.make_graph(
        [node],
        "one",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in arrays.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in made],
        [numpy_helper.from_array(array, name) for name, array in fixed.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)
    return proto.SerializeToString(), fed


# ---- Against stock ----

X = random(2, 3, 4)
IMAGE = random(1, 2, 5, 6)
AS_STOCK: dict[str, tuple[bytes, dict[str, Any]]] = {
    **{
        f"{op}-{opset} axis={axis}": one_node(opset, op, [X], axis=axis)
        for op in ("Softmax", "LogSoftmax", "Hardmax")
        for opset in (8, 11, 12)
        for axis in ((0, 1, 2) if opset < 11 else (0, 1, 2, -1, -2))
    },
    "Softmax-11 default": one_node(11, "Softmax", [X]),
    "Softmax-13 default": one_node(13, "Softmax", [X]),
    "RoiAlign-10": one_node(
        10,
        "RoiAlign",
        [IMAGE, np.array([[0.4, 1, 3.7, 3], [1, 0, 2, 4]], F32), np.array([0, 0])],
        output_height=2,
        output_width=3,
        sampling_ratio=2,
    ),
    **{
        f"{op}-{opset} {mode} {scales}": one_node(
            opset, op, [IMAGE, np.array([1, 1, *scales], F32)], constants=(1,), mode=mode
        )
        for op, opset in (("Resize", 10), ("Upsample", 9))
        for mode in ("nearest", "linear")
        for scales in ((2, 2), (1.5, 3), (2.3, 1), *(((0.6, 0.5), (0.4, 2)) if op == "Resize" else ()))
    },
    **{
        f"Upsample-7 {mode}": one_node(7, "Upsample", [IMAGE], mode=mode, scales=[1.0, 1.0, 2.0, 1.5])
        for mode in ("nearest", "linear")
    },
    "OneHot-9 depth [1]": one_node(9, "OneHot", [np.array([0, 2, -1]), np.array([3]), np.array([2, 5], F32)]),
    "OneHot-11 axis 0": one_node(
        11, "OneHot", [np.array([0, 2, 1]), np.array([4]), np.array([2, 5], F32)], axis=0
    ),
    "Scatter-9": one_node(9, "Scatter", [X, np.array([[[1, 0, 1, 0]]]), random(1, 1, 4)], axis=1),
    "BatchNormalization-7": one_node(
        7, "BatchNormalization", [X, random(3), random(3), random(3), np.abs(random(3))]
    ),
    "BatchNormalization-7 spatial=0": one_node(
        7,
        "BatchNormalization",
        [X, random(3, 4), random(3, 4), random(3, 4), np.abs(random(3, 4))],
        spatial=0,
    ),
    "Dropout-7": one_node(7, "Dropout", [X]),
    "Dropout-10": one_node(10, "Dropout", [X], outputs=2),
    "Dropout-12": one_node(12, "Dropout", [X], outputs=2),
    "Clip-6": one_node(7, "Clip", [X], min=-0.5, max=0.25),
    "Clip-6 default": one_node(7, "Clip", [X]),
    "Pad-2": one_node(7, "Pad", [X], pads=[0, 1, 2, 0, 0, 1], mode="reflect"),
    "Slice-1": one_node(7, "Slice", [X], starts=[1, -3], ends=[9, -1], axes=[1, 2]),
    "Split-2": one_node(7, "Split", [X], outputs=2, axis=2, split=[1, 3]),
    "Split-11": one_node(11, "Split", [X], outputs=3, axis=-2),
    "Squeeze-1": one_node(7, "Squeeze", [random(1, 3, 1)], axes=[0]),
    "Unsqueeze-1": one_node(7, "Unsqueeze", [X], axes=[0, 2]),
    "TopK-1": one_node(7, "TopK", [X], outputs=2, k=2),
    "ReduceSum-1": one_node(7, "ReduceSum", [X], axes=[0, 2], keepdims=0),
    "ReduceMax-13": one_node(13, "ReduceMax", [X], axes=[1]),
    "Reshape-5": one_node(7, "Reshape", [X, np.array([0, -1])]),
    "Tile-6": one_node(7, "Tile", [X, np.array([1, 2, 2])]),
    "PRelu-7": one_node(7, "PRelu", [X, random(3, 1)]),
    "Gemm-7": one_node(7, "Gemm", [random(2, 3), random(3, 4), random(4)], alpha=0.5, beta=2.0),
    "GridSample-16 bilinear": one_node(16, "GridSample", [IMAGE, random(1, 3, 3, 2)], mode="bilinear"),
    "GridSample-16 bicubic": one_node(16, "GridSample", [IMAGE, random(1, 3, 3, 2)], mode="bicubic"),
    "DequantizeLinear-10": one_node(
        10, "DequantizeLinear", [np.array([1, 200, 3], np.uint8), F32(0.5), np.uint8(2)]
    ),
    "DequantizeLinear-13 axis": one_node(
        13,
        "DequantizeLinear",
        [np.arange(12, dtype=np.int8).reshape(2, 3, 2), random(3), np.array([1, 2, 3], np.int8)],
        axis=1,
    ),
}


@pytest.mark.parametrize("name", AS_STOCK)
def test_as_in_stock(name: str) -> None:
    data, feeds = AS_STOCK[name]
    for found, expected in zip(ours(data, feeds), stock(data, feeds), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


# ---- Recurrent operators ----

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 2, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {
    "RNN": ["Relu"],
    "GRU": ["HardSigmoid", "Softsign"],
    "LSTM": ["HardSigmoid", "Affine", "ScaledTanh"],
}
MORE: list[dict[str, Any]] = [
    {},
    {"lengths": True},
    {"initial": True, "bias": True},
    {"clip": 0.3, "bias": True},
    {"activations": True, "bias": True},
    {"lengths": True, "initial": True, "bias": True, "clip": 0.5},
]


def recurrent(op: str, direction: str, opset: int, more: dict[str, Any], **attributes: Any) -> Any:
    gates, count = GATES[op], 2 if direction == "bidirectional" else 1
    inputs: list[Any] = [
        random(STEPS, BATCH, INPUTS),
        random(count, gates * HIDDEN, INPUTS),
        random(count, gates * HIDDEN, HIDDEN),
        random(count, 2 * gates * HIDDEN) if more.get("bias") else None,
        np.array([4, 2, 3], np.int32) if more.get("lengths") else None,
        random(count, BATCH, HIDDEN) if more.get("initial") else None,
    ]
    if op == "LSTM":
        inputs.append(random(count, BATCH, HIDDEN) if more.get("initial") else None)
        inputs.append(random(count, 3 * HIDDEN) if more.get("peepholes") else None)
    if "clip" in more:
        attributes["clip"] = more["clip"]
    if more.get("activations"):
        attributes["activations"] = FUNCTIONS[op] * count
        if op == "LSTM":  # of HardSigmoid, Affine and ScaledTanh
            attributes |= {
                "activation_alpha": [0.3, 0.9, 1.1] * count,
                "activation_beta": [0.4, 0.1, 0.8] * count,
            }
    while inputs[-1] is None:
        inputs.pop()
    attributes |= {"hidden_size": HIDDEN, "direction": direction}
    return one_node(opset, op, inputs, outputs=3 if op == "LSTM" else 2, **attributes)


@pytest.mark.parametrize("more", MORE, ids=lambda more: "+".join(more) or "plain")
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("opset", [7, 14])
def test_recurrent_operators(op: str, direction: str, opset: int, more: dict[str, Any]) -> None:
    data, feeds = recurrent(op, direction, opset, more)
    for found, expected in zip(ours(data, feeds), stock(data, feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "more", "attributes"),
    [
        ("GRU", {"bias": True}, {"linear_before_reset": 1}),
        ("LSTM", {"peepholes": True, "bias": True}, {}),
        ("LSTM", {"peepholes": True}, {"input_forget": 1}),
    ],
    ids=["linear_before_reset", "peepholes", "input_forget"],
)
def test_what_one_of_them_has(op: str, more: dict[str, Any], attributes: dict[str, Any]) -> None:
    data, feeds = recurrent(op, "bidirectional", 14, more, **attributes)
    for found, expected in zip(ours(data, feeds), stock(data, feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


# ---- Scans ----


def scan_model(opset: int, rows: int = 3, **attributes: Any) -> bytes:
    """Running sums of a sequence of rows, and each row doubled."""
    row = helper.make_tensor_value_info("row", TensorProto.FLOAT, [rows])
    total = helper.make_tensor_value_info("total", TensorProto.FLOAT, [rows])
    out = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows]) for name in ("sum", "copy", "twice")
    ]
    body = helper.make_graph(
        [
            helper.make_node("Add", ["total", "row"], ["sum"]),
            helper.make_node("Identity", ["sum"], ["copy"]),
            helper.make_node("Add", ["row", "row"], ["twice"]),
        ],
        "body",
        [total, row],
        out,
    )
    first = ["lengths"] if opset < 9 else []
    node = helper.make_node(
        "Scan", [*first, "start", "x"], ["end", "sums", "doubles"], body=body, **attributes
    )
    inputs: dict[str, Any] = {"lengths": (np.int64, [None])} if first else {}
    inputs |= {"start": (F32, [None] * (2 if first else 1)), "x": (F32, [None] * (3 if first else 2))}
    outputs = {"end": (F32, None), "sums": (F32, None), "doubles": (F32, None)}
    return model([node], inputs, outputs, opset=opset)


@pytest.mark.parametrize("opset", [9, 11, 16])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"scan_input_directions": [1]},
        {"scan_input_axes": [1]},
        {"scan_output_directions": [1, 0], "scan_output_axes": [1, 0]},
        {"scan_input_axes": [-1], "scan_output_axes": [-1, 0]},
    ],
    ids=lambda attributes: ",".join(attributes) or "plain",
)
def test_scans(opset: int, attributes: dict[str, Any]) -> None:
    if opset < 11 and any(-1 in values for values in attributes.values()):
        pytest.skip("negative axes came with opset 11")
    x = random(4, 3) if "scan_input_axes" not in attributes else random(3, 4)
    data = scan_model(opset, num_scan_inputs=1, **attributes)
    feeds = {"start": random(3), "x": x}
    for found, expected in zip(ours(data, feeds), stock(data, feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("backwards", [0, 1])
def test_scan_8_has_batches(backwards: int) -> None:
    """Stock onnxruntime does not have it."""
    data = scan_model(8, num_scan_inputs=1, directions=[backwards])
    x, start, lengths = random(2, 4, 3), random(2, 3), np.array([4, 2])
    end, sums, doubles = ours(data, {"lengths": lengths, "start": start, "x": x})
    for item, length in enumerate(lengths):
        rows = x[item, :length][:: -1 if backwards else 1]
        expected = start[item] + np.cumsum(rows, axis=0)
        np.testing.assert_allclose(sums[item, :length], expected, rtol=1e-5)
        np.testing.assert_allclose(doubles[item, :length], 2 * rows)
        np.testing.assert_allclose(end[item], expected[-1], rtol=1e-5)
        assert not sums[item, length:].any()


# ---- Before opset 7 ----

COLUMN = np.array([1, 2, 3], F32)
SQUARE = np.arange(9, dtype=F32).reshape(3, 3)
BY_HAND: dict[str, tuple[tuple[bytes, dict[str, Any]], Any]] = {
    "Add-6 axis": (one_node(6, "Add", [SQUARE, COLUMN], broadcast=1, axis=0), SQUARE + COLUMN[:, None]),
    "Add-6 last": (one_node(6, "Add", [SQUARE, COLUMN], broadcast=1), SQUARE + COLUMN),
    "Sub-1 equal": (one_node(1, "Sub", [SQUARE, SQUARE]), SQUARE * 0),
    "Mul-6 axis": (one_node(6, "Mul", [X, random(2, 3)], broadcast=1, axis=0), None),
    "Div-6": (one_node(6, "Div", [SQUARE, COLUMN], broadcast=1, axis=0), SQUARE / COLUMN[:, None]),
    "Pow-1": (one_node(1, "Pow", [SQUARE, COLUMN], broadcast=1, axis=0), SQUARE ** COLUMN[:, None]),
    "Less-1": (one_node(1, "Less", [SQUARE, COLUMN], broadcast=1, axis=0), COLUMN[:, None] > SQUARE),
    "Greater-1": (one_node(1, "Greater", [SQUARE, COLUMN], broadcast=1, axis=0), COLUMN[:, None] < SQUARE),
    "Equal-1": (
        one_node(1, "Equal", [SQUARE.astype(np.int32), COLUMN.astype(np.int32)], broadcast=1, axis=0),
        COLUMN[:, None] == SQUARE,
    ),
    **{
        f"{op}-1": (one_node(1, op, [SQUARE > 3, COLUMN > 1], broadcast=1, axis=0), None)
        for op in ("And", "Or", "Xor")
    },
    "PRelu-6": (one_node(6, "PRelu", [-SQUARE[None], COLUMN]), -SQUARE[None] * COLUMN[:, None]),
    "PRelu-1 one slope": (one_node(1, "PRelu", [-SQUARE, COLUMN[1:2]]), -SQUARE * 2),
    "Gemm-6": (one_node(6, "Gemm", [SQUARE, SQUARE, COLUMN], broadcast=1, alpha=2.0), None),
    "Cast-1": (one_node(1, "Cast", [SQUARE], to="INT32"), SQUARE.astype(np.int32)),
    "Reshape-1": (one_node(1, "Reshape", [X], shape=[0, -1]), X.reshape(2, 12)),
    "Tile-1": (
        one_node(1, "Tile", [SQUARE, np.array([2], F32), np.array([1], F32)]),
        np.tile(SQUARE, (1, 2)),
    ),
    "Split-1": (one_node(1, "Split", [SQUARE], outputs=3), None),
    "Clip-1": (one_node(1, "Clip", [SQUARE], min=2.0, max=5.0, consumed_inputs=[0]), SQUARE.clip(2, 5)),
    "Relu-1": (one_node(1, "Relu", [-SQUARE], consumed_inputs=[0]), SQUARE * 0),
    "Dropout-6": (one_node(6, "Dropout", [SQUARE], is_test=1), SQUARE),
    "BatchNormalization-6": (
        one_node(6, "BatchNormalization", [X, *[np.ones(3, F32)] * 4], is_test=1, epsilon=0.0),
        X,
    ),
    "Upsample-1": (
        one_node(1, "Upsample", [IMAGE], height_scale=2.0, width_scale=3.0),
        IMAGE.repeat(2, 2).repeat(3, 3),
    ),
    "GRU-1": (
        one_node(1, "GRU", [random(2, 1, 2), random(1, 6, 2), random(1, 6, 2)], outputs=2, hidden_size=2),
        None,
    ),
}


def expected_by_hand(name: str, feeds: dict[str, Any]) -> list[Any]:
    values = list(feeds.values())
    if name.startswith("Mul"):
        return [X * values[1][..., None]]
    if name[:-2] in ("And", "Or", "Xor"):
        function = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}[name[:-2]]
        return [function(values[0], values[1][:, None])]
    if name.startswith("Gemm"):
        return [2 * SQUARE @ SQUARE + COLUMN]
    if name.startswith("Split"):
        return [SQUARE[:1], SQUARE[1:2], SQUARE[2:]]
    data, _ = one_node(7, "GRU", values, outputs=2, hidden_size=2)
    return stock(data, feeds)


@pytest.mark.parametrize("name", BY_HAND)
def test_before_opset_7(name: str) -> None:
    (data, feeds), expected = BY_HAND[name]
    wanted = [expected] if expected is not None else expected_by_hand(name, feeds)
    found = ours(data, feeds)
    assert len(found) == len(wanted)
    for result, want in zip(found, wanted, strict=True):
        assert result.dtype == want.dtype and result.shape == want.shape
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-6)


def test_shapes_that_were_not_broadcast() -> None:
    data, feeds = one_node(6, "Add", [SQUARE, COLUMN])
    with pytest.raises(errors.RuntimeException, match="without 'broadcast' shapes are equal"):
        ours(data, feeds)


def test_operators_without_code_are_refused_when_the_session_is_made() -> None:
    data, _ = one_node(7, "Multinomial", [random(1, 4)])
    with pytest.raises(errors.OrtError, match="Multinomial"):
        open_session(ort_abi, ReferenceExecutionProvider, data)


# ---- All of onnx's node tests, in every version that their nodes are good in ----

AS_STATED = {  # where stock is not what is right, or nobody is: random numbers
    "Bernoulli",
    "Dropout",
    "MaxUnpool",  # stock before opset 22 ignores the output's shape
}


def same(found: Any, expected: Any) -> bool:
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if found.dtype.kind in "OUS":
        return bool(found.tolist() == expected.tolist())
    tolerance = 1e-2 if found.dtype.itemsize <= 2 else 1e-4
    return bool(
        np.allclose(
            found.astype(np.float64),
            expected.astype(np.float64),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
        )
    )


def older_versions(proto: onnx.ModelProto) -> Iterator[tuple[int, bytes]]:
    """The model with each older opset in which its only node has another version and is still a good one."""
    node = proto.graph.node[0]
    history = sorted(
        schema.since_version
        for schema in defs.get_all_schemas_with_history()
        if (schema.domain, schema.name) == (node.domain, node.op_type)
    )
    newest = proto.opset_import[0].version
    for version, later in itertools.pairwise(history):
        if later > newest or (version < 7 and later <= 7):
            continue
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        copy.opset_import[0].version = later - 1
        copy.ir_version = 8
        try:
            onnx.checker.check_model(copy)
        except onnx.checker.ValidationError:
            continue
        yield version, copy.SerializeToString()


def test_node_tests_in_older_versions() -> None:
    """Nothing is computed that stock computes otherwise. (What only one of the two can run is left out.)"""
    compared, wrong, seen = 0, [], defaultdict(int)
    for case in node_test_cases():
        proto = case.model
        if (
            len(proto.graph.node) != 1
            or proto.graph.node[0].domain
            or proto.graph.node[0].op_type in AS_STATED
        ):
            continue
        if not all(isinstance(value, np.ndarray) for value in case.data_sets[0][0]):
            continue
        feeds = {info.name: v for info, v in zip(proto.graph.input, case.data_sets[0][0], strict=False)}
        for version, data in older_versions(proto):
            key = proto.graph.node[0].op_type, version
            seen[key] += 1
            if seen[key] > 4:
                continue
            try:
                expected, found = stock(data, feeds), ours(data, feeds)
            except Exception:
                continue
            compared += 1
            if not all(same(*pair) for pair in zip(found, expected, strict=True)):
                wrong.append(f"{case.name} as version {version}")
    assert wrong == []
    assert compared > 300
