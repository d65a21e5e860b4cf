/* What the caller gives to Run: every name, type and shape is checked before anything runs. */
#include <string.h>

#include "run/run.h"

/* Names are short: a call of strcmp costs more than this. */
static inline bool is_name(const char* a, const char* b) {
  while (*a == *b && *a != '\0') a++, b++;
  return *a == *b;
}

/* Callers mostly pass names in the model's order: then no look-up is needed. */
static inline const InputSpec* find_input(const Plan* plan, const char* name, size_t position) {
  if (position < plan->input_count && is_name(plan->inputs[position].name, name))
    return &plan->inputs[position];
  return name_map_get(&plan->input_names, name);
}

static inline const OutputSpec* find_output(const Plan* plan, const char* name, size_t position) {
  if (position < plan->output_count && is_name(plan->outputs[position].name, name))
    return &plan->outputs[plan->outputs[position].first];
  return name_map_get(&plan->output_names, name);
}

/* gives (caller releases with strbuf_release): "'a', 'b'". */
static StrBuf list_inputs(const Plan* plan) {
  StrBuf text = {0};
  for (size_t i = 0; i < plan->input_count; i++)
    strbuf_append(&text, "%s'%s'%s", i == 0 ? "" : ", ", plan->inputs[i].name,
                  plan->inputs[i].is_required ? "" : " (optional)");
  if (plan->input_count == 0) strbuf_append(&text, "none");
  return text;
}

static OrtStatus* unknown_input(const Plan* plan, const char* name) {
  StrBuf known = list_inputs(plan);
  OrtStatus* status = status_new(ORT_INVALID_ARGUMENT, "Invalid input name: %s. The model has: %s", name,
                                 known.failed ? "?" : known.text);
  strbuf_release(&known);
  return status;
}

/* ---- Values ----
 * Messages begin with the words of stock ORT's, which clients look for. */

/* gives (caller releases with strbuf_release): "float[2,n,?]". */
static StrBuf tensor_text(const OrtTensorTypeAndShapeInfo* tensor) {
  StrBuf text = {0};
  strbuf_append(&text, "%s", element_type_name(tensor->element_type));
  if (tensor->has_shape) strbuf_append(&text, "[");
  for (size_t i = 0; tensor->has_shape && i < tensor->rank; i++) {
    if (i != 0) strbuf_append(&text, ",");
    if (tensor->dims[i] >= 0)
      strbuf_append(&text, "%lld", (long long)tensor->dims[i]);
    else
      strbuf_append(&text, "%s",
                    tensor->symbols != NULL && tensor->symbols[i][0] != '\0' ? tensor->symbols[i] : "?");
  }
  if (tensor->has_shape) strbuf_append(&text, "]");
  return text;
}

/* releases `what`, gives an error with it in front. */
static OrtStatus* wrong_value(StrBuf* what, const OrtTensorTypeAndShapeInfo* tensor, const OrtValue* value) {
  StrBuf expected = tensor_text(tensor);
  char* got = value_type_text(value);
  OrtStatus* status =
      status_new(ORT_INVALID_ARGUMENT, "%s: it is %s, the model wants %s", what->failed ? "?" : what->text,
                 got != NULL ? got : "?", expected.failed ? "?" : expected.text);
  mem_free(got);
  strbuf_release(&expected);
  strbuf_release(what);
  return status;
}

static OrtStatus* wrong_element_type(const char* kind, const char* name,
                                     const OrtTensorTypeAndShapeInfo* tensor, const OrtValue* value) {
  StrBuf what = {0};
  strbuf_append(&what, "Unexpected %s data type. Actual: (tensor(%s)) , expected: (tensor(%s)) for %s '%s'",
                kind, element_type_name(value->element_type), element_type_name(tensor->element_type), kind,
                name);
  return wrong_value(&what, tensor, value);
}

static OrtStatus* wrong_rank(const char* kind, const char* name, const OrtTensorTypeAndShapeInfo* tensor,
                             const OrtValue* value) {
  StrBuf what = {0};
  strbuf_append(&what, "Invalid rank for %s: %s Got: %zu Expected: %zu", kind, name, value->rank,
                tensor->rank);
  return wrong_value(&what, tensor, value);
}

static OrtStatus* wrong_dimensions(const char* kind, const char* name,
                                   const OrtTensorTypeAndShapeInfo* tensor, const OrtValue* value) {
  StrBuf what = {0};
  strbuf_append(&what, "Got invalid dimensions for %s: %s for the following indices", kind, name);
  for (size_t i = 0; i < tensor->rank; i++) {
    if (tensor->dims[i] >= 0 && tensor->dims[i] != value->dims[i])
      strbuf_append(&what, " index: %zu Got: %lld Expected: %lld", i, (long long)value->dims[i],
                    (long long)tensor->dims[i]);
  }
  return wrong_value(&what, tensor, value);
}

