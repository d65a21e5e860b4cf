"""Damaged models are read or refused with a message: never a crash, never a hang."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from abigen import native_build
from tests.conftest import CC, ROOT
from tests.support.models import generated_models, shipped_models

GENERATED = [
    "test_if",
    "test_loop11",
    "test_scan9_sum",
    "test_optional_get_element_sequence",
    "test_constant_pad",
]
HANG_SECONDS = 900


def many_types_model() -> onnx.ModelProto:
    """Initializers in every data field and attributes of every kind."""
    kinds = [
        "FLOAT",
        "DOUBLE",
        "INT64",
        "UINT64",
        "INT32",
        "UINT8",
        "BOOL",
        "FLOAT16",
        "INT4",
        "STRING",
        "COMPLEX64",
    ]
    tensors = []
    for kind in kinds:
        values: Any = [b"ab", b"", b"c"] if kind == "STRING" else [1, 0, 1]
        tensors.append(helper.make_tensor(f"w_{kind}", getattr(TensorProto, kind), [3], values))
    raw = helper.make_tensor("raw", TensorProto.FLOAT, [2, 2], b"\0" * 16, raw=True)
    values = helper.make_tensor("sparse", TensorProto.FLOAT, [2], [1.0, 2.0])
    indices = helper.make_tensor("", TensorProto.INT64, [2], [1, 5])
    node = helper.make_node(
        "Custom",
        ["x", "", "raw"],
        ["y"],
        domain="own",
        i=1,
        f=1.5,
        s="text",
        ints=[1, -2],
        floats=[0.5],
        strings=["a", "b"],
        t=raw,
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    kind = onnx.AttributeProto
    sparse = helper.make_sparse_tensor(values, indices, [2, 3])
    branch = helper.make_graph([helper.make_node("Neg", ["x"], ["o"])], "branch", [], [y])
    node.attribute.extend(
        [
            kind(name="tensors", type=kind.TENSORS, tensors=[raw, values]),
            kind(name="graphs", type=kind.GRAPHS, graphs=[branch, branch]),
            kind(name="sparse", type=kind.SPARSE_TENSOR, sparse_tensor=sparse),
            kind(name="sparses", type=kind.SPARSE_TENSORS, sparse_tensors=[sparse]),
            kind(name="type", type=kind.TYPE_PROTO, tp=x.type),
            kind(name="types", type=kind.TYPE_PROTOS, type_protos=[x.type, y.type]),
        ]
    )
    graph = helper.make_graph([node], "types", [x], [y], [*tensors, raw], doc_string="about")
    graph.sparse_initializer.append(sparse)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, producer_name="test")


def function_model() -> onnx.ModelProto:
    """Functions that call each other, with attributes and a subgraph, that give back an input and one output
    twice; outputs that the graph names twice."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    elu = helper.make_node("Elu", ["a"], ["b"])
    elu.attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="p"))
    inner = helper.make_function("own", "Inner", ["a"], ["b"], [elu], opsets, ["p"])
    out = helper.make_tensor_value_info("q", TensorProto.FLOAT, [2])
    nodes = [helper.make_node("Inner", ["a"], ["q"], domain="own", p=0.5)]
    branch = helper.make_graph(nodes, "branch", [], [out])
    body = [
        helper.make_node("Inner", ["a"], ["t"], domain="own", p=1.5),
        helper.make_node("If", ["c"], ["b"], then_branch=branch, else_branch=branch),
    ]
    outer = helper.make_function("own", "Outer", ["c", "a", "d"], ["b", "t", "a", "t"], body, opsets)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    call = helper.make_node("Outer", ["c", "x"], ["y", "t", "z", "u"], domain="own")
    graph = helper.make_graph([call], "calls", [x, c], [y, y, x])
    return helper.make_model(graph, opset_imports=opsets, functions=[inner, outer])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Small models that between them have everything a model can have."""
    folder = tmp_path_factory.mktemp("corpus")
    models = [(name, model) for name, model in generated_models() if name in GENERATED]
    assert sorted(name for name, _ in models) == sorted(GENERATED)
    for name, model in [*models, ("many_types", many_types_model()), ("functions", function_model())]:
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    return [*sorted(folder.iterdir()), *shipped_models("simple")[:3], shipped_models("pytorch-operator")[0]]


def run_child(library: Path, start: int, stop: int, corpus: list[Path], **environment: str) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.fuzz.child",
        str(library),
        str(start),
        str(stop),
        *map(str, corpus),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=HANG_SECONDS,
        check=False,
    )
    lines = done.stdout.splitlines()
    last = lines[-1] if lines else "nothing"
    assert done.returncode == 0, f"exit status {done.returncode} at mutation {last}:\n{done.stderr[-4000:]}"
    counts = re.fullmatch(r"accepted (\d+) refused (\d+)", last)
    assert counts is not None
    accepted, refused = int(counts[1]), int(counts[2])
    assert accepted + refused >= stop - start
    assert accepted > (stop - start) // 20, "the mutations are too wild to test anything but the first check"
    assert refused > (stop - start) // 4, "the mutations are too tame"


def test_ten_thousand_damaged_models(libort_abi: Path, corpus: list[Path]) -> None:
    run_child(libort_abi, 0, 10_000, corpus)


def test_damaged_models_under_sanitizers(corpus: list[Path]) -> None:
    options = native_build.Options(cc=CC, sanitize="address,undefined")
    if options.is_clang():
        pytest.skip("Python can preload gcc's sanitizer runtime only")
    library = native_build.build(ROOT / "build" / "native-sanitized", options)
    runtime = subprocess.run([CC, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    run_child(
        library,
        10_000,
        13_000,
        corpus,
        LD_PRELOAD=runtime.stdout.strip(),
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1",
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
    )
