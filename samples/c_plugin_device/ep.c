/* The EP: float Add, Mul and Relu, each launched on the run's stream. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define MAX_RANK    8
#define CAPTURE_API 26 /* older hosts do not know of graphs */

static const char* const op_names[OP_COUNT] = {"Add", "Mul", "Relu"};

typedef struct Ep {
  OrtEp base;
  Factory* factory;
  bool wanted[OP_COUNT]; /* the option "ops" may leave some to others */
  bool captures; /* the option "graph_capture": "all", or "shapes" when CPU nodes may be beside ours */
  OrtGraphCaptureNodeAssignmentPolicy policy;
  Capture capture;
} Ep;

/* What Compile makes of one node. Never changed afterwards: runs on several threads share it. */
typedef struct Program {
  OrtNodeComputeInfo base;
  Factory* factory;
  Capture* capture; /* of the EP */
  Op op;
  size_t inputs[2]; /* which input of the fused node each operand is */
} Program;

typedef struct Operand {
  const float* data; /* where the device reads it */
  size_t rank, count;
  int64_t dims[MAX_RANK];
} Operand;

/* ---- Running ---- */

static void run_launch(Task* task) {
  Launch* launch = (Launch*)task;
  for (size_t i = 0; i < launch->count; i++) {
    float a = launch->a[i * launch->a_step], b = launch->b[i * launch->b_step];
    launch->out[i] = launch->op == OP_ADD ? a + b : launch->op == OP_MUL ? a * b : a < 0 ? 0 : a;
  }
  free(launch);
}

OrtStatus* launch_start(const Factory* factory, const Launch* launch, Stream* stream) {
  Launch* own = malloc(sizeof *own);
  if (own == NULL) return fail(factory, ORT_FAIL, "no memory for a launch");
  *own = *launch;
  if (stream != NULL)
    stream_enqueue(stream, &own->task);
  else
    run_launch(&own->task);
  return NULL;
}

static OrtStatus* read_operand(Factory* factory, const OrtKernelContext* context, size_t index,
                               Operand* operand) {
  const OrtApi* api = factory->api;
  OrtStatus* status = NULL;
  const OrtValue* value = NULL;
  OrtTensorTypeAndShapeInfo* info = NULL;
  const void* data = NULL;
  TRY(api->KernelContext_GetInput(context, index, &value));
  TRY(api->GetTensorTypeAndShape(value, &info));
  TRY(api->GetDimensionsCount(info, &operand->rank));
  if (operand->rank > MAX_RANK) TRY(fail(factory, ORT_INVALID_ARGUMENT, "more than %d dimensions", MAX_RANK));
  TRY(api->GetDimensions(info, operand->dims, operand->rank));
  TRY(api->GetTensorShapeElementCount(info, &operand->count));
  TRY(api->GetTensorData(value, &data));
  operand->data = (const float*)memory_alias(factory, data);
  if (operand->data == NULL && operand->count != 0)
    TRY(fail(factory, ORT_EP_FAIL, "input %zu of a node is not in the device's memory", index));
done:
  if (info != NULL) api->ReleaseTensorTypeAndShapeInfo(info);
  return status;
}

/* Called on any thread, several at once. */
static OrtStatus* ORT_API_CALL program_compute(OrtNodeComputeInfo* this_ptr, void* state,
                                               OrtKernelContext* context) {
  const Program* program = (const Program*)this_ptr;
  Factory* factory = program->factory;
  const OrtApi* api = factory->api;
  OrtStatus* status = asked_to_fail(factory, "Compute");
  Operand a, b;
  OrtValue* output = NULL;
  void *out = NULL, *handle = NULL;
  (void)state;
  if (status != NULL || asked_for_nothing("Compute")) goto done;
  TRY(read_operand(factory, context, program->inputs[0], &a));
  TRY(read_operand(factory, context, program->inputs[1], &b));
  if (a.count != b.count && a.count != 1 && b.count != 1)
    TRY(fail(factory, ORT_INVALID_ARGUMENT, "%s of %zu and %zu elements: equal, or one single element",
             op_names[program->op], a.count, b.count));
  bool is_like_b = a.count == 1 ? b.count != 1 || b.rank > a.rank : b.count == a.count && b.rank > a.rank;
  const Operand* shape = is_like_b ? &b : &a;
  TRY(api->KernelContext_GetOutput(context, 0, shape->dims, shape->rank, &output));
  if (shape->count == 0) goto done;
  TRY(api->GetTensorMutableData(output, &out));
  TRY(api->KernelContext_GetGPUComputeStream(context, &handle));
  Launch launch = {
      {run_launch, NULL}, program->op, (float*)memory_alias(factory, out), a.data, b.data, shape->count,
      a.count != 1,       b.count != 1};
  if (launch.out == NULL)
    TRY(fail(factory, ORT_EP_FAIL, "the output of a node is not in the device's memory"));
  bool is_recorded = false;
  TRY(capture_launch(program->capture, &launch, handle, &is_recorded));
  if (is_recorded) goto done;
  control.launches++;
  TRY(launch_start(factory, &launch, handle));
done:
  if (status != NULL) capture_abort(program->capture);
  return status;
}

