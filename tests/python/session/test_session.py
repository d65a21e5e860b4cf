"""`InferenceSession`: what it says of a model, runs, errors, providers, lifetimes, threads."""

from __future__ import annotations

import gc
import importlib.util
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from ep_support import model, mul_model, registered
from numpy.typing import NDArray
from onnx import TensorProto, helper

import ort_abi
from ort_abi import InferenceSession, OrtValue, SessionOptions, ep, errors

FLOAT = TensorProto.FLOAT
A, B = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
FEED = {"a": A, "b": B}


class MulEp(ep.ExecutionProvider):
    """Multiplies; remembers where its inputs were and which shapes it saw."""

    name = "SessionMulExecutionProvider"
    addresses: list[int] = []  # noqa: RUF012
    shapes: dict[str, Any] = {}  # noqa: RUF012
    made: list[MulEp] = []  # noqa: RUF012

    def __init__(self) -> None:
        MulEp.made.append(self)

    def get_capability(self, graph: Any) -> Any:
        """Takes Mul."""
        for node in graph.nodes:
            for value in (*node.inputs, *node.outputs):
                MulEp.shapes[value.name] = value.shape
        return super().get_capability(graph)

    @staticmethod
    @ep.kernel("Mul", (7, None))
    def mul(a: Any, b: Any) -> Any:
        """Multiplies."""
        MulEp.addresses[:] = [int(x.__array_interface__["data"][0]) for x in (a, b)]
        return a * b


@pytest.fixture
def mul_ep() -> Iterator[str]:
    """The name of a registered Python provider."""
    MulEp.made.clear()
    MulEp.shapes.clear()
    with registered(ort_abi, MulEp):
        yield MulEp.name
        MulEp.made.clear()
        gc.collect()


def chain(shape: list[Any] | None = None) -> bytes:
    """y = (a * b + a) * b, float32, without shapes between the nodes."""
    spec = (FLOAT, [3] if shape is None else shape)
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["t"], "mul1"),
        helper.make_node("Add", ["t", "a"], ["u"], "add1"),
        helper.make_node("Mul", ["u", "b"], ["y"], "mul2"),
    ]
    return model(nodes, {"a": spec, "b": spec}, {"y": spec})


# ---- What a model is ----


def test_inputs_and_outputs() -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Cast", ["n"], ["d"], to=FLOAT)]
    session = InferenceSession(
        model(
            nodes,
            {"a": (FLOAT, ["N", 2, None]), "b": (FLOAT, []), "n": (TensorProto.INT64, None)},
            {"c": (FLOAT, ["N", 2, None]), "d": (FLOAT, None)},
        )
    )
    assert [tuple(arg) for arg in session.get_inputs()] == [
        ("a", "tensor(float)", ["N", 2, None]),
        ("b", "tensor(float)", []),
        ("n", "tensor(int64)", []),
    ]
    outputs = session.get_outputs()
    assert [(arg.name, arg.type) for arg in outputs] == [("c", "tensor(float)"), ("d", "tensor(float)")]
    assert outputs[0].shape == ["N", 2, None]
    assert session.get_overridable_initializers() == []


def test_initializers_that_are_inputs_can_be_overridden() -> None:
    spec = (FLOAT, [2])
    constants = {"w": np.array([10, 20], np.float32)}
    data = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": spec, "w": spec}, {"y": spec}, constants)
    session = InferenceSession(data)
    assert [arg.name for arg in session.get_inputs()] == ["x"]
    assert [arg.name for arg in session.get_overridable_initializers()] == ["w"]
    x = np.ones(2, np.float32)
    assert session.run(None, {"x": x})[0].tolist() == [11.0, 21.0]
    assert session.run(None, {"x": x, "w": x})[0].tolist() == [2.0, 2.0]


def test_metadata() -> None:
    proto = onnx.load_from_string(mul_model())
    proto.producer_name, proto.domain, proto.doc_string, proto.model_version = "me", "a.domain", "text", 7
    proto.graph.name, proto.graph.doc_string = "the graph", "of it"
    helper.set_model_props(proto, {"k": "v", "empty": ""})
    meta = InferenceSession(proto.SerializeToString()).get_modelmeta()
    assert meta == ("me", "the graph", "a.domain", "text", "of it", 7, {"k": "v", "empty": ""})


# ---- Where a model comes from ----


