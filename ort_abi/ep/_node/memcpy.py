"""The copies that stock onnxruntime puts between a provider's device and its own CPU kernels.

Where a model is split between the two, stock inserts nodes MemcpyFromHost and MemcpyToHost and gives them to
the provider. Without kernels for them it takes its CPU's, which plan the copy's result in the wrong memory
(microsoft/onnxruntime#27272). Our host copies by itself and never asks for these kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ort_abi import dtypes
from ort_abi._lib import CData, ffi, lib
from ort_abi.ep._call.calls import plain_call
from ort_abi.ep._call.errors import failed_call, forget_frames, record
from ort_abi.ep._device.device import DataTransfer, DeviceTensor, lent_tensors, tensor_of
from ort_abi.ep._node.compute import Node, NodeInfo, run_stream
from ort_abi.ep._node.kernel import Kernel, KernelSpec

if TYPE_CHECKING:
    from ort_abi.ep._ep.provider import ExecutionProvider

__all__ = ["Memcpy", "memcpy_kernels", "memcpy_node", "session_transfer"]


_DONE: int = lib.BRIDGE_DONE


class Memcpy(Kernel):
    """Marks the kernels of `memcpy_kernels`; `memcpy_node` has their code."""


_SPECS = (
    KernelSpec("MemcpyFromHost", (1, None), "", {}, Memcpy, cpu_inputs=(0,)),
    KernelSpec("MemcpyToHost", (1, None), "", {}, Memcpy, cpu_outputs=(0,)),
)


def memcpy_kernels(cls: type[ExecutionProvider]) -> tuple[KernelSpec, ...]:
    """The kernels of a provider with memory of its own that it does not define itself."""
    defined = {spec.op_type for spec in cls.kernels if not spec.domain}
    return tuple(spec for spec in _SPECS if spec.op_type not in defined)


def memcpy_node(ep: ExecutionProvider, info: NodeInfo) -> Node:
    """A node that copies its input with the provider's data transfer: one for all of a session."""
    transfer = session_transfer(ep)

    def compute(what: int, run: CData) -> int:
        tensors: list[DeviceTensor] = []
        try:
            with lent_tensors(tensors, streams=[run_stream(run)]):
                _copy(transfer, run, tensors)
        except BaseException as error:
            result = record(ffi.addressof(run, "call"), error)
            forget_frames(error)
            return result
        return _DONE

    return Node(compute, _never, _never)


def _never(*arguments: Any) -> int:
    """What runs of a node that looks at all its values each time do not come to."""
    raise RuntimeError("a copy was told that its values are the ones before")


def session_transfer(ep: ExecutionProvider) -> DataTransfer:
    """The session's data transfer, for copies that are part of its work. *keeps alive* until the provider is
    released. Raises TypeError if the provider has none."""
    binding = ep._binding
    with binding.lock:
        if binding.transfer is None:
            binding.transfer = _transfer(ep)
        return binding.transfer


def _transfer(ep: ExecutionProvider) -> DataTransfer:
    made = ep._binding.factory.new_transfer()
    if made is None:
        what = "the host wants a copy to or from the device"
        raise TypeError(f"{what}, but {type(ep).__qualname__}.create_data_transfer() gives none")
    return made


def _copy(transfer: DataTransfer, run: CData, tensors: list[DeviceTensor]) -> None:
    if run.flat[0] == dtypes.STRING:
        raise TypeError("strings stay in CPU memory")
    tensors.append(tensor_of(run.call.host, run.values[0], writeable=False))
    source = tensors[0]
    dims = ffi.new("int64_t[]", source.shape)
    output = ffi.new("BridgeOutput*", {"run": run, "dims": dims, "rank": len(source.shape)})
    value = lib.bridge_output_value(output)
    if value == ffi.NULL:
        if output.absent:
            return
        raise failed_call(run.call)
    tensors.append(tensor_of(run.call.host, value, writeable=True))
    if source.nbytes:
        plain_call(transfer.copy_tensors, [source], [tensors[1]], [run_stream(run)])
