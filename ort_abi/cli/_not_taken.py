"""What `ort-abi run` says of nodes that a provider was to run and did not take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import ort_abi
from ort_abi import NotTaken
from ort_abi.cli._common import print_paragraph

__all__ = ["RECORD", "print_not_taken"]

RECORD = ("session.ort_abi_record_not_taken", "1")
"""The config entry that a session needs."""

_SHOWN = 3


def print_not_taken(session: ort_abi.InferenceSession, asked: Iterable[str]) -> None:
    """Prints why the providers of these names left nodes to others: one line for all nodes of one reason."""
    groups: dict[tuple[str, str, str], list[NotTaken]] = {}
    names = {*asked}
    for node in session.get_not_taken():
        if node.ep_name in names:
            groups.setdefault((node.ep_name, node.op_type, node.reason), []).append(node)
    for ep_name in dict.fromkeys(name for name, _, _ in groups):
        mine = [(op, reason, nodes) for (name, op, reason), nodes in groups.items() if name == ep_name]
        print(f"\n{ep_name} did not take {sum(len(nodes) for *_, nodes in mine)} node(s):")
        for op_type, reason, nodes in mine:
            count = f"{len(nodes)}x " if len(nodes) > 1 else ""
            line = f"{count}{op_type} ({_names(nodes)}): it {reason}"
            print_paragraph(line, indent="  ")


def _names(nodes: Sequence[NotTaken]) -> str:
    """Of the first ones, with the place of those in subgraphs."""
    shown = [
        f"{node.node_name or f'that makes {node.output_name}'} {node.place}".strip()
        for node in nodes[:_SHOWN]
    ]
    more = len(nodes) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
