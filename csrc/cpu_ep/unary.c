/* Operators that make one element of one element. */
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "kernels.h"

/* A loop reads and writes the same positions in the same order: out may be in. */
typedef void (*UnaryLoop)(const void* in, void* out, int64_t count, const void* parameters);

typedef struct UnaryOp {
  UnaryLoop loops[CPU_TYPE_COUNT];
} UnaryOp;

static OrtStatus* run_unary(const CpuKernel* kernel, OrtKernelContext* context, const CpuTensor* input,
                            const void* parameters) {
  const UnaryOp* op = kernel->class_->family;
  void* out;
  UnaryLoop loop = op->loops[input->type % CPU_TYPE_COUNT];
  if (!loop)
    return cpu_fail(kernel, ORT_NOT_IMPLEMENTED, "element type %d is not supported", (int)input->type);
  OrtStatus* status = cpu_output(kernel, context, 0, input->dims, input->rank, &out);
  if (!status && out) loop(input->data, out, input->count, parameters);
  return status;
}

static OrtStatus* compute_unary(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  return status ? status : run_unary(kernel, context, &input, NULL);
}

#define DEFINE_LOOP(op, suffix, stored, computed, load, store, expression)                        \
  static void op##_##suffix(const void* in_, void* out_, int64_t count, const void* parameters) { \
    const stored* in = in_;                                                                       \
    stored* out = out_;                                                                           \
    (void)parameters;                                                                             \
    for (int64_t i = 0; i < count; i++) {                                                         \
      computed x = load(in[i]);                                                                   \
      out[i] = (stored)store(expression);                                                         \
    }                                                                                             \
  }
#define ENTRY(op, suffix, type) [CPU_TYPE(type)] = op##_##suffix,

/* ---- Real numbers: float16 and bfloat16 compute in float and round once ---- */

#define EXP_LOOP(s, t, stored, computed, load, store) \
  DEFINE_LOOP(exp, s, stored, computed, load, store, exp(x))
#define LOG_LOOP(s, t, stored, computed, load, store) \
  DEFINE_LOOP(log, s, stored, computed, load, store, log(x))
#define SQRT_LOOP(s, t, stored, computed, load, store) \
  DEFINE_LOOP(sqrt, s, stored, computed, load, store, sqrt(x))
#define TANH_LOOP(s, t, stored, computed, load, store) \
  DEFINE_LOOP(tanh, s, stored, computed, load, store, tanh(x))
#define ERF_LOOP(s, t, stored, computed, load, store) \
  DEFINE_LOOP(erf, s, stored, computed, load, store, erf(x))
#define FLOOR_LOOP(s, t, stored, computed, load, store) \
  DEFINE_LOOP(floor, s, stored, computed, load, store, floor(x))
#define CEIL_LOOP(s, t, stored, computed, load, store) \
  DEFINE_LOOP(ceil, s, stored, computed, load, store, ceil(x))
#define NEG_REAL(s, t, stored, computed, load, store) DEFINE_LOOP(neg, s, stored, computed, load, store, -x)
#define ABS_REAL(s, t, stored, computed, load, store) \
  DEFINE_LOOP(abs, s, stored, computed, load, store, fabs(x))
#define RELU_REAL(s, t, stored, computed, load, store) \
  DEFINE_LOOP(relu, s, stored, computed, load, store, x < 0 ? 0 : x) /* so that a NaN stays one */
/* Never takes exp of a large positive number. */
#define SIGMOID_LOOP(s, t, stored, computed, load, store) \
  DEFINE_LOOP(sigmoid, s, stored, computed, load, store, x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)))
#define LEAKY_LOOP(s, t, stored, computed, load, store) \
  DEFINE_LOOP(leaky, s, stored, computed, load, store, x < 0 ? x * (computed) * (const float*)parameters : x)

/* ---- Integers ---- */

#define NEG_INTEGER(s, t, type, wrapping, smallest) \
  DEFINE_LOOP(neg, s, type, type, CPU_SAME, CPU_SAME, 0 - (wrapping)x)
#define ABS_INTEGER(s, t, type, wrapping, smallest) \
  DEFINE_LOOP(abs, s, type, type, CPU_SAME, CPU_SAME, x < 0 ? 0 - (wrapping)x : (wrapping)x)
