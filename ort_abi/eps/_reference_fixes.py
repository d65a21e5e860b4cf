"""Operators that the `onnx` package's reference evaluator computes wrong (seen in onnx 1.23)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_batch_normalization, op_loop

from ort_abi.eps._reference_versions import replaces

__all__ = ["BatchNormalization", "GlobalMaxPool", "Loop"]

Array = NDArray[Any]


@replaces()
class GlobalMaxPool(OpRun):
    """The evaluator's own takes the wrong axes unless there are exactly two spatial ones."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


@replaces()
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
        if attributes.get("spatial") == 0:  # before opset 9: a value for each position, too
            per_channel: tuple[int, ...] = (1, *x.shape[1:])
        else:
            per_channel = (-1, *(1,) * (x.ndim - 2))
        scale, bias, mean, var = (item.reshape(per_channel) for item in (scale, bias, mean, var))
        return ((scale * (x - mean) / np.sqrt(var + epsilon) + bias).astype(x.dtype),)


@replaces()
class Loop(op_loop.Loop):
    """The evaluator's own does not run without a condition, and stacks scan outputs of two and more
    dimensions along the wrong axis."""

    op_domain = ""

    def _run(self, M: Any, cond: Any, *args: Any, **others: Any) -> tuple[Any, ...]:
        body: Any = vars(self)["body"]
        run_body: Any = vars(self)["_run_body"]
        context, attributes = others.get("context"), others.get("attributes")
        carried = list(args)
        scans: list[list[Any]] = [[] for _ in range(len(body.output_names) - 1 - len(carried))]
        limit = None if M is None else int(np.asarray(M).reshape(-1)[0])
        go_on = True if cond is None else bool(np.asarray(cond).reshape(-1)[0])
        count = 0
        while go_on and (limit is None or count < limit):
            values = [np.array(count, np.int64), np.array(go_on), *carried]
            feeds = dict(context or {}) | dict(zip(body.input_names, values, strict=True))
            keep, *results = run_body(feeds, attributes=attributes)
            go_on = bool(np.asarray(keep).reshape(-1)[0])
            carried, scanned = results[: len(carried)], results[len(carried) :]
            for stack, item in zip(scans, scanned, strict=True):
                stack.append(item)
            count += 1
        empty = np.empty(0, np.float32)
        outputs = carried + [np.stack(stack) if stack else empty for stack in scans]
        return tuple(outputs[: len(self.onnx_node.output)])
