"""Fixtures of the plugin zoo: faulty plugins built from one source, and a host program that loads them."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from abigen import native_build

from ..conftest import CC, SANITIZER_RUNTIME, SANITIZERS

HERE = Path(__file__).resolve().parent
Build = Callable[..., Path]


@dataclass(frozen=True)
class Answer:
    """What the driver printed, line by line; the first line of each command is in `results`, in order."""

    lines: list[str]

    def results(self, command: str) -> list[str]:
        """What came of each `command`: "ok", or "<code> <message>"."""
        return [line.split(": ", 1)[1] for line in self.lines if line.startswith(f"{command}: ")]

    def logs(self, severity: int) -> list[str]:
        """The log messages of one severity (2: warning, 3: error)."""
        prefix = f"log {severity} "
        return [line.removeprefix(prefix) for line in self.lines if line.startswith(prefix)]

    def records(self, kind: str) -> list[list[str]]:
        """The words of each line that begins with `kind` and a tab."""
        return [line.split("\t")[1:] for line in self.lines if line.startswith(f"{kind}\t")]

    def devices(self) -> list[str]:
        """EP names of the devices that were listed, without the built-in CPU EP's."""
        return [words[0] for words in self.records("device") if words[0] != "CPUExecutionProvider"]


Drive = Callable[..., Answer]


def build_driver(library: Path, options: native_build.Options, folder: Path) -> Path:
    """Builds in `folder` the host program, linked to libort_abi.so in `library`."""
    link = [f"-L{library}", "-lort_abi", f"-Wl,-rpath,{library}", *native_build.LIBS]
    flags = options.cflags(library / "generated")
    run_compiler([*flags, str(HERE / "driver.c"), "-o", str(folder / "driver"), *link])
    return folder / "driver"


def make_drive(driver: Path, folder: Path) -> Drive:
    """A function `(*commands) -> Answer` that runs the commands (words separated by tabs) in one process.

    The process must end well: no crash, and, where the driver is sanitized, no leak and nothing undefined.
    """

    def run(*commands: str | bytes) -> Answer:
        script = b"".join(line if isinstance(line, bytes) else f"{line}\n".encode() for line in commands)
        environment = {**os.environ, **SANITIZER_RUNTIME}
        done = subprocess.run(
            [str(driver)], input=script, capture_output=True, env=environment, cwd=folder, check=False
        )
        text, errors = done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="replace")
        assert done.returncode == 0, f"exit status {done.returncode}\n{text}\n{errors}"
        assert text.endswith("end\n"), text
        return Answer(text.splitlines())

    return run


@pytest.fixture(scope="session")
def sanitized_driver(sanitized_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host program, with AddressSanitizer and UndefinedBehaviorSanitizer in it and in the library."""
    options = native_build.Options(cc=CC, sanitize=SANITIZERS)
    return build_driver(sanitized_dir, options, tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="session")
def plain_driver(native_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host program as users build it: what third-party libraries are loaded into."""
    return build_driver(native_dir, native_build.Options(cc=CC), tmp_path_factory.mktemp("plain"))


@pytest.fixture
def drive(sanitized_driver: Path, tmp_path: Path) -> Drive:
    """Runs commands in the sanitized host program, see `make_drive`."""
    return make_drive(sanitized_driver, tmp_path)


@pytest.fixture
def drive_plain(plain_driver: Path, tmp_path: Path) -> Drive:
    """Runs commands in the plain host program, see `make_drive`."""
    return make_drive(plain_driver, tmp_path)


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A function `(fault="NONE", *defines) -> Path`: the plugin library with that fault, compiled once."""
    folder = tmp_path_factory.mktemp("zoo")

    def build(fault: str = "NONE", *defines: str) -> Path:
        library = folder / f"lib{'_'.join([fault, *defines]).replace('=', '').replace(chr(34), '')}.so"
        if not library.exists():
            flags = [
                "-std=c11",
                "-D_GNU_SOURCE",
                *native_build.Options(CC).warnings(),
                f"-I{native_build.CSRC / 'include'}",
            ]
            flags += [f"-DFAULT={fault}", *(f"-D{define}" for define in defines), "-shared", "-fPIC"]
            run_compiler([*flags, str(HERE / "faulty_plugin.c"), "-o", str(library)])
        return library

    return build


def run_compiler(arguments: list[str]) -> None:
    """Runs the C compiler; fails the test with its output."""
    done = subprocess.run([*shlex.split(CC), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(arguments)}\n{done.stderr}"
