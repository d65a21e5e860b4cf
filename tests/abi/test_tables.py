"""The host's tables: versions, no NULL slot, and what a slot that is not implemented answers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from abigen import header

from .conftest import Host


def implemented_functions(native_dir: Path) -> set[str]:
    """Names of the `api_X` and `ortabi_Y` functions that some hand-written C file defines."""
    objects = [path for path in (native_dir / "obj").rglob("*.o") if path.parent.name != "generated"]
    done = subprocess.run(["nm", *map(str, objects)], capture_output=True, text=True, check=True)
    return set(re.findall(r" T ((?:api|ortabi)_\w+)$", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("version", range(1, 31))
def test_get_api_answers_every_known_version_with_the_same_table(host: Host, version: int) -> None:
    assert host.lib.OrtGetApiBase().GetApi(version) == host.api != host.ffi.NULL


@pytest.mark.parametrize("version", [0, 31, 2**32 - 1])
def test_get_api_of_another_version_is_null_and_one_log_line(
    host: Host, version: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert host.lib.OrtGetApiBase().GetApi(version) == host.ffi.NULL
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"GetApi({version})" in lines[0]


def test_version_string(host: Host) -> None:
    version = host.ffi.string(host.lib.OrtGetApiBase().GetVersionString()).decode()
    assert re.fullmatch(r"1\.30\.\d+", version)


def test_no_slot_is_null(host: Host, abi: header.Abi) -> None:
    tables = host.tables()
    assert set(tables) == {table.name for table, _ in abi.host_tables()}
    for table, _ in abi.host_tables():
        for slot in table.slots:
            assert getattr(tables[table.name], slot.name) != host.ffi.NULL, slot.name


def test_training_and_experimental_functions_are_absent(host: Host) -> None:
    assert host.api.GetTrainingApi(1) == host.ffi.NULL
    assert host.api.GetExperimentalFunction(b"OrtApi_Anything") == host.ffi.NULL


def test_build_info_names_the_project(host: Host) -> None:
    assert b"ort-abi" in host.ffi.string(host.api.GetBuildInfoString())


def test_status_slots_without_implementation_say_so(host: Host, abi: header.Abi, native_dir: Path) -> None:
    implemented = implemented_functions(native_dir)
    tables = host.tables()
    for table, _ in abi.host_tables():
        for slot in table.slots:
            if f"api_{slot.name}" in implemented or not slot.returns_status:
                continue
            status = host.neutral_call(tables[table.name], slot.name)
            assert status != host.ffi.NULL, slot.name
            assert host.take_status(status) == (9, f"{slot.name} is not implemented")


def test_other_slots_without_implementation_log_their_name_and_return_nothing(
    host: Host, abi: header.Abi, native_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    implemented = implemented_functions(native_dir)
    tables = host.tables()
    for table, _ in abi.host_tables():
        for slot in table.slots:
            if f"api_{slot.name}" in implemented or slot.returns_status:
                continue
            assert not host.neutral_call(tables[table.name], slot.name), slot.name
            lines = capfd.readouterr().err.splitlines()
            assert len(lines) == 1, slot.name
            assert re.search(rf"\b{slot.name}\b", lines[0])


def test_our_own_exports_are_all_implemented(native_dir: Path, host: Host) -> None:
    declared = set(
        re.findall(
            r"\bortabi_\w+(?=\()",
            Path(header.__file__).parents[1].joinpath("csrc/include/ort_abi_host.h").read_text(),
        )
    )
    assert declared - implemented_functions(native_dir) == set()
