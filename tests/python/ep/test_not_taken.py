"""Nodes that a provider did not take: which, where, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import open_session, registered
from onnx import TensorProto, helper

import ort_abi
from ort_abi import ep, errors
from ort_abi._lib import lib

NO_FALLBACK = {"session.disable_cpu_ep_fallback": "1"}
FLOAT = (TensorProto.FLOAT, [2])


class Narrow(ep.ExecutionProvider):
    """Has kernels that fit only some nodes."""

    name = "NarrowExecutionProvider"

    @ep.kernel("Mul", since_version=(7, 12), types={"T": [np.float32]})
    def old_mul(a: Any, b: Any) -> Any:
        return a * b

    @ep.kernel("Add", since_version=14, types={"T": [np.float32, np.int64]})
    def add(a: Any, b: Any) -> Any:
        return a + b

    @ep.kernel("Foo", domain="test.other", since_version=1)
    def foo(x: Any) -> Any:
        return x

    @ep.kernel("Neg", since_version=13, types={"T": [np.float32]})
    def neg(x: Any) -> Any:
        return -x


class Shy(Narrow):
    """Claims nothing."""

    name = "ShyExecutionProvider"

    def get_capability(self, graph: Any) -> Any:
        return []


def value(name: str, kind: int = TensorProto.FLOAT, shape: Any = (2,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(*nodes: onnx.NodeProto, kind: int = TensorProto.FLOAT) -> bytes:
    """x and the condition c to y."""
    inputs = [value("x", kind), value("c", TensorProto.BOOL, [])]
    graph = helper.make_graph(list(nodes), "main", inputs, [value("y", kind)])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("test", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def body(name: str, node: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph([node], name, [], [value(node.output[0])])


def foo(output: str = "t") -> onnx.NodeProto:
    """A node that nobody has."""
    return helper.make_node("Foo", ["x"], [output], "foo", domain="test")


def choice(then: onnx.NodeProto, output: str = "y", name: str = "cond") -> onnx.NodeProto:
    """An If with `then` in its then_branch."""
    other = helper.make_node("Neg", ["x"], [f"else_of_{output}"], "neg")
    return helper.make_node(
        "If", ["c"], [output], name, then_branch=body("then", then), else_branch=body("else", other)
    )


@pytest.fixture
def narrow() -> Iterator[type[ep.ExecutionProvider]]:
    with registered(ort_abi, Narrow):
        yield Narrow


def refusal(cls: type[ep.ExecutionProvider], model_bytes: bytes, fallback: bool = False) -> str:
    """The error of a session on the provider."""
    with pytest.raises((errors.Fail, errors.NotImplemented)) as raised:
        open_session(ort_abi, cls, model_bytes, fallback=fallback)
    return str(raised.value)


def lines_of(text: str) -> list[str]:
    """The lines of nodes and reasons."""
    return [line.strip() for line in text.splitlines()[1:]]


@pytest.mark.parametrize(
    ("node", "kind", "reason"),
    [
        (
            helper.make_node("Mul", ["x", "x"], ["y"], "n"),
            TensorProto.FLOAT,
            "has kernels for Mul of versions 7 to 12, the model has 14",
        ),
        (
            helper.make_node("Add", ["x", "x"], ["y"], "n"),
            TensorProto.DOUBLE,
            "has kernels for Add that take tensor(float), tensor(int64) for 'T',"
            " the model has tensor(double)",
        ),
        (helper.make_node("Erf", ["x"], ["y"], "n"), TensorProto.FLOAT, "has no kernel for Erf"),
        (
            helper.make_node("Foo", ["x"], ["y"], "n", domain="test"),
            TensorProto.FLOAT,
            "has a kernel for Foo of domain 'test.other', the model's is of 'test'",
        ),
    ],
)
def test_the_error_says_what_the_provider_has_instead(
    narrow: type[ep.ExecutionProvider], node: onnx.NodeProto, kind: int, reason: str
) -> None:
    lines = lines_of(refusal(narrow, model(node, kind=kind)))
    assert lines[0].startswith("'n' (") and lines[1:] == [f"EP 'NarrowExecutionProvider' {reason}"]


def test_a_kernel_that_fits_but_was_not_claimed() -> None:
    with registered(ort_abi, Shy):
        lines = lines_of(refusal(Shy, model(helper.make_node("Neg", ["x"], ["y"], "n"))))
    assert lines[1] == "EP 'ShyExecutionProvider' has a kernel for it, and did not claim it"


def test_a_node_inside_an_if_is_named_with_its_place() -> None:
    with pytest.raises(errors.NotImplemented) as raised:
        ort_abi.InferenceSession(model(choice(foo())))
    lines = lines_of(str(raised.value))
    assert lines[0] == "'foo' (Foo, test, version 1) in then_branch of If 'cond'"
    assert not any("(If," in line for line in lines)


def test_the_place_of_a_node_deep_inside() -> None:
    inner = choice(foo("deep"), "t", "inner")
    loop = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Erf", ["s"], ["u"], "erf"),
            choice(foo("d"), "v", "in loop"),
            helper.make_node("Add", ["u", "v"], ["next"]),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("s")],
        [value("on", TensorProto.BOOL, []), value("next")],
    )
    nodes = [choice(inner, "z"), helper.make_node("Loop", ["", "c", "z"], ["y"], "loop", body=loop)]
    with pytest.raises(errors.NotImplemented, match="takes 2 nodes") as raised:
        ort_abi.InferenceSession(model(*nodes))
    found = [line for line in lines_of(str(raised.value)) if line.startswith("'")]
    assert found == [
        "'foo' (Foo, test, version 1) in then_branch of If 'inner' in then_branch of If 'cond'",
        "'foo' (Foo, test, version 1) in then_branch of If 'in loop' in body of Loop 'loop'",
    ]


def test_the_place_in_a_node_without_a_name() -> None:
    with pytest.raises(errors.NotImplemented) as raised:
        ort_abi.InferenceSession(model(choice(foo(), name="")))
    assert lines_of(str(raised.value))[0].endswith(" in then_branch of the If that makes 'y'")


def test_without_the_fallback_all_are_listed(narrow: type[ep.ExecutionProvider]) -> None:
    """Nobody has the If either, whatever is inside."""
    text = refusal(narrow, model(choice(helper.make_node("Erf", ["x"], ["t"], "erf"))))
    assert "session.disable_cpu_ep_fallback is 1" in text and "takes 2 nodes" in text
    assert lines_of(text) == [
        "'erf' (Erf, ai.onnx, version 13) in then_branch of If 'cond'",
        "EP 'NarrowExecutionProvider' has no kernel for Erf",
        "'cond' (If, ai.onnx, version 16)",
        "EP 'NarrowExecutionProvider' has no kernel for If",
    ]


# ---- nodes that another provider runs ----


def _left() -> bytes:
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["a"], "mul"),
        helper.make_node("Neg", ["a"], ["b"], "neg"),
        choice(helper.make_node("Mul", ["b", "b"], ["t"], "inner"), "y"),
    ]
    return model(*nodes)


def test_a_verbose_log_says_why(
    narrow: type[ep.ExecutionProvider], capfd: pytest.CaptureFixture[str]
) -> None:
    devices = [device for device in ort_abi.get_ep_devices() if device.ep_name == narrow.name]
    for severity in (0, 2):
        options = ort_abi.SessionOptions()
        options.log_severity_level = severity
        options.add_provider_for_devices(devices, {})
        ort_abi.InferenceSession(_left(), options)
        said = capfd.readouterr().err
        wanted = (
            "EP 'NarrowExecutionProvider' did not take 'inner' (Mul, ai.onnx, version 14) in then_branch of"
            " If 'cond': it has kernels for Mul of versions 7 to 12, the model has 14"
        )
        assert (wanted in said) == (severity == 0)
        assert "did not take 'neg'" not in said


def test_a_session_records_why(narrow: type[ep.ExecutionProvider]) -> None:
    config = {"session.ort_abi_record_not_taken": "1"}
    session = open_session(ort_abi, narrow, _left(), config=config, fallback=True)
    of_mul = "has kernels for Mul of versions 7 to 12, the model has 14"
    found = [
        (each.node_name, each.op_type, each.since_version, each.place, each.reason)
        for each in session.get_not_taken()
        if each.ep_name == narrow.name
    ]
    assert found == [
        ("mul", "Mul", 14, "", of_mul),
        ("cond", "If", 16, "", "has no kernel for If"),
        ("inner", "Mul", 14, "in then_branch of If 'cond'", of_mul),
    ]
    assert open_session(ort_abi, narrow, _left(), fallback=True).get_not_taken() == []


def test_any_allocation_may_fail(narrow: type[ep.ExecutionProvider]) -> None:
    """While the reasons are put together: an error of the session, which is the usual one once there is
    memory."""
    devices = [device for device in ort_abi.get_ep_devices() if device.ep_name == narrow.name]
    wanted = refusal(narrow, model(choice(foo())), fallback=True)
    found: list[str] = []
    for before_failure in range(3000):
        options = ort_abi.SessionOptions()
        options.add_provider_for_devices(devices, {})
        made = lib.ortabi_allocation_count()
        lib.ortabi_fail_allocation(before_failure)
        try:
            with pytest.raises(errors.OrtError) as raised:
                ort_abi.InferenceSession(model(choice(foo())), options)
        finally:
            lib.ortabi_fail_allocation(-1)
        found.append(str(raised.value))
        if lib.ortabi_allocation_count() - made < before_failure:
            break
    assert found[-1] == wanted
    assert len(found) > 50 and found.count(wanted) < 10
