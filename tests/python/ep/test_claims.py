"""What becomes of a provider's claims when one of them cannot stand: as in stock."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import onnxruntime
import pytest
from channels_last import NHWC, ChannelsLast, FuseChannelsLast
from ep_support import HOSTS, model, open_session, registered
from image_models import conv
from image_models import model as image_model
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from ort_abi import ep

RECORD = {"session.record_ep_graph_assignment_info": "1"}
Claims = list[str | list[str]]


class _Claimer(ep.ExecutionProvider):
    """Claims what `claims` lists: a name is a single node, for a kernel; a list is to be fused."""

    claims: ClassVar[Claims] = []

    @ep.kernel("Abs", since_version=13, types={"T": [np.float32]})
    def absolute(x: Any) -> Any:
        return np.abs(x)

    def get_capability(self, graph: Any) -> Any:
        nodes = {node.name: node for node in graph.nodes}
        return [
            nodes[claim] if isinstance(claim, str) else [nodes[name] for name in claim]
            for claim in type(self).claims
        ]

    def compile(self, graph: Any) -> Callable[..., Any]:
        evaluator = ReferenceEvaluator(graph.to_model_proto())
        names = graph.argument_names
        return lambda *arrays: tuple(evaluator.run(None, dict(zip(names, arrays, strict=True))))


class First(_Claimer):
    name = "FirstClaimerExecutionProvider"


class Second(_Claimer):
    name = "SecondClaimerExecutionProvider"


def _chain() -> bytes:
    """a -> b -> c -> abs -> e, and c reads a too."""
    nodes = [
        helper.make_node("Neg", ["x"], ["va"], "a"),
        helper.make_node("Exp", ["va"], ["vb"], "b"),
        helper.make_node("Add", ["vb", "va"], ["vc"], "c"),
        helper.make_node("Abs", ["vc"], ["vd"], "abs"),
        helper.make_node("Neg", ["vd"], ["y"], "e"),
    ]
    spec = (TensorProto.FLOAT, [2])
    return model(nodes, {"x": spec}, {"y": spec})


def _assigned(host: ModuleType, first: Claims, second: Claims) -> set[tuple[str, tuple[str, ...]]]:
    """(provider, nodes) of each claim that stands; the session computes what it should."""
    First.claims, Second.claims = first, second
    x = np.array([-1, 2], np.float32)
    with registered(host, First), registered(host, Second):
        options = host.SessionOptions()
        for key, value in RECORD.items():
            options.add_session_config_entry(key, value)
        if host is onnxruntime:
            options.graph_optimization_level = host.GraphOptimizationLevel.ORT_DISABLE_ALL
        for cls in (First, Second):
            devices = [device for device in host.get_ep_devices() if device.ep_name == cls.name]
            options.add_provider_for_devices(devices, {})
        session = host.InferenceSession(_chain(), options)
        groups = session.get_provider_graph_assignment_info()
        found = {(group.ep_name, tuple(node.name for node in group.get_nodes())) for group in groups}
        np.testing.assert_allclose(session.run(None, {"x": x})[0], -np.abs(np.exp(-x) - x), rtol=1e-6)
        del session, groups
        gc.collect()
    return found


CASES: dict[str, tuple[Claims, Claims]] = {
    "all stand": ([["a", "b"]], [["e"]]),
    "the first cannot be fused": ([["a", "c"], ["e"]], [["b"]]),
    "the last cannot be fused": ([["e"], ["a", "c"]], []),
    "a kernel's node beside one that cannot be fused": (["abs", ["a", "c"]], []),
    "islands that cannot be fused": ([["a", "e"], ["c"]], []),
    "the second provider's cannot be fused": (["abs"], [["e"], ["a", "c"]]),
    "another provider has a node between": (["abs"], [["c", "abs", "e"], ["a"]]),
    "another provider has the first node": (["abs"], [["abs", "e"], ["a"]]),
}


@pytest.mark.parametrize("case", CASES)
def test_claims_stand_as_in_stock(case: str) -> None:
    found = [_assigned(host, *CASES[case]) for host in HOSTS.values()]
    assert found[0] == found[1]


def test_a_claim_that_cannot_be_fused_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    _assigned(HOSTS["ours"], [["e"], ["a", "c"]], [])
    said = capfd.readouterr().err
    assert "its claim on 'a' (Neg, ai.onnx, version 13), 'c' (Add, ai.onnx, version 14)" in said
    assert "none of its claims" in said


# ---- providers that are asked twice ----


def _names_when_asked(host: ModuleType, cls: type[ChannelsLast], again: bool) -> list[list[tuple[str, str]]]:
    """(operator, provider) of all nodes, each time that the provider was asked. `again`: it claims all that
    it can the second time, else only what was converted."""
    asked: list[list[tuple[str, str]]] = []

    class Look(cls):  # type: ignore[valid-type, misc]
        def get_capability(self, graph: Any) -> Any:
            nodes = [node for node in graph.nodes if node.op_type != "Neg"]
            asked.append([(node.op_type, node.ep_name) for node in graph.nodes])
            if not again and any(node.domain == NHWC for node in nodes):
                return [[node] for node in nodes if node.domain == NHWC]
            return [[node] for node in nodes] if cls is ChannelsLast else ep.partition(graph, nodes)

    nodes = [
        conv(),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Shape", ["b"], ["s"]),
        helper.make_node("Neg", ["s"], ["n"]),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    proto = image_model(nodes, outputs=("y",))
    with registered(host, Look):
        session = open_session(host, Look, proto, fallback=True, optimize=False, config=RECORD)
        del session
        gc.collect()
    return [[(op, name and "its own") for op, name in each] for each in asked]


@pytest.mark.parametrize("cls", [ChannelsLast, FuseChannelsLast])
@pytest.mark.parametrize("again", [True, False])
def test_the_second_time_a_provider_sees_what_it_has_claimed(cls: type[ChannelsLast], again: bool) -> None:
    """The nodes that are there for the first time, Transposes and Gathers, are nobody's. Stock moves the
    Shape too, which takes a Gather."""
    ours, stock = (_names_when_asked(HOSTS[host], cls, again)[-2:] for host in ("ours", "stock"))
    assert set(ours[0]) == set(stock[0]) == {(op, "") for op in ("Conv", "Relu", "Shape", "Neg")}
    assert set(ours[1]) == set(stock[1]) - {("Gather", "")}
    assert ("Conv", "its own") in ours[1] and ("Transpose", "") in ours[1]


def test_what_it_does_not_claim_again_is_free() -> None:
    """For the providers behind it; a claim of theirs on it stands."""
    seen: list[str] = []

    class Once(ChannelsLast):
        name = "OnceExecutionProvider"

        def claims(self, graph: Any) -> Any:
            converted = [[node] for node in graph.nodes if node.domain == NHWC]
            return converted or super().claims(graph)

    class Behind(ChannelsLast):
        name = "BehindExecutionProvider"
        preferred_data_layout = "NCHW"

        def claims(self, graph: Any) -> Any:
            seen.extend(f"{node.op_type} {node.ep_name}" for node in graph.nodes)
            return [[node] for node in graph.nodes if not node.ep_name]

    proto = image_model([conv(), helper.make_node("Relu", ["a"], ["y"])])
    host = HOSTS["ours"]
    with registered(host, Once), registered(host, Behind):
        options = host.SessionOptions()
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        for cls in (Once, Behind):
            devices = [device for device in host.get_ep_devices() if device.ep_name == cls.name]
            options.add_provider_for_devices(devices, {})
        session = host.InferenceSession(proto, options)
        del session
        gc.collect()
    assert sorted(seen) == ["Conv OnceExecutionProvider", "Relu ", "Transpose ", "Transpose "]
