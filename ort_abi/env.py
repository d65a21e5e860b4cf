"""The environment: one a process, made when first needed. Owns the logger, EP libraries and EP devices."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ort_abi import errors
from ort_abi._lib import NULL, CData, Handle, api, base, check, create, encode, ffi, key_values, lib, text
from ort_abi._locks import environment_lock
from ort_abi.device import OrtDevice, OrtEpDevice, OrtHardwareDevice, OrtHardwareDeviceType, OrtMemoryInfo

if TYPE_CHECKING:
    from ort_abi.ep import ExecutionProvider

__all__ = [
    "environment",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_hardware_devices",
    "get_include",
    "get_version_string",
    "inject_hardware_device",
    "register",
    "register_execution_provider_library",
    "set_default_logger_severity",
    "shutdown",
    "unregister_execution_provider_library",
]

_CPU_PROVIDER = "CPUExecutionProvider"


class _Closable(Protocol):
    def close(self) -> None: ...


class _State:
    """What there is one of in a process. All of it is guarded by `lock`."""

    def __init__(self) -> None:
        self.lock = environment_lock
        self.handle: Handle | None = None
        self.severity = 2
        self.libraries: list[str] = []
        # What somebody still holds of the host's sessions, streams and values on devices: while there is any,
        # shutdown is refused.
        self.users: weakref.WeakSet[Handle] = weakref.WeakSet()
        self.sessions: weakref.WeakSet[_Closable] = weakref.WeakSet()


_state = _State()


def environment() -> Handle:
    """The process's environment (`CreateEnv`, API 1). Who needs it to stay keeps the handle as a parent."""
    with _state.lock:
        if _state.handle is None:
            _state.handle = create("OrtEnv", api.ReleaseEnv, api.CreateEnv, _state.severity, b"ort_abi")
            atexit.unregister(_close_at_exit)
            atexit.register(_close_at_exit)
        return _state.handle


def track_session(session: _Closable, handle: Handle) -> None:
    """Remembers a session, so that `shutdown` does not pull the environment away under it."""
    with _state.lock:
        _state.users.add(handle)
        _state.sessions.add(session)


def track(handle: Handle) -> None:
    """The same for a stream, or a value in memory of an EP."""
    with _state.lock:
        _state.users.add(handle)


def shutdown() -> None:
    """Unregisters all EP libraries, newest first, and releases the environment. The next use makes a new one.

    Raises `errors.Fail` while sessions, or what needs them, streams or values on devices are alive; nothing
    is changed then. Without an environment it does nothing.
    """
    with _state.lock:
        if _state.handle is None:
            return
        alive = sum(handle.pointer is not None for handle in _state.users)
        if alive:
            raise errors.Fail(
                f"{alive} session(s), or bindings and outputs of them, streams and values on devices are "
                "alive: close and drop them first"
            )
        for name in reversed(_state.libraries[:]):
            unregister_execution_provider_library(name)
        _state.handle.close()
        _state.handle = None


def _close_at_exit() -> None:
    """Runs while the interpreter is whole. What still has users then is left to the end of the process."""
    with _state.lock:
        for session in list(_state.sessions):
            session.close()
        if not any(handle.pointer is not None for handle in _state.users):
            shutdown()


def register_execution_provider_library(registration_name: str, library_path: str | os.PathLike[str]) -> None:
    """Loads an EP library and adds its devices to `get_ep_devices()`.

    `RegisterExecutionProviderLibrary`, API 22. Raises an `errors.OrtError` that names the path if the library
    cannot be loaded or says no; nothing is registered then.
    """
    name = encode(registration_name, "the registration name")
    location = encode(os.fspath(library_path), "the library path")
    with _state.lock:
        check(api.RegisterExecutionProviderLibrary(environment().pointer, name, location))
        _state.libraries.append(registration_name)


def register(provider: type[ExecutionProvider], registration_name: str | None = None) -> str:
    """Adds the devices of an execution provider that is written in Python to `get_ep_devices()`.

    Returns the registration name, for `unregister_execution_provider_library`. Raises TypeError, ValueError
    for no usable class, and an `errors.OrtError` if the host says no.
    """
    from ort_abi.ep import register_with

    return register_with(sys.modules[__name__], provider, registration_name)


def unregister_execution_provider_library(registration_name: str) -> None:
    """Takes an EP library's devices away and unloads it (`UnregisterExecutionProviderLibrary`, API 22).

    Raises an `errors.OrtError` for a name that is not registered, and while sessions use the library.
    """
    with _state.lock:
        name = encode(registration_name, "the registration name")
        check(api.UnregisterExecutionProviderLibrary(environment().pointer, name))
        if registration_name in _state.libraries:
            _state.libraries.remove(registration_name)


