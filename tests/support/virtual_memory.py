"""Memory of a device that is only there for those who know how to reach it.

Addresses are made up: no x86-64 process can have memory there, so whoever takes one for a pointer crashes.
"""

from __future__ import annotations

import bisect
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

BASE = 0x5A << 56
GRANULE = 256


class VirtualMemory:
    """Blocks of bytes by address. Any thread."""

    def __init__(self, limit: int = 1 << 28) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._next = BASE
        self._starts: list[int] = []
        self._blocks: dict[int, NDArray[np.uint8]] = {}

    def alloc(self, size: int) -> int:
        """The address of new memory; 0 if the device is full."""
        with self._lock:
            if self.in_use() + size > self.limit:
                return 0
            address = self._next
            self._next += (size // GRANULE + 1) * GRANULE
            self._starts.append(address)  # addresses only grow
            self._blocks[address] = np.full(size, 0xCD, np.uint8)
            return address

    def free(self, address: int) -> None:
        """Takes back what `alloc` gave. Raises KeyError for anything else."""
        with self._lock:
            del self._blocks[address]
            self._starts.remove(address)

    def in_use(self) -> int:
        """Bytes given out."""
        return sum(block.nbytes for block in self._blocks.values())

    def __len__(self) -> int:
        return len(self._blocks)

    def __contains__(self, address: int) -> bool:
        return address >= BASE

    def view(self, address: int, shape: tuple[int, ...], dtype: Any = np.uint8) -> NDArray[Any]:
        """The memory at an address, also inside of a block. Raises KeyError where none was given out."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size == 0:
            return np.empty(shape, dtype)
        with self._lock:
            at = bisect.bisect_right(self._starts, address) - 1
            start = self._starts[at] if at >= 0 else 0
            block = self._blocks.get(start)
            if block is None or address + size > start + block.nbytes:
                raise KeyError(f"no {size} bytes of the device are at {address:#x}")
            found: NDArray[Any] = block[address - start : address - start + size].view(dtype).reshape(shape)
            return found
