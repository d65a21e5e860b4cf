"""Custom operators (csrc/bridge/custom_op.c)."""

from ort_abi.ep._custom_op import callbacks

__all__ = ["callbacks"]
