/* Memory and semaphores of others that a provider imports. Each struct that a host gets carries the id of one
 * Python object. */
#include "bridge.h"

typedef struct PyImporter {
  OrtExternalResourceImporterImpl base; /* first, in each of them: the host's pointer is ours */
  BridgePeer peer;
  const OrtEpDevice* ep_device;
} PyImporter;

/* The handles that a host gets differ in their descriptor only; a host releases them before the importer, or
 * after it: they have all that they need. */
typedef struct PyHandle {
  union {
    OrtExternalMemoryHandle memory;
    OrtExternalSemaphoreHandle semaphore;
  } base;
  BridgePeer peer;
} PyHandle;

static const PyImporter* of(const OrtExternalResourceImporterImpl* importer) {
  return (const PyImporter*)importer;
}

static BridgeCall begin(const OrtExternalResourceImporterImpl* importer, const char* slot) {
  return bridge_peer_call(&of(importer)->peer, slot);
}

/* ---- Handles ---- */

static void handle_free(PyHandle* handle, const char* slot) {
  bridge_peer_free(handle, &handle->peer, slot);
}

/* Gives a handle (released with handle_free). */
static OrtStatus* import(const OrtExternalResourceImporterImpl* importer, const char* slot,
                         const BridgeExternal* what, PyHandle** out) {
  const BridgePeer* peer = &of(importer)->peer;
  uint64_t id = 0;
  BridgeCall call = begin(importer, slot);
  if (call.entered) call.ok = bridge_py_import(&call, peer->id, what, &id);
  OrtStatus* status = bridge_call_end(&call);
  if (status) return status;
  *out = bridge_peer_new(sizeof **out, offsetof(PyHandle, peer), peer->host, id, peer->name, slot);
  return *out ? NULL : bridge_no_memory(peer->host, slot);
}

static bool can_import(const OrtExternalResourceImporterImpl* importer, const char* slot,
                       const BridgeExternal* what) {
  int yes = 0;
  BridgeCall call = begin(importer, slot);
  if (call.entered) call.ok = bridge_py_can_import(&call, of(importer)->peer.id, what, &yes);
  bool is_good = call.entered && call.ok && yes;
  bridge_call_end_void(&call);
  return is_good;
}

/* ---- Memory ---- */

static bool importer_can_import_memory(const OrtExternalResourceImporterImpl* this_ptr,
                                       OrtExternalMemoryHandleType handle_type) {
  return can_import(this_ptr, "OrtExternalResourceImporterImpl::CanImportMemory",
                    &(BridgeExternal){.type = (int)handle_type});
}

static void memory_release(OrtExternalMemoryHandle* handle) {
  if (handle) handle_free((PyHandle*)handle, "OrtExternalMemoryHandle::Release");
}

/* Gives the handle (host releases with its Release). */
static OrtStatus* importer_import_memory(OrtExternalResourceImporterImpl* this_ptr,
                                         const OrtExternalMemoryDescriptor* desc,
                                         OrtExternalMemoryHandle** out_handle) {
  BridgeExternal what = {.type = (int)desc->handle_type,
                         .handle = (uint64_t)(uintptr_t)desc->native_handle,
                         .size = desc->size_bytes,
                         .offset = desc->offset_bytes};
  PyHandle* handle = NULL;
  *out_handle = NULL;
  OrtStatus* status = import(this_ptr, "OrtExternalResourceImporterImpl::ImportMemory", &what, &handle);
  if (status) return status;
  handle->base.memory = (OrtExternalMemoryHandle){.version = of(this_ptr)->peer.host->version,
                                                  .ep_device = of(this_ptr)->ep_device,
                                                  .descriptor = *desc,
                                                  .Release = memory_release};
  *out_handle = &handle->base.memory;
  return NULL;
}

static void importer_release_memory(OrtExternalResourceImporterImpl* this_ptr,
                                    OrtExternalMemoryHandle* handle) {
  (void)this_ptr;
  memory_release(handle);
}

/* Gives the value (host releases with ReleaseValue), over memory that the handle keeps. */
static OrtStatus* importer_create_tensor(OrtExternalResourceImporterImpl* this_ptr,
                                         const OrtExternalMemoryHandle* mem_handle,
                                         const OrtExternalTensorDescriptor* tensor_desc,
                                         OrtValue** out_tensor) {
  BridgeCall call = begin(this_ptr, "OrtExternalResourceImporterImpl::CreateTensorFromMemory");
  *out_tensor = NULL;
  if (call.entered) {
    call.ok = bridge_py_imported_tensor(&call, ((const PyHandle*)mem_handle)->peer.id,
                                        (int)tensor_desc->element_type, tensor_desc->shape, tensor_desc->rank,
                                        tensor_desc->offset_bytes, out_tensor);
  }
  return bridge_call_end(&call);
}

/* ---- Semaphores ---- */

