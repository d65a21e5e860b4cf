"""What programs written for stock onnxruntime do: providers that are not there, lists as inputs."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytest
from ep_support import model
from onnx import TensorProto, helper

import ort_abi
from ort_abi import SessionOptions
from ort_abi.session import _STOCK_PROVIDERS

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def neg(kind: int = TensorProto.FLOAT, op: str = "Neg") -> bytes:
    spec = (kind, ["a", "b"])
    return model([helper.make_node(op, ["x"], ["y"])], {"x": spec}, {"y": spec})


def made(host: ModuleType, *arguments: Any, **more: Any) -> tuple[Any, list[str]]:
    """A session, and what the warnings say that it was made with. All are at the line of the caller."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = host.InferenceSession(neg(), *arguments, **more)
    if host is ort_abi:
        assert all(warning.filename == __file__ for warning in caught)
    assert all(warning.category is UserWarning for warning in caught)
    return session, [str(warning.message) for warning in caught]


# ---- Providers ----


@pytest.mark.parametrize(
    "providers",
    [
        [CUDA, CPU],
        [CUDA],
        (CUDA, CPU),
        [(CUDA, {"device_id": 0}), CPU],
        ["TensorrtExecutionProvider", CUDA, CPU],
    ],
)
def test_providers_that_are_not_there_are_passed_over(host: ModuleType, providers: Any) -> None:
    session, messages = made(host, providers=providers)
    missing = [p if isinstance(p, str) else p[0] for p in providers]
    missing = [name for name in missing if name != CPU]
    assert len(messages) == len(missing)
    for name, message in zip(missing, messages, strict=True):
        assert f"Specified provider '{name}' is not in available provider names" in message
        assert CPU in message
    assert session.get_providers() == [CPU]
    assert session.run(None, {"x": np.ones((1, 2), np.float32)})[0].tolist() == [[-1.0, -1.0]]


def test_options_beside_providers_that_are_not_there(host: ModuleType) -> None:
    session, messages = made(host, providers=[CUDA, CPU], provider_options=[{"device_id": 1}, {}])
    assert session.get_providers() == [CPU] and len(messages) == 1
    assert CUDA not in session.get_provider_options()


def test_a_provider_twice(host: ModuleType) -> None:
    session, [message] = made(host, providers=[CPU, CPU])
    assert message == f"Duplicate provider '{CPU}' encountered, ignoring."
    assert session.get_providers() == [CPU]


def test_a_name_that_nobody_knows_is_an_error() -> None:
    """Stock says so on the standard output and takes the CPU."""
    with pytest.raises(ValueError, match="'CudaExecutionProvider' is not registered"):
        made(ort_abi, providers=["CudaExecutionProvider", CPU])


def test_names_of_stock() -> None:
    assert set(onnxruntime.get_all_providers()) - {CPU} <= _STOCK_PROVIDERS
    assert set(ort_abi.get_available_providers()) & _STOCK_PROVIDERS == set()


@pytest.mark.parametrize("item", [(CPU,), (CPU, {}, 1), 1, (1, {}), (CPU, 1)])
def test_what_is_no_provider(item: Any) -> None:
    with pytest.raises(ValueError, match="a provider is a name or a"):
        made(ort_abi, providers=[item])


