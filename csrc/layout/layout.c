/* From channels first to channels last: Transposes around the nodes that an EP wants so, as few as can be.
 *
 * A converted node gets its data through a Transpose and gives its output through one back. Nodes are taken
 * in order: who reads what a Transpose gives, and can do with what lies before it (layout_rule.c), moves
 * before it if there are not more Transposes then; a Transpose behind another one becomes one with it. A
 * Transpose that nobody reads goes. Inputs and outputs of the graph keep their names, types and meaning. */
#include <string.h>

#include "graph/graph.h"
#include "layout/rewrite.h"
#include "schema/schema.h"

/* What of a value behind a Transpose there is already. */
typedef struct Turned Turned;
struct Turned {
  Turned* next; /* of the same value */
  Perm perm;
  OrtValueInfo* value;
};

/* What can be said of a node before nodes are moved; by its id. */
typedef struct NodeOutlook {
  bool absorbs; /* it can read what lies before a Transpose */
  bool passes;  /* but there is a Transpose behind it then */
} NodeOutlook;

typedef struct Rewrite {
  OrtGraph* graph;
  Arena* arena;             /* of the model */
  const NodeLayout* wanted; /* by node id, below first_new */
  NodeOutlook* outlook;
  size_t first_new; /* ids from here on: made here */
  OrtNode** nodes;  /* the graph's nodes to be */
  size_t count, capacity;
  NameMap turned; /* a value's name -> Turned */
  NameMap ranks;  /* a value's name -> its rank + 1, where its type does not say it */
  OrtValueInfo** constants;
  size_t constant_count, constant_capacity;
  size_t last_number; /* of a name */
  int opset;
  bool has_changed, has_converted;
} Rewrite;

static bool is_new(const Rewrite* rewrite, const OrtNode* node) {
  return node->id >= rewrite->first_new;
}

static NodeLayout wanted_of(const Rewrite* rewrite, const OrtNode* node) {
  return is_new(rewrite, node) ? NODE_LAYOUT_ANY : rewrite->wanted[node->id];
}

static bool is_op(const OrtNode* node, const char* op_type) {
  return node->domain[0] == '\0' && strcmp(node->op_type, op_type) == 0;
}

/* ---- Ranks ---- */

static bool has_rank(const OrtValueInfo* value) {
  return value->type != NULL && value->type->tensor != NULL && value->type->tensor->has_shape;
}

/* False: unknown. */
static bool find_rank(const Rewrite* rewrite, const OrtValueInfo* value, size_t* rank) {
  if (has_rank(value)) {
    *rank = value->type->tensor->rank;
    return true;
  }
  uintptr_t known = (uintptr_t)name_map_get(&rewrite->ranks, value->name);
  if (known != 0) *rank = known - 1;
  return known != 0;
}

static OrtStatus* set_rank(Rewrite* rewrite, const OrtValueInfo* value, size_t rank) {
  if (value == NULL || has_rank(value)) return NULL;
  return name_map_put(&rewrite->ranks, value->name, (void*)(uintptr_t)(rank + 1)) ? NULL : status_no_memory();
}

/* The most axes that data of the node has, as far as that is known; *all: it is known of all. 0: of none. */
static size_t data_rank(const Rewrite* rewrite, const OrtNode* node, const LayoutRule* rule, bool* all) {
  size_t most = 0;
  *all = true;
  for (size_t i = 0; i < node->input_count; i++) {
    size_t rank = 0;
    if (node->inputs[i] == NULL || !rule_permutes_input(rule, i)) continue;
    *all = find_rank(rewrite, node->inputs[i], &rank) && *all;
    if (rank > most) most = rank;
  }
  return most;
}

/* ---- Transposes that are there ---- */

/* True if a Transpose that may be changed makes `value`: what it reads, and how it permutes that. */
static bool behind_transpose(const Rewrite* rewrite, const OrtValueInfo* value, OrtValueInfo** source,
                             Perm* perm) {
  const OrtNode* node = value->producer;
  size_t rank = 0;
  if (node == NULL || !is_op(node, "Transpose") || wanted_of(rewrite, node) == NODE_LAYOUT_FIXED ||
      node->inputs[0] == NULL)
    return false;
  find_rank(rewrite, value, &rank);
  *source = node->inputs[0];
  return perm_of_transpose(node, rank, perm);
}

/* What Transpose(value, perm) is, if there is such a value; else NULL, and `value` and `perm` say what to
 * permute: never the output of another Transpose. */
static OrtValueInfo* find_turned(const Rewrite* rewrite, OrtValueInfo** value, Perm* perm) {
  OrtValueInfo* source;
  Perm before;
  while (behind_transpose(rewrite, *value, &source, &before) && before.rank == perm->rank) {
    *value = source;
    *perm = perm_then(&before, perm);
  }
  if (perm_is_identity(perm)) return *value;
  for (const Turned* turned = name_map_get(&rewrite->turned, (*value)->name); turned != NULL;
       turned = turned->next) {
    if (perm_equal(&turned->perm, perm)) return turned->value;
  }
  return NULL;
}

