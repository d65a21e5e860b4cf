/* A program as users of onnxruntime's C API write them: nothing in it knows of ort-abi.
 *   client MODEL    y = f(x), both float[2, 3]: prints the host's version and y */
#include <onnxruntime_c_api.h>
#include <onnxruntime_session_options_config_keys.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpu_provider_factory.h"

static const OrtApi* g_ort = NULL;

#define ORT_ABORT_ON_ERROR(expr)                                 \
  do {                                                           \
    OrtStatus* on_error = (expr);                                \
    if (on_error != NULL) {                                      \
      fprintf(stderr, "%s\n", g_ort->GetErrorMessage(on_error)); \
      g_ort->ReleaseStatus(on_error);                            \
      exit(1);                                                   \
    }                                                            \
  } while (0)

static OrtSession* make_session(OrtEnv* env, const ORTCHAR_T* path) {
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  ORT_ABORT_ON_ERROR(g_ort->CreateSessionOptions(&options));
  ORT_ABORT_ON_ERROR(g_ort->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_ALL));
  ORT_ABORT_ON_ERROR(g_ort->AddSessionConfigEntry(options, kOrtSessionOptionsConfigDisablePrepacking, "1"));
  ORT_ABORT_ON_ERROR(OrtSessionOptionsAppendExecutionProvider_CPU(options, 1));
  ORT_ABORT_ON_ERROR(g_ort->CreateSession(env, path, options, &session));
  g_ort->ReleaseSessionOptions(options);
  return session;
}

int main(int argc, char** argv) {
  float numbers[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[2] = {2, 3};
  const char* input_names[] = {"x"};
  const char* output_names[] = {"y"};
  OrtEnv* env = NULL;
  OrtMemoryInfo* memory = NULL;
  OrtValue *x = NULL, *y = NULL;
  float* result = NULL;
  if (argc != 2) return 2;
  g_ort = OrtGetApiBase()->GetApi(20);
  if (g_ort == NULL) return 3;
  ORT_ABORT_ON_ERROR(g_ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "client", &env));
  OrtSession* session = make_session(env, argv[1]);
  ORT_ABORT_ON_ERROR(g_ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  ORT_ABORT_ON_ERROR(g_ort->CreateTensorWithDataAsOrtValue(memory, numbers, sizeof numbers, shape, 2,
                                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x));
  ORT_ABORT_ON_ERROR(
      g_ort->Run(session, NULL, input_names, (const OrtValue* const*)&x, 1, output_names, 1, &y));
  ORT_ABORT_ON_ERROR(g_ort->GetTensorMutableData(y, (void**)&result));
  printf("%s:", OrtGetApiBase()->GetVersionString());
  for (int i = 0; i < 6; i++) printf(" %g", (double)result[i]);
  printf("\n");
  g_ort->ReleaseValue(y);
  g_ort->ReleaseValue(x);
  g_ort->ReleaseMemoryInfo(memory);
  g_ort->ReleaseSession(session);
  g_ort->ReleaseEnv(env);
  return 0;
}
