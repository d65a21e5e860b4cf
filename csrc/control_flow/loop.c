/* The kernels for Loop that EPs get from the host. */
#include <string.h>

#include "api_slots.h"
#include "control_flow/control_flow.h"

/* Inputs of the node and of its body that are not carried: trip count and condition, iteration number and
 * condition. */
#define FIRST_CARRIED 2

typedef struct LoopKernel {
  OrtKernelImpl impl;
  const OrtNode* node;
  size_t body, carried_count, scan_count;
  OrtLoopKernelHelper* helper;
} LoopKernel;

/* One call of Compute. */
typedef struct LoopRun {
  const LoopKernel* kernel;
  OrtKernelContext* context;
  BodyRun body;
  BodyInput* inputs; /* of the next iteration: number, condition, carried values */
  OrtValue** kept;   /* scan outputs, iteration by iteration; owned */
  size_t kept_count, kept_capacity;
  int64_t iterations;
} LoopRun;

/* ---- Iterations ---- */

/* The body's input `index`, a scalar that belongs to the loop; some models declare one dimension of 1. */
static OrtStatus* make_scalar(LoopRun* loop, size_t index, ONNXTensorElementDataType type) {
  const OrtTensorTypeAndShapeInfo* tensor = loop->body.body->plan->inputs[index].tensor;
  const int64_t one = 1;
  size_t rank = tensor != NULL && tensor->has_shape && tensor->rank == 1 ? 1 : 0;
  return value_new_tensor(allocator_cpu(), type, rank, &one, &loop->inputs[index].value);
}

/* takes what the iteration made. */
static OrtStatus* keep_results(LoopRun* loop) {
  const LoopKernel* kernel = loop->kernel;
  OrtValue** outputs = loop->body.outputs;
  for (size_t i = 0; i < kernel->carried_count; i++) {
    BodyInput* input = &loop->inputs[FIRST_CARRIED + i];
    if (input->is_owned) value_release(input->value);
    *input = (BodyInput){outputs[1 + i], true};
    outputs[1 + i] = NULL;
  }
  if (!ARRAY_RESERVE(loop->kept, loop->kept_capacity, loop->kept_count + kernel->scan_count))
    return status_no_memory();
  for (size_t i = 0; i < kernel->scan_count; i++) {
    loop->kept[loop->kept_count++] = outputs[1 + kernel->carried_count + i];
    outputs[1 + kernel->carried_count + i] = NULL;
  }
  return NULL;
}

static OrtStatus* iterate(LoopRun* loop, bool* goes_on) {
  TRY(check_terminated(loop->context));
  memcpy(loop->inputs[0].value->data, &loop->iterations, sizeof loop->iterations);
  *(uint8_t*)loop->inputs[1].value->data = *goes_on;
  TRY(body_run(&loop->body, loop->inputs));
  TRY(read_bool(loop->context, loop->body.outputs[0], "the body's condition", goes_on));
  return keep_results(loop);
}

static OrtStatus* run_iterations(LoopRun* loop, int64_t most, bool goes_on) {
  while (loop->iterations < most && goes_on) {
    OrtStatus* status = iterate(loop, &goes_on);
    if (status != NULL) return status_wrap(status, "iteration %lld", (long long)loop->iterations);
    loop->iterations++;
  }
  return NULL;
}

/* ---- Results ---- */

static OrtStatus* check_same_shape(const OrtValue* first, const OrtValue* value, size_t iteration,
                                   const char* name) {
  if (value->element_type == first->element_type && value->rank == first->rank &&
      (first->rank == 0 || memcmp(value->dims, first->dims, first->rank * sizeof *first->dims) == 0))
    return NULL;
  char *was = value_type_text(first), *is = value_type_text(value);
  OrtStatus* status =
      status_new(ORT_INVALID_ARGUMENT, "iteration %zu makes '%s' as %s, the iterations before made it as %s",
                 iteration, name, is != NULL ? is : "?", was != NULL ? was : "?");
  mem_free(was);
  mem_free(is);
  return status;
}

