/* How operators pass a permutation of their input's axes on to their outputs: one table. */
#include <stdlib.h>
#include <string.h>

#include "layout/rewrite.h"

/* What names axes of the data, or needs them in some order. */
typedef enum AxisUse {
  NO_AXES,    /* elementwise */
  ONE_AXIS,   /* an attribute */
  DIVISION,   /* an attribute: the axes before it, those from it on */
  SOME_AXES,  /* an attribute or an input lists them */
  EACH_AXIS,  /* an attribute or inputs have a number, or two, for each axis; or for each of some axes */
  QUANTIZED,  /* an attribute, if the scale has several elements */
  SHAPE,      /* Shape itself */
  FLAT_ORDER, /* Reshape and Flatten: the order of the elements */
} AxisUse;

typedef enum OutputAxes {
  AXES_KEPT,
  AXES_REMOVED, /* those that were named, unless keepdims is set; all of them where none is named */
  AXES_DROPPED, /* those that were named, always */
  AXES_TAKEN,   /* the one that was named, if the second input is a scalar; kept if it is a list */
  AXES_ADDED,   /* those that were named, which are the output's */
  AXES_PLAIN,   /* the output is not permuted */
} OutputAxes;

/* The inputs with the data: `first` and every `step`th one after it, at most `most` (0: all). */
struct LayoutRule {
  const char *op_type, *domain;
  int since_version;
  uint8_t first, step, most;
  bool is_broadcast, is_for_conversion;
  AxisUse use;
  OutputAxes output;
  const char* attribute;  /* of the axes, or of the numbers */
  uint8_t input;          /* which has them, where there is no attribute; 0: none */
  uint8_t last, per_axis; /* for EACH_AXIS: the last such input, how many numbers the first one has */
  int64_t absent;         /* the axis, where the node does not say */
};

#define FIRST_INPUT      0, 1, 1, false, false
#define ALL_INPUTS       0, 1, 0, false, false
#define BROADCAST_INPUTS 0, 1, 0, true, false
#define UNARY(op) \
  { op, "", 1, FIRST_INPUT, NO_AXES, AXES_KEPT, NULL, 0, 0, 0, 0 }
#define BROADCAST(op) \
  { op, "", 1, BROADCAST_INPUTS, NO_AXES, AXES_KEPT, NULL, 0, 0, 0, 0 }
#define REDUCE(op) \
  { op, "", 1, FIRST_INPUT, SOME_AXES, AXES_REMOVED, "axes", 1, 0, 0, 0 }
#define ONE(op, since, use, output, attribute, absent) \
  { op, "", since, FIRST_INPUT, use, output, attribute, 0, 0, 0, absent }
#define LIST(op, use, output, attribute, input) \
  { op, "", 1, FIRST_INPUT, use, output, attribute, input, 0, 0, 0 }
#define EACH(op, since, attribute, per_axis) \
  { op, "", since, FIRST_INPUT, EACH_AXIS, AXES_KEPT, attribute, 1, 1, per_axis, 0 }
#define RESIZE(since, last, per_axis) \
  { "Resize", "", since, 0, 1, 1, false, true, EACH_AXIS, AXES_KEPT, NULL, 1, last, per_axis, 0 }
#define MICROSOFT(op, first, step, most, is_broadcast, use, attribute) \
  { op, "com.microsoft", 1, first, step, most, is_broadcast, false, use, AXES_KEPT, attribute, 0, 0, 0, 1 }

