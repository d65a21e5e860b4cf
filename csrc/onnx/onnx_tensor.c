/* TensorProto: raw data is used where it lies, typed data fields are decoded into memory of their own,
 * external data is mapped. */
#include <stdlib.h>
#include <string.h>

#include "onnx/reader.h"

enum {
  TENSOR_DIMS = 1,
  TENSOR_DATA_TYPE = 2,
  TENSOR_SEGMENT = 3,
  TENSOR_FLOAT_DATA = 4,
  TENSOR_INT32_DATA = 5,
  TENSOR_STRING_DATA = 6,
  TENSOR_INT64_DATA = 7,
  TENSOR_NAME = 8,
  TENSOR_RAW_DATA = 9,
  TENSOR_DOUBLE_DATA = 10,
  TENSOR_UINT64_DATA = 11,
  TENSOR_EXTERNAL_DATA = 13,
  TENSOR_DATA_LOCATION = 14,
};

/* What a TensorProto says, before its data is looked at. */
typedef struct TensorHead {
  const WireField* field;
  const char* what;
  char* name;
  ONNXTensorElementDataType type;
  int64_t* dims;
  size_t rank;
  size_t element_count, size_bytes;
  const uint8_t* raw;
  size_t raw_size;
  bool has_raw, has_segment, is_external;
  char* location;
  int64_t offset, length; /* length -1: to the end of what the tensor needs */
} TensorHead;

static OrtStatus* tensor_error(const TensorHead* head, OrtErrorCode code, const char* format, ...)
    PRINTF_LIKE(3, 4);
static OrtStatus* tensor_error(const TensorHead* head, OrtErrorCode code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  OrtStatus* status = status_new_v(code, format, arguments);
  va_end(arguments);
  return status_wrap(status, "%s '%s'", head->what, head->name);
}

/* A decimal number of external data; the whole text must be one. */
static OrtStatus* parse_offset(const TensorHead* head, const char* key, const char* text, int64_t* out) {
  char* end = NULL;
  long long value = strtoll(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || value == INT64_MAX)
    return tensor_error(head, ORT_INVALID_GRAPH, "external data %s '%s' is not a number of bytes", key, text);
  *out = value;
  return NULL;
}

/* A StringStringEntryProto of external_data. Unknown keys (checksum) are left alone. */
static OrtStatus* read_external_entry(Reader* reader, const WireField* field, TensorHead* head) {
  Wire wire = wire_of_field(field);
  WireField part;
  char *key = NULL, *value = NULL;
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(1, WIRE_BYTES)) TRY(read_name(reader, &part, "external data of", &key));
    if (part.tag == WIRE_TAG(2, WIRE_BYTES)) TRY(read_name(reader, &part, "external data of", &value));
  }
  TRY(check_wire(&wire, "external data of", head->name));
  if (value == NULL) return NULL;
  if (str_equal(key, "location")) head->location = value;
  if (str_equal(key, "offset")) return parse_offset(head, key, value, &head->offset);
  if (str_equal(key, "length")) return parse_offset(head, key, value, &head->length);
  return NULL;
}

static OrtStatus* read_dims(Reader* reader, TensorHead* head, size_t count) {
  head->dims = arena_calloc(&reader->model->arena, count, sizeof *head->dims);
  if (head->dims == NULL) return status_no_memory();
  Wire wire = wire_of_field(head->field);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag != WIRE_TAG(TENSOR_DIMS, WIRE_VARINT) && part.tag != WIRE_TAG(TENSOR_DIMS, WIRE_BYTES))
      continue;
    Wire elements = wire_of_field(&part);
    uint64_t dim;
    while (head->rank < count && wire_varint(&elements, &dim)) head->dims[head->rank++] = (int64_t)dim;
    TRY(check_wire(&elements, "dimensions of tensor", head->name));
  }
  return NULL;
}

