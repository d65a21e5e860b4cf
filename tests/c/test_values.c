/* Tensors, numeric and string, through the public tables. */
#include <stdint.h>
#include <stdlib.h>

#include "harness.h"

#define FLOAT  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
#define STRING ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING

static OrtAllocator* cpu(void) {
  OrtAllocator* allocator = NULL;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  return allocator;
}

static OrtValue* new_tensor(ONNXTensorElementDataType type, size_t rank, const int64_t* dims) {
  OrtValue* value = NULL;
  CHECK_OK(api()->CreateTensorAsOrtValue(cpu(), dims, rank, type, &value));
  return value;
}

static void test_tensor_has_its_shape_and_memory(void) {
  const int64_t dims[] = {1, 2, 3, 4, 5, 6, 7, 2}; /* more than is kept inline */
  const int64_t* shape = NULL;
  OrtValue* value = new_tensor(FLOAT, 8, dims);
  ONNXTensorElementDataType type;
  OrtTensorTypeAndShapeInfo* info = NULL;
  const OrtMemoryInfo* memory = NULL;
  const char* name = NULL;
  void* data = NULL;
  const void* const_data = NULL;
  size_t count = 0;
  int flag = 0;
  ONNXType kind;
  CHECK_OK(api()->GetTensorElementTypeAndShapeDataReference(value, &type, &shape, &count));
  CHECK(type == FLOAT && count == 8 && memcmp(shape, dims, sizeof dims) == 0);
  CHECK_OK(api()->GetTensorTypeAndShape(value, &info));
  CHECK_OK(api()->GetTensorShapeElementCount(info, &count));
  CHECK(count == 10080);
  api()->ReleaseTensorTypeAndShapeInfo(info);
  CHECK_OK(api()->GetTensorSizeInBytes(value, &count));
  CHECK(count == 40320);
  CHECK_OK(api()->GetTensorMutableData(value, &data));
  memset(data, 0, count);
  CHECK_OK(api()->GetTensorData(value, &const_data));
  CHECK(const_data == data && (uintptr_t)data % 64 == 0);
  CHECK_OK(api()->GetTensorMemoryInfo(value, &memory));
  CHECK_OK(api()->MemoryInfoGetName(memory, &name));
  CHECK_TEXT(name, "Cpu");
  CHECK_OK(api()->IsTensor(value, &flag));
  CHECK(flag == 1);
  CHECK_OK(api()->IsSparseTensor(value, &flag));
  CHECK(flag == 0);
  CHECK_OK(api()->HasValue(value, &flag));
  CHECK(flag == 1);
  CHECK_OK(api()->GetValueType(value, &kind));
  CHECK(kind == ONNX_TYPE_TENSOR);
  api()->ReleaseValue(value);
  api()->ReleaseValue(NULL);
}

static void test_bytes_of_every_element_type(void) {
  static const size_t bytes_of_five[] = {0,  20, 5,  5, 10, 10, 20, 40, 0, 5, 10, 40, 20, 40,
                                         40, 80, 10, 5, 5,  5,  5,  3,  3, 3, 2,  2,  5};
  const int64_t dims[] = {5};
  for (int type = 1; type <= 26; type++) {
    if (type == STRING) continue;
    OrtValue* value = new_tensor((ONNXTensorElementDataType)type, 1, dims);
    size_t size = 0;
    CHECK_OK(api()->GetTensorSizeInBytes(value, &size));
    check_at(__FILE__, __LINE__, size == bytes_of_five[type], "type %d: %zu bytes", type, size);
    api()->ReleaseValue(value);
  }
}

