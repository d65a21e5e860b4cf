"""If, Loop and Scan whose kernels the host makes: on our host and in stock onnxruntime, against the ONNX
reference and stock's own kernels."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from ep_support import open_session, registered
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

import ort_abi
from tests.support import virtual_device
from tests.support.cpu_ep import Host, OurHost, StockHost, build_plugin
from tests.support.models import generated_models

Array = NDArray[Any]
Feeds = dict[str, Array]

HEADER = '<ir_version: 8, opset_import: ["" : 18]>\n'


@pytest.fixture(scope="module", params=["ours", "stock"])
def ep_host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Both hosts, with every node on our CPU EP: in stock onnxruntime it is a plugin library."""
    if request.param == "ours":
        yield OurHost()
        return
    stock = StockHost(build_plugin(tmp_path_factory.mktemp("plugin") / "libcpu_ep.so"))
    yield stock
    stock.close()


def parse(text: str) -> onnx.ModelProto:
    """The model of an ONNX text."""
    return onnx.parser.parse_model(HEADER + text)


def floats(*shape: int) -> Array:
    """Numbers from 1 on."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def scalar(value: bool | int | float, dtype: Any) -> Array:
    """A tensor without dimensions."""
    return np.array(value, dtype)


BRANCHES = """
g (bool c, float[N] x, float[1] w) => (float[M] y, float[K] z, float[1] k)
<float[1] w = {3}>
{
  [choice] y, z, k = If (c) <
    then_branch = then_graph () => (float[N] a, float[N] b, float[1] d) {
      one = Constant <value = float[1] {1}> ()
      a = Add (x, one)
      b = Identity (x)
      d = Constant <value = float[1] {7}> ()
    },
    else_branch = else_graph () => (float[P] e, float[N] f, float[1] h) {
      e = Concat <axis = 0> (x, w)
      f = Mul (x, w)
      h = Identity (w)
    }>
}"""

COUNT = """
g (int64 most, bool start, float[3] x) => (float[3] last, float[T, 3] each, int64[T] numbers)
{
  [loop] last, each, numbers = Loop (most, start, x) <
    body = b (int64 i, bool go, float[3] v) => (bool on, float[3] next, float[3] seen, int64 number) {
      limit = Constant <value = float {20}> ()
      next = Add (v, x)
      sum = ReduceSum <keepdims = 0> (next)
      on = Less (sum, limit)
      seen = Mul (next, next)
      number = Identity (i)
    }>
}"""

UNTIL = """
g (float[1] x) => (float[1] y)
{
  [loop] y = Loop (, , x) <
    body = b (int64 i, bool go, float[1] v) => (bool on, float[1] next) {
      limit = Constant <value = float[1] {100}> ()
      axes = Constant <value = int64[1] {0}> ()
      next = Add (v, v)
      small = Less (next, limit)
      on = Squeeze (small, axes)
    }>
}"""

GROWING = """
g (int64 most, float[N] x) => (float[P] y)
{
  [loop] y = Loop (most, , x) <
    body = b (int64 i, bool go, float[Q] v) => (bool go_on, float[R] next) {
      go_on = Identity (go)
      next = Concat <axis = 0> (v, x)
    }>
}"""

SWAPPING = """
g (int64 most, float[2] x, float[2] y) => (float[2] p, float[2] q, float[2] r, float[T, 2] seen)
{
  [loop] p, q, r, seen = Loop (most, , x, y, x) <
    body = b (int64 i, bool go, float[2] u, float[2] v, float[2] s) =>
        (bool go, float[2] v, float[2] w, float[2] w2, float[2] u) {
      w = Add (u, v)
      w2 = Identity (w)
    }>
}"""

NESTED = """
g (int64 most, bool outer, float[2] x) => (float[2] y)
{
  two = Constant <value = float[1] {2}> ()
  shifted = Add (x, two)
  [outer_if] y = If (outer) <
    then_branch = t () => (float[2] a) {
      inside = Mul (x, two)
      start = Identity (x)
      [loop] a = Loop (most, , start) <
        body = b (int64 i, bool go, float[2] v) => (bool go_on, float[2] next) {
          go_on = Identity (go)
          zero = Constant <value = int64 {0}> ()
          first = Equal (i, zero)
          [inner_if] next = If (first) <
            then_branch = tt () => (float[2] n1) {
              t1 = Add (shifted, inside)
              n1 = Add (t1, two)
            },
            else_branch = ee () => (float[2] n2) { n2 = Add (v, shifted) }
          >
        }>
    },
    else_branch = e () => (float[2] c) { c = Identity (shifted) }
  >
}"""

SCANNED = """
g (float[2] s, float[2, L] x, float[L, 2] y) => (float[2] last, float[2, L] p, float[L, 2] q)
{
  [scan] last, p, q = Scan (s, x, y) <
    num_scan_inputs = 2, scan_input_axes = [1, -2], scan_input_directions = [0, 1],
    scan_output_axes = [-1, 0], scan_output_directions = [0, 1],
    body = b (float[2] v, float[2] a, float[2] c) => (float[2] next, float[2] sum, float[2] same) {
      same = Identity (a)
      sum = Add (a, c)
      next = Add (v, sum)
    }>
}"""


def loop_feeds(most: int, start: bool) -> Feeds:
    """What COUNT takes."""
    return {"most": scalar(most, np.int64), "start": scalar(start, np.bool_), "x": floats(3)}


def nested_feeds(most: int, outer: bool) -> Feeds:
    """What NESTED takes."""
    return {"most": scalar(most, np.int64), "outer": scalar(outer, np.bool_), "x": floats(2)}


CASES: dict[str, tuple[str, list[Feeds]]] = {
    "if": (
        BRANCHES,
        [
            {"c": scalar(True, np.bool_), "x": floats(4)},
            {"c": scalar(False, np.bool_), "x": floats(4)},
            {"c": scalar(False, np.bool_), "x": floats(1), "w": np.array([5], np.float32)},
        ],
    ),
    "loop": (
        COUNT,
        [loop_feeds(n, True) for n in (0, 1, 2, 9)] + [loop_feeds(5, False), loop_feeds(-1, True)],
    ),
    "loop_without_limits": (UNTIL, [{"x": floats(1)}, {"x": np.array([99], np.float32)}]),
    "growing": (
        GROWING,
        [
            {"most": scalar(3, np.int64), "x": floats(2)},
            {"most": scalar(0, np.int64), "x": floats(2)},
            {"most": scalar(2, np.int64), "x": floats(0)},
        ],
    ),
    "nested": (NESTED, [nested_feeds(n, outer) for n in (0, 1, 4) for outer in (True, False)]),
    "swapping": (
        SWAPPING,
        [{"most": scalar(n, np.int64), "x": floats(2), "y": floats(2) * 10} for n in (0, 1, 2, 5)],
    ),
    "scan": (
        SCANNED,
        [{"s": floats(2), "x": floats(2, n), "y": floats(n, 2) * 10} for n in (1, 3)],
    ),
}


def assert_equal(actual: list[Array], expected: list[Array]) -> None:
    """Same shapes, types and values."""
    assert len(actual) == len(expected)
    for got, wanted in zip(actual, expected, strict=True):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("case", CASES)
def test_equals_stock(ep_host: Host, case: str) -> None:
    """Every run gives what stock's own kernels give, bit for bit."""
    text, runs = CASES[case]
    model = parse(text)
    session = ep_host.session(model)
    stock = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for feeds in runs:
        assert_equal(session.run(None, feeds), stock.run(None, feeds))


