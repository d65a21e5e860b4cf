/* Operators that move elements without looking at them: only the size of an element matters. */
#include <string.h>

#include "kernels.h"

/* Strides of a contiguous tensor, in elements. Not for empty tensors, whose dims may be anything. */
static void contiguous_strides(const CpuTensor* tensor, int64_t* strides) {
  int64_t stride = 1;
  for (size_t i = tensor->rank; i-- > 0;) {
    strides[i] = stride;
    stride *= tensor->dims[i];
  }
}

/* ---- Transpose ---- */

typedef struct TransposeKernel {
  CpuKernel base;
  CpuInts perm;
} TransposeKernel;

static OrtStatus* init_transpose(CpuKernel* kernel, const OrtKernelInfo* info) {
  return cpu_attribute_ints(kernel, info, "perm", &((TransposeKernel*)kernel)->perm);
}

/* The input's axis for each of the output's; without `perm` in reverse. */
static OrtStatus* read_permutation(const CpuKernel* kernel, const CpuInts* perm, size_t rank, size_t* axes) {
  bool seen[CPU_MAX_RANK] = {false};
  if (!perm->present) {
    for (size_t i = 0; i < rank; i++) axes[i] = rank - 1 - i;
    return NULL;
  }
  if (perm->count != rank)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "perm has %zu entries, the input has %zu dimensions",
                    perm->count, rank);
  for (size_t i = 0; i < rank; i++) {
    OrtStatus* status = cpu_axis(kernel, perm->values[i], rank, rank, &axes[i]);
    if (status) return status;
    if (seen[axes[i]]) return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "perm has axis %zu twice", axes[i]);
    seen[axes[i]] = true;
  }
  return NULL;
}

void cpu_permute(const CpuTensor* tensor, const size_t* permutation, void* output) {
  CpuWalk walk = {.operands = 1, .rank = tensor->rank};
  int64_t strides[CPU_MAX_RANK];
  contiguous_strides(tensor, strides);
  for (size_t i = 0; i < tensor->rank; i++) {
    walk.dims[i] = tensor->dims[permutation[i]];
    walk.strides[0][i] = strides[permutation[i]];
  }
  cpu_walk_start(&walk);
  cpu_copy_strided(&walk, tensor->data, cpu_element_size(tensor->type), output);
}

static OrtStatus* compute_transpose(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  size_t axes[CPU_MAX_RANK];
  int64_t dims[CPU_MAX_RANK];
  void* out;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (!status) status = read_permutation(kernel, &((const TransposeKernel*)kernel)->perm, input.rank, axes);
  if (status) return status;
  for (size_t i = 0; i < input.rank; i++) dims[i] = input.dims[axes[i]];
  status = cpu_output(kernel, context, 0, dims, input.rank, &out);
  if (status || !out || input.count == 0) return status;
  cpu_permute(&input, axes, out);
  return NULL;
}

const CpuOperator cpu_transpose = {
    .size = sizeof(TransposeKernel), .init = init_transpose, .compute = compute_transpose};

/* ---- Expand ---- */

static OrtStatus* compute_expand(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  CpuInts shape;
  int64_t dims[CPU_MAX_RANK], count;
  size_t rank;
  void* out;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (!status) status = cpu_input_ints(kernel, context, 1, "shape", &shape);
  if (status) return status;
  CpuTensor target = {.rank = shape.count, .dims = shape.values};
  status = cpu_broadcast_shape(kernel, (const CpuTensor*[]){&input, &target}, 2, dims, &rank);
  if (!status) status = cpu_output(kernel, context, 0, dims, rank, &out);
  if (status || !out || !cpu_element_count(dims, rank, &count) || count == 0) return status;
  CpuWalk walk;
  cpu_walk_broadcast((const CpuTensor*[]){&input}, 1, dims, rank, &walk);
  cpu_copy_strided(&walk, input.data, cpu_element_size(input.type), out);
  return NULL;
}

const CpuOperator cpu_expand = {.size = sizeof(CpuKernel), .compute = compute_expand};

/* ---- Slice: ranges are inputs since version 10, attributes before ---- */

typedef struct SliceKernel {
  CpuKernel base;
  CpuInts starts, ends, axes;
} SliceKernel;

