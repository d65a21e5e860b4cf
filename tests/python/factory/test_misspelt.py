"""Misspelt operators and members of a provider: a warning when it is registered."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ep_support import registered

from ort_abi import ep, schemas


def warnings_of(host: ModuleType, cls: type[ep.ExecutionProvider]) -> list[str]:
    """The texts of the warnings, which are about this file's line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with registered(host, cls):
            pass
    assert all(each.category is UserWarning for each in caught)
    return [str(each.message) for each in caught]


def test_a_kernel_for_an_operator_that_does_not_exist(host: ModuleType) -> None:
    class Misspelt(ep.ExecutionProvider):
        name = "MisspeltExecutionProvider"

        @ep.kernel("Mull", since_version=14)
        def mul(a: Any, b: Any) -> Any:
            return a * b

        @ep.kernel("QuikGelu", since_version=1, domain="com.microsoft")
        def gelu(a: Any) -> Any:
            return a

        @ep.kernel("Xyzzy", since_version=1, domain="ai.onnx")
        def magic(a: Any) -> Any:
            return a

    where = f"{Misspelt.__qualname__}: @kernel"
    assert warnings_of(host, Misspelt) == [
        f"{where}('Mull'): there is no such operator in the domain 'ai.onnx': did you mean 'Mul'?",
        f"{where}('QuikGelu'): there is no such operator in the domain 'com.microsoft': did you mean"
        " 'QuickGelu'?",
        f"{where}('Xyzzy'): there is no such operator in the domain 'ai.onnx'",
    ]


def test_operators_that_exist(host: ModuleType) -> None:
    """Also those of domains that nobody has schemas for, and the provider's own."""

    class Right(ep.ExecutionProvider):
        name = "RightExecutionProvider"
        custom_ops = (ep.CustomOp("MyGelu", "com.microsoft", [None], [None]),)

        @ep.kernel("Mul", since_version=14)
        @ep.kernel("Mull", since_version=1, domain="my.domain")
        @ep.kernel("MemcpyToHost", since_version=1)
        @ep.kernel("MyGelu", since_version=1, domain="com.microsoft")
        @ep.kernel("QuickGelu", since_version=1, domain="com.microsoft")
        @ep.kernel("Conv", since_version=11, domain="com.ms.internal.nhwc")
        @ep.kernel("QLinearGlobalAveragePool", since_version=1, domain="com.ms.internal.nhwc")
        def any(a: Any) -> Any:
            return a

    assert warnings_of(host, Right) == []


class _GetCapabilty(ep.ExecutionProvider):
    def get_capabilty(self, graph: Any) -> Any: ...


class _PreferredLayout(ep.ExecutionProvider):
    prefered_data_layout = "NHWC"


class _DataTransfer(ep.ExecutionProvider):
    @classmethod
    def create_data_tranfer(cls) -> Any: ...


class _Prepack(ep.ExecutionProvider):
    @ep.kernel("Mul", since_version=14)
    class Mul(ep.Kernel):
        def pre_pack(self, *arguments: Any) -> Any: ...

        def compute(self, ctx: Any) -> None: ...


class _Inherits(_GetCapabilty):
    pass


@pytest.mark.parametrize(
    ("cls", "name", "meant"),
    [
        (_GetCapabilty, "_GetCapabilty.get_capabilty", "get_capability"),
        (_Inherits, "_GetCapabilty.get_capabilty", "get_capability"),
        (_PreferredLayout, "_PreferredLayout.prefered_data_layout", "preferred_data_layout"),
        (_DataTransfer, "_DataTransfer.create_data_tranfer", "create_data_transfer"),
        (_Prepack, "_Prepack.Mul.pre_pack", "prepack"),
    ],
)
def test_a_member_that_nobody_asks_for(
    host: ModuleType, cls: type[ep.ExecutionProvider], name: str, meant: str
) -> None:
    cls.name = "MisspeltMemberExecutionProvider"
    [text] = warnings_of(host, cls)
    assert text.endswith(f"nobody asks for {name}: did you mean {meant!r}?")


def test_helpers_of_the_authors_own_are_fine(host: ModuleType) -> None:
    """Names that are close to one that the class has as well, private ones, ones that are like nothing."""

    class Helpers(ep.ExecutionProvider):
        name = "HelpersExecutionProvider"
        compiled = 0

        def compile(self, graph: Any) -> Any:
            return lambda x: x

        def claims(self) -> None: ...

        def devices_of(self) -> None: ...

        def _get_capabilty(self) -> None: ...

        def names_of_nodes(self) -> None: ...

        @ep.kernel("Neg", since_version=13, types={"T": [np.float32]})
        def kernl(x: Any) -> Any:
            return -x

    assert warnings_of(host, Helpers) == []


def test_operators_are_listed_by_domain() -> None:
    found = schemas.operators()
    assert {"Add", "Conv", "SimplifiedLayerNormalization"} <= found[""]
    assert {"QuickGelu", "FusedConv"} <= found["com.microsoft"]
    assert "com.nobody" not in found
    for domain, names in found.items():
        assert all(schemas.get(name, 10_000, domain).domain == domain for name in sorted(names)[:5])
