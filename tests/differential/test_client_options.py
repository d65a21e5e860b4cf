"""What clients set and ask beside running: options, the built-in provider by name, what sessions tell."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.c_client import (
    FAIL,
    INVALID_ARGUMENT,
    NOT_IMPLEMENTED,
    Client,
    failure,
    floats,
    model,
    neg,
)

GOOD = np.zeros((2, 3), np.float32)
CPU = "CPUExecutionProvider"
NO_FALLBACK = (b"session.disable_cpu_ep_fallback", b"1")
INT64_MAX = 2**63 - 1
DEVICE, ARENA = 0, 1


# ---- The built-in provider ----


def exported(client: Client) -> Any:
    """`OrtSessionOptionsAppendExecutionProvider_CPU`, as a C program or a JNI library finds it."""
    function = client.library.OrtSessionOptionsAppendExecutionProvider_CPU
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]
    return function


def append_exported(client: Client, options: Any, use_arena: int = 1) -> None:
    status = exported(client)(client.address(options), use_arena)
    client.check(client.ffi.cast("OrtStatus*", status or 0))


def append_named(
    client: Client, options: Any, name: str = "CPU", keys: tuple[str, ...] = (), values: tuple[str, ...] = ()
) -> None:
    arguments = (client.texts(keys), client.texts(values), len(keys))
    client.check(client.api.SessionOptionsAppendExecutionProvider(options, name.encode(), *arguments))


def append_device(client: Client, options: Any) -> None:
    count, devices = client.ffi.new("size_t*"), client.ffi.new("const OrtEpDevice* const**")
    client.check(client.api.GetEpDevices(client.env, devices, count))
    found = [devices[0][i] for i in range(count[0])]
    [cpu] = [d for d in found if client.ffi.string(client.api.EpDevice_EpName(d)).decode() == CPU]
    chosen = client.ffi.new("const OrtEpDevice*[]", [cpu])
    null = client.ffi.NULL
    client.check(
        client.api.SessionOptionsAppendExecutionProvider_V2(options, client.env, chosen, 1, null, null, 0)
    )


@pytest.mark.parametrize("use_arena", [0, 1, 2, -1])
def test_cpu_by_the_exported_function(client: Client, use_arena: int) -> None:
    """The argument changes nothing: whether there is an arena is the session options' to say."""
    options = client.options()
    append_exported(client, options, use_arena)
    session = client.session(neg(), options)
    [output] = client.run(session, {"x": GOOD}, ["y"])
    assert client.memory_type(client.get("GetTensorMemoryInfo", "const OrtMemoryInfo*", output)) == ARENA
    assert client.memory_type(session_memory(client, session)) == ARENA


def test_the_exported_function_wants_options(ours: Client) -> None:
    """Stock crashes here."""
    status = ours.ffi.cast("OrtStatus*", exported(ours)(None, 1) or 0)
    code, message = failure(ours.check, status)
    assert code == INVALID_ARGUMENT and "OrtSessionOptionsAppendExecutionProvider_CPU" in message


@pytest.mark.parametrize("name", ["CPU", CPU])
@pytest.mark.parametrize("pairs", [(), ("use_arena", "0")])
def test_cpu_by_name(client: Client, name: str, pairs: tuple[str, ...]) -> None:
    options = client.options()
    append_named(client, options, name, pairs[:1], pairs[1:])
    assert client.floats(client.run(client.session(neg(), options), {"x": GOOD + 1}, ["y"])[0]) == [-1.0] * 6


@pytest.mark.parametrize("name", ["", "cpu", "NoSuch", "CUDA", "CUDAExecutionProvider"])
def test_unknown_providers(client: Client, name: str) -> None:
    code, message = failure(append_named, client, client.options(), name)
    assert code == INVALID_ARGUMENT and f"Unknown provider name '{name}'" in message
    assert "'CPU'/'CPUExecutionProvider'" in message


@pytest.mark.parametrize("name", ["DML", "QNN", "OpenVINO", "SNPE", "XNNPACK", "WebGPU", "CoreML"])
def test_providers_of_other_builds(client: Client, name: str) -> None:
    code, message = failure(append_named, client, client.options(), name)
    assert code == INVALID_ARGUMENT and "not supported in this build" in message and name in message


