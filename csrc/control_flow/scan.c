/* The kernels for Scan (from version 9 on) that EPs get from the host. */
#include <string.h>

#include "api_slots.h"
#include "control_flow/control_flow.h"

typedef struct ScanKernel {
  OrtKernelImpl impl;
  const OrtNode* node;
  size_t body, state_count, input_count, output_count; /* inputs and outputs: those that are scanned */
  OrtScanKernelHelper* helper;
} ScanKernel;

/* A scanned input or output. */
typedef struct ScanValue {
  const OrtValue* source; /* an input: with the scanned axis in front */
  OrtValue* own;          /* what was transposed, or is yet to be; else NULL */
  OrtValue* target;       /* an output: with the scanned axis in front */
  OrtValue* slice;        /* shows one item of source or target */
  size_t item_bytes;
  bool is_reversed;
} ScanValue;

/* One call of Compute. */
typedef struct ScanRun {
  const ScanKernel* kernel;
  OrtKernelContext* context;
  BodyRun body;
  BodyInput* inputs; /* of the next iteration: states, then slices */
  ScanValue* values; /* the inputs, then the outputs */
  int64_t length;
} ScanRun;

/* Element of an attribute that lists one integer an input or output; 0 when the node has none. */
static int64_t listed(const OrtNode* node, const char* name, size_t index) {
  const OrtOpAttr* attribute = node_find_attribute(node, name);
  return attribute != NULL && index < attribute->count ? attribute->ints[index] : 0;
}

/* ---- Slices ---- */

/* A view of the first item of `whole`, whose memory it borrows. */
static OrtStatus* open_slice(ScanValue* value, OrtValue* whole, int64_t length) {
  if (element_type_bits(whole->element_type) < 8)
    return status_new(ORT_NOT_IMPLEMENTED, "tensors of %s cannot be scanned",
                      element_type_name(whole->element_type));
  value->item_bytes = whole->size_bytes / (size_t)length;
  return value_new_tensor_over(whole->data, value->item_bytes, whole->memory, NULL, whole->element_type,
                               whole->rank - 1, whole->dims + 1, &value->slice);
}

static void move_slice(ScanValue* value, void* start, int64_t iteration, int64_t length) {
  int64_t item = value->is_reversed ? length - 1 - iteration : iteration;
  value->slice->data = (char*)start + (size_t)item * value->item_bytes;
}

/* ---- Transposing ---- */

static OrtStatus* check_axis(int64_t axis, size_t rank, const char* what, size_t index, size_t* out) {
  if (axis < -(int64_t)rank || axis >= (int64_t)rank)
    return status_new(ORT_INVALID_ARGUMENT, "axis %lld of scan %s %zu is outside its %zu dimensions",
                      (long long)axis, what, index, rank);
  *out = (size_t)(axis < 0 ? axis + (int64_t)rank : axis);
  return NULL;
}

static OrtStatus* transpose(const ScanRun* scan, const size_t* permutation, const OrtValue* from,
                            OrtValue* to) {
  if (to->size_bytes == 0) return NULL;
  OrtScanKernelHelper* helper = scan->kernel->helper;
  OrtStatus* status =
      call_OrtScanKernelHelper_Transpose(helper, permutation, from->rank, from, ep_stream(scan->context), to);
  if (status != NULL) return ep_failure(status, "OrtScanKernelHelper::Transpose failed");
  return finish_stream(scan->context, NULL); /* the body may read it on another stream */
}

static OrtAllocator* allocator_of(const ScanRun* scan, const OrtValue* value) {
  const OrtSession* session = scan->context->frame->session;
  for (size_t i = 1; i < session->place_count; i++) {
    if (memory_device_equal(&session->places[i].memory->device, &value->memory->device))
      return session->places[i].allocator;
  }
  return session->places[0].allocator;
}

