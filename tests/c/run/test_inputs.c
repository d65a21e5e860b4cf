/* Run: what the caller may give and get, and every way to get it wrong. */
#include "run_test.h"

static const int64_t two_by_three[] = {2, 3};
static const float chain_result[] = {0, 2, 6, 12, 20, 30};

static OrtSession* chain(void) {
  reset();
  control->claims[0] = "fuse add mul relu";
  return new_session("chain", 1, NO_FALLBACK);
}

static OrtSession* inputs_model(void) {
  reset();
  control->claims[0] = "single add";
  return new_session("inputs", 1, NO_FALLBACK);
}

/* ---- Inputs ---- */

static void test_names_of_inputs_are_checked(void) {
  OrtSession* session = chain();
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  const char *names[] = {"x", "x"}, *nothing[] = {NULL}, *y_name = "y";
  const OrtValue *values[] = {x, x}, *missing[] = {NULL};
  CHECK_FAILS(run1(session, "z", x, "y", &y), ORT_INVALID_ARGUMENT,
              "the model has no input 'z'. It has: 'x'");
  CHECK_FAILS(api()->Run(session, NULL, NULL, NULL, 0, &y_name, 1, &y), ORT_INVALID_ARGUMENT,
              "required inputs are missing: 'x'");
  CHECK_FAILS(api()->Run(session, NULL, names, values, 2, &y_name, 1, &y), ORT_INVALID_ARGUMENT,
              "input 'x' is given twice");
  CHECK_FAILS(api()->Run(session, NULL, nothing, values, 1, &y_name, 1, &y), ORT_INVALID_ARGUMENT,
              "the name of input 0 is NULL");
  CHECK_FAILS(api()->Run(session, NULL, names, missing, 1, &y_name, 1, &y), ORT_INVALID_ARGUMENT,
              "the value of input 'x' is NULL");
  CHECK_FAILS(api()->Run(session, NULL, NULL, values, 1, &y_name, 1, &y), ORT_INVALID_ARGUMENT,
              "'input_names'");
  CHECK_FAILS(api()->Run(session, NULL, names, NULL, 1, &y_name, 1, &y), ORT_INVALID_ARGUMENT, "'inputs'");
  CHECK_FAILS(api()->Run(NULL, NULL, names, values, 1, &y_name, 1, &y), ORT_INVALID_ARGUMENT, "'session'");
  CHECK(y == NULL);
  check_run(session, chain_result); /* none of this has hurt the session */
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

static void test_types_and_shapes_of_inputs_are_checked(void) {
  OrtSession* session = chain();
  OrtAllocator* allocator = NULL;
  OrtValue *wrong = NULL, *y = NULL;
  const int64_t four[] = {2, 4}, flat[] = {6};
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->CreateTensorAsOrtValue(allocator, two_by_three, 2, INT64, &wrong));
  CHECK_FAILS(run1(session, "x", wrong, "y", &y), ORT_INVALID_ARGUMENT,
              "input 'x' is int64[2,3], the model wants float[2,3]: the element type differs");
  api()->ReleaseValue(wrong);
  wrong = new_floats(2, four);
  CHECK_FAILS(run1(session, "x", wrong, "y", &y), ORT_INVALID_ARGUMENT,
              "input 'x' is float[2,4], the model wants float[2,3]: dimension 1 differs");
  api()->ReleaseValue(wrong);
  wrong = new_floats(1, flat);
  CHECK_FAILS(run1(session, "x", wrong, "y", &y), ORT_INVALID_ARGUMENT, "the rank differs");
  api()->ReleaseValue(wrong);
  wrong = new_floats(0, NULL);
  CHECK_FAILS(run1(session, "x", wrong, "y", &y), ORT_INVALID_ARGUMENT, "input 'x' is float[]");
  api()->ReleaseValue(wrong);
  api()->ReleaseSession(session);
}

