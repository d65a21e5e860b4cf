/* ort_abi.h: the plugin ABI of ONNX Runtime, API versions 1 to 30.
 *
 * Every enum, struct and function table that a host and a plugin execution provider exchange is declared
 * here, once, and one declaration a slot. The tables, stubs, layout asserts, bindings and wrappers of ort-abi
 * are generated from this file. A slot's place in its table is its place in this file: it never moves, new
 * slots go to the end.
 *
 * Each slot carries marks that are empty for the compiler and read by abigen:
 *   ABI_SINCE(n)          first API version that has the slot; nothing reads it in a struct that says it is
 * older ABI_OPTIONAL          the slot (or pointer) may be NULL; every other slot of a callback struct is
 * required ABI_IN, ABI_OUT, ...  what the callee does with a pointer and whether NULL is accepted (see the
 * list below)
 *
 * `OrtStatus*` results: NULL means success, anything else is given to the caller, who releases it with
 * ReleaseStatus. The subset of C used here is read by C11, C17 and C++17 compilers, by pycparser and by cffi.
 */
/* One slot is one declaration, broken only between parameters. */
/* clang-format off */
#ifndef ORT_ABI_H
#define ORT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORT_API_VERSION 30

#ifdef _WIN32
#define ORT_API_CALL __stdcall
#define ORTCHAR_T wchar_t
#define ORT_ABI_EXPORT __declspec(dllexport)
#else
#define ORT_API_CALL
#define ORTCHAR_T char
#define ORT_ABI_EXPORT __attribute__((visibility("default")))
#endif

/* Marks of a slot. */
#define ABI_SINCE(version)
#define ABI_OPTIONAL
#define ABI_RET_MAYBENULL /* the result may be NULL */

/* Marks of a pointer parameter; (n) names the parameter that holds the element count. */
#define ABI_IN                         /* read, not NULL */
#define ABI_IN_OPT                     /* read, may be NULL */
#define ABI_IN_READS(n)                /* n elements are read */
#define ABI_OUT                        /* one value is written */
#define ABI_OUT_OPT                    /* one value is written unless NULL */
#define ABI_OUT_WRITES(n)              /* up to n elements are written */
#define ABI_OUT_WRITES_OPT(n)          /* the same, may be NULL */
#define ABI_OUT_WRITES_ALL(n)          /* exactly n elements are written */
#define ABI_OUT_WRITES_BYTES_ALL(n)    /* exactly n bytes are written */
#define ABI_OUTPTR                     /* a non-NULL pointer is written */
#define ABI_OUTPTR_OPT                 /* the same, the parameter may be NULL */
#define ABI_OUTPTR_MAYBENULL           /* a pointer is written that may be NULL */
#define ABI_OUTPTR_BUFFER_MAYBENULL(n) /* a pointer to n elements is written, NULL if there are none */
#define ABI_INOUT                      /* read and changed, not NULL */
#define ABI_INOUT_ALL(n)               /* n elements are read and changed */
#define ABI_FREES_OPT                  /* released by the call, may be NULL */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Handles: opaque to everybody but the host that made them ---- */

typedef struct OrtEnv OrtEnv;
typedef struct OrtStatus OrtStatus;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtIoBinding OrtIoBinding;
typedef struct OrtSession OrtSession;
typedef struct OrtValue OrtValue;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtMapTypeInfo OrtMapTypeInfo;
typedef struct OrtSequenceTypeInfo OrtSequenceTypeInfo;
typedef struct OrtOptionalTypeInfo OrtOptionalTypeInfo;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtModelMetadata OrtModelMetadata;
typedef struct OrtThreadPoolParams OrtThreadPoolParams;
typedef struct OrtThreadingOptions OrtThreadingOptions;
typedef struct OrtArenaCfg OrtArenaCfg;
typedef struct OrtPrepackedWeightsContainer OrtPrepackedWeightsContainer;
typedef struct OrtTensorRTProviderOptionsV2 OrtTensorRTProviderOptionsV2;
typedef struct OrtNvTensorRtRtxProviderOptions OrtNvTensorRtRtxProviderOptions;
typedef struct OrtCUDAProviderOptionsV2 OrtCUDAProviderOptionsV2;
typedef struct OrtCANNProviderOptions OrtCANNProviderOptions;
typedef struct OrtDnnlProviderOptions OrtDnnlProviderOptions;
typedef struct OrtOp OrtOp;
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtLogger OrtLogger;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtLoraAdapter OrtLoraAdapter;
typedef struct OrtValueInfo OrtValueInfo;
typedef struct OrtNode OrtNode;
typedef struct OrtGraph OrtGraph;
typedef struct OrtModel OrtModel;
typedef struct OrtModelCompilationOptions OrtModelCompilationOptions;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtSyncStream OrtSyncStream;
typedef struct OrtExternalInitializerInfo OrtExternalInitializerInfo;
typedef struct OrtExternalResourceImporter OrtExternalResourceImporter;
typedef struct OrtDeviceEpIncompatibilityDetails OrtDeviceEpIncompatibilityDetails;
typedef struct OrtEpAssignedSubgraph OrtEpAssignedSubgraph;
typedef struct OrtEpAssignedNode OrtEpAssignedNode;
typedef struct OrtEpGraphSupportInfo OrtEpGraphSupportInfo;
typedef struct OrtMemoryDevice OrtMemoryDevice;
typedef struct OrtNodeComputeContext OrtNodeComputeContext;
typedef struct OrtOpSchema OrtOpSchema;
typedef struct OrtOpSchemaTypeConstraint OrtOpSchemaTypeConstraint;
typedef struct OrtProfilingEventsContainer OrtProfilingEventsContainer;
typedef struct OrtProfilingEvent OrtProfilingEvent;
typedef struct OrtKernelRegistry OrtKernelRegistry;
typedef struct OrtKernelDefBuilder OrtKernelDefBuilder;
typedef struct OrtKernelDef OrtKernelDef;
typedef struct OrtDataType OrtDataType;
typedef struct OrtSharedPrePackedWeightCache OrtSharedPrePackedWeightCache;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtTrainingApi OrtTrainingApi;

/* ---- Structs and tables defined below ---- */

typedef struct OrtAllocator OrtAllocator;
typedef struct OrtCUDAProviderOptions OrtCUDAProviderOptions;
typedef struct OrtROCMProviderOptions OrtROCMProviderOptions;
typedef struct OrtTensorRTProviderOptions OrtTensorRTProviderOptions;
typedef struct OrtMIGraphXProviderOptions OrtMIGraphXProviderOptions;
typedef struct OrtOpenVINOProviderOptions OrtOpenVINOProviderOptions;
typedef struct OrtApiBase OrtApiBase;
typedef struct OrtThreadPoolCallbacksConfig OrtThreadPoolCallbacksConfig;
typedef struct OrtExternalMemoryDescriptor OrtExternalMemoryDescriptor;
typedef struct OrtExternalSemaphoreDescriptor OrtExternalSemaphoreDescriptor;
typedef struct OrtGraphicsInteropConfig OrtGraphicsInteropConfig;
typedef struct OrtExternalTensorDescriptor OrtExternalTensorDescriptor;
typedef struct OrtEnvCreationOptions OrtEnvCreationOptions;
typedef struct OrtApi OrtApi;
typedef struct OrtCustomOp OrtCustomOp;
typedef struct OrtModelEditorApi OrtModelEditorApi;
typedef struct OrtCompileApi OrtCompileApi;
typedef struct OrtInteropApi OrtInteropApi;
typedef struct OrtExternalMemoryHandle OrtExternalMemoryHandle;
typedef struct OrtExternalSemaphoreHandle OrtExternalSemaphoreHandle;
typedef struct OrtDataTransferImpl OrtDataTransferImpl;
typedef struct OrtSyncNotificationImpl OrtSyncNotificationImpl;
typedef struct OrtSyncStreamImpl OrtSyncStreamImpl;
typedef struct OrtExternalResourceImporterImpl OrtExternalResourceImporterImpl;
typedef struct OrtEpProfilerImpl OrtEpProfilerImpl;
typedef struct OrtNodeFusionOptions OrtNodeFusionOptions;
typedef struct OrtNodeComputeInfo OrtNodeComputeInfo;
typedef struct OrtKernelImpl OrtKernelImpl;
typedef struct OrtLoopKernelHelper OrtLoopKernelHelper;
typedef struct OrtScanKernelHelper OrtScanKernelHelper;
typedef struct OrtResourceCount OrtResourceCount;
typedef struct OrtEpApi OrtEpApi;
typedef struct OrtEp OrtEp;
typedef struct OrtEpFactory OrtEpFactory;
typedef OrtStatus* OrtStatusPtr;

struct OrtCustomHandleType {
  char __place_holder;
};
typedef const struct OrtCustomHandleType* OrtCustomThreadHandle;

/* ---- Enums ---- */

typedef enum OrtErrorCode {
  ORT_OK = 0,
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NO_SUCHFILE = 3,
  ORT_NO_MODEL = 4,
  ORT_ENGINE_ERROR = 5,
  ORT_RUNTIME_EXCEPTION = 6,
  ORT_INVALID_PROTOBUF = 7,
  ORT_MODEL_LOADED = 8,
  ORT_NOT_IMPLEMENTED = 9,
  ORT_INVALID_GRAPH = 10,
  ORT_EP_FAIL = 11,
  ORT_MODEL_LOAD_CANCELED = 12,
  ORT_MODEL_REQUIRES_COMPILATION = 13,
  ORT_NOT_FOUND = 14,
  ORT_DEVICE_RESET = 15,
} OrtErrorCode;

typedef enum ONNXTensorElementDataType {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 = 14,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128 = 15,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN = 17,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ = 18,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2 = 19,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ = 20,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4 = 21,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 = 22,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 = 23,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2 = 24,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2 = 25,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 = 26,
} ONNXTensorElementDataType;

typedef enum ONNXType {
  ONNX_TYPE_UNKNOWN = 0,
  ONNX_TYPE_TENSOR = 1,
  ONNX_TYPE_SEQUENCE = 2,
  ONNX_TYPE_MAP = 3,
  ONNX_TYPE_OPAQUE = 4,
  ONNX_TYPE_SPARSETENSOR = 5,
  ONNX_TYPE_OPTIONAL = 6,
} ONNXType;

typedef enum OrtSparseFormat {
  ORT_SPARSE_UNDEFINED = 0,
  ORT_SPARSE_COO = 1,
  ORT_SPARSE_CSRC = 2,
  ORT_SPARSE_BLOCK_SPARSE = 4,
} OrtSparseFormat;

enum OrtSparseIndicesFormat {
  ORT_SPARSE_COO_INDICES = 0,
  ORT_SPARSE_CSR_INNER_INDICES = 1,
  ORT_SPARSE_CSR_OUTER_INDICES = 2,
  ORT_SPARSE_BLOCK_SPARSE_INDICES = 3,
};

typedef enum OrtLoggingLevel {
  ORT_LOGGING_LEVEL_VERBOSE = 0,
  ORT_LOGGING_LEVEL_INFO = 1,
  ORT_LOGGING_LEVEL_WARNING = 2,
  ORT_LOGGING_LEVEL_ERROR = 3,
  ORT_LOGGING_LEVEL_FATAL = 4,
} OrtLoggingLevel;

typedef enum OrtOpAttrType {
  ORT_OP_ATTR_UNDEFINED = 0,
  ORT_OP_ATTR_INT = 1,
  ORT_OP_ATTR_INTS = 2,
  ORT_OP_ATTR_FLOAT = 3,
  ORT_OP_ATTR_FLOATS = 4,
  ORT_OP_ATTR_STRING = 5,
  ORT_OP_ATTR_STRINGS = 6,
  ORT_OP_ATTR_GRAPH = 7,
  ORT_OP_ATTR_TENSOR = 8,
} OrtOpAttrType;

typedef enum GraphOptimizationLevel {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99,
} GraphOptimizationLevel;

typedef enum ExecutionMode {
  ORT_SEQUENTIAL = 0,
  ORT_PARALLEL = 1,
} ExecutionMode;

typedef enum OrtLanguageProjection {
  ORT_PROJECTION_C = 0,
  ORT_PROJECTION_CPLUSPLUS = 1,
  ORT_PROJECTION_CSHARP = 2,
  ORT_PROJECTION_PYTHON = 3,
  ORT_PROJECTION_JAVA = 4,
  ORT_PROJECTION_WINML = 5,
  ORT_PROJECTION_NODEJS = 6,
} OrtLanguageProjection;

typedef enum OrtAllocatorType {
  OrtInvalidAllocator = -1,
  OrtDeviceAllocator = 0,
  OrtArenaAllocator = 1,
  OrtReadOnlyAllocator = 2,
} OrtAllocatorType;

typedef enum OrtMemType {
  OrtMemTypeCPUInput = -2,
  OrtMemTypeCPUOutput = -1,
  OrtMemTypeCPU = -1,
  OrtMemTypeDefault = 0,
} OrtMemType;

typedef enum OrtDeviceMemoryType {
  OrtDeviceMemoryType_DEFAULT = 0,
  OrtDeviceMemoryType_HOST_ACCESSIBLE = 5,
} OrtDeviceMemoryType;

typedef enum OrtMemoryInfoDeviceType {
  OrtMemoryInfoDeviceType_CPU = 0,
  OrtMemoryInfoDeviceType_GPU = 1,
  OrtMemoryInfoDeviceType_FPGA = 2,
  OrtMemoryInfoDeviceType_NPU = 3,
} OrtMemoryInfoDeviceType;

typedef enum OrtHardwareDeviceType {
  OrtHardwareDeviceType_CPU = 0,
  OrtHardwareDeviceType_GPU = 1,
  OrtHardwareDeviceType_NPU = 2,
} OrtHardwareDeviceType;

typedef enum OrtExecutionProviderDevicePolicy {
  OrtExecutionProviderDevicePolicy_DEFAULT = 0,
  OrtExecutionProviderDevicePolicy_PREFER_CPU = 1,
  OrtExecutionProviderDevicePolicy_PREFER_NPU = 2,
  OrtExecutionProviderDevicePolicy_PREFER_GPU = 3,
  OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE = 4,
  OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY = 5,
  OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER = 6,
} OrtExecutionProviderDevicePolicy;

typedef enum OrtDeviceEpIncompatibilityReason {
  OrtDeviceEpIncompatibility_NONE = 0,
  OrtDeviceEpIncompatibility_DRIVER_INCOMPATIBLE = 1,
  OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE = 2,
  OrtDeviceEpIncompatibility_MISSING_DEPENDENCY = 4,
  OrtDeviceEpIncompatibility_UNKNOWN = -2147483648,
} OrtDeviceEpIncompatibilityReason;

typedef enum OrtCudnnConvAlgoSearch {
  OrtCudnnConvAlgoSearchExhaustive = 0,
  OrtCudnnConvAlgoSearchHeuristic = 1,
  OrtCudnnConvAlgoSearchDefault = 2,
} OrtCudnnConvAlgoSearch;

typedef enum OrtExternalMemoryHandleType {
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE = 0,
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP = 1,
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_WIN32 = 2,
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD = 3,
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION = 4 ABI_SINCE(30),
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_WIN32 = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_WIN32,
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_OPAQUE_FD = ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD,
} OrtExternalMemoryHandleType ABI_SINCE(24);

typedef enum OrtExternalSemaphoreType {
  ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE = 0,
  ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_WIN32 = 1,
  ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD = 2,
} OrtExternalSemaphoreType ABI_SINCE(24);

typedef enum OrtGraphicsApi {
  ORT_GRAPHICS_API_NONE = 0,
  ORT_GRAPHICS_API_D3D12 = 1,
  ORT_GRAPHICS_API_VULKAN = 2,
} OrtGraphicsApi ABI_SINCE(25);

typedef enum OrtCompiledModelCompatibility {
  OrtCompiledModelCompatibility_EP_NOT_APPLICABLE = 0,
  OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL = 1,
  OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION = 2,
  OrtCompiledModelCompatibility_EP_UNSUPPORTED = 3,
} OrtCompiledModelCompatibility;

typedef enum OrtCustomOpInputOutputCharacteristic {
  INPUT_OUTPUT_REQUIRED = 0,
  INPUT_OUTPUT_OPTIONAL = 1,
  INPUT_OUTPUT_VARIADIC = 2,
} OrtCustomOpInputOutputCharacteristic;

typedef enum OrtCompileApiFlags {
  OrtCompileApiFlags_NONE = 0,
  OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED = 1,
  OrtCompileApiFlags_ERROR_IF_OUTPUT_FILE_EXISTS = 2,
} OrtCompileApiFlags;

typedef enum OrtProfilingEventCategory {
  OrtProfilingEventCategory_SESSION = 0,
  OrtProfilingEventCategory_NODE = 1,
  OrtProfilingEventCategory_KERNEL = 2,
  OrtProfilingEventCategory_API = 3,
} OrtProfilingEventCategory ABI_SINCE(25);

typedef enum OrtResourceCountKind {
  OrtResourceCountKind_None = 0,
  OrtResourceCountKind_TotalBytes = 1,
} OrtResourceCountKind ABI_SINCE(26);

typedef enum OrtEpDataLayout {
  OrtEpDataLayout_NCHW = 0,
  OrtEpDataLayout_NHWC = 1,
  OrtEpDataLayout_Default = 0,
} OrtEpDataLayout ABI_SINCE(23);

typedef enum OrtGraphCaptureNodeAssignmentPolicy {
  OrtGraphCaptureNodeAssignmentPolicy_ALL_NODES_ON_EP = 0,
  OrtGraphCaptureNodeAssignmentPolicy_ALLOW_CPU_FOR_SHAPES = 1,
} OrtGraphCaptureNodeAssignmentPolicy ABI_SINCE(26);

typedef enum OrtWeightlessSupport {
  OrtWeightlessSupport_NONE = 0,
  OrtWeightlessSupport_EXTERNAL_ONLY = 1,
  OrtWeightlessSupport_ALL = 2,
} OrtWeightlessSupport ABI_SINCE(29);

/* ---- Function types ---- */

typedef void (ORT_API_CALL* OrtExperimentalFnPtr)(void);
typedef void (ORT_API_CALL* OrtLoggingFunction)(void* param, OrtLoggingLevel severity, const char* category,
    const char* logid, const char* code_location, const char* message);
typedef OrtStatus* (ORT_API_CALL* EpSelectionDelegate)(ABI_IN const OrtEpDevice** ep_devices,
    ABI_IN size_t num_devices, ABI_IN const OrtKeyValuePairs* model_metadata,
    ABI_IN_OPT const OrtKeyValuePairs* runtime_metadata, ABI_INOUT const OrtEpDevice** selected,
    ABI_IN size_t max_selected, ABI_OUT size_t* num_selected, ABI_IN void* state);
