/* The plugin library of one provider in Python, whatever name a host registers it under. It is built once, as
 * ort_abi/_entry.so; ort_abi/ep/_factory/library.py makes a copy in memory for each provider and fills in
 * `entry`. The factories are made by the native module, which stays loaded until the process ends. */
#include "ort_abi.h"

typedef OrtStatus*(ORT_API_CALL* Create)(uint64_t provider, const char* registered_name,
                                         const OrtApiBase* ort_api_base, const OrtLogger* default_logger,
                                         OrtEpFactory** factories, size_t max_factories,
                                         size_t* num_factories);
typedef OrtStatus*(ORT_API_CALL* Release)(OrtEpFactory* factory);

/* Written by _library.py, which finds the mark. Volatile: the compiler must not take it for what it is here.
 */
static const volatile struct {
  char mark[16];
  uint64_t provider; /* which class it is */
  uint64_t create;   /* addresses of bridge_create_factories and ReleaseEpFactory */
  uint64_t release;
} entry = {.mark = "ort_abi: entry."};

OrtStatus* CreateEpFactories(const char* registered_name, const OrtApiBase* ort_api_base,
                             const OrtLogger* default_logger, OrtEpFactory** factories, size_t max_factories,
                             size_t* num_factories) {
  Create create = (Create)(uintptr_t)entry.create;
  *num_factories = 0;
  if (create == NULL)
    return ort_api_base->GetApi(1)->CreateStatus(
        ORT_FAIL, "this is the model of a library: register ort_abi.ep.library_path(TheClass)");
  return create(entry.provider, registered_name, ort_api_base, default_logger, factories, max_factories,
                num_factories);
}

OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  Release release = (Release)(uintptr_t)entry.release;
  return release != NULL ? release(factory) : NULL;
}
