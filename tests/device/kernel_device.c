/* An EP with kernels and device memory: Relu on the device (or another KERNEL_OP), Shape that leaves its
 * result in host memory, Reshape that reads the shape there. Its device memory is malloc'ed, but the
 * addresses that the host sees are none: whoever follows one crashes. What it is like follows from the name
 * it is registered by:
 *
 *   kernels           one memory, no streams
 *   kernels.streams   the same with streams, whose work is done at once. Any other EP's stream is an error
 *   kernels.no-copies the same with streams, and no data transfer
 *   kernels.two       two EP devices with a memory each, and no word which one is meant
 *   kernels.second    the same, and GetDefaultMemoryDevice says the second
 *   kernels.foreign   GetDefaultMemoryDevice gives the device of an unknown memory */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels_control.h"
#include "ort_abi.h"

#ifndef EP_NAME
#define EP_NAME "KernelsExecutionProvider"
#endif
#ifndef KERNEL_OP
#define KERNEL_OP "Relu"
#endif
#define NO_MEMORY ((uintptr_t)1 << 62) /* no program has memory there */

#define TRY(call)                              \
  do {                                         \
    OrtStatus* try_status = (call);            \
    if (try_status != NULL) return try_status; \
  } while (0)

static KernelsControl control;
static const OrtApi* api;
static const OrtEpApi* ep_api;
static char mode[32];
static OrtMemoryInfo* memories[3]; /* [2] is no EP device's */
static OrtAllocator allocators[2];
static OrtKernelRegistry* registry;

ORT_ABI_EXPORT KernelsControl* kernel_device_control(void);
KernelsControl* kernel_device_control(void) {
  return &control;
}

/* From an address that the host has to the one that is meant, and back. */
static void* flip(const void* address) {
  return (void*)((uintptr_t)address ^ NO_MEMORY);
}

static void* ORT_API_CALL stream_handle(OrtSyncStreamImpl* this_) {
  return this_;
}

static bool has_streams(void) {
  return strcmp(mode, "streams") == 0 || strcmp(mode, "no-copies") == 0;
}

/* OK for a stream that this library made, and for none where it makes none. */
static OrtStatus* check_stream(const OrtSyncStream* stream, const char* user) {
  char text[128];
  bool is_own = stream != NULL && ep_api->SyncStream_GetImpl(stream)->GetHandle == stream_handle;
  if (is_own == has_streams() && (is_own || stream == NULL)) return NULL;
  snprintf(text, sizeof text, "%s: %s has %s", EP_NAME, user,
           stream == NULL ? "no stream" : "a strange stream");
  return api->CreateStatus(ORT_EP_FAIL, text);
}

static bool is_device_address(const void* address) {
  return ((uintptr_t)address & NO_MEMORY) != 0;
}

/* ---- Streams: all work is done when its call returns ---- */

static void ORT_API_CALL notification_release(OrtSyncNotificationImpl* this_) {
  control.live_notifications--;
  free(this_);
}

static OrtStatus* ORT_API_CALL notification_activate(OrtSyncNotificationImpl* this_) {
  (void)this_;
  return NULL;
}

static OrtStatus* ORT_API_CALL notification_wait_on_host(OrtSyncNotificationImpl* this_) {
  (void)this_;
  control.waits_on_host++;
  return NULL;
}

static OrtStatus* ORT_API_CALL notification_wait_on_device(OrtSyncNotificationImpl* this_,
                                                           OrtSyncStream* stream) {
  (void)this_;
  control.waits_on_device++;
  return check_stream(stream, "WaitOnDevice");
}

static OrtStatus* ORT_API_CALL create_notification(OrtSyncStreamImpl* this_, OrtSyncNotificationImpl** out) {
  OrtSyncNotificationImpl* made = calloc(1, sizeof *made);
  (void)this_;
  if (made == NULL) return api->CreateStatus(ORT_FAIL, EP_NAME ": no memory");
  *made = (OrtSyncNotificationImpl){.ort_version_supported = ORT_API_VERSION,
                                    .Release = notification_release,
                                    .Activate = notification_activate,
                                    .WaitOnDevice = notification_wait_on_device,
                                    .WaitOnHost = notification_wait_on_host};
  control.live_notifications++;
  *out = made;
  return NULL;
}

static OrtStatus* ORT_API_CALL stream_flush(OrtSyncStreamImpl* this_) {
  (void)this_;
  control.flushes++;
  return NULL;
}

static OrtStatus* ORT_API_CALL stream_nothing(OrtSyncStreamImpl* this_) {
  (void)this_;
  return NULL;
}