def reference_count(most: int, x: Array) -> list[Array]:
    """What COUNT means, in Python."""
    value = x
    seen: list[Array] = []
    while len(seen) < most and (not seen or value.sum() < 20):
        value = value + x
        seen.append(value * value)
    return [value, np.array(seen, np.float32).reshape(-1, 3), np.arange(len(seen))]


@pytest.mark.parametrize("most", [0, 1, 2, 9])
def test_loop_means_what_it_says(most: int) -> None:
    """Trip count and early stop, carried values and stacked ones, against the same loop in Python."""
    actual = OurHost().session(parse(COUNT)).run(None, loop_feeds(most, True))
    assert_equal(actual, reference_count(most, floats(3)))


def test_scan_of_nothing() -> None:
    """No iteration: states go through, stacked outputs are empty along their axis. (Stock crashes on it.)"""
    feeds = {"s": floats(2), "x": floats(2, 0), "y": floats(0, 2)}
    actual = OurHost().session(parse(SCANNED)).run(None, feeds)
    assert_equal(actual, [floats(2), floats(2, 0), floats(0, 2)])


ONNX_CASES = ["test_if", "test_loop11", "test_scan9_sum", "test_scan9_multi_state", "test_scan9_scalar"]


@pytest.fixture(scope="module")
def onnx_models() -> dict[str, onnx.ModelProto]:
    """The models of the ONNX test suite that have control flow and tensors only."""
    return {name: model for name, model in generated_models() if name in [*ONNX_CASES, "test_if_seq"]}


