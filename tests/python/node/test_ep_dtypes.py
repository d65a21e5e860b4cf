"""Every element type goes through a Python provider, in and out."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ep_support import FuseAll, model, run_once
from onnx import TensorProto, helper

import ort_abi
from ort_abi import _tensor, dtypes, ep

NATIVE = [
    "float32",
    "float64",
    "float16",
    "bool",
    *(f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64)),
]
ML_TYPES = {
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.UINT4: ml_dtypes.uint4,
    TensorProto.INT4: ml_dtypes.int4,
}


class Spy(FuseAll):
    """Runs Identity or Cast chains; notes what it saw."""

    name = "SpyExecutionProvider"
    seen: list[Any]

    def compile(self, graph: Any) -> Any:
        to = graph.outputs[0].dtype

        def run(x: np.ndarray) -> np.ndarray:
            type(self).seen.append((x.dtype, x.copy()))
            return x.astype(to) if to != x.dtype else x

        return run


def spied(
    host: ModuleType, spec_in: Any, spec_out: Any, feed: np.ndarray, op: str = "Identity", **attributes: Any
) -> tuple[Any, Any]:
    Spy.seen = []
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    outputs = run_once(host, Spy, model([node], {"x": spec_in}, {"y": spec_out}, opset=21), {"x": feed})
    return Spy.seen[0], outputs[0]


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 4)])
def test_numpy_types(host: ModuleType, name: str, shape: tuple[int, ...]) -> None:
    feed = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5, name)
    (dtype, seen), result = spied(host, (name, list(shape)), (name, list(shape)), feed)
    assert dtype == np.dtype(name) == result.dtype
    np.testing.assert_array_equal(seen, feed, strict=True)
    np.testing.assert_array_equal(result, feed)
    assert result.shape == shape


def test_strings(host: ModuleType) -> None:
    feed = np.array([["a", ""], ["ü€😀", "long " * 50]], object)
    spec = (TensorProto.STRING, [2, 2])
    (dtype, seen), result = spied(host, spec, spec, feed)
    assert dtype == np.dtype(object)
    assert seen.tolist() == feed.tolist() == result.tolist()


def test_empty_string_tensor(host: ModuleType) -> None:
    spec = (TensorProto.STRING, [0])
    (_, seen), result = spied(host, spec, spec, np.array([], object))
    assert seen.shape == result.shape == (0,)


def test_string_output_must_hold_strings(host: ModuleType) -> None:
    cls = type(
        "Numbers",
        (FuseAll,),
        {"name": "N", "compile": lambda self, graph: lambda x: np.array([1, 2], object)},
    )
    spec = (TensorProto.STRING, [2])
    bytes_ = model([helper.make_node("Identity", ["x"], ["y"])], {"x": spec}, {"y": spec})
    with pytest.raises(Exception, match="a string tensor holds str or bytes, not int"):
        run_once(host, cls, bytes_, {"x": np.array(["a", "b"], object)})


class CastChain(FuseAll):
    """One kernel a Cast: values of the type under test go between two of our nodes."""

    name = "CastExecutionProvider"
    seen: list[Any]

    def get_capability(self, graph: Any) -> Any:
        return [[node] for node in graph.nodes]

    def compile(self, graph: Any) -> Any:
        to = graph.outputs[0].dtype

        def run(x: np.ndarray) -> np.ndarray:
            type(self).seen.append(x.dtype)
            return x.astype(to)

        return run


@pytest.mark.parametrize("number", ML_TYPES)
def test_ml_dtypes(host: ModuleType, number: int) -> None:
    """float32 -> type -> float32: the type crosses from one of our nodes to another in the host's memory."""
    signed = number != TensorProto.UINT4
    feed = np.array([0, 1, 2, 3, 4, 6, 7] + ([-1, -2, -4] if signed else []), np.float32)
    nodes = [
        helper.make_node("Cast", ["x"], ["t"], to=number, name="down"),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT, name="up"),
    ]
    spec = (np.float32, list(feed.shape))
    CastChain.seen = []
    outputs = run_once(
        host,
        CastChain,
        model(nodes, {"x": spec}, {"y": spec}, opset=21),
        {"x": feed},
        optimize=False,
    )
    expected = feed.astype(ML_TYPES[number]).astype(np.float32)
    np.testing.assert_array_equal(outputs[0], expected)
    assert CastChain.seen == [np.dtype(np.float32), np.dtype(ML_TYPES[number])]


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8])
def test_packing_round_trip(name: str, count: int) -> None:
    number = dtypes.to_onnx(name)
    bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}[name]
    raw = np.arange(count, dtype=np.uint8) * 5 % (1 << bits)
    packed = np.zeros(dtypes.bytes_for(number, count), np.uint8)
    for i, value in enumerate(raw):
        packed[i * bits // 8] |= value << (i * bits % 8)
    array = dtypes.unpack(packed, number, count)
    assert array.dtype == dtypes.from_onnx(number)
    if name.startswith("uint"):
        assert array.astype(int).tolist() == raw.tolist()
    if name.startswith("int"):
        assert array.astype(int).tolist() == [v - (1 << bits) if v >> (bits - 1) else v for v in raw.tolist()]
    assert dtypes.pack(array, number).tobytes() == packed.tobytes()


def test_every_onnx_number_goes_both_ways() -> None:
    for number in range(1, 27):
        assert dtypes.to_onnx(dtypes.from_onnx(number)) == number
        assert dtypes.to_onnx(number) == number


@pytest.mark.parametrize("bad", [np.datetime64, "nonsense", 99, None, [("a", "f4")], object()])
def test_what_no_tensor_can_hold(bad: Any) -> None:
    if bad is None:
        bad = np.dtype("V8")
    with pytest.raises(TypeError, match="no tensor can hold"):
        dtypes.to_onnx(bad)


def test_without_ml_dtypes_the_error_names_it() -> None:
    code = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        f"sys.path.insert(0, {str(ort_abi.__path__[0])!r}[:-8])\n"
        "from ort_abi import dtypes\n"
        "try: dtypes.from_onnx(16)\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tensors of bfloat16 need the package ml_dtypes" in done.stdout


def test_kernel_output_of_strings_and_packed_types(host: ModuleType) -> None:
    class Kernels(ep.ExecutionProvider):
        name = "StringKernelExecutionProvider"

        @ep.kernel("Identity", (1, None))
        class Identity(ep.Kernel):
            def compute(self, ctx: ep.KernelContext) -> None:
                ctx.output(0, ctx.inputs[0].shape)[...] = ctx.inputs[0]

    spec = (TensorProto.STRING, [2])
    bytes_ = model([helper.make_node("Identity", ["x"], ["y"])], {"x": spec}, {"y": spec})
    feed = np.array(["a", "bc"], object)
    assert run_once(host, Kernels, bytes_, {"x": feed})[0].tolist() == ["a", "bc"]


def test_there_is_no_array_over_the_strings_of_a_host() -> None:
    with pytest.raises(TypeError, match="no array over a host's strings"):
        _tensor.array_at(0, dtypes.STRING, (1,))
