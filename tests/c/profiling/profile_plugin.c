/* The sample provider with a profiler: for each event of the host it adds one of its own. */
#include "profile_plugin.h"

/* The sample as it is, with its two exports under other names. */
OrtStatus* ORT_API_CALL sample_create(const char* registered_name, const OrtApiBase* api_base,
                                      const OrtLogger* default_logger, OrtEpFactory** factories,
                                      size_t max_factories, size_t* num_factories);
OrtStatus* ORT_API_CALL sample_release(OrtEpFactory* factory);
#define CreateEpFactories sample_create
#define ReleaseEpFactory  sample_release
#include "../../../samples/c_plugin/c_plugin.c"
#undef CreateEpFactories
#undef ReleaseEpFactory

#define MAX_EVENTS 4096
#define MAX_DEPTH  16

static ProfileControl control;
static const Factory* sample;
static OrtStatus*(ORT_API_CALL* sample_create_ep)(OrtEpFactory*, const OrtHardwareDevice* const*,
                                                  const OrtKeyValuePairs* const*, size_t,
                                                  const OrtSessionOptions*, const OrtLogger*, OrtEp**);

ProfileControl* profile_control(void);
ProfileControl* profile_control(void) {
  return &control;
}

typedef struct Event {
  char name[160];
  int64_t timestamp_us, duration_us;
  bool has_shapes;
} Event;

typedef struct EpProfiler {
  OrtEpProfilerImpl base;
  bool is_on;
  _Atomic int count;
  Event events[MAX_EVENTS];
} EpProfiler;

static _Thread_local uint64_t open_ids[MAX_DEPTH];
static _Thread_local int depth;

static OrtStatus* fault(ProfileFault which) {
  if (control.fault != which) return NULL;
  return sample->api->CreateStatus(ORT_EP_FAIL, "as the test wants it");
}

static void ORT_API_CALL profiler_release(OrtEpProfilerImpl* this_ptr) {
  control.alive--;
  free(this_ptr);
}

static OrtStatus* ORT_API_CALL profiler_start(OrtEpProfilerImpl* this_ptr, int64_t offset_ns) {
  control.starts++;
  control.start_offset_ns = offset_ns;
  ((EpProfiler*)this_ptr)->is_on = true;
  return fault(PROFILE_START_FAILS);
}

static OrtStatus* ORT_API_CALL profiler_begin_event(OrtEpProfilerImpl* this_ptr, uint64_t id) {
  control.begun++;
  control.late += !((EpProfiler*)this_ptr)->is_on;
  control.out_of_order +=
      depth > 0 && depth <= MAX_DEPTH && open_ids[depth - 1] == id; /* the one around it */
  if (depth < MAX_DEPTH) open_ids[depth] = id;
  depth++;
  return fault(PROFILE_EVENTS_FAIL);
}

static OrtStatus* ORT_API_CALL profiler_finish_event(OrtEpProfilerImpl* this_ptr, uint64_t id,
                                                     const OrtProfilingEvent* event) {
  EpProfiler* profiler = (EpProfiler*)this_ptr;
  const OrtEpApi* api = sample->ep_api;
  OrtStatus* status = NULL;
  const char *name = NULL, *shapes = NULL;
  control.finished++;
  control.late += !profiler->is_on;
  depth--;
  control.out_of_order += depth < 0 || (depth < MAX_DEPTH && open_ids[depth] != id);
  if (depth < 0) depth = 0;
  int at = profiler->count++;
  if (at >= MAX_EVENTS) return NULL;
  Event* kept = &profiler->events[at];
  TRY(api->ProfilingEvent_GetName(event, &name));
  snprintf(kept->name, sizeof kept->name, "%s", name);
  TRY(api->ProfilingEvent_GetTimestampUs(event, &kept->timestamp_us));
  TRY(api->ProfilingEvent_GetDurationUs(event, &kept->duration_us));
  TRY(api->ProfilingEvent_GetArgValue(event, "input_type_shape", &shapes));
  kept->has_shapes = shapes != NULL;
done:
  return status != NULL ? status : fault(PROFILE_EVENTS_FAIL);
}

