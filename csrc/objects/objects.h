/* objects: what a client creates and releases. Key-value pairs, memory infos, allocators, types, values,
 * options. */
#ifndef ORT_ABI_OBJECTS_H
#define ORT_ABI_OBJECTS_H

#include <stdatomic.h>

#include "base/base.h"
#include "ort_abi_host.h"
#include "plugin_calls.h"

/* ---- keyvalue.c ---- */

struct OrtKeyValuePairs {
  char** keys;   /* sorted, owned */
  char** values; /* owned */
  size_t count, keys_capacity, values_capacity;
};
OrtKeyValuePairs* key_values_new(void); /* gives (caller releases with key_values_release); NULL: no memory */
void key_values_release(OrtKeyValuePairs* pairs);
OrtKeyValuePairs* key_values_copy(const OrtKeyValuePairs* pairs); /* gives; NULL `pairs` gives an empty one */
/* copies both. Replaces a value of the same key. False when out of memory, nothing changed. */
bool key_values_set(OrtKeyValuePairs* pairs, const char* key, const char* value);
const char* key_values_get(const OrtKeyValuePairs* pairs, const char* key); /* borrows; NULL if absent */
/* copies both, as an entry of session or run options: keys have 1 to 1024 bytes as in stock ORT, values may
 * have 1 MiB (more than in stock: they hold JSON). */
OrtStatus* config_entry_set(OrtKeyValuePairs* config, const char* key, const char* value, const char* slot);
bool key_values_equal(const OrtKeyValuePairs* a, const OrtKeyValuePairs* b);

/* ---- memory_info.c ---- */

struct OrtMemoryDevice {
  OrtMemoryInfoDeviceType device_type;
  OrtDeviceMemoryType memory_type;
  uint32_t vendor_id;
  uint32_t device_id;
  size_t alignment;
};
struct OrtMemoryInfo {
  char* name;
  OrtAllocatorType allocator_type;
  OrtMemType mem_type;
  OrtMemoryDevice device;
};
extern const OrtMemoryInfo memory_info_cpu;                 /* "Cpu", device allocator, OrtMemTypeDefault */
extern const OrtMemoryInfo memory_info_cpu_arena;           /* the same, of a session that may use an arena */
OrtMemoryInfo* memory_info_copy(const OrtMemoryInfo* info); /* gives; NULL: no memory */
void memory_info_release(OrtMemoryInfo* info);              /* leaves these two alone */
bool memory_info_equal(const OrtMemoryInfo* a, const OrtMemoryInfo* b);
/* Type, memory type, vendor and device id; alignment does not count. */
bool memory_device_equal(const OrtMemoryDevice* a, const OrtMemoryDevice* b);
/* True when the CPU may read and write the memory: the CPU's own, or a device's host-accessible one. */
bool memory_device_is_host(const OrtMemoryDevice* device);

/* ---- allocator.c ---- */

/* borrows: the process-wide CPU allocator (MEM_ALIGNMENT), never released. */
OrtAllocator* allocator_cpu(void);
/* borrows: the same memory, as sessions give it that may use an arena: its info is memory_info_cpu_arena. */
OrtAllocator* allocator_cpu_arena(void);
/* True for both. */
bool allocator_is_cpu(const OrtAllocator* allocator);
/* NULL with no log when the allocator has no memory. */
void* allocator_alloc(OrtAllocator* allocator, size_t size);
void allocator_free(OrtAllocator* allocator, void* block);
/* True when the version the allocator says it has is at least `since`: later members are never read. */
bool allocator_has(const OrtAllocator* allocator, uint32_t since);
/* Memory that lives long and is no arena's to reuse; Alloc where the allocator has no Reserve (API 18). */
void* allocator_reserve(OrtAllocator* allocator, size_t size);
/* True when it orders by stream what memory is used for (API 23). */
bool allocator_knows_streams(const OrtAllocator* allocator);
/* Memory for work on `stream` (NULL: for anybody); Alloc where the allocator knows no streams (API 23). */
void* allocator_alloc_on_stream(OrtAllocator* allocator, size_t size, OrtSyncStream* stream);
/* Gives unused memory back to the device; nothing to do where the allocator has no Shrink (API 25). */
OrtStatus* allocator_shrink(OrtAllocator* allocator);

