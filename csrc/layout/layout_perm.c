/* Permutations of axes, and types and constants that follow them. */
#include <string.h>

#include "graph/graph.h"
#include "layout/rewrite.h"

/* ---- Permutations ---- */

Perm perm_to_first(size_t rank) {
  Perm perm = {.rank = rank};
  for (size_t i = 1; i < rank; i++) perm.axes[i] = i == 1 ? rank - 1 : i - 1;
  return perm;
}

Perm perm_inverse(const Perm* perm) {
  Perm inverse = {.rank = perm->rank};
  for (size_t i = 0; i < perm->rank; i++) inverse.axes[perm->axes[i]] = i;
  return inverse;
}

Perm perm_then(const Perm* first, const Perm* second) {
  Perm both = {.rank = first->rank};
  for (size_t i = 0; i < first->rank; i++) both.axes[i] = first->axes[second->axes[i]];
  return both;
}

bool perm_is_identity(const Perm* perm) {
  for (size_t i = 0; i < perm->rank; i++) {
    if (perm->axes[i] != i) return false;
  }
  return true;
}

bool perm_equal(const Perm* a, const Perm* b) {
  return a->rank == b->rank && memcmp(a->axes, b->axes, a->rank * sizeof *a->axes) == 0;
}

bool perm_of_transpose(const OrtNode* transpose, size_t rank, Perm* out) {
  const OrtOpAttr* axes = node_find_attribute(transpose, "perm");
  bool seen[MAX_PERM_RANK] = {false};
  out->rank = axes != NULL ? axes->count : rank;
  if (out->rank == 0 || out->rank > MAX_PERM_RANK || (axes != NULL && axes->type != ORT_OP_ATTR_INTS))
    return false;
  for (size_t i = 0; i < out->rank; i++) {
    int64_t axis = axes != NULL ? axes->ints[i] : (int64_t)(rank - 1 - i);
    if (axis < 0 || (size_t)axis >= out->rank || seen[axis]) return false;
    seen[axis] = true;
    out->axes[i] = (size_t)axis;
  }
  return true;
}

/* Axis `axis` among those that are not in `removed`. */
static size_t place_among_rest(size_t axis, const bool* removed) {
  size_t place = 0;
  for (size_t i = 0; i < axis; i++) place += !removed[i];
  return place;
}

Perm perm_without(const Perm* perm, const bool* removed) {
  Perm rest = {.rank = 0};
  bool removed_input[MAX_PERM_RANK];
  for (size_t i = 0; i < perm->rank; i++) removed_input[perm->axes[i]] = removed[i];
  for (size_t i = 0; i < perm->rank; i++) {
    if (!removed[i]) rest.axes[rest.rank++] = place_among_rest(perm->axes[i], removed_input);
  }
  return rest;
}

Perm perm_with(const Perm* perm, const bool* added, size_t count) {
  Perm whole = {.rank = perm->rank + count};
  size_t rest[MAX_PERM_RANK], next = 0;
  for (size_t i = 0; i < whole.rank; i++) {
    if (!added[i]) rest[next++] = i;
  }
  next = 0;
  for (size_t i = 0; i < whole.rank; i++) whole.axes[i] = added[i] ? i : rest[perm->axes[next++]];
  return whole;
}

/* ---- Types ---- */

OrtTypeInfo* type_permuted(Arena* arena, OrtTypeInfo* type, const Perm* perm) {
  if (type->tensor == NULL || !type->tensor->has_shape || type->tensor->rank != perm->rank) return type;
  OrtTypeInfo* turned = type_info_copy(arena, type);
  if (turned == NULL) return NULL;
  for (size_t i = 0; i < perm->rank; i++) {
    turned->tensor->dims[i] = type->tensor->dims[perm->axes[i]];
    if (type->tensor->symbols != NULL) turned->tensor->symbols[i] = type->tensor->symbols[perm->axes[i]];
  }
  turned->tensor->denotations = NULL;
  return turned;
}

/* ---- Constants ---- */

