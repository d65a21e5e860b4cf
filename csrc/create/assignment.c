/* What Session_GetEpGraphAssignmentInfo shows: which EP got which nodes of the model. */
#include <string.h>

#include "api_slots.h"
#include "create/create.h"

struct OrtEpAssignedNode {
  const char *name, *domain, *op_type; /* borrowed from the session's model */
};

struct OrtEpAssignedSubgraph {
  const char* ep_name;
  const OrtEpAssignedNode* const* nodes;
  size_t node_count;
};

static OrtStatus* record_unit(Arena* arena, const Unit* unit, const OrtEpAssignedSubgraph** out) {
  OrtEpAssignedSubgraph* subgraph = arena_alloc(arena, sizeof *subgraph);
  OrtEpAssignedNode* nodes = arena_calloc(arena, unit->node_count, sizeof *nodes);
  const OrtEpAssignedNode** pointers = arena_calloc(arena, unit->node_count, sizeof *pointers);
  if (subgraph == NULL || nodes == NULL || pointers == NULL) return status_no_memory();
  for (size_t i = 0; i < unit->node_count; i++) {
    const OrtNode* node = unit->nodes[i];
    nodes[i] = (OrtEpAssignedNode){node->name, node->domain, node->op_type};
    pointers[i] = &nodes[i];
  }
  *subgraph = (OrtEpAssignedSubgraph){unit->ep->name, pointers, unit->node_count};
  *out = subgraph;
  return NULL;
}

OrtStatus* assignment_record(OrtSession* session) {
  AssignmentInfo* info = &session->assignment;
  info->subgraphs = arena_calloc(&session->arena, session->unit_count, sizeof *info->subgraphs);
  if (info->subgraphs == NULL) return status_no_memory();
  for (size_t i = 0; i < session->unit_count; i++)
    TRY(record_unit(&session->arena, session->units[i], &info->subgraphs[i]));
  info->count = session->unit_count;
  return NULL;
}

/* borrows: as long as the session. */
OrtStatus* ORT_API_CALL api_Session_GetEpGraphAssignmentInfo(
    const OrtSession* session, const OrtEpAssignedSubgraph* const** ep_subgraphs, size_t* num_ep_subgraphs) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(ep_subgraphs);
  REQUIRE_ARG(num_ep_subgraphs);
  if (!session->records_assignment)
    return status_new(
        ORT_FAIL,
        "Session_GetEpGraphAssignmentInfo: set session.record_ep_graph_assignment_info to 1 before the "
        "session is created");
  *ep_subgraphs = session->assignment.subgraphs;
  *num_ep_subgraphs = session->assignment.count;
  return NULL;
}

/* borrows: as long as the session. */
OrtStatus* ORT_API_CALL api_EpAssignedSubgraph_GetEpName(const OrtEpAssignedSubgraph* ep_subgraph,
                                                         const char** out) {
  REQUIRE_ARG(ep_subgraph);
  REQUIRE_ARG(out);
  *out = ep_subgraph->ep_name;
  return NULL;
}

/* borrows: as long as the session. */
OrtStatus* ORT_API_CALL api_EpAssignedSubgraph_GetNodes(const OrtEpAssignedSubgraph* ep_subgraph,
                                                        const OrtEpAssignedNode* const** ep_nodes,
                                                        size_t* num_ep_nodes) {
  REQUIRE_ARG(ep_subgraph);
  REQUIRE_ARG(ep_nodes);
  REQUIRE_ARG(num_ep_nodes);
  *ep_nodes = ep_subgraph->nodes;
  *num_ep_nodes = ep_subgraph->node_count;
  return NULL;
}

/* borrows: as long as the session. */
OrtStatus* ORT_API_CALL api_EpAssignedNode_GetName(const OrtEpAssignedNode* ep_node, const char** out) {
  REQUIRE_ARG(ep_node);
  REQUIRE_ARG(out);
  *out = ep_node->name;
  return NULL;
}

/* borrows: as long as the session. */
OrtStatus* ORT_API_CALL api_EpAssignedNode_GetDomain(const OrtEpAssignedNode* ep_node, const char** out) {
  REQUIRE_ARG(ep_node);
  REQUIRE_ARG(out);
  *out = ep_node->domain;
  return NULL;
}

/* borrows: as long as the session. */
OrtStatus* ORT_API_CALL api_EpAssignedNode_GetOperatorType(const OrtEpAssignedNode* ep_node,
                                                           const char** out) {
  REQUIRE_ARG(ep_node);
  REQUIRE_ARG(out);
  *out = ep_node->op_type;
  return NULL;
}
