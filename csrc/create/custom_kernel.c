/* Kernels of custom operators: OrtCustomOps as kernels of the EP that they name, beside the EP's own. */
#include <limits.h>
#include <string.h>

#include "api_slots.h"
#include "create/create.h"
#include "infer/infer.h"

/* ---- One kernel ---- */

typedef struct CustomKernel {
  OrtKernelImpl base; /* first */
  const OrtCustomOp* op;
  void* kernel; /* the operator's */
} CustomKernel;

static bool has_create_v2(const OrtCustomOp* op) {
  return custom_op_version(op) >= 16 && op->CreateKernelV2 != NULL;
}

static bool has_compute_v2(const OrtCustomOp* op) {
  return custom_op_version(op) >= 16 && op->KernelComputeV2 != NULL;
}

/* A placeholder has no kernel: its nodes are for an EP to compile. */
static bool is_placeholder(const OrtCustomOp* op) {
  return (op->CreateKernel == NULL && !has_create_v2(op)) ||
         (op->KernelCompute == NULL && !has_compute_v2(op));
}

static OrtStatus* ORT_API_CALL kernel_compute(OrtKernelImpl* base, OrtKernelContext* context) {
  CustomKernel* kernel = (CustomKernel*)base;
  if (has_compute_v2(kernel->op))
    return call_OrtCustomOp_KernelComputeV2(kernel->op, kernel->kernel, context);
  OrtStatus* thrown = NULL;
  call_OrtCustomOp_KernelCompute(kernel->op, kernel->kernel, context, &thrown);
  return thrown;
}

static void ORT_API_CALL kernel_release(OrtKernelImpl* base) {
  CustomKernel* kernel = (CustomKernel*)base;
  if (kernel->op->KernelDestroy != NULL) call_OrtCustomOp_KernelDestroy(kernel->op, kernel->kernel, NULL);
  mem_free(kernel);
}

/* An OrtKernelCreateFunc; `state` is the OrtCustomOp. */
static OrtStatus* ORT_API_CALL kernel_create(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  const OrtCustomOp* op = state;
  const OrtApi* api = OrtGetApiBase()->GetApi(custom_op_version(op));
  CustomKernel* kernel = mem_calloc(1, sizeof *kernel);
  OrtStatus* status = NULL;
  if (kernel == NULL) return status_no_memory();
  if (has_create_v2(op))
    status = call_OrtCustomOp_CreateKernelV2(op, api, info, &kernel->kernel);
  else
    kernel->kernel = call_OrtCustomOp_CreateKernel(op, api, info, &status);
  if (status == NULL && kernel->kernel == NULL)
    status =
        status_new(ORT_FAIL, "OrtCustomOp::CreateKernel%s gave no kernel", has_create_v2(op) ? "V2" : "");
  if (status != NULL) {
    mem_free(kernel);
    return status;
  }
  kernel->base.ort_version_supported = OLDEST_KERNEL_IMPL;
  kernel->base.Compute = kernel_compute;
  kernel->base.Release = kernel_release;
  kernel->op = op;
  *out = &kernel->base;
  return NULL;
}

/* ---- Its definition ---- */

/* Inputs and outputs of one type are constrained to it; those of any type are not constrained. */
static bool add_constraint(OrtKernelDef* def, const char* name, ONNXTensorElementDataType type) {
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) return true;
  char* copy = str_copy(name);
  if (copy == NULL || !ARRAY_RESERVE(def->constraints, def->constraint_capacity, def->constraint_count + 1)) {
    mem_free(copy);
    return false;
  }
  def->constraints[def->constraint_count++] = (KernelConstraint){copy, UINT64_C(1) << type};
  return true;
}

static bool add_memory_type(OrtKernelDef* def, const OrtCustomOp* op, size_t input, OrtStatus** thrown) {
  if (custom_op_version(op) < 13 || op->GetInputMemoryType == NULL) return true;
  OrtMemType type = call_OrtCustomOp_GetInputMemoryType(op, input, thrown);
  if (type == OrtMemTypeDefault) return true;
  if (!ARRAY_RESERVE(def->mem_types, def->mem_type_capacity, def->mem_type_count + 1)) return false;
  def->mem_types[def->mem_type_count++] = (KernelMemType){input, false, type};
  return true;
}

/* Outputs that the operator may write over inputs. */
static bool add_aliases(OrtKernelDef* def, const OrtCustomOp* op, OrtStatus** thrown) {
  if (custom_op_version(op) < 18 || op->GetMayInplace == NULL) return true;
  int *inputs = NULL, *outputs = NULL;
  size_t count = call_OrtCustomOp_GetMayInplace(op, &inputs, &outputs, thrown);
  bool is_good = count == 0 || ARRAY_RESERVE(def->aliases, def->alias_capacity, def->alias_count + count);
  for (size_t i = 0; is_good && i < count; i++)
    def->aliases[def->alias_count++] = (KernelAlias){inputs[i], outputs[i], true};
  if (op->ReleaseMayInplace != NULL) call_OrtCustomOp_ReleaseMayInplace(op, inputs, outputs, thrown);
  return is_good;
}