@pytest.mark.parametrize("name", ONNX_CASES)
def test_onnx_suite(ep_host: Host, onnx_models: dict[str, onnx.ModelProto], name: str) -> None:
    """The models of the ONNX test suite, with other numbers than theirs, against stock and, where it can run
    them (a loop that never iterates it cannot), the ONNX reference."""
    model = onnx_models[name]
    random = np.random.default_rng(1)
    reference = ReferenceEvaluator(model)
    session = ep_host.session(model)
    stock = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for _ in range(3):
        feeds: Feeds = {}
        for value in model.graph.input:
            tensor = value.type.tensor_type
            shape = [dim.dim_value for dim in tensor.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            feeds[value.name] = random.integers(0, 2 if dtype == np.bool_ else 5, shape).astype(dtype)
        if name == "test_loop11":
            feeds["cond"] = scalar(True, np.bool_)
            feeds["trip_count"] = scalar(int(random.integers(1, 6)), np.int64)
        actual = session.run(None, feeds)
        assert_equal(actual, stock.run(None, feeds))
        for got, wanted in zip(actual, reference.run(None, feeds), strict=True):
            np.testing.assert_array_equal(got.squeeze(), np.squeeze(wanted))


TYPES = ["float16", "double", "bfloat16", "int8", "int64", "uint16", "bool"]


@pytest.mark.parametrize("name", TYPES)
def test_element_types(name: str) -> None:
    """Loop, If and Scan carry every type that the EP takes, as it is."""
    text = f"""
g (int64 most, bool c, {name}[2, 2] x) => ({name}[2, 2] y, {name}[T, 2, 2] z, {name}[2, 2] v, {name}[2, 2] w)
{{
  y, z = Loop (most, c, x) <
    body = b (int64 i, bool go, {name}[2, 2] a) => (bool on, {name}[2, 2] n, {name}[2, 2] m) {{
      on = Identity (go)
      n = Transpose (a)
      m = Identity (a)
    }}>
  v = If (c) <then_branch = t () => ({name}[2, 2] p) {{ p = Identity (x) }},
              else_branch = e () => ({name}[2, 2] q) {{ q = Transpose (x) }}>
  w = Scan (x) <num_scan_inputs = 1, scan_output_axes = [1],
    body = s ({name}[2] k) => ({name}[2] l) {{ l = Identity (k) }}>
}}"""
    model = parse(text)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(getattr(onnx.TensorProto, name.upper()))
    x = np.array([[0, 1], [1, 1]]).astype(dtype)
    session = OurHost().session(model)
    y, z, v, w = session.run(None, {"most": scalar(3, np.int64), "c": scalar(True, np.bool_), "x": x})
    for got, wanted in ((y, x.T), (z, np.stack([x, x.T, x])), (v, x), (w, x.T)):
        assert got.dtype == dtype and got.tobytes() == np.ascontiguousarray(wanted).tobytes()


def test_strings() -> None:
    """Strings go through If and Loop, one by one into what Loop stacks."""
    model = parse("""
g (int64 most, bool c, string[2] x) => (string[2] y, string[2] z, string[T, 2] s)
{
  y = If (c) <then_branch = t () => (string[2] x) { },
              else_branch = e () => (string[2] k) { k = Constant <value = string[2] {"p", "q"}> () }>
  z, s = Loop (most, c, x) <
    body = b (int64 i, bool go, string[2] a) => (bool go, string[2] a, string[2] x) { }>
}""")
    session = OurHost().session(model)
    x = np.array(["one", "a longer text than fits anywhere"], object)
    for c in (True, False):
        feeds = {"most": scalar(2, np.int64), "c": scalar(c, np.bool_), "x": x}
        y, z, s = session.run(None, feeds)
        assert y.tolist() == (x.tolist() if c else ["p", "q"])
        assert z.tolist() == x.tolist()
        assert s.tolist() == ([x.tolist()] * 2 if c else [])


# ---- Failures ----

FAILING = """
g (int64 most, float[3] x) => (float[3] last)
{
  [loop] last = Loop (most, , x) <
    body = b (int64 i, bool go, float[3] v) => (bool on, float[3] next) {
      on = Identity (go)
      [pick] picked = Gather (x, i)
      next = Add (v, picked)
    }>
}"""


def test_a_failing_iteration_is_named() -> None:
    """The message has the node, its EP, the iteration and the node in the body; the next run is right."""
    session = OurHost().session(parse(FAILING))
    for most, fails_at in ((3, None), (9, 3), (2, None)):
        feeds = {"most": scalar(most, np.int64), "x": floats(3)}
        if fails_at is None:
            expected = floats(3) + sum(range(1, most + 1))
            np.testing.assert_array_equal(session.run(None, feeds)[0], expected)
            continue
        with pytest.raises(ort_abi.errors.OrtError) as caught:
            session.run(None, feeds)
        message = str(caught.value)
        for part in (
            "'loop' (Loop, ai.onnx, version 16)",
            "iteration 3",
            "'pick' (Gather",
            "CPUExecutionProvider",
        ):
            assert part in message


def test_scan_outputs_of_different_shapes() -> None:
    """Loop and Scan stack values of one shape; the iteration that breaks the rule is named."""
    loop = parse("""
g (int64 most, float[N] x) => (float[P] y, float[T, Q] z)
{
  [loop] y, z = Loop (most, , x) <
    body = b (int64 i, bool go, float[Q] v) => (bool on, float[R] next, float[R] out) {
      on = Identity (go)
      next = Concat <axis = 0> (v, x)
      out = Identity (next)
    }>
}""")
    scan = parse("""
g (float[N] x, float[L] y) => (float[P] z, float[L, Q] all)
{
  [scan] z, all = Scan (x, y) <num_scan_inputs = 1,
    body = b (float[Q] v, float item) => (float[R] next, float[R] out) {
      next = Concat <axis = 0> (v, x)
      out = Identity (next)
    }>
}""")
    feeds: Feeds = {"most": scalar(2, np.int64), "x": floats(2)}
    with pytest.raises(ort_abi.errors.OrtError, match=r"iteration 1 makes 'out' as float\[6\]"):
        OurHost().session(loop).run(None, feeds)
    with pytest.raises(ort_abi.errors.OrtError, match="iteration 1: scan output 0 has another shape"):
        OurHost().session(scan).run(None, {"x": floats(2), "y": floats(3)})


@pytest.mark.parametrize(
    "change, message",
    [
        ({"y": floats(4, 2)}, "scan input 1 has 4 items, those before it have 3"),
        ({"x": floats(2, 4)}, "scan input 1 has 3 items, those before it have 4"),
    ],
)
def test_scan_lengths_differ(change: Feeds, message: str) -> None:
    """All scanned inputs have as many items."""
    feeds = {"s": floats(2), "x": floats(2, 3), "y": floats(3, 2), **change}
    with pytest.raises(ort_abi.errors.OrtError, match=message):
        OurHost().session(parse(SCANNED)).run(None, feeds)


def test_a_condition_of_several_elements() -> None:
    """The condition is one boolean."""
    model = parse("""
g (bool[N] c, float[1] x) => (float[1] y)
{
  [choice] y = If (c) <then_branch = t () => (float[1] p) { p = Add (x, x) },
                       else_branch = e () => (float[1] q) { q = Mul (x, x) }>
}""")
    with pytest.raises(ort_abi.errors.OrtError, match=r"'choice' .*the condition must be one bool"):
        OurHost().session(model).run(None, {"c": np.array([True, False]), "x": floats(1)})


def test_scan_8_has_no_kernel() -> None:
    """As in stock: EPs get no kernels for the Scan that works on batches."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 8]>
g (float[1, 2] s, float[1, 3, 2] x) => (float[1, 2] y)
{
  y = Scan (, s, x) <num_scan_inputs = 1,
    body = b (float[2] v, float[2] a) => (float[2] next) { next = Add (v, a) }>
}""")
    with pytest.raises(ort_abi.errors.OrtError, match=r"takes 1 node(?s:.)*\(Scan, ai.onnx, version 8\)"):
        OurHost().session(model)


