"""Models of a small picture, for providers that prefer channels last."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
node = helper.make_node

RANDOM = np.random.default_rng(0)
X = np.arange(40, dtype=np.float32).reshape(1, 2, 5, 4) / 8
WEIGHT = RANDOM.integers(-2, 3, (3, 2, 2, 2)).astype(np.float32)
"""The Conv of most models: from X [1,2,5,4] to a [1,3,4,3]."""


def model(
    nodes: list[onnx.NodeProto],
    constants: dict[str, Array] | None = None,
    opset: int = 18,
    outputs: tuple[str, ...] = ("y",),
    kind: int = TensorProto.FLOAT,
    inputs: dict[str, Array] | None = None,
) -> bytes:
    """A model of x (as X) and `inputs`. The types of its outputs have no shape."""
    constants = {"w": WEIGHT, **(constants or {})}
    feeds = {"x": X, **(inputs or {})}
    graph = helper.make_graph(
        nodes,
        "test",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in feeds.items()
        ],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
    ).SerializeToString()


def conv(x: str = "x", y: str = "a", weight: str = "w", name: str = "conv") -> onnx.NodeProto:
    return node("Conv", [x, weight], [y], name)
