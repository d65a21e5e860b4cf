"""Hardware, execution provider devices and memory, as Python sees them.

The objects are snapshots: everything is read when they are made, so they can be looked at after their
library is unregistered or the environment is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from ort_abi._lib import NULL, CData, Handle, api, check, create, encode, ffi, read_key_values, text

if TYPE_CHECKING:
    from ort_abi.stream import OrtSyncStream

__all__ = [
    "OrtAllocatorType",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
]


class OrtHardwareDeviceType(IntEnum):
    """Kind of a hardware device (API 22)."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtMemoryInfoDeviceType(IntEnum):
    """Kind of the device that memory belongs to (API 23)."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtDeviceMemoryType(IntEnum):
    """Kind of a device's memory (API 23)."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemType(IntEnum):
    """Where a kernel wants an input or output (API 1)."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtAllocatorType(IntEnum):
    """Kind of an allocator (API 1)."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1
    ORT_READ_ONLY_ALLOCATOR = 2


class OrtDeviceVendorId(IntEnum):
    """PCI vendor ids."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtExecutionProviderDevicePolicy(IntEnum):
    """How a session that was given no execution provider chooses some (API 22)."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class OrtHardwareDevice:
    """A CPU, GPU or NPU: `type`, `vendor_id`, `vendor`, `device_id`, `metadata`."""

    __slots__ = ("device_id", "metadata", "type", "vendor", "vendor_id")

    def __init__(self, pointer: CData) -> None:
        self.type = OrtHardwareDeviceType(api.HardwareDevice_Type(pointer))
        self.vendor_id: int = api.HardwareDevice_VendorId(pointer)
        self.vendor = text(api.HardwareDevice_Vendor(pointer))
        self.device_id: int = api.HardwareDevice_DeviceId(pointer)
        self.metadata = read_key_values(api.HardwareDevice_Metadata(pointer))

    def __repr__(self) -> str:
        return (
            f"OrtHardwareDevice({self.type.name}, vendor={self.vendor!r}, vendor_id={self.vendor_id:#06x}, "
            f"device_id={self.device_id:#06x}, metadata={self.metadata})"
        )


class OrtMemoryInfo:
    """A kind of memory: the allocator's name and type, and the device it belongs to.

    `OrtMemoryInfo(name, allocator_type, device_id, mem_type)` knows the names of ORT's own devices ("Cpu",
    "Cuda", ...; `CreateMemoryInfo`, API 1); `create_v2` describes any device (`CreateMemoryInfo_V2`, API 23).
    """

    __slots__ = (
        "_handle",
        "allocator_type",
        "device_mem_type",
        "device_type",
        "device_vendor_id",
        "id",
        "mem_type",
        "name",
    )

    def __init__(self, name: str, allocator_type: int, device_id: int, mem_type: int) -> None:
        make, arguments = api.CreateMemoryInfo, (encode(name), int(allocator_type), device_id, int(mem_type))
        self._read(create("OrtMemoryInfo", api.ReleaseMemoryInfo, make, *arguments))

    @classmethod
    def create_v2(
        cls,
        name: str,
        device_type: int,
        vendor_id: int,
        device_id: int,
        device_mem_type: int,
        alignment: int = 0,
        allocator_type: int = OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
    ) -> OrtMemoryInfo:
        """Memory of any device, told by device type, vendor id, device id and memory type."""
        info = cls.__new__(cls)
        head = (encode(name), int(device_type), int(vendor_id), device_id, int(device_mem_type))
        arguments = (*head, alignment, int(allocator_type))
        info._read(create("OrtMemoryInfo", api.ReleaseMemoryInfo, api.CreateMemoryInfo_V2, *arguments))
        return info

    @classmethod
    def _copy_of(cls, pointer: CData) -> OrtMemoryInfo | None:
        """A copy of an `OrtMemoryInfo` that somebody else owns; None for NULL."""
        if pointer == NULL:
            return None
        fields = _memory_fields(pointer)
        return cls.create_v2(
            fields.name,
            fields.device_type,
            fields.vendor_id,
            fields.device_id,
            fields.device_mem_type,
            allocator_type=fields.allocator_type,
        )

    def _read(self, handle: Handle) -> None:
        self._handle = handle
        fields = _memory_fields(handle.pointer)
        self.name = fields.name
        self.allocator_type = OrtAllocatorType(fields.allocator_type)
        self.mem_type = OrtMemType(fields.mem_type)
        self.device_type = OrtMemoryInfoDeviceType(fields.device_type)
        self.device_mem_type = OrtDeviceMemoryType(fields.device_mem_type)
        self.device_vendor_id = fields.vendor_id
        self.id = fields.device_id

    @property
    def device_id(self) -> int:
        """Number of the device."""
        return self.id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OrtMemoryInfo):
            return NotImplemented
        out = ffi.new("int*")
        check(api.CompareMemoryInfo(self._handle.pointer, other._handle.pointer, out))
        return bool(out[0] == 0)

    def __hash__(self) -> int:
        return hash((self.name, self.device_type, self.id, self.device_mem_type, self.device_vendor_id))

    def __repr__(self) -> str:
        return (
            f"OrtMemoryInfo({self.name!r}, {self.device_type.name}, vendor_id={self.device_vendor_id:#06x}, "
            f"device_id={self.id}, {self.device_mem_type.name})"
        )


class _MemoryFields(NamedTuple):
    name: str
    allocator_type: int
    mem_type: int
    device_type: int
    device_mem_type: int
    vendor_id: int
    device_id: int


