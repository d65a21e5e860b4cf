"""Callbacks of a provider with a device fail in turn: a clear error, nothing left, the next run works."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import numpy_device
import pytest
from c_host import c_host
from device_support import (
    EXPECTED,
    FEEDS,
    SPLIT_EXPECTED,
    A,
    Plug,
    W,
    chain,
    has_streams,
    left_nothing,
    split,
    unreported,
)
from ep_support import HOSTS, OLD_STOCK, open_session, registered, run_once, skip_old_stock
from numpy_device import NAME, VENDOR_ID, NumpyDevice, StreamAllocator, device_class

import ort_abi
from ort_abi import OrtValue, env, ep, errors
from ort_abi._lib import check, ep_api, ffi

OURS = HOSTS["ours"]

# ---- failures ----

CREATING = {
    "memory_infos": "OrtEpFactory::GetSupportedDevices",
    "create_allocator": "OrtEpFactory::CreateAllocator",
    "create_data_transfer": "OrtEpFactory::CreateDataTransfer",
}


@pytest.mark.parametrize("callback", CREATING)
def test_what_fails_at_registration(host: ModuleType, callback: str) -> None:
    objects, cls = ep.live_objects(), device_class()
    cls.state.failing = callback
    with pytest.raises(Exception, match="broke here") as caught:
        ep.register_with(host, cls)
    told = str(caught.value)
    slot = "OrtEpFactory::GetSupportedDevices" if host is not OURS and OLD_STOCK else CREATING[callback]
    assert slot in told and NAME in told and "Boom" in told and "Traceback" in told
    assert ep.live_objects() == objects
    cls.state.failing = ""
    np.testing.assert_array_equal(run_once(host, cls, chain(), FEEDS)[0], EXPECTED)
    assert left_nothing(cls)


OPENING = {
    "create_session_allocator": "OrtEp::CreateAllocator",
    "default_memory_device": "OrtEp::GetDefaultMemoryDevice",
}


def fails(name: str) -> Callable[..., Any]:
    """A method that counts its calls, and fails if asked to; else it does what the base class does."""

    def method(self: NumpyDevice, *arguments: Any) -> Any:
        given = self.state.called(name)
        return getattr(NumpyDevice, name)(self, *arguments) if given is None else given

    return method


@pytest.mark.parametrize("callback", OPENING)
def test_what_fails_when_a_session_is_made(host: ModuleType, callback: str) -> None:
    if callback == "default_memory_device":
        skip_old_stock(host)
    cls = device_class(**{callback: fails(callback)})
    with registered(host, cls):
        objects = ep.live_objects()
        cls.state.failing = callback
        with pytest.raises(Exception, match=f"{callback} broke here") as caught:
            open_session(host, cls, chain())
        told = str(caught.value)
        assert OPENING[callback] in told and NAME in told and "Boom" in told
        del caught
        gc.collect()
        assert ep.live_objects() == objects
        cls.state.failing = ""
        session = open_session(host, cls, chain())
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        assert cls.state.counts[callback] >= 2
        del session
        gc.collect()
    assert left_nothing(cls)


RUNNING = {
    "create_session_stream": "OrtEp::CreateSyncStreamForDevice",
    "copy": "CopyTensors",  # in stock the copy may be the node MemcpyFromHost
    "compute": "OrtNodeComputeInfo::Compute",
    "create_notification": "OrtSyncStreamImpl::CreateNotification",
    "activate": "OrtSyncNotificationImpl::Activate",
    "wait_on_host": "OrtSyncNotificationImpl::WaitOnHost",
    "flush": "OrtSyncStreamImpl::Flush",
    "on_session_run_end": "OrtSyncStreamImpl::OnSessionRunEnd",
}


# Stock logs these and goes on.
ONLY_LOGGED = {"activate", "wait_on_host", "flush"}


@pytest.mark.parametrize("callback", RUNNING)
def test_what_fails_in_a_run(host: ModuleType, callback: str) -> None:
    if not has_streams(host) and callback not in ("copy", "compute"):
        pytest.skip("this host is told of no streams")
    cls = device_class(stream_aware=True, create_session_stream=fails("create_session_stream"))
    with registered(host, cls):
        session = open_session(host, cls, split(), fallback=True)
        objects, cls.state.failing = ep.live_objects(), callback
        if host is OURS or callback not in ONLY_LOGGED:
            with pytest.raises(Exception, match=f"{callback} broke here") as caught:
                session.run(None, FEEDS)
            told = str(caught.value)
            assert RUNNING[callback] in told and NAME in told and "Boom" in told
            assert host is not OURS or ("Traceback" in told and type(caught.value) is errors.RuntimeException)
            del caught
        else:
            session.run(None, FEEDS)
        cls.state.failing = ""
        gc.collect()
        assert ep.live_objects() - objects in (0, 1)  # a stream may be kept for the next run
        np.testing.assert_allclose(session.run(None, FEEDS)[0], SPLIT_EXPECTED, rtol=1e-6)
        assert cls.state.counts[callback] >= 2
        del session
        gc.collect()
    assert left_nothing(cls)


def test_sync_that_fails(device: Plug) -> None:
    cls = device_class()
    device(cls)
    session, a = open_session(OURS, cls, chain()), OrtValue.ortvalue_from_numpy(A, "gpu")
    cls.state.failing = "sync"
    with pytest.raises(errors.RuntimeException, match=r"OrtEp::Sync.*sync broke here"):
        session.run(None, {"a": a})
    cls.state.failing = ""
    np.testing.assert_array_equal(session.run(None, {"a": a})[0], EXPECTED)


def test_sync_that_fails_in_stock() -> None:
    """Where the caller asks for it."""
    host, cls = HOSTS["stock"], device_class()
    skip_old_stock(host)

    def work() -> None:
        session = open_session(host, cls, chain())
        binding = session.io_binding()
        binding.bind_ortvalue_input("a", host.OrtValue.ortvalue_from_numpy(A, "gpu", 0, VENDOR_ID))
        binding.bind_output("y")
        cls.state.failing = "sync"
        with pytest.raises(RuntimeError, match=r"OrtEp::Sync.*sync broke here"):
            binding.synchronize_inputs()
        cls.state.failing = ""
        binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], EXPECTED)

    with registered(host, cls):
        work()
        gc.collect()
    assert left_nothing(cls)


def test_statistics_in_both_hosts(host: ModuleType) -> None:
    cls = device_class()
    with c_host(host) as c:
        c.register(cls)
        allocator = c.shared_allocator(c.memory(cls))
        ask = c.api.AllocatorGetStats
        cls.state.failing = "stats"
        with pytest.raises(errors.RuntimeException, match=r"OrtAllocator::GetStats.*stats broke here"):
            c.made("OrtKeyValuePairs*", ask, allocator)
        cls.state.failing = ""
        pairs = c.made("OrtKeyValuePairs*", ask, allocator)
        assert ffi.string(c.api.GetKeyValue(pairs, b"InUse")) == b"0"
        c.api.ReleaseKeyValuePairs(pairs)
        c.unregister(cls)
    assert left_nothing(cls)


def test_statistics_that_fail(device: Plug) -> None:
    cls = device_class()
    found = device(cls)
    memory = found.memory_info()
    assert memory is not None
    cls.state.failing = "stats"
    with pytest.raises(errors.RuntimeException, match=r"OrtAllocator::GetStats.*stats broke here"):
        ort_abi.allocator_stats(memory)
    cls.state.given = 5
    with pytest.raises(errors.RuntimeException, match=r"OrtAllocator::GetStats.*TypeError"):
        ort_abi.allocator_stats(memory)
    cls.state.failing = ""
    assert ort_abi.allocator_stats(memory) == {"InUse": "0"}


def test_slots_without_a_status_print_and_count(device: Plug, capfd: pytest.CaptureFixture[str]) -> None:
    cls = device_class(stream_aware=True)
    found = device(cls)
    value, stream = OrtValue.ortvalue_from_numpy(A, "gpu"), found.create_sync_stream()

    def fails(act: Callable[[], Any]) -> Callable[[], None]:
        def expect() -> None:
            with pytest.raises(errors.OrtError):
                act()

        return expect

    def allocate() -> OrtValue:
        return OrtValue.ortvalue_from_shape_and_type([4], np.float32, "gpu")

    assert unreported(cls, "alloc", fails(allocate)) == 1
    assert unreported(cls, "can_copy", fails(value.numpy)) >= 1
    assert unreported(cls, "handle", lambda: stream.get_handle() == 0) == 1
    assert unreported(cls, "close stream", stream.close) == 1
    printed = capfd.readouterr().err
    for slot in ("OrtAllocator::Alloc", "OrtDataTransferImpl::CanCopy", "OrtSyncStreamImpl::GetHandle"):
        assert f"{NAME}: {slot}: numpy_device.Boom: " in printed
    assert f"{NAME}: OrtSyncStreamImpl::Release: numpy_device.Boom: close stream broke here" in printed
    np.testing.assert_array_equal(value.numpy(), A)

    kept = [value]
    del value
    assert unreported(cls, "free", kept.clear) == 1
    assert f"{NAME}: OrtAllocator::Free: numpy_device.Boom: free broke here" in capfd.readouterr().err
    (address,) = cls.state.memory._blocks
    cls.state.memory.free(address)


@pytest.mark.parametrize(
    "callback, given, told",
    [
        ("memory_infos", [1], r"memory_infos\(\) must give MemoryInfo objects, not 1"),
        ("create_allocator", 1, r"create_allocator\(\) must return an ort_abi.ep.Allocator, not 1"),
        (
            "create_data_transfer",
            1,
            r"create_data_transfer\(\) must return an ort_abi.ep.DataTransfer, not 1",
        ),
    ],
)
def test_wrong_results_at_registration(host: ModuleType, callback: str, given: Any, told: str) -> None:
    cls = device_class()
    cls.state.failing, cls.state.given = callback, given
    with pytest.raises(Exception, match=told):
        ep.register_with(host, cls)
    assert ep.live_objects() == 0


def test_wrong_results_later(device: Plug, capfd: pytest.CaptureFixture[str]) -> None:
    cls = device_class(stream_aware=True)
    found = device(cls)
    stream = found.create_sync_stream()
    cls.state.given, cls.state.failing = "x", "create_sync_stream"
    with pytest.raises(errors.RuntimeException, match=r"must return an ort_abi.ep.SyncStream, not 'x'"):
        found.create_sync_stream()
    session = open_session(OURS, cls, split(), fallback=True)
    cls.state.given, cls.state.failing = "x", "create_notification"
    with pytest.raises(errors.RuntimeException, match=r"must return an ort_abi.ep.SyncNotification, not 'x'"):
        session.run(None, FEEDS)
    assert unreported(cls, "handle", lambda: stream.get_handle() == 0, "x") == 1
    assert "handle() must return an address, not 'x'" in capfd.readouterr().err


def test_a_provider_without_streams_says_so(device: Plug) -> None:
    undefined = ep.ExecutionProvider.create_sync_stream
    found = device(device_class(stream_aware=True, create_sync_stream=undefined))
    with pytest.raises(errors.NotImplemented, match="does not define create_sync_stream"):
        found.create_sync_stream()


def test_only_a_stream_aware_provider_has_streams(device: Plug) -> None:
    found = device(device_class())
    with pytest.raises(errors.NotImplemented, match=f"{NAME} has no streams"):
        found.create_sync_stream()


def test_a_callable_cannot_write_device_memory() -> None:
    cls = device_class(compile=lambda self, graph: lambda *inputs: A)
    with pytest.raises(errors.NotImplemented, match=r"the output is in device memory: a Kernel can write it"):
        run_once(OURS, cls, chain(), FEEDS)
    assert left_nothing(cls)


def test_no_data_transfer_is_an_error_that_names_the_devices(device: Plug) -> None:
    cls = device_class(create_data_transfer=classmethod(lambda cls: None))
    device(cls)
    with pytest.raises(errors.NotImplemented, match=r"GPU .vendor 0xbe58, device 0"):
        OrtValue.ortvalue_from_numpy(A, "gpu")


def test_without_an_allocator_kernels_work_in_cpu_memory(host: ModuleType) -> None:
    cls = device_class(
        create_allocator=classmethod(lambda cls, memory, options: None),
        kinds=() if host is HOSTS["stock"] else ("default",),  # stock refuses to register such a provider
        get_capability=lambda self, graph: [graph.nodes],
        compile=lambda self, graph: lambda a: np.maximum(a * W + a, 0),
    )
    np.testing.assert_array_equal(run_once(host, cls, chain(), FEEDS)[0], EXPECTED)
    assert cls.state.counts["copy"] == 0


def test_no_allocator_means_the_cpus(device: Plug) -> None:
    cls = device_class(create_allocator=classmethod(lambda cls, memory, options: None), wanted=())
    found = device(cls)
    value = OrtValue.ortvalue_from_shape_and_type([3], np.float32, memory_info=found.memory_info())
    assert value.device_name() == "cpu"


# ---- slots that sessions do not call, or not at every time: called as a host would ----


def allocator_of(found: ort_abi.OrtEpDevice) -> Any:
    """The `OrtAllocator*` that the provider made for the device's memory."""
    memory = found.memory_info()
    assert memory is not None
    return env.shared_allocator(memory)


