/* An arena around a plain allocator: best fit, neighbours join when free, memory is asked for in large
 * pieces. It knows streams: what was freed while work of a stream may still use it goes to that stream again,
 * to another only after that one waited behind the work. What it knows about its memory lies outside of it:
 * the memory is a device's and is never touched. Any thread; the mutex is not held while the plain allocator
 * is called. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_slots.h"
#include "plugins/plugins.h"

#define GRANULE       ((size_t)256) /* sizes are multiples of it */
#define BIN_COUNT     56            /* free chunks by the logarithm of their size in granules */
#define FIRST_BUCKETS 256

typedef struct Chunk Chunk;
struct Chunk {
  char* address;
  size_t size;
  size_t requested; /* by whoever has it */
  bool is_free, is_reserved;
  const OrtSyncStream* stream; /* NULL: no stream's work uses it */
  uint64_t sync_id;            /* of a free chunk: the stream's when it was freed */
  Chunk *before, *after;       /* neighbours of the same region */
  Chunk *previous, *next;      /* in its bin if free, else among those of its bucket */
  Chunk* next_region;          /* of the first chunk of a region, which stays while the region does */
};

typedef struct ArenaStatistics {
  uint64_t in_use, requested_in_use, total, max_in_use, max_allocation;
  uint64_t allocations, reserves, extensions, shrinkages;
} ArenaStatistics;

struct ArenaAllocator {
  OrtAllocator base;
  OrtAllocator* plain; /* borrows */
  OrtMemoryInfo* memory;
  OrtArenaCfg config; /* without defaults left open */
  ForkGuard fork;
  pthread_mutex_t mutex;
  size_t next_region_size;
  Chunk* regions;
  Chunk* bins[BIN_COUNT];
  Chunk** buckets; /* those not free, by address */
  size_t bucket_count, taken_count;
  size_t tagged_count; /* chunks with a stream */
  ArenaStatistics statistics;
};

/* ---- Lists: bins of free chunks, buckets of the others ---- */

static void list_add(Chunk** list, Chunk* chunk) {
  chunk->previous = NULL;
  chunk->next = *list;
  if (*list != NULL) (*list)->previous = chunk;
  *list = chunk;
}

static void list_remove(Chunk** list, Chunk* chunk) {
  if (chunk->previous != NULL)
    chunk->previous->next = chunk->next;
  else
    *list = chunk->next;
  if (chunk->next != NULL) chunk->next->previous = chunk->previous;
}

static size_t bin_index(size_t size) {
  return (size_t)(63 - __builtin_clzll((unsigned long long)(size / GRANULE)));
}

