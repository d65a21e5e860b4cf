"""The command `ort-abi`: devices of EP libraries, models run on them, a demonstration."""

from __future__ import annotations

import argparse
import faulthandler
import sys
from collections.abc import Sequence

import ort_abi
from ort_abi._lib import lib
from ort_abi.cli import demo, devices, run
from ort_abi.cli._common import CommandError

__all__ = ["main", "run_program"]


def run_program() -> int:
    """The command as a program: `main`, and a crash of a plugin leaves a word.

    A fatal signal writes one line to stderr, which names provider, slot and node, then Python's traceback.
    """
    faulthandler.enable()
    lib.ortabi_report_crashes()  # after faulthandler: the line comes first
    return main()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0 done, 1 failed (one line says why), 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="ort-abi", description="A host for plugins of ONNX Runtime.")
    version = f"ort-abi {ort_abi.__version__}, API 1 to {ort_abi.get_version_string().split('.')[1]}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (devices, run, demo):
        module.add_parser(commands)
    parsed = parser.parse_args(arguments)
    try:
        parsed.main(parsed)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stderr.close()
        return 1
    except (CommandError, ort_abi.errors.OrtError, OSError, TypeError, ValueError) as error:
        print(f"ort-abi: {_one_line(error)}", file=sys.stderr)
        return 1
    return 0


def _one_line(error: Exception) -> str:
    """What an error says, without the traceback that errors of Python providers carry."""
    message, _, _ = str(error).partition("Traceback (most recent call last)")
    return " ".join(message.split()) or type(error).__name__
