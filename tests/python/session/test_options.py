"""`SessionOptions` and `RunOptions`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ep_support import mul_model, registered

import ort_abi
from ort_abi import ExecutionMode, GraphOptimizationLevel, OrtValue, RunOptions, SessionOptions, ep

SETTINGS: dict[str, tuple[Any, Any]] = {
    "graph_optimization_level": (
        GraphOptimizationLevel.ORT_ENABLE_ALL,
        GraphOptimizationLevel.ORT_DISABLE_ALL,
    ),
    "execution_mode": (ExecutionMode.ORT_SEQUENTIAL, ExecutionMode.ORT_PARALLEL),
    "intra_op_num_threads": (0, 3),
    "inter_op_num_threads": (0, 2),
    "log_severity_level": (-1, 3),
    "log_verbosity_level": (0, 2),
    "logid": ("", "a session"),
    "enable_mem_pattern": (True, False),
    "enable_cpu_mem_arena": (True, False),
    "use_deterministic_compute": (False, True),
    "enable_profiling": (False, True),
    "profile_file_prefix": ("onnxruntime_profile_", "mine"),
}


class OptionsEp(ep.ExecutionProvider):
    """Remembers what each session gave it."""

    name = "OptionsExecutionProvider"
    seen: list[dict[str, str]] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.seen.append(self.options)

    @staticmethod
    @ep.kernel("Mul", (7, None))
    def mul(a: Any, b: Any) -> Any:
        """Multiplies."""
        return a * b


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_have_onnxruntimes_defaults_and_can_be_changed(name: str) -> None:
    default, other = SETTINGS[name]
    options = SessionOptions()
    assert getattr(options, name) == default
    setattr(options, name, other)
    assert getattr(options, name) == other
    assert getattr(SessionOptions(), name) == default


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(AttributeError):
        SessionOptions().graph_optimisation_level = 1  # type: ignore[attr-defined]
    with pytest.raises(ValueError):
        SessionOptions().graph_optimization_level = 77


def test_config_entries() -> None:
    options = SessionOptions()
    options.add_session_config_entry("a.key", "one")
    options.add_session_config_entry("a.key", "two" * 1000)
    assert options.get_session_config_entry("a.key") == "two" * 1000
    with pytest.raises(RuntimeError, match=r"configuration with key: other\.key"):
        options.get_session_config_entry("other.key")
    with pytest.raises(ValueError, match="NUL"):
        options.add_session_config_entry("a\0b", "")


def test_an_unknown_provider_is_named_beside_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"'Nowhere' is not registered; there are .*CPUExecutionProvider"):
        SessionOptions().add_provider("Nowhere", {})


def test_devices_must_be_of_one_provider_that_was_not_added_before() -> None:
    options = SessionOptions()
    with pytest.raises(ort_abi.errors.InvalidArgument, match="at least one"):
        options.add_provider_for_devices([], {})
    with registered(ort_abi, OptionsEp):
        devices = ort_abi.get_ep_devices()
        assert len(devices) > 1
        with pytest.raises(ort_abi.errors.InvalidArgument, match="several providers"):
            options.add_provider_for_devices(devices, {})
        assert not options.has_providers()
        options.add_provider("OptionsExecutionProvider", {})
        assert options.has_providers()
        with pytest.raises(ort_abi.errors.InvalidArgument, match="added before"):
            options.add_provider("OptionsExecutionProvider", {})


def test_one_set_of_options_serves_many_sessions() -> None:
    with registered(ort_abi, OptionsEp):
        OptionsEp.seen.clear()
        options = SessionOptions()
        options.add_provider("OptionsExecutionProvider", {"number": 1, "text": "a b"})
        for _ in range(2):
            with ort_abi.InferenceSession(mul_model(), options) as session:
                assert session.get_provider_options()["OptionsExecutionProvider"] == {
                    "number": "1",
                    "text": "a b",
                }
        assert OptionsEp.seen == [{"number": "1", "text": "a b"}] * 2


def test_initializers_from_the_user_replace_the_models() -> None:
    import onnx
    from ep_support import model
    from onnx import TensorProto, helper

    spec = (TensorProto.FLOAT, [2])
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    data = model(nodes, {"x": spec}, {"y": spec}, {"w": np.zeros(2, np.float32)})
    assert onnx.load_from_string(data).graph.initializer
    options = SessionOptions()
    options.add_initializer("w", OrtValue.ortvalue_from_numpy(np.array([5, 6], np.float32)))
    session = ort_abi.InferenceSession(data, options)
    assert session.run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [6.0, 7.0]


def test_free_dimensions_get_a_size() -> None:
    from ep_support import model
    from onnx import TensorProto, helper

    spec = (TensorProto.FLOAT, ["N", 2])
    data = model([helper.make_node("Relu", ["x"], ["y"])], {"x": spec}, {"y": spec})
    options = SessionOptions()
    options.add_free_dimension_override_by_name("N", 3)
    session = ort_abi.InferenceSession(data, options)
    assert session.get_inputs()[0].shape == [3, 2]
    with pytest.raises(ort_abi.errors.InvalidArgument):
        session.run(None, {"x": np.zeros((4, 2), np.float32)})


def test_run_options() -> None:
    options = RunOptions()
    options.logid = "a run"
    options.log_severity_level = 3
    options.log_verbosity_level = 1
    options.add_run_config_entry("key", "value")
    assert (options.logid, options.log_severity_level, options.log_verbosity_level) == ("a run", 3, 1)
    assert options.get_run_config_entry("key") == "value"
    with pytest.raises(RuntimeError, match="configuration with key: none"):
        options.get_run_config_entry("none")


def test_terminate_stops_runs_until_it_is_taken_back() -> None:
    session = ort_abi.InferenceSession(mul_model())
    feed = {name: np.ones(3, np.float32) for name in "ab"}
    options = RunOptions()
    options.terminate = True
    assert options.terminate
    with pytest.raises(ort_abi.errors.Fail, match="terminate"):
        session.run(None, feed, options)
    options.terminate = False
    assert session.run(None, feed, options)[0].tolist() == [1.0] * 3
