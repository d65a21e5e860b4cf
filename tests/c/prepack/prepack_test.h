/* What the programs that test pre-packing share: an environment with prepack_plugin.so, its control,
 * sessions.
 *
 * A program is called as `program PLUGIN FOLDER_OF_MODELS`; test_prepack.py makes the models. All have one
 * input x, float[2,3], and a weight w of 1, 2, ... 6; y is 0, 2, 6, 12, 20, 30 for x of 0, 1, ... 5, unless
 * they say so. */
#ifndef TESTS_C_PREPACK_TEST_H
#define TESTS_C_PREPACK_TEST_H

#include <dlfcn.h>
#include <stdlib.h>

#include "harness.h"
#include "prepack_plugin.h"

typedef OrtPrepackedWeightsContainer Container;

static const char* models;
static OrtEnv* env;
static const OrtEpDevice* device;
static PackControl* control;
static const float product[] = {0, 2, 6, 12, 20, 30};

/* Forgets what the last test told the plugin; nothing of it may be alive. */
static void reset(PackMode mode) {
  CHECK(control->kernels == 0);
  memset(control, 0, sizeof *control);
  control->mode = mode;
  control->kernel_version = 24;
}

static const char* library_name;

/* `name`: DEVICE_NAME, or any other. */
static inline bool open_env(int argc, char** argv, const char* name) {
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  if (!CHECK(argc == 3)) return false;
  void* library = dlopen(argv[1], RTLD_NOW);
  if (!CHECK(library != NULL)) return false;
  control = ((PackControlFn)(uintptr_t)dlsym(library, "prepack_plugin_control"))();
  models = argv[2];
  library_name = name;
  if (!CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "prepack", &env)) ||
      !CHECK_OK(api()->RegisterExecutionProviderLibrary(env, name, argv[1])) ||
      !CHECK_OK(api()->GetEpDevices(env, &devices, &count)))
    return false;
  device = devices[count - 1];
  return CHECK(strcmp(api()->EpDevice_EpName(device), "PrepackEp") == 0);
}

static inline int close_env(void) {
  reset(PACK_NOTHING);
  CHECK_OK(api()->UnregisterExecutionProviderLibrary(env, library_name));
  api()->ReleaseEnv(env);
  return finish();
}

/* `container`: NULL for none. `config`: a session config key that is set to 1, or NULL. */
static inline OrtStatus* create_session(const char* model, Container* container, const char* config,
                                        OrtSession** out) {
  char path[512];
  OrtSessionOptions* options = NULL;
  snprintf(path, sizeof path, "%s/%s.onnx", models, model);
  OrtStatus* status = api()->CreateSessionOptions(&options);
  if (status == NULL)
    status = api()->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, NULL, NULL, 0);
  if (status == NULL) status = api()->AddSessionConfigEntry(options, "session.disable_cpu_ep_fallback", "1");
  if (status == NULL && config != NULL) status = api()->AddSessionConfigEntry(options, config, "1");
  if (status == NULL && container == NULL) status = api()->CreateSession(env, path, options, out);
  if (status == NULL && container != NULL)
    status = api()->CreateSessionWithPrepackedWeightsContainer(env, path, options, container, out);
  api()->ReleaseSessionOptions(options);
  return status;
}

/* gives (caller releases with ReleaseSession): a session that must come to be, or NULL after a failed check.
 */
static inline OrtSession* new_session(const char* model, Container* container) {
  OrtSession* session = NULL;
  CHECK_OK(create_session(model, container, NULL, &session));
  return session;
}

/* gives (caller releases with ReleasePrepackedWeightsContainer). */
static inline Container* new_container(void) {
  Container* container = NULL;
  CHECK_OK(api()->CreatePrepackedWeightsContainer(&container));
  return container;
}

/* Runs a session on x = 0, 1, ... 5. gives y. */
static inline OrtStatus* run(OrtSession* session, OrtValue** y) {
  static float elements[] = {0, 1, 2, 3, 4, 5};
  static const int64_t dims[] = {2, 3};
  static const char *const inputs[] = {"x"}, *const outputs[] = {"y"};
  OrtMemoryInfo* memory = NULL;
  OrtValue* x = NULL;
  OrtStatus* status = api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory);
  if (status == NULL)
    status = api()->CreateTensorWithDataAsOrtValue(memory, elements, sizeof elements, dims, 2,
                                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x);
  if (status == NULL)
    status = api()->Run(session, NULL, inputs, (const OrtValue* const*)&x, 1, outputs, 1, y);
  api()->ReleaseMemoryInfo(memory);
  api()->ReleaseValue(x);
  return status;
}

/* Runs a session (NULL: nothing) and compares its y. */
static inline void check_run(OrtSession* session, const float* expected) {
  OrtValue* y = NULL;
  const void* data = NULL;
  if (session == NULL || !CHECK_OK(run(session, &y)) || !CHECK_OK(api()->GetTensorData(y, &data))) return;
  for (size_t i = 0; i < 6; i++)
    check_at(__FILE__, __LINE__, ((const float*)data)[i] == expected[i], "y[%zu] is %g, not %g", i,
             (double)((const float*)data)[i], (double)expected[i]);
  api()->ReleaseValue(y);
}

#endif
