/* MatMul and Gemm. A constant right side is packed once, when the session is made, and may then be shared by
 * kernels and sessions; any other is packed by every Compute. */
#include <stdlib.h>
#include <string.h>

#include "product.h"

/* The packed right side of a node where it is constant. Set before the first Compute. */
typedef struct Weight {
  const void* panels; /* NULL: not packed */
  ONNXTensorElementDataType type;
  size_t rank; /* the tensor itself may be gone */
  int64_t dims[CPU_MAX_RANK];
  void* own; /* the panels if no cache took them; released with the allocator */
  OrtAllocator* allocator;
} Weight;

typedef struct ProductKernel {
  CpuKernel base;
  Weight weight;
  float alpha, beta; /* Gemm only, as the rest */
  int64_t transpose_a, transpose_b;
} ProductKernel;

/* A tensor as a stack of matrices. */
typedef struct Matrices {
  CpuTensor stack; /* only rank and dims: those before the matrices' own */
  int64_t rows, columns;
  int64_t row_stride, column_stride;
} Matrices;

static Matrices matrices_of(const CpuTensor* tensor, bool transposed) {
  size_t stacked = tensor->rank - 2;
  int64_t rows = tensor->dims[stacked], columns = tensor->dims[stacked + 1];
  Matrices result = {{.rank = stacked, .dims = tensor->dims}, rows, columns, columns, 1};
  if (transposed) result = (Matrices){result.stack, columns, rows, 1, columns};
  return result;
}

/* A vector becomes one row on the left, one column on the right. */
static Matrices left_side(const CpuTensor* tensor, bool transposed) {
  if (tensor->rank > 1) return matrices_of(tensor, transposed);
  return (Matrices){{.rank = 0}, 1, tensor->dims[0], tensor->dims[0], 1};
}

static Matrices right_side(const CpuTensor* tensor, bool transposed) {
  if (tensor->rank > 1) return matrices_of(tensor, transposed);
  return (Matrices){{.rank = 0}, tensor->dims[0], 1, 1, 1};
}

/* A tensor's elements in the product's type: its own where they are, else converted into `buffer`, which is
 * *given* to the caller (release with free). */
static OrtStatus* product_elements(const CpuKernel* kernel, const CpuTensor* tensor, const void** elements,
                                   void** buffer) {
  ONNXTensorElementDataType type = cpu_product_type(tensor->type);
  *elements = tensor->data;
  *buffer = NULL;
  if (type == tensor->type) return NULL;
  OrtStatus* status = cpu_scratch(kernel, tensor->count, cpu_element_size(type), buffer);
  if (status) return status;
  cpu_convert(tensor->type, tensor->data, type, *buffer, tensor->count);
  *elements = *buffer;
  return NULL;
}

/* ---- Packing ---- */

/* Elements of all the packed matrices; false if their bytes overflow. */
static bool packed_stack_count(const Matrices* matrices, int64_t* count) {
  int64_t stacked;
  if (!cpu_element_count(matrices->stack.dims, matrices->stack.rank, &stacked)) return false;
  if (matrices->columns > INT64_MAX / 16) return false;
  const int64_t dims[] = {stacked, matrices->rows, cpu_packed_count(1, matrices->columns)};
  return cpu_element_count(dims, 3, count);
}

static OrtStatus* pack_stack(const CpuKernel* kernel, const CpuTensor* tensor, const Matrices* matrices,
                             int64_t packed_count, void* panels) {
  ONNXTensorElementDataType type = cpu_product_type(tensor->type);
  int64_t size = (int64_t)cpu_element_size(type);
  int64_t packed = cpu_packed_count(matrices->rows, matrices->columns);
  const void* elements;
  void* buffer;
  OrtStatus* status = product_elements(kernel, tensor, &elements, &buffer);
  if (status) return status;
  for (int64_t i = 0; i < packed_count / packed; i++) {
    CpuMatrix matrix = {(const char*)elements + i * matrices->rows * matrices->columns * size,
                        matrices->row_stride, matrices->column_stride};
    cpu_pack(type, &matrix, matrices->rows, matrices->columns, (char*)panels + i * packed * size);
  }
  free(buffer);
  return NULL;
}

