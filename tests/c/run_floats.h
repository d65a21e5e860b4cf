/* Runs of models with one input x, float[2,3], and one float output y of six elements. */
#ifndef TESTS_C_RUN_FLOATS_H
#define TESTS_C_RUN_FLOATS_H

#include <math.h>

#include "harness.h"

#define ELEMENTS 6

/* `options` may be NULL. Any thread. */
static inline OrtStatus* run_floats(OrtSession* session, const OrtRunOptions* options, float* result) {
  float data[ELEMENTS] = {1, -2, 3, -4, 5, -6};
  const int64_t dims[] = {2, 3};
  const char *const inputs[] = {"x"}, *const outputs[] = {"y"};
  OrtMemoryInfo* memory = NULL;
  OrtValue *input = NULL, *output = NULL;
  const void* out = NULL;
  OrtStatus* status = api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory);
  if (status == NULL)
    status = api()->CreateTensorWithDataAsOrtValue(memory, data, sizeof data, dims, 2,
                                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input);
  if (status == NULL)
    status = api()->Run(session, options, inputs, (const OrtValue* const*)&input, 1, outputs, 1, &output);
  if (status == NULL) status = api()->GetTensorData(output, &out);
  if (status == NULL) memcpy(result, out, ELEMENTS * sizeof(float));
  api()->ReleaseValue(output);
  api()->ReleaseValue(input);
  api()->ReleaseMemoryInfo(memory);
  return status;
}

static inline void check_run(OrtSession* session, const float* expected) {
  float result[ELEMENTS] = {0};
  CHECK_OK(run_floats(session, NULL, result));
  for (size_t i = 0; i < ELEMENTS; i++) CHECK(fabsf(result[i] - expected[i]) < 1e-6f);
}

#endif