def test_bytes_paths_and_path_objects(tmp_path: Path) -> None:
    path = tmp_path / "modèl.onnx"
    path.write_bytes(mul_model())
    for source in (mul_model(), str(path), path):
        assert InferenceSession(source).run(None, FEED)[0].tolist() == [4.0, 10.0, 18.0]


def test_what_is_no_model() -> None:
    with pytest.raises(TypeError, match="not int"):
        InferenceSession(3)  # type: ignore[arg-type]
    with pytest.raises(errors.NoSuchFile, match=r"/no/such/model\.onnx"):
        InferenceSession("/no/such/model.onnx")
    with pytest.raises(errors.InvalidProtobuf):
        InferenceSession(b"\xff\xff\xff")
    with pytest.raises(errors.OrtError):
        InferenceSession(b"")
    with pytest.raises(errors.OrtError):
        InferenceSession(mul_model()[:-20])
    with pytest.raises(TypeError, match="no_such_argument"):
        InferenceSession(mul_model(), no_such_argument=1)


def test_external_data_is_found_by_the_models_path(tmp_path: Path) -> None:
    spec = (FLOAT, [2000])
    nodes = [
        helper.make_node("Add", ["x", "w"], ["t"]),
        helper.make_node("Add", ["t", "w"], ["u"]),
        helper.make_node("Relu", ["u"], ["y"]),
    ]
    w = np.arange(2000, dtype=np.float32)
    proto = onnx.load_from_string(model(nodes, {"x": spec}, {"y": spec}, {"w": w}))
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert path.stat().st_size < 1000
    output = InferenceSession(path).run(None, {"x": np.ones(2000, np.float32)})[0]
    np.testing.assert_array_equal(output, 1 + 2 * w)


def test_shapes_are_inferred_before_providers_see_the_model(mul_ep: str) -> None:
    InferenceSession(chain(), providers=[mul_ep])
    assert (MulEp.shapes["t"], MulEp.shapes["u"]) == ((3,), (3,))
    MulEp.shapes.clear()
    options = SessionOptions()
    options.add_session_config_entry("session.ort_abi_shape_inference", "0")
    InferenceSession(chain(), options, providers=[mul_ep])
    assert (MulEp.shapes["t"], MulEp.shapes["u"]) == (None, None)


def test_a_models_own_shapes_are_left_alone(mul_ep: str) -> None:
    proto = onnx.load_from_string(chain())
    for name in ("t", "u"):
        proto.graph.value_info.append(helper.make_tensor_value_info(name, FLOAT, ["mine"]))
    InferenceSession(proto.SerializeToString(), providers=[mul_ep])
    assert MulEp.shapes["t"] == ("mine",)


# ---- Runs ----


def test_outputs_by_name_and_order() -> None:
    spec = (FLOAT, [3])
    nodes = [helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Sub", ["a", "b"], ["d"])]
    session = InferenceSession(model(nodes, {"a": spec, "b": spec}, {"s": spec, "d": spec}))
    both = session.run(None, FEED)
    assert [array.tolist() for array in both] == [[5.0, 7.0, 9.0], [-3.0, -3.0, -3.0]]
    assert [array.tolist() for array in session.run([], FEED)] == [array.tolist() for array in both]
    assert session.run(["d"], FEED)[0].tolist() == [-3.0, -3.0, -3.0]
    swapped = session.run(["d", "s"], FEED)
    assert [array.tolist() for array in swapped] == [both[1].tolist(), both[0].tolist()]


def test_inputs_are_not_copied(mul_ep: str) -> None:
    """Small ones are, by the provider, and so are all of its first run (decision 13)."""
    session = InferenceSession(mul_model([10_000]), providers=[mul_ep])
    feed = {name: np.ones(10_000, np.float32) for name in ("a", "b")}
    for _ in range(2):
        session.run(None, feed)
    assert MulEp.addresses == [int(array.__array_interface__["data"][0]) for array in feed.values()]


def test_arrays_of_any_layout() -> None:
    session = InferenceSession(mul_model())
    wide = np.arange(6, dtype=np.float32)
    assert session.run(None, {"a": wide[::2], "b": wide[::-2]})[0].tolist() == [0.0, 6.0, 4.0]
    read_only = A.copy()
    read_only.setflags(write=False)
    assert session.run(None, {"a": read_only, "b": B.astype(">f4")})[0].tolist() == [4.0, 10.0, 18.0]


def test_numpy_scalars_are_arrays_of_rank_0() -> None:
    spec = (FLOAT, [])
    session = InferenceSession(model([helper.make_node("Relu", ["x"], ["y"])], {"x": spec}, {"y": spec}))
    output = session.run(None, {"x": np.float32(2)})[0]
    assert (output.shape, float(output)) == ((), 2.0)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        (t, helper.np_dtype_to_tensor_dtype(np.dtype(t)))
        for t in ("int8", "uint16", "int64", "float16", "bool")
    ],
)
def test_element_types_pass_through(dtype: str, number: int) -> None:
    spec = (number, [3])
    session = InferenceSession(model([helper.make_node("Identity", ["x"], ["y"])], {"x": spec}, {"y": spec}))
    x = np.array([0, 1, 1]).astype(dtype)
    output = session.run(None, {"x": x})[0]
    assert output.dtype == x.dtype
    assert output.tolist() == x.tolist()