static void test_symbolic_dimensions_take_any_size_also_zero(void) {
  OrtSession* session = inputs_model();
  for (int64_t n = 0; n < 4; n++) {
    const int64_t dims[] = {n, 3};
    OrtValue *x = new_floats(2, dims), *y = NULL;
    size_t size = 99;
    CHECK_OK(run1(session, "x", x, "y", &y));
    CHECK_OK(api()->GetTensorSizeInBytes(y, &size));
    CHECK(size == (size_t)n * 3 * sizeof(float));
    for (size_t i = 0; i < (size_t)n * 3; i++) CHECK(floats(y)[i] == (float)i + 10);
    api()->ReleaseValue(x);
    api()->ReleaseValue(y);
  }
  api()->ReleaseSession(session);
}

static void test_inputs_may_come_in_any_order(void) {
  reset();
  control->claims[0] = "single add";
  OrtSession* session = new_session("two", 1, NO_FALLBACK);
  OrtValue *x = new_floats(2, two_by_three), *z = new_floats(2, two_by_three), *y = NULL;
  const char *names[] = {"z", "x"}, *output = "y";
  const OrtValue* values[] = {z, x};
  CHECK_FAILS(run1(session, "z", z, "y", &y), ORT_INVALID_ARGUMENT, "required inputs are missing: 'x'");
  CHECK_OK(api()->Run(session, NULL, names, values, 2, &output, 1, &y));
  CHECK(floats(y)[5] == 10);
  api()->ReleaseValue(x);
  api()->ReleaseValue(z);
  api()->ReleaseValue(y);
  api()->ReleaseSession(session);
}

static void test_an_initializer_can_be_overridden_for_one_run(void) {
  OrtSession* session = inputs_model();
  const int64_t one[] = {1};
  OrtValue *x = new_floats(2, two_by_three), *k = new_floats(1, one), *y = NULL;
  const char *names[] = {"x", "k"}, *constant[] = {"x", "w"}, *output = "y";
  const OrtValue* values[] = {x, k};
  CHECK_OK(api()->Run(session, NULL, names, values, 2, &output, 1, &y));
  CHECK(floats(y)[3] == 3);
  api()->ReleaseValue(y);
  y = NULL;
  CHECK_OK(run1(session, "x", x, "y", &y)); /* the default is back */
  CHECK(floats(y)[3] == 13);
  api()->ReleaseValue(y);
  y = NULL;
  CHECK_FAILS(api()->Run(session, NULL, constant, values, 2, &output, 1, &y), ORT_INVALID_ARGUMENT,
              "the model has no input 'w'. It has: 'x', 'k' (optional)");
  api()->ReleaseValue(x);
  api()->ReleaseValue(k);
  api()->ReleaseSession(session);
}

/* ---- Outputs ---- */

