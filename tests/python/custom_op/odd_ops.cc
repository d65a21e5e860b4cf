// Custom operators that do what few do, for any host: throw C++ exceptions, leave outputs unmade, have
// versions without an end, take mixed inputs, stand in for an operator of ONNX. ODD_THROW_AT names the
// function that throws, ODD_RELU_FROM the opset version from which on Relu of ONNX is one that adds 100. All
// are in domain "odd", or in the one that ODD_DOMAIN names, which then also has an EpTwice, one that adds
// 1000.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "ort_abi.h"

namespace {

constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
constexpr auto kAny = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;

struct Op : OrtCustomOp {
  const char* name;
  ONNXTensorElementDataType type;
  bool is_variadic, is_homogeneous;
  size_t output_count;
  int first, last;
  float added;
};

struct Kernel {
  const OrtApi* api;
  const Op* op;
};

// "Throws" and "ThrowsV2" throw where they are told to; the others never do.
void maybe_throw(const OrtCustomOp* op, const char* function) {
  const char* wanted = std::getenv("ODD_THROW_AT");
  if (std::strncmp(static_cast<const Op*>(op)->name, "Throws", 6) != 0) return;
  if (wanted != nullptr && std::strcmp(wanted, function) == 0)
    throw std::runtime_error(std::string("thrown in ") + function);
}

const char* get_name(const OrtCustomOp* op) {
  maybe_throw(op, "GetName");
  return static_cast<const Op*>(op)->name;
}
const char* get_ep(const OrtCustomOp* op) {
  maybe_throw(op, "GetExecutionProviderType");
  return nullptr;
}
ONNXTensorElementDataType input_type(const OrtCustomOp* op, size_t) {
  maybe_throw(op, "GetInputType");
  return static_cast<const Op*>(op)->type;
}
size_t input_count(const OrtCustomOp* op) {
  maybe_throw(op, "GetInputTypeCount");
  return 1;
}
ONNXTensorElementDataType output_type(const OrtCustomOp* op, size_t) {
  maybe_throw(op, "GetOutputType");
  return static_cast<const Op*>(op)->type;
}
size_t output_count(const OrtCustomOp* op) {
  maybe_throw(op, "GetOutputTypeCount");
  return static_cast<const Op*>(op)->output_count;
}
OrtCustomOpInputOutputCharacteristic input_kind(const OrtCustomOp* op, size_t) {
  maybe_throw(op, "GetInputCharacteristic");
  return static_cast<const Op*>(op)->is_variadic ? INPUT_OUTPUT_VARIADIC : INPUT_OUTPUT_REQUIRED;
}
OrtCustomOpInputOutputCharacteristic output_kind(const OrtCustomOp* op, size_t) {
  maybe_throw(op, "GetOutputCharacteristic");
  return INPUT_OUTPUT_REQUIRED;
}
OrtMemType input_memory(const OrtCustomOp* op, size_t) {
  maybe_throw(op, "GetInputMemoryType");
  return OrtMemTypeDefault;
}
int min_arity(const OrtCustomOp*) {
  return 1;
}
int homogeneity(const OrtCustomOp* op) {
  return static_cast<const Op*>(op)->is_homogeneous;
}
int start_version(const OrtCustomOp* op) {
  maybe_throw(op, "GetStartVersion");
  return static_cast<const Op*>(op)->first;
}
int end_version(const OrtCustomOp* op) {
  maybe_throw(op, "GetEndVersion");
  return static_cast<const Op*>(op)->last;
}

void* create(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo*) {
  maybe_throw(op, "CreateKernel");
  return new Kernel{api, static_cast<const Op*>(op)};
}
OrtStatus* create_v2(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo*, void** out) {
  maybe_throw(op, "CreateKernelV2");
  *out = new Kernel{api, static_cast<const Op*>(op)};
  return nullptr;
}
void destroy(void* kernel) {
  const Op* op = static_cast<Kernel*>(kernel)->op;
  delete static_cast<Kernel*>(kernel);
  maybe_throw(op, "KernelDestroy");
}

// The first output is the first input, and what the operator adds. Other outputs are left unmade.
OrtStatus* run(const Kernel* kernel, OrtKernelContext* context) {
  const OrtApi* api = kernel->api;
  const OrtValue* input = nullptr;
  OrtValue* output = nullptr;
  OrtTensorTypeAndShapeInfo* info = nullptr;
  const void* data = nullptr;
  void* made = nullptr;
  int64_t dims[8] = {0};
  size_t rank = 0, size = 0;
  OrtStatus* status = api->KernelContext_GetInput(context, 0, &input);
  if (status == nullptr) status = api->GetTensorTypeAndShape(input, &info);
  if (status == nullptr) status = api->GetDimensionsCount(info, &rank);
  if (status == nullptr) status = api->GetDimensions(info, dims, rank);
  api->ReleaseTensorTypeAndShapeInfo(info);
  if (status == nullptr) status = api->GetTensorSizeInBytes(input, &size);
  if (status == nullptr) status = api->GetTensorData(input, &data);
  if (status == nullptr) status = api->KernelContext_GetOutput(context, 0, dims, rank, &output);
  if (status == nullptr) status = api->GetTensorMutableData(output, &made);
  if (status != nullptr) return status;
  std::memcpy(made, data, size);
  for (size_t i = 0; kernel->op->added != 0 && i < size / sizeof(float); i++)
    static_cast<float*>(made)[i] += kernel->op->added;
  return nullptr;
}

void compute(void* kernel, OrtKernelContext* context) {
  maybe_throw(static_cast<Kernel*>(kernel)->op, "KernelCompute");
  OrtStatus* status = run(static_cast<Kernel*>(kernel), context);
  static_cast<Kernel*>(kernel)->api->ReleaseStatus(status);
}
OrtStatus* compute_v2(void* kernel, OrtKernelContext* context) {
  maybe_throw(static_cast<Kernel*>(kernel)->op, "KernelComputeV2");
  return run(static_cast<Kernel*>(kernel), context);
}
OrtStatus* compute_nothing(void*, OrtKernelContext*) {
  return nullptr;
}
OrtStatus* infer_shape(const OrtCustomOp* op, OrtShapeInferContext*) {
  maybe_throw(op, "InferOutputShapeFn");
  return nullptr;
}

Op make(const char* name, ONNXTensorElementDataType type, size_t outputs = 1, int first = 1,
        int last = 1000) {
  Op op = {};
  op.version = 22;
  op.GetName = get_name;
  op.GetExecutionProviderType = get_ep;
  op.GetInputType = input_type;
  op.GetInputTypeCount = input_count;
  op.GetOutputType = output_type;
  op.GetOutputTypeCount = output_count;
  op.GetInputCharacteristic = input_kind;
  op.GetOutputCharacteristic = output_kind;
  op.GetInputMemoryType = input_memory;
  op.GetVariadicInputMinArity = min_arity;
  op.GetVariadicInputHomogeneity = homogeneity;
  op.GetVariadicOutputMinArity = min_arity;
  op.GetVariadicOutputHomogeneity = homogeneity;
  op.GetStartVersion = start_version;
  op.GetEndVersion = end_version;
  op.CreateKernelV2 = create_v2;
  op.KernelComputeV2 = compute_v2;
  op.CreateKernel = create;  // stock wants both
  op.KernelCompute = compute;
  op.KernelDestroy = destroy;
  op.name = name;
  op.type = type;
  op.output_count = outputs;
  op.is_homogeneous = true;
  op.first = first;
  op.last = last;
  return op;
}

Op throws = make("Throws", kFloat), throws_v2 = make("ThrowsV2", kFloat);
Op half = make("Half", kFloat, 2), mute = make("Mute", kFloat);
Op endless = make("Endless", kFloat, 1, 2, -1);
Op join = make("Join", kAny), mixed = make("Mixed", kAny), sum = make("FloatJoin", kFloat);
Op relu = make("Relu", kFloat), twice = make("EpTwice", kFloat);

}  // namespace

