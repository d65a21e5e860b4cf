"""What went wrong in public with allocators, copies and streams of plugins, one lesson a test.

Each runs with a provider in Python, in our host and in stock onnxruntime; numbers are issues and pull
requests of microsoft/onnxruntime. Where stock has the fault, that is asserted of the version that the tests
pin and of 1.24. docs/maintainer.md lists the tests in C beside these.
"""

from __future__ import annotations

import gc
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy_device
import pytest
from c_host import CHost, c_host
from device_support import (
    EXPECTED,
    FEEDS,
    SPEC,
    SPLIT_EXPECTED,
    A,
    W,
    chain,
    has_streams,
    left_nothing,
    split,
)
from ep_support import HOSTS, OLD_STOCK, model, open_session, registered, run_once
from numpy_device import NAME, VENDOR_ID, NumpyDevice, Stream, StreamAllocator, device_class
from onnx import TensorProto, helper

from ort_abi import ep, errors
from ort_abi._lib import check, ffi

OURS, STOCK = HOSTS["ours"], HOSTS["stock"]
KINDS = (0, 5)  # OrtDeviceMemoryType: default, host-accessible


def test_the_table_of_lessons_names_tests_that_are_there() -> None:
    root = Path(__file__).resolve().parents[3]
    text = (root / "docs" / "maintainer.md").read_text()
    rows = re.findall(r"^\| (#[\d, #]+): [^|]*\| ([^|]*) \| ([^|]*) \|$", text, re.M)
    assert len(rows) == 12
    mine = [name for name in globals() if name.startswith("test_")]
    for numbers, in_c, in_python in rows:
        prefix = "test_" + "_".join(re.findall(r"\d+", numbers))
        short = re.findall(r"`([\d_]+)…`", in_python)[0]
        assert any(name.startswith(prefix) for name in mine) and prefix.startswith(
            f"test_{short}".rstrip("_")
        )
        for file, names in re.findall(r"`([\w./]+)`(?:: ([\w ,…]+))?", in_c):
            path = root / file if "/" in file else root / "tests" / "device" / file
            tests = path.read_text()
            for name in filter(None, names.split(", ")):
                assert name.rstrip("…") in tests, (file, name)


def twin_of(cls: type[NumpyDevice], **members: Any) -> type[NumpyDevice]:
    """Another provider on the same device, with the same memory."""
    return type("Twin", (NumpyDevice,), {"state": cls.state, "name": "TwinExecutionProvider"} | members)


def allocators_of(host: CHost, cls: type[NumpyDevice]) -> list[Any]:
    return [host.shared_allocator(host.memory(cls, kind)) for kind in KINDS]


def works(host: CHost, cls: type[NumpyDevice]) -> bool:
    """True if the shared allocators of the provider's device are there and give memory that can be freed."""
    for allocator in allocators_of(host, cls):
        if allocator == ffi.NULL:
            return False
        memory = allocator.Alloc(allocator, 8)
        assert memory != ffi.NULL
        allocator.Free(allocator, memory)
    return True


def value_on_the_device(host: ModuleType, array: np.ndarray) -> Any:
    return host.OrtValue.ortvalue_from_numpy(array, "gpu", 0, VENDOR_ID)


# ---- shared allocators ----


def test_32164_shared_allocators_are_there_after_registration(host: ModuleType) -> None:
    """#32164: GetSharedAllocator was NULL right after a library was registered."""
    cls = device_class()
    with c_host(host) as c:
        for _ in range(2):
            c.register(cls)
            assert works(c, cls)
            c.unregister(cls)
    assert left_nothing(cls)


@pytest.mark.parametrize("leaves", ["first", "second"])
def test_32170_a_neighbour_takes_no_allocator_with_it(host: ModuleType, leaves: str) -> None:
    """#32170: of two providers on a device one was unregistered, and the other's allocator was gone.

    It still is in stock 1.32; in 1.24 the other's is gone at once.
    """
    first = device_class()
    second = twin_of(first)
    with c_host(host) as c:
        c.register(first)
        before = allocators_of(c, first)
        c.register(second)
        assert works(c, first) is works(c, second) is (host is OURS or not OLD_STOCK)
        gone, stays = (first, second) if leaves == "first" else (second, first)
        c.unregister(gone)
        assert works(c, stays) is (host is OURS)
        if host is OURS and leaves == "second":
            assert allocators_of(c, first) == before
        c.unregister(stays)
    assert left_nothing(first)


