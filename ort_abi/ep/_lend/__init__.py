"""Memory that is lent: to authors as arrays, to other libraries by DLPack (csrc/bridge: lend.c, dlpack.c)."""