@pytest.mark.parametrize("as_file", [True, False])
def test_set_providers(host: ModuleType, as_file: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(neg())
    session = host.InferenceSession(str(path) if as_file else neg(), providers=[CPU])
    before = session.run(None, {"x": np.ones((1, 2), np.float32)})[0]
    with pytest.warns(UserWarning, match="Specified provider"):
        session.set_providers([CUDA, CPU])
    assert session.get_providers() == [CPU]
    session.set_providers([CPU], [{}])
    session.set_providers()
    assert session.get_providers() == [CPU]
    assert session.run(None, {"x": np.ones((1, 2), np.float32)})[0].tolist() == before.tolist() == [[-1, -1]]


def test_a_session_stays_what_it_was_if_new_providers_fail(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(neg())
    session = ort_abi.InferenceSession(path, providers=[CPU])
    os.remove(path)
    with pytest.raises(ort_abi.errors.NoSuchFile):
        session.set_providers([CPU])
    with pytest.raises(ValueError, match="is not registered"):
        session.set_providers(["Nowhere"])
    assert session.get_providers() == [CPU]
    assert session.run(None, {"x": np.ones((1, 2), np.float32)})[0].tolist() == [[-1.0, -1.0]]


def test_bindings_stay_with_the_session_that_made_them() -> None:
    session = ort_abi.InferenceSession(neg())
    binding = session.io_binding()
    session.set_providers([CPU])
    with pytest.raises(ValueError, match="the session that made it"):
        session.run_with_iobinding(binding)
    session.close()
    with pytest.raises(RuntimeError, match="closed"):
        session.set_providers([CPU])


# ---- Lists ----


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (TensorProto.FLOAT, [[1, 2], [3, 4.5]], np.float32),
        (TensorProto.FLOAT, [(1.0, 2)], np.float32),
        (TensorProto.FLOAT, [np.ones(2)] * 2, np.float32),
        (TensorProto.FLOAT, [[True]], np.float32),
        (TensorProto.FLOAT, [[]], np.float32),
        (TensorProto.DOUBLE, [[1, 2]], np.float64),
        (TensorProto.INT64, [[1, 2]], np.int64),
        (TensorProto.UINT8, [[0, 255]], np.uint8),
        (TensorProto.BOOL, [[True, False]], np.bool_),
        (TensorProto.STRING, [["a", "bb"]], object),
    ],
)
def test_lists(host: ModuleType, kind: int, data: list[Any], expected: Any) -> None:
    """An array of the type that the model has, whatever the list holds."""
    session = host.InferenceSession(neg(kind, "Identity"), providers=[CPU])
    [result] = session.run(None, {"x": data})
    assert result.dtype == expected
    assert result.tolist() == np.array(data, expected).tolist()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (TensorProto.FLOAT, [[1, 2], [3]]),
        (TensorProto.FLOAT, [["a"]]),
        (TensorProto.FLOAT, [[1j]]),
        (TensorProto.FLOAT, [1.0, 2.0]),
        (TensorProto.FLOAT, ((1.0, 2.0),)),
        (TensorProto.INT64, [[2**70]]),
        (TensorProto.UINT8, [[-1]]),
        (TensorProto.UINT8, [[256]]),
    ],
)
def test_lists_that_make_no_such_tensor(host: ModuleType, kind: int, data: Any) -> None:
    session = host.InferenceSession(neg(kind, "Identity"), providers=[CPU])
    with pytest.raises(Exception, match=r"list|rank|array"):
        session.run(None, {"x": data})


def test_a_list_of_texts_of_several_lengths() -> None:
    session = ort_abi.InferenceSession(neg(TensorProto.STRING, "Identity"))
    with pytest.raises(ValueError, match="different lengths"):
        session.run(None, {"x": [["a"], ["b", "c"]]})


def test_a_list_for_no_input() -> None:
    session = ort_abi.InferenceSession(neg())
    with pytest.raises(TypeError, match="input 'q' is no input"):
        session.run(None, {"x": [[1.0]], "q": [1.0]})


# ---- The optimized model ----


def test_the_optimized_model_is_refused(tmp_path: Path) -> None:
    options = SessionOptions()
    assert options.optimized_model_filepath == ""
    options.optimized_model_filepath = ""
    with pytest.raises(ort_abi.errors.NotImplemented, match="SetOptimizedModelFilePath"):
        options.optimized_model_filepath = tmp_path / "o.onnx"
    assert options.optimized_model_filepath == ""


# ---- Models that cannot be read ----


def test_a_model_in_ort_format(tmp_path: Path) -> None:
    path = tmp_path / "m.ort"
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(neg(), options, providers=[CPU])
    for source in (path, path.read_bytes()):
        with pytest.raises(ort_abi.errors.Fail, match="in ORT format") as caught:
            ort_abi.InferenceSession(source)
        assert caught.value.__context__ is None


def test_files_that_cannot_be_read(host: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with pytest.raises(Exception, match=f"Load model from {path} failed.*File doesn't exist"):
        host.InferenceSession(str(path), providers=[CPU])
    path.write_bytes(b"garbage")
    with pytest.raises(Exception, match=f"Load model from {path} failed:Protobuf parsing failed"):
        host.InferenceSession(str(path), providers=[CPU])
