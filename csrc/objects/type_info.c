/* Types: of values, inputs and outputs. Heap ones are released one by one, a model's live in its arena. */
#include <string.h>

#include "objects/objects.h"

static void* type_alloc(Arena* arena, size_t size) {
  return arena != NULL ? arena_alloc(arena, size) : mem_calloc(1, size);
}

OrtTensorTypeAndShapeInfo* shape_info_new(Arena* arena, ONNXTensorElementDataType element_type,
                                          bool has_shape, size_t rank, const int64_t* dims,
                                          const char* const* symbols) {
  if (!has_shape) rank = 0;
  size_t text = 0;
  for (size_t i = 0; symbols != NULL && i < rank; i++) text += strlen(symbols[i] ? symbols[i] : "") + 1;
  size_t item = sizeof(int64_t) + (symbols != NULL ? sizeof(char*) : 0), tail;
  if (!size_mul(rank, item, &tail) || !size_add(tail, text + sizeof(OrtTensorTypeAndShapeInfo), &tail))
    return NULL;
  OrtTensorTypeAndShapeInfo* info = arena != NULL ? arena_alloc(arena, tail) : mem_alloc(tail);
  if (info == NULL) return NULL;
  *info = (OrtTensorTypeAndShapeInfo){
      .element_type = element_type, .has_shape = has_shape, .rank = rank, .dims = (int64_t*)(info + 1)};
  for (size_t i = 0; i < rank; i++) info->dims[i] = dims != NULL ? dims[i] : -1;
  if (symbols == NULL) return info;
  info->symbols = (char**)(info->dims + rank);
  char* next = (char*)(info->symbols + rank);
  for (size_t i = 0; i < rank; i++) {
    size_t length = strlen(symbols[i] ? symbols[i] : "") + 1;
    info->symbols[i] = memcpy(next, symbols[i] ? symbols[i] : "", length);
    next += length;
  }
  return info;
}

void shape_info_release(OrtTensorTypeAndShapeInfo* info) {
  if (info == NULL) return;
  mem_free(info->own_block);
  mem_free(info);
}

OrtTypeInfo* type_info_new(Arena* arena, ONNXType kind) {
  OrtTypeInfo* info = type_alloc(arena, sizeof *info);
  if (info != NULL) info->kind = kind;
  return info;
}

OrtTypeInfo* type_info_new_tensor(Arena* arena, ONNXType tensor_or_sparse,
                                  OrtTensorTypeAndShapeInfo* tensor) {
  OrtTypeInfo* info = tensor != NULL ? type_info_new(arena, tensor_or_sparse) : NULL;
  if (info != NULL)
    info->tensor = tensor;
  else if (arena == NULL)
    shape_info_release(tensor);
  return info;
}

OrtTypeInfo* type_info_new_container(Arena* arena, ONNXType sequence_or_optional, OrtTypeInfo* element) {
  OrtTypeInfo* info = element != NULL ? type_info_new(arena, sequence_or_optional) : NULL;
  if (info == NULL) {
    if (arena == NULL) type_info_release(element);
    return NULL;
  }
  if (sequence_or_optional == ONNX_TYPE_SEQUENCE)
    info->sequence.element = element;
  else
    info->optional.element = element;
  return info;
}

OrtTypeInfo* type_info_new_map(Arena* arena, ONNXTensorElementDataType key_type, OrtTypeInfo* value) {
  OrtTypeInfo* info = value != NULL ? type_info_new(arena, ONNX_TYPE_MAP) : NULL;
  if (info == NULL) {
    if (arena == NULL) type_info_release(value);
    return NULL;
  }
  info->map.key_type = key_type;
  info->map.value = value;
  return info;
}

void type_info_release(OrtTypeInfo* info) {
  if (info == NULL) return;
  mem_free(info->denotation);
  shape_info_release(info->tensor);
  type_info_release(info->sequence.element);
  type_info_release(info->optional.element);
  type_info_release(info->map.value);
  mem_free(info);
}