#define COPY_INTEGER(s, t, type, wrapping, smallest) DEFINE_LOOP(abs, s, type, type, CPU_SAME, CPU_SAME, x)
#define RELU_INTEGER(s, t, type, wrapping, smallest) \
  DEFINE_LOOP(relu, s, type, type, CPU_SAME, CPU_SAME, x < 0 ? 0 : x)

CPU_REAL_TYPES(EXP_LOOP)
CPU_REAL_TYPES(LOG_LOOP)
CPU_REAL_TYPES(SQRT_LOOP)
CPU_REAL_TYPES(TANH_LOOP)
CPU_REAL_TYPES(ERF_LOOP)
CPU_REAL_TYPES(FLOOR_LOOP)
CPU_REAL_TYPES(CEIL_LOOP)
CPU_REAL_TYPES(SIGMOID_LOOP)
CPU_REAL_TYPES(LEAKY_LOOP)
CPU_REAL_TYPES(NEG_REAL)
CPU_SIGNED_TYPES(NEG_INTEGER)
CPU_REAL_TYPES(ABS_REAL)
CPU_SIGNED_TYPES(ABS_INTEGER)
CPU_UNSIGNED_TYPES(COPY_INTEGER)
CPU_REAL_TYPES(RELU_REAL)
CPU_SIGNED_TYPES(RELU_INTEGER)

static void not_b(const void* in_, void* out_, int64_t count, const void* parameters) {
  const uint8_t* in = in_;
  uint8_t* out = out_;
  (void)parameters;
  for (int64_t i = 0; i < count; i++) out[i] = !in[i];
}

/* ---- The operators' tables ---- */

#define EXP_ENTRY(s, t, ...)     ENTRY(exp, s, t)
#define LOG_ENTRY(s, t, ...)     ENTRY(log, s, t)
#define SQRT_ENTRY(s, t, ...)    ENTRY(sqrt, s, t)
#define TANH_ENTRY(s, t, ...)    ENTRY(tanh, s, t)
#define ERF_ENTRY(s, t, ...)     ENTRY(erf, s, t)
#define FLOOR_ENTRY(s, t, ...)   ENTRY(floor, s, t)
#define CEIL_ENTRY(s, t, ...)    ENTRY(ceil, s, t)
#define SIGMOID_ENTRY(s, t, ...) ENTRY(sigmoid, s, t)
#define LEAKY_ENTRY(s, t, ...)   ENTRY(leaky, s, t)
#define NEG_ENTRY(s, t, ...)     ENTRY(neg, s, t)
#define ABS_ENTRY(s, t, ...)     ENTRY(abs, s, t)
#define RELU_ENTRY(s, t, ...)    ENTRY(relu, s, t)

#define UNARY(name, ...)                            \
  static const UnaryOp name##_op = {{__VA_ARGS__}}; \
  const CpuKernelClass cpu_##name = {sizeof(CpuKernel), NULL, compute_unary, NULL, &name##_op};

UNARY(exp, CPU_REAL_TYPES(EXP_ENTRY))
UNARY(log, CPU_REAL_TYPES(LOG_ENTRY))
UNARY(sqrt, CPU_REAL_TYPES(SQRT_ENTRY))
UNARY(tanh, CPU_REAL_TYPES(TANH_ENTRY))
UNARY(erf, CPU_REAL_TYPES(ERF_ENTRY))
UNARY(floor, CPU_REAL_TYPES(FLOOR_ENTRY))
UNARY(ceil, CPU_REAL_TYPES(CEIL_ENTRY))
UNARY(sigmoid, CPU_REAL_TYPES(SIGMOID_ENTRY))
UNARY(neg, CPU_REAL_TYPES(NEG_ENTRY) CPU_SIGNED_TYPES(NEG_ENTRY))
UNARY(abs, CPU_REAL_TYPES(ABS_ENTRY) CPU_SIGNED_TYPES(ABS_ENTRY) CPU_UNSIGNED_TYPES(ABS_ENTRY))
UNARY(relu, CPU_REAL_TYPES(RELU_ENTRY) CPU_SIGNED_TYPES(RELU_ENTRY))
UNARY(not, [CPU_TYPE(BOOL)] = not_b)

/* ---- LeakyRelu ---- */

typedef struct LeakyKernel {
  CpuKernel base;
  float alpha;
} LeakyKernel;

