"""Generated models in both hosts: where stock onnxruntime refuses we do not compute, else alike."""

from __future__ import annotations

import io
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import ROOT
from tests.fuzz.compare import Result
from tests.fuzz.fuzzer import execute

MODELS, SEED = 300, 5
# What stock refuses for reasons of its own: what it has no kernel for; shapes that contradict or are missing
# in bodies, where it infers more than types; operands that cannot go together in nodes that never run;
# bfloat16, which its Python package cannot give out.
OWN_REASONS = [
    "NOT_IMPLEMENTED",
    "does not have type information",
    "has unknown shape",
    "must have the shape set",
    "inferred and declared dimension",
    "OpKernelContext::OutputMLValue",
    r"Op \((If|Loop|Scan)\) \[\w+InferenceError\]",
    "No corresponding Numpy type",
    r"tensor\(bfloat16\)",
]
TOLERANCES = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-10}


def run_all(host: str, folder: Path) -> list[Result]:
    """Every model's result in a host; a crash is one, too."""
    results: list[Result] = []
    while len(results) < MODELS:
        command = [sys.executable, "-m", "tests.fuzz.compare", host, str(folder)]
        command += [str(len(results)), str(MODELS)]
        done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
        stream = io.BytesIO(done.stdout)
        while stream.tell() < len(done.stdout):
            results.append(Result(*pickle.load(stream)))
        if done.returncode != 0:
            results.append(Result(len(results), f"crash, exit status {done.returncode}"))
    return results


def is_same(got: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Type, shape and values; reals within what another order of additions makes of them."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    tolerance = TOLERANCES.get(got.dtype.name)
    if tolerance is None:
        return np.array_equal(got, expected)
    with np.errstate(all="ignore"):
        return np.allclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def outputs_differ(ours: Result, stock: Result) -> bool:
    """True if any output does."""
    pairs = zip(ours.outputs, stock.outputs, strict=True)
    return not all(is_same(got, expected) for got, expected in pairs)


@pytest.mark.parametrize("hostility", [0, 15])
def test_generated_models_as_in_stock(fuzzer: Path, tmp_path: Path, hostility: int) -> None:
    """Same bytes, same inputs."""
    execute(fuzzer, "--seed", SEED, "--to", MODELS, "--hostility", hostility, "--write", tmp_path)
    ours, stock = run_all("ort_abi", tmp_path), run_all("onnxruntime", tmp_path)
    ran = [n for n in range(MODELS) if ours[n].error == ""]
    both = [n for n in ran if stock[n].error == ""]
    assert [n for n in both if outputs_differ(ours[n], stock[n])] == []
    refused = {n: stock[n].error for n in ran if stock[n].error}
    assert {n: text for n, text in refused.items() if not re.search("|".join(OWN_REASONS), text or "")} == {}
    assert [n for n in range(MODELS) if (ours[n].error or "").startswith("crash")] == []
    assert len(both) > MODELS // 3
