"""The command `ort-abi`."""

from __future__ import annotations

import dataclasses
import gc
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ep_support import model, mul_model
from onnx import TensorProto, helper

import ort_abi
from ort_abi import cli, ep
from ort_abi.cli import demo_ep

PROVIDER = """
import ort_abi.ep
class Mine(ort_abi.ep.ExecutionProvider):
    name, vendor, version = "CliExecutionProvider", "Me", "1.2.3"
    @staticmethod
    @ort_abi.ep.kernel("Mul", (7, None))
    def mul(a, b):
        return a * b
class Failing(Mine):
    name = "CliFailingExecutionProvider"
    def __init__(self):
        if self.options.get("fail") == "yes":
            raise KeyError("the reason")
class Nowhere(Mine):
    name = "CliNowhereExecutionProvider"
    @classmethod
    def get_supported_devices(cls, devices):
        return []
"""


def main(arguments: Sequence[str]) -> int:
    """The command; what it registers is gone afterwards, as if it had been a process of its own."""
    before = set(ort_abi.env._state.libraries)
    try:
        return cli.main(arguments)
    finally:
        gc.collect()
        for name in reversed(ort_abi.env._state.libraries[:]):
            if name not in before:
                ort_abi.unregister_execution_provider_library(name)


@pytest.fixture
def provider(tmp_path: Path) -> str:
    """A file with two providers."""
    path = tmp_path / "providers.py"
    path.write_text(PROVIDER)
    return str(path)


@pytest.fixture
def mul(tmp_path: Path) -> str:
    """A model of one Mul."""
    path = tmp_path / "mul.onnx"
    path.write_bytes(mul_model())
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that works prints."""
    assert main(arguments) == 0, capsys.readouterr().err
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def fail(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line or two of a command that fails."""
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("ort-abi: ")
    assert captured.err.count("\n") <= 2
    return captured.err


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "devices").splitlines()
    assert lines[0].split()[:4] == ["EP", "EP", "VENDOR", "DEVICE"]
    assert any(line.startswith("CPUExecutionProvider") and " CPU " in line for line in lines[1:])


def test_devices_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    devices = json.loads(run(capsys, "devices", "--json"))
    cpu = next(device for device in devices if device["ep_name"] == "CPUExecutionProvider")
    assert cpu["device"]["type"] == "CPU"


def test_devices_can_be_made_up() -> None:
    command = [sys.executable, "-m", "ort_abi.cli", "devices", "--device", "gpu:0x10de:0x2330", "--ep"]
    plugin = pytest.importorskip("onnxruntime_ep_openvino").get_library_path()
    done = subprocess.run(
        [*command, plugin, "--device", "cpu:0x8086"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    line = next(line for line in done.stdout.splitlines() if line.startswith("OpenVINOExecutionProvider "))
    assert line.split()[1:6] == ["Intel", "CPU", "injected", "0x8086", "0x0000"]


def test_run_says_what_ran_where(capsys: pytest.CaptureFixture[str], mul: str, provider: str) -> None:
    out = run(capsys, "run", mul, "--py-ep", f"{provider}:Mine", "--no-fallback", "--repeat", "3")
    assert "ran 3 time(s)" in out
    lines = [line.split() for line in out.splitlines() if line]
    assert ["EP", "NODES", "MS", "A", "RUN", "WHAT"] in lines
    ep_line = next(words for words in lines if words[0] == "CliExecutionProvider")
    assert (ep_line[1], ep_line[3]) == ("1", "Mul")
    output = next(words for words in lines if words[0] == "y")
    assert output[1:3] == ["float32", "[3]"]
    assert run(capsys, "run", mul, "--py-ep", f"{provider}:Mine").split("OUTPUT")[1] in out


def test_run_with_inputs_from_files(capsys: pytest.CaptureFixture[str], mul: str, tmp_path: Path) -> None:
    a, b = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    named = run(capsys, "run", mul, "--input", f"b={tmp_path / 'b.npy'}", "--input", str(tmp_path / "a.npy"))
    assert "4, 10, 18" in named
    ordered = run(capsys, "run", mul, *(f"--input={tmp_path / name}.npy" for name in "ab"))
    assert "4, 10, 18" in ordered


def test_run_as_json(capsys: pytest.CaptureFixture[str], mul: str) -> None:
    report = json.loads(run(capsys, "run", mul, "--json", "--repeat", "2"))
    assert report["providers"] == ["CPUExecutionProvider"]
    assert len(report["run_seconds"]) == 2
    assert [(step["op_type"], step["runs"]) for step in report["assignment"]] == [("Mul", 2)]
    assert report["outputs"][0]["shape"] == [3]


def test_inputs_are_made_up_for_every_type(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kinds = ["FLOAT", "FLOAT16", "DOUBLE", "INT64", "UINT8", "BOOL", "STRING", "BFLOAT16"]
    inputs = {name: (getattr(TensorProto, name), ["N", 2, None]) for name in kinds}
    outputs = {f"out_{name}": spec for name, spec in inputs.items()}
    nodes = [helper.make_node("Identity", [name], [f"out_{name}"]) for name in kinds]
    path = tmp_path / "many.onnx"
    path.write_bytes(model(nodes, inputs, outputs))
    first = run(capsys, "run", str(path))
    for name in kinds:
        assert f"out_{name}" in first
    assert "[1, 2, 1]" in first
    assert first.split("OUTPUT")[1] == run(capsys, "run", str(path)).split("OUTPUT")[1]


def test_what_no_command_can_use_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], mul: str, provider: str, tmp_path: Path
) -> None:
    (tmp_path / "text.so").write_text("not a library")
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "bad.onnx").write_bytes(b"\xff\xff")
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    np.save(tmp_path / "int.npy", np.zeros(3, np.int32))
    for message, arguments in {
        "there is no model /no/model.onnx": ["run", "/no/model.onnx"],
        "bad.onnx": ["run", str(tmp_path / "bad.onnx")],
        "there is no file /no/ep.so": ["devices", "--ep", "/no/ep.so"],
        "text.so": ["devices", "--ep", str(tmp_path / "text.so")],
        "no execution provider class 'Other'": ["run", mul, "--py-ep", f"{provider}:Other"],
        "ZeroDivisionError: division by zero": ["run", mul, "--py-ep", f"{tmp_path / 'broken.py'}:Mine"],
        "is no Python file": ["run", mul, "--py-ep", "/no/file.py:Mine"],
        "no execution provider 'Nowhere', only": ["run", mul, "--ep-name", "Nowhere"],
        "'the reason'": ["run", mul, "--py-ep", f"{provider}:Failing", "--ep-option", "fail=yes"],
        "supports none of this machine's devices": ["run", mul, "--py-ep", f"{provider}:Nowhere"],
        "no such input": ["run", mul, "--input", f"c={tmp_path / 'int.npy'}"],
        "bad.npy": ["run", mul, "--input", f"a={tmp_path / 'bad.npy'}"],
        "int32": ["run", mul, "--input", f"a={tmp_path / 'int.npy'}"],
    }.items():
        line = fail(capsys, *arguments)
        assert message in line
        assert "Traceback" not in line


