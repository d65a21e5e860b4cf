"""One node of an operator that stock onnxruntime adds to ONNX's, and what a provider sees of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import onnx
from ep_support import open_session
from onnx import TensorProto, defs, helper

from abigen.contrib import contrib_schemas
from ort_abi import ep

Types = dict[str, str]
"""Type parameter -> the type that it stands for."""

SCHEMAS = {(schema.domain, schema.name): schema for schema in contrib_schemas()}

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "CausalConvWithState": {"channels_last": 1, "state_update_capacity": 1},
    "NGramHashMapping": {"max_ngram_size": 2},
    "RMSNormRotary": {"rotary_embedding_dim": 2},
    "SparseAttentionIndexer": {"policy_mode": "qsa", "token_budget": 4},
    "VarlenNGramHashMapping": {"max_ngram_size": 2},
}
"""What stock's shape inference wants beyond one number for each required attribute."""


def element_type(text: str) -> int:
    """TensorProto's number of "tensor(float)"."""
    name = text[text.index("(") + 1 : -1].upper()
    return int(TensorProto.DataType.Value(name))


def _body() -> onnx.GraphProto:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "qr"]
    return helper.make_graph([helper.make_node("Identity", ["q"], ["r"])], "body", value[:1], value[1:])


def required_attributes(schema: defs.OpSchema) -> dict[str, Any]:
    """A value for each attribute that a node must have."""
    strings = {"activation": "relu", "pad_value": "#"}
    found = {}
    for name, attribute in schema.attributes.items():
        kind: str = attribute.type.name  # type: ignore[attr-defined]
        values = {"INT": 1, "INTS": [1, 1], "STRING": strings.get(name, "a"), "GRAPH": _body()}
        if attribute.required:
            found[name] = values[kind]
    return found | ATTRIBUTES.get(schema.name, {})


def type_choices(schema: defs.OpSchema) -> Iterator[Types]:
    """The first types of all parameters; then each other type of one of them."""
    allowed = {each.type_param_str: list(each.allowed_type_strs) for each in schema.type_constraints}
    first = {name: types[0] for name, types in allowed.items()}
    yield first
    for name, types in allowed.items():
        yield from ({**first, name: each} for each in types[1:] if "complex" not in each)


def one_node(
    schema: defs.OpSchema, types: Types, full: bool, attributes: dict[str, Any] | None = None
) -> bytes:
    """A model of the node 'n' with inputs of unknown shape; `full`: also with all that is optional."""
    optional = defs.OpSchema.FormalParameterOption.Optional
    inputs, outputs = (
        ["" if each.option == optional and not full else f"{side}{i}" for i, each in enumerate(formals)]
        for side, formals in (("i", schema.inputs), ("o", schema.outputs))
    )
    while inputs and not inputs[-1]:
        inputs.pop()
    while len(outputs) > 1 and not outputs[-1]:
        outputs.pop()
    values = []
    for name, formal in zip(inputs, schema.inputs, strict=False):
        text = types.get(formal.type_str, formal.type_str)
        make = helper.make_sparse_tensor_value_info if "sparse" in text else helper.make_tensor_value_info
        if name:
            values.append(make(name, element_type(text), None))  # type: ignore[operator]
    made = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    node = helper.make_node(
        schema.name,
        inputs,
        outputs,
        "n",
        domain=schema.domain,
        **(required_attributes(schema) | (attributes or {})),
    )
    domains = {"": 18, schema.domain: 18 if schema.domain == "" else 1}
    opsets = [helper.make_opsetid(*item) for item in domains.items()]
    graph = helper.make_graph([node], "g", values, made)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


class Seen(NamedTuple):
    """What a provider sees of the node: its attributes, the element types of its outputs (None: unknown)."""

    attributes: dict[str, Any]
    outputs: list[int | None]


class Listener(ep.ExecutionProvider):
    """Claims nothing."""

    name = "ContribListenerExecutionProvider"
    seen: ClassVar[list[Seen]] = []

    def get_capability(self, graph: Any) -> Any:
        for node in graph.nodes:
            if node.name == "n":
                outputs = [getattr(each and each.type, "element_type", None) for each in node.outputs]
                subgraphs = {*node.subgraphs}
                attributes = {k: v for k, v in node.attributes.items() if k not in subgraphs}
                type(self).seen.append(Seen(attributes, [each or None for each in outputs]))
        return []


def listen(host: ModuleType, model: bytes) -> Seen | str:
    """What `Listener`, which is registered, sees of the model; an error's text if it is not asked. That
    nobody takes the node is no error here."""
    Listener.seen.clear()
    try:
        open_session(host, Listener, model, fallback=True, optimize=False)
    except Exception as error:
        return Listener.seen[0] if Listener.seen else str(error)
    return Listener.seen[0]


def every_model() -> Iterator[tuple[str, bytes]]:
    """What it is, and the model: each operator with few and all inputs, with each type of its parameters."""
    for (domain, name), schema in SCHEMAS.items():
        for full, types in itertools.product((False, True), type_choices(schema)):
            yield (
                f"{domain} {name}, {'all' if full else 'few'} inputs, {types}",
                one_node(schema, types, full),
            )
