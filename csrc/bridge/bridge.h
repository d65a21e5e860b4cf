/* The C side of execution providers written in Python. It is compiled into the Python extension module, which
 * is itself the plugin library that a host registers: host -> trampoline here -> Python function.
 *
 * Lifetime of a callback: the structs given to a host are allocated and freed here. They carry an integer id,
 * never a Python object; Python looks the id up, so a stale one is an error. Every call passes the gate
 * (gate.c), which closes before the interpreter exits; a late call gets a status, a late release frees the C
 * struct and leaves Python alone. */
#ifndef ORT_ABI_BRIDGE_H
#define ORT_ABI_BRIDGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ort_abi.h"

#define BRIDGE_MIN_API_VERSION     24
#define BRIDGE_SYNC_STREAM_VERSION 28 /* KernelContext_GetSyncStream */

/* What Python sees too. */
/* cdef begin */
typedef enum BridgeConstant {
  BRIDGE_MAX_CUSTOM_OPS = 256, /* of one provider */
  BRIDGE_INPUT_HEADER = 4,     /* numbers in front of the dimensions of one input in BridgeRun.flat */
  BRIDGE_LENT_OBJECTS = 4,     /* of one BridgeLoan */
  BRIDGE_LENT_RANK = 8,        /* arrays of more dimensions are made anew for each run */
  BRIDGE_LENT_FIELDS = 21,     /* numbers about an array: five, and two a dimension */
} BridgeConstant;

/* What bridge_py_compute is to do. */
typedef enum BridgeCompute {
  BRIDGE_RUN = 0,
  BRIDGE_RUN_ALONE = 1, /* another thread is in this node: keep nothing */
  BRIDGE_LOOK = 2,      /* the run that bridge_py_again was has failed, or a loan is not as it was */
} BridgeCompute;

/* How a run in Python ended. */
typedef enum BridgeEnd {
  BRIDGE_FAILED = 0,
  BRIDGE_DONE = 1,
  BRIDGE_WATCHED = 2, /* if the loans are as they were, equal inputs may come as bridge_py_again */
} BridgeEnd;

typedef enum BridgeLoanState {
  BRIDGE_LOAN_AS_IT_WAS = 0,
  BRIDGE_LOAN_CHANGED = 1, /* shape, strides, dtype, flags or memory differ, or there is a weak reference */
  BRIDGE_LOAN_KEPT = 2,    /* somebody has one of its objects */
} BridgeLoanState;

/* What bridge_output found. */
typedef enum BridgeFound {
  BRIDGE_OUTPUT_FAILED = 0,
  BRIDGE_OUTPUT_ABSENT = 1, /* nobody uses this output */
  BRIDGE_OUTPUT_KNOWN = 2,  /* its elements are where Python has an array */
  BRIDGE_OUTPUT_MOVED = 3,
} BridgeFound;

/* Optional callbacks that a Python provider has. */
typedef enum BridgeFeature {
  BRIDGE_EP_KERNELS = 1,
  BRIDGE_EP_RUN_START = 2,
  BRIDGE_EP_RUN_END = 4,
  BRIDGE_EP_DYNAMIC_OPTIONS = 8,
  BRIDGE_EP_SESSION_READY = 16,
  BRIDGE_EP_ALLOCATOR = 32,
  BRIDGE_EP_SYNC = 64,
  BRIDGE_EP_CHANNELS_LAST = 128,   /* it prefers OrtEpDataLayout_NHWC */
  BRIDGE_EP_CONVERTS_LAYOUT = 256, /* it decides itself for which operators */
  BRIDGE_EP_PROFILER = 512,
  BRIDGE_EP_COMPATIBILITY = 1024,
  BRIDGE_EP_CAPTURE_ENABLED = 2048,
  BRIDGE_EP_IS_CAPTURED = 4096,
  BRIDGE_EP_REPLAY = 8192,
  BRIDGE_EP_CAPTURE_POLICY = 16384,
  BRIDGE_EP_RELEASE_GRAPH = 32768,
  BRIDGE_EP_RESOURCE = 65536,
  BRIDGE_EP_WEIGHTLESS = 131072,
  BRIDGE_EP_STREAM = 262144,
  BRIDGE_EP_DEFAULT_MEMORY = 524288,
} BridgeFeature;

