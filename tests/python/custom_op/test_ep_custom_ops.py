"""Operators that Python providers bring along: compiled, with kernels, and what is wrong with them."""

from __future__ import annotations

import gc
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from bridge_support import open_ep
from ep_support import model, open_session, registered, run_once
from onnx import helper

from ort_abi import ep
from ort_abi._native import ffi

DOMAIN = "test.ops"
X = np.array([1, 2, 3], np.float32)
SPEC = (np.float32, [3])


class Boom(Exception):
    """Raised by the kernels under test."""


def one_node(op: str, inputs: list[str], outputs: tuple[str, ...] = ("y",), **more: Any) -> bytes:
    node = helper.make_node(op, inputs, list(outputs), domain=DOMAIN, name="n")
    return model(
        [node],
        dict.fromkeys(inputs, SPEC),
        dict.fromkeys(outputs, SPEC),
        domains={DOMAIN: more.get("version", 1)},
    )


class Compiles(ep.ExecutionProvider):
    """Compiles its operators, whatever they are, to the sum of their inputs."""

    name = "CompilesExecutionProvider"
    custom_ops: ClassVar[Any] = (
        ep.CustomOp("Twice", DOMAIN, [np.float32], [np.float32]),
        ep.CustomOp("Any", DOMAIN, [None], [None]),
        ep.CustomOp("Perhaps", DOMAIN, [np.float32, ep.Formal(np.float32, "optional")], [np.float32]),
        ep.CustomOp("Many", DOMAIN, [ep.Formal(np.float32, "variadic", min_arity=2)], [np.float32]),
        ep.CustomOp("Late", DOMAIN, [np.float32], [np.float32], since_version=(2, 3)),
        ep.CustomOp("Other", "test.other", [np.float32], [np.float32]),
    )

    def get_capability(self, graph: Any) -> Any:
        return graph.nodes

    def compile(self, graph: Any) -> Any:
        (node,) = graph.nodes
        factor = 2 if node.op_type == "Twice" else 1
        return lambda *inputs: sum(x for x in inputs if x is not None) * np.float32(factor)


@pytest.mark.parametrize(
    ("op", "inputs", "factor"),
    [("Twice", "a", 2), ("Any", "a", 1), ("Perhaps", "ab", 2), ("Perhaps", "a", 1), ("Many", "ab", 2)],
)
def test_compiled_operators(host: ModuleType, op: str, inputs: str, factor: int) -> None:
    (y,) = run_once(host, Compiles, one_node(op, list(inputs)), dict.fromkeys(inputs, X))
    np.testing.assert_array_equal(y, X * factor)


@pytest.mark.parametrize(("op", "inputs"), [("Twice", "ab"), ("Perhaps", "abc"), ("Many", "a")])
def test_wrong_numbers_of_inputs_are_refused(host: ModuleType, op: str, inputs: str) -> None:
    with pytest.raises(Exception, match=op):
        run_once(host, Compiles, one_node(op, list(inputs)), dict.fromkeys(inputs, X))


@pytest.mark.parametrize("version", [2, 3])
def test_a_version_within_the_range(host: ModuleType, version: int) -> None:
    (y,) = run_once(host, Compiles, one_node("Late", ["x"], version=version), {"x": X})
    np.testing.assert_array_equal(y, X)


def test_types_are_checked(host: ModuleType) -> None:
    node = helper.make_node("Twice", ["x"], ["y"], domain=DOMAIN, name="n")
    spec = (np.int64, [3])
    bytes_ = model([node], {"x": spec}, {"y": spec}, domains={DOMAIN: 1})
    with pytest.raises(Exception, match=r"Twice.*'?n'?|float"):
        run_once(host, Compiles, bytes_, {"x": X.astype(np.int64)})


