"""What a provider decides for each session: which memory it works in, its own allocator and streams."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import numpy_device
import pytest
from device_support import (
    EXPECTED,
    FEEDS,
    SPLIT_EXPECTED,
    A,
    W,
    chain,
    has_streams,
    left_nothing,
    split,
)
from ep_support import HOSTS, OLD_STOCK, mul_model, open_session, registered, run_once, skip_old_stock
from numpy_device import NAME, VENDOR_ID, NumpyDevice, device_class

from ort_abi import ep, errors
from ort_abi._lib import api, check, ffi
from ort_abi.ep._factory.factory import Factory

OURS = HOSTS["ours"]


class TwoDevices(NumpyDevice):
    """Offers its device twice, with memories of its own each; the option `work_on` says which to use."""

    kinds = ("default", "host_accessible")

    @classmethod
    def get_supported_devices(cls, devices: Sequence[ep.Device]) -> Any:
        return [dataclasses.replace(devices[0], device_id=index) for index in range(2)]

    @classmethod
    def memory_infos(cls, device: ep.Device) -> Iterable[ep.MemoryInfo]:
        number = device.device_id
        return [ep.MemoryInfo(f"{kind} {number}", "GPU", VENDOR_ID, number, kind) for kind in cls.kinds]


class Choosing(TwoDevices):
    def default_memory_device(self) -> ep.MemoryDevice | None:
        chosen = self.options.get("work_on", "")
        return ep.MemoryDevice("GPU", VENDOR_ID, int(chosen[0]), "accessible" in chosen) if chosen else None


def two_devices(base: type[NumpyDevice] = Choosing, **members: Any) -> type[NumpyDevice]:
    return type("Two", (base,), {"state": numpy_device.State()} | members)


def seen_devices(cls: type[NumpyDevice]) -> set[int]:
    """Numbers of the devices that kernels found their tensors on."""
    return cls.state.__dict__.setdefault("numbers", set())


class Watching(numpy_device.Launch):
    def compute(self, ctx: ep.KernelContext) -> None:
        self.state.__dict__.setdefault("numbers", set()).update(t.device.device_id for t in ctx.inputs)
        super().compute(ctx)


# ---- the default memory device ----


@pytest.mark.parametrize("number", [0, 1])
def test_the_default_memory_device_is_where_kernels_work(host: ModuleType, number: int) -> None:
    skip_old_stock(host)
    cls = two_devices(compile=lambda self, graph: Watching(self.state, graph))
    with registered(host, cls):
        session = open_session(host, cls, chain(), options={"work_on": str(number)})
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        if host is OURS:
            assert [memory.id for memory in session.get_input_memory_infos()] == [number]
        del session
        gc.collect()
    assert seen_devices(cls) == {number}
    assert left_nothing(cls)


def test_in_host_accessible_memory_kernels_have_arrays(host: ModuleType) -> None:
    skip_old_stock(host)
    cls = two_devices(
        get_capability=lambda self, graph: [graph.nodes],
        compile=lambda self, graph: lambda a: np.maximum(a * W + a, 0),
    )
    with registered(host, cls):
        session = open_session(host, cls, chain(), options={"work_on": "1 accessible"})
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        del session
        gc.collect()
    assert left_nothing(cls)


def test_without_a_default_the_devices_must_agree(host: ModuleType) -> None:
    """Stock 1.32 takes the first device's memory instead; 1.24 agrees with us."""
    cls = two_devices(compile=lambda self, graph: Watching(self.state, graph))
    with registered(host, cls):
        if host is OURS:
            with pytest.raises(errors.EPFail, match=r"different memory \('default 0' and 'default 1'\)"):
                open_session(host, cls, chain())
        elif OLD_STOCK:
            with pytest.raises(Exception, match="to use the same device_memory_info"):
                open_session(host, cls, chain())
        else:
            session = open_session(host, cls, chain())
            np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
            assert seen_devices(cls) == {0}
            del session
        gc.collect()
    assert left_nothing(cls)


