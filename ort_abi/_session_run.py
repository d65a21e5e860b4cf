"""The short way of `InferenceSession.run`: NumPy arrays in, NumPy arrays out, one C call (session_run.h)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ort_abi import dtypes
from ort_abi._lib import CData, Handle, api, c_strings, check, encode, ffi, lib
from ort_abi.value import cpu_memory, flat_types, host_memories, output_array, owned

__all__ = ["Runner"]

_HEADER = 5  # numbers in front of an output's dimensions
_MOST: int = lib.BRIDGE_SESSION_MAX_VALUES
_ROOM: int = lib.BRIDGE_SESSION_OUTPUT

_run: CData = lib.bridge_session_run
_release = partial(lib.bridge_session_release, api)
_from_buffer, _new, _unpack, _buffer, _cast, _gc = (
    ffi.from_buffer,
    ffi.new,
    ffi.unpack,
    ffi.buffer,
    ffi.cast,
    ffi.gc,
)
_Numbers = ffi.typeof("int64_t[]")
_Elements = ffi.typeof("char*")
_Value = ffi.typeof("OrtValue*")
_ndarray = np.ndarray

# Dtypes by element type, of types whose elements an array has in the same form.
_dtypes: dict[int, np.dtype[Any]] = {}


class Runner:
    """What runs of a session with the same names of inputs and outputs have in common. Any thread."""

    __slots__ = ("_alive", "_fits", "_num_inputs", "_room", "names")

    names: CData
    """A `BridgeSessionNames*`: the names as C has them."""

    def __init__(self, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        """Raises ValueError for a name that C would cut."""
        in_names, in_alive = c_strings([encode(name, "an input's name") for name in inputs])
        out_names, out_alive = c_strings([encode(name, "an output's name") for name in outputs])
        self._alive = (in_names, in_alive, out_names, out_alive)
        self._num_inputs = len(inputs)
        self._room = 1 + _ROOM * len(outputs)
        self._fits = len(inputs) <= _MOST and len(outputs) <= _MOST
        self.names = ffi.new(
            "BridgeSessionNames*",
            (api, cpu_memory, *host_memories, len(inputs), len(outputs), in_names, out_names),
        )

    def run(self, session: Handle, feed: Mapping[str, Any]) -> list[Any] | None:
        """Runs the session; None, and nothing has happened, if the feed is not all plain arrays.

        `feed` has this runner's names in their order. Raises what `InferenceSession.run` raises.
        """
        data: list[CData] = []  # keeps the arrays' memory alive during the call
        shapes: list[int] = []
        for array in feed.values():
            if type(array) is not _ndarray:
                return None
            element_type = flat_types.get(array.dtype)
            size = array.nbytes
            if element_type is None or not size:
                return None
            try:
                data.append(_from_buffer(array))
            except (BufferError, TypeError, ValueError):  # not contiguous, or a dtype without a buffer format
                return None
            shape = array.shape
            shapes += (element_type, size, len(shape), *shape)
        if len(data) != self._num_inputs or not self._fits:
            return None
        out = _new(_Numbers, self._room)
        status = _run(self.names, session.pointer, data, shapes, out)
        if status:
            check(status)
        return _outputs(_unpack(out, out[0]), session)


def _outputs(flat: list[int], session: Handle) -> list[Any]:
    """The values that a run gave, owned at once, then as arrays."""
    results: list[Any] = []
    position, end, plain = 1, len(flat), True
    while position < end:
        value, element_type, address, size, rank = flat[position : position + _HEADER]
        position += _HEADER
        shape = flat[position : position + rank]
        position += rank
        dtype = _dtypes.get(element_type)
        if dtype is None:
            plain = False
            results.append(owned(_cast(_Value, value), session) if value else None)
        else:
            memory = _buffer(_gc(_cast(_Elements, address), partial(_release, value)), size)
            results.append(_ndarray(shape, dtype, memory))
    if plain:
        return results
    return [_array(result) if isinstance(result, Handle) else result for result in results]


def _array(handle: Handle) -> NDArray[Any] | None:
    array = output_array(handle)
    if array is None:
        return None
    element_type = dtypes.to_onnx(array.dtype)
    if element_type != dtypes.STRING and not dtypes.is_packed(element_type):
        _dtypes[element_type] = array.dtype
    return array
