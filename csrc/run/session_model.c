/* What session options change in a model before EPs see it. */
#include <string.h>
#include <strings.h>

#include "run/run.h"

/* ---- Free dimensions ---- */

static void fix_dimensions(const OrtGraph* graph, const DimensionOverride* wanted) {
  for (size_t i = 0; i < graph->values.capacity; i++) {
    const OrtValueInfo* value = graph->values.entries[i].name != NULL ? graph->values.entries[i].value : NULL;
    if (value == NULL || value->type == NULL || value->type->tensor == NULL) continue;
    OrtTensorTypeAndShapeInfo* tensor = value->type->tensor;
    for (size_t k = 0; tensor->symbols != NULL && k < tensor->rank; k++) {
      if (tensor->dims[k] < 0 && strcmp(tensor->symbols[k], wanted->name) == 0)
        tensor->dims[k] = wanted->value;
    }
  }
  for (size_t i = 0; i < graph->node_count; i++) {
    for (size_t k = 0; k < graph->nodes[i]->subgraph_count; k++)
      fix_dimensions(graph->nodes[i]->subgraphs[k], wanted);
  }
}

/* The override of the dimension's denotation (in whatever case), the first one that was added; NULL: none. */
static const DimensionOverride* find_by_denotation(const OrtSessionOptions* options, const char* denotation) {
  for (size_t i = 0; denotation[0] != '\0' && i < options->override_count; i++) {
    const DimensionOverride* override = &options->overrides[i];
    if (override->is_denotation && strcasecmp(override->name, denotation) == 0) return override;
  }
  return NULL;
}

/* Overrides by denotation count for inputs only. Those by name have been made. */
static OrtStatus* fix_input(const OrtSessionOptions* options, const OrtValueInfo* input) {
  OrtTensorTypeAndShapeInfo* tensor = input->type != NULL ? input->type->tensor : NULL;
  for (size_t k = 0; tensor != NULL && tensor->denotations != NULL && k < tensor->rank; k++) {
    const DimensionOverride* wanted = find_by_denotation(options, tensor->denotations[k]);
    if (wanted == NULL) continue;
    if (tensor->dims[k] >= 0 && tensor->dims[k] != wanted->value)
      return status_new(ORT_INVALID_ARGUMENT,
                        "dimension %zu of input '%s' is %lld; the free dimension override for the denotation "
                        "'%s' says %lld",
                        k, input->name, (long long)tensor->dims[k], wanted->name, (long long)wanted->value);
    tensor->dims[k] = wanted->value;
  }
  return NULL;
}

/* ---- Initializers ---- */

/* gives a copy on the CPU. */
static OrtStatus* copy_tensor(const OrtValue* source, OrtValue** out) {
  if (source->kind != ONNX_TYPE_TENSOR || source->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING ||
      !memory_device_is_host(&source->memory->device))
    return status_new(ORT_NOT_IMPLEMENTED, "only numeric tensors in host memory can replace an initializer");
  TRY(value_new_tensor(allocator_cpu(), source->element_type, source->rank, source->dims, out));
  if (source->size_bytes != 0) memcpy((*out)->data, source->data, source->size_bytes);
  return NULL;
}

static bool same_type_and_shape(const OrtValue* a, const OrtValue* b) {
  return a->element_type == b->element_type && a->rank == b->rank &&
         memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static OrtStatus* replace_initializer(OrtModel* model, const char* name, const OrtValue* value) {
  OrtValueInfo* target = graph_find_value(model->graph, name, false);
  if (target == NULL || target->initializer == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "the model has no initializer '%s' to replace", name);
  if (!same_type_and_shape(target->initializer, value)) {
    char *has = value_type_text(target->initializer), *given = value_type_text(value);
    OrtStatus* status = status_new(ORT_INVALID_ARGUMENT, "initializer '%s' is %s, its replacement is %s",
                                   name, has != NULL ? has : "?", given != NULL ? given : "?");
    mem_free(has);
    mem_free(given);
    return status;
  }
  if (!ARRAY_RESERVE(model->values, model->value_capacity, model->value_count + 1)) return status_no_memory();
  OrtValue* copy = NULL;
  TRY(copy_tensor(value, &copy));
  model->values[model->value_count++] = copy;
  target->initializer = copy;
  target->external = NULL;
  return NULL;
}

OrtStatus* session_adapt_model(OrtSession* session) {
  const OrtSessionOptions* options = session->options;
  for (size_t i = 0; i < options->override_count; i++) {
    if (!options->overrides[i].is_denotation) fix_dimensions(session->model->graph, &options->overrides[i]);
  }
  const OrtGraph* graph = session->model->graph;
  for (size_t i = 0; i < graph->input_count; i++) TRY(fix_input(options, graph->inputs[i]));
  for (size_t i = 0; i < options->initializer_count; i++)
    TRY(replace_initializer(session->model, options->initializer_names[i], options->initializers[i]));
  return NULL;
}
