/* budget: how much of its device's memory an EP may be given nodes for. Private to run/. */
#ifndef ORT_ABI_BUDGET_H
#define ORT_ABI_BUDGET_H

#include "run/run.h"

/* Lives while one EP is asked about a model. Zero-initialised: no limit. */
typedef struct EpBudget {
  bool is_limited, is_over;
  uint64_t limit, spent; /* bytes */
  NameMap counted;       /* weights that are in `spent`; keys are the addresses of the tensors */
} EpBudget;

/* Asks the EP (OrtEp::GetAvailableResource) or takes what the session options say. The caller closes it, also
 * after a failure. */
OrtStatus* budget_open(const OrtSession* session, const SessionEp* ep, EpBudget* out);
void budget_close(EpBudget* budget); /* releases */
/* Takes from the budget what the unit's nodes need: their weights, each once, and outputs of known size.
 * *fits is false from the first unit on for which there is not enough left. */
OrtStatus* budget_take(EpBudget* budget, const Unit* unit, bool* fits);

#endif
