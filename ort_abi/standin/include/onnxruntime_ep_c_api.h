/* onnxruntime_ep_c_api.h: what plugins include. Their structs are declared with all others. */
#ifndef ORT_ABI_ONNXRUNTIME_EP_C_API_H
#define ORT_ABI_ONNXRUNTIME_EP_C_API_H

#include "onnxruntime_c_api.h"

#endif /* ORT_ABI_ONNXRUNTIME_EP_C_API_H */
