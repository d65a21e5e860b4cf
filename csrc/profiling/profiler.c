/* Profilers: clocks, the file, and the EPs' own profilers. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "api_slots.h"
#include "profiling/profiling.h"

#define MAX_EVENTS 1000000

typedef struct EpProfiler {
  OrtEpProfilerImpl* impl;
  const char* ep_name;
  OrtStatus*(ORT_API_CALL* start)(OrtEpProfilerImpl*, uint64_t); /* NULL: none */
  OrtStatus*(ORT_API_CALL* stop)(OrtEpProfilerImpl*, uint64_t, const OrtProfilingEvent*);
} EpProfiler;

struct Profiler {
  const OrtLogger* logger;
  Profiler* next;
  char* path;
  FILE* file;
  uint64_t start_ns;    /* CLOCK_MONOTONIC */
  uint64_t start_epoch; /* nanoseconds since 1970 */
  _Atomic uint64_t last_id;
  EpProfiler* eps;
  size_t ep_count, ep_capacity;
  pthread_rwlock_t gate; /* held for writing when it ends: no EP hears of an event after that */
  ForkGuard fork;
  pthread_mutex_t lock; /* of all below */
  OrtProfilingEventsContainer events;
  size_t lost;
  bool is_on; /* changes with both locks held */
};

static uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- Beginning ---- */

/* gives "<prefix>_2026-01-31_23-59-59_123.json", local time, as stock ORT names it. NULL: no memory. */
static char* profile_path(const char* prefix, uint64_t epoch_ns) {
  time_t seconds = (time_t)(epoch_ns / 1000000000);
  struct tm parts;
  char text[32];
  if (localtime_r(&seconds, &parts) == NULL || strftime(text, sizeof text, "%Y-%m-%d_%H-%M-%S", &parts) == 0)
    text[0] = '\0';
  return str_format("%s_%s_%03u.json", prefix, text, (unsigned)(epoch_ns / 1000000 % 1000));
}

OrtStatus* profiler_new(const OrtLogger* logger, const char* prefix, Profiler* next, Profiler** out) {
  Profiler* made = mem_calloc(1, sizeof *made);
  if (made == NULL) return status_no_memory();
  made->start_epoch = clock_ns(CLOCK_REALTIME);
  made->start_ns = clock_ns(CLOCK_MONOTONIC);
  made->path = profile_path(prefix, made->start_epoch);
  made->file = made->path != NULL ? fopen(made->path, "w") : NULL;
  if (made->file == NULL) {
    OrtStatus* status = made->path == NULL ? status_no_memory()
                                           : status_new(ORT_FAIL, "the profile '%s' cannot be written: %s",
                                                        made->path, strerror(errno));
    mem_free(made->path);
    mem_free(made);
    return status;
  }
  pthread_rwlock_init(&made->gate, NULL);
  pthread_mutex_init(&made->lock, NULL);
  fork_guard_open(&made->fork, &made->lock, false);
  made->logger = logger;
  made->next = next;
  made->is_on = true;
  *out = made;
  return NULL;
}

uint64_t profiler_start_time(const Profiler* profiler) {
  return profiler->start_epoch;
}

/* ---- EPs ---- */

/* takes `status`. */
static void report(const Profiler* profiler, const char* ep_name, const char* slot, OrtStatus* status) {
  if (status == NULL) return;
  LOG(profiler->logger, ERROR, "EP '%s': %s failed: %s", ep_name, slot, status_message(status));
  status_release(status);
}

/* *out stays NULL for an EP without a profiler. A profiler that cannot be used is released. */
static OrtStatus* make_ep_profiler(const Profiler* profiler, const SessionEp* ep, OrtEpProfilerImpl** out) {
  OrtStatus*(ORT_API_CALL * create)(OrtEp*, OrtEpProfilerImpl**) =
      GUARD_SLOT(ep->ep, ep->version, CreateProfiler, 25);
  OrtEpProfilerImpl* impl = NULL;
  OrtStatus* status = create != NULL ? call_OrtEp_CreateProfiler(ep->ep, &impl) : NULL;
  if (status != NULL || impl == NULL) return status;
  status = guard_ep_profiler(impl, ep->name);
  if (status == NULL) {
    uint64_t offset = clock_ns(CLOCK_MONOTONIC) - profiler->start_ns;
    status = call_OrtEpProfilerImpl_StartProfiling(impl, (int64_t)offset);
  }
  if (status == NULL)
    *out = impl;
  else if (impl->Release != NULL)
    call_OrtEpProfilerImpl_Release(impl, NULL);
  return status;
}

