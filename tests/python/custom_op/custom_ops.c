/* A library of custom operators, and an EP that brings some along: both for any host. Nothing here is shared
 * between hosts: operators get the host's table with each kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort_abi.h"

#define EP_NAME    "CustomOpsExecutionProvider"
#define OP_VERSION 22
#define FLOAT      ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
#define INT64      ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64
#define ANY        ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED
#define REQUIRED   INPUT_OUTPUT_REQUIRED
#define OPTIONAL   INPUT_OUTPUT_OPTIONAL
#define VARIADIC   INPUT_OUTPUT_VARIADIC

#define TRY(call)                      \
  do {                                 \
    OrtStatus* failed = (call);        \
    if (failed != NULL) return failed; \
  } while (0)

/* ---- Operators ---- */

typedef struct Op {
  OrtCustomOp base; /* first */
  const char *name, *ep_name;
  ONNXTensorElementDataType inputs[2], output;
  OrtCustomOpInputOutputCharacteristic last_input;
  size_t input_count;
} Op;

typedef struct Kernel {
  const OrtApi* api;
  const Op* op;
} Kernel;

static const char* ORT_API_CALL get_name(const OrtCustomOp* op) {
  return ((const Op*)op)->name;
}
static const char* ORT_API_CALL get_ep(const OrtCustomOp* op) {
  return ((const Op*)op)->ep_name;
}
static ONNXTensorElementDataType ORT_API_CALL get_input_type(const OrtCustomOp* op, size_t index) {
  return ((const Op*)op)->inputs[index];
}
static size_t ORT_API_CALL get_input_count(const OrtCustomOp* op) {
  return ((const Op*)op)->input_count;
}
static ONNXTensorElementDataType ORT_API_CALL get_output_type(const OrtCustomOp* op, size_t index) {
  (void)index;
  return ((const Op*)op)->output;
}
static size_t ORT_API_CALL get_output_count(const OrtCustomOp* op) {
  (void)op;
  return 1;
}
static OrtCustomOpInputOutputCharacteristic ORT_API_CALL get_input_kind(const OrtCustomOp* base,
                                                                        size_t index) {
  const Op* op = (const Op*)base;
  return index + 1 == op->input_count ? op->last_input : REQUIRED;
}
static OrtCustomOpInputOutputCharacteristic ORT_API_CALL get_output_kind(const OrtCustomOp* op,
                                                                         size_t index) {
  (void)op, (void)index;
  return REQUIRED;
}
static OrtMemType ORT_API_CALL get_memory_type(const OrtCustomOp* op, size_t index) {
  (void)op, (void)index;
  return OrtMemTypeDefault;
}
static int ORT_API_CALL one(const OrtCustomOp* op) {
  (void)op;
  return 1;
}

static int ORT_API_CALL two(const OrtCustomOp* op) {
  (void)op;
  return 2;
}
static int ORT_API_CALL five(const OrtCustomOp* op) {
  (void)op;
  return 5;
}

static void* ORT_API_CALL create_kernel(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info) {
  (void)info;
  Kernel* kernel = malloc(sizeof *kernel);
  if (kernel != NULL) *kernel = (Kernel){api, (const Op*)op};
  return kernel;
}
static void ORT_API_CALL destroy_kernel(void* kernel) {
  free(kernel);
}

/* The type, size and shape of an input; not there: *data is NULL. */
static OrtStatus* read_input(const OrtApi* api, const OrtKernelContext* context, size_t index,
                             ONNXTensorElementDataType* type, const void** data, size_t* bytes, size_t* rank,
                             int64_t* dims) {
  const OrtValue* value = NULL;
  OrtTensorTypeAndShapeInfo* info = NULL;
  *data = NULL;
  TRY(api->KernelContext_GetInput(context, index, &value));
  if (value == NULL) return NULL;
  TRY(api->GetTensorData(value, data));
  TRY(api->GetTensorSizeInBytes(value, bytes));
  TRY(api->GetTensorTypeAndShape(value, &info));
  TRY(api->GetTensorElementType(info, type));
  TRY(api->GetDimensionsCount(info, rank));
  TRY(api->GetDimensions(info, dims, *rank));
  api->ReleaseTensorTypeAndShapeInfo(info);
  return NULL;
}

