"""Custom operators from a library and from an EP, in both hosts: the library is custom_ops.c."""

from __future__ import annotations

import ctypes
import gc
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import model
from onnx import helper

import ort_abi
from abigen import native_build
from ort_abi import SessionOptions, errors
from ort_abi._lib import api, check, ffi
from ort_abi.env import environment, ep_device_pointer

SOURCE = Path(__file__).with_name("custom_ops.c")
EP_NAME = "CustomOpsExecutionProvider"
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library's file."""
    path = tmp_path_factory.mktemp("custom_ops") / "libcustom_ops.so"
    command = [
        "cc",
        "-std=c11",
        "-D_GNU_SOURCE",
        *native_build.Options().warnings(),
        "-g",
        "-shared",
        "-fPIC",
    ]
    command += ["-fvisibility=hidden", f"-I{native_build.CSRC / 'include'}", str(SOURCE), "-o", str(path)]
    subprocess.run(command, check=True)
    return path


@pytest.fixture
def options(host: ModuleType, built: Path) -> Any:
    """Session options with the library's operators."""
    made = host.SessionOptions()
    made.register_custom_ops_library(str(built))
    return made


@pytest.fixture
def ep_host(host: ModuleType, built: Path) -> Iterator[ModuleType]:
    """The host, with the library's EP registered."""
    host.register_execution_provider_library("custom ops", str(built))
    yield host
    gc.collect()
    host.unregister_execution_provider_library("custom ops")


def node(op_type: str, inputs: list[str], output: str, domain: str = "test.ops", **attributes: Any) -> Any:
    return helper.make_node(op_type, inputs, [output], name=f"the {op_type}", domain=domain, **attributes)


def custom_model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Any],
    output: Any = (np.float32, None),
    version: int = 1,
) -> bytes:
    """A model whose output is y, and that imports a version of the domains."""
    return model(nodes, inputs, {"y": output}, domains={"test.ops": version, "test.ep": 1})


def run(host: ModuleType, options: Any, model_bytes: bytes, **feeds: Any) -> Any:
    session = host.InferenceSession(model_bytes, options)
    return np.array(session.run(None, feeds)[0])


def ep_options(host: ModuleType, **provider_options: str) -> Any:
    """Options with the EP, which brings its domain; the CPU's may run nothing of the model."""
    options = host.SessionOptions()
    devices = [device for device in host.get_ep_devices() if device.ep_name == EP_NAME]
    options.add_provider_for_devices(devices, provider_options)
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return options


# ---- Operators of a library ----


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_the_overload_that_takes_the_input_runs(host: ModuleType, options: Any, dtype: Any) -> None:
    proto = custom_model([node("Twice", ["x"], "y")], {"x": (dtype, [2, 3])}, (dtype, None))
    np.testing.assert_array_equal(run(host, options, proto, x=X.astype(dtype)), 2 * X)


