/* Streams and notifications: the host's side of an EP's asynchronous work. A failure of any of them is a
 * status that names the slot; none is only logged. */
#include "api_slots.h"
#include "plugins/plugins.h"

OrtStatus* stream_new(OrtSyncStreamImpl* impl, const OrtMemoryDevice* device, const char* ep_name,
                      OrtSyncStream** out) {
  OrtStatus* status = guard_stream(impl, ep_name);
  OrtSyncStream* stream = status == NULL ? mem_calloc(1, sizeof *stream) : NULL;
  if (stream == NULL) {
    if (impl != NULL && impl->Release != NULL) impl->Release(impl);
    return status != NULL ? status : status_no_memory();
  }
  stream->impl = impl;
  stream->device = *device;
  *out = stream;
  return NULL;
}

void stream_release(OrtSyncStream* stream) {
  if (stream == NULL) return;
  const OrtEpDevice* ep_device = stream->ep_device;
  stream->impl->Release(stream->impl); /* may still ask about the stream: it is freed afterwards */
  mem_free(stream->waits);
  mem_free(stream);
  if (ep_device != NULL) ep_device_unuse(ep_device);
}

OrtStatus* stream_flush(OrtSyncStream* stream) {
  OrtStatus* status = stream->impl->Flush(stream->impl);
  return status != NULL ? status_wrap(status, "OrtSyncStreamImpl::Flush") : NULL;
}

/* ---- Notifications ---- */

OrtStatus* notification_open(OrtSyncStream* stream, Notification* out) {
  OrtSyncNotificationImpl* impl = NULL;
  OrtStatus* status = stream->impl->CreateNotification(stream->impl, &impl);
  if (status != NULL) return status_wrap(status, "OrtSyncStreamImpl::CreateNotification");
  status = guard_notification(impl, "OrtSyncStreamImpl::CreateNotification");
  if (status == NULL) *out = (Notification){impl, stream, 0};
  if (status != NULL && impl != NULL && impl->Release != NULL) impl->Release(impl);
  return status;
}

void notification_close(Notification* notification) {
  if (notification->impl != NULL) notification->impl->Release(notification->impl);
  notification->impl = NULL;
}

OrtStatus* notification_activate(Notification* notification) {
  OrtStatus* status = notification->impl->Activate(notification->impl);
  if (status != NULL) return status_wrap(status, "OrtSyncNotificationImpl::Activate");
  notification->sync_id = atomic_fetch_add(&notification->stream->sync_id, 1) + 1;
  return NULL;
}

static OrtStatus* remember_wait(OrtSyncStream* consumer, const OrtSyncStream* producer, uint64_t sync_id) {
  size_t i = 0;
  while (i < consumer->wait_count && consumer->waits[i].producer != producer) i++;
  if (i == consumer->wait_count) {
    if (!ARRAY_RESERVE(consumer->waits, consumer->wait_capacity, consumer->wait_count + 1))
      return status_no_memory();
    consumer->waits[consumer->wait_count++] = (StreamWait){producer, 0};
  }
  if (consumer->waits[i].sync_id < sync_id) consumer->waits[i].sync_id = sync_id;
  return NULL;
}

OrtStatus* notification_wait_on_device(Notification* notification, OrtSyncStream* consumer) {
  OrtStatus* status = notification->impl->WaitOnDevice(notification->impl, consumer);
  if (status != NULL) return status_wrap(status, "OrtSyncNotificationImpl::WaitOnDevice");
  return remember_wait(consumer, notification->stream, notification->sync_id);
}

OrtStatus* notification_wait_on_host(Notification* notification) {
  OrtStatus* status = notification->impl->WaitOnHost(notification->impl);
  return status != NULL ? status_wrap(status, "OrtSyncNotificationImpl::WaitOnHost") : NULL;
}

/* ---- Slots ---- */

/* gives (caller releases with ReleaseSyncStream). keeps alive the EP's library. */
OrtStatus* ORT_API_CALL api_CreateSyncStreamForEpDevice(const OrtEpDevice* ep_device,
                                                        const OrtKeyValuePairs* stream_options,
                                                        OrtSyncStream** stream) {
  REQUIRE_ARG(ep_device);
  REQUIRE_ARG(stream);
  TRY(ep_device_use(env_current(), ep_device, "CreateSyncStreamForEpDevice"));
  OrtEpFactory* factory = ep_device->factory;
  const char* name = ep_device->ep_name;
  OrtStatus* status = NULL;
  OrtSyncStreamImpl* impl = NULL;
  bool(ORT_API_CALL * is_stream_aware)(const OrtEpFactory*) =
      GUARD_SLOT(factory, ep_device->factory_version, IsStreamAware, 23);
  OrtStatus*(ORT_API_CALL * create)(OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                                    OrtSyncStreamImpl**) =
      GUARD_SLOT(factory, ep_device->factory_version, CreateSyncStreamForDevice, 23);
  if (is_stream_aware == NULL || create == NULL || !is_stream_aware(factory))
    TRY_DONE(status_new(ORT_NOT_IMPLEMENTED, "CreateSyncStreamForEpDevice: %s has no streams", name));
  if (ep_device->device_memory == NULL)
    TRY_DONE(
        status_new(ORT_NOT_IMPLEMENTED, "CreateSyncStreamForEpDevice: %s has no memory of its own", name));
  status = create(factory, &ep_device->device_memory->device, stream_options, &impl);
  if (status != NULL) TRY_DONE(status_wrap(status, "%s: OrtEpFactory::CreateSyncStreamForDevice", name));
  OrtSyncStream* made = NULL;
  TRY_DONE(stream_new(impl, &ep_device->device_memory->device, name, &made));
  made->ep_device = ep_device;
  *stream = made;
done:
  if (status != NULL) ep_device_unuse(ep_device);
  return status;
}

void ORT_API_CALL api_ReleaseSyncStream(OrtSyncStream* input) {
  stream_release(input);
}

/* borrows: the EP's own handle of the stream (a cudaStream_t, say); NULL is a legal one. */
void* ORT_API_CALL api_SyncStream_GetHandle(OrtSyncStream* stream) {
  return stream != NULL ? stream->impl->GetHandle(stream->impl) : NULL;
}

/* borrows: what the EP made the stream with. */
const OrtSyncStreamImpl* ORT_API_CALL api_SyncStream_GetImpl(const OrtSyncStream* stream) {
  return stream != NULL ? stream->impl : NULL;
}

uint64_t ORT_API_CALL api_SyncStream_GetSyncId(const OrtSyncStream* stream) {
  return stream != NULL ? atomic_load(&stream->sync_id) : 0;
}

/* 0: `consumer_stream` never waited for `producer_stream`. */
uint64_t ORT_API_CALL api_GetSyncIdForLastWaitOnSyncStream(const OrtSyncStream* producer_stream,
                                                           const OrtSyncStream* consumer_stream) {
  if (consumer_stream == NULL) return 0;
  for (size_t i = 0; i < consumer_stream->wait_count; i++) {
    if (consumer_stream->waits[i].producer == producer_stream) return consumer_stream->waits[i].sync_id;
  }
  return 0;
}
