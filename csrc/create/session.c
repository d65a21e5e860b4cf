/* Sessions: made in one go, with everything undone if any part fails. */
#include <string.h>

#include "api_slots.h"
#include "create/create.h"
#include "layout/layout.h"
#include "onnx/onnx.h"
#include "profiling/profiling.h"
#include "run/run.h"

/* ---- EPs ---- */

static OrtStatus* add_ep(OrtSession* session, const OrtEpDevice* const* devices, size_t count) {
  SessionEp* ep = &session->eps[session->ep_count];
  TRY(session_ep_open(session, devices, count, ep));
  session->ep_count++;
  if (session->profiler != NULL) profiler_add_ep(session->profiler, ep);
  TRY(place_ep(session, ep));
  for (size_t i = 0; i + 1 < session->ep_count; i++) {
    if (strcmp(session->eps[i].name, ep->name) == 0)
      return status_new(ORT_FAIL, "Provider %s has already been registered: the session is given it twice",
                        ep->name);
  }
  session->has_run_hooks = session->has_run_hooks || ep->on_run_start != NULL || ep->on_run_end != NULL;
  session->is_serial = session->is_serial || !ep->is_concurrent;
  return NULL;
}

/* The user's EPs in their order, then the CPU EP unless it was one of them or fallback is off. */
static OrtStatus* add_eps(OrtSession* session) {
  const OrtSessionOptions* options = session->options;
  const OrtEpDevice** cpu = arena_alloc(&session->arena, sizeof *cpu);
  session->eps = arena_calloc(&session->arena, options->ep_count + 2, sizeof *session->eps);
  session->places = arena_calloc(&session->arena, options->ep_count + 3, sizeof *session->places);
  session->streams = arena_calloc(&session->arena, options->ep_count + 3, sizeof *session->streams);
  if (cpu == NULL || session->eps == NULL || session->places == NULL || session->streams == NULL)
    return status_no_memory();
  session->stream_count = 1;
  place_host(session);
  cpu[0] = env_cpu_device(session->env);
  bool no_fallback = session_options_config(options, "session.disable_cpu_ep_fallback", "0")[0] == '1';
  bool has_cpu = false;
  for (size_t i = 0; i < options->ep_count; i++) {
    EpSelection selection = options->eps[i];
    if (selection.count == 0) selection = (EpSelection){cpu, cpu[0] != NULL};
    if (selection.count == 0)
      return status_new(ORT_INVALID_ARGUMENT, "the environment has no CPU EP, which the session is to use");
    has_cpu = has_cpu || (cpu[0] != NULL && selection.devices[0]->factory == cpu[0]->factory);
    if (has_cpu && no_fallback)
      return status_new(ORT_INVALID_ARGUMENT,
                        "the CPU EP was added to the session, but session.disable_cpu_ep_fallback is 1");
    TRY(add_ep(session, selection.devices, selection.count));
  }
  return has_cpu || no_fallback || cpu[0] == NULL ? NULL : add_ep(session, cpu, 1);
}

OrtStatus* session_add_last_ep(OrtSession* session, bool* added) {
  const LastEp* last = &session->options->last_ep;
  const OrtEpDevice** device = arena_calloc(&session->arena, 1, sizeof *device);
  if (device == NULL) return status_no_memory();
  *added = false;
  if (last->find != NULL) TRY(last->find(last->state, device));
  if (*device == NULL) return NULL;
  for (size_t i = 0; i < session->ep_count; i++) {
    if (strcmp(session->eps[i].name, (*device)->ep_name) == 0) return NULL;
  }
  TRY(add_ep(session, device, 1));
  *added = true;
  return NULL;
}

static OrtStatus* end_initialization(OrtSession* session) {
  for (size_t i = 0; i < session->ep_count; i++) {
    SessionEp* ep = &session->eps[i];
    OrtStatus*(ORT_API_CALL * end)(OrtEp*) = GUARD_SLOT(ep->ep, ep->version, OnSessionInitializationEnd, 27);
    OrtStatus* status = end != NULL ? call_OrtEp_OnSessionInitializationEnd(ep->ep) : NULL;
    if (status != NULL)
      return ep_failure(status, "EP '%s': OrtEp::OnSessionInitializationEnd failed", ep->name);
  }
  return NULL;
}

/* ---- Making one ---- */

static void set_logger(OrtSession* session) {
  const OrtSessionOptions* options = session->options;
  const OrtLogger* common = &session->env->logger;
  session->logger = (OrtLogger){common->function, common->param, common->severity, common->id};
  if (options->logging_function != NULL) {
    session->logger.function = options->logging_function;
    session->logger.param = options->logging_param;
  }
  if (options->log_severity >= 0) session->logger.severity = (OrtLoggingLevel)options->log_severity;
  if (options->log_id != NULL) session->logger.id = options->log_id;
}

static uint64_t hash_text(uint64_t hash, const char* text) {
  for (; *text != '\0'; text++) hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
  return (hash ^ 0xff) * UINT64_C(0x100000001b3); /* "ab","c" is not "a","bc" */
}

