/* FunctionProto: the model's own functions. A call is replaced by the function's body when the model is read.
 */
#include <string.h>

#include "onnx/reader.h"

enum {
  FUNCTION_NAME = 1,
  FUNCTION_INPUT = 4,
  FUNCTION_OUTPUT = 5,
  FUNCTION_NODE = 7,
  FUNCTION_OPSET_IMPORT = 9,
  FUNCTION_DOMAIN = 10,
  FUNCTION_DEFAULT_ATTRIBUTE = 11,
  FUNCTION_OVERLOAD = 13,
  NODE_INPUT = 1,
  NODE_OUTPUT = 2,
  NODE_ATTRIBUTE = 5,
  ATTR_NAME = 1,
  ATTR_REF_NAME = 21,
};

/* gives (caller releases with mem_free). Names hold no newline in practice; one that does finds no function.
 */
static char* function_key(const char* domain, const char* name, const char* overload) {
  return str_format("%s\n%s\n%s", domain, name, overload);
}

static OrtStatus* read_function_names(Reader* reader, Function* function, size_t* opset_count) {
  function->name = function->domain = function->overload = (char*)"";
  Wire wire = wire_of_field(&function->field);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(FUNCTION_NAME, WIRE_BYTES))
      TRY(read_name(reader, &part, "function", &function->name));
    if (part.tag == WIRE_TAG(FUNCTION_DOMAIN, WIRE_BYTES))
      TRY(read_name(reader, &part, "domain of function", &function->domain));
    if (part.tag == WIRE_TAG(FUNCTION_OVERLOAD, WIRE_BYTES))
      TRY(read_name(reader, &part, "overload of function", &function->overload));
    *opset_count += part.tag == WIRE_TAG(FUNCTION_OPSET_IMPORT, WIRE_BYTES);
  }
  if (strcmp(function->domain, "ai.onnx") == 0) function->domain = (char*)"";
  return check_wire(&wire, "function", function->name);
}

OrtStatus* read_function(Reader* reader, const WireField* field) {
  Arena* arena = &reader->model->arena;
  size_t opset_count = 0;
  Function* function = arena_alloc(arena, sizeof *function);
  if (function == NULL) return status_no_memory();
  function->field = *field;
  TRY(read_function_names(reader, function, &opset_count));
  if (opset_count > MAX_OPSET_IMPORTS)
    return status_new(ORT_INVALID_GRAPH, "function '%s' imports %zu operator sets", function->name,
                      opset_count);
  function->opsets = arena_calloc(arena, opset_count, sizeof *function->opsets);
  if (function->opsets == NULL) return status_no_memory();
  Wire wire = wire_of_field(field);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(FUNCTION_OPSET_IMPORT, WIRE_BYTES))
      TRY(read_opset(reader, &part, function->opsets, &function->opset_count));
  }
  char* key = function_key(function->domain, function->name, function->overload);
  char* kept = key != NULL ? arena_str(arena, key, strlen(key)) : NULL;
  mem_free(key);
  if (kept == NULL) return status_no_memory();
  if (name_map_get(&reader->functions, kept) != NULL)
    return status_new(ORT_INVALID_GRAPH, "function '%s' of domain '%s' is defined twice", function->name,
                      function->domain);
  return name_map_put(&reader->functions, kept, function) ? NULL : status_no_memory();
}

OrtStatus* find_function(const Reader* reader, const OrtNode* node, const char* overload,
                         const Function** out) {
  *out = NULL;
  if (reader->functions.count == 0) return NULL;
  char* key = function_key(node->domain, node->op_type, overload);
  if (key == NULL) return status_no_memory();
  *out = name_map_get(&reader->functions, key);
  mem_free(key);
  return NULL;
}

/* ---- What a call gives to its function ---- */

/* The texts of a repeated string field. */
static OrtStatus* read_texts(Reader* reader, const WireField* field, uint32_t tag, char*** out,
                             size_t* count) {
  Wire wire = wire_of_field(field);
  WireField part;
  *count = 0;
  while (wire_next(&wire, &part)) *count += part.tag == tag;
  *out = arena_calloc(&reader->model->arena, *count, sizeof(char*));
  if (*out == NULL) return status_no_memory();
  wire = wire_of_field(field);
  for (size_t i = 0; wire_next(&wire, &part);) {
    if (part.tag == tag) TRY(read_name(reader, &part, "function", &(*out)[i++]));
  }
  return NULL;
}

/* Pairs the function's inputs or outputs with those of the call. Inputs that the call leaves out are missing
 * ones; outputs that it leaves out are values of the body like others. */