static void ORT_API_CALL stream_release(OrtSyncStreamImpl* this_) {
  (void)this_;
}

static bool ORT_API_CALL is_stream_aware(const OrtEpFactory* this_) {
  (void)this_;
  return has_streams();
}

static OrtStatus* ORT_API_CALL create_stream(OrtEpFactory* this_, const OrtMemoryDevice* device,
                                             const OrtKeyValuePairs* options, OrtSyncStreamImpl** out) {
  static OrtSyncStreamImpl stream = {.ort_version_supported = ORT_API_VERSION,
                                     .Release = stream_release,
                                     .GetHandle = stream_handle,
                                     .CreateNotification = create_notification,
                                     .Flush = stream_flush,
                                     .OnSessionRunEnd = stream_nothing};
  (void)this_, (void)device, (void)options;
  *out = &stream;
  return NULL;
}

/* ---- Memory ---- */

/* In front of each block. */
typedef struct Header {
  _Alignas(16) const char* user; /* the EP whose kernel used it last; NULL: none yet */
} Header;

static void* ORT_API_CALL device_alloc(OrtAllocator* this_, size_t size) {
  Header* block = malloc(sizeof *block + size);
  (void)this_;
  if (block == NULL) return NULL;
  block->user = NULL;
  control.live_blocks++;
  return flip(block + 1);
}

static void* ORT_API_CALL device_alloc_on_stream(OrtAllocator* this_, size_t size, OrtSyncStream* stream) {
  OrtStatus* status = check_stream(stream, "an allocation");
  control.stream_allocations++;
  if (status == NULL) return device_alloc(this_, size);
  api->ReleaseStatus(status);
  return NULL;
}

static void ORT_API_CALL device_free(OrtAllocator* this_, void* p) {
  (void)this_;
  if (p == NULL) return;
  control.live_blocks--;
  free((Header*)flip(p) - 1);
}

static const OrtMemoryInfo* ORT_API_CALL device_info(const OrtAllocator* this_) {
  return memories[this_ - allocators];
}

static OrtStatus* ORT_API_CALL create_allocator(OrtEpFactory* this_, const OrtMemoryInfo* info,
                                                const OrtKeyValuePairs* options, OrtAllocator** allocator) {
  int difference = 0;
  (void)this_, (void)options;
  TRY(api->CompareMemoryInfo(info, memories[0], &difference));
  *allocator = &allocators[difference != 0];
  return NULL;
}

static void ORT_API_CALL release_allocator(OrtEpFactory* this_, OrtAllocator* allocator) {
  (void)this_, (void)allocator;
}

/* ---- Copies ---- */

static bool is_ours(const OrtMemoryDevice* device) {
  return ep_api->MemoryDevice_AreEqual(device, ep_api->MemoryInfo_GetMemoryDevice(memories[0])) ||
         ep_api->MemoryDevice_AreEqual(device, ep_api->MemoryInfo_GetMemoryDevice(memories[1]));
}

static bool ORT_API_CALL can_copy(const OrtDataTransferImpl* this_, const OrtMemoryDevice* from,
                                  const OrtMemoryDevice* to) {
  (void)this_;
  return (is_ours(from) && ep_api->MemoryDevice_GetDeviceType(to) == OrtMemoryInfoDeviceType_CPU) ||
         (is_ours(to) && ep_api->MemoryDevice_GetDeviceType(from) == OrtMemoryInfoDeviceType_CPU);
}

static OrtStatus* ORT_API_CALL copy_tensors(OrtDataTransferImpl* this_, const OrtValue** from, OrtValue** to,
                                            OrtSyncStream** streams, size_t count) {
  (void)this_;
  for (size_t i = 0; i < count; i++) {
    if (streams != NULL) TRY(check_stream(streams[i], "a copy"));
    control.copies_with_stream += streams != NULL;
    const void* source = NULL;
    void* target = NULL;
    size_t size = 0;
    TRY(api->GetTensorData(from[i], &source));
    TRY(api->GetTensorMutableData(to[i], &target));
    TRY(api->GetTensorSizeInBytes(from[i], &size));
    bool is_upload = is_device_address(target);
    if (is_upload == is_device_address(source))
      return api->CreateStatus(ORT_EP_FAIL, EP_NAME ": a copy that leads nowhere");
    *(is_upload ? &control.copies_to_device : &control.copies_to_host) += 1;
    if (is_upload) control.last_uploaded = source;
    memcpy(is_upload ? flip(target) : target, is_upload ? source : flip(source), size);
  }
  return NULL;
}

