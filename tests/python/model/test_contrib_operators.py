"""Operators of com.microsoft and onnxruntime's other domains: their schemas give values a type and nodes
their default attributes, as in stock."""

from __future__ import annotations

import gc
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from contrib_models import SCHEMAS, Listener, Seen, every_model, listen, one_node
from ep_support import model, open_session, registered, run_once
from onnx import TensorProto, helper

import ort_abi
from ort_abi import ep

STOCK_ABORTS = ("QLinearLeakyRelu, few", "QLinearSigmoid, few")
"""Stock's type inference reads an optional input that is not there."""

UNKNOWN_IN_STOCK = {"EPContext", "ReduceSumInteger", "PackedSparseAttentionIndexer"}
UNKNOWN_IN_STOCK |= {"PackedSparseAttentionIndexerMerge"}
"""The type of the first two's output must be in the model; the others want more of their inputs."""


def test_types_and_attributes_are_as_in_stock() -> None:
    """For each operator with each type of each parameter. Where stock refuses the model there is nothing to
    hold ours against."""
    models = [(what, each) for what, each in every_model() if not any(op in what for op in STOCK_ABORTS)]
    with registered(onnxruntime, Listener):
        known = {what: listen(onnxruntime, each) for what, each in models}
    with registered(ort_abi, Listener):
        for what, each in models:
            wanted = known[what]
            if isinstance(wanted, Seen):
                assert listen(ort_abi, each) == wanted, what
    compared = {
        what.split(",")[0].split(" ")[1] for what, wanted in known.items() if isinstance(wanted, Seen)
    }
    assert {name for _, name in SCHEMAS} - compared == UNKNOWN_IN_STOCK
    assert sum(isinstance(wanted, Seen) for wanted in known.values()) > 1000


# Attributes that the type of output 0 depends on.
TYPES_IN_ATTRIBUTES = [
    *(("DequantizeBFP", {"dtype": dtype}) for dtype in (1, 10, 16)),
    *(("DequantizeWithOrder", {"to": dtype}) for dtype in (1, 10)),
    *(("DynamicSparseAttention", {"output_bf16": number}) for number in (0, 1)),
    *(("GatherPacked", {"output_dtype": dtype}) for dtype in (1, 10, 16)),
    *(("GemmFloat8", {"dtype": dtype}) for dtype in (1, 10, 16, 17, 19)),
    *(("MurmurHash3", {"positive": number}) for number in (0, 1)),
    *(("RMSNormRotary", {"output_fp16": number}) for number in (0, 1)),
]


@pytest.mark.parametrize(("name", "attributes"), TYPES_IN_ATTRIBUTES)
def test_an_attribute_says_the_type(name: str, attributes: dict[str, Any]) -> None:
    schema = SCHEMAS["com.microsoft", name]
    first = {each.type_param_str: each.allowed_type_strs[0] for each in schema.type_constraints}
    seen = []
    for host in (onnxruntime, ort_abi):
        with registered(host, Listener):
            seen.append(listen(host, one_node(schema, first, False, attributes)))
    assert isinstance(seen[0], Seen), seen[0]
    assert seen[0] == seen[1]


# ---- providers ----


class _Gelu(ep.ExecutionProvider):
    name = "QuickGeluExecutionProvider"

    @ep.kernel("QuickGelu", domain="com.microsoft", since_version=1, types={"T": [np.float32, np.float64]})
    def quick_gelu(x: Any, *, alpha: float) -> Any:
        """`alpha` has no default here: the node gets the operator's."""
        return (x / (1 + np.exp(-alpha * x))).astype(x.dtype)


class _FuseGelu(_Gelu):
    name = "FuseQuickGeluExecutionProvider"

    def get_capability(self, graph: Any) -> Any:
        return [[node] for node in graph.nodes if node.op_type == "QuickGelu"]

    def compile(self, graph: Any) -> Any:
        [node] = graph.nodes
        alpha = node.attributes["alpha"]
        return lambda x: (x / (1 + np.exp(-alpha * x))).astype(x.dtype)


def _between(import_domain: bool = True) -> bytes:
    """y = -QuickGelu(-x): no value next to the QuickGelu has a type in the model."""
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("QuickGelu", ["a"], ["b"], "gelu", domain="com.microsoft"),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    spec = (TensorProto.FLOAT, [4])
    return model(nodes, {"x": spec}, {"y": spec}, domains={"com.microsoft": 1} if import_domain else None)


