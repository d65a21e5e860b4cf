/* Operators that make one element of two (or of as many as there are inputs), with broadcasting. */
#include <string.h>

#include "kernels.h"

/* One row: each operand steps by one element or stays (0). Returns what went wrong, NULL if nothing did.
 * out may be either operand where that operand does not repeat. */
typedef const char* (*BinaryLoop)(const void* a, int64_t a_step, const void* b, int64_t b_step, void* out,
                                  int64_t count);

typedef struct BinaryOp {
  size_t result_size; /* bytes of a result element; 0: as the operands */
  bool one_shape;     /* of a variadic operator: operands do not broadcast */
  BinaryLoop loops[CPU_TYPE_COUNT];
} BinaryOp;

static OrtStatus* run_rows(const CpuKernel* kernel, BinaryLoop loop, const CpuTensor* a, const CpuTensor* b,
                           const int64_t* dims, size_t rank, void* out, size_t result_size) {
  CpuWalk walk;
  int64_t a_size = (int64_t)cpu_element_size(a->type), b_size = (int64_t)cpu_element_size(b->type);
  char* target = out;
  cpu_walk_broadcast((const CpuTensor*[]){a, b}, 2, dims, rank, &walk);
  size_t last = walk.rank - 1;
  do {
    const char* error =
        loop((const char*)a->data + walk.offset[0] * a_size, walk.strides[0][last],
             (const char*)b->data + walk.offset[1] * b_size, walk.strides[1][last], target, walk.dims[last]);
    if (error) return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "%s", error);
    target += walk.dims[last] * (int64_t)result_size;
  } while (cpu_walk_next(&walk));
  return NULL;
}

static OrtStatus* find_loop(const CpuKernel* kernel, const CpuTensor* a, const CpuTensor* b,
                            BinaryLoop* loop) {
  const BinaryOp* op = kernel->op->family;
  *loop = op->loops[a->type % CPU_TYPE_COUNT];
  if (*loop && a->type == b->type) return NULL;
  return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "element types %d and %d: expected the same, supported type",
                  (int)a->type, (int)b->type);
}

static OrtStatus* compute_binary(const CpuKernel* kernel, OrtKernelContext* context) {
  const BinaryOp* op = kernel->op->family;
  CpuTensor a, b;
  int64_t dims[CPU_MAX_RANK], count;
  size_t rank;
  BinaryLoop loop;
  void* out;
  OrtStatus* status = cpu_input(kernel, context, 0, &a);
  if (!status) status = cpu_input(kernel, context, 1, &b);
  if (!status) status = find_loop(kernel, &a, &b, &loop);
  if (!status) status = cpu_broadcast_shape(kernel, (const CpuTensor*[]){&a, &b}, 2, dims, &rank);
  if (!status) status = cpu_output(kernel, context, 0, dims, rank, &out);
  if (status || !out || !cpu_element_count(dims, rank, &count) || count == 0) return status;
  size_t result_size = op->result_size ? op->result_size : cpu_element_size(a.type);
  return run_rows(kernel, loop, &a, &b, dims, rank, out, result_size);
}

/* Broadcasts a shape with one more tensor's. */
static OrtStatus* widen_shape(const CpuKernel* kernel, const CpuTensor* next, int64_t* dims, size_t* rank) {
  int64_t copy[CPU_MAX_RANK];
  memcpy(copy, dims, *rank * sizeof *dims);
  CpuTensor so_far = {.rank = *rank, .dims = copy};
  return cpu_broadcast_shape(kernel, (const CpuTensor*[]){&so_far, next}, 2, dims, rank);
}

static bool same_shape(const CpuTensor* next, const int64_t* dims, size_t rank) {
  if (next->rank != rank) return false;
  for (size_t i = 0; i < rank; i++)
    if (next->dims[i] != dims[i]) return false;
  return true;
}

static OrtStatus* add_operand_shape(const CpuKernel* kernel, const CpuTensor* next, int64_t* dims,
                                    size_t* rank) {
  const BinaryOp* op = kernel->op->family;
  if (!op->one_shape) return widen_shape(kernel, next, dims, rank);
  if (same_shape(next, dims, *rank)) return NULL;
  return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "the inputs must have one shape before version 8");
}

