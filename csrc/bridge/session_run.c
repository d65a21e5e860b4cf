/* Runs of a session from Python: values over arrays, Run, and all about the outputs in one flat array. */
#include "bridge/session_run.h"

#include <stdbool.h>
#include <string.h>

static OrtStatus* make_inputs(const BridgeSessionNames* names, const void* const* data, const int64_t* shapes,
                              OrtValue** values) {
  const OrtApi* api = names->api;
  for (size_t i = 0; i < names->num_inputs; i++) {
    const size_t rank = (size_t)shapes[2];
    /* a session does not write its inputs */
    OrtStatus* status = api->CreateTensorWithDataAsOrtValue(names->input_memory, (void*)(uintptr_t)data[i],
                                                            (size_t)shapes[1], shapes + 3, rank,
                                                            (ONNXTensorElementDataType)shapes[0], &values[i]);
    if (status) return status;
    shapes += 3 + rank;
  }
  return NULL;
}

/* True, and all about it in out, for a tensor with elements in output_memory or arena_memory. A status is
 * swallowed: Python asks again, and says what is wrong. */
static bool describe(const BridgeSessionNames* names, OrtValue* value, int64_t* out) {
  const OrtApi* api = names->api;
  const OrtMemoryInfo* memory = NULL;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  const int64_t* dims = NULL;
  void* data = NULL;
  size_t rank = 0, bytes = 0;
  OrtStatus* status = api->GetTensorElementTypeAndShapeDataReference(value, &type, &dims, &rank);
  if (!status && (rank > BRIDGE_SESSION_MAX_RANK || type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING))
    return false;
  if (!status) status = api->GetTensorMemoryInfo(value, &memory);
  if (!status && memory != names->output_memory && memory != names->arena_memory) return false;
  if (!status) status = api->GetTensorSizeInBytes(value, &bytes);
  if (!status) status = api->GetTensorMutableData(value, &data);
  if (status) api->ReleaseStatus(status);
  if (status || !bytes) return false;
  out[1] = (int64_t)type;
  out[2] = (int64_t)(intptr_t)data;
  out[3] = (int64_t)bytes;
  out[4] = (int64_t)rank;
  if (rank) memcpy(out + 5, dims, rank * sizeof *dims);
  return true;
}

/* Runs session once. borrows data, and shapes: for each input its element type, size in bytes, rank and
 * dimensions. In outputs (room for 1 + BRIDGE_SESSION_OUTPUT an output) it leaves how many numbers there are,
 * and for each output the OrtValue (0: none; gives it: caller releases with bridge_session_release), its
 * element type, address, size in bytes, rank and dimensions. A type of 0 says: look at the value, the rest is
 * not there. After a failure nothing is given. Any thread. */
OrtStatus* bridge_session_run(const BridgeSessionNames* names, OrtSession* session, const void* const* data,
                              const int64_t* shapes, int64_t* outputs) {
  const OrtApi* api = names->api;
  OrtValue* in[BRIDGE_SESSION_MAX_VALUES] = {NULL};
  OrtValue* out[BRIDGE_SESSION_MAX_VALUES] = {NULL};
  OrtStatus* status = make_inputs(names, data, shapes, in);
  if (!status) {
    status = api->Run(session, NULL, names->inputs, (const OrtValue* const*)in, names->num_inputs,
                      names->outputs, names->num_outputs, out);
  }
  for (size_t i = 0; i < names->num_inputs && in[i]; i++) api->ReleaseValue(in[i]);
  if (status) return status;

  int64_t* next = outputs + 1;
  for (size_t i = 0; i < names->num_outputs; i++) {
    next[0] = (int64_t)(intptr_t)out[i];
    if (!out[i] || !describe(names, out[i], next)) next[1] = next[4] = 0;
    next += 5 + next[4];
  }
  outputs[0] = next - outputs;
  return NULL;
}

/* releases a value that bridge_session_run gave. data: its elements; Python frees by their address. */
void bridge_session_release(const OrtApi* api, uintptr_t value, void* data) {
  (void)data;
  api->ReleaseValue((OrtValue*)value);
}
