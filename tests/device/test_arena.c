/* The host's own arena around a plain allocator. */
#include <pthread.h>

#include "devices.h"

#define KB ((size_t)1024)
#define MB (1024 * KB)

typedef struct Option {
  const char *key, *value;
} Option;

static OrtStatus* try_arena(const Device* device, OrtAllocatorType type, const Option* options,
                            OrtAllocator** arena) {
  OrtKeyValuePairs* pairs = NULL;
  api()->CreateKeyValuePairs(&pairs);
  for (; options->key != NULL; options++) api()->AddKeyValuePair(pairs, options->key, options->value);
  OrtStatus* status =
      api()->CreateSharedAllocator(env, device->ep_device, OrtDeviceMemoryType_DEFAULT, type, pairs, arena);
  api()->ReleaseKeyValuePairs(pairs);
  return status;
}

static OrtAllocator* new_arena(const Device* device, const Option* options) {
  OrtAllocator* arena = NULL;
  if (!CHECK_OK(try_arena(device, OrtArenaAllocator, options, &arena))) exit(1);
  return arena;
}

/* -2: there is no such entry. */
static int64_t stat_of(OrtAllocator* allocator, const char* key) {
  OrtKeyValuePairs* stats = NULL;
  CHECK_OK(api()->AllocatorGetStats(allocator, &stats));
  const char* text = api()->GetKeyValue(stats, key);
  int64_t number = text != NULL ? atoll(text) : -2;
  api()->ReleaseKeyValuePairs(stats);
  return number;
}

static const Option defaults[] = {{NULL, NULL}};
static const Option exact[] = {
    {"arena.extend_strategy", "1"}, {"arena.initial_chunk_size_bytes", "256"}, {NULL, NULL}};

static void test_an_arena_is_made_when_asked_for(void) {
  static const Option options[] = {{"arena.max_mem", "1000000"}, {"other", "x"}, {NULL, NULL}};
  OrtAllocator* arena = NULL;
  const OrtMemoryInfo* info = NULL;
  OrtAllocatorType type;
  open_env();
  Device plain = plug("plain"), device = plug("virtual");
  CHECK(stat_of(shared_allocator(plain.memory), "Limit") == -2);
  arena = new_arena(&plain, defaults);
  CHECK(shared_allocator(plain.memory) == arena);
  CHECK_OK(api()->AllocatorGetInfo(arena, &info));
  CHECK_OK(api()->MemoryInfoGetType(info, &type));
  CHECK(type == OrtArenaAllocator);
  CHECK(api()->MemoryInfoGetVendorId(info) == 0xbe57);
  CHECK(stat_of(arena, "Limit") == -1); /* none: the largest there is */
  CHECK_OK(try_arena(&plain, OrtDeviceAllocator, options, &arena));
  CHECK(stat_of(arena, "Limit") == 1000000);
  CHECK_OK(
      try_arena(&device, OrtDeviceAllocator, options, &arena)); /* has an arena of its own: used as it is */
  CHECK(stat_of(arena, "Limit") == -2 && stat_of(arena, "InUse") == 0);
  close_env();
}

static void test_the_devices_memory_is_not_touched(void) {
  open_env();
  Device device = plug("virtual");
  OrtAllocator* arena = new_arena(&device, defaults);
  OrtValue *source = host_tensor(1000, 1), *there = tensor_from(arena, 1000), *more = tensor_from(arena, 10);
  CHECK_OK(copy(source, there, NULL));
  CHECK(device_holds(there, 1000, 1));
  CHECK(device.control->live_chunks == 1);
  api()->ReleaseValue(source);
  api()->ReleaseValue(there);
  api()->ReleaseValue(more);
  CHECK_OK(arena->Shrink(arena));
  CHECK(device.control->live_chunks == 0);
  unplug(&device);
  close_env();
}

