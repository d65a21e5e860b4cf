"""The optional slots of `OrtEp` and `OrtEpFactory` that a provider fills by defining a method.

A host sees only those that the class defines: the defaults here are never called by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ort_abi._lib import lib

if TYPE_CHECKING:
    from ort_abi.ep._device.device import DeviceTensor, SyncStream
    from ort_abi.ep._device.hardware import Device
    from ort_abi.ep._importer.importer import ResourceImporter
    from ort_abi.ep._profiler.profiler import Profiler
    from ort_abi.graph import Graph

__all__ = ["GraphicsInterop", "Incompatibility", "OptionalSlots", "features_of"]


@dataclass(frozen=True)
class Incompatibility:
    """Why a provider cannot use a device (`OrtDeviceEpIncompatibilityDetails`, API 24)."""

    reasons: tuple[str, ...] = ("unknown",)
    """Some of "driver_incompatible", "device_incompatible", "missing_dependency", "unknown"."""
    notes: str = ""
    error_code: int = 0
    """The provider's own."""


@dataclass(frozen=True)
class GraphicsInterop:
    """A graphics API whose memory and queues a provider is to share (`OrtGraphicsInteropConfig`, API 25)."""

    api: str
    """"none", "d3d12" or "vulkan"."""
    command_queue: int
    """The address of the API's queue, 0 for none."""
    options: Mapping[str, str]


class OptionalSlots:
    """Base of `ExecutionProvider`: what else it may define."""

    # ---- profiles ----

    def create_profiler(self) -> Profiler | None:
        """The provider's part of the session's profile; None: nothing. Our host asks when the session is
        profiled, stock onnxruntime always (`OrtEp::CreateProfiler`, API 25)."""
        return None

    # ---- compiled models ----

    def get_compiled_model_compatibility_info(self, graph: Graph) -> str:
        """What goes into a compiled model, for `validate_compiled_model_compatibility_info` to read later
        (`OrtEp::GetCompiledModelCompatibilityInfo`, API 23). What it raises cannot be told to a host: it is
        printed and counted, and the answer is ""."""
        return ""

    @classmethod
    def validate_compiled_model_compatibility_info(cls, devices: Sequence[Device], info: str) -> str:
        """How well a model that was compiled with this info runs on the devices: "not_applicable",
        "supported_optimal", "supported_prefer_recompilation" or "unsupported"
        (`OrtEpFactory::ValidateCompiledModelCompatibilityInfo`, API 23)."""
        return "not_applicable"

    @classmethod
    def select_best_model_candidate(
        cls, device: Device, candidates: Sequence[Mapping[str, str]], config: Mapping[str, str]
    ) -> int:
        """Which of several forms of a model suits a device best: an index. `config` has the session options'
        entries (`OrtEpFactory::SelectBestModelCandidate`, API 28)."""
        raise NotImplementedError(f"{cls.__qualname__} does not define select_best_model_candidate()")

    def get_weightless_support(self) -> str:
        """Which weights a compiled model can do without: "none", "external_only" or "all", as the metadata
        "weightless_support" of `get_supported_devices` says too (`OrtEp::GetWeightlessSupport`, API 29)."""
        return "none"

    # ---- captured graphs ----

    def is_graph_capture_enabled(self) -> bool:
        """True: runs are captured, and replayed after that, which takes `is_graph_captured` and
        `replay_graph`. Some hosts ask at every run (`OrtEp::IsGraphCaptureEnabled`, API 26).
        What this, the next one or the policy raises cannot be told to a host: it is printed and counted, and
        the answer is no."""
        return False

    def is_graph_captured(self, graph_annotation_id: int) -> bool:
        """True if the runs so far captured the graph of this id (run option "gpu_graph_id",
        see `RunOptions.config`). Until then the
        host repeats the run: a few times, if need be (`OrtEp::IsGraphCaptured`, API 26)."""
        return False

    def replay_graph(self, graph_annotation_id: int) -> None:
        """Replays a captured graph on the addresses that it was captured with (`OrtEp::ReplayGraph`,
        API 26)."""

    def get_graph_capture_node_assignment_policy(self) -> str:
        """Which nodes a model may have whose graph is captured: "all_nodes_on_ep", or
        "allow_cpu_for_shapes" (`OrtEp::GetGraphCaptureNodeAssignmentPolicy`, API 26)."""
        return "all_nodes_on_ep"

    def release_captured_graph(self, graph_annotation_id: int) -> None:
        """Forgets a captured graph (`OrtEp::ReleaseCapturedGraph`, API 27)."""

    # ---- devices ----

    def get_available_resource(self) -> int | None:
        """How many bytes of memory there are for the session's weights and values; None: no limit. Asked
        where the session options ask for a budget (`OrtEp::GetAvailableResource`, API 26)."""
        return None

    def transpose(
        self,
        permutation: Sequence[int],
        source: DeviceTensor,
        target: DeviceTensor,
        stream: SyncStream | None,
    ) -> None:
        """Transposes for Scan over an axis that is not the first one (`OrtScanKernelHelper::Transpose`,
        API 24). The default can do it in memory of the CPU; define it to have "Scan" in `control_flow` with
        memory of your own."""
        if not source.device.is_host or not target.device.is_host:
            raise NotImplementedError(f"{type(self).__qualname__} does not define transpose()")
        np.copyto(target.numpy(), source.numpy().transpose(permutation))

    @classmethod
    def get_hardware_device_incompatibility_details(cls, device: Device) -> Incompatibility | None:
        """Why the provider cannot use a device; None: it can
        (`OrtEpFactory::GetHardwareDeviceIncompatibilityDetails`, API 24)."""
        return None

    @classmethod
    def create_resource_importer(cls, device: Device) -> ResourceImporter | None:
        """What imports memory and semaphores of others for a device; None: nothing
        (`OrtEpFactory::CreateExternalResourceImporterForDevice`, API 24)."""
        return None

    @classmethod
    def init_graphics_interop(cls, device: Device, config: GraphicsInterop) -> None:
        """Prepares a device to work with a graphics API (`OrtEpFactory::InitGraphicsInterop`, API 25).
        What has it needs `deinit_graphics_interop` too."""

    @classmethod
    def deinit_graphics_interop(cls, device: Device) -> None:
        """Undoes `init_graphics_interop` (`OrtEpFactory::DeinitGraphicsInterop`, API 25)."""


