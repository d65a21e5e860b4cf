/* From claims to something that runs: fused nodes are compiled, states and kernels made. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api_slots.h"
#include "create/create.h"

/* ---- Fused nodes ---- */

/* A node that stands for a claimed group. Its inputs and outputs are the view's, as the source graph has
 * them; it lives as long as the session, since EPs keep it. */
static OrtStatus* make_fused_node(OrtSession* session, Unit* unit, const OrtGraph* view, char* name) {
  Arena* arena = &session->arena;
  OrtNode* node = arena_alloc(arena, sizeof *node);
  OrtValueInfo** inputs = arena_calloc(arena, view->input_count, sizeof *inputs);
  OrtValueInfo** outputs = arena_calloc(arena, view->output_count, sizeof *outputs);
  if (node == NULL || inputs == NULL || outputs == NULL) return status_no_memory();
  for (size_t i = 0; i < view->input_count; i++) inputs[i] = view->inputs[i]->origin;
  for (size_t i = 0; i < view->output_count; i++) outputs[i] = view->outputs[i]->origin;
  *node = (OrtNode){.id = unit->graph->next_node_id++,
                    .name = name,
                    .op_type = name,
                    .domain = (char*)unit->ep->name,
                    .since_version = 1,
                    .graph = unit->graph,
                    .inputs = inputs,
                    .input_count = view->input_count,
                    .outputs = outputs,
                    .output_count = view->output_count,
                    .ep_name = unit->ep->name};
  unit->node = node;
  return NULL;
}

/* `view`: gives (caller releases with graph_view_release). */
static OrtStatus* fuse(OrtSession* session, Unit* unit, OrtGraph** view) {
  size_t room = strlen(unit->ep->name) + 48;
  char* name = arena_alloc(&session->arena, room);
  if (name == NULL) return status_no_memory();
  snprintf(name, room, "%s_%" PRIu64 "_%zu", unit->ep->name, session->model_hash, unit->serial);
  TRY(graph_view_new(unit->graph, unit->nodes, unit->node_count, name, unit->drop_constants, view));
  unit->context.node_name = name;
  return make_fused_node(session, unit, *view, name);
}

/* What Compile is called with; the arrays are `count` long. */
typedef struct Batch {
  Unit* const* units;
  size_t count;
  const OrtGraph** views;
  const OrtNode** nodes;
  OrtNodeComputeInfo** infos;
  OrtNode** context_nodes;
} Batch;

static OrtStatus* batch_new(OrtSession* session, Batch* batch) {
  SessionEp* ep = batch->units[0]->ep;
  batch->views = mem_calloc(batch->count, sizeof(void*));
  batch->nodes = mem_calloc(batch->count, sizeof(void*));
  batch->infos = mem_calloc(batch->count, sizeof(void*));
  batch->context_nodes = mem_calloc(batch->count, sizeof(void*));
  bool has_room =
      ARRAY_RESERVE(ep->compute_infos, ep->compute_info_capacity, ep->compute_info_count + batch->count);
  if (batch->views == NULL || batch->nodes == NULL || batch->infos == NULL || batch->context_nodes == NULL ||
      !has_room)
    return status_no_memory();
  for (size_t i = 0; i < batch->count; i++) {
    OrtGraph* view = NULL;
    OrtStatus* status = fuse(session, batch->units[i], &view);
    batch->views[i] = view;
    batch->nodes[i] = batch->units[i]->node;
    if (status != NULL) return status;
  }
  return NULL;
}

/* Nothing of what Compile was given but the fused nodes outlives the call. */
static void batch_release(Batch* batch) {
  for (size_t i = 0; i < batch->count && batch->views != NULL; i++)
    graph_view_release((OrtGraph*)batch->views[i]);
  for (size_t i = 0; i < batch->count && batch->context_nodes != NULL; i++)
    api_ReleaseNode(batch->context_nodes[i]);
  mem_free(batch->views);
  mem_free(batch->nodes);
  mem_free(batch->infos);
  mem_free(batch->context_nodes);
}

/* Calls Compile for groups of one EP and one graph. Whatever it filled in is the session's to release, also
 * if it failed half way. */
static OrtStatus* compile_batch(OrtSession* session, Unit* const* units, size_t count) {
  OrtStatus* status = NULL;
  SessionEp* ep = units[0]->ep;
  Batch batch = {.units = units, .count = count};
  OrtStatus*(ORT_API_CALL * compile)(OrtEp*, const OrtGraph**, const OrtNode**, size_t, OrtNodeComputeInfo**,
                                     OrtNode**) = GUARD_SLOT(ep->ep, ep->version, Compile, 23);
  if (compile == NULL)
    return status_new(ORT_EP_FAIL, "EP '%s' claimed nodes to fuse, but its OrtEp::Compile is NULL", ep->name);
  TRY_DONE(batch_new(session, &batch));
  AtWork before = at_work_begin("EP", ep->name, count == 1 ? units[0]->nodes[0]->name : NULL,
                                units[0]->nodes[0]->op_type);
  status = call_OrtEp_Compile(ep->ep, batch.views, batch.nodes, count, batch.infos, batch.context_nodes);
  at_work = before;
  for (size_t i = 0; i < count; i++) {
    units[i]->compute = batch.infos[i];
    if (batch.infos[i] != NULL) ep->compute_infos[ep->compute_info_count++] = batch.infos[i];
  }
  if (status != NULL) {
    status = ep_failure(status, "EP '%s': OrtEp::Compile of %zu fused node%s ('%s'%s) failed", ep->name,
                        count, count == 1 ? "" : "s", units[0]->node->name, count == 1 ? "" : " and others");
    goto done;
  }
  for (size_t i = 0; i < count; i++) {
    const Unit* unit = units[i];
    if (unit->compute == NULL)
      TRY_DONE(status_new(ORT_EP_FAIL,
                          "EP '%s': OrtEp::Compile said OK and gave no OrtNodeComputeInfo for '%s'", ep->name,
                          unit->node->name));
    TRY_DONE(guard_node_compute_info(unit->compute, ep->name, unit->node->name));
    guard_version(unit->compute->ort_version_supported, OLDEST_NODE_COMPUTE_INFO, "OrtNodeComputeInfo",
                  ep->name);
  }
done:
  batch_release(&batch);
  return status;
}

