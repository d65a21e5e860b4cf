/* OrtValue: tensors. Created and released on any thread; one thread at a time changes one. */
#include <string.h>

#include "api_slots.h"
#include "objects/objects.h"

unsigned element_type_bits(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2:
      return 2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1:
      return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0:
      return 8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
      return 16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
      return 32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64:
      return 64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128:
      return 128;
    default:
      return 0;
  }
}

OrtStatus* tensor_size(ONNXTensorElementDataType type, size_t rank, const int64_t* dims,
                       size_t* element_count, size_t* size_bytes) {
  size_t count = 1, bytes;
  bool fits = true;
  for (size_t i = 0; i < rank; i++) {
    if (dims[i] < 0)
      return status_new(ORT_INVALID_ARGUMENT, "dimension %zu of a tensor is %lld: negative", i,
                        (long long)dims[i]);
    fits = fits && size_mul(count, (size_t)dims[i], &count);
  }
  unsigned bits = element_type_bits(type);
  if (bits == 0 && type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    return status_new(ORT_INVALID_ARGUMENT, "tensor element type %d is unknown", (int)type);
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    fits = fits && size_mul(count, sizeof(StringElement), &bytes);
  else if (bits < 8)
    bytes = count / (8 / bits) + (count % (8 / bits) != 0);
  else
    fits = fits && size_mul(count, bits / 8, &bytes);
  if (!fits || bytes > PTRDIFF_MAX)
    return status_new(ORT_INVALID_ARGUMENT, "a tensor of this shape and type '%s' is too large for memory",
                      element_type_name(type));
  *element_count = count;
  *size_bytes = bytes;
  return NULL;
}

/* gives: a value with its shape and sizes, data still NULL. */
static OrtStatus* value_new(ONNXTensorElementDataType type, size_t rank, const int64_t* dims,
                            OrtValue** out) {
  size_t element_count = 0, size_bytes = 0;
  TRY(tensor_size(type, rank, dims, &element_count, &size_bytes));
  OrtValue* value = mem_alloc(sizeof *value);
  if (value == NULL) return status_no_memory();
  value->kind = ONNX_TYPE_TENSOR;
  value->element_type = type;
  value->rank = rank;
  value->dims = rank <= VALUE_INLINE_RANK ? value->inline_dims : mem_calloc(rank, sizeof(int64_t));
  value->element_count = element_count;
  value->size_bytes = size_bytes;
  value->data = NULL;
  value->memory = &memory_info_cpu;
  value->own_memory = NULL;
  value->allocator = NULL;
  value->held = NULL;
  atomic_init(&value->references, 1);
  if (value->dims == NULL) {
    mem_free(value);
    return status_no_memory();
  }
  for (size_t i = 0; i < rank; i++) value->dims[i] = dims[i];
  *out = value;
  return NULL;
}

OrtStatus* value_new_tensor(OrtAllocator* allocator, ONNXTensorElementDataType type, size_t rank,
                            const int64_t* dims, OrtValue** out) {
  OrtValue* value = NULL;
  OrtStatus* thrown = NULL;
  TRY(value_new(type, rank, dims, &value));
  if (allocator == allocator_cpu_arena()) {
    value->memory = &memory_info_cpu_arena;
  } else if (allocator != allocator_cpu()) {
    allocator = allocator_owner(allocator);
    value->held = allocator_hold(allocator);
    value->memory = call_OrtAllocator_Info(allocator, &thrown);
  }
  if (value->memory == NULL) {
    value_release(value);
    if (thrown != NULL) return thrown;
    return status_new(ORT_INVALID_ARGUMENT, "OrtAllocator::Info gave NULL: the allocator has no memory info");
  }
  bool is_string = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
  if (is_string && !memory_device_is_host(&value->memory->device)) {
    OrtStatus* status = status_new(ORT_INVALID_ARGUMENT, "string tensors live in CPU memory, not in '%s'",
                                   value->memory->name);
    value_release(value);
    return status;
  }
  /* Others than the CPU's allocator are not asked for nothing: some answer NULL, as they do without memory.
   */
  bool is_asked = value->size_bytes != 0 || allocator_is_cpu(allocator);
  if (is_asked) value->data = allocator_alloc(allocator, value->size_bytes);
  if (value->data == NULL && is_asked) {
    OrtStatus* status = status_new(ORT_RUNTIME_EXCEPTION, "no memory in '%s' for a tensor of %zu bytes",
                                   value->memory->name, value->size_bytes);
    value_release(value);
    return status;
  }
  value->allocator = allocator;
  if (is_string && value->size_bytes != 0) memset(value->data, 0, value->size_bytes);
  *out = value;
  return NULL;
}

OrtStatus* value_new_tensor_over(void* data, size_t size_bytes, const OrtMemoryInfo* memory,
                                 OrtAllocator* deleter, ONNXTensorElementDataType type, size_t rank,
                                 const int64_t* dims, OrtValue** out) {
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    return status_new(ORT_INVALID_ARGUMENT, "a string tensor cannot be made over the caller's memory");
  OrtValue* value = NULL;
  TRY(value_new(type, rank, dims, &value));
  if (size_bytes < value->size_bytes) {
    OrtStatus* status =
        status_new(ORT_INVALID_ARGUMENT, "a tensor of %zu bytes is wanted over %zu bytes of data",
                   value->size_bytes, size_bytes);
    value_release(value);
    return status;
  }
  if (memory_info_equal(memory, &memory_info_cpu_arena)) {
    value->memory = &memory_info_cpu_arena;
  } else if (!memory_info_equal(memory, &memory_info_cpu)) {
    value->memory = value->own_memory = memory_info_copy(memory);
    if (value->own_memory == NULL) {
      value_release(value);
      return status_no_memory();
    }
  }
  value->data = data;
  value->allocator = deleter != NULL ? allocator_owner(deleter) : NULL;
  if (deleter != NULL) value->held = allocator_hold(value->allocator);
  *out = value;
  return NULL;
}

OrtValue* value_retain(const OrtValue* value) {
  OrtValue* shared = (OrtValue*)value;
  atomic_fetch_add(&shared->references, 1);
  return shared;
}

/* A value that holds nothing. */
static void value_blank(OrtValue* value) {
  value->kind = ONNX_TYPE_UNKNOWN;
  value->element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  value->rank = value->element_count = value->size_bytes = 0;
  value->dims = value->inline_dims;
  value->data = value->held = NULL;
  value->memory = &memory_info_cpu;
  value->own_memory = NULL;
  value->allocator = NULL;
}

OrtStatus* value_new_blank(OrtValue** out) {
  TRY(value_new(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 0, NULL, out));
  value_blank(*out);
  return NULL;
}

void value_clear(OrtValue* value) {
  if (value->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING && value->data != NULL) {
    StringElement* strings = value->data;
    for (size_t i = 0; i < value->element_count; i++) mem_free(strings[i].text);
  }
  if (value->allocator != NULL && value->data != NULL) allocator_free(value->allocator, value->data);
  if (value->dims != value->inline_dims) mem_free(value->dims);
  memory_info_release(value->own_memory);
  allocator_drop(value->held); /* last: until here the allocator's library is there */
  value_blank(value);
}

void value_release(OrtValue* value) {
  if (value == NULL) return;
  /* The last holder needs no read-modify-write: nobody else is left to race with. */
  if (atomic_load(&value->references) != 1 && atomic_fetch_sub(&value->references, 1) != 1) return;
  value_clear(value);
  mem_free(value);
}

void value_view_open(OrtValue* view, const OrtValue* source) {
  value_blank(view);
  view->kind = source->kind;
  view->element_type = source->element_type;
  view->rank = source->rank;
  view->dims = source->dims;
  view->element_count = source->element_count;
  view->size_bytes = source->size_bytes;
  view->data = source->data;
  view->memory = source->memory;
  atomic_init(&view->references, 1);
}

void value_view_close(OrtValue* view) {
  value_blank(view);
}

char* value_type_text(const OrtValue* value) {
  StrBuf text = {0};
  strbuf_append(&text, "%s[", element_type_name(value->element_type));
  for (size_t i = 0; i < value->rank; i++)
    strbuf_append(&text, "%s%lld", i == 0 ? "" : ",", (long long)value->dims[i]);
  strbuf_append(&text, "]");
  if (!text.failed) return text.text;
  strbuf_release(&text);
  return NULL;
}

/* gives (caller releases with ReleaseValue). keeps alive an EP's allocator; any other must outlive the value.
 */
OrtStatus* ORT_API_CALL api_CreateTensorAsOrtValue(OrtAllocator* allocator, const int64_t* shape,
                                                   size_t shape_len, ONNXTensorElementDataType type,
                                                   OrtValue** out) {
  REQUIRE_ARG(allocator);
  if (shape_len != 0) REQUIRE_ARG(shape);
  REQUIRE_ARG(out);
  return value_new_tensor(allocator, type, shape_len, shape, out);
}

/* gives (caller releases with ReleaseValue). borrows `p_data` until then; copies `info`. */
OrtStatus* ORT_API_CALL api_CreateTensorWithDataAsOrtValue(const OrtMemoryInfo* info, void* p_data,
                                                           size_t p_data_len, const int64_t* shape,
                                                           size_t shape_len, ONNXTensorElementDataType type,
                                                           OrtValue** out) {
  REQUIRE_ARG(info);
  if (p_data_len != 0) REQUIRE_ARG(p_data);
  if (shape_len != 0) REQUIRE_ARG(shape);
  REQUIRE_ARG(out);
  return value_new_tensor_over(p_data, p_data_len, info, NULL, type, shape_len, shape, out);
}

/* gives (caller releases with ReleaseValue). takes `p_data`: freed with deleter->Free. keeps alive an
 * EP's deleter; any other must outlive the value. On failure `p_data` stays the caller's. */
OrtStatus* ORT_API_CALL api_CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator* deleter, void* p_data,
                                                                     size_t p_data_len, const int64_t* shape,
                                                                     size_t shape_len,
                                                                     ONNXTensorElementDataType type,
                                                                     OrtValue** out) {
  REQUIRE_ARG(deleter);
  if (p_data_len != 0) REQUIRE_ARG(p_data);
  if (shape_len != 0) REQUIRE_ARG(shape);
  REQUIRE_ARG(out);
  OrtStatus* thrown = NULL;
  const OrtMemoryInfo* memory = call_OrtAllocator_Info(deleter, &thrown);
  TRY(thrown);
  if (memory == NULL)
    return status_new(ORT_INVALID_ARGUMENT,
                      "CreateTensorWithDataAndDeleterAsOrtValue: deleter->Info gave NULL");
  return value_new_tensor_over(p_data, p_data_len, memory, deleter, type, shape_len, shape, out);
}

