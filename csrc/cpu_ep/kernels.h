/* What the kernels of the CPU EP share: the kernel object, views of tensors, attributes, strided walks. */
#ifndef ORT_ABI_CPU_EP_KERNELS_H
#define ORT_ABI_CPU_EP_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "half.h"
#include "ort_abi.h"

/* Only a library that wraps this EP under another name sets it. */
#ifndef CPU_EP_NAME
#define CPU_EP_NAME "CPUExecutionProvider"
#endif

/* Kernel-based EPs exist since API 24; nothing newer is used. */
#define CPU_EP_API_VERSION 24

/* Shapes live on the stack; NumPy's limit was the same for a long time. */
#define CPU_MAX_RANK 32

/* Element types as indices of loop tables and as bits of type masks. */
#define CPU_TYPE_COUNT 32
#define CPU_TYPE(name) ONNX_TENSOR_ELEMENT_DATA_TYPE_##name

/* ---- Kernels ---- */

typedef struct CpuKernel CpuKernel;
typedef struct CpuKernelSource CpuKernelSource;

/* How an operator computes; constant, shared by all nodes of the operator. */
typedef struct CpuOperator {
  size_t size; /* of the kernel object, which starts with a CpuKernel */
  OrtStatus* (*init)(CpuKernel* kernel, const OrtKernelInfo* info); /* reads the attributes; may be NULL */
  OrtStatus* (*compute)(const CpuKernel* kernel, OrtKernelContext* context);
  /* Instead of all the above: *gives* a kernel that the host makes. */
  OrtStatus* (*create)(const CpuKernelSource* source, const OrtKernelInfo* info, OrtKernelImpl** kernel);
  void (*release)(CpuKernel* kernel); /* releases what init or prepack allocated; may be NULL */
  const void* family;                 /* what a family's compute needs to know of the operator; may be NULL */
  /* OrtKernelImpl's slots of the same names; NULL for operators that do not pack weights. */
  OrtStatus*(ORT_API_CALL* prepack)(OrtKernelImpl* impl, const OrtValue* tensor, int input_index,
                                    OrtAllocator* allocator, OrtSharedPrePackedWeightCache* cache,
                                    bool* is_packed);
  OrtStatus*(ORT_API_CALL* set_shared)(OrtKernelImpl* impl, const void* const* buffers, const size_t* sizes,
                                       size_t count, int input_index);
} CpuOperator;

/* One node's kernel. Computes on several threads at once: nothing in it changes once the session is made. */
struct CpuKernel {
  OrtKernelImpl impl; /* first: the only part the host sees */
  const OrtApi* api;
  const OrtEpApi* ep_api;
  const CpuOperator* op;
  const char* op_type;
  char* node_name;
  size_t input_count; /* of the node, with trailing optional inputs it leaves out not counted */
  size_t output_count;
};

