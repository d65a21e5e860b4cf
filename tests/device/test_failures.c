/* Every callback of a device EP fails in turn: a clear error, nothing left behind, the next call works. */
#include "devices.h"

#define ASKED(callback) callback " was asked to fail"

typedef struct Before {
  int64_t objects, chunks;
} Before;

static Before before(const Device* device) {
  return (Before){device->control->live_objects, device->control->live_chunks};
}

static bool is_as(const Device* device, Before was) {
  return device->control->live_objects == was.objects && device->control->live_chunks == was.chunks;
}

/* The library stays loaded over a failing registration, so that it can be asked to fail. */
static void check_registration_fails(const char* callback, const char* message) {
  char path[512];
  Device device = {.name = "virtual"};
  library_path("virtual", path, sizeof path);
  void* handle = dlopen(path, RTLD_NOW);
  device.control = find_control(path, "virtual_device_control");
  if (!CHECK(device.control != NULL)) return;
  open_env();
  fail_next(&device, callback);
  CHECK_FAILS(try_plug("virtual"), ORT_EP_FAIL, message);
  CHECK(device.control->live_objects == 0 && device.control->live_chunks == 0);
  Device good = plug("virtual");
  CHECK(good.control->live_objects == 3);
  unplug(&good);
  CHECK(device.control->live_objects == 0);
  close_env();
  dlclose(handle);
}

static void test_registration(void) {
  check_registration_fails(
      "GetSupportedDevices",
      "GetSupportedDevices: VirtualDeviceExecutionProvider: " ASKED("GetSupportedDevices"));
  check_registration_fails("CreateAllocator", "OrtEpFactory::CreateAllocator for 'VirtualDevice'");
  check_registration_fails("CreateDataTransfer", "OrtEpFactory::CreateDataTransfer");
}

static void test_create_shared_allocator(void) {
  static const OrtAllocatorType types[] = {OrtDeviceAllocator, OrtArenaAllocator};
  open_env();
  Device device = plug("virtual");
  OrtAllocator* made = NULL;
  for (int i = 0; i < 2; i++) {
    CHECK_OK(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT,
                                          OrtDeviceAllocator, NULL, NULL));
    int64_t objects = device.control->live_objects;
    fail_next(&device, "CreateAllocator");
    CHECK_FAILS(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT, types[i],
                                             NULL, &made),
                ORT_EP_FAIL, ASKED("CreateAllocator"));
    /* The old one went first, as in stock. */
    CHECK(made == NULL && shared_allocator(device.memory) == NULL);
    CHECK(device.control->live_objects == objects - 1);
    CHECK(shared_allocator(device.host_memory) != NULL);
  }
  CHECK_OK(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT,
                                        OrtDeviceAllocator, NULL, &made));
  unplug(&device);
  close_env();
}

static void test_copy_tensors(void) {
  open_env();
  Device one = plug("virtual"), two = plug("other");
  OrtSyncStream* stream = stream_on(&one);
  OrtValue *source = host_tensor(4, 3), *there = tensor_on(&one, 4), *elsewhere = tensor_on(&two, 4);
  Before was_one = before(&one), was_two = before(&two);
  fail_next(&one, "CopyTensors");
  CHECK_FAILS(copy(source, there, NULL), ORT_EP_FAIL, "OrtDataTransferImpl::CopyTensors: ");
  fail_next(&one, "CopyTensors");
  CHECK_FAILS(copy(source, there, stream), ORT_EP_FAIL, ASKED("CopyTensors"));
  CHECK_OK(copy(source, there, NULL));
  fail_next(&one, "CopyTensors"); /* the first step through the CPU */
  CHECK_FAILS(copy(there, elsewhere, NULL), ORT_EP_FAIL, ASKED("CopyTensors"));
  fail_next(&two, "CopyTensors"); /* the second */
  CHECK_FAILS(copy(there, elsewhere, NULL), ORT_EP_FAIL, "OtherExecutionProvider: " ASKED("CopyTensors"));
  fail_next(&one, "Flush"); /* the wait between them */
  CHECK_FAILS(copy(there, elsewhere, stream), ORT_EP_FAIL, "OrtSyncStreamImpl::Flush: ");
  CHECK(is_as(&one, was_one) && is_as(&two, was_two));
  CHECK_OK(copy(there, elsewhere, stream));
  CHECK(device_holds(elsewhere, 4, 3));
  api()->ReleaseValue(source);
  api()->ReleaseValue(there);
  api()->ReleaseValue(elsewhere);
  api()->ReleaseSyncStream(stream);
  unplug(&one);
  unplug(&two);
  close_env();
}

