"""Importers of Python providers, called as a host calls them, and by stock onnxruntime's own interop API."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnxruntime
import pytest
from bridge_support import API, open_ep
from ep_support import OLD_STOCK, FuseAll

from ort_abi import ep
from ort_abi._native import ffi

FLOAT = 1
FD, WIN32 = 3, 2  # OrtExternalMemoryHandleType
FENCE, TIMELINE_FD = 0, 2  # OrtExternalSemaphoreType
MEMORY = ep.MemoryInfo("Imports")


class Boom(Exception):
    """Raised by the methods under test."""


class Importer(ep.ResourceImporter):
    """Maps files, whose memory it pretends to be a GPU's; counts in semaphores."""

    memory = MEMORY
    fails: ClassVar[str] = ""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.maps: dict[int, mmap.mmap] = {}

    def note(self, name: str, *what: Any) -> None:
        self.calls.append((name, *what))
        if name == self.fails:
            raise Boom("it broke here")

    def can_import_memory(self, type: str) -> bool:
        self.note("can_import_memory", type)
        return type == "memory_opaque_fd"

    def import_memory(self, memory: ep.ExternalMemory) -> int:
        self.note("import_memory", memory)
        mapped = mmap.mmap(memory.handle, memory.size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        self.maps[address + memory.offset] = mapped
        return address + memory.offset

    def release_memory(self, address: int) -> None:
        self.note("release_memory", address)
        del self.maps[address]

    def can_import_semaphore(self, type: str) -> bool:
        self.note("can_import_semaphore", type)
        return type == "vk_timeline_semaphore_opaque_fd"

    def import_semaphore(self, semaphore: ep.ExternalSemaphore) -> Any:
        self.note("import_semaphore", semaphore)
        return {"handle": semaphore.handle, "value": 0}

    def release_semaphore(self, semaphore: Any) -> None:
        self.note("release_semaphore", semaphore["handle"])

    def wait_semaphore(self, semaphore: Any, stream: Any, value: int) -> None:
        self.note("wait", type(stream), semaphore["value"], value)

    def signal_semaphore(self, semaphore: Any, stream: Any, value: int) -> None:
        self.note("signal", type(stream), value)
        semaphore["value"] = value

    def close(self) -> None:
        self.note("close")


class Stream(ep.SyncStream):
    def create_notification(self) -> Any:
        raise NotImplementedError

    def flush(self) -> None:
        pass


class Allocator(ep.Allocator):
    def alloc(self, size: int) -> int:
        return 0

    def free(self, address: int) -> None:
        pass


class Imports(FuseAll):
    name, stream_aware = "ImportsExecutionProvider", True
    made: ClassVar[list[Any]] = []
    importer: ClassVar[Any] = Importer

    @classmethod
    def memory_infos(cls, device: Any) -> Any:
        return [MEMORY]

    @classmethod
    def create_allocator(cls, memory: Any, options: Any) -> Any:
        return Allocator()

    @classmethod
    def create_sync_stream(cls, device: Any, options: Any) -> Any:
        return Stream()

    @classmethod
    def init_graphics_interop(cls, device: ep.Device, config: ep.GraphicsInterop) -> None:
        cls.made.append((device.type, config))
        if config.api == "d3d12":
            raise Boom("it broke here")

    @classmethod
    def deinit_graphics_interop(cls, device: ep.Device) -> None:
        cls.made.append(device.type)

    @classmethod
    def create_resource_importer(cls, device: ep.Device) -> Any:
        made = cls.importer()
        cls.made.append((device.type, made))
        return made


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    Importer.fails = ""
    Imports.made.clear()
    before = ep.live_objects()
    yield
    assert ep.live_objects() == before


@pytest.fixture
def numbers(tmp_path: Path) -> Iterator[int]:
    """A file with the floats 0 to 1023."""
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(1024, dtype=np.float32).tobytes())
    fd = os.open(path, os.O_RDWR)
    yield fd
    os.close(fd)


