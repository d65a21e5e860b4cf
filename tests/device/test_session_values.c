/* Values of every kind next to a device, what a session says of their places, and who outlives whom. */
#include "sessions.h"

#define CHAIN "Mul x w2 a; Add a x y"
#define THREE "Mul x w2 a; Sigmoid a b; Add b w3 y"

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

static OrtValue* shaped(OrtAllocator* allocator, size_t rank, const int64_t* dims) {
  OrtValue* value = NULL;
  CHECK_OK(api()->CreateTensorAsOrtValue(allocator, dims, rank, FLOAT, &value));
  return value;
}

static bool has_shape(const OrtValue* value, size_t rank, const int64_t* dims) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  int64_t actual[16] = {0};
  size_t actual_rank = 0;
  if (!CHECK_OK(api()->GetTensorTypeAndShape(value, &info))) return false;
  CHECK_OK(api()->GetDimensionsCount(info, &actual_rank));
  CHECK_OK(api()->GetDimensions(info, actual, actual_rank));
  api()->ReleaseTensorTypeAndShapeInfo(info);
  return actual_rank == rank && (rank == 0 || memcmp(actual, dims, rank * sizeof *dims) == 0);
}

static OrtStatus* run(const OrtValue* x, OrtValue** y) {
  const char *input = "x", *output = "y";
  return api()->Run(session, NULL, &input, &x, 1, &output, 1, y);
}

/* ---- Shapes ---- */

static void check_empty(const char* model, size_t rank, const int64_t* dims) {
  start(model);
  for (int i = 0; i < 2; i++) {
    OrtValue *x = shaped(i == 0 ? cpu_allocator() : shared_allocator(device.memory), rank, dims), *y = NULL;
    Counts was = counts_of(&device);
    CHECK_OK(run(x, &y));
    Counts now = counts_of(&device);
    CHECK(now.to_device == was.to_device && now.to_host == was.to_host && now.launches == was.launches);
    CHECK(y != NULL && has_shape(y, rank, dims));
    api()->ReleaseValue(x);
    api()->ReleaseValue(y);
  }
  stop();
}

static void test_empty_tensors_never_reach_a_copy(void) {
  check_empty(CHAIN, 1, (int64_t[]){0});
  check_empty(CHAIN, 3, (int64_t[]){2, 0, 3});
  check_empty(THREE, 2, (int64_t[]){0, 5});
}

static void check_shape(const char* model, size_t rank, const int64_t* dims) {
  start(model);
  OrtValue *x = shaped(cpu_allocator(), rank, dims), *y = NULL;
  size_t size = 0;
  CHECK_OK(api()->GetTensorSizeInBytes(x, &size));
  for (size_t i = 0; i < size / sizeof(float); i++) data_of(x)[i] = 0.25f + (float)i;
  for (int i = 0; i < 2; i++) {
    CHECK_OK(run(x, &y));
    if (!CHECK(y != NULL && has_shape(y, rank, dims))) break;
    for (size_t k = 0; k < size / sizeof(float); k++)
      CHECK(is_close(data_of(y)[k], evaluate(model, "y", 0.25f, k)));
    api()->ReleaseValue(y);
    y = NULL;
  }
  api()->ReleaseValue(x);
  stop();
}

static void test_scalars_and_many_dimensions(void) {
  check_shape(CHAIN, 0, NULL);
  check_shape(THREE, 0, NULL);
  check_shape(CHAIN, 7, (int64_t[]){1, 2, 1, 2, 1, 1, 3});
  check_shape(THREE, 8, (int64_t[]){1, 1, 1, 1, 1, 1, 2, 2});
}

static void test_more_dimensions_than_the_device_has(void) {
  start(CHAIN);
  OrtValue *x = shaped(cpu_allocator(), 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 2}), *y = NULL;
  CHECK_FAILS(run(x, &y), ORT_INVALID_ARGUMENT, "more than 8 dimensions");
  CHECK(y == NULL);
  CHECK_RUN(session, CHAIN, 1);
  api()->ReleaseValue(x);
  stop();
}

/* Shapes change from run to run, and back: buffers are found again or made anew. */
static void test_changing_shapes(void) {
  start(THREE);
  for (int i = 0; i < 12; i++) {
    const int64_t count = (i % 4) * 5000;
    OrtValue *x = host_tensor(count, 0.5f), *y = NULL;
    CHECK_OK(run(x, &y));
    if (count != 0) CHECK(is_close(data_of(y)[0], evaluate(THREE, "y", 0.5f, 0)));
    CHECK(has_shape(y, 1, &count));
    api()->ReleaseValue(x);
    api()->ReleaseValue(y);
  }
  stop();
}

/* ---- Strings ---- */

