/* Run options and threading options. */
#include <string.h>

#include "api_slots.h"
#include "objects/objects.h"

/* As in stock ORT. */
#define MAX_AFFINITY 4096

/* gives (caller releases with ReleaseRunOptions). */
OrtStatus* ORT_API_CALL api_CreateRunOptions(OrtRunOptions** out) {
  REQUIRE_ARG(out);
  OrtRunOptions* options = mem_calloc(1, sizeof *options);
  OrtKeyValuePairs* config = key_values_new();
  if (options == NULL || config == NULL) {
    mem_free(options);
    key_values_release(config);
    return status_no_memory();
  }
  options->config = config;
  options->log_severity = options->log_verbosity = -1;
  *out = options;
  return NULL;
}

void ORT_API_CALL api_ReleaseRunOptions(OrtRunOptions* input) {
  if (input == NULL) return;
  key_values_release(input->config);
  mem_free(input->tag);
  mem_free(input->profile_prefix);
  mem_free(input);
}

OrtStatus* ORT_API_CALL api_RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options,
                                                              int log_verbosity_level) {
  REQUIRE_ARG(options);
  options->log_verbosity = log_verbosity_level;
  return NULL;
}

OrtStatus* ORT_API_CALL api_RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options, int log_severity_level) {
  REQUIRE_ARG(options);
  options->log_severity = log_severity_level;
  return NULL;
}

OrtStatus* ORT_API_CALL api_RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options,
                                                              int* log_verbosity_level) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(log_verbosity_level);
  *log_verbosity_level = options->log_verbosity;
  return NULL;
}

OrtStatus* ORT_API_CALL api_RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options,
                                                             int* log_severity_level) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(log_severity_level);
  *log_severity_level = options->log_severity;
  return NULL;
}

/* copies. NULL means "". */
OrtStatus* ORT_API_CALL api_RunOptionsSetRunTag(OrtRunOptions* options, const char* run_tag) {
  REQUIRE_ARG(options);
  return str_set(&options->tag, run_tag != NULL ? run_tag : "");
}

/* borrows: until the tag is set again. */
OrtStatus* ORT_API_CALL api_RunOptionsGetRunTag(const OrtRunOptions* options, const char** run_tag) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(run_tag);
  *run_tag = options->tag != NULL ? options->tag : "";
  return NULL;
}

/* Any thread: every Run that uses these options stops before its next node. */
OrtStatus* ORT_API_CALL api_RunOptionsSetTerminate(OrtRunOptions* options) {
  REQUIRE_ARG(options);
  atomic_store(&options->terminate, 1);
  return NULL;
}

OrtStatus* ORT_API_CALL api_RunOptionsUnsetTerminate(OrtRunOptions* options) {
  REQUIRE_ARG(options);
  atomic_store(&options->terminate, 0);
  return NULL;
}

/* copies both. */
OrtStatus* ORT_API_CALL api_AddRunConfigEntry(OrtRunOptions* options, const char* config_key,
                                              const char* config_value) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(config_key);
  REQUIRE_ARG(config_value);
  return config_entry_set(options->config, config_key, config_value, "AddRunConfigEntry");
}

/* borrows; NULL when the entry is absent. */
const char* ORT_API_CALL api_GetRunConfigEntry(const OrtRunOptions* options, const char* config_key) {
  return options != NULL ? key_values_get(options->config, config_key) : NULL;
}

OrtStatus* ORT_API_CALL api_RunOptionsEnableProfiling(OrtRunOptions* options,
                                                      const ORTCHAR_T* profile_file_prefix) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(profile_file_prefix);
  return str_set(&options->profile_prefix, profile_file_prefix);
}

OrtStatus* ORT_API_CALL api_RunOptionsDisableProfiling(OrtRunOptions* options) {
  REQUIRE_ARG(options);
  mem_free(options->profile_prefix);
  options->profile_prefix = NULL;
  return NULL;
}

/* borrows the stream: the client keeps it alive for as long as the options refer to it. */
void ORT_API_CALL api_RunOptionsSetSyncStream(OrtRunOptions* options, OrtSyncStream* sync_stream) {
  if (options == NULL)
    log_unreported("RunOptionsSetSyncStream", "argument 'options' is NULL");
  else
    options->stream = sync_stream;
}

/* gives (caller releases with ReleaseThreadingOptions). Kept for the record: the host has no thread pool. */
OrtStatus* ORT_API_CALL api_CreateThreadingOptions(OrtThreadingOptions** out) {
  REQUIRE_ARG(out);
  OrtThreadingOptions* options = mem_calloc(1, sizeof *options);
  if (options == NULL) return status_no_memory();
  options->allow_spinning = true;
  *out = options;
  return NULL;
}

void ORT_API_CALL api_ReleaseThreadingOptions(OrtThreadingOptions* input) {
  if (input == NULL) return;
  mem_free(input->affinity);
  mem_free(input);
}

OrtStatus* ORT_API_CALL api_SetGlobalIntraOpNumThreads(OrtThreadingOptions* tp_options,
                                                       int intra_op_num_threads) {
  REQUIRE_ARG(tp_options);
  tp_options->intra_op_threads = intra_op_num_threads;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SetGlobalInterOpNumThreads(OrtThreadingOptions* tp_options,
                                                       int inter_op_num_threads) {
  REQUIRE_ARG(tp_options);
  tp_options->inter_op_threads = inter_op_num_threads;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SetGlobalSpinControl(OrtThreadingOptions* tp_options, int allow_spinning) {
  REQUIRE_ARG(tp_options);
  if (allow_spinning != 0 && allow_spinning != 1)
    return status_new(ORT_INVALID_ARGUMENT, "SetGlobalSpinControl: %d is neither 0 nor 1", allow_spinning);
  tp_options->allow_spinning = allow_spinning == 1;
  return NULL;
}

OrtStatus* ORT_API_CALL api_SetGlobalDenormalAsZero(OrtThreadingOptions* tp_options) {
  REQUIRE_ARG(tp_options);
  tp_options->denormal_as_zero = true;
  return NULL;
}

/* copies. */
OrtStatus* ORT_API_CALL api_SetGlobalIntraOpThreadAffinity(OrtThreadingOptions* tp_options,
                                                           const char* affinity_string) {
  REQUIRE_ARG(tp_options);
  REQUIRE_ARG(affinity_string);
  size_t length = strlen(affinity_string);
  if (length == 0 || length > MAX_AFFINITY)
    return status_new(ORT_INVALID_ARGUMENT,
                      "SetGlobalIntraOpThreadAffinity: an affinity of %zu bytes; it has 1 to %d", length,
                      MAX_AFFINITY);
  return str_set(&tp_options->affinity, affinity_string);
}
