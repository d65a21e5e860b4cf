/* A Run with values on devices: streams, waits, copies between places. */
#include <string.h>

#include "run/run.h"

/* ---- Streams ---- */

/* The EP's own stream, or its factory's. */
static OrtStatus* open_stream(OrtSession* session, const SessionEp* ep, OrtSyncStream** out) {
  const OrtMemoryDevice* device = &session->places[ep->place].memory->device;
  uint32_t factory_version = ep->devices[0]->factory_version;
  OrtStatus*(ORT_API_CALL * by_ep)(OrtEp*, const OrtMemoryDevice*, OrtSyncStreamImpl**) =
      GUARD_SLOT(ep->ep, ep->version, CreateSyncStreamForDevice, 23);
  OrtStatus*(ORT_API_CALL * by_factory)(OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                                        OrtSyncStreamImpl**) =
      GUARD_SLOT(ep->factory, factory_version, CreateSyncStreamForDevice, 23);
  OrtSyncStreamImpl* impl = NULL;
  OrtStatus* status = NULL;
  if (by_ep != NULL)
    status = by_ep(ep->ep, device, &impl);
  else if (by_factory != NULL)
    status = by_factory(ep->factory, device, NULL, &impl);
  else
    return status_new(ORT_NOT_IMPLEMENTED, "EP '%s' is stream-aware, but has no CreateSyncStreamForDevice",
                      ep->name);
  if (status != NULL) return ep_failure(status, "EP '%s': CreateSyncStreamForDevice failed", ep->name);
  return stream_new(session->env, ep->devices[0], device, impl, out);
}

static bool is_callers(const Frame* frame, size_t stream) {
  return frame->streams[stream] != NULL && frame->streams[stream] != frame->own_streams[stream];
}

static const OrtMemoryDevice* device_of(const OrtSession* session, const SessionEp* ep) {
  return &session->places[ep->place].memory->device;
}

/* True when the caller's stream is of this EP, which can use it then. */
static bool can_stand_in(const OrtSession* session, const OrtSyncStream* callers, const SessionEp* ep) {
  return callers != NULL && callers->ep_device->factory == ep->factory &&
         memory_device_equal(&callers->device, device_of(session, ep));
}

/* The stream of the run options (may be NULL) takes the place of the frame's own. */
static OrtStatus* open_streams(Frame* frame) {
  OrtSession* session = frame->session;
  OrtSyncStream* callers = frame->options != NULL ? frame->options->stream : NULL;
  bool is_known = callers == NULL;
  for (size_t i = 1; i < session->stream_count; i++) {
    const SessionStream* stream = &session->streams[i];
    bool stands_in = can_stand_in(session, callers, stream->ep);
    is_known = is_known || stands_in;
    if (stands_in) frame->streams[i] = callers;
    if (stands_in || !stream->has_work) continue;
    if (frame->own_streams[i] == NULL) TRY(open_stream(session, stream->ep, &frame->own_streams[i]));
    frame->streams[i] = frame->own_streams[i];
  }
  if (is_known) return NULL;
  return status_new(ORT_INVALID_ARGUMENT,
                    "the run options' stream is one of '%s', for a device that this EP does not work on in "
                    "the session",
                    callers->ep_device->ep_name);
}

OrtSyncStream* stream_for_memory(const Frame* frame, int32_t stream, int32_t place) {
  const SessionStream* made_for = &frame->session->streams[stream];
  return made_for->is_known && made_for->ep->place == place ? frame->streams[stream] : NULL;
}

/* ---- Inputs ---- */

/* Work that made the caller's device values may still go on: only the EP can know. */
static OrtStatus* sync_eps(Frame* frame) {
  OrtSession* session = frame->session;
  const Plan* plan = frame->plan;
  for (size_t i = 0; i < session->ep_count; i++) {
    const SessionEp* ep = &session->eps[i];
    OrtStatus*(ORT_API_CALL * sync)(OrtEp*) = GUARD_SLOT(ep->ep, ep->version, Sync, 25);
    if (ep->place == 0 || sync == NULL || is_callers(frame, (size_t)ep->stream)) continue;
    bool is_given = false;
    for (size_t k = 0; k < plan->input_count && !is_given; k++)
      is_given =
          frame->input_given[k] &&
          memory_device_equal(&frame->values[plan->inputs[k].slot]->memory->device, device_of(session, ep));
    OrtStatus* status = is_given ? sync(ep->ep) : NULL;
    if (status != NULL) return ep_failure(status, "EP '%s': OrtEp::Sync failed", ep->name);
  }
  return NULL;
}

