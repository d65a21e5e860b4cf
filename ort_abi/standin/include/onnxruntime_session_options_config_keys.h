/* onnxruntime_session_options_config_keys.h: names for the config entries of session options that this host
 * reads. */
#ifndef ORT_ABI_ONNXRUNTIME_SESSION_OPTIONS_CONFIG_KEYS_H
#define ORT_ABI_ONNXRUNTIME_SESSION_OPTIONS_CONFIG_KEYS_H

/* clang-format off */
static const char* const kOrtSessionOptionsConfigDisablePrepacking = "session.disable_prepacking";
static const char* const kOrtSessionOptionsConfigUseEnvAllocators = "session.use_env_allocators";
static const char* const kOrtSessionOptionsConfigUseORTModelBytesDirectly = "session.use_ort_model_bytes_directly";
static const char* const kOrtSessionOptionsDisableCPUEPFallback = "session.disable_cpu_ep_fallback";
static const char* const kOrtSessionOptionsModelExternalInitializersFileFolderPath = "session.model_external_initializers_file_folder_path";
static const char* const kOrtSessionOptionsRecordEpGraphAssignmentInfo = "session.record_ep_graph_assignment_info";
static const char* const kOrtSessionOptionsResourceCudaPartitioningSettings = "session.resource_cuda_partitioning_settings";
static const char* const kOrtSessionOptionsSavePrePackedConstantInitializers = "session.save_external_prepacked_constant_initializers";
/* clang-format on */

#endif /* ORT_ABI_ONNXRUNTIME_SESSION_OPTIONS_CONFIG_KEYS_H */
