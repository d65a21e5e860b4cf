/* OrtEpProfilerImpl of a provider: its part of a session's profile. */
#include <stdlib.h>

#include "bridge.h"

typedef struct PyProfiler {
  OrtEpProfilerImpl base; /* first: the host's pointer is ours */
  const BridgeHost* host;
  uint64_t id;
  char* name; /* of the provider */
} PyProfiler;

static PyProfiler* of(OrtEpProfilerImpl* profiler) {
  return (PyProfiler*)profiler;
}

static BridgeCall begin(OrtEpProfilerImpl* this_ptr, const char* slot) {
  return bridge_call_begin(of(this_ptr)->host, slot, of(this_ptr)->name);
}

static OrtStatus* profiler_start_profiling(OrtEpProfilerImpl* this_ptr, int64_t offset_ns) {
  BridgeCall call = begin(this_ptr, "OrtEpProfilerImpl::StartProfiling");
  if (call.entered) call.ok = bridge_py_start_profiling(&call, of(this_ptr)->id, offset_ns);
  return bridge_call_end(&call);
}

/* Any thread that runs the session, as the next. */
static OrtStatus* profiler_start_event(OrtEpProfilerImpl* this_ptr, uint64_t event_id) {
  BridgeCall call = begin(this_ptr, "OrtEpProfilerImpl::StartEvent");
  if (call.entered) call.ok = bridge_py_start_event(&call, of(this_ptr)->id, event_id);
  return bridge_call_end(&call);
}

/* borrows the event during the call. */
static OrtStatus* profiler_stop_event(OrtEpProfilerImpl* this_ptr, uint64_t event_id,
                                      const OrtProfilingEvent* event) {
  BridgeCall call = begin(this_ptr, "OrtEpProfilerImpl::StopEvent");
  if (call.entered) call.ok = bridge_py_stop_event(&call, of(this_ptr)->id, event_id, event);
  return bridge_call_end(&call);
}

static OrtStatus* profiler_end_profiling(OrtEpProfilerImpl* this_ptr, OrtProfilingEventsContainer* events) {
  BridgeCall call = begin(this_ptr, "OrtEpProfilerImpl::EndProfiling");
  if (call.entered) call.ok = bridge_py_end_profiling(&call, of(this_ptr)->id, events);
  return bridge_call_end(&call);
}

static void profiler_release(OrtEpProfilerImpl* this_ptr) {
  PyProfiler* profiler = of(this_ptr);
  bridge_release(profiler->host, "OrtEpProfilerImpl::Release", profiler->name, profiler->id);
  free(profiler->name);
  free(profiler);
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
  PyProfiler* made = calloc(1, sizeof *made);
  char* copy = bridge_copy_string(name);
  if (!made || !copy) {
    free(made);
    free(copy);
    bridge_release(host, slot, name, id);
    return bridge_no_memory(host, slot);
  }
  made->host = host;
  made->id = id;
  made->name = copy;
  made->base = (OrtEpProfilerImpl){.ort_version_supported = host->version,
                                   .Release = profiler_release,
                                   .StartProfiling = profiler_start_profiling,
                                   .EndProfiling = profiler_end_profiling};
  if (features & BRIDGE_PROFILER_START_EVENT) made->base.StartEvent = profiler_start_event;
  if (features & BRIDGE_PROFILER_STOP_EVENT) made->base.StopEvent = profiler_stop_event;
  *out = &made->base;
  return NULL;
}