void ORT_API_CALL api_ReleaseValue(OrtValue* input) {
  value_release(input);
}

OrtStatus* ORT_API_CALL api_IsTensor(const OrtValue* value, int* out) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(out);
  *out = value->kind == ONNX_TYPE_TENSOR;
  return NULL;
}

OrtStatus* ORT_API_CALL api_IsSparseTensor(const OrtValue* value, int* out) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(out);
  *out = value->kind == ONNX_TYPE_SPARSETENSOR;
  return NULL;
}

/* A weight that its kernel packed holds nothing any more. */
OrtStatus* ORT_API_CALL api_HasValue(const OrtValue* value, int* out) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(out);
  *out = value->kind != ONNX_TYPE_UNKNOWN;
  return NULL;
}

OrtStatus* ORT_API_CALL api_GetValueType(const OrtValue* value, ONNXType* out) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(out);
  *out = value->kind;
  return NULL;
}

OrtStatus* value_copy(OrtAllocator* allocator, const OrtValue* source, OrtValue** out) {
  OrtValue* copy = NULL;
  TRY(value_new_tensor(allocator, source->element_type, source->rank, source->dims, &copy));
  OrtStatus* status = NULL;
  if (!memory_device_is_host(&copy->memory->device))
    status = status_new(ORT_NOT_IMPLEMENTED, "the allocator's memory is a device's");
  else if (source->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    status = value_copy_strings(source, copy);
  else if (source->size_bytes != 0)
    memcpy(copy->data, source->data, source->size_bytes);
  if (status != NULL)
    value_release(copy);
  else
    *out = copy;
  return status;
}

static OrtStatus* refuse_empty(const OrtValue* value, const char* slot) {
  if (value->kind != ONNX_TYPE_UNKNOWN) return NULL;
  return status_new(ORT_INVALID_ARGUMENT,
                    "%s: the value holds nothing: a weight that its kernel packed, or one that was lent for "
                    "a call that is over",
                    slot);
}

static OrtStatus* refuse_strings(const OrtValue* value, const char* slot) {
  TRY(refuse_empty(value, slot));
  if (value->element_type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return NULL;
  return status_new(ORT_NOT_IMPLEMENTED, "%s: a string tensor has no plain data; use the StringTensor slots",
                    slot);
}

/* borrows: until the value is released. */
OrtStatus* ORT_API_CALL api_GetTensorMutableData(OrtValue* value, void** out) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(out);
  TRY(refuse_strings(value, "GetTensorMutableData"));
  *out = value->data;
  return NULL;
}

/* borrows: until the value is released. */
OrtStatus* ORT_API_CALL api_GetTensorData(const OrtValue* value, const void** out) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(out);
  TRY(refuse_strings(value, "GetTensorData"));
  *out = value->data;
  return NULL;
}

