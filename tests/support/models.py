"""Models to test with: what the `onnx` package ships or generates, and what other packages ship."""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

WHEEL_PACKAGES = ["rapidocr_onnxruntime", "silero_vad", "magika"]


def shipped_models(folder: str) -> list[Path]:
    """The `.onnx` files below one folder of the `onnx` package's test data, such as "simple"."""
    root = Path(onnx.__file__).parent / "backend" / "test" / "data" / folder
    return sorted(root.rglob("*.onnx"))


def node_test_cases() -> list[Any]:
    """The `onnx` package's test cases of operators that have a model, with `data_sets`: pairs of inputs and
    outputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return [case for case in collect_testcases(None) if case.model is not None]


def generated_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Name and model of every test case that the `onnx` package makes in code: some thousand models."""
    from onnx.backend.test.case.model import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in [*node_test_cases(), *collect_testcases()]:
            if case.model is not None:
                yield case.name, case.model


def wheel_models() -> list[Path]:
    """The models of `WHEEL_PACKAGES`; skips the test where there are none.

    They are looked for in the folder that the environment variable ORT_ABI_TEST_MODELS names (unpacked
    wheels) and in the installed packages.
    """
    folders = [Path(text) for text in [os.environ.get("ORT_ABI_TEST_MODELS", "")] if text]
    for package in WHEEL_PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            folders.append(Path(spec.origin).parent)
    models = sorted({path for folder in folders for path in folder.rglob("*.onnx")})
    if not models:
        pytest.skip(
            f"no models of {', '.join(WHEEL_PACKAGES)}: install them, or unpack their wheels into a folder"
            " and name that in ORT_ABI_TEST_MODELS"
        )
    return models
