/* One EP of one session: made by its factory, asked for its kernels, released exactly once. */
#include <string.h>

#include "create/create.h"
#include "layout/layout.h"

static OrtStatus* use_devices(OrtEnv* env, SessionEp* ep) {
  for (size_t i = 0; i < ep->device_count; i++) {
    TRY(ep_device_use(env, ep->devices[i], "CreateSession"));
    ep->used_device_count++;
  }
  return NULL;
}

/* Calls the factory; the EP is checked before anything of it is used. */
static OrtStatus* create_ep(OrtSession* session, SessionEp* ep) {
  const OrtEpDevice* first = ep->devices[0];
  const OrtHardwareDevice** hardware = arena_calloc(&session->arena, ep->device_count, sizeof(void*));
  const OrtKeyValuePairs** metadata = arena_calloc(&session->arena, ep->device_count, sizeof(void*));
  if (hardware == NULL || metadata == NULL) return status_no_memory();
  for (size_t i = 0; i < ep->device_count; i++) {
    if (ep->devices[i]->factory != first->factory)
      return status_new(ORT_INVALID_ARGUMENT, "EP '%s': its devices do not come from one factory",
                        first->ep_name);
    hardware[i] = ep->devices[i]->device;
    metadata[i] = ep->devices[i]->ep_metadata;
  }
  OrtEp* made = NULL;
  OrtStatus* status = call_OrtEpFactory_CreateEp(first->factory, hardware, metadata, ep->device_count,
                                                 session->options, &session->logger, &made);
  if (status != NULL) return ep_failure(status, "EP '%s': OrtEpFactory::CreateEp failed", first->ep_name);
  if (made == NULL)
    return status_new(ORT_EP_FAIL, "EP '%s': OrtEpFactory::CreateEp said OK and gave no OrtEp",
                      first->ep_name);
  ep->factory = first->factory;
  ep->ep = made;
  TRY(guard_ep(made, first->ep_name));
  ep->version = guard_version(made->ort_version_supported, OLDEST_EP, "OrtEp", first->ep_name);
  return NULL;
}

static OrtStatus* read_name(OrtSession* session, SessionEp* ep) {
  OrtStatus* thrown = NULL;
  const char* name = call_OrtEp_GetName(ep->ep, &thrown);
  if (thrown != NULL) return ep_failure(thrown, "EP '%s'", ep->devices[0]->ep_name);
  if (name == NULL || name[0] == '\0')
    return status_new(ORT_EP_FAIL, "EP '%s': OrtEp::GetName gave no name", ep->devices[0]->ep_name);
  ep->name = arena_str(&session->arena, name, strlen(name));
  return ep->name != NULL ? NULL : status_no_memory();
}

static OrtStatus* read_kernels(SessionEp* ep) {
  OrtStatus*(ORT_API_CALL * get)(OrtEp*, const OrtKernelRegistry**) =
      GUARD_SLOT(ep->ep, ep->version, GetKernelRegistry, 24);
  if (get == NULL) return NULL;
  const OrtKernelRegistry* registry = NULL;
  OrtStatus* status = call_OrtEp_GetKernelRegistry(ep->ep, &registry);
  if (status != NULL) return ep_failure(status, "EP '%s': OrtEp::GetKernelRegistry failed", ep->name);
  if (registry == NULL) return NULL; /* an EP that only compiles */
  ep->registry = kernel_registry_copy(registry);
  return ep->registry != NULL ? NULL : status_no_memory();
}

static OrtStatus* read_concurrency(SessionEp* ep) {
  ep->is_concurrent = true;
  OrtStatus*(ORT_API_CALL * ask)(OrtEp*, bool*) =
      GUARD_SLOT(ep->ep, ep->version, IsConcurrentRunSupported, 24);
  if (ask == NULL) return NULL;
  OrtStatus* status = call_OrtEp_IsConcurrentRunSupported(ep->ep, &ep->is_concurrent);
  if (status != NULL) return ep_failure(status, "EP '%s': OrtEp::IsConcurrentRunSupported failed", ep->name);
  return NULL;
}

OrtStatus* session_ep_open(OrtSession* session, const OrtEpDevice* const* devices, size_t device_count,
                           SessionEp* out) {
  OrtStatus* status = NULL;
  SessionEp ep = {.devices = devices, .device_count = device_count};
  AtWork before = at_work_begin("EP", devices[0]->ep_name, NULL, NULL);
  TRY_DONE(use_devices(session->env, &ep));
  TRY_DONE(ep_custom_ops_add(devices[0], session->options));
  TRY_DONE(create_ep(session, &ep));
  TRY_DONE(read_name(session, &ep));
  TRY_DONE(read_kernels(&ep));
  TRY_DONE(read_concurrency(&ep));
  TRY_DONE(layout_ask(&ep));
  ep.on_run_start = GUARD_SLOT(ep.ep, ep.version, OnRunStart, 23);
  ep.on_run_end = GUARD_SLOT(ep.ep, ep.version, OnRunEnd, 23);
  *out = ep;
done:
  at_work = before;
  if (status != NULL) session_ep_close(&ep);
  return status;
}

void session_ep_close(SessionEp* ep) {
  if (ep->device_count == 0) return;
  AtWork before = at_work_begin("EP", ep->devices[0]->ep_name, NULL, NULL);
  if (ep->compute_info_count != 0) {
    call_OrtEp_ReleaseNodeComputeInfos(ep->ep, ep->compute_infos, ep->compute_info_count, NULL);
    ep->compute_info_count = 0;
  }
  mem_free(ep->compute_infos);
  if (ep->ep != NULL) call_OrtEpFactory_ReleaseEp(ep->factory, ep->ep, NULL);
  at_work = before;
  kernel_registry_release(ep->registry);
  for (size_t i = ep->used_device_count; i-- > 0;) ep_device_unuse(ep->devices[i]);
  *ep = (SessionEp){0};
}
