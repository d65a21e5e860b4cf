/* Parts of the CPU EP that a model cannot reach: 16-bit rounding over all values, and hosts it must refuse.
 */
#include <math.h>
#include <stdlib.h>

#include "cpu_ep/cpu_ep.h"
#include "cpu_ep/kernels.h"
#include "harness.h"

/* One of the two 16-bit formats. */
typedef struct Format {
  float (*widen)(uint16_t bits);
  uint16_t (*narrow)(double value);
  uint16_t infinity;
} Format;

static const Format half = {cpu_half_to_float, cpu_double_to_half, 0x7c00};
static const Format bfloat = {cpu_bfloat_to_float, cpu_double_to_bfloat, 0x7f80};

/* Widening and narrowing gives every value back; a NaN stays one. */
static void check_all_values(const Format* format) {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    float wide = format->widen((uint16_t)bits);
    uint16_t back = format->narrow((double)wide);
    bool is_nan = (bits & 0x7fff) > format->infinity;
    if (is_nan ? !isnan(wide) || !isnan(format->widen(back)) : back != bits) wrong++;
  }
  CHECK(wrong == 0);
}

/* Between two neighbours: at the middle to the even one, next to it to the nearer one. */
static void check_all_ties(const Format* format) {
  int wrong = 0;
  for (uint16_t low = 0; low < format->infinity; low++) {
    uint16_t high = (uint16_t)(low + 1);
    double below = (double)format->widen(low);
    /* As if the exponent went on past the largest value: that is where infinity begins. */
    double above = high == format->infinity ? 2 * below - (double)format->widen((uint16_t)(low - 1))
                                            : (double)format->widen(high);
    double middle = (below + above) / 2;
    wrong += format->narrow(middle) != (low & 1 ? high : low);
    wrong += format->narrow(nextafter(middle, 0)) != low;
    wrong += format->narrow(nextafter(middle, INFINITY)) != high;
    wrong += format->narrow(-middle) != ((low & 1 ? high : low) | 0x8000);
  }
  CHECK(wrong == 0);
}

static void test_16_bit_reals(void) {
  check_all_values(&half);
  check_all_values(&bfloat);
  check_all_ties(&half);
  check_all_ties(&bfloat);
  CHECK(cpu_double_to_half(1e300) == 0x7c00 && cpu_double_to_half(-INFINITY) == 0xfc00);
  CHECK(cpu_double_to_half(4.9e-324) == 0 && cpu_double_to_half(-1e-30) == 0x8000);
  CHECK(cpu_double_to_half(-0.0) == 0x8000);
}

static void test_element_counts(void) {
  int64_t count = -1;
  CHECK(cpu_element_count(NULL, 0, &count) && count == 1);
  CHECK(cpu_element_count((const int64_t[]){2, 3}, 2, &count) && count == 6);
  CHECK(cpu_element_count((const int64_t[]){INT64_MAX, 0, INT64_MAX}, 3, &count) && count == 0);
  CHECK(!cpu_element_count((const int64_t[]){INT64_MAX, 2}, 2, &count));
  CHECK(!cpu_element_count((const int64_t[]){1ll << 31, 1ll << 31}, 2, &count)); /* fits, its bytes do not */
  CHECK(!cpu_element_count((const int64_t[]){0, -1}, 2, &count));
}

/* ---- Weights that MatMul packs ---- */

/* What a cache was given; the host's side of SharedPrePackedWeightCache_StoreWeightData. */
static struct {
  bool fails;
  void* buffer;
  size_t size;
} cache;

static OrtStatus* store(OrtSharedPrePackedWeightCache* self, void** buffers, size_t* sizes, size_t count) {
  CHECK(self == (OrtSharedPrePackedWeightCache*)&cache && count == 1);
  if (cache.fails) return api()->CreateStatus(ORT_FAIL, "the cache is full");
  cache.buffer = buffers[0];
  cache.size = sizes[0];
  return NULL;
}

/* A MatMul kernel without a node, and a 2 x 3 float weight. */
typedef struct Fixture {
  OrtEpApi ep_api;
  CpuKernel* kernel;
  OrtAllocator* allocator;
  OrtValue* weight;
  float elements[6];
} Fixture;

