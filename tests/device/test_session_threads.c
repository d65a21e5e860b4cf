/* Eight threads run one session over devices; each has streams and memory of its own. */
#include <pthread.h>

#include "sessions.h"

enum { THREADS = 8, RUNS = 25 };

#define MODEL "Mul x w2 a; Sigmoid a b; Add b x2 c; Mul c a y"

typedef struct Job {
  pthread_t thread;
  OrtSession* session;
  const OrtRunOptions* options; /* of every other run */
  int number, wrong;
} Job;

static void* run_often(void* argument) {
  Job* job = argument;
  for (int run = 0; run < RUNS; run++) {
    bool is_right = false;
    const OrtRunOptions* options = run % 2 != 0 ? job->options : NULL;
    CHECK_OK(try_run(job->session, MODEL, options, (float)(job->number * RUNS + run) / 64, &is_right));
    job->wrong += !is_right;
  }
  return NULL;
}

static void run_on_threads(OrtSession* const* sessions, size_t session_count, const OrtRunOptions* options) {
  Job jobs[THREADS];
  for (int i = 0; i < THREADS; i++) {
    jobs[i] = (Job){.session = sessions[(size_t)i % session_count], .options = options, .number = i};
    CHECK(pthread_create(&jobs[i].thread, NULL, run_often, &jobs[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_join(jobs[i].thread, NULL) == 0);
    CHECK(jobs[i].wrong == 0);
  }
}

static void test_threads_share_a_session(void) {
  open_env();
  Device one = plug("virtual"), two = plug("other");
  Alive was = alive_on(&one);
  Use uses[] = {{&one, "ops=Mul"}, {&two, "ops=Add"}};
  OrtSession* session = open_session(MODEL, uses, 2);
  one.control->max_delay_us = two.control->max_delay_us = 100;
  Counts before = counts_of(&one);
  run_on_threads(&session, 1, NULL);
  Counts now = counts_of(&one);
  CHECK(now.launches - before.launches == 2 * THREADS * RUNS);
  CHECK(now.streams - before.streams >= 1 && now.streams - before.streams <= THREADS);
  api()->ReleaseSession(session);
  CHECK_ALIVE(&one, was);
  unplug(&one);
  unplug(&two);
  close_env();
}

static void test_threads_run_two_sessions(void) {
  open_env();
  Device one = plug("virtual");
  OrtSession* sessions[] = {session_on(&one, MODEL), session_on(&one, MODEL)};
  one.control->max_delay_us = 100;
  run_on_threads(sessions, 2, NULL);
  api()->ReleaseSession(sessions[0]);
  CHECK_RUN(sessions[1], MODEL, 1); /* does not need the other one */
  api()->ReleaseSession(sessions[1]);
  unplug(&one);
  close_env();
}

/* Runs give back what idle frames keep, and what the allocators do, while others run. */
static void test_threads_shrink(void) {
  open_env();
  Device device = plug("virtual");
  OrtSession* session = session_on(&device, MODEL);
  OrtRunOptions* options = NULL;
  int64_t weights = device.control->live_chunks;
  CHECK_OK(api()->CreateRunOptions(&options));
  CHECK_OK(api()->AddRunConfigEntry(options, "memory.enable_memory_arena_shrinkage", "cpu;gpu"));
  run_on_threads(&session, 1, options);
  CHECK_RUN(session, MODEL, 1);
  CHECK(device.control->live_chunks > weights);
  bool is_right = false;
  CHECK_OK(try_run(session, MODEL, options, 1, &is_right));
  CHECK(is_right && device.control->live_chunks == weights);
  api()->ReleaseRunOptions(options);
  api()->ReleaseSession(session);
  unplug(&device);
  close_env();
}

int main(void) {
  RUN(test_threads_share_a_session);
  RUN(test_threads_run_two_sessions);
  RUN(test_threads_shrink);
  return finish();
}