/* Packs a constant B into the host's memory: the cache *takes* it, or it stays the kernel's own. */
static OrtStatus* ORT_API_CALL prepack(OrtKernelImpl* impl, const OrtValue* value, int input_index,
                                       OrtAllocator* allocator, OrtSharedPrePackedWeightCache* cache,
                                       bool* is_packed) {
  ProductKernel* kernel = (ProductKernel*)impl;
  Weight* weight = &kernel->weight;
  CpuTensor tensor;
  int64_t count = 0;
  *is_packed = false;
  if (input_index != 1 || !allocator) return NULL;
  OrtStatus* status = cpu_view(&kernel->base, value, 1, &tensor);
  if (status) return status;
  if (tensor.rank == 0 || tensor.count == 0) return NULL; /* Compute has the error, or nothing to do */
  Matrices matrices = right_side(&tensor, kernel->transpose_b != 0);
  if (!packed_stack_count(&matrices, &count)) return NULL;
  size_t size = (size_t)count * cpu_element_size(cpu_product_type(tensor.type));
  void* panels = allocator->Alloc(allocator, size);
  if (!panels)
    return cpu_fail(&kernel->base, ORT_RUNTIME_EXCEPTION, "out of memory: %zu bytes of packed weights", size);
  status = pack_stack(&kernel->base, &tensor, &matrices, count, panels);
  if (!status && cache)
    status = kernel->base.ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, &panels, &size, 1);
  if (status) {
    allocator->Free(allocator, panels);
    return status;
  }
  if (!cache) weight->own = panels;
  weight->allocator = allocator;
  weight->panels = panels;
  weight->type = tensor.type;
  weight->rank = tensor.rank;
  memcpy(weight->dims, tensor.dims, tensor.rank * sizeof *tensor.dims);
  *is_packed = true;
  return NULL;
}

/* *borrows* the panels, which may be those of an equal weight of another kernel. */
static OrtStatus* ORT_API_CALL set_shared(OrtKernelImpl* impl, const void* const* buffers,
                                          const size_t* sizes, size_t count, int input_index) {
  ProductKernel* kernel = (ProductKernel*)impl;
  (void)sizes;
  if (input_index != 1 || count != 1 || !buffers[0])
    return cpu_fail(&kernel->base, ORT_INVALID_ARGUMENT, "expected one shared buffer, for input 1");
  kernel->weight.panels = buffers[0];
  return NULL;
}

static void release_product(CpuKernel* base) {
  Weight* weight = &((ProductKernel*)base)->weight;
  if (weight->own) weight->allocator->Free(weight->allocator, weight->own);
}

/* ---- Products ---- */

/* The right input, or what is left of it after packing. */
static OrtStatus* read_right(const ProductKernel* kernel, const OrtKernelContext* context,
                             CpuTensor* tensor) {
  const Weight* weight = &kernel->weight;
  if (!weight->panels) return cpu_input(&kernel->base, context, 1, tensor);
  *tensor = (CpuTensor){.present = true, .type = weight->type, .rank = weight->rank, .dims = weight->dims};
  return NULL;
}

/* Both sides of a product. */
typedef struct Sides {
  CpuTensor a, b;
  Matrices left, right;
  int64_t dims[CPU_MAX_RANK]; /* of the stack of products */
  size_t rank;
} Sides;

static OrtStatus* check_sides(const CpuKernel* kernel, Sides* sides) {
  if (sides->a.type != sides->b.type)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "the inputs' element types %d and %d differ",
                    (int)sides->a.type, (int)sides->b.type);
  if (sides->left.columns != sides->right.rows)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "%lld columns on the left, %lld rows on the right",
                    (long long)sides->left.columns, (long long)sides->right.rows);
  const CpuTensor* stacks[] = {&sides->left.stack, &sides->right.stack};
  return cpu_broadcast_shape(kernel, stacks, 2, sides->dims, &sides->rank);
}

/* Multiplies matrix by matrix; the walk's offsets count matrices. */
static void multiply_stacks(const Sides* sides, const void* a, const void* panels, void* out) {
  ONNXTensorElementDataType type = cpu_product_type(sides->a.type);
  const Matrices *left = &sides->left, *right = &sides->right;
  int64_t size = (int64_t)cpu_element_size(type);
  int64_t a_bytes = left->rows * left->columns * size;
  int64_t packed_bytes = cpu_packed_count(right->rows, right->columns) * size;
  char* target = out;
  CpuWalk walk;
  cpu_walk_broadcast((const CpuTensor*[]){&left->stack, &right->stack}, 2, sides->dims, sides->rank, &walk);
  size_t last = walk.rank - 1;
  do {
    for (int64_t i = 0; i < walk.dims[last]; i++) {
      CpuMatrix matrix = {(const char*)a + (walk.offset[0] + i * walk.strides[0][last]) * a_bytes,
                          left->row_stride, left->column_stride};
      const char* packed = (const char*)panels + (walk.offset[1] + i * walk.strides[1][last]) * packed_bytes;
      cpu_multiply(type, &matrix, packed, left->rows, right->columns, left->columns, target);
      target += left->rows * right->columns * size;
    }
  } while (cpu_walk_next(&walk));
}

