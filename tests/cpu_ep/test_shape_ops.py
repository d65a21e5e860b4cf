"""Operators that only move elements, and Shape."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tests.support.cpu_ep import (
    NUMBERS,
    Array,
    DType,
    Host,
    assert_same,
    check_fails,
    check_node,
    ints,
    name_of,
    onnx_type,
    run_ep,
    values,
)

MOVED = [*NUMBERS, np.bool_]


@pytest.mark.parametrize("dtype", MOVED, ids=name_of)
def test_operators_that_only_move_elements_take_every_type(ep_host: Host, dtype: DType) -> None:
    """One case each; the shapes are tested below."""
    x = values((2, 1, 3), dtype)
    check_node(ep_host, "Identity", {"x": x})
    check_node(ep_host, "Identity", {"x": x}, opset=13)
    check_node(ep_host, "Reshape", {"x": x, "shape": ints(3, 2)})
    check_node(ep_host, "Squeeze", {"x": x, "axes": ints(1)})
    check_node(ep_host, "Unsqueeze", {"x": x, "axes": ints(0, -1)})
    check_node(ep_host, "Flatten", {"x": x})
    check_node(ep_host, "Transpose", {"x": x}, perm=[2, 0, 1])
    check_node(ep_host, "Concat", {"x": x, "y": x, "z": x[:, :, :1]}, axis=-1)
    check_node(ep_host, "Shape", {"x": x}, output_type=TensorProto.INT64)
    check_node(ep_host, "Gather", {"x": x, "indices": ints(2, 0)}, axis=2)
    check_node(
        ep_host, "Slice", {"x": x, "starts": ints(2), "ends": ints(-9), "axes": ints(2), "steps": ints(-1)}
    )
    check_node(ep_host, "Split", {"x": x, "split": ints(1, 2)}, output_count=2, axis=2)
    check_node(ep_host, "Expand", {"x": x, "shape": ints(4, 1)})
    condition = np.array([True, False, True])
    check_node(ep_host, "Where", {"c": condition, "x": x, "y": x[:1]}, output_type=onnx_type(dtype))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_identity_of_scalars_and_empty_tensors(ep_host: Host, shape: tuple[int, ...]) -> None:
    """Any shape passes."""
    check_node(ep_host, "Identity", {"x": values(shape, np.float32)})


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((2, 3, 4), (4, 6)),
        ((2, 3, 4), (0, -1)),
        ((2, 3, 4), (-1,)),
        ((2, 3, 4), (2, 0, 2, 2)),
        ((1, 1), ()),
        ((), (1, 1)),
        ((0, 3), (0, 5)),
        ((0, 3), (3, 0)),
    ],
)
def test_reshape(ep_host: Host, shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """0 copies a dimension, -1 is what is left."""
    x = values(shape, np.float32)
    if target == (3, 0):
        check_fails(ep_host, "Reshape", {"x": x, "shape": ints(0, 5, 0)}, "shape[2] is 0")
        return
    check_node(ep_host, "Reshape", {"x": x, "shape": ints(*target)})
    check_node(ep_host, "Reshape", {"x": x, "shape": ints(*target)}, opset=13)


def test_reshape_with_allowzero(ep_host: Host) -> None:
    """0 is a dimension of zero."""
    x = np.zeros((0, 3), np.float32)
    check_node(ep_host, "Reshape", {"x": x, "shape": ints(3, 4, 0)}, allowzero=1)
    check_fails(ep_host, "Reshape", {"x": x, "shape": ints(0, -1)}, "both 0 and -1", allowzero=1)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ((5, 5), "24 elements do not fit"),
        ((-1, -1), "more than one -1"),
        ((-2, 3), "shape[0] is -2"),
        ((-1, 7), "24 elements do not fit"),
        ((2**40, 2**40), "24 elements do not fit"),
    ],
)
def test_reshape_refuses_other_counts(ep_host: Host, target: tuple[int, ...], problem: str) -> None:
    """Also where the product overflows."""
    check_fails(ep_host, "Reshape", {"x": values((2, 3, 4), np.float32), "shape": ints(*target)}, problem)


@pytest.mark.parametrize("opset", [11, 13, 21])
def test_squeeze_and_unsqueeze_in_all_their_versions(ep_host: Host, opset: int) -> None:
    """Axes as an attribute before version 13, as an input since."""

    def check(op_type: str, x: Array, *axes: int) -> None:
        if opset < 13:
            check_node(ep_host, op_type, {"x": x}, opset=opset, axes=list(axes))
        else:
            check_node(ep_host, op_type, {"x": x, "axes": ints(*axes)}, opset=opset)

    check("Squeeze", values((1, 2, 1, 3), np.float32), 0)
    check("Squeeze", values((1, 2, 1, 3), np.float32), -2, 0)
    check_node(ep_host, "Squeeze", {"x": values((1, 2, 1, 3), np.float32)}, opset=opset)
    check_node(ep_host, "Squeeze", {"x": values((1, 1), np.float32)}, opset=opset)
    check("Unsqueeze", values((2, 3), np.float32), 0, 2, -1)
    check("Unsqueeze", values((), np.float32), 0)
    check("Unsqueeze", values((0,), np.float32), 1)


def test_squeeze_and_unsqueeze_refuse_wrong_axes(ep_host: Host) -> None:
    """Not 1, out of range, twice."""
    x = values((2, 1, 3), np.float32)
    check_fails(ep_host, "Squeeze", {"x": x, "axes": ints(0)}, "dimension 0 is 2, only 1 can be squeezed")
    check_fails(ep_host, "Squeeze", {"x": x, "axes": ints(3)}, "axis 3 is outside [-3, 3)")
    check_fails(ep_host, "Unsqueeze", {"x": x, "axes": ints(0, 0)}, "axis 0 is given twice")
    check_fails(ep_host, "Unsqueeze", {"x": x, "axes": ints(-5)}, "axis -5 is outside [-4, 4)")


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2, 3])
def test_flatten(ep_host: Host, axis: int) -> None:
    """Every axis, the end too."""
    for shape in ((2, 3, 4), (2, 0, 4)):
        x = values(shape, np.float32)
        got = run_ep(ep_host, "Flatten", {"x": x}, axis=axis)
        assert_same(got[0], x.reshape(int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))))


@pytest.mark.parametrize(
    "attributes",
    [{}, {"start": 1}, {"end": -1}, {"start": -2, "end": 9}, {"start": 2, "end": 1}, {"start": -9}],
)
def test_shape(ep_host: Host, attributes: dict[str, int]) -> None:
    """Parts of it are clamped to what there is."""
    check_node(
        ep_host, "Shape", {"x": values((2, 0, 4), np.float32)}, output_type=TensorProto.INT64, **attributes
    )


def test_shape_of_a_scalar_is_empty(ep_host: Host) -> None:
    """In its first version too."""
    for opset in (12, 21):
        check_node(
            ep_host, "Shape", {"x": np.array(1, np.float32)}, output_type=TensorProto.INT64, opset=opset
        )


@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((2, 3), None),
        ((2, 3, 4, 5), None),
        ((2, 3, 4, 5), [0, 2, 1, 3]),
        ((2, 3, 4, 5), [2, 3, 0, 1]),
        ((2, 3, 4, 5), [0, 1, 2, 3]),
        ((2, 1, 3, 1), [3, 2, 1, 0]),
        ((2, 0, 3), [2, 1, 0]),
        ((), None),
        ((4,), [0]),
    ],
)
def test_transpose(ep_host: Host, shape: tuple[int, ...], perm: list[int] | None) -> None:
    """Axes that move together, axes of one, empty tensors."""
    check_node(
        ep_host, "Transpose", {"x": values(shape, np.float32)}, **({} if perm is None else {"perm": perm})
    )


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_concat(ep_host: Host, axis: int) -> None:
    """Inputs of different lengths, an empty one among them."""
    shapes = [[2, 3, 4] for _ in range(3)]
    for shape, length in zip(shapes, (1, 0, 5), strict=True):
        shape[axis] = length
    inputs = {f"x{i}": values(shape, np.float32) for i, shape in enumerate(shapes)}
    check_node(ep_host, "Concat", inputs, axis=axis)
    check_node(ep_host, "Concat", {"x": inputs["x0"]}, axis=axis)


def test_concat_refuses_inputs_that_do_not_fit(ep_host: Host) -> None:
    """A dimension, and the axis."""
    inputs = {"x": values((2, 3), np.float32), "y": values((2, 4), np.float32)}
    check_fails(ep_host, "Concat", inputs, "input 1 has 4 in dimension 1, input 0 has 3", axis=0)


@pytest.mark.parametrize("index_type", [np.int32, np.int64], ids=name_of)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(ep_host: Host, axis: int, index_type: DType) -> None:
    """Scalar, matrix, empty and negative indices."""
    x = values((3, 4, 5), np.float32)
    for indices in (1, [[0, 2], [-1, -3]], np.zeros((0, 2))):
        check_node(ep_host, "Gather", {"x": x, "indices": np.array(indices, index_type)}, axis=axis)


@pytest.mark.parametrize("index", [3, -4])
def test_gather_refuses_indices_outside(ep_host: Host, index: int) -> None:
    """Instead of reading past the tensor."""
    inputs = {"x": values((3, 4), np.float32), "indices": ints(0, index)}
    check_fails(ep_host, "Gather", inputs, f"index {index} (at position 1) is outside [-3, 3)")
    check_fails(ep_host, "Gather", {"x": np.zeros((0, 4), np.float32), "indices": ints(0)}, "index 0")


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ((1,), (3,), None, None),
        ((0, 1), (2, 100), None, None),
        ((-2,), (2**63 - 1,), (1,), None),
        ((5,), (-100,), (2,), (-1,)),
        ((5,), (-100,), (2,), (-2,)),
        ((0, 0), (9, 9), (-1, 0), (2, 3)),
        ((3,), (1,), (1,), None),
        ((0,), (9,), (1,), (2**62,)),
        ((9,), (-9,), (1,), (-(2**62),)),
    ],
)
def test_slice(
    ep_host: Host,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...] | None,
    steps: tuple[int, ...] | None,
) -> None:
    """Clamped, negative, empty and strided ranges, with int32 and int64."""
    for dtype in (np.int32, np.int64):
        limit = np.iinfo(dtype)
        inputs: dict[str, Array | None] = {"x": values((4, 5, 6), np.float32)}
        for name, numbers in (("starts", starts), ("ends", ends), ("axes", axes), ("steps", steps)):
            clipped = None if numbers is None else [min(max(n, limit.min), limit.max) for n in numbers]
            inputs[name] = None if clipped is None else np.array(clipped, dtype)
        check_node(ep_host, "Slice", {k: v for k, v in inputs.items() if v is not None or k != "steps"})


def test_slice_by_attributes(ep_host: Host) -> None:
    """Version 1."""
    x = values((4, 5), np.float32)
    check_node(ep_host, "Slice", {"x": x}, opset=9, starts=[1, -2], ends=[3, 9])
    check_node(ep_host, "Slice", {"x": x}, opset=9, starts=[1], ends=[-1], axes=[1])


def test_slice_of_an_empty_dimension(ep_host: Host) -> None:
    """Nothing to take, in either direction."""
    x = np.zeros((0, 3), np.float32)
    for step in (1, -1):
        inputs = {"x": x, "starts": ints(-5), "ends": ints(-9 if step < 0 else 9), "axes": ints(0)}
        check_node(ep_host, "Slice", {**inputs, "steps": ints(step)})


def test_slice_refuses_a_step_of_zero(ep_host: Host) -> None:
    """And lists of different lengths."""
    inputs = {"x": values((4,), np.float32), "starts": ints(0), "ends": ints(4), "axes": ints(0)}
    check_fails(ep_host, "Slice", {**inputs, "steps": ints(0)}, "the step of axis 0 is 0")
    check_fails(ep_host, "Slice", {**inputs, "ends": ints(4, 4)}, "must have the same length")


def test_split(ep_host: Host) -> None:
    """By attribute, by input, evenly, with a shorter last part."""
    x = values((3, 7), np.float32)
    check_node(ep_host, "Split", {"x": x}, output_count=3, opset=11, axis=1, split=[2, 4, 1])
    check_node(ep_host, "Split", {"x": x}, output_count=3, opset=11)
    check_node(ep_host, "Split", {"x": x, "split": ints(0, 7)}, output_count=2, opset=13, axis=-1)
    check_node(ep_host, "Split", {"x": x}, output_count=3, axis=1, num_outputs=3)
    check_node(ep_host, "Split", {"x": x[:, :0]}, output_count=3, axis=0, num_outputs=3)


def test_split_refuses_parts_that_do_not_add_up(ep_host: Host) -> None:
    """Too little, too much, negative."""
    x = values((3, 7), np.float32)
    for parts in ((3, 3), (4, 4), (-1, 8)):
        inputs = {"x": x, "split": ints(*parts)}
        check_fails(
            ep_host, "Split", inputs, "split must add up to the dimension, which is 7", output_count=2, axis=1
        )


@pytest.mark.parametrize("shape", [(3, 1), (2, 3, 4), (1,), (2, 1, 1), (0, 3, 4)])
def test_expand(ep_host: Host, shape: tuple[int, ...]) -> None:
    """The result may be larger than both."""
    check_node(ep_host, "Expand", {"x": values((3, 1), np.float32), "shape": ints(*shape)})


def test_where_broadcasts_three_ways(ep_host: Host) -> None:
    """Each input widens another dimension."""
    inputs = {
        "c": values((4, 1, 1), np.bool_),
        "x": values((3, 1), np.float32),
        "y": values((2,), np.float32),
    }
    check_node(ep_host, "Where", inputs, output_type=TensorProto.FLOAT)
