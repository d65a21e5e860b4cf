"""Sessions: a model, placed on execution providers, ready to run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ort_abi import _shapes, env, errors
from ort_abi._last_provider import offer_reference
from ort_abi._lib import (
    NULL,
    CData,
    Handle,
    api,
    c_strings,
    check,
    create,
    default_allocator,
    encode,
    ffi,
    lib,
    take_text,
    text,
)
from ort_abi._session_run import Runner
from ort_abi.assignment import (
    NotTaken,
    OrtEpAssignedSubgraph,
    PlanStep,
    read_assigned_subgraphs,
    read_not_taken,
    read_plan,
)
from ort_abi.device import OrtEpDevice, OrtMemoryInfo
from ort_abi.graph import OptionalType, TensorType, ValueType, read_type
from ort_abi.io_binding import IOBinding
from ort_abi.kernels import KernelDef, read_kernels
from ort_abi.options import Provider, RunOptions, SessionOptions
from ort_abi.prepacked import PrepackedWeightsContainer
from ort_abi.value import OrtValue, dtype_of, output_array, owned, tensor_over, type_text

__all__ = ["InferenceSession", "ModelMetadata", "NodeArg"]

_CPU_PROVIDER = "CPUExecutionProvider"
_NO_FALLBACK = "session.disable_cpu_ep_fallback"
_MODEL_PATH = "session.ort_abi_model_path"
_MAX_KEPT_NAMES = 64
_STOCK_PROVIDERS = frozenset(
    f"{name}ExecutionProvider"
    for name in [
        *("ACL", "ArmNN", "Azure", "CANN", "CUDA", "CoreML", "Dml", "Dnnl", "Js", "MIGraphX", "Nnapi"),
        *("NvTensorRTRTX", "OpenVINO", "QNN", "ROCM", "Rknpu", "SNPE", "Tensorrt", "VSINPU", "VitisAI"),
        *("WebGpu", "WebNN", "Xnnpack"),
    ]
)
"""Providers of some build of stock onnxruntime: programs name them where a host may lack them."""
_IGNORED = {
    "enable_fallback",
    "read_config_from_model",
    "disabled_optimizers",
}  # no use here

# Slots that every run calls: reading one from the table makes an object.
_run: CData = api.Run
_release_value: CData = api.ReleaseValue


class NodeArg(NamedTuple):
    """An input or output of a model: its name, its type ("tensor(float)") and its shape.

    A dimension is a number, a name or None. The shape is [] for scalars, unknown ranks and what is no tensor.
    """

    name: str
    type: str
    shape: list[int | str | None]


class ModelMetadata(NamedTuple):
    """What a model says about itself."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class InferenceSession:
    """A model that is ready to run. `run` may be called from any number of threads.

    Outputs stay valid when the session is gone; those in a provider's own memory keep it alive.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[Any, Any]]] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        *,
        fallback: bool = True,
        prepacked_weights_container: PrepackedWeightsContainer | None = None,
        **kwargs: Any,
    ) -> None:
        """Loads a model and places its nodes: on `providers` in their order, or on those of the options.

        `providers` holds names of execution providers, or pairs of a name and options; instead of the latter
        `provider_options` may hold the options. Nodes that no provider takes go to `CPUExecutionProvider` and
        then, if the `onnx` package is installed, to its reference implementation, unless `fallback` is False
        or the session config entry `session.disable_cpu_ep_fallback` is "1". The `onnx` package also infers
        shapes first, unless `session.ort_abi_shape_inference` is "0". With a
        `prepacked_weights_container` the session shares packed weights with the container's other sessions.

        Providers that builds of stock onnxruntime have and this host lacks are passed over with a warning, as
        in stock, and so is one that is named twice. Raises TypeError and ValueError for wrong arguments, and
        an `errors.OrtError` that names what the host could not do: read the model, load it, find a provider
        for a node.
        """
        unknown = kwargs.keys() - _IGNORED
        if unknown:
            raise TypeError(f"InferenceSession has no argument {', '.join(sorted(unknown))}")
        if not isinstance(path_or_bytes, (str, bytes, os.PathLike)):
            raise TypeError(f"a model is a path or bytes, not {type(path_or_bytes).__name__}")
        self._model, self._fallback = path_or_bytes, fallback
        self._container = prepacked_weights_container
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._providers = list(_chosen_providers(self._options, providers, provider_options))
        self._handle: Handle | None = self._load(path_or_bytes, fallback)
        env.track_session(self, self._handle)
        self._inputs = self._node_args("Input")
        self._outputs = self._node_args("Output")
        self._output_names = tuple(arg.name for arg in self._outputs)
        self._runners: dict[tuple[tuple[str, ...], tuple[str, ...] | None], Runner] = {}
        self._required = [arg.name for arg in self._inputs if not arg.type.startswith("optional")]

    def _load(self, model: str | bytes | os.PathLike[str], fallback: bool) -> Handle:
        data = model if isinstance(model, bytes) else None
        path = None if isinstance(model, bytes) else os.fspath(model)
        has_inference = self._options.config(_shapes.CONFIG_KEY, "1") != "0"
        shaped = _shapes.with_shapes(path, data) if has_inference else None
        if shaped is not None:
            try:
                return self._load_model(path, shaped, fallback)
            except (errors.Fail, errors.InvalidGraph) as error:
                if "Type Error" not in str(error):
                    raise
                # `onnx` believes whatever a model declares, and infers more from it: the model has the word.
        return self._load_model(path, data, fallback)

    def _load_model(self, path: str | None, data: bytes | None, fallback: bool) -> Handle:
        handle = self._create(path, data, fallback)
        while (name := lib.ortabi_session_ep_name(handle.pointer, len(self._providers))) != NULL:
            self._providers.append(Provider(text(name), (), {}))
        return handle

    def _create(self, path: str | None, data: bytes | None, fallback: bool) -> Handle:
        environment, options = env.environment(), self._options.for_session(self._providers)
        if fallback and self._options.config(_NO_FALLBACK, "0") != "1":
            offer_reference(options.pointer)
        elif _CPU_PROVIDER not in self.get_providers():
            check(api.AddSessionConfigEntry(options.pointer, _NO_FALLBACK.encode(), b"1"))
        parents = (environment, *self._options.initializers)
        source: tuple[Any, ...] = (encode(path or "", "the path"),)
        make = api.CreateSession
        if data is not None:
            make, source = api.CreateSessionFromArray, (ffi.from_buffer(data), len(data))
            if path is not None:
                entry = (_MODEL_PATH.encode(), encode(path, "the path"))
                check(api.AddSessionConfigEntry(options.pointer, *entry))
        arguments: tuple[Any, ...] = (environment.pointer, *source, options.pointer)
        if self._container is not None:
            make = (
                api.CreateSessionWithPrepackedWeightsContainer
                if data is None
                else api.CreateSessionFromArrayWithPrepackedWeightsContainer
            )
            arguments = (*arguments, self._container.pointer)
        return create("OrtSession", api.ReleaseSession, make, *arguments, parents=parents)

    # ---- lifetime ----

    def _session(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise RuntimeError("the session is closed")
        return handle

    @property
    def pointer(self) -> CData:
        """The `OrtSession*`. *borrows*: valid until `close`."""
        return self._session().pointer

    def close(self) -> None:
        """Releases the session as soon as no run, binding or output needs it. Later calls do nothing."""
        self._handle = None

    def __enter__(self) -> InferenceSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- running ----

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Runs the model once (`Run`, API 1). Returns one array a name, or one an output of the model.

        Inputs are NumPy arrays (used without a copy if C-contiguous), `OrtValue`s, or lists, of which arrays
        of the model's type are made. Raises ValueError for missing inputs and lists that make no such array,
        TypeError for what is no array, `errors.InvalidArgument` for wrong names, types and shapes.
        """
        session = self._session()
        if run_options is None:
            outputs = self._runner(output_names, input_feed).run(session, input_feed)
            if outputs is not None:
                return outputs
        return [
            None if handle is None else output_array(handle)
            for handle in self._run(output_names, input_feed, run_options)
        ]

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """As `run`, with `OrtValue`s in and out."""
        handles = self._run(output_names, input_dict_ort_values, run_options)
        return [OrtValue(handle) for handle in handles if handle is not None]

    def _run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
    ) -> list[Handle | None]:
        session = self._session()
        names = self._runner(output_names, input_feed).names
        outputs = ffi.new("OrtValue*[]", names.num_outputs)
        options = NULL if run_options is None else run_options.pointer
        made: list[CData] = []
        alive: list[object] = []
        try:
            items = [(name, self._array_of(name, data)) for name, data in input_feed.items()]
            inputs = ffi.new("const OrtValue*[]", [_input(*item, made, alive) for item in items])
            if len(inputs) != names.num_inputs:
                raise RuntimeError("the input feed has changed during the call")
            check(
                _run(
                    session.pointer,
                    options,
                    names.inputs,
                    inputs,
                    names.num_inputs,
                    names.outputs,
                    names.num_outputs,
                    outputs,
                )
            )
        finally:
            for pointer in made:
                _release_value(pointer)
        return [
            None if pointer == NULL else owned(pointer, session)
            for pointer in ffi.unpack(outputs, names.num_outputs)
        ]

    def _array_of(self, name: str, data: Any) -> Any:
        """A list as an array of the type that the model's input has; anything else as it is."""
        if not isinstance(data, list):
            return data
        kinds = {arg.name: arg.type for arg in (*self._inputs, *self.get_overridable_initializers())}
        kind = kinds.get(name, "no input")
        if not kind.startswith("tensor("):
            raise TypeError(f"input {name!r} is {kind}: no list can be one")
        try:
            array = np.array(data, dtype_of(kind))
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"input {name!r}: the list makes no {kind}: {error}") from error
        if array.dtype == object and any(isinstance(element, (list, tuple)) for element in array.flat):
            raise ValueError(f"input {name!r}: the list makes no {kind}: its parts have different lengths")
        return array

    def _runner(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> Runner:
        """What runs with these names have in common, kept for the next one."""
        key = (tuple(input_feed), tuple(output_names) if output_names else None)
        runner = self._runners.get(key)
        if runner is None:
            missing = [name for name in self._required if name not in input_feed]
            if missing:
                given = list(input_feed)
                raise ValueError(f"Required inputs ({missing}) are missing from input feed ({given}).")
            runner = Runner(key[0], key[1] or self._output_names)
            if len(self._runners) >= _MAX_KEPT_NAMES:
                self._runners.clear()
            self._runners[key] = runner
        return runner

    def io_binding(self) -> IOBinding:
        """Inputs and outputs bound ahead of runs (`CreateIoBinding`, API 5)."""
        return IOBinding(self._session())

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs with what is bound (`RunWithBinding`, API 5). Raises ValueError for a foreign binding."""
        session = self._session()
        if iobinding.session is not session:
            raise ValueError("an IOBinding works with the session that made it only")
        options = NULL if run_options is None else run_options.pointer
        check(api.RunWithBinding(session.pointer, options, iobinding.pointer))

    # ---- what the model is ----

    def get_inputs(self) -> list[NodeArg]:
        """The model's inputs."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The model's outputs."""
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Initializers that a feed may replace."""
        return self._node_args("OverridableInitializer")

    def _node_args(self, what: str) -> list[NodeArg]:
        session, count = self.pointer, ffi.new("size_t*")
        check(getattr(api, f"SessionGet{what}Count")(session, count))
        name, kind = getattr(api, f"SessionGet{what}Name"), getattr(api, f"SessionGet{what}TypeInfo")
        return [_node_arg(session, index, name, kind) for index in range(count[0])]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says about itself (`SessionGetModelMetadata`, API 2)."""
        make = api.SessionGetModelMetadata
        handle = create("OrtModelMetadata", api.ReleaseModelMetadata, make, self.pointer)
        meta = handle.pointer
        version = ffi.new("int64_t*")
        check(api.ModelMetadataGetVersion(meta, version))
        return ModelMetadata(
            take_text(api.ModelMetadataGetProducerName, meta),
            take_text(api.ModelMetadataGetGraphName, meta),
            take_text(api.ModelMetadataGetDomain, meta),
            take_text(api.ModelMetadataGetDescription, meta),
            take_text(api.ModelMetadataGetGraphDescription, meta),
            version[0],
            _custom_metadata(meta),
        )

    # ---- where it runs ----

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """Names of the execution providers that were offered the nodes, in this order."""
        return [provider.name for provider in self._providers]

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[Any, Any]]] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
    ) -> None:
        """Makes the session anew, on other providers. What was made with it before stays with the old one.

        Arguments and errors are those of the constructor; after an error the session is what it was.
        """
        self._session()
        before = self._providers
        self._providers = list(_chosen_providers(self._options, providers, provider_options))
        try:
            handle = self._load(self._model, self._fallback)
        except BaseException:
            self._providers = before
            raise
        env.track_session(self, handle)
        self._handle = handle

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each execution provider."""
        return {provider.name: dict(provider.options) for provider in self._providers}

    def get_kernels(self, provider_name: str) -> list[KernelDef]:
        """The kernels that a provider of the session has registered, those of custom operators last.

        [] for a provider that only compiles. Raises ValueError for one that the session does not have.
        """
        index = 0
        while (name := lib.ortabi_session_ep_name(self.pointer, index)) != NULL:
            if text(name) == provider_name:
                return read_kernels(self.pointer, index)
            index += 1
        raise ValueError(f"the session has no provider {provider_name!r}; it has {self.get_providers()}")

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Changes options of the providers in use (`SetEpDynamicOptions`, API 20)."""
        keys, _keys = c_strings([encode(key) for key in options])
        values, _values = c_strings([encode(value) for value in options.values()])
        check(api.SetEpDynamicOptions(self.pointer, keys, values, len(options)))

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Has the provider forget a graph that runs captured, by its run option "gpu_graph_id"
        (`SessionReleaseCapturedGraph`, API 27). Does nothing where no provider captures graphs."""
        check(api.SessionReleaseCapturedGraph(self.pointer, graph_annotation_id))

    def get_input_memory_infos(self) -> list[OrtMemoryInfo | None]:
        """Where each input is wanted (API 23)."""
        return self._memory_infos(api.SessionGetMemoryInfoForInputs, len(self._inputs))

    def get_output_memory_infos(self) -> list[OrtMemoryInfo | None]:
        """Where each output comes from (API 23)."""
        return self._memory_infos(api.SessionGetMemoryInfoForOutputs, len(self._outputs))

    def _memory_infos(self, slot: CData, count: int) -> list[OrtMemoryInfo | None]:
        infos = ffi.new("const OrtMemoryInfo*[]", count)
        check(slot(self.pointer, infos, count))
        return [OrtMemoryInfo._copy_of(infos[i]) for i in range(count)]

    def get_input_epdevices(self) -> list[OrtEpDevice | None]:
        """The device of the provider that each input goes to first (API 23); None for none."""
        count = len(self._inputs)
        devices = ffi.new("const OrtEpDevice*[]", count)
        check(api.SessionGetEpDeviceForInputs(self.pointer, devices, count))
        environment = env.environment()
        found = [devices[i] for i in range(count)]
        return [None if device == NULL else OrtEpDevice(device, environment) for device in found]

    def assignment(self) -> list[PlanStep]:
        """The nodes in the order in which they run, each with its provider. Ours: `ortabi_session_step`."""
        return read_plan(self.pointer)

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """The model's nodes, as providers took them (`Session_GetEpGraphAssignmentInfo`, API 24).

        Raises an `errors.OrtError` unless the session config entry
        `session.record_ep_graph_assignment_info` was "1" when the session was made.
        """
        return read_assigned_subgraphs(self.pointer)

    def get_not_taken(self) -> list[NotTaken]:
        """The nodes that providers left to others behind them, and why. Ours: `ortabi_session_not_taken`.

        Empty unless the session config entry `session.ort_abi_record_not_taken` was "1" when the session was
        made.
        """
        return read_not_taken(self.pointer)

    def set_timing(self, on: bool) -> None:
        """Counts runs and nanoseconds of each node from now on, or stops (`ortabi_session_set_timing`)."""
        lib.ortabi_session_set_timing(self.pointer, bool(on))

    def end_profiling(self) -> str:
        """Stops profiling and returns the profile's path (`SessionEndProfiling`, API 2)."""
        return take_text(api.SessionEndProfiling, self.pointer)

    def get_profiling_start_time_ns(self) -> int:
        """When profiling started (`SessionGetProfilingStartTimeNs`, API 5)."""
        out = ffi.new("uint64_t*")
        check(api.SessionGetProfilingStartTimeNs(self.pointer, out))
        return int(out[0])


def _input(name: str, data: Any, made: list[CData], alive: list[object]) -> CData:
    """The `OrtValue*` of one input. One that is made here is added to `made`, what it borrows to `alive`."""
    if isinstance(data, OrtValue):
        return data.pointer
    if not isinstance(data, (np.ndarray, np.generic)):
        raise TypeError(f"input {name!r} must be a NumPy array or an OrtValue, not {type(data).__name__}")
    array: NDArray[Any] = np.asarray(data)
    try:
        pointer, memory = tensor_over(array)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"input {name!r}: {error}") from error
    made.append(pointer)
    alive.append((array, memory))
    return pointer


