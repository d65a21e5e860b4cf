"""`OrtEpApi::GetOpSchema` on the operators that stock onnxruntime adds to ONNX's: as stock says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from abigen.contrib import contrib_schemas
from tests.differential.test_op_schemas import NEWEST, NHWC, SchemaReader
from tests.support.native_model import NativeHost

KEYS = [(schema.name, schema.domain) for schema in contrib_schemas()]


@pytest.fixture(scope="module")
def ours(native_host: NativeHost) -> SchemaReader:
    """Schemas of this tree's host."""
    return SchemaReader(native_host)


@pytest.fixture(scope="module")
def stock() -> Iterator[SchemaReader]:
    """Schemas of the installed onnxruntime, which must be the one that the table was made from."""
    onnxruntime = pytest.importorskip("onnxruntime", minversion="1.32")
    [library] = Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*")
    host = NativeHost(library)
    environment = host.get("CreateEnv", "OrtEnv*", 3, b"schemas")
    yield SchemaReader(host)
    host.api.ReleaseEnv(environment)


def test_every_operator_is_as_stock_says(ours: SchemaReader, stock: SchemaReader) -> None:
    assert len(KEYS) == 159
    for name, domain in KEYS:
        for version in (0, 1, NEWEST):
            assert ours.read(name, version, domain) == stock.read(name, version, domain), (name, domain)
        assert ours.read(name, 1, domain) is not None


def test_the_one_with_channels_last_is_stocks(ours: SchemaReader, stock: SchemaReader) -> None:
    found = ours.read("QLinearAveragePool", NEWEST, NHWC)
    assert found is not None
    assert found == stock.read("QLinearAveragePool", NEWEST, NHWC)
