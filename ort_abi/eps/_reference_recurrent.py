"""RNN, GRU and LSTM: the `onnx` package's evaluator looks at few of their attributes and inputs.

Shapes are ONNX's, inside of the classes those of layout 0: X (steps, batch, inputs), W (directions, gates *
hidden, inputs), R (directions, gates * hidden, hidden), B (directions, 2 * gates * hidden), H and C
(directions, batch, hidden).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

from ort_abi.eps._reference_versions import replaces

__all__ = ["GRU", "LSTM", "RNN"]

Array = NDArray[Any]
Function = Callable[[Array], Array]


def _sigmoid(x: Array) -> Array:
    positive = 1 / (1 + np.exp(-np.abs(x)))
    return np.where(x >= 0, positive, 1 - positive)


_ACTIVATIONS: dict[str, tuple[Callable[..., Array], tuple[float, ...]]] = {
    "relu": (lambda x: np.maximum(x, 0), ()),
    "tanh": (np.tanh, ()),
    "sigmoid": (_sigmoid, ()),
    "softsign": (lambda x: x / (1 + np.abs(x)), ()),
    "softplus": (lambda x: np.logaddexp(x, 0), ()),
    "affine": (lambda x, a, b: a * x + b, (1.0, 0.0)),
    "leakyrelu": (lambda x, a: np.where(x >= 0, x, a * x), (0.01,)),
    "thresholdedrelu": (lambda x, a: np.where(x > a, x, 0), (1.0,)),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), (1.0, 1.0)),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), (0.2, 0.5)),
    "elu": (lambda x, a: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), (1.0,)),
}
"""By name: the function of x, alpha, beta, and what these are when the node does not say it."""


def _activations(op: Any) -> list[Function]:
    """The node's functions, of all directions. Alphas and betas go to those that have one, in order."""
    count = len(op.default_activations) * op.num_directions
    names = (op.activations or list(op.default_activations) * op.num_directions)[:count]
    alphas, betas = iter(op.activation_alpha or ()), iter(op.activation_beta or ())
    if len(names) != count:  # more are fine: the default of RNN has those of two directions
        raise ValueError(f"{op.op_type}: there are {len(names)} activations, {count} are needed")
    made = [_activation(op, name, alphas, betas) for name in names]
    is_last = [(i + 1) % 3 == 0 for i in range(count)] if op.op_type == "LSTM" else [False] * count
    return [
        function if free else _clipped(op, function) for function, free in zip(made, is_last, strict=True)
    ]


def _clipped(op: Any, function: Function) -> Function:
    """`function` of what the node's limit leaves of x. (The cell that goes into LSTM's third function is not
    clipped in stock onnxruntime.)"""
    return (lambda x: function(np.clip(x, -op.clip, op.clip))) if op.clip else function


def _activation(op: Any, name: str, alphas: Iterator[float], betas: Iterator[float]) -> Function:
    if name.lower() not in _ACTIVATIONS:
        raise ValueError(f"{op.op_type}: {name!r} is no activation function")
    function, defaults = _ACTIVATIONS[name.lower()]
    given = [next(values, default) for values, default in zip((alphas, betas), defaults, strict=False)]

    return lambda x: function(x, *given)


