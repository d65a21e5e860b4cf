/* How long hosts take to create an environment, register a plugin and create a session, and to run it.
 *
 *   run_overhead start HOST PLUGIN MODEL          one line: start_us ready_kb
 *   run_overhead run PLUGIN MODEL HOST [HOST...]  one line a host: median ns of a Run
 *
 * HOST is a library that exports OrtGetApiBase. In `run` all hosts live in one process and take turns, so
 * that whatever slows the machine down slows all of them down. The model has one float input and one output.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ort_abi.h"

#define MAX_HOSTS   4
#define ROUNDS      101
#define RUNS        200 /* of one round */
#define WARMUP_RUNS 2000
#define ELEMENTS    4

typedef struct Host {
  const char* path;
  const OrtApi* api;
  OrtEnv* env;
  OrtSession* session;
  OrtValue* input;
  char *input_name, *output_name;
  float data[ELEMENTS];
  double ns_of_round[ROUNDS];
} Host;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void must(const Host* host, OrtStatus* status) {
  if (status == NULL) return;
  fprintf(stderr, "run_overhead: %s: %s\n", host->path, host->api->GetErrorMessage(status));
  exit(1);
}

static void load(Host* host, const char* path) {
  host->path = path;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, "OrtGetApiBase") : NULL;
  if (symbol == NULL) {
    fprintf(stderr, "run_overhead: %s\n", dlerror());
    exit(1);
  }
  const OrtApiBase*(ORT_API_CALL * get_base)(void) = NULL;
  memcpy(&get_base, &symbol, sizeof symbol);
  host->api = get_base()->GetApi(23);
}

/* The device of `plugin`: the one that was not there before it was registered. */
static const OrtEpDevice* register_plugin(Host* host, const char* plugin) {
  const OrtEpDevice* const* devices = NULL;
  size_t before = 0, after = 0;
  must(host, host->api->GetEpDevices(host->env, &devices, &before));
  must(host, host->api->RegisterExecutionProviderLibrary(host->env, "benchmark", plugin));
  must(host, host->api->GetEpDevices(host->env, &devices, &after));
  if (after == before) {
    fprintf(stderr, "run_overhead: %s offers no device\n", plugin);
    exit(1);
  }
  return devices[after - 1];
}

static void create_session(Host* host, const char* plugin, const char* model) {
  const OrtApi* api = host->api;
  OrtSessionOptions* options = NULL;
  must(host, api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "run_overhead", &host->env));
  const OrtEpDevice* device = register_plugin(host, plugin);
  must(host, api->CreateSessionOptions(&options));
  must(host, api->AddSessionConfigEntry(options, "session.disable_cpu_ep_fallback", "1"));
  must(host, api->SetIntraOpNumThreads(options, 1));
  must(host, api->SessionOptionsAppendExecutionProvider_V2(options, host->env, &device, 1, NULL, NULL, 0));
  must(host, api->CreateSession(host->env, model, options, &host->session));
  api->ReleaseSessionOptions(options);
}

static void make_input(Host* host) {
  const OrtApi* api = host->api;
  OrtAllocator* allocator = NULL;
  OrtMemoryInfo* memory = NULL;
  const int64_t dims[] = {ELEMENTS};
  must(host, api->GetAllocatorWithDefaultOptions(&allocator));
  must(host, api->SessionGetInputName(host->session, 0, allocator, &host->input_name));
  must(host, api->SessionGetOutputName(host->session, 0, allocator, &host->output_name));
  must(host, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  must(host, api->CreateTensorWithDataAsOrtValue(memory, host->data, sizeof host->data, dims, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &host->input));
  api->ReleaseMemoryInfo(memory);
}

/* As programs do it: the host makes the output, the caller releases it. */
static void run_once(const Host* host) {
  OrtValue* output = NULL;
  const char* const input_names[] = {host->input_name};
  const char* const output_names[] = {host->output_name};
  const OrtValue* const inputs[] = {host->input};
  must(host, host->api->Run(host->session, NULL, input_names, inputs, 1, output_names, 1, &output));
  host->api->ReleaseValue(output);
}

static void run_round(Host* host, int round) {
  double begin = now_ns();
  for (int i = 0; i < RUNS; i++) run_once(host);
  host->ns_of_round[round] = (now_ns() - begin) / RUNS;
}

static void release(Host* host) {
  const OrtApi* api = host->api;
  OrtAllocator* allocator = NULL;
  must(host, api->GetAllocatorWithDefaultOptions(&allocator));
  must(host, api->AllocatorFree(allocator, host->input_name));
  must(host, api->AllocatorFree(allocator, host->output_name));
  api->ReleaseValue(host->input);
  api->ReleaseSession(host->session);
  must(host, api->UnregisterExecutionProviderLibrary(host->env, "benchmark"));
  api->ReleaseEnv(host->env);
}

static long resident_kb(void) {
  char line[256];
  long kb = -1;
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    if (sscanf(line, "VmRSS: %ld", &kb) == 1) break;
  }
  if (status != NULL) fclose(status);
  return kb;
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure_start(const char* host_path, const char* plugin, const char* model) {
  Host host = {0};
  load(&host, host_path);
  double begin = now_ns();
  create_session(&host, plugin, model);
  double microseconds = (now_ns() - begin) / 1000;
  make_input(&host);
  run_once(&host);
  printf("%.1f %ld\n", microseconds, resident_kb());
  release(&host);
}

static void measure_runs(const char* plugin, const char* model, char** paths, int count) {
  static Host hosts[MAX_HOSTS];
  for (int i = 0; i < count; i++) {
    load(&hosts[i], paths[i]);
    create_session(&hosts[i], plugin, model);
    make_input(&hosts[i]);
    for (int k = 0; k < WARMUP_RUNS; k++) run_once(&hosts[i]);
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < count; i++) run_round(&hosts[i], round);
  }
  for (int i = 0; i < count; i++) {
    qsort(hosts[i].ns_of_round, ROUNDS, sizeof(double), by_value);
    printf("%.1f\n", hosts[i].ns_of_round[ROUNDS / 2]);
  }
  for (int i = 0; i < count; i++) release(&hosts[i]);
}

int main(int argc, char** argv) {
  if (argc == 5 && strcmp(argv[1], "start") == 0) {
    measure_start(argv[2], argv[3], argv[4]);
  } else if (argc >= 5 && argc <= 4 + MAX_HOSTS && strcmp(argv[1], "run") == 0) {
    measure_runs(argv[2], argv[3], argv + 4, argc - 4);
  } else {
    fprintf(stderr, "usage: %s start HOST PLUGIN MODEL | run PLUGIN MODEL HOST...\n", argv[0]);
    return 2;
  }
  return 0;
}
