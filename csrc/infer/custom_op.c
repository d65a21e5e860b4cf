/* Schemas out of OrtCustomOps. Only what the version of each struct has is asked for. */
#include "infer/infer.h"

#include <limits.h>
#include <string.h>

#include "infer/infer.h"
#include "infer/type_infer.h"

/* ---- What an OrtCustomOp says ---- */

uint32_t custom_op_version(const OrtCustomOp* op) {
  uint32_t version = op->version;
  return version == 0 ? 1 : version < ORT_API_VERSION ? version : ORT_API_VERSION;
}

void custom_op_versions(const OrtCustomOp* op, int* first, int* last, OrtStatus** thrown) {
  bool has_range = custom_op_version(op) >= 17 && op->GetStartVersion != NULL && op->GetEndVersion != NULL;
  *first = has_range ? call_OrtCustomOp_GetStartVersion(op, thrown) : 1;
  *last = has_range ? call_OrtCustomOp_GetEndVersion(op, thrown) : INT_MAX;
  if (*last < 0) *last = INT_MAX; /* -1, or the largest uint32_t: there is no end */
}

static size_t formal_count(const OrtCustomOp* op, bool is_input, OrtStatus** thrown) {
  return is_input ? call_OrtCustomOp_GetInputTypeCount(op, thrown)
                  : call_OrtCustomOp_GetOutputTypeCount(op, thrown);
}

static ONNXTensorElementDataType formal_type(const OrtCustomOp* op, size_t index, bool is_input,
                                             OrtStatus** thrown) {
  return is_input ? call_OrtCustomOp_GetInputType(op, index, thrown)
                  : call_OrtCustomOp_GetOutputType(op, index, thrown);
}

/* Required, optional or variadic; `formal` gets what else there is to a variadic one. */
static void read_characteristic(const OrtCustomOp* op, size_t index, bool is_input, OpSchemaFormal* formal,
                                OrtStatus** thrown) {
  uint32_t version = custom_op_version(op);
  OrtCustomOpInputOutputCharacteristic kind = INPUT_OUTPUT_REQUIRED;
  if (version >= 8 && is_input && op->GetInputCharacteristic != NULL)
    kind = call_OrtCustomOp_GetInputCharacteristic(op, index, thrown);
  if (version >= 8 && !is_input && op->GetOutputCharacteristic != NULL)
    kind = call_OrtCustomOp_GetOutputCharacteristic(op, index, thrown);
  formal->option = OP_SCHEMA_SINGLE;
  formal->min_arity = 1;
  formal->is_homogeneous = true;
  if (kind == INPUT_OUTPUT_OPTIONAL) formal->option = OP_SCHEMA_OPTIONAL;
  if (kind != INPUT_OUTPUT_VARIADIC || version < 14) return;
  formal->option = OP_SCHEMA_VARIADIC;
  int least = 1, homogeneity = 1;
  if (is_input && op->GetVariadicInputMinArity != NULL)
    least = call_OrtCustomOp_GetVariadicInputMinArity(op, thrown);
  if (!is_input && op->GetVariadicOutputMinArity != NULL)
    least = call_OrtCustomOp_GetVariadicOutputMinArity(op, thrown);
  if (is_input && op->GetVariadicInputHomogeneity != NULL)
    homogeneity = call_OrtCustomOp_GetVariadicInputHomogeneity(op, thrown);
  if (!is_input && op->GetVariadicOutputHomogeneity != NULL)
    homogeneity = call_OrtCustomOp_GetVariadicOutputHomogeneity(op, thrown);
  formal->min_arity = (uint8_t)(least < 0 ? 0 : least > UINT8_MAX ? UINT8_MAX : least);
  formal->is_homogeneous = homogeneity != 0;
}

/* ---- Schemas ---- */

#define TENSOR_TYPE_COUNT ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0

/* "tensor(float)", in the model's arena; NULL: no memory. */
static const char* tensor_type_name(OrtModel* model, ONNXTensorElementDataType type) {
  char* text = str_format("tensor(%s)", element_type_name(type));
  const char* name = text != NULL ? arena_str(&model->arena, text, strlen(text)) : NULL;
  mem_free(text);
  return name;
}