/* gives `*out`: `value` with `axis` in front. */
static OrtStatus* axis_to_front(const ScanRun* scan, const OrtValue* value, size_t axis, OrtValue** out) {
  OrtStatus* status = NULL;
  size_t* permutation = mem_calloc(value->rank, sizeof *permutation);
  int64_t* dims = mem_calloc(value->rank, sizeof *dims);
  if (permutation == NULL || dims == NULL) TRY_DONE(status_no_memory());
  for (size_t i = 0; i < value->rank; i++) {
    permutation[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    dims[i] = value->dims[permutation[i]];
  }
  TRY_DONE(value_new_tensor(allocator_of(scan, value), value->element_type, value->rank, dims, out));
  status = transpose(scan, permutation, value, *out);
done:
  mem_free(permutation);
  mem_free(dims);
  return status;
}

/* Makes output `index` of the node: `value` with its first axis moved to `axis`. */
static OrtStatus* front_to_axis(const ScanRun* scan, const OrtValue* value, size_t axis, size_t index) {
  OrtStatus* status = NULL;
  OrtValue* output = NULL;
  size_t* permutation = mem_calloc(value->rank, sizeof *permutation);
  int64_t* dims = mem_calloc(value->rank, sizeof *dims);
  if (permutation == NULL || dims == NULL) TRY_DONE(status_no_memory());
  for (size_t i = 0; i < value->rank; i++) {
    permutation[i] = i == axis ? 0 : i < axis ? i + 1 : i;
    dims[i] = value->dims[permutation[i]];
  }
  TRY_DONE(typed_output(scan->context, index, value, dims, value->rank, &output));
  if (output != NULL) status = transpose(scan, permutation, value, output);
done:
  mem_free(permutation);
  mem_free(dims);
  return status;
}

/* ---- Inputs ---- */

static OrtStatus* open_state(ScanRun* scan, size_t index) {
  const OrtValue* initial = NULL;
  TRY(api_KernelContext_GetInput(scan->context, index, &initial));
  if (initial == NULL) return status_new(ORT_INVALID_ARGUMENT, "input %zu is missing", index);
  scan->inputs[index].value = (OrtValue*)(uintptr_t)initial; /* kernels see it as const */
  return NULL;
}

static OrtStatus* open_input(ScanRun* scan, size_t index) {
  const ScanKernel* kernel = scan->kernel;
  ScanValue* value = &scan->values[index];
  const OrtValue* given = NULL;
  size_t axis = 0;
  TRY(api_KernelContext_GetInput(scan->context, kernel->state_count + index, &given));
  if (given == NULL || given->kind != ONNX_TYPE_TENSOR || given->rank == 0)
    return status_new(ORT_INVALID_ARGUMENT, "scan input %zu is no tensor with dimensions", index);
  TRY(check_axis(listed(kernel->node, "scan_input_axes", index), given->rank, "input", index, &axis));
  if (index != 0 && given->dims[axis] != scan->length)
    return status_new(ORT_INVALID_ARGUMENT, "scan input %zu has %lld items, those before it have %lld", index,
                      (long long)given->dims[axis], (long long)scan->length);
  scan->length = given->dims[axis];
  value->is_reversed = listed(kernel->node, "scan_input_directions", index) != 0;
  if (scan->length == 0) return NULL;
  if (axis != 0) TRY(axis_to_front(scan, given, axis, &value->own));
  value->source = axis != 0 ? value->own : given;
  TRY(open_slice(value, (OrtValue*)(uintptr_t)value->source, scan->length)); /* the body only reads it */
  scan->inputs[kernel->state_count + index].value = value->slice;
  return NULL;
}

/* ---- Outputs ---- */

static bool is_wanted(const ScanRun* scan, size_t index) {
  const Step* step = scan->context->step;
  return index < step->output_count && step->outputs[index] >= 0;
}

/* The first iteration tells the shape. */
static OrtStatus* open_output(ScanRun* scan, size_t index, const OrtValue* item) {
  const ScanKernel* kernel = scan->kernel;
  ScanValue* value = &scan->values[kernel->input_count + index];
  size_t axis = 0;
  TRY(check_axis(listed(kernel->node, "scan_output_axes", index), item->rank + 1, "output", index, &axis));
  value->is_reversed = listed(kernel->node, "scan_output_directions", index) != 0;
  if (axis == 0) {
    TRY(stacked_output(scan->context, kernel->state_count + index, scan->length, item, &value->target));
  } else {
    int64_t* dims = mem_calloc(item->rank + 1, sizeof *dims);
    if (dims == NULL) return status_no_memory();
    dims[0] = scan->length;
    for (size_t i = 0; i < item->rank; i++) dims[i + 1] = item->dims[i];
    OrtStatus* status =
        value_new_tensor(allocator_of(scan, item), item->element_type, item->rank + 1, dims, &value->own);
    mem_free(dims);
    if (status != NULL) return status;
    value->target = value->own;
  }
  return open_slice(value, value->target, scan->length);
}

static OrtStatus* keep_item(ScanRun* scan, size_t index, const OrtValue* item, int64_t iteration) {
  const ScanKernel* kernel = scan->kernel;
  ScanValue* value = &scan->values[kernel->input_count + index];
  if (!is_wanted(scan, kernel->state_count + index)) return NULL;
  if (value->target == NULL) TRY(open_output(scan, index, item));
  if (item->element_type != value->slice->element_type || item->rank != value->slice->rank ||
      (item->rank != 0 && memcmp(item->dims, value->slice->dims, item->rank * sizeof *item->dims) != 0))
    return status_new(ORT_INVALID_ARGUMENT, "scan output %zu has another shape than in the iterations before",
                      index);
  move_slice(value, value->target->data, iteration, scan->length);
  return copy_value(scan->context, item, value->slice);
}

/* ---- Compute ---- */

static OrtStatus* iterate(ScanRun* scan, int64_t iteration) {
  const ScanKernel* kernel = scan->kernel;
  TRY(check_terminated(scan->context));
  for (size_t i = 0; i < kernel->input_count; i++)
    move_slice(&scan->values[i], scan->values[i].source->data, iteration, scan->length);
  TRY(body_run(&scan->body, scan->inputs));
  OrtValue** outputs = scan->body.outputs;
  for (size_t i = 0; i < kernel->state_count; i++) {
    if (scan->inputs[i].is_owned) value_release(scan->inputs[i].value);
    scan->inputs[i] = (BodyInput){outputs[i], true};
    outputs[i] = NULL;
  }
  for (size_t i = 0; i < kernel->output_count; i++)
    TRY(keep_item(scan, i, outputs[kernel->state_count + i], iteration));
  return NULL;
}

static OrtStatus* run_iterations(ScanRun* scan) {
  for (int64_t i = 0; i < scan->length; i++) {
    OrtStatus* status = iterate(scan, i);
    if (status != NULL) return status_wrap(status, "iteration %lld", (long long)i);
  }
  return NULL;
}

static OrtStatus* give_results(ScanRun* scan) {
  const ScanKernel* kernel = scan->kernel;
  for (size_t i = 0; i < kernel->state_count; i++) {
    if (scan->inputs[i].is_owned)
      TRY(give_output(scan->context, i, &scan->inputs[i].value));
    else
      TRY(copy_output(scan->context, i, scan->inputs[i].value)); /* there was no iteration */
  }
  for (size_t i = 0; i < kernel->output_count; i++) {
    size_t index = kernel->state_count + i, axis = 0;
    const ScanValue* value = &scan->values[kernel->input_count + i];
    if (!is_wanted(scan, index)) continue;
    int64_t says = listed(kernel->node, "scan_output_axes", i);
    if (scan->length == 0) {
      TRY(empty_output(scan->context, index, scan->body.body->plan->graph->outputs[index], says));
    } else if (value->own != NULL) {
      TRY(check_axis(says, value->own->rank, "output", i, &axis));
      TRY(front_to_axis(scan, value->own, axis, index));
    }
  }
  return NULL;
}

static OrtStatus* prepare(ScanRun* scan) {
  const ScanKernel* kernel = scan->kernel;
  TRY(body_open(scan->context, kernel->body, 0, &scan->body));
  scan->inputs = mem_calloc(kernel->state_count + kernel->input_count, sizeof *scan->inputs);
  scan->values = mem_calloc(kernel->input_count + kernel->output_count, sizeof *scan->values);
  if (scan->inputs == NULL || scan->values == NULL) return status_no_memory();
  for (size_t i = 0; i < kernel->state_count; i++) TRY(open_state(scan, i));
  for (size_t i = 0; i < kernel->input_count; i++) TRY(open_input(scan, i));
  return NULL;
}

static void close_scan(ScanRun* scan) {
  const ScanKernel* kernel = scan->kernel;
  for (size_t i = 0; scan->values != NULL && i < kernel->input_count + kernel->output_count; i++) {
    value_release(scan->values[i].slice);
    value_release(scan->values[i].own);
  }
  for (size_t i = 0; scan->inputs != NULL && i < kernel->state_count; i++) {
    if (scan->inputs[i].is_owned) value_release(scan->inputs[i].value);
  }
  mem_free(scan->values);
  mem_free(scan->inputs);
  body_close(&scan->body);
}

static OrtStatus* ORT_API_CALL scan_compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  ScanRun scan = {.kernel = (const ScanKernel*)this_ptr, .context = context};
  TRY(check_context(context, scan.kernel->node));
  OrtStatus* status = prepare(&scan);
  if (status == NULL) status = run_iterations(&scan);
  if (status == NULL) status = give_results(&scan);
  status = finish_stream(context, status); /* before what its work reads is released */
  close_scan(&scan);
  return status;
}

