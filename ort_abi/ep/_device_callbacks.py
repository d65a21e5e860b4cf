"""The functions that the C side calls for devices (csrc/bridge/device.c), under the rules of `_callbacks`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ort_abi._lib import CData, ffi, lib
from ort_abi.ep import _objects
from ort_abi.ep._callbacks import callback, key_values_of
from ort_abi.ep._device import (
    Allocator,
    DataTransfer,
    MemoryInfo,
    SyncNotification,
    SyncStream,
    memory_device,
    memory_key,
    tensor_of,
)
from ort_abi.ep._registration import Factory

__all__: list[str] = []

_OPTIONAL = {
    "stats": lib.BRIDGE_ALLOCATOR_STATS,
    "alloc_on_stream": lib.BRIDGE_ALLOCATOR_STREAMS,
    "shrink": lib.BRIDGE_ALLOCATOR_SHRINK,
}


def _checked(made: Any, kind: type, what: str) -> Any:
    if not isinstance(made, kind):
        raise TypeError(f"{what} must return an ort_abi.ep.{kind.__name__}, not {made!r}")
    return made


def _address(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= int(value) < 1 << 64:
        raise TypeError(f"{what} must return an address, not {value!r}")
    return int(value)


def _stream(number: int) -> SyncStream | None:
    """The stream of an id; None for 0."""
    found: SyncStream | None = _objects.get(number, "stream") if number else None
    return found


# ---- allocators ----


@callback
def bridge_py_create_allocator(call: CData, factory: int, memory: CData, options: CData, info: CData) -> None:
    cls, memories = _factory(factory)
    api = call.host.api
    if not memories:
        return
    key = memory_key(api, memory)
    found = next((known for known in memories if known._key() == key), None)
    if found is None:
        raise ValueError(
            "the host asks for an allocator of memory that memory_infos() does not have: its device type, "
            f"vendor id, device id, memory type and allocator type are {key}"
        )
    made = cls.create_allocator(found, key_values_of(api, options))
    if made is None:
        return
    _checked(made, Allocator, f"{cls.__qualname__}.create_allocator()")
    kind = type(made)
    info.features = sum(
        bit for name, bit in _OPTIONAL.items() if getattr(kind, name) is not getattr(Allocator, name)
    )
    info.memory = found._create(api)
    info.id = _objects.add(made)


def _factory(number: int) -> tuple[Any, Collection[MemoryInfo]]:
    factory: Factory = _objects.get(number, "factory")
    return factory.cls, factory.memories


@callback
def bridge_py_alloc(call: CData, number: int, size: int, kind: int, stream: int, address: CData) -> None:
    allocator: Allocator = _objects.get(number, "allocator")
    if kind == lib.BRIDGE_ALLOC_ON_STREAM:
        found = allocator.alloc_on_stream(size, _stream(stream))
    else:
        found = allocator.reserve(size) if kind == lib.BRIDGE_RESERVE else allocator.alloc(size)
    address[0] = _address(found, f"{type(allocator).__qualname__}.alloc()")


@callback
def bridge_py_free(call: CData, number: int, address: int) -> None:
    _objects.get(number, "allocator").free(address)


@callback
def bridge_py_get_stats(call: CData, number: int, out: CData) -> None:
    allocator: Allocator = _objects.get(number, "allocator")
    api = call.host.api
    pairs = {str(key).encode(): str(value).encode() for key, value in dict(allocator.stats()).items()}
    api.CreateKeyValuePairs(out)
    if out[0] == ffi.NULL:
        raise MemoryError("no memory for statistics")
    for key, value in pairs.items():
        api.AddKeyValuePair(out[0], key, value)


@callback
def bridge_py_shrink(call: CData, number: int) -> None:
    _objects.get(number, "allocator").shrink()


# ---- copies ----


@callback
def bridge_py_create_data_transfer(call: CData, factory: int, number: CData) -> None:
    cls, _ = _factory(factory)
    made = cls.create_data_transfer()
    if made is not None:
        number[0] = _objects.add(_checked(made, DataTransfer, f"{cls.__qualname__}.create_data_transfer()"))


@callback
def bridge_py_can_copy(call: CData, number: int, source: CData, target: CData, yes: CData) -> None:
    transfer: DataTransfer = _objects.get(number, "data transfer")
    ep_api = call.host.ep_api
    yes[0] = bool(transfer.can_copy(memory_device(ep_api, source), memory_device(ep_api, target)))


@callback
def bridge_py_copy_tensors(
    call: CData, number: int, sources: CData, targets: CData, streams: CData, count: int
) -> None:
    transfer: DataTransfer = _objects.get(number, "data transfer")
    host = call.host
    given = [ffi.NULL] * count if streams == ffi.NULL else [streams[i] for i in range(count)]
    found = [_stream(lib.bridge_stream_id(host, stream)) for stream in given]
    from_ = [tensor_of(host, sources[i], writeable=False) for i in range(count)]
    to = [tensor_of(host, targets[i], writeable=True) for i in range(count)]
    try:
        transfer.copy_tensors(from_, to, found)
    finally:
        for tensor in (*from_, *to):
            tensor._close()


# ---- streams ----


@callback
def bridge_py_create_sync_stream(
    call: CData, factory: int, device: CData, options: CData, number: CData
) -> None:
    cls, _ = _factory(factory)
    where = memory_device(call.host.ep_api, device)
    made = cls.create_sync_stream(where, key_values_of(call.host.api, options))
    number[0] = _objects.add(_checked(made, SyncStream, f"{cls.__qualname__}.create_sync_stream()"))


@callback
def bridge_py_stream_handle(call: CData, number: int, handle: CData) -> None:
    stream: SyncStream = _objects.get(number, "stream")
    handle[0] = _address(stream.handle(), f"{type(stream).__qualname__}.handle()")


@callback
def bridge_py_stream_flush(call: CData, number: int) -> None:
    _objects.get(number, "stream").flush()


@callback
def bridge_py_stream_run_end(call: CData, number: int) -> None:
    _objects.get(number, "stream").on_session_run_end()


@callback
def bridge_py_create_notification(call: CData, number: int, out: CData) -> None:
    stream: SyncStream = _objects.get(number, "stream")
    made = stream.create_notification()
    out[0] = _objects.add(
        _checked(made, SyncNotification, f"{type(stream).__qualname__}.create_notification()")
    )


@callback
def bridge_py_notify(call: CData, number: int, what: int, consumer: int) -> None:
    notification: SyncNotification = _objects.get(number, "notification")
    stream = _stream(consumer)
    if what == lib.BRIDGE_ACTIVATE:
        notification.activate()
    elif what == lib.BRIDGE_WAIT_ON_DEVICE and stream is not None:
        notification.wait_on_device(stream)
    else:
        notification.wait_on_host()


# ---- provider ----


@callback
def bridge_py_ep_sync(call: CData, number: int) -> None:
    _objects.get(number, "provider").sync()
