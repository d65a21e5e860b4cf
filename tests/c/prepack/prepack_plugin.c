/* An EP library whose kernels pack weights as a test tells them (prepack_plugin.h). Kernels: Mul, which
 * packs, and Add, which has no PrePackWeight. Fused: Sub, and If, whose result is its last input, unless it
 * has the host's kernel. All over float tensors of equal shapes. */
#include "prepack_plugin.h"

#include <stdlib.h>
#include <string.h>

#define TRY(call)                              \
  do {                                         \
    OrtStatus* try_status = (call);            \
    if (try_status != NULL) return try_status; \
  } while (0)

static PackControl control;
static const OrtApi* api;
static const OrtEpApi* ep_api;
static const char ep_name[] = "PrepackEp";

ORT_ABI_EXPORT PackControl* prepack_plugin_control(void);
ORT_ABI_EXPORT PackControl* prepack_plugin_control(void) {
  return &control;
}

/* ---- Tensors ---- */

typedef struct Floats {
  const float* data;
  const int64_t* dims;
  size_t rank, count;
} Floats;

static OrtStatus* read_floats(const OrtValue* value, Floats* out) {
  ONNXTensorElementDataType type;
  const void* data = NULL;
  TRY(api->GetTensorElementTypeAndShapeDataReference(value, &type, &out->dims, &out->rank));
  TRY(api->GetTensorData(value, &data));
  out->data = data;
  out->count = 1;
  for (size_t i = 0; i < out->rank; i++) out->count *= (size_t)out->dims[i];
  return NULL;
}

static OrtStatus* read_input(const OrtKernelContext* context, size_t index, Floats* out) {
  const OrtValue* value = NULL;
  TRY(api->KernelContext_GetInput(context, index, &value));
  return read_floats(value, out);
}

static OrtStatus* make_output(OrtKernelContext* context, const Floats* like, float** out) {
  OrtValue* value = NULL;
  void* data = NULL;
  TRY(api->KernelContext_GetOutput(context, 0, like->dims, like->rank, &value));
  TRY(api->GetTensorMutableData(value, &data));
  *out = data;
  return NULL;
}

/* ---- Kernels ---- */

typedef struct Kernel {
  OrtKernelImpl base;
  bool is_mul;
  const float *head, *tail; /* the packed weight, reversed; the second half may be in a buffer of its own */
  float *own_head, *own_tail;
  size_t count;
  OrtAllocator* allocator;
} Kernel;

/* Element i of the packed weight. */
static float packed_element(const Kernel* kernel, size_t i) {
  size_t at = kernel->count - 1 - i;
  if (kernel->tail == NULL || at < kernel->count / 2) return kernel->head[at];
  return kernel->tail[at - kernel->count / 2];
}

static OrtStatus* compute_mul(const Kernel* kernel, OrtKernelContext* context) {
  Floats a, b = {0};
  float* out = NULL;
  const OrtValue* weight = NULL;
  TRY(api->KernelContext_GetInput(context, 1, &weight));
  int has_original = 0;
  TRY(api->HasValue(weight, &has_original));
  if (!control.is_threaded) control.has_original = has_original;
  if (control.on_compute != NULL) TRY(control.on_compute(context));
  TRY(read_input(context, 0, &a));
  if (kernel->head == NULL) TRY(read_floats(weight, &b));
  TRY(make_output(context, &a, &out));
  for (size_t i = 0; i < a.count; i++)
    out[i] = a.data[i] * (kernel->head != NULL ? packed_element(kernel, i) : b.data[i]);
  return NULL;
}

static OrtStatus* ORT_API_CALL compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  const Kernel* kernel = (const Kernel*)this_ptr;
  if (kernel->is_mul) return compute_mul(kernel, context);
  Floats a, b;
  float* out = NULL;
  TRY(read_input(context, 0, &a));
  TRY(read_input(context, 1, &b));
  TRY(make_output(context, &a, &out));
  for (size_t i = 0; i < a.count; i++) out[i] = a.data[i] + b.data[i];
  return NULL;
}

static void ORT_API_CALL release_kernel(OrtKernelImpl* this_ptr) {
  Kernel* kernel = (Kernel*)this_ptr;
  if (kernel->own_head != NULL) kernel->allocator->Free(kernel->allocator, kernel->own_head);
  if (kernel->own_tail != NULL) kernel->allocator->Free(kernel->allocator, kernel->own_tail);
  atomic_fetch_sub(&control.kernels, 1);
  free(kernel);
}