static void ORT_API_CALL release_transfer(OrtDataTransferImpl* this_) {
  (void)this_;
}

static OrtStatus* ORT_API_CALL create_transfer(OrtEpFactory* this_, OrtDataTransferImpl** transfer) {
  static OrtDataTransferImpl impl = {.ort_version_supported = ORT_API_VERSION,
                                     .Release = release_transfer,
                                     .CanCopy = can_copy,
                                     .CopyTensors = copy_tensors};
  (void)this_;
  *transfer = strcmp(mode, "no-copies") != 0 ? &impl : NULL;
  return NULL;
}

/* ---- Kernels ---- */

typedef struct Tensor {
  const int64_t* dims;
  size_t rank, size;
  const void* data;
} Tensor;

static OrtStatus* read_input(const OrtKernelContext* context, size_t index, bool on_device, Tensor* tensor) {
  const OrtValue* value = NULL;
  ONNXTensorElementDataType type;
  TRY(api->KernelContext_GetInput(context, index, &value));
  TRY(api->GetTensorElementTypeAndShapeDataReference(value, &type, &tensor->dims, &tensor->rank));
  TRY(api->GetTensorSizeInBytes(value, &tensor->size));
  TRY(api->GetTensorData(value, &tensor->data));
  if (tensor->size != 0 && is_device_address(tensor->data) != on_device)
    return api->CreateStatus(ORT_EP_FAIL, EP_NAME ": an input is in the wrong memory");
  if (on_device) tensor->data = flip(tensor->data);
  return NULL;
}

static OrtStatus* make_output(OrtKernelContext* context, const int64_t* dims, size_t rank, bool on_device,
                              void** data) {
  OrtValue* value = NULL;
  TRY(api->KernelContext_GetOutput(context, 0, dims, rank, &value));
  TRY(api->GetTensorMutableData(value, data));
  if (is_device_address(*data) != on_device)
    return api->CreateStatus(ORT_EP_FAIL, EP_NAME ": the output is in the wrong memory");
  control.kernels_run++;
  if (!on_device) return NULL;
  *data = flip(*data);
  Header* header = (Header*)*data - 1;
  control.second_hand += header->user != NULL && strcmp(header->user, EP_NAME) != 0;
  header->user = EP_NAME;
  return NULL;
}

static float apply(float x) {
  if (strcmp(KERNEL_OP, "Neg") == 0) return -x;
  return x > 0 ? x : 0;
}

/* Memory of the device for the kernel's own use, on its stream. */
static OrtStatus* use_scratch(OrtKernelContext* context) {
  OrtAllocator* allocator = NULL;
  void *scratch = NULL, *resource = &scratch;
  TRY(api->KernelContext_GetScratchBuffer(context, memories[0], 1000, &scratch));
  TRY(api->KernelContext_GetAllocator(context, memories[0], &allocator));
  if (!is_device_address(scratch)) return api->CreateStatus(ORT_EP_FAIL, EP_NAME ": no scratch memory");
  memset(flip(scratch), 1, 1000);
  allocator->Free(allocator, scratch);
  if (!has_streams()) return NULL;
  TRY(api->KernelContext_GetResource(context, 1, 0, &resource));
  return resource == NULL ? NULL : api->CreateStatus(ORT_EP_FAIL, EP_NAME ": a resource of nobody's");
}

/* Relu, or what KERNEL_OP says. */
static OrtStatus* ORT_API_CALL elementwise(OrtKernelImpl* this_, OrtKernelContext* context) {
  Tensor x;
  OrtSyncStream* stream = NULL;
  void* out = NULL;
  (void)this_;
  TRY(api->KernelContext_GetSyncStream(context, &stream));
  TRY(check_stream(stream, "the kernel"));
  TRY(use_scratch(context));
  TRY(read_input(context, 0, true, &x));
  TRY(make_output(context, x.dims, x.rank, true, &out));
  control.in_place += out == x.data;
  for (size_t i = 0; i < x.size / sizeof(float); i++) ((float*)out)[i] = apply(((const float*)x.data)[i]);
  return NULL;
}

static OrtStatus* ORT_API_CALL shape(OrtKernelImpl* this_, OrtKernelContext* context) {
  Tensor x;
  void* out = NULL;
  (void)this_;
  TRY(read_input(context, 0, true, &x));
  int64_t rank = (int64_t)x.rank;
  TRY(make_output(context, &rank, 1, false, &out));
  if (rank != 0) memcpy(out, x.dims, x.rank * sizeof *x.dims);
  return NULL;
}

