/* The factory, and what the library exports. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

VirtualDeviceControl control = {.drop_wait = -1};

/* For tests: they find it with dlsym. */
ORT_ABI_EXPORT VirtualDeviceControl* virtual_device_control(void);
VirtualDeviceControl* virtual_device_control(void) {
  return &control;
}

OrtStatus* fail(const Factory* factory, OrtErrorCode code, const char* format, ...) {
  char text[256];
  size_t used = (size_t)snprintf(text, sizeof text, "%s: ", factory->name);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, sizeof text - used, format, arguments);
  va_end(arguments);
  return factory->api->CreateStatus(code, text);
}

OrtStatus* asked_to_fail(const Factory* factory, const char* callback) {
  if (strcmp(control.failing_callback, callback) != 0) return NULL;
  if (control.failing_after > 0) {
    control.failing_after--;
    return NULL;
  }
  control.failing_callback[0] = '\0';
  return fail(factory, ORT_EP_FAIL, "%s was asked to fail", callback);
}

bool asked_for_nothing(const char* callback) {
  bool is_asked = strcmp(control.giving_nothing, callback) == 0;
  if (is_asked) control.giving_nothing[0] = '\0';
  return is_asked;
}

static const char* ORT_API_CALL factory_get_name(const OrtEpFactory* this_ptr) {
  return ((const Factory*)this_ptr)->name;
}

static const char* ORT_API_CALL factory_get_vendor(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "ort-abi samples";
}

static uint32_t ORT_API_CALL factory_get_vendor_id(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return DEVICE_VENDOR_ID;
}

static const char* ORT_API_CALL factory_get_version(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "1.0.0"; /* must be a semantic version */
}

/* gives one EP device (the host releases it): the virtual device hangs on the first CPU. */
static OrtStatus* ORT_API_CALL factory_get_supported_devices(OrtEpFactory* this_ptr,
                                                             const OrtHardwareDevice* const* devices,
                                                             size_t num_devices, OrtEpDevice** ep_devices,
                                                             size_t max_ep_devices, size_t* num_ep_devices) {
  const Factory* factory = (const Factory*)this_ptr;
  const OrtEpApi* ep_api = factory->ep_api;
  OrtStatus* status = asked_to_fail(factory, "GetSupportedDevices");
  OrtEpDevice* made = NULL;
  *num_ep_devices = 0;
  if (status != NULL) return status;
  size_t cpu = 0;
  while (cpu < num_devices && factory->api->HardwareDevice_Type(devices[cpu]) != OrtHardwareDeviceType_CPU)
    cpu++;
  if (cpu == num_devices || max_ep_devices == 0) return NULL;
  TRY(ep_api->CreateEpDevice(this_ptr, devices[cpu], NULL, NULL, &made));
  TRY(ep_api->EpDevice_AddAllocatorInfo(made, factory->device_info));
  TRY(ep_api->EpDevice_AddAllocatorInfo(made, factory->host_accessible_info));
  TRY(ep_api->EpDevice_AddAllocatorInfo(made, factory->read_only_info));
  ep_devices[0] = made;
  *num_ep_devices = 1;
  made = NULL;
done:
  if (made != NULL) ep_api->ReleaseEpDevice(made);
  return status;
}

/* gives an EP (the host releases it with ReleaseEp). Called once a session. */
static OrtStatus* ORT_API_CALL factory_create_ep(OrtEpFactory* this_ptr,
                                                 const OrtHardwareDevice* const* devices,
                                                 const OrtKeyValuePairs* const* metadata, size_t num_devices,
                                                 const OrtSessionOptions* session_options,
                                                 const OrtLogger* logger, OrtEp** ep) {
  (void)devices;
  (void)metadata;
  (void)num_devices;
  (void)logger;
  return ep_create((Factory*)this_ptr, session_options, ep);
}

static void ORT_API_CALL factory_release_ep(OrtEpFactory* this_ptr, OrtEp* ep) {
  (void)this_ptr;
  ep_release(ep);
}

static OrtStatus* ORT_API_CALL factory_create_allocator(OrtEpFactory* this_ptr,
                                                        const OrtMemoryInfo* memory_info,
                                                        const OrtKeyValuePairs* options,
                                                        OrtAllocator** allocator) {
  (void)options;
  return memory_create_allocator((Factory*)this_ptr, memory_info, allocator);
}

static void ORT_API_CALL factory_release_allocator(OrtEpFactory* this_ptr, OrtAllocator* allocator) {
  (void)this_ptr;
  memory_release_allocator(allocator);
}

static OrtStatus* ORT_API_CALL factory_create_data_transfer(OrtEpFactory* this_ptr,
                                                            OrtDataTransferImpl** transfer) {
  return transfer_create((Factory*)this_ptr, transfer);
}

