/* What an EP says about a hardware device or a compiled model, without a session. */
#include "api_slots.h"
#include "plugins/plugins.h"

struct OrtDeviceEpIncompatibilityDetails {
  uint32_t reasons; /* OrtDeviceEpIncompatibilityReason bits */
  int32_t error_code;
  char* notes; /* NULL: none */
};

/* borrows: the first factory whose EP has that name, or NULL. Under env_lock. */
static OrtEpFactory* find_factory(OrtEnv* env, const char* ep_name, uint32_t* version) {
  for (size_t i = 0; i < env->library_count; i++) {
    EpLibrary* library = env->libraries[i];
    for (size_t j = 0; j < library->factory_count; j++) {
      OrtEpFactory* factory = library->factories[j];
      *version = library->factory_versions[j];
      if (str_equal(call_OrtEpFactory_GetName(factory, NULL), ep_name)) return factory;
    }
  }
  return NULL;
}

static bool is_known_hardware(OrtEnv* env, const OrtHardwareDevice* device) {
  bool is_found = false;
  pthread_mutex_lock(&env->mutex);
  for (size_t i = 0; i < env->hardware.count; i++) is_found = is_found || env->hardware.devices[i] == device;
  pthread_mutex_unlock(&env->mutex);
  return is_found;
}

static OrtStatus* ask_factory(OrtEnv* env, const char* ep_name, const OrtHardwareDevice* hw,
                              OrtDeviceEpIncompatibilityDetails* details) {
  uint32_t version = 0;
  OrtEpFactory* factory = find_factory(env, ep_name, &version);
  if (factory == NULL)
    return status_new(ORT_INVALID_ARGUMENT,
                      "GetHardwareDeviceEpIncompatibilityDetails: no registered library has an EP named '%s'",
                      ep_name);
  if (GUARD_SLOT(factory, version, GetHardwareDeviceIncompatibilityDetails, 24) == NULL) return NULL;
  OrtStatus* status = call_OrtEpFactory_GetHardwareDeviceIncompatibilityDetails(factory, hw, details);
  if (status == NULL) return NULL;
  return status_wrap(status, "%s: OrtEpFactory::GetHardwareDeviceIncompatibilityDetails", ep_name);
}

/* gives (caller releases with ReleaseDeviceEpIncompatibilityDetails). No reasons where the EP has no say. */
OrtStatus* ORT_API_CALL api_GetHardwareDeviceEpIncompatibilityDetails(
    const OrtEnv* env, const char* ep_name, const OrtHardwareDevice* hw,
    OrtDeviceEpIncompatibilityDetails** details) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(ep_name);
  REQUIRE_ARG(hw);
  REQUIRE_ARG(details);
  if (!is_known_hardware((OrtEnv*)env, hw))
    return status_new(ORT_INVALID_ARGUMENT,
                      "GetHardwareDeviceEpIncompatibilityDetails: not a hardware device of this environment");
  OrtDeviceEpIncompatibilityDetails* made = mem_calloc(1, sizeof *made);
  if (made == NULL) return status_no_memory();
  env_lock();
  OrtStatus* status = ask_factory((OrtEnv*)env, ep_name, hw, made);
  env_unlock();
  if (status == NULL)
    *details = made;
  else
    api_ReleaseDeviceEpIncompatibilityDetails(made);
  return status;
}

/* Called by the EP on what it is given. copies `notes`. */
OrtStatus* ORT_API_CALL api_DeviceEpIncompatibilityDetails_SetDetails(
    OrtDeviceEpIncompatibilityDetails* details, uint32_t reasons_bitmask, int32_t error_code,
    const char* notes) {
  REQUIRE_ARG(details);
  char* copy = str_copy(notes);
  if (notes != NULL && copy == NULL) return status_no_memory();
  mem_free(details->notes);
  *details = (OrtDeviceEpIncompatibilityDetails){reasons_bitmask, error_code, copy};
  return NULL;
}

OrtStatus* ORT_API_CALL api_DeviceEpIncompatibilityDetails_GetReasonsBitmask(
    const OrtDeviceEpIncompatibilityDetails* details, uint32_t* reasons_bitmask) {
  REQUIRE_ARG(details);
  REQUIRE_ARG(reasons_bitmask);
  *reasons_bitmask = details->reasons;
  return NULL;
}

/* borrows: NULL when there are none. */
OrtStatus* ORT_API_CALL api_DeviceEpIncompatibilityDetails_GetNotes(
    const OrtDeviceEpIncompatibilityDetails* details, const char** notes) {
  REQUIRE_ARG(details);
  REQUIRE_ARG(notes);
  *notes = details->notes;
  return NULL;
}

OrtStatus* ORT_API_CALL api_DeviceEpIncompatibilityDetails_GetErrorCode(
    const OrtDeviceEpIncompatibilityDetails* details, int32_t* error_code) {
  REQUIRE_ARG(details);
  REQUIRE_ARG(error_code);
  *error_code = details->error_code;
  return NULL;
}

void ORT_API_CALL api_ReleaseDeviceEpIncompatibilityDetails(OrtDeviceEpIncompatibilityDetails* input) {
  if (input == NULL) return;
  mem_free(input->notes);
  mem_free(input);
}

/* Asks the EP of the devices, all of one EP; NOT_APPLICABLE where it has no say. */
OrtStatus* ORT_API_CALL api_GetModelCompatibilityForEpDevices(const OrtEpDevice* const* ep_devices,
                                                              size_t num_ep_devices,
                                                              const char* compatibility_info,
                                                              OrtCompiledModelCompatibility* out_status) {
  const OrtHardwareDevice* hardware[EP_MAX_DEVICES];
  REQUIRE_ARG(ep_devices);
  REQUIRE_ARG(compatibility_info);
  REQUIRE_ARG(out_status);
  if (num_ep_devices == 0 || num_ep_devices > EP_MAX_DEVICES)
    return status_new(ORT_INVALID_ARGUMENT,
                      "GetModelCompatibilityForEpDevices: %zu devices; 1 to %d can be asked", num_ep_devices,
                      EP_MAX_DEVICES);
  for (size_t i = 0; i < num_ep_devices; i++) {
    REQUIRE_ARG(ep_devices[i]);
    if (ep_devices[i]->factory != ep_devices[0]->factory)
      return status_new(
          ORT_INVALID_ARGUMENT,
          "GetModelCompatibilityForEpDevices: devices of different execution providers: %s and %s",
          ep_devices[0]->ep_name, ep_devices[i]->ep_name);
    hardware[i] = ep_devices[i]->device;
  }
  OrtEpFactory* factory = ep_devices[0]->factory;
  *out_status = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  if (GUARD_SLOT(factory, ep_devices[0]->factory_version, ValidateCompiledModelCompatibilityInfo, 23) == NULL)
    return NULL;
  OrtStatus* status = call_OrtEpFactory_ValidateCompiledModelCompatibilityInfo(
      factory, hardware, num_ep_devices, compatibility_info, out_status);
  if (status == NULL) return NULL;
  return status_wrap(status, "%s: OrtEpFactory::ValidateCompiledModelCompatibilityInfo",
                     ep_devices[0]->ep_name);
}
