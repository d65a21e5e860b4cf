"""The functions that the C side calls for profiles (csrc/bridge/profiler.c), under the rules of
`_call.calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_abi._lib import CData, lib
from ort_abi.ep._call import objects
from ort_abi.ep._call.calls import callback, checked, plain_call
from ort_abi.ep._profiler.profiler import HostEvent, Profiler, add_events

if TYPE_CHECKING:
    from ort_abi.ep._ep.provider import ExecutionProvider

__all__: list[str] = []


@callback
def bridge_py_create_profiler(call: CData, number: int, out: CData, features: CData) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
    made = ep.create_profiler()
    if made is None:
        return
    checked(made, Profiler, f"{type(ep).__qualname__}.create_profiler()")
    if type(made).start_event is not Profiler.start_event:
        features[0] |= lib.BRIDGE_PROFILER_START_EVENT
    if type(made).stop_event is not Profiler.stop_event:
        features[0] |= lib.BRIDGE_PROFILER_STOP_EVENT
    out[0] = objects.add(made)


@callback
def bridge_py_start_profiling(call: CData, number: int, offset_ns: int) -> None:
    plain_call(objects.get(number, "profiler").start_profiling, offset_ns)


@callback
def bridge_py_start_event(call: CData, number: int, event_id: int) -> None:
    plain_call(objects.get(number, "profiler").start_event, event_id)


@callback
def bridge_py_stop_event(call: CData, number: int, event_id: int, pointer: CData) -> None:
    profiler: Profiler = objects.get(number, "profiler")
    event = HostEvent(call.host, pointer)
    try:
        plain_call(profiler.stop_event, event_id, event)
    finally:
        event._close()


@callback
def bridge_py_end_profiling(call: CData, number: int, container: CData) -> None:
    add_events(call.host, container, objects.get(number, "profiler").end_profiling())
