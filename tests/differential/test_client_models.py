"""Models as clients give them: initializers of their own, bytes without end, other formats."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.support.c_client import (
    FAIL,
    INVALID_ARGUMENT,
    Client,
    failure,
    floats,
    model,
    neg,
)
from tests.support.native_model import OrtError

ONE = np.ones(2, np.float32)
MINE = np.array([1, 2], np.float32)
STORED = np.array([10, 20], np.float32)


# ---- Initializers of the client's ----


def external(name: str = "w", location: str = "w.bin", offset: str = "0") -> onnx.TensorProto:
    """Two floats in a file."""
    tensor = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=[2])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", "8")):
        tensor.external_data.add(key=key, value=value)
    return tensor


def add(*initializers: onnx.TensorProto) -> onnx.ModelProto:
    """y = x + w."""
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    return model(nodes, [floats("x", [2])], [floats("y", [2])], initializers)


def give(client: Client, options: Any, names: Sequence[str], arrays: Sequence[np.ndarray]) -> None:
    """`AddExternalInitializers`."""
    arguments = (client.texts(names), client.values(arrays), len(names))
    client.check(client.api.AddExternalInitializers(options, *arguments))


def result(client: Client, session: Any) -> list[float]:
    return client.floats(client.run(session, {"x": ONE}, ["y"])[0])


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize("has_data", [True, False])
def test_a_replaced_file_is_not_opened(client: Client, tmp_path: Path, as_file: bool, has_data: bool) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(add(external()), path)
    if has_data:
        STORED.tofile(tmp_path / "w.bin")
    options = client.options()
    give(client, options, ["w"], [MINE])
    assert result(client, client.session(path if as_file else path.read_bytes(), options)) == [2.0, 3.0]
    if has_data:
        assert result(client, client.session(path)) == [11.0, 21.0]


def test_only_what_is_replaced_is_left_unread(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    nodes = [helper.make_node("Add", ["x", "w"], ["t"]), helper.make_node("Mul", ["t", "v"], ["y"])]
    tensors = [external(), external("v", "v.bin")]
    onnx.save(model(nodes, [floats("x", [2])], [floats("y", [2])], tensors), path)
    options = client.options()
    give(client, options, ["w"], [MINE])
    with pytest.raises(OrtError, match=r"v\.bin"):
        client.session(path, options)
    STORED.tofile(tmp_path / "v.bin")
    assert result(client, client.session(path, options)) == [20.0, 60.0]


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", ""])
def test_a_replaced_location_may_be_anything(client: Client, tmp_path: Path, location: str) -> None:
    options = client.options()
    give(client, options, ["w"], [MINE])
    assert result(client, client.session(add(external(location=location)), options)) == [2.0, 3.0]


def test_an_initializer_that_only_a_subgraph_reads(client: Client) -> None:
    then = helper.make_graph([helper.make_node("Add", ["x", "w"], ["t"])], "then", [], [floats("t", [2])])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [floats("e", [2])])
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    tensors = [numpy_helper.from_array(np.array(True), "c"), external()]
    options = client.options()
    give(client, options, ["w"], [MINE])
    proto = model([node], [floats("x", [2])], [floats("y", [2])], tensors)
    assert result(client, client.session(proto, options)) == [2.0, 3.0]


@pytest.mark.parametrize("array", [np.ones(3, np.float32), np.ones((1, 2), np.float32), np.ones(2, np.int64)])
def test_a_replacement_is_of_the_same_type_and_shape(client: Client, array: np.ndarray) -> None:
    options = client.options()
    give(client, options, ["w"], [array])
    with pytest.raises(OrtError):
        client.session(add(external()), options)


def test_a_sparse_initializer_can_be_replaced(ours: Client) -> None:
    values = numpy_helper.from_array(np.array([5], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1])), [2])
    proto = add()
    proto.graph.sparse_initializer.append(sparse)
    assert result(ours, ours.session(proto)) == [1.0, 6.0]
    options = ours.options()
    ours.check(ours.api.AddInitializer(options, b"w", ours.value(MINE)))
    assert result(ours, ours.session(proto, options)) == [2.0, 3.0]


def test_there_is_something_to_replace(client: Client, tmp_path: Path) -> None:
    options = client.options()
    give(client, options, ["q"], [MINE])
    with pytest.raises(OrtError, match="q"):
        client.session(add(numpy_helper.from_array(STORED, "w")), options)


def test_what_is_replaced_is_what_shapes_are_made_of(client: Client) -> None:
    """The shape of a Reshape comes from the client's values, not from those of the model."""
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    shape = numpy_helper.from_array(np.array([2, 1]), "s")
    proto = model(nodes, [floats("x", [2])], [floats("y", ["a", "b"])], [shape])
    options = client.options()
    client.check(client.api.AddInitializer(options, b"s", client.value(np.array([1, 2]))))
    output = client.run(client.session(proto, options), {"x": ONE}, ["y"])[0]
    kind, dims, rank = (client.ffi.new(t) for t in ("ONNXTensorElementDataType*", "int64_t**", "size_t*"))
    client.check(client.api.GetTensorElementTypeAndShapeDataReference(output, kind, dims, rank))
    assert [dims[0][i] for i in range(rank[0])] == [1, 2]


