"""The fuzzer of runs, and the models that it damages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.corpus import write_corpus
from tests.fuzz.fuzzer import build_fuzzer


@pytest.fixture(scope="package")
def fuzzer(sanitized_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program `fuzz_models`."""
    program = tmp_path_factory.mktemp("fuzzer") / "fuzz_models"
    build_fuzzer(sanitized_dir, program)
    return program


@pytest.fixture(scope="package")
def model_corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Models to damage."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))
