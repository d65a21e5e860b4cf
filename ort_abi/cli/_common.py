"""What the subcommands share: the parser, registering libraries, printing tables."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import ort_abi
from ort_abi import OrtEpDevice, OrtHardwareDeviceType

__all__ = [
    "CommandError",
    "Parser",
    "add_shared_options",
    "inject_devices",
    "print_paragraph",
    "print_table",
    "register_libraries",
    "register_python",
    "set_width",
]

_WIDTH = 100  # of tables that go to no terminal
_NARROWEST = 8  # a column
_LAST = 20  # the last one, which is text, before others are wrapped
_MOST_ID = 2**32 - 1

_width = _WIDTH


class CommandError(Exception):
    """A failure that the user is told in one line; `hint`, if any, is a second one: what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where to read on in a second."""

    def error(self, message: str) -> NoReturn:
        """Exits with 2."""
        self.exit(2, f"{self.prog}: {message}\nusage: {self.prog} --help says what it takes\n")


class Device(NamedTuple):
    """What `--device` names."""

    type: OrtHardwareDeviceType
    vendor_id: int
    device_id: int


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Adds `--ep`, `--device`, `--wide` and `--json`."""
    parser.add_argument(
        "--ep", action="append", default=[], type=_library, metavar="LIB", help="an EP library to load"
    )
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        type=_device,
        metavar="TYPE:VENDOR_ID[:DEVICE_ID]",
        help="act as if the machine had this device too, for example cpu:0x8086 or gpu:0x10de:0x2330",
    )
    parser.add_argument("--wide", action="store_true", help="print each line of a table on one line")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _library(path: str) -> str:
    if not path:
        raise argparse.ArgumentTypeError("it takes the path of an EP library")
    return path


def _device(text: str) -> Device:
    kind, *numbers = text.split(":")
    try:
        device_type, ids = OrtHardwareDeviceType[kind.upper()], [int(number, 0) for number in numbers]
    except (KeyError, ValueError):
        ids = []
    if not 1 <= len(ids) <= 2 or not all(0 <= number <= _MOST_ID for number in ids):
        raise argparse.ArgumentTypeError(
            f"it takes cpu, gpu or npu and one or two numbers from 0 to {_MOST_ID:#x}, not {text!r}"
        )
    return Device(device_type, ids[0], ids[1] if len(ids) > 1 else 0)


def inject_devices(devices: Sequence[Device]) -> None:
    """Adds the hardware devices that `--device` names."""
    for device in devices:
        ort_abi.inject_hardware_device(*device, vendor="injected")


def register_libraries(paths: Sequence[str]) -> list[list[OrtEpDevice]]:
    """Registers EP libraries, each once; the devices of each. Raises CommandError for none."""
    names = [Path(path).name for path in dict.fromkeys(paths)]
    return [
        _register_library(path, name if names.count(name) == 1 else path)
        for path, name in zip(dict.fromkeys(paths), names, strict=True)
    ]


def _register_library(path: str, name: str) -> list[OrtEpDevice]:
    if Path(path).is_dir():
        raise CommandError(f"--ep {path}: a folder, not an EP library")
    if not Path(path).exists():
        raise CommandError(f"--ep {path}: there is no file {path}")
    return _new_devices(f"--ep {path}", lambda: ort_abi.register_execution_provider_library(name, path))


def register_python(where: str) -> list[OrtEpDevice]:
    """Registers a Python provider, given as FILE:CLASS; returns its devices. Raises CommandError."""
    path, _, name = where.rpartition(":")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise CommandError(f"--py-ep {where}: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CommandError(f"{path} fails when it is imported: {type(error).__name__}: {error}") from error
    provider = getattr(module, name, None)
    if not isinstance(provider, type) or not issubclass(provider, ort_abi.ep.ExecutionProvider):
        found = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, ort_abi.ep.ExecutionProvider)
        ]
        hint = f"it has {', '.join(found)}" if found else ""
        raise CommandError(f"{path} has no execution provider class {name!r}", hint)
    return _new_devices(f"--py-ep {where}", lambda: ort_abi.register(provider))


def _new_devices(what: str, register: Callable[[], object]) -> list[OrtEpDevice]:
    before = len(ort_abi.get_ep_devices())
    register()
    devices = ort_abi.get_ep_devices()[before:]
    if not devices:
        hint = "--device makes one up, for example gpu:0x10de"
        raise CommandError(f"{what} supports none of this machine's devices", hint)
    return devices


def set_width(wide: bool) -> None:
    """How wide tables may be: as the terminal is, 100 columns where there is none, or as they like."""
    global _width
    terminal = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
    _width = sys.maxsize if wide else max(40, terminal)


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "") -> None:
    """Prints columns, as wide as their longest cell.

    Where that is too wide the last ones are wrapped, then the widest.
    """
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    room = _width - len(indent) - 2 * (len(widths) - 1)
    widths[-1] = min(widths[-1], max(room - sum(widths[:-1]), _LAST))
    while sum(widths) > room and max(widths) > _NARROWEST:
        widest = max(widths)
        others = [width for width in widths if width < widest] or [0]
        count = widths.count(widest)
        too_much = -(-(sum(widths) - room) // count)
        narrower = max(widest - too_much, *others, _NARROWEST)
        widths = [narrower if width == widest else width for width in widths]
    for row in cells:
        wrapped = [_wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
        for i in range(max(map(len, wrapped))):
            parts = [lines[i] if i < len(lines) else "" for lines in wrapped]
            line = "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True))
            print(indent + line.rstrip())


def _wrap(cell: str, width: int) -> list[str]:
    return textwrap.wrap(cell, width, break_on_hyphens=False) if len(cell) > width else [cell]


def print_paragraph(text: str, indent: str = "") -> None:
    """Prints words as wide as tables are; lines after the first are further in."""
    if _width < sys.maxsize:
        text = textwrap.fill(text, _width, initial_indent=indent, subsequent_indent=f"{indent}    ")
    else:
        text = indent + text
    print(text)
