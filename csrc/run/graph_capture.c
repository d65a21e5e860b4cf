/* Graph capture: an EP records what a run does on its device, and replays it in later runs, without kernels.
 * A graph is made of addresses. So it runs on the very values that it was captured with, and the frame of
 * that run, whose memory it works in, is kept for it. */
#include <limits.h>
#include <stdlib.h>

#include "api_slots.h"
#include "run/run.h"

#define MOST_RUNS 8 /* an EP that has captured nothing by then never will */
#define NO_GRAPH  (-1)

typedef struct Bound {
  bool is_given;
  const void* data;
  size_t size;
} Bound;

typedef struct CapturedGraph {
  int id;
  Frame* frame; /* owned */
  struct CapturedGraph* next;
  Bound bound[]; /* inputs, then outputs */
} CapturedGraph;

struct GraphCapture {
  SessionEp* ep;
  bool(ORT_API_CALL* is_captured)(const OrtEp*, int);
  OrtStatus*(ORT_API_CALL* replay)(OrtEp*, int);
  pthread_mutex_t mutex; /* guards `graphs` */
  ForkGuard fork;
  CapturedGraph* graphs;
};

/* ---- Which sessions can ---- */

/* Also where the EP has all nodes of a subgraph: which of them run is decided on the host, run by run. */
static OrtStatus* check_nodes(const OrtSession* session, const SessionEp* ep, bool allows_cpu) {
  const Plan* plan = &session->plan;
  const OrtEpDevice* cpu = env_cpu_device(session->env);
  for (size_t i = 0; i < plan->step_count; i++) {
    const Step* step = &plan->steps[i];
    bool is_cpu = cpu != NULL && step->unit->ep->factory == cpu->factory;
    bool is_fit = step->unit->ep == ep || (allows_cpu && is_cpu);
    if (is_fit && step->bodies == NULL) continue;
    StrBuf text = {0};
    describe_node(&text, step->unit->node);
    OrtStatus* status = status_new(
        ORT_FAIL, "EP '%s' is to capture graphs, which this model does not allow: node %s %s%s", ep->name,
        text.failed ? "?" : text.text, step->bodies != NULL ? "has subgraphs" : "is taken by EP ",
        step->bodies != NULL ? "" : step->unit->ep->name);
    strbuf_release(&text);
    return status;
  }
  return NULL;
}

/* Inputs may be copied: a run that is captured gets them where they belong. */
static OrtStatus* check_copies(const Plan* plan, const SessionEp* ep) {
  for (size_t i = 0; i < plan->step_count; i++) {
    const Step* step = &plan->steps[i];
    const Slot* source = step->unit->is_copy ? &plan->slots[step->inputs[0]] : NULL;
    if (source == NULL || source->kind == SLOT_INPUT) continue;
    return status_new(ORT_FAIL,
                      "EP '%s' is to capture graphs, which this model does not allow: '%s' is copied between "
                      "host and device memory",
                      ep->name, source->value->name);
  }
  return NULL;
}

OrtStatus* graph_capture_open(OrtSession* session) {
  for (size_t i = 0; i < session->ep_count && session->capture == NULL; i++) {
    SessionEp* ep = &session->eps[i];
    OrtStatus* thrown = NULL;
    bool can_say = GUARD_SLOT(ep->ep, ep->version, IsGraphCaptureEnabled, 26) != NULL;
    bool is_enabled = can_say && call_OrtEp_IsGraphCaptureEnabled(ep->ep, &thrown);
    if (thrown != NULL) return ep_failure(thrown, "EP '%s'", ep->name);
    if (!is_enabled) continue;
    if (ep->ep->IsGraphCaptured == NULL || ep->ep->ReplayGraph == NULL) {
      LOG(&session->logger, WARNING, "EP '%s': graph capture is off: OrtEp::%s is NULL", ep->name,
          ep->ep->IsGraphCaptured == NULL ? "IsGraphCaptured" : "ReplayGraph");
      continue;
    }
    OrtGraphCaptureNodeAssignmentPolicy policy = OrtGraphCaptureNodeAssignmentPolicy_ALL_NODES_ON_EP;
    if (ep->ep->GetGraphCaptureNodeAssignmentPolicy != NULL)
      policy = call_OrtEp_GetGraphCaptureNodeAssignmentPolicy(ep->ep, &thrown);
    if (thrown != NULL) return ep_failure(thrown, "EP '%s'", ep->name);
    TRY(check_nodes(session, ep, policy == OrtGraphCaptureNodeAssignmentPolicy_ALLOW_CPU_FOR_SHAPES));
    TRY(check_copies(&session->plan, ep));
    GraphCapture* capture = arena_calloc(&session->arena, 1, sizeof *capture);
    if (capture == NULL) return status_no_memory();
    capture->ep = ep;
    capture->is_captured = ep->ep->IsGraphCaptured;
    capture->replay = ep->ep->ReplayGraph;
    pthread_mutex_init(&capture->mutex, NULL);
    fork_guard_open(&capture->fork, &capture->mutex, false);
    session->capture = capture;
  }
  return NULL;
}

