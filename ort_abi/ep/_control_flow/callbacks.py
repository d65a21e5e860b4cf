"""The functions that the C side calls for If, Loop and Scan (csrc/bridge/control_flow.c), under the rules of
`_call.calls`: the host makes the kernels, and has the provider move what is on its device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ort_abi._lib import CData
from ort_abi.ep._call import objects
from ort_abi.ep._call.calls import callback, plain_call
from ort_abi.ep._device.device import DeviceTensor, SyncStream, lent_tensors, tensor_of
from ort_abi.ep._node.memcpy import session_transfer

if TYPE_CHECKING:
    from ort_abi.ep._ep.provider import ExecutionProvider

__all__: list[str] = []


@callback
def bridge_py_concat(
    call: CData, number: int, handle: int, values: CData, count: int, output: int, size: int
) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
    sources: list[DeviceTensor] = []
    targets: list[DeviceTensor] = []
    stream = _stream_of(ep, handle)
    with lent_tensors(sources, targets, streams=[stream]):
        for index in range(count):
            source = tensor_of(call.host, values[index], writeable=False)
            if source.nbytes:
                sources.append(source)
                targets.append(_part(source, output, size))
                output, size = output + source.nbytes, size - source.nbytes
        if sources:
            plain_call(session_transfer(ep).copy_tensors, sources, targets, [stream] * len(sources))


def _part(source: DeviceTensor, address: int, room: int) -> DeviceTensor:
    if source.nbytes > room:
        raise ValueError(f"Loop: the output has {room} bytes left for a value of {source.nbytes}")
    return DeviceTensor(address, source._element_type, source.shape, source.device, writeable=True)


def _stream_of(ep: ExecutionProvider, handle: int) -> SyncStream | None:
    """The provider's stream with this handle: hosts give no more of it here. None for 0."""
    if not handle:
        return None
    for stream in objects.of_type(SyncStream):
        if stream._factory is ep._binding.factory and stream.handle() == handle:
            return stream
    raise LookupError(f"{type(ep).__qualname__} has no stream with the handle {handle:#x}")


@callback
def bridge_py_transpose(
    call: CData, number: int, permutation: CData, count: int, source: CData, stream: int, target: CData
) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
    order: Sequence[int] = tuple(permutation[index] for index in range(count))
    from_ = tensor_of(call.host, source, writeable=False)
    to = tensor_of(call.host, target, writeable=True)
    on = objects.get(stream, "stream") if stream else None
    with lent_tensors([from_, to], streams=[on]):
        plain_call(ep.transpose, order, from_, to, on)
