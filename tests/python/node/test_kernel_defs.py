"""`InferenceSession.get_kernels`: what providers have registered."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from ep_support import mul_model, open_session, registered

import ort_abi
from ort_abi import ep
from ort_abi.kernels import KernelDef


class KernelsEp(ep.ExecutionProvider):
    """Has kernels of several kinds."""

    name = "KernelsExecutionProvider"

    @staticmethod
    @ep.kernel("Mul", (7, 14), types={"T": [np.float32, "bfloat16"]})
    @ep.kernel("Add", 14)
    def compute(a: Any, b: Any) -> Any:
        """Multiplies; nothing here adds."""
        return a * b


class CompilesEp(ep.ExecutionProvider):
    """Has none."""

    name = "CompilesExecutionProvider"

    def get_capability(self, graph: Any) -> Any:
        return [graph.nodes]

    def compile(self, graph: Any) -> Any:
        return lambda a, b: a * b


def test_kernels_are_as_they_were_registered() -> None:
    with registered(ort_abi, KernelsEp):
        session = open_session(ort_abi, KernelsEp, mul_model())
        kernels = sorted(session.get_kernels(KernelsEp.name), key=lambda kernel: kernel.op_type)
        session.close()
    assert kernels == [
        KernelDef("Add", "", (14, 14), {}),
        KernelDef("Mul", "", (7, 14), {"T": ("float32", "bfloat16")}),
    ]


def test_the_cpus_kernels_are_seen() -> None:
    with ort_abi.InferenceSession(mul_model()) as session:
        kernels = session.get_kernels("CPUExecutionProvider")
    assert len(kernels) > 50
    assert any(kernel.op_type == "Mul" and "float64" in kernel.types["T"] for kernel in kernels)


def test_a_provider_that_only_compiles_has_none() -> None:
    with registered(ort_abi, CompilesEp):
        session = open_session(ort_abi, CompilesEp, mul_model())
        assert session.get_kernels(CompilesEp.name) == []
        session.close()


def test_an_unknown_provider_is_refused() -> None:
    with ort_abi.InferenceSession(mul_model()) as session, pytest.raises(ValueError, match="no provider 'X'"):
        session.get_kernels("X")


@pytest.mark.third_party
def test_every_kernel_of_nxrt_is_read() -> None:
    if importlib.util.find_spec("nxrt_ep_cpu") is None:
        pytest.skip("the package nxrt-ep-cpu is not installed")
    import nxrt_ep_cpu

    ort_abi.register_execution_provider_library("nxrt", nxrt_ep_cpu.get_library_path())
    try:
        options = ort_abi.SessionOptions()
        options.add_provider("cpu_ep", {})
        with ort_abi.InferenceSession(mul_model(), options) as session:
            kernels = session.get_kernels("cpu_ep")
    finally:
        ort_abi.unregister_execution_provider_library("nxrt")
    assert len(kernels) > 200
    assert all(kernel.op_type and kernel.since_version[0] >= 1 for kernel in kernels)
