"""A plugin in the architecture of ORT's public examples, played through in our host and in stock onnxruntime.

What the host program and the plugin print is the same in both, but for what a host may do in its own way: how
often it asks for allocators, and when it syncs besides.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from abigen import native_build

from ..conftest import CC, SANITIZER_RUNTIME, SANITIZERS
from .conftest import HERE

HOSTS = ["ours", "stock"]
MADE = ["OrtEpFactory::CreateAllocator device", "arena 'Example' is made, limit none"]
GONE = ["ReleaseAllocator device", "arena 'Example' goes"]


@dataclass(frozen=True)
class Played:
    """What became of one scenario."""

    returncode: int
    lines: list[str]  # of the host program and the plugin, in order
    errors: str  # what the host logged, and messages of failures

    def results(self) -> list[str]:
        """What the host program printed between registration and unregistration."""
        lines = [line for line in self.lines if not line.startswith("plugin: ")]
        assert lines[0] == "register: ok" and lines[-2:] == ["unregister: ok", "end"], self
        return lines[1:-2]

    def calls(self, *wanted: str) -> list[str]:
        """What the plugin printed that begins with one of these words, and the host program's lines."""
        lines = [line.removeprefix("plugin: ") for line in self.lines]
        ours = [line for line in self.lines if not line.startswith("plugin: ")]
        return [line for line in lines if line in ours or line.startswith(wanted)]


Play = Callable[..., Played]


def stock_library() -> Path:
    """The library inside stock onnxruntime; skips the test where that is not installed."""
    onnxruntime = pytest.importorskip("onnxruntime")
    (path,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    return path


def compile_c(sources: list[Path], output: Path, sanitize: str) -> None:
    """Compiles the host program, or (`.so`) the plugin."""
    flags = ["-std=c11", "-D_GNU_SOURCE", "-g", f"-I{native_build.CSRC / 'include'}"]
    flags += native_build.Options(CC).warnings()
    flags += ["-shared", "-fPIC", "-fvisibility=hidden"] if output.suffix == ".so" else []
    flags += [f"-fsanitize={sanitize}"] if sanitize else []
    command = [*shlex.split(CC), *flags, *map(str, sources), "-o", str(output), "-ldl", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"


@pytest.fixture(scope="module", params=HOSTS)
def host(request: pytest.FixtureRequest) -> str:
    """Which host plays."""
    return str(request.param)


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str], Play]:
    """A function `(host) -> Play`, see `play`. All that our host plays is sanitized."""
    folder = tmp_path_factory.mktemp("example")
    write_models(folder)
    built: dict[str, Path] = {}

    def build(host: str) -> Path:
        if host not in built:
            built[host] = folder / host
            built[host].mkdir()
            sanitize = SANITIZERS if host == "ours" else ""
            compile_c([HERE / "example_host.c"], built[host] / "host", sanitize)
            compile_c(sorted((HERE / "example").glob("*.c")), built[host] / "libexample.so", sanitize)
        return built[host]

    def make(host: str) -> Play:
        here = build(host)
        if host == "ours":
            sanitized: Path = request.getfixturevalue("sanitized_dir")
            library = sanitized / native_build.LIBRARY_NAME
        else:
            library = stock_library()

        def play(scenario: str, words: str = "", cwd: Path = here) -> Played:
            environment = {**os.environ, **SANITIZER_RUNTIME, "EXAMPLE_EP": words}
            command = [here / "host", library, here / "libexample.so", scenario, folder]
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, cwd=cwd, check=False
            )
            return Played(done.returncode, done.stdout.splitlines(), done.stderr)

        return play

    return make


@pytest.fixture
def play(host: str, player: Callable[[str], Play]) -> Play:
    """A function `(scenario, words="") -> Played` that must end well.

    No pointer is a stranger to the plugin, nothing is left behind, no sanitizer complains.
    """
    play_unchecked = player(host)

    def checked(scenario: str, *arguments: object, **options: object) -> Played:
        played = play_unchecked(scenario, *arguments, **options)
        assert played.returncode == 0, f"{played.returncode}\n{played.lines}\n{played.errors}"
        assert played.lines[-1] == "end"
        assert not [line for line in played.lines if "STRANGER" in line or "LIVING" in line], played.lines
        return played

    return checked