/* Everything but the data; name first, so that errors can say it. */
static OrtStatus* read_head(Reader* reader, TensorHead* head) {
  Wire wire = wire_of_field(head->field);
  WireField part;
  size_t dim_count = 0;
  uint64_t type = 0;
  head->name = (char*)"";
  head->length = -1;
  while (wire_next(&wire, &part)) {
    switch (part.tag) {
      case WIRE_TAG(TENSOR_NAME, WIRE_BYTES):
        TRY(read_name(reader, &part, "tensor", &head->name));
        break;
      case WIRE_TAG(TENSOR_DIMS, WIRE_VARINT):
      case WIRE_TAG(TENSOR_DIMS, WIRE_BYTES):
        dim_count += wire_count_varints(&part);
        break;
      case WIRE_TAG(TENSOR_DATA_TYPE, WIRE_VARINT):
        type = part.value;
        break;
      case WIRE_TAG(TENSOR_SEGMENT, WIRE_BYTES):
        head->has_segment = true;
        break;
      case WIRE_TAG(TENSOR_RAW_DATA, WIRE_BYTES):
        head->has_raw = true;
        head->raw = part.data;
        head->raw_size = part.size;
        break;
      case WIRE_TAG(TENSOR_DATA_LOCATION, WIRE_VARINT):
        head->is_external = part.value == 1;
        break;
      default:
        break;
    }
  }
  TRY(check_wire(&wire, "tensor", head->name));
  wire = wire_of_field(head->field);
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(TENSOR_EXTERNAL_DATA, WIRE_BYTES)) TRY(read_external_entry(reader, &part, head));
  }
  if (head->has_segment)
    return tensor_error(head, ORT_NOT_IMPLEMENTED, "tensors in segments are not supported");
  head->type = element_type_of_proto(type);
  if (head->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
    return tensor_error(head, ORT_INVALID_GRAPH, "unknown element type %llu", (unsigned long long)type);
  TRY(read_dims(reader, head, dim_count));
  OrtStatus* status =
      tensor_size(head->type, head->rank, head->dims, &head->element_count, &head->size_bytes);
  if (status == NULL) return NULL;
  OrtStatus* named = tensor_error(head, ORT_INVALID_GRAPH, "%s", status_message(status));
  status_release(status);
  return named;
}

/* Bytes that an element's address must be a multiple of. */
static size_t alignment_of(ONNXTensorElementDataType type) {
  unsigned bits = element_type_bits(type);
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64) return 4;
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128) return 8;
  return bits < 8 ? 1 : bits / 8;
}

/* Kernels may rely on a bool being 0 or 1. */
static bool all_as_kernels_want(const TensorHead* head, const uint8_t* data) {
  if (head->type != ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL) return true;
  for (size_t i = 0; i < head->size_bytes; i++) {
    if (data[i] > 1) return false;
  }
  return true;
}

/* A tensor over bytes that outlive the model's tensors, or over a copy where an element would be misaligned
 * or is not as kernels want it. */
static OrtStatus* tensor_over(const TensorHead* head, const uint8_t* data, OrtValue** out) {
  bool is_aligned = (uintptr_t)data % alignment_of(head->type) == 0;
  if (head->size_bytes == 0 || (is_aligned && all_as_kernels_want(head, data)))
    return value_new_tensor_over((void*)(uintptr_t)data, head->size_bytes, &memory_info_cpu, NULL, head->type,
                                 head->rank, head->dims, out);
  TRY(value_new_tensor(allocator_cpu(), head->type, head->rank, head->dims, out));
  uint8_t* copy = memcpy((*out)->data, data, head->size_bytes);
  for (size_t i = 0; head->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL && i < head->size_bytes; i++)
    copy[i] = copy[i] != 0;
  return NULL;
}

static OrtStatus* read_external(Reader* reader, const TensorHead* head, TensorResult* out) {
  if (head->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    return tensor_error(head, ORT_INVALID_GRAPH, "strings cannot be external data");
  if (head->location == NULL)
    return tensor_error(head, ORT_INVALID_GRAPH, "external data without a location");
  const Mapping* file = NULL;
  OrtStatus* status = map_external(reader, head->location, &file);
  if (status != NULL) return status_wrap(status, "%s '%s'", head->what, head->name);
  if (head->length >= 0 && (uint64_t)head->length != head->size_bytes)
    return tensor_error(head, ORT_INVALID_GRAPH, "external data has %lld bytes, its type and shape need %zu",
                        (long long)head->length, head->size_bytes);
  if ((uint64_t)head->offset > file->size || file->size - (size_t)head->offset < head->size_bytes)
    return tensor_error(head, ORT_INVALID_GRAPH,
                        "external data needs %zu bytes at offset %lld of '%s', which has %zu bytes",
                        head->size_bytes, (long long)head->offset, head->location, file->size);
  out->external = arena_alloc(&reader->model->arena, sizeof *out->external);
  if (out->external == NULL) return status_no_memory();
  *out->external = (OrtExternalInitializerInfo){head->location, head->offset, head->size_bytes};
  /* Nothing is mapped of an empty file. */
  const uint8_t* data = file->size != 0 ? file->data + head->offset : NULL;
  return tensor_over(head, data, &out->value);
}

/* Which data field holds the elements of a type, and how many of its entries an element takes. */
static uint32_t data_field_of(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64:
      return TENSOR_FLOAT_DATA;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128:
      return TENSOR_DOUBLE_DATA;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
      return TENSOR_INT64_DATA;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
      return TENSOR_UINT64_DATA;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING:
      return TENSOR_STRING_DATA;
    default:
      return TENSOR_INT32_DATA;
  }
}