static OrtStatus* ORT_API_CALL program_create_state(OrtNodeComputeInfo* this_ptr,
                                                    OrtNodeComputeContext* context, void** state) {
  (void)context;
  OrtStatus* status = asked_to_fail(((Program*)this_ptr)->factory, "CreateState");
  if (status != NULL) return status;
  *state = this_ptr;
  return NULL;
}

static void ORT_API_CALL program_release_state(OrtNodeComputeInfo* this_ptr, void* state) {
  (void)this_ptr;
  (void)state;
}

/* ---- Claiming and compiling ---- */

static OrtStatus* is_float_tensor(const OrtApi* api, const OrtValueInfo* value, bool* is_float) {
  OrtStatus* status = NULL;
  const OrtTypeInfo* type = NULL; /* borrowed from the graph */
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  *is_float = false;
  TRY(api->GetValueInfoTypeInfo(value, &type));
  if (type != NULL) TRY(api->CastTypeInfoToTensorInfo(type, &tensor));
  if (tensor != NULL) TRY(api->GetTensorElementType(tensor, &element));
  *is_float = element == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
done:
  return status;
}

/* The op that `node` is for us, or OP_COUNT. */
static OrtStatus* find_op(const Ep* ep, const OrtNode* node, Op* op) {
  const OrtApi* api = ep->factory->api;
  OrtStatus* status = NULL;
  const char *op_type = NULL, *domain = NULL;
  const OrtValueInfo* output = NULL;
  int since_version = 0;
  size_t output_count = 0;
  *op = OP_COUNT;
  TRY(api->Node_GetOperatorType(node, &op_type));
  TRY(api->Node_GetDomain(node, &domain));
  TRY(api->Node_GetSinceVersion(node, &since_version));
  TRY(api->Node_GetNumOutputs(node, &output_count));
  if (domain[0] != '\0' || output_count != 1) goto done;
  TRY(api->Node_GetOutputs(node, &output, 1));
  bool is_float = false;
  TRY(is_float_tensor(api, output, &is_float));
  for (int i = 0; i < OP_COUNT && is_float; i++) {
    if (ep->wanted[i] && strcmp(op_type, op_names[i]) == 0 && since_version >= (i == OP_RELU ? 6 : 7))
      *op = (Op)i;
  }
done:
  return status;
}

static OrtStatus* ORT_API_CALL ep_get_capability(OrtEp* this_ptr, const OrtGraph* graph,
                                                 OrtEpGraphSupportInfo* support) {
  const Ep* ep = (const Ep*)this_ptr;
  const OrtApi* api = ep->factory->api;
  OrtStatus* status = asked_to_fail(ep->factory, "GetCapability");
  const OrtNode** nodes = NULL; /* borrowed; the array is ours */
  size_t count = 0;
  if (status != NULL) return status;
  TRY(api->Graph_GetNumNodes(graph, &count));
  if (count == 0) goto done;
  nodes = calloc(count, sizeof *nodes);
  if (nodes == NULL) TRY(fail(ep->factory, ORT_FAIL, "no memory for the list of nodes"));
  TRY(api->Graph_GetNodes(graph, nodes, count));
  for (size_t i = 0; i < count; i++) {
    Op op;
    TRY(find_op(ep, nodes[i], &op));
    if (op != OP_COUNT)
      TRY(ep->factory->ep_api->EpGraphSupportInfo_AddNodesToFuse(support, &nodes[i], 1, NULL));
  }
done:
  free(nodes);
  return status;
}

