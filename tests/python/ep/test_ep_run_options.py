"""What providers are told about a run."""

from __future__ import annotations

import gc
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from ep_support import FuseAll, mul_model, open_session, registered

from ort_abi import ep

A = np.array([1, 2, 3], np.float32)


class Reads(FuseAll):
    name = "ReadsExecutionProvider"
    seen: ClassVar[list[Any]] = []
    kept: ClassVar[list[ep.RunOptions]] = []

    def compile(self, graph: Any) -> Any:
        return lambda a, b: a * b

    def note(self, options: ep.RunOptions) -> None:
        entries = options.config("my.key"), options.config("none"), options.config("none", "else")
        levels = options.log_severity_level, options.log_verbosity_level
        self.seen.append((entries, options.tag, levels))
        self.kept.append(options)

    def on_run_start(self, run_options: ep.RunOptions) -> None:
        self.note(run_options)

    def on_run_end(self, run_options: ep.RunOptions, sync_stream: bool) -> None:
        self.note(run_options)


def run_with(host: ModuleType, options: Any) -> list[Any]:
    """What the provider saw in one run."""
    Reads.seen.clear()
    Reads.kept.clear()
    with registered(host, Reads):
        session = open_session(host, Reads, mul_model())
        session.run(None, {"a": A, "b": A}, options)
        del session
        gc.collect()
    return list(Reads.seen)


def test_options_that_the_user_set(host: ModuleType) -> None:
    options = host.RunOptions()
    options.add_run_config_entry("my.key", "my välue")
    options.logid = "a tag"
    options.log_severity_level = 3
    options.log_verbosity_level = 4
    assert run_with(host, options) == [(("my välue", None, "else"), "a tag", (3, 4))] * 2


def test_a_run_without_options(host: ModuleType) -> None:
    first, second = run_with(host, None)
    assert first == second
    entries, tag, _ = first
    assert (entries, tag) == ((None, None, "else"), "")


def test_options_are_dead_after_the_call(host: ModuleType) -> None:
    run_with(host, None)
    assert len(Reads.kept) == 2
    for options in Reads.kept:
        with pytest.raises(RuntimeError, match="valid only during on_run_start and on_run_end"):
            options.config("my.key")
        with pytest.raises(RuntimeError, match="valid only during on_run_start and on_run_end"):
            _ = options.tag
