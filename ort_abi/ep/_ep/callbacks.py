"""The functions that the C side calls for providers (csrc/bridge: ep.c, ep_slots.c), under the rules of
`_call.calls`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ort_abi._enums import OrtMemType
from ort_abi._lib import CData, check, ffi, lib
from ort_abi.ep._call import objects
from ort_abi.ep._call.calls import HOST_SHIFT, callback, checked, located, plain_call, text_of
from ort_abi.ep._call.words import number_of
from ort_abi.ep._control_flow.host_kernels import HostKernel, creator, host_kernels
from ort_abi.ep._device.device import MemoryDevice
from ort_abi.ep._ep.ep_context import Compiled, create_context_node
from ort_abi.ep._ep.provider import Binding, ExecutionProvider, Fuse
from ort_abi.ep._ep.run_options import RunOptions
from ort_abi.ep._node.callbacks import add_node, release_node, trust
from ort_abi.ep._node.compute import Node as Computation
from ort_abi.ep._node.compute import NodeInfo, array_node, context_node
from ort_abi.ep._node.kernel import Kernel, KernelSpec
from ort_abi.ep._node.memcpy import memcpy_kernels
from ort_abi.graph import Graph, Node, TensorType, open_graph

__all__ = ["release_binding"]

_NO_END = 2**31 - 2  # not INT_MAX: stock hosts read that as the first version only


# ---- graphs ----


@callback
def bridge_py_get_capability(call: CData, number: int, graph: CData, info: CData) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
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
    ep: ExecutionProvider = objects.get(number, "provider")
    made: list[int] = []
    try:
        with open_graph(ep._binding.host.api, *(graphs[i] for i in range(count))) as views:
            for index, graph in enumerate(views):
                graph.fused_node = graph._scope.get(Node, fused[index])
                owner, compute, context = _compiled(ep, graph)
                made.append(add_node(ep, owner, compute))
                ids[index] = made[-1]
                if context is not None and ep.config.get("ep.context_enable") == "1":
                    context_nodes[index] = create_context_node(call.host, ep.name, graph.fused_node, context)
    except BaseException:
        with contextlib.ExitStack() as stack:  # goes on when one of them raises
            for done in made:
                stack.callback(release_node, done)
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
        raise located(label, error) from error.__cause__
    kinds = [None if value is None else value.type for value in fused.outputs]
    types = [kind.element_type if isinstance(kind, TensorType) else 0 for kind in kinds]
    info = NodeInfo(label, given, outputs, types, None if order == list(range(len(given))) else order)
    code, context = (made.code, made.context) if isinstance(made, Compiled) else (made, None)
    if isinstance(code, Kernel):
        return code, context_node(code.compute, info, trust(ep)), context
    if not callable(code):
        raise TypeError(f"compile() must return a callable or a Kernel, not {type(code).__name__}")
    return code, array_node(code, info, trust(ep)), context


def _check_captured(graph: Graph, label: str) -> None:
    """onnxruntime 1.24 loses what only a subgraph reads: better an error here than a name that nobody
    finds."""
    captured = {value.name: value for node in graph.nodes for value in node.implicit_inputs}
    known = {value.name for node in graph.nodes for value in node.outputs if value is not None}
    known |= {*graph.argument_names, *graph.initializers}
    for name in captured.keys() - known:
        if not captured[name].is_constant_initializer:
            raise RuntimeError(f"{label}: the host does not pass the value {name!r} that a subgraph captures")


# ---- kernels ----


@callback
def bridge_py_get_kernel_registry(call: CData, number: int, out: CData) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
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
        objects.remove(number)
    binding.definitions.clear()


def release_binding(ep: ExecutionProvider) -> None:
    """Gives back what a provider has of its host, and closes what it made for itself."""
    binding = ep._binding
    _forget_definitions(binding)
    if binding.registry is not None:
        binding.host.ep_api.ReleaseKernelRegistry(binding.registry)
        binding.registry = None
    if binding.transfer is not None:
        transfer, binding.transfer = binding.transfer, None
        transfer.close()


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
    number = objects.add((ep, spec))
    binding.definitions.append(number)
    state = ffi.cast("void*", binding.host.index << HOST_SHIFT | number)
    return ffi.addressof(lib, "bridge_create_kernel"), state


@contextlib.contextmanager
def _run_options(call: CData, pointer: CData) -> Iterator[RunOptions]:
    options = RunOptions(call.host.api, pointer)
    try:
        yield options
    finally:
        options._close()


@callback
def bridge_py_run_start(call: CData, number: int, options: CData) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
    with _run_options(call, options) as run_options:
        plain_call(ep.on_run_start, run_options)


@callback
def bridge_py_run_end(call: CData, number: int, options: CData, sync_stream: int) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
    with _run_options(call, options) as run_options:
        plain_call(ep.on_run_end, run_options, bool(sync_stream))


@callback
def bridge_py_set_dynamic_options(call: CData, number: int, keys: CData, values: CData, count: int) -> None:
    options = {text_of(keys[i]): text_of(values[i]) for i in range(count)}
    plain_call(objects.get(number, "provider").set_dynamic_options, options)


@callback
def bridge_py_should_convert(call: CData, number: int, domain: CData, op_type: CData, answer: CData) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
    convert = ep.should_convert_data_layout(text_of(domain), text_of(op_type))
    if convert is not None and not isinstance(convert, bool):
        raise TypeError(f"should_convert_data_layout() must return a bool or None, not {convert!r}")
    answer[0] = -1 if convert is None else int(convert)


@callback
def bridge_py_session_ready(call: CData, number: int) -> None:
    plain_call(objects.get(number, "provider").on_session_ready)


# ---- optional slots ----


@callback
def bridge_py_ep_sync(call: CData, number: int) -> None:
    plain_call(objects.get(number, "provider").sync)


@callback
def bridge_py_default_memory_device(call: CData, number: int, out: CData) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
    device = ep.default_memory_device()
    if device is not None:
        what = f"{type(ep).__qualname__}.default_memory_device()"
        checked(device, MemoryDevice, what)
        out[0] = ep._binding.factory.device_pointer(call.host, device, what)


def _resource(ep: ExecutionProvider) -> int:
    found = ep.get_available_resource()
    if found is None:
        return -1
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < 1 << 63:
        raise TypeError(
            f"{type(ep).__qualname__}.get_available_resource() must return a number of bytes or None, "
            f"not {found!r}"
        )
    return found


def _word(kind: str, name: str) -> Callable[[ExecutionProvider, int], int]:
    def ask(ep: ExecutionProvider, argument: int) -> int:
        return number_of(kind, getattr(ep, name)(), f"{type(ep).__qualname__}.{name}()")

    return ask


_ANSWERS: dict[int, Callable[[ExecutionProvider, int], Any]] = {
    lib.BRIDGE_ASK_CAPTURE_ENABLED: lambda ep, _: bool(plain_call(ep.is_graph_capture_enabled)),
    lib.BRIDGE_ASK_IS_CAPTURED: lambda ep, graph: bool(plain_call(ep.is_graph_captured, graph)),
    lib.BRIDGE_ASK_REPLAY: lambda ep, graph: plain_call(ep.replay_graph, graph),
    lib.BRIDGE_ASK_CAPTURE_POLICY: _word("policy", "get_graph_capture_node_assignment_policy"),
    lib.BRIDGE_ASK_RELEASE_GRAPH: lambda ep, graph: plain_call(ep.release_captured_graph, graph),
    lib.BRIDGE_ASK_RESOURCE: lambda ep, _: _resource(ep),
    lib.BRIDGE_ASK_WEIGHTLESS: _word("weightless", "get_weightless_support"),
}


@callback
def bridge_py_ep_ask(call: CData, number: int, what: int, argument: int, answer: CData) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
    answer[0] = _ANSWERS[what](ep, argument) or 0


@callback
def bridge_py_model_compatibility(call: CData, number: int, graph: CData, text: CData) -> None:
    ep: ExecutionProvider = objects.get(number, "provider")
    with open_graph(call.host.api, graph) as (view,):
        found = ep.get_compiled_model_compatibility_info(view)
    if not isinstance(found, str) or "\0" in found:
        raise TypeError(
            f"{type(ep).__qualname__}.get_compiled_model_compatibility_info() must return a text, "
            f"not {found!r}"
        )
    text[0] = lib.bridge_copy_string(found.encode())
    if text[0] == ffi.NULL:
        raise MemoryError("no memory for a text")
