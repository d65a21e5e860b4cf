"""Devices: hardware, memory, copies, streams (csrc/bridge/device.c)."""

from ort_abi.ep._device import callbacks

__all__ = ["callbacks"]
