"""Every model that is at hand, read by our reader and by the `onnx` package: the same model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.differential import expected_model as expected
from tests.support.models import generated_models, shipped_models, wheel_models
from tests.support.native_model import NativeHost, NativeModel

NEWEST_ELEMENT_TYPE = 26
FOLDERS = {"light": 9, "pytorch-converted": 80, "pytorch-operator": 30, "simple": 20}
"""Folders of the `onnx` package's test data, and how many models there are at least."""


def assert_topological(graph: dict[str, Any]) -> None:
    """No node uses what a later one makes."""
    made: set[str] = set()
    outputs = {name for node in graph["nodes"] for name in node["outputs"]}
    for node in graph["nodes"]:
        needed = (set(node["inputs"]) | node["implicit_inputs"]) & outputs - {""}
        assert needed <= made, f"{node['name']} is before {needed - made}"
        made |= set(node["outputs"])
        for kind, value in node["attributes"].values():
            if kind == "GRAPH":
                assert_topological(value)


def in_one_order(graph: dict[str, Any]) -> dict[str, Any]:
    """The graph with its nodes ordered by their outputs, as in its subgraphs."""
    nodes = []
    for node in graph["nodes"]:
        attributes = {
            name: (kind, in_one_order(value) if kind == "GRAPH" else value)
            for name, (kind, value) in node["attributes"].items()
        }
        nodes.append({**node, "attributes": attributes})
    return {**graph, "nodes": sorted(nodes, key=lambda node: (node["outputs"], node["name"]))}


def compare(model: onnx.ModelProto, native: NativeModel, folder: Path | None) -> None:
    """Asserts that both are the same model."""
    assert native.properties() == expected.properties(model)
    graph = native.graph()
    assert_topological(graph)
    assert in_one_order(graph) == in_one_order(
        expected.graph(model.graph, expected.opset_versions(model), folder)
    )
    compare_declared(native, model)


def subgraph_pairs(
    native: NativeModel, handle: Any, proto: onnx.GraphProto
) -> Iterator[tuple[Any, onnx.GraphProto]]:
    """The graph and all its subgraphs, ours beside those of `onnx`."""
    yield handle, proto
    by_outputs = {tuple(node.output): node for node in proto.node}
    for node in native.node_handles(handle):
        subgraphs = native.subgraph_handles(node)
        if subgraphs:
            outputs = tuple(native.names("Node_Outputs", node))
            for item in by_outputs[outputs].attribute:
                if item.name in subgraphs:
                    yield from subgraph_pairs(native, subgraphs[item.name], item.g)


def compare_declared(native: NativeModel, model: onnx.ModelProto) -> None:
    """Asserts that values have the types that their graphs declare."""
    for handle, proto in subgraph_pairs(native, native.graph_handle(), model.graph):
        types, declared = native.value_types(handle), expected.declared_types(proto)
        own = expected.defined_names(proto) & types.keys() & declared.keys()
        assert {name: types[name] for name in own} == {name: declared[name] for name in own}


def compare_inferred(native: NativeModel, model: onnx.ModelProto) -> int:
    """Asserts that types are those of `onnx.shape_inference` where that knows them; returns how many."""
    known = 0
    inferred = onnx.shape_inference.infer_shapes(model)
    for handle, proto in subgraph_pairs(native, native.graph_handle(), inferred.graph):
        types = native.value_types(handle)
        wanted = expected.declared_types(proto)
        own = expected.defined_names(proto) & types.keys() & wanted.keys()
        known += len(own)
        assert {name: expected.without_shapes(types[name]) for name in own} == {
            name: expected.without_shapes(wanted[name]) for name in own
        }
    return known


def check_all(host: NativeHost, models: Iterable[tuple[str, onnx.ModelProto, Path | bytes]]) -> int:
    """Compares all and fails with a list of those that differ; returns how many were compared."""
    failures = []
    count = 0
    for name, model, source in models:
        folder = source.parent if isinstance(source, Path) else None
        try:
            with NativeModel(host, source) as native:
                compare(model, native, folder)
        except Exception as error:  # the rest is compared too
            failures.append(f"{name}: {type(error).__name__}: {str(error)[:2000]}")
        count += 1
    assert not failures, f"{len(failures)} of {count} models differ:\n" + "\n".join(failures[:20])
    return count


def is_in_abi(model: onnx.ModelProto) -> bool:
    """False for models with element types that are newer than the ABI."""
    text = str(model)
    newer = [kind for kind in onnx.TensorProto.DataType.values() if kind > NEWEST_ELEMENT_TYPE]
    return not any(f"elem_type: {kind}\n" in text or f"data_type: {kind}\n" in text for kind in newer)


@pytest.mark.parametrize("folder", FOLDERS)
def test_shipped_models_are_read_as_onnx_reads_them(native_host: NativeHost, folder: str) -> None:
    paths = shipped_models(folder)
    assert len(paths) >= FOLDERS[folder]
    check_all(native_host, ((str(path), onnx.load(path, load_external_data=False), path) for path in paths))


def test_generated_models_are_read_as_onnx_reads_them(native_host: NativeHost) -> None:
    models = (
        (name, model, model.SerializeToString()) for name, model in generated_models() if is_in_abi(model)
    )
    assert check_all(native_host, models) > 1500


def test_models_in_wheels_are_read_as_onnx_reads_them(native_host: NativeHost) -> None:
    paths = wheel_models()
    check_all(native_host, ((str(path), onnx.load(path), path) for path in paths))


def test_types_between_nodes_are_inferred_as_onnx_infers_them(native_host: NativeHost) -> None:
    failures = []
    known = 0
    for name, model in generated_models():
        if not is_in_abi(model):
            continue
        bare = expected.without_types(model)
        with NativeModel(native_host, bare.SerializeToString()) as native:
            try:
                known += compare_inferred(native, bare)
            except AssertionError as error:  # the rest is compared too
                failures.append(f"{name}: {str(error)[:2000]}")
    assert not failures, f"{len(failures)} models differ:\n" + "\n".join(failures[:20])
    assert known > 15000
