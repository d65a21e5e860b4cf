"""The functions that the C side calls (csrc/bridge). One place for their rules:

* They are attached when this module is imported and stay for the life of the process.
* They know objects by integer id only (`_objects`); the id is in the C struct that the host has, and ends
  with the host's release of that struct.
* They return 1 for success. 0, which is also what cffi returns when an exception escapes, is a failure; the
  reason is noted with `record`, and C makes the host's own status of it.
* What the host passes in is valid during the call. Graphs and kernel infos refuse use afterwards.
* Before the interpreter exits the gate in C closes: nothing is called any more.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ort_abi._enums import OrtMemType
from ort_abi._lib import CData, check, encode, ffi, lib
from ort_abi.ep import _objects
from ort_abi.ep._compute import Node as Computation
from ort_abi.ep._compute import NodeInfo, array_node, context_node
from ort_abi.ep._control_flow import HostKernel, creator, host_kernels
from ort_abi.ep._custom_ops import add_custom_ops
from ort_abi.ep._device import Allocator, DataTransfer, MemoryInfo, SyncNotification, SyncStream, plain_call
from ort_abi.ep._ep_context import Compiled, create_context_node
from ort_abi.ep._errors import forget_frames, record
from ort_abi.ep._factory import Factory
from ort_abi.ep._importer import Imported, ResourceImporter
from ort_abi.ep._kernel_info import KernelInfo
from ort_abi.ep._lend import Trust
from ort_abi.ep._library import class_of
from ort_abi.ep._memcpy import Memcpy, memcpy_kernels, memcpy_node
from ort_abi.ep._prepack import packs, prepack, release_shared, set_shared
from ort_abi.ep._profiler import Profiler
from ort_abi.ep._provider import (
    Binding,
    Device,
    ExecutionProvider,
    Fuse,
    Kernel,
    KernelSpec,
    attribute_parameters,
)
from ort_abi.ep._registration import find
from ort_abi.ep._run_options import RunOptions
from ort_abi.ep._slots import features_of
from ort_abi.graph import Graph, Node, TensorType, open_graph

__all__ = ["HOST_SHIFT", "callback", "config_of", "device_of", "key_values_of", "new_key_values", "text_of"]

HOST_SHIFT = 48  # as in csrc/bridge/node.c
_NO_END = 2**31 - 2  # not INT_MAX: stock hosts read that as the first version only
_DEVICE_TYPES = {0: "CPU", 1: "GPU", 2: "NPU"}
_nodes: dict[int, Computation] = {}
_again: dict[int, Callable[[], int]] = {}
"""The computations by id: `_objects` once more, without its messages, for the hot path."""


def text_of(pointer: CData) -> str:
    """What a C string says; "" for NULL."""
    return "" if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "surrogateescape")


def callback(function: Callable[..., None]) -> None:
    """Attaches `function` to the callback of its name; what it raises becomes the failure of the call."""

    @functools.wraps(function)
    def guarded(call: CData, *arguments: Any) -> int:
        try:
            function(call, *arguments)
        except BaseException as error:
            result = record(call, error, getattr(error, "_ort_abi_where", ""))
            forget_frames(error)
            return result
        return 1

    ffi.def_extern(name=function.__name__)(guarded)


def _at(where: str, error: Exception) -> Exception:
    """The same exception with the node that it is about, for the message."""
    error._ort_abi_where = where  # type: ignore[attr-defined]
    return error


def key_values_of(api: CData, pairs: CData) -> dict[str, str]:
    """What an `OrtKeyValuePairs` of a host holds; {} for NULL. *copies*."""
    if pairs == ffi.NULL:
        return {}
    keys, values, count = ffi.new("const char* const**"), ffi.new("const char* const**"), ffi.new("size_t*")
    api.GetKeyValuePairs(pairs, keys, values, count)
    return {text_of(keys[0][i]): text_of(values[0][i]) for i in range(count[0])}


def config_of(api: CData, options: CData) -> dict[str, str]:
    """The config entries of an `OrtSessionOptions`; {} for NULL. *copies*."""
    if options == ffi.NULL:
        return {}
    entries = ffi.new("OrtKeyValuePairs**")
    check(api.GetSessionOptionsConfigEntries(options, entries), api)
    found = key_values_of(api, entries[0])
    api.ReleaseKeyValuePairs(entries[0])
    return found


def device_of(api: CData, handle: CData) -> Device:
    """What an `OrtHardwareDevice` is."""
    return Device(
        type=_DEVICE_TYPES.get(api.HardwareDevice_Type(handle), "unknown"),
        vendor=text_of(api.HardwareDevice_Vendor(handle)),
        vendor_id=api.HardwareDevice_VendorId(handle),
        device_id=api.HardwareDevice_DeviceId(handle),
        metadata=key_values_of(api, api.HardwareDevice_Metadata(handle)),
        _handle=handle,
    )


# ---- factory ----


@callback
def bridge_py_create_factory(
    call: CData, provider: int, registered_name: CData, logger: CData, info: CData
) -> None:
    cls = class_of(provider) if provider else find(text_of(registered_name))
    name, vendor, version = (text.encode() for text in (cls.name, cls.vendor, cls.version))
    number = _objects.add(Factory(cls))
    features = features_of(cls, of_factory=True) | (
        lib.BRIDGE_FACTORY_STREAM_AWARE if cls.stream_aware else 0
    )
    if not lib.bridge_set_factory(info, number, name, vendor, version, cls.vendor_id, features):
        _objects.remove(number)
        raise MemoryError("no memory for the factory")
    try:
        add_custom_ops(call, info, cls)
    except BaseException:
        _objects.remove(number)
        raise


@callback
def bridge_py_supported_devices(
    call: CData, factory: int, handle: CData, devices: CData, count: int, out: CData, room: int, used: CData
) -> None:
    made: Factory = _objects.get(factory, "factory")
    cls, host = made.cls, call.host
    found = [device_of(host.api, devices[i]) for i in range(count)]
    chosen = [_offered(cls, item) for item in cls.get_supported_devices(tuple(found))]
    if len(chosen) > room:
        raise ValueError(f"get_supported_devices() gave {len(chosen)} devices, the host has room for {room}")
    try:
        for index, (device, metadata, options) in enumerate(chosen):
            out[index] = _create_ep_device(host, handle, device, metadata, options)
            used[0] = index + 1
            _add_memories(host, made, device, out[index])
        made.make_early(host)
    except BaseException:
        for index in range(used[0]):
            host.ep_api.ReleaseEpDevice(out[index])
            out[index] = ffi.NULL
        used[0] = 0
        raise


def _offered(cls: type[ExecutionProvider], item: Any) -> tuple[Device, Mapping[Any, Any], Mapping[Any, Any]]:
    """A device, its metadata and its options."""
    given = item if isinstance(item, tuple) and len(item) in (2, 3) else (item,)
    device, metadata, options = (*given, {}, {})[:3]
    if not isinstance(device, Device):
        raise TypeError(
            f"{cls.__qualname__}.get_supported_devices() must give Device objects, not {device!r}"
        )
    return device, metadata, options


def new_key_values(api: CData, items: Mapping[Any, Any]) -> CData:
    """*gives* an `OrtKeyValuePairs*` of texts (caller releases with `ReleaseKeyValuePairs`).

    Raises ValueError for a NUL character in one.
    """
    texts = [(encode(str(key)), encode(str(value))) for key, value in dict(items).items()]
    pairs = ffi.new("OrtKeyValuePairs**")
    api.CreateKeyValuePairs(pairs)
    if pairs[0] == ffi.NULL:
        raise MemoryError("no memory for an OrtKeyValuePairs")
    for key, value in texts:
        api.AddKeyValuePair(pairs[0], key, value)
    return pairs[0]


def _create_ep_device(
    host: CData, factory: CData, device: Device, metadata: Mapping[Any, Any], options: Mapping[Any, Any]
) -> CData:
    pairs: list[CData] = []
    out = ffi.new("OrtEpDevice**")
    try:
        pairs += (new_key_values(host.api, items) for items in (metadata, options))
        check(host.ep_api.CreateEpDevice(factory, device._handle, *pairs, out), host.api)
    finally:
        for made in pairs:
            host.api.ReleaseKeyValuePairs(made)
    return out[0]


def _add_memories(host: CData, factory: Factory, device: Device, ep_device: CData) -> None:
    for memory in factory.cls.memory_infos(device):
        if not isinstance(memory, MemoryInfo):
            raise TypeError(
                f"{factory.cls.__qualname__}.memory_infos() must give MemoryInfo objects, not {memory!r}"
            )
        pointer = factory.info_of(host.api, memory)
        check(host.ep_api.EpDevice_AddAllocatorInfo(ep_device, pointer), host.api)


# ---- provider ----


@callback
def bridge_py_create_ep(
    call: CData,
    factory: int,
    devices: CData,
    count: int,
    options: CData,
    logger: CData,
    number: CData,
    features: CData,
) -> None:
    made: Factory = _objects.get(factory, "factory")
    cls, host = made.cls, call.host
    config = config_of(host.api, options)
    ep: ExecutionProvider = cls.__new__(cls)
    prefix = f"ep.{cls.name.lower()}."
    ep.options = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    ep.config = {key: value for key, value in config.items() if not key.startswith(prefix)}
    ep.devices = tuple(device_of(host.api, devices[i]) for i in range(count))
    ep._binding = Binding(host, logger, made)
    features[0] = _features(made)
    ep.__init__()  # type: ignore[misc]
    number[0] = _objects.add(ep)


_OPTIONAL = {
    "on_run_start": lib.BRIDGE_EP_RUN_START,
    "on_run_end": lib.BRIDGE_EP_RUN_END,
    "set_dynamic_options": lib.BRIDGE_EP_DYNAMIC_OPTIONS,
    "on_session_ready": lib.BRIDGE_EP_SESSION_READY,
    "sync": lib.BRIDGE_EP_SYNC,
    "should_convert_data_layout": lib.BRIDGE_EP_CONVERTS_LAYOUT,
    "create_session_allocator": lib.BRIDGE_EP_ALLOCATOR,
    "create_session_stream": lib.BRIDGE_EP_STREAM,
    "default_memory_device": lib.BRIDGE_EP_DEFAULT_MEMORY,
}


def _features(factory: Factory) -> int:
    cls, base = factory.cls, ExecutionProvider
    found = sum(bit for name, bit in _OPTIONAL.items() if getattr(cls, name) is not getattr(base, name))
    found |= features_of(cls)
    if cls.create_allocator.__func__ is not base.create_allocator.__func__:  # type: ignore[attr-defined]
        found |= lib.BRIDGE_EP_ALLOCATOR
    layout = cls.preferred_data_layout
    if layout not in ("NCHW", "NHWC"):
        raise ValueError(f"{cls.__qualname__}.preferred_data_layout is 'NCHW' or 'NHWC', not {layout!r}")
    if layout == "NHWC":
        found |= lib.BRIDGE_EP_CHANNELS_LAST
    has_kernels = cls.kernels or cls.control_flow or factory.memories
    return found | lib.BRIDGE_EP_KERNELS if has_kernels else found


@callback
def bridge_py_get_capability(call: CData, number: int, graph: CData, info: CData) -> None:
    ep: ExecutionProvider = _objects.get(number, "provider")
    binding = ep._binding
    with open_graph(binding.host.api, graph) as (view,):
        binding.support_info = info
        try:
            claims = ep.get_capability(view)
            if not isinstance(claims, Iterable):
                raise TypeError(
                    f"get_capability() must return an iterable of claims, not {type(claims).__name__}"
                )
            for claim in claims:
                _claim(ep, claim, info)
        finally:
            binding.support_info = None


def _claim(ep: ExecutionProvider, claim: Any, info: CData) -> None:
    host = ep._binding.host
    if isinstance(claim, Node) and ep.has_kernel(claim):
        check(host.ep_api.EpGraphSupportInfo_AddSingleNode(info, claim._pointer), host.api)
        return
    if isinstance(claim, Node):
        claim = Fuse([claim])
    elif isinstance(claim, Sequence) and not isinstance(claim, str):
        claim = Fuse(claim)
    if (
        not isinstance(claim, Fuse)
        or not claim.nodes
        or not all(isinstance(node, Node) for node in claim.nodes)
    ):
        raise TypeError(f"a claim is a Node, a list of Nodes or a Fuse of Nodes, not {claim!r}")
    fusion = ffi.new("OrtNodeFusionOptions*")
    fusion.ort_version_supported = host.version
    fusion.drop_constant_initializers = claim.drop_constants
    nodes = ffi.new("const OrtNode*[]", [node._pointer for node in claim.nodes])
    check(host.ep_api.EpGraphSupportInfo_AddNodesToFuse(info, nodes, len(nodes), fusion), host.api)


@callback
def bridge_py_compile(
    call: CData, number: int, graphs: CData, fused: CData, count: int, ids: CData, context_nodes: CData
) -> None:
    ep: ExecutionProvider = _objects.get(number, "provider")
    made: list[int] = []
    try:
        with open_graph(ep._binding.host.api, *(graphs[i] for i in range(count))) as views:
            for index, graph in enumerate(views):
                graph.fused_node = graph._scope.get(Node, fused[index])
                owner, compute, context = _compiled(ep, graph)
                made.append(_add_node(ep, owner, compute))
                ids[index] = made[-1]
                if context is not None and ep.config.get("ep.context_enable") == "1":
                    context_nodes[index] = create_context_node(call.host, ep.name, graph.fused_node, context)
    except BaseException:
        with contextlib.ExitStack() as stack:  # goes on when one of them raises
            for done in made:
                stack.callback(_release, done)
        raise


def _compiled(ep: ExecutionProvider, graph: Graph) -> tuple[Any, Computation, Any]:
    fused = graph.fused_node
    assert fused is not None
    operators = sorted({node.op_type for node in graph.nodes})
    label = f"node {fused.name!r} ({', '.join(operators[:4])}{', …' if len(operators) > 4 else ''})"
    given = ["" if value is None else value.name for value in fused.inputs]
    wanted = [value.name for value in graph.inputs if value.name in given]
    rest = [name for name in given if name not in wanted]  # constants, without drop_constants
    graph.argument_names = wanted + rest
    order = [given.index(name) for name in graph.argument_names]
    outputs = ["" if value is None else value.name for value in fused.outputs]
    if outputs != [value.name for value in graph.outputs]:
        raise RuntimeError(f"{label}: the host's node has the outputs {outputs}, its graph {graph.outputs}")
    _check_captured(graph, label)
    try:
        made = ep.compile(graph)
    except Exception as error:
        raise _at(label, error) from error.__cause__
    kinds = [None if value is None else value.type for value in fused.outputs]
    types = [kind.element_type if isinstance(kind, TensorType) else 0 for kind in kinds]
    info = NodeInfo(label, given, outputs, types, None if order == list(range(len(given))) else order)
    code, context = (made.code, made.context) if isinstance(made, Compiled) else (made, None)
    if isinstance(code, Kernel):
        return code, context_node(code.compute, info, _trust(ep)), context
    if not callable(code):
        raise TypeError(f"compile() must return a callable or a Kernel, not {type(code).__name__}")
    return code, array_node(code, info, _trust(ep)), context


def _check_captured(graph: Graph, label: str) -> None:
    """onnxruntime 1.24 loses what only a subgraph reads: better an error here than a name that nobody
    finds."""
    captured = {value.name: value for node in graph.nodes for value in node.implicit_inputs}
    known = {value.name for node in graph.nodes for value in node.outputs if value is not None}
    known |= {*graph.argument_names, *graph.initializers}
    for name in captured.keys() - known:
        if not captured[name].is_constant_initializer:
            raise RuntimeError(f"{label}: the host does not pass the value {name!r} that a subgraph captures")


def _add_node(ep: ExecutionProvider, owner: Any, node: Computation) -> int:
    if not ep.concurrent:
        node = _one_at_a_time(ep._binding, node)
    number = _objects.add(owner)
    _nodes[number], _again[number] = node, node.again
    return number


def _one_at_a_time(binding: Binding, node: Computation) -> Computation:
    def compute(what: int, run: CData) -> int:
        with binding.lock:
            return node.compute(what, run)

    def again() -> int:
        with binding.lock:
            return node.again()

    return Computation(compute, again, node.fail)


# ---- kernels ----


@callback
def bridge_py_get_kernel_registry(call: CData, number: int, out: CData) -> None:
    ep: ExecutionProvider = _objects.get(number, "provider")
    binding = ep._binding
    if binding.registry is None:
        copies = memcpy_kernels(type(ep)) if binding.factory.memories else ()
        specs = (*ep.kernels, *host_kernels(type(ep)), *copies)
        registry = ffi.new("OrtKernelRegistry**")
        check(binding.host.ep_api.CreateKernelRegistry(registry), binding.host.api)
        try:
            for spec in specs:
                _register_kernel(ep, registry[0], spec)
        except BaseException:  # none is better than one with some kernels
            binding.host.ep_api.ReleaseKernelRegistry(registry[0])
            _forget_definitions(binding)
            raise
        binding.registry = registry[0]
    out[0] = binding.registry


def _forget_definitions(binding: Binding) -> None:
    for number in binding.definitions:
        _objects.remove(number)
    binding.definitions.clear()


def _register_kernel(ep: ExecutionProvider, registry: CData, spec: KernelSpec) -> None:
    api, ep_api = ep._binding.host.api, ep._binding.host.ep_api
    builder, definition = ffi.new("OrtKernelDefBuilder**"), ffi.new("OrtKernelDef**")
    check(ep_api.CreateKernelDefBuilder(builder), api)
    try:
        check(ep_api.KernelDefBuilder_SetOperatorType(builder[0], spec.op_type.encode()), api)
        check(ep_api.KernelDefBuilder_SetDomain(builder[0], spec.domain.encode()), api)
        first, last = spec.since_version
        check(
            ep_api.KernelDefBuilder_SetSinceVersion(builder[0], first, _NO_END if last is None else last), api
        )
        check(ep_api.KernelDefBuilder_SetExecutionProvider(builder[0], ep.name.encode()), api)
        for index in spec.cpu_inputs:
            check(
                ep_api.KernelDefBuilder_SetInputMemType(builder[0], index, OrtMemType.OrtMemTypeCPUInput), api
            )
        for index in spec.cpu_outputs:
            check(
                ep_api.KernelDefBuilder_SetOutputMemType(builder[0], index, OrtMemType.OrtMemTypeCPUOutput),
                api,
            )
        for parameter, element_types in spec.types.items():
            types = ffi.new("const OrtDataType*[]", len(element_types))
            for index, element_type in enumerate(element_types):
                check(ep_api.GetTensorDataType(element_type, types + index), api)
            check(
                ep_api.KernelDefBuilder_AddTypeConstraint(builder[0], parameter.encode(), types, len(types)),
                api,
            )
        check(ep_api.KernelDefBuilder_Build(builder[0], definition), api)
        create, state = _creator(ep, spec)
        check(ep_api.KernelRegistry_AddKernel(registry, definition[0], create, state), api)
    finally:
        ep_api.ReleaseKernelDef(definition[0])
        ep_api.ReleaseKernelDefBuilder(builder[0])


def _creator(ep: ExecutionProvider, spec: KernelSpec) -> tuple[CData, CData]:
    """The function that makes a kernel, and its state."""
    binding = ep._binding
    if spec.make is HostKernel:
        return creator(spec), binding.host
    number = _objects.add((ep, spec))
    binding.definitions.append(number)
    state = ffi.cast("void*", binding.host.index << HOST_SHIFT | number)
    return ffi.addressof(lib, "bridge_create_kernel"), state


@callback
def bridge_py_create_kernel(
    call: CData, definition: int, pointer: CData, number: CData, features: CData
) -> None:
    ep, spec = _objects.get(definition, "kernel definition")
    info = KernelInfo(call.host, pointer)
    try:
        label = f"node {info.name!r} ({spec.op_type})"
        try:
            outputs = info.output_names
            node = NodeInfo("", info.input_names, outputs, info.element_types(outputs))
            owner, compute = _made_kernel(ep, spec, info, node)
            number[0] = _add_node(ep, owner, compute)
            features[0] = lib.BRIDGE_KERNEL_PREPACK if packs(owner) else 0
        except Exception as error:
            raise _at(label, error) from error.__cause__
    finally:
        info._close()


def _made_kernel(
    ep: ExecutionProvider, spec: KernelSpec, info: KernelInfo, node: NodeInfo
) -> tuple[Any, Computation]:
    if spec.make is Memcpy:
        return Memcpy(info), memcpy_node(ep, node)
    if isinstance(spec.make, type):
        kernel: Kernel = spec.make(info)
        return kernel, context_node(kernel.compute, node, _trust(ep))
    attributes = {}
    for name, default in attribute_parameters(spec.make).items():
        value = info.attribute(name, None)
        if value is not None:
            attributes[name] = value
        elif default is inspect.Parameter.empty:
            raise ValueError(
                f"the kernel function needs the attribute {name!r}, which the node does not have"
            )
    function = functools.partial(spec.make, **attributes) if attributes else spec.make
    return function, array_node(function, node, _trust(ep))


def _trust(ep: ExecutionProvider) -> Trust:
    captures = type(ep).is_graph_capture_enabled is not ExecutionProvider.is_graph_capture_enabled
    return Trust(by_address=captures)


@callback
def bridge_py_prepack(
    call: CData, number: int, value: CData, index: int, allocator: CData, cache: CData, packed: CData
) -> None:
    kernel: Kernel = _objects.get(number, "kernel")
    packed[0] = prepack(call.host, number, kernel, value, index, allocator, cache)


@callback
def bridge_py_set_shared(
    call: CData, number: int, buffers: CData, sizes: CData, count: int, index: int
) -> None:
    kernel: Kernel = _objects.get(number, "kernel")
    set_shared(number, kernel, index, [int(ffi.cast("uintptr_t", buffers[i])) for i in range(count)])


# ---- runs ----


@ffi.def_extern()
def bridge_py_compute(number: int, what: int, run: CData) -> int:
    """Runs a node; reports its own failures."""
    try:
        return _nodes[number].compute(what, run)
    except KeyError:
        error = LookupError(f"there is no node with id {number} (released, or never made)")
        return record(ffi.addressof(run, "call"), error)
    except BaseException as error:
        return record(ffi.addressof(run, "call"), error)


@ffi.def_extern()
def bridge_py_again(number: int) -> int:
    """The same with the inputs of the run before: a computation knows its run."""
    try:
        return _again[number]()
    except BaseException as error:
        return _nodes[number].fail(error) if number in _nodes else 0


@contextlib.contextmanager
def _run_options(call: CData, pointer: CData) -> Iterator[RunOptions]:
    options = RunOptions(call.host.api, pointer)
    try:
        yield options
    finally:
        options._close()


@callback
def bridge_py_run_start(call: CData, number: int, options: CData) -> None:
    ep: ExecutionProvider = _objects.get(number, "provider")
    with _run_options(call, options) as run_options:
        plain_call(ep.on_run_start, run_options)


@callback
def bridge_py_run_end(call: CData, number: int, options: CData, sync_stream: int) -> None:
    ep: ExecutionProvider = _objects.get(number, "provider")
    with _run_options(call, options) as run_options:
        plain_call(ep.on_run_end, run_options, bool(sync_stream))


@callback
def bridge_py_set_dynamic_options(call: CData, number: int, keys: CData, values: CData, count: int) -> None:
    options = {text_of(keys[i]): text_of(values[i]) for i in range(count)}
    plain_call(_objects.get(number, "provider").set_dynamic_options, options)


@callback
def bridge_py_should_convert(call: CData, number: int, domain: CData, op_type: CData, answer: CData) -> None:
    ep: ExecutionProvider = _objects.get(number, "provider")
    convert = ep.should_convert_data_layout(text_of(domain), text_of(op_type))
    if convert is not None and not isinstance(convert, bool):
        raise TypeError(f"should_convert_data_layout() must return a bool or None, not {convert!r}")
    answer[0] = -1 if convert is None else int(convert)


@callback
def bridge_py_session_ready(call: CData, number: int) -> None:
    plain_call(_objects.get(number, "provider").on_session_ready)


# ---- end of life ----

_CLOSABLE = (
    Factory,
    ExecutionProvider,
    Kernel,
    Allocator,
    DataTransfer,
    SyncStream,
    SyncNotification,
    Profiler,
    ResourceImporter,
    Imported,
)


def _release(number: int) -> None:
    _nodes.pop(number, None)
    _again.pop(number, None)
    item = _objects.remove(number)
    ep = item if isinstance(item, ExecutionProvider) else None
    try:
        if isinstance(item, _CLOSABLE):
            plain_call(item.close)
    finally:  # what it raises is no reason to keep the rest
        del item
        release_shared(number)
        if ep is not None:
            _release_binding(ep)


def _release_binding(ep: ExecutionProvider) -> None:
    binding = ep._binding
    _forget_definitions(binding)
    if binding.registry is not None:
        binding.host.ep_api.ReleaseKernelRegistry(binding.registry)
        binding.registry = None
    if binding.transfer is not None:
        transfer, binding.transfer = binding.transfer, None
        transfer.close()


@callback
def bridge_py_release(call: CData, number: int) -> None:
    _release(number)


atexit.register(lib.bridge_gate_close)
