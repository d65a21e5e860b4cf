"""What callbacks in Python raised, until the status that it became comes back to Python.

In between is C: a status carries a code and a text. The text is unique enough to know the exception by, since
it has the traceback.
"""

from __future__ import annotations

import re
from collections import deque

from ort_abi import errors

__all__ = ["exception", "remember"]

_recent: deque[tuple[str, BaseException]] = deque(maxlen=8)
"""Newest last. Few: what a host drops, or gives to callers that are not Python, is never asked for."""

_OUT_OF_MEMORY = re.compile(r"\b(out of memory|no memory (in|for))\b")


def remember(text: str, error: BaseException) -> None:
    """Keeps the exception whose description is in the message of a status that is about to be made.

    Its tracebacks are not there any more when it is asked for: their frames would keep inputs alive.
    """
    _recent.append((text.encode("utf-8", "replace").decode(), error))


def exception(code: int, message: str) -> BaseException:
    """What to raise for a status.

    An `errors.OrtError` whose `__cause__` is the exception that a callback in Python raised, if one did. What
    is no error of a program (KeyboardInterrupt, SystemExit) is the exception itself. No memory is a
    MemoryError as well.
    """
    cause = _taken(message)
    if cause is not None and not isinstance(cause, Exception):
        return cause
    is_memory = _OUT_OF_MEMORY.search(message) if cause is None else isinstance(cause, MemoryError)
    made = errors.OutOfMemory(message, code) if is_memory else errors.from_code(code, message)
    made.__cause__ = cause
    return made


def _taken(message: str) -> BaseException | None:
    for item in reversed(tuple(_recent)):
        if item[0] in message:
            try:
                _recent.remove(item)
            except ValueError:  # another thread was faster
                continue
            return item[1]
    return None