static Chunk** bucket_of(ArenaAllocator* arena, const void* address) {
  uint64_t hash = (uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u;
  return &arena->buckets[(hash >> 32) & (arena->bucket_count - 1)];
}

/* Twice as many buckets; without memory for them the lists just get longer. */
static void grow_buckets(ArenaAllocator* arena) {
  Chunk** old = arena->buckets;
  size_t old_count = arena->bucket_count;
  Chunk** buckets = mem_calloc(old_count, 2 * sizeof *buckets);
  if (buckets == NULL) return;
  arena->buckets = buckets;
  arena->bucket_count = 2 * old_count;
  for (size_t i = 0; i < old_count; i++) {
    for (Chunk *chunk = old[i], *next; chunk != NULL; chunk = next) {
      next = chunk->next;
      list_add(bucket_of(arena, chunk->address), chunk);
    }
  }
  mem_free(old);
}

static void add_taken(ArenaAllocator* arena, Chunk* chunk) {
  if (arena->taken_count >= arena->bucket_count) grow_buckets(arena);
  arena->taken_count++;
  list_add(bucket_of(arena, chunk->address), chunk);
}

/* takes it out; NULL if the arena gave no such block. */
static Chunk* remove_taken(ArenaAllocator* arena, const void* address) {
  Chunk** bucket = bucket_of(arena, address);
  Chunk* chunk = *bucket;
  while (chunk != NULL && chunk->address != address) chunk = chunk->next;
  if (chunk == NULL) return NULL;
  list_remove(bucket, chunk);
  arena->taken_count--;
  return chunk;
}

static void set_stream(ArenaAllocator* arena, Chunk* chunk, const OrtSyncStream* stream) {
  arena->tagged_count += (stream != NULL) - (size_t)(chunk->stream != NULL);
  chunk->stream = stream;
}

/* ---- Taking ---- */

static bool may_take(const Chunk* chunk, size_t size, const OrtSyncStream* stream) {
  if (chunk->size < size) return false;
  if (chunk->stream == NULL || chunk->stream == stream) return true;
  return stream != NULL && api_GetSyncIdForLastWaitOnSyncStream(chunk->stream, stream) > chunk->sync_id;
}

static Chunk* find_best(ArenaAllocator* arena, size_t size, const OrtSyncStream* stream) {
  Chunk* best = NULL;
  for (size_t bin = bin_index(size); bin < BIN_COUNT && best == NULL; bin++) {
    for (Chunk* chunk = arena->bins[bin]; chunk != NULL; chunk = chunk->next) {
      if (may_take(chunk, size, stream) && (best == NULL || chunk->size < best->size)) best = chunk;
    }
  }
  return best;
}

/* Cuts what is more than `size` off a chunk that is in no list, unless it is little. Without memory for the
 * rest's description the chunk stays whole. */
static void split(ArenaAllocator* arena, Chunk* chunk, size_t size) {
  size_t rest_size = chunk->size - size;
  if (rest_size < size && rest_size < (size_t)arena->config.max_dead_bytes_per_chunk) return;
  Chunk* rest = rest_size != 0 ? mem_calloc(1, sizeof *rest) : NULL;
  if (rest == NULL) return;
  rest->address = chunk->address + size;
  rest->size = rest_size;
  rest->is_free = true;
  rest->sync_id = chunk->sync_id;
  set_stream(arena, rest, chunk->stream);
  rest->before = chunk;
  rest->after = chunk->after;
  if (rest->after != NULL) rest->after->before = rest;
  chunk->after = rest;
  chunk->size = size;
  list_add(&arena->bins[bin_index(rest_size)], rest);
}

static void count_taken(ArenaAllocator* arena, const Chunk* chunk) {
  ArenaStatistics* statistics = &arena->statistics;
  statistics->in_use += chunk->size;
  statistics->requested_in_use += chunk->requested;
  if (statistics->max_in_use < statistics->in_use) statistics->max_in_use = statistics->in_use;
  if (statistics->max_allocation < chunk->size) statistics->max_allocation = chunk->size;
}

/* Hands out a chunk that is in no list. */
static void* hand_out(ArenaAllocator* arena, Chunk* chunk, size_t size, size_t requested,
                      const OrtSyncStream* stream) {
  split(arena, chunk, size);
  chunk->is_free = false;
  chunk->requested = requested;
  set_stream(arena, chunk, stream);
  arena->statistics.allocations++;
  count_taken(arena, chunk);
  add_taken(arena, chunk);
  return chunk->address;
}

/* ---- Extending ---- */

/* The size of a region for `size` by the strategy of doubling. */
static size_t doubled_size(const ArenaAllocator* arena, size_t size) {
  size_t limit = (size_t)arena->config.max_power_of_two_extend_bytes, region_size = arena->next_region_size;
  while (region_size < size && region_size < limit) region_size *= 2;
  return region_size < size ? size : region_size;
}

/* Takes as many bytes off the budget as a new region for `size` shall have; 0: there are not enough. */
static size_t plan_region(ArenaAllocator* arena, size_t size) {
  size_t left = arena->config.max_mem - (size_t)arena->statistics.total;
  size_t region_size = size;
  if (size > left) return 0;
  if (arena->config.extend_strategy == ARENA_NEXT_POWER_OF_TWO)
    region_size = doubled_size(arena, size);
  else if (arena->regions == NULL && region_size < (size_t)arena->config.initial_chunk_size_bytes)
    region_size = (size_t)arena->config.initial_chunk_size_bytes;
  region_size = (region_size < left ? region_size : left) / GRANULE * GRANULE;
  arena->statistics.total += region_size;
  return region_size;
}

static void add_region(ArenaAllocator* arena, Chunk* chunk, char* address, size_t size, size_t planned) {
  *chunk = (Chunk){.address = address, .size = size, .next_region = arena->regions};
  arena->regions = chunk;
  arena->statistics.extensions++;
  if (arena->next_region_size <= planned && planned < (size_t)arena->config.max_power_of_two_extend_bytes)
    arena->next_region_size = 2 * planned;
}

/* A new region from the plain allocator, in no list; smaller than planned if that cannot give so much. NULL:
 * no memory. Without the mutex, except where it says so. */
static Chunk* extend(ArenaAllocator* arena, size_t size) {
  pthread_mutex_lock(&arena->mutex);
  size_t planned = plan_region(arena, size);
  pthread_mutex_unlock(&arena->mutex);
  if (planned == 0) return NULL;
  Chunk* chunk = mem_calloc(1, sizeof *chunk);
  size_t region_size = planned;
  char* address = chunk != NULL ? allocator_alloc(arena->plain, region_size) : NULL;
  while (chunk != NULL && address == NULL && region_size > size) {
    region_size = region_size / 10 * 9 / GRANULE * GRANULE;
    if (region_size < size) region_size = size;
    address = allocator_alloc(arena->plain, region_size);
  }
  pthread_mutex_lock(&arena->mutex);
  arena->statistics.total -= address != NULL ? planned - region_size : planned;
  if (address != NULL) add_region(arena, chunk, address, region_size, planned);
  pthread_mutex_unlock(&arena->mutex);
  if (address != NULL) return chunk;
  mem_free(chunk);
  return NULL;
}

static void* take(ArenaAllocator* arena, size_t requested, const OrtSyncStream* stream) {
  if (requested == 0 || requested > SIZE_MAX - GRANULE) return NULL;
  size_t size = (requested + GRANULE - 1) / GRANULE * GRANULE;
  pthread_mutex_lock(&arena->mutex);
  Chunk* chunk = find_best(arena, size, stream);
  if (chunk != NULL) {
    list_remove(&arena->bins[bin_index(chunk->size)], chunk);
  } else {
    pthread_mutex_unlock(&arena->mutex);
    chunk = extend(arena, size);
    pthread_mutex_lock(&arena->mutex);
  }
  void* address = chunk != NULL ? hand_out(arena, chunk, size, requested, stream) : NULL;
  pthread_mutex_unlock(&arena->mutex);
  return address;
}

/* ---- Giving back ---- */

/* Joins a chunk with the free one behind it, when the same work may use both. Neither is in a list. */
static void absorb_after(ArenaAllocator* arena, Chunk* chunk) {
  Chunk* gone = chunk->after;
  chunk->size += gone->size;
  if (chunk->sync_id < gone->sync_id) chunk->sync_id = gone->sync_id;
  chunk->after = gone->after;
  if (chunk->after != NULL) chunk->after->before = chunk;
  set_stream(arena, gone, NULL);
  mem_free(gone);
}

static bool can_join(const Chunk* chunk, const Chunk* neighbour) {
  return neighbour != NULL && neighbour->is_free && neighbour->stream == chunk->stream;
}

/* Puts a chunk, which is in no list, among the free ones; gives what became of it. */
static Chunk* put_free(ArenaAllocator* arena, Chunk* chunk) {
  chunk->is_free = true;
  if (can_join(chunk, chunk->after)) {
    list_remove(&arena->bins[bin_index(chunk->after->size)], chunk->after);
    absorb_after(arena, chunk);
  }
  if (can_join(chunk, chunk->before)) {
    chunk = chunk->before;
    list_remove(&arena->bins[bin_index(chunk->size)], chunk);
    absorb_after(arena, chunk);
  }
  list_add(&arena->bins[bin_index(chunk->size)], chunk);
  return chunk;
}

static void ORT_API_CALL arena_free(OrtAllocator* this_, void* p) {
  ArenaAllocator* arena = (ArenaAllocator*)this_;
  if (p == NULL) return;
  pthread_mutex_lock(&arena->mutex);
  Chunk* chunk = remove_taken(arena, p);
  bool is_reserved = chunk != NULL && chunk->is_reserved;
  if (chunk != NULL) {
    arena->statistics.in_use -= chunk->size;
    arena->statistics.requested_in_use -= chunk->requested;
    if (is_reserved) arena->statistics.total -= chunk->size;
  }
  if (chunk != NULL && !is_reserved) {
    chunk->requested = 0;
    if (chunk->stream != NULL) chunk->sync_id = api_SyncStream_GetSyncId(chunk->stream);
    put_free(arena, chunk);
  }
  pthread_mutex_unlock(&arena->mutex);
  if (chunk == NULL)
    log_unreported("OrtAllocator::Free", "the arena of '%s' gave no such block", arena->memory->name);
  if (!is_reserved) return;
  allocator_free(arena->plain, p);
  mem_free(chunk);
}

void arena_allocator_forget_stream(ArenaAllocator* arena, const OrtSyncStream* stream, bool is_gone) {
  pthread_mutex_lock(&arena->mutex);
  for (Chunk* region = arena->tagged_count != 0 ? arena->regions : NULL; region != NULL;
       region = region->next_region) {
    for (Chunk* chunk = region; chunk != NULL; chunk = chunk->after) {
      if (chunk->stream != stream || !(chunk->is_free || is_gone)) continue;
      set_stream(arena, chunk, NULL);
      if (!chunk->is_free) continue;
      list_remove(&arena->bins[bin_index(chunk->size)], chunk);
      chunk = put_free(arena, chunk);
    }
  }
  pthread_mutex_unlock(&arena->mutex);
}

/* ---- The other slots ---- */

static void* ORT_API_CALL arena_alloc_plain(OrtAllocator* this_, size_t size) {
  return take((ArenaAllocator*)this_, size, NULL);
}

static void* ORT_API_CALL arena_alloc_on_stream(OrtAllocator* this_, size_t size, OrtSyncStream* stream) {
  return take((ArenaAllocator*)this_, size, stream);
}

static const OrtMemoryInfo* ORT_API_CALL arena_info(const OrtAllocator* this_) {
  return ((const ArenaAllocator*)this_)->memory;
}

/* Not cut from a region: given back to the plain allocator as soon as it is freed. */
static void* ORT_API_CALL arena_reserve(OrtAllocator* this_, size_t size) {
  ArenaAllocator* arena = (ArenaAllocator*)this_;
  if (size == 0) return NULL;
  pthread_mutex_lock(&arena->mutex);
  bool fits = size <= arena->config.max_mem - (size_t)arena->statistics.total;
  if (fits) arena->statistics.total += size;
  pthread_mutex_unlock(&arena->mutex);
  Chunk* chunk = fits ? mem_calloc(1, sizeof *chunk) : NULL;
  char* address = chunk != NULL ? allocator_reserve(arena->plain, size) : NULL;
  pthread_mutex_lock(&arena->mutex);
  if (address != NULL) {
    *chunk = (Chunk){.address = address, .size = size, .requested = size, .is_reserved = true};
    arena->statistics.reserves++;
    count_taken(arena, chunk);
    add_taken(arena, chunk);
  } else if (fits) {
    arena->statistics.total -= size;
  }
  pthread_mutex_unlock(&arena->mutex);
  if (address == NULL) mem_free(chunk);
  return address;
}

/* Gives back to the plain allocator the regions of which nothing is in use, by nobody's work either. */
static OrtStatus* ORT_API_CALL arena_shrink(OrtAllocator* this_) {
  ArenaAllocator* arena = (ArenaAllocator*)this_;
  Chunk* unused = NULL;
  pthread_mutex_lock(&arena->mutex);
  for (Chunk** link = &arena->regions; *link != NULL;) {
    Chunk* region = *link;
    if (!region->is_free || region->after != NULL || region->stream != NULL) {
      link = &region->next_region;
      continue;
    }
    *link = region->next_region;
    list_remove(&arena->bins[bin_index(region->size)], region);
    arena->statistics.total -= region->size;
    region->next = unused;
    unused = region;
  }
  arena->statistics.shrinkages++;
  arena->next_region_size = (size_t)arena->config.initial_growth_chunk_size_bytes;
  pthread_mutex_unlock(&arena->mutex);
  while (unused != NULL) {
    Chunk* next = unused->next;
    allocator_free(arena->plain, unused->address);
    mem_free(unused);
    unused = next;
  }
  return NULL;
}

static bool add_number(OrtKeyValuePairs* pairs, const char* key, int64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)number);
  return key_values_set(pairs, key, text);
}

