"""How a Python exception becomes the text and code of the status that the host gets."""

from __future__ import annotations

import traceback

from ort_abi import errors
from ort_abi._lib import CData, ffi, lib

__all__ = ["failed_call", "forget_frames", "record"]

_RUNTIME_EXCEPTION = (
    6  # not ORT_EP_FAIL: stock onnxruntime answers that by running the model on its CPU provider
)
_NOT_IMPLEMENTED = 9


def record(call: CData, error: BaseException, where: str = "") -> int:
    """Notes `error` as the reason why a callback fails; `where` names the node. Returns 0, the callback's
    result.

    The text is `where: Type: message`, then the traceback. An `OrtError` keeps its code, NotImplementedError
    is ORT_NOT_IMPLEMENTED, anything else ORT_RUNTIME_EXCEPTION.
    """
    if isinstance(error, errors.OrtError):
        code = error.code
    else:
        code = _NOT_IMPLEMENTED if isinstance(error, NotImplementedError) else _RUNTIME_EXCEPTION
    summary = "".join(traceback.format_exception_only(type(error), error)).strip()
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    text = f"{where}: {summary}\n{trace}" if where else f"{summary}\n{trace}"
    lib.bridge_fail(call, code, text.encode("utf-8", "replace").replace(b"\0", b"\\0"))
    return 0


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
