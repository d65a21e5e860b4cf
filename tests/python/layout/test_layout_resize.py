"""Providers that prefer channels last and a Resize whose scales, sizes or roi are known only at run: it is
converted as in stock, and what it reads comes in the order of its axes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from channels_last import NHWC, ChannelsLast, FuseChannelsLast
from ep_support import open_session, registered, run_once
from image_models import X, conv, model, node
from numpy.typing import NDArray
from onnx import numpy_helper
from test_layout import check, graph_after, plain

import ort_abi

Array = NDArray[Any]
SCALES = np.array([1, 1, 2, 3], np.float32)
SIZES = np.array([1, 3, 5, 7], np.int64)
CROP = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"}
ROI = np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 0.7], np.float32)
NONE = np.zeros(0, np.float32)

# The Resize's inputs, the model's inputs, its constants, attributes, opset; how many Gathers it takes.
CASES: dict[str, tuple[list[str], dict[str, Array], dict[str, Array], dict[str, Any], int, int]] = {
    "scales": (["a", "", "f"], {"f": SCALES}, {}, {}, 18, 1),
    "sizes": (["a", "", "", "n"], {"n": SIZES}, {}, {}, 18, 1),
    "sizes and no scales": (["a", "r", "f", "n"], {"n": SIZES}, {"r": NONE, "f": NONE}, {}, 11, 1),
    "sizes of axes": (["a", "", "", "n"], {"n": SIZES[:1:-1].copy()}, {}, {"axes": [3, -2]}, 18, 0),
    "a roi": (["a", "r", "f"], {"r": ROI, "f": SCALES}, {}, CROP, 18, 2),
    "a roi that is not read": (["a", "r", "f"], {"r": ROI}, {"f": SCALES}, {}, 18, 0),
    "a roi and constant sizes": (["a", "r", "", "n"], {"r": ROI}, {"n": SIZES}, CROP, 18, 1),
    "version 10": (["a", "f"], {"f": SCALES}, {}, {}, 10, 1),
    "version 13": (["a", "", "f"], {"f": SCALES}, {}, {}, 13, 1),
}


@pytest.mark.parametrize("cls", [ChannelsLast, FuseChannelsLast])
@pytest.mark.parametrize("case", CASES)
def test_what_is_known_at_run_is_put_in_the_order_of_the_axes(case: str, cls: type[ChannelsLast]) -> None:
    inputs, feeds, constants, attributes, opset, gathers = CASES[case]
    nodes = [conv(), node("Resize", inputs, ["y"], **attributes)]
    found = check(ort_abi, model(nodes, constants, opset, inputs=feeds), cls, **feeds)
    assert found.pop("Gather", 0) == gathers
    assert found == {"Transpose": 2, "nhwc Conv": 1, "nhwc Resize": 1}


def test_sizes_that_nodes_compute() -> None:
    """As exporters write "twice as large": the Shape is read before the Transpose too."""
    nodes = [
        conv(),
        node("Shape", ["a"], ["s"]),
        node("Mul", ["s", "k"], ["n"]),
        node("Resize", ["a", "", "", "n"], ["y"]),
    ]
    found = check(ort_abi, model(nodes, {"k": np.array([1, 1, 2, 2], np.int64)}))
    assert found["nhwc Resize"] == 1
    assert found["Transpose"] == 2


def test_a_default_that_a_user_may_replace_is_no_constant() -> None:
    """An initializer that is an input as well: another array may come in each run."""
    nodes = [conv(), node("Resize", ["a", "", "f"], ["y"])]
    proto = onnx.load_from_string(model(nodes, inputs={"f": SCALES}))
    proto.graph.initializer.append(numpy_helper.from_array(np.array([1, 1, 1, 1], np.float32), "f"))
    for scales in (SCALES, np.array([1, 1, 4, 1], np.float32)):
        found = check(ort_abi, proto.SerializeToString(), f=scales)
        assert found["nhwc Resize"] == found["Gather"] == 1


def test_stock_converts_it_too(host: ModuleType) -> None:
    """Stock's provider gets the scales in the order that they had with channels first; there is no way for it
    to know. So with stock, only what is converted is compared."""
    nodes = [conv(), node("Resize", ["a", "", "f"], ["y"])]
    with registered(host, ChannelsLast):
        session = open_session(
            host,
            ChannelsLast,
            model(nodes, inputs={"f": SCALES}),
            fallback=True,
            optimize=host is not onnxruntime,
        )
        del session
    seen = [(domain, op) for domain, op, _ in ChannelsLast.seen["test"] if op != "Gather"]
    assert seen == [("", "Transpose"), (NHWC, "Conv"), (NHWC, "Resize"), ("", "Transpose")]


def test_one_that_has_both_scales_and_sizes_at_run_stays() -> None:
    """One of them is empty, nobody knows which. Stock refuses such a model."""
    nodes = [conv(), node("Resize", ["a", "r", "f", "n"], ["y"])]
    proto = onnx.load_from_string(model(nodes, {"r": NONE}, 13, inputs={"f": SCALES, "n": SIZES}))
    for value in list(proto.graph.input)[1:]:
        value.type.tensor_type.shape.dim[0].dim_param = f"length_{value.name}"
    feeds = {"x": X, "f": NONE, "n": SIZES}
    [found] = run_once(ort_abi, ChannelsLast, proto.SerializeToString(), feeds, fallback=True)
    assert graph_after() == {"Transpose": 2, "nhwc Conv": 1, "Resize": 1}
    known = model([conv(), node("Resize", ["a", "", "", "n"], ["y"])], {"n": SIZES})
    np.testing.assert_array_equal(found, plain(known, {"x": X})[0])
