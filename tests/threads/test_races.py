"""Sessions, runs and registrations from many threads under ThreadSanitizer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from abigen import native_build

from ..conftest import CC, ROOT
from ..oom.test_oom import MODELS, save_model
from ..support.c_programs import build_program


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the test program and the sample plugin, all under ThreadSanitizer."""
    library = ROOT / "build" / "native-tsan"
    native_build.build(library, native_build.Options(cc=CC, sanitize="thread"))
    folder = tmp_path_factory.mktemp("threads")
    build_program(ROOT / "tests" / "threads" / "race.c", library, folder / "race", sanitize="thread")
    include, source = ROOT / "csrc" / "include", ROOT / "samples" / "c_plugin" / "c_plugin.c"
    flags = ["-g", "-O1", "-fsanitize=thread", "-shared", "-fPIC", f"-I{include}"]
    subprocess.run([*CC.split(), *flags, source, "-o", folder / "libc_plugin.so"], check=True)
    return folder


@pytest.mark.parametrize("model", MODELS)
def test_no_data_race(programs: Path, tmp_path: Path, model: str) -> None:
    """All results are right and ThreadSanitizer has nothing to report."""
    path = save_model(tmp_path / "model.onnx", MODELS[model]())
    command = [programs / "race", programs / "libc_plugin.so", path]
    environment = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "0 failed checks" in done.stdout
