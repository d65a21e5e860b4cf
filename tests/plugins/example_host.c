/* A host program for any library of the ABI, which it loads by path:
 *
 *   example_host <host library> <plugin library> <scenario> <folder of models>
 *
 * Prints what comes of each step: "<step>: ok", or "<step>: <code>"; numbers that it reads back. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort_abi.h"

#define FLOAT ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT

static const OrtApi* api;
static OrtEnv* env;
static const OrtEpDevice* device;
static const char* models;

/* releases `status`. The message goes to stderr: hosts have their own. */
static bool report(const char* step, OrtStatus* status) {
  bool is_good = status == NULL;
  if (is_good) {
    printf("%s: ok\n", step);
  } else {
    printf("%s: failed\n", step);
    fprintf(stderr, "%s: %d %s\n", step, (int)api->GetErrorCode(status), api->GetErrorMessage(status));
  }
  fflush(stdout);
  api->ReleaseStatus(status);
  return is_good;
}

/* The same for what must work. */
static void must(OrtStatus* status, const char* call) {
  if (status == NULL) return;
  printf("%s: failed\n", call);
  fprintf(stderr, "%s: %s\n", call, api->GetErrorMessage(status));
  exit(1);
}
#define MUST(call) must((call), #call)

static void ORT_API_CALL print_log(void* param, OrtLoggingLevel severity, const char* category,
                                   const char* logid, const char* location, const char* message) {
  (void)param, (void)category, (void)logid, (void)location;
  fprintf(stderr, "log %d %s\n", (int)severity, message);
}

static const OrtEpDevice* find_device(const char* name, size_t nth) {
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  MUST(api->GetEpDevices(env, &all, &count));
  for (size_t i = 0; i < count; i++) {
    if (strcmp(api->EpDevice_EpName(all[i]), name) == 0 && nth-- == 0) return all[i];
  }
  return NULL;
}

static const OrtMemoryInfo* memory_of(OrtDeviceMemoryType type) {
  return api->EpDevice_MemoryInfo(device, type);
}

static OrtAllocator* shared_allocator(const OrtMemoryInfo* memory) {
  OrtAllocator* allocator = NULL;
  MUST(api->GetSharedAllocator(env, memory, &allocator));
  return allocator;
}

static OrtAllocator* cpu_allocator(void) {
  OrtAllocator* allocator = NULL;
  MUST(api->GetAllocatorWithDefaultOptions(&allocator));
  return allocator;
}

static OrtValue* tensor_from(OrtAllocator* allocator, int64_t count) {
  OrtValue* value = NULL;
  MUST(api->CreateTensorAsOrtValue(allocator, &count, 1, FLOAT, &value));
  return value;
}

static float* data_of(OrtValue* value) {
  void* data = NULL;
  MUST(api->GetTensorMutableData(value, &data));
  return data;
}

static OrtValue* host_tensor(int64_t count, float first) {
  OrtValue* value = tensor_from(cpu_allocator(), count);
  for (int64_t i = 0; i < count; i++) data_of(value)[i] = first + (float)i;
  return value;
}

static OrtStatus* copy(OrtValue* from, OrtValue* to, OrtSyncStream* stream) {
  const OrtValue* source = from;
  return api->CopyTensors(env, &source, &to, stream, 1);
}

static void print_values(const char* what, OrtValue* value, int64_t count) {
  printf("%s:", what);
  for (int64_t i = 0; i < count; i++) printf(" %g", (double)data_of(value)[i]);
  printf("\n");
}

/* ---- Sessions ---- */

static OrtSession* open_session(const char* model, const char* key, const char* value, const char* profile) {
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  char path[1024];
  snprintf(path, sizeof path, "%s/%s.onnx", models, model);
  MUST(api->CreateSessionOptions(&options));
  MUST(api->SetSessionGraphOptimizationLevel(options, ORT_DISABLE_ALL));
  if (key != NULL) MUST(api->AddSessionConfigEntry(options, key, value));
  if (profile != NULL) MUST(api->EnableProfiling(options, profile));
  MUST(api->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, NULL, NULL, 0));
  report("session", api->CreateSession(env, path, options, &session));
  api->ReleaseSessionOptions(options);
  return session;
}

/* x is 1, 2, 3, ...; y is made. */
static void run(OrtSession* session, int64_t count, OrtRunOptions* options) {
  const char *const inputs[] = {"x"}, *const outputs[] = {"y"};
  OrtValue *x = host_tensor(count, 1), *y = NULL;
  const OrtValue* given = x;
  if (report("run", api->Run(session, options, inputs, &given, 1, outputs, 1, &y)))
    print_values("y", y, count);
  api->ReleaseValue(x);
  api->ReleaseValue(y);
}

/* ---- Scenarios ---- */

