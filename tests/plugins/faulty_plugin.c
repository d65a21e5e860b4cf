/* An EP library with one fault, chosen by -DFAULT=name; without one, a good library. A symbol goes missing by
 * -DCreateEpFactories=other_name. Prints what the host leaves behind ("plugin: ..."), so that tests see leaks
 * of the plugin's own objects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ort_abi.h"

enum Fault {
  NONE,
  /* CreateEpFactories */
  CREATE_FAILS,
  CREATE_FAILS_LATE,
  NEEDS_NEWER_API,
  NULL_FACTORY,
  ZERO_FACTORIES,
  TOO_MANY_FACTORIES,
  FACTORY_BEYOND_COUNT,
  FOUR_FACTORIES,
  RELEASE_FAILS,
  LOG_ON_RELEASE,
  REENTERS,
  /* OrtEpFactory */
  NO_GET_NAME,
  NO_GET_VENDOR,
  NO_GET_SUPPORTED_DEVICES,
  NO_CREATE_EP,
  NO_RELEASE_EP,
  NO_GET_VERSION,
  NAME_IS_NULL,
  NAME_IS_EMPTY,
  VENDOR_IS_NULL,
  VERSION_IS_NULL,
  VERSION_NOT_SEMANTIC,
  VERSION_IN_METADATA,
  FACTORY_TOO_OLD,
  FACTORY_CUT, /* to FACTORY_VERSION, before an unmapped page */
  /* GetSupportedDevices */
  DEVICES_FAIL,
  DEVICES_FAIL_LATE,
  DEVICES_NONE,
  DEVICES_TOO_MANY,
  DEVICES_EIGHT,
  DEVICES_NULL_ENTRY,
  DEVICES_FOREIGN,
  DEVICES_GARBAGE,
  DEVICES_TWICE,
  DEVICES_RELEASED,
  DEVICES_LEAKED,
  DEVICES_RELEASED_LATE,
  DEVICES_VIRTUAL,
  /* Memory */
  MEMORY_OF_LEGACY_TYPE,
  MEMORY_OF_ARENA,
  ALLOCATOR_FAILS,
  ALLOCATOR_FAILS_SECOND,
  ALLOCATOR_IS_NULL,
  NO_CREATE_ALLOCATOR,
  NO_ALLOCATOR_FREE,
  ALLOCATOR_INFO_IS_NULL,
  ALLOCATOR_OF_ARENA,
  ALLOCATOR_TWICE,
  ALLOCATOR_CUT, /* to ALLOCATOR_VERSION, before an unmapped page */
  TRANSFER_FAILS,
  TRANSFER_IS_NULL,
  NO_CREATE_TRANSFER,
  NO_IS_STREAM_AWARE,
  NO_TRANSFER_COPY,
  TRANSFER_CUT, /* before an unmapped page */
  /* OrtEp */
  EP_FAILS,
  EP_IS_NULL,
  EP_HAS_NO_NAME,
  CAPABILITY_FAILS,
};

#ifndef FAULT
#define FAULT NONE
#endif
#ifndef FACTORY_VERSION
#define FACTORY_VERSION ORT_API_VERSION
#endif
#ifndef ALLOCATOR_VERSION
#define ALLOCATOR_VERSION ORT_API_VERSION
#endif
#ifndef EP_NAME
#define EP_NAME "FaultyExecutionProvider"
#endif
#define IS(fault) (FAULT == (fault))

static const OrtApi* api;
static const OrtEpApi* ep_api;
static const OrtLogger* logger;
static OrtMemoryInfo *default_memory, *host_memory, *arena_memory;
static OrtHardwareDevice* virtual_hardware;
static OrtAllocator *first_allocator, *host_allocator;
static OrtEpDevice* last_device;
static int factories_alive, allocators_alive, transfers_alive, eps_alive;
extern int faulty_plugin_misses_this(void);

static OrtStatus* fail(const char* message) {
  return api->CreateStatus(ORT_EP_FAIL, message);
}

static void log_message(const char* message) {
  api->ReleaseStatus(
      api->Logger_LogMessage(logger, ORT_LOGGING_LEVEL_WARNING, message, __FILE__, __LINE__, __func__));
}

#define RETURN_IF_FAILED(call)         \
  do {                                 \
    OrtStatus* failed = (call);        \
    if (failed != NULL) return failed; \
  } while (0)

/* A copy of the first `size` bytes whose end is the end of a page; the next page cannot be read. Never
 * unmapped. */
