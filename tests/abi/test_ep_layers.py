"""The sub-packages of ort_abi/ep: which may import which; each is named as its C side and its tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..conftest import ROOT

EP, BRIDGE = ROOT / "ort_abi" / "ep", ROOT / "csrc" / "bridge"
PARTS = {"gate": "call", "dlpack": "lend", "run": "node"}
"""C files that are part of another concern than their name says; `X_slots.c` goes with `X.c`."""
FOR_CLIENTS = {"selection", "session_run"}
"""C files whose Python side is in ort_abi itself."""


def in_order() -> list[str]:
    """The sub-packages as ARCHITECTURE.md lists them: each may import those before it."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    [listed] = re.findall(r"imports only those before it:\s((?:`_\w+`[,.]\s)+)", text)
    return re.findall(r"`(_\w+)`", listed)


def run_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below one, without those that only a type checker sees."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield child
            yield from run_time_nodes(child)


def imported(text: str) -> set[str]:
    """The modules that a source imports at run time, as far as they can be told from its text."""
    found: set[str] = set()
    for node in run_time_nodes(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            found |= {f"{start}.{name.name}" for name in node.names}
    return found


def not_below(package: str, text: str, order: list[str]) -> list[str]:
    """What a source of a sub-package imports that is neither its own nor before it."""
    allowed = order[: order.index(package) + 1]
    wrong = []
    for module in sorted(imported(text)):
        parts = module.split(".")
        inside = parts[:2] == ["ort_abi", "ep"]
        if module.startswith(".") or module == "ort_abi" or (inside and [*parts, ""][2] not in allowed):
            wrong.append(module)
    return wrong


def concern_of(c_file: Path) -> str:
    """The sub-package of a file of csrc/bridge."""
    name = c_file.stem.removesuffix("_slots")
    return "_" + PARTS.get(name, name)


def c_files() -> list[Path]:
    """The files of the bridge that belong to providers."""
    return [
        path
        for path in sorted(BRIDGE.rglob("*.c"))
        if path.stem not in FOR_CLIENTS and path.parent.name != "entry"
    ]


def test_the_order_has_every_sub_package() -> None:
    found = {path.parent.name for path in EP.glob("*/__init__.py")}
    assert len(in_order()) == len(found)
    assert set(in_order()) == found


def test_imports_point_one_way() -> None:
    """No circle between sub-packages: neither when they are imported, nor by what functions import later."""
    order = in_order()
    files = [path for package in order for path in sorted((EP / package).glob("*.py"))]
    wrong = {
        f"{path.parent.name}/{path.name}": found
        for path in files
        if (found := not_below(path.parent.name, path.read_text(encoding="utf-8"), order))
    }
    assert len(files) > 30
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("from ort_abi.ep._c.thing import A", ["ort_abi.ep._c.thing.A"]),
        ("def f():\n    import ort_abi.ep._c", ["ort_abi.ep._c"]),
        ("from ort_abi.ep import Kernel", ["ort_abi.ep.Kernel"]),
        ("from ort_abi import ep", ["ort_abi.ep"]),
        ("import ort_abi", ["ort_abi"]),
        ("from ..c import thing", ["..c.thing"]),
        ("from ort_abi.ep._a import x\nfrom ort_abi.ep._b.y import z\nfrom ort_abi import dtypes", []),
        ("if TYPE_CHECKING:\n    from ort_abi.ep._c.thing import A", []),
    ],
)
def test_what_counts_as_an_import(text: str, wrong: list[str]) -> None:
    assert not_below("_b", text, ["_a", "_b", "_c"]) == wrong


def test_a_concern_has_one_name_in_c_and_in_python() -> None:
    assert {concern_of(path) for path in c_files()} == set(in_order())


def test_what_c_calls_is_in_the_sub_package_of_the_c_file() -> None:
    """In its `callbacks.py`; only what releases things has to know all of them."""
    defined = {
        name: path.relative_to(EP).as_posix()
        for path in EP.rglob("*.py")
        for name in re.findall(r"^def (bridge_py_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    called = {
        name: f"{concern_of(path)}/callbacks.py"
        for path in c_files()
        for name in re.findall(r"\b(bridge_py_\w+)\(", path.read_text(encoding="utf-8"))
    }
    assert len(called) > 45
    assert called | {"bridge_py_release": "_release.py"} == defined


def test_each_concern_has_a_folder_of_tests() -> None:
    """What lies beside the folders is shared by several."""
    tests = ROOT / "tests" / "python"
    folders = {path.parent.name for path in tests.glob("*/test_*.py")}
    assert {name.removeprefix("_") for name in in_order()} <= folders
    assert sorted(tests.glob("test_*.py")) == []
    shared = {path.stem for path in tests.glob("*.py")} - {"conftest"}
    used = {
        name: {
            path.parent
            for path in tests.rglob("*.py")
            if re.search(rf"^ *(import|from)\b.*\b{name}\b", path.read_text(encoding="utf-8"), re.MULTILINE)
        }
        for name in shared
    }
    assert {name for name, folders in used.items() if len(folders) < 2} == set()