static void scenario_register(void) {
  int difference = 1;
  const OrtMemoryInfo* info = NULL;
  for (int type = OrtDeviceMemoryType_DEFAULT; type <= OrtDeviceMemoryType_HOST_ACCESSIBLE;
       type += OrtDeviceMemoryType_HOST_ACCESSIBLE - OrtDeviceMemoryType_DEFAULT) {
    OrtAllocator* allocator = shared_allocator(memory_of((OrtDeviceMemoryType)type));
    printf("allocator: %s\n", allocator != NULL ? "there" : "none");
    if (allocator == NULL) continue;
    MUST(api->AllocatorGetInfo(allocator, &info));
    MUST(api->CompareMemoryInfo(info, memory_of((OrtDeviceMemoryType)type), &difference));
    printf("info: %s\n", difference == 0 ? "equal" : "different");
  }
}

static void scenario_run(void) {
  const char* const names[] = {"static", "dynamic", "kernel", "weight"};
  for (size_t i = 0; i < 4; i++) {
    printf("model: %s\n", names[i]);
    OrtSession* session = open_session(names[i], NULL, NULL, NULL);
    if (session == NULL) continue;
    for (int k = 0; k < 2; k++) run(session, 4, NULL);
    api->ReleaseSession(session);
  }
}

static void scenario_copy(void) {
  OrtSyncStream* stream = NULL;
  OrtValue *from = host_tensor(5, 1), *back = host_tensor(5, -9);
  OrtValue* far = tensor_from(shared_allocator(memory_of(OrtDeviceMemoryType_DEFAULT)), 5);
  OrtValue* pinned = tensor_from(shared_allocator(memory_of(OrtDeviceMemoryType_HOST_ACCESSIBLE)), 5);
  report("to device", copy(from, far, NULL));
  report("to pinned", copy(far, pinned, NULL));
  print_values("pinned", pinned, 5);
  report("stream", api->CreateSyncStreamForEpDevice(device, NULL, &stream));
  report("back", copy(far, back, stream));
  print_values("back", back, 5);
  api->ReleaseSyncStream(stream);
  api->ReleaseValue(from);
  api->ReleaseValue(back);
  api->ReleaseValue(far);
  api->ReleaseValue(pinned);
}

static void print_values_of_pinned(OrtAllocator* allocator) {
  OrtValue* value = tensor_from(allocator, 2);
  data_of(value)[0] = data_of(value)[1] = 3;
  print_values("pinned", value, 2);
  api->ReleaseValue(value);
}

static void use(OrtAllocator* allocator) {
  OrtValue *value = tensor_from(allocator, 3), *from = host_tensor(3, 7), *back = host_tensor(3, 0);
  MUST(copy(from, value, NULL));
  MUST(copy(value, back, NULL));
  print_values("through", back, 3);
  api->ReleaseValue(value);
  api->ReleaseValue(from);
  api->ReleaseValue(back);
}

/* A replacing allocator has its options; what is released is gone until a new one is made. */
static void scenario_replace(void) {
  OrtKeyValuePairs* options = NULL;
  OrtAllocator* made = NULL;
  const OrtMemoryInfo* memory = memory_of(OrtDeviceMemoryType_DEFAULT);
  api->CreateKeyValuePairs(&options);
  api->AddKeyValuePair(options, "arena.max_mem", "1000");
  report("create", api->CreateSharedAllocator(env, device, OrtDeviceMemoryType_DEFAULT, OrtDeviceAllocator,
                                              options, &made));
  printf("found: %s\n", shared_allocator(memory) == made ? "it" : "another");
  use(made);
  printf("2000 bytes: %s\n", made->Alloc(made, 2000) != NULL ? "there" : "none");
  report("release", api->ReleaseSharedAllocator(env, device, OrtDeviceMemoryType_DEFAULT));
  printf("found: %s\n", shared_allocator(memory) != NULL ? "one" : "none");
  report("create", api->CreateSharedAllocator(env, device, OrtDeviceMemoryType_DEFAULT, OrtDeviceAllocator,
                                              NULL, &made));
  use(made);
  report("create", api->CreateSharedAllocator(env, device, OrtDeviceMemoryType_HOST_ACCESSIBLE,
                                              OrtDeviceAllocator, NULL, &made));
  print_values_of_pinned(made);
  api->ReleaseKeyValuePairs(options);
}

/* With a session that has the arena too. */
static void scenario_replace_in_use(void) {
  OrtAllocator* made = NULL;
  OrtSession* session = open_session("static", NULL, NULL, NULL);
  run(session, 4, NULL);
  report("create", api->CreateSharedAllocator(env, device, OrtDeviceMemoryType_DEFAULT, OrtDeviceAllocator,
                                              NULL, &made));
  run(session, 4, NULL);
  report("release", api->ReleaseSharedAllocator(env, device, OrtDeviceMemoryType_DEFAULT));
  run(session, 4, NULL);
  api->ReleaseSession(session);
}