static OrtStatus* init_slice(CpuKernel* kernel, const OrtKernelInfo* info) {
  SliceKernel* slice = (SliceKernel*)kernel;
  OrtStatus* status = cpu_attribute_ints(kernel, info, "starts", &slice->starts);
  if (!status) status = cpu_attribute_ints(kernel, info, "ends", &slice->ends);
  if (!status) status = cpu_attribute_ints(kernel, info, "axes", &slice->axes);
  return status;
}

typedef struct SliceRanges {
  CpuInts starts, ends, axes, steps;
} SliceRanges;

static OrtStatus* read_ranges(const CpuKernel* kernel, const OrtKernelContext* context, SliceRanges* ranges) {
  const SliceKernel* slice = (const SliceKernel*)kernel;
  *ranges = (SliceRanges){.starts = slice->starts, .ends = slice->ends, .axes = slice->axes};
  OrtStatus* status = NULL;
  if (!slice->starts.present) {
    status = cpu_input_ints(kernel, context, 1, "starts", &ranges->starts);
    if (!status) status = cpu_input_ints(kernel, context, 2, "ends", &ranges->ends);
    if (!status) status = cpu_input_ints(kernel, context, 3, "axes", &ranges->axes);
    if (!status) status = cpu_input_ints(kernel, context, 4, "steps", &ranges->steps);
  }
  if (status) return status;
  size_t count = ranges->starts.count;
  if (ranges->ends.count == count && (!ranges->axes.present || ranges->axes.count == count) &&
      (!ranges->steps.present || ranges->steps.count == count))
    return NULL;
  return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "starts, ends, axes and steps must have the same length");
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/* How many elements a range takes of a dimension, and where it starts. As in stock the largest int32 and
 * int64 are the end in either direction; ONNX has none of that for steps back. */
static int64_t measure_range(int64_t dim, int64_t end, int64_t step, int64_t* start) {
  if (dim == 0) return 0;
  if (*start < 0) *start += dim;
  if (step < 0 && (end == INT32_MAX || end == INT64_MAX)) end = INT64_MIN;
  if (end < 0) end += dim;
  *start = step > 0 ? clamp(*start, 0, dim) : clamp(*start, 0, dim - 1);
  end = step > 0 ? clamp(end, 0, dim) : clamp(end, -1, dim - 1);
  int64_t span = step > 0 ? end - *start : *start - end;
  uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  return span <= 0 ? 0 : (int64_t)(1 + ((uint64_t)span - 1) / stride);
}

/* Narrows the walk to the ranges; `first` is the first element it visits. */
static OrtStatus* apply_ranges(const CpuKernel* kernel, const CpuTensor* input, const SliceRanges* ranges,
                               CpuWalk* walk, int64_t* first) {
  bool sliced[CPU_MAX_RANK] = {false};
  *first = 0;
  for (size_t i = 0; i < ranges->starts.count; i++) {
    size_t axis;
    int64_t start = ranges->starts.values[i], step = ranges->steps.present ? ranges->steps.values[i] : 1;
    OrtStatus* status = cpu_axis(kernel, ranges->axes.present ? ranges->axes.values[i] : (int64_t)i,
                                 input->rank, input->rank, &axis);
    if (status) return status;
    if (sliced[axis]) return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "axis %zu is given twice", axis);
    if (step == 0) return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "the step of axis %zu is 0", axis);
    sliced[axis] = true;
    walk->dims[axis] = measure_range(input->dims[axis], ranges->ends.values[i], step, &start);
    if (input->count == 0 || walk->dims[axis] == 0) continue;
    *first += start * walk->strides[0][axis];
    if (walk->dims[axis] > 1)
      walk->strides[0][axis] *= step; /* with two elements the step fits the dimension */
  }
  return NULL;
}

static OrtStatus* compute_slice(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  SliceRanges ranges;
  CpuWalk walk = {.operands = 1};
  int64_t first, count;
  void* out;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (!status && input.rank == 0)
    status = cpu_fail(kernel, ORT_INVALID_ARGUMENT, "the input is a scalar, there is nothing to slice");
  if (!status) status = read_ranges(kernel, context, &ranges);
  if (status) return status;
  walk.rank = input.rank;
  for (size_t i = 0; i < input.rank; i++) walk.dims[i] = input.dims[i];
  if (input.count > 0) contiguous_strides(&input, walk.strides[0]);
  status = apply_ranges(kernel, &input, &ranges, &walk, &first);
  if (!status) status = cpu_output(kernel, context, 0, walk.dims, walk.rank, &out);
  if (status || !out || !cpu_element_count(walk.dims, walk.rank, &count) || count == 0) return status;
  size_t size = cpu_element_size(input.type);
  cpu_walk_start(&walk);
  cpu_copy_strided(&walk, (const char*)input.data + first * (int64_t)size, size, out);
  return NULL;
}

