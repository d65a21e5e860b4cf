"""What operators meant in older opsets, where the `onnx` package's evaluator knows their newest meaning only.

Each class is good for a range of opsets (`replaces`). The host gives nodes the default values that attributes
have in the version that the model states; what newer versions have comes in `others` and is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ops as _ops
from onnx.reference.op_run import OpRun

__all__ = ["operators_of", "replaces", "reshape"]

Array = NDArray[Any]
Operator = TypeVar("Operator", bound=type[OpRun])

ops: Any = _ops  # without types

_NEWEST = 2**31
_replaced: list[tuple[int, int, type[OpRun]]] = []


def replaces(first: int = 1, last: int = _NEWEST) -> Callable[[Operator], Operator]:
    """Makes a class the operator of its name in the opsets from `first` to `last`."""

    def add(cls: Operator) -> Operator:
        _replaced.append((first, last, cls))
        return cls

    return add


def operators_of(opset: int) -> list[type[OpRun]]:
    """The classes for models of an opset, for `ReferenceEvaluator(new_ops=...)`."""
    return [cls for first, last, cls in _replaced if first <= opset <= last]


class _Operator(OpRun):
    """Base of operators of the domain ai.onnx."""

    op_domain = ""


# ---- Arithmetic and comparisons before opset 7: broadcasting only if the node asks for it ----


def _aligned(op: Any, a: Array, b: Array) -> Array:
    """`b` in the shape that NumPy broadcasts as the operators did: from `axis` on, or the last axes."""
    if not getattr(op, "broadcast", 0):
        if a.shape != b.shape:
            raise ValueError(
                f"{op.op_type}: without 'broadcast' shapes are equal, not {a.shape} and {b.shape}"
            )
        return b
    axis = getattr(op, "axis", None)
    if axis is None:
        return b
    behind = a.ndim - (axis % a.ndim) - b.ndim
    if behind < 0:
        raise ValueError(f"{op.op_type}: 'axis' {axis} leaves no room for {b.ndim} dimensions in {a.shape}")
    shape: tuple[int, ...] = b.shape + (1,) * behind
    return b.reshape(shape)


def _with_explicit_broadcast(base: Any) -> type[OpRun]:
    def _run(self: Any, a: Array, b: Array, **others: Any) -> tuple[Array]:
        result: tuple[Array] = base._run(self, a, _aligned(self, a, b))
        return result

    return type(base.__name__, (base,), {"_run": _run, "op_domain": "", "__doc__": base.__doc__})


for _base in (
    *(ops.op_add.Add, ops.op_sub.Sub, ops.op_mul.Mul, ops.op_div.Div, ops.op_pow.Pow),
    *(
        ops.op_and.And,
        ops.op_or.Or,
        ops.op_xor.Xor,
        ops.op_less.Less,
        ops.op_greater.Greater,
        ops.op_equal.Equal,
    ),
):
    replaces(last=6)(_with_explicit_broadcast(_base))


@replaces(last=6)
class Gemm(ops.op_gemm.Gemm_6):  # type: ignore[misc]
    """C is broadcast if the node says so."""

    op_domain = ""

    def _run(self, a: Array, b: Array, c: Array, **attributes: Any) -> tuple[Array]:
        attributes = {key: attributes[key] for key in ("alpha", "beta", "transA", "transB")}
        result: tuple[Array] = super()._run(a, b, c, **attributes)
        return result


@replaces(last=6)
class PRelu(_Operator):
    """A slope for each channel, the second axis, or one for all."""

    def _run(self, x: Array, slope: Array, **others: Any) -> tuple[Array]:
        if slope.size > 1 and slope.ndim == 1:
            slope = slope.reshape(slope.shape + (1,) * (x.ndim - 2))
        return (np.where(x > 0, x, x * slope).astype(x.dtype),)


# ---- Softmax and its like before opset 13: the axes from `axis` on are one ----


class _Flattens:
    """In front of an operator that works along `axis`."""

    axis: int

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._first, self.axis = self.axis, 1

    def _run(self, x: Array) -> tuple[Array]:
        first = self._first + x.ndim if self._first < 0 else self._first
        rows, columns = math.prod(x.shape[:first]), math.prod(x.shape[first:])
        run: Callable[[Array], tuple[Array]] = super()._run  # type: ignore[misc]
        return (run(x.reshape(rows, columns))[0].reshape(x.shape),)


@replaces(last=12)
class Softmax(_Flattens, ops.op_softmax.Softmax):  # type: ignore[misc]
    """See `_Flattens`."""

    op_domain = ""


@replaces(last=12)
class LogSoftmax(_Flattens, ops.op_log_softmax.LogSoftmax):  # type: ignore[misc]
    """See `_Flattens`."""

    op_domain = ""


@replaces(last=12)
class Hardmax(_Flattens, ops.op_hardmax.Hardmax):  # type: ignore[misc]
    """See `_Flattens`."""

    op_domain = ""


# ---- Sizes ----


def _nearest(x: Array, scales: Array) -> Array:
    """Each output is the input before it, or behind it along axes that shrink, as in stock onnxruntime."""
    for axis, scale in enumerate(scales.astype(np.float32)):
        size = math.floor(np.float32(x.shape[axis]) * scale)
        where = np.arange(size, dtype=np.float32) / scale
        index = (np.ceil(where) if scale < 1 else np.floor(where)).astype(np.int64)
        x = x.take(np.minimum(index, x.shape[axis] - 1), axis)
    return x


def _resized(op: Any, x: Array, scales: Array, mode: str) -> tuple[Array]:
    if len(scales) != x.ndim:
        raise ValueError(f"{op.op_type}: there must be {x.ndim} scales, not {len(scales)}")
    if mode == "nearest":
        return (_nearest(x, scales),)
    result: tuple[Array] = ops.op_resize.Resize._run(
        op,
        x,
        None,
        scales,
        None,
        mode="linear",
        coordinate_transformation_mode="asymmetric",
        cubic_coeff_a=-0.75,
        exclude_outside=0,
        extrapolation_value=0.0,
        nearest_mode="floor",
        antialias=0,
        axes=None,
        keep_aspect_ratio_policy="stretch",
    )
    return result


@replaces(first=10, last=10)
class Resize(_Operator):
    """Scales only; coordinates are multiplied and nothing else."""

    def _run(self, x: Array, scales: Array, mode: str = "nearest", **others: Any) -> tuple[Array]:
        return _resized(self, x, scales, mode)


@replaces(last=9)
class Upsample(_Operator):
    """Scales are an attribute before opset 9, two of them before opset 7."""

    def _run(self, x: Array, scales: Any = None, mode: str = "nearest", **others: Any) -> tuple[Array]:
        if "height_scale" in others:
            scales = (1.0, 1.0, others["height_scale"], others["width_scale"])
        return _resized(self, x, np.asarray(scales, np.float32), mode)


@replaces(last=4)
class Reshape(_Operator):
    """The shape is an attribute."""

    def _run(self, x: Array, shape: Any = (), **others: Any) -> tuple[Array]:
        return (reshape(x, shape),)


def reshape(x: Array, shape: Any) -> Array:
    """ONNX's reshape: 0 is the input's dimension, -1 what is left."""
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape)])


@replaces(last=5)
class Tile(ops.op_tile.Tile):  # type: ignore[misc]
    """One axis, an input."""

    op_domain = ""

    def _run(self, x: Array, tiles: Array, axis: Array) -> tuple[Array]:
        repeats = np.ones(x.ndim, np.int64)
        repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
        return (np.tile(x, repeats),)


@replaces(last=1)
class Split(_Operator):
    """The sizes are an input or an attribute."""

    def _run(
        self, x: Array, sizes: Array | None = None, axis: int = 0, split: Any = None, **others: Any
    ) -> tuple[Array, ...]:
        given = sizes if sizes is not None else split
        if given is None:
            count = len(self.output)
            if x.shape[axis] % count:
                raise ValueError(f"Split: {x.shape[axis]} is no multiple of {count}")
            given = [x.shape[axis] // count] * count
        return tuple(np.split(x, np.cumsum(given)[:-1], axis))


# ---- Types ----


@replaces(last=5)
class Cast(ops.op_cast.Cast_1):  # type: ignore[misc]
    """The type is a name."""

    op_domain = ""

    def _run(self, x: Array, to: str = "", **others: Any) -> tuple[Array]:
        result: tuple[Array] = super()._run(x, onnx.TensorProto.DataType.Value(to.upper()))
        return result


@replaces(first=24)
class CastLike(_Operator):
    """The evaluator's own does not know `round_mode`."""

    def _run(self, x: Array, like: Array, saturate: int = 1, round_mode: str = "up") -> tuple[Array]:
        to = onnx.helper.np_dtype_to_tensor_dtype(like.dtype)
        return (ops.op_cast.cast_to(x, to, bool(saturate), round_mode),)