typedef OrtStatus* (ORT_API_CALL* OrtWriteBufferFunc)(ABI_IN void* state, ABI_IN const void* buffer,
    ABI_IN size_t buffer_num_bytes);
typedef OrtStatus* (ORT_API_CALL* OrtGetInitializerLocationFunc)(ABI_IN void* state,
    ABI_IN const char* initializer_name, ABI_IN const OrtValue* initializer_value,
    ABI_IN_OPT const OrtExternalInitializerInfo* external_info,
    ABI_OUTPTR_MAYBENULL OrtExternalInitializerInfo** new_external_info);
typedef void (ORT_API_CALL* OrtThreadWorkerFn)(void* ort_worker_fn_param);
typedef OrtCustomThreadHandle (ORT_API_CALL* OrtCustomCreateThreadFn)(void* ort_custom_thread_creation_options,
    OrtThreadWorkerFn ort_thread_worker_fn, void* ort_worker_fn_param);
typedef void (ORT_API_CALL* OrtCustomJoinThreadFn)(OrtCustomThreadHandle ort_custom_thread_handle);
typedef ABI_RET_MAYBENULL void* (ORT_API_CALL* OrtThreadPoolWorkEnqueueFn)(ABI_IN_OPT void* user_context);
typedef void (ORT_API_CALL* OrtThreadPoolWorkStartFn)(ABI_IN_OPT void* user_context,
    ABI_IN_OPT void* enqueue_data);
typedef void (ORT_API_CALL* OrtThreadPoolWorkStopFn)(ABI_IN_OPT void* user_context,
    ABI_IN_OPT void* enqueue_data);
typedef void (ORT_API_CALL* OrtThreadPoolWorkAbandonFn)(ABI_IN_OPT void* user_context,
    ABI_IN_OPT void* enqueue_data);
typedef OrtStatus* (ORT_API_CALL* RegisterCustomOpsFn)(OrtSessionOptions* options, const OrtApiBase* api);
typedef void (ORT_API_CALL* RunAsyncCallbackFn)(void* user_data, OrtValue** outputs, size_t num_outputs,
    OrtStatus* status);
typedef OrtStatus* (ORT_API_CALL* OrtKernelCreateFunc)(ABI_IN void* kernel_create_func_state,
    ABI_IN const OrtKernelInfo* info, ABI_OUTPTR_MAYBENULL OrtKernelImpl** kernel_out) ABI_SINCE(24);
typedef OrtStatus* (ORT_API_CALL* CreateEpApiFactoriesFn)(ABI_IN const char* registered_name,
    ABI_IN const OrtApiBase* ort_api_base, ABI_IN const OrtLogger* default_logger,
    ABI_INOUT OrtEpFactory** factories, ABI_IN size_t max_factories,
    ABI_OUT size_t* num_factories) ABI_SINCE(22);
typedef OrtStatus* (ORT_API_CALL* ReleaseEpApiFactoryFn)(ABI_IN OrtEpFactory* factory) ABI_SINCE(22);

/* ---- Data structs ---- */

struct OrtCUDAProviderOptions {
  int device_id;
  OrtCudnnConvAlgoSearch cudnn_conv_algo_search;
  size_t gpu_mem_limit;
  int arena_extend_strategy;
  int do_copy_in_default_stream;
  int has_user_compute_stream;
  void* user_compute_stream;
  OrtArenaCfg* default_memory_arena_cfg;
  int tunable_op_enable;
  int tunable_op_tuning_enable;
  int tunable_op_max_tuning_duration_ms;
};

struct OrtROCMProviderOptions {
  int device_id;
  int miopen_conv_exhaustive_search;
  size_t gpu_mem_limit;
  int arena_extend_strategy;
  int do_copy_in_default_stream;
  int has_user_compute_stream;
  void* user_compute_stream;
  OrtArenaCfg* default_memory_arena_cfg;
  int enable_hip_graph;
  int tunable_op_enable;
  int tunable_op_tuning_enable;
  int tunable_op_max_tuning_duration_ms;
};

struct OrtTensorRTProviderOptions {
  int device_id;
  int has_user_compute_stream;
  void* user_compute_stream;
  int trt_max_partition_iterations;
  int trt_min_subgraph_size;
  size_t trt_max_workspace_size;
  int trt_fp16_enable;
  int trt_int8_enable;
  const char* trt_int8_calibration_table_name;
  int trt_int8_use_native_calibration_table;
  int trt_dla_enable;
  int trt_dla_core;
  int trt_dump_subgraphs;
  int trt_engine_cache_enable;
  const char* trt_engine_cache_path;
  int trt_engine_decryption_enable;
  const char* trt_engine_decryption_lib_path;
  int trt_force_sequential_engine_build;
};

struct OrtMIGraphXProviderOptions {
  int device_id;
  int migraphx_fp16_enable;
  int migraphx_fp8_enable;
  int migraphx_int8_enable;
  int migraphx_use_native_calibration_table;
  const char* migraphx_int8_calibration_table_name;
  int migraphx_save_compiled_model;
  const char* migraphx_save_model_path;
  int migraphx_load_compiled_model;
  const char* migraphx_load_model_path;
  bool migraphx_exhaustive_tune;
  size_t migraphx_mem_limit;
  int migraphx_arena_extend_strategy;
};

struct OrtOpenVINOProviderOptions {
  const char* device_type;
  unsigned char enable_npu_fast_compile;
  const char* device_id;
  size_t num_of_threads;
  const char* cache_dir;
  void* context;
  unsigned char enable_opencl_throttling;
  unsigned char enable_dynamic_shapes;
};

struct OrtExternalMemoryDescriptor {
  uint32_t version ABI_SINCE(24);
  OrtExternalMemoryHandleType handle_type ABI_SINCE(24);
  void* native_handle ABI_SINCE(24);
  size_t size_bytes ABI_SINCE(24);
  size_t offset_bytes ABI_SINCE(24);
} ABI_SINCE(24);

struct OrtExternalSemaphoreDescriptor {
  uint32_t version ABI_SINCE(24);
  OrtExternalSemaphoreType type ABI_SINCE(24);
  void* native_handle ABI_SINCE(24);
} ABI_SINCE(24);

struct OrtGraphicsInteropConfig {
  uint32_t version ABI_SINCE(25);
  OrtGraphicsApi graphics_api ABI_SINCE(25);
  void* command_queue ABI_SINCE(25) ABI_OPTIONAL;
  const OrtKeyValuePairs* additional_options ABI_SINCE(25) ABI_OPTIONAL;
} ABI_SINCE(25);

struct OrtExternalTensorDescriptor {
  uint32_t version ABI_SINCE(24);
  ONNXTensorElementDataType element_type ABI_SINCE(24);
  const int64_t* shape ABI_SINCE(24);
  size_t rank ABI_SINCE(24);
  size_t offset_bytes ABI_SINCE(24);
} ABI_SINCE(24);

struct OrtEnvCreationOptions {
  uint32_t version ABI_SINCE(24);
  int32_t logging_severity_level ABI_SINCE(24);
  const char* log_id ABI_SINCE(24);
  OrtLoggingFunction custom_logging_function ABI_SINCE(24) ABI_OPTIONAL;
  void* custom_logging_param ABI_SINCE(24) ABI_OPTIONAL;
  const OrtThreadingOptions* threading_options ABI_SINCE(24) ABI_OPTIONAL;
  const OrtKeyValuePairs* config_entries ABI_SINCE(24) ABI_OPTIONAL;
} ABI_SINCE(24);

struct OrtNodeFusionOptions {
  uint32_t ort_version_supported ABI_SINCE(23);
  bool drop_constant_initializers ABI_SINCE(23);
} ABI_SINCE(23);

struct OrtResourceCount {
  uint32_t kind ABI_SINCE(26);
  uint32_t reserved ABI_SINCE(26);
  union {
    uint64_t total_bytes;
    uint64_t reserved_words[6];
  } value ABI_SINCE(26);
} ABI_SINCE(26);


/* ---- Callback structs: filled in by a plugin, an application or the host, and called by the other side ---- */

struct OrtAllocator {
  uint32_t version ABI_SINCE(1);
  void* (ORT_API_CALL* Alloc)(OrtAllocator* this_, size_t size) ABI_SINCE(1);
  void (ORT_API_CALL* Free)(OrtAllocator* this_, void* p) ABI_SINCE(1);
  const OrtMemoryInfo* (ORT_API_CALL* Info)(const OrtAllocator* this_) ABI_SINCE(1);
  void* (ORT_API_CALL* Reserve)(OrtAllocator* this_, size_t size) ABI_SINCE(18) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* GetStats)(ABI_IN const OrtAllocator* this_,
      ABI_OUTPTR OrtKeyValuePairs** out) ABI_SINCE(23) ABI_OPTIONAL;
  void* (ORT_API_CALL* AllocOnStream)(OrtAllocator* this_, size_t size,
      OrtSyncStream* stream) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* Shrink)(ABI_IN OrtAllocator* this_) ABI_SINCE(25) ABI_OPTIONAL;
} ABI_SINCE(1);

struct OrtThreadPoolCallbacksConfig {
  uint32_t version ABI_SINCE(25);
  OrtThreadPoolWorkEnqueueFn on_enqueue ABI_SINCE(25) ABI_OPTIONAL;
  OrtThreadPoolWorkStartFn on_start_work ABI_SINCE(25) ABI_OPTIONAL;
  OrtThreadPoolWorkStopFn on_stop_work ABI_SINCE(25) ABI_OPTIONAL;
  OrtThreadPoolWorkAbandonFn on_abandon ABI_SINCE(25) ABI_OPTIONAL;
  void* user_context ABI_SINCE(25) ABI_OPTIONAL;
} ABI_SINCE(25);

struct OrtCustomOp {
  uint32_t version ABI_SINCE(1);
  void* (ORT_API_CALL* CreateKernel)(ABI_IN const OrtCustomOp* op, ABI_IN const OrtApi* api,
      ABI_IN const OrtKernelInfo* info) ABI_SINCE(1);
  const char* (ORT_API_CALL* GetName)(ABI_IN const OrtCustomOp* op) ABI_SINCE(1);
  const char* (ORT_API_CALL* GetExecutionProviderType)(ABI_IN const OrtCustomOp* op) ABI_SINCE(1);
  ONNXTensorElementDataType (ORT_API_CALL* GetInputType)(ABI_IN const OrtCustomOp* op,
      ABI_IN size_t index) ABI_SINCE(1);
  size_t (ORT_API_CALL* GetInputTypeCount)(ABI_IN const OrtCustomOp* op) ABI_SINCE(1);
  ONNXTensorElementDataType (ORT_API_CALL* GetOutputType)(ABI_IN const OrtCustomOp* op,
      ABI_IN size_t index) ABI_SINCE(1);
  size_t (ORT_API_CALL* GetOutputTypeCount)(ABI_IN const OrtCustomOp* op) ABI_SINCE(1);
  void (ORT_API_CALL* KernelCompute)(ABI_IN void* op_kernel, ABI_IN OrtKernelContext* context) ABI_SINCE(1);
  void (ORT_API_CALL* KernelDestroy)(ABI_IN void* op_kernel) ABI_SINCE(1);
  OrtCustomOpInputOutputCharacteristic (ORT_API_CALL* GetInputCharacteristic)(ABI_IN const OrtCustomOp* op,
      ABI_IN size_t index) ABI_SINCE(8);
  OrtCustomOpInputOutputCharacteristic (ORT_API_CALL* GetOutputCharacteristic)(ABI_IN const OrtCustomOp* op,
      ABI_IN size_t index) ABI_SINCE(8);
  OrtMemType (ORT_API_CALL* GetInputMemoryType)(ABI_IN const OrtCustomOp* op,
      ABI_IN size_t index) ABI_SINCE(13);
  int (ORT_API_CALL* GetVariadicInputMinArity)(ABI_IN const OrtCustomOp* op) ABI_SINCE(14);
  int (ORT_API_CALL* GetVariadicInputHomogeneity)(ABI_IN const OrtCustomOp* op) ABI_SINCE(14);
  int (ORT_API_CALL* GetVariadicOutputMinArity)(ABI_IN const OrtCustomOp* op) ABI_SINCE(14);
  int (ORT_API_CALL* GetVariadicOutputHomogeneity)(ABI_IN const OrtCustomOp* op) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* CreateKernelV2)(ABI_IN const OrtCustomOp* op, ABI_IN const OrtApi* api,
      ABI_IN const OrtKernelInfo* info, ABI_OUT void** kernel) ABI_SINCE(16) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* KernelComputeV2)(ABI_IN void* op_kernel,
      ABI_IN OrtKernelContext* context) ABI_SINCE(16) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* InferOutputShapeFn)(ABI_IN const OrtCustomOp* op,
      ABI_IN OrtShapeInferContext* ) ABI_SINCE(17) ABI_OPTIONAL;
  int (ORT_API_CALL* GetStartVersion)(ABI_IN const OrtCustomOp* op) ABI_SINCE(17) ABI_OPTIONAL;
  int (ORT_API_CALL* GetEndVersion)(ABI_IN const OrtCustomOp* op) ABI_SINCE(17) ABI_OPTIONAL;
  size_t (ORT_API_CALL* GetMayInplace)(ABI_OUT int** input_index,
      ABI_OUT int** output_index) ABI_SINCE(18) ABI_OPTIONAL;
  void (ORT_API_CALL* ReleaseMayInplace)(ABI_FREES_OPT int* input_index,
      ABI_FREES_OPT int* output_index) ABI_SINCE(18);
  size_t (ORT_API_CALL* GetAliasMap)(ABI_OUT int** input_index,
      ABI_OUT int** output_index) ABI_SINCE(18) ABI_OPTIONAL;
  void (ORT_API_CALL* ReleaseAliasMap)(ABI_FREES_OPT int* input_index,
      ABI_FREES_OPT int* output_index) ABI_SINCE(18);
} ABI_SINCE(1);

struct OrtExternalMemoryHandle {
  uint32_t version ABI_SINCE(24);
  const OrtEpDevice* ep_device ABI_SINCE(24);
  OrtExternalMemoryDescriptor descriptor ABI_SINCE(24);
  void (ORT_API_CALL* Release)(ABI_IN OrtExternalMemoryHandle* handle) ABI_SINCE(24);
} ABI_SINCE(24);

struct OrtExternalSemaphoreHandle {
  uint32_t version ABI_SINCE(24);
  const OrtEpDevice* ep_device ABI_SINCE(24);
  OrtExternalSemaphoreDescriptor descriptor ABI_SINCE(24);
  void (ORT_API_CALL* Release)(ABI_IN OrtExternalSemaphoreHandle* handle) ABI_SINCE(24);
} ABI_SINCE(24);

struct OrtDataTransferImpl {
  uint32_t ort_version_supported ABI_SINCE(23);
  void (ORT_API_CALL* Release)(ABI_IN OrtDataTransferImpl* this_ptr) ABI_SINCE(23);
  bool (ORT_API_CALL* CanCopy)(ABI_IN const OrtDataTransferImpl* this_ptr,
      ABI_IN const OrtMemoryDevice* src_memory_device,
      ABI_IN const OrtMemoryDevice* dst_memory_device) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* CopyTensors)(ABI_IN OrtDataTransferImpl* this_ptr,
      ABI_IN_READS(num_tensors) const OrtValue** src_tensors,
      ABI_IN_READS(num_tensors) OrtValue** dst_tensors, ABI_IN_READS(num_tensors) OrtSyncStream** streams,
      ABI_IN size_t num_tensors) ABI_SINCE(23);
} ABI_SINCE(23);

struct OrtSyncNotificationImpl {
  uint32_t ort_version_supported ABI_SINCE(23);
  void (ORT_API_CALL* Release)(ABI_IN OrtSyncNotificationImpl* this_ptr) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Activate)(ABI_IN OrtSyncNotificationImpl* this_ptr) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* WaitOnDevice)(ABI_IN OrtSyncNotificationImpl* this_ptr,
      ABI_IN OrtSyncStream* consumer_stream) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* WaitOnHost)(ABI_IN OrtSyncNotificationImpl* this_ptr) ABI_SINCE(23);
} ABI_SINCE(23);

struct OrtSyncStreamImpl {
  uint32_t ort_version_supported ABI_SINCE(23);
  void (ORT_API_CALL* Release)(ABI_IN OrtSyncStreamImpl* this_ptr) ABI_SINCE(23);
  void* (ORT_API_CALL* GetHandle)(ABI_IN OrtSyncStreamImpl* this_ptr) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* CreateNotification)(ABI_IN OrtSyncStreamImpl* this_ptr,
      ABI_OUTPTR OrtSyncNotificationImpl** notification) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Flush)(ABI_IN OrtSyncStreamImpl* this_ptr) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* OnSessionRunEnd)(ABI_IN OrtSyncStreamImpl* this_ptr) ABI_SINCE(23);
} ABI_SINCE(23);

struct OrtExternalResourceImporterImpl {
  uint32_t ort_version_supported ABI_SINCE(24);
  bool (ORT_API_CALL* CanImportMemory)(ABI_IN const OrtExternalResourceImporterImpl* this_ptr,
      ABI_IN OrtExternalMemoryHandleType handle_type) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* ImportMemory)(ABI_IN OrtExternalResourceImporterImpl* this_ptr,
      ABI_IN const OrtExternalMemoryDescriptor* desc,
      ABI_OUTPTR OrtExternalMemoryHandle** out_handle) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseMemory)(ABI_IN OrtExternalResourceImporterImpl* this_ptr,
      ABI_IN OrtExternalMemoryHandle* handle) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* CreateTensorFromMemory)(ABI_IN OrtExternalResourceImporterImpl* this_ptr,
      ABI_IN const OrtExternalMemoryHandle* mem_handle, ABI_IN const OrtExternalTensorDescriptor* tensor_desc,
      ABI_OUTPTR OrtValue** out_tensor) ABI_SINCE(24);
  bool (ORT_API_CALL* CanImportSemaphore)(ABI_IN const OrtExternalResourceImporterImpl* this_ptr,
      ABI_IN OrtExternalSemaphoreType type) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* ImportSemaphore)(ABI_IN OrtExternalResourceImporterImpl* this_ptr,
      ABI_IN const OrtExternalSemaphoreDescriptor* desc,
      ABI_OUTPTR OrtExternalSemaphoreHandle** out_handle) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseSemaphore)(ABI_IN OrtExternalResourceImporterImpl* this_ptr,
      ABI_IN OrtExternalSemaphoreHandle* handle) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* WaitSemaphore)(ABI_IN OrtExternalResourceImporterImpl* this_ptr,
      ABI_IN OrtExternalSemaphoreHandle* handle, ABI_IN OrtSyncStream* stream,
      ABI_IN uint64_t value) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* SignalSemaphore)(ABI_IN OrtExternalResourceImporterImpl* this_ptr,
      ABI_IN OrtExternalSemaphoreHandle* handle, ABI_IN OrtSyncStream* stream,
      ABI_IN uint64_t value) ABI_SINCE(24);
  void (ORT_API_CALL* Release)(ABI_IN OrtExternalResourceImporterImpl* this_ptr) ABI_SINCE(24);
} ABI_SINCE(24);

