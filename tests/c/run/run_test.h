/* What the programs that test sessions share: an environment with run_plugin.so, its control, models by name.
 *
 * A program is called as `program PLUGIN FOLDER_OF_MODELS`; the models are made by test_run.py. */
#ifndef TESTS_C_RUN_TEST_H
#define TESTS_C_RUN_TEST_H

#include <dlfcn.h>
#include <stdlib.h>

#include "../harness.h"
#include "run_plugin.h"

#define FLOAT ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
#define INT64 ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64

static const char* models;
static OrtEnv* env;
static RunControl* control;
static const OrtEpDevice* ep_devices[RUN_EP_COUNT];
static char logged[1 << 16]; /* warnings and errors since `reset` */

static void ORT_API_CALL remember(void* param, OrtLoggingLevel severity, const char* category,
                                  const char* logid, const char* location, const char* message) {
  (void)param, (void)category, (void)logid, (void)location;
  size_t length = strlen(logged);
  if (severity >= ORT_LOGGING_LEVEL_WARNING && length + strlen(message) + 2 < sizeof logged)
    sprintf(logged + length, "%s\n", message);
}

/* Forgets what the last test told the plugin; nothing of it may be alive. */
static void reset(void) {
  CHECK(control->eps == 0 && control->infos == 0 && control->states == 0 && control->kernels == 0);
  memset(control, 0, sizeof *control);
  control->fail_at = -1;
  control->claims[0] = control->claims[1] = "";
  logged[0] = '\0';
}

static inline bool open_env(int argc, char** argv) {
  if (!CHECK(argc == 3)) return false;
  void* library = dlopen(argv[1], RTLD_NOW);
  if (!CHECK(library != NULL)) return false;
  control = ((RunPluginControlFn)(uintptr_t)dlsym(library, "run_plugin_control"))();
  models = argv[2];
  reset();
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  if (!CHECK_OK(api()->CreateEnvWithCustomLogger(remember, NULL, ORT_LOGGING_LEVEL_WARNING, "run", &env)) ||
      !CHECK_OK(api()->RegisterExecutionProviderLibrary(env, "run", argv[1])) ||
      !CHECK_OK(api()->GetEpDevices(env, &devices, &count)))
    return false;
  for (size_t i = 0; i < count; i++) {
    if (strcmp(api()->EpDevice_EpName(devices[i]), "RunEp") == 0) ep_devices[0] = devices[i];
    if (strcmp(api()->EpDevice_EpName(devices[i]), "OtherEp") == 0) ep_devices[1] = devices[i];
  }
  return CHECK(ep_devices[0] != NULL && ep_devices[1] != NULL);
}

static inline int close_env(void) {
  reset();
  CHECK_OK(api()->UnregisterExecutionProviderLibrary(env, "run"));
  api()->ReleaseEnv(env);
  return finish();
}

/* gives (caller releases with ReleaseSessionOptions): options with the first `ep_count` EPs and config
 * entries
 * ("key=value", separated by spaces). */
static inline OrtSessionOptions* new_options(size_t ep_count, const char* config) {
  OrtSessionOptions* options = NULL;
  char text[256], *words = NULL;
  CHECK_OK(api()->CreateSessionOptions(&options));
  for (size_t i = 0; i < ep_count; i++)
    CHECK_OK(api()->SessionOptionsAppendExecutionProvider_V2(options, env, &ep_devices[i], 1, NULL, NULL, 0));
  snprintf(text, sizeof text, "%s", config);
  for (char* word = strtok_r(text, " ", &words); word != NULL; word = strtok_r(NULL, " ", &words)) {
    char* value = strchr(word, '=');
    *value++ = '\0';
    CHECK_OK(api()->AddSessionConfigEntry(options, word, value));
  }
  return options;
}

static inline OrtStatus* create_session(const char* model, size_t ep_count, const char* config,
                                        OrtSession** out) {
  char path[512];
  OrtSessionOptions* options = new_options(ep_count, config);
  snprintf(path, sizeof path, "%s/%s.onnx", models, model);
  OrtStatus* status = api()->CreateSession(env, path, options, out);
  api()->ReleaseSessionOptions(options);
  return status;
}

#define NO_FALLBACK "session.disable_cpu_ep_fallback=1"

/* gives (caller releases with ReleaseSession): a session that must come to be, or NULL after a failed check.
 */
static inline OrtSession* new_session(const char* model, size_t ep_count, const char* config) {
  OrtSession* session = NULL;
  CHECK_OK(create_session(model, ep_count, config, &session));
  return session;
}

/* gives (caller releases with ReleaseValue): a float tensor with the elements 0, 1, 2, ... */
static inline OrtValue* new_floats(size_t rank, const int64_t* dims) {
  OrtAllocator* allocator = NULL;
  OrtValue* value = NULL;
  void* data = NULL;
  size_t size = 0;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->CreateTensorAsOrtValue(allocator, dims, rank, FLOAT, &value));
  CHECK_OK(api()->GetTensorMutableData(value, &data));
  CHECK_OK(api()->GetTensorSizeInBytes(value, &size));
  for (size_t i = 0; i < size / sizeof(float); i++) ((float*)data)[i] = (float)i;
  return value;
}

static inline const float* floats(const OrtValue* value) {
  const void* data = NULL;
  CHECK_OK(api()->GetTensorData(value, &data));
  return data;
}

static inline OrtStatus* run1(OrtSession* session, const char* input, const OrtValue* value,
                              const char* output, OrtValue** out) {
  return api()->Run(session, NULL, &input, &value, 1, &output, 1, out);
}

/* Runs a model of x float[2,3] -> y on 0..5 and compares y. */
static inline void check_run(OrtSession* session, const float* expected) {
  const int64_t dims[] = {2, 3};
  OrtValue *x = new_floats(2, dims), *y = NULL;
  if (CHECK_OK(run1(session, "x", x, "y", &y))) {
    for (size_t i = 0; i < 6; i++)
      check_at(__FILE__, __LINE__, floats(y)[i] == expected[i], "y[%zu] is %g, not %g", i,
               (double)floats(y)[i], (double)expected[i]);
  }
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
}

#endif
