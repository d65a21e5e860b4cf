"""The functions that the C side calls for custom operators (csrc/bridge/custom_op.c), under the rules of
`_call.calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_abi._lib import CData
from ort_abi.ep._call import objects
from ort_abi.ep._call.calls import HOST_SHIFT, callback, text_of
from ort_abi.ep._custom_op.custom_ops import infer_shapes

if TYPE_CHECKING:
    from ort_abi.ep._ep.provider import ExecutionProvider

__all__: list[str] = []


@callback
def bridge_py_infer_shapes(call: CData, factory: int, index: int, context: CData) -> None:
    op = objects.get(factory, "factory").cls.custom_ops[index]
    infer_shapes(call.host.api, context, op)


@callback
def bridge_py_find_kernel(
    call: CData, number: int, domain: CData, op_type: CData, since_version: int, state: CData
) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
    wanted = text_of(domain), text_of(op_type), since_version
    for definition in ep._binding.definitions:
        _, spec = objects.get(definition, "kernel definition")
        if spec.fits(*wanted):
            state[0] = call.host.index << HOST_SHIFT | definition
            return
    name = f"{wanted[0]}::{wanted[1]} of version {since_version}"
    raise NotImplementedError(f"the custom operator {name} was not compiled, and there is no kernel for it")
