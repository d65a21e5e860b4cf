/* Graphs: names and scopes, who makes and who uses a value, the order of nodes. */
#include "graph/graph.h"

#include <string.h>

#include "graph/graph.h"

#define MARKED (-2) /* a value's slot while lists are made; -1 otherwise */

/* ---- Values ---- */

OrtGraph* graph_new(OrtModel* model, OrtNode* parent) {
  OrtGraph* graph = arena_alloc(&model->arena, sizeof *graph);
  if (graph == NULL) return NULL;
  graph->model = model;
  graph->parent_node = parent;
  graph->next_graph = model->graphs;
  model->graphs = graph;
  return graph;
}

OrtStatus* graph_add_value(OrtGraph* graph, char* name, OrtValueInfo** out) {
  if (name_map_get(&graph->values, name) != NULL)
    return status_new(ORT_INVALID_GRAPH, "graph '%s': value '%s' is defined twice", graph->name, name);
  OrtValueInfo* value = arena_alloc(&graph->model->arena, sizeof *value);
  if (value == NULL || !name_map_put(&graph->values, name, value)) return status_no_memory();
  value->name = name;
  value->graph = graph;
  value->slot = -1;
  *out = value;
  return NULL;
}

/* Appends to graph->captured, which doubles in the arena. */
static bool append_captured(OrtGraph* graph, OrtValueInfo* value) {
  size_t count = graph->captured_count;
  if (count == 0 || (count >= 8 && (count & (count - 1)) == 0)) {
    OrtValueInfo** grown = arena_calloc(&graph->model->arena, count == 0 ? 8 : count * 2, sizeof *grown);
    if (grown == NULL) return false;
    for (size_t i = 0; i < count; i++) grown[i] = graph->captured[i];
    graph->captured = grown;
  }
  graph->captured[graph->captured_count++] = value;
  return true;
}

OrtStatus* graph_capture(OrtGraph* graph, OrtValueInfo* outer, OrtValueInfo** out) {
  OrtValueInfo* value = name_map_get(&graph->values, outer->name);
  if (value == NULL || value->outer != outer) {
    TRY(graph_add_value(graph, outer->name, &value));
    value->outer = outer;
    value->type = outer->type;
    value->initializer = outer->initializer;
    value->external = outer->external;
    value->is_constant = outer->is_constant;
    if (!append_captured(graph, value)) return status_no_memory();
  }
  *out = value;
  return NULL;
}

OrtValueInfo* graph_find_value(const OrtGraph* graph, const char* name, bool outer) {
  for (; graph != NULL; graph = graph->parent_node != NULL ? graph->parent_node->graph : NULL) {
    OrtValueInfo* value = name_map_get(&graph->values, name);
    if (value != NULL || !outer) return value;
  }
  return NULL;
}

OrtValueInfo* value_root(const OrtValueInfo* value) {
  while (value->origin != NULL || value->outer != NULL)
    value = value->origin != NULL ? value->origin : value->outer;
  return (OrtValueInfo*)(uintptr_t)value;
}

/* ---- Nodes ---- */

OrtNode* node_root(const OrtNode* node) {
  while (node->origin != NULL) node = node->origin;
  return (OrtNode*)(uintptr_t)node;
}

OrtOpAttr* node_find_attribute(const OrtNode* node, const char* name) {
  for (size_t i = 0; i < node->attribute_count; i++) {
    if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
  }
  return NULL;
}

char* node_text(const OrtNode* node) {
  if (node->name[0] != '\0') return str_format("node '%s' (%s)", node->name, node->op_type);
  return str_format("node #%zu (%s)", node->id, node->op_type);
}

int find_opset(const OpsetImport* opsets, size_t count, const char* domain) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(opsets[i].domain, domain) == 0) return opsets[i].version;
  }
  return 0;
}

int model_opset(const OrtModel* model, const char* domain) {
  if (domain == NULL || strcmp(domain, "ai.onnx") == 0) domain = "";
  return find_opset(model->opsets, model->opset_count, domain);
}