/* The product of both sides into `out`, which has the product's type and elements. */
static OrtStatus* multiply_sides(const ProductKernel* kernel, const Sides* sides, void* out) {
  const CpuKernel* base = &kernel->base;
  const void *a, *panels = kernel->weight.panels;
  void *a_buffer, *panels_buffer = NULL;
  int64_t count;
  OrtStatus* status = product_elements(base, &sides->a, &a, &a_buffer);
  if (!status && !panels) {
    if (!packed_stack_count(&sides->right, &count))
      status = cpu_fail(base, ORT_INVALID_ARGUMENT, "input 1 is too large to be packed");
    if (!status)
      status = cpu_scratch(base, count, cpu_element_size(cpu_product_type(sides->b.type)), &panels_buffer);
    if (!status && count > 0) status = pack_stack(base, &sides->b, &sides->right, count, panels_buffer);
    panels = panels_buffer;
  }
  if (!status) multiply_stacks(sides, a, panels, out);
  free(a_buffer);
  free(panels_buffer);
  return status;
}

/* Where the product goes: the output itself, or (16-bit reals) a buffer that close_result rounds into it. */
static OrtStatus* open_result(const CpuKernel* kernel, ONNXTensorElementDataType type, int64_t count,
                              void* out, void** result) {
  ONNXTensorElementDataType product_type = cpu_product_type(type);
  *result = out;
  return product_type == type ? NULL : cpu_scratch(kernel, count, cpu_element_size(product_type), result);
}

static void close_result(ONNXTensorElementDataType type, int64_t count, void* out, void* result) {
  if (result == out) return;
  cpu_convert(cpu_product_type(type), result, type, out, count);
  free(result);
}

/* ---- MatMul ---- */

static OrtStatus* compute_matmul(const CpuKernel* base, OrtKernelContext* context) {
  const ProductKernel* kernel = (const ProductKernel*)base;
  Sides sides;
  int64_t dims[CPU_MAX_RANK], count;
  void *out, *result;
  OrtStatus* status = cpu_input(base, context, 0, &sides.a);
  if (!status) status = read_right(kernel, context, &sides.b);
  if (status) return status;
  if (sides.a.rank == 0 || sides.b.rank == 0)
    return cpu_fail(base, ORT_INVALID_ARGUMENT, "an input is a scalar");
  sides.left = left_side(&sides.a, false);
  sides.right = right_side(&sides.b, false);
  status = check_sides(base, &sides);
  if (status) return status;
  size_t rank = sides.rank;
  memcpy(dims, sides.dims, rank * sizeof *dims);
  if (sides.a.rank > 1) dims[rank++] = sides.left.rows;
  if (sides.b.rank > 1) dims[rank++] = sides.right.columns;
  status = cpu_output(base, context, 0, dims, rank, &out);
  if (status || !out || !cpu_element_count(dims, rank, &count) || count == 0) return status;
  status = open_result(base, sides.a.type, count, out, &result);
  if (status) return status;
  status = multiply_sides(kernel, &sides, result);
  close_result(sides.a.type, status ? 0 : count, out, result);
  return status;
}

const CpuOperator cpu_matmul = {.size = sizeof(ProductKernel),
                                .compute = compute_matmul,
                                .release = release_product,
                                .prepack = prepack,
                                .set_shared = set_shared};

/* ---- Gemm: alpha * A * B + beta * C ---- */

static OrtStatus* init_gemm(CpuKernel* kernel, const OrtKernelInfo* info) {
  ProductKernel* gemm = (ProductKernel*)kernel;
  cpu_attribute_float(kernel, info, "alpha", 1.0f, &gemm->alpha);
  cpu_attribute_float(kernel, info, "beta", 1.0f, &gemm->beta);
  cpu_attribute_int(kernel, info, "transA", 0, &gemm->transpose_a);
  cpu_attribute_int(kernel, info, "transB", 0, &gemm->transpose_b);
  return NULL;
}

/* y = alpha * y + beta * c. Integers stay exact while both factors are 1. */
#define ADD_REAL(type)                    \
  do {                                    \
    type* y = y_;                         \
    const type* c = c_;                   \
    for (int64_t i = 0; i < count; i++) { \
      y[i] = (type)alpha * y[i];          \
      if (c) y[i] += (type)beta * c[i];   \
    }                                     \
  } while (0)