def test_bodies_with_other_values_than_tensors(onnx_models: dict[str, onnx.ModelProto]) -> None:
    """The CPU EP leaves them to providers that take the node whole: what is inside is what nobody has."""
    inside = parse("""
g (bool c, float[2] x) => (float[2] y)
{
  y = If (c) <then_branch = t () => (float[2] p) {
                list = SequenceConstruct (x, x)
                first = Constant <value = int64 {0}> ()
                p = SequenceAt (list, first)
              },
              else_branch = e () => (float[2] q) { q = Add (x, x) }>
}""")
    for model in (onnx_models["test_if_seq"], inside):
        with pytest.raises(ort_abi.errors.OrtError, match=r"\(SequenceConstruct, .*\) in then_branch of"):
            OurHost().session(model)


# ---- Around a run ----

ENDLESS = {
    "loop": """
g (float[1] x) => (float[1] y)
{
  [turning] y = Loop (, , x) <
    body = b (int64 i, bool go, float[1] v) => (bool go, float[1] w) { w = Neg (v) }>
}""",
    "scan": """
g (float[9] x) => (float[9] y)
{
  [turning] y = Scan (x) <num_scan_inputs = 1, body = b (float v) => (float w) { w = Neg (v) }>
}""",
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_terminate_ends_a_loop(kind: str) -> None:
    """A run that is told to stop within an iteration makes no other one."""
    options = ort_abi.RunOptions()
    calls: list[Array] = []

    class Stops(ort_abi.ep.ExecutionProvider):
        name = "StopsExecutionProvider"

        @ort_abi.ep.kernel("Neg", (6, None), types={"T": [np.float32]})
        def neg(x: Array) -> Array:
            calls.append(x.copy())
            if len(calls) == 3:
                options.terminate = True
            return -x

    with registered(ort_abi, Stops):
        session = open_session(ort_abi, Stops, parse(ENDLESS[kind]).SerializeToString(), fallback=True)
        with pytest.raises(ort_abi.errors.OrtError) as caught:
            session.run(None, {"x": floats(9 if kind == "scan" else 1)}, options)
        message = str(caught.value)
        del session, caught
        gc.collect()
    assert "'turning'" in message and "iteration 3: Exiting due to terminate flag" in message
    assert "before node" not in message  # the kernel noticed, and not the body's first node
    assert len(calls) == 3


def test_threads() -> None:
    """Eight threads run one session, each with another number of iterations, and get their own results."""
    session = OurHost().session(parse(COUNT))
    nested = OurHost().session(parse(NESTED))
    jobs = [(most, start) for most in range(7) for start in (True, False)] * 8
    expected = {job: session.run(None, loop_feeds(*job)) for job in jobs}
    expected_nested = {job: nested.run(None, nested_feeds(*job)) for job in jobs}

    def work(job: tuple[int, bool]) -> None:
        assert_equal(session.run(None, loop_feeds(*job)), expected[job])
        assert_equal(nested.run(None, nested_feeds(*job)), expected_nested[job])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, jobs))


