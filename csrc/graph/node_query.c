/* The Node_* slots. Everything they give belongs to the node's graph (borrows). Read-only: any number of
 * threads. */
#include <string.h>

#include "graph/graph.h"
#include "graph/query.h"

OrtStatus* ORT_API_CALL api_Node_GetId(const OrtNode* node, size_t* node_id) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(node_id);
  *node_id = node->id;
  return NULL;
}

OrtStatus* ORT_API_CALL api_Node_GetName(const OrtNode* node, const char** node_name) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(node_name);
  *node_name = node->name;
  return NULL;
}

OrtStatus* ORT_API_CALL api_Node_GetOperatorType(const OrtNode* node, const char** operator_type) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(operator_type);
  *operator_type = node->op_type;
  return NULL;
}

/* "" is the ONNX domain. */
OrtStatus* ORT_API_CALL api_Node_GetDomain(const OrtNode* node, const char** domain_name) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(domain_name);
  *domain_name = node->domain;
  return NULL;
}

OrtStatus* ORT_API_CALL api_Node_GetSinceVersion(const OrtNode* node, int* since_version) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(since_version);
  *since_version = node->since_version;
  return NULL;
}

OrtStatus* ORT_API_CALL api_Node_GetNumInputs(const OrtNode* node, size_t* num_inputs) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(num_inputs);
  *num_inputs = node->input_count;
  return NULL;
}

/* NULL entries are missing optional inputs. */
OrtStatus* ORT_API_CALL api_Node_GetInputs(const OrtNode* node, const OrtValueInfo** inputs,
                                           size_t num_inputs) {
  REQUIRE_ARG(node);
  CHECK_ROOM(inputs, num_inputs, node->input_count);
  for (size_t i = 0; i < node->input_count; i++) inputs[i] = node->inputs[i];
  return NULL;
}

OrtStatus* ORT_API_CALL api_Node_GetNumOutputs(const OrtNode* node, size_t* num_outputs) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(num_outputs);
  *num_outputs = node->output_count;
  return NULL;
}

/* NULL entries are outputs that nobody wants. */
OrtStatus* ORT_API_CALL api_Node_GetOutputs(const OrtNode* node, const OrtValueInfo** outputs,
                                            size_t num_outputs) {
  REQUIRE_ARG(node);
  CHECK_ROOM(outputs, num_outputs, node->output_count);
  for (size_t i = 0; i < node->output_count; i++) outputs[i] = node->outputs[i];
  return NULL;
}

OrtStatus* ORT_API_CALL api_Node_GetNumImplicitInputs(const OrtNode* node, size_t* num_implicit_inputs) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(num_implicit_inputs);
  *num_implicit_inputs = node->implicit_input_count;
  return NULL;
}

/* What the node's subgraphs capture. */
OrtStatus* ORT_API_CALL api_Node_GetImplicitInputs(const OrtNode* node, const OrtValueInfo** implicit_inputs,
                                                   size_t num_implicit_inputs) {
  REQUIRE_ARG(node);
  CHECK_ROOM(implicit_inputs, num_implicit_inputs, node->implicit_input_count);
  for (size_t i = 0; i < node->implicit_input_count; i++) implicit_inputs[i] = node->implicit_inputs[i];
  return NULL;
}

OrtStatus* ORT_API_CALL api_Node_GetNumAttributes(const OrtNode* node, size_t* num_attributes) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(num_attributes);
  *num_attributes = node->attribute_count;
  return NULL;
}

/* Those that the model sets; defaults are the schema's. */
OrtStatus* ORT_API_CALL api_Node_GetAttributes(const OrtNode* node, const OrtOpAttr** attributes,
                                               size_t num_attributes) {
  REQUIRE_ARG(node);
  CHECK_ROOM(attributes, num_attributes, node->attribute_count);
  for (size_t i = 0; i < node->attribute_count; i++) attributes[i] = &node->attributes[i];
  return NULL;
}

/* An optional attribute of the operator that the model does not set: OK and NULL. Any other missing one:
 * ORT_NOT_FOUND and NULL. */
OrtStatus* ORT_API_CALL api_Node_GetAttributeByName(const OrtNode* node, const char* attribute_name,
                                                    const OrtOpAttr** attribute) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(attribute_name);
  REQUIRE_ARG(attribute);
  *attribute = node_find_attribute(node, attribute_name);
  if (*attribute != NULL) return NULL;
  const OpSchema* schema = node_schema(node);
  const OpSchemaAttr* known = schema != NULL ? op_schema_attribute(schema, attribute_name) : NULL;
  if (known != NULL && !known->required) return NULL;
  return status_new(ORT_NOT_FOUND, "Node_GetAttributeByName: node '%s' (%s) has no attribute '%s'",
                    node->name, node->op_type, attribute_name);
}

OrtStatus* ORT_API_CALL api_Node_GetNumSubgraphs(const OrtNode* node, size_t* num_subgraphs) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(num_subgraphs);
  *num_subgraphs = node->subgraph_count;
  return NULL;
}

/* `attribute_names` may be NULL; else it gets the names of the attributes that hold the subgraphs. */
OrtStatus* ORT_API_CALL api_Node_GetSubgraphs(const OrtNode* node, const OrtGraph** subgraphs,
                                              size_t num_subgraphs, const char** attribute_names) {
  REQUIRE_ARG(node);
  CHECK_ROOM(subgraphs, num_subgraphs, node->subgraph_count);
  size_t next = 0;
  for (size_t i = 0; i < node->attribute_count; i++) {
    if (node->attributes[i].graph == NULL) continue;
    if (attribute_names != NULL) attribute_names[next] = node->attributes[i].name;
    subgraphs[next++] = node->attributes[i].graph;
  }
  return NULL;
}

OrtStatus* ORT_API_CALL api_Node_GetGraph(const OrtNode* node, const OrtGraph** graph) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(graph);
  *graph = node->graph;
  return NULL;
}

/* "" while no EP has the node. */
OrtStatus* ORT_API_CALL api_Node_GetEpName(const OrtNode* node, const char** out) {
  REQUIRE_ARG(node);
  REQUIRE_ARG(out);
  const char* name = node_root(node)->ep_name;
  *out = name != NULL ? name : "";
  return NULL;
}

/* Nodes belong to their graph. */
void ORT_API_CALL api_ReleaseNode(OrtNode* input) {
  if (input != NULL)
    log_unreported("ReleaseNode", "node '%s' belongs to its graph and is not released", input->name);
}
