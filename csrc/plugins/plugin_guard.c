/* Reading structs that a plugin filled in: by the version they carry, never past its end. */
#include "plugins/plugins.h"

uint32_t struct_version(uint32_t says, uint32_t oldest) {
  if (says == 0) return oldest;
  return says < ORT_API_VERSION ? says : ORT_API_VERSION;
}

uint32_t guard_version(uint32_t says, uint32_t oldest, const char* struct_name, const char* owner) {
  if (says == 0)
    LOG(NULL, WARNING, "%s: %s carries version 0; it is read as version %u, the oldest that can be used",
        owner, struct_name, oldest);
  return struct_version(says, oldest);
}

static OrtStatus* null_struct(const char* struct_name, const char* owner) {
  return status_new(ORT_INVALID_ARGUMENT, "%s: %s is NULL", owner, struct_name);
}

/* Refuses a struct that is too old, and warns of one without a version. */
static OrtStatus* check_version(uint32_t says, uint32_t oldest, const char* struct_name, const char* owner) {
  if (says != 0 && says < oldest)
    return status_new(ORT_INVALID_ARGUMENT, "%s: %s carries version %u; the oldest that can be used is %u",
                      owner, struct_name, says, oldest);
  guard_version(says, oldest, struct_name, owner);
  return NULL;
}

