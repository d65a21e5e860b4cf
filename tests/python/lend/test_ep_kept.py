"""What a kernel keeps of its inputs and outputs is refused, by whatever door; what it changes of them is not
there in the next run."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ep_support import FuseAll, mul_model, open_session, registered

from ort_abi import ep
from ort_abi.ep._lend import loans

SMALL, LARGE = 3, 1 << 16
"""Elements of float32: arrays of the second size are the host's memory from the second run on."""
Array = np.ndarray[Any, Any]


class Interface:
    """Something else that is an array to NumPy."""

    def __init__(self, array: Array) -> None:
        self.__array_struct__ = array.__array_struct__


def iterate(array: Array) -> Any:
    iterator = iter(array)
    next(iterator)
    return iterator


def generate(array: Array) -> Any:
    generator = (value for value in array)
    next(generator)
    return generator


DOORS: dict[str, Callable[[Array], Any]] = {
    "itself": lambda x: x,
    "slice": lambda x: x[1:],
    "reversed": lambda x: x[::-1],
    "reshape": lambda x: x.reshape(-1, 1),
    "transpose": lambda x: x.T,
    "view of bytes": lambda x: x.view(np.uint8),
    "element": lambda x: x[:1].reshape(()),
    "diagonal": lambda x: np.broadcast_to(x, (2, x.size)).diagonal(),
    "real": lambda x: x.real,
    "memoryview": memoryview,
    "cast memoryview": lambda x: memoryview(x).cast("B")[4:],
    "data": lambda x: x.data,
    "flat": lambda x: x.flat,
    "iterator": iterate,
    "generator": generate,
    "enumerate": np.ndenumerate,
    "nditer": np.nditer,
    "nditer operand": lambda x: np.nditer(x).operands[0],
    "broadcast": lambda x: np.broadcast(x, x),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, x.size)),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2),
    "as_strided": lambda x: np.lib.stride_tricks.as_strided(x, (2, 2), (0, 4)),
    "frombuffer": lambda x: np.frombuffer(x, np.int32),
    "ndarray": lambda x: np.ndarray(x.shape, x.dtype, x),
    "asarray": lambda x: np.asarray(x),
    "copy=False": lambda x: np.array(x, copy=False),
    "matrix": np.asmatrix,
    "masked": np.ma.asarray,
    "recarray": lambda x: x.view(np.recarray),
    "dlpack": np.from_dlpack,
    "capsule": lambda x: x.__dlpack__(max_version=(1, 0)),
    "array_struct": lambda x: np.asarray(Interface(x)),
    "ctypes": lambda x: x.ctypes,
    "ctypes pointer": lambda x: x.ctypes.data_as(ctypes.c_void_p),
    "base": lambda x: x.base,
    "view of the base": lambda x: memoryview(x.base),
    "base of the base": lambda x: memoryview(x.base).obj,
    "closure": lambda x: lambda: x,
    "bound method": lambda x: x.sum,
    "container": lambda x: {"a": [x]},
}


def door(name: str) -> Callable[[Array], Any]:
    """The door; skips the test where it is closed anyway."""

    def keep(array: Array) -> Any:
        try:
            return DOORS[name](array)
        except BufferError:
            pytest.skip(f"{name}: NumPy refuses it itself")

    return keep


def kernel_provider(compute: Any) -> type[ep.ExecutionProvider]:
    @ep.kernel("Mul", (7, None))
    class Mul(ep.Kernel):
        pass

    Mul.compute = compute  # type: ignore[method-assign]
    return type("Keeper", (ep.ExecutionProvider,), {"name": "KeeperExecutionProvider", "Mul": Mul})


def compiled_provider(function: Any) -> type[ep.ExecutionProvider]:
    members = {"name": "KeeperExecutionProvider", "compile": lambda self, graph: function}
    return type("Keeper", (FuseAll,), members)


def runs(host: ModuleType, cls: type[ep.ExecutionProvider], size: int, scales: list[int]) -> list[str]:
    """Runs of y = a * b: "" where the result was right, else the error."""
    results = []
    with registered(host, cls):
        session = open_session(host, cls, mul_model(["n"]))
        feed = {
            "a": np.empty(size, np.float32),
            "b": np.full(size, 2, np.float32),
        }  # the same memory each time
        for scale in scales:
            feed["a"][:] = np.arange(size) * scale
            feed["a"][0] = scale
            try:
                output = session.run(None, feed)[0]
            except Exception as error:
                results.append(str(error))
            else:
                np.testing.assert_array_equal(output, feed["a"] * feed["b"])
                results.append("")
        del session
    return results