static void test_empty_and_scalar_tensors(void) {
  OrtValue* empty = new_tensor(FLOAT, 2, (const int64_t[]){0, 7});
  OrtValue* scalar = new_tensor(FLOAT, 0, NULL);
  OrtValue* over = NULL;
  OrtMemoryInfo* info = NULL;
  size_t size = 9;
  void* data = NULL;
  CHECK_OK(api()->GetTensorSizeInBytes(empty, &size));
  CHECK(size == 0);
  CHECK_OK(api()->GetTensorMutableData(empty, &data));
  CHECK_OK(api()->GetTensorSizeInBytes(scalar, &size));
  CHECK(size == 4);
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
  CHECK_OK(api()->CreateTensorWithDataAsOrtValue(info, NULL, 0, (const int64_t[]){0}, 1, FLOAT, &over));
  api()->ReleaseMemoryInfo(info);
  api()->ReleaseValue(over);
  api()->ReleaseValue(empty);
  api()->ReleaseValue(scalar);
}

static void test_tensor_over_memory_of_the_caller(void) {
  float data[6] = {0, 1, 2, 3, 4, 5};
  const int64_t dims[] = {2, 3};
  OrtMemoryInfo *gpu = NULL, *other = NULL;
  const OrtMemoryInfo* memory = NULL;
  OrtValue* value = NULL;
  void* at = NULL;
  int different = 0;
  CHECK_OK(api()->CreateMemoryInfo_V2("Chip", OrtMemoryInfoDeviceType_GPU, 1, 2, OrtDeviceMemoryType_DEFAULT,
                                      0, OrtDeviceAllocator, &gpu));
  CHECK_OK(api()->CreateMemoryInfo_V2("Chip", OrtMemoryInfoDeviceType_GPU, 1, 2, OrtDeviceMemoryType_DEFAULT,
                                      0, OrtDeviceAllocator, &other));
  CHECK_OK(api()->CreateTensorWithDataAsOrtValue(gpu, data, sizeof data, dims, 2, FLOAT, &value));
  api()->ReleaseMemoryInfo(gpu); /* the value has a copy */
  CHECK_OK(api()->GetTensorMutableData(value, &at));
  CHECK(at == data);
  CHECK_OK(api()->TensorAt(value, (const int64_t[]){1, 2}, 2, &at));
  CHECK(at == &data[5]);
  CHECK_OK(api()->GetTensorMemoryInfo(value, &memory));
  CHECK_OK(api()->CompareMemoryInfo(memory, other, &different));
  CHECK(different == 0);
  api()->ReleaseMemoryInfo(other);
  api()->ReleaseValue(value);
}

static void test_tensor_that_takes_memory(void) {
  OrtValue* value = NULL;
  void* data = NULL;
  const int64_t dims[] = {4};
  CHECK_OK(api()->AllocatorAlloc(cpu(), 16, &data));
  CHECK_FAILS(api()->CreateTensorWithDataAndDeleterAsOrtValue(cpu(), data, 15, dims, 1, FLOAT, &value),
              ORT_INVALID_ARGUMENT, "15 bytes");
  CHECK_OK(api()->CreateTensorWithDataAndDeleterAsOrtValue(cpu(), data, 16, dims, 1, FLOAT, &value));
  api()->ReleaseValue(value); /* and the memory with it: the sanitizer would tell */
}

static void test_sizes_that_do_not_fit(void) {
  const int64_t negative[] = {2, -1};
  const int64_t overflow[] = {INT64_MAX, INT64_MAX};
  const int64_t bytes_wrap[] = {((int64_t)1 << 62) + 1}; /* 4 bytes each: 4 bytes, if nobody looks */
  const int64_t strings_wrap[] = {((int64_t)1 << 60) + 1};
  const int64_t too_much[] = {INT64_MAX / 16};
  OrtValue* value = NULL;
  CHECK_FAILS(api()->CreateTensorAsOrtValue(cpu(), negative, 2, FLOAT, &value), ORT_INVALID_ARGUMENT,
              "negative");
  CHECK_FAILS(api()->CreateTensorAsOrtValue(cpu(), overflow, 2, FLOAT, &value), ORT_INVALID_ARGUMENT,
              "too large");
  CHECK_FAILS(api()->CreateTensorAsOrtValue(cpu(), bytes_wrap, 1, FLOAT, &value), ORT_INVALID_ARGUMENT,
              "too large");
  CHECK_FAILS(api()->CreateTensorAsOrtValue(cpu(), strings_wrap, 1, STRING, &value), ORT_INVALID_ARGUMENT,
              "too large");
  CHECK_FAILS(api()->CreateTensorAsOrtValue(cpu(), too_much, 1, FLOAT, &value), ORT_RUNTIME_EXCEPTION,
              "no memory");
  CHECK_FAILS(api()->CreateTensorAsOrtValue(cpu(), negative, 0, (ONNXTensorElementDataType)0, &value),
              ORT_INVALID_ARGUMENT, "type 0");
  CHECK_FAILS(api()->CreateTensorAsOrtValue(cpu(), negative, 0, (ONNXTensorElementDataType)99, &value),
              ORT_INVALID_ARGUMENT, "type 99");
  CHECK(value == NULL);
}

