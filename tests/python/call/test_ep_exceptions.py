"""What a Python caller gets of an exception that Python code of a provider raised, in our host."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ep_support import FuseAll, model, mul_model, open_session, registered, run_once
from onnx import TensorProto, helper

import ort_abi
from ort_abi import ep, errors

A = np.array([1, 2, 3], np.float32)
FEEDS = {"a": A, "b": A}
NAME = "RaisingExecutionProvider"


class Boom(Exception):
    """An exception of somebody else's."""


def raising(error: BaseException) -> Callable[..., Any]:
    def function(*arguments: Any) -> Any:
        raise error

    return function


def compiled(error: BaseException) -> type[ep.ExecutionProvider]:
    return type("E", (FuseAll,), {"name": NAME, "compile": lambda self, graph: raising(error)})


def with_kernel(error: BaseException) -> type[ep.ExecutionProvider]:
    kernel = ep.kernel("Mul", (7, None))(lambda a, b: raising(error)())
    return type(
        "E", (ep.ExecutionProvider,), {"name": NAME, "vendor": "v", "version": "1.0.0", "mul": kernel}
    )


def with_method(name: str) -> Callable[[BaseException], type[ep.ExecutionProvider]]:
    def make(error: BaseException) -> type[ep.ExecutionProvider]:
        method = raising(error)
        if name == "get_supported_devices":
            method = classmethod(method)  # type: ignore[assignment]
        body = {"name": NAME, "compile": lambda self, graph: np.multiply, name: method}
        return type("E", (FuseAll,), body)

    return make


PLACES = {
    "kernel": with_kernel,
    "compiled": compiled,
    **{
        name: with_method(name)
        for name in ("__init__", "get_capability", "compile", "get_supported_devices", "on_run_start")
    },
}


def failure_of(cls: type[ep.ExecutionProvider]) -> BaseException:
    """What registering, making a session and running it raises, without the frames that have the session."""
    found: BaseException | None = None
    try:
        with registered(ort_abi, cls):
            try:
                open_session(ort_abi, cls, mul_model()).run(None, FEEDS)
            except BaseException as error:
                found = error.with_traceback(None)
    except BaseException as error:
        found = error.with_traceback(None)
    assert found is not None
    return found


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Any:
    """A function that makes a provider of an exception that it raises somewhere."""
    return PLACES[request.param]


def test_the_exception_is_the_cause(place: Any) -> None:
    boom = Boom("it broke here")
    error = failure_of(place(boom))
    assert isinstance(error, errors.RuntimeException)
    assert error.__cause__ is boom


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=repr)
def test_what_is_no_error_is_raised_itself(place: Any, error: BaseException) -> None:
    assert failure_of(place(error)) is error


def test_ctrl_c_during_a_kernel() -> None:
    """A real signal, sent while the kernel runs."""

    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10**9):  # the interpreter looks for signals between steps
            pass
        return a * b

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        cls = type("E", (FuseAll,), {"name": NAME, "compile": lambda self, graph: compute})
        assert isinstance(failure_of(cls), KeyboardInterrupt)
    finally:
        signal.signal(signal.SIGINT, before)


def nested(error: BaseException) -> tuple[Any, type[ep.ExecutionProvider]]:
    inner = type("Inner", (compiled(error),), {"name": "InnerExecutionProvider"})

    def compute(a: np.ndarray, b: np.ndarray) -> Any:
        session = open_session(ort_abi, inner, mul_model())
        return session.run(None, {"a": np.array(a), "b": np.array(b)})[0]

    return inner, type("E", (FuseAll,), {"name": NAME, "compile": lambda self, graph: compute})


def test_through_a_run_inside_a_kernel() -> None:
    boom = Boom("deep down")
    inner, outer = nested(boom)
    with registered(ort_abi, inner):
        error = failure_of(outer)
        assert isinstance(error, errors.RuntimeException)
        assert isinstance(error.__cause__, errors.RuntimeException)
        assert error.__cause__.__cause__ is boom


def test_an_interrupt_through_a_run_inside_a_kernel() -> None:
    interrupt = KeyboardInterrupt()
    inner, outer = nested(interrupt)
    with registered(ort_abi, inner):
        assert failure_of(outer) is interrupt


