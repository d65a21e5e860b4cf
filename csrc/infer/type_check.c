/* Declared types against the truth: what a model says of its values, held against what its operators make and
 * take. Whoever makes a value allocates it by its type, so none that contradicts may get into a session. */
#include <string.h>

#include "infer/infer.h"
#include "infer/type_infer.h"

typedef struct TypeCheck {
  TypeInfer infer;
  const OrtLogger* logger; /* for shapes that contradict */
} TypeCheck;

/* ---- Comparing ---- */

/* True unless both are known and differ; shapes do not count. */
static bool is_same_type(const OrtTypeInfo* a, const OrtTypeInfo* b) {
  if (a == NULL || b == NULL || a->kind == ONNX_TYPE_UNKNOWN || b->kind == ONNX_TYPE_UNKNOWN) return true;
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case ONNX_TYPE_TENSOR:
    case ONNX_TYPE_SPARSETENSOR:
      return a->tensor->element_type == b->tensor->element_type ||
             a->tensor->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED ||
             b->tensor->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    case ONNX_TYPE_SEQUENCE:
      return is_same_type(a->sequence.element, b->sequence.element);
    case ONNX_TYPE_OPTIONAL:
      return is_same_type(a->optional.element, b->optional.element);
    case ONNX_TYPE_MAP:
      return a->map.key_type == b->map.key_type && is_same_type(a->map.value, b->map.value);
    default:
      return true;
  }
}

/* The shape of a tensor type; NULL: unknown. */
static const OrtTensorTypeAndShapeInfo* shape_of(const OrtTypeInfo* type) {
  return type != NULL && type->kind == ONNX_TYPE_TENSOR && type->tensor->has_shape ? type->tensor : NULL;
}

/* True unless both are known and differ in rank or a fixed dimension. The axis `left_out` of `b` does not
 * count (SIZE_MAX: none). */
static bool is_same_shape(const OrtTypeInfo* a, const OrtTypeInfo* b, size_t left_out) {
  const OrtTensorTypeAndShapeInfo *one = shape_of(a), *other = shape_of(b);
  if (one == NULL || other == NULL) return true;
  if (one->rank + (left_out < other->rank) != other->rank) return false;
  for (size_t i = 0; i < one->rank; i++) {
    int64_t dim = other->dims[i >= left_out ? i + 1 : i];
    if (one->dims[i] >= 0 && dim >= 0 && one->dims[i] != dim) return false;
  }
  return true;
}

/* ---- Errors ---- */

/* gives (caller releases with strbuf_release): "tensor(float)", with `shaped` "tensor(float) of shape {3,?}".
 */
static StrBuf type_text(const OrtTypeInfo* type, bool shaped) {
  StrBuf text = {0};
  char* name = type_info_text(type);
  const OrtTensorTypeAndShapeInfo* shape = shaped ? shape_of(type) : NULL;
  strbuf_append(&text, "%s%s", name != NULL ? name : "?", shape != NULL ? " of shape {" : "");
  for (size_t i = 0; shape != NULL && i < shape->rank; i++) {
    strbuf_append(&text, i == 0 ? "" : ",");
    if (shape->dims[i] >= 0)
      strbuf_append(&text, "%lld", (long long)shape->dims[i]);
    else
      strbuf_append(&text, "?");
  }
  if (shape != NULL) strbuf_append(&text, "}");
  mem_free(name);
  return text;
}

/* "node 'n' (Relu): WHAT 'value' is A, BUT B". `shaped`: it is the shapes that differ. gives (caller releases
 * with strbuf_release). */
static StrBuf contradiction_text(const OrtNode* node, const char* what, const char* value,
                                 const OrtTypeInfo* one, const char* but, const OrtTypeInfo* other,
                                 bool shaped) {
  StrBuf a = type_text(one, shaped), b = type_text(other, shaped), text = {0};
  char* at = node_text(node);
  strbuf_append(&text, "%s: %s '%s' is %s, %s %s", at != NULL ? at : "a node", what, value,
                a.failed ? "?" : a.text, but, b.failed ? "?" : b.text);
  mem_free(at);
  strbuf_release(&a);
  strbuf_release(&b);
  return text;
}

