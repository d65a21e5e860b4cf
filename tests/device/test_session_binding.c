/* Values of a device as inputs and outputs of a Run: nothing is copied that need not be. */
#include "sessions.h"

#define CHAIN   "Mul x w2 a; Add a x y"
#define TWO_OUT "Mul x w2 y1; Add y1 x y2; Relu x2 y3"

static Device device;
static OrtSession* session;

static void start(const char* model) {
  open_env();
  device = plug("virtual");
  session = session_on(&device, model);
}

static void stop(void) {
  api()->ReleaseSession(session);
  session = NULL;
  CHECK(device.control->live_chunks == 0);
  unplug(&device);
  close_env();
}

/* gives: a tensor of the device that holds first, first + 1, ... */
static OrtValue* device_tensor(float first) {
  OrtValue *source = host_tensor(COUNT, first), *value = tensor_on(&device, COUNT);
  CHECK_OK(copy(source, value, NULL));
  api()->ReleaseValue(source);
  return value;
}

static bool device_is_output(const char* model, const char* name, float first, OrtValue* value) {
  OrtValue* back = host_tensor(COUNT, -1);
  bool is_right = CHECK_OK(copy(value, back, NULL)) && is_output(model, name, first, back);
  api()->ReleaseValue(back);
  return is_right;
}

static bool is_on_host(const OrtValue* value) {
  const OrtMemoryInfo* memory = NULL;
  OrtMemoryInfoDeviceType type;
  CHECK_OK(api()->GetTensorMemoryInfo(value, &memory));
  api()->MemoryInfoGetDeviceType(memory, &type);
  return type == OrtMemoryInfoDeviceType_CPU;
}

static OrtStatus* run(const OrtValue* x, OrtValue** y) {
  const char *input = "x", *output = "y";
  return api()->Run(session, NULL, &input, &x, 1, &output, 1, y);
}

/* ---- IoBinding ---- */

static void test_bound_device_values_are_not_copied(void) {
  OrtIoBinding* binding = NULL;
  start(CHAIN);
  CHECK_OK(api()->CreateIoBinding(session, &binding));
  OrtValue *x = device_tensor(3), *y = tensor_on(&device, COUNT);
  CHECK_OK(api()->BindInput(binding, "x", x));
  CHECK_OK(api()->BindOutput(binding, "y", y));
  for (int run = 0; run < 2; run++) {
    Counts was = counts_of(&device);
    CHECK_OK(api()->RunWithBinding(session, NULL, binding));
    /* somebody may still write to x: the EP is asked to wait for that */
    CHECK_DID(&device, was, .launches = 2, .run_starts = 1, .run_ends = 1, .flushes = 1, .syncs = 1,
              .streams = run == 0);
    CHECK(device_is_output(CHAIN, "y", 3, y));
  }
  api()->ReleaseIoBinding(binding);
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
  stop();
}

static void test_an_output_bound_to_the_device(void) {
  OrtIoBinding* binding = NULL;
  OrtValue** outputs = NULL;
  size_t count = 0;
  start(CHAIN);
  CHECK_OK(api()->CreateIoBinding(session, &binding));
  OrtValue* x = device_tensor(1);
  CHECK_OK(api()->BindInput(binding, "x", x));
  CHECK_OK(api()->BindOutputToDevice(binding, "y", device.memory));
  Counts was = counts_of(&device);
  CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  Counts now = counts_of(&device);
  CHECK(now.to_host == was.to_host && now.to_device == was.to_device && now.on_device == was.on_device);
  CHECK_OK(api()->GetBoundOutputValues(binding, cpu_allocator(), &outputs, &count));
  if (CHECK(count == 1)) {
    CHECK(!is_on_host(outputs[0]));
    CHECK(device_is_output(CHAIN, "y", 1, outputs[0]));
    api()->ReleaseValue(outputs[0]);
  }
  CHECK_OK(api()->AllocatorFree(cpu_allocator(), outputs));
  api()->ReleaseIoBinding(binding);
  api()->ReleaseValue(x);
  stop();
}

static void test_an_output_bound_to_the_host(void) {
  OrtIoBinding* binding = NULL;
  OrtMemoryInfo* host = NULL;
  OrtValue** outputs = NULL;
  size_t count = 0;
  start(CHAIN);
  CHECK_OK(api()->CreateIoBinding(session, &binding));
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &host));
  OrtValue* x = host_tensor(COUNT, 1);
  CHECK_OK(api()->BindInput(binding, "x", x));
  CHECK_OK(api()->BindOutputToDevice(binding, "y", host));
  CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  CHECK_OK(api()->GetBoundOutputValues(binding, cpu_allocator(), &outputs, &count));
  if (CHECK(count == 1)) {
    CHECK(is_on_host(outputs[0]) && is_output(CHAIN, "y", 1, outputs[0]));
    api()->ReleaseValue(outputs[0]);
  }
  CHECK_OK(api()->AllocatorFree(cpu_allocator(), outputs));
  api()->ReleaseMemoryInfo(host);
  api()->ReleaseIoBinding(binding);
  api()->ReleaseValue(x);
  stop();
}

