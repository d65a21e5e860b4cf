/* IoBinding: inputs and outputs that are bound once and run many times. One thread at a time uses a binding.
 */
#include <string.h>

#include "api_slots.h"
#include "run/run.h"

typedef struct Bindings {
  char** names;
  OrtValue** values;        /* references; NULL: an output that each run makes anew */
  bool* is_made;            /* an output: its value is the last run's, not the caller's */
  OrtMemoryInfo** memories; /* an output that each run makes: where; NULL: in host memory */
  size_t count, name_capacity, value_capacity, made_capacity, memory_capacity;
} Bindings;

struct OrtIoBinding {
  OrtSession* session; /* borrowed: must outlive the binding */
  Bindings inputs, outputs;
};

static void bindings_clear(Bindings* bindings) {
  for (size_t i = 0; i < bindings->count; i++) {
    mem_free(bindings->names[i]);
    value_release(bindings->values[i]);
    memory_info_release(bindings->memories[i]);
  }
  bindings->count = 0;
}

static void bindings_release(Bindings* bindings) {
  bindings_clear(bindings);
  mem_free(bindings->names);
  mem_free(bindings->values);
  mem_free(bindings->is_made);
  mem_free(bindings->memories);
}

/* keeps alive `value` (NULL: none); takes `memory` on success; replaces what the name was bound to. */
static OrtStatus* bind_to(Bindings* bindings, const char* name, const OrtValue* value,
                          OrtMemoryInfo* memory) {
  size_t place = 0;
  while (place < bindings->count && strcmp(bindings->names[place], name) != 0) place++;
  if (place == bindings->count) {
    if (!ARRAY_RESERVE(bindings->names, bindings->name_capacity, place + 1) ||
        !ARRAY_RESERVE(bindings->values, bindings->value_capacity, place + 1) ||
        !ARRAY_RESERVE(bindings->is_made, bindings->made_capacity, place + 1) ||
        !ARRAY_RESERVE(bindings->memories, bindings->memory_capacity, place + 1))
      return status_no_memory();
    char* copy = str_copy(name);
    if (copy == NULL) return status_no_memory();
    bindings->names[place] = copy;
    bindings->values[place] = NULL;
    bindings->memories[place] = NULL;
    bindings->count++;
  }
  OrtValue* kept = value != NULL ? value_retain(value) : NULL;
  value_release(bindings->values[place]);
  bindings->values[place] = kept;
  bindings->is_made[place] = kept == NULL;
  memory_info_release(bindings->memories[place]);
  bindings->memories[place] = memory;
  return NULL;
}

/* The same; copies `memory` (NULL: the host's). */
static OrtStatus* bind(Bindings* bindings, const char* name, const OrtValue* value,
                       const OrtMemoryInfo* memory) {
  OrtMemoryInfo* own_memory = memory != NULL ? memory_info_copy(memory) : NULL;
  if (memory != NULL && own_memory == NULL) return status_no_memory();
  OrtStatus* status = bind_to(bindings, name, value, own_memory);
  if (status != NULL) memory_info_release(own_memory);
  return status;
}

/* gives (caller releases with ReleaseIoBinding, before the session). */
OrtStatus* ORT_API_CALL api_CreateIoBinding(OrtSession* session, OrtIoBinding** out) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(out);
  OrtIoBinding* binding = mem_calloc(1, sizeof *binding);
  if (binding == NULL) return status_no_memory();
  binding->session = session;
  *out = binding;
  return NULL;
}

void ORT_API_CALL api_ReleaseIoBinding(OrtIoBinding* input) {
  if (input == NULL) return;
  bindings_release(&input->inputs);
  bindings_release(&input->outputs);
  mem_free(input);
}

/* keeps alive `val_ptr`: the caller may release its own handle. */
OrtStatus* ORT_API_CALL api_BindInput(OrtIoBinding* binding_ptr, const char* name, const OrtValue* val_ptr) {
  REQUIRE_ARG(binding_ptr);
  REQUIRE_ARG(name);
  REQUIRE_ARG(val_ptr);
  if (name_map_get(&binding_ptr->session->plan.input_names, name) == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "BindInput: Failed to find input name in the mapping: %s", name);
  return bind(&binding_ptr->inputs, name, val_ptr, NULL);
}

