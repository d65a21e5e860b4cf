"""Memory budgets: the nodes that a provider gets within one, by estimates and by what stock recorded.

Stock keeps budgets for its CUDA provider only, and for any plugin that is called like it.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import onnxruntime
import pytest
from channels_last import NHWC, ChannelsLast
from ep_support import OLD_STOCK, model, open_session, registered
from onnx import helper

import ort_abi
from ort_abi import ep
from ort_abi.graph import Graph

KEY = "session.resource_cuda_partitioning_settings"
X = np.ones(256, np.float32)  # 1 KB, as all values are
SPEC = (np.float32, [256])


class Cuda(ep.ExecutionProvider):
    """Counts the nodes that it got."""

    name = "CUDAExecutionProvider"
    room: ClassVar[int | None] = None
    taken: ClassVar[int] = 0

    def get_available_resource(self) -> int | None:
        return Cuda.room

    @staticmethod
    @ep.kernel("Add", (7, None))
    def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        Cuda.taken += 1
        return a + b

    @staticmethod
    @ep.kernel("Mul", (7, None))
    def mul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        Cuda.taken += 1
        return a * b

    @staticmethod
    @ep.kernel("Clip", (11, None))
    def clip(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        Cuda.taken += 1
        return np.clip(x, low, high)


@pytest.fixture(autouse=True)
def no_room_left_over() -> None:
    Cuda.room = None


def weights_model() -> bytes:
    """Four nodes; two share a weight."""
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"], name="add"),
        helper.make_node("Mul", ["a", "v"], ["b"]),
        helper.make_node("Mul", ["b", "w"], ["c"], name="again"),
        helper.make_node("Add", ["c", "c"], ["y"], name="last"),
    ]
    given: bytes = model(nodes, {"x": SPEC}, {"y": SPEC}, {"w": X, "v": X * 2})
    return given


def names_model() -> bytes:
    """48 nodes over values with names of all lengths, some of them missing."""
    names = ["x", *("v" * i for i in range(2, 49)), "y"]
    nodes = []
    for i, (before, after) in enumerate(itertools.pairwise(names)):
        name = f"node/{i}{'n' * (i % 17)}" if i % 3 else ""
        if i % 2:
            nodes.append(helper.make_node("Clip", [before, "", "top"], [after], name=name))
        else:
            nodes.append(helper.make_node("Mul", [before, before], [after], name=name))
    given: bytes = model(nodes, {"x": SPEC}, {"y": SPEC}, {"top": np.array(1, np.float32)})
    return given


def record(path: Path, file: str = "stats.csv") -> str:
    """What stock onnxruntime records of a run of the model at `path`; in `file` beside it."""
    options = onnxruntime.SessionOptions()
    options.enable_mem_pattern = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.collect_node_memory_stats_to_file", file)
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    session.run(None, {"x": X})
    del session  # it writes the file
    gc.collect()
    return (path.parent / file).read_text()


def taken(host: ModuleType, source: Path | bytes, setting: str) -> int:
    """How many nodes the provider gets."""
    Cuda.taken = 0
    with registered(host, Cuda):
        session = open_session(host, Cuda, source, config={KEY: setting}, fallback=True, optimize=False)
        session.run(None, {"x": X})
        del session
        gc.collect()
    return Cuda.taken


@pytest.mark.skipif(OLD_STOCK, reason="budgets of plugins are new in onnxruntime 1.28")
@pytest.mark.parametrize("file", ["", "stats.csv"])
@pytest.mark.parametrize("room", [None, 4096])
@pytest.mark.parametrize("make", [weights_model, names_model])
def test_the_nodes_that_stock_gives(
    tmp_path: Path, make: Callable[[], bytes], room: int | None, file: str
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(make())
    record(path)
    Cuda.room = room
    limits = ["", *range(0, 11), *range(22, 80, 12)]
    ours, stock = (
        [taken(host, path, f"{limit},{file}") for limit in limits] for host in (ort_abi, onnxruntime)
    )
    assert ours == stock
    assert len(set(ours)) > 3


class CudaLast(ChannelsLast):
    """Prefers channels last, and remembers the converted nodes that it got."""

    name = "CUDAExecutionProvider"
    converted: ClassVar[list[str]] = []

    def get_available_resource(self) -> int | None:
        return None

    def compile(self, graph: Graph) -> Callable[..., Any]:
        self.converted.extend(node.op_type for node in graph.nodes if node.domain == NHWC)
        return super().compile(graph)


@pytest.mark.skipif(OLD_STOCK, reason="budgets of plugins are new in onnxruntime 1.28")
def test_only_nodes_within_the_budget_are_converted() -> None:
    """The others are another provider's, which knows channels first only."""
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"], name="one"),
        helper.make_node("Sigmoid", ["a"], ["b"], name="sigmoid"),
        helper.make_node("Conv", ["b", "w"], ["c"], name="two"),
        helper.make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    weights = {name: np.full((3, 3, 2, 2), number, np.float32) for name, number in (("v", 1), ("w", 2))}
    source = model(nodes, {"x": (np.float32, [1, 3, 8, 8])}, {"y": (np.float32, None)}, weights)
    feeds = {"x": np.ones((1, 3, 8, 8), np.float32)}
    seen = []
    for host, limit in itertools.product((ort_abi, onnxruntime), (0, 1, 2, 3, 4, 9)):
        CudaLast.converted.clear()
        with registered(host, CudaLast):
            options = {"config": {KEY: f"{limit},"}, "fallback": True, "optimize": False}
            session = open_session(host, CudaLast, source, **options)
            np.testing.assert_allclose(session.run(None, feeds)[0], 72 / (1 + np.exp(-12)) / 3, rtol=1e-6)
            del session
            gc.collect()
        seen.append(list(CudaLast.converted))
    ours, stock = seen[:6], seen[6:]
    assert ours == stock == [[], [], ["Conv"], *[["Conv", "Conv"]] * 3]


