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
  const UnaryOp* op = kernel->op->family;
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

/* ---- Loops: the expression makes the result of x ---- */

/* float16 and bfloat16 compute in float and round once. */
#define REAL_LOOP(op, suffix, type, stored, computed, load, store, expression)                    \
  static void op##_##suffix(const void* in_, void* out_, int64_t count, const void* parameters) { \
    const stored* in = in_;                                                                       \
    stored* out = out_;                                                                           \
    (void)parameters;                                                                             \
    for (int64_t i = 0; i < count; i++) {                                                         \
      computed x = load(in[i]);                                                                   \
      out[i] = (stored)store(expression);                                                         \
    }                                                                                             \
  }

/* `u` is x as the unsigned type in which arithmetic wraps. */
#define INTEGER_LOOP(op, suffix, type, stored, wrapping, smallest, expression)                    \
  static void op##_##suffix(const void* in_, void* out_, int64_t count, const void* parameters) { \
    const stored* in = in_;                                                                       \
    stored* out = out_;                                                                           \
    (void)parameters;                                                                             \
    for (int64_t i = 0; i < count; i++) {                                                         \
      stored x = in[i];                                                                           \
      wrapping u = (wrapping)x;                                                                   \
      (void)u;                                                                                    \
      out[i] = (stored)(expression);                                                              \
    }                                                                                             \
  }

CPU_REAL_TYPES(REAL_LOOP, exp, exp(x))
CPU_REAL_TYPES(REAL_LOOP, log, log(x))
CPU_REAL_TYPES(REAL_LOOP, sqrt, sqrt(x))
CPU_REAL_TYPES(REAL_LOOP, tanh, tanh(x))
CPU_REAL_TYPES(REAL_LOOP, erf, erf(x))
CPU_REAL_TYPES(REAL_LOOP, floor, floor(x))
CPU_REAL_TYPES(REAL_LOOP, ceil, ceil(x))
CPU_REAL_TYPES(REAL_LOOP, neg, -x)
CPU_REAL_TYPES(REAL_LOOP, abs, fabs(x))
CPU_REAL_TYPES(REAL_LOOP, relu, x < 0 ? 0 : x) /* so that a NaN stays one */
/* Never takes exp of a large positive number. */
CPU_REAL_TYPES(REAL_LOOP, sigmoid, x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)))
CPU_REAL_TYPES(REAL_LOOP, leaky_relu, x < 0 ? x * *(const float*)parameters : x)

CPU_SIGNED_TYPES(INTEGER_LOOP, neg, 0 - u)
CPU_SIGNED_TYPES(INTEGER_LOOP, abs, x < 0 ? 0 - u : u)
CPU_UNSIGNED_TYPES(INTEGER_LOOP, abs, x)
CPU_SIGNED_TYPES(INTEGER_LOOP, relu, x < 0 ? 0 : x)
INTEGER_LOOP(not, b, BOOL, uint8_t, uint8_t, 0, !x)

/* ---- Operators without attributes ---- */

#define UNARY(name, ...)                            \
  static const UnaryOp name##_op = {{__VA_ARGS__}}; \
  const CpuOperator cpu_##name = {.size = sizeof(CpuKernel), .compute = compute_unary, .family = &name##_op};

UNARY(exp, CPU_REAL_TYPES(CPU_ENTRY, exp))
UNARY(log, CPU_REAL_TYPES(CPU_ENTRY, log))
UNARY(sqrt, CPU_REAL_TYPES(CPU_ENTRY, sqrt))
UNARY(tanh, CPU_REAL_TYPES(CPU_ENTRY, tanh))
UNARY(erf, CPU_REAL_TYPES(CPU_ENTRY, erf))
UNARY(floor, CPU_REAL_TYPES(CPU_ENTRY, floor))
UNARY(ceil, CPU_REAL_TYPES(CPU_ENTRY, ceil))
UNARY(sigmoid, CPU_REAL_TYPES(CPU_ENTRY, sigmoid))
UNARY(neg, CPU_REAL_TYPES(CPU_ENTRY, neg) CPU_SIGNED_TYPES(CPU_ENTRY, neg))
UNARY(abs, CPU_REAL_TYPES(CPU_ENTRY, abs) CPU_INTEGER_TYPES(CPU_ENTRY, abs))
UNARY(relu, CPU_REAL_TYPES(CPU_ENTRY, relu) CPU_SIGNED_TYPES(CPU_ENTRY, relu))
UNARY(not, CPU_ENTRY(not, b, BOOL))

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

static const UnaryOp leaky_op = {{CPU_REAL_TYPES(CPU_ENTRY, leaky_relu)}};
const CpuOperator cpu_leaky_relu = {
    .size = sizeof(LeakyKernel), .init = init_leaky, .compute = compute_leaky, .family = &leaky_op};

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

#define CLIP_LOOP(op, suffix, type, stored, computed, load, ...)                                  \
  static void op##_##suffix(const void* in_, void* out_, int64_t count, const void* parameters) { \
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
#define CLIP_INTEGER(op, suffix, type, stored, ...) CLIP_LOOP(op, suffix, type, stored, stored, CPU_SAME, )

CPU_REAL_TYPES(CLIP_LOOP, clip)
CPU_INTEGER_TYPES(CLIP_INTEGER, clip)

static OrtStatus* init_clip(CpuKernel* kernel, const OrtKernelInfo* info) {
  ClipKernel* clip = (ClipKernel*)kernel;
  cpu_attribute_float(kernel, info, "min", -INFINITY, &clip->low);
  cpu_attribute_float(kernel, info, "max", INFINITY, &clip->high);
  if (clip->low <= clip->high) return NULL;
  return cpu_fail(kernel, ORT_INVALID_GRAPH, "min is %g, max is %g: not in this order", (double)clip->low,
                  (double)clip->high);
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

static const UnaryOp clip_op = {{CPU_REAL_TYPES(CPU_ENTRY, clip) CPU_INTEGER_TYPES(CPU_ENTRY, clip)}};
const CpuOperator cpu_clip = {
    .size = sizeof(ClipKernel), .init = init_clip, .compute = compute_clip, .family = &clip_op};
