"""What every call from C needs: the rules, ids of Python objects, how failures are told (csrc/bridge: call.c,
gate.c)."""