/* A stream of the run whose EP copies the value to the host; NULL: none. */
static OrtSyncStream* stream_for(const Frame* frame, const OrtValue* value) {
  const OrtSession* session = frame->session;
  const OrtMemoryDevice* from = &value->memory->device;
  for (size_t i = 1; i < session->stream_count; i++) {
    const OrtSyncStream* stream = frame->streams[i];
    if (stream != NULL && memory_device_equal(&stream->device, from) &&
        env_can_copy(session->env, stream->ep_device, from, &memory_info_cpu.device))
      return frame->streams[i];
  }
  return NULL;
}

/* Inputs on a device that units read in host memory. */
static OrtStatus* stage_inputs(Frame* frame) {
  const Plan* plan = frame->plan;
  for (size_t i = 0; i < plan->input_count; i++) {
    const InputSpec* spec = &plan->inputs[i];
    const OrtValue* given = frame->input_given[i] ? frame->values[spec->slot] : NULL;
    if (given == NULL || !spec->is_read_on_host || memory_device_is_host(&given->memory->device)) continue;
    TRY(value_new_tensor(allocator_cpu(), given->element_type, given->rank, given->dims, &frame->staged[i]));
    OrtSyncStream* stream = stream_for(frame, given);
    OrtStatus* status = env_copy_tensors(frame->session->env, &given, &frame->staged[i], stream, 1);
    if (status == NULL && stream != NULL) status = stream_flush(stream);
    if (status != NULL) return status_wrap(status, "input '%s' could not be copied to the host", spec->name);
    frame->values[spec->slot] = frame->staged[i];
  }
  return NULL;
}

static void borrow_streams(Frame* frame, const Frame* from) {
  for (size_t i = 0; i < frame->session->stream_count; i++) frame->streams[i] = from->streams[i];
}

OrtStatus* devices_begin(Frame* frame) {
  if (frame->parent != NULL)
    borrow_streams(frame, frame->parent);
  else
    TRY(open_streams(frame));
  if (!frame->has_device_values) return NULL;
  TRY(sync_eps(frame));
  return stage_inputs(frame);
}

/* ---- Steps ---- */

OrtStatus* devices_wait(Frame* frame, const Step* step) {
  for (size_t i = 0; i < step->wait_count; i++) {
    const Wait* wait = &step->waits[i];
    Notification* notification = &frame->notifications[wait->notification];
    if (notification->impl == NULL) continue;
    TRY(wait->is_on_device ? notification_wait_on_device(notification, frame->streams[step->stream])
                           : notification_wait_on_host(notification));
  }
  return NULL;
}

OrtStatus* devices_notify(Frame* frame, const Step* step) {
  OrtSyncStream* stream = frame->streams[step->stream];
  if (stream == NULL) return NULL; /* the work was done when the call returned */
  Notification* notification = &frame->notifications[step->notification];
  TRY(notification_open(stream, notification));
  return notification_activate(notification);
}

OrtStatus* devices_copy(Frame* frame, const Step* step) {
  const OrtValue* source = frame->values[step->inputs[0]];
  int32_t slot = step->outputs[0];
  if (source == NULL) return NULL;
  const Place* place = &frame->session->places[frame->plan->slots[slot].place];
  if (memory_device_equal(&source->memory->device, &place->memory->device)) {
    frame->values[slot] = value_retain(source); /* an input that lies where it is read */
    return NULL;
  }
  TRY(frame_make(frame, slot, source->rank, source->dims, -1));
  return env_copy_tensors(frame->session->env, &source, &frame->values[slot], frame->streams[step->stream],
                          1);
}

/* ---- Outputs ---- */

