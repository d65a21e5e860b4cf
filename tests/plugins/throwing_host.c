/* Does everything that a program does with an EP, in any host: throwing_host HOST.so PLUGIN.so MODEL. Prints
 * what came of each step, "<step>: ok" or "<step>: <code> <message>", what was
 * logged, and whether the guard against C++ exceptions was loaded. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort_abi.h"

static const OrtApi* api;

static void ORT_API_CALL print_log(void* param, OrtLoggingLevel severity, const char* category,
                                   const char* logid, const char* location, const char* message) {
  (void)param, (void)category, (void)logid, (void)location;
  printf("log %d %s\n", (int)severity, message);
}

/* releases `status`. */
static bool step(const char* name, OrtStatus* status) {
  bool is_good = status == NULL;
  if (is_good)
    printf("%s: ok\n", name);
  else
    printf("%s: %d %s\n", name, (int)api->GetErrorCode(status), api->GetErrorMessage(status));
  fflush(stdout);
  api->ReleaseStatus(status);
  return is_good;
}

static const OrtEpDevice* find_device(OrtEnv* env) {
  const OrtEpDevice* const* devices;
  size_t count = 0;
  if (!step("devices", api->GetEpDevices(env, &devices, &count))) return NULL;
  for (size_t i = 0; i < count; i++) {
    if (strcmp(api->EpDevice_EpName(devices[i]), "ThrowingExecutionProvider") == 0) return devices[i];
  }
  return NULL;
}

static void ask(OrtEnv* env, const OrtEpDevice* device) {
  OrtCompiledModelCompatibility compatibility;
  OrtDeviceEpIncompatibilityDetails* details = NULL;
  const OrtMemoryInfo* memory = api->EpDevice_MemoryInfo(device, OrtDeviceMemoryType_DEFAULT);
  OrtAllocator* allocator = NULL;
  OrtKeyValuePairs* stats = NULL;
  const OrtMemoryInfo* info = NULL;
  step("compatibility", api->GetModelCompatibilityForEpDevices(&device, 1, "info", &compatibility));
  step("incompatibility", api->GetHardwareDeviceEpIncompatibilityDetails(
                              env, "ThrowingExecutionProvider", api->EpDevice_Device(device), &details));
  api->ReleaseDeviceEpIncompatibilityDetails(details);
  step("allocator", api->GetSharedAllocator(env, memory, &allocator));
  if (allocator == NULL) return;
  step("stats", api->AllocatorGetStats(allocator, &stats));
  step("info", api->AllocatorGetInfo(allocator, &info));
  api->ReleaseKeyValuePairs(stats);
}

static void copy(OrtEnv* env, const OrtEpDevice* device, OrtAllocator* cpu) {
  OrtSyncStream* stream = NULL;
  OrtAllocator* allocator = NULL;
  OrtValue *host = NULL, *there = NULL;
  const int64_t dims[] = {2};
  const OrtMemoryInfo* memory = api->EpDevice_MemoryInfo(device, OrtDeviceMemoryType_DEFAULT);
  bool is_good = step("stream", api->CreateSyncStreamForEpDevice(device, NULL, &stream));
  if (is_good) api->SyncStream_GetHandle(stream);
  is_good = step("shared", api->GetSharedAllocator(env, memory, &allocator)) && allocator != NULL;
  if (is_good)
    is_good = step("device tensor", api->CreateTensorAsOrtValue(allocator, dims, 1,
                                                                ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &there));
  api->ReleaseStatus(api->CreateTensorAsOrtValue(cpu, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &host));
  if (is_good) {
    void* data = NULL;
    api->ReleaseStatus(api->GetTensorMutableData(host, &data));
    memset(data, 0, 2 * sizeof(float));
    const OrtValue* from[] = {host};
    OrtValue* to[] = {there};
    step("copy", api->CopyTensors(env, from, to, stream, 1));
  }
  api->ReleaseValue(there);
  api->ReleaseValue(host);
  api->ReleaseSyncStream(stream);
  step("copied", NULL);
}

static void run(OrtSession* session, OrtAllocator* cpu) {
  static const char* const inputs[] = {"x"};
  static const char* const outputs[] = {"y"};
  const int64_t dims[] = {2};
  OrtValue *x = NULL, *y = NULL;
  void* data = NULL;
  api->ReleaseStatus(api->CreateTensorAsOrtValue(cpu, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x));
  api->ReleaseStatus(api->GetTensorMutableData(x, &data));
  memcpy(data, (float[]){5, 6}, 2 * sizeof(float));
  if (step("run", api->Run(session, NULL, inputs, (const OrtValue* const*)&x, 1, outputs, 1, &y))) {
    api->ReleaseStatus(api->GetTensorMutableData(y, &data));
    printf("result %g %g\n", ((float*)data)[0], ((float*)data)[1]);
  }
  api->ReleaseValue(y);
  api->ReleaseValue(x);
}

static void use_session(OrtEnv* env, const OrtEpDevice* device, const char* model, OrtAllocator* cpu) {
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  const char* const keys[] = {"key"};
  const char* const values[] = {"value"};
  api->ReleaseStatus(api->CreateSessionOptions(&options));
  if (step("append",
           api->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, NULL, NULL, 0)) &&
      step("session", api->CreateSession(env, model, options, &session))) {
    step("dynamic options", api->SetEpDynamicOptions(session, keys, values, 1));
    run(session, cpu);
    run(session, cpu);
    api->ReleaseSession(session);
    step("session released", NULL);
  }
  api->ReleaseSessionOptions(options);
}

static void print_guard(void) {
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "r");
  bool is_mapped = false;
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
    is_mapped = is_mapped || strstr(line, "/libort_abi_cxx_guard.so") != NULL;
  if (maps != NULL) fclose(maps);
  printf("guard: %s\n", is_mapped ? "loaded" : "not loaded");
}

static const OrtApiBase* open_host(const char* path) {
  union {
    void* symbol;
    const OrtApiBase* (*call)(void);
  } get;
  union {
    void* symbol;
    void (*call)(void);
  } report;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  get.symbol = dlsym(library, "OrtGetApiBase");
  report.symbol = dlsym(library, "ortabi_report_crashes");
  if (report.symbol != NULL && getenv("REPORT_CRASHES") != NULL) report.call();
  return get.call();
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  OrtEnv* env = NULL;
  OrtAllocator* cpu = NULL;
  api = open_host(argv[1])->GetApi(27);
  if (!step("env", api->CreateEnvWithCustomLogger(print_log, NULL, ORT_LOGGING_LEVEL_WARNING, "test", &env)))
    return 2;
  api->ReleaseStatus(api->GetAllocatorWithDefaultOptions(&cpu));
  for (int round = 0; round < 2; round++) { /* after a failure the same is possible again */
    if (!step("register", api->RegisterExecutionProviderLibrary(env, "throwing", argv[2]))) continue;
    const OrtEpDevice* device = find_device(env);
    if (device != NULL) {
      ask(env, device);
      copy(env, device, cpu);
      use_session(env, device, argv[3], cpu);
    }
    step("unregister", api->UnregisterExecutionProviderLibrary(env, "throwing"));
  }
  api->ReleaseEnv(env);
  print_guard();
  printf("end\n");
  return 0;
}
