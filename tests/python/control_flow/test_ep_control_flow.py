"""If, Loop and Scan as kernels of Python providers: the host makes them, the provider moves what is on its
device."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import onnxruntime
import pytest
from device_support import has_streams
from ep_support import HOSTS, open_session, registered, run_once
from numpy_device import (
    Allocator,
    Launch,
    Notification,
    NumpyDevice,
    Stream,
    StreamAllocator,
    Transfer,
    device_class,
)
from test_control_flow import CASES, SCANNED, assert_equal, floats, parse, scalar

from ort_abi import ep


class Boom(Exception):
    """Raised by the methods under test."""


def boom(*_: Any) -> Any:
    raise Boom("it broke here")


class Flows(ep.ExecutionProvider):
    """Takes every node, one by one."""

    name = "FlowsExecutionProvider"
    control_flow: ClassVar[Any] = ("If", "Loop", "Scan")
    failing: ClassVar[bool] = False

    @ep.kernel("Add", (7, None))
    def add(a: Any, b: Any) -> Any:
        return a + b

    @ep.kernel("Mul", (7, None))
    def mul(a: Any, b: Any) -> Any:
        return boom() if Flows.failing else a * b

    @ep.kernel("Identity", (1, None))
    def identity(a: Any) -> Any:
        return a

    @ep.kernel("Concat", (4, None))
    def concat(*arrays: Any, axis: int) -> Any:
        return np.concatenate(arrays, axis)

    @ep.kernel("ReduceSum", (1, None))
    def reduce_sum(a: Any, *, keepdims: int = 1) -> Any:
        return a.sum(keepdims=bool(keepdims))

    @ep.kernel("Less", (7, None))
    def less(a: Any, b: Any) -> Any:
        return a < b

    @ep.kernel("Equal", (7, None))
    def equal(a: Any, b: Any) -> Any:
        return a == b

    @ep.kernel("Squeeze", (13, None))
    def squeeze(a: Any, axes: Any) -> Any:
        return a.squeeze(tuple(axes))


@pytest.mark.parametrize("case", CASES)
def test_equals_the_cpu_provider_of_stock(host: ModuleType, case: str) -> None:
    text, runs = CASES[case]
    model = parse(text).SerializeToString()
    stock = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    objects = ep.live_objects()
    with registered(host, Flows):
        session = open_session(host, Flows, model, optimize=False)
        for feeds in runs:
            found = [np.array(value) for value in session.run(None, feeds)]
            assert_equal(found, stock.run(None, feeds))
        del session
        gc.collect()
    assert ep.live_objects() == objects


@pytest.mark.parametrize("listed", [("If", "While"), "Loop"])
def test_unknown_names_are_an_error(host: ModuleType, listed: Any) -> None:
    wrong = type("Wrong", (Flows,), {"control_flow": listed, "name": "WrongExecutionProvider"})
    text, runs = CASES["if"]
    with pytest.raises(Exception, match=r"control_flow has some of If, Loop, Scan, not"):
        run_once(host, wrong, parse(text).SerializeToString(), runs[0])


def test_what_a_node_inside_raises_is_an_error(host: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flows, "failing", True)
    text, runs = CASES["loop"]
    with pytest.raises(Exception, match="Boom: it broke here"):
        run_once(host, Flows, parse(text).SerializeToString(), runs[1], optimize=False)


def test_what_transpose_raises_is_an_error(host: ModuleType) -> None:
    fails = type("Fails", (Flows,), {"name": "FailsExecutionProvider", "transpose": boom})
    feeds = CASES["scan"][1][1]
    with pytest.raises(Exception, match=r"OrtScanKernelHelper::Transpose.*: .*Boom: it broke here"):
        run_once(host, fails, parse(SCANNED).SerializeToString(), feeds, optimize=False)


# ---- on a device ----

LOOP = """
g (int64 most, bool start, float[2, 3] x) => (float[2, 3] last, float[T, 2, 3] each)
{
  last, each = Loop (most, start, x) <
    body = b (int64 i, bool go, float[2, 3] v) => (bool go, float[2, 3] next, float[2, 3] seen) {
      next = Add (v, x)
      seen = Mul (next, next)
    }>
}"""

SCAN = """
g (float[2] s, float[2, L] x) => (float[2] last, float[2, L] p)
{
  last, p = Scan (s, x) <
    num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
    body = b (float[2] v, float[2] a) => (float[2] next, float[2] sum) {
      sum = Mul (a, a)
      next = Add (v, sum)
    }>
}"""


class FlowTransfer(Transfer):
    def copy(self, source: ep.DeviceTensor, target: ep.DeviceTensor, stream: ep.SyncStream | None) -> None:
        if stream is None and source.device == target.device:
            self.state.counts["within, without stream"] += 1
        super().copy(source, target, stream)


class DeviceFlows(NumpyDevice):
    control_flow: ClassVar[Any] = ("If", "Loop", "Scan")

    @classmethod
    def create_data_transfer(cls) -> ep.DataTransfer:
        return FlowTransfer(cls.state)

    def get_capability(self, graph: Any) -> Any:
        flow = [node for node in graph.nodes if node.op_type in self.control_flow]
        return [*super().get_capability(graph), *flow]

    def transpose(
        self, permutation: Any, source: ep.DeviceTensor, target: ep.DeviceTensor, stream: ep.SyncStream | None
    ) -> None:
        self.state.called("transpose")
        from_, to = (self.state.memory.view(t.ptr, t.shape, t.dtype) for t in (source, target))
        if stream is None:
            np.copyto(to, from_.transpose(permutation))
        else:
            stream.worker.add(lambda: np.copyto(to, from_.transpose(permutation)))  # type: ignore[attr-defined]


def device_flows(**members: Any) -> type[NumpyDevice]:
    return type("DeviceFlows", (DeviceFlows,), {"state": device_class().state} | members)


def loop_expected(most: int, x: Any) -> list[Any]:
    values = [x * (i + 2) for i in range(most)]
    return [values[-1] if values else x, np.array([v * v for v in values], np.float32).reshape(-1, 2, 3)]


@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("most", [0, 1, 4])
def test_a_loop_on_a_device(host: ModuleType, most: int, aware: bool) -> None:
    cls = device_flows(stream_aware=aware)
    x = floats(2, 3)
    feeds = {"most": scalar(most, np.int64), "start": scalar(True, np.bool_), "x": x}
    found = run_once(host, cls, parse(LOOP).SerializeToString(), feeds)
    assert_equal(found, loop_expected(most, x))
    assert cls.state.counts["GPU to GPU"] >= most
    assert not (aware and has_streams(host)) or cls.state.counts["within, without stream"] == 0
    assert len(cls.state.memory) == 0


@pytest.mark.parametrize("aware", [False, True])
def test_a_scan_on_a_device(host: ModuleType, aware: bool) -> None:
    cls = device_flows(stream_aware=aware)
    s, x = floats(2), floats(2, 3)
    last, squares = run_once(host, cls, parse(SCAN).SerializeToString(), {"s": s, "x": x})
    np.testing.assert_array_equal(squares, x * x)
    np.testing.assert_array_equal(last, s + (x * x).sum(1))
    assert cls.state.counts["transpose"] == 2
    assert len(cls.state.memory) == 0


def test_a_scan_on_a_device_without_transpose(host: ModuleType) -> None:
    cls = device_flows(transpose=ep.ExecutionProvider.transpose)
    with pytest.raises(Exception, match=r"NotImplementedError: DeviceFlows does not define transpose\(\)"):
        run_once(host, cls, parse(SCAN).SerializeToString(), {"s": floats(2), "x": floats(2, 3)})


def test_a_copy_that_fails_while_a_loop_stacks(host: ModuleType) -> None:
    cls = device_flows()
    text, feeds = LOOP, {"most": scalar(2, np.int64), "start": scalar(True, np.bool_), "x": floats(2, 3)}
    with registered(host, cls):
        session = open_session(host, cls, parse(text).SerializeToString())
        cls.state.failing = "copy"
        with pytest.raises(Exception, match=r"copy broke here"):
            session.run(None, feeds)
        cls.state.failing = ""
        session.run(None, feeds)
        del session
        gc.collect()


def test_streams_of_several_providers_may_have_equal_handles(host: ModuleType) -> None:
    """Each has its values stacked on a stream of its own, none on the first one of that handle."""
    state = device_class().state
    state.failing, state.given = "handle", 77

    class Owns(DeviceFlows):
        seen: ClassVar[list[str]]

        @classmethod
        def create_sync_stream(cls, device: Any, options: Any) -> Any:
            stream = super().create_sync_stream(device, options)
            stream.owner = cls.name  # type: ignore[attr-defined]
            return stream

        @classmethod
        def create_data_transfer(cls) -> ep.DataTransfer:
            transfer = Watches(cls.state)
            transfer.seen = cls.seen
            return transfer

    class Watches(FlowTransfer):
        seen: list[str]

        def copy(self, source: ep.DeviceTensor, target: ep.DeviceTensor, stream: Any) -> None:
            if stream is not None and source.device == target.device:
                self.seen.append(stream.owner)
            super().copy(source, target, stream)

    x = floats(2, 3)
    feeds = {"most": scalar(2, np.int64), "start": scalar(True, np.bool_), "x": x}
    with ExitStack() as stack:
        sessions = []
        for name in ("First", "Second"):
            cls = type(name, (Owns,), {"name": name, "state": state, "stream_aware": True, "seen": []})
            stack.enter_context(registered(host, cls))
            sessions.append(open_session(host, cls, parse(LOOP).SerializeToString()))
            assert_equal(sessions[-1].run(None, feeds), loop_expected(2, x))
            assert set(cls.seen) == ({name} if has_streams(host) else set())  # type: ignore[attr-defined]
        del sessions
        gc.collect()


class LateWorker:
    """Works only when it is waited for."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], Any]] = []
        self.used: set[int] = set()
        """Addresses of memory that the tasks use."""

    def add(self, task: Callable[[], Any]) -> None:
        self.tasks.append(task)

    def wait(self) -> None:
        for task in self.tasks:
            task()
        self.tasks.clear()
        self.used.clear()

    stop = wait


