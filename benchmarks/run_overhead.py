"""Measures what a host costs around a plugin that does next to nothing: ours beside stock onnxruntime.

`python benchmarks/run_overhead.py [--library libort_abi.so] [--json]`

The same C program and the same plugin library (samples/c_plugin) go through the C API of both hosts. Runs are
interleaved in one process; start-up time and resident memory come from a process of its own for each host,
the best of several.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import ROOT, build_plugin, call, command_line, compile_c, our_library, stock_library

STARTS = 5


@dataclass(frozen=True)
class Row:
    """One measured quantity of both hosts; `aim` is the ratio to stay under."""

    what: str
    unit: str
    ours: float
    stock: float
    aim: float

    @property
    def ratio(self) -> float:
        """Ours divided by stock's."""
        return self.ours / self.stock


def write_model(path: Path) -> None:
    """Writes a model of one Relu node on four floats."""
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one_node", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def measure(ours: Path, stock: Path, folder: Path) -> list[Row]:
    """Builds what is needed in `folder` and measures both hosts."""
    plugin = build_plugin(folder)
    program = compile_c(ROOT / "benchmarks/run_overhead.c", folder / "run_overhead", "-ldl")
    model = folder / "one_node.onnx"
    write_model(model)
    run = call(program, "run", plugin, model, ours, stock)
    start_us: list[float] = []
    resident_kb: list[float] = []
    for host in (ours, stock):
        starts = [call(program, "start", host, plugin, model) for _ in range(STARTS)]
        start_us.append(min(us for us, _ in starts))
        resident_kb.append(min(kb for _, kb in starts))
    return [
        Row("Run, one node", "ns", run[0], run[1], 0.1),
        Row("environment + register + session", "us", start_us[0], start_us[1], 0.05),
        Row("resident memory after a run", "kB", resident_kb[0], resident_kb[1], 0.25),
    ]


def main() -> int:
    """Prints the table; the exit status is 1 if a ratio misses its aim."""
    arguments = command_line(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure((arguments.library or our_library()).resolve(), stock_library(), Path(folder))
    if arguments.json:
        print(json.dumps([{**asdict(row), "ratio": row.ratio} for row in rows]))
    else:
        print(f"{'':34} {'ours':>10} {'stock':>10}       ratio   aim")
        for row in rows:
            mark = "" if row.ratio < row.aim else "  missed"
            numbers = f"{row.ours:10.0f} {row.stock:10.0f} {row.unit}  {row.ratio:8.3f} < {row.aim}"
            print(f"{row.what:34} {numbers}{mark}")
    return 0 if all(row.ratio < row.aim for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
