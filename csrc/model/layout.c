/* From channels first to channels last: Transposes around the nodes that an EP wants so, as few as can be.
 *
 * A converted node gets its data through a Transpose and gives its output through one back. Who reads that
 * output and wants channels last too reads what lies before the second Transpose; an elementwise node in
 * between moves before it. A Transpose that nobody reads any more goes. Values of the model keep their names,
 * types and meaning. */
#include <string.h>

#include "model/op_schema.h"
#include "model/reader.h"

typedef struct Rewrite {
  OrtGraph* graph;
  const NodeLayout* wanted; /* by node id, below first_new */
  size_t first_new;         /* ids from here on: Transposes made here */
  OrtNode** nodes;          /* the graph's nodes to be */
  size_t count;
  int transpose_version;
} Rewrite;

static bool is_new(const Rewrite* rewrite, const OrtNode* node) {
  return node->id >= rewrite->first_new;
}

/* Which axis of the input a Transpose puts at `axis`. */
static size_t source_axis(size_t axis, size_t rank, bool to_last) {
  if (axis == 0) return 0;
  if (to_last) return axis == rank - 1 ? 1 : axis + 1;
  return axis == 1 ? rank - 1 : axis - 1;
}

/* The type with channels last; the same one while its shape is unknown. NULL: no memory. */
static OrtTypeInfo* channels_last_type(Arena* arena, OrtTypeInfo* type, size_t rank) {
  if (type->tensor == NULL || !type->tensor->has_shape || type->tensor->rank != rank) return type;
  OrtTypeInfo* turned = type_info_copy(arena, type);
  if (turned == NULL) return NULL;
  for (size_t i = 0; i < rank; i++) {
    size_t from = source_axis(i, rank, true);
    turned->tensor->dims[i] = type->tensor->dims[from];
    if (type->tensor->symbols != NULL) turned->tensor->symbols[i] = type->tensor->symbols[from];
  }
  turned->tensor->denotations = NULL;
  return turned;
}

/* A value for what `like` is with channels last, under a name of its own. */
static OrtStatus* new_value(const Rewrite* rewrite, const OrtValueInfo* like, size_t rank,
                            OrtValueInfo** out) {
  OrtGraph* graph = rewrite->graph;
  Arena* arena = &graph->model->arena;
  char* name = NULL;
  for (size_t number = 0; name == NULL; number++) {
    char* text =
        number == 0 ? str_format("%s_nhwc", like->name) : str_format("%s_nhwc_%zu", like->name, number);
    if (text == NULL) return status_no_memory();
    bool is_taken = graph_find_value(graph, text, true) != NULL;
    if (!is_taken) name = arena_str(arena, text, strlen(text));
    mem_free(text);
    if (!is_taken && name == NULL) return status_no_memory();
  }
  TRY(graph_add_value(graph, name, out));
  if (like->type == NULL) return NULL;
  (*out)->type = channels_last_type(arena, like->type, rank);
  return (*out)->type != NULL ? NULL : status_no_memory();
}

static OrtStatus* add_transpose(Rewrite* rewrite, OrtValueInfo* input, OrtValueInfo* output, size_t rank,
                                bool to_last) {
  OrtGraph* graph = rewrite->graph;
  Arena* arena = &graph->model->arena;
  OrtNode* node = arena_alloc(arena, sizeof *node);
  OrtValueInfo** values = arena_calloc(arena, 2, sizeof *values);
  OrtOpAttr* perm = arena_alloc(arena, sizeof *perm);
  int64_t* axes = arena_calloc(arena, rank, sizeof *axes);
  char* texts = arena_str(arena, "Transpose\0perm", sizeof "Transpose\0perm");
  char* name = str_format("Transpose_%s", output->name);
  char* own_name = name != NULL ? arena_str(arena, name, strlen(name)) : NULL;
  mem_free(name);
  if (node == NULL || values == NULL || perm == NULL || axes == NULL || texts == NULL || own_name == NULL)
    return status_no_memory();
  values[0] = input;
  values[1] = output;
  for (size_t i = 0; i < rank; i++) axes[i] = (int64_t)source_axis(i, rank, to_last);
  *perm = (OrtOpAttr){.name = texts + sizeof "Transpose",
                      .type = ORT_OP_ATTR_INTS,
                      .onnx_type = 7,
                      .ints = axes,
                      .count = rank};
  *node = (OrtNode){.id = graph->next_node_id++,
                    .name = own_name,
                    .op_type = texts,
                    .domain = texts + strlen(texts),
                    .since_version = rewrite->transpose_version,
                    .graph = graph,
                    .inputs = &values[0],
                    .input_count = 1,
                    .outputs = &values[1],
                    .output_count = 1,
                    .attributes = perm,
                    .attribute_count = 1};
  output->producer = node;
  output->producer_output = 0;
  rewrite->nodes[rewrite->count++] = node;
  return NULL;
}

