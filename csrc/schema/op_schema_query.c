/* What the OpSchema_* slots of OrtEpApi say: the table of operator schemas, as EPs see it. */
#include "api_slots.h"
#include "base/base.h"
#include "ort_abi_host.h"
#include "schema/schema.h"

struct OrtOpSchemaTypeConstraint {
  const OpSchemaConstraint* constraint;
  const size_t *inputs, *outputs; /* indices of the formals of this type */
  size_t input_count, output_count;
};

/* One block of memory, with all indices behind the constraints. */
struct OrtOpSchema {
  const OpSchema* schema;
  OrtOpSchemaTypeConstraint constraints[]; /* as many as the schema has, in its order */
};

/* Writes the indices of the formals whose type is the parameter; returns how many. */
static size_t list_formals(const OpSchemaFormal* formals, size_t formal_count, const char* type_param,
                           size_t* indices) {
  size_t count = 0;
  for (size_t i = 0; i < formal_count; i++) {
    if (str_equal(formals[i].type_str, type_param)) indices[count++] = i;
  }
  return count;
}

static OrtOpSchema* schema_new(const OpSchema* schema) {
  size_t index_count = (size_t)schema->input_count + schema->output_count;
  OrtOpSchema* made = mem_alloc(sizeof *made + schema->constraint_count * sizeof(OrtOpSchemaTypeConstraint) +
                                index_count * sizeof(size_t));
  if (made == NULL) return NULL;
  made->schema = schema;
  size_t* indices = (size_t*)(made->constraints + schema->constraint_count);
  for (size_t i = 0; i < schema->constraint_count; i++) {
    OrtOpSchemaTypeConstraint* out = &made->constraints[i];
    out->constraint = &schema->constraints[i];
    out->inputs = indices;
    out->input_count = list_formals(schema->inputs, schema->input_count, out->constraint->name, indices);
    indices += out->input_count;
    out->outputs = indices;
    out->output_count = list_formals(schema->outputs, schema->output_count, out->constraint->name, indices);
    indices += out->output_count;
  }
  return made;
}

/* gives (caller releases with ReleaseOpSchema). *out_schema is NULL, and that is no error, where neither
 * ONNX nor stock ORT has such an operator up to that version. Those of custom op domains are not found. */
OrtStatus* ORT_API_CALL api_GetOpSchema(const char* name, int max_inclusive_version, const char* domain,
                                        OrtOpSchema** out_schema) {
  REQUIRE_ARG(name);
  REQUIRE_ARG(domain);
  REQUIRE_ARG(out_schema);
  const OpSchema* schema = op_schema_find(domain, name, max_inclusive_version);
  OrtOpSchema* made = schema != NULL ? schema_new(schema) : NULL;
  if (schema != NULL && made == NULL) return status_no_memory();
  *out_schema = made;
  return NULL;
}

void ORT_API_CALL api_ReleaseOpSchema(OrtOpSchema* input) {
  mem_free(input);
}

OrtStatus* ORT_API_CALL api_OpSchema_GetSinceVersion(const OrtOpSchema* schema, int* out) {
  REQUIRE_ARG(schema);
  REQUIRE_ARG(out);
  *out = schema->schema->since_version;
  return NULL;
}

/* ---- Inputs and outputs ---- */

static OrtStatus* check_index(const char* slot, const OrtOpSchema* schema, const char* what, size_t index,
                              size_t count) {
  if (index < count) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "%s: %s %zu of operator %s, version %d, which has %zu", slot, what,
                    index, schema->schema->name, schema->schema->since_version, count);
}

/* borrows; NULL for a formal whose type is no parameter, such as "tensor(int64)". */
static const OrtOpSchemaTypeConstraint* constraint_of(const OrtOpSchema* schema,
                                                      const OpSchemaFormal* formal) {
  const OpSchemaConstraint* found = op_schema_constraint(schema->schema, formal->type_str);
  return found != NULL ? &schema->constraints[found - schema->schema->constraints] : NULL;
}

OrtStatus* ORT_API_CALL api_OpSchema_GetNumInputs(const OrtOpSchema* schema, size_t* out) {
  REQUIRE_ARG(schema);
  REQUIRE_ARG(out);
  *out = schema->schema->input_count;
  return NULL;
}

/* borrows: the name lives as long as the library, as all texts here do. */
OrtStatus* ORT_API_CALL api_OpSchema_GetInputName(const OrtOpSchema* schema, size_t index, const char** out) {
  REQUIRE_ARG(schema);
  REQUIRE_ARG(out);
  TRY(check_index("OpSchema_GetInputName", schema, "input", index, schema->schema->input_count));
  *out = schema->schema->inputs[index].name;
  return NULL;
}

