"""Compile-based providers: claims, fused graphs, what a provider is told, and its life."""

from __future__ import annotations

import gc
import os
import subprocess
import threading
from itertools import pairwise
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from ep_support import FuseAll, model, mul_model, open_session, registered, run_once, skip_old_stock
from onnx import TensorProto, helper

import ort_abi
from ort_abi import ep

A = np.array([1, 2, 3], np.float32)
B = np.array([4, 5, 6], np.float32)
W = np.array([10, 20, 30], np.float32)
SPEC = (np.float32, [3])


class Mul(FuseAll):
    name = "MulExecutionProvider"

    def compile(self, graph: Any) -> Any:
        return lambda a, b: a * b


def chain_model() -> bytes:
    """y = (a + w) * b, with the constant w."""
    nodes = [
        helper.make_node("Add", ["a", "w"], ["t"], name="add"),
        helper.make_node("Mul", ["t", "b"], ["y"], name="mul"),
    ]
    return model(nodes, {"a": SPEC, "b": SPEC}, {"y": SPEC}, {"w": W})


def test_two_nodes_become_one_callable(host: ModuleType) -> None:
    seen = {}

    class Both(FuseAll):
        name = "BothExecutionProvider"

        def compile(self, graph: Any) -> Any:
            seen["ops"] = [node.op_type for node in graph.nodes]
            seen["inputs"] = [value.name for value in graph.fused_node.inputs]
            w = graph.initializers["w"].initializer
            return lambda a, b: (a + w) * b

    outputs = run_once(host, Both, chain_model(), {"a": A, "b": B})
    np.testing.assert_array_equal(outputs[0], (A + W) * B)
    assert seen == {"ops": ["Add", "Mul"], "inputs": ["a", "b"]}


def test_constants_can_be_passed_at_each_run(host: ModuleType) -> None:
    class Kept(ep.ExecutionProvider):
        name = "KeptExecutionProvider"

        def get_capability(self, graph: Any) -> Any:
            return [ep.Fuse(graph.nodes, drop_constants=False)]

        def compile(self, graph: Any) -> Any:
            names = graph.argument_names
            assert sorted(names) == ["a", "b", "w"]

            def run(*arrays: np.ndarray) -> np.ndarray:
                values = dict(zip(names, arrays, strict=True))
                return (values["a"] + values["w"]) * values["b"]

            return run

    outputs = run_once(host, Kept, chain_model(), {"a": A, "b": B})
    np.testing.assert_array_equal(outputs[0], (A + W) * B)


def test_each_claim_is_compiled(host: ModuleType) -> None:
    class Single(ep.ExecutionProvider):
        name = "SingleExecutionProvider"
        compiled: ClassVar[list[str]] = []

        def get_capability(self, graph: Any) -> Any:
            return graph.nodes

        def compile(self, graph: Any) -> Any:
            (node,) = graph.nodes
            self.compiled.append(node.op_type)
            if node.op_type == "Mul":
                return lambda a, b: a * b
            w = graph.initializers["w"].initializer
            return lambda a: a + w

    outputs = run_once(host, Single, chain_model(), {"a": A, "b": B})
    np.testing.assert_array_equal(outputs[0], (A + W) * B)
    assert sorted(Single.compiled) == ["Add", "Mul"]


def test_several_outputs(host: ModuleType) -> None:
    class Split(FuseAll):
        name = "SplitExecutionProvider"

        def compile(self, graph: Any) -> Any:
            names = [value.name for value in graph.fused_node.outputs]
            return lambda x: [{"top": x[:1], "rest": x[1:]}[name] for name in names]

    node = helper.make_node("Split", ["x", "s"], ["top", "rest"], axis=0)
    outputs = {"top": (np.float32, [1, 2]), "rest": (np.float32, [2, 2])}
    bytes_ = model([node], {"x": (np.float32, [3, 2])}, outputs, {"s": np.array([1, 2], np.int64)})
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    top, rest = run_once(host, Split, bytes_, {"x": x})
    np.testing.assert_array_equal(top, x[:1])
    np.testing.assert_array_equal(rest, x[1:])


def test_scalars_and_array_likes_are_outputs(host: ModuleType) -> None:
    class Like:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.array(7, np.float32)

    node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)
    bytes_ = model([node], {"x": SPEC}, {"y": (np.float32, [])})
    for function, expected in ((lambda x: x.sum(), 6), (lambda x: Like(), 7)):
        cls = type(
            "Sum", (FuseAll,), {"name": "SumExecutionProvider", "compile": lambda self, graph, f=function: f}
        )
        assert run_once(host, cls, bytes_, {"x": A})[0] == expected


