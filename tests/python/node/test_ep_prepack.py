"""Python kernels that pack their weights, and sessions that share them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytest
from ep_support import model, open_session, registered, run_once
from numpy_device import device_class
from onnx import helper

import ort_abi
from ort_abi import ep

SPEC = (np.float32, [2, 3])
X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Prepack = Callable[..., Any]


def mul(constant: np.ndarray = W) -> bytes:
    """y = x * w."""
    node = helper.make_node("Mul", ["x", "w"], ["y"], name="mul1")
    return model([node], {"x": SPEC}, {"y": SPEC}, {"w": constant})


def provider(prepack: Prepack | None, seen: dict[str, list[Any]]) -> type[ep.ExecutionProvider]:
    """A provider with a Mul whose weight is packed as its negative, flat; `seen` collects what happens."""

    class Mul(ep.Kernel):
        weight: np.ndarray | None = None

        def set_shared(self, index: int, arrays: tuple[np.ndarray, ...]) -> None:
            seen.setdefault("shared", []).append(arrays[0].__array_interface__["data"][0])
            seen.setdefault("writeable", []).append(arrays[0].flags.writeable)
            self.weight = arrays[0]

        def compute(self, ctx: ep.KernelContext) -> None:
            x, w = ctx.inputs
            assert x is not None
            seen.setdefault("inputs", []).append(w is None)
            if self.weight is not None:
                w = -self.weight.reshape(x.shape)
            ctx.output(0, x.shape)[...] = x * w

        def close(self) -> None:
            seen.setdefault("kernels", []).append(self)

    if prepack is not None:
        Mul.prepack = prepack  # type: ignore[method-assign]

    class Packing(ep.ExecutionProvider):
        name = "PackingExecutionProvider"
        mul = ep.kernel("Mul", (7, None), types={"T": [np.float32]})(Mul)

    return Packing


def pack_privately(self: Any, index: int, tensor: np.ndarray, allocator: Any, shared: Any) -> bool:
    if index != 1:
        return False
    self.weight = -tensor.reshape(-1)
    return True


def pack_shared(self: Any, index: int, tensor: np.ndarray, allocator: Any, shared: Any) -> bool:
    if shared is None:
        return pack_privately(self, index, tensor, allocator, shared)
    packed = allocator.empty(tensor.size)
    np.negative(tensor.reshape(-1), out=packed)
    shared.store(packed)
    return True


def store_a_copy(self: Any, index: int, tensor: np.ndarray, allocator: Any, shared: Any) -> bool:
    if shared is None:
        return pack_privately(self, index, tensor, allocator, shared)
    shared.store((-tensor.reshape(-1)).repeat(2)[::2], np.zeros((0, 4)))  # not contiguous, and empty
    return True


def test_without_prepack_the_input_comes_with_each_run(host: ModuleType) -> None:
    seen: dict[str, list[Any]] = {}
    outputs = run_once(host, provider(None, seen), mul(), {"x": X})
    np.testing.assert_array_equal(outputs[0], X * W)
    assert seen["inputs"] == [False]


def test_packed_privately(host: ModuleType) -> None:
    """The packed input is None in `compute`, in every host."""
    seen: dict[str, list[Any]] = {}
    outputs = run_once(host, provider(pack_privately, seen), mul(), {"x": X})
    np.testing.assert_array_equal(outputs[0], X * W)
    assert seen["inputs"] == [True] and "shared" not in seen


@pytest.mark.parametrize("prepack", [pack_shared, store_a_copy])
def test_shared_over_a_container(prepack: Prepack) -> None:
    """Two sessions use one packed weight, which outlives the first of them and the container's object."""
    seen: dict[str, list[Any]] = {}
    cls = provider(prepack, seen)
    container = ort_abi.PrepackedWeightsContainer()
    with registered(ort_abi, cls):
        sessions = [open_shared(cls, mul(), container) for _ in range(2)]
        other = open_shared(cls, mul(W + 1), container)
        assert seen["shared"][0] == seen["shared"][1] != seen["shared"][2]
        assert seen["writeable"] == [False] * 3
        del container
        for session in sessions:
            np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * W)
            session.close()
        np.testing.assert_array_equal(other.run(None, {"x": X})[0], X * (W + 1))
        other.close()
        del session, sessions, other
        gc.collect()
    assert seen["inputs"] == [True] * 3


