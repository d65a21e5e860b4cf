/* The operators that an EP brings along: asked for by each session that uses the EP. Stock ORT asks when the
 * EP is added to session options; those may outlive the EP's library, and its domains with it. */
#include "plugins/plugins.h"

#define MOST_DOMAINS 1000

/* True if the options have another operator of that name in a domain of that name. */
static bool has_other(const OrtSessionOptions* options, const char* domain, const OrtCustomOp* op,
                      const char* name) {
  for (size_t i = 0; i < options->custom_op_domain_count; i++) {
    const OrtCustomOpDomain* known = options->custom_op_domains[i];
    for (size_t k = 0; str_equal(known->name, domain) && k < known->count; k++) {
      if (known->ops[k] != op && str_equal(call_OrtCustomOp_GetName(known->ops[k], NULL), name)) return true;
    }
  }
  return false;
}

/* Operators that the options have already stay as they are (model_add_custom_ops); the EP's are left out. */
static OrtStatus* warn_of_known(const OrtEpDevice* device, const OrtCustomOpDomain* domain,
                                const OrtSessionOptions* options) {
  for (size_t i = 0; i < domain->count; i++) {
    OrtStatus* thrown = NULL;
    const char* name = call_OrtCustomOp_GetName(domain->ops[i], &thrown);
    if (thrown != NULL) return status_wrap(thrown, "EP '%s'", device->ep_name);
    if (has_other(options, domain->name, domain->ops[i], name))
      LOG(NULL, WARNING,
          "EP '%s': its custom operator '%s' of domain '%s' is left out, the session options have one",
          device->ep_name, name, domain->name);
  }
  return NULL;
}

/* As in stock ORT, a domain without operators is left out. */
static OrtStatus* add_domains(const OrtEpDevice* device, OrtCustomOpDomain* const* domains, size_t count,
                              OrtSessionOptions* options) {
  for (size_t i = 0; i < count; i++) {
    if (domains[i] == NULL)
      return status_new(ORT_EP_FAIL, "EP '%s': OrtEpFactory::GetCustomOpDomains left domain %zu of %zu NULL",
                        device->ep_name, i, count);
    if (domains[i]->count == 0) continue;
    TRY(warn_of_known(device, domains[i], options));
    if (!session_options_add_custom_ops(options, domains[i])) return status_no_memory();
    options->ep_domain_count++;
  }
  return NULL;
}

static OrtStatus* failure(OrtStatus* cause, const OrtEpDevice* device, const char* slot) {
  OrtErrorCode code = status_code(cause) != ORT_OK ? status_code(cause) : ORT_FAIL;
  OrtStatus* status =
      status_new(code, "EP '%s': OrtEpFactory::%s failed: %s", device->ep_name, slot, status_message(cause));
  status_release(cause);
  return status;
}

OrtStatus* ep_custom_ops_add(const OrtEpDevice* device, OrtSessionOptions* options) {
  OrtEpFactory* factory = device->factory;
  OrtStatus*(ORT_API_CALL * get_count)(OrtEpFactory*, size_t*) =
      GUARD_SLOT(factory, device->factory_version, GetNumCustomOpDomains, 24);
  OrtStatus*(ORT_API_CALL * get)(OrtEpFactory*, OrtCustomOpDomain**, size_t) =
      GUARD_SLOT(factory, device->factory_version, GetCustomOpDomains, 24);
  if (get_count == NULL || get == NULL) return NULL;
  size_t count = 0;
  OrtStatus* status = call_OrtEpFactory_GetNumCustomOpDomains(factory, &count);
  if (status != NULL) return failure(status, device, "GetNumCustomOpDomains");
  if (count == 0) return NULL;
  if (count > MOST_DOMAINS)
    return status_new(ORT_EP_FAIL, "EP '%s': OrtEpFactory::GetNumCustomOpDomains says %zu, more than %d",
                      device->ep_name, count, MOST_DOMAINS);
  OrtCustomOpDomain** domains = mem_calloc(count, sizeof *domains);
  if (domains == NULL) return status_no_memory();
  size_t known = options->custom_op_domain_count, known_of_eps = options->ep_domain_count;
  status = call_OrtEpFactory_GetCustomOpDomains(factory, domains, count);
  if (status != NULL)
    status = failure(status, device, "GetCustomOpDomains");
  else
    status = add_domains(device, domains, count, options);
  if (status != NULL) {
    options->custom_op_domain_count = known;
    options->ep_domain_count = known_of_eps;
  }
  mem_free(domains);
  return status;
}