/* A status that names EP, node and operator before the formatted message. Never NULL. */
OrtStatus* cpu_fail(const CpuKernel* kernel, OrtErrorCode code, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- The registry ---- */

typedef struct CpuKernelRow CpuKernelRow;

/* What the host hands back when it creates a kernel. */
struct CpuKernelSource {
  const OrtApi* api;
  const OrtEpApi* ep_api;
  const CpuKernelRow* row;
};

size_t cpu_kernel_row_count(void);

/* Fills cpu_kernel_row_count() entries, which must outlive the registries made with them. */
void cpu_fill_sources(const OrtApi* api, const OrtEpApi* ep_api, CpuKernelSource* sources);

/* Registers every kernel. *gives* the registry (caller releases with ReleaseKernelRegistry). */
OrtStatus* cpu_create_registry(const OrtEpApi* ep_api, CpuKernelSource* sources,
                               OrtKernelRegistry** registry);

/* Whether the node has no subgraphs, or only some in which every value is known to be a tensor: the host's
 * kernels carry nothing else. */
OrtStatus* cpu_takes_subgraphs(const OrtApi* api, const OrtNode* node, bool* result);

/* ---- Attributes, read while a kernel is created ---- */

/* Whether a query for an attribute gave it; *releases* the status. The host has one status for every
 * attribute it cannot give. The model's checker knows attribute types, so here it means that the node does
 * not have it. */
bool cpu_found(const CpuKernel* kernel, OrtStatus* status);

/* An attribute that the node does not have takes the fallback; the result says whether the node has it. */
bool cpu_attribute_int(const CpuKernel* kernel, const OrtKernelInfo* info, const char* name, int64_t fallback,
                       int64_t* value);
/* Yes or no: only 1 is yes, as in stock. */
bool cpu_attribute_flag(const CpuKernel* kernel, const OrtKernelInfo* info, const char* name, bool fallback);
bool cpu_attribute_float(const CpuKernel* kernel, const OrtKernelInfo* info, const char* name, float fallback,
                         float* value);
OrtStatus* cpu_required_int(const CpuKernel* kernel, const OrtKernelInfo* info, const char* name,
                            int64_t* value);

/* Integers of an attribute or of an input tensor: axes, permutations, extents. */
typedef struct CpuInts {
  bool present;
  size_t count;
  int64_t values[CPU_MAX_RANK];
} CpuInts;

OrtStatus* cpu_attribute_ints(const CpuKernel* kernel, const OrtKernelInfo* info, const char* name,
                              CpuInts* ints);

/* ---- Tensors, while a kernel computes ---- */

/* A view of an input: *borrows* dims and data from the host until Compute returns. */
typedef struct CpuTensor {
  bool present; /* false: an optional input that the node leaves out */
  ONNXTensorElementDataType type;
  size_t rank;
  const int64_t* dims;
  int64_t count; /* of elements; their size in bytes fits in int64_t */
  const void* data;
} CpuTensor;

/* Bytes of one element, 0 for types that no kernel here takes. */
size_t cpu_element_size(ONNXTensorElementDataType type);

/* The product of the dims; false if one is negative or the bytes of that many elements overflow. */
bool cpu_element_count(const int64_t* dims, size_t rank, int64_t* count);

OrtStatus* cpu_input(const CpuKernel* kernel, const OrtKernelContext* context, size_t index,
                     CpuTensor* tensor);
OrtStatus* cpu_optional_input(const CpuKernel* kernel, const OrtKernelContext* context, size_t index,
                              CpuTensor* tensor);

/* A view of what the host says is input `index`. */
OrtStatus* cpu_view(const CpuKernel* kernel, const OrtValue* value, size_t index, CpuTensor* tensor);

/* The values of an optional int32 or int64 input of rank 0 or 1. */
OrtStatus* cpu_input_ints(const CpuKernel* kernel, const OrtKernelContext* context, size_t index,
                          const char* name, CpuInts* ints);

/* Has the host make output `index`. *borrows* its memory until Compute returns; NULL data: nobody reads it.
 */
OrtStatus* cpu_output(const CpuKernel* kernel, OrtKernelContext* context, size_t index, const int64_t* dims,
                      size_t rank, void** data);

/* An axis counted from the front; `limit` is the rank, or one more where an axis may be the end. */
OrtStatus* cpu_axis(const CpuKernel* kernel, int64_t axis, size_t rank, size_t limit, size_t* result);

/* A scratch buffer of count * size bytes (at least one), *gives* (caller releases with free). */
OrtStatus* cpu_scratch(const CpuKernel* kernel, int64_t count, size_t size, void** buffer);

/* Elements of which only the size matters: these may be used for any type of that size. */
typedef uint16_t __attribute__((may_alias)) CpuBits16;
typedef uint32_t __attribute__((may_alias)) CpuBits32;
typedef uint64_t __attribute__((may_alias)) CpuBits64;

/* Copies unless the host gave both sides the same memory. */
void cpu_copy(void* to, const void* from, int64_t count, size_t element_size);

/* Writes the tensor (not an empty one) with output dimension i being its dimension permutation[i]. */
void cpu_permute(const CpuTensor* tensor, const size_t* permutation, void* output);

/* Converts elements between any two numeric types or bool. */
void cpu_convert(ONNXTensorElementDataType from_type, const void* from, ONNXTensorElementDataType to_type,
                 void* to, int64_t count);

/* ---- Walks: several operands over one output shape ---- */

#define CPU_MAX_OPERANDS 3

/* Visits an output in order, row by row; strides count elements and are 0 where an operand repeats. */
typedef struct CpuWalk {
  size_t operands;
  size_t rank; /* at least 1; the last dimension is the row */
  int64_t dims[CPU_MAX_RANK];
  int64_t strides[CPU_MAX_OPERANDS][CPU_MAX_RANK];
  int64_t index[CPU_MAX_RANK];
  int64_t offset[CPU_MAX_OPERANDS]; /* of the current row's first element */
} CpuWalk;

/* The shape that the tensors broadcast to. */
OrtStatus* cpu_broadcast_shape(const CpuKernel* kernel, const CpuTensor* const* tensors, size_t count,
                               int64_t* dims, size_t* rank);

/* A walk over `dims` in which the operands broadcast. */
void cpu_walk_broadcast(const CpuTensor* const* tensors, size_t count, const int64_t* dims, size_t rank,
                        CpuWalk* walk);

/* Drops dimensions of one and joins dimensions that all operands step through evenly, then stands at the
 * start. Dims and strides are the caller's. */
void cpu_walk_start(CpuWalk* walk);

/* Steps to the next row; false after the last. */
bool cpu_walk_next(CpuWalk* walk);

/* Copies what operand 0 of the walk visits to contiguous memory. The walk has been started. */
void cpu_copy_strided(CpuWalk* walk, const void* from, size_t element_size, void* to);

/* ---- Types of the element loops: lists that write X once a type ---- */

/* clang-format off */

/* X(op, suffix, element type, stored as, computed in, widening, narrowing, ...) */
#define CPU_REAL_TYPES(X, op, ...)                                                                      \
  X(op, f16, FLOAT16, uint16_t, float, cpu_half_to_float, cpu_double_to_half, __VA_ARGS__)              \
  X(op, bf16, BFLOAT16, uint16_t, float, cpu_bfloat_to_float, cpu_double_to_bfloat, __VA_ARGS__)        \
  X(op, f32, FLOAT, float, float, CPU_SAME, CPU_SAME, __VA_ARGS__)                                      \
  X(op, f64, DOUBLE, double, double, CPU_SAME, CPU_SAME, __VA_ARGS__)
#define CPU_SAME(x) (x)

/* X(op, suffix, element type, C type, unsigned type (its arithmetic may wrap), smallest value, ...) */
#define CPU_SIGNED_TYPES(X, op, ...)                            \
  X(op, i8, INT8, int8_t, uint32_t, INT8_MIN, __VA_ARGS__)      \
  X(op, i16, INT16, int16_t, uint32_t, INT16_MIN, __VA_ARGS__)  \
  X(op, i32, INT32, int32_t, uint32_t, INT32_MIN, __VA_ARGS__)  \
  X(op, i64, INT64, int64_t, uint64_t, INT64_MIN, __VA_ARGS__)
#define CPU_UNSIGNED_TYPES(X, op, ...)                          \
  X(op, u8, UINT8, uint8_t, uint32_t, 0, __VA_ARGS__)           \
  X(op, u16, UINT16, uint16_t, uint32_t, 0, __VA_ARGS__)        \
  X(op, u32, UINT32, uint32_t, uint32_t, 0, __VA_ARGS__)        \
  X(op, u64, UINT64, uint64_t, uint64_t, 0, __VA_ARGS__)
#define CPU_INTEGER_TYPES(X, op, ...)    \
  CPU_SIGNED_TYPES(X, op, __VA_ARGS__)   \
  CPU_UNSIGNED_TYPES(X, op, __VA_ARGS__)

/* One entry of a table of loops: the loop of `op` for a type. */
#define CPU_ENTRY(op, suffix, type, ...) [CPU_TYPE(type)] = op##_##suffix,

/* clang-format on */

/* ---- The operators ---- */

extern const CpuOperator cpu_abs, cpu_add, cpu_and, cpu_cast, cpu_ceil, cpu_clip, cpu_concat, cpu_concat_v1,
    cpu_constant, cpu_div, cpu_equal, cpu_erf, cpu_exp, cpu_expand, cpu_flatten, cpu_floor, cpu_gather,
    cpu_gemm, cpu_greater, cpu_identity, cpu_if, cpu_leaky_relu, cpu_less, cpu_log, cpu_loop, cpu_matmul,
    cpu_max, cpu_max_v6, cpu_min, cpu_min_v6, cpu_mul, cpu_neg, cpu_not, cpu_or, cpu_pow, cpu_reduce_max,
    cpu_reduce_mean, cpu_reduce_sum, cpu_relu, cpu_reshape, cpu_scan, cpu_shape, cpu_sigmoid, cpu_slice,
    cpu_softmax, cpu_softmax_v1, cpu_split, cpu_sqrt, cpu_squeeze, cpu_sub, cpu_tanh, cpu_transpose,
    cpu_unsqueeze, cpu_where;

#endif