OrtStatus* copy_to_output(Frame* frame, const OutputSpec* spec, const OrtValue* source,
                          const OrtMemoryInfo* memory, OrtSyncStream* stream, OrtValue** out) {
  OrtEnv* env = frame->session->env;
  OrtValue* target = *out;
  if (target == NULL) {
    OrtAllocator* allocator = memory != NULL ? env_shared_allocator(env, memory) : allocator_cpu();
    if (allocator == NULL)
      return status_new(ORT_INVALID_ARGUMENT, "there is no allocator for memory '%s' of output '%s'",
                        memory->name, spec->name);
    TRY(value_new_tensor(allocator, source->element_type, source->rank, source->dims, &target));
  }
  OrtStatus* status = NULL;
  if (target->element_type != source->element_type)
    status = status_new(ORT_INVALID_ARGUMENT, "preallocated output '%s' is of %s, the value it shows of %s",
                        spec->name, element_type_name(target->element_type),
                        element_type_name(source->element_type));
  else if (target->rank != source->rank || target->size_bytes != source->size_bytes ||
           memcmp(target->dims, source->dims, source->rank * sizeof(int64_t)) != 0)
    status = status_new(ORT_INVALID_ARGUMENT,
                        "preallocated output '%s' has another shape than the value it shows", spec->name);
  else if (source->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    status = value_copy_strings(source, target);
  else
    status = env_copy_tensors(env, &source, &target, stream, 1);
  if (status != NULL && *out == NULL) value_release(target);
  if (status == NULL) *out = target;
  return status;
}

OrtStatus* devices_fetch(Frame* frame) {
  const Plan* plan = frame->plan;
  for (size_t i = 0; i < plan->output_count; i++) {
    const OutputSpec* spec = &plan->outputs[i];
    uint32_t wanted = frame->output_place[i];
    const OrtValue* made = frame->values[spec->slot];
    if (wanted == 0 || spec->is_copied || made == NULL) continue;
    OrtValue* target = frame->caller_outputs[wanted - 1];
    if (made == target) continue;
    const OrtMemoryInfo* memory = frame->caller_memories != NULL ? frame->caller_memories[wanted - 1] : NULL;
    const OrtMemoryInfo* where = target != NULL ? target->memory : memory != NULL ? memory : &memory_info_cpu;
    if (target == NULL && memory_device_equal(&where->device, &made->memory->device)) continue;
    OrtValue* copy = target;
    OrtSyncStream* stream = frame->streams[plan->slots[spec->slot].stream];
    OrtStatus* status = copy_to_output(frame, spec, made, memory, stream, &copy);
    if (status != NULL)
      return status_wrap(status, "output '%s' could not be copied to '%s'", spec->name, where->name);
    frame->copies[i] = copy != target ? copy : NULL;
    frame->is_fetched[i] = 1;
  }
  return NULL;
}

/* ---- The end ---- */

/* Keeps the first failure, logs later ones. */
static OrtStatus* add_failure(Frame* frame, OrtStatus* first, OrtStatus* failure) {
  if (failure == NULL || first == NULL) return first == NULL ? failure : first;
  LOG(&frame->session->logger, ERROR, "%s", status_message(failure));
  status_release(failure);
  return first;
}

/* True when the step reads or makes what its stream does not order: it must be done before Run returns. */
static bool works_elsewhere(const Frame* frame, const Step* step) {
  const Plan* plan = frame->plan;
  for (size_t i = 0; i < step->read_count; i++) {
    if (step->inputs[i] >= 0 && plan->slots[step->inputs[i]].is_held) return true;
  }
  for (size_t i = 0; i < step->output_count; i++) {
    const Slot* slot = step->outputs[i] >= 0 ? &plan->slots[step->outputs[i]] : NULL;
    /* Whoever reads host memory has waited, or holds it. */
    if (slot != NULL && slot->place == 0 && (!slot->is_needed || slot->kind == SLOT_OUTPUT)) return true;
  }
  if (!step->unit->is_copy) return false;
  const OrtValue* source = frame->values[step->inputs[0]];
  if (plan->slots[step->outputs[0]].place == 0 || source == NULL) return true;
  const SessionEp* ep = frame->session->streams[step->stream].ep;
  return !memory_device_equal(&source->memory->device, device_of(frame->session, ep));
}

static bool has_work_on(const Plan* plan, size_t stream) {
  for (size_t i = 0; i < plan->step_count; i++) {
    if (plan->steps[i].stream == (int32_t)stream) return true;
  }
  return false;
}

/* True when others than the stream's EP took part in the run's work on it. */
static bool must_flush(const Frame* frame, size_t stream, bool has_failed) {
  if (has_failed) return true;
  /* Of a subgraph: its results are read by whomever, and go with a later iteration. */
  if (frame->parent != NULL) return has_work_on(frame->plan, stream);
  if (!is_callers(frame, stream)) return true;
  if (!frame->session->streams[stream].is_known)
    return true; /* what the run frees at its end is anybody's at once */
  const Plan* plan = frame->plan;
  for (size_t i = 0; i < plan->output_count; i++) {
    if (frame->is_fetched[i]) return true;
  }
  for (size_t i = 0; i < plan->step_count; i++) {
    if (plan->steps[i].stream == (int32_t)stream && works_elsewhere(frame, &plan->steps[i])) return true;
  }
  return false;
}

OrtStatus* devices_end(Frame* frame, OrtStatus* status) {
  OrtSession* session = frame->session;
  bool has_failed = status != NULL;
  for (size_t i = 1; i < session->stream_count; i++) {
    OrtSyncStream* stream = frame->streams[i];
    if (stream == NULL) continue;
    if (!is_callers(frame, i)) status = add_failure(frame, status, stream_end_run(stream));
    if (must_flush(frame, i, has_failed)) status = add_failure(frame, status, stream_flush(stream));
    frame->drops_buffers = frame->drops_buffers || is_callers(frame, i);
  }
  for (size_t i = 0; i < session->stream_count; i++) frame->streams[i] = NULL;
  for (size_t i = 0; i < frame->plan->notification_count; i++) notification_close(&frame->notifications[i]);
  return status;
}