def implementation_of(stream: ort_abi.OrtSyncStream) -> Any:
    """The `OrtSyncStreamImpl*` that the provider made."""
    return ffi.cast("OrtSyncStreamImpl*", ep_api.SyncStream_GetImpl(stream.pointer))


def notification_of(stream: ort_abi.OrtSyncStream) -> Any:
    """A new `OrtSyncNotificationImpl*` (release with its Release). Raises what the stream raises."""
    implementation, out = implementation_of(stream), ffi.new("OrtSyncNotificationImpl**")
    check(implementation.CreateNotification(implementation, out))
    return out[0]


@pytest.mark.parametrize("given", [None, "x", -1, 1 << 64, True, 1.5])
@pytest.mark.parametrize("callback", ["alloc", "reserve", "alloc_on_stream"])
def test_what_is_no_address_is_no_memory(
    device: Plug, capfd: pytest.CaptureFixture[str], callback: str, given: Any
) -> None:
    slots = {"alloc": "Alloc", "reserve": "Reserve", "alloc_on_stream": "AllocOnStream"}
    wrong: type[StreamAllocator] = type("Wrong", (StreamAllocator,), {callback: lambda self, *size: given})
    right = getattr(StreamAllocator, callback)
    found = device(device_class(stream_aware=True, allocator=wrong))
    allocator, stream = allocator_of(found), found.create_sync_stream()
    arguments = (allocator, 8, stream.pointer) if callback == "alloc_on_stream" else (allocator, 8)
    allocate, before = getattr(allocator, slots[callback]), ep.unreported_errors()
    assert allocate(*arguments) == ffi.NULL and ep.unreported_errors() == before + 1
    message = f"{NAME}: OrtAllocator::{slots[callback]}: TypeError: Wrong.{callback}() must return an address"
    assert f"{message}, not {given!r}" in capfd.readouterr().err
    setattr(wrong, callback, right)
    address = allocate(*arguments)
    assert address != ffi.NULL and ep.unreported_errors() == before + 1
    allocator.Free(allocator, address)


