/* How a host finds the kernels: CreateEpFactories gives a factory, the factory an EP a session, the EP its
 * registry (GetKernelRegistry) and the nodes it has kernels for (GetCapability). Works with hosts of API
 * version 24 to 30. */
#include <stdio.h>
#include <stdlib.h>

#include "kernel_ep.h"

#define TRY(call)                  \
  do {                             \
    status = (call);               \
    if (status != NULL) goto done; \
  } while (0)

typedef struct Ep {
  OrtEp base;
  const Factory* factory; /* lives longer than its EPs */
} Ep;

OrtStatus* fail(const Factory* factory, OrtErrorCode code, const char* message) {
  char text[256];
  snprintf(text, sizeof text, EP_NAME ": %s", message);
  return factory->api->CreateStatus(code, text);
}

/* What the host counts, for tests. */
ORT_ABI_EXPORT KernelSampleControl* kernel_sample_control(void);
ORT_ABI_EXPORT KernelSampleControl* kernel_sample_control(void) {
  return &control;
}

/* ---- The kernel registry ---- */

static OrtStatus* describe(const Factory* factory, OrtKernelDefBuilder* builder, const Operator* op) {
  const OrtEpApi* ep_api = factory->ep_api;
  OrtStatus* status = NULL;
  const OrtDataType* types[1];
  const int input = op->alias_input, output = 0;
  TRY(ep_api->KernelDefBuilder_SetOperatorType(builder, op->op_type));
  TRY(ep_api->KernelDefBuilder_SetDomain(builder, ""));
  TRY(ep_api->KernelDefBuilder_SetSinceVersion(builder, op->first_version, op->last_version));
  TRY(ep_api->KernelDefBuilder_SetExecutionProvider(builder, EP_NAME));
  for (int i = 0; i < MAX_CONSTRAINTS && op->constraints[i].name != NULL; i++) {
    TRY(ep_api->GetTensorDataType(op->constraints[i].type, &types[0]));
    TRY(ep_api->KernelDefBuilder_AddTypeConstraint(builder, op->constraints[i].name, types, 1));
  }
  if (op->alias_input >= 0)
    TRY(ep_api->KernelDefBuilder_AddInputOutputMutableAliases(builder, &input, &output, 1));
done:
  return status;
}

static OrtStatus* add_operator(Factory* factory, const Operator* op) {
  const OrtEpApi* ep_api = factory->ep_api;
  OrtStatus* status = NULL;
  OrtKernelDefBuilder* builder = NULL;
  OrtKernelDef* def = NULL;
  TRY(ep_api->CreateKernelDefBuilder(&builder));
  TRY(describe(factory, builder, op));
  TRY(ep_api->KernelDefBuilder_Build(builder, &def));
  TRY(ep_api->KernelRegistry_AddKernel(factory->registry, def, op->create, factory));
done:
  ep_api->ReleaseKernelDef(def);
  ep_api->ReleaseKernelDefBuilder(builder);
  return status;
}

static OrtStatus* fill_registry(Factory* factory) {
  OrtStatus* status = NULL;
  TRY(factory->ep_api->CreateKernelRegistry(&factory->registry));
  for (size_t i = 0; i < operator_count; i++) TRY(add_operator(factory, &operators[i]));
done:
  return status;
}

/* ---- The EP ---- */

static const char* ORT_API_CALL ep_get_name(const OrtEp* this_ptr) {
  (void)this_ptr;
  return EP_NAME;
}

/* borrows: the host copies the registry. */
static OrtStatus* ORT_API_CALL ep_get_kernel_registry(OrtEp* this_ptr, const OrtKernelRegistry** registry) {
  *registry = ((const Ep*)this_ptr)->factory->registry;
  return NULL;
}

/* Claims every node that the registry has a kernel for. */
static OrtStatus* ORT_API_CALL ep_get_capability(OrtEp* this_ptr, const OrtGraph* graph,
                                                 OrtEpGraphSupportInfo* support) {
  const Factory* factory = ((const Ep*)this_ptr)->factory;
  OrtStatus* status = NULL;
  size_t count = 0;
  const OrtNode** nodes = NULL;
  TRY(factory->api->Graph_GetNumNodes(graph, &count));
  nodes = calloc(count + 1, sizeof(const OrtNode*));
  if (nodes == NULL) return fail(factory, ORT_FAIL, "no memory for a list of nodes");
  TRY(factory->api->Graph_GetNodes(graph, nodes, count));
  for (size_t i = 0; i < count; i++) {
    const OrtKernelDef* def = NULL;
    TRY(factory->ep_api->EpGraphSupportInfo_LookUpKernel(support, nodes[i], &def));
    if (def != NULL) TRY(factory->ep_api->EpGraphSupportInfo_AddSingleNode(support, nodes[i]));
  }
done:
  free(nodes);
  return status;
}

/* Kernels do not change while they compute. */
static OrtStatus* ORT_API_CALL ep_is_concurrent_run_supported(OrtEp* this_ptr, bool* is_supported) {
  (void)this_ptr;
  *is_supported = true;
  return NULL;
}

/* ---- The factory ---- */

static const char* ORT_API_CALL factory_get_name(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return EP_NAME;
}

static const char* ORT_API_CALL factory_get_vendor(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "ort-abi samples";
}

