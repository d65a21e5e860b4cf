/* The optional slots of an OrtEpFactory. Each is filled only where the provider's class defines it, but for
 * SelectBestModelCandidate: hosts call that one unchecked. */
#include "bridge.h"

static BridgeCall begin(const OrtEpFactory* base, const char* slot) {
  const PyFactory* factory = (const PyFactory*)base;
  return bridge_call_begin(factory->host, slot, factory->info.name);
}

static uint64_t id_of(const OrtEpFactory* base) {
  return ((const PyFactory*)base)->info.id;
}

static OrtStatus* factory_validate_compatibility(OrtEpFactory* this_ptr,
                                                 const OrtHardwareDevice* const* devices, size_t num_devices,
                                                 const char* compatibility_info,
                                                 OrtCompiledModelCompatibility* model_compatibility) {
  int answer = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  BridgeCall call = begin(this_ptr, "OrtEpFactory::ValidateCompiledModelCompatibilityInfo");
  if (call.entered) {
    call.ok = bridge_py_validate_compatibility(&call, id_of(this_ptr), devices, num_devices,
                                               compatibility_info, &answer);
  }
  OrtStatus* status = bridge_call_end(&call);
  if (!status) *model_compatibility = (OrtCompiledModelCompatibility)answer;
  return status;
}

static OrtStatus* factory_get_incompatibility(OrtEpFactory* this_ptr, const OrtHardwareDevice* hw,
                                              OrtDeviceEpIncompatibilityDetails* details) {
  BridgeCall call = begin(this_ptr, "OrtEpFactory::GetHardwareDeviceIncompatibilityDetails");
  if (call.entered) call.ok = bridge_py_incompatibility(&call, id_of(this_ptr), hw, details);
  return bridge_call_end(&call);
}

static OrtStatus* factory_init_graphics(OrtEpFactory* this_ptr, const OrtEpDevice* ep_device,
                                        const OrtGraphicsInteropConfig* config) {
  static const char slot[] = "OrtEpFactory::InitGraphicsInterop";
  if (!config) /* that is how Python is told of DeinitGraphicsInterop */
    return ((const PyFactory*)this_ptr)
        ->host->api->CreateStatus(ORT_INVALID_ARGUMENT, "OrtEpFactory::InitGraphicsInterop: config is NULL");
  BridgeCall call = begin(this_ptr, slot);
  if (call.entered) call.ok = bridge_py_init_graphics(&call, id_of(this_ptr), ep_device, config);
  return bridge_call_end(&call);
}

static OrtStatus* factory_deinit_graphics(OrtEpFactory* this_ptr, const OrtEpDevice* ep_device) {
  BridgeCall call = begin(this_ptr, "OrtEpFactory::DeinitGraphicsInterop");
  if (call.entered) call.ok = bridge_py_init_graphics(&call, id_of(this_ptr), ep_device, NULL);
  return bridge_call_end(&call);
}

static OrtStatus* factory_create_importer(OrtEpFactory* this_ptr, const OrtEpDevice* ep_device,
                                          OrtExternalResourceImporterImpl** out_importer) {
  const PyFactory* factory = (const PyFactory*)this_ptr;
  return bridge_importer_new(factory->host, factory->info.id, factory->info.name, ep_device, out_importer);
}

static OrtStatus* factory_select_model(OrtEpFactory* this_ptr, const OrtHardwareDevice* device,
                                       const OrtKeyValuePairs* const* candidates, size_t num_candidates,
                                       const OrtSessionOptions* session_options, size_t* selected_index) {
  BridgeCall call = begin(this_ptr, "OrtEpFactory::SelectBestModelCandidate");
  size_t index = 0;
  if (call.entered) {
    call.ok = bridge_py_select_model(&call, id_of(this_ptr), device, candidates, num_candidates,
                                     session_options, &index);
  }
  OrtStatus* status = bridge_call_end(&call);
  if (!status) *selected_index = index;
  return status;
}

void bridge_factory_fill(OrtEpFactory* factory, uint32_t features) {
  factory->SelectBestModelCandidate = factory_select_model;
  if (features & BRIDGE_FACTORY_COMPATIBILITY)
    factory->ValidateCompiledModelCompatibilityInfo = factory_validate_compatibility;
  if (features & BRIDGE_FACTORY_INCOMPATIBILITY)
    factory->GetHardwareDeviceIncompatibilityDetails = factory_get_incompatibility;
  if (features & BRIDGE_FACTORY_IMPORTER)
    factory->CreateExternalResourceImporterForDevice = factory_create_importer;
  if (features & BRIDGE_FACTORY_GRAPHICS) {
    factory->InitGraphicsInterop = factory_init_graphics;
    factory->DeinitGraphicsInterop = factory_deinit_graphics;
  }
}
