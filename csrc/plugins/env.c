/* The environment: one in a process, counted, made again after its last release (env_create.c). Its memory is
 * static, so that a handle of an environment that is gone can be told from a live one, and its logger
 * outlives every plugin. */
#include <string.h>

#include "plugins/plugins.h"

static OrtEnv the_env = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                         .logger = {log_to_stderr, NULL, ORT_LOGGING_LEVEL_WARNING, "ort_abi"}};
static pthread_mutex_t lifecycle_mutex; /* recursive */
static pthread_once_t lifecycle_once = PTHREAD_ONCE_INIT;

static void lifecycle_init(void) {
  static ForkGuard lifecycle_fork, env_fork;
  mutex_init(&lifecycle_mutex, true);
  fork_guard_open(&lifecycle_fork, &lifecycle_mutex, true);
  fork_guard_open(&env_fork, &the_env.mutex, false);
}

void env_lock(void) {
  pthread_once(&lifecycle_once, lifecycle_init);
  pthread_mutex_lock(&lifecycle_mutex);
}

void env_unlock(void) {
  pthread_mutex_unlock(&lifecycle_mutex);
}

OrtEnv* env_current(void) {
  return &the_env;
}

int env_count(int change) {
  pthread_mutex_lock(&the_env.mutex);
  int before = the_env.references;
  if (before > 0) the_env.references += change;
  pthread_mutex_unlock(&the_env.mutex);
  return before;
}

OrtStatus* env_check(const OrtEnv* env, const char* function_name) {
  const char* slot = slot_of(function_name);
  if (env == NULL) return status_new(ORT_INVALID_ARGUMENT, "%s: argument 'env' is NULL", slot);
  if (env != &the_env || env_count(0) == 0)
    return status_new(ORT_INVALID_ARGUMENT, "%s: the environment has been released", slot);
  return NULL;
}

void env_retain(OrtEnv* env) {
  (void)env;
  env_count(+1);
}

void env_release(OrtEnv* env) {
  (void)env;
  pthread_mutex_lock(&the_env.mutex);
  bool is_done = the_env.references > 1;
  if (is_done) the_env.references--;
  pthread_mutex_unlock(&the_env.mutex);
  if (is_done) return;
  env_lock(); /* nobody makes an environment while this one goes */
  int before = env_count(-1);
  if (before == 1) the_env.close();
  if (before == 0) log_unreported("ReleaseEnv", "released more often than created");
  env_unlock();
}

const OrtEpDevice* env_cpu_device(OrtEnv* env) {
  pthread_mutex_lock(&env->mutex);
  const OrtEpDevice* device = env->device_count > 0 ? env->devices[0] : NULL;
  pthread_mutex_unlock(&env->mutex);
  return device;
}
