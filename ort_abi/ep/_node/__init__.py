"""Kernels and compiled nodes, and their runs (csrc/bridge: node.c, run.c)."""

from ort_abi.ep._node import callbacks

__all__ = ["callbacks"]