def test_strings_pass_through() -> None:
    spec = (TensorProto.STRING, [2])
    session = InferenceSession(model([helper.make_node("Identity", ["x"], ["y"])], {"x": spec}, {"y": spec}))
    assert session.run(None, {"x": np.array(["a", "bé"])})[0].tolist() == ["a", "bé"]


def test_an_output_does_not_share_memory_with_an_input() -> None:
    spec = (FLOAT, [3])
    for nodes in ([helper.make_node("Identity", ["x"], ["y"])], [helper.make_node("Relu", ["x"], ["y"])]):
        x = A.copy()
        output = InferenceSession(model(nodes, {"x": spec}, {"y": spec})).run(None, {"x": x})[0]
        x[:] = 0
        assert output.tolist() == A.tolist()


def test_outputs_of_two_runs_do_not_share_memory() -> None:
    session = InferenceSession(mul_model())
    first = session.run(None, FEED)[0]
    second = session.run(None, {"a": B, "b": B})[0]
    assert first.tolist() == [4.0, 10.0, 18.0]
    second[:] = 0
    assert session.run(None, FEED)[0].tolist() == first.tolist()


def test_empty_tensors_run() -> None:
    session = InferenceSession(mul_model(["N"]))  # type: ignore[list-item]
    output = session.run(None, {name: np.zeros(0, np.float32) for name in "ab"})[0]
    assert (output.shape, output.dtype) == ((0,), np.float32)


def test_missing_inputs_are_named_as_onnxruntime_does() -> None:
    session = InferenceSession(mul_model())
    with pytest.raises(ValueError, match=r"Required inputs \(\['b'\]\) are missing .* \(\['a'\]\)"):
        session.run(None, {"a": A})


