"""Builds libort_abi.so: `python -m abigen.native_build --out DIR [--sanitize address,undefined] [--cc CC]`.

The guard against C++ exceptions, libort_abi_cxx_guard.so, is built beside it where there is a C++ compiler.

Incremental (a source is compiled again when it, a header it includes or the flags changed) and safe to call
from several processes on one folder: the second waits for the first.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from abigen import emit_c, emit_calls, emit_standin, header, schemas

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"
HEADERS = [CSRC / "include" / "ort_abi.h", CSRC / "include" / "ort_abi_host.h"]
LIBRARY_NAME = "libort_abi.so"
GUARD_NAME = "libort_abi_cxx_guard.so"
STANDIN_NAME = "libort_abi_standin.so"
GUARD_SOURCE = CSRC / "cxx_guard" / "cxx_guard.cc"
JOBS = 2

WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wmissing-prototypes",
    "-Werror=incompatible-pointer-types",
    "-Werror=discarded-qualifiers",
]
CFLAGS = ["-std=c11", "-O2", "-g", "-fPIC", "-fvisibility=hidden", "-pthread", "-D_GNU_SOURCE"]
CXXFLAGS = ["-std=c++11", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra", "-Werror"]
LOOPS = CSRC / "cpu_ep"
LOOP_FLAGS = ["-O3"]  # gcc vectorises loops over elements from here on
LIBS = ["-ldl", "-lm", "-lpthread"]


class BuildError(RuntimeError):
    """A compiler or linker said no; the message holds its output."""


@dataclass(frozen=True)
class Options:
    """How to build. `sanitize` is what `-fsanitize=` takes, or empty."""

    cc: str = "cc"
    sanitize: str = ""
    cxx: str = "c++"

    def is_clang(self) -> bool:
        """True if the compiler calls itself clang."""
        version = subprocess.run(
            [*shlex.split(self.cc), "--version"], capture_output=True, text=True, check=True
        )
        return "clang" in version.stdout

    def warnings(self) -> list[str]:
        """The flags for warnings, under the compiler's own names."""
        names = {"-Werror=discarded-qualifiers": "-Werror=incompatible-pointer-types-discards-qualifiers"}
        return [names.get(flag, flag) for flag in WARNINGS] if self.is_clang() else WARNINGS

    def cflags(self, generated: Path) -> list[str]:
        """Flags of every C file. With sanitizers warnings are no errors: gcc then has false ones."""
        warnings = [flag for flag in self.warnings() if flag != "-Werror" or not self.sanitize]
        includes = [f"-I{CSRC / 'include'}", f"-I{CSRC}", f"-I{generated}"]
        return [*CFLAGS, *warnings, *includes, *self._sanitizer_flags()]

    def cxx_command(self, generated: Path) -> list[str]:
        """The command that makes the guard, without its files: it is C++, but for the C++ library alone."""
        includes = [f"-I{CSRC / 'include'}", f"-I{CSRC}", f"-I{generated}"]
        link = ["-shared", f"-Wl,-soname,{GUARD_NAME}"]
        return [*shlex.split(self.cxx), *CXXFLAGS, *includes, *self._sanitizer_flags(), *link]

    def ldflags(self) -> list[str]:
        """Flags of the link. Undefined symbols are errors, but the program brings the sanitizers' own.

        Our own references to what we export are ours, also where another host comes first in the process.
        """
        flags = ["-shared", f"-Wl,-soname,{LIBRARY_NAME}", "-Wl,-Bsymbolic", *self._sanitizer_flags()]
        return flags if self.sanitize else [*flags, "-Wl,-z,defs"]

    def _sanitizer_flags(self) -> list[str]:
        return [f"-fsanitize={self.sanitize}", "-fno-omit-frame-pointer"] if self.sanitize else []


def library_sources() -> list[Path]:
    """Every C file of libort_abi.so that is not generated: all of csrc but the bridge."""
    return sorted(path for path in CSRC.rglob("*.c") if CSRC / "bridge" not in path.parents)


def generate(folder: Path) -> list[Path]:
    """Writes the generated C files into `folder`, touching none that stays the same; returns the sources."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [*HEADERS, *sorted(Path(__file__).parent.glob("*.py"))]
    names = ["api_stubs.c", "api_tables.c", "abi_asserts.c", "op_schemas.c"]
    stamp = folder / "stamp"
    if not stamp.exists() or any(path.stat().st_mtime > stamp.stat().st_mtime for path in inputs):
        abi = header.read(*HEADERS)
        write_if_changed(folder / "api_slots.h", emit_c.api_slots_h(abi))
        write_if_changed(folder / "api_stubs.c", emit_c.api_stubs_c(abi))
        write_if_changed(folder / "api_tables.c", emit_c.api_tables_c(abi))
        write_if_changed(folder / "abi_asserts.c", emit_c.abi_asserts_c(abi))
        write_if_changed(folder / "op_schemas.c", schemas.op_schemas_c())
        write_if_changed(folder / "guarded_calls.h", emit_calls.guarded_calls_h(abi))
        write_if_changed(folder / "guarded_calls.inc", emit_calls.guarded_calls_inc(abi))
        write_if_changed(folder / "plugin_calls.h", emit_calls.plugin_calls_h(abi))
        for name, text in emit_standin.files(abi).items():
            write_if_changed(folder / name, text)
        stamp.write_text("")
    return [folder / name for name in names]


def write_if_changed(path: Path, text: str) -> None:
    """Writes `text` unless the file already holds it, so that nothing is rebuilt for no reason."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def build(out: Path, options: Options | None = None) -> Path:
    """Builds libort_abi.so in `out` and returns its path.

    Objects are in `out/obj`, generated files in `out/generated`.
    Raises `BuildError` with the compiler's output.
    """
    options = options or Options()
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _build_locked(out, options)


