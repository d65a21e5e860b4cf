/* Run: a walk over the plan's steps. Any number of threads at once, each with a frame of its own. */
#include <string.h>
#include <time.h>

#include "api_slots.h"
#include "profiling/profiling.h"
#include "run/run.h"

/* ---- A step ---- */

/* "EP 'x': node 'n' (Relu, ai.onnx, version 14)". gives (caller releases with mem_free); NULL: no memory. */
static char* step_text(const Step* step) {
  const Unit* unit = step->unit;
  StrBuf text = {0};
  strbuf_append(&text, "EP '%s': ", unit->ep->name);
  if (unit->is_fused) {
    const OrtNode* first = unit->nodes[0];
    bool has_name = first->name[0] != '\0';
    strbuf_append(&text, "fused node '%s' (%zu node%s, the first is %s%s%s%s)", unit->node->name,
                  unit->node_count, unit->node_count == 1 ? "" : "s", has_name ? "'" : "", first->name,
                  has_name ? "', " : "", first->op_type);
  } else {
    strbuf_append(&text, "node ");
    describe_node(&text, unit->node);
  }
  if (!text.failed) return text.text;
  strbuf_release(&text);
  return NULL;
}

/* takes `cause`, gives it with EP, node and op in front. */
static OrtStatus* step_failure(OrtStatus* cause, const Step* step) {
  char* text = step_text(step);
  OrtStatus* status = ep_failure(cause, "%s failed", text != NULL ? text : step->unit->ep->name);
  mem_free(text);
  return status;
}

static void append_shape(StrBuf* text, const int64_t* dims, size_t rank) {
  strbuf_append(text, "{");
  for (size_t i = 0; i < rank; i++) strbuf_append(text, "%s%lld", i == 0 ? "" : ",", (long long)dims[i]);
  strbuf_append(text, "}");
}

static bool shape_fits(const OrtTensorTypeAndShapeInfo* model, const OrtValue* value) {
  if (model->rank != value->rank) return false;
  for (size_t i = 0; i < model->rank; i++) {
    if (model->dims[i] >= 0 && model->dims[i] != value->dims[i]) return false;
  }
  return true;
}

/* What the model says of a value's shape; NULL: nothing that the value would contradict. */
static inline const OrtTensorTypeAndShapeInfo* other_shape(const Slot* slot, const OrtValue* value) {
  const OrtTypeInfo* type = slot->value->type;
  const OrtTensorTypeAndShapeInfo* model = type != NULL ? type->tensor : NULL;
  bool fits =
      model == NULL || !model->has_shape || value->kind != ONNX_TYPE_TENSOR || shape_fits(model, value);
  return fits ? NULL : model;
}

/* Warns, in stock ORT's words, of an output of the graph that is not as the model says. Callers may have
 * relied on it. */
static void check_shape(const Frame* frame, const Step* step, const Slot* slot, const OrtValue* value) {
  const OrtTensorTypeAndShapeInfo* model = other_shape(slot, value);
  if (model == NULL) return;
  StrBuf expected = {0}, actual = {0};
  append_shape(&expected, model->dims, model->rank);
  append_shape(&actual, value->dims, value->rank);
  LOG(frame->context.logger, WARNING,
      "Expected shape from model of %s does not match actual shape of %s for output %s: EP '%s' made it, "
      "node '%s'",
      expected.failed ? "?" : expected.text, actual.failed ? "?" : actual.text, slot->value->name,
      step->unit->ep->name, step->unit->node->name);
  strbuf_release(&expected);
  strbuf_release(&actual);
}

/* The step that makes the value of a slot, behind copies of it; NULL: none of this graph. */
static const Step* maker_of(const Plan* plan, int32_t slot) {
  for (size_t i = 0; i < plan->step_count; i++) {
    const Step* step = &plan->steps[i];
    for (size_t k = 0; k < step->output_count; k++) {
      if (step->outputs[k] != slot) continue;
      if (!step->unit->is_copy) return step;
      slot = step->inputs[0];
      i = (size_t)-1; /* from the start, for the copied one */
      break;
    }
  }
  return NULL;
}

