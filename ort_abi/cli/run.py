"""`ort-abi run`: runs a model and says what ran where."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ort_abi
from ort_abi import NodeArg, OrtEpDevice, PlanStep
from ort_abi.cli._common import (
    CommandError,
    add_shared_options,
    inject_devices,
    print_table,
    register_libraries,
    register_python,
)
from ort_abi.cli._not_taken import RECORD, print_not_taken
from ort_abi.value import dtype_of

__all__ = ["add_parser", "main", "print_assignment"]

_SHOWN = 8
_MADE_UP = 4


def add_parser(commands: Any) -> None:
    """Adds the subcommand."""
    parser = commands.add_parser("run", help="run a model and show what ran where")
    parser.add_argument("model", metavar="MODEL", help="an ONNX file")
    add_shared_options(parser)
    parser.add_argument(
        "--py-ep",
        action="append",
        default=[],
        type=_file_and_class,
        metavar="FILE:CLASS",
        help="a provider written in Python to use",
    )
    parser.add_argument("--ep-name", action="append", default=[], metavar="NAME", help="use this provider")
    for option, what in (("--ep-option", "an option for the providers"), ("--config", "a config entry")):
        parser.add_argument(option, action="append", default=[], type=_pair, metavar="KEY=VALUE", help=what)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE.npy",
        help="an input, by name or in the model's order; those not given are made up",
    )
    parser.add_argument("--no-fallback", action="store_true", help="fail if the providers leave a node")
    parser.add_argument("--repeat", type=_positive, default=1, metavar="N", help="run N times")
    parser.set_defaults(main=main)


def main(arguments: argparse.Namespace) -> None:
    """Runs the model. Raises CommandError for what the user can correct."""
    if arguments.model and Path(arguments.model).is_dir():
        raise CommandError(f"{arguments.model} is a folder, not a model")
    if not Path(arguments.model).is_file():
        raise CommandError(f"there is no model {arguments.model or repr(arguments.model)}")
    inject_devices(arguments.device)
    options = ort_abi.SessionOptions()
    options.add_session_config_entry(*RECORD)
    for key, value in arguments.config:
        options.add_session_config_entry(key, value)
    if arguments.no_fallback:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    ep_options = dict(arguments.ep_option)
    chosen = _chosen(arguments)
    for devices in chosen:
        options.add_provider_for_devices(devices, ep_options)

    started = time.perf_counter()
    session = ort_abi.InferenceSession(arguments.model, options)
    load_seconds = time.perf_counter() - started
    given = _given(session.get_inputs(), arguments.input)
    made_up = {item.name: _made_up(item) for item in session.get_inputs() if item.name not in given}
    session.set_timing(True)
    try:
        outputs, seconds = _run(session, given | made_up, arguments.repeat)
    except (ort_abi.errors.OrtError, TypeError, ValueError) as error:
        if not made_up:
            raise
        hint = f"made up: {_described(made_up)}; --input gives real ones"
        raise CommandError(str(error), hint) from error

    named = list(zip([output.name for output in session.get_outputs()], outputs, strict=True))
    if arguments.json:
        print(json.dumps(_report(session, load_seconds, seconds, list(made_up), named), indent=2))
        return
    load, best = (f"{number * 1e3:.3f} ms" for number in (load_seconds, min(seconds)))
    print(f"loaded in {load}, ran {len(seconds)} time(s), the best in {best}")
    if made_up:
        print(f"inputs made up: {_described(made_up)}")
    print()
    print_assignment(session.assignment())
    print_not_taken(session, (device.ep_name for devices in chosen for device in devices))
    print()
    header = ("OUTPUT", "DTYPE", "SHAPE", "VALUES")
    print_table(header, [(name, array.dtype, list(array.shape), _summary(array)) for name, array in named])


def print_assignment(steps: Sequence[PlanStep], indent: str = "") -> None:
    """Prints which provider ran how many of the model's nodes, and how long."""
    rows = []
    for name in dict.fromkeys(step.ep_name for step in steps):
        mine = [step for step in steps if step.ep_name == name]
        runs = max(1, max(step.runs for step in mine))
        milliseconds = sum(step.nanoseconds for step in mine) / runs / 1e6
        nodes = sum(step.original_nodes for step in mine)
        rows.append((name, nodes, f"{milliseconds:.3f}", _what_ran(mine)))
    print_table(("EP", "NODES", "MS A RUN", "WHAT"), rows, indent)


def _what_ran(steps: Sequence[PlanStep]) -> str:
    parts = []
    fused = [step for step in steps if step.domain == step.ep_name]  # the domain of fused nodes
    if fused:
        parts.append(f"{len(fused)} fused group(s) of {sum(step.original_nodes for step in fused)} node(s)")
    counts = Counter(step.op_type for step in steps if step.domain != step.ep_name)
    parts += [op if count == 1 else f"{count}x {op}" for op, count in counts.most_common(_SHOWN)]
    if len(counts) > _SHOWN:
        parts.append(f"and {len(counts) - _SHOWN} more")
    return ", ".join(parts)