static bool ORT_API_CALL factory_is_stream_aware(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return true;
}

static OrtStatus* ORT_API_CALL factory_create_sync_stream(OrtEpFactory* this_ptr,
                                                          const OrtMemoryDevice* device,
                                                          const OrtKeyValuePairs* options,
                                                          OrtSyncStreamImpl** stream) {
  (void)device;
  (void)options;
  return stream_create((Factory*)this_ptr, stream);
}

static OrtStatus* ORT_API_CALL factory_select_best_model(OrtEpFactory* this_ptr,
                                                         const OrtHardwareDevice* device,
                                                         const OrtKeyValuePairs* const* candidates,
                                                         size_t count, const OrtSessionOptions* options,
                                                         size_t* selected) {
  (void)device;
  (void)candidates;
  (void)options;
  if (count == 0) return fail((const Factory*)this_ptr, ORT_INVALID_ARGUMENT, "no model candidates");
  *selected = 0;
  return NULL;
}

static void factory_fill(Factory* factory) {
  OrtEpFactory* base = &factory->base;
  base->ort_version_supported = factory->api_version;
  base->GetName = factory_get_name;
  base->GetVendor = factory_get_vendor;
  base->GetVendorId = factory_get_vendor_id;
  base->GetVersion = factory_get_version;
  base->GetSupportedDevices = factory_get_supported_devices;
  base->CreateEp = factory_create_ep;
  base->ReleaseEp = factory_release_ep;
  base->CreateAllocator = factory_create_allocator;
  base->ReleaseAllocator = factory_release_allocator;
  base->CreateDataTransfer = factory_create_data_transfer;
  base->IsStreamAware = factory_is_stream_aware;
  base->CreateSyncStreamForDevice = factory_create_sync_stream;
  base->SelectBestModelCandidate = factory_select_best_model;
}

static void factory_free(Factory* factory) {
  memcpy_close(factory);
  memory_close(factory);
  pthread_mutex_destroy(&factory->streams_mutex);
  free(factory);
}

/* gives (caller releases with factory_free) the factory of device DEVICE_ID + `index`. */
static OrtStatus* factory_new(const OrtApi* api, uint32_t api_version, uint32_t index, Factory** out) {
  Factory* factory = calloc(1, sizeof *factory);
  if (factory == NULL) return api->CreateStatus(ORT_FAIL, EP_NAME ": no memory for a factory");
  factory->api = api;
  factory->ep_api = api->GetEpApi();
  factory->api_version = api_version;
  factory->device_id = DEVICE_ID + index;
  factory->next_of_library = factory;
  if (index == 0)
    snprintf(factory->name, sizeof factory->name, "%s", EP_NAME);
  else
    snprintf(factory->name, sizeof factory->name, "%s.%u", EP_NAME, index);
  pthread_mutex_init(&factory->streams_mutex, NULL);
  factory_fill(factory);
  OrtStatus* status = memory_open(factory);
  if (status == NULL) status = memcpy_open(factory);
  if (status != NULL)
    factory_free(factory);
  else
    *out = factory;
  return status;
}

/* gives a factory for each device (the host releases them with ReleaseEpFactory, all at one time). */
OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* api_base,
                                          const OrtLogger* default_logger, OrtEpFactory** factories,
                                          size_t max_factories, size_t* num_factories) {
  (void)registered_name;
  (void)default_logger;
  uint32_t version = ORT_API_VERSION;
  const OrtApi* api = api_base->GetApi(version);
  while (api == NULL && version > OLDEST_API) api = api_base->GetApi(--version);
  if (api == NULL) /* every host has version 1, and with it a way to say no */
    return api_base->GetApi(1)->CreateStatus(ORT_FAIL, EP_NAME ": the host is older than API version 23");
  if (max_factories < DEVICE_COUNT)
    return api->CreateStatus(ORT_INVALID_ARGUMENT, EP_NAME ": no place for the factories");
  Factory* made[DEVICE_COUNT] = {NULL};
  OrtStatus* status = NULL;
  for (uint32_t i = 0; i < DEVICE_COUNT; i++) TRY(factory_new(api, version, i, &made[i]));
  for (size_t i = 0; i < DEVICE_COUNT; i++) {
    made[i]->next_of_library = made[(i + 1) % DEVICE_COUNT];
    factories[i] = &made[i]->base;
  }
  *num_factories = DEVICE_COUNT;
done:
  for (size_t i = 0; status != NULL && i < DEVICE_COUNT && made[i] != NULL; i++) factory_free(made[i]);
  return status;
}

OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  factory_free((Factory*)factory);
  return NULL;
}
