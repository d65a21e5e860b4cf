/* Conversion between element types. Every type widens exactly to int64, uint64 or double, and every type is
 * made from those three: so many small loops, not one for each pair. */
#include <string.h>

#include "kernels.h"

#define BLOCK 256

/* A block of elements on its way from one type to another. */
typedef struct Widened {
  enum { AS_INT64, AS_UINT64, AS_DOUBLE } kind;
  union {
    int64_t i[BLOCK];
    uint64_t u[BLOCK];
    double d[BLOCK];
  };
} Widened;

#define WIDEN(type, member, load)                                           \
  do {                                                                      \
    const type* source = from;                                              \
    for (int64_t i = 0; i < count; i++) block->member[i] = load(source[i]); \
  } while (0)

#define WIDEN_REAL(op, s, type, stored, computed, load, store, ...) \
  case CPU_TYPE(type):                                              \
    block->kind = AS_DOUBLE;                                        \
    WIDEN(stored, d, load);                                         \
    break;
#define WIDEN_INTEGER(op, s, type, stored, ...) \
  case CPU_TYPE(type):                          \
    block->kind = AS_INT64;                     \
    WIDEN(stored, i, (int64_t));                \
    break;
#define TO_BIT(x) ((x) != 0)

static void widen(ONNXTensorElementDataType type, const void* from, int64_t count, Widened* block) {
  switch (type) {
    CPU_REAL_TYPES(WIDEN_REAL, )
    CPU_INTEGER_TYPES(WIDEN_INTEGER, )
    default:
      block->kind = AS_INT64;
      WIDEN(uint8_t, i, TO_BIT);
      break;
  }
  if (type == CPU_TYPE(UINT64)) block->kind = AS_UINT64; /* the same bits */
}

/* Towards zero. What does not fit is undefined in ONNX; here it is as on the processors that most models were
 * made on: the smallest int32 or int64, of which smaller types get the lower bits. */
static int32_t int32_of(double value) {
  return value > -0x1p31 - 1 && value < 0x1p31 ? (int32_t)value : INT32_MIN;
}

static int64_t int64_of(double value) {
  return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
}

static uint64_t uint64_of(double value) {
  return value >= 0x1p63 && value < 0x1p64 ? (uint64_t)value : (uint64_t)int64_of(value);
}

/* By the suffixes of CPU_INTEGER_TYPES. */
#define REAL_TO_i8  int32_of
#define REAL_TO_i16 int32_of
#define REAL_TO_i32 int32_of
#define REAL_TO_i64 int64_of
#define REAL_TO_u8  int32_of
#define REAL_TO_u16 int32_of
#define REAL_TO_u32 int64_of
#define REAL_TO_u64 uint64_of

#define NARROW(type, i_store, u_store, d_store)                                   \
  do {                                                                            \
    type* target = to;                                                            \
    if (block->kind == AS_INT64)                                                  \
      for (int64_t i = 0; i < count; i++) target[i] = (type)i_store(block->i[i]); \
    else if (block->kind == AS_UINT64)                                            \
      for (int64_t i = 0; i < count; i++) target[i] = (type)u_store(block->u[i]); \
    else                                                                          \
      for (int64_t i = 0; i < count; i++) target[i] = (type)d_store(block->d[i]); \
  } while (0)

#define NARROW_INTEGER(op, s, type, stored, ...)     \
  case CPU_TYPE(type):                               \
    NARROW(stored, CPU_SAME, CPU_SAME, REAL_TO_##s); \
    break;

static void narrow(const Widened* block, int64_t count, ONNXTensorElementDataType type, void* to) {
  switch (type) {
    case CPU_TYPE(FLOAT16):
      NARROW(uint16_t, cpu_double_to_half, cpu_double_to_half, cpu_double_to_half);
      break;
    case CPU_TYPE(BFLOAT16):
      NARROW(uint16_t, cpu_double_to_bfloat, cpu_double_to_bfloat, cpu_double_to_bfloat);
      break;
    case CPU_TYPE(FLOAT):
      NARROW(float, CPU_SAME, CPU_SAME, CPU_SAME);
      break;
    case CPU_TYPE(DOUBLE):
      NARROW(double, CPU_SAME, CPU_SAME, CPU_SAME);
      break;
      CPU_INTEGER_TYPES(NARROW_INTEGER, )
    default:
      NARROW(uint8_t, TO_BIT, TO_BIT, TO_BIT);
      break;
  }
}

void cpu_convert(ONNXTensorElementDataType from_type, const void* from, ONNXTensorElementDataType to_type,
                 void* to, int64_t count) {
  size_t from_size = cpu_element_size(from_type), to_size = cpu_element_size(to_type);
  if (from_type == to_type) {
    cpu_copy(to, from, count, from_size);
    return;
  }
  const char* source = from;
  char* target = to;
  Widened block;
  for (int64_t done = 0; done < count; done += BLOCK) {
    int64_t part = count - done < BLOCK ? count - done : BLOCK;
    widen(from_type, source + (size_t)done * from_size, part, &block);
    narrow(&block, part, to_type, target + (size_t)done * to_size);
  }
}

/* ---- Cast ---- */

typedef struct CastKernel {
  CpuKernel base;
  ONNXTensorElementDataType to;
} CastKernel;

/* ONNX numbers element types as this ABI does, up to float8e5m2fnuz; those that Cast makes are among them. */
static OrtStatus* init_cast(CpuKernel* kernel, const OrtKernelInfo* info) {
  int64_t to;
  OrtStatus* status = cpu_required_int(kernel, info, "to", &to);
  if (status) return status;
  ((CastKernel*)kernel)->to = (ONNXTensorElementDataType)to;
  if (to > 0 && to <= CPU_TYPE(BFLOAT16) && cpu_element_size((ONNXTensorElementDataType)to) > 0) return NULL;
  return cpu_fail(kernel, ORT_NOT_IMPLEMENTED, "to = %lld: only numeric types and bool are supported",
                  (long long)to);
}

static OrtStatus* compute_cast(const CpuKernel* kernel, OrtKernelContext* context) {
  const CastKernel* cast = (const CastKernel*)kernel;
  CpuTensor input;
  void* out;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (!status) status = cpu_output(kernel, context, 0, input.dims, input.rank, &out);
  if (!status && out) cpu_convert(input.type, input.data, cast->to, out, input.count);
  return status;
}

const CpuOperator cpu_cast = {.size = sizeof(CastKernel), .init = init_cast, .compute = compute_cast};