def test_memory_that_cannot_be_had(device: Plug, capfd: pytest.CaptureFixture[str]) -> None:
    """0 says so; a size that no memory has is the author's to refuse."""
    cls = device_class()
    cls.state.memory.limit = 100
    allocator, before = allocator_of(device(cls)), ep.unreported_errors()
    assert allocator.Alloc(allocator, 101) == ffi.NULL and ep.unreported_errors() == before
    assert allocator.Alloc(allocator, 2**64 - 1) == ffi.NULL
    assert capfd.readouterr().err == ""


def test_shrink_that_fails(device: Plug) -> None:
    cls = device_class(allocator=StreamAllocator)
    allocator = allocator_of(device(cls))
    cls.state.failing = "shrink"
    with pytest.raises(errors.RuntimeException, match=rf"{NAME}: OrtAllocator::Shrink: .*shrink broke here"):
        check(allocator.Shrink(allocator))
    cls.state.failing = ""
    check(allocator.Shrink(allocator))
    assert cls.state.counts["shrink"] == 2


def test_a_run_that_shrinks(host: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    """A run can be told to. A failure is logged: the run is done."""
    cls = device_class(allocator=StreamAllocator)
    skip_old_stock(host)
    options = host.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "gpu:0")
    with registered(host, cls):
        session = open_session(host, cls, chain())
        for failing, count in (("", 1), ("shrink", 2), ("", 3)):
            cls.state.failing = failing
            np.testing.assert_array_equal(session.run(None, FEEDS, options)[0], EXPECTED)
            assert cls.state.counts["shrink"] == count
            assert ("OrtAllocator::Shrink" in capfd.readouterr().err) is bool(failing)
        del session
        gc.collect()
    assert left_nothing(cls)


