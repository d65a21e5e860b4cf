/* The two functions that a plugin library exports, and the factory of one Python provider. */
#include <stdlib.h>

#include "bridge.h"

static PyFactory* of(const OrtEpFactory* factory) {
  return (PyFactory*)factory;
}

static void free_factory(PyFactory* factory) {
  BridgeFactoryInfo* info = &factory->info;
  bridge_custom_ops_free(factory->host, info->custom_ops);
  free(info->name);
  free(info->vendor);
  free(info->version);
  free(factory);
}

/* Called by Python inside create_factory; copies the strings. Returns 0 without memory. */
int bridge_set_factory(BridgeFactoryInfo* info, uint64_t id, const char* name, const char* vendor,
                       const char* version, uint32_t vendor_id, uint32_t features) {
  info->id = id;
  info->features = features;
  info->name = bridge_copy_string(name);
  info->vendor = bridge_copy_string(vendor);
  info->version = bridge_copy_string(version);
  info->vendor_id = vendor_id;
  return info->name && info->vendor && info->version;
}

static const char* factory_get_name(const OrtEpFactory* this_ptr) {
  return of(this_ptr)->info.name;
}

static const char* factory_get_vendor(const OrtEpFactory* this_ptr) {
  return of(this_ptr)->info.vendor;
}

static const char* factory_get_version(const OrtEpFactory* this_ptr) {
  return of(this_ptr)->info.version;
}

static uint32_t factory_get_vendor_id(const OrtEpFactory* this_ptr) {
  return of(this_ptr)->info.vendor_id;
}

static OrtStatus* factory_get_supported_devices(OrtEpFactory* this_ptr,
                                                const OrtHardwareDevice* const* devices, size_t num_devices,
                                                OrtEpDevice** ep_devices, size_t max_ep_devices,
                                                size_t* num_ep_devices) {
  PyFactory* factory = of(this_ptr);
  BridgeCall call = bridge_call_begin(factory->host, "OrtEpFactory::GetSupportedDevices", factory->info.name);
  *num_ep_devices = 0;
  if (call.entered) {
    call.ok = bridge_py_supported_devices(&call, factory->info.id, this_ptr, devices, num_devices, ep_devices,
                                          max_ep_devices, num_ep_devices);
  }
  return bridge_call_end(&call);
}

static OrtStatus* factory_create_ep(OrtEpFactory* this_ptr, const OrtHardwareDevice* const* devices,
                                    const OrtKeyValuePairs* const* ep_metadata_pairs, size_t num_devices,
                                    const OrtSessionOptions* session_options, const OrtLogger* logger,
                                    OrtEp** ep) {
  PyFactory* factory = of(this_ptr);
  const char* name = factory->info.name;
  BridgeCall call = bridge_call_begin(factory->host, "OrtEpFactory::CreateEp", name);
  uint64_t id = 0;
  uint32_t features = 0;
  (void)ep_metadata_pairs;
  *ep = NULL;
  if (call.entered) {
    call.ok = bridge_py_create_ep(&call, factory->info.id, devices, num_devices, session_options, logger, &id,
                                  &features);
  }
  OrtStatus* status = bridge_call_end(&call);
  if (!status) status = bridge_ep_new(factory->host, this_ptr, id, features, name, ep);
  if (!status) atomic_fetch_add(&factory->users, 1);
  return status;
}

static void factory_release_ep(OrtEpFactory* this_ptr, OrtEp* ep) {
  if (!ep) return;
  bridge_ep_free(ep);
  bridge_factory_unuse(this_ptr);
}

static OrtStatus* factory_create_allocator(OrtEpFactory* this_ptr, const OrtMemoryInfo* memory_info,
                                           const OrtKeyValuePairs* allocator_options,
                                           OrtAllocator** allocator) {
  PyFactory* factory = of(this_ptr);
  return bridge_allocator_new(factory->host, "OrtEpFactory::CreateAllocator", this_ptr, factory->info.id,
                              factory->info.name, memory_info, allocator_options, allocator);
}

static void factory_release_allocator(OrtEpFactory* this_ptr, OrtAllocator* allocator) {
  (void)this_ptr;
  if (allocator) bridge_allocator_free(allocator);
}

static OrtStatus* factory_create_data_transfer(OrtEpFactory* this_ptr, OrtDataTransferImpl** data_transfer) {
  PyFactory* factory = of(this_ptr);
  return bridge_transfer_new(factory->host, factory->info.id, factory->info.name, data_transfer);
}