/* The Transpose whose output a value of the model is; NULL: another node's. */
static const OrtNode* transpose_before(const Rewrite* rewrite, const OrtValueInfo* value) {
  return value->producer != NULL && is_new(rewrite, value->producer) ? value->producer : NULL;
}

/* What `value` is with channels last: before the Transpose that makes it, or behind one that is there or is
 * added. */
static OrtStatus* channels_last_input(Rewrite* rewrite, OrtValueInfo* value, size_t rank,
                                      OrtValueInfo** out) {
  const OrtNode* before = transpose_before(rewrite, value);
  *out = before != NULL ? before->inputs[0] : NULL;
  for (size_t i = rewrite->count; i-- > 0 && *out == NULL;) {
    const OrtNode* node = rewrite->nodes[i];
    if (is_new(rewrite, node) && node->inputs[0] == value) *out = node->outputs[0];
  }
  if (*out != NULL) return NULL;
  TRY(new_value(rewrite, value, rank, out));
  return add_transpose(rewrite, value, *out, rank, true);
}

/* Appends the node, which gives channels last now. */
static OrtStatus* append_turned(Rewrite* rewrite, OrtNode* node, size_t rank) {
  OrtValueInfo *output = node->outputs[0], *turned = NULL;
  TRY(new_value(rewrite, output, rank, &turned));
  node->outputs[0] = turned;
  turned->producer = node;
  turned->producer_output = 0;
  rewrite->nodes[rewrite->count++] = node;
  return add_transpose(rewrite, turned, output, rank, false);
}

static bool has_rank(const OrtValueInfo* value) {
  return value->type != NULL && value->type->tensor != NULL && value->type->tensor->has_shape;
}

/* 0: unknown. What a converted or elementwise node makes has the rank of what it reads. */
static size_t rank_of(const Rewrite* rewrite, const OrtValueInfo* value) {
  while (value != NULL) {
    if (has_rank(value)) return value->type->tensor->rank;
    const OrtNode* node = value->producer;
    if (node == NULL || (!is_new(rewrite, node) && rewrite->wanted[node->id] == NODE_LAYOUT_FIXED)) return 0;
    value = node->inputs[0];
  }
  return 0;
}

/* The rank of what the node reads and makes; 0: unknown, or not the same. */
static size_t rank_at(const Rewrite* rewrite, const OrtNode* node) {
  if (node->input_count == 0 || node->inputs[0] == NULL || node->output_count == 0 ||
      node->outputs[0] == NULL)
    return 0;
  size_t rank = rank_of(rewrite, node->inputs[0]);
  bool has_weight = strcmp(node->op_type, "Conv") == 0 || strcmp(node->op_type, "ConvTranspose") == 0;
  if (rank == 0 && has_weight && node->input_count > 1) rank = rank_of(rewrite, node->inputs[1]);
  return !has_rank(node->outputs[0]) || node->outputs[0]->type->tensor->rank == rank ? rank : 0;
}

static OrtStatus* convert(Rewrite* rewrite, OrtNode* node, size_t rank) {
  OrtOpAttr* mark = node_find_attribute(node, "channels_last");
  bool is_done = mark != NULL && mark->i == 1;
  Arena* arena = &rewrite->graph->model->arena;
  if (strcmp(node->op_type, "FusedConv") == 0) node->op_type = arena_str(arena, "Conv", 4);
  node->domain = arena_str(arena, NHWC_DOMAIN, sizeof NHWC_DOMAIN - 1);
  if (node->op_type == NULL || node->domain == NULL) return status_no_memory();
  if (mark != NULL) mark->i = 1;
  if (is_done) {
    rewrite->nodes[rewrite->count++] = node;
    return NULL;
  }
  OrtValueInfo* input = NULL;
  TRY(channels_last_input(rewrite, node->inputs[0], rank, &input));
  node->inputs[0] = input;
  return append_turned(rewrite, node, rank);
}

