"""What kernels and compiled functions return: arrays with the right elements, in whatever form, or errors."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ep_support import FuseAll, open_session, registered
from onnx import TensorProto, helper

from ort_abi import ep

TYPES: dict[str, int] = {
    "f2": TensorProto.FLOAT16,
    "f4": TensorProto.FLOAT,
    "f8": TensorProto.DOUBLE,
    "i1": TensorProto.INT8,
    "i2": TensorProto.INT16,
    "i4": TensorProto.INT32,
    "i8": TensorProto.INT64,
    "u2": TensorProto.UINT16,
    "u4": TensorProto.UINT32,
    "u8": TensorProto.UINT64,
}
KINDS = ["function", "set_output", "compiled", "two outputs"]


def provider(kind: str, give: Any) -> type[ep.ExecutionProvider]:
    """A provider for one Identity (or Split) node that puts out what `give(array)` makes of its input."""
    body: dict[str, Any] = {"name": "ResultExecutionProvider"}
    if kind == "compiled":
        body["compile"] = lambda self, graph: give
        return type("Results", (FuseAll,), body)
    if kind == "two outputs":
        body["compile"] = lambda self, graph: lambda x: tuple(map(give, np.split(x, 2)))
        return type("Results", (FuseAll,), body)
    if kind == "function":
        body["identity"] = ep.kernel("Identity", (1, None))(
            lambda x: give(x)
        )  # the kernel marks its function
        return type("Results", (ep.ExecutionProvider,), body)

    @ep.kernel("Identity", (1, None))
    class Identity(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            ctx.set_output(0, give(ctx.inputs[0]))

    body["Identity"] = Identity
    return type("Results", (ep.ExecutionProvider,), body)


def outputs(host: ModuleType, kind: str, give: Any, x: np.ndarray[Any, Any], element_type: int) -> list[Any]:
    """The outputs of two runs, as one array each."""
    two = kind == "two outputs"
    names = ["y", "z"] if two else ["y"]
    shape = [4, *x.shape[1:]] if two else list(x.shape)
    half = [2, *x.shape[1:]] if two else shape
    node = helper.make_node("Split" if two else "Identity", ["x"], names, **({"axis": 0} if two else {}))
    graph = helper.make_graph(
        [node],
        "results",
        [helper.make_tensor_value_info("x", element_type, shape)],
        [helper.make_tensor_value_info(name, element_type, half) for name in names],
    )
    opset = 17 if two else 21  # Identity takes the small types from there on
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    cls = provider(kind, give)
    found = []
    problem = ""
    with registered(host, cls):
        session = open_session(host, cls, model.SerializeToString())
        try:
            for _ in range(2):
                results = session.run(None, {"x": x})
                found.append(np.concatenate(results) if two else results[0])
        except Exception as error:  # its frames have the session
            problem = str(error)
        del session
    if problem:
        raise RuntimeError(problem)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TYPES)
def test_elements_in_the_other_byte_order(host: ModuleType, name: str, kind: str) -> None:
    x = np.array([[1, 2], [3, 100], [5, 6], [7, 8]], name)
    swapped = np.dtype(name).newbyteorder(">")
    for give in (
        lambda a: a.astype(swapped),
        lambda a: a.astype(swapped).T.copy().T,  # not in C's order
        lambda a: np.repeat(a, 2, axis=-1).astype(swapped)[..., ::2],
    ):
        for found in outputs(host, kind, give, x, TYPES[name]):
            np.testing.assert_array_equal(found, x)


def test_elements_in_the_other_byte_order_in_some_runs(host: ModuleType) -> None:
    """The short way for what comes as it came before is none for these."""
    turn = iter(range(100))

    def give(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return a.astype(">f4" if next(turn) % 2 else "<f4")

    for _ in range(3):
        for found in outputs(host, "function", give, np.array([1, 2, 3], np.float32), TensorProto.FLOAT):
            np.testing.assert_array_equal(found, [1, 2, 3])


@pytest.mark.parametrize("kind", KINDS)
def test_masked_arrays(host: ModuleType, kind: str) -> None:
    """Nothing of them is lost: without masked elements they are arrays, with some they are an error."""
    x = np.array([1, 2, 3, 4], np.float32)
    for found in outputs(host, kind, lambda a: np.ma.masked_greater(a, 9), x, TensorProto.FLOAT):
        np.testing.assert_array_equal(found, x)
    with pytest.raises(Exception, match=r"TypeError: output 0 \('y'\) is a masked array.*fill"):
        outputs(host, kind, lambda a: np.ma.masked_less(a, 2), x, TensorProto.FLOAT)
    for found in outputs(host, kind, lambda a: np.ma.masked_less(a, 2).filled(9), x, TensorProto.FLOAT):
        np.testing.assert_array_equal(found, [9, 2, 3, 4])


class Wrapped:
    """Something of another library."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return self.array if dtype is None else self.array.astype(dtype)


def read_only(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    made = a.copy()
    made.flags.writeable = False
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "give",
    [
        np.asmatrix,
        read_only,
        lambda a: Wrapped(a.copy()),
        lambda a: Wrapped(a.astype(">f4")),
        lambda a: a.copy().view(np.recarray),
        lambda a: np.asfortranarray(a),
        lambda a: np.repeat(a, 3, axis=0)[::3],
        lambda a: a[::-1][::-1],
        lambda a: np.array(a.tolist(), np.dtype("f4", metadata={"unit": "m"})),
    ],
    ids=[
        "matrix",
        "read-only",
        "__array__",
        "swapped __array__",
        "recarray",
        "fortran",
        "steps",
        "views",
        "meta",
    ],
)
def test_other_forms_of_arrays(host: ModuleType, give: Any, kind: str) -> None:
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    for found in outputs(host, kind, give, x, TensorProto.FLOAT):
        np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize(
    "give, message",
    [
        (lambda a: a.astype([("x", ">f4")]), "dtype"),
        (lambda a: a.astype(">f8"), "must have elements of float32, not float64"),
        (lambda a: a.astype(object), "must have elements of float32, not string"),
        (lambda a: [1.0, 2.0], "TypeError"),
        (lambda a: "abc", "must be a NumPy array, not str"),
        (lambda a: memoryview(a), "must be a NumPy array, not memoryview"),
    ],
    ids=["structured", "other type", "objects", "list", "text", "memoryview"],
)
def test_what_is_no_result(host: ModuleType, give: Any, message: str) -> None:
    x = np.arange(2, dtype=np.float32)
    with pytest.raises(Exception, match=message):
        outputs(host, "function", give, x, TensorProto.FLOAT)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "uint4"])
def test_types_of_ml_dtypes_are_native(host: ModuleType, dtype: str) -> None:
    element_type = getattr(TensorProto, dtype.upper().replace("_E4M3FN", "E4M3FN"))
    x = np.array([1, 2, 3, 4], np.float32).astype(getattr(ml_dtypes, dtype))
    if host.__name__ == "onnxruntime":
        pytest.skip("its Python API has no such arrays")
    for kind in KINDS[:3]:
        for found in outputs(host, kind, lambda a: a[::-1].copy()[::-1], x, element_type):
            np.testing.assert_array_equal(found.astype(np.float32), x.astype(np.float32))
