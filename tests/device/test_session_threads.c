/* Eight threads run one session over devices; each has streams and memory of its own. */
#include <pthread.h>

#include "sessions.h"

enum { THREADS = 8, RUNS = 25 };

#define MODEL "Mul x w2 a; Sigmoid a b; Add b x2 c; Mul c a y"

typedef struct Job {
  pthread_t thread;
  OrtSession* session;
  int number, wrong;
} Job;

static void* run_often(void* argument) {
  Job* job = argument;
  for (int run = 0; run < RUNS; run++) {
    bool is_right = false;
    CHECK_OK(try_run(job->session, MODEL, NULL, (float)(job->number * RUNS + run) / 64, &is_right));
    job->wrong += !is_right;
  }
  return NULL;
}

static void run_on_threads(OrtSession* const* sessions, size_t session_count) {
  Job jobs[THREADS];
  for (int i = 0; i < THREADS; i++) {
    jobs[i] = (Job){.session = sessions[(size_t)i % session_count], .number = i};
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
  run_on_threads(&session, 1);
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
  run_on_threads(sessions, 2);
  api()->ReleaseSession(sessions[0]);
  CHECK_RUN(sessions[1], MODEL, 1); /* does not need the other one */
  api()->ReleaseSession(sessions[1]);
  unplug(&one);
  close_env();
}

int main(void) {
  RUN(test_threads_share_a_session);
  RUN(test_threads_run_two_sessions);
  return finish();
}
