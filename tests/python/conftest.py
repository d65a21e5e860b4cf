"""Fixtures of the Python tests."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`host`: each host in which Python providers run, stock onnxruntime and ours."""
    if "host" in metafunc.fixturenames:
        from ep_support import HOSTS

        metafunc.parametrize("host", [HOSTS[name] for name in sorted(HOSTS)], ids=sorted(HOSTS))