/* Sorted by name, domain and version. */
static const LayoutRule rules[] = {
    UNARY("Abs"),
    UNARY("Acos"),
    UNARY("Acosh"),
    BROADCAST("Add"),
    BROADCAST("And"),
    ONE("ArgMax", 1, ONE_AXIS, AXES_REMOVED, "axis", 0),
    ONE("ArgMin", 1, ONE_AXIS, AXES_REMOVED, "axis", 0),
    UNARY("Asin"),
    UNARY("Asinh"),
    UNARY("Atan"),
    UNARY("Atanh"),
    BROADCAST("BitShift"),
    UNARY("Cast"),
    UNARY("CastLike"),
    UNARY("Ceil"),
    UNARY("Celu"),
    UNARY("Clip"),
    {"Concat", "", 4, ALL_INPUTS, ONE_AXIS, AXES_KEPT, "axis", 0, 0, 0, 1},
    UNARY("Cos"),
    UNARY("Cosh"),
    ONE("DequantizeLinear", 1, QUANTIZED, AXES_KEPT, "axis", 1),
    MICROSOFT("DequantizeLinear", 0, 1, 1, false, QUANTIZED, "axis"),
    BROADCAST("Div"),
    UNARY("Dropout"),
    UNARY("Elu"),
    BROADCAST("Equal"),
    UNARY("Erf"),
    UNARY("Exp"),
    EACH("Expand", 8, NULL, 1),
    ONE("Flatten", 1, FLAT_ORDER, AXES_PLAIN, "axis", 1),
    UNARY("Floor"),
    ONE("Gather", 1, ONE_AXIS, AXES_TAKEN, "axis", 0),
    UNARY("Gelu"),
    MICROSOFT("Gelu", 0, 1, 1, false, NO_AXES, NULL),
    BROADCAST("Greater"),
    BROADCAST("GreaterOrEqual"),
    UNARY("HardSigmoid"),
    UNARY("HardSwish"),
    ONE("Hardmax", 1, DIVISION, AXES_KEPT, "axis", 1),
    ONE("Hardmax", 13, ONE_AXIS, AXES_KEPT, "axis", -1),
    UNARY("Identity"),
    UNARY("IsInf"),
    UNARY("IsNaN"),
    UNARY("LeakyRelu"),
    BROADCAST("Less"),
    BROADCAST("LessOrEqual"),
    UNARY("Log"),
    ONE("LogSoftmax", 1, DIVISION, AXES_KEPT, "axis", 1),
    ONE("LogSoftmax", 13, ONE_AXIS, AXES_KEPT, "axis", -1),
    ONE("LpNormalization", 1, ONE_AXIS, AXES_KEPT, "axis", -1),
    BROADCAST("Max"),
    BROADCAST("Mean"),
    BROADCAST("Min"),
    UNARY("Mish"),
    BROADCAST("Mod"),
    BROADCAST("Mul"),
    UNARY("Neg"),
    UNARY("Not"),
    BROADCAST("Or"),
    BROADCAST("PRelu"),
    EACH("Pad", 2, "pads", 2),
    BROADCAST("Pow"),
    MICROSOFT("QLinearAdd", 0, 3, 2, true, NO_AXES, NULL),
    MICROSOFT("QLinearConcat", 2, 3, 0, false, ONE_AXIS, "axis"),
    MICROSOFT("QLinearLeakyRelu", 0, 1, 1, false, NO_AXES, NULL),
    MICROSOFT("QLinearMul", 0, 3, 2, true, NO_AXES, NULL),
    MICROSOFT("QLinearSigmoid", 0, 1, 1, false, NO_AXES, NULL),
    ONE("QuantizeLinear", 1, QUANTIZED, AXES_KEPT, "axis", 1),
    MICROSOFT("QuantizeLinear", 0, 1, 1, false, QUANTIZED, "axis"),
    MICROSOFT("QuickGelu", 0, 1, 1, false, NO_AXES, NULL),
    UNARY("Reciprocal"),
    REDUCE("ReduceL1"),
    REDUCE("ReduceL2"),
    REDUCE("ReduceLogSum"),
    REDUCE("ReduceLogSumExp"),
    REDUCE("ReduceMax"),
    REDUCE("ReduceMean"),
    REDUCE("ReduceMin"),
    REDUCE("ReduceProd"),
    REDUCE("ReduceSum"),
    REDUCE("ReduceSumSquare"),
    UNARY("Relu"),
    LIST("Reshape", FLAT_ORDER, AXES_PLAIN, NULL, 1),
    RESIZE(10, 1, 1),
    RESIZE(11, 3, 2),
    UNARY("Round"),
    UNARY("Selu"),
    ONE("Shape", 1, SHAPE, AXES_PLAIN, NULL, 0),
    UNARY("Shrink"),
    UNARY("Sigmoid"),
    UNARY("Sign"),
    UNARY("Sin"),
    UNARY("Sinh"),
    LIST("Slice", SOME_AXES, AXES_KEPT, "axes", 3),
    ONE("Softmax", 1, DIVISION, AXES_KEPT, "axis", 1),
    ONE("Softmax", 13, ONE_AXIS, AXES_KEPT, "axis", -1),
    UNARY("Softplus"),
    UNARY("Softsign"),
    ONE("Split", 2, ONE_AXIS, AXES_KEPT, "axis", 0),
    UNARY("Sqrt"),
    LIST("Squeeze", SOME_AXES, AXES_DROPPED, "axes", 1),
    BROADCAST("Sub"),
    BROADCAST("Sum"),
    UNARY("Swish"),
    UNARY("Tan"),
    UNARY("Tanh"),
    UNARY("ThresholdedRelu"),
    EACH("Tile", 6, NULL, 1),
    ONE("TopK", 1, ONE_AXIS, AXES_KEPT, "axis", -1),
    LIST("Unsqueeze", SOME_AXES, AXES_ADDED, "axes", 1),
    BROADCAST("Where"),
    BROADCAST("Xor"),
};

