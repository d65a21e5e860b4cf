"""Models whose declared types or shapes contradict what their nodes make, and a few that only look so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

Feeds = dict[str, np.ndarray]
Case = tuple[str, onnx.ModelProto, Feeds]

X = np.array([1, 2, 3], np.float32)
TWO = np.array(2)
FEEDS = {"x": X}
CHOICE = {"x": X, "c": np.array(True)}
node, value = helper.make_node, helper.make_tensor_value_info


def tensor(array: Any, name: str) -> onnx.TensorProto:
    """An initializer."""
    made: onnx.TensorProto = numpy_helper.from_array(np.asarray(array), name)
    return made


def untyped(name: str) -> onnx.ValueInfoProto:
    """A value of which only the name is said."""
    return onnx.ValueInfoProto(name=name)


def sequence(name: str, element: int) -> onnx.ValueInfoProto:
    """A sequence of tensors."""
    made: onnx.ValueInfoProto = helper.make_tensor_sequence_value_info(name, element, None)
    return made


def optional(name: str, element: int) -> onnx.ValueInfoProto:
    """An optional tensor."""
    inner = helper.make_tensor_type_proto(element, [3])
    made: onnx.ValueInfoProto = helper.make_value_info(name, helper.make_optional_type_proto(inner))
    return made


def sparse(name: str, element: int) -> onnx.ValueInfoProto:
    """A sparse tensor."""
    made = onnx.ValueInfoProto(name=name)
    made.type.sparse_tensor_type.elem_type = element
    return made


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
    values: Sequence[onnx.ValueInfoProto] = (),
    ir_version: int = 8,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of operator set 17."""
    named = [onnx.NodeProto.FromString(each.SerializeToString()) for each in nodes]
    for index, each in enumerate(named):
        each.name = each.name or f"n{index}"
    graph = helper.make_graph(named, "g", inputs, outputs, initializers, value_info=values)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    made: onnx.ModelProto = helper.make_model(
        graph, opset_imports=opsets, ir_version=ir_version, functions=functions
    )
    return made