static OrtStatus* concat_strings(const OrtValue* const* items, size_t count, OrtValue* output) {
  size_t next = 0;
  for (size_t i = 0; i < count; i++) {
    const StringElement* strings = items[i]->data;
    for (size_t k = 0; k < items[i]->element_count; k++) {
      const char* text = strings[k].text != NULL ? strings[k].text : "";
      if (!value_set_string(output, next++, text, strings[k].length)) return status_no_memory();
    }
  }
  return NULL;
}

/* Calls the EP's helper. `items`: of one shape, not none. */
static OrtStatus* concat(LoopRun* loop, const OrtValue* const* items, size_t count, OrtValue* output) {
  if (output->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    return concat_strings(items, count, output);
  if (output->size_bytes == 0) return NULL;
  if (output->size_bytes != count * items[0]->size_bytes)
    return status_new(ORT_NOT_IMPLEMENTED, "values of %s that do not fill their bytes cannot be concatenated",
                      element_type_name(output->element_type));
  if (!memory_device_equal(&items[0]->memory->device, &output->memory->device))
    return status_new(
        ORT_NOT_IMPLEMENTED,
        "the environment has no allocator for '%s': iterations cannot leave their results there",
        output->memory->name);
  OrtSyncStream* stream = ep_stream(loop->context);
  OrtStatus* thrown = NULL;
  void* handle = stream != NULL ? call_OrtSyncStreamImpl_GetHandle(stream->impl, &thrown) : NULL;
  TRY(thrown);
  OrtLoopKernelHelper* helper = loop->kernel->helper;
  OrtStatus* status =
      call_OrtLoopKernelHelper_ConcatOutput(helper, handle, items, count, output->data, output->size_bytes);
  return status == NULL ? NULL : ep_failure(status, "OrtLoopKernelHelper::ConcatOutput failed");
}

static OrtStatus* give_scan_output(LoopRun* loop, size_t scan) {
  const LoopKernel* kernel = loop->kernel;
  size_t index = kernel->carried_count + scan, count = (size_t)loop->iterations;
  const OrtValueInfo* item = loop->body.body->plan->graph->outputs[1 + index];
  if (index >= loop->context->step->output_count || loop->context->step->outputs[index] < 0) return NULL;
  if (count == 0) return empty_output(loop->context, index, item, 0);
  OrtStatus* status = NULL;
  OrtValue* output = NULL;
  const OrtValue** items = mem_calloc(count, sizeof *items);
  if (items == NULL) return status_no_memory();
  for (size_t i = 0; i < count; i++) {
    items[i] = loop->kept[i * kernel->scan_count + scan];
    TRY_DONE(check_same_shape(items[0], items[i], i, item->name));
  }
  TRY_DONE(stacked_output(loop->context, index, loop->iterations, items[0], &output));
  if (output != NULL) status = concat(loop, items, count, output);
done:
  mem_free(items);
  return status;
}

static OrtStatus* give_results(LoopRun* loop) {
  const LoopKernel* kernel = loop->kernel;
  for (size_t i = 0; i < kernel->carried_count; i++) {
    BodyInput* input = &loop->inputs[FIRST_CARRIED + i];
    if (input->is_owned)
      TRY(give_output(loop->context, i, &input->value));
    else
      TRY(copy_output(loop->context, i, input->value)); /* there was no iteration */
  }
  for (size_t i = 0; i < kernel->scan_count; i++) TRY(give_scan_output(loop, i));
  return NULL;
}

/* ---- Compute ---- */

static OrtStatus* read_limits(OrtKernelContext* context, int64_t* most, bool* goes_on) {
  const OrtValue* value = NULL;
  TRY(api_KernelContext_GetInput(context, 0, &value));
  *most = INT64_MAX;
  if (value != NULL) TRY(read_int64(context, value, "the trip count", most));
  TRY(api_KernelContext_GetInput(context, 1, &value));
  *goes_on = true;
  return value != NULL ? read_bool(context, value, "the condition", goes_on) : NULL;
}

static OrtStatus* prepare(LoopRun* loop) {
  const LoopKernel* kernel = loop->kernel;
  TRY(body_open(loop->context, kernel->body, 1, &loop->body));
  loop->inputs = mem_calloc(FIRST_CARRIED + kernel->carried_count, sizeof *loop->inputs);
  if (loop->inputs == NULL) return status_no_memory();
  TRY(make_scalar(loop, 0, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64));
  TRY(make_scalar(loop, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL));
  for (size_t i = FIRST_CARRIED; i < FIRST_CARRIED + kernel->carried_count; i++) {
    const OrtValue* initial = NULL;
    TRY(api_KernelContext_GetInput(loop->context, i, &initial));
    if (initial == NULL) return status_new(ORT_INVALID_ARGUMENT, "input %zu is missing", i);
    loop->inputs[i].value = (OrtValue*)(uintptr_t)initial; /* kernels see it as const */
  }
  return NULL;
}

static void close_loop(LoopRun* loop) {
  for (size_t i = 0; i < loop->kept_count; i++) value_release(loop->kept[i]);
  mem_free(loop->kept);
  for (size_t i = 0; loop->inputs != NULL && i < FIRST_CARRIED + loop->kernel->carried_count; i++) {
    if (i < FIRST_CARRIED || loop->inputs[i].is_owned) value_release(loop->inputs[i].value);
  }
  mem_free(loop->inputs);
  body_close(&loop->body);
}

static OrtStatus* ORT_API_CALL loop_compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  LoopRun loop = {.kernel = (const LoopKernel*)this_ptr, .context = context};
  int64_t most = 0;
  bool goes_on = false;
  TRY(check_context(context, loop.kernel->node));
  TRY(read_limits(context, &most, &goes_on));
  OrtStatus* status = prepare(&loop);
  if (status == NULL) status = run_iterations(&loop, most, goes_on);
  if (status == NULL) status = give_results(&loop);
  status = finish_stream(context, status); /* before what its work reads is released */
  close_loop(&loop);
  return status;
}