def test_replacements_are_copied(ours: Client) -> None:
    """As our header says; stock lends the memory to the session."""
    mine = MINE.copy()
    options = ours.options()
    give(ours, options, ["w"], [mine])
    session = ours.session(add(external()), options)
    mine[:] = 99
    assert result(ours, session) == [2.0, 3.0]


# ---- Bytes ----


@pytest.mark.parametrize("size", [2**31, 2**31 + 100, 2**40, 2**63, 2**64 - 1])
def test_more_bytes_than_protobuf_can_have(client: Client, size: int) -> None:
    """They are refused before one of them is read: here, there are not that many."""
    few = client.ffi.from_buffer(bytes(100))
    create = client.api.CreateSessionFromArray
    session = client.ffi.new("OrtSession**")
    found = failure(lambda: client.check(create(client.env, few, size, client.ffi.NULL, session)))
    assert found[0] == INVALID_ARGUMENT and "2GB" in found[1].replace(" ", "")


def test_just_below_the_limit(ours: Client) -> None:
    """Of 2 GiB that are mapped and never read, only the first bytes are a model."""
    data = neg().SerializeToString()
    tail = 2**31 - 1 - len(data) - 6
    hidden = bytes([15 << 3 | 2]) + varint(tail)  # a field that no model has
    size = len(data) + len(hidden) + tail
    with mmap.mmap(-1, 2**31, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000) as memory:
        memory[: len(data) + len(hidden)] = data + hidden
        view = ours.ffi.from_buffer(memory)
        options = ours.options()
        entry = (b"session.use_ort_model_bytes_directly", b"1")
        ours.check(ours.api.AddSessionConfigEntry(options, *entry))
        session = ours.get("CreateSessionFromArray", "OrtSession*", ours.env, view, size, options)
        [output] = ours.run(session, {"x": np.ones((2, 3), np.float32)}, ["y"])
        assert ours.floats(output) == [-1.0] * 6
        ours.api.ReleaseSession(session)
        ours.ffi.release(view)


def varint(number: int) -> bytes:
    """Five bytes, whatever the number."""
    return bytes([number >> 7 * i & 0x7F | 0x80 for i in range(4)] + [number >> 28])


# ---- ORT format ----

ORT_FORMAT = b"\x18\0\0\0ORTM" + bytes(100)


def test_models_in_ort_format(ours: Client, tmp_path: Path) -> None:
    path = tmp_path / "m.ort"
    path.write_bytes(ORT_FORMAT)
    for source in (ORT_FORMAT, path):
        code, message = failure(ours.session, source)
        assert code == FAIL and "in ORT format" in message and "ONNX" in message
        assert "protobuf" not in message.lower()
    assert f"Load model from {path} failed" in message


def test_a_model_that_stock_wrote_in_ort_format(ours: Client, stock: Client, tmp_path: Path) -> None:
    path = tmp_path / "m.ort"
    options = stock.options()
    stock.check(stock.api.SetOptimizedModelFilePath(options, str(path).encode()))
    stock.session(neg(), options)
    assert "in ORT format" in failure(ours.session, path)[1]


def test_an_onnx_model_that_looks_like_it(ours: Client) -> None:
    proto = neg()
    proto.producer_name = "ORTM"
    data = proto.SerializeToString()
    assert data[4:8] == b"ORTM"
    ours.session(data)
