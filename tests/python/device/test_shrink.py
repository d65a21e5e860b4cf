"""Runs that give unused memory back: the run option memory.enable_memory_arena_shrinkage."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_support import EXPECTED, FEEDS, chain, left_nothing
from ep_support import HOSTS, model, open_session, registered, skip_old_stock
from numpy_device import VENDOR_ID, NumpyDevice, State, StreamAllocator, Transfer, device_class
from onnx import helper

from ort_abi import ep

OURS = HOSTS["ours"]
OTHER_VENDOR = VENDOR_ID + 1


def shrinking(host: ModuleType, what: str) -> Any:
    options = host.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", what)
    return options


def test_the_sessions_own_buffers_go_first() -> None:
    """Between runs a session keeps the device memory of its intermediates, but not if the run shrinks."""
    cls = device_class(allocator=StreamAllocator)
    with registered(OURS, cls):
        session = open_session(OURS, cls, chain())
        weights = len(cls.state.memory)
        for options, is_kept in ((None, True), (shrinking(OURS, "gpu:0"), False), (None, True)):
            np.testing.assert_array_equal(session.run(None, FEEDS, options)[0], EXPECTED)
            assert (len(cls.state.memory) > weights) is is_kept
        assert cls.state.counts["shrink"] == 1
        np.testing.assert_array_equal(session.run(None, FEEDS, shrinking(OURS, "cpu:0"))[0], EXPECTED)
        assert cls.state.counts["shrink"] == 1 and len(cls.state.memory) > weights
        np.testing.assert_array_equal(session.run(None, FEEDS, shrinking(OURS, "cpu:0;gpu:0"))[0], EXPECTED)
        assert cls.state.counts["shrink"] == 2 and len(cls.state.memory) == weights
        del session
    assert left_nothing(cls)


@pytest.mark.parametrize("what", ["gpu", "gpu:", "gpu:0;"])
def test_the_first_device_is_meant(host: ModuleType, what: str) -> None:
    skip_old_stock(host)
    cls = device_class(allocator=StreamAllocator)
    with registered(host, cls):
        session = open_session(host, cls, chain())
        session.run(None, FEEDS, shrinking(host, what))
        assert cls.state.counts["shrink"] == 1
        del session
    assert left_nothing(cls)


class OtherTransfer(Transfer):
    def can_copy(self, source: ep.MemoryDevice, target: ep.MemoryDevice) -> bool:
        return {source.vendor_id, target.vendor_id} <= {OTHER_VENDOR, 0}


class OtherDevice(NumpyDevice):
    """Device 0 of another vendor."""

    name, vendor_id, wanted = "OtherDevice", OTHER_VENDOR, ("Add",)

    @classmethod
    def memory_infos(cls, device: ep.Device) -> list[ep.MemoryInfo]:
        return [ep.MemoryInfo("Other", "GPU", OTHER_VENDOR, 0)]

    @classmethod
    def create_data_transfer(cls) -> ep.DataTransfer:
        return OtherTransfer(cls.state)


def test_two_vendors_have_a_device_of_that_number() -> None:
    """Both give memory back."""
    one = device_class(allocator=StreamAllocator, wanted=("Mul",))
    two = type("OtherDevice", (OtherDevice,), {"state": State(), "allocator": StreamAllocator})
    with registered(OURS, one), registered(OURS, two):
        options = OURS.SessionOptions()
        for cls in (one, two):
            devices = [device for device in OURS.get_ep_devices() if device.ep_name == cls.name]
            options.add_provider_for_devices(devices, {})
        session = OURS.InferenceSession(chain(), options)
        np.testing.assert_array_equal(session.run(None, FEEDS, shrinking(OURS, "gpu:0"))[0], EXPECTED)
        assert (one.state.counts["shrink"], two.state.counts["shrink"]) == (1, 1)
        del session
    assert left_nothing(one) and left_nothing(two)


def resident() -> int:
    """Megabytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20


def test_host_memory_goes_back_to_the_system() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["a"])]
    nodes += [helper.make_node("Neg", ["a"], ["b"]), helper.make_node("ReduceSum", ["b"], ["y"])]
    graph = model(nodes, {"x": (np.float32, ["n"])}, {"y": (np.float32, None)})
    session = OURS.InferenceSession(graph)
    feeds = {"x": np.ones(16 << 20, np.float32)}
    session.run(None, feeds)
    kept = resident()
    session.run(None, feeds, shrinking(OURS, "cpu:0"))
    assert kept - resident() > 60  # an intermediate has 64


WRONG = ["tpu:0", "gpu:x", "gpu:-1", ";", ":0", "gpu:7", "GPU:0", "gpu: 0", "gpu:0x", "gpu:0;;gpu:0"]


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_list(host: ModuleType, what: str) -> None:
    """It is an error before anything runs."""
    skip_old_stock(host)
    cls = device_class(allocator=StreamAllocator)
    with registered(host, cls):
        session = open_session(host, cls, chain())
        with pytest.raises(Exception, match="shrink") as caught:
            session.run(None, FEEDS, shrinking(host, what))
        assert type(caught.value).__name__ == "InvalidArgument"
        if host is OURS:
            assert "memory.enable_memory_arena_shrinkage" in str(caught.value)
        assert cls.state.counts["compute"] == cls.state.counts["shrink"] == 0
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        del session, caught
    assert left_nothing(cls)
