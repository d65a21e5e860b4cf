/* The device's memory: one memfd mapped twice, and an arena over it that knows about streams. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

#define DEVICE_BYTES ((size_t)1 << 30) /* address space: pages are only taken when touched */
#define GRANULE      256

/* A stretch of device memory. A free one is tagged with the stream whose work may still use it: that stream
 * may have it again at once, another one only after it has waited for work behind `sync_id`. */
struct Chunk {
  size_t offset, size;
  bool is_free;
  const OrtSyncStream* tag; /* the host's stream; NULL: free for everybody */
  const Stream* stream;     /* ours behind it */
  uint64_t sync_id;         /* of the tag's stream when the chunk was freed */
  Chunk* next;
};

typedef struct Allocator {
  OrtAllocator base;
  Factory* factory;
  const OrtMemoryInfo* info; /* of the factory, or our own copy */
} Allocator;

OrtStatus* memory_open(Factory* factory) {
  Memory* memory = &factory->memory;
  OrtStatus* status = NULL;
  memory->host_base = memory->alias = MAP_FAILED;
  int file = memfd_create(factory->name, MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, (off_t)DEVICE_BYTES) != 0)
    TRY(fail(factory, ORT_FAIL, "no memory file for the device"));
  memory->host_base = mmap(NULL, DEVICE_BYTES, PROT_NONE, MAP_SHARED, file, 0);
  memory->alias = mmap(NULL, DEVICE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  memory->chunks = calloc(1, sizeof *memory->chunks);
  if (memory->host_base == MAP_FAILED || memory->alias == MAP_FAILED || memory->chunks == NULL)
    TRY(fail(factory, ORT_FAIL, "the device's memory cannot be mapped"));
  *memory->chunks = (Chunk){.size = DEVICE_BYTES, .is_free = true};
  pthread_mutex_init(&memory->mutex, NULL);
  const OrtApi* api = factory->api;
  TRY(api->CreateMemoryInfo_V2("VirtualDevice", OrtMemoryInfoDeviceType_GPU, DEVICE_VENDOR_ID,
                               factory->device_id, OrtDeviceMemoryType_DEFAULT, GRANULE, OrtDeviceAllocator,
                               &factory->device_info));
  TRY(api->CreateMemoryInfo_V2("VirtualDevice read-only", OrtMemoryInfoDeviceType_GPU, DEVICE_VENDOR_ID,
                               factory->device_id, OrtDeviceMemoryType_DEFAULT, GRANULE, OrtReadOnlyAllocator,
                               &factory->read_only_info));
  TRY(api->CreateMemoryInfo_V2("VirtualDevice host", OrtMemoryInfoDeviceType_GPU, DEVICE_VENDOR_ID,
                               factory->device_id, OrtDeviceMemoryType_HOST_ACCESSIBLE, 0, OrtDeviceAllocator,
                               &factory->host_accessible_info));
done:
  if (file >= 0) close(file);
  return status;
}

void memory_close(Factory* factory) {
  Memory* memory = &factory->memory;
  const OrtApi* api = factory->api;
  for (Chunk* chunk = memory->chunks; chunk != NULL;) {
    Chunk* next = chunk->next;
    free(chunk);
    chunk = next;
  }
  if (memory->host_base != MAP_FAILED) munmap(memory->host_base, DEVICE_BYTES);
  if (memory->alias != MAP_FAILED) munmap(memory->alias, DEVICE_BYTES);
  if (factory->device_info != NULL) api->ReleaseMemoryInfo(factory->device_info);
  if (factory->read_only_info != NULL) api->ReleaseMemoryInfo(factory->read_only_info);
  if (factory->host_accessible_info != NULL) api->ReleaseMemoryInfo(factory->host_accessible_info);
}

char* memory_alias(const Factory* factory, const void* address) {
  const char* byte = address;
  const Memory* memory = &factory->memory;
  if (byte < memory->host_base || byte >= memory->host_base + DEVICE_BYTES) return NULL;
  return memory->alias + (byte - memory->host_base);
}

char* memory_alias_of_any(const Factory* factory, const void* address) {
  char* alias = memory_alias(factory, address);
  for (const Factory* other = factory->next_of_library; alias == NULL && other != factory;
       other = other->next_of_library)
    alias = memory_alias(other, address);
  return alias;
}

/* ---- The arena ---- */

static bool may_take(const Factory* factory, const Chunk* chunk, size_t size, const OrtSyncStream* stream) {
  if (!chunk->is_free || chunk->size < size) return false;
  if (chunk->tag == NULL || chunk->tag == stream) return true;
  return stream != NULL &&
         factory->ep_api->GetSyncIdForLastWaitOnSyncStream(chunk->tag, stream) > chunk->sync_id;
}

static void* arena_take(Factory* factory, size_t size, const OrtSyncStream* stream) {
  Memory* memory = &factory->memory;
  if (size > DEVICE_BYTES) return NULL;
  size = (size + GRANULE - 1) / GRANULE * GRANULE;
  if (size == 0) size = GRANULE;
  void* address = NULL;
  pthread_mutex_lock(&memory->mutex);
  Chunk* chunk = memory->chunks;
  while (chunk != NULL && !may_take(factory, chunk, size, stream)) chunk = chunk->next;
  Chunk* rest = chunk != NULL && chunk->size > size ? calloc(1, sizeof *rest) : NULL;
  if (chunk != NULL && (rest != NULL || chunk->size == size)) {
    if (rest != NULL) {
      *rest = *chunk;
      rest->offset += size;
      rest->size -= size;
      chunk->next = rest;
      chunk->size = size;
    }
    chunk->is_free = false;
    chunk->tag = stream;
    chunk->stream = stream_of(factory, stream);
    address = memory->host_base + chunk->offset;
    control.live_chunks++;
  }
  pthread_mutex_unlock(&memory->mutex);
  return address;
}

