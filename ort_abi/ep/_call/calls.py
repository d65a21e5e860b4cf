"""The functions that the C side calls (csrc/bridge). One place for their rules:

* They are attached when their modules are imported and stay for the life of the process.
* They know objects by integer id only (`objects`); the id is in the C struct that the host has, and ends
  with the host's release of that struct.
* They return 1 for success. 0, which is also what cffi returns when an exception escapes, is a failure; the
  reason is noted with `record`, and C makes the host's own status of it.
* What the host passes in is valid during the call. Graphs and kernel infos refuse use afterwards.
* Before the interpreter exits the gate in C closes: nothing is called any more.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ort_abi._lib import CData, check, encode, ffi
from ort_abi.ep._call.errors import forget_frames, record

__all__ = [
    "HOST_SHIFT",
    "callback",
    "checked",
    "config_of",
    "key_values_of",
    "located",
    "new_key_values",
    "plain_call",
    "text_of",
]

HOST_SHIFT = 48  # as in csrc/bridge/node.c
_T = TypeVar("_T")


def text_of(pointer: CData) -> str:
    """What a C string says; "" for NULL."""
    return "" if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "surrogateescape")


def callback(function: Callable[..., None]) -> None:
    """Attaches `function` to the callback of its name; what it raises becomes the failure of the call."""

    @functools.wraps(function)
    def guarded(call: CData, *arguments: Any) -> int:
        try:
            function(call, *arguments)
        except BaseException as error:
            result = record(call, error, getattr(error, "_ort_abi_where", ""))
            forget_frames(error)
            return result
        return 1

    ffi.def_extern(name=function.__name__)(guarded)


def located(where: str, error: Exception) -> Exception:
    """The same exception with the node that it is about, for the message."""
    error._ort_abi_where = where  # type: ignore[attr-defined]
    return error


def plain_call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls what an author defined. Raises TypeError if it gives a coroutine or a generator: then nothing of
    it has run, and that is no success."""
    result = function(*arguments)
    if inspect.isawaitable(result) or inspect.isgenerator(result):
        if inspect.iscoroutine(result):
            result.close()  # else Python warns that nobody awaited it
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(f"{name}() must be a plain function, not one that gives a {type(result).__name__}")
    return result


def checked(made: Any, kind: type[_T], what: str) -> _T:
    """`made`, if it is of that kind. Raises TypeError; `what` says what made it."""
    if not isinstance(made, kind):
        raise TypeError(f"{what} must return an ort_abi.ep.{kind.__name__}, not {made!r}")
    return made


def key_values_of(api: CData, pairs: CData) -> dict[str, str]:
    """What an `OrtKeyValuePairs` of a host holds; {} for NULL. *copies*."""
    if pairs == ffi.NULL:
        return {}
    keys, values, count = ffi.new("const char* const**"), ffi.new("const char* const**"), ffi.new("size_t*")
    api.GetKeyValuePairs(pairs, keys, values, count)
    return {text_of(keys[0][i]): text_of(values[0][i]) for i in range(count[0])}


def config_of(api: CData, options: CData) -> dict[str, str]:
    """The config entries of an `OrtSessionOptions`; {} for NULL. *copies*."""
    if options == ffi.NULL:
        return {}
    entries = ffi.new("OrtKeyValuePairs**")
    check(api.GetSessionOptionsConfigEntries(options, entries), api)
    found = key_values_of(api, entries[0])
    api.ReleaseKeyValuePairs(entries[0])
    return found


def new_key_values(api: CData, items: Mapping[Any, Any]) -> CData:
    """*gives* an `OrtKeyValuePairs*` of texts (caller releases with `ReleaseKeyValuePairs`).

    Raises ValueError for a NUL character in one.
    """
    texts = [(encode(str(key)), encode(str(value))) for key, value in dict(items).items()]
    pairs = ffi.new("OrtKeyValuePairs**")
    api.CreateKeyValuePairs(pairs)
    if pairs[0] == ffi.NULL:
        raise MemoryError("no memory for an OrtKeyValuePairs")
    for key, value in texts:
        api.AddKeyValuePair(pairs[0], key, value)
    return pairs[0]
