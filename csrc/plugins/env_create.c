/* How the environment is made and taken down, and the slots about it. */
#include <string.h>

#include "api_slots.h"
#include "plugins/plugins.h"

#define SYSFS_ROOT "/sys"

static bool is_changing = false; /* being made or taken down, maybe by a caller of ours; under env_lock */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

typedef struct EnvSettings {
  OrtLoggingLevel severity;
  const char* log_id;
  OrtLoggingFunction logging_function; /* NULL: stderr */
  void* logging_param;
  const OrtKeyValuePairs* config; /* NULL: none */
} EnvSettings;

/* Back to the logger that is good at any time. */
static void logger_reset(void) {
  OrtEnv* env = env_current();
  env->logger = (OrtLogger){log_to_stderr, NULL, ORT_LOGGING_LEVEL_WARNING, "ort_abi"};
  log_set_default(NULL);
}

/* releases what the environment owns; its libraries are gone before. */
static void env_clear(void) {
  OrtEnv* env = env_current();
  shared_allocators_clear(env);
  logger_reset();
  pthread_mutex_lock(&env->mutex);
  HardwareList hardware = env->hardware;
  OrtKeyValuePairs* config = env->config;
  env->hardware = (HardwareList){0};
  env->config = NULL;
  pthread_mutex_unlock(&env->mutex);
  hardware_list_release(&hardware);
  key_values_release(config);
  mem_free(env->log_id);
  mem_free(env->libraries);
  mem_free(env->devices);
  mem_free(env->shared_allocators);
  env->log_id = NULL;
  env->libraries = NULL;
  env->devices = NULL;
  env->shared_allocators = NULL;
  env->library_capacity = env->device_capacity = env->shared_allocator_capacity = 0;
}

static void env_close(void) {
  OrtEnv* env = env_current();
  is_changing = true;
  while (env->library_count > 0) ep_library_unregister_last(env);
  env_clear();
  is_changing = false;
}

static OrtStatus* env_fill(const EnvSettings* settings) {
  OrtEnv* env = env_current();
  env->close = env_close;
  env->log_id = str_copy(settings->log_id);
  OrtKeyValuePairs* config = key_values_copy(settings->config);
  pthread_mutex_lock(&env->mutex);
  env->config = config;
  bool is_found = hardware_discover(SYSFS_ROOT, &env->hardware);
  pthread_mutex_unlock(&env->mutex);
  if (env->log_id == NULL || config == NULL || !is_found) return status_no_memory();
  OrtLoggingFunction function = settings->logging_function;
  env->logger = (OrtLogger){function != NULL ? function : log_to_stderr, settings->logging_param,
                            settings->severity, env->log_id};
  log_set_default(&env->logger);
  allocator_set_keeper(&shared_allocator_keeper);
  return ep_library_register_builtin(env);
}

static OrtStatus* settings_check(const EnvSettings* settings, const char* slot) {
  if (settings->log_id == NULL) return status_new(ORT_INVALID_ARGUMENT, "%s: argument 'logid' is NULL", slot);
  if ((unsigned)settings->severity > ORT_LOGGING_LEVEL_FATAL)
    return status_new(ORT_INVALID_ARGUMENT, "%s: unknown logging level %d", slot, (int)settings->severity);
  return NULL;
}

/* gives a reference (caller releases with ReleaseEnv): to the environment that is there, else to a new one.
 */
static OrtStatus* env_create(const EnvSettings* settings, const char* function_name, OrtEnv** out) {
  OrtEnv* env = env_current();
  OrtStatus* status = NULL;
  const char* slot = slot_of(function_name);
  TRY(settings_check(settings, slot));
  pthread_once(&fork_once, ep_devices_guard_fork);
  env_lock();
  if (env_count(+1) > 0) {
    if (settings->logging_function != NULL || settings->config != NULL)
      LOG(NULL, INFO, "%s: the process has an environment; its logger and configuration stay", slot);
  } else if (is_changing) {
    status = status_new(ORT_FAIL, "%s: the environment is being made or released", slot);
  } else {
    is_changing = true;
    status = env_fill(settings);
    if (status == NULL) {
      pthread_mutex_lock(&env->mutex);
      env->references = 1;
      pthread_mutex_unlock(&env->mutex);
    } else {
      env_clear();
    }
    is_changing = false;
  }
  env_unlock();
  if (status == NULL) *out = env;
  return status;
}

/* ---- Slots ---- */

/* gives (caller releases with ReleaseEnv). */
OrtStatus* ORT_API_CALL api_CreateEnv(OrtLoggingLevel log_severity_level, const char* logid, OrtEnv** out) {
  REQUIRE_ARG(out);
  EnvSettings settings = {.severity = log_severity_level, .log_id = logid};
  return env_create(&settings, __func__, out);
}

/* gives (caller releases with ReleaseEnv). */
OrtStatus* ORT_API_CALL api_CreateEnvWithCustomLogger(OrtLoggingFunction logging_function, void* logger_param,
                                                      OrtLoggingLevel log_severity_level, const char* logid,
                                                      OrtEnv** out) {
  REQUIRE_ARG(logging_function);
  REQUIRE_ARG(out);
  EnvSettings settings = {log_severity_level, logid, logging_function, logger_param, NULL};
  return env_create(&settings, __func__, out);
}

