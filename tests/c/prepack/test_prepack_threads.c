/* Threads that make, run and release sessions over one container. For ThreadSanitizer. */
#include "prepack_test.h"

#include <pthread.h>

#define THREADS  4
#define SESSIONS 25

static Container* container;

static void* make_sessions(void* unused) {
  for (int i = 0; i < SESSIONS; i++) {
    OrtSession* sessions[] = {new_session("mul", container),
                              new_session(i % 2 ? "other" : "renamed", container)};
    check_run(sessions[0], product);
    api()->ReleaseSession(sessions[0]);
    api()->ReleaseSession(sessions[1]);
  }
  return unused;
}

static void test_threads_share_a_container(void) {
  pthread_t threads[THREADS];
  reset(PACK_SHARED);
  container = new_container();
  control->is_threaded = true;
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, make_sessions, NULL) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK(control->set_shared == THREADS * SESSIONS * 2);
  api()->ReleasePrepackedWeightsContainer(container);
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv, "prepack")) return finish();
  RUN(test_threads_share_a_container);
  return close_env();
}
