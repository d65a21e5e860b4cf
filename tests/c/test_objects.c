/* Key-value pairs, memory infos, allocators and types, through the public tables. */
#include <stdint.h>
#include <stdlib.h>

#include "harness.h"

#define NULL_ARG ORT_INVALID_ARGUMENT

/* ---- Key-value pairs ---- */

static void test_key_values(void) {
  OrtKeyValuePairs* pairs = NULL;
  api()->CreateKeyValuePairs(&pairs);
  CHECK(pairs != NULL);
  CHECK(api()->GetKeyValue(pairs, "a") == NULL);
  api()->AddKeyValuePair(pairs, "b", "2");
  api()->AddKeyValuePair(pairs, "a", "1");
  api()->AddKeyValuePair(pairs, "c", NULL);
  api()->AddKeyValuePair(pairs, "b", "two");
  CHECK_TEXT(api()->GetKeyValue(pairs, "b"), "two");
  CHECK_TEXT(api()->GetKeyValue(pairs, "c"), "");
  const char *const *keys = NULL, *const *values = NULL;
  size_t count = 0;
  api()->GetKeyValuePairs(pairs, &keys, &values, &count);
  CHECK(count == 3);
  CHECK_TEXT(keys[0], "a");
  CHECK_TEXT(values[0], "1");
  CHECK_TEXT(keys[1], "b");
  api()->RemoveKeyValuePair(pairs, "a");
  api()->RemoveKeyValuePair(pairs, "a");
  api()->GetKeyValuePairs(pairs, &keys, &values, &count);
  CHECK(count == 2);
  CHECK(api()->GetKeyValue(pairs, "a") == NULL);
  CHECK_TEXT(keys[0], "b");
  api()->ReleaseKeyValuePairs(pairs);
}

static void test_many_key_values_stay_sorted(void) {
  OrtKeyValuePairs* pairs = NULL;
  char key[16];
  api()->CreateKeyValuePairs(&pairs);
  for (int i = 0; i < 1000; i++) {
    snprintf(key, sizeof key, "k%d", i * 7919 % 1000);
    api()->AddKeyValuePair(pairs, key, key + 1);
  }
  const char *const *keys, *const *values;
  size_t count;
  api()->GetKeyValuePairs(pairs, &keys, &values, &count);
  CHECK(count == 1000);
  for (size_t i = 1; i < count; i++) CHECK(strcmp(keys[i - 1], keys[i]) < 0);
  for (size_t i = 0; i < count; i++) CHECK_TEXT(values[i], keys[i] + 1);
  api()->ReleaseKeyValuePairs(pairs);
}

/* These slots have no status: nothing may crash and nothing may change. */
static void test_key_values_take_null(void) {
  OrtKeyValuePairs* pairs = NULL;
  size_t count = 9;
  api()->CreateKeyValuePairs(NULL);
  api()->CreateKeyValuePairs(&pairs);
  api()->AddKeyValuePair(NULL, "a", "1");
  api()->AddKeyValuePair(pairs, NULL, "1");
  api()->AddKeyValuePair(pairs, "", "1");
  api()->RemoveKeyValuePair(NULL, "a");
  api()->RemoveKeyValuePair(pairs, NULL);
  CHECK(api()->GetKeyValue(NULL, "a") == NULL);
  CHECK(api()->GetKeyValue(pairs, NULL) == NULL);
  api()->GetKeyValuePairs(NULL, NULL, NULL, &count);
  CHECK(count == 0);
  count = 9;
  api()->GetKeyValuePairs(pairs, NULL, NULL, &count);
  CHECK(count == 0);
  api()->GetKeyValuePairs(pairs, NULL, NULL, NULL);
  api()->ReleaseKeyValuePairs(pairs);
  api()->ReleaseKeyValuePairs(NULL);
}

/* No status, so out of memory shows as a pair that is not there; the pairs stay whole. */
static void test_key_values_out_of_memory(void) {
  OrtKeyValuePairs* pairs = (OrtKeyValuePairs*)&pairs;
  ortabi_fail_allocation(0);
  api()->CreateKeyValuePairs(&pairs);
  CHECK(pairs == NULL);
  api()->CreateKeyValuePairs(&pairs);
  api()->AddKeyValuePair(pairs, "kept", "1");
  for (int64_t n = 0; api()->GetKeyValue(pairs, "new") == NULL; n++) {
    const char *const *keys, *const *values;
    size_t count;
    if (!CHECK(n < 10)) break;
    ortabi_fail_allocation(n);
    api()->AddKeyValuePair(pairs, "new", "2");
    ortabi_fail_allocation(-1);
    api()->GetKeyValuePairs(pairs, &keys, &values, &count);
    CHECK(count == (api()->GetKeyValue(pairs, "new") ? 2u : 1u));
    CHECK_TEXT(api()->GetKeyValue(pairs, "kept"), "1");
  }
  api()->ReleaseKeyValuePairs(pairs);
}

