/* What nodes do, and the registry with the kernel of Relu. */
#include <stdlib.h>
#include <string.h>

#include "example.h"

#define MAX_RANK 8

/* gives the shape and the bytes, where the process has them. */
static OrtStatus* read_input(const Factory* factory, OrtKernelContext* context, size_t index, int64_t* dims,
                             size_t* rank, size_t* count, char** data) {
  const OrtApi* api = factory->api;
  const OrtValue* value = NULL;
  OrtTensorTypeAndShapeInfo* info = NULL;
  OrtStatus* status = NULL;
  if (FAILED(status, api->KernelContext_GetInput(context, index, &value)) ||
      FAILED(status, api->GetTensorTypeAndShape(value, &info)) ||
      FAILED(status, api->GetDimensionsCount(info, rank)))
    goto done;
  if (*rank > MAX_RANK) {
    status = fail(factory, "more dimensions than this EP claimed");
    goto done;
  }
  if (FAILED(status, api->GetDimensions(info, dims, *rank)) ||
      FAILED(status, api->GetTensorShapeElementCount(info, count)))
    goto done;
  status = tensor_bytes(factory, value, data);
done:
  if (info != NULL) api->ReleaseTensorTypeAndShapeInfo(info);
  return status;
}

OrtStatus* compute(const Factory* factory, OrtKernelContext* context, char op) {
  int64_t dims[MAX_RANK], b_dims[MAX_RANK];
  size_t rank = 0, b_rank = 0, count = 0, b_count = 0, inputs = 0;
  char *a = NULL, *b = NULL, *out = NULL;
  OrtValue* output = NULL;
  RETURN_IF_FAILED(factory->api->KernelContext_GetInputCount(context, &inputs));
  RETURN_IF_FAILED(read_input(factory, context, 0, dims, &rank, &count, &a));
  /* A compiled node has a value that it reads twice once among its inputs. */
  if (op != 'r') RETURN_IF_FAILED(read_input(factory, context, inputs - 1, b_dims, &b_rank, &b_count, &b));
  if (op != 'r' && (b_rank != rank || memcmp(dims, b_dims, rank * sizeof *dims) != 0))
    return fail(factory, "shapes that were not claimed");
  RETURN_IF_FAILED(factory->api->KernelContext_GetOutput(context, 0, dims, rank, &output));
  RETURN_IF_FAILED(tensor_bytes(factory, output, &out));
  for (size_t i = 0; i < count; i++) {
    float x, y = 0;
    memcpy(&x, a + i * sizeof x, sizeof x);
    if (op != 'r') memcpy(&y, b + i * sizeof y, sizeof y);
    float z = op == '*' ? x * y : op == '+' ? x + y : x > 0 ? x : 0;
    memcpy(out + i * sizeof z, &z, sizeof z);
  }
  return NULL;
}

/* ---- Relu ---- */

typedef struct Relu {
  OrtKernelImpl base;
  const Factory* factory;
} Relu;

static OrtStatus* ORT_API_CALL relu_compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  return compute(((Relu*)this_ptr)->factory, context, 'r');
}

static void ORT_API_CALL relu_release(OrtKernelImpl* this_ptr) {
  free(this_ptr);
}

#define KERNEL_SLOT(slot, function) .slot = SLOT("OrtKernelImpl", #slot, function)

static OrtStatus* ORT_API_CALL relu_create(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  const Factory* factory = state;
  (void)info;
  Relu* relu = calloc(1, sizeof *relu);
  if (relu == NULL) return fail(factory, "no memory for a kernel");
  relu->base = (OrtKernelImpl){.ort_version_supported = ORT_API_VERSION,
                               KERNEL_SLOT(Compute, relu_compute),
                               KERNEL_SLOT(Release, relu_release)};
  relu->factory = factory;
  *out = &relu->base;
  return NULL;
}

static OrtStatus* define(Factory* factory, OrtKernelDefBuilder* builder, OrtKernelDef** out) {
  const OrtEpApi* ep_api = factory->ep_api;
  const OrtDataType* type = NULL;
  RETURN_IF_FAILED(ep_api->GetTensorDataType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &type));
  RETURN_IF_FAILED(ep_api->KernelDefBuilder_SetOperatorType(builder, "Relu"));
  RETURN_IF_FAILED(ep_api->KernelDefBuilder_SetDomain(builder, ""));
  RETURN_IF_FAILED(ep_api->KernelDefBuilder_SetSinceVersion(builder, 14, 25));
  RETURN_IF_FAILED(ep_api->KernelDefBuilder_SetExecutionProvider(builder, EP_NAME));
  RETURN_IF_FAILED(ep_api->KernelDefBuilder_AddTypeConstraint(builder, "T", &type, 1));
  return ep_api->KernelDefBuilder_Build(builder, out);
}

OrtStatus* kernels_open(Factory* factory) {
  const OrtEpApi* ep_api = factory->ep_api;
  OrtKernelDefBuilder* builder = NULL;
  OrtKernelDef* def = NULL;
  RETURN_IF_FAILED(ep_api->CreateKernelRegistry(&factory->kernels));
  RETURN_IF_FAILED(ep_api->CreateKernelDefBuilder(&builder));
  OrtStatus* status = define(factory, builder, &def);
  if (status == NULL) status = ep_api->KernelRegistry_AddKernel(factory->kernels, def, relu_create, factory);
  ep_api->ReleaseKernelDefBuilder(builder);
  ep_api->ReleaseKernelDef(def);
  return status;
}