static OrtStatus* remember_turned(Rewrite* rewrite, const OrtValueInfo* value, const Perm* perm,
                                  OrtValueInfo* turned) {
  Turned* entry = arena_alloc(rewrite->arena, sizeof *entry);
  if (entry == NULL) return status_no_memory();
  *entry = (Turned){name_map_get(&rewrite->turned, value->name), *perm, turned};
  return name_map_put(&rewrite->turned, value->name, entry) ? NULL : status_no_memory();
}

/* ---- New values and nodes ---- */

/* A value without a type, under a name of its own. */
static OrtStatus* new_value(Rewrite* rewrite, const char* like, OrtValueInfo** out) {
  char* name = NULL;
  for (bool is_first = true; name == NULL; is_first = false) {
    char* text =
        is_first ? str_format("%s_nhwc", like) : str_format("%s_nhwc_%zu", like, ++rewrite->last_number);
    if (text == NULL) return status_no_memory();
    bool is_taken = graph_find_value(rewrite->graph, text, true) != NULL;
    if (!is_taken) name = arena_str(rewrite->arena, text, strlen(text));
    mem_free(text);
    if (!is_taken && name == NULL) return status_no_memory();
  }
  return graph_add_value(rewrite->graph, name, out);
}

/* A value for Transpose(like, perm). */
static OrtStatus* new_turned(Rewrite* rewrite, const OrtValueInfo* like, const Perm* perm,
                             OrtValueInfo** out) {
  TRY(new_value(rewrite, like->name, out));
  if (like->type == NULL) return NULL;
  (*out)->type = type_permuted(rewrite->arena, like->type, perm);
  return (*out)->type != NULL ? NULL : status_no_memory();
}

/* takes `tensor`, which the model owns, as a value that is a new constant of the graph. */
static OrtStatus* new_constant(Rewrite* rewrite, const char* like, OrtValue* tensor, OrtValueInfo** out) {
  TRY(new_value(rewrite, like, out));
  (*out)->type = type_of_tensor(rewrite->graph->model, tensor);
  if ((*out)->type == NULL ||
      !ARRAY_RESERVE(rewrite->constants, rewrite->constant_capacity, rewrite->constant_count + 1))
    return status_no_memory();
  (*out)->initializer = tensor;
  (*out)->is_constant = true;
  rewrite->constants[rewrite->constant_count++] = *out;
  return NULL;
}

static OrtStatus* append(Rewrite* rewrite, OrtNode* node) {
  if (!ARRAY_RESERVE(rewrite->nodes, rewrite->capacity, rewrite->count + 1)) return status_no_memory();
  rewrite->nodes[rewrite->count++] = node;
  return NULL;
}

static int newest_version(const Rewrite* rewrite, const char* domain, const char* op_type, int absent) {
  const OpSchema* schema = op_schema_find(domain, op_type, rewrite->opset);
  return schema != NULL ? schema->since_version : absent;
}

/* Appends a node of ONNX's with one output and no attributes. */
static OrtStatus* append_new(Rewrite* rewrite, const char* op_type, OrtValueInfo* const* inputs,
                             size_t input_count, OrtValueInfo* output) {
  OrtNode* node = arena_alloc(rewrite->arena, sizeof *node);
  OrtValueInfo** values = arena_calloc(rewrite->arena, input_count + 1, sizeof *values);
  char* type = arena_str(rewrite->arena, op_type, strlen(op_type));
  char* name = str_format("%s_%s", op_type, output->name);
  char* own_name = name != NULL ? arena_str(rewrite->arena, name, strlen(name)) : NULL;
  mem_free(name);
  if (node == NULL || values == NULL || type == NULL || own_name == NULL) return status_no_memory();
  memcpy(values, inputs, input_count * sizeof *values);
  values[input_count] = output;
  *node = (OrtNode){.id = rewrite->graph->next_node_id++,
                    .name = own_name,
                    .op_type = type,
                    .domain = type + strlen(type),
                    .since_version = newest_version(rewrite, "", op_type, rewrite->opset),
                    .graph = rewrite->graph,
                    .inputs = values,
                    .input_count = input_count,
                    .outputs = values + input_count,
                    .output_count = 1};
  output->producer = node;
  output->producer_output = 0;
  return append(rewrite, node);
}

