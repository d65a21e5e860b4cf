"""The hosts in which the built-in CPU EP is tested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cpu_ep import Host, OurHost, StockHost, build_plugin


@pytest.fixture(scope="package")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The EP as a plugin library."""
    return build_plugin(tmp_path_factory.mktemp("cpu_ep") / "libcpu_ep.so")


@pytest.fixture(scope="package", params=["stock", "ours"])
def ep_host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """Stock onnxruntime, and our own host."""
    if request.param == "ours":
        yield OurHost()
        return
    stock = StockHost(request.getfixturevalue("library"))
    yield stock
    stock.close()