static OrtStatus* ORT_API_CALL reshape(OrtKernelImpl* this_, OrtKernelContext* context) {
  Tensor x, wanted;
  void* out = NULL;
  (void)this_;
  TRY(read_input(context, 0, true, &x));
  TRY(read_input(context, 1, false, &wanted));
  TRY(make_output(context, wanted.data, wanted.size / sizeof(int64_t), true, &out));
  memcpy(out, x.data, x.size);
  return NULL;
}

static void ORT_API_CALL release_kernel(OrtKernelImpl* this_) {
  (void)this_;
}

/* The state is the kernel: one for all nodes. */
static OrtStatus* ORT_API_CALL give_kernel(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  (void)info;
  *out = state;
  return NULL;
}

static OrtStatus* add_kernel(const char* op_type, int version, const char* constraint,
                             ONNXTensorElementDataType type, OrtKernelImpl* kernel, int host_input,
                             bool host_output) {
  OrtKernelDefBuilder* builder = NULL;
  OrtKernelDef* def = NULL;
  const OrtDataType* types[1];
  int first = 0;
  TRY(ep_api->CreateKernelDefBuilder(&builder));
  TRY(ep_api->GetTensorDataType(type, &types[0]));
  TRY(ep_api->KernelDefBuilder_SetOperatorType(builder, op_type));
  TRY(ep_api->KernelDefBuilder_SetDomain(builder, ""));
  TRY(ep_api->KernelDefBuilder_SetSinceVersion(builder, version, 25));
  TRY(ep_api->KernelDefBuilder_SetExecutionProvider(builder, EP_NAME));
  TRY(ep_api->KernelDefBuilder_AddTypeConstraint(builder, constraint, types, 1));
  if (host_input >= 0)
    TRY(ep_api->KernelDefBuilder_SetInputMemType(builder, (size_t)host_input, OrtMemTypeCPUInput));
  if (kernel->Compute == elementwise)
    TRY(ep_api->KernelDefBuilder_AddInputOutputMutableAliases(builder, &first, &first, 1));
  if (host_output) TRY(ep_api->KernelDefBuilder_SetOutputMemType(builder, 0, OrtMemTypeCPUOutput));
  TRY(ep_api->KernelDefBuilder_Build(builder, &def));
  TRY(ep_api->KernelRegistry_AddKernel(registry, def, give_kernel, kernel));
  ep_api->ReleaseKernelDef(def);
  ep_api->ReleaseKernelDefBuilder(builder);
  return NULL;
}

#define KERNEL(compute) \
  { .ort_version_supported = ORT_API_VERSION, .Compute = compute, .Release = release_kernel }

static OrtStatus* fill_registry(void) {
  static OrtKernelImpl elementwise_kernel = KERNEL(elementwise), shape_kernel = KERNEL(shape),
                       reshape_kernel = KERNEL(reshape);
  TRY(ep_api->CreateKernelRegistry(&registry));
  TRY(add_kernel(KERNEL_OP, 6, "T", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &elementwise_kernel, -1, false));
  TRY(add_kernel("Shape", 13, "T", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &shape_kernel, -1, true));
  return add_kernel("Reshape", 13, "T", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &reshape_kernel, 1, false);
}

/* ---- The EP ---- */

static const char* ORT_API_CALL ep_name(const OrtEp* this_) {
  (void)this_;
  return EP_NAME;
}

static OrtStatus* ORT_API_CALL get_registry(OrtEp* this_, const OrtKernelRegistry** out) {
  (void)this_;
  *out = registry;
  return NULL;
}

static OrtStatus* ORT_API_CALL get_capability(OrtEp* this_, const OrtGraph* graph,
                                              OrtEpGraphSupportInfo* support) {
  const OrtNode* nodes[32];
  size_t count = 0;
  (void)this_;
  TRY(api->Graph_GetNumNodes(graph, &count));
  if (count > 32) return api->CreateStatus(ORT_NOT_IMPLEMENTED, "more than 32 nodes");
  TRY(api->Graph_GetNodes(graph, nodes, count));
  for (size_t i = 0; i < count; i++) {
    const OrtKernelDef* def = NULL;
    TRY(ep_api->EpGraphSupportInfo_LookUpKernel(support, nodes[i], &def));
    if (def != NULL) TRY(ep_api->EpGraphSupportInfo_AddSingleNode(support, nodes[i]));
  }
  return NULL;
}

