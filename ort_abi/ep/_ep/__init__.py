"""The provider of a session: claims, compiling, its optional slots (csrc/bridge: ep.c, ep_slots.c)."""

from ort_abi.ep._ep import callbacks

__all__ = ["callbacks"]
