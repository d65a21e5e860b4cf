/* Streams and notifications: all work is done when it is asked for, so nobody ever waits. */
#include <stdlib.h>

#include "example.h"

typedef struct Stream {
  OrtSyncStreamImpl base;
  Factory* factory;
} Stream;

static void ORT_API_CALL notification_release(OrtSyncNotificationImpl* this_ptr) {
  free(this_ptr);
}

static OrtStatus* ORT_API_CALL notification_activate(OrtSyncNotificationImpl* this_ptr) {
  (void)this_ptr;
  return NULL;
}

static OrtStatus* ORT_API_CALL notification_wait_on_device(OrtSyncNotificationImpl* this_ptr,
                                                           OrtSyncStream* consumer) {
  (void)this_ptr, (void)consumer;
  return NULL;
}

#define NOTIFICATION_SLOT(slot, function) .slot = SLOT("OrtSyncNotificationImpl", #slot, function)

static OrtStatus* ORT_API_CALL create_notification(OrtSyncStreamImpl* this_ptr,
                                                   OrtSyncNotificationImpl** out) {
  OrtSyncNotificationImpl* made = calloc(1, sizeof *made);
  if (made == NULL) return fail(((Stream*)this_ptr)->factory, "no memory for a notification");
  *made = (OrtSyncNotificationImpl){.ort_version_supported = ORT_API_VERSION,
                                    NOTIFICATION_SLOT(Release, notification_release),
                                    NOTIFICATION_SLOT(Activate, notification_activate),
                                    NOTIFICATION_SLOT(WaitOnDevice, notification_wait_on_device),
                                    NOTIFICATION_SLOT(WaitOnHost, notification_activate)};
  *out = made;
  return NULL;
}

static void ORT_API_CALL stream_release(OrtSyncStreamImpl* this_ptr) {
  memory_forget_stream(((Stream*)this_ptr)->factory, this_ptr);
  free(this_ptr);
}

static void* ORT_API_CALL stream_handle(OrtSyncStreamImpl* this_ptr) {
  return this_ptr;
}

static OrtStatus* ORT_API_CALL stream_flush(OrtSyncStreamImpl* this_ptr) {
  (void)this_ptr;
  return NULL;
}

static OrtStatus* ORT_API_CALL stream_run_end(OrtSyncStreamImpl* this_ptr) {
  memory_forget_stream(((Stream*)this_ptr)->factory, this_ptr);
  return NULL;
}

#define STREAM_SLOT(slot, function) .slot = SLOT("OrtSyncStreamImpl", #slot, function)

OrtStatus* stream_create(Factory* factory, const OrtMemoryDevice* device, const char* asked,
                         OrtSyncStreamImpl** out) {
  const OrtEpApi* ep_api = factory->ep_api;
  bool is_own = false;
  *out = NULL;
  for (size_t i = 0; i < factory->device_count; i++) {
    const OrtMemoryDevice* own = ep_api->MemoryInfo_GetMemoryDevice(factory->device_memory[i]);
    is_own = is_own || ep_api->MemoryDevice_AreEqual(device, own);
  }
  say("%s::CreateSyncStreamForDevice %s", asked, is_own ? "device" : "STRANGER");
  if (!is_own) return fail(factory, "a stream for memory that is not this factory's");
  Stream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) return fail(factory, "no memory for a stream");
  stream->base = (OrtSyncStreamImpl){.ort_version_supported = ORT_API_VERSION,
                                     STREAM_SLOT(Release, stream_release),
                                     STREAM_SLOT(GetHandle, stream_handle),
                                     STREAM_SLOT(CreateNotification, create_notification),
                                     STREAM_SLOT(Flush, stream_flush),
                                     STREAM_SLOT(OnSessionRunEnd, stream_run_end)};
  stream->factory = factory;
  *out = &stream->base;
  return NULL;
}
