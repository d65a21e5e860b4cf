/* What a kernel learns about its node when it is created. Constant: callable from any thread. */
#include <string.h>

#include "api_slots.h"
#include "run/run.h"

/* ---- The size-query protocol: out NULL asks for the size; too small a buffer is an error that tells it ----
 */

static OrtStatus* give_array(const void* source, size_t count, size_t item_size, const char* slot, void* out,
                             size_t* size) {
  size_t room = *size;
  *size = count;
  if (out == NULL) return NULL;
  if (room < count)
    return status_new(ORT_INVALID_ARGUMENT, "%s: the buffer has room for %zu, %zu are needed", slot, room,
                      count);
  if (count != 0) memcpy(out, source, count * item_size);
  return NULL;
}

/* The size counts the NUL. `length` bytes of `text`. */
static OrtStatus* give_text(const char* text, size_t length, const char* slot, char* out, size_t* size) {
  size_t room = *size;
  *size = length + 1;
  if (out == NULL) return NULL;
  if (room < length + 1)
    return status_new(ORT_INVALID_ARGUMENT, "%s: the buffer has room for %zu bytes, %zu are needed", slot,
                      room, length + 1);
  memcpy(out, text, length);
  out[length] = '\0';
  return NULL;
}

/* ---- The node ---- */

OrtStatus* ORT_API_CALL api_KernelInfo_GetInputCount(const OrtKernelInfo* info, size_t* out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(out);
  *out = info->node->input_count;
  return NULL;
}

OrtStatus* ORT_API_CALL api_KernelInfo_GetOutputCount(const OrtKernelInfo* info, size_t* out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(out);
  *out = info->node->output_count;
  return NULL;
}

static OrtStatus* find_value(OrtValueInfo* const* values, size_t count, size_t index, const char* slot,
                             const OrtValueInfo** out) {
  if (index >= count)
    return status_new(ORT_INVALID_ARGUMENT, "%s: index %zu is not below %zu", slot, index, count);
  *out = values[index];
  return NULL;
}

/* "" is the name of a missing optional input or output. */
static OrtStatus* give_value_name(OrtValueInfo* const* values, size_t count, size_t index, const char* slot,
                                  char* out, size_t* size) {
  const OrtValueInfo* value = NULL;
  TRY(find_value(values, count, index, slot, &value));
  const char* name = value != NULL ? value->name : "";
  return give_text(name, strlen(name), slot, out, size);
}

OrtStatus* ORT_API_CALL api_KernelInfo_GetInputName(const OrtKernelInfo* info, size_t index, char* out,
                                                    size_t* size) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(size);
  return give_value_name(info->node->inputs, info->node->input_count, index, "KernelInfo_GetInputName", out,
                         size);
}

OrtStatus* ORT_API_CALL api_KernelInfo_GetOutputName(const OrtKernelInfo* info, size_t index, char* out,
                                                     size_t* size) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(size);
  return give_value_name(info->node->outputs, info->node->output_count, index, "KernelInfo_GetOutputName",
                         out, size);
}

static OrtStatus* give_type(OrtValueInfo* const* values, size_t count, size_t index, const char* slot,
                            OrtTypeInfo** out) {
  const OrtValueInfo* value = NULL;
  TRY(find_value(values, count, index, slot, &value));
  if (value == NULL || value->type == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "%s: the type at index %zu is unknown", slot, index);
  return type_info_give(value->type, out);
}

/* gives (caller releases with ReleaseTypeInfo). */
OrtStatus* ORT_API_CALL api_KernelInfo_GetInputTypeInfo(const OrtKernelInfo* info, size_t index,
                                                        OrtTypeInfo** type_info) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(type_info);
  return give_type(info->node->inputs, info->node->input_count, index, "KernelInfo_GetInputTypeInfo",
                   type_info);
}

/* gives (caller releases with ReleaseTypeInfo). */
OrtStatus* ORT_API_CALL api_KernelInfo_GetOutputTypeInfo(const OrtKernelInfo* info, size_t index,
                                                         OrtTypeInfo** type_info) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(type_info);
  return give_type(info->node->outputs, info->node->output_count, index, "KernelInfo_GetOutputTypeInfo",
                   type_info);
}

OrtStatus* ORT_API_CALL api_KernelInfo_GetNodeName(const OrtKernelInfo* info, char* out, size_t* size) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(size);
  return give_text(info->node->name, strlen(info->node->name), "KernelInfo_GetNodeName", out, size);
}

OrtStatus* ORT_API_CALL api_KernelInfo_GetOperatorDomain(const OrtKernelInfo* info, char* out, size_t* size) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(size);
  return give_text(info->node->domain, strlen(info->node->domain), "KernelInfo_GetOperatorDomain", out, size);
}

