"""Fixtures for all tests: the library built from this tree, and a C compiler for small programs."""

from __future__ import annotations

import gc
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from abigen import native_build  # noqa: E402

CC = os.environ.get("CC", "cc")
SANITIZERS = "address,undefined"
SANITIZER_RUNTIME = {
    "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


def pytest_collection_finish() -> None:
    """Many tests collect garbage to see what is left of theirs: what was there before is not looked at."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def native_dir() -> Path:
    """The build folder of libort_abi.so, built from this tree; it has `obj` and `generated`."""
    folder = ROOT / "build" / "native"
    native_build.build(folder, native_build.Options(cc=CC))
    return folder


@pytest.fixture(scope="session")
def libort_abi(native_dir: Path) -> Path:
    """Path of libort_abi.so, built from this tree."""
    return native_dir / native_build.LIBRARY_NAME


@pytest.fixture(scope="session")
def sanitized_dir() -> Path:
    """The build folder of libort_abi.so with AddressSanitizer and UndefinedBehaviorSanitizer."""
    folder = ROOT / "build" / "native-sanitized"
    native_build.build(folder, native_build.Options(cc=CC, sanitize=SANITIZERS))
    return folder


@pytest.fixture(scope="session")
def tsan_dir() -> Path:
    """The build folder of libort_abi.so with ThreadSanitizer."""
    folder = ROOT / "build" / "native-tsan"
    native_build.build(folder, native_build.Options(cc=CC, sanitize="thread"))
    return folder


@pytest.fixture
def compile_c(tmp_path: Path) -> Callable[..., Path]:
    """A function `(name, sources, *flags) -> Path` that compiles C sources, given as paths or as text.

    A name that ends in `.so` makes a shared library, any other a program. Warnings are errors; `ort_abi.h` is
    found.
    """

    def compile_to(name: str, sources: list[Path] | str, *flags: str) -> Path:
        if isinstance(sources, str):
            path = tmp_path / f"{name}.c"
            path.write_text(sources)
            sources = [path]
        output = tmp_path / name
        shared = ["-shared", "-fPIC"] if name.endswith(".so") else []
        command = [
            *shlex.split(CC),
            "-std=c11",
            "-D_GNU_SOURCE",
            *native_build.Options(CC).warnings(),
            *shared,
        ]
        command += [f"-I{native_build.CSRC / 'include'}", *map(str, sources), *flags, "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
        return output

    return compile_to
