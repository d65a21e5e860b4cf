/* Operators that change a shape and no element, and those that give shapes and constants. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

/* Gives input 0 another shape; its elements stay in order. */
static OrtStatus* give_shape(const CpuKernel* kernel, OrtKernelContext* context, const CpuTensor* input,
                             const int64_t* dims, size_t rank) {
  void* out;
  OrtStatus* status = cpu_output(kernel, context, 0, dims, rank, &out);
  if (!status && out) cpu_copy(out, input->data, input->count, cpu_element_size(input->type));
  return status;
}

/* ---- Identity ---- */

static OrtStatus* compute_identity(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  return status ? status : give_shape(kernel, context, &input, input.dims, input.rank);
}

const CpuOperator cpu_identity = {.size = sizeof(CpuKernel), .compute = compute_identity};

/* ---- Reshape: the shape is an input since version 5, an attribute before ---- */

typedef struct ReshapeKernel {
  CpuKernel base;
  bool allow_zero;
  CpuInts shape;
} ReshapeKernel;

static OrtStatus* init_reshape(CpuKernel* kernel, const OrtKernelInfo* info) {
  ReshapeKernel* reshape = (ReshapeKernel*)kernel;
  reshape->allow_zero = cpu_attribute_flag(kernel, info, "allowzero", false);
  return cpu_attribute_ints(kernel, info, "shape", &reshape->shape);
}

/* Replaces 0 (as in the input) and -1 (whatever is left) in a requested shape. */
static OrtStatus* resolve_shape(const CpuKernel* kernel, const CpuTensor* input, bool allow_zero,
                                CpuInts* shape) {
  int64_t known = 1;
  size_t unknown = SIZE_MAX;
  bool zero = false;
  for (size_t i = 0; i < shape->count; i++) {
    int64_t* dim = &shape->values[i];
    if (*dim == 0 && !allow_zero) {
      if (i >= input->rank)
        return cpu_fail(kernel, ORT_INVALID_ARGUMENT,
                        "shape[%zu] is 0, but the input has only %zu dimensions", i, input->rank);
      *dim = input->dims[i];
    }
    if (*dim == 0) zero = true;
    if (*dim == -1) {
      if (unknown != SIZE_MAX) return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "shape has more than one -1");
      unknown = i;
      *dim = 1;
    }
    if (*dim < 0) return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "shape[%zu] is %lld", i, (long long)*dim);
  }
  if (unknown != SIZE_MAX && allow_zero && zero)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "shape has both 0 and -1, and allowzero is set");
  bool fits = cpu_element_count(shape->values, shape->count, &known);
  if (fits && unknown != SIZE_MAX) {
    fits = known > 0 && input->count % known == 0;
    if (fits) shape->values[unknown] = input->count / known;
  } else if (fits) {
    fits = known == input->count;
  }
  if (fits) return NULL;
  return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "%lld elements do not fit the requested shape",
                  (long long)input->count);
}

static OrtStatus* compute_reshape(const CpuKernel* kernel, OrtKernelContext* context) {
  const ReshapeKernel* reshape = (const ReshapeKernel*)kernel;
  CpuTensor input;
  CpuInts shape = reshape->shape;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (!status && !shape.present) status = cpu_input_ints(kernel, context, 1, "shape", &shape);
  if (!status && !shape.present) status = cpu_fail(kernel, ORT_INVALID_GRAPH, "a shape is required");
  if (!status) status = resolve_shape(kernel, &input, reshape->allow_zero, &shape);
  return status ? status : give_shape(kernel, context, &input, shape.values, shape.count);
}

const CpuOperator cpu_reshape = {
    .size = sizeof(ReshapeKernel), .init = init_reshape, .compute = compute_reshape};

/* ---- Squeeze and Unsqueeze: axes are an input since version 13, an attribute before ---- */

typedef struct AxesKernel {
  CpuKernel base;
  CpuInts axes;
} AxesKernel;

static OrtStatus* init_axes(CpuKernel* kernel, const OrtKernelInfo* info) {
  return cpu_attribute_ints(kernel, info, "axes", &((AxesKernel*)kernel)->axes);
}

static OrtStatus* read_axes(const CpuKernel* kernel, const OrtKernelContext* context, CpuInts* axes) {
  *axes = ((const AxesKernel*)kernel)->axes;
  return axes->present ? NULL : cpu_input_ints(kernel, context, 1, "axes", axes);
}

