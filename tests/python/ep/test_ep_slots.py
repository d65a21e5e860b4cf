"""The optional slots of Python providers: each is there only for what the class defines, hosts get the
answers, and what a method raises or answers wrongly is an error of the host."""

from __future__ import annotations

import gc
import re
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import onnxruntime
import pytest
from bridge_support import API, OpenEp, message, open_ep
from ep_support import HOSTS, FuseAll, model, mul_model, open_session, registered, run_once, skip_old_stock
from onnx import TensorProto, helper

import ort_abi
from ort_abi import ep
from ort_abi._native import ffi

A = np.array([1, 2, 3], np.float32)
FEEDS = {"a": A, "b": A}
PYBIND = onnxruntime.capi.onnxruntime_pybind11_state


class Boom(Exception):
    """Raised by the methods under test."""


def boom(*_: Any) -> Any:
    raise Boom("it broke here")


def provider(**members: Any) -> type[ep.ExecutionProvider]:
    """A provider that multiplies, with some more members."""
    good = {"name": "SlotsExecutionProvider", "compile": lambda self, graph: lambda a, b: a * b}
    return type("Slots", (FuseAll,), good | members)


def failure_of(function: Any, *arguments: Any, **more: Any) -> str:
    """What the call raises, as text: no traceback keeps a session alive."""
    try:
        function(*arguments, **more)
    except Exception as error:
        return str(error)
    raise AssertionError("it did not fail")


# ---- which slots are there ----

EP_METHODS = {
    "create_profiler": "CreateProfiler",
    "should_convert_data_layout": "ShouldConvertDataLayoutForOp",
    "get_compiled_model_compatibility_info": "GetCompiledModelCompatibilityInfo",
    "get_weightless_support": "GetWeightlessSupport",
    "is_graph_capture_enabled": "IsGraphCaptureEnabled",
    "is_graph_captured": "IsGraphCaptured",
    "replay_graph": "ReplayGraph",
    "get_graph_capture_node_assignment_policy": "GetGraphCaptureNodeAssignmentPolicy",
    "release_captured_graph": "ReleaseCapturedGraph",
    "get_available_resource": "GetAvailableResource",
    "on_run_start": "OnRunStart",
    "on_run_end": "OnRunEnd",
    "set_dynamic_options": "SetDynamicOptions",
    "on_session_ready": "OnSessionInitializationEnd",
    "sync": "Sync",
}
FACTORY_METHODS = {
    "validate_compiled_model_compatibility_info": ["ValidateCompiledModelCompatibilityInfo"],
    "get_hardware_device_incompatibility_details": ["GetHardwareDeviceIncompatibilityDetails"],
    "init_graphics_interop": ["InitGraphicsInterop", "DeinitGraphicsInterop"],
}


def filled(struct: Any) -> set[str]:
    """The slots of a struct that are not NULL."""
    names = [name for name, _ in ffi.typeof(struct).item.fields if name != "ort_version_supported"]
    return {name for name in names if getattr(struct, name) != ffi.NULL}


def test_a_plain_provider_has_no_optional_slots() -> None:
    with open_ep(provider()) as opened:
        assert filled(opened.ep) == {"GetName", "GetCapability", "Compile", "ReleaseNodeComputeInfos"}
        assert not filled(opened.factory) & {slot for slots in FACTORY_METHODS.values() for slot in slots}


@pytest.mark.parametrize("method", EP_METHODS)
def test_a_method_fills_its_slot(method: str) -> None:
    with open_ep(provider()) as plain, open_ep(provider(**{method: boom})) as opened:
        assert filled(opened.ep) - filled(plain.ep) == {EP_METHODS[method]}


@pytest.mark.parametrize("method", FACTORY_METHODS)
def test_a_class_method_fills_its_slots(method: str) -> None:
    with open_ep(provider()) as plain, open_ep(provider(**{method: classmethod(boom)})) as opened:
        assert filled(opened.factory) - filled(plain.factory) == set(FACTORY_METHODS[method])


