"""A provider that prefers channels last, on the `onnx` package's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from ort_abi import ep
from ort_abi.eps import reference as _reference  # noqa: F401  # it knows all of its operators
from ort_abi.eps._reference_versions import operators_of
from ort_abi.eps.reference import ReferenceExecutionProvider
from ort_abi.graph import Graph, Node

NHWC = "com.ms.internal.nhwc"
Array = NDArray[Any]

CONVERTED = [
    "AveragePool",
    "BatchNormalization",
    "Conv",
    "ConvTranspose",
    "DepthToSpace",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GridSample",
    "InstanceNormalization",
    "LRN",
    "LpPool",
    "MaxPool",
    "Resize",
    "SpaceToDepth",
]


def _evaluate(node: onnx.NodeProto, inputs: tuple[Array | None, ...]) -> tuple[Array, ...]:
    """One node of ONNX's own domain."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.domain = ""
    names = [name for name in copy.input if name]
    graph = helper.make_graph(
        [copy],
        "one",
        [helper.make_value_info(name, onnx.TypeProto()) for name in dict.fromkeys(names)],
        [helper.make_value_info(name, onnx.TypeProto()) for name in copy.output if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    feeds = {name: array for name, array in zip(node.input, inputs, strict=False) if name}
    return tuple(
        ReferenceEvaluator(model, new_ops=operators_of(model.opset_import[0].version)).run(None, feeds)
    )


class _ChannelsLast(OpRun):
    """Runs the operator of the same name on what it reads with channels first."""

    op_domain = NHWC

    def _run(self, *inputs: Array, **_: Any) -> tuple[Array, ...]:
        first, *rest = _evaluate(self.onnx_node, (np.moveaxis(inputs[0], -1, 1), *inputs[1:]))
        return np.moveaxis(first, 1, -1), *rest


class Resize(OpRun):
    """To it all axes are alike."""

    op_domain = NHWC

    def _run(self, *inputs: Array, **_: Any) -> tuple[Array, ...]:
        node = self.onnx_node
        if len(inputs) == 2:  # version 10
            x, scales = node.input
            node = helper.make_node(
                "Resize",
                [x, "", scales],
                node.output,
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            )
            inputs = (inputs[0], None, inputs[1])  # type: ignore[assignment]
        return _evaluate(node, inputs)


OPERATORS = [Resize, *(type(name, (_ChannelsLast,), {}) for name in CONVERTED if name != "Resize")]


def _can_run(node: Node) -> bool:
    """The evaluator takes an old Softmax for a new one."""
    return not node.subgraphs and (node.op_type != "Softmax" or node.since_version >= 13)


class ChannelsLast(ReferenceExecutionProvider):
    """Claims every node, one by one, and remembers the graphs that it was last asked about."""

    name = "ChannelsLastExecutionProvider"
    preferred_data_layout = "NHWC"
    seen: ClassVar[dict[str, list[tuple[str, str, int]]]] = {}
    """Name of the graph -> (domain, op_type, since_version) of its nodes."""

    @classmethod
    def get_supported_devices(cls, devices: Any) -> Any:
        return [device for device in devices if device.type == "CPU"][:1]

    def get_capability(self, graph: Graph) -> Any:
        nodes = graph.nodes
        type(self).seen[graph.name] = [(node.domain, node.op_type, node.since_version) for node in nodes]
        return self.claims(graph)

    def claims(self, graph: Graph) -> Any:
        """What it claims: here each node as a fused one of its own."""
        return [[node] for node in graph.nodes if _can_run(node)]

    def compile(self, graph: Graph) -> Callable[..., Any]:
        proto = graph.to_model_proto()
        known = operators_of(graph.opsets.get("", 1))
        evaluator = ReferenceEvaluator(proto, new_ops=[*OPERATORS, *known])
        names = graph.argument_names

        def run(*arrays: Any) -> tuple[Any, ...]:
            return tuple(evaluator.run(None, dict(zip(names, arrays, strict=True))))

        return run


class ChannelsFirst(ChannelsLast):
    """The same without a preference."""

    name = "ChannelsFirstExecutionProvider"
    preferred_data_layout = "NCHW"


class FuseChannelsLast(ChannelsLast):
    """Fuses what it can."""

    name = "FuseChannelsLastExecutionProvider"

    def claims(self, graph: Graph) -> Any:
        return ep.partition(graph, _can_run)
