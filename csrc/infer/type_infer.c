/* Types of the values between nodes, from the operators' schemas: element types, shapes only where the model
 * states them. What cannot be known stays unknown. */
#include "infer/type_infer.h"

#include <string.h>

#include "schema/schema.h"

OrtTypeInfo* infer_tensor(TypeInfer* infer, ONNXTensorElementDataType element) {
  if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED || (size_t)element >= ELEMENT_TYPE_LIMIT)
    return NULL;
  if (infer->tensors[element] == NULL) {
    Arena* arena = &infer->model->arena;
    infer->tensors[element] =
        type_info_new_tensor(arena, ONNX_TYPE_TENSOR, shape_info_new(arena, element, false, 0, NULL, NULL));
    if (infer->tensors[element] == NULL) infer->no_memory = true;
  }
  return infer->tensors[element];
}

OrtTypeInfo* infer_container(TypeInfer* infer, ONNXType kind, const OrtTypeInfo* element) {
  if (element == NULL) return NULL;
  OrtTypeInfo* type = type_info_new_container(&infer->model->arena, kind, (OrtTypeInfo*)(uintptr_t)element);
  if (type == NULL) infer->no_memory = true;
  return type;
}

OrtTypeInfo* infer_without_shape(TypeInfer* infer, const OrtTypeInfo* type) {
  if (type == NULL) return NULL;
  switch (type->kind) {
    case ONNX_TYPE_TENSOR:
      return infer_tensor(infer, type->tensor->element_type);
    case ONNX_TYPE_SEQUENCE:
      return infer_container(infer, type->kind, infer_without_shape(infer, type->sequence.element));
    case ONNX_TYPE_OPTIONAL:
      return infer_container(infer, type->kind, infer_without_shape(infer, type->optional.element));
    case ONNX_TYPE_UNKNOWN:
      return NULL;
    default:
      return (OrtTypeInfo*)(uintptr_t)type;
  }
}

const OrtTypeInfo* infer_input(const OrtNode* node, size_t index) {
  return index < node->input_count && node->inputs[index] != NULL ? node->inputs[index]->type : NULL;
}

/* ---- Types as schemas write them ---- */

static OrtTypeInfo* parse_type(TypeInfer* infer, const char* text, size_t length);

/* "map(int64, float)": key and value type of a map. */
static OrtTypeInfo* parse_map(TypeInfer* infer, const char* text, size_t length) {
  const char* comma = memchr(text, ',', length);
  if (comma == NULL) return NULL;
  ONNXTensorElementDataType key = element_type_of_name(text, (size_t)(comma - text));
  const char* value = comma + 1 + (comma[1] == ' ');
  OrtTypeInfo* type = infer_tensor(infer, element_type_of_name(value, length - (size_t)(value - text)));
  if (type == NULL) return NULL;
  OrtTypeInfo* map = type_info_new_map(&infer->model->arena, key, type);
  if (map == NULL) infer->no_memory = true;
  return map;
}

static OrtTypeInfo* parse_type(TypeInfer* infer, const char* text, size_t length) {
  static const char* const prefixes[] = {"tensor(", "seq(", "optional(", "map("};
  for (size_t i = 0; i < 4; i++) {
    size_t skip = strlen(prefixes[i]);
    if (length <= skip || memcmp(text, prefixes[i], skip) != 0 || text[length - 1] != ')') continue;
    text += skip;
    length -= skip + 1;
    if (i == 0) return infer_tensor(infer, element_type_of_name(text, length));
    if (i == 3) return parse_map(infer, text, length);
    return infer_container(infer, i == 1 ? ONNX_TYPE_SEQUENCE : ONNX_TYPE_OPTIONAL,
                           parse_type(infer, text, length));
  }
  return NULL;
}

OrtTypeInfo* infer_of_text(TypeInfer* infer, const char* text) {
  return parse_type(infer, text, strlen(text));
}

/* ---- One node ---- */

/* The type of an input that has the same type parameter. */
static const OrtTypeInfo* input_of_parameter(const OrtNode* node, const OpSchema* schema,
                                             const char* parameter) {
  for (size_t i = 0; i < node->input_count; i++) {
    const OpSchemaFormal* formal = op_schema_input(schema, i);
    if (formal == NULL) return NULL;
    bool is_mixed = formal->option == OP_SCHEMA_VARIADIC && !formal->is_homogeneous;
    const OrtTypeInfo* type = infer_input(node, i);
    if (type != NULL && !is_mixed && strcmp(formal->type_str, parameter) == 0) return type;
  }
  return NULL;
}

/* What the schema alone says: the only type that is allowed, or that of inputs with the same type parameter.
 */
