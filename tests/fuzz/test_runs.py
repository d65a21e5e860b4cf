"""Hostile models are refused, or run: never a crash, never memory of somebody else, never a hang."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.fuzzer import execute

EXECUTIONS, SEED = 20_000, 8


def test_twenty_thousand_hostile_models(fuzzer: Path, model_corpus: list[Path]) -> None:
    """Generated, damaged, and both: nothing leaks, errors say something, outputs are all there."""
    counts = execute(fuzzer, "--seed", SEED, "--to", EXECUTIONS, *model_corpus)
    assert sum(counts.values()) == EXECUTIONS
    assert counts["ran"] > EXECUTIONS // 5, "the models are too wild to test more than the first checks"
    assert counts["refused"] > EXECUTIONS // 4, "the models are too tame"
    assert counts["failed"] > EXECUTIONS // 50, "nothing goes wrong in Run"


def test_most_generated_models_are_valid(fuzzer: Path) -> None:
    """Without hostility: so what is hostile is one choice, and the rest of the model lives."""
    counts = execute(fuzzer, "--seed", SEED, "--to", 500, "--hostility", 0)
    assert counts["ran"] > 400


def test_an_execution_can_be_repeated(fuzzer: Path, model_corpus: list[Path], tmp_path: Path) -> None:
    """Its number makes the bytes, whatever was executed before."""
    for name, start in (("all", 0), ("some", 70)):
        (tmp_path / name).mkdir()
        execute(fuzzer, "--from", start, "--to", 100, "--write", tmp_path / name, *model_corpus)
    made = {path.name: path.read_bytes() for path in (tmp_path / "all").iterdir()}
    again = {path.name: path.read_bytes() for path in (tmp_path / "some").iterdir()}
    assert len(made) == 100 and len(set(made.values())) > 90
    assert again == {f"{n}.onnx": made[f"{n}.onnx"] for n in range(70, 100)}