def test_what_an_allocator_does_not_define_is_not_there(device: Plug) -> None:
    allocator = allocator_of(device(device_class()))
    assert allocator.Shrink == ffi.NULL and allocator.AllocOnStream == ffi.NULL
    assert allocator.GetStats != ffi.NULL and allocator.Reserve != ffi.NULL


@pytest.mark.parametrize("callback", ["activate", "wait_on_device", "wait_on_host"])
def test_notifications_that_fail(device: Plug, callback: str) -> None:
    slots = {"activate": "Activate", "wait_on_device": "WaitOnDevice", "wait_on_host": "WaitOnHost"}
    cls = device_class(stream_aware=True)
    found = device(cls)
    producer, consumer = found.create_sync_stream(), found.create_sync_stream()
    notification = notification_of(producer)
    more = (consumer.pointer,) if callback == "wait_on_device" else ()
    slot = getattr(notification, slots[callback])
    cls.state.failing = callback
    told = rf"{NAME}: OrtSyncNotificationImpl::{slots[callback]}: .*{callback} broke here"
    with pytest.raises(errors.RuntimeException, match=told):
        check(slot(notification, *more))
    cls.state.failing = ""
    check(notification.Activate(notification))
    check(slot(notification, *more))
    assert cls.state.counts[callback] >= 2
    notification.Release(notification)
    assert cls.state.counts["close notification"] == 1