class LateLaunch(Launch):
    def compute(self, ctx: ep.KernelContext) -> None:
        super().compute(ctx)
        tensors: list[Any] = [*ctx.inputs, self.state.given_tensor]  # type: ignore[attr-defined]
        ctx.stream.worker.used.update(tensor.ptr for tensor in tensors)  # type: ignore[union-attr]


class LateNotification(Notification):
    def wait_on_host(self) -> None:
        self.stream.worker.wait()


class LateStream(Stream):
    def __init__(self, state: Any) -> None:
        self.state, self.worker = state, LateWorker()  # type: ignore[assignment]
        state.stream = self

    def create_notification(self) -> ep.SyncNotification:
        return LateNotification(self)


class _Counts(Allocator):
    """Counts blocks that anybody may have again while a stream still works on them."""

    def free(self, address: int) -> None:
        state: Any = self.state
        used = state.stream.worker.used if hasattr(state, "stream") else set()
        state.counts["freed in use"] += address in used and address not in state.of_stream
        super().free(address)


class LateAllocator(_Counts, StreamAllocator):
    def alloc_on_stream(self, size: int, stream: ep.SyncStream | None) -> int:
        address = super().alloc_on_stream(size, stream)
        self.state.of_stream.add(address)  # type: ignore[attr-defined]
        return address


