"""`OrtEpApi::GetOpSchema` on every version of every operator: as `onnx` says, as stock onnxruntime says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from onnx import defs

from tests.support.native_model import NativeHost, OrtError

Key = tuple[str, int, str]
INVALID_ARGUMENT = 2
NEWEST = 10_000
NHWC = "com.ms.internal.nhwc"


class Constraint(NamedTuple):
    """All that the OpSchemaTypeConstraint_* slots tell."""

    name: str
    types: list[str]
    inputs: list[int]
    outputs: list[int]


class Schema(NamedTuple):
    """All that the OpSchema_* slots tell; formals are (name, name of the type parameter or None)."""

    since_version: int
    inputs: list[tuple[str, str | None]]
    outputs: list[tuple[str, str | None]]
    constraints: list[Constraint]


class SchemaReader:
    """Reads schemas through a host's OrtEpApi."""

    def __init__(self, host: NativeHost) -> None:
        self.host = host
        self.ffi = host.ffi
        self.ep_api: Any = host.api.GetEpApi()

    def get(self, slot: str, c_type: str, *arguments: Any) -> Any:
        """A slot of OrtEpApi whose last parameter is where the result goes."""
        out = self.ffi.new(f"{c_type}*")
        self.host.check(getattr(self.ep_api, slot)(*arguments, out))
        return out[0]

    def text(self, pointer: Any) -> str:
        """A borrowed C string."""
        found: bytes = self.ffi.string(pointer)
        return found.decode()

    def open(self, name: str, version: int, domain: str) -> Any:
        """The host's schema, to be released, or NULL."""
        return self.get("GetOpSchema", "OrtOpSchema*", name.encode(), version, domain.encode())

    def list_of(self, slot: str, c_type: str, constraint: Any) -> list[Any]:
        """What a slot gives as an array and its length."""
        array, count = self.ffi.new(f"{c_type}**"), self.ffi.new("size_t*")
        self.host.check(getattr(self.ep_api, f"OpSchemaTypeConstraint_{slot}")(constraint, array, count))
        return [array[0][i] for i in range(count[0])]

    def constraint_name(self, constraint: Any) -> str | None:
        """The name of the type parameter; None for NULL."""
        if constraint == self.ffi.NULL:
            return None
        return self.text(self.get("OpSchemaTypeConstraint_GetTypeParamName", "const char*", constraint))

    def formals(self, schema: Any, what: str) -> list[tuple[str, str | None]]:
        """`what` is Input or Output."""
        return [
            (
                self.text(self.get(f"OpSchema_Get{what}Name", "const char*", schema, i)),
                self.constraint_name(
                    self.get(
                        f"OpSchema_Get{what}TypeConstraint", "const OrtOpSchemaTypeConstraint*", schema, i
                    )
                ),
            )
            for i in range(self.get(f"OpSchema_GetNum{what}s", "size_t", schema))
        ]

    def constraints(self, schema: Any) -> list[Any]:
        """The handles of the type constraints."""
        count = self.get("OpSchema_GetTypeConstraintCount", "size_t", schema)
        c_type = "const OrtOpSchemaTypeConstraint*"
        return [self.get("OpSchema_GetTypeConstraint", c_type, schema, i) for i in range(count)]

    def read(self, name: str, version: int, domain: str) -> Schema | None:
        """Everything about a schema; None where the host has none."""
        schema = self.open(name, version, domain)
        if schema == self.ffi.NULL:
            return None
        found = Schema(
            self.get("OpSchema_GetSinceVersion", "int", schema),
            self.formals(schema, "Input"),
            self.formals(schema, "Output"),
            [
                Constraint(
                    self.constraint_name(constraint) or "",
                    [self.text(t) for t in self.list_of("GetAllowedTypes", "const char* const", constraint)],
                    self.list_of("GetInputIndices", "const size_t", constraint),
                    self.list_of("GetOutputIndices", "const size_t", constraint),
                )
                for constraint in self.constraints(schema)
            ],
        )
        self.ep_api.ReleaseOpSchema(schema)
        return found


def onnx_schema(schema: defs.OpSchema) -> Schema:
    """The same out of the `onnx` package."""
    names = {constraint.type_param_str for constraint in schema.type_constraints}
    inputs, outputs = [
        [(formal.name, formal.type_str if formal.type_str in names else None) for formal in formals]
        for formals in (schema.inputs, schema.outputs)
    ]
    return Schema(
        schema.since_version,
        inputs,
        outputs,
        [
            Constraint(
                constraint.type_param_str,
                list(constraint.allowed_type_strs),
                [i for i, formal in enumerate(inputs) if formal[1] == constraint.type_param_str],
                [i for i, formal in enumerate(outputs) if formal[1] == constraint.type_param_str],
            )
            for constraint in schema.type_constraints
        ],
    )


@pytest.fixture(scope="module")
def ours(native_host: NativeHost) -> SchemaReader:
    """Schemas of this tree's host."""
    return SchemaReader(native_host)