WRONG: dict[str, tuple[dict[str, Any], list[str] | None, type[Exception], str]] = {
    "extra input": ({**FEED, "zz": A}, None, errors.InvalidArgument, "'?zz'?"),
    "unknown output": (FEED, ["q"], errors.InvalidArgument, "'?q'?"),
    "element type": ({"a": A.astype(np.int32), "b": B}, None, errors.InvalidArgument, "int32.*float"),
    "rank": ({"a": A.reshape(1, 3), "b": B}, None, errors.InvalidArgument, "'?a'?"),
    "size": ({"a": A, "b": np.ones(4, np.float32)}, None, errors.InvalidArgument, "'?b'?.*4.*3"),
    "tuple": ({"a": (1.0, 2.0, 3.0), "b": B}, None, TypeError, "input 'a' must be a NumPy array.*tuple"),
    "none": ({"a": None, "b": B}, None, TypeError, "input 'a' .*NoneType"),
    "dtype": ({"a": np.zeros(3, "datetime64[s]"), "b": B}, None, TypeError, "input 'a'.*M8"),
    "mixed": ({"a": np.array(["x", 1], object), "b": B}, None, TypeError, "input 'a'.*str or bytes, not int"),
    "nul": (FEED, ["y\0"], ValueError, "NUL"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls_name_what_is_wrong_and_change_nothing(case: str) -> None:
    feed, names, kind, message = WRONG[case]
    session = InferenceSession(mul_model())
    with pytest.raises(kind, match=message):
        session.run(names, feed)
    assert session.run(None, FEED)[0].tolist() == [4.0, 10.0, 18.0]


def test_ort_values_in_and_out() -> None:
    session = InferenceSession(mul_model())
    values = {name: OrtValue.ortvalue_from_numpy(array) for name, array in FEED.items()}
    output = session.run_with_ort_values(None, values)[0]
    assert isinstance(output, OrtValue)
    assert (output.data_type(), output.numpy().tolist()) == ("tensor(float)", [4.0, 10.0, 18.0])
    assert session.run(["y"], {"a": values["a"], "b": B})[0].tolist() == [4.0, 10.0, 18.0]


# ---- Bindings ----


def test_bound_inputs_and_outputs() -> None:
    session = InferenceSession(mul_model())
    binding = session.io_binding()
    a = A.copy()
    binding.bind_cpu_input("a", a)
    binding.bind_ortvalue_input("b", OrtValue.ortvalue_from_numpy(B))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [4.0, 10.0, 18.0]
    a[:] = 1
    session.run_with_iobinding(binding)
    assert binding.get_outputs()[0].numpy().tolist() == B.tolist()


def test_bound_memory_is_used() -> None:
    session = InferenceSession(mul_model())
    binding = session.io_binding()
    target = np.zeros(3, np.float32)
    other = np.zeros(3, np.float32)
    address = A.__array_interface__["data"][0]
    binding.bind_input("a", "cpu", 0, np.float32, [3], address)
    binding.bind_cpu_input("b", B)
    binding.bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(target))
    session.run_with_iobinding(binding)
    assert target.tolist() == [4.0, 10.0, 18.0]
    binding.bind_output("y", "cpu", 0, np.float32, [3], other.__array_interface__["data"][0])
    session.run_with_iobinding(binding)
    assert other.tolist() == target.tolist()
    binding.synchronize_inputs()
    binding.synchronize_outputs()


def test_bindings_keep_what_is_bound_alive() -> None:
    session = InferenceSession(mul_model())
    binding = session.io_binding()
    arrays = [np.full(3, 3, np.float32) for _ in range(3)]
    alive = [weakref.ref(array) for array in arrays]
    binding.bind_cpu_input("a", arrays[0])
    binding.bind_cpu_input("b", arrays[1])
    binding.bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(arrays[2]))
    arrays.clear()
    gc.collect()
    assert all(array() is not None for array in alive)
    session.run_with_iobinding(binding)
    outputs = binding.get_outputs()
    del binding, session
    gc.collect()
    assert alive[2]() is not None
    assert outputs[0].numpy().tolist() == [9.0] * 3
    outputs.clear()
    gc.collect()
    assert all(array() is None for array in alive)


def test_cleared_bindings_are_gone() -> None:
    session = InferenceSession(mul_model())
    binding = session.io_binding()
    for name, array in FEED.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("y")
    binding.clear_binding_inputs()
    with pytest.raises(errors.OrtError):
        session.run_with_iobinding(binding)
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []


def test_wrong_bindings_are_named() -> None:
    session, other = InferenceSession(mul_model()), InferenceSession(mul_model())
    binding = session.io_binding()
    with pytest.raises(errors.InvalidArgument, match="zz"):
        binding.bind_cpu_input("zz", A)
    with pytest.raises(errors.InvalidArgument, match="zz"):
        binding.bind_output("zz")
    with pytest.raises(ValueError, match="needs an element type and a shape"):
        binding.bind_output("y", buffer_ptr=1)
    with pytest.raises(ValueError, match="session that made it"):
        other.run_with_iobinding(binding)


# ---- Providers ----


def test_providers_by_name_with_options(mul_ep: str) -> None:
    session = InferenceSession(mul_model(), providers=[(mul_ep, {"key": 1}), "CPUExecutionProvider"])
    assert session.get_providers() == [mul_ep, "CPUExecutionProvider"]
    assert session.get_provider_options() == {mul_ep: {"key": "1"}, "CPUExecutionProvider": {}}
    assert MulEp.made[0].options == {"key": "1"}
    session = InferenceSession(mul_model(), providers=[mul_ep], provider_options=[{"key": 2}])
    assert MulEp.made[-1].options == {"key": "2"}
    assert {step.ep_name for step in session.assignment()} == {mul_ep}


