/* Profiles of sessions and of runs, and what EPs add to them. `program PLUGIN`; files are written where it
 * runs. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "harness.h"
#include "onnx_writer.h"
#include "profile_plugin.h"

static OrtEnv* env;
static const OrtEpDevice* device;
static ProfileControl* control;
static Message model;
static OrtAllocator* allocator;

static void reset(ProfileFault fault) {
  CHECK(control->alive == 0);
  memset(control, 0, sizeof *control);
  control->fault = fault;
}

/* y = a * b */
static Message make_model(void) {
  Message graph = {.size = 0};
  Message node = node_proto("Mul", "a", "b", "y");
  put_message(&graph, 1, &node);
  put_text(&graph, 2, "graph");
  const char* const names[] = {"a", "b", "y"};
  for (int i = 0; i < 3; i++) {
    Message value = value_info(names[i], ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 3);
    put_message(&graph, i < 2 ? 11 : 12, &value);
  }
  return model_proto(&graph);
}

/* `prefix`: NULL for a session that is not profiled. */
static OrtStatus* create_session(const char* prefix, OrtSession** out) {
  OrtSessionOptions* options = NULL;
  OrtStatus* status = api()->CreateSessionOptions(&options);
  if (status == NULL)
    status = api()->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, NULL, NULL, 0);
  if (status == NULL && prefix != NULL) status = api()->EnableProfiling(options, prefix);
  if (status == NULL) status = api()->CreateSessionFromArray(env, model.bytes, model.size, options, out);
  api()->ReleaseSessionOptions(options);
  return status;
}

static OrtStatus* run_with(OrtSession* session, const OrtRunOptions* options, int64_t length) {
  static float elements[] = {1, 2, 3, 4};
  static const char *const names[] = {"a", "b"}, *const output_names[] = {"y"};
  OrtMemoryInfo* memory = NULL;
  OrtValue *x = NULL, *y = NULL;
  OrtStatus* status = api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory);
  if (status == NULL)
    status = api()->CreateTensorWithDataAsOrtValue(memory, elements, sizeof(float) * (size_t)length, &length,
                                                   1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x);
  const OrtValue* inputs[] = {x, x};
  if (status == NULL) status = api()->Run(session, options, names, inputs, 2, output_names, 1, &y);
  api()->ReleaseMemoryInfo(memory);
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
  return status;
}

/* gives (caller releases with free): what is in the file; NULL, after a failed check, when there is none. */
static char* read_file(const char* path) {
  FILE* file = fopen(path, "r");
  if (!check_at(__FILE__, __LINE__, file != NULL, "there is no file '%s'", path)) return NULL;
  char* text = calloc(1, 1 << 20);
  if (text != NULL && fread(text, 1, (1 << 20) - 1, file) == 0) text[0] = '\0';
  fclose(file);
  return text;
}

static int occurrences(const char* text, const char* part) {
  int count = 0;
  for (const char* at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) count++;
  return count;
}

/* gives (caller releases with free): the profile, which ends. */
static char* end_profile(OrtSession* session) {
  char* path = NULL;
  if (!CHECK_OK(api()->SessionEndProfiling(session, allocator, &path))) return NULL;
  char* text = read_file(path);
  CHECK_OK(api()->AllocatorFree(allocator, path));
  return text;
}

/* ---- Events ---- */

static void test_events(void) {
  const OrtEpApi* ep_api = api()->GetEpApi();
  char key[] = "k", value[] = "v", name[] = "n";
  const char *keys[] = {key, "other"}, *values[] = {value, ""};
  OrtProfilingEvent* event = NULL;
  CHECK_OK(ep_api->CreateProfilingEvent(OrtProfilingEventCategory_API, 7, 8, name, 9, 10, keys, values, 2,
                                        &event));
  key[0] = value[0] = name[0] = 'x'; /* copied */
  const char* text = NULL;
  int64_t number = 0;
  OrtProfilingEventCategory category = OrtProfilingEventCategory_SESSION;
  CHECK_OK(ep_api->ProfilingEvent_GetCategory(event, &category));
  CHECK(category == OrtProfilingEventCategory_API);
  CHECK_OK(ep_api->ProfilingEvent_GetName(event, &text));
  CHECK_TEXT(text, "n");
  CHECK_OK(ep_api->ProfilingEvent_GetTimestampUs(event, &number));
  CHECK(number == 9);
  CHECK_OK(ep_api->ProfilingEvent_GetDurationUs(event, &number));
  CHECK(number == 10);
  CHECK_OK(ep_api->ProfilingEvent_GetArgValue(event, "k", &text));
  CHECK_TEXT(text, "v");
  CHECK_OK(ep_api->ProfilingEvent_GetArgValue(event, "other", &text));
  CHECK_TEXT(text, "");
  CHECK_OK(ep_api->ProfilingEvent_GetArgValue(event, "none", &text));
  CHECK(text == NULL);
  ep_api->ReleaseProfilingEvent(event);
  ep_api->ReleaseProfilingEvent(NULL);
}