/* True if a node of the graph or its subgraphs has a name that starts with `prefix`. */
static bool has_node_prefix(const OrtGraph* graph, const char* prefix) {
  size_t length = strlen(prefix);
  for (size_t i = 0; i < graph->node_count; i++) {
    const OrtNode* node = graph->nodes[i];
    if (strncmp(node->name, prefix, length) == 0) return true;
    for (size_t k = 0; k < node->subgraph_count; k++) {
      if (has_node_prefix(node->subgraphs[k], prefix)) return true;
    }
  }
  return false;
}

/* A number for the model, so that fused nodes of two models have two names; none of the model's own nodes is
 * called
 * "<EP>_<number>_...". */
static OrtStatus* hash_model(OrtSession* session) {
  const OrtGraph* graph = session->model->graph;
  uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), session->model->path);
  for (size_t i = 0; i < graph->node_count; i++) {
    hash = hash_text(hash_text(hash, graph->nodes[i]->op_type), graph->nodes[i]->name);
    for (size_t k = 0; k < graph->nodes[i]->output_count; k++) {
      if (graph->nodes[i]->outputs[k] != NULL) hash = hash_text(hash, graph->nodes[i]->outputs[k]->name);
    }
  }
  for (size_t i = 0; i < session->ep_count; i++) {
    char* prefix = str_format("%s_%llu_", session->eps[i].name, (unsigned long long)hash);
    if (prefix == NULL) return status_no_memory();
    if (has_node_prefix(graph, prefix)) {
      hash = hash_text(hash, prefix);
      i = (size_t)-1; /* all EPs once more */
    }
    mem_free(prefix);
  }
  session->model_hash = hash;
  return NULL;
}

static OrtStatus* check_cancelled(const OrtSessionOptions* user_options) {
  if (user_options == NULL || !atomic_load(&user_options->load_cancelled)) return NULL;
  return status_new(ORT_MODEL_LOAD_CANCELED, "loading the model was cancelled");
}

static OrtStatus* read_model(OrtSession* session, const ModelSource* source) {
  const char* prefix = session->options->profile_prefix;
  if (prefix == NULL) return model_read(source, &session->model);
  TRY(profiler_new(&session->logger, prefix, NULL, &session->profiler));
  ProfileSpan span = profiler_start(session->profiler);
  OrtStatus* status = model_read(source, &session->model);
  profiler_stop(session->profiler, &span, source->path != NULL ? "model_loading_uri" : "model_loading_array");
  return status;
}

/* From EPs to a session that runs. */
static OrtStatus* initialize(OrtSession* session, const OrtSessionOptions* user_options) {
  TRY(session_add_custom_ops(session));
  TRY(model_check_types(session->model, &session->logger));
  TRY(model_add_default_attributes(session->model));
  TRY(partition_model(session));
  TRY(hash_model(session));
  TRY(check_cancelled(user_options));
  TRY(compile_units(session));
  TRY(prepack_weights(session));
  TRY(plan_build(session));
  TRY(upload_constants(session));
  model_drop_unread_pages(session->model);
  TRY(graph_capture_open(session));
  if (session->records_assignment) TRY(assignment_record(session));
  if (session->has_run_hooks) TRY(api_CreateRunOptions(&session->default_run_options));
  TRY(check_cancelled(user_options));
  return end_initialization(session);
}

static OrtStatus* load(OrtSession* session, const ModelSource* source,
                       const OrtSessionOptions* user_options) {
  TRY(read_model(session, source));
  TRY(session_adapt_model(session));
  TRY(model_lift_constants(session->model));
  TRY(check_cancelled(user_options));
  TRY(selection_policy_apply(session->env, session->model, session->options));
  TRY(add_eps(session));
  if (session->profiler == NULL) return initialize(session, user_options);
  ProfileSpan span = profiler_start(session->profiler);
  OrtStatus* status = initialize(session, user_options);
  profiler_stop(session->profiler, &span, "session_initialization");
  return status;
}

static void plan_release_frames(Plan* plan) {
  for (size_t i = 0; i < PLAN_FRAMES; i++) frame_free(plan->frames[i]);
}

static void plan_release(Plan* plan) {
  for (size_t i = 0; i < plan->slot_count; i++) value_release(plan->slots[i].constant);
  name_map_release(&plan->input_names);
  name_map_release(&plan->output_names);
}

/* releases everything, newest first; also a session that was made half way. */
static void session_free(OrtSession* session) {
  profiler_free(session->profiler);
  graph_capture_close(session);
  for (Plan* plan = &session->plan; plan != NULL; plan = plan->next) plan_release_frames(plan);
  for (size_t i = session->unit_count; i-- > 0;) unit_close(session->units[i]);
  packed_container_release(session->packed_weights);
  for (Plan* plan = &session->plan; plan != NULL; plan = plan->next) plan_release(plan);
  places_close(session);
  for (size_t i = session->ep_count; i-- > 0;) session_ep_close(&session->eps[i]);
  api_ReleaseRunOptions(session->default_run_options);
  model_release(session->model);
  mem_free(session->units);
  mem_free(session->not_taken.entries);
  arena_release(&session->arena);
  session_options_release(session->options);
  fork_guard_close(&session->serial_fork);
  pthread_mutex_destroy(&session->serial);
  env_release(session->env);
  mem_free(session);
}