#define ADD_INTEGER(type, wrapping)                                     \
  do {                                                                  \
    type* y = y_;                                                       \
    const type* c = c_;                                                 \
    for (int64_t i = 0; i < count; i++) {                               \
      double scaled = (double)alpha * (double)y[i];                     \
      if (c) scaled += (double)beta * (double)c[i];                     \
      if (alpha == 1 && beta == 1)                                      \
        y[i] = (type)((wrapping)y[i] + (c ? (wrapping)c[i] : 0));       \
      else                                                              \
        cpu_convert(CPU_TYPE(DOUBLE), &scaled, element_type, &y[i], 1); \
    }                                                                   \
  } while (0)

static void add_scaled(ONNXTensorElementDataType element_type, int64_t count, float alpha, const void* c_,
                       float beta, void* y_) {
  switch (element_type) {
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

/* C broadcast to the output's shape, in the product's type; *gives* the buffer (caller releases with free).
 */
static OrtStatus* expand_c(const CpuKernel* kernel, const CpuTensor* c, const int64_t* dims, int64_t count,
                           void** buffer) {
  CpuWalk walk;
  const void* elements;
  void* converted;
  size_t size = cpu_element_size(cpu_product_type(c->type));
  OrtStatus* status = product_elements(kernel, c, &elements, &converted);
  if (!status) status = cpu_scratch(kernel, count, size, buffer);
  if (!status) {
    cpu_walk_broadcast((const CpuTensor*[]){c}, 1, dims, 2, &walk);
    cpu_copy_strided(&walk, elements, size, *buffer);
  }
  free(converted);
  return status;
}

/* Whether C broadcasts to the output without widening it. */
static OrtStatus* check_c(const CpuKernel* kernel, ONNXTensorElementDataType type, const CpuTensor* c,
                          const int64_t* dims) {
  if (!c->present) return NULL;
  bool fits = c->type == type && c->rank <= 2;
  for (size_t i = 0; i < c->rank && fits; i++) {
    int64_t dim = c->dims[c->rank - 1 - i];
    fits = dim == 1 || dim == dims[1 - i];
  }
  if (fits) return NULL;
  return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "C must have A's element type and broadcast to %lld x %lld",
                  (long long)dims[0], (long long)dims[1]);
}

/* The whole result, in the product's type. */
static OrtStatus* run_gemm(const ProductKernel* gemm, const Sides* sides, const CpuTensor* c,
                           const int64_t* dims, int64_t count, void* result) {
  void* addend = NULL;
  OrtStatus* status = multiply_sides(gemm, sides, result);
  if (!status && c->present) status = expand_c(&gemm->base, c, dims, count, &addend);
  if (!status && (addend || gemm->alpha != 1))
    add_scaled(cpu_product_type(sides->a.type), count, gemm->alpha, addend, gemm->beta, result);
  free(addend);
  return status;
}

static OrtStatus* compute_gemm(const CpuKernel* base, OrtKernelContext* context) {
  const ProductKernel* gemm = (const ProductKernel*)base;
  Sides sides;
  CpuTensor c;
  void *out, *result;
  OrtStatus* status = cpu_input(base, context, 0, &sides.a);
  if (!status) status = read_right(gemm, context, &sides.b);
  if (!status) status = cpu_optional_input(base, context, 2, &c);
  if (status) return status;
  if (sides.a.rank != 2 || sides.b.rank != 2)
    return cpu_fail(base, ORT_INVALID_ARGUMENT, "A and B must be matrices, they have %zu and %zu dimensions",
                    sides.a.rank, sides.b.rank);
  sides.left = left_side(&sides.a, gemm->transpose_a != 0);
  sides.right = right_side(&sides.b, gemm->transpose_b != 0);
  const int64_t dims[] = {sides.left.rows, sides.right.columns};
  status = check_sides(base, &sides);
  if (!status) status = check_c(base, sides.a.type, &c, dims);
  if (!status) status = cpu_output(base, context, 0, dims, 2, &out);
  int64_t count = dims[0] * dims[1];
  if (status || !out || count == 0) return status;
  status = open_result(base, sides.a.type, count, out, &result);
  if (status) return status;
  status = run_gemm(gemm, &sides, &c, dims, count, result);
  close_result(sides.a.type, status ? 0 : count, out, result);
  return status;
}

const CpuOperator cpu_gemm = {.size = sizeof(ProductKernel),
                              .init = init_gemm,
                              .compute = compute_gemm,
                              .release = release_product,
                              .prepack = prepack,
                              .set_shared = set_shared};
