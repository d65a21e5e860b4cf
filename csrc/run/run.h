/* run: how a model runs. Kernels and their registries, which EP takes which node (partition), what is called
 * in which order (plan), and the sessions that do it.
 *
 * A session is made on one thread and is constant afterwards, except for its frames, its counters and
 * `serial`: Run needs no lock. */
#ifndef ORT_ABI_RUN_H
#define ORT_ABI_RUN_H

#include <pthread.h>

#include "ort_abi_host.h"
#include "plugins/plugins.h"

typedef struct Unit Unit;
typedef struct Frame Frame;
typedef struct Profiler Profiler;
typedef struct Plan Plan;
typedef struct GraphCapture GraphCapture;

/* ---- kernel_def.c: what a kernel can do ---- */

struct OrtDataType {
  ONNXTensorElementDataType type;
};

typedef struct KernelConstraint {
  char* name; /* a type parameter of the op's schema ("T"), or the name of an input or output without one */
  uint64_t types; /* bit n: element type n */
} KernelConstraint;

typedef struct KernelAlias {
  int input, output;
  bool in_place; /* the output may be written over the input; else it is the input under another shape */
} KernelAlias;

typedef struct KernelMemType {
  size_t index;
  bool is_output;
  OrtMemType type;
} KernelMemType;

/* Constant once KernelDefBuilder_Build gave it. */
struct OrtKernelDef {
  _Atomic int references;
  char *op_type, *domain, *ep_name; /* domain "" is ai.onnx */
  int since_start, since_end;       /* INT_MAX: open */
  KernelConstraint* constraints;
  size_t constraint_count, constraint_capacity;
  KernelAlias* aliases;
  size_t alias_count, alias_capacity;
  KernelMemType* mem_types;
  size_t mem_type_count, mem_type_capacity;
};
OrtKernelDef* kernel_def_retain(const OrtKernelDef* def);
void kernel_def_release(OrtKernelDef* def);

/* ---- kernel_registry.c ---- */

typedef struct KernelEntry {
  OrtKernelDef* def; /* a reference */
  OrtKernelCreateFunc create;
  void* create_state; /* the plugin's */
  size_t next;        /* of the same op_type: its place + 1; 0 ends the list */
} KernelEntry;

struct OrtKernelRegistry {
  KernelEntry* entries;
  size_t count, capacity;
  NameMap by_op_type; /* op_type -> place of its first entry + 1 */
};
/* gives (caller releases with kernel_registry_release): a copy that the plugin cannot change; NULL: no
 * memory. */
OrtKernelRegistry* kernel_registry_copy(const OrtKernelRegistry* registry);
void kernel_registry_release(OrtKernelRegistry* registry);
/* keeps alive `def`. Entries of one op_type stay in the order in which they came. False when out of memory.
 */
bool kernel_registry_add(OrtKernelRegistry* registry, const OrtKernelDef* def, OrtKernelCreateFunc create,
                         void* create_state);
/* The entry for a node (domain, op, since-version, EP name, types), or NULL with `why` (may be NULL) appended
 * to: what the EP has instead, such as "has no kernel for Mul". borrows. */
const KernelEntry* kernel_registry_find(const OrtKernelRegistry* registry, const char* ep_name,
                                        const OrtNode* node, StrBuf* why);

/* ---- session_ep.c: an EP of one session ---- */

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
/* Makes the EP of `devices` (all of one factory; borrowed from the environment) and asks it for its kernels.
 * On failure there is nothing to close. */
OrtStatus* session_ep_open(OrtSession* session, const OrtEpDevice* const* devices, size_t device_count,
                           SessionEp* out);
void session_ep_close(SessionEp* ep); /* releases */
/* OrtEp::Sync, if the EP has it: waits for all that it works on. Any thread. */
OrtStatus* session_ep_sync(const SessionEp* ep);
/* takes `cause`, a failure that a plugin reported; gives it with the context in front. A plugin that says
 * "OK" in a status has failed all the same. */
