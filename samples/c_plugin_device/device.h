/* An execution provider with memory of its own, in plain C on nothing but ort_abi.h, libc and pthread.
 *
 * Its device is virtual. The device's memory is one memfd, mapped twice: the addresses that the host is given
 * are PROT_NONE, so that a host which touches device memory crashes at once; the device itself works through
 * a private alias. Streams are worker threads that really run later than the call that asked for the work.
 *
 *   device.h   what the files share
 *   control.h  what tests watch and change
 *   memory.c   the device's memory: stream-aware arena, allocators
 *   stream.c   streams and notifications
 *   transfer.c copies between host and device
 *   memcpy.c   the same as kernels, for hosts that make nodes of copies
 *   ep.c       the EP: claims Add, Mul and Relu, launches them on streams
 *   capture.c  graphs: the launches of one run, recorded and replayed
 *   factory.c  the factory and what the library exports
 */
#ifndef VIRTUAL_DEVICE_H
#define VIRTUAL_DEVICE_H

#include <pthread.h>

#include "control.h"
#include "ort_abi.h"

#ifndef EP_NAME
#define EP_NAME "VirtualDeviceExecutionProvider"
#endif
#ifndef DEVICE_ID /* two libraries built with different ids are two devices */
#define DEVICE_ID 0
#endif
#ifndef DEVICE_COUNT /* of one library: devices DEVICE_ID, DEVICE_ID + 1, ... each with an EP */
#define DEVICE_COUNT 1
#endif
#define DEVICE_VENDOR_ID 0xbe57
#define OLDEST_API       23
#define KERNELS_API      24 /* hosts older than that ask for no kernels */

/* Leaves the function through its label `done` when the host or one of our functions reports an error. */
#define TRY(call)                  \
  do {                             \
    status = (call);               \
    if (status != NULL) goto done; \
  } while (0)

extern VirtualDeviceControl control;

typedef struct Stream Stream;
typedef struct Chunk Chunk;

/* The device's memory. Any thread, under `mutex`. */
typedef struct Memory {
  char* host_base; /* PROT_NONE: the addresses the host is given */
  char* alias;     /* the same memory, for the device itself */
  pthread_mutex_t mutex;
  Chunk* chunks; /* ordered by address, no gaps */
} Memory;

/* The struct that the host sees comes first, so that a pointer to one is a pointer to the other. */
typedef struct Factory {
  OrtEpFactory base;
  const OrtApi* api;
  const OrtEpApi* ep_api;
  uint32_t api_version; /* of the host */
  char name[64];        /* of the EP: EP_NAME, and behind it ".1" for the second device */
  uint32_t device_id;
  struct Factory* next_of_library; /* its device's neighbour, in a ring */
  Memory memory;
  OrtKernelRegistry* kernels; /* memcpy.c; NULL on an old host */
  OrtMemoryInfo *device_info, *host_accessible_info, *read_only_info;
  pthread_mutex_t streams_mutex; /* guards `streams` */
  Stream* streams;               /* all alive, linked */
} Factory;

/* gives: a status is made by the host, so that the host can release it. Never NULL, which would mean OK. */
OrtStatus* fail(const Factory* factory, OrtErrorCode code, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
/* The status of a callback that a test asked to fail, else NULL. */
OrtStatus* asked_to_fail(const Factory* factory, const char* callback);
bool asked_for_nothing(const char* callback);

/* ---- memory.c ---- */
OrtStatus* memory_open(Factory* factory);
void memory_close(Factory* factory); /* releases the mappings and the memory infos */
/* The device's own address of what the host knows as `address`; NULL if that is not the device's memory. */
char* memory_alias(const Factory* factory, const void* address);
/* The same for memory of any device of the factory's library. */
char* memory_alias_of_any(const Factory* factory, const void* address);
/* Work of `stream` is done: what was tagged with it is free for everybody. */
void memory_forget_stream(Factory* factory, const Stream* stream);
OrtStatus* memory_create_allocator(Factory* factory, const OrtMemoryInfo* info, OrtAllocator** allocator);
void memory_release_allocator(OrtAllocator* allocator);

/* ---- stream.c ---- */

/* A piece of work. `run` is called on the stream's thread and frees the task. */
typedef struct Task {
  void (*run)(struct Task* task);
  struct Task* next;
} Task;
OrtStatus* stream_create(Factory* factory, OrtSyncStreamImpl** stream);
void stream_enqueue(Stream* stream, Task* task); /* takes the task */
void stream_flush(Stream* stream);               /* returns when all work so far is done */
/* borrows: our stream behind a host's; NULL if it is NULL or another EP's. */
Stream* stream_of(const Factory* factory, const OrtSyncStream* stream);
void flush_all_streams(Factory* factory);

/* ---- transfer.c ---- */
OrtStatus* transfer_create(Factory* factory, OrtDataTransferImpl** transfer);
/* Copies a tensor, on the stream or, when that is NULL, before it returns. */
OrtStatus* transfer_copy(Factory* factory, const OrtValue* from, OrtValue* to, Stream* stream);

/* ---- memcpy.c ---- */
OrtStatus* memcpy_open(Factory* factory); /* makes Factory::kernels */
void memcpy_close(Factory* factory);      /* releases them */

/* ---- ep.c ---- */

typedef enum Op { OP_ADD, OP_MUL, OP_RELU, OP_COUNT } Op;

/* An op on addresses of the device. */
typedef struct Launch {
  Task task;
  Op op;
  float* out;
  const float *a, *b;
  size_t count, a_step, b_step; /* a step of 0 repeats a single element */
} Launch;
/* Runs a copy of `launch` on the stream, or at once when that is NULL. */
OrtStatus* launch_start(const Factory* factory, const Launch* launch, Stream* stream);
OrtStatus* ep_create(Factory* factory, const OrtSessionOptions* options, OrtEp** ep);
void ep_release(OrtEp* ep);

/* ---- capture.c ---- */

typedef struct Graph Graph;

/* The graphs of one EP. One run at a time. */
typedef struct Capture {
  const Factory* factory;
  Graph* graphs;
  Graph* recording; /* by the run that goes on; NULL: none */
} Capture;
/* A run of the graph begins: the first one only warms up, the second is recorded. */
OrtStatus* capture_begin(Capture* capture, int id);
/* True when the launch was recorded, and not to be started now. */
OrtStatus* capture_launch(Capture* capture, const Launch* launch, Stream* stream, bool* is_recorded);
void capture_abort(Capture* capture);     /* the run failed: what it recorded is no graph */
OrtStatus* capture_end(Capture* capture); /* what was recorded is a graph now, and runs */
bool capture_has(const Capture* capture, int id);
OrtStatus* capture_replay(Capture* capture, int id); /* returns when the work is done */
void capture_drop(Capture* capture, int id);
void capture_close(Capture* capture);

#endif