static void* before_unmapped_page(const void* object, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) abort();
  return memcpy(pages + page - size, object, size);
}

/* ---- Memory ---- */

static void* ORT_API_CALL allocator_alloc(OrtAllocator* allocator, size_t size) {
  (void)allocator;
  return malloc(size);
}

static void ORT_API_CALL allocator_free(OrtAllocator* allocator, void* block) {
  (void)allocator;
  free(block);
}

static const OrtMemoryInfo* ORT_API_CALL allocator_info(const OrtAllocator* allocator) {
  if (IS(ALLOCATOR_INFO_IS_NULL)) return NULL;
  if (IS(ALLOCATOR_OF_ARENA)) return arena_memory;
  return allocator == host_allocator ? host_memory : default_memory;
}

static size_t allocator_size(uint32_t version) {
  if (version < 18) return offsetof(OrtAllocator, Reserve);
  if (version < 23) return offsetof(OrtAllocator, GetStats);
  if (version < 25) return offsetof(OrtAllocator, Shrink);
  return sizeof(OrtAllocator);
}

static OrtStatus* ORT_API_CALL create_allocator(OrtEpFactory* factory, const OrtMemoryInfo* memory,
                                                const OrtKeyValuePairs* options, OrtAllocator** out) {
  const char* name = NULL;
  (void)factory, (void)options;
  RETURN_IF_FAILED(api->MemoryInfoGetName(memory, &name));
  if (IS(ALLOCATOR_FAILS)) return fail("no device memory");
  if (IS(ALLOCATOR_FAILS_SECOND) && allocators_alive == 1) return fail("no second allocator");
  if (IS(ALLOCATOR_IS_NULL)) return NULL;
  if (IS(ALLOCATOR_TWICE) && first_allocator != NULL) {
    *out = first_allocator;
    return NULL;
  }
  OrtAllocator allocator = {ALLOCATOR_VERSION,
                            allocator_alloc,
                            IS(NO_ALLOCATOR_FREE) ? NULL : allocator_free,
                            allocator_info,
                            NULL,
                            NULL,
                            NULL,
                            NULL};
  if (IS(ALLOCATOR_CUT))
    *out = before_unmapped_page(&allocator, allocator_size(ALLOCATOR_VERSION));
  else
    *out = memcpy(malloc(sizeof allocator), &allocator, sizeof allocator);
  first_allocator = *out;
  if (strstr(name, "Host") != NULL) host_allocator = *out;
  allocators_alive++;
  return NULL;
}

static void ORT_API_CALL release_allocator(OrtEpFactory* factory, OrtAllocator* allocator) {
  (void)factory;
  if (IS(LOG_ON_RELEASE)) log_message("from ReleaseAllocator");
  allocators_alive--;
  if (!IS(ALLOCATOR_CUT)) free(allocator);
}

static void ORT_API_CALL transfer_release(OrtDataTransferImpl* transfer) {
  if (IS(LOG_ON_RELEASE)) log_message("from OrtDataTransferImpl::Release");
  transfers_alive--;
  if (!IS(TRANSFER_CUT)) free(transfer);
}

static bool ORT_API_CALL transfer_can_copy(const OrtDataTransferImpl* transfer, const OrtMemoryDevice* from,
                                           const OrtMemoryDevice* to) {
  (void)transfer, (void)from, (void)to;
  return false;
}

static OrtStatus* ORT_API_CALL transfer_copy(OrtDataTransferImpl* transfer, const OrtValue** from,
                                             OrtValue** to, OrtSyncStream** streams, size_t count) {
  (void)transfer, (void)from, (void)to, (void)streams, (void)count;
  return fail("never called");
}

static OrtStatus* ORT_API_CALL create_transfer(OrtEpFactory* factory, OrtDataTransferImpl** out) {
  (void)factory;
  if (IS(TRANSFER_FAILS)) return fail("no copy engine");
  if (IS(TRANSFER_IS_NULL)) return NULL;
  OrtDataTransferImpl transfer = {ORT_API_VERSION, transfer_release, transfer_can_copy,
                                  IS(NO_TRANSFER_COPY) ? NULL : transfer_copy};
  if (IS(TRANSFER_CUT))
    *out = before_unmapped_page(&transfer, sizeof transfer);
  else
    *out = memcpy(malloc(sizeof transfer), &transfer, sizeof transfer);
  transfers_alive++;
  return NULL;
}

