/* Operators that make fewer elements of many (reductions), and Softmax, which runs over the same rows. */
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "kernels.h"

/* ---- Reductions: axes are an input in later versions, an attribute before ---- */

/* Reduces the elements that the walk visits from `base` on to one. */
typedef void (*ReduceLoop)(const void* base, CpuWalk* walk, int64_t count, void* out);

typedef struct ReduceOp {
  bool empty_fails_for_integers;
  ReduceLoop loops[CPU_TYPE_COUNT];
} ReduceOp;

typedef struct ReduceKernel {
  CpuKernel base;
  bool keep_dims;
  bool noop_with_empty_axes;
  CpuInts axes;
} ReduceKernel;

static OrtStatus* init_reduce(CpuKernel* kernel, const OrtKernelInfo* info) {
  ReduceKernel* reduce = (ReduceKernel*)kernel;
  reduce->keep_dims = cpu_attribute_flag(kernel, info, "keepdims", true);
  reduce->noop_with_empty_axes = cpu_attribute_flag(kernel, info, "noop_with_empty_axes", false);
  return cpu_attribute_ints(kernel, info, "axes", &reduce->axes);
}

/* Which axes are reduced: those listed; with an empty list or none, all or (noop) nothing. */
static OrtStatus* read_reduced(const CpuKernel* kernel, const OrtKernelContext* context, size_t rank,
                               bool* reduced) {
  const ReduceKernel* reduce = (const ReduceKernel*)kernel;
  CpuInts axes = reduce->axes;
  OrtStatus* status = NULL;
  if (!axes.present) status = cpu_input_ints(kernel, context, 1, "axes", &axes);
  for (size_t i = 0; i < rank; i++) reduced[i] = axes.count == 0 && !reduce->noop_with_empty_axes;
  for (size_t i = 0; i < axes.count && !status; i++) {
    size_t axis;
    status = cpu_axis(kernel, axes.values[i], rank, rank, &axis);
    if (!status) reduced[axis] = true;
  }
  return status;
}

/* Two walks over the input: one over what stays, one over what is folded into each output element. */
static void plan_reduction(const CpuTensor* input, const bool* reduced, CpuWalk* kept, CpuWalk* folded) {
  int64_t stride = 1, strides[CPU_MAX_RANK];
  for (size_t i = input->rank; i-- > 0;) {
    strides[i] = stride;
    stride *= input->dims[i];
  }
  kept->operands = folded->operands = 1;
  kept->rank = folded->rank = 0;
  for (size_t i = 0; i < input->rank; i++) {
    CpuWalk* walk = reduced[i] ? folded : kept;
    walk->dims[walk->rank] = input->dims[i];
    walk->strides[0][walk->rank++] = strides[i];
  }
  cpu_walk_start(kept);
}

/* Fills the output; the input has elements. */
static void run_reduction(ReduceLoop loop, const CpuTensor* input, const bool* reduced, int64_t count,
                          void* out) {
  CpuWalk kept, folded;
  size_t size = cpu_element_size(input->type);
  char* target = out;
  plan_reduction(input, reduced, &kept, &folded);
  size_t last = kept.rank - 1;
  do {
    for (int64_t i = 0; i < kept.dims[last]; i++) {
      int64_t offset = kept.offset[0] + i * kept.strides[0][last];
      cpu_walk_start(&folded);
      loop((const char*)input->data + offset * (int64_t)size, &folded, count, target);
      target += size;
    }
  } while (cpu_walk_next(&kept));
}

static OrtStatus* compute_reduce(const CpuKernel* kernel, OrtKernelContext* context) {
  const ReduceKernel* reduce = (const ReduceKernel*)kernel;
  const ReduceOp* op = kernel->op->family;
  CpuTensor input;
  bool reduced[CPU_MAX_RANK];
  int64_t dims[CPU_MAX_RANK], outputs, folded = 1;
  size_t rank = 0;
  void* out;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (!status) status = read_reduced(kernel, context, input.rank, reduced);
  if (status) return status;
  ReduceLoop loop = op->loops[input.type % CPU_TYPE_COUNT];
  if (!loop)
    return cpu_fail(kernel, ORT_NOT_IMPLEMENTED, "element type %d is not supported", (int)input.type);
  for (size_t i = 0; i < input.rank; i++) {
    if (!reduced[i]) dims[rank++] = input.dims[i];
    if (reduced[i] && reduce->keep_dims) dims[rank++] = 1;
  }
  status = cpu_output(kernel, context, 0, dims, rank, &out);
  if (status || !out || !cpu_element_count(dims, rank, &outputs) || outputs == 0) return status;
  if (input.count > 0) {
    folded = input.count / outputs;
    run_reduction(loop, &input, reduced, folded, out);
    return NULL;
  }
  bool is_real = input.type == CPU_TYPE(FLOAT16) || input.type == CPU_TYPE(BFLOAT16) ||
                 input.type == CPU_TYPE(FLOAT) || input.type == CPU_TYPE(DOUBLE);
  if (op->empty_fails_for_integers && !is_real)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "integers have no mean of no elements");
  size_t size = cpu_element_size(input.type);
  for (int64_t i = 0; i < outputs; i++) loop(NULL, NULL, 0, (char*)out + (size_t)i * size);
  return NULL;
}

