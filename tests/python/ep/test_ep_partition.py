"""`ep.partition`: groups that can be fused, on graphs made for the purpose and on random ones."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from ort_abi import ep
from ort_abi.graph import SequenceType, TensorType

TENSOR, SEQUENCE = TensorType(1, None), SequenceType(None)


@dataclass(eq=False)
class Value:
    name: str
    type: Any = TENSOR
    is_graph_output: bool = False


@dataclass(eq=False)
class Node:
    name: str
    inputs: list[Value | None]
    outputs: list[Value]
    implicit_inputs: list[Value] = field(default_factory=list)


@dataclass
class Graph:
    nodes: tuple[Node, ...]


def graph(*lines: str, sequences: str = "", outputs: str = "") -> Graph:
    """Lines such as "c: a b" say that node c reads the outputs of a and b, which have the same names."""
    values: dict[str, Value] = {}

    def value(name: str) -> Value:
        kind = SEQUENCE if name in sequences.split() else TENSOR
        return values.setdefault(name, Value(name, kind, name in outputs.split()))

    nodes = []
    for line in lines:
        name, _, read = line.partition(":")
        nodes.append(Node(name, [value(item) for item in read.split()], [value(name)]))
    return Graph(tuple(nodes))


def groups(made: Graph, unsupported: str = "") -> list[str]:
    found = ep.partition(made, lambda node: node.name not in unsupported.split())  # type: ignore[arg-type]
    return sorted(" ".join(node.name for node in group) for group in found)


def test_a_chain_is_one_group() -> None:
    assert groups(graph("a: x", "b: a", "c: b")) == ["a b c"]


def test_an_unsupported_node_cuts() -> None:
    assert groups(graph("a: x", "b: a", "c: b"), unsupported="b") == ["a", "c"]


def test_a_way_around_an_unsupported_node_is_no_group() -> None:
    assert groups(graph("a: x", "b: a", "c: a b"), unsupported="b") == ["a", "c"]


def test_parts_without_a_connection_are_separate() -> None:
    assert groups(graph("a: x", "b: x", "c: a")) == ["a c", "b"]


def test_a_constant_joins_its_user_behind_the_cut() -> None:
    assert groups(graph("a: x", "k:", "b: a", "c: b k"), unsupported="b") == ["a", "k c"]


def test_implicit_inputs_are_dependencies() -> None:
    made = graph("a: x", "b: a", "c: a")
    made.nodes[2].implicit_inputs.append(made.nodes[1].outputs[0])
    assert groups(made, unsupported="b") == ["a", "c"]


def test_missing_inputs_are_skipped() -> None:
    made = graph("a: x", "b: a")
    made.nodes[1].inputs.append(None)
    assert groups(made) == ["a b"]


def test_a_container_says_what_is_supported() -> None:
    made = graph("a: x", "b: a")
    assert ep.partition(made, {made.nodes[0]}) == [[made.nodes[0]]]  # type: ignore[arg-type]


def test_sequence_stays_with_its_consumers() -> None:
    made = graph("a: x", "s: a", "u: a", "c: s u", sequences="s")
    assert groups(made, unsupported="u") == ["a", "s c"]


def test_sequence_to_an_unsupported_node_is_not_claimed() -> None:
    assert groups(graph("a: x", "s: a", "c: s", sequences="s"), unsupported="c") == ["a"]


def test_sequence_from_outside_is_not_claimed() -> None:
    assert groups(graph("a: s", "b: a", sequences="s")) == ["b"]


def test_sequence_that_is_an_output_is_not_claimed() -> None:
    assert groups(graph("a: x", "s: a", sequences="s", outputs="s")) == ["a"]


def test_sequence_around_an_unsupported_node_is_not_claimed() -> None:
    """s must be with c, but c also needs u, which needs s's group: no group can have both."""
    made = graph("s: x", "t: s", "u: t", "c: s u", sequences="s")
    assert groups(made, unsupported="u") == []


def order_of(made: Graph, found: list[list[Any]]) -> bool:
    """True if the graph with each group as one node has an order."""
    unit = {id(node): number for number, group in enumerate(found) for node in group}
    number_of = {id(node): unit.get(id(node), f"n{i}") for i, node in enumerate(made.nodes)}
    producer = {node.outputs[0].name: number_of[id(node)] for node in made.nodes}
    before: dict[Any, set[Any]] = {number: set() for number in number_of.values()}
    for node in made.nodes:
        for value in node.inputs:
            source = producer.get(value.name) if value else None
            if source is not None and source != number_of[id(node)]:
                before[number_of[id(node)]].add(source)
    while before:
        ready = [number for number, wanted in before.items() if not wanted & before.keys()]
        if not ready:
            return False
        for number in ready:
            del before[number]
    return True


@pytest.mark.parametrize("seed", range(200))
def test_random_graphs(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randrange(1, 40)
    lines = [
        f"n{i}: " + " ".join(f"n{chance.randrange(i)}" for _ in range(chance.randrange(3)) if i)
        for i in range(count)
    ]
    sequences = " ".join(f"n{i}" for i in range(count) if chance.random() < 0.1)
    made = graph(*lines, sequences=sequences)
    supported = {f"n{i}" for i in range(count) if chance.random() < 0.7}
    found = ep.partition(made, lambda node: node.name in supported)  # type: ignore[arg-type]
    members = [node.name for group in found for node in group]
    assert len(members) == len(set(members)) and set(members) <= supported
    assert order_of(made, found)
    where = {node.name: i for i, group in enumerate(found) for node in group}
    for node in made.nodes:
        for value in node.inputs:
            if value is not None and value.type is SEQUENCE:
                assert where.get(node.name) == where.get(value.name)
    if not sequences:
        assert set(members) == supported


def test_large_graph_is_linear() -> None:
    """100,000 nodes in one chain with every third unsupported: done without deep recursion."""
    count = 100_000
    made = graph("n0: x", *(f"n{i}: n{i - 1}" for i in range(1, count)))
    found = ep.partition(made, lambda node: int(node.name[1:]) % 3 != 0)  # type: ignore[arg-type]
    assert len(found) == count // 3 and all(len(group) == 2 for group in found[:-1])