static void test_regions_double(void) {
  open_env();
  Device device = plug("plain");
  OrtAllocator* arena = new_arena(&device, defaults);
  void* blocks[200];
  for (int i = 0; i < 200; i++) blocks[i] = arena->Alloc(arena, 1000);
  CHECK(device.plain->allocs == 1);
  CHECK(stat_of(arena, "TotalAllocated") == (int64_t)MB);
  void* large = arena->Alloc(arena, MB);
  CHECK(stat_of(arena, "TotalAllocated") == (int64_t)(3 * MB)); /* the second region has 2 MB */
  void* huge = arena->Alloc(arena, 9 * MB);
  CHECK(stat_of(arena, "TotalAllocated") == (int64_t)(19 * MB));
  CHECK(stat_of(arena, "NumArenaExtensions") == 3);
  for (int i = 0; i < 200; i++) arena->Free(arena, blocks[i]);
  arena->Free(arena, large);
  arena->Free(arena, huge);
  CHECK(device.plain->frees == 0 && stat_of(arena, "InUse") == 0);
  unplug(&device);
  close_env();
}

static void test_neighbours_join(void) {
  open_env();
  Device device = plug("plain");
  OrtAllocator* arena = new_arena(&device, defaults);
  void* blocks[4];
  for (int i = 0; i < 4; i++) blocks[i] = arena->Alloc(arena, 256 * KB);
  static const int order[] = {2, 0, 3, 1};
  for (int i = 0; i < 4; i++) arena->Free(arena, blocks[order[i]]);
  CHECK(arena->Alloc(arena, MB) == blocks[0]);
  CHECK(device.plain->allocs == 1);
  arena->Free(arena, blocks[0]);
  unplug(&device);
  close_env();
}

static void test_the_best_fit_is_taken(void) {
  static const size_t sizes[] = {1792, 256, 1280, 256, 768, 256};
  static const int order[] = {2, 0, 4};
  open_env();
  Device device = plug("plain");
  OrtAllocator* arena = new_arena(&device, defaults);
  void* blocks[6];
  for (int i = 0; i < 6; i++) blocks[i] = arena->Alloc(arena, sizes[i]);
  for (int i = 0; i < 3; i++) arena->Free(arena, blocks[order[i]]);
  CHECK(arena->Alloc(arena, 1200) == blocks[2]); /* and not the larger one, which was freed later */
  CHECK(arena->Alloc(arena, 600) == blocks[4]);
  CHECK(arena->Alloc(arena, 1300) == blocks[0]);
  for (int i = 0; i < 6; i++) arena->Free(arena, blocks[i]);
  CHECK(stat_of(arena, "InUse") == 0);
  unplug(&device);
  close_env();
}

static void test_statistics(void) {
  open_env();
  Device device = plug("plain");
  OrtAllocator* arena = new_arena(&device, exact);
  void *a = arena->Alloc(arena, 100), *b = arena->Alloc(arena, 1000), *c = arena->Reserve(arena, 5000);
  CHECK(stat_of(arena, "NumAllocs") == 2 && stat_of(arena, "NumReserves") == 1);
  CHECK(stat_of(arena, "InUse") == 256 + 1024 + 5000);
  CHECK(stat_of(arena, "RequestedInUse") == 100 + 1000 + 5000);
  CHECK(stat_of(arena, "TotalAllocated") == 256 + 1024 + 5000);
  CHECK(device.plain->reserves == 1);
  arena->Free(arena, c);
  CHECK(device.plain->frees == 1); /* what is reserved goes back at once */
  CHECK(stat_of(arena, "TotalAllocated") == 256 + 1024);
  arena->Free(arena, a);
  arena->Free(arena, b);
  CHECK(stat_of(arena, "InUse") == 0 && stat_of(arena, "RequestedInUse") == 0);
  CHECK(stat_of(arena, "MaxInUse") == 256 + 1024 + 5000 && stat_of(arena, "MaxAllocSize") == 5000);
  CHECK(stat_of(arena, "NumArenaExtensions") == 2 && stat_of(arena, "NumArenaShrinkages") == 0);
  CHECK_OK(arena->Shrink(arena));
  CHECK(stat_of(arena, "NumArenaShrinkages") == 1 && stat_of(arena, "TotalAllocated") == 0);
  unplug(&device);
  close_env();
}

