/* Copies between memory devices: by the host where it may touch the bytes, else by the first EP that can. */
#include <stdlib.h>
#include <string.h>

#include "api_slots.h"
#include "plugins/plugins.h"

/* ---- Who can copy ---- */

/* keeps alive the transfer's library: the caller calls transfer_put. NULL: no EP can. */
static OrtDataTransferImpl* transfer_get(OrtEnv* env, const OrtMemoryDevice* from, const OrtMemoryDevice* to,
                                         EpLibrary** library) {
  for (size_t i = 0;; i++) {
    pthread_mutex_lock(&env->mutex); /* not held while a plugin is called */
    *library = i < env->library_count ? env->libraries[i] : NULL;
    if (*library != NULL) (*library)->users++;
    pthread_mutex_unlock(&env->mutex);
    if (*library == NULL) return NULL;
    for (size_t k = 0; k < (*library)->factory_count; k++) {
      OrtDataTransferImpl* transfer = (*library)->data_transfers[k];
      if (transfer != NULL && transfer->CanCopy(transfer, from, to)) return transfer;
    }
    (*library)->users--;
  }
}

/* gives (caller releases with mem_free), or NULL without memory: "GPU (vendor 0xbe57, device 0)". */
static char* device_text(const OrtMemoryDevice* device) {
  static const char* const types[] = {"CPU", "GPU", "FPGA", "NPU"};
  return str_format("%s%s (vendor 0x%x, device %u)", types[device->device_type & 3],
                    device->memory_type == OrtDeviceMemoryType_HOST_ACCESSIBLE ? " host-accessible" : "",
                    device->vendor_id, device->device_id);
}

static OrtStatus* nobody_can(const OrtMemoryDevice* from, const OrtMemoryDevice* to) {
  char *from_text = device_text(from), *to_text = device_text(to);
  OrtStatus* status = status_new(ORT_NOT_IMPLEMENTED, "no EP can copy from %s to %s, nor through the CPU",
                                 from_text ? from_text : "?", to_text ? to_text : "?");
  mem_free(from_text);
  mem_free(to_text);
  return status;
}

/* ---- Copying ---- */

#define BATCH 16 /* up to here no memory is needed */

/* Hands the tensors that have bytes to the EP, all at once. */
static OrtStatus* copy_by_ep(OrtDataTransferImpl* transfer, const OrtValue* const* source,
                             OrtValue* const* target, OrtSyncStream* stream, size_t count) {
  void* small[3 * BATCH];
  void** arrays = count <= BATCH ? small : mem_calloc(count, 3 * sizeof *arrays);
  if (arrays == NULL) return status_no_memory();
  const OrtValue** from = (const OrtValue**)arrays;
  OrtValue** to = (OrtValue**)(arrays + count);
  OrtSyncStream** streams =
      (OrtSyncStream**)(arrays + 2 * count); /* one entry a tensor, as the ABI wants it */
  size_t filled = 0;
  for (size_t i = 0; i < count; i++) {
    if (source[i]->size_bytes == 0) continue;
    from[filled] = source[i];
    to[filled] = target[i];
    streams[filled++] = stream;
  }
  OrtStatus* status = NULL;
  if (filled != 0)
    status = transfer->CopyTensors(transfer, from, to, stream != NULL ? streams : NULL, filled);
  if (arrays != small) mem_free(arrays);
  return status != NULL ? status_wrap(status, "OrtDataTransferImpl::CopyTensors") : NULL;
}

static void copy_by_host(const OrtValue* const* source, OrtValue* const* target, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (source[i]->size_bytes != 0) memmove(target[i]->data, source[i]->data, source[i]->size_bytes);
  }
}

/* One half of a copy through the CPU; waited for, so that the other half can begin. */
static OrtStatus* copy_half(OrtEnv* env, const OrtValue* source, OrtValue* target, OrtSyncStream* stream) {
  EpLibrary* library = NULL;
  const OrtMemoryDevice *from = &source->memory->device, *to = &target->memory->device;
  OrtDataTransferImpl* transfer = transfer_get(env, from, to, &library);
  if (transfer == NULL) return nobody_can(from, to);
  bool is_own = stream != NULL &&
                (memory_device_equal(&stream->device, from) || memory_device_equal(&stream->device, to));
  OrtStatus* status = copy_by_ep(transfer, &source, &target, is_own ? stream : NULL, 1);
  if (status == NULL && is_own) status = stream_flush(stream);
  library->users--;
  return status;
}

static OrtStatus* copy_through_cpu(OrtEnv* env, const OrtValue* const* source, OrtValue* const* target,
                                   OrtSyncStream* stream, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (source[i]->size_bytes == 0) continue;
    OrtValue* staging = NULL;
    TRY(value_new_tensor(allocator_cpu(), source[i]->element_type, source[i]->rank, source[i]->dims,
                         &staging));
    OrtStatus* status = copy_half(env, source[i], staging, stream);
    if (status == NULL) status = copy_half(env, staging, target[i], stream);
    value_release(staging);
    if (status != NULL) return status;
  }
  return NULL;
}

/* ---- What may be copied ---- */

typedef struct Span {
  uintptr_t begin, end;
} Span;

