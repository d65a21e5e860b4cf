/* The optional slots of an OrtEp: profiles, captured graphs, compiled models and resources. Each is filled
 * only where the provider's class defines it. */
#include <stdlib.h>

#include "bridge.h"

static BridgeCall begin(const OrtEp* base, const char* slot) {
  const PyEp* ep = (const PyEp*)base;
  return bridge_peer_call(&ep->peer, slot);
}

/* *answer is written by a successful call only. */
static OrtStatus* ask(const OrtEp* base, const char* slot, BridgeAsk what, int64_t argument,
                      int64_t* answer) {
  BridgeCall call = begin(base, slot);
  int64_t said = 0;
  if (call.entered) call.ok = bridge_py_ep_ask(&call, ((const PyEp*)base)->peer.id, what, argument, &said);
  OrtStatus* status = bridge_call_end(&call);
  if (!status) *answer = said;
  return status;
}

/* The same for slots without a status: 0 after a failure. */
static int64_t ask_void(const OrtEp* base, const char* slot, BridgeAsk what, int64_t argument) {
  BridgeCall call = begin(base, slot);
  int64_t said = 0;
  if (call.entered) call.ok = bridge_py_ep_ask(&call, ((const PyEp*)base)->peer.id, what, argument, &said);
  bool is_good = call.entered && call.ok;
  bridge_call_end_void(&call);
  return is_good ? said : 0;
}

/* ---- Profiles ---- */

static OrtStatus* ep_create_profiler(OrtEp* this_ptr, OrtEpProfilerImpl** profiler) {
  const PyEp* ep = (const PyEp*)this_ptr;
  return bridge_profiler_new(ep->peer.host, ep->peer.id, ep->peer.name, profiler);
}

/* ---- Compiled models ---- */

/* borrows: valid until it is asked again, or the provider is released; "" after a failure. */
static const char* ep_get_compatibility_info(OrtEp* this_ptr, const OrtGraph* graph) {
  PyEp* ep = (PyEp*)this_ptr;
  char* text = NULL;
  BridgeCall call = begin(this_ptr, "OrtEp::GetCompiledModelCompatibilityInfo");
  if (call.entered) call.ok = bridge_py_model_compatibility(&call, ep->peer.id, graph, &text);
  bridge_call_end_void(&call);
  free(ep->compatibility);
  ep->compatibility = text;
  return text ? text : "";
}

static OrtStatus* ep_get_weightless_support(const OrtEp* this_ptr, OrtWeightlessSupport* support) {
  int64_t answer = OrtWeightlessSupport_NONE;
  OrtStatus* status = ask(this_ptr, "OrtEp::GetWeightlessSupport", BRIDGE_ASK_WEIGHTLESS, 0, &answer);
  *support = (OrtWeightlessSupport)answer;
  return status;
}

/* ---- Captured graphs ---- */

static bool ep_is_graph_capture_enabled(const OrtEp* this_ptr) {
  return ask_void(this_ptr, "OrtEp::IsGraphCaptureEnabled", BRIDGE_ASK_CAPTURE_ENABLED, 0) != 0;
}

static bool ep_is_graph_captured(const OrtEp* this_ptr, int graph_annotation_id) {
  return ask_void(this_ptr, "OrtEp::IsGraphCaptured", BRIDGE_ASK_IS_CAPTURED, graph_annotation_id) != 0;
}

static OrtStatus* ep_replay_graph(OrtEp* this_ptr, int graph_annotation_id) {
  int64_t none = 0;
  return ask(this_ptr, "OrtEp::ReplayGraph", BRIDGE_ASK_REPLAY, graph_annotation_id, &none);
}

static OrtGraphCaptureNodeAssignmentPolicy ep_get_capture_policy(const OrtEp* this_ptr) {
  return (OrtGraphCaptureNodeAssignmentPolicy)ask_void(this_ptr, "OrtEp::GetGraphCaptureNodeAssignmentPolicy",
                                                       BRIDGE_ASK_CAPTURE_POLICY, 0);
}

static OrtStatus* ep_release_captured_graph(OrtEp* this_ptr, int graph_annotation_id) {
  int64_t none = 0;
  return ask(this_ptr, "OrtEp::ReleaseCapturedGraph", BRIDGE_ASK_RELEASE_GRAPH, graph_annotation_id, &none);
}

/* ---- Resources ---- */

/* A negative answer: no limit. */
static OrtStatus* ep_get_available_resource(const OrtEp* this_ptr, OrtResourceCount* available) {
  int64_t bytes = -1;
  OrtStatus* status = ask(this_ptr, "OrtEp::GetAvailableResource", BRIDGE_ASK_RESOURCE, 0, &bytes);
  *available =
      (OrtResourceCount){.kind = bytes < 0 ? OrtResourceCountKind_None : OrtResourceCountKind_TotalBytes};
  if (bytes >= 0) available->value.total_bytes = (uint64_t)bytes;
  return status;
}

void bridge_ep_fill(OrtEp* ep, uint32_t features) {
  if (features & BRIDGE_EP_PROFILER) ep->CreateProfiler = ep_create_profiler;
  if (features & BRIDGE_EP_COMPATIBILITY) ep->GetCompiledModelCompatibilityInfo = ep_get_compatibility_info;
  if (features & BRIDGE_EP_WEIGHTLESS) ep->GetWeightlessSupport = ep_get_weightless_support;
  if (features & BRIDGE_EP_CAPTURE_ENABLED) ep->IsGraphCaptureEnabled = ep_is_graph_capture_enabled;
  if (features & BRIDGE_EP_IS_CAPTURED) ep->IsGraphCaptured = ep_is_graph_captured;
  if (features & BRIDGE_EP_REPLAY) ep->ReplayGraph = ep_replay_graph;
  if (features & BRIDGE_EP_CAPTURE_POLICY) ep->GetGraphCaptureNodeAssignmentPolicy = ep_get_capture_policy;
  if (features & BRIDGE_EP_RELEASE_GRAPH) ep->ReleaseCapturedGraph = ep_release_captured_graph;
  if (features & BRIDGE_EP_RESOURCE) ep->GetAvailableResource = ep_get_available_resource;
}
