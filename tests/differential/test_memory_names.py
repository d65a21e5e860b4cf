"""Names of memory that `CreateMemoryInfo` knows: those that stock knows, and what they mean there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.c_client import INVALID_ARGUMENT, Client, failure, stock_library
from tests.support.native_model import OrtError

NAMES = [
    "Cpu",
    "CpuAligned4K",
    "Cuda",
    "CudaPinned",
    "DML",
    "Hip",
    "HipPinned",
    "OpenVINO_GPU",
    "OpenVINO_RT_NPU",
    "QnnHtpShared",
    "WebGPU_Buf",
    "WebGPU_Buffer",
    "WebNN_Ten",
    "WebNN_Tensor",
]
DEVICE, ARENA = 0, 1
CPU_INPUT, CPU_OUTPUT, DEFAULT = -2, -1, 0


def made(client: Client, *arguments: Any, slot: str = "CreateMemoryInfo") -> Any:
    return client.owned("OrtMemoryInfo*", slot, "ReleaseMemoryInfo", *arguments)


def described(client: Client, info: Any) -> dict[str, Any]:
    """All that any slot says about a memory info, but for its alignment."""
    api, ep_api = client.api, client.api.GetEpApi()
    device_type = client.ffi.new("OrtMemoryInfoDeviceType*")
    api.MemoryInfoGetDeviceType(info, device_type)
    device = ep_api.MemoryInfo_GetMemoryDevice(info)
    return {
        "name": client.host.text("MemoryInfoGetName", info),
        "id": client.get("MemoryInfoGetId", "int", info),
        "type": int(client.get("MemoryInfoGetType", "OrtAllocatorType", info)),
        "memory type": int(client.get("MemoryInfoGetMemType", "OrtMemType", info)),
        "device": int(device_type[0]),
        "device memory": int(api.MemoryInfoGetDeviceMemType(info)),
        "vendor": int(api.MemoryInfoGetVendorId(info)),
        "of the device": (
            int(ep_api.MemoryDevice_GetDeviceType(device)),
            int(ep_api.MemoryDevice_GetMemoryType(device)),
            int(ep_api.MemoryDevice_GetVendorId(device)),
            int(ep_api.MemoryDevice_GetDeviceId(device)),
        ),
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_name_means_what_it_means_in_stock(ours: Client, stock: Client, name: str) -> None:
    for allocator in (DEVICE, ARENA):
        for number in (0, 1, 7, -1):
            for memory in (CPU_INPUT, CPU_OUTPUT, DEFAULT):
                arguments = (name.encode(), allocator, number, memory)
                expected = described(stock, made(stock, *arguments))
                assert described(ours, made(ours, *arguments)) == expected, arguments


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("alignment", [0, 64, 4096])
def test_alignments_are_those_of_stock(ours: Client, stock: Client, name: str, alignment: int) -> None:
    """No slot tells the alignment, but two infos that differ in it are not equal."""
    is_equal = []
    for client in (ours, stock):
        info = made(client, name.encode(), DEVICE, 0, DEFAULT)
        facts = described(client, info)
        spelt_out = (facts["name"].encode(), facts["device"], facts["vendor"], 0, facts["device memory"])
        other = made(client, *spelt_out, alignment, DEVICE, slot="CreateMemoryInfo_V2")
        is_equal.append(client.get("CompareMemoryInfo", "int", info, other))
    assert is_equal[0] == is_equal[1]


def test_no_other_text_in_stocks_library_is_a_name(stock: Client) -> None:
    """So that a name which a newer stock knows is missed here."""
    found = re.findall(rb"[A-Za-z][A-Za-z0-9_ -]{1,31}(?=\0)", stock_library().read_bytes())
    candidates = {text.decode() for text in found}
    assert set(NAMES) - {"WebGPU_Buf"} <= candidates  # that one is the beginning of another
    known = set()
    for name in candidates:
        try:
            made(stock, name.encode(), DEVICE, 0, DEFAULT)
        except OrtError:
            continue
        known.add(name)
    assert known <= set(NAMES)


@pytest.mark.parametrize("name", ["", "cpu", "CUDA", "Dml", "DML CPU", "WebGPU_Buffe", "WebGPU", "NoSuch"])
def test_other_names_are_refused(client: Client, name: str) -> None:
    code, message = failure(made, client, name.encode(), DEVICE, 0, DEFAULT)
    assert code == INVALID_ARGUMENT and "CreateMemoryInfo_V2" in message


@pytest.mark.parametrize("name", ["Cpu", "Mine", "WebGPU_Buffer"])
@pytest.mark.parametrize("device", [0, 1, 2, 3])
@pytest.mark.parametrize("memory", [0, 5])
def test_v2_takes_names_as_they_are(ours: Client, stock: Client, name: str, device: int, memory: int) -> None:
    for vendor, number, alignment, allocator in [(0, 0, 0, DEVICE), (0x10DE, 3, 64, ARENA)]:
        arguments = (name.encode(), device, vendor, number, memory, alignment, allocator)
        expected = described(stock, made(stock, *arguments, slot="CreateMemoryInfo_V2"))
        assert described(ours, made(ours, *arguments, slot="CreateMemoryInfo_V2")) == expected, arguments