static void test_strings_stay_on_the_host(void) {
  static const char model[] = "Output xs; Mul x w2 y";
  static const char* const inputs[] = {"xs", "x"};
  static const char* const outputs[] = {"xs", "y"};
  static const char* const texts[] = {"one", "two"};
  const int64_t two = 2;
  OrtValue *strings = NULL, *results[2] = {NULL, NULL};
  start(model);
  CHECK_OK(api()->CreateTensorAsOrtValue(cpu_allocator(), &two, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
                                         &strings));
  CHECK_OK(api()->FillStringTensor(strings, texts, 2));
  OrtValue* x = host_tensor(COUNT, 3);
  const OrtValue* given[] = {strings, x};
  Counts was = counts_of(&device);
  CHECK_OK(api()->Run(session, NULL, inputs, given, 2, outputs, 2, results));
  Counts now = counts_of(&device);
  CHECK(now.to_device - was.to_device == 1 && now.to_host - was.to_host == 1);
  char text[8] = "";
  CHECK_OK(api()->GetStringTensorElement(results[0], 3, 1, text));
  CHECK(strcmp(text, "two") == 0);
  CHECK(data_of(results[1])[1] == 8);
  for (int i = 0; i < 2; i++) api()->ReleaseValue(results[i]), api()->ReleaseValue((OrtValue*)given[i]);
  stop();
}

/* ---- What a session says ---- */

static bool is_same_memory(const OrtMemoryInfo* a, const OrtMemoryInfo* b) {
  int difference = -1;
  CHECK_OK(api()->CompareMemoryInfo(a, b, &difference));
  return difference == 0;
}

static void test_places_of_inputs_and_outputs(void) {
  static const char model[] = "Mul x1 w2 y1; Sigmoid x2 y2";
  const OrtMemoryInfo* memories[2] = {NULL, NULL};
  OrtMemoryInfo* host = NULL; /* as a session shows it, unless its options forbid an arena */
  const OrtEpDevice* devices[2] = {NULL, NULL};
  start(model);
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &host));
  CHECK_OK(api()->SessionGetMemoryInfoForInputs(session, memories, 2));
  CHECK(memories[0] != NULL && is_same_memory(memories[0], device.memory));
  CHECK(memories[1] != NULL && is_same_memory(memories[1], host));
  CHECK_OK(api()->SessionGetMemoryInfoForOutputs(session, memories, 2));
  CHECK(memories[0] != NULL && is_same_memory(memories[0], device.memory));
  CHECK(memories[1] != NULL && is_same_memory(memories[1], host));
  CHECK_OK(api()->SessionGetEpDeviceForInputs(session, devices, 2));
  CHECK(devices[0] == device.ep_device && devices[1] != device.ep_device && devices[1] != NULL);
  CHECK_OK(api()->SessionGetEpDeviceForOutputs(session, devices, 2));
  CHECK(devices[0] == device.ep_device && devices[1] != device.ep_device && devices[1] != NULL);
  CHECK_FAILS(api()->SessionGetMemoryInfoForInputs(session, memories, 1), ORT_INVALID_ARGUMENT, "2");
  CHECK_FAILS(api()->SessionGetEpDeviceForOutputs(session, devices, 3), ORT_INVALID_ARGUMENT, "2");
  api()->ReleaseMemoryInfo(host);
  stop();
}

/* The copy of x1 to the device is for the second EP, though the first has the same memory. */
static void test_ep_devices_of_inputs_on_a_shared_device(void) {
  static const char model[] = "Mul x1 w2 a; Add a x2 y";
  const OrtEpDevice* devices[2] = {NULL, NULL};
  open_env();
  device = plug("virtual");
  Device twin = plug("twin");
  session = open_session(model, (Use[]){{&device, "ops=Add"}, {&twin, "ops=Mul"}}, 2);
  CHECK_OK(api()->SessionGetEpDeviceForInputs(session, devices, 2));
  CHECK(devices[0] == twin.ep_device && devices[1] == device.ep_device);
  CHECK_OK(api()->SessionGetEpDeviceForOutputs(session, devices, 1));
  CHECK(devices[0] == device.ep_device);
  api()->ReleaseSession(session);
  session = NULL;
  unplug(&twin);
  stop();
}

/* ---- Lifetime ---- */

static void test_a_session_keeps_the_library(void) {
  start(CHAIN);
  CHECK_FAILS(api()->UnregisterExecutionProviderLibrary(env, "virtual"), ORT_FAIL, "1 session");
  CHECK_RUN(session, CHAIN, 1);
  stop();
}

