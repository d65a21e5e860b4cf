/* Operators that make one element of two (or of as many as there are inputs), with broadcasting. */
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "kernels.h"

/* One row: each operand steps by one element or stays (0). Returns what went wrong, NULL if nothing did.
 * out may be either operand where that operand does not repeat. */
typedef const char* (*BinaryLoop)(const void* a, int64_t a_step, const void* b, int64_t b_step, void* out,
                                  int64_t count);

typedef struct BinaryOp {
  size_t result_size; /* bytes of a result element; 0: as the operands */
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
  const BinaryOp* op = kernel->class_->family;
  *loop = op->loops[a->type % CPU_TYPE_COUNT];
  if (*loop && a->type == b->type) return NULL;
  return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "element types %d and %d: expected the same, supported type",
                  (int)a->type, (int)b->type);
}

static OrtStatus* compute_binary(const CpuKernel* kernel, OrtKernelContext* context) {
  const BinaryOp* op = kernel->class_->family;
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
    if (!status) status = widen_shape(kernel, &next, dims, &rank);
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

/* ---- Loops ---- */

#define ROW(load, store_as, x_type, expression, check) \
  if (a_step && b_step) {                              \
    for (int64_t i = 0; i < count; i++) {              \
      x_type x = load(a[i]), y = load(b[i]);           \
      check;                                           \
      out[i] = store_as(expression);                   \
    }                                                  \
  } else if (a_step) {                                 \
    x_type y = load(b[0]);                             \
    for (int64_t i = 0; i < count; i++) {              \
      x_type x = load(a[i]);                           \
      check;                                           \
      out[i] = store_as(expression);                   \
    }                                                  \
  } else {                                             \
    x_type x = load(a[0]);                             \
    for (int64_t i = 0; i < count; i++) {              \
      x_type y = load(b[i]);                           \
      check;                                           \
      out[i] = store_as(expression);                   \
    }                                                  \
  }

#define DEFINE_LOOP(op, suffix, stored, computed, result, load, store, expression, check)          \
  static const char* op##_##suffix(const void* a_, int64_t a_step, const void* b_, int64_t b_step, \
                                   void* out_, int64_t count) {                                    \
    const stored *a = a_, *b = b_;                                                                 \
    result* out = out_;                                                                            \
    ROW(load, (result)store, computed, expression, check)                                          \
    return NULL;                                                                                   \
  }

#define REAL_LOOP(op, s, stored, computed, load, store, expression) \
  DEFINE_LOOP(op, s, stored, computed, stored, load, store, expression, (void)0)
#define INTEGER_LOOP(op, s, type, expression, check) \
  DEFINE_LOOP(op, s, type, type, type, CPU_SAME, CPU_SAME, expression, check)
#define TEST_LOOP(op, s, stored, computed, load, expression) \
  DEFINE_LOOP(op, s, stored, computed, uint8_t, load, CPU_SAME, expression, (void)0)

/* Arithmetic: integers wrap, so they compute unsigned. */
#define ADD_REAL(s, t, stored, computed, load, store) REAL_LOOP(add, s, stored, computed, load, store, x + y)
#define SUB_REAL(s, t, stored, computed, load, store) REAL_LOOP(sub, s, stored, computed, load, store, x - y)
#define MUL_REAL(s, t, stored, computed, load, store) REAL_LOOP(mul, s, stored, computed, load, store, x* y)
#define DIV_REAL(s, t, stored, computed, load, store) REAL_LOOP(div, s, stored, computed, load, store, x / y)
#define ADD_INTEGER(s, t, type, wrapping, smallest) \
  INTEGER_LOOP(add, s, type, (wrapping)x + (wrapping)y, (void)0)
#define SUB_INTEGER(s, t, type, wrapping, smallest) \
  INTEGER_LOOP(sub, s, type, (wrapping)x - (wrapping)y, (void)0)
#define MUL_INTEGER(s, t, type, wrapping, smallest) \
  INTEGER_LOOP(mul, s, type, (wrapping)x*(wrapping)y, (void)0)

/* The processor traps on both of these. */
#define CHECK_ZERO \
  if (y == 0) return "integer division by zero"
#define CHECK_SIGNED(smallest)                   \
  if (y == 0) return "integer division by zero"; \
  if (y == -1 && x == (smallest)) return "integer overflow: the smallest value divided by -1"
#define DIV_SIGNED(s, t, type, wrapping, smallest)   INTEGER_LOOP(div, s, type, x / y, CHECK_SIGNED(smallest))
#define DIV_UNSIGNED(s, t, type, wrapping, smallest) INTEGER_LOOP(div, s, type, x / y, CHECK_ZERO)

/* A NaN on either side is the result. */
#define MAX_REAL(s, t, stored, computed, load, store) \
  REAL_LOOP(max, s, stored, computed, load, store, x > y || x != x ? x : y)
#define MIN_REAL(s, t, stored, computed, load, store) \
  REAL_LOOP(min, s, stored, computed, load, store, x < y || x != x ? x : y)
