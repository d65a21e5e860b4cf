"""If, Loop and Scan (csrc/bridge/control_flow.c)."""

from ort_abi.ep._control_flow import callbacks

__all__ = ["callbacks"]