static bool is_scalar(const OrtValueInfo* value) {
  const OrtTensorTypeAndShapeInfo* shape = has_rank(value) ? value->type->tensor : NULL;
  return shape != NULL && (shape->rank == 0 || (shape->rank == 1 && shape->dims[0] == 1));
}

static bool is_only_reader(const OrtNode* node, const OrtValueInfo* value) {
  for (size_t i = 0; i < value->consumer_count; i++) {
    if (value->consumers[i].node != node) return false;
  }
  return !value->is_graph_output;
}

/* True if all that the node reads, but for scalars, comes from Transposes, and one of them is for it alone:
 * then there are not more of them when it stands before them. */
static bool can_move(const Rewrite* rewrite, const OrtNode* node, size_t rank) {
  bool saves_one = false;
  for (size_t i = 0; i < node->input_count; i++) {
    const OrtValueInfo* value = node->inputs[i];
    if (value == NULL || is_scalar(value)) continue;
    const OrtNode* before = transpose_before(rewrite, value);
    if (before == NULL || before->attributes[0].count != rank) return false;
    saves_one = saves_one || is_only_reader(node, value);
  }
  return saves_one && node->output_count == 1;
}

static OrtStatus* move(Rewrite* rewrite, OrtNode* node, size_t rank) {
  for (size_t i = 0; i < node->input_count; i++) {
    const OrtNode* before = node->inputs[i] != NULL ? transpose_before(rewrite, node->inputs[i]) : NULL;
    if (before != NULL) node->inputs[i] = before->inputs[0];
  }
  return append_turned(rewrite, node, rank);
}

static OrtStatus* append(Rewrite* rewrite, OrtNode* node, bool* changed) {
  NodeLayout wanted = rewrite->wanted[node->id];
  size_t rank = wanted != NODE_LAYOUT_FIXED ? rank_at(rewrite, node) : 0;
  if (rank >= 3 && wanted == NODE_LAYOUT_CHANNELS_LAST) {
    *changed = true;
    return convert(rewrite, node, rank);
  }
  if (rank >= 3 && wanted == NODE_LAYOUT_ANY && can_move(rewrite, node, rank))
    return move(rewrite, node, rank);
  rewrite->nodes[rewrite->count++] = node;
  return NULL;
}

/* Takes out the Transposes that nobody reads. */
static OrtStatus* finish(const Rewrite* rewrite) {
  OrtGraph* graph = rewrite->graph;
  graph->nodes = rewrite->nodes;
  graph->node_count = rewrite->count;
  TRY(graph_link_consumers(graph));
  size_t kept = 0;
  for (size_t i = 0; i < rewrite->count; i++) {
    OrtNode* node = graph->nodes[i];
    OrtValueInfo* output = is_new(rewrite, node) ? node->outputs[0] : NULL;
    if (output != NULL && output->consumer_count == 0 && !output->is_graph_output) {
      output->producer = NULL;
      continue;
    }
    node->position = kept;
    graph->nodes[kept++] = node;
  }
  graph->node_count = kept;
  return graph_link_consumers(graph);
}

OrtStatus* graph_to_channels_last(OrtGraph* graph, const NodeLayout* wanted, bool* changed) {
  const OpSchema* transpose = op_schema_find("", "Transpose", model_opset(graph->model, ""));
  Rewrite rewrite = {.graph = graph, .wanted = wanted, .first_new = graph->next_node_id};
  *changed = false;
  if (transpose == NULL) return NULL;
  rewrite.transpose_version = transpose->since_version;
  size_t room;
  if (!size_mul(graph->node_count, 3, &room)) return status_no_memory();
  rewrite.nodes = arena_calloc(&graph->model->arena, room, sizeof *rewrite.nodes);
  if (rewrite.nodes == NULL) return status_no_memory();
  for (size_t i = 0; i < graph->node_count; i++) TRY(append(&rewrite, graph->nodes[i], changed));
  return *changed ? finish(&rewrite) : NULL;
}
