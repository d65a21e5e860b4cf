/* If and Loop: the host makes the kernels, which run the subgraphs. The nodes in these are claimed like any.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel_ep.h"

OrtStatus* ORT_API_CALL if_create(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  return ((const Factory*)state)->ep_api->CreateIfKernel(info, out);
}

/* ---- Loop ---- */

typedef struct LoopHelper {
  OrtLoopKernelHelper base;
  const Factory* factory; /* lives longer than its kernels */
} LoopHelper;

static void ORT_API_CALL loop_release(OrtLoopKernelHelper* this_ptr) {
  free(this_ptr);
}

/* Stacks what the iterations made, all of one shape. With memory of its own, an EP copies there, on its
 * stream. */
static OrtStatus* ORT_API_CALL loop_concat(OrtLoopKernelHelper* this_ptr, void* stream_handle,
                                           const OrtValue* const* values, size_t count, void* output,
                                           size_t output_size) {
  const OrtApi* api = ((const LoopHelper*)this_ptr)->factory->api;
  char* end = output;
  (void)stream_handle, (void)output_size; /* large enough, the host says */
  for (size_t i = 0; i < count; i++) {
    const void* data = NULL;
    size_t size = 0;
    OrtStatus* status = api->GetTensorData(values[i], &data);
    if (status == NULL) status = api->GetTensorSizeInBytes(values[i], &size);
    if (status != NULL) return status;
    if (size != 0) memcpy(end, data, size);
    end += size;
  }
  return NULL;
}

OrtStatus* ORT_API_CALL loop_create(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  const Factory* factory = state;
  LoopHelper* helper = calloc(1, sizeof *helper);
  if (helper == NULL) return fail(factory, ORT_FAIL, "no memory for a Loop");
  helper->base.ort_version_supported = OLDEST_API;
  helper->base.Release = loop_release;
  helper->base.ConcatOutput = loop_concat;
  helper->factory = factory;
  OrtStatus* status = factory->ep_api->CreateLoopKernel(info, &helper->base, out);
  if (status != NULL) free(helper); /* only a kernel takes it */
  return status;
}
