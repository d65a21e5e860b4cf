"""Profiles: what a session writes, compared with what stock onnxruntime writes of the same run."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_support import FEEDS, chain, split
from ep_support import HOSTS, OLD_STOCK, model, registered
from numpy_device import Allocator, Boom, device_class
from onnx import TensorProto, helper

import ort_abi

ROOT = Path(__file__).resolve().parents[3]
X = np.array([1, 2, 3], np.float32)


def branching_model() -> bytes:
    """Relu, an If with an Add in its branches, and a MatMul without a name."""
    outputs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, [3])]
    add = helper.make_node("Add", ["t", "x"], ["z"], name="add")
    branch = helper.make_graph([add], "branch", [], outputs)
    nodes = [
        helper.make_node("Relu", ["x"], ["t"], name="relu"),
        helper.make_node("If", ["c"], ["u"], name="if", then_branch=branch, else_branch=branch),
        helper.make_node("MatMul", ["u", "w"], ["y"]),
    ]
    inputs = {"x": (np.float32, ["n"]), "c": (np.bool_, [])}
    return model(nodes, inputs, {"y": (np.float32, None)}, {"w": np.ones((3, 2), np.float32)})


def profiled(
    host: ModuleType, folder: Path, model_bytes: bytes, feeds: dict[str, Any], devices: Any = ()
) -> Any:
    """The events of a session's profile, and when it started."""
    options = host.SessionOptions()
    options.graph_optimization_level = host.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "p")
    if devices:
        options.add_provider_for_devices(list(devices), {})
    session = host.InferenceSession(model_bytes, options)
    start = session.get_profiling_start_time_ns()
    session.run(None, feeds)
    path = session.end_profiling()
    assert os.path.dirname(path) == str(folder)
    assert session.end_profiling() == ""
    del session
    gc.collect()
    return json.loads(Path(path).read_text()), start


def test_the_same_events_as_stock(tmp_path: Path) -> None:
    found = {}
    for name, host in HOSTS.items():
        folder = tmp_path / name
        folder.mkdir()
        events, start = profiled(host, folder, branching_model(), {"x": X, "c": np.array(True)})
        assert abs(start - time.time_ns()) < 600 * 10**9
        found[name] = events
    kept = ("op_name", "node_index", "output_type_shape", "output_size", "activation_size", "provider")
    shown = {
        name: [(e["cat"], e["ph"], e["name"], *(e["args"].get(key) for key in kept)) for e in events]
        for name, events in found.items()
    }
    assert shown["ours"] == shown["stock"]
    stock = next(event for event in found["stock"] if event["name"] == "relu_kernel_time")
    ours = next(event for event in found["ours"] if event["name"] == "relu_kernel_time")
    assert set(ours) == set(stock)
    assert set(ours["args"]) < set(stock["args"])
    assert ours["args"]["input_type_shape"] == stock["args"]["input_type_shape"]


def test_nodes_lie_within_their_run(tmp_path: Path) -> None:
    events, _ = profiled(ort_abi, tmp_path, branching_model(), {"x": X, "c": np.array(True)})
    (run,) = (event for event in events if event["name"] == "model_run")
    nodes = [event for event in events if event["cat"] == "Node"]
    assert [node["name"] for node in nodes][:2] == ["relu_kernel_time", "add_kernel_time"]
    for node in nodes:
        assert run["ts"] <= node["ts"] and node["ts"] + node["dur"] <= run["ts"] + run["dur"] + 1
        assert node["pid"] == os.getpid()


@pytest.mark.parametrize(
    "name", ["ours", pytest.param("stock", marks=pytest.mark.skipif(OLD_STOCK, reason="no EP profilers"))]
)
def test_events_of_a_plugin(name: str, tmp_path: Path, compile_c: Callable[..., Path]) -> None:
    """The same plugin's events are in both hosts' files, each with the event of the host that it is for."""
    plugin = compile_c("profile_plugin.so", [ROOT / "tests" / "c" / "profiling" / "profile_plugin.c"])
    host = HOSTS[name]
    host.register_execution_provider_library("profile", str(plugin))
    try:
        devices = [d for d in host.get_ep_devices() if d.ep_name == "SampleCExecutionProvider"]
        spec = (np.float32, [3])
        bytes_ = model(
            [helper.make_node("Mul", ["a", "b"], ["y"], name="mul")], {"a": spec, "b": spec}, {"y": spec}
        )
        events, _ = profiled(host, tmp_path, bytes_, {"a": X, "b": X}, devices)
    finally:
        gc.collect()
        host.unregister_execution_provider_library("profile")
    node = next(event["name"] for event in events if event["cat"] == "Node")
    of_ep = [event for event in events if event["name"] == "ep_event"]
    assert all(event["cat"] == "Kernel" and event["args"]["list"] == [1, 2] for event in of_ep)
    parents = [event["args"]["parent_name"] for event in of_ep]
    assert parents == ["session_initialization", node, "SequentialExecutor::Execute", "model_run"]
    (of_node,) = (event for event in of_ep if event["args"]["parent_name"] == node)
    assert of_node["args"]["shapes"] == "yes"


def test_profile_of_one_run(tmp_path: Path) -> None:
    session = ort_abi.InferenceSession(branching_model())
    options = ort_abi.RunOptions()
    feeds = {"x": X, "c": np.array(True)}
    options.enable_profiling(str(tmp_path / "run"))
    session.run(None, feeds, options)
    options.disable_profiling()
    session.run(None, feeds, options)
    (path,) = tmp_path.iterdir()
    assert [event["name"] for event in json.loads(path.read_text())][-1] == "model_run"
    assert session.end_profiling() == ""


