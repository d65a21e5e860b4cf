/* What outlives what: tensors and streams keep their EP's library, and the environment. */
#include "devices.h"

static bool is_loaded(const char* name) {
  char path[512];
  library_path(name, path, sizeof path);
  void* handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (handle != NULL) dlclose(handle);
  return handle != NULL;
}

static void test_a_tensor_keeps_the_library(void) {
  open_env();
  Device device = plug("virtual");
  OrtValue *one = tensor_on(&device, 4), *two = tensor_on(&device, 4);
  CHECK_FAILS(api()->UnregisterExecutionProviderLibrary(env, "virtual"), ORT_FAIL,
              "is in use: 2 tensors; release them first");
  CHECK(is_loaded("virtual"));
  api()->ReleaseValue(one);
  CHECK_FAILS(api()->UnregisterExecutionProviderLibrary(env, "virtual"), ORT_FAIL, "is in use: 1 tensor;");
  OrtSyncStream* stream = stream_on(&device);
  CHECK_FAILS(api()->UnregisterExecutionProviderLibrary(env, "virtual"), ORT_FAIL,
              "is in use: 1 stream, 1 tensor;");
  CHECK(device.control->live_chunks == 1);
  api()->ReleaseValue(two);
  api()->ReleaseSyncStream(stream);
  CHECK(device.control->live_chunks == 0);
  unplug(&device);
  CHECK(!is_loaded("virtual"));
  close_env();
}

static void test_a_tensor_over_the_callers_memory_keeps_nothing(void) {
  const int64_t four = 4;
  float data[4] = {1, 2, 3, 4};
  OrtMemoryInfo* named = NULL;
  OrtValue* value = NULL;
  open_env();
  Device device = plug("virtual");
  CHECK_OK(api()->CreateMemoryInfo_V2("VirtualDevice host", OrtMemoryInfoDeviceType_GPU, 0xbe57, 0,
                                      OrtDeviceMemoryType_HOST_ACCESSIBLE, 0, OrtDeviceAllocator, &named));
  CHECK_OK(api()->CreateTensorWithDataAsOrtValue(named, data, sizeof data, &four, 1, FLOAT, &value));
  api()->ReleaseMemoryInfo(named);
  unplug(&device);
  CHECK(data_of(value) == data);
  api()->ReleaseValue(value);
  close_env();
}

static void test_a_tensor_that_took_memory_keeps_the_library(void) {
  const int64_t four = 4;
  OrtValue* value = NULL;
  void* data = NULL;
  open_env();
  Device device = plug("virtual");
  OrtAllocator* host = shared_allocator(device.host_memory);
  CHECK_OK(api()->AllocatorAlloc(host, 16, &data));
  CHECK_OK(api()->CreateTensorWithDataAndDeleterAsOrtValue(host, data, 16, &four, 1, FLOAT, &value));
  CHECK_FAILS(api()->UnregisterExecutionProviderLibrary(env, "virtual"), ORT_FAIL, "1 tensor");
  api()->ReleaseValue(value);
  unplug(&device);
  close_env();
}

/* A collector may release a tensor long after the environment's owner thought that all was over. */
static void test_tensors_and_streams_outlive_the_environments_release(void) {
  open_env();
  Device device = plug("virtual");
  OrtValue* value = tensor_on(&device, 4);
  OrtSyncStream* stream = stream_on(&device);
  api()->ReleaseEnv(env);
  CHECK(is_loaded("virtual"));
  api()->ReleaseValue(value);
  CHECK(is_loaded("virtual"));
  CHECK(api()->SyncStream_GetHandle(stream) != NULL);
  api()->ReleaseSyncStream(stream);
  CHECK(!is_loaded("virtual"));
  CHECK_FAILS(api()->UnregisterExecutionProviderLibrary(env, "virtual"), ORT_INVALID_ARGUMENT, "released");
}

/* Its tensors free their memory through the allocator that they came from, found or not. */
static void test_a_replaced_allocator_lives_as_long_as_its_tensors(void) {
  OrtAllocator* made = NULL;
  open_env();
  Device device = plug("virtual");
  OrtValue* value = tensor_on(&device, 4);
  CHECK_OK(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT,
                                        OrtDeviceAllocator, NULL, &made));
  CHECK(device.control->live_objects == 4);
  OrtValue* next = tensor_from(made, 4);
  api()->ReleaseValue(value);
  api()->ReleaseValue(next);
  CHECK(device.control->live_chunks == 0);
  CHECK_OK(api()->ReleaseSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_HOST_ACCESSIBLE));
  CHECK(device.control->live_objects == 2); /* that swept it out */
  unplug(&device);
  close_env();
}

static void test_an_arena_lives_as_long_as_its_tensors(void) {
  OrtAllocator *arena = NULL, *made = NULL;
  open_env();
  Device device = plug("virtual");
  CHECK_OK(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT, OrtArenaAllocator,
                                        NULL, &arena));
  OrtValue* value = tensor_from(arena, 4);
  CHECK_OK(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT,
                                        OrtDeviceAllocator, NULL, &made));
  CHECK_FAILS(api()->UnregisterExecutionProviderLibrary(env, "virtual"), ORT_FAIL, "1 tensor");
  api()->ReleaseEnv(env);
  CHECK(device.control->live_chunks == 1);
  api()->ReleaseValue(value);
  CHECK(!is_loaded("virtual"));
}

static void test_cpu_arenas_outlive_the_environments_release(void) {
  OrtMemoryInfo* memory = NULL;
  OrtAllocator* arena = NULL;
  open_env();
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  CHECK_OK(api()->CreateAndRegisterAllocator(env, memory, NULL));
  CHECK_OK(api()->GetSharedAllocator(env, memory, &arena));
  OrtValue *value = tensor_from(arena, 4), *more = tensor_from(arena, 4);
  CHECK_OK(api()->UnregisterAllocator(env, memory));
  CHECK(shared_allocator(memory) == cpu_allocator());
  data_of(value)[3] = 1;
  api()->ReleaseValue(value);
  api()->ReleaseEnv(env);
  data_of(more)[3] = 1;
  api()->ReleaseValue(more);
  api()->ReleaseMemoryInfo(memory);
}

static void test_many_cycles_leave_nothing(void) {
  open_env();
  for (int i = 0; i < 25; i++) {
    Device device = plug("virtual");
    OrtValue *source = host_tensor(8, (float)i), *there = tensor_on(&device, 8);
    OrtSyncStream* stream = stream_on(&device);
    CHECK_OK(copy(source, there, stream));
    wait_for(stream);
    CHECK(device_holds(there, 8, (float)i));
    api()->ReleaseSyncStream(stream);
    api()->ReleaseValue(there);
    api()->ReleaseValue(source);
    unplug(&device);
    CHECK(!is_loaded("virtual"));
  }
  close_env();
}

int main(void) {
  RUN(test_a_tensor_keeps_the_library);
  RUN(test_a_tensor_over_the_callers_memory_keeps_nothing);
  RUN(test_a_tensor_that_took_memory_keeps_the_library);
  RUN(test_tensors_and_streams_outlive_the_environments_release);
  RUN(test_a_replaced_allocator_lives_as_long_as_its_tensors);
  RUN(test_an_arena_lives_as_long_as_its_tensors);
  RUN(test_cpu_arenas_outlive_the_environments_release);
  RUN(test_many_cycles_leave_nothing);
  return finish();
}