@pytest.mark.parametrize(
    "given, told",
    [
        (
            ep.MemoryDevice("GPU", 7),
            r"gave MemoryDevice\(type='GPU', vendor_id=7.*memory_infos\(\) has only Mem",
        ),
        (ep.MemoryDevice("CPU"), r"gave MemoryDevice\(type='CPU'.*memory_infos\(\) has only MemoryDevice"),
        ("gpu", "must return an ort_abi.ep.MemoryDevice, not 'gpu'"),
        (0, "must return an ort_abi.ep.MemoryDevice, not 0"),
    ],
)
def test_a_default_memory_device_that_is_none_of_its_own(host: ModuleType, given: Any, told: str) -> None:
    skip_old_stock(host)
    cls = device_class(default_memory_device=lambda self: given)
    with registered(host, cls):
        objects = ep.live_objects()
        with pytest.raises(Exception, match=rf"{NAME}.*OrtEp::GetDefaultMemoryDevice.*: .*{told}"):
            open_session(host, cls, chain())
        gc.collect()
        assert ep.live_objects() == objects
    assert left_nothing(cls)


SLOTS = {
    "CreateAllocator": "create_session_allocator",
    "CreateSyncStreamForDevice": "create_session_stream",
    "GetDefaultMemoryDevice": "default_memory_device",
    "Sync": "sync",
}


@pytest.mark.parametrize("defined", [None, *SLOTS])
def test_a_host_sees_the_slots_that_are_defined(host: ModuleType, defined: str | None) -> None:
    """In the struct that it has."""
    seen: set[str] = set()

    class Mul(ep.Kernel):
        def __init__(self, info: ep.KernelInfo) -> None:
            out = ffi.new("const OrtEp**")
            check(info._host.ep_api.KernelInfo_GetEp(info._pointer, out), info._host.api)
            seen.update(slot for slot in SLOTS if getattr(out[0], slot) != ffi.NULL)

        def compute(self, ctx: ep.KernelContext) -> None:
            np.multiply(*ctx.inputs, out=ctx.output(0, (3,)))

    members = {"name": "SlotsExecutionProvider", "mul": ep.kernel("Mul", (7, None))(Mul)}
    if defined is not None:
        members[SLOTS[defined]] = lambda self, *arguments: None
    cls = type("Slots", (ep.ExecutionProvider,), members)
    array = np.ones(3, np.float32)
    np.testing.assert_array_equal(run_once(host, cls, mul_model(), {"a": array, "b": array})[0], array)
    assert seen == ({defined} if defined else set())


# ---- the session's own allocator ----


class Own(NumpyDevice):
    """Each session has allocators of its own, of a size that its options tell."""

    made: list[Any]

    def create_session_allocator(self, memory: ep.MemoryInfo) -> ep.Allocator | None:
        self.state.called("create_session_allocator")
        made = numpy_device.Allocator(self.state, memory.kind)
        made.session, made.memory = self, memory  # type: ignore[attr-defined]
        self.made.append(made)
        return made


def test_a_session_has_an_allocator_of_its_own(host: ModuleType) -> None:
    cls = type("Own", (Own,), {"state": numpy_device.State(), "made": []})
    with registered(host, cls):
        shared = cls.state.counts["create_allocator"]
        first = open_session(host, cls, chain(), options={"pool": "1"})
        second = open_session(host, cls, chain(), options={"pool": "2"})
        for session in (first, second):
            np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        made: list[Any] = cls.made  # type: ignore[attr-defined]
        kinds = [(each.session.options["pool"], each.memory.kind) for each in made]
        assert {("1", "default"), ("2", "default"), ("1", "read_only"), ("2", "read_only")} <= {*kinds}
        assert cls.state.counts["create_allocator"] == shared  # the factory's is for the process
        del first, second, session
        gc.collect()
        assert cls.state.counts["close allocator"] == len(made)
    assert left_nothing(cls)