/* Sets an attribute to a list; its name stays. */
static OrtStatus* set_ints(Arena* arena, OrtOpAttr* attribute, const int64_t* numbers, size_t count) {
  int64_t* ints = arena_calloc(arena, count, sizeof *ints);
  if (ints == NULL) return status_no_memory();
  if (count != 0) memcpy(ints, numbers, count * sizeof *ints);
  *attribute = (OrtOpAttr){
      .name = attribute->name, .type = ORT_OP_ATTR_INTS, .onnx_type = 7, .ints = ints, .count = count};
  return NULL;
}

static void set_int(OrtOpAttr* attribute, int64_t number) {
  *attribute = (OrtOpAttr){.name = attribute->name, .type = ORT_OP_ATTR_INT, .onnx_type = 2, .i = number};
}

static OrtStatus* set_perm(Arena* arena, OrtOpAttr* attribute, const Perm* perm) {
  int64_t axes[MAX_PERM_RANK];
  for (size_t i = 0; i < perm->rank; i++) axes[i] = (int64_t)perm->axes[i];
  return set_ints(arena, attribute, axes, perm->rank);
}

/* The node's attribute, to be set; added if it is not there. `name` is constant. */
static OrtStatus* own_attribute(Rewrite* rewrite, OrtNode* node, const char* name, OrtOpAttr** out) {
  *out = node_find_attribute(node, name);
  if (*out != NULL) return NULL;
  OrtOpAttr* grown = arena_calloc(rewrite->arena, node->attribute_count + 1, sizeof *grown);
  char* own_name = arena_str(rewrite->arena, name, strlen(name));
  if (grown == NULL || own_name == NULL) return status_no_memory();
  if (node->attribute_count != 0) memcpy(grown, node->attributes, node->attribute_count * sizeof *grown);
  *out = &grown[node->attribute_count++];
  (*out)->name = own_name;
  node->attributes = grown;
  return NULL;
}

/* Appends output = Transpose(input, perm). */
static OrtStatus* append_transpose(Rewrite* rewrite, OrtValueInfo* input, const Perm* perm,
                                   OrtValueInfo* output) {
  OrtOpAttr* attribute = NULL;
  TRY(append_new(rewrite, "Transpose", &input, 1, output));
  TRY(own_attribute(rewrite, output->producer, "perm", &attribute));
  TRY(set_perm(rewrite->arena, attribute, perm));
  TRY(set_rank(rewrite, output, perm->rank));
  return remember_turned(rewrite, input, perm, output);
}

/* True if Transpose(value, perm) is a constant; also of one with fewer axes, with ones in front. */
static bool turns_as_constant(const OrtValueInfo* value, const Perm* perm) {
  return is_movable_constant(value) && value->initializer->rank <= perm->rank;
}

/* Transpose(value, perm): there already, a constant, or behind a new Transpose. */
static OrtStatus* turn_value(Rewrite* rewrite, OrtValueInfo* value, Perm perm, OrtValueInfo** out) {
  *out = find_turned(rewrite, &value, &perm);
  if (*out != NULL) return NULL;
  if (turns_as_constant(value, &perm)) {
    OrtValue* tensor = NULL;
    TRY(constant_permuted(rewrite->graph->model, value->initializer, &perm, &tensor));
    TRY(new_constant(rewrite, value->name, tensor, out));
    return remember_turned(rewrite, value, &perm, *out);
  }
  TRY(new_turned(rewrite, value, &perm, out));
  return append_transpose(rewrite, value, &perm, *out);
}

/* ---- Changing a node ---- */

static OrtStatus* change_attribute(Rewrite* rewrite, OrtNode* node, const Change* change) {
  OrtOpAttr* attribute = NULL;
  TRY(own_attribute(rewrite, node, change->attribute, &attribute));
  int64_t numbers[MAX_NUMBERS];
  for (size_t i = 0; i < change->count; i++)
    numbers[i] = change->is_pick ? attribute->ints[change->numbers[i]] : change->numbers[i];
  if (change->is_list) return set_ints(rewrite->arena, attribute, numbers, change->count);
  set_int(attribute, numbers[0]);
  return NULL;
}

static ONNXTensorElementDataType integer_type(const OrtNode* node) {
  const OrtTypeInfo* type = node->inputs[1]->type; /* of a Slice without axes: as its starts */
  bool is_int = type != NULL && type->tensor != NULL &&
                type->tensor->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
  return is_int ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
}

/* Appends output = Gather(input, numbers). */
static OrtStatus* append_gather(Rewrite* rewrite, OrtValueInfo* input, const int64_t* numbers, size_t count,
                                OrtValueInfo* output) {
  OrtValueInfo* picks = NULL;
  OrtValue* tensor = NULL;
  OrtOpAttr* axis = NULL;
  TRY(constant_of_numbers(rewrite->graph->model, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, numbers, count,
                          &tensor));
  TRY(new_constant(rewrite, output->name, tensor, &picks));
  TRY(append_new(rewrite, "Gather", (OrtValueInfo*[]){input, picks}, 2, output));
  TRY(own_attribute(rewrite, output->producer, "axis", &axis));
  set_int(axis, 0);
  return NULL;
}