def _node_arg(session: CData, index: int, get_name: CData, get_type: CData) -> NodeArg:
    name = ffi.new("char**")
    check(get_name(session, index, default_allocator, name))
    try:
        arg_name = text(name[0])
    finally:
        check(api.AllocatorFree(default_allocator, name[0]))
    info = create("OrtTypeInfo", api.ReleaseTypeInfo, get_type, session, index)
    kind = read_type(api, info.pointer)
    inner: ValueType | None = kind.element if isinstance(kind, OptionalType) else kind
    shape = inner.shape if isinstance(inner, TensorType) else None
    return NodeArg(arg_name, type_text(kind), list(shape or ()))


def _custom_metadata(meta: CData) -> dict[str, str]:
    keys, count = ffi.new("char***"), ffi.new("int64_t*")
    check(api.ModelMetadataGetCustomMetadataMapKeys(meta, default_allocator, keys, count))
    result = {}
    for index in range(count[0]):
        key, value = keys[0][index], ffi.new("char**")
        check(api.ModelMetadataLookupCustomMetadataMap(meta, default_allocator, key, value))
        result[text(key)] = text(value[0])
        for block in (key, value[0]):
            if block != NULL:
                check(api.AllocatorFree(default_allocator, block))
    if keys[0] != NULL:
        check(api.AllocatorFree(default_allocator, keys[0]))
    return result


