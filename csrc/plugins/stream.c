/* Streams and notifications: the host's side of an EP's asynchronous work. A failure of any of them is a
 * status that names the slot; none is only logged. */
#include "api_slots.h"
#include "plugins/plugins.h"

/* gives: a spare struct of the library, or a new one. */
static OrtSyncStream* struct_take(OrtEnv* env, EpLibrary* library) {
  pthread_mutex_lock(&env->mutex);
  OrtSyncStream* stream = library->spare_streams;
  if (stream != NULL) library->spare_streams = stream->next_spare;
  pthread_mutex_unlock(&env->mutex);
  return stream != NULL ? stream : mem_calloc(1, sizeof *stream);
}

OrtStatus* stream_new(OrtEnv* env, const OrtEpDevice* ep_device, const OrtMemoryDevice* device,
                      OrtSyncStreamImpl* impl, OrtSyncStream** out) {
  static _Atomic uint64_t last_serial = 0;
  OrtStatus* status = guard_stream(impl, ep_device->ep_name);
  OrtSyncStream* stream = status == NULL ? struct_take(env, ep_device->library) : NULL;
  if (stream == NULL) {
    if (impl != NULL && impl->Release != NULL) call_OrtSyncStreamImpl_Release(impl, NULL);
    return status != NULL ? status : status_no_memory();
  }
  stream->impl = impl;
  stream->device = *device;
  stream->ep_device = ep_device;
  stream->serial = ++last_serial;
  ep_device->library->uses[USE_STREAM]++;
  env_retain(env);
  *out = stream;
  return NULL;
}

/* The struct is kept for the next stream, with its sync id, which goes on growing: an EP that still has
 * memory tagged with it compares with something sensible. Nothing of the old stream runs any more. */
void stream_release(OrtSyncStream* stream) {
  if (stream == NULL) return;
  if (stream->impl == NULL) {
    log_unreported("ReleaseSyncStream", "the stream was released before");
    return;
  }
  OrtEnv* env = env_current();
  EpLibrary* library = stream->ep_device->library;
  OrtStatus* status = call_OrtSyncStreamImpl_Flush(stream->impl);
  if (status != NULL)
    log_unreported("ReleaseSyncStream", "%s: OrtSyncStreamImpl::Flush: %s", stream->ep_device->ep_name,
                   status_message(status));
  status_release(status);
  call_OrtSyncStreamImpl_Release(stream->impl, NULL); /* may still ask about the stream */
  shared_allocators_forget_stream(env, stream, true);
  mem_free(stream->waits);
  stream->impl = NULL;
  stream->ep_device = NULL;
  stream->waits = NULL;
  stream->wait_count = stream->wait_capacity = 0;
  pthread_mutex_lock(&env->mutex);
  stream->next_spare = library->spare_streams;
  library->spare_streams = stream;
  pthread_mutex_unlock(&env->mutex);
  library->uses[USE_STREAM]--;
  env_release(env);
}

OrtStatus* stream_flush(OrtSyncStream* stream) {
  OrtStatus* status = call_OrtSyncStreamImpl_Flush(stream->impl);
  if (status != NULL) return status_wrap(status, "OrtSyncStreamImpl::Flush");
  shared_allocators_forget_stream(env_current(), stream, false);
  return NULL;
}

OrtStatus* stream_end_run(OrtSyncStream* stream) {
  OrtStatus* status = call_OrtSyncStreamImpl_OnSessionRunEnd(stream->impl);
  if (status != NULL) return status_wrap(status, "OrtSyncStreamImpl::OnSessionRunEnd");
  return NULL;
}

/* ---- Notifications ---- */

OrtStatus* notification_open(OrtSyncStream* stream, Notification* out) {
  OrtSyncNotificationImpl* impl = NULL;
  OrtStatus* status = call_OrtSyncStreamImpl_CreateNotification(stream->impl, &impl);
  if (status != NULL) return status_wrap(status, "OrtSyncStreamImpl::CreateNotification");
  status = guard_notification(impl, "OrtSyncStreamImpl::CreateNotification");
  if (status == NULL) *out = (Notification){impl, stream, 0};
  if (status != NULL && impl != NULL && impl->Release != NULL)
    call_OrtSyncNotificationImpl_Release(impl, NULL);
  return status;
}

void notification_close(Notification* notification) {
  if (notification->impl != NULL) call_OrtSyncNotificationImpl_Release(notification->impl, NULL);
  notification->impl = NULL;
}

OrtStatus* notification_activate(Notification* notification) {
  OrtStatus* status = call_OrtSyncNotificationImpl_Activate(notification->impl);
  if (status != NULL) return status_wrap(status, "OrtSyncNotificationImpl::Activate");
  notification->sync_id = atomic_fetch_add(&notification->stream->sync_id, 1) + 1;
  return NULL;
}

