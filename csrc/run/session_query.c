/* What a session tells about itself, and the options that can change while it lives. */
#include <string.h>

#include "api_slots.h"
#include "ort_abi_host.h"
#include "run/run.h"

/* ---- Inputs and outputs ---- */

OrtStatus* ORT_API_CALL api_SessionGetInputCount(const OrtSession* session, size_t* out) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(out);
  *out = session->plan.required_count;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SessionGetOutputCount(const OrtSession* session, size_t* out) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(out);
  *out = session->plan.output_count;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SessionGetOverridableInitializerCount(const OrtSession* session, size_t* out) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(out);
  *out = session->plan.input_count - session->plan.required_count;
  return NULL;
}

typedef enum ValueList { INPUTS, OUTPUTS, OVERRIDABLE_INITIALIZERS } ValueList;

static OrtStatus* find_value(const OrtSession* session, ValueList list, size_t index, const char* slot,
                             const OrtValueInfo** out) {
  const Plan* plan = &session->plan;
  size_t first = list == OVERRIDABLE_INITIALIZERS ? plan->required_count : 0;
  size_t count = list == OUTPUTS  ? plan->output_count
                 : list == INPUTS ? plan->required_count
                                  : plan->input_count - plan->required_count;
  if (index >= count)
    return status_new(ORT_INVALID_ARGUMENT, "%s: index %zu is not below %zu", slot, index, count);
  *out = list == OUTPUTS ? plan->outputs[index].value : plan->inputs[first + index].value;
  return NULL;
}

static OrtStatus* give_type(const OrtSession* session, ValueList list, size_t index, const char* slot,
                            OrtTypeInfo** out) {
  const OrtValueInfo* value = NULL;
  TRY(find_value(session, list, index, slot, &value));
  if (value->type == NULL) return status_new(ORT_FAIL, "%s: the type of '%s' is unknown", slot, value->name);
  return type_info_give(value->type, out);
}

static OrtStatus* give_name(const OrtSession* session, ValueList list, size_t index, const char* slot,
                            OrtAllocator* allocator, char** out) {
  const OrtValueInfo* value = NULL;
  TRY(find_value(session, list, index, slot, &value));
  size_t size = strlen(value->name) + 1;
  char* copy = allocator_alloc(allocator, size);
  if (copy == NULL) return status_no_memory();
  memcpy(copy, value->name, size);
  *out = copy;
  return NULL;
}

/* gives (caller releases with ReleaseTypeInfo). */
OrtStatus* ORT_API_CALL api_SessionGetInputTypeInfo(const OrtSession* session, size_t index,
                                                    OrtTypeInfo** type_info) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(type_info);
  return give_type(session, INPUTS, index, "SessionGetInputTypeInfo", type_info);
}

/* gives (caller releases with ReleaseTypeInfo). */
OrtStatus* ORT_API_CALL api_SessionGetOutputTypeInfo(const OrtSession* session, size_t index,
                                                     OrtTypeInfo** type_info) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(type_info);
  return give_type(session, OUTPUTS, index, "SessionGetOutputTypeInfo", type_info);
}

/* gives (caller releases with ReleaseTypeInfo). */
OrtStatus* ORT_API_CALL api_SessionGetOverridableInitializerTypeInfo(const OrtSession* session, size_t index,
                                                                     OrtTypeInfo** type_info) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(type_info);
  return give_type(session, OVERRIDABLE_INITIALIZERS, index, "SessionGetOverridableInitializerTypeInfo",
                   type_info);
}

/* gives (caller releases with AllocatorFree of `allocator`). */
OrtStatus* ORT_API_CALL api_SessionGetInputName(const OrtSession* session, size_t index,
                                                OrtAllocator* allocator, char** value) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(allocator);
  REQUIRE_ARG(value);
  return give_name(session, INPUTS, index, "SessionGetInputName", allocator, value);
}

/* gives (caller releases with AllocatorFree of `allocator`). */
OrtStatus* ORT_API_CALL api_SessionGetOutputName(const OrtSession* session, size_t index,
                                                 OrtAllocator* allocator, char** value) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(allocator);
  REQUIRE_ARG(value);
  return give_name(session, OUTPUTS, index, "SessionGetOutputName", allocator, value);
}

