/* Registers a plugin, runs a model on it and unregisters it, many times over: after each the library must be
 * gone from the process's maps, and after the second the heap must not grow.
 *
 *   cycles LIBRARY_OF_HOST PLUGIN MODEL COUNT
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort_abi.h"

static const OrtApi* api;

static void must(OrtStatus* status, const char* what) {
  if (status == NULL) return;
  fprintf(stderr, "%s: %s\n", what, api->GetErrorMessage(status));
  exit(1);
}

static bool is_mapped(const char* path) {
  char line[4096];
  bool found = false;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) found = strstr(line, path) != NULL;
  if (maps != NULL) fclose(maps);
  return found;
}

static void run(OrtSession* session) {
  float data[] = {1, -2, 3, -4, 5, -6};
  const int64_t dims[] = {2, 3};
  const char *const inputs[] = {"x"}, *const outputs[] = {"y"};
  OrtMemoryInfo* memory = NULL;
  OrtValue *input = NULL, *output = NULL;
  must(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory), "CreateCpuMemoryInfo");
  must(api->CreateTensorWithDataAsOrtValue(memory, data, sizeof data, dims, 2,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input),
       "CreateTensorWithDataAsOrtValue");
  must(api->Run(session, NULL, inputs, (const OrtValue* const*)&input, 1, outputs, 1, &output), "Run");
  api->ReleaseValue(output);
  api->ReleaseValue(input);
  api->ReleaseMemoryInfo(memory);
}

static void cycle(OrtEnv* env, const char* plugin, const char* model) {
  const OrtEpDevice* const* devices = NULL;
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  size_t count = 0;
  must(api->RegisterExecutionProviderLibrary(env, "cycles", plugin), "RegisterExecutionProviderLibrary");
  if (!is_mapped(plugin)) must(api->CreateStatus(ORT_FAIL, "not mapped"), "the registered library");
  must(api->GetEpDevices(env, &devices, &count), "GetEpDevices");
  must(api->CreateSessionOptions(&options), "CreateSessionOptions");
  must(api->AddSessionConfigEntry(options, "session.disable_cpu_ep_fallback", "1"), "AddSessionConfigEntry");
  must(api->SessionOptionsAppendExecutionProvider_V2(options, env, &devices[count - 1], 1, NULL, NULL, 0),
       "SessionOptionsAppendExecutionProvider_V2");
  must(api->CreateSession(env, model, options, &session), "CreateSession");
  run(session);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  must(api->UnregisterExecutionProviderLibrary(env, "cycles"), "UnregisterExecutionProviderLibrary");
}

static void load_host(const char* path) {
  const OrtApiBase*(ORT_API_CALL * get_base)(void) = NULL;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, "OrtGetApiBase") : NULL;
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  memcpy(&get_base, &symbol, sizeof symbol);
  api = get_base()->GetApi(23);
}

int main(int argc, char** argv) {
  OrtEnv* env = NULL;
  size_t heap = 0;
  if (argc != 5) return 2;
  setbuf(stdout, NULL); /* no buffer that would count as growth */
  load_host(argv[1]);
  must(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "cycles", &env), "CreateEnv");
  for (int i = 0; i < atoi(argv[4]); i++) {
    cycle(env, argv[2], argv[3]);
    if (is_mapped(argv[2])) must(api->CreateStatus(ORT_FAIL, "still mapped"), "the unregistered library");
    size_t now = mallinfo2().uordblks;
    if (i == 1) heap = now;
    if (i > 1) printf("grown by %ld bytes\n", (long)now - (long)heap);
  }
  api->ReleaseEnv(env);
  return 0;
}