def test_wrong_providers_are_named(mul_ep: str) -> None:
    with pytest.raises(ValueError, match=r"'Nowhere' is not registered; there are .*CPUExecutionProvider"):
        InferenceSession(mul_model(), providers=["Nowhere"])
    with pytest.raises(ValueError, match="not one string"):
        InferenceSession(mul_model(), providers=mul_ep)
    with pytest.raises(ValueError, match="1 providers and 2 provider_options"):
        InferenceSession(mul_model(), providers=[mul_ep], provider_options=[{}, {}])
    with pytest.raises(ValueError, match="without providers"):
        InferenceSession(mul_model(), provider_options=[{}])
    with pytest.raises(ValueError, match="names only"):
        InferenceSession(mul_model(), providers=[(mul_ep, {})], provider_options=[{}])
    with pytest.raises(ValueError, match="not 3"):
        InferenceSession(mul_model(), providers=[3])  # type: ignore[list-item]


def test_arguments_win_over_options_with_a_warning(mul_ep: str) -> None:
    options = SessionOptions()
    options.add_provider(mul_ep, {})
    with pytest.warns(UserWarning, match="ignored"):
        session = InferenceSession(mul_model(), options, providers=["CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert InferenceSession(mul_model(), options).get_providers()[0] == mul_ep


def test_nodes_go_to_the_first_provider_that_takes_them(mul_ep: str) -> None:
    session = InferenceSession(chain(), providers=[mul_ep])
    assert [(step.ep_name, step.op_type) for step in session.assignment()] == [
        (mul_ep, "Mul"),
        ("CPUExecutionProvider", "Add"),
        (mul_ep, "Mul"),
    ]
    np.testing.assert_array_equal(session.run(None, FEED)[0], (A * B + A) * B)


@pytest.mark.parametrize("how", ["argument", "config"])
def test_without_fallback_an_unclaimed_node_is_an_error_that_names_it(mul_ep: str, how: str) -> None:
    options = SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", str(int(how == "config")))
    with pytest.raises(errors.Fail, match=r"'add1' .*Add"):
        InferenceSession(chain(), options, providers=[mul_ep], fallback=how == "config")
    session = InferenceSession(mul_model(), options, providers=[mul_ep], fallback=how == "config")
    assert session.get_providers() == [mul_ep]


def test_what_the_cpu_lacks_goes_to_the_reference(mul_ep: str) -> None:
    spec = (FLOAT, [3])
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["t"]),
        helper.make_node("Add", ["t", "a"], ["u"]),
        helper.make_node("Celu", ["u"], ["y"]),
    ]
    data = model(nodes, {"a": spec, "b": spec}, {"y": spec})
    session = InferenceSession(data, providers=[mul_ep])
    providers = [mul_ep, "CPUExecutionProvider", "ReferenceExecutionProvider"]
    assert session.get_providers() == providers
    assert [step.ep_name for step in session.assignment()] == providers
    np.testing.assert_allclose(session.run(None, FEED)[0], A * B + A, rtol=1e-6)


def test_without_the_onnx_package_there_is_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = (FLOAT, [3])
    data = model([helper.make_node("Celu", ["x"], ["y"], "the_node")], {"x": spec}, {"y": spec})
    assert InferenceSession(data).get_providers()[-1] == "ReferenceExecutionProvider"
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnx" else found(name))
    with pytest.raises(errors.NotImplemented, match=r"the_node.*Celu"):
        InferenceSession(data)
    assert InferenceSession(chain()).run(None, FEED)[0].shape == (3,)


def test_what_nobody_has_is_named() -> None:
    spec = (FLOAT, [3])
    nodes = [helper.make_node("NoSuchOp", ["a"], ["y"], "the_node", domain="my.domain")]
    data = model(nodes, {"a": spec}, {"y": spec}, domains={"my.domain": 3})
    with pytest.raises(errors.NotImplemented, match=r"the_node.*NoSuchOp.*my\.domain"):
        InferenceSession(data)


# ---- The plan ----


def test_assignment_and_timing(mul_ep: str) -> None:
    session = InferenceSession(chain(), providers=[mul_ep])
    session.run(None, FEED)
    assert [(step.runs, step.nanoseconds) for step in session.assignment()] == [(0, 0)] * 3
    session.set_timing(True)
    for _ in range(3):
        session.run(None, FEED)
    session.set_timing(False)
    session.run(None, FEED)
    steps = session.assignment()
    assert [step.node_name for step in steps] == ["mul1", "add1", "mul2"]
    assert [step.original_nodes for step in steps] == [1, 1, 1]
    assert [step.runs for step in steps] == [3, 3, 3]
    assert all(step.nanoseconds > 0 for step in steps)


