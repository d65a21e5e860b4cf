/* The kernels for If that EPs get from the host, and what those for Loop and Scan share. */
#include <string.h>

#include "api_slots.h"
#include "control_flow/control_flow.h"

/* ---- Shared ---- */

OrtStatus* find_subgraph(const OrtNode* node, const char* attribute, size_t* out) {
  const OrtOpAttr* found = node_find_attribute(node, attribute);
  for (size_t i = 0; found != NULL && found->graph != NULL && i < node->subgraph_count; i++) {
    if (node->subgraphs[i] != found->graph) continue;
    *out = i;
    return NULL;
  }
  return status_new(ORT_INVALID_GRAPH, "node '%s' (%s) has no subgraph '%s'", node->name, node->op_type,
                    attribute);
}

OrtStatus* check_context(const OrtKernelContext* context, const OrtNode* node) {
  if (context->step->unit->node == node && context->step->bodies != NULL) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "the kernel was made for node '%s', but node '%s' calls it",
                    node->name, context->step->unit->node->name);
}

/* `names`: "OrtLoopKernelHelper, ConcatOutput". */
OrtStatus* check_helper(uint32_t version, bool has_release, bool has_function, const char* names,
                        const OrtKernelInfo* info) {
  if (version != 0 && version < OLDEST_KERNEL_IMPL)
    return status_new(ORT_INVALID_ARGUMENT,
                      "EP '%s': ort_version_supported of the helper (%s) is %u, below %d", info->ep->name,
                      names, (unsigned)version, OLDEST_KERNEL_IMPL);
  if (has_release && has_function) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "EP '%s': the helper (%s) for node '%s' has a required slot NULL",
                    info->ep->name, names, info->node->name);
}

/* ---- If ---- */

typedef struct IfKernel {
  OrtKernelImpl impl;
  const OrtNode* node;
  size_t branches[2]; /* else, then */
} IfKernel;

static OrtStatus* run_branch(OrtKernelContext* context, size_t branch) {
  BodyRun run;
  OrtStatus* status = body_open(context, branch, 0, &run);
  if (status == NULL) status = body_run(&run, NULL);
  for (size_t i = 0; status == NULL && i < run.body->plan->output_count; i++)
    status = give_output(context, i, &run.outputs[i]);
  body_close(&run);
  return finish_stream(context, status);
}

static OrtStatus* ORT_API_CALL if_compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  const IfKernel* kernel = (const IfKernel*)this_ptr;
  const OrtValue* value = NULL;
  bool condition = false;
  TRY(check_context(context, kernel->node));
  TRY(api_KernelContext_GetInput(context, 0, &value));
  if (value == NULL) return status_new(ORT_INVALID_ARGUMENT, "the condition is missing");
  TRY(read_bool(context, value, "the condition", &condition));
  OrtStatus* status = run_branch(context, kernel->branches[condition]);
  return status == NULL ? NULL : status_wrap(status, "%s", condition ? "then_branch" : "else_branch");
}

static void ORT_API_CALL if_release(OrtKernelImpl* this_ptr) {
  mem_free(this_ptr);
}

static OrtStatus* check_branch(const OrtNode* node, const char* attribute, size_t* branch) {
  TRY(find_subgraph(node, attribute, branch));
  const OrtGraph* graph = node->subgraphs[*branch];
  if (graph->input_count == 0 && graph->output_count == node->output_count) return NULL;
  return status_new(ORT_INVALID_GRAPH,
                    "'%s' of node '%s' (If) has %zu inputs and %zu outputs, not none and %zu", attribute,
                    node->name, graph->input_count, graph->output_count, node->output_count);
}

/* gives (caller releases with its Release or ReleaseKernelImpl). keeps no more of `kernel_info` than the
 * session keeps anyway. */
OrtStatus* ORT_API_CALL api_CreateIfKernel(const OrtKernelInfo* kernel_info, OrtKernelImpl** kernel_out) {
  REQUIRE_ARG(kernel_info);
  REQUIRE_ARG(kernel_out);
  size_t branches[2];
  TRY(check_branch(kernel_info->node, "else_branch", &branches[0]));
  TRY(check_branch(kernel_info->node, "then_branch", &branches[1]));
  IfKernel* kernel = mem_calloc(1, sizeof *kernel);
  if (kernel == NULL) return status_no_memory();
  kernel->impl.ort_version_supported = ORT_API_VERSION;
  kernel->impl.Compute = if_compute;
  kernel->impl.Release = if_release;
  kernel->node = kernel_info->node;
  memcpy(kernel->branches, branches, sizeof branches);
  *kernel_out = &kernel->impl;
  return NULL;
}

/* releases. */
void ORT_API_CALL api_ReleaseKernelImpl(OrtKernelImpl* input) {
  if (input != NULL && input->Release != NULL) call_OrtKernelImpl_Release(input, NULL);
}
