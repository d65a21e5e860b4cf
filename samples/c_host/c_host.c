/* A host program in plain C: loads a provider library, runs a model on it and prints the outputs.
 *
 *   c_host LIBRARY_OF_HOST PLUGIN MODEL
 *
 * LIBRARY_OF_HOST is libort_abi.so or a stock libonnxruntime.so: only the ABI of ort_abi.h is used, so that
 * either does. Inputs must be float tensors; they are filled with 0, 1, 2, ... and unknown dimensions are 1.
 * Exit status: 0 all well, 1 an error (told on stderr), 2 wrong arguments.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort_abi.h"

#define OLDEST_API     23 /* the first one in which provider libraries can run nodes */
#define REGISTRATION   "c_host"
#define MAX_VALUES     16
#define MAX_RANK       16
#define SHOWN_ELEMENTS 8

/* All that is alive; released in one place, whatever happened. */
typedef struct App {
  const OrtApi* api;
  OrtEnv* env;
  bool registered;
  OrtSessionOptions* options;
  OrtSession* session;
  OrtAllocator* allocator; /* the host's CPU allocator, borrowed */
  size_t input_count, output_count;
  char* input_names[MAX_VALUES]; /* from `allocator` */
  char* output_names[MAX_VALUES];
  OrtValue* inputs[MAX_VALUES];
  OrtValue* outputs[MAX_VALUES];
} App;

/* Prints and releases an error. True if there was none. */
static bool report(const App* app, const char* what, OrtStatus* status) {
  if (status == NULL) return true;
  fprintf(stderr, "c_host: %s: error %d: %s\n", what, (int)app->api->GetErrorCode(status),
          app->api->GetErrorMessage(status));
  app->api->ReleaseStatus(status);
  return false;
}

static bool complain(const char* what, const char* detail) {
  fprintf(stderr, "c_host: %s: %s\n", what, detail);
  return false;
}