def body(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.GraphProto:
    """A subgraph."""
    made: onnx.GraphProto = helper.make_graph(nodes, "body", inputs, outputs, initializers)
    return made


IN = value("x", T.FLOAT, [3])
OUT = value("y", T.FLOAT, [3])
ANY = value("y", T.FLOAT, None)


# ---- Values of one graph


def outputs() -> Iterator[Case]:
    """One node, whose output is declared as something."""
    relu = [node("Relu", ["x"], ["y"])]
    declared = {
        "right": OUT,
        "untyped": untyped("y"),
        "element": value("y", T.INT64, [3]),
        "rank": value("y", T.FLOAT, [3, 1]),
        "dimension": value("y", T.FLOAT, [4]),
        "sequence": sequence("y", T.FLOAT),
        "optional": optional("y", T.FLOAT),
        "sparse": sparse("y", T.FLOAT),
    }
    for name, output in declared.items():
        yield f"output_{name}", model(relu, [IN], [output]), FEEDS
    by_rule = {
        "cast": node("Cast", ["x"], ["y"], to=T.DOUBLE),
        "shape": node("Shape", ["x"], ["y"]),
        "equal": node("Equal", ["x", "x"], ["y"]),
    }
    for name, each in by_rule.items():
        yield f"output_of_{name}", model([each], [IN], [value("y", T.FLOAT, None)]), FEEDS
    several = {
        "dropout": (node("Dropout", ["x"], ["y", "z"]), []),
        "topk": (node("TopK", ["x", "k"], ["y", "z"]), [tensor([1], "k")]),
    }
    for name, (each, weights) in several.items():
        yield f"output_of_{name}", model([each], [IN], [ANY, value("z", T.FLOAT, None)], weights), FEEDS
    quantize = node("QuantizeLinear", ["x", "s", "z"], ["y"])
    weights = [tensor(np.float32(1), "s"), tensor(np.int8(0), "z")]
    yield "output_of_quantize", model([quantize], [IN], [value("y", T.UINT8, [3])], weights), FEEDS
    twice = [*relu, node("Identity", ["x"], ["z"])]
    outs = [OUT, value("x", T.INT8, [3])]
    yield "output_that_is_an_input", model(twice[:1], [IN], outs), FEEDS
    outs = [OUT, value("w", T.INT8, [3])]
    yield "output_that_is_an_initializer", model(relu, [IN], outs, [tensor(X, "w")]), FEEDS


def values() -> Iterator[Case]:
    """A value between two nodes, which is declared as something."""
    chain = [node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["y"])]
    for name, declared in {
        "element": value("a", T.INT8, [3]),
        "rank": value("a", T.FLOAT, [3, 1]),
        "dimension": value("a", T.FLOAT, [4]),
    }.items():
        yield f"value_{name}", model(chain, [IN], [OUT], values=[declared]), FEEDS
    small = [value("a", T.INT8, [3])]
    yield "value_and_output_element", model(chain, [IN], [value("y", T.INT8, [3])], values=small), FEEDS
    for op, inputs in {
        "Expand": ["x", "s"],
        "MatMul": ["x", "x"],
        "Max": ["x", "x"],
        "Transpose": ["x"],
        "Gather": ["x", "i"],
    }.items():
        nodes = [node(op, inputs, ["a"]), node("Cast", ["a"], ["y"], to=T.FLOAT)]
        weights = [tensor([3], "s"), tensor([0, 1, 2], "i")]
        yield f"value_of_{op}", model(nodes, [IN], [ANY], weights, small), FEEDS
    length = [node("SequenceConstruct", ["x"], ["s"]), node("SequenceLength", ["s"], ["y"])]
    for name, declared in {"element": sequence("s", T.INT8), "kind": value("s", T.FLOAT, None)}.items():
        made = model(length, [IN], [value("y", T.INT64, [])], values=[declared])
        yield f"sequence_{name}", made, FEEDS
    insert = [
        node("SequenceEmpty", [], ["s"], dtype=T.INT64),
        node("SequenceInsert", ["s", "x"], ["t"]),
        node("SequenceLength", ["t"], ["y"]),
    ]
    yield "sequence_insert", model(insert, [IN], [value("y", T.INT64, [])]), FEEDS
    constant = [node("Constant", [], ["c"], value=tensor(X, "")), node("Add", ["x", "c"], ["y"])]
    for name, declared in {
        "element": value("c", T.INT8, [3]),
        "dimension": value("c", T.FLOAT, [4]),
        "rank": value("c", T.FLOAT, [1, 3]),
    }.items():
        yield f"constant_{name}", model(constant, [IN], [OUT], values=[declared]), FEEDS
        yield f"constant_output_{name}", model(constant, [IN], [OUT, declared]), FEEDS
    read = [constant[0], node("Relu", ["c"], ["a"]), node("Add", ["x", "a"], ["y"])]
    yield "constant_read_by_its_type", model(read, [IN], [OUT], values=[value("c", T.INT8, [3])]), FEEDS
    for name, other in {"input": "x", "output": "y"}.items():
        again = [value(other, T.INT8, [3])]
        yield f"{name}_declared_again", model([node("Relu", ["x"], ["y"])], [IN], [OUT], values=again), FEEDS


def inputs() -> Iterator[Case]:
    """Inputs of nodes and of the graph."""
    relu, add = [node("Relu", ["x"], ["y"])], node("Add", ["x", "w"], ["y"])
    strings = {"x": np.array(list("abc"), object)}
    made = model(relu, [value("x", T.STRING, [3])], [value("y", T.STRING, [3])])
    yield "input_of_strings", made, strings
    for name, nodes, weight in (
        ("add", [add], X.astype(np.float64)),
        ("max", [node("Max", ["x", "w"], ["y"])], X.astype(np.float64)),
        ("concat", [node("Concat", ["x", "w"], ["y"], axis=0)], X.astype(np.int64)),
        ("reshape", [node("Reshape", ["x", "w"], ["y"])], np.array([3], np.float32)),
        ("gather", [node("Gather", ["x", "w"], ["y"])], np.array([0], np.float32)),
        ("where", [node("Where", ["x", "x", "w"], ["y"])], X),
    ):
        yield f"inputs_of_{name}", model(nodes, [IN], [ANY], [tensor(weight, "w")]), FEEDS
    without_element = untyped("x")
    without_element.type.tensor_type.shape.dim.add().dim_value = 3
    yield "input_untyped", model(relu, [untyped("x")], [OUT]), FEEDS
    yield "input_without_element", model(relu, [without_element], [OUT]), FEEDS
    for version in (3, 8):
        for name, declared in {
            "element": value("w", T.DOUBLE, [3]),
            "smaller": value("w", T.INT8, [3]),
            "dimension": value("w", T.FLOAT, [4]),
            "rank": value("w", T.FLOAT, [1, 3]),
            "sequence": sequence("w", T.FLOAT),
            "untyped": untyped("w"),
            "right": value("w", T.FLOAT, ["n"]),
        }.items():
            made = model([add], [IN, declared], [ANY], [tensor(X, "w")], ir_version=version)
            yield f"initializer_{name}_ir{version}", made, FEEDS