def twin_stream(device: Plug, cls: type[NumpyDevice]) -> ort_abi.OrtSyncStream:
    """A stream of another provider, on the same device."""
    members = {"state": cls.state, "name": "TwinExecutionProvider"}
    return device(type("Twin", (NumpyDevice,), members | {"stream_aware": True})).create_sync_stream()


def test_wait_on_device_gets_the_consumer(device: Plug) -> None:
    """A stream of another provider cannot be told to wait: the host waits."""
    seen: list[Any] = []

    class Noting(numpy_device.Notification):
        def wait_on_device(self, consumer: ep.SyncStream) -> None:
            seen.append(consumer)
            super().wait_on_device(consumer)

    class Stream(numpy_device.Stream):
        def __init__(self, state: numpy_device.State) -> None:
            super().__init__(state)
            made.append(self)

        def create_notification(self) -> ep.SyncNotification:
            return Noting(self)

    made: list[Stream] = []
    cls = device_class(stream_aware=True)
    cls.create_sync_stream = classmethod(lambda cls, *_: Stream(cls.state))  # type: ignore
    found = device(cls)
    producer, consumer = found.create_sync_stream(), found.create_sync_stream()
    notification = notification_of(producer)
    check(notification.Activate(notification))
    check(notification.WaitOnDevice(notification, consumer.pointer))
    assert seen == [made[1]] and cls.state.counts["wait_on_host"] == 0
    other = twin_stream(device, cls)
    for number, foreign in enumerate((other.pointer, ffi.NULL)):
        check(notification.WaitOnDevice(notification, foreign))
        assert seen == [made[1]] and cls.state.counts["wait_on_host"] == number + 1
    notification.Release(notification)


def test_alloc_on_stream_gets_only_streams_of_its_provider(device: Plug) -> None:
    seen: list[Any] = []

    class Noting(numpy_device.Allocator):
        def alloc_on_stream(self, size: int, stream: ep.SyncStream | None) -> int:
            seen.append(type(stream))
            return self.alloc(size)

    cls = device_class(stream_aware=True, allocator=Noting)
    found = device(cls)
    allocator, own, other = allocator_of(found), found.create_sync_stream(), twin_stream(device, cls)
    for stream in (own, other):
        allocator.Free(allocator, allocator.AllocOnStream(allocator, 8, stream.pointer))
    assert seen == [numpy_device.Stream, type(None)]