/* gives (caller releases with ReleaseKeyValuePairs). Bytes, except the Num... ones. */
static OrtStatus* ORT_API_CALL arena_get_stats(const OrtAllocator* this_, OrtKeyValuePairs** out) {
  ArenaAllocator* arena = (ArenaAllocator*)this_;
  pthread_mutex_lock(&arena->mutex);
  ArenaStatistics now = arena->statistics;
  pthread_mutex_unlock(&arena->mutex);
  const struct {
    const char* key;
    uint64_t number;
  } entries[] = {{"Limit", arena->config.max_mem},
                 {"InUse", now.in_use},
                 {"RequestedInUse", now.requested_in_use},
                 {"TotalAllocated", now.total},
                 {"MaxInUse", now.max_in_use},
                 {"NumAllocs", now.allocations},
                 {"NumReserves", now.reserves},
                 {"NumArenaExtensions", now.extensions},
                 {"NumArenaShrinkages", now.shrinkages},
                 {"MaxAllocSize", now.max_allocation}};
  OrtKeyValuePairs* pairs = key_values_new();
  bool is_filled = pairs != NULL;
  for (size_t i = 0; i < sizeof entries / sizeof *entries && is_filled; i++)
    is_filled = add_number(pairs, entries[i].key, (int64_t)entries[i].number);
  if (!is_filled) {
    key_values_release(pairs);
    return status_no_memory();
  }
  *out = pairs;
  return NULL;
}

