"""The two C samples, built as their READMEs say, in our host and in stock onnxruntime."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from abigen import header, native_build

from ..conftest import CC, ROOT, SANITIZER_RUNTIME

SAMPLES = ROOT / "samples"
HERE = Path(__file__).resolve().parent
INCLUDE = ROOT / "csrc" / "include"
EP_NAME = "SampleCExecutionProvider"
FLOAT = TensorProto.FLOAT


def compile_c(source: Path, output: Path, *flags: str) -> Path:
    """Compiles with all warnings as errors; `.so` makes a shared library."""
    shared = ["-shared", "-fPIC", "-fvisibility=hidden"] if output.suffix == ".so" else []
    options = native_build.Options(cc=CC)
    warnings = [flag for flag in options.cflags(output.parent) if flag.startswith("-W")]
    command = [*shlex.split(CC), "-std=c11", "-g", *warnings, *shared, f"-I{INCLUDE}", str(source), *flags]
    done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
    return output


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both samples: `libc_plugin.so` and `c_host`."""
    folder = tmp_path_factory.mktemp("samples")
    compile_c(SAMPLES / "c_plugin" / "c_plugin.c", folder / "libc_plugin.so")
    compile_c(SAMPLES / "c_host" / "c_host.c", folder / "c_host", "-ldl")
    return folder


@pytest.fixture(params=["ours", "stock"])
def host(request: pytest.FixtureRequest) -> Path:
    """The library of a host: ours, then stock onnxruntime's where it is installed."""
    if request.param == "ours":
        path: Path = request.getfixturevalue("libort_abi")
        return path
    stock: Path = request.getfixturevalue("stock_library")
    return stock