/* ---- Run with values of the caller ---- */

static void test_preallocated_outputs(void) {
  start(CHAIN);
  OrtValue *there = tensor_on(&device, COUNT), *here = host_tensor(COUNT, -1), *x = host_tensor(COUNT, 2);
  Counts was = counts_of(&device);
  CHECK_OK(run(x, &there));
  CHECK_DID(&device, was, .to_device = 1, .with_stream = 1, .launches = 2, .run_starts = 1, .run_ends = 1,
            .flushes = 1, .streams = 1);
  CHECK(device_is_output(CHAIN, "y", 2, there));
  const float* data = data_of(here);
  CHECK_OK(run(x, &here));
  CHECK(data_of(here) == data && is_output(CHAIN, "y", 2, here));
  OrtValue *x_there = device_tensor(7), *made = NULL;
  was = counts_of(&device);
  CHECK_OK(run(x_there, &made));
  CHECK_DID(&device, was, .to_host = 1, .with_stream = 1, .launches = 2, .run_starts = 1, .run_ends = 1,
            .flushes = 1, .syncs = 1);
  CHECK(is_on_host(made) && is_output(CHAIN, "y", 7, made));
  api()->ReleaseValue(made);
  api()->ReleaseValue(x_there);
  api()->ReleaseValue(there);
  api()->ReleaseValue(here);
  api()->ReleaseValue(x);
  stop();
}

static void test_a_preallocated_output_of_another_shape(void) {
  start(CHAIN);
  OrtValue *small = host_tensor(1, -1), *x = host_tensor(COUNT, 2), *small_there = tensor_on(&device, 1);
  CHECK_FAILS(run(x, &small), ORT_INVALID_ARGUMENT, "y");
  CHECK_FAILS(run(x, &small_there), ORT_INVALID_ARGUMENT, "y");
  CHECK_RUN(session, CHAIN, 1);
  api()->ReleaseValue(small);
  api()->ReleaseValue(small_there);
  api()->ReleaseValue(x);
  stop();
}

static void test_mixed(void) {
  static const char* const inputs[] = {"x", "x2"};
  static const char* const outputs[] = {"y1", "y2", "y3"};
  start(TWO_OUT);
  OrtValue *x = device_tensor(-1), *x2 = host_tensor(COUNT, input_number(-1, 1, 0));
  OrtValue* results[] = {tensor_on(&device, COUNT), NULL, host_tensor(COUNT, 0)};
  const OrtValue* given[] = {x, x2};
  Counts was = counts_of(&device);
  CHECK_OK(api()->Run(session, NULL, inputs, given, 2, outputs, 3, results));
  CHECK_DID(&device, was, .to_device = 1, .to_host = 2, .with_stream = 3, .launches = 3, .run_starts = 1,
            .run_ends = 1, .flushes = 1, .syncs = 1, .streams = 1);
  CHECK(device_is_output(TWO_OUT, "y1", -1, results[0]));
  CHECK(is_output(TWO_OUT, "y2", -1, results[1]) && is_output(TWO_OUT, "y3", -1, results[2]));
  for (size_t i = 0; i < 3; i++) api()->ReleaseValue(results[i]);
  api()->ReleaseValue(x);
  api()->ReleaseValue(x2);
  stop();
}

/* A value of one device is an input for another: through the host. */
static void test_an_input_of_another_device(void) {
  start(CHAIN);
  Device other = plug("other");
  OrtValue *source = host_tensor(COUNT, 5), *x = tensor_on(&other, COUNT), *y = NULL;
  CHECK_OK(copy(source, x, NULL));
  CHECK_OK(run(x, &y));
  CHECK(is_output(CHAIN, "y", 5, y));
  api()->ReleaseValue(y);
  y = tensor_on(&other, COUNT);
  CHECK_OK(run(x, &y));
  CHECK(device_is_output(CHAIN, "y", 5, y));
  api()->ReleaseValue(y);
  api()->ReleaseValue(x);
  api()->ReleaseValue(source);
  unplug(&other);
  stop();
}

/* The first reader of an input is the CPU EP. */
static void test_a_device_value_for_the_cpu(void) {
  static const char model[] = "Sigmoid x a; Mul a w2 y";
  start(model);
  OrtValue *x = device_tensor(0), *y = NULL;
  CHECK_OK(run(x, &y));
  CHECK(is_output(model, "y", 0, y));
  api()->ReleaseValue(y);
  api()->ReleaseValue(x);
  stop();
}

int main(void) {
  RUN(test_bound_device_values_are_not_copied);
  RUN(test_an_output_bound_to_the_device);
  RUN(test_an_output_bound_to_the_host);
  RUN(test_preallocated_outputs);
  RUN(test_a_preallocated_output_of_another_shape);
  RUN(test_mixed);
  RUN(test_an_input_of_another_device);
  RUN(test_a_device_value_for_the_cpu);
  return finish();
}
