"""Profilers of execution providers written in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ort_abi._lib import CData, check, ffi
from ort_abi.ep._call.words import number_of, word_of

__all__ = ["HostEvent", "Profiler", "ProfilingEvent", "add_events"]


@dataclass(frozen=True)
class ProfilingEvent:
    """An event for the profile (`CreateProfilingEvent`, API 25).

    Times are in microseconds since the profile began; `Profiler.start_profiling` says when that was. Values
    of `args` that begin with "{" or "[" are written as JSON, others as text.
    """

    name: str
    timestamp_us: int
    duration_us: int
    args: Mapping[str, str] = field(default_factory=dict)
    category: str = "kernel"
    """"session", "node", "kernel" or "api"."""
    process_id: int = -1
    thread_id: int = -1


class HostEvent:
    """What the host has recorded, valid during `Profiler.stop_event` (`ProfilingEvent_*`, API 25)."""

    def __init__(self, host: CData, pointer: CData) -> None:
        self._host = host
        self._pointer: CData | None = pointer

    def _close(self) -> None:
        self._pointer = None

    def _get(self, slot: str, kind: str, *arguments: bytes) -> CData:
        if self._pointer is None:
            raise RuntimeError("a HostEvent is valid only during stop_event: read what you need there")
        out = ffi.new(kind)
        check(getattr(self._host.ep_api, slot)(self._pointer, *arguments, out), self._host.api)
        return out[0]

    def _text(self, slot: str, *arguments: bytes) -> str | None:
        pointer = self._get(slot, "const char**", *arguments)
        return None if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "surrogateescape")

    @property
    def name(self) -> str:
        """ "model_run", "<node's name>_kernel_time", …"""
        return self._text("ProfilingEvent_GetName") or ""

    @property
    def category(self) -> str:
        """ "session", "node", "kernel" or "api"."""
        return word_of("category", self._get("ProfilingEvent_GetCategory", "OrtProfilingEventCategory*"))

    @property
    def timestamp_us(self) -> int:
        """When it began, in microseconds since the profile did."""
        return int(self._get("ProfilingEvent_GetTimestampUs", "int64_t*"))

    @property
    def duration_us(self) -> int:
        """How many microseconds it took."""
        return int(self._get("ProfilingEvent_GetDurationUs", "int64_t*"))

    def arg(self, key: str) -> str | None:
        """One of its arguments, such as "op_name" or "node_index"; None where it has none of that name."""
        return self._text("ProfilingEvent_GetArgValue", key.encode())


class Profiler:
    """A provider's part of a session's profile (`OrtEpProfilerImpl`, API 25): `create_profiler` makes one a
    session.

    Derive, and define `end_profiling`. `start_event` and `stop_event` are called around everything that the
    host records, if they are defined. What any of these raises is logged by the host and costs the profile
    the provider's events; the session runs on.
    """

    def start_profiling(self, offset_ns: int) -> None:
        """The profile began `offset_ns` nanoseconds ago."""

    def start_event(self, event_id: int) -> None:
        """The host begins something. On the thread that does it; events are one inside the other."""

    def stop_event(self, event_id: int, event: HostEvent) -> None:
        """It is done. The id is the one that `start_event` had; in our host no other event has it."""

    def end_profiling(self) -> Iterable[ProfilingEvent]:
        """The profile is written: the provider's events for it. Nothing comes after this but `close`."""
        return ()

    def close(self) -> None:
        """Called when the host releases the profiler."""


def add_events(host: CData, container: CData, events: Iterable[ProfilingEvent]) -> None:
    """Puts events into a host's container, which *copies* them."""
    for event in events:
        if not isinstance(event, ProfilingEvent):
            raise TypeError(f"end_profiling() must give ProfilingEvent objects, not {event!r}")
        made = _create(host, event)
        try:
            one = ffi.new("const OrtProfilingEvent*[1]", [made])
            check(host.ep_api.ProfilingEventsContainer_AddEvents(container, one, 1), host.api)
        finally:
            host.ep_api.ReleaseProfilingEvent(made)


def _create(host: CData, event: ProfilingEvent) -> CData:
    """*gives* an event (caller releases with `ReleaseProfilingEvent`)."""
    category = number_of("category", event.category, "ProfilingEvent.category")
    keys = [ffi.new("char[]", str(key).encode()) for key in event.args]
    values = [ffi.new("char[]", str(value).encode()) for value in event.args.values()]
    out = ffi.new("OrtProfilingEvent**")
    status = host.ep_api.CreateProfilingEvent(
        category,
        event.process_id,
        event.thread_id,
        event.name.encode(),
        event.timestamp_us,
        event.duration_us,
        ffi.new("const char*[]", keys),
        ffi.new("const char*[]", values),
        len(keys),
        out,
    )
    check(status, host.api)
    return out[0]
