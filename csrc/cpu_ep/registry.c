/* Which operators, versions and types the EP takes, and how their kernels come to be. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

/* ---- The table ---- */

/* Type masks: one bit an element type. */
#define BIT(name)     (1u << CPU_TYPE(name))
#define BOOLEAN       BIT(BOOL)
#define SIGNED        (BIT(INT8) | BIT(INT16) | BIT(INT32) | BIT(INT64))
#define UNSIGNED      (BIT(UINT8) | BIT(UINT16) | BIT(UINT32) | BIT(UINT64))
#define WIDE_INTEGERS (BIT(INT32) | BIT(INT64) | BIT(UINT32) | BIT(UINT64))
#define INDICES       (BIT(INT32) | BIT(INT64))
#define REALS         (BIT(FLOAT16) | BIT(BFLOAT16) | BIT(FLOAT) | BIT(DOUBLE))
#define NUMBERS       (SIGNED | UNSIGNED | REALS)
#define CONVERTIBLE   (NUMBERS | BOOLEAN)
#define FLOAT8        (BIT(FLOAT8E4M3FN) | BIT(FLOAT8E4M3FNUZ) | BIT(FLOAT8E5M2) | BIT(FLOAT8E5M2FNUZ))
#define ANY           (CONVERTIBLE | FLOAT8)
#define ANY_OR_STRING (ANY | BIT(STRING))

#define MAX_CONSTRAINTS 3

/* The type parameter's name in the operator's schema, and the types of it that the kernel takes. */
typedef struct TypeConstraint {
  const char* parameter;
  uint32_t types;
} TypeConstraint;

typedef enum Memory {
  FRESH,         /* outputs get memory of their own */
  REUSES_0,      /* output 0 may be written over input 0 */
  REUSES_0_OR_1, /* or over input 1 */
  SHARES_0,      /* output 0 is input 0 under another shape: the host may give both the same memory */
} Memory;

struct CpuKernelRow {
  const char* op_type;
  int first_version; /* of the schema; both ends count */
  int last_version;
  const CpuOperator* op;
  Memory memory;
  TypeConstraint constraints[MAX_CONSTRAINTS];
};