/* Calls a slot of the host; leaves the (bool) function when it fails. */
#define CALL(slot, ...)                                                 \
  do {                                                                  \
    if (!report(app, #slot, app->api->slot(__VA_ARGS__))) return false; \
  } while (0)

/* The host stays loaded until the process ends. */
static bool load_host(App* app, const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return complain("cannot load the host", dlerror());
  const OrtApiBase*(ORT_API_CALL * get_base)(void) = NULL;
  void* symbol = dlsym(library, "OrtGetApiBase");
  if (symbol == NULL) return complain("not a host", dlerror());
  memcpy(&get_base, &symbol, sizeof symbol); /* C has no cast from an object to a function pointer */
  const OrtApiBase* base = get_base();
  uint32_t version = ORT_API_VERSION;
  while (version >= OLDEST_API && (app->api = base->GetApi(version)) == NULL) version--;
  if (app->api == NULL) return complain("the host is too old", base->GetVersionString());
  printf("host %s, API %u\n", base->GetVersionString(), (unsigned)version);
  return true;
}

static bool is_one_of(const OrtEpDevice* device, const OrtEpDevice* const* devices, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (devices[i] == device) return true;
  }
  return false;
}

/* Registers the plugin, lists its devices and chooses the first one. `*chosen` is borrowed. */
static bool register_plugin(App* app, const char* path, const OrtEpDevice** chosen) {
  const OrtApi* api = app->api;
  const OrtEpDevice* const* devices = NULL; /* of the environment, borrowed until the next registration */
  size_t count = 0;
  CALL(GetEpDevices, app->env, &devices, &count);
  size_t before_count = count;
  const OrtEpDevice** before = malloc((count + 1) * sizeof *before);
  if (before == NULL) return complain("out of memory", "the list of devices");
  if (count > 0) memcpy(before, devices, count * sizeof *before);
  app->registered = report(app, "RegisterExecutionProviderLibrary",
                           api->RegisterExecutionProviderLibrary(app->env, REGISTRATION, path));
  bool ok = app->registered && report(app, "GetEpDevices", api->GetEpDevices(app->env, &devices, &count));
  for (size_t i = 0; ok && i < count; i++) {
    const OrtHardwareDevice* hardware = api->EpDevice_Device(devices[i]);
    bool is_new = !is_one_of(devices[i], before, before_count);
    printf("device %s (%s) on %s%s\n", api->EpDevice_EpName(devices[i]), api->EpDevice_EpVendor(devices[i]),
           api->HardwareDevice_Vendor(hardware), is_new ? ", of the plugin" : "");
    if (is_new && *chosen == NULL) *chosen = devices[i];
  }
  free(before);
  if (ok && *chosen == NULL) return complain(path, "the plugin supports no device of this machine");
  return ok;
}

static bool create_session(App* app, const OrtEpDevice* device, const char* model) {
  CALL(CreateSessionOptions, &app->options);
  /* A node that the plugin does not claim is an error, it does not quietly run elsewhere. */
  CALL(AddSessionConfigEntry, app->options, "session.disable_cpu_ep_fallback", "1");
  CALL(SessionOptionsAppendExecutionProvider_V2, app->options, app->env, &device, 1, NULL, NULL, 0);
  CALL(CreateSession, app->env, model, app->options, &app->session);
  return true;
}

static bool read_names(App* app) {
  CALL(GetAllocatorWithDefaultOptions, &app->allocator);
  CALL(SessionGetInputCount, app->session, &app->input_count);
  CALL(SessionGetOutputCount, app->session, &app->output_count);
  if (app->input_count > MAX_VALUES || app->output_count > MAX_VALUES)
    return complain("this model", "has more than 16 inputs or outputs");
  for (size_t i = 0; i < app->input_count; i++)
    CALL(SessionGetInputName, app->session, i, app->allocator, &app->input_names[i]);
  for (size_t i = 0; i < app->output_count; i++)
    CALL(SessionGetOutputName, app->session, i, app->allocator, &app->output_names[i]);
  return true;
}

/* Makes input `index` from the type that the model declares for it. */
static bool make_input(App* app, const OrtTypeInfo* type, size_t index) {
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  int64_t dims[MAX_RANK];
  size_t rank = 0, count = 1;
  float* data = NULL;
  CALL(CastTypeInfoToTensorInfo, type, &tensor);
  if (tensor != NULL) CALL(GetTensorElementType, tensor, &element);
  if (element != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
    return complain("not a float tensor", app->input_names[index]);
  CALL(GetDimensionsCount, tensor, &rank);
  if (rank > MAX_RANK) return complain("too many dimensions", app->input_names[index]);
  CALL(GetDimensions, tensor, dims, rank);
  for (size_t i = 0; i < rank; i++) {
    if (dims[i] < 0) dims[i] = 1;
    count *= (size_t)dims[i];
  }
  CALL(CreateTensorAsOrtValue, app->allocator, dims, rank, element, &app->inputs[index]);
  CALL(GetTensorMutableData, app->inputs[index], (void**)&data);
  for (size_t i = 0; i < count; i++) data[i] = (float)i;
  return true;
}

static bool make_inputs(App* app) {
  for (size_t i = 0; i < app->input_count; i++) {
    OrtTypeInfo* type = NULL;
    CALL(SessionGetInputTypeInfo, app->session, i, &type);
    bool made = make_input(app, type, i);
    app->api->ReleaseTypeInfo(type);
    if (!made) return false;
  }
  return true;
}

/* Prints name, shape and the first elements. */
static bool print_tensor(App* app, const char* name, OrtValue* value, const OrtTensorTypeAndShapeInfo* info) {
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  int64_t dims[MAX_RANK];
  size_t rank = 0, count = 0;
  float* data = NULL;
  CALL(GetTensorElementType, info, &element);
  CALL(GetDimensionsCount, info, &rank);
  CALL(GetTensorShapeElementCount, info, &count);
  if (rank > MAX_RANK) return complain("too many dimensions", name);
  CALL(GetDimensions, info, dims, rank);
  CALL(GetTensorMutableData, value, (void**)&data);
  printf("output %s [", name);
  for (size_t i = 0; i < rank; i++) printf(i == 0 ? "%lld" : ",%lld", (long long)dims[i]);
  printf("]");
  if (element != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
    printf(" of element type %d\n", (int)element);
    return true;
  }
  for (size_t i = 0; i < count && i < SHOWN_ELEMENTS; i++) printf(" %g", data[i]);
  printf(count > SHOWN_ELEMENTS ? " ...\n" : "\n");
  return true;
}

static bool run_and_print(App* app) {
  CALL(Run, app->session, NULL, (const char* const*)app->input_names, (const OrtValue* const*)app->inputs,
       app->input_count, (const char* const*)app->output_names, app->output_count, app->outputs);
  for (size_t i = 0; i < app->output_count; i++) {
    OrtTensorTypeAndShapeInfo* info = NULL;
    CALL(GetTensorTypeAndShape, app->outputs[i], &info);
    bool printed = print_tensor(app, app->output_names[i], app->outputs[i], info);
    app->api->ReleaseTensorTypeAndShapeInfo(info);
    if (!printed) return false;
  }
  return true;
}

/* In the reverse order of creation: what lives in the plugin must be gone before the plugin. */
static bool release_all(App* app) {
  const OrtApi* api = app->api;
  bool ok = true;
  if (api == NULL) return true;
  for (size_t i = 0; i < MAX_VALUES; i++) {
    api->ReleaseValue(app->outputs[i]);
    api->ReleaseValue(app->inputs[i]);
    char* names[] = {app->input_names[i], app->output_names[i]};
    for (size_t k = 0; k < 2; k++) {
      if (names[k] != NULL) ok &= report(app, "AllocatorFree", api->AllocatorFree(app->allocator, names[k]));
    }
  }
  api->ReleaseSession(app->session);
  api->ReleaseSessionOptions(app->options);
  if (app->registered)
    ok &= report(app, "UnregisterExecutionProviderLibrary",
                 api->UnregisterExecutionProviderLibrary(app->env, REGISTRATION));
  api->ReleaseEnv(app->env);
  return ok;
}

static bool run_app(App* app, const char* host, const char* plugin, const char* model) {
  const OrtEpDevice* device = NULL;
  if (!load_host(app, host)) return false;
  CALL(CreateEnv, ORT_LOGGING_LEVEL_WARNING, "c_host", &app->env);
  return register_plugin(app, plugin, &device) && create_session(app, device, model) && read_names(app) &&
         make_inputs(app) && run_and_print(app);
}

int main(int argc, char** argv) {
  App app = {0};
  if (argc != 4) {
    fprintf(stderr, "usage: %s LIBRARY_OF_HOST PLUGIN MODEL\n", argv[0]);
    return 2;
  }
  bool ok = run_app(&app, argv[1], argv[2], argv[3]);
  ok &= release_all(&app);
  return ok ? 0 : 1;
}
