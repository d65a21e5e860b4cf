"""Builds every C test against a sanitized library and runs it: one case a program.

`c/test_*.c` use the public tables and link libort_abi.so; `c/unit_*.c` look inside and link its objects.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import ROOT
from .support.c_programs import build_program, run_program

FOLDER = ROOT / "tests" / "c"
PROGRAMS = sorted([*FOLDER.glob("test_*.c"), *FOLDER.glob("unit_*.c")])


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_c_program(source: Path, sanitized_dir: Path, tmp_path: Path) -> None:
    """The program's checks all hold, nothing leaks, nothing is undefined."""
    program = tmp_path / source.stem
    build_program(source, sanitized_dir, program)
    run_program(program, tmp_path)