/* The same for a factory: what the class of the provider has. */
typedef enum BridgeFactoryFeature {
  BRIDGE_FACTORY_STREAM_AWARE = 1,
  BRIDGE_FACTORY_COMPATIBILITY = 2,
  BRIDGE_FACTORY_INCOMPATIBILITY = 4,
  BRIDGE_FACTORY_GRAPHICS = 8,
  BRIDGE_FACTORY_IMPORTER = 16,
} BridgeFactoryFeature;

/* Questions to a provider that take one number, or none, and have one as the answer, or none. */
typedef enum BridgeAsk {
  BRIDGE_ASK_CAPTURE_ENABLED = 0,
  BRIDGE_ASK_IS_CAPTURED = 1,
  BRIDGE_ASK_REPLAY = 2,
  BRIDGE_ASK_CAPTURE_POLICY = 3,
  BRIDGE_ASK_RELEASE_GRAPH = 4,
  BRIDGE_ASK_RESOURCE = 5,
  BRIDGE_ASK_WEIGHTLESS = 6,
} BridgeAsk;

typedef enum BridgeProfilerFeature {
  BRIDGE_PROFILER_START_EVENT = 1,
  BRIDGE_PROFILER_STOP_EVENT = 2,
} BridgeProfilerFeature;

/* Optional callbacks that a Python kernel has. */
typedef enum BridgeKernelFeature {
  BRIDGE_KERNEL_PREPACK = 1,
} BridgeKernelFeature;

/* The same for an allocator. */
typedef enum BridgeAllocatorFeature {
  BRIDGE_ALLOCATOR_STATS = 1,
  BRIDGE_ALLOCATOR_STREAMS = 2,
  BRIDGE_ALLOCATOR_SHRINK = 4,
} BridgeAllocatorFeature;

typedef enum BridgeAllocKind {
  BRIDGE_ALLOC = 0,
  BRIDGE_RESERVE = 1,
  BRIDGE_ALLOC_ON_STREAM = 2,
} BridgeAllocKind;

typedef enum BridgeNotify {
  BRIDGE_ACTIVATE = 0,
  BRIDGE_WAIT_ON_DEVICE = 1,
  BRIDGE_WAIT_ON_HOST = 2,
} BridgeNotify;

/* The tables of one host. Lives as long as the process. */
typedef struct BridgeHost {
  const OrtApi* api;
  const OrtEpApi* ep_api;
  uint32_t version; /* API version of both tables: newer slots are not read */
  uint32_t index;
  int is_ours; /* it names provider and node of what fails, and lets exceptions through to Python callers */
} BridgeHost;

/* One call of a host into Python. */
typedef struct BridgeCall {
  const BridgeHost* host;
  const char* slot; /* borrows */
  const char* name; /* borrows: name of the provider or of the registration */
  int entered;
  int ok;
  int code;   /* OrtErrorCode of the failure */
  char* text; /* set by bridge_fail, freed when the call ends */
} BridgeCall;

/* What an author has for the time of a run, and what it was like when lent: one object or, for an array, that
 * and those that its memory hangs on. Whatever refers to its elements refers to one of them. */
typedef struct BridgeLoan {
  size_t count;
  uintptr_t objects[BRIDGE_LENT_OBJECTS]; /* borrows */
  uintptr_t weak[BRIDGE_LENT_OBJECTS];    /* where each one's list of weak references is; 0: it has none */
  intptr_t references[BRIDGE_LENT_OBJECTS];
  int is_array; /* the first is one */
  int is_odd;   /* of too many dimensions to be looked at */
  intptr_t fields[BRIDGE_LENT_FIELDS];
} BridgeLoan;

/* Where the elements of an input are, and where they go if authors get copies (to: NULL if not). */
typedef struct BridgeCopy {
  const void* from;
  void* to;
  size_t bytes;
} BridgeCopy;

/* One run of a node. Kept by the node from run to run, so that equal inputs are seen as such. */
typedef struct BridgeRun {
  BridgeCall call;
  OrtKernelContext* context;
  size_t num_inputs;
  size_t num_outputs;
  const OrtValue** values; /* the inputs, NULL for absent ones */
  /* For each input: element type (0: absent, -1: not a tensor), data address, 1 if the memory is not the
   * CPU's, rank, dimensions. */
  int64_t* flat;
  size_t flat_len;
  int64_t* previous;
  size_t previous_len;
  size_t flat_capacity;
  size_t previous_capacity;
  int counted;        /* num_inputs and num_outputs are known */
  int on_device;      /* an input is in memory of a device */
  uint64_t packed;    /* bit n: input n was packed, and counts as absent */
  BridgeCopy* copies; /* one an input */
  /* Of Python, for the next run: */
  BridgeLoan** loans;
  size_t num_loans;
  struct BridgeOutput** copied_outputs; /* those with a source */
  size_t num_copied_outputs;
  int is_watched; /* the last run ended as BRIDGE_WATCHED, and the loans were as before */
} BridgeRun;

