/* Providers that clients add to session options by name, without the devices of an environment: there is one,
 * the built-in CPU provider. Those of libraries come with SessionOptionsAppendExecutionProvider_V2. */
#include <string.h>

#include "api_slots.h"
#include "objects/objects.h"
#include "ort_abi_host.h"

ORT_ABI_EXPORT OrtStatus* ORT_API_CALL
OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions* options, int use_arena) {
  (void)use_arena; /* as in stock ORT */
  REQUIRE_ARG(options);
  if (!ARRAY_RESERVE(options->eps, options->ep_capacity, options->ep_count + 1)) return status_no_memory();
  options->eps[options->ep_count++] = (EpSelection){NULL, 0};
  return NULL;
}

OrtStatus* ortabi_append_cpu_provider(OrtSessionOptions* options, int use_arena) {
  return OrtSessionOptionsAppendExecutionProvider_CPU(options, use_arena);
}

/* The CPU provider by name is a word without effect, as in stock ORT: it comes behind all others anyway. Its
 * options are ignored: it has none. */
OrtStatus* ORT_API_CALL api_SessionOptionsAppendExecutionProvider(OrtSessionOptions* options,
                                                                  const char* provider_name,
                                                                  const char* const* provider_options_keys,
                                                                  const char* const* provider_options_values,
                                                                  size_t num_keys) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(provider_name);
  if (num_keys != 0) {
    REQUIRE_ARG(provider_options_keys);
    REQUIRE_ARG(provider_options_values);
  }
  if (strcmp(provider_name, "CPU") == 0 || strcmp(provider_name, "CPUExecutionProvider") == 0) return NULL;
  return status_new(ORT_INVALID_ARGUMENT,
                    "Unknown provider name '%s': it is not supported in this build, which has "
                    "'CPU'/'CPUExecutionProvider'; providers of registered libraries are added with "
                    "SessionOptionsAppendExecutionProvider_V2",
                    provider_name);
}
