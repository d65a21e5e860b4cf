/* The environment: counted, logging, its CPU device. */
#include <pthread.h>
#include <stdlib.h>

#include "harness.h"

#define REFUSED ORT_INVALID_ARGUMENT

/* What a logging function was called with last. */
typedef struct Log {
  int messages;
  OrtLoggingLevel severity;
  char text[512], id[64];
} Log;

static void ORT_API_CALL write_log(void* param, OrtLoggingLevel severity, const char* category,
                                   const char* id, const char* location, const char* message) {
  Log* log = param;
  CHECK(category != NULL && location != NULL);
  log->messages++;
  log->severity = severity;
  snprintf(log->text, sizeof log->text, "%s", message);
  snprintf(log->id, sizeof log->id, "%s", id);
}

static void test_one_environment_counted(void) {
  OrtEnv *first = NULL, *second = NULL;
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "a", &first));
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "b", &second));
  CHECK(first == second);
  api()->ReleaseEnv(first);
  CHECK_OK(api()->GetEpDevices(second, &devices, &count)); /* one reference is left */
  api()->ReleaseEnv(second);
  CHECK_FAILS(api()->GetEpDevices(second, &devices, &count), REFUSED, "released");
  api()->ReleaseEnv(NULL);
}

static void test_environment_comes_back(void) {
  for (int i = 0; i < 10; i++) {
    OrtEnv* env = NULL;
    CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "again", &env));
    api()->ReleaseEnv(env);
  }
}

static void test_cpu_device_is_always_there(void) {
  OrtEnv* env = NULL;
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "cpu", &env));
  CHECK_OK(api()->GetEpDevices(env, &devices, &count));
  if (CHECK(count >= 1)) {
    const OrtHardwareDevice* hardware = api()->EpDevice_Device(devices[0]);
    CHECK_TEXT(api()->EpDevice_EpName(devices[0]), "CPUExecutionProvider");
    CHECK(api()->HardwareDevice_Type(hardware) == OrtHardwareDeviceType_CPU);
    CHECK(strlen(api()->HardwareDevice_Vendor(hardware)) > 0);
    CHECK(api()->EpDevice_EpMetadata(devices[0]) != NULL);
    CHECK(api()->EpDevice_EpOptions(devices[0]) != NULL);
    CHECK(api()->HardwareDevice_Metadata(hardware) != NULL);
  }
  api()->ReleaseEnv(env);
}

static void test_create_refuses(void) {
  OrtEnv* env = NULL;
  OrtEnvCreationOptions options = {.version = 24, .logging_severity_level = 2, .log_id = NULL};
  OrtThreadingOptions* threads = NULL;
  CHECK_FAILS(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "x", NULL), REFUSED, "out");
  CHECK_FAILS(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, NULL, &env), REFUSED, "logid");
  CHECK_FAILS(api()->CreateEnv((OrtLoggingLevel)9, "x", &env), REFUSED, "level 9");
  CHECK_FAILS(api()->CreateEnvWithCustomLogger(NULL, NULL, ORT_LOGGING_LEVEL_WARNING, "x", &env), REFUSED,
              "logging_function");
  CHECK_FAILS(api()->CreateEnvWithGlobalThreadPools(ORT_LOGGING_LEVEL_WARNING, "x", threads, &env), REFUSED,
              "tp_options");
  CHECK_FAILS(api()->CreateEnvWithOptions(NULL, &env), REFUSED, "options");
  CHECK_FAILS(api()->CreateEnvWithOptions(&options, &env), REFUSED, "logid");
  options.version = 23;
  CHECK_FAILS(api()->CreateEnvWithOptions(&options, &env), REFUSED, "version 23");
  CHECK(env == NULL);
}

static void test_custom_logger_gets_the_messages(void) {
  Log log = {0};
  OrtEnv* env = NULL;
  OrtValue* value = NULL;
  CHECK_OK(api()->CreateEnvWithCustomLogger(write_log, &log, ORT_LOGGING_LEVEL_WARNING, "my id", &env));
  int before = log.messages;
  api()->AddKeyValuePair(NULL, "k", "v"); /* a failure that has no status */
  CHECK(log.messages == before + 1 && log.severity == ORT_LOGGING_LEVEL_ERROR);
  CHECK(strstr(log.text, "key") != NULL);
  CHECK_TEXT(log.id, "my id");
  CHECK(OrtGetApiBase()->GetApi(ORT_API_VERSION + 1) == NULL);
  CHECK(log.messages == before + 2 && log.severity == ORT_LOGGING_LEVEL_WARNING);
  CHECK_OK(api()->UpdateEnvWithCustomLogLevel(env, ORT_LOGGING_LEVEL_ERROR));
  CHECK(OrtGetApiBase()->GetApi(ORT_API_VERSION + 1) == NULL);
  CHECK(log.messages == before + 2); /* warnings are below the level now */
  CHECK_FAILS(api()->UpdateEnvWithCustomLogLevel(env, (OrtLoggingLevel)8), REFUSED, "level 8");
  CHECK_FAILS(api()->UpdateEnvWithCustomLogLevel(NULL, ORT_LOGGING_LEVEL_ERROR), REFUSED, "env");
  api()->ReleaseEnv(env);
  before = log.messages;
  api()->AddKeyValuePair(NULL, "k", "v"); /* goes to stderr again: `log` may be gone */
  CHECK(log.messages == before);
  api()->ReleaseValue(value);
}