static void test_shrink_keeps_what_is_in_use(void) {
  open_env();
  Device device = plug("plain");
  OrtAllocator* arena = new_arena(&device, exact);
  void *a = arena->Alloc(arena, 4096), *b = arena->Alloc(arena, 4096), *c = arena->Alloc(arena, 2048);
  arena->Free(arena, a);
  arena->Free(arena, c);
  a = arena->Alloc(arena, 100); /* a part of c's region */
  CHECK_OK(arena->Shrink(arena));
  CHECK(device.plain->frees == 1 && stat_of(arena, "TotalAllocated") == 4096 + 2048);
  arena->Free(arena, a);
  arena->Free(arena, b);
  CHECK_OK(arena->Shrink(arena));
  CHECK(device.plain->frees == 3 && device.plain->allocs == 3);
  unplug(&device);
  close_env();
}

static void test_limits(void) {
  static const Option small[] = {{"arena.max_mem", "10240"}, {NULL, NULL}};
  static const Option whole[] = {
      {"arena.max_dead_bytes_per_chunk", "512"}, {"arena.initial_chunk_size_bytes", "4096"}, {NULL, NULL}};
  open_env();
  Device device = plug("plain");
  OrtAllocator* arena = new_arena(&device, small);
  void* most = arena->Alloc(arena, 8192);
  CHECK(most != NULL && arena->Alloc(arena, 4096) == NULL && arena->Reserve(arena, 4096) == NULL);
  arena->Free(arena, most);
  most = arena->Alloc(arena, 10240);
  CHECK(most != NULL && arena->Alloc(arena, 1) == NULL);
  arena->Free(arena, most);
  CHECK(arena->Alloc(arena, 0) == NULL && arena->Alloc(arena, SIZE_MAX) == NULL);
  arena->Free(arena, NULL);

  arena = new_arena(&device, whole);
  void *a = arena->Alloc(arena, 3328), *b = arena->Alloc(arena, 512);
  CHECK(stat_of(arena, "InUse") == 3328 + 768); /* a rest of 256 bytes is not worth its description */
  arena->Free(arena, a);
  arena->Free(arena, b);

  device.plain->largest_possible = 300 * KB;
  arena = new_arena(&device, defaults); /* wants a megabyte */
  a = arena->Alloc(arena, 200 * KB);
  CHECK(a != NULL && stat_of(arena, "TotalAllocated") <= (int64_t)(300 * KB));
  CHECK(arena->Alloc(arena, 301 * KB) == NULL);
  arena->Free(arena, a);
  unplug(&device);
  close_env();
}

static void test_bad_options_are_refused(void) {
  static const Option bad[] = {{"arena.max_mem", "much"},
                               {"arena.max_mem", ""},
                               {"arena.extend_strategy", "2"},
                               {"arena.initial_chunk_size_bytes", "0"},
                               {"arena.max_dead_bytes_per_chunk", "99999999999"},
                               {"arena.colour", "1"}};
  open_env();
  Device device = plug("plain");
  OrtAllocator *old = shared_allocator(device.memory), *arena = NULL;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const Option options[] = {bad[i], {NULL, NULL}};
    CHECK_FAILS(try_arena(&device, OrtArenaAllocator, options, &arena), ORT_INVALID_ARGUMENT,
                strrchr(bad[i].key, '.') + 1);
  }
  CHECK(shared_allocator(device.memory) == old && arena == NULL);
  /* Only when it is made can the EP's allocator be seen to be one that knows nothing of such options. */
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const Option options[] = {bad[i], {NULL, NULL}};
    CHECK_FAILS(try_arena(&device, OrtDeviceAllocator, options, &arena), ORT_INVALID_ARGUMENT,
                strrchr(bad[i].key, '.') + 1);
    CHECK(shared_allocator(device.memory) == NULL && arena == NULL);
  }
  close_env();
}

