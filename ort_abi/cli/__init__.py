"""The command `ort-abi`: devices of EP libraries, models run on them, a demonstration."""

from __future__ import annotations

import faulthandler
import importlib.util
import re
import sys
from collections.abc import Sequence

import ort_abi
from ort_abi._lib import lib
from ort_abi.cli import demo, devices, run
from ort_abi.cli._common import CommandError, Parser, set_width

__all__ = ["main", "run_program"]


def run_program() -> int:
    """The command as a program: `main`, and a crash of a plugin leaves a word.

    A fatal signal writes one line to stderr, which names provider, slot and node, then Python's traceback.
    """
    faulthandler.enable()
    lib.ortabi_report_crashes()  # after faulthandler: the line comes first
    return main()


_TRACEBACK = "Traceback (most recent call last)"
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in')


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0 done, 1 failed (a line or two say why).

    Wrong usage ends the process with 2.
    """
    parser = Parser(prog="ort-abi", description="A host for plugins of ONNX Runtime.")
    version = f"ort-abi {ort_abi.__version__}, API 1 to {ort_abi.get_version_string().split('.')[1]}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (devices, run, demo):
        module.add_parser(commands)
    parsed = parser.parse_args(arguments)
    set_width(getattr(parsed, "wide", False))
    try:
        parsed.main(parsed)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("ort-abi: interrupted", file=sys.stderr)
        return 130
    except (CommandError, ort_abi.errors.OrtError, OSError, MemoryError, TypeError, ValueError) as error:
        print(f"ort-abi: {_one_line(error)}", file=sys.stderr)
        hint = error.hint if isinstance(error, CommandError) else _hint(error)
        if hint:
            print(f"  {hint}", file=sys.stderr)
        return 1
    return 0


def _one_line(error: Exception) -> str:
    """What an error says. Of the traceback that errors of Python providers carry, only the last place."""
    message, _, trace = str(error).partition(_TRACEBACK)
    line = " ".join(message.split()) or type(error).__name__
    frames = _FRAME.findall(trace)
    return f"{line} ({frames[-1][0]}, line {frames[-1][1]})" if frames else line


def _hint(error: Exception) -> str:
    """What could be installed."""
    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    if isinstance(cause, ort_abi.errors.NotImplemented) and importlib.util.find_spec("onnx") is None:
        return "pip install 'ort-abi[reference]' adds a provider that has all of ONNX's operators"
    return ""
