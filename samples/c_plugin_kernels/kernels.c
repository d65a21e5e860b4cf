/* The operators: float Mul, Relu and Squeeze, a kernel each; If and Loop are in control_flow.c.
 *
 * A kernel is made once a node (OrtKernelCreateFunc), may pack its constant inputs (PrePackWeight), and then
 * computes, maybe on several threads at once. Mul packs its second input. */
#include <stdlib.h>
#include <string.h>

#include "kernel_ep.h"

#define MAX_RANK 8

#define TRY(call)                      \
  do {                                 \
    OrtStatus* try_status = (call);    \
    if (try_status) return try_status; \
  } while (0)

KernelSampleControl control;

typedef struct Kernel {
  OrtKernelImpl base;
  const Factory* factory; /* lives longer than its kernels */
} Kernel;

/* ---- Tensors ---- */

typedef struct Tensor {
  const float* data;
  const int64_t* dims;
  size_t rank, count;
} Tensor;

static OrtStatus* read_tensor(const Factory* factory, const OrtValue* value, Tensor* tensor) {
  ONNXTensorElementDataType type;
  const void* data = NULL;
  TRY(factory->api->GetTensorElementTypeAndShapeDataReference(value, &type, &tensor->dims, &tensor->rank));
  TRY(factory->api->GetTensorData(value, &data));
  if (tensor->rank > MAX_RANK)
    return fail(factory, ORT_NOT_IMPLEMENTED, "a tensor of more than 8 dimensions");
  tensor->data = data;
  tensor->count = 1;
  for (size_t i = 0; i < tensor->rank; i++) tensor->count *= (size_t)tensor->dims[i];
  return NULL;
}

static OrtStatus* read_input(const Factory* factory, const OrtKernelContext* context, size_t index,
                             Tensor* tensor) {
  const OrtValue* value = NULL;
  TRY(factory->api->KernelContext_GetInput(context, index, &value));
  return read_tensor(factory, value, tensor);
}

/* *data is NULL when nobody wants the output. */
static OrtStatus* make_output(const Factory* factory, OrtKernelContext* context, const int64_t* dims,
                              size_t rank, float** data) {
  OrtValue* value = NULL;
  void* memory = NULL;
  TRY(factory->api->KernelContext_GetOutput(context, 0, dims, rank, &value));
  if (value) TRY(factory->api->GetTensorMutableData(value, &memory));
  *data = memory;
  return NULL;
}

/* ---- What all kernels do ---- */

static void ORT_API_CALL release_plain(OrtKernelImpl* this_ptr) {
  atomic_fetch_sub(&control.kernels, 1);
  free(this_ptr);
}

/* gives a kernel of `size` bytes, zeroed: the slots that are left NULL are optional. */
static OrtStatus* new_kernel(void* state, size_t size,
                             OrtStatus*(ORT_API_CALL* compute)(OrtKernelImpl*, OrtKernelContext*),
                             Kernel** out) {
  const Factory* factory = state;
  Kernel* kernel = calloc(1, size);
  if (!kernel) return fail(factory, ORT_FAIL, "no memory for a kernel");
  kernel->base.ort_version_supported = factory->api_version;
  kernel->base.Compute = compute;
  kernel->base.Release = release_plain;
  kernel->factory = factory;
  atomic_fetch_add(&control.kernels, 1);
  *out = kernel;
  return NULL;
}

/* ---- Mul ---- */

/* The second input if it is constant and was packed. The tensor itself is gone then: its shape is kept. */
typedef struct Packed {
  const float* data; /* NULL: not packed */
  int64_t dims[MAX_RANK];
  size_t rank, count;
  float* own;         /* the data, if no other kernel can have it; of `allocator` */
  const void* stored; /* what was given to be shared; only to be compared */
  OrtAllocator* allocator;
} Packed;

typedef struct MulKernel {
  Kernel base;
  Packed weight;
} MulKernel;

/* Packed weights are filled up to whole vectors. */
#define VECTOR 16

static size_t packed_size(size_t count) {
  return (count + VECTOR - 1) / VECTOR * VECTOR * sizeof(float);
}

/* Stores a packed weight in the cache, which *takes* it, or keeps it in the kernel. */
static OrtStatus* keep_packed(MulKernel* kernel, float* data, size_t size,
                              OrtSharedPrePackedWeightCache* cache) {
  void* buffer = data;
  if (!cache) {
    kernel->weight.data = kernel->weight.own = data;
    atomic_fetch_add(&control.private_buffers, 1);
    return NULL;
  }
  /* On failure the buffer stays ours. On success set_shared will bring it, or one that holds the same. */
  TRY(kernel->base.factory->ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, &buffer, &size, 1));
  kernel->weight.stored = data;
  atomic_fetch_add(&control.stored, 1);
  return NULL;
}

