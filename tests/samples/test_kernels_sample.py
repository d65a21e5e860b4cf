"""samples/c_plugin_kernels in our host and in stock onnxruntime 1.24 and the installed one."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from abigen import native_build

from ..conftest import CC, ROOT, SANITIZER_RUNTIME, SANITIZERS
from .test_c_samples import INCLUDE, compile_c, stock_library

OLD_STOCK = os.environ.get("ORT_ABI_STOCK_1_24_PYTHON", "")
HOSTS = ["ours", "stock", "stock 1.24"]
__all__ = ["stock_library"]


def build_plugin(folder: Path, *flags: str) -> Path:
    """Compiles the sample as its README says, with all warnings as errors."""
    library = folder / "libkernel_ep.so"
    sources = map(str, sorted((ROOT / "samples" / "c_plugin_kernels").glob("*.c")))
    command = [
        *shlex.split(CC),
        "-std=c11",
        "-g",
        *native_build.Options(CC).warnings(),
        *flags,
        "-shared",
        "-fPIC",
    ]
    command += ["-fvisibility=hidden", f"-I{INCLUDE}", *sources, "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
    return library


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plugin, the program that runs it, and the model Squeeze -> Mul -> Relu."""
    folder = tmp_path_factory.mktemp("kernels")
    build_plugin(folder)
    compile_c(ROOT / "tests" / "samples" / "kernels_host.c", folder / "kernels_host", "-ldl")
    nodes = [
        helper.make_node("Squeeze", ["x", "axes"], ["a"], "squeeze"),
        helper.make_node("Mul", ["a", "w"], ["b"], "mul"),
        helper.make_node("Relu", ["b"], ["y"], "relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "kernels",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [
            numpy_helper.from_array(np.array([2, -3, 0.5], np.float32), "w"),
            numpy_helper.from_array(np.array([0], np.int64), "axes"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    return folder


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Path:
    """The library of a host."""
    if request.param == "ours":
        ours: Path = request.getfixturevalue("libort_abi")
        return ours
    if request.param == "stock":
        stock: Path = request.getfixturevalue("stock_library")
        return stock
    if not OLD_STOCK:
        pytest.skip("ORT_ABI_STOCK_1_24_PYTHON names no Python with onnxruntime 1.24")
    code = "import onnxruntime; print(onnxruntime.__file__)"
    done = subprocess.run([OLD_STOCK, "-c", code], capture_output=True, text=True, check=True)
    return next(Path(done.stdout.strip()).parent.glob("capi/libonnxruntime.so.*"))


def run(host: Path, built: Path, mode: str, **environment: str) -> dict[str, list[list[float]]]:
    """What the program printed: name -> the numbers of each of its lines."""
    command = [built / "kernels_host", host, built / "libkernel_ep.so", built / "model.onnx", mode]
    everything = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=everything, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    lines: dict[str, list[list[float]]] = {}
    for line in done.stdout.splitlines():
        name, *numbers = line.split()
        lines.setdefault(name, []).append([float(number) for number in numbers])
    return lines


LOOP = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 3] x) => (float[3, 1, 2, 3] y) <int64 three = {3}, float[3] w = {2, -3, 0.5}>
{
  last, y = Loop (three, , x) <
    body = b (int64 i, bool go, float[1, 2, 3] v) => (bool go, float[1, 2, 3] next, float[1, 2, 3] next) {
      next = If (go) <then_branch = t () => (float[1, 2, 3] p) { p = Mul (v, w) },
                      else_branch = e () => (float[1, 2, 3] q) { q = Relu (v) }>
    }>
}"""


def test_if_and_loop(host: Path, built: Path, tmp_path: Path) -> None:
    """The host runs both for the sample, whose kernels compute what is in them; nothing else may."""
    onnx.save(onnx.parser.parse_model(LOOP), tmp_path / "model.onnx")
    for name in ("kernels_host", "libkernel_ep.so"):
        (tmp_path / name).symlink_to(built / name)
    lines = run(host, tmp_path, "private")
    x, w = np.array([[1, -2, 3], [-4, 5, 6]]), np.array([2, -3, 0.5])
    expected = np.concatenate([(x * w**n).ravel() for n in (1, 2, 3)]).tolist()
    assert lines["y"] == [expected, expected]
    assert lines["kernels"] == [[0]]


Y = [2.0, 6.0, 1.5, 0.0, 0.0, 3.0]


def test_packed_without_a_container(host: Path, built: Path) -> None:
    """Each session's Mul packs its weight, and nothing is left.

    Ours gives no cache then, so the kernel keeps the weight. Stock onnxruntime gives one all the same, and
    the session keeps what is stored in it.
    """
    lines = run(host, built, "private")
    assert lines["y"] == [Y, Y]
    assert lines["prepacks"] == [[2]] and lines["packed_computes"] == [[2]]
    stored = 0 if host.name == native_build.LIBRARY_NAME else 2
    assert lines["stored"] == [[stored]] and lines["set_shared"] == [[stored]]
    assert lines["from_others"] == [[0]]
    assert lines["kernels"] == [[0]] and lines["private_buffers"] == [[0]]


def test_packed_and_shared(host: Path, built: Path) -> None:
    """Both sessions store their weight, and the second gets the first one's, which outlives its session.

    Stock onnxruntime shares across sessions only what its own CPU kernels pack: here each has its own.
    """
    lines = run(host, built, "shared")
    assert lines["y"] == [Y, Y]
    assert lines["prepacks"] == [[2]] and lines["packed_computes"] == [[2]]
    assert lines["stored"] == [[2]] and lines["set_shared"] == [[2]]
    assert lines["from_others"] == [[1 if host.name == native_build.LIBRARY_NAME else 0]]
    assert lines["kernels"] == [[0]] and lines["private_buffers"] == [[0]]


@pytest.mark.parametrize("mode", ["private", "shared"])
def test_clean_under_sanitizers(mode: str, built: Path, sanitized_dir: Path, tmp_path: Path) -> None:
    """The sample in our host, both built with AddressSanitizer and UBSan: no leak, nothing undefined."""
    flags = [f"-fsanitize={SANITIZERS}", "-fno-omit-frame-pointer"]
    build_plugin(tmp_path, *flags)
    compile_c(ROOT / "tests" / "samples" / "kernels_host.c", tmp_path / "kernels_host", "-ldl", *flags)
    (tmp_path / "model.onnx").write_bytes((built / "model.onnx").read_bytes())
    library = sanitized_dir / native_build.LIBRARY_NAME
    assert run(library, tmp_path, mode, **SANITIZER_RUNTIME)["y"] == [Y, Y]
