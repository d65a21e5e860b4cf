/* Eight threads run one session, and EPs that cannot do that are serialised. Also run under ThreadSanitizer.
 */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "run_test.h"

#define THREADS 8
#define RUNS    50

static const int64_t two_by_three[] = {2, 3};
static float last; /* element of a right result */
static _Atomic int good_runs;

/* Counts instead of checking: checks are for one thread. */
static void* run_often(void* session) {
  const char *input = "x", *output = "y";
  OrtAllocator* allocator = NULL;
  OrtValue* x = NULL;
  void* data = NULL;
  if (api()->GetAllocatorWithDefaultOptions(&allocator) != NULL ||
      api()->CreateTensorAsOrtValue(allocator, two_by_three, 2, FLOAT, &x) != NULL ||
      api()->GetTensorMutableData(x, &data) != NULL)
    return NULL;
  for (size_t i = 0; i < 6; i++) ((float*)data)[i] = (float)i;
  for (int i = 0; i < RUNS; i++) {
    OrtValue* y = NULL;
    const void* result = NULL;
    if (api()->Run(session, NULL, &input, (const OrtValue* const*)&x, 1, &output, 1, &y) != NULL ||
        api()->GetTensorData(y, &result) != NULL)
      break;
    if (((const float*)result)[5] == last) atomic_fetch_add(&good_runs, 1);
    api()->ReleaseValue(y);
  }
  api()->ReleaseValue(x);
  return NULL;
}

static void run_on_threads(OrtSession* session) {
  pthread_t threads[THREADS];
  good_runs = 0;
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run_often, session) == 0);
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(good_runs == THREADS * RUNS);
}

static OrtStatus* linger(OrtKernelContext* context) {
  (void)context;
  usleep(100);
  return NULL;
}

static void test_threads_share_a_session(void) {
  reset();
  control->claims[0] = "single add;single mul;single relu";
  control->on_compute = linger;
  OrtSession* session = new_session("chain", 1, NO_FALLBACK);
  ortabi_session_set_timing(session, true);
  run_on_threads(session);
  CHECK(control->most_runs_at_once > 1);
  OrtAbiPlanStep step;
  CHECK_OK(ortabi_session_step(session, 2, &step));
  CHECK(step.runs == THREADS * RUNS);
  api()->ReleaseSession(session);
}

static void test_an_ep_that_is_not_concurrent_runs_one_at_a_time(void) {
  reset();
  control->claims[0] = "fuse add mul relu";
  control->fault = FAULT_NOT_CONCURRENT;
  control->on_compute = linger;
  OrtSession* session = new_session("chain", 1, NO_FALLBACK);
  run_on_threads(session);
  CHECK(control->most_runs_at_once == 1);
  api()->ReleaseSession(session);
}

/* Each run has frames of its own for its bodies: an If in a Loop, and nodes of the test's EP in its branches.
 */
static void test_threads_run_bodies_of_one_session(void) {
  static const char* const claims[] = {"single in_added;single in_doubled", "fuse in_added;fuse in_doubled",
                                       ""};
  last = 40; /* (5 + 5) * 2 * 2 */
  for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
    reset();
    control->claims[0] = claims[i];
    control->on_compute = linger;
    OrtSession* session = new_session("nested", 1, "");
    run_on_threads(session);
    CHECK((control->most_runs_at_once > 1) == (claims[i][0] != '\0'));
    api()->ReleaseSession(session);
  }
  last = 30;
}

/* Two sessions on one library, made and released while the other runs. */
static void* make_and_run(void* unused) {
  (void)unused;
  for (int i = 0; i < 5; i++) {
    OrtSession* session = NULL;
    char path[512];
    OrtSessionOptions* options = NULL;
    snprintf(path, sizeof path, "%s/chain.onnx", models);
    if (api()->CreateSessionOptions(&options) != NULL ||
        api()->SessionOptionsAppendExecutionProvider_V2(options, env, &ep_devices[0], 1, NULL, NULL, 0) !=
            NULL ||
        api()->CreateSession(env, path, options, &session) != NULL)
      return NULL;
    api()->ReleaseSessionOptions(options);
    run_often(session);
    api()->ReleaseSession(session);
  }
  return NULL;
}

static void test_sessions_come_and_go_on_threads(void) {
  pthread_t threads[THREADS];
  reset();
  control->claims[0] = "single add;single mul;single relu";
  good_runs = 0;
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, make_and_run, NULL) == 0);
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(good_runs == THREADS * 5 * RUNS);
}

typedef struct Answer {
  pthread_mutex_t mutex;
  pthread_cond_t came;
  bool is_there;
  OrtStatus* status;
} Answer;

static void ORT_API_CALL take_answer(void* user_data, OrtValue** outputs, size_t count, OrtStatus* status) {
  Answer* answer = user_data;
  (void)outputs;
  (void)count;
  pthread_mutex_lock(&answer->mutex);
  answer->is_there = true;
  answer->status = status;
  pthread_cond_signal(&answer->came);
  pthread_mutex_unlock(&answer->mutex);
}

/* gives (caller releases with ReleaseStatus): what the run came to. */
static OrtStatus* run_async(OrtSession* session, const char* input, const OrtValue* x, OrtValue** y) {
  Answer answer = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, NULL};
  const char* output = "y";
  if (!CHECK_OK(api()->RunAsync(session, NULL, &input, &x, 1, &output, 1, y, take_answer, &answer)))
    return NULL;
  pthread_mutex_lock(&answer.mutex);
  while (!answer.is_there) pthread_cond_wait(&answer.came, &answer.mutex);
  pthread_mutex_unlock(&answer.mutex);
  return answer.status;
}

static void test_a_run_can_be_asynchronous(void) {
  reset();
  control->claims[0] = "fuse add mul relu";
  OrtSession* session = new_session("chain", 1, NO_FALLBACK);
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  CHECK_OK(run_async(session, "x", x, &y));
  CHECK(floats(y)[5] == 30);
  api()->ReleaseValue(y);
  y = NULL;
  CHECK_FAILS(run_async(session, "q", x, &y), ORT_INVALID_ARGUMENT, "Invalid input name: q");
  const char *input = "x", *output = "y";
  CHECK_FAILS(
      api()->RunAsync(session, NULL, &input, (const OrtValue* const*)&x, 1, &output, 1, &y, NULL, NULL),
      ORT_INVALID_ARGUMENT, "'run_async_callback'");
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return finish();
  last = 30;
  RUN(test_threads_share_a_session);
  RUN(test_an_ep_that_is_not_concurrent_runs_one_at_a_time);
  RUN(test_threads_run_bodies_of_one_session);
  RUN(test_sessions_come_and_go_on_threads);
  RUN(test_a_run_can_be_asynchronous);
  return close_env();
}