/* gives (caller releases with AllocatorFree of `allocator`). */
OrtStatus* ORT_API_CALL api_SessionGetOverridableInitializerName(const OrtSession* session, size_t index,
                                                                 OrtAllocator* allocator, char** value) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(allocator);
  REQUIRE_ARG(value);
  return give_name(session, OVERRIDABLE_INITIALIZERS, index, "SessionGetOverridableInitializerName",
                   allocator, value);
}

/* gives (caller releases with ReleaseModelMetadata). */
OrtStatus* ORT_API_CALL api_SessionGetModelMetadata(const OrtSession* session, OrtModelMetadata** out) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(out);
  return api_Graph_GetModelMetadata(session->model->graph, out);
}

/* ---- Where inputs and outputs live ---- */

static OrtStatus* check_count(size_t given, size_t has, const char* slot) {
  if (given == has) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "%s: room for %zu, but the session has %zu", slot, given, has);
}

/* borrows. Where the first unit that reads an input wants it. */
OrtStatus* ORT_API_CALL api_SessionGetMemoryInfoForInputs(const OrtSession* session,
                                                          const OrtMemoryInfo** inputs_memory_info,
                                                          size_t num_inputs) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(inputs_memory_info);
  TRY(check_count(num_inputs, session->plan.required_count, "SessionGetMemoryInfoForInputs"));
  const Plan* plan = &session->plan;
  for (size_t i = 0; i < num_inputs; i++) {
    const InputSpec* spec = &plan->inputs[i];
    int32_t copy = plan->slots[spec->slot].next_copy;
    int32_t place = copy >= 0 && !spec->is_read_on_host ? plan->slots[copy].place : 0;
    inputs_memory_info[i] = session->places[place].memory;
  }
  return NULL;
}

/* borrows. Where the unit that makes an output leaves it. */
OrtStatus* ORT_API_CALL api_SessionGetMemoryInfoForOutputs(const OrtSession* session,
                                                           const OrtMemoryInfo** outputs_memory_info,
                                                           size_t num_outputs) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(outputs_memory_info);
  TRY(check_count(num_outputs, session->plan.output_count, "SessionGetMemoryInfoForOutputs"));
  for (size_t i = 0; i < num_outputs; i++) {
    int32_t place = session->plan.slots[session->plan.outputs[i].slot].place;
    outputs_memory_info[i] = session->places[place].memory;
  }
  return NULL;
}

/* borrows. The device of the EP that makes `slot`, or else of the first that reads it or a copy of it; NULL:
 * nobody does. Copies are the host's own work. */
static const OrtEpDevice* ep_device_of(const Plan* plan, int32_t slot, bool is_output) {
  for (size_t i = 0; i < plan->step_count; i++) {
    const Step* step = &plan->steps[i];
    if (step->unit->is_copy) continue;
    const int32_t* slots = is_output ? step->outputs : step->inputs;
    size_t count = is_output ? step->output_count : step->read_count;
    for (size_t k = 0; k < count; k++) {
      int32_t shown = slot;
      while (shown >= 0 && shown != slots[k]) shown = plan->slots[shown].next_copy;
      if (shown >= 0) return step->unit->ep->devices[0];
    }
  }
  return NULL;
}

/* borrows. For each input the device of the first EP that reads it; NULL: nobody does. */
OrtStatus* ORT_API_CALL api_SessionGetEpDeviceForInputs(const OrtSession* session,
                                                        const OrtEpDevice** inputs_ep_devices,
                                                        size_t num_inputs) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(inputs_ep_devices);
  const Plan* plan = &session->plan;
  TRY(check_count(num_inputs, plan->required_count, "SessionGetEpDeviceForInputs"));
  for (size_t i = 0; i < num_inputs; i++)
    inputs_ep_devices[i] = ep_device_of(plan, plan->inputs[i].slot, false);
  return NULL;
}