static OrtStatus* create_state(Unit* unit) {
  OrtStatus* status =
      call_OrtNodeComputeInfo_CreateState(unit->compute, &unit->context, &unit->compute_state);
  if (status == NULL) return NULL;
  unit->compute_state = NULL; /* a failed call has given nothing */
  return ep_failure(status, "EP '%s': OrtNodeComputeInfo::CreateState of '%s' failed", unit->ep->name,
                    unit->node->name);
}

/* ---- Kernels ---- */

static OrtStatus* find_kernel(Unit* unit) {
  OrtStatus* status = NULL;
  StrBuf text = {0}, why = {0};
  unit->kernel_entry = kernel_registry_find(unit->ep->registry, unit->ep->name, unit->node, &why);
  if (unit->kernel_entry == NULL) {
    describe_node(&text, unit->node);
    status = status_new(ORT_NOT_IMPLEMENTED, "EP '%s' claimed node %s, but it has no kernel for it: it %s",
                        unit->ep->name, text.failed ? "?" : text.text,
                        why.failed || why.text == NULL ? "?" : why.text);
  }
  strbuf_release(&text);
  strbuf_release(&why);
  return status;
}

/* takes `status` (a plugin's failure), gives it with EP, node and op in front. */
static OrtStatus* kernel_failure(OrtStatus* status, const Unit* unit) {
  StrBuf text = {0};
  describe_node(&text, unit->node);
  status = ep_failure(status, "EP '%s': its kernel for node %s could not be created", unit->ep->name,
                      text.failed ? "?" : text.text);
  strbuf_release(&text);
  return status;
}

static OrtStatus* create_kernel(OrtSession* session, Unit* unit) {
  TRY(find_kernel(unit));
  TRY(upload_constants_of(session, unit)); /* kernels may keep what KernelInfoGetConstantInput_tensor gives */
  unit->kernel_info = arena_alloc(&session->arena, sizeof *unit->kernel_info);
  if (unit->kernel_info == NULL) return status_no_memory();
  *unit->kernel_info = (OrtKernelInfo){.session = session, .ep = unit->ep, .node = unit->node};
  const KernelEntry* entry = unit->kernel_entry;
  OrtKernelImpl* kernel = NULL;
  OrtStatus* status =
      call_OrtKernelCreateFunc(entry->create, entry->create_state, unit->kernel_info, &kernel);
  if (status != NULL) return kernel_failure(status, unit);
  if (kernel == NULL)
    return kernel_failure(
        status_new(ORT_EP_FAIL, "its OrtKernelCreateFunc said OK and gave no OrtKernelImpl"), unit);
  status = guard_kernel_impl(kernel, unit->ep->name, unit->node->name);
  if (status != NULL) {
    if (kernel->Release != NULL) call_OrtKernelImpl_Release(kernel, NULL);
    return status;
  }
  guard_version(kernel->ort_version_supported, OLDEST_KERNEL_IMPL, "OrtKernelImpl", unit->ep->name);
  unit->kernel = kernel;
  return NULL;
}

/* ---- All of them ---- */

static AtWork unit_begin(const Unit* unit) {
  return at_work_begin("EP", unit->ep->name, unit->nodes[0]->name, unit->nodes[0]->op_type);
}

OrtStatus* compile_units(OrtSession* session) {
  for (size_t i = 0; i < session->unit_count; i++) {
    Unit* unit = session->units[i];
    if (unit->is_fused) continue;
    unit->node = unit->nodes[0];
    unit->context.node_name = unit->node->name;
  }
  /* Units are in the order of EPs, then graphs: those of one call follow each other but for single nodes. */
  Unit** batch = mem_calloc(session->unit_count, sizeof *batch);
  if (batch == NULL) return status_no_memory();
  OrtStatus* status = NULL;
  size_t count = 0;
  for (size_t i = 0; i < session->unit_count; i++) {
    Unit* unit = session->units[i];
    if (!unit->is_fused) continue;
    if (count != 0 && (batch[0]->ep != unit->ep || batch[0]->graph != unit->graph)) {
      TRY_DONE(compile_batch(session, batch, count));
      count = 0;
    }
    batch[count++] = unit;
  }
  if (count != 0) TRY_DONE(compile_batch(session, batch, count));
  for (size_t i = 0; i < session->unit_count; i++) {
    Unit* unit = session->units[i];
    AtWork before = unit_begin(unit);
    status = unit->is_fused ? create_state(unit) : create_kernel(session, unit);
    at_work = before;
    if (status != NULL) goto done;
  }
done:
  mem_free(batch);
  return status;
}

void unit_close(Unit* unit) {
  if (unit->kernel == NULL && unit->compute_state == NULL) return;
  AtWork before = unit_begin(unit);
  if (unit->kernel != NULL) call_OrtKernelImpl_Release(unit->kernel, NULL);
  if (unit->compute_state != NULL)
    call_OrtNodeComputeInfo_ReleaseState(unit->compute, unit->compute_state, NULL);
  at_work = before;
  unit->kernel = NULL;
  unit->compute_state = NULL;
}
