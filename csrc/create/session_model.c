/* What session options change in a model before EPs see it. */
#include <string.h>
#include <strings.h>

#include "create/create.h"

/* ---- Free dimensions ---- */

/* Its name goes: it is no free one any more. */
static void fix_dimension(OrtTensorTypeAndShapeInfo* tensor, size_t index, int64_t value) {
  tensor->dims[index] = value;
  if (tensor->symbols != NULL) tensor->symbols[index] = (char*)"";
}

static void fix_dimensions(const OrtGraph* graph, const DimensionOverride* wanted) {
  for (size_t i = 0; i < graph->values.capacity; i++) {
    const OrtValueInfo* value = graph->values.entries[i].name != NULL ? graph->values.entries[i].value : NULL;
    if (value == NULL || value->type == NULL || value->type->tensor == NULL) continue;
    OrtTensorTypeAndShapeInfo* tensor = value->type->tensor;
    for (size_t k = 0; tensor->symbols != NULL && k < tensor->rank; k++) {
      if (tensor->dims[k] < 0 && strcmp(tensor->symbols[k], wanted->name) == 0)
        fix_dimension(tensor, k, wanted->value);
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
    fix_dimension(tensor, k, wanted->value);
  }
  return NULL;
}

/* ---- Initializers ---- */

/* The reader has replaced those that there are. */
static OrtStatus* check_replaced(const OrtModel* model, const char* name) {
  const OrtValueInfo* target = graph_find_value(model->graph, name, false);
  if (target != NULL && target->initializer != NULL) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "the model has no initializer '%s' to replace", name);
}

OrtStatus* session_adapt_model(OrtSession* session) {
  const OrtSessionOptions* options = session->options;
  for (size_t i = 0; i < options->override_count; i++) {
    if (!options->overrides[i].is_denotation) fix_dimensions(session->model->graph, &options->overrides[i]);
  }
  const OrtGraph* graph = session->model->graph;
  for (size_t i = 0; i < graph->input_count; i++) TRY(fix_input(options, graph->inputs[i]));
  for (size_t i = 0; i < options->initializer_count; i++)
    TRY(check_replaced(session->model, options->initializer_names[i]));
  return NULL;
}
