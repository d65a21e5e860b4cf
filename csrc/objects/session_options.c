/* Session options: what a client sets before it creates a session, which copies them. */
#include <string.h>

#include "api_slots.h"
#include "objects/objects.h"

OrtSessionOptions* session_options_new(void) {
  OrtSessionOptions* options = mem_calloc(1, sizeof *options);
  if (options == NULL) return NULL;
  options->config = key_values_new();
  options->log_severity = options->log_verbosity = -1;
  options->optimization_level = ORT_ENABLE_ALL;
  options->memory_pattern = options->cpu_arena = options->per_session_threads = true;
  if (options->config != NULL) return options;
  session_options_release(options);
  return NULL;
}

void session_options_release(OrtSessionOptions* options) {
  if (options == NULL) return;
  for (size_t i = 0; i < options->ep_count; i++) mem_free(options->eps[i].devices);
  for (size_t i = 0; i < options->override_count; i++) mem_free(options->overrides[i].name);
  for (size_t i = 0; i < options->initializer_count; i++) mem_free(options->initializer_names[i]);
  for (size_t i = 0; i < options->custom_op_library_count; i++)
    custom_op_library_release(options->custom_op_libraries[i]);
  mem_free(options->custom_op_libraries);
  mem_free(options->custom_op_domains);
  mem_free(options->eps);
  mem_free(options->overrides);
  mem_free(options->initializer_names);
  mem_free(options->initializers);
  mem_free(options->log_id);
  mem_free(options->profile_prefix);
  key_values_release(options->config);
  mem_free(options);
}

static bool add_override(OrtSessionOptions* options, const char* name, bool is_denotation, int64_t value) {
  char* copy = str_copy(name);
  if (copy == NULL ||
      !ARRAY_RESERVE(options->overrides, options->override_capacity, options->override_count + 1)) {
    mem_free(copy);
    return false;
  }
  options->overrides[options->override_count++] = (DimensionOverride){copy, is_denotation, value};
  return true;
}

static bool add_initializer(OrtSessionOptions* options, const char* name, const OrtValue* value) {
  char* copy = str_copy(name);
  size_t needed = options->initializer_count + 1;
  if (copy == NULL ||
      !ARRAY_RESERVE(options->initializer_names, options->initializer_name_capacity, needed) ||
      !ARRAY_RESERVE(options->initializers, options->initializer_capacity, needed)) {
    mem_free(copy);
    return false;
  }
  options->initializer_names[options->initializer_count] = copy;
  options->initializers[options->initializer_count++] = value;
  return true;
}

static bool copy_lists(const OrtSessionOptions* from, OrtSessionOptions* to) {
  for (size_t i = 0; i < from->override_count; i++) {
    const DimensionOverride* override = &from->overrides[i];
    if (!add_override(to, override->name, override->is_denotation, override->value)) return false;
  }
  for (size_t i = 0; i < from->initializer_count; i++) {
    if (!add_initializer(to, from->initializer_names[i], from->initializers[i])) return false;
  }
  for (size_t i = 0; i < from->custom_op_domain_count; i++) {
    if (!session_options_add_custom_ops(to, from->custom_op_domains[i])) return false;
  }
  if (!ARRAY_RESERVE(to->custom_op_libraries, to->custom_op_library_capacity, from->custom_op_library_count))
    return false;
  for (size_t i = 0; i < from->custom_op_library_count; i++)
    to->custom_op_libraries[to->custom_op_library_count++] =
        custom_op_library_retain(from->custom_op_libraries[i]);
  if (!ARRAY_RESERVE(to->eps, to->ep_capacity, from->ep_count)) return false;
  for (size_t i = 0; i < from->ep_count; i++) {
    size_t count = from->eps[i].count;
    if (count == 0) {
      to->eps[to->ep_count++] = (EpSelection){NULL, 0};
      continue;
    }
    const OrtEpDevice** devices = mem_calloc(count, sizeof *devices);
    if (devices == NULL) return false;
    memcpy(devices, from->eps[i].devices, count * sizeof *devices);
    to->eps[to->ep_count++] = (EpSelection){devices, count};
  }
  return true;
}

static bool copy_text(const char* from, char** to) {
  return from == NULL || (*to = str_copy(from)) != NULL;
}