/* The types that some OrtCustomOp of the name takes for a formal. */
static OrtStatus* fill_types(OrtModel* model, const CustomOp* custom, size_t index, bool is_input,
                             OpSchemaConstraint* out, OrtStatus** thrown) {
  bool is_allowed[TENSOR_TYPE_COUNT + 1] = {false};
  bool is_any = false;
  for (size_t i = 0; i < custom->count; i++) {
    int type = (int)formal_type(custom->ops[i], index, is_input, thrown);
    if (type < 0 || type > TENSOR_TYPE_COUNT)
      return status_new(ORT_INVALID_ARGUMENT, "%s %zu has the unknown element type %d",
                        is_input ? "input" : "output", index, type);
    is_any = is_any || type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    is_allowed[type] = true;
  }
  const char** types = arena_calloc(&model->arena, TENSOR_TYPE_COUNT, sizeof *types);
  if (types == NULL) return status_no_memory();
  for (int type = 1; type <= TENSOR_TYPE_COUNT; type++) {
    if (!is_any && !is_allowed[type]) continue;
    types[out->type_count] = tensor_type_name(model, (ONNXTensorElementDataType)type);
    if (types[out->type_count++] == NULL) return status_no_memory();
  }
  out->types = types;
  return NULL;
}

/* All OrtCustomOps of one name have as many inputs and outputs, of the same kinds. */
static OrtStatus* check_overloads(const CustomOp* custom, size_t count, bool is_input, OrtStatus** thrown) {
  const char* what = is_input ? "inputs" : "outputs";
  for (size_t i = 0; i < custom->count; i++) {
    size_t other_count = formal_count(custom->ops[i], is_input, thrown);
    if (other_count != count)
      return status_new(ORT_INVALID_ARGUMENT, "it is there more than once, with %zu and %zu %s", count,
                        other_count, what);
    for (size_t k = 0; k < count; k++) {
      OpSchemaFormal known = {0}, other = {0};
      read_characteristic(custom->ops[0], k, is_input, &known, thrown);
      read_characteristic(custom->ops[i], k, is_input, &other, thrown);
      if (known.option != other.option || known.min_arity != other.min_arity ||
          known.is_homogeneous != other.is_homogeneous)
        return status_new(ORT_INVALID_ARGUMENT,
                          "it is there more than once, and its %s %zu are not of one kind", what, k);
      if (known.option == OP_SCHEMA_VARIADIC && k + 1 != count)
        return status_new(ORT_INVALID_ARGUMENT, "of its %s number %zu is variadic, but only the last may be",
                          what, k);
    }
  }
  return NULL;
}

/* Fills in the inputs or outputs; constraints are appended to the schema's. */
static OrtStatus* fill_formals(OrtModel* model, const CustomOp* custom, bool is_input,
                               OpSchemaFormal* formals, size_t count, OpSchemaConstraint* constraints,
                               int* least, int* most, OrtStatus** thrown) {
  TRY(check_overloads(custom, count, is_input, thrown));
  *least = 0;
  *most = (int)count;
  for (size_t i = 0; i < count; i++) {
    char* text = str_format("%s%zu", is_input ? "Input" : "Output", i);
    const char* name = text != NULL ? arena_str(&model->arena, text, strlen(text)) : NULL;
    mem_free(text);
    if (name == NULL) return status_no_memory();
    formals[i].name = formals[i].type_str = constraints[i].name = name;
    read_characteristic(custom->ops[0], i, is_input, &formals[i], thrown);
    if (formals[i].option == OP_SCHEMA_SINGLE) *least = (int)i + 1;
    if (formals[i].option == OP_SCHEMA_VARIADIC) {
      *most = INT_MAX;
      if (formals[i].min_arity != 0) *least = (int)i + formals[i].min_arity;
    }
    TRY(fill_types(model, custom, i, is_input, &constraints[i], thrown));
  }
  return NULL;
}