static OrtStatus* contradiction(const OrtNode* node, const char* what, const char* value,
                                const OrtTypeInfo* one, const char* but, const OrtTypeInfo* other,
                                bool shaped) {
  StrBuf text = contradiction_text(node, what, value, one, but, other, shaped);
  OrtStatus* status = status_new(ORT_FAIL, "Type Error: %s", text.failed ? value : text.text);
  strbuf_release(&text);
  return status;
}

/* ---- Inputs of a node ---- */

/* `text`: "tensor(float)". */
static bool is_of_text(TypeCheck* check, const OrtTypeInfo* type, const char* text) {
  static const char tensor[] = "tensor(";
  size_t prefix = sizeof tensor - 1, length = strlen(text);
  if (type->kind == ONNX_TYPE_SPARSETENSOR || type->kind == ONNX_TYPE_OPAQUE) return true; /* not parsed */
  bool is_tensor = strncmp(text, tensor, prefix) == 0;
  if (type->kind != ONNX_TYPE_TENSOR || !is_tensor)
    return (type->kind == ONNX_TYPE_TENSOR) == is_tensor &&
           is_same_type(type, infer_of_text(&check->infer, text));
  ONNXTensorElementDataType element = type->tensor->element_type;
  return element == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED ||
         element == element_type_of_name(text + prefix, length - prefix - 1);
}

static bool is_allowed(TypeCheck* check, const OpSchema* schema, const OpSchemaFormal* formal,
                       const OrtTypeInfo* type) {
  const OpSchemaConstraint* constraint = op_schema_constraint(schema, formal->type_str);
  if (type->kind == ONNX_TYPE_UNKNOWN) return true;
  if (constraint == NULL) return is_of_text(check, type, formal->type_str);
  for (size_t i = 0; i < constraint->type_count; i++) {
    if (is_of_text(check, type, constraint->types[i])) return true;
  }
  return false;
}

static OrtStatus* not_allowed(const OrtNode* node, size_t index, const OpSchema* schema,
                              const OpSchemaFormal* formal) {
  const OpSchemaConstraint* constraint = op_schema_constraint(schema, formal->type_str);
  StrBuf allowed = {0};
  for (size_t i = 0; constraint != NULL && i < constraint->type_count; i++)
    strbuf_append(&allowed, "%s%s", i == 0 ? "" : ", ", constraint->types[i]);
  if (constraint == NULL) strbuf_append(&allowed, "%s", formal->type_str);
  char *at = node_text(node), *type = type_info_text(node->inputs[index]->type);
  OrtStatus* status =
      status_new(ORT_INVALID_GRAPH, "Type Error: %s: input '%s' is %s, the operator's '%s' takes %s",
                 at != NULL ? at : "a node", node->inputs[index]->name, type != NULL ? type : "?",
                 formal->name, allowed.failed ? "?" : allowed.text);
  mem_free(at);
  mem_free(type);
  strbuf_release(&allowed);
  return status;
}

/* The node's first input that is of the same type parameter as input `index`. */
static const OrtValueInfo* first_of_parameter(const OrtNode* node, const OpSchema* schema, size_t index) {
  const char* parameter = op_schema_input(schema, index)->type_str;
  for (size_t i = 0; i < index; i++) {
    const OpSchemaFormal* formal = op_schema_input(schema, i);
    bool is_mixed = formal->option == OP_SCHEMA_VARIADIC && !formal->is_homogeneous;
    if (infer_input(node, i) != NULL && !is_mixed && strcmp(formal->type_str, parameter) == 0)
      return node->inputs[i];
  }
  return NULL;
}

static OrtStatus* check_inputs(TypeCheck* check, const OrtNode* node, const OpSchema* schema) {
  for (size_t i = 0; i < node->input_count; i++) {
    const OpSchemaFormal* formal = op_schema_input(schema, i);
    const OrtTypeInfo* type = infer_input(node, i);
    if (formal == NULL || type == NULL) continue;
    if (!is_allowed(check, schema, formal, type)) return not_allowed(node, i, schema, formal);
    if (formal->option == OP_SCHEMA_VARIADIC && !formal->is_homogeneous) continue;
    const OrtValueInfo* first = first_of_parameter(node, schema, i);
    if (first == NULL || is_same_type(first->type, type)) continue;
    char* but = str_format("but input '%s', which is of the same type parameter %s, is",
                           node->inputs[i]->name, formal->type_str);
    OrtStatus* status = contradiction(node, "input", first->name, first->type,
                                      but != NULL ? but : "but another is", type, false);
    mem_free(but);
    return status;
  }
  return NULL;
}

