"""Providers in Python that capture graphs: runs that are repeated until there is one, replayed, released."""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from ep_support import HOSTS, OLD_STOCK, FuseAll, model, mul_model, open_session, registered
from onnx import TensorProto, helper

from ort_abi import ep

SPEC = (np.float32, [3])


class Captures(FuseAll):
    """Multiplies. The second run captures the addresses; replays work on them."""

    name = "CapturesExecutionProvider"
    calls: list[Any]
    fails = ""

    def __init__(self) -> None:
        self.seen: list[tuple[int, ...]] = []
        self.captured: dict[int, tuple[int, ...]] = {}

    def note(self, *call: Any) -> None:
        self.calls.append(call)
        if self.fails == call[0]:
            raise Boom("it broke here")

    def on_run_start(self, run_options: Any) -> None:
        self.note("run")

    def on_run_end(self, run_options: Any, sync_stream: bool) -> None:
        graph = int(run_options.config("gpu_graph_id", "0"))
        if graph >= 0 and len(self.seen) == 2:
            self.captured[graph] = self.seen[-1]
            self.seen.clear()

    def compile(self, graph: Any) -> Any:
        ep_object = self

        class Mul(ep.Kernel):
            def __init__(self) -> None:
                pass

            def compute(self, ctx: ep.KernelContext) -> None:
                a, b = ctx.inputs
                y = ctx.output(0, a.shape)
                np.multiply(a, b, out=y)
                ep_object.seen.append(tuple(x.ctypes.data for x in (a, b, y)))

        return Mul()

    def is_graph_capture_enabled(self) -> bool:
        self.note("enabled")
        return True

    def is_graph_captured(self, graph_annotation_id: int) -> bool:
        self.note("captured", graph_annotation_id)
        return graph_annotation_id in self.captured

    def get_graph_capture_node_assignment_policy(self) -> str:
        self.note("policy")
        return "allow_cpu_for_shapes"

    def replay_graph(self, graph_annotation_id: int) -> None:
        self.note("replay", graph_annotation_id)
        a, b, y = (array_at(address) for address in self.captured[graph_annotation_id])
        np.multiply(a, b, out=y)

    def release_captured_graph(self, graph_annotation_id: int) -> None:
        self.note("release", graph_annotation_id)
        del self.captured[graph_annotation_id]


class Boom(Exception):
    """Raised by the callbacks under test."""


def failure_of(function: Any, *arguments: Any, **more: Any) -> str:
    """What the call raises, as text: no traceback keeps the session alive."""
    try:
        function(*arguments, **more)
    except Exception as error:
        return str(error)
    raise AssertionError("it did not fail")


def array_at(address: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_float * 3).from_address(address))


@pytest.fixture
def capturing_host(host: ModuleType) -> ModuleType:
    if host is HOSTS["stock"] and OLD_STOCK:
        pytest.skip("captured graphs can be released since API 27")
    return host


class Bound:
    """Runs on arrays that stay where they are."""

    def __init__(self, host: ModuleType, session: Any) -> None:
        self.session = session
        self.options = host.RunOptions()
        self.a, self.b, self.y = (np.zeros(3, np.float32) for _ in range(3))
        self.binding = session.io_binding()
        for name, array in (("a", self.a), ("b", self.b)):
            self.binding.bind_input(name, "cpu", 0, np.float32, [3], array.ctypes.data)
        self.binding.bind_output("y", "cpu", 0, np.float32, [3], self.y.ctypes.data)

    def run(self, a: Any, b: Any) -> list[float]:
        self.a[:], self.b[:], self.y[:] = a, b, -1
        self.session.run_with_iobinding(self.binding, self.options)
        return list(self.y.tolist())


@contextmanager
def bound(host: ModuleType, fails: str = "", cls: type[Captures] = Captures) -> Iterator[Bound]:
    cls.calls = []
    with registered(host, cls):
        session = open_session(host, cls, mul_model())
        cls.fails = fails
        made = Bound(host, session)
        try:
            yield made
        finally:
            cls.fails = ""
            made.__dict__.clear()
            del session, made
            gc.collect()


