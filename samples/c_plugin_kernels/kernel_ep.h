/* What the sample's files share. kernels.c, control_flow.c: the operators; ep.c: how a host finds them. */
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

#define MAX_CONSTRAINTS 3

/* A type parameter of the ONNX operator, and the only type that the kernel takes for it. */
typedef struct TypeConstraint {
  const char* name;
  ONNXTensorElementDataType type;
} TypeConstraint;

/* One operator. `create` is called once a node; its state is the Factory. */
typedef struct Operator {
  const char* op_type;
  int first_version, last_version; /* of the ONNX operator */
  int alias_input;                 /* the output may lie in this input's memory; -1: in none's */
  OrtKernelCreateFunc create;
  TypeConstraint constraints[MAX_CONSTRAINTS]; /* name NULL: no more */
} Operator;

/* control_flow.c */
OrtStatus* ORT_API_CALL if_create(void* state, const OrtKernelInfo* info, OrtKernelImpl** out);
OrtStatus* ORT_API_CALL loop_create(void* state, const OrtKernelInfo* info, OrtKernelImpl** out);

extern const Operator operators[];
extern const size_t operator_count;
extern KernelSampleControl control;

/* gives: a status is made by the host, so that the host can release it. Never NULL, which would mean OK. */
OrtStatus* fail(const Factory* factory, OrtErrorCode code, const char* message);

#endif