static OrtStatus* ORT_API_CALL get_default_device(const OrtEp* this_, const OrtMemoryDevice** device) {
  (void)this_;
  *device = ep_api->MemoryInfo_GetMemoryDevice(memories[strcmp(mode, "second") == 0 ? 1 : 2]);
  return NULL;
}

static OrtStatus* ORT_API_CALL is_concurrent(OrtEp* this_, bool* out) {
  (void)this_;
  *out = true;
  return NULL;
}

/* ---- The factory ---- */

static const char* ORT_API_CALL factory_name(const OrtEpFactory* this_) {
  (void)this_;
  return EP_NAME;
}

static const char* ORT_API_CALL factory_version(const OrtEpFactory* this_) {
  (void)this_;
  return "1.0.0";
}

static OrtStatus* ORT_API_CALL get_devices(OrtEpFactory* this_, const OrtHardwareDevice* const* devices,
                                           size_t num_devices, OrtEpDevice** ep_devices, size_t max,
                                           size_t* count) {
  size_t wanted = mode[0] != '\0' && !has_streams() ? 2 : 1;
  const OrtHardwareDevice* cpu = NULL;
  for (size_t i = 0; i < num_devices; i++) {
    if (api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU) cpu = devices[i];
  }
  for (*count = 0; cpu != NULL && *count < wanted && *count < max; ++*count) {
    TRY(ep_api->CreateEpDevice(this_, cpu, NULL, NULL, &ep_devices[*count]));
    TRY(ep_api->EpDevice_AddAllocatorInfo(ep_devices[*count], memories[*count]));
  }
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_sync(OrtEp* this_) {
  (void)this_;
  control.syncs++;
  return NULL;
}

static OrtStatus* ORT_API_CALL create_ep(OrtEpFactory* this_, const OrtHardwareDevice* const* devices,
                                         const OrtKeyValuePairs* const* metadata, size_t count,
                                         const OrtSessionOptions* options, const OrtLogger* logger,
                                         OrtEp** out) {
  static OrtEp ep;
  (void)this_, (void)devices, (void)metadata, (void)count, (void)options, (void)logger;
  ep = (OrtEp){.ort_version_supported = ORT_API_VERSION,
               .GetName = ep_name,
               .GetCapability = get_capability,
               .GetKernelRegistry = get_registry,
               .Sync = ep_sync,
               .IsConcurrentRunSupported = is_concurrent};
  if (strcmp(mode, "second") == 0 || strcmp(mode, "foreign") == 0)
    ep.GetDefaultMemoryDevice = get_default_device;
  *out = &ep;
  return NULL;
}

static void ORT_API_CALL release_ep(OrtEpFactory* this_, OrtEp* ep) {
  (void)this_, (void)ep;
}

OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* api_base,
                                          const OrtLogger* logger, OrtEpFactory** factories, size_t max,
                                          size_t* count) {
  static OrtEpFactory factory = {.ort_version_supported = ORT_API_VERSION,
                                 .GetName = factory_name,
                                 .GetVendor = factory_name,
                                 .GetVersion = factory_version,
                                 .GetSupportedDevices = get_devices,
                                 .CreateEp = create_ep,
                                 .ReleaseEp = release_ep,
                                 .CreateAllocator = create_allocator,
                                 .ReleaseAllocator = release_allocator,
                                 .CreateDataTransfer = create_transfer,
                                 .IsStreamAware = is_stream_aware,
                                 .CreateSyncStreamForDevice = create_stream};
  static const char* const names[] = {"Kernels 0", "Kernels 1", "Kernels 2"};
  const char* dot = strchr(registered_name, '.');
  (void)logger, (void)max;
  api = api_base->GetApi(ORT_API_VERSION);
  ep_api = api->GetEpApi();
  snprintf(mode, sizeof mode, "%s", dot != NULL ? dot + 1 : "");
  for (uint32_t i = 0; i < 3; i++)
    TRY(api->CreateMemoryInfo_V2(names[i], OrtMemoryInfoDeviceType_GPU, 0xbe58, i,
                                 OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &memories[i]));
  for (int i = 0; i < 2; i++)
    allocators[i] = (OrtAllocator){.version = has_streams() ? 23 : 22,
                                   .Alloc = device_alloc,
                                   .Free = device_free,
                                   .Info = device_info,
                                   .AllocOnStream = device_alloc_on_stream};
  TRY(fill_registry());
  factories[0] = &factory;
  *count = 1;
  return NULL;
}

OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  (void)factory;
  ep_api->ReleaseKernelRegistry(registry);
  for (int i = 0; i < 3; i++) api->ReleaseMemoryInfo(memories[i]);
  return NULL;
}
