"""Measures what Python costs around a run, and a provider in Python around its NumPy calls.

`python benchmarks/run_python.py [--json]`

Both hosts are in one process, ours from the installed `ort_abi`, and take turns; every number is the best of
many. The plugin is samples/c_plugin, the providers in Python the classes below, in both hosts.

Beside a node stands the same `np.add(a, b, out=…)` in a Python loop, with two arrays for all results but the
first input: neither side allocates while it computes. (`a + b`, which makes a new array each time, takes more
than twice as long at 4 MB as soon as two of them are alive.)

- Tiny tensors: what a whole run takes longer than the loop, for each of its 100 nodes. So it contains a
  hundredth of what the run itself costs.
- 4 MB tensors: from the start of one kernel to the start of the next, in a run of ten; in the loop from call
  to call. That is the call, and all that the host and the bridge do between two calls, with caches that the
  tensors have emptied. A tenth of the measured times is shorter than the number; where in memory the tensors
  happen to lie makes up to a twentieth, so they are made anew several times.
- What is left of that run, before its first kernel starts and after its last one has ended, is a row of its
  own. It is more than `session.run` of tiny tensors takes, since all of its code comes from memory again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

import ort_abi

sys.path.insert(0, str(Path(__file__).resolve().parent))
from measure import build_plugin

NODES = 100
LARGE = 1 << 20  # floats: 4 MB
LARGE_NODES = 10
LARGE_ROUNDS = 25
LARGE_PLACES = 8
HOSTS: dict[str, ModuleType] = {"ours": ort_abi, "stock": onnxruntime}


@dataclass(frozen=True)
class Row:
    """One measured quantity beside what it is compared with; `aim` is the ratio to stay under."""

    what: str
    unit: str
    ours: float
    other: float
    against: str
    aim: float

    @property
    def ratio(self) -> float:
        """Ours divided by the other."""
        return self.ours / self.other


class AddProvider(ort_abi.ep.ExecutionProvider):
    """The least that a provider in Python can be."""

    name, vendor = "BenchmarkExecutionProvider", "ort-abi"

    @ort_abi.ep.kernel("Add", (7, None), types={"T": [np.float32]})
    class Add(ort_abi.ep.Kernel):
        """Writes straight into the host's memory."""

        def compute(self, ctx: ort_abi.ep.KernelContext) -> None:
            """y = a + b, of one shape."""
            a, b = ctx.inputs
            assert a is not None and b is not None
            np.add(a, b, out=ctx.output(0, a.shape))


Stamps = list[int]
"""Nanoseconds: the start and the end of each kernel of a run, in turns."""


class TimedAddProvider(ort_abi.ep.ExecutionProvider):
    """The same with a clock."""

    name, vendor = "TimedBenchmarkExecutionProvider", "ort-abi"
    stamps: ClassVar[Stamps] = []

    @ort_abi.ep.kernel("Add", (7, None), types={"T": [np.float32]})
    class Add(ort_abi.ep.Kernel):
        """Writes straight into the host's memory."""

        def compute(self, ctx: ort_abi.ep.KernelContext) -> None:
            """y = a + b, of one shape."""
            TimedAddProvider.stamps.append(time.perf_counter_ns())
            a, b = ctx.inputs
            assert a is not None and b is not None
            np.add(a, b, out=ctx.output(0, a.shape))
            TimedAddProvider.stamps.append(time.perf_counter_ns())