def test_results_outlive_the_session() -> None:
    """What comes out of a body belongs to the caller: neither constants nor the memory of runs are in it."""
    for text, feeds, later in (
        (COUNT, loop_feeds(2, True), loop_feeds(9, True)),
        (BRANCHES, CASES["if"][1][0], CASES["if"][1][1]),
    ):
        session = OurHost().session(parse(text))
        assert isinstance(session, ort_abi.InferenceSession)
        first = session.run(None, feeds)
        copies = [value.copy() for value in first]
        session.run(None, later)
        assert_equal(first, copies)
        for value in first:
            value[...] = 0
        assert_equal(session.run(None, feeds), copies)
        last = session.run(None, feeds)
        session.close()
        assert_equal(last, copies)


def test_bodies_may_be_of_several_providers() -> None:
    """If and Loop on the C CPU EP, an operator in a body that only the Python reference has."""
    model = parse("""
g (int64 most, bool c, float[3] x) => (float[3] y)
{
  [choice] y = If (c) <
    then_branch = t () => (float[3] r) {
      [loop] r = Loop (most, c, x) <
        body = b (int64 i, bool go, float[3] v) => (bool on, float[3] next) {
          on = Identity (go)
          turned = Cos (v)
          next = Add (turned, x)
        }>
    },
    else_branch = e () => (float[3] q) { q = Sin (x) }>
}""")
    session = ort_abi.InferenceSession(model.SerializeToString())
    stock = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert [(step.ep_name, step.op_type) for step in session.assignment()] == [("CPUExecutionProvider", "If")]
    for c in (True, False):
        feeds = {"most": scalar(4, np.int64), "c": scalar(c, np.bool_), "x": floats(3)}
        np.testing.assert_allclose(session.run(None, feeds)[0], stock.run(None, feeds)[0], rtol=1e-6)


