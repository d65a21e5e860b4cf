/* What every kernel stands on: errors, attributes, views of tensors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

OrtStatus* cpu_fail(const CpuKernel* kernel, OrtErrorCode code, const char* format, ...) {
  char message[1024];
  bool has_name = kernel->node_name && kernel->node_name[0] != '\0';
  int length = has_name ? snprintf(message, sizeof message, "%s: node '%s' (%s): ", CPU_EP_NAME,
                                   kernel->node_name, kernel->op_type)
                        : snprintf(message, sizeof message, "%s: %s: ", CPU_EP_NAME, kernel->op_type);
  if (length < 0) length = 0;
  if ((size_t)length < sizeof message) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + length, sizeof message - (size_t)length, format, arguments);
    va_end(arguments);
  }
  return kernel->api->CreateStatus(code, message);
}

/* ---- Attributes ---- */

bool cpu_found(const CpuKernel* kernel, OrtStatus* status) {
  kernel->api->ReleaseStatus(status);
  return status == NULL;
}

bool cpu_attribute_int(const CpuKernel* kernel, const OrtKernelInfo* info, const char* name, int64_t fallback,
                       int64_t* value) {
  bool found = cpu_found(kernel, kernel->api->KernelInfoGetAttribute_int64(info, name, value));
  if (!found) *value = fallback;
  return found;
}

bool cpu_attribute_flag(const CpuKernel* kernel, const OrtKernelInfo* info, const char* name, bool fallback) {
  int64_t value;
  cpu_attribute_int(kernel, info, name, fallback, &value);
  return value == 1;
}

bool cpu_attribute_float(const CpuKernel* kernel, const OrtKernelInfo* info, const char* name, float fallback,
                         float* value) {
  bool found = cpu_found(kernel, kernel->api->KernelInfoGetAttribute_float(info, name, value));
  if (!found) *value = fallback;
  return found;
}

OrtStatus* cpu_required_int(const CpuKernel* kernel, const OrtKernelInfo* info, const char* name,
                            int64_t* value) {
  if (cpu_found(kernel, kernel->api->KernelInfoGetAttribute_int64(info, name, value))) return NULL;
  return cpu_fail(kernel, ORT_INVALID_GRAPH, "the integer attribute '%s' is required", name);
}

OrtStatus* cpu_attribute_ints(const CpuKernel* kernel, const OrtKernelInfo* info, const char* name,
                              CpuInts* ints) {
  size_t count = 0;
  ints->present = cpu_found(kernel, kernel->api->KernelInfoGetAttributeArray_int64(info, name, NULL, &count));
  ints->count = ints->present ? count : 0;
  if (ints->count == 0) return NULL;
  if (ints->count > CPU_MAX_RANK)
    return cpu_fail(kernel, ORT_NOT_IMPLEMENTED, "attribute '%s' has %zu values, at most %d are supported",
                    name, ints->count, CPU_MAX_RANK);
  return kernel->api->KernelInfoGetAttributeArray_int64(info, name, ints->values, &count);
}

/* ---- Tensors ---- */

size_t cpu_element_size(ONNXTensorElementDataType type) {
  switch (type) {
    case CPU_TYPE(BOOL):
    case CPU_TYPE(INT8):
    case CPU_TYPE(UINT8):
    case CPU_TYPE(FLOAT8E4M3FN):
    case CPU_TYPE(FLOAT8E4M3FNUZ):
    case CPU_TYPE(FLOAT8E5M2):
    case CPU_TYPE(FLOAT8E5M2FNUZ):
      return 1;
    case CPU_TYPE(INT16):
    case CPU_TYPE(UINT16):
    case CPU_TYPE(FLOAT16):
    case CPU_TYPE(BFLOAT16):
      return 2;
    case CPU_TYPE(INT32):
    case CPU_TYPE(UINT32):
    case CPU_TYPE(FLOAT):
      return 4;
    case CPU_TYPE(INT64):
    case CPU_TYPE(UINT64):
    case CPU_TYPE(DOUBLE):
      return 8;
    default:
      return 0;
  }
}

bool cpu_element_count(const int64_t* dims, size_t rank, int64_t* count) {
  int64_t product = 1;
  bool empty = false;
  for (size_t i = 0; i < rank; i++) {
    if (dims[i] < 0) return false;
    if (dims[i] == 0) empty = true;
  }
  for (size_t i = 0; i < rank && !empty; i++) {
    if (product > INT64_MAX / 8 / dims[i]) return false; /* 8: bytes of the largest element */
    product *= dims[i];
  }
  *count = empty ? 0 : product;
  return true;
}

