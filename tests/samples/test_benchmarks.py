"""The benchmarks run and print what they measured; how fast is not asserted, no test depends on time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import ROOT


def test_run_overhead(libort_abi: Path) -> None:
    """Three rows with both hosts; memory, which is no time, is under its aim."""
    pytest.importorskip("onnxruntime")
    command = [sys.executable, ROOT / "benchmarks" / "run_overhead.py", "--library", libort_abi, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    rows = json.loads(done.stdout)
    assert [row["unit"] for row in rows] == ["ns", "us", "kB"]
    assert all(row["ours"] > 0 and row["stock"] > 0 for row in rows)
    assert rows[2]["ratio"] < rows[2]["aim"]