static const CpuKernelRow rows[] = {
    {"Abs", 6, 13, &cpu_abs, REUSES_0, {{"T", NUMBERS}}},
    {"Add", 7, 14, &cpu_add, REUSES_0_OR_1, {{"T", NUMBERS}}},
    {"And", 7, 7, &cpu_and, FRESH, {{"T", BOOLEAN}, {"T1", BOOLEAN}}},
    {"Cast", 6, 28, &cpu_cast, FRESH, {{"T1", CONVERTIBLE}, {"T2", CONVERTIBLE}}},
    {"Ceil", 6, 13, &cpu_ceil, REUSES_0, {{"T", REALS}}},
    {"Clip", 6, 13, &cpu_clip, REUSES_0, {{"T", NUMBERS}}},
    {"Concat", 1, 3, &cpu_concat_v1, FRESH, {{"T", ANY}}},
    {"Concat", 4, 13, &cpu_concat, FRESH, {{"T", ANY}}},
    {"Constant", 1, 25, &cpu_constant, FRESH, {{"T", ANY}}},
    {"Div", 7, 14, &cpu_div, REUSES_0_OR_1, {{"T", NUMBERS}}},
    {"Equal", 7, 19, &cpu_equal, FRESH, {{"T", CONVERTIBLE}, {"T1", BOOLEAN}}},
    {"Erf", 9, 13, &cpu_erf, REUSES_0, {{"T", REALS}}},
    {"Exp", 6, 13, &cpu_exp, REUSES_0, {{"T", REALS}}},
    {"Expand", 8, 13, &cpu_expand, FRESH, {{"T", ANY}}},
    {"Flatten", 1, 25, &cpu_flatten, SHARES_0, {{"T", ANY}}},
    {"Floor", 6, 13, &cpu_floor, REUSES_0, {{"T", REALS}}},
    {"Gather", 1, 13, &cpu_gather, FRESH, {{"T", ANY}, {"Tind", INDICES}}},
    {"Gemm", 7, 13, &cpu_gemm, FRESH, {{"T", REALS | WIDE_INTEGERS}}},
    {"Greater", 7, 13, &cpu_greater, FRESH, {{"T", NUMBERS}, {"T1", BOOLEAN}}},
    {"Identity", 1, 13, &cpu_identity, SHARES_0, {{"T", ANY}}},
    {"Identity", 14, 25, &cpu_identity, SHARES_0, {{"V", ANY}}},
    {"If", 1, 25, &cpu_if, FRESH, {{"B", BOOLEAN}, {"V", ANY_OR_STRING}}},
    {"LeakyRelu", 6, 16, &cpu_leaky_relu, REUSES_0, {{"T", REALS}}},
    {"Less", 7, 13, &cpu_less, FRESH, {{"T", NUMBERS}, {"T1", BOOLEAN}}},
    {"Log", 6, 13, &cpu_log, REUSES_0, {{"T", REALS}}},
    {"Loop", 1, 25, &cpu_loop, FRESH, {{"I", BIT(INT64)}, {"B", BOOLEAN}, {"V", ANY_OR_STRING}}},
    {"MatMul", 1, 13, &cpu_matmul, FRESH, {{"T", REALS | WIDE_INTEGERS}}},
    {"Max", 6, 7, &cpu_max_v6, FRESH, {{"T", REALS}}},
    {"Max", 8, 13, &cpu_max, FRESH, {{"T", NUMBERS}}},
    {"Min", 6, 7, &cpu_min_v6, FRESH, {{"T", REALS}}},
    {"Min", 8, 13, &cpu_min, FRESH, {{"T", NUMBERS}}},
    {"Mul", 7, 14, &cpu_mul, REUSES_0_OR_1, {{"T", NUMBERS}}},
    {"Neg", 6, 13, &cpu_neg, REUSES_0, {{"T", SIGNED | REALS}}},
    {"Not", 1, 1, &cpu_not, REUSES_0, {{"T", BOOLEAN}}},
    {"Or", 7, 7, &cpu_or, FRESH, {{"T", BOOLEAN}, {"T1", BOOLEAN}}},
    {"Pow", 7, 11, &cpu_pow, FRESH, {{"T", REALS}}},
    {"Pow", 12, 15, &cpu_pow, FRESH, {{"T", REALS | INDICES}, {"T1", NUMBERS}}},
    {"ReduceMax", 1, 20, &cpu_reduce_max, FRESH, {{"T", CONVERTIBLE}}},
    {"ReduceMean", 1, 18, &cpu_reduce_mean, FRESH, {{"T", REALS | WIDE_INTEGERS}}},
    {"ReduceSum", 1, 13, &cpu_reduce_sum, FRESH, {{"T", REALS | WIDE_INTEGERS}}},
    {"Relu", 6, 14, &cpu_relu, REUSES_0, {{"T", SIGNED | REALS}}},
    {"Reshape", 1, 4, &cpu_reshape, SHARES_0, {{"T", REALS}}},
    {"Reshape", 5, 25, &cpu_reshape, SHARES_0, {{"T", ANY}}},
    {"Scan", 9, 25, &cpu_scan, FRESH, {{"V", ANY}}},
    {"Shape", 1, 25, &cpu_shape, FRESH, {{"T", ANY}, {"T1", BIT(INT64)}}},
    {"Sigmoid", 6, 13, &cpu_sigmoid, REUSES_0, {{"T", REALS}}},
    {"Slice", 1, 9, &cpu_slice, FRESH, {{"T", ANY}}},
    {"Slice", 10, 13, &cpu_slice, FRESH, {{"T", ANY}, {"Tind", INDICES}}},
    {"Softmax", 1, 12, &cpu_softmax_v1, REUSES_0, {{"T", REALS}}},
    {"Softmax", 13, 13, &cpu_softmax, REUSES_0, {{"T", REALS}}},
    {"Split", 2, 18, &cpu_split, FRESH, {{"T", ANY}}},
    {"Sqrt", 6, 13, &cpu_sqrt, REUSES_0, {{"T", REALS}}},
    {"Squeeze", 1, 25, &cpu_squeeze, SHARES_0, {{"T", ANY}}},
    {"Sub", 7, 14, &cpu_sub, REUSES_0_OR_1, {{"T", NUMBERS}}},
    {"Tanh", 6, 13, &cpu_tanh, REUSES_0, {{"T", REALS}}},
    {"Transpose", 1, 25, &cpu_transpose, FRESH, {{"T", ANY}}},
    {"Unsqueeze", 1, 25, &cpu_unsqueeze, SHARES_0, {{"T", ANY}}},
    {"Where", 9, 16, &cpu_where, FRESH, {{"B", BOOLEAN}, {"T", ANY}}},
};

size_t cpu_kernel_row_count(void) {
  return sizeof rows / sizeof rows[0];
}

/* ---- Kernels ---- */

static OrtStatus* ORT_API_CALL kernel_compute(OrtKernelImpl* impl, OrtKernelContext* context) {
  CpuKernel* kernel = (CpuKernel*)impl;
  return kernel->op->compute(kernel, context);
}

static void ORT_API_CALL kernel_release(OrtKernelImpl* impl) {
  CpuKernel* kernel = (CpuKernel*)impl;
  if (!kernel) return;
  if (kernel->op->release) kernel->op->release(kernel);
  free(kernel->node_name);
  free(kernel);
}

/* *copies* the name: the host's info is gone after the kernel was created. */
static OrtStatus* copy_node_name(CpuKernel* kernel, const OrtKernelInfo* info) {
  size_t size = 0;
  OrtStatus* status = kernel->api->KernelInfo_GetNodeName(info, NULL, &size);
  if (status) return status;
  kernel->node_name = calloc(size + 1, 1);
  if (!kernel->node_name) return cpu_fail(kernel, ORT_RUNTIME_EXCEPTION, "out of memory");
  return kernel->api->KernelInfo_GetNodeName(info, kernel->node_name, &size);
}