static bool may_merge(const Chunk* a, const Chunk* b) {
  return a->is_free && b != NULL && b->is_free && a->tag == NULL && b->tag == NULL;
}

static void merge_free(Memory* memory) {
  for (Chunk* chunk = memory->chunks; chunk != NULL; chunk = chunk->next) {
    while (may_merge(chunk, chunk->next)) {
      Chunk* gone = chunk->next;
      chunk->size += gone->size;
      chunk->next = gone->next;
      free(gone);
    }
  }
}

static void arena_give_back(Factory* factory, void* address) {
  Memory* memory = &factory->memory;
  size_t offset = (size_t)((char*)address - memory->host_base);
  pthread_mutex_lock(&memory->mutex);
  Chunk* chunk = memory->chunks;
  while (chunk != NULL && chunk->offset != offset) chunk = chunk->next;
  if (chunk != NULL && !chunk->is_free) {
    chunk->is_free = true;
    if (chunk->tag != NULL) chunk->sync_id = factory->ep_api->SyncStream_GetSyncId(chunk->tag);
    control.live_chunks--;
    merge_free(memory);
  }
  pthread_mutex_unlock(&memory->mutex);
}

void memory_forget_stream(Factory* factory, const Stream* stream) {
  Memory* memory = &factory->memory;
  pthread_mutex_lock(&memory->mutex);
  for (Chunk* chunk = memory->chunks; chunk != NULL; chunk = chunk->next) {
    if (chunk->stream == stream) chunk->tag = NULL, chunk->stream = NULL;
  }
  merge_free(memory);
  pthread_mutex_unlock(&memory->mutex);
}

/* ---- Allocators ---- */

static void* ORT_API_CALL device_alloc(OrtAllocator* this_, size_t size) {
  Allocator* allocator = (Allocator*)this_;
  if (allocator->info == allocator->factory->read_only_info) control.read_only_allocations++;
  return arena_take(allocator->factory, size, NULL);
}

static void* ORT_API_CALL device_alloc_on_stream(OrtAllocator* this_, size_t size, OrtSyncStream* stream) {
  control.stream_allocations++;
  return arena_take(((Allocator*)this_)->factory, size, stream);
}

static void ORT_API_CALL device_free(OrtAllocator* this_, void* p) {
  if (p != NULL) arena_give_back(((Allocator*)this_)->factory, p);
}

static void* ORT_API_CALL host_alloc(OrtAllocator* this_, size_t size) {
  (void)this_;
  void* address = malloc(size ? size : 1);
  if (address != NULL) control.live_chunks++;
  return address;
}

static void ORT_API_CALL host_free(OrtAllocator* this_, void* p) {
  (void)this_;
  if (p != NULL) control.live_chunks--;
  free(p);
}

static const OrtMemoryInfo* ORT_API_CALL allocator_info(const OrtAllocator* this_) {
  return ((const Allocator*)this_)->info;
}

/* gives (caller releases with ReleaseKeyValuePairs). The device's memory is one, whoever allocates. */
static OrtStatus* ORT_API_CALL allocator_get_stats(const OrtAllocator* this_, OrtKeyValuePairs** out) {
  Factory* factory = ((const Allocator*)this_)->factory;
  size_t in_use = 0;
  char text[24];
  pthread_mutex_lock(&factory->memory.mutex);
  for (const Chunk* chunk = factory->memory.chunks; chunk != NULL; chunk = chunk->next)
    in_use += chunk->is_free ? 0 : chunk->size;
  pthread_mutex_unlock(&factory->memory.mutex);
  factory->api->CreateKeyValuePairs(out);
  if (*out == NULL) return fail(factory, ORT_FAIL, "no memory for allocator statistics");
  snprintf(text, sizeof text, "%zu", in_use);
  factory->api->AddKeyValuePair(*out, "InUse", text);
  return NULL;
}

OrtStatus* memory_create_allocator(Factory* factory, const OrtMemoryInfo* info, OrtAllocator** allocator) {
  OrtStatus* status = asked_to_fail(factory, "CreateAllocator");
  *allocator = NULL;
  if (status != NULL || asked_for_nothing("CreateAllocator")) return status;
  const OrtMemoryInfo* ours[] = {factory->device_info, factory->read_only_info,
                                 factory->host_accessible_info};
  const OrtMemoryInfo* match = NULL;
  for (size_t i = 0; i < 3 && match == NULL; i++) {
    int difference = 0;
    TRY(factory->api->CompareMemoryInfo(info, ours[i], &difference));
    if (difference == 0) match = ours[i];
  }
  if (match == NULL) return fail(factory, ORT_INVALID_ARGUMENT, "no memory of that kind");
  Allocator* made = calloc(1, sizeof *made);
  if (made == NULL) return fail(factory, ORT_FAIL, "no memory for an allocator");
  bool is_host = match == factory->host_accessible_info;
  made->factory = factory;
  made->info = match;
  made->base.version = factory->api_version;
  made->base.Alloc = is_host ? host_alloc : device_alloc;
  made->base.Reserve = made->base.Alloc;
  made->base.Free = is_host ? host_free : device_free;
  made->base.Info = allocator_info;
  made->base.GetStats = is_host ? NULL : allocator_get_stats;
  made->base.AllocOnStream = is_host || control.has_plain_allocators ? NULL : device_alloc_on_stream;
  *allocator = &made->base;
  control.live_objects++;
done:
  return status;
}

void memory_release_allocator(OrtAllocator* allocator) {
  if (allocator == NULL) return;
  control.live_objects--;
  free(allocator);
}