/* What Python wants to write into an output; run and dims are kept alive by Python. */
typedef struct BridgeOutput {
  BridgeRun* run;
  size_t index;
  size_t bytes;
  size_t rank;
  const int64_t* dims;
  int dtype;
  int64_t known;      /* where Python has an array for it; 0: nowhere */
  int64_t address;    /* out: of its elements */
  int absent;         /* out: nobody uses this output */
  int elsewhere;      /* out: it is not in CPU memory */
  int checked;        /* the host's output has this type, and elsewhere is known: asked once */
  const void* source; /* where Python has the elements that are copied into it after a run; NULL: nowhere */
} BridgeOutput;

/* What Python says of an allocator; memory is given to the C struct. */
typedef struct BridgeAllocatorInfo {
  uint64_t id; /* 0: no allocator */
  uint32_t features;
  OrtMemoryInfo* memory;
} BridgeAllocatorInfo;

/* An input or output of a custom operator. */
typedef struct BridgeFormal {
  int dtype; /* 0: any */
  int kind;  /* OrtCustomOpInputOutputCharacteristic */
  int min_arity;
  int homogeneous;
  int on_cpu; /* an input that is wanted in the CPU's memory */
} BridgeFormal;

/* Memory or a semaphore that a provider is to import. */
typedef struct BridgeExternal {
  int is_semaphore;
  int type; /* OrtExternalMemoryHandleType or OrtExternalSemaphoreType */
  uint64_t handle;
  size_t size;
  size_t offset;
} BridgeExternal;

typedef struct BridgeCustomOps BridgeCustomOps;

typedef struct BridgeFactoryInfo {
  uint64_t id;
  char* name;
  char* vendor;
  char* version;
  uint32_t vendor_id;
  uint32_t features;
  BridgeCustomOps* custom_ops; /* NULL: none */
} BridgeFactoryInfo;

int bridge_gate_close(void);
uint64_t bridge_unreported_errors(void);
void bridge_fail(BridgeCall* call, int code, const char* text);
char* bridge_copy_string(const char* text);
int bridge_set_factory(BridgeFactoryInfo* info, uint64_t id, const char* name, const char* vendor,
                       const char* version, uint32_t vendor_id, uint32_t features);
int bridge_add_custom_op(BridgeCall* call, BridgeFactoryInfo* info, const char* domain, const char* name,
                         int first, int last, const BridgeFormal* formals, size_t num_inputs,
                         size_t num_outputs, int infers_shapes);
OrtStatus* bridge_create_factories(uint64_t provider, const char* registered_name,
                                   const OrtApiBase* ort_api_base, const OrtLogger* default_logger,
                                   OrtEpFactory** factories, size_t max_factories, size_t* num_factories);
OrtStatus* bridge_release_factory(OrtEpFactory* factory);
OrtStatus* bridge_select_devices(const OrtEpDevice** devices, size_t num_devices,
                                 const OrtKeyValuePairs* model_metadata,
                                 const OrtKeyValuePairs* runtime_metadata, const OrtEpDevice** selected,
                                 size_t max_selected, size_t* num_selected, void* state);
OrtStatus* bridge_find_last_ep(void* state, const OrtEpDevice** device);
OrtStatus* bridge_create_kernel(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel);
OrtStatus* bridge_create_if(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel);
OrtStatus* bridge_create_loop(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel);
OrtStatus* bridge_create_scan(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel);
OrtValue* bridge_output_value(BridgeOutput* output);
int bridge_output(BridgeOutput* output);
int bridge_put(BridgeOutput* output, const void* source);
size_t bridge_array_fields(uintptr_t array, intptr_t* out);
intptr_t bridge_references(uintptr_t object);
void bridge_lend(BridgeLoan* loan, const uintptr_t* weak, int is_array, uintptr_t a, uintptr_t b, uintptr_t c,
                 uintptr_t d);