/* Without KernelContext_GetSyncStream a kernel cannot know its stream, and must not be given one: all work is
 * done when its call returns. */
static bool factory_is_stream_aware(const OrtEpFactory* this_ptr) {
  const PyFactory* factory = of(this_ptr);
  return factory->info.features & BRIDGE_FACTORY_STREAM_AWARE &&
         factory->host->version >= BRIDGE_SYNC_STREAM_VERSION;
}

static OrtStatus* factory_create_sync_stream(OrtEpFactory* this_ptr, const OrtMemoryDevice* memory_device,
                                             const OrtKeyValuePairs* stream_options,
                                             OrtSyncStreamImpl** stream) {
  PyFactory* factory = of(this_ptr);
  return bridge_stream_new(factory->host, "OrtEpFactory::CreateSyncStreamForDevice", factory->info.id,
                           factory->info.name, memory_device, stream_options, stream);
}

static OrtEpFactory factory_slots(uint32_t version) {
  return (OrtEpFactory){
      .ort_version_supported = version,
      .GetName = factory_get_name,
      .GetVendor = factory_get_vendor,
      .GetSupportedDevices = factory_get_supported_devices,
      .CreateEp = factory_create_ep,
      .ReleaseEp = factory_release_ep,
      .GetVendorId = factory_get_vendor_id,
      .GetVersion = factory_get_version,
      .CreateAllocator = factory_create_allocator,
      .ReleaseAllocator = factory_release_allocator,
      .CreateDataTransfer = factory_create_data_transfer,
      .IsStreamAware = factory_is_stream_aware,
      .CreateSyncStreamForDevice = factory_create_sync_stream,
  };
}

/* Gives one factory: that of the provider class with the id `provider`, or 0: of the class that Python
 * prepared under registered_name. */
OrtStatus* bridge_create_factories(uint64_t provider, const char* registered_name,
                                   const OrtApiBase* ort_api_base, const OrtLogger* default_logger,
                                   OrtEpFactory** factories, size_t max_factories, size_t* num_factories) {
  const char* problem = NULL;
  *num_factories = 0;
  const BridgeHost* host = bridge_host_from_base(ort_api_base, &problem);
  if (!host) return ort_api_base->GetApi(1)->CreateStatus(ORT_NOT_IMPLEMENTED, problem);
  if (max_factories < 1) {
    return host->api->CreateStatus(ORT_INVALID_ARGUMENT, "CreateEpFactories: no room for a factory");
  }
  PyFactory* factory = calloc(1, sizeof *factory);
  if (!factory) return bridge_no_memory(host, "CreateEpFactories");

  factory->host = host;
  factory->free = free_factory;
  BridgeCall call = bridge_call_begin(host, "CreateEpFactories", registered_name);
  if (call.entered)
    call.ok = bridge_py_create_factory(&call, provider, registered_name, default_logger, &factory->info);
  OrtStatus* status = bridge_call_end(&call);
  if (!status && factory->info.custom_ops) {
    status = bridge_custom_ops_open(host, factory->info.custom_ops);
    if (status) bridge_release(host, "CreateEpFactories", registered_name, factory->info.id);
  }
  if (status) {
    free_factory(factory);
    return status;
  }
  factory->base = factory_slots(host->version);
  bridge_factory_fill(&factory->base, factory->info.features);
  if (factory->info.custom_ops) bridge_custom_ops_fill(&factory->base);
  atomic_init(&factory->users, 1);
  factories[0] = &factory->base;
  *num_factories = 1;
  return NULL;
}

/* Releases the factory; its memory goes with the last of its providers. */
OrtStatus* bridge_release_factory(OrtEpFactory* base) {
  if (!base) return NULL;
  PyFactory* factory = of(base);
  bridge_release(factory->host, "ReleaseEpFactory", factory->info.name, factory->info.id);
  bridge_factory_unuse(base);
  return NULL;
}

OrtStatus* CreateEpFactories(const char* registered_name, const OrtApiBase* ort_api_base,
                             const OrtLogger* default_logger, OrtEpFactory** factories, size_t max_factories,
                             size_t* num_factories) {
  return bridge_create_factories(0, registered_name, ort_api_base, default_logger, factories, max_factories,
                                 num_factories);
}

OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  return bridge_release_factory(factory);
}
