"""The library under test, and stock's beside it, as the tests of models use them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.c_client import Client, stock_library
from tests.support.native_model import NativeHost


@pytest.fixture(scope="session")
def native_host(libort_abi: Path) -> NativeHost:
    """libort_abi.so, built from this tree."""
    return NativeHost(libort_abi)


@pytest.fixture(scope="session")
def _clients(libort_abi: Path) -> dict[str, Client]:
    return {"ours": Client(libort_abi), "stock": Client(stock_library())}


@pytest.fixture
def ours(_clients: dict[str, Client]) -> Iterator[Client]:
    """A client of libort_abi.so."""
    yield _clients["ours"]
    _clients["ours"].close()


@pytest.fixture
def stock(_clients: dict[str, Client]) -> Iterator[Client]:
    """A client of stock's library."""
    yield _clients["stock"]
    _clients["stock"].close()


@pytest.fixture(params=["ours", "stock"])
def client(request: pytest.FixtureRequest, _clients: dict[str, Client]) -> Iterator[Client]:
    """Each of both: the same calls, the same answers."""
    yield _clients[request.param]
    _clients[request.param].close()