struct OrtEpProfilerImpl {
  uint32_t ort_version_supported ABI_SINCE(25);
  void (ORT_API_CALL* Release)(ABI_IN OrtEpProfilerImpl* this_ptr) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* StartProfiling)(ABI_IN OrtEpProfilerImpl* this_ptr,
      ABI_IN int64_t ep_profiling_start_offset_ns) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* StartEvent)(ABI_IN OrtEpProfilerImpl* this_ptr,
      ABI_IN uint64_t ort_event_correlation_id) ABI_SINCE(25) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* StopEvent)(ABI_IN OrtEpProfilerImpl* this_ptr,
      ABI_IN uint64_t ort_event_correlation_id,
      ABI_IN const OrtProfilingEvent* ort_event) ABI_SINCE(25) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* EndProfiling)(ABI_IN OrtEpProfilerImpl* this_ptr,
      ABI_IN OrtProfilingEventsContainer* events_container) ABI_SINCE(25);
} ABI_SINCE(25);

struct OrtNodeComputeInfo {
  uint32_t ort_version_supported ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* CreateState)(ABI_IN OrtNodeComputeInfo* this_ptr,
      ABI_IN OrtNodeComputeContext* compute_context, ABI_OUTPTR void** compute_state) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Compute)(ABI_IN OrtNodeComputeInfo* this_ptr, ABI_IN void* compute_state,
      ABI_IN OrtKernelContext* kernel_context) ABI_SINCE(23);
  void (ORT_API_CALL* ReleaseState)(ABI_IN OrtNodeComputeInfo* this_ptr,
      ABI_FREES_OPT void* compute_state) ABI_SINCE(23);
} ABI_SINCE(23);

struct OrtKernelImpl {
  uint32_t ort_version_supported ABI_SINCE(24);
  uint32_t flags ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* Compute)(ABI_IN OrtKernelImpl* this_ptr,
      ABI_IN OrtKernelContext* context) ABI_SINCE(24);
  void (ORT_API_CALL* Release)(ABI_IN OrtKernelImpl* this_ptr) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* PrePackWeight)(ABI_IN OrtKernelImpl* this_ptr, ABI_IN const OrtValue* tensor,
      ABI_IN int input_index, ABI_INOUT OrtAllocator* allocator,
      ABI_IN_OPT OrtSharedPrePackedWeightCache* prepacked_weight_cache,
      ABI_OUT bool* is_packed) ABI_SINCE(24) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* SetSharedPrePackedWeight)(ABI_IN OrtKernelImpl* this_ptr,
      ABI_IN_READS(num_buffers) const void* const* buffer_data_ptrs,
      ABI_IN_READS(num_buffers) const size_t* buffer_data_sizes, ABI_IN size_t num_buffers,
      ABI_IN int input_index) ABI_SINCE(24) ABI_OPTIONAL;
} ABI_SINCE(24);

struct OrtLoopKernelHelper {
  uint32_t ort_version_supported ABI_SINCE(24);
  void (ORT_API_CALL* Release)(ABI_IN OrtLoopKernelHelper* this_ptr) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* ConcatOutput)(ABI_IN OrtLoopKernelHelper* this_ptr,
      ABI_IN_OPT void* stream_handle,
      ABI_IN_READS(num_per_iteration_outputs) const OrtValue* const* per_iteration_outputs,
      ABI_IN size_t num_per_iteration_outputs, ABI_OUT_WRITES_BYTES_ALL(output_size_in_bytes) void* output,
      ABI_IN size_t output_size_in_bytes) ABI_SINCE(24);
} ABI_SINCE(24);

struct OrtScanKernelHelper {
  uint32_t ort_version_supported ABI_SINCE(24);
  void (ORT_API_CALL* Release)(ABI_IN OrtScanKernelHelper* this_ptr) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* Transpose)(ABI_IN OrtScanKernelHelper* this_ptr,
      ABI_IN_READS(num_permutation_elems) const size_t* permutation, ABI_IN size_t num_permutation_elems,
      ABI_IN const OrtValue* input, ABI_IN_OPT OrtSyncStream* stream,
      ABI_INOUT OrtValue* output) ABI_SINCE(24);
} ABI_SINCE(24);

struct OrtEp {
  uint32_t ort_version_supported ABI_SINCE(22);
  const char* (ORT_API_CALL* GetName)(ABI_IN const OrtEp* this_ptr) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* GetCapability)(ABI_IN OrtEp* this_ptr, ABI_IN const OrtGraph* graph,
      ABI_INOUT OrtEpGraphSupportInfo* graph_support_info) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Compile)(ABI_IN OrtEp* this_ptr, ABI_IN const OrtGraph** graphs,
      ABI_IN const OrtNode** fused_nodes, ABI_IN size_t count,
      ABI_OUT_WRITES_ALL(count) OrtNodeComputeInfo** node_compute_infos,
      ABI_OUT_WRITES(count) OrtNode** ep_context_nodes) ABI_SINCE(23) ABI_OPTIONAL;
  void (ORT_API_CALL* ReleaseNodeComputeInfos)(ABI_IN OrtEp* this_ptr,
      OrtNodeComputeInfo** node_compute_infos,
      ABI_IN size_t num_node_compute_infos) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* GetPreferredDataLayout)(ABI_IN OrtEp* this_ptr,
      ABI_OUT OrtEpDataLayout* preferred_data_layout) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* ShouldConvertDataLayoutForOp)(ABI_IN OrtEp* this_ptr, ABI_IN const char* domain,
      ABI_IN const char* op_type, ABI_IN OrtEpDataLayout target_data_layout,
      ABI_OUTPTR int* should_convert) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* SetDynamicOptions)(ABI_IN OrtEp* this_ptr,
      ABI_IN_READS(num_options) const char* const* option_keys,
      ABI_IN_READS(num_options) const char* const* option_values,
      ABI_IN size_t num_options) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* OnRunStart)(ABI_IN OrtEp* this_ptr,
      ABI_IN const OrtRunOptions* run_options) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* OnRunEnd)(ABI_IN OrtEp* this_ptr, ABI_IN const OrtRunOptions* run_options,
      ABI_IN bool sync_stream) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* CreateAllocator)(ABI_IN OrtEp* this_ptr, ABI_IN const OrtMemoryInfo* memory_info,
      ABI_OUTPTR_MAYBENULL OrtAllocator** allocator) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* CreateSyncStreamForDevice)(ABI_IN OrtEp* this_ptr,
      ABI_IN const OrtMemoryDevice* memory_device,
      ABI_OUTPTR OrtSyncStreamImpl** stream) ABI_SINCE(23) ABI_OPTIONAL;
  const char* (ORT_API_CALL* GetCompiledModelCompatibilityInfo)(ABI_IN OrtEp* this_ptr,
      ABI_IN const OrtGraph* graph) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* GetKernelRegistry)(ABI_IN OrtEp* this_ptr,
      ABI_OUTPTR_MAYBENULL const OrtKernelRegistry** kernel_registry) ABI_SINCE(24) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* IsConcurrentRunSupported)(ABI_IN OrtEp* this_ptr,
      ABI_OUTPTR bool* is_supported) ABI_SINCE(24) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* Sync)(ABI_IN OrtEp* this_ptr) ABI_SINCE(25) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* CreateProfiler)(ABI_IN OrtEp* this_ptr,
      ABI_OUTPTR_MAYBENULL OrtEpProfilerImpl** profiler) ABI_SINCE(25) ABI_OPTIONAL;
  bool (ORT_API_CALL* IsGraphCaptureEnabled)(ABI_IN const OrtEp* this_ptr) ABI_SINCE(26) ABI_OPTIONAL;
  bool (ORT_API_CALL* IsGraphCaptured)(ABI_IN const OrtEp* this_ptr,
      ABI_IN int graph_annotation_id) ABI_SINCE(26) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* ReplayGraph)(ABI_IN OrtEp* this_ptr,
      ABI_IN int graph_annotation_id) ABI_SINCE(26) ABI_OPTIONAL;
  OrtGraphCaptureNodeAssignmentPolicy (ORT_API_CALL* GetGraphCaptureNodeAssignmentPolicy)(ABI_IN const OrtEp* this_ptr) ABI_SINCE(26) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* GetAvailableResource)(ABI_IN const OrtEp* this_ptr,
      ABI_OUT OrtResourceCount* available) ABI_SINCE(26) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* OnSessionInitializationEnd)(ABI_IN OrtEp* this_ptr) ABI_SINCE(27) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* GetDefaultMemoryDevice)(ABI_IN const OrtEp* this_ptr,
      ABI_OUTPTR_MAYBENULL const OrtMemoryDevice** device) ABI_SINCE(27) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* ReleaseCapturedGraph)(ABI_IN OrtEp* this_ptr,
      ABI_IN int graph_annotation_id) ABI_SINCE(27) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* GetWeightlessSupport)(ABI_IN const OrtEp* this_ptr,
      ABI_OUT OrtWeightlessSupport* support) ABI_SINCE(29) ABI_OPTIONAL;
} ABI_SINCE(22);

struct OrtEpFactory {
  uint32_t ort_version_supported ABI_SINCE(22);
  const char* (ORT_API_CALL* GetName)(const OrtEpFactory* this_ptr) ABI_SINCE(22);
  const char* (ORT_API_CALL* GetVendor)(const OrtEpFactory* this_ptr) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* GetSupportedDevices)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN_READS(num_devices) const OrtHardwareDevice* const* devices, ABI_IN size_t num_devices,
      ABI_INOUT OrtEpDevice** ep_devices, ABI_IN size_t max_ep_devices,
      ABI_OUT size_t* num_ep_devices) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateEp)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN_READS(num_devices) const OrtHardwareDevice* const* devices,
      ABI_IN_READS(num_devices) const OrtKeyValuePairs* const* ep_metadata_pairs, ABI_IN size_t num_devices,
      ABI_IN const OrtSessionOptions* session_options, ABI_IN const OrtLogger* logger,
      ABI_OUTPTR OrtEp** ep) ABI_SINCE(22);
  void (ORT_API_CALL* ReleaseEp)(OrtEpFactory* this_ptr, OrtEp* ep) ABI_SINCE(22);
  uint32_t (ORT_API_CALL* GetVendorId)(const OrtEpFactory* this_ptr) ABI_SINCE(23);
  const char* (ORT_API_CALL* GetVersion)(ABI_IN const OrtEpFactory* this_ptr) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValidateCompiledModelCompatibilityInfo)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN_READS(num_devices) const OrtHardwareDevice* const* devices, ABI_IN size_t num_devices,
      ABI_IN const char* compatibility_info,
      ABI_OUT OrtCompiledModelCompatibility* model_compatibility) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* CreateAllocator)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN const OrtMemoryInfo* memory_info, ABI_IN_OPT const OrtKeyValuePairs* allocator_options,
      ABI_OUTPTR_MAYBENULL OrtAllocator** allocator) ABI_SINCE(23);
  void (ORT_API_CALL* ReleaseAllocator)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN OrtAllocator* allocator) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* CreateDataTransfer)(ABI_IN OrtEpFactory* this_ptr,
      ABI_OUTPTR_MAYBENULL OrtDataTransferImpl** data_transfer) ABI_SINCE(23) ABI_OPTIONAL;
  bool (ORT_API_CALL* IsStreamAware)(ABI_IN const OrtEpFactory* this_ptr) ABI_SINCE(23) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* CreateSyncStreamForDevice)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN const OrtMemoryDevice* memory_device, ABI_IN_OPT const OrtKeyValuePairs* stream_options,
      ABI_OUTPTR OrtSyncStreamImpl** stream) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* GetHardwareDeviceIncompatibilityDetails)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN const OrtHardwareDevice* hw,
      ABI_INOUT OrtDeviceEpIncompatibilityDetails* details) ABI_SINCE(24) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* CreateExternalResourceImporterForDevice)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN const OrtEpDevice* ep_device,
      ABI_OUTPTR_MAYBENULL OrtExternalResourceImporterImpl** out_importer) ABI_SINCE(24) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* GetNumCustomOpDomains)(ABI_IN OrtEpFactory* this_ptr,
      ABI_OUT size_t* num_domains) ABI_SINCE(24) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* GetCustomOpDomains)(ABI_IN OrtEpFactory* this_ptr,
      ABI_OUT_WRITES_ALL(num_domains) OrtCustomOpDomain** domains,
      ABI_IN size_t num_domains) ABI_SINCE(24) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* InitGraphicsInterop)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN const OrtEpDevice* ep_device,
      ABI_IN const OrtGraphicsInteropConfig* config) ABI_SINCE(25) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* DeinitGraphicsInterop)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN const OrtEpDevice* ep_device) ABI_SINCE(25) ABI_OPTIONAL;
  OrtStatus* (ORT_API_CALL* SelectBestModelCandidate)(ABI_IN OrtEpFactory* this_ptr,
      ABI_IN const OrtHardwareDevice* device,
      ABI_IN_READS(num_candidates) const OrtKeyValuePairs* const* candidates, ABI_IN size_t num_candidates,
      ABI_IN_OPT const OrtSessionOptions* session_options, ABI_OUT size_t* selected_index) ABI_SINCE(28);
} ABI_SINCE(22);


/* ---- Host tables: what the host offers ---- */