ON_DEVICE = """
g (int64 most, bool c, float[2, 3] x) => (float[2, 3] y, float[T, 2, 3] all)
{
  shifted = Add (x, x)
  y, all = Loop (most, c, shifted) <
    body = b (int64 i, bool go, float[2, 3] v) => (bool go, float[2, 3] next, float[2, 3] relu) {
      product = Mul (v, shifted)
      sum = Add (product, x)
      relu = Relu (sum)
      next = If (go) <then_branch = t () => (float[2, 3] p) { p = Add (v, relu) },
                      else_branch = e () => (float[2, 3] q) { q = Mul (v, relu) }>
    }>
}"""


def test_bodies_on_a_device(tmp_path: Path) -> None:
    """Nodes in bodies run on a device; what they capture and what is carried is copied there and back."""
    library = virtual_device.build(tmp_path)
    ort_abi.register_execution_provider_library("virtual", library)
    control = virtual_device.control_of(library)
    devices = [device for device in ort_abi.get_ep_devices() if device.ep_name == virtual_device.EP_NAME]
    options = ort_abi.SessionOptions()
    options.add_provider_for_devices(devices, {})
    session = ort_abi.InferenceSession(parse(ON_DEVICE).SerializeToString(), options)
    x = floats(2, 3) / 8
    for most in (0, 1, 4):
        counted = virtual_device.Counters(control)
        feeds = {"most": scalar(most, np.int64), "c": scalar(True, np.bool_), "x": x}
        value, seen = x + x, []
        for _ in range(most):
            seen.append(np.maximum(value * (x + x) + x, 0))
            value = value + seen[-1]
        y, stacked = session.run(None, feeds)
        np.testing.assert_array_equal(y, value)
        np.testing.assert_array_equal(stacked, np.array(seen, np.float32).reshape(-1, 2, 3))
        assert counted.launches >= 1 + 2 * most
        assert counted.streams == (1 if most == 0 else 0)  # bodies work on the stream of the run around them
    session.close()
    gc.collect()
    assert control.live_chunks == 0
    ort_abi.unregister_execution_provider_library("virtual")


def test_bodies_on_the_cpu_do_not_wait_for_a_device(tmp_path: Path) -> None:
    """The device has no work in them."""
    source = """
    g (int64 most, bool c, float[2, 3] x) => (float[2, 3] y)
    {
      a = Mul (x, x)
      y = Loop (most, c, a) < body = b (int64 i, bool go, float[2, 3] v) => (bool go, float[2, 3] next) {
        next = Neg (v)
      }>
    }"""
    library = virtual_device.build(tmp_path)
    ort_abi.register_execution_provider_library("virtual", library)
    control = virtual_device.control_of(library)
    devices = [device for device in ort_abi.get_ep_devices() if device.ep_name == virtual_device.EP_NAME]
    options = ort_abi.SessionOptions()
    options.add_provider_for_devices(devices, {})
    session = ort_abi.InferenceSession(parse(source).SerializeToString(), options)
    x, flushes = floats(2, 3), []
    for most in (1, 1, 5):
        counted = virtual_device.Counters(control)
        feeds = {"most": scalar(most, np.int64), "c": scalar(True, np.bool_), "x": x}
        np.testing.assert_array_equal(session.run(None, feeds)[0], -x * x)
        flushes.append(counted.flushes)
    assert flushes[1] == flushes[2]
    session.close()
    gc.collect()
    ort_abi.unregister_execution_provider_library("virtual")


@pytest.mark.parametrize("policy", ["all", "shapes"])
def test_bodies_are_not_captured(tmp_path: Path, policy: str) -> None:
    """A device that records what it does cannot record what the host decides."""
    library = virtual_device.build(tmp_path)
    ort_abi.register_execution_provider_library("virtual", library)
    control = virtual_device.control_of(library)
    devices = [device for device in ort_abi.get_ep_devices() if device.ep_name == virtual_device.EP_NAME]
    options = ort_abi.SessionOptions()
    options.add_provider_for_devices(devices, {"graph_capture": policy})
    with pytest.raises(ort_abi.errors.Fail, match=r"(?s)capture graphs.*\(Loop, .*has subgraphs"):
        ort_abi.InferenceSession(parse(ON_DEVICE).SerializeToString(), options)
    gc.collect()
    assert control.live_chunks == 0
    ort_abi.unregister_execution_provider_library("virtual")
