"""What the subcommands share: registering libraries and printing tables."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

import ort_abi
from ort_abi import OrtEpDevice, OrtHardwareDeviceType

__all__ = [
    "CommandError",
    "add_device_option",
    "inject_devices",
    "print_table",
    "register_library",
    "register_python",
]


class CommandError(Exception):
    """A failure that the user is told in one line."""


def add_device_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--device`."""
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="TYPE:VENDOR_ID[:DEVICE_ID]",
        help="act as if the machine had this device too, for example cpu:0x8086 or gpu:0x10de:0x2330",
    )


def inject_devices(texts: Sequence[str]) -> None:
    """Adds the hardware devices that `--device` names. Raises CommandError for a wrong text."""
    for text in texts:
        kind, *numbers = text.split(":")
        try:
            device_type = OrtHardwareDeviceType[kind.upper()]
            vendor_id, device_id = (int(number, 0) for number in (*numbers, "0")[:2])
        except (KeyError, ValueError):
            raise CommandError(f"--device takes cpu, gpu or npu and numbers, not {text!r}") from None
        ort_abi.inject_hardware_device(device_type, vendor_id, device_id, vendor="injected")


def register_library(path: str) -> list[OrtEpDevice]:
    """Registers an EP library under its file's name; returns its devices. Raises CommandError for none."""
    if not Path(path).exists():
        raise CommandError(f"there is no file {path}")
    return _new_devices(path, lambda: ort_abi.register_execution_provider_library(Path(path).name, path))


def register_python(where: str) -> list[OrtEpDevice]:
    """Registers a Python provider, given as FILE:CLASS; returns its devices. Raises CommandError."""
    path, _, name = where.rpartition(":")
    if not path:
        raise CommandError(f"--py-ep takes FILE:CLASS, not {where!r}")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None or not Path(path).exists():
        raise CommandError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CommandError(f"{path} fails when it is imported: {type(error).__name__}: {error}") from error
    provider = getattr(module, name, None)
    if not isinstance(provider, type) or not issubclass(provider, ort_abi.ep.ExecutionProvider):
        raise CommandError(f"{path} has no execution provider class {name!r}")
    return _new_devices(where, lambda: ort_abi.register(provider))


def _new_devices(what: str, register: Callable[[], object]) -> list[OrtEpDevice]:
    before = len(ort_abi.get_ep_devices())
    register()
    devices = ort_abi.get_ep_devices()[before:]
    if not devices:
        raise CommandError(f"{what} supports none of this machine's devices")
    return devices


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "") -> None:
    """Prints columns, as wide as their longest cell."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(indent + line.rstrip())
