"""Builds and starts `fuzz_models`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

from abigen import native_build
from tests.conftest import CC, ROOT, SANITIZER_RUNTIME, SANITIZERS

SOURCES = ["bytes", "generate", "generate_ops", "generate_bodies", "damage", "run_model", "fuzz_models"]
# What a model may ask for: more is as if there were no memory.
MEMORY = ":max_allocation_size_mb=64:quarantine_size_mb=16:handle_abort=1"


def build_fuzzer(library_dir: Path, program: Path) -> None:
    """Compiles the fuzzer against a build folder of `native_build` that has the sanitizers."""
    options = native_build.Options(cc=CC, sanitize=SANITIZERS)
    sources = [str(ROOT / "tests" / "fuzz" / f"{name}.c") for name in SOURCES]
    command = [*shlex.split(CC), *options.cflags(library_dir / "generated"), *sources, "-o", str(program)]
    command += [f"-L{library_dir}", "-lort_abi", f"-Wl,-rpath,{library_dir}", *native_build.LIBS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"


def execute(fuzzer: Path, *arguments: object) -> dict[str, int]:
    """Runs the fuzzer and returns how often which outcome was."""
    environment = {**os.environ, **SANITIZER_RUNTIME}
    environment["ASAN_OPTIONS"] += MEMORY
    command = [fuzzer, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", env=environment, check=False
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr[-6000:]}"
    return {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", done.stdout)}