@pytest.mark.parametrize("given", [None, "x", 5, ep.SyncNotification])
def test_what_is_no_notification(device: Plug, given: Any) -> None:
    class Wrong(numpy_device.Stream):
        def create_notification(self) -> Any:
            return given if self.state.failing else super().create_notification()

    cls = device_class(stream_aware=True)
    cls.create_sync_stream = classmethod(lambda cls, device, options: Wrong(cls.state))  # type: ignore
    stream = device(cls).create_sync_stream()
    objects, cls.state.failing = ep.live_objects(), "create_notification"
    message = r"CreateNotification: .*Wrong\.create_notification\(\) must return an ort_abi\.ep\.SyncNotif"
    with pytest.raises(errors.RuntimeException, match=message) as caught:
        notification_of(stream)
    assert repr(given) in str(caught.value) and ep.live_objects() == objects
    cls.state.failing = ""
    notification = notification_of(stream)
    notification.Release(notification)


@pytest.mark.parametrize("given", [None, "x", 5, ep.SyncStream])
def test_what_is_no_stream(device: Plug, given: Any) -> None:
    cls = device_class(stream_aware=True)
    cls.create_sync_stream = classmethod(lambda cls, device, options: given)  # type: ignore
    found, objects = device(cls), ep.live_objects()
    message = r"create_sync_stream\(\) must return an ort_abi\.ep\.SyncStream, not"
    with pytest.raises(errors.RuntimeException, match=message) as caught:
        found.create_sync_stream()
    assert repr(given) in str(caught.value) and ep.live_objects() == objects


# ---- callbacks that return nothing ----


async def asynchronous(*arguments: Any) -> None:
    """Nothing of a coroutine runs when it is called."""


def generator(*arguments: Any) -> Any:
    """Neither of a generator."""
    yield


@pytest.mark.parametrize("wrong", [asynchronous, generator])
@pytest.mark.parametrize("callback", ["flush", "on_session_run_end", "copy", "copy_tensors", "sync"])
def test_what_has_not_run_is_no_success(device: Plug, callback: str, wrong: Any) -> None:
    cls = device_class(stream_aware=callback != "sync")
    target: Any = {"copy": numpy_device.Transfer, "copy_tensors": numpy_device.Transfer, "sync": cls}.get(
        callback, numpy_device.Stream
    )
    device(cls)
    session, a = open_session(OURS, cls, chain()), OrtValue.ortvalue_from_numpy(A, "gpu")
    feeds = {"a": a if callback == "sync" else A}
    with pytest.MonkeyPatch.context() as patch:
        # Nobody waits for the work of a stream that does not flush, so it must not be left behind.
        patch.setattr(numpy_device.Worker, "add", lambda self, work: work())
        patch.setattr(target, callback, wrong)
        told = f"{wrong.__name__}\\(\\) must be a plain function, not one that gives a"
        with pytest.raises(errors.RuntimeException, match=told):
            session.run(None, feeds)
    np.testing.assert_array_equal(session.run(None, feeds)[0], EXPECTED)


@pytest.mark.parametrize("callback", ["activate", "wait_on_device", "wait_on_host"])
def test_a_wait_that_has_not_run_is_no_success(device: Plug, callback: str) -> None:
    cls = device_class(stream_aware=True)
    found = device(cls)
    producer, consumer = found.create_sync_stream(), found.create_sync_stream()
    notification = notification_of(producer)
    slots = {"activate": "Activate", "wait_on_device": "WaitOnDevice", "wait_on_host": "WaitOnHost"}
    more = (consumer.pointer,) if callback == "wait_on_device" else ()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_device.Notification, callback, asynchronous)
        with pytest.raises(
            errors.RuntimeException, match="must be a plain function, not one that gives a cor"
        ):
            check(getattr(notification, slots[callback])(notification, *more))
    notification.Release(notification)


# ---- memory in a run, and ends of life ----