/* ---- Making and releasing ---- */

OrtStatus* arena_allocator_new(OrtAllocator* plain, const OrtArenaCfg* config, ArenaAllocator** out) {
  OrtStatus* thrown = NULL;
  const OrtMemoryInfo* info = call_OrtAllocator_Info(plain, &thrown);
  TRY(thrown);
  if (info == NULL) return status_new(ORT_FAIL, "OrtAllocator::Info gave NULL");
  ArenaAllocator* arena = mem_calloc(1, sizeof *arena);
  if (arena == NULL) return status_no_memory();
  OrtMemoryInfo memory = *info;
  memory.allocator_type = OrtArenaAllocator;
  arena->memory = memory_info_copy(&memory);
  arena->bucket_count = FIRST_BUCKETS;
  arena->buckets = mem_calloc(arena->bucket_count, sizeof *arena->buckets);
  if (arena->memory == NULL || arena->buckets == NULL) {
    memory_info_release(arena->memory);
    mem_free(arena->buckets);
    mem_free(arena);
    return status_no_memory();
  }
  arena->base = (OrtAllocator){ORT_API_VERSION, arena_alloc_plain,     arena_free,  arena_info, arena_reserve,
                               arena_get_stats, arena_alloc_on_stream, arena_shrink};
  arena->plain = plain;
  arena->config = *config;
  arena->next_region_size = (size_t)config->initial_chunk_size_bytes;
  pthread_mutex_init(&arena->mutex, NULL);
  fork_guard_open(&arena->fork, &arena->mutex, false);
  *out = arena;
  return NULL;
}

