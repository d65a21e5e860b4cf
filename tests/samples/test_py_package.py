"""samples/py_package: a provider in Python, used as any package of a plugin is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ort_abi

SAMPLE = Path(__file__).resolve().parent.parent.parent / "samples" / "py_package"
OLD_STOCK = os.environ.get("ORT_ABI_STOCK_1_24_PYTHON", "")
END = ", AcmePluginExecutionProvider: [1.0, 4.0, 9.0]"


def run_sample(python: str, *hosts: str, script: Path = SAMPLE / "run.py", path: str = "") -> list[str]:
    folders = [path, os.path.dirname(ort_abi.__path__[0]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [python, str(script), *hosts],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("host", ["ort_abi", "onnxruntime"])
def test_the_package_is_used_like_any_plugin(host: str) -> None:
    (line,) = run_sample(sys.executable, host)
    assert line.startswith(f"{host} ")
    assert line.endswith(END)


@pytest.mark.skipif(not OLD_STOCK, reason="ORT_ABI_STOCK_1_24_PYTHON names no Python with onnxruntime 1.24")
def test_onnxruntime_1_24() -> None:
    (line,) = run_sample(OLD_STOCK, "onnxruntime")
    assert line.startswith("onnxruntime 1.24.")
    assert line.endswith(END)


def test_the_readme_shows_what_comes_out() -> None:
    shown = [line.strip() for line in (SAMPLE / "README.md").read_text().splitlines() if END in line]
    assert run_sample(sys.executable) == shown


def test_it_installs(tmp_path: Path) -> None:
    """From its pyproject.toml, with nothing fetched; what is installed runs."""
    copy, target = tmp_path / "source", tmp_path / "installed"
    subprocess.run(["cp", "-r", str(SAMPLE), str(copy)], check=True)
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(copy)], check=True)
    script = Path(shutil.copy(SAMPLE / "run.py", tmp_path))  # a script sees what lies beside it
    (line,) = run_sample(sys.executable, "ort_abi", script=script, path=str(target))
    assert line.endswith(END)