/* ---- Memory infos ---- */

static void test_memory_info(void) {
  OrtMemoryInfo *cpu = NULL, *same = NULL, *pinned = NULL;
  CHECK_OK(api()->CreateMemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault, &cpu));
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &same));
  CHECK_OK(api()->CreateMemoryInfo_V2("Chip", OrtMemoryInfoDeviceType_NPU, 0x1234, 3,
                                      OrtDeviceMemoryType_HOST_ACCESSIBLE, 256, OrtArenaAllocator, &pinned));
  int result = 9, id = 9;
  const char* name = NULL;
  OrtMemType mem_type;
  OrtAllocatorType type;
  OrtMemoryInfoDeviceType device;
  CHECK_OK(api()->CompareMemoryInfo(cpu, same, &result));
  CHECK(result == 0);
  CHECK_OK(api()->CompareMemoryInfo(cpu, pinned, &result));
  CHECK(result != 0);
  CHECK_OK(api()->MemoryInfoGetName(pinned, &name));
  CHECK_TEXT(name, "Chip");
  CHECK_OK(api()->MemoryInfoGetId(pinned, &id));
  CHECK(id == 3);
  CHECK_OK(api()->MemoryInfoGetMemType(cpu, &mem_type));
  CHECK(mem_type == OrtMemTypeDefault);
  CHECK_OK(api()->MemoryInfoGetType(pinned, &type));
  CHECK(type == OrtArenaAllocator);
  api()->MemoryInfoGetDeviceType(pinned, &device);
  CHECK(device == OrtMemoryInfoDeviceType_NPU);
  CHECK(api()->MemoryInfoGetVendorId(pinned) == 0x1234);
  CHECK(api()->MemoryInfoGetDeviceMemType(pinned) == OrtDeviceMemoryType_HOST_ACCESSIBLE);
  api()->ReleaseMemoryInfo(cpu);
  api()->ReleaseMemoryInfo(same);
  api()->ReleaseMemoryInfo(pinned);
  api()->ReleaseMemoryInfo(NULL);
}

static void test_memory_device(void) {
  const OrtEpApi* ep = api()->GetEpApi();
  OrtMemoryInfo *a = NULL, *b = NULL, *other = NULL;
  CHECK_OK(api()->CreateMemoryInfo_V2("A", OrtMemoryInfoDeviceType_GPU, 7, 1, OrtDeviceMemoryType_DEFAULT, 0,
                                      OrtDeviceAllocator, &a));
  CHECK_OK(api()->CreateMemoryInfo_V2("B", OrtMemoryInfoDeviceType_GPU, 7, 1, OrtDeviceMemoryType_DEFAULT, 64,
                                      OrtArenaAllocator, &b));
  CHECK_OK(api()->CreateMemoryInfo_V2("A", OrtMemoryInfoDeviceType_GPU, 7, 2, OrtDeviceMemoryType_DEFAULT, 0,
                                      OrtDeviceAllocator, &other));
  const OrtMemoryDevice* device = ep->MemoryInfo_GetMemoryDevice(a);
  CHECK(ep->MemoryDevice_AreEqual(device, ep->MemoryInfo_GetMemoryDevice(b)));
  CHECK(!ep->MemoryDevice_AreEqual(device, ep->MemoryInfo_GetMemoryDevice(other)));
  CHECK(!ep->MemoryDevice_AreEqual(device, NULL));
  CHECK(ep->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_GPU);
  CHECK(ep->MemoryDevice_GetMemoryType(device) == OrtDeviceMemoryType_DEFAULT);
  CHECK(ep->MemoryDevice_GetVendorId(device) == 7);
  CHECK(ep->MemoryDevice_GetDeviceId(device) == 1);
  api()->ReleaseMemoryInfo(a);
  api()->ReleaseMemoryInfo(b);
  api()->ReleaseMemoryInfo(other);
}

