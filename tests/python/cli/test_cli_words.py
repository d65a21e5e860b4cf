"""What `ort-abi` says to a stranger: a line or two in plain words, 2 for wrong usage, 1 for failures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ep_support import model, mul_model
from onnx import TensorProto, helper

from ort_abi.cli import main
from ort_abi.cli._common import print_table, set_width

LONG = "a_long_name_of_an_output/that_somebody/exported_from/a_program/with_modules/StatefulPartitionedCall:0"


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert 1 <= error.count("\n") <= 2
    assert "Traceback" not in error
    return error


@pytest.fixture
def mul(tmp_path: Path) -> str:
    path = tmp_path / "mul.onnx"
    path.write_bytes(mul_model())
    return str(path)


@pytest.mark.parametrize(
    ("message", "arguments"),
    {
        "one or two numbers from 0 to 0xffffffff, not 'gpu:-5'": ["devices", "--device", "gpu:-5"],
        "not 'gpu:1:99999999999'": ["run", "m", "--device", "gpu:1:99999999999"],
        "not 'gpu:1:2:3'": ["devices", "--device", "gpu:1:2:3"],
        "not 'tpu:1'": ["devices", "--device", "tpu:1"],
        "a whole number from 1 on, not 'x'": ["run", "m", "--repeat", "x"],
        "a whole number from 1 on, not '0'": ["run", "m", "--repeat", "0"],
        "takes KEY=VALUE, not 'x'": ["run", "m", "--config", "x"],
        "takes KEY=VALUE, not '=x'": ["run", "m", "--ep-option", "=x"],
        "takes FILE:CLASS, not 'p.py'": ["run", "m", "--py-ep", "p.py"],
        "takes the path of an EP library": ["devices", "--ep", ""],
        "required: COMMAND": [],
    }.items(),
)
def test_wrong_usage_is_two_lines(
    capsys: pytest.CaptureFixture[str], message: str, arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("ort-abi")
    assert message in first
    assert second.startswith("usage: ort-abi")
    assert second.endswith("--help says what it takes")


def test_folders_are_called_folders(capsys: pytest.CaptureFixture[str], mul: str) -> None:
    assert ". is a folder, not a model" in failure(capsys, "run", ".")
    assert "there is no model ''" in failure(capsys, "run", "")
    for command in (["devices"], ["run", mul]):
        assert "--ep /: a folder, not an EP library" in failure(capsys, *command, "--ep", "/")


def test_inputs_that_are_no_npy_files(capsys: pytest.CaptureFixture[str], mul: str, tmp_path: Path) -> None:
    np.savetxt(tmp_path / "a.txt", np.ones(3))
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    np.save(tmp_path / "objects.npy", np.array([{}], object))
    for name, words in {
        "a.txt": "no .npy file: numpy.save writes them",
        "a.npz": "an archive of arrays (.npz); an input is one array",
        "objects.npy": "Python objects, which are no tensor",
        "none.npy": "No such file or directory",
    }.items():
        path = tmp_path / name
        assert (
            failure(capsys, "run", mul, "--input", str(path))
            == f"ort-abi: --input {path}: {words}"
            + (failure(capsys, "run", mul, "--input", str(path)).partition(words)[2])
        )
    np.save(tmp_path / "a.npy", np.ones(3, np.float32))
    twice = ["--input", f"a={tmp_path / 'a.npy'}"] * 2
    assert "the input 'a' is given twice" in failure(capsys, "run", mul, *twice)
    thrice = ["--input", str(tmp_path / "a.npy")] * 3
    assert "the model has no more inputs than a, b" in failure(capsys, "run", mul, *thrice)


def test_errors_say_that_inputs_were_made_up(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    x, i = (TensorProto.FLOAT, ["n", 3]), (TensorProto.INT64, [4])
    path, indices = tmp_path / "gather.onnx", tmp_path / "i.npy"
    node = helper.make_node("Gather", ["x", "i"], ["y"])
    path.write_bytes(model([node], {"x": x, "i": i}, {"y": (TensorProto.FLOAT, None)}))
    error = failure(capsys, "run", str(path))
    assert "made up: x float32 [1, 3], i int64 [4]; --input gives real ones" in error
    assert "that makes 'y' (Gather" in error  # it has no name
    assert "''" not in error
    np.save(indices, np.zeros(4, np.int64))
    assert main(["run", str(path), "--input", f"i={indices}"]) == 0
    assert "inputs made up: x float32 [1, 3]\n" in capsys.readouterr().out
    np.save(tmp_path / "x.npy", np.zeros((1, 3), np.float32))
    np.save(indices, np.full(4, 7))
    given = [f"--input=i={indices}", f"--input=x={tmp_path / 'x.npy'}"]
    assert "made up" not in failure(capsys, "run", str(path), *given)


def test_a_failing_python_provider_says_where(
    capsys: pytest.CaptureFixture[str], mul: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.py"
    path.write_text(
        "from ort_abi import ep\nclass Bad(ep.ExecutionProvider):\n"
        "    name, vendor = 'CliBadExecutionProvider', 'T'\n"
        "    def get_capability(self, graph):\n        raise KeyError('why')\n"
    )
    import ort_abi

    assert f"KeyError: 'why' ({path}, line 5)" in failure(capsys, "run", mul, "--py-ep", f"{path}:Bad")
    ort_abi.unregister_execution_provider_library("CliBadExecutionProvider")
    assert "it has Bad" in failure(capsys, "run", mul, "--py-ep", f"{path}:Good")


def test_a_bare_install_says_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "celu.onnx"
    spec = (TensorProto.FLOAT, [3])
    path.write_bytes(model([helper.make_node("Celu", ["x"], ["y"])], {"x": spec}, {"y": spec}))
    bare = "import sys; sys.modules.update(dict.fromkeys(['onnx', 'onnxruntime', 'nxrt_ep_cpu']));"
    for arguments, words in {
        ("run", str(path)): "pip install 'ort-abi[reference]'",
        ("demo",): "pip install 'ort-abi[demo]'",
    }.items():
        code = f"{bare} from ort_abi.cli import main; sys.exit(main({arguments!r}))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert words in done.stderr
        assert done.stderr.count("\n") <= 2
    code = f"{bare} from ort_abi.cli import main; sys.exit(main(['devices']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "nxrt-ep-cpu" in done.stdout


def test_tables_fit_and_lose_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "long.onnx"
    spec = (TensorProto.FLOAT, [2, 3, 4, 5])
    path.write_bytes(model([helper.make_node("Identity", ["x"], [LONG])], {"x": spec}, {LONG: spec}))
    assert main(["run", str(path)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    table = out[out.index("OUTPUT") :].splitlines()
    place = table[0].index("DTYPE")
    assert "".join(line[:place].strip() for line in table[1:]) == LONG
    assert main(["run", str(path), "--wide"]) == 0
    assert LONG in capsys.readouterr().out


@pytest.mark.parametrize("width", [40, 80, 100])
def test_tables_are_as_wide_as_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda _: os.terminal_size((width, 24)))
    set_width(wide=False)
    print_table(("A", "B", "C"), [("x" * 50, "short", "many words " * 20), ("y", "z", "w")], indent="   ")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    text = "".join("".join(lines).split())
    assert text.count("x") == 50
    assert text.count("words") == 20