/* A list of `count` numbers. */
static OrtTypeInfo* list_type(const Rewrite* rewrite, ONNXTensorElementDataType element, size_t count) {
  int64_t dim = (int64_t)count;
  return type_info_new_tensor(rewrite->arena, ONNX_TYPE_TENSOR,
                              shape_info_new(rewrite->arena, element, true, 1, &dim, NULL));
}

/* The input becomes a Gather of what it was. */
static OrtStatus* pick_at_run(Rewrite* rewrite, OrtNode* node, const Change* change) {
  OrtValueInfo *old = node->inputs[change->input], *picked = NULL;
  TRY(new_value(rewrite, old->name, &picked));
  if (old->type != NULL && old->type->tensor != NULL) {
    picked->type = list_type(rewrite, old->type->tensor->element_type, change->count);
    if (picked->type == NULL) return status_no_memory();
  }
  node->inputs[change->input] = picked;
  return append_gather(rewrite, old, change->numbers, change->count, picked);
}

static OrtStatus* change_input(Rewrite* rewrite, OrtNode* node, const Change* change) {
  OrtModel* model = rewrite->graph->model;
  OrtValueInfo* old = change->input < node->input_count ? node->inputs[change->input] : NULL;
  OrtValue* tensor = NULL;
  if (change->is_pick && !is_movable_constant(old)) return pick_at_run(rewrite, node, change);
  if (change->is_pick)
    TRY(constant_picked(model, old->initializer, change->numbers, change->count, &tensor));
  else
    TRY(constant_of_numbers(model, old != NULL ? old->initializer->element_type : integer_type(node),
                            change->numbers, change->count, &tensor));
  if (change->input >= node->input_count) {
    OrtValueInfo** grown = arena_calloc(rewrite->arena, change->input + 1, sizeof *grown);
    if (grown == NULL) return status_no_memory();
    memcpy(grown, node->inputs, node->input_count * sizeof *grown);
    node->inputs = grown;
    node->input_count = change->input + 1;
  }
  const char* like = old != NULL ? old->name : node->outputs[0] != NULL ? node->outputs[0]->name : "axes";
  return new_constant(rewrite, like, tensor, &node->inputs[change->input]);
}

/* Shape's output becomes that of all axes, from which a Gather takes what it was. */
static OrtStatus* split_shape(Rewrite* rewrite, OrtNode* node, size_t rank, const Move* move) {
  OrtValueInfo *output = node->outputs[0], *whole = NULL;
  size_t kept = 0;
  for (size_t i = 0; i < node->attribute_count; i++) {
    const char* name = node->attributes[i].name;
    if (strcmp(name, "start") != 0 && strcmp(name, "end") != 0)
      node->attributes[kept++] = node->attributes[i];
  }
  node->attribute_count = kept;
  TRY(new_value(rewrite, output->name, &whole));
  whole->type = list_type(rewrite, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, rank);
  if (whole->type == NULL) return status_no_memory();
  node->outputs[0] = whole;
  whole->producer = node;
  whole->producer_output = 0;
  TRY(append(rewrite, node));
  return append_gather(rewrite, whole, move->picks, move->pick_count, output);
}

/* Appends the node, whose outputs are what they were behind Transposes. */
static OrtStatus* append_turned(Rewrite* rewrite, OrtNode* node, const Perm* perm, size_t output_count) {
  OrtValueInfo** old = arena_calloc(rewrite->arena, output_count, sizeof *old);
  if (old == NULL) return status_no_memory();
  Perm back = perm_inverse(perm);
  for (size_t i = 0; i < output_count; i++) {
    old[i] = node->outputs[i];
    if (old[i] == NULL) continue;
    TRY(new_turned(rewrite, old[i], &back, &node->outputs[i]));
    node->outputs[i]->producer = node;
    node->outputs[i]->producer_output = i;
  }
  TRY(append(rewrite, node));
  for (size_t i = 0; i < output_count; i++) {
    if (old[i] == NULL) continue;
    TRY(set_rank(rewrite, node->outputs[i], perm->rank));
    TRY(append_transpose(rewrite, node->outputs[i], perm, old[i]));
  }
  return NULL;
}

/* Appends the node, which reads what its data is before a Transpose of `perm`. `rule` NULL: of its first
 * input and output. */
