/* What a kernel sees while it runs. A context belongs to one Run and is used on its thread; its queries may
 * come from any thread that the kernel starts. */
#include <string.h>

#include "api_slots.h"
#include "run/run.h"

OrtStatus* ORT_API_CALL api_KernelContext_GetInputCount(const OrtKernelContext* context, size_t* out) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(out);
  *out = context->step->input_count;
  return NULL;
}

OrtStatus* ORT_API_CALL api_KernelContext_GetOutputCount(const OrtKernelContext* context, size_t* out) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(out);
  *out = context->step->output_count;
  return NULL;
}

/* borrows: during the kernel's call. *out NULL: a missing optional input, or an index past the last one. */
OrtStatus* ORT_API_CALL api_KernelContext_GetInput(const OrtKernelContext* context, size_t index,
                                                   const OrtValue** out) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(out);
  const Step* step = context->step;
  int32_t slot = index < step->input_count ? step->inputs[index] : -1;
  *out = slot >= 0 ? context->frame->values[slot] : NULL;
  return NULL;
}

static OrtStatus* wrong_shape(const OrtKernelContext* context, size_t index, const OrtValue* value,
                              size_t rank, const int64_t* dims) {
  const Unit* unit = context->step->unit;
  StrBuf wanted = {0};
  for (size_t i = 0; i < rank; i++) strbuf_append(&wanted, "%s%lld", i == 0 ? "" : ",", (long long)dims[i]);
  char* has = value_type_text(value);
  OrtStatus* status = status_new(
      ORT_INVALID_ARGUMENT, "EP '%s': node '%s' makes its output '%s' with shape [%s], but it is %s",
      unit->ep->name, unit->node->name, unit->node->outputs[index]->name,
      wanted.failed || wanted.text == NULL ? "" : wanted.text, has != NULL ? has : "of another shape");
  mem_free(has);
  strbuf_release(&wanted);
  return status;
}

/* Where an output is made that the caller of Run gets as it is; NULL: it is copied, or nobody wants it. */
static OrtAllocator* allocator_for_caller(const Frame* frame, const Slot* slot) {
  uint32_t wanted = slot->output >= 0 ? frame->output_place[slot->output] : 0;
  if (wanted == 0) return NULL;
  if (slot->place == 0) return allocator_cpu();
  const OrtMemoryInfo* memory = frame->caller_memories != NULL ? frame->caller_memories[wanted - 1] : NULL;
  const OrtMemoryInfo* made_in = frame->session->places[slot->place].memory;
  if (memory == NULL || !memory_device_equal(&memory->device, &made_in->device)) return NULL;
  return env_shared_allocator(frame->session->env, made_in); /* outlives the session */
}

/* A new value for the caller of Run, or one of the frame's own. */
static OrtStatus* make_output(OrtKernelContext* context, size_t index, int32_t slot, size_t rank,
                              const int64_t* dims) {
  Frame* frame = context->frame;
  const Slot* plan_slot = &frame->plan->slots[slot];
  if (plan_slot->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
    return status_new(ORT_FAIL, "the element type of its output '%s' is unknown", plan_slot->value->name);
  OrtAllocator* allocator = allocator_for_caller(frame, plan_slot);
  if (allocator != NULL)
    return value_new_tensor(allocator, plan_slot->element_type, rank, dims, &frame->values[slot]);
  const int32_t* in_place = context->step->in_place;
  return frame_make(frame, slot, rank, dims, in_place != NULL ? in_place[index] : -1);
}

/* borrows: during the kernel's call. The first call makes the value, later ones give it again. *out NULL:
 * nobody wants the output. */
OrtStatus* ORT_API_CALL api_KernelContext_GetOutput(OrtKernelContext* context, size_t index,
                                                    const int64_t* dim_values, size_t dim_count,
                                                    OrtValue** out) {
  REQUIRE_ARG(context);
  if (dim_count != 0) REQUIRE_ARG(dim_values);
  REQUIRE_ARG(out);
  const Step* step = context->step;
  int32_t slot = index < step->output_count ? step->outputs[index] : -1;
  if (slot < 0) {
    *out = NULL;
    return NULL;
  }
  OrtValue* value = context->frame->values[slot];
  if (value == NULL) {
    TRY(make_output(context, index, slot, dim_count, dim_values));
    value = context->frame->values[slot];
  } else if (value->rank != dim_count ||
             (dim_count != 0 && memcmp(value->dims, dim_values, dim_count * sizeof *dim_values) != 0)) {
    return wrong_shape(context, index, value, dim_count, dim_values);
  }
  *out = value;
  return NULL;
}

/* borrows: the value that the caller of Run gave for this output, or NULL. */
OrtStatus* ORT_API_CALL api_KernelContext_GetPreallocatedOutput(const OrtKernelContext* context,
                                                                size_t output_index, OrtValue** output) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(output);
  const Step* step = context->step;
  if (output_index >= step->output_count)
    return status_new(ORT_INVALID_ARGUMENT,
                      "KernelContext_GetPreallocatedOutput: node '%s' has no output %zu",
                      step->unit->node->name, output_index);
  int32_t slot = step->outputs[output_index];
  const Frame* frame = context->frame;
  int32_t place = slot >= 0 ? frame->plan->slots[slot].output : -1;
  bool is_given = place >= 0 && frame->output_place[place] != 0 &&
                  frame->caller_outputs[frame->output_place[place] - 1] != NULL;
  *output = is_given ? frame->values[slot] : NULL;
  return NULL;
}