/* ---- Making one ---- */

static void ORT_API_CALL scan_release(OrtKernelImpl* this_ptr) {
  ScanKernel* kernel = (ScanKernel*)this_ptr;
  call_OrtScanKernelHelper_Release(kernel->helper, NULL);
  mem_free(kernel);
}

/* Reads how many inputs are scanned; the body's inputs and outputs must go with the node's. */
static OrtStatus* count_values(const OrtNode* node, const OrtGraph* graph, ScanKernel* kernel) {
  const OrtOpAttr* scanned = node_find_attribute(node, "num_scan_inputs");
  int64_t count = scanned != NULL && scanned->type == ORT_OP_ATTR_INT ? scanned->i : 0;
  if (count < 1 || count > (int64_t)node->input_count)
    return status_new(ORT_INVALID_GRAPH,
                      "'num_scan_inputs' of node '%s' (Scan) is %lld, the node has %zu inputs", node->name,
                      (long long)count, node->input_count);
  kernel->input_count = (size_t)count;
  kernel->state_count = node->input_count - (size_t)count;
  if (graph->input_count != node->input_count || graph->output_count < kernel->state_count ||
      node->output_count > graph->output_count)
    return status_new(
        ORT_INVALID_GRAPH,
        "the body of node '%s' (Scan) has %zu inputs and %zu outputs: not those that go with the "
        "node's %zu states, %zu scan inputs and %zu outputs",
        node->name, graph->input_count, graph->output_count, kernel->state_count, kernel->input_count,
        node->output_count);
  kernel->output_count = graph->output_count - kernel->state_count;
  return NULL;
}