static void test_bad_events(void) {
  const OrtEpApi* ep_api = api()->GetEpApi();
  const char *keys[] = {"k"}, *nulls[] = {NULL};
  const OrtProfilingEventCategory fine = OrtProfilingEventCategory_NODE;
  OrtProfilingEvent* event = NULL;
  CHECK_FAILS(ep_api->CreateProfilingEvent(fine, 0, 0, NULL, 0, 0, NULL, NULL, 0, &event),
              ORT_INVALID_ARGUMENT, "event_name");
  CHECK_FAILS(
      ep_api->CreateProfilingEvent((OrtProfilingEventCategory)4, 0, 0, "n", 0, 0, NULL, NULL, 0, &event),
      ORT_INVALID_ARGUMENT, "category 4");
  CHECK_FAILS(ep_api->CreateProfilingEvent(fine, 0, 0, "n", 0, 0, keys, NULL, 1, &event),
              ORT_INVALID_ARGUMENT, "arg_values");
  CHECK_FAILS(ep_api->CreateProfilingEvent(fine, 0, 0, "n", 0, 0, keys, nulls, 1, &event),
              ORT_INVALID_ARGUMENT, "argument 0");
  CHECK_FAILS(ep_api->ProfilingEventsContainer_AddEvents(NULL, NULL, 0), ORT_INVALID_ARGUMENT,
              "events_container");
  CHECK(event == NULL);
}

static OrtStatus* make_event(void) {
  const OrtEpApi* ep_api = api()->GetEpApi();
  const char* texts[] = {"k"};
  OrtProfilingEvent* event = NULL;
  OrtStatus* status =
      ep_api->CreateProfilingEvent(OrtProfilingEventCategory_NODE, 0, 0, "n", 0, 0, texts, texts, 1, &event);
  ep_api->ReleaseProfilingEvent(event);
  return status;
}

static void test_events_without_memory(void) {
  CHECK_ALLOCATION_FAILURES(make_event);
}

/* ---- Sessions ---- */

static void test_profile(void) {
  OrtSession* session = NULL;
  uint64_t start = 0;
  reset(PROFILE_FINE);
  CHECK_OK(create_session("session", &session));
  CHECK(control->creates == 1 && control->starts == 1 && control->start_offset_ns > 0);
  CHECK_OK(api()->SessionGetProfilingStartTimeNs(session, &start));
  CHECK(start > UINT64_C(1600000000) * 1000000000);
  for (int i = 0; i < 2; i++) CHECK_OK(run_with(session, NULL, 3));
  char* text = end_profile(session);
  CHECK(occurrences(text, "\"name\" :\"model_loading_array\"") == 1);
  CHECK(occurrences(text, "\"name\" :\"session_initialization\"") == 1);
  CHECK(occurrences(text, "\"name\" :\"model_run\"") == 2);
  CHECK(occurrences(text, "\"name\" :\"SequentialExecutor::Execute\"") == 2);
  CHECK(occurrences(text, "\"cat\" : \"Node\"") == 2);
  CHECK(occurrences(text, "\"provider\" : \"SampleCExecutionProvider\"") == 2);
  CHECK(occurrences(text, "\"input_type_shape\" : [{\"float\":[3]},{\"float\":[3]}]") == 2);
  CHECK(occurrences(text, "\"output_size\" : \"12\"") == 2);
  /* The EP was told of all but the loading, and made an event for each. */
  CHECK(control->begun == 7 && control->finished == 7 && control->out_of_order == 0 && control->late == 0);
  CHECK(control->ends == 1 && occurrences(text, "\"name\" :\"ep_event\"") == 7);
  CHECK(occurrences(text, "\"shapes\" : \"yes\",\"list\" : [1, 2],") == 2);
  free(text);
  /* It is over, for the EP too. */
  char* path = NULL;
  CHECK_OK(run_with(session, NULL, 3));
  CHECK(control->begun == 7);
  CHECK_OK(api()->SessionEndProfiling(session, allocator, &path));
  CHECK_TEXT(path, "");
  CHECK_OK(api()->AllocatorFree(allocator, path));
  CHECK(control->ends == 1);
  api()->ReleaseSession(session);
  CHECK(control->alive == 0);
}