/* borrows: the element at an index. */
OrtStatus* ORT_API_CALL api_TensorAt(OrtValue* value, const int64_t* location_values,
                                     size_t location_values_count, void** out) {
  REQUIRE_ARG(value);
  if (location_values_count != 0) REQUIRE_ARG(location_values);
  REQUIRE_ARG(out);
  TRY(refuse_strings(value, "TensorAt"));
  unsigned bits = element_type_bits(value->element_type);
  if (location_values_count != value->rank || bits < 8)
    return status_new(ORT_INVALID_ARGUMENT,
                      "TensorAt: %zu indices for a tensor of rank %zu and %u-bit elements",
                      location_values_count, value->rank, bits);
  size_t offset = 0;
  for (size_t i = 0; i < value->rank; i++) {
    if (location_values[i] < 0 || location_values[i] >= value->dims[i])
      return status_new(ORT_INVALID_ARGUMENT, "TensorAt: index %lld of dimension %zu is not in 0..%lld",
                        (long long)location_values[i], i, (long long)value->dims[i] - 1);
    offset = offset * (size_t)value->dims[i] + (size_t)location_values[i];
  }
  *out = (char*)value->data + offset * (bits / 8);
  return NULL;
}

OrtStatus* ORT_API_CALL api_GetTensorSizeInBytes(const OrtValue* ort_value, size_t* size) {
  REQUIRE_ARG(ort_value);
  REQUIRE_ARG(size);
  TRY(refuse_strings(ort_value, "GetTensorSizeInBytes"));
  *size = ort_value->size_bytes;
  return NULL;
}

