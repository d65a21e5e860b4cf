/* Products of matrices over a right side that was packed first: for MatMul and Gemm. */
#ifndef ORT_ABI_CPU_EP_PRODUCT_H
#define ORT_ABI_CPU_EP_PRODUCT_H

#include "kernels.h"

/* Elements and how far apart they lie, in elements; a transposed matrix has its strides exchanged. */
typedef struct CpuMatrix {
  const void* elements;
  int64_t row;
  int64_t column;
} CpuMatrix;

/* The type in which products of an element type are computed and packed: 16-bit reals compute in float. */
ONNXTensorElementDataType cpu_product_type(ONNXTensorElementDataType type);

/* How many elements a packed k x n matrix has; a few more than the matrix. */
int64_t cpu_packed_count(int64_t k, int64_t n);

/* Packs the k x n matrix b of a product type. Everything in `packed` is written. */
void cpu_pack(ONNXTensorElementDataType type, const CpuMatrix* b, int64_t k, int64_t n, void* packed);

/* out (m x n, contiguous) = a (m x k) * packed b, all of a product type. */
void cpu_multiply(ONNXTensorElementDataType type, const CpuMatrix* a, const void* packed, int64_t m,
                  int64_t n, int64_t k, void* out);

#endif