int bridge_worst_loan(BridgeLoan* const* loans, size_t count);
uint64_t bridge_stream_id(const BridgeCall* call, const OrtSyncStream* stream);
uint64_t bridge_run_stream_id(BridgeRun* run);
/* cdef end */

/* A Python object, as a struct of a host knows it. */
typedef struct BridgePeer {
  const BridgeHost* host;
  uint64_t id;
  char* name; /* of the provider */
} BridgePeer;

/* gate.c */
bool bridge_gate_enter(void);
void bridge_gate_leave(void);

/* call.c */
const BridgeHost* bridge_host_from_base(const OrtApiBase* base, const char** problem);
const BridgeHost* bridge_host_at(uint32_t index);
OrtStatus* bridge_no_memory(const BridgeHost* host, const char* slot);
BridgeCall bridge_call_begin(const BridgeHost* host, const char* slot, const char* name);
OrtStatus* bridge_call_end(BridgeCall* call);
void bridge_call_end_void(BridgeCall* call);
void bridge_fail_with_status(BridgeCall* call, OrtStatus* status);
void bridge_release(const BridgeHost* host, const char* slot, const char* name, uint64_t id);
void* bridge_peer_new(size_t size, size_t offset, const BridgeHost* host, uint64_t id, const char* name,
                      const char* slot);
void bridge_peer_free(void* made, BridgePeer* peer, const char* slot);
BridgeCall bridge_peer_call(const BridgePeer* peer, const char* slot);

/* device.c; an owner is the Python object of a factory or of a provider */
OrtStatus* bridge_allocator_new(const BridgeHost* host, const char* slot, OrtEpFactory* factory,
                                uint64_t owner, const char* name, const OrtMemoryInfo* memory_info,
                                const OrtKeyValuePairs* options, OrtAllocator** out);
void bridge_allocator_free(OrtAllocator* allocator);
bool bridge_run_wait_for_others(BridgeRun* run);
OrtStatus* bridge_transfer_new(const BridgeHost* host, uint64_t factory_id, const char* name,
                               OrtDataTransferImpl** out);
OrtStatus* bridge_stream_new(const BridgeHost* host, const char* slot, uint64_t owner, const char* name,
                             const OrtMemoryDevice* device, const OrtKeyValuePairs* options,
                             OrtSyncStreamImpl** out);

/* ep.c */
typedef struct PyEp {
  OrtEp base; /* first: the host's pointer is ours */
  BridgePeer peer;
  OrtEpFactory* factory; /* outlives the provider */
  char* compatibility;   /* what the provider last said of a compiled model */
} PyEp;

OrtStatus* bridge_ep_new(const BridgeHost* host, OrtEpFactory* factory, uint64_t id, uint32_t features,
                         const char* name, OrtEp** ep);
void bridge_ep_free(OrtEp* ep);
uint64_t bridge_ep_id(const OrtEp* ep);

/* ep_slots.c */
void bridge_ep_fill(OrtEp* ep, uint32_t features);

/* factory.c */
typedef struct PyFactory PyFactory;
struct PyFactory {
  OrtEpFactory base; /* first: the host's pointer is ours */
  const BridgeHost* host;
  BridgeFactoryInfo info;
  atomic_int users; /* the host, every OrtEp and every allocator: stock hosts can release those after it */
  void (*free)(PyFactory*); /* what the last one calls */
};

static inline void bridge_factory_use(OrtEpFactory* factory) {
  atomic_fetch_add(&((PyFactory*)factory)->users, 1);
}
static inline void bridge_factory_unuse(OrtEpFactory* factory) {
  PyFactory* owner = (PyFactory*)factory;
  if (atomic_fetch_sub(&owner->users, 1) == 1) owner->free(owner);
}

/* factory_slots.c */
void bridge_factory_fill(OrtEpFactory* factory, uint32_t features);

/* custom_op.c */
OrtStatus* bridge_custom_ops_open(const BridgeHost* host, BridgeCustomOps* ops);
void bridge_custom_ops_free(const BridgeHost* host, BridgeCustomOps* ops);
void bridge_custom_ops_fill(OrtEpFactory* factory);

/* importer.c */
OrtStatus* bridge_importer_new(const BridgeHost* host, uint64_t factory_id, const char* name,
                               const OrtEpDevice* ep_device, OrtExternalResourceImporterImpl** out);

