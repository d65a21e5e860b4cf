/* If, Loop and Scan: the host makes the kernels and runs the bodies; what only an EP can do with its memory
 * it asks of the helpers here. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

/* ---- If ---- */

static OrtStatus* create_if(const CpuKernelSource* source, const OrtKernelInfo* info,
                            OrtKernelImpl** kernel_out) {
  return source->ep_api->CreateIfKernel(info, kernel_out);
}

const CpuOperator cpu_if = {.create = create_if};

/* ---- Loop ---- */

typedef struct LoopHelper {
  OrtLoopKernelHelper base; /* first: the only part the host sees */
  const OrtApi* api;
} LoopHelper;

static void ORT_API_CALL loop_release(OrtLoopKernelHelper* base) {
  free(base);
}

/* Writes the values, all of one shape, one after the other. */
static OrtStatus* ORT_API_CALL loop_concat(OrtLoopKernelHelper* base, void* stream,
                                           const OrtValue* const* values, size_t count, void* output,
                                           size_t output_size) {
  const OrtApi* api = ((LoopHelper*)base)->api;
  (void)stream; /* there are none on the CPU */
  size_t written = 0;
  for (size_t i = 0; i < count; i++) {
    const void* data = NULL;
    size_t size = 0;
    OrtStatus* status = api->GetTensorSizeInBytes(values[i], &size);
    if (!status) status = api->GetTensorData(values[i], &data);
    if (status) return status;
    if (size > output_size - written)
      return api->CreateStatus(ORT_INVALID_ARGUMENT, CPU_EP_NAME ": Loop: the output is too small");
    if (size > 0) memcpy((char*)output + written, data, size);
    written += size;
  }
  return NULL;
}

static OrtStatus* create_loop(const CpuKernelSource* source, const OrtKernelInfo* info,
                              OrtKernelImpl** kernel_out) {
  LoopHelper* helper = calloc(1, sizeof *helper);
  if (!helper)
    return source->api->CreateStatus(ORT_RUNTIME_EXCEPTION, CPU_EP_NAME ": out of memory for a Loop kernel");
  helper->base.ort_version_supported = CPU_EP_API_VERSION;
  helper->base.Release = loop_release;
  helper->base.ConcatOutput = loop_concat;
  helper->api = source->api;
  OrtStatus* status = source->ep_api->CreateLoopKernel(info, &helper->base, kernel_out);
  if (status) free(helper); /* it is the kernel's only once there is one */
  return status;
}

const CpuOperator cpu_loop = {.create = create_loop};

/* ---- Scan ---- */

typedef struct ScanHelper {
  OrtScanKernelHelper base; /* first: the only part the host sees */
  CpuKernel kernel;         /* names the node in messages; never computes */
} ScanHelper;

static void ORT_API_CALL scan_release(OrtScanKernelHelper* base) {
  free(base);
}

static OrtStatus* ORT_API_CALL scan_transpose(OrtScanKernelHelper* base, const size_t* permutation,
                                              size_t count, const OrtValue* input, OrtSyncStream* stream,
                                              OrtValue* output) {
  const CpuKernel* kernel = &((ScanHelper*)base)->kernel;
  CpuTensor tensor;
  void* data = NULL;
  (void)stream; /* there are none on the CPU */
  OrtStatus* status = cpu_view(kernel, input, 0, &tensor);
  if (!status && count != tensor.rank)
    status = cpu_fail(kernel, ORT_INVALID_ARGUMENT, "the permutation has %zu entries for %zu dimensions",
                      count, tensor.rank);
  if (!status) status = kernel->api->GetTensorMutableData(output, &data);
  if (status || tensor.count == 0) return status;
  cpu_permute(&tensor, permutation, data);
  return NULL;
}

