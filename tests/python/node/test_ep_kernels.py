"""Kernel-based providers: classes and functions, attributes, constants, versions, types, optional values."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import model, mul_model, run_once, skip_old_stock
from onnx import helper

from ort_abi import ep

A = np.array([1, -2, 3], np.float32)
SPEC = (np.float32, [3])


def provider(**kernels: Any) -> type[ep.ExecutionProvider]:
    return type("Kernels", (ep.ExecutionProvider,), {"name": "KernelExecutionProvider", **kernels})


def test_function_with_attributes(host: ModuleType) -> None:
    @ep.kernel("LeakyRelu", (6, None), types={"T": [np.float32]})
    def leaky(x: np.ndarray, *, alpha: float = 0.01) -> np.ndarray:
        return np.where(x < 0, x * np.float32(alpha), x)

    for attributes, slope in (({"alpha": 0.5}, 0.5), ({}, 0.01)):
        node = helper.make_node("LeakyRelu", ["x"], ["y"], **attributes)
        outputs = run_once(host, provider(leaky=leaky), model([node], {"x": SPEC}, {"y": SPEC}), {"x": A})
        np.testing.assert_allclose(outputs[0], [1, -2 * slope, 3])


def test_missing_attribute_without_default_is_an_error(host: ModuleType) -> None:
    @ep.kernel("Relu", (6, None))
    def relu(x: np.ndarray, *, limit: float) -> np.ndarray:
        return np.minimum(x, limit)

    node = helper.make_node("Relu", ["x"], ["y"], name="r1")
    with pytest.raises(Exception, match=r"'r1' \(Relu.*\).*needs the attribute 'limit'"):
        run_once(host, provider(relu=relu), model([node], {"x": SPEC}, {"y": SPEC}), {"x": A})


def test_one_function_for_two_operators(host: ModuleType) -> None:
    @ep.kernel("Relu", (6, None))
    @ep.kernel("Abs", (6, None))
    def both(x: np.ndarray) -> np.ndarray:
        return np.abs(x)

    nodes = [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Abs", ["t"], ["y"])]
    outputs = run_once(host, provider(both=both), model(nodes, {"x": SPEC}, {"y": SPEC}), {"x": A})
    np.testing.assert_array_equal(outputs[0], np.abs(A))


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "expected"),
    [
        ("Concat", 2, {"axis": 0}, {"axis": 0}),
        ("LeakyRelu", 1, {"alpha": 0.25}, {"alpha": 0.25}),
        ("DepthToSpace", 1, {"blocksize": 2, "mode": "CRD"}, {"blocksize": 2, "mode": "CRD"}),
        ("Transpose", 1, {"perm": [0, 1, 3, 2]}, {"perm": [0, 1, 3, 2]}),
    ],
)
def test_attribute_kinds(host: ModuleType, op: str, inputs: int, attributes: Any, expected: Any) -> None:
    seen: dict[str, Any] = {}
    infos: list[ep.KernelInfo] = []

    @ep.kernel(op, (1, None))
    class Spy(ep.Kernel):
        def __init__(self, info: ep.KernelInfo) -> None:
            infos.append(info)
            seen.update({name: info.attribute(name) for name in expected})
            assert info.attribute("nothing", "default") == "default"
            with pytest.raises(KeyError, match=f"'n1' \\({op}\\) has no attribute 'nothing'"):
                info.attribute("nothing")
            assert (info.name, info.op_type, info.domain) == ("n1", op, "")
            assert info.since_version >= 1
            assert (info.input_names[0], info.output_names) == ("x0", ["y"])
            assert info.input_type(0).element_type == info.output_type(0).element_type == 1
            assert info.constant_input(0) is None

        def compute(self, ctx: ep.KernelContext) -> None:
            ctx.set_output(0, np.zeros((1, 4, 2, 2), np.float32))

    names = [f"x{i}" for i in range(inputs)]
    node = helper.make_node(op, names, ["y"], name="n1", **attributes)
    bytes_ = model(
        [node], dict.fromkeys(names, (np.float32, [1, 4, 2, 2])), {"y": (np.float32, ["a", "b", "c", "d"])}
    )
    run_once(host, provider(spy=Spy), bytes_, {name: np.ones((1, 4, 2, 2), np.float32) for name in names})
    assert seen == expected
    with pytest.raises(RuntimeError, match="valid only while the kernel is made"):
        _ = infos[0].name


def test_tensor_and_string_list_attributes(host: ModuleType) -> None:
    seen: dict[str, Any] = {}

    @ep.kernel("ConstantOfShape", (9, None))
    class Filled(ep.Kernel):
        def __init__(self, info: ep.KernelInfo) -> None:
            seen["value"] = info.attribute("value")

        def compute(self, ctx: ep.KernelContext) -> None:
            ctx.output(0, tuple(ctx.inputs[0]))[...] = seen["value"]

    value = onnx.numpy_helper.from_array(np.array([2.5], np.float32))
    node = helper.make_node("ConstantOfShape", ["s"], ["y"], value=value)
    bytes_ = model([node], {"s": (np.int64, [2])}, {"y": (np.float32, ["a", "b"])})
    outputs = run_once(host, provider(filled=Filled), bytes_, {"s": np.array([2, 3], np.int64)})
    np.testing.assert_array_equal(outputs[0], np.full((2, 3), 2.5, np.float32))
    np.testing.assert_array_equal(seen["value"], np.array([2.5], np.float32), strict=True)


def test_lists_of_strings_and_floats(host: ModuleType) -> None:
    skip_old_stock(host)
    seen: dict[str, Any] = {}

    @ep.kernel("LabelEncoder", (1, None), domain="ai.onnx.ml")
    class Encoder(ep.Kernel):
        def __init__(self, info: ep.KernelInfo) -> None:
            seen.update(keys=info.attribute("keys_strings"), values=info.attribute("values_floats"))

        def compute(self, ctx: ep.KernelContext) -> None:
            table = dict(zip(seen["keys"], seen["values"], strict=True))
            ctx.set_output(0, np.array([table[item] for item in ctx.inputs[0]], np.float32))

    node = helper.make_node(
        "LabelEncoder",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        keys_strings=["a", "", "ü"],
        values_floats=[1.0, 2.0, 3.0],
    )
    bytes_ = model(
        [node], {"x": (onnx.TensorProto.STRING, [2])}, {"y": (np.float32, [2])}, domains={"ai.onnx.ml": 3}
    )
    outputs = run_once(host, provider(encoder=Encoder), bytes_, {"x": np.array(["ü", "a"], object)})
    np.testing.assert_array_equal(outputs[0], [3, 1])
    assert seen == {"keys": ["a", "", "ü"], "values": [1.0, 2.0, 3.0]}


def test_constant_input(host: ModuleType) -> None:
    @ep.kernel("Add", (7, None))
    class Add(ep.Kernel):
        def __init__(self, info: ep.KernelInfo) -> None:
            self.weight = info.constant_input(1)
            assert info.constant_input(0) is None

        def compute(self, ctx: ep.KernelContext) -> None:
            np.add(ctx.inputs[0], self.weight, out=ctx.output(0, (3,)))

    node = helper.make_node("Add", ["x", "w"], ["y"])
    w = np.array([5, 6, 7], np.float32)
    outputs = run_once(host, provider(add=Add), model([node], {"x": SPEC}, {"y": SPEC}, {"w": w}), {"x": A})
    np.testing.assert_array_equal(outputs[0], A + w)


def test_missing_inputs_are_none(host: ModuleType) -> None:
    seen: list[Any] = []

    @ep.kernel("Clip", (6, None))
    class Clip(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            x, low, high = ctx.inputs
            seen.append(low)
            np.minimum(x, high, out=ctx.output(0, x.shape))

    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    bytes_ = model([node], {"x": SPEC, "high": (np.float32, [])}, {"y": SPEC})
    outputs = run_once(host, provider(clip=Clip), bytes_, {"x": A, "high": np.array(2, np.float32)})
    np.testing.assert_array_equal(outputs[0], np.minimum(A, 2))
    assert seen == [None]


def test_unused_outputs_need_no_value(host: ModuleType) -> None:
    seen: list[Any] = []

    @ep.kernel("GRU", (1, None))
    class Gru(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            seen.append((ctx.num_outputs, ctx.wants_output(0), ctx.wants_output(1)))
            ctx.set_output(1, ctx.inputs[0][-1:])

    node = helper.make_node("GRU", ["x", "w", "r"], ["", "y"], hidden_size=1)
    shapes = {"x": (np.float32, [2, 1, 1]), "w": (np.float32, [1, 3, 1]), "r": (np.float32, [1, 3, 1])}
    feeds = {
        name: np.arange(np.prod(spec[1]), dtype=np.float32).reshape(spec[1]) for name, spec in shapes.items()
    }
    outputs = run_once(host, provider(gru=Gru), model([node], shapes, {"y": (np.float32, [1, 1, 1])}), feeds)
    assert outputs[0].tolist() == [[[1.0]]]
    assert seen == [(2, False, True)]


def test_types_choose_the_kernel(host: ModuleType) -> None:
    @ep.kernel("Abs", (6, None), types={"T": [np.float32, "float16"]})
    def small(x: np.ndarray) -> np.ndarray:
        return np.abs(x)

    @ep.kernel("Abs", (6, None), types={"T": [np.float64]})
    def large(x: np.ndarray) -> np.ndarray:
        return np.abs(x) + 100

    cls = provider(small=small, large=large)
    node = helper.make_node("Abs", ["x"], ["y"])
    for dtype, extra in ((np.float32, 0), (np.float16, 0), (np.float64, 100)):
        bytes_ = model([node], {"x": (dtype, [3])}, {"y": (dtype, [3])})
        np.testing.assert_array_equal(
            run_once(host, cls, bytes_, {"x": A.astype(dtype)})[0], np.abs(A) + extra
        )
    bytes_ = model([node], {"x": (np.int32, [3])}, {"y": (np.int32, [3])})
    with pytest.raises(Exception, match="CPU"):  # no kernel of ours: the node is not claimed
        run_once(host, cls, bytes_, {"x": A.astype(np.int32)})


def test_since_version_chooses_the_kernel(host: ModuleType) -> None:
    @ep.kernel("Relu", (6, 13))
    def old(x: np.ndarray) -> np.ndarray:
        return x * 0 + 13

    @ep.kernel("Relu", 14)
    def new(x: np.ndarray) -> np.ndarray:
        return x * 0 + 14

    node = helper.make_node("Relu", ["x"], ["y"])
    for opset, expected in ((13, 13), (14, 14), (18, 14)):
        bytes_ = model([node], {"x": SPEC}, {"y": SPEC}, opset=opset)
        assert run_once(host, provider(old=old, new=new), bytes_, {"x": A})[0].tolist() == [expected] * 3


class Base(ep.ExecutionProvider):
    name = "BaseExecutionProvider"

    @ep.kernel("Mul", (7, None))
    def mul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a * b


def test_a_kernel_of_a_base_is_replaced_by_its_name(host: ModuleType) -> None:
    class Left(Base):
        name = "LeftExecutionProvider"

        @ep.kernel("Mul", (7, None))
        def mul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return a * b + 1

    class Right(Base):
        name = "RightExecutionProvider"

    class Both(Left, Right):
        name = "BothExecutionProvider"

    class Neither(Base):
        name, mul = "NeitherExecutionProvider", None

    a = np.array([1, 2, 3], np.float32)
    for cls, expected in ((Base, a * a), (Left, a * a + 1), (Right, a * a), (Both, a * a + 1)):
        (y,) = run_once(host, cls, mul_model(), {"a": a, "b": a})
        np.testing.assert_array_equal(y, expected)
    assert Neither.kernels == ()


def test_kernels_are_inherited_and_can_be_mixed_with_compile(host: ModuleType) -> None:
    class Base(ep.ExecutionProvider):
        name = "BaseExecutionProvider"

        @ep.kernel("Relu", (6, None))
        def relu(x: np.ndarray) -> np.ndarray:
            return np.maximum(x, 0)

    class Derived(Base):
        name = "DerivedExecutionProvider"

        def get_capability(self, graph: Any) -> Any:
            by_kernel = [node for node in graph.nodes if self.has_kernel(node)]
            return [*by_kernel, [node for node in graph.nodes if node not in by_kernel]]

        def compile(self, graph: Any) -> Any:
            assert [node.op_type for node in graph.nodes] == ["Neg"]
            return np.negative

    nodes = [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    outputs = run_once(host, Derived, model(nodes, {"x": SPEC}, {"y": SPEC}), {"x": A})
    np.testing.assert_array_equal(outputs[0], -np.maximum(A, 0))


def test_fusing_without_compile_is_an_error_that_says_so(host: ModuleType) -> None:
    @ep.kernel("Relu", (6, None))
    def relu(x: np.ndarray) -> np.ndarray:
        return np.maximum(x, 0)

    cls = provider(relu=relu, get_capability=lambda self, graph: [graph.nodes])
    bytes_ = model([helper.make_node("Neg", ["x"], ["y"])], {"x": SPEC}, {"y": SPEC})
    with pytest.raises(Exception, match="claims nodes to fuse but does not define compile"):
        run_once(host, cls, bytes_, {"x": A})


def test_has_kernel_outside_of_get_capability() -> None:
    with pytest.raises(AttributeError):
        provider()().has_kernel(None)


@pytest.mark.parametrize("bad", [0, (5, 4), (-1, None)])
def test_bad_version_ranges(bad: Any) -> None:
    with pytest.raises(ValueError, match="is no range of opsets"):
        ep.kernel("Relu", bad)


def test_kernel_must_be_a_kernel_or_function() -> None:
    with pytest.raises(TypeError, match="needs a Kernel class or a function"):
        ep.kernel("Relu", 6)(5)
