"""The base class of execution providers written in Python, and kernels."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ort_abi._lib import CData, check, ffi, lib
from ort_abi.ep._ep.slots import OptionalSlots, features_of
from ort_abi.ep._node.kernel import KernelSpec, declared

if TYPE_CHECKING:
    from ort_abi.ep._custom_op.custom_ops import CustomOp
    from ort_abi.ep._device.device import Allocator, DataTransfer, MemoryDevice, MemoryInfo, SyncStream
    from ort_abi.ep._device.hardware import Device
    from ort_abi.ep._ep.ep_context import Compiled
    from ort_abi.ep._ep.run_options import RunOptions
    from ort_abi.ep._factory.factory import Factory
    from ort_abi.ep._node.kernel import Kernel
    from ort_abi.graph import Graph, Node

__all__ = ["Binding", "ExecutionProvider", "Fuse"]

_SEVERITIES = {"verbose": 0, "info": 1, "warning": 2, "error": 3, "fatal": 4}


@dataclass(frozen=True)
class Fuse:
    """A claim of nodes that become one: `compile` gets them as a graph.

    With `drop_constants` (the default) constants are not inputs of the compiled callable: `compile` takes
    their values from the graph, and the host may free its own. Without, they are passed at each run, not
    copied.
    """

    nodes: Sequence[Node]
    drop_constants: bool = True


class ExecutionProvider(OptionalSlots):
    """An execution provider. Derive, set `name`, and define `compile` (claimed nodes become one Python
    callable), or kernels (`@kernel`), or both. Everything else has a default.

    One object is made for each session. `__init__` takes no arguments; `options`, `config` and `devices` are
    set before it runs.
    """

    name: ClassVar[str] = ""
    """The provider's name, such as "MyExecutionProvider": required."""
    vendor: ClassVar[str] = "unknown"
    version: ClassVar[str] = "0.0.0"
    """A semantic version."""
    vendor_id: ClassVar[int] = 0
    concurrent: ClassVar[bool] = True
    """False: the nodes of a session run one at a time, whatever threads call `Run`. Kept by a lock of our own
    and not by the host (`OrtEp::IsConcurrentRunSupported`): stock onnxruntime waits for its lock with the GIL
    held."""
    stream_aware: ClassVar[bool] = False
    """True: the work of a run goes on a stream (`create_sync_stream`), and may go on after a kernel returned
    (`OrtEpFactory::IsStreamAware`). Hosts before API 28 are told False: kernels cannot find their stream
    there."""
    preferred_data_layout: ClassVar[str] = "NCHW"
    """"NHWC": channels last. Claimed nodes whose result depends on where the channels are, such as Conv, come
    again as nodes of the domain "com.ms.internal.nhwc", which have the first input and output in that order
    (weights stay as they are), with Transposes around them; the provider must claim all of those
    (`OrtEp::GetPreferredDataLayout`, API 23)."""
    custom_ops: ClassVar[Sequence[CustomOp]] = ()
    """Operators of the provider's own, for sessions that use it. Each is claimed like any other: with a
    kernel (`@kernel(..., domain=...)`), or to be compiled (`OrtEpFactory::GetCustomOpDomains`, API 24)."""
    control_flow: ClassVar[Sequence[str]] = ()
    """Those of "If", "Loop" and "Scan" that the provider takes as well. The host makes their kernels, and
    gives the nodes inside to whoever claims them (`OrtEpApi::CreateIfKernel` and so on, API 24)."""
    kernels: ClassVar[tuple[KernelSpec, ...]] = ()
    """The kernels of the class and its bases, made from what `@kernel` declared; what a class defines under
    the name of a base's kernel takes its place."""

    options: dict[str, str]
    """What the session's user gave as options of this provider."""
    config: dict[str, str]
    """The other config entries of the session."""
    devices: tuple[Device, ...]
    """The devices that the session's user chose."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        members = {name: item for owner in reversed(cls.__mro__) for name, item in vars(owner).items()}
        cls.kernels = tuple(spec for item in members.values() for spec in declared(item))

    @classmethod
    def get_supported_devices(
        cls, devices: Sequence[Device]
    ) -> Iterable[
        Device | tuple[Device, Mapping[str, str]] | tuple[Device, Mapping[str, str], Mapping[str, str]]
    ]:
        """Which of the host's devices the provider can use; each may come with metadata, as (device, {...}),
        and with options that sessions on it start from, as (device, {...}, {...}).

        The default takes the first CPU (`OrtEpFactory::GetSupportedDevices`, API 22).
        """
        return [device for device in devices if device.type == "CPU"][:1]

    @classmethod
    def memory_infos(cls, device: Device) -> Iterable[MemoryInfo]:
        """The memories of its own that the provider has on a device that it supports; none by default.

        Where there is one of kind "default", kernels find their inputs and outputs in it, as `DeviceTensor`s
        (`EpDevice_AddAllocatorInfo`, API 23).
        """
        return ()

    @classmethod
    def create_allocator(cls, memory: MemoryInfo, options: Mapping[str, str]) -> Allocator | None:
        """An allocator of one of `memory_infos`, for the whole process; None: the CPU's is to be used.

        Called when the provider is registered, with `options` when an application replaces what was made
        then, and by `create_session_allocator` (`OrtEpFactory::CreateAllocator`, API 23).
        """
        return None

    @classmethod
    def create_data_transfer(cls) -> DataTransfer | None:
        """What copies from and to the provider's memory (`OrtEpFactory::CreateDataTransfer`, API 23)."""
        return None

    @classmethod
    def create_sync_stream(cls, device: MemoryDevice, options: Mapping[str, str]) -> SyncStream:
        """A stream on a device; hosts ask only if the provider is `stream_aware`. `options` are those of an
        application that wants a stream of its own (`OrtEpFactory::CreateSyncStreamForDevice`, API 23)."""
        raise NotImplementedError(f"{cls.__qualname__} does not define create_sync_stream()")

    def default_memory_device(self) -> MemoryDevice | None:
        """The device of one of `memory_infos` that the session works in: kernels find inputs and outputs
        there.

        None, the default: what the session's `devices` agree on; where they have different memories the
        session fails. On host-accessible memory kernels work in the CPU's
        (`OrtEp::GetDefaultMemoryDevice`, API 27; older hosts do not ask).
        """
        return None

    def create_session_allocator(self, memory: MemoryInfo) -> Allocator | None:
        """The session's own allocator of one of `memory_infos`, released with the session; None: the CPU's is
        to be used. By default that of `create_allocator`, without options.

        Hosts ask for read-only memory, for weights, only here (`OrtEp::CreateAllocator`, API 23).
        """
        return self.create_allocator(memory, {})

    def create_session_stream(self, device: MemoryDevice) -> SyncStream:
        """A stream for runs of the session: one a run at a time, kept for the next. Hosts ask only if the
        provider is `stream_aware`, and use `create_sync_stream` if this is not defined
        (`OrtEp::CreateSyncStreamForDevice`, API 23)."""
        return self.create_sync_stream(device, {})

    def get_capability(self, graph: Graph) -> Iterable[Node | Fuse | Sequence[Node]]:
        """The nodes that the provider takes: a `Node` runs on a kernel if there is one, else it is compiled;
        a list of nodes, or a `Fuse`, is compiled as one.

        Called for each subgraph, then for the graph that has it. The default takes every node that a kernel
        was registered for (`OrtEp::GetCapability`, API 23).
        """
        return [node for node in graph.nodes if self.has_kernel(node)]

    def should_convert_data_layout(self, domain: str, op_type: str) -> bool | None:
        """Whether nodes of an operator are to be converted to the preferred layout; None, the default: as the
        host thinks. Asked of operators of ONNX (domain "") and "com.microsoft"
        (`OrtEp::ShouldConvertDataLayoutForOp`, API 23)."""
        return None

    def compile(self, graph: Graph) -> Callable[..., Any] | Kernel | Compiled:
        """The code for a graph of claimed nodes: a callable that takes one array for each of
        `graph.argument_names` and returns an array, or a tuple for several `graph.outputs`; or a `Kernel`, to
        write outputs in place; or a `Compiled` of one of these and what compiled models keep of it.

        Inputs are read-only and good during the call: copy what you keep. Called once for each claim
        (`OrtEp::Compile`, API 23).
        """
        raise NotImplementedError(
            f"{type(self).__qualname__} claims nodes to fuse but does not define compile(graph)"
        )

    def on_run_start(self, run_options: RunOptions) -> None:
        """Called before each `Run` of the session (`OrtEp::OnRunStart`, API 23)."""

    def on_run_end(self, run_options: RunOptions, sync_stream: bool) -> None:
        """Called after each `Run` of the session (`OrtEp::OnRunEnd`, API 23)."""

    def set_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Options that the user changes during the session's life (`OrtEp::SetDynamicOptions`, API 23)."""

    def on_session_ready(self) -> None:
        """Called when the session is complete (`OrtEp::OnSessionInitializationEnd`, API 27; not by older
        hosts)."""

    def sync(self) -> None:
        """Waits for all work of the device: called before a run that is given values on it without a stream
        (`OrtEp::Sync`, API 25; not by older hosts)."""

    def close(self) -> None:
        """Called when the session is released."""

    def has_kernel(self, node: Node) -> bool:
        """True if a registered kernel fits the node's operator, version and types. During
        `get_capability`."""
        op = next((op for op in self.custom_ops if op.is_for(node)), None)
        if op is not None:  # hosts take the operator itself for its kernel
            return any(spec.fits(op.domain, op.name, op.versions[0]) for spec in self.kernels)
        return self._binding.has_kernel(node)

    def log(self, message: str, severity: str = "warning") -> None:
        """Writes to the session's log ("verbose", "info", "warning", "error", "fatal")."""
        self._binding.log(
            message, _SEVERITIES[severity], f"{type(self).__module__}.{type(self).__qualname__}"
        )

    _binding: Binding