# ---- what is said, called as a host does ----


def asked(opened: OpenEp, slot: str, kind: str, *arguments: Any) -> Any:
    """The answer of a slot of the provider that writes it to its last argument."""
    out = ffi.new(f"{kind}*")
    status = getattr(opened.ep, slot)(opened.ep, *arguments, out)
    assert status == ffi.NULL, message(status)
    return out[0]


@pytest.mark.parametrize(("word", "number"), [("none", 0), ("external_only", 1), ("all", 2)])
def test_weightless_support(word: str, number: int) -> None:
    with open_ep(provider(get_weightless_support=lambda self: word)) as opened:
        assert asked(opened, "GetWeightlessSupport", "OrtWeightlessSupport") == number


@pytest.mark.parametrize(("said", "kind", "total"), [(None, 0, 0), (0, 1, 0), (5 << 40, 1, 5 << 40)])
def test_available_resource(said: Any, kind: int, total: int) -> None:
    with open_ep(provider(get_available_resource=lambda self: said)) as opened:
        found = asked(opened, "GetAvailableResource", "OrtResourceCount")
        assert (found.kind, found.value.total_bytes) == (kind, total)


def test_a_preferred_layout_fills_its_slot() -> None:
    with open_ep(provider()) as plain, open_ep(provider(preferred_data_layout="NHWC")) as opened:
        assert filled(opened.ep) - filled(plain.ep) == {"GetPreferredDataLayout"}
        assert asked(opened, "GetPreferredDataLayout", "OrtEpDataLayout") == 1


@pytest.mark.parametrize(("said", "number"), [(None, -1), (False, 0), (True, 1)])
def test_should_convert_data_layout(said: Any, number: int) -> None:
    seen: list[Any] = []

    def convert(self: Any, *arguments: Any) -> Any:
        seen.append(arguments)
        return said

    with open_ep(provider(should_convert_data_layout=convert)) as opened:
        assert asked(opened, "ShouldConvertDataLayoutForOp", "int", b"com.microsoft", b"QGemm", 1) == number
        assert asked(opened, "ShouldConvertDataLayoutForOp", "int", b"", b"Conv", 1) == number
    assert seen == [("com.microsoft", "QGemm"), ("", "Conv")]


WRONG: dict[str, tuple[str, str, tuple[Any, ...], Any, str]] = {
    "get_weightless_support": ("GetWeightlessSupport", "OrtWeightlessSupport", (), 1, "'all', not 1"),
    "get_available_resource": (
        "GetAvailableResource",
        "OrtResourceCount",
        (),
        -1,
        "must return a number of bytes or None, not -1",
    ),
    "should_convert_data_layout": (
        "ShouldConvertDataLayoutForOp",
        "int",
        (b"", b"Conv", 1),
        1,
        "must return a bool or None, not 1",
    ),
    "create_profiler": (
        "CreateProfiler",
        "OrtEpProfilerImpl*",
        (),
        5,
        "must return an ort_abi.ep.Profiler, not 5",
    ),
}


@pytest.mark.parametrize("method", WRONG)
def test_what_a_method_raises_or_answers_wrongly_is_a_status(method: str) -> None:
    slot, kind, arguments, wrong, expected = WRONG[method]
    for member, part in ((boom, "Boom: it broke here"), (lambda *_: wrong, expected)):
        with open_ep(provider(**{method: member})) as opened:
            out = ffi.new(f"{kind}*")
            text = message(getattr(opened.ep, slot)(opened.ep, *arguments, out))
            assert f"SlotsExecutionProvider: OrtEp::{slot}: " in text
            assert part in text


# ---- layouts ----


def conv_model() -> bytes:
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv1")
    spec = (TensorProto.FLOAT, [1, 2, 3, 4])
    w = np.array([[[[2]], [[3]]]], np.float32)
    return model([node], {"x": spec}, {"y": (TensorProto.FLOAT, [1, 1, 3, 4])}, {"w": w})