/* borrows: valid until the schema is released; NULL for an input whose type is fixed. */
OrtStatus* ORT_API_CALL api_OpSchema_GetInputTypeConstraint(const OrtOpSchema* schema, size_t index,
                                                            const OrtOpSchemaTypeConstraint** out) {
  REQUIRE_ARG(schema);
  REQUIRE_ARG(out);
  TRY(check_index("OpSchema_GetInputTypeConstraint", schema, "input", index, schema->schema->input_count));
  *out = constraint_of(schema, &schema->schema->inputs[index]);
  return NULL;
}

OrtStatus* ORT_API_CALL api_OpSchema_GetNumOutputs(const OrtOpSchema* schema, size_t* out) {
  REQUIRE_ARG(schema);
  REQUIRE_ARG(out);
  *out = schema->schema->output_count;
  return NULL;
}

/* borrows. */
OrtStatus* ORT_API_CALL api_OpSchema_GetOutputName(const OrtOpSchema* schema, size_t index,
                                                   const char** out) {
  REQUIRE_ARG(schema);
  REQUIRE_ARG(out);
  TRY(check_index("OpSchema_GetOutputName", schema, "output", index, schema->schema->output_count));
  *out = schema->schema->outputs[index].name;
  return NULL;
}

/* borrows: valid until the schema is released; NULL for an output whose type is fixed. */
OrtStatus* ORT_API_CALL api_OpSchema_GetOutputTypeConstraint(const OrtOpSchema* schema, size_t index,
                                                             const OrtOpSchemaTypeConstraint** out) {
  REQUIRE_ARG(schema);
  REQUIRE_ARG(out);
  TRY(check_index("OpSchema_GetOutputTypeConstraint", schema, "output", index, schema->schema->output_count));
  *out = constraint_of(schema, &schema->schema->outputs[index]);
  return NULL;
}

/* ---- Type parameters ---- */

OrtStatus* ORT_API_CALL api_OpSchema_GetTypeConstraintCount(const OrtOpSchema* schema, size_t* out) {
  REQUIRE_ARG(schema);
  REQUIRE_ARG(out);
  *out = schema->schema->constraint_count;
  return NULL;
}

/* borrows: valid until the schema is released. */
OrtStatus* ORT_API_CALL api_OpSchema_GetTypeConstraint(const OrtOpSchema* schema, size_t index,
                                                       const OrtOpSchemaTypeConstraint** out) {
  REQUIRE_ARG(schema);
  REQUIRE_ARG(out);
  TRY(check_index("OpSchema_GetTypeConstraint", schema, "type constraint", index,
                  schema->schema->constraint_count));
  *out = &schema->constraints[index];
  return NULL;
}

/* borrows. */
OrtStatus* ORT_API_CALL api_OpSchemaTypeConstraint_GetTypeParamName(
    const OrtOpSchemaTypeConstraint* type_constraint, const char** out) {
  REQUIRE_ARG(type_constraint);
  REQUIRE_ARG(out);
  *out = type_constraint->constraint->name;
  return NULL;
}

/* borrows. */
OrtStatus* ORT_API_CALL api_OpSchemaTypeConstraint_GetAllowedTypes(
    const OrtOpSchemaTypeConstraint* type_constraint, const char* const** out_types, size_t* num_types) {
  REQUIRE_ARG(type_constraint);
  REQUIRE_ARG(out_types);
  REQUIRE_ARG(num_types);
  *out_types = type_constraint->constraint->types;
  *num_types = type_constraint->constraint->type_count;
  return NULL;
}

/* borrows: valid until the schema is released. *count is 0 when no input has the type. */
OrtStatus* ORT_API_CALL api_OpSchemaTypeConstraint_GetInputIndices(
    const OrtOpSchemaTypeConstraint* type_constraint, const size_t** out_indices, size_t* count) {
  REQUIRE_ARG(type_constraint);
  REQUIRE_ARG(out_indices);
  REQUIRE_ARG(count);
  *out_indices = type_constraint->inputs;
  *count = type_constraint->input_count;
  return NULL;
}

/* borrows: valid until the schema is released. *count is 0 when no output has the type. */
OrtStatus* ORT_API_CALL api_OpSchemaTypeConstraint_GetOutputIndices(
    const OrtOpSchemaTypeConstraint* type_constraint, const size_t** out_indices, size_t* count) {
  REQUIRE_ARG(type_constraint);
  REQUIRE_ARG(out_indices);
  REQUIRE_ARG(count);
  *out_indices = type_constraint->outputs;
  *count = type_constraint->output_count;
  return NULL;
}

/* ---- Ours ---- */

ORT_ABI_EXPORT const char* ortabi_op_schema_name(size_t index, const char** domain) {
  if (domain == NULL || index >= op_schema_count) return NULL;
  const OpSchema* schema = op_schema_at(index);
  *domain = schema->domain;
  return schema->name;
}
