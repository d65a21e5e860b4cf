/* Generated nodes: every operator of the CPU provider, with operands that mostly go together. */
#include "generate.h"

typedef struct Operator {
  const char* op_type;
  uint32_t types; /* of its first input */
  int since;      /* the first version in which it takes all of them */
  void (*make)(Gen* gen, const struct Operator* op);
} Operator;

/* Puts a node with these inputs and an output like `shape`; attributes stand before. */
static void finish(Gen* gen, size_t mark, Value shape) {
  node_output(gen, shape);
  node_end(gen, mark);
}

/* ---- One element of one, of two, of many ---- */

static void make_unary(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  if (strcmp(op->op_type, "LeakyRelu") == 0) attribute_float(gen, "alpha", 0.25f);
  finish(gen, mark, x);
}

static void make_cast(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types);
  int to = choose_type(gen, ANY);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  attribute_int(gen, "to", to);
  x.type = to;
  finish(gen, mark, x);
}

static void make_clip(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, gen->opset < 11 ? BIT(FLOAT) : op->types), bounds[2];
  bool has_bounds = gen->opset >= 11 && below(gen, 4) != 0;
  for (int i = 0; i < 2 && has_bounds; i++) bounds[i] = new_constant(gen, x.type, 0, NULL, NULL);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  for (int i = 0; i < 2 && has_bounds; i++) {
    if (below(gen, 4) == 0)
      node_missing_input(gen);
    else
      node_input(gen, &bounds[i]);
  }
  if (gen->opset < 11) attribute_float(gen, "min", -1);
  if (gen->opset < 11) attribute_float(gen, "max", 1);
  finish(gen, mark, x);
}

static bool gives_bool(const char* op_type) {
  return strcmp(op_type, "Equal") == 0 || strcmp(op_type, "Less") == 0 || strcmp(op_type, "Greater") == 0;
}

static void make_binary(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), y = partner_of(gen, &x);
  bool is_swapped = below(gen, 3) == 0;
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, is_swapped ? &y : &x);
  node_input(gen, is_swapped ? &x : &y);
  finish(gen, mark, broadcast(&x, &y, gives_bool(op->op_type) ? (int)TYPE(BOOL) : x.type));
}

static void make_variadic(Gen* gen, const Operator* op) {
  Value inputs[4], result;
  uint32_t count = 1 + below(gen, 3);
  result = inputs[0] = choose_value(gen, op->types);
  for (uint32_t i = 1; i < count; i++) {
    inputs[i] = partner_of(gen, &inputs[0]);
    result = broadcast(&result, &inputs[i], result.type);
  }
  size_t mark = node_begin(gen, op->op_type);
  for (uint32_t i = 0; i < count; i++) node_input(gen, &inputs[i]);
  finish(gen, mark, result);
}

static void make_where(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), y = partner_of(gen, &x), condition = x;
  condition.type = TYPE(BOOL);
  condition = partner_of(gen, &condition);
  Value both = broadcast(&x, &y, x.type);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &condition);
  node_input(gen, &x);
  node_input(gen, &y);
  finish(gen, mark, broadcast(&both, &condition, x.type));
}

static void make_pow(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), y = x;
  if (gen->opset >= 12 && below(gen, 2)) y.type = choose_type(gen, NUMBERS);
  y = partner_of(gen, &y);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  node_input(gen, &y);
  finish(gen, mark, broadcast(&x, &y, x.type));
}

/* ---- Products ---- */

static void make_matmul(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types);
  if (x.rank == 0) x = choose_ranked(gen, op->types, 2);
  int64_t inner = x.rank > 0 ? x.dims[x.rank - 1] : 2, stack = x.rank > 2 ? x.dims[0] : 1 + below(gen, 2);
  int64_t dims[] = {stack, inner, 1 + below(gen, 9)};
  int rank = 1 + (int)below(gen, 3);
  Value y = new_constant(gen, x.type, rank, rank == 1 ? dims + 1 : dims + 3 - rank, NULL);
  Value result = {.type = x.type, .rank = -1};
  if (x.rank == 2 && rank == 2) result = shaped(x.type, 2, (int64_t[]){x.dims[0], dims[2]});
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  node_input(gen, &y);
  finish(gen, mark, result);
}

