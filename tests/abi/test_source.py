"""The limits that CONTRIBUTING.md sets for the source text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ..conftest import ROOT

FILE_LINES, FUNCTION_LINES = 900, 80
WHOLE_ABI = ROOT / "csrc" / "include" / "ort_abi.h"  # one declaration a slot: as long as it is
FOLDERS = ["base", "objects", "model", "plugins", "run"]  # each may include what stands before it
OTHER_INCLUDES = {"plugins": {"cpu_ep/cpu_ep.h"}, "run": {"model/custom_op.h"}}


def sources(*endings: str) -> list[Path]:
    """The files of the repository with these endings, without those that a build makes."""
    files = [*ROOT.glob("*.py")]
    for folder in ("abigen", "benchmarks", "csrc", "ort_abi", "samples", "tests"):
        files += sorted((ROOT / folder).rglob("*"))
    made = {ROOT / "ort_abi" / "_enums.py", *(ROOT / "ort_abi" / "include").glob("*")}
    return [path for path in files if path.suffix in endings and path not in made]


def c_functions(path: Path) -> Iterator[tuple[str, int]]:
    """First line and length of every function, as clang-format leaves them: "}" alone ends one."""
    start = 0
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if line == "}":
            yield lines[start], number - start + 1
        if not line or line.startswith(("}", "#", "/*", " *")):
            start = number + 1


def python_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Name and length of every function, without its decorators."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_files_are_short() -> None:
    """No file that somebody reads has more than 900 lines."""
    lengths = {
        path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources(".c", ".h", ".py")
    }
    assert {str(path): n for path, n in lengths.items() if n > FILE_LINES and path != WHOLE_ABI} == {}


def test_functions_are_short() -> None:
    """No function has more than 80 lines."""
    functions = [(path, *found) for path in sources(".c", ".h") for found in c_functions(path)]
    functions += [(path, *found) for path in sources(".py") for found in python_functions(path)]
    assert len(functions) > 3000
    assert [f"{path}: {name} ({n})" for path, name, n in functions if n > FUNCTION_LINES] == []


def undocumented(body: list[ast.stmt], where: str) -> Iterator[str]:
    """Public names without a docstring; bridge.h describes what C calls, a kernel's name says what it is."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith(("_", "bridge_py_")):
            continue
        made_by = {getattr(getattr(each, "func", each), "attr", "") for each in node.decorator_list}
        if not ast.get_docstring(node) and not made_by & {"overload", "setter", "kernel"}:
            yield f"{where}: {node.name}"
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, f"{where}: {node.name}")


def test_public_python_names_have_docstrings() -> None:
    """Modules, classes, functions and methods of the package."""
    files = [path for path in sources(".py") if path.relative_to(ROOT).parts[0] in ("ort_abi", "abigen")]
    missing = []
    for path in files:
        module = ast.parse(path.read_text(encoding="utf-8"))
        missing += [] if ast.get_docstring(module) else [str(path)]
        missing += undocumented(module.body, str(path))
    assert len(files) > 40
    assert missing == []


def test_includes_go_from_later_folders_to_earlier_ones() -> None:
    """And to their main header only; the CPU provider and the bridge see nothing but what anybody sees."""
    wrong = []
    for path in sources(".c", ".h"):
        folder = path.parent.name
        if path.parent.parent != ROOT / "csrc":
            continue
        before = FOLDERS[: FOLDERS.index(folder)] if folder in FOLDERS else []
        allowed = {f"{name}/{name}.h" for name in before} | OTHER_INCLUDES.get(folder, set())
        for include in re.findall(
            r'^#include "(\w+/\w+\.h)"', path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            if not include.startswith(f"{folder}/") and include not in allowed:
                wrong.append(f"{path}: {include}")
    assert wrong == []


def test_slots_that_hand_out_memory_say_whose_it_is() -> None:
    """With one of the six words, in front of the function or for the whole file."""
    slot = r"((?:/\*(?:(?!\*/).)*\*/\n)?)^[A-Za-z_][^\n;{}]*?\bapi_(\w+)\(([^{};]*)\) \{"
    pointer = r"(?:Ort\w+|ORTCHAR_T|char|void)\*(?:\*+| const\*\*) *\w+"
    silent, found = [], 0
    for path in sources(".c"):
        text = path.read_text(encoding="utf-8")
        head = text[: text.find("*/")]
        for comment, name, parameters in re.findall(slot, text, re.MULTILINE | re.DOTALL):
            if re.search(pointer, parameters) and not name.startswith("Release"):
                found += 1
                if not re.search(r"\b(borrow|cop(y|ie)|take|give|keep|release)", f"{comment} {head}"):
                    silent.append(f"{path}: {name}")
    assert found > 150
    assert silent == []


def test_the_map_of_python_providers_has_every_file() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+\.(?:c|py))`", text[text.index("## Providers in Python") :]))
    c_files = {path.name for path in (ROOT / "csrc" / "bridge").glob("*.c")}
    python = {path.name for path in (ROOT / "ort_abi" / "ep").glob("*.py")} - {"__init__.py"}
    outside = {"_selection.py", "_last_provider.py", "_session_run.py", "_locks.py"}
    assert named - outside == c_files | python
