/* GraphProto: first the values (inputs, initializers, outputs of nodes), then what uses them. */
#include <string.h>

#include "onnx/reader.h"

enum {
  GRAPH_NODE = 1,
  GRAPH_NAME = 2,
  GRAPH_INITIALIZER = 5,
  GRAPH_INPUT = 11,
  GRAPH_OUTPUT = 12,
  GRAPH_VALUE_INFO = 13,
  GRAPH_SPARSE_INITIALIZER = 15,
};

/* A ValueInfoProto: name = 1, type = 2. */
static OrtStatus* read_value_info(Reader* reader, const WireField* field, const char* what, char** name,
                                  OrtTypeInfo** type) {
  Wire wire = wire_of_field(field);
  WireField part;
  *name = (char*)"";
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(1, WIRE_BYTES)) TRY(read_name(reader, &part, what, name));
  }
  TRY(check_wire(&wire, what, *name));
  wire = wire_of_field(field);
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(2, WIRE_BYTES)) TRY(read_type(reader, &part, *name, type));
  }
  return NULL;
}

static OrtStatus* read_counts(Reader* reader, const WireField* field, OrtGraph* graph) {
  Wire wire = wire_of_field(field);
  WireField part;
  graph->name = (char*)"";
  while (wire_next(&wire, &part)) {
    switch (part.tag) {
      case WIRE_TAG(GRAPH_NAME, WIRE_BYTES):
        TRY(read_name(reader, &part, "graph", &graph->name));
        break;
      case WIRE_TAG(GRAPH_INPUT, WIRE_BYTES):
        graph->input_count++;
        break;
      case WIRE_TAG(GRAPH_OUTPUT, WIRE_BYTES):
        graph->output_count++;
        break;
      case WIRE_TAG(GRAPH_INITIALIZER, WIRE_BYTES):
      case WIRE_TAG(GRAPH_SPARSE_INITIALIZER, WIRE_BYTES):
        graph->initializer_count++;
        break;
      default:
        break;
    }
  }
  TRY(check_wire(&wire, "graph", graph->name));
  Arena* arena = &reader->model->arena;
  graph->inputs = arena_calloc(arena, graph->input_count, sizeof *graph->inputs);
  graph->outputs = arena_calloc(arena, graph->output_count, sizeof *graph->outputs);
  graph->initializers = arena_calloc(arena, graph->initializer_count, sizeof *graph->initializers);
  bool failed = graph->inputs == NULL || graph->outputs == NULL || graph->initializers == NULL;
  return failed ? status_no_memory() : NULL;
}

static OrtStatus* read_inputs(Reader* reader, const WireField* field, OrtGraph* graph) {
  Wire wire = wire_of_field(field);
  WireField part;
  for (size_t i = 0; wire_next(&wire, &part);) {
    if (part.tag != WIRE_TAG(GRAPH_INPUT, WIRE_BYTES)) continue;
    char* name = NULL;
    OrtTypeInfo* type = NULL;
    TRY(read_value_info(reader, &part, "graph input", &name, &type));
    if (name[0] == '\0')
      return status_new(ORT_INVALID_GRAPH, "graph '%s': input %zu has no name", graph->name, i);
    TRY(define_value(reader, graph, name, &graph->inputs[i]));
    graph->inputs[i]->type = type;
    graph->inputs[i]->is_graph_input = true;
    i++;
  }
  return NULL;
}

/* Gives a value its initializer; the value is the graph input of that name, or a new one. */
static OrtStatus* set_initializer(Reader* reader, OrtGraph* graph, const TensorResult* tensor,
                                  OrtValueInfo** out) {
  if (tensor->name[0] == '\0')
    return status_new(ORT_INVALID_GRAPH, "graph '%s': an initializer has no name", graph->name);
  char* name = NULL;
  TRY(name_of_value(reader, graph, tensor->name, &name));
  OrtValueInfo* value = name_map_get(&graph->values, name);
  if (value == NULL || value->initializer != NULL) TRY(graph_add_value(graph, name, &value));
  if (value->type == NULL) value->type = type_of_tensor(graph->model, tensor->value);
  if (value->type == NULL) return status_no_memory();
  value->initializer = tensor->value;
  value->external = tensor->external;
  value->is_constant = !value->is_graph_input || graph->model->ir_version < 4;
  *out = value;
  return NULL;
}

