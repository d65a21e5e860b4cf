/* Many threads on one environment: runs of one session, sessions made and released, libraries registered and
 * unregistered, runs told to stop. Linked with a library under ThreadSanitizer, which tells of data races.
 *
 *   race PLUGIN MODEL; the model has one input x, float[2,3], and one float output y of six elements
 */
#include <pthread.h>

#include "run_floats.h"

#define RUNS     200
#define SESSIONS 20

static OrtEnv* env;
static const OrtEpDevice* device; /* of the plugin under its first name */
static const char *plugin, *model;
static OrtSession* shared;
static OrtRunOptions* stopped; /* told to stop and to go on by one thread, used by another */
static float expected[ELEMENTS];

static OrtSession* new_session(void) {
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  CHECK_OK(api()->CreateSessionOptions(&options));
  CHECK_OK(api()->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, NULL, NULL, 0));
  CHECK_OK(api()->CreateSession(env, model, options, &session));
  api()->ReleaseSessionOptions(options);
  return session;
}

static void* run_shared(void* unused) {
  for (int i = 0; i < RUNS; i++) check_run(shared, expected);
  return unused;
}

static void* watch_shared(void* unused) {
  OrtAbiPlanStep step;
  for (int i = 0; i < RUNS; i++) {
    ortabi_session_set_timing(shared, i % 2 == 0);
    CHECK_OK(ortabi_session_step(shared, 0, &step));
  }
  return unused;
}

static void* make_sessions(void* unused) {
  for (int i = 0; i < SESSIONS; i++) {
    OrtSession* session = new_session();
    check_run(session, expected);
    api()->ReleaseSession(session);
  }
  return unused;
}

static void* register_libraries(void* name) {
  for (int i = 0; i < SESSIONS; i++) {
    CHECK_OK(api()->RegisterExecutionProviderLibrary(env, name, plugin));
    CHECK_OK(api()->UnregisterExecutionProviderLibrary(env, name));
  }
  return NULL;
}

static void* count_environment(void* unused) {
  for (int i = 0; i < RUNS; i++) {
    OrtEnv* again = NULL;
    CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "again", &again));
    api()->ReleaseEnv(again);
  }
  return unused;
}

static void* stop_and_go(void* unused) {
  for (int i = 0; i < RUNS; i++) {
    CHECK_OK(api()->RunOptionsSetTerminate(stopped));
    CHECK_OK(api()->RunOptionsUnsetTerminate(stopped));
  }
  return unused;
}

static void* run_until_stopped(void* unused) {
  for (int i = 0; i < RUNS; i++) {
    float result[ELEMENTS];
    OrtStatus* status = run_floats(shared, stopped, result);
    if (status != NULL) CHECK_FAILS(status, ORT_FAIL, "terminate");
  }
  return unused;
}

static void* set_severity(void* unused) {
  for (int i = 0; i < RUNS; i++)
    CHECK_OK(
        api()->UpdateEnvWithCustomLogLevel(env, i % 2 ? ORT_LOGGING_LEVEL_WARNING : ORT_LOGGING_LEVEL_ERROR));
  return unused;
}

static void test_all_at_once(void) {
  void* (*const jobs[])(void*) = {run_shared,         run_shared,         watch_shared,      make_sessions,
                                  register_libraries, count_environment,  run_until_stopped, stop_and_go,
                                  make_sessions,      register_libraries, set_severity};
  static char names[][8] = {"0", "1", "2", "3", "second", "5", "6", "7", "8", "third", "10"};
  enum { COUNT = sizeof jobs / sizeof jobs[0] };
  pthread_t threads[COUNT];
  for (size_t i = 0; i < COUNT; i++) CHECK(pthread_create(&threads[i], NULL, jobs[i], names[i]) == 0);
  for (size_t i = 0; i < COUNT; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  if (argc != 3) return 2;
  plugin = argv[1];
  model = argv[2];
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "race", &env));
  CHECK_OK(api()->RegisterExecutionProviderLibrary(env, "first", plugin));
  CHECK_OK(api()->GetEpDevices(env, &devices, &count));
  device = devices[count - 1];
  shared = new_session();
  CHECK_OK(api()->CreateRunOptions(&stopped));
  CHECK_OK(run_floats(shared, NULL, expected));
  RUN(test_all_at_once);
  api()->ReleaseRunOptions(stopped);
  api()->ReleaseSession(shared);
  api()->ReleaseEnv(env);
  return finish();
}
