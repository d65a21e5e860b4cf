/* libFuzzer target: any bytes are a model or an error. See README.md in this folder. */
#include <stdlib.h>

#include "ort_abi_host.h"

/* Half of the inputs are looked at through a view, so that views are fuzzed as well. */
static void look_at(const OrtApi* api, const OrtModel* model) {
  const OrtGraph* graph = ortabi_model_graph(model);
  size_t count = 0;
  if (api->Graph_GetNumNodes(graph, &count) != NULL) abort();
  const OrtNode** nodes = calloc(count + 1, sizeof *nodes);
  if (nodes == NULL || api->Graph_GetNodes(graph, nodes, count) != NULL) abort();
  for (size_t i = 0; 2 * i < count; i++) nodes[i] = nodes[2 * i];
  OrtGraph* view = NULL;
  OrtStatus* status = api->Graph_GetGraphView(graph, nodes, (count + 1) / 2, &view);
  if (status != NULL) abort();
  api->ReleaseGraph(view);
  free(nodes);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const OrtApi* api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  OrtModel* model = NULL;
  OrtStatus* status = ortabi_load_model(NULL, data, size, &model);
  if (status == NULL) {
    look_at(api, model);
    api->ReleaseModel(model);
  } else if (api->GetErrorCode(status) == ORT_OK || api->GetErrorMessage(status)[0] == '\0') {
    abort();
  }
  api->ReleaseStatus(status);
  return 0;
}