/* `container`: what kernels share packed weights in, or NULL. keeps it alive. */
static OrtStatus* session_new(const OrtEnv* env, ModelSource* source, const OrtSessionOptions* options,
                              OrtPrepackedWeightsContainer* container, OrtSession** out) {
  OrtSession* session = mem_calloc(1, sizeof *session);
  OrtSessionOptions* own_options = session_options_copy(options);
  if (session == NULL || own_options == NULL) {
    mem_free(session);
    session_options_release(own_options);
    return status_no_memory();
  }
  session->env = (OrtEnv*)env;
  env_retain(session->env);
  session->options = own_options;
  session->packed_weights = packed_container_retain(container);
  mutex_init(&session->serial, true);
  fork_guard_open(&session->serial_fork, &session->serial, true);
  set_logger(session);
  session->records_not_taken =
      session_options_config(own_options, "session.ort_abi_record_not_taken", "0")[0] == '1';
  session->records_assignment =
      session_options_config(own_options, "session.record_ep_graph_assignment_info", "0")[0] == '1';
  source->folder =
      session_options_config(own_options, "session.model_external_initializers_file_folder_path", NULL);
  source->data_path = session_options_config(own_options, "session.ort_abi_model_path", NULL);
  source->replaced = (const char* const*)own_options->initializer_names;
  source->replacements = own_options->initializers;
  source->replaced_count = own_options->initializer_count;
  if (source->data != NULL)
    source->copy_data =
        session_options_config(own_options, "session.use_ort_model_bytes_directly", "0")[0] != '1';
  OrtStatus* status = load(session, source, options);
  if (status != NULL) {
    session_free(session);
    return status;
  }
  *out = session;
  return NULL;
}

/* gives (caller releases with ReleaseSession). keeps alive the environment; copies the options. */
OrtStatus* ORT_API_CALL api_CreateSession(const OrtEnv* env, const ORTCHAR_T* model_path,
                                          const OrtSessionOptions* options, OrtSession** out) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(model_path);
  REQUIRE_ARG(out);
  ModelSource source = {.path = model_path};
  return session_new(env, &source, options, NULL, out);
}

/* No serialized message is longer: then the length is wrong, and no byte is read. */
static OrtStatus* check_length(size_t length, const char* slot) {
  if (length <= INT32_MAX) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "%s: %zu bytes; a serialized model has less than 2 GB", slot,
                    length);
}

/* gives (caller releases with ReleaseSession). copies `model_data`; borrows it until the session is released
 * when session.use_ort_model_bytes_directly is 1. */
OrtStatus* ORT_API_CALL api_CreateSessionFromArray(const OrtEnv* env, const void* model_data,
                                                   size_t model_data_length, const OrtSessionOptions* options,
                                                   OrtSession** out) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(model_data);
  REQUIRE_ARG(out);
  TRY(check_length(model_data_length, slot_of(__func__)));
  ModelSource source = {.data = model_data, .size = model_data_length};
  return session_new(env, &source, options, NULL, out);
}

/* gives (caller releases with ReleaseSession). keeps alive the container, in which equal packed weights are
 * shared with its other sessions. */
OrtStatus* ORT_API_CALL api_CreateSessionWithPrepackedWeightsContainer(
    const OrtEnv* env, const ORTCHAR_T* model_path, const OrtSessionOptions* options,
    OrtPrepackedWeightsContainer* prepacked_weights_container, OrtSession** out) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(model_path);
  REQUIRE_ARG(prepacked_weights_container);
  REQUIRE_ARG(out);
  ModelSource source = {.path = model_path};
  return session_new(env, &source, options, prepacked_weights_container, out);
}

/* gives (caller releases with ReleaseSession). As CreateSessionFromArray, and keeps alive the container. */
OrtStatus* ORT_API_CALL api_CreateSessionFromArrayWithPrepackedWeightsContainer(
    const OrtEnv* env, const void* model_data, size_t model_data_length, const OrtSessionOptions* options,
    OrtPrepackedWeightsContainer* prepacked_weights_container, OrtSession** out) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(model_data);
  REQUIRE_ARG(prepacked_weights_container);
  REQUIRE_ARG(out);
  TRY(check_length(model_data_length, slot_of(__func__)));
  ModelSource source = {.data = model_data, .size = model_data_length};
  return session_new(env, &source, options, prepacked_weights_container, out);
}

void ORT_API_CALL api_ReleaseSession(OrtSession* input) {
  if (input != NULL) session_free(input);
}