def test_options_of_a_provider_are_not_null(ours: Client) -> None:
    options, null = ours.options(), ours.ffi.NULL
    some = ours.texts(["use_arena"])
    append = ours.api.SessionOptionsAppendExecutionProvider
    for keys, values in ((null, some), (some, null)):
        found = failure(lambda: ours.check(append(options, b"CPU", keys, values, 1)))  # noqa: B023
        assert found[0] == INVALID_ARGUMENT and "is NULL" in found[1]


@pytest.mark.parametrize("first", [append_exported, append_device])
@pytest.mark.parametrize("second", [append_exported, append_device])
def test_cpu_twice(client: Client, first: Any, second: Any) -> None:
    """Found out when the session is made."""
    options = client.options()
    first(client, options)
    second(client, options)
    code, message = failure(client.session, neg(), options)
    assert code == FAIL and f"Provider {CPU} has already been registered" in message


def test_cpu_by_name_adds_nothing(client: Client) -> None:
    """It is there in any case, behind all others."""
    options = client.options()
    for add in (append_named, append_named, append_exported, append_named):
        add(client, options)
    client.session(neg(), options)


def test_cpu_without_fallback_to_it(client: Client) -> None:
    options = client.options()
    append_exported(client, options)
    client.check(client.api.AddSessionConfigEntry(options, *NO_FALLBACK))
    assert failure(client.session, neg(), options)[0] == INVALID_ARGUMENT


def test_cpu_in_a_copy_of_the_options(client: Client) -> None:
    options = client.options()
    append_exported(client, options)
    copy = client.owned("OrtSessionOptions*", "CloneSessionOptions", "ReleaseSessionOptions", options)
    append_exported(client, copy)
    client.session(neg(), options)
    assert failure(client.session, neg(), copy)[0] == FAIL  # twice in the copy only


# ---- The allocator of a session ----


def session_memory(client: Client, session: Any) -> Any:
    allocator = client.owned("OrtAllocator*", "CreateAllocator", "ReleaseAllocator", session, client.cpu)
    return client.get("AllocatorGetInfo", "const OrtMemoryInfo*", allocator)


@pytest.mark.parametrize("has_arena", [True, False])
def test_memory_of_a_session_is_an_arenas(client: Client, has_arena: bool) -> None:
    options = client.options()
    client.check((client.api.EnableCpuMemArena if has_arena else client.api.DisableCpuMemArena)(options))
    session = client.session(neg(), options)
    infos = [session_memory(client, session)]
    for what in ("Inputs", "Outputs"):
        out = client.ffi.new("const OrtMemoryInfo*[]", 1)
        client.check(getattr(client.api, f"SessionGetMemoryInfoFor{what}")(session, out, 1))
        infos.append(out[0])
    [output] = client.run(session, {"x": GOOD}, ["y"])
    infos.append(client.get("GetTensorMemoryInfo", "const OrtMemoryInfo*", output))
    for info in infos:
        assert client.memory_type(info) == (ARENA if has_arena else DEVICE)
        assert client.host.text("MemoryInfoGetName", info) == "Cpu"
        assert client.get("MemoryInfoGetId", "int", info) == 0
        assert int(client.get("MemoryInfoGetMemType", "OrtMemType", info)) == 0


def test_the_default_allocator_is_none_of_an_arena(client: Client) -> None:
    info = client.get("AllocatorGetInfo", "const OrtMemoryInfo*", client.allocator)
    assert client.memory_type(info) == DEVICE


def test_memory_of_a_sessions_allocator(client: Client) -> None:
    """It can be used after the session; blocks are freed by it."""
    session = client.session(neg())
    allocator = client.get("CreateAllocator", "OrtAllocator*", session, client.cpu)
    block = client.get("AllocatorAlloc", "void*", allocator, 100)
    client.ffi.buffer(block, 100)[:] = b"x" * 100
    client.check(client.api.AllocatorFree(allocator, block))
    client.api.ReleaseAllocator(allocator)


# ---- What options refuse ----


def add_entry(client: Client, key: int, value: int) -> None:
    arguments = (client.options(), b"k" * key, b"v" * value)
    client.check(client.api.AddSessionConfigEntry(*arguments))


def add_run_entry(client: Client, key: int, value: int) -> None:
    options = client.owned("OrtRunOptions*", "CreateRunOptions", "ReleaseRunOptions")
    client.check(client.api.AddRunConfigEntry(options, b"k" * key, b"v" * value))


