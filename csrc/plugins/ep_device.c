/* EP devices: an EP paired with a hardware device, made by the EP in GetSupportedDevices. */
#include <ctype.h>
#include <string.h>

#include "api_slots.h"
#include "plugins/plugins.h"

/* Made by CreateEpDevice, neither released nor handed over yet. */
static OrtEpDevice* pending_devices = NULL;
static pthread_mutex_t pending_mutex = PTHREAD_MUTEX_INITIALIZER;

void ep_devices_guard_fork(void) {
  static ForkGuard pending_fork;
  fork_guard_open(&pending_fork, &pending_mutex, false);
}

void ep_device_free(OrtEpDevice* device) {
  if (device == NULL) return;
  mem_free(device->ep_name);
  mem_free(device->ep_vendor);
  key_values_release(device->ep_metadata);
  key_values_release(device->ep_options);
  mem_free(device);
}

static void pending_add(OrtEpDevice* device) {
  pthread_mutex_lock(&pending_mutex);
  device->next_pending = pending_devices;
  pending_devices = device;
  pthread_mutex_unlock(&pending_mutex);
}

bool ep_device_take_pending(const OrtEpDevice* device) {
  bool is_found = false;
  pthread_mutex_lock(&pending_mutex);
  for (OrtEpDevice** at = &pending_devices; *at != NULL && !is_found;) {
    is_found = *at == device;
    if (is_found)
      *at = device->next_pending;
    else
      at = &(*at)->next_pending;
  }
  pthread_mutex_unlock(&pending_mutex);
  return is_found;
}

size_t ep_device_drop_pending(const OrtEpFactory* factory) {
  size_t count = 0;
  pthread_mutex_lock(&pending_mutex);
  for (OrtEpDevice** at = &pending_devices; *at != NULL;) {
    OrtEpDevice* device = *at;
    if (device->factory != factory) {
      at = &device->next_pending;
      continue;
    }
    *at = device->next_pending;
    ep_device_free(device);
    count++;
  }
  pthread_mutex_unlock(&pending_mutex);
  return count;
}

/* ---- Membership ---- */

/* Under the environment's mutex. */
static bool is_member(const OrtEnv* env, const OrtEpDevice* device) {
  for (size_t i = 0; i < env->device_count; i++) {
    if (env->devices[i] == device) return true;
  }
  return false;
}

static OrtStatus* not_a_member(const char* slot) {
  return status_new(ORT_INVALID_ARGUMENT,
                    "%s: not an EP device of this environment, or its library is no longer registered", slot);
}

OrtStatus* ep_device_check(OrtEnv* env, const OrtEpDevice* device, const char* slot) {
  if (device == NULL) return status_new(ORT_INVALID_ARGUMENT, "%s: the EP device is NULL", slot);
  pthread_mutex_lock(&env->mutex);
  bool is_good = is_member(env, device);
  pthread_mutex_unlock(&env->mutex);
  return is_good ? NULL : not_a_member(slot);
}

OrtStatus* ep_device_use(OrtEnv* env, const OrtEpDevice* device, const char* slot) {
  pthread_mutex_lock(&env->mutex);
  bool is_good = is_member(env, device);
  if (is_good) device->library->uses[USE_SESSION]++;
  pthread_mutex_unlock(&env->mutex);
  return is_good ? NULL : not_a_member(slot);
}

void ep_device_unuse(const OrtEpDevice* device) {
  device->library->uses[USE_SESSION]--;
}

/* ---- OrtEpApi: what an EP makes ---- */

static bool is_identifier(char c) {
  return isalnum((unsigned char)c) || c == '-';
}

/* Reads dot-separated identifiers up to `end`; without `allow_zeros`, numbers must not begin with 0. */
static bool read_identifiers(const char** at, char end, bool allow_zeros) {
  for (;;) {
    const char* start = *at;
    bool is_number = true;
    for (; is_identifier(**at); ++*at) is_number = is_number && isdigit((unsigned char)**at);
    if (*at == start) return false;
    if (is_number && !allow_zeros && *start == '0' && *at - start > 1) return false;
    if (**at != '.') return **at == end || **at == '\0';
    ++*at;
  }
}

static bool read_number(const char** at) {
  const char* start = *at;
  while (isdigit((unsigned char)**at)) ++*at;
  return *at > start && (*start != '0' || *at - start == 1);
}