static void graph_release(CapturedGraph* graph) {
  if (graph == NULL) return;
  frame_free(graph->frame);
  mem_free(graph);
}

void graph_capture_close(OrtSession* session) {
  GraphCapture* capture = session->capture;
  if (capture == NULL) return;
  while (capture->graphs != NULL) {
    CapturedGraph* graph = capture->graphs;
    capture->graphs = graph->next;
    graph_release(graph);
  }
  fork_guard_close(&capture->fork);
  pthread_mutex_destroy(&capture->mutex);
}

/* ---- What a graph is bound to ---- */

static OrtStatus* unfit(const char* kind, const char* name, const OrtMemoryInfo* memory) {
  return status_new(ORT_INVALID_ARGUMENT,
                    "a run that captures a graph needs %s '%s' as a value in memory '%s' (else run with "
                    "gpu_graph_id -1)",
                    kind, name, memory->name);
}

/* Values must lie where they are used: a replay copies nothing. */
static OrtStatus* check_bound(const Frame* frame) {
  const Plan* plan = frame->plan;
  const Place* places = frame->session->places;
  for (size_t i = 0; i < plan->input_count; i++) {
    const InputSpec* spec = &plan->inputs[i];
    if (!frame->input_given[i]) continue;
    const OrtMemoryDevice* given = &frame->values[spec->slot]->memory->device;
    if (spec->is_read_on_host && !memory_device_is_host(given))
      return unfit("input", spec->name, &memory_info_cpu);
    for (int32_t at = plan->slots[spec->slot].next_copy; at >= 0; at = plan->slots[at].next_copy) {
      const OrtMemoryInfo* memory = places[plan->slots[at].place].memory;
      if (!memory_device_equal(&memory->device, given)) return unfit("input", spec->name, memory);
    }
  }
  for (size_t i = 0; i < plan->output_count; i++) {
    const OutputSpec* spec = &plan->outputs[i];
    const OrtValue* value = frame->values[spec->slot];
    uint32_t place = frame->output_place[i];
    if (place == 0 || (!spec->is_copied && value != NULL && value == frame->caller_outputs[place - 1]))
      continue;
    return unfit("output", spec->name, places[plan->slots[spec->slot].place].memory);
  }
  return NULL;
}

static Bound bound_to(const Frame* frame, bool is_given, int32_t slot) {
  const OrtValue* value = is_given ? frame->values[slot] : NULL;
  return value != NULL ? (Bound){true, value->data, value->size_bytes} : (Bound){false, NULL, 0};
}

/* The bound value `index`: inputs, then outputs. */
static Bound bound_at(const Frame* frame, size_t index, const char** kind, const char** name) {
  const Plan* plan = frame->plan;
  bool is_input = index < plan->input_count;
  size_t at = is_input ? index : index - plan->input_count;
  *kind = is_input ? "input" : "output";
  *name = is_input ? plan->inputs[at].name : plan->outputs[at].name;
  return is_input ? bound_to(frame, frame->input_given[at], plan->inputs[at].slot)
                  : bound_to(frame, frame->output_place[at] != 0, plan->outputs[at].slot);
}

static bool is_same(Bound a, Bound b) {
  return a.is_given == b.is_given && a.size == b.size && (a.size == 0 || a.data == b.data);
}

/* The first value that differs from what the graph was captured with; false: none. */
static bool find_difference(const CapturedGraph* graph, const Frame* frame, const char** kind,
                            const char** name) {
  for (size_t i = 0; i < frame->plan->input_count + frame->plan->output_count; i++) {
    if (!is_same(graph->bound[i], bound_at(frame, i, kind, name))) return true;
  }
  return false;
}

/* ---- Runs ---- */

static OrtStatus* graph_id(const OrtRunOptions* options, int* out) {
  const char* text = options != NULL ? key_values_get(options->config, "gpu_graph_id") : NULL;
  char* end = NULL;
  long id = text != NULL ? strtol(text, &end, 10) : 0;
  if (text != NULL && (end == text || *end != '\0' || id < NO_GRAPH || id > INT_MAX))
    return status_new(ORT_INVALID_ARGUMENT,
                      "run option gpu_graph_id is '%s': the number of a graph is expected, or -1", text);
  *out = (int)id;
  return NULL;
}

/* borrows; an error where the run's values are not those of a graph `id`. */
static OrtStatus* find_graph(GraphCapture* capture, const Frame* frame, int id, CapturedGraph** out) {
  const char *kind = NULL, *name = NULL;
  CapturedGraph* graph;
  pthread_mutex_lock(&capture->mutex);
  for (graph = capture->graphs; graph != NULL; graph = graph->next) {
    if (graph->id == id && !find_difference(graph, frame, &kind, &name)) break;
  }
  pthread_mutex_unlock(&capture->mutex);
  *out = graph;
  if (graph != NULL) return NULL;
  if (name == NULL)
    return status_new(ORT_EP_FAIL, "EP '%s' has a graph %d that no complete run captured: release it",
                      capture->ep->name, id);
  return status_new(ORT_INVALID_ARGUMENT,
                    "graph %d was captured with %s '%s' somewhere else: give that value, or another "
                    "gpu_graph_id",
                    id, kind, name);
}