static OrtStatus* init_leaky(CpuKernel* kernel, const OrtKernelInfo* info) {
  cpu_attribute_float(kernel, info, "alpha", 0.01f, &((LeakyKernel*)kernel)->alpha);
  return NULL;
}

static OrtStatus* compute_leaky(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  return status ? status : run_unary(kernel, context, &input, &((const LeakyKernel*)kernel)->alpha);
}

static const UnaryOp leaky_op = {{CPU_REAL_TYPES(LEAKY_ENTRY)}};
const CpuKernelClass cpu_leaky_relu = {sizeof(LeakyKernel), init_leaky, compute_leaky, NULL, &leaky_op};

/* ---- Clip: bounds are inputs since version 11, attributes before ---- */

typedef struct ClipKernel {
  CpuKernel base;
  float low; /* version 6; infinite where the node does not say */
  float high;
} ClipKernel;

/* Elements of the input's type; NULL where there is no bound. */
typedef struct ClipBounds {
  const void* low;
  const void* high;
} ClipBounds;

#define CLIP_LOOP(suffix, stored, computed, load)                                                 \
  static void clip_##suffix(const void* in_, void* out_, int64_t count, const void* parameters) { \
    const ClipBounds* bounds = parameters;                                                        \
    const stored *in = in_, *low = bounds->low, *high = bounds->high;                             \
    stored* out = out_;                                                                           \
    for (int64_t i = 0; i < count; i++) {                                                         \
      stored x = in[i];                                                                           \
      if (low && load(x) < load(*low)) x = *low;                                                  \
      if (high && load(x) > load(*high)) x = *high;                                               \
      out[i] = x;                                                                                 \
    }                                                                                             \
  }
#define CLIP_REAL(s, t, stored, computed, load, store) CLIP_LOOP(s, stored, computed, load)
#define CLIP_INTEGER(s, t, type, wrapping, smallest)   CLIP_LOOP(s, type, type, CPU_SAME)
#define CLIP_ENTRY(s, t, ...)                          ENTRY(clip, s, t)

CPU_REAL_TYPES(CLIP_REAL)
CPU_SIGNED_TYPES(CLIP_INTEGER)
CPU_UNSIGNED_TYPES(CLIP_INTEGER)

static OrtStatus* init_clip(CpuKernel* kernel, const OrtKernelInfo* info) {
  ClipKernel* clip = (ClipKernel*)kernel;
  cpu_attribute_float(kernel, info, "min", -INFINITY, &clip->low);
  cpu_attribute_float(kernel, info, "max", INFINITY, &clip->high);
  return NULL;
}

static OrtStatus* read_bound(const CpuKernel* kernel, const OrtKernelContext* context, size_t index,
                             const CpuTensor* input, const void** bound) {
  CpuTensor tensor;
  OrtStatus* status = cpu_optional_input(kernel, context, index, &tensor);
  if (status || !tensor.present) return status;
  if (tensor.count != 1 || tensor.type != input->type)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "'%s' must be one element of the input's type",
                    index == 1 ? "min" : "max");
  *bound = tensor.data;
  return NULL;
}

static OrtStatus* compute_clip(const CpuKernel* kernel, OrtKernelContext* context) {
  const ClipKernel* clip = (const ClipKernel*)kernel;
  CpuTensor input;
  ClipBounds bounds = {NULL, NULL};
  uint64_t low, high; /* room for an element of any type */
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (status) return status;
  if (clip->low != -INFINITY) {
    cpu_convert(CPU_TYPE(FLOAT), &clip->low, input.type, &low, 1);
    bounds.low = &low;
  }
  if (clip->high != INFINITY) {
    cpu_convert(CPU_TYPE(FLOAT), &clip->high, input.type, &high, 1);
    bounds.high = &high;
  }
  status = read_bound(kernel, context, 1, &input, &bounds.low);
  if (!status) status = read_bound(kernel, context, 2, &input, &bounds.high);
  return status ? status : run_unary(kernel, context, &input, &bounds);
}

static const UnaryOp clip_op = {
    {CPU_REAL_TYPES(CLIP_ENTRY) CPU_SIGNED_TYPES(CLIP_ENTRY) CPU_UNSIGNED_TYPES(CLIP_ENTRY)}};
const CpuKernelClass cpu_clip = {sizeof(ClipKernel), init_clip, compute_clip, NULL, &clip_op};