def test_without_one_the_sessions_is_what_the_class_makes(host: ModuleType) -> None:
    seen: list[Mapping[str, str]] = []

    @classmethod  # type: ignore[misc]
    def create_allocator(cls: Any, memory: ep.MemoryInfo, options: Mapping[str, str]) -> ep.Allocator:
        seen.append(options)
        return numpy_device.Allocator(cls.state, memory.kind)

    cls = device_class(create_allocator=create_allocator, kinds=("default",))
    with registered(host, cls):
        assert seen == [{}]
        session = open_session(host, cls, chain())
        assert seen == [{}, {}]
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        del session
        gc.collect()
    assert left_nothing(cls)


def test_no_allocator_for_weights_means_the_default_one(host: ModuleType) -> None:
    """None of a session; 1.24 would follow a NULL pointer there."""

    def create_session_allocator(self: NumpyDevice, memory: ep.MemoryInfo) -> ep.Allocator | None:
        return None if memory.kind == "read_only" else self.create_allocator(memory, {})

    cls = device_class(create_session_allocator=create_session_allocator)
    with registered(host, cls):
        session = open_session(host, cls, chain())
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        assert cls.state.counts["read_only"] == 0
        del session
        gc.collect()
    assert left_nothing(cls)


@pytest.mark.parametrize("given", ["x", 5, ep.Allocator])
def test_what_is_no_allocator(host: ModuleType, given: Any) -> None:
    cls = device_class(create_session_allocator=lambda self, memory: given)
    with registered(host, cls):
        objects = ep.live_objects()
        told = r"CreateAllocator.*: TypeError: .*create_session_allocator\(\) must return an ort_abi.ep.All"
        with pytest.raises(Exception, match=told):
            open_session(host, cls, chain())
        gc.collect()
        assert ep.live_objects() == objects
    assert left_nothing(cls)


# ---- the session's own streams ----


def test_a_session_has_streams_of_its_own(host: ModuleType) -> None:
    """The factory's are for those of an application."""
    made: list[ep.MemoryDevice] = []

    def create_session_stream(self: NumpyDevice, device: ep.MemoryDevice) -> ep.SyncStream:
        assert isinstance(self, ep.ExecutionProvider) and self.options == {"lane": "2"}
        made.append(device)
        return numpy_device.Stream(self.state)

    cls = device_class(stream_aware=True, create_session_stream=create_session_stream)
    cls.state.delay = 0.002
    with registered(host, cls):
        session = open_session(host, cls, split(), options={"lane": "2"}, fallback=True)
        for _ in range(3):
            np.testing.assert_allclose(session.run(None, FEEDS)[0], SPLIT_EXPECTED, rtol=1e-6)
        assert made == ([ep.MemoryDevice("GPU", VENDOR_ID)] if has_streams(host) else [])
        assert cls.state.counts["create_sync_stream"] == 0
        del session
        gc.collect()
        assert cls.state.counts["close stream"] == len(made)
    assert left_nothing(cls)


def test_the_default_of_a_sessions_stream_is_the_classs(host: ModuleType) -> None:
    """What an author calls who only adds something to it."""
    if not has_streams(host):
        pytest.skip("this host is told of no streams")
    base = ep.ExecutionProvider.create_session_stream
    cls = device_class(stream_aware=True, create_session_stream=lambda self, device: base(self, device))
    with registered(host, cls):
        session = open_session(host, cls, chain())
        np.testing.assert_array_equal(session.run(None, {"a": A})[0], EXPECTED)
        assert cls.state.counts["create_sync_stream"] == 1 and cls.state.options == {}  # type: ignore[attr-defined]
        del session
        gc.collect()
    assert left_nothing(cls)


