/* cpu_provider_factory.h: what programs include for OrtSessionOptionsAppendExecutionProvider_CPU. */
#ifndef ORT_ABI_CPU_PROVIDER_FACTORY_H
#define ORT_ABI_CPU_PROVIDER_FACTORY_H

#include "onnxruntime_c_api.h"

#endif /* ORT_ABI_CPU_PROVIDER_FACTORY_H */
