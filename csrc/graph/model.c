/* A model: what it owns beside its arena, and its end. */
#include <sys/mman.h>

#include "graph/graph.h"

OrtStatus* model_own_value(OrtModel* model, OrtValue* value) {
  if (ARRAY_RESERVE(model->values, model->value_capacity, model->value_count + 1)) {
    model->values[model->value_count++] = value;
    return NULL;
  }
  value_release(value);
  return status_no_memory();
}

OrtTypeInfo* type_of_tensor(OrtModel* model, const OrtValue* tensor) {
  Arena* arena = &model->arena;
  return type_info_new_tensor(
      arena, ONNX_TYPE_TENSOR,
      shape_info_new(arena, tensor->element_type, true, tensor->rank, tensor->dims, NULL));
}

static void mappings_release(OrtModel* model) {
  for (Mapping* mapping = model->mappings; mapping != NULL; mapping = mapping->next) {
    if (mapping->is_heap)
      mem_free_aligned(mapping->data);
    else if (mapping->size != 0)
      munmap(mapping->data, mapping->size);
  }
  model->mappings = NULL;
}

void model_release(OrtModel* model) {
  if (model == NULL) return;
  for (size_t i = 0; i < model->value_count; i++) value_release(model->values[i]);
  mem_free(model->values);
  for (OrtGraph* graph = model->graphs; graph != NULL; graph = graph->next_graph)
    name_map_release(&graph->values);
  name_map_release(&model->custom_ops);
  key_values_release(model->metadata.custom);
  mappings_release(model);
  arena_release(&model->arena);
  mem_free(model);
}