static bool set_up(Fixture* f) {
  const int64_t dims[] = {2, 3};
  OrtMemoryInfo* cpu = NULL;
  memset(f, 0, sizeof *f);
  memset(&cache, 0, sizeof cache);
  f->ep_api = *api()->GetEpApi();
  f->ep_api.SharedPrePackedWeightCache_StoreWeightData = store;
  for (int i = 0; i < 6; i++) f->elements[i] = (float)i + 1;
  if (!CHECK_OK(api()->GetAllocatorWithDefaultOptions(&f->allocator))) return false;
  if (!CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu))) return false;
  CHECK_OK(api()->CreateTensorWithDataAsOrtValue(cpu, f->elements, sizeof f->elements, dims, 2,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &f->weight));
  api()->ReleaseMemoryInfo(cpu);
  f->kernel = calloc(1, cpu_matmul.size);
  if (!f->kernel || !f->weight) return false;
  f->kernel->api = api();
  f->kernel->ep_api = &f->ep_api;
  f->kernel->op = &cpu_matmul;
  f->kernel->op_type = "MatMul";
  return true;
}

static void tear_down(Fixture* f) {
  if (f->kernel) cpu_matmul.release(f->kernel);
  free(f->kernel);
  api()->ReleaseValue(f->weight);
}

static OrtStatus* pack(Fixture* f, int index, OrtAllocator* allocator, void* to, bool* is_packed) {
  *is_packed = true;
  return cpu_matmul.prepack(&f->kernel->impl, f->weight, index, allocator, to, is_packed);
}

static void test_weights_that_are_not_packed(void) {
  Fixture f;
  bool is_packed;
  if (!set_up(&f)) return;
  CHECK_OK(pack(&f, 0, f.allocator, NULL, &is_packed));
  CHECK(!is_packed); /* the left side */
  CHECK_OK(pack(&f, 1, NULL, NULL, &is_packed));
  CHECK(!is_packed); /* nowhere to pack it */
  tear_down(&f);
}

/* The sanitizers see a buffer that nobody frees, or that is freed twice. */
static void test_a_private_weight_is_freed_with_the_kernel(void) {
  Fixture f;
  bool is_packed;
  if (!set_up(&f)) return;
  CHECK_OK(pack(&f, 1, f.allocator, NULL, &is_packed));
  CHECK(is_packed);
  tear_down(&f);
}

static void test_a_shared_weight_belongs_to_the_cache(void) {
  /* Two rows of three columns, filled up to eight. */
  static const float expected[16] = {1, 2, 3, 0, 0, 0, 0, 0, 4, 5, 6};
  Fixture f;
  bool is_packed;
  if (!set_up(&f)) return;
  CHECK_OK(pack(&f, 1, f.allocator, &cache, &is_packed));
  CHECK(is_packed && cache.size == sizeof expected && memcmp(cache.buffer, expected, sizeof expected) == 0);
  const void* shared = cache.buffer;
  CHECK_OK(cpu_matmul.set_shared(&f.kernel->impl, &shared, &cache.size, 1, 1));
  CHECK_FAILS(cpu_matmul.set_shared(&f.kernel->impl, &shared, &cache.size, 1, 0), ORT_INVALID_ARGUMENT,
              "input 1");
  CHECK_FAILS(cpu_matmul.set_shared(&f.kernel->impl, &shared, &cache.size, 0, 1), ORT_INVALID_ARGUMENT,
              "input 1");
  f.allocator->Free(f.allocator, cache.buffer);
  tear_down(&f);
}

static void test_a_cache_that_refuses_leaves_the_buffer(void) {
  Fixture f;
  bool is_packed;
  if (!set_up(&f)) return;
  cache.fails = true;
  CHECK_FAILS(pack(&f, 1, f.allocator, &cache, &is_packed), ORT_FAIL, "the cache is full");
  CHECK(!is_packed);
  tear_down(&f);
}

/* ---- Hosts ---- */

