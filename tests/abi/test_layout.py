"""Size and offsets of every struct, as a C compiler and as cffi see them, against the facts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from abigen import header

from .conftest import Host


def probe_source(facts: dict[str, Any]) -> str:
    """A program that prints what the compiler made of the header as JSON."""
    lines = ['#include <stdio.h>\n#include "ort_abi.h"\n', "int main(void) {", '  printf("{");']
    for name, struct in facts["structs"].items():
        lines.append(f'  printf("\\"{name}\\": [%zu, %zu", sizeof({name}), _Alignof({name}));')
        for member in struct["members"]:
            place = f"offsetof({name}, {member[0]}), sizeof((({name}*)0)->{member[0]})"
            lines.append(f'  printf(", [%zu, %zu]", {place});')
        lines.append('  printf("],\\n");')
    for enum in facts["enums"].values():
        lines += [f'  printf("\\"{name}\\": %d,\\n", (int){name});' for name in enum["values"]]
    return "\n".join([*lines, '  printf("\\"end\\": 0}");', "  return 0;", "}"])


def test_compiler_lays_structs_out_as_known(facts: dict[str, Any], compile_c: Callable[..., Path]) -> None:
    program = compile_c("probe", probe_source(facts))
    seen = json.loads(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    for name, struct in facts["structs"].items():
        places = [[member[1], member[2]] for member in struct["members"]]
        assert seen[name] == [struct["size"], struct["align"], *places], name
    for enum in facts["enums"].values():
        for value_name, value in enum["values"].items():
            assert seen[value_name] == value


def test_cffi_realises_every_struct_as_known(host: Host, facts: dict[str, Any]) -> None:
    for name, struct in facts["structs"].items():
        assert host.ffi.sizeof(name) == struct["size"], name
        assert host.ffi.alignof(name) == struct["align"], name
        fields = {field: info.offset for field, info in host.ffi.typeof(name).fields}
        assert fields == {member[0]: member[1] for member in struct["members"]}, name


def test_compiled_module_realises_every_struct_as_known(facts: dict[str, Any]) -> None:
    from ort_abi._native import ffi

    for name, struct in facts["structs"].items():
        assert ffi.sizeof(name) == struct["size"], name
        for member in struct["members"]:
            assert ffi.offsetof(name, member[0]) == member[1], (name, member[0])


def test_cffi_and_python_know_every_enum_value(host: Host, facts: dict[str, Any]) -> None:
    from ort_abi import _enums

    for name, enum in facts["enums"].items():
        prefix = "" if name != "OrtSparseIndicesFormat" else "enum "
        assert host.ffi.typeof(prefix + name).relements == enum["values"], name
        python_enum = getattr(_enums, name)
        assert {n: int(v) for n, v in python_enum.__members__.items()} == enum["values"], name


def test_computed_layout_is_the_known_one(abi: header.Abi, facts: dict[str, Any]) -> None:
    assert {name: abi.structs[name].size for name in facts["structs"]} == {
        name: struct["size"] for name, struct in facts["structs"].items()
    }