def test_nodes_that_are_not_in_the_file_need_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(weights_model())
    (tmp_path / "stats.csv").write_text("#name,input_sizes\nadd_1,1,1,1,1\nadd,9999,0,0,0\n")
    assert taken(ort_abi, path, "0,stats.csv") == 4
    (tmp_path / "stats.csv").write_text("")
    assert taken(ort_abi, path, "0,stats.csv") == 4


def test_what_may_be_in_the_file(tmp_path: Path) -> None:
    """Comments, empty lines, lines without a name, Windows' ends of lines, none at the end, a later line that
    counts, sums beyond all limits."""
    path = tmp_path / "model.onnx"
    path.write_bytes(weights_model())
    lines = record(path).splitlines()
    (add,) = (line.split(",")[0] for line in lines if line.startswith("add_"))
    (last,) = (line.split(",")[0] for line in lines if line.startswith("last_"))
    huge = f"{2**64 - 1},{2**64 - 1},1,1"
    text = f"# first\r\n\r\n,1,2,3,4\r\n{add},{huge}\r\n{add},0,1000,20,4\r\n{last},{huge}"
    (tmp_path / "stats.csv").write_bytes(text.encode())
    assert taken(ort_abi, path, "0,stats.csv") == 0
    assert taken(ort_abi, path, "1,stats.csv") == 3


def test_a_node_with_a_comma_in_its_name(tmp_path: Path) -> None:
    """Stock onnxruntime cannot read what it wrote then."""
    node = helper.make_node("Mul", ["x", "x"], ["y"], name="one, two")
    path = tmp_path / "model.onnx"
    path.write_bytes(model([node], {"x": SPEC}, {"y": SPEC}))
    assert "one, two_" in record(path)
    assert [taken(ort_abi, path, f"{limit},stats.csv") for limit in (0, 1, 2)] == [0, 0, 1]


def test_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the model, where its path says, or in the working directory for a model without a path."""
    for folder in ("model", "elsewhere"):
        (tmp_path / folder).mkdir()
    path = tmp_path / "model" / "model.onnx"
    path.write_bytes(weights_model())
    record(path, str(tmp_path / "elsewhere" / "stats.csv"))
    monkeypatch.chdir(tmp_path)
    assert taken(ort_abi, path, f"3,{tmp_path / 'elsewhere' / 'stats.csv'}") == 1
    assert taken(ort_abi, path, "3,../elsewhere/stats.csv") == 1
    assert taken(ort_abi, path.read_bytes(), "3,elsewhere/stats.csv") == 1


@pytest.mark.parametrize(
    "line",
    [
        "only text",
        "a,1,2,3",
        "a,1,2,3,",
        "a,1,2,3,-4",
        "a,1,2,3,x",
        "a,1,2,3,4.5",
        f"a,1,2,3,{2**64}",
        ",,,,",
        "a,1,2,3,4\0",
    ],
)
def test_lines_that_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(weights_model())
    (tmp_path / "stats.csv").write_text(f"#name\nadd_1,1,1,1,1\n{line}\n")
    with (
        registered(ort_abi, Cuda),
        pytest.raises(ort_abi.errors.InvalidArgument, match=r"stats\.csv', line 3: a name and four numbers"),
    ):
        open_session(ort_abi, Cuda, path, config={KEY: "1,stats.csv"}, fallback=True)
    gc.collect()


@pytest.mark.parametrize("file", ["none.csv", "folder", "model.onnx/stats.csv"])
def test_files_that_cannot_be_read(host: ModuleType, tmp_path: Path, file: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(weights_model())
    (tmp_path / "folder").mkdir()
    with registered(host, Cuda):
        text = ""
        try:
            open_session(host, Cuda, path, config={KEY: f"1,{file}"}, fallback=True)
        except Exception as error:
            text = str(error)
        gc.collect()
    if host is ort_abi or file != "folder":  # stock reads nothing from a folder
        assert "FAIL" in text and file in text


@pytest.mark.parametrize("setting", ["1", "x,", "-1,", "1.5,", "1,a,b", f"{2**64},", f"{2**54},"])
def test_settings_that_are_refused(setting: str) -> None:
    with registered(ort_abi, Cuda), pytest.raises(ort_abi.errors.InvalidArgument, match=KEY):
        open_session(ort_abi, Cuda, weights_model(), config={KEY: setting}, fallback=True)
    gc.collect()