def whole_on_arrays(**members: Any) -> type[NumpyDevice]:
    """A provider that takes all of `chain` and works on arrays in CPU memory."""
    return device_class(
        get_capability=lambda self, graph: [graph.nodes],
        compile=lambda self, graph: lambda a: np.maximum(a * W + a, 0),
        **members,
    )


def test_32683_no_allocator_of_the_class_means_the_cpus(host: ModuleType) -> None:
    """#32683: OK with no allocator was dereferenced. In the environment.

    Stock 1.32 refuses to register such a provider; 1.24 would crash on NULL, and fails in the first run now
    that it gets the CPU's.
    """
    cls = whole_on_arrays(create_allocator=classmethod(lambda cls, memory, options: None))
    if host is OURS:
        with c_host(host) as c:
            cpus = c.made("OrtAllocator*", c.api.GetAllocatorWithDefaultOptions)
            c.register(cls)
            assert allocators_of(c, cls) == [cpus, cpus]
            c.unregister(cls)
        np.testing.assert_array_equal(run_once(host, cls, chain(), FEEDS)[0], EXPECTED)
    else:
        told = "Failed to find allocator for device" if OLD_STOCK else "already registered"
        with pytest.raises(Exception, match=told):
            run_once(host, cls, chain(), FEEDS)
    assert left_nothing(cls)


def test_32683_no_allocator_of_a_session_means_the_cpus(host: ModuleType) -> None:
    """#32683 in sessions. Stock has no place for the values of such a provider then, but does not crash."""
    cls = whole_on_arrays(create_session_allocator=lambda self, memory: None)
    if host is OURS:
        np.testing.assert_array_equal(run_once(host, cls, chain(), FEEDS)[0], EXPECTED)
    else:
        with pytest.raises(Exception, match="Failed to find allocator for device"):
            run_once(host, cls, chain(), FEEDS)
    assert left_nothing(cls)


# ---- copies and their streams ----


@pytest.mark.parametrize("count", [1, 3])
def test_25937_32643_copies_get_the_callers_stream(host: ModuleType, count: int) -> None:
    """#25937, #32643: the stream was dropped on every copy, then on those of one tensor. None stays none."""
    cls = device_class(stream_aware=True)

    def work() -> None:
        sources = [value_on_the_device(host, A + n) for n in range(count)]
        targets = [value_on_the_device(host, 0 * A) for _ in sources]
        device = next(found for found in host.get_ep_devices() if found.ep_name == NAME)
        host.copy_tensors(sources, targets, None)
        assert cls.state.counts["GPU to GPU"] == count and cls.state.counts["on stream"] == 0
        if has_streams(host):
            stream = device.create_sync_stream()
            host.copy_tensors(sources, targets, stream)
            assert cls.state.counts["GPU to GPU"] == 2 * count and cls.state.counts["on stream"] == count
            del stream  # the rest is done then
            gc.collect()
        for n, target in enumerate(targets):
            np.testing.assert_array_equal(target.numpy(), A + n)

    with registered(host, cls):
        work()
        gc.collect()
    assert left_nothing(cls)


def test_25937_32643_copies_of_a_run_are_on_its_stream(host: ModuleType) -> None:
    """In a session every copy is of one tensor: the input and the output here, beside the weight at first."""
    cls = device_class(stream_aware=True)
    with registered(host, cls):
        session = open_session(host, cls, chain())
        assert cls.state.counts["on stream"] == 0
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        assert cls.state.counts["on stream"] == (2 if has_streams(host) else 0)
        assert cls.state.counts["copy"] == 3
        del session
        gc.collect()
    assert left_nothing(cls)


