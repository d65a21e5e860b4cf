"""Shapes of values between nodes, by the `onnx` package: providers see more of a model that way."""

from __future__ import annotations

import importlib.util
import os

__all__ = ["CONFIG_KEY", "with_shapes"]

CONFIG_KEY = "session.ort_abi_shape_inference"
"""Session config entry of ours: "0" leaves models as they are."""

_LIMIT = 2**31 - 1  # protobuf's own
_GRAPH = 7  # field of ModelProto
_NODE, _OUTPUT, _VALUE_INFO = 1, 12, 13  # fields of GraphProto
_NODE_OUTPUT, _NAME = 2, 1  # fields of NodeProto; of ValueInfoProto
_EXTERNAL = b"\x0a\x08location"  # the key that every tensor with external data has, on the wire


def with_shapes(path: str | None, data: bytes | None) -> bytes | None:
    """The model with the shapes of its values, or None where nothing is to be gained or it cannot be done.

    That is: without the `onnx` package, for models that carry shapes already, have external data (which is
    found by the model's path) or 2 GB. A broken model is left to the host, whose error names what is wrong.
    """
    if importlib.util.find_spec("onnx") is None:
        return None
    if data is None:
        if path is None or not os.path.isfile(path) or os.path.getsize(path) > _LIMIT:
            return None
        with open(path, "rb") as file:
            data = file.read()
    if len(data) > _LIMIT or _EXTERNAL in data or not _lacks_shapes(data):
        return None
    import onnx

    try:
        # data_prop: shapes that the model computes from shapes, for its Reshapes
        return bytes(onnx.shape_inference.infer_shapes(data, data_prop=True).SerializeToString())
    except Exception:
        return None


def _lacks_shapes(data: bytes) -> bool:
    """True if a node of the graph makes a value that is not declared. Declared ones may not exist."""
    view = memoryview(data)
    try:
        parts = [
            part
            for field, *graph in _fields(view, 0, len(view))
            if field == _GRAPH
            for part in _fields(view, *graph)
        ]
        nodes = [span for field, *span in parts if field == _NODE]
        declared = [span for field, *span in parts if field in (_OUTPUT, _VALUE_INFO)]
        if len(nodes) > len(declared):
            return True
        names = {name for span in declared for name in _texts(data, span[0], span[1], _NAME)}
        names.add(b"")  # an output that nobody wants
        return any(not names.issuperset(_texts(data, at, end, _NODE_OUTPUT)) for at, end in nodes)
    except (IndexError, ValueError):
        return False


def _texts(data: bytes, at: int, end: int, wanted: int) -> list[bytes]:
    """The texts of a field of a message that has texts only up to there, in the order that writers keep."""
    found = []
    while at < end and data[at] >> 3 <= wanted:
        field, size = data[at] >> 3, data[at + 1]
        at += 2
        if size > 0x7F:
            size, at = _varint(data, at - 1)
        if field == wanted:
            found.append(data[at : at + size])
        at += size
    return found


def _fields(view: memoryview, at: int, end: int) -> list[tuple[int, int, int]]:
    """Number, start and end of each length-delimited field of a protobuf message; others are skipped."""
    found = []
    while at < end:
        key, at = _varint(view, at)
        kind = key & 7
        if kind == 2:
            size, at = _varint(view, at)
            if at + size > end:
                raise ValueError("a field ends outside its message")
            found.append((key >> 3, at, at + size))
            at += size
        elif kind == 0:
            _, at = _varint(view, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")
    return found


def _varint(view: memoryview | bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
