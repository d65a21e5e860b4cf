/* Views: a part of a graph as a graph of its own. Made for Compile and by Graph_GetGraphView. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

/* Nodes of the source in its order: what a view costs depends on the view, not on the source. */
typedef struct NodeSet {
  const OrtGraph* source;
  OrtNode** nodes;
  size_t count;
} NodeSet;

static bool node_set_has(const NodeSet* set, const OrtNode* node) {
  if (node == NULL || node->graph != set->source) return false;
  size_t low = 0, high = set->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (set->nodes[middle] == node) return true;
    if (set->nodes[middle]->position < node->position)
      low = middle + 1;
    else
      high = middle;
  }
  return false;
}

static int compare_positions(const void* a, const void* b) {
  size_t x = (*(OrtNode*const*)a)->position, y = (*(OrtNode*const*)b)->position;
  return (x > y) - (x < y);
}

static OrtStatus* refuse_node(const NodeSet* set, const OrtNode* node, const char* format) {
  char* text = node_text(node);
  OrtStatus* status = status_new(ORT_INVALID_ARGUMENT, "%s %s graph '%s'", text != NULL ? text : "a node",
                                 format, set->source->name);
  mem_free(text);
  return status;
}

static OrtStatus* node_set_fill(NodeSet* set, OrtNode* const* nodes, size_t count) {
  set->nodes = mem_calloc(count, sizeof *set->nodes);
  if (set->nodes == NULL) return status_no_memory();
  for (size_t i = 0; i < count; i++) {
    if (nodes[i] == NULL) return status_new(ORT_INVALID_ARGUMENT, "node %zu of the view is NULL", i);
    if (nodes[i]->graph != set->source) return refuse_node(set, nodes[i], "is not of");
    set->nodes[i] = nodes[i];
  }
  set->count = count;
  qsort(set->nodes, count, sizeof *set->nodes, compare_positions);
  for (size_t i = 1; i < count; i++) {
    if (set->nodes[i] == set->nodes[i - 1]) return refuse_node(set, set->nodes[i], "is twice in a view of");
  }
  return NULL;
}

/* The view's own value for one of the source's. */
static OrtStatus* view_value(OrtGraph* view, OrtValueInfo* origin, OrtValueInfo** out) {
  OrtValueInfo* value = name_map_get(&view->values, origin->name);
  if (value == NULL) {
    value = arena_alloc(&view->view_arena, sizeof *value);
    if (value == NULL || !name_map_put(&view->values, origin->name, value)) return status_no_memory();
    *value = *origin;
    value->graph = view;
    value->origin = origin;
    value->producer = NULL;
    value->consumers = NULL;
    value->consumer_count = 0;
    value->is_graph_input = value->is_graph_output = false;
    value->slot = -1;
  }
  *out = value;
  return NULL;
}

static OrtStatus* view_values(OrtGraph* view, OrtValueInfo* const* origins, size_t count,
                              OrtValueInfo*** out) {
  OrtValueInfo** values = arena_calloc(&view->view_arena, count, sizeof(OrtValueInfo*));
  if (values == NULL) return status_no_memory();
  for (size_t i = 0; i < count; i++) {
    if (origins[i] != NULL) TRY(view_value(view, origins[i], &values[i]));
  }
  *out = values;
  return NULL;
}

static OrtStatus* view_node(OrtGraph* view, OrtNode* origin, OrtNode** out) {
  OrtNode* node = arena_alloc(&view->view_arena, sizeof *node);
  if (node == NULL) return status_no_memory();
  *node = *origin;
  node->origin = origin;
  node->graph = view;
  TRY(view_values(view, origin->inputs, origin->input_count, &node->inputs));
  TRY(view_values(view, origin->implicit_inputs, origin->implicit_input_count, &node->implicit_inputs));
  TRY(view_values(view, origin->outputs, origin->output_count, &node->outputs));
  for (size_t i = 0; i < node->output_count; i++) {
    if (node->outputs[i] != NULL) node->outputs[i]->producer = node;
  }
  *out = node;
  return NULL;
}

/* Lists one value that a node reads: as input, initializer, captured value. `slot` marks those seen before.
 */
