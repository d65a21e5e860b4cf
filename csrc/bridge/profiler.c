/* OrtEpProfilerImpl of a provider: its part of a session's profile. */
#include "bridge.h"

typedef struct PyProfiler {
  OrtEpProfilerImpl base; /* first: the host's pointer is ours */
  BridgePeer peer;
} PyProfiler;

static BridgePeer* peer_of(OrtEpProfilerImpl* profiler) {
  return &((PyProfiler*)profiler)->peer;
}

static OrtStatus* profiler_start_profiling(OrtEpProfilerImpl* this_ptr, int64_t offset_ns) {
  BridgeCall call = bridge_peer_call(peer_of(this_ptr), "OrtEpProfilerImpl::StartProfiling");
  if (call.entered) call.ok = bridge_py_start_profiling(&call, peer_of(this_ptr)->id, offset_ns);
  return bridge_call_end(&call);
}

/* Any thread that runs the session, as the next. */
static OrtStatus* profiler_start_event(OrtEpProfilerImpl* this_ptr, uint64_t event_id) {
  BridgeCall call = bridge_peer_call(peer_of(this_ptr), "OrtEpProfilerImpl::StartEvent");
  if (call.entered) call.ok = bridge_py_start_event(&call, peer_of(this_ptr)->id, event_id);
  return bridge_call_end(&call);
}

/* borrows the event during the call. */
static OrtStatus* profiler_stop_event(OrtEpProfilerImpl* this_ptr, uint64_t event_id,
                                      const OrtProfilingEvent* event) {
  BridgeCall call = bridge_peer_call(peer_of(this_ptr), "OrtEpProfilerImpl::StopEvent");
  if (call.entered) call.ok = bridge_py_stop_event(&call, peer_of(this_ptr)->id, event_id, event);
  return bridge_call_end(&call);
}

static OrtStatus* profiler_end_profiling(OrtEpProfilerImpl* this_ptr, OrtProfilingEventsContainer* events) {
  BridgeCall call = bridge_peer_call(peer_of(this_ptr), "OrtEpProfilerImpl::EndProfiling");
  if (call.entered) call.ok = bridge_py_end_profiling(&call, peer_of(this_ptr)->id, events);
  return bridge_call_end(&call);
}

static void profiler_release(OrtEpProfilerImpl* this_ptr) {
  bridge_peer_free(this_ptr, peer_of(this_ptr), "OrtEpProfilerImpl::Release");
}

/* Gives the profiler (host releases with its Release), NULL if the provider has none. Copies name. */
OrtStatus* bridge_profiler_new(const BridgeHost* host, uint64_t ep_id, const char* name,
                               OrtEpProfilerImpl** out) {
  static const char slot[] = "OrtEp::CreateProfiler";
  uint64_t id = 0;
  uint32_t features = 0;
  *out = NULL;
  BridgeCall call = bridge_call_begin(host, slot, name);
  if (call.entered) call.ok = bridge_py_create_profiler(&call, ep_id, &id, &features);
  OrtStatus* status = bridge_call_end(&call);
  if (status || !id) return status;
  PyProfiler* made = bridge_peer_new(sizeof *made, offsetof(PyProfiler, peer), host, id, name, slot);
  if (!made) return bridge_no_memory(host, slot);
  made->base = (OrtEpProfilerImpl){.ort_version_supported = host->version,
                                   .Release = profiler_release,
                                   .StartProfiling = profiler_start_profiling,
                                   .EndProfiling = profiler_end_profiling};
  if (features & BRIDGE_PROFILER_START_EVENT) made->base.StartEvent = profiler_start_event;
  if (features & BRIDGE_PROFILER_STOP_EVENT) made->base.StopEvent = profiler_stop_event;
  *out = &made->base;
  return NULL;
}