OrtStatus* ORT_API_CALL api_KernelInfo_GetOperatorType(const OrtKernelInfo* info, char* out, size_t* size) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(size);
  return give_text(info->node->op_type, strlen(info->node->op_type), "KernelInfo_GetOperatorType", out, size);
}

OrtStatus* ORT_API_CALL api_KernelInfo_GetOperatorSinceVersion(const OrtKernelInfo* info,
                                                               int* since_version) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(since_version);
  *since_version = info->node->since_version;
  return NULL;
}

/* borrows: as long as the session, or until the kernel packed it. In the memory that the kernel reads the
 * input from. *is_constant 0: the input comes from elsewhere, or its weight was released after packing, and
 * *out is NULL. */
OrtStatus* ORT_API_CALL api_KernelInfoGetConstantInput_tensor(const OrtKernelInfo* info, size_t index,
                                                              int* is_constant, const OrtValue** out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(is_constant);
  REQUIRE_ARG(out);
  const OrtValueInfo* value = index < info->node->input_count ? info->node->inputs[index] : NULL;
  if (value != NULL) value = value_root(value);
  const OrtValue* constant = NULL;
  if (value != NULL && value->is_constant)
    constant = constant_at(value, place_wanted(node_unit(info->node), index, false, value));
  *is_constant = constant != NULL && constant->kind != ONNX_TYPE_UNKNOWN;
  *out = *is_constant ? constant : NULL;
  return NULL;
}

/* ---- What surrounds it ---- */

/* borrows: as long as the session. */
OrtStatus* ORT_API_CALL api_KernelInfo_GetLogger(const OrtKernelInfo* info, const OrtLogger** logger) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(logger);
  *logger = &info->session->logger;
  return NULL;
}

/* borrows: as long as the session. */
OrtStatus* ORT_API_CALL api_KernelInfo_GetEp(const OrtKernelInfo* info, const OrtEp** ep) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(ep);
  *ep = info->ep->ep;
  return NULL;
}

/* gives (caller releases with ReleaseKeyValuePairs). */
OrtStatus* ORT_API_CALL api_KernelInfo_GetConfigEntries(const OrtKernelInfo* info, OrtKeyValuePairs** out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(out);
  OrtKeyValuePairs* copy = key_values_copy(info->session->options->config);
  if (copy == NULL) return status_no_memory();
  *out = copy;
  return NULL;
}

/* borrows: ReleaseAllocator may be called on it, and does nothing. The default memory is the EP's. */
OrtStatus* ORT_API_CALL api_KernelInfoGetAllocator(const OrtKernelInfo* info, OrtMemType mem_type,
                                                   OrtAllocator** out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(out);
  const Place* places = info->session->places;
  *out = places[mem_type == OrtMemTypeDefault ? info->ep->place : 0].allocator;
  return NULL;
}

/* gives (caller releases with ReleaseKernelInfo): valid as long as the session. */
OrtStatus* ORT_API_CALL api_CopyKernelInfo(const OrtKernelInfo* info, OrtKernelInfo** info_copy) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(info_copy);
  OrtKernelInfo* copy = mem_alloc(sizeof *copy);
  if (copy == NULL) return status_no_memory();
  *copy = *info;
  copy->is_copy = true;
  *info_copy = copy;
  return NULL;
}

/* A kernel's own info is the session's and stays. */
void ORT_API_CALL api_ReleaseKernelInfo(OrtKernelInfo* input) {
  if (input != NULL && input->is_copy) mem_free(input);
}

/* ---- Attributes ---- */

static const char* attribute_type_name(OrtOpAttrType type) {
  static const char* const names[] = {"undefined", "int",     "ints",  "float", "floats",
                                      "string",    "strings", "graph", "tensor"};
  return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "undefined";
}

static OrtStatus* no_attribute(const OrtKernelInfo* info, const char* name, const OrtOpAttr* found,
                               OrtOpAttrType wanted) {
  if (found == NULL)
    return status_new(ORT_FAIL, "node '%s' (%s) has no attribute '%s'", info->node->name, info->node->op_type,
                      name);
  return status_new(ORT_FAIL, "attribute '%s' of node '%s' (%s) is of type %s, not %s", name,
                    info->node->name, info->node->op_type, attribute_type_name(found->type),
                    attribute_type_name(wanted));
}

