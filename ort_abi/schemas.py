"""The operator schemas that the host knows: every version of every ONNX operator, and those of com.microsoft.

What a provider needs for kernels of several versions: which type parameters there are, which types they may
stand for, which inputs and outputs have them. Read through `OrtEpApi::GetOpSchema` (API 25) of this host.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

from ort_abi._lib import NULL, CData, check, encode, ep_api, ffi, lib, text

__all__ = ["Formal", "OpSchema", "TypeConstraint", "get", "operators"]


@dataclass(frozen=True, slots=True)
class TypeConstraint:
    """A type parameter of an operator."""

    name: str
    """Such as "T"."""
    types: tuple[str, ...]
    """The types that it may stand for, as ONNX writes them: "tensor(float)", "seq(tensor(int64))"."""
    inputs: tuple[int, ...]
    """The inputs that have this type."""
    outputs: tuple[int, ...]
    """The outputs that have this type."""


@dataclass(frozen=True, slots=True)
class Formal:
    """An input or output of an operator. A variadic one stands for all further ones."""

    name: str
    type_constraint: TypeConstraint | None
    """None: its type is fixed, as that of a shape is."""


@dataclass(frozen=True, slots=True)
class OpSchema:
    """One version of an operator."""

    op_type: str
    domain: str
    """"" for ONNX's own operators."""
    since_version: int
    """The first opset with this version of the operator."""
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    type_constraints: tuple[TypeConstraint, ...]

    def type_constraint(self, name: str) -> TypeConstraint:
        """The type parameter of that name. Raises KeyError if the operator has none."""
        for constraint in self.type_constraints:
            if constraint.name == name:
                return constraint
        names = ", ".join(constraint.name for constraint in self.type_constraints) or "none"
        raise KeyError(f"{self.op_type} of version {self.since_version} has no {name!r}; it has {names}")


@functools.cache
def operators() -> dict[str, frozenset[str]]:
    """The names of all operators that have a schema, by domain ("" is ONNX's own)."""
    found: dict[str, set[str]] = {}
    domain = ffi.new("const char**")
    for index in itertools.count():
        name = lib.ortabi_op_schema_name(index, domain)
        if name == NULL:
            break
        found.setdefault(text(domain[0]), set()).add(text(name))
    return {domain: frozenset(names) for domain, names in found.items()}


@functools.cache
def get(op_type: str, max_version: int, domain: str = "") -> OpSchema:
    """The newest version of an operator in opset `max_version` of `domain` ("" and "ai.onnx" are ONNX's own).

    Raises KeyError where neither the `onnx` package that this host was built with nor onnxruntime has one:
    for an unknown operator, for one that is newer, and for operators of custom domains.
    """
    out = ffi.new("OrtOpSchema**")
    name, in_domain = encode(op_type, "the operator"), encode(domain, "the domain")
    check(ep_api.GetOpSchema(name, max_version, in_domain, out))
    if out[0] == NULL:
        raise KeyError(f"there is no operator {op_type!r} in opset {max_version} of {domain or 'ai.onnx'}")
    try:
        return _read(out[0], op_type, "" if domain == "ai.onnx" else domain)
    finally:
        ep_api.ReleaseOpSchema(out[0])


def _read(schema: CData, op_type: str, domain: str) -> OpSchema:
    """copies."""
    constraints = tuple(
        _constraint(_get("OpSchema_GetTypeConstraint", _CONSTRAINT, schema, index))
        for index in range(_get("OpSchema_GetTypeConstraintCount", "size_t", schema))
    )
    by_name = {constraint.name: constraint for constraint in constraints}
    return OpSchema(
        op_type,
        domain,
        _get("OpSchema_GetSinceVersion", "int", schema),
        _formals(schema, "Input", by_name),
        _formals(schema, "Output", by_name),
        constraints,
    )


_CONSTRAINT = "const OrtOpSchemaTypeConstraint*"


def _constraint(constraint: CData) -> TypeConstraint:
    types, indices, count = ffi.new("const char* const**"), ffi.new("const size_t**"), ffi.new("size_t*")
    check(ep_api.OpSchemaTypeConstraint_GetAllowedTypes(constraint, types, count))
    allowed = tuple(text(types[0][i]) for i in range(count[0]))
    check(ep_api.OpSchemaTypeConstraint_GetInputIndices(constraint, indices, count))
    inputs = tuple(indices[0][0 : count[0]])
    check(ep_api.OpSchemaTypeConstraint_GetOutputIndices(constraint, indices, count))
    return TypeConstraint(_param_name(constraint), allowed, inputs, tuple(indices[0][0 : count[0]]))


def _param_name(constraint: CData) -> str:
    return text(_get("OpSchemaTypeConstraint_GetTypeParamName", "const char*", constraint))


def _formals(schema: CData, what: str, constraints: dict[str, TypeConstraint]) -> tuple[Formal, ...]:
    """`what` is "Input" or "Output"."""
    formals = []
    for index in range(_get(f"OpSchema_GetNum{what}s", "size_t", schema)):
        name = text(_get(f"OpSchema_Get{what}Name", "const char*", schema, index))
        constraint = _get(f"OpSchema_Get{what}TypeConstraint", _CONSTRAINT, schema, index)
        formals.append(Formal(name, None if constraint == NULL else constraints[_param_name(constraint)]))
    return tuple(formals)


def _get(slot: str, c_type: str, *arguments: object) -> CData:
    """What a slot of OrtEpApi writes where its last parameter points."""
    out = ffi.new(f"{c_type}*")
    check(getattr(ep_api, slot)(*arguments, out))
    return out[0]
