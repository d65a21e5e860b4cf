/* What the sample's two files share. kernels.c: the operators; ep.c: how a host finds them. */
#ifndef KERNEL_SAMPLE_EP_H
#define KERNEL_SAMPLE_EP_H

#include "control.h"
#include "ort_abi.h"

#define EP_NAME    "SampleKernelExecutionProvider"
#define OLDEST_API 24 /* the first with kernels */

/* The struct that the host sees comes first, so that a pointer to one is a pointer to the other. */
typedef struct Factory {
  OrtEpFactory base;
  const OrtApi* api;
  const OrtEpApi* ep_api;
  uint32_t api_version; /* of the host */
  OrtKernelRegistry* registry;
} Factory;

/* One operator. `create` is called once a node; its state is the Factory. */
typedef struct Operator {
  const char* op_type;
  int first_version, last_version; /* of the ONNX operator */
  int alias_input;                 /* the output may lie in this input's memory; -1: in none's */
  OrtKernelCreateFunc create;
} Operator;

extern const Operator operators[];
extern const size_t operator_count;
extern KernelSampleControl control;

/* gives: a status is made by the host, so that the host can release it. Never NULL, which would mean OK. */
OrtStatus* fail(const Factory* factory, OrtErrorCode code, const char* message);

#endif
