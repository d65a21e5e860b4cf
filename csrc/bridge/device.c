/* Devices of Python providers: allocators, copies, streams and notifications. Each struct that a host gets
 * carries the id of one Python object. */
#include <string.h>

#include "bridge.h"

typedef struct PyAllocator {
  OrtAllocator base; /* first, in each of them: the host's pointer is ours */
  BridgePeer peer;
  OrtMemoryInfo* info;
  OrtEpFactory* factory; /* used: hosts call its ReleaseAllocator */
} PyAllocator;

typedef struct PyTransfer {
  OrtDataTransferImpl base;
  BridgePeer peer;
} PyTransfer;

typedef struct PyStream {
  OrtSyncStreamImpl base;
  BridgePeer peer;
} PyStream;

typedef struct PyNotification {
  OrtSyncNotificationImpl base;
  BridgePeer peer;
} PyNotification;

/* ---- Streams as Python knows them ---- */

static void stream_release(OrtSyncStreamImpl* this_ptr);

/* The stream, if it is one of the provider that the call is for; else NULL. */
static const PyStream* own_stream(const BridgeCall* call, const OrtSyncStreamImpl* impl) {
  const PyStream* stream = (const PyStream*)impl;
  return impl && impl->Release == stream_release && !strcmp(stream->peer.name, call->name) ? stream : NULL;
}

static const OrtSyncStreamImpl* impl_of(const BridgeCall* call, const OrtSyncStream* stream) {
  return stream ? call->host->ep_api->SyncStream_GetImpl(stream) : NULL;
}

/* The id of the Python object behind a host's stream; 0 for NULL and for a stream of another provider. */
uint64_t bridge_stream_id(const BridgeCall* call, const OrtSyncStream* stream) {
  const PyStream* own = own_stream(call, impl_of(call, stream));
  return own ? own->peer.id : 0;
}

static OrtSyncStream* stream_of_run(BridgeRun* run) {
  const BridgeHost* host = run->call.host;
  OrtSyncStream* stream = NULL;
  if (host->version < BRIDGE_SYNC_STREAM_VERSION) return NULL;
  OrtStatus* status = host->api->KernelContext_GetSyncStream(run->context, &stream);
  if (status) host->api->ReleaseStatus(status);
  return status ? NULL : stream;
}

/* The same for the stream that a node runs on. */
uint64_t bridge_run_stream_id(BridgeRun* run) {
  return bridge_stream_id(&run->call, stream_of_run(run));
}

/* Waits for the stream if it is another provider's: Python is told of none and works at once. (Stock hosts
 * have one stream for all providers with devices of a type.) A failure is recorded in call. */
static bool wait_for_others(BridgeCall* call, const OrtSyncStream* stream) {
  OrtSyncStreamImpl* impl = (OrtSyncStreamImpl*)impl_of(call, stream);
  if (!impl || own_stream(call, impl)) return true;
  OrtStatus* status = impl->Flush(impl);
  if (status) bridge_fail_with_status(call, status);
  return !status;
}

/* The same for a node with inputs on a device. */
bool bridge_run_wait_for_others(BridgeRun* run) {
  return !run->on_device || wait_for_others(&run->call, stream_of_run(run));
}

/* ---- Allocators ---- */

static void* allocate(OrtAllocator* this_, size_t size, BridgeAllocKind kind, OrtSyncStream* on) {
  static const char* const slots[] = {"OrtAllocator::Alloc", "OrtAllocator::Reserve",
                                      "OrtAllocator::AllocOnStream"};
  const BridgePeer* peer = &((PyAllocator*)this_)->peer;
  uint64_t address = 0;
  BridgeCall call = bridge_peer_call(peer, slots[kind]);
  if (call.entered)
    call.ok = bridge_py_alloc(&call, peer->id, size, kind, bridge_stream_id(&call, on), &address);
  void* result = call.entered && call.ok ? (void*)(uintptr_t)address : NULL;
  bridge_call_end_void(&call);
  return result;
}

static void* allocator_alloc(OrtAllocator* this_, size_t size) {
  return allocate(this_, size, BRIDGE_ALLOC, NULL);
}

