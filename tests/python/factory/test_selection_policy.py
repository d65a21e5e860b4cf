"""How a session that was given no execution provider gets some: policies and delegates, in both hosts."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import model, mul_model, registered

import ort_abi
from ort_abi import OrtExecutionProviderDevicePolicy as Policy
from ort_abi import OrtHardwareDeviceType, SessionOptions, ep, errors

A, B = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
PREFER_NPU = [Policy.PREFER_NPU, Policy.MAX_EFFICIENCY, Policy.MIN_OVERALL_POWER]
PREFER_GPU = [Policy.PREFER_GPU, Policy.MAX_PERFORMANCE]
PREFER_CPU = [Policy.PREFER_CPU, Policy.DEFAULT]


class MulEp(ep.ExecutionProvider):
    """Multiplies on the kinds of device in `kinds`. `made` has the providers, in the order they were made."""

    kinds: tuple[str, ...] = ("CPU",)
    vendor = "Nobody"
    made: list[str] = []  # noqa: RUF012
    devices_of: dict[str, list[int]] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.made.append(self.name)
        self.devices_of[self.name] = [device.device_id for device in self.devices]

    @classmethod
    def get_supported_devices(cls, devices: Sequence[ep.Device]) -> Sequence[Any]:
        return [device for device in devices if device.type in cls.kinds]

    @staticmethod
    @ep.kernel("Mul", (7, None))
    def mul(a: Any, b: Any) -> Any:
        """Multiplies."""
        return a * b


class Npu(MulEp):
    """Runs on NPUs."""

    name, kinds = "TestNpuExecutionProvider", ("NPU",)


class Gpu(MulEp):
    """Runs on GPUs, and is not the hardware vendor's own."""

    name, kinds = "TestGpuExecutionProvider", ("GPU",)


class VendorGpu(MulEp):
    """Runs on GPUs and has the vendor id of one of them."""

    name, kinds, vendor_id = "TestVendorGpuExecutionProvider", ("GPU",), 0x10DE


class LastResortGpu(MulEp):
    """Runs on GPUs, but only if nobody else does."""

    name = "TestLastResortExecutionProvider"

    @classmethod
    def get_supported_devices(cls, devices: Sequence[ep.Device]) -> Sequence[Any]:
        return [(device, {"ort_abi_last_resort": "1"}) for device in devices if device.type == "GPU"]


class CpuB(MulEp):
    """Runs on the CPU."""

    name = "TestCpuBExecutionProvider"


class CpuA(MulEp):
    """Runs on the CPU, registered after `CpuB`."""

    name = "TestCpuAExecutionProvider"