class Calls:
    """Both sides of an importer, after its struct or a host's interop API."""

    def __init__(self, table: Any, importer: Any, api: Any) -> None:
        self.table, self.importer, self.api = table, importer, api
        self.device: Any = None

    def ok(self, status: Any) -> None:
        assert status == ffi.NULL, self.error(status)

    def error(self, status: Any) -> str:
        assert status != ffi.NULL
        text = ffi.string(self.api.GetErrorMessage(status)).decode()
        self.api.ReleaseStatus(status)
        return text

    def memory(self, fd: int, size: int = 4096, offset: int = 0) -> tuple[Any, Any]:
        """The status, and the handle."""
        described = ffi.new("OrtExternalMemoryDescriptor*")
        described.version, described.handle_type = 24, FD
        described.native_handle, described.size_bytes = ffi.cast("void*", fd), size
        described.offset_bytes = offset
        out = ffi.new("OrtExternalMemoryHandle**")
        return self.table.ImportMemory(self.importer, described, out), out[0]

    def tensor(self, handle: Any, shape: list[int], offset: int = 0) -> tuple[Any, Any]:
        """The status, and the value."""
        dims = ffi.new("int64_t[]", shape)
        described = ffi.new("OrtExternalTensorDescriptor*")
        described.version, described.element_type = 24, FLOAT
        described.shape, described.rank, described.offset_bytes = dims, len(shape), offset
        out = ffi.new("OrtValue**")
        return self.table.CreateTensorFromMemory(self.importer, handle, described, out), out[0]

    def semaphore(self, handle: int) -> tuple[Any, Any]:
        """The status, and the handle."""
        described = ffi.new("OrtExternalSemaphoreDescriptor*")
        described.version, described.type = 24, TIMELINE_FD
        described.native_handle = ffi.cast("void*", handle)
        out = ffi.new("OrtExternalSemaphoreHandle**")
        return self.table.ImportSemaphore(self.importer, described, out), out[0]

    def first(self, value: Any) -> float:
        """The first element, through the address that the value has."""
        data = ffi.new("const void**")
        self.ok(self.api.GetTensorData(value, data))
        return float(ffi.cast("const float*", data[0])[0])


@contextmanager
def struct_calls(cls: Any = Imports) -> Iterator[Calls]:
    """Calls of the struct, without a host."""
    with open_ep(cls) as opened:
        out = ffi.new("OrtExternalResourceImporterImpl**")
        create = opened.factory.CreateExternalResourceImporterForDevice
        status = create(opened.factory, opened.ep_device, out)
        assert status == ffi.NULL, ffi.string(API.GetErrorMessage(status)).decode()
        try:
            yield Calls(out[0], out[0], API)
        finally:
            out[0].Release(out[0])


