/* A complete execution provider in plain C, on nothing but ort_abi.h and libc.
 *
 * It claims float Add, Mul and Relu nodes, fuses neighbours into one node, compiles each fused node into a
 * list of steps and interprets that list at run time. Read it from the bottom: CreateEpFactories hands the
 * host a factory, the factory makes an EP a session, the EP claims (GetCapability) and compiles (Compile)
 * nodes, and what Compile hands over is called once a run (Compute).
 *
 * Works with hosts of API version 23 to 30: only version-23 slots are used, except where api_version is
 * asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort_abi.h"

#define EP_NAME    "SampleCExecutionProvider"
#define OLDEST_API 23
#define MAX_RANK   8
#define MAX_STEPS  16              /* nodes of one fused node */
#define MAX_VALUES (3 * MAX_STEPS) /* no step has more than two inputs and one output */

/* Leaves the function through its label `done` when the host or one of our functions reports an error. */
#define TRY(call)                  \
  do {                             \
    status = (call);               \
    if (status != NULL) goto done; \
  } while (0)

/* The struct that the host sees comes first, so that a pointer to one is a pointer to the other. */
typedef struct Factory {
  OrtEpFactory base;
  const OrtApi* api;
  const OrtEpApi* ep_api;
  uint32_t api_version; /* of the host */
} Factory;

typedef struct Ep {
  OrtEp base;
  const Factory* factory; /* lives longer than its EPs */
} Ep;

typedef enum Op { OP_ADD, OP_MUL, OP_RELU } Op;

/* One node. Values are numbered: the fused node's inputs first, then what steps produce. */
typedef struct Step {
  Op op;
  size_t inputs[2];
  size_t output;
} Step;

/* What Compile makes of one fused node. Never changed afterwards: runs on several threads share it. */
typedef struct Program {
  OrtNodeComputeInfo base;
  const Factory* factory;
  size_t step_count, input_count, value_count;
  Step steps[MAX_STEPS];
  int outputs[MAX_VALUES]; /* of each value: which output of the fused node it is, or -1 */
} Program;

/* A value during one run. */
typedef struct Tensor {
  float* data;
  size_t rank, count;
  int64_t dims[MAX_RANK];
  bool owned; /* an intermediate: freed when the run ends */
} Tensor;

/* gives: a status is made by the host, so that the host can release it. Never NULL, which would mean OK. */
static OrtStatus* fail(const Factory* factory, OrtErrorCode code, const char* message, const char* detail) {
  char text[256];
  snprintf(text, sizeof text, EP_NAME ": %s%s%s", message, detail ? ": " : "", detail ? detail : "");
  return factory->api->CreateStatus(code, text);
}

/* ---- Running a fused node ---- */

/* The shape that a and b broadcast to, NumPy's rule. False if they do not. */
static bool broadcast_shape(const Tensor* a, const Tensor* b, Tensor* out) {
  out->rank = a->rank > b->rank ? a->rank : b->rank;
  out->count = 1;
  for (size_t i = 0; i < out->rank; i++) {
    size_t from_end = out->rank - i;
    int64_t x = from_end <= a->rank ? a->dims[a->rank - from_end] : 1;
    int64_t y = from_end <= b->rank ? b->dims[b->rank - from_end] : 1;
    if (x != y && x != 1 && y != 1) return false;
    out->dims[i] = x == 1 ? y : x;
    if (out->dims[i] != 0 && out->count > SIZE_MAX / sizeof(float) / (size_t)out->dims[i]) return false;
    out->count *= (size_t)out->dims[i];
  }
  return true;
}