static void scenario_sync(void) {
  const OrtMemoryInfo* memory = memory_of(OrtDeviceMemoryType_DEFAULT);
  const char* const names[] = {"static", "dynamic"};
  for (size_t i = 0; i < 2; i++) {
    OrtSession* session = open_session(names[i], NULL, NULL, NULL);
    OrtIoBinding* binding = NULL;
    OrtValue *x = host_tensor(4, 1), *far = tensor_from(shared_allocator(memory), 4);
    MUST(copy(x, far, NULL));
    MUST(api->CreateIoBinding(session, &binding));
    report("inputs of nothing", api->SynchronizeBoundInputs(binding));
    MUST(api->BindInput(binding, "x", i == 0 ? far : x));
    MUST(api->BindOutputToDevice(binding, "y", memory));
    report("inputs", api->SynchronizeBoundInputs(binding));
    report("run", api->RunWithBinding(session, NULL, binding));
    report("outputs", api->SynchronizeBoundOutputs(binding));
    api->ReleaseIoBinding(binding);
    api->ReleaseValue(x);
    api->ReleaseValue(far);
    api->ReleaseSession(session);
  }
}

static void scenario_profile(void) {
  OrtRunOptions* options = NULL;
  MUST(api->CreateRunOptions(&options));
  MUST(api->RunOptionsEnableProfiling(options, "single_run"));
  OrtSession* session = open_session("static", NULL, NULL, NULL);
  printf("plain run\n");
  run(session, 4, NULL);
  printf("profiled run\n");
  run(session, 4, options);
  printf("profiled run\n");
  run(session, 4, options);
  api->ReleaseSession(session);
  session = open_session("static", NULL, NULL, "whole_session");
  printf("profiled run\n");
  run(session, 4, options);
  api->ReleaseSession(session);
  api->ReleaseRunOptions(options);
}

/* ---- The application's own allocators ---- */

typedef struct Own {
  OrtAllocator base;
  const OrtMemoryInfo* memory;
  int blocks, allocations;
} Own;

static void* ORT_API_CALL own_alloc(OrtAllocator* this_, size_t size) {
  Own* own = (Own*)this_;
  own->allocations++;
  own->blocks++;
  return aligned_alloc(64, (size + 64) / 64 * 64);
}

static void ORT_API_CALL own_free(OrtAllocator* this_, void* p) {
  if (p != NULL) ((Own*)this_)->blocks--;
  free(p);
}

static const OrtMemoryInfo* ORT_API_CALL own_info(const OrtAllocator* this_) {
  return ((const Own*)this_)->memory;
}

static Own own_allocator(const OrtMemoryInfo* memory) {
  return (Own){.base = {.version = ORT_API_VERSION,
                        .Alloc = own_alloc,
                        .Free = own_free,
                        .Info = own_info,
                        .Reserve = own_alloc},
               .memory = memory};
}

