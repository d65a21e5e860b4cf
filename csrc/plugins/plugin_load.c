/* EP libraries: loading, registering, unregistering. Registration is atomic: after a failure nothing of it is
 * left. Everything here runs under env_lock. */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "api_slots.h"
#include "cpu_ep/cpu_ep.h"
#include "plugins/plugins.h"

#define BUILTIN_NAME   "CPUExecutionProvider"
#define VIRTUAL_SUFFIX ".virtual"
#define VIRTUAL_KEY    "allow_virtual_devices"

/* ---- Closing ---- */

/* releases all that a library owns, in the reverse order of its making, and unmaps it. */
static void library_close(OrtEnv* env, EpLibrary* library) {
  if (library == NULL) return;
  AtWork before = at_work_begin("EP library", library->registration_name, NULL, NULL);
  for (size_t i = library->factory_count; i-- > 0;) {
    OrtDataTransferImpl* transfer = library->data_transfers[i];
    if (transfer != NULL) call_OrtDataTransferImpl_Release(transfer, NULL);
  }
  for (size_t i = library->device_count; i-- > 0;) shared_allocators_drop(env, library->devices[i]);
  for (size_t i = library->device_count; i-- > 0;) ep_device_free(library->devices[i]);
  for (size_t i = library->factory_count; i-- > 0;) {
    OrtEpFactory* factory = library->factories[i];
    size_t leaked = ep_device_drop_pending(factory);
    if (leaked > 0)
      LOG(NULL, WARNING, "EP library '%s': %zu OrtEpDevices were neither handed over nor released",
          library->registration_name, leaked);
    OrtStatus* status = call_ReleaseEpApiFactoryFn(library->release_factory, factory);
    if (status != NULL)
      LOG(NULL, ERROR, "EP library '%s': ReleaseEpFactory failed, unloading goes on: %s",
          library->registration_name, status_message(status));
    status_release(status);
  }
  if (library->handle != NULL && dlclose(library->handle) != 0)
    LOG(NULL, ERROR, "EP library '%s': dlclose: %s", library->registration_name, dlerror());
  for (OrtSyncStream *stream = library->spare_streams, *next; stream != NULL; stream = next) {
    next = stream->next_spare;
    mem_free(stream);
  }
  at_work = before;
  mem_free(library->registration_name);
  mem_free(library->path);
  mem_free(library);
}

/* ---- Opening ---- */

/* gives (caller releases with mem_free). Links are kept: what belongs to a library lies beside the link. */
static char* absolute_path(const char* path) {
  char folder[PATH_MAX];
  if (path[0] == '/' || getcwd(folder, sizeof folder) == NULL) return str_copy(path);
  return str_format("%s/%s", folder, path);
}

static OrtStatus* find_symbol(void* handle, const char* symbol, void** out) {
  bool is_legacy = dlsym(handle, "GetProvider") != NULL;
  dlerror();
  *out = dlsym(handle, symbol);
  if (*out != NULL) return NULL;
  const char* error = dlerror();
  return status_new(ORT_FAIL, "%s is not exported: %s%s", symbol, error != NULL ? error : "it is NULL",
                    is_legacy
                        ? "; it exports GetProvider: an EP of the older kind, which only an ORT of its own "
                          "version can load"
                        : "");
}

static OrtStatus* library_open(EpLibrary* library, CreateEpApiFactoriesFn* create) {
  void *create_symbol, *release_symbol;
  library->handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
  if (library->handle == NULL) return status_new(ORT_FAIL, "cannot load: %s", dlerror());
  TRY(plugin_guard_load());
  TRY(find_symbol(library->handle, "CreateEpFactories", &create_symbol));
  TRY(find_symbol(library->handle, "ReleaseEpFactory", &release_symbol));
  memcpy(create, &create_symbol, sizeof *create); /* ISO C has no cast from data to function pointers */
  memcpy(&library->release_factory, &release_symbol, sizeof release_symbol);
  return NULL;
}

/* ---- Factories and devices ---- */

/* Takes what was written: also after a failure those factories are the host's to release, as in stock ORT. */
static bool adopt_factories(EpLibrary* library, OrtEpFactory* const* factories, size_t said) {
  bool is_consistent = said <= EP_MAX_FACTORIES;
  for (size_t i = 0; i < EP_MAX_FACTORIES; i++) {
    if ((factories[i] != NULL) != (i < said)) is_consistent = false;
    if (factories[i] != NULL) library->factories[library->factory_count++] = factories[i];
  }
  return is_consistent;
}