static OrtStatus* turn_node(Rewrite* rewrite, OrtNode* node, const LayoutRule* rule, const Perm* perm,
                            const Move* move) {
  Perm back = perm_inverse(perm);
  rewrite->has_changed = true;
  for (size_t i = 0; i < node->input_count; i++) {
    OrtValueInfo* value = node->inputs[i];
    size_t rank = perm->rank;
    if (value == NULL || !rule_permutes_input(rule, i)) continue;
    find_rank(rewrite, value, &rank);
    bool is_constant = turns_as_constant(value, perm);
    if (is_constant ? value->initializer->element_count == 1 : rank != perm->rank) continue; /* only ones */
    TRY(turn_value(rewrite, value, back, &node->inputs[i]));
  }
  for (size_t i = 0; i < move->change_count; i++) {
    const Change* change = &move->changes[i];
    TRY(change->attribute != NULL ? change_attribute(rewrite, node, change)
                                  : change_input(rewrite, node, change));
  }
  if (move->is_shape && node->outputs[0] != NULL) return split_shape(rewrite, node, perm->rank, move);
  if (move->is_plain) return append(rewrite, node);
  return append_turned(rewrite, node, &move->output, rule != NULL ? node->output_count : 1);
}

/* ---- Converting ---- */

/* The rank of what the node reads; 0: unknown, or not what it makes. */
static size_t rank_at(const Rewrite* rewrite, const OrtNode* node) {
  size_t rank = 0, made = 0;
  if (node->input_count == 0 || node->inputs[0] == NULL || node->output_count == 0 ||
      node->outputs[0] == NULL)
    return 0;
  bool has_weight = strcmp(node->op_type, "Conv") == 0 || strcmp(node->op_type, "ConvTranspose") == 0;
  if (!find_rank(rewrite, node->inputs[0], &rank) && has_weight && node->input_count > 1)
    find_rank(rewrite, node->inputs[1], &rank);
  bool is_other = find_rank(rewrite, node->outputs[0], &made) && made != rank && layout_rule(node) == NULL;
  return is_other ? 0 : rank;
}

/* What becomes of the node with channels last; false if it cannot be converted. */
static bool plan_conversion(const Rewrite* rewrite, const OrtNode* node, Perm* perm, Move* move) {
  size_t rank = rank_at(rewrite, node);
  const LayoutRule* rule = layout_rule(node);
  if (rank < 2 || rank > MAX_PERM_RANK) return false;
  *perm = perm_to_first(rank);
  if (rule != NULL) return rule_plan(rule, node, perm, move);
  *move = (Move){.output = *perm, .is_plain = perm_is_identity(perm)};
  return true;
}

/* True for one of stock ORT's operators that has channels last already. */
static bool is_channels_last(const OrtNode* node) {
  const OrtOpAttr* mark = node_find_attribute(node, "channels_last");
  return mark != NULL && mark->i == 1;
}

/* Puts the node into the domain of operators with channels last. */
static OrtStatus* enter_domain(Rewrite* rewrite, OrtNode* node) {
  if (strcmp(node->op_type, "FusedConv") == 0) node->op_type = arena_str(rewrite->arena, "Conv", 4);
  node->domain = arena_str(rewrite->arena, NHWC_DOMAIN, sizeof NHWC_DOMAIN - 1);
  if (node->op_type == NULL || node->domain == NULL) return status_no_memory();
  node->since_version = newest_version(rewrite, NHWC_DOMAIN, node->op_type, node->since_version);
  OrtOpAttr* mark = node_find_attribute(node, "channels_last");
  if (mark != NULL) mark->i = 1;
  rewrite->has_changed = rewrite->has_converted = true;
  return NULL;
}

static OrtStatus* convert(Rewrite* rewrite, OrtNode* node, const Perm* perm, const Move* move) {
  const LayoutRule* rule = layout_rule(node);
  TRY(enter_domain(rewrite, node));
  return turn_node(rewrite, node, rule, perm, move);
}

/* ---- Moving ---- */

/* True if a consumer can read what lies before a Transpose that makes the value. */
static const NodeOutlook* outlook_of(const Rewrite* rewrite, const ValueConsumer* consumer) {
  static const NodeOutlook none = {false, false};
  const OrtNode* node = consumer->node;
  if (consumer->input_index < 0 || wanted_of(rewrite, node) == NODE_LAYOUT_FIXED) return &none;
  bool is_data = rule_permutes_input(layout_rule(node), (size_t)consumer->input_index);
  return is_data ? &rewrite->outlook[node->id] : &none;
}

/* True if somebody but `node` needs `value` as it is behind the Transpose that makes it, or would only put
 * one behind itself instead. */
static bool is_needed_first(const Rewrite* rewrite, const OrtValueInfo* value, const OrtNode* node) {
  for (size_t i = 0; i < value->consumer_count; i++) {
    const ValueConsumer* consumer = &value->consumers[i];
    const NodeOutlook* outlook = outlook_of(rewrite, consumer);
    if (consumer->node != node && (!outlook->absorbs || outlook->passes)) return true;
  }
  return value->is_graph_output;
}

