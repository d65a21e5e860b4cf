/* Resident memory of a process with sessions on one model, in any host.
 *
 *   prepack_memory HOST_LIBRARY MODEL private|shared|given SESSIONS [WEIGHTS COUNT ROWS COLUMNS]
 *
 * shared: all sessions have one container of pre-packed weights. given: they also get the weights, which lie
 * in the file WEIGHTS one behind the other and are called w0, w1, ..., with AddInitializer: without that
 * stock onnxruntime shares nothing. Runs each session once, then prints the resident kB without and with the
 * sessions, and the first output's first element. */
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "measure.h"

#define MAX_SESSIONS 64
#define MUST(call)   must(api, (call), #call)

static const OrtApi* api;

/* The application's own weights. Their pages count only while somebody reads them. */
typedef struct Weights {
  char* data;
  size_t size;
} Weights;

static Weights map_weights(const char* path) {
  struct stat info;
  int file = open(path, O_RDONLY);
  if (file < 0 || fstat(file, &info) != 0) exit(1);
  Weights weights = {.size = (size_t)info.st_size};
  weights.data = mmap(NULL, weights.size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  close(file);
  return weights;
}

static OrtValue* new_tensor(void* data, const int64_t* dims, size_t rank) {
  OrtMemoryInfo* memory = NULL;
  OrtValue* value = NULL;
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) count *= (size_t)dims[i];
  MUST(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  MUST(api->CreateTensorWithDataAsOrtValue(memory, data, count * sizeof(float), dims, rank,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  api->ReleaseMemoryInfo(memory);
  return value;
}

static void give_weights(OrtSessionOptions* options, const Weights* weights, int count, const int64_t* dims) {
  size_t size = (size_t)dims[0] * (size_t)dims[1] * sizeof(float);
  for (int i = 0; i < count; i++) {
    char name[16];
    snprintf(name, sizeof name, "w%d", i);
    MUST(api->AddInitializer(options, name, new_tensor(weights->data + (size_t)i * size, dims, 2)));
  }
}

static float run(OrtSession* session, int64_t columns) {
  static const char *const inputs[] = {"x"}, *const outputs[] = {"y"};
  const int64_t dims[] = {1, columns};
  float* elements = calloc((size_t)columns, sizeof *elements);
  for (int64_t i = 0; i < columns; i++) elements[i] = (float)(i % 7) - 3;
  OrtValue *x = new_tensor(elements, dims, 2), *y = NULL;
  void* data = NULL;
  MUST(api->Run(session, NULL, inputs, (const OrtValue* const*)&x, 1, outputs, 1, &y));
  MUST(api->GetTensorMutableData(y, &data));
  float first = *(const float*)data;
  api->ReleaseValue(x);
  api->ReleaseValue(y);
  free(elements);
  return first;
}

int main(int argc, char** argv) {
  OrtEnv* env = NULL;
  OrtSessionOptions* options = NULL;
  OrtPrepackedWeightsContainer* container = NULL;
  OrtSession* sessions[MAX_SESSIONS];
  if (argc != 9) return 2;
  api = load_host(argv[1], 24);
  int count = atoi(argv[4]);
  const int64_t dims[] = {atoi(argv[7]), atoi(argv[8])};
  Weights weights = map_weights(argv[5]);
  MUST(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "memory", &env));
  MUST(api->CreateSessionOptions(&options));
  MUST(api->SetIntraOpNumThreads(options, 1));
  if (strcmp(argv[3], "given") == 0) give_weights(options, &weights, atoi(argv[6]), dims);
  if (strcmp(argv[3], "private") != 0) MUST(api->CreatePrepackedWeightsContainer(&container));
  long before = resident_kb();
  for (int i = 0; i < count; i++) {
    if (container != NULL)
      MUST(api->CreateSessionWithPrepackedWeightsContainer(env, argv[2], options, container, &sessions[i]));
    else
      MUST(api->CreateSession(env, argv[2], options, &sessions[i]));
  }
  float first = 0;
  for (int i = 0; i < count; i++) first = run(sessions[i], dims[0]);
  madvise(weights.data, weights.size, MADV_DONTNEED);
  malloc_trim(0); /* what malloc only keeps for later does not count */
  printf("%ld %ld %.9g\n", before, resident_kb(), (double)first);
  return 0;
}
