"""Children that are forked while other threads of the process are at work in this package."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
from ep_support import FuseAll, mul_model, open_session, registered

import ort_abi
from ort_abi import ep
from ort_abi._lib import lib

A = np.array([1, 2, 3], np.float32)
FEEDS = {"a": A, "b": A}
HUNG_SECONDS = 30
FORKS = 12


def child(function: Callable[[], object]) -> int:
    """The exit status of a forked child that calls `function`; a signal ends it if it hangs."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(HUNG_SECONDS)
        try:
            function()
        except BaseException as error:
            print(type(error), error, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextmanager
def at_work(function: Callable[[], object], threads: int = 2) -> Iterator[None]:
    """Threads call `function` again and again during the `with` block."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            function()

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in running:
            thread.join()


def make_and_run() -> None:
    session = ort_abi.InferenceSession(mul_model())
    np.testing.assert_array_equal(session.run(None, FEEDS)[0], A * A)


def test_while_sessions_are_made() -> None:
    make_and_run()
    with at_work(make_and_run, threads=3):
        assert [child(make_and_run) for _ in range(FORKS)] == [0] * FORKS


class Mul(FuseAll):
    name = "ForkedExecutionProvider"

    def compile(self, graph: Any) -> Any:
        return lambda a, b: a * b


class Slow(FuseAll):
    """Runs one at a time; says when a run is inside, and waits there."""

    name, concurrent = "SlowExecutionProvider", False
    inside, go_on = threading.Event(), threading.Event()

    def compile(self, graph: Any) -> Any:
        def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            self.inside.set()
            self.go_on.wait(HUNG_SECONDS)
            return a * b

        return compute


def test_while_a_kernel_runs() -> None:
    """The child runs the same session, though the parent's thread has its lock, and can exit at once."""

    session: Any = None

    def in_child() -> None:
        Slow.go_on.set()
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], A * A)
        assert lib.bridge_gate_close() == 1  # what Python's exit does: 0 if it waited in vain

    Slow.inside.clear()
    Slow.go_on.clear()
    with registered(ort_abi, Slow):
        session = open_session(ort_abi, Slow, mul_model())
        runner = threading.Thread(target=session.run, args=(None, FEEDS))
        runner.start()
        assert Slow.inside.wait(HUNG_SECONDS)
        assert child(in_child) == 0
        Slow.go_on.set()
        runner.join()
        session = runner = None


def test_inside_a_kernel() -> None:
    """The call that forks is still inside in the child, which can end it as usual."""
    codes: list[int] = []

    class Forks(Mul):
        name = "ForkingExecutionProvider"

        def compile(self, graph: Any) -> Any:
            def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
                codes.append(child(make_and_run))
                return a * b

            return compute

    with registered(ort_abi, Forks):
        session = open_session(ort_abi, Forks, mul_model())
        session.run(None, FEEDS)
        del session
    assert codes == [0]


def test_while_providers_are_registered() -> None:
    def register() -> None:
        name = f"ForkedExecutionProvider {threading.get_ident()}"
        ep.register_with(ort_abi, Mul, name)
        time.sleep(0)
        ep.unregister_from(ort_abi, name)

    with at_work(register):
        assert [child(register) for _ in range(FORKS)] == [0] * FORKS


def test_threads_register_at_once(host: ModuleType) -> None:
    """No deadlock between the GIL and a lock of the host. In a child: it would stop the tests."""

    def register(number: int) -> None:
        for i in range(40):
            name = f"{host.__name__}.{number}.{i}"
            ep.register_with(host, type(f"Mul{number}", (Mul,), {"name": name}))
            ep.unregister_from(host, name)

    def in_child() -> None:
        threads = [threading.Thread(target=register, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert child(in_child) == 0
