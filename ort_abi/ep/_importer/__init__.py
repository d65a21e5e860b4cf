"""Imported memory and semaphores (csrc/bridge/importer.c)."""

from ort_abi.ep._importer import callbacks

__all__ = ["callbacks"]