def test_assignment_as_onnxruntime_tells_it(mul_ep: str) -> None:
    options = SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = InferenceSession(chain(), options, providers=[mul_ep])
    found = {
        (graph.ep_name, node.name, node.op_type)
        for graph in session.get_provider_graph_assignment_info()
        for node in graph.get_nodes()
    }
    assert found == {
        (mul_ep, "mul1", "Mul"),
        ("CPUExecutionProvider", "add1", "Add"),
        (mul_ep, "mul2", "Mul"),
    }
    with pytest.raises(errors.OrtError, match="record_ep_graph_assignment_info"):
        InferenceSession(chain()).get_provider_graph_assignment_info()


# ---- Lifetimes ----


def test_close_and_with() -> None:
    with InferenceSession(mul_model()) as session:
        output = session.run(None, FEED)[0]
    session.close()
    for use in (
        lambda: session.run(None, FEED),
        session.io_binding,
        session.assignment,
        session.get_modelmeta,
    ):
        with pytest.raises(RuntimeError, match="closed"):
            use()
    assert output.tolist() == [4.0, 10.0, 18.0]
    assert [arg.name for arg in session.get_inputs()] == ["a", "b"]


def test_a_binding_keeps_the_session_and_an_output_does_not_need_it(mul_ep: str) -> None:
    session = InferenceSession(mul_model(), providers=[mul_ep])
    made = weakref.ref(MulEp.made.pop())
    view = session.run(None, FEED)[0][1:]
    value = session.run_with_ort_values(
        None, {name: OrtValue.ortvalue_from_numpy(array) for name, array in FEED.items()}
    )[0]
    binding = session.io_binding()
    session.close()
    gc.collect()
    assert made() is not None
    del binding
    gc.collect()
    assert made() is None
    del session
    noise = [np.full(3, 1, np.float32) for _ in range(50)]
    assert view.tolist() == [10.0, 18.0]
    assert value.numpy().tolist() == [4.0, 10.0, 18.0]
    assert len(noise) == 50


def test_a_failed_session_leaves_nothing_behind(mul_ep: str) -> None:
    for _ in range(3):
        with pytest.raises(errors.Fail):
            InferenceSession(chain(), providers=[mul_ep], fallback=False)
    made = [weakref.ref(item) for item in MulEp.made]
    MulEp.made.clear()
    gc.collect()
    assert len(made) == 3
    assert all(item() is None for item in made)


def test_model_bytes_may_go_away() -> None:
    spec = (FLOAT, [1000])
    w = np.arange(1000, dtype=np.float32)
    data = bytearray(model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": spec}, {"y": spec}, {"w": w}))
    session = InferenceSession(bytes(data))
    gc.collect()
    noise = [bytes([255]) * len(data) for _ in range(20)]
    np.testing.assert_array_equal(session.run(None, {"x": w})[0], w + w)
    assert len(noise) == 20


# ---- Threads ----


def in_threads(count: int, work: Callable[[int], NDArray[Any]]) -> list[NDArray[Any]]:
    """Runs `work` in threads that start together."""
    barrier = threading.Barrier(count)

    def together(index: int) -> NDArray[Any]:
        barrier.wait()
        return work(index)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(together, range(count)))


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", MulEp.name])
def test_one_session_in_many_threads(mul_ep: str, provider: str) -> None:
    session = InferenceSession(chain(["N"]), providers=[provider])

    def work(index: int) -> NDArray[Any]:
        x = np.full(index + 1, index, np.float32)
        for _ in range(200):
            output = session.run(None, {"a": x, "b": x})[0]
            assert output.tolist() == [(index * index + index) * index] * (index + 1)
        return x

    assert len(in_threads(8, work)) == 8


def test_sessions_made_in_many_threads(mul_ep: str) -> None:
    def work(index: int) -> NDArray[Any]:
        for _ in range(10):
            session = InferenceSession(chain(), providers=[mul_ep])
            output: NDArray[Any] = session.run(None, FEED)[0]
        return output

    for output in in_threads(6, work):
        np.testing.assert_array_equal(output, (A * B + A) * B)


def test_a_session_closed_by_another_thread_finishes_its_run(mul_ep: str) -> None:
    session = InferenceSession(mul_model(), providers=[mul_ep])
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                assert session.run(None, FEED)[0].tolist() == [4.0, 10.0, 18.0]
        except RuntimeError as error:
            if "closed" not in str(error):
                failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    session.close()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
