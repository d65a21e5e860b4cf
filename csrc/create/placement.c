/* Where values live: each EP of a session has one memory of its own, or works in the host's. */
#include <string.h>

#include "create/create.h"

/* ---- The place of an EP ---- */

/* The memory info for `device` among the EP's devices. borrows; NULL: none has it. */
static const OrtMemoryInfo* find_memory(const SessionEp* ep, const OrtMemoryDevice* device) {
  for (size_t i = 0; i < ep->device_count; i++) {
    const OrtMemoryInfo* infos[] = {ep->devices[i]->device_memory, ep->devices[i]->host_accessible_memory};
    for (size_t k = 0; k < 2; k++) {
      if (infos[k] != NULL && memory_device_equal(&infos[k]->device, device)) return infos[k];
    }
  }
  return NULL;
}

/* What the EP says, else what all its devices say. *out NULL: host memory. */
static OrtStatus* default_memory(SessionEp* ep, const OrtMemoryInfo** out) {
  OrtStatus*(ORT_API_CALL * get)(const OrtEp*, const OrtMemoryDevice**) =
      GUARD_SLOT(ep->ep, ep->version, GetDefaultMemoryDevice, 27);
  const OrtMemoryDevice* device = NULL;
  OrtStatus* status = get != NULL ? call_OrtEp_GetDefaultMemoryDevice(ep->ep, &device) : NULL;
  if (status != NULL) return ep_failure(status, "EP '%s': OrtEp::GetDefaultMemoryDevice failed", ep->name);
  *out = NULL;
  if (device != NULL) {
    *out = find_memory(ep, device);
    if (*out != NULL || device->device_type == OrtMemoryInfoDeviceType_CPU) return NULL;
    return status_new(
        ORT_EP_FAIL,
        "EP '%s': OrtEp::GetDefaultMemoryDevice names a memory device that none of its EP devices "
        "has",
        ep->name);
  }
  for (size_t i = 0; i < ep->device_count; i++) {
    const OrtMemoryInfo* memory = ep->devices[i]->device_memory;
    if (memory == NULL) continue;
    if (*out != NULL && !memory_device_equal(&(*out)->device, &memory->device))
      return status_new(ORT_EP_FAIL,
                        "EP '%s': its EP devices have different memory ('%s' and '%s'), and it has no "
                        "GetDefaultMemoryDevice to choose",
                        ep->name, (*out)->name, memory->name);
    *out = memory;
  }
  return NULL;
}

/* Asks OrtEp::CreateAllocator, which the EP has. *out NULL or the CPU's: the EP wants host memory. */
static OrtStatus* make_allocator(SessionEp* ep, const OrtMemoryInfo* memory, OrtAllocator** out,
                                 bool* is_own) {
  OrtAllocator* made = NULL;
  OrtStatus* status = call_OrtEp_CreateAllocator(ep->ep, memory, &made);
  if (status != NULL)
    return ep_failure(status, "EP '%s': OrtEp::CreateAllocator for '%s' failed", ep->name, memory->name);
  bool is_made = made != NULL && !allocator_is_cpu(made);
  status = is_made ? guard_allocator(made, ep->name) : NULL;
  if (status != NULL) {
    call_OrtEpFactory_ReleaseAllocator(ep->factory, made, NULL);
    return status;
  }
  *out = made;
  *is_own = is_made;
  return NULL;
}

static bool has_create_allocator(const SessionEp* ep) {
  return GUARD_SLOT(ep->ep, ep->version, CreateAllocator, 23) != NULL;
}

static bool wants_env_allocators(const OrtSession* session) {
  return session_options_config(session->options, "session.use_env_allocators", "0")[0] == '1';
}

/* The EP's own allocator if it makes one, else the environment's, which the session may also want first. */
static OrtStatus* find_allocator(OrtSession* session, SessionEp* ep, Place* place) {
  bool is_made = has_create_allocator(ep);
  if (!is_made || wants_env_allocators(session))
    place->allocator = env_await_shared_allocator(session->env, place->memory, USE_ALLOCATOR, &place->shared);
  if (!is_made || place->allocator != NULL) return NULL;
  return make_allocator(ep, place->memory, &place->allocator, &place->owns_allocator);
}