/* output = the sum of the inputs; one input: twice that, or a copy for an operator of any type. */
static OrtStatus* compute(const Kernel* kernel, OrtKernelContext* context) {
  const OrtApi* api = kernel->api;
  ONNXTensorElementDataType type;
  const void* data = NULL;
  void* out = NULL;
  OrtValue* output = NULL;
  size_t bytes = 0, rank = 0, count = 0;
  int64_t dims[8];
  TRY(api->KernelContext_GetInputCount(context, &count));
  for (size_t i = 0; i < count; i++) {
    TRY(read_input(api, context, i, &type, &data, &bytes, &rank, dims));
    if (data == NULL) continue;
    if (i == 0) {
      TRY(api->KernelContext_GetOutput(context, 0, dims, rank, &output));
      TRY(api->GetTensorMutableData(output, &out));
      memcpy(out, data, bytes);
    }
    bool doubles = count == 1 && kernel->op->output != ANY;
    for (size_t k = 0; type == FLOAT && (i != 0 || doubles) && k < bytes / sizeof(float); k++)
      ((float*)out)[k] += ((const float*)data)[k];
    for (size_t k = 0; type == INT64 && (i != 0 || doubles) && k < bytes / sizeof(int64_t); k++)
      ((int64_t*)out)[k] += ((const int64_t*)data)[k];
  }
  return NULL;
}

static void ORT_API_CALL compute_v1(void* kernel, OrtKernelContext* context) {
  OrtStatus* status = compute(kernel, context);
  if (status != NULL) ((Kernel*)kernel)->api->ReleaseStatus(status);
}
static OrtStatus* ORT_API_CALL compute_v2(void* kernel, OrtKernelContext* context) {
  return compute(kernel, context);
}
/* output = the element type that the operator is declared for */
static OrtStatus* ORT_API_CALL compute_kind(void* base, OrtKernelContext* context) {
  const Kernel* kernel = base;
  OrtValue* output = NULL;
  void* out = NULL;
  TRY(kernel->api->KernelContext_GetOutput(context, 0, NULL, 0, &output));
  TRY(kernel->api->GetTensorMutableData(output, &out));
  *(int64_t*)out = (int64_t)kernel->op->inputs[0];
  return NULL;
}
static OrtStatus* ORT_API_CALL compute_fails(void* kernel, OrtKernelContext* context) {
  (void)context;
  return ((Kernel*)kernel)->api->CreateStatus(ORT_EP_FAIL, "today it does not want to");
}
static OrtStatus* ORT_API_CALL create_kernel_v2(const OrtCustomOp* op, const OrtApi* api,
                                                const OrtKernelInfo* info, void** kernel) {
  *kernel = create_kernel(op, api, info);
  return *kernel != NULL ? NULL : api->CreateStatus(ORT_FAIL, "no memory");
}
static OrtStatus* ORT_API_CALL create_kernel_fails(const OrtCustomOp* op, const OrtApi* api,
                                                   const OrtKernelInfo* info, void** kernel) {
  (void)op, (void)info, (void)kernel;
  return api->CreateStatus(ORT_NOT_IMPLEMENTED, "it was never made");
}

static const OrtApi* shape_api; /* of the host that used the library last: InferOutputShapeFn gets no table */

