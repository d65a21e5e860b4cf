/* Pow: since version 12 the exponent has a type of its own, so it is converted first. */
#include <math.h>
#include <stdlib.h>

#include "kernels.h"

/* Wraps on overflow, as multiplication does; a negative exponent leaves only what 1 and -1 give. */
static int64_t integer_power(int64_t base, int64_t exponent) {
  uint64_t result = 1, factor = (uint64_t)base;
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  for (; exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return (int64_t)result;
}

/* Base and exponent both as int64 or both as double. */
static void power_row(bool integers, const void* base, const void* exponent, int64_t base_step,
                      int64_t exponent_step, int64_t count, void* out) {
  if (integers) {
    const int64_t *x = base, *y = exponent;
    int64_t* result = out;
    for (int64_t i = 0; i < count; i++) result[i] = integer_power(x[i * base_step], y[i * exponent_step]);
  } else {
    const double *x = base, *y = exponent;
    double* result = out;
    for (int64_t i = 0; i < count; i++) result[i] = pow(x[i * base_step], y[i * exponent_step]);
  }
}

static bool is_integer(ONNXTensorElementDataType type) {
  return type != CPU_TYPE(FLOAT16) && type != CPU_TYPE(BFLOAT16) && type != CPU_TYPE(FLOAT) &&
         type != CPU_TYPE(DOUBLE);
}

static void run_power(const CpuTensor* x, const CpuTensor* y, bool integers, const int64_t* dims, size_t rank,
                      int64_t* wide_x, int64_t* wide_y, int64_t* wide_out, void* out, int64_t count) {
  ONNXTensorElementDataType wide = integers ? CPU_TYPE(INT64) : CPU_TYPE(DOUBLE);
  CpuWalk walk;
  int64_t* target = wide_out;
  cpu_convert(x->type, x->data, wide, wide_x, x->count);
  cpu_convert(y->type, y->data, wide, wide_y, y->count);
  cpu_walk_broadcast((const CpuTensor*[]){x, y}, 2, dims, rank, &walk);
  size_t last = walk.rank - 1;
  do {
    power_row(integers, wide_x + walk.offset[0], wide_y + walk.offset[1], walk.strides[0][last],
              walk.strides[1][last], walk.dims[last], target);
    target += walk.dims[last];
  } while (cpu_walk_next(&walk));
  cpu_convert(wide, wide_out, x->type, out, count);
}

static OrtStatus* compute_pow(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor x, y;
  int64_t dims[CPU_MAX_RANK], count;
  size_t rank;
  void *out, *wide_x = NULL, *wide_y = NULL, *wide_out = NULL;
  OrtStatus* status = cpu_input(kernel, context, 0, &x);
  if (!status) status = cpu_input(kernel, context, 1, &y);
  if (!status) status = cpu_broadcast_shape(kernel, (const CpuTensor*[]){&x, &y}, 2, dims, &rank);
  if (!status) status = cpu_output(kernel, context, 0, dims, rank, &out);
  if (status || !out || !cpu_element_count(dims, rank, &count) || count == 0) return status;
  status = cpu_scratch(kernel, x.count, sizeof(int64_t), &wide_x);
  if (!status) status = cpu_scratch(kernel, y.count, sizeof(int64_t), &wide_y);
  if (!status) status = cpu_scratch(kernel, count, sizeof(int64_t), &wide_out);
  if (!status)
    run_power(&x, &y, is_integer(x.type) && is_integer(y.type), dims, rank, wide_x, wide_y, wide_out, out,
              count);
  free(wide_x);
  free(wide_y);
  free(wide_out);
  return status;
}

const CpuOperator cpu_pow = {.size = sizeof(CpuKernel), .compute = compute_pow};
