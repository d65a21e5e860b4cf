"""What stock onnxruntime's own CPU kernels refuse or leave to the processor: here it is the same."""

from __future__ import annotations

import platform

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from tests.support.cpu_ep import DType, Feeds, Host, check_fails, ints, make_model, onnx_type, run_ep


def run_stock(model: onnx.ModelProto, feeds: Feeds) -> list[np.ndarray]:
    """What stock onnxruntime's own kernels make."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feeds))


@pytest.mark.parametrize(
    ("op_type", "opset", "attributes"),
    [("Softmax", opset, {"axis": axis}) for opset in (7, 11, 13) for axis in (0, -1)]
    + [("Slice", 13, {}), ("Slice", 10, {})],
)
def test_scalars_are_refused(ep_host: Host, op_type: str, opset: int, attributes: dict[str, int]) -> None:
    """Where stock's kernels do: Softmax has no axis to go along, Slice none to cut."""
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)]
    empty = helper.make_tensor("empty", onnx.TensorProto.INT64, [0], [])
    names = ["x", "empty", "empty"] if op_type == "Slice" else ["x"]
    node = helper.make_node(op_type, names, ["out"], name="the_node", **attributes)
    output = helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "graph", inputs, [output], [empty])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    feeds = {"x": np.array(2, np.float32)}
    with pytest.raises(Exception, match=op_type):
        run_stock(model, feeds)
    with pytest.raises(Exception, match="scalar"):
        ep_host.session(model).run(None, feeds)


on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="stock leaves it to the processor")


@on_x86
@pytest.mark.parametrize("to", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16])
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_casts_of_what_does_not_fit(ep_host: Host, source: DType, to: DType) -> None:
    """ONNX leaves it open; here as in stock, whose processor has the smallest int32 or int64, cut off."""
    x = np.array([3e9, -3e9, 1e10, -1e10, 1e19, -1e19, 2e19, 1e30, -1e30, np.inf, -np.inf, np.nan], source)
    x = np.concatenate([x, np.array([300.7, -5.5, 70000, -70000, 2147483520.0, -2147483648.0], source)])
    model = make_model("Cast", {"x": x}, [onnx_type(to)], to=onnx_type(to))
    expected = run_stock(model, {"x": x})[0]
    got = run_ep(ep_host, "Cast", {"x": x}, onnx_type(to), to=onnx_type(to))[0]
    np.testing.assert_array_equal(got, expected)


@on_x86
def test_powers_of_integers_that_do_not_fit(ep_host: Host) -> None:
    """0 to a negative power is infinite."""
    inputs = {"x": np.zeros(3, np.int32), "y": np.array([-3.75, -1, 2], np.float32)}
    expected = run_stock(make_model("Pow", inputs, [onnx_type(np.int32)]), inputs)[0]
    np.testing.assert_array_equal(run_ep(ep_host, "Pow", inputs)[0], expected)


def test_slices_of_what_has_dimensions_may_slice_none(ep_host: Host) -> None:
    inputs = {"x": np.ones(2, np.float32), "starts": ints(), "ends": ints()}
    np.testing.assert_array_equal(run_ep(ep_host, "Slice", inputs)[0], inputs["x"])


@pytest.mark.parametrize("opset", [7, 11, 12])
def test_the_axis_of_softmax_is_one_of_the_input(ep_host: Host, opset: int) -> None:
    """Before version 13, too, where the default is 1: an input of one dimension has no axis 1."""
    inputs = {"x": np.ones(3, np.float32)}
    with pytest.raises(Exception, match="axis"):
        run_stock(make_model("Softmax", inputs, [onnx_type(np.float32)], opset), inputs)
    with pytest.raises(Exception, match="axis"):
        run_ep(ep_host, "Softmax", inputs, opset=opset)


@pytest.mark.parametrize(("low", "high"), [(2.0, 1.0), (float("nan"), 1.0)])
def test_bounds_of_clip_in_the_wrong_order(ep_host: Host, low: float, high: float) -> None:
    """Refused while they are attributes."""
    inputs = {"x": np.ones(3, np.float32)}
    model = make_model("Clip", inputs, [onnx_type(np.float32)], 9, min=low, max=high)
    with pytest.raises(Exception, match="min_ <= max_"):
        run_stock(model, inputs)
    check_fails(ep_host, "Clip", inputs, "min", opset=9, min=low, max=high)


@pytest.mark.parametrize("flag", [0, 1, 2, -1, 256])
@pytest.mark.parametrize(
    ("op_type", "name"),
    [("ReduceSum", "keepdims"), ("ReduceSum", "noop_with_empty_axes"), ("Reshape", "allowzero")],
)
def test_only_1_is_yes(ep_host: Host, op_type: str, name: str, flag: int) -> None:
    """Other integers than 0 and 1 mean no."""
    inputs = {"x": np.ones((3, 0), np.float32)}
    if op_type == "Reshape":
        inputs["shape"] = ints(0, 0)
    expected = run_stock(make_model(op_type, inputs, [1], **{name: flag}), inputs)[0]
    got = run_ep(ep_host, op_type, inputs, **{name: flag})[0]
    np.testing.assert_array_equal(got, expected)
    assert got.shape == expected.shape


@pytest.mark.parametrize("end", [2**63 - 1, 2**31 - 1, 2**31, 2**63 - 2, 7, -(2**31), -(2**63)])
@pytest.mark.parametrize("step", [1, -1, -2])
def test_ends_of_slices(ep_host: Host, end: int, step: int) -> None:
    """The largest int32 and int64 are the end in whatever direction it goes, as in stock."""
    inputs = {"x": np.arange(5, dtype=np.float32)}
    inputs |= {"starts": ints(3), "ends": ints(end), "axes": ints(0), "steps": ints(step)}
    expected = run_stock(make_model("Slice", inputs, [1]), inputs)[0]
    np.testing.assert_array_equal(run_ep(ep_host, "Slice", inputs)[0], expected)


@pytest.mark.parametrize("opset", [6, 7, 8])
@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_extremes_broadcast_since_version_8(ep_host: Host, op_type: str, opset: int) -> None:
    inputs = {"a": np.array([[1, 5]], np.float32), "b": np.array([[3, 4]], np.float32)}
    expected = run_stock(make_model(op_type, inputs, [1], opset), inputs)[0]
    np.testing.assert_array_equal(run_ep(ep_host, op_type, inputs, opset=opset)[0], expected)
    wide = {**inputs, "b": np.array([[3], [4]], np.float32)}
    if opset == 8:
        expected = run_stock(make_model(op_type, wide, [1], opset), wide)[0]
        np.testing.assert_array_equal(run_ep(ep_host, op_type, wide, opset=opset)[0], expected)
        return
    with pytest.raises(Exception, match="Shape"):
        run_stock(make_model(op_type, wide, [1], opset), wide)
    check_fails(ep_host, op_type, wide, "one shape", opset=opset)