@pytest.fixture(scope="module")
def stock() -> Iterator[SchemaReader]:
    """Schemas of the installed onnxruntime, whose registry is filled when there is an environment."""
    onnxruntime = pytest.importorskip("onnxruntime", minversion="1.25")
    [library] = Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*")
    host = NativeHost(library)
    environment = host.get("CreateEnv", "OrtEnv*", 3, b"schemas")
    yield SchemaReader(host)
    host.api.ReleaseEnv(environment)


def key(schema: defs.OpSchema) -> Key:
    """How a schema is asked for."""
    return schema.name, schema.since_version, schema.domain


EVERY = sorted(defs.get_all_schemas_with_history(), key=key)
PREVIEW = ("ai.onnx.preview", "ai.onnx.preview.training")
"""Domains that stock onnxruntime is built without. We have all that the `onnx` package has."""
STOCKS_OWN = {("LayerNormalization", 1), ("MeanVarianceNormalization", 1), ("ThresholdedRelu", 1)}
"""Versions that stock adds to ONNX's, for models older than the operators. We have only ONNX's."""


def test_every_version_of_every_operator_is_as_onnx_says(ours: SchemaReader) -> None:
    assert len(EVERY) > 500
    for schema in EVERY:
        assert ours.read(*key(schema)) == onnx_schema(schema), key(schema)


def test_every_version_of_every_operator_is_as_stock_says(ours: SchemaReader, stock: SchemaReader) -> None:
    newest = max(schema.since_version for schema in EVERY if stock.read(*key(schema)) is not None)
    compared = 0
    for schema in EVERY:
        known = stock.read(*key(schema))
        if known is None:  # `onnx` may be newer than the one in stock
            assert schema.domain in PREVIEW or schema.since_version > newest, key(schema)
            continue
        assert ours.read(*key(schema)) == known, key(schema)
        compared += 1
    assert compared > 500


@pytest.mark.parametrize("version", [-1, 0, 5, 10, 12, 17, 21])
def test_versions_between_are_as_stock_says(ours: SchemaReader, stock: SchemaReader, version: int) -> None:
    for name, domain in sorted({(schema.name, schema.domain) for schema in EVERY}):
        known = stock.read(name, version, domain)
        if known is not None and (name, known.since_version) in STOCKS_OWN:
            known = None
        if domain not in PREVIEW:
            assert ours.read(name, version, domain) == known, (name, domain)


@pytest.mark.parametrize("version", range(1, 25))
def test_operators_with_channels_last_are_stocks(
    ours: SchemaReader, stock: SchemaReader, version: int
) -> None:
    found = 0
    for name in sorted({schema.name for schema in EVERY if schema.domain == ""}):
        known = stock.read(name, version, NHWC)
        assert ours.read(name, version, NHWC) == known, name
        found += known is not None
    assert found > 5


@pytest.mark.parametrize(
    ("name", "version", "domain", "since_version"),
    [
        ("Softmax", 12, "", 11),
        ("Softmax", 12, "ai.onnx", 11),
        ("LabelEncoder", 3, "ai.onnx.ml", 2),
        ("Upsample", 20, "", 10),  # deprecated
        ("Gelu", 19, "", None),
        ("NoSuchOp", NEWEST, "", None),
        ("add", NEWEST, "", None),
        ("", NEWEST, "", None),
        ("Add", NEWEST, "com.nobody", None),
        ("Add", NEWEST, "ai.onnx.ml", None),
    ],
)
def test_the_newest_version_that_is_not_too_new_is_found(
    ours: SchemaReader, stock: SchemaReader, name: str, version: int, domain: str, since_version: int | None
) -> None:
    for reader in (ours, stock):
        found = reader.read(name, version, domain)
        assert (None if found is None else found.since_version) == since_version


def test_a_formals_constraint_is_one_of_the_schemas(ours: SchemaReader, stock: SchemaReader) -> None:
    for reader in (ours, stock):
        schema = reader.open("Gather", 13, "")
        c_type = "const OrtOpSchemaTypeConstraint*"
        own = reader.constraints(schema)
        assert reader.get("OpSchema_GetInputTypeConstraint", c_type, schema, 1) == own[1]
        assert reader.get("OpSchema_GetOutputTypeConstraint", c_type, schema, 0) == own[0]
        reader.ep_api.ReleaseOpSchema(schema)


@pytest.mark.parametrize(
    ("slot", "c_type", "index"),
    [
        ("OpSchema_GetInputName", "const char*", 2),
        ("OpSchema_GetOutputName", "const char*", 1),
        ("OpSchema_GetInputTypeConstraint", "const OrtOpSchemaTypeConstraint*", 2),
        ("OpSchema_GetOutputTypeConstraint", "const OrtOpSchemaTypeConstraint*", 1),
        ("OpSchema_GetTypeConstraint", "const OrtOpSchemaTypeConstraint*", 1),
    ],
)
def test_an_index_out_of_range_is_an_invalid_argument(
    ours: SchemaReader, stock: SchemaReader, slot: str, c_type: str, index: int
) -> None:
    for reader in (ours, stock):
        schema = reader.open("Add", 14, "")
        reader.get(slot, c_type, schema, index - 1)
        with pytest.raises(OrtError) as raised:
            reader.get(slot, c_type, schema, index)
        assert raised.value.code == INVALID_ARGUMENT
        reader.ep_api.ReleaseOpSchema(schema)