/* `step` folds each element x into the result so far; `finish` makes the output element of it. */
#define DEFINE_REDUCTION(op, suffix, stored, accumulated, load, initial, step, finish)   \
  static void op##_##suffix(const void* base, CpuWalk* walk, int64_t count, void* out) { \
    accumulated so_far = initial;                                                        \
    if (count > 0) {                                                                     \
      size_t last = walk->rank - 1;                                                      \
      int64_t stride = walk->strides[0][last];                                           \
      do {                                                                               \
        const stored* in = (const stored*)base + walk->offset[0];                        \
        for (int64_t i = 0; i < walk->dims[last]; i++) {                                 \
          accumulated x = (accumulated)load(in[i * stride]);                             \
          so_far = step;                                                                 \
        }                                                                                \
      } while (cpu_walk_next(walk));                                                     \
    }                                                                                    \
    *(stored*)out = (stored)finish;                                                      \
  }

/* Reals accumulate in double and round once; sums of integers wrap. */
#define REAL_REDUCTION(op, s, type, stored, computed, load, store, initial, step, finish) \
  DEFINE_REDUCTION(op, s, stored, double, load, initial, step, store(finish))
#define INTEGER_MAX(op, s, type, stored, wrapping, smallest, ...) \
  DEFINE_REDUCTION(op, s, stored, stored, CPU_SAME, smallest, x > so_far ? x : so_far, so_far)
#define INTEGER_SUM(s, stored) DEFINE_REDUCTION(sum, s, stored, uint64_t, CPU_SAME, 0, so_far + x, so_far)
#define SIGNED_MEAN(s, stored) \
  DEFINE_REDUCTION(mean, s, stored, uint64_t, CPU_SAME, 0, so_far + x, ((int64_t)so_far / count))
#define UNSIGNED_MEAN(s, stored) \
  DEFINE_REDUCTION(mean, s, stored, uint64_t, CPU_SAME, 0, so_far + x, (so_far / (uint64_t)count))

CPU_REAL_TYPES(REAL_REDUCTION, sum, 0, so_far + x, so_far)
CPU_REAL_TYPES(REAL_REDUCTION, mean, 0, so_far + x, so_far / (double)count)
CPU_REAL_TYPES(REAL_REDUCTION, max, -INFINITY, x > so_far || x != x ? x : so_far, so_far)
CPU_INTEGER_TYPES(INTEGER_MAX, max)
INTEGER_SUM(i32, int32_t)
INTEGER_SUM(i64, int64_t)
INTEGER_SUM(u32, uint32_t)
INTEGER_SUM(u64, uint64_t)
SIGNED_MEAN(i32, int32_t)
SIGNED_MEAN(i64, int64_t)
UNSIGNED_MEAN(u32, uint32_t)
UNSIGNED_MEAN(u64, uint64_t)

#define WIDE_INTEGERS(op) \
  CPU_ENTRY(op, i32, INT32) CPU_ENTRY(op, i64, INT64) CPU_ENTRY(op, u32, UINT32) CPU_ENTRY(op, u64, UINT64)

#define REDUCTION(name, empty_fails, ...)                         \
  static const ReduceOp name##_op = {empty_fails, {__VA_ARGS__}}; \
  const CpuOperator cpu_reduce_##name = {                         \
      .size = sizeof(ReduceKernel), .init = init_reduce, .compute = compute_reduce, .family = &name##_op};

REDUCTION(sum, false, CPU_REAL_TYPES(CPU_ENTRY, sum) WIDE_INTEGERS(sum))
REDUCTION(mean, true, CPU_REAL_TYPES(CPU_ENTRY, mean) WIDE_INTEGERS(mean))
REDUCTION(max, false,
          CPU_REAL_TYPES(CPU_ENTRY, max) CPU_INTEGER_TYPES(CPU_ENTRY, max) CPU_ENTRY(max, u8, BOOL))

/* ---- Softmax ---- */

typedef struct SoftmaxKernel {
  CpuKernel base;
  int64_t axis;
} SoftmaxKernel;

