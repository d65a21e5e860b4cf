/* The ABI's front door: OrtGetApiBase, versions, and the way from OrtApi to the other tables. */
#include "api_slots.h"
#include "base/base.h"
#include "ort_abi_host.h"

#define TEXT_OF(value) #value
#define TEXT(value)    TEXT_OF(value)
#define HOST_VERSION   "1." TEXT(ORT_API_VERSION) ".0"

/* One table serves every version: slots never move, a caller built for an older version sees its front part.
 */
static const OrtApi* ORT_API_CALL get_api(uint32_t version) {
  if (version >= 1 && version <= ORT_API_VERSION) return &ort_api_table;
  LOG(NULL, WARNING, "GetApi(%u): this host offers versions 1 to %d", version, ORT_API_VERSION);
  return NULL;
}

static const char* ORT_API_CALL get_version_string(void) {
  return HOST_VERSION;
}

ORT_ABI_EXPORT const OrtApiBase* ORT_API_CALL OrtGetApiBase(void) {
  static const OrtApiBase base = {.GetApi = get_api, .GetVersionString = get_version_string};
  return &base;
}

const OrtApiBase* ortabi_get_api_base(void) {
  return OrtGetApiBase();
}

const char* api_GetBuildInfoString(void) {
  return "ort-abi: ORT Build Info: API " TEXT(ORT_API_VERSION) ", " __VERSION__;
}

const OrtModelEditorApi* api_GetModelEditorApi(void) {
  return &ort_model_editor_api_table;
}

const OrtCompileApi* api_GetCompileApi(void) {
  return &ort_compile_api_table;
}

const OrtInteropApi* api_GetInteropApi(void) {
  return &ort_interop_api_table;
}

const OrtEpApi* api_GetEpApi(void) {
  return &ort_ep_api_table;
}

/* Training is not part of this host: NULL is what stock builds without it answer. */
const OrtTrainingApi* api_GetTrainingApi(uint32_t version) {
  (void)version;
  return NULL;
}

/* NULL means that there is no experimental function of that name, and there are none. */
OrtExperimentalFnPtr api_GetExperimentalFunction(const char* name) {
  (void)name;
  return NULL;
}