@pytest.mark.parametrize("add", [add_entry, add_run_entry])
def test_lengths_of_config_entries(client: Client, add: Any) -> None:
    for key, value in [(1, 0), (1024, 1), (5, 4097), (5, 8192)]:
        add(client, key, value)
    for key, value in [(0, 1), (1025, 1), (5, 2**20 + 1)]:
        assert failure(add, client, key, value)[0] == INVALID_ARGUMENT


@pytest.mark.parametrize("add", [add_entry, add_run_entry])
def test_config_values_may_be_long(ours: Client, add: Any) -> None:
    """Stock stops at 8 KiB, which options in JSON outgrow."""
    add(ours, 5, 2**20)


def test_no_source_model(client: Client) -> None:
    call = client.api.SessionOptionsSetWeightlessSourceModelBuffer
    code, _ = failure(lambda: client.check(call(client.options(), b"abc", 0)))
    assert code == INVALID_ARGUMENT
    client.check(call(client.options(), b"abc", 3))


@pytest.mark.parametrize(("length", "is_good"), [(0, False), (1, True), (4096, True), (4097, False)])
def test_lengths_of_affinities(client: Client, length: int, is_good: bool) -> None:
    release = "ReleaseThreadingOptions"
    options = client.owned("OrtThreadingOptions*", "CreateThreadingOptions", release)
    set_affinity = client.api.SetGlobalIntraOpThreadAffinity
    if is_good:
        client.check(set_affinity(options, b"1" * length))
    else:
        assert failure(lambda: client.check(set_affinity(options, b"1" * length)))[0] == INVALID_ARGUMENT


@pytest.mark.parametrize("mode", [0, 1])
def test_run_async_wants_a_thread_beside_the_callers(client: Client, mode: int) -> None:
    options = client.options()
    client.check(client.api.SetIntraOpNumThreads(options, 1))
    client.check(client.api.SetSessionExecutionMode(options, mode))
    session = client.session(neg(), options)

    @client.ffi.callback("void(void*, OrtValue**, size_t, OrtStatus*)")  # type: ignore[untyped-decorator]
    def never(_data: Any, _outputs: Any, _count: int, _status: Any) -> None:
        raise AssertionError("called after a failure")

    outputs = client.ffi.new("OrtValue*[]", 1)
    where = (session, client.ffi.NULL, client.texts(["x"]), client.values([GOOD]), 1, client.texts(["y"]), 1)
    run = client.api.RunAsync
    code, message = failure(lambda: client.check(run(*where, outputs, never, client.ffi.NULL)))
    assert code == INVALID_ARGUMENT and "thread" in message
    client.run(session, {"x": GOOD}, ["y"])  # as ever


def test_the_optimized_model_is_not_written(ours: Client, tmp_path: Any) -> None:
    """An error until there is a writer."""
    options = ours.options()
    call = ours.api.SetOptimizedModelFilePath
    code, message = failure(lambda: ours.check(call(options, str(tmp_path / "o.onnx").encode())))
    assert code == NOT_IMPLEMENTED and "SetOptimizedModelFilePath" in message and "o.onnx" in message
    ours.check(call(options, b""))  # none is wanted
    ours.session(neg(), options)


# ---- What sessions tell ----


@pytest.mark.parametrize("version", [None, 0, -5, 7])
def test_versions_of_models(client: Client, version: int | None) -> None:
    proto = neg()
    if version is not None:
        proto.model_version = version
    slot = "SessionGetModelMetadata"
    metadata = client.owned("OrtModelMetadata*", slot, "ReleaseModelMetadata", client.session(proto))
    found = client.get("ModelMetadataGetVersion", "int64_t", metadata)
    assert found == (INT64_MAX if version is None else version)


def shape(client: Client, session: Any, what: str) -> list[tuple[int, str]]:
    """The dimensions of the first input or output, each with its symbolic name."""
    release = "ReleaseTypeInfo"
    info = client.owned("OrtTypeInfo*", f"SessionGet{what}TypeInfo", release, session, 0)
    tensor = client.get("CastTypeInfoToTensorInfo", "const OrtTensorTypeAndShapeInfo*", info)
    rank = client.get("GetDimensionsCount", "size_t", tensor)
    dims, names = client.ffi.new("int64_t[]", rank), client.ffi.new("const char*[]", rank)
    client.check(client.api.GetDimensions(tensor, dims, rank))
    client.check(client.api.GetSymbolicDimensions(tensor, names, rank))
    return [(dims[i], client.ffi.string(names[i]).decode()) for i in range(rank)]