static OrtStatus* wrong_kind(const char* kind, const char* name, const OrtTypeInfo* type,
                             const OrtValue* value) {
  char* wanted = type_info_text(type);
  bool is_tensor = value->kind == ONNX_TYPE_TENSOR;
  OrtStatus* status = status_new(
      ORT_INVALID_ARGUMENT, "Unexpected %s data type. Actual: (%s%s%s) , expected: (%s) for %s '%s'", kind,
      is_tensor ? "tensor(" : "no tensor", is_tensor ? element_type_name(value->element_type) : "",
      is_tensor ? ")" : "", wanted != NULL ? wanted : "?", kind, name);
  mem_free(wanted);
  return status;
}

/* Kind, element type, rank and fixed dimensions. A kernel writes and reads by the type that the model has:
 * what nobody knows cannot be given. */
static inline OrtStatus* check_value(const char* kind, const OrtValueInfo* info,
                                     const OrtTensorTypeAndShapeInfo* tensor, const OrtValue* value) {
  if (value->kind != ONNX_TYPE_TENSOR || tensor == NULL ||
      tensor->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
    return wrong_kind(kind, info->name, info->type, value);
  if (value->element_type != tensor->element_type) return wrong_element_type(kind, info->name, tensor, value);
  if (!tensor->has_shape) return NULL;
  if (value->rank != tensor->rank) return wrong_rank(kind, info->name, tensor, value);
  for (size_t i = 0; i < tensor->rank; i++) {
    if (tensor->dims[i] >= 0 && tensor->dims[i] != value->dims[i])
      return wrong_dimensions(kind, info->name, tensor, value);
  }
  return NULL;
}

/* ---- Binding ---- */

OrtStatus* bind_inputs(Frame* frame, const char* const* names, const OrtValue* const* values, size_t count) {
  const Plan* plan = frame->plan;
  for (size_t i = 0; i < count; i++) {
    if (names[i] == NULL) return status_new(ORT_INVALID_ARGUMENT, "the name of input %zu is NULL", i);
    const InputSpec* spec = find_input(plan, names[i], i);
    if (spec == NULL) return unknown_input(plan, names[i]);
    if (values[i] == NULL)
      return status_new(ORT_INVALID_ARGUMENT, "the value of input '%s' is NULL", spec->name);
    if (frame->input_given[spec - plan->inputs])
      return status_new(ORT_INVALID_ARGUMENT, "input '%s' is given twice", spec->name);
    TRY(check_value("input", spec->value, spec->tensor, values[i]));
    frame->input_given[spec - plan->inputs] = 1;
    if (!memory_device_is_host(&values[i]->memory->device)) frame->has_device_values = true;
    frame->values[spec->slot] = (OrtValue*)values[i]; /* kernels see it as const */
    frame->demanded_count += spec->is_demanded;
  }
  return NULL;
}

/* The place gets a copy when the run is done. */
static OrtStatus* add_repeat(Frame* frame, size_t output, size_t place) {
  if (!ARRAY_RESERVE(frame->repeats, frame->repeat_capacity, frame->repeat_count + 1))
    return status_no_memory();
  frame->repeats[frame->repeat_count++] = (Repeat){output, (uint32_t)place + 1, NULL};
  return NULL;
}

OrtStatus* bind_outputs(Frame* frame, const char* const* names, OrtValue* const* values, size_t count) {
  const Plan* plan = frame->plan;
  for (size_t i = 0; i < count; i++) {
    if (names[i] == NULL) return status_new(ORT_INVALID_ARGUMENT, "the name of output %zu is NULL", i);
    const OutputSpec* spec = find_output(plan, names[i], i);
    if (spec == NULL) return status_new(ORT_INVALID_ARGUMENT, "Invalid output name: %s", names[i]);
    uint32_t* place = &frame->output_place[spec - plan->outputs];
    if (values[i] != NULL) TRY(check_value("output", spec->value, spec->tensor, values[i]));
    if (*place != 0) {
      TRY(add_repeat(frame, spec->first, i));
      continue;
    }
    if (values[i] != NULL) {
      const OrtMemoryInfo* made_in = frame->session->places[plan->slots[spec->slot].place].memory;
      bool is_there = memory_device_equal(&made_in->device, &values[i]->memory->device);
      bool is_host =
          memory_device_is_host(&made_in->device) && memory_device_is_host(&values[i]->memory->device);
      if (!is_there && !is_host)
        frame->has_device_values = true; /* copied there at the end */
      else if (!spec->is_copied)
        frame->values[spec->slot] = values[i];
    }
    *place = (uint32_t)i + 1;
  }
  return NULL;
}
