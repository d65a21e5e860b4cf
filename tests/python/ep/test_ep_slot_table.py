"""docs/python-slots.md: every slot of the header is there, and hosts get what it says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from bridge_support import open_ep
from ep_support import FuseAll
from test_ep_slots import filled

from abigen import header, native_build
from ort_abi import ep

ROOT = Path(__file__).resolve().parents[3]
BRIDGE = ROOT / "csrc" / "bridge"
ABI = header.read(*native_build.HEADERS)


class Row(NamedTuple):
    """A slot of the page. `kind`: "always", "no", or "" for one that needs what `names` are."""

    slot: str
    since: int
    kind: str
    names: list[str]


def read_page() -> dict[str, list[Row]]:
    """The rows of each struct."""
    text = (ROOT / "docs" / "python-slots.md").read_text()
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    page = {}
    for struct, section in sections.items():
        cells = re.findall(r"^\| (\w+) \| (\d+) \| (.*) \|$", section, re.M)
        page[struct] = [
            Row(
                slot,
                int(since),
                "".join(re.findall(r"^(always|no)\b", said)),
                re.findall(r"`([\w.]+)`", said),
            )
            for slot, since, said in cells
        ]
    return page


PAGE = read_page()


def test_every_struct_with_slots_is_there() -> None:
    theirs = {*header.HOST_TABLES, "OrtApiBase"}
    expected = {name for name, struct in ABI.structs.items() if struct.slots and name not in theirs}
    assert sorted(PAGE) == sorted(expected)


@pytest.mark.parametrize("struct", PAGE)
def test_every_slot_is_there_with_its_version(struct: str) -> None:
    slots = [(slot.name, slot.since) for slot in ABI.structs[struct].slots]
    assert [(row.slot, row.since) for row in PAGE[struct]] == slots


@pytest.mark.parametrize("struct", PAGE)
def test_every_name_is_in_ort_abi_ep(struct: str) -> None:
    for row in PAGE[struct]:
        for name in row.names:
            kind, _, member = name.partition(".")
            found = getattr(ep, kind)
            annotated = getattr(found, "__annotations__", {})
            assert not member or member in annotated or hasattr(found, member), name


def provider_with(names: set[str]) -> type[ep.ExecutionProvider]:
    """A class that has what the page names."""
    members: dict[str, Any] = {"name": "PageExecutionProvider"}
    for name in names:
        kind, _, member = name.partition(".")
        if name == "ExecutionProvider.preferred_data_layout":
            members[member] = "NHWC"
        elif name == "ExecutionProvider.custom_ops":
            members[member] = [ep.CustomOp("Own", "page.ops", [None], [None])]
        elif kind == "ExecutionProvider":
            of_class = isinstance(inspect.getattr_static(FuseAll, member), classmethod)
            members[member] = classmethod(_nothing) if of_class else _nothing
    if "kernel" in names:
        members["kernel"] = ep.kernel("Mul", 7)(_product)
    return type("Page", (FuseAll,), members)


def _nothing(*_: Any) -> Any:
    return ()


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a * b


def expected(struct: str, conditional: bool) -> set[str]:
    """The slots that are not NULL."""
    return {row.slot for row in PAGE[struct] if row.kind == "always" or (conditional and not row.kind)}


def test_a_provider_with_nothing_has_the_slots_that_are_always_there() -> None:
    with open_ep(provider_with(set())) as opened:
        assert filled(opened.factory) == expected("OrtEpFactory", False)
        assert filled(opened.ep) == expected("OrtEp", False)


def test_a_provider_with_everything_has_all_but_those_that_never_are() -> None:
    rows = [row for struct in ("OrtEpFactory", "OrtEp") for row in PAGE[struct] if row.kind != "always"]
    names = {name for row in rows for name in row.names}
    with open_ep(provider_with(names)) as opened:
        assert filled(opened.factory) == expected("OrtEpFactory", True)
        assert filled(opened.ep) == expected("OrtEp", True)


@pytest.mark.parametrize("struct", [struct for struct in PAGE if struct not in ("OrtEpFactory", "OrtEp")])
def test_the_others_are_filled_in_c_as_the_page_says(struct: str) -> None:
    """Those that are always there are in the struct's initializer, others may be set later."""
    text = "\n".join(path.read_text() for path in sorted(BRIDGE.glob("*.c")))
    (initializer,) = re.findall(rf"\({struct}\)\s*{{(.*?)}};", text, re.S)
    always = set(re.findall(r"\.(\w+) = ", initializer)) & {row.slot for row in PAGE[struct]}
    assert always == expected(struct, False)
    later = set(re.findall(r"[>.](\w+) = ", text))
    assert expected(struct, True) - always <= later
    assert not {row.slot for row in PAGE[struct] if row.kind == "no"} & later
