/* Running a subgraph: values go in by place, captured ones come from the frame around it, results are values
 * on the heap that change hands. What goes in and what comes out is there: no work on it goes on. One thread.
 */
#include <string.h>

#include "api_slots.h"
#include "control_flow/control_flow.h"

/* ---- Taking a frame ---- */

/* Where the node's output lies, if a value of its own can be made there; NULL: host memory. */
static const OrtMemoryInfo* output_memory(const OrtKernelContext* context, size_t index) {
  const Step* step = context->step;
  if (index >= step->output_count || step->outputs[index] < 0) return NULL;
  int32_t place = context->frame->plan->slots[step->outputs[index]].place;
  const OrtSession* session = context->frame->session;
  if (place == 0 || env_shared_allocator(session->env, session->places[place].memory) == NULL) return NULL;
  return session->places[place].memory;
}

OrtStatus* body_open(OrtKernelContext* context, size_t index, size_t offset, BodyRun* out) {
  const Body* body = &context->step->bodies[index];
  size_t count = body->plan->output_count;
  *out = (BodyRun){.context = context, .body = body};
  /* Results, as many that stay NULL (nothing is preallocated), and their memories. */
  out->outputs = mem_calloc(3 * count, sizeof *out->outputs);
  if (out->outputs == NULL) return status_no_memory();
  out->memories = (const OrtMemoryInfo**)(void*)(out->outputs + 2 * count);
  for (size_t i = offset; i < count; i++) {
    out->memories[i] = output_memory(context, i - offset);
    out->has_memories = out->has_memories || out->memories[i] != NULL;
  }
  Frame* frame = frame_get(context->frame->session, body->plan);
  if (frame == NULL) return status_no_memory();
  out->frame = frame;
  frame->parent = context->frame;
  frame->options = context->frame->options;
  frame->context.logger = context->logger;
  frame->caller_outputs = out->outputs + count;
  frame->caller_memories = out->has_memories ? out->memories : NULL;
  return NULL;
}

static void drop_outputs(BodyRun* run) {
  for (size_t i = 0; i < run->body->plan->output_count; i++) {
    value_release(run->outputs[i]);
    run->outputs[i] = NULL;
  }
}

void body_close(BodyRun* run) {
  if (run->outputs != NULL) drop_outputs(run);
  if (run->frame != NULL) {
    run->frame->parent = NULL;
    frame_put(run->frame);
  }
  mem_free(run->outputs);
  *run = (BodyRun){0};
}

/* ---- One run ---- */

static OrtStatus* bind_value(Frame* frame, size_t index, OrtValue* value) {
  const InputSpec* spec = &frame->plan->inputs[index];
  if (value == NULL || value->kind != ONNX_TYPE_TENSOR)
    return status_new(ORT_INVALID_ARGUMENT, "input '%s' of the subgraph is no tensor", spec->name);
  ONNXTensorElementDataType wanted =
      spec->tensor != NULL ? spec->tensor->element_type : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (wanted != value->element_type)
    return status_new(ORT_INVALID_ARGUMENT, "input '%s' of the subgraph is of type %s, it wants %s",
                      spec->name, element_type_name(value->element_type), element_type_name(wanted));
  frame->input_given[index] = 1;
  frame->values[spec->slot] = value;
  if (!memory_device_is_host(&value->memory->device)) frame->has_device_values = true;
  return NULL;
}

static OrtStatus* bind_all(BodyRun* run, const BodyInput* inputs) {
  Frame* frame = run->frame;
  const Plan* plan = frame->plan;
  size_t captured = plan_captured(plan);
  frame->has_device_values = run->has_memories;
  for (size_t i = 0; i < captured; i++) TRY(bind_value(frame, i, inputs[i].value));
  for (size_t i = captured; i < plan->input_count; i++)
    TRY(bind_value(frame, i, run->context->frame->values[run->body->captured[i - captured]]));
  for (size_t i = 0; i < plan->output_count; i++) frame->output_place[i] = (uint32_t)i + 1;
  return NULL;
}