static bool ORT_API_CALL is_stream_aware(const OrtEpFactory* factory) {
  (void)factory;
  return false;
}

/* ---- Devices ---- */

static const char* ORT_API_CALL get_name(const OrtEpFactory* factory) {
  (void)factory;
  return IS(NAME_IS_NULL) ? NULL : IS(NAME_IS_EMPTY) ? "" : EP_NAME;
}

static const char* ORT_API_CALL get_vendor(const OrtEpFactory* factory) {
  (void)factory;
  return IS(VENDOR_IS_NULL) ? NULL : "Faulty";
}

static uint32_t ORT_API_CALL get_vendor_id(const OrtEpFactory* factory) {
  (void)factory;
  return 0xfa17;
}

static const char* ORT_API_CALL get_version(const OrtEpFactory* factory) {
  (void)factory;
  return IS(VERSION_IS_NULL) ? NULL : IS(VERSION_NOT_SEMANTIC) ? "1.2" : "1.2.3-rc.1+build.05";
}

static OrtStatus* add_memory(OrtEpDevice* device) {
  if (IS(MEMORY_OF_ARENA)) return ep_api->EpDevice_AddAllocatorInfo(device, arena_memory);
  if (IS(MEMORY_OF_LEGACY_TYPE)) {
    OrtMemoryInfo* wrong = NULL;
    RETURN_IF_FAILED(api->CreateMemoryInfo("Cuda", OrtDeviceAllocator, 0, OrtMemTypeCPUInput, &wrong));
    OrtStatus* status = ep_api->EpDevice_AddAllocatorInfo(device, wrong);
    api->ReleaseMemoryInfo(wrong);
    return status;
  }
  RETURN_IF_FAILED(ep_api->EpDevice_AddAllocatorInfo(device, default_memory));
  return ep_api->EpDevice_AddAllocatorInfo(device, host_memory);
}

static OrtStatus* make_device(OrtEpFactory* factory, const OrtHardwareDevice* hardware, OrtEpDevice** out) {
  OrtKeyValuePairs *metadata = NULL, *options = NULL;
  api->CreateKeyValuePairs(&metadata);
  api->CreateKeyValuePairs(&options);
  api->AddKeyValuePair(metadata, IS(VERSION_IN_METADATA) ? "version" : "colour", "green");
  api->AddKeyValuePair(options, "threads", "2");
  OrtStatus* status = ep_api->CreateEpDevice(factory, hardware, metadata, options, out);
  api->ReleaseKeyValuePairs(metadata);
  api->ReleaseKeyValuePairs(options);
  return status != NULL ? status : add_memory(*out);
}

/* The CPU, or a device of our own making where the environment allows it. */
static OrtStatus* choose_hardware(const OrtHardwareDevice* const* devices, size_t count,
                                  const OrtHardwareDevice** out) {
  for (size_t i = 0; i < count; i++) {
    if (api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU) *out = devices[i];
  }
  if (!IS(DEVICES_VIRTUAL)) return NULL;
  OrtKeyValuePairs* config = NULL;
  RETURN_IF_FAILED(ep_api->GetEnvConfigEntries(&config));
  const char* allowed = api->GetKeyValue(config, "allow_virtual_devices");
  if (allowed != NULL && strcmp(allowed, "1") == 0)
    RETURN_IF_FAILED(ep_api->CreateHardwareDevice(OrtHardwareDeviceType_GPU, 0xfa17, 3, "Faulty", NULL,
                                                  &virtual_hardware));
  api->ReleaseKeyValuePairs(config);
  *out = virtual_hardware;
  return NULL;
}

