"""Constants that fused nodes drop: the host frees its own, and nobody else notices."""

from __future__ import annotations

import gc
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
from ep_support import NO_FALLBACK, FuseAll, model, open_session, registered
from onnx import helper

import ort_abi

X = np.arange(4, dtype=np.float32)
W = np.full(4, 10, np.float32)
SPEC = (np.float32, [4])
ADD = [helper.make_node("Add", ["x", "w"], ["y"])]


class Adds(FuseAll):
    """y = x + w. It keeps a copy of w, unless w is one of its inputs."""

    name = "AddsExecutionProvider"

    def compile(self, graph: Any) -> Any:
        if "w" in graph.argument_names:
            return lambda x, w: x + w
        w = graph.initializers["w"].initializer
        return lambda x: x + w


def run(session: Any, **feeds: np.ndarray) -> list[list[float]]:
    return [output.tolist() for output in session.run(None, feeds)]


def test_a_default_that_callers_override_stays(host: ModuleType) -> None:
    given = model(ADD, {"x": SPEC, "w": SPEC}, {"y": SPEC}, {"w": W})
    with registered(host, Adds):
        session = open_session(host, Adds, given)
        assert run(session, x=X) == [[10, 11, 12, 13]]
        assert run(session, x=X, w=X) == [[0, 2, 4, 6]]
        assert run(session, x=X) == [[10, 11, 12, 13]]
        del session
        gc.collect()


def test_a_constant_that_is_an_output_stays(host: ModuleType) -> None:
    given = model(ADD, {"x": SPEC}, {"y": SPEC, "w": SPEC}, {"w": W})
    with registered(host, Adds):
        session = open_session(host, Adds, given, fallback=True)
        for _ in range(2):
            assert run(session, x=X) == [[10, 11, 12, 13], [10] * 4]
        del session
        gc.collect()


def test_the_tensor_of_a_caller_stays() -> None:
    """`add_initializer` replaces the model's weight in two sessions. Stock onnxruntime shows providers the
    model's own all the same."""
    host = ort_abi
    mine = np.full(4, 5, np.float32)
    given = host.OrtValue.ortvalue_from_numpy(mine)
    with registered(host, Adds):
        sessions = []
        for _ in range(2):
            options = host.SessionOptions()
            options.add_initializer("w", given)
            for key, value in NO_FALLBACK.items():
                options.add_session_config_entry(key, value)
            devices = [device for device in host.get_ep_devices() if device.ep_name == Adds.name]
            options.add_provider_for_devices(devices, {})
            made = model(ADD, {"x": SPEC}, {"y": SPEC}, {"w": W})
            sessions.append(host.InferenceSession(made, options))
        for session in sessions:
            assert run(session, x=X) == [[5, 6, 7, 8]]
        assert given.numpy().tolist() == mine.tolist() == [5] * 4
        del session, sessions
        gc.collect()


def test_external_data_stays(host: ModuleType, tmp_path: Path) -> None:
    made = onnx.load_model_from_string(model(ADD, {"x": SPEC}, {"y": SPEC}, {"w": W}))
    path = tmp_path / "model.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    data = (tmp_path / "w.bin").read_bytes()
    with registered(host, Adds):
        sessions = [open_session(host, Adds, path) for _ in range(2)]
        for session in sessions:
            assert run(session, x=X) == [[10, 11, 12, 13]]
        del session, sessions
        gc.collect()
    assert (tmp_path / "w.bin").read_bytes() == data