static void test_a_block_that_it_never_gave_is_not_freed(void) {
  open_env();
  Device device = plug("plain");
  OrtAllocator* arena = new_arena(&device, defaults);
  char* block = arena->Alloc(arena, 1000);
  arena->Free(arena, block + 256); /* logged */
  arena->Free(arena, block);
  arena->Free(arena, block); /* logged */
  CHECK(stat_of(arena, "InUse") == 0);
  unplug(&device);
  close_env();
}

static void test_cpu_arenas(void) {
  static const char* const keys[] = {"max_mem",
                                     "arena_extend_strategy",
                                     "initial_chunk_size_bytes",
                                     "max_dead_bytes_per_chunk",
                                     "initial_growth_chunk_size_bytes",
                                     "max_power_of_two_extend_bytes"};
  static const size_t values[] = {100000, 1, 4096, 4096, 4096, 4096};
  static const char* const unknown[] = {"max_memory"};
  OrtArenaCfg *first = NULL, *second = NULL;
  OrtMemoryInfo* memory = NULL;
  open_env();
  CHECK_OK(api()->CreateArenaCfg(0, -1, -1, -1, &first));
  CHECK_OK(api()->CreateArenaCfgV2(keys, values, 6, &second));
  CHECK_FAILS(api()->CreateArenaCfg(0, 2, -1, -1, &first), ORT_INVALID_ARGUMENT, "extend_strategy");
  CHECK_FAILS(api()->CreateArenaCfgV2(unknown, values, 1, &first), ORT_INVALID_ARGUMENT, "'max_memory'");
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  CHECK_OK(api()->CreateAndRegisterAllocator(env, memory, second));
  OrtAllocator* arena = shared_allocator(memory);
  CHECK(arena != cpu_allocator() && stat_of(arena, "Limit") == 100000);
  OrtValue* value = tensor_from(arena, 100);
  data_of(value)[99] = 1; /* CPU memory */
  CHECK(stat_of(arena, "RequestedInUse") == 400 && stat_of(arena, "TotalAllocated") == 4096);
  api()->ReleaseValue(value);
  CHECK_OK(api()->CreateAndRegisterAllocator(env, memory, first)); /* replaces */
  CHECK(shared_allocator(memory) != cpu_allocator());
  CHECK(stat_of(shared_allocator(memory), "Limit") != 100000);
  CHECK_OK(api()->UnregisterAllocator(env, memory));
  CHECK(shared_allocator(memory) == cpu_allocator());
  CHECK_FAILS(api()->CreateAndRegisterAllocatorV2(env, "CUDAExecutionProvider", memory, first, NULL, NULL, 0),
              ORT_INVALID_ARGUMENT, "'CUDAExecutionProvider'");
  CHECK_OK(api()->CreateAndRegisterAllocatorV2(env, "CPUExecutionProvider", memory, first, NULL, NULL, 0));
  CHECK(stat_of(shared_allocator(memory), "NumAllocs") == 0);
  api()->ReleaseArenaCfg(first);
  api()->ReleaseArenaCfg(second);
  api()->ReleaseMemoryInfo(memory);
  close_env();
}

/* ---- Streams ---- */