static void test_environment_with_options(void) {
  Log log = {0};
  OrtEnv* env = NULL;
  OrtKeyValuePairs *config = NULL, *read = NULL;
  api()->CreateKeyValuePairs(&config);
  api()->AddKeyValuePair(config, "some.key", "7");
  const OrtEnvCreationOptions options = {.version = ORT_API_VERSION,
                                         .logging_severity_level = ORT_LOGGING_LEVEL_ERROR,
                                         .log_id = "with options",
                                         .custom_logging_function = write_log,
                                         .custom_logging_param = &log,
                                         .config_entries = config};
  CHECK_OK(api()->CreateEnvWithOptions(&options, &env));
  api()->ReleaseKeyValuePairs(config); /* copied */
  CHECK_OK(api()->GetEpApi()->GetEnvConfigEntries(&read));
  CHECK_TEXT(api()->GetKeyValue(read, "some.key"), "7");
  api()->ReleaseKeyValuePairs(read);
  api()->AddKeyValuePair(NULL, "k", "v");
  CHECK(log.messages == 1);
  CHECK_TEXT(log.id, "with options");
  api()->ReleaseEnv(env);
  CHECK_FAILS(api()->GetEpApi()->GetEnvConfigEntries(&read), ORT_FAIL, "no environment");
}

static void test_telemetry_switches_are_accepted(void) {
  OrtEnv* env = NULL;
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "t", &env));
  CHECK_OK(api()->EnableTelemetryEvents(env));
  CHECK_OK(api()->DisableTelemetryEvents(env));
  CHECK_OK(api()->SetLanguageProjection(env, ORT_PROJECTION_C));
  CHECK_FAILS(api()->DisableTelemetryEvents(NULL), REFUSED, "env");
  api()->ReleaseEnv(env);
}

static void test_available_providers(void) {
  char** names = NULL;
  int count = 0;
  CHECK_OK(api()->GetAvailableProviders(&names, &count));
  CHECK(count == 1);
  CHECK_TEXT(names[0], "CPUExecutionProvider");
  CHECK_OK(api()->ReleaseAvailableProviders(names, count));
  CHECK_OK(api()->ReleaseAvailableProviders(NULL, 0));
  CHECK_FAILS(api()->GetAvailableProviders(NULL, &count), REFUSED, "out_ptr");
}

static void test_injected_hardware_is_refused_when_wrong(void) {
  OrtEnv* env = NULL;
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "h", &env));
  CHECK_OK(ortabi_inject_hardware_device(env, OrtHardwareDeviceType_NPU, 1, 2, "Maker", NULL));
  CHECK_FAILS(ortabi_inject_hardware_device(NULL, OrtHardwareDeviceType_NPU, 1, 2, "Maker", NULL), REFUSED,
              "env");
  CHECK_FAILS(ortabi_inject_hardware_device(env, OrtHardwareDeviceType_NPU, 1, 2, NULL, NULL), REFUSED,
              "vendor");
  CHECK_FAILS(ortabi_inject_hardware_device(env, (OrtHardwareDeviceType)9, 1, 2, "Maker", NULL), REFUSED,
              "type 9");
  api()->ReleaseEnv(env);
}

static void* create_and_release(void* unused) {
  for (int i = 0; i < 50; i++) {
    OrtEnv* env = NULL;
    OrtStatus* status = api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "thread", &env);
    if (status != NULL) return status;
    api()->ReleaseEnv(env);
  }
  return unused;
}

static void test_threads_create_and_release_at_once(void) {
  pthread_t threads[4];
  for (size_t i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, create_and_release, NULL) == 0);
  for (size_t i = 0; i < 4; i++) {
    void* status = NULL;
    pthread_join(threads[i], &status);
    CHECK_OK(status);
  }
}

static OrtStatus* make_env(void) {
  OrtEnv* env = NULL;
  OrtStatus* status = api()->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "oom", &env);
  CHECK((status == NULL) == (env != NULL));
  api()->ReleaseEnv(env);
  return status;
}

static OrtStatus* make_providers(void) {
  char** names = NULL;
  int count = 0;
  OrtStatus* status = api()->GetAvailableProviders(&names, &count);
  if (status == NULL) status = api()->ReleaseAvailableProviders(names, count);
  return status;
}

int main(void) {
  RUN(test_one_environment_counted);
  RUN(test_environment_comes_back);
  RUN(test_cpu_device_is_always_there);
  RUN(test_create_refuses);
  RUN(test_custom_logger_gets_the_messages);
  RUN(test_environment_with_options);
  RUN(test_telemetry_switches_are_accepted);
  RUN(test_available_providers);
  RUN(test_injected_hardware_is_refused_when_wrong);
  RUN(test_threads_create_and_release_at_once);
  CHECK_ALLOCATION_FAILURES(make_env);
  CHECK_ALLOCATION_FAILURES(make_providers);
  return finish();
}
