"""The factory and the provider of a Python class as C structs, called the way a host calls them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import ort_abi
from ort_abi import ep
from ort_abi._native import ffi, lib

BASE = lib.OrtGetApiBase()
API = BASE.GetApi(30)
EP_API = API.GetEpApi()


def exported(name: str, kind: str) -> Any:
    """A function that the native module exports."""
    address = ctypes.cast(getattr(ctypes.CDLL(ep.library_path()), name), ctypes.c_void_p).value
    return ffi.cast(kind, address)


def create_factories(base: Any, name: bytes, room: int = 1) -> tuple[Any, Any]:
    """Status and factory, from the exported function."""
    create = exported(
        "CreateEpFactories",
        "OrtStatus*(*)(const char*, const OrtApiBase*, const OrtLogger*, OrtEpFactory**, size_t, size_t*)",
    )
    factories, count = ffi.new("OrtEpFactory*[1]"), ffi.new("size_t*", 99)
    status = create(ffi.new("char[]", name), base, ffi.NULL, factories, room, count)
    assert count[0] == (status == ffi.NULL)
    return status, factories[0]


def release_factory(factory: Any) -> None:
    """Releases what `create_factories` gave."""
    assert exported("ReleaseEpFactory", "OrtStatus*(*)(OrtEpFactory*)")(factory) == ffi.NULL


def message(status: Any) -> str:
    """The text of a status, which is released."""
    assert status != ffi.NULL
    text = ffi.string(API.GetErrorMessage(status)).decode()
    API.ReleaseStatus(status)
    return text


def message_or_none(status: Any) -> str | None:
    """The same; None for success."""
    return None if status == ffi.NULL else message(status)


def hardware() -> Any:
    """The first CPU of our host."""
    environment = ort_abi.env.environment().pointer
    count = ffi.new("size_t*")
    assert API.GetNumHardwareDevices(environment, count) == ffi.NULL
    devices = ffi.new("const OrtHardwareDevice*[]", count[0])
    assert API.GetHardwareDevices(environment, devices, count[0]) == ffi.NULL
    return next(device for device in devices if API.HardwareDevice_Type(device) == 0)


class OpenEp:
    """What `open_ep` gives: `factory` and `ep` as C structs."""

    def __init__(self, factory: Any, ep_device: Any, provider: Any) -> None:
        self.factory = factory
        self.ep_device = ep_device
        self.ep = provider

    def select_model(
        self, candidates: Sequence[Mapping[str, str]], config: Mapping[str, str]
    ) -> tuple[str | None, int]:
        """The error and the index of SelectBestModelCandidate; the index was 99."""
        with ExitStack() as stack:
            pairs = [stack.enter_context(key_values(item)) for item in candidates]
            options = stack.enter_context(session_options(config))
            index = ffi.new("size_t*", 99)
            given = ffi.new("const OrtKeyValuePairs*[]", pairs)
            status = self.factory.SelectBestModelCandidate(
                self.factory, hardware(), given, len(pairs), options, index
            )
            return message_or_none(status), index[0]

    def graphics(self, api: int, queue: int, options: Mapping[str, str]) -> list[str | None]:
        """The errors of InitGraphicsInterop and DeinitGraphicsInterop."""
        with key_values(options) as pairs:
            config = ffi.new("OrtGraphicsInteropConfig*")
            config.version, config.graphics_api = 30, api
            config.command_queue, config.additional_options = ffi.cast("void*", queue), pairs
            init, deinit = self.factory.InitGraphicsInterop, self.factory.DeinitGraphicsInterop
            return [
                message_or_none(init(self.factory, self.ep_device, config)),
                message_or_none(deinit(self.factory, self.ep_device)),
            ]


@contextmanager
def key_values(items: Mapping[str, str]) -> Iterator[Any]:
    """An `OrtKeyValuePairs`."""
    pairs = ffi.new("OrtKeyValuePairs**")
    API.CreateKeyValuePairs(pairs)
    for key, value in items.items():
        API.AddKeyValuePair(pairs[0], key.encode(), value.encode())
    try:
        yield pairs[0]
    finally:
        API.ReleaseKeyValuePairs(pairs[0])


@contextmanager
def session_options(config: Mapping[str, str]) -> Iterator[Any]:
    """An `OrtSessionOptions`."""
    options = ffi.new("OrtSessionOptions**")
    assert API.CreateSessionOptions(options) == ffi.NULL
    for key, value in config.items():
        assert API.AddSessionConfigEntry(options[0], key.encode(), value.encode()) == ffi.NULL
    try:
        yield options[0]
    finally:
        API.ReleaseSessionOptions(options[0])


@contextmanager
def open_ep(cls: type[ep.ExecutionProvider]) -> Iterator[OpenEp]:
    """A provider of the class on the CPU, without a session."""
    ep.prepare(cls)
    status, factory = create_factories(BASE, cls.name.encode())
    assert status == ffi.NULL, message(status)
    devices = ffi.new("const OrtHardwareDevice*[1]", [hardware()])
    ep_devices, count = ffi.new("OrtEpDevice*[1]"), ffi.new("size_t*")
    made = ffi.new("OrtEp**")
    try:
        status = factory.GetSupportedDevices(factory, devices, 1, ep_devices, 1, count)
        assert status == ffi.NULL and count[0] == 1, message(status)
        metadata = ffi.new("const OrtKeyValuePairs*[1]", [API.EpDevice_EpMetadata(ep_devices[0])])
        with session_options({}) as options:
            status = factory.CreateEp(factory, devices, metadata, 1, options, ffi.NULL, made)
        assert status == ffi.NULL, message(status)
        yield OpenEp(factory, ep_devices[0], made[0])
    finally:
        factory.ReleaseEp(factory, made[0])
        EP_API.ReleaseEpDevice(ep_devices[0])
        release_factory(factory)


# The bridge knows hosts by their tables: ours has to be the first with these, not one that a test makes up.
assert "no Python provider was prepared" in message(create_factories(BASE, b"nobody")[0])
