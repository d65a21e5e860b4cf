"""The models that fuzz_models damages: `python -m tests.fuzz.corpus FOLDER` writes them.

Small ones of the `onnx` package, some of our own, and pieces of the models of other packages (see
`tests.support.models`): up to `PIECE` nodes in a row, with what comes from elsewhere as inputs. Most have
only operators of the built-in CPU provider, so that they run; some have others, for the reader, type
inference and partitioning.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import helper

from tests.conftest import ROOT
from tests.fuzz.test_mutations import function_model, many_types_model
from tests.support.models import generated_models, shipped_models, wheel_models

LARGEST = 8192  # bytes
LARGEST_WHOLE = 3 << 20  # of a model that pieces are taken from
PIECE = 12
OTHERS = 8  # every so-many-th model with operators that the CPU provider lacks
REGISTRY = ROOT / "csrc" / "cpu_ep" / "registry.c"


def cpu_operators() -> set[str]:
    """The operators of the table in `cpu_ep/registry.c`."""
    return set(re.findall(r'^    \{"(\w+)", \d+', REGISTRY.read_text(encoding="utf-8"), re.MULTILINE))


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes, those of subgraphs too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for subgraph in [attribute.g, *attribute.graphs]:
                yield from nodes_of(subgraph)


def runs(node: onnx.NodeProto, operators: set[str]) -> bool:
    """True if the node and all nodes in it have operators of the CPU provider."""
    graph = onnx.GraphProto(node=[node])
    return all(each.op_type in operators and each.domain in ("", "ai.onnx") for each in nodes_of(graph))


def _open_large(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """The declaration with large dimensions left open, so that small inputs fit."""
    opened = onnx.ValueInfoProto()
    opened.CopyFrom(value)
    for i, dim in enumerate(opened.type.tensor_type.shape.dim):
        if dim.dim_value > 16:
            dim.dim_param = f"d{i}"
    return opened


def piece(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> onnx.ModelProto | None:
    """A model of these nodes; None where the type of something that comes from elsewhere is not known."""
    graph = model.graph
    weights = {each.name: each for each in graph.initializer}
    known = {each.name: each for each in [*graph.value_info, *graph.input, *graph.output]}
    made = {name for node in nodes for name in node.output if name}
    used = {name for node in nodes_of(onnx.GraphProto(node=nodes)) for name in node.input if name}
    inner = {name for node in nodes_of(onnx.GraphProto(node=nodes)) for name in node.output}
    inputs, initializers = [], []
    for name in sorted(used - inner):
        if name in weights and weights[name].ByteSize() < 1024:
            initializers.append(weights[name])
        elif name in weights:
            inputs.append(_open_large(helper.make_tensor_value_info(name, *_type_of(weights[name]))))
        elif name in known and known[name].type.HasField("tensor_type"):
            inputs.append(_open_large(known[name]))
        else:
            return None
    outputs = [onnx.ValueInfoProto(name=name) for name in sorted(made - used)]
    found = helper.make_graph(nodes, "piece", inputs, outputs, initializers)
    return helper.make_model(found, opset_imports=model.opset_import, ir_version=model.ir_version)


def _type_of(tensor: onnx.TensorProto) -> tuple[int, list[int]]:
    return tensor.data_type, list(tensor.dims)


def pieces(path: Path, operators: set[str]) -> Iterator[onnx.ModelProto]:
    """Pieces of a model of some package."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    row: list[onnx.NodeProto] = []
    for node in [*model.graph.node, None]:
        if node is not None and runs(node, operators):
            row.append(node)
        if row and (node is None or len(row) == PIECE or not runs(node, operators)):
            made = piece(model, row)
            row = []
            if made is not None:
                yield made


def functions_that_run() -> onnx.ModelProto:
    """Functions within functions, with operators of the CPU provider."""
    model = function_model()
    for function in model.functions:
        for node in function.node:
            node.op_type = node.op_type.replace("Elu", "LeakyRelu")
    return model


def write_corpus(folder: Path) -> list[Path]:
    """Writes the models and returns their paths, always in the same order."""
    operators = cpu_operators()
    others = 0
    found = [*generated_models(), ("many_types", many_types_model()), ("functions", functions_that_run())]
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        found += [(f"{path.parent.name}_{path.stem}", onnx.load(path)) for path in shipped_models(kind)]
    try:
        wheels = wheel_models()
    except pytest.skip.Exception:
        wheels = []
    for path in (path for path in wheels if path.stat().st_size <= LARGEST_WHOLE):
        found += [(f"{path.stem}_{i}", each) for i, each in enumerate(pieces(path, operators))]
    for name, model in found:
        data = model.SerializeToString()
        if not all(node.op_type in operators for node in nodes_of(model.graph)) and not model.functions:
            others += 1
            if others % OTHERS != 0:
                continue
        if len(data) <= LARGEST:
            (folder / f"{name}.onnx").write_bytes(data)
    return sorted(folder.glob("*.onnx"))


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    print(f"{len(write_corpus(Path(sys.argv[1])))} models")