class PlainLateAllocator(_Counts):
    pass


class LateTransfer(FlowTransfer):
    def copy(self, source: ep.DeviceTensor, target: ep.DeviceTensor, stream: ep.SyncStream | None) -> None:
        super().copy(source, target, stream)
        if isinstance(stream, LateStream):
            stream.worker.used.update((source.ptr, target.ptr))


def run_late(allocator: Any, text: str, feeds: dict[str, Any]) -> list[Any]:
    """What the model gives; nothing may be given away that the device still uses."""
    cls = device_flows(
        stream_aware=True,
        allocator=allocator,
        create_sync_stream=classmethod(lambda cls, device, options: LateStream(cls.state)),
        create_data_transfer=classmethod(lambda cls: LateTransfer(cls.state)),
        compile=lambda self, graph: LateLaunch(self.state, graph),
    )
    cls.state.of_stream = set()  # type: ignore[attr-defined]
    found = run_once(HOSTS["ours"], cls, parse(text).SerializeToString(), feeds)
    assert cls.state.counts["freed in use"] == 0
    return found


@pytest.mark.parametrize("allocator", [LateAllocator, PlainLateAllocator])
def test_iterations_do_not_give_memory_away_that_the_device_still_reads(allocator: Any) -> None:
    """Whether they know streams or not: each iteration is waited for."""
    x = floats(2, 3)
    feeds = {"most": scalar(4, np.int64), "start": scalar(True, np.bool_), "x": x}
    last, each = run_late(allocator, LOOP.replace("Add (v, x)", "Add (v, v)"), feeds)
    np.testing.assert_array_equal(last, x * 16)
    np.testing.assert_array_equal(each, [(x * 2**i) ** 2 for i in range(1, 5)])