static void test_no_profile(void) {
  OrtSession* session = NULL;
  char* path = NULL;
  uint64_t start = 1;
  reset(PROFILE_FINE);
  CHECK_OK(create_session(NULL, &session));
  CHECK_OK(run_with(session, NULL, 3));
  CHECK_OK(api()->SessionEndProfiling(session, allocator, &path));
  CHECK_TEXT(path, "");
  CHECK_OK(api()->AllocatorFree(allocator, path));
  CHECK_OK(api()->SessionGetProfilingStartTimeNs(session, &start));
  CHECK(start == 0 && control->creates == 0);
  api()->ReleaseSession(session);
}

/* Nobody ends it: the session does, while the EP is there. */
static void test_released_session(void) {
  OrtSession* session = NULL;
  reset(PROFILE_FINE);
  CHECK_OK(create_session("released", &session));
  CHECK_OK(run_with(session, NULL, 3));
  api()->ReleaseSession(session);
  CHECK(control->ends == 1 && control->alive == 0 && control->late == 0);
}

static void test_failed_run(void) {
  OrtSession* session = NULL;
  reset(PROFILE_FINE);
  CHECK_OK(create_session("failed", &session));
  CHECK_FAILS(run_with(session, NULL, 4), ORT_INVALID_ARGUMENT, "");
  CHECK(control->begun == control->finished && control->out_of_order == 0);
  char* text = end_profile(session);
  CHECK(occurrences(text, "\"name\" :\"model_run\"") == 1);
  free(text);
  api()->ReleaseSession(session);
}

static void test_no_place_for_the_file(void) {
  OrtSession* session = NULL;
  reset(PROFILE_FINE);
  CHECK_FAILS(create_session("no/such/folder/p", &session), ORT_FAIL, "no/such/folder/p_");
  CHECK(session == NULL && control->creates == 0);
}

/* ---- EPs ---- */

/* Sessions run and are profiled whatever is wrong with an EP's profiler, and it is released once. */
static void test_faults(void) {
  for (ProfileFault fault = PROFILE_NONE; fault <= PROFILE_END_FAILS; fault++) {
    OrtSession* session = NULL;
    reset(fault);
    CHECK_OK(create_session("fault", &session));
    CHECK_OK(run_with(session, NULL, 3));
    char* text = end_profile(session);
    CHECK(occurrences(text, "\"name\" :\"model_run\"") == 1);
    bool has_profiler = fault == PROFILE_NO_EVENTS || fault == PROFILE_VERSION_0 ||
                        fault == PROFILE_EVENTS_FAIL || fault == PROFILE_END_FAILS;
    bool has_events = fault == PROFILE_VERSION_0 || fault == PROFILE_EVENTS_FAIL;
    check_at(__FILE__, __LINE__, control->ends == (has_profiler ? 1 : 0), "fault %d: %d ends", fault,
             control->ends);
    check_at(__FILE__, __LINE__, occurrences(text, "ep_event") == (has_events ? 4 : 0),
             "fault %d: %d EP events", fault, occurrences(text, "ep_event"));
    CHECK(control->creates == (fault == PROFILE_OLD_EP ? 0 : 1));
    free(text);
    api()->ReleaseSession(session);
    check_at(__FILE__, __LINE__, control->alive == 0, "fault %d: %d profilers alive", fault, control->alive);
  }
}

/* ---- Runs ---- */