LATE = [1, 1, 1, 2, 1, 3, 3, 1, 1]
"""Something is kept in the runs of more than 1."""


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("name", DOORS)
def test_what_is_kept_of_an_input_is_refused(host: ModuleType, name: str, size: int) -> None:
    kept: list[Any] = []
    keep = door(name)

    def function(a: Array, b: Array) -> Array:
        if a[0] > 1:
            kept.append(keep(b))
        return a * b

    results = runs(host, compiled_provider(function), size, LATE)
    assert [bool(result) for result in results] == [scale > 1 for scale in LATE], results
    assert all("input 1 ('b') was kept after the call" in result for result in results if result)
    assert all("KeeperExecutionProvider" in result for result in results if result)
    assert host.__name__ == "onnxruntime" or all("Mul" in result for result in results if result)
    assert len(kept) == 3


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("name", DOORS)
def test_what_is_kept_of_an_output_is_refused(host: ModuleType, name: str, size: int) -> None:
    kept: list[Any] = []
    keep = door(name)

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        out = ctx.output(0, ctx.inputs[0].shape)
        np.multiply(*ctx.inputs, out=out)
        if ctx.inputs[0][0] > 1:
            kept.append(keep(out))

    results = runs(host, kernel_provider(compute), size, LATE)
    assert [bool(result) for result in results] == [scale > 1 for scale in LATE], results
    assert all("output 0 ('y') was kept after the call" in result for result in results if result)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_the_kept_tuple_of_inputs_is_refused(host: ModuleType, size: int) -> None:
    kept: list[Any] = []

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        np.multiply(*ctx.inputs, out=ctx.output(0, ctx.inputs[0].shape))
        if ctx.inputs[0][0] > 1:
            kept.append(ctx.inputs)

    results = runs(host, kernel_provider(compute), size, LATE)
    assert [bool(result) for result in results] == [scale > 1 for scale in LATE], results
    assert all("the tuple of inputs was kept" in result for result in results if result)


def elements(thing: Any, size: int) -> Any:
    """What can be read through a door."""
    if isinstance(thing, (memoryview, pickle.PickleBuffer)):
        return memoryview(thing).tobytes()
    if isinstance(thing, (np.ndarray, np.ma.MaskedArray)):
        return np.asarray(thing).tobytes()
    if isinstance(thing, dict):
        return thing["a"][0].tobytes()
    if isinstance(thing, ctypes.c_void_p):
        return ctypes.string_at(thing.value or 0, size)
    if hasattr(thing, "data_as"):
        return ctypes.string_at(thing.data, size)
    if callable(thing):
        return np.asarray(thing()).tobytes()
    if isinstance(thing, np.nditer):
        return thing.operands[0].tobytes()
    return [repr(value) for value in thing]


@pytest.mark.parametrize("name", [name for name in DOORS if name != "capsule"])
def test_what_a_kernel_keeps_from_the_start_reads_no_memory_that_is_gone(host: ModuleType, name: str) -> None:
    """Its arrays have memory of their own until a run has shown that nothing is kept."""
    kept: list[tuple[Any, Array]] = []
    keep = door(name)

    def function(a: Array, b: Array) -> Array:
        kept.append((keep(a), a.copy()))
        return a * b

    size = 5000  # more than what always has memory of its own
    assert all(runs(host, compiled_provider(function), size, [1, 2, 3]))
    junk = [np.full(size, 77, np.float32) for _ in range(4)]
    for thing, before in kept:
        expected = before.tobytes() if "base" in name else elements(keep(before), before.nbytes)
        assert elements(thing, before.nbytes) == expected
    del junk


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_shape_dtype_strides_and_flags_are_as_they_were_in_the_next_run(host: ModuleType, size: int) -> None:
    seen: list[Any] = []

    def look(array: Array) -> None:
        seen.append((array.shape, array.strides, array.dtype, array.flags.num, array.ndim))

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        a, b = ctx.inputs
        out = ctx.output(0, a.shape)
        for array in (a, b, out):
            look(array)
        np.multiply(a, b, out=out)
        turn = len(seen) // 3
        if turn % 2:
            return
        a.shape = (-1, 1)
        b.dtype = np.int32
        out.flags.writeable = False
        if turn % 4:
            b.strides = (0,)
            a.strides = (0, 0)

    assert runs(host, kernel_provider(compute), size, list(range(1, 13))) == [""] * 12
    assert len(seen) == 36
    for first in range(3):
        assert len(set(seen[first::3])) == 1
    assert seen[0][:3] == ((size,), (4,), np.dtype(np.float32))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_inputs_cannot_be_made_writable(host: ModuleType, size: int) -> None:
    refused = []

    def function(a: Array, b: Array) -> Array:
        with pytest.raises(ValueError, match="WRITEABLE"):
            a.flags.writeable = True
        with pytest.raises(ValueError, match="WRITEABLE"):
            b[1:].setflags(write=True)
        refused.append(memoryview(a).readonly)
        return a * b

    assert runs(host, compiled_provider(function), size, [1, 1, 1]) == [""] * 3
    assert refused == [True] * 3


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("when", ["always", "late"])
def test_a_cycle_is_not_keeping(host: ModuleType, size: int, when: str) -> None:
    """It costs one collection of garbage in the life of a node; then its arrays are its own."""
    collections: list[str] = []

    def function(a: Array, b: Array) -> Array:
        if when == "always" or a[0] > 1:
            loop: list[Any] = [a[1:], memoryview(b)]
            loop.append(loop)
        return a * b

    def count(phase: str, info: dict[str, int]) -> None:
        collections.append(phase)

    gc.collect()
    gc.disable()
    gc.callbacks.append(count)
    try:
        assert runs(host, compiled_provider(function), size, LATE) == [""] * len(LATE)
    finally:
        gc.callbacks.remove(count)
        gc.enable()
    assert collections.count("start") == 1


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_thread_that_is_about_to_end_is_not_keeping(host: ModuleType, size: int) -> None:
    """Pools of threads let go of their work after its result is there."""
    done = threading.Event()

    def work(view: Array, other: Array) -> None:
        done.set()

    def function(a: Array, b: Array) -> Array:
        done.clear()
        thread = threading.Thread(target=work, args=(a[1:], b))
        thread.start()
        done.wait()
        return a * b

    assert runs(host, compiled_provider(function), size, [1] * 20) == [""] * 20
    with ThreadPoolExecutor(2) as pool:

        def split(a: Array, b: Array) -> Array:
            parts = pool.map(lambda part: a[part] * b[part], (slice(0, 2), slice(2, None)))
            return np.concatenate(list(parts))

        assert runs(host, compiled_provider(split), size, [1] * 20) == [""] * 20


