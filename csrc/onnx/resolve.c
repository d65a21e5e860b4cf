/* What a session does with a graph before it asks EPs: Constant nodes become initializers. */
#include <string.h>

#include "onnx/reader.h"

/* gives (caller owns it): a tensor of rank 0 for a single number, of rank 1 for a list. */
static OrtStatus* tensor_of_numbers(ONNXTensorElementDataType type, const void* data, size_t count,
                                    bool is_list, OrtValue** out) {
  int64_t dim = (int64_t)count;
  TRY(value_new_tensor(allocator_cpu(), type, is_list, &dim, out));
  if ((*out)->size_bytes != 0) memcpy((*out)->data, data, (*out)->size_bytes);
  return NULL;
}

static OrtStatus* tensor_of_strings(char* const* texts, const size_t* lengths, size_t count, bool is_list,
                                    OrtValue** out) {
  int64_t dim = (int64_t)count;
  OrtValue* value = NULL;
  TRY(value_new_tensor(allocator_cpu(), ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, is_list, &dim, &value));
  for (size_t i = 0; i < count; i++) {
    if (value_set_string(value, i, texts[i], lengths[i])) continue;
    value_release(value);
    return status_no_memory();
  }
  *out = value;
  return NULL;
}

/* The tensor that a Constant node stands for; owned by the model. */
static OrtStatus* constant_tensor(const OrtNode* node, OrtValue** out) {
  OrtValue* value = NULL;
  for (size_t i = 0; i < node->attribute_count; i++) {
    const OrtOpAttr* attribute = &node->attributes[i];
    const char* name = attribute->name;
    if (attribute->tensor != NULL && (strcmp(name, "value") == 0 || strcmp(name, "sparse_value") == 0)) {
      *out = attribute->tensor;
      return NULL;
    }
    ONNXTensorElementDataType number = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    if (strcmp(name, "value_int") == 0 && attribute->type == ORT_OP_ATTR_INT)
      TRY(tensor_of_numbers(number, &attribute->i, 1, false, &value));
    else if (strcmp(name, "value_ints") == 0 && attribute->type == ORT_OP_ATTR_INTS)
      TRY(tensor_of_numbers(number, attribute->ints, attribute->count, true, &value));
    number = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    if (strcmp(name, "value_float") == 0 && attribute->type == ORT_OP_ATTR_FLOAT)
      TRY(tensor_of_numbers(number, &attribute->f, 1, false, &value));
    else if (strcmp(name, "value_floats") == 0 && attribute->type == ORT_OP_ATTR_FLOATS)
      TRY(tensor_of_numbers(number, attribute->floats, attribute->count, true, &value));
    else if (strcmp(name, "value_string") == 0 && attribute->type == ORT_OP_ATTR_STRING)
      TRY(tensor_of_strings(&attribute->s, &attribute->count, 1, false, &value));
    else if (strcmp(name, "value_strings") == 0 && attribute->type == ORT_OP_ATTR_STRINGS)
      TRY(tensor_of_strings(attribute->strings, attribute->string_lengths, attribute->count, true, &value));
    if (value == NULL) continue;
    TRY(model_own_value(node->graph->model, value));
    *out = value;
    return NULL;
  }
  return status_new(ORT_INVALID_GRAPH, "it has no value");
}

/* Turns the node's output into an initializer. */
static OrtStatus* lift_constant(OrtNode* node) {
  OrtGraph* graph = node->graph;
  OrtValueInfo* value = node->output_count != 0 ? node->outputs[0] : NULL;
  if (value == NULL) return NULL; /* nobody can read it */
  OrtValue* tensor = NULL;
  OrtStatus* status = constant_tensor(node, &tensor);
  if (status != NULL) {
    char* text = node_text(node);
    status = status_wrap(status, "%s", text != NULL ? text : "Constant");
    mem_free(text);
    return status;
  }
  OrtTypeInfo* type = type_of_tensor(graph->model, tensor);
  if (type == NULL) return status_no_memory();
  value->type = type;
  value->initializer = tensor;
  value->is_constant = true;
  value->producer = NULL;
  graph->initializers[graph->initializer_count++] = value;
  return NULL;
}

static bool is_constant_node(const OrtNode* node) {
  return node->domain[0] == '\0' && strcmp(node->op_type, "Constant") == 0;
}

static OrtStatus* lift_graph(OrtGraph* graph) {
  size_t lifted = 0;
  for (size_t i = 0; i < graph->node_count; i++) lifted += is_constant_node(graph->nodes[i]);
  if (lifted == 0) return NULL;
  OrtValueInfo** grown =
      arena_calloc(&graph->model->arena, graph->initializer_count + lifted, sizeof(OrtValueInfo*));
  if (grown == NULL) return status_no_memory();
  for (size_t i = 0; i < graph->initializer_count; i++) grown[i] = graph->initializers[i];
  graph->initializers = grown;
  size_t kept = 0;
  for (size_t i = 0; i < graph->node_count; i++) {
    OrtNode* node = graph->nodes[i];
    if (is_constant_node(node))
      TRY(lift_constant(node));
    else
      graph->nodes[kept++] = node;
  }
  graph->node_count = kept;
  return NULL;
}

/* Captured values follow those of the enclosing graph, graph by graph from the outside in. */
static void refresh_captured(OrtGraph* graph) {
  for (size_t i = 0; i < graph->captured_count; i++) {
    OrtValueInfo* value = graph->captured[i];
    value->type = value->outer->type;
    value->initializer = value->outer->initializer;
    value->external = value->outer->external;
    value->is_constant = value->outer->is_constant;
  }
  for (size_t n = 0; n < graph->node_count; n++) {
    for (size_t s = 0; s < graph->nodes[n]->subgraph_count; s++)
      refresh_captured(graph->nodes[n]->subgraphs[s]);
  }
}

OrtStatus* model_lift_constants(OrtModel* model) {
  for (OrtGraph* graph = model->graphs; graph != NULL; graph = graph->next_graph) TRY(lift_graph(graph));
  refresh_captured(model->graph);
  return NULL;
}
