/* OrtEp of one session. */
#include <stdlib.h>

#include "bridge.h"

static PyEp* of(const OrtEp* ep) {
  return (PyEp*)ep;
}

static const char* ep_get_name(const OrtEp* this_ptr) {
  return of(this_ptr)->peer.name;
}

static OrtStatus* ep_get_capability(OrtEp* this_ptr, const OrtGraph* graph,
                                    OrtEpGraphSupportInfo* graph_support_info) {
  PyEp* ep = of(this_ptr);
  BridgeCall call = bridge_peer_call(&ep->peer, "OrtEp::GetCapability");
  if (call.entered) call.ok = bridge_py_get_capability(&call, ep->peer.id, graph, graph_support_info);
  return bridge_call_end(&call);
}

static void ep_release_node_compute_infos(OrtEp* this_ptr, OrtNodeComputeInfo** infos, size_t count) {
  (void)this_ptr;
  for (size_t i = 0; i < count; i++) {
    if (infos[i]) bridge_compute_info_free(infos[i]);
    infos[i] = NULL;
  }
}

static OrtStatus* ep_compile(OrtEp* this_ptr, const OrtGraph** graphs, const OrtNode** fused_nodes,
                             size_t count, OrtNodeComputeInfo** infos, OrtNode** ep_context_nodes) {
  PyEp* ep = of(this_ptr);
  uint64_t* ids = calloc(count ? count : 1, sizeof *ids);
  if (!ids) return bridge_no_memory(ep->peer.host, "OrtEp::Compile");
  for (size_t i = 0; i < count; i++) infos[i] = NULL;

  BridgeCall call = bridge_peer_call(&ep->peer, "OrtEp::Compile");
  if (call.entered)
    call.ok = bridge_py_compile(&call, ep->peer.id, graphs, fused_nodes, count, ids, ep_context_nodes);
  OrtStatus* status = bridge_call_end(&call);
  for (size_t i = 0; i < count && !status; i++) {
    status = bridge_compute_info_new(ep->peer.host, ids[i], ep->peer.name, &infos[i]);
    if (status) {
      for (size_t j = i + 1; j < count; j++)
        bridge_release(ep->peer.host, "OrtEp::Compile", ep->peer.name, ids[j]);
      ep_release_node_compute_infos(this_ptr, infos, i);
    }
  }
  free(ids);
  return status;
}

static OrtStatus* ep_get_kernel_registry(OrtEp* this_ptr, const OrtKernelRegistry** registry) {
  PyEp* ep = of(this_ptr);
  BridgeCall call = bridge_peer_call(&ep->peer, "OrtEp::GetKernelRegistry");
  *registry = NULL;
  if (call.entered) call.ok = bridge_py_get_kernel_registry(&call, ep->peer.id, registry);
  return bridge_call_end(&call);
}

static OrtStatus* ep_on_run_start(OrtEp* this_ptr, const OrtRunOptions* run_options) {
  PyEp* ep = of(this_ptr);
  BridgeCall call = bridge_peer_call(&ep->peer, "OrtEp::OnRunStart");
  if (call.entered) call.ok = bridge_py_run_start(&call, ep->peer.id, run_options);
  return bridge_call_end(&call);
}

static OrtStatus* ep_on_run_end(OrtEp* this_ptr, const OrtRunOptions* run_options, bool sync_stream) {
  PyEp* ep = of(this_ptr);
  BridgeCall call = bridge_peer_call(&ep->peer, "OrtEp::OnRunEnd");
  if (call.entered) call.ok = bridge_py_run_end(&call, ep->peer.id, run_options, sync_stream);
  return bridge_call_end(&call);
}

static OrtStatus* ep_set_dynamic_options(OrtEp* this_ptr, const char* const* keys, const char* const* values,
                                         size_t count) {
  PyEp* ep = of(this_ptr);
  BridgeCall call = bridge_peer_call(&ep->peer, "OrtEp::SetDynamicOptions");
  if (call.entered) call.ok = bridge_py_set_dynamic_options(&call, ep->peer.id, keys, values, count);
  return bridge_call_end(&call);
}

static OrtStatus* ep_on_session_initialization_end(OrtEp* this_ptr) {
  PyEp* ep = of(this_ptr);
  BridgeCall call = bridge_peer_call(&ep->peer, "OrtEp::OnSessionInitializationEnd");
  if (call.entered) call.ok = bridge_py_session_ready(&call, ep->peer.id);
  return bridge_call_end(&call);
}

/* For read-only memory hosts ask only here. */
static OrtStatus* ep_create_allocator(OrtEp* this_ptr, const OrtMemoryInfo* memory_info,
                                      OrtAllocator** allocator) {
  PyEp* ep = of(this_ptr);
  return bridge_allocator_new(ep->peer.host, "OrtEp::CreateAllocator", ep->factory, ep->peer.id,
                              ep->peer.name, memory_info, NULL, allocator);
}