@pytest.mark.parametrize("stream_aware", [False, True])
def test_26088_a_model_is_split_between_device_and_cpu(host: ModuleType, stream_aware: bool) -> None:
    """#26088: there were no copies where a model changes from a plugin to the CPU. For the copies of stock
    1.32 the provider has kernels (see ort_abi/ep/_node/memcpy.py)."""
    cls = device_class(stream_aware=stream_aware)
    cls.state.delay = 0.002
    with registered(host, cls):
        session = open_session(host, cls, split(), fallback=True)
        for _ in range(3):
            np.testing.assert_allclose(session.run(None, FEEDS)[0], SPLIT_EXPECTED, rtol=1e-6)
        del session
        gc.collect()
    assert (cls.state.counts["CPU to GPU"], cls.state.counts["GPU to CPU"]) == (1 + 2 * 3, 2 * 3)
    assert left_nothing(cls)


def test_26088_borders_are_between_memories_and_not_between_names(host: ModuleType) -> None:
    """Two providers on one device pass values on without a copy."""
    first = device_class(wanted=("Mul",))
    second = twin_of(first, wanted=("Add", "Relu"))
    with registered(host, first), registered(host, second):
        options = host.SessionOptions()
        options.graph_optimization_level = host.GraphOptimizationLevel.ORT_DISABLE_ALL
        for cls in (first, second):
            devices = [device for device in host.get_ep_devices() if device.ep_name == cls.name]
            options.add_provider_for_devices(devices, {})
        session = host.InferenceSession(chain(), options)
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        counts = first.state.counts
        assert counts["compute"] == 3
        # the weight and the input, then the output
        assert (counts["CPU to GPU"], counts["GPU to CPU"], counts["GPU to GPU"]) == (2, 1, 0)
        del session
        gc.collect()
    assert left_nothing(first)


# ---- arenas that know streams ----


class Tagging(StreamAllocator):
    """Keeps with each block the stream that it came for, as an arena does."""

    def __init__(self, state: Any, kind: str) -> None:
        super().__init__(state, kind)
        self.tags: dict[int, Stream] = {}

    def alloc_on_stream(self, size: int, stream: ep.SyncStream | None) -> int:
        self.state.__dict__.setdefault("streams", []).append(stream)
        address = super().alloc_on_stream(size, stream)
        assert isinstance(stream, Stream)
        self.tags[address] = stream
        return address

    def free(self, address: int) -> None:
        tag = self.tags.pop(address, None)
        if tag is not None:
            assert tag.state is self.state  # still what it was, also when the host has released the stream
            self.state.counts["free by tag"] += 1
        super().free(address)


def test_29221_31983_32354_a_stream_is_one_object_as_long_as_its_memory(host: ModuleType) -> None:
    """#29221, #31983, #32354: arenas keep the stream that came with an allocation; some were gone by the time
    that it was looked at. Where there is no stream, `alloc` is asked and not `alloc_on_stream` with none."""
    made: list[Stream] = []

    def create_session_stream(self: NumpyDevice, device: ep.MemoryDevice) -> ep.SyncStream:
        made.append(Stream(self.state))
        return made[-1]

    cls = device_class(
        stream_aware=True, allocator=Tagging, create_session_stream=create_session_stream, kinds=("default",)
    )
    with registered(host, cls):
        before = ep.unreported_errors()
        session = open_session(host, cls, chain())
        for _ in range(3):
            np.testing.assert_array_equal(session.run(None, FEEDS)[0], EXPECTED)
        streams = cls.state.__dict__.get("streams", [])
        if has_streams(host):
            assert len(made) == 1 and len(streams) > 0 and all(stream is made[0] for stream in streams)
        else:
            assert made == streams == []
        del session
        gc.collect()
        assert cls.state.counts["close stream"] == len(made)
        assert cls.state.counts["free by tag"] == len(streams) and ep.unreported_errors() == before
    assert left_nothing(cls)


