/* What Python says of the EPs of an application's sessions. Only for our own host: it is the one that
 * `ort_abi.SessionOptions` belong to. */
#include "bridge.h"
#include "ort_abi_host.h"

/* An EpSelectionDelegate; `state` is the id of the Python function. */
OrtStatus* bridge_select_devices(const OrtEpDevice** devices, size_t num_devices,
                                 const OrtKeyValuePairs* model_metadata,
                                 const OrtKeyValuePairs* runtime_metadata, const OrtEpDevice** selected,
                                 size_t max_selected, size_t* num_selected, void* state) {
  const char* problem = NULL;
  const OrtApiBase* base = ortabi_get_api_base();
  const BridgeHost* host = bridge_host_from_base(base, &problem);
  if (!host) return base->GetApi(1)->CreateStatus(ORT_FAIL, problem);
  BridgeCall call = bridge_call_begin(host, "EpSelectionDelegate", "SessionOptions");
  *num_selected = 0;
  if (call.entered)
    call.ok =
        bridge_py_select_devices(&call, (uint64_t)(uintptr_t)state, devices, num_devices, model_metadata,
                                 runtime_metadata, selected, max_selected, num_selected);
  return bridge_call_end(&call);
}

/* An OrtAbiFindLastEp without a state. */
OrtStatus* bridge_find_last_ep(void* state, const OrtEpDevice** device) {
  const char* problem = NULL;
  const OrtApiBase* base = ortabi_get_api_base();
  const BridgeHost* host = bridge_host_from_base(base, &problem);
  (void)state;
  *device = NULL;
  if (!host) return base->GetApi(1)->CreateStatus(ORT_FAIL, problem);
  BridgeCall call = bridge_call_begin(host, "OrtAbiFindLastEp", "InferenceSession");
  if (call.entered) call.ok = bridge_py_find_last_ep(&call, device);
  return bridge_call_end(&call);
}
