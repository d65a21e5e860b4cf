"""Fixtures of the Python tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import ort_abi


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