/* `rows` groups of `length` elements that lie `stride` apart; out may be in. */
typedef void (*SoftmaxLoop)(const void* in, void* out, int64_t length, int64_t stride);

/* The largest element is subtracted first, so that no exponential overflows. */
#define SOFTMAX_LOOP(op, suffix, type, stored, computed, load, store, ...)                 \
  static void op##_##suffix(const void* in_, void* out_, int64_t length, int64_t stride) { \
    const stored* in = in_;                                                                \
    stored* out = out_;                                                                    \
    computed largest = -INFINITY, sum = 0;                                                 \
    for (int64_t i = 0; i < length; i++) {                                                 \
      computed x = load(in[i * stride]);                                                   \
      if (x > largest) largest = x;                                                        \
    }                                                                                      \
    for (int64_t i = 0; i < length; i++) sum += exp(load(in[i * stride]) - largest);       \
    for (int64_t i = 0; i < length; i++) {                                                 \
      computed x = exp(load(in[i * stride]) - largest) / sum;                              \
      out[i * stride] = store(x);                                                          \
    }                                                                                      \
  }

CPU_REAL_TYPES(SOFTMAX_LOOP, softmax)
static const SoftmaxLoop softmax_loops[CPU_TYPE_COUNT] = {CPU_REAL_TYPES(CPU_ENTRY, softmax)};

static OrtStatus* run_softmax(const CpuKernel* kernel, OrtKernelContext* context, const CpuTensor* input,
                              int64_t length, int64_t stride) {
  void* out;
  SoftmaxLoop loop = softmax_loops[input->type % CPU_TYPE_COUNT];
  if (!loop)
    return cpu_fail(kernel, ORT_NOT_IMPLEMENTED, "element type %d is not supported", (int)input->type);
  OrtStatus* status = cpu_output(kernel, context, 0, input->dims, input->rank, &out);
  if (status || !out || input->count == 0) return status;
  size_t size = cpu_element_size(input->type);
  for (int64_t outer = 0; outer < input->count; outer += length * stride) {
    for (int64_t inner = outer; inner < outer + stride; inner++)
      loop((const char*)input->data + (size_t)inner * size, (char*)out + (size_t)inner * size, length,
           stride);
  }
  return NULL;
}

/* Since version 13: along one axis. */
static OrtStatus* init_softmax(CpuKernel* kernel, const OrtKernelInfo* info) {
  cpu_attribute_int(kernel, info, "axis", -1, &((SoftmaxKernel*)kernel)->axis);
  return NULL;
}

/* As stock does: a scalar has no axis. */
static OrtStatus* softmax_input(const CpuKernel* kernel, OrtKernelContext* context, CpuTensor* input) {
  OrtStatus* status = cpu_input(kernel, context, 0, input);
  if (!status && input->rank == 0)
    status = cpu_fail(kernel, ORT_INVALID_ARGUMENT, "the input is a scalar, it has no axis");
  return status;
}

static OrtStatus* compute_softmax(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  size_t axis = 0;
  int64_t stride = 1, length = 1;
  OrtStatus* status = softmax_input(kernel, context, &input);
  if (!status) status = cpu_axis(kernel, ((const SoftmaxKernel*)kernel)->axis, input.rank, input.rank, &axis);
  if (status) return status;
  if (input.count > 0) {
    length = input.dims[axis];
    for (size_t i = axis + 1; i < input.rank; i++) stride *= input.dims[i];
  }
  return run_softmax(kernel, context, &input, length, stride);
}

/* Before: over everything from the axis on. */
static OrtStatus* init_softmax_v1(CpuKernel* kernel, const OrtKernelInfo* info) {
  cpu_attribute_int(kernel, info, "axis", 1, &((SoftmaxKernel*)kernel)->axis);
  return NULL;
}

static OrtStatus* compute_softmax_v1(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  size_t axis;
  int64_t length = 1;
  OrtStatus* status = softmax_input(kernel, context, &input);
  if (!status) status = cpu_axis(kernel, ((const SoftmaxKernel*)kernel)->axis, input.rank, input.rank, &axis);
  if (status) return status;
  for (size_t i = axis; i < input.rank && input.count > 0; i++) length *= input.dims[i];
  return run_softmax(kernel, context, &input, length, 1);
}

const CpuOperator cpu_softmax = {
    .size = sizeof(SoftmaxKernel), .init = init_softmax, .compute = compute_softmax};
const CpuOperator cpu_softmax_v1 = {
    .size = sizeof(SoftmaxKernel), .init = init_softmax_v1, .compute = compute_softmax_v1};