static bool is_node(const OrtNode* node, const char* op_type) {
  return node->domain[0] == '\0' && strcmp(node->op_type, op_type) == 0;
}

/* No type parameter says that a sequence gets elements of its own type. */
static OrtStatus* check_inserted(const OrtNode* node) {
  const OrtTypeInfo *sequence = infer_input(node, 0), *item = infer_input(node, 1);
  if (sequence == NULL || sequence->kind != ONNX_TYPE_SEQUENCE) return NULL;
  if (is_same_type(sequence->sequence.element, item)) return NULL;
  return contradiction(node, "input", node->inputs[1]->name, item, "but is to be inserted into", sequence,
                       false);
}

/* ---- Bodies of If, Loop, Scan and SequenceMap ---- */

/* Branches of an If make the same. */
static OrtStatus* check_branches(const OrtNode* node) {
  for (size_t i = 0; i < node->output_count; i++) {
    const OrtValueInfo* first = NULL;
    for (size_t k = 0; k < node->subgraph_count; k++) {
      const OrtGraph* branch = node->subgraphs[k];
      const OrtValueInfo* value = i < branch->output_count ? branch->outputs[i] : NULL;
      if (value == NULL) continue;
      if (first == NULL) first = value;
      if (!is_same_type(first->type, value->type))
        return contradiction(node, "a branch's output", first->name, first->type,
                             "but the other branch makes it as", value->type, false);
    }
  }
  return NULL;
}

/* What goes from one iteration into the next: Loop's values, Scan's states. */
typedef struct Carried {
  size_t first_input; /* of the node, and... */
  size_t body_input;  /* ...of the body: the first carried one */
  size_t body_output; /* of the body: the first carried one */
  size_t count;
  bool is_scan, has_batch;
} Carried;

static Carried carried_of(const OrtNode* node) {
  if (is_node(node, "SequenceMap")) return (Carried){.count = 0};
  bool is_scan = is_node(node, "Scan");
  const OrtOpAttr* scanned = is_scan ? node_find_attribute(node, "num_scan_inputs") : NULL;
  Carried carried = {.is_scan = is_scan, .has_batch = is_scan && node->since_version < 9};
  carried.first_input = carried.has_batch ? 1 : is_scan ? 0 : 2;
  carried.body_input = is_scan ? 0 : 2;
  carried.body_output = is_scan ? 0 : 1;
  size_t others = carried.first_input + (scanned != NULL && scanned->i > 0 ? (size_t)scanned->i : 0);
  carried.count = node->input_count > others ? node->input_count - others : 0;
  return carried;
}

/* The axis of a scanned input that its body does not see; SIZE_MAX: unknown. */
static size_t scanned_axis(const OrtNode* node, size_t index, const OrtTypeInfo* given) {
  const OrtOpAttr* axes = node_find_attribute(node, "scan_input_axes");
  const OrtTensorTypeAndShapeInfo* shape = shape_of(given);
  int64_t axis = axes != NULL && index < axes->count ? axes->ints[index] : 0;
  if (axis < 0 && shape != NULL) axis += (int64_t)shape->rank;
  return axis >= 0 && shape != NULL && axis < (int64_t)shape->rank ? (size_t)axis : SIZE_MAX;
}

/* What the body's input `index` gets; NULL: unknown. */
static const OrtTypeInfo* given_to_body(TypeCheck* check, const OrtNode* node, const Carried* carried,
                                        size_t index) {
  if (is_node(node, "Loop") && index < carried->body_input)
    return infer_tensor(
        &check->infer, index == 0 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 : ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL);
  const OrtTypeInfo* given = infer_input(node, index - carried->body_input + carried->first_input);
  bool is_map = is_node(node, "SequenceMap"); /* the body gets one element of each sequence */
  return is_map && given != NULL && given->kind == ONNX_TYPE_SEQUENCE ? given->sequence.element : given;
}

