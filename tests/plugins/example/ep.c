/* The EP of a session: which nodes it takes, and what it makes of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"

#define MAX_NODES 64

typedef struct Ep {
  OrtEp base;
  Factory* factory;
} Ep;

/* A compiled node. */
typedef struct Program {
  OrtNodeComputeInfo base;
  const Factory* factory;
  char op;
  void* state; /* that CreateState gave */
} Program;

typedef struct Profiler {
  OrtEpProfilerImpl base;
  const Factory* factory;
  int events; /* begun */
} Profiler;

static const char* ORT_API_CALL ep_get_name(const OrtEp* this_ptr) {
  (void)this_ptr;
  return EP_NAME;
}

/* ---- Claims ---- */

typedef struct Shape {
  size_t rank;
  int64_t dims[8];
} Shape;

/* False unless it is a float tensor whose dimensions are all known. */
static bool read_static_shape(const OrtApi* api, const OrtValueInfo* value, Shape* out) {
  const OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  OrtStatus* status = NULL;
  if (FAILED(status, api->GetValueInfoTypeInfo(value, &type)) ||
      FAILED(status, api->CastTypeInfoToTensorInfo(type, &tensor)) || tensor == NULL ||
      FAILED(status, api->GetTensorElementType(tensor, &element)) ||
      FAILED(status, api->GetDimensionsCount(tensor, &out->rank)) || out->rank > 8 ||
      FAILED(status, api->GetDimensions(tensor, out->dims, out->rank))) {
    api->ReleaseStatus(status);
    return false;
  }
  bool is_static = element == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT && api->TensorTypeAndShape_HasShape(tensor);
  for (size_t i = 0; i < out->rank && is_static; i++) is_static = out->dims[i] >= 0;
  return is_static;
}

static bool is_compilable(const OrtApi* api, const OrtNode* node) {
  const OrtValueInfo* inputs[2] = {NULL, NULL};
  size_t count = 0;
  Shape a, b;
  api->ReleaseStatus(api->Node_GetNumInputs(node, &count));
  if (count != 2) return false;
  api->ReleaseStatus(api->Node_GetInputs(node, inputs, 2));
  if (!read_static_shape(api, inputs[0], &a) || !read_static_shape(api, inputs[1], &b)) return false;
  return a.rank == b.rank && memcmp(a.dims, b.dims, a.rank * sizeof *a.dims) == 0;
}

static OrtStatus* consider(Ep* ep, const OrtNode* node, OrtEpGraphSupportInfo* info) {
  const OrtApi* api = ep->factory->api;
  const OrtEpApi* ep_api = ep->factory->ep_api;
  const char* op = NULL;
  RETURN_IF_FAILED(api->Node_GetOperatorType(node, &op));
  if (strcmp(op, "Relu") == 0) {
    const OrtKernelDef* def = NULL;
    RETURN_IF_FAILED(ep_api->EpGraphSupportInfo_LookUpKernel(info, node, &def));
    return def != NULL ? ep_api->EpGraphSupportInfo_AddSingleNode(info, node) : NULL;
  }
  if ((strcmp(op, "Mul") != 0 && strcmp(op, "Add") != 0) || !is_compilable(api, node)) return NULL;
  OrtNodeFusionOptions options = {.ort_version_supported = ORT_API_VERSION,
                                  .drop_constant_initializers = false};
  return ep_api->EpGraphSupportInfo_AddNodesToFuse(info, &node, 1, &options);
}

static OrtStatus* ORT_API_CALL ep_get_capability(OrtEp* this_ptr, const OrtGraph* graph,
                                                 OrtEpGraphSupportInfo* info) {
  Ep* ep = (Ep*)this_ptr;
  const OrtApi* api = ep->factory->api;
  const OrtNode* nodes[MAX_NODES];
  size_t count = 0;
  RETURN_IF_FAILED(api->Graph_GetNumNodes(graph, &count));
  if (count > MAX_NODES) return fail(ep->factory, "too many nodes");
  RETURN_IF_FAILED(api->Graph_GetNodes(graph, nodes, count));
  for (size_t i = 0; i < count; i++) RETURN_IF_FAILED(consider(ep, nodes[i], info));
  return NULL;
}