@contextmanager
def stock_calls() -> Iterator[Calls]:
    """Calls of stock onnxruntime's interop API, in its own library."""
    (path,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    address = ctypes.cast(ctypes.CDLL(str(path)).OrtGetApiBase, ctypes.c_void_p).value
    base = ffi.cast("OrtApiBase*(*)(void)", address)()
    api = base.GetApi(30)
    calls = Calls(api.GetInteropApi(), None, api)
    env, devices, count = ffi.new("OrtEnv**"), ffi.new("const OrtEpDevice* const**"), ffi.new("size_t*")
    calls.ok(api.CreateEnv(2, b"test", env))
    name = ep.prepare(Imports).encode()
    try:
        calls.ok(api.RegisterExecutionProviderLibrary(env[0], name, ep.library_path().encode()))
        calls.ok(api.GetEpDevices(env[0], devices, count))
        found = [devices[0][i] for i in range(count[0])]
        (device,) = [item for item in found if ffi.string(api.EpDevice_EpName(item)) == name]
        out = ffi.new("OrtExternalResourceImporter**")
        calls.ok(calls.table.CreateExternalResourceImporterForDevice(device, out))
        calls.importer, calls.device = out[0], device
        yield calls
        calls.table.ReleaseExternalResourceImporter(out[0])
        calls.ok(api.UnregisterExecutionProviderLibrary(env[0], name))
    finally:
        api.ReleaseEnv(env[0])


def test_memory_becomes_a_tensor(numbers: int) -> None:
    with struct_calls() as calls:
        ((kind, importer),) = Imports.made
        assert kind == "CPU"
        assert calls.table.CanImportMemory(calls.importer, FD)
        assert not calls.table.CanImportMemory(calls.importer, WIN32)
        status, handle = calls.memory(numbers)
        calls.ok(status)
        assert (handle.descriptor.size_bytes, handle.ep_device != ffi.NULL) == (4096, True)
        status, value = calls.tensor(handle, [2, 3], offset=40)
        calls.ok(status)
        assert calls.first(value) == 10
        info = ffi.new("const OrtMemoryInfo**")
        calls.ok(API.GetTensorMemoryInfo(value, info))
        name = ffi.new("const char**")
        calls.ok(API.MemoryInfoGetName(info[0], name))
        assert ffi.string(name[0]) == b"Imports"
        API.ReleaseValue(value)
        handle.Release(handle)
        status, handle = calls.memory(numbers)
        calls.ok(status)
        calls.table.ReleaseMemory(calls.importer, handle)
        assert importer.maps == {}
    names = [call[0] for call in importer.calls]
    assert names == ["can_import_memory"] * 2 + ["import_memory", "release_memory"] * 2 + ["close"]
    assert importer.calls[2][1] == ep.ExternalMemory("memory_opaque_fd", numbers, 4096, 0)


def test_semaphores() -> None:
    with struct_calls() as calls:
        ((_, importer),) = Imports.made
        assert calls.table.CanImportSemaphore(calls.importer, TIMELINE_FD)
        assert not calls.table.CanImportSemaphore(calls.importer, FENCE)
        status, handle = calls.semaphore(7)
        calls.ok(status)
        calls.ok(calls.table.SignalSemaphore(calls.importer, handle, ffi.NULL, 5))
        calls.ok(calls.table.WaitSemaphore(calls.importer, handle, ffi.NULL, 1 << 63))
        handle.Release(handle)
        status, handle = calls.semaphore(8)
        calls.ok(status)
        calls.table.ReleaseSemaphore(calls.importer, handle)
    assert importer.calls[2:] == [
        ("import_semaphore", ep.ExternalSemaphore("vk_timeline_semaphore_opaque_fd", 7)),
        ("signal", type(None), 5),
        ("wait", type(None), 5, 1 << 63),
        ("release_semaphore", 7),
        ("import_semaphore", ep.ExternalSemaphore("vk_timeline_semaphore_opaque_fd", 8)),
        ("release_semaphore", 8),
        ("close",),
    ]


@pytest.mark.skipif(OLD_STOCK, reason="its library lies elsewhere")
def test_stock_imports_too(numbers: int) -> None:
    with stock_calls() as calls:
        ((_, importer),) = Imports.made
        yes = ffi.new("bool*")
        calls.ok(calls.table.CanImportMemory(calls.importer, FD, yes))
        assert yes[0]
        status, handle = calls.memory(numbers)
        calls.ok(status)
        status, value = calls.tensor(handle, [4], offset=80)
        calls.ok(status)
        assert calls.first(value) == 20
        calls.api.ReleaseValue(value)
        calls.table.ReleaseExternalMemoryHandle(handle)
        assert importer.maps == {}
        stream = ffi.new("OrtSyncStream**")
        calls.ok(calls.api.CreateSyncStreamForEpDevice(calls.device, ffi.NULL, stream))
        status, semaphore = calls.semaphore(9)
        calls.ok(status)
        calls.ok(calls.table.SignalSemaphore(calls.importer, semaphore, stream[0], 6))
        calls.ok(calls.table.WaitSemaphore(calls.importer, semaphore, stream[0], 7))
        assert importer.calls[-2:] == [("signal", Stream, 6), ("wait", Stream, 6, 7)]
        calls.table.ReleaseExternalSemaphoreHandle(semaphore)
        calls.api.ReleaseSyncStream(stream[0])
        Importer.fails = "import_semaphore"
        assert "Boom: it broke here" in calls.error(calls.semaphore(3)[0])
        Importer.fails = ""
    assert importer.calls[-1] == ("close",)


@pytest.mark.skipif(OLD_STOCK, reason="its library lies elsewhere")
def test_stock_prepares_graphics() -> None:
    config = ffi.new("OrtGraphicsInteropConfig*")
    config.version, config.graphics_api = 25, 2
    with stock_calls() as calls:
        Imports.made.clear()
        table, device = calls.table, calls.device
        calls.ok(table.InitGraphicsInteropForEpDevice(device, config))
        calls.ok(table.DeinitGraphicsInteropForEpDevice(device))
        assert Imports.made == [("CPU", ep.GraphicsInterop("vulkan", 0, {})), "CPU"]
        config.graphics_api = 1
        text = calls.error(table.InitGraphicsInteropForEpDevice(device, config))
        assert f"OrtEpFactory::InitGraphicsInterop: {__name__}.Boom: it broke here" in text


@pytest.mark.parametrize(
    ("shape", "offset", "message"),
    [
        ([1025], 0, "the tensor has 4100 bytes from 0 on, the imported memory only 4096"),
        ([1], 4093, "the tensor has 4 bytes from 4093 on, the imported memory only 4096"),
        ([2, -1], 0, "dimension 1 of the tensor is -1"),
    ],
)
def test_tensors_outside_of_the_memory_are_refused(
    numbers: int, shape: list[int], offset: int, message: str
) -> None:
    with struct_calls() as calls:
        _, handle = calls.memory(numbers)
        text = calls.error(calls.tensor(handle, shape, offset)[0])
        assert "OrtExternalResourceImporterImpl::CreateTensorFromMemory: ValueError" in text
        assert message in text
        handle.Release(handle)


def test_what_the_methods_with_a_status_raise(numbers: int) -> None:
    with struct_calls() as calls:
        _, semaphore = calls.semaphore(1)
        table, importer = calls.table, calls.importer
        for method, slot, act in (
            ("import_memory", "ImportMemory", lambda: calls.memory(numbers)[0]),
            ("import_semaphore", "ImportSemaphore", lambda: calls.semaphore(1)[0]),
            ("wait", "WaitSemaphore", lambda: table.WaitSemaphore(importer, semaphore, ffi.NULL, 1)),
            ("signal", "SignalSemaphore", lambda: table.SignalSemaphore(importer, semaphore, ffi.NULL, 1)),
        ):
            Importer.fails = method
            text = calls.error(act())
            assert text.startswith(f"ImportsExecutionProvider: OrtExternalResourceImporterImpl::{slot}: ")
            assert "Boom: it broke here" in text
        Importer.fails = ""
        semaphore.Release(semaphore)


def test_what_the_others_raise_is_counted(numbers: int, capfd: pytest.CaptureFixture[str]) -> None:
    before = ep.unreported_errors()
    with struct_calls() as calls:
        Importer.fails = "can_import_memory"
        assert not calls.table.CanImportMemory(calls.importer, FD)
        Importer.fails = "can_import_semaphore"
        assert not calls.table.CanImportSemaphore(calls.importer, TIMELINE_FD)
        Importer.fails = "release_memory"
        _, handle = calls.memory(numbers)
        handle.Release(handle)
        Importer.fails = "close"
    assert ep.unreported_errors() - before == 4
    printed = capfd.readouterr().err
    for slot in (
        "OrtExternalResourceImporterImpl::CanImportMemory",
        "OrtExternalResourceImporterImpl::CanImportSemaphore",
        "OrtExternalMemoryHandle::Release",
        "OrtExternalResourceImporterImpl::Release",
    ):
        assert f"ImportsExecutionProvider: {slot}: {__name__}.Boom: it broke here" in printed


async def coroutine(*_: Any) -> None:
    """What an author may write by mistake."""


def test_a_coroutine_is_a_failure(numbers: int, capfd: pytest.CaptureFixture[str]) -> None:
    names = ["can_import_memory", "can_import_semaphore", "wait_semaphore", "signal_semaphore"]
    members = dict.fromkeys([*names, "release_memory", "release_semaphore"], coroutine)
    cls = type("Coroutines", (Imports,), {"importer": type("Wrong", (Importer,), members)})
    before = ep.unreported_errors()
    with struct_calls(cls) as calls:
        table, importer = calls.table, calls.importer
        assert not table.CanImportMemory(importer, FD)
        assert not table.CanImportSemaphore(importer, TIMELINE_FD)
        _, memory = calls.memory(numbers)
        _, semaphore = calls.semaphore(1)
        for use in (table.WaitSemaphore, table.SignalSemaphore):
            assert "must be a plain function" in calls.error(use(importer, semaphore, ffi.NULL, 1))
        memory.Release(memory)
        semaphore.Release(semaphore)
    assert ep.unreported_errors() - before == 4
    assert capfd.readouterr().err.count("must be a plain function") >= 4


def raises() -> Any:
    raise Boom("it broke here")


@pytest.mark.parametrize(
    ("importer", "message"),
    [
        (raises, "Boom: it broke here"),
        (lambda: 5, "must return an ort_abi.ep.ResourceImporter, not 5"),
        (ep.ResourceImporter, "its memory must be one of memory_infos(), not None"),
        (
            type("Elsewhere", (Importer,), {"memory": ep.MemoryInfo("Other")}),
            "its memory must be one of memory_infos(), not MemoryInfo",
        ),
    ],
)
def test_an_importer_that_cannot_be_made(importer: Any, message: str) -> None:
    cls = type("Unmade", (Imports,), {"importer": staticmethod(importer)})
    with pytest.raises(AssertionError) as caught, struct_calls(cls):
        pass
    text = str(caught.value)
    assert "OrtEpFactory::CreateExternalResourceImporterForDevice" in text and message in text


def test_none_is_no_importer() -> None:
    with open_ep(type("None_", (Imports,), {"importer": staticmethod(lambda: None)})) as opened:
        out = ffi.new("OrtExternalResourceImporterImpl**", ffi.cast("void*", 1))
        create = opened.factory.CreateExternalResourceImporterForDevice
        assert create(opened.factory, opened.ep_device, out) == ffi.NULL and out[0] == ffi.NULL


def test_an_address_that_is_none(numbers: int) -> None:
    cls = type("Zero", (Imports,), {"importer": type("Z", (Importer,), {"import_memory": lambda *_: 0})})
    with struct_calls(cls) as calls:
        assert "import_memory() must return an address, not 0" in calls.error(calls.memory(numbers)[0])


def test_an_offset_into_the_memory(numbers: int) -> None:
    """What is imported ends where the memory does: tensors have no room behind that."""
    with struct_calls() as calls:
        ((_, importer),) = Imports.made
        status, handle = calls.memory(numbers, offset=4000)
        calls.ok(status)
        assert importer.calls[0][1] == ep.ExternalMemory("memory_opaque_fd", numbers, 4096, 4000)
        status, value = calls.tensor(handle, [24])
        calls.ok(status)
        assert calls.first(value) == 1000
        API.ReleaseValue(value)
        error = calls.error(calls.tensor(handle, [25])[0])
        assert "ValueError: the tensor has 100 bytes from 0 on, the imported memory only 96" in error
        handle.Release(handle)
        error = calls.error(calls.memory(numbers, offset=4097)[0])
        assert "ValueError: the memory has 4096 bytes, the offset is 4097" in error


def test_a_tensor_after_the_factory_is_released(numbers: int) -> None:
    created = ffi.new("OrtExternalResourceImporterImpl**")
    with open_ep(Imports) as opened:
        create = opened.factory.CreateExternalResourceImporterForDevice
        assert create(opened.factory, opened.ep_device, created) == ffi.NULL
        calls = Calls(created[0], created[0], API)
        status, handle = calls.memory(numbers)
        calls.ok(status)
    error = calls.error(calls.tensor(handle, [4])[0])
    assert "LookupError: the factory that has MemoryInfo(name='Imports'" in error
    handle.Release(handle)
    created[0].Release(created[0])


def test_a_coroutine_is_no_semaphore() -> None:
    class Later(Importer):
        async def import_semaphore(self, semaphore: ep.ExternalSemaphore) -> Any:  # type: ignore[override]
            return 1

    with struct_calls(type("Wrong", (Imports,), {"importer": Later})) as calls:
        assert "must be a plain function" in calls.error(calls.semaphore(7)[0])
