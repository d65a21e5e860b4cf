/* A device of malloc'ed memory without any cleverness: its allocator has no arena, knows no streams, and is
 * as old as the test wants; its streams do nothing. What it is like follows from the name it is registered
 * by:
 *
 *   plain              as it should be
 *   plain.null         CreateAllocator says OK and gives none
 *   plain.no-transfer  CreateDataTransfer says OK and gives none
 *   plain.same         CreateAllocator gives the same allocator every time
 *   plain.v<n>         the allocator is a struct of API version n that ends before an unmapped page */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plain_control.h"

static PlainControl control;
static const OrtApi* api;
static const OrtEpApi* ep_api;
static OrtMemoryInfo* memory_info;
static char mode[32];
static int same_users;
static OrtAllocator* same;

ORT_ABI_EXPORT PlainControl* plain_device_control(void);
PlainControl* plain_device_control(void) {
  return &control;
}

/* ---- The allocator ---- */

static void* ORT_API_CALL plain_alloc(OrtAllocator* this_, size_t size) {
  (void)this_;
  control.allocs++;
  return control.largest_possible == 0 || size <= control.largest_possible ? malloc(size) : NULL;
}

static void* ORT_API_CALL plain_reserve(OrtAllocator* this_, size_t size) {
  (void)this_;
  control.reserves++;
  return malloc(size);
}

static void ORT_API_CALL plain_free(OrtAllocator* this_, void* p) {
  (void)this_;
  control.frees += p != NULL;
  free(p);
}

static const OrtMemoryInfo* ORT_API_CALL plain_info(const OrtAllocator* this_) {
  (void)this_;
  return memory_info;
}

static size_t struct_size(uint32_t version) {
  if (version < 18) return offsetof(OrtAllocator, Reserve);
  if (version < 23) return offsetof(OrtAllocator, GetStats);
  return version < 25 ? offsetof(OrtAllocator, Shrink) : sizeof(OrtAllocator);
}

/* gives (caller releases with release_allocator): a struct that ends where the last mapped page does. */
static OrtAllocator* new_allocator(uint32_t version) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), size = struct_size(version);
  char* pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || munmap(pages + page, page) != 0) return NULL;
  OrtAllocator full = {.version = version,
                       .Alloc = plain_alloc,
                       .Free = plain_free,
                       .Info = plain_info,
                       .Reserve = plain_reserve};
  return memcpy(pages + page - size, &full, size);
}

static void release_allocator(OrtAllocator* allocator) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  munmap((void*)((uintptr_t)allocator / page * page), page);
}

static OrtStatus* ORT_API_CALL create_allocator(OrtEpFactory* this_, const OrtMemoryInfo* info,
                                                const OrtKeyValuePairs* options, OrtAllocator** allocator) {
  uint32_t version = ORT_API_VERSION;
  (void)this_, (void)info, (void)options;
  *allocator = NULL;
  if (strcmp(mode, "null") == 0) return NULL;
  if (mode[0] == 'v') version = (uint32_t)atoi(mode + 1);
  if (strcmp(mode, "same") == 0 && same_users++ > 0) {
    *allocator = same;
    return NULL;
  }
  *allocator = same = new_allocator(version);
  return *allocator != NULL ? NULL : api->CreateStatus(ORT_FAIL, "no pages for an allocator");
}

static void ORT_API_CALL factory_release_allocator(OrtEpFactory* this_, OrtAllocator* allocator) {
  (void)this_;
  if (strcmp(mode, "same") != 0 || --same_users == 0) release_allocator(allocator);
}

/* ---- The data transfer ---- */

static bool ORT_API_CALL can_copy(const OrtDataTransferImpl* this_, const OrtMemoryDevice* from,
                                  const OrtMemoryDevice* to) {
  const OrtMemoryDevice* own = ep_api->MemoryInfo_GetMemoryDevice(memory_info);
  bool from_own = ep_api->MemoryDevice_AreEqual(from, own), to_own = ep_api->MemoryDevice_AreEqual(to, own);
  (void)this_;
  return (from_own && (to_own || ep_api->MemoryDevice_GetDeviceType(to) == OrtMemoryInfoDeviceType_CPU)) ||
         (to_own && ep_api->MemoryDevice_GetDeviceType(from) == OrtMemoryInfoDeviceType_CPU);
}

static OrtStatus* ORT_API_CALL copy_tensors(OrtDataTransferImpl* this_, const OrtValue** from, OrtValue** to,
                                            OrtSyncStream** streams, size_t count) {
  (void)this_;
  control.copy_calls++;
  control.last_count = count;
  control.last_had_streams = streams != NULL;
  for (size_t i = 0; i < count && i < 4 && streams != NULL; i++) control.last_streams[i] = streams[i];
  for (size_t i = 0; i < count; i++) {
    const void* source = NULL;
    void* target = NULL;
    size_t size = 0;
    OrtStatus* status = api->GetTensorData(from[i], &source);
    if (status == NULL) status = api->GetTensorMutableData(to[i], &target);
    if (status == NULL) status = api->GetTensorSizeInBytes(from[i], &size);
    if (status != NULL) return status;
    if (size == 0) return api->CreateStatus(ORT_FAIL, "a tensor without bytes reached the EP");
    memcpy(target, source, size);
  }
  return NULL;
}

