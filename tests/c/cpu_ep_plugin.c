/* The built-in CPU EP as a plugin library of its own, so that any host can load it. Built with -DCPU_EP_NAME
 * to give it a name that the host does not use for an EP of its own. */
#include "cpu_ep/cpu_ep.h"

OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* api_base,
                                          const OrtLogger* default_logger, OrtEpFactory** factories,
                                          size_t max_factories, size_t* num_factories) {
  return cpu_ep_create_factories(registered_name, api_base, default_logger, factories, max_factories,
                                 num_factories);
}

OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  return cpu_ep_release_factory(factory);
}
