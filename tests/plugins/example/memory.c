/* Memory: the infos, one arena a name, plain allocators, the data transfer. */
#include <stdlib.h>
#include <string.h>

#include "example.h"

/* ---- The infos ---- */

/* Those of an EP device: equal to those of the others, but objects of their own. */
static OrtStatus* make_infos(Factory* factory, size_t index) {
  const OrtApi* api = factory->api;
  const OrtMemoryInfoDeviceType gpu = OrtMemoryInfoDeviceType_GPU;
  RETURN_IF_FAILED(api->CreateMemoryInfo_V2("Example", gpu, VENDOR_ID, 0, OrtDeviceMemoryType_DEFAULT, 0,
                                            OrtDeviceAllocator, &factory->device_memory[index]));
  RETURN_IF_FAILED(api->CreateMemoryInfo_V2("Example read-only", gpu, VENDOR_ID, 0,
                                            OrtDeviceMemoryType_DEFAULT, 0, OrtReadOnlyAllocator,
                                            &factory->read_only_memory[index]));
  return api->CreateMemoryInfo_V2("Example pinned", gpu, VENDOR_ID, 0, OrtDeviceMemoryType_HOST_ACCESSIBLE, 0,
                                  OrtDeviceAllocator, &factory->host_memory[index]);
}

static const char* kind_of(const Factory* factory, const OrtMemoryInfo* memory) {
  if (memory == factory->device_memory[1] && memory != NULL) return "device of the second";
  for (size_t i = 0; i < factory->device_count; i++) {
    if (memory == factory->device_memory[i]) return "device";
    if (memory == factory->read_only_memory[i]) return "read-only";
    if (memory == factory->host_memory[i]) return "host-accessible";
  }
  return "STRANGER";
}

/* ---- The arena ---- */

/* In front of each block. */
typedef struct Block {
  size_t capacity;
  const OrtSyncStreamImpl* stream; /* whose work may use it; NULL: none */
  struct Block* next;              /* of all */
  bool is_free;
} Block;

struct Arena {
  OrtAllocator base;
  Factory* factory;
  const char* name;
  const OrtMemoryInfo* memory;
  size_t limit, in_use;
  int users;
  Block* blocks;
  Arena* next;
};

static char* begin_of(Block* block) {
  return (char*)((uintptr_t)(block + 1) + FAR_AWAY);
}

static Block* find_free(Arena* arena, size_t size, const OrtSyncStreamImpl* stream) {
  for (Block* block = arena->blocks; block != NULL; block = block->next) {
    if (block->is_free && block->capacity == size && (block->stream == NULL || block->stream == stream))
      return block;
  }
  return NULL;
}

static void* arena_take(Arena* arena, size_t size, const OrtSyncStreamImpl* stream) {
  if (size == 0 && has("null-for-nothing")) return NULL;
  pthread_mutex_lock(&arena->factory->mutex);
  Block* block = find_free(arena, size, stream);
  if (block == NULL && size <= arena->limit - arena->in_use) {
    block = malloc(sizeof *block + size);
    if (block != NULL) {
      *block = (Block){.capacity = size, .next = arena->blocks};
      arena->blocks = block;
      arena->in_use += size;
    }
  }
  if (block != NULL) {
    block->is_free = false;
    block->stream = stream;
  }
  pthread_mutex_unlock(&arena->factory->mutex);
  return block != NULL ? begin_of(block) : NULL;
}

static void* ORT_API_CALL arena_alloc(OrtAllocator* this_, size_t size) {
  return arena_take((Arena*)this_, size, NULL);
}

static void* ORT_API_CALL arena_alloc_on_stream(OrtAllocator* this_, size_t size, OrtSyncStream* stream) {
  Arena* arena = (Arena*)this_;
  return arena_take(arena, size, arena->factory->ep_api->SyncStream_GetImpl(stream));
}

static void ORT_API_CALL arena_free(OrtAllocator* this_, void* p) {
  Arena* arena = (Arena*)this_;
  pthread_mutex_lock(&arena->factory->mutex);
  Block* block = arena->blocks;
  while (p != NULL && block != NULL && begin_of(block) != p) block = block->next;
  if (block != NULL) block->is_free = true;
  pthread_mutex_unlock(&arena->factory->mutex);
  if (block == NULL && p != NULL) say("Free of a STRANGER");
}

static const OrtMemoryInfo* ORT_API_CALL arena_info(const OrtAllocator* this_) {
  return ((const Arena*)this_)->memory;
}

static Arena* find_arena(Factory* factory, const char* name) {
  Arena* arena = factory->arenas;
  while (arena != NULL && strcmp(arena->name, name) != 0) arena = arena->next;
  return arena;
}

#define ALLOCATOR_SLOT(slot, function) .slot = SLOT("OrtAllocator", #slot, function)

