/* Allocators: the process-wide CPU one, and calls to anybody's. Callable from any thread. */
#include <stddef.h>

#include "api_slots.h"
#include "objects/objects.h"

static void* ORT_API_CALL cpu_alloc(OrtAllocator* this_, size_t size) {
  (void)this_;
  return mem_alloc_aligned(size);
}

static void ORT_API_CALL cpu_free(OrtAllocator* this_, void* p) {
  (void)this_;
  mem_free_aligned(p);
}

static const OrtMemoryInfo* ORT_API_CALL cpu_info(const OrtAllocator* this_) {
  (void)this_;
  return &memory_info_cpu;
}

static const OrtMemoryInfo* ORT_API_CALL arena_info(const OrtAllocator* this_) {
  (void)this_;
  return &memory_info_cpu_arena;
}

/* gives an empty set: malloc keeps no statistics. */
static OrtStatus* ORT_API_CALL cpu_get_stats(const OrtAllocator* this_, OrtKeyValuePairs** out) {
  (void)this_;
  *out = key_values_new();
  return *out != NULL ? NULL : status_no_memory();
}

/* CPU memory has no stream to order with. */
static void* ORT_API_CALL cpu_alloc_on_stream(OrtAllocator* this_, size_t size, OrtSyncStream* stream) {
  (void)stream;
  return cpu_alloc(this_, size);
}

static OrtStatus* ORT_API_CALL cpu_shrink(OrtAllocator* this_) {
  (void)this_;
  return NULL;
}

static OrtAllocator cpu_allocator = {ORT_API_VERSION, cpu_alloc,           cpu_free,  cpu_info, cpu_alloc,
                                     cpu_get_stats,   cpu_alloc_on_stream, cpu_shrink};

/* The C library's malloc is an arena: sessions say so where the client has not forbidden one. */
static OrtAllocator cpu_arena_allocator = {ORT_API_VERSION,     cpu_alloc, cpu_free,
                                           arena_info,          cpu_alloc, cpu_get_stats,
                                           cpu_alloc_on_stream, cpu_shrink};

OrtAllocator* allocator_cpu(void) {
  return &cpu_allocator;
}

OrtAllocator* allocator_cpu_arena(void) {
  return &cpu_arena_allocator;
}

bool allocator_is_cpu(const OrtAllocator* allocator) {
  return allocator == &cpu_allocator || allocator == &cpu_arena_allocator;
}

bool allocator_has(const OrtAllocator* allocator, uint32_t since) {
  return allocator->version >= since;
}

void* allocator_reserve(OrtAllocator* allocator, size_t size) {
  bool has_reserve = allocator_has(allocator, 18) && allocator->Reserve != NULL;
  return has_reserve ? call_OrtAllocator_Reserve(allocator, size, NULL) : allocator_alloc(allocator, size);
}

bool allocator_knows_streams(const OrtAllocator* allocator) {
  return allocator_has(allocator, 23) && allocator->AllocOnStream != NULL;
}

void* allocator_alloc_on_stream(OrtAllocator* allocator, size_t size, OrtSyncStream* stream) {
  return stream != NULL && allocator_knows_streams(allocator)
             ? call_OrtAllocator_AllocOnStream(allocator, size, stream, NULL)
             : allocator_alloc(allocator, size);
}

OrtStatus* allocator_shrink(OrtAllocator* allocator) {
  return allocator_has(allocator, 25) && allocator->Shrink != NULL ? call_OrtAllocator_Shrink(allocator)
                                                                   : NULL;
}

static const AllocatorKeeper* _Atomic keeper;

void allocator_set_keeper(const AllocatorKeeper* installed) {
  atomic_store(&keeper, installed);
}

void* allocator_hold(OrtAllocator* allocator) {
  const AllocatorKeeper* installed = !allocator_is_cpu(allocator) ? atomic_load(&keeper) : NULL;
  return installed != NULL ? installed->hold(allocator) : NULL;
}

void allocator_drop(void* held) {
  if (held != NULL) atomic_load(&keeper)->drop(held);
}

/* ---- Lent allocators ---- */

/* An EP's allocator as an application has it for itself: it keeps alive the EP's library. */
typedef struct LentAllocator {
  OrtAllocator face;
  OrtAllocator* owner; /* does the work */
  void* held;
} LentAllocator;

static OrtAllocator* owner_of(const OrtAllocator* this_) {
  return ((const LentAllocator*)this_)->owner;
}

static void* ORT_API_CALL lent_alloc(OrtAllocator* this_, size_t size) {
  return allocator_alloc(owner_of(this_), size);
}

static void ORT_API_CALL lent_free(OrtAllocator* this_, void* p) {
  allocator_free(owner_of(this_), p);
}