/* Memory of an EP's allocator can outlive the caller's interest in the EP: who holds a block of it keeps
 * alive the EP's library. The environment, which knows libraries, installs how; `hold` gives NULL for an
 * allocator that belongs to none. */
typedef struct AllocatorKeeper {
  void* (*hold)(OrtAllocator* allocator);
  void (*drop)(void* held);
} AllocatorKeeper;
/* borrows `keeper`, which lives as long as the process. */
void allocator_set_keeper(const AllocatorKeeper* keeper);
void* allocator_hold(OrtAllocator* allocator);
void allocator_drop(void* held); /* NULL is fine */
/* gives (caller releases with ReleaseAllocator): the same allocator, which keeps alive its EP's library. */
OrtStatus* allocator_lend(OrtAllocator* allocator, OrtAllocator** out);
/* borrows: the allocator behind a lent one, or `allocator` itself. */
OrtAllocator* allocator_owner(OrtAllocator* allocator);

/* ---- type_info.c ---- */

struct OrtTensorTypeAndShapeInfo {
  ONNXTensorElementDataType element_type;
  bool has_shape;
  size_t rank;
  int64_t* dims;                  /* -1: unknown or symbolic */
  char** symbols;                 /* NULL, or one name a dimension ("" where the dimension has none) */
  const char* const* denotations; /* of a model's value, in its arena: one a dimension, "" for none; NULL */
  void* own_block; /* released with the info: what SetDimensions/SetSymbolicDimensions allocated; else NULL */
};
struct OrtSequenceTypeInfo {
  OrtTypeInfo* element;
};
struct OrtOptionalTypeInfo {
  OrtTypeInfo* element;
};
struct OrtMapTypeInfo {
  ONNXTensorElementDataType key_type;
  OrtTypeInfo* value;
};
struct OrtTypeInfo {
  ONNXType kind;
  char* denotation;                  /* NULL: none */
  OrtTensorTypeAndShapeInfo* tensor; /* tensors and sparse tensors */
  OrtSequenceTypeInfo sequence;
  OrtOptionalTypeInfo optional;
  OrtMapTypeInfo map;
};
/* All of the following allocate in `arena`, or on the heap when `arena` is NULL (then type_info_release
 * releases). NULL: no memory. `dims` and `symbols` may be NULL and are copied; has_shape false: rank and dims
 * are ignored. */
OrtTensorTypeAndShapeInfo* shape_info_new(Arena* arena, ONNXTensorElementDataType element_type,
                                          bool has_shape, size_t rank, const int64_t* dims,
                                          const char* const* symbols);
void shape_info_release(OrtTensorTypeAndShapeInfo* info);
OrtTypeInfo* type_info_new(Arena* arena, ONNXType kind);
/* takes `tensor` / `element` (same arena or heap). */
OrtTypeInfo* type_info_new_tensor(Arena* arena, ONNXType tensor_or_sparse, OrtTensorTypeAndShapeInfo* tensor);
OrtTypeInfo* type_info_new_container(Arena* arena, ONNXType sequence_or_optional, OrtTypeInfo* element);
OrtTypeInfo* type_info_new_map(Arena* arena, ONNXTensorElementDataType key_type, OrtTypeInfo* value);
OrtTypeInfo* type_info_copy(Arena* arena, const OrtTypeInfo* info);
void type_info_release(OrtTypeInfo* info);
/* gives a copy on the heap (caller releases with ReleaseTypeInfo). */
OrtStatus* type_info_give(const OrtTypeInfo* info, OrtTypeInfo** out);
/* "tensor(float)", "seq(tensor(int64))", ...: ONNX's way to write types; for tensors without the shape.
 * gives (caller releases with mem_free). */