static OrtStatus* read_initializers(Reader* reader, const WireField* field, OrtGraph* graph) {
  Wire wire = wire_of_field(field);
  WireField part;
  for (size_t i = 0; wire_next(&wire, &part);) {
    TensorResult tensor = {0};
    if (part.tag == WIRE_TAG(GRAPH_INITIALIZER, WIRE_BYTES)) {
      TRY(read_initializer(reader, &part, graph, &tensor));
    } else if (part.tag == WIRE_TAG(GRAPH_SPARSE_INITIALIZER, WIRE_BYTES)) {
      TRY(read_sparse_tensor(reader, &part, "initializer", &tensor));
      TRY(replace_tensor(reader, graph, &tensor));
    } else {
      continue;
    }
    TRY(set_initializer(reader, graph, &tensor, &graph->initializers[i]));
    i++;
  }
  return NULL;
}

static OrtStatus* read_node_list(Reader* reader, const WireField* field, OrtGraph* graph, NodeList* list) {
  Wire wire = wire_of_field(field);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(GRAPH_NODE, WIRE_BYTES)) TRY(read_node_outputs(reader, &part, graph, list));
  }
  graph->nodes = arena_calloc(&reader->model->arena, list->count, sizeof *graph->nodes);
  if (graph->nodes == NULL) return status_no_memory();
  for (size_t i = 0; i < list->count; i++) {
    TRY(read_node_inputs(reader, &list->items[i]));
    graph->nodes[graph->node_count++] = list->items[i].node;
  }
  return NULL;
}

static OrtStatus* read_nodes(Reader* reader, const WireField* field, OrtGraph* graph) {
  NodeList list = {0};
  OrtStatus* status = read_node_list(reader, field, graph, &list);
  mem_free(list.items);
  return status;
}

static OrtStatus* read_outputs(Reader* reader, const WireField* field, OrtGraph* graph) {
  Wire wire = wire_of_field(field);
  WireField part;
  for (size_t i = 0; wire_next(&wire, &part);) {
    if (part.tag != WIRE_TAG(GRAPH_OUTPUT, WIRE_BYTES)) continue;
    char* name = NULL;
    OrtTypeInfo* type = NULL;
    TRY(read_value_info(reader, &part, "graph output", &name, &type));
    TRY(use_value(reader, graph, name, &graph->outputs[i]));
    if (graph->outputs[i] == NULL)
      return status_new(ORT_INVALID_GRAPH, "graph '%s': output '%s' is made by no node", graph->name, name);
    if (graph->outputs[i]->type == NULL) graph->outputs[i]->type = type;
    graph->outputs[i]->is_graph_output = true;
    i++;
  }
  return NULL;
}

/* Types of values between nodes; those of values that do not exist are ignored. */
static OrtStatus* read_value_types(Reader* reader, const WireField* field, OrtGraph* graph) {
  Wire wire = wire_of_field(field);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag != WIRE_TAG(GRAPH_VALUE_INFO, WIRE_BYTES)) continue;
    char* name = NULL;
    OrtTypeInfo* type = NULL;
    TRY(read_value_info(reader, &part, "value", &name, &type));
    TRY(name_of_value(reader, graph, name, &name));
    OrtValueInfo* value = name_map_get(&graph->values, name);
    if (value != NULL && value->type == NULL) value->type = type;
  }
  return NULL;
}

static OrtStatus* read_graph_parts(Reader* reader, const WireField* field, OrtGraph* graph) {
  TRY(read_counts(reader, field, graph));
  TRY(read_inputs(reader, field, graph));
  TRY(read_initializers(reader, field, graph));
  TRY(read_nodes(reader, field, graph));
  TRY(read_outputs(reader, field, graph));
  TRY(read_value_types(reader, field, graph));
  return graph_finish(graph);
}

OrtStatus* read_graph(Reader* reader, const WireField* field, OrtNode* parent, OrtGraph** out) {
  if (reader->depth >= MAX_GRAPH_DEPTH)
    return status_new(ORT_INVALID_GRAPH, "subgraphs are nested more than %d deep", MAX_GRAPH_DEPTH);
  OrtGraph* graph = graph_new(reader->model, parent);
  if (graph == NULL) return status_no_memory();
  graph->scope = reader->scope;
  reader->depth++;
  OrtStatus* status = read_graph_parts(reader, field, graph);
  reader->depth--;
  if (status == NULL) *out = graph;
  return status;
}
