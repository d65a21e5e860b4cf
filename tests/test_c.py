"""Builds every C test against a sanitized library and runs it: one case a program.

`c/test_*.c` use the public tables and link libort_abi.so; `c/unit_*.c` look inside and link its objects.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from abigen import native_build

from .conftest import CC, ROOT, SANITIZER_RUNTIME, SANITIZERS

FOLDER = ROOT / "tests" / "c"
PROGRAMS = sorted([*FOLDER.glob("test_*.c"), *FOLDER.glob("unit_*.c")])


def build_program(source: Path, library_dir: Path, program: Path) -> None:
    """Compiles one test; raises with the compiler's output."""
    options = native_build.Options(cc=CC, sanitize=SANITIZERS)
    command = [*shlex.split(CC), *options.cflags(library_dir / "generated"), f"-I{FOLDER}"]
    command += [str(source), "-o", str(program)]
    if source.name.startswith("unit_"):
        command += map(str, sorted((library_dir / "obj").rglob("*.o")))
    else:
        command += [f"-L{library_dir}", "-lort_abi", f"-Wl,-rpath,{library_dir}"]
    done = subprocess.run([*command, *native_build.LIBS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_c_program(source: Path, sanitized_dir: Path, tmp_path: Path) -> None:
    """The program's checks all hold, nothing leaks, nothing is undefined."""
    program = tmp_path / source.stem
    build_program(source, sanitized_dir, program)
    environment = {**os.environ, **SANITIZER_RUNTIME}
    done = subprocess.run(
        [program], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "0 failed checks" in done.stdout
