/* plugins: who can run a model, and where. The environment, EP libraries, EP devices, hardware, shared
 * allocators. */
#ifndef ORT_ABI_PLUGINS_H
#define ORT_ABI_PLUGINS_H

#include <pthread.h>

#include "graph/graph.h"

/* ---- hardware.c ---- */

struct OrtHardwareDevice {
  OrtHardwareDeviceType type;
  uint32_t vendor_id, device_id;
  char* vendor;
  OrtKeyValuePairs* metadata;
  bool is_injected;
};
/* gives (caller releases with hardware_device_release). copies `vendor` and `metadata` (NULL: empty). NULL:
 * no memory. */
OrtHardwareDevice* hardware_device_new(OrtHardwareDeviceType type, uint32_t vendor_id, uint32_t device_id,
                                       const char* vendor, const OrtKeyValuePairs* metadata);
void hardware_device_release(OrtHardwareDevice* device);

typedef struct HardwareList {
  OrtHardwareDevice** devices; /* owned, sorted as factories see them: NPUs, GPUs, CPUs */
  size_t count, capacity;
} HardwareList;
/* takes `device` (on success). False when out of memory. */
bool hardware_list_add(HardwareList* list, OrtHardwareDevice* device);
void hardware_list_release(HardwareList* list);
/* Adds the CPU and what `sysfs_root` ("/sys") shows. What cannot be read is left out. False: out of memory.
 */
bool hardware_discover(const char* sysfs_root, HardwareList* list);

/* ---- ep_device.c ---- */

typedef struct EpLibrary EpLibrary;

struct OrtEpDevice {
  char* ep_name;
  char* ep_vendor;
  const OrtHardwareDevice* device; /* of the environment, or one that the EP made itself */
  OrtKeyValuePairs* ep_metadata;
  OrtKeyValuePairs* ep_options;
  OrtEpFactory* factory; /* of `library` */
  uint32_t
      factory_version; /* to read `factory` by: GUARD_SLOT(device->factory, device->factory_version, ...) */
  EpLibrary* library;  /* NULL until registration committed it */
  const OrtMemoryInfo* device_memory; /* borrowed, as the EP compares pointers; NULL: none */
  const OrtMemoryInfo* host_accessible_memory;
  const OrtMemoryInfo* read_only_memory;
  OrtEpDevice* next_pending; /* list of those that no library owns yet */
};
void ep_device_free(OrtEpDevice* device);
/* Once, with the environment's locks (fork.c). */
void ep_devices_guard_fork(void);
/* True when `device` was made by CreateEpDevice and is owned by nobody yet; then it is the caller's. Any
 * pointer may be asked about. */
bool ep_device_take_pending(const OrtEpDevice* device);
/* releases the devices that `factory` made and neither handed over nor released; returns how many. */
size_t ep_device_drop_pending(const OrtEpFactory* factory);

/* ORT_INVALID_ARGUMENT, naming the slot, when `device` is NULL or not one of the environment's (any more). */
OrtStatus* ep_device_check(OrtEnv* env, const OrtEpDevice* device, const char* slot);
/* Checks that `device` is one of the environment's, and keeps alive its library: until ep_device_unuse,
 * UnregisterExecutionProviderLibrary is refused. What a session calls for every device it runs on. */
OrtStatus* ep_device_use(OrtEnv* env, const OrtEpDevice* device, const char* slot);
void ep_device_unuse(const OrtEpDevice* device);
/* Sets the options that the EP gave the device, as far as the configuration does not have them yet. */
OrtStatus* ep_device_default_options(const OrtEpDevice* device, OrtKeyValuePairs* config);

/* ---- ep_custom_ops.c ---- */

/* Adds the custom op domains of the device's factory to the options of a session that uses the device.
 * borrows them: they live as long as the EP's library. On failure nothing is added. */
OrtStatus* ep_custom_ops_add(const OrtEpDevice* device, OrtSessionOptions* options);

/* ---- selection_policy.c ---- */

/* Chooses EPs for a session and adds them to `options`, which are the session's own, unless there are some or
 * the options have no policy. The application's delegate is called once, with the model's metadata. */
OrtStatus* selection_policy_apply(OrtEnv* env, const OrtModel* model, OrtSessionOptions* options);

/* ---- plugin_load.c ---- */