static OrtStatus* ep_create_sync_stream(OrtEp* this_ptr, const OrtMemoryDevice* memory_device,
                                        OrtSyncStreamImpl** stream) {
  PyEp* ep = of(this_ptr);
  return bridge_stream_new(ep->peer.host, "OrtEp::CreateSyncStreamForDevice", ep->peer.id, ep->peer.name,
                           memory_device, NULL, stream);
}

/* The host borrows the device from the factory. */
static OrtStatus* ep_get_default_memory_device(const OrtEp* this_ptr, const OrtMemoryDevice** device) {
  PyEp* ep = of(this_ptr);
  BridgeCall call = bridge_peer_call(&ep->peer, "OrtEp::GetDefaultMemoryDevice");
  *device = NULL;
  if (call.entered) call.ok = bridge_py_default_memory_device(&call, ep->peer.id, device);
  return bridge_call_end(&call);
}

static OrtStatus* ep_sync(OrtEp* this_ptr) {
  PyEp* ep = of(this_ptr);
  BridgeCall call = bridge_peer_call(&ep->peer, "OrtEp::Sync");
  if (call.entered) call.ok = bridge_py_ep_sync(&call, ep->peer.id);
  return bridge_call_end(&call);
}

static OrtStatus* ep_get_preferred_data_layout(OrtEp* this_ptr, OrtEpDataLayout* layout) {
  (void)this_ptr;
  *layout = OrtEpDataLayout_NHWC;
  return NULL;
}

static OrtStatus* ep_should_convert_data_layout(OrtEp* this_ptr, const char* domain, const char* op_type,
                                                OrtEpDataLayout target, int* should_convert) {
  PyEp* ep = of(this_ptr);
  (void)target; /* the one that it prefers */
  BridgeCall call = bridge_peer_call(&ep->peer, "OrtEp::ShouldConvertDataLayoutForOp");
  if (call.entered) call.ok = bridge_py_should_convert(&call, ep->peer.id, domain, op_type, should_convert);
  return bridge_call_end(&call);
}

/* Gives the OrtEp of the Python object with this id (released with bridge_ep_free); copies name. A failure
 * releases the Python object. */
OrtStatus* bridge_ep_new(const BridgeHost* host, OrtEpFactory* factory, uint64_t id, uint32_t features,
                         const char* name, OrtEp** out) {
  static const char slot[] = "OrtEpFactory::CreateEp";
  PyEp* ep = bridge_peer_new(sizeof *ep, offsetof(PyEp, peer), host, id, name, slot);
  if (!ep) return bridge_no_memory(host, slot);
  ep->factory = factory;
  ep->base.ort_version_supported = host->version;
  ep->base.GetName = ep_get_name;
  ep->base.GetCapability = ep_get_capability;
  ep->base.Compile = ep_compile; /* also for kernels only: Python says why a claim cannot be compiled */
  ep->base.ReleaseNodeComputeInfos = ep_release_node_compute_infos;
  if (features & BRIDGE_EP_KERNELS) ep->base.GetKernelRegistry = ep_get_kernel_registry;
  if (features & BRIDGE_EP_RUN_START) ep->base.OnRunStart = ep_on_run_start;
  if (features & BRIDGE_EP_RUN_END) ep->base.OnRunEnd = ep_on_run_end;
  if (features & BRIDGE_EP_DYNAMIC_OPTIONS) ep->base.SetDynamicOptions = ep_set_dynamic_options;
  if (features & BRIDGE_EP_SESSION_READY)
    ep->base.OnSessionInitializationEnd = ep_on_session_initialization_end;
  if (features & BRIDGE_EP_ALLOCATOR) ep->base.CreateAllocator = ep_create_allocator;
  if (features & BRIDGE_EP_SYNC) ep->base.Sync = ep_sync;
  if (features & BRIDGE_EP_STREAM) ep->base.CreateSyncStreamForDevice = ep_create_sync_stream;
  if (features & BRIDGE_EP_DEFAULT_MEMORY) ep->base.GetDefaultMemoryDevice = ep_get_default_memory_device;
  if (features & BRIDGE_EP_CHANNELS_LAST) ep->base.GetPreferredDataLayout = ep_get_preferred_data_layout;
  if (features & BRIDGE_EP_CONVERTS_LAYOUT)
    ep->base.ShouldConvertDataLayoutForOp = ep_should_convert_data_layout;
  bridge_ep_fill(&ep->base, features);
  *out = &ep->base;
  return NULL;
}

/* The id of the Python object of a provider; 0 for somebody else's. */
uint64_t bridge_ep_id(const OrtEp* ep) {
  return ep && ep->GetCapability == ep_get_capability ? of(ep)->peer.id : 0;
}

/* Releases the OrtEp and its Python object. */
void bridge_ep_free(OrtEp* base) {
  PyEp* ep = of(base);
  free(ep->compatibility);
  bridge_peer_free(ep, &ep->peer, "OrtEpFactory::ReleaseEp");
}