/* ---- Packing ---- */

#define PADDING 8

static OrtStatus* allocate(OrtAllocator* allocator, size_t size, void** out) {
  *out = allocator->Alloc(allocator, size);
  if (*out == NULL) return api->CreateStatus(ORT_FAIL, "no memory to pack into");
  int place = atomic_fetch_add(&control.buffer_count, 1);
  if (place < MAX_BUFFERS) control.buffers[place] = *out;
  return NULL;
}

/* Calls StoreWeightData in every wrong way; none may take the buffer. */
static OrtStatus* store_wrongly(OrtSharedPrePackedWeightCache* cache, void* buffer, size_t size) {
  void* nothing = NULL;
  void* twice[] = {buffer, buffer};
  size_t sizes[] = {size, size};
  OrtStatus* refused[] = {
      ep_api->SharedPrePackedWeightCache_StoreWeightData(NULL, &buffer, &size, 1),
      ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, NULL, &size, 1),
      ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, &buffer, NULL, 1),
      ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, &buffer, &size, 0),
      ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, &nothing, &size, 1),
      ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, twice, sizes, 2),
  };
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    if (refused[i] == NULL) continue;
    if (api->GetErrorCode(refused[i]) == ORT_INVALID_ARGUMENT) control.store_refusals++;
    api->ReleaseStatus(refused[i]);
  }
  return NULL;
}

/* The buffers of one packed weight. */
typedef struct Packed {
  void* data[3];
  size_t sizes[3];
  size_t count;
} Packed;

static void free_packed(OrtAllocator* allocator, Packed* packed) {
  for (size_t i = 0; i < packed->count; i++) {
    if (packed->data[i] != NULL) allocator->Free(allocator, packed->data[i]);
  }
  packed->count = 0;
}

/* *gives* the buffers (caller releases with free_packed). */
static OrtStatus* pack(const Floats* weight, OrtAllocator* allocator, Packed* out) {
  static _Atomic int salt = 1;
  size_t half = weight->count / 2, padding = control.mode == PACK_PADDED ? PADDING : 0;
  bool is_split = control.mode == PACK_TWO_BUFFERS;
  Packed packed = {.sizes = {(weight->count + padding) * sizeof(float)}, .count = 1};
  if (is_split)
    packed = (Packed){.sizes = {half * sizeof(float), (weight->count - half) * sizeof(float)}, .count = 3};
  for (size_t i = 0; i < packed.count && packed.sizes[i] != 0; i++) {
    OrtStatus* status = allocate(allocator, packed.sizes[i], &packed.data[i]);
    if (status == NULL) continue;
    free_packed(allocator, &packed);
    return status;
  }
  for (size_t i = 0; i < weight->count; i++) {
    float* target = packed.data[is_split && i >= half ? 1 : 0];
    target[is_split && i >= half ? i - half : i] = weight->data[weight->count - 1 - i];
  }
  /* What happened to be in memory that nobody wrote to. */
  int garbage = atomic_fetch_add(&salt, 1);
  if (padding != 0) memset((float*)packed.data[0] + weight->count, garbage, padding * sizeof(float));
  *out = packed;
  return NULL;
}

static OrtStatus* store(OrtSharedPrePackedWeightCache* cache, OrtAllocator* allocator, Packed* packed) {
  if (control.mode == PACK_STORE_WRONGLY) TRY(store_wrongly(cache, packed->data[0], packed->sizes[0]));
  if (control.mode == PACK_STORE_TWICE) {
    void* garbage = NULL;
    size_t size = 16;
    TRY(allocate(allocator, size, &garbage));
    OrtStatus* status = ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, &garbage, &size, 1);
    if (status != NULL) allocator->Free(allocator, garbage);
    TRY(status);
  }
  OrtStatus* status =
      ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, packed->data, packed->sizes, packed->count);
  if (status != NULL) return status;
  size_t count = packed->count;
  packed->count = 0; /* the cache's now */
  if (control.mode == PACK_STORE_SAME_TWICE)
    TRY(ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, packed->data, packed->sizes, count));
  if (control.mode == PACK_FAIL_STORED) return api->CreateStatus(ORT_EP_FAIL, "failed after storing");
  return NULL;
}