/* As in stock ORT. */
#define EP_MAX_FACTORIES 4
#define EP_MAX_DEVICES   8 /* a factory */

/* What keeps a library: Unregister is refused, and names them, while there is any. */
typedef enum LibraryUse {
  USE_SESSION, /* counts its devices */
  USE_STREAM,
  USE_TENSOR,    /* with memory of its allocator */
  USE_ALLOCATOR, /* that a session has of the environment's shared ones */
  USE_CALL,      /* for its time */
  LIBRARY_USE_COUNT
} LibraryUse;

/* One registered library. Lives in the environment. */
struct EpLibrary {
  char* registration_name;
  char* path;   /* absolute; NULL for the built-in CPU EP */
  void* handle; /* dlopen; NULL for the built-in CPU EP */
  ReleaseEpApiFactoryFn release_factory;
  OrtEpFactory* factories[EP_MAX_FACTORIES];
  uint32_t factory_versions[EP_MAX_FACTORIES];
  OrtDataTransferImpl* data_transfers[EP_MAX_FACTORIES]; /* NULL where the factory has none */
  size_t factory_count;
  OrtEpDevice* devices[EP_MAX_FACTORIES * EP_MAX_DEVICES]; /* owned */
  size_t device_count;
  _Atomic int uses[LIBRARY_USE_COUNT];
  OrtSyncStream* spare_streams; /* structs of released streams; under the environment's mutex */
};
/* Registers the CPU EP that is compiled in. */
OrtStatus* ep_library_register_builtin(OrtEnv* env);
/* Unregisters the last library, whoever uses it: for the end of the environment. */
void ep_library_unregister_last(OrtEnv* env);

/* ---- arena_allocator.c ---- */

enum { ARENA_NEXT_POWER_OF_TWO = 0, ARENA_SAME_AS_REQUESTED = 1 };

struct OrtArenaCfg {
  size_t max_mem;
  int extend_strategy;
  int64_t initial_chunk_size_bytes;        /* of the first region */
  int64_t max_dead_bytes_per_chunk;        /* a larger rest is cut off a chunk */
  int64_t initial_growth_chunk_size_bytes; /* of the first region after Shrink */
  int64_t max_power_of_two_extend_bytes;   /* up to here regions double */
};
/* True when there is an option of ours: "arena.<something>". NULL: none. */
bool arena_config_is_asked(const OrtKeyValuePairs* options);
/* Reads those options; NULL: the defaults. ORT_INVALID_ARGUMENT names an unknown or bad one. */
OrtStatus* arena_config_read(const OrtKeyValuePairs* options, OrtArenaCfg* out);

/* An arena of ours; its face is an OrtAllocator. */
typedef struct ArenaAllocator ArenaAllocator;
/* gives (caller releases with arena_allocator_release). borrows `plain`, which must outlive it. */
OrtStatus* arena_allocator_new(OrtAllocator* plain, const OrtArenaCfg* config, ArenaAllocator** out);
/* releases it, and all its memory to the plain allocator. */
void arena_allocator_release(ArenaAllocator* arena);
OrtAllocator* arena_allocator_face(ArenaAllocator* arena); /* borrows */
size_t arena_allocator_in_use(ArenaAllocator* arena);      /* bytes */
void arena_allocator_forget_stream(ArenaAllocator* arena, const OrtSyncStream* stream, bool is_gone);

/* ---- shared_allocator.c ---- */

typedef struct SharedAllocator {
  OrtAllocator* allocator;     /* what users get: `made`, our arena, an application's or the CPU one */
  OrtAllocator* made;          /* by the owner's factory, which releases it; NULL: by none */
  ArenaAllocator* arena;       /* ours around `made` or the CPU one; NULL: none */
  const OrtMemoryInfo* memory; /* what it was made for; lives as long as the entry */
  OrtEpDevice* owner;          /* NULL: the application registered it */
  _Atomic int uses;            /* by tensors, sessions and calls; grows under the environment's mutex */
  bool is_retired;             /* replaced or released while it is used: no longer found */
} SharedAllocator;

/* The shared allocator for a memory info, or NULL. keeps it alive until shared_allocator_unuse. `used` may
 * be NULL; *used is for the CPU's and an application's own. */
OrtAllocator* env_use_shared_allocator(OrtEnv* env, const OrtMemoryInfo* memory, LibraryUse as,
                                       SharedAllocator** used);