/* Copies what hangs below `info` into `copy`. False when out of memory. */
static bool copy_parts(Arena* arena, const OrtTypeInfo* info, OrtTypeInfo* copy) {
  if (info->tensor != NULL) {
    const OrtTensorTypeAndShapeInfo* tensor = info->tensor;
    copy->tensor = shape_info_new(arena, tensor->element_type, tensor->has_shape, tensor->rank, tensor->dims,
                                  (const char* const*)tensor->symbols);
    if (copy->tensor == NULL) return false;
  }
  const OrtTypeInfo* from[] = {info->sequence.element, info->optional.element, info->map.value};
  OrtTypeInfo** to[] = {&copy->sequence.element, &copy->optional.element, &copy->map.value};
  for (size_t i = 0; i < 3; i++) {
    if (from[i] != NULL && (*to[i] = type_info_copy(arena, from[i])) == NULL) return false;
  }
  copy->map.key_type = info->map.key_type;
  if (info->denotation == NULL) return true;
  size_t length = strlen(info->denotation) + 1;
  copy->denotation = type_alloc(arena, length);
  if (copy->denotation != NULL) memcpy(copy->denotation, info->denotation, length);
  return copy->denotation != NULL;
}

OrtTypeInfo* type_info_copy(Arena* arena, const OrtTypeInfo* info) {
  OrtTypeInfo* copy = type_info_new(arena, info->kind);
  if (copy == NULL || copy_parts(arena, info, copy)) return copy;
  if (arena == NULL) type_info_release(copy);
  return NULL;
}

OrtStatus* type_info_give(const OrtTypeInfo* info, OrtTypeInfo** out) {
  OrtTypeInfo* copy = type_info_copy(NULL, info);
  if (copy == NULL) return status_no_memory();
  *out = copy;
  return NULL;
}

/* ONNX's names of the element types, by their number. */
static const char* const element_names[] = {
    "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
    "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
    "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4",     "int4",       "float4e2m1", "uint2",        "int2",           "float8e8m0"};
#define ELEMENT_TYPE_COUNT (sizeof element_names / sizeof element_names[0])

ONNXTensorElementDataType element_type_of_proto(uint64_t number) {
  switch (number) { /* the others have the same number here */
    case 24:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0;
    case 25:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2;
    case 26:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2;
    default:
      return number <= ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 ? (ONNXTensorElementDataType)number
                                                                : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  }
}

const char* element_type_name(ONNXTensorElementDataType type) {
  return (size_t)type < ELEMENT_TYPE_COUNT ? element_names[type] : element_names[0];
}

ONNXTensorElementDataType element_type_of_name(const char* name, size_t length) {
  for (size_t i = 1; i < ELEMENT_TYPE_COUNT; i++) {
    if (strlen(element_names[i]) == length && memcmp(element_names[i], name, length) == 0)
      return (ONNXTensorElementDataType)i;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

static void append_type(StrBuf* text, const OrtTypeInfo* info) {
  switch (info->kind) {
    case ONNX_TYPE_TENSOR:
    case ONNX_TYPE_SPARSETENSOR:
      strbuf_append(text, "%s(%s)", info->kind == ONNX_TYPE_TENSOR ? "tensor" : "sparse_tensor",
                    element_type_name(info->tensor->element_type));
      return;
    case ONNX_TYPE_SEQUENCE:
    case ONNX_TYPE_OPTIONAL:
      strbuf_append(text, info->kind == ONNX_TYPE_SEQUENCE ? "seq(" : "optional(");
      append_type(text, info->kind == ONNX_TYPE_SEQUENCE ? info->sequence.element : info->optional.element);
      strbuf_append(text, ")");
      return;
    case ONNX_TYPE_MAP:
      strbuf_append(text, "map(%s,", element_type_name(info->map.key_type));
      append_type(text, info->map.value);
      strbuf_append(text, ")");
      return;
    default:
      strbuf_append(text, "unknown");
  }
}

char* type_info_text(const OrtTypeInfo* info) {
  StrBuf text = {0};
  if (info == NULL)
    strbuf_append(&text, "unknown");
  else
    append_type(&text, info);
  if (!text.failed) return text.text;
  strbuf_release(&text);
  return NULL;
}