class _Recurrent(OpRun):
    """What the three have in common. A subclass makes one step of one direction."""

    op_domain = ""
    default_activations: tuple[str, ...]
    state_count = 1
    clip: float | None = None
    activations: list[str] | None = None
    activation_alpha: list[float] | None = None
    activation_beta: list[float] | None = None
    direction = "forward"
    layout = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        directions = {"forward": (1,), "foward": (1,), "reverse": (-1,), "bidirectional": (1, -1)}
        if self.direction not in directions:  # "foward" is the default of GRU 1, as it is written there
            raise ValueError(f"{self.op_type}: {self.direction!r} is no direction")
        self.steps = directions[self.direction]
        self.num_directions = len(self.steps)
        self.functions = _activations(self)

    def step(
        self, x: Array, states: list[Array], w: Array, r: Array, b: Array, p: Any, f: Any
    ) -> list[Array]:
        """The next states of one direction: H first. `b`: the bias of W, then of R; `f`: its functions."""
        raise NotImplementedError

    def _run(
        self,
        x: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
        sequence_lens: Array | None = None,
        *more: Array | None,
        **attributes: Any,
    ) -> tuple[Array, ...]:
        if self.layout:
            x = x.swapaxes(0, 1)
        count, batch, hidden = x.shape[0], x.shape[1], r.shape[2]
        shape = (self.num_directions, batch, hidden)
        states = [self._initial(more, i, shape, x.dtype) for i in range(self.state_count)]
        peepholes = more[2] if len(more) > 2 else None
        lengths = np.full(batch, count) if sequence_lens is None else sequence_lens.astype(np.int64)
        y = np.zeros((count, *shape), x.dtype)
        for d, direction in enumerate(self.steps):
            own = [state[d] for state in states]
            bias = np.zeros(2 * r.shape[1], x.dtype) if b is None else b[d]
            each = len(self.default_activations)
            functions = self.functions[d * each : (d + 1) * each]
            p = None if peepholes is None else np.split(peepholes[d], 3)
            for t in range(count)[::direction]:
                alive = (t < lengths)[:, None]  # a reversed sequence begins at its own end
                new = self.step(x[t], own, w[d], r[d], bias, p, functions)
                own = [np.where(alive, now, before) for now, before in zip(new, own, strict=True)]
                y[t, d] = np.where(alive, own[0], 0)
            for state, last in zip(states, own, strict=True):
                state[d] = last
        if self.layout:
            y = y.transpose(2, 0, 1, 3)
            states = [state.swapaxes(0, 1) for state in states]
        results = [y, *states]
        return tuple(result.astype(x.dtype) for result in results[: len(self.output)])

    def _initial(self, more: Any, index: int, shape: tuple[int, ...], dtype: Any) -> Array:
        given = more[index] if index < len(more) else None
        if given is None:
            return np.zeros(shape, dtype)
        return np.array(given.swapaxes(0, 1) if self.layout else given)


@replaces()
class RNN(_Recurrent):
    """One layer without gates."""

    default_activations = ("Tanh",)

    def step(
        self, x: Array, states: list[Array], w: Array, r: Array, b: Array, p: Any, f: Any
    ) -> list[Array]:
        """See `_Recurrent`."""
        hidden = r.shape[1]
        return [f[0](x @ w.T + states[0] @ r.T + b[:hidden] + b[hidden:])]


@replaces()
class GRU(_Recurrent):
    """Gates in the order z, r, h."""

    default_activations = ("Sigmoid", "Tanh")
    linear_before_reset = 0

    def step(
        self, x: Array, states: list[Array], w: Array, r: Array, b: Array, p: Any, f: Any
    ) -> list[Array]:
        """See `_Recurrent`."""
        h = states[0]
        of_w, of_r = np.split(b, 2)
        xz, xr, xh = np.split(x @ w.T + of_w, 3, axis=1)
        rz, rr, rh = np.split(r, 3)
        bz, br, bh = np.split(of_r, 3)
        z, reset = f[0](xz + h @ rz.T + bz), f[0](xr + h @ rr.T + br)
        inner = reset * (h @ rh.T + bh) if self.linear_before_reset else (reset * h) @ rh.T + bh
        return [(1 - z) * f[1](xh + inner) + z * h]


@replaces()
class LSTM(_Recurrent):
    """Gates in the order i, o, f, c; peepholes in the order i, o, f."""

    default_activations = ("Sigmoid", "Tanh", "Tanh")
    state_count = 2
    input_forget = 0

    def step(
        self, x: Array, states: list[Array], w: Array, r: Array, b: Array, p: Any, f: Any
    ) -> list[Array]:
        """See `_Recurrent`."""
        h, c = states
        pi, po, pf = p if p is not None else (0, 0, 0)
        i, o, forget, cell = np.split(x @ w.T + h @ r.T + sum(np.split(b, 2)), 4, axis=1)
        i = f[0](i + pi * c)
        forget = 1 - i if self.input_forget else f[0](forget + pf * c)
        c = forget * c + i * f[1](cell)
        return [f[0](o + po * c) * f[2](c), c]
