"""The functions that the C side calls for devices (csrc/bridge/device.c),
under the rules of `_call.calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ort_abi._lib import CData, ffi, lib
from ort_abi.ep._call import objects
from ort_abi.ep._call.calls import callback, checked, key_values_of, new_key_values, plain_call
from ort_abi.ep._device.device import (
    Allocator,
    DataTransfer,
    DeviceTensor,
    SyncNotification,
    SyncStream,
    lent_tensors,
    memory_device,
    memory_name,
    tensor_of,
)

if TYPE_CHECKING:
    from ort_abi.ep._ep.provider import ExecutionProvider
    from ort_abi.ep._factory.factory import Factory

__all__: list[str] = []

_OPTIONAL = {
    "stats": lib.BRIDGE_ALLOCATOR_STATS,
    "alloc_on_stream": lib.BRIDGE_ALLOCATOR_STREAMS,
    "shrink": lib.BRIDGE_ALLOCATOR_SHRINK,
}


def _address(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= int(value) < 1 << 64:
        raise TypeError(f"{what} must return an address, not {value!r}")
    return int(value)


def _stream(number: int) -> SyncStream | None:
    """The stream of an id; None for 0."""
    found: SyncStream | None = objects.get(number, "stream") if number else None
    return found


# ---- allocators ----


@callback
def bridge_py_create_allocator(call: CData, owner: int, memory: CData, options: CData, info: CData) -> None:
    factory, ep = _owner(owner)
    api = call.host.api
    if not factory.memories:
        return
    found = next((known for known, pointer in factory.memories.items() if pointer == memory), None)
    if found is None:
        raise ValueError(
            "the host asks for an allocator with an OrtMemoryInfo that is not of memory_infos(): "
            f"'{memory_name(api, memory)}'"
        )
    if ep is None:
        made = factory.new_allocator(found, key_values_of(api, options))
    else:
        made = ep.create_session_allocator(found)
    if made is None:
        return
    checked(made, Allocator, f"{factory.cls.__qualname__}.create_session_allocator()")
    kind = type(made)
    info.features = sum(
        bit for name, bit in _OPTIONAL.items() if getattr(kind, name) is not getattr(Allocator, name)
    )
    info.memory = found._create(api)
    info.id = objects.add(made)


def _owner(number: int) -> tuple[Factory, ExecutionProvider | None]:
    """The factory, and the provider if it is the provider's id."""
    found = objects.get(number, "factory or provider")
    binding = getattr(found, "_binding", None)  # what a factory does not have
    return (found, None) if binding is None else (binding.factory, found)


@callback
def bridge_py_alloc(call: CData, number: int, size: int, kind: int, stream: int, address: CData) -> None:
    allocator: Allocator = objects.get(number, "allocator")
    if kind == lib.BRIDGE_ALLOC_ON_STREAM:
        found, what = allocator.alloc_on_stream(size, _stream(stream)), "alloc_on_stream()"
    elif kind == lib.BRIDGE_RESERVE:
        found, what = allocator.reserve(size), "reserve()"
    else:
        found, what = allocator.alloc(size), "alloc()"
    address[0] = _address(found, f"{type(allocator).__qualname__}.{what}")


@callback
def bridge_py_free(call: CData, number: int, address: int) -> None:
    plain_call(objects.get(number, "allocator").free, address)


@callback
def bridge_py_get_stats(call: CData, number: int, out: CData) -> None:
    allocator: Allocator = objects.get(number, "allocator")
    out[0] = new_key_values(call.host.api, allocator.stats())


@callback
def bridge_py_shrink(call: CData, number: int) -> None:
    plain_call(objects.get(number, "allocator").shrink)


# ---- copies ----


@callback
def bridge_py_create_data_transfer(call: CData, factory: int, number: CData) -> None:
    made = objects.get(factory, "factory").new_transfer()
    if made is not None:
        number[0] = objects.add(made)


@callback
def bridge_py_can_copy(call: CData, number: int, source: CData, target: CData, yes: CData) -> None:
    transfer: DataTransfer = objects.get(number, "data transfer")
    ep_api = call.host.ep_api
    devices = memory_device(ep_api, source), memory_device(ep_api, target)
    yes[0] = bool(plain_call(transfer.can_copy, *devices))


@callback
def bridge_py_copy_tensors(
    call: CData, number: int, sources: CData, targets: CData, streams: CData, count: int
) -> None:
    transfer: DataTransfer = objects.get(number, "data transfer")
    host = call.host
    from_: list[DeviceTensor] = []
    to: list[DeviceTensor] = []
    on: list[SyncStream | None] = []
    with lent_tensors(from_, to, streams=on):
        for i in range(count):
            source = tensor_of(host, sources[i], writeable=False)
            if not source.nbytes:  # stock hosts pass those on
                continue
            from_.append(source)
            to.append(tensor_of(host, targets[i], writeable=True))
            on.append(_stream(0 if streams == ffi.NULL else lib.bridge_stream_id(call, streams[i])))
        if from_:
            plain_call(transfer.copy_tensors, from_, to, on)


# ---- streams ----


@callback
def bridge_py_create_sync_stream(
    call: CData, owner: int, device: CData, options: CData, number: CData
) -> None:
    factory, ep = _owner(owner)
    where = memory_device(call.host.ep_api, device)
    if ep is None:
        made = factory.new_stream(where, key_values_of(call.host.api, options))
    else:
        made = checked(
            ep.create_session_stream(where),
            SyncStream,
            f"{type(ep).__qualname__}.create_session_stream()",
        )
    made._factory = factory
    number[0] = objects.add(made)


@callback
def bridge_py_stream_handle(call: CData, number: int, handle: CData) -> None:
    stream: SyncStream = objects.get(number, "stream")
    handle[0] = _address(stream.handle(), f"{type(stream).__qualname__}.handle()")


@callback
def bridge_py_stream_flush(call: CData, number: int) -> None:
    plain_call(objects.get(number, "stream").flush)


@callback
def bridge_py_stream_run_end(call: CData, number: int) -> None:
    plain_call(objects.get(number, "stream").on_session_run_end)


@callback
def bridge_py_create_notification(call: CData, number: int, out: CData) -> None:
    stream: SyncStream = objects.get(number, "stream")
    made = stream.create_notification()
    out[0] = objects.add(
        checked(made, SyncNotification, f"{type(stream).__qualname__}.create_notification()")
    )


@callback
def bridge_py_notify(call: CData, number: int, what: int, consumer: int) -> None:
    notification: SyncNotification = objects.get(number, "notification")
    stream = _stream(consumer)
    if what == lib.BRIDGE_ACTIVATE:
        plain_call(notification.activate)
    elif what == lib.BRIDGE_WAIT_ON_DEVICE and stream is not None:
        plain_call(notification.wait_on_device, stream)
    else:
        plain_call(notification.wait_on_host)