/* Folds all inputs into the output, which starts as the first one. */
static OrtStatus* compute_variadic(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor first, next;
  int64_t dims[CPU_MAX_RANK], count;
  size_t rank;
  BinaryLoop loop;
  void* out = NULL;
  OrtStatus* status = cpu_input(kernel, context, 0, &first);
  if (status) return status;
  rank = first.rank;
  for (size_t i = 0; i < rank; i++) dims[i] = first.dims[i];
  for (size_t i = 1; i < kernel->input_count && !status; i++) {
    status = cpu_input(kernel, context, i, &next);
    if (!status) status = find_loop(kernel, &first, &next, &loop);
    if (!status) status = add_operand_shape(kernel, &next, dims, &rank);
  }
  if (!status) status = cpu_output(kernel, context, 0, dims, rank, &out);
  if (status || !out || !cpu_element_count(dims, rank, &count) || count == 0) return status;
  size_t size = cpu_element_size(first.type);
  CpuWalk walk;
  cpu_walk_broadcast((const CpuTensor*[]){&first}, 1, dims, rank, &walk);
  cpu_copy_strided(&walk, first.data, size, out);
  CpuTensor folded = {true, first.type, rank, dims, count, out};
  for (size_t i = 1; i < kernel->input_count && !status; i++) {
    status = cpu_input(kernel, context, i, &next);
    if (!status) status = find_loop(kernel, &folded, &next, &loop);
    if (!status) status = run_rows(kernel, loop, &folded, &next, dims, rank, out, size);
  }
  return status;
}

/* ---- Loops: the expression makes the result of x and y; `check` may leave the loop ---- */

#define DEFINE_LOOP(op, suffix, stored, computed, result, load, store, expression, check)          \
  static const char* op##_##suffix(const void* a_, int64_t a_step, const void* b_, int64_t b_step, \
                                   void* out_, int64_t count) {                                    \
    const stored *a = a_, *b = b_;                                                                 \
    result* out = out_;                                                                            \
    computed x = load(a[0]), y = load(b[0]);                                                       \
    if (a_step && b_step) {                                                                        \
      for (int64_t i = 0; i < count; i++) {                                                        \
        x = load(a[i]), y = load(b[i]);                                                            \
        check;                                                                                     \
        out[i] = (result)store(expression);                                                        \
      }                                                                                            \
    } else if (a_step) {                                                                           \
      for (int64_t i = 0; i < count; i++) {                                                        \
        x = load(a[i]);                                                                            \
        check;                                                                                     \
        out[i] = (result)store(expression);                                                        \
      }                                                                                            \
    } else {                                                                                       \
      for (int64_t i = 0; i < count; i++) {                                                        \
        y = load(b[i]);                                                                            \
        check;                                                                                     \
        out[i] = (result)store(expression);                                                        \
      }                                                                                            \
    }                                                                                              \
    return NULL;                                                                                   \
  }

/* float16 and bfloat16 compute in float and round once. */
#define REAL_LOOP(op, s, type, stored, computed, load, store, expression) \
  DEFINE_LOOP(op, s, stored, computed, stored, load, store, expression, (void)0)
#define INTEGER_LOOP(op, s, type, stored, wrapping, smallest, expression) \
  DEFINE_LOOP(op, s, stored, stored, stored, CPU_SAME, CPU_SAME, expression, (void)0)
#define WRAPPING_LOOP(op, s, type, stored, wrapping, smallest, expression) \
  DEFINE_LOOP(op, s, stored, wrapping, stored, (wrapping), CPU_SAME, expression, (void)0)
#define REAL_TEST(op, s, type, stored, computed, load, store, expression) \
  DEFINE_LOOP(op, s, stored, computed, uint8_t, load, CPU_SAME, expression, (void)0)
#define INTEGER_TEST(op, s, type, stored, wrapping, smallest, expression) \
  DEFINE_LOOP(op, s, stored, stored, uint8_t, CPU_SAME, CPU_SAME, expression, (void)0)

