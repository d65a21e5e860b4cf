"""Inputs and outputs in the hands of kernels: what they are, and that they are used again.

What is kept of them: test_ep_kept.py."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ep_support import FuseAll, mul_model, open_session, registered, run_once

from ort_abi import ep

A = np.array([1, 2, 3], np.float32)
B = np.array([4, 5, 6], np.float32)


def provider(function: Any) -> type[ep.ExecutionProvider]:
    """A compile-based provider that runs `function` for the model."""
    members = {"name": "ViewExecutionProvider", "compile": lambda self, graph: function}
    return type("Views", (FuseAll,), members)


def test_inputs_are_read_only(host: ModuleType) -> None:
    def write(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a[0] = 9
        return a

    with pytest.raises(Exception, match="read-only"):
        run_once(host, provider(write), mul_model(), {"a": A, "b": B})
    np.testing.assert_array_equal(A, [1, 2, 3])


LARGE = 1 << 16  # elements: more than what is copied


def test_large_inputs_are_not_copied(host: ModuleType) -> None:
    """Once a run has shown that the kernel keeps nothing."""
    seen = []
    a, b = np.ones(LARGE, np.float32), np.ones(LARGE, np.float32)

    def look(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        seen.append((a.__array_interface__["data"][0], a.flags.owndata))
        return a * b

    cls = provider(look)
    with registered(host, cls):
        session = open_session(host, cls, mul_model(["n"]))
        for _ in range(3):
            session.run(None, {"a": a, "b": b})
        del session
    assert seen[0] != (a.ctypes.data, False)
    assert seen[1:] == [(a.ctypes.data, False)] * 2


def test_large_outputs_are_not_copied(host: ModuleType) -> None:
    written: list[int] = []

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        out = ctx.output(0, ctx.inputs[0].shape)
        np.multiply(*ctx.inputs, out=out)
        written.append(out.ctypes.data)

    y, feed = np.empty(LARGE, np.float32), np.arange(LARGE, dtype=np.float32)
    cls = kernel_provider(compute)
    with registered(host, cls):
        session = open_session(host, cls, mul_model(["n"]))
        binding = session.io_binding()
        for name in ("a", "b"):
            binding.bind_input(name, "cpu", 0, np.float32, [LARGE], feed.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, [LARGE], y.ctypes.data)
        for scale in range(3):
            y[:] = 0
            feed[0] = scale
            session.run_with_iobinding(binding)
            np.testing.assert_array_equal(y, feed * feed)
        del binding, session
    assert written[0] != y.ctypes.data
    assert written[1:] == [y.ctypes.data] * 2


def test_equal_inputs_reuse_the_arrays(host: ModuleType) -> None:
    seen = []

    def look(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        seen.append(id(a))
        return a * b

    cls = provider(look)
    with registered(host, cls):
        session = open_session(host, cls, mul_model(["n"]))
        feeds = {"a": A.copy(), "b": B.copy()}
        for scale in (1, 2, 3):
            feeds["a"][:] = A * scale
            np.testing.assert_array_equal(session.run(None, feeds)[0], A * scale * B)
        assert len(set(seen)) == 1
        longer = {"a": np.ones(5, np.float32), "b": np.full(5, 2, np.float32)}
        np.testing.assert_array_equal(session.run(None, longer)[0], longer["b"])
        np.testing.assert_array_equal(session.run(None, feeds)[0], A * 3 * B)
        del session


def test_input_can_be_the_output(host: ModuleType) -> None:
    outputs = run_once(host, provider(lambda a, b: a), mul_model(), {"a": A, "b": B})
    np.testing.assert_array_equal(outputs[0], A)
    outputs = run_once(host, provider(lambda a, b: a[::-1]), mul_model(), {"a": A, "b": B})
    np.testing.assert_array_equal(outputs[0], A[::-1])


def test_exception_that_keeps_an_input_hides_nothing(host: ModuleType) -> None:
    errors = []

    def fail(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        error = ValueError("the real reason")
        errors.append((error, a[1:]))
        raise error

    with pytest.raises(Exception, match="ValueError: the real reason"):
        run_once(host, provider(fail), mul_model(), {"a": A, "b": B})


def kernel_provider(compute: Any) -> type[ep.ExecutionProvider]:
    """A kernel-based provider for Mul."""

    @ep.kernel("Mul", (7, None))
    class Mul(ep.Kernel):
        pass

    Mul.compute = compute  # type: ignore[method-assign]
    return type("Kernels", (ep.ExecutionProvider,), {"name": "ViewExecutionProvider", "Mul": Mul})


def test_kernel_writes_into_the_output(host: ModuleType) -> None:
    owned = []

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        out = ctx.output(0, ctx.inputs[0].shape)
        owned.append(out.flags.owndata)
        np.multiply(*ctx.inputs, out=out)

    outputs = run_once(host, kernel_provider(compute), mul_model(), {"a": A, "b": B})
    np.testing.assert_array_equal(outputs[0], A * B)
    assert owned == [False]


def _runs(host: ModuleType, cls: type[ep.ExecutionProvider], scales: list[int]) -> list[str]:
    """Runs with the same memory again and again: "" where the result was right, else the error."""
    results = []
    with registered(host, cls):
        session = open_session(host, cls, mul_model())
        feed = {"a": A.copy(), "b": B.copy()}
        y = np.empty(3, np.float32)
        binding = session.io_binding()
        for name, array in feed.items():
            binding.bind_input(name, "cpu", 0, np.float32, [3], array.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, [3], y.ctypes.data)
        for scale in scales:
            feed["a"][:] = A * scale
            try:
                session.run_with_iobinding(binding)
                np.testing.assert_array_equal(y, A * scale * B)
                results.append("")
            except Exception as error:
                results.append(str(error))
        feed["a"][:] = feed["b"][:] = y[:] = 0
        del binding, session
    return results


LATE = [1, 1, 1, 2, 1, 3, 1, 1]
"""In the runs with 2 and 3 something goes wrong."""


@pytest.mark.parametrize("size", [3, LARGE])
def test_threads_in_one_node_have_arrays_of_their_own(host: ModuleType, size: int) -> None:
    """What one of them keeps is its own error."""
    inside = threading.Barrier(4, timeout=30)
    kept: list[Any] = []
    wrong: list[Any] = []
    errors: list[tuple[int, str]] = []

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        a, b = ctx.inputs
        inside.wait()  # all four are in the node at once
        out = ctx.output(0, a.shape)
        np.multiply(a, b, out=out)
        before = a.copy(), out.copy()
        if a[1] == 5 and a[0] == 2:
            kept.append((ctx.inputs, out))
        inside.wait()
        if not np.array_equal(a, before[0]) or not np.array_equal(out, before[1]):
            wrong.append(before)

    def work(session: Any, index: int) -> None:
        feed = {"a": np.full(size, index, np.float32), "b": np.full(size, 4, np.float32)}
        for turn in range(8):
            feed["a"][1] = turn
            try:
                output = session.run(None, feed)[0]
            except Exception as error:
                errors.append((turn, str(error)))
                continue
            if not np.array_equal(output, feed["a"] * feed["b"]):
                wrong.append((index, turn, output.copy()))
            del output

    cls = kernel_provider(compute)
    with registered(host, cls):
        session = open_session(host, cls, mul_model(["n"]))
        threads = [threading.Thread(target=work, args=(session, index)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del session
    assert wrong == []
    assert [turn for turn, _ in errors] == [5]
    assert "the tuple of inputs, output 0 ('y') was kept" in errors[0][1]


def test_an_exception_in_a_late_run_is_an_error_of_that_run(host: ModuleType) -> None:
    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a[0] > 1:
            raise ValueError(f"no {a[0]:.0f}")
        return a * b

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        np.multiply(*ctx.inputs, out=ctx.output(0, (3,)))
        function(*ctx.inputs)

    for cls in (provider(function), kernel_provider(compute)):
        errors = _runs(host, cls, LATE)
        assert [bool(error) for error in errors] == [scale > 1 for scale in LATE]
        assert "ValueError: no 2" in errors[3]
        assert "ValueError: no 3" in errors[5]


def test_output_and_set_output_in_turns(host: ModuleType) -> None:
    turn = iter(range(100))

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        a, b = ctx.inputs
        if next(turn) % 2:
            ctx.set_output(0, np.multiply(a, b))
        else:
            np.multiply(a, b, out=ctx.output(0, a.shape))

    cls = kernel_provider(compute)
    with registered(host, cls):
        session = open_session(host, cls, mul_model(["n"]))
        for size in (3, 5, 3, 3, 3, 5, 3, 2, 2):
            a = np.arange(size, dtype=np.float32)
            np.testing.assert_array_equal(session.run(None, {"a": a, "b": a})[0], a * a)
        del session


def test_output_shape_follows_each_run(host: ModuleType) -> None:
    def compute(self: Any, ctx: ep.KernelContext) -> None:
        np.multiply(*ctx.inputs, out=ctx.output(0, ctx.inputs[0].shape))

    cls = kernel_provider(compute)
    with registered(host, cls):
        session = open_session(host, cls, mul_model(["n"]))
        for size in (3, 0, 70000, 1, 3):
            a = np.arange(size, dtype=np.float32)
            np.testing.assert_array_equal(session.run(None, {"a": a, "b": a})[0], a * a)
        del session


def test_bad_output_requests_are_errors(host: ModuleType) -> None:
    def compute(self: Any, ctx: ep.KernelContext) -> None:
        ctx.output(5, (3,))

    with pytest.raises(Exception, match="IndexError: output 5 of a node with 1 outputs"):
        run_once(host, kernel_provider(compute), mul_model(), {"a": A, "b": B})
