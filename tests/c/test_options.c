/* Session options, run options and threading options, through the public tables. */
#include <stdlib.h>

#include "harness.h"

#define REFUSED ORT_INVALID_ARGUMENT

static OrtSessionOptions* new_options(void) {
  OrtSessionOptions* options = NULL;
  CHECK_OK(api()->CreateSessionOptions(&options));
  return options;
}

/* Checks an entry of the options; NULL: it is absent. */
static void check_entry(const OrtSessionOptions* options, const char* key, const char* expected) {
  char value[64] = "";
  size_t size = sizeof value;
  int has = 9;
  CHECK_OK(api()->HasSessionConfigEntry(options, key, &has));
  CHECK(has == (expected != NULL));
  if (expected == NULL) return;
  CHECK_OK(api()->GetSessionConfigEntry(options, key, value, &size));
  CHECK_TEXT(value, expected);
  CHECK(size == strlen(expected) + 1);
}

static void test_config_entries(void) {
  OrtSessionOptions* options = new_options();
  OrtKeyValuePairs* all = NULL;
  check_entry(options, "session.x", NULL);
  CHECK_OK(api()->AddSessionConfigEntry(options, "session.x", "1"));
  CHECK_OK(api()->AddSessionConfigEntry(options, "session.x", "two"));
  CHECK_OK(api()->AddSessionConfigEntry(options, "session.empty", ""));
  check_entry(options, "session.x", "two");
  check_entry(options, "session.empty", "");
  CHECK_OK(api()->GetSessionOptionsConfigEntries(options, &all));
  CHECK_TEXT(api()->GetKeyValue(all, "session.x"), "two");
  CHECK_OK(api()->AddSessionConfigEntry(options, "session.x", "3"));
  CHECK_TEXT(api()->GetKeyValue(all, "session.x"), "two"); /* a copy */
  api()->ReleaseKeyValuePairs(all);
  api()->ReleaseSessionOptions(options);
  api()->ReleaseSessionOptions(NULL);
}

static void test_config_entry_says_its_size(void) {
  OrtSessionOptions* options = new_options();
  char value[4] = "abc";
  size_t size = 0;
  CHECK_OK(api()->AddSessionConfigEntry(options, "k", "12345"));
  CHECK_OK(api()->GetSessionConfigEntry(options, "k", NULL, &size));
  CHECK(size == 6);
  size = sizeof value;
  CHECK_FAILS(api()->GetSessionConfigEntry(options, "k", value, &size), REFUSED, "6 bytes");
  CHECK(size == 6);
  CHECK_TEXT(value, "abc");
  CHECK_FAILS(api()->GetSessionConfigEntry(options, "absent", value, &size), ORT_FAIL, "absent");
  api()->ReleaseSessionOptions(options);
}

static void test_config_entries_refuse(void) {
  OrtSessionOptions* options = new_options();
  OrtKeyValuePairs* all = NULL;
  static char text[(1 << 20) + 2];
  size_t size = 0;
  int has;
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = '\0';
  CHECK_FAILS(api()->CreateSessionOptions(NULL), REFUSED, "options");
  CHECK_FAILS(api()->AddSessionConfigEntry(NULL, "k", "v"), REFUSED, "options");
  CHECK_FAILS(api()->AddSessionConfigEntry(options, NULL, "v"), REFUSED, "config_key");
  CHECK_FAILS(api()->AddSessionConfigEntry(options, "k", NULL), REFUSED, "config_value");
  CHECK_FAILS(api()->AddSessionConfigEntry(options, "", "v"), REFUSED, "0 bytes");
  CHECK_FAILS(api()->AddSessionConfigEntry(options, text, "v"), REFUSED, "1048577 bytes");
  CHECK_FAILS(api()->AddSessionConfigEntry(options, "k", text), REFUSED, "1048577");
  CHECK_FAILS(api()->HasSessionConfigEntry(NULL, "k", &has), REFUSED, "options");
  CHECK_FAILS(api()->HasSessionConfigEntry(options, NULL, &has), REFUSED, "config_key");
  CHECK_FAILS(api()->HasSessionConfigEntry(options, "k", NULL), REFUSED, "out");
  CHECK_FAILS(api()->GetSessionConfigEntry(options, "k", text, NULL), REFUSED, "size");
  CHECK_FAILS(api()->GetSessionConfigEntry(NULL, "k", text, &size), REFUSED, "options");
  CHECK_FAILS(api()->GetSessionOptionsConfigEntries(NULL, &all), REFUSED, "options");
  CHECK_FAILS(api()->GetSessionOptionsConfigEntries(options, NULL), REFUSED, "out");
  check_entry(options, "k", NULL);
  api()->ReleaseSessionOptions(options);
}