/* The processor traps on both of these. */
#define CHECK_ZERO \
  if (y == 0) return "integer division by zero"
#define CHECK_SIGNED(smallest) \
  CHECK_ZERO;                  \
  if (y == -1 && x == (smallest)) return "integer overflow: the smallest value divided by -1"
#define SIGNED_DIVISION(op, s, type, stored, wrapping, smallest, ...) \
  DEFINE_LOOP(op, s, stored, stored, stored, CPU_SAME, CPU_SAME, x / y, CHECK_SIGNED(smallest))
#define UNSIGNED_DIVISION(op, s, type, stored, ...) \
  DEFINE_LOOP(op, s, stored, stored, stored, CPU_SAME, CPU_SAME, x / y, CHECK_ZERO)

/* clang-format off */
#define ARITHMETIC(op, expression) \
  CPU_REAL_TYPES(REAL_LOOP, op, expression) CPU_INTEGER_TYPES(WRAPPING_LOOP, op, expression)
#define COMPARISON(op, expression) \
  CPU_REAL_TYPES(REAL_TEST, op, expression) CPU_INTEGER_TYPES(INTEGER_TEST, op, expression)

ARITHMETIC(add, x + y)
ARITHMETIC(sub, x - y)
ARITHMETIC(mul, x * y)
CPU_REAL_TYPES(REAL_LOOP, div, x / y)
CPU_SIGNED_TYPES(SIGNED_DIVISION, div)
CPU_UNSIGNED_TYPES(UNSIGNED_DIVISION, div)
CPU_REAL_TYPES(REAL_LOOP, max, x > y || x != x ? x : y) /* a NaN on either side is the result */
CPU_REAL_TYPES(REAL_LOOP, min, x < y || x != x ? x : y)
CPU_INTEGER_TYPES(INTEGER_LOOP, max, x > y ? x : y)
CPU_INTEGER_TYPES(INTEGER_LOOP, min, x < y ? x : y)
COMPARISON(equal, x == y)
COMPARISON(less, x < y)
COMPARISON(greater, x > y)
INTEGER_TEST(equal, b, BOOL, uint8_t, , , !x == !y)
INTEGER_TEST(and, b, BOOL, uint8_t, , , x && y)
INTEGER_TEST(or, b, BOOL, uint8_t, , , x || y)
/* clang-format on */

/* ---- The operators' tables ---- */

#define BINARY(name, run, result_size, ...) BINARY_WITH(name, run, result_size, false, __VA_ARGS__)
#define BINARY_WITH(name, run, result_size, one_shape, ...)                  \
  static const BinaryOp name##_op = {result_size, one_shape, {__VA_ARGS__}}; \
  const CpuOperator cpu_##name = {.size = sizeof(CpuKernel), .compute = run, .family = &name##_op};
#define NUMBERS(op) CPU_REAL_TYPES(CPU_ENTRY, op) CPU_INTEGER_TYPES(CPU_ENTRY, op)

BINARY(add, compute_binary, 0, NUMBERS(add))
BINARY(sub, compute_binary, 0, NUMBERS(sub))
BINARY(mul, compute_binary, 0, NUMBERS(mul))
BINARY(div, compute_binary, 0, NUMBERS(div))
BINARY(max, compute_variadic, 0, NUMBERS(max))
BINARY(min, compute_variadic, 0, NUMBERS(min))
BINARY_WITH(max_v6, compute_variadic, 0, true, CPU_REAL_TYPES(CPU_ENTRY, max))
BINARY_WITH(min_v6, compute_variadic, 0, true, CPU_REAL_TYPES(CPU_ENTRY, min))
BINARY(equal, compute_binary, 1, NUMBERS(equal) CPU_ENTRY(equal, b, BOOL))
BINARY(less, compute_binary, 1, NUMBERS(less))
BINARY(greater, compute_binary, 1, NUMBERS(greater))
BINARY(and, compute_binary, 1, CPU_ENTRY(and, b, BOOL))
BINARY(or, compute_binary, 1, CPU_ENTRY(or, b, BOOL))
