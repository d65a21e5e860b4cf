"""The library under test, as the tests of models use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.native_model import NativeHost


@pytest.fixture(scope="session")
def native_host(libort_abi: Path) -> NativeHost:
    """libort_abi.so, built from this tree."""
    return NativeHost(libort_abi)
