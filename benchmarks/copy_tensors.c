/* How long CopyTensors takes beside memcpy, in several hosts with the same EP library.
 *
 *   copy_tensors PLUGIN HOST [HOST...]
 *
 * HOST is a library that exports OrtGetApiBase. All hosts live in one process, copy the same host memory and
 * take turns with memcpy, so that whatever slows the machine down slows all of them down. One line a case,
 * medians in nanoseconds of a whole copy: memcpy's, then each host's. The cases: 64 MB and then 1000 tensors
 * of 4 KB from host to host, the same from host to device. */
#include <string.h>

#include "measure.h"

#define MAX_HOSTS    4
#define LARGE        ((size_t)64 << 20)
#define SMALL        ((size_t)4 << 10)
#define SMALL_COUNT  1000
#define ROUNDS_LARGE 31
#define ROUNDS_SMALL 301
#define MOST_ROUNDS  301

#define MUST(host, call) must((host)->api, (call), (host)->path)

typedef struct Host {
  const char* path;
  const OrtApi* api;
  OrtEnv* env;
  OrtAllocator* device_allocator;
} Host;

/* One copy of `count` tensors of `size` bytes each. */
typedef struct Case {
  size_t count, size;
  int rounds;
  char *from, *to;
} Case;

typedef struct Tensors {
  OrtValue *from[SMALL_COUNT], *to[SMALL_COUNT];
} Tensors;

static void open_host(Host* host, const char* path, const char* plugin) {
  host->path = path;
  host->api = load_host(path, 23);
  const OrtApi* api = host->api;
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  MUST(host, api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "copy_tensors", &host->env));
  MUST(host, api->RegisterExecutionProviderLibrary(host->env, "benchmark", plugin));
  MUST(host, api->GetEpDevices(host->env, &devices, &count));
  const OrtMemoryInfo* memory = api->EpDevice_MemoryInfo(devices[count - 1], OrtDeviceMemoryType_DEFAULT);
  MUST(host, api->GetSharedAllocator(host->env, memory, &host->device_allocator));
}

static OrtValue* host_tensor(const Host* host, char* data, size_t size) {
  const OrtApi* api = host->api;
  const int64_t dims[] = {(int64_t)(size / sizeof(float))};
  OrtMemoryInfo* memory = NULL;
  OrtValue* value = NULL;
  MUST(host, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  MUST(host, api->CreateTensorWithDataAsOrtValue(memory, data, size, dims, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  api->ReleaseMemoryInfo(memory);
  return value;
}

static OrtValue* device_tensor(const Host* host, size_t size) {
  const int64_t dims[] = {(int64_t)(size / sizeof(float))};
  OrtValue* value = NULL;
  MUST(host, host->api->CreateTensorAsOrtValue(host->device_allocator, dims, 1,
                                               ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  return value;
}

static void make_tensors(const Host* host, const Case* c, bool to_device, Tensors* tensors) {
  for (size_t i = 0; i < c->count; i++) {
    tensors->from[i] = host_tensor(host, c->from + i * c->size, c->size);
    tensors->to[i] =
        to_device ? device_tensor(host, c->size) : host_tensor(host, c->to + i * c->size, c->size);
  }
}

static void release_tensors(const Host* host, const Case* c, Tensors* tensors) {
  for (size_t i = 0; i < c->count; i++) {
    host->api->ReleaseValue(tensors->from[i]);
    host->api->ReleaseValue(tensors->to[i]);
  }
}

static double copy_plainly(const Case* c) {
  double begin = now_ns();
  for (size_t i = 0; i < c->count; i++) memcpy(c->to + i * c->size, c->from + i * c->size, c->size);
  return now_ns() - begin;
}

/* Negative: the host cannot. */
static double copy_by(const Host* host, const Case* c, Tensors* tensors) {
  double begin = now_ns();
  OrtStatus* status =
      host->api->CopyTensors(host->env, (const OrtValue* const*)tensors->from, tensors->to, NULL, c->count);
  if (status == NULL) return now_ns() - begin;
  host->api->ReleaseStatus(status);
  return -1;
}

static void measure(const Host* hosts, int host_count, const Case* c, bool to_device) {
  static Tensors tensors[MAX_HOSTS];
  static double ns[MAX_HOSTS + 1][MOST_ROUNDS];
  for (int h = 0; h < host_count; h++) make_tensors(&hosts[h], c, to_device, &tensors[h]);
  for (int round = -2; round < c->rounds; round++) { /* the first two warm up */
    int at = round < 0 ? 0 : round;
    ns[0][at] = copy_plainly(c);
    for (int h = 0; h < host_count; h++) ns[h + 1][at] = copy_by(&hosts[h], c, &tensors[h]);
  }
  for (int i = 0; i <= host_count; i++)
    printf("%.0f%c", median(ns[i], (size_t)c->rounds), i < host_count ? ' ' : '\n');
  for (int h = 0; h < host_count; h++) release_tensors(&hosts[h], c, &tensors[h]);
}

int main(int argc, char** argv) {
  Host hosts[MAX_HOSTS];
  int host_count = argc - 2;
  if (host_count < 1 || host_count > MAX_HOSTS) {
    fprintf(stderr, "usage: copy_tensors PLUGIN HOST [HOST...]\n");
    return 2;
  }
  for (int h = 0; h < host_count; h++) open_host(&hosts[h], argv[2 + h], argv[1]);
  char *from = malloc(LARGE), *to = malloc(LARGE);
  if (from == NULL || to == NULL) return 1;
  memset(from, 1, LARGE);
  memset(to, 2, LARGE);
  Case large = {1, LARGE, ROUNDS_LARGE, from, to}, small = {SMALL_COUNT, SMALL, ROUNDS_SMALL, from, to};
  for (int to_device = 0; to_device < 2; to_device++) {
    measure(hosts, host_count, &large, to_device != 0);
    measure(hosts, host_count, &small, to_device != 0);
  }
  for (int h = 0; h < host_count; h++) hosts[h].api->ReleaseEnv(hosts[h].env);
  free(from);
  free(to);
  return 0;
}