static OrtStatus* ORT_API_CALL get_supported_devices(OrtEpFactory* factory,
                                                     const OrtHardwareDevice* const* devices, size_t count,
                                                     OrtEpDevice** out, size_t max_count, size_t* out_count) {
  static char garbage[512];
  static OrtEpFactory* previous;
  const OrtHardwareDevice* hardware = NULL;
  (void)max_count;
  *out_count = 0;
  RETURN_IF_FAILED(choose_hardware(devices, count, &hardware));
  if (IS(DEVICES_FAIL)) return fail("driver not found");
  if (hardware == NULL || IS(DEVICES_NONE)) return NULL;
  OrtEpFactory* maker = IS(DEVICES_FOREIGN) && previous != NULL ? previous : factory;
  previous = factory;
  size_t wanted = IS(DEVICES_EIGHT) || IS(DEVICES_TOO_MANY) ? 8 : IS(DEVICES_LEAKED) ? 3 : 1;
  for (size_t i = 0; i < wanted; i++) RETURN_IF_FAILED(make_device(maker, hardware, &out[i]));
  *out_count = wanted;
  last_device = out[0];
  if (IS(DEVICES_FAIL_LATE)) return fail("driver went away");
  if (IS(DEVICES_TOO_MANY)) *out_count = 9;
  if (IS(DEVICES_LEAKED)) *out_count = 1;
  if (IS(DEVICES_NULL_ENTRY)) out[(*out_count)++] = NULL;
  if (IS(DEVICES_GARBAGE)) out[(*out_count)++] = (OrtEpDevice*)(void*)garbage;
  if (IS(DEVICES_TWICE)) out[(*out_count)++] = out[0];
  if (IS(DEVICES_RELEASED)) ep_api->ReleaseEpDevice(out[0]);
  return NULL;
}

/* ---- Factories ---- */

static const char* ORT_API_CALL ep_get_name(const OrtEp* ep) {
  (void)ep;
  return EP_NAME;
}

/* Claims nothing: all nodes are left to others. */
static OrtStatus* ORT_API_CALL ep_get_capability(OrtEp* ep, const OrtGraph* graph,
                                                 OrtEpGraphSupportInfo* info) {
  (void)ep, (void)graph, (void)info;
  return IS(CAPABILITY_FAILS) ? fail("graph is too beautiful") : NULL;
}

static OrtStatus* ORT_API_CALL create_ep(OrtEpFactory* factory, const OrtHardwareDevice* const* devices,
                                         const OrtKeyValuePairs* const* metadata, size_t count,
                                         const OrtSessionOptions* options, const OrtLogger* session_logger,
                                         OrtEp** ep) {
  (void)factory, (void)devices, (void)metadata, (void)count, (void)options, (void)session_logger;
  if (IS(EP_FAILS)) return fail("device is lost");
  if (IS(EP_IS_NULL)) return NULL;
  OrtEp made = {.ort_version_supported = ORT_API_VERSION,
                .GetName = IS(EP_HAS_NO_NAME) ? NULL : ep_get_name,
                .GetCapability = ep_get_capability};
  *ep = memcpy(malloc(sizeof made), &made, sizeof made);
  eps_alive++;
  return NULL;
}

static void ORT_API_CALL release_ep(OrtEpFactory* factory, OrtEp* ep) {
  (void)factory;
  free(ep);
  eps_alive--;
}

static OrtStatus* ORT_API_CALL get_incompatibility(OrtEpFactory* factory, const OrtHardwareDevice* hardware,
                                                   OrtDeviceEpIncompatibilityDetails* details) {
  (void)factory;
  if (api->HardwareDevice_Type(hardware) == OrtHardwareDeviceType_CPU) return NULL;
  return ep_api->DeviceEpIncompatibilityDetails_SetDetails(
      details, OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE, 7, "only the CPU");
}

static size_t factory_size(uint32_t version) {
  if (version < 23) return offsetof(OrtEpFactory, GetVendorId);
  if (version < 24) return offsetof(OrtEpFactory, GetHardwareDeviceIncompatibilityDetails);
  if (version < 25) return offsetof(OrtEpFactory, InitGraphicsInterop);
  if (version < 28) return offsetof(OrtEpFactory, SelectBestModelCandidate);
  return sizeof(OrtEpFactory);
}

static OrtEpFactory* make_factory(void) {
  OrtEpFactory factory = {
      .ort_version_supported = IS(FACTORY_TOO_OLD) ? 21 : FACTORY_VERSION,
      .GetName = IS(NO_GET_NAME) ? NULL : get_name,
      .GetVendor = IS(NO_GET_VENDOR) ? NULL : get_vendor,
      .GetSupportedDevices = IS(NO_GET_SUPPORTED_DEVICES) ? NULL : get_supported_devices,
      .CreateEp = IS(NO_CREATE_EP) ? NULL : create_ep,
      .ReleaseEp = IS(NO_RELEASE_EP) ? NULL : release_ep,
      .GetVendorId = get_vendor_id,
      .GetVersion = IS(NO_GET_VERSION) ? NULL : get_version,
      .CreateAllocator = IS(NO_CREATE_ALLOCATOR) ? NULL : create_allocator,
      .ReleaseAllocator = release_allocator,
      .CreateDataTransfer = IS(NO_CREATE_TRANSFER) ? NULL : create_transfer,
      .IsStreamAware = IS(NO_IS_STREAM_AWARE) ? NULL : is_stream_aware,
      .GetHardwareDeviceIncompatibilityDetails = get_incompatibility,
  };
  factories_alive++;
  if (IS(FACTORY_CUT)) return before_unmapped_page(&factory, factory_size(FACTORY_VERSION));
  return memcpy(malloc(sizeof factory), &factory, sizeof factory);
}

