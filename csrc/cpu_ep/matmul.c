/* MatMul and Gemm: simple loops over blocks of rows of the second matrix. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

/* out (m x n, contiguous) = a (m x k) * b (k x n); strides count elements, so a transposed matrix is one with
 * its strides exchanged. */
typedef struct Product {
  const void* a;
  const void* b;
  void* out;
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column;
} Product;

#define K_BLOCK 64 /* so many rows of b are used for every row of a while they are in the cache */

#define DEFINE_PRODUCT(suffix, type)                                             \
  static void product_##suffix(const Product* p) {                               \
    const type *a = p->a, *b = p->b;                                             \
    type* out = p->out;                                                          \
    for (int64_t i = 0; i < p->m * p->n; i++) out[i] = 0;                        \
    for (int64_t block = 0; block < p->k; block += K_BLOCK) {                    \
      int64_t end = p->k - block < K_BLOCK ? p->k : block + K_BLOCK;             \
      for (int64_t i = 0; i < p->m; i++) {                                       \
        type* row = out + i * p->n;                                              \
        for (int64_t l = block; l < end; l++) {                                  \
          type x = a[i * p->a_row + l * p->a_column];                            \
          const type* y = b + l * p->b_row;                                      \
          if (p->b_column == 1)                                                  \
            for (int64_t j = 0; j < p->n; j++) row[j] += x * y[j];               \
          else                                                                   \
            for (int64_t j = 0; j < p->n; j++) row[j] += x * y[j * p->b_column]; \
        }                                                                        \
      }                                                                          \
    }                                                                            \
  }

DEFINE_PRODUCT(f32, float)
DEFINE_PRODUCT(f64, double)
DEFINE_PRODUCT(u32, uint32_t) /* signed integers too: they wrap alike */
DEFINE_PRODUCT(u64, uint64_t)

/* The type that products of an element type are computed in: the 16-bit types compute in float. */
static ONNXTensorElementDataType computed_type(ONNXTensorElementDataType type) {
  bool small = type == CPU_TYPE(FLOAT16) || type == CPU_TYPE(BFLOAT16);
  return small ? CPU_TYPE(FLOAT) : type;
}

static void multiply(ONNXTensorElementDataType type, const Product* product) {
  switch (type) {
    case CPU_TYPE(FLOAT):
      product_f32(product);
      break;
    case CPU_TYPE(DOUBLE):
      product_f64(product);
      break;
    case CPU_TYPE(INT32):
    case CPU_TYPE(UINT32):
      product_u32(product);
      break;
    default:
      product_u64(product);
      break;
  }
}

/* A tensor's elements in the computed type: its own where they are, else converted into `buffer`, which is
 * *given* to the caller (release with free). */
static OrtStatus* computed_elements(const CpuKernel* kernel, const CpuTensor* tensor, const void** elements,
                                    void** buffer) {
  ONNXTensorElementDataType type = computed_type(tensor->type);
  *elements = tensor->data;
  *buffer = NULL;
  if (type == tensor->type) return NULL;
  OrtStatus* status = cpu_scratch(kernel, tensor->count, cpu_element_size(type), buffer);
  if (status) return status;
  cpu_convert(tensor->type, tensor->data, type, *buffer, tensor->count);
  *elements = *buffer;
  return NULL;
}

/* Both operands and the result in the computed type. */
typedef struct Operands {
  ONNXTensorElementDataType type; /* computed in */
  const void *a, *b;
  void* out;
  void *a_buffer, *b_buffer, *out_buffer; /* the kernel's own, or NULL */
} Operands;

static OrtStatus* open_operands(const CpuKernel* kernel, const CpuTensor* a, const CpuTensor* b, void* out,
                                int64_t count, Operands* operands) {
  *operands = (Operands){.type = computed_type(a->type), .out = out};
  if (a->type != b->type)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "the inputs' element types %d and %d differ", (int)a->type,
                    (int)b->type);
  OrtStatus* status = computed_elements(kernel, a, &operands->a, &operands->a_buffer);
  if (!status) status = computed_elements(kernel, b, &operands->b, &operands->b_buffer);
  if (status || operands->type == a->type) return status;
  status = cpu_scratch(kernel, count, cpu_element_size(operands->type), &operands->out_buffer);
  operands->out = operands->out_buffer;
  return status;
}

/* Rounds the result into the output if it was computed elsewhere, and *releases* the buffers. */
static void close_operands(Operands* operands, ONNXTensorElementDataType type, void* out, int64_t count) {
  if (operands->out_buffer) cpu_convert(operands->type, operands->out_buffer, type, out, count);
  free(operands->a_buffer);
  free(operands->b_buffer);
  free(operands->out_buffer);
}

/* ---- MatMul ---- */

/* A tensor as a stack of matrices: a vector becomes one row (left) or one column (right). */
typedef struct Matrices {
  CpuTensor stack; /* only rank and dims: those before the last two */
  int64_t rows, columns;
} Matrices;

