/* Holds a node against its operator's schema when it is read, so that nobody who asks for "input 1 of an Add"
 * has to check that it is there. */
#include <limits.h>
#include <string.h>

#include "infer/infer.h"
#include "schema/schema.h"

static OrtStatus* check_count(const char* what, size_t count, int least, int most) {
  if (count >= (size_t)least && (most == INT_MAX || count <= (size_t)most)) return NULL;
  if (most == INT_MAX)
    return status_new(ORT_INVALID_GRAPH, "it has %zu %s, the operator needs at least %d", count, what, least);
  return status_new(ORT_INVALID_GRAPH, "it has %zu %s, the operator takes %d to %d", count, what, least,
                    most);
}

/* Only optional inputs may be left out. */
static OrtStatus* check_missing_inputs(const OrtNode* node, const OpSchema* schema) {
  for (size_t i = 0; i < node->input_count; i++) {
    const OpSchemaFormal* formal = op_schema_input(schema, i);
    if (node->inputs[i] == NULL && formal != NULL && formal->option == OP_SCHEMA_SINGLE)
      return status_new(ORT_INVALID_GRAPH, "its input %zu '%s' is missing", i, formal->name);
  }
  return NULL;
}

/* Attributes that start with "__" are somebody's own. */
static OrtStatus* check_attributes(const OrtNode* node, const OpSchema* schema) {
  for (size_t i = 0; i < node->attribute_count; i++) {
    const OrtOpAttr* attribute = &node->attributes[i];
    if (strncmp(attribute->name, "__", 2) == 0) continue;
    const OpSchemaAttr* known = op_schema_attribute(schema, attribute->name);
    if (known == NULL)
      return status_new(ORT_INVALID_GRAPH, "the operator has no attribute '%s'", attribute->name);
    if (known->type != attribute->onnx_type)
      return status_new(ORT_INVALID_GRAPH, "attribute '%s' has ONNX type %d, the operator's has %d",
                        attribute->name, attribute->onnx_type, known->type);
  }
  for (size_t i = 0; i < schema->attribute_count; i++) {
    const OpSchemaAttr* known = &schema->attributes[i];
    if (known->required && node_find_attribute(node, known->name) == NULL)
      return status_new(ORT_INVALID_GRAPH, "it lacks the attribute '%s'", known->name);
  }
  return NULL;
}

OrtStatus* check_node_counts(const OrtNode* node, const OpSchema* schema) {
  TRY(check_count("inputs", node->input_count, schema->min_input, schema->max_input));
  TRY(check_count("outputs", node->output_count, schema->min_output, schema->max_output));
  return check_missing_inputs(node, schema);
}

OrtStatus* check_node(const OrtNode* node) {
  const OpSchema* schema = op_schema_find(node->domain, node->op_type, node->since_version);
  if (schema == NULL) return NULL;
  if (schema->deprecated)
    return status_new(ORT_INVALID_GRAPH, "the operator is deprecated since version %d",
                      schema->since_version);
  TRY(check_node_counts(node, schema));
  return check_attributes(node, schema);
}