/* The arena of the memory's name, made with the options of whoever asks first. Under the factory's mutex. */
static OrtStatus* use_arena(Factory* factory, const OrtMemoryInfo* memory, const OrtKeyValuePairs* options,
                            OrtAllocator** out) {
  const char *name = NULL, *limit = NULL;
  RETURN_IF_FAILED(factory->api->MemoryInfoGetName(memory, &name));
  Arena* arena = find_arena(factory, name);
  if (arena == NULL) {
    if (options != NULL) limit = factory->api->GetKeyValue(options, "arena.max_mem");
    arena = calloc(1, sizeof *arena);
    if (arena == NULL) return fail(factory, "no memory for an arena");
    arena->base = (OrtAllocator){.version = ORT_API_VERSION,
                                 ALLOCATOR_SLOT(Alloc, arena_alloc),
                                 ALLOCATOR_SLOT(Free, arena_free),
                                 ALLOCATOR_SLOT(Info, arena_info),
                                 ALLOCATOR_SLOT(Reserve, arena_alloc),
                                 ALLOCATOR_SLOT(AllocOnStream, arena_alloc_on_stream)};
    arena->factory = factory;
    arena->name = name;
    arena->memory = memory;
    arena->limit = limit != NULL ? strtoull(limit, NULL, 10) : SIZE_MAX;
    arena->next = factory->arenas;
    factory->arenas = arena;
    say("arena '%s' is made, limit %s", name, limit != NULL ? limit : "none");
  }
  arena->users++;
  *out = &arena->base;
  return NULL;
}

static void drop_blocks(Arena* arena) {
  for (Block *block = arena->blocks, *next; block != NULL; block = next) {
    next = block->next;
    if (!block->is_free) say("arena '%s' goes with a LIVING block", arena->name);
    free(block);
  }
}

/* Under the factory's mutex. */
static void drop_arena(Factory* factory, Arena* arena) {
  Arena** link = &factory->arenas;
  if (--arena->users > 0) return;
  while (*link != arena) link = &(*link)->next;
  *link = arena->next;
  say("arena '%s' goes", arena->name);
  drop_blocks(arena);
  free(arena);
}

void memory_forget_stream(Factory* factory, const OrtSyncStreamImpl* stream) {
  pthread_mutex_lock(&factory->mutex);
  for (Arena* arena = factory->arenas; arena != NULL; arena = arena->next) {
    for (Block* block = arena->blocks; block != NULL; block = block->next) {
      if (block->stream == stream) block->stream = NULL;
    }
  }
  pthread_mutex_unlock(&factory->mutex);
}

/* ---- Plain allocators: read-only and host-accessible memory ---- */

typedef struct Plain {
  OrtAllocator base;
  const OrtMemoryInfo* memory;
  uintptr_t shift; /* FAR_AWAY, or 0 for the host's */
} Plain;

static void* ORT_API_CALL plain_alloc(OrtAllocator* this_, size_t size) {
  if (size == 0 && has("null-for-nothing")) return NULL;
  void* block = malloc(size + 1);
  return block != NULL ? (void*)((uintptr_t)block + ((Plain*)this_)->shift) : NULL;
}

static void ORT_API_CALL plain_free(OrtAllocator* this_, void* p) {
  if (p != NULL) free((void*)((uintptr_t)p - ((Plain*)this_)->shift));
}

static const OrtMemoryInfo* ORT_API_CALL plain_info(const OrtAllocator* this_) {
  return ((const Plain*)this_)->memory;
}

static OrtStatus* make_plain(Factory* factory, const OrtMemoryInfo* memory, OrtAllocator** out) {
  Plain* plain = calloc(1, sizeof *plain);
  if (plain == NULL) return fail(factory, "no memory for an allocator");
  plain->base = (OrtAllocator){.version = ORT_API_VERSION,
                               .Alloc = plain_alloc,
                               .Free = plain_free,
                               .Info = plain_info,
                               .Reserve = plain_alloc};
  plain->memory = memory;
  plain->shift = strcmp(kind_of(factory, memory), "host-accessible") == 0 ? 0 : FAR_AWAY;
  factory->allocators++;
  *out = &plain->base;
  return NULL;
}

/* ---- For hosts ---- */

OrtStatus* memory_create_allocator(Factory* factory, const OrtMemoryInfo* memory,
                                   const OrtKeyValuePairs* options, const char* asked, OrtAllocator** out) {
  const char* kind = kind_of(factory, memory);
  *out = NULL;
  say("%s::CreateAllocator %s", asked, kind);
  if (strcmp(kind, "STRANGER") == 0)
    return fail(factory, "CreateAllocator for memory that is not of an OrtEpDevice of this factory");
  pthread_mutex_lock(&factory->mutex);
  OrtStatus* status = strncmp(kind, "device", 6) == 0 ? use_arena(factory, memory, options, out)
                                                      : make_plain(factory, memory, out);
  pthread_mutex_unlock(&factory->mutex);
  return status;
}