static Matrices matrices_of(const CpuTensor* tensor, bool left) {
  Matrices result = {.stack = {.rank = 0, .dims = tensor->dims}};
  if (tensor->rank == 1) {
    result.rows = left ? 1 : tensor->dims[0];
    result.columns = left ? tensor->dims[0] : 1;
  } else {
    result.stack.rank = tensor->rank - 2;
    result.rows = tensor->dims[tensor->rank - 2];
    result.columns = tensor->dims[tensor->rank - 1];
  }
  return result;
}

/* Multiplies matrix by matrix; the walk's offsets count matrices. */
static void multiply_stacks(const Operands* operands, const Matrices* a, const Matrices* b,
                            const int64_t* dims, size_t rank) {
  CpuWalk walk;
  int64_t size = (int64_t)cpu_element_size(operands->type);
  Product product = {NULL,       NULL, operands->out, a->rows, b->columns, a->columns,
                     a->columns, 1,    b->columns,    1};
  cpu_walk_broadcast((const CpuTensor*[]){&a->stack, &b->stack}, 2, dims, rank, &walk);
  size_t last = walk.rank - 1;
  do {
    for (int64_t i = 0; i < walk.dims[last]; i++) {
      int64_t a_index = walk.offset[0] + i * walk.strides[0][last];
      int64_t b_index = walk.offset[1] + i * walk.strides[1][last];
      product.a = (const char*)operands->a + a_index * a->rows * a->columns * size;
      product.b = (const char*)operands->b + b_index * b->rows * b->columns * size;
      multiply(operands->type, &product);
      product.out = (char*)product.out + a->rows * b->columns * size;
    }
  } while (cpu_walk_next(&walk));
}

static OrtStatus* compute_matmul(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor a, b;
  int64_t dims[CPU_MAX_RANK], count;
  size_t stack_rank;
  void* out;
  Operands operands;
  OrtStatus* status = cpu_input(kernel, context, 0, &a);
  if (!status) status = cpu_input(kernel, context, 1, &b);
  if (status) return status;
  if (a.rank == 0 || b.rank == 0) return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "an input is a scalar");
  Matrices left = matrices_of(&a, true), right = matrices_of(&b, false);
  if (left.columns != right.rows)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "%lld columns on the left, %lld rows on the right",
                    (long long)left.columns, (long long)right.rows);
  status = cpu_broadcast_shape(kernel, (const CpuTensor*[]){&left.stack, &right.stack}, 2, dims, &stack_rank);
  if (status) return status;
  size_t rank = stack_rank;
  if (a.rank > 1) dims[rank++] = left.rows;
  if (b.rank > 1) dims[rank++] = right.columns;
  status = cpu_output(kernel, context, 0, dims, rank, &out);
  if (status || !out || !cpu_element_count(dims, rank, &count) || count == 0) return status;
  status = open_operands(kernel, &a, &b, out, count, &operands);
  if (!status) multiply_stacks(&operands, &left, &right, dims, stack_rank);
  close_operands(&operands, a.type, out, status ? 0 : count);
  return status;
}

const CpuKernelClass cpu_matmul = {sizeof(CpuKernel), NULL, compute_matmul, NULL, NULL};

/* ---- Gemm: alpha * A * B + beta * C ---- */

typedef struct GemmKernel {
  CpuKernel base;
  float alpha, beta;
  int64_t transpose_a, transpose_b;
} GemmKernel;

static OrtStatus* init_gemm(CpuKernel* kernel, const OrtKernelInfo* info) {
  GemmKernel* gemm = (GemmKernel*)kernel;
  cpu_attribute_float(kernel, info, "alpha", 1.0f, &gemm->alpha);
  cpu_attribute_float(kernel, info, "beta", 1.0f, &gemm->beta);
  cpu_attribute_int(kernel, info, "transA", 0, &gemm->transpose_a);
  cpu_attribute_int(kernel, info, "transB", 0, &gemm->transpose_b);
  return NULL;
}

/* out = alpha * out + beta * c. Integers stay exact while both factors are 1. */
#define ADD_REAL(type)                                                                           \
  do {                                                                                           \
    type* y = out;                                                                               \
    const type* x = c;                                                                           \
    for (int64_t i = 0; i < count; i++) y[i] = (type)alpha * y[i] + (x ? (type)beta * x[i] : 0); \
  } while (0)
#define ADD_INTEGER(type, unsigned_type)                                                  \
  do {                                                                                    \
    type* y = out;                                                                        \
    const type* x = c;                                                                    \
    for (int64_t i = 0; i < count; i++) {                                                 \
      if (alpha == 1 && beta == 1)                                                        \
        y[i] = (type)((unsigned_type)y[i] + (x ? (unsigned_type)x[i] : 0));               \
      else                                                                                \
        scaled[0] = (double)alpha * (double)y[i] + (x ? (double)beta * (double)x[i] : 0), \
        cpu_convert(CPU_TYPE(DOUBLE), scaled, type_, &y[i], 1);                           \
    }                                                                                     \
  } while (0)

