/* layout: EPs that want channels last. Their nodes are converted, with as few Transposes as can be. Nothing
 * here runs in a session without such EPs. */
#ifndef ORT_ABI_LAYOUT_H
#define ORT_ABI_LAYOUT_H

#include "session/session.h"

/* ---- layout_ep.c ---- */

/* Asks the EP which layout it prefers. */
OrtStatus* layout_ask(SessionEp* ep);
/* Converts the nodes that `info->ep` has claimed and wants with channels last. *changed: the claims are void,
 * the EP must be asked about the graph again. */
OrtStatus* layout_convert(const OrtEpGraphSupportInfo* info, bool* changed);
/* An error if the EP did not claim, the second time, a node that was converted for it. */
OrtStatus* layout_check(const OrtEpGraphSupportInfo* info);

#endif
