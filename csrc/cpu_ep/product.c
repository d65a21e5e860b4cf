/* The right matrix is packed into panels of a few columns, row after row, so that the innermost loop reads it
 * in order whatever its strides were. The result is made in tiles that stay in registers. */
#include "product.h"

#define PANEL 8 /* columns of a panel, and of a tile; the last panel is filled up with zeros */
#define ROWS  4 /* of a tile; what is left over is done row by row */

ONNXTensorElementDataType cpu_product_type(ONNXTensorElementDataType type) {
  bool is_small = type == CPU_TYPE(FLOAT16) || type == CPU_TYPE(BFLOAT16);
  return is_small ? CPU_TYPE(FLOAT) : type;
}

int64_t cpu_packed_count(int64_t k, int64_t n) {
  return (n + PANEL - 1) / PANEL * PANEL * k;
}

#define DEFINE_PACK(suffix, type)                                                             \
  static void pack_##suffix(const CpuMatrix* b, int64_t k, int64_t n, type* packed) {         \
    const type* elements = b->elements;                                                       \
    for (int64_t first = 0; first < n; first += PANEL) {                                      \
      int64_t columns = n - first < PANEL ? n - first : PANEL;                                \
      for (int64_t l = 0; l < k; l++, packed += PANEL) {                                      \
        const type* row = elements + l * b->row + first * b->column;                          \
        for (int64_t j = 0; j < PANEL; j++) packed[j] = j < columns ? row[j * b->column] : 0; \
      }                                                                                       \
    }                                                                                         \
  }

/* One tile: `rows` rows of a times one panel. */
#define DEFINE_TILE(suffix, type, rows)                                                                     \
  static void suffix(const type* a, const CpuMatrix* layout, const type* panel, int64_t k, int64_t columns, \
                     type* out, int64_t pitch) {                                                            \
    type sums[rows][PANEL] = {{0}};                                                                         \
    for (int64_t l = 0; l < k; l++, panel += PANEL) {                                                       \
      for (int i = 0; i < rows; i++) {                                                                      \
        type x = a[i * layout->row + l * layout->column];                                                   \
        for (int j = 0; j < PANEL; j++) sums[i][j] += x * panel[j];                                         \
      }                                                                                                     \
    }                                                                                                       \
    for (int i = 0; i < rows; i++)                                                                          \
      for (int64_t j = 0; j < columns; j++) out[i * pitch + j] = sums[i][j];                                \
  }

#define DEFINE_MULTIPLY(suffix, type)                                                                    \
  static void multiply_##suffix(const CpuMatrix* a, const type* packed, int64_t m, int64_t n, int64_t k, \
                                type* out) {                                                             \
    const type* rows = a->elements;                                                                      \
    for (int64_t first = 0; first < n; first += PANEL, packed += PANEL * k) {                            \
      int64_t columns = n - first < PANEL ? n - first : PANEL, i = 0;                                    \
      for (; i + ROWS <= m; i += ROWS)                                                                   \
        tile_##suffix(rows + i * a->row, a, packed, k, columns, out + i * n + first, n);                 \
      for (; i < m; i++) row_##suffix(rows + i * a->row, a, packed, k, columns, out + i * n + first, n); \
    }                                                                                                    \
  }

#define DEFINE_PRODUCT(suffix, type)     \
  DEFINE_PACK(suffix, type)              \
  DEFINE_TILE(tile_##suffix, type, ROWS) \
  DEFINE_TILE(row_##suffix, type, 1)     \
  DEFINE_MULTIPLY(suffix, type)

DEFINE_PRODUCT(f32, float)
DEFINE_PRODUCT(f64, double)
DEFINE_PRODUCT(u32, uint32_t) /* signed integers too: they wrap alike */
DEFINE_PRODUCT(u64, uint64_t)

void cpu_pack(ONNXTensorElementDataType type, const CpuMatrix* b, int64_t k, int64_t n, void* packed) {
  switch (type) {
    case CPU_TYPE(FLOAT):
      pack_f32(b, k, n, packed);
      break;
    case CPU_TYPE(DOUBLE):
      pack_f64(b, k, n, packed);
      break;
    case CPU_TYPE(INT32):
    case CPU_TYPE(UINT32):
      pack_u32(b, k, n, packed);
      break;
    default:
      pack_u64(b, k, n, packed);
      break;
  }
}

void cpu_multiply(ONNXTensorElementDataType type, const CpuMatrix* a, const void* packed, int64_t m,
                  int64_t n, int64_t k, void* out) {
  switch (type) {
    case CPU_TYPE(FLOAT):
      multiply_f32(a, packed, m, n, k, out);
      break;
    case CPU_TYPE(DOUBLE):
      multiply_f64(a, packed, m, n, k, out);
      break;
    case CPU_TYPE(INT32):
    case CPU_TYPE(UINT32):
      multiply_u32(a, packed, m, n, k, out);
      break;
    default:
      multiply_u64(a, packed, m, n, k, out);
      break;
  }
}
