"""The table of operator schemas against the `onnx` package and the data that it was made from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnx
import pytest
from cffi import FFI
from onnx import defs

from abigen import native_build
from abigen.contrib import contrib_schemas
from abigen.schemas import NHWC_DOMAIN, NHWC_VERSIONS

EVERY = [*defs.get_all_schemas_with_history(), *contrib_schemas()]
HEADER = native_build.CSRC / "schema" / "schema.h"


@pytest.fixture(scope="module")
def schemas(native_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[FFI, Any]:
    """The table and its search functions as a library of their own."""
    import subprocess

    folder = tmp_path_factory.mktemp("op_schemas")
    library = folder / "libop_schemas.so"
    sources = [native_dir / "generated" / "op_schemas.c", HEADER.with_name("op_schema.c")]
    sources.append(native_build.CSRC / "base" / "fork.c")
    folders = [native_build.CSRC, native_build.CSRC / "include", native_dir / "generated"]
    includes = [f"-I{folder}" for folder in folders]
    command = ["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", *includes, *map(str, sources), "-o", str(library)]
    subprocess.run(command, check=True)
    ffi = FFI()
    declarations = re.sub(r"^#.*$", "", HEADER.read_text(), flags=re.MULTILINE)
    ffi.cdef(declarations.replace("extern const size_t", "extern size_t"))  # cffi would want its value
    return ffi, ffi.dlopen(str(library))


def find(schemas: tuple[FFI, Any], schema: defs.OpSchema) -> Any:
    """The table's row for a schema."""
    ffi, lib = schemas
    found = lib.op_schema_find(schema.domain.encode(), schema.name.encode(), schema.since_version)
    assert found != ffi.NULL, (schema.domain, schema.name, schema.since_version)
    return found


def text(ffi: FFI, pointer: Any) -> str:
    result: bytes = ffi.string(pointer)
    return result.decode()


def test_every_version_of_every_operator_is_found(schemas: tuple[FFI, Any]) -> None:
    ffi, lib = schemas
    channels_last = sum(map(len, NHWC_VERSIONS.values()))
    assert lib.op_schema_count == len(EVERY) + channels_last
    for schema in EVERY:
        found = find(schemas, schema)
        key = (schema.domain, schema.name, schema.since_version)
        assert (text(ffi, found.domain), text(ffi, found.name), found.since_version) == key
        assert found.deprecated == schema.deprecated
        limits = (found.min_input, found.max_input, found.min_output, found.max_output)
        assert limits == (schema.min_input, schema.max_input, schema.min_output, schema.max_output)


def test_operators_with_channels_last_are_listed_again(schemas: tuple[FFI, Any]) -> None:
    ffi, lib = schemas
    for name, versions in NHWC_VERSIONS.items():
        for version in versions:
            found = lib.op_schema_find(NHWC_DOMAIN.encode(), name.encode(), version)
            domain = b"com.microsoft" if name == "QLinearAveragePool" else b""
            plain = lib.op_schema_find(domain, name.encode(), version)
            assert (text(ffi, found.domain), found.since_version) == (NHWC_DOMAIN, version)
            assert (found.inputs, found.outputs, found.attributes) == (
                plain.inputs,
                plain.outputs,
                plain.attributes,
            )


def test_formals_and_constraints_are_those_of_the_source(schemas: tuple[FFI, Any]) -> None:
    ffi, _ = schemas
    for schema in EVERY:
        found = find(schemas, schema)
        pairs = [(found.inputs, found.input_count, schema.inputs)]
        pairs.append((found.outputs, found.output_count, schema.outputs))
        for formals, count, known in pairs:
            seen = [
                (text(ffi, f.name), text(ffi, f.type_str), f.option, f.min_arity, f.is_homogeneous)
                for f in (formals[i] for i in range(count))
            ]
            assert seen == [
                (f.name, f.type_str, f.option.value, f.min_arity, f.is_homogeneous)  # type: ignore[attr-defined]
                for f in known
            ]
        constraints = [found.constraints[i] for i in range(found.constraint_count)]
        assert [
            (text(ffi, c.name), [text(ffi, c.types[i]) for i in range(c.type_count)]) for c in constraints
        ] == [(c.type_param_str, list(c.allowed_type_strs)) for c in schema.type_constraints]