def test_compile_can_return_a_kernel(host: ModuleType) -> None:
    class InPlace(FuseAll):
        name = "InPlaceExecutionProvider"
        closed: ClassVar[list[bool]] = []

        def compile(self, graph: Any) -> Any:
            closed = self.closed

            class Product(ep.Kernel):
                def __init__(self) -> None:
                    pass

                def compute(self, ctx: ep.KernelContext) -> None:
                    np.multiply(*ctx.inputs, out=ctx.output(0, (3,)))

                def close(self) -> None:
                    closed.append(True)

            return Product()

    np.testing.assert_array_equal(run_once(host, InPlace, mul_model(), {"a": A, "b": B})[0], A * B)
    assert InPlace.closed == [True]


def test_provider_knows_options_config_and_devices(host: ModuleType) -> None:
    seen: dict[str, Any] = {}

    class Curious(Mul):
        name = "CuriousExecutionProvider"

        def __init__(self) -> None:
            seen.update(options=self.options, config=self.config, devices=self.devices)

    run_once(
        host, Curious, mul_model(), {"a": A, "b": B}, options={"level": "3"}, config={"session.my_key": "x"}
    )
    assert seen["options"] == {"level": "3"}
    assert seen["config"]["session.my_key"] == "x"
    assert [device.type for device in seen["devices"]] == ["CPU"]
    assert seen["devices"][0].vendor_id > 0


def test_identity_and_metadata_reach_the_user(host: ModuleType) -> None:
    class Known(Mul):
        name, vendor, version = "KnownExecutionProvider", "Some Vendor", "1.2.3"

        @classmethod
        def get_supported_devices(cls, devices: Any) -> Any:
            return [(device, {"speed": "high"}) for device in devices if device.type == "CPU"]

    with registered(host, Known):
        (device,) = [device for device in host.get_ep_devices() if device.ep_name == Known.name]
        assert device.ep_vendor == "Some Vendor"
        assert device.ep_metadata["speed"] == "high"
        assert device.ep_metadata["version"] == "1.2.3"
        del device


def test_devices_have_options_that_sessions_start_from(host: ModuleType) -> None:
    seen = []

    class Tuned(Mul):
        name = "TunedExecutionProvider"

        def __init__(self) -> None:
            seen.append(dict(self.options))

        @classmethod
        def get_supported_devices(cls, devices: Any) -> Any:
            cpus = [device for device in devices if device.type == "CPU"]
            return [(device, {"speed": "high"}, {"level": 3, "mode": "fast"}) for device in cpus][:1]

    with registered(host, Tuned):
        (device,) = [device for device in host.get_ep_devices() if device.ep_name == Tuned.name]
        assert device.ep_options == {"level": "3", "mode": "fast"}
        assert device.ep_metadata["speed"] == "high"
        del device
        session = open_session(host, Tuned, mul_model(), options={"mode": "exact"})
        del session
        gc.collect()
    assert seen == [{"level": "3", "mode": "exact"}]


def test_run_hooks_are_called(host: ModuleType) -> None:
    skip_old_stock(host)
    calls: list[str] = []

    class Hooked(Mul):
        name = "HookedExecutionProvider"

        def on_run_start(self, run_options: Any) -> None:
            calls.append("start")

        def on_run_end(self, run_options: Any, sync_stream: bool) -> None:
            calls.append("end")

        def on_session_ready(self) -> None:
            calls.append("ready")

        def set_dynamic_options(self, options: Any) -> None:
            calls.append(str(dict(options)))

        def close(self) -> None:
            calls.append("close")

    with registered(host, Hooked):
        session = open_session(host, Hooked, mul_model())
        session.run(None, {"a": A, "b": B})
        session.set_ep_dynamic_options({"k": "v"})
        del session
        gc.collect()
    assert calls == ["ready", "start", "end", "{'k': 'v'}", "close"]


def test_log_goes_to_the_host(host: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    class Talks(Mul):
        name = "TalksExecutionProvider"

        def compile(self, graph: Any) -> Any:
            self.log("hello from python", "error")
            return super().compile(graph)

    run_once(host, Talks, mul_model(), {"a": A, "b": B})
    assert "hello from python" in capfd.readouterr().err


def test_subgraphs_are_asked_first_and_know_their_parent(host: ModuleType) -> None:
    skip_old_stock(host)
    asked: list[Any] = []

    class Looks(FuseAll):
        name = "LooksExecutionProvider"

        def get_capability(self, graph: Any) -> Any:
            parent = graph.parent_node
            asked.append(None if parent is None else parent.op_type)
            return [] if parent is not None else [graph.nodes]

        def compile(self, graph: Any) -> Any:
            (node,) = graph.nodes
            assert sorted(node.subgraphs) == ["else_branch", "then_branch"]
            names = graph.argument_names

            def run(*arrays: np.ndarray) -> np.ndarray:
                values = dict(zip(names, arrays, strict=True))
                return values["a"] + values["b"] if values["c"] else values["a"] - values["b"]

            return run

    def branch(op: str) -> Any:
        value = helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])
        return helper.make_graph([helper.make_node(op, ["a", "b"], ["o"])], op, [], [value])

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Add"), else_branch=branch("Sub"))
    bytes_ = model([node], {"c": (bool, []), "a": SPEC, "b": SPEC}, {"y": SPEC})
    for condition, expected in ((True, A + B), (False, A - B)):
        outputs = run_once(host, Looks, bytes_, {"c": np.array(condition), "a": A, "b": B})
        np.testing.assert_array_equal(outputs[0], expected)
    assert asked[:3] == ["If", "If", None]


