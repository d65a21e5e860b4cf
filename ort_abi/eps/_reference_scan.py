"""Scan: the `onnx` package's evaluator has forward scans along first axes only, and no batches (opset 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

from ort_abi.eps._reference_versions import replaces

__all__ = ["Scan", "Scan8"]

Array = NDArray[Any]


def _listed(values: Any, count: int) -> list[int]:
    return list(values) if values else [0] * count


class _Scan(OpRun):
    op_domain = ""

    def need_context(self) -> bool:
        """Bodies may read values of the graphs around them."""
        return True

    def scan(
        self,
        states: list[Array],
        sequences: list[Array],
        length: int,
        backwards: tuple[list[int], list[int]],
        feeds: dict[str, Any],
        attributes: Any,
    ) -> tuple[list[Array], list[list[Array]]]:
        """The last states, and what each scan output is made of. Sequences have their steps first.
        `backwards` says which of them are read from their end, and which outputs are written so."""
        body: Any = vars(self)["body"]
        run_body: Any = vars(self)["_run_body"]
        parts: list[list[Array]] = [[] for _ in range(len(body.output_names) - len(states))]
        for step in range(length):
            items = [
                sequence[length - 1 - step if back else step]
                for sequence, back in zip(sequences, backwards[0], strict=True)
            ]
            inputs = dict(zip(body.input_names, [*states, *items], strict=True))
            results = run_body({**feeds, **inputs}, attributes=attributes)
            states = results[: len(states)]
            for part, result in zip(parts, results[len(states) :], strict=True):
                part.append(result)
        return states, [part[::-1] if back else part for part, back in zip(parts, backwards[1], strict=True)]

    def joined(self, parts: list[Array], index: int, axis: int) -> Array:
        """A scan output. Without steps it is as the body declares it."""
        if parts:
            return np.stack(parts, axis)
        body: Any = vars(self)["body"]
        kind = body.output_types[index].tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        shape.insert(axis % (len(shape) + 1), 0)
        return np.zeros(shape, np.float32 if not kind.elem_type else _dtype(kind.elem_type))


def _dtype(element_type: int) -> Any:
    from onnx import helper

    return helper.tensor_dtype_to_np_dtype(element_type)


@replaces(first=9)
class Scan(_Scan):
    """Any axes and directions."""

    def _run(
        self, *inputs: Array, context: Any = None, attributes: Any = None, **others: Any
    ) -> tuple[Array, ...]:
        scanned: int = others["num_scan_inputs"]
        states, sequences = list(inputs[:-scanned]), inputs[-scanned:]
        made = len(others["body"].output_names) - len(states)
        axes = _listed(others.get("scan_input_axes"), scanned)
        moved = [np.moveaxis(sequence, axis, 0) for sequence, axis in zip(sequences, axes, strict=True)]
        lengths = {sequence.shape[0] for sequence in moved}
        if len(lengths) != 1:
            raise ValueError(f"Scan: its inputs have different numbers of steps: {sorted(lengths)}")
        backwards = (
            _listed(others.get("scan_input_directions"), scanned),
            _listed(others.get("scan_output_directions"), made),
        )
        states, parts = self.scan(states, moved, lengths.pop(), backwards, context or {}, attributes)
        output_axes = _listed(others.get("scan_output_axes"), made)
        outputs = [
            self.joined(part, len(states) + i, axis)
            for i, (part, axis) in enumerate(zip(parts, output_axes, strict=True))
        ]
        return (*states, *outputs)


@replaces(last=8)
class Scan8(_Scan):
    """Each item of a batch has a length of its own; what is behind it in scan outputs is 0."""

    def _run(
        self, *inputs: Any, context: Any = None, attributes: Any = None, **others: Any
    ) -> tuple[Array, ...]:
        lengths, given, scanned = inputs[0], inputs[1:], others["num_scan_inputs"]
        states, sequences = given[:-scanned], given[-scanned:]
        made = len(others["body"].output_names) - len(states)
        batch, longest = sequences[0].shape[:2]
        backwards = (_listed(others.get("directions"), scanned), [0] * made)
        results: list[list[Array]] = []
        for item in range(batch):
            length = longest if lengths is None else int(lengths[item])
            own, parts = self.scan(
                [state[item] for state in states],
                [sequence[item, :length] for sequence in sequences],
                length,
                backwards,
                context or {},
                attributes,
            )
            outputs = [self.joined(part, len(states) + i, 0) for i, part in enumerate(parts)]
            padded = [np.pad(out, [(0, longest - length), *[(0, 0)] * (out.ndim - 1)]) for out in outputs]
            results.append([*own, *padded])
        return tuple(np.stack(parts) for parts in zip(*results, strict=True))


Scan8.__name__ = "Scan"  # the evaluator knows classes by it