def _memory_fields(pointer: CData) -> _MemoryFields:
    name, device_id = ffi.new("const char**"), ffi.new("int*")
    mem_type, allocator_type = ffi.new("OrtMemType*"), ffi.new("OrtAllocatorType*")
    device_type = ffi.new("OrtMemoryInfoDeviceType*")
    check(api.MemoryInfoGetName(pointer, name))
    check(api.MemoryInfoGetId(pointer, device_id))
    check(api.MemoryInfoGetMemType(pointer, mem_type))
    check(api.MemoryInfoGetType(pointer, allocator_type))
    api.MemoryInfoGetDeviceType(pointer, device_type)
    return _MemoryFields(
        text(name[0]),
        allocator_type[0],
        mem_type[0],
        device_type[0],
        api.MemoryInfoGetDeviceMemType(pointer),
        api.MemoryInfoGetVendorId(pointer),
        device_id[0],
    )


class OrtEpDevice:
    """What an execution provider can run on: `ep_name`, `ep_vendor`, `ep_metadata`, `ep_options`, `device`.

    From `get_ep_devices()`; it can be given to sessions as long as its library is registered.
    """

    __slots__ = (
        "_environment",
        "_memory",
        "_pointer",
        "device",
        "ep_metadata",
        "ep_name",
        "ep_options",
        "ep_vendor",
    )

    def __init__(self, pointer: CData, environment: Handle) -> None:
        self._pointer = pointer
        self._environment = environment
        self.ep_name = text(api.EpDevice_EpName(pointer))
        self.ep_vendor = text(api.EpDevice_EpVendor(pointer))
        self.ep_metadata = read_key_values(api.EpDevice_EpMetadata(pointer))
        self.ep_options = read_key_values(api.EpDevice_EpOptions(pointer))
        self.device = OrtHardwareDevice(api.EpDevice_Device(pointer))
        self._memory = {
            kind: OrtMemoryInfo._copy_of(api.EpDevice_MemoryInfo(pointer, int(kind)))
            for kind in OrtDeviceMemoryType
        }

    def memory_info(self, memory_type: int = OrtDeviceMemoryType.DEFAULT) -> OrtMemoryInfo | None:
        """The memory of this kind that the provider allocates; None if it uses the CPU's (API 23)."""
        return self._memory[OrtDeviceMemoryType(memory_type)]

    def create_sync_stream(self, options: Mapping[str, str] | None = None) -> OrtSyncStream:
        """A stream on this device's default memory; `options` go to the provider (API 23).

        Raises `errors.NotImplemented` for a provider without streams or without memory of its own.
        """
        from ort_abi.stream import create_sync_stream

        return create_sync_stream(self, options)

    def __repr__(self) -> str:
        return f"OrtEpDevice({self.ep_name!r}, vendor={self.ep_vendor!r}, device={self.device})"


_DEVICE_KINDS = {
    "cpu": (OrtMemoryInfoDeviceType.CPU, OrtDeviceVendorId.NONE),
    "cuda": (OrtMemoryInfoDeviceType.GPU, OrtDeviceVendorId.NVIDIA),
    "gpu": (OrtMemoryInfoDeviceType.GPU, OrtDeviceVendorId.NONE),
    "dml": (OrtMemoryInfoDeviceType.GPU, OrtDeviceVendorId.MICROSOFT),
    "webgpu": (OrtMemoryInfoDeviceType.GPU, OrtDeviceVendorId.NONE),
    "npu": (OrtMemoryInfoDeviceType.NPU, OrtDeviceVendorId.NONE),
    "cann": (OrtMemoryInfoDeviceType.NPU, OrtDeviceVendorId.HUAWEI),
}


class OrtDevice:
    """A memory device, by name: `OrtDevice.make("cpu", 0)`, or "gpu", "cuda", "npu", ...

    With a vendor id of 0 ("gpu", "npu") it stands for the first registered device of that kind and number.
    """

    __slots__ = ("_device_id", "_mem_type", "_type", "_vendor_id")

    def __init__(self, device_type: int, mem_type: int, vendor_id: int, device_id: int) -> None:
        self._type = OrtMemoryInfoDeviceType(device_type)
        self._mem_type = OrtDeviceMemoryType(mem_type)
        self._vendor_id = int(vendor_id)
        self._device_id = device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """By name. `vendor_id` -1: what the name implies. Raises ValueError for a name that is not known."""
        try:
            kind, implied = _DEVICE_KINDS[ort_device_name.lower()]
        except KeyError:
            names = ", ".join(_DEVICE_KINDS)
            raise ValueError(f"device type {ort_device_name!r} is not known; there are {names}") from None
        return OrtDevice(
            kind, OrtDeviceMemoryType.DEFAULT, implied if vendor_id < 0 else vendor_id, device_id
        )

    def device_id(self) -> int:
        """Number of the device."""
        return self._device_id

    def device_type(self) -> int:
        """An `OrtMemoryInfoDeviceType`."""
        return self._type

    def device_vendor_id(self) -> int:
        """PCI vendor id, 0 for any."""
        return self._vendor_id

    def device_mem_type(self) -> int:
        """An `OrtDeviceMemoryType`."""
        return self._mem_type

    def is_cpu(self) -> bool:
        """True for the CPU's own memory."""
        return self._type is OrtMemoryInfoDeviceType.CPU

    def _key(self) -> tuple[Any, ...]:
        return (self._type, self._mem_type, self._vendor_id, self._device_id)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, OrtDevice) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"OrtDevice({self._type.name}, vendor_id={self._vendor_id:#06x}, device_id={self._device_id})"