static OrtStatus* remember_wait(OrtSyncStream* consumer, const OrtSyncStream* producer, uint64_t sync_id) {
  size_t i = 0;
  while (i < consumer->wait_count && consumer->waits[i].producer != producer) i++;
  if (i < consumer->wait_count && consumer->waits[i].producer_serial != producer->serial)
    consumer->waits[i] = (StreamWait){producer, producer->serial, 0}; /* that one is gone */
  if (i == consumer->wait_count) {
    if (!ARRAY_RESERVE(consumer->waits, consumer->wait_capacity, consumer->wait_count + 1))
      return status_no_memory();
    consumer->waits[consumer->wait_count++] = (StreamWait){producer, producer->serial, 0};
  }
  if (consumer->waits[i].sync_id < sync_id) consumer->waits[i].sync_id = sync_id;
  return NULL;
}

OrtStatus* notification_wait_on_device(Notification* notification, OrtSyncStream* consumer) {
  OrtStatus* status = call_OrtSyncNotificationImpl_WaitOnDevice(notification->impl, consumer);
  if (status != NULL) return status_wrap(status, "OrtSyncNotificationImpl::WaitOnDevice");
  return remember_wait(consumer, notification->stream, notification->sync_id);
}

OrtStatus* notification_wait_on_host(Notification* notification) {
  OrtStatus* status = call_OrtSyncNotificationImpl_WaitOnHost(notification->impl);
  return status != NULL ? status_wrap(status, "OrtSyncNotificationImpl::WaitOnHost") : NULL;
}

/* ---- Slots ---- */

/* Asks the EP for the device's stream. */
static OrtStatus* create_impl(const OrtEpDevice* ep_device, const OrtKeyValuePairs* options,
                              OrtSyncStreamImpl** impl) {
  OrtEpFactory* factory = ep_device->factory;
  const char* name = ep_device->ep_name;
  bool(ORT_API_CALL * is_stream_aware)(const OrtEpFactory*) =
      GUARD_SLOT(factory, ep_device->factory_version, IsStreamAware, 23);
  OrtStatus*(ORT_API_CALL * create)(OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                                    OrtSyncStreamImpl**) =
      GUARD_SLOT(factory, ep_device->factory_version, CreateSyncStreamForDevice, 23);
  OrtStatus* thrown = NULL;
  if (is_stream_aware == NULL || create == NULL || !call_OrtEpFactory_IsStreamAware(factory, &thrown))
    return thrown != NULL
               ? thrown
               : status_new(ORT_NOT_IMPLEMENTED, "CreateSyncStreamForEpDevice: %s has no streams", name);
  if (ep_device->device_memory == NULL)
    return status_new(ORT_NOT_IMPLEMENTED, "CreateSyncStreamForEpDevice: %s has no memory of its own", name);
  OrtStatus* status =
      call_OrtEpFactory_CreateSyncStreamForDevice(factory, &ep_device->device_memory->device, options, impl);
  if (status == NULL) return NULL;
  return status_wrap(status, "%s: OrtEpFactory::CreateSyncStreamForDevice", name);
}

/* gives (caller releases with ReleaseSyncStream). keeps alive the EP's library and the environment. */
OrtStatus* ORT_API_CALL api_CreateSyncStreamForEpDevice(const OrtEpDevice* ep_device,
                                                        const OrtKeyValuePairs* stream_options,
                                                        OrtSyncStream** stream) {
  REQUIRE_ARG(ep_device);
  REQUIRE_ARG(stream);
  OrtEnv* env = env_current();
  OrtSyncStreamImpl* impl = NULL;
  TRY(ep_device_use(env, ep_device, "CreateSyncStreamForEpDevice"));
  OrtStatus* status = create_impl(ep_device, stream_options, &impl);
  if (status == NULL) status = stream_new(env, ep_device, &ep_device->device_memory->device, impl, stream);
  ep_device_unuse(ep_device);
  return status;
}

void ORT_API_CALL api_ReleaseSyncStream(OrtSyncStream* input) {
  stream_release(input);
}

/* borrows: the EP's own handle of the stream (a cudaStream_t, say); NULL is a legal one. */
void* ORT_API_CALL api_SyncStream_GetHandle(OrtSyncStream* stream) {
  return stream != NULL && stream->impl != NULL ? call_OrtSyncStreamImpl_GetHandle(stream->impl, NULL) : NULL;
}

/* borrows: what the EP made the stream with. */
const OrtSyncStreamImpl* ORT_API_CALL api_SyncStream_GetImpl(const OrtSyncStream* stream) {
  return stream != NULL ? stream->impl : NULL;
}