/* *thrown: what the first query that threw, threw; nothing of the schema counts then. */
static OrtStatus* fill_schema(OrtModel* model, CustomOp* custom, OrtStatus** thrown) {
  const OrtCustomOp* op = custom->ops[0];
  OpSchema* schema = &custom->schema;
  size_t inputs = formal_count(op, true, thrown), outputs = formal_count(op, false, thrown);
  if (inputs > INT16_MAX || outputs > INT16_MAX)
    return status_new(ORT_INVALID_ARGUMENT, "it says that it has %zu inputs and %zu outputs", inputs,
                      outputs);
  OpSchemaFormal* formals = arena_calloc(&model->arena, inputs + outputs, sizeof *formals);
  OpSchemaConstraint* constraints = arena_calloc(&model->arena, inputs + outputs, sizeof *constraints);
  if (formals == NULL || constraints == NULL) return status_no_memory();
  schema->inputs = formals;
  schema->outputs = formals + inputs;
  schema->constraints = constraints;
  schema->input_count = (uint16_t)inputs;
  schema->output_count = (uint16_t)outputs;
  schema->constraint_count = (uint16_t)(inputs + outputs);
  int last;
  custom_op_versions(op, &schema->since_version, &last, thrown);
  TRY(fill_formals(model, custom, true, formals, inputs, constraints, &schema->min_input, &schema->max_input,
                   thrown));
  return fill_formals(model, custom, false, formals + inputs, outputs, constraints + inputs,
                      &schema->min_output, &schema->max_output, thrown);
}

/* The operator of the model, made if it is not there yet. NULL: no memory. */
static CustomOp* get_or_add(OrtModel* model, const char* domain, const char* name) {
  CustomOp* custom = model_custom_op(model, domain, name);
  if (custom != NULL) return custom;
  custom = arena_alloc(&model->arena, sizeof *custom);
  char* own_domain = arena_str(&model->arena, domain, strlen(domain));
  char* own_name = arena_str(&model->arena, name, strlen(name));
  if (custom == NULL || own_domain == NULL || own_name == NULL) return NULL;
  custom->origin = NULL;
  custom->schema.domain = own_domain;
  custom->schema.name = own_name;
  custom->next = name_map_get(&model->custom_ops, name);
  return name_map_put(&model->custom_ops, own_name, custom) ? custom : NULL;
}

static OrtStatus* add_op(OrtModel* model, const OrtCustomOpDomain* domain, const OrtCustomOp* op,
                         bool is_of_ep) {
  OrtStatus* thrown = NULL;
  const char* name = call_OrtCustomOp_GetName(op, &thrown);
  TRY(thrown);
  CustomOp* custom = get_or_add(model, domain->name, name);
  if (custom == NULL) return status_no_memory();
  if (custom->origin == NULL) custom->origin = domain;
  if (is_of_ep && custom->origin != domain) return NULL;
  for (size_t i = 0; i < custom->count; i++) {
    if (custom->ops[i] == op) return NULL; /* two domains of one name have it */
  }
  if (custom->count == custom->capacity) {
    size_t capacity = custom->capacity * 2 + 1;
    const OrtCustomOp** grown = arena_calloc(&model->arena, capacity, sizeof *grown);
    if (grown == NULL) return status_no_memory();
    for (size_t i = 0; i < custom->count; i++) grown[i] = custom->ops[i];
    custom->ops = grown;
    custom->capacity = capacity;
  }
  custom->ops[custom->count++] = op;
  return NULL;
}

static OrtStatus* fill_schemas(OrtModel* model) {
  for (size_t i = 0; i < model->custom_ops.capacity; i++) {
    const NameMapEntry* entry = &model->custom_ops.entries[i];
    for (CustomOp* custom = entry->name != NULL ? entry->value : NULL; custom != NULL;
         custom = custom->next) {
      OrtStatus* thrown = NULL;
      OrtStatus* status = fill_schema(model, custom, &thrown);
      if (thrown != NULL) {
        status_release(status);
        status = thrown;
      }
      if (status != NULL)
        return status_wrap(status, "custom operator '%s' of domain '%s'", custom->schema.name,
                           custom->schema.domain[0] != '\0' ? custom->schema.domain : "ai.onnx");
    }
  }
  return NULL;
}