static int compare_names(const void* key, const void* entry) {
  const OrtNode* node = key;
  const LayoutRule* rule = entry;
  int order = strcmp(node->op_type, rule->op_type);
  return order != 0 ? order : strcmp(node->domain, rule->domain);
}

const LayoutRule* layout_rule(const OrtNode* node) {
  const LayoutRule* end = rules + sizeof rules / sizeof *rules;
  const LayoutRule* found = bsearch(node, rules, (size_t)(end - rules), sizeof *rules, compare_names);
  if (found == NULL) return NULL;
  while (found > rules && compare_names(node, found - 1) == 0) found--;
  const LayoutRule* newest = NULL;
  for (; found < end && compare_names(node, found) == 0; found++) {
    if (found->since_version <= node->since_version) newest = found;
  }
  return newest;
}

bool rule_permutes_input(const LayoutRule* rule, size_t index) {
  if (rule == NULL) return index == 0;
  if (index < rule->first || (index - rule->first) % rule->step != 0) return false;
  return rule->most == 0 || (index - rule->first) / rule->step < rule->most;
}

bool rule_broadcasts(const LayoutRule* rule) {
  return rule != NULL && rule->is_broadcast;
}

bool rule_is_for_conversion(const LayoutRule* rule) {
  return rule->is_for_conversion;
}

/* ---- What a node says ---- */

static int64_t attribute_int(const OrtNode* node, const char* name, int64_t absent) {
  const OrtOpAttr* found = node_find_attribute(node, name);
  return found != NULL && found->type == ORT_OP_ATTR_INT ? found->i : absent;
}

/* NULL: missing, or empty. */
static const OrtValueInfo* input_at(const OrtNode* node, size_t index) {
  const OrtValueInfo* value = index < node->input_count ? node->inputs[index] : NULL;
  bool is_empty = value != NULL && value->is_constant && value->initializer != NULL &&
                  value->initializer->element_count == 0;
  return is_empty ? NULL : value;
}

static bool normalize(int64_t* axis, size_t rank) {
  if (*axis < 0) *axis += (int64_t)rank;
  return *axis >= 0 && *axis < (int64_t)rank;
}

/* borrows; NULL: unknown. */
static const OrtTensorTypeAndShapeInfo* shape_of(const OrtValueInfo* value) {
  const OrtTensorTypeAndShapeInfo* shape = value != NULL && value->type != NULL ? value->type->tensor : NULL;
  return shape != NULL && shape->has_shape ? shape : NULL;
}

/* The dimension of the first input's axis, as it was; -1: unknown. */
static int64_t dimension(const OrtNode* node, size_t rank, size_t axis) {
  const OrtTensorTypeAndShapeInfo* shape = shape_of(node->inputs[0]);
  return shape != NULL && shape->rank == rank ? shape->dims[axis] : -1;
}

/* ---- Plans ---- */

typedef struct Plan {
  const LayoutRule* rule;
  const OrtNode* node;
  const Perm* perm;
  Move* move;
  bool named[MAX_PERM_RANK]; /* axes of the data, or of the output for AXES_ADDED */
  size_t named_count;
} Plan;