/* Looks at the node after all who read from it. */
static void look_at(const Rewrite* rewrite, const OrtNode* node) {
  NodeOutlook* outlook = &rewrite->outlook[node->id];
  NodeLayout wanted = wanted_of(rewrite, node);
  const LayoutRule* rule = layout_rule(node);
  Move move;
  bool all;
  if (wanted == NODE_LAYOUT_FIXED || node->input_count == 0 || node->inputs[0] == NULL) return;
  size_t rank = data_rank(rewrite, node, rule, &all);
  if (!all && rank == 0) rank = 4; /* what is most likely */
  if (rank == 0 || rank > MAX_PERM_RANK) return;
  Perm perm = perm_to_first(rank);
  bool is_plannable = rule != NULL && rule_plan(rule, node, &perm, &move);
  if (wanted == NODE_LAYOUT_CHANNELS_LAST || is_op(node, "Transpose")) {
    outlook->absorbs = !is_channels_last(node) && (rule == NULL || is_plannable);
    return;
  }
  if (!is_plannable || rule_is_for_conversion(rule)) return;
  outlook->absorbs = true;
  for (size_t i = 0; i < node->output_count && !move.is_plain; i++) {
    if (node->outputs[i] == NULL) continue;
    outlook->passes = outlook->passes || is_needed_first(rewrite, node->outputs[i], NULL);
  }
}

/* True if all data that the node reads can be permuted back. */
static bool fits(const Rewrite* rewrite, const OrtNode* node, const LayoutRule* rule, const Perm* perm) {
  for (size_t i = 0; i < node->input_count; i++) {
    const OrtValueInfo* value = node->inputs[i];
    size_t rank;
    if (value == NULL || !rule_permutes_input(rule, i)) continue;
    if (!find_rank(rewrite, value, &rank)) {
      if (rule_broadcasts(rule)) return false;
      continue;
    }
    if (rank == perm->rank) continue;
    bool has_ones_only = rank < perm->rank;
    for (size_t k = 0; k < rank && has_ones_only; k++)
      has_ones_only = has_rank(value) && value->type->tensor->dims[k] == 1;
    if (!has_ones_only && !turns_as_constant(value, perm)) return false;
  }
  return true;
}

/* Transposes that are needed around the node if it moves, less those if it does not. */
static int cost_of_move(const Rewrite* rewrite, const OrtNode* node, const LayoutRule* rule, const Perm* perm,
                        const Move* move) {
  int cost = 0;
  for (size_t i = 0; i < node->input_count; i++) {
    OrtValueInfo *value = node->inputs[i], *source;
    Perm back = perm_inverse(perm), before;
    bool is_again = false;
    for (size_t k = 0; k < i; k++) is_again = is_again || node->inputs[k] == value;
    if (value == NULL || is_again || !rule_permutes_input(rule, i)) continue;
    bool is_behind = behind_transpose(rewrite, value, &source, &before);
    if (is_behind) cost -= !is_needed_first(rewrite, value, node);
    if (!turns_as_constant(value, perm)) cost += find_turned(rewrite, &value, &back) == NULL;
  }
  for (size_t i = 0; i < node->output_count && !move->is_plain; i++) {
    const OrtValueInfo* value = node->outputs[i];
    if (value == NULL) continue;
    cost += is_needed_first(rewrite, value, NULL);
  }
  return cost;
}

/* Appends the node, before the Transposes that it reads from if there are not more of them then. */
static OrtStatus* append_moved(Rewrite* rewrite, OrtNode* node, const LayoutRule* rule) {
  OrtValueInfo* source;
  Perm perm;
  Move move;
  for (size_t i = 0; i < node->input_count; i++) {
    const OrtValueInfo* value = node->inputs[i];
    if (value == NULL || !rule_permutes_input(rule, i) || !behind_transpose(rewrite, value, &source, &perm) ||
        node->inputs[0] == NULL || !fits(rewrite, node, rule, &perm) || !rule_plan(rule, node, &perm, &move))
      continue;
    int most = move.is_shape ? -1 : 0; /* a Gather is more, too */
    if (cost_of_move(rewrite, node, rule, &perm, &move) > most) continue;
    return turn_node(rewrite, node, rule, &perm, &move);
  }
  return append(rewrite, node);
}

/* A Transpose of the model becomes one with that before it; one that does what another does already reads
 * that one's output, and changes nothing. */