def test_attributes_are_those_of_the_source(schemas: tuple[FFI, Any]) -> None:
    ffi, lib = schemas
    simple = {onnx.AttributeProto.FLOAT: "default_float", onnx.AttributeProto.INT: "default_int"}
    for schema in EVERY:
        found = find(schemas, schema)
        assert found.attribute_count == len(schema.attributes)
        for name, attribute in schema.attributes.items():
            seen = lib.op_schema_attribute(found, name.encode())
            assert (seen.type, seen.required) == (attribute.type.value, attribute.required)  # type: ignore[attr-defined]
            value = attribute.default_value
            if value.type in simple:
                known = onnx.helper.get_attribute_value(value)
                assert getattr(seen, simple[value.type]) == pytest.approx(known)
            elif value.type == onnx.AttributeProto.STRING:
                assert text(ffi, seen.default_string) == value.s.decode()
            elif value.type == onnx.AttributeProto.INTS:
                assert [seen.default_ints[i] for i in range(seen.default_count)] == list(value.ints)
            elif value.type == onnx.AttributeProto.STRINGS:
                listed = [ffi.string(seen.default_strings[i]) for i in range(seen.default_count)]
                assert listed == list(value.strings)
            assert seen.has_default == bool(value.name)


@pytest.mark.parametrize(
    ("domain", "name", "opset", "expected"),
    [
        (b"", b"Softmax", 12, 11),
        (b"", b"Softmax", 13, 13),
        (b"ai.onnx", b"Softmax", 10, 1),
        (None, b"Add", 6, 6),
        (b"", b"Add", 10_000, 14),
        (b"ai.onnx.ml", b"LabelEncoder", 3, 2),
    ],
)
def test_find_takes_the_newest_version_up_to_the_opset(
    schemas: tuple[FFI, Any], domain: bytes | None, name: bytes, opset: int, expected: int
) -> None:
    ffi, lib = schemas
    found = lib.op_schema_find(ffi.NULL if domain is None else domain, name, opset)
    assert found != ffi.NULL
    assert found.since_version == expected


@pytest.mark.parametrize(
    ("domain", "name", "opset"),
    [
        (b"", b"NoSuchOp", 20),
        (b"", b"", 20),
        (b"com.nobody", b"Add", 20),
        (b"", b"Gelu", 19),
        (b"", b"Add", 0),
    ],
)
def test_find_answers_null_for_what_is_not_there(
    schemas: tuple[FFI, Any], domain: bytes, name: bytes, opset: int
) -> None:
    ffi, lib = schemas
    assert lib.op_schema_find(domain, name, opset) == ffi.NULL


def test_variadic_formal_stands_for_all_further_ones(schemas: tuple[FFI, Any]) -> None:
    ffi, lib = schemas
    concat = lib.op_schema_find(b"", b"Concat", 13)
    assert lib.op_schema_input(concat, 7) == concat.inputs != ffi.NULL
    assert lib.op_schema_output(concat, 0) == concat.outputs
    assert lib.op_schema_output(concat, 1) == ffi.NULL
    constant = lib.op_schema_find(b"", b"Constant", 13)
    assert lib.op_schema_input(constant, 0) == ffi.NULL


def test_constraint_by_name(schemas: tuple[FFI, Any]) -> None:
    ffi, lib = schemas
    gather = lib.op_schema_find(b"", b"Gather", 13)
    indices = lib.op_schema_constraint(gather, b"Tind")
    assert [text(ffi, indices.types[i]) for i in range(indices.type_count)] == [
        "tensor(int32)",
        "tensor(int64)",
    ]
    assert lib.op_schema_constraint(gather, b"tensor(int64)") == ffi.NULL
