/* create: from a model and EPs to a session that runs. The EPs are made and asked (partition), what they
 * claim is compiled, weights are packed and placed, the plan is drawn up. */
#ifndef ORT_ABI_CREATE_H
#define ORT_ABI_CREATE_H

#include "session/session.h"

/* ---- session_ep.c: an EP of one session ---- */

/* Makes the EP of `devices` (all of one factory; borrowed from the environment) and asks it for its kernels.
 * On failure there is nothing to close. */
OrtStatus* session_ep_open(OrtSession* session, const OrtEpDevice* const* devices, size_t device_count,
                           SessionEp* out);
void session_ep_close(SessionEp* ep); /* releases */

/* ---- placement.c: the memories of a session ---- */

/* Adds the host's place, before any other. */
void place_host(OrtSession* session);
/* Finds or adds the place of an EP that was just opened, and adds its stream. */
OrtStatus* place_ep(OrtSession* session, SessionEp* ep);
void places_close(OrtSession* session); /* releases the allocators, before the EPs close */
/* Puts initializers where a kernel that is to be created reads them. */
OrtStatus* upload_constants_of(OrtSession* session, const Unit* unit);
/* Puts initializers where the plans read them, and releases those of the host that none reads there. */
OrtStatus* upload_constants(OrtSession* session);

/* ---- custom_kernel.c: operators of custom op domains ---- */

/* Adds the operators of the options' domains to the model, and their kernels to the registries of the EPs
 * that they are for, behind the EPs' own. */
OrtStatus* session_add_custom_ops(OrtSession* session);
/* Says of a custom operator's node, which nobody took, whose it would be. */
void describe_custom_op(StrBuf* text, const OrtSession* session, const OrtNode* node);

/* ---- partition.c: which EP takes which node ---- */

/* Asks the session's EPs in order about every graph, subgraphs first, and sets OrtNode::assignment and
 * ep_name. When nodes are left, the last EP of the options joins the session and is asked. */
OrtStatus* partition_model(OrtSession* session);

/* ---- not_taken.c: which nodes an EP did not take, and why ---- */

/* An error that lists the nodes that nobody takes, in subgraphs too, and why not. */
OrtStatus* refuse_unclaimed(const OrtSession* session);
/* Logs (if the session's log is verbose) and records (if it is to) what EPs left to those behind them. */
OrtStatus* note_not_taken(OrtSession* session);

/* ---- graph_order.c ---- */

/* The order in which `graph`'s units (and nodes without one) can run: `order` gets the first node of each.
 * *cycle: NULL, or the newest claim of several nodes on a cycle (then `order` is not complete). `order` has
 * room for all nodes of the graph. */
OrtStatus* graph_order(const OrtGraph* graph, OrtNode** order, size_t* order_count, Unit** cycle);

/* True if a node outside lies between nodes of the claim, which has them and lists them in the graph's
 * order: they cannot be fused, whatever else is claimed. */
OrtStatus* claim_is_split(const Unit* claim, bool* split);

/* ---- compile.c: from claims to something that runs ---- */

/* Compiles the claimed groups, creates states and kernels. Errors name EP, node and op. */
OrtStatus* compile_units(OrtSession* session);
void unit_close(Unit* unit); /* releases state and kernel */

/* ---- prepack.c ---- */

/* Lets kernels pack their constant inputs, and releases initializers that neither they nor fused nodes read
 * after that. */
OrtStatus* prepack_weights(OrtSession* session);

/* ---- plan.c ---- */

/* Plans the main graph and, before it, the subgraphs that kernels run. */
OrtStatus* plan_build(OrtSession* session);

/* ---- plan_order.c ---- */

/* Fills in Step::waits and notifications, and Slot::is_held: what work on streams needs to be in order. */
OrtStatus* plan_order(OrtSession* session, Plan* plan);

/* ---- assignment.c: what Session_GetEpGraphAssignmentInfo shows ---- */

OrtStatus* assignment_record(OrtSession* session);

/* ---- session.c ---- */

/* Opens the last EP of the options as another EP of the session; *added is false if there is none that is
 * new. */
OrtStatus* session_add_last_ep(OrtSession* session, bool* added);

/* ---- session_model.c: the user's changes to a model before EPs see it ---- */

/* Free-dimension overrides of the session options. An error if they replace initializers that the model does
 * not have. */
OrtStatus* session_adapt_model(OrtSession* session);

#endif