static void add_scaled(ONNXTensorElementDataType type_, void* out, float alpha, const void* c, float beta,
                       int64_t count) {
  double scaled[1];
  switch (type_) {
    case CPU_TYPE(FLOAT):
      ADD_REAL(float);
      break;
    case CPU_TYPE(DOUBLE):
      ADD_REAL(double);
      break;
    case CPU_TYPE(INT32):
      ADD_INTEGER(int32_t, uint32_t);
      break;
    case CPU_TYPE(UINT32):
      ADD_INTEGER(uint32_t, uint32_t);
      break;
    case CPU_TYPE(INT64):
      ADD_INTEGER(int64_t, uint64_t);
      break;
    default:
      ADD_INTEGER(uint64_t, uint64_t);
      break;
  }
}

/* C broadcast to the output's shape, in the computed type; *gives* the buffer (caller releases with free). */
static OrtStatus* expand_c(const CpuKernel* kernel, const CpuTensor* c, const int64_t* dims, int64_t count,
                           void** buffer) {
  CpuWalk walk;
  const void* elements;
  void* converted;
  size_t size = cpu_element_size(computed_type(c->type));
  OrtStatus* status = computed_elements(kernel, c, &elements, &converted);
  if (!status) status = cpu_scratch(kernel, count, size, buffer);
  if (!status) {
    cpu_walk_broadcast((const CpuTensor*[]){c}, 1, dims, 2, &walk);
    cpu_copy_strided(&walk, elements, size, *buffer);
  }
  free(converted);
  return status;
}

/* Whether C broadcasts to the output without widening it. */
static OrtStatus* check_c(const CpuKernel* kernel, const CpuTensor* a, const CpuTensor* c,
                          const int64_t* dims) {
  if (!c->present) return NULL;
  bool fits = c->type == a->type && c->rank <= 2;
  for (size_t i = 0; i < c->rank && fits; i++) {
    int64_t dim = c->dims[c->rank - 1 - i];
    fits = dim == 1 || dim == dims[1 - i];
  }
  if (fits) return NULL;
  return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "C must have A's element type and broadcast to %lld x %lld",
                  (long long)dims[0], (long long)dims[1]);
}

static OrtStatus* run_gemm(const CpuKernel* kernel, const CpuTensor* a, const CpuTensor* b,
                           const CpuTensor* c, int64_t k, const int64_t* dims, void* out) {
  const GemmKernel* gemm = (const GemmKernel*)kernel;
  int64_t count = dims[0] * dims[1];
  void* addend = NULL;
  Operands operands;
  OrtStatus* status = open_operands(kernel, a, b, out, count, &operands);
  if (!status && c->present) status = expand_c(kernel, c, dims, count, &addend);
  if (!status) {
    bool ta = gemm->transpose_a != 0, tb = gemm->transpose_b != 0;
    Product product = {operands.a,
                       operands.b,
                       operands.out,
                       dims[0],
                       dims[1],
                       k,
                       ta ? 1 : a->dims[1],
                       ta ? a->dims[1] : 1,
                       tb ? 1 : b->dims[1],
                       tb ? b->dims[1] : 1};
    multiply(operands.type, &product);
    if (addend || gemm->alpha != 1)
      add_scaled(operands.type, operands.out, gemm->alpha, addend, gemm->beta, count);
  }
  close_operands(&operands, a->type, out, status ? 0 : count);
  free(addend);
  return status;
}

static OrtStatus* compute_gemm(const CpuKernel* kernel, OrtKernelContext* context) {
  const GemmKernel* gemm = (const GemmKernel*)kernel;
  CpuTensor a, b, c;
  void* out;
  OrtStatus* status = cpu_input(kernel, context, 0, &a);
  if (!status) status = cpu_input(kernel, context, 1, &b);
  if (!status) status = cpu_optional_input(kernel, context, 2, &c);
  if (status) return status;
  if (a.rank != 2 || b.rank != 2)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT,
                    "A and B must be matrices, they have %zu and %zu dimensions", a.rank, b.rank);
  bool ta = gemm->transpose_a != 0, tb = gemm->transpose_b != 0;
  int64_t dims[] = {a.dims[ta ? 1 : 0], b.dims[tb ? 0 : 1]};
  int64_t k = a.dims[ta ? 0 : 1], b_rows = b.dims[tb ? 1 : 0];
  if (k != b_rows)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "%lld columns on the left, %lld rows on the right",
                    (long long)k, (long long)b_rows);
  status = check_c(kernel, &a, &c, dims);
  if (!status) status = cpu_output(kernel, context, 0, dims, 2, &out);
  if (status || !out || dims[0] == 0 || dims[1] == 0) return status;
  return run_gemm(kernel, &a, &b, &c, k, dims, out);
}

const CpuKernelClass cpu_gemm = {sizeof(GemmKernel), init_gemm, compute_gemm, NULL, NULL};