/* borrows. For each output the device of the EP that makes it; NULL: it is an input or a constant. */
OrtStatus* ORT_API_CALL api_SessionGetEpDeviceForOutputs(const OrtSession* session,
                                                         const OrtEpDevice** outputs_ep_devices,
                                                         size_t num_outputs) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(outputs_ep_devices);
  const Plan* plan = &session->plan;
  TRY(check_count(num_outputs, plan->output_count, "SessionGetEpDeviceForOutputs"));
  for (size_t i = 0; i < num_outputs; i++)
    outputs_ep_devices[i] = ep_device_of(plan, plan->outputs[i].slot, true);
  return NULL;
}

/* ---- Options that change while the session lives ---- */

/* Every EP that takes dynamic options gets all of them. borrows. */
OrtStatus* ORT_API_CALL api_SetEpDynamicOptions(OrtSession* sess, const char* const* keys,
                                                const char* const* values, size_t kv_len) {
  REQUIRE_ARG(sess);
  REQUIRE_ARG(keys);
  REQUIRE_ARG(values);
  if (kv_len == 0) return status_new(ORT_INVALID_ARGUMENT, "SetEpDynamicOptions: there are no options");
  for (size_t i = 0; i < kv_len; i++) {
    if (keys[i] == NULL || keys[i][0] == '\0' || values[i] == NULL)
      return status_new(ORT_INVALID_ARGUMENT, "SetEpDynamicOptions: option %zu has no key or no value", i);
  }
  for (size_t i = 0; i < sess->ep_count; i++) {
    SessionEp* ep = &sess->eps[i];
    OrtStatus*(ORT_API_CALL * set)(OrtEp*, const char* const*, const char* const*, size_t) =
        GUARD_SLOT(ep->ep, ep->version, SetDynamicOptions, 23);
    OrtStatus* status = set != NULL ? call_OrtEp_SetDynamicOptions(ep->ep, keys, values, kv_len) : NULL;
    if (status != NULL) return ep_failure(status, "EP '%s': OrtEp::SetDynamicOptions failed", ep->name);
  }
  return NULL;
}

/* ---- Ours: EPs and plan ---- */

ORT_ABI_EXPORT const char* ortabi_session_ep_name(const OrtSession* session, size_t index) {
  return session != NULL && index < session->ep_count ? session->eps[index].name : NULL;
}

ORT_ABI_EXPORT const OrtKernelDef* ortabi_session_kernel(const OrtSession* session, size_t ep, size_t index) {
  if (session == NULL || ep >= session->ep_count) return NULL;
  const OrtKernelRegistry* registry = session->eps[ep].registry;
  return registry != NULL && index < registry->count ? registry->entries[index].def : NULL;
}

ORT_ABI_EXPORT const char* ortabi_kernel_constraint(const OrtKernelDef* kernel, size_t index,
                                                    uint64_t* types) {
  if (kernel == NULL || types == NULL || index >= kernel->constraint_count) return NULL;
  *types = kernel->constraints[index].types;
  return kernel->constraints[index].name;
}

ORT_ABI_EXPORT size_t ortabi_session_step_count(const OrtSession* session) {
  return session != NULL ? session->plan.step_count : 0;
}

ORT_ABI_EXPORT OrtStatus* ortabi_session_step(const OrtSession* session, size_t index, OrtAbiPlanStep* step) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(step);
  if (index >= session->plan.step_count)
    return status_new(ORT_INVALID_ARGUMENT, "ortabi_session_step: index %zu is not below %zu", index,
                      session->plan.step_count);
  const Step* source = &session->plan.steps[index];
  const Unit* unit = source->unit;
  *step = (OrtAbiPlanStep){.ep_name = unit->ep->name,
                           .node_name = unit->node->name,
                           .op_type = unit->node->op_type,
                           .domain = unit->node->domain,
                           .original_nodes = unit->node_count,
                           .runs = atomic_load(&source->runs),
                           .nanoseconds = atomic_load(&source->nanoseconds)};
  return NULL;
}

ORT_ABI_EXPORT void ortabi_session_set_timing(OrtSession* session, bool on) {
  if (session != NULL) atomic_store(&session->is_timing, on);
}