static OrtStatus* library_create_factories(const OrtEnv* env, EpLibrary* library,
                                           CreateEpApiFactoriesFn create) {
  OrtEpFactory* factories[EP_MAX_FACTORIES] = {NULL};
  size_t said = 0;
  OrtStatus* status = call_CreateEpApiFactoriesFn(create, library->registration_name, OrtGetApiBase(),
                                                  &env->logger, factories, EP_MAX_FACTORIES, &said);
  bool is_consistent = adopt_factories(library, factories, said);
  if (status != NULL) return status_wrap(status, "CreateEpFactories");
  if (!is_consistent)
    return status_new(
        ORT_FAIL, "CreateEpFactories said %zu factories and gave %zu; up to %d are taken, none of them NULL",
        said, library->factory_count, EP_MAX_FACTORIES);
  if (said == 0)
    LOG(NULL, WARNING, "EP library '%s': CreateEpFactories gave no factory", library->registration_name);
  for (size_t i = 0; i < library->factory_count; i++) {
    TRY(guard_factory(library->factories[i], library->registration_name));
    library->factory_versions[i] =
        struct_version(library->factories[i]->ort_version_supported, OLDEST_FACTORY);
  }
  return NULL;
}

/* takes a device that a factory handed over. */
static OrtStatus* library_take_device(EpLibrary* library, const OrtEpFactory* factory, OrtEpDevice* device,
                                      size_t index, size_t count) {
  const char* slot = "OrtEpFactory::GetSupportedDevices";
  if (device == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "%s: device %zu of %zu is NULL", slot, index, count);
  if (!ep_device_take_pending(device))
    return status_new(
        ORT_INVALID_ARGUMENT,
        "%s: device %zu of %zu was not made by CreateEpDevice, or was released or handed over before", slot,
        index, count);
  library->devices[library->device_count++] = device;
  if (device->factory != factory)
    return status_new(ORT_INVALID_ARGUMENT, "%s: device %zu of %zu (%s) was made for another factory", slot,
                      index, count, device->ep_name);
  if (library->path != NULL && !key_values_set(device->ep_metadata, "library_path", library->path))
    return status_no_memory();
  return NULL;
}

static OrtStatus* library_ask_devices(EpLibrary* library, OrtEpFactory* factory,
                                      const HardwareList* hardware) {
  OrtEpDevice* devices[EP_MAX_DEVICES] = {NULL};
  size_t count = 0;
  OrtStatus* status =
      call_OrtEpFactory_GetSupportedDevices(factory, (const OrtHardwareDevice* const*)hardware->devices,
                                            hardware->count, devices, EP_MAX_DEVICES, &count);
  if (status != NULL) return status_wrap(status, "OrtEpFactory::GetSupportedDevices");
  if (count > EP_MAX_DEVICES)
    return status_new(ORT_INVALID_ARGUMENT,
                      "OrtEpFactory::GetSupportedDevices said %zu devices; up to %d are taken", count,
                      EP_MAX_DEVICES);
  for (size_t i = 0; i < count; i++) TRY(library_take_device(library, factory, devices[i], i, count));
  return NULL;
}

/* gives (caller releases `out->devices` with mem_free): the list may grow while plugins are called. */
static OrtStatus* copy_hardware(OrtEnv* env, HardwareList* out) {
  pthread_mutex_lock(&env->mutex);
  size_t count = env->hardware.count;
  OrtHardwareDevice** devices = mem_calloc(count, sizeof *devices);
  for (size_t i = 0; i < count && devices != NULL; i++) devices[i] = env->hardware.devices[i];
  pthread_mutex_unlock(&env->mutex);
  *out = (HardwareList){devices, count, count};
  return devices != NULL ? NULL : status_no_memory();
}

static OrtStatus* library_collect_devices(OrtEnv* env, EpLibrary* library) {
  HardwareList hardware;
  TRY(copy_hardware(env, &hardware));
  OrtStatus* status = NULL;
  for (size_t i = 0; i < library->factory_count && status == NULL; i++)
    status = library_ask_devices(library, library->factories[i], &hardware);
  mem_free(hardware.devices);
  if (status == NULL && library->device_count == 0)
    LOG(NULL, WARNING, "EP library '%s': no factory supports a device of this machine",
        library->registration_name);
  return status;
}

