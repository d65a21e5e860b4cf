"""Which execution provider got which nodes of a session."""

from __future__ import annotations

from typing import Any, NamedTuple

from ort_abi._lib import CData, api, check, ffi, lib, text

__all__ = [
    "NotTaken",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "PlanStep",
    "read_assigned_subgraphs",
    "read_not_taken",
    "read_plan",
]


class PlanStep(NamedTuple):
    """One node as it runs.

    `op_type` of a fused node is its subgraph's name, its `domain` the provider's; it runs `original_nodes`
    of the model. `runs` and `nanoseconds` count while `set_timing` is on.
    """

    ep_name: str
    node_name: str
    op_type: str
    domain: str
    original_nodes: int
    runs: int
    nanoseconds: int


class NotTaken(NamedTuple):
    """A node that a provider was asked about and left to one behind it."""

    ep_name: str
    node_name: str
    output_name: str
    """Of its first output: nodes need no names."""
    op_type: str
    domain: str
    since_version: int
    place: str
    """Empty or, of a node in a subgraph, such as "in then_branch of If 'cond'"."""
    reason: str
    """What the provider has instead: "has kernels for Mul of versions 7 to 12, the model has 14"."""


class OrtEpAssignedNode(NamedTuple):
    """A node of the model."""

    name: str
    domain: str
    op_type: str


class OrtEpAssignedSubgraph(NamedTuple):
    """Nodes of the model that a provider took together."""

    ep_name: str
    nodes: tuple[OrtEpAssignedNode, ...]

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """The nodes, in the model's order."""
        return list(self.nodes)


def read_plan(session: CData) -> list[PlanStep]:
    """The plan of an `OrtSession*` (`ortabi_session_step`, ours). copies."""
    step = ffi.new("OrtAbiPlanStep*")
    steps = []
    for index in range(lib.ortabi_session_step_count(session)):
        check(lib.ortabi_session_step(session, index, step))
        names = (text(step.ep_name), text(step.node_name), text(step.op_type), text(step.domain))
        steps.append(PlanStep(*names, step.original_nodes, step.runs, step.nanoseconds))
    return steps


def read_not_taken(session: CData) -> list[NotTaken]:
    """What an `OrtSession*` recorded (`ortabi_session_not_taken`, ours). copies."""
    node = ffi.new("OrtAbiNotTaken*")
    found = []
    for index in range(lib.ortabi_session_not_taken_count(session)):
        check(lib.ortabi_session_not_taken(session, index, node))
        names = (text(node.ep_name), text(node.node_name), text(node.output_name))
        operator = (text(node.op_type), text(node.domain))
        found.append(NotTaken(*names, *operator, node.since_version, text(node.place), text(node.reason)))
    return found


def read_assigned_subgraphs(session: CData) -> list[OrtEpAssignedSubgraph]:
    """What an `OrtSession*` recorded (`Session_GetEpGraphAssignmentInfo`, API 24). copies."""
    graphs = _list(api.Session_GetEpGraphAssignmentInfo, session, "OrtEpAssignedSubgraph")
    return [
        OrtEpAssignedSubgraph(
            _text(api.EpAssignedSubgraph_GetEpName, graph),
            tuple(
                OrtEpAssignedNode(
                    _text(api.EpAssignedNode_GetName, node),
                    _text(api.EpAssignedNode_GetDomain, node),
                    _text(api.EpAssignedNode_GetOperatorType, node),
                )
                for node in _list(api.EpAssignedSubgraph_GetNodes, graph, "OrtEpAssignedNode")
            ),
        )
        for graph in graphs
    ]


def _list(slot: CData, owner: CData, c_type: str) -> list[Any]:
    items, count = ffi.new(f"const {c_type}* const**"), ffi.new("size_t*")
    check(slot(owner, items, count))
    return [items[0][i] for i in range(count[0])]


def _text(slot: CData, owner: CData) -> str:
    out = ffi.new("const char**")
    check(slot(owner, out))
    return text(out[0])
