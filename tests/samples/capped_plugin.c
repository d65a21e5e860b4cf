/* samples/c_plugin as an older host would see it: GetApi knows API_VERSION at most, and the slots that came
 * later end the process. Compiled with -DAPI_VERSION, -DAPI_SLOTS and -DEP_API_SLOTS. */
#include "ort_abi.h"

OrtStatus* ORT_API_CALL sample_create_factories(const char*, const OrtApiBase*, const OrtLogger*,
                                                OrtEpFactory**, size_t, size_t*);
OrtStatus* ORT_API_CALL sample_release_factory(OrtEpFactory*);

#define CreateEpFactories sample_create_factories
#define ReleaseEpFactory  sample_release_factory
#include "c_plugin.c"
#undef CreateEpFactories
#undef ReleaseEpFactory

static const OrtApiBase* real_base;
static OrtApi capped_api;
static OrtEpApi capped_ep_api;

static void used_a_later_slot(void) {
  fprintf(stderr, "used a slot that came after API %d\n", API_VERSION);
  abort();
}

/* Copies a table of `size` bytes and poisons all behind the first `slots`. */
static void cap(void* table, const void* original, size_t size, size_t slots) {
  void (*poison)(void) = used_a_later_slot;
  memcpy(table, original, size);
  for (size_t at = slots * sizeof poison; at < size; at += sizeof poison)
    memcpy((char*)table + at, &poison, sizeof poison);
}

static const OrtEpApi* ORT_API_CALL get_ep_api(void) {
  return &capped_ep_api;
}

static const OrtApi* ORT_API_CALL get_api(uint32_t version) {
  return version >= 1 && version <= API_VERSION ? &capped_api : NULL;
}

ORT_ABI_EXPORT OrtStatus* ORT_API_CALL CreateEpFactories(const char* name, const OrtApiBase* api_base,
                                                         const OrtLogger* logger, OrtEpFactory** factories,
                                                         size_t max_factories, size_t* num_factories) {
  static OrtApiBase capped_base;
  real_base = api_base;
  const OrtApi* api = real_base->GetApi(ORT_API_VERSION);
  cap(&capped_api, api, sizeof capped_api, API_SLOTS);
  cap(&capped_ep_api, api->GetEpApi(), sizeof capped_ep_api, EP_API_SLOTS);
  capped_api.GetEpApi = get_ep_api;
  capped_base.GetApi = get_api;
  capped_base.GetVersionString = api_base->GetVersionString;
  return sample_create_factories(name, &capped_base, logger, factories, max_factories, num_factories);
}

ORT_ABI_EXPORT OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  return sample_release_factory(factory);
}