char* type_info_text(const OrtTypeInfo* info);
/* "float", "int64", ... as ONNX writes element types; "undefined" for an unknown number. */
const char* element_type_name(ONNXTensorElementDataType type);
/* The type that ONNX files number so (TensorProto.DataType); UNDEFINED for 0 and for unknown numbers. */
ONNXTensorElementDataType element_type_of_proto(uint64_t number);
/* The reverse of "float"; UNDEFINED if there is none. */
ONNXTensorElementDataType element_type_of_name(const char* name, size_t length);

/* ---- value.c, value_string.c ---- */

#define VALUE_INLINE_RANK 6

typedef struct StringElement {
  char* text; /* owned; NULL for "" */
  size_t length;
} StringElement;

struct OrtValue {
  ONNXType kind; /* ONNX_TYPE_TENSOR so far */
  ONNXTensorElementDataType element_type;
  size_t rank;
  int64_t* dims; /* inline_dims or a heap block */
  int64_t inline_dims[VALUE_INLINE_RANK];
  size_t element_count;
  size_t size_bytes;
  void* data;                  /* element_count StringElements for strings */
  const OrtMemoryInfo* memory; /* own_memory, an allocator's, or memory_info_cpu */
  OrtMemoryInfo* own_memory;   /* NULL or released with the value */
  OrtAllocator* allocator;     /* frees `data`; NULL: data is borrowed */
  void* held;                  /* allocator_hold */
  _Atomic int references;      /* value_retain */
};
/* Bits of one element: 32 for float, 4 for int4, ...; 0 for strings and unknown types. */
unsigned element_type_bits(ONNXTensorElementDataType type);
/* Element and byte count of a shape. ORT_INVALID_ARGUMENT for a negative dimension or overflow. */
OrtStatus* tensor_size(ONNXTensorElementDataType type, size_t rank, const int64_t* dims,
                       size_t* element_count, size_t* size_bytes);
/* gives (caller releases with value_release): a tensor whose data comes from `allocator`, which stays
 * borrowed and must outlive it. Data is not initialised (strings are ""). */
/* gives (caller releases with value_release): a value without content, for HasValue. */
OrtStatus* value_new_blank(OrtValue** out);
OrtStatus* value_new_tensor(OrtAllocator* allocator, ONNXTensorElementDataType type, size_t rank,
                            const int64_t* dims, OrtValue** out);
/* gives: a tensor over `data`. borrows `data`, or takes it when `deleter` is not NULL (freed with
 * deleter->Free). copies `memory`. `size_bytes` may be larger than needed, not smaller. */
OrtStatus* value_new_tensor_over(void* data, size_t size_bytes, const OrtMemoryInfo* memory,
                                 OrtAllocator* deleter, ONNXTensorElementDataType type, size_t rank,
                                 const int64_t* dims, OrtValue** out);
/* keeps alive: each value_retain needs one more value_release. gives back `value`. */
OrtValue* value_retain(const OrtValue* value);
void value_release(OrtValue* value);
/* releases what the value holds. It stays, as one that holds nothing (HasValue says 0, other slots give
 * errors); nobody may be using it. */
void value_clear(OrtValue* value);
/* Makes `view`, whose memory is the caller's, show what `source` holds. borrows all of that until
 * value_view_close, which leaves a value that holds nothing. */
void value_view_open(OrtValue* view, const OrtValue* source);
void value_view_close(OrtValue* view);
/* Sets a string element; copies. False when out of memory. */
bool value_set_string(OrtValue* value, size_t index, const char* text, size_t length);
/* copies the elements of one string tensor to another of as many. */
OrtStatus* value_copy_strings(const OrtValue* source, OrtValue* target);
/* gives (caller releases with value_release): a copy of a tensor in host memory. `allocator` is borrowed, as
 * by value_new_tensor; one of a device's memory is refused. */
OrtStatus* value_copy(OrtAllocator* allocator, const OrtValue* source, OrtValue** out);
/* "float[2,3]": for messages. gives (caller releases with mem_free). */
char* value_type_text(const OrtValue* value);

/* ---- custom_op_domain.c ---- */

struct OrtCustomOpDomain {
  char* name;              /* "" is ai.onnx */
  const OrtCustomOp** ops; /* owned array; the operators are whose made them */
  size_t count, capacity;
};

