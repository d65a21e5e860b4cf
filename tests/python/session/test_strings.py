"""Strings with NUL characters, and strings that are no UTF-8, everywhere that a value goes.

What is no UTF-8 is `str` with `surrogateescape` in Python, as in file names; the host carries bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import FuseAll, open_session, registered
from onnx import TensorProto, helper

import ort_abi
from ort_abi import ep

RAW = [b"a\0b", b"\0", b"", b"plain", b"\xff\0\xfe", b"end\0"]
TEXTS = [raw.decode("utf-8", "surrogateescape") for raw in RAW]
GOOD = [text for text in TEXTS if "\udcff" not in text]
SPEC = (TensorProto.STRING, None)


def array(texts: Sequence[str] = TEXTS) -> np.ndarray:
    return np.array(texts, object)


def constant(name: str = "k") -> onnx.TensorProto:
    return onnx.TensorProto(name=name, dims=[len(RAW)], data_type=TensorProto.STRING, string_data=RAW)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    constants: Sequence[onnx.TensorProto] = (),
) -> bytes:
    values = [
        [helper.make_tensor_value_info(name, *spec) for name, spec in part.items()]
        for part in (inputs, outputs)
    ]
    graph = helper.make_graph(list(nodes), "g", *values, list(constants))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("test", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def identity(inputs: dict[str, Any], source: str, *constants: onnx.TensorProto) -> bytes:
    return model([helper.make_node("Identity", [source], ["y"])], inputs, {"y": SPEC}, constants)


def test_values_of_users() -> None:
    value = ort_abi.OrtValue.ortvalue_from_numpy(array())
    assert value.numpy().tolist() == TEXTS
    value.update_inplace(array(TEXTS[::-1]))
    assert value.numpy().tolist() == TEXTS[::-1]
    as_bytes = ort_abi.OrtValue.ortvalue_from_numpy(np.array(RAW, object))
    assert as_bytes.numpy().tolist() == TEXTS
    with pytest.raises(TypeError, match="str or bytes, not int"):
        ort_abi.OrtValue.ortvalue_from_numpy(np.array(["a\0", 1], object))


def test_feeds_and_outputs() -> None:
    session = ort_abi.InferenceSession(identity({"x": SPEC}, "x"))
    assert session.run(None, {"x": array()})[0].tolist() == TEXTS
    assert [out.tolist() for out in session.run(["y", "y"], {"x": array()})] == [TEXTS] * 2
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort_abi.OrtValue.ortvalue_from_numpy(array()))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == TEXTS


def test_constants() -> None:
    data = model(
        [helper.make_node("Identity", ["k"], ["y"]), helper.make_node("Shape", ["y"], ["n"])],
        {},
        {"k": SPEC, "y": SPEC, "n": (TensorProto.INT64, [1])},
        [constant()],
    )
    k, y, n = ort_abi.InferenceSession(data).run(None, {})
    assert (k.tolist(), y.tolist(), n.tolist()) == (TEXTS, TEXTS, [len(TEXTS)])


def test_constants_of_the_reference_provider() -> None:
    """The onnx package, which runs Compress here, reads strings strictly and cuts NULs off."""
    node = helper.make_node("Compress", ["k", "c"], ["y"], axis=0)
    inputs = {"c": (TensorProto.BOOL, [len(RAW)])}
    session = ort_abi.InferenceSession(model([node], inputs, {"y": SPEC}, [constant()]))
    assert "ReferenceExecutionProvider" in session.get_providers()
    assert session.run(None, {"c": np.array([True] * len(RAW))})[0].tolist() == TEXTS


@pytest.mark.parametrize("attribute", ["value_string", "value_strings", "value"])
def test_constant_nodes(attribute: str) -> None:
    values = {"value_string": RAW[0], "value_strings": RAW, "value": constant()}
    node = helper.make_node("Constant", [], ["k"], **{attribute: values[attribute]})
    again = helper.make_node("Identity", ["k"], ["y"])
    out = ort_abi.InferenceSession(model([node, again], {}, {"y": SPEC})).run(None, {})[0]
    assert out.tolist() == (TEXTS[0] if attribute == "value_string" else TEXTS)


def test_bodies() -> None:
    """Captured, carried and kept, iteration by iteration."""
    scalar = (TensorProto.INT64, [])
    inputs = {"i": scalar, "on": (TensorProto.BOOL, []), "carried": SPEC}
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["on"], ["go"]),
            helper.make_node("Identity", ["k"], ["next"]),
            helper.make_node("Identity", ["carried"], ["kept"]),
        ],
        "body",
        [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", *SPEC),
            helper.make_tensor_value_info("kept", *SPEC),
        ],
    )
    loop = helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body)
    data = model([loop], {"n": scalar, "x": SPEC}, {"last": SPEC, "all": SPEC}, [constant()])
    last, kept = ort_abi.InferenceSession(data).run(None, {"n": np.array(2), "x": array(TEXTS[::-1])})
    assert last.tolist() == TEXTS and kept.tolist() == [TEXTS[::-1], TEXTS]


class Reverses(FuseAll):
    """Gets strings, gives strings; remembers what it saw."""

    name = "ReversesExecutionProvider"
    seen: dict[str, Any]

    def compile(self, graph: Any) -> Any:
        Reverses.seen = {
            attribute: node.attributes[attribute] for node in graph.nodes for attribute in node.attributes
        }
        constants = {name: value.initializer for name, value in graph.initializers.items()}
        Reverses.seen |= {"constants": {name: found.tolist() for name, found in constants.items()}}

        def run(x: np.ndarray, *_: Any) -> np.ndarray:
            Reverses.seen["x"] = x.tolist()
            return np.array(x.tolist()[::-1], object)

        return run


def test_compiled_nodes_of_python_providers(host: ModuleType) -> None:
    node = helper.make_node("StringConcat", ["x", "k"], ["y"], domain="test", text=b"a\0b")
    data = model([node], {"x": SPEC}, {"y": SPEC}, [constant()])
    feed = array(TEXTS if host is ort_abi else ["plain", "", "b"])  # stock's feeds end at a NUL
    with registered(host, Reverses):
        options = {"session.disable_cpu_ep_fallback": "1"}
        session = open_session(host, Reverses, identity({"x": SPEC}, "x"), options)
        out = session.run(None, {"x": feed})[0].tolist()
        assert Reverses.seen["x"] == feed.tolist() and out == feed.tolist()[::-1]
        del session
        if host is ort_abi:
            session = open_session(host, Reverses, data, options)
            assert session.run(None, {"x": feed})[0].tolist() == TEXTS[::-1]
            assert Reverses.seen["text"] == "a\0b"
            del session


class Gives(FuseAll):
    """Gives strings that no feed had."""

    name = "GivesExecutionProvider"

    def compile(self, graph: Any) -> Any:
        return lambda x: np.array(GOOD, object)


def test_what_providers_give(host: ModuleType) -> None:
    with registered(host, Gives):
        session = open_session(host, Gives, identity({"x": SPEC}, "x"))
        assert session.run(None, {"x": np.array(["a"], object)})[0].tolist() == GOOD
        del session


class Kernels(ep.ExecutionProvider):
    """A kernel with a string attribute and a string constant."""

    name = "StringKernelsExecutionProvider"
    seen: Any = None

    @ep.kernel("Identity", since_version=(1, None), types={})
    class Identity(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            x = ctx.inputs[0]
            ctx.output(0, x.shape)[...] = x

    @ep.kernel("StringNormalizer", since_version=(10, None), types={})
    class StringNormalizer(ep.Kernel):
        def __init__(self, info: ep.KernelInfo) -> None:
            Kernels.seen = info.attribute("locale")

        def compute(self, ctx: ep.KernelContext) -> None:
            x = ctx.inputs[0]
            ctx.output(0, x.shape)[...] = x


def test_kernels_of_python_providers() -> None:
    node = helper.make_node("StringNormalizer", ["k"], ["y"], locale=b"en\0US")
    with registered(ort_abi, Kernels):
        session = open_session(ort_abi, Kernels, model([node], {}, {"y": SPEC}, [constant()]))
        assert session.run(None, {})[0].tolist() == TEXTS
        assert Kernels.seen == "en\0US"
        del session