_EP_FEATURES = {
    "create_profiler": lib.BRIDGE_EP_PROFILER,
    "get_compiled_model_compatibility_info": lib.BRIDGE_EP_COMPATIBILITY,
    "get_weightless_support": lib.BRIDGE_EP_WEIGHTLESS,
    "is_graph_capture_enabled": lib.BRIDGE_EP_CAPTURE_ENABLED,
    "is_graph_captured": lib.BRIDGE_EP_IS_CAPTURED,
    "replay_graph": lib.BRIDGE_EP_REPLAY,
    "get_graph_capture_node_assignment_policy": lib.BRIDGE_EP_CAPTURE_POLICY,
    "release_captured_graph": lib.BRIDGE_EP_RELEASE_GRAPH,
    "get_available_resource": lib.BRIDGE_EP_RESOURCE,
}
_FACTORY_FEATURES = {
    "validate_compiled_model_compatibility_info": lib.BRIDGE_FACTORY_COMPATIBILITY,
    "get_hardware_device_incompatibility_details": lib.BRIDGE_FACTORY_INCOMPATIBILITY,
    "init_graphics_interop": lib.BRIDGE_FACTORY_GRAPHICS,
    "create_resource_importer": lib.BRIDGE_FACTORY_IMPORTER,
}


def _defines(cls: type, name: str) -> bool:
    def function(owner: type) -> Any:
        found = getattr(owner, name)
        return getattr(found, "__func__", found)

    return function(cls) is not function(OptionalSlots)


def features_of(cls: type[OptionalSlots], of_factory: bool = False) -> int:
    """The bits of the slots that a class fills: of its providers (`BridgeFeature`), or of its factory
    (`BridgeFactoryFeature`)."""
    features = _FACTORY_FEATURES if of_factory else _EP_FEATURES
    return sum(bit for name, bit in features.items() if _defines(cls, name))
