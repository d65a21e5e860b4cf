"""Reads csrc/include/ort_abi.h and writes what is derived from it, always into a build folder."""
