"""Provider classes in a host: registering, the library of each, the factory (csrc/bridge: factory.c,
factory_slots.c)."""

from ort_abi.ep._factory import callbacks

__all__ = ["callbacks"]
