/* Broadcasting and strided access, shared by every kernel whose operands differ in shape. */
#include <string.h>

#include "kernels.h"

OrtStatus* cpu_broadcast_shape(const CpuKernel* kernel, const CpuTensor* const* tensors, size_t count,
                               int64_t* dims, size_t* rank) {
  *rank = 0;
  for (size_t t = 0; t < count; t++)
    if (tensors[t]->rank > *rank) *rank = tensors[t]->rank;
  for (size_t i = 0; i < *rank; i++) dims[i] = 1;
  for (size_t t = 0; t < count; t++) {
    size_t missing = *rank - tensors[t]->rank;
    for (size_t i = 0; i < tensors[t]->rank; i++) {
      int64_t dim = tensors[t]->dims[i];
      int64_t* out = &dims[missing + i];
      if (dim == *out || dim == 1) continue;
      if (*out != 1)
        return cpu_fail(kernel, ORT_INVALID_ARGUMENT,
                        "inputs do not broadcast: %lld against %lld in dimension %zu of %zu", (long long)dim,
                        (long long)*out, missing + i, *rank);
      *out = dim;
    }
  }
  return NULL;
}

void cpu_walk_broadcast(const CpuTensor* const* tensors, size_t count, const int64_t* dims, size_t rank,
                        CpuWalk* walk) {
  walk->operands = count;
  walk->rank = rank;
  for (size_t i = 0; i < rank; i++) walk->dims[i] = dims[i];
  for (size_t t = 0; t < count; t++) {
    int64_t stride = 1;
    size_t missing = rank - tensors[t]->rank;
    for (size_t i = rank; i-- > 0;) {
      int64_t dim = i < missing ? 1 : tensors[t]->dims[i - missing];
      walk->strides[t][i] = dim == 1 ? 0 : stride;
      stride *= dim;
    }
  }
  cpu_walk_start(walk);
}

/* Whether all operands step through dimensions `outer` and `inner` as through one. */
static bool joins(const CpuWalk* walk, size_t outer, size_t inner) {
  for (size_t t = 0; t < walk->operands; t++)
    if (walk->strides[t][outer] != walk->strides[t][inner] * walk->dims[inner]) return false;
  return true;
}

static void set_dimension(CpuWalk* walk, size_t to, size_t from) {
  walk->dims[to] = walk->dims[from];
  for (size_t t = 0; t < walk->operands; t++) walk->strides[t][to] = walk->strides[t][from];
}

void cpu_walk_start(CpuWalk* walk) {
  size_t kept = 0;
  for (size_t i = 0; i < walk->rank; i++) {
    if (walk->dims[i] == 1) continue;
    if (kept > 0 && joins(walk, kept - 1, i)) {
      int64_t outer = walk->dims[kept - 1];
      set_dimension(walk, kept - 1, i);
      walk->dims[kept - 1] *= outer;
    } else {
      set_dimension(walk, kept++, i);
    }
  }
  if (kept == 0) {
    kept = 1;
    walk->dims[0] = 1;
    for (size_t t = 0; t < walk->operands; t++) walk->strides[t][0] = 1;
  }
  walk->rank = kept;
  memset(walk->index, 0, sizeof walk->index);
  memset(walk->offset, 0, sizeof walk->offset);
}

bool cpu_walk_next(CpuWalk* walk) {
  for (size_t i = walk->rank - 1; i-- > 0;) {
    for (size_t t = 0; t < walk->operands; t++) walk->offset[t] += walk->strides[t][i];
    if (++walk->index[i] < walk->dims[i]) return true;
    walk->index[i] = 0;
    for (size_t t = 0; t < walk->operands; t++) walk->offset[t] -= walk->strides[t][i] * walk->dims[i];
  }
  return false;
}

#define COPY_ROW(type)                                                  \
  do {                                                                  \
    const type* source = from;                                          \
    type* target = to;                                                  \
    for (int64_t i = 0; i < count; i++) target[i] = source[i * stride]; \
  } while (0)

static void copy_row(const void* from, int64_t stride, int64_t count, size_t element_size, void* to) {
  if (stride == 1) {
    memcpy(to, from, (size_t)count * element_size);
    return;
  }
  switch (element_size) {
    case 1:
      COPY_ROW(uint8_t);
      break;
    case 2:
      COPY_ROW(CpuBits16);
      break;
    case 4:
      COPY_ROW(CpuBits32);
      break;
    default:
      COPY_ROW(CpuBits64);
      break;
  }
}

void cpu_copy_strided(CpuWalk* walk, const void* from, size_t element_size, void* to) {
  for (size_t i = 0; i < walk->rank; i++)
    if (walk->dims[i] == 0) return;
  int64_t row = walk->dims[walk->rank - 1];
  int64_t size = (int64_t)element_size;
  const char* source = from;
  char* target = to;
  do {
    copy_row(source + walk->offset[0] * size, walk->strides[0][walk->rank - 1], row, element_size, target);
    target += row * size;
  } while (cpu_walk_next(walk));
}