def test_a_fixed_dimension_has_no_name_any_more(client: Client) -> None:
    options = client.options()
    client.check(client.api.AddFreeDimensionOverrideByName(options, b"n", 5))
    session = client.session(neg(["n", "m"]), options)
    for what in ("Input", "Output"):
        assert shape(client, session, what) == [(5, ""), (-1, "m")]
    plain = client.session(neg(["n", "m"]))
    assert shape(client, plain, "Input") == [(-1, "n"), (-1, "m")]


def test_a_dimension_that_its_denotation_fixed_has_no_name_any_more(client: Client) -> None:
    proto = neg(["n", "m"])
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "BATCH"
    options = client.options()
    client.check(client.api.AddFreeDimensionOverride(options, b"BATCH", 5))
    assert shape(client, client.session(proto, options), "Input") == [(5, ""), (-1, "m")]


# ---- Inputs that are demanded ----


def two_ways() -> onnx.ModelProto:
    """y = -a, z = -b; nobody reads c."""
    nodes = [helper.make_node("Neg", ["a"], ["y"]), helper.make_node("Neg", ["b"], ["z"])]
    return model(nodes, [floats(n, [2]) for n in "abc"], [floats(n, [2]) for n in "yz"])


def ones(names: str) -> dict[str, np.ndarray]:
    return {name: np.ones(2, np.float32) for name in names}


def test_an_input_that_nobody_reads_is_not_demanded(client: Client) -> None:
    session = client.session(two_ways())
    assert [client.floats(v) for v in client.run(session, ones("ab"), ["y", "z"])] == [[-1.0, -1.0]] * 2
    assert [client.floats(v) for v in client.run(session, ones("abc"), ["z"])] == [[-1.0, -1.0]]


def test_inputs_that_only_another_output_needs(ours: Client) -> None:
    """Stock runs everything, and fails for what nobody has asked for."""
    session = ours.session(two_ways())
    assert [ours.floats(v) for v in ours.run(session, ones("a"), ["y"])] == [[-1.0, -1.0]]
    assert [ours.floats(v) for v in ours.run(session, ones("b"), ["z"])] == [[-1.0, -1.0]]
    assert [ours.floats(v) for v in ours.run(session, ones("ab"), ["z", "y"])] == [[-1.0, -1.0]] * 2


@pytest.mark.parametrize(("given", "names", "missing"), [("a", "yz", "b"), ("b", "y", "a"), ("", "z", "b")])
def test_inputs_that_are_demanded(client: Client, given: str, names: str, missing: str) -> None:
    session = client.session(two_ways())
    _, message = failure(lambda: client.run(session, ones(given), list(names)))
    assert f"Missing Input: {missing}" in message


def test_an_input_that_is_an_output_is_demanded(ours: Client) -> None:
    proto = model([helper.make_node("Neg", ["a"], ["y"])], [floats(n, [2]) for n in "ab"], [floats("y", [2])])
    proto.graph.output.append(floats("b", [2]))
    session = ours.session(proto)
    assert "Missing Input: b" in failure(lambda: ours.run(session, ones("a"), ["b"]))[1]
    assert ours.floats(ours.run(session, ones("a"), ["y"])[0]) == [-1.0, -1.0]
    assert ours.floats(ours.run(session, ones("ab"), ["b"])[0]) == [1.0, 1.0]


def test_a_run_that_leaves_out_steps_leaves_nothing_behind(ours: Client) -> None:
    """Values that only a left out step reads, many times, beside whole runs."""
    nodes = [
        helper.make_node("Neg", ["a"], ["t"]),
        helper.make_node("Neg", ["t"], ["y"]),
        helper.make_node("Add", ["t", "b"], ["u"]),
        helper.make_node("Neg", ["u"], ["z"]),
    ]
    session = ours.session(model(nodes, [floats(n, [2]) for n in "ab"], [floats(n, [2]) for n in "yz"]))
    for _ in range(3):
        assert ours.floats(ours.run(session, ones("a"), ["y"])[0]) == [1.0, 1.0]
        assert ours.floats(ours.run(session, ones("ab"), ["z"])[0]) == [0.0, 0.0]
        assert "Missing Input: b" in failure(lambda: ours.run(session, ones("a"), ["z"]))[1]
        assert "Missing Input: a" in failure(lambda: ours.run(session, ones("b"), ["z"]))[1]
