"""`ort_abi.h` against the facts: versions, nullability, signatures, values; and that it compiles anywhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from abigen import header, native_build

HEADER = native_build.HEADERS[0]
STANDARDS = [("c", "c11"), ("c", "c17"), ("c++", "c++17")]


def signature(function: header.Function) -> list[str]:
    return [function.returns, *(f"{' '.join(param.marks)}|{param.type}" for param in function.params)]


def test_api_version(abi: header.Abi, facts: dict[str, Any]) -> None:
    assert abi.version == facts["api_version"] == 30


def test_every_struct_and_no_other_is_declared(abi: header.Abi, facts: dict[str, Any]) -> None:
    assert set(abi.structs) - {"OrtCustomHandleType"} == set(facts["structs"])
    assert set(abi.enums) == set(facts["enums"])
    assert set(abi.function_types) == set(facts["function_types"])


def test_members_have_the_known_order_version_nullability_and_signature(
    abi: header.Abi, facts: dict[str, Any]
) -> None:
    for name, fact in facts["structs"].items():
        struct = abi.structs[name]
        assert struct.since == fact["since"], name
        found = [
            [m.name, m.offset, m.size, m.since, m.optional, signature(m.function) if m.function else None]
            for m in struct.members
        ]
        for member, known in zip(found, fact["members"], strict=True):
            assert member == known, name


def test_function_types_have_the_known_signature(abi: header.Abi, facts: dict[str, Any]) -> None:
    for name, fact in facts["function_types"].items():
        function = abi.function_types[name]
        assert signature(function) == fact["signature"], name
        assert function.since == fact["since"], name


def test_enum_values(abi: header.Abi, facts: dict[str, Any]) -> None:
    for name, fact in facts["enums"].items():
        enum = abi.enums[name]
        assert {value.name: value.value for value in enum.values} == fact["values"], name
        assert {v.name: v.since for v in enum.values if v.since} == fact["value_since"], name
        assert enum.since == fact["since"], name


def test_slots_since_a_release_are_as_many_as_that_release_has(
    abi: header.Abi, facts: dict[str, Any]
) -> None:
    for release, tables in facts["table_slots_by_release"].items():
        version = int(release.split(".")[1])
        if version > abi.version:
            continue
        for table, count in tables.items():
            slots = abi.structs[table].slots
            assert sum((slot.since or 0) <= version for slot in slots) == count, (release, table)


def test_table_versions_never_go_back(abi: header.Abi) -> None:
    for table, _ in abi.host_tables():
        versions = [slot.since or 0 for slot in table.slots]
        assert versions == sorted(versions), table.name


@pytest.mark.parametrize(("language", "standard"), STANDARDS)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_header_compiles_alone(compiler: str, language: str, standard: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / "alone.c"
    source.write_text(f'#include "{HEADER}"\n')
    command = [compiler, "-x", language, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    done = subprocess.run(
        [*command, "-fsyntax-only", str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
