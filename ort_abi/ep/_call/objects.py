"""The table of Python objects behind the ids that a host's structs carry."""

from __future__ import annotations

import itertools
from typing import Any, TypeVar

__all__ = ["add", "get", "live_objects", "of_type", "remove"]

_T = TypeVar("_T")

_ids = itertools.count(1)
_objects: dict[int, Any] = {}


def add(item: Any) -> int:
    """A new id for `item`, never used before. *keeps alive* until `remove`."""
    number = next(_ids)
    _objects[number] = item
    return number


def get(number: int, kind: str) -> Any:
    """The object of an id. Raises LookupError for a stale or foreign id."""
    try:
        return _objects[number]
    except KeyError:
        raise LookupError(f"there is no {kind} with id {number} (released, or never made)") from None


def of_type(kind: type[_T]) -> list[_T]:
    """All objects of a type."""
    return [item for item in _objects.copy().values() if isinstance(item, kind)]


def remove(number: int) -> Any:
    """Forgets an id and gives back its object. Raises LookupError for a stale or foreign id."""
    item = get(number, "object")
    del _objects[number]
    return item


def live_objects() -> int:
    """How many Python objects hosts have not released yet: factories, providers, kernels and their
    definitions, compiled graphs, allocators, streams and so on, and what DLPack consumers keep alive."""
    return len(_objects)