static void test_clone_is_independent(void) {
  OrtSessionOptions *options = new_options(), *clone = NULL;
  ExecutionMode mode = ORT_SEQUENTIAL;
  int enabled = 9;
  CHECK_OK(api()->AddSessionConfigEntry(options, "k", "1"));
  CHECK_OK(api()->SetSessionLogId(options, "id"));
  CHECK_OK(api()->EnableProfiling(options, "prefix"));
  CHECK_OK(api()->SetOptimizedModelFilePath(options, ""));
  CHECK_OK(api()->SetSessionExecutionMode(options, ORT_PARALLEL));
  CHECK_OK(api()->DisableMemPattern(options));
  CHECK_OK(api()->AddFreeDimensionOverrideByName(options, "n", 3));
  CHECK_OK(api()->CloneSessionOptions(options, &clone));
  CHECK_OK(api()->AddSessionConfigEntry(options, "k", "2"));
  api()->ReleaseSessionOptions(options);
  check_entry(clone, "k", "1");
  CHECK_OK(api()->GetSessionExecutionMode(clone, &mode));
  CHECK(mode == ORT_PARALLEL);
  CHECK_OK(api()->GetMemPatternEnabled(clone, &enabled));
  CHECK(enabled == 0);
  CHECK_FAILS(api()->CloneSessionOptions(NULL, &clone), REFUSED, "in_options");
  CHECK_FAILS(api()->CloneSessionOptions(clone, NULL), REFUSED, "out_options");
  api()->ReleaseSessionOptions(clone);
}

static void test_session_settings(void) {
  OrtSessionOptions* options = new_options();
  ExecutionMode mode = ORT_PARALLEL;
  int enabled = 0;
  CHECK_OK(api()->GetSessionExecutionMode(options, &mode));
  CHECK(mode == ORT_SEQUENTIAL);
  CHECK_OK(api()->GetMemPatternEnabled(options, &enabled));
  CHECK(enabled == 1);
  CHECK_OK(api()->DisableMemPattern(options));
  CHECK_OK(api()->EnableMemPattern(options));
  CHECK_OK(api()->EnableCpuMemArena(options));
  CHECK_OK(api()->DisableCpuMemArena(options));
  CHECK_OK(api()->DisablePerSessionThreads(options));
  CHECK_OK(api()->SetIntraOpNumThreads(options, 2));
  CHECK_OK(api()->SetInterOpNumThreads(options, 2));
  CHECK_OK(api()->SetDeterministicCompute(options, true));
  CHECK_OK(api()->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_EXTENDED));
  CHECK_OK(api()->SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_ERROR));
  CHECK_OK(api()->SetSessionLogVerbosityLevel(options, 1));
  CHECK_OK(api()->EnableProfiling(options, "a"));
  CHECK_OK(api()->EnableProfiling(options, "b")); /* the first is released */
  CHECK_OK(api()->DisableProfiling(options));
  CHECK_OK(api()->DisableProfiling(options));
  api()->ReleaseSessionOptions(options);
}

static void test_session_settings_refuse(void) {
  OrtSessionOptions* options = new_options();
  ExecutionMode mode;
  CHECK_FAILS(api()->SetSessionExecutionMode(options, (ExecutionMode)7), REFUSED, "mode 7");
  CHECK_FAILS(api()->SetSessionExecutionMode(NULL, ORT_PARALLEL), REFUSED, "options");
  CHECK_FAILS(api()->GetSessionExecutionMode(options, NULL), REFUSED, "out");
  CHECK_FAILS(api()->GetSessionExecutionMode(NULL, &mode), REFUSED, "options");
  CHECK_FAILS(api()->SetSessionGraphOptimizationLevel(options, (GraphOptimizationLevel)50), REFUSED, "50");
  CHECK_FAILS(api()->SetSessionLogSeverityLevel(options, 12), REFUSED, "12");
  CHECK_FAILS(api()->SetSessionLogId(options, NULL), REFUSED, "logid");
  CHECK_FAILS(api()->EnableProfiling(options, NULL), REFUSED, "prefix");
  CHECK_FAILS(api()->SetOptimizedModelFilePath(options, NULL), REFUSED, "filepath");
  CHECK_FAILS(api()->SetOptimizedModelFilePath(options, "path"), ORT_NOT_IMPLEMENTED, "'path'");
  CHECK_FAILS(api()->SetUserLoggingFunction(options, NULL, NULL), REFUSED, "user_logging_function");
  CHECK_FAILS(api()->AddFreeDimensionOverride(options, NULL, 1), REFUSED, "dim_denotation");
  CHECK_FAILS(api()->AddFreeDimensionOverrideByName(options, NULL, 1), REFUSED, "dim_name");
  CHECK_FAILS(api()->EnableMemPattern(NULL), REFUSED, "EnableMemPattern");
  CHECK_FAILS(api()->EnableCpuMemArena(NULL), REFUSED, "EnableCpuMemArena");
  CHECK_FAILS(api()->SetIntraOpNumThreads(NULL, 1), REFUSED, "SetIntraOpNumThreads");
  CHECK_FAILS(api()->SetDeterministicCompute(NULL, true), REFUSED, "SetDeterministicCompute");
  api()->ReleaseSessionOptions(options);
}