static OrtStatus* check_body_input(TypeCheck* check, const OrtNode* node, const Carried* carried,
                                   const OrtGraph* body, size_t index) {
  const OrtValueInfo* input = body->inputs[index];
  const OrtTypeInfo* given = given_to_body(check, node, carried, index);
  if (!is_same_type(input->type, given))
    return contradiction(node, "the body's input", input->name, input->type, "but it gets", given, false);
  if (!carried->is_scan || carried->has_batch)
    return NULL; /* shapes may change from iteration to iteration */
  bool is_state = index < carried->count;
  size_t axis = is_state ? SIZE_MAX : scanned_axis(node, index - carried->count, given);
  if ((!is_state && axis == SIZE_MAX) || is_same_shape(input->type, given, axis)) return NULL;
  return contradiction(node, "the body's input", input->name, input->type,
                       is_state ? "but it gets" : "but it gets slices of", given, true);
}

/* Values on their way through a body, other than tensors, may be optional ones in between. */
static OrtStatus* check_carried(const OrtNode* node, const Carried* carried, const OrtGraph* body) {
  for (size_t i = 0; i < carried->count; i++) {
    if (carried->body_input + i >= body->input_count || carried->body_output + i >= body->output_count)
      return NULL;
    const OrtValueInfo* input = body->inputs[carried->body_input + i];
    const OrtValueInfo* output = body->outputs[carried->body_output + i];
    bool are_tensors = input->type != NULL && output->type != NULL && input->type->kind == ONNX_TYPE_TENSOR &&
                       output->type->kind == ONNX_TYPE_TENSOR;
    if (are_tensors && !is_same_type(input->type, output->type))
      return contradiction(node, "the body's output", output->name, output->type,
                           "but the next iteration's input is", input->type, false);
  }
  return NULL;
}

static OrtStatus* check_graph(TypeCheck* check, const OrtGraph* graph);

static OrtStatus* check_bodies(TypeCheck* check, const OrtNode* node) {
  bool has_iterations = is_node(node, "Loop") || is_node(node, "Scan") || is_node(node, "SequenceMap");
  for (size_t i = 0; i < node->subgraph_count; i++) {
    const OrtGraph* body = node->subgraphs[i];
    Carried carried = carried_of(node);
    for (size_t k = 0; has_iterations && k < body->input_count; k++)
      TRY(check_body_input(check, node, &carried, body, k));
    TRY(check_graph(check, body));
    if (has_iterations) TRY(check_carried(node, &carried, body));
  }
  return is_node(node, "If") ? check_branches(node) : NULL;
}

/* ---- Nodes, initializers, graphs ---- */

/* Operators whose first output has the shape of their first input. */
static bool keeps_shape(const OrtNode* node) {
  static const char* const ops[] = {
      "Abs",        "Acos",     "Acosh",    "Asin",  "Asinh",          "Atan",      "Atanh",
      "Cast",       "CastLike", "Ceil",     "Celu",  "Clip",           "Cos",       "Cosh",
      "CumSum",     "Elu",      "Erf",      "Exp",   "Floor",          "Gelu",      "HardSigmoid",
      "HardSwish",  "Hardmax",  "Identity", "IsInf", "IsNaN",          "LeakyRelu", "Log",
      "LogSoftmax", "Mish",     "Neg",      "Not",   "Reciprocal",     "Relu",      "Round",
      "Selu",       "Sigmoid",  "Sign",     "Sin",   "Sinh",           "Softmax",   "Softplus",
      "Softsign",   "Sqrt",     "Tan",      "Tanh",  "ThresholdedRelu"};
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    if (is_node(node, ops[i])) return true;
  }
  return false;
}