static void test_create_tensor_takes_no_null(void) {
  OrtMemoryInfo* info = NULL;
  OrtValue* value = NULL;
  const int64_t dims[] = {1};
  float data[1];
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
  CHECK_FAILS(api()->CreateTensorAsOrtValue(NULL, dims, 1, FLOAT, &value), ORT_INVALID_ARGUMENT, "allocator");
  CHECK_FAILS(api()->CreateTensorAsOrtValue(cpu(), NULL, 1, FLOAT, &value), ORT_INVALID_ARGUMENT, "shape");
  CHECK_FAILS(api()->CreateTensorAsOrtValue(cpu(), dims, 1, FLOAT, NULL), ORT_INVALID_ARGUMENT, "out");
  CHECK_FAILS(api()->CreateTensorWithDataAsOrtValue(NULL, data, 4, dims, 1, FLOAT, &value),
              ORT_INVALID_ARGUMENT, "info");
  CHECK_FAILS(api()->CreateTensorWithDataAsOrtValue(info, NULL, 4, dims, 1, FLOAT, &value),
              ORT_INVALID_ARGUMENT, "p_data");
  CHECK_FAILS(api()->CreateTensorWithDataAsOrtValue(info, data, 4, NULL, 1, FLOAT, &value),
              ORT_INVALID_ARGUMENT, "shape");
  CHECK_FAILS(api()->CreateTensorWithDataAsOrtValue(info, data, 4, dims, 1, FLOAT, NULL),
              ORT_INVALID_ARGUMENT, "out");
  CHECK_FAILS(api()->CreateTensorWithDataAsOrtValue(info, data, 3, dims, 1, FLOAT, &value),
              ORT_INVALID_ARGUMENT, "3 bytes");
  CHECK_FAILS(api()->CreateTensorWithDataAsOrtValue(info, data, 4, dims, 1, STRING, &value),
              ORT_INVALID_ARGUMENT, "string");
  CHECK_FAILS(api()->CreateTensorWithDataAndDeleterAsOrtValue(NULL, data, 4, dims, 1, FLOAT, &value),
              ORT_INVALID_ARGUMENT, "deleter");
  CHECK(value == NULL);
  api()->ReleaseMemoryInfo(info);
}