OrtStatus* model_import_opset(OrtModel* model, const char* domain, int version) {
  OpsetImport* grown = arena_calloc(&model->arena, model->opset_count + 1, sizeof *grown);
  char* own_domain = arena_str(&model->arena, domain, strlen(domain));
  if (grown == NULL || own_domain == NULL) return status_no_memory();
  size_t at = 0;
  while (at < model->opset_count && strcmp(model->opsets[at].domain, domain) < 0) at++;
  for (size_t i = 0; i <= model->opset_count; i++) {
    if (i != at) grown[i] = model->opsets[i < at ? i : i - 1];
  }
  grown[at] = (OpsetImport){own_domain, version};
  model->opsets = grown;
  model->opset_count++;
  return NULL;
}

/* ---- Implicit inputs: what a node's subgraphs capture ---- */

static OrtStatus* collect_implicit_inputs(OrtNode* node) {
  size_t most = 0, count = 0;
  for (size_t s = 0; s < node->subgraph_count; s++) most += node->subgraphs[s]->captured_count;
  if (most == 0) return NULL;
  node->implicit_inputs = arena_calloc(&node->graph->model->arena, most, sizeof *node->implicit_inputs);
  if (node->implicit_inputs == NULL) return status_no_memory();
  for (size_t s = 0; s < node->subgraph_count; s++) {
    const OrtGraph* subgraph = node->subgraphs[s];
    for (size_t i = 0; i < subgraph->captured_count; i++) {
      OrtValueInfo* value = subgraph->captured[i]->outer;
      if (value->slot == MARKED) continue; /* another branch captures it too */
      value->slot = MARKED;
      node->implicit_inputs[count++] = value;
    }
  }
  for (size_t i = 0; i < count; i++) node->implicit_inputs[i]->slot = -1;
  node->implicit_input_count = count;
  return NULL;
}

/* ---- Consumers ---- */

static OrtValueInfo* use_at(const OrtNode* node, size_t index, int64_t* input_index) {
  bool is_explicit = index < node->input_count;
  *input_index = is_explicit ? (int64_t)index : -1;
  return is_explicit ? node->inputs[index] : node->implicit_inputs[index - node->input_count];
}

OrtStatus* graph_link_consumers(OrtGraph* graph) {
  Arena* arena = graph->source != NULL ? &graph->view_arena : &graph->model->arena;
  size_t uses = 0;
  int64_t input_index;
  for (size_t i = 0; i < graph->values.capacity; i++) {
    OrtValueInfo* value = graph->values.entries[i].value;
    if (graph->values.entries[i].name != NULL) value->consumer_count = 0;
  }
  for (size_t n = 0; n < graph->node_count; n++) {
    const OrtNode* node = graph->nodes[n];
    for (size_t i = 0; i < node->input_count + node->implicit_input_count; i++) {
      OrtValueInfo* value = use_at(node, i, &input_index);
      if (value == NULL) continue;
      value->consumer_count++;
      uses++;
    }
  }
  ValueConsumer* next = arena_calloc(arena, uses, sizeof *next);
  if (next == NULL) return status_no_memory();
  for (size_t i = 0; i < graph->values.capacity; i++) { /* one stretch a value */
    OrtValueInfo* value = graph->values.entries[i].value;
    if (graph->values.entries[i].name == NULL) continue;
    value->consumers = next;
    next += value->consumer_count;
    value->consumer_count = 0;
  }
  for (size_t n = 0; n < graph->node_count; n++) {
    OrtNode* node = graph->nodes[n];
    for (size_t i = 0; i < node->input_count + node->implicit_input_count; i++) {
      OrtValueInfo* value = use_at(node, i, &input_index);
      if (value != NULL) value->consumers[value->consumer_count++] = (ValueConsumer){node, input_index};
    }
  }
  return NULL;
}

/* ---- Order ---- */