@pytest.mark.parametrize(("dtype", "number"), [(np.float32, 1), (np.int64, 7)])
def test_overloads_may_differ_in_inputs_only(host: ModuleType, options: Any, dtype: Any, number: int) -> None:
    proto = custom_model([node("Kind", ["x"], "y")], {"x": (dtype, [2, 3])}, (np.int64, []))
    assert run(host, options, proto, x=X.astype(dtype)) == number


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.bool_, np.float64])
def test_an_operator_of_any_type_runs(host: ModuleType, options: Any, dtype: Any) -> None:
    proto = custom_model([node("Same", ["x"], "y")], {"x": (dtype, [2, 3])}, (dtype, None))
    found = run(host, options, proto, x=X.astype(dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, X.astype(dtype))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_variadic_operator_takes_as_many_as_it_is_given(host: ModuleType, options: Any, count: int) -> None:
    proto = custom_model([node("Sum", ["x"] * count, "y")], {"x": (np.float32, [2, 3])})
    np.testing.assert_array_equal(run(host, options, proto, x=X), max(count, 2) * X)


@pytest.mark.parametrize("names", [["x"], ["x", ""], ["x", "x"]], ids=len)
def test_an_optional_input_may_be_left_out(host: ModuleType, options: Any, names: list[str]) -> None:
    proto = custom_model([node("Biased", names, "y")], {"x": (np.float32, [2, 3])})
    factor = 1 if names == ["x", ""] else 2
    np.testing.assert_array_equal(run(host, options, proto, x=X), factor * X)


def test_types_are_inferred_through_custom_operators(host: ModuleType, options: Any) -> None:
    """Mul has a kernel for each type only if somebody knows the type of t and u."""
    nodes = [
        node("Twice", ["x"], "t"),
        node("Same", ["t"], "u"),
        helper.make_node("Mul", ["u", "t"], ["y"]),
    ]
    proto = custom_model(nodes, {"x": (np.int64, [2, 3])}, (np.int64, None))
    np.testing.assert_array_equal(run(host, options, proto, x=X.astype(np.int64)), 4 * X * X)


@pytest.mark.parametrize("version", [2, 4, 9])
def test_an_operator_has_the_version_that_it_starts_with(
    host: ModuleType, options: Any, version: int
) -> None:
    proto = custom_model([node("Later", ["x"], "y")], {"x": (np.float32, [2, 3])}, version=version)
    np.testing.assert_array_equal(run(host, options, proto, x=X), 2 * X)


def test_an_operator_that_starts_later_is_unknown(host: ModuleType, options: Any) -> None:
    proto = custom_model([node("Later", ["x"], "y")], {"x": (np.float32, [2, 3])}, version=1)
    with pytest.raises(Exception, match="Later"):
        host.InferenceSession(proto, options)


def test_an_operator_may_infer_the_shape_of_its_output(host: ModuleType, options: Any) -> None:
    proto = custom_model([node("Shaped", ["x"], "y", n=6)], {"x": (np.float32, [6])})
    session = host.InferenceSession(proto, options)
    assert session.get_outputs()[0].shape == [6]
    np.testing.assert_array_equal(session.run(None, {"x": X.reshape(6)})[0], 2 * X.reshape(6))


@pytest.mark.parametrize("condition", [True, False])
def test_custom_operators_run_in_subgraphs(host: ModuleType, options: Any, condition: bool) -> None:
    """The branches capture x, whose type only the custom operator before the If tells."""
    branches = [
        helper.make_graph(
            [node(op_type, ["t"], "b")],
            op_type,
            [],
            [helper.make_tensor_value_info("b", onnx.TensorProto.INT64, None)],
        )
        for op_type in ("Twice", "Same")
    ]
    nodes = [
        node("Same", ["x"], "t"),
        helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    inputs = {"x": (np.int64, [2, 3]), "c": (np.bool_, [])}
    proto = custom_model(nodes, inputs, (np.int64, None))
    found = run(host, options, proto, x=X.astype(np.int64), c=np.array(condition))
    np.testing.assert_array_equal(found, (2 if condition else 1) * X)


REFUSED: dict[str, tuple[list[onnx.NodeProto], Any, str]] = {
    "too few inputs": ([node("Biased", [], "y")], np.float32, "it has 0 inputs, the operator takes 1 to 2"),
    "too many inputs": (
        [node("Twice", ["x", "x"], "y")],
        np.float32,
        "it has 2 inputs, the operator takes 1",
    ),
    "too few of a variadic one": ([node("Sum", [], "y")], np.float32, "it has 0 inputs, the operator needs"),
    "a missing input": ([node("Twice", [""], "y")], np.float32, "its input 0 'Input0' is missing"),
    "a type": (
        [node("Twice", ["x"], "y")],
        np.float64,
        r"'the Twice' \(Twice\): input 'x' is tensor\(double\), .* takes tensor\(float\), tensor\(int64\)",
    ),
    "no kernel": ([node("Unmade", ["x"], "y")], np.float32, "it was never made"),
    "another EP's": (
        [node("Elsewhere", ["x"], "y")],
        np.float32,
        "'the Elsewhere' .*, a custom operator of EP 'NobodysExecutionProvider'",
    ),
}


@pytest.mark.parametrize("attributes", [{"n": -1}, {}], ids=["fails", "lacks its attribute"])
def test_shape_inference_that_fails_leaves_shapes_unknown(
    host: ModuleType, options: Any, attributes: dict[str, int], capfd: Any
) -> None:
    proto = custom_model([node("Shaped", ["x"], "y", **attributes)], {"x": (np.float32, [6])})
    session = host.InferenceSession(proto, options)
    assert session.get_outputs()[0].shape in ([], None)
    np.testing.assert_array_equal(session.run(None, {"x": X.reshape(6)})[0], 2 * X.reshape(6))
    if host is ort_abi:
        reason = "n is negative" if attributes else "has no attribute 'n'"
        warning = f"InferOutputShapeFn failed, its output shapes stay unknown: .*{reason}"
        assert re.search(f"node 'the Shaped' .*: OrtCustomOp::{warning}", capfd.readouterr().err)


@pytest.mark.parametrize("case", REFUSED)
def test_a_node_that_the_operator_is_not_for_is_refused(host: ModuleType, options: Any, case: str) -> None:
    nodes, dtype, message = REFUSED[case]
    proto = custom_model(nodes, {"x": (dtype, [2, 3])}, (dtype, None))
    ours = host is ort_abi
    with pytest.raises(errors.OrtError if ours else Exception, match=message if ours else "."):
        host.InferenceSession(proto, options)


def test_the_failure_of_a_kernel_fails_the_run(host: ModuleType, options: Any) -> None:
    proto = custom_model([node("Fails", ["x"], "y")], {"x": (np.float32, [2, 3])})
    with pytest.raises(Exception, match="today it does not want to"):
        run(host, options, proto, x=X)


def test_without_the_library_its_operators_are_unknown(host: ModuleType) -> None:
    proto = custom_model([node("Twice", ["x"], "y")], {"x": (np.float32, [2, 3])})
    with pytest.raises(Exception, match="Twice"):
        host.InferenceSession(proto)


def test_options_keep_the_library_for_their_sessions(host: ModuleType, options: Any) -> None:
    proto = custom_model([node("Twice", ["x"], "y")], {"x": (np.float32, [2, 3])})
    sessions = [host.InferenceSession(proto, options) for _ in range(2)]
    del options
    gc.collect()
    for session in sessions:
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X)


def test_the_caller_may_keep_the_library_itself(built: Path) -> None:
    """`RegisterCustomOpsLibrary`, API 1, gives a handle of dlopen."""
    options, handle = SessionOptions(), ffi.new("void**")
    check(api.RegisterCustomOpsLibrary(options.pointer, str(built).encode(), handle))
    proto = custom_model([node("Twice", ["x"], "y")], {"x": (np.float32, [2, 3])})
    np.testing.assert_array_equal(run(ort_abi, options, proto, x=X), 2 * X)
    gc.collect()
    close = ctypes.CDLL(None).dlclose
    close.argtypes = [ctypes.c_void_p]
    assert close(int(ffi.cast("intptr_t", handle[0]))) == 0


# ---- Libraries that are none ----


def test_a_library_that_fails_is_an_error(host: ModuleType, built: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CUSTOM_OPS_FAIL", "1")
    options = host.SessionOptions()
    with pytest.raises(Exception, match="not today"):
        options.register_custom_ops_library(str(built))
    proto = custom_model([node("Twice", ["x"], "y")], {"x": (np.float32, [2, 3])})
    with pytest.raises(Exception, match="Twice"):
        host.InferenceSession(proto, options)


def test_a_library_without_the_function_is_an_error(host: ModuleType, compile_c: Callable[..., Path]) -> None:
    other = compile_c("libother.so", "int unrelated(void);\nint unrelated(void) { return 1; }\n")
    with pytest.raises(Exception, match="RegisterCustomOps"):
        host.SessionOptions().register_custom_ops_library(str(other))


def test_a_library_that_is_not_there_is_an_error(host: ModuleType) -> None:
    with pytest.raises(Exception, match=r"no_such_library\.so"):
        host.SessionOptions().register_custom_ops_library("/nowhere/no_such_library.so")


# ---- Operators of an EP ----


def test_an_ep_brings_operators_with_kernels(ep_host: ModuleType) -> None:
    proto = custom_model([node("EpTwice", ["x"], "y", "test.ep")], {"x": (np.float32, [2, 3])})
    np.testing.assert_array_equal(run(ep_host, ep_options(ep_host), proto, x=X), 2 * X)


def test_an_ep_compiles_its_placeholders(ep_host: ModuleType) -> None:
    nodes = [node("Placeholder", ["x"], "t", "test.ep"), node("EpTwice", ["t"], "y", "test.ep")]
    proto = custom_model(nodes, {"x": (np.float32, [2, 3])})
    np.testing.assert_array_equal(run(ep_host, ep_options(ep_host), proto, x=X), 6 * X)


def test_a_placeholder_that_nobody_compiles_is_an_error(ep_host: ModuleType) -> None:
    proto = custom_model([node("Placeholder", ["x"], "y", "test.ep")], {"x": (np.float32, [2, 3])})
    with pytest.raises(Exception, match=r"Placeholder|explicitly disabled") as raised:
        run(ep_host, ep_options(ep_host, lazy="1"), proto, x=X)
    if ep_host is ort_abi:
        assert (
            "'the Placeholder' (Placeholder, test.ep, version 1), a custom operator without a kernel, which "
            f"EP '{EP_NAME}' would have to compile"
        ) in str(raised.value)


def test_an_ep_that_a_policy_chooses_brings_its_operators(ep_host: ModuleType) -> None:
    options = ep_host.SessionOptions()
    options.set_provider_selection_policy(ep_host.OrtExecutionProviderDevicePolicy.PREFER_CPU)
    proto = custom_model([node("EpTwice", ["x"], "y", "test.ep")], {"x": (np.float32, [2, 3])})
    if ep_host is not ort_abi:  # stock: from its C API only
        with pytest.raises(Exception, match="EpTwice"):
            ep_host.InferenceSession(proto, options)
        return
    np.testing.assert_array_equal(run(ep_host, options, proto, x=X), 2 * X)


def test_an_ep_that_cannot_say_its_domains_is_an_error(ep_host: ModuleType, monkeypatch: Any) -> None:
    proto = custom_model([node("Placeholder", ["x"], "y", "test.ep")], {"x": (np.float32, [2, 3])})
    monkeypatch.setenv("CUSTOM_OPS_FAIL", "1")
    with pytest.raises(Exception, match="cannot count") as raised:
        run(ep_host, ep_options(ep_host), proto, x=X)
    if ep_host is ort_abi:
        assert f"EP '{EP_NAME}': OrtEpFactory::GetNumCustomOpDomains failed" in str(raised.value)


def test_each_session_asks_the_ep_for_its_domains(built: Path) -> None:
    """Options may outlive the library, whose domains go with it."""
    name, options = "custom ops", SessionOptions()
    proto = custom_model([node("EpTwice", ["x"], "y", "test.ep")], {"x": (np.float32, [2, 3])})

    def append() -> None:
        [device] = [device for device in ort_abi.get_ep_devices() if device.ep_name == EP_NAME]
        devices = ffi.new("const OrtEpDevice*[]", [ep_device_pointer(device)])
        arguments = (environment().pointer, devices, 1, ffi.NULL, ffi.NULL, 0)
        check(api.SessionOptionsAppendExecutionProvider_V2(options.pointer, *arguments))

    def create() -> None:
        session, bytes_ = ffi.new("OrtSession**"), ffi.from_buffer(proto)
        arguments = (environment().pointer, bytes_, len(proto), options.pointer, session)
        try:
            check(api.CreateSessionFromArray(*arguments))
        finally:
            api.ReleaseSession(session[0])

    ort_abi.register_execution_provider_library(name, str(built))
    append()
    create()
    ort_abi.unregister_execution_provider_library(name)
    with pytest.raises(errors.InvalidArgument, match="no longer registered"):
        create()


def test_without_the_ep_its_operators_are_unknown(ep_host: ModuleType) -> None:
    proto = custom_model([node("EpTwice", ["x"], "y", "test.ep")], {"x": (np.float32, [2, 3])})
    with pytest.raises(Exception, match="EpTwice"):
        ep_host.InferenceSession(proto)
