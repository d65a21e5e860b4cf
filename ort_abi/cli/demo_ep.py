"""An execution provider in Python: three operators on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ort_abi import ep

Array = NDArray[Any]


class NumpyExecutionProvider(ep.ExecutionProvider):
    """Runs MatMul, Add and Relu with NumPy, in this package's host and in stock onnxruntime."""

    name, vendor = "NumpyExecutionProvider", "ort-abi"

    @staticmethod
    @ep.kernel("MatMul", (1, None), types={"T": [np.float32, np.float64]})
    def matmul(a: Array, b: Array) -> Array:
        product: Array = np.matmul(a, b)
        return product

    @staticmethod
    @ep.kernel("Add", (7, None), types={"T": [np.float32, np.float64]})
    def add(a: Array, b: Array) -> Array:
        return np.add(a, b)

    @staticmethod
    @ep.kernel("Relu", (6, None), types={"T": [np.float32, np.float64]})
    def relu(x: Array) -> Array:
        return np.maximum(x, 0)