/* ---- Compiled nodes ---- */

static OrtStatus* ORT_API_CALL program_create_state(OrtNodeComputeInfo* this_ptr,
                                                    OrtNodeComputeContext* context, void** state) {
  Program* program = (Program*)this_ptr;
  (void)context;
  *state = program->state = program;
  return NULL;
}

static OrtStatus* ORT_API_CALL program_compute(OrtNodeComputeInfo* this_ptr, void* state,
                                               OrtKernelContext* context) {
  const Program* program = (const Program*)this_ptr;
  if (state != program->state) return fail(program->factory, "a STRANGER's state");
  return compute(program->factory, context, program->op);
}

static void ORT_API_CALL program_release_state(OrtNodeComputeInfo* this_ptr, void* state) {
  if (state != ((Program*)this_ptr)->state) say("ReleaseState of a STRANGER");
}

#define PROGRAM_SLOT(slot, function) .slot = SLOT("OrtNodeComputeInfo", #slot, function)

static OrtStatus* compile_one(Ep* ep, const OrtGraph* graph, OrtNodeComputeInfo** out) {
  const OrtApi* api = ep->factory->api;
  const OrtNode* node = NULL;
  const char* op = NULL;
  RETURN_IF_FAILED(api->Graph_GetNodes(graph, &node, 1));
  RETURN_IF_FAILED(api->Node_GetOperatorType(node, &op));
  Program* program = calloc(1, sizeof *program);
  if (program == NULL) return fail(ep->factory, "no memory for a compiled node");
  program->base = (OrtNodeComputeInfo){.ort_version_supported = ORT_API_VERSION,
                                       PROGRAM_SLOT(CreateState, program_create_state),
                                       PROGRAM_SLOT(Compute, program_compute),
                                       PROGRAM_SLOT(ReleaseState, program_release_state)};
  program->factory = ep->factory;
  program->op = strcmp(op, "Mul") == 0 ? '*' : '+';
  *out = &program->base;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_compile(OrtEp* this_ptr, const OrtGraph** graphs, const OrtNode** fused,
                                          size_t count, OrtNodeComputeInfo** infos, OrtNode** contexts) {
  (void)fused, (void)contexts;
  for (size_t i = 0; i < count; i++) RETURN_IF_FAILED(compile_one((Ep*)this_ptr, graphs[i], &infos[i]));
  say("Compile %zu nodes", count);
  return NULL;
}

static void ORT_API_CALL ep_release_infos(OrtEp* this_ptr, OrtNodeComputeInfo** infos, size_t count) {
  (void)this_ptr;
  for (size_t i = 0; i < count; i++) free(infos[i]);
}

/* ---- Profiles ---- */

static void ORT_API_CALL profiler_release(OrtEpProfilerImpl* this_ptr) {
  say("OrtEpProfilerImpl::Release");
  free(this_ptr);
}

static OrtStatus* ORT_API_CALL profiler_start(OrtEpProfilerImpl* this_ptr, int64_t offset) {
  (void)this_ptr;
  say("OrtEpProfilerImpl::StartProfiling%s", offset < 0 ? " before the profile" : "");
  return NULL;
}

static OrtStatus* ORT_API_CALL profiler_start_event(OrtEpProfilerImpl* this_ptr, uint64_t id) {
  (void)id;
  ((Profiler*)this_ptr)->events++;
  return NULL;
}

static OrtStatus* ORT_API_CALL profiler_stop_event(OrtEpProfilerImpl* this_ptr, uint64_t id,
                                                   const OrtProfilingEvent* event) {
  (void)this_ptr, (void)id, (void)event;
  return NULL;
}

static OrtStatus* ORT_API_CALL profiler_end(OrtEpProfilerImpl* this_ptr,
                                            OrtProfilingEventsContainer* events) {
  const Profiler* profiler = (const Profiler*)this_ptr;
  const OrtEpApi* ep_api = profiler->factory->ep_api;
  OrtProfilingEvent* event = NULL;
  say("OrtEpProfilerImpl::EndProfiling %s events", profiler->events > 0 ? "after" : "without");
  RETURN_IF_FAILED(ep_api->CreateProfilingEvent(OrtProfilingEventCategory_KERNEL, 1, 1, "example_event", 1, 1,
                                                NULL, NULL, 0, &event));
  const OrtProfilingEvent* added = event;
  OrtStatus* status = ep_api->ProfilingEventsContainer_AddEvents(events, &added, 1);
  ep_api->ReleaseProfilingEvent(event);
  return status;
}

#define PROFILER_SLOT(slot, function) .slot = SLOT("OrtEpProfilerImpl", #slot, function)

static OrtStatus* ORT_API_CALL ep_create_profiler(OrtEp* this_ptr, OrtEpProfilerImpl** out) {
  Ep* ep = (Ep*)this_ptr;
  Profiler* profiler = calloc(1, sizeof *profiler);
  if (profiler == NULL) return fail(ep->factory, "no memory for a profiler");
  profiler->base = (OrtEpProfilerImpl){.ort_version_supported = ORT_API_VERSION,
                                       PROFILER_SLOT(Release, profiler_release),
                                       PROFILER_SLOT(StartProfiling, profiler_start),
                                       PROFILER_SLOT(StartEvent, profiler_start_event),
                                       PROFILER_SLOT(StopEvent, profiler_stop_event),
                                       PROFILER_SLOT(EndProfiling, profiler_end)};
  profiler->factory = ep->factory;
  say("OrtEp::CreateProfiler");
  *out = &profiler->base;
  return NULL;
}

/* ---- Other slots ---- */

static OrtStatus* ORT_API_CALL ep_create_allocator(OrtEp* this_ptr, const OrtMemoryInfo* memory,
                                                   OrtAllocator** out) {
  return memory_create_allocator(((Ep*)this_ptr)->factory, memory, NULL, "OrtEp", out);
}

static OrtStatus* ORT_API_CALL ep_create_stream(OrtEp* this_ptr, const OrtMemoryDevice* device,
                                                OrtSyncStreamImpl** out) {
  return stream_create(((Ep*)this_ptr)->factory, device, "OrtEp", out);
}

static OrtStatus* ORT_API_CALL ep_get_kernels(OrtEp* this_ptr, const OrtKernelRegistry** out) {
  *out = ((Ep*)this_ptr)->factory->kernels;
  return NULL;
}

static OrtStatus* ORT_API_CALL ep_sync(OrtEp* this_ptr) {
  say("OrtEp::Sync");
  return has("sync-fails") ? fail(((Ep*)this_ptr)->factory, "the device is lost") : NULL;
}

#define EP_SLOT(slot, function) .slot = SLOT("OrtEp", #slot, function)

OrtStatus* ep_create(Factory* factory, const OrtLogger* logger, OrtEp** out) {
  Ep* ep = calloc(1, sizeof *ep);
  if (ep == NULL) return fail(factory, "no memory for an EP");
  RETURN_IF_FAILED(factory->api->Logger_LogMessage(logger, ORT_LOGGING_LEVEL_VERBOSE, "an EP is made",
                                                   __FILE__, __LINE__, __func__));
  ep->base = (OrtEp){.ort_version_supported = ORT_API_VERSION,
                     EP_SLOT(GetName, ep_get_name),
                     EP_SLOT(GetCapability, ep_get_capability),
                     EP_SLOT(Compile, ep_compile),
                     EP_SLOT(ReleaseNodeComputeInfos, ep_release_infos),
                     EP_SLOT(CreateAllocator, ep_create_allocator),
                     EP_SLOT(CreateSyncStreamForDevice, ep_create_stream),
                     EP_SLOT(GetKernelRegistry, ep_get_kernels),
                     EP_SLOT(Sync, ep_sync),
                     EP_SLOT(CreateProfiler, ep_create_profiler)};
  ep->factory = factory;
  *out = &ep->base;
  return NULL;
}

void ep_release(OrtEp* ep) {
  free(ep);
}