class Kernels(ep.ExecutionProvider):
    """Kernels for its operators, a function and a class."""

    name = "KernelsExecutionProvider"
    custom_ops: ClassVar[Any] = (
        ep.CustomOp("Power", DOMAIN, [np.float32], [np.float32]),
        ep.CustomOp("Split", DOMAIN, [np.float32], [np.float32, np.float32]),
        ep.CustomOp("Fails", DOMAIN, [np.float32], [np.float32]),
        ep.CustomOp("FailsToBeMade", DOMAIN, [np.float32], [np.float32]),
        ep.CustomOp("Without", DOMAIN, [np.float32], [np.float32]),
    )
    closed: ClassVar[list[str]] = []

    @ep.kernel("Power", (1, None), domain=DOMAIN)
    def power(x: Any, *, exponent: int = 2) -> Any:
        return x**exponent

    @ep.kernel("Split", (1, None), domain=DOMAIN)
    class Split(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            (x,) = ctx.inputs
            ctx.set_output(0, x + 1)
            ctx.set_output(1, x - 1)

        def close(self) -> None:
            Kernels.closed.append("Split")

    @ep.kernel("Fails", (1, None), domain=DOMAIN)
    def fails(x: Any) -> Any:
        raise Boom("it broke here")

    @ep.kernel("FailsToBeMade", (1, None), domain=DOMAIN)
    class FailsToBeMade(ep.Kernel):
        def __init__(self, info: ep.KernelInfo) -> None:
            raise Boom("it broke here")


def test_operators_with_kernels(host: ModuleType) -> None:
    Kernels.closed.clear()
    objects = ep.live_objects()
    nodes = [
        helper.make_node("Power", ["x"], ["t"], domain=DOMAIN, name="p", exponent=3),
        helper.make_node("Split", ["t"], ["y", "z"], domain=DOMAIN, name="s"),
    ]
    bytes_ = model(nodes, {"x": SPEC}, {"y": SPEC, "z": SPEC}, domains={DOMAIN: 1})
    y, z = run_once(host, Kernels, bytes_, {"x": X})
    np.testing.assert_array_equal(y, X**3 + 1)
    np.testing.assert_array_equal(z, X**3 - 1)
    assert Kernels.closed == ["Split"]
    assert ep.live_objects() == objects


@pytest.mark.parametrize("op", ["Fails", "FailsToBeMade"])
def test_what_a_kernel_raises_is_an_error(host: ModuleType, op: str) -> None:
    objects = ep.live_objects()
    with pytest.raises(Exception, match=r"KernelsExecutionProvider.*: .*Boom: it broke here"):
        run_once(host, Kernels, one_node(op, ["x"]), {"x": X})
    assert ep.live_objects() == objects


def test_an_operator_that_nobody_takes_is_an_error(host: ModuleType) -> None:
    with pytest.raises(Exception, match=r"Without|assigned to the default CPU EP"):
        run_once(host, Kernels, one_node("Without", ["x"]), {"x": X})


def test_a_single_node_without_a_kernel_is_an_error(host: ModuleType) -> None:
    class Claims(Kernels):
        name = "ClaimsExecutionProvider"

        def get_capability(self, graph: Any) -> Any:
            return graph.nodes

        def has_kernel(self, node: Any) -> bool:
            return True

    message = r"ClaimsExecutionProvider.*CreateKernelV2: .*::Without of version 1 was not compiled"
    with pytest.raises(Exception, match=message):
        run_once(host, Claims, one_node("Without", ["x"]), {"x": X})


def test_sessions_without_the_provider_do_not_know_the_operators(host: ModuleType) -> None:
    with registered(host, Compiles), pytest.raises(Exception, match=r"Twice|test\.ops"):
        host.InferenceSession(one_node("Twice", ["x"]), providers=["CPUExecutionProvider"])


def test_a_second_session_and_a_second_registration(host: ModuleType) -> None:
    bytes_ = one_node("Twice", ["x"])
    for _ in range(2):
        with registered(host, Compiles):
            sessions = [open_session(host, Compiles, bytes_) for _ in range(2)]
            for session in sessions:
                np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * 2)
            del session, sessions
            gc.collect()


# ---- the structs ----


def test_domains_and_operators_as_a_host_sees_them() -> None:
    with open_ep(Compiles) as opened:
        count = ffi.new("size_t*")
        assert opened.factory.GetNumCustomOpDomains(opened.factory, count) == ffi.NULL
        domains = ffi.new("OrtCustomOpDomain*[]", 2)
        assert count[0] == 2
        assert opened.factory.GetCustomOpDomains(opened.factory, domains, 2) == ffi.NULL
        assert domains[0] != domains[1] and ffi.NULL not in list(domains)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ep.CustomOp("", DOMAIN, [], [None]), "has a name, a domain and an output"),
        (lambda: ep.CustomOp("A", "", [], [None]), "has a name, a domain and an output"),
        (lambda: ep.CustomOp("A", DOMAIN, [None], []), "has a name, a domain and an output"),
        (lambda: ep.CustomOp("A", DOMAIN, [], [None], since_version=(3, 2)), "is no range of versions"),
        (lambda: ep.CustomOp("A", DOMAIN, [], [None], since_version=0), "is no range of versions"),
        (
            lambda: ep.CustomOp("A", DOMAIN, [ep.Formal(kind="variadic"), None], [None]),
            "only the last one of the inputs may be variadic",
        ),
        (lambda: ep.Formal(kind="some"), "kind is one of required, optional, variadic, not 'some'"),
    ],
)
def test_declarations_are_checked(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("custom_ops", "message"),
    [
        (["Twice"], "must have CustomOp objects, not 'Twice'"),
        (
            [ep.CustomOp("Two", DOMAIN, [None], [None], form) for form in (1, 2)],
            "custom_ops has test.ops::Two in two versions",
        ),
        (Compiles.custom_ops * 50, "custom_ops has 300 operators; 256 are possible"),
    ],
)
def test_what_is_declared_wrongly_fails_the_registration(
    host: ModuleType, custom_ops: Any, message: str
) -> None:
    wrong = type("Wrong", (Compiles,), {"custom_ops": custom_ops, "name": "WrongExecutionProvider"})
    objects = ep.live_objects()
    with pytest.raises(Exception, match=message):
        ep.register_with(host, wrong)
    assert ep.live_objects() == objects


class Forms(ep.ExecutionProvider):
    """An operator whose form came with version 2, kernels for that and for others."""

    name = "FormsExecutionProvider"
    custom_ops: ClassVar[Any] = [
        ep.CustomOp("Step", DOMAIN, [np.float32], [np.float32], since_version=(2, 3)),
        ep.CustomOp("Jump", DOMAIN, [np.float32], [np.float32], since_version=2),
    ]

    @ep.kernel("Step", (1, 1), domain=DOMAIN)
    @ep.kernel("Jump", (1, 1), domain=DOMAIN)
    def first(x: Any) -> Any:
        return x + 1

    @ep.kernel("Step", (2, None), domain=DOMAIN)
    @ep.kernel("Jump", (3, None), domain=DOMAIN)
    def second(x: Any) -> Any:
        return x + 2


@pytest.mark.parametrize("version", [2, 3])
def test_the_kernel_is_the_one_for_the_form(host: ModuleType, version: int) -> None:
    (y,) = run_once(host, Forms, one_node("Step", ["x"], version=version), {"x": X})
    np.testing.assert_array_equal(y, X + 2)


def test_a_form_without_a_kernel_is_not_claimed(host: ModuleType) -> None:
    with pytest.raises(Exception, match=r"Jump|assigned to the default CPU EP"):
        run_once(host, Forms, one_node("Jump", ["x"], version=4), {"x": X})
