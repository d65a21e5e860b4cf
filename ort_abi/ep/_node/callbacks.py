"""The functions that the C side calls for nodes (csrc/bridge/node.c),
under the rules of `_call.calls`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ort_abi._lib import CData, ffi, lib
from ort_abi.ep._call import objects
from ort_abi.ep._call.calls import callback, located, plain_call
from ort_abi.ep._call.errors import record
from ort_abi.ep._lend.loans import Trust
from ort_abi.ep._node.compute import Node as Computation
from ort_abi.ep._node.compute import NodeInfo, array_node, context_node
from ort_abi.ep._node.kernel import Kernel, KernelSpec, attribute_parameters
from ort_abi.ep._node.kernel_info import KernelInfo
from ort_abi.ep._node.memcpy import Memcpy, memcpy_node
from ort_abi.ep._node.prepack import packs, prepack, release_shared, set_shared

if TYPE_CHECKING:
    from ort_abi.ep._ep.provider import Binding, ExecutionProvider

__all__ = ["add_node", "forget_computation", "release_node", "trust"]

_nodes: dict[int, Computation] = {}
_again: dict[int, Callable[[], int]] = {}
"""The computations by id: `objects` once more, without its messages, for the hot path."""


def add_node(ep: ExecutionProvider, owner: Any, node: Computation) -> int:
    """The id of a new node: what it computes, and the object that lives as long as it does."""
    if not ep.concurrent:
        node = _one_at_a_time(ep._binding, node)
    number = objects.add(owner)
    _nodes[number], _again[number] = node, node.again
    return number


def forget_computation(number: int) -> None:
    """No run finds it any more; for ids that have none, nothing."""
    _nodes.pop(number, None)
    _again.pop(number, None)


def release_node(number: int) -> None:
    """Takes `add_node` back. Raises what the kernel's `close` raises."""
    forget_computation(number)
    item = objects.remove(number)
    try:
        if isinstance(item, Kernel):
            plain_call(item.close)
    finally:  # what it raises is no reason to keep the rest
        del item
        release_shared(number)


def _one_at_a_time(binding: Binding, node: Computation) -> Computation:
    def compute(what: int, run: CData) -> int:
        with binding.lock:
            return node.compute(what, run)

    def again() -> int:
        with binding.lock:
            return node.again()

    return Computation(compute, again, node.fail)


@callback
def bridge_py_create_kernel(
    call: CData, definition: int, pointer: CData, number: CData, features: CData
) -> None:
    ep, spec = objects.get(definition, "kernel definition")
    info = KernelInfo(call.host, pointer)
    try:
        label = f"node {info.name!r} ({spec.op_type})"
        try:
            outputs = info.output_names
            node = NodeInfo("", info.input_names, outputs, info.element_types(outputs))
            owner, compute = _made_kernel(ep, spec, info, node)
            number[0] = add_node(ep, owner, compute)
            features[0] = lib.BRIDGE_KERNEL_PREPACK if packs(owner) else 0
        except Exception as error:
            raise located(label, error) from error.__cause__
    finally:
        info._close()


def _made_kernel(
    ep: ExecutionProvider, spec: KernelSpec, info: KernelInfo, node: NodeInfo
) -> tuple[Any, Computation]:
    if spec.make is Memcpy:
        return Memcpy(info), memcpy_node(ep, node)
    if isinstance(spec.make, type):
        kernel: Kernel = spec.make(info)
        return kernel, context_node(kernel.compute, node, trust(ep))
    attributes = {}
    for name, default in attribute_parameters(spec.make).items():
        value = info.attribute(name, None)
        if value is not None:
            attributes[name] = value
        elif default is inspect.Parameter.empty:
            raise ValueError(
                f"the kernel function needs the attribute {name!r}, which the node does not have"
            )
    function = functools.partial(spec.make, **attributes) if attributes else spec.make
    return function, array_node(function, node, trust(ep))


def trust(ep: ExecutionProvider) -> Trust:
    """What a new node of the provider takes for granted."""
    return Trust(by_address=ep._binding.captures_graphs)


@callback
def bridge_py_prepack(
    call: CData, number: int, value: CData, index: int, allocator: CData, cache: CData, packed: CData
) -> None:
    kernel: Kernel = objects.get(number, "kernel")
    packed[0] = prepack(call.host, number, kernel, value, index, allocator, cache)


@callback
def bridge_py_set_shared(
    call: CData, number: int, buffers: CData, sizes: CData, count: int, index: int
) -> None:
    kernel: Kernel = objects.get(number, "kernel")
    set_shared(number, kernel, index, [int(ffi.cast("uintptr_t", buffers[i])) for i in range(count)])


# ---- runs ----


@ffi.def_extern()
def bridge_py_compute(number: int, what: int, run: CData) -> int:
    """Runs a node; reports its own failures."""
    try:
        return _nodes[number].compute(what, run)
    except KeyError:
        error = LookupError(f"there is no node with id {number} (released, or never made)")
        return record(ffi.addressof(run, "call"), error)
    except BaseException as error:
        return record(ffi.addressof(run, "call"), error)


@ffi.def_extern()
def bridge_py_again(number: int) -> int:
    """The same with the inputs of the run before: a computation knows its run."""
    try:
        return _again[number]()
    except BaseException as error:
        return _nodes[number].fail(error) if number in _nodes else 0