/* Semantic versioning 2.0: MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]. */
static bool is_semantic_version(const char* at) {
  for (int i = 0; i < 3; i++) {
    if (i > 0 && *at++ != '.') return false;
    if (!read_number(&at)) return false;
  }
  if (*at == '-' && (at++, !read_identifiers(&at, '+', false))) return false;
  if (*at == '+' && (at++, !read_identifiers(&at, '\0', true))) return false;
  return *at == '\0';
}

/* Adds the factory's version to the metadata, as stock ORT does: a semantic version, and not the EP's own
 * entry. */
static OrtStatus* add_version(OrtEpDevice* device) {
  if (device->factory_version < 23) return NULL;
  if (key_values_get(device->ep_metadata, "version") != NULL)
    return status_new(ORT_INVALID_ARGUMENT,
                      "CreateEpDevice: %s: 'version' in the metadata is the host's to set, from "
                      "OrtEpFactory::GetVersion",
                      device->ep_name);
  OrtStatus* thrown = NULL;
  const char* version = call_OrtEpFactory_GetVersion(device->factory, &thrown);
  TRY(thrown);
  if (version == NULL || !is_semantic_version(version))
    return status_new(
        ORT_FAIL,
        "CreateEpDevice: %s: OrtEpFactory::GetVersion gave %s%s%s, not a semantic version like 1.2.3",
        device->ep_name, version ? "'" : "", version ? version : "NULL", version ? "'" : "");
  return key_values_set(device->ep_metadata, "version", version) ? NULL : status_no_memory();
}

static OrtStatus* fill_device(OrtEpDevice* device, const OrtKeyValuePairs* metadata,
                              const OrtKeyValuePairs* options) {
  const OrtEpFactory* factory = device->factory;
  if (factory->GetName == NULL || factory->GetVendor == NULL ||
      (device->factory_version >= 23 && factory->GetVersion == NULL))
    return status_new(ORT_INVALID_ARGUMENT,
                      "CreateEpDevice: OrtEpFactory::GetName, GetVendor or GetVersion is NULL");
  OrtStatus* thrown = NULL;
  const char* name = call_OrtEpFactory_GetName(factory, &thrown);
  TRY(thrown);
  if (name == NULL || name[0] == '\0')
    return status_new(ORT_INVALID_ARGUMENT, "CreateEpDevice: OrtEpFactory::GetName gave no name");
  const char* vendor = call_OrtEpFactory_GetVendor(factory, &thrown);
  TRY(thrown);
  if (vendor == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "CreateEpDevice: %s: OrtEpFactory::GetVendor gave NULL", name);
  device->ep_name = str_copy(name);
  device->ep_vendor = str_copy(vendor);
  device->ep_metadata = key_values_copy(metadata);
  device->ep_options = key_values_copy(options);
  if (device->ep_name == NULL || device->ep_vendor == NULL || device->ep_metadata == NULL ||
      device->ep_options == NULL)
    return status_no_memory();
  return add_version(device);
}

/* gives (caller hands it over from GetSupportedDevices or releases with ReleaseEpDevice). copies the pairs;
 * keeps `ep_factory` and `hardware_device`, which must outlive the registration. */
OrtStatus* ORT_API_CALL api_CreateEpDevice(OrtEpFactory* ep_factory, const OrtHardwareDevice* hardware_device,
                                           const OrtKeyValuePairs* ep_metadata,
                                           const OrtKeyValuePairs* ep_options, OrtEpDevice** ep_device) {
  REQUIRE_ARG(ep_factory);
  REQUIRE_ARG(hardware_device);
  REQUIRE_ARG(ep_device);
  OrtEpDevice* device = mem_calloc(1, sizeof *device);
  if (device == NULL) return status_no_memory();
  device->device = hardware_device;
  device->factory = ep_factory;
  device->factory_version = struct_version(ep_factory->ort_version_supported, OLDEST_FACTORY);
  OrtStatus* status = fill_device(device, ep_metadata, ep_options);
  if (status != NULL) {
    ep_device_free(device);
    return status;
  }
  pending_add(device);
  *ep_device = device;
  return NULL;
}

/* Only for a device that was not handed over: those belong to the environment. */
void ORT_API_CALL api_ReleaseEpDevice(OrtEpDevice* input) {
  if (input == NULL) return;
  if (ep_device_take_pending(input))
    ep_device_free(input);
  else
    log_unreported("ReleaseEpDevice", "the device was released before or belongs to the environment");
}