def _chosen(arguments: argparse.Namespace) -> list[list[OrtEpDevice]]:
    """One device of each provider to use: the first of every library, unless names are given."""
    libraries = register_libraries(arguments.ep)
    libraries += [register_python(where) for where in arguments.py_ep]
    if not arguments.ep_name:
        return [devices[:1] for devices in libraries]
    found = []
    for name in arguments.ep_name:
        everything = ort_abi.get_ep_devices()
        devices = [device for device in everything if device.ep_name == name]
        if not devices:
            names = ", ".join(dict.fromkeys(device.ep_name for device in everything))
            raise CommandError(f"there is no execution provider {name!r}, only {names}")
        found.append(devices[:1])
    return found


def _run(
    session: ort_abi.InferenceSession, feed: dict[str, NDArray[Any]], repeat: int
) -> tuple[list[Any], list[float]]:
    """The outputs of the last run, and how long each took."""
    outputs, seconds = [], []
    for _ in range(repeat):
        started = time.perf_counter()
        outputs = session.run(None, feed)
        seconds.append(time.perf_counter() - started)
    return outputs, seconds


def _given(inputs: Sequence[NodeArg], files: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The arrays of the inputs that files are given for."""
    names = [item.name for item in inputs]
    given: dict[str, NDArray[Any]] = {}
    for item in files:
        name, equals, path = item.partition("=")
        if not equals:
            path, left = item, [name for name in names if name not in given]
            if not left:
                raise CommandError(f"--input {item}: the model has no more inputs than {', '.join(names)}")
            name = left[0]
        if name not in names:
            raise CommandError(f"--input {item}: the model has no such input, only {', '.join(names)}")
        if name in given:
            raise CommandError(f"--input {item}: the input {name!r} is given twice")
        try:
            given[name] = _read_array(path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise CommandError(f"--input {item}: {reason}") from error
    return given


def _read_array(path: str) -> NDArray[Any]:
    """The array of a .npy file. Raises OSError, ValueError."""
    with open(path, "rb") as file:
        start = file.read(6)
        if start.startswith(b"PK"):
            raise ValueError("an archive of arrays (.npz); an input is one array: numpy.save writes it")
        if start != b"\x93NUMPY":
            raise ValueError("no .npy file: numpy.save writes them")
        file.seek(0)
        try:
            return np.asarray(np.load(file, allow_pickle=False))
        except ValueError as error:
            if "Object arrays" not in str(error):
                raise
            raise ValueError(
                "Python objects, which are no tensor; save numbers, or an array of text"
            ) from error


def _described(arrays: dict[str, NDArray[Any]]) -> str:
    """Names, types and shapes of the first ones."""
    shown = [f"{name} {array.dtype} {list(array.shape)}" for name, array in list(arrays.items())[:_MADE_UP]]
    more = len(arrays) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _made_up(item: NodeArg) -> NDArray[Any]:
    """The same numbers at every call; dimensions without a number are 1."""
    if not item.type.startswith("tensor("):
        raise CommandError(f"input {item.name!r} is a {item.type}, which cannot be made up: use --input")
    dtype = dtype_of(item.type)
    shape = [size if isinstance(size, int) else 1 for size in item.shape]
    if dtype == np.dtype(object):
        return np.full(shape, "", object)
    random = np.random.default_rng(0)
    is_real = dtype.kind in "fc" or "float" in dtype.name
    values = random.standard_normal(shape) if is_real else random.integers(0, 2, shape)
    return np.asarray(values).astype(dtype)


def _summary(array: NDArray[Any]) -> str:
    if array.dtype == np.dtype(object) or array.size <= _SHOWN:
        flat = array.reshape(-1)[:_SHOWN].tolist()
        shown = ", ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in flat)
        return shown + (", ..." if array.size > _SHOWN else "")
    if array.dtype.kind == "c":
        array = np.abs(array)
    numbers = array.astype(np.float64)
    return f"min {numbers.min():.6g}, max {numbers.max():.6g}, mean {numbers.mean():.6g}"


def _report(
    session: ort_abi.InferenceSession,
    load_seconds: float,
    seconds: Sequence[float],
    made_up: Sequence[str],
    outputs: Sequence[tuple[str, NDArray[Any]]],
) -> dict[str, Any]:
    return {
        "providers": session.get_providers(),
        "load_seconds": load_seconds,
        "run_seconds": list(seconds),
        "inputs_made_up": list(made_up),
        "assignment": [step._asdict() for step in session.assignment()],
        "not_taken": [node._asdict() for node in session.get_not_taken()],
        "outputs": [
            {"name": name, "dtype": str(array.dtype), "shape": list(array.shape), "summary": _summary(array)}
            for name, array in outputs
        ],
    }


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"it takes KEY=VALUE, not {text!r}")
    return key, value


def _file_and_class(text: str) -> str:
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise argparse.ArgumentTypeError(f"it takes FILE:CLASS, not {text!r}")
    return text


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"it takes a whole number from 1 on, not {text!r}")
    return number