def adds(nodes: int, size: int) -> bytes:
    """A chain of Add nodes: y = x + b + b + ..."""
    names = ["x", *(f"t{index}" for index in range(1, nodes)), "y"]
    chain = [helper.make_node("Add", [names[i], "b"], [names[i + 1]]) for i in range(nodes)]
    x, b, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name in "xby")
    graph = helper.make_graph(chain, "adds", [x, b], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def relu() -> bytes:
    """One Relu node on four floats."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one_node", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def numpy_chain(nodes: int, x: NDArray[Any], b: NDArray[Any]) -> Callable[[], object]:
    """What the model of `adds` computes, in plain NumPy, into memory that is there already."""
    buffers = [np.empty_like(x), np.empty_like(x)]

    def chain() -> None:
        value = x
        for index in range(nodes):
            value = np.add(value, b, out=buffers[index % 2])

    return chain


def timed_numpy_chain(nodes: int, x: NDArray[Any], b: NDArray[Any], stamps: Stamps) -> Callable[[], object]:
    """The same with a clock."""
    buffers = [np.empty_like(x), np.empty_like(x)]

    def chain() -> None:
        value = x
        for index in range(nodes):
            stamps.append(time.perf_counter_ns())
            value = np.add(value, b, out=buffers[index % 2])
            stamps.append(time.perf_counter_ns())

    return chain


def session(host: ModuleType, model: bytes, provider: str) -> Any:
    """A session with every node on `provider`."""
    options = host.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_provider_for_devices([d for d in host.get_ep_devices() if d.ep_name == provider], {})
    return host.InferenceSession(model, options)


def best(calls: dict[str, Callable[[], object]], repeat: int, rounds: int) -> dict[str, float]:
    """The least microseconds a call of each, in turns: `rounds` times `repeat` calls."""
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            start = time.perf_counter_ns()
            for _ in range(repeat):
                call()
            least[name] = min(least[name], (time.perf_counter_ns() - start) / repeat / 1e3)
    return least


def of_a_run(folder: Path) -> Row:
    """`session.run` of one node of a plugin in C."""
    plugin = build_plugin(folder)
    feed = {"x": np.ones(4, np.float32)}
    calls: dict[str, Callable[[], object]] = {}
    for name, host in HOSTS.items():
        host.register_execution_provider_library("benchmark", str(plugin))
        one = session(host, relu(), "SampleCExecutionProvider")
        calls[name] = lambda one=one: one.run(None, feed)  # type: ignore[misc]
    times = best(calls, 200, 50)
    return Row("session.run, one node in C", "us", times["ours"], times["stock"], "stock", 1.0)


def of_a_tiny_node() -> list[Row]:
    """What a host and the bridge add to each Python node on tiny tensors."""
    x = np.ones(4, np.float32)
    feed = {"x": x, "b": x.copy()}
    calls: dict[str, Callable[[], object]] = {"numpy": numpy_chain(NODES, **feed)}
    for name, host in HOSTS.items():
        ort_abi.ep.register_with(host, AddProvider)
        many = session(host, adds(NODES, x.size), AddProvider.name)
        calls[name] = lambda many=many: many.run(None, feed)  # type: ignore[misc]
    times = best(calls, 3, 150)
    added = {name: (times[name] - times["numpy"]) / NODES for name in HOSTS}
    return [
        Row("added to a tiny Python node", "us", added["ours"], added["stock"], "stock", 1.0),
        Row("added to a tiny Python node", "us", added["ours"], 1.5, "aim", 1.0),
    ]


def of_a_large_node() -> list[Row]:
    """A Python node on large tensors beside its NumPy call, and the run around ten of them."""
    stamps = TimedAddProvider.stamps
    nodes: dict[str, list[int]] = {name: [] for name in (*HOSTS, "numpy")}
    around: dict[str, list[int]] = {name: [] for name in nodes}
    for host in HOSTS.values():
        ort_abi.ep.register_with(host, TimedAddProvider)
    for _ in range(LARGE_PLACES):
        calls = large_calls(stamps)
        for name, call in [*calls.items()] * LARGE_ROUNDS:
            call()
            stamps.clear()
            start = time.perf_counter_ns()
            call()
            around[name].append(time.perf_counter_ns() - start - (stamps[-1] - stamps[0]))
            nodes[name] += [later - earlier for earlier, later in pairwise(stamps[::2])]
    node, run = ({name: fast(taken[name]) for name in nodes} for taken in (nodes, around))
    return [
        Row("Python node, 4 MB tensors", "us", node["ours"], node["stock"], "stock", 1.0),
        Row("Python node, 4 MB tensors", "us", node["ours"], node["numpy"], "NumPy", 1.05),
        Row("session.run around ten of them", "us", run["ours"], run["stock"], "stock", 1.0),
    ]


def large_calls(stamps: Stamps) -> dict[str, Callable[[], object]]:
    """Ten additions of large tensors in NumPy and in each host, with tensors and sessions of their own."""
    x = np.ones(LARGE, np.float32)
    feed = {"x": x, "b": x.copy()}
    calls: dict[str, Callable[[], object]] = {"numpy": timed_numpy_chain(LARGE_NODES, **feed, stamps=stamps)}
    for name, host in HOSTS.items():
        few = session(host, adds(LARGE_NODES, LARGE), TimedAddProvider.name)
        calls[name] = lambda few=few: few.run(None, feed)  # type: ignore[misc]
    return calls


def fast(nanoseconds: list[int]) -> float:
    """The microseconds that a tenth of them stays under."""
    return sorted(nanoseconds)[len(nanoseconds) // 10] / 1e3


def main() -> int:
    """Prints the table; the exit status is 1 if a ratio misses its aim."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [of_a_run(Path(folder)), *of_a_tiny_node(), *of_a_large_node()]
    if arguments.json:
        print(json.dumps([{**asdict(row), "ratio": row.ratio} for row in rows]))
    else:
        for row in rows:
            mark = "" if row.ratio < row.aim else "  missed"
            numbers = f"{row.ours:8.2f} {row.unit}, {row.against} {row.other:8.2f} {row.unit}"
            print(f"{row.what:30} {numbers:34} {row.ratio:6.3f} < {row.aim}{mark}")
    return 0 if all(row.ratio < row.aim for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