/* True if a value that goes through the body as it is may become its result as it is. */
static bool is_owned_input(const Plan* plan, const BodyInput* inputs, const OrtValue* value) {
  for (size_t i = 0; i < plan_captured(plan); i++) {
    if (inputs[i].value == value) return inputs[i].is_owned;
  }
  return false;
}

static OrtStatus* collect(BodyRun* run, const BodyInput* inputs, size_t index) {
  Frame* frame = run->frame;
  const OutputSpec* spec = &frame->plan->outputs[index];
  OrtValue* value = frame->values[spec->slot];
  if (frame->is_fetched[index]) {
    run->outputs[index] = frame->copies[index];
    frame->copies[index] = NULL;
    return NULL;
  }
  if (value == NULL) return status_new(ORT_FAIL, "the subgraph made no output '%s'", spec->name);
  bool stays =
      spec->is_copied ? !is_owned_input(frame->plan, inputs, value) : value == &frame->own[spec->slot];
  if (stays) return copy_to_output(frame, spec, value, run->memories[index], NULL, &run->outputs[index]);
  run->outputs[index] = value_retain(value);
  return NULL;
}

OrtStatus* body_run(BodyRun* run, const BodyInput* inputs) {
  OrtStatus* status = NULL;
  Frame* frame = run->frame;
  drop_outputs(run);
  TRY_DONE(bind_all(run, inputs));
  TRY_DONE(frame_run(frame));
  for (size_t i = 0; i < frame->plan->output_count; i++) TRY_DONE(collect(run, inputs, i));
done:
  frame_clean(frame, status != NULL);
  return status;
}

/* ---- Outputs of the node ---- */

/* An output is made, and read, as the type of its slot. */
static OrtStatus* check_type(const OrtKernelContext* context, int32_t output, const OrtValue* value) {
  const Slot* slot = &context->frame->plan->slots[output];
  if (slot->element_type == value->element_type) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "output '%s' would be of type %s, the model says %s",
                    slot->value->name, element_type_name(value->element_type),
                    element_type_name(slot->element_type));
}

/* The slot of the node's output, -1 if nobody wants it. */
static int32_t output_slot(const OrtKernelContext* context, size_t index) {
  return index < context->step->output_count ? context->step->outputs[index] : -1;
}

OrtStatus* typed_output(OrtKernelContext* context, size_t index, const OrtValue* like, const int64_t* dims,
                        size_t rank, OrtValue** out) {
  int32_t slot = output_slot(context, index);
  *out = NULL;
  if (slot < 0) return NULL;
  TRY(check_type(context, slot, like));
  return api_KernelContext_GetOutput(context, index, dims, rank, out);
}