void memory_release_allocator(Factory* factory, OrtAllocator* allocator) {
  pthread_mutex_lock(&factory->mutex);
  Arena* arena = factory->arenas;
  while (arena != NULL && &arena->base != allocator) arena = arena->next;
  say("ReleaseAllocator %s", arena != NULL ? "device" : kind_of(factory, ((Plain*)allocator)->memory));
  if (arena != NULL) {
    drop_arena(factory, arena);
  } else {
    factory->allocators--;
    free(allocator);
  }
  pthread_mutex_unlock(&factory->mutex);
}

/* ---- Copies ---- */

static const Factory* owner_of(const OrtDataTransferImpl* transfer) {
  return (const Factory*)((uintptr_t)transfer - offsetof(Factory, transfer));
}

/* True for default memory of one of our devices. */
static bool is_far(const Factory* factory, const OrtMemoryDevice* device) {
  const OrtEpApi* ep_api = factory->ep_api;
  for (size_t i = 0; i < factory->device_count; i++) {
    if (ep_api->MemoryDevice_AreEqual(device, ep_api->MemoryInfo_GetMemoryDevice(factory->device_memory[i])))
      return true;
  }
  return false;
}

/* True for what the process can touch: the CPU's memory, and ours that is accessible. */
static bool is_near(const Factory* factory, const OrtMemoryDevice* device) {
  const OrtEpApi* ep_api = factory->ep_api;
  return ep_api->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_CPU ||
         (ep_api->MemoryDevice_GetMemoryType(device) == OrtDeviceMemoryType_HOST_ACCESSIBLE &&
          ep_api->MemoryDevice_GetVendorId(device) == VENDOR_ID);
}

OrtStatus* tensor_bytes(const Factory* factory, const OrtValue* value, char** data) {
  const void* address = NULL;
  RETURN_IF_FAILED(factory->api->GetTensorData(value, &address));
  bool is_ours = is_far(factory, factory->ep_api->Value_GetMemoryDevice(value));
  *data = address != NULL ? (char*)((uintptr_t)address - (is_ours ? FAR_AWAY : 0)) : NULL;
  return NULL;
}

static bool ORT_API_CALL can_copy(const OrtDataTransferImpl* this_ptr, const OrtMemoryDevice* from,
                                  const OrtMemoryDevice* to) {
  const Factory* factory = owner_of(this_ptr);
  bool is_from_far = is_far(factory, from), is_to_far = is_far(factory, to);
  return (is_from_far && is_to_far) || (is_from_far && is_near(factory, to)) ||
         (is_near(factory, from) && is_to_far);
}

static OrtStatus* ORT_API_CALL copy_tensors(OrtDataTransferImpl* this_ptr, const OrtValue** from,
                                            OrtValue** to, OrtSyncStream** streams, size_t count) {
  const Factory* factory = owner_of(this_ptr);
  (void)streams; /* all work is done when the call returns */
  for (size_t i = 0; i < count; i++) {
    char *source = NULL, *target = NULL;
    size_t size = 0;
    RETURN_IF_FAILED(tensor_bytes(factory, from[i], &source));
    RETURN_IF_FAILED(tensor_bytes(factory, to[i], &target));
    RETURN_IF_FAILED(factory->api->GetTensorSizeInBytes(from[i], &size));
    if (size == 0) continue;
    memcpy(target, source, size);
  }
  return NULL;
}

static void ORT_API_CALL transfer_release(OrtDataTransferImpl* this_ptr) {
  (void)this_ptr; /* the factory's */
}

#define TRANSFER_SLOT(slot, function) .slot = SLOT("OrtDataTransferImpl", #slot, function)

OrtStatus* memory_open(Factory* factory) {
  factory->transfer = (OrtDataTransferImpl){.ort_version_supported = ORT_API_VERSION,
                                            TRANSFER_SLOT(Release, transfer_release),
                                            TRANSFER_SLOT(CanCopy, can_copy),
                                            TRANSFER_SLOT(CopyTensors, copy_tensors)};
  for (size_t i = 0; i < factory->device_count; i++) RETURN_IF_FAILED(make_infos(factory, i));
  return NULL;
}

void memory_close(Factory* factory) {
  for (size_t i = 0; i < factory->device_count; i++) {
    factory->api->ReleaseMemoryInfo(factory->device_memory[i]);
    factory->api->ReleaseMemoryInfo(factory->read_only_memory[i]);
    factory->api->ReleaseMemoryInfo(factory->host_memory[i]);
  }
}
