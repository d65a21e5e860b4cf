"""Memory and semaphores of others, such as a graphics API's, that a provider imports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ort_abi.ep._call.calls import plain_call
from ort_abi.ep._device.device import MemoryInfo, SyncStream

__all__ = ["ExternalMemory", "ExternalSemaphore", "Imported", "ResourceImporter"]


@dataclass(frozen=True)
class ExternalMemory:
    """Memory to import (`OrtExternalMemoryDescriptor`, API 24)."""

    type: str
    """What `handle` is: "memory_opaque_fd", "memory_win32", "d3d12_resource", "d3d12_heap", or
    "host_allocation" (API 30)."""
    handle: int = 0
    size: int = 0
    """Bytes of the whole, the first `offset` ones included."""
    offset: int = 0
    """Where the part that is to be imported begins."""


@dataclass(frozen=True)
class ExternalSemaphore:
    """A semaphore to import (`OrtExternalSemaphoreDescriptor`, API 24)."""

    type: str
    """What `handle` is: "d3d12_fence", "vk_timeline_semaphore_win32" or "vk_timeline_semaphore_opaque_fd"."""
    handle: int = 0


class ResourceImporter:
    """Imports memory and semaphores for one device (`OrtExternalResourceImporterImpl`, API 24):
    `ExecutionProvider.create_resource_importer` makes it.

    Derive, set `memory`, and define what the provider can do. What the `can_import` methods, the releases and
    `close` raise cannot be told to a host: it is printed and counted.
    """

    memory: MemoryInfo
    """Which of the provider's `memory_infos` tensors over imported memory are in."""

    _factory: Any = None  # has the host's form of `memory`

    def can_import_memory(self, type: str) -> bool:
        """True for the types of `ExternalMemory` that `import_memory` takes."""
        return False

    def import_memory(self, memory: ExternalMemory) -> int:
        """The address of imported memory, from `memory.offset` on, as the provider's kernels know it."""
        raise NotImplementedError(f"{_name(self)} does not define import_memory()")

    def release_memory(self, address: int) -> None:
        """Gives back what `import_memory` returned. Tensors over it are gone."""

    def can_import_semaphore(self, type: str) -> bool:
        """True for the types of `ExternalSemaphore` that `import_semaphore` takes."""
        return False

    def import_semaphore(self, semaphore: ExternalSemaphore) -> Any:
        """An object for the semaphore, which the other methods get."""
        raise NotImplementedError(f"{_name(self)} does not define import_semaphore()")

    def release_semaphore(self, semaphore: Any) -> None:
        """Gives back what `import_semaphore` returned."""

    def wait_semaphore(self, semaphore: Any, stream: SyncStream | None, value: int) -> None:
        """Has the stream wait until the semaphore has this value."""
        raise NotImplementedError(f"{_name(self)} does not define wait_semaphore()")

    def signal_semaphore(self, semaphore: Any, stream: SyncStream | None, value: int) -> None:
        """Has the stream give the semaphore this value, after the work that it has now."""
        raise NotImplementedError(f"{_name(self)} does not define signal_semaphore()")

    def close(self) -> None:
        """Called when the host releases the importer."""


def _name(importer: ResourceImporter) -> str:
    return type(importer).__qualname__


class Imported:
    """What stands behind a handle that a host has: memory, by its address, or a semaphore."""

    def __init__(self, importer: ResourceImporter, item: Any, size: int | None) -> None:
        self.importer = importer
        self.item = item
        self.size = size
        """Of memory; None for a semaphore."""

    def close(self) -> None:
        """Gives it back to the provider."""
        if self.size is None:
            plain_call(self.importer.release_semaphore, self.item)
        else:
            plain_call(self.importer.release_memory, self.item)