static bool importer_can_import_semaphore(const OrtExternalResourceImporterImpl* this_ptr,
                                          OrtExternalSemaphoreType type) {
  return can_import(this_ptr, "OrtExternalResourceImporterImpl::CanImportSemaphore",
                    &(BridgeExternal){.type = (int)type, .is_semaphore = 1});
}

static void semaphore_release(OrtExternalSemaphoreHandle* handle) {
  if (handle) handle_free((PyHandle*)handle, "OrtExternalSemaphoreHandle::Release");
}

/* Gives the handle (host releases with its Release). */
static OrtStatus* importer_import_semaphore(OrtExternalResourceImporterImpl* this_ptr,
                                            const OrtExternalSemaphoreDescriptor* desc,
                                            OrtExternalSemaphoreHandle** out_handle) {
  BridgeExternal what = {
      .type = (int)desc->type, .is_semaphore = 1, .handle = (uint64_t)(uintptr_t)desc->native_handle};
  PyHandle* handle = NULL;
  *out_handle = NULL;
  OrtStatus* status = import(this_ptr, "OrtExternalResourceImporterImpl::ImportSemaphore", &what, &handle);
  if (status) return status;
  handle->base.semaphore = (OrtExternalSemaphoreHandle){.version = of(this_ptr)->peer.host->version,
                                                        .ep_device = of(this_ptr)->ep_device,
                                                        .descriptor = *desc,
                                                        .Release = semaphore_release};
  *out_handle = &handle->base.semaphore;
  return NULL;
}

static void importer_release_semaphore(OrtExternalResourceImporterImpl* this_ptr,
                                       OrtExternalSemaphoreHandle* handle) {
  (void)this_ptr;
  semaphore_release(handle);
}

static OrtStatus* use_semaphore(OrtExternalResourceImporterImpl* importer, const char* slot,
                                const OrtExternalSemaphoreHandle* handle, const OrtSyncStream* stream,
                                uint64_t value, int is_signal) {
  BridgeCall call = begin(importer, slot);
  if (call.entered) {
    call.ok = bridge_py_semaphore(&call, ((const PyHandle*)handle)->peer.id, bridge_stream_id(&call, stream),
                                  value, is_signal);
  }
  return bridge_call_end(&call);
}

static OrtStatus* importer_wait_semaphore(OrtExternalResourceImporterImpl* this_ptr,
                                          OrtExternalSemaphoreHandle* handle, OrtSyncStream* stream,
                                          uint64_t value) {
  return use_semaphore(this_ptr, "OrtExternalResourceImporterImpl::WaitSemaphore", handle, stream, value, 0);
}

static OrtStatus* importer_signal_semaphore(OrtExternalResourceImporterImpl* this_ptr,
                                            OrtExternalSemaphoreHandle* handle, OrtSyncStream* stream,
                                            uint64_t value) {
  return use_semaphore(this_ptr, "OrtExternalResourceImporterImpl::SignalSemaphore", handle, stream, value,
                       1);
}

/* ---- The importer ---- */

static void importer_release(OrtExternalResourceImporterImpl* this_ptr) {
  PyImporter* importer = (PyImporter*)this_ptr;
  bridge_peer_free(importer, &importer->peer, "OrtExternalResourceImporterImpl::Release");
}

/* Gives the importer (host releases with its Release), NULL if the provider has none. Borrows ep_device,
 * which the host keeps; copies name. */
OrtStatus* bridge_importer_new(const BridgeHost* host, uint64_t factory_id, const char* name,
                               const OrtEpDevice* ep_device, OrtExternalResourceImporterImpl** out) {
  static const char slot[] = "OrtEpFactory::CreateExternalResourceImporterForDevice";
  uint64_t id = 0;
  BridgeCall call = bridge_call_begin(host, slot, name);
  *out = NULL;
  if (call.entered) call.ok = bridge_py_create_importer(&call, factory_id, ep_device, &id);
  OrtStatus* status = bridge_call_end(&call);
  if (status || !id) return status;
  PyImporter* made = bridge_peer_new(sizeof *made, offsetof(PyImporter, peer), host, id, name, slot);
  if (!made) return bridge_no_memory(host, slot);
  made->ep_device = ep_device;
  made->base = (OrtExternalResourceImporterImpl){.ort_version_supported = host->version,
                                                 .CanImportMemory = importer_can_import_memory,
                                                 .ImportMemory = importer_import_memory,
                                                 .ReleaseMemory = importer_release_memory,
                                                 .CreateTensorFromMemory = importer_create_tensor,
                                                 .CanImportSemaphore = importer_can_import_semaphore,
                                                 .ImportSemaphore = importer_import_semaphore,
                                                 .ReleaseSemaphore = importer_release_semaphore,
                                                 .WaitSemaphore = importer_wait_semaphore,
                                                 .SignalSemaphore = importer_signal_semaphore,
                                                 .Release = importer_release};
  *out = &made->base;
  return NULL;
}