/* Refuses the struct when a required slot is NULL. */
#define REQUIRE_SLOT(object, slot, struct_name, owner)                                                  \
  do {                                                                                                  \
    if ((object)->slot == NULL)                                                                         \
      return status_new(ORT_INVALID_ARGUMENT, "%s: required slot %s::%s is NULL", (owner), struct_name, \
                        #slot);                                                                         \
  } while (0)

OrtStatus* guard_factory(const OrtEpFactory* factory, const char* library_name) {
  TRY(check_version(factory->ort_version_supported, OLDEST_FACTORY, "OrtEpFactory", library_name));
  REQUIRE_SLOT(factory, GetName, "OrtEpFactory", library_name);
  REQUIRE_SLOT(factory, GetVendor, "OrtEpFactory", library_name);
  REQUIRE_SLOT(factory, GetSupportedDevices, "OrtEpFactory", library_name);
  REQUIRE_SLOT(factory, CreateEp, "OrtEpFactory", library_name);
  REQUIRE_SLOT(factory, ReleaseEp, "OrtEpFactory", library_name);
  if (struct_version(factory->ort_version_supported, OLDEST_FACTORY) >= 23)
    REQUIRE_SLOT(factory, GetVersion, "OrtEpFactory", library_name);
  return NULL;
}

static void warn_of_stock(const char* library_name, const char* slot, const char* when) {
  LOG(NULL, WARNING, "%s: OrtEpFactory::%s is NULL: stock onnxruntime calls it unchecked and crashes when %s",
      library_name, slot, when);
}

/* Found by leaving out each slot in stock ORT 1.32. */
void guard_factory_for_stock(const OrtEpFactory* factory, const char* library_name) {
  static const char on_stream[] = "an application asks for a stream (CreateSyncStreamForEpDevice)";
  if (struct_version(factory->ort_version_supported, OLDEST_FACTORY) < 23) return;
  if (factory->CreateDataTransfer == NULL)
    warn_of_stock(library_name, "CreateDataTransfer", "the library is registered");
  if (factory->IsStreamAware == NULL)
    warn_of_stock(library_name, "IsStreamAware", on_stream);
  else if (factory->CreateSyncStreamForDevice == NULL && call_OrtEpFactory_IsStreamAware(factory, NULL))
    warn_of_stock(library_name, "CreateSyncStreamForDevice", on_stream);
}

OrtStatus* guard_ep(const OrtEp* ep, const char* ep_name) {
  if (ep == NULL) return null_struct("OrtEp", ep_name);
  TRY(check_version(ep->ort_version_supported, OLDEST_EP, "OrtEp", ep_name));
  REQUIRE_SLOT(ep, GetName, "OrtEp", ep_name);
  REQUIRE_SLOT(ep, GetCapability, "OrtEp", ep_name);
  if (ep->Compile != NULL) REQUIRE_SLOT(ep, ReleaseNodeComputeInfos, "OrtEp", ep_name);
  return NULL;
}

OrtStatus* guard_node_compute_info(const OrtNodeComputeInfo* info, const char* ep_name,
                                   const char* node_name) {
  if (info == NULL)
    return status_new(ORT_EP_FAIL, "%s: OrtEp::Compile gave no OrtNodeComputeInfo for '%s'", ep_name,
                      node_name);
  TRY(check_version(info->ort_version_supported, OLDEST_NODE_COMPUTE_INFO, "OrtNodeComputeInfo", ep_name));
  REQUIRE_SLOT(info, CreateState, "OrtNodeComputeInfo", ep_name);
  REQUIRE_SLOT(info, Compute, "OrtNodeComputeInfo", ep_name);
  REQUIRE_SLOT(info, ReleaseState, "OrtNodeComputeInfo", ep_name);
  return NULL;
}

OrtStatus* guard_kernel_impl(const OrtKernelImpl* kernel, const char* ep_name, const char* node_name) {
  if (kernel == NULL)
    return status_new(ORT_EP_FAIL, "%s: the kernel's create function gave no OrtKernelImpl for '%s'", ep_name,
                      node_name);
  TRY(check_version(kernel->ort_version_supported, OLDEST_KERNEL_IMPL, "OrtKernelImpl", ep_name));
  REQUIRE_SLOT(kernel, Compute, "OrtKernelImpl", ep_name);
  REQUIRE_SLOT(kernel, Release, "OrtKernelImpl", ep_name);
  return NULL;
}

OrtStatus* guard_ep_profiler(const OrtEpProfilerImpl* profiler, const char* ep_name) {
  if (profiler == NULL) return null_struct("OrtEpProfilerImpl", ep_name);
  TRY(check_version(profiler->ort_version_supported, OLDEST_EP_PROFILER, "OrtEpProfilerImpl", ep_name));
  REQUIRE_SLOT(profiler, Release, "OrtEpProfilerImpl", ep_name);
  REQUIRE_SLOT(profiler, StartProfiling, "OrtEpProfilerImpl", ep_name);
  REQUIRE_SLOT(profiler, EndProfiling, "OrtEpProfilerImpl", ep_name);
  return NULL;
}

OrtStatus* guard_allocator(const OrtAllocator* allocator, const char* ep_name) {
  if (allocator == NULL) return null_struct("OrtAllocator", ep_name);
  guard_version(allocator->version, OLDEST_ALLOCATOR, "OrtAllocator", ep_name);
  REQUIRE_SLOT(allocator, Alloc, "OrtAllocator", ep_name);
  REQUIRE_SLOT(allocator, Free, "OrtAllocator", ep_name);
  REQUIRE_SLOT(allocator, Info, "OrtAllocator", ep_name);
  OrtStatus* thrown = NULL;
  const OrtMemoryInfo* info = call_OrtAllocator_Info(allocator, &thrown);
  if (thrown != NULL) return status_wrap(thrown, "%s", ep_name);
  if (info == NULL) return status_new(ORT_FAIL, "%s: OrtAllocator::Info gave NULL", ep_name);
  if (info->allocator_type == OrtArenaAllocator)
    return status_new(ORT_FAIL,
                      "%s: the OrtAllocator for '%s' says OrtArenaAllocator; an EP's own arena is a device "
                      "allocator for the host",
                      ep_name, info->name);
  return NULL;
}

OrtStatus* guard_data_transfer(const OrtDataTransferImpl* transfer, const char* ep_name) {
  if (transfer == NULL) return null_struct("OrtDataTransferImpl", ep_name);
  TRY(check_version(transfer->ort_version_supported, OLDEST_DATA_TRANSFER, "OrtDataTransferImpl", ep_name));
  REQUIRE_SLOT(transfer, Release, "OrtDataTransferImpl", ep_name);
  REQUIRE_SLOT(transfer, CanCopy, "OrtDataTransferImpl", ep_name);
  REQUIRE_SLOT(transfer, CopyTensors, "OrtDataTransferImpl", ep_name);
  return NULL;
}

OrtStatus* guard_stream(const OrtSyncStreamImpl* stream, const char* ep_name) {
  if (stream == NULL) return null_struct("OrtSyncStreamImpl", ep_name);
  TRY(check_version(stream->ort_version_supported, OLDEST_STREAM, "OrtSyncStreamImpl", ep_name));
  REQUIRE_SLOT(stream, Release, "OrtSyncStreamImpl", ep_name);
  REQUIRE_SLOT(stream, GetHandle, "OrtSyncStreamImpl", ep_name);
  REQUIRE_SLOT(stream, CreateNotification, "OrtSyncStreamImpl", ep_name);
  REQUIRE_SLOT(stream, Flush, "OrtSyncStreamImpl", ep_name);
  REQUIRE_SLOT(stream, OnSessionRunEnd, "OrtSyncStreamImpl", ep_name);
  return NULL;
}

OrtStatus* guard_notification(const OrtSyncNotificationImpl* notification, const char* ep_name) {
  if (notification == NULL) return null_struct("OrtSyncNotificationImpl", ep_name);
  TRY(check_version(notification->ort_version_supported, OLDEST_NOTIFICATION, "OrtSyncNotificationImpl",
                    ep_name));
  REQUIRE_SLOT(notification, Release, "OrtSyncNotificationImpl", ep_name);
  REQUIRE_SLOT(notification, Activate, "OrtSyncNotificationImpl", ep_name);
  REQUIRE_SLOT(notification, WaitOnDevice, "OrtSyncNotificationImpl", ep_name);
  REQUIRE_SLOT(notification, WaitOnHost, "OrtSyncNotificationImpl", ep_name);
  return NULL;
}
