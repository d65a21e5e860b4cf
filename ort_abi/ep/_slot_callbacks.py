"""The functions that the C side calls for optional slots (csrc/bridge: ep_slots.c, factory_slots.c,
profiler.c), under the rules of `_callbacks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ort_abi._lib import CData, check, ffi, lib
from ort_abi.ep import _objects
from ort_abi.ep._callbacks import HOST_SHIFT, callback, config_of, device_of, key_values_of, text_of
from ort_abi.ep._custom_ops import infer_shapes
from ort_abi.ep._device import plain_call
from ort_abi.ep._factory import checked
from ort_abi.ep._profiler import HostEvent, Profiler, add_events
from ort_abi.ep._provider import ExecutionProvider
from ort_abi.ep._slots import GraphicsInterop, Incompatibility, number_of, word_of
from ort_abi.graph import open_graph

__all__: list[str] = []


def _class(factory: int) -> type[ExecutionProvider]:
    cls: type[ExecutionProvider] = _objects.get(factory, "factory").cls
    return cls


# ---- provider ----


def _resource(ep: ExecutionProvider) -> int:
    found = ep.get_available_resource()
    if found is None:
        return -1
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < 1 << 63:
        raise TypeError(
            f"{type(ep).__qualname__}.get_available_resource() must return a number of bytes or None, "
            f"not {found!r}"
        )
    return found


def _word(kind: str, name: str) -> Callable[[ExecutionProvider, int], int]:
    def ask(ep: ExecutionProvider, argument: int) -> int:
        return number_of(kind, getattr(ep, name)(), f"{type(ep).__qualname__}.{name}()")

    return ask


_ANSWERS: dict[int, Callable[[ExecutionProvider, int], Any]] = {
    lib.BRIDGE_ASK_CAPTURE_ENABLED: lambda ep, _: bool(plain_call(ep.is_graph_capture_enabled)),
    lib.BRIDGE_ASK_IS_CAPTURED: lambda ep, graph: bool(plain_call(ep.is_graph_captured, graph)),
    lib.BRIDGE_ASK_REPLAY: lambda ep, graph: plain_call(ep.replay_graph, graph),
    lib.BRIDGE_ASK_CAPTURE_POLICY: _word("policy", "get_graph_capture_node_assignment_policy"),
    lib.BRIDGE_ASK_RELEASE_GRAPH: lambda ep, graph: plain_call(ep.release_captured_graph, graph),
    lib.BRIDGE_ASK_RESOURCE: lambda ep, _: _resource(ep),
    lib.BRIDGE_ASK_WEIGHTLESS: _word("weightless", "get_weightless_support"),
}


@callback
def bridge_py_ep_ask(call: CData, number: int, what: int, argument: int, answer: CData) -> None:
    ep: ExecutionProvider = _objects.get(number, "provider")
    answer[0] = _ANSWERS[what](ep, argument) or 0


@callback
def bridge_py_model_compatibility(call: CData, number: int, graph: CData, text: CData) -> None:
    ep: ExecutionProvider = _objects.get(number, "provider")
    with open_graph(call.host.api, graph) as (view,):
        found = ep.get_compiled_model_compatibility_info(view)
    if not isinstance(found, str) or "\0" in found:
        raise TypeError(
            f"{type(ep).__qualname__}.get_compiled_model_compatibility_info() must return a text, "
            f"not {found!r}"
        )
    text[0] = lib.bridge_copy_string(found.encode())
    if text[0] == ffi.NULL:
        raise MemoryError("no memory for a text")


@callback
def bridge_py_infer_shapes(call: CData, factory: int, index: int, context: CData) -> None:
    op = _class(factory).custom_ops[index]
    infer_shapes(call.host.api, context, op)


@callback
def bridge_py_find_kernel(
    call: CData, number: int, domain: CData, op_type: CData, since_version: int, state: CData
) -> None:
    ep: ExecutionProvider = _objects.get(number, "provider")
    wanted = text_of(domain), text_of(op_type), since_version
    for definition in ep._binding.definitions:
        _, spec = _objects.get(definition, "kernel definition")
        if spec.fits(*wanted):
            state[0] = call.host.index << HOST_SHIFT | definition
            return
    name = f"{wanted[0]}::{wanted[1]} of version {since_version}"
    raise NotImplementedError(f"the custom operator {name} was not compiled, and there is no kernel for it")


# ---- factory ----


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


# ---- profiler ----


@callback
def bridge_py_create_profiler(call: CData, number: int, out: CData, features: CData) -> None:
    ep: ExecutionProvider = _objects.get(number, "provider")
    made = ep.create_profiler()
    if made is None:
        return
    checked(made, Profiler, f"{type(ep).__qualname__}.create_profiler()")
    if type(made).start_event is not Profiler.start_event:
        features[0] |= lib.BRIDGE_PROFILER_START_EVENT
    if type(made).stop_event is not Profiler.stop_event:
        features[0] |= lib.BRIDGE_PROFILER_STOP_EVENT
    out[0] = _objects.add(made)


@callback
def bridge_py_start_profiling(call: CData, number: int, offset_ns: int) -> None:
    plain_call(_objects.get(number, "profiler").start_profiling, offset_ns)


@callback
def bridge_py_start_event(call: CData, number: int, event_id: int) -> None:
    plain_call(_objects.get(number, "profiler").start_event, event_id)


@callback
def bridge_py_stop_event(call: CData, number: int, event_id: int, pointer: CData) -> None:
    profiler: Profiler = _objects.get(number, "profiler")
    event = HostEvent(call.host, pointer)
    try:
        plain_call(profiler.stop_event, event_id, event)
    finally:
        event._close()


@callback
def bridge_py_end_profiling(call: CData, number: int, container: CData) -> None:
    add_events(call.host, container, _objects.get(number, "profiler").end_profiling())