/* The node's attribute; defaults of the operator are among them. */
static OrtStatus* find_attribute(const OrtKernelInfo* info, const char* name, OrtOpAttrType type,
                                 const OrtOpAttr** out) {
  *out = node_find_attribute(info->node, name);
  return *out != NULL && (*out)->type == type ? NULL : no_attribute(info, name, *out, type);
}

OrtStatus* ORT_API_CALL api_KernelInfoGetAttribute_float(const OrtKernelInfo* info, const char* name,
                                                         float* out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(name);
  REQUIRE_ARG(out);
  const OrtOpAttr* attribute = NULL;
  TRY(find_attribute(info, name, ORT_OP_ATTR_FLOAT, &attribute));
  *out = attribute->f;
  return NULL;
}

OrtStatus* ORT_API_CALL api_KernelInfoGetAttribute_int64(const OrtKernelInfo* info, const char* name,
                                                         int64_t* out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(name);
  REQUIRE_ARG(out);
  const OrtOpAttr* attribute = NULL;
  TRY(find_attribute(info, name, ORT_OP_ATTR_INT, &attribute));
  *out = attribute->i;
  return NULL;
}

OrtStatus* ORT_API_CALL api_KernelInfoGetAttribute_string(const OrtKernelInfo* info, const char* name,
                                                          char* out, size_t* size) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(name);
  REQUIRE_ARG(size);
  const OrtOpAttr* attribute = NULL;
  TRY(find_attribute(info, name, ORT_OP_ATTR_STRING, &attribute));
  return give_text(attribute->s, attribute->count, "KernelInfoGetAttribute_string", out, size);
}

OrtStatus* ORT_API_CALL api_KernelInfoGetAttributeArray_float(const OrtKernelInfo* info, const char* name,
                                                              float* out, size_t* size) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(name);
  REQUIRE_ARG(size);
  const OrtOpAttr* attribute = NULL;
  TRY(find_attribute(info, name, ORT_OP_ATTR_FLOATS, &attribute));
  return give_array(attribute->floats, attribute->count, sizeof *out, "KernelInfoGetAttributeArray_float",
                    out, size);
}

OrtStatus* ORT_API_CALL api_KernelInfoGetAttributeArray_int64(const OrtKernelInfo* info, const char* name,
                                                              int64_t* out, size_t* size) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(name);
  REQUIRE_ARG(size);
  const OrtOpAttr* attribute = NULL;
  TRY(find_attribute(info, name, ORT_OP_ATTR_INTS, &attribute));
  return give_array(attribute->ints, attribute->count, sizeof *out, "KernelInfoGetAttributeArray_int64", out,
                    size);
}

static void free_strings(OrtAllocator* allocator, char** strings, size_t count) {
  for (size_t i = 0; i < count; i++) allocator_free(allocator, strings[i]);
  allocator_free(allocator, strings);
}

/* gives (caller releases every string and the array with `allocator`). No strings: *out is NULL. */
OrtStatus* ORT_API_CALL api_KernelInfoGetAttributeArray_string(const OrtKernelInfo* info, const char* name,
                                                               OrtAllocator* allocator, char*** out,
                                                               size_t* size) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(name);
  REQUIRE_ARG(allocator);
  REQUIRE_ARG(out);
  REQUIRE_ARG(size);
  const OrtOpAttr* attribute = NULL;
  TRY(find_attribute(info, name, ORT_OP_ATTR_STRINGS, &attribute));
  char** strings = NULL;
  if (attribute->count != 0) {
    strings = allocator_alloc(allocator, attribute->count * sizeof *strings);
    if (strings == NULL) return status_no_memory();
  }
  for (size_t i = 0; i < attribute->count; i++) {
    size_t length = attribute->string_lengths[i];
    strings[i] = allocator_alloc(allocator, length + 1);
    if (strings[i] == NULL) {
      free_strings(allocator, strings, i);
      return status_no_memory();
    }
    memcpy(strings[i], attribute->strings[i], length);
    strings[i][length] = '\0';
  }
  *out = strings;
  *size = attribute->count;
  return NULL;
}

/* gives (caller releases with ReleaseValue): a copy in memory of `allocator`. */
OrtStatus* ORT_API_CALL api_KernelInfoGetAttribute_tensor(const OrtKernelInfo* info, const char* name,
                                                          OrtAllocator* allocator, OrtValue** out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(name);
  REQUIRE_ARG(allocator);
  REQUIRE_ARG(out);
  const OrtOpAttr* attribute = NULL;
  TRY(find_attribute(info, name, ORT_OP_ATTR_TENSOR, &attribute));
  OrtStatus* status = value_copy(allocator, attribute->tensor, out);
  return status != NULL ? status_wrap(status, "KernelInfoGetAttribute_tensor") : NULL;
}