static void profile_a_run(const char* session_prefix, const char* prefix) {
  OrtSession* session = NULL;
  OrtRunOptions* options = NULL;
  reset(PROFILE_FINE);
  CHECK_OK(create_session(session_prefix, &session));
  CHECK_OK(api()->CreateRunOptions(&options));
  CHECK_OK(api()->RunOptionsEnableProfiling(options, prefix));
  CHECK_OK(run_with(session, options, 3));
  CHECK_OK(api()->RunOptionsDisableProfiling(options));
  CHECK_OK(run_with(session, options, 3));
  if (session_prefix != NULL) {
    char* text = end_profile(session);
    CHECK(occurrences(text, "\"name\" :\"model_run\"") == 2);
    CHECK(occurrences(text, "\"cat\" : \"Node\"") == 2);
    CHECK(control->begun == 7 && control->out_of_order == 0);
    free(text);
  } else {
    /* The EP has a profiler for the one run. */
    CHECK(control->creates == 1 && control->ends == 1 && control->alive == 0);
    CHECK(control->begun > 0 && control->out_of_order == 0 && control->late == 0);
  }
  api()->ReleaseRunOptions(options);
  api()->ReleaseSession(session);
}

static void test_profile_of_a_run(void) {
  profile_a_run(NULL, "run");
  profile_a_run("both_session", "both_run");
}

static void test_no_place_for_the_run(void) {
  OrtSession* session = NULL;
  OrtRunOptions* options = NULL;
  reset(PROFILE_FINE);
  CHECK_OK(create_session(NULL, &session));
  CHECK_OK(api()->CreateRunOptions(&options));
  CHECK_OK(api()->RunOptionsEnableProfiling(options, "no/such/folder/r"));
  CHECK_FAILS(run_with(session, options, 3), ORT_FAIL, "no/such/folder/r_");
  CHECK_OK(run_with(session, NULL, 3));
  api()->ReleaseRunOptions(options);
  api()->ReleaseSession(session);
}

/* ---- Threads and memory ---- */

static void* run_often(void* session) {
  for (int i = 0; i < 50; i++) CHECK_OK(run_with(session, NULL, 3));
  return NULL;
}

static void test_threads(void) {
  OrtSession* session = NULL;
  pthread_t threads[3];
  reset(PROFILE_FINE);
  CHECK_OK(create_session("threads", &session));
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, run_often, session);
  CHECK_OK(run_with(session, NULL, 3));
  free(end_profile(session)); /* in the middle of the others' runs */
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  CHECK(control->late == 0 && control->ends == 1);
  api()->ReleaseSession(session);
}

/* Memory that is missing for an event costs the event, not the run. */
static void test_without_memory(void) {
  for (int64_t n = 0;; n++) {
    OrtSession* session = NULL;
    reset(PROFILE_FINE);
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = create_session("memory", &session);
    if (status == NULL) status = run_with(session, NULL, 3);
    ortabi_fail_allocation(-1);
    bool injected = ortabi_allocation_count() - before > n;
    api()->ReleaseStatus(status);
    if (session != NULL) free(end_profile(session));
    api()->ReleaseSession(session);
    if (injected) continue;
    CHECK(status == NULL && n > 50);
    return;
  }
}

int main(int argc, char** argv) {
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  if (!CHECK(argc == 2)) return 1;
  void* library = dlopen(argv[1], RTLD_NOW);
  if (!CHECK(library != NULL)) return 1;
  control = ((ProfileControlFn)(uintptr_t)dlsym(library, "profile_control"))();
  model = make_model();
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "profiling", &env));
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  if (!CHECK_OK(api()->RegisterExecutionProviderLibrary(env, "profile", argv[1]))) return 1;
  CHECK_OK(api()->GetEpDevices(env, &devices, &count));
  device = devices[count - 1];
  RUN(test_events);
  RUN(test_bad_events);
  RUN(test_events_without_memory);
  RUN(test_profile);
  RUN(test_no_profile);
  RUN(test_released_session);
  RUN(test_failed_run);
  RUN(test_no_place_for_the_file);
  RUN(test_faults);
  RUN(test_profile_of_a_run);
  RUN(test_no_place_for_the_run);
  RUN(test_threads);
  RUN(test_without_memory);
  reset(PROFILE_FINE);
  CHECK_OK(api()->UnregisterExecutionProviderLibrary(env, "profile"));
  api()->ReleaseEnv(env);
  dlclose(library);
  return finish();
}
