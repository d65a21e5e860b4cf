"""The command line leaves a word when a plugin crashes: provider, slot, node, and Python's traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

PROVIDER = """
import ctypes

import ort_abi


class CrashingEp(ort_abi.ep.ExecutionProvider):
    name, vendor = "CrashingEp", "Tests"

    @ort_abi.ep.kernel("Relu", since_version=14)
    class Relu(ort_abi.ep.Kernel):
        def compute(self, ctx):
            ctypes.string_at(0)
"""


def crash(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the installed command `ort-abi` in a process of its own."""
    command = [str(Path(sys.executable).with_name("ort-abi")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_a_crash_names_provider_slot_and_node(tmp_path: Path) -> None:
    (tmp_path / "ep.py").write_text(PROVIDER)
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], name="first")], "g", [x], [y])
    opsets = [helper.make_opsetid("", 14)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    done = crash(tmp_path, "run", "model.onnx", "--py-ep", "ep.py:CrashingEp")
    assert done.returncode == -signal.SIGSEGV, done.stderr
    first, *rest = done.stderr.splitlines()
    expected = "ort-abi: fatal: SIGSEGV in EP 'CrashingEp', slot OrtKernelImpl::Compute, node 'first' (Relu)"
    assert first == expected
    assert "Fatal Python error: Segmentation fault" in rest
    assert any("in compute" in line and "ep.py" in line for line in rest)


def test_a_crash_outside_of_providers_says_so(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "ep.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGABRT)\n")
    done = crash(tmp_path, "run", "model.onnx", "--py-ep", "ep.py:Any")
    assert done.returncode == -signal.SIGABRT
    first, *rest = done.stderr.splitlines()
    assert first == "ort-abi: fatal: SIGABRT, no execution provider was at work on this thread"
    assert "Fatal Python error: Aborted" in rest