OrtStatus* copy_value(OrtKernelContext* context, const OrtValue* source, OrtValue* target) {
  if (source->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return value_copy_strings(source, target);
  if (source->element_type != target->element_type || source->size_bytes != target->size_bytes)
    return status_new(ORT_FAIL, "a tensor of %zu bytes of %s cannot be copied into one of %zu of %s",
                      source->size_bytes, element_type_name(source->element_type), target->size_bytes,
                      element_type_name(target->element_type));
  if (!memory_device_is_host(&source->memory->device) || !memory_device_is_host(&target->memory->device))
    return finish_stream(
        context, env_copy_tensors(context->frame->session->env, &source, &target, ep_stream(context), 1));
  if (source->size_bytes != 0) memcpy(target->data, source->data, source->size_bytes);
  return NULL;
}

OrtStatus* copy_output(OrtKernelContext* context, size_t index, const OrtValue* value) {
  OrtValue* target = NULL;
  TRY(typed_output(context, index, value, value->dims, value->rank, &target));
  return target != NULL ? copy_value(context, value, target) : NULL;
}

OrtStatus* give_output(OrtKernelContext* context, size_t index, OrtValue** value) {
  Frame* frame = context->frame;
  int32_t slot = output_slot(context, index);
  OrtValue* given = *value;
  *value = NULL;
  if (slot < 0) {
    value_release(given);
    return NULL;
  }
  const OrtMemoryInfo* wanted = frame->session->places[frame->plan->slots[slot].place].memory;
  bool is_sole = atomic_load_explicit(&given->references, memory_order_relaxed) == 1;
  OrtStatus* status = check_type(context, slot, given);
  if (status == NULL && frame->values[slot] == NULL && is_sole &&
      memory_device_equal(&given->memory->device, &wanted->device)) {
    frame->values[slot] = given;
    return NULL;
  }
  if (status == NULL) status = copy_output(context, index, given);
  value_release(given);
  return status;
}

OrtStatus* stacked_output(OrtKernelContext* context, size_t index, int64_t length, const OrtValue* item,
                          OrtValue** out) {
  *out = NULL;
  int64_t* dims = mem_calloc(item->rank + 1, sizeof *dims);
  if (dims == NULL) return status_no_memory();
  dims[0] = length;
  for (size_t i = 0; i < item->rank; i++) dims[i + 1] = item->dims[i];
  OrtStatus* status = typed_output(context, index, item, dims, item->rank + 1, out);
  mem_free(dims);
  return status;
}

OrtStatus* empty_output(OrtKernelContext* context, size_t index, const OrtValueInfo* item, int64_t axis) {
  const OrtTensorTypeAndShapeInfo* tensor =
      item->type != NULL && item->type->kind == ONNX_TYPE_TENSOR ? item->type->tensor : NULL;
  size_t rank = tensor != NULL && tensor->has_shape ? tensor->rank : 0;
  size_t place = axis < 0 ? (size_t)(axis + (int64_t)rank + 1) : (size_t)axis;
  if (place > rank) place = 0; /* the rank is not known, either */
  OrtValue* output = NULL;
  int64_t* dims = mem_calloc(rank + 1, sizeof *dims);
  if (dims == NULL) return status_no_memory();
  for (size_t i = 0; i < rank; i++)
    dims[i < place ? i : i + 1] = tensor->dims[i] < 0 ? 0 : tensor->dims[i]; /* unknown ones are 0 */
  OrtStatus* status = api_KernelContext_GetOutput(context, index, dims, rank + 1, &output);
  mem_free(dims);
  return status;
}

/* ---- Scalars ---- */

static OrtStatus* read_scalar(OrtKernelContext* context, const OrtValue* value, const char* what,
                              ONNXTensorElementDataType type, void* out) {
  if (value->kind != ONNX_TYPE_TENSOR || value->element_type != type || value->element_count != 1)
    return status_new(ORT_INVALID_ARGUMENT, "%s must be one %s", what, element_type_name(type));
  OrtValue* on_host = NULL;
  OrtStatus* status = NULL;
  if (!memory_device_is_host(&value->memory->device)) {
    TRY_DONE(value_new_tensor(allocator_cpu(), type, value->rank, value->dims, &on_host));
    TRY_DONE(copy_value(context, value, on_host));
    value = on_host;
  }
  memcpy(out, value->data, value->size_bytes);
done:
  value_release(on_host);
  return status;
}

OrtStatus* read_bool(OrtKernelContext* context, const OrtValue* value, const char* what, bool* out) {
  uint8_t byte = 0;
  TRY(read_scalar(context, value, what, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, &byte));
  *out = byte != 0;
  return NULL;
}

OrtStatus* read_int64(OrtKernelContext* context, const OrtValue* value, const char* what, int64_t* out) {
  return read_scalar(context, value, what, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, out);
}

/* ---- The run around it ---- */

OrtStatus* check_terminated(const OrtKernelContext* context) {
  const OrtRunOptions* options = context->frame->options;
  if (options == NULL || !atomic_load_explicit(&options->terminate, memory_order_relaxed)) return NULL;
  return status_new(ORT_FAIL, RUN_TERMINATED);
}

OrtSyncStream* ep_stream(const OrtKernelContext* context) {
  return context->frame->streams[context->step->unit->ep->stream];
}

OrtStatus* finish_stream(OrtKernelContext* context, OrtStatus* status) {
  OrtSyncStream* stream = ep_stream(context);
  OrtStatus* failure = stream != NULL ? stream_flush(stream) : NULL;
  if (status == NULL) return failure;
  status_release(failure); /* the first one says more */
  return status;
}