static OrtStatus* append_model_transpose(Rewrite* rewrite, OrtNode* node) {
  OrtValueInfo *value = node->inputs[0], *output = node->outputs[0];
  Perm perm;
  size_t rank = 0;
  if (value == NULL || output == NULL || node->input_count != 1) return append(rewrite, node);
  find_rank(rewrite, value, &rank);
  if (!perm_of_transpose(node, rank, &perm)) return append(rewrite, node);
  OrtValueInfo* turned = find_turned(rewrite, &value, &perm);
  rewrite->has_changed = rewrite->has_changed || turned != NULL || value != node->inputs[0];
  node->inputs[0] = turned != NULL ? turned : value;
  for (size_t i = 0; i < perm.rank && turned != NULL; i++) perm.axes[i] = i;
  OrtOpAttr* attribute = NULL;
  TRY(own_attribute(rewrite, node, "perm", &attribute));
  TRY(set_perm(rewrite->arena, attribute, &perm));
  TRY(set_rank(rewrite, output, perm.rank));
  TRY(append(rewrite, node));
  return turned != NULL ? NULL : remember_turned(rewrite, value, &perm, output);
}

/* ---- The whole graph ---- */

/* What the node's outputs have for a rank, where that follows from the table. */
static OrtStatus* note_ranks(Rewrite* rewrite, const OrtNode* node) {
  const LayoutRule* rule = layout_rule(node);
  bool all;
  if (rule == NULL || node->input_count == 0 || node->inputs[0] == NULL) return NULL;
  size_t rank = data_rank(rewrite, node, rule, &all);
  rank = rule_output_rank(rule, node, all ? rank : 0);
  for (size_t i = 0; i < node->output_count && rank != 0; i++) TRY(set_rank(rewrite, node->outputs[i], rank));
  return NULL;
}

/* What the node reads through Transposes that change nothing, it reads itself. */
static void skip_identities(const Rewrite* rewrite, OrtNode* node) {
  OrtValueInfo* source;
  Perm perm;
  for (size_t i = 0; i < node->input_count; i++) {
    while (node->inputs[i] != NULL && behind_transpose(rewrite, node->inputs[i], &source, &perm) &&
           perm_is_identity(&perm))
      node->inputs[i] = source;
  }
}

static OrtStatus* append_node(Rewrite* rewrite, OrtNode* node) {
  NodeLayout wanted = wanted_of(rewrite, node);
  const LayoutRule* rule = layout_rule(node);
  Perm perm;
  Move move;
  if (wanted == NODE_LAYOUT_FIXED) return append(rewrite, node);
  skip_identities(rewrite, node);
  TRY(note_ranks(rewrite, node));
  if (wanted == NODE_LAYOUT_CHANNELS_LAST && is_channels_last(node)) {
    TRY(enter_domain(rewrite, node));
    return append(rewrite, node);
  }
  if (wanted == NODE_LAYOUT_CHANNELS_LAST && plan_conversion(rewrite, node, &perm, &move))
    return convert(rewrite, node, &perm, &move);
  if (is_op(node, "Transpose")) return append_model_transpose(rewrite, node);
  if (rule != NULL && !rule_is_for_conversion(rule)) return append_moved(rewrite, node, rule);
  return append(rewrite, node);
}

/* True if who makes `source` can make the output of `node` instead, which reads it and changes nothing. Not
 * after that was done for another node: the list of consumers is that of before. */
static bool can_rename(const Rewrite* rewrite, const OrtValueInfo* source, const OrtNode* node) {
  bool is_listed = false;
  for (size_t i = 0; i < source->consumer_count; i++) {
    if (source->consumers[i].input_index < 0) return false;
    is_listed = is_listed || source->consumers[i].node == node;
  }
  return is_listed && source->producer != NULL && !source->is_graph_output &&
         wanted_of(rewrite, source->producer) != NODE_LAYOUT_FIXED;
}

static bool is_unread(const OrtValueInfo* value) {
  return value == NULL || (value->consumer_count == 0 && !value->is_graph_output);
}

/* Has who reads `from` read `to`. */
static void redirect(const OrtValueInfo* from, OrtValueInfo* to) {
  for (size_t i = 0; i < from->consumer_count; i++) {
    const ValueConsumer* consumer = &from->consumers[i];
    consumer->node->inputs[consumer->input_index] = to;
  }
}

/* A Transpose that changes nothing, and is there for somebody who needs its output under that name: who makes
 * its input makes that instead, or it becomes an Identity. */
static OrtStatus* bypass(const Rewrite* rewrite, OrtNode* node) {
  OrtValueInfo *source = node->inputs[0], *value = node->outputs[0];
  OrtNode* producer = source->producer;
  if (is_unread(value)) return NULL;
  if (can_rename(rewrite, source, node)) {
    producer->outputs[source->producer_output] = value;
    value->producer = producer;
    value->producer_output = source->producer_output;
    source->producer = NULL;
    node->outputs[0] = NULL;
    redirect(source, value);
    return NULL;
  }
  node->op_type = arena_str(rewrite->arena, "Identity", strlen("Identity"));
  if (node->op_type == NULL) return status_no_memory();
  node->attribute_count = 0;
  node->since_version = newest_version(rewrite, "", "Identity", node->since_version);
  return NULL;
}

