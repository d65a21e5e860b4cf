/* Which operator a node is of: one of the model's custom operators, or ONNX's. */
#include <string.h>

#include "graph/graph.h"

/* ---- The model's table: op_type -> CustomOp ---- */

CustomOp* model_custom_op(const OrtModel* model, const char* domain, const char* name) {
  CustomOp* custom = name_map_get(&model->custom_ops, name);
  while (custom != NULL && strcmp(custom->schema.domain, domain) != 0) custom = custom->next;
  return custom;
}

const CustomOp* node_custom_op(const OrtNode* node) {
  const OrtModel* model = node->graph->model;
  if (model->custom_ops.count == 0) return NULL;
  const CustomOp* custom = model_custom_op(model, node->domain, node->op_type);
  int opset = custom != NULL ? model_opset(model, node->domain) : 0;
  return opset != 0 && custom->schema.since_version > opset ? NULL : custom;
}

const OpSchema* node_schema(const OrtNode* node) {
  const CustomOp* custom = node_custom_op(node);
  if (custom != NULL) return &custom->schema;
  const OpSchema* schema = op_schema_find(node->domain, node->op_type, node->since_version);
  bool is_converted = strcmp(node->domain, NHWC_DOMAIN) == 0; /* the domain lacks some that are */
  return schema == NULL && is_converted ? op_schema_find("", node->op_type, node->since_version) : schema;
}
