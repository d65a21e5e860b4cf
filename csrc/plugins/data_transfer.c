/* Copies between memory devices: by the first EP that can, by the host where it may touch the bytes, else in
 * two steps through the CPU. */
#include <stdlib.h>
#include <string.h>

#include "api_slots.h"
#include "plugins/plugins.h"

#define BATCH 16 /* up to here no memory is needed; as many are staged at once on the way through the CPU */

/* What goes from one memory device to another. */
typedef struct Copies {
  const OrtValue* const* source;
  OrtValue* const* target;
  size_t count;
  OrtSyncStream* stream; /* NULL: none */
} Copies;

/* ---- Who can copy ---- */

/* Goes on to the library after `library` (NULL: the first) and keeps it instead. NULL: that was the last. */
static EpLibrary* next_library(OrtEnv* env, EpLibrary* library) {
  size_t at = 0;
  pthread_mutex_lock(&env->mutex); /* not held while a plugin is called */
  while (library != NULL && env->libraries[at] != library) at++;
  if (library != NULL) at++;
  EpLibrary* next = at < env->library_count ? env->libraries[at] : NULL;
  if (next != NULL) next->uses[USE_CALL]++;
  if (library != NULL) library->uses[USE_CALL]--;
  pthread_mutex_unlock(&env->mutex);
  return next;
}

/* The transfer of the device's EP, if it can. borrows: the device is in use. */
static OrtDataTransferImpl* own_transfer(const OrtEpDevice* device, const OrtMemoryDevice* from,
                                         const OrtMemoryDevice* to) {
  const EpLibrary* library = device->library;
  for (size_t i = 0; i < library->factory_count; i++) {
    OrtDataTransferImpl* transfer = library->data_transfers[i];
    if (library->factories[i] == device->factory && transfer != NULL &&
        call_OrtDataTransferImpl_CanCopy(transfer, from, to, NULL))
      return transfer;
  }
  return NULL;
}

/* The stream's EP knows its stream, so it comes first; then the others, in the order of registration. keeps
 * alive `*library`: the caller takes USE_CALL off it. NULL, both: no EP can. */
static OrtDataTransferImpl* transfer_get(OrtEnv* env, const OrtSyncStream* stream,
                                         const OrtMemoryDevice* from, const OrtMemoryDevice* to,
                                         EpLibrary** library) {
  OrtDataTransferImpl* own = stream != NULL ? own_transfer(stream->ep_device, from, to) : NULL;
  if (own != NULL) {
    *library = stream->ep_device->library;
    (*library)->uses[USE_CALL]++;
    return own;
  }
  for (*library = next_library(env, NULL); *library != NULL; *library = next_library(env, *library)) {
    for (size_t i = 0; i < (*library)->factory_count; i++) {
      OrtDataTransferImpl* transfer = (*library)->data_transfers[i];
      if (transfer != NULL && call_OrtDataTransferImpl_CanCopy(transfer, from, to, NULL)) return transfer;
    }
  }
  return NULL;
}