/* The graph's initializers and the new constants, but for those that nobody reads any more. `was_unread` by
 * their place. */
static OrtStatus* set_initializers(const Rewrite* rewrite, const bool* was_unread) {
  OrtGraph* graph = rewrite->graph;
  size_t kept = 0, old = graph->initializer_count;
  OrtValueInfo** all = arena_calloc(rewrite->arena, old + rewrite->constant_count, sizeof *all);
  if (all == NULL) return status_no_memory();
  for (size_t i = 0; i < old + rewrite->constant_count; i++) {
    OrtValueInfo* value = i < old ? graph->initializers[i] : rewrite->constants[i - old];
    bool stays = i < old && (was_unread[i] || !value->is_constant);
    if (stays || !is_unread(value)) all[kept++] = value;
  }
  graph->initializers = all;
  graph->initializer_count = kept;
  return NULL;
}

/* Takes out the Transposes that change nothing, and those that nobody reads. */
static OrtStatus* simplify(const Rewrite* rewrite) {
  OrtGraph* graph = rewrite->graph;
  Perm perm;
  OrtValueInfo* source;
  TRY(graph_link_consumers(graph));
  for (size_t i = 0; i < graph->node_count; i++) {
    OrtNode* node = graph->nodes[i];
    if (is_op(node, "Transpose") && node->outputs[0] != NULL &&
        behind_transpose(rewrite, node->outputs[0], &source, &perm) && perm_is_identity(&perm))
      TRY(bypass(rewrite, node));
  }
  TRY(graph_link_consumers(graph));
  size_t kept = 0;
  for (size_t i = 0; i < graph->node_count; i++) {
    OrtNode* node = graph->nodes[i];
    bool is_removable = is_op(node, "Transpose") && wanted_of(rewrite, node) != NODE_LAYOUT_FIXED;
    if (is_removable && is_unread(node->outputs[0])) {
      if (node->outputs[0] != NULL) node->outputs[0]->producer = NULL;
      continue;
    }
    node->position = kept;
    graph->nodes[kept++] = node;
  }
  graph->node_count = kept;
  return graph_link_consumers(graph);
}

/* Puts the rewritten nodes into the graph. */
static OrtStatus* finish(const Rewrite* rewrite) {
  OrtGraph* graph = rewrite->graph;
  OrtNode** nodes = arena_calloc(rewrite->arena, rewrite->count, sizeof *nodes);
  bool* was_unread = arena_calloc(rewrite->arena, graph->initializer_count, sizeof *was_unread);
  if (nodes == NULL || was_unread == NULL) return status_no_memory();
  for (size_t i = 0; i < graph->initializer_count; i++) was_unread[i] = is_unread(graph->initializers[i]);
  memcpy(nodes, rewrite->nodes, rewrite->count * sizeof *nodes);
  graph->nodes = nodes;
  graph->node_count = rewrite->count;
  TRY(simplify(rewrite));
  TRY(set_initializers(rewrite, was_unread));
  if (!rewrite->has_converted || model_opset(graph->model, NHWC_DOMAIN) != 0) return NULL;
  return model_import_opset(graph->model, NHWC_DOMAIN, rewrite->opset);
}

static OrtStatus* rewrite_graph(Rewrite* rewrite) {
  OrtGraph* graph = rewrite->graph;
  rewrite->outlook = arena_calloc(rewrite->arena, graph->next_node_id, sizeof *rewrite->outlook);
  if (rewrite->outlook == NULL) return status_no_memory();
  for (size_t i = graph->node_count; i-- > 0;) look_at(rewrite, graph->nodes[i]);
  for (size_t i = 0; i < graph->node_count; i++) TRY(append_node(rewrite, graph->nodes[i]));
  return rewrite->has_changed ? finish(rewrite) : NULL;
}

OrtStatus* graph_to_channels_last(OrtGraph* graph, const NodeLayout* wanted, bool* changed) {
  bool converts = false;
  *changed = false;
  for (size_t i = 0; i < graph->node_count; i++)
    converts = converts || wanted[graph->nodes[i]->id] == NODE_LAYOUT_CHANNELS_LAST;
  if (!converts) return NULL;
  Rewrite rewrite = {.graph = graph,
                     .arena = &graph->model->arena,
                     .wanted = wanted,
                     .first_new = graph->next_node_id,
                     .opset = model_opset(graph->model, "")};
  OrtStatus* status = rewrite_graph(&rewrite);
  *changed = rewrite.has_changed;
  mem_free(rewrite.nodes);
  mem_free(rewrite.constants);
  name_map_release(&rewrite.turned);
  name_map_release(&rewrite.ranks);
  return status;
}
