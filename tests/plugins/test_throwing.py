"""C++ exceptions out of an EP library: a status where one can be returned, else a log line.

The same program and EP run in our host, under AddressSanitizer, and in stock onnxruntime: where stock makes a
status of an exception, so do we, at the same step.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from abigen import native_build

from ..conftest import CC, SANITIZER_RUNTIME, SANITIZERS

HERE = Path(__file__).resolve().parent
PLUGIN = HERE / "throwing_plugin.cc"
CXX = os.environ.get("CXX", "c++")
SLOTS = list(dict.fromkeys(re.findall(r'maybe_throw\("([\w:]+)"\)', PLUGIN.read_text(encoding="utf-8"))))
UNCALLED = {  # by the program; hosts may call them
    "OrtEp::Sync",
    "OrtEpFactory::GetVendorId",
    "OrtSyncNotificationImpl::Activate",
    "OrtSyncNotificationImpl::Release",
    "OrtSyncNotificationImpl::WaitOnDevice",
    "OrtSyncNotificationImpl::WaitOnHost",
    "OrtSyncStreamImpl::CreateNotification",
}
STEPS = {"append": "session"}  # our host asks for the operators of an EP when the session is made


@dataclass(frozen=True)
class Outcome:
    """How the program ended, and what it printed."""

    returncode: int
    text: str
    errors: str

    @property
    def failed_steps(self) -> dict[str, str]:
        """The steps that gave a status, and its message."""
        return dict(re.findall(r"^([\w ]+): \d+ (.*)$", self.text, re.MULTILINE))

    @property
    def logged(self) -> list[str]:
        """What was logged as an error."""
        return re.findall(r"^log 3 (.*)$", self.text, re.MULTILINE)


Play = Callable[..., Outcome]


def compile_cxx(source: Path, library: Path, *flags: str) -> Path:
    """Compiles a C++ plugin that sees no header of ours but ort_abi.h."""
    command = [*shlex.split(CXX), "-std=c++14", "-g", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread"]
    command += [f"-I{native_build.CSRC / 'include'}", str(source), "-o", str(library), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


def compile_host(folder: Path, *flags: str) -> Path:
    program = folder / "throwing_host"
    command = [*shlex.split(CC), "-std=gnu11", "-g", "-Wall", "-Wextra", f"-I{native_build.CSRC / 'include'}"]
    command += [str(HERE / "throwing_host.c"), "-o", str(program), *flags, "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = (x + w) * w, with nodes called adds and muls."""
    weight = numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"], name="adds"),
        helper.make_node("Mul", ["a", "w"], ["y"], name="muls"),
    ]
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph(nodes, "graph", [x], [y], [weight])
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def throwing_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The EP library, linked as C++ libraries are."""
    return compile_cxx(PLUGIN, tmp_path_factory.mktemp("throwing") / "libthrowing.so")


def make_play(program: Path, host: Path, model: Path, environment: dict[str, str]) -> Play:
    def play(plugin: Path, slot: str = "", **variables: str) -> Outcome:
        variables = {**environment, "THROW_AT": slot, **variables}
        command = [program, host, plugin, model]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **variables}, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return play


@pytest.fixture(scope="module")
def play(sanitized_dir: Path, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Runs the program in our host, all under AddressSanitizer and UBSan.

    The program is linked to libstdc++, since AddressSanitizer looks for what throws when the process starts.
    """
    flags = [f"-fsanitize={SANITIZERS}", "-Wl,--no-as-needed", "-lstdc++"]
    program = compile_host(tmp_path_factory.mktemp("sanitized"), *flags)
    return make_play(program, sanitized_dir / native_build.LIBRARY_NAME, model, SANITIZER_RUNTIME)


@pytest.fixture(scope="module")
def plain_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as C programs are: nothing of C++ in it."""
    return compile_host(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def play_plain(plain_program: Path, libort_abi: Path, model: Path) -> Play:
    """Runs the program in our host as users have it."""
    return make_play(plain_program, libort_abi, model, {})


@pytest.fixture(scope="module")
def play_stock(plain_program: Path, model: Path) -> Play:
    """Runs the program in stock onnxruntime."""
    (stock,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    return make_play(plain_program, stock, model, {})


def test_nothing_is_thrown(play: Play, play_plain: Play, play_stock: Play, throwing_plugin: Path) -> None:
    """The EP that does not throw is as good in either host, twice."""
    for run in (play, play_plain, play_stock):
        outcome = run(throwing_plugin)
        assert outcome.returncode == 0, outcome.errors
        assert outcome.failed_steps == {} and outcome.logged == []
        assert outcome.text.count("result 5 6\n") == 4


@pytest.mark.parametrize("slot", SLOTS)
def test_exception_is_told_and_the_program_goes_on(
    slot: str, play: Play, play_stock: Play, throwing_plugin: Path
) -> None:
    """In each function of the EP, at the step where stock onnxruntime tells it, if it survives it."""
    ours, stock = play(throwing_plugin, slot), play_stock(throwing_plugin, slot)
    assert ours.returncode == 0, f"{ours.text}\n{ours.errors}"
    assert ours.text.endswith("end\n")
    told = [*ours.failed_steps.values(), *ours.logged]
    assert any(f"C++ exception std::runtime_error: thrown in {slot}" in text for text in told) or (
        slot in UNCALLED and not told
    )
    assert all("EP" in text for text in ours.failed_steps.values() if "node" in text)
    if stock.returncode == 0:
        steps = {STEPS.get(step, step) for step in stock.failed_steps}
        assert set(ours.failed_steps) == steps


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("own", "C++ exception (anonymous namespace)::OwnError: an error of its own"),
        ("int", "unknown C++ exception of type int"),
    ],
)
@pytest.mark.parametrize("slot", ["OrtEp::GetCapability", "OrtKernelImpl::Compute", "OrtEp::GetName"])
def test_kinds_of_exceptions(kind: str, text: str, slot: str, play: Play, throwing_plugin: Path) -> None:
    outcome = play(throwing_plugin, slot, THROW_KIND=kind)
    assert outcome.returncode == 0, outcome.errors
    (message,) = outcome.failed_steps.values()
    assert text in message and "EP 'ThrowingExecutionProvider'" in message


def test_exception_names_the_node(play: Play, throwing_plugin: Path) -> None:
    outcome = play(throwing_plugin, "OrtKernelImpl::Compute")
    assert "node 'adds' (Add, ai.onnx, version 14)" in outcome.failed_steps["run"]
    outcome = play(throwing_plugin, "OrtNodeComputeInfo::Compute")
    assert "the first is 'muls', Mul" in outcome.failed_steps["run"]


def test_a_library_with_its_own_cxx_runtime(play_plain: Play, tmp_path: Path) -> None:
    """The C++ library is inside the plugin; what unwinds is the C compiler's."""
    plugin = compile_cxx(PLUGIN, tmp_path / "libstatic.so", "-static-libstdc++")
    outcome = play_plain(plugin, "OrtEp::Compile")
    assert outcome.returncode == 0, outcome.errors
    assert "std::runtime_error: thrown in OrtEp::Compile" in outcome.failed_steps["session"]
    assert "guard: loaded" in outcome.text


