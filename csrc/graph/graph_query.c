/* The Graph_* slots. Everything they give belongs to the graph (borrows) unless said otherwise. Read-only:
 * any number of threads. */
#include <string.h>

#include "graph/query.h"

OrtStatus* query_check_room(const char* slot, const char* argument, const void* array, size_t room,
                            size_t needed) {
  if (room < needed)
    return status_new(ORT_INVALID_ARGUMENT, "%s: '%s' has room for %zu entries, %zu are needed", slot,
                      argument, room, needed);
  if (needed != 0 && array == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "%s: argument '%s' is NULL", slot, argument);
  return NULL;
}

OrtStatus* ORT_API_CALL api_Graph_GetName(const OrtGraph* graph, const char** graph_name) {
  REQUIRE_ARG(graph);
  REQUIRE_ARG(graph_name);
  *graph_name = graph->name;
  return NULL;
}

/* "" for a model that came from bytes. */
OrtStatus* ORT_API_CALL api_Graph_GetModelPath(const OrtGraph* graph, const ORTCHAR_T** model_path) {
  REQUIRE_ARG(graph);
  REQUIRE_ARG(model_path);
  *model_path = graph->model->path;
  return NULL;
}

OrtStatus* ORT_API_CALL api_Graph_GetOnnxIRVersion(const OrtGraph* graph, int64_t* onnx_ir_version) {
  REQUIRE_ARG(graph);
  REQUIRE_ARG(onnx_ir_version);
  *onnx_ir_version = graph->model->ir_version;
  return NULL;
}

OrtStatus* ORT_API_CALL api_Graph_GetNumOperatorSets(const OrtGraph* graph, size_t* num_operator_sets) {
  REQUIRE_ARG(graph);
  REQUIRE_ARG(num_operator_sets);
  *num_operator_sets = graph->model->opset_count;
  return NULL;
}

/* Sorted by domain. */
OrtStatus* ORT_API_CALL api_Graph_GetOperatorSets(const OrtGraph* graph, const char** domains,
                                                  int64_t* opset_versions, size_t num_operator_sets) {
  REQUIRE_ARG(graph);
  const OrtModel* model = graph->model;
  CHECK_ROOM(domains, num_operator_sets, model->opset_count);
  CHECK_ROOM(opset_versions, num_operator_sets, model->opset_count);
  for (size_t i = 0; i < model->opset_count; i++) {
    domains[i] = model->opsets[i].domain;
    opset_versions[i] = model->opsets[i].version;
  }
  return NULL;
}

OrtStatus* ORT_API_CALL api_Graph_GetNumInputs(const OrtGraph* graph, size_t* num_inputs) {
  REQUIRE_ARG(graph);
  REQUIRE_ARG(num_inputs);
  *num_inputs = graph->input_count;
  return NULL;
}

/* Initializers that are listed as graph inputs are among them. */
OrtStatus* ORT_API_CALL api_Graph_GetInputs(const OrtGraph* graph, const OrtValueInfo** inputs,
                                            size_t num_inputs) {
  REQUIRE_ARG(graph);
  CHECK_ROOM(inputs, num_inputs, graph->input_count);
  for (size_t i = 0; i < graph->input_count; i++) inputs[i] = graph->inputs[i];
  return NULL;
}

OrtStatus* ORT_API_CALL api_Graph_GetNumOutputs(const OrtGraph* graph, size_t* num_outputs) {
  REQUIRE_ARG(graph);
  REQUIRE_ARG(num_outputs);
  *num_outputs = graph->output_count;
  return NULL;
}

OrtStatus* ORT_API_CALL api_Graph_GetOutputs(const OrtGraph* graph, const OrtValueInfo** outputs,
                                             size_t num_outputs) {
  REQUIRE_ARG(graph);
  CHECK_ROOM(outputs, num_outputs, graph->output_count);
  for (size_t i = 0; i < graph->output_count; i++) outputs[i] = graph->outputs[i];
  return NULL;
}

OrtStatus* ORT_API_CALL api_Graph_GetNumInitializers(const OrtGraph* graph, size_t* num_initializers) {
  REQUIRE_ARG(graph);
  REQUIRE_ARG(num_initializers);
  *num_initializers = graph->initializer_count;
  return NULL;
}

/* Constant ones and those that callers can override; not those of enclosing graphs. */
OrtStatus* ORT_API_CALL api_Graph_GetInitializers(const OrtGraph* graph, const OrtValueInfo** initializers,
                                                  size_t num_initializers) {
  REQUIRE_ARG(graph);
  CHECK_ROOM(initializers, num_initializers, graph->initializer_count);
  for (size_t i = 0; i < graph->initializer_count; i++) initializers[i] = graph->initializers[i];
  return NULL;
}

OrtStatus* ORT_API_CALL api_Graph_GetNumNodes(const OrtGraph* graph, size_t* num_nodes) {
  REQUIRE_ARG(graph);
  REQUIRE_ARG(num_nodes);
  *num_nodes = graph->node_count;
  return NULL;
}

/* In topological order. */
OrtStatus* ORT_API_CALL api_Graph_GetNodes(const OrtGraph* graph, const OrtNode** nodes, size_t num_nodes) {
  REQUIRE_ARG(graph);
  CHECK_ROOM(nodes, num_nodes, graph->node_count);
  for (size_t i = 0; i < graph->node_count; i++) nodes[i] = graph->nodes[i];
  return NULL;
}

/* *node is NULL for a main graph. */
OrtStatus* ORT_API_CALL api_Graph_GetParentNode(const OrtGraph* graph, const OrtNode** node) {
  REQUIRE_ARG(graph);
  REQUIRE_ARG(node);
  *node = graph->parent_node;
  return NULL;
}

/* gives (caller releases with ReleaseGraph, before the source graph is gone). */
OrtStatus* ORT_API_CALL api_Graph_GetGraphView(const OrtGraph* src_graph, const OrtNode** nodes,
                                               size_t num_nodes, OrtGraph** dst_graph) {
  REQUIRE_ARG(src_graph);
  REQUIRE_ARG(dst_graph);
  if (num_nodes != 0) REQUIRE_ARG(nodes);
  OrtNode* const* members = (OrtNode* const*)(uintptr_t)nodes;
  OrtStatus* status = graph_view_new(src_graph, members, num_nodes, src_graph->name, false, dst_graph);
  return status != NULL ? status_wrap(status, "Graph_GetGraphView") : NULL;
}

/* releases a view. Other graphs belong to a model or a session, which releases them. */
void ORT_API_CALL api_ReleaseGraph(OrtGraph* input) {
  if (input == NULL) return;
  if (input->source != NULL)
    graph_view_release(input);
  else
    log_unreported("ReleaseGraph", "graph '%s' belongs to its model and is not released", input->name);
}

/* releases a model of ortabi_load_model. */
void ORT_API_CALL api_ReleaseModel(OrtModel* input) {
  model_release(input);
}