static OrtStatus* replay_graph(GraphCapture* capture, const Frame* frame, int id) {
  SessionEp* ep = capture->ep;
  CapturedGraph* graph = NULL;
  if (frame->options != NULL && atomic_load_explicit(&frame->options->terminate, memory_order_relaxed))
    return status_new(ORT_FAIL, RUN_TERMINATED " Before graph %d", id);
  TRY(find_graph(capture, frame, id, &graph));
  OrtStatus*(ORT_API_CALL * sync)(OrtEp*) = GUARD_SLOT(ep->ep, ep->version, Sync, 25);
  bool has_stream = frame->options != NULL && frame->options->stream != NULL;
  OrtStatus* status =
      sync != NULL && frame->has_device_values && !has_stream ? call_OrtEp_Sync(ep->ep) : NULL;
  if (status != NULL) return ep_failure(status, "EP '%s': OrtEp::Sync failed", ep->name);
  status = call_OrtEp_ReplayGraph(ep->ep, id);
  if (status != NULL) status = ep_failure(status, "EP '%s': OrtEp::ReplayGraph failed", ep->name);
  for (size_t i = 1; i < frame->session->stream_count && status == NULL; i++) {
    if (graph->frame->own_streams[i] != NULL) status = stream_flush(graph->frame->own_streams[i]);
  }
  return status;
}

static OrtStatus* release_in_ep(const GraphCapture* capture, int id) {
  SessionEp* ep = capture->ep;
  OrtStatus*(ORT_API_CALL * release)(OrtEp*, int) = GUARD_SLOT(ep->ep, ep->version, ReleaseCapturedGraph, 27);
  if (release == NULL)
    return status_new(ORT_NOT_IMPLEMENTED,
                      "SessionReleaseCapturedGraph: EP '%s' has no OrtEp::ReleaseCapturedGraph", ep->name);
  OrtStatus* status = call_OrtEp_ReleaseCapturedGraph(ep->ep, id);
  return status != NULL ? ep_failure(status, "EP '%s': OrtEp::ReleaseCapturedGraph failed", ep->name) : NULL;
}

/* Runs until the EP has captured: the first run finds memory for what the graph will not allocate. */
static OrtStatus* capture_graph(GraphCapture* capture, Frame* frame, int id) {
  size_t count = frame->plan->input_count + frame->plan->output_count;
  const char *kind, *name;
  TRY(check_bound(frame));
  CapturedGraph* graph = mem_calloc(1, sizeof *graph + count * sizeof *graph->bound);
  if (graph == NULL) return status_no_memory();
  graph->id = id;
  for (size_t i = 0; i < count; i++) graph->bound[i] = bound_at(frame, i, &kind, &name);
  OrtStatus* status = NULL;
  for (int run = 0;
       run < MOST_RUNS && status == NULL && !call_OrtEp_IsGraphCaptured(capture->ep->ep, id, NULL); run++)
    status = run_bound(frame);
  if (status == NULL && !call_OrtEp_IsGraphCaptured(capture->ep->ep, id, NULL))
    status = status_new(ORT_EP_FAIL, "EP '%s' has captured no graph %d in %d runs", capture->ep->name, id,
                        MOST_RUNS);
  if (status != NULL) {
    mem_free(graph);
    if (call_OrtEp_IsGraphCaptured(capture->ep->ep, id, NULL)) /* the EP could not know that the run failed */
      status_release(release_in_ep(capture, id));
    return status;
  }
  graph->frame = frame;
  frame->is_kept = true;
  pthread_mutex_lock(&capture->mutex);
  graph->next = capture->graphs;
  capture->graphs = graph;
  pthread_mutex_unlock(&capture->mutex);
  return NULL;
}

OrtStatus* graph_capture_run(Frame* frame) {
  GraphCapture* capture = frame->session->capture;
  int id = NO_GRAPH;
  TRY(graph_id(frame->options, &id));
  if (id == NO_GRAPH) return run_bound(frame);
  return call_OrtEp_IsGraphCaptured(capture->ep->ep, id, NULL) ? replay_graph(capture, frame, id)
                                                               : capture_graph(capture, frame, id);
}

/* Not while the graph runs. */
OrtStatus* ORT_API_CALL api_SessionReleaseCapturedGraph(OrtSession* session, int graph_annotation_id) {
  REQUIRE_ARG(session);
  GraphCapture* capture = session->capture;
  if (capture == NULL) return NULL; /* no EP of the session captures graphs */
  if (session->is_serial) pthread_mutex_lock(&session->serial);
  OrtStatus* status = release_in_ep(capture, graph_annotation_id);
  if (session->is_serial) pthread_mutex_unlock(&session->serial);
  if (status != NULL) return status;
  pthread_mutex_lock(&capture->mutex);
  for (CapturedGraph** link = &capture->graphs; *link != NULL;) {
    CapturedGraph* graph = *link;
    if (graph->id != graph_annotation_id) {
      link = &graph->next;
      continue;
    }
    *link = graph->next;
    graph_release(graph);
  }
  pthread_mutex_unlock(&capture->mutex);
  return NULL;
}
