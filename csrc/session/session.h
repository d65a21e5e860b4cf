/* session: what a session is made of. Its EPs, the memories of its values, which EP runs which nodes (units),
 * what is called in which order (plan), and what one run has (frame). `create` makes it, `run` runs it.
 *
 * A session is made on one thread and is constant afterwards, except for its frames, its counters and
 * `serial`: Run needs no lock. */
#ifndef ORT_ABI_SESSION_H
#define ORT_ABI_SESSION_H

#include <pthread.h>

#include "kernels/kernels.h"
#include "ort_abi_host.h"
#include "plugins/plugins.h"

typedef struct Unit Unit;
typedef struct Frame Frame;
typedef struct Profiler Profiler;
typedef struct Plan Plan;
typedef struct GraphCapture GraphCapture;

/* ---- EPs: session_ep.c ---- */

typedef struct SessionEp {
  OrtEp* ep;
  uint32_t version; /* to read `ep` by */
  OrtEpFactory* factory;
  const char* name;
  const OrtEpDevice* const* devices; /* each in use (ep_device_use) */
  size_t device_count, used_device_count;
  OrtKernelRegistry* registry; /* own copy; NULL: no kernels */
  OrtNodeComputeInfo** compute_infos;
  size_t compute_info_count, compute_info_capacity;
  OrtStatus*(ORT_API_CALL* on_run_start)(OrtEp*, const OrtRunOptions*); /* NULL: none */
  OrtStatus*(ORT_API_CALL* on_run_end)(OrtEp*, const OrtRunOptions*, bool);
  bool is_concurrent;
  bool wants_channels_last;
  int32_t place;  /* where its values live, of OrtSession::places */
  int32_t stream; /* what its work runs on, of OrtSession::streams; 0: the calling thread */
} SessionEp;
/* OrtEp::Sync, if the EP has it: waits for all that it works on. Any thread. */
OrtStatus* session_ep_sync(const SessionEp* ep);
/* takes `cause`, a failure that a plugin reported; gives it with the context in front. A plugin that says
 * "OK" in a status has failed all the same. */
OrtStatus* ep_failure(OrtStatus* cause, const char* format, ...) PRINTF_LIKE(2, 3);

/* ---- Memories: place.c ---- */

/* A memory that values of the session live in. Place 0 is the host's. */
typedef struct Place {
  const OrtMemoryInfo* memory; /* of an EP device in use */
  SessionEp* ep;               /* the first EP with it; NULL: the host's */
  OrtAllocator* allocator;     /* for intermediates */
  OrtAllocator* read_only;     /* for initializers */
  SharedAllocator* shared;     /* kept for `allocator`, if that is the environment's; NULL: nothing to keep */
  bool owns_allocator, owns_read_only; /* made by OrtEp::CreateAllocator; released through the factory */
} Place;
/* What a stream-aware EP works on. Each run has a stream of its own for it. Stream 0 is the calling thread.
 */
typedef struct SessionStream {
  SessionEp* ep;
  bool is_known; /* to the allocator of the EP's place: it may give memory to the stream */
  bool has_work; /* of a plan */
} SessionStream;
/* An initializer in a device's memory, once a session: what kernels see, pack and read. */
typedef struct DeviceCopy {
  int32_t place;
  OrtValueInfo* weight;
  OrtValue* value; /* owned */
  struct DeviceCopy *next_of_value, *next_of_session;
} DeviceCopy;
/* The initializer of `weight` at a place; NULL: it was not put there. borrows: as long as the session. */
OrtValue* constant_at(const OrtValueInfo* weight, int32_t place);
/* Where `unit` wants its input (or makes its output) `index`: host memory for strings and what its kernel
 * definition says, else the EP's place. */
int32_t place_wanted(const Unit* unit, size_t index, bool is_output, const OrtValueInfo* value);

/* ---- Units ---- */

struct OrtNodeComputeContext {
  const char* node_name;
};

/* Nodes that one EP runs together: a fused group, or one node with a kernel. */
struct Unit {
  SessionEp* ep; /* of a copy: the one that reads the result, or that made the source */
  OrtGraph* graph;
  OrtNode** nodes; /* topological order */
  size_t node_count;
  bool is_fused, drop_constants;
  bool is_copy;  /* of the plan: copies a value from one place to another */
  size_t serial; /* claims are numbered as they are made */
  OrtNode* node; /* the fused node, or the only one */
  OrtNodeComputeContext context;
  OrtNodeComputeInfo* compute; /* released through the EP */
  void* compute_state;
  const KernelEntry* kernel_entry;
  OrtKernelInfo* kernel_info; /* in the session's arena */
  OrtKernelImpl* kernel;
  bool* packed_inputs; /* which inputs the kernel packed; NULL: none */
};

