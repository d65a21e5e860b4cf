"""Inputs and outputs are views of the host's memory: no copy, read-only, and never readable after the run."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ep_support import FuseAll, mul_model, open_session, registered, run_once

from ort_abi import ep
from ort_abi._lib import lib
from ort_abi.ep import _compute

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


def test_inputs_are_not_copied(host: ModuleType) -> None:
    seen = []

    def look(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        seen.append((a.__array_interface__["data"][0], a.flags.owndata))
        return a * b

    run_once(host, provider(look), mul_model(), {"a": A, "b": B})
    assert seen == [(A.__array_interface__["data"][0], False)]


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


def test_kept_array_becomes_a_private_copy(host: ModuleType) -> None:
    kept = []

    def keep(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        kept.append(a)
        return a * b

    cls = provider(keep)
    with registered(host, cls):
        session = open_session(host, cls, mul_model())
        feed = A.copy()
        for scale in (1, 2):
            feed[:] = A * scale
            session.run(None, {"a": feed, "b": B})
        feed[:] = 0
        del session
    assert all(array.__array_interface__["data"][0] != feed.__array_interface__["data"][0] for array in kept)
    np.testing.assert_array_equal(kept[0], A)
    np.testing.assert_array_equal(kept[1], A * 2)


def test_kept_tuple_of_inputs_has_private_copies(host: ModuleType) -> None:
    kept = []

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        if ctx.inputs[0][0] > 1:  # not in the first runs: the arrays are those of runs before
            kept.append(ctx.inputs)
        np.multiply(*ctx.inputs, out=ctx.output(0, ctx.inputs[0].shape))

    cls = kernel_provider(compute)
    with registered(host, cls):
        session = open_session(host, cls, mul_model())
        feed = {"a": A.copy(), "b": B.copy()}
        for scale in (1, 1, 1, 2, 3):
            feed["a"][:] = A * scale
            np.testing.assert_array_equal(session.run(None, feed)[0], A * scale * B)
        feed["a"][:] = feed["b"][:] = 0
        del session
    assert len(kept) == 2
    for arrays, scale in zip(kept, (2, 3), strict=True):
        np.testing.assert_array_equal(arrays[0], A * scale)
        np.testing.assert_array_equal(arrays[1], B)


def test_kept_view_of_an_input_is_an_error_that_names_it(host: ModuleType) -> None:
    kept = []

    def keep(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        kept.append(b[1:])
        return a * b

    cls = provider(keep)
    with registered(host, cls):
        session = open_session(host, cls, mul_model())
        with pytest.raises(Exception, match=r"a view of input 1 \('b'\) was kept after the run"):
            session.run(None, {"a": A, "b": B})
        kept.clear()
        with pytest.raises(Exception, match="input 1"):
            session.run(None, {"a": A, "b": B})
        del session


def test_a_cycle_is_not_keeping(host: ModuleType) -> None:
    def cycle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        loop: list[Any] = [a[1:]]
        loop.append(loop)
        return a * b

    gc.disable()
    try:
        np.testing.assert_array_equal(
            run_once(host, provider(cycle), mul_model(), {"a": A, "b": B})[0], A * B
        )
    finally:
        gc.enable()


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


def test_kept_view_of_an_output_is_an_error(host: ModuleType) -> None:
    kept = []

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        out = ctx.output(0, ctx.inputs[0].shape)
        np.multiply(*ctx.inputs, out=out)
        kept.append(out[:1])

    with pytest.raises(Exception, match=r"a view of output 0 \('y'\) was kept after the run"):
        run_once(host, kernel_provider(compute), mul_model(), {"a": A, "b": B})


def test_kept_output_becomes_a_private_copy(host: ModuleType) -> None:
    kept = []

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        kept.append(ctx.output(0, ctx.inputs[0].shape))
        np.multiply(*ctx.inputs, out=kept[-1])

    outputs = run_once(host, kernel_provider(compute), mul_model(), {"a": A, "b": B})
    outputs[0][:] = 0
    assert kept[0].flags.owndata or kept[0].base is not None
    np.testing.assert_array_equal(kept[0], A * B)


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
"""In the runs with 2 and 3 something is kept: in the others nothing, so that they use the arrays before."""


@pytest.mark.parametrize("watch", [True, False])
def test_arrays_kept_in_a_late_run_become_private_copies(
    host: ModuleType, watch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compute, "_CAN_WATCH", watch)
    kept: list[Any] = []
    made = []

    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        made.append(id(a))
        if a[0] > 1:
            kept.append((a, b))
        return a * b

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        out = ctx.output(0, [3])
        np.multiply(*ctx.inputs, out=out)
        made.append(id(ctx.inputs))
        if out[0] > B[0]:
            kept.append((*ctx.inputs, out))

    for cls in (provider(function), kernel_provider(compute)):
        assert _runs(host, cls, LATE) == [""] * len(LATE)
        assert not watch or made[0] == made[1] == made[2]  # not a test of new arrays only
        assert len(kept) == 2
        for (a, b, *outputs), scale in zip(kept, (2, 3), strict=True):
            np.testing.assert_array_equal(a, A * scale)
            np.testing.assert_array_equal(b, B)
            for out in outputs:
                np.testing.assert_array_equal(out, A * scale * B)
        kept.clear()
        made.clear()


@pytest.mark.parametrize("watch", [True, False])
@pytest.mark.parametrize("what", ["function", "input 1", "output 0"])
def test_views_kept_in_a_late_run_are_errors(
    host: ModuleType, what: str, watch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compute, "_CAN_WATCH", watch)
    kept: list[Any] = []

    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a[0] > 1:
            kept.append(b[1:])
        return a * b

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        a, b = ctx.inputs
        out = ctx.output(0, a.shape)
        np.multiply(a, b, out=out)
        if a[0] > 1:
            kept.append((out if what == "output 0" else b)[1:])

    errors = _runs(host, provider(function) if what == "function" else kernel_provider(compute), LATE)
    bad = [error for error, scale in zip(errors, LATE, strict=True) if scale > 1]
    assert [bool(error) for error in errors] == [scale > 1 for scale in LATE]
    which = "output 0 ('y')" if what == "output 0" else "input 1 ('b')"
    assert all(f"a view of {which} was kept after the run" in error for error in bad)


@pytest.mark.parametrize("watch", [True, False])
@pytest.mark.parametrize("when", [{1}, {3, 5}], ids=["first", "late"])
def test_weak_references_give_no_memory_of_the_host(
    host: ModuleType, when: set[int], watch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compute, "_CAN_WATCH", watch)
    kept: list[weakref.ref[np.ndarray]] = []
    runs = itertools.count(1)
    found = []

    def look() -> bool:
        found.extend([array for reference in kept if (array := reference()) is not None])
        kept.clear()
        return next(runs) in when

    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if look():
            kept.append(weakref.ref(b))
        return a * b

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        a, b = ctx.inputs
        out = ctx.output(0, a.shape)
        np.multiply(a, b, out=out)
        if look():
            kept.extend(weakref.ref(array) for array in (a, b, out))
            kept.extend(weakref.ref(array.base) for array in (a, b, out))

    for cls in (provider(function), kernel_provider(compute)):
        runs = itertools.count(1)
        assert _runs(host, cls, LATE) == [""] * len(LATE)
        look()
        assert found == []


def test_threads_in_one_node_have_arrays_of_their_own(host: ModuleType) -> None:
    inside = threading.Barrier(4, timeout=30)
    kept: list[tuple[Any, ...]] = []
    wrong: list[Any] = []

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        a, b = ctx.inputs
        inside.wait()  # all four are in the node at once
        out = ctx.output(0, a.shape)
        np.multiply(a, b, out=out)
        if a[1] == 5:
            kept.append((a.copy(), ctx.inputs, out))
        inside.wait()

    def work(session: Any, index: int) -> None:
        feed = {"a": A * index, "b": B.copy()}
        for turn in range(8):
            feed["a"][1] = turn
            output = session.run(None, feed)[0]
            if not np.array_equal(output, feed["a"] * B):
                wrong.append((index, turn, output.copy()))
            del output

    cls = kernel_provider(compute)
    with registered(host, cls):
        session = open_session(host, cls, mul_model())
        threads = [threading.Thread(target=work, args=(session, index)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del session
    assert wrong == []
    assert sorted(a[0] for a, _, _ in kept) == [0, 1, 2, 3]
    for a, inputs, out in kept:
        np.testing.assert_array_equal(inputs[0], a)
        np.testing.assert_array_equal(inputs[1], B)
        np.testing.assert_array_equal(out, a * B)


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


def test_reference_counts_are_where_c_looks() -> None:
    """Without that, every run would be a slow one."""
    assert _compute._CAN_WATCH
    probe = [object()]
    before = lib.bridge_word(id(probe[0]))
    probe *= 5
    after = lib.bridge_word(id(probe[0]))
    assert after == before + 4


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