static void test_what_a_stream_used_goes_to_that_stream(void) {
  open_env();
  Device device = plug("virtual");
  OrtAllocator* arena = new_arena(&device, exact); /* every block a region */
  OrtSyncStream *one = stream_on(&device), *two = stream_on(&device);
  void* block = arena->AllocOnStream(arena, 512 * KB, one);
  arena->Free(arena, block);
  void* other = arena->AllocOnStream(arena, 512 * KB, two);
  void* any = arena->Alloc(arena, 512 * KB);
  CHECK(other != block && any != block);
  CHECK(arena->AllocOnStream(arena, 512 * KB, one) == block);
  arena->Free(arena, block);
  CHECK_OK(arena->Shrink(arena)); /* the stream's work may still use it: its region stays */
  CHECK(device.control->live_chunks == 3);
  api()->ReleaseSyncStream(one); /* its work is done: the block is everybody's */
  CHECK(arena->Alloc(arena, 512 * KB) == block);
  arena->Free(arena, block);
  arena->Free(arena, any);
  api()->ReleaseSyncStream(two);
  arena->Free(arena, other); /* after its stream */
  CHECK_OK(arena->Shrink(arena));
  CHECK(device.control->live_chunks == 0);
  unplug(&device);
  close_env();
}

/* ---- Threads ---- */

typedef struct Worker {
  OrtAllocator* arena;
  unsigned seed;
  bool is_right;
} Worker;

static void fill(unsigned char* block, size_t size, unsigned char value) {
  memset(block, value, size < 64 ? size : 64);
  block[size - 1] = value;
}

/* Blocks are filled with what says whose they are: two that overlap are seen. */
static void* work(void* argument) {
  Worker* worker = argument;
  OrtAllocator* arena = worker->arena;
  unsigned char* blocks[32] = {NULL};
  size_t sizes[32];
  worker->is_right = true;
  for (int i = 0; i < 3000; i++) {
    int k = (int)(rand_r(&worker->seed) % 32);
    unsigned char mark = (unsigned char)(worker->seed + (unsigned)k);
    if (blocks[k] != NULL) {
      worker->is_right = worker->is_right && blocks[k][0] == blocks[k][sizes[k] - 1];
      arena->Free(arena, blocks[k]);
      blocks[k] = NULL;
      continue;
    }
    sizes[k] = (size_t)(rand_r(&worker->seed) % 20000) + 1;
    blocks[k] = i % 50 == 0 ? arena->Reserve(arena, sizes[k]) : arena->Alloc(arena, sizes[k]);
    if (blocks[k] != NULL) fill(blocks[k], sizes[k], mark);
    worker->is_right = worker->is_right && blocks[k] != NULL;
    if (i % 500 == 0) api()->ReleaseStatus(arena->Shrink(arena));
  }
  for (int k = 0; k < 32; k++) arena->Free(arena, blocks[k]);
  return NULL;
}

static void test_many_threads(void) {
  enum { THREADS = 8 };
  Worker workers[THREADS];
  pthread_t threads[THREADS];
  open_env();
  Device device = plug("plain");
  OrtAllocator* arena = new_arena(&device, defaults);
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (Worker){arena, i, false};
    pthread_create(&threads[i], NULL, work, &workers[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) CHECK(workers[i].is_right);
  CHECK(stat_of(arena, "InUse") == 0);
  CHECK_OK(arena->Shrink(arena));
  CHECK(stat_of(arena, "TotalAllocated") == 0); /* all free chunks found each other */
  CHECK(device.plain->allocs + device.plain->reserves == device.plain->frees);
  unplug(&device);
  close_env();
}

int main(void) {
  RUN(test_an_arena_is_made_when_asked_for);
  RUN(test_the_devices_memory_is_not_touched);
  RUN(test_regions_double);
  RUN(test_neighbours_join);
  RUN(test_the_best_fit_is_taken);
  RUN(test_statistics);
  RUN(test_shrink_keeps_what_is_in_use);
  RUN(test_limits);
  RUN(test_bad_options_are_refused);
  RUN(test_a_block_that_it_never_gave_is_not_freed);
  RUN(test_cpu_arenas);
  RUN(test_what_a_stream_used_goes_to_that_stream);
  RUN(test_many_threads);
  return finish();
}