/* Bytes that one entry of a typed field gives: entries of int32_data hold 1, 2 or 4 (packed types: 1 byte).
 */
static size_t entry_size(ONNXTensorElementDataType type) {
  unsigned bits = element_type_bits(type);
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return sizeof(StringElement);
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64) return sizeof(float);
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128) return sizeof(double);
  return bits < 8 ? 1 : bits / 8;
}

/* Entries of the tensor's data field, as far as can be counted without decoding them. */
static size_t count_entries(const TensorHead* head, uint32_t number) {
  Wire wire = wire_of_field(head->field);
  WireField part;
  size_t count = 0;
  while (wire_next(&wire, &part)) {
    if (part.tag >> 3 != number) continue;
    if (number == TENSOR_STRING_DATA)
      count += (part.tag & 7) == WIRE_BYTES;
    else if (number == TENSOR_FLOAT_DATA)
      count += part.size / sizeof(float);
    else if (number == TENSOR_DOUBLE_DATA)
      count += part.size / sizeof(double);
    else
      count += wire_count_varints(&part);
  }
  return count;
}

/* Decodes one occurrence of a number field behind `*next`; not past `end`. */
static OrtStatus* decode_numbers(const TensorHead* head, const WireField* part, uint8_t** next,
                                 const uint8_t* end) {
  uint32_t number = part->tag >> 3, type = part->tag & 7;
  size_t size = entry_size(head->type);
  Wire elements = wire_of_field(part);
  uint64_t bits = 0;
  uint32_t half = 0;
  for (;;) {
    bool more;
    if (number == TENSOR_FLOAT_DATA) {
      if (type != WIRE_BYTES && type != WIRE_FIXED32) return NULL;
      more = wire_fixed32(&elements, &half);
      bits = half;
    } else if (number == TENSOR_DOUBLE_DATA) {
      if (type != WIRE_BYTES && type != WIRE_FIXED64) return NULL;
      more = wire_fixed64(&elements, &bits);
    } else {
      if (type != WIRE_BYTES && type != WIRE_VARINT) return NULL;
      more = wire_varint(&elements, &bits);
    }
    if (!more) break;
    if ((size_t)(end - *next) < size) break; /* the count was checked: only a malformed field gets here */
    if (head->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL) bits = (uint32_t)bits != 0;
    memcpy(*next, &bits, size);
    *next += size;
  }
  return check_wire(&elements, "data of tensor", head->name);
}

/* The tensor from its typed data field. */
static OrtStatus* decode_typed(const TensorHead* head, OrtValue** out) {
  uint32_t number = data_field_of(head->type);
  size_t expected = head->size_bytes / entry_size(head->type);
  size_t count = count_entries(head, number);
  if (count != expected)
    return tensor_error(head, ORT_INVALID_GRAPH, "%zu data entries of type %s, its shape needs %zu", count,
                        element_type_name(head->type), expected);
  OrtValue* value = NULL;
  TRY(value_new_tensor(allocator_cpu(), head->type, head->rank, head->dims, &value));
  OrtStatus* status = NULL;
  uint8_t *next = value->data, *end = next + value->size_bytes;
  size_t string = 0;
  Wire wire = wire_of_field(head->field);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag >> 3 != number) continue;
    if (number != TENSOR_STRING_DATA) {
      TRY_DONE(decode_numbers(head, &part, &next, end));
    } else if ((part.tag & 7) == WIRE_BYTES && string < value->element_count &&
               !value_set_string(value, string++, (const char*)part.data, part.size)) {
      status = status_no_memory();
      goto done;
    }
  }
  if (number != TENSOR_STRING_DATA && next != end)
    status = tensor_error(head, ORT_INVALID_PROTOBUF, "its data field is malformed");
