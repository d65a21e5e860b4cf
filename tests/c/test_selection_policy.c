/* Selection policies and delegates in C: bad arguments, delegates that misbehave, memory. */
#include "harness.h"
#include "onnx_writer.h"

enum { FLOAT = 1 };

static OrtEnv* env;

/* y = Relu(x) */
static Message relu_model(void) {
  Message graph = {.size = 0}, node = node_proto("Relu", "x", NULL, "y");
  Message x = value_info("x", FLOAT, 3), y = value_info("y", FLOAT, 3);
  put_message(&graph, 1, &node);
  put_text(&graph, 2, "g");
  put_message(&graph, 11, &x);
  put_message(&graph, 12, &y);
  return model_proto(&graph);
}

static OrtStatus* open_and_close(const OrtSessionOptions* options) {
  static Message model;
  if (model.size == 0) model = relu_model();
  OrtSession* session = NULL;
  OrtStatus* status = api()->CreateSessionFromArray(env, model.bytes, model.size, options, &session);
  api()->ReleaseSession(session);
  return status;
}

typedef enum Behaviour { GOOD, NOTHING, TOO_MANY, NO_DEVICE, FOREIGN, FAILS, FAILS_WITH_OK } Behaviour;

typedef struct DelegateState {
  Behaviour behaviour;
  int calls;
  size_t devices;
} DelegateState;

static OrtStatus* ORT_API_CALL choose(const OrtEpDevice** devices, size_t device_count,
                                      const OrtKeyValuePairs* model_metadata,
                                      const OrtKeyValuePairs* runtime_metadata, const OrtEpDevice** selected,
                                      size_t most, size_t* count, void* state) {
  DelegateState* delegate = state;
  delegate->calls++;
  delegate->devices = device_count;
  CHECK(most == 8 && runtime_metadata != NULL);
  CHECK_TEXT(api()->GetKeyValue(model_metadata, "graph_name"), "g");
  *count = delegate->behaviour == NOTHING ? 0 : delegate->behaviour == TOO_MANY ? 9 : 1;
  if (delegate->behaviour == GOOD) selected[0] = devices[device_count - 1];
  if (delegate->behaviour == FOREIGN) selected[0] = (const OrtEpDevice*)(uintptr_t)state;
  if (delegate->behaviour == FAILS) return api()->CreateStatus(ORT_NOT_FOUND, "nothing pleases me");
  if (delegate->behaviour == FAILS_WITH_OK) return api()->CreateStatus(ORT_OK, "not really");
  return NULL;
}

static OrtSessionOptions* options_with(DelegateState* state) {
  OrtSessionOptions* options = NULL;
  CHECK_OK(api()->CreateSessionOptions(&options));
  CHECK_OK(api()->SessionOptionsSetEpSelectionPolicyDelegate(options, choose, state));
  return options;
}

static void test_a_delegate_is_called_once_a_session(void) {
  DelegateState state = {.behaviour = GOOD};
  OrtSessionOptions *options = options_with(&state), *copy = NULL;
  CHECK_OK(open_and_close(options));
  CHECK(state.calls == 1 && state.devices == 1);
  CHECK_OK(api()->CloneSessionOptions(options, &copy));
  CHECK_OK(open_and_close(copy));
  CHECK(state.calls == 2);
  api()->ReleaseSessionOptions(copy);
  api()->ReleaseSessionOptions(options);
}

static void test_what_a_delegate_does_wrong_is_an_error(void) {
  static const struct {
    Behaviour behaviour;
    OrtErrorCode code;
    const char* part;
  } cases[] = {
      {NOTHING, ORT_FAIL, "did not select anything"},
      {TOO_MANY, ORT_FAIL, "selected 9 EP devices; there can be 8"},
      {NO_DEVICE, ORT_INVALID_ARGUMENT, "EP selection delegate: the EP device is NULL"},
      {FOREIGN, ORT_INVALID_ARGUMENT, "EP selection delegate: not an EP device of this environment"},
      {FAILS, ORT_FAIL, "EP selection delegate failed: nothing pleases me"},
      {FAILS_WITH_OK, ORT_FAIL, "EP selection delegate failed: not really"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    DelegateState state = {.behaviour = cases[i].behaviour};
    OrtSessionOptions* options = options_with(&state);
    CHECK_FAILS(open_and_close(options), cases[i].code, cases[i].part);
    api()->ReleaseSessionOptions(options);
  }
}

static void test_bad_arguments_are_refused(void) {
  OrtSessionOptions* options = NULL;
  CHECK_OK(api()->CreateSessionOptions(&options));
  OrtExecutionProviderDevicePolicy unknown[] = {(OrtExecutionProviderDevicePolicy)7,
                                                (OrtExecutionProviderDevicePolicy)-1};
  CHECK_FAILS(api()->SessionOptionsSetEpSelectionPolicy(options, unknown[0]), ORT_INVALID_ARGUMENT,
              "unknown policy 7");
  CHECK_FAILS(api()->SessionOptionsSetEpSelectionPolicy(options, unknown[1]), ORT_INVALID_ARGUMENT,
              "unknown policy -1");
  CHECK_FAILS(api()->SessionOptionsSetEpSelectionPolicy(NULL, OrtExecutionProviderDevicePolicy_DEFAULT),
              ORT_INVALID_ARGUMENT, "'session_options'");
  CHECK_FAILS(api()->SessionOptionsSetEpSelectionPolicyDelegate(options, NULL, NULL), ORT_INVALID_ARGUMENT,
              "'delegate'");
  CHECK_FAILS(api()->SessionOptionsSetEpSelectionPolicyDelegate(NULL, choose, NULL), ORT_INVALID_ARGUMENT,
              "'session_options'");
  api()->ReleaseSessionOptions(options);
}

/* An allocation that only a message would have needed may fail unnoticed: then the delegate chose all the
 * same. */
static void test_memory_runs_out(void) {
  DelegateState state = {.behaviour = GOOD};
  OrtSessionOptions* options = options_with(&state);
  int failures = 0;
  for (int64_t n = 0;; n++) {
    int64_t before = ortabi_allocation_count();
    int calls = state.calls;
    ortabi_fail_allocation(n);
    OrtStatus* status = open_and_close(options);
    ortabi_fail_allocation(-1);
    bool is_last = ortabi_allocation_count() - before <= n;
    CHECK(status != NULL || state.calls == calls + 1);
    failures += status != NULL;
    if (is_last) CHECK(status == NULL);
    api()->ReleaseStatus(status);
    if (is_last) break;
  }
  CHECK(failures > 20);
  api()->ReleaseSessionOptions(options);
}

int main(void) {
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "test", &env));
  RUN(test_a_delegate_is_called_once_a_session);
  RUN(test_what_a_delegate_does_wrong_is_an_error);
  RUN(test_bad_arguments_are_refused);
  RUN(test_memory_runs_out);
  api()->ReleaseEnv(env);
  return finish();
}
