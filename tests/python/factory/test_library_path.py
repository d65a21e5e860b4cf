"""`library_path(Class)`: a plugin library of one provider, which registers under any name."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ep_support import mul_model, open_session

import ort_abi
from ort_abi import ep

A, B = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)


class Twice(ep.ExecutionProvider):
    """Mul, and then some: results show which provider ran."""

    name, vendor = "TwiceExecutionProvider", "Tests"
    factor = 2

    def get_capability(self, graph: ep.Graph) -> Any:
        return [[node] for node in graph.nodes]

    def compile(self, graph: ep.Graph) -> Any:
        return lambda a, b: a * b * self.factor


class Thrice(Twice):
    """Another one."""

    name = "ThriceExecutionProvider"
    factor = 3


@contextmanager
def library(host: ModuleType, name: str, path: str) -> Iterator[None]:
    host.register_execution_provider_library(name, path)
    try:
        yield
    finally:
        gc.collect()
        host.unregister_execution_provider_library(name)


def product(host: ModuleType, cls: type[ep.ExecutionProvider]) -> list[float]:
    session = open_session(host, cls, mul_model())
    return list(session.run(None, {"a": A, "b": B})[0])


def names(host: ModuleType) -> set[str]:
    return {device.ep_name for device in host.get_ep_devices()}


def test_any_name(host: ModuleType) -> None:
    with library(host, "anything", ep.library_path(Twice)):
        assert product(host, Twice) == [8, 20, 36]
    assert Twice.name not in names(host)


def test_two_providers_under_any_names_at_once_and_again(host: ModuleType) -> None:
    for _ in range(3):
        with (
            library(host, Thrice.name, ep.library_path(Twice)),  # even the other one's
            library(host, "x/y z", ep.library_path(Thrice)),
        ):
            assert product(host, Twice) == [8, 20, 36]
            assert product(host, Thrice) == [12, 30, 54]
        assert not names(host) & {Twice.name, Thrice.name}


def test_both_hosts_at_once() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path = ep.library_path(Twice)
    with library(onnxruntime, "one", path), library(ort_abi, "two", path):
        assert product(onnxruntime, Twice) == product(ort_abi, Twice) == [8, 20, 36]


def test_a_path_is_the_classes_own_and_stays() -> None:
    assert ep.library_path(Twice) == ep.library_path(Twice)
    assert len({ep.library_path(Twice), ep.library_path(Thrice), ep.library_path()}) == 3


def test_registered_by_name_and_by_path(host: ModuleType) -> None:
    """A name that was prepared for another class does not matter to a path that is a class's own."""
    ep.prepare(Thrice, "the name")
    with library(host, "the name", ep.library_path(Twice)):
        assert Twice.name in names(host)
        assert Thrice.name not in names(host)


def test_a_class_that_is_no_provider_has_no_library() -> None:
    with pytest.raises(TypeError, match="not a class derived from"):
        ep.library_path(int)  # type: ignore[type-var]
    nameless = type("Nameless", (Twice,), {"name": ""})
    with pytest.raises(ValueError, match="name must be a text"):
        ep.library_path(nameless)


def test_the_path_of_all_providers_says_what_to_use(host: ModuleType) -> None:
    with pytest.raises(Exception, match=re.escape("ort_abi.ep.library_path(TheClass)")):
        host.register_execution_provider_library("nobody's", ep.library_path())


def test_a_failing_provider_leaves_nothing(host: ModuleType) -> None:
    class Failing(Twice):
        name = "FailingExecutionProvider"
        fails = True

        @classmethod
        def get_supported_devices(cls, devices: Any) -> Any:
            if cls.fails:
                raise RuntimeError("not today")
            return super().get_supported_devices(devices)

    path = ep.library_path(Failing)
    with pytest.raises(Exception, match="not today"):
        host.register_execution_provider_library("anything", path)
    assert Failing.name not in names(host)
    Failing.fails = False
    with library(host, "anything", path):
        assert product(host, Failing) == [8, 20, 36]


def test_a_closed_file_is_made_again_under_a_new_path(host: ModuleType) -> None:
    """Programs that become daemons close every file that they did not open."""
    first = ep.library_path(Twice)
    with library(host, "before", first):
        os.close(int(first.rsplit("/", 1)[1]))
        third = ep.library_path(Thrice)
        second = ep.library_path(Twice)
        assert len({first, second, third}) == 3
    with library(host, "after", second):
        assert product(host, Twice) == [8, 20, 36]


PROGRAM = """
import os, sys
import ort_abi
from ort_abi import ep
class Mine(ep.ExecutionProvider):
    name, vendor = "MineExecutionProvider", "Tests"
path = ep.library_path(Mine)
ort_abi.register_execution_provider_library("any", path)
assert "MineExecutionProvider" in ort_abi.get_available_providers()
child = os.fork()
if child == 0:
    ort_abi.unregister_execution_provider_library("any")
    ort_abi.register_execution_provider_library("other", ep.library_path(Mine))
    os._exit("MineExecutionProvider" not in ort_abi.get_available_providers())
assert os.waitpid(child, 0)[1] == 0
"""


def test_nothing_is_left_behind_and_children_have_it_too(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=environment, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_exit_with_a_library_registered_in_stock() -> None:
    pytest.importorskip("onnxruntime")
    program = PROGRAM.split("child =")[0].replace("import ort_abi\n", "import onnxruntime as ort_abi\n")
    program = program.replace("ort_abi.register", "import ort_abi as ours\nort_abi.register")
    program = re.sub(r"assert .*\n", "print(len(ort_abi.get_ep_devices()))\n", program)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) >= 2


def test_the_library_is_small_and_needs_nothing() -> None:
    path = ep.library_path(Twice)
    assert os.stat(path).st_size < 64 * 1024
    handle = ctypes.CDLL(path)
    assert handle.CreateEpFactories
    assert handle.ReleaseEpFactory