@replaces(first=10, last=18)
class DequantizeLinear(ops.op_dequantize_linear.DequantizeLinear_19):  # type: ignore[misc]
    """As in opset 19, which has more types."""

    op_domain = ""

    def _run(self, *inputs: Array, axis: int = 1, **others: Any) -> tuple[Array]:
        result: tuple[Array] = super()._run(*inputs, axis=axis)
        return result


# ---- Others ----


@replaces(last=5)
class Clip(ops.op_clip.Clip_6):  # type: ignore[misc]
    """The limits are attributes, as in opset 6."""

    op_domain = ""

    def _run(self, x: Array, min: Any = None, max: Any = None, **others: Any) -> tuple[Array]:
        result: tuple[Array] = super()._run(x, min=min, max=max)
        return result


@replaces(last=11)
class Dropout(_Operator):
    """Without training: the input. The mask, of the input's type before opset 10, is then not said to be
    anything: zeros, as in stock onnxruntime."""

    def _run(self, x: Array, **others: Any) -> tuple[Array, ...]:
        mask = bool if self.run_params["opsets"][""] >= 10 else x.dtype
        return (x, np.zeros(x.shape, mask))[: len(self.output)]


@replaces(last=15)
class RoiAlign(ops.op_roi_align.RoiAlign):  # type: ignore[misc]
    """Boxes are not moved by half a pixel."""

    op_domain = ""

    def _run(self, *inputs: Array, **attributes: Any) -> tuple[Array]:
        attributes["coordinate_transformation_mode"] = "output_half_pixel"
        result: tuple[Array] = super()._run(*inputs, **attributes)
        return result


@replaces(last=19)
class GridSample(ops.op_grid_sample.GridSample):  # type: ignore[misc]
    """Other names for two modes."""

    op_domain = ""

    def _run(self, x: Array, grid: Array, mode: str = "bilinear", **attributes: Any) -> tuple[Array]:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
        result: tuple[Array] = super()._run(x, grid, mode=mode, **attributes)
        return result


@replaces()
class OneHot(ops.op_one_hot.OneHot):  # type: ignore[misc]
    """The depth may be a scalar or have one element; the evaluator's own takes the scalar."""

    op_domain = ""

    def _run(self, indices: Array, depth: Array, values: Array, axis: int = -1) -> tuple[Array]:
        depth = np.asarray(depth).reshape(-1)[0].astype(np.int64)
        result: tuple[Array] = super()._run(indices.astype(np.int64), depth, values, axis=axis)
        return result


@replaces(first=9, last=10)
class Scatter(ops.op_scatter_elements.ScatterElements):  # type: ignore[misc]
    """The first name of ScatterElements."""

    op_domain = ""

    def _run(self, x: Array, indices: Array, updates: Array, axis: int = 0, **others: Any) -> tuple[Array]:
        result: tuple[Array] = super()._run(x, indices, updates, axis=axis)
        return result