/* A library that RegisterCustomOpsLibrary_V2 loaded; unloaded with its last reference. */
typedef struct CustomOpLibrary CustomOpLibrary;
CustomOpLibrary* custom_op_library_retain(CustomOpLibrary* library);
void custom_op_library_release(CustomOpLibrary* library);

/* ---- options.c, session_options.c ---- */

/* The devices of one EP (SessionOptionsAppendExecutionProvider_V2), or none: the built-in CPU EP, whatever
 * environment the session will have. */
typedef struct EpSelection {
  const OrtEpDevice** devices; /* owned array; the devices belong to the environment */
  size_t count;
} EpSelection;

/* A dimension override: by name (`AddFreeDimensionOverrideByName`) or denotation. */
typedef struct DimensionOverride {
  char* name;
  bool is_denotation;
  int64_t value;
} DimensionOverride;

/* How a session that was given no EP chooses some. */
typedef struct EpPolicy {
  bool is_set;
  OrtExecutionProviderDevicePolicy policy;
  EpSelectionDelegate delegate; /* the client's; NULL: `policy` decides */
  void* delegate_state;         /* borrowed: the client keeps it alive */
} EpPolicy;

/* Who may have another EP when nodes are left: `ortabi_session_options_set_last_ep`. */
typedef struct LastEp {
  OrtAbiFindLastEp find; /* the client's, or NULL */
  void* state;           /* borrowed: the client keeps it alive */
} LastEp;

struct OrtSessionOptions {
  OrtKeyValuePairs* config; /* session config entries, EP options as "ep.<lower-case EP name>.<key>" */
  EpSelection* eps;         /* in the user's order */
  size_t ep_count, ep_capacity;
  const OrtEnv* env; /* of the EP devices; NULL without any */
  EpPolicy ep_policy;
  LastEp last_ep;
  const OrtCustomOpDomain** custom_op_domains; /* owned array; the domains are the client's or an EP's */
  size_t custom_op_domain_count, custom_op_domain_capacity;
  size_t ep_domain_count;                /* of them: the last ones, which EPs brought along */
  CustomOpLibrary** custom_op_libraries; /* references */
  size_t custom_op_library_count, custom_op_library_capacity;
  DimensionOverride* overrides;
  size_t override_count, override_capacity;
  char** initializer_names;      /* AddInitializer */
  const OrtValue** initializers; /* borrowed: the caller keeps them alive until the session is created */
  size_t initializer_count, initializer_name_capacity, initializer_capacity;
  char* log_id;
  char* profile_prefix;            /* NULL: profiling is off */
  int log_severity, log_verbosity; /* -1: the environment's */
  GraphOptimizationLevel optimization_level;
  ExecutionMode execution_mode;
  int intra_op_threads, inter_op_threads;
  bool memory_pattern, cpu_arena, deterministic, per_session_threads;
  OrtLoggingFunction logging_function;
  void* logging_param;
  const void* weightless_data; /* borrowed: SessionOptionsSetWeightlessSourceModelBuffer */
  size_t weightless_size;
  _Atomic bool load_cancelled; /* set from any thread while a session is created */
};
OrtSessionOptions* session_options_new(void);
OrtSessionOptions* session_options_copy(const OrtSessionOptions* options); /* NULL `options`: the defaults */
void session_options_release(OrtSessionOptions* options);
/* borrows `domain`. False when out of memory. */
bool session_options_add_custom_ops(OrtSessionOptions* options, const OrtCustomOpDomain* domain);
/* borrows; `fallback` if the key is absent. */
const char* session_options_config(const OrtSessionOptions* options, const char* key, const char* fallback);

struct OrtRunOptions {
  OrtKeyValuePairs* config;
  char* tag;
  int log_severity, log_verbosity; /* -1: the session's */
  _Atomic int terminate;           /* set from any thread */
  OrtSyncStream* stream;           /* borrowed */
  char* profile_prefix;            /* RunOptionsEnableProfiling; NULL: off */
};

struct OrtThreadingOptions {
  int intra_op_threads, inter_op_threads;
  bool allow_spinning, denormal_as_zero;
  char* affinity;
};

#endif
