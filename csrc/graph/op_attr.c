/* The OpAttr_* slots, and attributes that a client makes. */
#include <string.h>

#include "graph/query.h"

/* ORT_INVALID_ARGUMENT for the kinds that the ABI has no number for: types, sparse tensors, and lists of
 * them, of tensors and of graphs. */
OrtStatus* ORT_API_CALL api_OpAttr_GetType(const OrtOpAttr* attribute, OrtOpAttrType* type) {
  REQUIRE_ARG(attribute);
  REQUIRE_ARG(type);
  if (attribute->type == ORT_OP_ATTR_UNDEFINED)
    return status_new(ORT_INVALID_ARGUMENT,
                      "OpAttr_GetType: attribute '%s' has ONNX type %d, which has no OrtOpAttrType",
                      attribute->name, attribute->onnx_type);
  *type = attribute->type;
  return NULL;
}

/* borrows: as long as the attribute. */
OrtStatus* ORT_API_CALL api_OpAttr_GetName(const OrtOpAttr* attribute, const char** name) {
  REQUIRE_ARG(attribute);
  REQUIRE_ARG(name);
  *name = attribute->name;
  return NULL;
}

/* gives (caller releases with ReleaseValue): a copy, on the CPU. */
OrtStatus* ORT_API_CALL api_OpAttr_GetTensorAttributeAsOrtValue(const OrtOpAttr* attribute,
                                                                OrtValue** attr_tensor) {
  REQUIRE_ARG(attribute);
  REQUIRE_ARG(attr_tensor);
  if (attribute->type != ORT_OP_ATTR_TENSOR)
    return status_new(ORT_INVALID_ARGUMENT,
                      "OpAttr_GetTensorAttributeAsOrtValue: attribute '%s' is no tensor", attribute->name);
  return value_copy(allocator_cpu(), attribute->tensor, attr_tensor);
}

/* ---- ReadOpAttr ---- */

/* Bytes that ReadOpAttr writes: several strings with their NULs, one after the other; one string without, as
 * stock ORT does. */
static size_t attribute_bytes(const OrtOpAttr* attribute) {
  size_t bytes = 0;
  switch (attribute->type) {
    case ORT_OP_ATTR_INT:
      return sizeof(int64_t);
    case ORT_OP_ATTR_FLOAT:
      return sizeof(float);
    case ORT_OP_ATTR_INTS:
      return attribute->count * sizeof(int64_t);
    case ORT_OP_ATTR_FLOATS:
      return attribute->count * sizeof(float);
    case ORT_OP_ATTR_STRING:
      return attribute->count;
    default: /* STRINGS */
      for (size_t i = 0; i < attribute->count; i++) bytes += attribute->string_lengths[i] + 1;
      return bytes;
  }
}

static void write_strings(const OrtOpAttr* attribute, char* data) {
  for (size_t i = 0; i < attribute->count; i++) {
    memcpy(data, attribute->strings[i], attribute->string_lengths[i] + 1);
    data += attribute->string_lengths[i] + 1;
  }
}

static const void* attribute_data(const OrtOpAttr* attribute) {
  switch (attribute->type) {
    case ORT_OP_ATTR_INT:
      return &attribute->i;
    case ORT_OP_ATTR_FLOAT:
      return &attribute->f;
    case ORT_OP_ATTR_INTS:
      return attribute->ints;
    case ORT_OP_ATTR_FLOATS:
      return attribute->floats;
    default:
      return attribute->s;
  }
}

/* `len` is in bytes. *out gets the bytes needed, also when `len` is too small, which is ORT_INVALID_ARGUMENT:
 * that is how callers ask for the size (`data` may be NULL then). */
OrtStatus* ORT_API_CALL api_ReadOpAttr(const OrtOpAttr* op_attr, OrtOpAttrType type, void* data, size_t len,
                                       size_t* out) {
  REQUIRE_ARG(op_attr);
  REQUIRE_ARG(out);
  *out = 0;
  if (type != op_attr->type || type < ORT_OP_ATTR_INT || type > ORT_OP_ATTR_STRINGS)
    return status_new(ORT_INVALID_ARGUMENT,
                      "ReadOpAttr: attribute '%s' has type %d, it cannot be read as type %d", op_attr->name,
                      (int)op_attr->type, (int)type);
  size_t needed = attribute_bytes(op_attr);
  *out = needed;
  if (len < needed)
    return status_new(ORT_INVALID_ARGUMENT, "ReadOpAttr: attribute '%s' needs %zu bytes, 'len' is %zu",
                      op_attr->name, needed, len);
  if (needed == 0) return NULL;
  REQUIRE_ARG(data);
  if (type == ORT_OP_ATTR_STRINGS)
    write_strings(op_attr, data);
  else
    memcpy(data, attribute_data(op_attr), needed);
  return NULL;
}