static OrtStatus* pack_weight(Kernel* kernel, const Floats* weight, OrtAllocator* allocator,
                              OrtSharedPrePackedWeightCache* cache, bool* is_packed) {
  Packed packed = {.count = 0};
  TRY(pack(weight, allocator, &packed));
  OrtStatus* status = NULL;
  if (control.mode == PACK_FAIL) status = api->CreateStatus(ORT_EP_FAIL, "failed to pack");
  bool is_stored = cache != NULL && control.mode != PACK_PRIVATE && status == NULL;
  if (is_stored) status = store(cache, allocator, &packed);
  if (status != NULL) {
    free_packed(allocator, &packed);
    return status;
  }
  kernel->allocator = allocator;
  kernel->count = weight->count;
  if (!is_stored) {
    kernel->head = kernel->own_head = packed.data[0];
    kernel->tail = kernel->own_tail = packed.data[1];
  }
  if (control.mode != PACK_STORE_UNPACKED) *is_packed = true;
  return NULL;
}

static int device_type(const OrtMemoryInfo* memory) {
  OrtMemoryInfoDeviceType type;
  api->MemoryInfoGetDeviceType(memory, &type);
  return (int)type;
}

static OrtStatus* ORT_API_CALL prepack(OrtKernelImpl* this_ptr, const OrtValue* tensor, int input_index,
                                       OrtAllocator* allocator, OrtSharedPrePackedWeightCache* cache,
                                       bool* is_packed) {
  Kernel* kernel = (Kernel*)this_ptr;
  Floats weight;
  atomic_fetch_add(&control.packs, 1);
  if (cache != NULL) atomic_fetch_add(&control.caches, 1);
  if (*is_packed) atomic_fetch_add(&control.preset_true, 1);
  if (allocator == NULL) atomic_fetch_add(&control.null_allocators, 1);
  if (input_index != 1 || allocator == NULL) return NULL;
  if (!control.is_threaded) {
    const OrtMemoryInfo* memory = NULL;
    TRY(api->GetTensorMemoryInfo(tensor, &memory));
    control.tensor_device = device_type(memory);
    control.allocator_device = device_type(allocator->Info(allocator));
    control.tensor = tensor;
    control.cache = cache;
  }
  if (control.mode == PACK_NOTHING) return NULL;
  TRY(read_floats(tensor, &weight));
  return pack_weight(kernel, &weight, allocator, cache, is_packed);
}

static OrtStatus* ORT_API_CALL set_shared(OrtKernelImpl* this_ptr, const void* const* data,
                                          const size_t* sizes, size_t count, int input_index) {
  Kernel* kernel = (Kernel*)this_ptr;
  bool is_split = control.mode == PACK_TWO_BUFFERS;
  int place = atomic_fetch_add(&control.set_shared, 1);
  if (place < MAX_BUFFERS) control.shared[place] = data[0];
  if (control.set_shared_fails) return api->CreateStatus(ORT_EP_FAIL, "wants no shared weight");
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += sizes[i];
  size_t padding = control.mode == PACK_PADDED ? PADDING : 0;
  if (input_index != 1 || count != (is_split ? 3 : 1) || bytes != (kernel->count + padding) * sizeof(float))
    return api->CreateStatus(ORT_EP_FAIL, "these are not the buffers that were stored");
  kernel->head = data[0];
  kernel->tail = is_split ? data[1] : NULL;
  return NULL;
}

static OrtStatus* ORT_API_CALL create_kernel(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  char op[16];
  size_t size = sizeof op;
  (void)state;
  TRY(api->KernelInfo_GetOperatorType(info, op, &size));
  if (strcmp(op, "If") == 0) return ep_api->CreateIfKernel(info, out);
  Kernel* kernel = calloc(1, sizeof *kernel);
  kernel->is_mul = strcmp(op, "Mul") == 0;
  kernel->base.ort_version_supported = control.kernel_version;
  kernel->base.Compute = compute;
  kernel->base.Release = release_kernel;
  kernel->base.PrePackWeight = kernel->is_mul ? prepack : NULL;
  kernel->base.SetSharedPrePackedWeight = control.has_no_set_shared ? NULL : set_shared;
  if (kernel->is_mul && !control.is_threaded) control.kernel_info = info;
  atomic_fetch_add(&control.kernels, 1);
  *out = &kernel->base;
  return NULL;
}