/* gives: an output of a run that stays in the device's memory. */
static OrtValue* device_output(void) {
  OrtIoBinding* binding = NULL;
  OrtValue **outputs = NULL, *value = NULL;
  size_t count = 0;
  OrtValue* x = host_tensor(COUNT, 1);
  CHECK_OK(api()->CreateIoBinding(session, &binding));
  CHECK_OK(api()->BindInput(binding, "x", x));
  CHECK_OK(api()->BindOutputToDevice(binding, "y", device.memory));
  CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  CHECK_OK(api()->GetBoundOutputValues(binding, cpu_allocator(), &outputs, &count));
  if (CHECK(count == 1)) value = outputs[0];
  CHECK_OK(api()->AllocatorFree(cpu_allocator(), outputs));
  api()->ReleaseIoBinding(binding);
  api()->ReleaseValue(x);
  return value;
}

static void test_an_output_outlives_its_session(void) {
  start(CHAIN);
  OrtValue *value = device_output(), *back = host_tensor(COUNT, -1);
  api()->ReleaseSession(session);
  CHECK_FAILS(api()->UnregisterExecutionProviderLibrary(env, "virtual"), ORT_FAIL, "1 tensor");
  CHECK_OK(copy(value, back, NULL));
  CHECK(is_output(CHAIN, "y", 1, back));
  api()->ReleaseValue(back);
  api()->ReleaseValue(value);
  session = NULL;
  stop();
}

static void test_an_output_outlives_the_environment(void) {
  start(CHAIN);
  OrtValue* value = device_output();
  api()->ReleaseSession(session);
  api()->ReleaseEnv(env);
  CHECK(device.control->live_chunks == 1);
  api()->ReleaseValue(value); /* the last thing that kept it all */
  env = NULL;
}

/* gives (caller releases with ReleaseAllocator): the session's allocator for the device. */
static OrtAllocator* session_allocator(void) {
  OrtAllocator* allocator = NULL;
  CHECK_OK(api()->CreateAllocator(session, device.memory, &allocator));
  return allocator;
}

static void use(OrtAllocator* allocator) {
  void* block = NULL;
  CHECK_OK(api()->AllocatorAlloc(allocator, 64, &block));
  CHECK(block != NULL);
  CHECK_OK(api()->AllocatorFree(allocator, block));
}

static void test_allocator_session_environment(void) {
  start(CHAIN);
  OrtAllocator* allocator = session_allocator();
  use(allocator);
  api()->ReleaseAllocator(allocator);
  CHECK_RUN(session, CHAIN, 1);
  stop();
}

static void test_session_allocator_environment(void) {
  start(CHAIN);
  OrtAllocator* allocator = session_allocator();
  api()->ReleaseSession(session);
  session = NULL;
  use(allocator); /* it keeps what it needs */
  api()->ReleaseAllocator(allocator);
  stop();
}

static void test_session_environment_allocator(void) {
  start(CHAIN);
  OrtAllocator* allocator = session_allocator();
  api()->ReleaseSession(session);
  api()->ReleaseEnv(env);
  use(allocator);
  api()->ReleaseAllocator(allocator);
  env = NULL;
}

static void test_a_tensor_outlives_its_allocator(void) {
  start(CHAIN);
  OrtAllocator* allocator = session_allocator();
  OrtValue *value = tensor_from(allocator, COUNT), *source = host_tensor(COUNT, 4);
  api()->ReleaseAllocator(allocator);
  api()->ReleaseSession(session);
  session = NULL;
  CHECK_FAILS(api()->UnregisterExecutionProviderLibrary(env, "virtual"), ORT_FAIL, "1 tensor");
  CHECK_OK(copy(source, value, NULL));
  CHECK(device_holds(value, COUNT, 4));
  api()->ReleaseValue(value);
  api()->ReleaseValue(source);
  stop();
}

static void test_many_sessions_leave_nothing(void) {
  open_env();
  device = plug("virtual");
  Alive was = alive_on(&device);
  for (int i = 0; i < 25; i++) {
    session = session_on(&device, THREE);
    CHECK_RUN(session, THREE, (float)i / 8);
    api()->ReleaseSession(session);
    CHECK_ALIVE(&device, was);
  }
  session = NULL;
  stop();
}

int main(void) {
  RUN(test_empty_tensors_never_reach_a_copy);
  RUN(test_scalars_and_many_dimensions);
  RUN(test_more_dimensions_than_the_device_has);
  RUN(test_changing_shapes);
  RUN(test_strings_stay_on_the_host);
  RUN(test_places_of_inputs_and_outputs);
  RUN(test_ep_devices_of_inputs_on_a_shared_device);
  RUN(test_a_session_keeps_the_library);
  RUN(test_an_output_outlives_its_session);
  RUN(test_an_output_outlives_the_environment);
  RUN(test_allocator_session_environment);
  RUN(test_session_allocator_environment);
  RUN(test_session_environment_allocator);
  RUN(test_a_tensor_outlives_its_allocator);
  RUN(test_many_sessions_leave_nothing);
  return finish();
}
