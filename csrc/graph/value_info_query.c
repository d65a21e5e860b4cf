/* The ValueInfo_* and ExternalInitializerInfo_* slots. What they give belongs to the value's graph (borrows)
 * unless said otherwise. Read-only: any number of threads. */
#include <string.h>

#include "graph/query.h"

OrtStatus* ORT_API_CALL api_GetValueInfoName(const OrtValueInfo* value_info, const char** name) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(name);
  *name = value_info->name;
  return NULL;
}

/* *type_info is NULL while the type is unknown. */
OrtStatus* ORT_API_CALL api_GetValueInfoTypeInfo(const OrtValueInfo* value_info,
                                                 const OrtTypeInfo** type_info) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(type_info);
  *type_info = value_info->type;
  return NULL;
}

/* *producer_node is NULL for graph inputs, initializers and values from outside of the graph. */
OrtStatus* ORT_API_CALL api_ValueInfo_GetValueProducer(const OrtValueInfo* value_info,
                                                       const OrtNode** producer_node,
                                                       size_t* producer_output_index) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(producer_node);
  *producer_node = value_info->producer;
  if (producer_output_index != NULL)
    *producer_output_index = value_info->producer != NULL ? value_info->producer_output : 0;
  return NULL;
}

OrtStatus* ORT_API_CALL api_ValueInfo_GetValueNumConsumers(const OrtValueInfo* value_info,
                                                           size_t* num_consumers) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(num_consumers);
  *num_consumers = value_info->consumer_count;
  return NULL;
}

/* A node is listed once an input that the value is; index -1: a subgraph of the node captures it. */
OrtStatus* ORT_API_CALL api_ValueInfo_GetValueConsumers(const OrtValueInfo* value_info, const OrtNode** nodes,
                                                        int64_t* input_indices, size_t num_consumers) {
  REQUIRE_ARG(value_info);
  CHECK_ROOM(nodes, num_consumers, value_info->consumer_count);
  CHECK_ROOM(input_indices, num_consumers, value_info->consumer_count);
  for (size_t i = 0; i < value_info->consumer_count; i++) {
    nodes[i] = value_info->consumers[i].node;
    input_indices[i] = value_info->consumers[i].input_index;
  }
  return NULL;
}

/* *initializer_value is NULL for a value that is no initializer. Values of enclosing graphs have theirs. */
OrtStatus* ORT_API_CALL api_ValueInfo_GetInitializerValue(const OrtValueInfo* value_info,
                                                          const OrtValue** initializer_value) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(initializer_value);
  *initializer_value = value_info->initializer;
  return NULL;
}

/* gives (caller releases with ReleaseExternalInitializerInfo); NULL when the data is in the model file. */
OrtStatus* ORT_API_CALL api_ValueInfo_GetExternalInitializerInfo(const OrtValueInfo* value_info,
                                                                 OrtExternalInitializerInfo** info) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(info);
  const OrtExternalInitializerInfo* external = value_info->external;
  if (external != NULL)
    return api_CreateExternalInitializerInfo(external->file_path, external->offset, external->size, info);
  *info = NULL;
  return NULL;
}

OrtStatus* ORT_API_CALL api_ValueInfo_IsRequiredGraphInput(const OrtValueInfo* value_info,
                                                           bool* is_required_graph_input) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(is_required_graph_input);
  *is_required_graph_input = value_info->is_graph_input && value_info->initializer == NULL;
  return NULL;
}

/* A graph input with an initializer, or an initializer that a caller of an enclosing graph may override. As
 * in ORT, a constant that is an input of a graph view counts; before IR version 4 nothing could be
 * overridden. */
OrtStatus* ORT_API_CALL api_ValueInfo_IsOptionalGraphInput(const OrtValueInfo* value_info,
                                                           bool* is_optional_graph_input) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(is_optional_graph_input);
  bool is_input = value_info->is_graph_input && value_info->graph->model->ir_version >= 4;
  *is_optional_graph_input = value_info->initializer != NULL && (is_input || !value_info->is_constant);
  return NULL;
}

OrtStatus* ORT_API_CALL api_ValueInfo_IsGraphOutput(const OrtValueInfo* value_info, bool* is_graph_output) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(is_graph_output);
  *is_graph_output = value_info->is_graph_output;
  return NULL;
}

OrtStatus* ORT_API_CALL api_ValueInfo_IsConstantInitializer(const OrtValueInfo* value_info,
                                                            bool* is_constant_initializer) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(is_constant_initializer);
  *is_constant_initializer = value_info->is_constant;
  return NULL;
}

OrtStatus* ORT_API_CALL api_ValueInfo_IsFromOuterScope(const OrtValueInfo* value_info,
                                                       bool* is_from_outer_scope) {
  REQUIRE_ARG(value_info);
  REQUIRE_ARG(is_from_outer_scope);
  *is_from_outer_scope = value_info->outer != NULL;
  return NULL;
}

/* Values belong to their graph. */
void ORT_API_CALL api_ReleaseValueInfo(OrtValueInfo* input) {
  if (input != NULL)
    log_unreported("ReleaseValueInfo", "value '%s' belongs to its graph and is not released", input->name);
}

/* gives (caller releases with ReleaseExternalInitializerInfo). copies the path. */
OrtStatus* ORT_API_CALL api_CreateExternalInitializerInfo(const ORTCHAR_T* filepath, int64_t file_offset,
                                                          size_t byte_size,
                                                          OrtExternalInitializerInfo** out) {
  REQUIRE_ARG(filepath);
  REQUIRE_ARG(out);
  OrtExternalInitializerInfo* info = mem_alloc(sizeof *info);
  char* path = str_copy(filepath);
  if (info == NULL || path == NULL) {
    mem_free(info);
    mem_free(path);
    return status_no_memory();
  }
  *info = (OrtExternalInitializerInfo){path, file_offset, byte_size};
  *out = info;
  return NULL;
}

void ORT_API_CALL api_ReleaseExternalInitializerInfo(OrtExternalInitializerInfo* input) {
  if (input == NULL) return;
  mem_free(input->file_path);
  mem_free(input);
}

/* These three cannot carry a status: NULL is logged. */
static bool has_info(const OrtExternalInitializerInfo* info, const char* slot) {
  if (info == NULL) log_unreported(slot, "argument 'info' is NULL");
  return info != NULL;
}

const ORTCHAR_T* ORT_API_CALL
api_ExternalInitializerInfo_GetFilePath(const OrtExternalInitializerInfo* info) {
  return has_info(info, slot_of(__func__)) ? info->file_path : NULL;
}

int64_t ORT_API_CALL api_ExternalInitializerInfo_GetFileOffset(const OrtExternalInitializerInfo* info) {
  return has_info(info, slot_of(__func__)) ? info->offset : 0;
}

size_t ORT_API_CALL api_ExternalInitializerInfo_GetByteSize(const OrtExternalInitializerInfo* info) {
  return has_info(info, slot_of(__func__)) ? info->size : 0;
}
