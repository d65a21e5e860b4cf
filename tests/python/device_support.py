"""What the tests of providers with a device share: models, and ways to look at a host and at what is left."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
from c_host import api_version
from ep_support import model
from numpy_device import NumpyDevice
from onnx import TensorProto, helper

import ort_abi
from ort_abi import ep

A = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
W = np.array([[1, 2, 3], [-4, 5, 6]], np.float32)
SPEC = (TensorProto.FLOAT, [2, 3])
EXPECTED = np.maximum(A * W + A, 0)
SPLIT_EXPECTED = 1 / (1 + np.exp(-(A * W))) + W
FEEDS = {"a": A}

Plug = Callable[[type[NumpyDevice]], ort_abi.OrtEpDevice]
"""Type of the fixture `device`."""


def chain() -> bytes:
    """y = relu(a * w + a), which the device takes whole."""
    nodes = [
        helper.make_node("Mul", ["a", "w"], ["m"], name="mul1"),
        helper.make_node("Add", ["m", "a"], ["s"], name="add1"),
        helper.make_node("Relu", ["s"], ["y"], name="relu1"),
    ]
    return model(nodes, {"a": SPEC}, {"y": SPEC}, {"w": W})


def split() -> bytes:
    """Device, CPU, device: y = sigmoid(a * w) + w."""
    nodes = [
        helper.make_node("Mul", ["a", "w"], ["m"]),
        helper.make_node("Sigmoid", ["m"], ["s"]),
        helper.make_node("Add", ["s", "w"], ["y"]),
    ]
    return model(nodes, {"a": SPEC}, {"y": SPEC}, {"w": W})


def left_nothing(cls: type[NumpyDevice]) -> bool:
    """True if neither memory of the device nor an object of a provider is left."""
    gc.collect()
    return len(cls.state.memory) == 0 and ep.live_objects() == 0


def unreported(cls: type[NumpyDevice], callback: str, act: Callable[[], Any], given: Any = None) -> int:
    """How many failures `act` could not tell to the host while `callback` fails."""
    before = ep.unreported_errors()
    cls.state.failing, cls.state.given = callback, given
    try:
        act()
    finally:
        cls.state.failing, cls.state.given = "", None
    return ep.unreported_errors() - before


def has_streams(host: ModuleType) -> bool:
    """False for hosts in which kernels cannot find their stream: they are told of none."""
    return host is not onnxruntime or api_version() >= 28