@pytest.mark.parametrize("given", [None, "x", ep.SyncStream])
def test_what_is_no_stream_of_a_session(host: ModuleType, given: Any) -> None:
    if not has_streams(host):
        pytest.skip("this host is told of no streams")
    wrong = [True]

    def create_session_stream(self: NumpyDevice, device: ep.MemoryDevice) -> Any:
        return given if wrong else numpy_device.Stream(self.state)

    cls = device_class(stream_aware=True, create_session_stream=create_session_stream)
    with registered(host, cls):
        session = open_session(host, cls, chain())
        told = (
            r"OrtEp::CreateSyncStreamForDevice: .*create_session_stream\(\) must return an ort_abi.ep.SyncStr"
        )
        with pytest.raises(Exception, match=told):
            session.run(None, FEEDS)
        wrong.clear()
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        del session
        gc.collect()
    assert left_nothing(cls)


# ---- hosts that cannot take a registration back ----


def test_what_old_hosts_ask_for_is_made_early_and_once() -> None:
    cls = device_class()
    factory = Factory(cls)
    infos = [*cls.memory_infos(None)]  # type: ignore[arg-type]
    for info in infos:
        factory.info_of(api, info)
    factory.make_early(SimpleNamespace(version=30))
    assert cls.state.counts["create_allocator"] == cls.state.counts["create_data_transfer"] == 0
    factory.make_early(SimpleNamespace(version=29))
    counts = cls.state.counts
    assert (counts["create_allocator"], counts["create_data_transfer"]) == (2, 1)  # none for read-only memory
    first, again = (factory.new_allocator(infos[0], {}) for _ in range(2))
    assert first is not None and again is not first and counts["create_allocator"] == 3
    cls.state.failing = "close allocator"
    with pytest.raises(numpy_device.Boom):
        factory.close()  # the other allocator, and the transfer, which nobody asked for
    assert (counts["close allocator"], counts["close transfer"]) == (1, 1)


# ---- two providers with streams ----


class TwoLanes(NumpyDevice):
    """One of two providers: its streams and what its kernels find as theirs are of its own kind."""

    stream_aware = True
    found: list[Any]

    def create_session_stream(self, device: ep.MemoryDevice) -> ep.SyncStream:
        stream = numpy_device.Stream(self.state)
        stream.owner = self.name  # type: ignore[attr-defined]
        return stream

    def compile(self, graph: Any) -> ep.Kernel:
        found = self.found

        class Finding(numpy_device.Launch):
            def compute(self, ctx: ep.KernelContext) -> None:
                found.append(None if ctx.stream is None else ctx.stream.owner)  # type: ignore[attr-defined]
                super().compute(ctx)

        return Finding(self.state, graph)


def test_a_stream_of_another_provider_is_waited_for(host: ModuleType) -> None:
    """Stock has one stream for all providers with a device of a type: the second one gets none, and what the
    first one left on its stream is done. Our host has one for each."""
    state = numpy_device.State()
    state.delay = 0.005
    first = type("First", (TwoLanes,), {"state": state, "found": [], "wanted": ("Mul", "Relu")})
    second = type(
        "Second", (TwoLanes,), {"state": state, "found": [], "wanted": ("Add",), "name": "SecondProvider"}
    )
    with registered(host, first), registered(host, second):
        options = host.SessionOptions()
        options.graph_optimization_level = host.GraphOptimizationLevel.ORT_DISABLE_ALL
        for cls in (first, second):
            devices = [device for device in host.get_ep_devices() if device.ep_name == cls.name]
            options.add_provider_for_devices(devices, {})
        session = host.InferenceSession(chain(), options)
        for factor in range(5):
            np.testing.assert_array_equal(
                session.run(None, {"a": factor * A})[0], np.maximum(factor * A * W + factor * A, 0)
            )
        assert first.found == ([NAME] * 10 if has_streams(host) else [None] * 10)  # type: ignore[attr-defined]
        assert second.found == ([second.name] * 5 if host is OURS else [None] * 5)  # type: ignore[attr-defined]
        del session
        gc.collect()
    assert left_nothing(first)