def test_threads_share_a_session(host: ModuleType) -> None:
    wait = threading.Barrier(4, timeout=30)

    class Slow(FuseAll):
        name = "SlowExecutionProvider"

        def compile(self, graph: Any) -> Any:
            def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
                wait.wait()  # all four are inside at once
                return a * b

            return run

    with registered(host, Slow):
        session = open_session(host, Slow, mul_model())
        results: list[Any] = [None] * 4

        def work(index: int, session: Any) -> None:
            for _ in range(20):
                feeds = {"a": A * index, "b": B}
                results[index] = session.run(None, feeds)[0].copy()

        threads = [threading.Thread(target=work, args=(index, session)) for index in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        for index, result in enumerate(results):
            np.testing.assert_array_equal(result, A * index * B)
        del session


def test_not_concurrent_runs_one_at_a_time(host: ModuleType) -> None:
    inside, most = [0], [0]

    class Alone(FuseAll):
        name = "AloneExecutionProvider"
        concurrent = False

        def compile(self, graph: Any) -> Any:
            def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                threading.Event().wait(0.002)  # gives the GIL away
                inside[0] -= 1
                return a * b

            return run

    with registered(host, Alone):
        session = open_session(host, Alone, mul_model())
        threads = [threading.Thread(target=session.run, args=(None, {"a": A, "b": B})) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        del session
    assert most == [1]


def test_25_cycles_leave_nothing(host: ModuleType) -> None:
    gc.collect()
    before = ep.live_objects()
    for _ in range(25):
        np.testing.assert_array_equal(run_once(host, Mul, mul_model(), {"a": A, "b": B})[0], A * B)
        assert ep.live_objects() == before


def test_two_sessions_have_two_providers(host: ModuleType) -> None:
    made: list[Any] = []

    class Counted(Mul):
        name = "CountedExecutionProvider"

        def __init__(self) -> None:
            made.append(self.options)

    with registered(host, Counted):
        first = open_session(host, Counted, mul_model(), options={"id": "1"})
        second = open_session(host, Counted, mul_model(), options={"id": "2"})
        del first
        gc.collect()
        np.testing.assert_array_equal(second.run(None, {"a": A, "b": B})[0], A * B)
        del second
    assert made == [{"id": "1"}, {"id": "2"}]


OLD_STOCK = os.environ.get("ORT_ABI_STOCK_1_24_PYTHON", "")


@pytest.mark.skipif(not OLD_STOCK, reason="ORT_ABI_STOCK_1_24_PYTHON names no Python with onnxruntime 1.24")
def test_the_same_in_onnxruntime_1_24() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    code = f"""
import sys
sys.path[:0] = [{os.path.dirname(ort_abi.__path__[0])!r}, {here!r}, {os.path.dirname(here)!r}]
import numpy as np, onnxruntime
from ep_support import mul_model, run_once
from test_ep_compile import Mul, A, B
assert onnxruntime.__version__.startswith("1.24."), onnxruntime.__version__
print(run_once(onnxruntime, Mul, mul_model(), {{"a": A, "b": B}})[0].tolist())
"""
    done = subprocess.run([OLD_STOCK, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str((A * B).tolist())


def test_what_was_compiled_before_a_failure_is_released(host: ModuleType) -> None:
    """All of it, though the first one's close raises."""
    closed: list[int] = []

    class Made(ep.Kernel):
        def __init__(self, number: int) -> None:
            self.number = number

        def close(self) -> None:
            closed.append(self.number)
            if self.number == 0:
                raise OSError("does not close")

    class ThirdFails(ep.ExecutionProvider):
        name = "ThirdFailsExecutionProvider"
        made = 0

        def get_capability(self, graph: Any) -> Any:
            return graph.nodes

        def compile(self, graph: Any) -> Any:
            if self.made == 2:
                raise ValueError("the third fails")
            self.made += 1
            return Made(self.made - 1)

    names = "abcd"
    nodes = [helper.make_node("Neg", [x], [y], name=x) for x, y in pairwise(names)]
    objects = ep.live_objects()
    with pytest.raises(Exception, match=r"ThirdFails.*OrtEp::Compile.*: OSError: does not close"):
        run_once(host, ThirdFails, model(nodes, {"a": SPEC}, {"d": SPEC}), {"a": A})
    assert sorted(closed) == [0, 1]
    assert ep.live_objects() == objects
