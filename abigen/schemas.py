"""The table of operator schemas (`op_schemas.c`): ONNX's, read from the `onnx` package at build time, and
those of onnxruntime."""

from __future__ import annotations

import math

import onnx
from onnx import defs

from abigen.contrib import contrib_schemas

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
    "QLinearAveragePool": (1,),
    "QLinearConv": (10,),
    "Resize": (11, 13, 18, 19),
    "SpaceToDepth": (1, 13),
}
"""The operators, and their versions, that stock onnxruntime registers a second time, for nodes with channels
last. QLinearAveragePool is that of com.microsoft. Stock has a QLinearConvTranspose there too, which is in no
other domain."""


class _Texts:
    """Zero-terminated texts behind each other. A text is known by its offset; 0 stands for NULL."""

    def __init__(self) -> None:
        self.offsets: dict[str, int] = {}
        self.size = 1

    def offset(self, text: str) -> str:
        """Of a text that is in it from now on."""
        if text not in self.offsets:
            self.offsets[text] = self.size
            self.size += len(text.encode()) + 1
        return str(self.offsets[text])

    def text(self) -> str:
        """The definition."""
        lines = "".join(f'    {_quoted(text)} "\\0"\n' for text in self.offsets)
        return f'const char op_schema_texts[] =\n    "\\0"\n{lines};\n'


class _Pool:
    """One constant C array in which lists of items are kept, each distinct list once: operator versions share
    most of theirs. A list is known by where it starts."""

    def __init__(self, c_type: str, name: str) -> None:
        self.c_type = c_type
        self.name = name
        self.items: list[str] = []
        self.starts: dict[tuple[str, ...], int] = {}

    def start(self, items: list[str]) -> str:
        """Where the list starts; 0 for an empty one."""
        if not items:
            return "0"
        if tuple(items) not in self.starts:
            self.starts[tuple(items)] = len(self.items)
            self.items += items
        return str(self.starts[tuple(items)])

    def text(self) -> str:
        """The definition."""
        return f"const {self.c_type} {self.name}[] = {{\n    " + ",\n    ".join(self.items) + "};\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _float(value: float) -> str:
    if math.isinf(value) or math.isnan(value):
        raise ValueError(f"default of an attribute is {value}")
    return f"{value!r}f"


def _formal(formal: defs.OpSchema.FormalParameter, texts: _Texts) -> str:
    homogeneous = "true" if formal.is_homogeneous else "false"
    option = _OPTIONS[formal.option]
    names = f"{texts.offset(formal.name)}, {texts.offset(formal.type_str)}"
    return f"{{{names}, {option}, {formal.min_arity}, {homogeneous}}}"


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


def _attribute(attribute: defs.OpSchema.Attribute, texts: _Texts, lists: _Pool, ints: _Pool) -> str:
    value = attribute.default_value
    kind = value.type
    strings = [texts.offset(text.decode()) for text in value.strings]
    fields = [
        texts.offset(attribute.name),
        str(attribute.type.value),  # type: ignore[attr-defined]  # the stub lacks it
        "true" if attribute.required else "false",
        "true" if kind in _DEFAULT_KINDS else "false",
        _float(value.f) if kind == onnx.AttributeProto.FLOAT else "0",
        str(value.i) if kind == onnx.AttributeProto.INT else "0",
        texts.offset(value.s.decode()) if kind == onnx.AttributeProto.STRING else "0",
        ints.start([str(number) for number in value.ints]),
        lists.start(strings),
        str(len(value.ints)),
        str(len(strings)),
    ]
    return "{" + ", ".join(fields) + "}"


def _schemas() -> list[tuple[str, defs.OpSchema]]:
    """The domain that each schema is listed under, and the schema, in the table's order."""
    schemas = [*defs.get_all_schemas_with_history(), *contrib_schemas()]
    listed = [(schema.domain, schema) for schema in schemas]
    listed += [
        (NHWC_DOMAIN, schema)
        for schema in schemas
        if schema.domain == ("com.microsoft" if schema.name == "QLinearAveragePool" else "")
        and schema.since_version in NHWC_VERSIONS.get(schema.name, ())
    ]
    return sorted(listed, key=lambda row: (row[0], row[1].name.encode(), row[1].since_version))


def _newest_versions() -> dict[str, int]:
    """The newest version of each of ONNX's domains."""
    newest = {"ai.onnx.training": 1}  # its operators are in no table of the package any more
    for schema in defs.get_all_schemas_with_history():
        newest[schema.domain] = max(newest.get(schema.domain, 0), schema.since_version)
    return newest | {"": defs.onnx_opset_version()}


def op_schemas_c() -> str:
    """The text of `op_schemas.c`, for the types of `schema/schema_packed.h`."""
    texts = _Texts()
    lists = _Pool("uint16_t", "op_schema_lists")
    ints = _Pool("int64_t", "op_schema_ints")
    formals = _Pool("PackedFormal", "op_schema_formals")
    constraints = _Pool("PackedConstraint", "op_schema_constraints")
    attributes = _Pool("PackedAttr", "op_schema_attributes")
    rows = []
    for domain, schema in _schemas():
        its_constraints = []
        for constraint in schema.type_constraints:
            allowed = [texts.offset(text) for text in constraint.allowed_type_strs]
            name = texts.offset(constraint.type_param_str)
            its_constraints.append(f"{{{name}, {lists.start(allowed)}, {len(allowed)}}}")
        its_attributes = [
            _attribute(attribute, texts, lists, ints) for _, attribute in sorted(schema.attributes.items())
        ]
        limits = (schema.min_input, schema.max_input, schema.min_output, schema.max_output)
        fields = [
            texts.offset(domain),
            texts.offset(schema.name),
            str(schema.since_version),
            "true" if schema.deprecated else "false",
            *map(str, limits),
            formals.start([_formal(formal, texts) for formal in schema.inputs]),
            formals.start([_formal(formal, texts) for formal in schema.outputs]),
            constraints.start(its_constraints),
            attributes.start(its_attributes),
            *(str(len(part)) for part in (schema.inputs, schema.outputs, its_constraints, its_attributes)),
        ]
        rows.append("    {" + ", ".join(fields) + "},\n")
    newest = [f"    {{{_quoted(domain)}, {version}}},\n" for domain, version in _newest_versions().items()]
    pools = (lists, ints, formals, constraints, attributes)
    if max(texts.size, *(len(pool.items) for pool in pools)) >= 2**16:
        raise ValueError("the table of operator schemas is too large for numbers of 16 bits")
    room = {
        "const char*": ("lists", len(lists.items)),
        "OpSchemaFormal": ("formals", len(formals.items)),
        "OpSchemaConstraint": ("constraints", len(constraints.items)),
        "OpSchemaAttr": ("attributes", len(attributes.items)),
        "OpSchema": ("schemas", len(rows)),
    }
    return (
        f"/* Generated by abigen from onnx {onnx.__version__}; not edited, not committed. */\n"
        '#include "schema/packed.h"\n\n'
        + texts.text()
        + "".join(pool.text() for pool in pools)
        + f"const PackedSchema op_schema_rows[] = {{\n{''.join(rows)}}};\n"
        f"const size_t op_schema_count = {len(rows)};\n"
        + "".join(f"{c_type} unpacked_{name}[{size}];\n" for c_type, (name, size) in room.items())
        + f"const OpSchemaDomain op_schema_domains[] = {{\n{''.join(newest)}}};\n"
        f"const size_t op_schema_domain_count = {len(newest)};\n"
        f"const int op_schema_newest_ir_version = {onnx.IR_VERSION};\n"
    )
