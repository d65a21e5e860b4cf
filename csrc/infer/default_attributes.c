/* What a session does with a graph before it asks EPs: nodes get the attributes that their operators have
 * defaults for. */
#include <string.h>

#include "infer/infer.h"

/* The schemas' texts are constant and live as long as the library; nobody writes through an attribute. */
static OrtStatus* set_strings(Arena* arena, const OpSchemaAttr* known, OrtOpAttr* out) {
  out->strings = arena_calloc(arena, known->default_count, sizeof *out->strings);
  out->string_lengths = arena_calloc(arena, known->default_count, sizeof *out->string_lengths);
  if (out->strings == NULL || out->string_lengths == NULL) return status_no_memory();
  for (size_t i = 0; i < known->default_count; i++) {
    out->strings[i] = (char*)known->default_strings[i];
    out->string_lengths[i] = strlen(known->default_strings[i]);
  }
  return NULL;
}

static OrtStatus* set_default(Arena* arena, const OpSchemaAttr* known, OrtOpAttr* out) {
  /* By ONNX's numbers: see OpSchemaAttr. */
  static const OrtOpAttrType types[] = {[1] = ORT_OP_ATTR_FLOAT,
                                        [2] = ORT_OP_ATTR_INT,
                                        [3] = ORT_OP_ATTR_STRING,
                                        [7] = ORT_OP_ATTR_INTS,
                                        [8] = ORT_OP_ATTR_STRINGS};
  *out = (OrtOpAttr){.name = (char*)known->name,
                     .type = types[known->type],
                     .onnx_type = known->type,
                     .f = known->default_float,
                     .i = known->default_int,
                     .s = (char*)known->default_string,
                     .ints = (int64_t*)known->default_ints,
                     .count = known->default_count};
  if (known->default_string != NULL) out->count = strlen(known->default_string);
  return known->default_strings != NULL ? set_strings(arena, known, out) : NULL;
}

static OrtStatus* add_defaults(OrtNode* node) {
  Arena* arena = &node->graph->model->arena;
  const OpSchema* schema = node_schema(node);
  size_t missing = 0;
  for (size_t i = 0; schema != NULL && i < schema->attribute_count; i++) {
    const OpSchemaAttr* known = &schema->attributes[i];
    missing += known->has_default && node_find_attribute(node, known->name) == NULL;
  }
  if (missing == 0) return NULL;
  OrtOpAttr* grown = arena_calloc(arena, node->attribute_count + missing, sizeof *grown);
  if (grown == NULL) return status_no_memory();
  size_t count = node->attribute_count;
  if (count != 0) memcpy(grown, node->attributes, count * sizeof *grown);
  for (size_t i = 0; i < schema->attribute_count; i++) {
    const OpSchemaAttr* known = &schema->attributes[i];
    if (known->has_default && node_find_attribute(node, known->name) == NULL)
      TRY(set_default(arena, known, &grown[count++]));
  }
  node->attributes = grown;
  node->attribute_count = count;
  return NULL;
}

OrtStatus* model_add_default_attributes(OrtModel* model) {
  for (OrtGraph* graph = model->graphs; graph != NULL; graph = graph->next_graph) {
    for (size_t i = 0; i < graph->node_count; i++) TRY(add_defaults(graph->nodes[i]));
  }
  return NULL;
}