/* Where the info of such memory is kept; NULL for memory that no device can have. */
static const OrtMemoryInfo** memory_slot(OrtEpDevice* device, const OrtMemoryInfo* info) {
  bool is_default = info->device.memory_type == OrtDeviceMemoryType_DEFAULT;
  if (info->mem_type != (is_default ? OrtMemTypeDefault : OrtMemTypeCPUOutput)) return NULL;
  if (info->allocator_type == OrtReadOnlyAllocator) return is_default ? &device->read_only_memory : NULL;
  if (info->allocator_type != OrtDeviceAllocator) return NULL;
  return is_default ? &device->device_memory : &device->host_accessible_memory;
}

/* borrows the info, which must outlive the device: EPs know their memory by this pointer, so it is what every
 * callback gets. A second one of the same type replaces the first. */
OrtStatus* ORT_API_CALL api_EpDevice_AddAllocatorInfo(OrtEpDevice* ep_device,
                                                      const OrtMemoryInfo* allocator_memory_info) {
  REQUIRE_ARG(ep_device);
  REQUIRE_ARG(allocator_memory_info);
  const OrtMemoryInfo* info = allocator_memory_info;
  const OrtMemoryInfo** slot = memory_slot(ep_device, info);
  if (ep_device->library != NULL)
    return status_new(ORT_INVALID_ARGUMENT,
                      "EpDevice_AddAllocatorInfo: the device of %s is registered already",
                      ep_device->ep_name);
  if (slot == NULL)
    return status_new(
        ORT_INVALID_ARGUMENT,
        "EpDevice_AddAllocatorInfo: %s: '%s' has memory type %d, OrtMemType %d and allocator type %d; a "
        "device has default memory (OrtMemTypeDefault, device or read-only allocator) and "
        "host-accessible memory (OrtMemTypeCPUOutput, device allocator)",
        ep_device->ep_name, info->name, (int)info->device.memory_type, (int)info->mem_type,
        (int)info->allocator_type);
  *slot = info;
  return NULL;
}

/* ---- OrtApi: queries ---- */

#define DEVICE_QUERY(slot, type, member)                       \
  type ORT_API_CALL api_##slot(const OrtEpDevice* ep_device) { \
    if (ep_device != NULL) return ep_device->member;           \
    log_unreported(#slot, "argument 'ep_device' is NULL");     \
    return NULL;                                               \
  }

/* All borrow: they live as long as the library is registered. */
DEVICE_QUERY(EpDevice_EpName, const char*, ep_name)
DEVICE_QUERY(EpDevice_EpVendor, const char*, ep_vendor)
DEVICE_QUERY(EpDevice_EpMetadata, const OrtKeyValuePairs*, ep_metadata)
DEVICE_QUERY(EpDevice_EpOptions, const OrtKeyValuePairs*, ep_options)
DEVICE_QUERY(EpDevice_Device, const OrtHardwareDevice*, device)

/* borrows: NULL when the device has no such memory. */
const OrtMemoryInfo* ORT_API_CALL api_EpDevice_MemoryInfo(const OrtEpDevice* ep_device,
                                                          OrtDeviceMemoryType memory_type) {
  if (ep_device == NULL) {
    log_unreported("EpDevice_MemoryInfo", "argument 'ep_device' is NULL");
    return NULL;
  }
  if (memory_type == OrtDeviceMemoryType_DEFAULT) return ep_device->device_memory;
  return memory_type == OrtDeviceMemoryType_HOST_ACCESSIBLE ? ep_device->host_accessible_memory : NULL;
}

/* borrows: the array is valid until a library is registered or unregistered. */
OrtStatus* ORT_API_CALL api_GetEpDevices(const OrtEnv* env, const OrtEpDevice* const** ep_devices,
                                         size_t* num_ep_devices) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(ep_devices);
  REQUIRE_ARG(num_ep_devices);
  OrtEnv* locked = (OrtEnv*)env;
  pthread_mutex_lock(&locked->mutex);
  *ep_devices = (const OrtEpDevice* const*)env->devices;
  *num_ep_devices = env->device_count;
  pthread_mutex_unlock(&locked->mutex);
  return NULL;
}

/* ---- OrtApi: session options ---- */

static OrtStatus* check_devices(OrtEnv* env, const OrtEpDevice* const* devices, size_t count) {
  const char* slot = "SessionOptionsAppendExecutionProvider_V2";
  for (size_t i = 0; i < count; i++) {
    TRY(ep_device_check(env, devices[i], slot));
    if (devices[i]->factory != devices[0]->factory || strcmp(devices[i]->ep_name, devices[0]->ep_name) != 0)
      return status_new(
          ORT_INVALID_ARGUMENT,
          "%s: devices of different execution providers in one call: %s and %s; append each by itself", slot,
          devices[0]->ep_name, devices[i]->ep_name);
  }
  return NULL;
}