const CpuOperator cpu_slice = {.size = sizeof(SliceKernel), .init = init_slice, .compute = compute_slice};

/* ---- Concat and Split ---- */

typedef struct AxisKernel {
  CpuKernel base;
  int64_t axis;
} AxisKernel;

static OrtStatus* init_concat(CpuKernel* kernel, const OrtKernelInfo* info) {
  return cpu_required_int(kernel, info, "axis", &((AxisKernel*)kernel)->axis);
}

static OrtStatus* init_concat_v1(CpuKernel* kernel, const OrtKernelInfo* info) {
  cpu_attribute_int(kernel, info, "axis", 1, &((AxisKernel*)kernel)->axis);
  return NULL;
}

/* Copies `rows` rows of `bytes` between two tensors whose rows lie `from_pitch` and `to_pitch` bytes apart.
 */
static void copy_rows(char* to, int64_t to_pitch, const char* from, int64_t from_pitch, int64_t bytes,
                      int64_t rows) {
  if (bytes == 0) return;
  for (int64_t i = 0; i < rows; i++) memcpy(to + i * to_pitch, from + i * from_pitch, (size_t)bytes);
}

/* Elements before an axis (rows) and bytes of one step along it, of a tensor that has elements. */
static void split_at(const int64_t* dims, size_t rank, size_t axis, size_t element_size, int64_t* rows,
                     int64_t* step) {
  *rows = 1;
  *step = (int64_t)element_size;
  for (size_t i = 0; i < axis; i++) *rows *= dims[i];
  for (size_t i = axis + 1; i < rank; i++) *step *= dims[i];
}

static OrtStatus* add_input_shape(const CpuKernel* kernel, const CpuTensor* first, const CpuTensor* next,
                                  size_t index, size_t axis, int64_t* dims) {
  if (next->rank != first->rank || next->type != first->type)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "input %zu differs from input 0 in rank or element type",
                    index);
  for (size_t i = 0; i < first->rank; i++)
    if (i != axis && next->dims[i] != first->dims[i])
      return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "input %zu has %lld in dimension %zu, input 0 has %lld",
                      index, (long long)next->dims[i], i, (long long)first->dims[i]);
  if (next->dims[axis] > INT64_MAX - dims[axis])
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "the result would be too large");
  dims[axis] += next->dims[axis];
  return NULL;
}

static OrtStatus* compute_concat(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor first, next;
  size_t axis = 0;
  int64_t dims[CPU_MAX_RANK], rows, step, count;
  void* out = NULL;
  OrtStatus* status = cpu_input(kernel, context, 0, &first);
  if (!status) status = cpu_axis(kernel, ((const AxisKernel*)kernel)->axis, first.rank, first.rank, &axis);
  if (status) return status;
  for (size_t i = 0; i < first.rank; i++) dims[i] = first.dims[i];
  for (size_t i = 1; i < kernel->input_count && !status; i++) {
    status = cpu_input(kernel, context, i, &next);
    if (!status) status = add_input_shape(kernel, &first, &next, i, axis, dims);
  }
  if (!status) status = cpu_output(kernel, context, 0, dims, first.rank, &out);
  if (status || !out || !cpu_element_count(dims, first.rank, &count) || count == 0) return status;
  split_at(dims, first.rank, axis, cpu_element_size(first.type), &rows, &step);
  char* target = out;
  for (size_t i = 0; i < kernel->input_count && !status; i++) {
    status = cpu_input(kernel, context, i, &next);
    if (status) break;
    int64_t bytes = next.dims[axis] * step;
    copy_rows(target, dims[axis] * step, next.data, bytes, bytes, rows);
    target += bytes;
  }
  return status;
}

const CpuOperator cpu_concat = {.size = sizeof(AxisKernel), .init = init_concat, .compute = compute_concat};
const CpuOperator cpu_concat_v1 = {
    .size = sizeof(AxisKernel), .init = init_concat_v1, .compute = compute_concat};

typedef struct SplitKernel {
  CpuKernel base;
  int64_t axis;
  CpuInts split; /* an attribute before version 13 */
} SplitKernel;

