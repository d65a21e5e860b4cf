"""samples/py_plugin runs in both hosts, and in the oldest stock onnxruntime that it supports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ort_abi

SAMPLE = Path(__file__).resolve().parent.parent.parent / "samples" / "py_plugin"
OLD_STOCK = os.environ.get("ORT_ABI_STOCK_1_24_PYTHON", "")
OUTPUT = "[[1.0, 2.0, 6.5], [11.0, 10.0, 12.5]]"


def run_sample(python: str, *hosts: str) -> list[str]:
    path = os.pathsep.join([os.path.dirname(ort_abi.__path__[0]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [python, "run.py", *hosts],
        cwd=SAMPLE,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("host", ["ort_abi", "onnxruntime"])
def test_both_providers_run(host: str) -> None:
    lines = run_sample(sys.executable, host)
    assert [re.sub(r" \S+,", ",", line, count=1) for line in lines] == [
        f"{host}, MyExecutionProvider: {OUTPUT}",
        f"{host}, MyKernelExecutionProvider: {OUTPUT}",
    ]


@pytest.mark.skipif(not OLD_STOCK, reason="ORT_ABI_STOCK_1_24_PYTHON names no Python with onnxruntime 1.24")
def test_onnxruntime_1_24() -> None:
    lines = run_sample(OLD_STOCK, "onnxruntime")
    assert len(lines) == 2
    assert all(line.startswith("onnxruntime 1.24.") and line.endswith(OUTPUT) for line in lines)


def test_the_readme_shows_what_comes_out() -> None:
    shown = [line.strip() for line in (SAMPLE / "README.md").read_text().splitlines() if OUTPUT in line]
    assert len(shown) == 4
    for host in ("ort_abi", "onnxruntime"):
        assert set(run_sample(sys.executable, host)) <= set(shown)


def test_the_provider_is_about_thirty_lines() -> None:
    lines = (SAMPLE / "my_ep.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 36