class ChannelsLast(ep.ExecutionProvider):
    """Convolves images whose channels come last, with kernels of one pixel."""

    name, preferred_data_layout = "ChannelsLastExecutionProvider", "NHWC"
    convert: ClassVar[Any] = None
    asked: ClassVar[set[Any]] = set()
    compiled: ClassVar[list[Any]] = []

    def should_convert_data_layout(self, domain: str, op_type: str) -> bool | None:
        self.asked.add((domain, op_type))
        return self.convert

    def get_capability(self, graph: Any) -> Any:
        return [[node] for node in graph.nodes]

    def compile(self, graph: Any) -> Any:
        (node,) = graph.nodes
        self.compiled.append((node.op_type, node.domain))
        if node.op_type == "Transpose":
            perm = tuple(node.attributes["perm"])
            return lambda x: np.ascontiguousarray(x.transpose(perm))
        w = graph.initializers["w"].initializer[:, :, 0, 0]
        if node.domain == "com.ms.internal.nhwc":
            return lambda x: x @ w.T
        return lambda x: np.einsum("nchw,oc->nohw", x, w)


@pytest.mark.parametrize(("convert", "converted"), [(None, True), (True, True), (False, False)])
def test_nodes_come_in_the_layout_that_is_preferred(host: ModuleType, convert: Any, converted: bool) -> None:
    ChannelsLast.convert = convert
    ChannelsLast.asked.clear()
    ChannelsLast.compiled.clear()
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    (y,) = run_once(host, ChannelsLast, conv_model(), {"x": x}, fallback=True)
    np.testing.assert_allclose(y, np.einsum("nchw,oc->nohw", x, np.array([[2, 3]], np.float32)))
    assert ("", "Conv") in ChannelsLast.asked
    assert (("Conv", "com.ms.internal.nhwc") in ChannelsLast.compiled) == converted


def test_what_should_convert_data_layout_raises_is_an_error_of_the_session(host: ModuleType) -> None:
    members = {"name": "RaisesExecutionProvider", "should_convert_data_layout": boom}
    raising = type("Raises", (ChannelsLast,), members)
    with registered(host, raising):
        text = failure_of(open_session, host, raising, conv_model())
        gc.collect()
    assert re.search(
        r"RaisesExecutionProvider.*OrtEp::ShouldConvertDataLayoutForOp.*: \S*\.Boom: it broke", text
    )


def test_an_unknown_layout_is_an_error(host: ModuleType) -> None:
    cls = provider(preferred_data_layout="nhwc")
    with registered(host, cls):
        text = failure_of(open_session, host, cls, mul_model())
        gc.collect()
    assert "preferred_data_layout is 'NCHW' or 'NHWC', not 'nhwc'" in text


# ---- budgets: stock onnxruntime has them for its CUDA providers only ----

BUDGET = {"session.resource_cuda_partitioning_settings": ","}


@pytest.mark.parametrize(("room", "taken"), [(None, 2), (1 << 30, 2), (100, 1)])
def test_a_budget_limits_what_is_taken(room: int | None, taken: int) -> None:
    """Two nodes, each with a weight and an output of 32 bytes."""
    compiled: list[str] = []

    class Limited(ep.ExecutionProvider):
        name = "LimitedExecutionProvider"

        def get_capability(self, graph: Any) -> Any:
            return [[node] for node in graph.nodes]

        def compile(self, graph: Any) -> Any:
            (node,) = graph.nodes
            compiled.append(node.name)
            (w,) = (value.initializer for value in graph.initializers.values())
            return lambda x: x * w

        def get_available_resource(self) -> int | None:
            return room

    nodes = [helper.make_node("Mul", ["x", "v"], ["t"], name="one")]
    nodes += [helper.make_node("Mul", ["t", "w"], ["y"], name="two")]
    spec = (np.float32, [8])
    weights = {name: np.full(8, value, np.float32) for name, value in (("v", 2), ("w", 3))}
    bytes_ = model(nodes, {"x": spec}, {"y": spec}, weights)
    x = np.ones(8, np.float32)
    (y,) = run_once(HOSTS["ours"], Limited, bytes_, {"x": x}, config=BUDGET, fallback=True)
    np.testing.assert_array_equal(y, x * 6)
    assert len(compiled) == taken


