"""Hardware devices, as hosts find them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ort_abi._lib import CData
from ort_abi.ep._call.calls import key_values_of, text_of

__all__ = ["Device", "device_of"]

_DEVICE_TYPES = {0: "CPU", 1: "GPU", 2: "NPU"}


@dataclass(frozen=True)
class Device:
    """A hardware device as the host found it (`HardwareDevice_*`, API 22)."""

    type: str
    """"CPU", "GPU" or "NPU"."""
    vendor: str
    vendor_id: int
    device_id: int
    metadata: Mapping[str, str]
    _handle: CData = field(repr=False, compare=False, default=None)


def device_of(api: CData, handle: CData) -> Device:
    """What an `OrtHardwareDevice` is."""
    return Device(
        type=_DEVICE_TYPES.get(api.HardwareDevice_Type(handle), "unknown"),
        vendor=text_of(api.HardwareDevice_Vendor(handle)),
        vendor_id=api.HardwareDevice_VendorId(handle),
        device_id=api.HardwareDevice_DeviceId(handle),
        metadata=key_values_of(api, api.HardwareDevice_Metadata(handle)),
        _handle=handle,
    )