static void* allocator_reserve(OrtAllocator* this_, size_t size) {
  return allocate(this_, size, BRIDGE_RESERVE, NULL);
}

static void* allocator_alloc_on_stream(OrtAllocator* this_, size_t size, OrtSyncStream* stream) {
  return allocate(this_, size, BRIDGE_ALLOC_ON_STREAM, stream);
}

static void allocator_free(OrtAllocator* this_, void* p) {
  const BridgePeer* peer = &((PyAllocator*)this_)->peer;
  if (!p) return;
  BridgeCall call = bridge_peer_call(peer, "OrtAllocator::Free");
  if (call.entered) call.ok = bridge_py_free(&call, peer->id, (uint64_t)(uintptr_t)p);
  bridge_call_end_void(&call);
}

static const OrtMemoryInfo* allocator_info(const OrtAllocator* this_) {
  return ((const PyAllocator*)this_)->info;
}

/* Gives (caller releases with ReleaseKeyValuePairs). */
static OrtStatus* allocator_get_stats(const OrtAllocator* this_, OrtKeyValuePairs** out) {
  const BridgePeer* peer = &((const PyAllocator*)this_)->peer;
  *out = NULL;
  BridgeCall call = bridge_peer_call(peer, "OrtAllocator::GetStats");
  if (call.entered) call.ok = bridge_py_get_stats(&call, peer->id, out);
  return bridge_call_end(&call);
}

static OrtStatus* allocator_shrink(OrtAllocator* this_) {
  const BridgePeer* peer = &((PyAllocator*)this_)->peer;
  BridgeCall call = bridge_peer_call(peer, "OrtAllocator::Shrink");
  if (call.entered) call.ok = bridge_py_shrink(&call, peer->id);
  return bridge_call_end(&call);
}

/* Gives the allocator (host releases with ReleaseAllocator). If the provider has none for this memory the
 * CPU's is to be used: that is the host's own and not NULL, which stock 1.24 dereferences. `owner` is the
 * Python object of the factory or of one of its providers. */
OrtStatus* bridge_allocator_new(const BridgeHost* host, const char* slot, OrtEpFactory* factory,
                                uint64_t owner, const char* name, const OrtMemoryInfo* memory_info,
                                const OrtKeyValuePairs* options, OrtAllocator** out) {
  BridgeAllocatorInfo info = {0};
  BridgeCall call = bridge_call_begin(host, slot, name);
  *out = NULL;
  if (call.entered) call.ok = bridge_py_create_allocator(&call, owner, memory_info, options, &info);
  OrtStatus* status = bridge_call_end(&call);
  if (status) return status;
  if (!info.id) return host->api->GetAllocatorWithDefaultOptions(out);
  PyAllocator* made = bridge_peer_new(sizeof *made, offsetof(PyAllocator, peer), host, info.id, name, slot);
  if (!made) {
    host->api->ReleaseMemoryInfo(info.memory);
    return bridge_no_memory(host, slot);
  }
  made->info = info.memory;
  made->factory = factory;
  made->base = (OrtAllocator){.version = host->version,
                              .Alloc = allocator_alloc,
                              .Free = allocator_free,
                              .Info = allocator_info,
                              .Reserve = allocator_reserve};
  if (info.features & BRIDGE_ALLOCATOR_STATS) made->base.GetStats = allocator_get_stats;
  if (info.features & BRIDGE_ALLOCATOR_STREAMS) made->base.AllocOnStream = allocator_alloc_on_stream;
  if (info.features & BRIDGE_ALLOCATOR_SHRINK) made->base.Shrink = allocator_shrink;
  bridge_factory_use(factory);
  *out = &made->base;
  return NULL;
}

/* Releases the allocator and its Python object; not the host's own, which it may have been given. */
void bridge_allocator_free(OrtAllocator* base) {
  PyAllocator* allocator = (PyAllocator*)base;
  if (base->Alloc != allocator_alloc) return;
  OrtEpFactory* factory = allocator->factory;
  allocator->peer.host->api->ReleaseMemoryInfo(allocator->info);
  bridge_peer_free(allocator, &allocator->peer, "OrtEpFactory::ReleaseAllocator");
  bridge_factory_unuse(factory);
}