struct OrtApi {
  OrtStatus* (ORT_API_CALL* CreateStatus)(OrtErrorCode code, ABI_IN const char* msg) ABI_SINCE(1);
  OrtErrorCode (ORT_API_CALL* GetErrorCode)(ABI_IN const OrtStatus* status) ABI_SINCE(1);
  const char* (ORT_API_CALL* GetErrorMessage)(ABI_IN const OrtStatus* status) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateEnv)(OrtLoggingLevel log_severity_level, ABI_IN const char* logid,
      ABI_OUTPTR OrtEnv** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateEnvWithCustomLogger)(ABI_IN OrtLoggingFunction logging_function,
      ABI_IN_OPT void* logger_param, ABI_IN OrtLoggingLevel log_severity_level, ABI_IN const char* logid,
      ABI_OUTPTR OrtEnv** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* EnableTelemetryEvents)(ABI_IN const OrtEnv* env) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* DisableTelemetryEvents)(ABI_IN const OrtEnv* env) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateSession)(ABI_IN const OrtEnv* env, ABI_IN const ORTCHAR_T* model_path,
      ABI_IN const OrtSessionOptions* options, ABI_OUTPTR OrtSession** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateSessionFromArray)(ABI_IN const OrtEnv* env, ABI_IN const void* model_data,
      size_t model_data_length, ABI_IN const OrtSessionOptions* options,
      ABI_OUTPTR OrtSession** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* Run)(ABI_INOUT OrtSession* session, ABI_IN_OPT const OrtRunOptions* run_options,
      ABI_IN_READS(input_len) const char* const* input_names,
      ABI_IN_READS(input_len) const OrtValue* const* inputs, size_t input_len,
      ABI_IN_READS(output_names_len) const char* const* output_names, size_t output_names_len,
      ABI_INOUT_ALL(output_names_len) OrtValue** outputs) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateSessionOptions)(ABI_OUTPTR OrtSessionOptions** options) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SetOptimizedModelFilePath)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN const ORTCHAR_T* optimized_model_filepath) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CloneSessionOptions)(ABI_IN const OrtSessionOptions* in_options,
      ABI_OUTPTR OrtSessionOptions** out_options) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SetSessionExecutionMode)(ABI_INOUT OrtSessionOptions* options,
      ExecutionMode execution_mode) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* EnableProfiling)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN const ORTCHAR_T* profile_file_prefix) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* DisableProfiling)(ABI_INOUT OrtSessionOptions* options) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* EnableMemPattern)(ABI_INOUT OrtSessionOptions* options) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* DisableMemPattern)(ABI_INOUT OrtSessionOptions* options) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* EnableCpuMemArena)(ABI_INOUT OrtSessionOptions* options) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* DisableCpuMemArena)(ABI_INOUT OrtSessionOptions* options) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SetSessionLogId)(ABI_INOUT OrtSessionOptions* options,
      const char* logid) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SetSessionLogVerbosityLevel)(ABI_INOUT OrtSessionOptions* options,
      int session_log_verbosity_level) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SetSessionLogSeverityLevel)(ABI_INOUT OrtSessionOptions* options,
      int session_log_severity_level) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SetSessionGraphOptimizationLevel)(ABI_INOUT OrtSessionOptions* options,
      GraphOptimizationLevel graph_optimization_level) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SetIntraOpNumThreads)(ABI_INOUT OrtSessionOptions* options,
      int intra_op_num_threads) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SetInterOpNumThreads)(ABI_INOUT OrtSessionOptions* options,
      int inter_op_num_threads) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateCustomOpDomain)(ABI_IN const char* domain,
      ABI_OUTPTR OrtCustomOpDomain** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CustomOpDomain_Add)(ABI_INOUT OrtCustomOpDomain* custom_op_domain,
      ABI_IN const OrtCustomOp* op) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* AddCustomOpDomain)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN OrtCustomOpDomain* custom_op_domain) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* RegisterCustomOpsLibrary)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN const char* library_path, ABI_OUTPTR void** library_handle) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SessionGetInputCount)(ABI_IN const OrtSession* session,
      ABI_OUT size_t* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SessionGetOutputCount)(ABI_IN const OrtSession* session,
      ABI_OUT size_t* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SessionGetOverridableInitializerCount)(ABI_IN const OrtSession* session,
      ABI_OUT size_t* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SessionGetInputTypeInfo)(ABI_IN const OrtSession* session, size_t index,
      ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SessionGetOutputTypeInfo)(ABI_IN const OrtSession* session, size_t index,
      ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SessionGetOverridableInitializerTypeInfo)(ABI_IN const OrtSession* session,
      size_t index, ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SessionGetInputName)(ABI_IN const OrtSession* session, size_t index,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** value) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SessionGetOutputName)(ABI_IN const OrtSession* session, size_t index,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** value) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SessionGetOverridableInitializerName)(ABI_IN const OrtSession* session,
      size_t index, ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** value) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateRunOptions)(ABI_OUTPTR OrtRunOptions** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* RunOptionsSetRunLogVerbosityLevel)(ABI_INOUT OrtRunOptions* options,
      int log_verbosity_level) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* RunOptionsSetRunLogSeverityLevel)(ABI_INOUT OrtRunOptions* options,
      int log_severity_level) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* RunOptionsSetRunTag)(ABI_INOUT OrtRunOptions* options,
      ABI_IN const char* run_tag) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* RunOptionsGetRunLogVerbosityLevel)(ABI_IN const OrtRunOptions* options,
      ABI_OUT int* log_verbosity_level) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* RunOptionsGetRunLogSeverityLevel)(ABI_IN const OrtRunOptions* options,
      ABI_OUT int* log_severity_level) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* RunOptionsGetRunTag)(ABI_IN const OrtRunOptions* options,
      ABI_OUT const char** run_tag) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* RunOptionsSetTerminate)(ABI_INOUT OrtRunOptions* options) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* RunOptionsUnsetTerminate)(ABI_INOUT OrtRunOptions* options) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateTensorAsOrtValue)(ABI_INOUT OrtAllocator* allocator,
      ABI_IN const int64_t* shape, size_t shape_len, ONNXTensorElementDataType type,
      ABI_OUTPTR OrtValue** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateTensorWithDataAsOrtValue)(ABI_IN const OrtMemoryInfo* info,
      ABI_INOUT void* p_data, size_t p_data_len, ABI_IN const int64_t* shape, size_t shape_len,
      ONNXTensorElementDataType type, ABI_OUTPTR OrtValue** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* IsTensor)(ABI_IN const OrtValue* value, ABI_OUT int* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetTensorMutableData)(ABI_IN OrtValue* value, ABI_OUTPTR void** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* FillStringTensor)(ABI_INOUT OrtValue* value, ABI_IN const char* const* s,
      size_t s_len) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetStringTensorDataLength)(ABI_IN const OrtValue* value,
      ABI_OUT size_t* len) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetStringTensorContent)(ABI_IN const OrtValue* value,
      ABI_OUT_WRITES_BYTES_ALL(s_len) void* s, size_t s_len, ABI_OUT_WRITES_ALL(offsets_len) size_t* offsets,
      size_t offsets_len) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CastTypeInfoToTensorInfo)(ABI_IN const OrtTypeInfo* type_info,
      ABI_OUTPTR_MAYBENULL const OrtTensorTypeAndShapeInfo** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetOnnxTypeFromTypeInfo)(ABI_IN const OrtTypeInfo* type_info,
      ABI_OUT ONNXType* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateTensorTypeAndShapeInfo)(ABI_OUTPTR OrtTensorTypeAndShapeInfo** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SetTensorElementType)(ABI_INOUT OrtTensorTypeAndShapeInfo* info,
      ONNXTensorElementDataType type) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* SetDimensions)(OrtTensorTypeAndShapeInfo* info, ABI_IN const int64_t* dim_values,
      size_t dim_count) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetTensorElementType)(ABI_IN const OrtTensorTypeAndShapeInfo* info,
      ABI_OUT ONNXTensorElementDataType* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetDimensionsCount)(ABI_IN const OrtTensorTypeAndShapeInfo* info,
      ABI_OUT size_t* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetDimensions)(ABI_IN const OrtTensorTypeAndShapeInfo* info,
      ABI_OUT int64_t* dim_values, size_t dim_values_length) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetSymbolicDimensions)(ABI_IN const OrtTensorTypeAndShapeInfo* info,
      ABI_OUT_WRITES_ALL(dim_params_length) const char** dim_params, size_t dim_params_length) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetTensorShapeElementCount)(ABI_IN const OrtTensorTypeAndShapeInfo* info,
      ABI_OUT size_t* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetTensorTypeAndShape)(ABI_IN const OrtValue* value,
      ABI_OUTPTR OrtTensorTypeAndShapeInfo** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetTypeInfo)(ABI_IN const OrtValue* value,
      ABI_OUTPTR_MAYBENULL OrtTypeInfo** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetValueType)(ABI_IN const OrtValue* value, ABI_OUT ONNXType* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateMemoryInfo)(ABI_IN const char* name, OrtAllocatorType type, int id,
      OrtMemType mem_type, ABI_OUTPTR OrtMemoryInfo** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateCpuMemoryInfo)(OrtAllocatorType type, OrtMemType mem_type,
      ABI_OUTPTR OrtMemoryInfo** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CompareMemoryInfo)(ABI_IN const OrtMemoryInfo* info1,
      ABI_IN const OrtMemoryInfo* info2, ABI_OUT int* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* MemoryInfoGetName)(ABI_IN const OrtMemoryInfo* ptr,
      ABI_OUT const char** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* MemoryInfoGetId)(ABI_IN const OrtMemoryInfo* ptr, ABI_OUT int* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* MemoryInfoGetMemType)(ABI_IN const OrtMemoryInfo* ptr,
      ABI_OUT OrtMemType* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* MemoryInfoGetType)(ABI_IN const OrtMemoryInfo* ptr,
      ABI_OUT OrtAllocatorType* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* AllocatorAlloc)(ABI_INOUT OrtAllocator* ort_allocator, size_t size,
      ABI_OUTPTR void** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* AllocatorFree)(ABI_INOUT OrtAllocator* ort_allocator, void* p) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* AllocatorGetInfo)(ABI_IN const OrtAllocator* ort_allocator,
      ABI_OUTPTR const OrtMemoryInfo** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetAllocatorWithDefaultOptions)(ABI_OUTPTR OrtAllocator** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* AddFreeDimensionOverride)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN const char* dim_denotation, ABI_IN int64_t dim_value) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetValue)(ABI_IN const OrtValue* value, int index,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR OrtValue** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetValueCount)(ABI_IN const OrtValue* value, ABI_OUT size_t* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateValue)(ABI_IN_READS(num_values) const OrtValue* const* in,
      size_t num_values, ONNXType value_type, ABI_OUTPTR OrtValue** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* CreateOpaqueValue)(ABI_IN const char* domain_name, ABI_IN const char* type_name,
      ABI_IN const void* data_container, size_t data_container_size, ABI_OUTPTR OrtValue** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetOpaqueValue)(ABI_IN const char* domain_name, ABI_IN const char* type_name,
      ABI_IN const OrtValue* in, ABI_OUT void* data_container, size_t data_container_size) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* KernelInfoGetAttribute_float)(ABI_IN const OrtKernelInfo* info,
      ABI_IN const char* name, ABI_OUT float* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* KernelInfoGetAttribute_int64)(ABI_IN const OrtKernelInfo* info,
      ABI_IN const char* name, ABI_OUT int64_t* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* KernelInfoGetAttribute_string)(ABI_IN const OrtKernelInfo* info,
      ABI_IN const char* name, ABI_OUT char* out, ABI_INOUT size_t* size) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* KernelContext_GetInputCount)(ABI_IN const OrtKernelContext* context,
      ABI_OUT size_t* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* KernelContext_GetOutputCount)(ABI_IN const OrtKernelContext* context,
      ABI_OUT size_t* out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* KernelContext_GetInput)(ABI_IN const OrtKernelContext* context,
      ABI_IN size_t index, ABI_OUT const OrtValue** out) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* KernelContext_GetOutput)(ABI_INOUT OrtKernelContext* context, ABI_IN size_t index,
      ABI_IN const int64_t* dim_values, size_t dim_count, ABI_OUTPTR OrtValue** out) ABI_SINCE(1);
  void (ORT_API_CALL* ReleaseEnv)(ABI_FREES_OPT OrtEnv* input) ABI_SINCE(1);
  void (ORT_API_CALL* ReleaseStatus)(ABI_FREES_OPT OrtStatus* input) ABI_SINCE(1);
  void (ORT_API_CALL* ReleaseMemoryInfo)(ABI_FREES_OPT OrtMemoryInfo* input) ABI_SINCE(1);
  void (ORT_API_CALL* ReleaseSession)(ABI_FREES_OPT OrtSession* input) ABI_SINCE(1);
  void (ORT_API_CALL* ReleaseValue)(ABI_FREES_OPT OrtValue* input) ABI_SINCE(1);
  void (ORT_API_CALL* ReleaseRunOptions)(ABI_FREES_OPT OrtRunOptions* input) ABI_SINCE(1);
  void (ORT_API_CALL* ReleaseTypeInfo)(ABI_FREES_OPT OrtTypeInfo* input) ABI_SINCE(1);
  void (ORT_API_CALL* ReleaseTensorTypeAndShapeInfo)(ABI_FREES_OPT OrtTensorTypeAndShapeInfo* input) ABI_SINCE(1);
  void (ORT_API_CALL* ReleaseSessionOptions)(ABI_FREES_OPT OrtSessionOptions* input) ABI_SINCE(1);
  void (ORT_API_CALL* ReleaseCustomOpDomain)(ABI_FREES_OPT OrtCustomOpDomain* input) ABI_SINCE(1);
  OrtStatus* (ORT_API_CALL* GetDenotationFromTypeInfo)(ABI_IN const OrtTypeInfo* type_info,
      ABI_OUT const char** const denotation, ABI_OUT size_t* len) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* CastTypeInfoToMapTypeInfo)(ABI_IN const OrtTypeInfo* type_info,
      ABI_OUTPTR_MAYBENULL const OrtMapTypeInfo** out) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* CastTypeInfoToSequenceTypeInfo)(ABI_IN const OrtTypeInfo* type_info,
      ABI_OUTPTR_MAYBENULL const OrtSequenceTypeInfo** out) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* GetMapKeyType)(ABI_IN const OrtMapTypeInfo* map_type_info,
      ABI_OUT ONNXTensorElementDataType* out) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* GetMapValueType)(ABI_IN const OrtMapTypeInfo* map_type_info,
      ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* GetSequenceElementType)(ABI_IN const OrtSequenceTypeInfo* sequence_type_info,
      ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(2);
  void (ORT_API_CALL* ReleaseMapTypeInfo)(ABI_FREES_OPT OrtMapTypeInfo* input) ABI_SINCE(2);
  void (ORT_API_CALL* ReleaseSequenceTypeInfo)(ABI_FREES_OPT OrtSequenceTypeInfo* input) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* SessionEndProfiling)(ABI_IN OrtSession* session,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** out) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* SessionGetModelMetadata)(ABI_IN const OrtSession* session,
      ABI_OUTPTR OrtModelMetadata** out) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* ModelMetadataGetProducerName)(ABI_IN const OrtModelMetadata* model_metadata,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** value) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* ModelMetadataGetGraphName)(ABI_IN const OrtModelMetadata* model_metadata,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** value) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* ModelMetadataGetDomain)(ABI_IN const OrtModelMetadata* model_metadata,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** value) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* ModelMetadataGetDescription)(ABI_IN const OrtModelMetadata* model_metadata,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** value) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* ModelMetadataLookupCustomMetadataMap)(ABI_IN const OrtModelMetadata* model_metadata,
      ABI_INOUT OrtAllocator* allocator, ABI_IN const char* key,
      ABI_OUTPTR_MAYBENULL char** value) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* ModelMetadataGetVersion)(ABI_IN const OrtModelMetadata* model_metadata,
      ABI_OUT int64_t* value) ABI_SINCE(2);
  void (ORT_API_CALL* ReleaseModelMetadata)(ABI_FREES_OPT OrtModelMetadata* input) ABI_SINCE(2);
  OrtStatus* (ORT_API_CALL* CreateEnvWithGlobalThreadPools)(OrtLoggingLevel log_severity_level,
      ABI_IN const char* logid, ABI_IN const OrtThreadingOptions* tp_options,
      ABI_OUTPTR OrtEnv** out) ABI_SINCE(3);
  OrtStatus* (ORT_API_CALL* DisablePerSessionThreads)(ABI_INOUT OrtSessionOptions* options) ABI_SINCE(3);
  OrtStatus* (ORT_API_CALL* CreateThreadingOptions)(ABI_OUTPTR OrtThreadingOptions** out) ABI_SINCE(3);
  void (ORT_API_CALL* ReleaseThreadingOptions)(ABI_FREES_OPT OrtThreadingOptions* input) ABI_SINCE(3);
  OrtStatus* (ORT_API_CALL* ModelMetadataGetCustomMetadataMapKeys)(ABI_IN const OrtModelMetadata* model_metadata,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR_BUFFER_MAYBENULL(*num_keys) char*** keys,
      ABI_OUT int64_t* num_keys) ABI_SINCE(3);
  OrtStatus* (ORT_API_CALL* AddFreeDimensionOverrideByName)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN const char* dim_name, ABI_IN int64_t dim_value) ABI_SINCE(3);
  OrtStatus* (ORT_API_CALL* GetAvailableProviders)(ABI_OUTPTR char*** out_ptr,
      ABI_OUT int* provider_length) ABI_SINCE(4);
  OrtStatus* (ORT_API_CALL* ReleaseAvailableProviders)(ABI_IN char** ptr,
      ABI_IN int providers_length) ABI_SINCE(4);
  OrtStatus* (ORT_API_CALL* GetStringTensorElementLength)(ABI_IN const OrtValue* value, size_t index,
      ABI_OUT size_t* out) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* GetStringTensorElement)(ABI_IN const OrtValue* value, size_t s_len, size_t index,
      ABI_OUT_WRITES_BYTES_ALL(s_len) void* s) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* FillStringTensorElement)(ABI_INOUT OrtValue* value, ABI_IN const char* s,
      size_t index) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* AddSessionConfigEntry)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN const char* config_key, ABI_IN const char* config_value) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* CreateAllocator)(ABI_IN const OrtSession* session,
      ABI_IN const OrtMemoryInfo* mem_info, ABI_OUTPTR OrtAllocator** out) ABI_SINCE(5);
  void (ORT_API_CALL* ReleaseAllocator)(ABI_FREES_OPT OrtAllocator* input) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* RunWithBinding)(ABI_INOUT OrtSession* session,
      ABI_IN const OrtRunOptions* run_options, ABI_IN const OrtIoBinding* binding_ptr) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* CreateIoBinding)(ABI_INOUT OrtSession* session,
      ABI_OUTPTR OrtIoBinding** out) ABI_SINCE(5);
  void (ORT_API_CALL* ReleaseIoBinding)(ABI_FREES_OPT OrtIoBinding* input) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* BindInput)(ABI_INOUT OrtIoBinding* binding_ptr, ABI_IN const char* name,
      ABI_IN const OrtValue* val_ptr) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* BindOutput)(ABI_INOUT OrtIoBinding* binding_ptr, ABI_IN const char* name,
      ABI_IN const OrtValue* val_ptr) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* BindOutputToDevice)(ABI_INOUT OrtIoBinding* binding_ptr, ABI_IN const char* name,
      ABI_IN const OrtMemoryInfo* mem_info_ptr) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* GetBoundOutputNames)(ABI_IN const OrtIoBinding* binding_ptr,
      ABI_IN OrtAllocator* allocator, ABI_OUT char** buffer, ABI_OUT_WRITES_ALL(count) size_t** lengths,
      ABI_OUT size_t* count) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* GetBoundOutputValues)(ABI_IN const OrtIoBinding* binding_ptr,
      ABI_IN OrtAllocator* allocator, ABI_OUT_WRITES_ALL(output_count) OrtValue*** output,
      ABI_OUT size_t* output_count) ABI_SINCE(5);
  void (ORT_API_CALL* ClearBoundInputs)(ABI_INOUT OrtIoBinding* binding_ptr) ABI_SINCE(5);
  void (ORT_API_CALL* ClearBoundOutputs)(ABI_INOUT OrtIoBinding* binding_ptr) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* TensorAt)(ABI_INOUT OrtValue* value, const int64_t* location_values,
      size_t location_values_count, ABI_OUTPTR void** out) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* CreateAndRegisterAllocator)(ABI_INOUT OrtEnv* env,
      ABI_IN const OrtMemoryInfo* mem_info, ABI_IN const OrtArenaCfg* arena_cfg) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* SetLanguageProjection)(ABI_IN const OrtEnv* ort_env,
      ABI_IN OrtLanguageProjection projection) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* SessionGetProfilingStartTimeNs)(ABI_IN const OrtSession* session,
      ABI_OUTPTR uint64_t* out) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* SetGlobalIntraOpNumThreads)(ABI_INOUT OrtThreadingOptions* tp_options,
      int intra_op_num_threads) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* SetGlobalInterOpNumThreads)(ABI_INOUT OrtThreadingOptions* tp_options,
      int inter_op_num_threads) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* SetGlobalSpinControl)(ABI_INOUT OrtThreadingOptions* tp_options,
      int allow_spinning) ABI_SINCE(5);
  OrtStatus* (ORT_API_CALL* AddInitializer)(ABI_INOUT OrtSessionOptions* options, ABI_IN const char* name,
      ABI_IN const OrtValue* val) ABI_SINCE(6);
  OrtStatus* (ORT_API_CALL* CreateEnvWithCustomLoggerAndGlobalThreadPools)(OrtLoggingFunction logging_function,
      ABI_IN_OPT void* logger_param, OrtLoggingLevel log_severity_level, ABI_IN const char* logid,
      ABI_IN const OrtThreadingOptions* tp_options, ABI_OUTPTR OrtEnv** out) ABI_SINCE(6);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_CUDA)(ABI_IN OrtSessionOptions* options,
      ABI_IN const OrtCUDAProviderOptions* cuda_options) ABI_SINCE(6);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_ROCM)(ABI_IN OrtSessionOptions* options,
      ABI_IN const OrtROCMProviderOptions* rocm_options) ABI_SINCE(6);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_OpenVINO)(ABI_IN OrtSessionOptions* options,
      ABI_IN const OrtOpenVINOProviderOptions* provider_options) ABI_SINCE(6);
  OrtStatus* (ORT_API_CALL* SetGlobalDenormalAsZero)(ABI_INOUT OrtThreadingOptions* tp_options) ABI_SINCE(6);
  OrtStatus* (ORT_API_CALL* CreateArenaCfg)(ABI_IN size_t max_mem, int arena_extend_strategy,
      int initial_chunk_size_bytes, int max_dead_bytes_per_chunk, ABI_OUTPTR OrtArenaCfg** out) ABI_SINCE(6);
  void (ORT_API_CALL* ReleaseArenaCfg)(ABI_FREES_OPT OrtArenaCfg* input) ABI_SINCE(6);
  OrtStatus* (ORT_API_CALL* ModelMetadataGetGraphDescription)(ABI_IN const OrtModelMetadata* model_metadata,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** value) ABI_SINCE(7);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_TensorRT)(ABI_IN OrtSessionOptions* options,
      ABI_IN const OrtTensorRTProviderOptions* tensorrt_options) ABI_SINCE(7);
  OrtStatus* (ORT_API_CALL* SetCurrentGpuDeviceId)(ABI_IN int device_id) ABI_SINCE(7);
  OrtStatus* (ORT_API_CALL* GetCurrentGpuDeviceId)(ABI_IN int* device_id) ABI_SINCE(7);
  OrtStatus* (ORT_API_CALL* KernelInfoGetAttributeArray_float)(ABI_IN const OrtKernelInfo* info,
      ABI_IN const char* name, ABI_OUT float* out, ABI_INOUT size_t* size) ABI_SINCE(8);
  OrtStatus* (ORT_API_CALL* KernelInfoGetAttributeArray_int64)(ABI_IN const OrtKernelInfo* info,
      ABI_IN const char* name, ABI_OUT int64_t* out, ABI_INOUT size_t* size) ABI_SINCE(8);
  OrtStatus* (ORT_API_CALL* CreateArenaCfgV2)(ABI_IN_READS(num_keys) const char* const* arena_config_keys,
      ABI_IN_READS(num_keys) const size_t* arena_config_values, ABI_IN size_t num_keys,
      ABI_OUTPTR OrtArenaCfg** out) ABI_SINCE(8);
  OrtStatus* (ORT_API_CALL* AddRunConfigEntry)(ABI_INOUT OrtRunOptions* options,
      ABI_IN const char* config_key, ABI_IN const char* config_value) ABI_SINCE(8);
  OrtStatus* (ORT_API_CALL* CreatePrepackedWeightsContainer)(ABI_OUTPTR OrtPrepackedWeightsContainer** out) ABI_SINCE(8);
  void (ORT_API_CALL* ReleasePrepackedWeightsContainer)(ABI_FREES_OPT OrtPrepackedWeightsContainer* input) ABI_SINCE(8);
  OrtStatus* (ORT_API_CALL* CreateSessionWithPrepackedWeightsContainer)(ABI_IN const OrtEnv* env,
      ABI_IN const ORTCHAR_T* model_path, ABI_IN const OrtSessionOptions* options,
      ABI_INOUT OrtPrepackedWeightsContainer* prepacked_weights_container,
      ABI_OUTPTR OrtSession** out) ABI_SINCE(8);
  OrtStatus* (ORT_API_CALL* CreateSessionFromArrayWithPrepackedWeightsContainer)(ABI_IN const OrtEnv* env,
      ABI_IN const void* model_data, size_t model_data_length, ABI_IN const OrtSessionOptions* options,
      ABI_INOUT OrtPrepackedWeightsContainer* prepacked_weights_container,
      ABI_OUTPTR OrtSession** out) ABI_SINCE(8);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_TensorRT_V2)(ABI_IN OrtSessionOptions* options,
      ABI_IN const OrtTensorRTProviderOptionsV2* tensorrt_options) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* CreateTensorRTProviderOptions)(ABI_OUTPTR OrtTensorRTProviderOptionsV2** out) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* UpdateTensorRTProviderOptions)(ABI_INOUT OrtTensorRTProviderOptionsV2* tensorrt_options,
      ABI_IN_READS(num_keys) const char* const* provider_options_keys,
      ABI_IN_READS(num_keys) const char* const* provider_options_values,
      ABI_IN size_t num_keys) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* GetTensorRTProviderOptionsAsString)(ABI_IN const OrtTensorRTProviderOptionsV2* tensorrt_options,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** ptr) ABI_SINCE(9);
  void (ORT_API_CALL* ReleaseTensorRTProviderOptions)(ABI_FREES_OPT OrtTensorRTProviderOptionsV2* input) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* EnableOrtCustomOps)(ABI_INOUT OrtSessionOptions* options) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* RegisterAllocator)(ABI_INOUT OrtEnv* env,
      ABI_IN OrtAllocator* allocator) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* UnregisterAllocator)(ABI_INOUT OrtEnv* env,
      ABI_IN const OrtMemoryInfo* mem_info) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* IsSparseTensor)(ABI_IN const OrtValue* value, ABI_OUT int* out) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* CreateSparseTensorAsOrtValue)(ABI_INOUT OrtAllocator* allocator,
      ABI_IN const int64_t* dense_shape, size_t dense_shape_len, ONNXTensorElementDataType type,
      ABI_OUTPTR OrtValue** out) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* FillSparseTensorCoo)(ABI_INOUT OrtValue* ort_value,
      ABI_IN const OrtMemoryInfo* data_mem_info, ABI_IN const int64_t* values_shape, size_t values_shape_len,
      ABI_IN const void* values, ABI_IN const int64_t* indices_data, size_t indices_num) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* FillSparseTensorCsr)(ABI_INOUT OrtValue* ort_value,
      ABI_IN const OrtMemoryInfo* data_mem_info, ABI_IN const int64_t* values_shape, size_t values_shape_len,
      ABI_IN const void* values, ABI_IN const int64_t* inner_indices_data, size_t inner_indices_num,
      ABI_IN const int64_t* outer_indices_data, size_t outer_indices_num) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* FillSparseTensorBlockSparse)(ABI_INOUT OrtValue* ort_value,
      ABI_IN const OrtMemoryInfo* data_mem_info, ABI_IN const int64_t* values_shape, size_t values_shape_len,
      ABI_IN const void* values, ABI_IN const int64_t* indices_shape_data, size_t indices_shape_len,
      ABI_IN const int32_t* indices_data) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* CreateSparseTensorWithValuesAsOrtValue)(ABI_IN const OrtMemoryInfo* info,
      ABI_INOUT void* p_data, ABI_IN const int64_t* dense_shape, size_t dense_shape_len,
      ABI_IN const int64_t* values_shape, size_t values_shape_len, ONNXTensorElementDataType type,
      ABI_OUTPTR OrtValue** out) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* UseCooIndices)(ABI_INOUT OrtValue* ort_value, ABI_INOUT int64_t* indices_data,
      size_t indices_num) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* UseCsrIndices)(ABI_INOUT OrtValue* ort_value, ABI_INOUT int64_t* inner_data,
      size_t inner_num, ABI_INOUT int64_t* outer_data, size_t outer_num) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* UseBlockSparseIndices)(ABI_INOUT OrtValue* ort_value,
      const int64_t* indices_shape, size_t indices_shape_len, ABI_INOUT int32_t* indices_data) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* GetSparseTensorFormat)(ABI_IN const OrtValue* ort_value,
      ABI_OUT OrtSparseFormat* out) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* GetSparseTensorValuesTypeAndShape)(ABI_IN const OrtValue* ort_value,
      ABI_OUTPTR OrtTensorTypeAndShapeInfo** out) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* GetSparseTensorValues)(ABI_IN const OrtValue* ort_value,
      ABI_OUTPTR const void** out) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* GetSparseTensorIndicesTypeShape)(ABI_IN const OrtValue* ort_value,
      enum OrtSparseIndicesFormat indices_format, ABI_OUTPTR OrtTensorTypeAndShapeInfo** out) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* GetSparseTensorIndices)(ABI_IN const OrtValue* ort_value,
      enum OrtSparseIndicesFormat indices_format, ABI_OUT size_t* num_indices,
      ABI_OUTPTR const void** indices) ABI_SINCE(9);
  OrtStatus* (ORT_API_CALL* HasValue)(ABI_IN const OrtValue* value, ABI_OUT int* out) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* KernelContext_GetGPUComputeStream)(ABI_IN const OrtKernelContext* context,
      ABI_OUTPTR void** out) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* GetTensorMemoryInfo)(ABI_IN const OrtValue* value,
      ABI_OUT const OrtMemoryInfo** mem_info) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* GetExecutionProviderApi)(ABI_IN const char* provider_name,
      ABI_IN uint32_t version, ABI_OUTPTR const void** provider_api) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* SessionOptionsSetCustomCreateThreadFn)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN OrtCustomCreateThreadFn ort_custom_create_thread_fn) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* SessionOptionsSetCustomThreadCreationOptions)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN void* ort_custom_thread_creation_options) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* SessionOptionsSetCustomJoinThreadFn)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN OrtCustomJoinThreadFn ort_custom_join_thread_fn) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* SetGlobalCustomCreateThreadFn)(ABI_INOUT OrtThreadingOptions* tp_options,
      ABI_IN OrtCustomCreateThreadFn ort_custom_create_thread_fn) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* SetGlobalCustomThreadCreationOptions)(ABI_INOUT OrtThreadingOptions* tp_options,
      ABI_IN void* ort_custom_thread_creation_options) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* SetGlobalCustomJoinThreadFn)(ABI_INOUT OrtThreadingOptions* tp_options,
      ABI_IN OrtCustomJoinThreadFn ort_custom_join_thread_fn) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* SynchronizeBoundInputs)(ABI_INOUT OrtIoBinding* binding_ptr) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* SynchronizeBoundOutputs)(ABI_INOUT OrtIoBinding* binding_ptr) ABI_SINCE(10);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_CUDA_V2)(ABI_IN OrtSessionOptions* options,
      ABI_IN const OrtCUDAProviderOptionsV2* cuda_options) ABI_SINCE(11);
  OrtStatus* (ORT_API_CALL* CreateCUDAProviderOptions)(ABI_OUTPTR OrtCUDAProviderOptionsV2** out) ABI_SINCE(11);
  OrtStatus* (ORT_API_CALL* UpdateCUDAProviderOptions)(ABI_INOUT OrtCUDAProviderOptionsV2* cuda_options,
      ABI_IN_READS(num_keys) const char* const* provider_options_keys,
      ABI_IN_READS(num_keys) const char* const* provider_options_values,
      ABI_IN size_t num_keys) ABI_SINCE(11);
  OrtStatus* (ORT_API_CALL* GetCUDAProviderOptionsAsString)(ABI_IN const OrtCUDAProviderOptionsV2* cuda_options,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** ptr) ABI_SINCE(11);
  void (ORT_API_CALL* ReleaseCUDAProviderOptions)(ABI_FREES_OPT OrtCUDAProviderOptionsV2* input) ABI_SINCE(11);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_MIGraphX)(ABI_IN OrtSessionOptions* options,
      ABI_IN const OrtMIGraphXProviderOptions* migraphx_options) ABI_SINCE(11);
  OrtStatus* (ORT_API_CALL* AddExternalInitializers)(ABI_IN OrtSessionOptions* options,
      ABI_IN_READS(num_initializers) const char* const* initializer_names,
      ABI_IN_READS(num_initializers) const OrtValue* const* initializers,
      size_t num_initializers) ABI_SINCE(12);
  OrtStatus* (ORT_API_CALL* CreateOpAttr)(ABI_IN const char* name, ABI_IN const void* data, ABI_IN int len,
      ABI_IN OrtOpAttrType type, ABI_OUTPTR OrtOpAttr** op_attr) ABI_SINCE(12);
  void (ORT_API_CALL* ReleaseOpAttr)(ABI_FREES_OPT OrtOpAttr* input) ABI_SINCE(12);
  OrtStatus* (ORT_API_CALL* CreateOp)(ABI_IN const OrtKernelInfo* info, ABI_IN const char* op_name,
      ABI_IN const char* domain, int version,
      ABI_IN_READS(type_constraint_count) const char** type_constraint_names,
      ABI_IN_READS(type_constraint_count) const ONNXTensorElementDataType* type_constraint_values,
      int type_constraint_count, ABI_IN_READS(attr_count) const OrtOpAttr* const* attr_values, int attr_count,
      int input_count, int output_count, ABI_OUTPTR OrtOp** ort_op) ABI_SINCE(12);
  OrtStatus* (ORT_API_CALL* InvokeOp)(ABI_IN const OrtKernelContext* context, ABI_IN const OrtOp* ort_op,
      ABI_IN const OrtValue* const* input_values, ABI_IN int input_count,
      ABI_INOUT OrtValue* const* output_values, ABI_IN int output_count) ABI_SINCE(12);
  void (ORT_API_CALL* ReleaseOp)(ABI_FREES_OPT OrtOp* input) ABI_SINCE(12);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider)(ABI_IN OrtSessionOptions* options,
      ABI_IN const char* provider_name, ABI_IN_READS(num_keys) const char* const* provider_options_keys,
      ABI_IN_READS(num_keys) const char* const* provider_options_values,
      ABI_IN size_t num_keys) ABI_SINCE(12);
  OrtStatus* (ORT_API_CALL* CopyKernelInfo)(ABI_IN const OrtKernelInfo* info,
      ABI_OUTPTR OrtKernelInfo** info_copy) ABI_SINCE(12);
  void (ORT_API_CALL* ReleaseKernelInfo)(ABI_FREES_OPT OrtKernelInfo* input) ABI_SINCE(12);
  const OrtTrainingApi* (ORT_API_CALL* GetTrainingApi)(uint32_t version) ABI_SINCE(13);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_CANN)(ABI_IN OrtSessionOptions* options,
      ABI_IN const OrtCANNProviderOptions* cann_options) ABI_SINCE(13);
  OrtStatus* (ORT_API_CALL* CreateCANNProviderOptions)(ABI_OUTPTR OrtCANNProviderOptions** out) ABI_SINCE(13);
  OrtStatus* (ORT_API_CALL* UpdateCANNProviderOptions)(ABI_INOUT OrtCANNProviderOptions* cann_options,
      ABI_IN_READS(num_keys) const char* const* provider_options_keys,
      ABI_IN_READS(num_keys) const char* const* provider_options_values,
      ABI_IN size_t num_keys) ABI_SINCE(13);
  OrtStatus* (ORT_API_CALL* GetCANNProviderOptionsAsString)(ABI_IN const OrtCANNProviderOptions* cann_options,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** ptr) ABI_SINCE(13);
  void (ORT_API_CALL* ReleaseCANNProviderOptions)(ABI_FREES_OPT OrtCANNProviderOptions* input) ABI_SINCE(13);
  void (ORT_API_CALL* MemoryInfoGetDeviceType)(ABI_IN const OrtMemoryInfo* ptr,
      ABI_OUT OrtMemoryInfoDeviceType* out) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* UpdateEnvWithCustomLogLevel)(ABI_IN OrtEnv* ort_env,
      OrtLoggingLevel log_severity_level) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* SetGlobalIntraOpThreadAffinity)(ABI_INOUT OrtThreadingOptions* tp_options,
      const char* affinity_string) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* RegisterCustomOpsLibrary_V2)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN const ORTCHAR_T* library_name) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* RegisterCustomOpsUsingFunction)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN const char* registration_func_name) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetInputCount)(ABI_IN const OrtKernelInfo* info,
      ABI_OUT size_t* out) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetOutputCount)(ABI_IN const OrtKernelInfo* info,
      ABI_OUT size_t* out) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetInputName)(ABI_IN const OrtKernelInfo* info, size_t index,
      ABI_OUT_OPT char* out, ABI_INOUT size_t* size) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetOutputName)(ABI_IN const OrtKernelInfo* info, size_t index,
      ABI_OUT_OPT char* out, ABI_INOUT size_t* size) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetInputTypeInfo)(ABI_IN const OrtKernelInfo* info, size_t index,
      ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetOutputTypeInfo)(ABI_IN const OrtKernelInfo* info, size_t index,
      ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* KernelInfoGetAttribute_tensor)(ABI_IN const OrtKernelInfo* info,
      ABI_IN const char* name, ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR OrtValue** out) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* HasSessionConfigEntry)(ABI_IN const OrtSessionOptions* options,
      ABI_IN const char* config_key, ABI_OUT int* out) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* GetSessionConfigEntry)(ABI_IN const OrtSessionOptions* options,
      ABI_IN const char* config_key, ABI_OUT char* config_value, ABI_INOUT size_t* size) ABI_SINCE(14);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_Dnnl)(ABI_IN OrtSessionOptions* options,
      ABI_IN const OrtDnnlProviderOptions* dnnl_options) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* CreateDnnlProviderOptions)(ABI_OUTPTR OrtDnnlProviderOptions** out) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* UpdateDnnlProviderOptions)(ABI_INOUT OrtDnnlProviderOptions* dnnl_options,
      ABI_IN_READS(num_keys) const char* const* provider_options_keys,
      ABI_IN_READS(num_keys) const char* const* provider_options_values,
      ABI_IN size_t num_keys) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* GetDnnlProviderOptionsAsString)(ABI_IN const OrtDnnlProviderOptions* dnnl_options,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** ptr) ABI_SINCE(15);
  void (ORT_API_CALL* ReleaseDnnlProviderOptions)(ABI_FREES_OPT OrtDnnlProviderOptions* input) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetNodeName)(ABI_IN const OrtKernelInfo* info, ABI_OUT_OPT char* out,
      ABI_INOUT size_t* size) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetLogger)(ABI_IN const OrtKernelInfo* info,
      ABI_OUTPTR const OrtLogger** logger) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* KernelContext_GetLogger)(ABI_IN const OrtKernelContext* context,
      ABI_OUTPTR const OrtLogger** logger) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* Logger_LogMessage)(ABI_IN const OrtLogger* logger,
      OrtLoggingLevel log_severity_level, ABI_IN const char* message, ABI_IN const ORTCHAR_T* file_path,
      int line_number, ABI_IN const char* func_name) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* Logger_GetLoggingSeverityLevel)(ABI_IN const OrtLogger* logger,
      ABI_OUT OrtLoggingLevel* out) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* KernelInfoGetConstantInput_tensor)(ABI_IN const OrtKernelInfo* info, size_t index,
      ABI_OUT int* is_constant, ABI_OUTPTR const OrtValue** out) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* CastTypeInfoToOptionalTypeInfo)(ABI_IN const OrtTypeInfo* type_info,
      ABI_OUTPTR_MAYBENULL const OrtOptionalTypeInfo** out) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* GetOptionalContainedTypeInfo)(ABI_IN const OrtOptionalTypeInfo* optional_type_info,
      ABI_OUTPTR OrtTypeInfo** out) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* GetResizedStringTensorElementBuffer)(ABI_INOUT OrtValue* value,
      ABI_IN size_t index, ABI_IN size_t length_in_bytes, ABI_INOUT char** buffer) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* KernelContext_GetAllocator)(ABI_IN const OrtKernelContext* context,
      ABI_IN const OrtMemoryInfo* mem_info, ABI_OUTPTR OrtAllocator** out) ABI_SINCE(15);
  const char* (ORT_API_CALL* GetBuildInfoString)(void) ABI_SINCE(15);
  OrtStatus* (ORT_API_CALL* CreateROCMProviderOptions)(ABI_OUTPTR OrtROCMProviderOptions** out) ABI_SINCE(16);
  OrtStatus* (ORT_API_CALL* UpdateROCMProviderOptions)(ABI_INOUT OrtROCMProviderOptions* rocm_options,
      ABI_IN_READS(num_keys) const char* const* provider_options_keys,
      ABI_IN_READS(num_keys) const char* const* provider_options_values,
      ABI_IN size_t num_keys) ABI_SINCE(16);
  OrtStatus* (ORT_API_CALL* GetROCMProviderOptionsAsString)(ABI_IN const OrtROCMProviderOptions* rocm_options,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR char** ptr) ABI_SINCE(16);
  void (ORT_API_CALL* ReleaseROCMProviderOptions)(ABI_FREES_OPT OrtROCMProviderOptions* input) ABI_SINCE(16);
  OrtStatus* (ORT_API_CALL* CreateAndRegisterAllocatorV2)(ABI_INOUT OrtEnv* env,
      ABI_IN const char* provider_type, ABI_IN const OrtMemoryInfo* mem_info,
      ABI_IN const OrtArenaCfg* arena_cfg, ABI_IN_READS(num_keys) const char* const* provider_options_keys,
      ABI_IN_READS(num_keys) const char* const* provider_options_values,
      ABI_IN size_t num_keys) ABI_SINCE(16);
  OrtStatus* (ORT_API_CALL* RunAsync)(ABI_INOUT OrtSession* session,
      ABI_IN_OPT const OrtRunOptions* run_options, ABI_IN_READS(input_len) const char* const* input_names,
      ABI_IN_READS(input_len) const OrtValue* const* input, size_t input_len,
      ABI_IN_READS(output_names_len) const char* const* output_names, size_t output_names_len,
      ABI_INOUT_ALL(output_names_len) OrtValue** output, ABI_IN RunAsyncCallbackFn run_async_callback,
      ABI_IN_OPT void* user_data) ABI_SINCE(16);
  OrtStatus* (ORT_API_CALL* UpdateTensorRTProviderOptionsWithValue)(ABI_INOUT OrtTensorRTProviderOptionsV2* tensorrt_options,
      ABI_IN const char* key, ABI_IN void* value) ABI_SINCE(16);
  OrtStatus* (ORT_API_CALL* GetTensorRTProviderOptionsByName)(ABI_IN const OrtTensorRTProviderOptionsV2* tensorrt_options,
      ABI_IN const char* key, ABI_OUTPTR void** ptr) ABI_SINCE(16);
  OrtStatus* (ORT_API_CALL* UpdateCUDAProviderOptionsWithValue)(ABI_INOUT OrtCUDAProviderOptionsV2* cuda_options,
      ABI_IN const char* key, ABI_IN void* value) ABI_SINCE(16);
  OrtStatus* (ORT_API_CALL* GetCUDAProviderOptionsByName)(ABI_IN const OrtCUDAProviderOptionsV2* cuda_options,
      ABI_IN const char* key, ABI_OUTPTR void** ptr) ABI_SINCE(16);
  OrtStatus* (ORT_API_CALL* KernelContext_GetResource)(ABI_IN const OrtKernelContext* context,
      ABI_IN int resource_version, ABI_IN int resource_id, ABI_OUTPTR void** resource) ABI_SINCE(16);
  OrtStatus* (ORT_API_CALL* SetUserLoggingFunction)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN OrtLoggingFunction user_logging_function, ABI_IN_OPT void* user_logging_param) ABI_SINCE(17);
  OrtStatus* (ORT_API_CALL* ShapeInferContext_GetInputCount)(ABI_IN const OrtShapeInferContext* context,
      ABI_OUT size_t* out) ABI_SINCE(17);
  OrtStatus* (ORT_API_CALL* ShapeInferContext_GetInputTypeShape)(ABI_IN const OrtShapeInferContext* context,
      ABI_IN size_t index, ABI_OUTPTR OrtTensorTypeAndShapeInfo** info) ABI_SINCE(17);
  OrtStatus* (ORT_API_CALL* ShapeInferContext_GetAttribute)(ABI_IN const OrtShapeInferContext* context,
      ABI_IN const char* attr_name, ABI_OUTPTR const OrtOpAttr** attr) ABI_SINCE(17);
  OrtStatus* (ORT_API_CALL* ShapeInferContext_SetOutputTypeShape)(ABI_IN const OrtShapeInferContext* context,
      ABI_IN size_t index, ABI_IN const OrtTensorTypeAndShapeInfo* info) ABI_SINCE(17);
  OrtStatus* (ORT_API_CALL* SetSymbolicDimensions)(ABI_IN OrtTensorTypeAndShapeInfo* info,
      ABI_IN const char** dim_params, ABI_IN size_t dim_params_length) ABI_SINCE(17);
  OrtStatus* (ORT_API_CALL* ReadOpAttr)(ABI_IN const OrtOpAttr* op_attr, ABI_IN OrtOpAttrType type,
      ABI_INOUT void* data, ABI_IN size_t len, ABI_OUT size_t* out) ABI_SINCE(17);
  OrtStatus* (ORT_API_CALL* SetDeterministicCompute)(ABI_INOUT OrtSessionOptions* options,
      bool value) ABI_SINCE(17);
  OrtStatus* (ORT_API_CALL* KernelContext_ParallelFor)(ABI_IN const OrtKernelContext* context,
      ABI_IN void (*fn)(void*, size_t), ABI_IN size_t total, ABI_IN size_t num_batch,
      ABI_IN void* usr_data) ABI_SINCE(17);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_OpenVINO_V2)(ABI_IN OrtSessionOptions* options,
      ABI_IN_READS(num_keys) const char* const* provider_options_keys,
      ABI_IN_READS(num_keys) const char* const* provider_options_values,
      ABI_IN size_t num_keys) ABI_SINCE(17);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_VitisAI)(ABI_IN OrtSessionOptions* options,
      ABI_IN_READS(num_keys) const char* const* provider_options_keys,
      ABI_IN_READS(num_keys) const char* const* provider_options_values,
      ABI_IN size_t num_keys) ABI_SINCE(18);
  OrtStatus* (ORT_API_CALL* KernelContext_GetScratchBuffer)(ABI_IN const OrtKernelContext* context,
      ABI_IN const OrtMemoryInfo* mem_info, ABI_IN size_t count_or_bytes,
      ABI_OUTPTR void** out) ABI_SINCE(18);
  OrtStatus* (ORT_API_CALL* KernelInfoGetAllocator)(ABI_IN const OrtKernelInfo* info,
      ABI_IN OrtMemType mem_type, ABI_OUTPTR OrtAllocator** out) ABI_SINCE(18);
  OrtStatus* (ORT_API_CALL* AddExternalInitializersFromFilesInMemory)(ABI_IN OrtSessionOptions* options,
      ABI_IN_READS(num_external_initializer_files) const ORTCHAR_T* const* external_initializer_file_names,
      ABI_IN_READS(num_external_initializer_files) char* const* external_initializer_file_buffer_array,
      ABI_IN_READS(num_external_initializer_files) const size_t* external_initializer_file_lengths,
      size_t num_external_initializer_files) ABI_SINCE(18);
  OrtStatus* (ORT_API_CALL* CreateLoraAdapter)(const ORTCHAR_T* adapter_file_path,
      ABI_IN OrtAllocator* allocator, ABI_OUTPTR OrtLoraAdapter** out) ABI_SINCE(20);
  OrtStatus* (ORT_API_CALL* CreateLoraAdapterFromArray)(ABI_IN const void* bytes, size_t num_bytes,
      ABI_IN OrtAllocator* allocator, ABI_OUTPTR OrtLoraAdapter** out) ABI_SINCE(20);
  void (ORT_API_CALL* ReleaseLoraAdapter)(ABI_FREES_OPT OrtLoraAdapter* input) ABI_SINCE(20);
  OrtStatus* (ORT_API_CALL* RunOptionsAddActiveLoraAdapter)(ABI_INOUT OrtRunOptions* options,
      ABI_IN const OrtLoraAdapter* adapter) ABI_SINCE(20);
  OrtStatus* (ORT_API_CALL* SetEpDynamicOptions)(ABI_INOUT OrtSession* sess,
      ABI_IN_READS(kv_len) const char* const* keys, ABI_IN_READS(kv_len) const char* const* values,
      ABI_IN size_t kv_len) ABI_SINCE(20);
  void (ORT_API_CALL* ReleaseValueInfo)(ABI_FREES_OPT OrtValueInfo* input) ABI_SINCE(22);
  void (ORT_API_CALL* ReleaseNode)(ABI_FREES_OPT OrtNode* input) ABI_SINCE(22);
  void (ORT_API_CALL* ReleaseGraph)(ABI_FREES_OPT OrtGraph* input) ABI_SINCE(22);
  void (ORT_API_CALL* ReleaseModel)(ABI_FREES_OPT OrtModel* input) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* GetValueInfoName)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUT const char** name) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* GetValueInfoTypeInfo)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUTPTR const OrtTypeInfo** type_info) ABI_SINCE(22);
  const OrtModelEditorApi* (ORT_API_CALL* GetModelEditorApi)(void) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateTensorWithDataAndDeleterAsOrtValue)(ABI_IN OrtAllocator* deleter,
      ABI_IN void* p_data, size_t p_data_len, ABI_IN const int64_t* shape, size_t shape_len,
      ONNXTensorElementDataType type, ABI_OUTPTR OrtValue** out) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* SessionOptionsSetLoadCancellationFlag)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN bool cancel) ABI_SINCE(22);
  const OrtCompileApi* (ORT_API_CALL* GetCompileApi)(void) ABI_SINCE(22);
  void (ORT_API_CALL* CreateKeyValuePairs)(ABI_OUTPTR OrtKeyValuePairs** out) ABI_SINCE(22);
  void (ORT_API_CALL* AddKeyValuePair)(ABI_IN OrtKeyValuePairs* kvps, ABI_IN const char* key,
      ABI_IN const char* value) ABI_SINCE(22);
  const char* (ORT_API_CALL* GetKeyValue)(ABI_IN const OrtKeyValuePairs* kvps,
      ABI_IN const char* key) ABI_SINCE(22);
  void (ORT_API_CALL* GetKeyValuePairs)(ABI_IN const OrtKeyValuePairs* kvps,
      ABI_OUTPTR const char* const** keys, ABI_OUTPTR const char* const** values,
      ABI_OUT size_t* num_entries) ABI_SINCE(22);
  void (ORT_API_CALL* RemoveKeyValuePair)(ABI_IN OrtKeyValuePairs* kvps,
      ABI_IN const char* key) ABI_SINCE(22);
  void (ORT_API_CALL* ReleaseKeyValuePairs)(ABI_FREES_OPT OrtKeyValuePairs* input) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* RegisterExecutionProviderLibrary)(ABI_IN OrtEnv* env,
      ABI_IN const char* registration_name, ABI_IN const ORTCHAR_T* path) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* UnregisterExecutionProviderLibrary)(ABI_IN OrtEnv* env,
      ABI_IN const char* registration_name) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* GetEpDevices)(ABI_IN const OrtEnv* env,
      ABI_OUTPTR const OrtEpDevice* const** ep_devices, ABI_OUT size_t* num_ep_devices) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* SessionOptionsAppendExecutionProvider_V2)(ABI_IN OrtSessionOptions* session_options,
      ABI_IN OrtEnv* env, ABI_IN_READS(num_ep_devices) const OrtEpDevice* const* ep_devices,
      ABI_IN size_t num_ep_devices, ABI_IN_READS(num_op_options) const char* const* ep_option_keys,
      ABI_IN_READS(num_op_options) const char* const* ep_option_vals, size_t num_ep_options) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* SessionOptionsSetEpSelectionPolicy)(ABI_IN OrtSessionOptions* session_options,
      ABI_IN OrtExecutionProviderDevicePolicy policy) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* SessionOptionsSetEpSelectionPolicyDelegate)(ABI_IN OrtSessionOptions* session_options,
      ABI_IN EpSelectionDelegate delegate, ABI_IN_OPT void* delegate_state) ABI_SINCE(22);
  OrtHardwareDeviceType (ORT_API_CALL* HardwareDevice_Type)(ABI_IN const OrtHardwareDevice* device) ABI_SINCE(22);
  uint32_t (ORT_API_CALL* HardwareDevice_VendorId)(ABI_IN const OrtHardwareDevice* device) ABI_SINCE(22);
  const char* (ORT_API_CALL* HardwareDevice_Vendor)(ABI_IN const OrtHardwareDevice* device) ABI_SINCE(22);
  uint32_t (ORT_API_CALL* HardwareDevice_DeviceId)(ABI_IN const OrtHardwareDevice* device) ABI_SINCE(22);
  const OrtKeyValuePairs* (ORT_API_CALL* HardwareDevice_Metadata)(ABI_IN const OrtHardwareDevice* device) ABI_SINCE(22);
  const char* (ORT_API_CALL* EpDevice_EpName)(ABI_IN const OrtEpDevice* ep_device) ABI_SINCE(22);
  const char* (ORT_API_CALL* EpDevice_EpVendor)(ABI_IN const OrtEpDevice* ep_device) ABI_SINCE(22);
  const OrtKeyValuePairs* (ORT_API_CALL* EpDevice_EpMetadata)(ABI_IN const OrtEpDevice* ep_device) ABI_SINCE(22);
  const OrtKeyValuePairs* (ORT_API_CALL* EpDevice_EpOptions)(ABI_IN const OrtEpDevice* ep_device) ABI_SINCE(22);
  const OrtHardwareDevice* (ORT_API_CALL* EpDevice_Device)(ABI_IN const OrtEpDevice* ep_device) ABI_SINCE(22);
  const OrtEpApi* (ORT_API_CALL* GetEpApi)(void) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* GetTensorSizeInBytes)(ABI_IN const OrtValue* ort_value,
      ABI_OUT size_t* size) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* AllocatorGetStats)(ABI_IN const OrtAllocator* ort_allocator,
      ABI_OUTPTR OrtKeyValuePairs** out) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* CreateMemoryInfo_V2)(ABI_IN const char* name,
      ABI_IN OrtMemoryInfoDeviceType device_type, ABI_IN uint32_t vendor_id, ABI_IN int32_t device_id,
      ABI_IN OrtDeviceMemoryType mem_type, ABI_IN size_t alignment, OrtAllocatorType allocator_type,
      ABI_OUTPTR OrtMemoryInfo** out) ABI_SINCE(23);
  OrtDeviceMemoryType (ORT_API_CALL* MemoryInfoGetDeviceMemType)(ABI_IN const OrtMemoryInfo* ptr) ABI_SINCE(23);
  uint32_t (ORT_API_CALL* MemoryInfoGetVendorId)(ABI_IN const OrtMemoryInfo* ptr) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValueInfo_GetValueProducer)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUTPTR const OrtNode** producer_node, ABI_OUT_OPT size_t* producer_output_index) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValueInfo_GetValueNumConsumers)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUT size_t* num_consumers) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValueInfo_GetValueConsumers)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUT_WRITES_ALL(num_consumers) const OrtNode** nodes,
      ABI_OUT_WRITES_ALL(num_consumers) int64_t* input_indices, ABI_IN size_t num_consumers) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValueInfo_GetInitializerValue)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUTPTR const OrtValue** initializer_value) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValueInfo_GetExternalInitializerInfo)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUTPTR_MAYBENULL OrtExternalInitializerInfo** info) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValueInfo_IsRequiredGraphInput)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUT bool* is_required_graph_input) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValueInfo_IsOptionalGraphInput)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUT bool* is_optional_graph_input) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValueInfo_IsGraphOutput)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUT bool* is_graph_output) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValueInfo_IsConstantInitializer)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUT bool* is_constant_initializer) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ValueInfo_IsFromOuterScope)(ABI_IN const OrtValueInfo* value_info,
      ABI_OUT bool* is_from_outer_scope) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetName)(ABI_IN const OrtGraph* graph,
      ABI_OUTPTR const char** graph_name) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetModelPath)(ABI_IN const OrtGraph* graph,
      ABI_OUTPTR const ORTCHAR_T** model_path) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetOnnxIRVersion)(ABI_IN const OrtGraph* graph,
      ABI_OUT int64_t* onnx_ir_version) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetNumOperatorSets)(ABI_IN const OrtGraph* graph,
      ABI_OUT size_t* num_operator_sets) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetOperatorSets)(ABI_IN const OrtGraph* graph,
      ABI_OUT_WRITES(num_operator_sets) const char** domains,
      ABI_OUT_WRITES(num_operator_sets) int64_t* opset_versions,
      ABI_IN size_t num_operator_sets) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetNumInputs)(ABI_IN const OrtGraph* graph,
      ABI_OUT size_t* num_inputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetInputs)(ABI_IN const OrtGraph* graph,
      ABI_OUT_WRITES(num_inputs) const OrtValueInfo** inputs, ABI_IN size_t num_inputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetNumOutputs)(ABI_IN const OrtGraph* graph,
      ABI_OUT size_t* num_outputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetOutputs)(ABI_IN const OrtGraph* graph,
      ABI_OUT_WRITES(num_outputs) const OrtValueInfo** outputs, ABI_IN size_t num_outputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetNumInitializers)(ABI_IN const OrtGraph* graph,
      ABI_OUT size_t* num_initializers) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetInitializers)(ABI_IN const OrtGraph* graph,
      ABI_OUT_WRITES(num_initializers) const OrtValueInfo** initializers,
      ABI_IN size_t num_initializers) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetNumNodes)(ABI_IN const OrtGraph* graph,
      ABI_OUT size_t* num_nodes) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetNodes)(ABI_IN const OrtGraph* graph,
      ABI_OUT_WRITES(num_nodes) const OrtNode** nodes, ABI_IN size_t num_nodes) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetParentNode)(ABI_IN const OrtGraph* graph,
      ABI_OUTPTR_MAYBENULL const OrtNode** node) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetGraphView)(ABI_IN const OrtGraph* src_graph,
      ABI_IN const OrtNode** nodes, ABI_IN size_t num_nodes, ABI_OUTPTR OrtGraph** dst_graph) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetId)(ABI_IN const OrtNode* node, ABI_OUT size_t* node_id) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetName)(ABI_IN const OrtNode* node,
      ABI_OUTPTR const char** node_name) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetOperatorType)(ABI_IN const OrtNode* node,
      ABI_OUTPTR const char** operator_type) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetDomain)(ABI_IN const OrtNode* node,
      ABI_OUTPTR const char** domain_name) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetSinceVersion)(ABI_IN const OrtNode* node,
      ABI_OUT int* since_version) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetNumInputs)(ABI_IN const OrtNode* node,
      ABI_OUT size_t* num_inputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetInputs)(ABI_IN const OrtNode* node,
      ABI_OUT_WRITES(num_inputs) const OrtValueInfo** inputs, ABI_IN size_t num_inputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetNumOutputs)(ABI_IN const OrtNode* node,
      ABI_OUT size_t* num_outputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetOutputs)(ABI_IN const OrtNode* node,
      ABI_OUT_WRITES(num_outputs) const OrtValueInfo** outputs, ABI_IN size_t num_outputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetNumImplicitInputs)(ABI_IN const OrtNode* node,
      ABI_OUT size_t* num_implicit_inputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetImplicitInputs)(ABI_IN const OrtNode* node,
      ABI_OUT_WRITES(num_implicit_inputs) const OrtValueInfo** implicit_inputs,
      ABI_IN size_t num_implicit_inputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetNumAttributes)(ABI_IN const OrtNode* node,
      ABI_OUT size_t* num_attributes) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetAttributes)(ABI_IN const OrtNode* node,
      ABI_OUT_WRITES(num_attributes) const OrtOpAttr** attributes,
      ABI_IN size_t num_attributes) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetAttributeByName)(ABI_IN const OrtNode* node,
      ABI_IN const char* attribute_name, ABI_OUTPTR_MAYBENULL const OrtOpAttr** attribute) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* OpAttr_GetTensorAttributeAsOrtValue)(ABI_IN const OrtOpAttr* attribute,
      ABI_OUTPTR_MAYBENULL OrtValue** attr_tensor) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* OpAttr_GetType)(ABI_IN const OrtOpAttr* attribute,
      ABI_OUT OrtOpAttrType* type) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* OpAttr_GetName)(ABI_IN const OrtOpAttr* attribute,
      ABI_OUTPTR const char** name) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetNumSubgraphs)(ABI_IN const OrtNode* node,
      ABI_OUT size_t* num_subgraphs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetSubgraphs)(ABI_IN const OrtNode* node,
      ABI_OUT_WRITES(num_subgraphs) const OrtGraph** subgraphs, ABI_IN size_t num_subgraphs,
      ABI_OUT_WRITES_OPT(num_subgraphs) const char** attribute_names) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetGraph)(ABI_IN const OrtNode* node,
      ABI_OUTPTR_MAYBENULL const OrtGraph** graph) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Node_GetEpName)(ABI_IN const OrtNode* node,
      ABI_OUTPTR_MAYBENULL const char** out) ABI_SINCE(23);
  void (ORT_API_CALL* ReleaseExternalInitializerInfo)(ABI_FREES_OPT OrtExternalInitializerInfo* input) ABI_SINCE(23);
  const ORTCHAR_T* (ORT_API_CALL* ExternalInitializerInfo_GetFilePath)(ABI_IN const OrtExternalInitializerInfo* info) ABI_SINCE(23);
  int64_t (ORT_API_CALL* ExternalInitializerInfo_GetFileOffset)(ABI_IN const OrtExternalInitializerInfo* info) ABI_SINCE(23);
  size_t (ORT_API_CALL* ExternalInitializerInfo_GetByteSize)(ABI_IN const OrtExternalInitializerInfo* info) ABI_SINCE(23);
  const char* (ORT_API_CALL* GetRunConfigEntry)(ABI_IN const OrtRunOptions* options,
      ABI_IN const char* config_key) ABI_SINCE(23);
  const OrtMemoryInfo* (ORT_API_CALL* EpDevice_MemoryInfo)(ABI_IN const OrtEpDevice* ep_device,
      ABI_IN OrtDeviceMemoryType memory_type) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* CreateSharedAllocator)(ABI_IN OrtEnv* env, ABI_IN const OrtEpDevice* ep_device,
      ABI_IN OrtDeviceMemoryType mem_type, ABI_IN OrtAllocatorType allocator_type,
      ABI_IN_OPT const OrtKeyValuePairs* allocator_options,
      ABI_OUTPTR_OPT OrtAllocator** allocator) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* GetSharedAllocator)(ABI_IN OrtEnv* env, ABI_IN const OrtMemoryInfo* mem_info,
      ABI_OUTPTR_MAYBENULL OrtAllocator** allocator) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ReleaseSharedAllocator)(ABI_IN OrtEnv* env, ABI_IN const OrtEpDevice* ep_device,
      ABI_IN OrtDeviceMemoryType mem_type) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* GetTensorData)(ABI_IN const OrtValue* value,
      ABI_OUTPTR const void** out) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* GetSessionOptionsConfigEntries)(ABI_IN const OrtSessionOptions* options,
      ABI_OUTPTR OrtKeyValuePairs** out) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* SessionGetMemoryInfoForInputs)(ABI_IN const OrtSession* session,
      ABI_OUT_WRITES(num_inputs) const OrtMemoryInfo** inputs_memory_info,
      ABI_IN size_t num_inputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* SessionGetMemoryInfoForOutputs)(ABI_IN const OrtSession* session,
      ABI_OUT_WRITES(num_outputs) const OrtMemoryInfo** outputs_memory_info,
      ABI_IN size_t num_outputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* SessionGetEpDeviceForInputs)(ABI_IN const OrtSession* session,
      ABI_OUT_WRITES(num_inputs) const OrtEpDevice** inputs_ep_devices,
      ABI_IN size_t num_inputs) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* CreateSyncStreamForEpDevice)(ABI_IN const OrtEpDevice* ep_device,
      ABI_IN_OPT const OrtKeyValuePairs* stream_options, ABI_OUTPTR OrtSyncStream** stream) ABI_SINCE(23);
  void* (ORT_API_CALL* SyncStream_GetHandle)(ABI_IN OrtSyncStream* stream) ABI_SINCE(23);
  void (ORT_API_CALL* ReleaseSyncStream)(ABI_FREES_OPT OrtSyncStream* input) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* CopyTensors)(ABI_IN const OrtEnv* env,
      ABI_IN_READS(num_tensors) const OrtValue* const* src_tensors,
      ABI_IN_READS(num_tensors) OrtValue* const* dst_tensors, ABI_IN_OPT OrtSyncStream* stream,
      ABI_IN size_t num_tensors) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* Graph_GetModelMetadata)(ABI_IN const OrtGraph* graph,
      ABI_OUTPTR OrtModelMetadata** out) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* GetModelCompatibilityForEpDevices)(ABI_IN_READS(num_ep_devices) const OrtEpDevice* const* ep_devices,
      ABI_IN size_t num_ep_devices, ABI_IN const char* compatibility_info,
      ABI_OUT OrtCompiledModelCompatibility* out_status) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* CreateExternalInitializerInfo)(ABI_IN const ORTCHAR_T* filepath,
      ABI_IN int64_t file_offset, ABI_IN size_t byte_size,
      ABI_OUTPTR OrtExternalInitializerInfo** out) ABI_SINCE(23);
  bool (ORT_API_CALL* TensorTypeAndShape_HasShape)(ABI_IN const OrtTensorTypeAndShapeInfo* info) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetConfigEntries)(ABI_IN const OrtKernelInfo* info,
      ABI_OUTPTR OrtKeyValuePairs** out) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetOperatorDomain)(ABI_IN const OrtKernelInfo* info,
      ABI_OUT_OPT char* out, ABI_INOUT size_t* size) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetOperatorType)(ABI_IN const OrtKernelInfo* info,
      ABI_OUT_OPT char* out, ABI_INOUT size_t* size) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetOperatorSinceVersion)(ABI_IN const OrtKernelInfo* info,
      ABI_OUT int* since_version) ABI_SINCE(24);
  const OrtInteropApi* (ORT_API_CALL* GetInteropApi)(void) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* SessionGetEpDeviceForOutputs)(ABI_IN const OrtSession* session,
      ABI_OUT_WRITES(num_outputs) const OrtEpDevice** outputs_ep_devices,
      ABI_IN size_t num_outputs) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* GetNumHardwareDevices)(ABI_IN const OrtEnv* env,
      ABI_OUT size_t* num_devices) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* GetHardwareDevices)(ABI_IN const OrtEnv* env,
      ABI_OUT_WRITES(num_devices) const OrtHardwareDevice** devices,
      ABI_IN size_t num_devices) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* GetHardwareDeviceEpIncompatibilityDetails)(ABI_IN const OrtEnv* env,
      ABI_IN const char* ep_name, ABI_IN const OrtHardwareDevice* hw,
      ABI_OUTPTR OrtDeviceEpIncompatibilityDetails** details) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* DeviceEpIncompatibilityDetails_GetReasonsBitmask)(ABI_IN const OrtDeviceEpIncompatibilityDetails* details,
      ABI_OUT uint32_t* reasons_bitmask) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* DeviceEpIncompatibilityDetails_GetNotes)(ABI_IN const OrtDeviceEpIncompatibilityDetails* details,
      ABI_OUTPTR_MAYBENULL const char** notes) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* DeviceEpIncompatibilityDetails_GetErrorCode)(ABI_IN const OrtDeviceEpIncompatibilityDetails* details,
      ABI_OUT int32_t* error_code) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseDeviceEpIncompatibilityDetails)(ABI_FREES_OPT OrtDeviceEpIncompatibilityDetails* input) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* GetCompatibilityInfoFromModel)(ABI_IN const ORTCHAR_T* model_path,
      ABI_IN const char* ep_type, ABI_INOUT OrtAllocator* allocator,
      ABI_OUTPTR_MAYBENULL char** compatibility_info) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* GetCompatibilityInfoFromModelBytes)(ABI_IN_READS(model_data_length) const void* model_data,
      ABI_IN size_t model_data_length, ABI_IN const char* ep_type, ABI_INOUT OrtAllocator* allocator,
      ABI_OUTPTR_MAYBENULL char** compatibility_info) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* CreateEnvWithOptions)(ABI_IN const OrtEnvCreationOptions* options,
      ABI_OUTPTR OrtEnv** out) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* Session_GetEpGraphAssignmentInfo)(ABI_IN const OrtSession* session,
      ABI_OUTPTR const OrtEpAssignedSubgraph* const** ep_subgraphs,
      ABI_OUT size_t* num_ep_subgraphs) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* EpAssignedSubgraph_GetEpName)(ABI_IN const OrtEpAssignedSubgraph* ep_subgraph,
      ABI_OUTPTR const char** out) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* EpAssignedSubgraph_GetNodes)(ABI_IN const OrtEpAssignedSubgraph* ep_subgraph,
      ABI_OUTPTR const OrtEpAssignedNode* const** ep_nodes, ABI_OUT size_t* num_ep_nodes) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* EpAssignedNode_GetName)(ABI_IN const OrtEpAssignedNode* ep_node,
      ABI_OUTPTR const char** out) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* EpAssignedNode_GetDomain)(ABI_IN const OrtEpAssignedNode* ep_node,
      ABI_OUTPTR const char** out) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* EpAssignedNode_GetOperatorType)(ABI_IN const OrtEpAssignedNode* ep_node,
      ABI_OUTPTR const char** out) ABI_SINCE(24);
  void (ORT_API_CALL* RunOptionsSetSyncStream)(ABI_INOUT OrtRunOptions* options,
      ABI_IN OrtSyncStream* sync_stream) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* GetTensorElementTypeAndShapeDataReference)(ABI_IN const OrtValue* value,
      ABI_OUT ONNXTensorElementDataType* elem_type, ABI_OUTPTR_MAYBENULL const int64_t** shape_data,
      ABI_OUT size_t* shape_data_count) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* RunOptionsEnableProfiling)(ABI_INOUT OrtRunOptions* options,
      ABI_IN const ORTCHAR_T* profile_file_prefix) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* RunOptionsDisableProfiling)(ABI_INOUT OrtRunOptions* options) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* KernelInfoGetAttributeArray_string)(ABI_IN const OrtKernelInfo* info,
      ABI_IN const char* name, ABI_INOUT OrtAllocator* allocator,
      ABI_OUTPTR_BUFFER_MAYBENULL(*size) char*** out, ABI_OUT size_t* size) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* SetPerSessionThreadPoolCallbacks)(ABI_INOUT OrtEnv* env,
      ABI_IN const OrtThreadPoolCallbacksConfig* config) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* GetMemPatternEnabled)(ABI_IN const OrtSessionOptions* options,
      ABI_OUT int* out) ABI_SINCE(27);
  OrtStatus* (ORT_API_CALL* GetSessionExecutionMode)(ABI_IN const OrtSessionOptions* options,
      ABI_OUT ExecutionMode* out) ABI_SINCE(27);
  OrtStatus* (ORT_API_CALL* SessionReleaseCapturedGraph)(ABI_IN OrtSession* session,
      ABI_IN int graph_annotation_id) ABI_SINCE(27);
  OrtExperimentalFnPtr (ORT_API_CALL* GetExperimentalFunction)(ABI_IN const char* name) ABI_SINCE(28);
  OrtStatus* (ORT_API_CALL* KernelContext_GetSyncStream)(ABI_IN const OrtKernelContext* context,
      ABI_OUTPTR_MAYBENULL OrtSyncStream** out) ABI_SINCE(28);
  OrtStatus* (ORT_API_CALL* SessionOptionsSetWeightlessSourceModelBuffer)(ABI_INOUT OrtSessionOptions* options,
      ABI_IN const void* source_model_data, ABI_IN size_t source_model_data_length) ABI_SINCE(29);
  OrtStatus* (ORT_API_CALL* KernelContext_GetPreallocatedOutput)(ABI_IN const OrtKernelContext* context,
      ABI_IN size_t output_index, ABI_OUTPTR_MAYBENULL OrtValue** output) ABI_SINCE(30);
} ABI_SINCE(1);

