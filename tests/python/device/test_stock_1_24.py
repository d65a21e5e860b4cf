"""The tests of providers with a device once more in onnxruntime 1.24, the oldest that they load into."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
OLD_STOCK = os.environ.get("ORT_ABI_STOCK_1_24_PYTHON", "")
FILES = {
    "test_ep_device.py": 10,
    "test_ep_device_failures.py": 15,
    "test_ep_device_session.py": 10,
    "test_device_lessons.py": 18,
}
"""With how many tests pass there at least: the others are for slots that 1.24 does not have."""


@pytest.mark.skipif(not OLD_STOCK, reason="ORT_ABI_STOCK_1_24_PYTHON names no Python with onnxruntime 1.24")
@pytest.mark.parametrize("file", FILES)
def test_devices_in_onnxruntime_1_24(file: str) -> None:
    command = [OLD_STOCK, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "stock or onnxruntime"]
    environment = os.environ | {"PYTHONPATH": os.fspath(ROOT)}
    done = subprocess.run(
        [*command, os.fspath(HERE / file)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (passed,) = re.findall(r"(\d+) passed", done.stdout)
    assert int(passed) >= FILES[file], done.stdout
