"""Builds and runs the C test programs: against the library, or with its objects inside."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from abigen import native_build

from ..conftest import CC, ROOT, SANITIZER_RUNTIME, SANITIZERS


def build_program(source: Path, library_dir: Path, program: Path, sanitize: str = SANITIZERS) -> None:
    """Compiles one test: `unit_*.c` look inside and link the library's objects, others link the library.

    `library_dir` is a build folder of `native_build`, made with the same sanitizers.
    """
    options = native_build.Options(cc=CC, sanitize=sanitize)
    command = [*shlex.split(CC), *options.cflags(library_dir / "generated"), f"-I{ROOT / 'tests' / 'c'}"]
    command += [str(source), "-o", str(program)]
    if source.name.startswith("unit_"):
        command += map(str, sorted((library_dir / "obj").rglob("*.o")))
    else:
        command += [f"-L{library_dir}", "-lort_abi", f"-Wl,-rpath,{library_dir}", "-rdynamic"]
    done = subprocess.run([*command, *native_build.LIBS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"


def build_plugin(source: Path, library: Path, sanitize: str = SANITIZERS) -> None:
    """Compiles an EP library of one file, which sees no header of ours but ort_abi.h."""
    flags = ["-shared", "-fPIC", "-g", f"-I{native_build.CSRC / 'include'}"]
    flags += [f"-fsanitize={sanitize}"] if sanitize else []
    command = [*shlex.split(CC), "-std=gnu11", *native_build.Options(CC).warnings(), *flags, str(source)]
    command += ["-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"


def run_program(
    program: Path, folder: Path, *arguments: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Runs a test in `folder`: all its checks must hold, and the sanitizers find nothing."""
    everything = {**os.environ, **SANITIZER_RUNTIME, **(environment or {})}
    command = [program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=everything, cwd=folder, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "0 failed checks" in done.stdout