/* borrows the tensor, and the cache (NULL: nothing is shared), during the call. */
static OrtStatus* ORT_API_CALL mul_prepack(OrtKernelImpl* this_ptr, const OrtValue* value, int input_index,
                                           OrtAllocator* allocator, OrtSharedPrePackedWeightCache* cache,
                                           bool* is_packed) {
  MulKernel* kernel = (MulKernel*)this_ptr;
  Packed* weight = &kernel->weight;
  Tensor tensor;
  *is_packed = false;
  if (input_index != 1) return NULL; /* the original stays, and comes with every Compute */
  TRY(read_tensor(kernel->base.factory, value, &tensor));
  size_t size = packed_size(tensor.count);
  float* data = allocator->Alloc(allocator, size);
  if (!data && size) return fail(kernel->base.factory, ORT_FAIL, "no memory to pack a weight into");
  /* Here a faster kernel would put the elements into the order in which it reads them. Every byte is written:
   * hosts compare packed weights by their bytes, so garbage in the padding would make equal ones differ. */
  if (size) memset(data, 0, size);
  if (size) memcpy(data, tensor.data, tensor.count * sizeof(float));
  weight->allocator = allocator;
  weight->rank = tensor.rank;
  weight->count = tensor.count;
  if (tensor.rank) memcpy(weight->dims, tensor.dims, tensor.rank * sizeof(int64_t));
  OrtStatus* status = keep_packed(kernel, data, size, cache);
  if (status) {
    allocator->Free(allocator, data);
    return status;
  }
  atomic_fetch_add(&control.prepacks, 1);
  *is_packed = true;
  return NULL;
}

/* borrows the buffers, which outlive the kernel. They may be those that another kernel stored. */
static OrtStatus* ORT_API_CALL mul_set_shared(OrtKernelImpl* this_ptr, const void* const* buffers,
                                              const size_t* sizes, size_t count, int input_index) {
  MulKernel* kernel = (MulKernel*)this_ptr;
  if (input_index != 1 || count != 1 || sizes[0] != packed_size(kernel->weight.count))
    return fail(kernel->base.factory, ORT_INVALID_ARGUMENT, "this is not the packed weight that Mul stored");
  kernel->weight.data = buffers[0];
  atomic_fetch_add(&control.set_shared, 1);
  if (buffers[0] != kernel->weight.stored) atomic_fetch_add(&control.from_others, 1);
  return NULL;
}

static void ORT_API_CALL mul_release(OrtKernelImpl* this_ptr) {
  Packed* weight = &((MulKernel*)this_ptr)->weight;
  if (weight->own) {
    weight->allocator->Free(weight->allocator, weight->own);
    atomic_fetch_sub(&control.private_buffers, 1);
  }
  release_plain(this_ptr);
}

/* The shape that a and b broadcast to, NumPy's rule. False if they do not. */
static bool broadcast(const Tensor* a, const Tensor* b, int64_t* dims, size_t* rank) {
  *rank = a->rank > b->rank ? a->rank : b->rank;
  for (size_t i = 0; i < *rank; i++) {
    size_t from_end = *rank - i;
    int64_t x = from_end <= a->rank ? a->dims[a->rank - from_end] : 1;
    int64_t y = from_end <= b->rank ? b->dims[b->rank - from_end] : 1;
    if (x != y && x != 1 && y != 1) return false;
    dims[i] = x == 1 ? y : x;
  }
  return true;
}

/* Where element `index` (counted through `dims`) lies in a tensor that is broadcast to `dims`. */
static size_t broadcast_offset(const Tensor* tensor, const int64_t* dims, size_t rank, size_t index) {
  size_t offset = 0, stride = 1;
  for (size_t from_end = 1; from_end <= tensor->rank; from_end++) {
    size_t dim = (size_t)tensor->dims[tensor->rank - from_end], along = (size_t)dims[rank - from_end];
    if (dim != 1) offset += index % along * stride;
    index /= along;
    stride *= dim;
  }
  return offset;
}

static void multiply(const Tensor* a, const Tensor* b, const int64_t* dims, size_t rank, float* out) {
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) count *= (size_t)dims[i];
  bool is_plain = a->count == count && b->count == count;
  for (size_t i = 0; i < count; i++) {
    size_t at_a = is_plain ? i : broadcast_offset(a, dims, rank, i);
    size_t at_b = is_plain ? i : broadcast_offset(b, dims, rank, i);
    out[i] = a->data[at_a] * b->data[at_b];
  }
}