def write_models(folder: Path) -> None:
    """Models with one input x and one output y of one dimension."""
    node = helper.make_node
    mul_add = [node("Mul", ["x", "x"], ["t"]), node("Add", ["t", "x"], ["y"])]
    relus = [node("Relu", ["x"], ["t"]), node("Relu", ["t"], ["y"])]
    mixed = [node("Relu", ["x"], ["t"]), node("Neg", ["t"], ["u"]), node("Relu", ["u"], ["y"])]
    models = {
        "static": (mul_add, 4),
        "dynamic": (mul_add, "n"),
        "kernel": (relus, 4),
        "weight": ([node("Mul", ["x", "w"], ["y"])], 4),
        "empty_static": (mul_add, 0),
        "empty_kernel": (relus, "n"),
        "empty_mixed": (mixed, "n"),
        "empty_weight": ([node("Mul", ["x", "w"], ["y"])], 0),
    }
    for name, (nodes, dim) in models.items():
        names = ["x", "y", *(made.output[0] for made in nodes[:-1])]
        x, y, *inner = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [dim]) for n in names)
        weight = np.arange(1, 5, dtype=np.float32)[: 0 if name == "empty_weight" else 4]
        weights = [numpy_helper.from_array(weight, "w")] if name.endswith("weight") else []
        graph = helper.make_graph(nodes, name, [x], [y], weights, value_info=inner)
        opsets = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), folder / f"{name}.onnx")


def test_registers(play: Play) -> None:
    """Each memory has its shared allocator, made for the plugin's own info; all goes with the library."""
    played = play("register")
    assert played.results() == ["allocator: there", "info: equal"] * 2
    assert played.calls("OrtEpFactory::CreateAllocator", "ReleaseAllocator", "ReleaseEpFactory") == [
        "OrtEpFactory::CreateAllocator device",
        "OrtEpFactory::CreateAllocator host-accessible",
        "register: ok",
        *["allocator: there", "info: equal"] * 2,
        "ReleaseAllocator device",
        "ReleaseAllocator host-accessible",
        "ReleaseEpFactory",
        "unregister: ok",
        "end",
    ]


def test_runs(play: Play) -> None:
    """Compiled nodes, a kernel and an initializer; nodes whose shapes are not known are left to the CPU."""
    played = play("run")
    results = {"static": "2 6 12 20", "dynamic": "2 6 12 20", "kernel": "1 2 3 4", "weight": "1 4 9 16"}
    expected = []
    for name, values in results.items():
        expected += [f"model: {name}", "session: ok", *["run: ok", f"y: {values}"] * 2]
    assert played.results() == expected
    compiled = [line for line in played.calls("Compile", "model: ") if line.startswith(("Compile", "model:"))]
    assert compiled == [
        *["model: static", "Compile 2 nodes", "model: dynamic"],
        *["model: kernel", "model: weight", "Compile 1 nodes"],
    ]
    asked = [line for line in played.lines if line.startswith("plugin: OrtEp::CreateAllocator ")]
    assert {line.rpartition(" ")[2] for line in asked} >= {"device", "read-only"}
    assert "plugin: OrtEp::CreateSyncStreamForDevice device" in played.lines


def test_copies(play: Play) -> None:
    assert play("copy").results() == [
        *["to device: ok", "to pinned: ok", "pinned: 1 2 3 4 5"],
        *["stream: ok", "back: ok", "back: 1 2 3 4 5"],
    ]


def replaced(device: str = "device") -> list[str]:
    """What is printed while an allocator is replaced, released, and made again."""
    made = f"OrtEpFactory::CreateAllocator {device}"
    return [
        *[*GONE, made, "arena 'Example' is made, limit 1000"],
        *["create: ok", "found: it", "through: 7 8 9", "2000 bytes: none"],
        *[*GONE, "release: ok", "found: none"],
        *[made, "arena 'Example' is made, limit none", "create: ok", "through: 7 8 9"],
        *["ReleaseAllocator host-accessible", "OrtEpFactory::CreateAllocator host-accessible"],
        *["create: ok", "pinned: 3 3"],
    ]


