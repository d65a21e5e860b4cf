"""Profilers of Python providers: what they are told, what ends up in the profile, and what they may raise."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from ep_support import HOSTS, OLD_STOCK, FuseAll, mul_model, registered

import ort_abi
from ort_abi import ep

A = np.array([1, 2, 3], np.float32)
FEEDS = {"a": A, "b": A}


class Notes(ep.Profiler):
    """Writes down every call; adds one event for each node of the host."""

    made: ClassVar[list[Notes]] = []

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.open: dict[int, list[int]] = {}
        self.nodes: list[tuple[str, int, int]] = []
        self.kept: Any = None
        self.made.append(self)

    def start_profiling(self, offset_ns: int) -> None:
        assert 0 <= offset_ns < 600 * 10**9
        self.calls.append("start")

    def start_event(self, event_id: int) -> None:
        self.open.setdefault(threading.get_ident(), []).append(event_id)

    def stop_event(self, event_id: int, event: ep.HostEvent) -> None:
        assert self.open[threading.get_ident()].pop() == event_id
        self.kept = event
        if event.category == "node":
            assert event.arg("node_index") is not None
            assert event.arg("no_such_argument") is None
            self.nodes.append((event.name, event.timestamp_us, event.duration_us))

    def end_profiling(self) -> Any:
        self.calls.append("end")
        for name, timestamp, duration in self.nodes:
            yield ep.ProfilingEvent("mine", timestamp, duration, {"of": name, "list": "[1, 2]"}, "api", 7, 8)

    def close(self) -> None:
        self.calls.append("close")


class Profiled(FuseAll):
    name = "ProfiledExecutionProvider"
    profiler: ClassVar[Any] = Notes

    def compile(self, graph: Any) -> Any:
        return lambda a, b: a * b

    def create_profiler(self) -> Any:
        return self.profiler()


class Without(FuseAll):
    name = "WithoutExecutionProvider"

    def compile(self, graph: Any) -> Any:
        return lambda a, b: a * b


@pytest.fixture
def profiled_host(host: ModuleType) -> ModuleType:
    if host is HOSTS["stock"] and OLD_STOCK:
        pytest.skip("profilers of providers came with API 25")
    Notes.made.clear()
    return host


def profile(
    host: ModuleType, cls: type[ep.ExecutionProvider], folder: Path, runs: int = 1, enable: bool = True
) -> list[dict[str, Any]]:
    """The events of a session's profile."""
    options = host.SessionOptions()
    options.enable_profiling = enable
    options.profile_file_prefix = str(folder / "p")
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with registered(host, cls):
        devices = [device for device in host.get_ep_devices() if device.ep_name == cls.name]
        options.add_provider_for_devices(devices, {})
        session = host.InferenceSession(mul_model(), options)
        for _ in range(runs):
            np.testing.assert_array_equal(session.run(None, FEEDS)[0], A * A)
        path = session.end_profiling() if enable else ""
        del session, options, devices
        gc.collect()
    return json.loads(Path(path).read_text()) if enable else []


def test_events_of_the_provider_are_in_the_profile(profiled_host: ModuleType, tmp_path: Path) -> None:
    objects = ep.live_objects()
    events = profile(profiled_host, Profiled, tmp_path, runs=2)
    mine = [event for event in events if event["name"] == "mine"]
    nodes = [event for event in events if event["cat"] == "Node"]
    assert len(mine) == 2
    for event, node in zip(mine, nodes, strict=True):
        assert event["args"] == {"of": node["name"], "list": [1, 2]}
        assert (event["cat"], event["pid"], event["tid"]) == ("Api", 7, 8)
        assert (event["ts"], event["dur"]) == (node["ts"], node["dur"])
    (notes,) = Notes.made
    assert notes.calls == ["start", "end", "close"]
    assert not any(notes.open.values())
    assert ep.live_objects() == objects


def test_an_event_is_dead_after_the_call(profiled_host: ModuleType, tmp_path: Path) -> None:
    profile(profiled_host, Profiled, tmp_path)
    with pytest.raises(RuntimeError, match="valid only during stop_event"):
        _ = Notes.made[0].kept.name


def test_a_profiler_of_no_events(profiled_host: ModuleType, tmp_path: Path) -> None:
    class Quiet(ep.Profiler):
        pass

    class Plain(Profiled):
        name, profiler = "PlainExecutionProvider", Quiet

    expected = [event["cat"] for event in profile(profiled_host, Without, tmp_path)]
    assert [event["cat"] for event in profile(profiled_host, Plain, tmp_path)] == expected


def test_none_is_no_profiler(profiled_host: ModuleType, tmp_path: Path) -> None:
    class None_(Profiled):
        name, profiler = "NoneExecutionProvider", staticmethod(lambda: None)

    objects = ep.live_objects()
    assert profile(profiled_host, None_, tmp_path)
    assert ep.live_objects() == objects


def test_a_session_without_profile(profiled_host: ModuleType, tmp_path: Path) -> None:
    """Stock onnxruntime makes the profiler all the same, and does not start it."""
    profile(profiled_host, Profiled, tmp_path, enable=False)
    expected = [["close"]] if profiled_host is HOSTS["stock"] else []
    assert [notes.calls for notes in Notes.made] == expected


