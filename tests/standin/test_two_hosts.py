"""Stand-in, Python package and stock in one process: each refers to its own functions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ort_abi
from abigen import native_build

from .conftest import call, compile_with, python_with

ROOT = Path(__file__).resolve().parents[2]
BASE = """
import ctypes, sys
import ort_abi
from ort_abi._lib import base, ffi
function = ctypes.CDLL(sys.argv[1]).OrtGetApiBase
function.restype = ctypes.c_void_p
print(function() == int(ffi.cast("uintptr_t", base)))
"""
PLUGIN = """
import sys
import numpy as np
import ort_abi
ort_abi.register_execution_provider_library("mine", sys.argv[1])
devices = [d for d in ort_abi.get_ep_devices() if d.ep_name == "SampleCKernelsExecutionProvider"
           or d.ep_name == "SampleCExecutionProvider"]
options = ort_abi.SessionOptions()
options.add_provider_for_devices(devices, {})
session = ort_abi.InferenceSession(sys.argv[2], options)
print(ort_abi.get_version_string(), session.run(None, {"x": np.ones((2, 3), np.float32)})[0].sum())
"""


def test_the_python_package_and_the_stand_in_are_one_host(standin: Path) -> None:
    """What a program made through the one can be used through the other."""
    assert python_with({}, BASE, standin / "lib" / "libonnxruntime.so.1") == "True\n"


def test_the_python_package_stays_itself_beside_stock(stock: Path, model: Path, tmp_path: Path) -> None:
    """Stock's library comes first in the process, so that its names hide ours."""
    source = ROOT / "samples" / "c_plugin" / "c_plugin.c"
    plugin = compile_with(tmp_path / "libplugin.so", source, f"-I{native_build.CSRC / 'include'}")
    printed = python_with({"LD_PRELOAD": stock / "libonnxruntime.so.1"}, PLUGIN, plugin, model)
    assert printed == f"{ort_abi.get_version_string()} -6.0\n"


def test_the_library_s_own_references_are_bound(libort_abi: Path) -> None:
    """No relocation of ours names a function that we export: nobody can come in between."""
    relocations = call("readelf", "-r", "-W", libort_abi).stdout
    assert "GLOB_DAT" in relocations
    assert re.findall(r"\b(?:Ort[A-Z]\w+|ortabi_\w+)", relocations) == []


@pytest.mark.parametrize("name", ["libonnxruntime.so", "libonnxruntime.so.1"])
def test_dlsym_finds_the_functions(standin: Path, name: str) -> None:
    code = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.OrtSessionOptionsAppendExecutionProvider_CPU
library.OrtGetApiBase.restype = ctypes.POINTER(ctypes.c_void_p)
version = ctypes.CFUNCTYPE(ctypes.c_char_p)(library.OrtGetApiBase()[1])
print(version().decode())
"""
    assert python_with({}, code, standin / "lib" / name) == f"{ort_abi.get_version_string()}\n"