/* What an EP fills in while it is asked about one graph. */
struct OrtEpGraphSupportInfo {
  OrtSession* session;
  SessionEp* ep;
  OrtGraph* graph;
  Unit** claims; /* units are in the session's arena */
  size_t count, capacity;
};
static inline Unit* node_unit(const OrtNode* node) {
  return node->assignment;
}

typedef struct NotTaken {
  OrtAbiNotTaken* entries; /* texts are in the session's arena */
  size_t count, capacity;
} NotTaken;

typedef struct AssignmentInfo {
  const OrtEpAssignedSubgraph** subgraphs; /* in the session's arena */
  size_t count;
} AssignmentInfo;

struct OrtKernelInfo {
  const OrtSession* session;
  const SessionEp* ep;
  const OrtNode* node;
  bool is_copy; /* CopyKernelInfo: on the heap */
};

/* ---- The plan ---- */

typedef enum SlotKind { SLOT_INPUT, SLOT_CONSTANT, SLOT_INTERMEDIATE, SLOT_OUTPUT } SlotKind;

/* One value of the plan's graph. */
typedef struct Slot {
  OrtValueInfo* value;
  SlotKind kind;
  ONNXTensorElementDataType element_type; /* UNDEFINED: unknown, or not a tensor */
  bool is_needed;                         /* a kernel must make it: a step, or who runs a body, reads it */
  int32_t output;                         /* SLOT_OUTPUT: place among the plan's outputs */
  int32_t place;      /* of OrtSession::places; of an input: 0, whatever the caller gives */
  int32_t stream;     /* whose work makes it; 0: it is there when the step returns */
  int32_t next_copy;  /* the next slot that shows this value in another place; -1: none */
  bool is_held;       /* work may read it after its last reader was called: kept to the end */
  OrtValue* constant; /* SLOT_CONSTANT on a device: owned */
} Slot;

/* What has to be done before a step is called. */
typedef struct Wait {
  int32_t notification;
  bool is_on_device; /* the step's stream waits, else the host does */
} Wait;

/* A subgraph of a step's node, for a kernel that runs it. */
typedef struct Body {
  Plan* plan;
  const int32_t* captured; /* for each captured input of the body: the slot that holds it outside */
} Body;

typedef struct Step {
  Unit* unit;
  const int32_t* inputs; /* slots; -1: a missing optional one */
  size_t input_count;
  size_t read_count;      /* of `inputs`: behind the node's own, what its bodies capture */
  const int32_t* outputs; /* slots; -1: not wanted */
  size_t output_count;
  const int32_t* last_used; /* intermediates that nobody needs after this step */
  size_t last_used_count;
  const int32_t*
      in_place;         /* for each output: an input slot whose memory it may take over, or -1; NULL: none */
  int32_t stream;       /* of OrtSession::streams; 0: done when the call returns */
  int32_t notification; /* activated behind the step, because somebody waits for it; -1: nobody */
  const Wait* waits;
  size_t wait_count;
  const Body* bodies; /* one a subgraph of the node; NULL: there are none, or the node is fused */
  _Atomic uint64_t runs, nanoseconds;
} Step;

typedef struct InputSpec {
  const OrtValueInfo* value;
  const char* name;
  int32_t slot;
  bool is_required;                        /* else an initializer is the default */
  bool is_demanded;                        /* required, and somebody reads it */
  bool is_read_on_host;                    /* a unit reads it as it is, in host memory */
  const OrtTensorTypeAndShapeInfo* tensor; /* what it must be; NULL: nobody can give it */
} InputSpec;

typedef struct OutputSpec {
  const OrtValueInfo* value;
  const char* name;
  int32_t slot;
  bool is_copied; /* an input or a constant: not made by a step */
  size_t first;   /* the first output that shows the same value: the graph may name one more than once */
  const OrtTensorTypeAndShapeInfo* tensor; /* what it must be; NULL: it cannot be preallocated */
} OutputSpec;

#define PLAN_FRAMES 16

/* How one graph runs: the main graph, or a subgraph of a node that a kernel runs. */
struct Plan {
  OrtGraph* graph;
  Plan* next; /* of the session */
  Step* steps;
  size_t step_count;
  Slot* slots;
  size_t slot_count;
  InputSpec* inputs; /* required ones in the graph's order, then overridable initializers; of a subgraph: all
                        in its order, then what it captures */
  size_t input_count, required_count, demanded_count;
  OutputSpec* outputs;
  size_t output_count;
  NameMap input_names, output_names; /* -> InputSpec, OutputSpec (the first one of a value) */
  size_t notification_count;
  bool has_held;
  _Atomic(Frame*) frames[PLAN_FRAMES]; /* idle ones */
};
/* The input specs of a subgraph's plan from this one on are captured values. */
static inline size_t plan_captured(const Plan* plan) {
  return plan->required_count;
}

