"""Models on disk: links as model hubs lay them out, files that are written anew while sessions use them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_abi

X = np.array([1, 2, 3], np.float32)


def external(location: str = "w") -> bytes:
    """y = x + w; w is in a file."""
    w = onnx.TensorProto(name="w", dims=[3], data_type=TensorProto.FLOAT, data_location=1)
    entry = w.external_data.add()
    entry.key, entry.value = "location", location
    return adds(w, [3])


def adds(w: onnx.TensorProto, shape: list[int], text: str = "") -> bytes:
    """y = x + w. Raw data lies where its elements are aligned: it could be used where it is."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [w])
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    model.graph.node[0].doc_string = text
    while w.raw_data and model.SerializeToString().index(w.raw_data) % 64:
        model.graph.node[0].doc_string += "."
    return model.SerializeToString()


def lay_out(folder: Path, **entries: bytes | str) -> Path:
    """Makes files (bytes) and links (text, the target); `__` in a name is a folder. Gives the folder."""
    for name, content in entries.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.symlink_to(content)
    return folder


def run(host: ModuleType, path: Path | str) -> None:
    session = host.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * 2)


W = X.tobytes()
ALLOWED: dict[str, dict[str, Any]] = {
    "as hubs do": {"b__1": external(), "b__2": W, "s__m": "../b/1", "s__w": "../b/2"},
    "data beside the link": {"b__1": external(), "s__w": W, "s__m": "../b/1"},
    "data below the real folder": {"b__1": external(), "b__x__2": W, "s__m": "../b/1", "s__w": "../b/x/2"},
    "the folder is a link": {"b__m": external(), "b__w": W, "s": "b"},
    "a folder in the folder is one": {
        "b__1": external("d/w"),
        "b__d__w": W,
        "s__m": "../b/1",
        "s__d": "../b/d",
    },
    "links to links": {"b__1": external(), "b__2": W, "c__m": "../b/1", "s__m": "../c/m", "s__w": "../b/2"},
}
REFUSED: dict[str, dict[str, Any]] = {
    "data elsewhere": {"b__1": external(), "c__2": W, "s__m": "../b/1", "s__w": "../c/2"},
    "model is no link": {"s__m": external(), "c__2": W, "s__w": "../c/2"},
    "a link in the real folder": {
        "b__1": external(), "c__2": W, "b__2": "../c/2", "s__m": "../b/1", "s__w": "../b/2",
    },
    "a folder that only starts so": {"b__1": external(), "bb__2": W, "s__m": "../b/1", "s__w": "../bb/2"},
    "a folder that leaves": {"b__1": external("d/w"), "c__w": W, "s__m": "../b/1", "s__d": "../c"},
    "beside a link in the middle": {
        "b__1": external(), "c__w": W, "c__m": "../b/1", "s__m": "../c/m", "s__w": "../c/w",
    },
}  # fmt: skip


@pytest.mark.parametrize("layout", ALLOWED)
def test_links_that_are_followed(host: ModuleType, tmp_path: Path, layout: str) -> None:
    run(host, lay_out(tmp_path, **ALLOWED[layout]) / "s" / "m")


@pytest.mark.parametrize("layout", REFUSED)
def test_links_that_are_not(host: ModuleType, tmp_path: Path, layout: str) -> None:
    with pytest.raises(Exception, match=r"leaves the model's folder|escapes"):
        run(host, lay_out(tmp_path, **REFUSED[layout]) / "s" / "m")


def test_paths_that_go_up_or_are_absolute_are_refused(tmp_path: Path) -> None:
    folder = lay_out(tmp_path, b__w=W, s__m="../b/1")
    for location in ("../b/w", "d/../w", str(folder / "b" / "w")):
        (folder / "b" / "1").write_bytes(external(location))
        with pytest.raises(ort_abi.errors.InvalidGraph, match="not a path below the model's folder"):
            run(ort_abi, folder / "s" / "m")


def test_a_relative_path_of_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lay_out(tmp_path, **ALLOWED["as hubs do"]) / "s")
    run(ort_abi, "m")
    run(ort_abi, "../s/m")


# ---- Files that are written anew ----

BIG = 300_000

CHILD = """
import sys, numpy as np, ort_abi
path, out, new, size = sys.argv[1:]
session = ort_abi.InferenceSession(path, providers=["CPUExecutionProvider"])
with open(new, "rb") as source, open(path, "r+b" if sys.stdin.read() == "in place" else "wb") as target:
    target.write(source.read())
    target.truncate()
np.save(out, session.run(None, {"x": np.zeros(int(size), np.float32)})[0])
"""


@pytest.mark.parametrize("way", ["in place", "from the start"])
@pytest.mark.parametrize("new", ["other weights", "much smaller", "nothing"])
@pytest.mark.parametrize("kind", ["raw", "typed"])
def test_a_file_that_is_written_anew(tmp_path: Path, kind: str, new: str, way: str) -> None:
    """The session goes on with the weights that it has read; in a process of its own, which might die."""
    old = np.arange(BIG, dtype=np.float32)
    weights = numpy_helper.from_array(old, "w")
    if kind == "typed":
        weights = helper.make_tensor("w", TensorProto.FLOAT, [BIG], old)
    path, other, out = tmp_path / "m.onnx", tmp_path / "new", tmp_path / "out.npy"
    path.write_bytes(adds(weights, [BIG]))
    contents = {
        "other weights": adds(numpy_helper.from_array(old * 7, "w"), [BIG]),
        "much smaller": adds(numpy_helper.from_array(X, "w"), [3]),
        "nothing": b"",
    }
    other.write_bytes(contents[new])
    code = [sys.executable, "-c", CHILD, str(path), str(out), str(other), str(BIG)]
    subprocess.run(code, input=way, text=True, check=True)
    np.testing.assert_array_equal(np.load(out), old)


MEMORY_CHILD = """
import os, sys, ort_abi
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
ort_abi.InferenceSession(sys.argv[1]).close()
before = resident()
session = ort_abi.InferenceSession(sys.argv[2])
print(resident() - before)
"""


def test_what_is_read_of_a_file_is_in_memory_once(tmp_path: Path) -> None:
    """64 MiB of weights that stay as they are, and a text of 32 MiB that nobody reads again."""
    weights = numpy_helper.from_array(np.ones(16 << 20, np.float32), "w")
    small, big = tmp_path / "small.onnx", tmp_path / "big.onnx"
    small.write_bytes(adds(numpy_helper.from_array(X, "w"), [3]))
    big.write_bytes(adds(weights, [16 << 20], "x" * (32 << 20)))
    code = [sys.executable, "-c", MEMORY_CHILD, str(small), str(big)]
    grown = int(subprocess.run(code, check=True, capture_output=True, text=True).stdout)
    assert grown < 72 << 20


def test_files_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(ort_abi.errors.OrtError, match="not a regular file"):
        ort_abi.InferenceSession(tmp_path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(ort_abi.errors.OrtError, match="not a regular file"):
        ort_abi.InferenceSession(fifo)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ort_abi.errors.OrtError, match="no ONNX model"):
        ort_abi.InferenceSession(tmp_path / "empty")