def test_a_run_captures_and_later_ones_replay(capturing_host: ModuleType) -> None:
    with bound(capturing_host) as runs:
        assert ("enabled",) in Captures.calls and ("policy",) in Captures.calls
        Captures.calls.clear()
        assert runs.run([1, 2, 3], 2) == [2, 4, 6]
        assert Captures.calls.count(("run",)) == 2
        Captures.calls.clear()
        assert runs.run([4, 5, 6], 3) == [12, 15, 18]
        assert [call for call in Captures.calls if call[0] in ("run", "replay")] == [("replay", 0)]


def test_a_released_graph_is_captured_again(capturing_host: ModuleType) -> None:
    with bound(capturing_host) as runs:
        assert runs.run(1, 2) == [2, 2, 2]
        runs.session.release_captured_graph(0)
        assert Captures.calls[-1] == ("release", 0)
        Captures.calls.clear()
        runs.options.add_run_config_entry("gpu_graph_id", "1")
        assert runs.run(5, 2) == [10, 10, 10]
        assert Captures.calls.count(("run",)) == 2


def test_a_run_without_graph(capturing_host: ModuleType) -> None:
    with bound(capturing_host) as runs:
        Captures.calls.clear()
        runs.options.add_run_config_entry("gpu_graph_id", "-1")
        assert runs.run(5, 2) == [10, 10, 10]
        assert Captures.calls.count(("run",)) == 1


@pytest.mark.parametrize(("slot", "what"), [("ReplayGraph", "replay"), ("ReleaseCapturedGraph", "release")])
def test_what_replay_and_release_raise_is_an_error(capturing_host: ModuleType, slot: str, what: str) -> None:
    with bound(capturing_host) as runs:
        assert runs.run(1, 2) == [2, 2, 2]
        Captures.fails = what
        failed = runs.session.release_captured_graph if what == "release" else runs.run
        text = failure_of(failed, *((0,) if what == "release" else (1, 2)))
        del failed
        assert re.search(rf"CapturesExecutionProvider.*OrtEp::{slot}.*: \S*\.Boom: it broke here", text)
        Captures.fails = ""
        assert runs.run(3, 3) == [9, 9, 9]


def test_an_enabled_that_raises_is_no_capture(
    capturing_host: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    class Raises(Captures):
        name = "RaisesExecutionProvider"

        def is_graph_capture_enabled(self) -> bool:
            raise Boom("it broke here")

    before = ep.unreported_errors()
    with bound(capturing_host, cls=Raises) as runs:
        assert runs.run(1, 2) == [2, 2, 2]
        assert runs.run(1, 2) == [2, 2, 2]
        assert not [call for call in Raises.calls if call[0] != "run"]
    assert ep.unreported_errors() > before
    assert f"OrtEp::IsGraphCaptureEnabled: {__name__}.Boom" in capfd.readouterr().err


def test_an_is_captured_that_raises_is_no_graph(
    capturing_host: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    """The run is repeated a few times, then given up."""
    before = ep.unreported_errors()
    with bound(capturing_host) as runs:
        Captures.fails = "captured"
        failed = runs.run
        text = failure_of(failed, 1, 2)
        del failed
        assert "captur" in text
        Captures.fails = ""
        runs.session.release_captured_graph(0)
        assert runs.run(3, 3) == [9, 9, 9]
    assert ep.unreported_errors() > before
    assert f"OrtEp::IsGraphCaptured: {__name__}.Boom: it broke here" in capfd.readouterr().err


def test_an_unknown_policy_counts_as_all_nodes(
    capturing_host: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    class Policy(Captures):
        name = "PolicyExecutionProvider"

        def get_graph_capture_node_assignment_policy(self) -> str:
            return "some"

    before = ep.unreported_errors()
    with bound(capturing_host, cls=Policy) as runs:
        assert runs.run(1, 2) == [2, 2, 2]
    assert ep.unreported_errors() > before
    printed = capfd.readouterr().err
    assert "OrtEp::GetGraphCaptureNodeAssignmentPolicy: ValueError" in printed
    assert "must be one of 'all_nodes_on_ep', 'allow_cpu_for_shapes', not 'some'" in printed


def test_nodes_of_others_forbid_capture(capturing_host: ModuleType) -> None:
    class Half(Captures):
        name = "HalfExecutionProvider"

        def get_graph_capture_node_assignment_policy(self) -> str:
            return "all_nodes_on_ep"

        def get_capability(self, graph: Any) -> Any:
            return [[node for node in graph.nodes if node.op_type == "Mul"]]

    Half.calls = []
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["t"], name="m"),
        helper.make_node("Add", ["t", "b"], ["y"], name="s"),
    ]
    half = model(nodes, {"a": SPEC, "b": SPEC}, {"y": SPEC})
    with registered(capturing_host, Half):
        text = failure_of(open_session, capturing_host, Half, half, fallback=True, optimize=False)
        assert "HalfExecutionProvider" in text
        gc.collect()


def branches(before: bool = False) -> bytes:
    """y = a * b if c, else a + b; with `before`, of a * b in a's place."""
    name = "t" if before else "a"

    def branch(op: str) -> Any:
        value = helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])
        return helper.make_graph([helper.make_node(op, [name, "b"], ["o"])], op, [], [value])

    nodes = [helper.make_node("Mul", ["a", "b"], ["t"], name="m")] if before else []
    branch_graphs = {"then_branch": branch("Mul"), "else_branch": branch("Add")}
    nodes.append(helper.make_node("If", ["c"], ["y"], name="choice", **branch_graphs))
    made: bytes = model(nodes, {"a": SPEC, "b": SPEC, "c": (np.bool_, [])}, {"y": SPEC})
    return made