# ---- Bodies


def branches() -> Iterator[Case]:
    """If."""

    def choice(then: onnx.GraphProto, other: onnx.GraphProto, output: onnx.ValueInfoProto) -> onnx.ModelProto:
        made = node("If", ["c"], ["y"], then_branch=then, else_branch=other)
        return model([made], [IN, value("c", T.BOOL, [])], [output])

    def branch(op: str, element: int, name: str, **attributes: Any) -> onnx.GraphProto:
        return body([node(op, ["x"], [name], **attributes)], [], [value(name, element, None)])

    relu, neg = branch("Relu", T.FLOAT, "a"), branch("Neg", T.FLOAT, "b")
    cast = branch("Cast", T.INT64, "b", to=T.INT64)
    shape = [tensor([3, 1], "s")]
    tall = body([node("Reshape", ["x", "s"], ["b"])], [], [value("b", T.FLOAT, [3, 1])], shape)
    yield "if_right", choice(relu, neg, ANY), CHOICE
    yield "if_branches_differ", choice(relu, cast, ANY), CHOICE
    yield "if_branches_differ_untyped", choice(relu, cast, untyped("y")), CHOICE
    yield "if_output", choice(relu, neg, value("y", T.INT8, None)), CHOICE
    yield "if_branch_is_wrong", choice(branch("Relu", T.INT8, "a"), branch("Neg", T.INT8, "b"), ANY), CHOICE
    yield "if_shapes_differ", choice(relu, tall, ANY), CHOICE
    yield "if_shape_of_output", choice(relu, tall, OUT), CHOICE
    captured = [body([node("Neg", ["a"], [name])], [], [value(name, T.INT8, None)]) for name in "pq"]
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("If", ["c"], ["y"], then_branch=captured[0], else_branch=captured[1]),
    ]
    outer = [IN, value("c", T.BOOL, [])]
    declared = [value("a", T.INT8, None)]
    yield "if_captured", model(nodes, outer, [value("y", T.INT8, None)], values=declared), CHOICE


def loops() -> Iterator[Case]:
    """Loop."""
    changed: dict[str, dict[str, Any]] = {
        "right": {},
        "input": {"into": value("a", T.INT8, [3]), "step": ("Cast", {"to": T.FLOAT})},
        "input_rank": {"into": value("a", T.FLOAT, [3, 1])},
        "input_dimension": {"into": value("a", T.FLOAT, [4])},
        "output": {"output": value("y", T.INT8, None)},
        "iteration_float": {"count": value("i", T.FLOAT, [])},
        "iteration_int32": {"count": value("i", T.INT32, [])},
        "iteration_rank": {"count": value("i", T.INT64, [1])},
        "condition": {"go": value("go", T.INT64, []), "on": value("on", T.INT64, [])},
        "condition_out": {"on": value("on", T.INT64, [])},
        "seen": {"seen": value("z", T.FLOAT, None)},
        "trips": {"trips": np.array(2, np.int32)},
    }
    for most in (1, 2):
        for element in (T.FLOAT, T.INT64):
            changed[f"carried_changes_{most}_{element}"] = {
                "step": ("Cast", {"to": T.INT64}),
                "out": value("b", T.INT64, None),
                "output": value("y", element, None),
                "trips": np.array(most),
            }
    for name, what in changed.items():
        op, attributes = what.get("step", ("Relu", {}))
        inner = body(
            [
                node("Identity", ["go"], ["on"]),
                node(op, ["a"], ["b"], **attributes),
                node("Identity", ["i"], ["s"]),
            ],
            [
                what.get("count", value("i", T.INT64, [])),
                what.get("go", value("go", T.BOOL, [])),
                what.get("into", value("a", T.FLOAT, None)),
            ],
            [
                what.get("on", value("on", T.BOOL, [])),
                what.get("out", value("b", T.FLOAT, None)),
                value("s", T.INT64, None) if name == "seen" else untyped("s"),
            ],
        )
        made = model(
            [node("Loop", ["m", "c", "x"], ["y", "z"], body=inner)],
            [IN, value("c", T.BOOL, [])],
            [what.get("output", ANY), what.get("seen", untyped("z"))],
            [tensor(what.get("trips", TWO), "m")],
        )
        yield f"loop_{name}", made, CHOICE


