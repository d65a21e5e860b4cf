"""samples/c_plugin_device for Python tests: built once, its counters read through its control struct."""

from __future__ import annotations

import ctypes
import functools
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

from ..conftest import CC, ROOT

SAMPLE = ROOT / "samples" / "c_plugin_device"
EP_NAME = "VirtualDeviceExecutionProvider"
VENDOR_ID = 0xBE57


_C_TYPES = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64}


def _fields() -> list[tuple[str, Any]]:
    """The members of `VirtualDeviceControl`, read from control.h."""
    text = re.sub(r"/\*.*?\*/", "", (SAMPLE / "control.h").read_text(), flags=re.DOTALL)
    body = re.search(r"struct VirtualDeviceControl \{(.*?)\}", text, re.DOTALL)
    assert body is not None
    fields: list[tuple[str, Any]] = []
    for kind, names in re.findall(r"(?:_Atomic\s+)?(\w+)\s+([^;]+);", body[1]):
        for name in names.split(","):
            array = re.fullmatch(r"(\w+)\[(\d+)\]", name.strip())
            fields.append(
                (array[1], ctypes.c_char * int(array[2])) if array else (name.strip(), _C_TYPES[kind])
            )
    return fields


class Control(ctypes.Structure):
    """`VirtualDeviceControl` of control.h: its members can be read and set."""

    _fields_ = _fields()


@functools.cache
def build(folder: Path) -> Path:
    """The sample as a library in `folder`."""
    library = folder / "libvirtual_device.so"
    command = [*shlex.split(CC), "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Werror"]
    command += [f"-I{ROOT / 'csrc' / 'include'}", *map(str, sorted(SAMPLE.glob("*.c")))]
    command += ["-o", str(library), "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
    return library


class Counters:
    """How often the device did something since this object was made: `Counters(control).launches`."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._before = {name: getattr(control, name) for name, _ in Control._fields_}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._control, name) - self._before[name]


def control_of(library: Path) -> Control:
    """The control struct of the loaded library. Valid while it is registered."""
    get = ctypes.CDLL(str(library)).virtual_device_control
    get.restype = ctypes.POINTER(Control)
    control: Control = get().contents
    return control