OrtStatus* cpu_view(const CpuKernel* kernel, const OrtValue* value, size_t index, CpuTensor* tensor) {
  const OrtApi* api = kernel->api;
  *tensor = (CpuTensor){0};
  OrtStatus* status =
      api->GetTensorElementTypeAndShapeDataReference(value, &tensor->type, &tensor->dims, &tensor->rank);
  if (!status) status = api->GetTensorData(value, &tensor->data);
  if (status) return status;
  if (tensor->rank > CPU_MAX_RANK)
    return cpu_fail(kernel, ORT_NOT_IMPLEMENTED, "input %zu has %zu dimensions, at most %d are supported",
                    index, tensor->rank, CPU_MAX_RANK);
  if (!cpu_element_count(tensor->dims, tensor->rank, &tensor->count))
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "input %zu has a dimension that is negative or too large",
                    index);
  tensor->present = true;
  return NULL;
}

OrtStatus* cpu_optional_input(const CpuKernel* kernel, const OrtKernelContext* context, size_t index,
                              CpuTensor* tensor) {
  const OrtValue* value = NULL;
  *tensor = (CpuTensor){0};
  if (index >= kernel->input_count) return NULL;
  OrtStatus* status = kernel->api->KernelContext_GetInput(context, index, &value);
  if (status || !value) return status;
  return cpu_view(kernel, value, index, tensor);
}

OrtStatus* cpu_input(const CpuKernel* kernel, const OrtKernelContext* context, size_t index,
                     CpuTensor* tensor) {
  OrtStatus* status = cpu_optional_input(kernel, context, index, tensor);
  if (!status && !tensor->present)
    status = cpu_fail(kernel, ORT_INVALID_GRAPH, "input %zu is required", index);
  return status;
}

OrtStatus* cpu_input_ints(const CpuKernel* kernel, const OrtKernelContext* context, size_t index,
                          const char* name, CpuInts* ints) {
  CpuTensor tensor;
  ints->present = false;
  ints->count = 0;
  OrtStatus* status = cpu_optional_input(kernel, context, index, &tensor);
  if (status || !tensor.present) return status;
  if (tensor.type != CPU_TYPE(INT64) && tensor.type != CPU_TYPE(INT32))
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "'%s' must be int32 or int64, not element type %d", name,
                    (int)tensor.type);
  if (tensor.rank > 1 || tensor.count > CPU_MAX_RANK)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "'%s' must be a list of at most %d integers", name,
                    CPU_MAX_RANK);
  ints->present = true;
  ints->count = (size_t)tensor.count;
  cpu_convert(tensor.type, tensor.data, CPU_TYPE(INT64), ints->values, tensor.count);
  return NULL;
}

OrtStatus* cpu_output(const CpuKernel* kernel, OrtKernelContext* context, size_t index, const int64_t* dims,
                      size_t rank, void** data) {
  *data = NULL;
  int64_t count;
  if (!cpu_element_count(dims, rank, &count))
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT,
                    "output %zu would have a dimension that is negative or too large", index);
  OrtValue* value = NULL;
  if (rank == 0) dims = &count; /* a scalar's dims may be NULL, the host's parameter may not */
  OrtStatus* status = kernel->api->KernelContext_GetOutput(context, index, dims, rank, &value);
  if (status || !value) return status;
  return kernel->api->GetTensorMutableData(value, data);
}

OrtStatus* cpu_axis(const CpuKernel* kernel, int64_t axis, size_t rank, size_t limit, size_t* result) {
  if (axis < -(int64_t)rank || axis >= (int64_t)limit)
    return cpu_fail(kernel, ORT_INVALID_ARGUMENT, "axis %lld is outside [%lld, %lld)", (long long)axis,
                    -(long long)rank, (long long)limit);
  *result = (size_t)(axis < 0 ? axis + (int64_t)rank : axis);
  return NULL;
}

OrtStatus* cpu_scratch(const CpuKernel* kernel, int64_t count, size_t size, void** buffer) {
  *buffer = NULL;
  if ((uint64_t)count <= SIZE_MAX / 2 / size) *buffer = malloc(count > 0 ? (size_t)count * size : 1);
  if (*buffer) return NULL;
  return cpu_fail(kernel, ORT_RUNTIME_EXCEPTION, "out of memory: a buffer of %lld elements of %zu bytes",
                  (long long)count, size);
}

void cpu_copy(void* to, const void* from, int64_t count, size_t element_size) {
  if (count > 0 && to != from) memcpy(to, from, (size_t)count * element_size);
}