/* Which input of the fused node has the name of the node's input `operand`. */
static OrtStatus* find_input(const Factory* factory, const OrtNode* fused_node, const OrtValueInfo* operand,
                             size_t* index) {
  const OrtApi* api = factory->api;
  OrtStatus* status = NULL;
  const OrtValueInfo* inputs[2] = {NULL, NULL};
  const char *wanted = NULL, *name = NULL;
  size_t count = 0;
  TRY(api->GetValueInfoName(operand, &wanted));
  TRY(api->Node_GetNumInputs(fused_node, &count));
  if (count > 2) TRY(fail(factory, ORT_FAIL, "a fused node of one node has %zu inputs", count));
  TRY(api->Node_GetInputs(fused_node, inputs, count));
  for (*index = 0; *index < count; ++*index) {
    TRY(api->GetValueInfoName(inputs[*index], &name));
    if (strcmp(name, wanted) == 0) goto done;
  }
  status = fail(factory, ORT_FAIL, "the fused node lacks the input '%s'", wanted);
done:
  return status;
}

static OrtStatus* compile_program(Ep* ep, const OrtGraph* graph, const OrtNode* fused_node,
                                  OrtNodeComputeInfo** out) {
  const OrtApi* api = ep->factory->api;
  OrtStatus* status = NULL;
  const OrtNode* node = NULL;
  const OrtValueInfo* operands[2] = {NULL, NULL};
  size_t count = 0;
  Program* program = calloc(1, sizeof *program);
  if (program == NULL) TRY(fail(ep->factory, ORT_FAIL, "no memory for a program"));
  TRY(api->Graph_GetNumNodes(graph, &count));
  if (count != 1) TRY(fail(ep->factory, ORT_FAIL, "asked to compile %zu nodes, one was claimed", count));
  TRY(api->Graph_GetNodes(graph, &node, 1));
  TRY(find_op(ep, node, &program->op));
  TRY(api->Node_GetNumInputs(node, &count));
  if (count < 1 || count > 2) TRY(fail(ep->factory, ORT_FAIL, "a node with %zu inputs", count));
  TRY(api->Node_GetInputs(node, operands, count));
  for (size_t i = 0; i < 2; i++)
    TRY(find_input(ep->factory, fused_node, operands[i < count ? i : 0], &program->inputs[i]));
  program->factory = ep->factory;
  program->capture = &ep->capture;
  program->base.ort_version_supported = ep->factory->api_version;
  program->base.CreateState = program_create_state;
  program->base.Compute = program_compute;
  program->base.ReleaseState = program_release_state;
  control.live_objects++;
  *out = &program->base;
  program = NULL;
done:
  free(program);
  return status;
}

static void ORT_API_CALL ep_release_compute_infos(OrtEp* this_ptr, OrtNodeComputeInfo** infos, size_t count) {
  (void)this_ptr;
  for (size_t i = 0; i < count; i++) {
    if (infos[i] != NULL) control.live_objects--;
    free(infos[i]);
    infos[i] = NULL;
  }
}

static OrtStatus* ORT_API_CALL ep_compile(OrtEp* this_ptr, const OrtGraph** graphs,
                                          const OrtNode** fused_nodes, size_t count,
                                          OrtNodeComputeInfo** infos, OrtNode** ep_context_nodes) {
  Ep* ep = (Ep*)this_ptr;
  OrtStatus* status = asked_to_fail(ep->factory, "Compile");
  (void)ep_context_nodes; /* we have no compiled form to save */
  if (asked_for_nothing("Compile")) return NULL;
  for (size_t i = 0; i < count && status == NULL; i++)
    status = compile_program(ep, graphs[i], fused_nodes[i], &infos[i]);
  if (status != NULL) ep_release_compute_infos(this_ptr, infos, count);
  return status;
}

/* ---- The EP's other callbacks ---- */

static const char* ORT_API_CALL ep_get_name(const OrtEp* this_ptr) {
  return ((const Ep*)this_ptr)->factory->name;
}

