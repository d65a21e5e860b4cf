"""Device memory outside of sessions, on the virtual device: one case a C program and a sanitizer.

The host cannot read the virtual device's memory: it crashes when it tries. Under ThreadSanitizer the same
programs show that streams, allocators and copies of several threads do not race.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from abigen import native_build

from ..conftest import CC, ROOT, SANITIZERS
from ..support.c_programs import build_program, run_program

HERE = Path(__file__).resolve().parent
SAMPLE = sorted((ROOT / "samples" / "c_plugin_device").glob("*.c"))
PROGRAMS = sorted([*HERE.glob("test_*.c"), *HERE.glob("unit_*.c")])
LIBRARIES: dict[str, tuple[list[Path], list[str]]] = {
    "virtual": (SAMPLE, []),
    "other": (SAMPLE, ["-DDEVICE_ID=1", '-DEP_NAME="OtherExecutionProvider"']),
    "twin": (SAMPLE, ['-DEP_NAME="TwinExecutionProvider"']),
    "pair": (SAMPLE, ["-DDEVICE_COUNT=2"]),
    "plain": ([HERE / "plain_device.c"], []),
    "kernels": ([HERE / "kernel_device.c"], []),
    "neighbours": (
        [HERE / "kernel_device.c"],
        ['-DEP_NAME="NeighboursExecutionProvider"', '-DKERNEL_OP="Neg"'],
    ),
}
Build = Callable[[str], tuple[Path, Path]]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A function that builds libort_abi.so and the devices with a sanitizer, and gives their folders."""
    built: dict[str, tuple[Path, Path]] = {}

    def build_all(sanitize: str) -> tuple[Path, Path]:
        if sanitize not in built:
            folder = ROOT / "build" / ("native-tsan" if sanitize == "thread" else "native-sanitized")
            options = native_build.Options(cc=CC, sanitize=sanitize)
            native_build.build(folder, options)
            libraries = tmp_path_factory.mktemp("libraries")
            for name, (sources, flags) in LIBRARIES.items():
                command = [*shlex.split(CC), *options.cflags(folder / "generated"), "-U_GNU_SOURCE", *flags]
                command += ["-shared", "-o", str(libraries / f"lib{name}.so"), *map(str, sources)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
            built[sanitize] = (folder, libraries)
        return built[sanitize]

    return build_all


@pytest.mark.parametrize("sanitize", [SANITIZERS, "thread"])
@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_c_program(source: Path, sanitize: str, build: Build, tmp_path: Path) -> None:
    """The program's checks all hold; no leak, no race, nothing undefined, no touch of the device's memory."""
    folder, libraries = build(sanitize)
    program = tmp_path / source.stem
    build_program(source, folder, program, sanitize)
    run_program(program, tmp_path, environment={"DEVICE_LIBRARIES": os.fspath(libraries)})