def test_each_thread_gets_its_own() -> None:
    """Many threads fail at once, with the same text: each has a cause of the right kind."""
    wrong: list[object] = []
    session: Any = None

    def run() -> None:
        for _ in range(50):
            try:
                session.run(None, FEEDS)
            except errors.RuntimeException as error:
                if not isinstance(error.__cause__, Boom | None):
                    wrong.append(error.__cause__)

    with registered(ort_abi, compiled(Boom("it broke"))):
        session = open_session(ort_abi, compiled(Boom("it broke")), mul_model())
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        session = None
    assert wrong == []


def test_exceptions_do_not_keep_inputs_alive() -> None:
    """Nor what else is in the frames that they went through."""

    class Big:
        pass

    kept: list[Any] = []

    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        big = Big()
        kept.append(weakref.ref(big))
        raise Boom("with a frame")

    cls = type("E", (FuseAll,), {"name": NAME, "compile": lambda self, graph: compute})
    with registered(ort_abi, cls):
        session = open_session(ort_abi, cls, mul_model())
        try:
            session.run(None, FEEDS)
        except errors.RuntimeException as error:
            assert kept[0]() is None
            assert isinstance(error.__cause__, Boom)
        del session


# ---- Texts ----


def test_each_thing_is_said_once(place: Any) -> None:
    """Provider, type and message; the traceback shows the author's code."""
    text = str(failure_of(place(Boom("it broke here"))))
    # (fused nodes have the provider's name in theirs)
    assert text.count(f"{NAME}") - text.count(f"{NAME}_") == 1
    assert text.count("Boom: it broke here") == 1
    assert text.count("Traceback (most recent call last)") == 1
    assert "raise error" in text and "in guarded" not in text


def test_a_node_is_named_once(host: ModuleType) -> None:
    with pytest.raises(Exception, match="it broke here") as caught:
        run_once(host, with_kernel(Boom("it broke here")), mul_model(), FEEDS)
    assert str(caught.value).count("mul1") == 1


def test_what_the_package_refuses_says_where() -> None:
    """No frame of the author's is in it: the whole traceback then."""
    kernel = ep.kernel("Mul", (7, None))(lambda a, b: np.float64(1))
    cls = type("E", (ep.ExecutionProvider,), {"name": NAME, "vendor": "v", "version": "1.0.0", "mul": kernel})
    with pytest.raises(errors.RuntimeException, match=r"TypeError: output 0 \('y'\) must have elements of"):
        run_once(ort_abi, cls, mul_model(), FEEDS)


# ---- Memory ----


def test_memory_errors_of_a_kernel() -> None:
    error = failure_of(compiled(MemoryError("too much for me")))
    assert isinstance(error, errors.OutOfMemory) and isinstance(error, MemoryError)
    assert "too much for me" in str(error)


def test_an_output_that_there_is_no_memory_for() -> None:
    """16 TiB of zeros, from the CPU provider."""
    spec = (TensorProto.INT64, [4])
    inputs = {"x": (TensorProto.FLOAT, [1]), "s": spec}
    data = model(
        [helper.make_node("Expand", ["x", "s"], ["y"])], inputs, {"y": (TensorProto.FLOAT, [None] * 4)}
    )
    session = ort_abi.InferenceSession(data)
    shape = np.array([1 << 12, 1 << 12, 1 << 10, 1 << 8], np.int64)
    with pytest.raises(MemoryError, match="memory"):
        session.run(None, {"x": np.zeros(1, np.float32), "s": shape})


def test_a_value_that_there_is_no_memory_for() -> None:
    with pytest.raises(MemoryError, match="memory"):
        ort_abi.OrtValue.ortvalue_from_shape_and_type([1 << 22, 1 << 22], np.float32)


# ---- Runs inside kernels ----


def test_a_kernel_runs_its_own_session(host: ModuleType) -> None:
    """Of a provider that is not concurrent: one thread is not two."""
    session: Any = None
    depth = 0

    def compute(a: np.ndarray, b: np.ndarray) -> Any:
        nonlocal depth
        depth += 1
        if depth > 1:
            return a * b
        return session.run(None, {"a": np.array(a), "b": np.array(b)})[0] + 1

    cls = type("E", (FuseAll,), {"name": NAME, "concurrent": False, "compile": lambda self, graph: compute})
    with registered(host, cls):
        session = open_session(host, cls, mul_model())
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], A * A + 1)
        session = None