/* The nodes of custom operators get their version, and are held against the schema. */
static OrtStatus* resolve_nodes(OrtModel* model) {
  for (OrtGraph* graph = model->graphs; graph != NULL; graph = graph->next_graph) {
    for (size_t i = 0; i < graph->node_count; i++) {
      OrtNode* node = graph->nodes[i];
      const CustomOp* custom = node_custom_op(node);
      if (custom == NULL) continue;
      node->since_version = custom->schema.since_version;
      OrtStatus* status = check_node_counts(node, &custom->schema);
      if (status == NULL) continue;
      char* text = node_text(node);
      status = status_wrap(status, "%s", text != NULL ? text : "node");
      mem_free(text);
      return status;
    }
  }
  return NULL;
}

OrtStatus* model_add_custom_ops(OrtModel* model, const OrtCustomOpDomain* const* domains, size_t count,
                                size_t ep_count) {
  if (count == 0) return NULL;
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < domains[i]->count; k++)
      TRY(add_op(model, domains[i], domains[i]->ops[k], i + ep_count >= count));
  }
  TRY(fill_schemas(model));
  TRY(resolve_nodes(model));
  return model_infer_types(model);
}

/* ---- Types ---- */

/* The formal that stands for a position; SIZE_MAX past the end. */
static size_t formal_index(const OpSchema* schema, size_t position, bool is_input) {
  size_t count = is_input ? schema->input_count : schema->output_count;
  const OpSchemaFormal* formals = is_input ? schema->inputs : schema->outputs;
  if (position < count) return position;
  return count != 0 && formals[count - 1].option == OP_SCHEMA_VARIADIC ? count - 1 : SIZE_MAX;
}

static ONNXTensorElementDataType tensor_element(const OrtTypeInfo* type) {
  return type != NULL && type->kind == ONNX_TYPE_TENSOR ? type->tensor->element_type
                                                        : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

/* True if `op` takes the node's inputs, as far as they are known. */
static bool takes_inputs(const CustomOp* custom, const OrtCustomOp* op, const OrtNode* node,
                         ONNXTensorElementDataType* dynamic) {
  ONNXTensorElementDataType shared = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED; /* by the variadic inputs */
  *dynamic = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  for (size_t i = 0; i < node->input_count; i++) {
    size_t index = formal_index(&custom->schema, i, true);
    const OrtTypeInfo* type = infer_input(node, i);
    if (index == SIZE_MAX || type == NULL) continue;
    const OpSchemaFormal* formal = &custom->schema.inputs[index];
    if (formal->option == OP_SCHEMA_VARIADIC && !formal->is_homogeneous) continue;
    ONNXTensorElementDataType wanted = formal_type(op, index, true, NULL), given = tensor_element(type);
    if (type->kind != ONNX_TYPE_TENSOR) return false;
    if (formal->option == OP_SCHEMA_VARIADIC && given != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
      if (shared != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED && shared != given) return false;
      shared = given;
    }
    if (wanted == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
      *dynamic = given;
    else if (given != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED && given != wanted)
      return false;
  }
  return true;
}

const OrtCustomOp* custom_op_select(const CustomOp* custom, const OrtNode* node,
                                    ONNXTensorElementDataType* dynamic) {
  ONNXTensorElementDataType type;
  for (size_t i = 0; i < custom->count; i++) {
    if (!takes_inputs(custom, custom->ops[i], node, &type)) continue;
    if (dynamic != NULL) *dynamic = type;
    return custom->ops[i];
  }
  return NULL;
}

OrtTypeInfo* infer_by_custom_op(TypeInfer* infer, const OrtNode* node, size_t output, bool* found) {
  const CustomOp* custom = node_custom_op(node);
  *found = custom != NULL;
  size_t index = custom != NULL ? formal_index(&custom->schema, output, false) : SIZE_MAX;
  if (index == SIZE_MAX) return NULL;
  const OpSchemaFormal* formal = &custom->schema.outputs[index];
  ONNXTensorElementDataType dynamic;
  const OrtCustomOp* op = custom_op_select(custom, node, &dynamic);
  if (op == NULL || (formal->option == OP_SCHEMA_VARIADIC && !formal->is_homogeneous)) return NULL;
  ONNXTensorElementDataType type = formal_type(op, index, false, NULL);
  return infer_tensor(infer, type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED ? type : dynamic);
}
