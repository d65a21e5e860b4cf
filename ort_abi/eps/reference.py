"""Every ONNX operator, on the `onnx` package's reference evaluator: slow, and right.

The last provider of our Python sessions: it takes what no other provider took. Needs the package `onnx`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import defs
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import RuntimeContextError
from onnx.reference.ops import load_op
from onnx.reference.ops.aionnx_preview_training import load_op as load_training_op
from onnx.reference.ops.aionnxml import load_op as load_ml_op

from ort_abi import ep
from ort_abi.eps import _reference_fixes, _reference_recurrent, _reference_scan  # noqa: F401  # they replace
from ort_abi.eps._reference_versions import operators_of
from ort_abi.graph import Graph, Node

__all__ = ["ReferenceExecutionProvider"]


class ReferenceExecutionProvider(ep.ExecutionProvider):
    """Claims every node that is left and that the reference evaluator knows, in groups as large as can be
    fused.

    If, Loop and Scan that nobody has are claimed whole, with their subgraphs and the values these capture; in
    the subgraphs of those that another provider has, what is left is claimed.
    """

    name = "ReferenceExecutionProvider"
    vendor = "ort-abi"
    version = "1.0.0"

    @classmethod
    def get_supported_devices(cls, devices: Sequence[ep.Device]) -> list[tuple[ep.Device, dict[str, str]]]:
        """The CPU, marked so that no selection policy of this host chooses the provider."""
        cpu = [device for device in devices if device.type == "CPU"][:1]
        return [(device, {"ort_abi_last_resort": "1"}) for device in cpu]

    def get_capability(self, graph: Graph) -> list[list[Node]]:
        """See the class. A subgraph's nodes go with the node that has the subgraph, if nobody has that."""
        if graph.parent_node is not None and not graph.parent_node.ep_name:
            return []
        return ep.partition(graph, _can_run)

    def compile(self, graph: Graph) -> Callable[..., Any]:
        """A callable that evaluates the graph. Raises TypeError for what the ABI cannot carry (see
        `to_model_proto`)."""
        proto = graph.to_model_proto()
        _drop_consumed_inputs(proto.graph)
        constants = _take_strings(proto)
        evaluator = ReferenceEvaluator(proto, new_ops=operators_of(graph.opsets.get("", 1)))
        names = graph.argument_names

        def run(*arrays: Any) -> tuple[Any, ...]:
            return tuple(evaluator.run(None, constants | dict(zip(names, arrays, strict=True))))

        return run


def _drop_consumed_inputs(graph: onnx.GraphProto) -> None:
    """An attribute of the first versions, a hint for memory, which the evaluator does not know."""
    for node in graph.node:
        kept = [attribute for attribute in node.attribute if attribute.name != "consumed_inputs"]
        if len(kept) != len(node.attribute):
            del node.attribute[:]
            node.attribute.extend(kept)
        for attribute in node.attribute:
            _drop_consumed_inputs(attribute.g)


def _take_strings(proto: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    """Takes string constants out of the graph, to be fed to it: the package refuses those that are no UTF-8,
    and cuts NULs off."""
    found, initializers = {}, list(proto.graph.initializer)
    for tensor in initializers:
        if tensor.data_type == onnx.TensorProto.STRING:
            array = np.empty(len(tensor.string_data), object)
            array[:] = [text.decode("utf-8", "surrogateescape") for text in tensor.string_data]
            found[tensor.name] = array.reshape(tuple(tensor.dims))
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(tensor for tensor in initializers if tensor.name not in found)
    return found


def _can_run(node: Node) -> bool:
    return not node.ep_name and _is_known(node)


_LOADERS: dict[str, Callable[..., Any]] = {
    "": functools.partial(load_op, evaluator_cls=ReferenceEvaluator),
    "ai.onnx.ml": load_ml_op,
    "ai.onnx.preview.training": load_training_op,
}


def _is_known(node: Node) -> bool:
    return _has_code(node.domain, node.op_type, node.since_version) and all(
        _is_known(inner) for graph in node.subgraphs.values() for inner in graph.nodes
    )


@functools.cache
def _has_code(domain: str, op_type: str, version: int) -> bool:
    if domain not in _LOADERS or not defs.has(op_type, version, domain):
        return False
    if not domain and op_type in {cls.__name__ for cls in operators_of(version)}:
        return True
    try:
        _LOADERS[domain](domain, op_type, version)
    except RuntimeContextError:  # a function that depends on the node's types: made when these are known
        return True
    except Exception:
        return False
    return True
