"""Profiles: the events and their fields are those of stock, but for its thread pool's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.support.c_client import Client, floats, model

THREADS = "thread_scheduling_stats"  # there is no thread pool here
SIZES = ("output_size", "activation_size", "parameter_size")


def profile(client: Client, folder: Path, has_arena: bool) -> list[dict[str, Any]]:
    """The events of two runs of three nodes."""
    nodes = [
        helper.make_node("Neg", ["x"], ["s"], name="one"),
        helper.make_node("MatMul", ["s", "w"], ["t"], name="two"),
        helper.make_node("Neg", ["t"], ["y"], name="three"),
    ]
    weight = numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")
    options = client.options()
    client.check(client.api.SetSessionGraphOptimizationLevel(options, 0))
    client.check((client.api.EnableCpuMemArena if has_arena else client.api.DisableCpuMemArena)(options))
    client.check(client.api.EnableProfiling(options, str(folder / "profile").encode()))
    session = client.session(
        model(nodes, [floats("x", ["n", 3])], [floats("y", ["n", 3])], [weight]), options
    )
    for _ in range(2):
        client.run(session, {"x": np.ones((200, 3), np.float32)}, ["y"])
    path = client.get("SessionEndProfiling", "char*", session, client.allocator)
    events = json.loads(Path(client.ffi.string(path).decode()).read_text())
    client.check(client.api.AllocatorFree(client.allocator, path))
    found: list[dict[str, Any]] = events
    return found


def fields(event: dict[str, Any]) -> dict[str, Any]:
    """The event's own fields, and the names of its arguments with what does not depend on memory."""
    args = event["args"]
    kept = {key: None if key.startswith("mem_") else value for key, value in args.items() if key != THREADS}
    return {"name": event["name"], "cat": event["cat"], "ph": event["ph"], "keys": set(event), "args": kept}


@pytest.mark.parametrize("has_arena", [True, False])
def test_fields_of_profiles(ours: Client, stock: Client, tmp_path: Path, has_arena: bool) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "stock").mkdir()
    mine = [fields(event) for event in profile(ours, tmp_path / "ours", has_arena)]
    theirs = [fields(event) for event in profile(stock, tmp_path / "stock", has_arena)]
    if not has_arena:  # stock knows nothing then; here it is known all the same
        for event in mine:
            event["args"] = {key: v for key, v in event["args"].items() if not key.startswith("mem_")}
    assert mine == theirs


def test_numbers_of_memory(client: Client, tmp_path: Path) -> None:
    nodes = [event["args"] for event in profile(client, tmp_path, True) if event["cat"] == "Node"]
    assert len(nodes) == 6
    for node in nodes:
        memory = {key: int(value) for key, value in node.items() if key.startswith("mem_")}
        assert memory["mem_in_use_peak"] >= memory["mem_bytes_in_use"] >= memory["mem_bytes_requested_in_use"]
        assert memory["mem_arena_held"] >= memory["mem_bytes_in_use"] > 0
        assert all(int(node[key]) >= 0 for key in SIZES)
    assert int(nodes[0]["mem_requested_in_use_delta"]) == int(nodes[0]["output_size"]) == 2400
