"""The table of ONNX operator schemas (`op_schemas.c`), read from the `onnx` package at build time."""

from __future__ import annotations

import math

import onnx
from onnx import defs

_OPTIONS = {
    defs.OpSchema.FormalParameterOption.Single: "OP_SCHEMA_SINGLE",
    defs.OpSchema.FormalParameterOption.Optional: "OP_SCHEMA_OPTIONAL",
    defs.OpSchema.FormalParameterOption.Variadic: "OP_SCHEMA_VARIADIC",
}


NHWC_DOMAIN = "com.ms.internal.nhwc"

NHWC_VERSIONS = {
    "AveragePool": (7, 10, 11, 19),
    "BatchNormalization": (7, 9, 14, 15),
    "Conv": (1, 11),
    "ConvTranspose": (1, 11),
    "DepthToSpace": (1, 11, 13),
    "GlobalAveragePool": (1,),
    "GlobalLpPool": (2,),
    "GlobalMaxPool": (1,),
    "GridSample": (16, 20),
    "InstanceNormalization": (6,),
    "LRN": (1, 13),
    "LpPool": (11, 18),
    "MaxPool": (1, 8, 10, 11, 12),
    "MaxUnpool": (9, 11),
    "QLinearConv": (10,),
    "Resize": (11, 13, 18, 19),
    "SpaceToDepth": (1, 13),
}
"""The operators, and their versions, that stock onnxruntime registers a second time, for nodes with channels
last. It has its own QLinearAveragePool and QLinearConvTranspose there too, which `onnx` does not know."""


class _Arrays:
    """Constant C arrays, each distinct one written once: operator versions share most of theirs."""

    def __init__(self, c_type: str, prefix: str) -> None:
        self.c_type = c_type
        self.prefix = prefix
        self.names: dict[tuple[str, ...], str] = {}

    def name(self, items: list[str]) -> str:
        """Name of the array that holds `items`, `NULL` for an empty one."""
        if not items:
            return "NULL"
        return self.names.setdefault(tuple(items), f"{self.prefix}_{len(self.names)}")

    def text(self) -> str:
        """The definitions."""
        return "".join(
            f"static const {self.c_type} {name}[] = {{{', '.join(items)}}};\n"
            for items, name in self.names.items()
        )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _float(value: float) -> str:
    if math.isinf(value) or math.isnan(value):
        raise ValueError(f"default of an attribute is {value}")
    return f"{value!r}f"


def _formal(formal: defs.OpSchema.FormalParameter) -> str:
    homogeneous = "true" if formal.is_homogeneous else "false"
    option = _OPTIONS[formal.option]
    return (
        f"{{{_quoted(formal.name)}, {_quoted(formal.type_str)}, {option}, {formal.min_arity}, {homogeneous}}}"
    )


_DEFAULT_KINDS = frozenset(
    {
        onnx.AttributeProto.FLOAT,
        onnx.AttributeProto.INT,
        onnx.AttributeProto.STRING,
        onnx.AttributeProto.INTS,
        onnx.AttributeProto.STRINGS,
    }
)
"""The kinds of defaults that operators have, all with a member in `OpSchemaAttr`."""


def _attribute(attribute: defs.OpSchema.Attribute, ints: _Arrays, texts: _Arrays) -> str:
    value = attribute.default_value
    kind = value.type
    strings = [_quoted(text.decode()) for text in value.strings]
    fields = [
        _quoted(attribute.name),
        str(attribute.type.value),  # type: ignore[attr-defined]  # the stub lacks it
        "true" if attribute.required else "false",
        "true" if kind in _DEFAULT_KINDS else "false",
        _float(value.f) if kind == onnx.AttributeProto.FLOAT else "0",
        str(value.i) if kind == onnx.AttributeProto.INT else "0",
        _quoted(value.s.decode()) if kind == onnx.AttributeProto.STRING else "NULL",
        ints.name([str(number) for number in value.ints]),
        texts.name(strings),
        str(len(value.ints) + len(strings)),
    ]
    return "{" + ", ".join(fields) + "}"


def _schemas() -> list[tuple[str, defs.OpSchema]]:
    """The domain that each schema is listed under, and the schema, in the table's order."""
    schemas = defs.get_all_schemas_with_history()
    listed = [(schema.domain, schema) for schema in schemas]
    listed += [
        (NHWC_DOMAIN, schema)
        for schema in schemas
        if schema.domain == "" and schema.since_version in NHWC_VERSIONS.get(schema.name, ())
    ]
    return sorted(listed, key=lambda row: (row[0], row[1].name.encode(), row[1].since_version))


def _newest_versions() -> dict[str, int]:
    """The newest version of each of ONNX's domains."""
    newest = {"ai.onnx.training": 1}  # its operators are in no table of the package any more
    for schema in defs.get_all_schemas_with_history():
        newest[schema.domain] = max(newest.get(schema.domain, 0), schema.since_version)
    return newest | {"": defs.onnx_opset_version()}


def op_schemas_c() -> str:
    """The text of `op_schemas.c`, for the types of `model/op_schema.h`."""
    types = _Arrays("char* const", "types")
    ints = _Arrays("int64_t", "ints")
    formals = _Arrays("OpSchemaFormal", "formals")
    constraints = _Arrays("OpSchemaConstraint", "constraints")
    attributes = _Arrays("OpSchemaAttr", "attributes")
    rows = []
    for domain, schema in _schemas():
        its_constraints = []
        for constraint in schema.type_constraints:
            allowed = [_quoted(text) for text in constraint.allowed_type_strs]
            name = _quoted(constraint.type_param_str)
            its_constraints.append(f"{{{name}, {types.name(allowed)}, {len(allowed)}}}")
        its_attributes = [
            _attribute(attribute, ints, types) for _, attribute in sorted(schema.attributes.items())
        ]
        limits = (schema.min_input, schema.max_input, schema.min_output, schema.max_output)
        fields = [
            _quoted(domain),
            _quoted(schema.name),
            str(schema.since_version),
            "true" if schema.deprecated else "false",
            *map(str, limits),
            formals.name([_formal(formal) for formal in schema.inputs]),
            formals.name([_formal(formal) for formal in schema.outputs]),
            constraints.name(its_constraints),
            attributes.name(its_attributes),
            *(str(len(part)) for part in (schema.inputs, schema.outputs, its_constraints, its_attributes)),
        ]
        rows.append("    {" + ", ".join(fields) + "},\n")
    newest = [f"    {{{_quoted(domain)}, {version}}},\n" for domain, version in _newest_versions().items()]
    return (
        f"/* Generated by abigen from onnx {onnx.__version__}; not edited, not committed. */\n"
        '#include "model/op_schema.h"\n\n'
        + types.text()
        + ints.text()
        + formals.text()
        + constraints.text()
        + attributes.text()
        + f"\nconst OpSchema op_schemas[] = {{\n{''.join(rows)}}};\n"
        f"const size_t op_schema_count = {len(rows)};\n"
        f"const OpSchemaDomain op_schema_domains[] = {{\n{''.join(newest)}}};\n"
        f"const size_t op_schema_domain_count = {len(newest)};\n"
        f"const int op_schema_newest_ir_version = {onnx.IR_VERSION};\n"
    )
