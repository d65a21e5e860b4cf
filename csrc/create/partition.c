/* Which EP takes which node. Every EP is asked about every graph, subgraphs first; what it claims is checked
 * before the next one is asked. Nothing is compiled here. */
#include <stdlib.h>
#include <string.h>

#include "api_slots.h"
#include "create/budget.h"
#include "layout/layout.h"

/* ---- What an EP calls while it is asked ---- */

/* copies `nodes`. */
static OrtStatus* add_claim(OrtEpGraphSupportInfo* info, const OrtNode* const* nodes, size_t count,
                            bool is_fused, bool drop_constants, const char* slot) {
  Arena* arena = &info->session->arena;
  for (size_t i = 0; i < count; i++) {
    if (nodes[i] == NULL)
      return status_new(ORT_INVALID_ARGUMENT, "%s: node %zu of %zu is NULL", slot, i, count);
  }
  if (!ARRAY_RESERVE(info->claims, info->capacity, info->count + 1)) return status_no_memory();
  Unit* unit = arena_alloc(arena, sizeof *unit);
  OrtNode** copies = arena_calloc(arena, count, sizeof *copies);
  if (unit == NULL || copies == NULL) return status_no_memory();
  for (size_t i = 0; i < count; i++) copies[i] = node_root(nodes[i]);
  *unit = (Unit){.ep = info->ep,
                 .graph = info->graph,
                 .nodes = copies,
                 .node_count = count,
                 .is_fused = is_fused,
                 .drop_constants = drop_constants,
                 .serial = info->session->claim_count++};
  info->claims[info->count++] = unit;
  return NULL;
}

OrtStatus* ORT_API_CALL
api_EpGraphSupportInfo_AddNodesToFuse(OrtEpGraphSupportInfo* graph_support_info, const OrtNode* const* nodes,
                                      size_t num_nodes, const OrtNodeFusionOptions* node_fusion_options) {
  REQUIRE_ARG(graph_support_info);
  REQUIRE_ARG(nodes);
  if (num_nodes == 0)
    return status_new(ORT_INVALID_ARGUMENT, "EpGraphSupportInfo_AddNodesToFuse: a claim needs a node");
  bool drop_constants = node_fusion_options != NULL && node_fusion_options->drop_constant_initializers;
  return add_claim(graph_support_info, nodes, num_nodes, true, drop_constants,
                   "EpGraphSupportInfo_AddNodesToFuse");
}

OrtStatus* ORT_API_CALL api_EpGraphSupportInfo_AddSingleNode(OrtEpGraphSupportInfo* graph_support_info,
                                                             const OrtNode* node) {
  REQUIRE_ARG(graph_support_info);
  REQUIRE_ARG(node);
  return add_claim(graph_support_info, &node, 1, false, false, "EpGraphSupportInfo_AddSingleNode");
}

/* borrows: the definition lives as long as the session. *out_kernel_def NULL: the EP has no kernel for the
 * node. */
OrtStatus* ORT_API_CALL api_EpGraphSupportInfo_LookUpKernel(OrtEpGraphSupportInfo* graph_support_info,
                                                            const OrtNode* node,
                                                            const OrtKernelDef** out_kernel_def) {
  REQUIRE_ARG(graph_support_info);
  REQUIRE_ARG(node);
  REQUIRE_ARG(out_kernel_def);
  const SessionEp* ep = graph_support_info->ep;
  const KernelEntry* entry = kernel_registry_find(ep->registry, ep->name, node_root(node), NULL);
  *out_kernel_def = entry != NULL ? entry->def : NULL;
  return NULL;
}

/* ---- Checking claims ---- */

#define MOST_NODES_IN_A_WARNING 4

static void warn_refused(const OrtEpGraphSupportInfo* info, OrtNode* const* nodes, size_t count,
                         const char* reason) {
  StrBuf text = {0};
  for (size_t i = 0; i < count && i < MOST_NODES_IN_A_WARNING; i++) {
    if (i != 0) strbuf_append(&text, ", ");
    describe_node(&text, nodes[i]);
  }
  if (count > MOST_NODES_IN_A_WARNING) strbuf_append(&text, " and %zu more", count - MOST_NODES_IN_A_WARNING);
  LOG(&info->session->logger, WARNING, "EP '%s': its claim on %s is refused: %s", info->ep->name,
      text.failed ? "?" : text.text, reason);
  strbuf_release(&text);
}

/* Refuses a claim on a node that another EP has: as a whole, as stock ORT does. False if there is none. */
static bool refuse_taken(const OrtEpGraphSupportInfo* info, const Unit* claim) {
  for (size_t i = 0; i < claim->node_count; i++) {
    const Unit* owner = node_unit(claim->nodes[i]);
    if (owner == NULL) continue;
    StrBuf reason = {0};
    strbuf_append(&reason, "EP '%s' has '%s' already", owner->ep->name, claim->nodes[i]->name);
    warn_refused(info, claim->nodes, claim->node_count,
                 reason.failed ? "another EP has a node of it already" : reason.text);
    strbuf_release(&reason);
    return true;
  }
  return false;
}

