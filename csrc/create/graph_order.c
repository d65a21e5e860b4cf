/* The order in which a graph's units can run, where every claimed group is one step: a depth-first walk from
 * the nodes in the model's order, so that the order stays as it is where it can. Linear in nodes and edges.
 */
#include "create/create.h"

/* A step that is being visited: `input` of `nodes[member]` is looked at next. */
typedef struct Visit {
  OrtNode* leader;
  size_t member, input;
} Visit;

typedef struct Walk {
  const OrtGraph* graph;
  uint8_t* marks; /* by node id, of leaders */
  Visit* stack;
  size_t depth;
} Walk;

enum { UNSEEN, OPEN, DONE };

/* The node that stands for a whole unit. */
static OrtNode* leader_of(OrtNode* node) {
  Unit* unit = node_unit(node);
  return unit != NULL ? unit->nodes[0] : node;
}

static OrtValueInfo* input_at(const OrtNode* node, size_t index) {
  return index < node->input_count ? node->inputs[index] : node->implicit_inputs[index - node->input_count];
}

/* The next node of the graph that the visited step needs; NULL: there are no more. */
static OrtNode* next_needed(const OrtGraph* graph, Visit* visit) {
  Unit* unit = node_unit(visit->leader);
  OrtNode* const* members = unit != NULL ? unit->nodes : &visit->leader;
  size_t member_count = unit != NULL ? unit->node_count : 1;
  for (; visit->member < member_count; visit->member++, visit->input = 0) {
    const OrtNode* member = members[visit->member];
    while (visit->input < member->input_count + member->implicit_input_count) {
      const OrtValueInfo* value = input_at(member, visit->input++);
      if (value != NULL && value->producer != NULL && value->graph == graph) return value->producer;
    }
  }
  return NULL;
}

/* The newest group on the cycle that ends on top of the stack and starts at `leader`. */
static Unit* newest_on_cycle(const Walk* walk, const OrtNode* leader) {
  Unit* newest = NULL;
  for (size_t i = walk->depth; i-- > 0;) {
    Unit* unit = node_unit(walk->stack[i].leader);
    if (unit != NULL && unit->node_count > 1 && (newest == NULL || unit->serial > newest->serial))
      newest = unit;
    if (walk->stack[i].leader == leader) break;
  }
  return newest;
}

static void enter(Walk* walk, OrtNode* leader) {
  walk->marks[leader->id] = OPEN;
  walk->stack[walk->depth++] = (Visit){leader, 0, 0};
}

/* Returns the group to blame when it meets a cycle, else NULL. */
static Unit* walk_from(Walk* walk, OrtNode* start, OrtNode** order, size_t* count) {
  enter(walk, start);
  while (walk->depth != 0) {
    Visit* top = &walk->stack[walk->depth - 1];
    OrtNode* needed = next_needed(walk->graph, top);
    if (needed == NULL) {
      walk->marks[top->leader->id] = DONE;
      order[(*count)++] = top->leader;
      walk->depth--;
      continue;
    }
    OrtNode* leader = leader_of(needed);
    if (leader == top->leader) continue;
    if (walk->marks[leader->id] == OPEN) return newest_on_cycle(walk, leader);
    if (walk->marks[leader->id] == UNSEEN) enter(walk, leader);
  }
  return NULL;
}

/* In the graph's order, from the claim's first node to its last: what lies behind a member and outside, and
 * whether a member lies behind that. */
OrtStatus* claim_is_split(const Unit* claim, bool* split) {
  enum { OUTSIDE, MEMBER, BEHIND };
  const OrtGraph* graph = claim->graph;
  uint8_t* marks = mem_calloc(graph->next_node_id, 1);
  if (marks == NULL) return status_no_memory();
  *split = false;
  size_t members = 0;
  for (size_t n = claim->nodes[0]->position; members < claim->node_count && !*split; n++) {
    const OrtNode* node = graph->nodes[n];
    bool reads_member = false, reads_behind = false;
    for (size_t i = 0; i < node->input_count + node->implicit_input_count; i++) {
      const OrtValueInfo* value = input_at(node, i);
      if (value == NULL || value->producer == NULL || value->graph != graph) continue;
      reads_member = reads_member || marks[value->producer->id] == MEMBER;
      reads_behind = reads_behind || marks[value->producer->id] == BEHIND;
    }
    if (node_unit(node) == claim) {
      members++;
      marks[node->id] = MEMBER;
      *split = reads_behind;
    } else if (reads_member || reads_behind) {
      marks[node->id] = BEHIND;
    }
  }
  mem_free(marks);
  return NULL;
}

OrtStatus* graph_order(const OrtGraph* graph, OrtNode** order, size_t* order_count, Unit** cycle) {
  OrtStatus* status = NULL;
  size_t count = 0;
  Unit* blamed = NULL;
  Walk walk = {.graph = graph};
  walk.marks = mem_calloc(graph->next_node_id, 1);
  walk.stack = mem_calloc(graph->node_count, sizeof(Visit));
  if (walk.marks == NULL || walk.stack == NULL) TRY_DONE(status_no_memory());
  for (size_t i = 0; i < graph->node_count && blamed == NULL; i++) {
    OrtNode* leader = leader_of(graph->nodes[i]);
    if (walk.marks[leader->id] == UNSEEN) blamed = walk_from(&walk, leader, order, &count);
  }
  *order_count = count;
  *cycle = blamed;
done:
  mem_free(walk.marks);
  mem_free(walk.stack);
  return status;
}