static void ORT_API_CALL release_transfer(OrtDataTransferImpl* this_) {
  (void)this_;
}

static OrtStatus* ORT_API_CALL create_transfer(OrtEpFactory* this_, OrtDataTransferImpl** transfer) {
  static OrtDataTransferImpl impl;
  (void)this_;
  impl = (OrtDataTransferImpl){.ort_version_supported = ORT_API_VERSION,
                               .Release = release_transfer,
                               .CanCopy = can_copy,
                               .CopyTensors = copy_tensors};
  *transfer = strcmp(mode, "no-transfer") != 0 ? &impl : NULL;
  return NULL;
}

/* ---- Streams: a NULL handle, and nothing to wait for ---- */

static void ORT_API_CALL release_stream(OrtSyncStreamImpl* this_) {
  free(this_);
}

static void* ORT_API_CALL null_handle(OrtSyncStreamImpl* this_) {
  (void)this_;
  return NULL;
}

static OrtStatus* ORT_API_CALL no_notification(OrtSyncStreamImpl* this_, OrtSyncNotificationImpl** out) {
  (void)this_;
  *out = NULL; /* and says OK */
  return NULL;
}

static OrtStatus* ORT_API_CALL nothing_to_do(OrtSyncStreamImpl* this_) {
  (void)this_;
  return NULL;
}

static bool ORT_API_CALL is_stream_aware(const OrtEpFactory* this_) {
  (void)this_;
  return true;
}

static OrtStatus* ORT_API_CALL create_stream(OrtEpFactory* this_, const OrtMemoryDevice* device,
                                             const OrtKeyValuePairs* options, OrtSyncStreamImpl** stream) {
  (void)this_, (void)device, (void)options;
  *stream = NULL;
  if (control.streams_fail) return NULL;
  OrtSyncStreamImpl* impl = calloc(1, sizeof *impl);
  if (impl == NULL) return api->CreateStatus(ORT_FAIL, "no memory for a stream");
  *impl = (OrtSyncStreamImpl){.ort_version_supported = ORT_API_VERSION,
                              .Release = release_stream,
                              .GetHandle = null_handle,
                              .CreateNotification = no_notification,
                              .Flush = nothing_to_do,
                              .OnSessionRunEnd = nothing_to_do};
  *stream = impl;
  return NULL;
}

/* ---- The factory ---- */

static const char* ORT_API_CALL get_name(const OrtEpFactory* this_) {
  (void)this_;
  return "PlainExecutionProvider";
}

static const char* ORT_API_CALL get_version(const OrtEpFactory* this_) {
  (void)this_;
  return "1.0.0";
}

static OrtStatus* ORT_API_CALL get_devices(OrtEpFactory* this_, const OrtHardwareDevice* const* devices,
                                           size_t num_devices, OrtEpDevice** ep_devices, size_t max,
                                           size_t* count) {
  *count = 0;
  for (size_t i = 0; i < num_devices && *count < max && *count == 0; i++) {
    if (api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
    OrtStatus* status = ep_api->CreateEpDevice(this_, devices[i], NULL, NULL, &ep_devices[0]);
    if (status == NULL) status = ep_api->EpDevice_AddAllocatorInfo(ep_devices[0], memory_info);
    if (status != NULL) return status;
    *count = 1;
  }
  return NULL;
}

static OrtStatus* ORT_API_CALL create_ep(OrtEpFactory* this_, const OrtHardwareDevice* const* devices,
                                         const OrtKeyValuePairs* const* metadata, size_t count,
                                         const OrtSessionOptions* options, const OrtLogger* logger,
                                         OrtEp** ep) {
  (void)this_, (void)devices, (void)metadata, (void)count, (void)options, (void)logger;
  *ep = NULL;
  return api->CreateStatus(ORT_NOT_IMPLEMENTED, "runs nothing");
}

static void ORT_API_CALL release_ep(OrtEpFactory* this_, OrtEp* ep) {
  (void)this_, (void)ep;
}

OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* api_base,
                                          const OrtLogger* logger, OrtEpFactory** factories, size_t max,
                                          size_t* count) {
  static OrtEpFactory factory;
  const char* dot = strchr(registered_name, '.');
  (void)logger, (void)max;
  api = api_base->GetApi(ORT_API_VERSION);
  ep_api = api->GetEpApi();
  snprintf(mode, sizeof mode, "%s", dot != NULL ? dot + 1 : "");
  factory = (OrtEpFactory){.ort_version_supported = ORT_API_VERSION,
                           .GetName = get_name,
                           .GetVendor = get_name,
                           .GetVersion = get_version,
                           .GetSupportedDevices = get_devices,
                           .CreateEp = create_ep,
                           .ReleaseEp = release_ep,
                           .CreateAllocator = create_allocator,
                           .ReleaseAllocator = factory_release_allocator,
                           .CreateDataTransfer = create_transfer,
                           .IsStreamAware = is_stream_aware,
                           .CreateSyncStreamForDevice = create_stream};
  factories[0] = &factory;
  *count = 1;
  return api->CreateMemoryInfo_V2("PlainDevice", OrtMemoryInfoDeviceType_NPU, 0xbe57, 7,
                                  OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &memory_info);
}

OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  (void)factory;
  api->ReleaseMemoryInfo(memory_info);
  return NULL;
}