/* ---- Fused nodes ---- */

typedef struct Fused {
  OrtNodeComputeInfo base;
  size_t input_count;
  float* weight; /* own copy of Sub's dropped second input */
} Fused;

static OrtStatus* ORT_API_CALL create_state(OrtNodeComputeInfo* this_ptr, OrtNodeComputeContext* context,
                                            void** state) {
  (void)this_ptr, (void)context;
  *state = NULL;
  return NULL;
}

static OrtStatus* ORT_API_CALL compute_fused(OrtNodeComputeInfo* this_ptr, void* state,
                                             OrtKernelContext* context) {
  const Fused* fused = (const Fused*)this_ptr;
  Floats a, b = {0};
  float* out = NULL;
  (void)state;
  TRY(read_input(context, 0, &a));
  if (fused->weight == NULL) TRY(read_input(context, fused->input_count - 1, &b));
  bool is_if = a.rank == 0;
  TRY(make_output(context, is_if ? &b : &a, &out));
  for (size_t i = 0; i < (is_if ? b.count : a.count); i++) {
    float right = fused->weight != NULL ? fused->weight[i] : b.data[i];
    out[i] = is_if ? right : a.data[i] - right;
  }
  return NULL;
}

static void ORT_API_CALL release_state(OrtNodeComputeInfo* this_ptr, void* state) {
  (void)this_ptr, (void)state;
}

/* The constant second input of a graph's only node, copied. */
static OrtStatus* copy_weight(const OrtGraph* graph, float** out) {
  const OrtNode* node = NULL;
  const OrtValueInfo* inputs[2];
  const OrtValue* value = NULL;
  Floats weight;
  TRY(api->Graph_GetNodes(graph, &node, 1));
  TRY(api->Node_GetInputs(node, inputs, 2));
  TRY(api->ValueInfo_GetInitializerValue(inputs[1], &value));
  TRY(read_floats(value, &weight));
  *out = malloc(weight.count * sizeof(float));
  memcpy(*out, weight.data, weight.count * sizeof(float));
  control.dropped = weight.data;
  return NULL;
}

static OrtStatus* ORT_API_CALL compile(OrtEp* this_ptr, const OrtGraph** graphs, const OrtNode** nodes,
                                       size_t count, OrtNodeComputeInfo** infos, OrtNode** context_nodes) {
  (void)this_ptr, (void)context_nodes;
  for (size_t i = 0; i < count; i++) {
    Fused* fused = calloc(1, sizeof *fused);
    fused->base = (OrtNodeComputeInfo){23, create_state, compute_fused, release_state};
    infos[i] = &fused->base;
    TRY(api->Node_GetNumInputs(nodes[i], &fused->input_count));
    if (control.drops_constants) TRY(copy_weight(graphs[i], &fused->weight));
  }
  return NULL;
}

static void ORT_API_CALL release_infos(OrtEp* this_ptr, OrtNodeComputeInfo** infos, size_t count) {
  (void)this_ptr;
  for (size_t i = 0; i < count; i++) {
    free(((Fused*)infos[i])->weight);
    free(infos[i]);
  }
}

/* ---- The EP ---- */

typedef struct Ep {
  OrtEp base;
  OrtKernelRegistry* registry;
} Ep;

static OrtStatus* claim(OrtEpGraphSupportInfo* support, const OrtNode* node) {
  OrtNodeFusionOptions options = {.ort_version_supported = 23,
                                  .drop_constant_initializers = control.drops_constants};
  const char* op = NULL;
  TRY(api->Node_GetOperatorType(node, &op));
  bool is_branch = strcmp(op, "If") == 0 && control.runs_branches;
  if (strcmp(op, "Mul") == 0 || strcmp(op, "Add") == 0 || is_branch)
    return ep_api->EpGraphSupportInfo_AddSingleNode(support, node);
  if (strcmp(op, "Sub") != 0 && strcmp(op, "If") != 0) return NULL;
  return ep_api->EpGraphSupportInfo_AddNodesToFuse(support, &node, 1, &options);
}

