"""Measures the memory of sessions whose weights are packed: 1 and 8 of them, sharing and not, ours and stock.

`python benchmarks/prepack_memory.py [--library libort_abi.so] [--megabytes 200] [--json]`

A chain of MatMuls on the CPU execution provider of each host. Every case is a process of its own: a C program
that goes through the host's C API. Stock onnxruntime shares only weights that the application gives it with
AddInitializer, so there they are given (from a mapped file, whose pages are not counted).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import ROOT, command_line, compile_c, our_library, stock_library

SIDE = 2048
SESSIONS = 8
AIM = 1.1


@dataclass(frozen=True)
class Case:
    """Resident megabytes that a number of sessions add to a process."""

    host: str
    sharing: str
    sessions: int
    megabytes: float
    result: float


def write_model(folder: Path, count: int) -> Path:
    """Writes y = x w0 w1 ... with `count` weights of SIDE x SIDE, and the weights in a file of their own."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    names = ["x", *(f"v{i}" for i in range(1, count)), "y"]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(count)]
    scale = np.float32(SIDE**-0.5)
    weights = [random.standard_normal((SIDE, SIDE), np.float32) * scale for _ in range(count)]
    with open(folder / "weights.bin", "wb") as file:
        for weight in weights:
            file.write(weight.tobytes())
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, SIDE]) for name in "xy")
    tensors = [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)]
    graph = helper.make_graph(nodes, "weights", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def measure(ours: Path, stock: Path, folder: Path, count: int) -> list[Case]:
    """Builds what is needed in `folder` and measures all cases."""
    program = compile_c(ROOT / "benchmarks" / "prepack_memory.c", folder / "prepack_memory", "-ldl")
    model = write_model(folder, count)
    cases = []
    for host, library, sharing in (("ours", ours, "shared"), ("stock", stock, "given")):
        for mode in ("private", sharing):
            for sessions in (1, SESSIONS):
                command = [program, library, model, mode, sessions, folder / "weights.bin", count, SIDE, SIDE]
                done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True)
                before, after, result = map(float, done.stdout.split())
                cases.append(Case(host, mode, sessions, (after - before) / 1024, result))
    return cases


def ratios(cases: list[Case], weights: float) -> dict[str, dict[str, float]]:
    """For each host: one session to its weights, and sharing sessions to one of them."""
    found = {}
    for host in ("ours", "stock"):
        one, _, shared, shared_many = (case.megabytes for case in cases if case.host == host)
        found[host] = {"one session / weights": one / weights, "8 shared / 1": shared_many / shared}
    return found


def main() -> int:
    """Prints the table; the exit status is 1 if a ratio of ours misses its aim."""
    parser = command_line(__doc__)
    parser.add_argument("--megabytes", type=int, default=200, help="size of the weights")
    arguments = parser.parse_args()
    each = SIDE * SIDE * 4 / 2**20
    count = max(1, round(arguments.megabytes / each))
    with tempfile.TemporaryDirectory() as folder:
        library = (arguments.library or our_library()).resolve()
        cases = measure(library, stock_library(), Path(folder), count)
    found = ratios(cases, count * each)
    if arguments.json:
        print(json.dumps({"cases": [asdict(case) for case in cases], "ratios": found}))
    else:
        print(f"{count} weights of {each:.0f} MB")
        for case in cases:
            print(f"{case.host:6} {case.sharing:8} {case.sessions} sessions {case.megabytes:8.1f} MB")
        for host, values in found.items():
            print(host, ", ".join(f"{name}: {value:.3f}" for name, value in values.items()))
    return 0 if all(value <= AIM for value in found["ours"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
