/* The built-in CPUExecutionProvider: a kernel-based plugin EP in plain C on the public tables alone. */
#ifndef ORT_ABI_CPU_EP_CPU_EP_H
#define ORT_ABI_CPU_EP_CPU_EP_H

#include "ort_abi.h"

/* What a plugin library exports as CreateEpFactories. *gives* one factory (caller releases with
 * cpu_ep_release_factory); *keeps* the host's tables and logger, which outlive the factory. */
OrtStatus* ORT_API_CALL cpu_ep_create_factories(const char* registered_name, const OrtApiBase* api_base,
                                                const OrtLogger* default_logger, OrtEpFactory** factories,
                                                size_t max_factories, size_t* num_factories);

/* What a plugin library exports as ReleaseEpFactory. *releases* the factory and its kernel registry. */
OrtStatus* ORT_API_CALL cpu_ep_release_factory(OrtEpFactory* factory);

#endif