def _build_locked(out: Path, options: Options) -> Path:
    generated = out / "generated"
    sources = [*library_sources(), *generate(generated)]
    objects = [(source, _object_path(out, source)) for source in sources]
    with ThreadPoolExecutor(JOBS) as pool:
        jobs = []
        for name, extra in (("command.txt", []), ("command-loops.txt", LOOP_FLAGS)):
            command = [*shlex.split(options.cc), *options.cflags(generated), *extra]
            write_if_changed(out / name, shlex.join(command) + "\n")
            pairs = [pair for pair in objects if (LOOPS in pair[0].parents) == bool(extra)]
            stale = [pair for pair in pairs if _is_stale(*pair, out / name)]
            jobs += [pool.submit(_compile, command, *pair) for pair in stale]
        errors = [error for job in jobs if (error := job.result())]
    if errors:
        raise BuildError("\n".join(errors))
    library = out / LIBRARY_NAME
    paths = [str(path) for _, path in objects]
    link = [*shlex.split(options.cc), *options.ldflags(), "-o", str(library), *paths, *LIBS]
    write_if_changed(out / "link.txt", shlex.join(link) + "\n")
    inputs = [out / "link.txt", *(path for _, path in objects)]
    if not library.exists() or any(path.stat().st_mtime > library.stat().st_mtime for path in inputs):
        error = _run(link)
        if error:
            raise BuildError(error)
    build_guard(out, options)
    build_standin(out, options)
    return library


def build_guard(out: Path, options: Options) -> None:
    """Builds the guard, or says that it cannot be: without one the library works, but for C++ exceptions."""
    command = options.cxx_command(out / "generated")
    if shutil.which(command[0]) is None:
        print(f"no C++ compiler ({command[0]}): {GUARD_NAME} is not built", file=sys.stderr)
        (out / GUARD_NAME).unlink(missing_ok=True)
        return
    write_if_changed(out / "command-guard.txt", shlex.join(command) + "\n")
    guard = out / GUARD_NAME
    if _is_stale(GUARD_SOURCE, guard, out / "command-guard.txt"):
        dependencies = ["-MMD", "-MF", str(guard.with_suffix(".d"))]
        error = _run([*command, *dependencies, str(GUARD_SOURCE), "-o", str(guard)])
        if error:
            raise BuildError(error)


def build_standin(out: Path, options: Options) -> Path:
    """Builds what takes the place of libonnxruntime.so.1: a small library that passes calls on to ours."""
    generated, standin = out / "generated", out / STANDIN_NAME
    sources = [generated / name for name in emit_standin.SOURCES]
    script = generated / emit_standin.VERSION_SCRIPT
    command = [*shlex.split(options.cc), *options.cflags(generated), "-shared", "-s"]
    command += [f"-Wl,-soname,{emit_standin.SONAME}", f"-Wl,--version-script={script}", "-Wl,-rpath,$ORIGIN"]
    command += ["-o", str(standin), *map(str, sources), f"-L{out}", "-lort_abi"]
    write_if_changed(out / "command-standin.txt", shlex.join(command) + "\n")
    inputs = [out / "command-standin.txt", out / LIBRARY_NAME, script, *sources]
    if not standin.exists() or any(path.stat().st_mtime > standin.stat().st_mtime for path in inputs):
        error = _run(command)
        if error:
            raise BuildError(error)
    return standin


def _object_path(out: Path, source: Path) -> Path:
    relative = source.relative_to(CSRC) if CSRC in source.parents else Path("generated") / source.name
    return out / "obj" / relative.with_suffix(".o")


def _is_stale(source: Path, target: Path, command_file: Path) -> bool:
    dependencies = target.with_suffix(".d")
    if not target.exists() or not dependencies.exists():
        return True
    text = dependencies.read_text(encoding="utf-8").split(":", 1)[1].split("\n\n")[0]
    words = re.sub(r"\\\n", " ", text).split("\n")[0].split()
    built = target.stat().st_mtime_ns
    paths = [source, command_file, *map(Path, words)]
    return any(not path.exists() or path.stat().st_mtime_ns > built for path in paths)


def _compile(command: list[str], source: Path, target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    return _run([*command, "-MMD", "-c", str(source), "-o", str(target)])


def _run(command: list[str]) -> str:
    """Runs a compiler; returns its output if it failed, else an empty text."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 0:
        return ""
    return f"{shlex.join(command)}\n{done.stdout}"


def main() -> int:
    """The command line; prints the library's path."""
    parser = argparse.ArgumentParser(
        prog="python -m abigen.native_build", description="Builds libort_abi.so."
    )
    parser.add_argument("--out", type=Path, required=True, help="build folder")
    parser.add_argument("--sanitize", default="", help="address,undefined or thread")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"), help="C compiler")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "c++"), help="C++ compiler")
    arguments = parser.parse_args()
    try:
        print(build(arguments.out, Options(arguments.cc, arguments.sanitize, arguments.cxx)))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