static void test_value_queries_take_no_null(void) {
  OrtValue* value = new_tensor(FLOAT, 0, NULL);
  ONNXTensorElementDataType type;
  const int64_t* shape;
  size_t size;
  int flag;
  void* data;
  CHECK_FAILS(api()->IsTensor(NULL, &flag), ORT_INVALID_ARGUMENT, "value");
  CHECK_FAILS(api()->IsTensor(value, NULL), ORT_INVALID_ARGUMENT, "out");
  CHECK_FAILS(api()->IsSparseTensor(NULL, &flag), ORT_INVALID_ARGUMENT, "value");
  CHECK_FAILS(api()->HasValue(NULL, &flag), ORT_INVALID_ARGUMENT, "value");
  CHECK_FAILS(api()->GetValueType(value, NULL), ORT_INVALID_ARGUMENT, "out");
  CHECK_FAILS(api()->GetTensorMutableData(NULL, &data), ORT_INVALID_ARGUMENT, "value");
  CHECK_FAILS(api()->GetTensorMutableData(value, NULL), ORT_INVALID_ARGUMENT, "out");
  CHECK_FAILS(api()->GetTensorData(NULL, (const void**)&data), ORT_INVALID_ARGUMENT, "value");
  CHECK_FAILS(api()->GetTensorSizeInBytes(NULL, &size), ORT_INVALID_ARGUMENT, "ort_value");
  CHECK_FAILS(api()->GetTensorSizeInBytes(value, NULL), ORT_INVALID_ARGUMENT, "size");
  CHECK_FAILS(api()->GetTensorMemoryInfo(value, NULL), ORT_INVALID_ARGUMENT, "mem_info");
  CHECK_FAILS(api()->GetTensorTypeAndShape(NULL, NULL), ORT_INVALID_ARGUMENT, "value");
  CHECK_FAILS(api()->GetTensorElementTypeAndShapeDataReference(NULL, &type, &shape, &size),
              ORT_INVALID_ARGUMENT, "value");
  CHECK_FAILS(api()->GetTensorElementTypeAndShapeDataReference(value, NULL, &shape, &size),
              ORT_INVALID_ARGUMENT, "elem_type");
  CHECK_FAILS(api()->GetTensorElementTypeAndShapeDataReference(value, &type, NULL, &size),
              ORT_INVALID_ARGUMENT, "shape_data");
  CHECK_FAILS(api()->TensorAt(value, NULL, 1, &data), ORT_INVALID_ARGUMENT, "location_values");
  api()->ReleaseValue(value);
}

static void test_tensor_at_refuses_what_is_outside(void) {
  OrtValue* value = new_tensor(FLOAT, 2, (const int64_t[]){2, 3});
  OrtValue* nibbles = new_tensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, 1, (const int64_t[]){2});
  void* at = NULL;
  CHECK_FAILS(api()->TensorAt(value, (const int64_t[]){2, 0}, 2, &at), ORT_INVALID_ARGUMENT, "index 2");
  CHECK_FAILS(api()->TensorAt(value, (const int64_t[]){0, -1}, 2, &at), ORT_INVALID_ARGUMENT, "index -1");
  CHECK_FAILS(api()->TensorAt(value, (const int64_t[]){0}, 1, &at), ORT_INVALID_ARGUMENT, "rank 2");
  CHECK_FAILS(api()->TensorAt(nibbles, (const int64_t[]){0}, 1, &at), ORT_INVALID_ARGUMENT, "4-bit");
  CHECK(at == NULL);
  api()->ReleaseValue(value);
  api()->ReleaseValue(nibbles);
}

/* ---- Strings ---- */

static void test_strings(void) {
  const char* texts[] = {"alpha", "", "gamma"};
  OrtValue* value = new_tensor(STRING, 1, (const int64_t[]){3});
  size_t offsets[3], length = 9;
  char content[16], *buffer = NULL;
  CHECK_OK(api()->GetStringTensorDataLength(value, &length));
  CHECK(length == 0); /* new elements are empty */
  CHECK_OK(api()->FillStringTensor(value, texts, 3));
  CHECK_OK(api()->GetStringTensorDataLength(value, &length));
  CHECK(length == 10);
  CHECK_OK(api()->GetStringTensorContent(value, content, sizeof content, offsets, 3));
  CHECK(memcmp(content, "alphagamma", 10) == 0 && offsets[0] == 0 && offsets[1] == 5 && offsets[2] == 5);
  CHECK_OK(api()->FillStringTensorElement(value, "a longer one", 1));
  CHECK_OK(api()->GetStringTensorElementLength(value, 1, &length));
  CHECK(length == 12);
  CHECK_OK(api()->GetStringTensorElement(value, sizeof content, 1, content));
  CHECK(memcmp(content, "a longer one", 12) == 0);
  CHECK_OK(api()->GetResizedStringTensorElementBuffer(value, 0, 3, &buffer));
  memcpy(buffer, "x\0y", 3); /* strings may hold NUL */
  CHECK_OK(api()->GetStringTensorElementLength(value, 0, &length));
  CHECK(length == 3);
  CHECK_OK(api()->GetStringTensorElement(value, 3, 0, content));
  CHECK(memcmp(content, "x\0y", 3) == 0);
  CHECK_OK(api()->GetResizedStringTensorElementBuffer(value, 0, 0, &buffer));
  CHECK_OK(api()->GetStringTensorElementLength(value, 0, &length));
  CHECK(length == 0);
  api()->ReleaseValue(value);
}