@pytest.mark.parametrize("cls", [_Gelu, _FuseGelu])
@pytest.mark.parametrize("import_domain", [True, False])
def test_a_python_provider_runs_a_quick_gelu(
    host: ModuleType, cls: type[ep.ExecutionProvider], import_domain: bool
) -> None:
    """Between nodes of the host's own."""
    x = np.linspace(-2, 2, 4, dtype=np.float32)
    [found] = run_once(
        host, cls, _between(import_domain), {"x": x}, fallback=True, optimize=host is not onnxruntime
    )
    np.testing.assert_allclose(found, x / (1 + np.exp(1.702 * x)), rtol=1e-6)


def _refused(nodes: list[onnx.NodeProto]) -> str:
    spec = (TensorProto.FLOAT, [4])
    bad = model(nodes, {"x": spec}, {"y": spec}, domains={"com.microsoft": 1})
    with pytest.raises(Exception) as raised:
        run_once(ort_abi, _Gelu, bad, {"x": np.ones(4, np.float32)}, fallback=True)
    with pytest.raises(Exception):  # noqa: B017
        run_once(onnxruntime, _Gelu, bad, {"x": np.ones(4, np.float32)}, fallback=True)
    return str(raised.value)


def test_nodes_are_held_against_their_schemas() -> None:
    """As in stock, when the model is read."""
    gelu = {"domain": "com.microsoft", "name": "gelu"}
    unknown = _refused([helper.make_node("QuickGelu", ["x"], ["y"], beta=1.0, **gelu)])
    assert "'gelu'" in unknown and "no attribute 'beta'" in unknown
    many = _refused([helper.make_node("QuickGelu", ["x", "x"], ["y"], **gelu)])
    assert "'gelu'" in many and "2 inputs" in many


# ---- channels last ----

U8, SCALE, ZERO = TensorProto.UINT8, np.float32(0.5), np.uint8(1)
MS = {"domain": "com.microsoft"}
POOL = {**MS, "kernel_shape": [2, 2]}
QUANTIZED = ["s", "z", "s", "z"]


@pytest.mark.parametrize(
    ("kind", "nodes"),
    [
        (
            TensorProto.FLOAT,
            [helper.make_node("FusedConv", ["x", "w"], ["y"], activation="Relu", domain="com.microsoft")],
        ),
        (U8, [helper.make_node("QLinearAveragePool", ["x", *QUANTIZED], ["y"], **POOL)]),
        (
            U8,
            [
                helper.make_node("QLinearAveragePool", ["x", *QUANTIZED], ["a"], **POOL),
                helper.make_node("QLinearSigmoid", ["a", *QUANTIZED], ["b"], **MS),
                helper.make_node(
                    "QLinearGlobalAveragePool", ["b", *QUANTIZED], ["y"], domain="com.microsoft"
                ),
            ],
        ),
    ],
    ids=["FusedConv", "QLinearAveragePool", "chain"],
)
def test_nodes_are_converted_to_channels_last_as_in_stock(kind: int, nodes: list[onnx.NodeProto]) -> None:
    """The same operators, versions and attributes, with types."""
    seen = []

    class Look(ep.ExecutionProvider):
        name = "ContribLayoutExecutionProvider"
        preferred_data_layout = "NHWC"

        def get_capability(self, graph: Any) -> Any:
            asked[:] = [
                (n.domain, n.op_type, n.since_version, n.attributes, [each.dtype for each in n.outputs])
                for n in graph.nodes
            ]
            return [[node] for node in graph.nodes]

        def compile(self, graph: Any) -> Any:
            return lambda *arrays: None

    constants = {"w": np.ones((3, 2, 2, 2), np.float32), "s": np.asarray(SCALE), "z": np.asarray(ZERO)}
    made = model(nodes, {"x": (kind, [1, 2, 5, 4])}, {"y": (kind, None)}, constants, 18, {"com.microsoft": 1})
    for host in (onnxruntime, ort_abi):
        asked: list[Any] = []
        with registered(host, Look):
            session = open_session(host, Look, made, fallback=True, optimize=False)
            del session
            gc.collect()
        seen.append(asked)
    assert [each[0] for each in seen[0]].count("com.ms.internal.nhwc") == (2 if len(nodes) > 1 else 1)
    assert seen[0] == seen[1]
