/* An EP library that does what a test tells it (run_plugin.h): claims by name, kernels and fused nodes over
 * float Add, Mul, Relu and Identity of equal shapes, and faults. */
#include "run_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                              \
  do {                                         \
    OrtStatus* try_status = (call);            \
    if (try_status != NULL) return try_status; \
  } while (0)

#define NHWC       "com.ms.internal.nhwc"
#define MAX_NODES  32
#define MAX_VALUES 64

static RunControl control = {.fail_at = -1};
static const OrtApi* api;
static const OrtEpApi* ep_api;
static const char* const ep_names[RUN_EP_COUNT] = {"RunEp", "OtherEp"};

ORT_ABI_EXPORT RunControl* run_plugin_control(void);
ORT_ABI_EXPORT RunControl* run_plugin_control(void) {
  return &control;
}

/* Fails if it is this callback's turn. */
static OrtStatus* maybe_fail(const char* callback) {
  if (atomic_fetch_add(&control.callbacks, 1) != control.fail_at) return NULL;
  char text[128];
  snprintf(text, sizeof text, "injected into %s", callback);
  return api->CreateStatus(ORT_EP_FAIL, text);
}

/* ---- Arithmetic ---- */

typedef struct Tensor {
  const float* data;
  float* own;
  size_t count, rank;
  const int64_t* dims;
} Tensor;

static OrtStatus* read_tensor(const OrtValue* value, Tensor* out) {
  ONNXTensorElementDataType type;
  const void* data = NULL;
  TRY(api->GetTensorElementTypeAndShapeDataReference(value, &type, &out->dims, &out->rank));
  TRY(api->GetTensorData(value, &data));
  out->data = data;
  out->own = NULL;
  out->count = 1;
  for (size_t i = 0; i < out->rank; i++) out->count *= (size_t)out->dims[i];
  return NULL;
}

static float apply(const char* op, float a, float b) {
  if (strcmp(op, "Add") == 0) return a + b;
  if (strcmp(op, "Mul") == 0) return a * b;
  if (strcmp(op, "Relu") == 0) return a > 0 ? a : 0;
  return a;
}

static void compute_op(const char* op, const Tensor* a, const Tensor* b, float* out) {
  for (size_t i = 0; i < a->count; i++) out[i] = apply(op, a->data[i], b->data[b->count == 1 ? 0 : i]);
}

/* Conv and MaxPool over channels last: x [N,H,W,C], stride 1, no padding; w is [M,C,h,w] all the same. */
static void window_op(const float* x, const int64_t* dims, const float* w, const int64_t* window,
                      float* out) {
  int64_t rows = dims[1] - window[2] + 1, columns = dims[2] - window[3] + 1;
  int64_t channels = dims[3], features = w != NULL ? window[0] : channels;
  for (int64_t i = 0; i < dims[0] * rows * columns * features; i++) {
    int64_t m = i % features, column = i / features % columns, row = i / features / columns % rows;
    float sum = 0, most = -1e30f;
    for (int64_t k = 0; k < channels * window[2] * window[3]; k++) {
      int64_t c = k / (window[2] * window[3]), r = k / window[3] % window[2], s = k % window[3];
      int64_t image = i / features / columns / rows;
      float value = x[((image * dims[1] + row + r) * dims[2] + column + s) * channels + c];
      if (w != NULL) sum += value * w[m * channels * window[2] * window[3] + k];
      if (w == NULL && c == m && value > most) most = value;
    }
    out[i] = w != NULL ? sum : most;
  }
}

