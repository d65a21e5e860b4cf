"""A laid-out stand-in, stock's libraries, a client of the C API and a model for it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ..conftest import CC
from ..support.c_client import neg

HERE = Path(__file__).resolve().parent
CLIENT = HERE / "client.c"
OLD_STOCK = os.environ.get("ORT_ABI_STOCK_1_24_PYTHON", "")


def call(*command: str | Path, **environment: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command with more environment; its output is in the result."""
    everything = os.environ | {name: str(value) for name, value in environment.items()}
    return subprocess.run(command, capture_output=True, text=True, env=everything, check=False)


def silent(*command: str | Path, **environment: str | Path) -> str:
    """What a command printed that succeeded and wrote nothing to stderr, such as a warning of ld.so."""
    done = call(*command, **environment)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def compile_with(output: Path, *flags: str | Path) -> Path:
    """Compiles and links with all warnings as errors; `.so` makes a library."""
    shared = ["-shared", "-fPIC"] if ".so" in output.name else []
    command = [*shlex.split(CC), "-std=c11", "-Wall", "-Wextra", "-Werror", *shared, *map(str, flags)]
    done = call(*command, "-o", output)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
    return output


def compile_text(output: Path, text: str, *flags: str | Path) -> Path:
    """The same for a source given as text."""
    source = output.parent / f"{output.name}.c"
    source.write_text(text)
    return compile_with(output, source, *flags)


def stub_library(folder: Path, release: str, soname: str) -> Path:
    """A library that looks as stock's of that release does from outside; calling it ends the program."""
    folder.mkdir()
    script = folder / "versions"
    script.write_text(f"VERS_{release} {{ global: Ort*; local: *; }};\n")
    names = ("OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU")
    text = "\n".join(f"void {name}(void);\nvoid {name}(void) {{ __builtin_trap(); }}" for name in names)
    return compile_text(
        folder / "libonnxruntime.so", text, f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}"
    )


def python_with(environment: Mapping[str, str | Path], code: str, *arguments: str | Path) -> str:
    """What a Python program printed that succeeded in silence."""
    return silent(sys.executable, "-c", code, *arguments, **environment)


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `python -m ort_abi.standin` lays out."""
    folder = tmp_path_factory.mktemp("standin") / "onnxruntime"
    silent(sys.executable, "-m", "ort_abi.standin", folder)
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = -x."""
    path = tmp_path_factory.mktemp("model") / "neg.onnx"
    path.write_bytes(neg().SerializeToString())
    return path


def stock_libraries() -> Sequence[Path]:
    """Stock's library in each environment of the tests."""
    pythons = [sys.executable, *([OLD_STOCK] if OLD_STOCK else [])]
    code = "import importlib.util as u; print(u.find_spec('onnxruntime').submodule_search_locations[0])"
    folders = [Path(call(python, "-c", code).stdout.strip()) for python in pythons]
    return [library for folder in folders for library in folder.glob("capi/libonnxruntime.so.*")]


STOCK = stock_libraries()


@pytest.fixture(params=STOCK, ids=[path.name for path in STOCK])
def stock(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with stock's library under the names that linker and loader look for."""
    folder = tmp_path / "stock"
    folder.mkdir()
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (folder / name).symlink_to(request.param)
    return folder
