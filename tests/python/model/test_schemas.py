"""`ort_abi.schemas`: the operator schemas of the host, in Python."""

from __future__ import annotations

import dataclasses

import pytest
from onnx import defs

import ort_abi
from ort_abi import schemas

EVERY = sorted(
    defs.get_all_schemas_with_history(), key=lambda schema: (schema.domain, schema.name, schema.since_version)
)


def test_every_schema_is_as_onnx_says() -> None:
    assert len(EVERY) > 500
    for known in EVERY:
        found = schemas.get(known.name, known.since_version, known.domain)
        assert (found.op_type, found.domain, found.since_version) == (
            known.name,
            known.domain,
            known.since_version,
        )
        assert [(c.name, c.types) for c in found.type_constraints] == [
            (c.type_param_str, tuple(c.allowed_type_strs)) for c in known.type_constraints
        ]
        names = [c.name for c in found.type_constraints]
        for formals, others in ((found.inputs, known.inputs), (found.outputs, known.outputs)):
            assert [formal.name for formal in formals] == [other.name for other in others]
            assert [formal.type_constraint and formal.type_constraint.name for formal in formals] == [
                other.type_str if other.type_str in names else None for other in others
            ]


def test_constraints_know_their_inputs_and_outputs() -> None:
    gather = ort_abi.schemas.get("Gather", 21)
    assert gather.since_version == 13
    assert [formal.name for formal in gather.inputs] == ["data", "indices"]
    indices = gather.type_constraint("Tind")
    assert indices.types == ("tensor(int32)", "tensor(int64)")
    assert (indices.inputs, indices.outputs) == ((1,), ())
    assert (gather.type_constraint("T").inputs, gather.type_constraint("T").outputs) == ((0,), (0,))
    assert gather.inputs[1].type_constraint is gather.type_constraint("Tind")


def test_a_fixed_type_has_no_constraint() -> None:
    reshape = schemas.get("Reshape", 13)
    assert reshape.inputs[1].name == "shape"
    assert reshape.inputs[1].type_constraint is None
    assert reshape.inputs[0].type_constraint is not None


def test_the_onnx_domain_has_two_names() -> None:
    assert schemas.get("Softmax", 12, "ai.onnx") == schemas.get("Softmax", 12)
    assert schemas.get("Softmax", 12, "ai.onnx").domain == ""
    assert schemas.get("LabelEncoder", 3, "ai.onnx.ml").domain == "ai.onnx.ml"


@pytest.mark.parametrize(
    ("op_type", "version", "domain"), [("NoSuchOp", 21, ""), ("Gelu", 19, ""), ("Add", 14, "com.nobody")]
)
def test_an_unknown_operator_is_a_key_error_that_names_it(op_type: str, version: int, domain: str) -> None:
    with pytest.raises(KeyError, match=f"'{op_type}' in opset {version} of {domain or 'ai.onnx'}"):
        schemas.get(op_type, version, domain)


def test_an_unknown_type_parameter_is_a_key_error_that_lists_them() -> None:
    with pytest.raises(KeyError, match="Gather of version 13 has no 'T2'; it has T, Tind"):
        schemas.get("Gather", 13).type_constraint("T2")


def test_a_name_with_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="the operator must not contain a NUL"):
        schemas.get("Add\0Mul", 14)


def test_schemas_cannot_be_changed() -> None:
    add = schemas.get("Add", 14)
    for part, field in ((add, "since_version"), (add.inputs[0], "name"), (add.type_constraints[0], "name")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, field, None)