struct OrtModelEditorApi {
  OrtStatus* (ORT_API_CALL* CreateTensorTypeInfo)(ABI_IN const OrtTensorTypeAndShapeInfo* tensor_info,
      ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateSparseTensorTypeInfo)(ABI_IN const OrtTensorTypeAndShapeInfo* tensor_info,
      ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateMapTypeInfo)(ONNXTensorElementDataType map_key_type,
      ABI_IN const OrtTypeInfo* map_value_type, ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateSequenceTypeInfo)(ABI_IN const OrtTypeInfo* sequence_type,
      ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateOptionalTypeInfo)(ABI_IN const OrtTypeInfo* contained_type,
      ABI_OUTPTR OrtTypeInfo** type_info) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateValueInfo)(ABI_IN const char* name, ABI_IN const OrtTypeInfo* type_info,
      ABI_OUTPTR OrtValueInfo** value_info) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateNode)(ABI_IN const char* operator_name, ABI_IN const char* domain_name,
      ABI_IN const char* node_name, ABI_IN_READS(input_names_len) const char* const* input_names,
      size_t input_names_len, ABI_IN_READS(output_names_len) const char* const* output_names,
      size_t output_names_len, ABI_IN_READS(attribs_len) ABI_IN_OPT OrtOpAttr** attributes,
      ABI_IN size_t attribs_len, ABI_OUTPTR OrtNode** node) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateGraph)(ABI_OUTPTR OrtGraph** graph) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* SetGraphInputs)(ABI_INOUT OrtGraph* graph,
      ABI_IN_READS(inputs_len) ABI_INOUT OrtValueInfo** inputs, ABI_IN size_t inputs_len) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* SetGraphOutputs)(ABI_INOUT OrtGraph* graph,
      ABI_IN_READS(outputs_len) ABI_INOUT OrtValueInfo** outputs, ABI_IN size_t outputs_len) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* AddInitializerToGraph)(ABI_INOUT OrtGraph* graph, ABI_IN const char* name,
      ABI_INOUT OrtValue* tensor, bool data_is_external) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* AddNodeToGraph)(ABI_INOUT OrtGraph* graph, ABI_INOUT OrtNode* node) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateModel)(ABI_IN_READS(opset_entries_len) const char* const* domain_names,
      ABI_IN_READS(opset_entries_len) const int* opset_versions, size_t opset_entries_len,
      ABI_OUTPTR OrtModel** model) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* AddGraphToModel)(ABI_INOUT OrtModel* model,
      ABI_INOUT OrtGraph* graph) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateSessionFromModel)(ABI_IN const OrtEnv* env, ABI_IN const OrtModel* model,
      ABI_IN const OrtSessionOptions* options, ABI_OUTPTR OrtSession** out) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateModelEditorSession)(ABI_IN const OrtEnv* env,
      ABI_IN const ORTCHAR_T* model_path, ABI_IN const OrtSessionOptions* options,
      ABI_OUTPTR OrtSession** out) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateModelEditorSessionFromArray)(ABI_IN const OrtEnv* env,
      ABI_IN const void* model_data, size_t model_data_length, ABI_IN const OrtSessionOptions* options,
      ABI_OUTPTR OrtSession** out) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* SessionGetOpsetForDomain)(ABI_IN const OrtSession* session,
      ABI_IN const char* domain, ABI_OUT int* opset) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* ApplyModelToModelEditorSession)(ABI_INOUT OrtSession* session,
      ABI_IN OrtModel* model) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* FinalizeModelEditorSession)(ABI_INOUT OrtSession* session,
      ABI_IN const OrtSessionOptions* options,
      ABI_IN_OPT OrtPrepackedWeightsContainer* prepacked_weights_container) ABI_SINCE(22);
} ABI_SINCE(22);