/* The faults of Compute; *done: there is nothing more to do. */
static OrtStatus* compute_fault(OrtKernelContext* context, const Tensor* shape, bool* done) {
  OrtValue* out = NULL;
  int64_t longer[8];
  for (size_t i = 0; i < shape->rank; i++) longer[i] = shape->dims[i] + (i == 0);
  *done = control.fault == FAULT_NO_OUTPUT;
  if (control.fault == FAULT_STATUS_SAYS_OK) return api->CreateStatus(ORT_OK, "all is well, really");
  if (control.fault == FAULT_GROWS) {
    void* data = NULL;
    *done = true;
    TRY(api->KernelContext_GetOutput(context, 0, longer, shape->rank, &out));
    TRY(api->GetTensorMutableData(out, &data));
    for (size_t i = 0; i < shape->count + shape->count / (size_t)shape->dims[0]; i++) ((float*)data)[i] = 7;
  }
  if (control.fault == FAULT_SHAPE_CHANGES) {
    TRY(api->KernelContext_GetOutput(context, 0, shape->dims, shape->rank, &out));
    return api->KernelContext_GetOutput(context, 0, longer, shape->rank, &out);
  }
  return NULL;
}

static OrtStatus* start_compute(const char* callback, OrtKernelContext* context) {
  int now = atomic_fetch_add(&control.runs_now, 1) + 1;
  int most = atomic_load(&control.most_runs_at_once);
  while (now > most && !atomic_compare_exchange_weak(&control.most_runs_at_once, &most, now)) {
  }
  OrtStatus* status = maybe_fail(callback);
  if (status == NULL && control.on_compute != NULL) status = control.on_compute(context);
  return status;
}

static void end_compute(void) {
  atomic_fetch_sub(&control.runs_now, 1);
}

/* ---- Kernels ---- */

typedef struct Kernel {
  OrtKernelImpl base;
  char op[16];
} Kernel;

static OrtStatus* kernel_work(const Kernel* kernel, OrtKernelContext* context) {
  Tensor inputs[2];
  size_t count = 0;
  bool done = false;
  OrtValue* output = NULL;
  void* data = NULL;
  TRY(api->KernelContext_GetInputCount(context, &count));
  for (size_t i = 0; i < 2; i++) {
    const OrtValue* value = NULL;
    TRY(api->KernelContext_GetInput(context, i < count ? i : 0, &value));
    if (value != NULL) TRY(read_tensor(value, &inputs[i]));
    if (value == NULL) inputs[i] = inputs[0];
  }
  if (strcmp(kernel->op, "Conv") == 0 || strcmp(kernel->op, "MaxPool") == 0) {
    static const int64_t pool[] = {0, 0, 2, 2};
    bool is_conv = strcmp(kernel->op, "Conv") == 0;
    const int64_t *from = inputs[0].dims, *window = is_conv ? inputs[1].dims : pool;
    const int64_t dims[] = {from[0], from[1] - window[2] + 1, from[2] - window[3] + 1,
                            is_conv ? window[0] : from[3]};
    TRY(api->KernelContext_GetOutput(context, 0, dims, 4, &output));
    TRY(api->GetTensorMutableData(output, &data));
    window_op(inputs[0].data, from, is_conv ? inputs[1].data : NULL, window, data);
    return NULL;
  }
  TRY(compute_fault(context, &inputs[0], &done));
  if (done) return NULL;
  TRY(api->KernelContext_GetOutput(context, 0, inputs[0].dims, inputs[0].rank, &output));
  if (output == NULL) return NULL;
  TRY(api->GetTensorMutableData(output, &data));
  compute_op(kernel->op, &inputs[0], &inputs[1], data);
  return NULL;
}

static OrtStatus* ORT_API_CALL kernel_compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  OrtStatus* status = start_compute("OrtKernelImpl::Compute", context);
  if (status == NULL) status = kernel_work((const Kernel*)this_ptr, context);
  end_compute();
  return status;
}

static void ORT_API_CALL kernel_release(OrtKernelImpl* this_ptr) {
  atomic_fetch_sub(&control.kernels, 1);
  free(this_ptr);
}

