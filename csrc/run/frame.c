/* Frames: the memory of one run of a plan. Plans keep idle ones, so that a Run allocates nothing but what it
 * gives to the caller. One thread at a time has a frame. */
#include <string.h>

#include "run/run.h"

/* ---- Getting and putting ---- */

static void place_constants(Frame* frame, const Plan* plan) {
  for (size_t i = 0; i < plan->slot_count; i++) {
    if (plan->slots[i].kind == SLOT_CONSTANT || plan->slots[i].kind == SLOT_INPUT)
      frame->values[i] =
          plan->slots[i].place != 0 ? plan->slots[i].constant : plan->slots[i].value->initializer;
    frame->own_buffer[i] = -1;
  }
}

static Frame* frame_new(OrtSession* session, Plan* plan) {
  Frame* frame = mem_calloc(1, sizeof *frame);
  if (frame == NULL) return NULL;
  frame->session = session;
  frame->plan = plan;
  frame->context.frame = frame;
  frame->values = mem_calloc(plan->slot_count, sizeof *frame->values);
  frame->own = mem_calloc(plan->slot_count, sizeof *frame->own);
  frame->own_buffer = mem_calloc(plan->slot_count, sizeof *frame->own_buffer);
  frame->input_given = mem_calloc(plan->input_count, sizeof *frame->input_given);
  frame->output_place = mem_calloc(plan->output_count, sizeof *frame->output_place);
  frame->copies = mem_calloc(plan->output_count, sizeof *frame->copies);
  frame->is_fetched = mem_calloc(plan->output_count, sizeof *frame->is_fetched);
  frame->staged = mem_calloc(plan->input_count, sizeof *frame->staged);
  frame->streams = mem_calloc(session->stream_count, sizeof *frame->streams);
  frame->own_streams = mem_calloc(session->stream_count, sizeof *frame->own_streams);
  frame->notifications = mem_calloc(plan->notification_count, sizeof *frame->notifications);
  if (frame->values == NULL || frame->own == NULL || frame->own_buffer == NULL ||
      frame->input_given == NULL || frame->output_place == NULL || frame->copies == NULL ||
      frame->is_fetched == NULL || frame->staged == NULL || frame->streams == NULL ||
      frame->own_streams == NULL || frame->notifications == NULL) {
    frame_free(frame);
    return NULL;
  }
  place_constants(frame, plan);
  return frame;
}

static void free_buffer(const Frame* frame, const FrameBuffer* buffer) {
  if (buffer->place == 0)
    mem_free_aligned(buffer->data);
  else
    allocator_free(frame->session->places[buffer->place].allocator, buffer->data);
}

void frame_free(Frame* frame) {
  if (frame == NULL) return;
  for (size_t i = 0; i < frame->buffer_count; i++) free_buffer(frame, &frame->buffers[i]);
  for (size_t i = 0; frame->own_streams != NULL && i < frame->session->stream_count; i++)
    stream_release(frame->own_streams[i]);
  mem_free(frame->is_fetched);
  mem_free(frame->staged);
  mem_free(frame->streams);
  mem_free(frame->own_streams);
  mem_free(frame->notifications);
  mem_free(frame->buffers);
  mem_free(frame->values);
  mem_free(frame->own);
  mem_free(frame->own_buffer);
  mem_free(frame->input_given);
  mem_free(frame->output_place);
  mem_free(frame->copies);
  mem_free(frame->repeats);
  mem_free(frame);
}

Frame* frame_get(OrtSession* session, Plan* plan) {
  for (size_t i = 0; i < PLAN_FRAMES; i++) {
    if (atomic_load_explicit(&plan->frames[i], memory_order_relaxed) == NULL) continue;
    Frame* frame = atomic_exchange_explicit(&plan->frames[i], NULL, memory_order_acquire);
    if (frame != NULL) return frame;
  }
  return frame_new(session, plan);
}

static bool is_kept(const Frame* frame, const FrameBuffer* buffer, int32_t dropped_place) {
  if (dropped_place >= 0) return buffer->place != dropped_place;
  return buffer->last_run == frame->run && !(frame->drops_buffers && buffer->place != 0);
}

/* Buffers that this run did not need are given back: shapes may have changed. Or those of a place. */
static void trim_buffers(Frame* frame, int32_t dropped_place) {
  size_t kept = 0;
  for (size_t i = 0; i < frame->buffer_count; i++) {
    const FrameBuffer* buffer = &frame->buffers[i];
    if (is_kept(frame, buffer, dropped_place))
      frame->buffers[kept++] = *buffer;
    else
      free_buffer(frame, buffer);
  }
  frame->buffer_count = kept;
}

/* takes: leaves the frame to the next run, if there is room. */
static void frame_park(Frame* frame) {
  Plan* plan = frame->plan;
  for (size_t i = 0; i < PLAN_FRAMES; i++) {
    Frame* none = NULL;
    if (atomic_load_explicit(&plan->frames[i], memory_order_relaxed) == NULL &&
        atomic_compare_exchange_strong_explicit(&plan->frames[i], &none, frame, memory_order_release,
                                                memory_order_relaxed))
      return;
  }
  frame_free(frame);
}

