/* EPs that want channels last: which of their nodes are converted (model/layout.c does it). */
#include <string.h>

#include "layout/layout.h"
#include "layout/rewrite.h"

#define OLDEST_OPSET 7 /* as in stock ORT */

OrtStatus* layout_ask(SessionEp* ep) {
  OrtStatus*(ORT_API_CALL * ask)(OrtEp*, OrtEpDataLayout*) =
      GUARD_SLOT(ep->ep, ep->version, GetPreferredDataLayout, 23);
  OrtEpDataLayout layout = OrtEpDataLayout_Default;
  OrtStatus* status = ask != NULL ? call_OrtEp_GetPreferredDataLayout(ep->ep, &layout) : NULL;
  if (status != NULL) return ep_failure(status, "EP '%s': OrtEp::GetPreferredDataLayout failed", ep->name);
  if (layout != OrtEpDataLayout_NCHW && layout != OrtEpDataLayout_NHWC)
    return status_new(ORT_EP_FAIL, "EP '%s': OrtEp::GetPreferredDataLayout gave %d, which is no layout",
                      ep->name, (int)layout);
  ep->wants_channels_last = layout == OrtEpDataLayout_NHWC;
  return NULL;
}

static bool is_listed(const char* const* names, size_t count, const char* name) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(names[i], name) == 0) return true;
  }
  return false;
}

/* What is converted unless the EP says something else: stock ORT's list. */
static bool is_layout_sensitive(const char* op_type) {
  static const char* const names[] = {"AveragePool",   "BatchNormalization",
                                      "Conv",          "ConvTranspose",
                                      "DepthToSpace",  "FusedConv",
                                      "GlobalLpPool",  "GlobalAveragePool",
                                      "GlobalMaxPool", "GridSample",
                                      "LRN",           "InstanceNormalization",
                                      "LpPool",        "MaxPool",
                                      "MaxUnpool",     "QLinearAveragePool",
                                      "QLinearConv",   "QLinearGlobalAveragePool",
                                      "Resize",        "SpaceToDepth"};
  return is_listed(names, sizeof names / sizeof *names, op_type);
}

static OrtStatus* should_convert(const SessionEp* ep, const OrtNode* node, bool* convert) {
  *convert = false;
  if (node->domain[0] != '\0' && strcmp(node->domain, "com.microsoft") != 0) return NULL;
  OrtStatus*(ORT_API_CALL * ask)(OrtEp*, const char*, const char*, OrtEpDataLayout, int*) =
      GUARD_SLOT(ep->ep, ep->version, ShouldConvertDataLayoutForOp, 23);
  int answer = -1;
  OrtStatus* status = ask != NULL ? call_OrtEp_ShouldConvertDataLayoutForOp(
                                        ep->ep, node->domain, node->op_type, OrtEpDataLayout_NHWC, &answer)
                                  : NULL;
  if (status != NULL)
    return ep_failure(status, "EP '%s': OrtEp::ShouldConvertDataLayoutForOp for '%s' failed", ep->name,
                      node->op_type);
  *convert = answer > 0 || (answer < 0 && is_layout_sensitive(node->op_type));
  return NULL;
}

OrtStatus* layout_convert(const OrtEpGraphSupportInfo* info, bool* changed) {
  OrtStatus* status = NULL;
  const OrtGraph* graph = info->graph;
  *changed = false;
  if (model_opset(graph->model, "") < OLDEST_OPSET) return NULL;
  NodeLayout* wanted = mem_calloc(graph->next_node_id, sizeof *wanted);
  if (wanted == NULL) return status_no_memory();
  for (size_t i = 0; i < graph->node_count; i++) {
    const OrtNode* node = graph->nodes[i];
    const Unit* unit = node_unit(node);
    bool convert = false;
    if (unit != NULL && unit->ep != info->ep) continue; /* another EP has seen it as it is */
    if (unit != NULL) TRY_DONE(should_convert(info->ep, node, &convert));
    wanted[node->id] = convert ? NODE_LAYOUT_CHANNELS_LAST : NODE_LAYOUT_ANY;
  }
  TRY_DONE(graph_to_channels_last(info->graph, wanted, changed));
done:
  mem_free(wanted);
  return status;
}

OrtStatus* layout_check(const OrtEpGraphSupportInfo* info) {
  for (size_t i = 0; i < info->graph->node_count; i++) {
    const OrtNode* node = info->graph->nodes[i];
    if (strcmp(node->domain, NHWC_DOMAIN) != 0 || node_unit(node) != NULL) continue;
    return status_new(ORT_FAIL,
                      "EP '%s': node '%s' (%s) was converted to channels last for it (domain " NHWC_DOMAIN
                      "), but OrtEp::GetCapability did not claim it then",
                      info->ep->name, node->name, node->op_type);
  }
  return NULL;
}
