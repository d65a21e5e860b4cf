"""The short way of `InferenceSession.run` and where it hands over to the general one."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ep_support import model
from onnx import TensorProto, helper

from ort_abi import InferenceSession, OrtValue, RunOptions, errors, session
from ort_abi.value import flat_types

FLOAT = TensorProto.FLOAT
X = np.array([1, 2, 3], np.float32)


class Subclass(np.ndarray):
    """An array that may behave in its own way."""


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Says "general" for each run that did not go the short way."""
    seen: list[str] = []
    run = session._run

    def spy(*arguments: Any) -> Any:
        seen.append("general")
        return run(*arguments)

    monkeypatch.setattr(session, "_run", spy)
    return seen


def identity(kind: int, shape: list[Any], count: int = 1) -> InferenceSession:
    """y0, y1, ... = x0, x1, ..."""
    nodes = [helper.make_node("Identity", [f"x{i}"], [f"y{i}"]) for i in range(count)]
    inputs, outputs = ({f"{name}{i}": (kind, shape) for i in range(count)} for name in "xy")
    return InferenceSession(model(nodes, inputs, outputs))


def resident_kb() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4


def test_arrays_go_the_short_way(general: list[str]) -> None:
    one = identity(FLOAT, ["N"])
    one.run(None, {"x0": X})  # dtypes are learnt once
    general.clear()
    assert one.run(None, {"x0": X})[0].tolist() == [1, 2, 3]
    assert one.run(["y0"], {"x0": X[:1]})[0].tolist() == [1]
    assert general == []


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6, dtype=np.float32)[::2],
        X.astype(">f4"),
        X[:0],
        X.view(Subclass),
        OrtValue.ortvalue_from_numpy(X),
    ],
    ids=["strided", "big-endian", "empty", "subclass", "OrtValue"],
)
def test_what_is_no_plain_array_goes_the_general_way(general: list[str], x: Any) -> None:
    one = identity(FLOAT, ["N"])
    expected = x.numpy() if isinstance(x, OrtValue) else x
    for _ in range(2):
        np.testing.assert_array_equal(one.run(None, {"x0": x})[0], expected)
    assert general == ["general"] * 2


def test_run_options_go_the_general_way(general: list[str]) -> None:
    assert identity(FLOAT, [3]).run(None, {"x0": X}, RunOptions())[0].tolist() == [1, 2, 3]
    assert general == ["general"]


def test_strings_and_numbers_in_one_run() -> None:
    nodes = [helper.make_node("Identity", [f"x{i}"], [f"y{i}"]) for i in range(3)]
    kinds = [FLOAT, TensorProto.STRING, TensorProto.INT64]
    inputs, outputs = ({f"{name}{i}": (kinds[i], [3]) for i in range(3)} for name in "xy")
    one = InferenceSession(model(nodes, inputs, outputs))
    feed = {"x0": X, "x1": np.array(["a", "b", "c"]), "x2": X.astype(np.int64)}
    for _ in range(2):
        outputs_ = one.run(None, feed)
        assert [array.dtype for array in outputs_] == [np.float32, object, np.int64]
        assert [array.tolist() for array in outputs_] == [[1, 2, 3], ["a", "b", "c"], [1, 2, 3]]


def test_a_string_output_of_a_short_run(general: list[str]) -> None:
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    words = {"s": np.array(["a", "é"], object)}
    data = model(nodes, {"x": (FLOAT, [3])}, {"y": (FLOAT, [3]), "s": (TensorProto.STRING, [2])}, words)
    one = InferenceSession(data)
    for _ in range(2):
        assert [array.tolist() for array in one.run(None, {"x": X})] == [[2, 4, 6], ["a", "é"]]


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.complex64, np.uint8])
def test_element_types(dtype: Any) -> None:
    one = identity(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [3])
    for _ in range(2):
        output = one.run(None, {"x0": X.astype(dtype)})[0]
        assert output.dtype == dtype
        assert output.tolist() == [1, 2, 3]


@pytest.mark.parametrize("shape", [(), (1,), (2, 1, 3), (1,) * 8, (1,) * 9 + (2,)], ids=len)
def test_any_rank(shape: tuple[int, ...]) -> None:
    one = identity(FLOAT, list(shape))
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    for _ in range(2):
        output = one.run(None, {"x0": x})[0]
        assert output.shape == shape
        np.testing.assert_array_equal(output, x)


@pytest.mark.parametrize("count", [16, 17, 40])
def test_many_inputs_and_outputs(general: list[str], count: int) -> None:
    one = identity(FLOAT, [3], count)
    feed = {f"x{i}": X + i for i in range(count)}
    one.run(None, feed)
    general.clear()
    outputs = one.run(None, feed)
    assert [array.tolist() for array in outputs] == [(X + i).tolist() for i in range(count)]
    assert general == ([] if count == 16 else ["general"])


def test_outputs_outlive_the_session_and_are_writable() -> None:
    one = identity(FLOAT, ["N"])
    one.run(None, {"x0": X})
    first = one.run(None, {"x0": np.full(1000, 5, np.float32)})[0][10:]
    one.close()
    del one
    gc.collect()
    noise = [np.zeros(1000, np.float32) for _ in range(50)]
    first += 1
    assert set(first.tolist()) == {6.0}
    assert len(noise) == 50


def test_both_ways_fail_with_the_same_words() -> None:
    one = identity(FLOAT, [3], 2)
    bad: list[dict[str, Any]] = [
        {"x0": X, "x1": X[:2]},
        {"x0": X, "x1": X.astype(np.int64)},
        {"x0": X, "x1": X, "x2": X},
        {"x0": X, "x1": np.ones((3, 1), np.float32)},
    ]
    for feed in bad:
        words = []
        for options in (None, RunOptions()):
            with pytest.raises(errors.OrtError) as info:
                one.run(None, feed, options)
            words.append((type(info.value), str(info.value)))
        assert words[0] == words[1]
    assert one.run(None, {"x0": X, "x1": X})[0].tolist() == [1, 2, 3]


class Shrinking(Mapping[str, Any]):
    """A feed that has fewer arrays than names."""

    def __getitem__(self, key: str) -> Any:
        return X

    def __iter__(self) -> Iterator[str]:
        return iter(["x0", "x1"])

    def __len__(self) -> int:
        return 2

    def values(self) -> Any:
        return [X]

    def items(self) -> Any:
        return [("x0", X)]


def test_a_feed_that_changes_meanwhile_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="the input feed has changed during the call"):
        identity(FLOAT, [3], 2).run(None, Shrinking())


def test_runs_leave_nothing_behind() -> None:
    one = identity(FLOAT, ["N"])
    big = np.ones(1 << 18, np.float32)
    one.run(None, {"x0": big})
    before = resident_kb()
    for _ in range(300):
        one.run(None, {"x0": big})
    assert resident_kb() - before < 100_000  # of 300 MB


def test_failed_runs_leave_nothing_behind() -> None:
    one = identity(FLOAT, [3], 16)
    feed = {f"x{i}": X for i in range(15)} | {"x15": X[:2]}

    def fail(times: int) -> None:
        for _ in range(times):
            with pytest.raises(errors.InvalidArgument):
                one.run(None, feed)

    fail(100)
    before = resident_kb()
    fail(8000)
    assert resident_kb() - before < 6_000  # 128,000 values have 20 MB or more


def test_a_failure_to_make_an_input_is_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    one = identity(FLOAT, [3])
    monkeypatch.setitem(flat_types, X.dtype, 99)
    with pytest.raises(errors.OrtError):
        one.run(None, {"x0": X})
