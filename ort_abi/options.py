"""Options of sessions and of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ort_abi import env, errors
from ort_abi._enums import ExecutionMode, GraphOptimizationLevel
from ort_abi._lib import NULL, CData, Handle, api, c_strings, check, create, encode, ffi, text
from ort_abi._selection import Delegate, Selector
from ort_abi.device import OrtEpDevice, OrtExecutionProviderDevicePolicy
from ort_abi.stream import OrtSyncStream
from ort_abi.value import OrtValue

__all__ = ["Provider", "RunOptions", "SessionOptions"]


class _Setting:
    """An attribute of `SessionOptions` that a slot writes and that the ABI cannot read back."""

    def __init__(self, slot: str, default: Any, convert: Any, doc: str) -> None:
        self._slot = slot
        self._default = default
        self._convert = convert
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, options: SessionOptions | None, owner: type) -> Any:
        return self if options is None else options._settings.get(self._name, self._default)

    def __set__(self, options: SessionOptions, value: Any) -> None:
        value = self._convert(value)
        if isinstance(value, str):
            check(getattr(api, self._slot)(options.pointer, encode(value, self._name)))
        elif isinstance(value, bool) and "{}" in self._slot:
            check(getattr(api, self._slot.format("Enable" if value else "Disable"))(options.pointer))
        else:
            check(getattr(api, self._slot)(options.pointer, value))
        options._settings[self._name] = value


class Provider(NamedTuple):
    """An execution provider for a session: its name, the devices to use, its options."""

    name: str
    devices: tuple[OrtEpDevice, ...]
    options: dict[str, str]


class SessionOptions:
    """How a session is made (`CreateSessionOptions`, API 1). Can be used for any number of sessions."""

    __slots__ = (
        "__weakref__",
        "_handle",
        "_has_policy",
        "_providers",
        "_selector",
        "_settings",
        "initializers",
    )

    def __init__(self) -> None:
        self._handle = create("OrtSessionOptions", api.ReleaseSessionOptions, api.CreateSessionOptions)
        self._settings: dict[str, Any] = {}
        self._providers: list[Provider] = []
        self._selector: Selector | None = None
        self._has_policy = False
        self.initializers: list[OrtValue] = []  # the host borrows them, so sessions keep them alive

    graph_optimization_level = _Setting(
        "SetSessionGraphOptimizationLevel",
        GraphOptimizationLevel.ORT_ENABLE_ALL,
        GraphOptimizationLevel,
        "How far the graph may be rewritten (this host does not rewrite graphs).",
    )
    execution_mode = _Setting(
        "SetSessionExecutionMode", ExecutionMode.ORT_SEQUENTIAL, ExecutionMode, "Sequential or parallel."
    )
    intra_op_num_threads = _Setting("SetIntraOpNumThreads", 0, int, "Threads of one operator; 0: any number.")
    inter_op_num_threads = _Setting("SetInterOpNumThreads", 0, int, "Operators at once; 0: any number.")
    log_severity_level = _Setting(
        "SetSessionLogSeverityLevel", -1, int, "0 verbose to 4 fatal; -1: as the environment."
    )
    log_verbosity_level = _Setting("SetSessionLogVerbosityLevel", 0, int, "Detail of verbose messages.")
    logid = _Setting("SetSessionLogId", "", str, "Name of the session in log messages.")
    optimized_model_filepath = _Setting(
        "SetOptimizedModelFilePath",
        "",
        os.fspath,
        'Where to write the graph; "" for nowhere. Others raise NotImplemented: this host writes none.',
    )
    enable_mem_pattern = _Setting("{}MemPattern", True, bool, "Plan memory ahead.")
    enable_cpu_mem_arena = _Setting("{}CpuMemArena", True, bool, "Use an arena on the CPU.")
    use_deterministic_compute = _Setting("SetDeterministicCompute", False, bool, "Same bits in every run.")

    @property
    def pointer(self) -> CData:
        """The `OrtSessionOptions*`. *borrows*: valid as long as this object."""
        return self._handle.pointer

    @property
    def enable_profiling(self) -> bool:
        """Write a profile; set `profile_file_prefix` before."""
        return bool(self._settings.get("enable_profiling", False))

    @enable_profiling.setter
    def enable_profiling(self, value: bool) -> None:
        if value:
            check(api.EnableProfiling(self.pointer, encode(self.profile_file_prefix)))
        else:
            check(api.DisableProfiling(self.pointer))
        self._settings["enable_profiling"] = bool(value)

    @property
    def profile_file_prefix(self) -> str:
        """Start of the profile's file name."""
        return str(self._settings.get("profile_file_prefix", "onnxruntime_profile_"))

    @profile_file_prefix.setter
    def profile_file_prefix(self, value: str) -> None:
        self._settings["profile_file_prefix"] = value
        if self.enable_profiling:
            self.enable_profiling = True

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets a configuration entry, for example `session.disable_cpu_ep_fallback` (API 5)."""
        check(
            api.AddSessionConfigEntry(
                self.pointer, encode(key, "the key"), encode(value, f"the value of {key}")
            )
        )

    def get_session_config_entry(self, key: str) -> str:
        """A configuration entry (API 14). Raises RuntimeError if it is not set."""
        name = encode(key, "the key")
        found, size = ffi.new("int*"), ffi.new("size_t*")
        check(api.HasSessionConfigEntry(self.pointer, name, found))
        if not found[0]:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        check(api.GetSessionConfigEntry(self.pointer, name, NULL, size))
        value = ffi.new("char[]", size[0])
        check(api.GetSessionConfigEntry(self.pointer, name, value, size))
        return text(value)

    def config(self, key: str, default: str) -> str:
        """A configuration entry, or `default` if it is not set."""
        try:
            return self.get_session_config_entry(key)
        except RuntimeError:
            return default

    def add_provider_for_devices(self, devices: Sequence[OrtEpDevice], options: Mapping[str, Any]) -> None:
        """Adds the execution provider of these devices, all of one provider, after those added before.

        Raises `errors.InvalidArgument` for no devices, devices of several providers, a provider that was
        added before, and devices whose library is gone.
        """
        if not devices:
            raise errors.InvalidArgument("at least one OrtEpDevice is needed")
        name = devices[0].ep_name
        for device in devices:
            env.ep_device_pointer(device)
            if device.ep_name != name:
                raise errors.InvalidArgument(f"devices of several providers: {name}, {device.ep_name}")
        if any(other.name == name for other in self._providers):
            raise errors.InvalidArgument(f"{name} was added before")
        pairs = {str(key): str(value) for key, value in options.items()}
        self._providers.append(Provider(name, tuple(devices), pairs))

    def add_provider(self, provider_name: str, options: Mapping[str, Any]) -> None:
        """Adds an execution provider by name, on the first of its devices.

        Raises ValueError for a name that no registered library has.
        """
        devices = env.get_ep_devices()
        mine = [device for device in devices if device.ep_name == provider_name]
        if not mine:
            names = ", ".join(dict.fromkeys(device.ep_name for device in devices))
            raise ValueError(f"execution provider {provider_name!r} is not registered; there are {names}")
        self.add_provider_for_devices(mine[:1], options)

    def for_session(self, providers: Sequence[Provider]) -> Handle:
        """The host's copy of these options with exactly these execution providers, in this order.

        `SessionOptionsAppendExecutionProvider_V2`, API 22. *gives* the handle.
        """
        make = api.CloneSessionOptions
        handle = create("OrtSessionOptions", api.ReleaseSessionOptions, make, self.pointer)
        for provider in providers:
            devices = [env.ep_device_pointer(device) for device in provider.devices]
            pointers = ffi.new("const OrtEpDevice*[]", devices)
            keys, _keys = c_strings([encode(key, "an option's name") for key in provider.options])
            values, _values = c_strings(
                [encode(value, f"option {key!r}") for key, value in provider.options.items()]
            )
            arguments = (
                env.environment().pointer,
                pointers,
                len(devices),
                keys,
                values,
                len(provider.options),
            )
            check(api.SessionOptionsAppendExecutionProvider_V2(handle.pointer, *arguments))
        return handle

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The execution providers that were added, in this order."""
        return tuple(self._providers)

    def has_providers(self) -> bool:
        """True once an execution provider was added."""
        return bool(self._providers)

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Gives a symbolic dimension of the inputs a size (API 3)."""
        check(api.AddFreeDimensionOverrideByName(self.pointer, encode(dim_name), dim_value))

    def add_free_dimension_override_by_denotation(self, dim_denotation: str, dim_value: int) -> None:
        """Gives dimensions with a denotation a size (API 1)."""
        check(api.AddFreeDimensionOverride(self.pointer, encode(dim_denotation), dim_value))

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Replaces an initializer of the model (API 6). *keeps alive* the value."""
        check(api.AddInitializer(self.pointer, encode(name), value.pointer))
        self.initializers.append(value)

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Gives the data of initializers that are in files (API 12). *keeps alive* the values."""
        if len(names) != len(values):
            raise ValueError(f"{len(names)} names and {len(values)} values")
        strings, _alive = c_strings([encode(name) for name in names])
        pointers = ffi.new("const OrtValue*[]", [value.pointer for value in values])
        check(api.AddExternalInitializers(self.pointer, strings, pointers, len(names)))
        self.initializers.extend(values)

    def register_custom_ops_library(self, library_path: str | os.PathLike[str]) -> None:
        """Loads a library of custom operators (API 14)."""
        check(api.RegisterCustomOpsLibrary_V2(self.pointer, encode(os.fspath(library_path))))

    def set_provider_selection_policy(self, policy: OrtExecutionProviderDevicePolicy | int) -> None:
        """Lets the host choose providers for sessions that are given none (API 22).

        NPUs, GPUs or CPUs, as the policy prefers; then a CPU and the built-in provider. Raises ValueError for
        an unknown policy.
        """
        policy = OrtExecutionProviderDevicePolicy(policy)
        check(api.SessionOptionsSetEpSelectionPolicy(self.pointer, int(policy)))
        self._selector, self._has_policy = None, True

    def set_provider_selection_policy_delegate(self, delegate: Delegate) -> None:
        """Lets `delegate` choose providers for sessions that are given none (API 22). *keeps alive* it.

        It is called with the devices (the best first), the model's metadata, metadata of the runtime (none
        yet) and the most that it may select, and returns devices in order of preference. What it raises fails
        the session. If no selected provider takes a node, a Python session calls it once more before it falls
        back to the reference implementation. Raises TypeError for what cannot be called.
        """
        if not callable(delegate):
            raise TypeError(f"an EP selection delegate is a function, not {delegate!r}")
        self._selector, self._has_policy = Selector(self.pointer, delegate), True

    @property
    def has_selection_policy(self) -> bool:
        """True if sessions without providers choose some."""
        return self._has_policy

    def set_load_cancellation_flag(self, value: bool) -> None:
        """Stops the creation of sessions with these options, from any thread (API 22)."""
        check(api.SessionOptionsSetLoadCancellationFlag(self.pointer, bool(value)))


class RunOptions:
    """How one run is made (`CreateRunOptions`, API 1)."""

    __slots__ = ("__weakref__", "_handle", "_stream", "_terminate")

    def __init__(self) -> None:
        self._handle: Handle = create("OrtRunOptions", api.ReleaseRunOptions, api.CreateRunOptions)
        self._terminate = False
        self._stream: OrtSyncStream | None = None

    @property
    def pointer(self) -> CData:
        """The `OrtRunOptions*`. *borrows*: valid as long as this object.

        Raises RuntimeError if the stream is closed.
        """
        if self._stream is not None:
            _ = self._stream.pointer
        return self._handle.pointer

    @property
    def log_severity_level(self) -> int:
        """0 verbose to 4 fatal; -1: as the session."""
        return self._number(api.RunOptionsGetRunLogSeverityLevel)

    @log_severity_level.setter
    def log_severity_level(self, value: int) -> None:
        check(api.RunOptionsSetRunLogSeverityLevel(self.pointer, value))

    @property
    def log_verbosity_level(self) -> int:
        """Detail of verbose messages."""
        return self._number(api.RunOptionsGetRunLogVerbosityLevel)

    @log_verbosity_level.setter
    def log_verbosity_level(self, value: int) -> None:
        check(api.RunOptionsSetRunLogVerbosityLevel(self.pointer, value))

    @property
    def logid(self) -> str:
        """Name of the run in log messages."""
        out = ffi.new("const char**")
        check(api.RunOptionsGetRunTag(self.pointer, out))
        return text(out[0])

    @logid.setter
    def logid(self, value: str) -> None:
        check(api.RunOptionsSetRunTag(self.pointer, encode(value)))

    @property
    def terminate(self) -> bool:
        """Stops all runs that use these options as soon as possible; can be set from any thread."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        check((api.RunOptionsSetTerminate if value else api.RunOptionsUnsetTerminate)(self.pointer))
        self._terminate = bool(value)

    def set_sync_stream(self, stream: OrtSyncStream | None) -> None:
        """The stream that runs give the work of its device to, instead of one of the session's (API 24).

        *keeps alive* the stream. Outputs on that device are there when the stream's work is done, not when
        the run returns; outputs on the host are there. None: the session's streams again. Not in
        onnxruntime's Python API.
        """
        api.RunOptionsSetSyncStream(self._handle.pointer, NULL if stream is None else stream.pointer)
        self._stream = stream

    def enable_profiling(self, profile_file_prefix: str) -> None:
        """Writes a profile of each run to a file of its own (API 25). Not in onnxruntime's Python API."""
        check(api.RunOptionsEnableProfiling(self.pointer, encode(profile_file_prefix)))

    def disable_profiling(self) -> None:
        """Undoes `enable_profiling` (API 25)."""
        check(api.RunOptionsDisableProfiling(self.pointer))

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets a configuration entry (API 8)."""
        check(
            api.AddRunConfigEntry(self.pointer, encode(key, "the key"), encode(value, f"the value of {key}"))
        )

    def get_run_config_entry(self, key: str) -> str:
        """A configuration entry (API 23). Raises RuntimeError if it is not set."""
        found = api.GetRunConfigEntry(self.pointer, encode(key, "the key"))
        if found == NULL:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return text(found)

    def _number(self, slot: CData) -> int:
        out = ffi.new("int*")
        check(slot(self.pointer, out))
        return int(out[0])