/* Initializers go to the EP's read-only memory where it has one on this device. */
static OrtStatus* find_read_only(SessionEp* ep, Place* place) {
  place->read_only = place->allocator;
  for (size_t i = 0; i < ep->device_count && has_create_allocator(ep); i++) {
    const OrtMemoryInfo* memory = ep->devices[i]->read_only_memory;
    if (memory == NULL || !memory_device_equal(&memory->device, &place->memory->device)) continue;
    OrtAllocator* allocator = NULL;
    TRY(make_allocator(ep, memory, &allocator, &place->owns_read_only));
    if (place->owns_read_only) place->read_only = allocator;
    return NULL;
  }
  return NULL;
}

static OrtStatus* is_stream_aware(const SessionEp* ep, bool* out) {
  OrtStatus* thrown = NULL;
  uint32_t version = ep->devices[0]->factory_version;
  bool can_say = GUARD_SLOT(ep->factory, version, IsStreamAware, 23) != NULL;
  *out = can_say && call_OrtEpFactory_IsStreamAware(ep->factory, &thrown);
  return thrown != NULL ? ep_failure(thrown, "EP '%s'", ep->name) : NULL;
}

static int32_t find_place(const OrtSession* session, const OrtMemoryInfo* memory) {
  for (size_t i = 1; i < session->place_count; i++) {
    if (memory_device_equal(&session->places[i].memory->device, &memory->device)) return (int32_t)i;
  }
  return 0;
}

/* Leaves the EP in host memory if it wants that. */
static OrtStatus* add_place(OrtSession* session, SessionEp* ep, const OrtMemoryInfo* memory) {
  Place* place = &session->places[session->place_count];
  *place = (Place){.memory = memory, .ep = ep};
  TRY(find_allocator(session, ep, place));
  if (place->allocator == NULL || allocator_is_cpu(place->allocator)) {
    shared_allocator_unuse(place->shared, USE_ALLOCATOR);
    return NULL;
  }
  ep->place = (int32_t)session->place_count++;
  return find_read_only(ep, place);
}

static void add_stream(OrtSession* session, SessionEp* ep) {
  const Place* place = &session->places[ep->place];
  const EpLibrary* library = ep->devices[0]->library;
  bool is_own = place->owns_allocator && place->ep->devices[0]->library == library;
  ep->stream = (int32_t)session->stream_count++;
  session->streams[ep->stream] = (SessionStream){
      .ep = ep,
      .is_known = place->owns_allocator
                      ? is_own && allocator_knows_streams(place->allocator)
                      : env_allocator_takes_streams(session->env, place->allocator, library),
  };
}

void place_host(OrtSession* session) {
  Place* place = &session->places[session->place_count++];
  OrtAllocator* host = session->options->cpu_arena ? allocator_cpu_arena() : allocator_cpu();
  *place = (Place){.memory = call_OrtAllocator_Info(host, NULL), .allocator = host};
  if (wants_env_allocators(session))
    place->allocator = env_await_shared_allocator(session->env, place->memory, USE_ALLOCATOR, &place->shared);
}

OrtStatus* place_ep(OrtSession* session, SessionEp* ep) {
  const OrtMemoryInfo* memory = NULL;
  ep->place = ep->stream = 0;
  TRY(default_memory(ep, &memory));
  if (memory == NULL || memory_device_is_host(&memory->device)) return NULL;
  ep->place = find_place(session, memory);
  if (ep->place == 0) TRY(add_place(session, ep, memory));
  bool has_stream = false;
  if (ep->place != 0) TRY(is_stream_aware(ep, &has_stream));
  if (has_stream) add_stream(session, ep);
  return NULL;
}

