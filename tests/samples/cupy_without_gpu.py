"""Run by test_cupy_api: samples/py_plugin_cupy with CuPy itself, on a CUDA runtime that is made up."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "samples" / "py_plugin_cupy")]

import cupy  # noqa: E402
import cupy_ep  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import run as sample  # noqa: E402

import ort_abi  # noqa: E402
from ort_abi import OrtValue, ep  # noqa: E402
from tests.support import fake_cuda  # noqa: E402

try:
    RUNTIME = fake_cuda.install()
except LookupError as error:
    sys.exit(f"skip: {error}")
XP = fake_cuda.Cupy(RUNTIME)
X = np.array([[1, 2], [-3, 4]], np.float32)


def expected(x: Any) -> Any:
    return np.maximum(x @ sample.W + sample.B, 0)


def provider() -> Any:
    take_cpu = classmethod(lambda cls, devices: [device for device in devices if device.type == "CPU"][:1])
    return type("CupyEp", (cupy_ep.CupyEp,), {"gpu": cupy_ep.Gpu(XP), "get_supported_devices": take_cpu})


def runs() -> None:
    """In both hosts, also below a device and a stream of the user's; nothing is left on the device."""
    users = cupy.cuda.Stream(non_blocking=True)
    for host in (ort_abi, onnxruntime):
        np.testing.assert_allclose(sample.run(host, provider(), X), expected(X))
        with users, cupy.cuda.Device(1):
            np.testing.assert_allclose(sample.run(host, provider(), X), expected(X))
    assert RUNTIME.counts["launches on stream"] == 12 and not RUNTIME.counts["launches on default"]


def values(device: ort_abi.OrtEpDevice) -> None:
    """Copies of all kinds, the pool, and CuPy's arrays as values and back."""
    value = OrtValue.ortvalue_from_numpy(X, "cuda")
    assert RUNTIME.pending() == 0
    other = OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32, "cuda")
    ort_abi.copy_tensors([value], [other])
    assert RUNTIME.pending() == 0
    np.testing.assert_array_equal(other.numpy(), X)
    memory = device.memory_info(ort_abi.OrtDeviceMemoryType.HOST_ACCESSIBLE)
    pinned = OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32, memory_info=memory)
    pinned.numpy()[...] = 2 * X
    stream = device.create_sync_stream()
    ort_abi.copy_tensors([pinned], [other], stream)
    pinned.numpy()[...] = 0
    stream.flush()
    np.testing.assert_array_equal(other.numpy(), 2 * X)
    array = cupy.from_dlpack(value)
    assert (array.shape, array.dtype, array.data.device_id) == ((2, 2), np.float32, 0)
    assert array.data.ptr == value.data_ptr()
    back = OrtValue.from_dlpack(array)
    assert (back.data_ptr(), back.device_name()) == (value.data_ptr(), "cuda")
    address = value.data_ptr()
    del value, array, back
    gc.collect()
    assert OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32, "cuda").data_ptr() == address
    info = device.memory_info()
    assert info is not None and ort_abi.allocator_stats(info)["InUse"] == "512"


def threads(device: ort_abi.OrtEpDevice) -> None:
    """Threads that share a session."""
    options = ort_abi.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_provider_for_devices([device], {})
    session = ort_abi.InferenceSession(sample.model(), options)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for rows in np.random.default_rng(seed).integers(1, 50, 10):
                x = np.random.default_rng(rows).standard_normal((rows, 2)).astype(np.float32)
                np.testing.assert_allclose(session.run(None, {"x": x})[0], expected(x), rtol=1e-5)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def events() -> None:
    """One stream behind another."""
    gpu = cupy_ep.Gpu(XP)
    first, second = cupy_ep.Stream(gpu), cupy_ep.Stream(gpu)
    order: list[int] = []
    notification = first.create_notification()
    RUNTIME.streams[first.handle()].append(lambda: order.append(1))
    notification.activate()
    notification.wait_on_device(second)
    RUNTIME.streams[second.handle()].append(lambda: order.append(2))
    second.flush()
    assert order == [1, 2]
    notification.wait_on_host()


def main() -> None:
    runs()
    cls = provider()
    ort_abi.register(cls)
    device = next(device for device in ort_abi.get_ep_devices() if device.ep_name == cls.name)
    values(device)
    threads(device)
    events()
    del device
    gc.collect()
    ort_abi.unregister_execution_provider_library(cls.name)
    gc.collect()
    gpus = [
        ep.Device("GPU", "", cupy_ep.NVIDIA, 1, {"pci_bus_id": f"0000:{bus}:00.0"}) for bus in ("03", "0a")
    ]
    chosen = type("CupyEp", (cupy_ep.CupyEp,), {"gpu": cls.gpu}).get_supported_devices(gpus)
    assert chosen == [gpus[1]]
    left = len(RUNTIME.memory), len(RUNTIME.streams), len(RUNTIME.events)
    assert left == (0, 1, 0) and RUNTIME.counts["failed"] == 0, (left, RUNTIME.counts)
    assert ep.unreported_errors() == 0
    print("ok")


if __name__ == "__main__":
    main()
