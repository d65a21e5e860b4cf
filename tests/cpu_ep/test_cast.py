"""Cast between all types."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tests.support.cpu_ep import (
    NUMBERS,
    DType,
    Host,
    name_of,
    onnx_type,
    run_ep,
    values,
)

CASTABLE = [*NUMBERS, np.bool_]


@pytest.mark.parametrize("source", CASTABLE, ids=name_of)
def test_cast_between_all_types(ep_host: Host, source: DType) -> None:
    """Every pair of types, with values that both hold, 0-d and empty tensors among them."""
    for target in CASTABLE:
        x = values((3, 200), source, low=0 if np.dtype(target).kind == "u" else -9)
        for part in (x, x[:0], x[0, 0:1].reshape(())):
            got = run_ep(ep_host, "Cast", {"x": part}, output_type=onnx_type(target), to=onnx_type(target))
            np.testing.assert_array_equal(got[0], part.astype(target))
            assert got[0].dtype == np.dtype(target) and got[0].shape == part.shape


def test_cast_widens_every_float16_exactly(ep_host: Host) -> None:
    """All 65,536 of them."""
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    got = run_ep(ep_host, "Cast", {"x": x}, output_type=TensorProto.FLOAT, to=TensorProto.FLOAT)
    np.testing.assert_array_equal(got[0], x.astype(np.float32))


@pytest.mark.parametrize("source", [np.float32, np.float64], ids=name_of)
def test_cast_to_float16_rounds_to_nearest_even(ep_host: Host, source: DType) -> None:
    """Around every tie between two neighbours, as NumPy rounds."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(source)
    ties = (halves[:-1] + halves[1:]) / 2
    x = np.concatenate([ties, np.nextafter(ties, source(0)), np.nextafter(ties, source(np.inf)), -ties])
    x = np.concatenate([x, np.array([65519.99, 65520, 1e9, np.inf, -np.inf, np.nan, 1e-30], source)]).astype(
        source
    )
    got = run_ep(ep_host, "Cast", {"x": x}, output_type=TensorProto.FLOAT16, to=TensorProto.FLOAT16)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got[0], x.astype(np.float16))


def test_cast_large_integers_exactly(ep_host: Host) -> None:
    """uint64 beyond int64, and int64 to float in one rounding."""
    large = np.array([2**63 + 2**40, 2**64 - 1, 2**53 + 1], np.uint64)
    for target in (np.float32, np.float64, np.int64, np.uint8):
        got = run_ep(ep_host, "Cast", {"x": large}, output_type=onnx_type(target), to=onnx_type(target))
        np.testing.assert_array_equal(got[0], large.astype(target))
    reals = np.array([2.0**63, 1.5 * 2.0**63, 255.9], np.float64)
    got = run_ep(ep_host, "Cast", {"x": reals}, output_type=TensorProto.UINT64, to=TensorProto.UINT64)
    np.testing.assert_array_equal(got[0], np.array([2**63, 3 * 2**62, 255], np.uint64))


def test_cast_of_what_does_not_fit_is_defined(ep_host: Host) -> None:
    """NaN, infinities and huge values give some integer, never a trap; bool is whether it is not zero."""
    x = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    for target in (np.int8, np.int32, np.int64, np.uint64):
        got = run_ep(ep_host, "Cast", {"x": x}, output_type=onnx_type(target), to=onnx_type(target))
        assert got[0].shape == (4,)
    got = run_ep(ep_host, "Cast", {"x": np.array([0.25, 0, np.nan], np.float32)}, output_type=9, to=9)
    np.testing.assert_array_equal(got[0], [True, False, True])