static OrtStatus* ORT_API_CALL profiler_end(OrtEpProfilerImpl* this_ptr,
                                            OrtProfilingEventsContainer* container) {
  EpProfiler* profiler = (EpProfiler*)this_ptr;
  const OrtEpApi* api = sample->ep_api;
  OrtStatus* status = NULL;
  OrtProfilingEvent* event = NULL;
  control.ends++;
  profiler->is_on = false;
  int count = profiler->count < MAX_EVENTS ? profiler->count : MAX_EVENTS;
  for (int i = 0; i < count; i++) {
    const Event* kept = &profiler->events[i];
    const char* keys[] = {"parent_name", "shapes", "list", "text"};
    const char* values[] = {kept->name, kept->has_shapes ? "yes" : "no", "[1, 2]", "a \"quoted\"\n\\text"};
    TRY(api->CreateProfilingEvent(OrtProfilingEventCategory_KERNEL, -1, -1, "ep_event", kept->timestamp_us,
                                  kept->duration_us, keys, values, 4, &event));
    status = api->ProfilingEventsContainer_AddEvents(container, (const OrtProfilingEvent* const*)&event, 1);
    api->ReleaseProfilingEvent(event);
    if (status != NULL) goto done;
  }
done:
  return status != NULL ? status : fault(PROFILE_END_FAILS);
}

static OrtStatus* ORT_API_CALL ep_create_profiler(OrtEp* this_ptr, OrtEpProfilerImpl** out) {
  (void)this_ptr;
  control.creates++;
  *out = NULL;
  if (control.fault == PROFILE_CREATE_FAILS) return fault(PROFILE_CREATE_FAILS);
  if (control.fault == PROFILE_NONE) return NULL;
  EpProfiler* made = calloc(1, sizeof *made);
  if (made == NULL) return sample->api->CreateStatus(ORT_FAIL, "no memory for a profiler");
  bool has_events = control.fault != PROFILE_NO_EVENTS;
  control.alive++;
  made->base.ort_version_supported = control.fault == PROFILE_VERSION_0 ? 0
                                     : control.fault == PROFILE_OLD     ? 24
                                                                        : sample->api_version;
  made->base.Release = profiler_release;
  made->base.StartProfiling = profiler_start;
  made->base.StartEvent = has_events ? profiler_begin_event : NULL;
  made->base.StopEvent = has_events ? profiler_finish_event : NULL;
  made->base.EndProfiling = control.fault == PROFILE_NO_END ? NULL : profiler_end;
  *out = &made->base;
  return NULL;
}

static OrtStatus* ORT_API_CALL create_ep(OrtEpFactory* this_ptr, const OrtHardwareDevice* const* devices,
                                         const OrtKeyValuePairs* const* metadata, size_t num_devices,
                                         const OrtSessionOptions* session_options, const OrtLogger* logger,
                                         OrtEp** ep) {
  OrtStatus* status = sample_create_ep(this_ptr, devices, metadata, num_devices, session_options, logger, ep);
  if (status != NULL) return status;
  (*ep)->CreateProfiler = ep_create_profiler;
  if (control.fault == PROFILE_OLD_EP) (*ep)->ort_version_supported = 24;
  return NULL;
}

OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* api_base,
                                          const OrtLogger* default_logger, OrtEpFactory** factories,
                                          size_t max_factories, size_t* num_factories) {
  OrtStatus* status =
      sample_create(registered_name, api_base, default_logger, factories, max_factories, num_factories);
  if (status != NULL) return status;
  sample = (const Factory*)factories[0];
  sample_create_ep = factories[0]->CreateEp;
  factories[0]->CreateEp = create_ep;
  return NULL;
}

OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  return sample_release(factory);
}
