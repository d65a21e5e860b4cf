"""Kernels that a provider registers as its own and the host makes: those that run subgraphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_abi._lib import CData, ffi, lib
from ort_abi.ep._node.kernel import Kernel, KernelSpec

if TYPE_CHECKING:
    from ort_abi.ep._ep.provider import ExecutionProvider

__all__ = ["HostKernel", "creator", "host_kernels"]


class HostKernel(Kernel):
    """Marks the kernels of `host_kernels`; their code is the host's."""


_SPECS = {
    "If": KernelSpec("If", (1, None), "", {}, HostKernel, cpu_inputs=(0,)),
    "Loop": KernelSpec("Loop", (1, None), "", {}, HostKernel, cpu_inputs=(0, 1)),
    "Scan": KernelSpec("Scan", (9, None), "", {}, HostKernel),
}
"""Conditions and counts are read on the host. The first form of Scan is another operator."""


def host_kernels(cls: type[ExecutionProvider]) -> tuple[KernelSpec, ...]:
    """The kernels of `ExecutionProvider.control_flow`. Raises ValueError for other names."""
    unknown = [name for name in cls.control_flow if name not in _SPECS]
    if unknown or isinstance(cls.control_flow, str):
        raise ValueError(
            f"{cls.__qualname__}.control_flow has some of {', '.join(_SPECS)}, not {cls.control_flow!r}"
        )
    return tuple(_SPECS[name] for name in cls.control_flow)


def creator(spec: KernelSpec) -> CData:
    """The `OrtKernelCreateFunc` of a host kernel; its state is a `BridgeHost`."""
    return ffi.addressof(lib, f"bridge_create_{spec.op_type.lower()}")