static OrtStatus* check_output_name(const OrtIoBinding* binding, const char* name, const char* slot) {
  if (name_map_get(&binding->session->plan.output_names, name) != NULL) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "%s: Invalid output name: %s", slot, name);
}

/* keeps alive `val_ptr`: each run writes into it. */
OrtStatus* ORT_API_CALL api_BindOutput(OrtIoBinding* binding_ptr, const char* name, const OrtValue* val_ptr) {
  REQUIRE_ARG(binding_ptr);
  REQUIRE_ARG(name);
  REQUIRE_ARG(val_ptr);
  TRY(check_output_name(binding_ptr, name, "BindOutput"));
  return bind(&binding_ptr->outputs, name, val_ptr, NULL);
}

/* Each run makes a new value in that memory. copies `mem_info_ptr`. */
OrtStatus* ORT_API_CALL api_BindOutputToDevice(OrtIoBinding* binding_ptr, const char* name,
                                               const OrtMemoryInfo* mem_info_ptr) {
  REQUIRE_ARG(binding_ptr);
  REQUIRE_ARG(name);
  REQUIRE_ARG(mem_info_ptr);
  TRY(check_output_name(binding_ptr, name, "BindOutputToDevice"));
  bool is_host = memory_device_is_host(&mem_info_ptr->device);
  if (!is_host && env_shared_allocator(binding_ptr->session->env, mem_info_ptr) == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "BindOutputToDevice: there is no allocator for memory '%s'",
                      mem_info_ptr->name);
  return bind(&binding_ptr->outputs, name, NULL, is_host ? NULL : mem_info_ptr);
}

void ORT_API_CALL api_ClearBoundInputs(OrtIoBinding* binding_ptr) {
  if (binding_ptr != NULL) bindings_clear(&binding_ptr->inputs);
}

void ORT_API_CALL api_ClearBoundOutputs(OrtIoBinding* binding_ptr) {
  if (binding_ptr != NULL) bindings_clear(&binding_ptr->outputs);
}

/* ---- Waiting ---- */

static bool reads_input(const Plan* plan, const Step* step) {
  for (size_t i = 0; i < step->read_count; i++) {
    if (step->inputs[i] >= 0 && plan->slots[step->inputs[i]].kind == SLOT_INPUT) return true;
  }
  return false;
}

static bool makes_output(const Plan* plan, const Step* step) {
  for (size_t i = 0; i < step->output_count; i++) {
    if (step->outputs[i] >= 0 && plan->slots[step->outputs[i]].kind == SLOT_OUTPUT) return true;
  }
  return false;
}

/* Of each EP that does such a step. */
static OrtStatus* sync_eps(const OrtSession* session, bool (*is_wanted)(const Plan*, const Step*)) {
  const Plan* plan = &session->plan;
  for (size_t i = 0; i < session->ep_count; i++) {
    bool takes_part = false;
    for (size_t k = 0; k < plan->step_count && !takes_part; k++) {
      const Step* step = &plan->steps[k];
      takes_part = step->unit->ep == &session->eps[i] && is_wanted(plan, step);
    }
    if (takes_part) TRY(session_ep_sync(&session->eps[i]));
  }
  return NULL;
}

/* OrtEp::Sync of the EPs that read the model's inputs, as in stock ORT: what was copied to bound inputs is
 * there, also what nobody's stream waited for. */
OrtStatus* ORT_API_CALL api_SynchronizeBoundInputs(OrtIoBinding* binding_ptr) {
  REQUIRE_ARG(binding_ptr);
  return sync_eps(binding_ptr->session, reads_input);
}

/* The same for those that make the model's outputs. */
OrtStatus* ORT_API_CALL api_SynchronizeBoundOutputs(OrtIoBinding* binding_ptr) {
  REQUIRE_ARG(binding_ptr);
  return sync_eps(binding_ptr->session, makes_output);
}