OrtSessionOptions* session_options_copy(const OrtSessionOptions* options) {
  OrtSessionOptions* copy = session_options_new();
  if (copy == NULL || options == NULL) return copy;
  OrtKeyValuePairs* config = key_values_copy(options->config);
  if (config != NULL) {
    key_values_release(copy->config);
    copy->config = config;
  }
  copy->env = options->env;
  copy->ep_policy = options->ep_policy;
  copy->last_ep = options->last_ep;
  copy->log_severity = options->log_severity;
  copy->log_verbosity = options->log_verbosity;
  copy->optimization_level = options->optimization_level;
  copy->execution_mode = options->execution_mode;
  copy->intra_op_threads = options->intra_op_threads;
  copy->inter_op_threads = options->inter_op_threads;
  copy->memory_pattern = options->memory_pattern;
  copy->cpu_arena = options->cpu_arena;
  copy->deterministic = options->deterministic;
  copy->per_session_threads = options->per_session_threads;
  copy->logging_function = options->logging_function;
  copy->logging_param = options->logging_param;
  copy->weightless_data = options->weightless_data;
  copy->weightless_size = options->weightless_size;
  if (config != NULL && copy_lists(options, copy) && copy_text(options->log_id, &copy->log_id) &&
      copy_text(options->profile_prefix, &copy->profile_prefix))
    return copy;
  session_options_release(copy);
  return NULL;
}

const char* session_options_config(const OrtSessionOptions* options, const char* key, const char* fallback) {
  const char* value = key_values_get(options->config, key);
  return value != NULL ? value : fallback;
}

/* gives (caller releases with ReleaseSessionOptions). */
OrtStatus* ORT_API_CALL api_CreateSessionOptions(OrtSessionOptions** options) {
  REQUIRE_ARG(options);
  OrtSessionOptions* made = session_options_new();
  if (made == NULL) return status_no_memory();
  *options = made;
  return NULL;
}

/* gives (caller releases with ReleaseSessionOptions). */
OrtStatus* ORT_API_CALL api_CloneSessionOptions(const OrtSessionOptions* in_options,
                                                OrtSessionOptions** out_options) {
  REQUIRE_ARG(in_options);
  REQUIRE_ARG(out_options);
  OrtSessionOptions* copy = session_options_copy(in_options);
  if (copy == NULL) return status_no_memory();
  *out_options = copy;
  return NULL;
}

void ORT_API_CALL api_ReleaseSessionOptions(OrtSessionOptions* input) {
  session_options_release(input);
}

/* "" means none, which is all that there is. */
OrtStatus* ORT_API_CALL api_SetOptimizedModelFilePath(OrtSessionOptions* options,
                                                      const ORTCHAR_T* optimized_model_filepath) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(optimized_model_filepath);
  if (optimized_model_filepath[0] == '\0') return NULL;
  return status_new(ORT_NOT_IMPLEMENTED,
                    "SetOptimizedModelFilePath: this host writes no models, '%s' would not be there",
                    optimized_model_filepath);
}

OrtStatus* ORT_API_CALL api_SetSessionExecutionMode(OrtSessionOptions* options,
                                                    ExecutionMode execution_mode) {
  REQUIRE_ARG(options);
  if (execution_mode != ORT_SEQUENTIAL && execution_mode != ORT_PARALLEL)
    return status_new(ORT_INVALID_ARGUMENT, "SetSessionExecutionMode: unknown mode %d", (int)execution_mode);
  options->execution_mode = execution_mode;
  return NULL;
}

OrtStatus* ORT_API_CALL api_GetSessionExecutionMode(const OrtSessionOptions* options, ExecutionMode* out) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(out);
  *out = options->execution_mode;
  return NULL;
}

OrtStatus* ORT_API_CALL api_EnableProfiling(OrtSessionOptions* options,
                                            const ORTCHAR_T* profile_file_prefix) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(profile_file_prefix);
  return str_set(&options->profile_prefix, profile_file_prefix);
}

OrtStatus* ORT_API_CALL api_DisableProfiling(OrtSessionOptions* options) {
  REQUIRE_ARG(options);
  mem_free(options->profile_prefix);
  options->profile_prefix = NULL;
  return NULL;
}

OrtStatus* ORT_API_CALL api_EnableMemPattern(OrtSessionOptions* options) {
  REQUIRE_ARG(options);
  options->memory_pattern = true;
  return NULL;
}

