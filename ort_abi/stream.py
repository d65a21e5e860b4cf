"""Streams of device work, and the allocators that the devices of execution providers share."""

from __future__ import annotations

from collections.abc import Mapping

from ort_abi import env
from ort_abi._lib import NULL, CData, Handle, api, check, create, ep_api, ffi, key_values, read_key_values
from ort_abi.device import OrtAllocatorType, OrtDeviceMemoryType, OrtEpDevice, OrtMemoryInfo

__all__ = [
    "OrtSyncStream",
    "allocator_stats",
    "create_shared_allocator",
    "create_sync_stream",
    "release_shared_allocator",
]


class OrtSyncStream:
    """A stream of a device: work given to it is done in order. From `OrtEpDevice.create_sync_stream()`.

    *keeps alive* the provider's library: until the stream is gone, unregistering it is refused.
    """

    __slots__ = ("__weakref__", "_handle")

    def __init__(self, handle: Handle) -> None:
        """Takes the handle of an `OrtSyncStream*`; users call `create_sync_stream`."""
        self._handle = handle

    @property
    def pointer(self) -> CData:
        """The `OrtSyncStream*`. *borrows*: valid until `close`. Raises RuntimeError afterwards."""
        if self._handle.pointer is None:
            raise RuntimeError("the stream is closed")
        return self._handle.pointer

    def get_handle(self) -> int:
        """The provider's own handle of the stream (`SyncStream_GetHandle`, API 23): a `cudaStream_t`, say.

        0 is a legal handle: CUDA's default stream.
        """
        return int(ffi.cast("uintptr_t", api.SyncStream_GetHandle(self.pointer)))

    def flush(self) -> None:
        """Waits for the work given so far (`OrtSyncStreamImpl::Flush`). Ours: onnxruntime leaves this to who
        knows what the handle is."""
        impl = ffi.cast("OrtSyncStreamImpl*", ep_api.SyncStream_GetImpl(self.pointer))
        check(impl.Flush(impl))

    def close(self) -> None:
        """Releases the stream; later calls do nothing."""
        self._handle.close()


def create_sync_stream(device: OrtEpDevice, options: Mapping[str, str] | None = None) -> OrtSyncStream:
    """A stream on an EP device's default memory (`CreateSyncStreamForEpDevice`, API 23).

    Raises `errors.NotImplemented` for a provider without streams or without memory of its own.
    """
    pairs = key_values(options or {})
    arguments = (env.ep_device_pointer(device), pairs.pointer)
    make = api.CreateSyncStreamForEpDevice
    handle = create("OrtSyncStream", api.ReleaseSyncStream, make, *arguments, parents=(device._environment,))
    env.track(handle)
    return OrtSyncStream(handle)


def create_shared_allocator(
    device: OrtEpDevice,
    memory_type: int = OrtDeviceMemoryType.DEFAULT,
    allocator_type: int = OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
    options: Mapping[str, str] | None = None,
) -> None:
    """Replaces the allocator that all use for a device's memory (`CreateSharedAllocator`, API 23).

    `options` go to the provider. `ORT_ARENA_ALLOCATOR`, or an option "arena.…" for a provider that has no
    arena, puts the host's arena around the provider's allocator. Not in onnxruntime's Python API.
    """
    pairs = key_values(options or {})
    arguments = (env.ep_device_pointer(device), int(memory_type), int(allocator_type), pairs.pointer, NULL)
    check(api.CreateSharedAllocator(env.environment().pointer, *arguments))


def release_shared_allocator(device: OrtEpDevice, memory_type: int = OrtDeviceMemoryType.DEFAULT) -> None:
    """Takes a device's allocator out of use (`ReleaseSharedAllocator`, API 23); it is released when its last
    tensor is. Not in onnxruntime's Python API."""
    pointer = env.ep_device_pointer(device)
    check(api.ReleaseSharedAllocator(env.environment().pointer, pointer, int(memory_type)))


def allocator_stats(memory: OrtMemoryInfo) -> dict[str, str]:
    """What the shared allocator of a memory says of itself (`AllocatorGetStats`, API 23); {} if it says
    nothing. Raises `errors.NotFound` if there is none."""
    out = ffi.new("OrtKeyValuePairs**")
    check(api.AllocatorGetStats(env.shared_allocator(memory), out))
    try:
        return read_key_values(out[0])
    finally:
        api.ReleaseKeyValuePairs(out[0])
