"""How a Python exception becomes the text and code of the status that the host gets."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

from ort_abi import _failures, errors
from ort_abi._lib import CData, ffi, lib

__all__ = ["failed_call", "forget_frames", "record"]

_RUNTIME_EXCEPTION = (
    6  # not ORT_EP_FAIL: stock onnxruntime answers that by running the model on its CPU provider
)
_NOT_IMPLEMENTED = 9


def record(call: CData, error: BaseException, where: str = "") -> int:
    """Notes `error` as the reason why a callback fails. Returns 0, the callback's result.

    The text is `Type: message`, then the traceback; `where` names the node for hosts that do not. An
    `OrtError` keeps its code, NotImplementedError is ORT_NOT_IMPLEMENTED, anything else
    ORT_RUNTIME_EXCEPTION. Where the host is ours, a caller in Python gets the exception itself as the cause.
    """
    if isinstance(error, errors.OrtError):
        code = error.code
    else:
        code = _NOT_IMPLEMENTED if isinstance(error, NotImplementedError) else _RUNTIME_EXCEPTION
    text = _described(error)
    if call.host and call.host.is_ours:
        _failures.remember(text, error)
    elif where:
        text = f"{where}: {text}"
    lib.bridge_fail(call, code, text.encode("utf-8", "replace"))
    return 0


def _described(error: BaseException) -> str:
    """`Type: message`, then the traceback with the causes, but without that line at its end once more."""
    summary = traceback.format_exception_only(type(error), error)
    trace = traceback.format_exception(type(error), error, _of_the_author(error.__traceback__))
    lines = summary + trace[: -len(summary)]
    return "".join(lines).rstrip("\n").replace("\0", "\\0")


_OURS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def _of_the_author(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from where it enters the author's code; whole if it never does."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_OURS):
        inner = inner.tb_next
    return inner or trace


def failed_call(call: CData) -> errors.OrtError:
    """The exception for a bridge function that failed and noted the reason in `call`."""
    text = ffi.string(call.text).decode("utf-8", "replace") if call.text != ffi.NULL else "unknown failure"
    return errors.from_code(call.code, text)


def forget_frames(error: BaseException | None) -> None:
    """Drops the tracebacks of an exception and its causes: their frames keep arrays alive."""
    seen: set[int] = set()  # `raise first from second` makes a ring where second came from first
    left = [error]
    while left:
        error = left.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            error.__traceback__ = None
            left += [error.__cause__, error.__context__]