/* Which graph the run is, from its options; -1: none. */
static int graph_of_run(const Ep* ep, const OrtRunOptions* run_options) {
  if (!ep->captures) return -1;
  const char* text = ep->factory->api->GetRunConfigEntry(run_options, "gpu_graph_id");
  return text != NULL ? atoi(text) : 0;
}

static OrtStatus* ORT_API_CALL ep_on_run_start(OrtEp* this_ptr, const OrtRunOptions* run_options) {
  Ep* ep = (Ep*)this_ptr;
  OrtStatus* status = asked_to_fail(ep->factory, "OnRunStart");
  int id = graph_of_run(ep, run_options);
  control.run_starts++;
  return status == NULL && id >= 0 ? capture_begin(&ep->capture, id) : status;
}

static OrtStatus* ORT_API_CALL ep_on_run_end(OrtEp* this_ptr, const OrtRunOptions* run_options,
                                             bool sync_stream) {
  Ep* ep = (Ep*)this_ptr;
  (void)run_options;
  (void)sync_stream;
  OrtStatus* status = asked_to_fail(ep->factory, "OnRunEnd");
  if (status != NULL) capture_abort(&ep->capture);
  OrtStatus* end_status = capture_end(&ep->capture);
  return status != NULL ? status : end_status;
}

/* ---- Graphs (API 26) ---- */

static bool ORT_API_CALL ep_is_graph_capture_enabled(const OrtEp* this_ptr) {
  return ((const Ep*)this_ptr)->captures;
}

static bool ORT_API_CALL ep_is_graph_captured(const OrtEp* this_ptr, int graph_annotation_id) {
  return capture_has(&((const Ep*)this_ptr)->capture, graph_annotation_id);
}

static OrtStatus* ORT_API_CALL ep_replay_graph(OrtEp* this_ptr, int graph_annotation_id) {
  Ep* ep = (Ep*)this_ptr;
  OrtStatus* status = asked_to_fail(ep->factory, "ReplayGraph");
  return status != NULL ? status : capture_replay(&ep->capture, graph_annotation_id);
}

static OrtGraphCaptureNodeAssignmentPolicy ORT_API_CALL ep_get_graph_policy(const OrtEp* this_ptr) {
  return ((const Ep*)this_ptr)->policy;
}

static OrtStatus* ORT_API_CALL ep_release_captured_graph(OrtEp* this_ptr, int graph_annotation_id) {
  Ep* ep = (Ep*)this_ptr;
  OrtStatus* status = asked_to_fail(ep->factory, "ReleaseCapturedGraph");
  if (status != NULL) return status;
  if (!capture_has(&ep->capture, graph_annotation_id))
    return fail(ep->factory, ORT_INVALID_ARGUMENT, "there is no graph %d", graph_annotation_id);
  capture_drop(&ep->capture, graph_annotation_id);
  return NULL;
}

/* ---- Memory and streams ---- */

