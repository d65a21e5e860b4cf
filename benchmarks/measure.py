"""What the benchmarks have in common: both hosts, C programs that measure them, the command line."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def stock_library() -> Path:
    """Path of the stock host inside the installed onnxruntime wheel; raises `FileNotFoundError`."""
    spec = importlib.util.find_spec("onnxruntime")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or []:
        for path in sorted(Path(folder, "capi").glob("libonnxruntime.so.*")):
            return path
    raise FileNotFoundError("onnxruntime is not installed, or its wheel holds no libonnxruntime.so")


def our_library() -> Path:
    """Path of libort_abi.so, built from this tree."""
    sys.path.insert(0, str(ROOT))
    from abigen import native_build

    return native_build.build(ROOT / "build" / "native")


def compile_c(source: Path, output: Path, *flags: str) -> Path:
    """Compiles one C file with optimisation."""
    include = ROOT / "csrc" / "include"
    command = ["cc", "-std=gnu11", "-O2", f"-I{include}", str(source), *flags, "-o", str(output)]
    subprocess.run(command, check=True)
    return output


def call(program: Path, *arguments: object) -> list[float]:
    """Runs the measuring program and returns the numbers it prints."""
    done = subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    return [float(word) for word in done.stdout.split()]


def build_plugin(folder: Path) -> Path:
    """Compiles samples/c_plugin in `folder`."""
    source = ROOT / "samples" / "c_plugin" / "c_plugin.c"
    return compile_c(source, folder / "libc_plugin.so", "-shared", "-fPIC")


def command_line(doc: str | None) -> argparse.ArgumentParser:
    """A parser with the arguments that all benchmarks of the C API have; `doc` is the program's docstring."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    parser.add_argument(
        "--library", type=Path, help="libort_abi.so to measure; built from this tree if not given"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser
