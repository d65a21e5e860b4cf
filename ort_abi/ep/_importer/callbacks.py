"""The functions that the C side calls for imported memory and semaphores (csrc/bridge/importer.c), under the
rules of `_call.calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_abi import dtypes
from ort_abi._lib import CData, check, ffi
from ort_abi.ep._call import objects
from ort_abi.ep._call.calls import callback, checked, plain_call
from ort_abi.ep._call.words import word_of
from ort_abi.ep._device.hardware import device_of
from ort_abi.ep._importer.importer import ExternalMemory, ExternalSemaphore, Imported, ResourceImporter

if TYPE_CHECKING:
    from ort_abi.ep._factory.factory import Factory

__all__: list[str] = []


@callback
def bridge_py_create_importer(call: CData, number: int, device: CData, out: CData) -> None:
    factory: Factory = objects.get(number, "factory")
    api, cls = call.host.api, factory.cls
    made = cls.create_resource_importer(device_of(api, api.EpDevice_Device(device)))
    if made is None:
        return
    what = f"{cls.__qualname__}.create_resource_importer()"
    checked(made, ResourceImporter, what)
    memory = getattr(made, "memory", None)
    if memory not in factory.memories:
        raise ValueError(f"{what}: its memory must be one of memory_infos(), not {memory!r}")
    made._factory = factory
    out[0] = objects.add(made)


def _described(what: CData) -> ExternalMemory | ExternalSemaphore:
    if what.is_semaphore:
        return ExternalSemaphore(word_of("semaphore", what.type), what.handle)
    return ExternalMemory(word_of("memory", what.type), what.handle, what.size, what.offset)


@callback
def bridge_py_can_import(call: CData, number: int, what: CData, yes: CData) -> None:
    importer: ResourceImporter = objects.get(number, "importer")
    described = _described(what)
    ask = importer.can_import_semaphore if what.is_semaphore else importer.can_import_memory
    yes[0] = bool(plain_call(ask, described.type))


@callback
def bridge_py_import(call: CData, number: int, what: CData, out: CData) -> None:
    importer: ResourceImporter = objects.get(number, "importer")
    described = _described(what)
    if isinstance(described, ExternalSemaphore):
        out[0] = objects.add(Imported(importer, plain_call(importer.import_semaphore, described), None))
        return
    if described.offset > described.size:
        raise ValueError(f"the memory has {described.size} bytes, the offset is {described.offset}")
    address = importer.import_memory(described)
    if isinstance(address, bool) or not isinstance(address, int) or not 0 < address < 1 << 64:
        name = type(importer).__qualname__
        raise TypeError(f"{name}.import_memory() must return an address, not {address!r}")
    out[0] = objects.add(Imported(importer, address, described.size - described.offset))


@callback
def bridge_py_imported_tensor(
    call: CData, number: int, element_type: int, shape: CData, rank: int, offset: int, out: CData
) -> None:
    memory: Imported = objects.get(number, "imported memory")
    assert memory.size is not None
    count = 1
    for index in range(rank):
        if shape[index] < 0:
            raise ValueError(f"dimension {index} of the tensor is {shape[index]}")
        count *= shape[index]
    size = dtypes.bytes_for(element_type, count)
    if offset + size > memory.size:
        raise ValueError(
            f"the tensor has {size} bytes from {offset} on, the imported memory only {memory.size}"
        )
    api, importer = call.host.api, memory.importer
    info = importer._factory.memories.get(importer.memory)
    if info is None:
        raise LookupError(f"the factory that has {importer.memory} was released")
    data = ffi.cast("void*", memory.item + offset)
    check(api.CreateTensorWithDataAsOrtValue(info, data, size, shape, rank, element_type, out), api)


@callback
def bridge_py_semaphore(call: CData, number: int, stream: int, value: int, is_signal: int) -> None:
    semaphore: Imported = objects.get(number, "imported semaphore")
    on = objects.get(stream, "stream") if stream else None
    importer = semaphore.importer
    use = importer.signal_semaphore if is_signal else importer.wait_semaphore
    plain_call(use, semaphore.item, on, value)