static void make_gemm(Gen* gen, const Operator* op) {
  Value a = choose_ranked(gen, op->types, 2), c;
  bool transposed[] = {below(gen, 3) == 0, below(gen, 3) == 0}, has_c = below(gen, 2);
  int64_t rows = a.dims[transposed[0]], inner = a.dims[!transposed[0]], columns = 1 + below(gen, 9);
  int64_t b_dims[] = {transposed[1] ? columns : inner, transposed[1] ? inner : columns};
  int64_t c_dims[] = {below(gen, 2) ? rows : 1, columns};
  Value b = new_constant(gen, a.type, 2, b_dims, NULL);
  if (has_c || gen->opset < 11) c = new_constant(gen, a.type, 2, c_dims, NULL);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &a);
  node_input(gen, &b);
  if (has_c || gen->opset < 11) node_input(gen, &c);
  if (below(gen, 2)) attribute_float(gen, "alpha", 0.5f);
  if (below(gen, 2)) attribute_float(gen, "beta", 2);
  if (transposed[0]) attribute_int(gen, "transA", 1);
  if (transposed[1]) attribute_int(gen, "transB", 1);
  finish(gen, mark, shaped(a.type, 2, (int64_t[]){rows, columns}));
}

/* ---- Lists of integers: an input since some version, an attribute before ---- */

typedef struct List {
  int64_t values[GEN_RANK];
  size_t count;
  bool is_input;
  Value input;
} List;

/* Before node_begin. */
static void prepare_list(Gen* gen, List* list, int input_since) {
  list->is_input = gen->opset >= input_since;
  if (list->is_input) list->input = new_list(gen, list->values, list->count);
}

/* After all inputs before it. */
static void put_list(Gen* gen, const List* list, const char* name) {
  if (list->is_input)
    node_input(gen, &list->input);
  else
    attribute_ints(gen, name, list->values, list->count);
}

/* Some of the axes of `rank` dimensions, each once. */
static List some_axes(Gen* gen, int rank, bool* marked) {
  List list = {.count = 0};
  for (int i = 0; i < rank && i < GEN_RANK; i++) {
    marked[i] = below(gen, 2);
    if (marked[i]) list.values[list.count++] = below(gen, 2) ? i : i - rank;
  }
  return list;
}

static void make_reduce(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), result = {.type = x.type, .rank = 0};
  bool marked[GEN_RANK] = {false}, keeps = below(gen, 2), has_axes = below(gen, 4) != 0;
  List list = some_axes(gen, x.rank, marked);
  has_axes = has_axes && list.count != 0;
  int since = strcmp(op->op_type, "ReduceSum") == 0 ? 13 : 18;
  if (has_axes) prepare_list(gen, &list, since);
  for (int i = 0; i < x.rank; i++) {
    if (has_axes && !marked[i])
      result.dims[result.rank++] = x.dims[i];
    else if (keeps)
      result.dims[result.rank++] = 1;
  }
  if (x.rank < 0) result.rank = -1;
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  if (has_axes) put_list(gen, &list, "axes");
  attribute_int(gen, "keepdims", keeps);
  finish(gen, mark, result);
}

static void make_reshape(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), result = {.type = x.type, .rank = -1};
  int64_t count = elements_of(&x);
  List list = {.values = {-1}, .count = 1};
  uint32_t kind = below(gen, 4);
  if (count > 0 && kind == 0) {
    list = (List){.values = {1, count, 1}, .count = 1 + below(gen, 3)};
    if (list.count == 1) list.values[0] = count;
    result = shaped(x.type, (int)list.count, list.values);
  } else if (count > 0 && x.rank > 1 && kind == 1) {
    list = (List){.values = {0, -1}, .count = 2};
    result = shaped(x.type, 2, (int64_t[]){x.dims[0], count / x.dims[0]});
  } else if (count > 0) {
    result = shaped(x.type, 1, &count);
  }
  prepare_list(gen, &list, 5);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  put_list(gen, &list, "shape");
  if (gen->opset >= 14 && is_bad(gen)) attribute_int(gen, "allowzero", 1);
  finish(gen, mark, result);
}

/* More dimensions than anybody has, or nearly. */
static void make_many_dimensions(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types);
  int64_t ones[48], count = 20 + below(gen, 28);
  for (int i = 0; i < 48; i++) ones[i] = number(gen, i == 0 ? -1 : 1);
  Value shape = new_constant(gen, TYPE(INT64), 1, &count, ones);
  size_t mark = node_begin(gen, below(gen, 3) == 0 ? "Expand" : "Reshape");
  node_input(gen, &x);
  node_input(gen, &shape);
  finish(gen, mark, (Value){.type = x.type, .rank = -1});
}

