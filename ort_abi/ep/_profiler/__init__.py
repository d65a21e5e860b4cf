"""Profiles (csrc/bridge/profiler.c)."""

from ort_abi.ep._profiler import callbacks

__all__ = ["callbacks"]
