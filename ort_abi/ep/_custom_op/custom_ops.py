"""Operators that a provider brings along, and the shapes of what they put out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ort_abi import dtypes, errors
from ort_abi._enums import OrtCustomOpInputOutputCharacteristic
from ort_abi._lib import CData, check, ffi, lib
from ort_abi.graph import OpAttr, TensorType, open_objects, read_shape_info

if TYPE_CHECKING:
    from ort_abi.ep._ep.provider import ExecutionProvider
    from ort_abi.graph import Node

__all__ = ["CustomOp", "Formal", "ShapeInferContext", "add_custom_ops", "infer_shapes"]

_MISSING = object()

_KINDS = {
    "required": OrtCustomOpInputOutputCharacteristic.INPUT_OUTPUT_REQUIRED,
    "optional": OrtCustomOpInputOutputCharacteristic.INPUT_OUTPUT_OPTIONAL,
    "variadic": OrtCustomOpInputOutputCharacteristic.INPUT_OUTPUT_VARIADIC,
}


@dataclass(frozen=True)
class Formal:
    """An input or output of a `CustomOp`. Raises ValueError for an unknown kind, TypeError for a dtype that
    ONNX does not have."""

    dtype: Any = None
    """A dtype as `ort_abi.dtypes` knows them; None: any."""
    kind: str = "required"
    """"required", "optional", or "variadic": any number, which only the last one may be."""
    min_arity: int = 1
    """Of a variadic one: the least number."""
    homogeneous: bool = True
    """Of a variadic one: all have the same type."""
    cpu: bool = False
    """An input that a provider with memory of its own wants in the CPU's."""
    element_type: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"a formal's kind is one of {', '.join(_KINDS)}, not {self.kind!r}")
        if self.dtype is not None:
            object.__setattr__(self, "element_type", dtypes.to_onnx(self.dtype))


@dataclass(frozen=True)
class CustomOp:
    """An operator of a provider's own: what it is called, and what it takes and gives (`OrtCustomOp`, API 1).

    `inputs` and `outputs` have a dtype, None for any type, or a `Formal` each. `since_version` is the first
    version of the domain that has this form, or the first and last one, None for no end. Hosts know one form
    of an operator: several of one name differ in their types only.
    `infer_shapes` gives the shape of each output, None for one that it does not know; dimensions are an int,
    a name or None. It is called when a model is loaded; what it raises costs the shapes, and only our
    host logs it.
    Raises ValueError for what no host takes.
    """

    name: str
    domain: str
    inputs: Iterable[Any]
    outputs: Iterable[Any]
    since_version: int | tuple[int, int | None] = 1
    infer_shapes: Callable[[ShapeInferContext], Iterable[Sequence[int | str | None] | None]] | None = None

    def __post_init__(self) -> None:
        for what in ("inputs", "outputs"):
            given = getattr(self, what)
            formals = tuple(item if isinstance(item, Formal) else Formal(item) for item in given)
            if any(item.kind == "variadic" for item in formals[:-1]):
                raise ValueError(f"{self}: only the last one of the {what} may be variadic")
            object.__setattr__(self, what, formals)
        first, last = self.versions
        if not self.name or not self.domain or not self.outputs:
            raise ValueError(f"{self}: a custom operator has a name, a domain and an output")
        if first < 1 or (last is not None and last < first):
            raise ValueError(f"{self}: since_version {self.since_version} is no range of versions")

    def __str__(self) -> str:
        return f"{self.domain}::{self.name}"

    @property
    def versions(self) -> tuple[int, int | None]:
        """The first and the last version of the domain; None: no end."""
        version = self.since_version
        return version if isinstance(version, tuple) else (version, None)

    def is_for(self, node: Node) -> bool:
        """True if the node is of this operator, in this form."""
        first, last = self.versions
        is_version = first <= node.since_version and (last is None or node.since_version <= last)
        return is_version and (node.domain, node.op_type) == (self.domain, self.name)