void arena_allocator_release(ArenaAllocator* arena) {
  if (arena == NULL) return;
  if (arena->taken_count != 0)
    LOG(NULL, ERROR, "the arena of '%s' goes with %zu blocks (%llu bytes) in use", arena->memory->name,
        arena->taken_count, (unsigned long long)arena->statistics.in_use);
  for (size_t i = 0; i < arena->bucket_count; i++) {
    for (Chunk *chunk = arena->buckets[i], *next; chunk != NULL; chunk = next) {
      next = chunk->next;
      if (!chunk->is_reserved) continue;
      allocator_free(arena->plain, chunk->address);
      mem_free(chunk);
    }
  }
  for (Chunk *region = arena->regions, *next_region; region != NULL; region = next_region) {
    next_region = region->next_region;
    allocator_free(arena->plain, region->address);
    for (Chunk *chunk = region, *after; chunk != NULL; chunk = after) {
      after = chunk->after;
      mem_free(chunk);
    }
  }
  fork_guard_close(&arena->fork);
  pthread_mutex_destroy(&arena->mutex);
  memory_info_release(arena->memory);
  mem_free(arena->buckets);
  mem_free(arena);
}

OrtAllocator* arena_allocator_face(ArenaAllocator* arena) {
  return &arena->base;
}

