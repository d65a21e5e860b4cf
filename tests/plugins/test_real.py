"""Real EP libraries from PyPI: our host shows the devices that stock onnxruntime shows, again and again."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Drive

pytestmark = pytest.mark.third_party
NXRT = ("nxrt_ep_cpu", "libonnx_runtime_ep_cpu_plugin.so")
OPENVINO = ("onnxruntime_ep_openvino", "libonnxruntime_providers_openvino_plugin.so")

STOCK = """
import json, sys, onnxruntime
onnxruntime.register_execution_provider_library("real", sys.argv[1])
print(json.dumps([
    [d.ep_name, d.ep_vendor, dict(d.ep_metadata), dict(d.ep_options), d.device.type.value, d.device.vendor_id,
     d.device.device_id]
    for d in onnxruntime.get_ep_devices() if d.ep_name != "CPUExecutionProvider"
]))
"""


def library_of(package: tuple[str, str]) -> Path:
    """The library inside an installed package; skips the test where it is not installed."""
    spec = importlib.util.find_spec(package[0])
    if spec is None or spec.origin is None:
        pytest.skip(f"{package[0]} is not installed")
    return Path(spec.origin).parent / package[1]


def pairs(text: str) -> dict[str, str]:
    """The driver's `key=value,key=value` as a dictionary."""
    return dict(pair.split("=", 1) for pair in text.split(",")) if text else {}


@pytest.mark.parametrize("package", [NXRT, OPENVINO], ids=lambda package: package[0])
def test_devices_are_those_of_stock_onnxruntime(package: tuple[str, str], drive_plain: Drive) -> None:
    """Names, metadata, options and hardware; none where stock sees none (OpenVINO wants an Intel CPU)."""
    pytest.importorskip("onnxruntime")
    library = library_of(package)
    done = subprocess.run(
        [sys.executable, "-c", STOCK, str(library)], capture_output=True, text=True, check=True
    )
    answer = drive_plain("create", f"register\treal\t{library}", "devices", "unregister\treal", "release")
    assert answer.results("register") == answer.results("unregister") == ["ok"]
    ours = []
    for words in answer.records("device"):
        if words[0] != "CPUExecutionProvider":
            hardware = [int(part, 16) for part in words[4].removeprefix("hardware=").split(":")]
            ours.append([words[0], words[1], pairs(words[2]), pairs(words[3]), *hardware])
    assert ours == json.loads(done.stdout.splitlines()[-1])


def test_openvino_runs_on_an_injected_intel_cpu(drive_plain: Drive) -> None:
    library = library_of(OPENVINO)
    answer = drive_plain(
        "create",
        "inject\t0\t8086\t0\tIntel",
        f"register\treal\t{library}",
        "devices",
        "unregister\treal",
        "devices",
        "release",
    )
    assert answer.results("register") == answer.results("unregister") == ["ok"]
    assert set(answer.devices()) == {"OpenVINOExecutionProvider", "OpenVINOExecutionProvider.AUTO"}
    version = importlib.metadata.version("onnxruntime-ep-openvino")
    for words in answer.records("device"):
        assert words[0] == "CPUExecutionProvider" or (
            words[1] == "Intel"
            and pairs(words[2])["version"].startswith(version)
            and pairs(words[2])["library_path"] == str(library)
            and words[4] == "hardware=0:8086:0"
        )


@pytest.mark.parametrize("package", [NXRT, OPENVINO], ids=lambda package: package[0])
def test_25_cycles(package: tuple[str, str], drive_plain: Drive) -> None:
    """The two stay mapped by their own build: the number of mappings does not grow."""
    library = library_of(package)
    answer = drive_plain(
        "create",
        f"cycles\t1\treal\t{library}",
        f"cycles\t25\treal\t{library}",
        "release",
        "create",
        f"cycles\t1\treal\t{library}",
        "release",
    )
    (first, after_one), (many, after_many), (last, after_last) = (
        (text.rsplit(" ", 1)[0], text.rsplit(" ", 1)[1]) for text in answer.results("cycles")
    )
    assert (first, many, last) == ("1 1", "25 25", "1 1")
    assert after_one == after_many == after_last