def run_in_threads(session: Any) -> None:
    """Eight threads, each with 20 runs."""

    def work() -> None:
        for _ in range(20):
            session.run(None, FEEDS)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_events_of_many_threads(profiled_host: ModuleType, tmp_path: Path) -> None:
    """Each thread's are one inside the other, and in our host no id comes twice."""

    class Counts(Notes):
        ids: ClassVar[list[int]] = []

        def start_event(self, event_id: int) -> None:
            self.ids.append(event_id)
            super().start_event(event_id)

    class Threads(Profiled):
        name, profiler = "ThreadsExecutionProvider", Counts

    options = profiled_host.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "p")
    with registered(profiled_host, Threads):
        devices = [device for device in profiled_host.get_ep_devices() if device.ep_name == Threads.name]
        options.add_provider_for_devices(devices, {})
        session = profiled_host.InferenceSession(mul_model(), options)
        run_in_threads(session)
        path = session.end_profiling()
        del session, options, devices
        gc.collect()
    (notes,) = Notes.made
    assert len(notes.nodes) == 160 and not any(notes.open.values())
    mine = [event for event in json.loads(Path(path).read_text()) if event["name"] == "mine"]
    assert len(mine) == 160
    if profiled_host is HOSTS["ours"]:
        assert len(set(Counts.ids)) == len(Counts.ids)


def test_exit_while_a_session_is_profiled(profiled_host: ModuleType, tmp_path: Path) -> None:
    name = "ours" if profiled_host is HOSTS["ours"] else "stock"
    here = os.path.dirname(os.path.abspath(__file__))
    code = f"""
import sys
sys.path[:0] = [{os.path.dirname(ort_abi.__path__[0])!r}, {here!r}, {os.path.dirname(here)!r}]
from ep_support import HOSTS, mul_model
from test_ep_profiler import FEEDS, Profiled
from ort_abi import ep
host = HOSTS[{name!r}]
ep.register_with(host, Profiled)
options = host.SessionOptions()
options.enable_profiling = True
options.profile_file_prefix = {str(tmp_path / "p")!r}
options.add_provider_for_devices([d for d in host.get_ep_devices() if d.ep_name == Profiled.name], {{}})
session = host.InferenceSession(mul_model(), options)
session.run(None, FEEDS)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


class Boom(Exception):
    """Raised by the callbacks under test."""


def boom(*_: Any) -> Any:
    raise Boom("it broke here")


RAISING: dict[str, dict[str, Any]] = {
    "OrtEpProfilerImpl::StartProfiling": {"start_profiling": boom},
    "OrtEpProfilerImpl::StartEvent": {"start_event": boom},
    "OrtEpProfilerImpl::StopEvent": {"stop_event": boom},
    "OrtEpProfilerImpl::EndProfiling": {"end_profiling": boom},
    "OrtEpProfilerImpl::Release": {"close": boom},
}


@pytest.mark.parametrize("slot", RAISING)
def test_what_a_profiler_raises_is_logged_and_the_session_runs(
    profiled_host: ModuleType, slot: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    class Failing(Profiled):
        name, profiler = "FailingExecutionProvider", type("Failing", (ep.Profiler,), RAISING[slot])

    unreported, objects = ep.unreported_errors(), ep.live_objects()
    names = [event["name"] for event in profile(profiled_host, Failing, tmp_path)]
    assert "model_run" in names and "mine" not in names
    printed = capfd.readouterr().err
    assert f"FailingExecutionProvider: {slot}: {__name__}.Boom: it broke here" in printed
    assert ep.unreported_errors() - unreported == (slot == "OrtEpProfilerImpl::Release")
    assert ep.live_objects() == objects


async def coroutine(*_: Any) -> None:
    """What an author may write by mistake."""


@pytest.mark.parametrize("method", ["start_profiling", "start_event", "stop_event", "close"])
def test_a_coroutine_is_a_failure(
    profiled_host: ModuleType, method: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    class Failing(Profiled):
        name, profiler = "FailingExecutionProvider", type("Failing", (ep.Profiler,), {method: coroutine})

    assert profile(profiled_host, Failing, tmp_path)
    assert "must be a plain function, not one that gives a coroutine" in capfd.readouterr().err


BAD_EVENTS: dict[str, tuple[Any, str]] = {
    "no event": (3, "end_profiling() must give ProfilingEvent objects, not 3"),
    "no category": (
        ep.ProfilingEvent("x", 0, 0, category="gpu"),
        "ProfilingEvent.category must be one of 'session', 'node', 'kernel', 'api', not 'gpu'",
    ),
}


@pytest.mark.parametrize("what", BAD_EVENTS)
def test_bad_events_are_refused(
    profiled_host: ModuleType, what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bad, message = BAD_EVENTS[what]

    class Bad(Profiled):
        name = "BadExecutionProvider"
        profiler = type("Bad", (ep.Profiler,), {"end_profiling": lambda self: [bad]})

    assert profile(profiled_host, Bad, tmp_path)
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    ("profiler", "message"),
    [(boom, "Boom: it broke here"), (lambda: 5, "must return an ort_abi.ep.Profiler, not 5")],
)
def test_a_profiler_that_cannot_be_made(
    profiled_host: ModuleType,
    profiler: Any,
    message: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Our host logs it; for stock onnxruntime it may be an error of the session."""

    class Unmade(Profiled):
        name = "UnmadeExecutionProvider"

    Unmade.profiler = staticmethod(profiler)
    told = ""
    try:
        profile(profiled_host, Unmade, tmp_path)
    except Exception as error:
        told = str(error)
    told += capfd.readouterr().err
    assert "UnmadeExecutionProvider: OrtEp::CreateProfiler" in told
    assert message in told