def add_custom_ops(call: CData, info: CData, cls: type[ExecutionProvider]) -> None:
    """Tells C of the operators of a class."""
    operators = tuple(cls.custom_ops)
    if len(operators) > lib.BRIDGE_MAX_CUSTOM_OPS:
        raise ValueError(
            f"{cls.__qualname__}.custom_ops has {len(operators)} operators; "
            f"{lib.BRIDGE_MAX_CUSTOM_OPS} are possible"
        )
    forms: dict[str, tuple[int, int | None]] = {}
    for op in operators:
        if not isinstance(op, CustomOp):
            raise TypeError(f"{cls.__qualname__}.custom_ops must have CustomOp objects, not {op!r}")
        if forms.setdefault(str(op), op.versions) != op.versions:
            raise ValueError(f"{cls.__qualname__}.custom_ops has {op} in two versions: hosts take the first")
        first, last = op.versions
        inputs, outputs = tuple(op.inputs), tuple(op.outputs)
        formals = ffi.new("BridgeFormal[]", [_formal(item) for item in (*inputs, *outputs)])
        names = op.domain.encode(), op.name.encode()
        if not lib.bridge_add_custom_op(
            call,
            info,
            *names,
            first,
            last or 0,
            formals,
            len(inputs),
            len(outputs),
            op.infer_shapes is not None,
        ):
            raise MemoryError("no memory for the custom operators")


def _formal(item: Formal) -> tuple[int, int, int, int, int]:
    return item.element_type, int(_KINDS[item.kind]), item.min_arity, item.homogeneous, item.cpu


# ---- shapes ----


class ShapeInferContext:
    """What `CustomOp.infer_shapes` knows of a node; valid during the call (`ShapeInferContext_*`, API 17)."""

    inputs: tuple[TensorType, ...]
    """The type of each input; its shape is None if even the rank is unknown."""

    def __init__(self, api: CData, pointer: CData) -> None:
        self._api = api
        self._pointer: CData | None = pointer
        count, info = ffi.new("size_t*"), ffi.new("OrtTensorTypeAndShapeInfo**")
        check(api.ShapeInferContext_GetInputCount(pointer, count), api)
        found = []
        for index in range(count[0]):
            check(api.ShapeInferContext_GetInputTypeShape(pointer, index, info), api)
            found.append(read_shape_info(api, info[0]))
        self.inputs = tuple(found)

    def _close(self) -> None:
        self._pointer = None

    def attribute(self, name: str, default: Any = _MISSING) -> Any:
        """The value of an attribute, as `Node.attributes` has it; without it `default`, or a KeyError."""
        if self._pointer is None:
            raise RuntimeError("a ShapeInferContext is valid only during infer_shapes")
        out = ffi.new("const OrtOpAttr**")
        try:
            check(self._api.ShapeInferContext_GetAttribute(self._pointer, name.encode(), out), self._api)
        except errors.OrtError:
            if default is _MISSING:
                raise KeyError(name) from None
            return default
        with open_objects(self._api, OpAttr, out[0]) as (attribute,):
            return attribute.value


def infer_shapes(api: CData, pointer: CData, op: CustomOp) -> None:
    """Asks the operator, and tells the host."""
    assert op.infer_shapes is not None
    context = ShapeInferContext(api, pointer)
    try:
        shapes = list(op.infer_shapes(context))
    finally:
        context._close()
    formals = tuple(op.outputs)
    for index, shape in enumerate(shapes):
        if shape is None:
            continue
        formal = formals[min(index, len(formals) - 1)]
        element_type = formal.element_type or (context.inputs[0].element_type if context.inputs else 0)
        _set_output(api, pointer, index, element_type, tuple(shape))


def _set_output(
    api: CData, pointer: CData, index: int, element_type: int, shape: Sequence[int | str | None]
) -> None:
    names = [ffi.new("char[]", size.encode() if isinstance(size, str) else b"") for size in shape]
    sizes = [-1 if size is None or isinstance(size, str) else operator.index(size) for size in shape]
    info = ffi.new("OrtTensorTypeAndShapeInfo**")
    check(api.CreateTensorTypeAndShapeInfo(info), api)
    try:
        check(api.SetTensorElementType(info[0], element_type), api)
        check(api.SetDimensions(info[0], ffi.new("int64_t[]", sizes), len(sizes)), api)
        check(api.SetSymbolicDimensions(info[0], ffi.new("const char*[]", names), len(names)), api)
        check(api.ShapeInferContext_SetOutputTypeShape(pointer, index, info[0]), api)
    finally:
        api.ReleaseTensorTypeAndShapeInfo(info[0])
