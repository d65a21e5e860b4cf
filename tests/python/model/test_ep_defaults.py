"""Nodes have the attributes that their operators have defaults for, in every host."""

from __future__ import annotations

import contextlib
import gc
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import HOSTS, OLD_STOCK, FuseAll, model, open_session, registered, run_once
from onnx import TensorProto, defs, helper

from ort_abi import ep


class Looks(FuseAll):
    """Remembers what it is shown, takes nothing."""

    name = "LooksExecutionProvider"
    found: dict[str, dict[str, Any]]

    def get_capability(self, graph: Any) -> Any:
        for node in graph.nodes:
            self.found.setdefault(node.name, dict(node.attributes))
        return []


def shown(host: ModuleType, model_bytes: bytes) -> dict[str, dict[str, Any]]:
    """The attributes of every node, by the node's name, as get_capability sees them."""
    Looks.found = {}
    with contextlib.suppress(Exception):  # most of these nodes nobody can run
        session = open_session(host, Looks, model_bytes, fallback=True, optimize=False)
        del session
    return Looks.found


def has_defaults(schema: defs.OpSchema) -> bool:
    return any(attribute.default_value.name for attribute in schema.attributes.values())


def required(attribute: defs.OpSchema.Attribute) -> Any:
    """Some value for an attribute that must be there; None for a graph."""
    kinds = onnx.AttributeProto
    some: dict[int, Any] = {
        kinds.FLOAT: 1.0,
        kinds.INT: 1,
        kinds.STRING: "a",
        kinds.FLOATS: [1.0],
        kinds.INTS: [1],
        kinds.STRINGS: ["a"],
        kinds.TENSOR: helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0]),
    }
    return some.get(attribute.type.value)  # type: ignore[attr-defined]


def of_type(schema: defs.OpSchema, type_str: str) -> onnx.TypeProto | None:
    """A tensor type that the formal may have; None when there is none."""
    allowed = next(
        (c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == type_str), None
    )
    names = {"float": TensorProto.FLOAT, "int64": TensorProto.INT64, "string": TensorProto.STRING}
    names |= {"bool": TensorProto.BOOL, "int32": TensorProto.INT32, "uint8": TensorProto.UINT8}
    for name, number in names.items():
        if f"tensor({name})" in (allowed or [type_str]):
            return helper.make_tensor_type_proto(number, None)
    return None


def bare_model(schema: defs.OpSchema) -> bytes | None:
    """One node of the operator with nothing but what it must have; None where that is no plain tensors."""
    inputs = {}
    for i in range(max(schema.min_input, 1 if schema.max_input else 0)):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        kind = of_type(schema, formal.type_str)
        if kind is None:
            return None
        inputs[f"x{i}"] = kind
    attributes = {
        name: required(attribute) for name, attribute in schema.attributes.items() if attribute.required
    }
    if None in attributes.values():
        return None
    outputs = [f"y{i}" for i in range(max(schema.min_output, 1))]
    node = helper.make_node(schema.name, list(inputs), outputs, name="n", domain=schema.domain, **attributes)
    declared = {}
    for i, name in enumerate(outputs):
        kind = of_type(schema, schema.outputs[min(i, len(schema.outputs) - 1)].type_str)
        if kind is None:
            return None
        declared[name] = kind
    version = schema.since_version
    opsets = {"": version if schema.domain == "" else 18}
    domains = {schema.domain: version} if schema.domain else {}
    return model([node], inputs, declared, opset=opsets[""], domains=domains)


def as_text(attributes: dict[str, Any]) -> list[str]:
    """Comparable whatever the order, and whatever arrays are among them."""
    return sorted(f"{name}={value!r}" for name, value in attributes.items())


@pytest.mark.skipif(OLD_STOCK, reason="knows older operators only")
@pytest.mark.slow
def test_every_operator_shows_what_stock_shows() -> None:
    compared, odd = 0, []
    with registered(HOSTS["stock"], Looks), registered(HOSTS["ours"], Looks):
        for schema in defs.get_all_schemas_with_history():
            known = not schema.deprecated and schema.domain in ("", "ai.onnx.ml")
            bytes_ = bare_model(schema) if known and has_defaults(schema) else None
            if bytes_ is None:
                continue
            stock = shown(HOSTS["stock"], bytes_)
            if not stock:
                continue  # it refuses the model before it asks
            ours = shown(HOSTS["ours"], bytes_)
            compared += 1
            if "n" not in ours or as_text(ours["n"]) != as_text(stock["n"]):
                odd.append((schema.domain, schema.name, schema.since_version, ours, stock))
        gc.collect()  # no session outlives its provider
    assert not odd
    assert compared > 300


def test_defaults_in_subgraphs(host: ModuleType) -> None:
    branch = [helper.make_node("LRN", ["x"], ["t"], name="lrn", size=3, beta=0.5)]
    graph = helper.make_graph(
        branch, "branch", [], [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)]
    )
    nodes = [helper.make_node("If", ["c"], ["y"], name="if", then_branch=graph, else_branch=graph)]
    inputs = {"c": (np.bool_, []), "x": (np.float32, [1, 3, 2, 2])}
    with registered(host, Looks):
        found = shown(host, model(nodes, inputs, {"y": (np.float32, None)}))
    expected = {"size": 3, "beta": 0.5, "alpha": pytest.approx(1e-4), "bias": 1.0}
    assert found["lrn"] == expected


@pytest.mark.parametrize(
    ("op", "inputs", "name", "expected"),
    [
        ("MeanVarianceNormalization", ["x"], "axes", [0, 2, 3]),
        ("RNN", ["x", "x", "x"], "activations", ["Tanh", "Tanh"]),
    ],
)
def test_defaults_that_are_lists(
    host: ModuleType, op: str, inputs: list[str], name: str, expected: list[Any]
) -> None:
    node = helper.make_node(op, inputs, ["y"], name="n")
    with registered(host, Looks):
        found = shown(host, model([node], {"x": (np.float32, None)}, {"y": (np.float32, None)}))
    assert list(found["n"][name]) == expected


def test_a_kernel_reads_a_default_list(host: ModuleType) -> None:
    class Kernels(ep.ExecutionProvider):
        name = "DefaultsExecutionProvider"

        @ep.kernel("MeanVarianceNormalization", (13, None))
        def mvn(x: Any, *, axes: Any) -> Any:
            return x + np.float32(sum(axes))

    x = np.zeros((1, 2, 1, 1), np.float32)
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"])
    bytes_ = model([node], {"x": (np.float32, x.shape)}, {"y": (np.float32, x.shape)})
    (y,) = run_once(host, Kernels, bytes_, {"x": x})
    assert y.tolist() == [[[[5.0]], [[5.0]]]]