static OrtStatus* ORT_API_CALL get_capability(OrtEp* this_ptr, const OrtGraph* graph,
                                              OrtEpGraphSupportInfo* support) {
  const OrtNode* nodes[256];
  const OrtNode* parent = NULL;
  size_t count = 0;
  (void)this_ptr;
  TRY(api->Graph_GetParentNode(graph, &parent));
  if (parent != NULL && !control.runs_branches) return NULL; /* with the If around it */
  TRY(api->Graph_GetNumNodes(graph, &count));
  TRY(api->Graph_GetNodes(graph, nodes, count));
  for (size_t i = 0; i < count; i++) TRY(claim(support, nodes[i]));
  return NULL;
}

static const char* ORT_API_CALL ep_get_name(const OrtEp* this_ptr) {
  (void)this_ptr;
  return ep_name;
}

static OrtStatus* add_kernel(OrtKernelRegistry* registry, const char* op) {
  OrtKernelDefBuilder* builder = NULL;
  OrtKernelDef* def = NULL;
  OrtStatus* status = ep_api->CreateKernelDefBuilder(&builder);
  if (status == NULL) status = ep_api->KernelDefBuilder_SetOperatorType(builder, op);
  if (status == NULL) status = ep_api->KernelDefBuilder_SetDomain(builder, "");
  if (status == NULL) status = ep_api->KernelDefBuilder_SetSinceVersion(builder, 13, 16);
  if (status == NULL) status = ep_api->KernelDefBuilder_SetExecutionProvider(builder, ep_name);
  if (status == NULL) status = ep_api->KernelDefBuilder_Build(builder, &def);
  if (status == NULL) status = ep_api->KernelRegistry_AddKernel(registry, def, create_kernel, NULL);
  ep_api->ReleaseKernelDefBuilder(builder);
  ep_api->ReleaseKernelDef(def);
  return status;
}

static OrtStatus* ORT_API_CALL get_kernel_registry(OrtEp* this_ptr, const OrtKernelRegistry** out) {
  Ep* ep = (Ep*)this_ptr;
  if (ep->registry == NULL) {
    TRY(ep_api->CreateKernelRegistry(&ep->registry));
    TRY(add_kernel(ep->registry, "Mul"));
    TRY(add_kernel(ep->registry, "Add"));
    TRY(add_kernel(ep->registry, "If"));
  }
  *out = ep->registry;
  return NULL;
}

/* ---- The device ---- */

static OrtMemoryInfo* device_memory; /* NULL: the host's */

static void* ORT_API_CALL device_alloc(OrtAllocator* this_ptr, size_t size) {
  (void)this_ptr;
  return malloc(size);
}

static void ORT_API_CALL device_free(OrtAllocator* this_ptr, void* block) {
  (void)this_ptr;
  free(block);
}

static const OrtMemoryInfo* ORT_API_CALL device_info(const OrtAllocator* this_ptr) {
  (void)this_ptr;
  return device_memory;
}

static OrtStatus* ORT_API_CALL create_allocator(OrtEpFactory* this_ptr, const OrtMemoryInfo* memory,
                                                const OrtKeyValuePairs* options, OrtAllocator** out) {
  static OrtAllocator allocator = {
      .version = 17, .Alloc = device_alloc, .Free = device_free, .Info = device_info};
  (void)this_ptr, (void)memory, (void)options;
  *out = device_memory != NULL ? &allocator : NULL;
  return NULL;
}

static void ORT_API_CALL release_allocator(OrtEpFactory* this_ptr, OrtAllocator* allocator) {
  (void)this_ptr, (void)allocator;
}

static bool ORT_API_CALL can_copy(const OrtDataTransferImpl* this_ptr, const OrtMemoryDevice* from,
                                  const OrtMemoryDevice* to) {
  (void)this_ptr, (void)from, (void)to;
  return true;
}

static OrtStatus* ORT_API_CALL copy_tensors(OrtDataTransferImpl* this_ptr, const OrtValue** from,
                                            OrtValue** to, OrtSyncStream** streams, size_t count) {
  (void)this_ptr, (void)streams;
  for (size_t i = 0; i < count; i++) {
    const void* source = NULL;
    void* target = NULL;
    size_t size = 0;
    TRY(api->GetTensorData(from[i], &source));
    TRY(api->GetTensorMutableData(to[i], &target));
    TRY(api->GetTensorSizeInBytes(from[i], &size));
    memcpy(target, source, size);
  }
  return NULL;
}