static bool is_sorted(const OrtGraph* graph) {
  int64_t input_index;
  for (size_t n = 0; n < graph->node_count; n++) {
    const OrtNode* node = graph->nodes[n];
    for (size_t i = 0; i < node->input_count + node->implicit_input_count; i++) {
      const OrtValueInfo* value = use_at(node, i, &input_index);
      if (value != NULL && value->producer != NULL && value->producer->id >= node->id) return false;
    }
  }
  return true;
}

typedef struct SortFrame {
  OrtNode* node;
  size_t next_input;
} SortFrame;

enum { SORT_NEW = 0, SORT_OPEN = 1, SORT_DONE = 2 };

/* Puts `root` and what it needs into graph->nodes, what it needs first. `states` by node id. */
static OrtStatus* sort_from(OrtGraph* graph, OrtNode* root, SortFrame* stack, uint8_t* states,
                            size_t* sorted) {
  size_t depth = 0;
  int64_t input_index;
  stack[depth++] = (SortFrame){root, 0};
  states[root->id] = SORT_OPEN;
  while (depth != 0) {
    SortFrame* top = &stack[depth - 1];
    OrtNode* node = top->node;
    if (top->next_input == node->input_count + node->implicit_input_count) {
      states[node->id] = SORT_DONE;
      graph->nodes[(*sorted)++] = node;
      depth--;
      continue;
    }
    const OrtValueInfo* value = use_at(node, top->next_input++, &input_index);
    OrtNode* producer = value != NULL ? value->producer : NULL;
    if (producer == NULL || states[producer->id] == SORT_DONE) continue;
    if (states[producer->id] == SORT_OPEN) {
      char* text = node_text(node);
      OrtStatus* status =
          status_new(ORT_INVALID_GRAPH, "graph '%s' has a cycle: %s needs '%s', which needs it", graph->name,
                     text != NULL ? text : "a node", value->name);
      mem_free(text);
      return status;
    }
    states[producer->id] = SORT_OPEN;
    stack[depth++] = (SortFrame){producer, 0};
  }
  return NULL;
}

/* Keeps the file's order where it can; nodes have ids 0..count-1 and lie in that order. */
static OrtStatus* sort_nodes(OrtGraph* graph) {
  if (is_sorted(graph)) return NULL;
  size_t count = graph->node_count, sorted = 0;
  OrtStatus* status = NULL;
  OrtNode** file_order = mem_calloc(count, sizeof *file_order);
  SortFrame* stack = mem_calloc(count, sizeof *stack);
  uint8_t* states = mem_calloc(count, 1);
  if (file_order == NULL || stack == NULL || states == NULL) {
    status = status_no_memory();
    goto done;
  }
  memcpy(file_order, graph->nodes, count * sizeof *file_order);
  for (size_t n = 0; n < count; n++) {
    if (states[n] == SORT_NEW) TRY_DONE(sort_from(graph, file_order[n], stack, states, &sorted));
  }
done:
  mem_free(file_order);
  mem_free(stack);
  mem_free(states);
  return status;
}

OrtStatus* graph_finish(OrtGraph* graph) {
  for (size_t n = 0; n < graph->node_count; n++) TRY(collect_implicit_inputs(graph->nodes[n]));
  TRY(sort_nodes(graph));
  for (size_t n = 0; n < graph->node_count; n++) graph->nodes[n]->position = n;
  return graph_link_consumers(graph);
}

const char* node_first_output(const OrtNode* node) {
  for (size_t i = 0; i < node->output_count; i++) {
    if (node->outputs[i] != NULL) return node->outputs[i]->name;
  }
  return "";
}

void describe_node(StrBuf* text, const OrtNode* node) {
  bool has_name = node->name[0] != '\0';
  strbuf_append(text, "%s'%s' (%s, %s, version %d)", has_name ? "" : "that makes ",
                has_name ? node->name : node_first_output(node), node->op_type,
                node->domain[0] != '\0' ? node->domain : "ai.onnx", node->since_version);
}