static void make_squeeze(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), result = {.type = x.type, .rank = 0};
  List list = {.count = 0};
  for (int i = 0; i < x.rank; i++) {
    if (x.dims[i] == 1 && below(gen, 3) != 0)
      list.values[list.count++] = i;
    else
      result.dims[result.rank++] = x.dims[i];
  }
  bool has_axes = list.count != 0;
  if (x.rank < 0 || !has_axes) result.rank = -1;
  if (has_axes) prepare_list(gen, &list, 13);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  if (has_axes) put_list(gen, &list, "axes");
  finish(gen, mark, result);
}

static void make_unsqueeze(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), result = {.type = x.type, .rank = 0};
  List list = {.count = 0};
  int more = 1 + (int)below(gen, 2), rank = x.rank + more;
  if (x.rank < 0 || rank > GEN_RANK) rank = more = 1;
  for (int i = 0, next = 0; i < rank; i++) {
    bool is_new = (int)list.count < more && (below(gen, 2) || rank - i <= more - (int)list.count);
    if (is_new) list.values[list.count++] = gen->opset >= 11 && below(gen, 2) ? i - rank : i;
    result.dims[result.rank++] = is_new ? 1 : x.dims[next++];
  }
  if (x.rank < 0 || rank != x.rank + more) result.rank = -1;
  prepare_list(gen, &list, 13);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  put_list(gen, &list, "axes");
  finish(gen, mark, result);
}

static void make_expand(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), result = x;
  List list = {.count = 0};
  for (int i = 0; i < x.rank; i++) {
    result.dims[i] = x.dims[i] == 1 ? 1 + below(gen, 4) : x.dims[i];
    list.values[list.count++] =
        below(gen, 2) ? result.dims[i] : (result.dims[i] == x.dims[i] ? 1 : result.dims[i]);
  }
  prepare_list(gen, &list, 8);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  put_list(gen, &list, "shape");
  finish(gen, mark, result);
}

static void make_slice(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), result = {.type = x.type, .rank = -1};
  bool marked[GEN_RANK] = {false}, has_steps = gen->opset >= 10 && below(gen, 2);
  List axes = some_axes(gen, x.rank, marked), starts = {.count = axes.count};
  List ends = starts, steps = starts;
  for (size_t i = 0; i < axes.count; i++) {
    starts.values[i] = (int64_t)below(gen, 5) - 2;
    ends.values[i] = below(gen, 3) == 0 ? INT64_MAX : (int64_t)below(gen, 6) - 2;
    steps.values[i] = (int64_t)below(gen, 3) - 1;
    if (steps.values[i] == 0) steps.values[i] = 2;
  }
  List* lists[] = {&starts, &ends, &axes, &steps};
  const char* names[] = {"starts", "ends", "axes", "steps"};
  for (int i = 0; i < 3 + has_steps; i++) prepare_list(gen, lists[i], 10);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  for (int i = 0; i < 3 + has_steps; i++) put_list(gen, lists[i], names[i]);
  finish(gen, mark, result);
}

static void make_transpose(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), result = x;
  List list = {.count = x.rank > 0 ? (size_t)x.rank : 0};
  bool has_perm = x.rank > 0 && below(gen, 3) != 0;
  for (int i = 0; i < x.rank; i++) list.values[i] = i;
  for (int i = x.rank - 1; i > 0 && has_perm; i--) {
    uint32_t other = below(gen, (uint32_t)i + 1);
    int64_t swapped = list.values[i];
    list.values[i] = list.values[other];
    list.values[other] = swapped;
  }
  for (int i = 0; i < x.rank; i++) result.dims[i] = x.dims[has_perm ? list.values[i] : x.rank - 1 - i];
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  if (has_perm) put_list(gen, &list, "perm");
  finish(gen, mark, result);
}

/* ---- An axis ---- */

static void make_softmax(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  if (below(gen, 3) != 0) attribute_int(gen, "axis", choose_axis(gen, x.rank));
  finish(gen, mark, x);
}

