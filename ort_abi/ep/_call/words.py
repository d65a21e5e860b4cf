"""The ABI's enums as words: what authors write, and its numbers."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ort_abi import _enums

__all__ = ["number_of", "word_of"]


def _words(enum: type[IntEnum], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix).lower(): int(value) for name, value in enum.__members__.items()}


_WORDS = {
    "policy": _words(_enums.OrtGraphCaptureNodeAssignmentPolicy, "OrtGraphCaptureNodeAssignmentPolicy_"),
    "weightless": _words(_enums.OrtWeightlessSupport, "OrtWeightlessSupport_"),
    "compatibility": _words(_enums.OrtCompiledModelCompatibility, "OrtCompiledModelCompatibility_EP_"),
    "reason": _words(_enums.OrtDeviceEpIncompatibilityReason, "OrtDeviceEpIncompatibility_"),
    "category": _words(_enums.OrtProfilingEventCategory, "OrtProfilingEventCategory_"),
    "memory": _words(_enums.OrtExternalMemoryHandleType, "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_"),
    "semaphore": _words(_enums.OrtExternalSemaphoreType, "ORT_EXTERNAL_SEMAPHORE_"),
    "graphics": _words(_enums.OrtGraphicsApi, "ORT_GRAPHICS_API_"),
}


def number_of(kind: str, word: Any, what: str) -> int:
    """The ABI's number for one of its words. Raises ValueError that says what `what` must be."""
    words = _WORDS[kind]
    if not isinstance(word, str) or word not in words:
        raise ValueError(f"{what} must be one of {', '.join(map(repr, words))}, not {word!r}")
    return words[word]


def word_of(kind: str, number: int) -> str:
    """The reverse; "unknown" for a number without one."""
    return next((word for word, value in _WORDS[kind].items() if value == number), "unknown")