static void ORT_API_CALL release_transfer(OrtDataTransferImpl* this_ptr) {
  (void)this_ptr;
}

static OrtStatus* ORT_API_CALL create_transfer(OrtEpFactory* this_ptr, OrtDataTransferImpl** out) {
  static OrtDataTransferImpl transfer = {24, release_transfer, can_copy, copy_tensors};
  (void)this_ptr;
  *out = device_memory != NULL ? &transfer : NULL;
  return NULL;
}

/* ---- The factory ---- */

static OrtStatus* ORT_API_CALL create_ep(OrtEpFactory* this_ptr, const OrtHardwareDevice* const* devices,
                                         const OrtKeyValuePairs* const* metadata, size_t count,
                                         const OrtSessionOptions* options, const OrtLogger* logger,
                                         OrtEp** out) {
  (void)this_ptr, (void)devices, (void)metadata, (void)count, (void)options, (void)logger;
  Ep* ep = calloc(1, sizeof *ep);
  ep->base.ort_version_supported = 24;
  ep->base.GetName = ep_get_name;
  ep->base.GetCapability = get_capability;
  ep->base.Compile = compile;
  ep->base.ReleaseNodeComputeInfos = release_infos;
  ep->base.GetKernelRegistry = get_kernel_registry;
  *out = &ep->base;
  return NULL;
}

static void ORT_API_CALL release_ep(OrtEpFactory* this_ptr, OrtEp* ep) {
  (void)this_ptr;
  ep_api->ReleaseKernelRegistry(((Ep*)ep)->registry);
  free(ep);
}

static const char* ORT_API_CALL factory_name(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return ep_name;
}

static const char* ORT_API_CALL factory_vendor(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "tests";
}

static OrtStatus* ORT_API_CALL get_supported_devices(OrtEpFactory* this_ptr,
                                                     const OrtHardwareDevice* const* devices,
                                                     size_t device_count, OrtEpDevice** ep_devices,
                                                     size_t max_ep_devices, size_t* ep_device_count) {
  (void)max_ep_devices;
  *ep_device_count = 0;
  for (size_t i = 0; i < device_count && *ep_device_count == 0; i++) {
    if (api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
    TRY(ep_api->CreateEpDevice(this_ptr, devices[i], NULL, NULL, &ep_devices[(*ep_device_count)++]));
    if (device_memory != NULL) TRY(ep_api->EpDevice_AddAllocatorInfo(ep_devices[0], device_memory));
  }
  return NULL;
}

static uint32_t ORT_API_CALL factory_vendor_id(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return 0;
}

static const char* ORT_API_CALL factory_version(const OrtEpFactory* this_ptr) {
  (void)this_ptr;
  return "1.0.0";
}

ORT_ABI_EXPORT OrtStatus* ORT_API_CALL CreateEpFactories(const char* registered_name, const OrtApiBase* base,
                                                         const OrtLogger* logger, OrtEpFactory** factories,
                                                         size_t max_factories, size_t* num_factories) {
  static OrtEpFactory factory;
  (void)logger, (void)max_factories;
  api = base->GetApi(ORT_API_VERSION);
  ep_api = api->GetEpApi();
  factory = (OrtEpFactory){.ort_version_supported = 24,
                           .GetName = factory_name,
                           .GetVendor = factory_vendor,
                           .GetSupportedDevices = get_supported_devices,
                           .CreateEp = create_ep,
                           .ReleaseEp = release_ep,
                           .GetVendorId = factory_vendor_id,
                           .GetVersion = factory_version,
                           .CreateAllocator = create_allocator,
                           .ReleaseAllocator = release_allocator,
                           .CreateDataTransfer = create_transfer};
  factories[0] = &factory;
  *num_factories = 1;
  if (strcmp(registered_name, DEVICE_NAME) != 0) return NULL;
  return api->CreateMemoryInfo_V2("Prepack", OrtMemoryInfoDeviceType_NPU, 0xbe57, 0,
                                  OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &device_memory);
}

ORT_ABI_EXPORT OrtStatus* ORT_API_CALL ReleaseEpFactory(OrtEpFactory* factory) {
  (void)factory;
  api->ReleaseMemoryInfo(device_memory);
  device_memory = NULL;
  return NULL;
}
