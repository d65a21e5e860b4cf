/* What the caller gives to Run: every name, type and shape is checked before anything runs. */
#include <stdio.h>
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
  OrtStatus* status = status_new(ORT_INVALID_ARGUMENT, "the model has no input '%s'. It has: %s", name,
                                 known.failed ? "?" : known.text);
  strbuf_release(&known);
  return status;
}

static OrtStatus* wrong_value(const char* kind, const char* name, const OrtTensorTypeAndShapeInfo* tensor,
                              const OrtValue* value, const char* what) {
  StrBuf expected = {0};
  strbuf_append(&expected, "%s", element_type_name(tensor->element_type));
  if (tensor->has_shape) strbuf_append(&expected, "[");
  for (size_t i = 0; tensor->has_shape && i < tensor->rank; i++) {
    if (i != 0) strbuf_append(&expected, ",");
    if (tensor->dims[i] >= 0)
      strbuf_append(&expected, "%lld", (long long)tensor->dims[i]);
    else
      strbuf_append(&expected, "%s",
                    tensor->symbols != NULL && tensor->symbols[i][0] != '\0' ? tensor->symbols[i] : "?");
  }
  if (tensor->has_shape) strbuf_append(&expected, "]");
  char* got = value_type_text(value);
  OrtStatus* status = status_new(ORT_INVALID_ARGUMENT, "%s '%s' is %s, the model wants %s: %s differs", kind,
                                 name, got != NULL ? got : "?", expected.failed ? "?" : expected.text, what);
  mem_free(got);
  strbuf_release(&expected);
  return status;
}

/* Element type, rank and fixed dimensions. */
static OrtStatus* check_value(const char* kind, const char* name, const OrtTensorTypeAndShapeInfo* tensor,
                              const OrtValue* value) {
  if (value->kind != ONNX_TYPE_TENSOR)
    return status_new(ORT_INVALID_ARGUMENT, "%s '%s' is no tensor, the model wants one", kind, name);
  if (tensor == NULL) return NULL;
  if (value->element_type != tensor->element_type && tensor->element_type != 0)
    return wrong_value(kind, name, tensor, value, "the element type");
  if (!tensor->has_shape) return NULL;
  if (value->rank != tensor->rank) return wrong_value(kind, name, tensor, value, "the rank");
  for (size_t i = 0; i < tensor->rank; i++) {
    if (tensor->dims[i] >= 0 && tensor->dims[i] != value->dims[i]) {
      char what[48];
      snprintf(what, sizeof what, "dimension %zu", i);
      return wrong_value(kind, name, tensor, value, what);
    }
  }
  return NULL;
}

static OrtStatus* missing_input(const Frame* frame) {
  const Plan* plan = frame->plan;
  StrBuf missing = {0};
  for (size_t i = 0; i < plan->required_count; i++) {
    if (!frame->input_given[i])
      strbuf_append(&missing, "%s'%s'", missing.length == 0 ? "" : ", ", plan->inputs[i].name);
  }
  OrtStatus* status = status_new(ORT_INVALID_ARGUMENT, "required inputs are missing: %s",
                                 missing.failed ? "?" : missing.text);
  strbuf_release(&missing);
  return status;
}

OrtStatus* bind_inputs(Frame* frame, const char* const* names, const OrtValue* const* values, size_t count) {
  const Plan* plan = frame->plan;
  size_t required = 0;
  for (size_t i = 0; i < count; i++) {
    if (names[i] == NULL) return status_new(ORT_INVALID_ARGUMENT, "the name of input %zu is NULL", i);
    const InputSpec* spec = find_input(plan, names[i], i);
    if (spec == NULL) return unknown_input(plan, names[i]);
    if (values[i] == NULL)
      return status_new(ORT_INVALID_ARGUMENT, "the value of input '%s' is NULL", spec->name);
    if (frame->input_given[spec - plan->inputs])
      return status_new(ORT_INVALID_ARGUMENT, "input '%s' is given twice", spec->name);
    TRY(check_value("input", spec->name, spec->tensor, values[i]));
    frame->input_given[spec - plan->inputs] = 1;
    if (!memory_device_is_host(&values[i]->memory->device)) frame->has_device_values = true;
    frame->values[spec->slot] = (OrtValue*)values[i]; /* kernels see it as const */
    required += spec->is_required;
  }
  return required == plan->required_count ? NULL : missing_input(frame);
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
    if (spec == NULL) return status_new(ORT_INVALID_ARGUMENT, "the model has no output '%s'", names[i]);
    uint32_t* place = &frame->output_place[spec - plan->outputs];
    if (values[i] != NULL) {
      const OrtTypeInfo* type = spec->value->type;
      TRY(check_value("preallocated output", spec->name, type != NULL ? type->tensor : NULL, values[i]));
    }
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