static void test_create_stream(void) {
  OrtSyncStream* stream = NULL;
  open_env();
  Device device = plug("virtual");
  Before was = before(&device);
  fail_next(&device, "CreateSyncStreamForDevice");
  CHECK_FAILS(api()->CreateSyncStreamForEpDevice(device.ep_device, NULL, &stream), ORT_EP_FAIL,
              "OrtEpFactory::CreateSyncStreamForDevice: ");
  CHECK(stream == NULL && is_as(&device, was));
  stream = stream_on(&device);
  CHECK(stream != NULL);
  api()->ReleaseSyncStream(stream);
  unplug(&device); /* no use is left over */

  device = plug("plain");
  device.plain->streams_fail = true; /* OK, but NULL */
  CHECK_FAILS(api()->CreateSyncStreamForEpDevice(device.ep_device, NULL, &stream), ORT_INVALID_ARGUMENT,
              "PlainExecutionProvider: OrtSyncStreamImpl is NULL");
  unplug(&device);
  close_env();
}

static void test_out_of_device_memory(void) {
  const int64_t huge = (int64_t)1 << 40;
  OrtValue* value = NULL;
  open_env();
  Device device = plug("virtual");
  CHECK_FAILS(api()->CreateTensorAsOrtValue(shared_allocator(device.memory), &huge, 1, FLOAT, &value),
              ORT_RUNTIME_EXCEPTION, "no memory in 'VirtualDevice' for a tensor of 4398046511104 bytes");
  unplug(&device); /* the failed tensor does not keep it */
  close_env();
}

/* ---- Out of host memory: nothing is left, whatever allocation fails ---- */

static Device under_test;

static OrtStatus* make_and_release_a_stream(void) {
  OrtSyncStream* stream = NULL;
  OrtStatus* status = api()->CreateSyncStreamForEpDevice(under_test.ep_device, NULL, &stream);
  api()->ReleaseSyncStream(stream);
  return status;
}

static OrtStatus* make_an_arena(void) {
  OrtAllocator* arena = NULL;
  OrtStatus* status = api()->CreateSharedAllocator(env, under_test.ep_device, OrtDeviceMemoryType_DEFAULT,
                                                   OrtArenaAllocator, NULL, &arena);
  if (status != NULL) return status;
  void* block = arena->Alloc(arena, 1000);
  if (block == NULL) status = api()->CreateStatus(ORT_FAIL, "no block");
  arena->Free(arena, block);
  return status;
}

static OrtStatus* make_a_tensor(void) {
  const int64_t dims[] = {1, 1, 1, 1, 1, 1, 1, 2};
  OrtValue* value = NULL;
  OrtStatus* status =
      api()->CreateTensorAsOrtValue(shared_allocator(under_test.memory), dims, 8, FLOAT, &value);
  api()->ReleaseValue(value);
  return status;
}

/* An arena gets along without a description of what it would split off: not every failure is an error. */
static void check_each_allocation_failing(OrtStatus* (*make)(void), int least_errors) {
  int errors = 0;
  for (int64_t n = 0, injected = 1; injected; n++) {
    int64_t count = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = make();
    ortabi_fail_allocation(-1);
    injected = ortabi_allocation_count() - count > n;
    errors += status != NULL;
    CHECK(injected || status == NULL);
    api()->ReleaseStatus(status);
  }
  CHECK(errors >= least_errors);
}

static void test_out_of_host_memory(void) {
  enum { MANY = 40 };
  OrtValue *from[MANY], *to[MANY];
  open_env();
  under_test = plug("virtual");
  ortabi_fail_allocation(0);
  CHECK_FAILS(make_and_release_a_stream(), ORT_FAIL, "out of memory");
  ortabi_fail_allocation(-1);
  CHECK(make_and_release_a_stream() == NULL);
  CHECK_ALLOCATION_FAILURES(make_a_tensor);
  for (int i = 0; i < MANY; i++) from[i] = host_tensor(2, (float)i), to[i] = tensor_on(&under_test, 2);
  for (int n = 0; n < 2; n++) { /* the table of addresses, what the EP gets */
    ortabi_fail_allocation(n);
    CHECK_FAILS(api()->CopyTensors(env, (const OrtValue* const*)from, to, NULL, MANY), ORT_FAIL,
                "out of memory");
    ortabi_fail_allocation(-1);
  }
  CHECK_OK(api()->CopyTensors(env, (const OrtValue* const*)from, to, NULL, MANY));
  for (int i = 0; i < MANY; i++) api()->ReleaseValue(from[i]), api()->ReleaseValue(to[i]);
  check_each_allocation_failing(make_an_arena, 5);
  CHECK(under_test.control->live_objects == 3 && under_test.control->live_chunks == 1); /* the last arena's */
  unplug(&under_test);
  close_env();
}

int main(void) {
  RUN(test_registration);
  RUN(test_create_shared_allocator);
  RUN(test_copy_tensors);
  RUN(test_create_stream);
  RUN(test_out_of_device_memory);
  RUN(test_out_of_host_memory);
  return finish();
}