OrtStatus* ep_failure(OrtStatus* cause, const char* format, ...) PRINTF_LIKE(2, 3);

/* ---- placement.c: the memories of a session ---- */

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
/* Adds the host's place, before any other. */
void place_host(OrtSession* session);
/* Finds or adds the place of an EP that was just opened, and adds its stream. */
OrtStatus* place_ep(OrtSession* session, SessionEp* ep);
void places_close(OrtSession* session); /* releases the allocators, before the EPs close */
/* Where `unit` wants its input (or makes its output) `index`: host memory for strings and what its kernel
 * definition says, else the EP's place. */
int32_t place_wanted(const Unit* unit, size_t index, bool is_output, const OrtValueInfo* value);
/* An initializer in a device's memory, once a session: what kernels see, pack and read. */
typedef struct DeviceCopy {
  int32_t place;
  OrtValueInfo* weight;
  OrtValue* value; /* owned */
  struct DeviceCopy *next_of_value, *next_of_session;
} DeviceCopy;
/* The initializer of `weight` at a place; NULL: it was not put there. borrows: as long as the session. */
OrtValue* constant_at(const OrtValueInfo* weight, int32_t place);
/* Puts initializers where a kernel that is to be created reads them. */
OrtStatus* upload_constants_of(OrtSession* session, const Unit* unit);
/* Puts initializers where the plans read them, and releases those of the host that none reads there. */
OrtStatus* upload_constants(OrtSession* session);

/* ---- custom_kernel.c: operators of custom op domains ---- */

/* Adds the operators of the options' domains to the model, and their kernels to the registries of the EPs
 * that they are for, behind the EPs' own. */
OrtStatus* session_add_custom_ops(OrtSession* session);
/* Says of a custom operator's node, which nobody took, whose it would be. */
void describe_custom_op(StrBuf* text, const OrtSession* session, const OrtNode* node);

/* ---- partition.c: which EP takes which node ---- */

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

/* Asks the session's EPs in order about every graph, subgraphs first, and sets OrtNode::assignment and
 * ep_name. When nodes are left, the last EP of the options joins the session and is asked. */
OrtStatus* partition_model(OrtSession* session);
static inline Unit* node_unit(const OrtNode* node) {
  return node->assignment;
}

/* ---- not_taken.c: which nodes an EP did not take, and why ---- */

/* "'name' (Op, ai.onnx, version 14)"; of a node without a name: "that makes 'output' (Op, ...)" */
void describe_node(StrBuf* text, const OrtNode* node);
/* An error that lists the nodes that nobody takes, in subgraphs too, and why not. */
OrtStatus* refuse_unclaimed(const OrtSession* session);
/* Logs (if the session's log is verbose) and records (if it is to) what EPs left to those behind them. */
OrtStatus* note_not_taken(OrtSession* session);
typedef struct NotTaken {
  OrtAbiNotTaken* entries; /* texts are in the session's arena */
  size_t count, capacity;
} NotTaken;

/* ---- layout.c: EPs that want channels last ---- */

/* Asks the EP which layout it prefers. */
OrtStatus* layout_ask(SessionEp* ep);
/* Converts the nodes that `info->ep` has claimed and wants with channels last. *changed: the claims are void,
 * the EP must be asked about the graph again. */
OrtStatus* layout_convert(const OrtEpGraphSupportInfo* info, bool* changed);
/* An error if the EP did not claim, the second time, a node that was converted for it. */
OrtStatus* layout_check(const OrtEpGraphSupportInfo* info);

/* ---- graph_order.c ---- */

/* The order in which `graph`'s units (and nodes without one) can run: `order` gets the first node of each.
 * *cycle: NULL, or the newest claim of several nodes on a cycle (then `order` is not complete). `order` has
 * room for all nodes of the graph. */
