/* fork() while other threads make sessions, run them, and register libraries: the child can do all of that.
 *
 *   forks PLUGIN MODEL; the model has one input x, float[2,3], and one float output y of six elements */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_floats.h"

#define FORKS        40
#define HUNG_SECONDS 60 /* of a child: then a signal ends it */

static OrtEnv* env;
static const char *plugin, *model;
static OrtSession* shared;
static float expected[ELEMENTS];
static _Atomic bool is_over;

static void use_a_session(void) {
  OrtSession* session = NULL;
  CHECK_OK(api()->CreateSession(env, model, NULL, &session));
  check_run(session, expected);
  api()->ReleaseSession(session);
}

static void use_the_library(const char* name) {
  CHECK_OK(api()->RegisterExecutionProviderLibrary(env, name, plugin));
  CHECK_OK(api()->UnregisterExecutionProviderLibrary(env, name));
}

static void* make_sessions(void* unused) {
  while (!is_over) use_a_session();
  return unused;
}

static void* run_shared(void* unused) {
  while (!is_over) check_run(shared, expected);
  return unused;
}

static void* register_libraries(void* name) {
  while (!is_over) use_the_library(name);
  return NULL;
}

/* What a registration of the parent left half done at the fork stays so: the child uses a name of its own. */
static void check_child(void) {
  alarm(HUNG_SECONDS);
  check_run(shared, expected);
  use_a_session();
  use_the_library("child");
  _exit(failed_checks != 0);
}

static void test_children_work(void) {
  void* (*const jobs[])(void*) = {make_sessions, make_sessions, run_shared, register_libraries};
  static char name[] = "parent";
  pthread_t threads[4];
  for (size_t i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, jobs[i], name) == 0);
  for (int i = 0; i < FORKS; i++) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) check_child();
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (!CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0)) break;
  }
  is_over = true;
  for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  plugin = argv[1];
  model = argv[2];
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "forks", &env));
  CHECK_OK(api()->CreateSession(env, model, NULL, &shared));
  CHECK_OK(run_floats(shared, NULL, expected));
  RUN(test_children_work);
  api()->ReleaseSession(shared);
  api()->ReleaseEnv(env);
  return finish();
}