/* The output has one dimension, the attribute n. */
static OrtStatus* ORT_API_CALL infer_shape(const OrtCustomOp* op, OrtShapeInferContext* context) {
  (void)op;
  size_t count = 0, length = 0;
  OrtTensorTypeAndShapeInfo *input = NULL, *output = NULL;
  const OrtOpAttr* attribute = NULL;
  int64_t n = 0;
  ONNXTensorElementDataType type;
  TRY(shape_api->ShapeInferContext_GetInputCount(context, &count));
  if (count != 1) return shape_api->CreateStatus(ORT_FAIL, "there should be one input");
  TRY(shape_api->ShapeInferContext_GetInputTypeShape(context, 0, &input));
  TRY(shape_api->GetTensorElementType(input, &type));
  if (type != FLOAT) return shape_api->CreateStatus(ORT_FAIL, "the input should be of floats");
  TRY(shape_api->ShapeInferContext_GetAttribute(context, "n", &attribute));
  TRY(shape_api->ReadOpAttr(attribute, ORT_OP_ATTR_INT, &n, sizeof n, &length));
  if (n < 0) return shape_api->CreateStatus(ORT_INVALID_ARGUMENT, "n is negative");
  TRY(shape_api->CreateTensorTypeAndShapeInfo(&output));
  TRY(shape_api->SetTensorElementType(output, FLOAT));
  TRY(shape_api->SetDimensions(output, &n, 1));
  TRY(shape_api->ShapeInferContext_SetOutputTypeShape(context, 0, output));
  shape_api->ReleaseTensorTypeAndShapeInfo(output);
  return NULL;
}

#define BASE(struct_version)                                                                              \
  .version = (struct_version), .GetName = get_name, .GetExecutionProviderType = get_ep,                   \
  .GetInputType = get_input_type, .GetInputTypeCount = get_input_count, .GetOutputType = get_output_type, \
  .GetOutputTypeCount = get_output_count, .GetInputCharacteristic = get_input_kind,                       \
  .GetOutputCharacteristic = get_output_kind, .GetInputMemoryType = get_memory_type,                      \
  .GetVariadicInputMinArity = one, .GetVariadicInputHomogeneity = one, .GetVariadicOutputMinArity = one,  \
  .GetVariadicOutputHomogeneity = one, .KernelDestroy = destroy_kernel
#define V1 .CreateKernel = create_kernel, .KernelCompute = compute_v1
#define V2 V1, .CreateKernelV2 = create_kernel_v2, .KernelComputeV2 = compute_v2

static const Op ops[] = {
    {{BASE(14), V1}, "Twice", NULL, {FLOAT}, FLOAT, REQUIRED, 1},
    {{BASE(OP_VERSION), V2}, "Twice", NULL, {INT64}, INT64, REQUIRED, 1},
    {{BASE(OP_VERSION), V1, .KernelComputeV2 = compute_kind}, "Kind", NULL, {FLOAT}, INT64, REQUIRED, 1},
    {{BASE(OP_VERSION), V1, .KernelComputeV2 = compute_kind}, "Kind", NULL, {INT64}, INT64, REQUIRED, 1},
    {{BASE(OP_VERSION), V2}, "Same", NULL, {ANY}, ANY, REQUIRED, 1},
    {{BASE(OP_VERSION), V2}, "Sum", NULL, {FLOAT}, FLOAT, VARIADIC, 1},
    {{BASE(OP_VERSION), V2}, "Biased", NULL, {FLOAT, FLOAT}, FLOAT, OPTIONAL, 2},
    {{BASE(OP_VERSION), V2, .InferOutputShapeFn = infer_shape}, "Shaped", NULL, {FLOAT}, FLOAT, REQUIRED, 1},
    {{BASE(OP_VERSION), V1, .KernelComputeV2 = compute_fails}, "Fails", NULL, {FLOAT}, FLOAT, REQUIRED, 1},
    {{BASE(OP_VERSION), V1, .CreateKernelV2 = create_kernel_fails},
     "Unmade",
     NULL,
     {FLOAT},
     FLOAT,
     REQUIRED,
     1},
    {{BASE(OP_VERSION), V2, .GetStartVersion = two, .GetEndVersion = five},
     "Later",
     NULL,
     {FLOAT},
     FLOAT,
     REQUIRED,
     1},
    {{BASE(OP_VERSION), V2}, "Elsewhere", "NobodysExecutionProvider", {FLOAT}, FLOAT, REQUIRED, 1},
};
static const Op ep_ops[] = {
    {{BASE(OP_VERSION), V2}, "EpTwice", EP_NAME, {FLOAT}, FLOAT, REQUIRED, 1},
    {{BASE(OP_VERSION)}, "Placeholder", EP_NAME, {FLOAT}, FLOAT, REQUIRED, 1},
};

