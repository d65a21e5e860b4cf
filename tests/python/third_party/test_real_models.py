"""Real models on our host, what no provider takes on the reference fallback, against stock onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

import ort_abi
from tests.support.models import wheel_models

Feed = dict[str, NDArray[Any]]

RANDOM = np.random.default_rng(0)


def image(height: int, width: int) -> Feed:
    """A picture, as the text models take it."""
    return {"x": RANDOM.uniform(-1, 1, (1, 3, height, width)).astype(np.float32)}


def program() -> Feed:
    """The beginning of a file, as magika takes it: 256 is padding."""
    text = Path(__file__).read_bytes()[:1024]
    data = np.full((1, 2048), 256, np.int32)
    data[0, : len(text)] = np.frombuffer(text, np.uint8)
    return {"bytes": data}


def speech(samples: int, **states: tuple[int, ...]) -> Feed:
    """Sound, the states of a recurrent model, and the sampling rate."""
    feed: Feed = {name: np.zeros(shape, np.float32) for name, shape in states.items()}
    feed["input"] = np.sin(np.arange(samples, dtype=np.float32) / 5)[None] / 2
    return feed


# File name: what goes in, and the largest difference from stock onnxruntime.
MODELS: dict[str, tuple[Callable[[], Feed], float]] = {
    "model.onnx": (program, 5e-5),
    "ch_PP-OCRv4_det_infer.onnx": (lambda: image(64, 96), 1e-4),
    "ch_PP-OCRv4_rec_infer.onnx": (lambda: image(48, 64), 5e-4),
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": (lambda: image(48, 192), 1e-5),
    "silero_vad_16k_op15.onnx": (
        lambda: {**speech(512, state=(2, 1, 128)), "sr": np.array(16000, np.int64)},
        1e-4,
    ),
    "silero_vad_16k_sequence.onnx": (lambda: speech(576, h=(1, 1, 128), c=(1, 1, 128)), 1e-4),
    "silero_vad.onnx": (
        lambda: {**speech(576, state=(2, 1, 128)), "sr": np.array(16000, np.int64)},
        1e-4,
    ),
    "silero_vad_op18_ifless.onnx": (
        lambda: {**speech(576, state=(2, 1, 128)), "sr": np.array(16000, np.int64)},
        1e-4,
    ),
    "silero_vad_openvino_16k.onnx": (lambda: speech(576, state=(2, 1, 128)), 1e-4),
    "silero_vad_half.onnx": (lambda: speech(576, state=(2, 1, 128)), 1e-4),
}


@pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # of the reference evaluator
@pytest.mark.parametrize("name", MODELS)
def test_outputs_equal_stock_onnxruntimes(name: str) -> None:
    path = next((path for path in wheel_models() if path.name == name), None)
    if path is None:
        pytest.skip(f"there is no {name} in the folder of models")
    make, tolerance = MODELS[name]
    feed = make()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    expected = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feed)

    recording = ort_abi.SessionOptions()
    recording.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = ort_abi.InferenceSession(path, recording)
    outputs = session.run(None, feed)
    taken = session.get_provider_graph_assignment_info()
    assert {part.ep_name for part in taken} == {"CPUExecutionProvider", "ReferenceExecutionProvider"}
    for part in taken:  # what runs subgraphs is the built-in provider's
        assert part.ep_name == "CPUExecutionProvider" or "If" not in {n.op_type for n in part.get_nodes()}
    assert len(outputs) == len(expected)
    for output, wanted in zip(outputs, expected, strict=True):
        assert (output.dtype, output.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(output, wanted, rtol=1e-3, atol=tolerance)
    again = session.run(None, feed)
    for output, wanted in zip(again, outputs, strict=True):
        np.testing.assert_array_equal(output, wanted)


def test_the_state_of_a_recurrent_model_goes_from_run_to_run() -> None:
    path = next((path for path in wheel_models() if path.name == "silero_vad.onnx"), None)
    if path is None:
        pytest.skip("there is no silero_vad.onnx in the folder of models")
    sessions = [
        ort_abi.InferenceSession(path),
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]),
    ]
    states = [np.zeros((2, 1, 128), np.float32)] * 2
    for chunk in RANDOM.uniform(-1, 1, (5, 1, 576)).astype(np.float32):
        rest = {"input": chunk, "sr": np.array(16000, np.int64)}
        (ours, mine), (theirs, stocks) = (
            session.run(["output", "stateN"], {"state": state, **rest})
            for session, state in zip(sessions, states, strict=True)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(mine, stocks, rtol=1e-3, atol=1e-4)
        assert np.abs(mine - states[0]).max() > 1e-3
        states = [mine, stocks]


def test_inputs_and_outputs_are_described_as_in_stock_onnxruntime() -> None:
    for path in wheel_models():
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        stock = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        try:
            ours = ort_abi.InferenceSession(path)
        except ort_abi.errors.NotImplemented as error:
            assert "ZipMap" in str(error)  # gives a sequence of maps, which the ABI of providers cannot carry
            continue
        for mine, wanted in (
            (ours.get_inputs(), stock.get_inputs()),
            (ours.get_outputs(), stock.get_outputs()),
        ):
            assert [arg.name for arg in mine] == [arg.name for arg in wanted]
            assert [arg.type for arg in mine] == [arg.type for arg in wanted]
        assert [arg.shape for arg in ours.get_inputs()] == [arg.shape for arg in stock.get_inputs()]
        for name in ("producer_name", "graph_name", "domain", "custom_metadata_map"):
            assert getattr(ours.get_modelmeta(), name) == getattr(stock.get_modelmeta(), name)