/* borrows: the host copies what is in it. NULL: no kernels. */
static OrtStatus* ORT_API_CALL ep_get_kernel_registry(OrtEp* this_ptr, const OrtKernelRegistry** out) {
  *out = ((const Ep*)this_ptr)->factory->kernels;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_create_allocator(OrtEp* this_ptr, const OrtMemoryInfo* info,
                                                   OrtAllocator** allocator) {
  return memory_create_allocator(((Ep*)this_ptr)->factory, info, allocator);
}

static OrtStatus* ORT_API_CALL ep_create_sync_stream(OrtEp* this_ptr, const OrtMemoryDevice* device,
                                                     OrtSyncStreamImpl** stream) {
  (void)device;
  return stream_create(((Ep*)this_ptr)->factory, stream);
}

static OrtStatus* ORT_API_CALL ep_is_concurrent_run_supported(OrtEp* this_ptr, bool* is_supported) {
  *is_supported = !((Ep*)this_ptr)->captures; /* one run at a time is recorded */
  return NULL;
}

/* Everything asked of the device so far is done when this returns (API 25). */
static OrtStatus* ORT_API_CALL ep_sync(OrtEp* this_ptr) {
  Factory* factory = ((Ep*)this_ptr)->factory;
  control.syncs++;
  flush_all_streams(factory);
  return asked_to_fail(factory, "Sync");
}

/* borrows: of the two memories of the device, tensors go to this one (API 27). */
static OrtStatus* ORT_API_CALL ep_get_default_memory_device(const OrtEp* this_ptr,
                                                            const OrtMemoryDevice** device) {
  const Factory* factory = ((const Ep*)this_ptr)->factory;
  *device = factory->ep_api->MemoryInfo_GetMemoryDevice(factory->device_info);
  return NULL;
}

/* Reads an option of the EP; "" without it. */
static OrtStatus* read_option(const Factory* factory, const OrtSessionOptions* options, const char* name,
                              char* value, size_t size) {
  const OrtApi* api = factory->api;
  OrtStatus* status = NULL;
  char key[128];
  int is_set = 0;
  snprintf(key, sizeof key, "ep.%s.%s", factory->name, name);
  for (char* c = key; *c != '\0'; c++) *c = (char)tolower((unsigned char)*c);
  value[0] = '\0';
  TRY(api->HasSessionConfigEntry(options, key, &is_set));
  if (is_set) TRY(api->GetSessionConfigEntry(options, key, value, &size));
done:
  return status;
}

/* "ops": the ops to claim, as in "Add,Mul"; without it, all. "graph_capture": see Ep. */
static OrtStatus* read_options(Ep* ep, const OrtSessionOptions* options) {
  OrtStatus* status = NULL;
  char value[128];
  TRY(read_option(ep->factory, options, "ops", value, sizeof value));
  for (int i = 0; i < OP_COUNT; i++) ep->wanted[i] = value[0] == '\0' || strstr(value, op_names[i]) != NULL;
  TRY(read_option(ep->factory, options, "graph_capture", value, sizeof value));
  ep->captures = value[0] != '\0' && ep->factory->api_version >= CAPTURE_API;
  ep->policy = strcmp(value, "shapes") == 0 ? OrtGraphCaptureNodeAssignmentPolicy_ALLOW_CPU_FOR_SHAPES
                                            : OrtGraphCaptureNodeAssignmentPolicy_ALL_NODES_ON_EP;
done:
  return status;
}

OrtStatus* ep_create(Factory* factory, const OrtSessionOptions* options, OrtEp** out) {
  OrtStatus* status = asked_to_fail(factory, "CreateEp");
  *out = NULL;
  if (status != NULL || asked_for_nothing("CreateEp")) return status;
  Ep* ep = calloc(1, sizeof *ep); /* what is left NULL is optional */
  if (ep == NULL) TRY(fail(factory, ORT_FAIL, "no memory for an EP"));
  ep->factory = factory;
  ep->capture.factory = factory;
  TRY(read_options(ep, options));
  ep->base.ort_version_supported = factory->api_version;
  ep->base.GetName = ep_get_name;
  ep->base.GetCapability = ep_get_capability;
  ep->base.Compile = ep_compile;
  ep->base.ReleaseNodeComputeInfos = ep_release_compute_infos;
  ep->base.OnRunStart = ep_on_run_start;
  ep->base.OnRunEnd = ep_on_run_end;
  ep->base.CreateAllocator = ep_create_allocator;
  ep->base.CreateSyncStreamForDevice = ep_create_sync_stream;
  ep->base.IsConcurrentRunSupported = ep_is_concurrent_run_supported;
  ep->base.GetKernelRegistry = ep_get_kernel_registry;
  ep->base.Sync = ep_sync;
  ep->base.GetDefaultMemoryDevice = ep_get_default_memory_device;
  ep->base.IsGraphCaptureEnabled = ep_is_graph_capture_enabled;
  ep->base.IsGraphCaptured = ep_is_graph_captured;
  ep->base.ReplayGraph = ep_replay_graph;
  ep->base.GetGraphCaptureNodeAssignmentPolicy = ep_get_graph_policy;
  ep->base.ReleaseCapturedGraph = ep_release_captured_graph;
  control.live_objects++;
  *out = &ep->base;
  ep = NULL;
done:
  free(ep);
  return status;
}

void ep_release(OrtEp* ep) {
  if (ep == NULL) return;
  capture_close(&((Ep*)ep)->capture);
  control.live_objects--;
  free(ep);
}
