/* What C clients do beside the common: the CPU provider by its exported function, runs that lack inputs,
 * initializers of the client's own. All of it with every allocation failing once. */
#include "harness.h"
#include "onnx_writer.h"

#define FLOAT ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT

static OrtEnv* env;
static Message two_ways; /* y = -a; z = (-a + b) * w, where the values of w are in a file that is not there */

/* A TensorProto of two floats in a file. */
static Message stored(const char* name) {
  Message location = {.size = 0}, tensor = {.size = 0};
  put_text(&location, 1, "location");
  put_text(&location, 2, "nowhere.bin");
  put_int(&tensor, 1, 2);
  put_int(&tensor, 2, FLOAT);
  put_text(&tensor, 8, name);
  put_message(&tensor, 13, &location);
  put_int(&tensor, 14, 1);
  return tensor;
}

static void write_model(void) {
  const Message nodes[] = {node_proto("Neg", "a", NULL, "y"), node_proto("Add", "y", "b", "t"),
                           node_proto("Mul", "t", "w", "z")};
  const Message inputs[] = {value_info("a", FLOAT, 2), value_info("b", FLOAT, 2), value_info("c", FLOAT, 2)};
  const Message outputs[] = {value_info("y", FLOAT, 2), value_info("z", FLOAT, 2)}, weight = stored("w");
  Message graph = {.size = 0};
  for (size_t i = 0; i < 3; i++) put_message(&graph, 1, &nodes[i]);
  put_text(&graph, 2, "two_ways");
  put_message(&graph, 5, &weight);
  for (size_t i = 0; i < 3; i++) put_message(&graph, 11, &inputs[i]);
  for (size_t i = 0; i < 2; i++) put_message(&graph, 12, &outputs[i]);
  two_ways = model_proto(&graph);
}

/* gives (released with ReleaseValue): two equal floats. */
static OrtStatus* new_pair(float element, OrtValue** out) {
  const int64_t dim = 2;
  OrtAllocator* allocator = NULL;
  void* data = NULL;
  OrtValue* made = NULL;
  OrtStatus* status = api()->GetAllocatorWithDefaultOptions(&allocator);
  if (status == NULL) status = api()->CreateTensorAsOrtValue(allocator, &dim, 1, FLOAT, &made);
  if (status == NULL) status = api()->GetTensorMutableData(made, &data);
  if (status != NULL) return status;
  ((float*)data)[0] = ((float*)data)[1] = element;
  *out = made;
  return NULL;
}

/* A session with 5 for all of w, on the CPU provider by the exported function. */
static OrtStatus* open_session(OrtSession** session) {
  const char* const name = "w";
  OrtSessionOptions* options = NULL;
  OrtSessionOptions* copy = NULL;
  OrtValue* weight = NULL;
  OrtStatus* status = api()->CreateSessionOptions(&options);
  if (status == NULL) status = OrtSessionOptionsAppendExecutionProvider_CPU(options, 1);
  if (status == NULL) status = new_pair(5, &weight);
  if (status == NULL)
    status = api()->AddExternalInitializers(options, &name, (const OrtValue* const*)&weight, 1);
  if (status == NULL) status = api()->CloneSessionOptions(options, &copy);
  if (status == NULL)
    status = api()->CreateSessionFromArray(env, two_ways.bytes, two_ways.size, copy, session);
  api()->ReleaseSessionOptions(options);
  api()->ReleaseSessionOptions(copy);
  api()->ReleaseValue(weight); /* its elements were copied */
  return status;
}

/* Runs with the inputs that `given` names by their letters; *result: the output's first element. */
static OrtStatus* run(OrtSession* session, const char* given, const char* output, float* result) {
  static const char* const letters[] = {"a", "b", "c"};
  const char* names[3];
  OrtValue *values[3] = {NULL}, *made = NULL;
  const void* data = NULL;
  size_t count = strlen(given);
  OrtStatus* status = NULL;
  for (size_t i = 0; i < count; i++) {
    names[i] = letters[given[i] - 'a'];
    if (status == NULL) status = new_pair((float)(given[i] - 'a' + 1), &values[i]);
  }
  if (status == NULL)
    status = api()->Run(session, NULL, names, (const OrtValue* const*)values, count, &output, 1, &made);
  if (status == NULL) status = api()->GetTensorData(made, &data);
  if (status == NULL) *result = ((const float*)data)[0];
  api()->ReleaseValue(made);
  for (size_t i = 0; i < count; i++) api()->ReleaseValue(values[i]);
  return status;
}