/* How far apart the elements of `input` are along each dimension of `shape`; 0 where it is repeated. */
static void broadcast_strides(const Tensor* input, const Tensor* shape, size_t* strides) {
  size_t stride = 1;
  for (size_t from_end = 1; from_end <= shape->rank; from_end++) {
    size_t dim = from_end <= input->rank ? (size_t)input->dims[input->rank - from_end] : 1;
    strides[shape->rank - from_end] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
}

static float apply(Op op, float a, float b) {
  return op == OP_ADD ? a + b : a * b;
}

static void compute_binary(Op op, const Tensor* a, const Tensor* b, Tensor* out) {
  if (a->count == out->count && b->count == out->count) {
    for (size_t i = 0; i < out->count; i++) out->data[i] = apply(op, a->data[i], b->data[i]);
    return;
  }
  size_t a_strides[MAX_RANK], b_strides[MAX_RANK], index[MAX_RANK] = {0}, at_a = 0, at_b = 0;
  broadcast_strides(a, out, a_strides);
  broadcast_strides(b, out, b_strides);
  for (size_t i = 0; i < out->count; i++) {
    out->data[i] = apply(op, a->data[at_a], b->data[at_b]);
    for (size_t d = out->rank; d-- > 0;) { /* the next element: like an odometer */
      at_a += a_strides[d];
      at_b += b_strides[d];
      if (++index[d] < (size_t)out->dims[d]) break;
      at_a -= a_strides[d] * index[d];
      at_b -= b_strides[d] * index[d];
      index[d] = 0;
    }
  }
}

static void compute_relu(const Tensor* x, Tensor* out) {
  for (size_t i = 0; i < out->count; i++) out->data[i] = x->data[i] < 0 ? 0 : x->data[i]; /* keeps NaN */
}

/* Type and shape of a tensor: API 24 can show them without an object to create and release. */
static OrtStatus* read_shape(const Factory* factory, const OrtValue* value, Tensor* tensor) {
  const OrtApi* api = factory->api;
  OrtStatus* status = NULL;
  OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXTensorElementDataType type;
  const int64_t* dims = tensor->dims;
  if (factory->api_version >= 24) {
    TRY(api->GetTensorElementTypeAndShapeDataReference(value, &type, &dims, &tensor->rank));
  } else {
    TRY(api->GetTensorTypeAndShape(value, &info));
    TRY(api->GetTensorElementType(info, &type));
    TRY(api->GetDimensionsCount(info, &tensor->rank));
    if (tensor->rank <= MAX_RANK) TRY(api->GetDimensions(info, tensor->dims, tensor->rank));
  }
  if (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT || tensor->rank > MAX_RANK)
    TRY(fail(factory, ORT_INVALID_ARGUMENT, "an input is not a float tensor of at most 8 dimensions", NULL));
  tensor->count = 1;
  for (size_t i = 0; i < tensor->rank; i++) {
    tensor->dims[i] = dims[i];
    tensor->count *= (size_t)dims[i];
  }
done:
  if (info != NULL) api->ReleaseTensorTypeAndShapeInfo(info);
  return status;
}

static OrtStatus* read_input(const Factory* factory, const OrtKernelContext* context, size_t index,
                             Tensor* tensor) {
  const OrtApi* api = factory->api;
  OrtStatus* status = NULL;
  const OrtValue* value = NULL;
  const void* data = NULL;
  TRY(api->KernelContext_GetInput(context, index, &value));
  TRY(read_shape(factory, value, tensor));
  TRY(api->GetTensorData(value, &data));
  tensor->data = (float*)data; /* only ever read */
done:
  return status;
}

/* Memory for a step's result: the host's if it is an output of the fused node, else ours. */
static OrtStatus* make_output(const Factory* factory, OrtKernelContext* context, int index, Tensor* tensor) {
  OrtStatus* status = NULL;
  OrtValue* value = NULL;
  void* data = NULL;
  if (index < 0) {
    tensor->data = malloc(tensor->count ? tensor->count * sizeof(float) : 1);
    if (tensor->data == NULL) return fail(factory, ORT_FAIL, "no memory for an intermediate tensor", NULL);
    tensor->owned = true;
    return NULL;
  }
  TRY(factory->api->KernelContext_GetOutput(context, (size_t)index, tensor->dims, tensor->rank, &value));
  TRY(factory->api->GetTensorMutableData(value, &data));
  tensor->data = data;
done:
  return status;
}

/* Called on any thread, several at once. */
static OrtStatus* ORT_API_CALL program_compute(OrtNodeComputeInfo* this_ptr, void* state,
                                               OrtKernelContext* context) {
  const Program* program = (const Program*)this_ptr;
  const Factory* factory = program->factory;
  OrtStatus* status = NULL;
  Tensor tensors[MAX_VALUES];
  (void)state;
  for (size_t i = 0; i < program->value_count; i++) tensors[i].owned = false;
  for (size_t i = 0; i < program->input_count; i++) TRY(read_input(factory, context, i, &tensors[i]));
  for (size_t i = 0; i < program->step_count; i++) {
    const Step* step = &program->steps[i];
    const Tensor* a = &tensors[step->inputs[0]];
    const Tensor* b = &tensors[step->inputs[1]];
    Tensor* out = &tensors[step->output];
    if (!broadcast_shape(a, b, out))
      TRY(fail(factory, ORT_INVALID_ARGUMENT, "shapes do not broadcast in",
               step->op == OP_ADD ? "Add" : "Mul"));
    TRY(make_output(factory, context, program->outputs[step->output], out));
    if (step->op == OP_RELU) {
      compute_relu(a, out);
    } else {
      compute_binary(step->op, a, b, out);
    }
  }
done:
  for (size_t i = 0; i < program->value_count; i++) {
    if (tensors[i].owned) free(tensors[i].data);
  }
  return status;
}

/* State is what one session's node needs besides the program: nothing here. */
static OrtStatus* ORT_API_CALL program_create_state(OrtNodeComputeInfo* this_ptr,
                                                    OrtNodeComputeContext* context, void** state) {
  (void)context;
  *state = this_ptr;
  return NULL;
}

static void ORT_API_CALL program_release_state(OrtNodeComputeInfo* this_ptr, void* state) {
  (void)this_ptr;
  (void)state;
}

/* ---- Claiming and compiling nodes ---- */

static OrtStatus* is_float_tensor(const OrtApi* api, const OrtValueInfo* value, bool* is_float) {
  OrtStatus* status = NULL;
  const OrtTypeInfo* type = NULL; /* borrowed from the graph */
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  *is_float = false;
  if (value == NULL) goto done;
  TRY(api->GetValueInfoTypeInfo(value, &type));
  if (type == NULL) goto done;
  TRY(api->CastTypeInfoToTensorInfo(type, &tensor));
  if (tensor == NULL) goto done;
  TRY(api->GetTensorElementType(tensor, &element));
  *is_float = element == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
done:
  return status;
}

static bool find_op(const char* op_type, const char* domain, int since_version, Op* op, size_t* input_count) {
  if (strcmp(domain, "") != 0 && strcmp(domain, "ai.onnx") != 0) return false;
  *op = strcmp(op_type, "Add") == 0 ? OP_ADD : strcmp(op_type, "Mul") == 0 ? OP_MUL : OP_RELU;
  *input_count = *op == OP_RELU ? 1 : 2;
  if (*op == OP_RELU) return strcmp(op_type, "Relu") == 0 && since_version >= 6;
  return since_version >= 7; /* before, broadcasting was an attribute */
}

/* Says whether we run `node`, and if so as what and on which values (input, input, output; borrowed). */
static OrtStatus* read_node(const OrtApi* api, const OrtNode* node, bool* ours, Op* op,
                            const OrtValueInfo** values) {
  OrtStatus* status = NULL;
  const char *op_type = NULL, *domain = NULL;
  int since_version = 0;
  size_t input_count = 0, output_count = 0, expected = 0;
  bool all_float = true;
  *ours = false;
  TRY(api->Node_GetOperatorType(node, &op_type));
  TRY(api->Node_GetDomain(node, &domain));
  TRY(api->Node_GetSinceVersion(node, &since_version));
  TRY(api->Node_GetNumInputs(node, &input_count));
  TRY(api->Node_GetNumOutputs(node, &output_count));
  if (!find_op(op_type, domain, since_version, op, &expected)) goto done;
  if (input_count != expected || output_count != 1) goto done;
  TRY(api->Node_GetInputs(node, values, input_count));
  if (input_count == 1) values[1] = values[0];
  TRY(api->Node_GetOutputs(node, &values[2], 1));
  for (size_t i = 0; i < 3 && all_float; i++) TRY(is_float_tensor(api, values[i], &all_float));
  *ours = all_float;
done:
  return status;
}

/* Fuses nodes that follow each other: nodes come in topological order, so nothing can lie between them. */
static OrtStatus* ORT_API_CALL ep_get_capability(OrtEp* this_ptr, const OrtGraph* graph,
                                                 OrtEpGraphSupportInfo* support) {
  const Factory* factory = ((const Ep*)this_ptr)->factory;
  const OrtApi* api = factory->api;
  OrtStatus* status = NULL;
  const OrtNode** nodes = NULL;   /* borrowed; the array is ours */
  size_t node_count = 0, run = 0; /* `run`: how many nodes before node i are ours and not yet claimed */
  TRY(api->Graph_GetNumNodes(graph, &node_count));
  if (node_count == 0) goto done;
  nodes = calloc(node_count, sizeof *nodes);
  if (nodes == NULL) TRY(fail(factory, ORT_FAIL, "no memory for the list of nodes", NULL));
  TRY(api->Graph_GetNodes(graph, nodes, node_count));
  for (size_t i = 0; i <= node_count; i++) {
    bool ours = false;
    Op op;
    const OrtValueInfo* values[3];
    if (i < node_count) TRY(read_node(api, nodes[i], &ours, &op, values));
    if (run > 0 && (!ours || run == MAX_STEPS)) {
      TRY(factory->ep_api->EpGraphSupportInfo_AddNodesToFuse(support, &nodes[i - run], run, NULL));
      run = 0;
    }
    if (ours) run++;
  }
done:
  free(nodes);
  return status;
}

/* The number of the value called `name`, or `count` if there is none. */
static size_t find_value(const char* const* names, size_t count, const char* name) {
  size_t i = 0;
  while (i < count && strcmp(names[i], name) != 0) i++;
  return i;
}

static OrtStatus* compile_inputs(const OrtApi* api, const OrtNode* fused_node, const char** names,
                                 Program* program) {
  OrtStatus* status = NULL;
  const OrtValueInfo* inputs[MAX_VALUES];
  TRY(api->Node_GetNumInputs(fused_node, &program->input_count));
  if (program->input_count > 2 * MAX_STEPS)
    TRY(fail(program->factory, ORT_FAIL, "a fused node has more inputs than its nodes", NULL));
  TRY(api->Node_GetInputs(fused_node, inputs, program->input_count));
  for (size_t i = 0; i < program->input_count; i++) TRY(api->GetValueInfoName(inputs[i], &names[i]));
  program->value_count = program->input_count;
done:
  return status;
}

static OrtStatus* compile_steps(const OrtApi* api, const OrtGraph* graph, const char** names,
                                Program* program) {
  OrtStatus* status = NULL;
  const OrtNode* nodes[MAX_STEPS];
  TRY(api->Graph_GetNumNodes(graph, &program->step_count));
  if (program->step_count > MAX_STEPS)
    TRY(fail(program->factory, ORT_FAIL, "a fused node has more nodes than were claimed", NULL));
  TRY(api->Graph_GetNodes(graph, nodes, program->step_count));
  for (size_t i = 0; i < program->step_count; i++) {
    Step* step = &program->steps[i];
    bool ours = false;
    const OrtValueInfo* values[3];
    TRY(read_node(api, nodes[i], &ours, &step->op, values));
    if (!ours) TRY(fail(program->factory, ORT_FAIL, "asked to compile a node that was not claimed", NULL));
    const char* name = NULL;
    for (size_t k = 0; k < 2; k++) {
      TRY(api->GetValueInfoName(values[k], &name));
      step->inputs[k] = find_value(names, program->value_count, name);
      if (step->inputs[k] == program->value_count)
        TRY(fail(program->factory, ORT_FAIL, "nothing makes", name));
    }
    TRY(api->GetValueInfoName(values[2], &name));
    names[program->value_count] = name;
    step->output = program->value_count++;
  }
done:
  return status;
}

static OrtStatus* compile_outputs(const OrtApi* api, const OrtNode* fused_node, const char** names,
                                  Program* program) {
  OrtStatus* status = NULL;
  const OrtValueInfo* outputs[MAX_STEPS];
  size_t count = 0;
  for (size_t i = 0; i < MAX_VALUES; i++) program->outputs[i] = -1;
  TRY(api->Node_GetNumOutputs(fused_node, &count));
  if (count > MAX_STEPS) TRY(fail(program->factory, ORT_FAIL, "a fused node has too many outputs", NULL));
  TRY(api->Node_GetOutputs(fused_node, outputs, count));
  for (size_t i = 0; i < count; i++) {
    const char* name = NULL;
    TRY(api->GetValueInfoName(outputs[i], &name));
    size_t number = find_value(names, program->value_count, name);
    if (number == program->value_count) TRY(fail(program->factory, ORT_FAIL, "nothing makes", name));
    program->outputs[number] = (int)i;
  }
done:
  return status;
}

/* gives (caller releases with free): the program of one fused node. */
static OrtStatus* compile_program(const Factory* factory, const OrtGraph* graph, const OrtNode* fused_node,
                                  OrtNodeComputeInfo** info) {
  OrtStatus* status = NULL;
  const char* names[MAX_VALUES]; /* of the values, borrowed from the graph */
  Program* program = calloc(1, sizeof *program);
  if (program == NULL) TRY(fail(factory, ORT_FAIL, "no memory for a program", NULL));
  program->factory = factory;
  program->base.ort_version_supported = factory->api_version;
  program->base.CreateState = program_create_state;
  program->base.Compute = program_compute;
  program->base.ReleaseState = program_release_state;
  TRY(compile_inputs(factory->api, fused_node, names, program));
  TRY(compile_steps(factory->api, graph, names, program));
  TRY(compile_outputs(factory->api, fused_node, names, program));
  *info = &program->base;
  program = NULL;
done:
  free(program);
  return status;
}

static void ORT_API_CALL ep_release_compute_infos(OrtEp* this_ptr, OrtNodeComputeInfo** infos, size_t count) {
  (void)this_ptr;
  for (size_t i = 0; i < count; i++) free(infos[i]);
}

/* gives one compute info a graph (the host releases them with ReleaseNodeComputeInfos), or none on failure.
 */
static OrtStatus* ORT_API_CALL ep_compile(OrtEp* this_ptr, const OrtGraph** graphs,
                                          const OrtNode** fused_nodes, size_t count,
                                          OrtNodeComputeInfo** infos, OrtNode** ep_context_nodes) {
  OrtStatus* status = NULL;
  size_t done_count = 0;
  (void)ep_context_nodes; /* we have no compiled form to save */
  for (; done_count < count; done_count++)
    TRY(compile_program(((const Ep*)this_ptr)->factory, graphs[done_count], fused_nodes[done_count],
                        &infos[done_count]));
done:
  for (size_t i = 0; status != NULL && i < done_count; i++) {
    free(infos[i]);
    infos[i] = NULL;
  }
  return status;
}

static const char* ORT_API_CALL ep_get_name(const OrtEp* this_ptr) {
  (void)this_ptr;
  return EP_NAME;
}

static OrtStatus* ORT_API_CALL ep_is_concurrent_run_supported(OrtEp* this_ptr, bool* is_supported) {
  (void)this_ptr;
  *is_supported = true;
  return NULL;
}

/* ---- The factory ---- */

static const char* ORT_API_CALL factory_get_name(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return EP_NAME;
}

static const char* ORT_API_CALL factory_get_vendor(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "ort-abi samples";
}

static uint32_t ORT_API_CALL factory_get_vendor_id(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return 0; /* a PCI vendor id; 0: no hardware vendor */
}

static const char* ORT_API_CALL factory_get_version(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "1.0.0"; /* must be a semantic version */
}

/* gives one EP device a CPU (the host releases them). */
static OrtStatus* ORT_API_CALL factory_get_supported_devices(OrtEpFactory* this_ptr,
                                                             const OrtHardwareDevice* const* devices,
                                                             size_t num_devices, OrtEpDevice** ep_devices,
                                                             size_t max_ep_devices, size_t* num_ep_devices) {
  const Factory* factory = (const Factory*)this_ptr;
  OrtStatus* status = NULL;
  size_t count = 0;
  *num_ep_devices = 0;
  for (size_t i = 0; i < num_devices && count < max_ep_devices; i++) {
    if (factory->api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
    TRY(factory->ep_api->CreateEpDevice(this_ptr, devices[i], NULL, NULL, &ep_devices[count]));
    count++;
  }
  *num_ep_devices = count;
  count = 0;
done:
  while (count > 0) { /* after a failure nothing is handed over */
    factory->ep_api->ReleaseEpDevice(ep_devices[--count]);
    ep_devices[count] = NULL;
  }
  return status;
}

/* gives an EP (the host releases it with ReleaseEp). Called once a session. */
static OrtStatus* ORT_API_CALL factory_create_ep(OrtEpFactory* this_ptr,
                                                 const OrtHardwareDevice* const* devices,
                                                 const OrtKeyValuePairs* const* metadata, size_t num_devices,
                                                 const OrtSessionOptions* session_options,
                                                 const OrtLogger* logger, OrtEp** ep) {
  const Factory* factory = (const Factory*)this_ptr;
  (void)devices;
  (void)metadata;
  (void)num_devices;
  (void)session_options;
  (void)logger;
  Ep* made = calloc(1, sizeof *made); /* what is left NULL is optional */
  if (made == NULL) return fail(factory, ORT_FAIL, "no memory for an EP", NULL);
  made->factory = factory;
  made->base.ort_version_supported = factory->api_version;
  made->base.GetName = ep_get_name;
  made->base.GetCapability = ep_get_capability;
  made->base.Compile = ep_compile;
  made->base.ReleaseNodeComputeInfos = ep_release_compute_infos;
  made->base.IsConcurrentRunSupported = ep_is_concurrent_run_supported;
  *ep = &made->base;
  return NULL;
}

static void ORT_API_CALL factory_release_ep(OrtEpFactory* this_ptr, OrtEp* ep) {
  (void)this_ptr;
  free(ep);
}

/* Our tensors live in the CPU's memory, so the slots below have nothing to do. Hosts call them unchecked. */

static OrtStatus* ORT_API_CALL factory_create_allocator(OrtEpFactory* this_ptr,
                                                        const OrtMemoryInfo* memory_info,
                                                        const OrtKeyValuePairs* options,
                                                        OrtAllocator** allocator) {
  (void)this_ptr;
  (void)memory_info;
  (void)options;
  *allocator = NULL; /* use the CPU's */
  return NULL;
}

static void ORT_API_CALL factory_release_allocator(OrtEpFactory* this_ptr, OrtAllocator* allocator) {
  (void)this_ptr;
  (void)allocator;
}

static OrtStatus* ORT_API_CALL factory_create_data_transfer(OrtEpFactory* this_ptr,
                                                            OrtDataTransferImpl** data_transfer) {
  (void)this_ptr;
  *data_transfer = NULL;
  return NULL;
}

static bool ORT_API_CALL factory_is_stream_aware(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return false;
}

static OrtStatus* ORT_API_CALL factory_create_sync_stream(OrtEpFactory* this_ptr,
                                                          const OrtMemoryDevice* device,
                                                          const OrtKeyValuePairs* options,
                                                          OrtSyncStreamImpl** stream) {
  (void)device;
  (void)options;
  *stream = NULL;
  return fail((const Factory*)this_ptr, ORT_NOT_IMPLEMENTED, "this EP has no streams", NULL);
}

static OrtStatus* ORT_API_CALL factory_select_best_model(OrtEpFactory* this_ptr,
                                                         const OrtHardwareDevice* device,
                                                         const OrtKeyValuePairs* const* candidates,
                                                         size_t count, const OrtSessionOptions* options,
                                                         size_t* selected) {
  (void)device;
  (void)candidates;
  (void)options;
  if (count == 0) return fail((const Factory*)this_ptr, ORT_INVALID_ARGUMENT, "no model candidates", NULL);
  *selected = 0;
  return NULL;
}

static void factory_fill(Factory* factory) {
  OrtEpFactory* base = &factory->base;
  base->ort_version_supported = factory->api_version;
  base->GetName = factory_get_name;
  base->GetVendor = factory_get_vendor;
  base->GetVendorId = factory_get_vendor_id;
  base->GetVersion = factory_get_version;
  base->GetSupportedDevices = factory_get_supported_devices;
  base->CreateEp = factory_create_ep;
  base->ReleaseEp = factory_release_ep;
  base->CreateAllocator = factory_create_allocator;
  base->ReleaseAllocator = factory_release_allocator;
  base->CreateDataTransfer = factory_create_data_transfer;
  base->IsStreamAware = factory_is_stream_aware;
  base->CreateSyncStreamForDevice = factory_create_sync_stream;
  base->SelectBestModelCandidate = factory_select_best_model;
}

/* ---- What the library exports ---- */

/* gives one factory (the host releases it with ReleaseEpFactory). */
OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* api_base,
                                          const OrtLogger* default_logger, OrtEpFactory** factories,
                                          size_t max_factories, size_t* num_factories) {
  (void)registered_name;
  (void)default_logger;
  uint32_t version = ORT_API_VERSION;
  const OrtApi* api = api_base->GetApi(version);
  while (api == NULL && version > OLDEST_API) api = api_base->GetApi(--version);
  if (api == NULL) /* every host has version 1, and with it a way to say no */
    return api_base->GetApi(1)->CreateStatus(ORT_FAIL, EP_NAME ": the host is older than API version 23");
  if (max_factories == 0) return api->CreateStatus(ORT_INVALID_ARGUMENT, EP_NAME ": no place for a factory");
  Factory* factory = calloc(1, sizeof *factory);
  if (factory == NULL) return api->CreateStatus(ORT_FAIL, EP_NAME ": no memory for the factory");
  factory->api = api;
  factory->ep_api = api->GetEpApi();
  factory->api_version = version;
  factory_fill(factory);
  factories[0] = &factory->base;
  *num_factories = 1;
  return NULL;
}

OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  free(factory);
  return NULL;
}
