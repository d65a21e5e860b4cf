"""The application's choice of execution providers for a session, as the host asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ort_abi import env
from ort_abi._lib import CData, api, check, ffi, lib, read_key_values
from ort_abi.device import OrtEpDevice
from ort_abi.ep._call import objects
from ort_abi.ep._call.errors import forget_frames, record

__all__ = ["Delegate", "Selector"]

Delegate = Callable[[Sequence[OrtEpDevice], dict[str, str], dict[str, str], int], Sequence[OrtEpDevice]]
"""`(devices, model_metadata, runtime_metadata, most)` to the devices to use, one to `most` of them."""


class Selector:
    """Ties a delegate to session options and their copies, until `close` or the end of this object."""

    __slots__ = ("__weakref__", "_id")

    def __init__(self, options: CData, delegate: Delegate) -> None:
        """`options` is an `OrtSessionOptions*` (`SessionOptionsSetEpSelectionPolicyDelegate`, API 22)."""
        self._id: int | None = objects.add(delegate)
        function, state = ffi.addressof(lib, "bridge_select_devices"), ffi.cast("void*", self._id)
        check(api.SessionOptionsSetEpSelectionPolicyDelegate(options, function, state))

    def close(self) -> None:
        """Forgets the delegate; a session created with the options then fails."""
        number, self._id = self._id, None
        if number is not None:
            objects.remove(number)

    __del__ = close


@ffi.def_extern(name="bridge_py_select_devices")
def _select(
    call: CData,
    delegate: int,
    devices: CData,
    count: int,
    model_metadata: CData,
    runtime_metadata: CData,
    selected: CData,
    room: int,
    used: CData,
) -> int:
    """Returns 1 for success; 0, with the reason noted, for a failure."""
    try:
        function: Delegate = objects.get(delegate, "EP selection delegate")
        environment = env.environment()
        offered = [OrtEpDevice(devices[i], environment) for i in range(count)]
        metadata = read_key_values(model_metadata), read_key_values(runtime_metadata)
        chosen = list(function(offered, *metadata, room))
        wrong = [device for device in chosen if not isinstance(device, OrtEpDevice)]
        if wrong:
            raise TypeError(f"an EP selection delegate must give OrtEpDevice objects, not {wrong[0]!r}")
        if len(chosen) > room:
            raise ValueError(f"an EP selection delegate can select {room} devices, not {len(chosen)}")
        for index, device in enumerate(chosen):
            selected[index] = env.ep_device_pointer(device)
        used[0] = len(chosen)
    except BaseException as error:
        result = record(call, error)
        forget_frames(error)
        return result
    return 1