static void test_initializers_all_or_none(void) {
  OrtSessionOptions* options = new_options();
  OrtAllocator* allocator = NULL;
  OrtValue* value = NULL;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->CreateTensorAsOrtValue(allocator, NULL, 0, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  const OrtValue* values[] = {value, value};
  const char* fresh_then_known[] = {"b", "a"};
  const char* fresh[] = {"b", "c"};
  CHECK_OK(api()->AddInitializer(options, "a", value));
  CHECK_FAILS(api()->AddInitializer(options, "a", value), REFUSED, "'a'");
  CHECK_FAILS(api()->AddInitializer(options, "b", NULL), REFUSED, "val");
  CHECK_FAILS(api()->AddInitializer(options, NULL, value), REFUSED, "name");
  CHECK_FAILS(api()->AddExternalInitializers(options, fresh_then_known, values, 2), REFUSED, "'a'");
  CHECK_FAILS(api()->AddExternalInitializers(options, NULL, values, 2), REFUSED, "initializer_names");
  CHECK_OK(api()->AddExternalInitializers(options, fresh, values, 2));
  api()->ReleaseSessionOptions(options);
  api()->ReleaseValue(value);
}

static void test_run_options(void) {
  OrtRunOptions* options = NULL;
  const char* tag = NULL;
  int level = 9;
  CHECK_OK(api()->CreateRunOptions(&options));
  CHECK_OK(api()->RunOptionsGetRunTag(options, &tag));
  CHECK_TEXT(tag, "");
  CHECK_OK(api()->RunOptionsSetRunTag(options, "one"));
  CHECK_OK(api()->RunOptionsSetRunTag(options, "two"));
  CHECK_OK(api()->RunOptionsGetRunTag(options, &tag));
  CHECK_TEXT(tag, "two");
  CHECK_OK(api()->RunOptionsSetRunLogSeverityLevel(options, 3));
  CHECK_OK(api()->RunOptionsGetRunLogSeverityLevel(options, &level));
  CHECK(level == 3);
  CHECK_OK(api()->RunOptionsSetRunLogVerbosityLevel(options, 4));
  CHECK_OK(api()->RunOptionsGetRunLogVerbosityLevel(options, &level));
  CHECK(level == 4);
  CHECK_OK(api()->RunOptionsSetTerminate(options));
  CHECK_OK(api()->RunOptionsUnsetTerminate(options));
  CHECK(api()->GetRunConfigEntry(options, "k") == NULL);
  CHECK_OK(api()->AddRunConfigEntry(options, "k", "v"));
  CHECK_TEXT(api()->GetRunConfigEntry(options, "k"), "v");
  CHECK_OK(api()->RunOptionsEnableProfiling(options, "p"));
  CHECK_OK(api()->RunOptionsDisableProfiling(options));
  api()->RunOptionsSetSyncStream(options, NULL);
  api()->ReleaseRunOptions(options);
  api()->ReleaseRunOptions(NULL);
}

static void test_run_options_refuse(void) {
  OrtRunOptions* options = NULL;
  CHECK_OK(api()->CreateRunOptions(&options));
  CHECK_FAILS(api()->CreateRunOptions(NULL), REFUSED, "out");
  CHECK_FAILS(api()->RunOptionsSetRunTag(NULL, "t"), REFUSED, "options");
  CHECK_FAILS(api()->RunOptionsGetRunTag(options, NULL), REFUSED, "run_tag");
  CHECK_FAILS(api()->RunOptionsGetRunLogSeverityLevel(options, NULL), REFUSED, "log_severity_level");
  CHECK_FAILS(api()->RunOptionsGetRunLogVerbosityLevel(NULL, NULL), REFUSED, "options");
  CHECK_FAILS(api()->RunOptionsSetTerminate(NULL), REFUSED, "options");
  CHECK_FAILS(api()->AddRunConfigEntry(options, NULL, "v"), REFUSED, "config_key");
  CHECK_FAILS(api()->AddRunConfigEntry(options, "k", NULL), REFUSED, "config_value");
  CHECK_FAILS(api()->AddRunConfigEntry(options, "", "v"), REFUSED, "0 bytes");
  CHECK_FAILS(api()->RunOptionsEnableProfiling(options, NULL), REFUSED, "prefix");
  CHECK(api()->GetRunConfigEntry(NULL, "k") == NULL);
  CHECK(api()->GetRunConfigEntry(options, NULL) == NULL);
  api()->RunOptionsSetSyncStream(NULL, NULL);
  api()->ReleaseRunOptions(options);
}

static void test_threading_options(void) {
  OrtThreadingOptions* options = NULL;
  CHECK_OK(api()->CreateThreadingOptions(&options));
  CHECK_OK(api()->SetGlobalIntraOpNumThreads(options, 2));
  CHECK_OK(api()->SetGlobalInterOpNumThreads(options, 2));
  CHECK_OK(api()->SetGlobalSpinControl(options, 0));
  CHECK_OK(api()->SetGlobalDenormalAsZero(options));
  CHECK_OK(api()->SetGlobalIntraOpThreadAffinity(options, "1;2"));
  CHECK_OK(api()->SetGlobalIntraOpThreadAffinity(options, "3"));
  CHECK_FAILS(api()->SetGlobalSpinControl(options, 5), REFUSED, "5");
  CHECK_FAILS(api()->SetGlobalIntraOpThreadAffinity(options, NULL), REFUSED, "affinity_string");
  CHECK_FAILS(api()->CreateThreadingOptions(NULL), REFUSED, "out");
  CHECK_FAILS(api()->SetGlobalDenormalAsZero(NULL), REFUSED, "tp_options");
  api()->ReleaseThreadingOptions(options);
  api()->ReleaseThreadingOptions(NULL);
}

/* ---- Out of memory ---- */

static OrtStatus* make_session_options(void) {
  OrtSessionOptions *options = NULL, *clone = NULL;
  OrtKeyValuePairs* entries = NULL;
  OrtStatus* status = api()->CreateSessionOptions(&options);
  if (status == NULL) status = api()->AddSessionConfigEntry(options, "k", "v");
  if (status == NULL) status = api()->SetSessionLogId(options, "id");
  if (status == NULL) status = api()->EnableProfiling(options, "p");
  if (status == NULL) status = api()->AddFreeDimensionOverride(options, "n", 1);
  if (status == NULL) status = api()->AddFreeDimensionOverrideByName(options, "n", 1);
  if (status == NULL) status = api()->CloneSessionOptions(options, &clone);
  if (status == NULL) status = api()->GetSessionOptionsConfigEntries(clone, &entries);
  api()->ReleaseKeyValuePairs(entries);
  api()->ReleaseSessionOptions(clone);
  api()->ReleaseSessionOptions(options);
  return status;
}

static OrtStatus* make_run_options(void) {
  OrtRunOptions* options = NULL;
  OrtStatus* status = api()->CreateRunOptions(&options);
  if (status == NULL) status = api()->RunOptionsSetRunTag(options, "t");
  if (status == NULL) status = api()->AddRunConfigEntry(options, "k", "v");
  if (status == NULL) status = api()->RunOptionsEnableProfiling(options, "p");
  api()->ReleaseRunOptions(options);
  return status;
}

static OrtStatus* make_threading_options(void) {
  OrtThreadingOptions* options = NULL;
  OrtStatus* status = api()->CreateThreadingOptions(&options);
  if (status == NULL) status = api()->SetGlobalIntraOpThreadAffinity(options, "1");
  api()->ReleaseThreadingOptions(options);
  return status;
}

int main(void) {
  RUN(test_config_entries);
  RUN(test_config_entry_says_its_size);
  RUN(test_config_entries_refuse);
  RUN(test_clone_is_independent);
  RUN(test_session_settings);
  RUN(test_session_settings_refuse);
  RUN(test_initializers_all_or_none);
  RUN(test_run_options);
  RUN(test_run_options_refuse);
  RUN(test_threading_options);
  CHECK_ALLOCATION_FAILURES(make_session_options);
  CHECK_ALLOCATION_FAILURES(make_run_options);
  CHECK_ALLOCATION_FAILURES(make_threading_options);
  return finish();
}
