"""Small random models of float tensors: windowed operators, and what Transposes move through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]


class RandomGraph:
    """A model (`model`) of input x, float [1,C,H,W] (`x`). All that nobody reads is an output, and some more.

    `body`: makes the nodes of a subgraph that reads x from outside, with outputs of its own (`graph`).
    """

    def __init__(self, seed: int, nodes: int = 14, body: bool = False) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.prefix = "in_" if body else ""
        self.x = self.floats(1, *self.random.integers(2, 5, 1), *self.random.integers(3, 7, 2))
        self.shapes["x"] = self.x.shape
        self.read: set[str] = set()
        makers = list(MAKERS)
        while len(self.nodes) < nodes:
            value = str(self.random.choice([*self.shapes, *list(self.shapes)[-3:]]))
            if self.shapes[value]:
                makers[self.random.integers(len(makers))](self, value)
        unread = [name for name in self.shapes if name not in self.read and name != "x"]
        more = [
            name for name in self.shapes if name in self.read and self.random.random() < 0.1 and name != "x"
        ]
        self.outputs = [*unread, *more]

    def graph(self, name: str = "test", inputs: bool = True) -> onnx.GraphProto:
        """The graph; without the input if it is a body."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.x.shape)
        return helper.make_graph(
            self.nodes,
            name,
            [x] if inputs else [],
            [helper.make_tensor_value_info(each, TensorProto.FLOAT, None) for each in self.outputs],
            [numpy_helper.from_array(array, key) for key, array in self.constants.items()],
        )

    def model(self) -> bytes:
        """Its bytes, of opset 18."""
        opsets = [helper.make_opsetid("", 18)]
        return helper.make_model(self.graph(), opset_imports=opsets, ir_version=8).SerializeToString()

    def integer(self, first: int, last: int) -> int:
        """One of first..last."""
        return int(self.random.integers(first, last + 1))

    def choice(self, *of: Any) -> Any:
        """One of them."""
        return of[self.random.integers(len(of))]

    def floats(self, *shape: int) -> Array:
        """Quarters, so that sums are exact in any order."""
        return (self.random.integers(-8, 9, tuple(int(n) for n in shape)) / 4).astype(np.float32)

    def constant(self, array: Any, dtype: Any = np.int64) -> str:
        """The name of a constant."""
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants[name] = np.asarray(array, dtype)
        return name

    def add(self, op: str, inputs: list[str], shapes: list[tuple[int, ...]], **attributes: Any) -> None:
        """Adds a node whose outputs have these shapes."""
        names = [f"{self.prefix}v{len(self.shapes) + i}" for i in range(len(shapes))]
        self.read.update(inputs)
        self.nodes.append(
            helper.make_node(op, inputs, names, f"{self.prefix}{op}_{len(self.nodes)}", **attributes)
        )
        self.shapes.update(zip(names, shapes, strict=True))