static OrtStatus* ORT_API_CALL create_kernel(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  (void)state;
  TRY(maybe_fail("OrtKernelCreateFunc"));
  if (control.fault == FAULT_KERNEL_IS_NULL) return NULL;
  if (control.on_kernel_info != NULL) TRY(control.on_kernel_info(info));
  Kernel* kernel = calloc(1, sizeof *kernel);
  size_t size = sizeof kernel->op;
  OrtStatus* status = api->KernelInfo_GetOperatorType(info, kernel->op, &size);
  if (status != NULL) {
    free(kernel);
    return status;
  }
  kernel->base.ort_version_supported = 24;
  kernel->base.Compute = control.fault == FAULT_NO_KERNEL_COMPUTE ? NULL : kernel_compute;
  kernel->base.Release = kernel_release;
  atomic_fetch_add(&control.kernels, 1);
  *out = &kernel->base;
  return NULL;
}

/* ---- Fused nodes ---- */

typedef struct FusedStep {
  char op[16];
  int inputs[2], output;
} FusedStep;

typedef struct Fused {
  OrtNodeComputeInfo base;
  FusedStep steps[MAX_NODES];
  size_t step_count, input_count, value_count;
  int outputs[MAX_VALUES];      /* of a value: which output of the node, or -1 */
  Tensor constants[MAX_VALUES]; /* own copies: the host may release what the node was told to be its own */
} Fused;

static OrtStatus* fused_steps(const Fused* fused, OrtKernelContext* context, Tensor* values) {
  for (size_t i = 0; i < fused->value_count; i++) {
    const OrtValue* value = NULL;
    if (i < fused->input_count) TRY(api->KernelContext_GetInput(context, i, &value));
    if (value != NULL) TRY(read_tensor(value, &values[i]));
    if (fused->constants[i].own != NULL) {
      values[i] = fused->constants[i];
      values[i].own = NULL; /* stays the node's */
    }
  }
  for (size_t i = 0; i < fused->step_count; i++) {
    const FusedStep* step = &fused->steps[i];
    const Tensor* a = &values[step->inputs[0]];
    Tensor* out = &values[step->output];
    int index = fused->outputs[step->output];
    void* data = NULL;
    if (index >= 0) {
      bool done = false;
      OrtValue* value = NULL;
      TRY(compute_fault(context, a, &done));
      if (done) return NULL;
      TRY(api->KernelContext_GetOutput(context, (size_t)index, a->dims, a->rank, &value));
      TRY(api->GetTensorMutableData(value, &data));
    } else {
      data = out->own = malloc(a->count * sizeof(float) + 1);
    }
    out->data = data;
    out->count = a->count;
    out->rank = a->rank;
    out->dims = a->dims;
    compute_op(step->op, a, &values[step->inputs[1]], data);
  }
  return NULL;
}

static OrtStatus* ORT_API_CALL fused_compute(OrtNodeComputeInfo* this_ptr, void* state,
                                             OrtKernelContext* context) {
  Tensor values[MAX_VALUES] = {{0}};
  (void)state;
  OrtStatus* status = start_compute("OrtNodeComputeInfo::Compute", context);
  if (status == NULL) status = fused_steps((const Fused*)this_ptr, context, values);
  for (size_t i = 0; i < MAX_VALUES; i++) free(values[i].own);
  end_compute();
  return status;
}

static OrtStatus* ORT_API_CALL fused_create_state(OrtNodeComputeInfo* this_ptr,
                                                  OrtNodeComputeContext* context, void** state) {
  (void)this_ptr;
  *state = (void*)1; /* not ours to look at unless the call succeeds */
  TRY(maybe_fail("OrtNodeComputeInfo::CreateState"));
  snprintf(control.last_state_name, sizeof control.last_state_name, "%s",
           ep_api->NodeComputeContext_NodeName(context));
  *state = malloc(1);
  atomic_fetch_add(&control.states, 1);
  return NULL;
}

static void ORT_API_CALL fused_release_state(OrtNodeComputeInfo* this_ptr, void* state) {
  (void)this_ptr;
  atomic_fetch_sub(&control.states, 1);
  free(state);
}

typedef struct Names {
  const char* names[MAX_VALUES];
  size_t count;
} Names;

static int number_of(Names* names, const char* name) {
  for (size_t i = 0; i < names->count; i++) {
    if (strcmp(names->names[i], name) == 0) return (int)i;
  }
  names->names[names->count] = name;
  return (int)names->count++;
}