def test_29221_memory_may_outlive_its_stream(host: ModuleType) -> None:
    """The host releases a stream before memory that came for it."""
    if not has_streams(host):
        pytest.skip("this host is told of no streams")
    cls = device_class(stream_aware=True, allocator=Tagging)
    with c_host(host) as c:
        c.register(cls)
        allocator, stream = c.shared_allocator(c.memory(cls)), c.stream(cls)
        memory = allocator.AllocOnStream(allocator, 8, stream)
        c.api.ReleaseSyncStream(stream)
        assert memory != ffi.NULL and cls.state.counts["close stream"] == 1
        allocator.Free(allocator, memory)
        assert cls.state.counts["free by tag"] == cls.state.counts["alloc_on_stream"] == 1
        c.unregister(cls)
    assert left_nothing(cls)


# ---- sessions ----


def test_27538_device_work_is_waited_for_before_a_run(host: ModuleType) -> None:
    """#27538: nobody waited for the work that makes inputs on the device. Stock leaves it to the caller of
    `synchronize_inputs`, and before API 25 there is no `OrtEp::Sync`."""
    cls = device_class()

    def work() -> None:
        session = open_session(host, cls, chain())
        a, y = value_on_the_device(host, A), value_on_the_device(host, 0 * A)
        binding, copies = session.io_binding(), cls.state.counts["copy"]
        binding.bind_ortvalue_input("a", a)
        binding.bind_ortvalue_output("y", y)
        if host is STOCK:
            binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        assert cls.state.counts["sync"] == (0 if host is STOCK and OLD_STOCK else 1)
        assert cls.state.counts["copy"] == copies
        np.testing.assert_array_equal(y.numpy(), EXPECTED)

    with registered(host, cls):
        work()
        gc.collect()
    assert left_nothing(cls)


@pytest.mark.parametrize("legacy", [-1, -2])
def test_28329_memory_of_a_legacy_type_is_refused(host: ModuleType, legacy: int) -> None:
    """#28329: an OrtMemType of CPU input or output in a memory info passed registration, and the first run
    ended the process. `MemoryInfo` cannot say it; here it is said anyway. Stock registers it."""

    class Legacy(ep.MemoryInfo):
        def _create(self, api: Any) -> Any:
            out = ffi.new("OrtMemoryInfo**")
            check(api.CreateMemoryInfo(b"Cuda", 0, 0, legacy, out), api)
            return out[0]

    infos = [Legacy("Cuda", "GPU", 0x10DE, 0)]
    cls = device_class(memory_infos=classmethod(lambda cls, device: infos))
    if host is OURS:
        with pytest.raises(
            errors.InvalidArgument, match=r"EpDevice_AddAllocatorInfo: .* a device has default"
        ):
            ep.register_with(host, cls)
    else:
        with registered(host, cls):
            assert [device.ep_name for device in host.get_ep_devices()].count(NAME) == 1
    assert left_nothing(cls)


def test_28037_two_memories_need_a_choice(host: ModuleType) -> None:
    """#28037: devices with different memories, and no way to say which a session uses.
    test_ep_device_session.py has the details of `default_memory_device`."""
    from test_ep_device_session import Watching, seen_devices, two_devices

    cls = two_devices(compile=lambda self, graph: Watching(self.state, graph))
    if host is STOCK and OLD_STOCK:
        with pytest.raises(Exception, match="to use the same device_memory_info"):
            run_once(host, cls, chain(), FEEDS)  # API 24 has no GetDefaultMemoryDevice
    else:
        (result,) = run_once(host, cls, chain(), FEEDS, options={"work_on": "1"})
        np.testing.assert_array_equal(result, EXPECTED)
        assert seen_devices(cls) == {1}
    if host is OURS:
        with pytest.raises(errors.EPFail, match="different memory"):
            run_once(host, cls, chain(), FEEDS)
    assert left_nothing(cls)


class OnStream(numpy_device.Launch):
    """Notes the streams that it finds."""

    def compute(self, ctx: ep.KernelContext) -> None:
        self.state.__dict__.setdefault("found", []).append(ctx.stream)
        super().compute(ctx)