def test_c_plugins_bring_no_guard(play_plain: Play, throwing_plugin: Path, tmp_path: Path) -> None:
    source = native_build.ROOT / "samples" / "c_plugin" / "c_plugin.c"
    library = tmp_path / "libc_plugin.so"
    flags = ["-shared", "-fPIC", f"-I{native_build.CSRC / 'include'}"]
    subprocess.run([*shlex.split(CC), *flags, str(source), "-o", str(library)], check=True)
    assert "guard: not loaded" in play_plain(library).text
    assert "guard: loaded" in play_plain(throwing_plugin).text


def test_without_the_guard_there_is_one_warning(
    plain_program: Path, libort_abi: Path, model: Path, throwing_plugin: Path, tmp_path: Path
) -> None:
    """A library that was copied without it works as before; an exception ends the process."""
    alone = Path(shutil.copy(libort_abi, tmp_path))
    play_alone = make_play(plain_program, alone, model, {})
    outcome = play_alone(throwing_plugin)
    assert outcome.returncode == 0
    warnings = re.findall(r"^log 2 (.*)$", outcome.text, re.MULTILINE)
    assert len([text for text in warnings if native_build.GUARD_NAME in text]) == 1
    assert outcome.text.count("result 5 6\n") == 4
    assert play_alone(throwing_plugin, "OrtEp::Compile").returncode == -signal.SIGABRT


def test_a_thread_that_ends_in_a_plugin_ends(play_plain: Play, throwing_plugin: Path) -> None:
    """pthread_exit unwinds the stack as an exception does, and is none."""
    outcome = play_plain(throwing_plugin, "OrtKernelImpl::Compute", THROW_KIND="exit")
    assert outcome.returncode == 0, outcome.errors
    assert "exception" not in outcome.text + outcome.errors and "run:" not in outcome.text


@pytest.mark.parametrize(
    ("slot", "work"),
    [
        ("CreateEpFactories", " in EP library 'throwing', slot CreateEpFactories"),
        ("OrtEpFactory::CreateEp", " in EP 'ThrowingExecutionProvider', slot OrtEpFactory::CreateEp"),
        ("OrtEp::GetCapability", " in EP 'ThrowingExecutionProvider', slot OrtEp::GetCapability"),
        (
            "OrtKernelCreateFunc",
            " in EP 'ThrowingExecutionProvider', slot OrtKernelCreateFunc, node 'adds' (Add)",
        ),
        (
            "OrtKernelImpl::Compute",
            " in EP 'ThrowingExecutionProvider', slot OrtKernelImpl::Compute, node 'adds' (Add)",
        ),
        ("OrtSyncStreamImpl::Flush", ", slot OrtSyncStreamImpl::Flush"),
    ],
)
def test_a_crash_names_who_was_at_work(slot: str, work: str, play_plain: Play, throwing_plugin: Path) -> None:
    """One line on stderr, and the process ends by the signal all the same."""
    outcome = play_plain(throwing_plugin, slot, THROW_KIND="crash", REPORT_CRASHES="1")
    assert outcome.returncode == -signal.SIGSEGV
    assert outcome.errors == f"ort-abi: fatal: SIGSEGV{work}\n"


def test_a_crash_in_a_fused_node_names_it_and_a_node_of_the_model(
    play_plain: Play, throwing_plugin: Path
) -> None:
    outcome = play_plain(
        throwing_plugin, "OrtNodeComputeInfo::Compute", THROW_KIND="crash", REPORT_CRASHES="1"
    )
    expected = (
        r"ort-abi: fatal: SIGSEGV in EP 'ThrowingExecutionProvider', slot OrtNodeComputeInfo::Compute, "
    )
    expected += r"fused node 'ThrowingExecutionProvider_\w+' with node 'muls' \(Mul\)\n"
    assert re.fullmatch(expected, outcome.errors)