OrtStatus* ORT_API_CALL api_DisableMemPattern(OrtSessionOptions* options) {
  REQUIRE_ARG(options);
  options->memory_pattern = false;
  return NULL;
}

OrtStatus* ORT_API_CALL api_GetMemPatternEnabled(const OrtSessionOptions* options, int* out) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(out);
  *out = options->memory_pattern;
  return NULL;
}

OrtStatus* ORT_API_CALL api_EnableCpuMemArena(OrtSessionOptions* options) {
  REQUIRE_ARG(options);
  options->cpu_arena = true;
  return NULL;
}

OrtStatus* ORT_API_CALL api_DisableCpuMemArena(OrtSessionOptions* options) {
  REQUIRE_ARG(options);
  options->cpu_arena = false;
  return NULL;
}

OrtStatus* ORT_API_CALL api_DisablePerSessionThreads(OrtSessionOptions* options) {
  REQUIRE_ARG(options);
  options->per_session_threads = false;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SetDeterministicCompute(OrtSessionOptions* options, bool value) {
  REQUIRE_ARG(options);
  options->deterministic = value;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SetSessionLogId(OrtSessionOptions* options, const char* logid) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(logid);
  return str_set(&options->log_id, logid);
}

OrtStatus* ORT_API_CALL api_SetSessionLogVerbosityLevel(OrtSessionOptions* options,
                                                        int session_log_verbosity_level) {
  REQUIRE_ARG(options);
  options->log_verbosity = session_log_verbosity_level;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SetSessionLogSeverityLevel(OrtSessionOptions* options,
                                                       int session_log_severity_level) {
  REQUIRE_ARG(options);
  if (session_log_severity_level < -1 || session_log_severity_level > ORT_LOGGING_LEVEL_FATAL)
    return status_new(ORT_INVALID_ARGUMENT, "SetSessionLogSeverityLevel: %d is not in -1..%d",
                      session_log_severity_level, ORT_LOGGING_LEVEL_FATAL);
  options->log_severity = session_log_severity_level;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SetUserLoggingFunction(OrtSessionOptions* options,
                                                   OrtLoggingFunction user_logging_function,
                                                   void* user_logging_param) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(user_logging_function);
  options->logging_function = user_logging_function;
  options->logging_param = user_logging_param;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SetSessionGraphOptimizationLevel(
    OrtSessionOptions* options, GraphOptimizationLevel graph_optimization_level) {
  REQUIRE_ARG(options);
  if (graph_optimization_level < ORT_DISABLE_ALL ||
      (graph_optimization_level > ORT_ENABLE_LAYOUT && graph_optimization_level != ORT_ENABLE_ALL))
    return status_new(ORT_INVALID_ARGUMENT, "SetSessionGraphOptimizationLevel: unknown level %d",
                      (int)graph_optimization_level);
  options->optimization_level = graph_optimization_level;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SetIntraOpNumThreads(OrtSessionOptions* options, int intra_op_num_threads) {
  REQUIRE_ARG(options);
  options->intra_op_threads = intra_op_num_threads;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SetInterOpNumThreads(OrtSessionOptions* options, int inter_op_num_threads) {
  REQUIRE_ARG(options);
  options->inter_op_threads = inter_op_num_threads;
  return NULL;
}

/* copies both. */
OrtStatus* ORT_API_CALL api_AddSessionConfigEntry(OrtSessionOptions* options, const char* config_key,
                                                  const char* config_value) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(config_key);
  REQUIRE_ARG(config_value);
  return config_entry_set(options->config, config_key, config_value, "AddSessionConfigEntry");
}

OrtStatus* ORT_API_CALL api_HasSessionConfigEntry(const OrtSessionOptions* options, const char* config_key,
                                                  int* out) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(config_key);
  REQUIRE_ARG(out);
  *out = key_values_get(options->config, config_key) != NULL;
  return NULL;
}

/* Writes the value with its terminator. With `config_value` NULL only `*size` is written; too small a buffer
 * is an error, and `*size` says what is needed. */
OrtStatus* ORT_API_CALL api_GetSessionConfigEntry(const OrtSessionOptions* options, const char* config_key,
                                                  char* config_value, size_t* size) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(config_key);
  REQUIRE_ARG(size);
  const char* value = key_values_get(options->config, config_key);
  if (value == NULL) return status_new(ORT_FAIL, "session config entry '%s' was not found", config_key);
  size_t needed = strlen(value) + 1, given = *size;
  *size = needed;
  if (config_value == NULL) return NULL;
  if (given < needed)
    return status_new(ORT_INVALID_ARGUMENT, "GetSessionConfigEntry: '%s' needs %zu bytes, %zu given",
                      config_key, needed, given);
  memcpy(config_value, value, needed);
  return NULL;
}

/* gives (caller releases with ReleaseKeyValuePairs). */
OrtStatus* ORT_API_CALL api_GetSessionOptionsConfigEntries(const OrtSessionOptions* options,
                                                           OrtKeyValuePairs** out) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(out);
  OrtKeyValuePairs* copy = key_values_copy(options->config);
  if (copy == NULL) return status_no_memory();
  *out = copy;
  return NULL;
}

OrtStatus* ORT_API_CALL api_AddFreeDimensionOverride(OrtSessionOptions* options, const char* dim_denotation,
                                                     int64_t dim_value) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(dim_denotation);
  return add_override(options, dim_denotation, true, dim_value) ? NULL : status_no_memory();
}