def open_shared(
    cls: type[ep.ExecutionProvider], data: bytes, container: ort_abi.PrepackedWeightsContainer
) -> ort_abi.InferenceSession:
    options = ort_abi.SessionOptions()
    devices = [device for device in ort_abi.get_ep_devices() if device.ep_name == cls.name]
    options.add_provider_for_devices(devices, {})
    return ort_abi.InferenceSession(data, options, fallback=False, prepacked_weights_container=container)


def test_without_a_container_ours_shares_nothing() -> None:
    seen: dict[str, list[Any]] = {}
    outputs = run_once(ort_abi, provider(pack_shared, seen), mul(), {"x": X})
    np.testing.assert_array_equal(outputs[0], X * W)
    assert "shared" not in seen


def test_stock_gives_a_cache_and_the_stored_weight() -> None:
    seen: dict[str, list[Any]] = {}
    outputs = run_once(onnxruntime, provider(pack_shared, seen), mul(), {"x": X})
    np.testing.assert_array_equal(outputs[0], X * W)
    assert len(seen["shared"]) == 1 and seen["inputs"] == [True]


# ---- what authors do wrong ----


def fails(host: ModuleType, prepack: Prepack, message: str) -> None:
    seen: dict[str, list[Any]] = {}
    with pytest.raises(Exception, match=message):
        run_once(host, provider(prepack, seen), mul(), {"x": X})
    seen.clear()
    gc.collect()
    assert ep.live_objects() == 0


def test_an_exception_is_an_error_of_the_session(host: ModuleType) -> None:
    def prepack(self: Any, index: int, tensor: np.ndarray, allocator: Any, shared: Any) -> bool:
        allocator.empty(7)[...] = 1
        raise ValueError("cannot pack this")

    fails(host, prepack, "PrePackWeight.*ValueError: cannot pack this")


def test_an_exception_after_storing(host: ModuleType) -> None:
    def prepack(self: Any, index: int, tensor: np.ndarray, allocator: Any, shared: Any) -> bool:
        pack_shared(self, index, tensor, allocator, shared)
        raise ValueError("too late")

    fails(host, prepack, "ValueError: too late")


def test_stored_but_not_packed() -> None:
    def prepack(self: Any, index: int, tensor: np.ndarray, allocator: Any, shared: Any) -> bool:
        shared.store(tensor)
        return False

    cls = provider(prepack, {})
    with registered(ort_abi, cls), pytest.raises(ort_abi.errors.EPFail, match="said that it packed nothing"):
        open_shared(cls, mul(), ort_abi.PrepackedWeightsContainer())


def test_stored_without_set_shared() -> None:
    cls = provider(pack_shared, {})
    del cls.mul.set_shared  # type: ignore[attr-defined]
    with registered(ort_abi, cls), pytest.raises(ort_abi.errors.OrtError, match="set_shared is not defined"):
        open_shared(cls, mul(), ort_abi.PrepackedWeightsContainer())


@pytest.mark.parametrize(
    ("store", "message"),
    [
        (lambda shared, tensor: (shared.store(tensor), shared.store(tensor)), r"Error: store\(\) was called"),
        (lambda shared, tensor: shared.store(), r"Error: store\(\) needs an array"),
        (lambda shared, tensor: shared.store(np.array(["a"], object)), r"Error: strin[g] cannot be packed"),
    ],
)
def test_stored_wrongly(store: Callable[[Any, Any], Any], message: str) -> None:
    def prepack(self: Any, index: int, tensor: np.ndarray, allocator: Any, shared: Any) -> bool:
        store(shared, tensor)
        return True

    cls = provider(prepack, {})
    with registered(ort_abi, cls), pytest.raises(ort_abi.errors.OrtError, match=message):
        open_shared(cls, mul(), ort_abi.PrepackedWeightsContainer())


# ---- what is kept ----


def test_the_weight_and_what_is_packed_into_are_the_kernels_own(host: ModuleType) -> None:
    kept: list[np.ndarray] = []

    def prepack(self: Any, index: int, tensor: np.ndarray, allocator: Any, shared: Any) -> bool:
        scratch = allocator.empty((2, 2), np.int32)
        scratch[...] = 7
        kept.extend((tensor, tensor[:1], scratch[1:]))
        packed = pack_privately(self, index, tensor, allocator, shared)
        tensor[...] = 5
        return packed

    outputs = run_once(host, provider(prepack, {}), mul(), {"x": X})
    np.testing.assert_array_equal(outputs[0], X * W)
    gc.collect()
    for array, expected in zip(
        kept, (np.full(W.shape, 5), np.full((1, *W.shape[1:]), 5), [[7, 7]]), strict=True
    ):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("what", ["the kernel", "a tuple", "a memoryview"])
