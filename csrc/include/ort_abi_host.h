/* ort_abi_host.h: what libort_abi.so exports beside OrtGetApiBase. Ours, not part of ORT's ABI. */
#ifndef ORT_ABI_HOST_H
#define ORT_ABI_HOST_H

#include "ort_abi.h"

/* clang-format off */
#ifdef __cplusplus
extern "C" {
#endif

/* ---- Names of our own ---- */

/* OrtGetApiBase and OrtSessionOptionsAppendExecutionProvider_CPU of this library, whatever other host is in the process:
 * a reference to the plain names goes to the one that was loaded first. */
ORT_ABI_EXPORT const OrtApiBase* ortabi_get_api_base(void);
ORT_ABI_EXPORT OrtStatus* ortabi_append_cpu_provider(OrtSessionOptions* options, int use_arena);

/* ---- Fault injection ---- */

/* The allocation after `allocations_before_failure` more ones fails, once; negative: none fails. Process-wide. */
ORT_ABI_EXPORT void ortabi_fail_allocation(int64_t allocations_before_failure);
/* How many allocations the library has made since the process started. */
ORT_ABI_EXPORT int64_t ortabi_allocation_count(void);

/* ---- Hardware ---- */

/* Adds a hardware device to what factories see in GetSupportedDevices, as if the machine had it: an EP is tested
 * without its hardware. copies everything. Applies to libraries registered afterwards; gone with the environment.
 * `metadata` may be NULL. Errors: ORT_INVALID_ARGUMENT for NULL `env` or `vendor`, or an unknown type. */
ORT_ABI_EXPORT OrtStatus* ortabi_inject_hardware_device(OrtEnv* env, OrtHardwareDeviceType type, uint32_t vendor_id,
      uint32_t device_id, const char* vendor, const OrtKeyValuePairs* metadata);

/* ---- Memory ---- */

/* The infos of the host's own memory, which no environment, session or EP owns: of GetAllocatorWithDefaultOptions
 * (0), and as sessions show it that may use an arena (1); NULL past the last. borrows: they stay for ever. */
ORT_ABI_EXPORT const OrtMemoryInfo* ortabi_host_memory(size_t index);

/* ---- Crashes ---- */

/* From now on a fatal signal (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) writes one line to stderr that names it and, if
 * an EP was at work on the thread, the EP, the slot and the node; then it goes to whoever handled it before. For
 * programs, not for libraries: handlers are the process's. */
ORT_ABI_EXPORT void ortabi_report_crashes(void);

/* ---- Models without a session ---- */

/* Reads a model so that its graph can be looked at with the Graph_*, Node_*, ValueInfo_* and OpAttr_* slots.
 * `path` gives the folder for external data and may be NULL when `data` is given; `data` (borrowed until
 * ReleaseModel) may be NULL when `path` is to be read. gives `*model` (caller releases with ReleaseModel). */
ORT_ABI_EXPORT OrtStatus* ortabi_load_model(const char* path, const void* data, size_t size, OrtModel** model);
/* borrows: the graph lives as long as the model. */
ORT_ABI_EXPORT const OrtGraph* ortabi_model_graph(const OrtModel* model);

/* ---- Operators ---- */

/* The operators that OrtEpApi::GetOpSchema finds: the name of number `index` and its domain ("": ai.onnx), once for
 * each version; NULL past the last one. borrows: constant. */
ORT_ABI_EXPORT const char* ortabi_op_schema_name(size_t index, const char** domain);

/* ---- Sessions ---- */

/* Finds the device of the EP that a session asks last, after the CPU EP; NULL: there is none. Called on the thread
 * that creates the session, which holds no lock then: libraries can be registered. */
typedef OrtStatus* (ORT_API_CALL* OrtAbiFindLastEp)(void* state, const OrtEpDevice** device);
/* Sessions call `find` when nodes are left that none of their EPs took, and only then. An EP that the session has
 * already is not asked again. borrows `state`, as long as sessions are created with these options or copies of them.
 * Errors: ORT_INVALID_ARGUMENT for NULL `options` or `find`. */
ORT_ABI_EXPORT OrtStatus* ortabi_session_options_set_last_ep(OrtSessionOptions* options, OrtAbiFindLastEp find,
      void* state);

/* The session's EPs in the order in which they were offered the nodes; NULL past the last one. borrows: valid as
 * long as the session. */
ORT_ABI_EXPORT const char* ortabi_session_ep_name(const OrtSession* session, size_t index);

/* Kernel number `index` of the session's EP number `ep`, as the KernelDef_* slots of OrtEpApi read it; NULL past the
 * last one. borrows: valid as long as the session. Kernels of custom operators come after the EP's own. */
ORT_ABI_EXPORT const OrtKernelDef* ortabi_session_kernel(const OrtSession* session, size_t ep, size_t index);
/* The name of a type constraint of a kernel, and its element types: bit n is ONNXTensorElementDataType n. borrows the
 * name; NULL past the last constraint. */
ORT_ABI_EXPORT const char* ortabi_kernel_constraint(const OrtKernelDef* kernel, size_t index, uint64_t* types);

/* One line a node of the session's plan, in execution order, from 0 to count-1. borrows: valid as long as the
 * session. `runs` and `nanoseconds` count since creation and only while ortabi_session_set_timing is on. */
typedef struct OrtAbiPlanStep {
  const char* ep_name;
  const char* node_name;
  const char* op_type; /* of a fused node: its subgraph's name */
  const char* domain;
  size_t original_nodes; /* nodes of the model that the step runs: more than 1 for a fused node */
  uint64_t runs;
  uint64_t nanoseconds;
} OrtAbiPlanStep;
ORT_ABI_EXPORT size_t ortabi_session_step_count(const OrtSession* session);
ORT_ABI_EXPORT OrtStatus* ortabi_session_step(const OrtSession* session, size_t index, OrtAbiPlanStep* step);
ORT_ABI_EXPORT void ortabi_session_set_timing(OrtSession* session, bool on);

/* A node that an EP was asked about and did not take, and that an EP behind it runs. Recorded when the config entry
 * "session.ort_abi_record_not_taken" is "1". borrows: valid as long as the session. */
typedef struct OrtAbiNotTaken {
  const char* ep_name;
  const char* node_name;
  const char* output_name; /* of its first output: nodes need no names */
  const char* op_type;
  const char* domain;
  int since_version;
  const char* place;  /* "" or, of a node in a subgraph, "in then_branch of If 'cond'" */
  const char* reason; /* what the EP has instead: "has kernels for Mul of versions 7 to 12, the model has 14" */
} OrtAbiNotTaken;
ORT_ABI_EXPORT size_t ortabi_session_not_taken_count(const OrtSession* session);
ORT_ABI_EXPORT OrtStatus* ortabi_session_not_taken(const OrtSession* session, size_t index, OrtAbiNotTaken* out);

#ifdef __cplusplus
}
#endif
/* clang-format on */

#endif /* ORT_ABI_HOST_H */