/* profiler.c */
OrtStatus* bridge_profiler_new(const BridgeHost* host, uint64_t ep_id, const char* name,
                               OrtEpProfilerImpl** out);

/* node.c */
OrtStatus* bridge_compute_info_new(const BridgeHost* host, uint64_t id, const char* name,
                                   OrtNodeComputeInfo** info);
void bridge_compute_info_free(OrtNodeComputeInfo* info);

/* run.c */
bool bridge_run_gather(BridgeRun* run, OrtKernelContext* context, bool* same);
void bridge_run_clear(BridgeRun* run);

/* lend.c */
void bridge_run_copy_inputs(const BridgeRun* run);
bool bridge_run_copy_outputs(const BridgeRun* run);

/* Written in Python: in callbacks.py of the sub-package of ort_abi/ep that has the name of the C file that
 * calls; those of selection.c in ort_abi/_selection.py and _last_provider.py. All return 1 for success: 0 is
 * what comes back when an exception escapes or when no Python code is attached, and must never read as
 * success. */
int bridge_py_create_factory(BridgeCall* call, uint64_t provider, const char* registered_name,
                             const OrtLogger* logger, BridgeFactoryInfo* info);
int bridge_py_supported_devices(BridgeCall* call, uint64_t factory, OrtEpFactory* handle,
                                const OrtHardwareDevice* const* devices, size_t num_devices,
                                OrtEpDevice** ep_devices, size_t max_ep_devices, size_t* num_ep_devices);
int bridge_py_create_ep(BridgeCall* call, uint64_t factory, const OrtHardwareDevice* const* devices,
                        size_t num_devices, const OrtSessionOptions* options, const OrtLogger* logger,
                        uint64_t* id, uint32_t* features);
int bridge_py_select_devices(BridgeCall* call, uint64_t delegate, const OrtEpDevice** devices,
                             size_t num_devices, const OrtKeyValuePairs* model_metadata,
                             const OrtKeyValuePairs* runtime_metadata, const OrtEpDevice** selected,
                             size_t max_selected, size_t* num_selected);
int bridge_py_find_last_ep(BridgeCall* call, const OrtEpDevice** device);
int bridge_py_get_capability(BridgeCall* call, uint64_t ep, const OrtGraph* graph,
                             OrtEpGraphSupportInfo* info);
int bridge_py_compile(BridgeCall* call, uint64_t ep, const OrtGraph** graphs, const OrtNode** fused_nodes,
                      size_t count, uint64_t* ids, OrtNode** context_nodes);
int bridge_py_get_kernel_registry(BridgeCall* call, uint64_t ep, const OrtKernelRegistry** registry);
int bridge_py_run_start(BridgeCall* call, uint64_t ep, const OrtRunOptions* options);
int bridge_py_run_end(BridgeCall* call, uint64_t ep, const OrtRunOptions* options, int sync_stream);
int bridge_py_set_dynamic_options(BridgeCall* call, uint64_t ep, const char* const* keys,
                                  const char* const* values, size_t count);
int bridge_py_session_ready(BridgeCall* call, uint64_t ep);
int bridge_py_create_kernel(BridgeCall* call, uint64_t definition, const OrtKernelInfo* info, uint64_t* id,
                            uint32_t* features);
int bridge_py_prepack(BridgeCall* call, uint64_t kernel, const OrtValue* tensor, int index,
                      OrtAllocator* allocator, OrtSharedPrePackedWeightCache* cache, int* packed);
int bridge_py_set_shared(BridgeCall* call, uint64_t kernel, const void* const* buffers, const size_t* sizes,
                         size_t count, int index);
int bridge_py_compute(uint64_t id, int what, BridgeRun* run);
int bridge_py_again(uint64_t id);
int bridge_py_ep_sync(BridgeCall* call, uint64_t ep);
int bridge_py_should_convert(BridgeCall* call, uint64_t ep, const char* domain, const char* op_type,
                             int* answer);
int bridge_py_default_memory_device(BridgeCall* call, uint64_t ep, const OrtMemoryDevice** device);
int bridge_py_create_allocator(BridgeCall* call, uint64_t owner, const OrtMemoryInfo* memory,
                               const OrtKeyValuePairs* options, BridgeAllocatorInfo* info);
int bridge_py_alloc(BridgeCall* call, uint64_t allocator, size_t size, int kind, uint64_t stream,
                    uint64_t* address);