def window(g: RandomGraph, x: str) -> None:
    """A Conv or pool."""
    shape = g.shapes[x]
    if len(shape) != 4 or min(shape[2:]) < 2:
        return
    kernel, strides = [g.integer(1, 2), g.integer(1, 2)], [g.integer(1, 2), 1]
    is_conv = g.choice(True, True, False)  # the reference pools wrongly with some pads
    pads = [g.integer(0, 1) if is_conv else 0 for _ in range(4)]
    space = [(n + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i, n in enumerate(shape[2:])]
    more: dict[str, Any] = {"kernel_shape": kernel, "pads": pads, "strides": strides}
    if is_conv:
        channels = g.integer(1, 4)
        weight = g.constant(g.floats(channels, shape[1], *kernel), np.float32)
        g.add("Conv", [x, weight], [(shape[0], channels, *space)], **more)
    else:
        g.add(g.choice("MaxPool", "AveragePool"), [x], [(*shape[:2], *space)], **more)


def global_pool(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    if len(shape) >= 3:
        g.add(g.choice("GlobalMaxPool", "GlobalAveragePool"), [x], [(*shape[:2], *[1] * (len(shape) - 2))])


def resize(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    if len(shape) != 4 or np.prod(shape) > 300:
        return
    scales = (1, 1, g.integer(1, 2), g.integer(1, 2))
    more: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    to = tuple(n * scale for n, scale in zip(shape, scales, strict=True))
    if g.choice(True, False):
        g.add("Resize", [x, "", g.constant(scales, np.float32)], [to], **more)
    else:
        g.add("Resize", [x, "", "", g.constant(to)], [to], **more)


def unary(g: RandomGraph, x: str) -> None:
    g.add(g.choice("Relu", "Neg", "Abs", "Identity", "Floor", "HardSigmoid"), [x], [g.shapes[x]])


def binary(g: RandomGraph, x: str) -> None:
    """With another value of the shape, with a constant, or with itself."""
    shape = g.shapes[x]
    others = [name for name, other in g.shapes.items() if other == shape]
    part = shape[g.integer(0, len(shape)) :]
    small = tuple(g.choice(n, 1) for n in part)
    other = g.choice(others[g.integer(0, len(others) - 1)], g.constant(g.floats(*small), np.float32))
    pair = [x, other] if g.choice(True, False) else [other, x]
    g.add(g.choice("Add", "Sub", "Max"), pair, [shape])


def concat(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    axis = g.integer(0, len(shape) - 1)
    rest = [*shape]
    rest[axis] = g.integer(1, 2)
    others = [name for name, other in g.shapes.items() if other == shape]
    other = g.choice(others[g.integer(0, len(others) - 1)], g.constant(g.floats(*rest), np.float32))
    both = [*shape]
    both[axis] += g.shapes[other][axis] if other in g.shapes else rest[axis]
    if np.prod(both) <= 1000:
        g.add("Concat", [x, other], [tuple(both)], axis=axis - g.choice(0, len(shape)))


def split(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    axis = g.integer(0, len(shape) - 1)
    if shape[axis] >= 2:
        parts = [1, shape[axis] - 1]
        shapes = [(*shape[:axis], part, *shape[axis + 1 :]) for part in parts]
        g.add("Split", [x, g.constant(parts)], shapes, axis=axis)


def reduce(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    count = g.integer(1, len(shape))
    axes = sorted(int(axis) for axis in g.random.choice(len(shape), count, replace=False))
    keep = g.choice(True, False)
    to = tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)
    g.add(g.choice("ReduceMax", "ReduceMin"), [x, g.constant(axes)], [to], keepdims=int(keep))


def squeeze(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    axes = [i for i, n in enumerate(shape) if n == 1 and g.choice(True, False)]
    if axes:
        to = tuple(n for i, n in enumerate(shape) if i not in axes)
        g.add("Squeeze", [x, g.constant(axes)], [to])


def unsqueeze(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    if len(shape) < 5:
        axis = g.integer(0, len(shape))
        g.add("Unsqueeze", [x, g.constant([axis])], [(*shape[:axis], 1, *shape[axis:])])


def cut(g: RandomGraph, x: str) -> None:
    """A Slice."""
    shape = g.shapes[x]
    axis = g.integer(0, len(shape) - 1)
    if shape[axis] >= 2:
        to = (*shape[:axis], shape[axis] - 1, *shape[axis + 1 :])
        steps = g.choice((1, shape[axis], 1), (-1, 0, -1))
        g.add("Slice", [x, *(g.constant([n]) for n in (steps[0], steps[1], axis, steps[2]))], [to])


def pad(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    pads = [g.integer(0, 1) for _ in range(2 * len(shape))]
    to = tuple(n + pads[i] + pads[i + len(shape)] for i, n in enumerate(shape))
    if np.prod(to) <= 1000:
        g.add("Pad", [x, g.constant(pads)], [to])


def gather(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    axis = g.integer(0, len(shape) - 1)
    at = g.choice(shape[axis] - 1, [0, -1])
    to = (*shape[:axis], *np.shape(at), *shape[axis + 1 :])
    g.add("Gather", [x, g.constant(at)], [to], axis=axis)


def transpose(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    perm = [int(i) for i in g.random.permutation(len(shape))]
    if len(shape) == 4 and g.choice(True, False):
        perm = g.choice([0, 2, 3, 1], [0, 3, 1, 2])
    g.add("Transpose", [x], [tuple(shape[i] for i in perm)], perm=perm)


def reshape(g: RandomGraph, x: str) -> None:
    shape = g.shapes[x]
    size = int(np.prod(shape))
    if g.choice(True, False):
        axis = g.integer(0, len(shape))
        first = int(np.prod(shape[:axis]))
        g.add("Flatten", [x], [(first, size // first)], axis=axis)
    else:
        g.add("Reshape", [x, g.constant([0, -1, 1])], [(shape[0], size // shape[0], 1)])


def size_of(g: RandomGraph, x: str) -> None:
    """A Shape, as numbers."""
    shape = g.shapes[x]
    name = f"{g.prefix}s{len(g.nodes)}"
    start = g.integer(0, len(shape) - 1)
    g.nodes.append(helper.make_node("Shape", [x], [name], start=start))
    g.read.add(x)
    g.add("Cast", [name], [(len(shape) - start,)], to=TensorProto.FLOAT)


MAKERS: list[Callable[[RandomGraph, str], None]] = [
    *[window] * 5,
    *[unary] * 2,
    *[binary] * 3,
    *[global_pool, resize, concat, split, reduce, squeeze, unsqueeze, cut, pad, gather],
    *[transpose, transpose, reshape, size_of],
]