size_t arena_allocator_in_use(ArenaAllocator* arena) {
  pthread_mutex_lock(&arena->mutex);
  size_t in_use = (size_t)arena->statistics.in_use;
  pthread_mutex_unlock(&arena->mutex);
  return in_use;
}

/* ---- Configuration ---- */

#define KEY_PREFIX "arena."

static const OrtArenaCfg default_config = {.max_mem = SIZE_MAX,
                                           .extend_strategy = ARENA_NEXT_POWER_OF_TWO,
                                           .initial_chunk_size_bytes = 1 << 20,
                                           .max_dead_bytes_per_chunk = 128 << 20,
                                           .initial_growth_chunk_size_bytes = 2 << 20,
                                           .max_power_of_two_extend_bytes = 1 << 30};

static OrtStatus* check_range(const char* key, int64_t number, int64_t least, int64_t most) {
  if (number >= least && number <= most) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "arena option '%s' is %lld, not in %lld..%lld", key,
                    (long long)number, (long long)least, (long long)most);
}

/* Sets one entry; -1 and, for max_mem, 0 leave the default. `*is_known` says whether there is such a key. */
static OrtStatus* config_set(OrtArenaCfg* config, const char* key, int64_t number, bool* is_known) {
  *is_known = true;
  if (strcmp(key, "max_mem") == 0) {
    TRY(check_range(key, number, -1, INT64_MAX));
    if (number > 0) config->max_mem = (size_t)number;
    return NULL;
  }
  if (strcmp(key, "extend_strategy") == 0) {
    TRY(check_range(key, number, -1, ARENA_SAME_AS_REQUESTED));
    if (number >= 0) config->extend_strategy = (int)number;
    return NULL;
  }
  int64_t* entry =
      strcmp(key, "initial_chunk_size_bytes") == 0          ? &config->initial_chunk_size_bytes
      : strcmp(key, "max_dead_bytes_per_chunk") == 0        ? &config->max_dead_bytes_per_chunk
      : strcmp(key, "initial_growth_chunk_size_bytes") == 0 ? &config->initial_growth_chunk_size_bytes
      : strcmp(key, "max_power_of_two_extend_bytes") == 0   ? &config->max_power_of_two_extend_bytes
                                                            : NULL;
  *is_known = entry != NULL;
  if (entry == NULL || number == -1) return NULL;
  TRY(check_range(key, number, 1, entry == &config->max_power_of_two_extend_bytes ? INT64_MAX : INT_MAX));
  *entry = number;
  return NULL;
}