static void make_flatten(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  int64_t axis = x.rank > 0 ? below(gen, (uint32_t)x.rank + 1) : 0;
  attribute_int(gen, "axis", gen->opset >= 11 && axis > 0 && below(gen, 3) == 0 ? axis - x.rank - 1 : axis);
  finish(gen, mark, (Value){.type = x.type, .rank = -1});
}

static void make_concat(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types), inputs[3];
  if (x.rank == 0) x = choose_ranked(gen, op->types, 1);
  uint32_t count = x.rank < 0 ? 1 : 1 + below(gen, 3), axis = x.rank > 0 ? below(gen, (uint32_t)x.rank) : 0;
  inputs[0] = x;
  Value result = x;
  for (uint32_t i = 1; i < count; i++) {
    Value other = x;
    other.dims[axis] = below(gen, 3);
    inputs[i] = below(gen, 3) == 0 ? x : new_constant(gen, x.type, x.rank, other.dims, NULL);
    result.dims[axis] += inputs[i].dims[axis];
  }
  size_t mark = node_begin(gen, op->op_type);
  for (uint32_t i = 0; i < count; i++) node_input(gen, &inputs[i]);
  attribute_int(gen, "axis", below(gen, 2) && gen->opset >= 11 ? (int64_t)axis - x.rank : (int64_t)axis);
  finish(gen, mark, result);
}

static void make_split(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types);
  if (x.rank == 0) x = choose_ranked(gen, op->types, 1);
  uint32_t axis = x.rank > 0 ? below(gen, (uint32_t)x.rank) : 0;
  int64_t dim = x.rank > 0 ? x.dims[axis] : 2, first = dim > 0 ? below(gen, (uint32_t)(dim & 255) + 1) : 0;
  List list = {.values = {first, dim - first}, .count = 2};
  bool has_list = gen->opset >= 18 ? below(gen, 2) : true;
  if (has_list) prepare_list(gen, &list, 13);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  if (has_list)
    put_list(gen, &list, "split");
  else
    attribute_int(gen, "num_outputs", 2);
  attribute_int(gen, "axis", axis);
  for (int i = 0; i < 2; i++) {
    Value part = x;
    part.dims[axis] = list.values[i];
    if (!has_list) part.rank = -1;
    node_output(gen, part);
  }
  node_end(gen, mark);
}

static void make_gather(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types);
  if (x.rank == 0) x = choose_ranked(gen, op->types, 2);
  uint32_t axis = x.rank > 0 ? below(gen, (uint32_t)x.rank) : 0;
  int64_t dim = x.rank > 0 ? x.dims[axis] : 1, indices[4], dims[] = {1 + below(gen, 2), 1 + below(gen, 2)};
  for (int i = 0; i < 4; i++)
    indices[i] =
        number(gen, dim > 0 ? (int64_t)below(gen, 2 * (uint32_t)(dim & 255) + 1) % (2 * dim) - dim : 0);
  Value index = new_constant(gen, TYPE(INT64), (int)below(gen, 3), dims, indices);
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  node_input(gen, &index);
  attribute_int(gen, "axis", axis);
  finish(gen, mark, (Value){.type = x.type, .rank = -1});
}

/* ---- Shapes and constants ---- */

static void make_shape(Gen* gen, const Operator* op) {
  Value x = choose_value(gen, op->types);
  int64_t rank = x.rank;
  size_t mark = node_begin(gen, op->op_type);
  node_input(gen, &x);
  Value result = shaped(TYPE(INT64), x.rank < 0 ? -1 : 1, &rank);
  if (gen->opset >= 15 && below(gen, 3) == 0) {
    attribute_int(gen, "start", choose_axis(gen, x.rank));
    if (below(gen, 2)) attribute_int(gen, "end", choose_axis(gen, x.rank));
    result.rank = -1;
  }
  finish(gen, mark, result);
}