static OrtStatus* init_split(CpuKernel* kernel, const OrtKernelInfo* info) {
  SplitKernel* split = (SplitKernel*)kernel;
  int64_t outputs;
  cpu_attribute_int(kernel, info, "axis", 0, &split->axis);
  if (cpu_attribute_int(kernel, info, "num_outputs", 0, &outputs) && outputs != (int64_t)kernel->output_count)
    return cpu_fail(kernel, ORT_INVALID_GRAPH, "num_outputs is %lld, the node has %zu outputs",
                    (long long)outputs, kernel->output_count);
  return cpu_attribute_ints(kernel, info, "split", &split->split);
}

/* The part of the dimension that output `index` takes; without a list all parts but the last are equal. */
static int64_t part_of(const CpuKernel* kernel, const CpuInts* split, int64_t dim, size_t index) {
  if (split->present) return split->values[index];
  int64_t outputs = (int64_t)kernel->output_count;
  int64_t part = dim / outputs + (dim % outputs != 0);
  int64_t left = dim - part * (int64_t)index;
  return left < 0 ? 0 : left < part ? left : part;
}

static OrtStatus* check_split(const CpuKernel* kernel, const CpuInts* split, int64_t dim) {
  if (!split->present) return NULL;
  if (split->count != kernel->output_count)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "split has %zu entries, the node has %zu outputs",
                    split->count, kernel->output_count);
  int64_t left = dim;
  for (size_t i = 0; i < split->count; i++) {
    if (split->values[i] < 0 || split->values[i] > left) left = -1;
    if (left < 0) break;
    left -= split->values[i];
  }
  if (left == 0) return NULL;
  return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "split must add up to the dimension, which is %lld",
                  (long long)dim);
}

static OrtStatus* compute_split(const CpuKernel* kernel, OrtKernelContext* context) {
  const SplitKernel* attributes = (const SplitKernel*)kernel;
  CpuTensor input;
  CpuInts split = attributes->split;
  size_t axis = 0;
  int64_t dims[CPU_MAX_RANK], rows = 0, step = 0;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (!status && !split.present) status = cpu_input_ints(kernel, context, 1, "split", &split);
  if (!status) status = cpu_axis(kernel, attributes->axis, input.rank, input.rank, &axis);
  if (!status) status = check_split(kernel, &split, input.dims[axis]);
  if (status) return status;
  for (size_t i = 0; i < input.rank; i++) dims[i] = input.dims[i];
  if (input.count > 0) split_at(dims, input.rank, axis, cpu_element_size(input.type), &rows, &step);
  const char* source = input.data;
  for (size_t i = 0; i < kernel->output_count && !status; i++) {
    void* out;
    dims[axis] = part_of(kernel, &split, input.dims[axis], i);
    status = cpu_output(kernel, context, i, dims, input.rank, &out);
    int64_t bytes = dims[axis] * step;
    if (!status && out) copy_rows(out, bytes, source, input.dims[axis] * step, bytes, rows);
    if (bytes > 0) source += bytes;
  }
  return status;
}

const CpuOperator cpu_split = {.size = sizeof(SplitKernel), .init = init_split, .compute = compute_split};

/* ---- Gather ---- */

static OrtStatus* init_gather(CpuKernel* kernel, const OrtKernelInfo* info) {
  cpu_attribute_int(kernel, info, "axis", 0, &((AxisKernel*)kernel)->axis);
  return NULL;
}

/* data[:a] + indices + data[a+1:] */
static OrtStatus* gather_shape(const CpuKernel* kernel, const CpuTensor* data, const CpuTensor* indices,
                               size_t axis, int64_t* dims, size_t* rank) {
  *rank = data->rank + indices->rank - 1;
  if (*rank > CPU_MAX_RANK)
    return cpu_fail(kernel, ORT_NOT_IMPLEMENTED,
                    "the result would have %zu dimensions, at most %d are supported", *rank, CPU_MAX_RANK);
  memcpy(dims, data->dims, axis * sizeof *dims);
  if (indices->rank > 0) memcpy(dims + axis, indices->dims, indices->rank * sizeof *dims);
  memcpy(dims + axis + indices->rank, data->dims + axis + 1, (data->rank - axis - 1) * sizeof *dims);
  return NULL;
}

static int64_t index_at(const CpuTensor* indices, int64_t position) {
  if (indices->type == CPU_TYPE(INT32)) return ((const int32_t*)indices->data)[position];
  return ((const int64_t*)indices->data)[position];
}

