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
  if (!run->values) return out_of_memory(run);
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

/* Appends one input. cacheable is cleared if equal numbers do not mean equal Python values. */
static bool gather_input(BridgeRun* run, const OrtValue* value, bool* cacheable) {
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
  if (kind == -1 || kind == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) *cacheable = false;
  int64_t* out = append(run, BRIDGE_INPUT_HEADER + rank);
  if (!out) return out_of_memory(run);
  out[0] = kind;
  out[1] = (int64_t)(intptr_t)data;
  out[2] = !cpu;
  if (!cpu) run->on_device = 1;
  out[3] = (int64_t)rank;
  if (rank) memcpy(out + BRIDGE_INPUT_HEADER, dims, rank * sizeof *dims);
  return true;
}

/* Fills in run for context. *same: all inputs have the types, shapes and addresses of the run before.
 * A failure is recorded in run->call. */
bool bridge_run_gather(BridgeRun* run, OrtKernelContext* context, bool* same) {
  const OrtApi* api = run->call.host->api;
  bool cacheable = true;
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
  for (size_t i = 0; i < run->num_inputs; i++) {
    bool packed = i < 64 && (run->packed >> i & 1);
    if ((!packed && !succeeded(run, api->KernelContext_GetInput(context, i, &run->values[i]))) ||
        !gather_input(run, run->values[i], &cacheable)) {
      run->flat_len = 0;
      return false;
    }
  }
  *same = cacheable && run->flat_len && run->flat_len == run->previous_len &&
          !memcmp(run->flat, run->previous, run->flat_len * sizeof *run->flat);
  return true;
}

void bridge_run_clear(BridgeRun* run) {
  free(run->values);
  free(run->flat);
  free(run->previous);
  free(run->watch);
  *run = (BridgeRun){0};
}

/* ---- The watch ---- */

/* Watches other objects from the end of this run on: the first num_arrays have a list of weak references at
 * `weak`. Python keeps them alive until the next call of this, or a run that does not end as BRIDGE_WATCHED.
 * Returns 0 without memory. */
int bridge_watch(BridgeRun* run, const uintptr_t* objects, size_t count, size_t num_arrays, size_t weak) {
  run->num_watched = 0;
  if (count > run->watch_capacity) {
    BridgeWatch* watch = realloc(run->watch, count * sizeof *watch);
    if (!watch) return 0;
    run->watch = watch;
    run->watch_capacity = count;
  }
  for (size_t i = 0; i < count; i++)
    run->watch[i] = (BridgeWatch){.object = objects[i], .weak = i < num_arrays ? objects[i] + weak : 0};
  run->num_watched = count;
  return 1;
}

/* A word of a living object. CPython has the reference count in the first; Python checks that at import. */
intptr_t bridge_word(uintptr_t address) {
  return *(const volatile intptr_t*)address;
}

/* True if nobody but Python's side of this node refers to a watched object. No GIL is needed: a thread that
 * could change such a count would have a reference, which is what this looks for. */
bool bridge_run_unwatched(BridgeRun* run) {
  bool nobody = true;
  for (size_t i = 0; i < run->num_watched; i++) {
    BridgeWatch* watch = &run->watch[i];
    intptr_t references = bridge_word(watch->object);
    if (!watch->references) watch->references = references;
    nobody = nobody && watch->references == references && !(watch->weak && bridge_word(watch->weak));
  }
  return nobody;
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