static OrtStatus* create_scan(const CpuKernelSource* source, const OrtKernelInfo* info,
                              OrtKernelImpl** kernel_out) {
  ScanHelper* helper = calloc(1, sizeof *helper);
  if (!helper)
    return source->api->CreateStatus(ORT_RUNTIME_EXCEPTION, CPU_EP_NAME ": out of memory for a Scan kernel");
  helper->base.ort_version_supported = CPU_EP_API_VERSION;
  helper->base.Release = scan_release;
  helper->base.Transpose = scan_transpose;
  helper->kernel = (CpuKernel){
      .api = source->api, .ep_api = source->ep_api, .op_type = "Scan", .node_name = (char*)"(transposing)"};
  OrtStatus* status = source->ep_api->CreateScanKernel(info, &helper->base, kernel_out);
  if (status) free(helper); /* it is the kernel's only once there is one */
  return status;
}

const CpuOperator cpu_scan = {.create = create_scan};

/* ---- Claims ---- */

static OrtStatus* is_tensor(const OrtApi* api, const OrtValueInfo* value, bool* result) {
  const OrtTypeInfo* type = NULL;
  enum ONNXType kind = ONNX_TYPE_UNKNOWN;
  if (!value) return NULL; /* a missing optional one */
  OrtStatus* status = api->GetValueInfoTypeInfo(value, &type);
  if (!status && type) status = api->GetOnnxTypeFromTypeInfo(type, &kind);
  *result = *result && kind == ONNX_TYPE_TENSOR;
  return status;
}

/* Clears `*result` if a value of the list is no tensor. The arrays of inputs and outputs are read alike. */
typedef OrtStatus* (*GetValues)(const OrtNode* node, const OrtValueInfo** values, size_t count);

static OrtStatus* are_tensors(const OrtApi* api, const OrtNode* node, size_t count, GetValues get,
                              bool* result) {
  const OrtValueInfo** values = calloc(count + 1, sizeof *values);
  if (!values) return api->CreateStatus(ORT_EP_FAIL, CPU_EP_NAME ": out of memory in GetCapability");
  OrtStatus* status = count > 0 ? get(node, values, count) : NULL;
  for (size_t i = 0; i < count && !status; i++) status = is_tensor(api, values[i], result);
  free(values);
  return status;
}

static OrtStatus* check_graph(const OrtApi* api, const OrtGraph* graph, bool* result);

static OrtStatus* check_node(const OrtApi* api, const OrtNode* node, bool* result) {
  size_t inputs = 0, outputs = 0, graphs = 0;
  OrtStatus* status = api->Node_GetNumInputs(node, &inputs);
  if (!status) status = api->Node_GetNumOutputs(node, &outputs);
  if (!status) status = api->Node_GetNumSubgraphs(node, &graphs);
  if (!status) status = are_tensors(api, node, inputs, api->Node_GetInputs, result);
  if (!status) status = are_tensors(api, node, outputs, api->Node_GetOutputs, result);
  if (status || graphs == 0 || !*result) return status;
  const OrtGraph** subgraphs = calloc(graphs, sizeof *subgraphs);
  if (!subgraphs) return api->CreateStatus(ORT_EP_FAIL, CPU_EP_NAME ": out of memory in GetCapability");
  status = api->Node_GetSubgraphs(node, subgraphs, graphs, NULL);
  for (size_t i = 0; i < graphs && !status && *result; i++) status = check_graph(api, subgraphs[i], result);
  free(subgraphs);
  return status;
}

static OrtStatus* check_graph(const OrtApi* api, const OrtGraph* graph, bool* result) {
  size_t count = 0;
  OrtStatus* status = api->Graph_GetNumNodes(graph, &count);
  if (status || count == 0) return status;
  const OrtNode** nodes = calloc(count, sizeof *nodes);
  if (!nodes) return api->CreateStatus(ORT_EP_FAIL, CPU_EP_NAME ": out of memory in GetCapability");
  status = api->Graph_GetNodes(graph, nodes, count);
  for (size_t i = 0; i < count && !status && *result; i++) status = check_node(api, nodes[i], result);
  free(nodes);
  return status;
}

OrtStatus* cpu_takes_subgraphs(const OrtApi* api, const OrtNode* node, bool* result) {
  size_t graphs = 0;
  *result = true;
  OrtStatus* status = api->Node_GetNumSubgraphs(node, &graphs);
  return status || graphs == 0 ? status : check_node(api, node, result);
}
