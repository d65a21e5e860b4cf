"""The kernels that execution providers have registered, as a session of this host knows them."""

from __future__ import annotations

from dataclasses import dataclass

from ort_abi import dtypes
from ort_abi._lib import NULL, CData, check, ep_api, ffi, lib, text

__all__ = ["KernelDef", "read_kernels"]

_NO_END = 2**31 - 1


@dataclass(frozen=True, slots=True)
class KernelDef:
    """What one kernel can do (`OrtKernelDef`, API 24)."""

    op_type: str
    domain: str
    """"" for ONNX's own operators."""
    since_version: tuple[int, int | None]
    """The first and the last version of the operator that it is for; None: no end was given, which hosts read
    as the first version only."""
    types: dict[str, tuple[str, ...]]
    """The names of element types by type parameter ("T"), or by the name of an input or output without one.
    Parameters that are not in it may be of any type."""


def read_kernels(session: CData, provider: int) -> list[KernelDef]:
    """The kernels of a session's provider number `provider`, in the order of their registration.

    *borrows* the `OrtSession*`, copies what is read (`ortabi_session_kernel`, ours, and `KernelDef_*`).
    """
    found: list[KernelDef] = []
    while (kernel := lib.ortabi_session_kernel(session, provider, len(found))) != NULL:
        first, last = ffi.new("int*"), ffi.new("int*")
        check(ep_api.KernelDef_GetSinceVersion(kernel, first, last))
        found.append(
            KernelDef(
                text(ep_api.KernelDef_GetOperatorType(kernel)),
                text(ep_api.KernelDef_GetDomain(kernel)),
                (first[0], None if last[0] == _NO_END else last[0]),
                _types(kernel),
            )
        )
    return found


def _types(kernel: CData) -> dict[str, tuple[str, ...]]:
    types: dict[str, tuple[str, ...]] = {}
    bits = ffi.new("uint64_t*")
    while (name := lib.ortabi_kernel_constraint(kernel, len(types), bits)) != NULL:
        numbers = [number for number in range(64) if bits[0] >> number & 1]
        types[text(name)] = tuple(dtypes.name_of(number) for number in numbers)
    return types