/* borrows: during the kernel's call. */
OrtStatus* ORT_API_CALL api_KernelContext_GetLogger(const OrtKernelContext* context,
                                                    const OrtLogger** logger) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(logger);
  *logger = context->logger;
  return NULL;
}

static OrtSyncStream* stream_of(const OrtKernelContext* context) {
  return context->frame->streams[context->step->stream];
}

/* borrows: the EP's own handle of the stream that the kernel runs on; NULL: none, or the device's default. */
OrtStatus* ORT_API_CALL api_KernelContext_GetGPUComputeStream(const OrtKernelContext* context, void** out) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(out);
  OrtSyncStream* stream = stream_of(context);
  *out = stream != NULL ? stream->impl->GetHandle(stream->impl) : NULL;
  return NULL;
}

/* borrows: during the call; NULL: the kernel runs on no stream. */
OrtStatus* ORT_API_CALL api_KernelContext_GetSyncStream(const OrtKernelContext* context,
                                                        OrtSyncStream** out) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(out);
  *out = stream_of(context);
  return NULL;
}

/* Resources are what the streams of EPs built into stock ORT show to custom ops. A plugin's stream cannot
 * have any to borrow: *resource is NULL, as in stock. */
OrtStatus* ORT_API_CALL api_KernelContext_GetResource(const OrtKernelContext* context, int resource_version,
                                                      int resource_id, void** resource) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(resource);
  if (stream_of(context) == NULL)
    return status_new(ORT_INVALID_ARGUMENT,
                      "KernelContext_GetResource: node '%s' of EP '%s' runs on no stream, which could have "
                      "resource %d of version %d",
                      context->step->unit->node->name, context->step->unit->ep->name, resource_id,
                      resource_version);
  *resource = NULL;
  return NULL;
}

static OrtStatus* find_allocator(const OrtSession* session, const OrtMemoryInfo* memory, const char* slot,
                                 OrtAllocator** out) {
  OrtAllocator* allocator =
      memory_device_is_host(&memory->device) ? allocator_cpu() : env_shared_allocator(session->env, memory);
  if (allocator == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "%s: there is no allocator for memory '%s'", slot, memory->name);
  *out = allocator;
  return NULL;
}

/* *place: whose allocator it is; 0: none's. */
static OrtStatus* context_allocator(const OrtKernelContext* context, const OrtMemoryInfo* memory,
                                    const char* slot, OrtAllocator** out, int32_t* place) {
  const OrtSession* session = context->frame->session;
  for (size_t i = 1; i < session->place_count; i++) {
    if (!memory_device_equal(&session->places[i].memory->device, &memory->device)) continue;
    *out = session->places[i].allocator;
    *place = (int32_t)i;
    return NULL;
  }
  *place = 0;
  return find_allocator(session, memory, slot, out);
}

/* borrows: ReleaseAllocator may be called on it, and does nothing. */
OrtStatus* ORT_API_CALL api_KernelContext_GetAllocator(const OrtKernelContext* context,
                                                       const OrtMemoryInfo* mem_info, OrtAllocator** out) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(mem_info);
  REQUIRE_ARG(out);
  int32_t place;
  return context_allocator(context, mem_info, "KernelContext_GetAllocator", out, &place);
}

/* gives (caller releases with ReleaseAllocator, also after the session and the environment). */
OrtStatus* ORT_API_CALL api_CreateAllocator(const OrtSession* session, const OrtMemoryInfo* mem_info,
                                            OrtAllocator** out) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(mem_info);
  REQUIRE_ARG(out);
  OrtAllocator* allocator = NULL;
  TRY(find_allocator(session, mem_info, "CreateAllocator", &allocator));
  return allocator_lend(allocator, out);
}

/* gives (the kernel frees it with the allocator of KernelContext_GetAllocator): memory for work on the
 * kernel's stream. *out NULL: no bytes are asked for. */
OrtStatus* ORT_API_CALL api_KernelContext_GetScratchBuffer(const OrtKernelContext* context,
                                                           const OrtMemoryInfo* mem_info,
                                                           size_t count_or_bytes, void** out) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(mem_info);
  REQUIRE_ARG(out);
  OrtAllocator* allocator = NULL;
  int32_t place = 0;
  TRY(context_allocator(context, mem_info, "KernelContext_GetScratchBuffer", &allocator, &place));
  OrtSyncStream* stream = place != 0 ? stream_for_memory(context->frame, context->step->stream, place) : NULL;
  void* made = count_or_bytes != 0 ? allocator_alloc_on_stream(allocator, count_or_bytes, stream) : NULL;
  if (made == NULL && count_or_bytes != 0)
    return status_new(ORT_RUNTIME_EXCEPTION,
                      "KernelContext_GetScratchBuffer: no memory in '%s' for %zu bytes (EP '%s', node '%s')",
                      mem_info->name, count_or_bytes, context->step->unit->ep->name,
                      context->step->unit->node->name);
  *out = made;
  return NULL;
}

/* Calls `fn` for 0 to total-1 on this thread. */
OrtStatus* ORT_API_CALL api_KernelContext_ParallelFor(const OrtKernelContext* context,
                                                      void (*fn)(void*, size_t), size_t total,
                                                      size_t num_batch, void* usr_data) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(fn);
  (void)num_batch;
  for (size_t i = 0; i < total; i++) fn(usr_data, i);
  return NULL;
}

/* borrows: as long as the session. */
const char* ORT_API_CALL api_NodeComputeContext_NodeName(const OrtNodeComputeContext* context) {
  return context != NULL ? context->node_name : NULL;
}
