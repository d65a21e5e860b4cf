/* What the device tests share: registering the device libraries, and tensors on them.
 *
 * The folder of the libraries is in DEVICE_LIBRARIES: libvirtual.so (the sample), libother.so (the sample
 * again, as another device), libtwin.so (once more: another EP for the first one's device), libpair.so (once
 * more: two devices in one library), libplain.so (plain_device.c), libkernels.so (kernel_device.c) and
 * libneighbours.so (again: another EP for the first one's device). */
#ifndef TESTS_DEVICE_DEVICES_H
#define TESTS_DEVICE_DEVICES_H

#include <dlfcn.h>
#include <stdlib.h>

#include "../../samples/c_plugin_device/control.h"
#include "harness.h"
#include "plain_control.h"

#define FLOAT ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT

static OrtEnv* env;

typedef struct Device {
  char name[32]; /* registered by */
  const OrtEpDevice* ep_device;
  const OrtMemoryInfo *memory, *host_memory;
  VirtualDeviceControl* control; /* of a sample's library */
  PlainControl* plain;           /* of libplain.so */
} Device;

static inline void open_env(void) {
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "devices", &env));
}

static inline void close_env(void) {
  api()->ReleaseEnv(env);
  env = NULL;
}

/* "plain.v1" -> <DEVICE_LIBRARIES>/libplain.so */
static inline void library_path(const char* name, char* path, size_t size) {
  snprintf(path, size, "%s/lib%.*s.so", getenv("DEVICE_LIBRARIES"), (int)strcspn(name, "."), name);
}

static inline OrtStatus* try_plug(const char* name) {
  char path[512];
  library_path(name, path, sizeof path);
  return api()->RegisterExecutionProviderLibrary(env, name, path);
}

static inline void* find_control(const char* path, const char* symbol) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  void* (*get)(void) = NULL;
  void* address = handle != NULL ? dlsym(handle, symbol) : NULL;
  memcpy(&get, &address, sizeof get);
  void* control = get != NULL ? get() : NULL;
  if (handle != NULL) dlclose(handle);
  return control;
}

/* Registers a library by `name`, which begins with the library's. */
static inline Device plug(const char* name) {
  Device device = {.ep_device = NULL};
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  char path[512];
  if (!CHECK_OK(try_plug(name))) exit(1);
  CHECK_OK(api()->GetEpDevices(env, &all, &count));
  snprintf(device.name, sizeof device.name, "%s", name);
  library_path(name, path, sizeof path);
  device.ep_device = all[count - 1];
  device.memory = api()->EpDevice_MemoryInfo(device.ep_device, OrtDeviceMemoryType_DEFAULT);
  device.host_memory = api()->EpDevice_MemoryInfo(device.ep_device, OrtDeviceMemoryType_HOST_ACCESSIBLE);
  device.control = find_control(path, "virtual_device_control");
  device.plain = find_control(path, "plain_device_control");
  if (!CHECK(device.control != NULL || device.plain != NULL)) exit(1);
  return device;
}

static inline void unplug(const Device* device) {
  CHECK_OK(api()->UnregisterExecutionProviderLibrary(env, device->name));
}

static inline OrtAllocator* shared_allocator(const OrtMemoryInfo* memory) {
  OrtAllocator* allocator = NULL;
  CHECK_OK(api()->GetSharedAllocator(env, memory, &allocator));
  return allocator;
}

static inline OrtAllocator* cpu_allocator(void) {
  OrtAllocator* allocator = NULL;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  return allocator;
}

/* gives (caller releases with ReleaseValue): `count` floats from an allocator. */
static inline OrtValue* tensor_from(OrtAllocator* allocator, int64_t count) {
  OrtValue* value = NULL;
  CHECK_OK(api()->CreateTensorAsOrtValue(allocator, &count, 1, FLOAT, &value));
  return value;
}

static inline OrtValue* tensor_on(const Device* device, int64_t count) {
  return tensor_from(shared_allocator(device->memory), count);
}

static inline float* data_of(OrtValue* value) {
  void* data = NULL;
  CHECK_OK(api()->GetTensorMutableData(value, &data));
  return data;
}

/* gives: a tensor on the host that holds first, first + 1, ... */
static inline OrtValue* host_tensor(int64_t count, float first) {
  OrtValue* value = tensor_from(cpu_allocator(), count);
  for (int64_t i = 0; i < count; i++) data_of(value)[i] = first + (float)i;
  return value;
}

static inline OrtStatus* copy(OrtValue* source, OrtValue* target, OrtSyncStream* stream) {
  const OrtValue* sources[] = {source};
  return api()->CopyTensors(env, sources, &target, stream, 1);
}

/* True when a tensor of the host holds first, first + 1, ... */
static inline bool holds(OrtValue* value, int64_t count, float first) {
  for (int64_t i = 0; i < count; i++) {
    if (data_of(value)[i] != first + (float)i) return false;
  }
  return true;
}

/* The same for a tensor of a device. */
static inline bool device_holds(OrtValue* value, int64_t count, float first) {
  OrtValue* back = host_tensor(count, -1000);
  bool is_right = CHECK_OK(copy(value, back, NULL)) && holds(back, count, first);
  api()->ReleaseValue(back);
  return is_right;
}

static inline OrtSyncStream* stream_on(const Device* device) {
  OrtSyncStream* stream = NULL;
  CHECK_OK(api()->CreateSyncStreamForEpDevice(device->ep_device, NULL, &stream));
  return stream;
}

/* Waits for the stream's work, as an application does that knows what the EP's handle is. */
static inline void wait_for(OrtSyncStream* stream) {
  OrtSyncStreamImpl* impl = (OrtSyncStreamImpl*)api()->GetEpApi()->SyncStream_GetImpl(stream);
  CHECK_OK(impl->Flush(impl));
}

static inline void fail_next(const Device* device, const char* callback) {
  snprintf(device->control->failing_callback, sizeof device->control->failing_callback, "%s", callback);
}

#endif