static void test_runs_take_what_the_wanted_output_needs(void) {
  OrtSession* session = NULL;
  float result = 0;
  if (!CHECK_OK(open_session(&session))) return;
  for (int i = 0; i < 3; i++) {
    CHECK_OK(run(session, "a", "y", &result));
    CHECK(result == -1);
    CHECK_OK(run(session, "ab", "z", &result));
    CHECK(result == 5);
    CHECK_OK(run(session, "abc", "z", &result));
    CHECK(result == 5);
    CHECK_FAILS(run(session, "a", "z", &result), ORT_INVALID_ARGUMENT, "Missing Input: b");
    CHECK_FAILS(run(session, "b", "y", &result), ORT_INVALID_ARGUMENT, "Missing Input: a");
    CHECK_FAILS(run(session, "", "z", &result), ORT_INVALID_ARGUMENT, "Missing Input: a, b");
  }
  api()->ReleaseSession(session);
}

static OrtStatus* open_and_close(void) {
  OrtSession* session = NULL;
  OrtStatus* status = open_session(&session);
  api()->ReleaseSession(session);
  return status;
}

/* A session can do without some of its memory (pages are let go of or not), but with a failure or without, it
 * leaves nothing behind. */
static void test_sessions_without_memory(void) {
  bool injected = true;
  int failures = 0;
  for (int64_t n = 0; injected; n++) {
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = open_and_close();
    ortabi_fail_allocation(-1);
    injected = ortabi_allocation_count() - before > n;
    failures += status != NULL;
    if (!injected) CHECK(status == NULL);
    api()->ReleaseStatus(status);
  }
  CHECK(failures > 30);
}

static OrtSession* shared;

static OrtStatus* run_without_b(void) {
  float result = 0;
  OrtStatus* status = run(shared, "a", "y", &result);
  if (status == NULL) CHECK(result == -1);
  return status;
}

static OrtStatus* name_memory(void) {
  OrtMemoryInfo* info = NULL;
  OrtStatus* status =
      api()->CreateMemoryInfo("WebGPU_Buffer", OrtDeviceAllocator, 1, OrtMemTypeDefault, &info);
  api()->ReleaseMemoryInfo(info);
  return status;
}

/* The answers are errors whatever happens: none is lost, none leaks. */
static void test_messages_without_memory(void) {
  float result = 0;
  for (int64_t n = 0; n < 8; n++) {
    ortabi_fail_allocation(n);
    OrtStatus* status = run(shared, "b", "z", &result);
    ortabi_fail_allocation(-1);
    CHECK(status != NULL);
    api()->ReleaseStatus(status);
    OrtMemoryInfo* info = NULL;
    ortabi_fail_allocation(n);
    status = api()->CreateMemoryInfo("NoSuch", OrtDeviceAllocator, 0, OrtMemTypeDefault, &info);
    ortabi_fail_allocation(-1);
    CHECK(status != NULL && info == NULL);
    api()->ReleaseStatus(status);
  }
}

static void test_out_of_memory(void) {
  RUN(test_sessions_without_memory);
  CHECK_ALLOCATION_FAILURES(name_memory);
  CHECK_OK(open_session(&shared));
  CHECK_ALLOCATION_FAILURES(run_without_b);
  RUN(test_messages_without_memory);
  api()->ReleaseSession(shared);
}

static void test_a_second_cpu_provider_is_found_out(void) {
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  CHECK_OK(api()->CreateSessionOptions(&options));
  CHECK_OK(OrtSessionOptionsAppendExecutionProvider_CPU(options, 0));
  CHECK_OK(OrtSessionOptionsAppendExecutionProvider_CPU(options, 1));
  CHECK_FAILS(OrtSessionOptionsAppendExecutionProvider_CPU(NULL, 1), ORT_INVALID_ARGUMENT, "options");
  OrtValue* weight = NULL;
  CHECK_OK(new_pair(5, &weight));
  CHECK_OK(api()->AddInitializer(options, "w", weight));
  CHECK_FAILS(api()->CreateSessionFromArray(env, two_ways.bytes, two_ways.size, options, &session), ORT_FAIL,
              "CPUExecutionProvider has already been registered");
  api()->ReleaseValue(weight);
  api()->ReleaseSessionOptions(options);
}

int main(void) {
  write_model();
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &env));
  RUN(test_runs_take_what_the_wanted_output_needs);
  RUN(test_out_of_memory);
  RUN(test_a_second_cpu_provider_is_found_out);
  api()->ReleaseEnv(env);
  return finish();
}