@pytest.mark.parametrize("callback", ["alloc", "alloc_on_stream"])
def test_an_allocation_that_fails_in_a_run(
    host: ModuleType, callback: str, capfd: pytest.CaptureFixture[str]
) -> None:
    cls = device_class(stream_aware=callback != "alloc" and has_streams(host), allocator=StreamAllocator)
    if callback == "alloc_on_stream" and not has_streams(host):
        pytest.skip("this host is told of no streams")
    with registered(host, cls):
        session = open_session(host, cls, chain())
        cls.state.failing, before = callback, ep.unreported_errors()
        with pytest.raises(
            Exception, match=r"without memory for it|no memory in|Allocation failed|bad_alloc"
        ) as caught:
            session.run(None, FEEDS)
        assert ep.unreported_errors() > before
        slot = "Alloc" if callback == "alloc" else "AllocOnStream"
        assert (
            f"{NAME}: OrtAllocator::{slot}: numpy_device.Boom: {callback} broke here"
            in capfd.readouterr().err
        )
        del caught
        cls.state.failing = ""
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        del session
        gc.collect()
    assert left_nothing(cls)


def check_memory_for_weights_that_fails(
    host: ModuleType, callback: str, config: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    cls = device_class(kinds=("default",))
    with registered(host, cls):
        objects = ep.live_objects()
        cls.state.failing = callback
        with pytest.raises(Exception, match=r"memory|bad_alloc|Allocation failed"):
            open_session(host, cls, chain(), config=config)
        assert f"{callback} broke here" in capfd.readouterr().err
        gc.collect()
        assert ep.live_objects() == objects
        cls.state.failing = ""
        session = open_session(host, cls, chain(), config=config)
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        assert cls.state.counts[callback] >= 2
        del session
        gc.collect()
    assert left_nothing(cls)


def test_memory_for_weights_that_fails(host: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    check_memory_for_weights_that_fails(host, "alloc", {}, capfd)


def test_memory_that_stock_reserves_for_weights_fails(capfd: pytest.CaptureFixture[str]) -> None:
    """With this option. Our host reserves nothing in sessions."""
    config = {"session.use_device_allocator_for_initializers": "1"}
    check_memory_for_weights_that_fails(HOSTS["stock"], "reserve", config, capfd)


def test_memory_that_cannot_be_given_back_in_a_run(host: ModuleType) -> None:
    cls = device_class()
    with registered(host, cls):
        session = open_session(host, cls, chain())
        counts, state, before = cls.state.counts, cls.state, ep.unreported_errors()
        session.run(None, FEEDS)
        state.failing, freed = "free", counts["free"]
        result = session.run(None, {"a": 2 * A})[0].copy()
        state.failing, failed = "", ep.unreported_errors() - before
        assert failed == counts["free"] - freed
        np.testing.assert_array_equal(result, np.maximum(2 * A * W + 2 * A, 0))
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        del session
        gc.collect()
    assert len(cls.state.memory) == failed and ep.live_objects() == 0


def test_a_question_about_copies_that_fails_in_a_run(device: Plug) -> None:
    cls = device_class()
    device(cls)
    session = open_session(OURS, cls, chain())
    cls.state.failing, before = "can_copy", ep.unreported_errors()
    with pytest.raises(errors.OrtError, match=r"GPU .vendor 0xbe58, device 0"):
        session.run(None, FEEDS)
    assert ep.unreported_errors() > before
    cls.state.failing = ""
    np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)


CLOSING = {
    "close allocator": "OrtEpFactory::ReleaseAllocator",
    "close transfer": "OrtDataTransferImpl::Release",
    "close notification": "OrtSyncNotificationImpl::Release",
    "close stream": "OrtSyncStreamImpl::Release",
    "close": "OrtEpFactory::ReleaseEp",
}


@pytest.mark.parametrize("callback", CLOSING)
def test_ends_that_fail(host: ModuleType, callback: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Printed and counted; what was to be released is."""
    if not has_streams(host) and callback in ("close notification", "close stream"):
        pytest.skip("this host is told of no streams")
    cls = device_class(stream_aware=True, close=lambda self: self.state.called("close"))

    def work() -> None:
        with registered(host, cls):
            session = open_session(host, cls, split(), fallback=True)
            np.testing.assert_allclose(session.run(None, FEEDS)[0], SPLIT_EXPECTED, rtol=1e-6)
            del session
            gc.collect()

    failed = unreported(cls, callback, work)
    assert failed == cls.state.counts[callback] > 0
    printed = capfd.readouterr().err
    assert f"{NAME}: {CLOSING[callback]}: numpy_device.Boom: {callback} broke here" in printed
    assert left_nothing(cls)
    work()
    assert cls.state.counts[callback] == 2 * failed
