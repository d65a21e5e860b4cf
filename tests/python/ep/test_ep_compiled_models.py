"""Compiled models of Python providers: written by stock onnxruntime, loaded again there and in our host."""

from __future__ import annotations

import gc
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest
from ep_support import HOSTS, OLD_STOCK, FuseAll, model, open_session, registered, run_once
from onnx import helper

from ort_abi import ep

A = np.array([1, 2, 3], np.float32)
FEEDS = {"a": A, "b": A}
SPEC = (np.float32, [3])


class Boom(Exception):
    """Raised by the methods under test."""


def boom(*_: Any) -> Any:
    raise Boom("it broke here")


class Keeps(FuseAll):
    """Keeps the names of the operators as what it compiled; runs from that."""

    name = "KeepsExecutionProvider"
    context: ClassVar[Any] = None
    loaded: ClassVar[list[Any]] = []

    def compile(self, graph: Any) -> Any:
        if [node.op_type for node in graph.nodes] == ["EPContext"]:
            attributes = graph.nodes[0].attributes
            self.loaded.append(attributes)
            return self.code(attributes["ep_cache_context"].split(","))
        kept = ",".join(node.op_type for node in graph.nodes)
        if self.context is None:
            context = ep.EpContext(kept, {"partition_name": "ä", "max_size": 7, "main_context": 0})
        else:
            context = self.context
        return ep.Compiled(self.code(kept.split(",")), context)

    @staticmethod
    def code(operators: list[str]) -> Any:
        def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            for operator in operators:
                a = a * b if operator == "Mul" else a + b
            return a

        return run

    def get_compiled_model_compatibility_info(self, graph: Any) -> str:
        return f"{len(graph.nodes)} node, version 1"


def chain_model() -> bytes:
    """y = a * b + b"""
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["t"], name="m"),
        helper.make_node("Add", ["t", "b"], ["y"], name="s"),
    ]
    return model(nodes, {"a": SPEC, "b": SPEC}, {"y": SPEC})


def compile_with(cls: type[ep.ExecutionProvider], path: Path, more: dict[str, str] | None = None) -> str:
    """Has stock onnxruntime write the compiled model; the error, if there is one."""
    config = {"ep.context_enable": "1", "ep.context_file_path": str(path)} | (more or {})
    stock = HOSTS["stock"]
    told = ""
    with registered(stock, cls):
        try:
            session = open_session(stock, cls, chain_model(), config=config)
            np.testing.assert_array_equal(session.run(None, FEEDS)[0], A * A + A)
            del session
        except Exception as error:
            told = str(error)
        gc.collect()
    return told


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    path = tmp_path / "compiled.onnx"
    Keeps.loaded.clear()
    assert compile_with(Keeps, path) == ""
    return path


def test_the_node_has_what_the_provider_kept(compiled: Path) -> None:
    written = onnx.load(compiled)
    (node,) = written.graph.node
    assert (node.op_type, node.domain) == ("EPContext", "com.microsoft")
    assert (sorted(node.input), list(node.output)) == (["a", "b"], ["y"])
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    assert attributes == {
        "ep_cache_context": b"Mul,Add",
        "partition_name": "ä".encode(),
        "max_size": 7,
        "main_context": 0,
        "embed_mode": 1,
        "source": b"KeepsExecutionProvider",
    }


def test_the_model_has_the_compatibility_info(compiled: Path) -> None:
    metadata = {item.key: item.value for item in onnx.load(compiled).metadata_props}
    assert "version 1" in metadata["ep_compatibility_info.KeepsExecutionProvider"]


def test_a_compiled_model_runs_from_what_was_kept(host: ModuleType, compiled: Path) -> None:
    (y,) = run_once(host, Keeps, compiled.read_bytes(), FEEDS)
    np.testing.assert_array_equal(y, A * A + A)
    (attributes,) = Keeps.loaded
    assert attributes["ep_cache_context"] == "Mul,Add" and attributes["partition_name"] == "ä"


def test_without_the_option_the_context_is_not_used(host: ModuleType) -> None:
    (y,) = run_once(host, Keeps, chain_model(), FEEDS)
    np.testing.assert_array_equal(y, A * A + A)


def test_our_host_makes_no_compiled_models() -> None:
    with pytest.raises(Exception, match=r"OrtEp::Compile of .*CreateNode is not implemented"):
        run_once(HOSTS["ours"], Keeps, chain_model(), FEEDS, config={"ep.context_enable": "1"})


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    data = bytes(range(256))
    cls = type("Bytes", (Keeps,), {"name": "BytesExecutionProvider", "context": ep.EpContext(data)})
    assert compile_with(cls, tmp_path / "x.onnx") == ""
    (node,) = onnx.load(tmp_path / "x.onnx").graph.node
    assert next(item.s for item in node.attribute if item.name == "ep_cache_context") == data


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (5, "Compiled.context must be an ort_abi.ep.EpContext, not 5"),
        (
            ep.EpContext(b"", {"partition_name": [1]}),  # type: ignore[dict-item]
            "EpContext attribute 'partition_name' must be an int, float, str or bytes, not [1]",
        ),
    ],
)
def test_a_context_that_cannot_be_kept(context: Any, message: str, tmp_path: Path) -> None:
    objects = ep.live_objects()
    cls = type("Bad", (Keeps,), {"name": "BadExecutionProvider", "context": context})
    told = compile_with(cls, tmp_path / "x.onnx")
    assert "BadExecutionProvider: OrtEp::Compile: TypeError: " in told and message in told
    assert ep.live_objects() == objects


def test_a_compatibility_info_that_raises_is_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    members = {"name": "RaisesExecutionProvider", "get_compiled_model_compatibility_info": boom}
    before = ep.unreported_errors()
    assert compile_with(type("Raises", (Keeps,), members), tmp_path / "x.onnx") == ""
    assert ep.unreported_errors() == before + 1
    assert f"OrtEp::GetCompiledModelCompatibilityInfo: {__name__}.Boom" in capfd.readouterr().err
    metadata = {item.key: item.value for item in onnx.load(tmp_path / "x.onnx").metadata_props}
    assert not metadata.get("ep_compatibility_info.RaisesExecutionProvider")


class Weightless(Keeps):
    """Offers to be compiled without weights, and says so, or something else, when asked."""

    name = "WeightlessExecutionProvider"

    @classmethod
    def get_supported_devices(cls, devices: Any) -> Any:
        return [(device, {"weightless_support": "all"}) for device in devices if device.type == "CPU"][:1]

    def get_weightless_support(self) -> str:
        return "all"


@pytest.mark.skipif(OLD_STOCK, reason="compiled models without weights came with API 29")
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (lambda self: "all", ""),
        (lambda self: "none", "does not support it on this device"),
        (boom, f"OrtEp::GetWeightlessSupport: {__name__}.Boom: it broke here"),
    ],
)
def test_models_without_weights(method: Any, expected: str, tmp_path: Path) -> None:
    members = {"name": "WeightlessExecutionProvider", "get_weightless_support": method}
    cls = type("Asked", (Weightless,), members)
    told = compile_with(cls, tmp_path / "x.onnx", {"ep.enable_weightless": "1"})
    assert expected in told and bool(told) == bool(expected)