void places_close(OrtSession* session) {
  for (DeviceCopy* copy = session->device_copies; copy != NULL; copy = copy->next_of_session)
    value_release(copy->value);
  session->device_copies = NULL;
  for (size_t i = session->place_count; i-- > 1;) {
    Place* place = &session->places[i];
    OrtEpFactory* factory = place->ep->factory;
    if (place->owns_read_only) call_OrtEpFactory_ReleaseAllocator(factory, place->read_only, NULL);
    if (place->owns_allocator) call_OrtEpFactory_ReleaseAllocator(factory, place->allocator, NULL);
    shared_allocator_unuse(place->shared, USE_ALLOCATOR);
  }
  if (session->place_count != 0) shared_allocator_unuse(session->places[0].shared, USE_ALLOCATOR);
  session->place_count = 0;
}

/* ---- The place of a value ---- */

/* ---- Initializers ---- */

static OrtStatus* upload(OrtSession* session, OrtValueInfo* weight, int32_t place_index) {
  if (constant_at(weight, place_index) != NULL) return NULL;
  const Place* place = &session->places[place_index];
  const OrtValue* source = weight->initializer;
  DeviceCopy* copy = arena_alloc(&session->arena, sizeof *copy);
  if (copy == NULL) return status_no_memory();
  OrtValue* value = NULL;
  OrtStatus* status =
      value_new_tensor(place->read_only, source->element_type, source->rank, source->dims, &value);
  if (status == NULL) status = env_copy_tensors(session->env, &source, &value, NULL, 1);
  if (status != NULL) {
    value_release(value);
    return ep_failure(status, "EP '%s': initializer '%s' could not be put into memory '%s'", place->ep->name,
                      weight->name, place->memory->name);
  }
  *copy = (DeviceCopy){place_index, weight, value, weight->copies, session->device_copies};
  weight->copies = session->device_copies = copy;
  return NULL;
}

OrtStatus* upload_constants_of(OrtSession* session, const Unit* unit) {
  for (size_t i = 0; unit->ep->place != 0 && i < unit->node->input_count; i++) {
    if (unit->node->inputs[i] == NULL) continue;
    OrtValueInfo* weight = value_root(unit->node->inputs[i]);
    if (weight->is_constant) TRY(upload(session, weight, place_wanted(unit, i, false, weight)));
  }
  return NULL;
}

static OrtStatus* upload_of_plan(OrtSession* session, Plan* plan) {
  for (size_t i = 0; i < plan->slot_count; i++) {
    Slot* slot = &plan->slots[i];
    if (slot->kind != SLOT_CONSTANT || slot->place == 0) continue;
    OrtValueInfo* weight = value_root(slot->value); /* one copy, also for what subgraphs capture */
    /* Nothing is left of one that its kernels packed. */
    bool is_there = weight->initializer->kind != ONNX_TYPE_UNKNOWN;
    if (is_there) TRY(upload(session, weight, slot->place));
    slot->constant = value_retain(constant_at(weight, is_there ? slot->place : 0));
  }
  return NULL;
}

static void mark_read(const Plan* plan, int32_t slot) {
  if (slot < 0 || plan->slots[slot].kind != SLOT_CONSTANT || plan->slots[slot].place != 0) return;
  value_root(plan->slots[slot].value)->is_read_on_host = true;
}

static void mark_read_by_plan(const Plan* plan) {
  for (size_t i = 0; i < plan->step_count; i++) {
    const Step* step = &plan->steps[i];
    for (size_t k = 0; k < step->read_count; k++) mark_read(plan, step->inputs[k]);
  }
  for (size_t i = 0; i < plan->output_count; i++) mark_read(plan, plan->outputs[i].slot);
}

OrtStatus* upload_constants(OrtSession* session) {
  for (Plan* plan = &session->plan; plan != NULL; plan = plan->next) TRY(upload_of_plan(session, plan));
  for (const Plan* plan = &session->plan; plan != NULL; plan = plan->next) mark_read_by_plan(plan);
  for (const DeviceCopy* copy = session->device_copies; copy != NULL; copy = copy->next_of_session) {
    if (!copy->weight->is_read_on_host) value_clear(copy->weight->initializer);
  }
  return NULL;
}
