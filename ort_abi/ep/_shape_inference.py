"""Shapes of what custom operators put out."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ort_abi import errors
from ort_abi._lib import CData, check, ffi
from ort_abi.graph import OpAttr, TensorType, open_objects, read_shape_info

if TYPE_CHECKING:
    from ort_abi.ep._custom_ops import CustomOp

__all__ = ["ShapeInferContext", "infer_shapes"]

_MISSING = object()


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