static OrtStatus* library_create_data_transfers(EpLibrary* library) {
  for (size_t i = 0; i < library->factory_count; i++) {
    OrtEpFactory* factory = library->factories[i];
    OrtDataTransferImpl* transfer = NULL;
    if (GUARD_SLOT(factory, library->factory_versions[i], CreateDataTransfer, 23) == NULL) continue;
    OrtStatus* status = call_OrtEpFactory_CreateDataTransfer(factory, &transfer);
    if (status != NULL) return status_wrap(status, "OrtEpFactory::CreateDataTransfer");
    if (transfer == NULL) continue;
    status = guard_data_transfer(transfer, library->registration_name);
    if (status != NULL) {
      if (transfer->Release != NULL) call_OrtDataTransferImpl_Release(transfer, NULL);
      return status;
    }
    library->data_transfers[i] = transfer;
  }
  return NULL;
}

/* ---- Registration ---- */

/* Publishes a complete library. */
static OrtStatus* library_commit(OrtEnv* env, EpLibrary* library) {
  OrtStatus* status = NULL;
  pthread_mutex_lock(&env->mutex);
  if (ARRAY_RESERVE(env->libraries, env->library_capacity, env->library_count + 1) &&
      ARRAY_RESERVE(env->devices, env->device_capacity, env->device_count + library->device_count)) {
    env->libraries[env->library_count++] = library;
    for (size_t i = 0; i < library->device_count; i++) {
      library->devices[i]->library = library;
      env->devices[env->device_count++] = library->devices[i];
    }
  } else {
    status = status_no_memory();
  }
  pthread_mutex_unlock(&env->mutex);
  return status;
}

/* Loads, asks and publishes. What is there after a failure is for library_close. */
static OrtStatus* library_fill(OrtEnv* env, EpLibrary* library) {
  CreateEpApiFactoriesFn create = cpu_ep_create_factories;
  library->release_factory = cpu_ep_release_factory;
  if (library->path != NULL) TRY(library_open(library, &create));
  TRY(library_create_factories(env, library, create));
  TRY(library_collect_devices(env, library));
  for (size_t i = 0; i < library->device_count; i++) TRY(shared_allocators_ensure(env, library->devices[i]));
  TRY(library_create_data_transfers(library));
  for (size_t i = 0; i < library->factory_count; i++)
    guard_factory_for_stock(library->factories[i], library->registration_name);
  return library_commit(env, library);
}

/* `path` NULL: the built-in EP. */
static OrtStatus* library_register(OrtEnv* env, const char* name, const char* path) {
  EpLibrary* library = mem_calloc(1, sizeof *library);
  if (library == NULL) return status_no_memory();
  library->registration_name = str_copy(name);
  library->path = path != NULL ? absolute_path(path) : NULL;
  bool is_good = library->registration_name != NULL && (path == NULL || library->path != NULL);
  AtWork before = at_work_begin("EP library", name, NULL, NULL);
  OrtStatus* status = is_good ? library_fill(env, library) : status_no_memory();
  at_work = before;
  if (status == NULL) return NULL;
  status =
      status_wrap(status, "EP library '%s' (%s)", name, library->path != NULL ? library->path : "built in");
  library_close(env, library);
  return status;
}

OrtStatus* ep_library_register_builtin(OrtEnv* env) {
  return library_register(env, BUILTIN_NAME, NULL);
}

/* borrows; NULL if there is none. */
static EpLibrary* library_find(const OrtEnv* env, const char* name) {
  for (size_t i = 0; i < env->library_count; i++) {
    if (strcmp(env->libraries[i]->registration_name, name) == 0) return env->libraries[i];
  }
  return NULL;
}

/* Sets or, with NULL, removes the key that lets EPs make virtual devices. False when out of memory. */
static bool allow_virtual_devices(OrtEnv* env, const char* value) {
  bool is_set = true;
  pthread_mutex_lock(&env->mutex);
  if (value != NULL)
    is_set = key_values_set(env->config, VIRTUAL_KEY, value);
  else
    api_RemoveKeyValuePair(env->config, VIRTUAL_KEY);
  pthread_mutex_unlock(&env->mutex);
  return is_set;
}

/* A registration name that ends in ".virtual" allows virtual devices while the library is registered. */
static OrtStatus* register_named(OrtEnv* env, const char* name, const char* path) {
  size_t length = strlen(name), suffix = strlen(VIRTUAL_SUFFIX);
  bool is_virtual = length >= suffix && strcmp(name + length - suffix, VIRTUAL_SUFFIX) == 0 &&
                    key_values_get(env->config, VIRTUAL_KEY) == NULL;
  if (library_find(env, name) != NULL)
    return status_new(ORT_FAIL,
                      "RegisterExecutionProviderLibrary: a library is already registered under '%s'", name);
  if (is_virtual && !allow_virtual_devices(env, "1")) return status_no_memory();
  OrtStatus* status = library_register(env, name, path);
  if (is_virtual) allow_virtual_devices(env, NULL);
  return status;
}

