"""What README.md and docs/ show: the code in them runs, the files they name exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from ..conftest import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
SHOWS_BOTH_HOSTS = """
import onnxruntime
session = None
ort_abi.ep.register_with(onnxruntime, ScaleEp)
options = onnxruntime.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
options.add_provider_for_devices([d for d in onnxruntime.get_ep_devices() if d.ep_name == ScaleEp.name], {})
session = onnxruntime.InferenceSession("model.onnx", options)
print(session.run(None, {"x": np.ones((2, 3), np.float32)}))
"""


def code_blocks(document: Path) -> list[str]:
    """The Python code in a document."""
    return re.findall(
        r"^```python\n(.*?)^```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def save_model(path: Path) -> None:
    """y = LeakyRelu(x * x), x is float[2, 3]."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["a"]),
        helper.make_node("LeakyRelu", ["a"], ["y"], alpha=0.5),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    graph = helper.make_graph(nodes, "readme", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("host", ["ours", "stock"])
def test_readme_provider_runs(tmp_path: Path, host: str) -> None:
    """The provider in the README gives the right output, in our host and in stock onnxruntime."""
    if host == "stock":
        pytest.importorskip("onnxruntime")
    (code,) = code_blocks(ROOT / "README.md")
    save_model(tmp_path / "model.onnx")
    script = tmp_path / "readme.py"
    script.write_text(code + (SHOWS_BOTH_HOSTS if host == "stock" else ""))
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.count(repr(np.ones((2, 3), np.float32)).split("[[")[1].split("]")[0])
    assert printed == (4 if host == "stock" else 2)


@pytest.mark.parametrize("host", ["ort_abi", "onnxruntime"])
def test_the_first_provider_of_the_authors_page_runs(tmp_path: Path, host: str) -> None:
    """On the host that it names, and on the one that its comment names."""
    code = code_blocks(ROOT / "docs" / "plugin-author.md")[0]
    assert "import onnxruntime as host" in code
    code = re.sub(r"^host = .*$", f"import {host} as host", code, flags=re.MULTILINE)
    save_model(tmp_path / "model.onnx")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"[{np.ones((2, 3), np.float32)!r}]\n"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_in_documents_is_python(document: Path) -> None:
    """Every Python block compiles, method bodies included."""
    for code in code_blocks(document):
        indented = code.startswith(" ")
        compile(f"class Shown:\n{code}" if indented else code, str(document), "exec")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_named_in_documents_exist(document: Path) -> None:
    """Links and paths in back quotes lead somewhere."""
    text = document.read_text(encoding="utf-8")
    links = [document.parent / link for link in re.findall(r"\]\(([\w./-]+)\)", text)]
    roots = ("csrc", "samples", "tests", "benchmarks", "docs", "abigen", "ort_abi")
    quoted = re.findall(rf"[`\s]((?:{'|'.join(roots)})/[\w./-]*\w)[`\s]", text)
    generated = ("ort_abi/_native", "ort_abi/_enums")
    paths = [ROOT / path for path in quoted if not path.startswith(generated)]
    assert [str(path) for path in [*links, *paths] if not path.exists()] == []


@pytest.mark.parametrize("sample", ["c_host", "c_plugin", "c_plugin_device", "c_plugin_kernels"])
def test_build_commands_of_samples(tmp_path: Path, sample: str) -> None:
    """The compiler call in a C sample's README builds it, as it stands there."""
    text = (ROOT / "samples" / sample / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (cc (?:.*\\\n)*.*)$", text, re.MULTILINE)
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    folder = shutil.copytree(ROOT / "samples" / sample, tmp_path / sample)
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-e", "-c", command], cwd=folder, env=environment, check=True)
    outputs = [path for path in folder.iterdir() if path.read_bytes()[:4] == b"\x7fELF"]
    assert len(outputs) == 1
