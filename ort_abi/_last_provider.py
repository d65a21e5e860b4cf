"""The provider that sessions ask last, found when one has nodes left that nobody took."""

from __future__ import annotations

import importlib.util

from ort_abi import env
from ort_abi._lib import CData, check, ffi, lib
from ort_abi._locks import registration_lock
from ort_abi.ep._call.errors import forget_frames, record

__all__ = ["offer_reference"]


def offer_reference(options: CData) -> None:
    """Lets sessions of an `OrtSessionOptions*` ask the reference provider last, if `onnx` is installed.

    It is imported and registered when a session first needs it.
    """
    find = ffi.addressof(lib, "bridge_find_last_ep")
    check(lib.ortabi_session_options_set_last_ep(options, find, ffi.NULL))


@ffi.def_extern(name="bridge_py_find_last_ep")
def _find(call: CData, device: CData) -> int:
    """Returns 1 for success; 0, with the reason noted, for a failure."""
    try:
        if importlib.util.find_spec("onnx") is not None:
            device[0] = _reference_device()
    except BaseException as error:
        result = record(call, error)
        forget_frames(error)
        return result
    return 1


def _reference_device() -> CData:
    from ort_abi.eps.reference import ReferenceExecutionProvider

    name = ReferenceExecutionProvider.name
    with registration_lock:
        if name not in env.get_available_providers():
            env.register(ReferenceExecutionProvider)
        found = next(item for item in env.get_ep_devices() if item.ep_name == name)
        return env.ep_device_pointer(found)
