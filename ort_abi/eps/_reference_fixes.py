"""Operators that the `onnx` package's reference evaluator computes wrong (seen in onnx 1.23)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_batch_normalization

__all__ = ["FIXED_OPERATORS"]

Array = NDArray[Any]


class GlobalMaxPool(OpRun):
    """The evaluator's own takes the wrong axes unless there are exactly two spatial ones."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class BatchNormalization(OpRun):
    """Before opset 14 one output means inference, whatever `momentum` says; the evaluator trains then."""

    op_domain = ""

    def _run(
        self, x: Array, scale: Array, bias: Array, mean: Array, var: Array, **attributes: Any
    ) -> tuple[Array, ...]:
        epsilon = attributes.get("epsilon")
        epsilon = 1e-5 if epsilon is None else epsilon
        if attributes.get("training_mode") or len(self.output) > 1:
            momentum = attributes.get("momentum")
            trained = op_batch_normalization._batchnorm_training_mode(
                x, scale, bias, mean, var, 0.9 if momentum is None else momentum, epsilon
            )
            return (trained[0], *trained[3:])[: len(self.output)]
        per_channel = (-1, *(1,) * (x.ndim - 2))
        scale, bias, mean, var = (item.reshape(per_channel) for item in (scale, bias, mean, var))
        return ((scale * (x - mean) / np.sqrt(var + epsilon) + bias).astype(x.dtype),)


FIXED_OPERATORS: list[type[OpRun]] = [GlobalMaxPool, BatchNormalization]
"""For `ReferenceEvaluator(new_ops=...)`."""