static void test_strings_refuse(void) {
  const char* texts[] = {"a", NULL};
  OrtValue* value = new_tensor(STRING, 1, (const int64_t[]){2});
  OrtValue* numbers = new_tensor(FLOAT, 1, (const int64_t[]){2});
  size_t length, offsets[2];
  char text[4], *buffer = NULL;
  void* data;
  CHECK_FAILS(api()->FillStringTensor(value, texts, 2), ORT_INVALID_ARGUMENT, "string 1 is NULL");
  CHECK_FAILS(api()->FillStringTensor(value, texts, 1), ORT_INVALID_ARGUMENT, "1 strings for 2 elements");
  CHECK_FAILS(api()->FillStringTensor(value, NULL, 2), ORT_INVALID_ARGUMENT, "'s'");
  CHECK_FAILS(api()->FillStringTensor(NULL, texts, 2), ORT_INVALID_ARGUMENT, "value");
  CHECK_FAILS(api()->FillStringTensor(numbers, texts, 2), ORT_INVALID_ARGUMENT, "not strings");
  CHECK_FAILS(api()->FillStringTensorElement(value, "a", 2), ORT_INVALID_ARGUMENT, "index 2");
  CHECK_FAILS(api()->FillStringTensorElement(value, NULL, 0), ORT_INVALID_ARGUMENT, "'s'");
  CHECK_OK(api()->FillStringTensorElement(value, "five!", 0));
  CHECK_FAILS(api()->GetStringTensorElement(value, 4, 0, text), ORT_INVALID_ARGUMENT,
              "4 bytes given, 5 needed");
  CHECK_FAILS(api()->GetStringTensorElement(value, 5, 0, NULL), ORT_INVALID_ARGUMENT, "'s'");
  CHECK_FAILS(api()->GetStringTensorContent(value, text, 4, offsets, 2), ORT_INVALID_ARGUMENT, "5 needed");
  CHECK_FAILS(api()->GetStringTensorContent(value, text, 5, offsets, 1), ORT_INVALID_ARGUMENT, "1 offsets");
  CHECK_FAILS(api()->GetStringTensorContent(value, NULL, 5, offsets, 2), ORT_INVALID_ARGUMENT, "'s'");
  CHECK_FAILS(api()->GetStringTensorContent(value, text, 5, NULL, 2), ORT_INVALID_ARGUMENT, "offsets");
  CHECK_FAILS(api()->GetStringTensorDataLength(numbers, &length), ORT_INVALID_ARGUMENT, "not strings");
  CHECK_FAILS(api()->GetStringTensorDataLength(value, NULL), ORT_INVALID_ARGUMENT, "len");
  CHECK_FAILS(api()->GetStringTensorElementLength(value, SIZE_MAX, &length), ORT_INVALID_ARGUMENT, "index");
  CHECK_FAILS(api()->GetResizedStringTensorElementBuffer(value, 2, 1, &buffer), ORT_INVALID_ARGUMENT,
              "index 2");
  CHECK_FAILS(api()->GetResizedStringTensorElementBuffer(value, 0, SIZE_MAX, &buffer), ORT_FAIL, "memory");
  CHECK_FAILS(api()->GetResizedStringTensorElementBuffer(value, 0, SIZE_MAX - 1, &buffer), ORT_FAIL,
              "memory");
  CHECK_FAILS(api()->GetTensorMutableData(value, &data), ORT_NOT_IMPLEMENTED, "string");
  CHECK_FAILS(api()->GetTensorSizeInBytes(value, &length), ORT_NOT_IMPLEMENTED, "string");
  CHECK_FAILS(api()->TensorAt(value, (const int64_t[]){0}, 1, &data), ORT_NOT_IMPLEMENTED, "string");
  CHECK(buffer == NULL);
  CHECK_OK(api()->GetStringTensorElementLength(value, 0, &length));
  CHECK(length == 5); /* what failed changed nothing */
  api()->ReleaseValue(value);
  api()->ReleaseValue(numbers);
}