ALLOCATORS = ("OrtEpFactory::CreateAllocator", "ReleaseAllocator", "arena")
REGISTERED = [*MADE, "OrtEpFactory::CreateAllocator host-accessible", "register: ok"]
UNREGISTERED = [*GONE, "ReleaseAllocator host-accessible", "unregister: ok", "end"]


def test_replaces_shared_allocators(play: Play) -> None:
    """The old one goes first, so that the plugin's one arena can be made with the new one's options."""
    assert play("replace").calls(*ALLOCATORS) == [*REGISTERED, *replaced(), *UNREGISTERED]


def test_replaces_shared_allocators_beside_a_session(play: Play, host: str) -> None:
    """The session has the arena by itself: it stays until the session goes."""
    calls = play("replace_in_use").calls(*ALLOCATORS)
    of_session = [line for line in calls if line == "ReleaseAllocator read-only"]
    run = ["run: ok", "y: 2 6 12 20"]
    expected = [*REGISTERED, "session: ok", *run]
    order = ["ReleaseAllocator device", "OrtEpFactory::CreateAllocator device"]
    if host == "ours":  # sessions of other threads find one or the other at any time
        order.reverse()
    expected += [*order, "create: ok", *run]
    expected += ["ReleaseAllocator device", "release: ok", *run]
    expected += [
        "ReleaseAllocator read-only",
        *GONE,
        "ReleaseAllocator host-accessible",
        "unregister: ok",
        "end",
    ]
    # Stock makes sessions a host-accessible allocator too.
    extra = [i for i, line in enumerate(calls) if line == "ReleaseAllocator host-accessible"][:-1]
    assert [line for i, line in enumerate(calls) if i not in extra] == expected
    assert len(of_session) == 1


def test_two_devices_share_one_arena(play: Play) -> None:
    """Their infos are equal, but each device's own come back to the plugin; the arena has a name."""
    played = play("two_devices", "two-devices")
    first, second = (index for index, line in enumerate(played.lines) if line.startswith("device "))
    asked = [line for line in played.lines[second:] if "CreateAllocator device" in line]
    assert asked and {line.partition("CreateAllocator ")[2] for line in asked} == {"device of the second"}
    asked = [line for line in played.lines[first:second] if "CreateAllocator device" in line]
    assert asked and {line.partition("CreateAllocator ")[2] for line in asked} == {"device"}
    calls = played.calls(*ALLOCATORS)
    for device, name in enumerate(["device", "device of the second"]):
        wanted = replaced(name)
        ends = [i for i, line in enumerate(calls) if line == "pinned: 3 3"]
        end = ends[device] + 1
        assert calls[end - len(wanted) : end] == wanted


def test_synchronizes_bound_values(play: Play) -> None:
    """OrtEp::Sync for a model that the EP runs, none for one that it does not."""
    calls = play("sync").calls("OrtEp::Sync")
    of_ep, of_cpu = calls[: calls.index("outputs: ok") + 1], calls[calls.index("outputs: ok") + 1 :]
    for step in ["inputs of nothing: ok", "inputs: ok", "outputs: ok"]:
        assert of_ep[of_ep.index(step) - 1] == "OrtEp::Sync", calls
    assert "OrtEp::Sync" not in of_cpu


def test_synchronizing_can_fail(play: Play) -> None:
    played = play("sync", "sync-fails")
    results = played.results()
    assert results[:3] == ["session: ok", "inputs of nothing: failed", "inputs: failed"]
    assert "the device is lost" in played.errors
    assert [line for line in results if line.startswith("outputs")] == ["outputs: failed", "outputs: ok"]


