/* If, Loop and Scan of a provider: the host makes the kernels, this has what it asks of the provider for
 * them. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

/* Belongs to the kernel, which is released before the provider. */
typedef struct PyHelper {
  union { /* first: the host's pointer is ours */
    OrtLoopKernelHelper loop;
    OrtScanKernelHelper scan;
  } base;
  const BridgeHost* host;
  uint64_t ep_id;
  char* name; /* of the provider */
} PyHelper;

static void helper_free(PyHelper* helper) {
  if (!helper) return;
  free(helper->name);
  free(helper);
}

/* Gives a helper for the provider that the kernel is made for (released with helper_free). */
static OrtStatus* helper_new(const BridgeHost* host, const char* slot, const OrtKernelInfo* info,
                             PyHelper** out) {
  const OrtEp* ep = NULL;
  *out = NULL;
  OrtStatus* status = host->ep_api->KernelInfo_GetEp(info, &ep);
  if (status) return status;
  PyHelper* helper = calloc(1, sizeof *helper);
  if (helper) helper->name = bridge_copy_string(ep->GetName(ep));
  if (!helper || !helper->name) {
    helper_free(helper);
    return bridge_no_memory(host, slot);
  }
  helper->host = host;
  helper->ep_id = bridge_ep_id(ep);
  *out = helper;
  return NULL;
}

/* ---- If ---- */

/* OrtKernelCreateFuncs, whose state is a host. They give the kernel (host releases with its Release). */
OrtStatus* bridge_create_if(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel) {
  const BridgeHost* host = state;
  return host->ep_api->CreateIfKernel(info, kernel);
}

/* ---- Loop ---- */

static void loop_release(OrtLoopKernelHelper* this_ptr) {
  helper_free((PyHelper*)this_ptr);
}

static OrtStatus* is_in_cpu_memory(const OrtApi* api, const OrtValue* value, bool* yes) {
  const OrtMemoryInfo* memory = NULL;
  OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_CPU;
  OrtStatus* status = api->GetTensorMemoryInfo(value, &memory);
  if (status) return status;
  api->MemoryInfoGetDeviceType(memory, &device);
  *yes = device == OrtMemoryInfoDeviceType_CPU ||
         api->MemoryInfoGetDeviceMemType(memory) == OrtDeviceMemoryType_HOST_ACCESSIBLE;
  return NULL;
}

static OrtStatus* concat_on_cpu(const PyHelper* helper, const OrtValue* const* values, size_t count,
                                char* output, size_t size) {
  const OrtApi* api = helper->host->api;
  for (size_t i = 0; i < count; i++) {
    const void* data = NULL;
    size_t bytes = 0;
    OrtStatus* status = api->GetTensorSizeInBytes(values[i], &bytes);
    if (!status) status = api->GetTensorData(values[i], &data);
    if (status) return status;
    if (bytes > size)
      return api->CreateStatus(ORT_INVALID_ARGUMENT,
                               "OrtLoopKernelHelper::ConcatOutput: the output is too small");
    if (bytes) memcpy(output, data, bytes);
    output += bytes;
    size -= bytes;
  }
  return NULL;
}

/* borrows the values during the call. */
static OrtStatus* loop_concat(OrtLoopKernelHelper* this_ptr, void* stream_handle,
                              const OrtValue* const* values, size_t count, void* output, size_t size) {
  const PyHelper* helper = (const PyHelper*)this_ptr;
  bool on_cpu = true;
  OrtStatus* status = count ? is_in_cpu_memory(helper->host->api, values[0], &on_cpu) : NULL;
  if (status) return status;
  if (on_cpu) return concat_on_cpu(helper, values, count, output, size);
  BridgeCall call = bridge_call_begin(helper->host, "OrtLoopKernelHelper::ConcatOutput", helper->name);
  if (call.entered) {
    call.ok = bridge_py_concat(&call, helper->ep_id, (uint64_t)(uintptr_t)stream_handle, values, count,
                               (uint64_t)(uintptr_t)output, size);
  }
  return bridge_call_end(&call);
}

OrtStatus* bridge_create_loop(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel) {
  const BridgeHost* host = state;
  PyHelper* helper = NULL;
  *kernel = NULL;
  OrtStatus* status = helper_new(host, "OrtEpApi::CreateLoopKernel", info, &helper);
  if (status) return status;
  helper->base.loop = (OrtLoopKernelHelper){
      .ort_version_supported = host->version, .Release = loop_release, .ConcatOutput = loop_concat};
  status = host->ep_api->CreateLoopKernel(info, &helper->base.loop, kernel);
  if (status) helper_free(helper); /* it is the kernel's only once there is one */
  return status;
}

/* ---- Scan ---- */

static void scan_release(OrtScanKernelHelper* this_ptr) {
  helper_free((PyHelper*)this_ptr);
}

/* borrows the values during the call. */
static OrtStatus* scan_transpose(OrtScanKernelHelper* this_ptr, const size_t* permutation, size_t count,
                                 const OrtValue* input, OrtSyncStream* stream, OrtValue* output) {
  const PyHelper* helper = (const PyHelper*)this_ptr;
  BridgeCall call = bridge_call_begin(helper->host, "OrtScanKernelHelper::Transpose", helper->name);
  if (call.entered) {
    call.ok = bridge_py_transpose(&call, helper->ep_id, permutation, count, input,
                                  bridge_stream_id(&call, stream), output);
  }
  return bridge_call_end(&call);
}

OrtStatus* bridge_create_scan(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel) {
  const BridgeHost* host = state;
  PyHelper* helper = NULL;
  *kernel = NULL;
  OrtStatus* status = helper_new(host, "OrtEpApi::CreateScanKernel", info, &helper);
  if (status) return status;
  helper->base.scan = (OrtScanKernelHelper){
      .ort_version_supported = host->version, .Release = scan_release, .Transpose = scan_transpose};
  status = host->ep_api->CreateScanKernel(info, &helper->base.scan, kernel);
  if (status) helper_free(helper);
  return status;
}