static void list_used_value(OrtGraph* view, OrtValueInfo* value, const NodeSet* inside, bool drop_constants) {
  if (value == NULL || value->slot == 0 || node_set_has(inside, value->origin->producer)) return;
  value->slot = 0;
  if (value->outer != NULL) view->captured[view->captured_count++] = value;
  if (value->initializer != NULL && value->outer == NULL)
    view->initializers[view->initializer_count++] = value;
  if (drop_constants && value->is_constant) return;
  value->is_graph_input = true;
  view->inputs[view->input_count++] = value;
}

static bool is_used_outside(const OrtValueInfo* origin, const NodeSet* inside) {
  if (origin->is_graph_output) return true;
  for (size_t i = 0; i < origin->consumer_count; i++) {
    if (!node_set_has(inside, origin->consumers[i].node)) return true;
  }
  return false;
}

/* Inputs, initializers, captured values and outputs, when all nodes are there. */
static OrtStatus* list_border(OrtGraph* view, const NodeSet* inside, bool drop_constants) {
  Arena* arena = &view->view_arena;
  size_t count = view->values.count;
  view->inputs = arena_calloc(arena, count, sizeof(OrtValueInfo*));
  view->initializers = arena_calloc(arena, count, sizeof(OrtValueInfo*));
  view->captured = arena_calloc(arena, count, sizeof(OrtValueInfo*));
  view->outputs = arena_calloc(arena, count, sizeof(OrtValueInfo*));
  if (view->inputs == NULL || view->initializers == NULL || view->captured == NULL || view->outputs == NULL)
    return status_no_memory();
  for (size_t n = 0; n < view->node_count; n++) {
    const OrtNode* node = view->nodes[n];
    for (size_t i = 0; i < node->input_count; i++)
      list_used_value(view, node->inputs[i], inside, drop_constants);
    for (size_t i = 0; i < node->implicit_input_count; i++)
      list_used_value(view, node->implicit_inputs[i], inside, drop_constants);
    for (size_t i = 0; i < node->output_count; i++) {
      OrtValueInfo* value = node->outputs[i];
      if (value == NULL || !is_used_outside(value->origin, inside)) continue;
      value->is_graph_output = true;
      view->outputs[view->output_count++] = value;
    }
  }
  for (size_t i = 0; i < view->values.capacity; i++) {
    if (view->values.entries[i].name != NULL) ((OrtValueInfo*)view->values.entries[i].value)->slot = -1;
  }
  return NULL;
}

static OrtStatus* fill_view(OrtGraph* view, const NodeSet* inside, bool drop_constants) {
  view->nodes = arena_calloc(&view->view_arena, inside->count, sizeof *view->nodes);
  if (view->nodes == NULL) return status_no_memory();
  for (size_t i = 0; i < inside->count; i++) {
    TRY(view_node(view, inside->nodes[i], &view->nodes[i]));
    view->node_count++;
  }
  TRY(list_border(view, inside, drop_constants));
  return graph_link_consumers(view);
}

OrtStatus* graph_view_new(const OrtGraph* source, OrtNode* const* nodes, size_t node_count, const char* name,
                          bool drop_constants, OrtGraph** out) {
  NodeSet inside = {.source = source};
  OrtStatus* status = NULL;
  OrtGraph* view = mem_calloc(1, sizeof *view);
  if (view == NULL) return status_no_memory();
  view->model = source->model;
  view->parent_node = source->parent_node;
  view->source = source;
  view->next_node_id = source->next_node_id;
  view->name = arena_str(&view->view_arena, name, strlen(name));
  if (view->name == NULL) {
    status = status_no_memory();
    goto done;
  }
  TRY_DONE(node_set_fill(&inside, nodes, node_count));
  status = fill_view(view, &inside, drop_constants);
done:
  mem_free(inside.nodes);
  if (status != NULL)
    graph_view_release(view);
  else
    *out = view;
  return status;
}

void graph_view_release(OrtGraph* view) {
  if (view == NULL) return;
  name_map_release(&view->values);
  arena_release(&view->view_arena);
  mem_free(view);
}
