"""Hostile models are refused, or run: never a crash, never memory of somebody else, never a hang."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from abigen import native_build
from tests.conftest import CC, ROOT, SANITIZER_RUNTIME, SANITIZERS
from tests.fuzz.corpus import write_corpus

EXECUTIONS, SEED = 20_000, 8
SOURCES = ["bytes", "generate", "generate_ops", "generate_bodies", "damage", "run_model", "fuzz_models"]
# What a model may ask for: more is as if there were no memory.
MEMORY = ":max_allocation_size_mb=64:quarantine_size_mb=16:handle_abort=1"


def build_fuzzer(library_dir: Path, program: Path) -> None:
    """Compiles the fuzzer against a build folder of `native_build` that has the sanitizers."""
    options = native_build.Options(cc=CC, sanitize=SANITIZERS)
    sources = [str(ROOT / "tests" / "fuzz" / f"{name}.c") for name in SOURCES]
    command = [*shlex.split(CC), *options.cflags(library_dir / "generated"), *sources, "-o", str(program)]
    command += [f"-L{library_dir}", "-lort_abi", f"-Wl,-rpath,{library_dir}", *native_build.LIBS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"


@pytest.fixture(scope="module")
def fuzzer(sanitized_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program `fuzz_models`."""
    program = tmp_path_factory.mktemp("fuzzer") / "fuzz_models"
    build_fuzzer(sanitized_dir, program)
    return program


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Models to damage."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def execute(fuzzer: Path, *arguments: object) -> dict[str, int]:
    """Runs the fuzzer and returns how often which outcome was."""
    environment = {**os.environ, **SANITIZER_RUNTIME}
    environment["ASAN_OPTIONS"] += MEMORY
    command = [fuzzer, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", env=environment, check=False
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr[-6000:]}"
    return {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", done.stdout)}


def test_twenty_thousand_hostile_models(fuzzer: Path, corpus: list[Path]) -> None:
    """Generated, damaged, and generated and damaged: with the errors' messages, leaks and all outputs read."""
    counts = execute(fuzzer, "--seed", SEED, "--to", EXECUTIONS, *corpus)
    assert sum(counts.values()) == EXECUTIONS
    assert counts["ran"] > EXECUTIONS // 4, "the models are too wild to test more than the first checks"
    assert counts["refused"] > EXECUTIONS // 4, "the models are too tame"
    assert counts["failed"] > EXECUTIONS // 50, "nothing goes wrong in Run"


def test_most_generated_models_are_valid(fuzzer: Path) -> None:
    """Without hostility nearly all run: so what is hostile is one choice, and the rest of the model lives."""
    counts = execute(fuzzer, "--seed", SEED, "--to", 500, "--hostility", 0)
    assert counts["ran"] > 450


def test_an_execution_can_be_repeated(fuzzer: Path, corpus: list[Path], tmp_path: Path) -> None:
    """Its number makes the bytes, whatever was executed before."""
    for name, start in (("all", 0), ("some", 70)):
        (tmp_path / name).mkdir()
        execute(fuzzer, "--from", start, "--to", 100, "--write", tmp_path / name, *corpus)
    made = {path.name: path.read_bytes() for path in (tmp_path / "all").iterdir()}
    again = {path.name: path.read_bytes() for path in (tmp_path / "some").iterdir()}
    assert len(made) == 100 and len(set(made.values())) > 90
    assert again == {f"{n}.onnx": made[f"{n}.onnx"] for n in range(70, 100)}
