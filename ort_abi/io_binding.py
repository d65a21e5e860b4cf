"""Inputs and outputs of a session that are bound once and used by many runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ort_abi import dtypes, env
from ort_abi._lib import NULL, CData, Handle, api, check, create, default_allocator, encode, ffi
from ort_abi.device import OrtDevice
from ort_abi.value import OrtValue, device_for

__all__ = ["IOBinding"]


class IOBinding:
    """What `InferenceSession.io_binding` gives. *keeps alive* what is bound, and the session."""

    __slots__ = ("__weakref__", "_alive", "_handle", "session")

    def __init__(self, session: Handle) -> None:
        """Takes the session's handle."""
        self.session = session
        self._handle = create(
            "OrtIoBinding", api.ReleaseIoBinding, api.CreateIoBinding, session.pointer, parents=(session,)
        )

        self._alive: dict[tuple[str, str], object] = {}

    @property
    def pointer(self) -> CData:
        """The `OrtIoBinding*`. *borrows*: valid as long as this object."""
        return self._handle.pointer

    def bind_cpu_input(self, name: str, arr_on_cpu: NDArray[Any]) -> None:
        """Binds an array on the CPU, without a copy if it is C-contiguous."""
        self.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(np.ascontiguousarray(arr_on_cpu)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value as an input (`BindInput`, API 5)."""
        check(api.BindInput(self.pointer, encode(name), ortvalue.pointer))
        self._alive["input", name] = ortvalue

    def bind_input(
        self,
        name: str,
        device_type: str | OrtDevice,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Binds memory at an address, which the caller keeps alive.

        Raises `errors.NotFound` if no registered provider has memory on the device.
        """
        self.bind_ortvalue_input(name, _value_at(device_type, device_id, element_type, shape, buffer_ptr))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value that runs write into (`BindOutput`, API 5)."""
        check(api.BindOutput(self.pointer, encode(name), ortvalue.pointer))
        self._alive["output", name] = ortvalue

    def bind_output(
        self,
        name: str,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Binds an output to memory at an address or, without one, to new memory of a device at every run.

        Raises ValueError for an address without type and shape, `errors.NotFound` if no registered provider
        has memory on the device.
        """
        if buffer_ptr is not None:
            if element_type is None or shape is None:
                raise ValueError(f"output {name!r}: an address needs an element type and a shape")
            value = _value_at(device_type, device_id, element_type, shape, buffer_ptr)
            self.bind_ortvalue_output(name, value)
            return
        memory = env.memory_on(device_for(device_type, device_id))
        check(api.BindOutputToDevice(self.pointer, encode(name), memory._handle.pointer))
        self._alive["output", name] = memory

    def synchronize_inputs(self) -> None:
        """Waits until bound inputs are there (API 10)."""
        check(api.SynchronizeBoundInputs(self.pointer))

    def synchronize_outputs(self) -> None:
        """Waits until bound outputs are there (API 10)."""
        check(api.SynchronizeBoundOutputs(self.pointer))

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order of their binding (`GetBoundOutputValues`, API 5)."""
        values, count = ffi.new("OrtValue***"), ffi.new("size_t*")
        check(api.GetBoundOutputValues(self.pointer, default_allocator, values, count))
        try:
            found = [values[0][i] for i in range(count[0])]
        finally:
            if values[0] != NULL:
                check(api.AllocatorFree(default_allocator, values[0]))
        # A bound value may lie in memory that only this object keeps.
        parents = (self.session, *self._alive.values())
        return [OrtValue(Handle(value, api.ReleaseValue, *parents)) for value in found]

    def copy_outputs_to_cpu(self) -> list[NDArray[Any]]:
        """The outputs of the last run as arrays."""
        return [value.numpy() for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        api.ClearBoundInputs(self.pointer)
        self._forget("input")

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        api.ClearBoundOutputs(self.pointer)
        self._forget("output")

    def _forget(self, what: str) -> None:
        self._alive = {key: value for key, value in self._alive.items() if key[0] != what}


def _value_at(
    device_type: str | OrtDevice, device_id: int, element_type: Any, shape: Sequence[int], address: int
) -> OrtValue:
    number = (
        dtypes.from_proto(element_type) if isinstance(element_type, int) else dtypes.to_onnx(element_type)
    )
    memory = env.memory_on(device_for(device_type, device_id))
    dims = ffi.new("int64_t[]", list(shape))
    count = 1
    for size in shape:
        count *= size
    data = ffi.cast("void*", address)
    arguments = (memory._handle.pointer, data, dtypes.bytes_for(number, count), dims, len(dims), number)
    return OrtValue(create("OrtValue", api.ReleaseValue, api.CreateTensorWithDataAsOrtValue, *arguments))