_bindings: weakref.WeakSet[Binding] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a forked child: kernels of other threads, which may have a lock, do not run there."""
    for binding in _bindings:
        binding.lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_locks)


class Binding:
    """What ties a provider object to its host. Internal."""

    def __init__(self, host: CData, logger: CData, factory: Factory) -> None:
        self.host = host
        self.logger = logger
        self.factory = factory
        self.captures_graphs = bool(features_of(factory.cls) & lib.BRIDGE_EP_CAPTURE_ENABLED)
        self.transfer: DataTransfer | None = None  # for copies that are nodes of a graph
        self.support_info: CData | None = None
        self.registry: CData | None = None
        self.definitions: list[int] = []
        self.lock = threading.RLock()  # a kernel may run its own session
        _bindings.add(self)

    def has_kernel(self, node: Node) -> bool:
        """Whether a kernel of the provider's registry fits (`EpGraphSupportInfo_LookUpKernel`, API 24)."""
        if self.support_info is None:
            raise RuntimeError("has_kernel() can be asked during get_capability() only")
        if self.registry is None:
            return False
        out = ffi.new("const OrtKernelDef**")
        check(
            self.host.ep_api.EpGraphSupportInfo_LookUpKernel(self.support_info, node._pointer, out),
            self.host.api,
        )
        return bool(out[0] != ffi.NULL)

    def log(self, message: str, severity: int, where: str) -> None:
        """Writes to the host's log (`Logger_LogMessage`, API 15); `where` is a function's name."""
        text, file = message.encode("utf-8", "replace").replace(b"\0", b""), b"python"
        check(
            self.host.api.Logger_LogMessage(self.logger, severity, text, file, 0, where.encode()),
            self.host.api,
        )
