/* Operators of a provider's own: OrtCustomOps that say what the class declares. The kernels behind them are
 * the provider's; operators without one are there to be compiled. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

typedef struct PyCustomOp {
  OrtCustomOp base; /* first: the host's pointer is ours */
  const BridgeHost* host;
  const char* ep_name; /* the factory's */
  uint64_t factory_id;
  size_t index; /* among the class's operators */
  char *name, *domain;
  int first, last; /* versions */
  size_t num_inputs, num_outputs;
  BridgeFormal* formals; /* inputs, then outputs */
} PyCustomOp;

struct BridgeCustomOps {
  size_t count, num_domains;
  PyCustomOp* ops[BRIDGE_MAX_CUSTOM_OPS];
  OrtCustomOpDomain* domains[BRIDGE_MAX_CUSTOM_OPS];
};

static const PyCustomOp* of(const OrtCustomOp* op) {
  return (const PyCustomOp*)op;
}

/* ---- What a host asks ---- */

static const char* op_get_name(const OrtCustomOp* op) {
  return of(op)->name;
}

static const char* op_get_ep(const OrtCustomOp* op) {
  return of(op)->ep_name;
}

static size_t op_get_input_count(const OrtCustomOp* op) {
  return of(op)->num_inputs;
}

static size_t op_get_output_count(const OrtCustomOp* op) {
  return of(op)->num_outputs;
}

static const BridgeFormal* input_at(const OrtCustomOp* op, size_t index) {
  static const BridgeFormal none;
  return index < of(op)->num_inputs ? &of(op)->formals[index] : &none;
}

static const BridgeFormal* output_at(const OrtCustomOp* op, size_t index) {
  static const BridgeFormal none;
  return index < of(op)->num_outputs ? &of(op)->formals[of(op)->num_inputs + index] : &none;
}

static ONNXTensorElementDataType op_get_input_type(const OrtCustomOp* op, size_t index) {
  return (ONNXTensorElementDataType)input_at(op, index)->dtype;
}

static ONNXTensorElementDataType op_get_output_type(const OrtCustomOp* op, size_t index) {
  return (ONNXTensorElementDataType)output_at(op, index)->dtype;
}

static OrtCustomOpInputOutputCharacteristic op_get_input_kind(const OrtCustomOp* op, size_t index) {
  return (OrtCustomOpInputOutputCharacteristic)input_at(op, index)->kind;
}

static OrtCustomOpInputOutputCharacteristic op_get_output_kind(const OrtCustomOp* op, size_t index) {
  return (OrtCustomOpInputOutputCharacteristic)output_at(op, index)->kind;
}

static OrtMemType op_get_input_memory(const OrtCustomOp* op, size_t index) {
  return input_at(op, index)->on_cpu ? OrtMemTypeCPUInput : OrtMemTypeDefault;
}

/* Only the last one may be variadic. */
static int op_get_input_arity(const OrtCustomOp* op) {
  return input_at(op, of(op)->num_inputs - 1)->min_arity;
}

static int op_get_input_homogeneity(const OrtCustomOp* op) {
  return input_at(op, of(op)->num_inputs - 1)->homogeneous;
}

static int op_get_output_arity(const OrtCustomOp* op) {
  return output_at(op, of(op)->num_outputs - 1)->min_arity;
}

static int op_get_output_homogeneity(const OrtCustomOp* op) {
  return output_at(op, of(op)->num_outputs - 1)->homogeneous;
}

static int op_get_start_version(const OrtCustomOp* op) {
  return of(op)->first;
}

static int op_get_end_version(const OrtCustomOp* op) {
  return of(op)->last;
}

static void op_release_pairs(int* input_index, int* output_index) {
  (void)input_index, (void)output_index; /* none were given */
}

/* borrows the context during the call. */
static OrtStatus* op_infer_shapes(const OrtCustomOp* base, OrtShapeInferContext* context) {
  const PyCustomOp* op = of(base);
  BridgeCall call = bridge_call_begin(op->host, "OrtCustomOp::InferOutputShapeFn", op->ep_name);
  if (call.entered) call.ok = bridge_py_infer_shapes(&call, op->factory_id, op->index, context);
  return bridge_call_end(&call);
}

/* ---- Kernels: those that the provider registered, for hosts that ask the operator for one ---- */

static OrtStatus* op_create_kernel(const OrtCustomOp* base, const OrtApi* api, const OrtKernelInfo* info,
                                   void** kernel) {
  const PyCustomOp* op = of(base);
  const OrtEp* ep = NULL;
  uint64_t state = 0;
  OrtKernelImpl* made = NULL;
  (void)api;
  *kernel = NULL;
  OrtStatus* status = op->host->ep_api->KernelInfo_GetEp(info, &ep);
  if (status) return status;
  BridgeCall call = bridge_call_begin(op->host, "OrtCustomOp::CreateKernelV2", op->ep_name);
  if (call.entered)
    call.ok = bridge_py_find_kernel(&call, bridge_ep_id(ep), op->domain, op->name, op->first, &state);
  status = bridge_call_end(&call);
  if (!status) status = bridge_create_kernel((void*)(uintptr_t)state, info, &made);
  if (!status) *kernel = made;
  return status;
}

static OrtStatus* op_compute(void* kernel, OrtKernelContext* context) {
  OrtKernelImpl* impl = kernel;
  return impl->Compute(impl, context);
}

static void op_destroy_kernel(void* kernel) {
  OrtKernelImpl* impl = kernel;
  if (impl) impl->Release(impl);
}

/* ---- Making and releasing ---- */

