"""What happens when a host releases something: the one place that knows the classes of all concerns."""

from __future__ import annotations

import atexit

from ort_abi._lib import CData, lib
from ort_abi.ep._call import objects
from ort_abi.ep._call.calls import callback, plain_call
from ort_abi.ep._device.device import Allocator, DataTransfer, SyncNotification, SyncStream
from ort_abi.ep._ep.callbacks import release_binding
from ort_abi.ep._ep.provider import ExecutionProvider
from ort_abi.ep._factory.factory import Factory
from ort_abi.ep._importer.importer import Imported, ResourceImporter
from ort_abi.ep._node.callbacks import forget_computation
from ort_abi.ep._node.kernel import Kernel
from ort_abi.ep._node.prepack import release_shared
from ort_abi.ep._profiler.profiler import Profiler

__all__: list[str] = []

_CLOSABLE = (
    Factory,
    ExecutionProvider,
    Kernel,
    Allocator,
    DataTransfer,
    SyncStream,
    SyncNotification,
    Profiler,
    ResourceImporter,
    Imported,
)


@callback
def bridge_py_release(call: CData, number: int) -> None:
    forget_computation(number)
    item = objects.remove(number)
    ep = item if isinstance(item, ExecutionProvider) else None
    try:
        if isinstance(item, _CLOSABLE):
            plain_call(item.close)
    finally:  # what it raises is no reason to keep the rest
        del item
        release_shared(number)
        if ep is not None:
            release_binding(ep)


atexit.register(lib.bridge_gate_close)