def test_26988_the_sessions_stream_is_back_after_a_run_on_the_callers(host: ModuleType) -> None:
    """#26988: after a run on a stream of the run options the session went on using it, also after errors."""
    if not has_streams(host):
        pytest.skip("this host is told of no streams")
    cls = device_class(stream_aware=True, compile=lambda self, graph: OnStream(self.state, graph))
    y, found = np.zeros_like(A), cls.state.__dict__.setdefault("found", [])

    def streams_of_a_run(stream: Any = ffi.NULL) -> set[Any]:
        found.clear()
        y[...] = 0
        session.run(FEEDS, y, stream)
        np.testing.assert_array_equal(y, EXPECTED)
        return {*found}

    with c_host(host) as c:
        c.register(cls)
        with c.session(cls, chain()) as session:
            (own,) = streams_of_a_run()
            stream = c.stream(cls)
            (callers,) = streams_of_a_run(stream)
            assert None not in (own, callers) and callers is not own
            assert streams_of_a_run() == {own}
            cls.state.failing = "compute"
            with pytest.raises(errors.OrtError, match="compute broke here"):
                session.run(FEEDS, y, stream)
            cls.state.failing = ""
            assert streams_of_a_run() == {own}
            c.api.ReleaseSyncStream(stream)
            assert streams_of_a_run() == {own}
        found.clear()
        del own, callers
        c.unregister(cls)
    assert left_nothing(cls)


# ---- strings and tensors without elements ----


def test_32244_strings_stay_on_the_cpu(host: ModuleType) -> None:
    """#32244: string tensors went to a device. They are refused there, and pass beside it in a session."""
    cls = device_class()
    texts = np.array(["one", "two"], object)
    text = (TensorProto.STRING, [2])
    nodes = [
        helper.make_node("Mul", ["a", "w"], ["y"]),
        helper.make_node("Identity", ["t"], ["u"]),
    ]
    graph = model(nodes, {"a": SPEC, "t": text}, {"y": SPEC, "u": text}, {"w": W})
    with registered(host, cls):
        refused = errors.InvalidArgument if host is OURS else RuntimeError
        with pytest.raises(refused, match="string"):
            value_on_the_device(host, texts.astype(str))
        session = open_session(host, cls, graph, fallback=True)
        product, same = session.run(None, {"a": A, "t": texts})
        np.testing.assert_array_equal(product, A * W)
        assert same.tolist() == ["one", "two"]
        assert (cls.state.counts["CPU to GPU"], cls.state.counts["GPU to CPU"]) == (2, 1)
        del session, product, same
        gc.collect()
    assert len(cls.state.memory) == 0  # our host may have registered its reference provider for the strings


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_1879_26644_tensors_without_elements_reach_no_copy(host: ModuleType, shape: tuple[int, ...]) -> None:
    """#1879, #26644: empty tensors reached copies and failed there. Stock's copies end in our bridge."""
    cls = device_class()
    spec = (TensorProto.FLOAT, shape)
    graph = model([helper.make_node("Relu", ["a"], ["y"])], {"a": spec}, {"y": spec})
    empty = np.empty(shape, np.float32)
    assert run_once(host, cls, graph, {"a": empty})[0].shape == shape

    def work() -> None:
        value = value_on_the_device(host, empty)
        assert value.numpy().shape == shape
        other = value_on_the_device(host, empty)
        host.copy_tensors([value], [other], None)

    with registered(host, cls):
        work()
        gc.collect()
    assert cls.state.counts["copy"] == cls.state.counts["batches"] == 0
    assert left_nothing(cls)


def test_a_batch_with_empty_tensors_copies_the_others(host: ModuleType) -> None:
    """#26644: and leaves the others where they belong."""
    cls = device_class()

    def work() -> None:
        arrays = [np.empty((0, 3), np.float32), A, np.empty(0, np.float32), W]
        sources = [value_on_the_device(host, array) for array in arrays]
        targets = [value_on_the_device(host, 0 * array) for array in arrays]
        cls.state.counts.clear()
        host.copy_tensors(sources, targets, None)
        assert cls.state.counts["copy"] == cls.state.counts["GPU to GPU"] == 2
        for array, target in zip(arrays, targets, strict=True):
            np.testing.assert_array_equal(target.numpy(), array)

    with registered(host, cls):
        work()
        gc.collect()
    assert left_nothing(cls)