done:
  if (status != NULL)
    value_release(value);
  else
    *out = value;
  return status;
}

static OrtStatus* read_data(Reader* reader, const TensorHead* head, TensorResult* out) {
  if (head->is_external) return read_external(reader, head, out);
  bool use_raw = head->has_raw && (head->raw_size != 0 || head->size_bytes == 0);
  if (!use_raw || head->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return decode_typed(head, &out->value);
  if (head->raw_size != head->size_bytes)
    return tensor_error(head, ORT_INVALID_GRAPH, "%zu bytes of raw data, its type and shape need %zu",
                        head->raw_size, head->size_bytes);
  return tensor_over(head, head->raw, &out->value);
}

/* ---- Replaced ones ---- */

/* What the client gives for an initializer; NULL: nothing. borrows. */
static const OrtValue* find_replacement(const Reader* reader, const OrtGraph* graph, const char* name) {
  const ModelSource* source = reader->source;
  for (size_t i = 0; graph->parent_node == NULL && i < source->replaced_count; i++) {
    if (strcmp(source->replaced[i], name) == 0) return source->replacements[i];
  }
  return NULL;
}

static OrtStatus* wrong_replacement(const TensorHead* head, const OrtValue* given) {
  StrBuf has = {0};
  strbuf_append(&has, "%s[", element_type_name(head->type));
  for (size_t i = 0; i < head->rank; i++)
    strbuf_append(&has, "%s%lld", i == 0 ? "" : ",", (long long)head->dims[i]);
  strbuf_append(&has, "]");
  char* text = value_type_text(given);
  OrtStatus* status = status_new(ORT_INVALID_ARGUMENT, "initializer '%s' is %s, its replacement is %s",
                                 head->name, has.failed ? "?" : has.text, text != NULL ? text : "?");
  strbuf_release(&has);
  mem_free(text);
  return status;
}

/* gives a copy on the CPU. */
static OrtStatus* copy_replacement(const TensorHead* head, const OrtValue* given, OrtValue** out) {
  if (given->kind != ONNX_TYPE_TENSOR || given->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING ||
      !memory_device_is_host(&given->memory->device))
    return status_new(ORT_NOT_IMPLEMENTED,
                      "initializer '%s': only numeric tensors in host memory can replace one", head->name);
  if (given->element_type != head->type || given->rank != head->rank ||
      memcmp(given->dims, head->dims, head->rank * sizeof *head->dims) != 0)
    return wrong_replacement(head, given);
  TRY(value_new_tensor(allocator_cpu(), given->element_type, given->rank, given->dims, out));
  if (given->size_bytes != 0) memcpy((*out)->data, given->data, given->size_bytes);
  return NULL;
}

/* ---- Whole tensors ---- */

/* `graph`: whose initializer it is; NULL: none's. */
static OrtStatus* read_whole(Reader* reader, TensorHead* head, const OrtGraph* graph, TensorResult* out) {
  TensorResult result = {0};
  TRY(read_head(reader, head));
  const OrtValue* given = graph != NULL ? find_replacement(reader, graph, head->name) : NULL;
  TRY(given != NULL ? copy_replacement(head, given, &result.value) : read_data(reader, head, &result));
  TRY(model_own_value(reader->model, result.value));
  result.name = head->name;
  *out = result;
  return NULL;
}

OrtStatus* replace_tensor(Reader* reader, const OrtGraph* graph, TensorResult* tensor) {
  const OrtValue* given = find_replacement(reader, graph, tensor->name);
  if (given == NULL) return NULL;
  const OrtValue* old = tensor->value;
  TensorHead head = {.name = tensor->name, .type = old->element_type, .dims = old->dims, .rank = old->rank};
  OrtValue* copy = NULL;
  TRY(copy_replacement(&head, given, &copy));
  TRY(model_own_value(reader->model, copy));
  tensor->value = copy;
  return NULL;
}

OrtStatus* read_tensor(Reader* reader, const WireField* field, const char* what, TensorResult* out) {
  TensorHead head = {.field = field, .what = what};
  return read_whole(reader, &head, NULL, out);
}

OrtStatus* read_initializer(Reader* reader, const WireField* field, const OrtGraph* graph,
                            TensorResult* out) {
  TensorHead head = {.field = field, .what = "initializer"};
  return read_whole(reader, &head, graph, out);
}