/* Marks the axes of a shape of `rank` dimensions. */
static OrtStatus* mark_axes(const CpuKernel* kernel, const CpuInts* axes, size_t rank, bool* marked) {
  memset(marked, 0, rank * sizeof *marked);
  for (size_t i = 0; i < axes->count; i++) {
    size_t axis;
    OrtStatus* status = cpu_axis(kernel, axes->values[i], rank, rank, &axis);
    if (status) return status;
    if (marked[axis]) return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "axis %zu is given twice", axis);
    marked[axis] = true;
  }
  return NULL;
}

static OrtStatus* compute_squeeze(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  CpuInts axes;
  bool marked[CPU_MAX_RANK];
  int64_t dims[CPU_MAX_RANK];
  size_t rank = 0;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (!status) status = read_axes(kernel, context, &axes);
  if (!status) status = mark_axes(kernel, &axes, input.rank, marked);
  if (status) return status;
  for (size_t i = 0; i < input.rank; i++) {
    bool dropped = axes.present ? marked[i] : input.dims[i] == 1;
    if (!dropped) dims[rank++] = input.dims[i];
    if (dropped && input.dims[i] != 1)
      return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "dimension %zu is %lld, only 1 can be squeezed", i,
                      (long long)input.dims[i]);
  }
  return give_shape(kernel, context, &input, dims, rank);
}

static OrtStatus* compute_unsqueeze(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  CpuInts axes;
  bool marked[CPU_MAX_RANK];
  int64_t dims[CPU_MAX_RANK];
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (!status) status = read_axes(kernel, context, &axes);
  if (!status && !axes.present) status = cpu_fail(kernel, ORT_INVALID_GRAPH, "axes are required");
  if (status) return status;
  size_t rank = input.rank + axes.count;
  if (rank > CPU_MAX_RANK)
    return cpu_fail(kernel, ORT_NOT_IMPLEMENTED,
                    "the result would have %zu dimensions, at most %d are supported", rank, CPU_MAX_RANK);
  status = mark_axes(kernel, &axes, rank, marked);
  if (status) return status;
  for (size_t i = 0, next = 0; i < rank; i++) dims[i] = marked[i] ? 1 : input.dims[next++];
  return give_shape(kernel, context, &input, dims, rank);
}

const CpuOperator cpu_squeeze = {.size = sizeof(AxesKernel), .init = init_axes, .compute = compute_squeeze};
const CpuOperator cpu_unsqueeze = {
    .size = sizeof(AxesKernel), .init = init_axes, .compute = compute_unsqueeze};

/* ---- Flatten ---- */

typedef struct FlattenKernel {
  CpuKernel base;
  int64_t axis;
} FlattenKernel;

static OrtStatus* init_flatten(CpuKernel* kernel, const OrtKernelInfo* info) {
  cpu_attribute_int(kernel, info, "axis", 1, &((FlattenKernel*)kernel)->axis);
  return NULL;
}

static OrtStatus* compute_flatten(const CpuKernel* kernel, OrtKernelContext* context) {
  CpuTensor input;
  size_t axis;
  int64_t dims[2];
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (!status)
    status = cpu_axis(kernel, ((const FlattenKernel*)kernel)->axis, input.rank, input.rank + 1, &axis);
  if (status) return status;
  if (!cpu_element_count(input.dims, axis, &dims[0]) ||
      !cpu_element_count(input.dims + axis, input.rank - axis, &dims[1]))
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "a dimension of the result would be too large");
  return give_shape(kernel, context, &input, dims, 2);
}

const CpuOperator cpu_flatten = {
    .size = sizeof(FlattenKernel), .init = init_flatten, .compute = compute_flatten};

/* ---- Shape ---- */

typedef struct ShapeKernel {
  CpuKernel base;
  int64_t start;
  int64_t end;
} ShapeKernel;

static OrtStatus* init_shape(CpuKernel* kernel, const OrtKernelInfo* info) {
  ShapeKernel* shape = (ShapeKernel*)kernel;
  cpu_attribute_int(kernel, info, "start", 0, &shape->start);
  cpu_attribute_int(kernel, info, "end", INT64_MAX, &shape->end);
  return NULL;
}

static int64_t clamp_to_rank(int64_t index, int64_t rank) {
  if (index < 0) index += rank;
  return index < 0 ? 0 : index > rank ? rank : index;
}

static OrtStatus* compute_shape(const CpuKernel* kernel, OrtKernelContext* context) {
  const ShapeKernel* shape = (const ShapeKernel*)kernel;
  CpuTensor input;
  void* out;
  OrtStatus* status = cpu_input(kernel, context, 0, &input);
  if (status) return status;
  int64_t start = clamp_to_rank(shape->start, (int64_t)input.rank);
  int64_t end = clamp_to_rank(shape->end, (int64_t)input.rank);
  int64_t count = end > start ? end - start : 0;
  status = cpu_output(kernel, context, 0, &count, 1, &out);
  if (!status && out) cpu_copy(out, input.dims + start, count, sizeof *input.dims);
  return status;
}