/* Sets "ep.<EP name in lower case>.<key>". */
static OrtStatus* set_ep_option(OrtKeyValuePairs* config, const char* ep_name, const char* key,
                                const char* value, bool replaces) {
  char* full_key = str_format("ep.%s.%s", ep_name, key);
  if (full_key == NULL) return status_no_memory();
  for (char* c = full_key + 3; c < full_key + 3 + strlen(ep_name); c++) *c = (char)tolower((unsigned char)*c);
  bool is_set = !replaces && key_values_get(config, full_key) != NULL;
  is_set = is_set || key_values_set(config, full_key, value);
  mem_free(full_key);
  return is_set ? NULL : status_no_memory();
}

static OrtStatus* set_default_options(OrtKeyValuePairs* config, const OrtEpDevice* device, bool replaces) {
  const OrtKeyValuePairs* defaults = device->ep_options;
  for (size_t i = 0; i < defaults->count; i++)
    TRY(set_ep_option(config, device->ep_name, defaults->keys[i], defaults->values[i], replaces));
  return NULL;
}

OrtStatus* ep_device_default_options(const OrtEpDevice* device, OrtKeyValuePairs* config) {
  return set_default_options(config, device, false);
}

/* The devices' own options first, so that the caller's win. */
static OrtStatus* set_ep_options(OrtKeyValuePairs* config, const OrtEpDevice* const* devices, size_t count,
                                 const char* const* keys, const char* const* values, size_t option_count) {
  for (size_t i = 0; i < count; i++) TRY(set_default_options(config, devices[i], true));
  for (size_t i = 0; i < option_count; i++) {
    if (keys[i] == NULL) continue; /* as stock ORT */
    if (values[i] == NULL)
      return status_new(ORT_INVALID_ARGUMENT,
                        "SessionOptionsAppendExecutionProvider_V2: the value of option '%s' for %s is NULL",
                        keys[i], devices[0]->ep_name);
    TRY(set_ep_option(config, devices[0]->ep_name, keys[i], values[i], true));
  }
  return NULL;
}

/* Puts devices and configuration into the options; takes both, on success. */
static bool commit_selection(OrtSessionOptions* options, OrtEnv* env, const OrtEpDevice** devices,
                             size_t count, OrtKeyValuePairs* config) {
  if (!ARRAY_RESERVE(options->eps, options->ep_capacity, options->ep_count + 1)) return false;
  options->eps[options->ep_count++] = (EpSelection){devices, count};
  key_values_release(options->config);
  options->config = config;
  options->env = env;
  return true;
}

OrtStatus* ORT_API_CALL api_SessionOptionsAppendExecutionProvider_V2(
    OrtSessionOptions* session_options, OrtEnv* env, const OrtEpDevice* const* ep_devices,
    size_t num_ep_devices, const char* const* ep_option_keys, const char* const* ep_option_vals,
    size_t num_ep_options) {
  OrtKeyValuePairs* config = NULL;
  const OrtEpDevice** devices = NULL;
  REQUIRE_ARG(session_options);
  TRY(env_check(env, __func__));
  REQUIRE_ARG(ep_devices);
  if (num_ep_devices == 0)
    return status_new(ORT_INVALID_ARGUMENT,
                      "SessionOptionsAppendExecutionProvider_V2: no EP device is given");
  if (num_ep_options > 0) {
    REQUIRE_ARG(ep_option_keys);
    REQUIRE_ARG(ep_option_vals);
  }
  TRY(check_devices(env, ep_devices, num_ep_devices));
  OrtStatus* status = NULL;
  config = key_values_copy(session_options->config);
  devices = mem_calloc(num_ep_devices, sizeof *devices);
  if (config == NULL || devices == NULL) {
    status = status_no_memory();
    goto done;
  }
  for (size_t i = 0; i < num_ep_devices; i++) devices[i] = ep_devices[i];
  TRY_DONE(
      set_ep_options(config, ep_devices, num_ep_devices, ep_option_keys, ep_option_vals, num_ep_options));
  if (!commit_selection(session_options, env, devices, num_ep_devices, config)) status = status_no_memory();
done:
  if (status != NULL) {
    key_values_release(config);
    mem_free(devices);
  }
  return status;
}
