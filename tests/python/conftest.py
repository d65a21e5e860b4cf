"""Fixtures of the Python tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import ort_abi

if TYPE_CHECKING:
    from device_support import Plug
    from numpy_device import NumpyDevice


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`host`: each host in which Python providers run, stock onnxruntime and ours."""
    if "host" in metafunc.fixturenames:
        from ep_support import HOSTS

        metafunc.parametrize("host", [HOSTS[name] for name in sorted(HOSTS)], ids=sorted(HOSTS))


@pytest.fixture(autouse=True)
def no_fallback_left() -> Iterator[None]:
    """Sessions register the reference provider when they first need it; the next test starts without."""
    yield
    name = "ReferenceExecutionProvider"
    if name in ort_abi.env._state.libraries:
        gc.collect()
        ort_abi.unregister_execution_provider_library(name)


@pytest.fixture
def device() -> Iterator[Plug]:
    """A function that registers a provider in our host and gives its device; afterwards nothing is left."""
    from ort_abi import ep

    objects, plugged = ep.live_objects(), []

    def plug(cls: type[NumpyDevice]) -> ort_abi.OrtEpDevice:
        ort_abi.register(cls)
        plugged.append(cls)
        return next(found for found in ort_abi.get_ep_devices() if found.ep_name == cls.name)

    yield plug
    gc.collect()
    for cls in plugged:
        ort_abi.unregister_execution_provider_library(cls.name)
        assert len(cls.state.memory) == 0
    assert ep.live_objects() == objects
