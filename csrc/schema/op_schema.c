/* Searches in the table of operator schemas, and unpacks what was found. */
#include <string.h>

#include "base/base.h"
#include "schema/packed.h"

static pthread_mutex_t unpack_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t unpack_once = PTHREAD_ONCE_INIT;
static ForkGuard unpack_fork;

static void guard_forks(void) {
  fork_guard_open(&unpack_fork, &unpack_mutex, false);
}

/* ---- Unpacking: under unpack_mutex. Lists are shared, so each item may be there already. ---- */

static const char* text_at(uint16_t offset) {
  return offset != 0 ? &op_schema_texts[offset] : NULL;
}

static const char* const* unpack_list(size_t start, size_t count) {
  for (size_t i = start; i < start + count; i++) unpacked_lists[i] = text_at(op_schema_lists[i]);
  return count != 0 ? &unpacked_lists[start] : NULL;
}

static const OpSchemaFormal* unpack_formals(size_t start, size_t count) {
  for (size_t i = start; i < start + count; i++) {
    const PackedFormal* formal = &op_schema_formals[i];
    if (unpacked_formals[i].name != NULL) continue;
    unpacked_formals[i] = (OpSchemaFormal){.name = text_at(formal->name),
                                           .type_str = text_at(formal->type_str),
                                           .option = formal->option,
                                           .min_arity = formal->min_arity,
                                           .is_homogeneous = formal->is_homogeneous};
  }
  return count != 0 ? &unpacked_formals[start] : NULL;
}

static const OpSchemaConstraint* unpack_constraints(size_t start, size_t count) {
  for (size_t i = start; i < start + count; i++) {
    const PackedConstraint* constraint = &op_schema_constraints[i];
    if (unpacked_constraints[i].name != NULL) continue;
    unpacked_constraints[i] =
        (OpSchemaConstraint){.name = text_at(constraint->name),
                             .types = unpack_list(constraint->types, constraint->type_count),
                             .type_count = constraint->type_count};
  }
  return count != 0 ? &unpacked_constraints[start] : NULL;
}

static const OpSchemaAttr* unpack_attributes(size_t start, size_t count) {
  for (size_t i = start; i < start + count; i++) {
    const PackedAttr* attribute = &op_schema_attributes[i];
    if (unpacked_attributes[i].name != NULL) continue;
    unpacked_attributes[i] = (OpSchemaAttr){
        .name = text_at(attribute->name),
        .type = attribute->type,
        .required = attribute->required,
        .has_default = attribute->has_default,
        .default_float = attribute->default_float,
        .default_int = attribute->default_int,
        .default_string = text_at(attribute->default_string),
        .default_ints = attribute->int_count != 0 ? &op_schema_ints[attribute->default_ints] : NULL,
        .default_strings = unpack_list(attribute->default_strings, attribute->string_count),
        .default_count = (uint16_t)(attribute->int_count + attribute->string_count)};
  }
  return count != 0 ? &unpacked_attributes[start] : NULL;
}

static OpSchema unpack_schema(const PackedSchema* row) {
  return (OpSchema){.domain = text_at(row->domain),
                    .name = text_at(row->name),
                    .since_version = row->since_version,
                    .deprecated = row->deprecated,
                    .min_input = row->min_input,
                    .max_input = row->max_input,
                    .min_output = row->min_output,
                    .max_output = row->max_output,
                    .inputs = unpack_formals(row->inputs, row->input_count),
                    .outputs = unpack_formals(row->outputs, row->output_count),
                    .constraints = unpack_constraints(row->constraints, row->constraint_count),
                    .attributes = unpack_attributes(row->attributes, row->attribute_count),
                    .input_count = row->input_count,
                    .output_count = row->output_count,
                    .constraint_count = row->constraint_count,
                    .attribute_count = row->attribute_count};
}

const OpSchema* op_schema_at(size_t index) {
  OpSchema* schema = &unpacked_schemas[index];
  pthread_once(&unpack_once, guard_forks);
  pthread_mutex_lock(&unpack_mutex);
  if (schema->name == NULL) *schema = unpack_schema(&op_schema_rows[index]);
  pthread_mutex_unlock(&unpack_mutex);
  return schema;
}

/* ---- Searching ---- */

static int compare_key(const PackedSchema* row, const char* domain, const char* op_type) {
  int order = strcmp(&op_schema_texts[row->domain], domain);
  return order != 0 ? order : strcmp(&op_schema_texts[row->name], op_type);
}

const OpSchema* op_schema_find(const char* domain, const char* op_type, int opset_version) {
  if (op_type == NULL) return NULL;
  if (domain == NULL || strcmp(domain, "ai.onnx") == 0) domain = "";
  /* Finds the first entry that is past (domain, op_type, opset_version): the answer is just before it. */
  size_t low = 0;
  size_t high = op_schema_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const PackedSchema* row = &op_schema_rows[middle];
    int order = compare_key(row, domain, op_type);
    if (order < 0 || (order == 0 && row->since_version <= opset_version)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0 || compare_key(&op_schema_rows[low - 1], domain, op_type) != 0) return NULL;
  return op_schema_at(low - 1);
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