int bridge_py_free(BridgeCall* call, uint64_t allocator, uint64_t address);
int bridge_py_get_stats(BridgeCall* call, uint64_t allocator, OrtKeyValuePairs** out);
int bridge_py_shrink(BridgeCall* call, uint64_t allocator);
int bridge_py_create_data_transfer(BridgeCall* call, uint64_t factory, uint64_t* id);
int bridge_py_can_copy(BridgeCall* call, uint64_t transfer, const OrtMemoryDevice* source,
                       const OrtMemoryDevice* target, int* yes);
int bridge_py_copy_tensors(BridgeCall* call, uint64_t transfer, const OrtValue** sources, OrtValue** targets,
                           OrtSyncStream** streams, size_t count);
int bridge_py_create_sync_stream(BridgeCall* call, uint64_t owner, const OrtMemoryDevice* device,
                                 const OrtKeyValuePairs* options, uint64_t* id);
int bridge_py_stream_handle(BridgeCall* call, uint64_t stream, uint64_t* handle);
int bridge_py_stream_flush(BridgeCall* call, uint64_t stream);
int bridge_py_stream_run_end(BridgeCall* call, uint64_t stream);
int bridge_py_create_notification(BridgeCall* call, uint64_t stream, uint64_t* id);
int bridge_py_notify(BridgeCall* call, uint64_t notification, int what, uint64_t consumer);
int bridge_py_ep_ask(BridgeCall* call, uint64_t ep, int what, int64_t argument, int64_t* answer);
int bridge_py_model_compatibility(BridgeCall* call, uint64_t ep, const OrtGraph* graph, char** text);
int bridge_py_validate_compatibility(BridgeCall* call, uint64_t factory,
                                     const OrtHardwareDevice* const* devices, size_t num_devices,
                                     const char* text, int* answer);
int bridge_py_incompatibility(BridgeCall* call, uint64_t factory, const OrtHardwareDevice* device,
                              OrtDeviceEpIncompatibilityDetails* details);
int bridge_py_init_graphics(BridgeCall* call, uint64_t factory, const OrtEpDevice* device,
                            const OrtGraphicsInteropConfig* config);
int bridge_py_select_model(BridgeCall* call, uint64_t factory, const OrtHardwareDevice* device,
                           const OrtKeyValuePairs* const* candidates, size_t num_candidates,
                           const OrtSessionOptions* options, size_t* index);
int bridge_py_find_kernel(BridgeCall* call, uint64_t ep, const char* domain, const char* op_type,
                          int since_version, uint64_t* state);
int bridge_py_infer_shapes(BridgeCall* call, uint64_t factory, size_t op, OrtShapeInferContext* context);
int bridge_py_concat(BridgeCall* call, uint64_t ep, uint64_t stream_handle, const OrtValue* const* values,
                     size_t count, uint64_t output, size_t size);
int bridge_py_transpose(BridgeCall* call, uint64_t ep, const size_t* permutation, size_t count,
                        const OrtValue* source, uint64_t stream, OrtValue* target);
int bridge_py_create_importer(BridgeCall* call, uint64_t factory, const OrtEpDevice* device, uint64_t* id);
int bridge_py_can_import(BridgeCall* call, uint64_t importer, const BridgeExternal* what, int* yes);
int bridge_py_import(BridgeCall* call, uint64_t importer, const BridgeExternal* what, uint64_t* id);
int bridge_py_imported_tensor(BridgeCall* call, uint64_t memory, int element_type, const int64_t* shape,
                              size_t rank, size_t offset, OrtValue** tensor);
int bridge_py_semaphore(BridgeCall* call, uint64_t semaphore, uint64_t stream, uint64_t value, int is_signal);
int bridge_py_create_profiler(BridgeCall* call, uint64_t ep, uint64_t* id, uint32_t* features);
int bridge_py_start_profiling(BridgeCall* call, uint64_t profiler, int64_t offset_ns);
int bridge_py_start_event(BridgeCall* call, uint64_t profiler, uint64_t event_id);
int bridge_py_stop_event(BridgeCall* call, uint64_t profiler, uint64_t event_id,
                         const OrtProfilingEvent* event);
int bridge_py_end_profiling(BridgeCall* call, uint64_t profiler, OrtProfilingEventsContainer* events);
int bridge_py_release(BridgeCall* call, uint64_t id);

#endif
