"""What nobody took goes to the reference provider, within the one creation of the session."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from ep_support import model, registered
from onnx import TensorProto, helper

import ort_abi
from ort_abi import ep, errors
from ort_abi.options import OrtExecutionProviderDevicePolicy as Policy

SPEC = (TensorProto.FLOAT, [3])
A = np.array([-1, 2, 3], np.float32)
REFERENCE = "ReferenceExecutionProvider"


class Counting(ep.ExecutionProvider):
    """Compiles Mul, has a kernel for Neg, and counts what it is asked."""

    name, vendor = "CountingExecutionProvider", "Tests"
    calls: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        self.calls["create"] += 1

    def get_capability(self, graph: ep.Graph) -> list[Any]:
        self.calls["get_capability"] += 1
        return [[node] for node in graph.nodes if node.op_type == "Mul"] + super().get_capability(graph)

    def compile(self, graph: ep.Graph) -> Any:
        self.calls["compile"] += 1
        return lambda a, b: a * b

    @ep.kernel("Neg", (13, None))
    class Neg(ep.Kernel):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            Counting.calls["kernel"] += 1

        def compute(self, context: Any) -> None:
            context.output(0, (3,))[...] = -context.inputs[0]


def counted(last: str) -> bytes:
    """y = last((-a) * a): `last` decides who has the last node."""
    nodes = [
        helper.make_node("Neg", ["a"], ["n"]),
        helper.make_node("Mul", ["n", "a"], ["m"]),
        helper.make_node(last, ["m"], ["y"], "the_last"),
    ]
    return model(nodes, {"a": SPEC}, {"y": SPEC})


def test_providers_are_asked_once_in_a_session_that_needs_the_reference() -> None:
    Counting.calls.clear()
    with registered(ort_abi, Counting):
        session = ort_abi.InferenceSession(counted("Celu"), providers=[Counting.name])
        once = dict.fromkeys(("create", "get_capability", "compile", "kernel"), 1)
        assert {key: Counting.calls[key] for key in once} == once
        assert session.get_providers() == [Counting.name, "CPUExecutionProvider", REFERENCE]
        assert set(session.get_provider_options()) == set(session.get_providers())
        assert [step.ep_name for step in session.assignment()] == [Counting.name, Counting.name, REFERENCE]
        np.testing.assert_allclose(session.run(None, {"a": A})[0], np.expm1(-A * A), rtol=1e-6)
        session.close()


def test_a_choice_of_providers_is_made_once() -> None:
    chosen = []

    def choose(devices: Sequence[ort_abi.OrtEpDevice], *_: object) -> list[ort_abi.OrtEpDevice]:
        chosen.append(len(devices))
        return [device for device in devices if device.ep_name == Counting.name]

    Counting.calls.clear()
    with registered(ort_abi, Counting):
        options = ort_abi.SessionOptions()
        options.set_provider_selection_policy_delegate(choose)
        session = ort_abi.InferenceSession(counted("Celu"), options)
        assert len(chosen) == 1
        assert Counting.calls["get_capability"] == 1
        assert session.get_providers() == [Counting.name, "CPUExecutionProvider", REFERENCE]
        session.close()


def test_a_session_that_needs_no_reference_does_not_import_onnx(tmp_path: Path) -> None:
    path = tmp_path / "relu.onnx"
    path.write_bytes(model([helper.make_node("Relu", ["x"], ["y"])], {"x": SPEC}, {"y": SPEC}))
    code = f"""
import sys, ort_abi
options = ort_abi.SessionOptions()
options.add_session_config_entry("session.ort_abi_shape_inference", "0")
session = ort_abi.InferenceSession({str(path)!r}, options)
assert session.get_providers() == ["CPUExecutionProvider"]
assert ort_abi.get_available_providers() == ["CPUExecutionProvider"]
assert "onnx" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_reference_may_be_one_of_the_sessions_own_providers() -> None:
    from ort_abi.eps.reference import ReferenceExecutionProvider

    data = model(
        [helper.make_node("NoSuchOp", ["a"], ["y"], "n", domain="my")],
        {"a": SPEC},
        {"y": SPEC},
        domains={"my": 1},
    )
    with registered(ort_abi, ReferenceExecutionProvider):
        session = ort_abi.InferenceSession(counted("Celu"), providers=[REFERENCE])
        assert session.get_providers() == [REFERENCE, "CPUExecutionProvider"]
        with pytest.raises(
            errors.NotImplemented, match="Asked: 'ReferenceExecutionProvider', 'CPU"
        ) as caught:
            ort_abi.InferenceSession(data, providers=[REFERENCE])
        assert str(caught.value).count(f"'{REFERENCE}'") == 1
        session.close()
        del caught


def test_no_reference_without_fallback() -> None:
    for fallback, config in ((False, "0"), (True, "1")):
        options = ort_abi.SessionOptions()
        options.add_session_config_entry("session.disable_cpu_ep_fallback", config)
        options.set_provider_selection_policy(Policy.PREFER_CPU)
        with pytest.raises(errors.Fail, match=r"the_last"):
            ort_abi.InferenceSession(counted("Celu"), options, fallback=fallback)
    assert REFERENCE not in ort_abi.get_available_providers()


def test_an_error_of_the_reference_is_the_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ort_abi.eps.reference", None)  # its import fails
    with pytest.raises(errors.RuntimeException, match=r"ort_abi\.eps\.reference") as caught:
        ort_abi.InferenceSession(counted("Celu"))
    assert isinstance(caught.value.__cause__, ImportError)


def test_threads_that_need_the_reference_at_once_share_it() -> None:
    barrier, failures = threading.Barrier(4), []

    def make() -> None:
        barrier.wait()
        try:
            session = ort_abi.InferenceSession(counted("Celu"))
            np.testing.assert_allclose(session.run(None, {"a": A})[0], np.expm1(-A * A), rtol=1e-6)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ort_abi.get_available_providers().count(REFERENCE) == 1
