"""`python -m ort_abi.standin DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ort_abi.standin import lay_out


def main() -> int:
    """The command line."""
    description = "Lays out libraries, headers, pkg-config and CMake files in place of stock onnxruntime's."
    parser = argparse.ArgumentParser(prog="python -m ort_abi.standin", description=description)
    parser.add_argument("folder", type=Path, metavar="DIR", help="is made unless it is there")
    folder: Path = parser.parse_args().folder
    try:
        lay_out(folder)
    except OSError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