bool env_can_copy(OrtEnv* env, const OrtEpDevice* by, const OrtMemoryDevice* from,
                  const OrtMemoryDevice* to) {
  EpLibrary* library = NULL;
  if (by != NULL) return own_transfer(by, from, to) != NULL;
  if (transfer_get(env, NULL, from, to, &library) == NULL) return false;
  library->uses[USE_CALL]--;
  return true;
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

/* Hands the tensors that have bytes to the EP, all at once. */
static OrtStatus* copy_by_ep(OrtDataTransferImpl* transfer, const Copies* copies) {
  size_t count = copies->count, filled = 0;
  void* small[3 * BATCH];
  void** arrays = count <= BATCH ? small : mem_calloc(count, 3 * sizeof *arrays);
  if (arrays == NULL) return status_no_memory();
  const OrtValue** from = (const OrtValue**)arrays;
  OrtValue** to = (OrtValue**)(arrays + count);
  OrtSyncStream** streams = (OrtSyncStream**)(arrays + 2 * count); /* the ABI wants one entry a tensor */
  for (size_t i = 0; i < count; i++) {
    if (copies->source[i]->size_bytes == 0) continue;
    from[filled] = copies->source[i];
    to[filled] = copies->target[i];
    streams[filled++] = copies->stream;
  }
  OrtStatus* status = NULL;
  if (filled != 0)
    status = call_OrtDataTransferImpl_CopyTensors(transfer, from, to, copies->stream != NULL ? streams : NULL,
                                                  filled);
  if (arrays != small) mem_free(arrays);
  return status != NULL ? status_wrap(status, "OrtDataTransferImpl::CopyTensors") : NULL;
}

static void copy_by_host(const Copies* copies) {
  for (size_t i = 0; i < copies->count; i++) {
    const OrtValue* from = copies->source[i];
    if (from->size_bytes != 0) memmove(copies->target[i]->data, from->data, from->size_bytes);
  }
}

/* In one step, by an EP or by the host. `*is_done` false, with no error: nobody can. */
static OrtStatus* copy_directly(OrtEnv* env, const Copies* copies, bool* is_done) {
  const OrtMemoryDevice* from = &copies->source[0]->memory->device;
  const OrtMemoryDevice* to = &copies->target[0]->memory->device;
  bool is_cpu = from->device_type == OrtMemoryInfoDeviceType_CPU &&
                to->device_type == OrtMemoryInfoDeviceType_CPU && from->vendor_id == to->vendor_id;
  EpLibrary* library = NULL;
  OrtDataTransferImpl* transfer = is_cpu ? NULL : transfer_get(env, copies->stream, from, to, &library);
  *is_done = transfer != NULL || (memory_device_is_host(from) && memory_device_is_host(to));
  if (!*is_done) return NULL;
  Copies known = *copies;
  OrtStatus* status = NULL;
  if (known.stream != NULL && known.stream->ep_device->library != library) {
    status = stream_flush(known.stream); /* who copies does not know it: what comes before is done */
    known.stream = NULL;
  }
  if (status == NULL && transfer != NULL) status = copy_by_ep(transfer, &known);
  if (status == NULL && transfer == NULL) copy_by_host(&known);
  if (library != NULL) library->uses[USE_CALL]--;
  return status;
}

/* The stream if it is one of the device's, whatever kind of its memory; else NULL. */
static OrtSyncStream* stream_on(OrtSyncStream* stream, const OrtMemoryDevice* device) {
  bool is_own = stream != NULL && stream->device.device_type == device->device_type &&
                stream->device.vendor_id == device->vendor_id &&
                stream->device.device_id == device->device_id;
  return is_own ? stream : NULL;
}

/* A step through the CPU, waited for, so that the other can begin and the staged bytes can go. */
static OrtStatus* copy_step(OrtEnv* env, const OrtValue* const* source, OrtValue* const* target, size_t count,
                            OrtSyncStream* stream, bool* is_done) {
  Copies step = {source, target, count, stream};
  TRY(copy_directly(env, &step, is_done));
  return *is_done && stream != NULL ? stream_flush(stream) : NULL;
}

/* At most BATCH of them, from and to devices that are not the CPU. */
static OrtStatus* copy_through_cpu(OrtEnv* env, const Copies* copies) {
  OrtValue* staged[BATCH] = {NULL};
  OrtStatus* status = NULL;
  const OrtMemoryDevice* from = &copies->source[0]->memory->device;
  const OrtMemoryDevice* to = &copies->target[0]->memory->device;
  bool is_done;
  for (size_t i = 0; i < copies->count; i++) {
    const OrtValue* source = copies->source[i];
    TRY_DONE(value_new_tensor(allocator_cpu(), source->element_type, source->rank, source->dims, &staged[i]));
  }
  TRY_DONE(copy_step(env, copies->source, staged, copies->count, stream_on(copies->stream, from), &is_done));
  if (is_done)
    TRY_DONE(copy_step(env, (const OrtValue* const*)staged, copies->target, copies->count,
                       stream_on(copies->stream, to), &is_done));
  if (!is_done) status = nobody_can(from, to);
done:
  for (size_t i = 0; i < copies->count; i++) value_release(staged[i]);
  return status;
}

/* ---- What may be copied ---- */

typedef struct Span {
  uintptr_t begin, end;
} Span;

static int compare_spans(const void* a, const void* b) {
  const Span *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Those that have bytes, sorted by address; returns how many. Memory that the host cannot read may have
 * handles for addresses: of it only the beginnings say anything. */
static size_t collect_spans(OrtValue* const* values, size_t count, Span* spans) {
  bool is_sorted = true, is_host = memory_device_is_host(&values[0]->memory->device);
  size_t filled = 0;
  for (size_t i = 0; i < count; i++) {
    size_t size = is_host ? values[i]->size_bytes : 1;
    uintptr_t begin = (uintptr_t)values[i]->data;
    if (values[i]->size_bytes == 0) continue;
    is_sorted = is_sorted && (filled == 0 || spans[filled - 1].begin <= begin);
    spans[filled++] = (Span){begin, begin + size};
  }
  if (!is_sorted) qsort(spans, filled, sizeof *spans, compare_spans);
  return filled;
}

/* True if a span of `a` and one of `b`, both sorted and those of `a` apart, have bytes in common. */
static bool spans_meet(const Span* a, const Span* b, size_t count) {
  for (size_t i = 0, k = 0; i < count && k < count;) {
    if (a[i].begin < b[k].end && b[k].begin < a[i].end) return true;
    if (a[i].end <= b[k].begin)
      i++;
    else
      k++;
  }
  return false;
}

static bool is_one_memory(const OrtMemoryDevice* a, const OrtMemoryDevice* b) {
  return memory_device_equal(a, b) || (memory_device_is_host(a) && memory_device_is_host(b));
}

/* Refuses a batch that writes a byte twice, or one that another of its copies reads. A batch has no order. */
static OrtStatus* refuse_overlap(const Copies* copies) {
  size_t count = copies->count;
  if (count < 2) return NULL;
  OrtStatus* status = NULL;
  Span small[2 * BATCH], *spans = count <= BATCH ? small : mem_calloc(count, 2 * sizeof *spans);
  if (spans == NULL) return status_no_memory();
  Span *written = spans, *read = spans + count;
  size_t filled = collect_spans(copies->target, count, written);
  for (size_t i = 1; i < filled && status == NULL; i++) {
    if (written[i].begin < written[i - 1].end)
      status = status_new(ORT_INVALID_ARGUMENT, "CopyTensors: two targets of one batch overlap");
  }
  if (status == NULL &&
      is_one_memory(&copies->source[0]->memory->device, &copies->target[0]->memory->device)) {
    collect_spans((OrtValue* const*)copies->source, count, read);
    if (spans_meet(written, read, filled))
      status = status_new(ORT_INVALID_ARGUMENT, "CopyTensors: a source of one batch overlaps a target");
  }
  if (spans != small) mem_free(spans);
  return status;
}

static bool is_numeric(const OrtValue* value) {
  return value->kind == ONNX_TYPE_TENSOR && value->element_type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
}

static bool is_beside(const OrtValue* value, const OrtValue* first) {
  return value->memory == first->memory ||
         memory_device_equal(&value->memory->device, &first->memory->device);
}

static OrtStatus* check_pair(const OrtValue* const* source, OrtValue* const* target, size_t i) {
  if (source[i] == NULL || target[i] == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "CopyTensors: %s %zu is NULL", source[i] ? "target" : "source",
                      i);
  if (!is_numeric(source[i]) || !is_numeric(target[i]))
    return status_new(ORT_INVALID_ARGUMENT, "CopyTensors: pair %zu is not two numeric tensors", i);
  if (source[i]->size_bytes != target[i]->size_bytes)
    return status_new(ORT_INVALID_ARGUMENT, "CopyTensors: pair %zu has %zu and %zu bytes", i,
                      source[i]->size_bytes, target[i]->size_bytes);
  if (!is_beside(source[i], source[0]))
    return status_new(ORT_INVALID_ARGUMENT,
                      "CopyTensors: source %zu is on another memory device than source 0", i);
  if (!is_beside(target[i], target[0]))
    return status_new(ORT_INVALID_ARGUMENT,
                      "CopyTensors: target %zu is on another memory device than target 0", i);
  return NULL;
}

OrtStatus* env_copy_tensors(OrtEnv* env, const OrtValue* const* source, OrtValue* const* target,
                            OrtSyncStream* stream, size_t count) {
  if (count == 0) return NULL;
  Copies all = {source, target, count, stream};
  for (size_t i = 0; i < count; i++) TRY(check_pair(source, target, i));
  TRY(refuse_overlap(&all));
  bool is_done;
  TRY(copy_directly(env, &all, &is_done));
  if (is_done) return NULL;
  const OrtMemoryDevice *from = &source[0]->memory->device, *to = &target[0]->memory->device;
  if (from->device_type == OrtMemoryInfoDeviceType_CPU || to->device_type == OrtMemoryInfoDeviceType_CPU)
    return nobody_can(from, to);
  for (size_t i = 0; i < count; i += BATCH) {
    Copies some = {source + i, target + i, count - i < BATCH ? count - i : BATCH, stream};
    TRY(copy_through_cpu(env, &some));
  }
  return NULL;
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