static bool is_integer(const OrtValue* tensor) {
  return tensor->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 ||
         tensor->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
}

bool is_movable_constant(const OrtValueInfo* value) {
  const OrtValue* tensor = value->is_constant ? value->initializer : NULL;
  return tensor != NULL && element_type_bits(tensor->element_type) >= 8 && tensor->rank <= MAX_PERM_RANK;
}

bool constant_numbers(const OrtValueInfo* value, int64_t* numbers, size_t* count) {
  const OrtValue* tensor = value->is_constant ? value->initializer : NULL;
  if (tensor == NULL || !is_integer(tensor) || tensor->rank > 1 || tensor->element_count > MAX_NUMBERS)
    return false;
  bool is_long = tensor->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  for (size_t i = 0; i < tensor->element_count; i++) {
    int32_t number = 0;
    if (is_long)
      memcpy(&numbers[i], (const char*)tensor->data + i * sizeof(int64_t), sizeof(int64_t));
    else
      memcpy(&number, (const char*)tensor->data + i * sizeof number, sizeof number);
    if (!is_long) numbers[i] = number;
  }
  *count = tensor->element_count;
  return true;
}

/* takes `value`, for the model. */
static OrtStatus* give_to_model(OrtModel* model, OrtValue* value, OrtValue** out) {
  TRY(model_own_value(model, value));
  *out = value;
  return NULL;
}

OrtStatus* constant_permuted(OrtModel* model, const OrtValue* source, const Perm* perm, OrtValue** out) {
  size_t lead = perm->rank - source->rank, item = element_type_bits(source->element_type) / 8;
  size_t strides[MAX_PERM_RANK] = {0}, steps[MAX_PERM_RANK], at[MAX_PERM_RANK] = {0};
  int64_t dims[MAX_PERM_RANK], turned[MAX_PERM_RANK];
  size_t stride = item;
  for (size_t i = perm->rank; i-- > 0;) {
    dims[i] = i < lead ? 1 : source->dims[i - lead];
    strides[i] = stride;
    stride *= (size_t)dims[i];
  }
  for (size_t i = 0; i < perm->rank; i++) {
    turned[i] = dims[perm->axes[i]];
    steps[i] = strides[perm->axes[i]];
  }
  OrtValue* value = NULL;
  TRY(value_new_tensor(allocator_cpu(), source->element_type, perm->rank, turned, &value));
  const char* from = source->data;
  for (size_t n = 0; n < value->element_count; n++) {
    memcpy((char*)value->data + n * item, from, item);
    for (size_t i = perm->rank; i-- > 0;) { /* the next element: an odometer */
      from += steps[i];
      if (++at[i] < (size_t)turned[i]) break;
      from -= steps[i] * (size_t)turned[i];
      at[i] = 0;
    }
  }
  return give_to_model(model, value, out);
}

OrtStatus* constant_picked(OrtModel* model, const OrtValue* source, const int64_t* numbers, size_t count,
                           OrtValue** out) {
  size_t item = element_type_bits(source->element_type) / 8;
  int64_t dim = (int64_t)count;
  OrtValue* value = NULL;
  TRY(value_new_tensor(allocator_cpu(), source->element_type, 1, &dim, &value));
  for (size_t i = 0; i < count; i++)
    memcpy((char*)value->data + i * item, (const char*)source->data + (size_t)numbers[i] * item, item);
  return give_to_model(model, value, out);
}

OrtStatus* constant_of_numbers(OrtModel* model, ONNXTensorElementDataType type, const int64_t* numbers,
                               size_t count, OrtValue** out) {
  int64_t dim = (int64_t)count;
  OrtValue* value = NULL;
  TRY(value_new_tensor(allocator_cpu(), type, 1, &dim, &value));
  for (size_t i = 0; i < count; i++) {
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32)
      ((int32_t*)value->data)[i] = (int32_t)numbers[i];
    else
      ((int64_t*)value->data)[i] = numbers[i];
  }
  return give_to_model(model, value, out);
}
