/* Two sessions on samples/c_plugin_kernels, in any host that has API 24.
 *
 *   kernels_host HOST_LIBRARY PLUGIN MODEL shared|private
 *
 * The model has an input x, float[1,2,3], a weight w, float[3], and an output y. `shared`: w is given with
 * AddInitializer (stock onnxruntime shares no others) and both sessions have one container. Prints y
 * of each run and then the sample's counters, one "name value..." a line. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../samples/c_plugin_kernels/control.h"
#include "ort_abi.h"

#define TRY(call) check((call), #call)

static const OrtApi* api;

static void check(OrtStatus* status, const char* call) {
  if (status == NULL) return;
  fprintf(stderr, "%s: %s\n", call, api->GetErrorMessage(status));
  exit(1);
}

static OrtValue* new_tensor(const OrtMemoryInfo* memory, float* data, size_t count, const int64_t* dims,
                            size_t rank) {
  OrtValue* value = NULL;
  TRY(api->CreateTensorWithDataAsOrtValue(memory, data, count * sizeof *data, dims, rank,
                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  return value;
}

static const OrtEpDevice* find_device(const OrtEnv* env) {
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  TRY(api->GetEpDevices(env, &devices, &count));
  for (size_t i = 0; i < count; i++) {
    if (strcmp(api->EpDevice_EpName(devices[i]), "SampleKernelExecutionProvider") == 0) return devices[i];
  }
  fprintf(stderr, "the plugin has no device\n");
  exit(1);
}

static void run(OrtSession* session, const OrtValue* x) {
  static const char *const inputs[] = {"x"}, *const outputs[] = {"y"};
  OrtValue* y = NULL;
  void* data = NULL;
  size_t count = 0;
  OrtTensorTypeAndShapeInfo* info = NULL;
  TRY(api->Run(session, NULL, inputs, &x, 1, outputs, 1, &y));
  TRY(api->GetTensorMutableData(y, &data));
  TRY(api->GetTensorTypeAndShape(y, &info));
  TRY(api->GetTensorShapeElementCount(info, &count));
  printf("y");
  for (size_t i = 0; i < count; i++) printf(" %.9g", (double)((const float*)data)[i]);
  printf("\n");
  api->ReleaseTensorTypeAndShapeInfo(info);
  api->ReleaseValue(y);
}

static OrtSession* new_session(const OrtEnv* env, const char* model, const OrtValue* weight,
                               OrtPrepackedWeightsContainer* container) {
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  const OrtEpDevice* device = find_device(env);
  TRY(api->CreateSessionOptions(&options));
  TRY(api->SessionOptionsAppendExecutionProvider_V2(options, (OrtEnv*)env, &device, 1, NULL, NULL, 0));
  TRY(api->AddSessionConfigEntry(options, "session.disable_cpu_ep_fallback", "1"));
  if (container != NULL) {
    TRY(api->AddInitializer(options, "w", weight));
    TRY(api->CreateSessionWithPrepackedWeightsContainer(env, model, options, container, &session));
  } else {
    TRY(api->CreateSession(env, model, options, &session));
  }
  api->ReleaseSessionOptions(options);
  return session;
}

int main(int argc, char** argv) {
  static float x_data[] = {1, -2, 3, -4, 5, 6}, w_data[] = {2, -3, 0.5f};
  OrtEnv* env = NULL;
  OrtMemoryInfo* memory = NULL;
  OrtPrepackedWeightsContainer* container = NULL;
  if (argc != 5) return 2;
  void* host = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (host == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
  const OrtApiBase* (*get_base)(void) = (const OrtApiBase* (*)(void))(uintptr_t)dlsym(host, "OrtGetApiBase");
  api = get_base()->GetApi(24);
  TRY(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "kernels", &env));
  TRY(api->RegisterExecutionProviderLibrary(env, "kernels", argv[2]));
  void* plugin = dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD);
  const KernelSampleControl* control =
      ((KernelSampleControlFn)(uintptr_t)dlsym(plugin, "kernel_sample_control"))();
  TRY(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  OrtValue* x = new_tensor(memory, x_data, 6, (const int64_t[]){1, 2, 3}, 3);
  OrtValue* w = new_tensor(memory, w_data, 3, (const int64_t[]){3}, 1);
  if (strcmp(argv[4], "shared") == 0) TRY(api->CreatePrepackedWeightsContainer(&container));
  OrtSession* first = new_session(env, argv[3], w, container);
  OrtSession* second = new_session(env, argv[3], w, container);
  run(first, x);
  api->ReleaseSession(first);
  run(second, x);
  api->ReleaseSession(second);
  if (container != NULL) api->ReleasePrepackedWeightsContainer(container);
  printf("prepacks %d\nstored %d\nset_shared %d\nfrom_others %d\n", control->prepacks, control->stored,
         control->set_shared, control->from_others);
  printf("packed_computes %d\nkernels %d\nprivate_buffers %d\n", control->packed_computes, control->kernels,
         control->private_buffers);
  api->ReleaseValue(x);
  api->ReleaseValue(w);
  api->ReleaseMemoryInfo(memory);
  dlclose(plugin);
  TRY(api->UnregisterExecutionProviderLibrary(env, "kernels"));
  api->ReleaseEnv(env);
  return 0;
}