OrtStatus* ORT_API_CALL api_RegisterExecutionProviderLibrary(OrtEnv* env, const char* registration_name,
                                                             const ORTCHAR_T* path) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(registration_name);
  REQUIRE_ARG(path);
  if (registration_name[0] == '\0')
    return status_new(ORT_INVALID_ARGUMENT,
                      "RegisterExecutionProviderLibrary: the registration name is empty");
  if (path[0] == '\0')
    return status_new(ORT_INVALID_ARGUMENT, "RegisterExecutionProviderLibrary: the path for '%s' is empty",
                      registration_name);
  env_lock();
  OrtStatus* status = register_named(env, registration_name, path);
  env_unlock();
  return status;
}

/* ---- Unregistration ---- */

/* takes the library out of the environment's lists. Under the environment's mutex. */
static void library_withdraw(OrtEnv* env, const EpLibrary* library) {
  size_t kept = 0;
  for (size_t i = 0; i < env->device_count; i++) {
    if (env->devices[i]->library != library) env->devices[kept++] = env->devices[i];
  }
  env->device_count = kept;
  kept = 0;
  for (size_t i = 0; i < env->library_count; i++) {
    if (env->libraries[i] != library) env->libraries[kept++] = env->libraries[i];
  }
  env->library_count = kept;
}

/* A library that goes takes its shared allocators along; others may have relied on an equal one. */
static void replace_shared_allocators(OrtEnv* env) {
  for (size_t i = 0; i < env->device_count; i++) {
    OrtStatus* status = shared_allocators_ensure(env, env->devices[i]);
    if (status != NULL)
      LOG(NULL, ERROR, "no shared allocator for a device of %s: %s", env->devices[i]->ep_name,
          status_message(status));
    status_release(status);
  }
}

void ep_library_unregister_last(OrtEnv* env) {
  EpLibrary* library = env->libraries[env->library_count - 1];
  pthread_mutex_lock(&env->mutex);
  library_withdraw(env, library);
  pthread_mutex_unlock(&env->mutex);
  library_close(env, library);
}

static bool ep_library_is_used(const EpLibrary* library) {
  for (int i = 0; i < LIBRARY_USE_COUNT; i++) {
    if (library->uses[i] > 0) return true;
  }
  return false;
}

/* gives a status that names what keeps the library. */
static OrtStatus* library_in_use(const EpLibrary* library) {
  static const char* const names[LIBRARY_USE_COUNT] = {"session device", "stream", "tensor",
                                                       "session allocator", "running call"};
  StrBuf by = {0};
  for (int i = 0; i < LIBRARY_USE_COUNT; i++) {
    int count = library->uses[i];
    if (count > 0)
      strbuf_append(&by, "%s%d %s%s", by.length != 0 ? ", " : "", count, names[i], count == 1 ? "" : "s");
  }
  OrtStatus* status =
      status_new(ORT_FAIL, "UnregisterExecutionProviderLibrary: '%s' (%s) is in use: %s; release them first",
                 library->registration_name, library->path, by.text != NULL ? by.text : "until just now");
  strbuf_release(&by);
  return status;
}

static OrtStatus* unregister_named(OrtEnv* env, const char* name) {
  EpLibrary* library = library_find(env, name);
  if (library == NULL)
    return status_new(ORT_FAIL, "UnregisterExecutionProviderLibrary: no library is registered under '%s'",
                      name);
  if (library->path == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "UnregisterExecutionProviderLibrary: '%s' is built in", name);
  pthread_mutex_lock(&env->mutex);
  bool is_used = ep_library_is_used(library);
  if (!is_used) library_withdraw(env, library);
  pthread_mutex_unlock(&env->mutex);
  if (is_used) return library_in_use(library);
  library_close(env, library);
  replace_shared_allocators(env);
  return NULL;
}

OrtStatus* ORT_API_CALL api_UnregisterExecutionProviderLibrary(OrtEnv* env, const char* registration_name) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(registration_name);
  env_lock();
  OrtStatus* status = unregister_named(env, registration_name);
  env_unlock();
  return status;
}