/* The same, once nobody replaces an allocator any more: not for runs, which find one or the other. */
OrtAllocator* env_await_shared_allocator(OrtEnv* env, const OrtMemoryInfo* memory, LibraryUse as,
                                         SharedAllocator** used);
void shared_allocator_unuse(SharedAllocator* used, LibraryUse as); /* NULL is fine */
/* The same for the moment. borrows: it lives until the application replaces or releases it. */
OrtAllocator* env_shared_allocator(OrtEnv* env, const OrtMemoryInfo* memory);
/* False for an EP's own allocator and a stream of somebody else, whom it need not know. */
bool env_allocator_takes_streams(OrtEnv* env, const OrtAllocator* allocator, const EpLibrary* library);
/* Makes the shared allocators of a device, where there are no equal ones. */
OrtStatus* shared_allocators_ensure(OrtEnv* env, OrtEpDevice* device);
/* releases those that the device owns. */
void shared_allocators_drop(OrtEnv* env, const OrtEpDevice* device);
/* releases those that no device owns: for the end of the environment. */
void shared_allocators_clear(OrtEnv* env);
/* Work of `stream` so far is done: our arenas may give to others what it used. `is_gone`: there will be no
 * more, and the stream's address means nothing from now on. */
void shared_allocators_forget_stream(OrtEnv* env, const OrtSyncStream* stream, bool is_gone);
/* How tensors keep alive the libraries of these allocators. */
extern const AllocatorKeeper shared_allocator_keeper;

/* ---- env.c ---- */

struct OrtEnv {
  OrtLogger logger;
  pthread_mutex_t mutex; /* guards all below; never held while a plugin is called */
  int references;
  void (*close)(void); /* what its last release does: releases what it owns */
  char* log_id;
  OrtKeyValuePairs* config;
  HardwareList hardware;
  EpLibrary** libraries; /* in registration order; [0] is the built-in CPU EP */
  size_t library_count, library_capacity;
  OrtEpDevice** devices; /* of all libraries, in registration order */
  size_t device_count, device_capacity;
  SharedAllocator** shared_allocators;
  size_t shared_allocator_count, shared_allocator_capacity;
};

/* Takes and releases a reference of the environment (a session keeps it alive). */
void env_retain(OrtEnv* env);
void env_release(OrtEnv* env);
/* ORT_INVALID_ARGUMENT, naming the slot, for an environment that is NULL or gone. */
OrtStatus* env_check(const OrtEnv* env, const char* function_name);
/* Adds to the reference count unless it is 0; gives the count before. */
int env_count(int change);
/* The process's environment, for slots that are given none. borrows. Not NULL, maybe not created. */
OrtEnv* env_current(void);
/* Serialises what changes the environment: creation, release, registration. Held while plugins are called;
 * recursive, so that a plugin's callback may come back to the environment on the same thread. */
void env_lock(void);
void env_unlock(void);
/* The environment's CPU EP device. borrows. */
const OrtEpDevice* env_cpu_device(OrtEnv* env);

/* ---- stream.c ---- */

typedef struct StreamWait {
  const OrtSyncStream* producer; /* compared, never followed */
  uint64_t producer_serial;
  uint64_t sync_id; /* of the producer's last notification that was waited for */
} StreamWait;

/* A stream of work on a device. Used by one thread at a time. EPs keep its address with memory that its work
 * used, maybe longer than it lives: the struct stays readable while the library is registered. */
struct OrtSyncStream {
  OrtSyncStreamImpl* impl; /* taken from the EP; NULL: released, the struct is a spare one */
  OrtMemoryDevice device;
  const OrtEpDevice* ep_device; /* its library is kept */
  _Atomic uint64_t serial;      /* no other stream of the process has it */
  _Atomic uint64_t sync_id;     /* grows with each notification activated, also from stream to stream */
  StreamWait* waits;
  size_t wait_count, wait_capacity;
  OrtSyncStream* next_spare;
};

/* takes `impl`, also when it fails. gives (caller releases with stream_release). keeps alive the environment
 * and the library of `ep_device`, which the caller has in use. */
OrtStatus* stream_new(OrtEnv* env, const OrtEpDevice* ep_device, const OrtMemoryDevice* device,
                      OrtSyncStreamImpl* impl, OrtSyncStream** out);
