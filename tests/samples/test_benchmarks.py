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


def test_copy_tensors(libort_abi: Path) -> None:
    """Copies of one large and of many small tensors, between host and device in both hosts."""
    pytest.importorskip("onnxruntime")
    command = [sys.executable, ROOT / "benchmarks" / "copy_tensors.py", "--library", libort_abi, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    rows = json.loads(done.stdout)
    assert [row["what"].split(":")[0] for row in rows] == [
        "64 MB, host to host",
        "4 KB, host to host",
        *["64 MB, host to device"] * 3,
        *["4 KB, host to device"] * 3,
    ]
    assert all(row["value"] > 0 for row in rows if row["unit"] == "")


def test_prepack_memory(libort_abi: Path) -> None:
    """One session needs no more than its packed weights, and eight that share no more than one."""
    pytest.importorskip("onnxruntime")
    command = [sys.executable, ROOT / "benchmarks" / "prepack_memory.py", "--library", libort_abi]
    done = subprocess.run(
        [*command, "--megabytes", "48", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    report = json.loads(done.stdout)
    assert all(ratio <= 1.1 for ratio in report["ratios"]["ours"].values())
    results = [case["result"] for case in report["cases"]]
    assert results == pytest.approx([results[0]] * 8, rel=1e-3)


def test_run_python() -> None:
    """A run, a tiny node, a large node, a run around large ones: each beside stock, the large node beside
    NumPy too."""
    pytest.importorskip("onnxruntime")
    command = [sys.executable, ROOT / "benchmarks" / "run_python.py", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    rows = json.loads(done.stdout)
    assert [row["against"] for row in rows] == ["stock", "stock", "aim", "stock", "NumPy", "stock"]
    assert all(row["ours"] > 0 and row["ratio"] == pytest.approx(row["ours"] / row["other"]) for row in rows)
