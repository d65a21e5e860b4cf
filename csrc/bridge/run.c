/* Inputs and outputs of one run: everything about all inputs in one flat array, so that Python makes no call
 * an input. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

/* Notes a host's failure. Returns true if there was none. Releases status. */
static bool succeeded(BridgeRun* run, OrtStatus* status) {
  if (status) bridge_fail_with_status(&run->call, status);
  return !status;
}

static bool out_of_memory(BridgeRun* run) {
  bridge_fail(&run->call, ORT_FAIL, "out of memory");
  return false;
}

static bool count_inputs(BridgeRun* run) {
  const OrtApi* api = run->call.host->api;
  if (run->counted) return true;
  if (!succeeded(run, api->KernelContext_GetInputCount(run->context, &run->num_inputs))) return false;
  if (!succeeded(run, api->KernelContext_GetOutputCount(run->context, &run->num_outputs))) return false;
  run->values = calloc(run->num_inputs ? run->num_inputs : 1, sizeof *run->values);
  run->copies = calloc(run->num_inputs ? run->num_inputs : 1, sizeof *run->copies);
  if (!run->values || !run->copies) {
    free(run->values);
    free(run->copies);
    run->values = NULL;
    run->copies = NULL;
    return out_of_memory(run);
  }
  run->counted = 1;
  return true;
}

/* Appends room for n numbers to flat. Returns NULL without memory. */
static int64_t* append(BridgeRun* run, size_t n) {
  if (run->flat_len + n > run->flat_capacity) {
    size_t capacity = 2 * (run->flat_len + n);
    int64_t* flat = realloc(run->flat, capacity * sizeof *flat);
    if (!flat) return NULL;
    run->flat = flat;
    run->flat_capacity = capacity;
  }
  run->flat_len += n;
  return run->flat + run->flat_len - n;
}

static bool in_cpu_memory(BridgeRun* run, const OrtValue* value, bool* yes) {
  const OrtApi* api = run->call.host->api;
  const OrtMemoryInfo* memory = NULL;
  OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_CPU;
  if (!succeeded(run, api->GetTensorMemoryInfo(value, &memory))) return false;
  api->MemoryInfoGetDeviceType(memory, &device);
  *yes = device == OrtMemoryInfoDeviceType_CPU ||
         api->MemoryInfoGetDeviceMemType(memory) == OrtDeviceMemoryType_HOST_ACCESSIBLE;
  return true;
}

/* True if the run before had this type and address for the input that comes next: then it is in CPU memory as
 * it was, a host does not change the device of an input. */
static bool known_in_cpu_memory(const BridgeRun* run, int64_t type, const void* data) {
  const int64_t* before = run->previous + run->flat_len;
  if (!data || run->flat_len + BRIDGE_INPUT_HEADER > run->previous_len) return false;
  return before[0] == type && before[1] == (int64_t)(intptr_t)data && !before[2];
}

/* Type, address and memory of a tensor. */
static bool gather_tensor(BridgeRun* run, const OrtValue* value, int64_t type, const void** data, bool* cpu) {
  const OrtApi* api = run->call.host->api;
  if (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING && !succeeded(run, api->GetTensorData(value, data))) {
    return false;
  }
  return known_in_cpu_memory(run, type, *data) || in_cpu_memory(run, value, cpu);
}

/* True if input i, the last in flat, is as in the run before. Where its elements are matters only if authors
 * get them as they are. */
static bool is_unchanged(const BridgeRun* run, size_t i, size_t start) {
  const int64_t* now = run->flat + start;
  const int64_t* before = run->previous + start;
  const size_t len = run->flat_len - start;
  if (run->flat_len > run->previous_len || now[0] != before[0]) return false;
  if (now[1] != before[1] && (!now[1] || !run->copies[i].to)) return false;
  return !memcmp(now + 2, before + 2, (len - 2) * sizeof *now);
}

/* Appends input i. same is cleared if the Python value of the run before will not do. */
static bool gather_input(BridgeRun* run, size_t i, bool* same) {
  const OrtValue* value = run->values[i];
  const OrtApi* api = run->call.host->api;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  const int64_t* dims = NULL;
  const void* data = NULL;
  size_t rank = 0;
  bool cpu = true;
  int64_t kind = 0;
  if (value) {
    OrtStatus* status = api->GetTensorElementTypeAndShapeDataReference(value, &type, &dims, &rank);
    kind = status ? -1 : (int64_t)type;
    if (status) {
      api->ReleaseStatus(status);
      rank = 0;
    } else if (!gather_tensor(run, value, kind, &data, &cpu)) {
      return false;
    }
  }
  const size_t start = run->flat_len;
  int64_t* out = append(run, BRIDGE_INPUT_HEADER + rank);
  if (!out) return out_of_memory(run);
  out[0] = kind;
  out[1] = (int64_t)(intptr_t)data;
  out[2] = !cpu;
  if (!cpu) run->on_device = 1;
  out[3] = (int64_t)rank;
  if (rank) memcpy(out + BRIDGE_INPUT_HEADER, dims, rank * sizeof *dims);
  run->copies[i].from = data;
  if (kind == -1 || kind == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING || !is_unchanged(run, i, start))
    *same = false;
  return true;
}