#define MAX_INTEGER(s, t, type, wrapping, smallest) INTEGER_LOOP(max, s, type, x > y ? x : y, (void)0)
#define MIN_INTEGER(s, t, type, wrapping, smallest) INTEGER_LOOP(min, s, type, x < y ? x : y, (void)0)

#define EQUAL_REAL(s, t, stored, computed, load, store)   TEST_LOOP(equal, s, stored, computed, load, x == y)
#define LESS_REAL(s, t, stored, computed, load, store)    TEST_LOOP(less, s, stored, computed, load, x < y)
#define GREATER_REAL(s, t, stored, computed, load, store) TEST_LOOP(greater, s, stored, computed, load, x > y)
#define EQUAL_INTEGER(s, t, type, wrapping, smallest)     TEST_LOOP(equal, s, type, type, CPU_SAME, x == y)
#define LESS_INTEGER(s, t, type, wrapping, smallest)      TEST_LOOP(less, s, type, type, CPU_SAME, x < y)
#define GREATER_INTEGER(s, t, type, wrapping, smallest)   TEST_LOOP(greater, s, type, type, CPU_SAME, x > y)

#define ALL_TYPES(real, integer) \
  CPU_REAL_TYPES(real)           \
  CPU_SIGNED_TYPES(integer)      \
  CPU_UNSIGNED_TYPES(integer)

ALL_TYPES(ADD_REAL, ADD_INTEGER)
ALL_TYPES(SUB_REAL, SUB_INTEGER)
ALL_TYPES(MUL_REAL, MUL_INTEGER)
CPU_REAL_TYPES(DIV_REAL)
CPU_SIGNED_TYPES(DIV_SIGNED)
CPU_UNSIGNED_TYPES(DIV_UNSIGNED)
ALL_TYPES(MAX_REAL, MAX_INTEGER)
ALL_TYPES(MIN_REAL, MIN_INTEGER)
ALL_TYPES(EQUAL_REAL, EQUAL_INTEGER)
ALL_TYPES(LESS_REAL, LESS_INTEGER)
ALL_TYPES(GREATER_REAL, GREATER_INTEGER)
TEST_LOOP(equal, b, uint8_t, bool, CPU_SAME, x == y)
TEST_LOOP(and, b, uint8_t, bool, CPU_SAME, x&& y)
TEST_LOOP(or, b, uint8_t, bool, CPU_SAME, x || y)

/* ---- The operators' tables ---- */

#define ENTRY(op, s, t)          [CPU_TYPE(t)] = op##_##s,
#define ADD_ENTRY(s, t, ...)     ENTRY(add, s, t)
#define SUB_ENTRY(s, t, ...)     ENTRY(sub, s, t)
#define MUL_ENTRY(s, t, ...)     ENTRY(mul, s, t)
#define DIV_ENTRY(s, t, ...)     ENTRY(div, s, t)
#define MAX_ENTRY(s, t, ...)     ENTRY(max, s, t)
#define MIN_ENTRY(s, t, ...)     ENTRY(min, s, t)
#define EQUAL_ENTRY(s, t, ...)   ENTRY(equal, s, t)
#define LESS_ENTRY(s, t, ...)    ENTRY(less, s, t)
#define GREATER_ENTRY(s, t, ...) ENTRY(greater, s, t)

#define BINARY(name, compute, result_size, ...)                   \
  static const BinaryOp name##_op = {result_size, {__VA_ARGS__}}; \
  const CpuKernelClass cpu_##name = {sizeof(CpuKernel), NULL, compute, NULL, &name##_op};

BINARY(add, compute_binary, 0, ALL_TYPES(ADD_ENTRY, ADD_ENTRY))
BINARY(sub, compute_binary, 0, ALL_TYPES(SUB_ENTRY, SUB_ENTRY))
BINARY(mul, compute_binary, 0, ALL_TYPES(MUL_ENTRY, MUL_ENTRY))
BINARY(div, compute_binary, 0, ALL_TYPES(DIV_ENTRY, DIV_ENTRY))
BINARY(max, compute_variadic, 0, ALL_TYPES(MAX_ENTRY, MAX_ENTRY))
BINARY(min, compute_variadic, 0, ALL_TYPES(MIN_ENTRY, MIN_ENTRY))
BINARY(equal, compute_binary, 1, ALL_TYPES(EQUAL_ENTRY, EQUAL_ENTRY)[CPU_TYPE(BOOL)] = equal_b)
BINARY(less, compute_binary, 1, ALL_TYPES(LESS_ENTRY, LESS_ENTRY))
BINARY(greater, compute_binary, 1, ALL_TYPES(GREATER_ENTRY, GREATER_ENTRY))
BINARY(and, compute_binary, 1, [CPU_TYPE(BOOL)] = and_b)
BINARY(or, compute_binary, 1, [CPU_TYPE(BOOL)] = or_b)