static void scenario_register_allocator(void) {
  OrtMemoryInfo *cpu = NULL, *nowhere = NULL;
  MUST(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  MUST(api->CreateMemoryInfo_V2("Nowhere", OrtMemoryInfoDeviceType_NPU, 1, 0, OrtDeviceMemoryType_DEFAULT, 0,
                                OrtDeviceAllocator, &nowhere));
  const OrtMemoryInfo* memories[] = {cpu, nowhere, memory_of(OrtDeviceMemoryType_DEFAULT)};
  for (size_t i = 0; i < 3; i++) {
    Own first = own_allocator(memories[i]), second = own_allocator(memories[i]);
    report("register", api->RegisterAllocator(env, &first.base));
    printf("found: %s\n", shared_allocator(memories[i]) == &first.base ? "it" : "another");
    report("register", api->RegisterAllocator(env, &second.base));
    printf("found: %s\n", shared_allocator(memories[i]) == &second.base ? "it" : "another");
    report("register", api->RegisterAllocator(env, &second.base));
    report("unregister", api->UnregisterAllocator(env, memories[i]));
    report("unregister", api->UnregisterAllocator(env, memories[i]));
  }
  report("arena", api->CreateAndRegisterAllocator(env, cpu, NULL));
  report("arena", api->CreateAndRegisterAllocator(env, cpu, NULL));
  report("unregister", api->UnregisterAllocator(env, cpu));
  report("unregister", api->UnregisterAllocator(env, cpu));
  api->ReleaseMemoryInfo(cpu);
  api->ReleaseMemoryInfo(nowhere);
}

/* Sessions with the option get the environment's allocators, of the CPU and of the device. */
static void scenario_env_allocators(void) {
  OrtMemoryInfo* cpu = NULL;
  const char* const values[] = {"0", "1"};
  MUST(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  Own own = own_allocator(cpu);
  MUST(api->RegisterAllocator(env, &own.base));
  for (size_t i = 0; i < 2; i++) {
    printf("use_env_allocators: %s\n", values[i]);
    own.allocations = 0;
    OrtSession* session = open_session("dynamic", "session.use_env_allocators", values[i], NULL);
    run(session, 4, NULL);
    printf("own allocations: %s\n", own.allocations > 0 ? "some" : "none");
    OrtAllocator* of_session = NULL;
    int before = own.allocations;
    void* block = NULL;
    MUST(api->CreateAllocator(session, cpu, &of_session));
    MUST(api->AllocatorAlloc(of_session, 8, &block));
    printf("of the session: %s\n", own.allocations > before ? "own" : "another");
    MUST(api->AllocatorFree(of_session, block));
    api->ReleaseAllocator(of_session);
    api->ReleaseSession(session);
    session = open_session("static", "session.use_env_allocators", values[i], NULL);
    run(session, 4, NULL);
    api->ReleaseSession(session);
  }
  printf("blocks left: %d\n", own.blocks);
  MUST(api->UnregisterAllocator(env, cpu));
  api->ReleaseMemoryInfo(cpu);
}

/* Tensors without elements. */
static void scenario_empty(void) {
  OrtValue* far = NULL;
  int64_t none = 0;
  const char* const names[] = {"dynamic", "empty_static", "empty_kernel", "empty_mixed", "empty_weight"};
  const OrtMemoryInfo* memory = memory_of(OrtDeviceMemoryType_DEFAULT);
  report("tensor", api->CreateTensorAsOrtValue(shared_allocator(memory), &none, 1, FLOAT, &far));
  printf("data: %s\n", data_of(far) != NULL ? "there" : "NULL");
  OrtValue* near = tensor_from(cpu_allocator(), 0);
  report("to device", copy(near, far, NULL));
  report("back", copy(far, near, NULL));
  for (size_t i = 0; i < 5; i++) {
    OrtSession* session = open_session(names[i], NULL, NULL, NULL);
    if (session == NULL) continue;
    run(session, 0, NULL);
    OrtIoBinding* binding = NULL;
    MUST(api->CreateIoBinding(session, &binding));
    MUST(api->BindInput(binding, "x", i == 0 ? near : far));
    MUST(api->BindOutputToDevice(binding, "y", memory));
    report("bound run", api->RunWithBinding(session, NULL, binding));
    api->ReleaseIoBinding(binding);
    api->ReleaseSession(session);
  }
  api->ReleaseValue(far);
  api->ReleaseValue(near);
}

static void scenario_two_devices(void) {
  for (size_t i = 0; i < 2; i++) {
    device = find_device("ExampleArchitectureEp", i);
    printf("device %zu\n", i);
    scenario_register();
    scenario_copy();
    OrtSession* session = open_session("static", NULL, NULL, NULL);
    if (session != NULL) run(session, 4, NULL);
    api->ReleaseSession(session);
    scenario_replace();
  }
}

static const struct {
  const char* name;
  void (*play)(void);
} scenarios[] = {{"register", scenario_register},
                 {"run", scenario_run},
                 {"copy", scenario_copy},
                 {"replace", scenario_replace},
                 {"replace_in_use", scenario_replace_in_use},
                 {"sync", scenario_sync},
                 {"profile", scenario_profile},
                 {"register_allocator", scenario_register_allocator},
                 {"env_allocators", scenario_env_allocators},
                 {"empty", scenario_empty},
                 {"two_devices", scenario_two_devices}};

static void play(const char* name) {
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
    if (strcmp(scenarios[i].name, name) == 0) scenarios[i].play();
  }
}

int main(int argc, char** argv) {
  const OrtApiBase* (*get_base)(void) = NULL;
  void* library = argc == 5 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  void* symbol = library != NULL ? dlsym(library, "OrtGetApiBase") : NULL;
  if (symbol == NULL) {
    fprintf(stderr, "no host: %s\n", argc == 5 ? dlerror() : "four arguments are needed");
    return 2;
  }
  memcpy(&get_base, &symbol, sizeof get_base);
  api = get_base()->GetApi(ORT_API_VERSION);
  models = argv[4];
  MUST(api->CreateEnvWithCustomLogger(print_log, NULL, ORT_LOGGING_LEVEL_WARNING, "example", &env));
  if (report("register", api->RegisterExecutionProviderLibrary(env, "example", argv[2]))) {
    device = find_device("ExampleArchitectureEp", 0);
    play(argv[3]);
    report("unregister", api->UnregisterExecutionProviderLibrary(env, "example"));
  }
  api->ReleaseEnv(env);
  printf("end\n");
  return 0;
}
