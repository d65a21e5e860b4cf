"""What a Python callback raises, or returns wrongly, is a clear error of the host; the process goes on."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from bridge_support import message, open_ep
from ep_support import HOSTS, FuseAll, model, mul_model, open_session, registered, run_once, skip_old_stock
from onnx import helper

from ort_abi import ep
from ort_abi._native import ffi, lib

A = np.array([1, 2, 3], np.float32)
FEEDS = {"a": A, "b": A}


class Boom(Exception):
    """Raised by the callbacks under test."""


def boom(*_: Any) -> Any:
    raise Boom("it broke here")


def fused(**members: Any) -> type[ep.ExecutionProvider]:
    """A provider that multiplies, with some members replaced."""
    good = {"name": "FaultyExecutionProvider", "compile": lambda self, graph: lambda a, b: a * b}
    return type("Faulty", (FuseAll,), good | members)


def kernel_based(kernel: Any) -> type[ep.ExecutionProvider]:
    """A provider with this kernel for Mul."""
    return type("Faulty", (ep.ExecutionProvider,), {"name": "FaultyExecutionProvider", "Mul": kernel})


@ep.kernel("Mul", (7, None))
class MakeFails(ep.Kernel):
    def __init__(self, info: ep.KernelInfo) -> None:
        boom()


@ep.kernel("Mul", (7, None))
class ComputeFails(ep.Kernel):
    def compute(self, ctx: ep.KernelContext) -> None:
        boom()


@ep.kernel("Mul", (7, None))
def function_fails(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return boom()


def told(host: ModuleType, error: Exception, capfd: pytest.CaptureFixture[str]) -> str:
    """What the user was told. Stock onnxruntime only logs an error of GetCapability."""
    text = str(error)
    return capfd.readouterr().err if host is HOSTS["stock"] and "fallback to CPU EP" in text else text


RAISING = {
    "OrtEpFactory::GetSupportedDevices": fused(get_supported_devices=classmethod(boom)),
    "OrtEpFactory::CreateEp": fused(__init__=boom),
    "OrtEp::GetCapability": fused(get_capability=boom),
    "OrtEp::Compile": fused(compile=boom),
    "OrtEp::OnRunStart": fused(on_run_start=boom),
    "OrtEp::OnRunEnd": fused(on_run_end=boom),
    "OrtEp::OnSessionInitializationEnd": fused(on_session_ready=boom),
    "OrtNodeComputeInfo::Compute": fused(compile=lambda self, graph: boom),
    "OrtKernelCreateFunc": kernel_based(MakeFails),
    "OrtKernelImpl::Compute": kernel_based(ComputeFails),
    "OrtKernelImpl::Compute (function)": kernel_based(function_fails),
}


@pytest.mark.parametrize("slot", RAISING)
def test_exception_becomes_error_with_type_message_and_traceback(
    host: ModuleType, slot: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if "SessionInitializationEnd" in slot:
        skip_old_stock(host)
    objects = ep.live_objects()
    with pytest.raises(Exception) as caught:
        run_once(host, RAISING[slot], mul_model(), FEEDS)
    text = told(host, caught.value, capfd)
    assert slot.split(" ")[0] in text
    assert "Boom: it broke here" in text
    assert "FaultyExecutionProvider" in text
    assert "Traceback (most recent call last)" in text and "in boom" in text
    if "Compute" in slot or "Kernel" in slot:
        assert "'mul1'" in text or "(Mul)" in text
    assert ep.live_objects() == objects
    np.testing.assert_array_equal(run_once(host, fused(), mul_model(), FEEDS)[0], A * A)


def test_failing_registration_leaves_the_name_free(host: ModuleType) -> None:
    failing, good = fused(get_supported_devices=classmethod(boom)), fused()
    with pytest.raises(Exception, match="it broke here"):
        ep.register_with(host, failing)
    with registered(host, good):  # another class, the same name
        pass


def test_dynamic_options_error(host: ModuleType) -> None:
    cls = fused(set_dynamic_options=boom)
    with registered(host, cls):
        session = open_session(host, cls, mul_model())
        with pytest.raises(Exception, match=r"OrtEp::SetDynamicOptions.*Boom: it broke here"):
            session.set_ep_dynamic_options({"workload": "x"})
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], A * A)
        del session


def test_close_error_is_counted_and_printed(host: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    before, objects = ep.unreported_errors(), ep.live_objects()
    run_once(host, fused(close=boom), mul_model(), FEEDS)
    assert ep.unreported_errors() == before + 1
    printed = capfd.readouterr().err
    assert "OrtEpFactory::ReleaseEp" in printed and "Boom: it broke here" in printed
    assert ep.live_objects() == objects


WRONG = {
    "no callable": (
        fused(compile=lambda self, graph: 5),
        "compile.. must return a callable or a Kernel, not int",
    ),
    "not iterable": (
        fused(get_capability=lambda self, graph: None),
        "must return an iterable of claims, not NoneType",
    ),
    "no claim": (fused(get_capability=lambda self, graph: ["mul1"]), "a claim is a Node.*'mul1'"),
    "empty claim": (fused(get_capability=lambda self, graph: [[]]), "a claim is a Node"),
    "no devices": (
        fused(get_supported_devices=classmethod(lambda cls, devices: [1])),
        "must give Device objects, not 1",
    ),
    "no array": (
        fused(compile=lambda self, graph: lambda a, b: "x"),
        "output 0 .'y'. must be a NumPy array, not str",
    ),
    "None": (
        fused(compile=lambda self, graph: lambda a, b: None),
        "output 0 .'y'. must be a NumPy array, not NoneType",
    ),
    "too many": (fused(compile=lambda self, graph: lambda a, b: (a, b)), "there must be 1 outputs, not 2"),
    "dtype": (
        fused(compile=lambda self, graph: lambda a, b: (a * b).astype(np.float64)),
        "output 0 .'y'. must have elements of float32, not float64",
    ),
    "arguments": (
        fused(compile=lambda self, graph: lambda a: a),
        "takes 1 positional argument but 2 were given",
    ),
    "not defined": (
        type("Bare", (FuseAll,), {"name": "FaultyExecutionProvider"}),
        "claims nodes to fuse but does not define compile",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_return_is_error(host: ModuleType, what: str, capfd: pytest.CaptureFixture[str]) -> None:
    cls, message = WRONG[what]
    objects = ep.live_objects()
    with pytest.raises(Exception) as caught:
        run_once(host, cls, mul_model(), FEEDS)
    assert re.search(message, told(host, caught.value, capfd))
    assert ep.live_objects() == objects


def test_kernel_must_write_its_outputs(host: ModuleType) -> None:
    @ep.kernel("Mul", (7, None))
    class Lazy(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            pass

    with pytest.raises(Exception, match=r"output 0 \('y'\) was not written"):
        run_once(host, kernel_based(Lazy), mul_model(), FEEDS)


def test_kernel_must_not_return(host: ModuleType) -> None:
    @ep.kernel("Mul", (7, None))
    class Returns(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> Any:
            return ctx.inputs[0] * ctx.inputs[1]

    with pytest.raises(Exception, match="must return None"):
        run_once(host, kernel_based(Returns), mul_model(), FEEDS)


def test_context_is_dead_after_compute(host: ModuleType) -> None:
    kept = []

    @ep.kernel("Mul", (7, None))
    class Keeps(ep.Kernel):
        def compute(self, ctx: ep.KernelContext) -> None:
            kept.append(ctx)
            ctx.set_output(0, ctx.inputs[0] * ctx.inputs[1])

    run_once(host, kernel_based(Keeps), mul_model(), FEEDS)
    with pytest.raises(RuntimeError, match="valid only during compute"):
        kept[0].output(0, (3,))
    assert kept[0].inputs == ()


def test_not_implemented_keeps_its_code(host: ModuleType) -> None:
    def refuse(a: Any, b: Any) -> Any:
        raise NotImplementedError("no such thing")

    with pytest.raises(Exception, match=r"NOT_?IMPLEMENTED.*NotImplementedError: no such thing"):
        run_once(host, fused(compile=lambda self, graph: refuse), mul_model(), FEEDS)


def test_unprepared_name_is_error(host: ModuleType) -> None:
    with pytest.raises(Exception, match="no Python provider was prepared under the name 'nobody'"):
        host.register_execution_provider_library("nobody", ep.library_path())


@pytest.mark.parametrize(
    ("attribute", "value"), [("name", ""), ("vendor", ""), ("version", None), ("name", "a\0b")]
)
def test_identity_is_checked_before_registering(attribute: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{attribute} must be a text"):
        ep.prepare(fused(**{attribute: value}))


def test_not_a_provider() -> None:
    with pytest.raises(TypeError, match="not a class derived from"):
        ep.prepare(int)  # type: ignore[arg-type]


def test_stale_id_is_error_not_crash() -> None:
    call = ffi.new("BridgeCall*")
    create = ffi.addressof(lib, "bridge_py_get_capability")
    assert lib_call(create, call, 10**9, ffi.NULL, ffi.NULL) == 0
    assert b"there is no provider with id 1000000000" in ffi.string(call.text)


def lib_call(function: Any, *arguments: Any) -> int:
    return function(*arguments)


def test_kernel_of_several_ops_fails_at_its_own_node(host: ModuleType) -> None:
    def compile(self: Any, graph: Any) -> Any:
        return boom

    nodes = [
        helper.make_node("Mul", ["a", "b"], ["t"], name="m"),
        helper.make_node("Add", ["t", "b"], ["y"], name="s"),
    ]
    spec = (np.float32, [3])
    told = r"2 nodes, the first is 'm', Mul\).*Boom" if host is HOSTS["ours"] else r"\(Add, Mul\): .*Boom"
    with pytest.raises(Exception, match=told):
        run_once(host, fused(compile=compile), model(nodes, {"a": spec, "b": spec}, {"y": spec}), FEEDS)


@pytest.mark.parametrize("where", [1, 2])
def test_a_text_that_c_would_cut_is_an_error(host: ModuleType, where: int) -> None:
    """Metadata and options of a device."""
    offered = [{}, {}, {}]
    offered[where] = {"key": "before\0behind"}

    def devices(cls: Any, found: Any) -> Any:
        return [(found[0], *offered[1:])]

    objects = ep.live_objects()
    with pytest.raises(Exception, match=r"GetSupportedDevices: ValueError: .* NUL"):
        ep.register_with(host, fused(get_supported_devices=classmethod(devices)))
    assert ep.live_objects() == objects


def test_causes_in_a_ring_end(host: ModuleType) -> None:
    """`raise first from second`, where second came from first: frames are forgotten, once each."""
    wrapped: list[BaseException] = []

    def compute(a: Any, b: Any) -> Any:
        try:
            try:
                boom()
            except Boom as first:
                raise ValueError("wrapped") from first
        except ValueError as second:
            wrapped.append(second)
            raise second.__cause__ from second  # type: ignore[misc]

    with pytest.raises(Exception, match="Boom: it broke here"):
        run_once(host, fused(compile=lambda self, graph: compute), mul_model(), FEEDS)
    assert wrapped[0].__traceback__ is None and wrapped[0].__cause__.__traceback__ is None  # type: ignore


# ---- slots that a host calls again after a failure ----


def test_kernels_that_fail_to_be_registered_fail_again() -> None:
    """Not half a registry the second time, and nothing is left."""
    good = ep.kernel("Add", (7, None))(lambda a, b: a)
    bad = ep.kernel("Mul", (7, None), cpu_inputs=[-1])(lambda a, b: a)
    cls = type("Faulty", (ep.ExecutionProvider,), {"name": "FaultyExecutionProvider", "A": good, "M": bad})
    objects = ep.live_objects()
    with open_ep(cls) as opened:
        registry = ffi.new("const OrtKernelRegistry**")
        for _ in range(2):
            status = opened.ep.GetKernelRegistry(opened.ep, registry)
            assert "OrtEp::GetKernelRegistry: OverflowError" in message(status)
            assert registry[0] == ffi.NULL
            assert ep.live_objects() == objects + 2  # the factory and the provider
    assert ep.live_objects() == objects