/* ---- CreateOpAttr ---- */

static void attribute_release(OrtOpAttr* attribute) {
  for (size_t i = 0; attribute->strings != NULL && i < attribute->count; i++) mem_free(attribute->strings[i]);
  mem_free(attribute->strings);
  mem_free(attribute->string_lengths);
  mem_free(attribute->ints);
  mem_free(attribute->floats);
  mem_free(attribute->s);
  mem_free(attribute->name);
  mem_free(attribute);
}

static bool copy_list(OrtOpAttr* attribute, const void* data, size_t count) {
  bool is_ints = attribute->type == ORT_OP_ATTR_INTS;
  size_t item = is_ints ? sizeof(int64_t) : sizeof(float);
  void* copy = mem_calloc(count, item);
  if (copy == NULL) return false;
  if (count != 0) memcpy(copy, data, count * item);
  if (is_ints)
    attribute->ints = copy;
  else
    attribute->floats = copy;
  attribute->count = count;
  return true;
}

static bool copy_string_list(OrtOpAttr* attribute, const char* const* texts, size_t count) {
  attribute->strings = mem_calloc(count, sizeof(char*));
  attribute->string_lengths = mem_calloc(count, sizeof(size_t));
  if (attribute->strings == NULL || attribute->string_lengths == NULL) return false;
  for (size_t i = 0; i < count; i++) {
    char* copy = str_copy(texts[i] != NULL ? texts[i] : "");
    if (copy == NULL) return false;
    attribute->strings[i] = copy;
    attribute->string_lengths[i] = strlen(copy);
    attribute->count = i + 1;
  }
  return true;
}

/* Fills in the value from the client's data. False: no memory. */
static bool copy_client_data(OrtOpAttr* attribute, const void* data, size_t count) {
  switch (attribute->type) {
    case ORT_OP_ATTR_INT:
      memcpy(&attribute->i, data, sizeof attribute->i);
      return true;
    case ORT_OP_ATTR_FLOAT:
      memcpy(&attribute->f, data, sizeof attribute->f);
      return true;
    case ORT_OP_ATTR_INTS:
    case ORT_OP_ATTR_FLOATS:
      return copy_list(attribute, data, count);
    case ORT_OP_ATTR_STRING:
      attribute->s = str_copy(data);
      attribute->count = attribute->s != NULL ? strlen(attribute->s) : 0;
      return attribute->s != NULL;
    default:
      return copy_string_list(attribute, data, count);
  }
}

/* gives (caller releases with ReleaseOpAttr). copies name and data. `len` counts the elements of a list; a
 * STRING ends at its NUL. */
OrtStatus* ORT_API_CALL api_CreateOpAttr(const char* name, const void* data, int len, OrtOpAttrType type,
                                         OrtOpAttr** op_attr) {
  static const int onnx_types[] = {0, 2, 7, 1, 6, 3, 8}; /* by OrtOpAttrType */
  REQUIRE_ARG(name);
  REQUIRE_ARG(op_attr);
  bool is_list = type == ORT_OP_ATTR_INTS || type == ORT_OP_ATTR_FLOATS || type == ORT_OP_ATTR_STRINGS;
  if (type < ORT_OP_ATTR_INT || type > ORT_OP_ATTR_STRINGS)
    return status_new(ORT_INVALID_ARGUMENT, "CreateOpAttr: attribute '%s' cannot be of type %d", name,
                      (int)type);
  if (is_list && len < 0) return status_new(ORT_INVALID_ARGUMENT, "CreateOpAttr: argument 'len' is %d", len);
  if (!is_list || len != 0) REQUIRE_ARG(data);
  OrtOpAttr* attribute = mem_calloc(1, sizeof *attribute);
  if (attribute == NULL) return status_no_memory();
  attribute->type = type;
  attribute->onnx_type = onnx_types[type];
  attribute->is_heap = true;
  attribute->name = str_copy(name);
  if (attribute->name == NULL || !copy_client_data(attribute, data, (size_t)len)) {
    attribute_release(attribute);
    return status_no_memory();
  }
  *op_attr = attribute;
  return NULL;
}

/* releases what CreateOpAttr gave; a model's attributes belong to it. */
void ORT_API_CALL api_ReleaseOpAttr(OrtOpAttr* input) {
  if (input == NULL) return;
  if (input->is_heap)
    attribute_release(input);
  else
    log_unreported("ReleaseOpAttr", "attribute '%s' belongs to its node and is not released", input->name);
}
