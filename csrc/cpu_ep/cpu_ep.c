/* The factory and the EP: everything but the kernels themselves. */
#include "cpu_ep.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

#define CPU_EP_VENDOR  "ort-abi"
#define CPU_EP_VERSION "0.1.0"

typedef struct CpuFactory {
  OrtEpFactory base; /* first: the only part the host sees */
  const OrtApi* api;
  const OrtEpApi* ep_api;
  _Atomic(OrtKernelRegistry*)
      registry;             /* made for the first session, shared by all, released with the factory */
  CpuKernelSource* sources; /* what the registry's entries point to */
} CpuFactory;

typedef struct CpuEp {
  OrtEp base;
  CpuFactory* factory;
} CpuEp;

/* ---- The EP ---- */

static const char* ORT_API_CALL ep_get_name(const OrtEp* ep) {
  (void)ep;
  return CPU_EP_NAME;
}

/* Without a lock, which a child that is forked meanwhile would find taken: of two threads the second throws
 * its registry away. */
static OrtStatus* ORT_API_CALL ep_get_kernel_registry(OrtEp* ep, const OrtKernelRegistry** registry) {
  CpuFactory* factory = ((CpuEp*)ep)->factory;
  OrtKernelRegistry* present = atomic_load(&factory->registry);
  *registry = NULL;
  if (!present) {
    OrtKernelRegistry* made = NULL;
    OrtStatus* status = cpu_create_registry(factory->ep_api, factory->sources, &made);
    if (status) return status;
    if (atomic_compare_exchange_strong(&factory->registry, &present, made))
      present = made;
    else
      factory->ep_api->ReleaseKernelRegistry(made);
  }
  *registry = present;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_is_concurrent_run_supported(OrtEp* ep, bool* is_supported) {
  (void)ep;
  *is_supported = true; /* kernels do not change after they were created */
  return NULL;
}

/* A Constant with this attribute has no dense value to give; no type constraint says so. */
static OrtStatus* is_sparse_constant(const OrtApi* api, const OrtNode* node, bool* result) {
  const char* op_type = NULL;
  *result = false;
  OrtStatus* status = api->Node_GetOperatorType(node, &op_type);
  if (status || strcmp(op_type, "Constant") != 0) return status;
  const OrtOpAttr* attribute = NULL;
  status = api->Node_GetAttributeByName(node, "sparse_value", &attribute);
  *result = !status && attribute;
  api->ReleaseStatus(status); /* a host may report a missing attribute as an error */
  return NULL;
}

/* Claims the node if it is free and a kernel was registered for its operator, version and types. */
static OrtStatus* claim_node(CpuFactory* factory, const OrtNode* node, OrtEpGraphSupportInfo* support) {
  const char* owner = NULL;
  OrtStatus* status = factory->api->Node_GetEpName(node, &owner);
  if (status || (owner && owner[0])) return status;
  const OrtKernelDef* kernel = NULL;
  status = factory->ep_api->EpGraphSupportInfo_LookUpKernel(support, node, &kernel);
  if (status || !kernel) return status;
  bool sparse, takes_subgraphs;
  status = is_sparse_constant(factory->api, node, &sparse);
  if (!status) status = cpu_takes_subgraphs(factory->api, node, &takes_subgraphs);
  if (status || sparse || !takes_subgraphs) return status;
  return factory->ep_api->EpGraphSupportInfo_AddSingleNode(support, node);
}

static OrtStatus* ORT_API_CALL ep_get_capability(OrtEp* ep, const OrtGraph* graph,
                                                 OrtEpGraphSupportInfo* support) {
  CpuFactory* factory = ((CpuEp*)ep)->factory;
  const OrtApi* api = factory->api;
  const OrtNode** nodes = NULL;
  size_t count = 0;
  OrtStatus* status = api->Graph_GetNumNodes(graph, &count);
  if (status || count == 0) return status;
  nodes = malloc(count * sizeof *nodes);
  if (!nodes) return api->CreateStatus(ORT_EP_FAIL, CPU_EP_NAME ": out of memory in GetCapability");
  status = api->Graph_GetNodes(graph, nodes, count);
  for (size_t i = 0; i < count && !status; i++) status = claim_node(factory, nodes[i], support);
  free(nodes);
  return status;
}

/* ---- The factory ---- */

static const char* ORT_API_CALL factory_get_name(const OrtEpFactory* factory) {
  (void)factory;
  return CPU_EP_NAME;
}

static const char* ORT_API_CALL factory_get_vendor(const OrtEpFactory* factory) {
  (void)factory;
  return CPU_EP_VENDOR;
}

static uint32_t ORT_API_CALL factory_get_vendor_id(const OrtEpFactory* factory) {
  (void)factory;
  return 0; /* no PCI vendor */
}

static const char* ORT_API_CALL factory_get_version(const OrtEpFactory* factory) {
  (void)factory;
  return CPU_EP_VERSION;
}

/* *gives* an EP device for every CPU among the hardware (the host releases them). */
static OrtStatus* ORT_API_CALL factory_get_supported_devices(OrtEpFactory* base,
                                                             const OrtHardwareDevice* const* devices,
                                                             size_t device_count, OrtEpDevice** ep_devices,
                                                             size_t max_ep_devices, size_t* ep_device_count) {
  CpuFactory* factory = (CpuFactory*)base;
  OrtStatus* status = NULL;
  size_t made = 0;
  for (size_t i = 0; i < device_count && made < max_ep_devices && !status; i++) {
    if (factory->api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
    status = factory->ep_api->CreateEpDevice(base, devices[i], NULL, NULL, &ep_devices[made]);
    if (!status) made++;
  }
  if (status) {
    while (made > 0) factory->ep_api->ReleaseEpDevice(ep_devices[--made]);
  }
  *ep_device_count = made;
  return status;
}

/* *gives* an EP (caller releases with ReleaseEp); the EP *borrows* the factory. */
static OrtStatus* ORT_API_CALL factory_create_ep(OrtEpFactory* base, const OrtHardwareDevice* const* devices,
                                                 const OrtKeyValuePairs* const* metadata, size_t device_count,
                                                 const OrtSessionOptions* options, const OrtLogger* logger,
                                                 OrtEp** ep_out) {
  (void)devices, (void)metadata, (void)device_count, (void)options, (void)logger;
  CpuFactory* factory = (CpuFactory*)base;
  *ep_out = NULL;
  CpuEp* ep = calloc(1, sizeof *ep);
  if (!ep) return factory->api->CreateStatus(ORT_EP_FAIL, CPU_EP_NAME ": out of memory in CreateEp");
  ep->factory = factory;
  ep->base.ort_version_supported = CPU_EP_API_VERSION;
  ep->base.GetName = ep_get_name;
  ep->base.GetCapability = ep_get_capability;
  ep->base.GetKernelRegistry = ep_get_kernel_registry;
  ep->base.IsConcurrentRunSupported = ep_is_concurrent_run_supported;
  *ep_out = &ep->base;
  return NULL;
}

static void ORT_API_CALL factory_release_ep(OrtEpFactory* factory, OrtEp* ep) {
  (void)factory;
  free(ep);
}

/* No allocator, copier or stream of its own: a NULL result means the host's own for CPU memory. */
static OrtStatus* ORT_API_CALL factory_create_allocator(OrtEpFactory* factory,
                                                        const OrtMemoryInfo* memory_info,
                                                        const OrtKeyValuePairs* options,
                                                        OrtAllocator** allocator) {
  (void)factory, (void)memory_info, (void)options;
  *allocator = NULL;
  return NULL;
}

static void ORT_API_CALL factory_release_allocator(OrtEpFactory* factory, OrtAllocator* allocator) {
  (void)factory, (void)allocator; /* none was ever made */
}

static OrtStatus* ORT_API_CALL factory_create_data_transfer(OrtEpFactory* factory,
                                                            OrtDataTransferImpl** data_transfer) {
  (void)factory;
  *data_transfer = NULL;
  return NULL;
}

static bool ORT_API_CALL factory_is_stream_aware(const OrtEpFactory* factory) {
  (void)factory;
  return false;
}

static OrtStatus* ORT_API_CALL factory_create_stream(OrtEpFactory* base, const OrtMemoryDevice* device,
                                                     const OrtKeyValuePairs* options,
                                                     OrtSyncStreamImpl** stream) {
  (void)device, (void)options;
  *stream = NULL;
  return ((CpuFactory*)base)
      ->api->CreateStatus(ORT_NOT_IMPLEMENTED,
                          CPU_EP_NAME ": CreateSyncStreamForDevice: no streams on the CPU");
}

static void fill_factory(OrtEpFactory* base) {
  base->ort_version_supported = CPU_EP_API_VERSION;
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
  base->CreateSyncStreamForDevice = factory_create_stream;
}

static OrtStatus* check_host(const OrtApiBase* api_base, const OrtApi** api) {
  *api = api_base->GetApi(CPU_EP_API_VERSION);
  if (*api) return NULL;
  char message[128];
  snprintf(message, sizeof message, "%s: needs API version %d, which this host (%s) does not have",
           CPU_EP_NAME, CPU_EP_API_VERSION, api_base->GetVersionString());
  return api_base->GetApi(1)->CreateStatus(ORT_FAIL, message); /* version 1 is there on every host */
}

OrtStatus* ORT_API_CALL cpu_ep_create_factories(const char* registered_name, const OrtApiBase* api_base,
                                                const OrtLogger* default_logger, OrtEpFactory** factories,
                                                size_t max_factories, size_t* num_factories) {
  (void)registered_name, (void)default_logger;
  const OrtApi* api = NULL;
  CpuFactory* factory = NULL;
  *num_factories = 0;
  OrtStatus* status = check_host(api_base, &api);
  if (status) return status;
  if (max_factories < 1)
    return api->CreateStatus(ORT_INVALID_ARGUMENT,
                             CPU_EP_NAME ": CreateEpFactories: no room for one factory");
  factory = calloc(1, sizeof *factory);
  if (!factory) goto out_of_memory;
  factory->sources = calloc(cpu_kernel_row_count(), sizeof *factory->sources);
  if (!factory->sources) goto out_of_memory;
  factory->api = api;
  factory->ep_api = api->GetEpApi();
  cpu_fill_sources(factory->api, factory->ep_api, factory->sources);
  fill_factory(&factory->base);
  factories[0] = &factory->base;
  *num_factories = 1;
  return NULL;

out_of_memory:
  if (factory) free(factory->sources);
  free(factory);
  return api->CreateStatus(ORT_FAIL, CPU_EP_NAME ": out of memory in CreateEpFactories");
}

OrtStatus* ORT_API_CALL cpu_ep_release_factory(OrtEpFactory* base) {
  CpuFactory* factory = (CpuFactory*)base;
  if (!factory) return NULL;
  factory->ep_api->ReleaseKernelRegistry(factory->registry);
  free(factory->sources);
  free(factory);
  return NULL;
}