static OrtStatus* value_number(Names* names, const OrtValueInfo* value, int* number) {
  const char* name = NULL;
  TRY(api->GetValueInfoName(value, &name));
  *number = number_of(names, name);
  return NULL;
}

static OrtStatus* read_constant(Fused* fused, const OrtValueInfo* value, int number) {
  bool is_constant = false;
  const OrtValue* initializer = NULL;
  Tensor* copy = &fused->constants[number];
  TRY(api->ValueInfo_IsConstantInitializer(value, &is_constant));
  if (!is_constant || (size_t)number < fused->input_count || copy->own != NULL) return NULL;
  TRY(api->ValueInfo_GetInitializerValue(value, &initializer));
  TRY(read_tensor(initializer, copy));
  int64_t* own = malloc(copy->rank * sizeof *own + copy->count * sizeof(float) + 1);
  float* data = (float*)(own + copy->rank);
  for (size_t i = 0; i < copy->rank; i++) own[i] = copy->dims[i];
  for (size_t i = 0; i < copy->count; i++) data[i] = copy->data[i];
  copy->dims = own;
  copy->data = data;
  copy->own = (float*)own;
  return NULL;
}

static OrtStatus* read_step(Fused* fused, Names* names, const OrtNode* node) {
  FusedStep* step = &fused->steps[fused->step_count++];
  const char* op = NULL;
  const OrtValueInfo* values[4] = {NULL};
  size_t count = 0;
  TRY(api->Node_GetOperatorType(node, &op));
  snprintf(step->op, sizeof step->op, "%s", op);
  TRY(api->Node_GetNumInputs(node, &count));
  TRY(api->Node_GetInputs(node, values, count));
  for (size_t i = 0; i < 2; i++) {
    const OrtValueInfo* value = values[i < count ? i : 0];
    TRY(value_number(names, value, &step->inputs[i]));
    TRY(read_constant(fused, value, step->inputs[i]));
  }
  TRY(api->Node_GetOutputs(node, values, 1));
  return value_number(names, values[0], &step->output);
}