void profiler_add_ep(Profiler* profiler, const SessionEp* ep) {
  OrtEpProfilerImpl* impl = NULL;
  if (!ARRAY_RESERVE(profiler->eps, profiler->ep_capacity, profiler->ep_count + 1)) {
    report(profiler, ep->name, "OrtEp::CreateProfiler", status_no_memory());
    return;
  }
  report(profiler, ep->name, "OrtEp::CreateProfiler or OrtEpProfilerImpl::StartProfiling",
         make_ep_profiler(profiler, ep, &impl));
  if (impl == NULL) return;
  profiler->eps[profiler->ep_count++] =
      (EpProfiler){.impl = impl, .ep_name = ep->name, .start = impl->StartEvent, .stop = impl->StopEvent};
}

static void start_ep_events(Profiler* profiler, uint64_t id) {
  if (profiler->ep_count == 0) return;
  pthread_rwlock_rdlock(&profiler->gate);
  for (size_t i = 0; i < profiler->ep_count && profiler->is_on; i++) {
    const EpProfiler* ep = &profiler->eps[i];
    if (ep->start != NULL)
      report(profiler, ep->ep_name, "OrtEpProfilerImpl::StartEvent",
             call_OrtEpProfilerImpl_StartEvent(ep->impl, id));
  }
  pthread_rwlock_unlock(&profiler->gate);
}

static void stop_ep_events(Profiler* profiler, uint64_t id, const OrtProfilingEvent* event) {
  if (profiler->ep_count == 0) return;
  pthread_rwlock_rdlock(&profiler->gate);
  for (size_t i = 0; i < profiler->ep_count && profiler->is_on; i++) {
    const EpProfiler* ep = &profiler->eps[i];
    if (ep->stop != NULL)
      report(profiler, ep->ep_name, "OrtEpProfilerImpl::StopEvent",
             call_OrtEpProfilerImpl_StopEvent(ep->impl, id, event));
  }
  pthread_rwlock_unlock(&profiler->gate);
}

/* ---- Events ---- */

/* Microseconds since 1970, as EPs may expect it, but never the same one twice. */
static uint64_t new_id(Profiler* profiler, uint64_t start_ns) {
  uint64_t id = (profiler->start_epoch + (start_ns - profiler->start_ns)) / 1000;
  uint64_t last = atomic_load_explicit(&profiler->last_id, memory_order_relaxed);
  uint64_t next;
  do {
    next = id > last ? id : last + 1;
  } while (!atomic_compare_exchange_weak_explicit(&profiler->last_id, &last, next, memory_order_relaxed,
                                                  memory_order_relaxed));
  return next;
}

ProfileSpan profiler_start(Profiler* profiler) {
  ProfileSpan span = {.start_ns = clock_ns(CLOCK_MONOTONIC)};
  Profiler* last = profiler; /* the session's: it has the EPs */
  while (last->next != NULL) last = last->next;
  span.id = new_id(last, span.start_ns);
  for (; profiler != NULL; profiler = profiler->next) start_ep_events(profiler, span.id);
  return span;
}

ProfileSpan profiler_start_step(Profiler* profiler, const Frame* frame, const Step* step) {
  ProfileMemory memory = profile_memory(frame, step);
  ProfileSpan span = profiler_start(profiler);
  span.memory = memory;
  return span;
}

/* copies the event. */
static void record(Profiler* profiler, const OrtProfilingEvent* event) {
  pthread_mutex_lock(&profiler->lock);
  if (profiler->is_on) {
    bool has_room = profiler->events.count < MAX_EVENTS;
    OrtProfilingEvent* copy = has_room ? profiling_event_copy(event) : NULL;
    if (copy == NULL || !profiling_events_add(&profiler->events, copy)) {
      mem_free(copy);
      profiler->lost++;
    }
  }
  pthread_mutex_unlock(&profiler->lock);
}

/* Fills in who and when, records the event everywhere. */
static void finish_event(Profiler* profiler, const ProfileSpan* span, uint64_t end_ns,
                         OrtProfilingEvent* event) {
  event->process_id = (int32_t)getpid();
  event->thread_id = (int32_t)syscall(SYS_gettid);
  event->duration_us = (int64_t)(end_ns - span->start_ns) / 1000;
  for (; profiler != NULL; profiler = profiler->next) {
    event->timestamp_us = (int64_t)(span->start_ns - profiler->start_ns) / 1000;
    record(profiler, event);
    stop_ep_events(profiler, span->id, event);
  }
}

