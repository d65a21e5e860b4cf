"""The plugin execution provider ABI of ONNX Runtime on its own: a host for ONNX models and for EP plugins.

The names are those of the `onnxruntime` package, so that a script that uses plugin execution providers runs
on this host by changing its import.
"""

from __future__ import annotations

from ort_abi import ep, errors, schemas
from ort_abi._enums import ExecutionMode, GraphOptimizationLevel, OrtLoggingLevel
from ort_abi.assignment import NotTaken, OrtEpAssignedNode, OrtEpAssignedSubgraph, PlanStep
from ort_abi.device import (
    OrtAllocatorType,
    OrtDevice,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtEpDevice,
    OrtExecutionProviderDevicePolicy,
    OrtHardwareDevice,
    OrtHardwareDeviceType,
    OrtMemoryInfo,
    OrtMemoryInfoDeviceType,
    OrtMemType,
)
from ort_abi.env import (
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_ep_devices,
    get_hardware_devices,
    get_include,
    get_version_string,
    inject_hardware_device,
    register,
    register_execution_provider_library,
    set_default_logger_severity,
    shutdown,
    unregister_execution_provider_library,
)
from ort_abi.io_binding import IOBinding
from ort_abi.options import RunOptions, SessionOptions
from ort_abi.prepacked import PrepackedWeightsContainer
from ort_abi.session import InferenceSession, ModelMetadata, NodeArg
from ort_abi.stream import OrtSyncStream, allocator_stats, create_shared_allocator, release_shared_allocator
from ort_abi.value import OrtValue, copy_tensors

__version__ = "0.1.0"

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "NotTaken",
    "OrtAllocatorType",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtLoggingLevel",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSyncStream",
    "OrtValue",
    "PlanStep",
    "PrepackedWeightsContainer",
    "RunOptions",
    "SessionOptions",
    "__version__",
    "allocator_stats",
    "copy_tensors",
    "create_shared_allocator",
    "ep",
    "errors",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_hardware_devices",
    "get_include",
    "get_version_string",
    "inject_hardware_device",
    "register",
    "register_execution_provider_library",
    "release_shared_allocator",
    "schemas",
    "set_default_logger_severity",
    "shutdown",
    "unregister_execution_provider_library",
]