struct OrtCompileApi {
  void (ORT_API_CALL* ReleaseModelCompilationOptions)(ABI_FREES_OPT OrtModelCompilationOptions* input) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CreateModelCompilationOptionsFromSessionOptions)(ABI_IN const OrtEnv* env,
      ABI_IN const OrtSessionOptions* session_options,
      ABI_OUTPTR OrtModelCompilationOptions** out) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetInputModelPath)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_IN const ORTCHAR_T* input_model_path) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetInputModelFromBuffer)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_IN const void* input_model_data, size_t input_model_data_size) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetOutputModelPath)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_IN const ORTCHAR_T* output_model_path) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetOutputModelExternalInitializersFile)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_IN const ORTCHAR_T* external_initializers_file_path,
      size_t external_initializers_size_threshold) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetOutputModelBuffer)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_INOUT OrtAllocator* allocator, ABI_OUTPTR void** output_model_buffer_ptr,
      ABI_OUT size_t* output_model_buffer_size_ptr) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetEpContextEmbedMode)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      bool embed_ep_context_in_model) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* CompileModel)(ABI_IN const OrtEnv* env,
      ABI_IN const OrtModelCompilationOptions* model_options) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetFlags)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      uint32_t flags) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetEpContextBinaryInformation)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_IN const ORTCHAR_T* output_directory, ABI_IN const ORTCHAR_T* model_name) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetGraphOptimizationLevel)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_IN GraphOptimizationLevel graph_optimization_level) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetOutputModelWriteFunc)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_IN OrtWriteBufferFunc write_func, ABI_IN void* state) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_IN OrtGetInitializerLocationFunc get_initializer_location_func, ABI_IN void* state) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetInputModel)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_IN const OrtModel* model) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* ModelCompilationOptions_SetWeightlessEnabled)(ABI_IN OrtModelCompilationOptions* model_compile_options,
      ABI_IN bool use_weightless) ABI_SINCE(29);
} ABI_SINCE(22);

