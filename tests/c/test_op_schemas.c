/* Operator schemas through OrtEpApi: arguments, ownership, memory. What they say is compared with `onnx` and
 * stock onnxruntime in tests/differential. */
#include "harness.h"

static const OrtEpApi* ep_api(void) {
  return api()->GetEpApi();
}

static void test_a_schema_is_described(void) {
  OrtOpSchema* schema = NULL;
  CHECK_OK(ep_api()->GetOpSchema("Gather", 12, "ai.onnx", &schema));
  if (!CHECK(schema != NULL)) return;
  int version = 0;
  CHECK_OK(ep_api()->OpSchema_GetSinceVersion(schema, &version));
  CHECK(version == 11);
  size_t inputs = 0, outputs = 0, constraints = 0;
  CHECK_OK(ep_api()->OpSchema_GetNumInputs(schema, &inputs));
  CHECK_OK(ep_api()->OpSchema_GetNumOutputs(schema, &outputs));
  CHECK_OK(ep_api()->OpSchema_GetTypeConstraintCount(schema, &constraints));
  CHECK(inputs == 2 && outputs == 1 && constraints == 2);
  const char* name = NULL;
  CHECK_OK(ep_api()->OpSchema_GetInputName(schema, 1, &name));
  CHECK_TEXT(name, "indices");
  const OrtOpSchemaTypeConstraint* constraint = NULL;
  CHECK_OK(ep_api()->OpSchema_GetInputTypeConstraint(schema, 1, &constraint));
  if (!CHECK(constraint != NULL)) return;
  const char* const* types = NULL;
  const size_t* indices = NULL;
  size_t count = 0;
  CHECK_OK(ep_api()->OpSchemaTypeConstraint_GetTypeParamName(constraint, &name));
  CHECK_TEXT(name, "Tind");
  CHECK_OK(ep_api()->OpSchemaTypeConstraint_GetAllowedTypes(constraint, &types, &count));
  if (CHECK(count == 2)) CHECK_TEXT(types[1], "tensor(int64)");
  CHECK_OK(ep_api()->OpSchemaTypeConstraint_GetInputIndices(constraint, &indices, &count));
  CHECK(count == 1 && indices[0] == 1);
  CHECK_OK(ep_api()->OpSchemaTypeConstraint_GetOutputIndices(constraint, &indices, &count));
  CHECK(count == 0);
  ep_api()->ReleaseOpSchema(schema);
}

static void test_texts_outlive_the_schema(void) {
  OrtOpSchema* schema = NULL;
  const char* name = NULL;
  CHECK_OK(ep_api()->GetOpSchema("Relu", 14, "", &schema));
  if (!CHECK(schema != NULL)) return;
  CHECK_OK(ep_api()->OpSchema_GetInputName(schema, 0, &name));
  ep_api()->ReleaseOpSchema(schema);
  CHECK_TEXT(name, "X");
}

static void test_an_unknown_operator_is_no_error(void) {
  OrtOpSchema* schema = (OrtOpSchema*)&schema;
  CHECK_OK(ep_api()->GetOpSchema("NoSuchOp", 14, "", &schema));
  CHECK(schema == NULL);
  ep_api()->ReleaseOpSchema(NULL);
}

/* Calls a slot with each of its arguments NULL in turn. */
#define CHECK_NULLS(slot, object, out)                                      \
  do {                                                                      \
    CHECK_FAILS(ep_api()->slot(NULL, out), ORT_INVALID_ARGUMENT, #slot);    \
    CHECK_FAILS(ep_api()->slot(object, NULL), ORT_INVALID_ARGUMENT, #slot); \
  } while (0)
#define CHECK_NULLS_AT(slot, object, out)                                                   \
  do {                                                                                      \
    CHECK_FAILS(ep_api()->slot(NULL, 0, out), ORT_INVALID_ARGUMENT, #slot);                 \
    CHECK_FAILS(ep_api()->slot(object, 0, NULL), ORT_INVALID_ARGUMENT, #slot);              \
    CHECK_FAILS(ep_api()->slot(object, 9, out), ORT_INVALID_ARGUMENT, "9 of operator Add"); \
  } while (0)
#define CHECK_NULLS_LIST(slot, object, list, count)                                \
  do {                                                                             \
    CHECK_FAILS(ep_api()->slot(NULL, list, count), ORT_INVALID_ARGUMENT, #slot);   \
    CHECK_FAILS(ep_api()->slot(object, NULL, count), ORT_INVALID_ARGUMENT, #slot); \
    CHECK_FAILS(ep_api()->slot(object, list, NULL), ORT_INVALID_ARGUMENT, #slot);  \
  } while (0)

static void test_bad_arguments_are_refused(void) {
  OrtOpSchema* schema = NULL;
  CHECK_FAILS(ep_api()->GetOpSchema(NULL, 1, "", &schema), ORT_INVALID_ARGUMENT, "'name'");
  CHECK_FAILS(ep_api()->GetOpSchema("Add", 14, NULL, &schema), ORT_INVALID_ARGUMENT, "'domain'");
  CHECK_FAILS(ep_api()->GetOpSchema("Add", 14, "", NULL), ORT_INVALID_ARGUMENT, "'out_schema'");
  CHECK_OK(ep_api()->GetOpSchema("Add", 14, "", &schema));
  int version;
  size_t count;
  const char* name;
  const char* const* types;
  const size_t* indices;
  const OrtOpSchemaTypeConstraint* constraint = NULL;
  CHECK_NULLS(OpSchema_GetSinceVersion, schema, &version);
  CHECK_NULLS(OpSchema_GetNumInputs, schema, &count);
  CHECK_NULLS(OpSchema_GetNumOutputs, schema, &count);
  CHECK_NULLS(OpSchema_GetTypeConstraintCount, schema, &count);
  CHECK_NULLS_AT(OpSchema_GetInputName, schema, &name);
  CHECK_NULLS_AT(OpSchema_GetOutputName, schema, &name);
  CHECK_NULLS_AT(OpSchema_GetInputTypeConstraint, schema, &constraint);
  CHECK_NULLS_AT(OpSchema_GetOutputTypeConstraint, schema, &constraint);
  CHECK_NULLS_AT(OpSchema_GetTypeConstraint, schema, &constraint);
  CHECK_OK(ep_api()->OpSchema_GetTypeConstraint(schema, 0, &constraint));
  CHECK_NULLS(OpSchemaTypeConstraint_GetTypeParamName, constraint, &name);
  CHECK_NULLS_LIST(OpSchemaTypeConstraint_GetAllowedTypes, constraint, &types, &count);
  CHECK_NULLS_LIST(OpSchemaTypeConstraint_GetInputIndices, constraint, &indices, &count);
  CHECK_NULLS_LIST(OpSchemaTypeConstraint_GetOutputIndices, constraint, &indices, &count);
  ep_api()->ReleaseOpSchema(schema);
}

static OrtStatus* make_schema(void) {
  OrtOpSchema* schema = NULL;
  OrtStatus* status = ep_api()->GetOpSchema("Loop", 16, "", &schema);
  ep_api()->ReleaseOpSchema(schema);
  return status;
}

static void test_memory_runs_out(void) {
  CHECK_ALLOCATION_FAILURES(make_schema);
}

int main(void) {
  RUN(test_a_schema_is_described);
  RUN(test_texts_outlive_the_schema);
  RUN(test_an_unknown_operator_is_no_error);
  RUN(test_bad_arguments_are_refused);
  RUN(test_memory_runs_out);
  return finish();
}