void profiler_stop(Profiler* profiler, const ProfileSpan* span, const char* name) {
  OrtProfilingEvent event = {.category = OrtProfilingEventCategory_SESSION, .name = name};
  finish_event(profiler, span, clock_ns(CLOCK_MONOTONIC), &event);
}

/* [{"float":[2,3]}, ...] of the values in the slots, and their bytes: of constants, and of others. `infos`:
 * what the node calls them. */
static void describe_values(StrBuf* text, const Frame* frame, const int32_t* slots, size_t count,
                            OrtValueInfo* const* infos, size_t* constant_bytes, size_t* bytes) {
  const char* before = "";
  strbuf_append(text, "[");
  for (size_t i = 0; i < count; i++) {
    const OrtValue* value = slots[i] >= 0 ? frame->values[slots[i]] : NULL;
    if (value == NULL || value->kind != ONNX_TYPE_TENSOR) continue;
    strbuf_append(text, "%s{\"%s\":[", before, element_type_name(value->element_type));
    for (size_t k = 0; k < value->rank; k++)
      strbuf_append(text, "%s%lld", k != 0 ? "," : "", (long long)value->dims[k]);
    strbuf_append(text, "]}");
    before = ",";
    bool is_constant = infos != NULL && infos[i] != NULL && infos[i]->is_constant;
    *(is_constant ? constant_bytes : bytes) += value->size_bytes;
  }
  strbuf_append(text, "]");
}

static const char* text_of(const StrBuf* text) {
  return text->failed || text->text == NULL ? "" : text->text;
}

static void add_number(ProfileArg* arg, const char* key, size_t number) {
  arg->key = key;
  snprintf(arg->text, sizeof arg->text, "%zu", number);
}

/* What is a number among a step's arguments, and its shapes as JSON. */
static size_t describe_step(const ProfileSpan* span, const Frame* frame, const Step* step, StrBuf* inputs,
                            StrBuf* outputs, ProfileArg* args) {
  const OrtNode* node = step->unit->node;
  ProfileMemory memory = profile_memory(frame, step);
  size_t parameter_bytes = 0, activation_bytes = 0, output_bytes = 0;
  describe_values(inputs, frame, step->inputs, step->input_count, node->inputs, &parameter_bytes,
                  &activation_bytes);
  describe_values(outputs, frame, step->outputs, step->output_count, NULL, &output_bytes, &output_bytes);
  add_number(&args[0], "node_index", node->id);
  add_number(&args[1], "parameter_size", parameter_bytes);
  add_number(&args[2], "activation_size", activation_bytes);
  add_number(&args[3], "output_size", output_bytes);
  return 4 + profile_memory_args(&span->memory, &memory, args + 4);
}

void profiler_stop_step(Profiler* profiler, const ProfileSpan* span, const Frame* frame, const Step* step) {
  uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
  const OrtNode* node = step->unit->node;
  StrBuf name = {0}, inputs = {0}, outputs = {0};
  ProfileArg numbers[4 + PROFILE_MEMORY_ARGS];
  size_t count = describe_step(span, frame, step, &inputs, &outputs, numbers);
  if (node->name[0] != '\0')
    strbuf_append(&name, "%s_kernel_time", node->name);
  else
    strbuf_append(&name, "%s_%zu_kernel_time", node->op_type, node->id);
  const char* keys[4 + sizeof numbers / sizeof *numbers] = {"op_name", "provider", "input_type_shape",
                                                            "output_type_shape"};
  const char* values[sizeof keys / sizeof *keys] = {node->op_type, step->unit->ep->name, text_of(&inputs),
                                                    text_of(&outputs)};
  for (size_t i = 0; i < count; i++) {
    keys[4 + i] = numbers[i].key;
    values[4 + i] = numbers[i].text;
  }
  OrtProfilingEvent event = {.category = OrtProfilingEventCategory_NODE,
                             .name = text_of(&name),
                             .keys = keys,
                             .values = values,
                             .arg_count = 4 + count};
  finish_event(profiler, span, end_ns, &event);
  strbuf_release(&name);
  strbuf_release(&inputs);
  strbuf_release(&outputs);
}

/* ---- Ending ---- */

