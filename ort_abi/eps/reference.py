"""Every ONNX operator, on the `onnx` package's reference evaluator: slow, and right.

The last provider of our Python sessions: it takes what no other provider took. Needs the package `onnx`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import defs
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import RuntimeImplementationError
from onnx.reference.ops import load_op

from ort_abi import ep
from ort_abi.graph import Graph, Node

__all__ = ["ReferenceExecutionProvider"]


class ReferenceExecutionProvider(ep.ExecutionProvider):
    """Claims every node that is left and that the reference evaluator knows, in groups as large as can be fused.

    If, Loop and Scan are claimed whole, with their subgraphs and the values these capture.
    """

    name = "ReferenceExecutionProvider"
    vendor = "ort-abi"
    version = "1.0.0"

    def get_capability(self, graph: Graph) -> list[list[Node]]:
        """See the class. A subgraph's nodes go with the node that has the subgraph."""
        if graph.parent_node is not None:
            return []
        return ep.partition(graph, _can_run)

    def compile(self, graph: Graph) -> Callable[..., Any]:
        """A callable that evaluates the graph. Raises TypeError for what the ABI cannot carry (see `to_model_proto`)."""
        evaluator = ReferenceEvaluator(graph.to_model_proto())
        names = [value.name for value in graph.inputs if value.name not in graph.initializers]

        def run(*arrays: Any) -> tuple[Any, ...]:
            return tuple(evaluator.run(None, dict(zip(names, arrays, strict=True))))

        return run


def _can_run(node: Node) -> bool:
    return not node.ep_name and _is_known(node)


def _is_known(node: Node) -> bool:
    if not defs.has(node.op_type, node.domain):
        return False
    try:
        load_op(node.domain, node.op_type, node.since_version)
    except RuntimeImplementationError:
        return False
    except Exception:  # a function that depends on its node's types: the evaluator makes it when it has them
        pass
    return all(_is_known(inner) for graph in node.subgraphs.values() for inner in graph.nodes)
