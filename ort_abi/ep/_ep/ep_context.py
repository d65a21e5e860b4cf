"""Compiled models: what a provider puts into them, as EPContext nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ort_abi._enums import OrtOpAttrType
from ort_abi._lib import CData, check, ffi

if TYPE_CHECKING:
    from ort_abi.ep._node.kernel import Kernel
    from ort_abi.graph import Node

__all__ = ["Compiled", "EpContext", "create_context_node"]


@dataclass(frozen=True)
class EpContext:
    """What a compiled model keeps of a fused graph, for a later session to get it back from.

    It becomes a node "EPContext" of the domain "com.microsoft", in place of the nodes that were compiled. The
    session that loads it shows the node to `get_capability`; claim it, and read the attributes in `compile`.
    """

    data: bytes | str = b""
    """The attribute "ep_cache_context"."""
    attributes: Mapping[str, int | float | str | bytes] = field(default_factory=dict)
    """Others, such as "partition_name". Without them "main_context" is 1, "embed_mode" 1 and "source" the
    provider's name."""


@dataclass(frozen=True)
class Compiled:
    """What `ExecutionProvider.compile` may return to have its work kept in compiled models, which a host
    writes when the session config entry "ep.context_enable" is "1" (`self.config`)."""

    code: Callable[..., Any] | Kernel
    context: EpContext


def create_context_node(host: CData, ep_name: str, fused: Node, context: Any) -> CData:
    """*gives* the EPContext node for a fused one (caller releases with `ReleaseNode`)."""
    if not isinstance(context, EpContext):
        raise TypeError(f"Compiled.context must be an ort_abi.ep.EpContext, not {context!r}")
    attributes: dict[str, Any] = {"main_context": 1, "embed_mode": 1, "source": ep_name}
    attributes |= {"ep_cache_context": context.data, **context.attributes}
    inputs = _names([value.name if value is not None else "" for value in fused.inputs])
    outputs = _names([value.name if value is not None else "" for value in fused.outputs])
    node = ffi.new("OrtNode**")
    made = ffi.new("OrtOpAttr*[]", len(attributes))
    try:
        for index, (name, value) in enumerate(attributes.items()):
            kind, data, size = _encoded(name, value)
            check(host.api.CreateOpAttr(name.encode(), data, size, kind, made + index), host.api)
        status = host.api.GetModelEditorApi().CreateNode(
            b"EPContext",
            b"com.microsoft",
            fused.name.encode(),
            ffi.new("const char*[]", inputs),
            len(inputs),
            ffi.new("const char*[]", outputs),
            len(outputs),
            made,
            len(made),
            node,
        )
        check(status, host.api)
    finally:
        for index in range(len(made)):
            if made[index] != ffi.NULL:  # the host takes them, and leaves NULL
                host.api.ReleaseOpAttr(made[index])
    return node[0]


def _names(names: Sequence[str]) -> list[CData]:
    return [ffi.new("char[]", name.encode()) for name in names]


def _encoded(name: str, value: Any) -> tuple[int, CData, int]:
    if isinstance(value, (str, bytes)):
        data = value.encode() if isinstance(value, str) else value
        return OrtOpAttrType.ORT_OP_ATTR_STRING, ffi.from_buffer(data), len(data)
    if isinstance(value, int):
        return OrtOpAttrType.ORT_OP_ATTR_INT, ffi.new("int64_t*", value), 1
    if isinstance(value, float):
        return OrtOpAttrType.ORT_OP_ATTR_FLOAT, ffi.new("float*", value), 1
    raise TypeError(f"EpContext attribute {name!r} must be an int, float, str or bytes, not {value!r}")
