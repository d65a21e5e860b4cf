"""Builds and runs the C program that tests profiles, and reads the files that it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...support.c_programs import build_plugin, build_program, run_program

HERE = Path(__file__).resolve().parent


def events(folder: Path, prefix: str) -> list[dict[str, Any]]:
    """The events of the only file with that prefix."""
    (path,) = folder.glob(f"{prefix}_2*.json")
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


def test_program(sanitized_dir: Path, tmp_path: Path) -> None:
    """The program's checks all hold, nothing leaks, and every file is a Chrome trace."""
    program, plugin = tmp_path / "test_profiling", tmp_path / "profile_plugin.so"
    build_program(HERE / "test_profiling.c", sanitized_dir, program)
    build_plugin(HERE / "profile_plugin.c", plugin)
    run_program(program, tmp_path, plugin)

    for path in tmp_path.glob("*.json"):
        for event in json.loads(path.read_text()):
            assert event["ph"] == "X" and event["dur"] >= 0 and event["ts"] >= 0, (path, event)
    own, both = events(tmp_path, "run"), events(tmp_path, "both_run")
    node = next(event["name"] for event in own if event["cat"] == "Node")
    run = [node, "SequentialExecutor::Execute", "model_run"]  # and nothing of the session's beginning
    names = [event["name"] for event in own]
    assert [name for name in names if name != "ep_event"] == run and names.count("ep_event") == 3
    # Where the session is profiled, EPs' events are in its file.
    assert [event["name"] for event in both] == run
    texts = {event["args"].get("text") for event in events(tmp_path, "session")}
    assert texts == {None, 'a "quoted"\n\\text'}
    released = [event["name"] for event in events(tmp_path, "released")]
    assert released.count("ep_event") == 4