/* As in stock ORT, nothing is known any more of what contradicts. */
static void merge_shape(const TypeCheck* check, const OrtNode* node, const OrtValueInfo* value,
                        const OrtTypeInfo* made) {
  StrBuf text =
      contradiction_text(node, "output", value->name, made, "but it is declared as", value->type, true);
  LOG(check->logger, WARNING, "%s", text.failed ? value->name : text.text);
  strbuf_release(&text);
  OrtTensorTypeAndShapeInfo* shape = value->type->tensor;
  shape->has_shape = shape->rank == made->tensor->rank;
  for (size_t i = 0; i < shape->rank && shape->has_shape; i++) {
    if (shape->dims[i] != made->tensor->dims[i] && made->tensor->dims[i] >= 0) shape->dims[i] = -1;
  }
  if (!shape->has_shape) shape->rank = 0;
}

static OrtStatus* check_output(TypeCheck* check, const OrtNode* node, const OpSchema* schema, size_t index) {
  const OrtValueInfo* value = node->outputs[index];
  if (value == NULL || value->type == NULL) return NULL;
  const OrtTypeInfo* made = infer_output(&check->infer, node, schema, index);
  if (!is_same_type(value->type, made))
    return contradiction(node, "output", value->name, made, "but it is declared as", value->type, false);
  if (shape_of(value->type) == NULL) return NULL;
  if (index == 0 && shape_of(made) == NULL && keeps_shape(node)) made = infer_input(node, 0);
  if (!is_same_shape(value->type, made, SIZE_MAX)) merge_shape(check, node, value, made);
  return NULL;
}

static OrtStatus* check_node_types(TypeCheck* check, const OrtNode* node) {
  const OpSchema* schema = node_schema(node);
  if (schema != NULL) TRY(check_inputs(check, node, schema));
  if (is_node(node, "SequenceInsert")) TRY(check_inserted(node));
  TRY(check_bodies(check, node));
  for (size_t i = 0; i < node->output_count; i++) TRY(check_output(check, node, schema, i));
  return NULL;
}

static OrtStatus* check_initializer(const OrtValueInfo* value, const OrtTypeInfo* is) {
  bool shaped = is_same_type(value->type, is);
  if (shaped && is_same_shape(value->type, is, SIZE_MAX)) return NULL;
  StrBuf data = type_text(is, shaped), declared = type_text(value->type, shaped);
  OrtStatus* status =
      status_new(ORT_FAIL, "Type Error: initializer '%s' is %s, but the graph's input of that name is %s",
                 value->name, data.failed ? "?" : data.text, declared.failed ? "?" : declared.text);
  strbuf_release(&data);
  strbuf_release(&declared);
  return status;
}

static OrtStatus* check_initializers(const OrtGraph* graph) {
  for (size_t i = 0; i < graph->initializer_count; i++) {
    const OrtValueInfo* value = graph->initializers[i];
    const OrtValue* tensor = value->initializer;
    OrtTensorTypeAndShapeInfo shape = {
        .element_type = tensor->element_type, .has_shape = true, .rank = tensor->rank, .dims = tensor->dims};
    const OrtTypeInfo is = {.kind = ONNX_TYPE_TENSOR, .tensor = &shape};
    TRY(check_initializer(value, &is));
  }
  return NULL;
}

static OrtStatus* check_graph(TypeCheck* check, const OrtGraph* graph) {
  TRY(check_initializers(graph));
  for (size_t i = 0; i < graph->node_count; i++) TRY(check_node_types(check, graph->nodes[i]));
  return NULL;
}

/* Nothing else tells what callers give. */
static OrtStatus* check_model_inputs(const OrtGraph* graph) {
  for (size_t i = 0; i < graph->input_count; i++) {
    const OrtTypeInfo* type = graph->inputs[i]->type;
    bool is_unknown = type == NULL || (type->kind == ONNX_TYPE_TENSOR &&
                                       type->tensor->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
    if (is_unknown)
      return status_new(ORT_FAIL, "the model's input '%s' does not have type information",
                        graph->inputs[i]->name);
  }
  return NULL;
}

OrtStatus* model_check_types(OrtModel* model, const OrtLogger* logger) {
  TypeCheck check = {.infer = {.model = model}, .logger = logger};
  TRY(check_model_inputs(model->graph));
  TRY(check_graph(&check, model->graph));
  return check.infer.no_memory ? status_no_memory() : NULL;
}
