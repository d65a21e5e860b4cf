"""IR versions and operator sets newer than known: refused, with both numbers, where stock refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import ort_abi

X = np.array([1, -2, 3], np.float32)
NEWEST = onnx.defs.onnx_opset_version()
DOMAINS = {
    "": NEWEST,
    "ai.onnx.ml": 5,
    "ai.onnx.training": 1,
    "ai.onnx.preview.training": 1,
    "ai.onnx.preview": 1,
    "com.microsoft": 1,
    "com.microsoft.nchwc": 1,
    "com.microsoft.experimental": 1,
    "org.pytorch.aten": 1,
}


def model(
    opsets: Sequence[tuple[str, int]] = (("", 17),),
    ir_version: int = 10,
    function: Sequence[tuple[str, int]] | None = None,
    calls: bool = True,
) -> bytes:
    """y = abs(x), in a function with imports of its own if there are any."""
    value = helper.make_tensor_value_info
    node, functions, domains = helper.make_node("Abs", ["x"], ["y"], "abs"), [], dict(opsets)
    if function is not None:
        own = [helper.make_opsetid(*opset) for opset in function]
        functions = [helper.make_function("mine", "F", ["x"], ["y"], [node], own)]
        domains["mine"] = 1
        node = helper.make_node("F", ["x"], ["y"], "call", domain="mine") if calls else node
    graph = helper.make_graph(
        [node], "g", [value("x", TensorProto.FLOAT, [3])], [value("y", TensorProto.FLOAT, [3])]
    )
    imports = [helper.make_opsetid(*item) for item in domains.items()]
    made = helper.make_model(graph, opset_imports=imports, functions=functions)
    made.ir_version = ir_version
    return made.SerializeToString()


def run(host: ModuleType, data: bytes) -> None:
    session = host.InferenceSession(data, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], np.abs(X))


def refused(host: ModuleType, data: bytes, *numbers: int) -> str:
    """Both hosts' code is FAIL; gives the message, which has the numbers."""
    with pytest.raises(Exception) as raised:
        host.InferenceSession(data, providers=["CPUExecutionProvider"])
    assert type(raised.value).__name__ == "Fail"
    message = str(raised.value)
    assert all(str(number) in message for number in numbers)
    return message


def test_ir_versions(host: ModuleType) -> None:
    for version in (3, 10, onnx.IR_VERSION):
        run(host, model(ir_version=version))
    for version in (onnx.IR_VERSION + 1, 99, 2**31, 2**40):
        text = refused(host, model(ir_version=version), version, onnx.IR_VERSION)
        assert "Unsupported model IR version" in text


@pytest.mark.parametrize("domain", DOMAINS)
def test_operator_sets(host: ModuleType, domain: str) -> None:
    newest = DOMAINS[domain]
    run(host, model([("", 17), (domain, newest)]))
    large = [2**40] if host is ort_abi else []  # stock takes it for 0
    for version in (newest + 1, 999, *large):
        text = refused(host, model([("", 17), (domain, version)]), version, newest)
        assert (domain or "ai.onnx") in text


def test_domains_of_others_may_have_any_version(host: ModuleType) -> None:
    run(host, model([("", 17), ("my.domain", 999)]))


@pytest.mark.parametrize("calls", [True, False], ids=["called", "not called"])
def test_functions_with_imports_of_their_own(host: ModuleType, calls: bool) -> None:
    run(host, model(function=[("", NEWEST)], calls=calls))
    refused(host, model(function=[("", NEWEST + 1)], calls=calls), NEWEST + 1, NEWEST)
    refused(host, model(function=[("", 17), ("ai.onnx.ml", 99)], calls=calls), 99, 5)


def test_a_model_that_says_which_one_it_is(tmp_path: Any) -> None:
    path = tmp_path / "new.onnx"
    path.write_bytes(model([("", 999)]))
    with pytest.raises(ort_abi.errors.Fail, match=r"new\.onnx.*version 999.*'ai\.onnx'.*up to"):
        ort_abi.InferenceSession(path)


def test_versions_that_are_not_released_may_be_allowed(tmp_path: Any) -> None:
    """ALLOW_RELEASED_ONNX_OPSET_ONLY, as in stock; an IR version is never allowed."""
    path = tmp_path / "new.onnx"
    path.write_bytes(model([("", NEWEST + 1)]))
    code = f"import ort_abi; ort_abi.InferenceSession({str(path)!r})"

    def child(value: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            env={"ALLOW_RELEASED_ONNX_OPSET_ONLY": value},
            capture_output=True,
            text=True,
        )

    allowed = child("0")
    assert allowed.returncode == 0 and f"version {NEWEST + 1}" in allowed.stderr
    assert child("1").returncode != 0
    path.write_bytes(model(ir_version=99))
    assert child("0").returncode != 0