extern "C" OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  const OrtApi* api = base->GetApi(22);
  const char* relu_from = std::getenv("ODD_RELU_FROM");
  const char* domain = std::getenv("ODD_DOMAIN");
  const char* thrown = std::getenv("ODD_THROW_AT");
  if (thrown != nullptr && std::strcmp(thrown, "RegisterCustomOps") == 0)
    throw std::runtime_error("thrown in RegisterCustomOps");
  OrtCustomOpDomain *odd = nullptr, *onnx = nullptr;
  throws.CreateKernelV2 = nullptr;
  throws.KernelComputeV2 = nullptr;
  throws_v2.InferOutputShapeFn = infer_shape;
  mute.KernelComputeV2 = compute_nothing;
  join.is_variadic = mixed.is_variadic = sum.is_variadic = true;
  mixed.is_homogeneous = false;
  relu.added = 100;
  OrtStatus* status = api->CreateCustomOpDomain(domain != nullptr ? domain : "odd", &odd);
  twice.added = 1000;
  if (domain != nullptr && status == nullptr) status = api->CustomOpDomain_Add(odd, &twice);
  for (const Op* op : {&throws, &throws_v2, &half, &mute, &endless, &join, &mixed, &sum})
    if (status == nullptr) status = api->CustomOpDomain_Add(odd, op);
  if (status == nullptr) status = api->AddCustomOpDomain(options, odd);
  if (relu_from == nullptr || status != nullptr) return status;
  relu.first = std::atoi(relu_from);
  status = api->CreateCustomOpDomain("", &onnx);
  if (status == nullptr) status = api->CustomOpDomain_Add(onnx, &relu);
  if (status == nullptr) status = api->AddCustomOpDomain(options, onnx);
  return status;
}