@pytest.fixture(scope="session")
def stock_library() -> Path:
    """The library inside the installed onnxruntime wheel."""
    onnxruntime = pytest.importorskip("onnxruntime")
    return next(Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*"))


def save_model(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[int]],
    outputs: list[str],
    **weights: object,
) -> Path:
    """Writes a model of float inputs, outputs of unknown shape and float weights."""
    graph = helper.make_graph(
        nodes,
        "samples",
        [helper.make_tensor_value_info(name, FLOAT, dims) for name, dims in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def scale_shift_relu(path: Path) -> Path:
    """y = Relu(x * w + x), x is float[n, 3]."""
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "x"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    return save_model(path, nodes, {"x": [2, 3]}, ["y"], w=[1, -2, 3])


def run_host(built: Path, host: Path, plugin: Path, model: Path) -> subprocess.CompletedProcess[str]:
    """Runs the sample host."""
    command = [built / "c_host", host, plugin, model]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def outputs_of(done: subprocess.CompletedProcess[str]) -> dict[str, np.ndarray]:
    """What the sample host printed, as arrays."""
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^output (\S+) \[([\d,]*)\](.*)$", done.stdout, re.MULTILINE)
    return {
        name: np.array(values.split(), np.float32).reshape([int(d) for d in dims.split(",") if d])
        for name, dims, values in lines
    }


def test_plugin_runs_a_model(built: Path, host: Path, tmp_path: Path) -> None:
    """The plugin claims all nodes and gives what NumPy gives."""
    done = run_host(built, host, built / "libc_plugin.so", scale_shift_relu(tmp_path / "m.onnx"))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(outputs_of(done)["y"], np.maximum(x * [1, -2, 3] + x, 0))
    assert re.search(
        rf"^device {EP_NAME} \(ort-abi samples\) on .*, of the plugin$", done.stdout, re.MULTILINE
    )


@pytest.mark.parametrize(
    ("a_dims", "b_dims"),
    [
        ([2, 3], [3]),
        ([3], [2, 3]),
        ([2, 1, 2], [2, 1]),
        ([1], [2, 2]),
        ([], [2, 2]),
        ([2, 0], [1]),
        ([1, 4], [2, 1]),
    ],
)
def test_plugin_broadcasts(
    built: Path, host: Path, tmp_path: Path, a_dims: list[int], b_dims: list[int]
) -> None:
    """Shapes broadcast as NumPy's do, empty ones included."""
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Mul", ["sum", "b"], ["y"])]
    model = save_model(tmp_path / "m.onnx", nodes, {"a": a_dims, "b": b_dims}, ["sum", "y"])
    outputs = outputs_of(run_host(built, host, built / "libc_plugin.so", model))
    a, b = (np.arange(np.prod(dims), dtype=np.float32).reshape(dims) for dims in (a_dims, b_dims))
    np.testing.assert_array_equal(outputs["sum"], a + b)
    np.testing.assert_array_equal(outputs["y"], (a + b) * b)


def test_plugin_splits_long_runs_of_nodes(built: Path, host: Path, tmp_path: Path) -> None:
    """More nodes than fit one fused node: several are made, and an inner value may be an output too."""
    nodes = [helper.make_node("Add", [f"v{i}", "one"], [f"v{i + 1}"]) for i in range(40)]
    model = save_model(tmp_path / "m.onnx", nodes, {"v0": [2]}, ["v40", "v5"], one=[1])
    outputs = outputs_of(run_host(built, host, built / "libc_plugin.so", model))
    np.testing.assert_array_equal(outputs["v40"], np.array([40, 41], np.float32))
    np.testing.assert_array_equal(outputs["v5"], np.array([5, 6], np.float32))


def test_plugin_leaves_other_nodes_alone(built: Path, host: Path, tmp_path: Path) -> None:
    """An op that the plugin does not know is not claimed, so that the session, without fallback, says so."""
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Sin", ["a"], ["y"])]
    done = run_host(
        built, host, built / "libc_plugin.so", save_model(tmp_path / "m.onnx", nodes, {"x": [2]}, ["y"])
    )
    assert done.returncode == 1
    assert "CreateSession" in done.stderr


def test_unclaimed_nodes_are_named(built: Path, libort_abi: Path, tmp_path: Path) -> None:
    """Our host's error lists the nodes that no provider took."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="mine"),
        helper.make_node("Sin", ["a"], ["y"], name="not_mine"),
    ]
    model = save_model(tmp_path / "m.onnx", nodes, {"x": [2]}, ["y"])
    done = run_host(built, libort_abi, built / "libc_plugin.so", model)
    assert "'not_mine' (Sin" in done.stderr and "'mine'" not in done.stderr


def test_an_error_of_compute_reaches_the_caller(built: Path, libort_abi: Path, tmp_path: Path) -> None:
    """Shapes that turn out not to fit at run time: a status of Run that names the provider, no crash."""
    model = save_model(
        tmp_path / "m.onnx", [helper.make_node("Add", ["a", "b"], ["y"])], {"a": [2], "b": [3]}, ["y"]
    )
    done = run_host(built, libort_abi, built / "libc_plugin.so", model)
    assert done.returncode == 1
    assert "Run: error" in done.stderr and "failed: shapes do not broadcast in: Add" in done.stderr


def slots_of(version: int) -> tuple[int, int]:
    """How many slots OrtApi and OrtEpApi have in an API version."""
    structs = header.read(INCLUDE / "ort_abi.h").structs
    counts = [
        sum((m.since or 0) <= version for m in structs[name].members) for name in ("OrtApi", "OrtEpApi")
    ]
    return counts[0], counts[1]


def build_capped(folder: Path, version: int) -> Path:
    """The plugin as it is on a host that knows API versions up to `version` only."""
    api_slots, ep_api_slots = slots_of(version)
    flags = [f"-DAPI_VERSION={version}", f"-DAPI_SLOTS={api_slots}", f"-DEP_API_SLOTS={ep_api_slots}"]
    plugin_folder = SAMPLES / "c_plugin"
    return compile_c(HERE / "capped_plugin.c", folder / "libcapped.so", f"-I{plugin_folder}", *flags)


@pytest.mark.parametrize("version", range(23, 31))
def test_plugin_keeps_to_the_slots_of_its_host(built: Path, host: Path, tmp_path: Path, version: int) -> None:
    """On hosts of API 23 to 30 the plugin works and touches no slot that came later."""
    done = run_host(built, host, build_capped(tmp_path, version), scale_shift_relu(tmp_path / "m.onnx"))
    np.testing.assert_array_equal(outputs_of(done)["y"], [[0, 0, 8], [6, 0, 20]])


def test_plugin_refuses_a_host_that_is_too_old(built: Path, host: Path, tmp_path: Path) -> None:
    """A host of API 22 gets an error status, made with what it has."""
    done = run_host(built, host, build_capped(tmp_path, 22), scale_shift_relu(tmp_path / "m.onnx"))
    assert done.returncode == 1
    assert "the host is older than API version 23" in done.stderr


@pytest.mark.parametrize("broken", ["host", "plugin", "not_a_host", "not_a_plugin", "model", "corrupt_model"])
def test_host_tells_what_is_wrong(built: Path, libort_abi: Path, tmp_path: Path, broken: str) -> None:
    """Every wrong argument ends in exit status 1 and one line on stderr that names it."""
    corrupt = tmp_path / "corrupt.onnx"
    corrupt.write_bytes(b"\x08\x08\x3a\xff")
    good = {
        "host": libort_abi,
        "plugin": built / "libc_plugin.so",
        "model": scale_shift_relu(tmp_path / "m.onnx"),
    }
    missing, library = tmp_path / "missing", built / "libc_plugin.so"
    changes = {
        "host": ({"host": missing}, "cannot load the host: "),
        "plugin": ({"plugin": missing}, "RegisterExecutionProviderLibrary: error"),
        "not_a_host": ({"host": library}, "not a host: "),
        "not_a_plugin": ({"plugin": libort_abi}, "CreateEpFactories"),
        "model": ({"model": missing}, "CreateSession: error 3"),
        "corrupt_model": ({"model": corrupt}, "CreateSession: error 7"),
    }
    change, message = changes[broken]
    done = run_host(built, **{**good, **change})
    assert done.returncode == 1
    assert done.stderr.startswith("c_host: ") and message in done.stderr
    assert str(next(iter(change.values()))) in done.stderr


def test_host_says_how_it_is_used(built: Path) -> None:
    """Without arguments: exit status 2 and the usage."""
    done = subprocess.run([built / "c_host"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "LIBRARY_OF_HOST PLUGIN MODEL" in done.stderr


def run_cycles(folder: Path, host: Path, plugin: Path, count: int, *flags: str) -> list[str]:
    """Registers, runs and unregisters `count` times in one process; the lines that it printed."""
    program = compile_c(HERE / "cycles.c", folder / "cycles", *flags, "-ldl")
    command = [program, host, plugin, scale_shift_relu(folder / "m.onnx"), str(count)]
    no_cache = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}  # freed memory counts as free at once
    environment = {**os.environ, **SANITIZER_RUNTIME, **no_cache}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr
    return done.stdout.splitlines()


def test_library_is_gone_after_each_of_25_cycles(built: Path, host: Path, tmp_path: Path) -> None:
    """Unregistering unmaps the plugin every time, also in stock onnxruntime."""
    lines = run_cycles(tmp_path, host, built / "libc_plugin.so", 25)
    assert len(lines) == 23


def test_cycles_do_not_grow_the_heap(built: Path, libort_abi: Path, tmp_path: Path) -> None:
    """Our heap is byte for byte as large after cycle 25 as after cycle 2."""
    lines = run_cycles(tmp_path, libort_abi, built / "libc_plugin.so", 25)
    assert set(lines) == {"grown by 0 bytes"}


def test_samples_under_sanitizers(sanitized_dir: Path, tmp_path: Path) -> None:
    """Plugin, host and library built with AddressSanitizer and UBSan: nothing to report, no leak."""
    flags = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer"]
    plugin = compile_c(SAMPLES / "c_plugin" / "c_plugin.c", tmp_path / "libc_plugin.so", *flags)
    program = compile_c(SAMPLES / "c_host" / "c_host.c", tmp_path / "c_host", *flags, "-ldl")
    library = sanitized_dir / native_build.LIBRARY_NAME
    command = [program, library, plugin, scale_shift_relu(tmp_path / "m.onnx")]
    environment = {**os.environ, **SANITIZER_RUNTIME}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr
    run_cycles(tmp_path, library, plugin, 3, *flags)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_samples_under_valgrind(built: Path, libort_abi: Path, tmp_path: Path) -> None:
    """Valgrind sees no bad access and no leak in host, library and plugin."""
    command = ["valgrind", "-q", "--leak-check=full", "--error-exitcode=9", built / "c_host", libort_abi]
    model = scale_shift_relu(tmp_path / "m.onnx")
    done = subprocess.run(
        [*command, built / "libc_plugin.so", model], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