void frame_put(Frame* frame) {
  if (frame->is_kept) return;
  if (frame->buffer_count != 0) trim_buffers(frame, -1);
  frame->drops_buffers = false;
  frame->run++;
  frame_park(frame);
}

void frames_drop_buffers(OrtSession* session, int32_t place) {
  for (Plan* plan = &session->plan; plan != NULL; plan = plan->next) {
    for (size_t i = 0; i < PLAN_FRAMES; i++) {
      Frame* frame = atomic_exchange_explicit(&plan->frames[i], NULL, memory_order_acquire);
      if (frame == NULL) continue;
      trim_buffers(frame, place);
      frame_park(frame);
    }
  }
}

/* ---- Intermediates ---- */

/* The best free buffer for `size` bytes: the smallest that is large enough and not far too large. -1: none.
 * Work of this run may still go on in what other streams used. */
static int32_t find_buffer(const Frame* frame, int32_t place, int32_t stream, size_t size) {
  int32_t best = -1;
  for (size_t i = 0; i < frame->buffer_count; i++) {
    const FrameBuffer* buffer = &frame->buffers[i];
    if (buffer->is_taken || buffer->place != place || buffer->size < size || buffer->size / 2 > size + 4096)
      continue;
    if (buffer->stream != stream && buffer->last_run == frame->run) continue;
    if (best < 0 || buffer->size < frame->buffers[best].size) best = (int32_t)i;
  }
  return best;
}

static void* alloc_buffer(Frame* frame, int32_t place, int32_t stream, size_t size) {
  if (place == 0) return mem_alloc_aligned(size);
  OrtAllocator* allocator = frame->session->places[place].allocator;
  return allocator_alloc_on_stream(allocator, size, stream_for_memory(frame, stream, place));
}

static OrtStatus* take_buffer(Frame* frame, int32_t place, size_t size, int32_t* out) {
  int32_t stream = frame->context.step->stream;
  int32_t index = find_buffer(frame, place, stream, size);
  if (index < 0) {
    if (!ARRAY_RESERVE(frame->buffers, frame->buffer_capacity, frame->buffer_count + 1))
      return status_no_memory();
    void* data = alloc_buffer(frame, place, stream, size);
    if (data == NULL && place != 0)
      return status_new(ORT_RUNTIME_EXCEPTION, "no memory in '%s' for a tensor of %zu bytes",
                        frame->session->places[place].memory->name, size);
    if (data == NULL) return status_no_memory();
    index = (int32_t)frame->buffer_count++;
    frame->buffers[index] = (FrameBuffer){.data = data, .size = size, .place = place};
  }
  frame->buffers[index].is_taken = true;
  frame->buffers[index].stream = stream;
  frame->buffers[index].last_run = frame->run;
  *out = index;
  return NULL;
}

OrtStatus* frame_make(Frame* frame, int32_t slot, size_t rank, const int64_t* dims, int32_t reuse) {
  const Slot* plan_slot = &frame->plan->slots[slot];
  ONNXTensorElementDataType type = plan_slot->element_type;
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    return value_new_tensor(allocator_cpu(), type, rank, dims, &frame->values[slot]);
  size_t count, bytes;
  TRY(tensor_size(type, rank, dims, &count, &bytes));
  OrtValue* value = &frame->own[slot];
  value->dims = rank <= VALUE_INLINE_RANK ? value->inline_dims : mem_calloc(rank, sizeof(int64_t));
  if (value->dims == NULL) return status_no_memory();
  int32_t buffer = reuse >= 0 ? frame->own_buffer[reuse] : -1;
  OrtStatus* status = NULL;
  if (buffer >= 0 && frame->own[reuse].size_bytes == bytes)
    frame->own_buffer[reuse] = -1;
  else
    status = take_buffer(frame, plan_slot->place, bytes, &buffer);
  if (status != NULL) {
    if (value->dims != value->inline_dims) mem_free(value->dims);
    return status;
  }
  value->kind = ONNX_TYPE_TENSOR;
  value->element_type = type;
  value->rank = rank;
  if (rank != 0) memcpy(value->dims, dims, rank * sizeof *dims);
  value->element_count = count;
  value->size_bytes = bytes;
  value->data = frame->buffers[buffer].data;
  value->memory = frame->session->places[plan_slot->place].memory;
  atomic_store_explicit(&value->references, 1, memory_order_relaxed);
  frame->own_buffer[slot] = buffer;
  frame->values[slot] = value;
  return NULL;
}

void frame_drop(Frame* frame, int32_t slot) {
  OrtValue* value = frame->values[slot];
  if (value == NULL) return;
  frame->values[slot] = NULL;
  if (value != &frame->own[slot]) {
    value_release(value);
    return;
  }
  if (value->dims != value->inline_dims) mem_free(value->dims);
  if (frame->own_buffer[slot] >= 0) frame->buffers[frame->own_buffer[slot]].is_taken = false;
  frame->own_buffer[slot] = -1;
}