/* ---- Making one ---- */

static void ORT_API_CALL loop_release(OrtKernelImpl* this_ptr) {
  LoopKernel* kernel = (LoopKernel*)this_ptr;
  call_OrtLoopKernelHelper_Release(kernel->helper, NULL);
  mem_free(kernel);
}

/* takes `helper` on success. gives (caller releases with its Release or ReleaseKernelImpl). */
OrtStatus* ORT_API_CALL api_CreateLoopKernel(const OrtKernelInfo* kernel_info, OrtLoopKernelHelper* helper,
                                             OrtKernelImpl** kernel_out) {
  REQUIRE_ARG(kernel_info);
  REQUIRE_ARG(helper);
  REQUIRE_ARG(kernel_out);
  TRY(check_helper(helper->ort_version_supported, helper->Release != NULL, helper->ConcatOutput != NULL,
                   "OrtLoopKernelHelper: Release, ConcatOutput", kernel_info));
  const OrtNode* node = kernel_info->node;
  size_t body = 0;
  TRY(find_subgraph(node, "body", &body));
  const OrtGraph* graph = node->subgraphs[body];
  size_t carried = node->input_count > FIRST_CARRIED ? node->input_count - FIRST_CARRIED : 0;
  if (graph->input_count != FIRST_CARRIED + carried || graph->output_count < 1 + carried ||
      node->output_count > graph->output_count - 1)
    return status_new(
        ORT_INVALID_GRAPH,
        "the body of node '%s' (Loop) has %zu inputs and %zu outputs: not those that go with the "
        "node's %zu carried values and %zu outputs",
        node->name, graph->input_count, graph->output_count, carried, node->output_count);
  LoopKernel* kernel = mem_calloc(1, sizeof *kernel);
  if (kernel == NULL) return status_no_memory();
  kernel->impl.ort_version_supported = ORT_API_VERSION;
  kernel->impl.Compute = loop_compute;
  kernel->impl.Release = loop_release;
  kernel->node = node;
  kernel->body = body;
  kernel->carried_count = carried;
  kernel->scan_count = graph->output_count - 1 - carried;
  kernel->helper = helper;
  *kernel_out = &kernel->impl;
  return NULL;
}