OrtStatus* graph_order(const OrtGraph* graph, OrtNode** order, size_t* order_count, Unit** cycle);

/* True if a node outside lies between nodes of the claim, which has them and lists them in the graph's
 * order: they cannot be fused, whatever else is claimed. */
OrtStatus* claim_is_split(const Unit* claim, bool* split);

/* ---- compile.c: from claims to something that runs ---- */

/* Compiles the claimed groups, creates states and kernels. Errors name EP, node and op. */
OrtStatus* compile_units(OrtSession* session);
void unit_close(Unit* unit); /* releases state and kernel */

/* ---- prepacked_container.c: packed weights that kernels share ---- */

/* The buffers of one packed weight; memory of the CPU allocator. */
typedef struct PackedBuffers {
  void** data; /* one block with `sizes` */
  size_t* sizes;
  size_t count;
} PackedBuffers;
/* takes the buffers on success; copies the arrays. */
OrtStatus* packed_buffers_copy(void* const* data, const size_t* sizes, size_t count, PackedBuffers* out);
void packed_buffers_release(PackedBuffers* buffers); /* releases */

/* gives (caller releases with packed_container_release); NULL: no memory. */
OrtPrepackedWeightsContainer* packed_container_new(void);
/* keeps alive; NULL is fine. gives back `container`. */
OrtPrepackedWeightsContainer* packed_container_retain(OrtPrepackedWeightsContainer* container);
void packed_container_release(OrtPrepackedWeightsContainer* container); /* NULL is fine */
/* takes `buffers`, also on failure. *out: the buffers of an equal weight that the same operator packed
 * before, or these. borrows: as long as the container. Any thread. */
OrtStatus* packed_container_share(OrtPrepackedWeightsContainer* container, const OrtNode* node,
                                  PackedBuffers* buffers, const PackedBuffers** out);

/* ---- prepack.c ---- */

/* Lets kernels pack their constant inputs, and releases initializers that neither they nor fused nodes read
 * after that. */
OrtStatus* prepack_weights(OrtSession* session);

/* ---- kernel_info.c ---- */

struct OrtKernelInfo {
  const OrtSession* session;
  const SessionEp* ep;
  const OrtNode* node;
  bool is_copy; /* CopyKernelInfo: on the heap */
};

/* ---- plan.c ---- */

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
/* Plans the main graph and, before it, the subgraphs that kernels run. */
OrtStatus* plan_build(OrtSession* session);
/* The input specs of a subgraph's plan from this one on are captured values. */
static inline size_t plan_captured(const Plan* plan) {
  return plan->required_count;
}

/* ---- plan_order.c ---- */

/* Fills in Step::waits and notifications, and Slot::is_held: what work on streams needs to be in order. */
OrtStatus* plan_order(OrtSession* session, Plan* plan);

/* ---- frame.c: the memory of one Run ---- */

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
/* gives (caller releases with frame_put). Any thread. NULL: no memory. */
Frame* frame_get(OrtSession* session, Plan* plan);
void frame_put(Frame* frame);  /* releases: the values of the run, and keeps the frame for the next one */
void frame_free(Frame* frame); /* releases */
/* Frees what idle frames keep in a place. Any thread. */
void frames_drop_buffers(OrtSession* session, int32_t place);
/* Makes the value of an intermediate slot in the frame's own memory; strings on the heap. `reuse`: a slot
 * whose buffer is taken over, or -1. */
OrtStatus* frame_make(Frame* frame, int32_t slot, size_t rank, const int64_t* dims, int32_t reuse);
void frame_drop(Frame* frame, int32_t slot); /* releases an intermediate's value */

/* ---- assignment.c: what Session_GetEpGraphAssignmentInfo shows ---- */

typedef struct AssignmentInfo {
  const OrtEpAssignedSubgraph** subgraphs; /* in the session's arena */
  size_t count;
} AssignmentInfo;
OrtStatus* assignment_record(OrtSession* session);