def get_ep_devices() -> list[OrtEpDevice]:
    """The devices of all registered libraries and of the built-in CPU provider (`GetEpDevices`, API 22)."""
    with _state.lock:
        env = environment()
        return [OrtEpDevice(pointer, env) for pointer in _ep_device_pointers(env)]


def _ep_device_pointers(env: Handle) -> list[CData]:
    devices, count = ffi.new("const OrtEpDevice* const**"), ffi.new("size_t*")
    check(api.GetEpDevices(env.pointer, devices, count))
    return [devices[0][i] for i in range(count[0])]


def ep_device_pointer(device: OrtEpDevice) -> CData:
    """The host's object behind a device. Raises `errors.InvalidArgument` when its library is gone."""
    with _state.lock:
        env = device._environment
        if env.pointer is not None:
            for pointer in _ep_device_pointers(env):
                if pointer == device._pointer and text(api.EpDevice_EpName(pointer)) == device.ep_name:
                    return pointer
    raise errors.InvalidArgument(f"the device of {device.ep_name} is gone: its library was unregistered")


def shared_allocator(memory: OrtMemoryInfo) -> CData:
    """The allocator that all use for a memory (`GetSharedAllocator`, API 23). *borrows*: it is the host's.

    Raises `errors.NotFound` if there is none.
    """
    out = ffi.new("OrtAllocator**")
    check(api.GetSharedAllocator(environment().pointer, memory._handle.pointer, out))
    if out[0] == NULL:
        raise errors.NotFound(f"there is no shared allocator for {memory}")
    return out[0]


def memory_on(device: OrtDevice) -> OrtMemoryInfo:
    """The memory of the first EP device that is on a memory device; a vendor id of 0 means any vendor.

    Raises `errors.NotFound` if no registered provider has memory there.
    """
    if device.is_cpu():
        return OrtMemoryInfo.create_v2("Cpu", device.device_type(), 0, 0, device.device_mem_type())
    for ep_device in get_ep_devices():
        memory = ep_device.memory_info(device.device_mem_type())
        if memory is None or (memory.device_type, memory.id) != (device.device_type(), device.device_id()):
            continue
        if device.device_vendor_id() in (0, memory.device_vendor_id):
            return memory
    raise errors.NotFound(f"no registered execution provider has memory on {device}")


def get_available_providers() -> list[str]:
    """Names of the execution providers that sessions can use, the CPU's last."""
    names = dict.fromkeys(device.ep_name for device in get_ep_devices())
    return [name for name in names if name != _CPU_PROVIDER] + [
        name for name in names if name == _CPU_PROVIDER
    ]


def get_all_providers() -> list[str]:
    """The same as `get_available_providers`: this host knows no provider that it cannot use."""
    return get_available_providers()


def get_hardware_devices() -> list[OrtHardwareDevice]:
    """The machine's CPU, GPUs and NPUs, and injected ones (`GetHardwareDevices`, API 24)."""
    with _state.lock:
        env = environment()
        count = ffi.new("size_t*")
        check(api.GetNumHardwareDevices(env.pointer, count))
        devices = ffi.new("const OrtHardwareDevice*[]", count[0])
        check(api.GetHardwareDevices(env.pointer, devices, count[0]))
        return [OrtHardwareDevice(devices[i]) for i in range(count[0])]


def inject_hardware_device(
    type: OrtHardwareDeviceType | int,
    vendor_id: int,
    device_id: int,
    vendor: str = "",
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Adds a hardware device as if the machine had it, for libraries registered afterwards, until `shutdown`.

    This is how an EP is tested without its hardware. Ours: `ortabi_inject_hardware_device`, not in ORT.
    """
    pairs = key_values(metadata or {})
    arguments = (int(type), vendor_id, device_id, encode(vendor, "the vendor"), pairs.pointer)
    check(lib.ortabi_inject_hardware_device(environment().pointer, *arguments))


def set_default_logger_severity(severity: int) -> None:
    """The lowest severity that the environment logs: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.

    `UpdateEnvWithCustomLogLevel`, API 14. Raises ValueError for another number.
    """
    if not 0 <= severity <= 4:
        raise ValueError(f"severity must be 0 (verbose) to 4 (fatal), not {severity}")
    with _state.lock:
        _state.severity = int(severity)
        if _state.handle is not None:
            check(api.UpdateEnvWithCustomLogLevel(_state.handle.pointer, _state.severity))


def get_version_string() -> str:
    """Version of the host, well formed as plugins expect it: 1.<API version>.<n>."""
    return text(base.GetVersionString())


def get_build_info() -> str:
    """How the host was built (`GetBuildInfoString`, API 15)."""
    return text(api.GetBuildInfoString())


def get_device() -> str:
    """What the host itself runs on: "CPU"."""
    return "CPU"


def get_include() -> str:
    """The folder that holds `ort_abi.h`, for compilers."""
    return str(Path(__file__).absolute().parent / "include")
