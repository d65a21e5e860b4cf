"""Kernels whose constraints name what their operator does not have."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ep_support import model, run_once
from onnx import helper

import ort_abi
from ort_abi import ep


class MisspeltEp(ep.ExecutionProvider):
    """Its Relu would add 100."""

    name = "MisspeltExecutionProvider"

    @staticmethod
    @ep.kernel("Relu", (14, None), types={"Q": [np.float32]})
    def relu(x: Any) -> Any:
        """Stands for a Relu."""
        return x + np.float32(100)


def test_an_unknown_type_parameter_leaves_the_node_to_others(
    host: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    """The kernel does not fit, as in stock onnxruntime; our host says why."""
    spec = (np.float32, [3])
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": spec}, {"y": spec})
    x = np.array([1, -2, 3], np.float32)
    (y,) = run_once(host, MisspeltEp, proto, {"x": x}, fallback=True)
    np.testing.assert_array_equal(y, [1, 0, 3])
    if host is ort_abi:
        expected = (
            "EP 'MisspeltExecutionProvider': its kernel for 'Relu' constrains 'Q', which is no type parameter"
        )
        assert expected in capfd.readouterr().err