/* ---- Out of memory ---- */

static const int64_t long_shape[] = {1, 1, 1, 1, 1, 1, 1, 2};

static OrtStatus* make_tensor(void) {
  OrtAllocator* allocator = NULL;
  OrtValue* value = NULL;
  OrtStatus* status = api()->GetAllocatorWithDefaultOptions(&allocator);
  if (status == NULL) status = api()->CreateTensorAsOrtValue(allocator, long_shape, 8, FLOAT, &value);
  CHECK((status == NULL) == (value != NULL));
  api()->ReleaseValue(value);
  return status;
}

static OrtStatus* make_tensor_over(void) {
  float data[2];
  OrtMemoryInfo* info = NULL;
  OrtValue* value = NULL;
  OrtStatus* status = api()->CreateMemoryInfo_V2("Chip", OrtMemoryInfoDeviceType_GPU, 1, 0,
                                                 OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &info);
  if (status == NULL)
    status = api()->CreateTensorWithDataAsOrtValue(info, data, sizeof data, long_shape, 8, FLOAT, &value);
  api()->ReleaseValue(value);
  api()->ReleaseMemoryInfo(info);
  return status;
}

static OrtStatus* make_strings(void) {
  const char* texts[] = {"one", "two"};
  OrtAllocator* allocator = NULL;
  OrtValue* value = NULL;
  char* buffer = NULL;
  OrtStatus* status = api()->GetAllocatorWithDefaultOptions(&allocator);
  if (status == NULL) status = api()->CreateTensorAsOrtValue(allocator, long_shape, 8, STRING, &value);
  if (status == NULL) status = api()->FillStringTensor(value, texts, 2);
  if (status == NULL) status = api()->FillStringTensorElement(value, "three", 0);
  if (status == NULL) status = api()->GetResizedStringTensorElementBuffer(value, 1, 100, &buffer);
  api()->ReleaseValue(value);
  return status;
}

static OrtStatus* make_type_of_value(void) {
  OrtAllocator* allocator = NULL;
  OrtValue* value = NULL;
  OrtTypeInfo* type = NULL;
  OrtTensorTypeAndShapeInfo* shape = NULL;
  OrtStatus* status = api()->GetAllocatorWithDefaultOptions(&allocator);
  if (status == NULL) status = api()->CreateTensorAsOrtValue(allocator, long_shape, 8, FLOAT, &value);
  if (status == NULL) status = api()->GetTypeInfo(value, &type);
  if (status == NULL) status = api()->GetTensorTypeAndShape(value, &shape);
  api()->ReleaseTensorTypeAndShapeInfo(shape);
  api()->ReleaseTypeInfo(type);
  api()->ReleaseValue(value);
  return status;
}

int main(void) {
  RUN(test_tensor_has_its_shape_and_memory);
  RUN(test_bytes_of_every_element_type);
  RUN(test_empty_and_scalar_tensors);
  RUN(test_tensor_over_memory_of_the_caller);
  RUN(test_tensor_that_takes_memory);
  RUN(test_sizes_that_do_not_fit);
  RUN(test_create_tensor_takes_no_null);
  RUN(test_value_queries_take_no_null);
  RUN(test_tensor_at_refuses_what_is_outside);
  RUN(test_strings);
  RUN(test_strings_refuse);
  CHECK_ALLOCATION_FAILURES(make_tensor);
  CHECK_ALLOCATION_FAILURES(make_tensor_over);
  CHECK_ALLOCATION_FAILURES(make_strings);
  CHECK_ALLOCATION_FAILURES(make_type_of_value);
  return finish();
}