/* Why a claim cannot stand, or NULL. `number`: of the claim, from 1; `listed_by`: by node id, the last claim
 * that lists it. */
static const char* claim_fault(const OrtEpGraphSupportInfo* info, const Unit* claim, size_t number,
                               size_t* listed_by) {
  for (size_t i = 0; i < claim->node_count; i++) {
    const OrtNode* node = claim->nodes[i];
    if (node->graph != info->graph) return "a node is not of the graph that the EP was asked about";
    if (listed_by[node->id] == number) return "it lists a node twice";
    const Unit* owner = node_unit(node);
    if (owner != NULL && owner->ep == info->ep) return "the EP has claimed a node of it before";
    listed_by[node->id] = number;
  }
  return NULL;
}

static int compare_positions(const void* a, const void* b) {
  size_t x = (*(OrtNode*const*)a)->position, y = (*(OrtNode*const*)b)->position;
  return (x > y) - (x < y);
}

static void assign(Unit* claim) {
  for (size_t i = 0; i < claim->node_count; i++) {
    claim->nodes[i]->assignment = claim;
    claim->nodes[i]->ep_name = claim->ep->name;
  }
}

static void unassign(Unit* claim) {
  for (size_t i = 0; i < claim->node_count; i++) {
    claim->nodes[i]->assignment = NULL;
    claim->nodes[i]->ep_name = NULL;
  }
}

static void withdraw_claims(const OrtEpGraphSupportInfo* info) {
  for (size_t i = 0; i < info->count; i++) {
    Unit* claim = info->claims[i];
    if (claim->node_count != 0 && node_unit(claim->nodes[0]) == claim) unassign(claim);
  }
}

/* Fusing several nodes may tie the graph into a knot. A claim that does so by itself takes all others of the
 * EP on this graph with it, as in stock ORT; of claims that are in each other's way the newest goes, until
 * the graph can run. */
static OrtStatus* refuse_cycles(const OrtEpGraphSupportInfo* info) {
  OrtStatus* status = NULL;
  OrtNode** order = mem_calloc(info->graph->node_count, sizeof *order);
  if (order == NULL) return status_no_memory();
  for (;;) {
    size_t count;
    Unit* cycle = NULL;
    bool is_split = false;
    TRY_DONE(graph_order(info->graph, order, &count, &cycle));
    if (cycle == NULL) break;
    TRY_DONE(claim_is_split(cycle, &is_split));
    warn_refused(info, cycle->nodes, cycle->node_count,
                 is_split ? "a node outside lies between its nodes: fused, they would wait for each other. "
                            "As in stock ORT, none of its claims on this graph stands"
                          : "fused, its nodes and those of an earlier claim would wait for each other");
    if (is_split) withdraw_claims(info);
    unassign(cycle);
  }
done:
  mem_free(order);
  return status;
}

static OrtStatus* check_claims(const OrtEpGraphSupportInfo* info) {
  if (info->count == 0) return NULL;
  size_t* listed_by = mem_calloc(info->graph->next_node_id, sizeof *listed_by);
  if (listed_by == NULL) return status_no_memory();
  bool fuses = false;
  for (size_t i = 0; i < info->count; i++) {
    Unit* claim = info->claims[i];
    const char* fault = claim_fault(info, claim, i + 1, listed_by);
    if (fault != NULL) {
      warn_refused(info, claim->nodes, claim->node_count, fault);
      continue;
    }
    if (refuse_taken(info, claim)) continue;
    qsort(claim->nodes, claim->node_count, sizeof *claim->nodes, compare_positions);
    assign(claim);
    fuses = fuses || claim->node_count > 1;
  }
  mem_free(listed_by);
  return fuses ? refuse_cycles(info) : NULL;
}

/* Claims from the first one on that does not fit into the EP's memory are left to other EPs. */
static OrtStatus* refuse_beyond_budget(const OrtEpGraphSupportInfo* info, EpBudget* budget) {
  for (size_t i = 0; budget->is_limited && i < info->count; i++) {
    Unit* claim = info->claims[i];
    if (claim->node_count == 0 || node_unit(claim->nodes[0]) != claim) continue;
    bool fits;
    TRY(budget_take(budget, claim, &fits));
    if (fits) continue;
    warn_refused(info, claim->nodes, claim->node_count, "there is no memory left for it on the EP's device");
    unassign(claim);
  }
  return NULL;
}

/* ---- Asking ---- */

static bool is_fused(const OrtNode* node) {
  return node_unit(node) != NULL && node_unit(node)->is_fused;
}

