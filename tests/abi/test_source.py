"""The limits that CONTRIBUTING.md sets for the source text."""

from __future__ import annotations

import ast
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from ..conftest import CC, ROOT

FILE_LINES, FUNCTION_LINES = 900, 80
WHOLE_ABI = ROOT / "csrc" / "include" / "ort_abi.h"  # one declaration a slot: as long as it is
# Each folder may include and call what stands before it.
FOLDERS = [
    "base",
    "objects",
    "schema",
    "graph",
    "infer",
    "onnx",
    "plugins",
    "kernels",
    "session",
    "profiling",
]
FOLDERS += ["run", "control_flow", "layout", "create"]
MOST_FILES = 22
OTHER_INCLUDES = {"plugins": {"cpu_ep/cpu_ep.h"}}


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


def symbols(path: Path) -> tuple[set[str], set[str]]:
    """What an object file defines, other than weakly, and what it uses of others."""
    done = subprocess.run(["nm", "-g", path], capture_output=True, text=True, check=True)
    found = [line.split()[-2:] for line in done.stdout.splitlines()]
    defined = {name for kind, name in found if kind in "TDBR"}
    return defined, {name for kind, name in found if kind == "U"}


def test_calls_go_from_later_folders_to_earlier_ones(native_dir: Path) -> None:
    """All but those of OrtGetApiBase, which plugins are given."""
    owner, users = {}, []
    for folder in FOLDERS:
        for path in sorted((native_dir / "obj" / folder).glob("*.o")):
            defined, used = symbols(path)
            owner.update(dict.fromkeys(defined, folder))
            users.append((folder, path.name, used))
    wrong = [
        f"{folder}/{name} uses {symbol} of {owner[symbol]}"
        for folder, name, used in users
        for symbol in sorted(used & owner.keys())
        if FOLDERS.index(owner[symbol]) > FOLDERS.index(folder)
    ]
    assert len(users) > 90
    assert wrong == []


def circle(objects: list[Path]) -> list[str]:
    """Object files that call each other in a circle; empty if their calls point one way."""
    found = {path.stem: symbols(path) for path in objects}
    calls = {
        name: {other for other, (defined, _) in found.items() if other != name and defined & used}
        for name, (_, used) in found.items()
    }
    while ends := [name for name, called in calls.items() if not called]:
        for name in ends:
            del calls[name]
        calls = {name: called - set(ends) for name, called in calls.items()}
    return sorted(calls)


def test_files_of_plugins_and_of_the_bridge_call_one_way(native_dir: Path, tmp_path: Path) -> None:
    plugins = sorted((native_dir / "obj" / "plugins").glob("*.o"))
    assert len(plugins) > 10 and circle(plugins) == []
    includes = [ROOT / "csrc", ROOT / "csrc" / "include", sysconfig.get_paths()["include"]]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-fPIC", *(f"-I{folder}" for folder in includes)]
    for source in (ROOT / "csrc" / "bridge").glob("*.c"):
        subprocess.run([CC, *flags, "-c", source, "-o", tmp_path / f"{source.stem}.o"], check=True)
    bridge = sorted(tmp_path.glob("*.o"))
    assert len(bridge) > 15 and circle(bridge) == []


def test_every_folder_is_on_the_map_and_small() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for folder in (path for path in (ROOT / "csrc").iterdir() if path.is_dir()):
        assert f"| `csrc/{folder.name}` |" in text
        assert len([path for path in folder.iterdir() if path.is_file()]) <= MOST_FILES, folder
    assert {path.name for path in (ROOT / "csrc").iterdir() if path.is_dir()} >= set(FOLDERS)


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