static void release_memory_infos(void) {
  api->ReleaseMemoryInfo(default_memory);
  api->ReleaseMemoryInfo(host_memory);
  api->ReleaseMemoryInfo(arena_memory);
  default_memory = host_memory = arena_memory = NULL;
}

static OrtStatus* make_memory_infos(void) {
  const OrtMemoryInfoDeviceType gpu = OrtMemoryInfoDeviceType_GPU;
  OrtStatus* status = api->CreateMemoryInfo_V2("FaultyDevice", gpu, 0xfa17, 0, OrtDeviceMemoryType_DEFAULT, 0,
                                               OrtDeviceAllocator, &default_memory);
  if (status == NULL)
    status = api->CreateMemoryInfo_V2("FaultyHost", gpu, 0xfa17, 0, OrtDeviceMemoryType_HOST_ACCESSIBLE, 0,
                                      OrtDeviceAllocator, &host_memory);
  if (status == NULL) status = api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &arena_memory);
  if (status != NULL) release_memory_infos();
  return status;
}

#if defined(WITH_GET_PROVIDER)
ORT_ABI_EXPORT void* GetProvider(void);
void* GetProvider(void) {
  return NULL;
}
#endif

OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* ort_api_base,
                                          const OrtLogger* default_logger, OrtEpFactory** factories,
                                          size_t max_factories, size_t* num_factories) {
  (void)registered_name, (void)max_factories;
  api = ort_api_base->GetApi(IS(NEEDS_NEWER_API) ? 31 : ORT_API_VERSION);
  if (api == NULL) return ort_api_base->GetApi(1)->CreateStatus(ORT_FAIL, "needs API 31");
  ep_api = api->GetEpApi();
  logger = default_logger;
  if (IS(CREATE_FAILS)) return fail("no licence");
#if defined(WITH_UNDEFINED_SYMBOL)
  if (faulty_plugin_misses_this()) return fail("never");
#endif
  if (IS(REENTERS)) { /* a second environment handle, and back */
    OrtEnv* env = NULL;
    const OrtEpDevice* const* devices = NULL;
    size_t count = 0;
    RETURN_IF_FAILED(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "plugin", &env));
    RETURN_IF_FAILED(api->GetEpDevices(env, &devices, &count));
    api->ReleaseEnv(env);
  }
  *num_factories = 0;
  if (IS(ZERO_FACTORIES)) return NULL;
  if (factories_alive == 0) RETURN_IF_FAILED(make_memory_infos());
  size_t wanted = IS(FOUR_FACTORIES) || IS(TOO_MANY_FACTORIES) ? 4 : IS(DEVICES_FOREIGN) ? 2 : 1;
  for (size_t i = 0; i < wanted && !IS(NULL_FACTORY); i++) factories[i] = make_factory();
  *num_factories = IS(TOO_MANY_FACTORIES) ? 9 : IS(FACTORY_BEYOND_COUNT) ? 0 : wanted;
  if (IS(NULL_FACTORY)) release_memory_infos();
  return IS(CREATE_FAILS_LATE) ? fail("licence expired") : NULL;
}

OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  factories_alive--;
  if (!IS(FACTORY_CUT)) free(factory);
  if (IS(LOG_ON_RELEASE)) log_message("from ReleaseEpFactory");
  if (IS(DEVICES_RELEASED_LATE)) ep_api->ReleaseEpDevice(last_device);
  if (factories_alive > 0) return NULL;
  ep_api->ReleaseHardwareDevice(virtual_hardware);
  virtual_hardware = NULL;
  release_memory_infos();
  if (allocators_alive != 0) printf("plugin: %d allocators alive\n", allocators_alive);
  if (transfers_alive != 0) printf("plugin: %d data transfers alive\n", transfers_alive);
  if (eps_alive != 0) printf("plugin: %d EPs alive\n", eps_alive);
  printf("plugin: all factories released\n");
  return IS(RELEASE_FAILS) ? fail("device is busy") : NULL;
}