static void test_names_of_outputs_are_checked(void) {
  OrtSession* session = chain();
  OrtValue *x = new_floats(2, two_by_three), *outputs[2] = {NULL, NULL};
  const char *name = "x", *y[] = {"y"}, *nothing[] = {NULL};
  const OrtValue* values[] = {x};
  CHECK_FAILS(run1(session, "x", x, "q", outputs), ORT_INVALID_ARGUMENT, "the model has no output 'q'");
  CHECK_FAILS(api()->Run(session, NULL, &name, values, 1, nothing, 1, outputs), ORT_INVALID_ARGUMENT,
              "the name of output 0 is NULL");
  CHECK_FAILS(api()->Run(session, NULL, &name, values, 1, y, 0, outputs), ORT_INVALID_ARGUMENT,
              "no output is asked for");
  CHECK_FAILS(api()->Run(session, NULL, &name, values, 1, y, 1, NULL), ORT_INVALID_ARGUMENT, "'outputs'");
  CHECK(outputs[0] == NULL && outputs[1] == NULL);
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

static void test_a_preallocated_output_is_written(void) {
  OrtSession* session = chain();
  OrtValue *x = new_floats(2, two_by_three), *y = new_floats(2, two_by_three), *given = y;
  CHECK_OK(run1(session, "x", x, "y", &given));
  CHECK(given == y && floats(y)[5] == 30);
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
  api()->ReleaseSession(session);
}

static void test_a_preallocated_output_is_checked(void) {
  const int64_t four[] = {2, 4}, three_by_three[] = {3, 3};
  OrtSession* session = chain();
  OrtValue *x = new_floats(2, two_by_three), *y = new_floats(2, four), *given = y;
  CHECK_FAILS(run1(session, "x", x, "y", &given), ORT_INVALID_ARGUMENT,
              "preallocated output 'y' is float[2,4], the model wants float[2,3]: dimension 1 differs");
  CHECK(given == y && floats(y)[7] == 7);
  api()->ReleaseValue(y);
  api()->ReleaseSession(session);
  session = inputs_model(); /* here only the run knows the shape */
  given = y = new_floats(2, three_by_three);
  CHECK_FAILS(run1(session, "x", x, "y", &given), ORT_INVALID_ARGUMENT,
              "node 'add' makes its output 'y' with shape [2,3], but it is float[3,3]");
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
  api()->ReleaseSession(session);
}

static OrtStatus* ask_for_preallocated(OrtKernelContext* context) {
  OrtValue* value = NULL;
  OrtStatus* status = api()->KernelContext_GetPreallocatedOutput(context, 0, &value);
  if (status == NULL && value == NULL) status = api()->CreateStatus(ORT_FAIL, "not preallocated");
  return status;
}

static void test_a_kernel_sees_what_is_preallocated(void) {
  OrtSession* session = chain();
  OrtValue *x = new_floats(2, two_by_three), *y = new_floats(2, two_by_three), *none = NULL;
  control->on_compute = ask_for_preallocated;
  CHECK_OK(run1(session, "x", x, "y", &y));
  CHECK_FAILS(run1(session, "x", x, "y", &none), ORT_FAIL, "not preallocated");
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
  api()->ReleaseSession(session);
}

static void test_outputs_that_are_inputs_or_constants_are_copied(void) {
  OrtSession* session = inputs_model();
  OrtValue *x = new_floats(2, two_by_three), *outputs[3] = {NULL, NULL, NULL};
  const char *input = "x", *names[] = {"w", "x", "y"};
  const OrtValue* values[] = {x};
  CHECK_OK(api()->Run(session, NULL, &input, values, 1, names, 3, outputs));
  CHECK(floats(outputs[0])[5] == 1 && floats(outputs[1])[5] == 5 && floats(outputs[2])[5] == 15);
  CHECK(outputs[1] != x && floats(outputs[1]) != floats(x));
  CHECK_OK(api()->Run(session, NULL, &input, values, 1, names, 1, &outputs[1])); /* into given memory */
  CHECK(floats(outputs[1])[5] == 1);
  for (size_t i = 0; i < 3; i++) api()->ReleaseValue(outputs[i]);
  outputs[0] = outputs[1] = NULL;
  const int64_t other[] = {4, 3};
  outputs[1] = new_floats(2, other);
  CHECK_FAILS(api()->Run(session, NULL, &input, values, 1, names, 2, outputs), ORT_INVALID_ARGUMENT,
              "preallocated output 'x' has another shape");
  CHECK(outputs[0] == NULL); /* nothing changed hands */
  api()->ReleaseValue(outputs[1]);
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

static void test_a_subset_of_outputs_can_be_asked_for(void) {
  OrtSession* session = inputs_model();
  OrtValue *x = new_floats(2, two_by_three), *w = NULL;
  for (int i = 0; i < 3; i++) {
    CHECK_OK(run1(session, "x", x, "w", &w));
    CHECK(floats(w)[0] == 1);
    api()->ReleaseValue(w);
    w = NULL;
  }
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

static void test_values_that_nobody_reads_are_no_matter(void) {
  static const float expected[] = {0, 1, 2, 3, 4, 5};
  reset();
  control->claims[0] = "single spare;single relu";
  OrtSession* session = new_session("unused", 1, NO_FALLBACK);
  check_run(session, expected);
  check_run(session, expected);
  api()->ReleaseSession(session);
}

static void test_memory_is_not_taken_over_by_a_larger_output(void) {
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  size_t size = 0;
  reset();
  control->claims[0] = "single one;single two;single three"; /* all may work in place */
  OrtSession* session = new_session("rows", 1, NO_FALLBACK);
  control->fault = FAULT_GROWS;
  for (int i = 0; i < 2; i++) {
    CHECK_OK(run1(session, "x", x, "y", &y));
    CHECK_OK(api()->GetTensorSizeInBytes(y, &size));
    CHECK(size == 15 * sizeof(float) && floats(y)[14] == 7);
    api()->ReleaseValue(y);
    y = NULL;
  }
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

static void test_a_model_without_nodes_copies(void) {
  reset();
  OrtSession* session = new_session("empty", 1, NO_FALLBACK);
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  CHECK(ortabi_session_step_count(session) == 0);
  CHECK_OK(run1(session, "x", x, "x", &y));
  CHECK(y != x && floats(y)[5] == 5);
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
  api()->ReleaseSession(session);
}

/* ---- Options ---- */

static OrtRunOptions* run_options;

static OrtStatus* terminate(OrtKernelContext* context) {
  (void)context;
  return api()->RunOptionsSetTerminate(run_options);
}

static void test_terminate_stops_before_the_next_node(void) {
  reset();
  control->claims[0] = "single add;single mul;single relu";
  OrtSession* session = new_session("chain", 1, NO_FALLBACK);
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  const char *input = "x", *output = "y";
  const OrtValue* values[] = {x};
  CHECK_OK(api()->CreateRunOptions(&run_options));
  control->on_compute = terminate;
  CHECK_FAILS(api()->Run(session, run_options, &input, values, 1, &output, 1, &y), ORT_FAIL,
              "before node 'mul'");
  control->on_compute = NULL;
  CHECK_FAILS(api()->Run(session, run_options, &input, values, 1, &output, 1, &y), ORT_FAIL,
              "before node 'add'");
  CHECK_OK(api()->RunOptionsUnsetTerminate(run_options));
  CHECK_OK(api()->Run(session, run_options, &input, values, 1, &output, 1, &y));
  CHECK(floats(y)[5] == 30);
  api()->ReleaseValue(y);
  api()->ReleaseValue(x);
  api()->ReleaseRunOptions(run_options);
  api()->ReleaseSession(session);
}

static void test_eps_are_told_about_runs(void) {
  reset();
  control->claims[0] = "single add;single mul;single relu";
  control->has_run_hooks = true;
  OrtSession* session = new_session("chain", 2, NO_FALLBACK);
  check_run(session, chain_result);
  check_run(session, chain_result);
  CHECK(control->run_starts == 4 && control->run_ends == 4); /* two EPs */
  api()->ReleaseSession(session);
}

static void test_timing_counts_only_while_it_is_on(void) {
  OrtSession* session = chain();
  OrtAbiPlanStep step;
  check_run(session, chain_result);
  CHECK_OK(ortabi_session_step(session, 0, &step));
  CHECK(step.runs == 0 && step.nanoseconds == 0);
  ortabi_session_set_timing(session, true);
  check_run(session, chain_result);
  check_run(session, chain_result);
  CHECK_OK(ortabi_session_step(session, 0, &step));
  CHECK(step.runs == 2 && step.nanoseconds > 0);
  CHECK_FAILS(ortabi_session_step(session, 1, &step), ORT_INVALID_ARGUMENT, "index 1 is not below 1");
  api()->ReleaseSession(session);
}

static void test_dynamic_options_reach_the_ep(void) {
  OrtSession* session = chain();
  const char *keys[] = {"ep.dynamic.workload_type"}, *values[] = {"Efficient"}, *empty[] = {""};
  CHECK_OK(api()->SetEpDynamicOptions(session, keys, values, 1));
  CHECK(strcmp(control->dynamic_option, "ep.dynamic.workload_type=Efficient") == 0);
  CHECK_FAILS(api()->SetEpDynamicOptions(session, keys, values, 0), ORT_INVALID_ARGUMENT,
              "there are no options");
  CHECK_FAILS(api()->SetEpDynamicOptions(session, empty, values, 1), ORT_INVALID_ARGUMENT,
              "option 0 has no key");
  control->fail_at = control->callbacks;
  CHECK_FAILS(api()->SetEpDynamicOptions(session, keys, values, 1), ORT_EP_FAIL,
              "EP 'RunEp': OrtEp::SetDynamicOptions failed: injected");
  api()->ReleaseSession(session);
}

/* ---- What a session tells ---- */

static void check_name(OrtStatus* status, char* name, const char* expected) {
  OrtAllocator* allocator = NULL;
  CHECK_OK(status);
  CHECK_TEXT(name, expected);
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->AllocatorFree(allocator, name));
}

static void test_a_session_tells_its_inputs_and_outputs(void) {
  OrtSession* session = inputs_model();
  OrtAllocator* allocator = NULL;
  OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  const OrtEpDevice* devices[3];
  const OrtMemoryInfo* memory[3];
  size_t count = 0;
  int64_t dims[2] = {0};
  char* name = NULL;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->SessionGetInputCount(session, &count));
  CHECK(count == 1);
  CHECK_OK(api()->SessionGetOutputCount(session, &count));
  CHECK(count == 3);
  CHECK_OK(api()->SessionGetOverridableInitializerCount(session, &count));
  CHECK(count == 1);
  OrtStatus* status = api()->SessionGetInputName(session, 0, allocator, &name);
  check_name(status, name, "x");
  status = api()->SessionGetOutputName(session, 2, allocator, &name);
  check_name(status, name, "w");
  status = api()->SessionGetOverridableInitializerName(session, 0, allocator, &name);
  check_name(status, name, "k");
  CHECK_FAILS(api()->SessionGetInputName(session, 1, allocator, &name), ORT_INVALID_ARGUMENT,
              "index 1 is not below");
  CHECK_OK(api()->SessionGetInputTypeInfo(session, 0, &type));
  CHECK_OK(api()->CastTypeInfoToTensorInfo(type, &tensor));
  CHECK_OK(api()->GetDimensions(tensor, dims, 2));
  CHECK(dims[0] == -1 && dims[1] == 3);
  api()->ReleaseTypeInfo(type);
  CHECK_OK(api()->SessionGetOutputTypeInfo(session, 0, &type));
  api()->ReleaseTypeInfo(type);
  CHECK_OK(api()->SessionGetOverridableInitializerTypeInfo(session, 0, &type));
  api()->ReleaseTypeInfo(type);
  CHECK_OK(api()->SessionGetEpDeviceForInputs(session, devices, 1));
  CHECK(devices[0] == ep_devices[0]);
  CHECK_OK(api()->SessionGetEpDeviceForOutputs(session, devices, 3));
  CHECK(devices[0] == ep_devices[0] && devices[1] == NULL && devices[2] == NULL);
  CHECK_OK(api()->SessionGetMemoryInfoForInputs(session, memory, 1));
  CHECK_OK(api()->SessionGetMemoryInfoForOutputs(session, memory, 3));
  CHECK_FAILS(api()->SessionGetMemoryInfoForOutputs(session, memory, 2), ORT_INVALID_ARGUMENT, "room for 2");
  api()->ReleaseSession(session);
}

static void test_free_dimensions_can_be_fixed(void) {
  OrtSession* session = NULL;
  OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  char path[512];
  int64_t dims[2] = {0};
  reset();
  control->claims[0] = "single add";
  OrtSessionOptions* options = new_options(1, NO_FALLBACK);
  CHECK_OK(api()->AddFreeDimensionOverrideByName(options, "n", 5));
  snprintf(path, sizeof path, "%s/inputs.onnx", models);
  CHECK_OK(api()->CreateSession(env, path, options, &session));
  CHECK_OK(api()->SessionGetInputTypeInfo(session, 0, &type));
  CHECK_OK(api()->CastTypeInfoToTensorInfo(type, &tensor));
  CHECK_OK(api()->GetDimensions(tensor, dims, 2));
  CHECK(dims[0] == 5);
  api()->ReleaseTypeInfo(type);
  api()->ReleaseSessionOptions(options);
  api()->ReleaseSession(session);
}

static void test_an_initializer_can_be_replaced(void) {
  OrtSession* session = NULL;
  char path[512];
  reset();
  control->claims[0] = "single add;single mul;single relu";
  OrtValue *w = new_floats(2, two_by_three), *x = new_floats(2, two_by_three), *y = NULL;
  const int64_t other[] = {3, 2};
  OrtValue* wrong = new_floats(2, other);
  snprintf(path, sizeof path, "%s/chain.onnx", models);
  OrtSessionOptions* options = new_options(1, NO_FALLBACK);
  CHECK_OK(api()->AddInitializer(options, "w", w));
  CHECK_OK(api()->CreateSession(env, path, options, &session));
  api()->ReleaseValue(w); /* the session has copied it */
  CHECK_OK(run1(session, "x", x, "y", &y));
  CHECK(floats(y)[5] == 50);
  api()->ReleaseValue(y);
  api()->ReleaseSession(session);
  api()->ReleaseSessionOptions(options);
  options = new_options(1, NO_FALLBACK);
  CHECK_OK(api()->AddInitializer(options, "w", wrong));
  CHECK_FAILS(api()->CreateSession(env, path, options, &session), ORT_INVALID_ARGUMENT,
              "initializer 'w' is float[2,3], its replacement is float[3,2]");
  api()->ReleaseSessionOptions(options);
  options = new_options(1, NO_FALLBACK);
  CHECK_OK(api()->AddInitializer(options, "q", wrong));
  CHECK_FAILS(api()->CreateSession(env, path, options, &session), ORT_INVALID_ARGUMENT, "no initializer 'q'");
  api()->ReleaseSessionOptions(options);
  api()->ReleaseValue(x);
  api()->ReleaseValue(wrong);
}

static void test_models_come_from_files_and_bytes(void) {
  OrtSession* session = NULL;
  char path[512];
  static char bytes[4096];
  reset();
  control->claims[0] = "drop add mul relu";
  snprintf(path, sizeof path, "%s/chain.onnx", models);
  FILE* file = fopen(path, "rb");
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  OrtSessionOptions* options = new_options(1, NO_FALLBACK);
  CHECK_OK(api()->CreateSessionFromArray(env, bytes, size, options, &session));
  memset(bytes, 0xff, size); /* copied: the session does not care */
  check_run(session, chain_result);
  api()->ReleaseSession(session);
  CHECK_FAILS(api()->CreateSessionFromArray(env, bytes, size, options, &session), ORT_INVALID_PROTOBUF, "");
  CHECK_FAILS(api()->CreateSession(env, "no/such.onnx", options, &session), ORT_NO_SUCHFILE, "no/such.onnx");
  CHECK_FAILS(api()->CreateSession(env, NULL, options, &session), ORT_INVALID_ARGUMENT, "'model_path'");
  CHECK_FAILS(api()->CreateSession(NULL, path, options, &session), ORT_INVALID_ARGUMENT, "CreateSession");
  CHECK_OK(api()->SessionOptionsSetLoadCancellationFlag(options, true));
  CHECK_FAILS(api()->CreateSession(env, path, options, &session), ORT_MODEL_LOAD_CANCELED, "cancelled");
  api()->ReleaseSessionOptions(options);
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return finish();
  RUN(test_names_of_inputs_are_checked);
  RUN(test_types_and_shapes_of_inputs_are_checked);
  RUN(test_symbolic_dimensions_take_any_size_also_zero);
  RUN(test_inputs_may_come_in_any_order);
  RUN(test_an_initializer_can_be_overridden_for_one_run);
  RUN(test_names_of_outputs_are_checked);
  RUN(test_a_preallocated_output_is_written);
  RUN(test_a_preallocated_output_is_checked);
  RUN(test_a_kernel_sees_what_is_preallocated);
  RUN(test_outputs_that_are_inputs_or_constants_are_copied);
  RUN(test_a_subset_of_outputs_can_be_asked_for);
  RUN(test_values_that_nobody_reads_are_no_matter);
  RUN(test_memory_is_not_taken_over_by_a_larger_output);
  RUN(test_a_model_without_nodes_copies);
  RUN(test_terminate_stops_before_the_next_node);
  RUN(test_eps_are_told_about_runs);
  RUN(test_timing_counts_only_while_it_is_on);
  RUN(test_dynamic_options_reach_the_ep);
  RUN(test_a_session_tells_its_inputs_and_outputs);
  RUN(test_free_dimensions_can_be_fixed);
  RUN(test_an_initializer_can_be_replaced);
  RUN(test_models_come_from_files_and_bytes);
  return close_env();
}
