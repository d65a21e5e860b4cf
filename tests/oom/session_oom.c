/* Registration, session creation and Run with each of their allocations failing in turn: every time an error,
 * never a crash, and everything works right after.
 *
 *   session_oom PLUGIN MODEL, linked with the sanitized library, which tells of leaks
 *
 * The model has one input x, float[2,3], and one float output y of six elements.
 */
#include <stdlib.h>

#include "run_floats.h"

static OrtEnv* env;
static const char *plugin, *model;
static float expected[ELEMENTS];

static OrtStatus* register_plugin(void) {
  return api()->RegisterExecutionProviderLibrary(env, "oom", plugin);
}

/* The options of a session on the plugin's device and, for the rest, the CPU. */
static OrtStatus* make_options(OrtSessionOptions** options) {
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  OrtStatus* status = api()->GetEpDevices(env, &devices, &count);
  if (status == NULL) status = api()->CreateSessionOptions(options);
  if (status == NULL)
    status =
        api()->SessionOptionsAppendExecutionProvider_V2(*options, env, &devices[count - 1], 1, NULL, NULL, 0);
  return status;
}

static OrtStatus* make_session(OrtSession** session) {
  OrtSessionOptions* options = NULL;
  OrtStatus* status = make_options(&options);
  if (status == NULL) status = api()->CreateSession(env, model, options, session);
  api()->ReleaseSessionOptions(options);
  return status;
}

static bool device_is_there(void) {
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  CHECK_OK(api()->GetEpDevices(env, &devices, &count));
  return count > 1;
}

/* Ends a loop over failing allocations: true when allocation `n` was never reached. */
static bool is_past_the_last(int64_t n, int64_t before, const OrtStatus* status, const char* what) {
  bool injected = ortabi_allocation_count() - before > n;
  if (!injected) check_at(__FILE__, __LINE__, status == NULL, "%s fails without an injected failure", what);
  return !injected;
}

static void check_noticed(int64_t n, bool is_last, const OrtStatus* status, const char* what) {
  check_at(__FILE__, __LINE__, is_last || status != NULL, "%s: allocation %lld fails unnoticed", what,
           (long long)n);
}

static void test_registration(void) {
  for (int64_t n = 0;; n++) {
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = register_plugin();
    ortabi_fail_allocation(-1);
    bool is_last = is_past_the_last(n, before, status, "RegisterExecutionProviderLibrary");
    check_noticed(n, is_last, status, "RegisterExecutionProviderLibrary");
    bool is_registered = status == NULL;
    api()->ReleaseStatus(status);
    CHECK(device_is_there() == is_registered);
    if (is_registered) CHECK_OK(api()->UnregisterExecutionProviderLibrary(env, "oom"));
    if (is_last) return;
  }
}

/* An allocation that only a message would have needed may fail unnoticed: then the session must be right. */
static void test_session_creation(void) {
  for (int64_t n = 0;; n++) {
    OrtSession* session = NULL;
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = make_session(&session);
    ortabi_fail_allocation(-1);
    bool is_last = is_past_the_last(n, before, status, "CreateSession");
    CHECK((status == NULL) == (session != NULL));
    api()->ReleaseStatus(status);
    if (session != NULL) check_run(session, expected);
    api()->ReleaseSession(session);
    if (is_last) return;
  }
}

/* With a new session each time: the first Run allocates what later ones keep. */
static void test_first_run(void) {
  for (int64_t n = 0;; n++) {
    OrtSession* session = NULL;
    float result[ELEMENTS];
    if (!CHECK_OK(make_session(&session))) return;
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = run_floats(session, NULL, result);
    ortabi_fail_allocation(-1);
    bool is_last = is_past_the_last(n, before, status, "the first Run");
    check_noticed(n, is_last, status, "the first Run");
    api()->ReleaseStatus(status);
    check_run(session, expected);
    api()->ReleaseSession(session);
    if (is_last) return;
  }
}

static void test_later_runs(void) {
  OrtSession* session = NULL;
  float result[ELEMENTS];
  if (!CHECK_OK(make_session(&session))) return;
  check_run(session, expected);
  for (int64_t n = 0;; n++) {
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = run_floats(session, NULL, result);
    ortabi_fail_allocation(-1);
    bool is_last = is_past_the_last(n, before, status, "a later Run");
    check_noticed(n, is_last, status, "a later Run");
    api()->ReleaseStatus(status);
    check_run(session, expected);
    if (is_last) break;
  }
  api()->ReleaseSession(session);
}

int main(int argc, char** argv) {
  OrtSession* session = NULL;
  if (argc != 3) return 2;
  plugin = argv[1];
  model = argv[2];
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "oom", &env));
  RUN(test_registration);
  CHECK_OK(register_plugin());
  CHECK_OK(make_session(&session));
  CHECK_OK(run_floats(session, NULL, expected));
  api()->ReleaseSession(session);
  RUN(test_session_creation);
  RUN(test_first_run);
  RUN(test_later_runs);
  api()->ReleaseEnv(env);
  return finish();
}
