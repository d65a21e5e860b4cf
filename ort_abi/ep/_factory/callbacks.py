"""The functions that the C side calls for factories (csrc/bridge: factory.c, factory_slots.c),
under the rules of `_call.calls`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ort_abi._lib import CData, check, ffi, lib
from ort_abi.ep._call import objects
from ort_abi.ep._call.calls import callback, config_of, key_values_of, new_key_values, plain_call, text_of
from ort_abi.ep._call.words import number_of, word_of
from ort_abi.ep._custom_op.custom_ops import add_custom_ops
from ort_abi.ep._device.device import MemoryInfo
from ort_abi.ep._device.hardware import Device, device_of
from ort_abi.ep._ep.provider import Binding, ExecutionProvider
from ort_abi.ep._ep.slots import GraphicsInterop, Incompatibility, features_of
from ort_abi.ep._factory.factory import Factory
from ort_abi.ep._factory.library import class_of
from ort_abi.ep._factory.registration import find

__all__: list[str] = []


@callback
def bridge_py_create_factory(
    call: CData, provider: int, registered_name: CData, logger: CData, info: CData
) -> None:
    cls = class_of(provider) if provider else find(text_of(registered_name))
    name, vendor, version = (text.encode() for text in (cls.name, cls.vendor, cls.version))
    number = objects.add(Factory(cls))
    features = features_of(cls, of_factory=True) | (
        lib.BRIDGE_FACTORY_STREAM_AWARE if cls.stream_aware else 0
    )
    if not lib.bridge_set_factory(info, number, name, vendor, version, cls.vendor_id, features):
        objects.remove(number)
        raise MemoryError("no memory for the factory")
    try:
        add_custom_ops(call, info, cls)
    except BaseException:
        objects.remove(number)
        raise


@callback
def bridge_py_supported_devices(
    call: CData, factory: int, handle: CData, devices: CData, count: int, out: CData, room: int, used: CData
) -> None:
    made: Factory = objects.get(factory, "factory")
    cls, host = made.cls, call.host
    found = [device_of(host.api, devices[i]) for i in range(count)]
    chosen = [_offered(cls, item) for item in cls.get_supported_devices(tuple(found))]
    if len(chosen) > room:
        raise ValueError(f"get_supported_devices() gave {len(chosen)} devices, the host has room for {room}")
    try:
        for index, (device, metadata, options) in enumerate(chosen):
            out[index] = _create_ep_device(host, handle, device, metadata, options)
            used[0] = index + 1
            _add_memories(host, made, device, out[index])
        made.make_early(host)
    except BaseException:
        for index in range(used[0]):
            host.ep_api.ReleaseEpDevice(out[index])
            out[index] = ffi.NULL
        used[0] = 0
        raise


def _offered(cls: type[ExecutionProvider], item: Any) -> tuple[Device, Mapping[Any, Any], Mapping[Any, Any]]:
    """A device, its metadata and its options."""
    given = item if isinstance(item, tuple) and len(item) in (2, 3) else (item,)
    device, metadata, options = (*given, {}, {})[:3]
    if not isinstance(device, Device):
        raise TypeError(
            f"{cls.__qualname__}.get_supported_devices() must give Device objects, not {device!r}"
        )
    return device, metadata, options


def _create_ep_device(
    host: CData, factory: CData, device: Device, metadata: Mapping[Any, Any], options: Mapping[Any, Any]
) -> CData:
    pairs: list[CData] = []
    out = ffi.new("OrtEpDevice**")
    try:
        pairs += (new_key_values(host.api, items) for items in (metadata, options))
        check(host.ep_api.CreateEpDevice(factory, device._handle, *pairs, out), host.api)
    finally:
        for made in pairs:
            host.api.ReleaseKeyValuePairs(made)
    return out[0]


def _add_memories(host: CData, factory: Factory, device: Device, ep_device: CData) -> None:
    for memory in factory.cls.memory_infos(device):
        if not isinstance(memory, MemoryInfo):
            raise TypeError(
                f"{factory.cls.__qualname__}.memory_infos() must give MemoryInfo objects, not {memory!r}"
            )
        pointer = factory.info_of(host.api, memory)
        check(host.ep_api.EpDevice_AddAllocatorInfo(ep_device, pointer), host.api)


# ---- sessions ----


@callback
def bridge_py_create_ep(
    call: CData,
    factory: int,
    devices: CData,
    count: int,
    options: CData,
    logger: CData,
    number: CData,
    features: CData,
) -> None:
    made: Factory = objects.get(factory, "factory")
    cls, host = made.cls, call.host
    config = config_of(host.api, options)
    ep: ExecutionProvider = cls.__new__(cls)
    prefix = f"ep.{cls.name.lower()}."
    ep.options = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    ep.config = {key: value for key, value in config.items() if not key.startswith(prefix)}
    ep.devices = tuple(device_of(host.api, devices[i]) for i in range(count))
    ep._binding = Binding(host, logger, made)
    features[0] = _features(made)
    ep.__init__()  # type: ignore[misc]
    number[0] = objects.add(ep)


_OPTIONAL = {
    "on_run_start": lib.BRIDGE_EP_RUN_START,
    "on_run_end": lib.BRIDGE_EP_RUN_END,
    "set_dynamic_options": lib.BRIDGE_EP_DYNAMIC_OPTIONS,
    "on_session_ready": lib.BRIDGE_EP_SESSION_READY,
    "sync": lib.BRIDGE_EP_SYNC,
    "should_convert_data_layout": lib.BRIDGE_EP_CONVERTS_LAYOUT,
    "create_session_allocator": lib.BRIDGE_EP_ALLOCATOR,
    "create_session_stream": lib.BRIDGE_EP_STREAM,
    "default_memory_device": lib.BRIDGE_EP_DEFAULT_MEMORY,
}


def _features(factory: Factory) -> int:
    cls, base = factory.cls, ExecutionProvider
    found = sum(bit for name, bit in _OPTIONAL.items() if getattr(cls, name) is not getattr(base, name))
    found |= features_of(cls)
    if cls.create_allocator.__func__ is not base.create_allocator.__func__:  # type: ignore[attr-defined]
        found |= lib.BRIDGE_EP_ALLOCATOR
    layout = cls.preferred_data_layout
    if layout not in ("NCHW", "NHWC"):
        raise ValueError(f"{cls.__qualname__}.preferred_data_layout is 'NCHW' or 'NHWC', not {layout!r}")
    if layout == "NHWC":
        found |= lib.BRIDGE_EP_CHANNELS_LAST
    has_kernels = cls.kernels or cls.control_flow or factory.memories
    return found | lib.BRIDGE_EP_KERNELS if has_kernels else found


# ---- optional slots ----


def _class(factory: int) -> type[ExecutionProvider]:
    cls: type[ExecutionProvider] = objects.get(factory, "factory").cls
    return cls


@callback
def bridge_py_validate_compatibility(
    call: CData, factory: int, devices: CData, count: int, text: CData, answer: CData
) -> None:
    cls = _class(factory)
    found = tuple(device_of(call.host.api, devices[i]) for i in range(count))
    word = cls.validate_compiled_model_compatibility_info(found, text_of(text))
    what = f"{cls.__qualname__}.validate_compiled_model_compatibility_info()"
    answer[0] = number_of("compatibility", word, what)


@callback
def bridge_py_incompatibility(call: CData, factory: int, device: CData, details: CData) -> None:
    cls, host = _class(factory), call.host
    found = cls.get_hardware_device_incompatibility_details(device_of(host.api, device))
    if found is None:
        return
    what = f"{cls.__qualname__}.get_hardware_device_incompatibility_details()"
    if not isinstance(found, Incompatibility):
        raise TypeError(f"{what} must return an ort_abi.ep.Incompatibility or None, not {found!r}")
    bits = 0
    for word in found.reasons:
        bits |= number_of("reason", word, f"a reason of {what}") & 0xFFFFFFFF
    notes = found.notes.encode()
    check(
        host.ep_api.DeviceEpIncompatibilityDetails_SetDetails(details, bits, found.error_code, notes),
        host.api,
    )


@callback
def bridge_py_init_graphics(call: CData, factory: int, device: CData, config: CData) -> None:
    cls = _class(factory)
    where = device_of(call.host.api, call.host.api.EpDevice_Device(device))
    if config == ffi.NULL:
        plain_call(cls.deinit_graphics_interop, where)
        return
    queue = int(ffi.cast("uintptr_t", config.command_queue))
    options = key_values_of(call.host.api, config.additional_options)
    interop = GraphicsInterop(word_of("graphics", config.graphics_api), queue, options)
    plain_call(cls.init_graphics_interop, where, interop)


@callback
def bridge_py_select_model(
    call: CData, factory: int, device: CData, candidates: CData, count: int, options: CData, index: CData
) -> None:
    cls, api = _class(factory), call.host.api
    given = tuple(key_values_of(api, candidates[i]) for i in range(count))
    found = cls.select_best_model_candidate(device_of(api, device), given, config_of(api, options))
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < count:
        raise ValueError(
            f"{cls.__qualname__}.select_best_model_candidate() must return an index below {count}, "
            f"not {found!r}"
        )
    index[0] = found
