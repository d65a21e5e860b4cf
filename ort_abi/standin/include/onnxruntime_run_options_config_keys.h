/* onnxruntime_run_options_config_keys.h: names for the config entries of run options that this host reads. */
#ifndef ORT_ABI_ONNXRUNTIME_RUN_OPTIONS_CONFIG_KEYS_H
#define ORT_ABI_ONNXRUNTIME_RUN_OPTIONS_CONFIG_KEYS_H

/* clang-format off */
static const char* const kOrtRunOptionsConfigCudaGraphAnnotation = "gpu_graph_id";
static const char* const kOrtRunOptionsConfigDisableSynchronizeExecutionProviders = "disable_synchronize_execution_providers";
static const char* const kOrtRunOptionsConfigEnableMemoryArenaShrinkage = "memory.enable_memory_arena_shrinkage";
/* clang-format on */

#endif /* ORT_ABI_ONNXRUNTIME_RUN_OPTIONS_CONFIG_KEYS_H */