def test_shared_weights_are_the_kernels_as_long_as_it_lives(
    what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, list[Any]] = {}
    kept: list[Any] = []
    cls = provider(pack_shared, seen)
    if what != "the kernel":
        keep = {"a tuple": lambda arrays: arrays, "a memoryview": lambda arrays: memoryview(arrays[0])}[what]
        cls.mul.set_shared = lambda self, index, arrays: kept.append(keep(arrays))  # type: ignore[attr-defined]
    before = ep.unreported_errors()
    with registered(ort_abi, cls):
        session = open_shared(cls, mul(), ort_abi.PrepackedWeightsContainer())
        if what != "the kernel":
            seen.clear()
        session.close()
        del session
        gc.collect()
    assert ep.unreported_errors() == before + 1
    assert "shared weight 0 of input" in capfd.readouterr().err


def test_what_is_valid_only_during_prepack(host: ModuleType) -> None:
    later: list[Any] = []

    def prepack(self: Any, index: int, tensor: np.ndarray, allocator: Any, shared: Any) -> bool:
        later.extend((allocator, shared))
        return False

    run_once(host, provider(prepack, {}), mul(), {"x": X})
    with pytest.raises(RuntimeError, match="only during prepack"):
        later[0].empty(1)
    if later[1] is not None:
        with pytest.raises(RuntimeError, match="stored only during prepack"):
            later[1].store(W)


def test_prepacking_can_be_disabled(host: ModuleType) -> None:
    seen: dict[str, list[Any]] = {}
    cls = provider(pack_privately, seen)
    with registered(host, cls):
        session = open_session(host, cls, mul(), config={"session.disable_prepacking": "1"})
        np.testing.assert_array_equal(np.array(session.run(None, {"x": X})[0]), X * W)
        assert seen["inputs"] == [False]
        del session
        gc.collect()


async def prepack_later(self: Any, index: int, tensor: np.ndarray, allocator: Any, shared: Any) -> bool:
    return True


def test_a_coroutine_packs_nothing(host: ModuleType) -> None:
    fails(host, prepack_later, r"PrePackWeight.*: .*must be a plain function")  # type: ignore[arg-type]


def test_set_shared_as_a_coroutine_is_an_error() -> None:
    async def later(self: Any, index: int, arrays: Any) -> None:
        raise AssertionError("nobody runs this")

    cls = provider(pack_shared, {})
    cls.mul.set_shared = later  # type: ignore[attr-defined]
    with registered(ort_abi, cls), pytest.raises(ort_abi.errors.OrtError, match="must be a plain function"):
        open_shared(cls, mul(), ort_abi.PrepackedWeightsContainer())


# ---- on a device ----


@pytest.mark.parametrize("wants_memory", [False, True])
def test_weights_on_a_device(host: ModuleType, wants_memory: bool) -> None:
    """A weight in memory that NumPy cannot reach is a DeviceTensor; nor is there memory for arrays."""
    seen: list[Any] = []
    state = device_class().state

    class Mul(ep.Kernel):
        def prepack(self, index: int, tensor: Any, allocator: Any, shared: Any) -> bool:
            seen.append(tensor)
            self.weight = state.memory.view(tensor.ptr, tensor.shape, tensor.dtype).copy()
            if wants_memory:
                allocator.empty(7)
            return True

        def compute(self, ctx: ep.KernelContext) -> None:
            x, w = ctx.inputs
            assert w is None
            y = ctx.output(0, x.shape)
            views = [state.memory.view(tensor.ptr, tensor.shape, tensor.dtype) for tensor in (x, y)]
            np.multiply(views[0], self.weight, out=views[1])

    members = {"kinds": ("default",), "get_capability": ep.ExecutionProvider.get_capability}
    cls = device_class(state=state, mul=ep.kernel("Mul", (7, None))(Mul), **members)
    if wants_memory:
        with pytest.raises(Exception, match=r"PrePackWeight.*: TypeError: memory on .* cannot be an array"):
            run_once(host, cls, mul(), {"x": X})
    else:
        (y,) = run_once(host, cls, mul(), {"x": X})
        np.testing.assert_array_equal(y, X * W)
    assert [type(tensor) for tensor in seen] == [ep.DeviceTensor]
    with pytest.raises(RuntimeError, match="valid only during the call"):
        seen[0].ptr  # noqa: B018
    assert len(state.memory) == 0