/* *gives* the kernel (the host releases it with its Release). */
static OrtStatus* ORT_API_CALL create_kernel(void* state, const OrtKernelInfo* info,
                                             OrtKernelImpl** kernel_out) {
  const CpuKernelSource* source = state;
  const CpuOperator* op = source->row->op;
  *kernel_out = NULL;
  if (op->create) return op->create(source, info, kernel_out);
  CpuKernel* kernel = calloc(1, op->size);
  if (!kernel)
    return source->api->CreateStatus(ORT_RUNTIME_EXCEPTION, CPU_EP_NAME ": out of memory for a kernel");
  kernel->impl.ort_version_supported = CPU_EP_API_VERSION;
  kernel->impl.Compute = kernel_compute;
  kernel->impl.Release = kernel_release;
  kernel->impl.PrePackWeight = op->prepack;
  kernel->impl.SetSharedPrePackedWeight = op->set_shared;
  kernel->api = source->api;
  kernel->ep_api = source->ep_api;
  kernel->op = op;
  kernel->op_type = source->row->op_type;
  OrtStatus* status = copy_node_name(kernel, info);
  if (!status) status = kernel->api->KernelInfo_GetInputCount(info, &kernel->input_count);
  if (!status) status = kernel->api->KernelInfo_GetOutputCount(info, &kernel->output_count);
  if (!status && op->init) status = op->init(kernel, info);
  if (status) {
    kernel_release(&kernel->impl);
    return status;
  }
  *kernel_out = &kernel->impl;
  return NULL;
}

/* ---- Registration ---- */

static OrtStatus* add_constraint(const OrtEpApi* ep_api, OrtKernelDefBuilder* builder,
                                 const TypeConstraint* constraint) {
  const OrtDataType* types[CPU_TYPE_COUNT];
  size_t count = 0;
  for (int type = 0; type < CPU_TYPE_COUNT; type++) {
    if (!(constraint->types & 1u << type)) continue;
    OrtStatus* status = ep_api->GetTensorDataType((ONNXTensorElementDataType)type, &types[count++]);
    if (status) return status;
  }
  return ep_api->KernelDefBuilder_AddTypeConstraint(builder, constraint->parameter, types, count);
}

static OrtStatus* add_memory(const OrtEpApi* ep_api, OrtKernelDefBuilder* builder, Memory memory) {
  static const int inputs[] = {0, 1};
  static const int outputs[] = {0, 0};
  switch (memory) {
    case REUSES_0:
      return ep_api->KernelDefBuilder_AddInputOutputMutableAliases(builder, inputs, outputs, 1);
    case REUSES_0_OR_1:
      return ep_api->KernelDefBuilder_AddInputOutputMutableAliases(builder, inputs, outputs, 2);
    case SHARES_0:
      return ep_api->KernelDefBuilder_AddInputOutputAliases(builder, inputs, outputs, 1);
    default:
      return NULL;
  }
}

/* *gives* the kernel definition (caller releases with ReleaseKernelDef). */
static OrtStatus* build_definition(const OrtEpApi* ep_api, const CpuKernelRow* row,
                                   OrtKernelDef** definition) {
  OrtKernelDefBuilder* builder = NULL;
  OrtStatus* status = ep_api->CreateKernelDefBuilder(&builder);
  if (status) return status;
  status = ep_api->KernelDefBuilder_SetOperatorType(builder, row->op_type);
  if (!status) status = ep_api->KernelDefBuilder_SetDomain(builder, "");
  if (!status)
    status = ep_api->KernelDefBuilder_SetSinceVersion(builder, row->first_version, row->last_version);
  if (!status) status = ep_api->KernelDefBuilder_SetExecutionProvider(builder, CPU_EP_NAME);
  for (int i = 0; i < MAX_CONSTRAINTS && row->constraints[i].parameter && !status; i++)
    status = add_constraint(ep_api, builder, &row->constraints[i]);
  if (!status) status = add_memory(ep_api, builder, row->memory);
  if (!status) status = ep_api->KernelDefBuilder_Build(builder, definition);
  ep_api->ReleaseKernelDefBuilder(builder);
  return status;
}

void cpu_fill_sources(const OrtApi* api, const OrtEpApi* ep_api, CpuKernelSource* sources) {
  for (size_t i = 0; i < cpu_kernel_row_count(); i++) sources[i] = (CpuKernelSource){api, ep_api, &rows[i]};
}

OrtStatus* cpu_create_registry(const OrtEpApi* ep_api, CpuKernelSource* sources,
                               OrtKernelRegistry** registry_out) {
  OrtKernelRegistry* registry = NULL;
  OrtStatus* status = ep_api->CreateKernelRegistry(&registry);
  for (size_t i = 0; i < cpu_kernel_row_count() && !status; i++) {
    OrtKernelDef* definition = NULL;
    status = build_definition(ep_api, &rows[i], &definition);
    if (!status) status = ep_api->KernelRegistry_AddKernel(registry, definition, create_kernel, &sources[i]);
    ep_api->ReleaseKernelDef(definition); /* the registry has copied it */
  }
  if (status) {
    ep_api->ReleaseKernelRegistry(registry);
    return status;
  }
  *registry_out = registry;
  return NULL;
}
