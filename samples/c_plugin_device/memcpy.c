/* Kernels for copies as nodes: where a model changes between our device and a CPU kernel, stock onnxruntime
 * puts MemcpyFromHost and MemcpyToHost into the graph and asks us for their kernels. (ort-abi's host copies
 * by itself, with the data transfer.) */
#include <stdlib.h>

#include "device.h"

typedef struct Memcpy {
  OrtKernelImpl base;
  Factory* factory;
} Memcpy;

/* Called on any thread, several at once. */
static OrtStatus* ORT_API_CALL memcpy_compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  Factory* factory = ((Memcpy*)this_ptr)->factory;
  const OrtApi* api = factory->api;
  OrtStatus* status = NULL;
  const OrtValue* from = NULL;
  OrtValue* to = NULL;
  const int64_t* dims = NULL;
  size_t rank = 0;
  ONNXTensorElementDataType type;
  void* handle = NULL;
  TRY(api->KernelContext_GetInput(context, 0, &from));
  TRY(api->GetTensorElementTypeAndShapeDataReference(from, &type, &dims, &rank));
  TRY(api->KernelContext_GetOutput(context, 0, dims, rank, &to));
  if (to == NULL) goto done; /* nobody wants it */
  TRY(api->KernelContext_GetGPUComputeStream(context, &handle));
  TRY(transfer_copy(factory, from, to, handle));
done:
  return status;
}

static void ORT_API_CALL memcpy_release(OrtKernelImpl* this_ptr) {
  control.live_objects--;
  free(this_ptr);
}

/* gives a kernel (the host releases it through its Release). */
static OrtStatus* ORT_API_CALL memcpy_create(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  Factory* factory = state;
  (void)info;
  Memcpy* made = calloc(1, sizeof *made);
  if (made == NULL) return fail(factory, ORT_FAIL, "no memory for a kernel");
  made->factory = factory;
  made->base.ort_version_supported = factory->api_version;
  made->base.Compute = memcpy_compute;
  made->base.Release = memcpy_release;
  control.live_objects++;
  *out = &made->base;
  return NULL;
}

static OrtStatus* add_kernel(Factory* factory, const char* op_type, bool is_from_host) {
  const OrtEpApi* ep_api = factory->ep_api;
  OrtStatus* status = NULL;
  OrtKernelDefBuilder* builder = NULL;
  OrtKernelDef* def = NULL;
  const OrtDataType* floats = NULL;
  TRY(ep_api->CreateKernelDefBuilder(&builder));
  TRY(ep_api->GetTensorDataType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &floats));
  TRY(ep_api->KernelDefBuilder_SetOperatorType(builder, op_type));
  TRY(ep_api->KernelDefBuilder_SetDomain(builder, ""));
  TRY(ep_api->KernelDefBuilder_SetSinceVersion(builder, 1, 1));
  TRY(ep_api->KernelDefBuilder_SetExecutionProvider(builder, factory->name));
  TRY(ep_api->KernelDefBuilder_AddTypeConstraint(builder, "T", &floats, 1));
  TRY(is_from_host ? ep_api->KernelDefBuilder_SetInputMemType(builder, 0, OrtMemTypeCPUInput)
                   : ep_api->KernelDefBuilder_SetOutputMemType(builder, 0, OrtMemTypeCPUOutput));
  TRY(ep_api->KernelDefBuilder_Build(builder, &def));
  TRY(ep_api->KernelRegistry_AddKernel(factory->kernels, def, memcpy_create, factory)); /* copies `def` */
done:
  if (def != NULL) ep_api->ReleaseKernelDef(def);
  if (builder != NULL) ep_api->ReleaseKernelDefBuilder(builder);
  return status;
}

OrtStatus* memcpy_open(Factory* factory) {
  OrtStatus* status = NULL;
  if (factory->api_version < KERNELS_API) return NULL;
  TRY(factory->ep_api->CreateKernelRegistry(&factory->kernels));
  TRY(add_kernel(factory, "MemcpyFromHost", true));
  TRY(add_kernel(factory, "MemcpyToHost", false));
done:
  return status;
}

void memcpy_close(Factory* factory) {
  if (factory->kernels != NULL) factory->ep_api->ReleaseKernelRegistry(factory->kernels);
}