def _chosen_providers(
    options: SessionOptions,
    providers: Sequence[str | tuple[str, Mapping[Any, Any]]] | None,
    provider_options: Sequence[Mapping[Any, Any]] | None,
) -> tuple[Provider, ...]:
    """What the user asked for: the arguments, or else what the options have."""
    if not providers:
        if provider_options:
            raise ValueError("provider_options without providers")
        return options.providers
    if isinstance(providers, str):
        raise ValueError("providers must be a sequence of names or (name, options) pairs, not one string")
    if options.has_providers():
        warnings.warn("the options' providers are ignored for those given to the session", stacklevel=3)
    if provider_options is not None and len(provider_options) != len(providers):
        raise ValueError(f"{len(providers)} providers and {len(provider_options)} provider_options")
    chosen = SessionOptions()
    for index, item in enumerate(providers):
        name, pairs = item if isinstance(item, tuple) and len(item) == 2 else (item, {})
        if provider_options is not None:
            if isinstance(item, tuple):
                raise ValueError("with provider_options, providers must hold names only")
            pairs = provider_options[index]
        if not isinstance(name, str) or not isinstance(pairs, Mapping):
            raise ValueError(f"a provider is a name or a (name, options) pair, not {item!r}")
        if _is_to_be_added(chosen, name):
            chosen.add_provider(name, pairs)
    return chosen.providers


def _is_to_be_added(options: SessionOptions, name: str) -> bool:
    """False, after a warning: the session does without it."""
    available = env.get_available_providers()
    if name in _STOCK_PROVIDERS and name not in available:
        warnings.warn(
            f"Specified provider '{name}' is not in available provider names, the session does without it. "
            f"Available providers: '{', '.join(available)}'",
            stacklevel=4,
        )
        return False
    if any(provider.name == name for provider in options.providers):
        warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
        return False
    return True