bool arena_config_is_asked(const OrtKeyValuePairs* options) {
  for (size_t i = 0; options != NULL && i < options->count; i++) {
    if (strncmp(options->keys[i], KEY_PREFIX, strlen(KEY_PREFIX)) == 0) return true;
  }
  return false;
}

OrtStatus* arena_config_read(const OrtKeyValuePairs* options, OrtArenaCfg* out) {
  OrtArenaCfg config = default_config;
  for (size_t i = 0; options != NULL && i < options->count; i++) {
    const char *key = options->keys[i], *text = options->values[i];
    if (strncmp(key, KEY_PREFIX, strlen(KEY_PREFIX)) != 0) continue; /* the EP's */
    char* end = NULL;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end != '\0')
      return status_new(ORT_INVALID_ARGUMENT, "arena option '%s' is '%s', not a number", key, text);
    bool is_known;
    TRY(config_set(&config, key + strlen(KEY_PREFIX), number, &is_known));
    if (!is_known) return status_new(ORT_INVALID_ARGUMENT, "there is no arena option '%s'", key);
  }
  *out = config;
  return NULL;
}

static OrtStatus* config_new(const OrtArenaCfg* config, OrtArenaCfg** out) {
  OrtArenaCfg* copy = mem_alloc(sizeof *copy);
  if (copy == NULL) return status_no_memory();
  *copy = *config;
  *out = copy;
  return NULL;
}

/* gives (caller releases with ReleaseArenaCfg). max_mem 0 and -1 for the others: the default. */
OrtStatus* ORT_API_CALL api_CreateArenaCfg(size_t max_mem, int arena_extend_strategy,
                                           int initial_chunk_size_bytes, int max_dead_bytes_per_chunk,
                                           OrtArenaCfg** out) {
  REQUIRE_ARG(out);
  OrtArenaCfg config = default_config;
  bool is_known;
  if (max_mem != 0) config.max_mem = max_mem;
  TRY(config_set(&config, "extend_strategy", arena_extend_strategy, &is_known));
  TRY(config_set(&config, "initial_chunk_size_bytes", initial_chunk_size_bytes, &is_known));
  TRY(config_set(&config, "max_dead_bytes_per_chunk", max_dead_bytes_per_chunk, &is_known));
  return config_new(&config, out);
}

/* gives (caller releases with ReleaseArenaCfg): the same by keys, of which "arena_extend_strategy" has a name
 * of its own here. */
OrtStatus* ORT_API_CALL api_CreateArenaCfgV2(const char* const* arena_config_keys,
                                             const size_t* arena_config_values, size_t num_keys,
                                             OrtArenaCfg** out) {
  if (num_keys != 0) REQUIRE_ARG(arena_config_keys);
  if (num_keys != 0) REQUIRE_ARG(arena_config_values);
  REQUIRE_ARG(out);
  OrtArenaCfg config = default_config;
  for (size_t i = 0; i < num_keys; i++) {
    const char* key = arena_config_keys[i];
    if (key == NULL) return status_new(ORT_INVALID_ARGUMENT, "CreateArenaCfgV2: key %zu is NULL", i);
    bool is_known, is_strategy = strcmp(key, "arena_extend_strategy") == 0;
    TRY(config_set(&config, is_strategy ? "extend_strategy" : key, (int64_t)arena_config_values[i],
                   &is_known));
    if (!is_known) return status_new(ORT_INVALID_ARGUMENT, "CreateArenaCfgV2: there is no key '%s'", key);
  }
  return config_new(&config, out);
}

void ORT_API_CALL api_ReleaseArenaCfg(OrtArenaCfg* input) {
  mem_free(input);
}
