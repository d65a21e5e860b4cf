/* Searches in the constant table of operator schemas. */
#include "model/op_schema.h"

#include <string.h>

static int compare_key(const OpSchema* schema, const char* domain, const char* op_type) {
  int order = strcmp(schema->domain, domain);
  return order != 0 ? order : strcmp(schema->name, op_type);
}

const OpSchema* op_schema_find(const char* domain, const char* op_type, int opset_version) {
  if (op_type == NULL) return NULL;
  if (domain == NULL || strcmp(domain, "ai.onnx") == 0) domain = "";
  /* Finds the first entry that is past (domain, op_type, opset_version): the answer is just before it. */
  size_t low = 0;
  size_t high = op_schema_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = compare_key(&op_schemas[middle], domain, op_type);
    if (order < 0 || (order == 0 && op_schemas[middle].since_version <= opset_version)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0 || compare_key(&op_schemas[low - 1], domain, op_type) != 0) return NULL;
  return &op_schemas[low - 1];
}

static const OpSchemaFormal* formal_at(const OpSchemaFormal* formals, size_t count, size_t index) {
  if (count == 0) return NULL;
  if (index < count) return &formals[index];
  return formals[count - 1].option == OP_SCHEMA_VARIADIC ? &formals[count - 1] : NULL;
}

const OpSchemaFormal* op_schema_input(const OpSchema* schema, size_t index) {
  return formal_at(schema->inputs, schema->input_count, index);
}

const OpSchemaFormal* op_schema_output(const OpSchema* schema, size_t index) {
  return formal_at(schema->outputs, schema->output_count, index);
}

const OpSchemaConstraint* op_schema_constraint(const OpSchema* schema, const char* name) {
  for (size_t i = 0; i < schema->constraint_count; i++) {
    if (strcmp(schema->constraints[i].name, name) == 0) return &schema->constraints[i];
  }
  return NULL;
}

const OpSchemaAttr* op_schema_attribute(const OpSchema* schema, const char* name) {
  for (size_t i = 0; i < schema->attribute_count; i++) {
    if (strcmp(schema->attributes[i].name, name) == 0) return &schema->attributes[i];
  }
  return NULL;
}