/* ---- Copies ---- */

static bool transfer_can_copy(const OrtDataTransferImpl* this_ptr, const OrtMemoryDevice* source,
                              const OrtMemoryDevice* target) {
  const BridgePeer* peer = &((const PyTransfer*)this_ptr)->peer;
  int yes = 0;
  BridgeCall call = bridge_peer_call(peer, "OrtDataTransferImpl::CanCopy");
  if (call.entered) call.ok = bridge_py_can_copy(&call, peer->id, source, target, &yes);
  bool result = call.entered && call.ok && yes;
  bridge_call_end_void(&call);
  return result;
}

/* Borrows the values during the call. */
static OrtStatus* transfer_copy_tensors(OrtDataTransferImpl* this_ptr, const OrtValue** sources,
                                        OrtValue** targets, OrtSyncStream** streams, size_t count) {
  const BridgePeer* peer = &((PyTransfer*)this_ptr)->peer;
  BridgeCall call = bridge_peer_call(peer, "OrtDataTransferImpl::CopyTensors");
  bool is_ready = call.entered;
  for (size_t i = 0; streams && is_ready && i < count; i++) is_ready = wait_for_others(&call, streams[i]);
  if (is_ready) call.ok = bridge_py_copy_tensors(&call, peer->id, sources, targets, streams, count);
  return bridge_call_end(&call);
}

static void transfer_release(OrtDataTransferImpl* this_ptr) {
  PyTransfer* transfer = (PyTransfer*)this_ptr;
  bridge_peer_free(transfer, &transfer->peer, "OrtDataTransferImpl::Release");
}

/* Gives the data transfer (host releases with its Release), NULL if the provider has none. */
OrtStatus* bridge_transfer_new(const BridgeHost* host, uint64_t factory_id, const char* name,
                               OrtDataTransferImpl** out) {
  static const char slot[] = "OrtEpFactory::CreateDataTransfer";
  uint64_t id = 0;
  BridgeCall call = bridge_call_begin(host, slot, name);
  *out = NULL;
  if (call.entered) call.ok = bridge_py_create_data_transfer(&call, factory_id, &id);
  OrtStatus* status = bridge_call_end(&call);
  if (status || !id) return status;
  PyTransfer* made = bridge_peer_new(sizeof *made, offsetof(PyTransfer, peer), host, id, name, slot);
  if (!made) return bridge_no_memory(host, slot);
  made->base = (OrtDataTransferImpl){.ort_version_supported = host->version,
                                     .Release = transfer_release,
                                     .CanCopy = transfer_can_copy,
                                     .CopyTensors = transfer_copy_tensors};
  *out = &made->base;
  return NULL;
}

/* ---- Notifications ---- */

static OrtStatus* notify(OrtSyncNotificationImpl* this_ptr, const char* slot, BridgeNotify what,
                         OrtSyncStream* consumer) {
  const BridgePeer* peer = &((PyNotification*)this_ptr)->peer;
  BridgeCall call = bridge_peer_call(peer, slot);
  if (call.entered) call.ok = bridge_py_notify(&call, peer->id, what, bridge_stream_id(&call, consumer));
  return bridge_call_end(&call);
}

static OrtStatus* notification_activate(OrtSyncNotificationImpl* this_ptr) {
  return notify(this_ptr, "OrtSyncNotificationImpl::Activate", BRIDGE_ACTIVATE, NULL);
}

static OrtStatus* notification_wait_on_device(OrtSyncNotificationImpl* this_ptr, OrtSyncStream* consumer) {
  return notify(this_ptr, "OrtSyncNotificationImpl::WaitOnDevice", BRIDGE_WAIT_ON_DEVICE, consumer);
}

static OrtStatus* notification_wait_on_host(OrtSyncNotificationImpl* this_ptr) {
  return notify(this_ptr, "OrtSyncNotificationImpl::WaitOnHost", BRIDGE_WAIT_ON_HOST, NULL);
}

