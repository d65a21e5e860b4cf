/* NodeProto. A node is read twice: its outputs first, because its inputs and subgraphs may
 * use any value of the graph, wherever in the file that is made. */
#include <string.h>

#include "onnx/reader.h"
#include "schema/schema.h"

enum {
  NODE_INPUT = 1,
  NODE_OUTPUT = 2,
  NODE_NAME = 3,
  NODE_OP_TYPE = 4,
  NODE_ATTRIBUTE = 5,
  NODE_DOMAIN = 7,
  NODE_OVERLOAD = 8,
};

/* Makes the node with its names, and its arrays, all entries NULL. */
static OrtStatus* read_node_head(Reader* reader, const WireField* field, OrtGraph* graph, OrtNode** out,
                                 char** overload) {
  Arena* arena = &reader->model->arena;
  OrtNode* node = arena_alloc(arena, sizeof *node);
  if (node == NULL) return status_no_memory();
  node->id = graph->next_node_id; /* counted when the node is kept */
  node->graph = graph;
  node->name = node->op_type = node->domain = (char*)"";
  Wire wire = wire_of_field(field);
  WireField part;
  while (wire_next(&wire, &part)) {
    switch (part.tag) {
      case WIRE_TAG(NODE_INPUT, WIRE_BYTES):
        node->input_count++;
        break;
      case WIRE_TAG(NODE_OUTPUT, WIRE_BYTES):
        node->output_count++;
        break;
      case WIRE_TAG(NODE_ATTRIBUTE, WIRE_BYTES):
        node->attribute_count++;
        break;
      case WIRE_TAG(NODE_NAME, WIRE_BYTES):
        TRY(read_name(reader, &part, "node", &node->name));
        break;
      case WIRE_TAG(NODE_OP_TYPE, WIRE_BYTES):
        TRY(read_name(reader, &part, "operator type of node", &node->op_type));
        break;
      case WIRE_TAG(NODE_DOMAIN, WIRE_BYTES):
        TRY(read_name(reader, &part, "domain of node", &node->domain));
        break;
      case WIRE_TAG(NODE_OVERLOAD, WIRE_BYTES):
        TRY(read_name(reader, &part, "overload of node", overload));
        break;
      default:
        break;
    }
  }
  TRY(check_wire(&wire, "node", node->name));
  if (strcmp(node->domain, "ai.onnx") == 0) node->domain = (char*)"";
  node->inputs = arena_calloc(arena, node->input_count, sizeof *node->inputs);
  node->outputs = arena_calloc(arena, node->output_count, sizeof *node->outputs);
  node->attributes = arena_calloc(arena, node->attribute_count, sizeof *node->attributes);
  if (node->inputs == NULL || node->outputs == NULL || node->attributes == NULL) return status_no_memory();
  *out = node;
  return NULL;
}

/* takes `cause`, gives it with the node's name in front. */
static OrtStatus* node_error(const OrtNode* node, OrtStatus* cause) {
  char* text = node_text(node);
  OrtStatus* status = status_wrap(cause, "%s", text != NULL ? text : "node");
  mem_free(text);
  return status;
}

/* Finds the operator's version. */
static OrtStatus* resolve_operator(Reader* reader, OrtNode* node) {
  if (node->op_type[0] == '\0')
    return node_error(node, status_new(ORT_INVALID_GRAPH, "it has no operator type"));
  int opset = scope_opset(reader, node->domain);
  if (opset == 0 && node->domain[0] == '\0')
    return node_error(node,
                      status_new(ORT_INVALID_GRAPH, "the model imports no version of the ONNX operator set"));
  const OpSchema* schema = op_schema_find(node->domain, node->op_type, opset);
  node->since_version = schema != NULL ? schema->since_version : opset != 0 ? opset : 1;
  return NULL;
}

static OrtStatus* make_outputs(Reader* reader, const WireField* field, OrtNode* node) {
  Wire wire = wire_of_field(field);
  WireField part;
  for (size_t i = 0; wire_next(&wire, &part);) {
    if (part.tag != WIRE_TAG(NODE_OUTPUT, WIRE_BYTES)) continue;
    char* name = NULL;
    TRY(read_name(reader, &part, "output of node", &name));
    if (name[0] != '\0') {
      TRY(define_value(reader, node->graph, name, &node->outputs[i]));
      node->outputs[i]->producer = node;
      node->outputs[i]->producer_output = i;
    }
    i++;
  }
  return NULL;
}

