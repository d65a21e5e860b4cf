"""What stands behind the factory that a host has of a provider class."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import cast

from ort_abi._lib import CData
from ort_abi.ep._call.calls import checked
from ort_abi.ep._device.device import Allocator, DataTransfer, MemoryDevice, MemoryInfo, SyncStream
from ort_abi.ep._ep.provider import ExecutionProvider

__all__ = ["Factory"]

_ATOMIC_SINCE = 30
"""API version of the oldest hosts known to take a registration back when an allocator or a data transfer
cannot be made. onnxruntime 1.24 keeps devices of the factory that it released."""


class Factory:
    """The class, the memories of the devices that it offered, and what it makes for the whole process."""

    def __init__(self, cls: type[ExecutionProvider]) -> None:
        self.cls = cls
        self.memories: dict[MemoryInfo, CData] = {}
        self._release: CData = None
        self._early: dict[MemoryInfo | None, Allocator | DataTransfer | None] = {}

    def info_of(self, api: CData, memory: MemoryInfo) -> CData:
        """The `OrtMemoryInfo*` of a memory. *borrows*: valid until `close`; stock onnxruntime keeps it."""
        self._release = api.ReleaseMemoryInfo
        if memory not in self.memories:
            self.memories[memory] = memory._create(api)
        return self.memories[memory]

    def device_pointer(self, host: CData, device: MemoryDevice, what: str) -> CData:
        """The `OrtMemoryDevice*` of one of the memories. *borrows*: valid until `close`. Raises ValueError
        for a device that none of them is on; `what` says where it comes from."""
        for memory, pointer in self.memories.items():
            if memory.device == device:
                return host.ep_api.MemoryInfo_GetMemoryDevice(pointer)
        known = ", ".join(sorted({str(memory.device) for memory in self.memories})) or "nothing"
        raise ValueError(f"{what} gave {device}, but memory_infos() has only {known}")

    def make_early(self, host: CData) -> None:
        """Makes what a host is about to ask for while a failure can still be told to hosts that do not get
        over a later one."""
        if host.version >= _ATOMIC_SINCE or not self.memories:
            return
        for memory in self.memories:
            if memory.kind != "read_only":
                self._early[memory] = self.new_allocator(memory, {})
        self._early[None] = self.new_transfer()

    def new_allocator(self, memory: MemoryInfo, options: Mapping[str, str]) -> Allocator | None:
        """What `create_allocator` gives, checked."""
        if memory in self._early and not options:
            return cast("Allocator | None", self._early.pop(memory))
        made = self.cls.create_allocator(memory, options)
        what = f"{self.cls.__qualname__}.create_allocator()"
        return None if made is None else checked(made, Allocator, what)

    def new_transfer(self) -> DataTransfer | None:
        """What `create_data_transfer` gives, checked."""
        if None in self._early:
            return cast("DataTransfer | None", self._early.pop(None))
        made = self.cls.create_data_transfer()
        what = f"{self.cls.__qualname__}.create_data_transfer()"
        return None if made is None else checked(made, DataTransfer, what)

    def new_stream(self, device: MemoryDevice, options: Mapping[str, str]) -> SyncStream:
        """What `create_sync_stream` gives, checked."""
        made = self.cls.create_sync_stream(device, options)
        what = f"{self.cls.__qualname__}.create_sync_stream()"
        return checked(made, SyncStream, what)

    def close(self) -> None:
        """Releases what the factory has of the host, and closes what no host has asked for."""
        for pointer in self.memories.values():
            self._release(pointer)
        self.memories.clear()
        early, self._early = self._early, {}
        with ExitStack() as stack:  # goes on when one of them raises
            for made in early.values():
                if made is not None:
                    stack.callback(made.close)