/* Both locks are held. */
static void collect_ep_events(Profiler* profiler) {
  for (size_t i = 0; i < profiler->ep_count; i++) {
    const EpProfiler* ep = &profiler->eps[i];
    OrtProfilingEventsContainer added = {0};
    OrtStatus* status = call_OrtEpProfilerImpl_EndProfiling(ep->impl, &added);
    size_t moved = 0;
    while (status == NULL && moved < added.count &&
           profiling_events_add(&profiler->events, added.events[moved])) {
      added.events[moved++] = NULL;
    }
    if (status == NULL) profiler->lost += added.count - moved;
    report(profiler, ep->ep_name, "OrtEpProfilerImpl::EndProfiling", status);
    profiling_events_release(&added);
  }
}

static OrtStatus* write_file(Profiler* profiler) {
  profiling_events_write(&profiler->events, profiler->file);
  bool has_failed = ferror(profiler->file) != 0;
  has_failed = fclose(profiler->file) != 0 || has_failed;
  profiler->file = NULL;
  profiling_events_release(&profiler->events);
  if (profiler->lost != 0)
    LOG(profiler->logger, ERROR, "the profile '%s' lacks %zu events: there was no room for them",
        profiler->path, profiler->lost);
  if (!has_failed) return NULL;
  return status_new(ORT_FAIL, "the profile '%s' could not be written: %s", profiler->path, strerror(errno));
}

OrtStatus* profiler_end(Profiler* profiler, const char** path) {
  OrtStatus* status = NULL;
  pthread_rwlock_wrlock(&profiler->gate);
  pthread_mutex_lock(&profiler->lock);
  *path = profiler->is_on ? profiler->path : "";
  if (profiler->is_on) {
    profiler->is_on = false;
    collect_ep_events(profiler);
    status = write_file(profiler);
  }
  pthread_mutex_unlock(&profiler->lock);
  pthread_rwlock_unlock(&profiler->gate);
  return status;
}

void profiler_free(Profiler* profiler) {
  if (profiler == NULL) return;
  const char* path = NULL;
  OrtStatus* status = profiler_end(profiler, &path);
  if (status != NULL) LOG(profiler->logger, ERROR, "%s", status_message(status));
  status_release(status);
  for (size_t i = profiler->ep_count; i-- > 0;) call_OrtEpProfilerImpl_Release(profiler->eps[i].impl, NULL);
  pthread_rwlock_destroy(&profiler->gate);
  fork_guard_close(&profiler->fork);
  pthread_mutex_destroy(&profiler->lock);
  mem_free(profiler->eps);
  mem_free(profiler->path);
  mem_free(profiler);
}

/* ---- Runs and sessions ---- */

OrtStatus* profile_run_start(Frame* frame, const OrtRunOptions* options, ProfileSpan* span) {
  OrtSession* session = frame->session;
  const char* prefix = options != NULL ? options->profile_prefix : NULL;
  Profiler* own = NULL;
  if (prefix != NULL) TRY(profiler_new(&session->logger, prefix, session->profiler, &own));
  /* EPs have one profiler at a time: where the session is profiled, what they say is in its file. */
  for (size_t i = 0; i < session->ep_count && own != NULL && session->profiler == NULL; i++)
    profiler_add_ep(own, &session->eps[i]);
  frame->profiler = own != NULL ? own : session->profiler;
  *span = profiler_start(frame->profiler);
  return NULL;
}

void profile_run_end(Frame* frame, const ProfileSpan* span) {
  Profiler* profiler = frame->profiler;
  frame->profiler = NULL;
  profiler_stop(profiler, span, "model_run");
  if (profiler != frame->session->profiler) profiler_free(profiler);
}

/* gives *out (the client frees it with `allocator`): the file's path, "" if the session is not profiled any
 * more. */
OrtStatus* ORT_API_CALL api_SessionEndProfiling(OrtSession* session, OrtAllocator* allocator, char** out) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(allocator);
  REQUIRE_ARG(out);
  const char* path = "";
  if (session->profiler != NULL) TRY(profiler_end(session->profiler, &path));
  size_t size = strlen(path) + 1;
  char* copy = allocator_alloc(allocator, size);
  if (copy == NULL) return status_no_memory();
  *out = memcpy(copy, path, size);
  return NULL;
}

/* *out is 0 for a session that was never profiled. */
OrtStatus* ORT_API_CALL api_SessionGetProfilingStartTimeNs(const OrtSession* session, uint64_t* out) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(out);
  *out = session->profiler != NULL ? profiler_start_time(session->profiler) : 0;
  return NULL;
}