/* borrows: until the value is released. */
OrtStatus* ORT_API_CALL api_GetTensorMemoryInfo(const OrtValue* value, const OrtMemoryInfo** mem_info) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(mem_info);
  *mem_info = value->memory;
  return NULL;
}

const OrtMemoryDevice* ORT_API_CALL api_Value_GetMemoryDevice(const OrtValue* value) {
  return value != NULL ? &value->memory->device : NULL;
}

/* gives (caller releases with ReleaseTensorTypeAndShapeInfo). */
OrtStatus* ORT_API_CALL api_GetTensorTypeAndShape(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(out);
  TRY(refuse_empty(value, "GetTensorTypeAndShape"));
  OrtTensorTypeAndShapeInfo* info =
      shape_info_new(NULL, value->element_type, true, value->rank, value->dims, NULL);
  if (info == NULL) return status_no_memory();
  *out = info;
  return NULL;
}

/* borrows the shape: until the value is released. *shape_data may be NULL for a scalar. */
OrtStatus* ORT_API_CALL api_GetTensorElementTypeAndShapeDataReference(const OrtValue* value,
                                                                      ONNXTensorElementDataType* elem_type,
                                                                      const int64_t** shape_data,
                                                                      size_t* shape_data_count) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(elem_type);
  REQUIRE_ARG(shape_data);
  REQUIRE_ARG(shape_data_count);
  TRY(refuse_empty(value, "GetTensorElementTypeAndShapeDataReference"));
  *elem_type = value->element_type;
  *shape_data = value->rank != 0 ? value->dims : NULL;
  *shape_data_count = value->rank;
  return NULL;
}

/* gives (caller releases with ReleaseTypeInfo). */
OrtStatus* ORT_API_CALL api_GetTypeInfo(const OrtValue* value, OrtTypeInfo** out) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(out);
  TRY(refuse_empty(value, "GetTypeInfo"));
  OrtTypeInfo* info =
      type_info_new_tensor(NULL, ONNX_TYPE_TENSOR,
                           shape_info_new(NULL, value->element_type, true, value->rank, value->dims, NULL));
  if (info == NULL) return status_no_memory();
  *out = info;
  return NULL;
}
