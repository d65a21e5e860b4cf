/* Names in the bodies of the model's functions, which are put in place of their calls. A body sees nothing
 * but what the call gives to it; what it makes for itself gets a prefix of its own. */
#include <string.h>

#include "onnx/reader.h"

static OrtStatus* with_prefix(Reader* reader, const FunctionScope* scope, const char* name, char** out) {
  size_t prefix = strlen(scope->prefix), length = strlen(name);
  char* text = arena_alloc(&reader->model->arena, prefix + length + 1);
  if (text == NULL) return status_no_memory();
  memcpy(text, scope->prefix, prefix);
  memcpy(text + prefix, name, length);
  *out = text;
  return NULL;
}

/* The graph's value of the prefixed name. */
static OrtStatus* find_prefixed(const OrtGraph* graph, const FunctionScope* scope, const char* name,
                                OrtValueInfo** out) {
  char* text = str_format("%s%s", scope->prefix, name);
  if (text == NULL) return status_no_memory();
  *out = name_map_get(&graph->values, text);
  mem_free(text);
  return NULL;
}

/* What `name` means in `graph` to a node of `scope`. At most MAX_GRAPH_DEPTH + MAX_CALL_DEPTH calls deep. */
static OrtStatus* resolve(OrtGraph* graph, const FunctionScope* scope, const char* name, OrtValueInfo** out) {
  *out = NULL;
  if (scope != NULL && scope->graph == graph) { /* the body's own level */
    const FormalName* formal = name_map_get(&scope->formals, name);
    if (formal == NULL) return find_prefixed(graph, scope, name, out);
    return formal->actual[0] != '\0' ? resolve(graph, scope->caller, formal->actual, out) : NULL;
  }
  if (scope != NULL)
    TRY(find_prefixed(graph, scope, name, out));
  else
    *out = name_map_get(&graph->values, name);
  if (*out != NULL || graph->parent_node == NULL) return NULL;
  OrtValueInfo* outer = NULL;
  TRY(resolve(graph->parent_node->graph, graph->scope, name, &outer));
  return outer != NULL ? graph_capture(graph, outer, out) : NULL;
}

OrtStatus* use_value(Reader* reader, OrtGraph* graph, const char* name, OrtValueInfo** out) {
  return resolve(graph, reader->scope, name, out);
}

OrtStatus* name_of_value(Reader* reader, const OrtGraph* graph, char* name, char** out) {
  const FunctionScope* scope = reader->scope;
  while (scope != NULL && scope->graph == graph) {
    const FormalName* formal = name_map_get(&scope->formals, name);
    if (formal == NULL) break;
    if (!formal->is_output)
      return status_new(ORT_INVALID_GRAPH, "function '%s': its input '%s' is defined twice",
                        scope->function->name, name);
    name = formal->actual;
    scope = scope->caller;
  }
  if (scope != NULL) return with_prefix(reader, scope, name, out);
  *out = name;
  return NULL;
}

OrtStatus* define_value(Reader* reader, OrtGraph* graph, char* name, OrtValueInfo** out) {
  char* text = NULL;
  TRY(name_of_value(reader, graph, name, &text));
  return graph_add_value(graph, text, out);
}

bool is_missing_formal(const FunctionScope* scope, const OrtGraph* graph, const char* name) {
  while (scope != NULL && scope->graph == graph) {
    const FormalName* formal = name_map_get(&scope->formals, name);
    if (formal == NULL) return false;
    if (formal->actual[0] == '\0') return true;
    name = formal->actual;
    scope = scope->caller;
  }
  return false;
}

const WireField* scope_attribute(const FunctionScope* scope, const char* name) {
  for (size_t i = 0; scope != NULL && i < scope->attribute_count; i++) {
    if (strcmp(scope->attributes[i].name, name) == 0) return &scope->attributes[i].field;
  }
  return NULL;
}

int scope_opset(const Reader* reader, const char* domain) {
  if (reader->scope == NULL) return model_opset(reader->model, domain);
  const Function* function = reader->scope->function;
  return find_opset(function->opsets, function->opset_count, domain);
}

void scopes_release(Reader* reader) {
  for (FunctionScope* scope = reader->scopes; scope != NULL; scope = scope->next)
    name_map_release(&scope->formals);
  reader->scopes = NULL;
}
