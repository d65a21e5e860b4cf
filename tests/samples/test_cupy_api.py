"""What samples/py_plugin_cupy and its stand-in for CuPy take for granted, held against CuPy. Needs no GPU."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ort_abi import ep

from ..support import fake_cupy

cupy = pytest.importorskip("cupy")

SOURCE = Path(__file__).resolve().parent.parent.parent / "samples" / "py_plugin_cupy" / "cupy_ep.py"
LIBRARIES = {
    "cuda.nvrtc.getVersion",
    "cuda.cublas.create",
}  # there only with CUDA's libraries: find_cupy asks

# What the sample calls, and the parameters that it counts on: (where in CuPy, the same in the stand-in).
CALLS = {
    "asarray": ("a", fake_cupy.FakeCupy.asarray),
    "cuda.Device": ("device", fake_cupy._Cuda.Device),
    "cuda.Event": ("disable_timing", fake_cupy._Cuda.Event),
    "cuda.Event.record": ("self stream", fake_cupy._Event.record),
    "cuda.Event.synchronize": ("self", fake_cupy._Event.synchronize),
    "cuda.MemoryPool": ("", fake_cupy._Cuda.MemoryPool),
    "cuda.MemoryPool.free_all_blocks": ("self stream", fake_cupy._Pool.free_all_blocks),
    "cuda.MemoryPool.malloc": ("self size", fake_cupy._Pool.malloc),
    "cuda.MemoryPool.total_bytes": ("self", fake_cupy._Pool.total_bytes),
    "cuda.MemoryPool.used_bytes": ("self", fake_cupy._Pool.used_bytes),
    "cuda.Stream": ("non_blocking", fake_cupy._StreamClass.__call__),
    "cuda.Stream.synchronize": ("self", fake_cupy._Stream.synchronize),
    "cuda.Stream.wait_event": ("self event", fake_cupy._Stream.wait_event),
    "cuda.alloc_pinned_memory": ("size", fake_cupy._Cuda.alloc_pinned_memory),
    "cuda.runtime.deviceGetPCIBusId": ("device", fake_cupy._Runtime.deviceGetPCIBusId),
    "cuda.runtime.deviceSynchronize": ("", fake_cupy._Runtime.deviceSynchronize),
    "cuda.runtime.getDeviceCount": ("", None),
    "cuda.runtime.memcpyAsync": ("dst src size kind stream", fake_cupy._Runtime.memcpyAsync),
}
OPERATORS = {
    "add": "x1 x2",
    "matmul": "",
    "maximum": "x1 x2",
    "multiply": "x1 x2",
    "subtract": "x1 x2",
    "tanh": "x",
}


def find(path: str) -> Any:
    """The object of CuPy at a path."""
    found: Any = cupy
    for name in path.split("."):
        found = getattr(found, name)
    return found


def chains() -> set[str]:
    """Paths below `xp` and `cupy` in the sample."""
    nodes = [node for node in ast.walk(ast.parse(SOURCE.read_text())) if isinstance(node, ast.Attribute)]
    parts = {id(node.value) for node in nodes}  # of a longer path
    found = set()
    for node in nodes:
        names: list[str] = []
        at: ast.AST = node
        while isinstance(at, ast.Attribute) and at.attr != "xp":
            names.insert(0, at.attr)
            at = at.value
        if id(node) not in parts and (
            getattr(at, "attr", "") == "xp" or getattr(at, "id", "") in ("xp", "cupy")
        ):
            found.add(".".join(names))
    return found - {""}


def parameters(function: Any, path: str) -> list[str]:
    """Names of the parameters: of C functions they stand in the first line of the docstring."""
    try:
        return [*inspect.signature(function).parameters]
    except ValueError:
        line = (function.__doc__ or "").splitlines()[0]
        match = re.search(rf"{path.rsplit('.', 1)[-1]}\((.*?)\)", line)
        assert match is not None, f"{path}: {line}"
        arguments = [text.split("=")[0].split()[-1] for text in match[1].split(",") if text.strip()]
        return [name for name in arguments if name.isidentifier()]


def test_everything_that_the_sample_names_is_there() -> None:
    named = chains()
    assert {"cuda.Stream.null", "cuda.runtime.memcpyAsync", "asarray", "matmul"} <= named
    for path in named - LIBRARIES:
        find(path)
    find("cuda.nvrtc.getVersion")
    assert named - LIBRARIES <= {*CALLS, *OPERATORS, "cuda.Stream.null"}


@pytest.mark.parametrize("path", CALLS)
def test_calls_fit(path: str) -> None:
    expected, stand_in = CALLS[path]
    names = expected.split()
    real = parameters(find(path), path)
    given_by_name = {"disable_timing", "non_blocking"}
    if given_by_name.isdisjoint(names):
        assert real[: len(names)] == names
        if path not in ("cuda.Device", "cuda.MemoryPool", "asarray"):  # these have more that we do not give
            assert len(real) == len(names)
    else:
        assert set(names) <= set(real)
    if stand_in is not None:
        ours = [*inspect.signature(stand_in).parameters]
        assert ours[-len(names) :] == names or ours == ["self", *names] or path == "asarray"


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_write_where_they_are_told(name: str) -> None:
    operator = getattr(cupy, name)
    if name == "matmul":
        assert "out" in inspect.signature(operator.__call__).parameters
    else:
        assert re.match(rf"{name}\({', '.join(OPERATORS[name].split())}, /, out=None", operator.__doc__)
        assert {"ee->e", "ff->f", "dd->d"} <= set(operator.types) or {"e->e", "f->f", "d->d"} <= set(
            operator.types
        )


def test_kinds_of_copies() -> None:
    runtime = cupy.cuda.runtime
    for source_on_device in (False, True):
        for target_on_device in (False, True):
            source, target = (("Host", "Device")[where] for where in (source_on_device, target_on_device))
            kind = 2 * source_on_device + target_on_device
            assert getattr(runtime, f"memcpy{source}To{target}") == kind


def test_streams_and_devices_are_context_managers() -> None:
    stream = cupy.cuda.Stream.null
    assert (stream.ptr, stream.device_id) == (0, -1)
    for made in (cupy.cuda.Device, cupy.cuda.Stream):
        assert hasattr(made, "__enter__") and hasattr(made, "__exit__")
    assert hasattr(cupy.cuda.MemoryPointer, "ptr") and hasattr(cupy.cuda.PinnedMemoryPointer, "ptr")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 3)])
def test_what_a_device_tensor_tells_of_itself_makes_an_array(dtype: Any, shape: tuple[int, ...]) -> None:
    """As CuPy reads `__cuda_array_interface__`, short of asking CUDA whose the address is."""
    number = {np.float16: 10, np.float32: 1, np.float64: 11}[dtype]
    tensor = ep.DeviceTensor(0x1000, number, shape, ep.MemoryDevice("GPU", 0x10DE), False)
    interface = tensor.__cuda_array_interface__
    address, read_only = interface["data"]
    assert read_only and interface["version"] == 3
    # None, or no such key: CuPy then has no stream to wait for. It is ours that it runs on.
    assert interface.get("stream") is None and interface.get("mask") is None
    memory = cupy.cuda.UnownedMemory(address, tensor.nbytes, tensor, 0)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    array = cupy.ndarray(interface["shape"], np.dtype(interface["typestr"]), pointer, interface["strides"])
    assert (array.shape, array.dtype) == (shape, dtype)
    assert array.flags.c_contiguous
    assert array.data.ptr == (0x1000 if tensor.size else 0)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.bool_])
def test_cupy_takes_capsules(dtype: Any, max_version: Any) -> None:
    number = {np.float16: 10, np.float32: 1, np.bool_: 9}[dtype]
    tensor = ep.DeviceTensor(0x1000, number, (2, 3), ep.MemoryDevice("GPU", 0x10DE), True)
    array = cupy.from_dlpack(tensor.__dlpack__(max_version=max_version))
    assert (array.shape, array.dtype, array.data.ptr, array.data.device_id) == ((2, 3), dtype, 0x1000, 0)


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm finds CUDA's functions in CuPy")
def test_the_sample_runs_with_cupy_on_a_made_up_cuda_runtime() -> None:
    script = Path(__file__).resolve().parent / "cupy_without_gpu.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120
    )
    if done.stderr.startswith("skip:"):
        pytest.skip(done.stderr)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")