static Change* add_change(Move* move, const char* attribute, size_t input, size_t count) {
  Change* change = &move->changes[move->change_count++];
  *change = (Change){.attribute = attribute, .input = input, .count = count};
  return change;
}

static bool name_axis(Plan* plan, int64_t axis) {
  if (plan->named[axis]) return false;
  plan->named[axis] = true;
  plan->named_count++;
  return true;
}

static bool plan_one_axis(Plan* plan) {
  int64_t axis = attribute_int(plan->node, plan->rule->attribute, plan->rule->absent);
  if (!normalize(&axis, plan->perm->rank) || !name_axis(plan, axis)) return false;
  add_change(plan->move, plan->rule->attribute, 0, 1)->numbers[0] = (int64_t)plan->perm->axes[axis];
  return true;
}

/* Nothing may go from one side to the other. */
static bool plan_division(const Plan* plan) {
  int64_t axis = attribute_int(plan->node, plan->rule->attribute, plan->rule->absent);
  if (!normalize(&axis, plan->perm->rank)) return false;
  for (size_t i = 0; i < plan->perm->rank; i++) {
    if ((i < (size_t)axis) != (plan->perm->axes[i] < (size_t)axis)) return false;
  }
  return true;
}

/* Reads the list that an attribute or an input holds; *is_there is false where there is none. False if it
 * is not known. */
static bool read_list(const OrtNode* node, const char* attribute, size_t input, int64_t* numbers,
                      size_t* count, bool* is_there) {
  const OrtOpAttr* found = node_find_attribute(node, attribute);
  const OrtValueInfo* value = input != 0 ? input_at(node, input) : NULL;
  *is_there = found != NULL || value != NULL;
  *count = 0;
  if (found == NULL) return value == NULL || constant_numbers(value, numbers, count);
  if (found->type != ORT_OP_ATTR_INTS || found->count > MAX_NUMBERS) return false;
  memcpy(numbers, found->ints, found->count * sizeof *numbers);
  *count = found->count;
  return true;
}

/* The axes of a Slice that does not list them: the first ones. */
static bool first_axes(const OrtNode* node, int64_t* axes, size_t* count) {
  const OrtOpAttr* starts = node_find_attribute(node, "starts");
  const OrtTensorTypeAndShapeInfo* shape = shape_of(input_at(node, 1));
  if (starts == NULL && (shape == NULL || shape->rank != 1)) return false;
  int64_t length = starts != NULL ? (int64_t)starts->count : shape->dims[0];
  if (length < 0 || length > MAX_PERM_RANK) return false;
  *count = (size_t)length;
  for (size_t i = 0; i < *count; i++) axes[i] = (int64_t)i;
  return true;
}

/* The axes of the list become those of what the node will read. */
static bool follow_axes(Plan* plan, const int64_t* axes, size_t count, const char* attribute, size_t input) {
  Change* change = add_change(plan->move, attribute, input, count);
  change->is_list = true;
  for (size_t i = 0; i < count; i++) {
    int64_t axis = axes[i];
    if (!normalize(&axis, plan->perm->rank) || !name_axis(plan, axis)) return false;
    change->numbers[i] = (int64_t)plan->perm->axes[axis];
  }
  return true;
}

static bool plan_some_axes(Plan* plan) {
  const LayoutRule* rule = plan->rule;
  int64_t axes[MAX_NUMBERS];
  size_t count;
  bool is_there;
  if (!read_list(plan->node, rule->attribute, rule->input, axes, &count, &is_there)) return false;
  if (rule->output == AXES_ADDED) {
    size_t rank = plan->perm->rank + count;
    bool fits = rank <= MAX_PERM_RANK;
    for (size_t i = 0; fits && i < count; i++) fits = normalize(&axes[i], rank) && name_axis(plan, axes[i]);
    return fits && is_there;
  }
  if (!is_there && rule->output == AXES_REMOVED) {
    bool is_no_op = attribute_int(plan->node, "noop_with_empty_axes", 0) == 1;
    for (size_t i = 0; i < plan->perm->rank && !is_no_op; i++) name_axis(plan, (int64_t)i);
    return true;
  }
  if (!is_there && (rule->output != AXES_KEPT || !first_axes(plan->node, axes, &count))) return false;
  const char* attribute = node_find_attribute(plan->node, rule->attribute) != NULL ||
                                  node_find_attribute(plan->node, "starts") != NULL
                              ? rule->attribute
                              : NULL;
  return follow_axes(plan, axes, count, attribute, rule->input);
}

