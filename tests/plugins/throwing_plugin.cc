// An EP in C++ that throws in one of its functions: the one that the environment variable THROW_AT names
// ("OrtEp::Compile"). THROW_KIND: "std" (std::runtime_error), "own" (derived from std::exception), "int"; "crash" writes
// to address 0 instead, "exit" ends the thread. With THROW_AFTER=n the first n calls are good.
// Its device memory is malloc'ed; Add is a kernel (in domain "" from version 14 on), Mul is compiled.
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "ort_abi.h"

namespace {

const OrtApi* api;
const OrtEpApi* ep_api;
OrtMemoryInfo* device_memory;
OrtKernelRegistry* registry;

struct OwnError : std::exception {
  const char* what() const noexcept override { return "an error of its own"; }
};

void maybe_throw(const char* slot) {
  static int calls = 0;
  const char* wanted = std::getenv("THROW_AT");
  const char* after = std::getenv("THROW_AFTER");
  if (wanted == nullptr || std::strcmp(wanted, slot) != 0) return;
  if (after != nullptr && calls++ < std::atoi(after)) return;
  const char* kind = std::getenv("THROW_KIND");
  std::string name = kind != nullptr ? kind : "std";
  if (name == "int") throw 42;
  if (name == "own") throw OwnError();
  if (name == "exit") pthread_exit(nullptr);
  if (name == "crash") *static_cast<volatile int*>(nullptr) = 1;
  throw std::runtime_error(std::string("thrown in ") + slot);
}

#define TRY(call)                                 \
  do {                                            \
    OrtStatus* try_status = (call);               \
    if (try_status != nullptr) return try_status; \
  } while (0)

// ---- Memory, copies, streams ----

struct Allocator : OrtAllocator {};
Allocator allocator;

void* allocate(OrtAllocator*, size_t size) {
  maybe_throw("OrtAllocator::Alloc");
  return std::malloc(size != 0 ? size : 1);
}
void release_memory(OrtAllocator*, void* block) {
  std::free(block);
  maybe_throw("OrtAllocator::Free");
}
const OrtMemoryInfo* allocator_info(const OrtAllocator*) {
  maybe_throw("OrtAllocator::Info");
  return device_memory;
}
void* allocate_on_stream(OrtAllocator*, size_t size, OrtSyncStream*) {
  maybe_throw("OrtAllocator::AllocOnStream");
  return std::malloc(size != 0 ? size : 1);
}
OrtStatus* get_stats(const OrtAllocator*, OrtKeyValuePairs** out) {
  maybe_throw("OrtAllocator::GetStats");
  api->CreateKeyValuePairs(out);
  return nullptr;
}

OrtStatus* copy(const OrtValue* from, OrtValue* to) {
  const void* source = nullptr;
  void* target = nullptr;
  size_t size = 0;
  TRY(api->GetTensorData(from, &source));
  TRY(api->GetTensorMutableData(to, &target));
  TRY(api->GetTensorSizeInBytes(from, &size));
  std::memcpy(target, source, size);
  return nullptr;
}

void transfer_release(OrtDataTransferImpl*) { maybe_throw("OrtDataTransferImpl::Release"); }
bool can_copy(const OrtDataTransferImpl*, const OrtMemoryDevice*, const OrtMemoryDevice*) {
  maybe_throw("OrtDataTransferImpl::CanCopy");
  return true;
}
OrtStatus* copy_tensors(OrtDataTransferImpl*, const OrtValue** from, OrtValue** to, OrtSyncStream**, size_t count) {
  maybe_throw("OrtDataTransferImpl::CopyTensors");
  for (size_t i = 0; i < count; i++) TRY(copy(from[i], to[i]));
  return nullptr;
}
OrtDataTransferImpl transfer;

void notification_release(OrtSyncNotificationImpl* self) {
  delete self;
  maybe_throw("OrtSyncNotificationImpl::Release");
}
OrtStatus* activate(OrtSyncNotificationImpl*) {
  maybe_throw("OrtSyncNotificationImpl::Activate");
  return nullptr;
}
OrtStatus* wait_on_device(OrtSyncNotificationImpl*, OrtSyncStream*) {
  maybe_throw("OrtSyncNotificationImpl::WaitOnDevice");
  return nullptr;
}
OrtStatus* wait_on_host(OrtSyncNotificationImpl*) {
  maybe_throw("OrtSyncNotificationImpl::WaitOnHost");
  return nullptr;
}

void stream_release(OrtSyncStreamImpl* self) {
  delete self;
  maybe_throw("OrtSyncStreamImpl::Release");
}
void* stream_handle(OrtSyncStreamImpl* self) {
  maybe_throw("OrtSyncStreamImpl::GetHandle");
  return self;
}
OrtStatus* create_notification(OrtSyncStreamImpl*, OrtSyncNotificationImpl** out) {
  maybe_throw("OrtSyncStreamImpl::CreateNotification");
  auto* made = new OrtSyncNotificationImpl();
  made->ort_version_supported = 24;
  made->Release = notification_release;
  made->Activate = activate;
  made->WaitOnDevice = wait_on_device;
  made->WaitOnHost = wait_on_host;
  *out = made;
  return nullptr;
}
OrtStatus* stream_flush(OrtSyncStreamImpl*) {
  maybe_throw("OrtSyncStreamImpl::Flush");
  return nullptr;
}
OrtStatus* on_session_run_end(OrtSyncStreamImpl*) {
  maybe_throw("OrtSyncStreamImpl::OnSessionRunEnd");
  return nullptr;
}
OrtSyncStreamImpl* make_stream() {
  auto* made = new OrtSyncStreamImpl();
  made->ort_version_supported = 24;
  made->Release = stream_release;
  made->GetHandle = stream_handle;
  made->CreateNotification = create_notification;
  made->Flush = stream_flush;
  made->OnSessionRunEnd = on_session_run_end;
  return made;
}

// ---- Work ----

// The first output is made of the first input, whatever the operator: what is computed does not matter here.
OrtStatus* pass_on(OrtKernelContext* context) {
  const OrtValue* input = nullptr;
  OrtValue* output = nullptr;
  OrtTensorTypeAndShapeInfo* info = nullptr;
  int64_t dims[8] = {0};
  size_t rank = 0;
  void* stream = nullptr;
  TRY(api->KernelContext_GetGPUComputeStream(context, &stream));
  TRY(api->KernelContext_GetInput(context, 0, &input));
  TRY(api->GetTensorTypeAndShape(input, &info));
  OrtStatus* status = api->GetDimensionsCount(info, &rank);
  if (status == nullptr) status = api->GetDimensions(info, dims, rank);
  api->ReleaseTensorTypeAndShapeInfo(info);
  TRY(status);
  TRY(api->KernelContext_GetOutput(context, 0, dims, rank, &output));
  return copy(input, output);
}

struct Kernel : OrtKernelImpl {
  bool is_copy = false;
};

void parallel_part(void*, size_t) { maybe_throw("KernelContext_ParallelFor"); }

OrtStatus* kernel_compute(OrtKernelImpl* self, OrtKernelContext* context) {
  std::string unwound = "freed although an exception passes";
  if (!static_cast<Kernel*>(self)->is_copy) {
    maybe_throw("OrtKernelImpl::Compute");
    TRY(api->KernelContext_ParallelFor(context, parallel_part, 3, 0, nullptr));
  }
  return pass_on(context);
}
void kernel_release(OrtKernelImpl* self) {
  delete static_cast<Kernel*>(self);
  maybe_throw("OrtKernelImpl::Release");
}
OrtStatus* pre_pack(OrtKernelImpl*, const OrtValue*, int, OrtAllocator*, OrtSharedPrePackedWeightCache*, bool* is_packed) {
  maybe_throw("OrtKernelImpl::PrePackWeight");
  *is_packed = false;
  return nullptr;
}
OrtStatus* kernel_create(void* is_copy, const OrtKernelInfo*, OrtKernelImpl** out) {
  if (is_copy == nullptr) maybe_throw("OrtKernelCreateFunc");
  auto* made = new Kernel();
  made->ort_version_supported = 24;
  made->Compute = kernel_compute;
  made->Release = kernel_release;
  made->PrePackWeight = pre_pack;
  made->is_copy = is_copy != nullptr;
  *out = made;
  return nullptr;
}

OrtStatus* create_state(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) {
  maybe_throw("OrtNodeComputeInfo::CreateState");
  *state = new std::string("state");
  return nullptr;
}
OrtStatus* compute(OrtNodeComputeInfo*, void*, OrtKernelContext* context) {
  maybe_throw("OrtNodeComputeInfo::Compute");
  return pass_on(context);
}
void release_state(OrtNodeComputeInfo*, void* state) {
  delete static_cast<std::string*>(state);
  maybe_throw("OrtNodeComputeInfo::ReleaseState");
}

// ---- The EP ----

const char* ep_name(const OrtEp*) {
  maybe_throw("OrtEp::GetName");
  return "ThrowingExecutionProvider";
}
OrtStatus* get_capability(OrtEp*, const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  maybe_throw("OrtEp::GetCapability");
  const OrtNode* nodes[16];
  size_t count = 0;
  TRY(api->Graph_GetNumNodes(graph, &count));
  if (count > 16) return nullptr;
  TRY(api->Graph_GetNodes(graph, nodes, count));
  for (size_t i = 0; i < count; i++) {
    const char* op = nullptr;
    TRY(api->Node_GetOperatorType(nodes[i], &op));
    OrtNodeFusionOptions options = {24, false};
    if (std::strcmp(op, "Add") == 0) TRY(ep_api->EpGraphSupportInfo_AddSingleNode(info, nodes[i]));
    if (std::strcmp(op, "Mul") == 0) TRY(ep_api->EpGraphSupportInfo_AddNodesToFuse(info, &nodes[i], 1, &options));
  }
  return nullptr;
}
OrtStatus* compile(OrtEp*, const OrtGraph**, const OrtNode**, size_t count, OrtNodeComputeInfo** infos, OrtNode**) {
  maybe_throw("OrtEp::Compile");
  for (size_t i = 0; i < count; i++) {
    infos[i] = new OrtNodeComputeInfo();
    infos[i]->ort_version_supported = 24;
    infos[i]->CreateState = create_state;
    infos[i]->Compute = compute;
    infos[i]->ReleaseState = release_state;
  }
  return nullptr;
}
void release_infos(OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
  for (size_t i = 0; i < count; i++) delete infos[i];
  maybe_throw("OrtEp::ReleaseNodeComputeInfos");
}
OrtStatus* preferred_layout(OrtEp*, OrtEpDataLayout* layout) {
  maybe_throw("OrtEp::GetPreferredDataLayout");
  *layout = OrtEpDataLayout_NCHW;
  return nullptr;
}
OrtStatus* set_dynamic_options(OrtEp*, const char* const*, const char* const*, size_t) {
  maybe_throw("OrtEp::SetDynamicOptions");
  return nullptr;
}
OrtStatus* on_run_start(OrtEp*, const OrtRunOptions*) {
  maybe_throw("OrtEp::OnRunStart");
  return nullptr;
}
OrtStatus* on_run_end(OrtEp*, const OrtRunOptions*, bool) {
  maybe_throw("OrtEp::OnRunEnd");
  return nullptr;
}
OrtStatus* ep_allocator(OrtEp*, const OrtMemoryInfo*, OrtAllocator** out) {
  maybe_throw("OrtEp::CreateAllocator");
  *out = &allocator;
  return nullptr;
}
OrtStatus* ep_stream(OrtEp*, const OrtMemoryDevice*, OrtSyncStreamImpl** out) {
  maybe_throw("OrtEp::CreateSyncStreamForDevice");
  *out = make_stream();
  return nullptr;
}
OrtStatus* get_kernels(OrtEp*, const OrtKernelRegistry** out) {
  maybe_throw("OrtEp::GetKernelRegistry");
  *out = registry;
  return nullptr;
}
OrtStatus* is_concurrent(OrtEp*, bool* out) {
  maybe_throw("OrtEp::IsConcurrentRunSupported");
  *out = true;
  return nullptr;
}
OrtStatus* ep_sync(OrtEp*) {
  maybe_throw("OrtEp::Sync");
  return nullptr;
}
bool captures(const OrtEp*) {
  maybe_throw("OrtEp::IsGraphCaptureEnabled");
  return false;
}
OrtStatus* on_initialized(OrtEp*) {
  maybe_throw("OrtEp::OnSessionInitializationEnd");
  return nullptr;
}
OrtStatus* default_device(const OrtEp*, const OrtMemoryDevice** out) {
  maybe_throw("OrtEp::GetDefaultMemoryDevice");
  *out = ep_api->MemoryInfo_GetMemoryDevice(device_memory);
  return nullptr;
}
OrtEp* make_ep() {
  auto* ep = new OrtEp();
  ep->ort_version_supported = ORT_API_VERSION;
  ep->GetName = ep_name;
  ep->GetCapability = get_capability;
  ep->Compile = compile;
  ep->ReleaseNodeComputeInfos = release_infos;
  ep->GetPreferredDataLayout = preferred_layout;
  ep->SetDynamicOptions = set_dynamic_options;
  ep->OnRunStart = on_run_start;
  ep->OnRunEnd = on_run_end;
  ep->CreateAllocator = ep_allocator;
  ep->CreateSyncStreamForDevice = ep_stream;
  ep->GetKernelRegistry = get_kernels;
  ep->IsConcurrentRunSupported = is_concurrent;
  ep->Sync = ep_sync;
  ep->IsGraphCaptureEnabled = captures;
  ep->OnSessionInitializationEnd = on_initialized;
  ep->GetDefaultMemoryDevice = default_device;
  return ep;
}

// ---- The factory ----

const char* factory_name(const OrtEpFactory*) {
  maybe_throw("OrtEpFactory::GetName");
  return "ThrowingExecutionProvider";
}
const char* factory_vendor(const OrtEpFactory*) {
  maybe_throw("OrtEpFactory::GetVendor");
  return "Tests";
}
const char* factory_version(const OrtEpFactory*) {
  maybe_throw("OrtEpFactory::GetVersion");
  return "1.0.0";
}
uint32_t factory_vendor_id(const OrtEpFactory*) {
  maybe_throw("OrtEpFactory::GetVendorId");
  return 0x1234;
}
OrtStatus* supported_devices(OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                             OrtEpDevice** out, size_t, size_t* out_count) {
  maybe_throw("OrtEpFactory::GetSupportedDevices");
  for (size_t i = 0; i < count; i++) {
    if (api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
    TRY(ep_api->CreateEpDevice(self, devices[i], nullptr, nullptr, &out[0]));
    *out_count = 1;
    return ep_api->EpDevice_AddAllocatorInfo(out[0], device_memory);
  }
  return nullptr;
}
OrtStatus* create_ep(OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                     const OrtSessionOptions*, const OrtLogger*, OrtEp** out) {
  maybe_throw("OrtEpFactory::CreateEp");
  *out = make_ep();
  return nullptr;
}
void release_ep(OrtEpFactory*, OrtEp* ep) {
  delete ep;
  maybe_throw("OrtEpFactory::ReleaseEp");
}
OrtStatus* validate_compiled(OrtEpFactory*, const OrtHardwareDevice* const*, size_t, const char*,
                             OrtCompiledModelCompatibility* out) {
  maybe_throw("OrtEpFactory::ValidateCompiledModelCompatibilityInfo");
  *out = OrtCompiledModelCompatibility_EP_UNSUPPORTED;
  return nullptr;
}
OrtStatus* factory_allocator(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*, OrtAllocator** out) {
  maybe_throw("OrtEpFactory::CreateAllocator");
  *out = &allocator;
  return nullptr;
}
void release_allocator(OrtEpFactory*, OrtAllocator*) { maybe_throw("OrtEpFactory::ReleaseAllocator"); }
OrtStatus* factory_transfer(OrtEpFactory*, OrtDataTransferImpl** out) {
  maybe_throw("OrtEpFactory::CreateDataTransfer");
  *out = &transfer;
  return nullptr;
}
bool is_stream_aware(const OrtEpFactory*) {
  maybe_throw("OrtEpFactory::IsStreamAware");
  return true;
}
OrtStatus* factory_stream(OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*, OrtSyncStreamImpl** out) {
  maybe_throw("OrtEpFactory::CreateSyncStreamForDevice");
  *out = make_stream();
  return nullptr;
}
OrtStatus* incompatibility(OrtEpFactory*, const OrtHardwareDevice*, OrtDeviceEpIncompatibilityDetails*) {
  maybe_throw("OrtEpFactory::GetHardwareDeviceIncompatibilityDetails");
  return nullptr;
}
OrtStatus* domain_count(OrtEpFactory*, size_t* out) {
  maybe_throw("OrtEpFactory::GetNumCustomOpDomains");
  *out = 1;
  return nullptr;
}
OrtCustomOpDomain* domain;
OrtStatus* get_domains(OrtEpFactory*, OrtCustomOpDomain** out, size_t) {
  maybe_throw("OrtEpFactory::GetCustomOpDomains");
  out[0] = domain;
  return nullptr;
}

OrtEpFactory factory;

void fill_structs() {
  allocator.version = ORT_API_VERSION;
  allocator.Alloc = allocate;
  allocator.Free = release_memory;
  allocator.Info = allocator_info;
  allocator.Reserve = allocate;
  allocator.GetStats = get_stats;
  allocator.AllocOnStream = allocate_on_stream;
  transfer.ort_version_supported = 24;
  transfer.Release = transfer_release;
  transfer.CanCopy = can_copy;
  transfer.CopyTensors = copy_tensors;
  factory.ort_version_supported = 27;
  factory.GetName = factory_name;
  factory.GetVendor = factory_vendor;
  factory.GetSupportedDevices = supported_devices;
  factory.CreateEp = create_ep;
  factory.ReleaseEp = release_ep;
  factory.GetVendorId = factory_vendor_id;
  factory.GetVersion = factory_version;
  factory.ValidateCompiledModelCompatibilityInfo = validate_compiled;
  factory.CreateAllocator = factory_allocator;
  factory.ReleaseAllocator = release_allocator;
  factory.CreateDataTransfer = factory_transfer;
  factory.IsStreamAware = is_stream_aware;
  factory.CreateSyncStreamForDevice = factory_stream;
  factory.GetHardwareDeviceIncompatibilityDetails = incompatibility;
  factory.GetNumCustomOpDomains = domain_count;
  factory.GetCustomOpDomains = get_domains;
}

OrtStatus* add_kernel(const char* op, int since, OrtMemType input, OrtMemType output, void* is_copy) {
  OrtKernelDefBuilder* builder = nullptr;
  OrtKernelDef* def = nullptr;
  TRY(ep_api->CreateKernelDefBuilder(&builder));
  OrtStatus* status = ep_api->KernelDefBuilder_SetOperatorType(builder, op);
  if (status == nullptr) status = ep_api->KernelDefBuilder_SetDomain(builder, "");
  if (status == nullptr) status = ep_api->KernelDefBuilder_SetSinceVersion(builder, since, since);
  if (status == nullptr)
    status = ep_api->KernelDefBuilder_SetExecutionProvider(builder, "ThrowingExecutionProvider");
  if (status == nullptr) status = ep_api->KernelDefBuilder_SetInputMemType(builder, 0, input);
  if (status == nullptr) status = ep_api->KernelDefBuilder_SetOutputMemType(builder, 0, output);
  if (status == nullptr) status = ep_api->KernelDefBuilder_Build(builder, &def);
  if (status == nullptr) status = ep_api->KernelRegistry_AddKernel(registry, def, kernel_create, is_copy);
  ep_api->ReleaseKernelDef(def);
  ep_api->ReleaseKernelDefBuilder(builder);
  return status;
}

}  // namespace

extern "C" OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger*, OrtEpFactory** factories,
                                        size_t, size_t* count) {
  api = base->GetApi(27);
  ep_api = api->GetEpApi();
  maybe_throw("CreateEpFactories");
  fill_structs();
  TRY(api->CreateMemoryInfo_V2("Throwing", OrtMemoryInfoDeviceType_GPU, 0x1234, 0, OrtDeviceMemoryType_DEFAULT, 0,
                               OrtDeviceAllocator, &device_memory));
  TRY(api->CreateCustomOpDomain("throwing", &domain));
  TRY(ep_api->CreateKernelRegistry(&registry));
  TRY(add_kernel("Add", 14, OrtMemTypeDefault, OrtMemTypeDefault, nullptr));
  TRY(add_kernel("MemcpyFromHost", 1, OrtMemTypeCPUInput, OrtMemTypeDefault, &factory));
  TRY(add_kernel("MemcpyToHost", 1, OrtMemTypeDefault, OrtMemTypeCPUOutput, &factory));
  factories[0] = &factory;
  *count = 1;
  return nullptr;
}

extern "C" OrtStatus* ReleaseEpFactory(OrtEpFactory*) {
  api->ReleaseMemoryInfo(device_memory);
  api->ReleaseCustomOpDomain(domain);
  ep_api->ReleaseKernelRegistry(registry);
  device_memory = nullptr;
  maybe_throw("ReleaseEpFactory");
  return nullptr;
}