/* ---- session.c ---- */

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

/* Opens the last EP of the options as another EP of the session; *added is false if there is none that is
 * new. */
OrtStatus* session_add_last_ep(OrtSession* session, bool* added);

/* ---- session_model.c: the user's changes to a model before EPs see it ---- */

/* Free-dimension overrides of the session options. An error if they replace initializers that the model does
 * not have. */
OrtStatus* session_adapt_model(OrtSession* session);

/* ---- executor.c ---- */

/* What a run says that the client stopped: stock ORT's words, which clients look for. */
#define RUN_TERMINATED "Exiting due to terminate flag being set to true."

OrtStatus* session_run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
                       const OrtValue* const* inputs, size_t input_count, const char* const* output_names,
                       size_t output_count, OrtValue** outputs, const OrtMemoryInfo* const* output_memories);
/* The steps of a bound frame's plan, and around them what values on devices need. */
OrtStatus* frame_run(Frame* frame);
/* releases what a run left in the frame; what the caller gave stays the caller's. */
void frame_clean(Frame* frame, bool has_failed);

/* What a bound frame's run does: frame_run, and before and after it what EPs do. */
OrtStatus* run_bound(Frame* frame);

/* ---- shrink.c: runs that give memory back ---- */

/* An error if the run options ask for something else than there is. */
OrtStatus* shrink_check(const OrtSession* session, const OrtRunOptions* options);
/* Gives back what nobody uses where the (checked) options say so. The run is done: a failure is logged. */
void shrink_after(OrtSession* session, const OrtRunOptions* options);

/* ---- graph_capture.c: runs that an EP records and replays ---- */

/* Finds the EP that captures graphs. An error if it cannot with this model. */
OrtStatus* graph_capture_open(OrtSession* session);
void graph_capture_close(OrtSession* session); /* releases the frames of the graphs */
/* Replays the graph that the run options name, or runs until the EP has captured it. */
OrtStatus* graph_capture_run(Frame* frame);

/* ---- run_devices.c: a Run with values on devices ---- */

/* The frame's stream `stream`, if memory of the place may be allocated on it; else NULL. borrows. */
OrtSyncStream* stream_for_memory(const Frame* frame, int32_t stream, int32_t place);

static inline bool frame_has_devices(const Frame* frame) {
  return frame->session->place_count > 1 || frame->has_device_values;
}
/* Opens the streams and puts inputs where they are read. After a failure too, devices_end is called. */
OrtStatus* devices_begin(Frame* frame);
OrtStatus* devices_wait(Frame* frame, const Step* step);   /* before a step that has waits */
OrtStatus* devices_notify(Frame* frame, const Step* step); /* behind a step that has a notification */
OrtStatus* devices_copy(Frame* frame, const Step* step);   /* what a copy step does */
/* Copies outputs to where the caller wants them. */
OrtStatus* devices_fetch(Frame* frame);
/* takes `status` of the run so far. Waits for all work, tells the EPs; a first failure is given. */
OrtStatus* devices_end(Frame* frame, OrtStatus* status);
/* gives a copy of `source` in `*out`, or fills the value there: shapes must be equal. */
OrtStatus* copy_to_output(Frame* frame, const OutputSpec* spec, const OrtValue* source,
                          const OrtMemoryInfo* memory, OrtSyncStream* stream, OrtValue** out);
/* run_inputs.c: checks what the caller gave and puts it in the frame. */
OrtStatus* bind_inputs(Frame* frame, const char* const* names, const OrtValue* const* values, size_t count);
OrtStatus* bind_outputs(Frame* frame, const char* const* names, OrtValue* const* values, size_t count);
/* run_subset.c: for a bound frame that lacks demanded inputs. Sets Frame::is_skipped, so that what the wanted
 * outputs do not need does not run. An error if they need a missing input. */
OrtStatus* skip_unneeded(Frame* frame);

#endif