static OrtStatus* bind_names(Reader* reader, FunctionScope* scope, const WireField* call, bool is_output) {
  char **formals = NULL, **actuals = NULL;
  size_t formal_count = 0, actual_count = 0;
  uint32_t formal_tag = WIRE_TAG(is_output ? FUNCTION_OUTPUT : FUNCTION_INPUT, WIRE_BYTES);
  uint32_t actual_tag = WIRE_TAG(is_output ? NODE_OUTPUT : NODE_INPUT, WIRE_BYTES);
  TRY(read_texts(reader, &scope->function->field, formal_tag, &formals, &formal_count));
  TRY(read_texts(reader, call, actual_tag, &actuals, &actual_count));
  if (actual_count > formal_count)
    return status_new(ORT_INVALID_GRAPH, "it has %zu %s, its function has %zu", actual_count,
                      is_output ? "outputs" : "inputs", formal_count);
  FormalName* names = arena_calloc(&reader->model->arena, formal_count, sizeof *names);
  if (is_output) scope->again = arena_calloc(&reader->model->arena, formal_count, sizeof *scope->again);
  if (names == NULL || (is_output && scope->again == NULL)) return status_no_memory();
  for (size_t i = 0; i < formal_count; i++) {
    names[i] = (FormalName){i < actual_count ? actuals[i] : (char*)"", is_output};
    if (is_output && names[i].actual[0] == '\0') continue;
    bool is_known = name_map_get(&scope->formals, formals[i]) != NULL;
    if (is_known && !is_output)
      return status_new(ORT_INVALID_GRAPH, "its function names its input '%s' twice", formals[i]);
    if (is_known)
      scope->again[scope->again_count++] = (OutputAgain){formals[i], names[i].actual};
    else if (!name_map_put(&scope->formals, formals[i], &names[i]))
      return status_no_memory();
  }
  return NULL;
}

/* Name of an attribute, and the name of the function's attribute that it refers to. */
static OrtStatus* read_attribute_names(Reader* reader, const WireField* field, char** name,
                                       char** reference) {
  Wire wire = wire_of_field(field);
  WireField part;
  *name = *reference = (char*)"";
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(ATTR_NAME, WIRE_BYTES)) TRY(read_name(reader, &part, "attribute", name));
    if (part.tag == WIRE_TAG(ATTR_REF_NAME, WIRE_BYTES))
      TRY(read_name(reader, &part, "attribute", reference));
  }
  return check_wire(&wire, "attribute", *name);
}

/* Adds the attributes of the call, or the function's defaults for those that it does not give. */
static OrtStatus* bind_attributes(Reader* reader, FunctionScope* scope, const WireField* message,
                                  uint32_t tag) {
  Wire wire = wire_of_field(message);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag != tag) continue;
    char *name = NULL, *reference = NULL;
    TRY(read_attribute_names(reader, &part, &name, &reference));
    const WireField* given = reference[0] != '\0' ? scope_attribute(scope->caller, reference) : &part;
    if (given == NULL || scope_attribute(scope, name) != NULL) continue;
    scope->attributes[scope->attribute_count++] = (CallAttribute){name, *given};
  }
  return NULL;
}

static size_t count_fields(const WireField* message, uint32_t tag) {
  Wire wire = wire_of_field(message);
  WireField part;
  size_t count = 0;
  while (wire_next(&wire, &part)) count += part.tag == tag;
  return count;
}

static OrtStatus* bind_call(Reader* reader, FunctionScope* scope, const WireField* call) {
  const WireField* function = &scope->function->field;
  uint32_t call_tag = WIRE_TAG(NODE_ATTRIBUTE, WIRE_BYTES);
  uint32_t default_tag = WIRE_TAG(FUNCTION_DEFAULT_ATTRIBUTE, WIRE_BYTES);
  size_t count = count_fields(call, call_tag) + count_fields(function, default_tag);
  if (count > MAX_CALL_ATTRIBUTES) return status_new(ORT_INVALID_GRAPH, "it has %zu attributes", count);
  scope->attributes = arena_calloc(&reader->model->arena, count, sizeof *scope->attributes);
  if (scope->attributes == NULL) return status_no_memory();
  TRY(bind_names(reader, scope, call, false));
  TRY(bind_names(reader, scope, call, true));
  TRY(bind_attributes(reader, scope, call, call_tag));
  return bind_attributes(reader, scope, function, default_tag);
}

/* ---- The body ---- */

static OrtStatus* new_scope(Reader* reader, const OrtNode* node, const Function* function,
                            FunctionScope** out) {
  Arena* arena = &reader->model->arena;
  FunctionScope* scope = arena_alloc(arena, sizeof *scope);
  char* prefix = str_format("%s_%zu/", function->name, reader->expanded_nodes);
  if (scope == NULL || prefix == NULL) {
    mem_free(prefix);
    return status_no_memory();
  }
  scope->prefix = arena_str(arena, prefix, strlen(prefix));
  mem_free(prefix);
  if (scope->prefix == NULL) return status_no_memory();
  scope->next = reader->scopes;
  reader->scopes = scope;
  scope->caller = reader->scope;
  scope->graph = node->graph;
  scope->function = function;
  scope->depth = reader->scope != NULL ? reader->scope->depth + 1 : 1;
  *out = scope;
  return NULL;
}