static OrtTypeInfo* infer_by_schema(TypeInfer* infer, const OrtNode* node, const OpSchema* schema,
                                    size_t output) {
  const OpSchemaFormal* formal = op_schema_output(schema, output);
  if (formal == NULL) return NULL;
  const OpSchemaConstraint* constraint = op_schema_constraint(schema, formal->type_str);
  if (constraint == NULL) return infer_of_text(infer, formal->type_str);
  if (constraint->type_count == 1) return infer_of_text(infer, constraint->types[0]);
  if (formal->option == OP_SCHEMA_VARIADIC && !formal->is_homogeneous) return NULL;
  return infer_without_shape(infer, input_of_parameter(node, schema, formal->type_str));
}

OrtTypeInfo* infer_output(TypeInfer* infer, const OrtNode* node, const OpSchema* schema, size_t output) {
  bool found = false;
  OrtTypeInfo* type = infer_by_custom_op(infer, node, output, &found);
  if (found) return type;
  if (schema != NULL) type = infer_by_schema(infer, node, schema, output);
  return type != NULL ? type : infer_by_rule(infer, node, output);
}

static void infer_graph(TypeInfer* infer, OrtGraph* graph);

/* The model states the type; what an earlier walk found is found anew, as operators may have changed. */
static bool is_declared(const OrtValueInfo* value) {
  return !value->is_inferred && value->type != NULL &&
         !(value->type->kind == ONNX_TYPE_TENSOR &&
           value->type->tensor->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
}

/* A tensor type that the model states without an element type gets that and keeps its shape. */
static void set_type(OrtValueInfo* value, OrtTypeInfo* type) {
  if (type == NULL) return;
  value->is_inferred = true;
  if (value->type != NULL && value->type->kind == ONNX_TYPE_TENSOR && type->kind == ONNX_TYPE_TENSOR &&
      value->type->tensor->has_shape && !type->tensor->has_shape)
    value->type->tensor->element_type = type->tensor->element_type;
  else
    value->type = type;
}

/* Types that a subgraph gets from its node, where the model leaves them out. */
static void infer_subgraph_inputs(TypeInfer* infer, const OrtNode* node, OrtGraph* subgraph) {
  for (size_t i = 0; i < subgraph->captured_count; i++)
    subgraph->captured[i]->type = subgraph->captured[i]->outer->type;
  bool is_loop = strcmp(node->op_type, "Loop") == 0;
  bool is_scan = strcmp(node->op_type, "Scan") == 0;
  bool is_map = strcmp(node->op_type, "SequenceMap") == 0; /* the body gets one element of each sequence */
  if (node->domain[0] != '\0' || (!is_loop && !is_scan && !is_map)) return;
  size_t shift = is_scan && node->since_version < 9; /* that one has sequence lengths as input 0 */
  for (size_t i = 0; i < subgraph->input_count; i++) {
    OrtValueInfo* input = subgraph->inputs[i];
    const OrtTypeInfo* given = infer_input(node, i + shift);
    if (is_declared(input)) continue;
    if (is_loop && i < 2)
      set_type(input, infer_tensor(infer, i == 0 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64
                                                 : ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL));
    else if (is_map && given != NULL && given->kind == ONNX_TYPE_SEQUENCE)
      set_type(input, infer_without_shape(infer, given->sequence.element));
    else
      set_type(input, infer_without_shape(infer, given));
  }
}

static void infer_node(TypeInfer* infer, OrtNode* node) {
  for (size_t i = 0; i < node->subgraph_count; i++) {
    infer_subgraph_inputs(infer, node, node->subgraphs[i]);
    infer_graph(infer, node->subgraphs[i]);
  }
  const OpSchema* schema = NULL;
  /* As in stock ORT, what the model says of a Constant's type counts for nothing. */
  bool is_constant = node->domain[0] == '\0' && strcmp(node->op_type, "Constant") == 0;
  for (size_t i = 0; i < node->output_count; i++) {
    if (node->outputs[i] == NULL || (is_declared(node->outputs[i]) && !is_constant)) continue;
    if (schema == NULL) schema = op_schema_find(node->domain, node->op_type, node->since_version);
    set_type(node->outputs[i], infer_output(infer, node, schema, i));
  }
  infer_custom_shapes(infer, node);
}

static void infer_graph(TypeInfer* infer, OrtGraph* graph) {
  for (size_t n = 0; n < graph->node_count; n++) infer_node(infer, graph->nodes[n]);
}

OrtStatus* model_infer_types(OrtModel* model) {
  TypeInfer infer = {.model = model};
  infer_graph(&infer, model->graph);
  return infer.no_memory ? status_no_memory() : NULL;
}