def scans() -> Iterator[Case]:
    """Scan."""
    pair, flat = value("o", T.FLOAT, [2]), value("o", T.FLOAT, None)
    identity = ("Identity", {})
    changed: dict[str, dict[str, Any]] = {
        "right": {},
        "untyped": {
            each: untyped(name) for each, name in {"state": "a", "item": "i", "next": "b", "out": "o"}.items()
        },
        "state": {"state": value("a", T.INT8, [2]), "step": ("Cast", {"to": T.FLOAT})},
        "state_dimension": {"state": value("a", T.FLOAT, [3])},
        "state_changes": {"step": ("Cast", {"to": T.INT64}), "next": value("b", T.INT64, [2])},
        "item": {"item": value("i", T.INT8, [2]), "out": value("o", T.INT8, [2])},
        "item_rank": {"item": value("i", T.FLOAT, [3, 2]), "out": flat},
        "item_dimension": {"item": value("i", T.FLOAT, [3]), "out": flat},
        "output": {"z": value("z", T.INT8, None)},
        "output_of_axis": {"z": value("z", T.INT8, None), "attributes": {"scan_output_axes": [1]}},
        "output_dimension": {"z": value("z", T.FLOAT, [4, 2])},
        "input_axis": {"attributes": {"scan_input_axes": [-2]}},
        "input_axis_wrong": {"attributes": {"scan_input_axes": [1]}},
    }
    for name, what in changed.items():
        op, attributes = what.get("step", identity)
        inner = body(
            [node(op, ["a"], ["b"], **attributes), node("Identity", ["i"], ["o"])],
            [what.get("state", value("a", T.FLOAT, [2])), what.get("item", value("i", T.FLOAT, [2]))],
            [what.get("next", value("b", T.FLOAT, [2])), what.get("out", pair)],
        )
        more = what.get("attributes", {})
        made = model(
            [node("Scan", ["s", "x"], ["y", "z"], body=inner, num_scan_inputs=1, **more)],
            [value("s", T.FLOAT, [2]), value("x", T.FLOAT, [3, 2])],
            [what.get("y", untyped("y")), what.get("z", untyped("z"))],
        )
        yield f"scan_{name}", made, {"s": X[:2], "x": np.arange(6, dtype=np.float32).reshape(3, 2)}


def functions() -> Iterator[Case]:
    """Functions of the model's own."""
    opsets = [helper.make_opsetid("", 17)]
    chain = [node("Relu", ["p"], ["t"]), node("Neg", ["t"], ["q"])]
    one = helper.make_function("own", "F", ["p"], ["q"], chain, opsets)
    two = helper.make_function("own", "F", ["p", "r"], ["q"], [node("Add", ["p", "r"], ["q"])], opsets)
    call = [node("F", ["x"], ["y"], domain="own")]
    yield "function_right", model(call, [IN], [OUT], functions=[one]), FEEDS
    yield "function_output", model(call, [IN], [value("y", T.INT8, [3])], functions=[one]), FEEDS
    both = [node("F", ["x", "w"], ["y"], domain="own")]
    made = model(both, [IN], [OUT], [tensor(X.astype(np.int64), "w")], functions=[two])
    yield "function_inputs", made, FEEDS


def cases() -> list[Case]:
    """All of them: name, model, and what to run it on."""
    parts = (outputs, values, inputs, branches, loops, scans, functions)
    return [case for part in parts for case in part()]