/* Fills in run for context. *same: all inputs have the types and shapes of the run before, and the addresses
 * of those that are not copied are the same. A failure is recorded in run->call. */
bool bridge_run_gather(BridgeRun* run, OrtKernelContext* context, bool* same) {
  const OrtApi* api = run->call.host->api;
  run->context = context;
  if (!count_inputs(run)) return false;

  int64_t* previous = run->flat;
  size_t capacity = run->flat_capacity;
  run->flat = run->previous;
  run->flat_capacity = run->previous_capacity;
  run->previous = previous;
  run->previous_capacity = capacity;
  run->previous_len = run->flat_len;
  run->flat_len = 0;
  run->on_device = 0;
  *same = true;
  for (size_t i = 0; i < run->num_inputs; i++) {
    bool packed = i < 64 && (run->packed >> i & 1);
    if ((!packed && !succeeded(run, api->KernelContext_GetInput(context, i, &run->values[i]))) ||
        !gather_input(run, i, same)) {
      run->flat_len = 0;
      return false;
    }
  }
  *same = *same && run->flat_len && run->flat_len == run->previous_len;
  return true;
}

void bridge_run_clear(BridgeRun* run) {
  free(run->values);
  free(run->flat);
  free(run->previous);
  free(run->copies);
  *run = (BridgeRun){0};
}

/* ---- Outputs ---- */

/* The output with output's shape, borrowed from the host for this run; its type must be output's. NULL on
 * failure (recorded in run->call) and, with output->absent set, if nobody uses it. A dtype of 0 is filled in.
 */
OrtValue* bridge_output_value(BridgeOutput* output) {
  BridgeRun* run = output->run;
  const OrtApi* api = run->call.host->api;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  OrtValue* value = NULL;
  const int64_t* dims = NULL;
  size_t rank = 0;
  bool cpu = true;
  output->absent = 0;
  if (!succeeded(run, api->KernelContext_GetOutput(run->context, output->index, output->dims, output->rank,
                                                   &value))) {
    return NULL;
  }
  output->absent = !value;
  if (!value || output->checked) return value;
  if (!succeeded(run, api->GetTensorElementTypeAndShapeDataReference(value, &type, &dims, &rank)))
    return NULL;
  if (output->dtype == 0) output->dtype = (int)type;
  if (output->dtype != (int)type) {
    bridge_fail(&run->call, ORT_INVALID_ARGUMENT, "the model gives this output another element type");
    return NULL;
  }
  if (!in_cpu_memory(run, value, &cpu)) return NULL;
  output->elsewhere = !cpu;
  output->checked = 1;
  return value;
}

/* Finds the output's elements: a BridgeFound, and output->address. */
int bridge_output(BridgeOutput* output) {
  void* data = NULL;
  OrtValue* value = bridge_output_value(output);
  if (!value) return output->absent ? BRIDGE_OUTPUT_ABSENT : BRIDGE_OUTPUT_FAILED;
  if (!succeeded(output->run, output->run->call.host->api->GetTensorMutableData(value, &data)))
    return BRIDGE_OUTPUT_FAILED;
  output->address = (int64_t)(intptr_t)data;
  return data && output->address == output->known ? BRIDGE_OUTPUT_KNOWN : BRIDGE_OUTPUT_MOVED;
}

/* Copies output->bytes from source into the output. Returns 0 on failure. */
int bridge_put(BridgeOutput* output, const void* source) {
  int found = bridge_output(output);
  if (found == BRIDGE_OUTPUT_FAILED) return 0;
  if (found == BRIDGE_OUTPUT_ABSENT) return 1;
  if (output->elsewhere) {
    bridge_fail(&output->run->call, ORT_NOT_IMPLEMENTED,
                "the output is in device memory: a Kernel can write it, through ctx.output()");
    return 0;
  }
  if (output->bytes) memcpy((void*)(intptr_t)output->address, source, output->bytes);
  return 1;
}