static OrtStatus* make_domain(const OrtApi* api, const char* name, const Op* its_ops, size_t count,
                              OrtCustomOpDomain** domain) {
  shape_api = api;
  TRY(api->CreateCustomOpDomain(name, domain));
  for (size_t i = 0; i < count; i++) TRY(api->CustomOpDomain_Add(*domain, &its_ops[i].base));
  return NULL;
}

/* Domains that were given to options, to be released when the library is unloaded. */
static struct {
  const OrtApi* api;
  OrtCustomOpDomain* domain;
} given[64];
static size_t given_count;

__attribute__((destructor)) static void release_given(void) {
  for (size_t i = 0; i < given_count; i++) given[i].api->ReleaseCustomOpDomain(given[i].domain);
}

ORT_ABI_EXPORT OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base);
OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  const OrtApi* api = base->GetApi(OP_VERSION);
  OrtCustomOpDomain* domain = NULL;
  if (getenv("CUSTOM_OPS_FAIL") != NULL) return api->CreateStatus(ORT_FAIL, "not today");
  TRY(make_domain(api, "test.ops", ops, sizeof ops / sizeof *ops, &domain));
  if (given_count < sizeof given / sizeof *given) {
    given[given_count].api = api;
    given[given_count++].domain = domain;
  }
  return api->AddCustomOpDomain(options, domain);
}

/* ---- The EP ---- */

typedef struct Factory {
  OrtEpFactory base; /* first */
  const OrtApi* api;
  const OrtEpApi* ep_api;
  OrtCustomOpDomain* domain;
} Factory;

typedef struct Ep {
  OrtEp base; /* first */
  const Factory* factory;
  bool claims;
} Ep;

typedef struct Program {
  OrtNodeComputeInfo base; /* first */
  const OrtApi* api;
} Program;

/* output = 3 * input */
static OrtStatus* ORT_API_CALL program_compute(OrtNodeComputeInfo* info, void* state,
                                               OrtKernelContext* context) {
  const OrtApi* api = ((Program*)info)->api;
  ONNXTensorElementDataType type;
  const void* data = NULL;
  void* out = NULL;
  OrtValue* output = NULL;
  size_t bytes = 0, rank = 0;
  int64_t dims[8];
  (void)state;
  TRY(read_input(api, context, 0, &type, &data, &bytes, &rank, dims));
  TRY(api->KernelContext_GetOutput(context, 0, dims, rank, &output));
  TRY(api->GetTensorMutableData(output, &out));
  for (size_t i = 0; i < bytes / sizeof(float); i++) ((float*)out)[i] = 3 * ((const float*)data)[i];
  return NULL;
}
static OrtStatus* ORT_API_CALL program_create_state(OrtNodeComputeInfo* info, OrtNodeComputeContext* context,
                                                    void** state) {
  (void)context;
  *state = info;
  return NULL;
}
static void ORT_API_CALL program_release_state(OrtNodeComputeInfo* info, void* state) {
  (void)info, (void)state;
}

static const char* ORT_API_CALL ep_get_name(const OrtEp* ep) {
  (void)ep;
  return EP_NAME;
}