def test_what_get_available_resource_raises() -> None:
    cls = provider(get_available_resource=boom)
    with registered(HOSTS["ours"], cls):
        text = failure_of(open_session, HOSTS["ours"], cls, mul_model(), config=BUDGET)
        gc.collect()
    assert re.search(r"SlotsExecutionProvider.*OrtEp::GetAvailableResource.*: \S*\.Boom: it broke here", text)


# ---- compiled models ----


def compatibility_of(host: ModuleType, cls: type[ep.ExecutionProvider], info: str) -> int:
    devices = [device for device in host.get_ep_devices() if device.ep_name == cls.name]
    if host is HOSTS["stock"]:
        return int(PYBIND.get_model_compatibility_for_ep_devices(devices, info))
    pointers = ffi.new("const OrtEpDevice*[]", [ort_abi.env.ep_device_pointer(device) for device in devices])
    out = ffi.new("OrtCompiledModelCompatibility*")
    status = API.GetModelCompatibilityForEpDevices(pointers, len(devices), info.encode(), out)
    if status != ffi.NULL:
        raise RuntimeError(message(status))
    return int(out[0])


WORDS = ["not_applicable", "supported_optimal", "supported_prefer_recompilation", "unsupported"]


@pytest.mark.parametrize("number", range(4))
def test_compatibility_of_compiled_models(host: ModuleType, number: int) -> None:
    seen: list[Any] = []

    def validate(cls: Any, devices: Any, info: str) -> str:
        seen.append(([device.type for device in devices], info))
        return WORDS[number]

    cls = provider(validate_compiled_model_compatibility_info=classmethod(validate))
    with registered(host, cls):
        assert compatibility_of(host, cls, "version 7 ä") == number
    assert seen == [(["CPU"], "version 7 ä")]


@pytest.mark.parametrize(
    ("method", "expected"),
    [(boom, "Boom: it broke here"), (lambda *_: "perfect", "must be one of 'not_applicable', ")],
)
def test_compatibility_errors(host: ModuleType, method: Any, expected: str) -> None:
    cls = provider(validate_compiled_model_compatibility_info=classmethod(method))
    with registered(host, cls):
        text = failure_of(compatibility_of, host, cls, "x")
    assert "OrtEpFactory::ValidateCompiledModelCompatibilityInfo" in text and expected in text