void stream_release(OrtSyncStream* stream);       /* waits for the stream's work; NULL is fine */
OrtStatus* stream_flush(OrtSyncStream* stream);   /* waits for the stream's work */
OrtStatus* stream_end_run(OrtSyncStream* stream); /* tells the EP that a session's Run is over */

/* A point in a stream that others can wait for. */
typedef struct Notification {
  OrtSyncNotificationImpl* impl;
  OrtSyncStream* stream;
  uint64_t sync_id; /* of the last activation */
} Notification;
/* Fills `out`, whose memory is the caller's; notification_close releases what it holds. */
OrtStatus* notification_open(OrtSyncStream* stream, Notification* out);
void notification_close(Notification* notification);
OrtStatus* notification_activate(Notification* notification);
/* The consumer's later work waits; the calling thread does not. Both streams are of one EP's device. */
OrtStatus* notification_wait_on_device(Notification* notification, OrtSyncStream* consumer);
OrtStatus* notification_wait_on_host(Notification* notification); /* the calling thread waits */

/* ---- data_transfer.c ---- */

/* Copies source[i] to target[i]: sources share one memory device, targets another. `stream` may be NULL; with
 * one the copy may end after the call. What CopyTensors does, for sessions too. Any thread. */
OrtStatus* env_copy_tensors(OrtEnv* env, const OrtValue* const* source, OrtValue* const* target,
                            OrtSyncStream* stream, size_t count);
/* True when `by` (in use; NULL: any EP) copies from one device to the other in one step. Any thread. */
bool env_can_copy(OrtEnv* env, const OrtEpDevice* by, const OrtMemoryDevice* from, const OrtMemoryDevice* to);

/* ---- plugin_guard.c: reading structs that a plugin filled in ---- */

/* The oldest usable versions of plugin structs: what a struct that says 0 is read as. */
#define OLDEST_FACTORY           22
#define OLDEST_EP                23 /* 22 has no GetCapability */
#define OLDEST_NODE_COMPUTE_INFO 23
#define OLDEST_DATA_TRANSFER     23
#define OLDEST_STREAM            23
#define OLDEST_NOTIFICATION      23
#define OLDEST_KERNEL_IMPL       24
#define OLDEST_EP_PROFILER       25
#define OLDEST_ALLOCATOR         1

/* The version to read a plugin's struct by: what it says, at most ours, for 0 `oldest`. */
uint32_t struct_version(uint32_t says, uint32_t oldest);
/* The same, with a warning for 0 that names `struct_name` and `owner`. Called once, when the struct arrives.
 */
uint32_t guard_version(uint32_t says, uint32_t oldest, const char* struct_name, const char* owner);
/* A function pointer of a plugin's struct, NULL when the struct is older than the slot:
 *   GUARD_SLOT(ep, version, Sync, 25) */
#define GUARD_SLOT(object, version, slot, since) ((version) >= (since) ? (object)->slot : NULL)
/* Checks required slots when a struct arrives; each gives a status naming struct, slot and owner. Required is
 * what the host calls and has no other way for; `factory` must not be NULL, the others may (an error). */
OrtStatus* guard_factory(const OrtEpFactory* factory, const char* library_name);
/* Warns of slots that are NULL and that this host does without, but stock ORT does not. Asks IsStreamAware.
 */
void guard_factory_for_stock(const OrtEpFactory* factory, const char* library_name);
OrtStatus* guard_ep(const OrtEp* ep, const char* ep_name);
OrtStatus* guard_node_compute_info(const OrtNodeComputeInfo* info, const char* ep_name,
                                   const char* node_name);
OrtStatus* guard_kernel_impl(const OrtKernelImpl* kernel, const char* ep_name, const char* node_name);
OrtStatus* guard_ep_profiler(const OrtEpProfilerImpl* profiler, const char* ep_name);
OrtStatus* guard_allocator(const OrtAllocator* allocator, const char* ep_name);
OrtStatus* guard_data_transfer(const OrtDataTransferImpl* transfer, const char* ep_name);
OrtStatus* guard_stream(const OrtSyncStreamImpl* stream, const char* ep_name);
OrtStatus* guard_notification(const OrtSyncNotificationImpl* notification, const char* ep_name);

#endif