/* takes `status` of a step that failed. Where an input has another shape than the model says, whoever made it
 * so comes first: the step had no chance. */
static OrtStatus* blame_makers(const Frame* frame, const Step* step, OrtStatus* status) {
  for (size_t i = step->read_count; i-- > 0;) {
    const OrtValue* value = step->inputs[i] >= 0 ? frame->values[step->inputs[i]] : NULL;
    const Slot* slot = value != NULL ? &frame->plan->slots[step->inputs[i]] : NULL;
    const OrtTensorTypeAndShapeInfo* model = slot != NULL ? other_shape(slot, value) : NULL;
    const Step* maker = model != NULL ? maker_of(frame->plan, step->inputs[i]) : NULL;
    if (maker == NULL) continue;
    StrBuf expected = {0}, actual = {0};
    append_shape(&expected, model->dims, model->rank);
    append_shape(&actual, value->dims, value->rank);
    char* text = step_text(maker);
    status = status_wrap(status, "%s made its output '%s' of shape %s, the model says %s; then",
                         text != NULL ? text : maker->unit->ep->name, slot->value->name,
                         actual.failed ? "?" : actual.text, expected.failed ? "?" : expected.text);
    mem_free(text);
    strbuf_release(&expected);
    strbuf_release(&actual);
  }
  return status;
}

/* As in stock ORT, an output of the model that a kernel did not make, and that nobody else reads, is a value
 * without content. */
static OrtStatus* leave_empty(Frame* frame, const Step* step, int32_t slot) {
  const Slot* missing = &frame->plan->slots[slot];
  if (missing->output < 0 || frame->output_place[missing->output] == 0) return NULL;
  LOG(frame->context.logger, WARNING,
      "EP '%s': node '%s' said OK and did not make its output '%s': the caller gets a value without content",
      step->unit->ep->name, step->unit->node->name, missing->value->name);
  return value_new_blank(&frame->values[slot]);
}