OrtStatus* count_expansion(Reader* reader, const WireField* field) {
  reader->expanded_nodes++;
  reader->expanded_bytes +=
      field->size; /* of the model's bytes each time: cannot overflow before it is checked */
  if (reader->expanded_nodes <= MAX_EXPANDED_NODES && reader->expanded_bytes <= MAX_EXPANDED_BYTES)
    return NULL;
  return status_new(ORT_INVALID_GRAPH,
                    "calls of the model's functions become more than %d nodes or %zu bytes",
                    MAX_EXPANDED_NODES, MAX_EXPANDED_BYTES);
}

static OrtStatus* read_body(Reader* reader, const Function* function, OrtGraph* graph, NodeList* list) {
  Wire wire = wire_of_field(&function->field);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag != WIRE_TAG(FUNCTION_NODE, WIRE_BYTES)) continue;
    TRY(count_expansion(reader, &part));
    TRY(read_node_outputs(reader, &part, graph, list));
  }
  return NULL;
}

/* A NodeProto that only says what its input is: the rest of the node is made by hand. */
static OrtStatus* field_with_input(Reader* reader, const char* name, WireField* out) {
  uint8_t size[10];
  size_t length = strlen(name), size_bytes = 0;
  for (size_t left = length; size_bytes == 0 || left != 0; left >>= 7)
    size[size_bytes++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
  uint8_t* bytes = arena_alloc(&reader->model->arena, 1 + size_bytes + length);
  if (bytes == NULL) return status_no_memory();
  bytes[0] = WIRE_TAG(NODE_INPUT, WIRE_BYTES);
  memcpy(bytes + 1, size, size_bytes);
  memcpy(bytes + 1 + size_bytes, name, length);
  *out = (WireField){.tag = WIRE_TAG(1, WIRE_BYTES), .data = bytes, .size = 1 + size_bytes + length};
  return NULL;
}

/* An Identity makes the caller's value of what the body gives back once more. reader->scope: the caller's. */
static OrtStatus* give_again(Reader* reader, FunctionScope* scope, const OutputAgain* again, NodeList* list) {
  Arena* arena = &reader->model->arena;
  WireField field;
  TRY(field_with_input(reader, again->formal, &field));
  TRY(count_expansion(reader, &field));
  int opset = find_opset(scope->function->opsets, scope->function->opset_count, "");
  if (opset == 0) opset = model_opset(reader->model, "");
  const OpSchema* schema = op_schema_find("", "Identity", opset);
  if (schema == NULL)
    return status_new(ORT_INVALID_GRAPH,
                      "its function gives '%s' back as it is, or twice, and imports no ONNX operator set",
                      again->formal);
  OrtNode* node = arena_alloc(arena, sizeof *node);
  OrtValueInfo** values = arena_calloc(arena, 2, sizeof *values);
  if (node == NULL || values == NULL) return status_no_memory();
  *node = (OrtNode){.id = scope->graph->next_node_id,
                    .graph = scope->graph,
                    .name = (char*)"",
                    .op_type = (char*)"Identity",
                    .domain = (char*)"",
                    .since_version = schema->since_version,
                    .inputs = values,
                    .input_count = 1,
                    .outputs = values + 1,
                    .output_count = 1};
  TRY(define_value(reader, scope->graph, again->actual, &values[1]));
  values[1]->producer = node;
  if (!ARRAY_RESERVE(list->items, list->capacity, list->count + 1)) return status_no_memory();
  list->items[list->count++] = (PendingNode){node, field, scope};
  scope->graph->next_node_id++;
  return NULL;
}

OrtStatus* expand_call(Reader* reader, const WireField* call, const OrtNode* node, const Function* function,
                       NodeList* list) {
  FunctionScope *scope = NULL, *around = reader->scope;
  if (around != NULL && around->depth >= MAX_CALL_DEPTH)
    return status_new(ORT_INVALID_GRAPH, "functions call each other more than %d deep", MAX_CALL_DEPTH);
  TRY(count_expansion(reader, call));
  TRY(new_scope(reader, node, function, &scope));
  TRY(bind_call(reader, scope, call));
  reader->scope = scope;
  OrtStatus* status = read_body(reader, function, node->graph, list);
  reader->scope = around;
  for (size_t i = 0; i < scope->again_count && status == NULL; i++)
    status = give_again(reader, scope, &scope->again[i], list);
  return status;
}
