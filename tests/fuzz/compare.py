"""Runs generated models in one host: `python -m tests.fuzz.compare HOST FOLDER FROM TO`.

Prints a pickled tuple a model, the fields of `Result`: whoever started this has all those before a crash.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 4096  # elements of an input
TYPES = {f"tensor({name})": name for name in ("double", "int8", "int16", "int32", "int64", "uint8", "bool")}
TYPES |= {"tensor(float)": "float32", "tensor(float16)": "float16"}


@dataclass
class Result:
    """`error` is empty when the model ran; None when nobody can make its inputs here."""

    number: int
    error: str | None = ""
    outputs: list[NDArray[Any]] = field(default_factory=list)


def make_feeds(session: Any, number: int) -> dict[str, NDArray[Any]] | None:
    """Small inputs, the same in every host; None where they would be large or of a type NumPy lacks."""
    rng = np.random.default_rng(number)
    feeds = {}
    for each in session.get_inputs():
        shape = [dim if isinstance(dim, int) and dim >= 0 else 2 for dim in each.shape]
        if each.type not in TYPES or np.prod(shape, dtype=np.float64) > MOST:
            return None
        feeds[each.name] = rng.integers(0, 4, shape).astype(TYPES[each.type])
    return feeds


def make_session(host: str, data: bytes) -> Any:
    """A session on the host's own CPU provider alone."""
    module = importlib.import_module(host)
    options = module.SessionOptions()
    options.log_severity_level = 4
    more = {"fallback": False} if host == "ort_abi" else {}
    return module.InferenceSession(data, options, providers=["CPUExecutionProvider"], **more)


def run(host: str, number: int, data: bytes) -> Result:
    """Loads and runs one model."""
    try:
        session = make_session(host, data)
        feeds = make_feeds(session, number)
        if feeds is None:
            return Result(number, None)
        return Result(number, "", session.run(None, feeds))
    except Exception as error:
        return Result(number, str(error) or type(error).__name__)


def main(host: str, folder: Path, start: int, stop: int) -> None:
    """Runs the models start.onnx to (stop - 1).onnx."""
    for number in range(start, stop):
        result = run(host, number, (folder / f"{number}.onnx").read_bytes())
        pickle.dump((result.number, result.error, result.outputs), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