@pytest.mark.parametrize("policy", ["all_nodes_on_ep", "allow_cpu_for_shapes"])
@pytest.mark.parametrize("before", [False, True])
def test_branches_that_the_host_runs_forbid_capture(
    capturing_host: ModuleType, policy: str, before: bool
) -> None:
    """Whoever has the nodes in them: a replay would always take the same one."""

    class Inside(Captures):
        name = "InsideExecutionProvider"
        calls: ClassVar[list[Any]] = []

        def get_graph_capture_node_assignment_policy(self) -> str:
            return policy

        def get_capability(self, graph: Any) -> Any:
            return [[node] for node in graph.nodes if node.op_type != "If"]

    with registered(capturing_host, Inside):
        more = {"fallback": True, "optimize": False}
        text = failure_of(open_session, capturing_host, Inside, branches(before), **more)
        gc.collect()
    assert "FAIL" in text and "InsideExecutionProvider" in text
    assert ("node 'choice' (If" in text and "has subgraphs" in text) or "control flow nodes" in text


def test_branches_in_a_fused_node_are_the_providers_business(capturing_host: ModuleType) -> None:
    class Fuses(Captures):
        name = "FusesExecutionProvider"
        calls: ClassVar[list[Any]] = []

        def get_capability(self, graph: Any) -> Any:
            return [graph.nodes] if graph.parent_node is None else []

        def compile(self, graph: Any) -> Any:
            ep_object = self
            names = [value.name for value in graph.fused_node.inputs]
            assert sorted(names) == ["a", "b", "c"]

            class Choice(ep.Kernel):
                def __init__(self) -> None:
                    pass

                def compute(self, ctx: ep.KernelContext) -> None:
                    a, b, c = (dict(zip(names, ctx.inputs, strict=True))[name] for name in "abc")
                    y = ctx.output(0, a.shape)
                    (np.multiply if c else np.add)(a, b, out=y)
                    ep_object.seen.append(tuple(x.ctypes.data for x in (a, b, y)))

            return Choice()

    with registered(capturing_host, Fuses):
        runs = Bound(capturing_host, open_session(capturing_host, Fuses, branches()))
        c = np.array(True)
        runs.binding.bind_input("c", "cpu", 0, np.bool_, [], c.ctypes.data)
        assert runs.run([1, 2, 3], 2) == [2, 4, 6]
        assert runs.run([4, 5, 6], 3) == [12, 15, 18]
        assert [call for call in Fuses.calls if call[0] in ("run", "replay")] == [("run",)] * 2 + [
            ("replay", 0)
        ]
        del runs
        gc.collect()
