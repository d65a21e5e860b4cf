"""A memory info that a provider gives a host is known again by its pointer, in both hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
from device_support import EXPECTED, FEEDS, chain, left_nothing
from ep_support import registered
from numpy_device import VENDOR_ID, NumpyDevice, State

from ort_abi import ep


class TwoNames(NumpyDevice):
    """Two EP devices on one device, whose memory each calls by a name of its own."""

    state = State()
    kinds = ("default",)
    devices_asked = 0
    asked: list[str] = []  # noqa: RUF012 (of the test)

    @classmethod
    def get_supported_devices(cls, devices: Any) -> Any:
        cls.devices_asked = 0
        return [device for device in devices if device.type == "CPU"][:1] * 2

    @classmethod
    def memory_infos(cls, device: ep.Device) -> Iterable[ep.MemoryInfo]:
        cls.devices_asked += 1
        return [ep.MemoryInfo(f"name {cls.devices_asked}", "GPU", VENDOR_ID, 0)]

    @classmethod
    def create_allocator(cls, memory: ep.MemoryInfo, options: Mapping[str, str]) -> ep.Allocator | None:
        cls.asked.append(memory.name)
        return super().create_allocator(memory, options)


def test_allocators_are_asked_for_by_the_chosen_devices_memory(host: ModuleType) -> None:
    """The two memories are equal for the host; which one it means, only the pointer says."""
    with registered(host, TwoNames):
        devices = [device for device in host.get_ep_devices() if device.ep_name == TwoNames.name]
        assert len(devices) == 2 and TwoNames.devices_asked == 2
        for device, name in zip(devices, ["name 1", "name 2"], strict=True):
            TwoNames.asked.clear()
            options = host.SessionOptions()
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
            options.add_provider_for_devices([device], {})
            session = host.InferenceSession(chain(), options)
            np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
            assert set(TwoNames.asked) == {name}
            del session, options
        del device, devices
    assert left_nothing(TwoNames)