/* False when out of memory. *thrown: what a query of the operator threw. */
static bool fill_def(OrtKernelDef* def, const CustomOp* custom, const OrtCustomOp* op, const char* ep_name,
                     OrtStatus** thrown) {
  const OpSchema* schema = &custom->schema;
  def->op_type = str_copy(schema->name);
  def->domain = str_copy(schema->domain);
  def->ep_name = str_copy(ep_name);
  custom_op_versions(op, &def->since_start, &def->since_end, thrown);
  if (def->op_type == NULL || def->domain == NULL || def->ep_name == NULL) return false;
  for (size_t i = 0; i < schema->input_count; i++) {
    if (!add_constraint(def, schema->inputs[i].name, call_OrtCustomOp_GetInputType(op, i, thrown)))
      return false;
    if (!add_memory_type(def, op, i, thrown)) return false;
  }
  for (size_t i = 0; i < schema->output_count; i++) {
    if (!add_constraint(def, schema->outputs[i].name, call_OrtCustomOp_GetOutputType(op, i, thrown)))
      return false;
  }
  return add_aliases(def, op, thrown);
}

/* ---- Into the registries ---- */

/* takes `cause`, gives it with the operator in front. */
static OrtStatus* custom_failure(OrtStatus* cause, const CustomOp* custom) {
  return status_wrap(cause, "custom operator '%s' of domain '%s'", custom->schema.name,
                     custom->schema.domain[0] != '\0' ? custom->schema.domain : "ai.onnx");
}

/* borrows: the EP whose kernel the operator is. */
static const char* ep_of(const OrtSession* session, const OrtCustomOp* op, OrtStatus** thrown) {
  const char* name =
      op->GetExecutionProviderType != NULL ? call_OrtCustomOp_GetExecutionProviderType(op, thrown) : NULL;
  if (name != NULL && name[0] != '\0') return name;
  const OrtEpDevice* cpu = env_cpu_device(session->env);
  return cpu != NULL ? cpu->ep_name : "";
}

static OrtStatus* add_kernel(SessionEp* ep, const CustomOp* custom, const OrtCustomOp* op) {
  if (ep->registry == NULL) {
    ep->registry = mem_calloc(1, sizeof *ep->registry);
    if (ep->registry == NULL) return status_no_memory();
  }
  OrtKernelDef* def = mem_calloc(1, sizeof *def);
  if (def == NULL) return status_no_memory();
  atomic_init(&def->references, 1);
  OrtStatus* thrown = NULL;
  bool is_good = fill_def(def, custom, op, ep->name, &thrown) && thrown == NULL &&
                 kernel_registry_add(ep->registry, def, kernel_create, (void*)(uintptr_t)op);
  kernel_def_release(def);
  if (thrown != NULL) return custom_failure(thrown, custom);
  return is_good ? NULL : status_no_memory();
}

static OrtStatus* add_kernels(OrtSession* session, const CustomOp* custom) {
  for (size_t i = 0; i < custom->count; i++) {
    const OrtCustomOp* op = custom->ops[i];
    OrtStatus* thrown = NULL;
    const char* ep_name = ep_of(session, op, &thrown);
    if (thrown != NULL) return custom_failure(thrown, custom);
    for (size_t k = 0; k < session->ep_count && !is_placeholder(op); k++) {
      if (strcmp(session->eps[k].name, ep_name) == 0) TRY(add_kernel(&session->eps[k], custom, op));
    }
  }
  return NULL;
}

OrtStatus* session_add_custom_ops(OrtSession* session) {
  const OrtSessionOptions* options = session->options;
  OrtModel* model = session->model;
  if (options->custom_op_domain_count == 0) return NULL;
  TRY(model_add_custom_ops(model, options->custom_op_domains, options->custom_op_domain_count,
                           options->ep_domain_count));
  for (size_t i = 0; i < model->custom_ops.capacity; i++) {
    const NameMapEntry* entry = &model->custom_ops.entries[i];
    const CustomOp* custom = entry->name != NULL ? entry->value : NULL;
    for (; custom != NULL; custom = custom->next) TRY(add_kernels(session, custom));
  }
  return NULL;
}

void describe_custom_op(StrBuf* text, const OrtSession* session, const OrtNode* node) {
  const CustomOp* custom = node_custom_op(node);
  if (custom == NULL) return;
  const OrtCustomOp* op = custom_op_select(custom, node, NULL);
  if (op == NULL)
    strbuf_append(text, ", a custom operator that does not take such inputs");
  else if (is_placeholder(op))
    strbuf_append(text, ", a custom operator without a kernel, which EP '%s' would have to compile",
                  ep_of(session, op, NULL));
  else
    strbuf_append(text, ", a custom operator of EP '%s'", ep_of(session, op, NULL));
}
