/* budget: how much of its device's memory an EP may be given nodes for. Private to run/. */
#ifndef ORT_ABI_BUDGET_H
#define ORT_ABI_BUDGET_H

#include "create/create.h"

/* ---- node_stats.c ---- */

/* What stock ORT recorded of the memory that nodes need. Zero-initialised: nothing. */
typedef struct NodeStats {
  char* text;    /* the file */
  NameMap bytes; /* name of a node in the file -> uint64_t */
  Arena arena;
} NodeStats;
/* Reads a file of stock ORT's; relative names start at the model's folder. The caller closes it, also after a
 * failure. */
OrtStatus* node_stats_read(const OrtModel* model, const char* file, NodeStats* out);
void node_stats_close(NodeStats* stats); /* releases */
/* Bytes that the node needs; 0 if the file does not know it. False when out of memory. */
bool node_stats_find(const NodeStats* stats, const OrtNode* node, uint64_t* bytes);

/* ---- budget.c ---- */

/* Lives while one EP is asked about a model. Zero-initialised: no limit. */
typedef struct EpBudget {
  bool is_limited, is_over;
  bool has_stats;
  NodeStats stats;
  uint64_t limit, spent; /* bytes */
  NameMap counted;       /* weights that are in `spent`; keys are the addresses of the tensors */
} EpBudget;

/* Asks the EP (OrtEp::GetAvailableResource) or takes what the session options say. The caller closes it, also
 * after a failure. */
OrtStatus* budget_open(const OrtSession* session, const SessionEp* ep, EpBudget* out);
void budget_close(EpBudget* budget); /* releases */
/* Takes from the budget what the unit's nodes need, each once, however often the EP claims it. *fits is false
 * from the first unit on for which there is not enough left, until `is_over` is set back. */
OrtStatus* budget_take(EpBudget* budget, const Unit* unit, bool* fits);

#endif
