"""Which nodes can be claimed together."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from ort_abi.graph import Graph, Node, TensorType, ValueInfo

__all__ = ["partition"]


def partition(graph: Graph, supported: Callable[[Node], bool] | Container[Node]) -> list[list[Node]]:
    """Groups the supported nodes of a graph so that each group can be fused into one node.

    No group depends on itself through nodes outside, and none is made of parts without a connection. A value
    that is no tensor (a sequence, say) cannot leave a fused node: its producer and all its consumers are in
    one group, or in none. Nodes in a group, and groups, are in the graph's order. Time grows linearly.
    """
    nodes = graph.nodes
    accept = supported if callable(supported) else supported.__contains__
    return [
        [nodes[i] for i in group] for group in _Partition(nodes, [accept(node) for node in nodes]).groups()
    ]


class _Partition:
    def __init__(self, nodes: tuple[Node, ...], supported: list[bool]) -> None:
        self.count = len(nodes)
        self.supported = supported
        self.parent = list(range(self.count))
        self.edges: list[tuple[int, int]] = []
        producer = {
            value.name: i for i, node in enumerate(nodes) for value in node.outputs if value is not None
        }
        for consumer, node in enumerate(nodes):
            for value in _read(node):
                source = producer.get(value.name)
                if source is not None:
                    self.edges.append((source, consumer))
                if _is_tensor(value):
                    continue
                if source is None:
                    self.supported[consumer] = False  # the value comes from outside
                else:
                    self._unite(source, consumer)
            if any(
                value is not None and not _is_tensor(value) and value.is_graph_output
                for value in node.outputs
            ):
                self.supported[consumer] = False

    def _find(self, i: int) -> int:
        while self.parent[i] != i:
            self.parent[i] = self.parent[self.parent[i]]
            i = self.parent[i]
        return i

    def _unite(self, a: int, b: int) -> None:
        self.parent[self._find(b)] = self._find(a)

    def groups(self) -> list[list[int]]:
        """Units (nodes that must stay together) get a level; connected units of one level are a group."""
        unit = [self._find(i) for i in range(self.count)]
        good = dict.fromkeys(unit, True)
        for i, u in enumerate(unit):
            good[u] &= self.supported[i]
        edges = sorted({(unit[a], unit[b]) for a, b in self.edges if unit[a] != unit[b]})
        order = _topological(good.keys(), edges)
        for u in good.keys() - set(order):
            good[u] = False  # units that depend on each other: staying together is impossible
        levels = _levels(order, edges, good)
        for a, b in edges:
            if good[a] and good[b] and levels[a] == levels[b]:
                self._unite(a, b)
        members: dict[int, list[int]] = {}
        for i in range(self.count):
            if good[unit[i]]:
                members.setdefault(self._find(i), []).append(i)
        return list(members.values())


def _read(node: Node) -> Iterable[ValueInfo]:
    return (value for value in (*node.inputs, *node.implicit_inputs) if value is not None)


def _is_tensor(value: ValueInfo) -> bool:
    return value.type is None or isinstance(value.type, TensorType)


def _neighbours(edges: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for a, b in edges:
        found.setdefault(a, []).append(b)
    return found


def _topological(units: Iterable[int], edges: list[tuple[int, int]]) -> list[int]:
    """Units in an order with producers first; without those on a cycle or behind one."""
    after = _neighbours(edges)
    waiting = dict.fromkeys(units, 0)
    for _, b in edges:
        waiting[b] += 1
    order = [u for u, n in waiting.items() if n == 0]
    for u in order:
        for b in after.get(u, ()):
            waiting[b] -= 1
            if waiting[b] == 0:
                order.append(b)
    return order


def _levels(order: list[int], edges: list[tuple[int, int]], good: dict[int, bool]) -> dict[int, int]:
    """A level for each unit, growing along edges, so that a path from one supported unit over an unsupported
    one to another leads to a higher level: equal levels can be fused. First as low as possible, then each as
    high as its consumers allow, so that constants come to their users."""
    before, after = _neighbours((b, a) for a, b in edges), _neighbours(edges)
    low: dict[int, int] = {}
    for u in order:
        if good[u]:
            low[u] = max((low[p] + (not good[p]) for p in before.get(u, ()) if p in low), default=0)
        else:
            low[u] = max((low[p] for p in before.get(u, ()) if p in low), default=-1)
    high: dict[int, int] = {}
    for u in reversed(order):
        limits = [high[c] - (good[c] and not good[u]) for c in after.get(u, ()) if c in high]
        high[u] = min(limits, default=low[u])
    return high
