"""Sessions, runs and registrations from many threads under ThreadSanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..conftest import ROOT
from ..oom.test_oom import MODELS, save_model
from ..support.c_programs import build_plugin, build_program, run_program


@pytest.fixture(scope="module")
def programs(tsan_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the test program and the sample plugin, all under ThreadSanitizer."""
    folder = tmp_path_factory.mktemp("threads")
    build_program(ROOT / "tests" / "threads" / "race.c", tsan_dir, folder / "race", sanitize="thread")
    build_plugin(ROOT / "samples" / "c_plugin" / "c_plugin.c", folder / "libc_plugin.so", sanitize="thread")
    return folder


@pytest.mark.parametrize("model", MODELS)
def test_no_data_race(programs: Path, tmp_path: Path, model: str) -> None:
    """All results are right and ThreadSanitizer has nothing to report."""
    path = save_model(tmp_path / "model.onnx", MODELS[model]())
    run_program(programs / "race", tmp_path, programs / "libc_plugin.so", path)


def test_forked_children_work(native_dir: Path, tmp_path: Path) -> None:
    """Whatever other threads were at when the process forked. Without sanitizers: gcc 12's hang there."""
    build_program(ROOT / "tests" / "threads" / "forks.c", native_dir, tmp_path / "forks", sanitize="")
    build_plugin(ROOT / "samples" / "c_plugin" / "c_plugin.c", tmp_path / "libc_plugin.so", sanitize="")
    model = save_model(tmp_path / "model.onnx", MODELS["plugin"]())
    run_program(tmp_path / "forks", tmp_path, tmp_path / "libc_plugin.so", model)