/* The numbers of one attribute or input. */
static bool follow_numbers(const Plan* plan, const char* attribute, size_t input, size_t count,
                           size_t per_axis) {
  size_t rank = plan->perm->rank;
  if (count != per_axis * rank) return false;
  Change* change = add_change(plan->move, attribute, input, count);
  change->is_list = change->is_pick = true;
  for (size_t i = 0; i < count; i++)
    change->numbers[i / rank * rank + plan->perm->axes[i % rank]] = (int64_t)i;
  return true;
}

/* What a Resize may only be told at run: roi, scales, sizes. Unused and empty ones stay. False if it cannot
 * be known that there is a number for each axis. */
static bool follow_unknown_numbers(const Plan* plan, size_t input, size_t per_axis) {
  const size_t scales = 2, sizes = 3;
  const OrtNode* node = plan->node;
  const OrtTensorTypeAndShapeInfo* shape = shape_of(input_at(node, input));
  size_t count = per_axis * plan->perm->rank;
  int64_t length = shape != NULL && shape->rank == 1 ? shape->dims[0] : -1;
  if (per_axis == 2) { /* roi */
    const OrtOpAttr* mode = node_find_attribute(node, "coordinate_transformation_mode");
    if (mode == NULL || !str_equal(mode->s, "tf_crop_and_resize")) return true;
  } else if (length < 0 && input_at(node, scales) != NULL && input_at(node, sizes) != NULL) {
    return false; /* one of them is empty */
  }
  if (length == 0) return true;
  return (length < 0 || length == (int64_t)count) && follow_numbers(plan, NULL, input, count, per_axis);
}

static bool plan_each_axis(Plan* plan) {
  const OrtNode* node = plan->node;
  const LayoutRule* rule = plan->rule;
  const size_t axes_input = 3; /* of Pad; Resize has an attribute */
  int64_t axes[MAX_NUMBERS];
  size_t count;
  bool has_axes;
  if (!read_list(node, "axes", rule->last < axes_input ? axes_input : 0, axes, &count, &has_axes))
    return false;
  const char* axes_attribute = node_find_attribute(node, "axes") != NULL ? "axes" : NULL;
  if (has_axes) return follow_axes(plan, axes, count, axes_attribute, axes_input);
  const OrtOpAttr* numbers = rule->attribute != NULL ? node_find_attribute(node, rule->attribute) : NULL;
  if (numbers != NULL) return follow_numbers(plan, rule->attribute, 0, numbers->count, rule->per_axis);
  for (size_t i = rule->input; i <= rule->last; i++) {
    const OrtValueInfo* value = input_at(node, i);
    size_t per_axis = i == 1 ? rule->per_axis : 1;
    if (value == NULL) continue;
    if (rule->is_for_conversion && !value->is_constant) {
      if (!follow_unknown_numbers(plan, i, per_axis)) return false;
    } else if (!is_movable_constant(value) || value->initializer->rank != 1 ||
               !follow_numbers(plan, NULL, i, value->initializer->element_count, per_axis)) {
      return false;
    }
  }
  return true;
}

static bool plan_quantized(Plan* plan) {
  const OrtNode* node = plan->node;
  const OrtTensorTypeAndShapeInfo* shape = shape_of(input_at(node, 1));
  if (node->domain[0] == '\0' && node->since_version < 13) return true; /* one scale for all */
  if (shape == NULL) return false;
  if (shape->rank == 0 || (shape->rank == 1 && shape->dims[0] == 1)) return true;
  return shape->rank == 1 && attribute_int(node, "block_size", 0) == 0 && plan_one_axis(plan);
}

static bool plan_shape(const Plan* plan) {
  Move* move = plan->move;
  int64_t rank = (int64_t)plan->perm->rank;
  int64_t start = attribute_int(plan->node, "start", 0), end = attribute_int(plan->node, "end", rank);
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  for (int64_t i = start < 0 ? 0 : start; i < end && i < rank; i++) {
    move->picks[move->pick_count++] = (int64_t)plan->perm->axes[i];
    move->is_shape = move->is_shape || plan->perm->axes[i] != (size_t)i;
  }
  return true;
}