@pytest.mark.parametrize("allocator", [LateAllocator, PlainLateAllocator])
def test_what_a_scan_still_copies_is_not_given_away(allocator: Any) -> None:
    s, x = floats(2), floats(2, 6)
    last, squares = run_late(allocator, SCAN, {"s": s, "x": x})
    np.testing.assert_array_equal(squares, x * x)
    np.testing.assert_allclose(last, s + (x * x).sum(1))


@pytest.mark.parametrize("op", ["Mul (a, a)", "Sigmoid (a)"])
def test_a_body_of_several_providers_waits_for_its_inputs(op: str) -> None:
    """The Scan transposes x on its provider's stream; the body reads it on another one's, or on the CPU."""
    host, shared = HOSTS["ours"], {"stream_aware": True, "allocator": StreamAllocator}
    cls = device_flows(wanted=("Add",), **shared)
    other = device_class(name="OtherExecutionProvider", state=cls.state, wanted=("Mul",), **shared)
    cls.state.delay = 0.002
    s, x = floats(2), floats(2, 6)
    expected = x * x if op.startswith("Mul") else 1 / (1 + np.exp(-x))
    with registered(host, cls), registered(host, other):
        options = host.SessionOptions()
        for name in (cls.name, other.name):
            options.add_provider_for_devices([d for d in host.get_ep_devices() if d.ep_name == name], {})
        session = host.InferenceSession(parse(SCAN.replace("Mul (a, a)", op)).SerializeToString(), options)
        found = [session.run(None, {"s": s, "x": x}) for _ in range(5)]
        del session
        gc.collect()
    for last, each in found:
        np.testing.assert_allclose(each, expected, rtol=1e-6)
        np.testing.assert_allclose(last, s + expected.sum(1), rtol=1e-6)


def test_values_without_bytes_are_not_copied(host: ModuleType) -> None:
    class Watches(FlowTransfer):
        def copy_tensors(self, sources: Any, targets: Any, streams: Any) -> None:
            assert all(tensor.nbytes for tensor in (*sources, *targets))
            super().copy_tensors(sources, targets, streams)

    cls = device_flows(create_data_transfer=classmethod(lambda cls: Watches(cls.state)))
    feeds = {
        "most": scalar(3, np.int64),
        "start": scalar(True, np.bool_),
        "x": np.empty((2, 0), np.float32),
    }
    last, each = run_once(host, cls, parse(LOOP.replace("2, 3", "2, 0")).SerializeToString(), feeds)
    assert (last.shape, each.shape) == ((2, 0), (3, 2, 0))
