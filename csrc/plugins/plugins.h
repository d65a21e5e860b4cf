/* plugins: who can run a model, and where. The environment, EP libraries, EP devices, hardware, shared
 * allocators. */
#ifndef ORT_ABI_PLUGINS_H
#define ORT_ABI_PLUGINS_H

#include <pthread.h>

#include "model/model.h"

/* ---- hardware.c ---- */

struct OrtHardwareDevice {
  OrtHardwareDeviceType type;
  uint32_t vendor_id, device_id;
  char* vendor;
  OrtKeyValuePairs* metadata;
  bool is_injected;
};

/* ---- ep_device.c ---- */

typedef struct EpLibrary EpLibrary;

struct OrtEpDevice {
  char* ep_name;
  char* ep_vendor;
  const OrtHardwareDevice* device; /* of the environment */
  OrtKeyValuePairs* ep_metadata;
  OrtKeyValuePairs* ep_options;
  OrtEpFactory* factory;        /* of `library` */
  EpLibrary* library;           /* NULL until registration committed it */
  OrtMemoryInfo* device_memory; /* copies of what EpDevice_AddAllocatorInfo gave; NULL: none */
  OrtMemoryInfo* host_accessible_memory;
  OrtMemoryInfo* read_only_memory;
};

/* ---- plugin_load.c ---- */

/* One registered library. Lives in the environment; kept alive by sessions (and later tensors, streams). */
struct EpLibrary {
  char* registration_name;
  char* path;   /* absolute; NULL for the built-in CPU EP */
  void* handle; /* dlopen */
  OrtStatus*(ORT_API_CALL* release_factory)(OrtEpFactory* factory);
  OrtEpFactory** factories;
  size_t factory_count;
  OrtEpDevice** devices; /* those of this library */
  size_t device_count;
  OrtDataTransferImpl** data_transfers; /* one a factory, NULL where it has none */
  _Atomic int users;                    /* sessions alive on it: Unregister is refused while it is not 0 */
};

/* ---- env.c ---- */

typedef struct SharedAllocator {
  OrtAllocator* allocator;
  OrtMemoryInfo* memory; /* copy: what it was created for */
  OrtEpDevice* owner;    /* whose factory releases it */
} SharedAllocator;

struct OrtEnv {
  int references; /* under env_mutex */
  OrtLogger logger;
  char* log_id;
  OrtKeyValuePairs* config;
  pthread_mutex_t mutex; /* guards all below */
  OrtHardwareDevice** hardware;
  size_t hardware_count, hardware_capacity;
  EpLibrary** libraries; /* in registration order; [0] is the built-in CPU EP */
  size_t library_count, library_capacity;
  OrtEpDevice** devices; /* of all libraries, in registration order */
  size_t device_count, device_capacity;
  SharedAllocator* shared_allocators;
  size_t shared_allocator_count, shared_allocator_capacity;
};

/* Takes and releases a reference of the environment (a session keeps it alive). */
void env_retain(OrtEnv* env);
void env_release(OrtEnv* env);
/* The environment's CPU EP device. borrows. */
const OrtEpDevice* env_cpu_device(OrtEnv* env);
/* The shared allocator for a memory info, or NULL. borrows. */
OrtAllocator* env_shared_allocator(OrtEnv* env, const OrtMemoryInfo* memory);

/* ---- plugin_guard.c: reading structs that a plugin filled in ---- */

/* The version to read a plugin's struct by: what it says, at most ours; 0 means the oldest that has the
 * struct
 * (`oldest`), with a warning that names `struct_name` and `owner`. */
uint32_t guard_version(uint32_t says, uint32_t oldest, const char* struct_name, const char* owner);
/* A function pointer of a plugin's struct, NULL when the struct is older than the slot:
 *   GUARD_SLOT(ep, version, Sync, 25) */
#define GUARD_SLOT(object, version, slot, since) ((version) >= (since) ? (object)->slot : NULL)
/* Checks required slots when a struct arrives; each gives a status naming struct, slot and owner. */
OrtStatus* guard_factory(const OrtEpFactory* factory, const char* library_path);
OrtStatus* guard_ep(const OrtEp* ep, const char* ep_name);
OrtStatus* guard_node_compute_info(const OrtNodeComputeInfo* info, const char* ep_name,
                                   const char* node_name);
OrtStatus* guard_kernel_impl(const OrtKernelImpl* kernel, const char* ep_name, const char* node_name);
OrtStatus* guard_allocator(const OrtAllocator* allocator, const char* ep_name);
OrtStatus* guard_data_transfer(const OrtDataTransferImpl* transfer, const char* ep_name);

#endif