def test_a_thread_that_goes_on_is_refused(host: ModuleType) -> None:
    go_on = threading.Event()
    threads: list[threading.Thread] = []

    def function(a: Array, b: Array) -> Array:
        threads.append(threading.Thread(target=lambda part: go_on.wait(), args=(a[1:],)))
        threads[-1].start()
        return a * b

    try:
        (result,) = runs(host, compiled_provider(function), LARGE, [1])
        assert "input 0 ('a') was kept after the call" in result
    finally:
        go_on.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_exceptions_do_not_keep(host: ModuleType, size: int) -> None:
    """One that is caught and forgotten, and the one that fails a run, with all its frames."""

    def inner(a: Array) -> None:
        view = a[1:]
        raise ValueError(f"no {view.size}")

    def function(a: Array, b: Array) -> Array:
        with contextlib.suppress(ValueError):
            inner(b)
        if a[0] > 1:
            inner(a)
        return a * b

    results = runs(host, compiled_provider(function), size, LATE)
    assert [bool(result) for result in results] == [scale > 1 for scale in LATE], results
    assert all(
        f"ValueError: no {size - 1}" in result and "was kept" not in result for result in results if result
    )


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_kept_exception_is_refused(host: ModuleType, size: int) -> None:
    """Its traceback has the frames, which have the arrays."""
    kept: list[Exception] = []

    def function(a: Array, b: Array) -> Array:
        kept.clear()  # its frames have the session, too
        try:
            raise ValueError("for later")
        except ValueError as error:
            if a[0] > 1:
                kept.append(error)
        return a * b

    results = runs(host, compiled_provider(function), size, LATE)
    assert [bool(result) for result in results] == [scale > 1 for scale in LATE], results


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_weak_references_end_with_the_call(host: ModuleType, size: int) -> None:
    references: list[weakref.ref[Any]] = []
    alive: list[Any] = []

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        a, b = ctx.inputs
        alive.extend(found for reference in references if (found := reference()) is not None)
        out = ctx.output(0, a.shape)
        np.multiply(a, b, out=out)
        if a[0] > 1:
            references.extend(weakref.ref(item) for item in (a, b, out, a.base, out.base))

    assert runs(host, kernel_provider(compute), size, LATE) == [""] * len(LATE)
    assert len(references) == 15
    assert alive == [] and all(reference() is None for reference in references)


def test_an_array_that_is_given_other_elements_is_not_used_again(host: ModuleType) -> None:
    """`__setstate__` makes an array let go of its memory."""

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        a, b = ctx.inputs
        np.multiply(a, b, out=ctx.output(0, a.shape))
        for array in (a, b, ctx.output(0, a.shape)):
            array.__setstate__(np.zeros(2, np.int64).__reduce__()[2])

    for size in (SMALL, LARGE):
        assert runs(host, kernel_provider(compute), size, [1, 2, 3, 4]) == [""] * 4


def test_without_reference_counts_all_arrays_are_the_authors_own(
    host: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a Python where C cannot read them."""
    monkeypatch.setattr(loans, "CAN_LEND", False)
    kept: list[Any] = []

    def compute(self: Any, ctx: ep.KernelContext) -> None:
        out = ctx.output(0, ctx.inputs[0].shape)
        np.multiply(*ctx.inputs, out=out)
        kept.append((*ctx.inputs, out))

    assert runs(host, kernel_provider(compute), LARGE, [1, 2, 3]) == [""] * 3
    for scale, (a, b, out) in enumerate(kept, 1):
        assert a[0] == scale and a[-1] == (LARGE - 1) * scale
        np.testing.assert_array_equal(out, a * b)


def test_c_finds_what_it_looks_at() -> None:
    """Without that, every run would be a slow one."""
    assert loans.CAN_LEND
