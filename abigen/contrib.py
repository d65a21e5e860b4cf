"""Schemas of the operators that stock onnxruntime adds to ONNX's, from `contrib_schemas.json`.

One line an operator. Inputs and outputs are "name type", with "?" behind an optional one, "*" behind a
variadic one, "**" if that may mix types, and then "0" if there may be none of it. Type parameters are listed
without "tensor()". Attributes have "!" behind a required one; one that has a default is a list with it.

All this was seen in onnxruntime 1.32.0: names, types and their order through `OrtEpApi::GetOpSchema`,
defaults on the nodes that a provider is asked about. All operators are of version 1.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from onnx import defs, helper

DATA = Path(__file__).parent / "contrib_schemas.json"

_Formal = defs.OpSchema.FormalParameter
_OPTIONS = {
    "": defs.OpSchema.FormalParameterOption.Single,
    "?": defs.OpSchema.FormalParameterOption.Optional,
    "*": defs.OpSchema.FormalParameterOption.Variadic,
}
_FORMAL = re.compile(r"([^?*]+)([?*]?)(\*?)(0?)")


def _formal(text: str) -> defs.OpSchema.FormalParameter:
    name, marked = text.split(" ")
    type_str, option, mixed, least = _FORMAL.fullmatch(marked).groups()  # type: ignore[union-attr]
    return _Formal(
        name,
        type_str,
        param_option=_OPTIONS[option],
        is_homogeneous=not mixed,
        min_arity=0 if least else 1,
    )


def _attribute(name: str, value: str | list[Any]) -> defs.OpSchema.Attribute:
    if isinstance(value, list):
        default = helper.make_attribute(name, value[1])
        if default.type != getattr(defs.OpSchema.AttrType, value[0]).value:
            raise ValueError(f"the default of attribute {name} is no {value[0]}: {value[1]}")
        return defs.OpSchema.Attribute(name, default)
    kind = getattr(defs.OpSchema.AttrType, value.rstrip("!"))
    return defs.OpSchema.Attribute(name, kind, required=value.endswith("!"))


def _type(text: str) -> str:
    return text if text.endswith(")") else f"tensor({text})"


def contrib_schemas() -> list[defs.OpSchema]:
    """The operators of onnxruntime's own domains, and what it adds to ONNX's."""
    return [
        defs.OpSchema(
            row["name"],
            row["domain"],
            1,
            inputs=[_formal(text) for text in row["inputs"]],
            outputs=[_formal(text) for text in row["outputs"]],
            type_constraints=[
                (name, [_type(text) for text in types.split(" ")], "") for name, types in row["types"].items()
            ],
            attributes=[_attribute(*item) for item in row["attributes"].items()],
        )
        for row in json.loads(DATA.read_text())
    ]