# ---- Memory ----


def memory_of(folder: Path, model_bytes: bytes, feeds: dict[str, Any], devices: Any = ()) -> list[Any]:
    """What two runs' events say of memory, node by node: (operator, {key: bytes})."""
    options = ort_abi.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "p")
    if devices:
        options.add_provider_for_devices(list(devices), {})
    session = ort_abi.InferenceSession(model_bytes, options)
    for _ in range(2):
        session.run(None, feeds)
    events = json.loads(Path(session.end_profiling()).read_text())
    session.close()
    nodes = [event["args"] for event in events if event["cat"] == "Node"]
    return [
        (node["op_name"], {key: int(value) for key, value in node.items() if key.startswith("mem_")})
        for node in nodes
    ]


# What a profile says of memory for values between nodes: as stock onnxruntime of its arena.
BETWEEN = (
    "mem_bytes_in_use",
    "mem_in_use_delta",
    "mem_arena_held",
    "mem_arena_held_delta",
    "mem_bytes_requested_in_use",
    "mem_requested_in_use_delta",
    "mem_in_use_peak",
)


def test_memory_between_nodes(tmp_path: Path) -> None:
    """1 kB, 2 kB beside it, and the caller's output; the second run has what the first one held and used."""
    nodes = [
        helper.make_node("Concat", ["x", "x"], ["a"], axis=0),
        helper.make_node("Concat", ["a", "a"], ["b"], axis=0),
        helper.make_node("ReduceSum", ["b"], ["y"]),
    ]
    bytes_ = model(nodes, {"x": (np.float32, [128])}, {"y": (np.float32, None)})
    seen = memory_of(tmp_path, bytes_, {"x": np.ones(128, np.float32)})
    keys = (*BETWEEN[:4], "mem_in_use_peak")
    assert [set(found) for _, found in seen] == [set(BETWEEN)] * 6
    assert all(found["mem_bytes_requested_in_use"] == found["mem_bytes_in_use"] for _, found in seen)
    assert all(found["mem_requested_in_use_delta"] == found["mem_in_use_delta"] for _, found in seen)
    assert [tuple(found[key] for key in keys) for _, found in seen] == [
        (1024, 1024, 1024, 1024, 1024),
        (3072, 2048, 3072, 2048, 3072),
        (2048, 0, 3072, 0, 3072),
        (1024, 1024, 3072, 0, 3072),
        (3072, 2048, 3072, 0, 3072),
        (2048, 0, 3072, 0, 3072),
    ]


def device_memory(
    folder: Path, stats: Callable[[Allocator, dict[str, Any]], Any], bytes_: bytes | None = None
) -> list[Any]:
    """The same of nodes on a device whose allocator says what `stats` makes of the bytes in use."""

    class Tells(Allocator):
        def stats(self) -> Any:
            return stats(self, dict(super().stats()))

    cls = device_class(allocator=Tells)
    with registered(ort_abi, cls):
        devices = [device for device in ort_abi.get_ep_devices() if device.ep_name == cls.name]
        seen = memory_of(folder, bytes_ or chain(), FEEDS, devices)
        gc.collect()
    return [found for op, found in seen if not op.startswith("Memcpy")]


def test_memory_of_a_device(tmp_path: Path) -> None:
    """The allocator's own numbers, under stock onnxruntime's names; what it does not have is left out."""
    peaks: list[int] = []

    def stats(allocator: Allocator, known: dict[str, Any]) -> dict[str, Any]:
        peaks.append(known["InUse"])
        requested = known["InUse"] - 8
        return known | {
            "RequestedInUse": requested,
            "TotalAllocated": 4096,
            "MaxInUse": max(peaks),
            "NumAllocs": 7,
        }

    seen = device_memory(tmp_path, stats)
    assert len(seen) == 6
    for found in seen:
        assert found["mem_bytes_in_use"] == found["mem_bytes_requested_in_use"] + 8 > 0
        assert found["mem_in_use_delta"] == found["mem_requested_in_use_delta"]
        assert (found["mem_arena_held"], found["mem_arena_held_delta"]) == (4096, 0)
        assert found["mem_in_use_peak"] >= found["mem_bytes_in_use"]
        assert len(found) == 7
    assert seen[0]["mem_in_use_delta"] > 0
    no_bytes = {"MaxInUse": "many", "TotalAllocated": -1, "RequestedInUse": 1 << 63}
    only = device_memory(tmp_path, lambda allocator, known: known | no_bytes)
    assert [set(found) for found in only] == [{"mem_bytes_in_use", "mem_in_use_delta"}] * 6


@pytest.mark.parametrize("what", ["nothing", "raises"])
def test_memory_of_a_device_that_says_nothing(tmp_path: Path, what: str) -> None:
    """What the run holds on it is known all the same."""

    def stats(allocator: Allocator, known: dict[str, Any]) -> dict[str, Any]:
        if what == "raises":
            raise Boom("no numbers")
        return {}

    seen = device_memory(tmp_path, stats)
    assert [set(found) for found in seen] == [set(BETWEEN)] * 6
    assert seen[0]["mem_in_use_delta"] == 24 and seen[3]["mem_arena_held_delta"] == 0


def test_memory_of_each_provider(tmp_path: Path) -> None:
    """A node on the device, one on the CPU (in place) and one on the device: what each of them works in."""
    seen = device_memory(tmp_path, lambda allocator, known: {}, split())
    assert [found["mem_bytes_in_use"] for found in seen] == [48, 24, 48] * 2
    assert [found["mem_arena_held"] for found in seen] == [48, 24, 48] * 2