static void op_free(PyCustomOp* op) {
  if (!op) return;
  free(op->name);
  free(op->domain);
  free(op->formals);
  free(op);
}

static OrtCustomOp op_slots(uint32_t version) {
  return (OrtCustomOp){.version = version,
                       .GetName = op_get_name,
                       .GetExecutionProviderType = op_get_ep,
                       .GetInputType = op_get_input_type,
                       .GetInputTypeCount = op_get_input_count,
                       .GetOutputType = op_get_output_type,
                       .GetOutputTypeCount = op_get_output_count,
                       .KernelDestroy = op_destroy_kernel,
                       .GetInputCharacteristic = op_get_input_kind,
                       .GetOutputCharacteristic = op_get_output_kind,
                       .GetInputMemoryType = op_get_input_memory,
                       .GetVariadicInputMinArity = op_get_input_arity,
                       .GetVariadicInputHomogeneity = op_get_input_homogeneity,
                       .GetVariadicOutputMinArity = op_get_output_arity,
                       .GetVariadicOutputHomogeneity = op_get_output_homogeneity,
                       .CreateKernelV2 = op_create_kernel,
                       .KernelComputeV2 = op_compute,
                       .GetStartVersion = op_get_start_version,
                       .GetEndVersion = op_get_end_version,
                       .ReleaseMayInplace = op_release_pairs,
                       .ReleaseAliasMap = op_release_pairs};
}

/* Called by Python inside create_factory, after bridge_set_factory; copies everything. formals: inputs, then
 * outputs. last 0: no end. Returns 0 without memory, or room. */
int bridge_add_custom_op(BridgeCall* call, BridgeFactoryInfo* info, const char* domain, const char* name,
                         int first, int last, const BridgeFormal* formals, size_t num_inputs,
                         size_t num_outputs, int infers_shapes) {
  size_t num_formals = num_inputs + num_outputs;
  if (!info->custom_ops) info->custom_ops = calloc(1, sizeof *info->custom_ops);
  if (!info->custom_ops || info->custom_ops->count == BRIDGE_MAX_CUSTOM_OPS) return 0;
  PyCustomOp* op = calloc(1, sizeof *op);
  if (!op) return 0;
  *op = (PyCustomOp){.base = op_slots(call->host->version),
                     .host = call->host,
                     .ep_name = info->name,
                     .factory_id = info->id,
                     .index = info->custom_ops->count,
                     .name = bridge_copy_string(name),
                     .domain = bridge_copy_string(domain),
                     .first = first,
                     .last = last ? last : INT_MAX,
                     .num_inputs = num_inputs,
                     .num_outputs = num_outputs,
                     .formals = calloc(num_formals ? num_formals : 1, sizeof *formals)};
  if (!op->name || !op->domain || !op->formals) {
    op_free(op);
    return 0;
  }
  if (infers_shapes) op->base.InferOutputShapeFn = op_infer_shapes;
  if (num_formals) memcpy(op->formals, formals, num_formals * sizeof *formals);
  info->custom_ops->ops[info->custom_ops->count++] = op;
  return 1;
}

/* Releases the domains and their operators. */
void bridge_custom_ops_free(const BridgeHost* host, BridgeCustomOps* ops) {
  if (!ops) return;
  for (size_t i = 0; i < ops->num_domains; i++) host->api->ReleaseCustomOpDomain(ops->domains[i]);
  for (size_t i = 0; i < ops->count; i++) op_free(ops->ops[i]);
  free(ops);
}

/* ---- The factory's slots ---- */

/* Puts the operator into its domain: that of an earlier one with the same, or a new one. */
static OrtStatus* add_to_domain(const BridgeHost* host, BridgeCustomOps* ops, const size_t* domain_of,
                                size_t index) {
  if (domain_of[index] == ops->num_domains) {
    OrtStatus* status =
        host->api->CreateCustomOpDomain(ops->ops[index]->domain, &ops->domains[ops->num_domains]);
    if (status) return status;
    ops->num_domains++;
  }
  return host->api->CustomOpDomain_Add(ops->domains[domain_of[index]], &ops->ops[index]->base);
}

/* Makes the domains. After a failure there are some, which bridge_custom_ops_free releases. */
OrtStatus* bridge_custom_ops_open(const BridgeHost* host, BridgeCustomOps* ops) {
  size_t domain_of[BRIDGE_MAX_CUSTOM_OPS];
  OrtStatus* status = NULL;
  for (size_t i = 0; i < ops->count && !status; i++) {
    size_t same = 0;
    while (same < i && strcmp(ops->ops[same]->domain, ops->ops[i]->domain) != 0) same++;
    domain_of[i] = same < i ? domain_of[same] : ops->num_domains;
    status = add_to_domain(host, ops, domain_of, i);
  }
  return status;
}

static OrtStatus* factory_get_num_domains(OrtEpFactory* this_ptr, size_t* num_domains) {
  *num_domains = ((PyFactory*)this_ptr)->info.custom_ops->num_domains;
  return NULL;
}

/* borrows: valid until the factory and all of its providers are released. */
static OrtStatus* factory_get_domains(OrtEpFactory* this_ptr, OrtCustomOpDomain** domains,
                                      size_t num_domains) {
  const BridgeCustomOps* ops = ((PyFactory*)this_ptr)->info.custom_ops;
  for (size_t i = 0; i < num_domains && i < ops->num_domains; i++) domains[i] = ops->domains[i];
  return NULL;
}

void bridge_custom_ops_fill(OrtEpFactory* factory) {
  factory->GetNumCustomOpDomains = factory_get_num_domains;
  factory->GetCustomOpDomains = factory_get_domains;
}