static int compare_spans(const void* a, const void* b) {
  const Span *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Sorted by address; a batch that comes so costs one look an item. */
static void collect_spans(OrtValue* const* values, size_t count, Span* spans) {
  bool is_sorted = true;
  for (size_t i = 0; i < count; i++) {
    spans[i] = (Span){(uintptr_t)values[i]->data, (uintptr_t)values[i]->data + values[i]->size_bytes};
    is_sorted = is_sorted && (i == 0 || spans[i - 1].begin <= spans[i].begin);
  }
  if (!is_sorted) qsort(spans, count, sizeof *spans, compare_spans);
}

/* Refuses a batch that writes a byte twice, or one that another of its copies reads. */
static OrtStatus* refuse_overlap(const OrtValue* const* source, OrtValue* const* target, size_t count) {
  if (count < 2) return NULL;
  OrtStatus* status = NULL;
  Span small[2 * BATCH], *spans = count <= BATCH ? small : mem_calloc(count, 2 * sizeof *spans);
  if (spans == NULL) return status_no_memory();
  Span *written = spans, *read = spans + count;
  collect_spans(target, count, written);
  collect_spans((OrtValue* const*)source, count, read);
  for (size_t i = 1; i < count && status == NULL; i++) {
    if (written[i].begin < written[i - 1].end && written[i].begin != written[i].end)
      status = status_new(ORT_INVALID_ARGUMENT, "CopyTensors: two targets of one batch overlap");
  }
  for (size_t r = 0, w = 0; r < count && w < count && status == NULL;) {
    if (read[r].begin < written[w].end && written[w].begin < read[r].end &&
        (read[r].begin != written[w].begin || read[r].end != written[w].end))
      status = status_new(ORT_INVALID_ARGUMENT, "CopyTensors: a source of one batch overlaps a target");
    if (read[r].end < written[w].end)
      r++;
    else
      w++;
  }
  if (spans != small) mem_free(spans);
  return status;
}

static OrtStatus* check_pair(const OrtValue* const* source, OrtValue* const* target, size_t i) {
  if (source[i] == NULL || target[i] == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "CopyTensors: %s %zu is NULL", source[i] ? "target" : "source",
                      i);
  if (source[i]->kind != ONNX_TYPE_TENSOR || target[i]->kind != ONNX_TYPE_TENSOR ||
      source[i]->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING ||
      target[i]->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    return status_new(ORT_INVALID_ARGUMENT, "CopyTensors: pair %zu is not two numeric tensors", i);
  if (source[i]->size_bytes != target[i]->size_bytes)
    return status_new(ORT_INVALID_ARGUMENT, "CopyTensors: pair %zu has %zu and %zu bytes", i,
                      source[i]->size_bytes, target[i]->size_bytes);
  if (!memory_device_equal(&source[i]->memory->device, &source[0]->memory->device))
    return status_new(ORT_INVALID_ARGUMENT,
                      "CopyTensors: source %zu is on another memory device than source 0", i);
  if (!memory_device_equal(&target[i]->memory->device, &target[0]->memory->device))
    return status_new(ORT_INVALID_ARGUMENT,
                      "CopyTensors: target %zu is on another memory device than target 0", i);
  return NULL;
}

OrtStatus* env_copy_tensors(OrtEnv* env, const OrtValue* const* source, OrtValue* const* target,
                            OrtSyncStream* stream, size_t count) {
  if (count == 0) return NULL;
  for (size_t i = 0; i < count; i++) TRY(check_pair(source, target, i));
  TRY(refuse_overlap(source, target, count));
  const OrtMemoryDevice *from = &source[0]->memory->device, *to = &target[0]->memory->device;
  if (from->device_type == OrtMemoryInfoDeviceType_CPU && to->device_type == OrtMemoryInfoDeviceType_CPU &&
      from->vendor_id == to->vendor_id) {
    copy_by_host(source, target, count);
    return NULL;
  }
  EpLibrary* library = NULL;
  OrtDataTransferImpl* transfer = transfer_get(env, from, to, &library);
  if (transfer != NULL) {
    OrtStatus* status = copy_by_ep(transfer, source, target, stream, count);
    library->users--;
    return status;
  }
  if (memory_device_is_host(from) && memory_device_is_host(to)) {
    copy_by_host(source, target, count);
    return NULL;
  }
  if (from->device_type == OrtMemoryInfoDeviceType_CPU || to->device_type == OrtMemoryInfoDeviceType_CPU)
    return nobody_can(from, to);
  return copy_through_cpu(env, source, target, stream, count);
}

/* borrows everything. Needs no session. With a stream the copies may end after the call: the caller waits for
 * the stream. */
OrtStatus* ORT_API_CALL api_CopyTensors(const OrtEnv* env, const OrtValue* const* src_tensors,
                                        OrtValue* const* dst_tensors, OrtSyncStream* stream,
                                        size_t num_tensors) {
  REQUIRE_ARG(env);
  if (num_tensors != 0) REQUIRE_ARG(src_tensors);
  if (num_tensors != 0) REQUIRE_ARG(dst_tensors);
  TRY(env_check(env, __func__));
  return env_copy_tensors((OrtEnv*)env, src_tensors, dst_tensors, stream, num_tensors);
}
