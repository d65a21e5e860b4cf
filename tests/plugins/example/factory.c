/* The factory, and what the library exports. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  flockfile(stdout);
  printf("plugin: ");
  vprintf(format, arguments);
  putchar('\n');
  fflush(stdout);
  funlockfile(stdout);
  va_end(arguments);
}

bool has(const char* word) {
  const char* words = getenv("EXAMPLE_EP");
  size_t length = strlen(word);
  for (const char* at = words != NULL ? strstr(words, word) : NULL; at != NULL; at = strstr(at + 1, word)) {
    if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
  }
  return false;
}

OrtStatus* fail(const Factory* factory, const char* message) {
  return factory->api->CreateStatus(ORT_EP_FAIL, message);
}

static const char* ORT_API_CALL get_name(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return EP_NAME;
}

static const char* ORT_API_CALL get_vendor(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "ort-abi tests";
}

static uint32_t ORT_API_CALL get_vendor_id(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return VENDOR_ID;
}

static const char* ORT_API_CALL get_version(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "0.1.0";
}

static OrtStatus* add_device(Factory* factory, size_t index, OrtEpDevice** device) {
  const OrtEpApi* ep_api = factory->ep_api;
  RETURN_IF_FAILED(ep_api->CreateEpDevice(&factory->base, factory->hardware, NULL, NULL, device));
  RETURN_IF_FAILED(ep_api->EpDevice_AddAllocatorInfo(*device, factory->device_memory[index]));
  RETURN_IF_FAILED(ep_api->EpDevice_AddAllocatorInfo(*device, factory->read_only_memory[index]));
  return ep_api->EpDevice_AddAllocatorInfo(*device, factory->host_memory[index]);
}

static OrtStatus* ORT_API_CALL get_supported_devices(OrtEpFactory* this_ptr,
                                                     const OrtHardwareDevice* const* devices, size_t count,
                                                     OrtEpDevice** ep_devices, size_t max_ep_devices,
                                                     size_t* num_ep_devices) {
  Factory* factory = (Factory*)this_ptr;
  *num_ep_devices = 0;
  for (size_t i = 0; i < count; i++) {
    if (factory->api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU)
      factory->hardware = devices[i];
  }
  if (factory->hardware == NULL || max_ep_devices < factory->device_count)
    return fail(factory, "no CPU, or no room for devices");
  for (size_t i = 0; i < factory->device_count; i++) {
    RETURN_IF_FAILED(add_device(factory, i, &ep_devices[i]));
    ++*num_ep_devices;
  }
  return NULL;
}

static OrtStatus* ORT_API_CALL create_ep(OrtEpFactory* this_ptr, const OrtHardwareDevice* const* devices,
                                         const OrtKeyValuePairs* const* metadata, size_t count,
                                         const OrtSessionOptions* options, const OrtLogger* logger,
                                         OrtEp** ep) {
  Factory* factory = (Factory*)this_ptr;
  (void)metadata, (void)options;
  if (count != 1) return fail(factory, "one device a session");
  say("CreateEp for hardware %s", devices[0] == factory->hardware ? "own" : "STRANGER");
  return ep_create(factory, logger, ep);
}

static void ORT_API_CALL release_ep(OrtEpFactory* this_ptr, OrtEp* ep) {
  (void)this_ptr;
  ep_release(ep);
}

static OrtStatus* ORT_API_CALL create_allocator(OrtEpFactory* this_ptr, const OrtMemoryInfo* memory,
                                                const OrtKeyValuePairs* options, OrtAllocator** out) {
  return memory_create_allocator((Factory*)this_ptr, memory, options, "OrtEpFactory", out);
}

static void ORT_API_CALL release_allocator(OrtEpFactory* this_ptr, OrtAllocator* allocator) {
  memory_release_allocator((Factory*)this_ptr, allocator);
}

static OrtStatus* ORT_API_CALL create_transfer(OrtEpFactory* this_ptr, OrtDataTransferImpl** out) {
  *out = &((Factory*)this_ptr)->transfer;
  return NULL;
}

static bool ORT_API_CALL is_stream_aware(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return true;
}

static OrtStatus* ORT_API_CALL create_stream(OrtEpFactory* this_ptr, const OrtMemoryDevice* device,
                                             const OrtKeyValuePairs* options, OrtSyncStreamImpl** out) {
  (void)options;
  return stream_create((Factory*)this_ptr, device, "OrtEpFactory", out);
}

#define FACTORY_SLOT(slot, function) .slot = SLOT("OrtEpFactory", #slot, function)

static OrtEpFactory factory_slots(void) {
  return (OrtEpFactory){
      .ort_version_supported = ORT_API_VERSION,
      FACTORY_SLOT(GetName, get_name),
      FACTORY_SLOT(GetVendor, get_vendor),
      FACTORY_SLOT(GetSupportedDevices, get_supported_devices),
      FACTORY_SLOT(CreateEp, create_ep),
      FACTORY_SLOT(ReleaseEp, release_ep),
      FACTORY_SLOT(GetVendorId, get_vendor_id),
      FACTORY_SLOT(GetVersion, get_version),
      FACTORY_SLOT(CreateAllocator, create_allocator),
      FACTORY_SLOT(ReleaseAllocator, release_allocator),
      FACTORY_SLOT(CreateDataTransfer, create_transfer),
      FACTORY_SLOT(IsStreamAware, is_stream_aware),
      FACTORY_SLOT(CreateSyncStreamForDevice, create_stream),
  };
}

OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* ort_api_base,
                                          const OrtLogger* default_logger, OrtEpFactory** factories,
                                          size_t max_factories, size_t* num_factories) {
  (void)registered_name, (void)default_logger, (void)max_factories;
  const OrtApi* api = ort_api_base->GetApi(ORT_API_VERSION);
  if (api == NULL) return ort_api_base->GetApi(1)->CreateStatus(ORT_FAIL, "the host is too old");
  Factory* factory = calloc(1, sizeof *factory);
  if (factory == NULL) return api->CreateStatus(ORT_FAIL, "no memory");
  factory->base = factory_slots();
  factory->api = api;
  factory->ep_api = api->GetEpApi();
  factory->device_count = has("two-devices") ? 2 : 1;
  pthread_mutex_init(&factory->mutex, NULL);
  factories[0] = &factory->base;
  *num_factories = 1;
  RETURN_IF_FAILED(memory_open(factory));
  return kernels_open(factory);
}

OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* base) {
  Factory* factory = (Factory*)base;
  if (factory->arenas != NULL || factory->allocators != 0) say("ReleaseEpFactory with LIVING allocators");
  factory->ep_api->ReleaseKernelRegistry(factory->kernels);
  memory_close(factory);
  pthread_mutex_destroy(&factory->mutex);
  free(factory);
  say("ReleaseEpFactory");
  return NULL;
}