static void test_memory_info_refuses(void) {
  OrtMemoryInfo* info = NULL;
  const OrtMemoryInfoDeviceType gpu = OrtMemoryInfoDeviceType_GPU;
  const OrtDeviceMemoryType plain = OrtDeviceMemoryType_DEFAULT;
  CHECK_FAILS(api()->CreateMemoryInfo(NULL, OrtDeviceAllocator, 0, OrtMemTypeDefault, &info), NULL_ARG,
              "name");
  CHECK_FAILS(api()->CreateMemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault, NULL), NULL_ARG,
              "out");
  CHECK_FAILS(api()->CreateMemoryInfo("Moon", OrtDeviceAllocator, 0, OrtMemTypeDefault, &info),
              ORT_INVALID_ARGUMENT, "Moon");
  CHECK_FAILS(api()->CreateMemoryInfo("Cpu", OrtDeviceAllocator, 0, (OrtMemType)77, &info),
              ORT_INVALID_ARGUMENT, "77");
  CHECK_FAILS(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->CreateMemoryInfo_V2(NULL, gpu, 0, 0, plain, 0, OrtDeviceAllocator, &info), NULL_ARG,
              "name");
  CHECK_FAILS(api()->CreateMemoryInfo_V2("A", gpu, 0, 0, plain, 0, OrtDeviceAllocator, NULL), NULL_ARG,
              "out");
  CHECK_FAILS(
      api()->CreateMemoryInfo_V2("A", (OrtMemoryInfoDeviceType)9, 0, 0, plain, 0, OrtDeviceAllocator, &info),
      ORT_INVALID_ARGUMENT, "device type 9");
  CHECK_FAILS(
      api()->CreateMemoryInfo_V2("A", gpu, 0, 0, (OrtDeviceMemoryType)1, 0, OrtDeviceAllocator, &info),
      ORT_INVALID_ARGUMENT, "memory type 1");
  CHECK_FAILS(api()->CreateMemoryInfo_V2("A", gpu, 0, 0, plain, 48, OrtDeviceAllocator, &info),
              ORT_INVALID_ARGUMENT, "power of two");
  CHECK(info == NULL);
}