static uint32_t ORT_API_CALL factory_get_vendor_id(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return 0;
}

static const char* ORT_API_CALL factory_get_version(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "1.0.0";
}

/* gives one EP device, on the CPU. */
static OrtStatus* ORT_API_CALL factory_get_supported_devices(OrtEpFactory* this_ptr,
                                                             const OrtHardwareDevice* const* devices,
                                                             size_t num_devices, OrtEpDevice** ep_devices,
                                                             size_t max_ep_devices, size_t* num_ep_devices) {
  const Factory* factory = (const Factory*)this_ptr;
  *num_ep_devices = 0;
  for (size_t i = 0; i < num_devices && max_ep_devices != 0; i++) {
    if (factory->api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
    OrtStatus* status = factory->ep_api->CreateEpDevice(this_ptr, devices[i], NULL, NULL, &ep_devices[0]);
    if (status == NULL) *num_ep_devices = 1;
    return status;
  }
  return NULL;
}

/* gives an EP (the host releases it with ReleaseEp). Called once a session. */
static OrtStatus* ORT_API_CALL factory_create_ep(OrtEpFactory* this_ptr,
                                                 const OrtHardwareDevice* const* devices,
                                                 const OrtKeyValuePairs* const* metadata, size_t num_devices,
                                                 const OrtSessionOptions* session_options,
                                                 const OrtLogger* logger, OrtEp** ep) {
  const Factory* factory = (const Factory*)this_ptr;
  (void)devices, (void)metadata, (void)num_devices, (void)session_options, (void)logger;
  Ep* made = calloc(1, sizeof *made); /* what is left NULL is optional */
  if (made == NULL) return fail(factory, ORT_FAIL, "no memory for an EP");
  made->factory = factory;
  made->base.ort_version_supported = factory->api_version;
  made->base.GetName = ep_get_name;
  made->base.GetCapability = ep_get_capability;
  made->base.GetKernelRegistry = ep_get_kernel_registry;
  made->base.IsConcurrentRunSupported = ep_is_concurrent_run_supported;
  *ep = &made->base;
  return NULL;
}

static void ORT_API_CALL factory_release_ep(OrtEpFactory* this_ptr, OrtEp* ep) {
  (void)this_ptr;
  free(ep);
}

/* Our tensors live in the CPU's memory, so the slots below have nothing to do. Hosts call them unchecked. */

static OrtStatus* ORT_API_CALL factory_create_allocator(OrtEpFactory* this_ptr,
                                                        const OrtMemoryInfo* memory_info,
                                                        const OrtKeyValuePairs* options,
                                                        OrtAllocator** allocator) {
  (void)this_ptr, (void)memory_info, (void)options;
  *allocator = NULL; /* use the CPU's */
  return NULL;
}

static void ORT_API_CALL factory_release_allocator(OrtEpFactory* this_ptr, OrtAllocator* allocator) {
  (void)this_ptr, (void)allocator;
}

static OrtStatus* ORT_API_CALL factory_create_data_transfer(OrtEpFactory* this_ptr,
                                                            OrtDataTransferImpl** data_transfer) {
  (void)this_ptr;
  *data_transfer = NULL;
  return NULL;
}

static bool ORT_API_CALL factory_is_stream_aware(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return false;
}

static OrtStatus* ORT_API_CALL factory_create_sync_stream(OrtEpFactory* this_ptr,
                                                          const OrtMemoryDevice* device,
                                                          const OrtKeyValuePairs* options,
                                                          OrtSyncStreamImpl** stream) {
  (void)device, (void)options;
  *stream = NULL;
  return fail((const Factory*)this_ptr, ORT_NOT_IMPLEMENTED, "this EP has no streams");
}

/* ---- What the library exports ---- */

/* gives one factory (the host releases it with ReleaseEpFactory). */
OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* api_base,
                                          const OrtLogger* default_logger, OrtEpFactory** factories,
                                          size_t max_factories, size_t* num_factories) {
  (void)registered_name, (void)default_logger;
  uint32_t version = ORT_API_VERSION;
  const OrtApi* api = api_base->GetApi(version);
  while (api == NULL && version > OLDEST_API) api = api_base->GetApi(--version);
  if (api == NULL) /* every host has version 1, and with it a way to say no */
    return api_base->GetApi(1)->CreateStatus(ORT_FAIL, EP_NAME ": the host is older than API version 24");
  if (max_factories == 0) return api->CreateStatus(ORT_INVALID_ARGUMENT, EP_NAME ": no place for a factory");
  Factory* factory = calloc(1, sizeof *factory);
  if (factory == NULL) return api->CreateStatus(ORT_FAIL, EP_NAME ": no memory for the factory");
  factory->api = api;
  factory->ep_api = api->GetEpApi();
  factory->api_version = version;
  factory->base = (OrtEpFactory){.ort_version_supported = version,
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
                                 .CreateSyncStreamForDevice = factory_create_sync_stream};
  OrtStatus* status = fill_registry(factory);
  if (status != NULL) {
    ReleaseEpFactory(&factory->base);
    return status;
  }
  factories[0] = &factory->base;
  *num_factories = 1;
  return NULL;
}

OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  Factory* own = (Factory*)factory;
  own->ep_api->ReleaseKernelRegistry(own->registry);
  free(own);
  return NULL;
}
