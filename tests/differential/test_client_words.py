"""Words that clients and their tests look for in messages: where stock says them, ours are there too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.c_client import (
    FAIL,
    INVALID_ARGUMENT,
    INVALID_PROTOBUF,
    NO_SUCHFILE,
    Client,
    failure,
    floats,
    model,
    neg,
)

GOOD = np.zeros((2, 3), np.float32)
LONG = np.zeros((2, 3, 1), np.float32)
WIDE = np.zeros((2, 4), np.float32)
LARGE = np.zeros((4, 4), np.float32)
INTS = np.zeros((2, 3), np.int64)
TEXTS = np.array([["a"] * 3] * 2)

Feed = tuple[str, np.ndarray]

# What is wrong with an input, and what stock says of it.
WRONG_INPUTS: dict[str, tuple[Feed, list[str]]] = {
    "rank": (("x", LONG), ["Invalid rank for input: x Got: 3 Expected: 2"]),
    "dimension": (
        ("x", WIDE),
        ["Got invalid dimensions for input: x for the following indices", " index: 1 Got: 4 Expected: 3"],
    ),
    "dimensions": (
        ("x", LARGE),
        [
            "Got invalid dimensions for input: x for the following indices",
            " index: 0 Got: 4 Expected: 2",
            " index: 1 Got: 4 Expected: 3",
        ],
    ),
    "type": (
        ("x", INTS),
        ["Unexpected input data type. Actual: (tensor(int64)) , expected: (tensor(float))"],
    ),
    "strings": (
        ("x", TEXTS),
        ["Unexpected input data type. Actual: (tensor(string)) , expected: (tensor(float))"],
    ),
}
WRONG_OUTPUTS: dict[str, tuple[np.ndarray, list[str]]] = {
    "rank": (LONG, ["Invalid rank for output: y Got: 3 Expected: 2"]),
    "dimension": (
        WIDE,
        ["Got invalid dimensions for output: y for the following indices", " index: 1 Got: 4 Expected: 3"],
    ),
    "type": (
        INTS,
        ["Unexpected output data type. Actual: (tensor(int64)) , expected: (tensor(float))"],
    ),
}


def check(found: tuple[int, str], code: int, words: Sequence[str]) -> None:
    assert found[0] == code, found
    for word in words:
        assert word in found[1], found


def bound(client: Client, session: Any, feed: Feed) -> None:
    """`RunWithBinding`."""
    binding = client.owned("OrtIoBinding*", "CreateIoBinding", "ReleaseIoBinding", session)
    client.check(client.api.BindInput(binding, feed[0].encode(), client.value(feed[1])))
    client.check(client.api.BindOutputToDevice(binding, b"y", client.cpu))
    client.check(client.api.RunWithBinding(session, client.ffi.NULL, binding))


def run_async(client: Client, session: Any, feed: Feed) -> None:
    """`RunAsync`, to its end."""
    statuses: list[Any] = []
    done = threading.Event()

    @client.ffi.callback("void(void*, OrtValue**, size_t, OrtStatus*)")  # type: ignore[untyped-decorator]
    def finished(_data: Any, _outputs: Any, _count: int, status: Any) -> None:
        statuses.append(status)
        done.set()

    outputs = client.ffi.new("OrtValue*[]", 1)
    where = (session, client.ffi.NULL, client.texts([feed[0]]), client.values([feed[1]]), 1)
    client.check(client.api.RunAsync(*where, client.texts(["y"]), 1, outputs, finished, client.ffi.NULL))
    done.wait()
    client.check(statuses[0])
    client.api.ReleaseValue(outputs[0])


def plain(client: Client, session: Any, feed: Feed) -> None:
    client.run(session, dict([feed]), ["y"])


WAYS = [plain, bound, run_async]


@pytest.mark.parametrize("way", WAYS)
def test_a_good_input_runs(client: Client, way: Callable[..., None]) -> None:
    way(client, client.session(neg()), ("x", GOOD))


@pytest.mark.parametrize("wrong", WRONG_INPUTS)
@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_input(client: Client, way: Callable[..., None], wrong: str) -> None:
    feed, words = WRONG_INPUTS[wrong]
    check(failure(way, client, client.session(neg()), feed), INVALID_ARGUMENT, words)


@pytest.mark.parametrize("wrong", WRONG_OUTPUTS)
def test_a_wrong_output(client: Client, wrong: str) -> None:
    array, words = WRONG_OUTPUTS[wrong]
    session = client.session(neg())
    found = failure(lambda: client.run(session, {"x": GOOD}, ["y"], given=[array]))
    check(found, INVALID_ARGUMENT, words)


def test_a_missing_input(client: Client) -> None:
    """Stock finds out when a kernel asks for it, and its code is another one."""
    session = client.session(neg())
    _, message = failure(lambda: client.run(session, {}, ["y"]))
    assert "Missing Input: x" in message


def test_all_missing_inputs_are_named(ours: Client) -> None:
    three = [floats(name, [2]) for name in "abc"]
    nodes = [helper.make_node("Add", ["a", "b"], ["t"]), helper.make_node("Add", ["t", "c"], ["y"])]
    proto = model(nodes, three, [floats("y", [2])])
    session = ours.session(proto)
    code, message = failure(lambda: ours.run(session, {"b": np.zeros(2, np.float32)}, ["y"]))
    assert code == INVALID_ARGUMENT and "Missing Input: a, c" in message


@pytest.mark.parametrize(
    ("feeds", "names", "word"),
    [
        ({"x": GOOD, "q": GOOD}, ["y"], "Invalid input name: q"),
        ({"x": GOOD}, ["q"], "Invalid output name: q"),
        ({"x": GOOD}, [], "At least one output should be requested."),
    ],
)
def test_wrong_names(client: Client, feeds: dict[str, np.ndarray], names: list[str], word: str) -> None:
    session = client.session(neg())
    check(failure(lambda: client.run(session, feeds, names)), INVALID_ARGUMENT, [word])


def test_binding_without_outputs(client: Client) -> None:
    session = client.session(neg())
    binding = client.owned("OrtIoBinding*", "CreateIoBinding", "ReleaseIoBinding", session)
    found = failure(lambda: client.check(client.api.RunWithBinding(session, client.ffi.NULL, binding)))
    check(found, INVALID_ARGUMENT, ["At least one output should be requested."])


def test_a_terminated_run(client: Client) -> None:
    options = client.owned("OrtRunOptions*", "CreateRunOptions", "ReleaseRunOptions")
    client.check(client.api.RunOptionsSetTerminate(options))
    session = client.session(neg())
    found = failure(lambda: client.run(session, {"x": GOOD}, ["y"], options))
    check(found, FAIL, ["Exiting due to terminate flag being set to true."])
    client.check(client.api.RunOptionsUnsetTerminate(options))
    assert client.floats(client.run(session, {"x": GOOD}, ["y"], options)[0]) == [0.0] * 6


def truncated() -> bytes:
    data: bytes = neg().SerializeToString()
    return data[:-3]


@pytest.mark.parametrize("data", [b"garbage", truncated()], ids=["garbage", "truncated"])
def test_bytes_that_are_no_model(client: Client, data: bytes, tmp_path: Path) -> None:
    found = failure(client.session, data)
    check(found, INVALID_PROTOBUF, ["Failed to load model because protobuf parsing failed"])
    path = tmp_path / "broken.onnx"
    path.write_bytes(data)
    found = failure(client.session, path)
    check(found, INVALID_PROTOBUF, [f"Load model from {path} failed:Protobuf parsing failed"])


def test_a_file_that_is_not_there(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "none.onnx"
    words = [f"Load model from {path} failed", "File doesn't exist"]
    check(failure(client.session, path), NO_SUCHFILE, words)


def test_a_graph_that_cannot_be(client: Client, tmp_path: Path) -> None:
    """A model whose protobuf is fine."""
    path = tmp_path / "odd.onnx"
    onnx.save(model([helper.make_node("Neg", ["q"], ["y"])], [floats("x", [2])], [floats("y", [2])]), path)
    _, message = failure(client.session, path)
    assert f"Load model from {path} failed" in message


def test_messages_say_each_thing_once(ours: Client, tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"garbage")
    for source in (b"garbage", path):
        _, message = failure(ours.session, source)
        assert message.count("parsing failed") == 1 and message.count(str(path)) == (source is path), message