/* This host has no thread pool of its own: threading options are taken and change nothing. */
OrtStatus* ORT_API_CALL api_CreateEnvWithGlobalThreadPools(OrtLoggingLevel log_severity_level,
                                                           const char* logid,
                                                           const OrtThreadingOptions* tp_options,
                                                           OrtEnv** out) {
  REQUIRE_ARG(tp_options);
  REQUIRE_ARG(out);
  EnvSettings settings = {.severity = log_severity_level, .log_id = logid};
  return env_create(&settings, __func__, out);
}

/* gives (caller releases with ReleaseEnv). */
OrtStatus* ORT_API_CALL api_CreateEnvWithCustomLoggerAndGlobalThreadPools(
    OrtLoggingFunction logging_function, void* logger_param, OrtLoggingLevel log_severity_level,
    const char* logid, const OrtThreadingOptions* tp_options, OrtEnv** out) {
  REQUIRE_ARG(logging_function);
  REQUIRE_ARG(tp_options);
  REQUIRE_ARG(out);
  EnvSettings settings = {log_severity_level, logid, logging_function, logger_param, NULL};
  return env_create(&settings, __func__, out);
}

/* gives (caller releases with ReleaseEnv). */
OrtStatus* ORT_API_CALL api_CreateEnvWithOptions(const OrtEnvCreationOptions* options, OrtEnv** out) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(out);
  if (options->version < 24)
    return status_new(ORT_INVALID_ARGUMENT,
                      "CreateEnvWithOptions: OrtEnvCreationOptions carries version %u; it came with 24",
                      options->version);
  EnvSettings settings = {(OrtLoggingLevel)options->logging_severity_level, options->log_id,
                          options->custom_logging_function, options->custom_logging_param,
                          options->config_entries};
  return env_create(&settings, __func__, out);
}

void ORT_API_CALL api_ReleaseEnv(OrtEnv* input) {
  if (input == NULL) return;
  if (input == env_current())
    env_release(input);
  else
    log_unreported("ReleaseEnv", "not an environment of this host");
}

OrtStatus* ORT_API_CALL api_UpdateEnvWithCustomLogLevel(OrtEnv* ort_env, OrtLoggingLevel log_severity_level) {
  TRY(env_check(ort_env, __func__));
  if ((unsigned)log_severity_level > ORT_LOGGING_LEVEL_FATAL)
    return status_new(ORT_INVALID_ARGUMENT, "UpdateEnvWithCustomLogLevel: unknown logging level %d",
                      (int)log_severity_level);
  ort_env->logger.severity = log_severity_level;
  return NULL;
}

/* Telemetry: nothing is ever sent, whatever is asked for. */
OrtStatus* ORT_API_CALL api_EnableTelemetryEvents(const OrtEnv* env) {
  return env_check(env, __func__);
}

OrtStatus* ORT_API_CALL api_DisableTelemetryEvents(const OrtEnv* env) {
  return env_check(env, __func__);
}

OrtStatus* ORT_API_CALL api_SetLanguageProjection(const OrtEnv* ort_env, OrtLanguageProjection projection) {
  (void)projection;
  return env_check(ort_env, __func__);
}

/* gives (caller releases with ReleaseKeyValuePairs). Callable by plugins while the environment is made. */
OrtStatus* ORT_API_CALL api_GetEnvConfigEntries(OrtKeyValuePairs** config_entries) {
  REQUIRE_ARG(config_entries);
  OrtKeyValuePairs* copy = NULL;
  pthread_mutex_lock(&env_current()->mutex);
  bool is_there = env_current()->config != NULL;
  if (is_there) copy = key_values_copy(env_current()->config);
  pthread_mutex_unlock(&env_current()->mutex);
  if (!is_there) return status_new(ORT_FAIL, "GetEnvConfigEntries: there is no environment");
  if (copy == NULL) return status_no_memory();
  *config_entries = copy;
  return NULL;
}

/* gives (caller releases with ReleaseAvailableProviders): the EPs that are compiled in. */
OrtStatus* ORT_API_CALL api_GetAvailableProviders(char*** out_ptr, int* provider_length) {
  REQUIRE_ARG(out_ptr);
  REQUIRE_ARG(provider_length);
  char** names = mem_calloc(1, sizeof *names);
  char* name = str_copy("CPUExecutionProvider");
  if (names == NULL || name == NULL) {
    mem_free(names);
    mem_free(name);
    return status_no_memory();
  }
  names[0] = name;
  *out_ptr = names;
  *provider_length = 1;
  return NULL;
}

OrtStatus* ORT_API_CALL api_ReleaseAvailableProviders(char** ptr, int providers_length) {
  if (ptr == NULL) return NULL;
  for (int i = 0; i < providers_length; i++) mem_free(ptr[i]);
  mem_free(ptr);
  return NULL;
}