/* On failure the bound outputs are what they were. */
OrtStatus* ORT_API_CALL api_RunWithBinding(OrtSession* session, const OrtRunOptions* run_options,
                                           const OrtIoBinding* binding_ptr) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(binding_ptr);
  if (binding_ptr->session != session)
    return status_new(ORT_INVALID_ARGUMENT, "RunWithBinding: the binding is another session's");
  const Bindings* inputs = &binding_ptr->inputs;
  const Bindings* outputs = &binding_ptr->outputs;
  if (outputs->count == 0)
    return status_new(ORT_INVALID_ARGUMENT,
                      "RunWithBinding: At least one output should be requested. None is bound");
  OrtValue** values = mem_calloc(outputs->count, sizeof *values);
  if (values == NULL) return status_no_memory();
  bool has_memories = false;
  for (size_t i = 0; i < outputs->count; i++) {
    values[i] = outputs->is_made[i] ? NULL : outputs->values[i];
    has_memories = has_memories || outputs->memories[i] != NULL;
  }
  OrtStatus* status = session_run(session, run_options, (const char* const*)inputs->names,
                                  (const OrtValue* const*)inputs->values, inputs->count,
                                  (const char* const*)outputs->names, outputs->count, values,
                                  has_memories ? (const OrtMemoryInfo* const*)outputs->memories : NULL);
  for (size_t i = 0; i < outputs->count && status == NULL; i++) {
    if (!outputs->is_made[i]) continue;
    value_release(outputs->values[i]);
    outputs->values[i] = values[i];
  }
  mem_free(values);
  return status;
}

/* gives (caller releases both with AllocatorFree of `allocator`): the names one after the other, without
 * NULs, and their lengths. No outputs: both NULL. */
OrtStatus* ORT_API_CALL api_GetBoundOutputNames(const OrtIoBinding* binding_ptr, OrtAllocator* allocator,
                                                char** buffer, size_t** lengths, size_t* count) {
  REQUIRE_ARG(binding_ptr);
  REQUIRE_ARG(allocator);
  REQUIRE_ARG(buffer);
  REQUIRE_ARG(lengths);
  REQUIRE_ARG(count);
  const Bindings* outputs = &binding_ptr->outputs;
  size_t total = 0;
  for (size_t i = 0; i < outputs->count; i++) total += strlen(outputs->names[i]);
  char* text = NULL;
  size_t* sizes = NULL;
  if (outputs->count != 0) {
    text = allocator_alloc(allocator, total);
    sizes = allocator_alloc(allocator, outputs->count * sizeof *sizes);
    if (text == NULL || sizes == NULL) {
      if (text != NULL) allocator_free(allocator, text);
      if (sizes != NULL) allocator_free(allocator, sizes);
      return status_no_memory();
    }
  }
  size_t at = 0;
  for (size_t i = 0; i < outputs->count; i++) {
    sizes[i] = strlen(outputs->names[i]);
    memcpy(text + at, outputs->names[i], sizes[i]);
    at += sizes[i];
  }
  *buffer = text;
  *lengths = sizes;
  *count = outputs->count;
  return NULL;
}

/* gives (caller releases each with ReleaseValue and the array with AllocatorFree): the values are shared with
 * the binding. No outputs: NULL. An error before the first run of an output that a run makes. */
OrtStatus* ORT_API_CALL api_GetBoundOutputValues(const OrtIoBinding* binding_ptr, OrtAllocator* allocator,
                                                 OrtValue*** output, size_t* output_count) {
  REQUIRE_ARG(binding_ptr);
  REQUIRE_ARG(allocator);
  REQUIRE_ARG(output);
  REQUIRE_ARG(output_count);
  const Bindings* outputs = &binding_ptr->outputs;
  for (size_t i = 0; i < outputs->count; i++) {
    if (outputs->values[i] == NULL)
      return status_new(ORT_INVALID_ARGUMENT, "GetBoundOutputValues: output '%s' has no value before a run",
                        outputs->names[i]);
  }
  OrtValue** values = NULL;
  if (outputs->count != 0) {
    values = allocator_alloc(allocator, outputs->count * sizeof *values);
    if (values == NULL) return status_no_memory();
  }
  for (size_t i = 0; i < outputs->count; i++) values[i] = value_retain(outputs->values[i]);
  *output = values;
  *output_count = outputs->count;
  return NULL;
}