class VendorCpu(MulEp):
    """Runs on the CPU and has its vendor's name."""

    name = "TestZVendorCpuExecutionProvider"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No provider was made yet; no session is left behind."""
    MulEp.made.clear()
    MulEp.devices_of.clear()
    yield
    gc.collect()


@contextmanager
def all_registered(host: ModuleType, *classes: type[MulEp]) -> Iterator[None]:
    with ExitStack() as stack:
        for cls in classes:
            stack.enter_context(registered(host, cls))
        yield
        gc.collect()


@pytest.fixture
def hardware() -> Iterator[None]:
    """Our host with an integrated GPU, a discrete one of vendor 0x10de, and an NPU."""
    ort_abi.shutdown()
    integrated, discrete, npu = (
        OrtHardwareDeviceType.GPU,
        OrtHardwareDeviceType.GPU,
        OrtHardwareDeviceType.NPU,
    )
    ort_abi.inject_hardware_device(integrated, 0x8086, 1, "Intel")
    ort_abi.inject_hardware_device(discrete, 0x10DE, 2, "NVIDIA", {"Discrete": "1"})
    ort_abi.inject_hardware_device(npu, 0x8086, 3, "Intel")
    yield
    gc.collect()
    ort_abi.shutdown()


def session(options: Any, host: ModuleType = ort_abi, model_bytes: bytes | None = None) -> Any:
    return host.InferenceSession(model_bytes or mul_model(), options)


def chosen(policy: Policy) -> list[str]:
    """The providers that our host makes for a policy."""
    options = SessionOptions()
    options.set_provider_selection_policy(policy)
    with session(options) as opened:
        np.testing.assert_array_equal(opened.run(None, {"a": A, "b": B})[0], A * B)
        return list(opened.get_providers())


@pytest.mark.parametrize("policy", PREFER_NPU + PREFER_GPU + PREFER_CPU, ids=lambda policy: policy.name)
def test_a_policy_prefers_its_kind_of_device(hardware: None, policy: Policy) -> None:
    with all_registered(ort_abi, CpuB, Gpu, Npu):
        preferred = [Npu.name] if policy in PREFER_NPU else [Gpu.name] if policy in PREFER_GPU else []
        assert chosen(policy) == [*preferred, CpuB.name, "CPUExecutionProvider"]


@pytest.mark.parametrize("policy", PREFER_NPU + PREFER_GPU, ids=lambda policy: policy.name)
def test_without_the_preferred_kind_the_cpu_is_taken(policy: Policy) -> None:
    with all_registered(ort_abi, CpuB):
        assert chosen(policy) == [CpuB.name, "CPUExecutionProvider"]
    assert chosen(policy) == ["CPUExecutionProvider"]


def test_the_hardware_vendors_own_provider_comes_first(hardware: None) -> None:
    with all_registered(ort_abi, Gpu, VendorGpu):
        assert chosen(Policy.PREFER_GPU)[0] == VendorGpu.name


def test_discrete_gpus_come_first(hardware: None) -> None:
    with all_registered(ort_abi, Gpu):
        seen = []
        options = SessionOptions()
        options.set_provider_selection_policy_delegate(
            lambda devices, *_: seen.extend(devices) or devices  # type: ignore[func-returns-value]
        )
        session(options).close()
        kinds = [(device.device.type.name, device.device.vendor_id) for device in seen[:2]]
        assert kinds == [("GPU", 0x10DE), ("GPU", 0x8086)]
        assert "CPUExecutionProvider" in [device.ep_name for device in seen[-2:]]


def test_a_last_resort_is_no_choice(hardware: None) -> None:
    with all_registered(ort_abi, LastResortGpu, CpuA):
        assert chosen(Policy.PREFER_GPU) == [CpuA.name, "CPUExecutionProvider"]


def policy_of(host: ModuleType, policy: Policy) -> Any:
    options = host.SessionOptions()
    options.set_provider_selection_policy(getattr(host.OrtExecutionProviderDevicePolicy, policy.name))
    return options


@pytest.mark.parametrize("policy", list(Policy), ids=lambda policy: policy.name)
def test_on_a_cpu_both_hosts_choose_the_same(host: ModuleType, policy: Policy) -> None:
    VendorCpu.vendor = next(d.device.vendor for d in host.get_ep_devices() if d.device.type.name == "CPU")
    with all_registered(host, CpuB, CpuA):
        session(policy_of(host, policy), host).run(None, {"a": A, "b": B})
        assert MulEp.made == [CpuA.name]  # by name, not in the order of registration
    MulEp.made.clear()
    with all_registered(host, CpuA, VendorCpu):
        session(policy_of(host, policy), host).run(None, {"a": A, "b": B})
        assert MulEp.made == [VendorCpu.name]


def test_explicit_providers_win_over_the_policy(host: ModuleType) -> None:
    with all_registered(host, CpuA, CpuB):
        options = policy_of(host, Policy.PREFER_CPU)
        options.add_provider_for_devices([d for d in host.get_ep_devices() if d.ep_name == CpuB.name], {})
        opened = session(options, host)
        assert MulEp.made == [CpuB.name]
        del opened


def test_without_fallback_the_built_in_cpu_provider_is_not_chosen(host: ModuleType) -> None:
    with all_registered(host, CpuA):
        options = policy_of(host, Policy.PREFER_CPU)
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        opened = session(options, host)
        np.testing.assert_array_equal(opened.run(None, {"a": A, "b": B})[0], A * B)
        if host is ort_abi:  # stock lists the CPU's all the same
            assert opened.get_providers() == [CpuA.name]
        del opened


def test_nodes_that_nobody_takes_go_to_the_reference() -> None:
    options = policy_of(ort_abi, Policy.PREFER_CPU)
    node = onnx.helper.make_node("Hardmax", ["a"], ["y"])
    hardmax = model([node], {"a": (np.float32, [3])}, {"y": (np.float32, [3])})
    for _ in range(2):
        with session(options, model_bytes=hardmax) as opened:
            assert opened.get_providers() == ["CPUExecutionProvider", "ReferenceExecutionProvider"]
            np.testing.assert_array_equal(opened.run(None, {"a": A})[0], [0, 0, 1])
    with pytest.raises(errors.Fail, match=r"Asked: nobody.*\n.*Hardmax"):
        ort_abi.InferenceSession(hardmax, options, fallback=False)
    assert chosen(Policy.PREFER_CPU) == ["CPUExecutionProvider"]  # the reference is registered, and no choice


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="99"):
        SessionOptions().set_provider_selection_policy(99)


# ---- Delegates ----


def with_metadata() -> bytes:
    proto = onnx.load_from_string(mul_model())
    proto.producer_name, proto.producer_version, proto.model_version = "pytest", "1.5", 7
    proto.domain, proto.doc_string, proto.graph.doc_string = "here", "a model", "a graph"
    onnx.helper.set_model_props(proto, {"key": "value"})
    return bytes(proto.SerializeToString())


def delegate_session(host: ModuleType, delegate: Callable[..., Any], model_bytes: bytes | None = None) -> Any:
    options = host.SessionOptions()
    options.set_provider_selection_policy_delegate(delegate)
    return session(options, host, model_bytes)


def test_a_delegate_is_shown_devices_and_metadata(host: ModuleType) -> None:
    calls = []

    def choose(devices: Any, model_metadata: Any, runtime_metadata: Any, most: int) -> Any:
        calls.append((list(devices), dict(model_metadata), dict(runtime_metadata), most))
        return [device for device in devices if device.ep_name == CpuB.name]

    with all_registered(host, CpuB, CpuA):
        opened = delegate_session(host, choose, with_metadata())
        np.testing.assert_array_equal(opened.run(None, {"a": A, "b": B})[0], A * B)
        assert MulEp.made == [CpuB.name]
        devices, metadata, runtime_metadata, most = calls[-1]  # stock asks once more before, without metadata
        names = [device.ep_name for device in devices if device.ep_name != "ReferenceExecutionProvider"]
        assert names == [CpuA.name, CpuB.name, "CPUExecutionProvider"]
        assert (runtime_metadata, most) == ({}, 8)
        known = {
            "producer_name": "pytest",
            "producer_version": "1.5",
            "domain": "here",
            "model_version": "7",
            "doc_string": "a model",
            "graph_name": "test",
            "graph_description": "a graph",
            "key": "value",
        }
        assert metadata == known
        assert host is not ort_abi or len(calls) == 1
        del opened, devices
        calls.clear()


def test_a_delegates_order_is_kept_and_the_devices_of_one_provider_are_one(hardware: None) -> None:
    def choose(devices: Any, *_: Any) -> Any:
        by_name = {name: [d for d in devices if d.ep_name == name] for name in (Gpu.name, Npu.name)}
        return [by_name[Gpu.name][0], by_name[Npu.name][0], by_name[Gpu.name][1]]

    with all_registered(ort_abi, Npu, Gpu), delegate_session(ort_abi, choose) as opened:
        assert opened.get_providers() == [Gpu.name, Npu.name, "CPUExecutionProvider"]
        assert MulEp.made == [Gpu.name, Npu.name]
        assert MulEp.devices_of == {Gpu.name: [2, 1], Npu.name: [3]}


def raises(*_: Any) -> Any:
    raise KeyError("no such device")


FAULTS: dict[str, tuple[Callable[..., Any], str]] = {
    "raises": (raises, "no such device"),
    "nothing": (lambda *_: [], "did not select anything"),
    "too many": (lambda devices, *_: list(devices) * 9, "8|too many"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_delegates_failure_is_the_sessions(host: ModuleType, fault: str) -> None:
    delegate, message = FAULTS[fault]
    fail = errors.Fail if host is ort_abi else Exception
    with pytest.raises(fail, match=message) as raised:
        delegate_session(host, delegate)
    if host is ort_abi:
        assert "EP selection delegate" in str(raised.value)


@pytest.mark.parametrize(
    ("delegate", "message"),
    [
        (raises, "KeyError: 'no such device'\nTraceback"),
        (lambda *_: ["CPUExecutionProvider"], "TypeError: .* must give OrtEpDevice objects, not 'CPU"),
        (lambda *_: None, "TypeError"),
        (lambda devices, *_: [devices[-1]] * 2, "a device of EP 'CPUExecutionProvider' twice"),
        (lambda devices, *_: [devices[-1]] * 9, "can select 8 devices, not 9"),
    ],
    ids=["raises", "names", "none", "twice", "nine"],
)
def test_what_a_delegate_did_wrong_is_said(delegate: Callable[..., Any], message: str) -> None:
    with pytest.raises(errors.Fail, match=message):
        delegate_session(ort_abi, delegate)


def test_a_device_that_is_gone_is_refused() -> None:
    with all_registered(ort_abi, CpuA):
        old = [device for device in ort_abi.get_ep_devices() if device.ep_name == CpuA.name]
    with pytest.raises(errors.Fail, match="the device of TestCpuAExecutionProvider is gone"):
        delegate_session(ort_abi, lambda *_: old)


def test_options_keep_their_delegate_alive_and_copies_use_it() -> None:
    options = SessionOptions()

    def set_delegate() -> None:
        here = "CPUExecutionProvider"
        options.set_provider_selection_policy_delegate(
            lambda devices, *_: [d for d in devices if d.ep_name == here]
        )

    set_delegate()
    gc.collect()
    for _ in range(2):
        with session(options) as opened:
            assert opened.get_providers() == ["CPUExecutionProvider"]


def test_a_policy_replaces_a_delegate() -> None:
    options = SessionOptions()
    options.set_provider_selection_policy_delegate(raises)
    options.set_provider_selection_policy(Policy.DEFAULT)
    session(options).close()


def test_a_delegate_must_be_callable() -> None:
    with pytest.raises(TypeError, match="not 7"):
        SessionOptions().set_provider_selection_policy_delegate(7)  # type: ignore[arg-type]