/* The second part of read_node_outputs, for a node that stays one. */
static OrtStatus* keep_node(Reader* reader, const WireField* field, OrtNode* node, NodeList* list) {
  TRY(resolve_operator(reader, node));
  OrtStatus* status = make_outputs(reader, field, node);
  if (status != NULL) return node_error(node, status);
  if (reader->scope != NULL && node->name[0] != '\0') {
    char* name = str_format("%s%s", reader->scope->prefix, node->name);
    node->name = name != NULL ? arena_str(&reader->model->arena, name, strlen(name)) : NULL;
    mem_free(name);
    if (node->name == NULL) return status_no_memory();
  }
  if (!ARRAY_RESERVE(list->items, list->capacity, list->count + 1)) return status_no_memory();
  list->items[list->count++] = (PendingNode){node, *field, reader->scope};
  node->graph->next_node_id++;
  return NULL;
}

OrtStatus* read_node_outputs(Reader* reader, const WireField* field, OrtGraph* graph, NodeList* list) {
  OrtNode* node = NULL;
  char* overload = (char*)"";
  const Function* function = NULL;
  TRY(read_node_head(reader, field, graph, &node, &overload));
  TRY(find_function(reader, node, overload, &function));
  if (function == NULL) return keep_node(reader, field, node, list);
  OrtStatus* status = expand_call(reader, field, node, function, list);
  return status != NULL ? node_error(node, status) : NULL;
}

/* The subgraphs of the GRAPH attributes, in attribute order. */
static OrtStatus* collect_subgraphs(Reader* reader, OrtNode* node) {
  size_t count = 0;
  for (size_t i = 0; i < node->attribute_count; i++) count += node->attributes[i].graph != NULL;
  if (count == 0) return NULL;
  node->subgraphs = arena_calloc(&reader->model->arena, count, sizeof(OrtGraph*));
  if (node->subgraphs == NULL) return status_no_memory();
  for (size_t i = 0; i < node->attribute_count; i++) {
    if (node->attributes[i].graph != NULL)
      node->subgraphs[node->subgraph_count++] = node->attributes[i].graph;
  }
  return NULL;
}

static OrtStatus* check_attribute_names(const OrtNode* node) {
  NameMap names = {0};
  OrtStatus* status = NULL;
  for (size_t i = 0; node->attribute_count > 1 && i < node->attribute_count && status == NULL; i++) {
    const OrtOpAttr* attribute = &node->attributes[i];
    if (name_map_get(&names, attribute->name) != NULL)
      status = status_new(ORT_INVALID_GRAPH, "it has two attributes '%s'", attribute->name);
    else if (!name_map_put(&names, attribute->name, (void*)(uintptr_t)attribute))
      status = status_no_memory();
  }
  name_map_release(&names);
  return status;
}

static OrtStatus* read_node_parts(Reader* reader, const WireField* field, OrtNode* node) {
  Wire wire = wire_of_field(field);
  WireField part;
  size_t input = 0, attribute = 0;
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(NODE_INPUT, WIRE_BYTES)) {
      char* name = NULL;
      TRY(read_name(reader, &part, "input of node", &name));
      if (name[0] != '\0') {
        TRY(use_value(reader, node->graph, name, &node->inputs[input]));
        if (node->inputs[input] == NULL && !is_missing_formal(reader->scope, node->graph, name))
          return status_new(ORT_INVALID_GRAPH,
                            "input %zu '%s' is no graph input, initializer or output of a node", input, name);
      }
      input++;
    } else if (part.tag == WIRE_TAG(NODE_ATTRIBUTE, WIRE_BYTES)) {
      bool is_present = true;
      TRY(read_attribute(reader, &part, node, &node->attributes[attribute], &is_present));
      attribute += is_present;
    }
  }
  node->attribute_count = attribute;
  TRY(check_attribute_names(node));
  return collect_subgraphs(reader, node);
}

OrtStatus* read_node_inputs(Reader* reader, const PendingNode* pending) {
  FunctionScope* around = reader->scope;
  reader->scope = pending->scope;
  OrtStatus* status = read_node_parts(reader, &pending->field, pending->node);
  if (status == NULL) status = check_node(pending->node);
  reader->scope = around;
  return status != NULL ? node_error(pending->node, status) : NULL;
}