struct OrtInteropApi {
  OrtStatus* (ORT_API_CALL* CreateExternalResourceImporterForDevice)(ABI_IN const OrtEpDevice* ep_device,
      ABI_OUTPTR_MAYBENULL OrtExternalResourceImporter** out_importer) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseExternalResourceImporter)(ABI_FREES_OPT OrtExternalResourceImporter* input) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* CanImportMemory)(ABI_IN const OrtExternalResourceImporter* importer,
      ABI_IN OrtExternalMemoryHandleType handle_type, ABI_OUT bool* out_supported) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* ImportMemory)(ABI_IN OrtExternalResourceImporter* importer,
      ABI_IN const OrtExternalMemoryDescriptor* desc,
      ABI_OUTPTR OrtExternalMemoryHandle** out_handle) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseExternalMemoryHandle)(ABI_FREES_OPT OrtExternalMemoryHandle* input) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* CreateTensorFromMemory)(ABI_IN OrtExternalResourceImporter* importer,
      ABI_IN const OrtExternalMemoryHandle* mem_handle, ABI_IN const OrtExternalTensorDescriptor* tensor_desc,
      ABI_OUTPTR OrtValue** out_tensor) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* CanImportSemaphore)(ABI_IN const OrtExternalResourceImporter* importer,
      ABI_IN OrtExternalSemaphoreType type, ABI_OUT bool* out_supported) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* ImportSemaphore)(ABI_IN OrtExternalResourceImporter* importer,
      ABI_IN const OrtExternalSemaphoreDescriptor* desc,
      ABI_OUTPTR OrtExternalSemaphoreHandle** out_handle) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseExternalSemaphoreHandle)(ABI_FREES_OPT OrtExternalSemaphoreHandle* input) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* WaitSemaphore)(ABI_IN OrtExternalResourceImporter* importer,
      ABI_IN OrtExternalSemaphoreHandle* semaphore_handle, ABI_IN OrtSyncStream* stream,
      ABI_IN uint64_t value) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* SignalSemaphore)(ABI_IN OrtExternalResourceImporter* importer,
      ABI_IN OrtExternalSemaphoreHandle* semaphore_handle, ABI_IN OrtSyncStream* stream,
      ABI_IN uint64_t value) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* InitGraphicsInteropForEpDevice)(ABI_IN const OrtEpDevice* ep_device,
      ABI_IN const OrtGraphicsInteropConfig* config) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* DeinitGraphicsInteropForEpDevice)(ABI_IN const OrtEpDevice* ep_device) ABI_SINCE(25);
} ABI_SINCE(24);

