/* Memory budgets of EPs. As in stock ORT they are asked for, and kept, only when the session options have the
 * entry below: "<limit in KB>,<file>". Without a limit the EP says what it has; without a file of what nodes
 * need (node_stats.c) that is estimated from the model. */
#include "create/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_KEY "session.resource_cuda_partitioning_settings"

/* Stock ORT's: what an estimate cannot see is half of what it sees. */
#define ESTIMATE_NUMERATOR   3
#define ESTIMATE_DENOMINATOR 2

/* "4096,stats.csv" -> 4194304 bytes and "stats.csv"; *is_given is false for ",stats.csv". */
static OrtStatus* read_setting(const char* setting, uint64_t* limit, bool* is_given, const char** file) {
  char* end = NULL;
  errno = 0;
  unsigned long long kilobytes = strtoull(setting, &end, 10);
  *is_given = end != setting;
  if (setting[0] == '-' || *end != ',' || strchr(end + 1, ',') != NULL || errno != 0 ||
      kilobytes > UINT64_MAX / 1024)
    return status_new(ORT_INVALID_ARGUMENT,
                      "session option " CONFIG_KEY
                      " is '%s', and not a number of kilobytes, a comma and the name of a file (both may be "
                      "left out)",
                      setting);
  *limit = kilobytes * 1024;
  *file = end + 1;
  return NULL;
}

OrtStatus* budget_open(const OrtSession* session, const SessionEp* ep, EpBudget* out) {
  const char* setting = session_options_config(session->options, CONFIG_KEY, "");
  OrtStatus*(ORT_API_CALL * get)(const OrtEp*, OrtResourceCount*) =
      GUARD_SLOT(ep->ep, ep->version, GetAvailableResource, 26);
  if (setting[0] == '\0' || get == NULL) return NULL;
  const char* file = NULL;
  TRY(read_setting(setting, &out->limit, &out->is_limited, &file));
  out->has_stats = file[0] != '\0';
  if (out->has_stats) {
    OrtStatus* status = node_stats_read(session->model, file, &out->stats);
    if (status != NULL) return status_wrap(status, "session option " CONFIG_KEY " is '%s'", setting);
  }
  if (out->is_limited) return NULL;
  OrtResourceCount available = {.kind = OrtResourceCountKind_None};
  OrtStatus* status = call_OrtEp_GetAvailableResource(ep->ep, &available);
  if (status != NULL) return ep_failure(status, "EP '%s': OrtEp::GetAvailableResource failed", ep->name);
  out->is_limited = available.kind == OrtResourceCountKind_TotalBytes;
  out->limit = available.value.total_bytes;
  return NULL;
}

void budget_close(EpBudget* budget) {
  name_map_release(&budget->counted);
  node_stats_close(&budget->stats);
}

static uint64_t add(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Counts a weight once. False when out of memory. */
static bool count_weight(EpBudget* budget, const OrtValueInfo* value, uint64_t* needed) {
  const OrtValueInfo* root = value_root(value);
  if (root->initializer == NULL || !root->is_constant) return true;
  const char* key = (const char*)&root->initializer; /* the address of the tensor, where it stays */
  if (name_map_get_n(&budget->counted, key, sizeof root->initializer) != NULL) return true;
  *needed = add(*needed, root->initializer->size_bytes);
  return name_map_put_n(&budget->counted, key, sizeof root->initializer, root->initializer);
}

static uint64_t output_size(const OrtValueInfo* value) {
  if (value == NULL || value->type == NULL || value->type->kind != ONNX_TYPE_TENSOR) return 0;
  const OrtTensorTypeAndShapeInfo* tensor = value->type->tensor;
  if (!tensor->has_shape) return 0;
  uint64_t bits = element_type_bits(tensor->element_type);
  for (size_t i = 0; i < tensor->rank; i++) {
    if (tensor->dims[i] < 0) return 0;
    if (tensor->dims[i] != 0 && bits > UINT64_MAX / (uint64_t)tensor->dims[i]) return UINT64_MAX;
    bits *= (uint64_t)tensor->dims[i];
  }
  return bits / 8 + (bits % 8 != 0);
}

/* Weights, each once, and outputs of known size. False when out of memory. */
static bool estimate_node(EpBudget* budget, const OrtNode* node, uint64_t* out) {
  uint64_t needed = 0;
  for (size_t i = 0; i < node->input_count; i++) {
    if (node->inputs[i] != NULL && !count_weight(budget, node->inputs[i], &needed)) return false;
  }
  for (size_t i = 0; i < node->implicit_input_count; i++) {
    if (!count_weight(budget, node->implicit_inputs[i], &needed)) return false;
  }
  for (size_t i = 0; i < node->output_count; i++) needed = add(needed, output_size(node->outputs[i]));
  *out = needed > UINT64_MAX / ESTIMATE_NUMERATOR ? UINT64_MAX
                                                  : needed * ESTIMATE_NUMERATOR / ESTIMATE_DENOMINATOR;
  return true;
}

OrtStatus* budget_take(EpBudget* budget, const Unit* unit, bool* fits) {
  uint64_t needed = 0;
  bool is_paid = true;
  for (size_t i = 0; budget->is_limited && i < unit->node_count; i++) {
    uint64_t bytes = 0;
    if (unit->nodes[i]->paid_by == unit->ep) continue;
    is_paid = false;
    if (budget->is_over) break;
    bool ok = budget->has_stats ? node_stats_find(&budget->stats, unit->nodes[i], &bytes)
                                : estimate_node(budget, unit->nodes[i], &bytes);
    if (!ok) return status_no_memory();
    needed = add(needed, bytes);
  }
  *fits = true;
  if (is_paid) return NULL;
  budget->is_over = budget->is_over || add(budget->spent, needed) > budget->limit;
  *fits = !budget->is_over;
  if (budget->is_over) return NULL;
  budget->spent += needed;
  for (size_t i = 0; i < unit->node_count; i++) unit->nodes[i]->paid_by = unit->ep;
  return NULL;
}