const CpuOperator cpu_shape = {.size = sizeof(ShapeKernel), .init = init_shape, .compute = compute_shape};

/* ---- Constant ---- */

typedef struct ConstantKernel {
  CpuKernel base;
  OrtValue* tensor; /* the kernel's own, or NULL and the fields below say the value */
  ONNXTensorElementDataType type;
  size_t rank; /* 0 or 1 */
  int64_t count;
  void* elements;
} ConstantKernel;

/* Makes room for the value, and fills it unless the caller does. */
static OrtStatus* hold_constant(ConstantKernel* constant, ONNXTensorElementDataType type, size_t rank,
                                size_t count, const void* value) {
  constant->type = type;
  constant->rank = rank;
  constant->count = (int64_t)count;
  OrtStatus* status =
      cpu_scratch(&constant->base, constant->count, cpu_element_size(type), &constant->elements);
  if (!status && value) memcpy(constant->elements, value, cpu_element_size(type));
  return status;
}

/* Reads value_int, value_float, value_ints or value_floats; `elements` stays NULL if the node has none of
 * them. */
static OrtStatus* read_plain_constant(ConstantKernel* constant, const OrtKernelInfo* info) {
  const CpuKernel* kernel = &constant->base;
  const OrtApi* api = kernel->api;
  int64_t integer;
  float real;
  size_t count = 0;
  OrtStatus* status = NULL;
  if (cpu_attribute_int(kernel, info, "value_int", 0, &integer))
    return hold_constant(constant, CPU_TYPE(INT64), 0, 1, &integer);
  if (cpu_attribute_float(kernel, info, "value_float", 0, &real))
    return hold_constant(constant, CPU_TYPE(FLOAT), 0, 1, &real);
  if (cpu_found(kernel, api->KernelInfoGetAttributeArray_int64(info, "value_ints", NULL, &count))) {
    status = hold_constant(constant, CPU_TYPE(INT64), 1, count, NULL);
    if (!status && count > 0)
      status = api->KernelInfoGetAttributeArray_int64(info, "value_ints", constant->elements, &count);
  } else if (cpu_found(kernel, api->KernelInfoGetAttributeArray_float(info, "value_floats", NULL, &count))) {
    status = hold_constant(constant, CPU_TYPE(FLOAT), 1, count, NULL);
    if (!status && count > 0)
      status = api->KernelInfoGetAttributeArray_float(info, "value_floats", constant->elements, &count);
  }
  return status;
}

static OrtStatus* init_constant(CpuKernel* kernel, const OrtKernelInfo* info) {
  ConstantKernel* constant = (ConstantKernel*)kernel;
  OrtAllocator* allocator = NULL;
  OrtStatus* status = kernel->api->GetAllocatorWithDefaultOptions(&allocator);
  if (status) return status;
  if (cpu_found(kernel,
                kernel->api->KernelInfoGetAttribute_tensor(info, "value", allocator, &constant->tensor)))
    return NULL;
  constant->tensor = NULL;
  status = read_plain_constant(constant, info);
  if (status || constant->elements) return status;
  return cpu_fail(kernel, ORT_NOT_IMPLEMENTED,
                  "expected value, value_int, value_float, value_ints or value_floats");
}

static void release_constant(CpuKernel* kernel) {
  ConstantKernel* constant = (ConstantKernel*)kernel;
  kernel->api->ReleaseValue(constant->tensor);
  free(constant->elements);
}

static OrtStatus* compute_constant(const CpuKernel* kernel, OrtKernelContext* context) {
  const ConstantKernel* constant = (const ConstantKernel*)kernel;
  ONNXTensorElementDataType type = constant->type;
  const int64_t* dims = &constant->count;
  size_t rank = constant->rank;
  int64_t count;
  const void* data = constant->elements;
  void* out = NULL;
  OrtStatus* status = NULL;
  if (constant->tensor) {
    status = kernel->api->GetTensorElementTypeAndShapeDataReference(constant->tensor, &type, &dims, &rank);
    if (!status) status = kernel->api->GetTensorData(constant->tensor, &data);
  }
  if (!status) status = cpu_output(kernel, context, 0, dims, rank, &out);
  if (!status && out && cpu_element_count(dims, rank, &count))
    cpu_copy(out, data, count, cpu_element_size(type));
  return status;
}

const CpuOperator cpu_constant = {.size = sizeof(ConstantKernel),
                                  .init = init_constant,
                                  .compute = compute_constant,
                                  .release = release_constant};