static OrtStatus* check_indices(const CpuKernel* kernel, const CpuTensor* indices, int64_t dim) {
  for (int64_t i = 0; i < indices->count; i++) {
    int64_t index = index_at(indices, i);
    if (index < -dim || index >= dim)
      return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "index %lld (at position %lld) is outside [%lld, %lld)",
                      (long long)index, (long long)i, -(long long)dim, (long long)dim);
  }
  return NULL;
}

static OrtStatus* compute_gather(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor data, indices;
  int64_t dims[CPU_MAX_RANK], count, rows, step;
  size_t axis = 0, rank;
  void* out;
  OrtStatus* status = cpu_input(kernel, context, 0, &data);
  if (!status) status = cpu_input(kernel, context, 1, &indices);
  if (!status) status = cpu_axis(kernel, ((const AxisKernel*)kernel)->axis, data.rank, data.rank, &axis);
  if (!status) status = check_indices(kernel, &indices, data.dims[axis]);
  if (!status) status = gather_shape(kernel, &data, &indices, axis, dims, &rank);
  if (!status) status = cpu_output(kernel, context, 0, dims, rank, &out);
  if (status || !out || !cpu_element_count(dims, rank, &count) || count == 0) return status;
  int64_t dim = data.dims[axis];
  split_at(data.dims, data.rank, axis, cpu_element_size(data.type), &rows, &step);
  char* target = out;
  const char* source = data.data;
  for (int64_t row = 0; row < rows; row++, source += dim * step) {
    for (int64_t i = 0; i < indices.count; i++, target += step) {
      int64_t index = index_at(&indices, i);
      memcpy(target, source + (index < 0 ? index + dim : index) * step, (size_t)step);
    }
  }
  return NULL;
}

const CpuOperator cpu_gather = {.size = sizeof(AxisKernel), .init = init_gather, .compute = compute_gather};

/* ---- Where ---- */

#define SELECT_ROW(type)                                                    \
  do {                                                                      \
    const type *x = x_, *y = y_;                                            \
    type* out = out_;                                                       \
    for (int64_t i = 0; i < count; i++)                                     \
      out[i] = condition[i * steps[0]] ? x[i * steps[1]] : y[i * steps[2]]; \
  } while (0)

static void select_row(const uint8_t* condition, const void* x_, const void* y_, const int64_t* steps,
                       int64_t count, size_t element_size, void* out_) {
  switch (element_size) {
    case 1:
      SELECT_ROW(uint8_t);
      break;
    case 2:
      SELECT_ROW(CpuBits16);
      break;
    case 4:
      SELECT_ROW(CpuBits32);
      break;
    default:
      SELECT_ROW(CpuBits64);
      break;
  }
}

static OrtStatus* compute_where(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor condition, x, y;
  const CpuTensor* inputs[] = {&condition, &x, &y};
  int64_t dims[CPU_MAX_RANK], count;
  size_t rank;
  void* out;
  OrtStatus* status = cpu_input(kernel, context, 0, &condition);
  if (!status) status = cpu_input(kernel, context, 1, &x);
  if (!status) status = cpu_input(kernel, context, 2, &y);
  if (!status && (x.type != y.type || condition.type != CPU_TYPE(BOOL)))
    status = cpu_fail(kernel, ORT_INVALID_ARGUMENT, "expected bool and two inputs of one element type");
  if (!status) status = cpu_broadcast_shape(kernel, inputs, 3, dims, &rank);
  if (!status) status = cpu_output(kernel, context, 0, dims, rank, &out);
  if (status || !out || !cpu_element_count(dims, rank, &count) || count == 0) return status;
  int64_t size = (int64_t)cpu_element_size(x.type);
  char* target = out;
  CpuWalk walk;
  cpu_walk_broadcast(inputs, 3, dims, rank, &walk);
  size_t last = walk.rank - 1;
  int64_t steps[] = {walk.strides[0][last], walk.strides[1][last], walk.strides[2][last]};
  do {
    select_row((const uint8_t*)condition.data + walk.offset[0], (const char*)x.data + walk.offset[1] * size,
               (const char*)y.data + walk.offset[2] * size, steps, walk.dims[last], (size_t)size, target);
    target += walk.dims[last] * size;
  } while (cpu_walk_next(&walk));
  return NULL;
}

const CpuOperator cpu_where = {.size = sizeof(CpuKernel), .compute = compute_where};