static OrtStatus* check_lists(const OrtNode* node, const ScanKernel* kernel) {
  static const char* const names[] = {"scan_input_axes", "scan_input_directions", "scan_output_axes",
                                      "scan_output_directions"};
  for (size_t i = 0; i < 4; i++) {
    const OrtOpAttr* attribute = node_find_attribute(node, names[i]);
    size_t wanted = i < 2 ? kernel->input_count : kernel->output_count;
    if (attribute == NULL || (attribute->type == ORT_OP_ATTR_INTS && attribute->count == wanted)) continue;
    return status_new(ORT_INVALID_GRAPH, "'%s' of node '%s' (Scan) must list %zu integers", names[i],
                      node->name, wanted);
  }
  return NULL;
}

/* takes `helper` on success. gives (caller releases with its Release or ReleaseKernelImpl). As in stock ORT,
 * Scan 8, which scans batches, has no kernels. */
OrtStatus* ORT_API_CALL api_CreateScanKernel(const OrtKernelInfo* kernel_info, OrtScanKernelHelper* helper,
                                             OrtKernelImpl** kernel_out) {
  REQUIRE_ARG(kernel_info);
  REQUIRE_ARG(helper);
  REQUIRE_ARG(kernel_out);
  TRY(check_helper(helper->ort_version_supported, helper->Release != NULL, helper->Transpose != NULL,
                   "OrtScanKernelHelper: Release, Transpose", kernel_info));
  const OrtNode* node = kernel_info->node;
  ScanKernel read = {.node = node};
  if (node->since_version < 9)
    return status_new(ORT_FAIL, "CreateScanKernel: node '%s' is a Scan of version %d, below 9", node->name,
                      node->since_version);
  TRY(find_subgraph(node, "body", &read.body));
  TRY(count_values(node, node->subgraphs[read.body], &read));
  TRY(check_lists(node, &read));
  ScanKernel* kernel = mem_alloc(sizeof *kernel);
  if (kernel == NULL) return status_no_memory();
  *kernel = read;
  kernel->impl.ort_version_supported = ORT_API_VERSION;
  kernel->impl.Compute = scan_compute;
  kernel->impl.Release = scan_release;
  kernel->helper = helper;
  *kernel_out = &kernel->impl;
  return NULL;
}