/* A shape may say 0 for a dimension that is to stay: it must be at the same place. */
static bool keeps_zeros(const Plan* plan) {
  int64_t shape[MAX_NUMBERS];
  size_t count;
  const OrtValueInfo* value = input_at(plan->node, 1);
  if (value == NULL || !constant_numbers(value, shape, &count)) return false;
  for (size_t i = 0; i < count; i++) {
    bool is_moved = i >= plan->perm->rank || plan->perm->axes[i] != i;
    if (shape[i] == 0 && is_moved) return false;
  }
  return true;
}

/* Only axes of one element may change places: then the elements stay in order. */
static bool plan_flat_order(const Plan* plan) {
  const size_t* axes = plan->perm->axes;
  size_t rank = plan->perm->rank, least = 0, after = 0;
  bool is_flatten = plan->rule->attribute != NULL;
  int64_t axis = is_flatten ? attribute_int(plan->node, plan->rule->attribute, plan->rule->absent) : 0;
  if (axis < 0) axis += (int64_t)rank;
  for (size_t i = 0; i < rank; i++) {
    if (dimension(plan->node, rank, i) == 1) continue;
    if (axes[i] < least) return false;
    least = axes[i] + 1;
    if ((int64_t)i < axis) after = axes[i] + 1;
  }
  if (is_flatten) add_change(plan->move, plan->rule->attribute, 0, 1)->numbers[0] = (int64_t)after;
  return is_flatten || keeps_zeros(plan);
}

/* Not an input of several axes, which would all be in the place of the one. */
static bool is_taken_once(const OrtNode* node) {
  const OrtTensorTypeAndShapeInfo* shape = shape_of(input_at(node, 1));
  return shape != NULL && shape->rank <= 1;
}

static bool plan_axes(Plan* plan) {
  switch (plan->rule->use) {
    case NO_AXES:
      return true;
    case ONE_AXIS:
      return plan_one_axis(plan) && (plan->rule->output != AXES_TAKEN || is_taken_once(plan->node));
    case DIVISION:
      return plan_division(plan);
    case SOME_AXES:
      return plan_some_axes(plan);
    case EACH_AXIS:
      return plan_each_axis(plan);
    case QUANTIZED:
      return plan_quantized(plan);
    case SHAPE:
      return plan_shape(plan);
    case FLAT_ORDER:
      return plan_flat_order(plan);
  }
  return false;
}

/* True if the named axes are not among the output's. */
static bool removes_axes(const Plan* plan) {
  switch (plan->rule->output) {
    case AXES_REMOVED:
      return attribute_int(plan->node, "keepdims", 1) != 1;
    case AXES_TAKEN:
      return shape_of(plan->node->inputs[1])->rank == 0;
    default:
      return plan->rule->output == AXES_DROPPED;
  }
}

bool rule_plan(const LayoutRule* rule, const OrtNode* node, const Perm* perm, Move* out) {
  memset(out, 0, sizeof *out);
  Plan plan = {.rule = rule, .node = node, .perm = perm, .move = out};
  if (!plan_axes(&plan)) return false;
  if (rule->output != AXES_PLAIN) out->output = *perm;
  if (removes_axes(&plan)) out->output = perm_without(perm, plan.named);
  if (rule->output == AXES_ADDED) out->output = perm_with(perm, plan.named, plan.named_count);
  out->is_plain = perm_is_identity(&out->output);
  return true;
}

size_t rule_output_rank(const LayoutRule* rule, const OrtNode* node, size_t rank) {
  const OrtTensorTypeAndShapeInfo* shape = shape_of(input_at(node, 1));
  Move move;
  if (rule->use == FLAT_ORDER && rule->attribute == NULL) /* Reshape */
    return shape != NULL && shape->rank == 1 && shape->dims[0] > 0 ? (size_t)shape->dims[0] : 0;
  if (rank == 0 || rank > MAX_PERM_RANK) return 0;
  Perm perm = perm_to_first(rank);
  return rule_plan(rule, node, &perm, &move) ? move.output.rank : 0;
}