static OrtStatus* ORT_API_CALL ep_get_capability(OrtEp* base, const OrtGraph* graph,
                                                 OrtEpGraphSupportInfo* support) {
  const Ep* ep = (Ep*)base;
  const OrtApi* api = ep->factory->api;
  const OrtEpApi* ep_api = ep->factory->ep_api;
  const OrtNode* nodes[16];
  size_t count = 0;
  TRY(api->Graph_GetNumNodes(graph, &count));
  if (!ep->claims || count > 16) return NULL;
  TRY(api->Graph_GetNodes(graph, nodes, count));
  for (size_t i = 0; i < count; i++) {
    const char* op_type = NULL;
    const OrtKernelDef* kernel = NULL;
    TRY(api->Node_GetOperatorType(nodes[i], &op_type));
    if (strcmp(op_type, "Placeholder") == 0)
      TRY(ep_api->EpGraphSupportInfo_AddNodesToFuse(support, &nodes[i], 1, NULL));
    if (strcmp(op_type, "EpTwice") != 0) continue;
    TRY(ep_api->EpGraphSupportInfo_LookUpKernel(support, nodes[i], &kernel));
    if (kernel == NULL) return api->CreateStatus(ORT_EP_FAIL, "EpTwice has a kernel, and it is not found");
    TRY(ep_api->EpGraphSupportInfo_AddSingleNode(support, nodes[i]));
  }
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_compile(OrtEp* base, const OrtGraph** graphs, const OrtNode** nodes,
                                          size_t count, OrtNodeComputeInfo** infos, OrtNode** contexts) {
  const OrtApi* api = ((Ep*)base)->factory->api;
  (void)graphs, (void)nodes, (void)contexts;
  for (size_t i = 0; i < count; i++) {
    Program* program = calloc(1, sizeof *program);
    if (program == NULL) return api->CreateStatus(ORT_EP_FAIL, "no memory");
    program->base.ort_version_supported = OP_VERSION + 2;
    program->base.CreateState = program_create_state;
    program->base.Compute = program_compute;
    program->base.ReleaseState = program_release_state;
    program->api = api;
    infos[i] = &program->base;
  }
  return NULL;
}

static void ORT_API_CALL ep_release_infos(OrtEp* ep, OrtNodeComputeInfo** infos, size_t count) {
  (void)ep;
  for (size_t i = 0; i < count; i++) free(infos[i]);
}

static const char* ORT_API_CALL factory_text(const OrtEpFactory* factory) {
  (void)factory;
  return EP_NAME;
}
static const char* ORT_API_CALL factory_version(const OrtEpFactory* factory) {
  (void)factory;
  return "1.0.0";
}
static uint32_t ORT_API_CALL factory_vendor_id(const OrtEpFactory* factory) {
  (void)factory;
  return 0;
}
static OrtStatus* ORT_API_CALL factory_devices(OrtEpFactory* base, const OrtHardwareDevice* const* hardware,
                                               size_t hardware_count, OrtEpDevice** devices, size_t most,
                                               size_t* count) {
  const Factory* factory = (Factory*)base;
  *count = 0;
  for (size_t i = 0; i < hardware_count && *count < 1 && most > 0; i++) {
    if (factory->api->HardwareDevice_Type(hardware[i]) != OrtHardwareDeviceType_CPU) continue;
    TRY(factory->ep_api->CreateEpDevice(base, hardware[i], NULL, NULL, &devices[0]));
    *count = 1;
  }
  return NULL;
}
static OrtStatus* ORT_API_CALL factory_create_ep(OrtEpFactory* base, const OrtHardwareDevice* const* devices,
                                                 const OrtKeyValuePairs* const* metadata, size_t count,
                                                 const OrtSessionOptions* options, const OrtLogger* logger,
                                                 OrtEp** out) {
  const Factory* factory = (Factory*)base;
  int is_lazy = 0;
  (void)devices, (void)metadata, (void)count, (void)logger;
  TRY(factory->api->HasSessionConfigEntry(options, "ep.customopsexecutionprovider.lazy", &is_lazy));
  Ep* ep = calloc(1, sizeof *ep);
  if (ep == NULL) return factory->api->CreateStatus(ORT_EP_FAIL, "no memory");
  ep->base.ort_version_supported = OP_VERSION + 2;
  ep->base.GetName = ep_get_name;
  ep->base.GetCapability = ep_get_capability;
  ep->base.Compile = ep_compile;
  ep->base.ReleaseNodeComputeInfos = ep_release_infos;
  ep->factory = factory;
  ep->claims = !is_lazy;
  *out = &ep->base;
  return NULL;
}
static void ORT_API_CALL factory_release_ep(OrtEpFactory* factory, OrtEp* ep) {
  (void)factory;
  free(ep);
}
static OrtStatus* ORT_API_CALL factory_allocator(OrtEpFactory* factory, const OrtMemoryInfo* info,
                                                 const OrtKeyValuePairs* options, OrtAllocator** out) {
  (void)factory, (void)info, (void)options;
  *out = NULL;
  return NULL;
}
static void ORT_API_CALL factory_release_allocator(OrtEpFactory* factory, OrtAllocator* allocator) {
  (void)factory, (void)allocator;
}
static OrtStatus* ORT_API_CALL factory_transfer(OrtEpFactory* factory, OrtDataTransferImpl** out) {
  (void)factory;
  *out = NULL;
  return NULL;
}
static bool ORT_API_CALL factory_streams(const OrtEpFactory* factory) {
  (void)factory;
  return false;
}
static OrtStatus* ORT_API_CALL factory_domain_count(OrtEpFactory* base, size_t* count) {
  const OrtApi* api = ((Factory*)base)->api;
  if (getenv("CUSTOM_OPS_FAIL") != NULL) return api->CreateStatus(ORT_EP_FAIL, "cannot count");
  *count = 1;
  return NULL;
}
static OrtStatus* ORT_API_CALL factory_domains(OrtEpFactory* base, OrtCustomOpDomain** domains,
                                               size_t count) {
  for (size_t i = 0; i < count; i++) domains[i] = ((Factory*)base)->domain;
  return NULL;
}

ORT_ABI_EXPORT OrtStatus* ORT_API_CALL CreateEpFactories(const char* name, const OrtApiBase* base,
                                                         const OrtLogger* logger, OrtEpFactory** factories,
                                                         size_t most, size_t* count);
OrtStatus* ORT_API_CALL CreateEpFactories(const char* name, const OrtApiBase* base, const OrtLogger* logger,
                                          OrtEpFactory** factories, size_t most, size_t* count) {
  const OrtApi* api = base->GetApi(OP_VERSION + 2);
  Factory* factory = calloc(1, sizeof *factory);
  (void)name, (void)logger;
  if (factory == NULL || most < 1) return api->CreateStatus(ORT_EP_FAIL, "no room for a factory");
  factory->api = api;
  factory->ep_api = api->GetEpApi();
  factory->base.ort_version_supported = OP_VERSION + 2;
  factory->base.GetName = factory->base.GetVendor = factory_text;
  factory->base.GetVersion = factory_version;
  factory->base.GetVendorId = factory_vendor_id;
  factory->base.GetSupportedDevices = factory_devices;
  factory->base.CreateEp = factory_create_ep;
  factory->base.ReleaseEp = factory_release_ep;
  factory->base.CreateAllocator = factory_allocator;
  factory->base.ReleaseAllocator = factory_release_allocator;
  factory->base.CreateDataTransfer = factory_transfer;
  factory->base.IsStreamAware = factory_streams;
  factory->base.GetNumCustomOpDomains = factory_domain_count;
  factory->base.GetCustomOpDomains = factory_domains;
  TRY(make_domain(api, "test.ep", ep_ops, sizeof ep_ops / sizeof *ep_ops, &factory->domain));
  factories[0] = &factory->base;
  *count = 1;
  return NULL;
}

ORT_ABI_EXPORT OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* base);
OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* base) {
  Factory* factory = (Factory*)base;
  factory->api->ReleaseCustomOpDomain(factory->domain);
  free(factory);
  return NULL;
}