static OrtStatus* ORT_API_CALL mul_compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  const MulKernel* kernel = (const MulKernel*)this_ptr;
  const Factory* factory = kernel->base.factory;
  const Packed* weight = &kernel->weight;
  Tensor a, b = {weight->data, weight->dims, weight->rank, weight->count};
  int64_t dims[MAX_RANK];
  size_t rank = 0;
  float* out = NULL;
  TRY(read_input(factory, context, 0, &a));
  if (!weight->data) TRY(read_input(factory, context, 1, &b)); /* a packed input must not be asked for */
  if (!broadcast(&a, &b, dims, &rank))
    return fail(factory, ORT_INVALID_ARGUMENT, "Mul: shapes do not broadcast");
  TRY(make_output(factory, context, dims, rank, &out));
  if (out) multiply(&a, &b, dims, rank, out);
  if (weight->data) atomic_fetch_add(&control.packed_computes, 1);
  return NULL;
}

static OrtStatus* ORT_API_CALL mul_create(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  Kernel* kernel = NULL;
  (void)info;
  TRY(new_kernel(state, sizeof(MulKernel), mul_compute, &kernel));
  kernel->base.Release = mul_release;
  kernel->base.PrePackWeight = mul_prepack;
  kernel->base.SetSharedPrePackedWeight = mul_set_shared;
  *out = &kernel->base;
  return NULL;
}

/* ---- Relu ---- */

static OrtStatus* ORT_API_CALL relu_compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  const Factory* factory = ((const Kernel*)this_ptr)->factory;
  Tensor x;
  float* out = NULL;
  TRY(read_input(factory, context, 0, &x));
  TRY(make_output(factory, context, x.dims, x.rank, &out)); /* may be x's own memory */
  for (size_t i = 0; out && i < x.count; i++) out[i] = x.data[i] < 0 ? 0 : x.data[i];
  return NULL;
}

static OrtStatus* ORT_API_CALL relu_create(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  Kernel* kernel = NULL;
  (void)info;
  TRY(new_kernel(state, sizeof(Kernel), relu_compute, &kernel));
  *out = &kernel->base;
  return NULL;
}

/* ---- Squeeze ---- */

/* Which dimensions go: those of the second input, or all that are 1 when there is none. */
static OrtStatus* read_axes(const Factory* factory, const OrtKernelContext* context, const Tensor* x,
                            bool* goes) {
  const OrtApi* api = factory->api;
  const OrtValue* value = NULL;
  ONNXTensorElementDataType type;
  const void* data = NULL;
  const int64_t* dims = NULL;
  size_t count = 0, rank = 0;
  TRY(api->KernelContext_GetInputCount(context, &count));
  if (count > 1) TRY(api->KernelContext_GetInput(context, 1, &value));
  for (size_t i = 0; i < x->rank; i++) goes[i] = !value && x->dims[i] == 1;
  if (!value) return NULL;
  TRY(api->GetTensorElementTypeAndShapeDataReference(value, &type, &dims, &rank));
  TRY(api->GetTensorData(value, &data));
  for (int64_t i = 0; i < (rank ? dims[0] : 1); i++) {
    int64_t axis = ((const int64_t*)data)[i];
    if (axis < 0) axis += (int64_t)x->rank;
    if (axis < 0 || axis >= (int64_t)x->rank || x->dims[axis] != 1)
      return fail(factory, ORT_INVALID_ARGUMENT, "Squeeze: an axis is not a dimension of size 1");
    goes[axis] = true;
  }
  return NULL;
}

static OrtStatus* ORT_API_CALL squeeze_compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  const Factory* factory = ((const Kernel*)this_ptr)->factory;
  Tensor x;
  bool goes[MAX_RANK];
  int64_t dims[MAX_RANK];
  size_t rank = 0;
  float* out = NULL;
  TRY(read_input(factory, context, 0, &x));
  TRY(read_axes(factory, context, &x, goes));
  for (size_t i = 0; i < x.rank; i++) {
    if (!goes[i]) dims[rank++] = x.dims[i];
  }
  TRY(make_output(factory, context, dims, rank, &out));
  if (out && out != x.data && x.count) memcpy(out, x.data, x.count * sizeof(float));
  return NULL;
}

static OrtStatus* ORT_API_CALL squeeze_create(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  Kernel* kernel = NULL;
  (void)info;
  TRY(new_kernel(state, sizeof(Kernel), squeeze_compute, &kernel));
  *out = &kernel->base;
  return NULL;
}

/* ---- All of them ---- */

#define FLOAT ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
#define BOOL  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL
#define INT64 ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64

const Operator operators[] = {
    {"If", 11, 25, -1, if_create, {{"B", BOOL}, {"V", FLOAT}}},
    {"Loop", 11, 25, -1, loop_create, {{"I", INT64}, {"B", BOOL}, {"V", FLOAT}}},
    {"Mul", 7, 14, -1, mul_create, {{"T", FLOAT}}},
    {"Relu", 6, 14, 0, relu_create, {{"T", FLOAT}}},
    {"Squeeze", 13, 25, 0, squeeze_create, {{"T", FLOAT}}},
};
const size_t operator_count = sizeof operators / sizeof operators[0];
