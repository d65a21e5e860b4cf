"""The C side of Python providers, called the way a host calls it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from bridge_support import API, BASE, create_factories, message, release_factory
from ep_support import FuseAll

import ort_abi
from ort_abi import ep
from ort_abi._native import ffi, lib
from ort_abi.ep._call import objects


class Provider(FuseAll):
    name = "BridgeExecutionProvider"


@pytest.fixture
def factory() -> Any:
    ep.prepare(Provider)
    status, made = create_factories(BASE, Provider.name.encode())
    assert status == ffi.NULL
    yield made
    release_factory(made)


def base_up_to(newest: int, version: bytes) -> Any:
    """A host that has API versions up to `newest`."""
    text = ffi.new("char[]", version)
    get_api = ffi.callback("OrtApi*(uint32_t)", lambda v: API if v <= newest else ffi.NULL)
    get_version = ffi.callback("char*(void)", lambda: text)
    base = ffi.new("OrtApiBase*")
    base.GetApi, base.GetVersionString = ffi.cast("void*", get_api), ffi.cast("void*", get_version)
    return base, (text, get_api, get_version)


def test_a_host_that_is_too_old_gets_a_status() -> None:
    base, _alive = base_up_to(23, b"1.23.2")
    assert "API version 24 or later" in message(create_factories(base, b"x")[0])


@pytest.mark.parametrize(
    ("newest", "version"), [(24, b"1.24.4"), (27, b"1.27.0"), (25, b"nonsense"), (30, b"1.99.0")]
)
def test_structs_state_the_version_of_the_host(newest: int, version: bytes) -> None:
    base, _alive = base_up_to(newest, version)
    ep.prepare(Provider)
    status, made = create_factories(base, Provider.name.encode())
    assert status == ffi.NULL
    assert made.ort_version_supported == newest
    release_factory(made)


@pytest.mark.parametrize(("newest", "aware"), [(27, False), (28, True)])
def test_streams_need_a_host_that_tells_kernels_theirs(newest: int, aware: bool) -> None:
    class Streams(Provider):
        stream_aware = True

    base, _alive = base_up_to(newest, b"1.99.0")
    ep.prepare(Streams)
    status, made = create_factories(base, Provider.name.encode())
    assert status == ffi.NULL
    assert made.IsStreamAware(made) == aware
    release_factory(made)


def test_no_room_for_a_factory() -> None:
    assert "no room" in message(create_factories(BASE, b"x", room=0)[0])


def test_identity(factory: Any) -> None:
    assert ffi.string(factory.GetName(factory)) == b"BridgeExecutionProvider"
    assert ffi.string(factory.GetVendor(factory)) == b"unknown"
    assert ffi.string(factory.GetVersion(factory)) == b"0.0.0"
    assert factory.GetVendorId(factory) == 0


def test_slots_that_stock_hosts_call_unchecked_are_filled(factory: Any) -> None:
    out = ffi.new("OrtAllocator**", ffi.cast("OrtAllocator*", 1))
    cpus = ffi.new("OrtAllocator**")
    assert API.GetAllocatorWithDefaultOptions(cpus) == ffi.NULL
    assert factory.CreateAllocator(factory, ffi.NULL, ffi.NULL, out) == ffi.NULL
    assert out[0] == cpus[0]  # no allocator means the CPU's, and old hosts look into it
    factory.ReleaseAllocator(factory, out[0])
    factory.ReleaseAllocator(factory, ffi.NULL)
    transfer = ffi.new("OrtDataTransferImpl**", ffi.cast("OrtDataTransferImpl*", 1))
    assert factory.CreateDataTransfer(factory, transfer) == ffi.NULL and transfer[0] == ffi.NULL
    assert not factory.IsStreamAware(factory)
    stream = ffi.new("OrtSyncStreamImpl**")
    text = message(factory.CreateSyncStreamForDevice(factory, ffi.NULL, ffi.NULL, stream))
    assert "BridgeExecutionProvider: OrtEpFactory::CreateSyncStreamForDevice: NotImplementedError" in text
    assert "does not define create_sync_stream()" in text
    index = ffi.new("size_t*")
    text = message(factory.SelectBestModelCandidate(factory, ffi.NULL, ffi.NULL, 0, ffi.NULL, index))
    assert "OrtEpFactory::SelectBestModelCandidate: NotImplementedError" in text
    assert "does not define select_best_model_candidate()" in text


def test_more_devices_than_the_host_has_room_for(factory: Any) -> None:
    class Doubled(FuseAll):
        name = "BridgeExecutionProvider"

        @classmethod
        def get_supported_devices(cls, devices: Any) -> Any:
            return [*devices, *devices]

    ep.prepare(Doubled)
    _, made = create_factories(BASE, b"BridgeExecutionProvider")
    device = ort_abi.env.get_hardware_devices()
    assert device
    handles, count = ffi.new("size_t*"), ffi.new("size_t*", 5)
    environment = ort_abi.env.environment().pointer
    assert API.GetNumHardwareDevices(environment, handles) == ffi.NULL
    devices = ffi.new("const OrtHardwareDevice*[]", handles[0])
    assert API.GetHardwareDevices(environment, devices, handles[0]) == ffi.NULL
    out = ffi.new("OrtEpDevice*[1]")
    text = message(made.GetSupportedDevices(made, devices, 1, out, 1, count))
    assert "gave 2 devices, the host has room for 1" in text
    assert (count[0], out[0]) == (0, ffi.NULL)
    release_factory(made)


def callbacks_with_id() -> list[str]:
    """The functions of Python whose first argument after the call is an id."""
    kinds = {name: ffi.typeof(getattr(lib, name)).args for name in dir(lib) if name.startswith("bridge_py_")}
    call, number = ffi.typeof("BridgeCall*"), ffi.typeof("uint64_t")
    return [name for name, args in kinds.items() if args[0] is call and args[1] is number]


@pytest.mark.parametrize("name", callbacks_with_id())
def test_a_stale_id_fails_with_a_reason(name: str) -> None:
    number = objects.add(object())
    objects.remove(number)
    call, function = ffi.new("BridgeCall*"), getattr(lib, name)
    rest = [ffi.NULL if kind.kind == "pointer" else 0 for kind in ffi.typeof(function).args[2:]]
    assert ffi.addressof(lib, name)(call, number, *rest) == 0
    assert f"with id {number} (released, or never made)" in ffi.string(call.text).decode()


def test_a_stale_id_fails_in_compute() -> None:
    run = ffi.new("BridgeRun*")
    assert ffi.addressof(lib, "bridge_py_compute")(10**9, 0, run) == 0
    assert "LookupError: there is no node with id 1000000000" in ffi.string(run.call.text).decode()
    assert ffi.addressof(lib, "bridge_py_again")(10**9) == 0


def test_a_callback_that_was_never_attached_is_an_error() -> None:
    """Only the native module is loaded: no Python code answers, and cffi's made-up 0 is no success."""
    code = f"""
import ctypes, importlib.util
spec = importlib.util.spec_from_file_location("_native", {ep.library_path()!r})
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
ffi, lib = native.ffi, native.lib
base = lib.OrtGetApiBase()
address = ctypes.cast(ctypes.CDLL({ep.library_path()!r}).CreateEpFactories, ctypes.c_void_p).value
kind = "OrtStatus*(*)(const char*, const OrtApiBase*, const OrtLogger*, OrtEpFactory**, size_t, size_t*)"
create = ffi.cast(kind, address)
name, out, count = ffi.new("char[]", b"me"), ffi.new("OrtEpFactory*[1]"), ffi.new("size_t*")
status = create(name, base, ffi.NULL, out, 1, count)
print(ffi.string(base.GetApi(30).GetErrorMessage(status)).decode(), count[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("me: CreateEpFactories: Python has no answer (no code attached")
    assert done.stdout.strip().endswith(" 0")