/* ---- A run ---- */

struct OrtKernelContext {
  Frame* frame;
  const Step* step;
  const OrtLogger* logger;
};

typedef struct FrameBuffer {
  void* data;
  size_t size;
  int32_t place;
  int32_t stream; /* that used it last in `last_run`: only work on it comes after what may still go on */
  bool is_taken;
  uint64_t last_run;
} FrameBuffer;

/* One more place where the caller wants an output. */
typedef struct Repeat {
  size_t output;
  uint32_t place; /* as for Frame.output_place */
  OrtValue* copy; /* until it is handed over; NULL: the caller's value was filled */
} Repeat;

struct Frame {
  OrtSession* session;
  Plan* plan;
  const Frame* parent; /* of a subgraph's run: the frame of the run around it, which lends its streams */
  const OrtRunOptions* options; /* of the run; may be NULL */
  OrtKernelContext context;
  OrtValue** values;      /* a slot: its value now, or NULL */
  OrtValue* own;          /* a slot: where an intermediate's value lives */
  int32_t* own_buffer;    /* a slot: its buffer, or -1 */
  uint8_t* input_given;   /* an input: given in this run */
  size_t demanded_count;  /* of the inputs that were given */
  uint8_t* is_skipped;    /* a step: no wanted output needs it; NULL: all steps run */
  uint32_t* output_place; /* an output: where the caller wants it, counted from 1; 0: not wanted */
  Repeat* repeats;        /* further places of outputs */
  size_t repeat_count, repeat_capacity;
  OrtValue** copies;   /* an output that is an input or a constant: its copy, until it is handed over */
  uint8_t* is_fetched; /* an output: copied to where the caller wants it (`copies`, or the caller's value) */
  OrtValue** staged;   /* an input that lies on a device and is read in host memory: its copy */
  OrtValue* const* caller_outputs;             /* what Run was given: preallocated values, or NULL */
  const OrtMemoryInfo* const* caller_memories; /* where new outputs are to lie; NULL: in host memory */
  bool has_device_values;                      /* among what the caller gave */
  OrtSyncStream** streams;                     /* of this run; NULL: none */
  OrtSyncStream** own_streams;                 /* of the frame; NULL: not opened yet */
  Notification* notifications;                 /* open during a run */
  bool drops_buffers;   /* device buffers were used by a stream of the caller's: not kept */
  FrameBuffer* buffers; /* kept from run to run, those not used in a run are freed */
  size_t buffer_count, buffer_capacity;
  size_t* peaks; /* a place: the most bytes of buffers that a profile has seen in use */
  uint64_t run;
  Profiler* profiler; /* of the run; NULL: nobody measures. Of a subgraph's run: see `parent` */
  bool is_kept;       /* for a captured graph, which works in its memory: frame_put does nothing */
  OrtLogger run_logger;
};

/* ---- The session ---- */

struct OrtSession {
  OrtEnv* env; /* a reference */
  OrtSessionOptions* options;
  OrtLogger logger;
  Arena arena; /* everything small */
  OrtModel* model;
  uint64_t model_hash;
  SessionEp* eps;
  size_t ep_count;
  Unit** units; /* those that run, in the order of their claims */
  size_t unit_count, unit_capacity;
  size_t claim_count;
  Place* places; /* [0] is the host's */
  size_t place_count;
  SessionStream* streams; /* [0] has no EP */
  size_t stream_count;
  DeviceCopy* device_copies;
  OrtPrepackedWeightsContainer* packed_weights; /* a reference; NULL: kernels do not share */
  Plan plan;
  bool records_assignment;
  AssignmentInfo assignment;
  bool records_not_taken;
  NotTaken not_taken;
  OrtRunOptions* default_run_options;
  Profiler* profiler; /* profiler.h; NULL: the session is not profiled */
  bool has_run_hooks, is_serial;
  pthread_mutex_t
      serial; /* held through Run when an EP cannot run concurrently; a kernel may run its session */
  ForkGuard serial_fork;
  _Atomic bool is_timing;
  GraphCapture* capture; /* NULL: no EP captures graphs */
};

static inline bool frame_has_devices(const Frame* frame) {
  return frame->session->place_count > 1 || frame->has_device_values;
}

#endif