static const OrtMemoryInfo* ORT_API_CALL lent_info(const OrtAllocator* this_) {
  return call_OrtAllocator_Info(owner_of(this_), NULL);
}

static void* ORT_API_CALL lent_reserve(OrtAllocator* this_, size_t size) {
  return allocator_reserve(owner_of(this_), size);
}

static OrtStatus* ORT_API_CALL lent_get_stats(const OrtAllocator* this_, OrtKeyValuePairs** out) {
  return api_AllocatorGetStats(owner_of(this_), out);
}

static void* ORT_API_CALL lent_alloc_on_stream(OrtAllocator* this_, size_t size, OrtSyncStream* stream) {
  return allocator_alloc_on_stream(owner_of(this_), size, stream);
}

static OrtStatus* ORT_API_CALL lent_shrink(OrtAllocator* this_) {
  return allocator_shrink(owner_of(this_));
}

static bool is_lent(const OrtAllocator* allocator) {
  return allocator->Alloc == lent_alloc;
}

OrtAllocator* allocator_owner(OrtAllocator* allocator) {
  return is_lent(allocator) ? owner_of(allocator) : allocator;
}

OrtStatus* allocator_lend(OrtAllocator* allocator, OrtAllocator** out) {
  if (allocator_is_cpu(allocator)) {
    *out = allocator; /* outlives everything */
    return NULL;
  }
  LentAllocator* lent = mem_alloc(sizeof *lent);
  if (lent == NULL) return status_no_memory();
  lent->face = (OrtAllocator){ORT_API_VERSION, lent_alloc,           lent_free,  lent_info, lent_reserve,
                              lent_get_stats,  lent_alloc_on_stream, lent_shrink};
  lent->owner = allocator;
  lent->held = allocator_hold(allocator);
  *out = &lent->face;
  return NULL;
}

/* releases what CreateAllocator gave; other allocators are shared by many and stay. */
void ORT_API_CALL api_ReleaseAllocator(OrtAllocator* input) {
  if (input == NULL || !is_lent(input)) return;
  void* held = ((LentAllocator*)input)->held;
  mem_free(input);
  allocator_drop(held);
}

/* ---- Calls to anybody's ---- */

void* allocator_alloc(OrtAllocator* allocator, size_t size) {
  return allocator_is_cpu(allocator) ? mem_alloc_aligned(size)
                                     : call_OrtAllocator_Alloc(allocator, size, NULL);
}

void allocator_free(OrtAllocator* allocator, void* block) {
  if (allocator_is_cpu(allocator))
    mem_free_aligned(block);
  else
    call_OrtAllocator_Free(allocator, block, NULL);
}

/* borrows: never released. */
OrtStatus* ORT_API_CALL api_GetAllocatorWithDefaultOptions(OrtAllocator** out) {
  REQUIRE_ARG(out);
  *out = &cpu_allocator;
  return NULL;
}

/* gives (caller releases with AllocatorFree). */
OrtStatus* ORT_API_CALL api_AllocatorAlloc(OrtAllocator* ort_allocator, size_t size, void** out) {
  REQUIRE_ARG(ort_allocator);
  REQUIRE_ARG(out);
  void* block = allocator_alloc(ort_allocator, size);
  if (block == NULL && size != 0)
    return status_new(ORT_RUNTIME_EXCEPTION, "AllocatorAlloc: no memory for %zu bytes", size);
  *out = block;
  return NULL;
}

OrtStatus* ORT_API_CALL api_AllocatorFree(OrtAllocator* ort_allocator, void* p) {
  REQUIRE_ARG(ort_allocator);
  allocator_free(ort_allocator, p);
  return NULL;
}

/* borrows: the info belongs to the allocator. */
OrtStatus* ORT_API_CALL api_AllocatorGetInfo(const OrtAllocator* ort_allocator, const OrtMemoryInfo** out) {
  REQUIRE_ARG(ort_allocator);
  REQUIRE_ARG(out);
  OrtStatus* thrown = NULL;
  const OrtMemoryInfo* info = call_OrtAllocator_Info(ort_allocator, &thrown);
  if (thrown == NULL) *out = info;
  return thrown;
}

/* gives (caller releases with ReleaseKeyValuePairs); empty where the allocator keeps no statistics. */
OrtStatus* ORT_API_CALL api_AllocatorGetStats(const OrtAllocator* ort_allocator, OrtKeyValuePairs** out) {
  REQUIRE_ARG(ort_allocator);
  REQUIRE_ARG(out);
  if (allocator_has(ort_allocator, 23) && ort_allocator->GetStats != NULL)
    return call_OrtAllocator_GetStats(ort_allocator, out);
  return cpu_get_stats(ort_allocator, out);
}
