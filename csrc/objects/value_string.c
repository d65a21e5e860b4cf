/* String tensors: elements are NUL-terminated copies, "" is NULL. */
#include <string.h>

#include "api_slots.h"
#include "objects/objects.h"

static OrtStatus* require_strings(const OrtValue* value, const char* slot) {
  if (value->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "%s: the tensor holds '%s', not strings", slot,
                    element_type_name(value->element_type));
}

static OrtStatus* require_element(const OrtValue* value, size_t index, const char* slot) {
  TRY(require_strings(value, slot));
  if (index < value->element_count) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "%s: index %zu of a tensor of %zu elements", slot, index,
                    value->element_count);
}

bool value_set_string(OrtValue* value, size_t index, const char* text, size_t length) {
  char* copy = NULL;
  if (length != 0 && (copy = str_copy_n(text, length)) == NULL) return false;
  StringElement* element = (StringElement*)value->data + index;
  mem_free(element->text);
  *element = (StringElement){copy, length};
  return true;
}

OrtStatus* value_copy_strings(const OrtValue* source, OrtValue* target) {
  TRY(require_strings(source, __func__));
  TRY(require_strings(target, __func__));
  if (source->element_count != target->element_count)
    return status_new(ORT_INVALID_ARGUMENT, "%zu strings cannot be copied into a tensor of %zu",
                      source->element_count, target->element_count);
  const StringElement* strings = source->data;
  for (size_t i = 0; i < source->element_count; i++) {
    if (!value_set_string(target, i, strings[i].text, strings[i].length)) return status_no_memory();
  }
  return NULL;
}

/* copies all `s_len` strings, one an element. */
OrtStatus* ORT_API_CALL api_FillStringTensor(OrtValue* value, const char* const* s, size_t s_len) {
  REQUIRE_ARG(value);
  if (s_len != 0) REQUIRE_ARG(s);
  TRY(require_strings(value, "FillStringTensor"));
  if (s_len != value->element_count)
    return status_new(ORT_INVALID_ARGUMENT, "FillStringTensor: %zu strings for %zu elements", s_len,
                      value->element_count);
  for (size_t i = 0; i < s_len; i++) {
    if (s[i] == NULL) return status_new(ORT_INVALID_ARGUMENT, "FillStringTensor: string %zu is NULL", i);
  }
  for (size_t i = 0; i < s_len; i++) {
    if (!value_set_string(value, i, s[i], strlen(s[i]))) return status_no_memory();
  }
  return NULL;
}

/* copies. */
OrtStatus* ORT_API_CALL api_FillStringTensorElement(OrtValue* value, const char* s, size_t index) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(s);
  TRY(require_element(value, index, "FillStringTensorElement"));
  return value_set_string(value, index, s, strlen(s)) ? NULL : status_no_memory();
}

/* Bytes of all strings together, without terminators. */
static size_t total_length(const OrtValue* value) {
  const StringElement* strings = value->data;
  size_t total = 0;
  for (size_t i = 0; i < value->element_count; i++) total += strings[i].length;
  return total;
}

OrtStatus* ORT_API_CALL api_GetStringTensorDataLength(const OrtValue* value, size_t* len) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(len);
  TRY(require_strings(value, "GetStringTensorDataLength"));
  *len = total_length(value);
  return NULL;
}

/* Writes all strings one after another, and where each begins. */
OrtStatus* ORT_API_CALL api_GetStringTensorContent(const OrtValue* value, void* s, size_t s_len,
                                                   size_t* offsets, size_t offsets_len) {
  REQUIRE_ARG(value);
  TRY(require_strings(value, "GetStringTensorContent"));
  size_t total = total_length(value);
  if (offsets_len != value->element_count || s_len < total)
    return status_new(ORT_INVALID_ARGUMENT,
                      "GetStringTensorContent: %zu offsets and %zu bytes given, %zu and %zu needed",
                      offsets_len, s_len, value->element_count, total);
  if (total != 0) REQUIRE_ARG(s);
  if (offsets_len != 0) REQUIRE_ARG(offsets);
  const StringElement* strings = value->data;
  size_t at = 0;
  for (size_t i = 0; i < value->element_count; i++) {
    offsets[i] = at;
    if (strings[i].length != 0) memcpy((char*)s + at, strings[i].text, strings[i].length);
    at += strings[i].length;
  }
  return NULL;
}

OrtStatus* ORT_API_CALL api_GetStringTensorElementLength(const OrtValue* value, size_t index, size_t* out) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(out);
  TRY(require_element(value, index, "GetStringTensorElementLength"));
  *out = ((const StringElement*)value->data)[index].length;
  return NULL;
}

/* Writes one string, without a terminator. */
OrtStatus* ORT_API_CALL api_GetStringTensorElement(const OrtValue* value, size_t s_len, size_t index,
                                                   void* s) {
  REQUIRE_ARG(value);
  TRY(require_element(value, index, "GetStringTensorElement"));
  const StringElement* element = (const StringElement*)value->data + index;
  if (s_len < element->length)
    return status_new(ORT_INVALID_ARGUMENT, "GetStringTensorElement: %zu bytes given, %zu needed", s_len,
                      element->length);
  if (element->length == 0) return NULL;
  REQUIRE_ARG(s);
  memcpy(s, element->text, element->length);
  return NULL;
}

/* borrows: a buffer of `length_in_bytes` to write the element into, valid until the element is changed. */
OrtStatus* ORT_API_CALL api_GetResizedStringTensorElementBuffer(OrtValue* value, size_t index,
                                                                size_t length_in_bytes, char** buffer) {
  REQUIRE_ARG(value);
  REQUIRE_ARG(buffer);
  TRY(require_element(value, index, "GetResizedStringTensorElementBuffer"));
  if (length_in_bytes == SIZE_MAX) return status_no_memory();
  char* text = mem_calloc(length_in_bytes + 1, 1);
  if (text == NULL) return status_no_memory();
  StringElement* element = (StringElement*)value->data + index;
  mem_free(element->text);
  *element = (StringElement){text, length_in_bytes};
  *buffer = text;
  return NULL;
}