def test_profiles_of_single_runs_ask_the_providers(play: Play, tmp_path: Path) -> None:
    """A profiler for each such run, which ends before the run returns; its events are in the run's file."""
    calls = play("profile", cwd=tmp_path).calls("OrtEpProfilerImpl::Start", "OrtEpProfilerImpl::End")
    begin, next_session = calls.index("plain run"), len(calls) - 1 - calls[::-1].index("session: ok")
    run = ["run: ok", "y: 2 6 12 20"]
    start, end = "OrtEpProfilerImpl::StartProfiling", "OrtEpProfilerImpl::EndProfiling after events"
    profiled = ["profiled run", start, end, *run]
    assert calls[begin:next_session] == ["plain run", *run, *profiled, *profiled, start]
    assert calls[next_session:] == ["session: ok", "profiled run", *run, end, "unregister: ok", "end"]
    assert "example_event" in sorted(tmp_path.glob("single_run*"))[0].read_text()
    (whole,) = tmp_path.glob("whole_session*")
    assert "example_event" in whole.read_text()


def test_registering_an_allocator_replaces(play: Play) -> None:
    """For the CPU, for memory of nobody, for the EP's memory; and arenas of the host's own."""
    round_trip = ["register: ok", "found: it"] * 2 + ["register: ok", "unregister: ok", "unregister: failed"]
    played = play("register_allocator")
    assert played.results() == [
        *round_trip * 3,
        *["arena: ok", "arena: ok", "unregister: ok", "unregister: failed"],
    ]
    calls = played.calls("ReleaseAllocator device")
    assert calls.index("ReleaseAllocator device") == 1 + 2 * len(round_trip)  # replaced by the application's


def test_sessions_use_the_allocators_of_the_environment(play: Play) -> None:
    """With session.use_env_allocators: the application's for the CPU, the shared one on the device."""
    played = play("env_allocators")
    runs = ["session: ok", "run: ok", "y: 2 6 12 20"]
    assert played.results() == [
        *["use_env_allocators: 0", *runs, "own allocations: none", "of the session: another", *runs],
        *["use_env_allocators: 1", *runs, "own allocations: some", "of the session: own", *runs],
        "blocks left: 0",
    ]
    calls = played.calls("ReleaseAllocator device")
    with_option = calls[calls.index("use_env_allocators: 1") :]
    last_run = len(with_option) - with_option[::-1].index("y: 2 6 12 20")
    # What the EP made for the session is gone before it runs, or was never made.
    assert with_option[last_run:] == [
        "blocks left: 0",
        "ReleaseAllocator device",
        "unregister: ok",
        "end",
    ]


@pytest.mark.parametrize("words", ["", "null-for-nothing"])
def test_empty_tensors(words: str, play: Play) -> None:
    """Allocators are not asked for 0 bytes, to which some answer NULL: inputs, between nodes, outputs."""
    assert play("empty", words).results() == [
        *["tensor: ok", "data: NULL", "to device: ok", "back: ok"],
        *["session: ok", "run: ok", "y:", "bound run: ok"] * 5,
    ]


@pytest.mark.parametrize(
    ("slot", "scenario"),
    [("CreateDataTransfer", "register"), ("IsStreamAware", "copy"), ("CreateSyncStreamForDevice", "copy")],
)
def test_slots_that_stock_calls_unchecked(
    slot: str, scenario: str, player: Callable[[str], Play], host: str
) -> None:
    """NULL crashes stock; here there is a warning when the library is registered."""
    played = player(host)(scenario, f"NULL:OrtEpFactory::{slot}")
    if host == "stock":
        assert played.returncode == -signal.SIGSEGV
        return
    assert played.returncode == 0, played.errors
    warnings = [line for line in played.errors.splitlines() if line.startswith("log 2 ")]
    assert len(warnings) == 1
    assert f"OrtEpFactory::{slot} is NULL" in warnings[0]
    assert "stock onnxruntime" in warnings[0] and "crashes" in warnings[0]


def test_a_complete_plugin_has_no_warning(play: Play, host: str) -> None:
    if host == "ours":
        assert "log 2 " not in play("register").errors