static const OrtApi* get_api_up_to_23(uint32_t version) {
  return version <= 23 ? OrtGetApiBase()->GetApi(version) : NULL;
}

static const char* get_old_version(void) {
  return "1.23.0";
}

static void test_a_host_that_is_too_old(void) {
  const OrtApiBase old_host = {get_api_up_to_23, get_old_version};
  OrtEpFactory* factory = NULL;
  size_t count = 7;
  CHECK_FAILS(cpu_ep_create_factories("cpu", &old_host, NULL, &factory, 1, &count), ORT_FAIL,
              "needs API version 24, which this host (1.23.0) does not have");
  CHECK(factory == NULL && count == 0);
}

static void test_no_room_for_the_factory(void) {
  size_t count = 7;
  CHECK_FAILS(cpu_ep_create_factories("cpu", OrtGetApiBase(), NULL, NULL, 0, &count), ORT_INVALID_ARGUMENT,
              "no room for one factory");
  CHECK(count == 0);
}

static void test_the_factory_fills_what_a_host_calls_unchecked(void) {
  OrtEpFactory* factory = NULL;
  size_t count = 0;
  if (!CHECK_OK(cpu_ep_create_factories("cpu", OrtGetApiBase(), NULL, &factory, 1, &count))) return;
  CHECK(count == 1);
  CHECK_TEXT(factory->GetName(factory), "CPUExecutionProvider");
  CHECK_TEXT(factory->GetVendor(factory), "ort-abi");
  CHECK(factory->GetVersion(factory) != NULL && factory->GetVendorId(factory) == 0);
  OrtAllocator* allocator = (OrtAllocator*)&count;
  CHECK_OK(factory->CreateAllocator(factory, NULL, NULL, &allocator));
  CHECK(allocator == NULL);
  OrtDataTransferImpl* transfer = (OrtDataTransferImpl*)&count;
  CHECK_OK(factory->CreateDataTransfer(factory, &transfer));
  CHECK(transfer == NULL);
  OrtSyncStreamImpl* stream = (OrtSyncStreamImpl*)&count;
  CHECK(!factory->IsStreamAware(factory));
  CHECK_FAILS(factory->CreateSyncStreamForDevice(factory, NULL, NULL, &stream), ORT_NOT_IMPLEMENTED,
              "no streams");
  CHECK(stream == NULL);
  CHECK_OK(cpu_ep_release_factory(factory));
}

/* The sanitizers see a registry that outlives its factory. */
static void test_sessions_share_one_registry(void) {
  OrtEpFactory* factory = NULL;
  OrtEp* eps[2] = {NULL, NULL};
  const OrtKernelRegistry* registries[2] = {NULL, NULL};
  size_t count = 0;
  if (!CHECK_OK(cpu_ep_create_factories("cpu", OrtGetApiBase(), NULL, &factory, 1, &count))) return;
  for (int i = 0; i < 2; i++) {
    if (!CHECK_OK(factory->CreateEp(factory, NULL, NULL, 0, NULL, NULL, &eps[i]))) continue;
    CHECK_OK(eps[i]->GetKernelRegistry(eps[i], &registries[i]));
    bool is_supported = false;
    CHECK_OK(eps[i]->IsConcurrentRunSupported(eps[i], &is_supported));
    CHECK(is_supported);
    factory->ReleaseEp(factory, eps[i]);
  }
  CHECK(registries[0] != NULL && registries[0] == registries[1]);
  CHECK_OK(cpu_ep_release_factory(factory));
}

int main(void) {
  RUN(test_16_bit_reals);
  RUN(test_element_counts);
  RUN(test_weights_that_are_not_packed);
  RUN(test_a_private_weight_is_freed_with_the_kernel);
  RUN(test_a_shared_weight_belongs_to_the_cache);
  RUN(test_a_cache_that_refuses_leaves_the_buffer);
  RUN(test_a_host_that_is_too_old);
  RUN(test_no_room_for_the_factory);
  RUN(test_the_factory_fills_what_a_host_calls_unchecked);
  RUN(test_sessions_share_one_registry);
  return finish();
}
