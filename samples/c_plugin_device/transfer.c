/* Copies between the host's memory and the device's, and from one device of the library to another, on a
 * stream when there is one. */
#include <stdlib.h>
#include <string.h>

#include "device.h"

typedef struct Transfer {
  OrtDataTransferImpl base;
  Factory* factory;
} Transfer;

typedef struct CopyTask {
  Task task;
  char* to;
  const char* from;
  size_t size;
  char staged[]; /* a copy of host memory, which the caller may change as soon as the call returns */
} CopyTask;

static void run_copy(Task* task) {
  CopyTask* copy = (CopyTask*)task;
  memcpy(copy->to, copy->from, copy->size);
  free(copy);
}

static bool is_ours(const Factory* factory, const OrtMemoryDevice* device) {
  const OrtEpApi* ep_api = factory->ep_api;
  return ep_api->MemoryDevice_GetVendorId(device) == DEVICE_VENDOR_ID &&
         ep_api->MemoryDevice_GetDeviceId(device) - DEVICE_ID < DEVICE_COUNT &&
         ep_api->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_GPU;
}

static bool is_host(const Factory* factory, const OrtMemoryDevice* device) {
  return factory->ep_api->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_CPU;
}

static bool ORT_API_CALL transfer_can_copy(const OrtDataTransferImpl* this_ptr, const OrtMemoryDevice* from,
                                           const OrtMemoryDevice* to) {
  const Factory* factory = ((const Transfer*)this_ptr)->factory;
  bool from_ours = is_ours(factory, from), to_ours = is_ours(factory, to);
  if (from_ours && to_ours && control.has_no_peer_copies)
    return factory->ep_api->MemoryDevice_GetDeviceId(from) == factory->ep_api->MemoryDevice_GetDeviceId(to);
  return (from_ours && to_ours) || (from_ours && is_host(factory, to)) || (is_host(factory, from) && to_ours);
}

static void count_copy(bool from_device, bool to_device, bool with_stream) {
  if (from_device && to_device)
    control.copies_on_device++;
  else if (to_device)
    control.copies_to_device++;
  else
    control.copies_to_host++;
  if (with_stream) control.copies_with_stream++;
}

OrtStatus* transfer_copy(Factory* factory, const OrtValue* from, OrtValue* to, Stream* stream) {
  const OrtApi* api = factory->api;
  OrtStatus* status = NULL;
  const void* source = NULL;
  void* target = NULL;
  size_t size = 0, target_size = 0;
  TRY(api->GetTensorData(from, &source));
  TRY(api->GetTensorMutableData(to, &target));
  TRY(api->GetTensorSizeInBytes(from, &size));
  TRY(api->GetTensorSizeInBytes(to, &target_size));
  if (size != target_size)
    TRY(fail(factory, ORT_INVALID_ARGUMENT, "a copy of %zu bytes to %zu", size, target_size));
  /* Host-accessible memory is no arena memory: used as it is. */
  char* device_source = memory_alias_of_any(factory, source);
  char* device_target = memory_alias_of_any(factory, target);
  count_copy(device_source != NULL, device_target != NULL, stream != NULL);
  if (stream == NULL) {
    memcpy(device_target ? device_target : target, device_source ? device_source : source, size);
    goto done;
  }
  bool staged = device_source == NULL && !control.reads_late;
  CopyTask* task = malloc(sizeof *task + (staged ? size : 0));
  if (task == NULL) TRY(fail(factory, ORT_FAIL, "no memory for a copy"));
  task->task.run = run_copy;
  task->to = device_target ? device_target : target;
  task->from = device_source ? device_source : source;
  task->size = size;
  if (staged) task->from = memcpy(task->staged, source, size);
  stream_enqueue(stream, &task->task);
done:
  return status;
}

/* The OrtValues are the host's and valid only during the call: tasks keep addresses, never values. */
static OrtStatus* ORT_API_CALL transfer_copy_tensors(OrtDataTransferImpl* this_ptr, const OrtValue** from,
                                                     OrtValue** to, OrtSyncStream** streams, size_t count) {
  Factory* factory = ((Transfer*)this_ptr)->factory;
  OrtStatus* status = asked_to_fail(factory, "CopyTensors");
  for (size_t i = 0; i < count && status == NULL; i++)
    status = transfer_copy(factory, from[i], to[i], streams != NULL ? stream_of(factory, streams[i]) : NULL);
  return status;
}

static void ORT_API_CALL transfer_release(OrtDataTransferImpl* this_ptr) {
  control.live_objects--;
  free(this_ptr);
}

OrtStatus* transfer_create(Factory* factory, OrtDataTransferImpl** out) {
  OrtStatus* status = asked_to_fail(factory, "CreateDataTransfer");
  if (status != NULL) return status;
  Transfer* transfer = calloc(1, sizeof *transfer);
  if (transfer == NULL) return fail(factory, ORT_FAIL, "no memory for a data transfer");
  transfer->factory = factory;
  transfer->base.ort_version_supported = factory->api_version;
  transfer->base.Release = transfer_release;
  transfer->base.CanCopy = transfer_can_copy;
  transfer->base.CopyTensors = transfer_copy_tensors;
  control.live_objects++;
  *out = &transfer->base;
  return NULL;
}