static void notification_release(OrtSyncNotificationImpl* this_ptr) {
  PyNotification* notification = (PyNotification*)this_ptr;
  bridge_peer_free(notification, &notification->peer, "OrtSyncNotificationImpl::Release");
}

/* Gives the notification (host releases with its Release). */
static OrtStatus* stream_create_notification(OrtSyncStreamImpl* this_ptr, OrtSyncNotificationImpl** out) {
  static const char slot[] = "OrtSyncStreamImpl::CreateNotification";
  const BridgePeer* peer = &((PyStream*)this_ptr)->peer;
  uint64_t id = 0;
  BridgeCall call = bridge_peer_call(peer, slot);
  *out = NULL;
  if (call.entered) call.ok = bridge_py_create_notification(&call, peer->id, &id);
  OrtStatus* status = bridge_call_end(&call);
  if (status) return status;
  PyNotification* made =
      bridge_peer_new(sizeof *made, offsetof(PyNotification, peer), peer->host, id, peer->name, slot);
  if (!made) return bridge_no_memory(peer->host, slot);
  made->base = (OrtSyncNotificationImpl){.ort_version_supported = peer->host->version,
                                         .Release = notification_release,
                                         .Activate = notification_activate,
                                         .WaitOnDevice = notification_wait_on_device,
                                         .WaitOnHost = notification_wait_on_host};
  *out = &made->base;
  return NULL;
}

/* ---- Streams ---- */

/* Borrows: whatever the provider says that its stream is. */
static void* stream_get_handle(OrtSyncStreamImpl* this_ptr) {
  const BridgePeer* peer = &((PyStream*)this_ptr)->peer;
  uint64_t handle = 0;
  BridgeCall call = bridge_peer_call(peer, "OrtSyncStreamImpl::GetHandle");
  if (call.entered) call.ok = bridge_py_stream_handle(&call, peer->id, &handle);
  bool ok = call.entered && call.ok;
  bridge_call_end_void(&call);
  return ok ? (void*)(uintptr_t)handle : NULL;
}

static OrtStatus* stream_flush(OrtSyncStreamImpl* this_ptr) {
  const BridgePeer* peer = &((PyStream*)this_ptr)->peer;
  BridgeCall call = bridge_peer_call(peer, "OrtSyncStreamImpl::Flush");
  if (call.entered) call.ok = bridge_py_stream_flush(&call, peer->id);
  return bridge_call_end(&call);
}

static OrtStatus* stream_on_session_run_end(OrtSyncStreamImpl* this_ptr) {
  const BridgePeer* peer = &((PyStream*)this_ptr)->peer;
  BridgeCall call = bridge_peer_call(peer, "OrtSyncStreamImpl::OnSessionRunEnd");
  if (call.entered) call.ok = bridge_py_stream_run_end(&call, peer->id);
  return bridge_call_end(&call);
}

static void stream_release(OrtSyncStreamImpl* this_ptr) {
  PyStream* stream = (PyStream*)this_ptr;
  bridge_peer_free(stream, &stream->peer, "OrtSyncStreamImpl::Release");
}

/* Gives the stream (host releases with its Release). */
OrtStatus* bridge_stream_new(const BridgeHost* host, const char* slot, uint64_t owner, const char* name,
                             const OrtMemoryDevice* device, const OrtKeyValuePairs* options,
                             OrtSyncStreamImpl** out) {
  uint64_t id = 0;
  BridgeCall call = bridge_call_begin(host, slot, name);
  *out = NULL;
  if (call.entered) call.ok = bridge_py_create_sync_stream(&call, owner, device, options, &id);
  OrtStatus* status = bridge_call_end(&call);
  if (status) return status;
  PyStream* made = bridge_peer_new(sizeof *made, offsetof(PyStream, peer), host, id, name, slot);
  if (!made) return bridge_no_memory(host, slot);
  made->base = (OrtSyncStreamImpl){.ort_version_supported = host->version,
                                   .Release = stream_release,
                                   .GetHandle = stream_get_handle,
                                   .CreateNotification = stream_create_notification,
                                   .Flush = stream_flush,
                                   .OnSessionRunEnd = stream_on_session_run_end};
  *out = &made->base;
  return NULL;
}
