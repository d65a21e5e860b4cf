"""Measures CopyTensors beside memcpy, and ours beside stock onnxruntime with the same EP library.

`python benchmarks/copy_tensors.py [--library libort_abi.so] [--json]`

One process holds both hosts; the EP is samples/c_plugin_device. Stock onnxruntime 1.32 cannot copy from host
memory to host memory outside of sessions. (Not called copy.py: beside such a script nothing can import
Python's own `copy`.)
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import ROOT, call, command_line, compile_c, our_library, stock_library

SMALL_COUNT = 1000


@dataclass(frozen=True)
class Row:
    """One number: `value` is to be at least, or at most, `aim` (None: for information)."""

    what: str
    value: float
    unit: str
    aim: float | None = None
    at_least: bool = True

    @property
    def is_met(self) -> bool:
        """True if there is no aim or the value reaches it."""
        return self.aim is None or (self.value >= self.aim if self.at_least else self.value <= self.aim)


def build_device(folder: Path) -> Path:
    """Compiles samples/c_plugin_device in `folder`."""
    output = folder / "libvirtual_device.so"
    sources = sorted((ROOT / "samples" / "c_plugin_device").glob("*.c"))
    flags = ["-std=c11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{ROOT / 'csrc' / 'include'}"]
    subprocess.run(["cc", *flags, *map(str, sources), "-o", str(output), "-lpthread"], check=True)
    return output


def rows_of(numbers: list[float]) -> list[Row]:
    """Ratios and overheads from what the C program prints: memcpy, ours and stock's, four times."""
    large, small, device_large, device_small = (numbers[i : i + 3] for i in range(0, 12, 3))
    per_tensor = [(host - small[0]) / SMALL_COUNT for host in small[1:]]
    device_per_tensor = [(host - device_small[0]) / SMALL_COUNT for host in device_small[1:]]
    return [
        Row("64 MB, host to host: memcpy's time / ours", large[0] / large[1], "", 0.95),
        Row("4 KB, host to host: ours over memcpy, a tensor", per_tensor[0], "ns", 100, at_least=False),
        Row("64 MB, host to device: memcpy's time / ours", device_large[0] / device_large[1], ""),
        Row("64 MB, host to device: memcpy's time / stock's", device_large[0] / device_large[2], ""),
        Row(
            "64 MB, host to device: ours / stock's",
            device_large[1] / device_large[2],
            "",
            1.05,
            at_least=False,
        ),
        Row("4 KB, host to device: ours and the EP over memcpy, a tensor", device_per_tensor[0], "ns"),
        Row("4 KB, host to device: stock and the EP over memcpy, a tensor", device_per_tensor[1], "ns"),
        Row("4 KB, host to device: ours / stock's", device_small[1] / device_small[2], "", 1, at_least=False),
    ]


def main() -> int:
    """Prints the table; the exit status is 1 if a number misses its aim."""
    arguments = command_line(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = compile_c(ROOT / "benchmarks/copy_tensors.c", folder / "copy_tensors", "-ldl")
        ours = (arguments.library or our_library()).resolve()
        rows = rows_of(call(program, build_device(folder), ours, stock_library()))
    if arguments.json:
        print(json.dumps([{**asdict(row), "is_met": row.is_met} for row in rows]))
    else:
        for row in rows:
            aim = "" if row.aim is None else f"  {'>=' if row.at_least else '<='} {row.aim}"
            print(f"{row.what:62} {row.value:9.2f} {row.unit:2}{aim}{'' if row.is_met else '  missed'}")
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
