/* An EP library in the architecture of ORT's public example plugins, for any host:
 *
 * - it knows memory by the *pointers* of its own OrtMemoryInfos, and refuses others;
 * - its device memory comes from one arena a name, counted, behind all allocators that a host asks for;
 * - initializers have a read-only allocator of their own, the host has accessible memory;
 * - its data transfer belongs to the factory: Release does nothing;
 * - it compiles Mul and Add nodes whose shapes are static and equal, and leaves the others; Relu has a kernel
 * in a registry that belongs to the factory.
 *
 * It prints what hosts do ("plugin: <callback> <what>"), as far as a test may want to know; "STRANGER" is a
 * pointer that is not the plugin's own. EXAMPLE_EP in the environment has words that change it (`has`):
 * "null-for-nothing": allocators answer NULL to 0 bytes; "two-devices": two EP devices with memory infos of
 * their own that are equal, and so one arena; "NULL:<struct>::<slot>": that optional or required slot is
 * NULL. */
#ifndef TESTS_PLUGINS_EXAMPLE_H
#define TESTS_PLUGINS_EXAMPLE_H

#include <pthread.h>
#include <stdint.h>

#include "ort_abi.h"

#define EP_NAME     "ExampleArchitectureEp"
#define VENDOR_ID   0xBE57
#define MAX_DEVICES 2

/* Device addresses are those of malloc, moved to where nobody can touch them. */
#define FAR_AWAY ((uintptr_t)1 << 60)

#define FAILED(status, call) (((status) = (call)) != NULL)
#define RETURN_IF_FAILED(call)         \
  do {                                 \
    OrtStatus* failed = (call);        \
    if (failed != NULL) return failed; \
  } while (0)

typedef struct Arena Arena;

typedef struct Factory {
  OrtEpFactory base; /* first: the host's pointer is ours */
  const OrtApi* api;
  const OrtEpApi* ep_api;
  size_t device_count;
  OrtMemoryInfo *device_memory[MAX_DEVICES], *read_only_memory[MAX_DEVICES], *host_memory[MAX_DEVICES];
  const OrtHardwareDevice* hardware;
  OrtDataTransferImpl transfer;
  OrtKernelRegistry* kernels;
  pthread_mutex_t mutex; /* of the arenas */
  Arena* arenas;
  int allocators; /* alive, beside the arenas */
} Factory;

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
bool has(const char* word); /* in EXAMPLE_EP */
OrtStatus* fail(const Factory* factory, const char* message);

/* NULL where "NULL:<struct>::<slot>" asks for it. */
#define SLOT(struct_name, slot, function) (has("NULL:" struct_name "::" slot) ? NULL : (function))

/* memory.c */
OrtStatus* memory_open(Factory* factory);
void memory_close(Factory* factory);
OrtStatus* memory_create_allocator(Factory* factory, const OrtMemoryInfo* memory,
                                   const OrtKeyValuePairs* options, const char* asked, OrtAllocator** out);
void memory_release_allocator(Factory* factory, OrtAllocator* allocator);
/* Work of the stream is done: the arenas may give what it used to others. */
void memory_forget_stream(Factory* factory, const OrtSyncStreamImpl* stream);
/* Where the host's process has the bytes of a tensor in memory of ours or of the CPU; `*data` NULL if empty.
 */
OrtStatus* tensor_bytes(const Factory* factory, const OrtValue* value, char** data);

/* stream.c */
OrtStatus* stream_create(Factory* factory, const OrtMemoryDevice* device, const char* asked,
                         OrtSyncStreamImpl** out);

/* ep.c */
OrtStatus* ep_create(Factory* factory, const OrtLogger* logger, OrtEp** out);
void ep_release(OrtEp* ep);

/* kernels.c */
OrtStatus* kernels_open(Factory* factory);
/* What Mul ('*'), Add ('+') and Relu ('r') do. */
OrtStatus* compute(const Factory* factory, OrtKernelContext* context, char op);

#endif
