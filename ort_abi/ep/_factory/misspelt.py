"""Names that an author most likely did not mean: said when a provider is registered."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator

from ort_abi import schemas
from ort_abi.ep._custom_op.custom_ops import CustomOp
from ort_abi.ep._ep.provider import ExecutionProvider
from ort_abi.ep._node.kernel import Kernel, KernelSpec

__all__ = ["warn_of_misspelt_names"]

_CLOSE = 0.8
"""Of `difflib`: "get_capabilty" and "get_capability" have 0.96, "compile_node" and "compile" 0.74."""

_COPIES = ("MemcpyFromHost", "MemcpyToHost")
"""Stock hosts put these into graphs; they have no schema here."""


def warn_of_misspelt_names(cls: type[ExecutionProvider]) -> None:
    """Warns (`UserWarning`) of kernels for operators that do not exist, and of members that are spelt almost
    as one that hosts ask for."""
    kernels = dict.fromkeys(spec.make for spec in cls.kernels)
    custom = {(op.domain, op.name) for op in cls.custom_ops if isinstance(op, CustomOp)}
    for text in (
        *(_operator(spec) for spec in cls.kernels if (spec.domain, spec.op_type) not in custom),
        *_members(cls, ExecutionProvider),
        *(
            text
            for make in kernels
            if isinstance(make, type) and issubclass(make, Kernel)
            for text in _members(make, Kernel)
        ),
    ):
        if text:
            warnings.warn(f"{cls.__qualname__}: {text}", UserWarning, stacklevel=4)


def _closest(name: str, known: Iterable[str]) -> str:
    """Empty if there is none."""
    found = difflib.get_close_matches(name, sorted(known), 1, _CLOSE)
    return found[0] if found else ""


def _operator(spec: KernelSpec) -> str:
    """Where no domain of that name has schemas, an operator can have any name."""
    domain = "" if spec.domain == "ai.onnx" else spec.domain
    known = schemas.operators().get(domain, frozenset())
    if domain == "com.ms.internal.nhwc":
        known |= schemas.operators()[""] | schemas.operators()["com.microsoft"]
    if not known or spec.op_type in known or spec.op_type in _COPIES:
        return ""
    meant = _closest(spec.op_type, known)
    hint = f": did you mean {meant!r}?" if meant else ""
    return f"@kernel({spec.op_type!r}): there is no such operator in the domain {domain or 'ai.onnx'!r}{hint}"


def _members(cls: type, base: type) -> Iterator[str]:
    """A member that the class spells right as well is no mistake, and "closed" is a word beside "close"."""
    known = {name for name in (*dir(base), *_annotations(base)) if not name.startswith("_")}
    for owner in cls.__mro__[: cls.__mro__.index(base)]:
        for name, item in vars(owner).items():
            if name.startswith("_") or name in known or hasattr(item, "_ort_abi_kernels"):
                continue
            meant = _closest(name, known - {each for each in known if _defines(cls, base, each)})
            if meant and not name.startswith(meant):
                yield f"nobody asks for {owner.__qualname__}.{name}: did you mean {meant!r}?"


def _annotations(base: type) -> Iterator[str]:
    for owner in base.__mro__:
        yield from vars(owner).get("__annotations__", {})


def _defines(cls: type, base: type, name: str) -> bool:
    return any(name in vars(owner) for owner in cls.__mro__[: cls.__mro__.index(base)])
