/* How long hosts take to create an environment, register a plugin and create a session, and to run it.
 *
 *   run_overhead start HOST PLUGIN MODEL          one line: start_us ready_kb
 *   run_overhead run PLUGIN MODEL HOST [HOST...]  one line a host: median ns of a Run
 *
 * HOST is a library that exports OrtGetApiBase. In `run` all hosts live in one process and take turns, so
 * that whatever slows the machine down slows all of them down. The model has one float input and one output.
 */
#include <string.h>

#include "measure.h"

#define MAX_HOSTS   4
#define ROUNDS      101
#define RUNS        200 /* of one round */
#define WARMUP_RUNS 2000
#define ELEMENTS    4

#define MUST(host, call) must((host)->api, (call), (host)->path)

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

/* The device of `plugin`: the one that was not there before it was registered. */
static const OrtEpDevice* register_plugin(Host* host, const char* plugin) {
  const OrtEpDevice* const* devices = NULL;
  size_t before = 0, after = 0;
  MUST(host, host->api->GetEpDevices(host->env, &devices, &before));
  MUST(host, host->api->RegisterExecutionProviderLibrary(host->env, "benchmark", plugin));
  MUST(host, host->api->GetEpDevices(host->env, &devices, &after));
  if (after == before) {
    fprintf(stderr, "run_overhead: %s offers no device\n", plugin);
    exit(1);
  }
  return devices[after - 1];
}

/* `host` has a path and an API. */
static void create_session(Host* host, const char* plugin, const char* model) {
  const OrtApi* api = host->api;
  OrtSessionOptions* options = NULL;
  MUST(host, api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "run_overhead", &host->env));
  const OrtEpDevice* device = register_plugin(host, plugin);
  MUST(host, api->CreateSessionOptions(&options));
  MUST(host, api->AddSessionConfigEntry(options, "session.disable_cpu_ep_fallback", "1"));
  MUST(host, api->SetIntraOpNumThreads(options, 1));
  MUST(host, api->SessionOptionsAppendExecutionProvider_V2(options, host->env, &device, 1, NULL, NULL, 0));
  MUST(host, api->CreateSession(host->env, model, options, &host->session));
  api->ReleaseSessionOptions(options);
}

static void make_input(Host* host) {
  const OrtApi* api = host->api;
  OrtAllocator* allocator = NULL;
  OrtMemoryInfo* memory = NULL;
  const int64_t dims[] = {ELEMENTS};
  MUST(host, api->GetAllocatorWithDefaultOptions(&allocator));
  MUST(host, api->SessionGetInputName(host->session, 0, allocator, &host->input_name));
  MUST(host, api->SessionGetOutputName(host->session, 0, allocator, &host->output_name));
  MUST(host, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  MUST(host, api->CreateTensorWithDataAsOrtValue(memory, host->data, sizeof host->data, dims, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &host->input));
  api->ReleaseMemoryInfo(memory);
}

/* As programs do it: the host makes the output, the caller releases it. */
static void run_once(const Host* host) {
  OrtValue* output = NULL;
  const char* const input_names[] = {host->input_name};
  const char* const output_names[] = {host->output_name};
  const OrtValue* const inputs[] = {host->input};
  MUST(host, host->api->Run(host->session, NULL, input_names, inputs, 1, output_names, 1, &output));
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
  MUST(host, api->GetAllocatorWithDefaultOptions(&allocator));
  MUST(host, api->AllocatorFree(allocator, host->input_name));
  MUST(host, api->AllocatorFree(allocator, host->output_name));
  api->ReleaseValue(host->input);
  api->ReleaseSession(host->session);
  MUST(host, api->UnregisterExecutionProviderLibrary(host->env, "benchmark"));
  api->ReleaseEnv(host->env);
}

static void measure_start(const char* host_path, const char* plugin, const char* model) {
  Host host = {.path = host_path, .api = load_host(host_path, 23)};
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
    hosts[i].path = paths[i];
    hosts[i].api = load_host(paths[i], 23);
    create_session(&hosts[i], plugin, model);
    make_input(&hosts[i]);
    for (int k = 0; k < WARMUP_RUNS; k++) run_once(&hosts[i]);
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < count; i++) run_round(&hosts[i], round);
  }
  for (int i = 0; i < count; i++) printf("%.1f\n", median(hosts[i].ns_of_round, ROUNDS));
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