static OrtStatus* check_produced(Frame* frame, const Step* step) {
  const Slot* slots = frame->plan->slots;
  for (size_t i = 0; i < step->output_count; i++) {
    int32_t slot = step->outputs[i];
    if (slot < 0) continue;
    const OrtValue* value = frame->values[slot];
    if (value != NULL) {
      int32_t output = slots[slot].output;
      if (output >= 0 && frame->output_place[output] != 0) check_shape(frame, step, &slots[slot], value);
      continue;
    }
    if (!slots[slot].is_needed) {
      TRY(leave_empty(frame, step, slot));
      continue;
    }
    return step_failure(
        status_new(ORT_EP_FAIL, "it said OK and did not make its output '%s'", slots[slot].value->name),
        step);
  }
  return NULL;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline OrtStatus* run_step(Frame* frame, const Step* step) {
  const Unit* unit = step->unit;
  frame->context.step = step;
  if (unit->is_copy) return devices_copy(frame, step);
  return unit->kernel != NULL
             ? call_OrtKernelImpl_Compute(unit->kernel, &frame->context)
             : call_OrtNodeComputeInfo_Compute(unit->compute, unit->compute_state, &frame->context);
}

static Profiler* frame_profiler(const Frame* frame) {
  while (frame->parent != NULL) frame = frame->parent;
  return frame->profiler;
}

static OrtStatus* measured_step(Frame* frame, Step* step) {
  Profiler* profiler = frame_profiler(frame);
  ProfileSpan span = {0};
  if (profiler != NULL) span = profiler_start_step(profiler, frame, step);
  uint64_t start = now_ns();
  OrtStatus* status = run_step(frame, step);
  atomic_fetch_add_explicit(&step->nanoseconds, now_ns() - start, memory_order_relaxed);
  atomic_fetch_add_explicit(&step->runs, 1, memory_order_relaxed);
  if (profiler != NULL) profiler_stop_step(profiler, &span, frame, step);
  return status;
}

static void drop_last_used(Frame* frame, const Step* step) {
  for (size_t i = 0; i < step->last_used_count; i++) frame_drop(frame, step->last_used[i]);
}

static OrtStatus* run_steps(Frame* frame) {
  const OrtRunOptions* options = frame->options;
  bool is_measured =
      frame_profiler(frame) != NULL || atomic_load_explicit(&frame->session->is_timing, memory_order_relaxed);
  Step* end = frame->plan->steps + frame->plan->step_count;
  for (Step* step = frame->plan->steps; step != end; step++) {
    if (options != NULL && atomic_load_explicit(&options->terminate, memory_order_relaxed))
      return status_new(ORT_FAIL, RUN_TERMINATED " Before node '%s'", step->unit->node->name);
    if (frame->is_skipped != NULL && frame->is_skipped[step - frame->plan->steps]) {
      drop_last_used(frame, step);
      continue;
    }
    OrtStatus* status = step->wait_count != 0 ? devices_wait(frame, step) : NULL;
    if (status == NULL) status = is_measured ? measured_step(frame, step) : run_step(frame, step);
    if (status == NULL && step->notification >= 0) status = devices_notify(frame, step);
    if (status != NULL) return blame_makers(frame, step, step_failure(status, step));
    TRY(check_produced(frame, step));
    drop_last_used(frame, step);
  }
  return NULL;
}

static OrtStatus* run_graph(Frame* frame) {
  if (!frame_has_devices(frame)) return run_steps(frame);
  OrtStatus* status = devices_begin(frame);
  if (status == NULL) status = run_steps(frame);
  if (status == NULL) status = devices_fetch(frame);
  return devices_end(frame, status);
}

OrtStatus* frame_run(Frame* frame) {
  const Step* const* outer = at_work.step;
  Profiler* profiler = frame_profiler(frame);
  ProfileSpan span;
  frame->context.step = NULL;
  at_work.step = &frame->context.step;
  if (profiler != NULL) span = profiler_start(profiler);
  OrtStatus* status = run_graph(frame);
  if (profiler != NULL) profiler_stop(profiler, &span, "SequentialExecutor::Execute");
  at_work.step = outer;
  return status;
}

/* ---- What EPs do before and after ---- */

static OrtStatus* end_hooks(OrtSession* session, const OrtRunOptions* options, size_t started,
                            OrtStatus* status) {
  const char* no_sync = key_values_get(options->config, "disable_synchronize_execution_providers");
  bool sync_stream = no_sync == NULL || strcmp(no_sync, "1") != 0;
  for (size_t i = 0; i < started; i++) {
    SessionEp* ep = &session->eps[i];
    if (ep->on_run_end == NULL) continue;
    AtWork before = at_work_begin("EP", ep->name, NULL, NULL);
    OrtStatus* failure = call_OrtEp_OnRunEnd(ep->ep, options, sync_stream);
    at_work = before;
    if (failure == NULL) continue;
    failure = ep_failure(failure, "EP '%s': OrtEp::OnRunEnd failed", ep->name);
    if (status == NULL) {
      status = failure;
    } else { /* the run's own failure says more */
      LOG(&session->logger, ERROR, "%s", status_message(failure));
      status_release(failure);
    }
  }
  return status;
}

static OrtStatus* run_with_hooks(Frame* frame, const OrtRunOptions* options) {
  OrtSession* session = frame->session;
  const OrtRunOptions* shown = options != NULL ? options : session->default_run_options;
  OrtStatus* status = NULL;
  size_t started = 0;
  for (; started < session->ep_count && status == NULL; started++) {
    SessionEp* ep = &session->eps[started];
    if (ep->on_run_start == NULL) continue;
    AtWork before = at_work_begin("EP", ep->name, NULL, NULL);
    status = call_OrtEp_OnRunStart(ep->ep, shown);
    at_work = before;
    if (status != NULL) {
      status = ep_failure(status, "EP '%s': OrtEp::OnRunStart failed", ep->name);
      break; /* this one did not start */
    }
  }
  if (status == NULL) status = frame_run(frame);
  return end_hooks(session, shown, started, status);
}

OrtStatus* run_bound(Frame* frame) {
  return frame->session->has_run_hooks ? run_with_hooks(frame, frame->options) : frame_run(frame);
}

/* ---- Results ---- */

/* Copies for the further places of outputs. Work of the run that goes on can only be on the caller's stream.
 */
static OrtStatus* copy_repeats(Frame* frame, OrtValue* const* outputs) {
  OrtSyncStream* stream = frame->options != NULL ? frame->options->stream : NULL;
  if (stream != NULL) TRY(stream_flush(stream));
  for (size_t i = 0; i < frame->repeat_count; i++) {
    Repeat* repeat = &frame->repeats[i];
    const OutputSpec* spec = &frame->plan->outputs[repeat->output];
    const OrtValue* source = frame->values[spec->slot];
    OrtValue* given = outputs[repeat->place - 1];
    OrtValue* copy = given;
    const OrtMemoryInfo* memory =
        frame->caller_memories != NULL ? frame->caller_memories[repeat->place - 1] : NULL;
    if (given == source) continue;
    TRY(copy_to_output(frame, spec, source, memory, NULL, &copy));
    repeat->copy = copy != given ? copy : NULL;
  }
  return NULL;
}

static void hand_over_repeats(Frame* frame, OrtValue** outputs) {
  for (size_t i = 0; i < frame->repeat_count; i++) {
    Repeat* repeat = &frame->repeats[i];
    if (repeat->copy != NULL) outputs[repeat->place - 1] = repeat->copy;
    repeat->copy = NULL;
  }
}

/* Copied outputs first, since they can fail; then the results change hands. */
static OrtStatus* hand_over(Frame* frame, OrtValue** outputs) {
  OrtStatus* status = frame->repeat_count != 0 ? copy_repeats(frame, outputs) : NULL;
  const Plan* plan = frame->plan;
  size_t copied = 0;
  for (; copied < plan->output_count && status == NULL; copied++) {
    const OutputSpec* spec = &plan->outputs[copied];
    uint32_t place = frame->output_place[copied];
    if (!spec->is_copied || place == 0) continue;
    OrtValue* copy = outputs[place - 1];
    const OrtMemoryInfo* memory = frame->caller_memories != NULL ? frame->caller_memories[place - 1] : NULL;
    status = copy_to_output(frame, spec, frame->values[spec->slot], memory, NULL, &copy);
    if (status == NULL) frame->copies[copied] = copy != outputs[place - 1] ? copy : NULL;
  }
  for (size_t i = 0; i < plan->output_count; i++) {
    const OutputSpec* spec = &plan->outputs[i];
    uint32_t place = frame->output_place[i];
    if (place == 0) continue;
    bool is_copy = spec->is_copied || frame->is_fetched[i];
    OrtValue* copy = is_copy ? frame->copies[i] : NULL;
    frame->copies[i] = NULL;
    if (status != NULL) {
      value_release(copy);
    } else if (copy != NULL) {
      outputs[place - 1] = copy;
    } else if (!is_copy) {
      outputs[place - 1] = frame->values[spec->slot];
      frame->values[spec->slot] = NULL;
    }
  }
  if (status == NULL) hand_over_repeats(frame, outputs);
  return status;
}

void frame_clean(Frame* frame, bool has_failed) {
  const Plan* plan = frame->plan;
  for (size_t i = 0; i < plan->output_count; i++) {
    const OutputSpec* spec = &plan->outputs[i];
    uint32_t place = frame->output_place[i];
    frame->output_place[i] = 0;
    frame->is_fetched[i] = 0;
    value_release(frame->copies[i]); /* fetched, but not handed over */
    frame->copies[i] = NULL;
    if (spec->is_copied || frame->values[spec->slot] == NULL) continue;
    if (place != 0 && frame->values[spec->slot] == frame->caller_outputs[place - 1])
      frame->values[spec->slot] = NULL;
    else
      frame_drop(frame, spec->slot);
  }
  for (size_t i = 0; i < plan->input_count; i++) {
    if (!frame->input_given[i]) continue;
    frame->input_given[i] = 0;
    frame->values[plan->inputs[i].slot] = plan->inputs[i].value->initializer;
    value_release(frame->staged[i]);
    frame->staged[i] = NULL;
  }
  for (size_t i = 0; i < frame->repeat_count; i++) value_release(frame->repeats[i].copy);
  frame->repeat_count = 0;
  frame->has_device_values = false;
  frame->demanded_count = 0;
  if (frame->is_skipped != NULL) {
    mem_free(frame->is_skipped);
    frame->is_skipped = NULL;
  }
  if (!has_failed && !plan->has_held) return;
  for (size_t i = 0; i < plan->slot_count; i++) {
    if (plan->slots[i].kind == SLOT_INTERMEDIATE) frame_drop(frame, (int32_t)i);
  }
}

/* ---- Run ---- */

/* The session's logger, or one with the run's own level. */
static const OrtLogger* logger_for(Frame* frame, const OrtRunOptions* options) {
  if (options == NULL || options->log_severity < 0) return &frame->session->logger;
  frame->run_logger = frame->session->logger;
  frame->run_logger.severity = (OrtLoggingLevel)options->log_severity;
  return &frame->run_logger;
}

OrtStatus* session_run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
                       const OrtValue* const* inputs, size_t input_count, const char* const* output_names,
                       size_t output_count, OrtValue** outputs, const OrtMemoryInfo* const* output_memories) {
  TRY(shrink_check(session, options));
  Frame* frame = frame_get(session, &session->plan);
  if (frame == NULL) return status_no_memory();
  OrtStatus* status = NULL;
  ProfileSpan span;
  frame->options = options;
  frame->caller_outputs = outputs;
  frame->caller_memories = output_memories;
  frame->has_device_values = output_memories != NULL;
  if (session->profiler != NULL || (options != NULL && options->profile_prefix != NULL))
    TRY_DONE(profile_run_start(frame, options, &span));
  TRY_DONE(bind_inputs(frame, input_names, inputs, input_count));
  TRY_DONE(bind_outputs(frame, output_names, outputs, output_count));
  if (frame->demanded_count != session->plan.demanded_count) TRY_DONE(skip_unneeded(frame));
  frame->context.logger = logger_for(frame, options);
  if (session->is_serial) pthread_mutex_lock(&session->serial);
  status = session->capture != NULL ? graph_capture_run(frame) : run_bound(frame);
  if (session->is_serial) pthread_mutex_unlock(&session->serial);
  if (status == NULL) status = hand_over(frame, outputs);
done:
  frame_clean(frame, status != NULL);
  if (frame->profiler != NULL) profile_run_end(frame, &span);
  frame_put(frame);
  if (status == NULL) shrink_after(session, options);
  return status;
}

/* gives the outputs that the caller left NULL (caller releases with ReleaseValue); on failure none changes.
 * borrows everything else during the call. Any thread. */
OrtStatus* ORT_API_CALL api_Run(OrtSession* session, const OrtRunOptions* run_options,
                                const char* const* input_names, const OrtValue* const* inputs,
                                size_t input_len, const char* const* output_names, size_t output_names_len,
                                OrtValue** outputs) {
  REQUIRE_ARG(session);
  if (input_len != 0) {
    REQUIRE_ARG(input_names);
    REQUIRE_ARG(inputs);
  }
  REQUIRE_ARG(output_names);
  REQUIRE_ARG(outputs);
  if (output_names_len == 0)
    return status_new(ORT_INVALID_ARGUMENT, "Run: At least one output should be requested.");
  return session_run(session, run_options, input_names, inputs, input_len, output_names, output_names_len,
                     outputs, NULL);
}