/* Keeps the claims that stand, in the order in which they were made. */
static OrtStatus* keep_units(const OrtEpGraphSupportInfo* info) {
  OrtSession* session = info->session;
  for (size_t i = 0; i < info->count; i++) {
    Unit* unit = info->claims[i];
    if (unit->node_count == 0 || node_unit(unit->nodes[0]) != unit) continue;
    if (!ARRAY_RESERVE(session->units, session->unit_capacity, session->unit_count + 1))
      return status_no_memory();
    session->units[session->unit_count++] = unit;
  }
  return NULL;
}

static OrtStatus* ask_ep(OrtEpGraphSupportInfo* info, EpBudget* budget) {
  AtWork before = at_work_begin("EP", info->ep->name, NULL, NULL);
  OrtStatus* status = call_OrtEp_GetCapability(info->ep->ep, info->graph, info);
  at_work = before;
  if (status != NULL) return ep_failure(status, "EP '%s': OrtEp::GetCapability failed", info->ep->name);
  TRY(check_claims(info));
  return refuse_beyond_budget(info, budget);
}

/* The second time an EP sees what it has claimed the first time, as in stock ORT; nodes that are new are
 * nobody's, and what it does not claim again is free. */
static OrtStatus* ask_again(OrtEpGraphSupportInfo* info, EpBudget* budget) {
  const OrtGraph* graph = info->graph;
  for (size_t i = 0; i < info->count; i++) {
    Unit* claim = info->claims[i];
    bool stands = claim->node_count != 0 && node_unit(claim->nodes[0]) == claim;
    for (size_t k = 0; stands && k < claim->node_count; k++) claim->nodes[k]->assignment = NULL;
  }
  info->count = 0;
  budget->is_over = false;
  OrtStatus* status = ask_ep(info, budget);
  for (size_t i = 0; i < graph->node_count; i++) {
    if (node_unit(graph->nodes[i]) == NULL) graph->nodes[i]->ep_name = NULL;
  }
  return status;
}

/* Converts the claimed nodes if the EP wants channels last, and asks again about what became of the graph.
 * They are no other EP's then: those that there is no memory for stay as they are. */
static OrtStatus* ask_with_layout(OrtEpGraphSupportInfo* info, EpBudget* budget) {
  bool changed = false;
  TRY(ask_ep(info, budget));
  if (!info->ep->wants_channels_last) return NULL;
  TRY(layout_convert(info, &changed));
  if (!changed) return NULL;
  TRY(ask_again(info, budget));
  return layout_check(info);
}

static OrtStatus* ask_about_graph(OrtSession* session, SessionEp* ep, OrtGraph* graph, EpBudget* budget) {
  OrtStatus* status = NULL;
  bool is_open = false;
  OrtEpGraphSupportInfo info = {.session = session, .ep = ep, .graph = graph};
  for (size_t i = 0; i < graph->node_count; i++) {
    OrtNode* node = graph->nodes[i];
    is_open = is_open || node_unit(node) == NULL;
    /* What lies inside a fused node is its EP's business. */
    for (size_t k = 0; k < node->subgraph_count && !is_fused(node); k++)
      TRY(ask_about_graph(session, ep, node->subgraphs[k], budget));
  }
  if (!is_open) return NULL;
  TRY_DONE(ask_with_layout(&info, budget));
  TRY_DONE(keep_units(&info));
done:
  mem_free(info.claims);
  return status;
}

/* True if a node that encloses the unit's graph is fused: the unit's claim is void, its nodes run inside
 * that. */
static bool is_void(const Unit* unit) {
  for (const OrtNode* node = unit->graph->parent_node; node != NULL; node = node->graph->parent_node) {
    if (is_fused(node)) return true;
  }
  return false;
}

static void drop_void_units(OrtSession* session) {
  size_t kept = 0;
  for (size_t i = 0; i < session->unit_count; i++) {
    if (!is_void(session->units[i])) session->units[kept++] = session->units[i];
  }
  session->unit_count = kept;
}

static OrtStatus* ask_about_model(OrtSession* session, SessionEp* ep) {
  EpBudget budget = {.is_limited = false};
  OrtStatus* status = budget_open(session, ep, &budget);
  if (status == NULL) status = ask_about_graph(session, ep, session->model->graph, &budget);
  budget_close(&budget);
  return status;
}

static bool has_open_node(const OrtGraph* graph) {
  for (size_t i = 0; i < graph->node_count; i++) {
    const OrtNode* node = graph->nodes[i];
    if (node_unit(node) == NULL) return true;
    for (size_t k = 0; k < node->subgraph_count && !node_unit(node)->is_fused; k++) {
      if (has_open_node(node->subgraphs[k])) return true;
    }
  }
  return false;
}

OrtStatus* partition_model(OrtSession* session) {
  bool joined = false;
  for (size_t i = 0; i < session->ep_count; i++) TRY(ask_about_model(session, &session->eps[i]));
  if (has_open_node(session->model->graph)) TRY(session_add_last_ep(session, &joined));
  if (joined) TRY(ask_about_model(session, &session->eps[session->ep_count - 1]));
  TRY(refuse_unclaimed(session));
  TRY(note_not_taken(session));
  drop_void_units(session);
  return NULL;
}
