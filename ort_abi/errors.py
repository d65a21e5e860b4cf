"""What goes wrong, by error code: one class a code, with the names that onnxruntime uses.

Source: `OrtErrorCode` (API 1; 12 to 15 since API 23) and the `OrtStatus*` that almost every slot returns.
"""

from __future__ import annotations

__all__ = [
    "DeviceReset",
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "OrtError",
    "OutOfMemory",
    "RuntimeException",
    "from_code",
]


class OrtError(RuntimeError):
    """A status that is not OK. `code` is its `OrtErrorCode` number, `message` its text."""

    code = -1
    code_name = "UNKNOWN"

    def __init__(self, message: str, code: int | None = None) -> None:
        if code is not None:
            self.code = code
            self.code_name = _NAMES.get(code, OrtError.code_name)
        self.message = message
        super().__init__(f"{self.code_name}: {message}")


class Fail(OrtError):
    """`ORT_FAIL`: anything that has no code of its own."""

    code, code_name = 1, "FAIL"


class InvalidArgument(OrtError):
    """`ORT_INVALID_ARGUMENT`: the caller gave something that cannot be."""

    code, code_name = 2, "INVALID_ARGUMENT"


class NoSuchFile(OrtError):
    """`ORT_NO_SUCHFILE`: a file is missing or cannot be read."""

    code, code_name = 3, "NO_SUCHFILE"


class NoModel(OrtError):
    """`ORT_NO_MODEL`: no model was given or loaded."""

    code, code_name = 4, "NO_MODEL"


class EngineError(OrtError):
    """`ORT_ENGINE_ERROR`: an engine below an execution provider failed."""

    code, code_name = 5, "ENGINE_ERROR"


class RuntimeException(OrtError):
    """`ORT_RUNTIME_EXCEPTION`: code of a kernel or provider threw."""

    code, code_name = 6, "RUNTIME_EXCEPTION"


class OutOfMemory(RuntimeException, MemoryError):
    """A status, of any code, that says that there was no memory: a `MemoryError` as well."""


class InvalidProtobuf(OrtError):
    """`ORT_INVALID_PROTOBUF`: the bytes are no ONNX model."""

    code, code_name = 7, "INVALID_PROTOBUF"


class ModelLoaded(OrtError):
    """`ORT_MODEL_LOADED`: a model is there already."""

    code, code_name = 8, "MODEL_LOADED"


class NotImplemented(OrtError):
    """`ORT_NOT_IMPLEMENTED`: a slot or an operator that is not there."""

    code, code_name = 9, "NOT_IMPLEMENTED"


class InvalidGraph(OrtError):
    """`ORT_INVALID_GRAPH`: the model can be read but breaks ONNX's rules."""

    code, code_name = 10, "INVALID_GRAPH"


class EPFail(OrtError):
    """`ORT_EP_FAIL`: an execution provider failed."""

    code, code_name = 11, "EP_FAIL"


class ModelLoadCanceled(OrtError):
    """`ORT_MODEL_LOAD_CANCELED`: the user stopped the load."""

    code, code_name = 12, "MODEL_LOAD_CANCELED"


class ModelRequiresCompilation(OrtError):
    """`ORT_MODEL_REQUIRES_COMPILATION`: compilation is needed but was forbidden."""

    code, code_name = 13, "MODEL_REQUIRES_COMPILATION"


class NotFound(OrtError):
    """`ORT_NOT_FOUND`: what was asked for is not there."""

    code, code_name = 14, "NOT_FOUND"


class DeviceReset(OrtError):
    """`ORT_DEVICE_RESET`: the device was reset, its memory is lost."""

    code, code_name = 15, "DEVICE_RESET"


_BY_CODE: dict[int, type[OrtError]] = {cls.code: cls for cls in OrtError.__subclasses__()}
_NAMES: dict[int, str] = {code: cls.code_name for code, cls in _BY_CODE.items()}


def from_code(code: int, message: str) -> OrtError:
    """The exception for an error code. A code that is not known gives a plain `OrtError` that carries it."""
    known = _BY_CODE.get(code)
    return known(message) if known else OrtError(f"{message} (error code {code})", code)