def test_no_fallback_names_the_node(
    capsys: pytest.CaptureFixture[str], provider: str, tmp_path: Path
) -> None:
    spec = (TensorProto.FLOAT, [3])
    path = tmp_path / "add.onnx"
    path.write_bytes(model([helper.make_node("Add", ["a", "a"], ["y"], "the_add")], {"a": spec}, {"y": spec}))
    assert main(["run", str(path), "--py-ep", f"{provider}:Mine", "--no-fallback"]) == 1
    assert "the_add" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [[], ["nothing"], ["run"], ["run", "m.onnx", "--repeat", "0"], ["devices", "--nope"]],
    ids=lambda arguments: "_".join(arguments) or "none",
)
def test_wrong_usage_is_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage: ort-abi" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for option, text in (("--version", f"ort-abi {ort_abi.__version__}, API 1 to 30"), ("--help", "demo")):
        with pytest.raises(SystemExit) as caught:
            cli.main([option])
        assert caught.value.code == 0
        assert text in capsys.readouterr().out


def test_demo_runs_on_both_hosts() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ort_abi.cli", "demo"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(" from NumPy's") == 3
    assert "cpu_ep" in done.stdout
    assert "NumpyExecutionProvider" in done.stdout
    assert done.stdout.endswith("Both hosts give the same bits.\n")


def test_demo_says_what_is_not_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    found = importlib.util.find_spec
    missing = {"nxrt_ep_cpu", "onnxruntime"}

    def find(name: str, package: str | None = None) -> Any:
        return None if name in missing else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    out = run(capsys, "demo")
    assert "nxrt-ep-cpu is not installed" in out
    assert "onnxruntime is not installed" in out
    assert out.count(" from NumPy's") == 1
    missing.add("onnx")
    assert "the package onnx: pip install 'ort-abi[demo]'" in fail(capsys, "demo")


def test_demo_says_if_onnxruntime_is_too_old(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onnxruntime.__version__", "1.23.2")
    out = run(capsys, "demo")
    assert out.endswith("skipped: providers in Python need onnxruntime 1.24 or later\n")


def test_demo_fails_if_an_output_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(kernel: ep.KernelSpec) -> ep.KernelSpec:
        return dataclasses.replace(kernel, make=lambda *arrays: 2 * kernel.make(*arrays))

    provider = demo_ep.NumpyExecutionProvider
    monkeypatch.setattr(provider, "kernels", tuple(map(twice, provider.kernels)))
    assert main(["demo"]) == 1
    assert "differs from NumPy's" in capsys.readouterr().err
