"""What data transfers keep of tensors in memory that the CPU can use: refused, unless there is a stream."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import numpy_device
import pytest
from device_support import EXPECTED, FEEDS, chain, left_nothing
from ep_support import open_session, registered
from numpy_device import device_class

from ort_abi import ep

DOORS: dict[str, Callable[[ep.DeviceTensor], Any]] = {
    "array": lambda tensor: tensor.numpy(),
    "bytes": lambda tensor: tensor.bytes(),
    "slice": lambda tensor: tensor.numpy()[1:],
    "memoryview": lambda tensor: memoryview(tensor.bytes()),
    "capsule": lambda tensor: tensor.__dlpack__(max_version=(1, 0)),
    "dlpack": np.from_dlpack,
}


def keeping(door: Callable[[ep.DeviceTensor], Any], kept: list[Any], on_stream: bool = False) -> Any:
    """A device whose transfer keeps something of the host's tensors if it copies on a stream (or not)."""

    class Transfer(numpy_device.Transfer):
        def copy(self, source: ep.DeviceTensor, target: ep.DeviceTensor, stream: Any) -> None:
            if (stream is not None) == on_stream:
                kept.append(door(source if source.device.is_host else target))
            super().copy(source, target, stream)

    cls = device_class(stream_aware=on_stream)
    cls.create_data_transfer = classmethod(lambda cls: Transfer(cls.state))  # type: ignore[method-assign, assignment]
    return cls


def run(host: ModuleType, cls: Any) -> str:
    """A run: "" where the result was right, else the error."""
    problem = ""
    with registered(host, cls):
        try:
            session = open_session(host, cls, chain(), fallback=True)
            np.testing.assert_allclose(session.run(None, FEEDS)[0], EXPECTED, rtol=1e-6)
        except Exception as error:  # its frames have the session
            problem = str(error)
        session = None
        gc.collect()
    return problem


@pytest.mark.parametrize("name", DOORS)
def test_what_a_copy_keeps_is_refused(host: ModuleType, name: str) -> None:
    kept: list[Any] = []
    cls = keeping(DOORS[name], kept)
    problem = run(host, cls)
    assert "DeviceTensor(" in problem and "was kept after the call" in problem
    kept.clear()
    assert left_nothing(cls)


@pytest.mark.parametrize("name", DOORS)
def test_what_a_copy_drops_is_not(host: ModuleType, name: str) -> None:
    cls = keeping(DOORS[name], dropped := Dropped())
    assert run(host, cls) == ""
    assert dropped.count
    assert left_nothing(cls)


class Dropped(list[Any]):
    """Keeps nothing."""

    count = 0

    def append(self, item: Any) -> None:
        self.count += 1


@pytest.mark.parametrize("name", DOORS)
def test_work_of_a_stream_may_go_on(host: ModuleType, name: str) -> None:
    kept: list[Any] = []
    cls = keeping(DOORS[name], kept, on_stream=True)
    assert run(host, cls) == ""
    assert kept
    kept.clear()
    assert left_nothing(cls)