static void make_constant(Gen* gen, const Operator* op) {
  int64_t dims[] = {1 + below(gen, 3), 1 + below(gen, 3)}, three[] = {1, -1, 2};
  Value result = {.type = choose_type(gen, op->types), .rank = (int)below(gen, 3)};
  for (int i = 0; i < result.rank; i++) result.dims[i] = dims[i];
  size_t mark = node_begin(gen, op->op_type);
  uint32_t kind = gen->opset < 12 ? 0 : below(gen, 4);
  if (kind == 0) {
    size_t attribute = attribute_begin(gen, "value", 4);
    put_tensor(gen, 5, "", result.type, result.rank, result.dims, NULL);
    attribute_end(gen, attribute);
  } else if (kind == 1) {
    attribute_int(gen, "value_int", below(gen, 5));
    result = shaped(TYPE(INT64), 0, NULL);
  } else if (kind == 2) {
    attribute_float(gen, "value_float", 1.5f);
    result = shaped(TYPE(FLOAT), 0, NULL);
  } else {
    attribute_ints(gen, "value_ints", three, 3);
    result = shaped(TYPE(INT64), 1, (int64_t[]){3});
  }
  finish(gen, mark, result);
}

/* ---- All of them ---- */

static const Operator operators[] = {
    {"Abs", NUMBERS, 6, make_unary},
    {"Add", REALS | WIDE_INTEGERS, 7, make_binary},
    {"And", BOOLEAN, 7, make_binary},
    {"Cast", ANY, 6, make_cast},
    {"Ceil", REALS, 6, make_unary},
    {"Clip", NUMBERS, 12, make_clip},
    {"Concat", ANY, 4, make_concat},
    {"Constant", ANY, 1, make_constant},
    {"Div", REALS | WIDE_INTEGERS, 7, make_binary},
    {"Equal", INDICES | BOOLEAN, 7, make_binary},
    {"Erf", REALS, 9, make_unary},
    {"Exp", REALS, 6, make_unary},
    {"Expand", ANY, 8, make_expand},
    {"Flatten", ANY, 9, make_flatten},
    {"Floor", REALS, 6, make_unary},
    {"Gather", ANY, 1, make_gather},
    {"Gemm", REALS | WIDE_INTEGERS, 9, make_gemm},
    {"Greater", NUMBERS, 9, make_binary},
    {"Identity", ANY, 1, make_unary},
    {"LeakyRelu", REALS, 6, make_unary},
    {"Less", NUMBERS, 9, make_binary},
    {"Log", REALS, 6, make_unary},
    {"MatMul", REALS | WIDE_INTEGERS, 9, make_matmul},
    {"Max", NUMBERS, 12, make_variadic},
    {"Min", NUMBERS, 12, make_variadic},
    {"Mul", REALS | WIDE_INTEGERS, 7, make_binary},
    {"Neg", SIGNED | REALS, 6, make_unary},
    {"Not", BOOLEAN, 1, make_unary},
    {"Or", BOOLEAN, 7, make_binary},
    {"Pow", REALS | INDICES, 12, make_pow},
    {"ReduceMax", REALS | WIDE_INTEGERS, 1, make_reduce},
    {"ReduceMean", REALS | WIDE_INTEGERS, 1, make_reduce},
    {"ReduceSum", REALS | WIDE_INTEGERS, 1, make_reduce},
    {"Relu", SIGNED | REALS, 14, make_unary},
    {"Reshape", ANY, 5, make_reshape},
    {"Shape", ANY, 1, make_shape},
    {"Sigmoid", REALS, 6, make_unary},
    {"Slice", ANY, 1, make_slice},
    {"Softmax", REALS, 1, make_softmax},
    {"Split", ANY, 2, make_split},
    {"Sqrt", REALS, 6, make_unary},
    {"Squeeze", ANY, 1, make_squeeze},
    {"Sub", REALS | WIDE_INTEGERS, 7, make_binary},
    {"Tanh", REALS, 6, make_unary},
    {"Transpose", ANY, 1, make_transpose},
    {"Unsqueeze", ANY, 1, make_unsqueeze},
    {"Where", ANY, 9, make_where},
};

void generate_operator(Gen* gen) {
  if (gen->depth + 1 < GEN_DEPTH && below(gen, 12) == 0) {
    uint32_t kind = below(gen, 3);
    if (kind == 0) generate_if(gen);
    if (kind == 1) generate_loop(gen);
    if (kind == 2) generate_scan(gen);
    return;
  }
  const Operator* op = &operators[below(gen, sizeof operators / sizeof operators[0])];
  Operator narrowed = *op;
  if (is_bad(gen) && below(gen, 8) == 0) narrowed.make = make_many_dimensions;
  if (gen->opset < op->since && !is_bad(gen)) narrowed.types &= BIT(FLOAT) | BOOLEAN;
  narrowed.make(gen, &narrowed);
}