static OrtStatus* compile_one(const OrtGraph* graph, const OrtNode* node, Fused* fused) {
  Names names = {.count = 0};
  const OrtValueInfo* values[MAX_VALUES] = {NULL};
  const OrtNode* nodes[MAX_NODES] = {NULL};
  size_t count = 0;
  int number = 0;
  const char* name = NULL;
  TRY(api->Node_GetName(node, &name));
  snprintf(control.last_fused_name, sizeof control.last_fused_name, "%s", name);
  TRY(api->Node_GetNumInputs(node, &fused->input_count));
  control.last_input_count = fused->input_count;
  TRY(api->Node_GetInputs(node, values, fused->input_count));
  for (size_t i = 0; i < fused->input_count; i++) TRY(value_number(&names, values[i], &number));
  TRY(api->Graph_GetNumNodes(graph, &count));
  TRY(api->Graph_GetNodes(graph, nodes, count));
  for (size_t i = 0; i < count; i++) TRY(read_step(fused, &names, nodes[i]));
  for (size_t i = 0; i < MAX_VALUES; i++) fused->outputs[i] = -1;
  TRY(api->Node_GetNumOutputs(node, &count));
  TRY(api->Node_GetOutputs(node, values, count));
  for (size_t i = 0; i < count; i++) {
    TRY(value_number(&names, values[i], &number));
    fused->outputs[number] = (int)i;
  }
  fused->value_count = names.count;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_compile(OrtEp* this_ptr, const OrtGraph** graphs,
                                          const OrtNode** fused_nodes, size_t count,
                                          OrtNodeComputeInfo** infos, OrtNode** context_nodes) {
  (void)this_ptr;
  (void)context_nodes;
  control.compile_calls++;
  TRY(maybe_fail("OrtEp::Compile"));
  for (size_t i = 0; i < count; i++) {
    if (control.fault == FAULT_COMPILE_FORGETS && i + 1 == count) break;
    if (control.fault == FAULT_COMPILE_HALF && i == 1)
      return api->CreateStatus(ORT_EP_FAIL, "gave up half way");
    Fused* fused = calloc(1, sizeof *fused);
    fused->base.ort_version_supported = 23;
    fused->base.CreateState = fused_create_state;
    fused->base.Compute = control.fault == FAULT_NO_COMPUTE ? NULL : fused_compute;
    fused->base.ReleaseState = fused_release_state;
    infos[i] = &fused->base;
    atomic_fetch_add(&control.infos, 1);
    TRY(compile_one(graphs[i], fused_nodes[i], fused));
  }
  return NULL;
}

static void ORT_API_CALL ep_release_infos(OrtEp* this_ptr, OrtNodeComputeInfo** infos, size_t count) {
  (void)this_ptr;
  for (size_t i = 0; i < count; i++) {
    atomic_fetch_sub(&control.infos, 1);
    for (size_t k = 0; k < MAX_VALUES; k++) free(((Fused*)infos[i])->constants[k].own);
    free(infos[i]);
  }
}

/* ---- Claims ---- */

typedef struct Ep {
  OrtEp base;
  int index; /* of its factory */
  OrtKernelRegistry* registry;
  const OrtNode* foreign; /* a node of the graph that was asked about first */
} Ep;

static OrtStatus* find_node(const OrtNode* const* nodes, size_t count, const char* name,
                            const OrtNode** out) {
  *out = NULL;
  for (size_t i = 0; i < count; i++) {
    const char *found = NULL, *domain = NULL;
    TRY(api->Node_GetName(nodes[i], &found));
    TRY(api->Node_GetDomain(nodes[i], &domain));
    bool is_hidden = control.claims_no_converted && strcmp(domain, NHWC) == 0;
    if (strcmp(found, name) == 0 && !is_hidden) *out = nodes[i];
  }
  return NULL;
}

/* releases `status`; the claim was not taken. */
static void count_refusal(OrtStatus* status) {
  if (status == NULL) return;
  control.refusals++;
  api->ReleaseStatus(status);
}

static OrtStatus* make_claim(const Ep* ep, OrtEpGraphSupportInfo* support, const char* kind,
                             const OrtNode** claimed, size_t count) {
  OrtNodeFusionOptions drop = {.ort_version_supported = 23, .drop_constant_initializers = true};
  const OrtNode* none[1] = {NULL};
  if (strcmp(kind, "null") == 0)
    count_refusal(ep_api->EpGraphSupportInfo_AddNodesToFuse(support, none, 1, NULL));
  if (strcmp(kind, "empty") == 0)
    count_refusal(ep_api->EpGraphSupportInfo_AddNodesToFuse(support, none, 0, NULL));
  if (strcmp(kind, "foreign") == 0) {
    if (ep->foreign == NULL) return NULL; /* the first graph has no other to take from */
    claimed[count++] = ep->foreign;
    return ep_api->EpGraphSupportInfo_AddNodesToFuse(support, claimed, count, NULL);
  }
  if (count == 0) return NULL;
  if (strcmp(kind, "single") == 0) return ep_api->EpGraphSupportInfo_AddSingleNode(support, claimed[0]);
  if (strcmp(kind, "twice") == 0) claimed[count++] = claimed[0];
  bool drops = strcmp(kind, "drop") == 0;
  return ep_api->EpGraphSupportInfo_AddNodesToFuse(support, claimed, count, drops ? &drop : NULL);
}

static OrtStatus* claim_all(const Ep* ep, OrtEpGraphSupportInfo* support, const OrtNode* const* nodes,
                            size_t node_count) {
  char text[512], *rest = NULL;
  snprintf(text, sizeof text, "%s", control.claims[ep->index] != NULL ? control.claims[ep->index] : "");
  for (char* claim = strtok_r(text, ";", &rest); claim != NULL; claim = strtok_r(NULL, ";", &rest)) {
    const OrtNode* claimed[MAX_NODES + 2];
    size_t count = 0;
    char* words = NULL;
    const char* kind = strtok_r(claim, " ", &words);
    for (const char* name; kind != NULL && (name = strtok_r(NULL, " ", &words)) != NULL;) {
      TRY(find_node(nodes, node_count, name, &claimed[count]));
      if (claimed[count] != NULL) count++;
    }
    if (kind != NULL) TRY(make_claim(ep, support, kind, claimed, count));
  }
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_get_capability(OrtEp* this_ptr, const OrtGraph* graph,
                                                 OrtEpGraphSupportInfo* support) {
  Ep* ep = (Ep*)this_ptr;
  const OrtNode* nodes[MAX_NODES];
  const OrtNode* probe = NULL;
  size_t count = 0;
  TRY(maybe_fail("OrtEp::GetCapability"));
  TRY(api->Graph_GetNumNodes(graph, &count));
  TRY(api->Graph_GetNodes(graph, nodes, count));
  TRY(find_node(nodes, count, "probe", &probe));
  const char* ep_name = NULL;
  if (probe != NULL) TRY(api->Node_GetEpName(probe, &ep_name));
  if (ep->index == 1)
    snprintf(control.seen_ep_name, sizeof control.seen_ep_name, "%s", ep_name ? ep_name : "");
  TRY(claim_all(ep, support, nodes, count));
  if (ep->foreign == NULL && count != 0) ep->foreign = nodes[0];
  return NULL;
}

/* ---- The EP ---- */

static const char* ORT_API_CALL ep_get_name(const OrtEp* this_ptr) {
  return control.fault == FAULT_NAME_IS_NULL ? NULL : ep_names[((const Ep*)this_ptr)->index];
}

typedef struct KernelRow {
  const char *op, *domain;
  int first, last;
  bool is_typed, is_in_place;
} KernelRow;

static const KernelRow kernel_rows[] = {
    {"Add", "", 7, 14, true, true},         {"Mul", "", 7, 14, true, true},
    {"Relu", "ai.onnx", 6, 14, true, true}, {"Identity", "", 1, 25, false, false},
    {"LeakyRelu", "", 6, 16, true, false},  {"Probe", "test", 1, 1, false, false},
    {"Conv", NHWC, 1, 22, true, false},     {"MaxPool", NHWC, 1, 22, true, false},
};

static OrtStatus* define_kernel(OrtKernelDefBuilder* builder, const KernelRow* row, int index) {
  const OrtDataType* types[1];
  const char* parameter = control.fault == FAULT_UNKNOWN_CONSTRAINT ? "Q" : "T";
  TRY(ep_api->KernelDefBuilder_SetOperatorType(builder, row->op));
  TRY(ep_api->KernelDefBuilder_SetDomain(builder, row->domain));
  TRY(ep_api->KernelDefBuilder_SetSinceVersion(builder, row->first, row->last));
  TRY(ep_api->KernelDefBuilder_SetExecutionProvider(builder, ep_names[index]));
  TRY(ep_api->GetTensorDataType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &types[0]));
  if (row->is_typed) TRY(ep_api->KernelDefBuilder_AddTypeConstraint(builder, parameter, types, 1));
  if (!row->is_in_place) return NULL;
  return ep_api->KernelDefBuilder_AddInputOutputMutableAliases(builder, &(int){0}, &(int){0}, 1);
}

static OrtStatus* add_kernel(Ep* ep, const KernelRow* row) {
  OrtKernelDefBuilder* builder = NULL;
  OrtKernelDef* def = NULL;
  OrtStatus* status = ep_api->CreateKernelDefBuilder(&builder);
  if (status == NULL) status = define_kernel(builder, row, ep->index);
  if (status == NULL) status = ep_api->KernelDefBuilder_Build(builder, &def);
  if (status == NULL) status = ep_api->KernelRegistry_AddKernel(ep->registry, def, create_kernel, ep);
  ep_api->ReleaseKernelDefBuilder(builder);
  ep_api->ReleaseKernelDef(def);
  return status;
}

static OrtStatus* ORT_API_CALL ep_get_kernel_registry(OrtEp* this_ptr, const OrtKernelRegistry** out) {
  Ep* ep = (Ep*)this_ptr;
  TRY(maybe_fail("OrtEp::GetKernelRegistry"));
  if (ep->registry == NULL) {
    TRY(ep_api->CreateKernelRegistry(&ep->registry));
    for (size_t i = 0; i < sizeof kernel_rows / sizeof kernel_rows[0]; i++)
      TRY(add_kernel(ep, &kernel_rows[i]));
  }
  *out = ep->registry;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_preferred_layout(OrtEp* this_ptr, OrtEpDataLayout* layout) {
  (void)this_ptr;
  TRY(maybe_fail("OrtEp::GetPreferredDataLayout"));
  *layout = (OrtEpDataLayout)control.layout;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_should_convert(OrtEp* this_ptr, const char* domain, const char* op,
                                                 OrtEpDataLayout target, int* answer) {
  (void)this_ptr;
  TRY(maybe_fail("OrtEp::ShouldConvertDataLayoutForOp"));
  if (domain[0] != '\0' || target != OrtEpDataLayout_NHWC)
    return api->CreateStatus(ORT_FAIL, "asked about another domain or layout");
  *answer = -1;
  if (control.refused_op != NULL && strcmp(op, control.refused_op) == 0) *answer = 0;
  if (control.wanted_op != NULL && strcmp(op, control.wanted_op) == 0) *answer = 1;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_is_concurrent(OrtEp* this_ptr, bool* is_supported) {
  (void)this_ptr;
  TRY(maybe_fail("OrtEp::IsConcurrentRunSupported"));
  *is_supported = control.fault != FAULT_NOT_CONCURRENT;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_on_run_start(OrtEp* this_ptr, const OrtRunOptions* options) {
  (void)this_ptr;
  TRY(maybe_fail("OrtEp::OnRunStart"));
  if (options == NULL) return api->CreateStatus(ORT_FAIL, "run options are NULL");
  atomic_fetch_add(&control.run_starts, 1);
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_on_run_end(OrtEp* this_ptr, const OrtRunOptions* options,
                                             bool sync_stream) {
  (void)this_ptr;
  (void)options;
  (void)sync_stream;
  atomic_fetch_add(&control.run_ends, 1);
  return maybe_fail("OrtEp::OnRunEnd");
}

static OrtStatus* ORT_API_CALL ep_on_initialization_end(OrtEp* this_ptr) {
  (void)this_ptr;
  return maybe_fail("OrtEp::OnSessionInitializationEnd");
}

static OrtStatus* ORT_API_CALL ep_set_dynamic_options(OrtEp* this_ptr, const char* const* keys,
                                                      const char* const* values, size_t count) {
  (void)this_ptr;
  TRY(maybe_fail("OrtEp::SetDynamicOptions"));
  if (count != 0)
    snprintf(control.dynamic_option, sizeof control.dynamic_option, "%s=%s", keys[0], values[0]);
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_get_available_resource(const OrtEp* this_ptr, OrtResourceCount* available) {
  (void)this_ptr;
  TRY(maybe_fail("OrtEp::GetAvailableResource"));
  available->kind = control.budget != NULL ? OrtResourceCountKind_TotalBytes : OrtResourceCountKind_None;
  if (control.budget != NULL) available->value.total_bytes = *control.budget;
  return NULL;
}

/* ---- Factories ---- */

typedef struct Factory {
  OrtEpFactory base;
  int index;
} Factory;

static OrtStatus* ORT_API_CALL create_ep(OrtEpFactory* this_ptr, const OrtHardwareDevice* const* devices,
                                         const OrtKeyValuePairs* const* metadata, size_t count,
                                         const OrtSessionOptions* options, const OrtLogger* logger,
                                         OrtEp** out) {
  (void)devices;
  (void)metadata;
  (void)options;
  (void)logger;
  TRY(maybe_fail("OrtEpFactory::CreateEp"));
  if (count != 1) return api->CreateStatus(ORT_FAIL, "one device was expected");
  if (control.fault == FAULT_EP_IS_NULL) return NULL;
  Ep* ep = calloc(1, sizeof *ep);
  ep->index = ((const Factory*)this_ptr)->index;
  ep->base.ort_version_supported = control.fault == FAULT_OLD_EP ? 23 : ORT_API_VERSION;
  ep->base.GetName = control.fault == FAULT_NO_GET_NAME ? NULL : ep_get_name;
  ep->base.GetCapability = ep_get_capability;
  ep->base.Compile = control.fault == FAULT_NO_COMPILE ? NULL : ep_compile;
  ep->base.ReleaseNodeComputeInfos = control.fault == FAULT_NO_RELEASE_INFOS ? NULL : ep_release_infos;
  ep->base.GetKernelRegistry = ep_get_kernel_registry;
  ep->base.IsConcurrentRunSupported = ep_is_concurrent;
  ep->base.GetPreferredDataLayout = control.has_layout ? ep_preferred_layout : NULL;
  ep->base.ShouldConvertDataLayoutForOp = control.has_layout ? ep_should_convert : NULL;
  ep->base.OnSessionInitializationEnd = ep_on_initialization_end;
  ep->base.SetDynamicOptions = ep_set_dynamic_options;
  ep->base.GetAvailableResource = ep_get_available_resource;
  if (control.has_run_hooks) {
    ep->base.OnRunStart = ep_on_run_start;
    ep->base.OnRunEnd = ep_on_run_end;
  }
  atomic_fetch_add(&control.eps, 1);
  *out = &ep->base;
  return NULL;
}

static void ORT_API_CALL release_ep(OrtEpFactory* this_ptr, OrtEp* ep) {
  (void)this_ptr;
  ep_api->ReleaseKernelRegistry(((Ep*)ep)->registry);
  atomic_fetch_sub(&control.eps, 1);
  free(ep);
}

static const char* ORT_API_CALL factory_name(const OrtEpFactory* this_ptr) {
  return ep_names[((const Factory*)this_ptr)->index];
}

static const char* ORT_API_CALL factory_vendor(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "tests";
}

static const char* ORT_API_CALL factory_version(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "1.0.0";
}

static uint32_t ORT_API_CALL factory_vendor_id(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return 0;
}

static OrtStatus* ORT_API_CALL get_supported_devices(OrtEpFactory* this_ptr,
                                                     const OrtHardwareDevice* const* devices,
                                                     size_t num_devices, OrtEpDevice** ep_devices,
                                                     size_t max_ep_devices, size_t* num_ep_devices) {
  *num_ep_devices = 0;
  for (size_t i = 0; i < num_devices && *num_ep_devices < max_ep_devices && *num_ep_devices == 0; i++) {
    if (api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
    TRY(ep_api->CreateEpDevice(this_ptr, devices[i], NULL, NULL, &ep_devices[(*num_ep_devices)++]));
  }
  return NULL;
}

ORT_ABI_EXPORT OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* base,
                                                         const OrtLogger* logger, OrtEpFactory** factories,
                                                         size_t max_factories, size_t* num_factories) {
  static Factory all[RUN_EP_COUNT];
  (void)registered_name;
  (void)logger;
  (void)max_factories;
  api = base->GetApi(ORT_API_VERSION);
  ep_api = api->GetEpApi();
  for (int i = 0; i < RUN_EP_COUNT; i++) {
    all[i] = (Factory){.base = {.ort_version_supported = 24,
                                .GetName = factory_name,
                                .GetVendor = factory_vendor,
                                .GetSupportedDevices = get_supported_devices,
                                .CreateEp = create_ep,
                                .ReleaseEp = release_ep,
                                .GetVendorId = factory_vendor_id,
                                .GetVersion = factory_version},
                       .index = i};
    factories[i] = &all[i].base;
  }
  *num_factories = RUN_EP_COUNT;
  return NULL;
}

ORT_ABI_EXPORT OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  (void)factory;
  return NULL;
}