struct OrtEpApi {
  OrtStatus* (ORT_API_CALL* CreateEpDevice)(ABI_IN OrtEpFactory* ep_factory,
      ABI_IN const OrtHardwareDevice* hardware_device, ABI_IN_OPT const OrtKeyValuePairs* ep_metadata,
      ABI_IN_OPT const OrtKeyValuePairs* ep_options, ABI_OUT OrtEpDevice** ep_device) ABI_SINCE(22);
  void (ORT_API_CALL* ReleaseEpDevice)(ABI_FREES_OPT OrtEpDevice* input) ABI_SINCE(22);
  OrtStatus* (ORT_API_CALL* EpGraphSupportInfo_AddNodesToFuse)(ABI_IN OrtEpGraphSupportInfo* graph_support_info,
      ABI_IN_READS(num_nodes) const OrtNode* const* nodes, ABI_IN size_t num_nodes,
      ABI_IN_OPT const OrtNodeFusionOptions* node_fusion_options) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* EpGraphSupportInfo_AddSingleNode)(ABI_IN OrtEpGraphSupportInfo* graph_support_info,
      ABI_IN const OrtNode* node) ABI_SINCE(23);
  const char* (ORT_API_CALL* NodeComputeContext_NodeName)(ABI_IN const OrtNodeComputeContext* context) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* EpDevice_AddAllocatorInfo)(ABI_IN OrtEpDevice* ep_device,
      ABI_IN const OrtMemoryInfo* allocator_memory_info) ABI_SINCE(23);
  const OrtMemoryDevice* (ORT_API_CALL* MemoryInfo_GetMemoryDevice)(ABI_IN const OrtMemoryInfo* memory_info) ABI_SINCE(23);
  const OrtMemoryDevice* (ORT_API_CALL* Value_GetMemoryDevice)(ABI_IN const OrtValue* value) ABI_SINCE(23);
  bool (ORT_API_CALL* MemoryDevice_AreEqual)(ABI_IN const OrtMemoryDevice* a,
      ABI_IN const OrtMemoryDevice* b) ABI_SINCE(23);
  OrtMemoryInfoDeviceType (ORT_API_CALL* MemoryDevice_GetDeviceType)(ABI_IN const OrtMemoryDevice* memory_device) ABI_SINCE(23);
  OrtDeviceMemoryType (ORT_API_CALL* MemoryDevice_GetMemoryType)(ABI_IN const OrtMemoryDevice* memory_device) ABI_SINCE(23);
  uint32_t (ORT_API_CALL* MemoryDevice_GetVendorId)(ABI_IN const OrtMemoryDevice* memory_device) ABI_SINCE(23);
  uint32_t (ORT_API_CALL* MemoryDevice_GetDeviceId)(ABI_IN const OrtMemoryDevice* memory_device) ABI_SINCE(23);
  const OrtSyncStreamImpl* (ORT_API_CALL* SyncStream_GetImpl)(ABI_IN const OrtSyncStream* stream) ABI_SINCE(23);
  uint64_t (ORT_API_CALL* SyncStream_GetSyncId)(ABI_IN const OrtSyncStream* stream) ABI_SINCE(23);
  uint64_t (ORT_API_CALL* GetSyncIdForLastWaitOnSyncStream)(ABI_IN const OrtSyncStream* producer_stream,
      ABI_IN const OrtSyncStream* consumer_stream) ABI_SINCE(23);
  OrtStatus* (ORT_API_CALL* CreateHardwareDevice)(ABI_IN OrtHardwareDeviceType type,
      ABI_IN uint32_t vendor_id, ABI_IN uint32_t device_id, ABI_IN const char* vendor_name,
      ABI_IN_OPT const OrtKeyValuePairs* metadata,
      ABI_OUT OrtHardwareDevice** hardware_device) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseHardwareDevice)(ABI_FREES_OPT OrtHardwareDevice* input) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* CreateKernelRegistry)(ABI_OUTPTR OrtKernelRegistry** kernel_registry) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseKernelRegistry)(ABI_FREES_OPT OrtKernelRegistry* input) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelRegistry_AddKernel)(ABI_IN OrtKernelRegistry* kernel_registry,
      ABI_IN const OrtKernelDef* kernel_def, ABI_IN OrtKernelCreateFunc kernel_create_func,
      ABI_IN void* kernel_create_func_state) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* CreateKernelDefBuilder)(ABI_OUTPTR OrtKernelDefBuilder** kernel_def_builder_out) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseKernelDefBuilder)(ABI_FREES_OPT OrtKernelDefBuilder* input) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDefBuilder_SetOperatorType)(ABI_IN OrtKernelDefBuilder* kernel_def_builder,
      ABI_IN const char* op_type) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDefBuilder_SetDomain)(ABI_IN OrtKernelDefBuilder* kernel_def_builder,
      ABI_IN const char* domain) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDefBuilder_SetSinceVersion)(ABI_IN OrtKernelDefBuilder* kernel_def_builder,
      ABI_IN int since_version_start, ABI_IN int since_version_end) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDefBuilder_SetExecutionProvider)(ABI_IN OrtKernelDefBuilder* kernel_def_builder,
      ABI_IN const char* ep_name) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDefBuilder_SetInputMemType)(ABI_IN OrtKernelDefBuilder* kernel_def_builder,
      ABI_IN size_t input_index, ABI_IN OrtMemType mem_type) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDefBuilder_SetOutputMemType)(ABI_IN OrtKernelDefBuilder* kernel_def_builder,
      ABI_IN size_t output_index, ABI_IN OrtMemType mem_type) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDefBuilder_AddTypeConstraint)(ABI_IN OrtKernelDefBuilder* kernel_def_builder,
      ABI_IN const char* arg_name, ABI_IN_READS(num_types) const OrtDataType* const* types,
      ABI_IN size_t num_types) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDefBuilder_AddInputOutputAliases)(ABI_IN OrtKernelDefBuilder* kernel_def_builder,
      ABI_IN_READS(num_io_indices) const int* input_indices,
      ABI_IN_READS(num_io_indices) const int* output_indices, ABI_IN size_t num_io_indices) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDefBuilder_AddInputOutputMutableAliases)(ABI_IN OrtKernelDefBuilder* kernel_def_builder,
      ABI_IN_READS(num_io_indices) const int* input_indices,
      ABI_IN_READS(num_io_indices) const int* output_indices, ABI_IN size_t num_io_indices) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDefBuilder_Build)(ABI_IN OrtKernelDefBuilder* kernel_def_builder,
      ABI_OUTPTR OrtKernelDef** kernel_def_out) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseKernelDef)(ABI_FREES_OPT OrtKernelDef* input) ABI_SINCE(24);
  const char* (ORT_API_CALL* KernelDef_GetOperatorType)(ABI_IN const OrtKernelDef* kernel_def) ABI_SINCE(24);
  const char* (ORT_API_CALL* KernelDef_GetDomain)(ABI_IN const OrtKernelDef* kernel_def) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDef_GetSinceVersion)(ABI_IN const OrtKernelDef* kernel_def,
      ABI_OUT int* start_version, ABI_OUT int* end_version) ABI_SINCE(24);
  const char* (ORT_API_CALL* KernelDef_GetExecutionProvider)(ABI_IN const OrtKernelDef* kernel_def) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDef_GetInputMemType)(ABI_IN const OrtKernelDef* kernel_def,
      ABI_IN size_t input_index, ABI_OUT OrtMemType* mem_type) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelDef_GetOutputMemType)(ABI_IN const OrtKernelDef* kernel_def,
      ABI_IN size_t output_index, ABI_OUT OrtMemType* mem_type) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* GetTensorDataType)(ABI_IN ONNXTensorElementDataType elem_type,
      ABI_OUTPTR const OrtDataType** out) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* EpGraphSupportInfo_LookUpKernel)(ABI_IN OrtEpGraphSupportInfo* graph_support_info,
      ABI_IN const OrtNode* node, ABI_OUTPTR_MAYBENULL const OrtKernelDef** out_kernel_def) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* SharedPrePackedWeightCache_StoreWeightData)(ABI_IN OrtSharedPrePackedWeightCache* prepacked_weight_cache,
      ABI_IN_READS(num_buffers) void** buffer_data_ptrs, ABI_IN_READS(num_buffers) size_t* buffer_data_sizes,
      ABI_IN size_t num_buffers) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* KernelInfo_GetEp)(ABI_IN const OrtKernelInfo* info,
      ABI_OUTPTR const OrtEp** ep) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* DeviceEpIncompatibilityDetails_SetDetails)(ABI_INOUT OrtDeviceEpIncompatibilityDetails* details,
      ABI_IN uint32_t reasons_bitmask, ABI_IN int32_t error_code,
      ABI_IN_OPT const char* notes) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* CreateIfKernel)(ABI_IN const OrtKernelInfo* kernel_info,
      ABI_OUTPTR OrtKernelImpl** kernel_out) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* CreateLoopKernel)(ABI_IN const OrtKernelInfo* kernel_info,
      ABI_IN OrtLoopKernelHelper* helper, ABI_OUTPTR OrtKernelImpl** kernel_out) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* CreateScanKernel)(ABI_IN const OrtKernelInfo* kernel_info,
      ABI_IN OrtScanKernelHelper* helper, ABI_OUTPTR OrtKernelImpl** kernel_out) ABI_SINCE(24);
  void (ORT_API_CALL* ReleaseKernelImpl)(ABI_FREES_OPT OrtKernelImpl* input) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* GetEnvConfigEntries)(ABI_OUTPTR OrtKeyValuePairs** config_entries) ABI_SINCE(24);
  OrtStatus* (ORT_API_CALL* GetOpSchema)(ABI_IN const char* name, ABI_IN int max_inclusive_version,
      ABI_IN const char* domain, ABI_OUTPTR_MAYBENULL OrtOpSchema** out_schema) ABI_SINCE(25);
  void (ORT_API_CALL* ReleaseOpSchema)(ABI_FREES_OPT OrtOpSchema* input) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchema_GetSinceVersion)(ABI_IN const OrtOpSchema* schema,
      ABI_OUT int* out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchema_GetNumInputs)(ABI_IN const OrtOpSchema* schema,
      ABI_OUT size_t* out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchema_GetInputName)(ABI_IN const OrtOpSchema* schema, ABI_IN size_t index,
      ABI_OUTPTR const char** out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchema_GetInputTypeConstraint)(ABI_IN const OrtOpSchema* schema,
      ABI_IN size_t index, ABI_OUTPTR_MAYBENULL const OrtOpSchemaTypeConstraint** out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchema_GetNumOutputs)(ABI_IN const OrtOpSchema* schema,
      ABI_OUT size_t* out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchema_GetOutputName)(ABI_IN const OrtOpSchema* schema, ABI_IN size_t index,
      ABI_OUTPTR const char** out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchema_GetOutputTypeConstraint)(ABI_IN const OrtOpSchema* schema,
      ABI_IN size_t index, ABI_OUTPTR_MAYBENULL const OrtOpSchemaTypeConstraint** out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchema_GetTypeConstraintCount)(ABI_IN const OrtOpSchema* schema,
      ABI_OUT size_t* out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchema_GetTypeConstraint)(ABI_IN const OrtOpSchema* schema, ABI_IN size_t index,
      ABI_OUTPTR const OrtOpSchemaTypeConstraint** out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchemaTypeConstraint_GetTypeParamName)(ABI_IN const OrtOpSchemaTypeConstraint* type_constraint,
      ABI_OUTPTR const char** out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchemaTypeConstraint_GetAllowedTypes)(ABI_IN const OrtOpSchemaTypeConstraint* type_constraint,
      ABI_OUTPTR const char* const** out_types, ABI_OUT size_t* num_types) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchemaTypeConstraint_GetInputIndices)(ABI_IN const OrtOpSchemaTypeConstraint* type_constraint,
      ABI_OUTPTR const size_t** out_indices, ABI_OUT size_t* count) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* OpSchemaTypeConstraint_GetOutputIndices)(ABI_IN const OrtOpSchemaTypeConstraint* type_constraint,
      ABI_OUTPTR const size_t** out_indices, ABI_OUT size_t* count) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* CreateProfilingEvent)(ABI_IN OrtProfilingEventCategory category,
      ABI_IN int32_t process_id, ABI_IN int32_t thread_id, ABI_IN const char* event_name,
      ABI_IN int64_t timestamp_us, ABI_IN int64_t duration_us,
      ABI_IN_READS(num_args) const char* const* arg_keys,
      ABI_IN_READS(num_args) const char* const* arg_values, ABI_IN size_t num_args,
      ABI_OUTPTR OrtProfilingEvent** out) ABI_SINCE(25);
  void (ORT_API_CALL* ReleaseProfilingEvent)(ABI_FREES_OPT OrtProfilingEvent* input) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* ProfilingEvent_GetCategory)(ABI_IN const OrtProfilingEvent* event,
      ABI_OUT OrtProfilingEventCategory* out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* ProfilingEvent_GetName)(ABI_IN const OrtProfilingEvent* event,
      ABI_OUTPTR const char** out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* ProfilingEvent_GetTimestampUs)(ABI_IN const OrtProfilingEvent* event,
      ABI_OUT int64_t* out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* ProfilingEvent_GetDurationUs)(ABI_IN const OrtProfilingEvent* event,
      ABI_OUT int64_t* out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* ProfilingEvent_GetArgValue)(ABI_IN const OrtProfilingEvent* event,
      ABI_IN const char* key, ABI_OUTPTR_MAYBENULL const char** out) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* ProfilingEventsContainer_AddEvents)(ABI_IN OrtProfilingEventsContainer* events_container,
      ABI_IN_READS(num_events) const OrtProfilingEvent* const* events,
      ABI_IN size_t num_events) ABI_SINCE(25);
  OrtStatus* (ORT_API_CALL* SessionOptionsGetWeightlessSourceModelBuffer)(ABI_IN const OrtSessionOptions* session_options,
      ABI_OUTPTR_MAYBENULL const void** source_model_data,
      ABI_OUT size_t* source_model_data_length) ABI_SINCE(29);
} ABI_SINCE(22);

struct OrtApiBase {
  const OrtApi* (ORT_API_CALL* GetApi)(uint32_t version) ABI_SINCE(1);
  const char* (ORT_API_CALL* GetVersionString)(void) ABI_SINCE(1);
} ABI_SINCE(1);

/* ---- Exported functions ---- */

/* By the host. */
ORT_ABI_EXPORT const OrtApiBase* ORT_API_CALL OrtGetApiBase(void);
/* Adds the built-in CPU provider to the session's. `use_arena` changes nothing: see EnableCpuMemArena. */
ORT_ABI_EXPORT OrtStatus* ORT_API_CALL OrtSessionOptionsAppendExecutionProvider_CPU(
      ABI_INOUT OrtSessionOptions* options, ABI_IN int use_arena) ABI_SINCE(1);

/* By a plugin library. */
ORT_ABI_EXPORT OrtStatus* ORT_API_CALL CreateEpFactories(ABI_IN const char* registered_name,
      ABI_IN const OrtApiBase* ort_api_base, ABI_IN const OrtLogger* default_logger,
      ABI_INOUT OrtEpFactory** factories, ABI_IN size_t max_factories, ABI_OUT size_t* num_factories) ABI_SINCE(22);
ORT_ABI_EXPORT OrtStatus* ORT_API_CALL ReleaseEpFactory(ABI_IN OrtEpFactory* factory) ABI_SINCE(22);

#ifdef __cplusplus
}
#endif

#endif /* ORT_ABI_H */
/* clang-format on */