OrtStatus* ORT_API_CALL api_AddFreeDimensionOverrideByName(OrtSessionOptions* options, const char* dim_name,
                                                           int64_t dim_value) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(dim_name);
  return add_override(options, dim_name, false, dim_value) ? NULL : status_no_memory();
}

/* copies `name`, borrows `val`: it must outlive every session created with these options. */
OrtStatus* ORT_API_CALL api_AddInitializer(OrtSessionOptions* options, const char* name,
                                           const OrtValue* val) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(name);
  REQUIRE_ARG(val);
  for (size_t i = 0; i < options->initializer_count; i++) {
    if (strcmp(options->initializer_names[i], name) == 0)
      return status_new(ORT_INVALID_ARGUMENT, "AddInitializer: '%s' was added before", name);
  }
  return add_initializer(options, name, val) ? NULL : status_no_memory();
}

/* The same for several; all or none. */
OrtStatus* ORT_API_CALL api_AddExternalInitializers(OrtSessionOptions* options,
                                                    const char* const* initializer_names,
                                                    const OrtValue* const* initializers,
                                                    size_t num_initializers) {
  REQUIRE_ARG(options);
  if (num_initializers != 0) REQUIRE_ARG(initializer_names);
  if (num_initializers != 0) REQUIRE_ARG(initializers);
  size_t before = options->initializer_count;
  OrtStatus* status = NULL;
  for (size_t i = 0; i < num_initializers && status == NULL; i++)
    status = api_AddInitializer(options, initializer_names[i], initializers[i]);
  if (status == NULL) return NULL;
  while (options->initializer_count > before)
    mem_free(options->initializer_names[--options->initializer_count]);
  return status;
}

OrtStatus* ORT_API_CALL api_SessionOptionsSetLoadCancellationFlag(OrtSessionOptions* options, bool cancel) {
  REQUIRE_ARG(options);
  atomic_store(&options->load_cancelled, cancel);
  return NULL;
}

/* borrows `source_model_data`: it must outlive every session created with these options. */
OrtStatus* ORT_API_CALL api_SessionOptionsSetWeightlessSourceModelBuffer(OrtSessionOptions* options,
                                                                         const void* source_model_data,
                                                                         size_t source_model_data_length) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(source_model_data);
  if (source_model_data_length == 0)
    return status_new(ORT_INVALID_ARGUMENT,
                      "SessionOptionsSetWeightlessSourceModelBuffer: the source model has 0 bytes");
  options->weightless_data = source_model_data;
  options->weightless_size = source_model_data_length;
  return NULL;
}

/* borrows; NULL and 0 when none was set. */
OrtStatus* ORT_API_CALL api_SessionOptionsGetWeightlessSourceModelBuffer(
    const OrtSessionOptions* session_options, const void** source_model_data,
    size_t* source_model_data_length) {
  REQUIRE_ARG(session_options);
  REQUIRE_ARG(source_model_data);
  REQUIRE_ARG(source_model_data_length);
  *source_model_data = session_options->weightless_data;
  *source_model_data_length = session_options->weightless_size;
  return NULL;
}

OrtStatus* ortabi_session_options_set_last_ep(OrtSessionOptions* options, OrtAbiFindLastEp find,
                                              void* state) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(find);
  options->last_ep = (LastEp){.find = find, .state = state};
  return NULL;
}