@pytest.mark.parametrize(
    ("method", "expected", "told"),
    [
        (lambda self, graph: f"nodes: {[node.op_type for node in graph.nodes]} ä", "nodes: ['Mul'] ä", ""),
        (boom, "", "Boom: it broke here"),
        (lambda *_: 3, "", "must return a text, not 3"),
        (lambda *_: "a\0b", "", "must return a text, not 'a\\x00b'"),
    ],
)
def test_compatibility_info(method: Any, expected: str, told: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Asked with a graph that another provider sees: our host makes no compiled models."""
    texts: list[str] = []
    before = ep.unreported_errors()
    with open_ep(provider(get_compiled_model_compatibility_info=method)) as opened:

        class Asks(FuseAll):
            name = "AsksExecutionProvider"

            def get_capability(self, graph: Any) -> Any:
                for _ in range(2):
                    text = opened.ep.GetCompiledModelCompatibilityInfo(opened.ep, graph._pointer)
                    texts.append(ffi.string(text).decode())
                return [graph.nodes]

            def compile(self, graph: Any) -> Any:
                return lambda a, b: a * b

        run_once(HOSTS["ours"], Asks, mul_model(), FEEDS)
    assert texts == [expected] * 2
    printed = capfd.readouterr().err
    assert ep.unreported_errors() - before == (2 if told else 0)
    assert not told or "SlotsExecutionProvider: OrtEp::GetCompiledModelCompatibilityInfo: " in printed
    assert told in printed


def test_the_best_of_several_models() -> None:
    seen: list[Any] = []

    def select(cls: Any, device: Any, candidates: Any, config: Any) -> int:
        seen.append((device.type, candidates, config))
        return 1

    with open_ep(provider(select_best_model_candidate=classmethod(select))) as opened:
        assert opened.select_model([{"a": "1"}, {"b": "2", "c": "3"}], {"key": "value"}) == (None, 1)
    assert seen == [("CPU", ({"a": "1"}, {"b": "2", "c": "3"}), {"key": "value"})]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (boom, "Boom: it broke here"),
        (lambda *_: 2, "must return an index below 2, not 2"),
        (lambda *_: True, "must return an index below 2, not True"),
    ],
)
def test_no_best_of_several_models(method: Any, expected: str) -> None:
    with open_ep(provider(select_best_model_candidate=classmethod(method))) as opened:
        text, index = opened.select_model([{}, {}], {})
    assert index == 99
    assert "SlotsExecutionProvider: OrtEpFactory::SelectBestModelCandidate: " in text and expected in text


# ---- devices ----


def incompatibility_of(host: ModuleType, cls: type[ep.ExecutionProvider]) -> tuple[int, str, int]:
    """Reasons, notes and error code for the first CPU."""
    skip_old_stock(host)
    (device, *_) = (item for item in host.get_ep_devices() if item.ep_name == cls.name)
    if host is HOSTS["stock"]:
        found = PYBIND.get_hardware_device_ep_incompatibility_details(cls.name, device.device)
        return found["reasons_bitmask"], found["notes"] or "", found["error_code"]
    out = ffi.new("OrtDeviceEpIncompatibilityDetails**")
    pointer = API.EpDevice_Device(ort_abi.env.ep_device_pointer(device))
    environment = ort_abi.env.environment().pointer
    status = API.GetHardwareDeviceEpIncompatibilityDetails(environment, cls.name.encode(), pointer, out)
    if status != ffi.NULL:
        raise RuntimeError(message(status))
    reasons, code, notes = ffi.new("uint32_t*"), ffi.new("int32_t*"), ffi.new("const char**")
    assert API.DeviceEpIncompatibilityDetails_GetReasonsBitmask(out[0], reasons) == ffi.NULL
    assert API.DeviceEpIncompatibilityDetails_GetErrorCode(out[0], code) == ffi.NULL
    assert API.DeviceEpIncompatibilityDetails_GetNotes(out[0], notes) == ffi.NULL
    text = "" if notes[0] == ffi.NULL else ffi.string(notes[0]).decode()
    API.ReleaseDeviceEpIncompatibilityDetails(out[0])
    return reasons[0], text, code[0]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, (0, "", 0)),
        (ep.Incompatibility(notes="who knows"), (0x80000000, "who knows", 0)),
        (
            ep.Incompatibility(("driver_incompatible", "missing_dependency"), "too old", -3),
            (5, "too old", -3),
        ),
    ],
)
def test_why_a_device_cannot_be_used(host: ModuleType, said: Any, expected: Any) -> None:
    seen: list[str] = []

    def details(cls: Any, device: Any) -> Any:
        seen.append(device.type)
        return said

    cls = provider(get_hardware_device_incompatibility_details=classmethod(details))
    with registered(host, cls):
        assert incompatibility_of(host, cls) == expected
    assert seen == ["CPU"]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (boom, "Boom: it broke here"),
        (lambda *_: "old", "must return an ort_abi.ep.Incompatibility or None, not 'old'"),
        (lambda *_: ep.Incompatibility(("ugly",)), "must be one of 'none', "),
    ],
)
def test_incompatibility_errors(host: ModuleType, method: Any, expected: str) -> None:
    cls = provider(get_hardware_device_incompatibility_details=classmethod(method))
    with registered(host, cls):
        text = failure_of(incompatibility_of, host, cls)
    assert "OrtEpFactory::GetHardwareDeviceIncompatibilityDetails" in text and expected in text


def test_graphics_interop_without_a_config_is_an_error() -> None:
    """Python is told neither that it begins nor, by mistake, that it ends."""
    seen: list[str] = []

    class Draws(FuseAll):
        @classmethod
        def init_graphics_interop(cls, device: Any, config: Any) -> None:
            seen.append("init")

        @classmethod
        def deinit_graphics_interop(cls, device: Any) -> None:
            seen.append("deinit")

    with open_ep(Draws) as opened:
        status = opened.factory.InitGraphicsInterop(opened.factory, opened.ep_device, ffi.NULL)
        assert "InitGraphicsInterop: config is NULL" in message(status)
    assert seen == []


def test_graphics_interop() -> None:
    seen: list[Any] = []

    class Graphics(FuseAll):
        name = "GraphicsExecutionProvider"

        @classmethod
        def init_graphics_interop(cls, device: Any, config: Any) -> None:
            seen.append((device.type, config))

        @classmethod
        def deinit_graphics_interop(cls, device: Any) -> None:
            seen.append(device.type)

    with open_ep(Graphics) as opened:
        assert opened.graphics(2, 0x1234, {"a": "b"}) == [None, None]
    assert seen == [("CPU", ep.GraphicsInterop("vulkan", 0x1234, {"a": "b"})), "CPU"]


def test_graphics_interop_errors() -> None:
    members = {name: classmethod(boom) for name in ("init_graphics_interop", "deinit_graphics_interop")}
    with open_ep(provider(**members)) as opened:
        for slot, text in zip(("Init", "Deinit"), opened.graphics(1, 0, {}), strict=True):
            assert f"OrtEpFactory::{slot}GraphicsInterop: {__name__}.Boom: it broke here" in text


# ---- methods that have not run ----


async def coroutine(*_: Any) -> None:
    """What an author may write by mistake."""


@pytest.mark.parametrize(
    ("method", "slot", "arguments"),
    [
        ("on_run_start", "OnRunStart", (ffi.NULL,)),
        ("on_run_end", "OnRunEnd", (ffi.NULL, False)),
        ("set_dynamic_options", "SetDynamicOptions", (ffi.NULL, ffi.NULL, 0)),
        ("on_session_ready", "OnSessionInitializationEnd", ()),
        ("replay_graph", "ReplayGraph", (0,)),
        ("release_captured_graph", "ReleaseCapturedGraph", (0,)),
        ("sync", "Sync", ()),
    ],
)
def test_a_coroutine_is_an_error(method: str, slot: str, arguments: Any) -> None:
    with open_ep(provider(**{method: coroutine})) as opened:
        text = message(getattr(opened.ep, slot)(opened.ep, *arguments))
    assert f"OrtEp::{slot}: TypeError: " in text and "must be a plain function" in text


def test_a_coroutine_is_no_yes(capfd: pytest.CaptureFixture[str]) -> None:
    before = ep.unreported_errors()
    members = {"is_graph_capture_enabled": coroutine, "is_graph_captured": coroutine, "close": coroutine}
    with open_ep(provider(**members)) as opened:
        assert not opened.ep.IsGraphCaptureEnabled(opened.ep)
        assert not opened.ep.IsGraphCaptured(opened.ep, 0)
    assert ep.unreported_errors() - before == 3
    assert capfd.readouterr().err.count("must be a plain function") >= 3