static void test_memory_info_queries_take_null(void) {
  OrtMemoryInfo* info = NULL;
  const char* name;
  int number;
  OrtMemoryInfoDeviceType device;
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
  CHECK_FAILS(api()->CompareMemoryInfo(NULL, info, &number), NULL_ARG, "info1");
  CHECK_FAILS(api()->CompareMemoryInfo(info, NULL, &number), NULL_ARG, "info2");
  CHECK_FAILS(api()->CompareMemoryInfo(info, info, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->MemoryInfoGetName(NULL, &name), NULL_ARG, "MemoryInfoGetName");
  CHECK_FAILS(api()->MemoryInfoGetName(info, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->MemoryInfoGetId(NULL, &number), NULL_ARG, "ptr");
  CHECK_FAILS(api()->MemoryInfoGetMemType(info, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->MemoryInfoGetType(info, NULL), NULL_ARG, "out");
  api()->MemoryInfoGetDeviceType(NULL, &device);
  api()->MemoryInfoGetDeviceType(info, NULL);
  CHECK(api()->MemoryInfoGetVendorId(NULL) == 0);
  CHECK(api()->MemoryInfoGetDeviceMemType(NULL) == OrtDeviceMemoryType_DEFAULT);
  CHECK(api()->GetEpApi()->MemoryInfo_GetMemoryDevice(NULL) == NULL);
  CHECK(api()->GetEpApi()->Value_GetMemoryDevice(NULL) == NULL);
  api()->ReleaseMemoryInfo(info);
}

static OrtStatus* make_memory_info(void) {
  OrtMemoryInfo* info = NULL;
  OrtStatus* status = api()->CreateMemoryInfo_V2("Chip", OrtMemoryInfoDeviceType_NPU, 1, 0,
                                                 OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &info);
  CHECK((status == NULL) == (info != NULL));
  api()->ReleaseMemoryInfo(info);
  return status;
}

/* ---- The CPU allocator ---- */

static void test_cpu_allocator(void) {
  OrtAllocator* allocator = NULL;
  const OrtMemoryInfo* info = NULL;
  const char* name = NULL;
  void* block = NULL;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK(allocator->version >= 1 && allocator->version <= ORT_API_VERSION);
  CHECK_OK(api()->AllocatorGetInfo(allocator, &info));
  CHECK_OK(api()->MemoryInfoGetName(info, &name));
  CHECK_TEXT(name, "Cpu");
  CHECK_OK(api()->AllocatorAlloc(allocator, 1000, &block));
  CHECK((uintptr_t)block % 64 == 0);
  memset(block, 1, 1000);
  CHECK_OK(api()->AllocatorFree(allocator, block));
  CHECK_OK(api()->AllocatorFree(allocator, NULL));
  CHECK_OK(api()->AllocatorAlloc(allocator, 0, &block));
  CHECK_OK(api()->AllocatorFree(allocator, block));
  block = allocator->Alloc(allocator, 10);
  CHECK(block != NULL);
  allocator->Free(allocator, block);
  block = allocator->Reserve(allocator, 10);
  CHECK(block != NULL);
  allocator->Free(allocator, block);
  CHECK(allocator->Alloc(allocator, SIZE_MAX) == NULL);
  CHECK_OK(allocator->Shrink(allocator));
}

static void test_allocator_stats_of_cpu_are_empty(void) {
  OrtAllocator* allocator = NULL;
  OrtKeyValuePairs* stats = NULL;
  const char *const *keys, *const *values;
  size_t count = 9;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->AllocatorGetStats(allocator, &stats));
  api()->GetKeyValuePairs(stats, &keys, &values, &count);
  CHECK(count == 0);
  api()->ReleaseKeyValuePairs(stats);
}

static void test_allocator_refuses(void) {
  OrtAllocator* allocator = NULL;
  void* block = (void*)&allocator;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_FAILS(api()->GetAllocatorWithDefaultOptions(NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->AllocatorAlloc(NULL, 1, &block), NULL_ARG, "ort_allocator");
  CHECK_FAILS(api()->AllocatorAlloc(allocator, 1, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->AllocatorAlloc(allocator, SIZE_MAX, &block), ORT_RUNTIME_EXCEPTION, "no memory");
  CHECK(block == (void*)&allocator);
  CHECK_FAILS(api()->AllocatorFree(NULL, block), NULL_ARG, "ort_allocator");
  CHECK_FAILS(api()->AllocatorGetInfo(NULL, (const OrtMemoryInfo**)&block), NULL_ARG, "ort_allocator");
  CHECK_FAILS(api()->AllocatorGetInfo(allocator, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->AllocatorGetStats(NULL, (OrtKeyValuePairs**)&block), NULL_ARG, "ort_allocator");
  CHECK_FAILS(api()->AllocatorGetStats(allocator, NULL), NULL_ARG, "out");
}

static OrtStatus* make_allocation(void) {
  OrtAllocator* allocator = NULL;
  void* block = NULL;
  OrtStatus* status = api()->GetAllocatorWithDefaultOptions(&allocator);
  if (status == NULL) status = api()->AllocatorAlloc(allocator, 100, &block);
  if (status == NULL) status = api()->AllocatorFree(allocator, block);
  return status;
}

static OrtStatus* make_stats(void) {
  OrtAllocator* allocator = NULL;
  OrtKeyValuePairs* stats = NULL;
  OrtStatus* status = api()->GetAllocatorWithDefaultOptions(&allocator);
  if (status == NULL) status = api()->AllocatorGetStats(allocator, &stats);
  api()->ReleaseKeyValuePairs(stats);
  return status;
}

/* An allocator of version 1 ends after Info: what comes later must not be read. */
typedef struct OldAllocator {
  uint32_t version;
  void* (*Alloc)(OrtAllocator*, size_t);
  void (*Free)(OrtAllocator*, void*);
  const OrtMemoryInfo* (*Info)(const OrtAllocator*);
} OldAllocator;

static int old_blocks;
static OrtMemoryInfo* old_info;

static void* old_alloc(OrtAllocator* allocator, size_t size) {
  (void)allocator;
  old_blocks++;
  return malloc(size);
}

static void old_free(OrtAllocator* allocator, void* block) {
  (void)allocator;
  old_blocks--;
  free(block);
}

static const OrtMemoryInfo* old_get_info(const OrtAllocator* allocator) {
  (void)allocator;
  return old_info;
}

static void test_old_allocator_is_not_read_past_its_end(void) {
  OldAllocator* old = malloc(sizeof *old); /* on the heap: the sanitizer sees a read behind it */
  *old = (OldAllocator){1, old_alloc, old_free, old_get_info};
  OrtAllocator* allocator = (OrtAllocator*)old;
  OrtKeyValuePairs* stats = NULL;
  OrtValue* value = NULL;
  const int64_t dims[] = {2, 3};
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &old_info));
  CHECK_OK(api()->AllocatorGetStats(allocator, &stats));
  api()->ReleaseKeyValuePairs(stats);
  CHECK_OK(api()->CreateTensorAsOrtValue(allocator, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  CHECK(old_blocks == 1);
  api()->ReleaseValue(value);
  CHECK(old_blocks == 0);
  api()->ReleaseMemoryInfo(old_info);
  free(old);
}

/* ---- Types ---- */

static void test_tensor_type(void) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXTensorElementDataType type;
  const int64_t dims[] = {2, -1, 5};
  const char* names[] = {"", "n", NULL};
  const char* read_names[3] = {NULL, NULL, NULL};
  int64_t read[3] = {0, 0, 0};
  size_t count = 9;
  CHECK_OK(api()->CreateTensorTypeAndShapeInfo(&info));
  CHECK(!api()->TensorTypeAndShape_HasShape(info));
  CHECK_OK(api()->GetTensorElementType(info, &type));
  CHECK(type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
  CHECK_OK(api()->SetTensorElementType(info, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64));
  CHECK_OK(api()->SetDimensions(info, dims, 3));
  CHECK_OK(api()->SetSymbolicDimensions(info, names, 3));
  CHECK(api()->TensorTypeAndShape_HasShape(info));
  CHECK_OK(api()->GetTensorElementType(info, &type));
  CHECK(type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  CHECK_OK(api()->GetDimensionsCount(info, &count));
  CHECK(count == 3);
  CHECK_OK(api()->GetDimensions(info, read, 2));
  CHECK(read[0] == 2 && read[1] == -1 && read[2] == 0);
  CHECK_OK(api()->GetDimensions(info, read, 3));
  CHECK(read[2] == 5);
  CHECK_OK(api()->GetSymbolicDimensions(info, read_names, 3));
  CHECK_TEXT(read_names[0], "");
  CHECK_TEXT(read_names[1], "n");
  CHECK_TEXT(read_names[2], "");
  CHECK_OK(api()->GetTensorShapeElementCount(info, &count));
  CHECK(count == SIZE_MAX);
  CHECK_OK(api()->SetDimensions(info, (const int64_t[]){4, 5}, 2));
  CHECK_OK(api()->GetTensorShapeElementCount(info, &count));
  CHECK(count == 20);
  CHECK_OK(api()->SetDimensions(info, NULL, 0));
  CHECK_OK(api()->GetTensorShapeElementCount(info, &count));
  CHECK(count == 1);
  api()->ReleaseTensorTypeAndShapeInfo(info);
  api()->ReleaseTensorTypeAndShapeInfo(NULL);
}

static void test_tensor_type_refuses(void) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  const int64_t huge[] = {INT64_MAX, INT64_MAX};
  const char* names[] = {"n"};
  size_t count = 9;
  CHECK_FAILS(api()->CreateTensorTypeAndShapeInfo(NULL), NULL_ARG, "out");
  CHECK_OK(api()->CreateTensorTypeAndShapeInfo(&info));
  CHECK_FAILS(api()->SetTensorElementType(NULL, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT), NULL_ARG, "info");
  CHECK_FAILS(api()->SetDimensions(NULL, huge, 2), NULL_ARG, "info");
  CHECK_FAILS(api()->SetDimensions(info, NULL, 2), NULL_ARG, "dim_values");
  CHECK_FAILS(api()->SetDimensions(info, huge, SIZE_MAX / 4), ORT_FAIL, "memory");
  CHECK_FAILS(api()->SetSymbolicDimensions(info, names, 1), ORT_INVALID_ARGUMENT, "1 names for 0 dimensions");
  CHECK_FAILS(api()->SetSymbolicDimensions(NULL, names, 1), NULL_ARG, "info");
  CHECK_OK(api()->SetDimensions(info, huge, 2));
  CHECK_FAILS(api()->GetTensorShapeElementCount(info, &count), ORT_INVALID_ARGUMENT, "too many elements");
  CHECK_FAILS(api()->GetTensorShapeElementCount(NULL, &count), NULL_ARG, "info");
  CHECK_FAILS(api()->GetTensorShapeElementCount(info, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->GetTensorElementType(info, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->GetDimensionsCount(info, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->GetDimensions(info, NULL, 2), NULL_ARG, "dim_values");
  CHECK_FAILS(api()->GetDimensions(NULL, NULL, 0), NULL_ARG, "info");
  CHECK_FAILS(api()->GetSymbolicDimensions(info, NULL, 2), NULL_ARG, "dim_params");
  CHECK(!api()->TensorTypeAndShape_HasShape(NULL));
  CHECK(count == 9);
  api()->ReleaseTensorTypeAndShapeInfo(info);
}

static OrtStatus* make_tensor_type(void) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  const char* names[] = {"n", "m"};
  OrtStatus* status = api()->CreateTensorTypeAndShapeInfo(&info);
  if (status == NULL) status = api()->SetDimensions(info, (const int64_t[]){-1, -1}, 2);
  if (status == NULL) status = api()->SetSymbolicDimensions(info, names, 2);
  api()->ReleaseTensorTypeAndShapeInfo(info);
  return status;
}

static void test_type_of_a_value(void) {
  OrtAllocator* allocator = NULL;
  OrtValue* value = NULL;
  OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  const OrtSequenceTypeInfo* sequence = (const OrtSequenceTypeInfo*)&value;
  const OrtMapTypeInfo* map = (const OrtMapTypeInfo*)&value;
  const OrtOptionalTypeInfo* optional = (const OrtOptionalTypeInfo*)&value;
  const char* denotation = NULL;
  ONNXType kind;
  size_t count = 9;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->CreateTensorAsOrtValue(allocator, (const int64_t[]){2, 0}, 2,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, &value));
  CHECK_OK(api()->GetTypeInfo(value, &type));
  CHECK_OK(api()->GetOnnxTypeFromTypeInfo(type, &kind));
  CHECK(kind == ONNX_TYPE_TENSOR);
  CHECK_OK(api()->CastTypeInfoToTensorInfo(type, &tensor));
  CHECK_OK(api()->GetTensorShapeElementCount(tensor, &count));
  CHECK(count == 0);
  CHECK_OK(api()->CastTypeInfoToSequenceTypeInfo(type, &sequence));
  CHECK_OK(api()->CastTypeInfoToMapTypeInfo(type, &map));
  CHECK_OK(api()->CastTypeInfoToOptionalTypeInfo(type, &optional));
  CHECK(sequence == NULL && map == NULL && optional == NULL);
  CHECK_OK(api()->GetDenotationFromTypeInfo(type, &denotation, &count));
  CHECK_TEXT(denotation, "");
  CHECK(count == 0);
  CHECK_FAILS(api()->GetTypeInfo(NULL, &type), NULL_ARG, "value");
  CHECK_FAILS(api()->GetTypeInfo(value, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->GetOnnxTypeFromTypeInfo(NULL, &kind), NULL_ARG, "type_info");
  CHECK_FAILS(api()->CastTypeInfoToTensorInfo(NULL, &tensor), NULL_ARG, "type_info");
  CHECK_FAILS(api()->CastTypeInfoToTensorInfo(type, NULL), NULL_ARG, "out");
  CHECK_FAILS(api()->CastTypeInfoToSequenceTypeInfo(NULL, &sequence), NULL_ARG, "type_info");
  CHECK_FAILS(api()->CastTypeInfoToMapTypeInfo(NULL, &map), NULL_ARG, "type_info");
  CHECK_FAILS(api()->CastTypeInfoToOptionalTypeInfo(NULL, &optional), NULL_ARG, "type_info");
  CHECK_FAILS(api()->GetDenotationFromTypeInfo(NULL, &denotation, &count), NULL_ARG, "type_info");
  api()->ReleaseTypeInfo(type);
  api()->ReleaseTypeInfo(NULL);
  api()->ReleaseValue(value);
}

int main(void) {
  RUN(test_key_values);
  RUN(test_many_key_values_stay_sorted);
  RUN(test_key_values_take_null);
  RUN(test_key_values_out_of_memory);
  RUN(test_memory_info);
  RUN(test_memory_device);
  RUN(test_memory_info_refuses);
  RUN(test_memory_info_queries_take_null);
  RUN(test_cpu_allocator);
  RUN(test_allocator_stats_of_cpu_are_empty);
  RUN(test_allocator_refuses);
  RUN(test_old_allocator_is_not_read_past_its_end);
  RUN(test_tensor_type);
  RUN(test_tensor_type_refuses);
  RUN(test_type_of_a_value);
  CHECK_ALLOCATION_FAILURES(make_memory_info);
  CHECK_ALLOCATION_FAILURES(make_allocation);
  CHECK_ALLOCATION_FAILURES(make_stats);
  CHECK_ALLOCATION_FAILURES(make_tensor_type);
  return finish();
}
