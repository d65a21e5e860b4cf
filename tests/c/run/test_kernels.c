/* Kernel definitions and registries, what a kernel learns about its node, and what it can do while it runs.
 */
#include <limits.h>

#include "run_test.h"

static const int64_t two_by_three[] = {2, 3};

static const OrtEpApi* ep_api(void) {
  return api()->GetEpApi();
}

static OrtStatus* ORT_API_CALL create_nothing(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  (void)state, (void)info, (void)out;
  return NULL;
}

/* ---- Definitions ---- */

static OrtKernelDef* new_def(const char* ep_name, int first, int last, ONNXTensorElementDataType type) {
  OrtKernelDefBuilder* builder = NULL;
  OrtKernelDef* def = NULL;
  const OrtDataType* types[1];
  CHECK_OK(ep_api()->CreateKernelDefBuilder(&builder));
  CHECK_OK(ep_api()->KernelDefBuilder_SetOperatorType(builder, "Add"));
  CHECK_OK(ep_api()->KernelDefBuilder_SetDomain(builder, "ai.onnx"));
  CHECK_OK(ep_api()->KernelDefBuilder_SetSinceVersion(builder, first, last));
  CHECK_OK(ep_api()->KernelDefBuilder_SetExecutionProvider(builder, ep_name));
  CHECK_OK(ep_api()->KernelDefBuilder_SetInputMemType(builder, 1, OrtMemTypeCPUInput));
  CHECK_OK(ep_api()->KernelDefBuilder_SetOutputMemType(builder, 0, OrtMemTypeCPUOutput));
  CHECK_OK(ep_api()->GetTensorDataType(type, &types[0]));
  CHECK_OK(ep_api()->KernelDefBuilder_AddTypeConstraint(builder, "T", types, 1));
  CHECK_OK(ep_api()->KernelDefBuilder_Build(builder, &def));
  CHECK_FAILS(ep_api()->KernelDefBuilder_SetDomain(builder, "x"), ORT_INVALID_ARGUMENT,
              "definition was built");
  ep_api()->ReleaseKernelDefBuilder(builder);
  return def;
}

static void test_a_definition_says_what_it_was_told(void) {
  OrtKernelDef* def = new_def("RunEp", 7, 14, FLOAT);
  int first = 0, last = 0;
  OrtMemType type = OrtMemTypeDefault;
  CHECK_TEXT(ep_api()->KernelDef_GetOperatorType(def), "Add");
  CHECK_TEXT(ep_api()->KernelDef_GetDomain(def), "");
  CHECK_TEXT(ep_api()->KernelDef_GetExecutionProvider(def), "RunEp");
  CHECK_OK(ep_api()->KernelDef_GetSinceVersion(def, &first, &last));
  CHECK(first == 7 && last == 14);
  CHECK_OK(ep_api()->KernelDef_GetInputMemType(def, 1, &type));
  CHECK(type == OrtMemTypeCPUInput);
  CHECK_OK(ep_api()->KernelDef_GetInputMemType(def, 0, &type));
  CHECK(type == OrtMemTypeDefault);
  CHECK_OK(ep_api()->KernelDef_GetOutputMemType(def, 0, &type));
  CHECK(type == OrtMemTypeCPUOutput);
  ep_api()->ReleaseKernelDef(def);
}

static void test_builders_refuse_nonsense(void) {
  OrtKernelDefBuilder* builder = NULL;
  OrtKernelDef* def = NULL;
  const OrtDataType* types[] = {NULL};
  const int index = 0, negative = -1;
  CHECK_OK(ep_api()->CreateKernelDefBuilder(&builder));
  CHECK_FAILS(ep_api()->KernelDefBuilder_Build(builder, &def), ORT_INVALID_ARGUMENT, "has no operator type");
  CHECK_OK(ep_api()->KernelDefBuilder_SetOperatorType(builder, "Add"));
  CHECK_FAILS(ep_api()->KernelDefBuilder_Build(builder, &def), ORT_INVALID_ARGUMENT, "has no EP name");
  CHECK_FAILS(ep_api()->KernelDefBuilder_SetSinceVersion(builder, 0, 3), ORT_INVALID_ARGUMENT, "0 to 3");
  CHECK_FAILS(ep_api()->KernelDefBuilder_SetSinceVersion(builder, 4, 3), ORT_INVALID_ARGUMENT, "4 to 3");
  CHECK_FAILS(ep_api()->KernelDefBuilder_AddTypeConstraint(builder, "T", types, 0), ORT_INVALID_ARGUMENT,
              "no types");
  CHECK_FAILS(ep_api()->KernelDefBuilder_AddTypeConstraint(builder, "T", types, 1), ORT_INVALID_ARGUMENT,
              "is NULL");
  CHECK_FAILS(ep_api()->KernelDefBuilder_AddInputOutputAliases(builder, &index, &index, 0),
              ORT_INVALID_ARGUMENT, "no indices");
  CHECK_FAILS(ep_api()->KernelDefBuilder_AddInputOutputMutableAliases(builder, &negative, &index, 1),
              ORT_INVALID_ARGUMENT, "input -1");
  ep_api()->ReleaseKernelDefBuilder(builder);
}

static void test_every_element_type_has_a_data_type(void) {
  const OrtDataType *first = NULL, *again = NULL, *other = NULL;
  for (int type = 1; type <= ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0; type++)
    CHECK_OK(ep_api()->GetTensorDataType((ONNXTensorElementDataType)type, &first));
  CHECK_OK(ep_api()->GetTensorDataType(FLOAT, &first));
  CHECK_OK(ep_api()->GetTensorDataType(FLOAT, &again));
  CHECK_OK(ep_api()->GetTensorDataType(INT64, &other));
  CHECK(first == again && first != other);
  CHECK_FAILS(ep_api()->GetTensorDataType((ONNXTensorElementDataType)0, &first), ORT_INVALID_ARGUMENT,
              "type 0");
  CHECK_FAILS(ep_api()->GetTensorDataType((ONNXTensorElementDataType)27, &first), ORT_INVALID_ARGUMENT,
              "type 27");
}

static OrtStatus* add(OrtKernelRegistry* registry, const char* ep_name, int first, int last,
                      ONNXTensorElementDataType type) {
  OrtKernelDef* def = new_def(ep_name, first, last, type);
  OrtStatus* status = ep_api()->KernelRegistry_AddKernel(registry, def, create_nothing, NULL);
  ep_api()->ReleaseKernelDef(def); /* the registry keeps it */
  return status;
}

static void test_conflicting_kernels_are_refused(void) {
  OrtKernelRegistry* registry = NULL;
  CHECK_OK(ep_api()->CreateKernelRegistry(&registry));
  CHECK_OK(add(registry, "RunEp", 7, 12, FLOAT));
  CHECK_FAILS(add(registry, "RunEp", 12, 13, FLOAT), ORT_FAIL,
              "EP 'RunEp' already has a kernel for 'Add' (ai.onnx)");
  CHECK_OK(add(registry, "RunEp", 13, 14, FLOAT));
  CHECK_OK(add(registry, "RunEp", 7, 12, INT64));
  CHECK_OK(add(registry, "OtherEp", 7, 12, FLOAT));
  CHECK_OK(add(registry, "RunEp", 1, INT_MAX, FLOAT)); /* open: version 1 only */
  CHECK_FAILS(add(registry, "RunEp", 1, 1, FLOAT), ORT_FAIL, "from version 1 on");
  ep_api()->ReleaseKernelRegistry(registry);
}

/* ---- What a kernel learns ---- */

#define RETURN_UNLESS(condition)                                                   \
  do {                                                                             \
    if (!(condition)) return api()->CreateStatus(ORT_FAIL, "not so: " #condition); \
  } while (0)
#define TRY(call)                              \
  do {                                         \
    OrtStatus* try_status = (call);            \
    if (try_status != NULL) return try_status; \
  } while (0)

/* A text slot by the size-query protocol. */
static void check_text(OrtStatus* (*get)(const OrtKernelInfo*, char*, size_t*), const OrtKernelInfo* info,
                       const char* expected) {
  char text[64] = "";
  size_t size = 0;
  CHECK_OK(get(info, NULL, &size));
  CHECK(size == strlen(expected) + 1);
  size = strlen(expected);
  CHECK_FAILS(get(info, text, &size), ORT_INVALID_ARGUMENT, "are needed");
  CHECK(size == strlen(expected) + 1);
  CHECK_OK(get(info, text, &size));
  CHECK(strcmp(text, expected) == 0);
}

static OrtStatus* look_at_node(const OrtKernelInfo* info) {
  size_t count = 0, size = 64;
  int version = 0, is_constant = 0;
  char text[64];
  const OrtValue* constant = NULL;
  OrtTypeInfo* type = NULL;
  const OrtEp* ep = NULL;
  const OrtLogger* logger = NULL;
  OrtAllocator* allocator = NULL;
  OrtKernelInfo* copy = NULL;
  OrtKeyValuePairs* config = NULL;
  check_text(api()->KernelInfo_GetNodeName, info, "probe");
  check_text(api()->KernelInfo_GetOperatorType, info, "Probe");
  check_text(api()->KernelInfo_GetOperatorDomain, info, "test");
  TRY(api()->KernelInfo_GetOperatorSinceVersion(info, &version));
  RETURN_UNLESS(version == 1);
  TRY(api()->KernelInfo_GetInputCount(info, &count));
  RETURN_UNLESS(count == 3);
  TRY(api()->KernelInfo_GetOutputCount(info, &count));
  RETURN_UNLESS(count == 1);
  TRY(api()->KernelInfo_GetInputName(info, 2, text, &size));
  RETURN_UNLESS(strcmp(text, "w") == 0);
  TRY(api()->KernelInfo_GetInputName(info, 1, NULL, &size));
  RETURN_UNLESS(size == 1); /* a missing optional input */
  CHECK_FAILS(api()->KernelInfo_GetInputName(info, 3, NULL, &size), ORT_INVALID_ARGUMENT,
              "index 3 is not below 3");
  size = 64;
  TRY(api()->KernelInfo_GetOutputName(info, 0, text, &size));
  RETURN_UNLESS(strcmp(text, "y") == 0);
  TRY(api()->KernelInfo_GetInputTypeInfo(info, 0, &type));
  api()->ReleaseTypeInfo(type);
  TRY(api()->KernelInfo_GetOutputTypeInfo(info, 0, &type));
  api()->ReleaseTypeInfo(type);
  CHECK_FAILS(api()->KernelInfo_GetInputTypeInfo(info, 1, &type), ORT_INVALID_ARGUMENT, "unknown");
  TRY(api()->KernelInfoGetConstantInput_tensor(info, 0, &is_constant, &constant));
  RETURN_UNLESS(is_constant == 0 && constant == NULL);
  TRY(api()->KernelInfoGetConstantInput_tensor(info, 2, &is_constant, &constant));
  RETURN_UNLESS(is_constant == 1 && floats(constant)[5] == 1);
  TRY(ep_api()->KernelInfo_GetEp(info, &ep));
  RETURN_UNLESS(strcmp(ep->GetName(ep), "RunEp") == 0);
  TRY(api()->KernelInfo_GetLogger(info, &logger));
  TRY(api()->Logger_LogMessage(logger, ORT_LOGGING_LEVEL_WARNING, "from a kernel", "file", 1, "function"));
  RETURN_UNLESS(strstr(logged, "from a kernel") != NULL);
  TRY(api()->KernelInfoGetAllocator(info, OrtMemTypeDefault, &allocator));
  RETURN_UNLESS(allocator != NULL);
  api()->ReleaseAllocator(allocator);
  TRY(api()->CopyKernelInfo(info, &copy));
  check_text(api()->KernelInfo_GetNodeName, copy, "probe");
  api()->ReleaseKernelInfo(copy);
  TRY(api()->KernelInfo_GetConfigEntries(info, &config));
  RETURN_UNLESS(strcmp(api()->GetKeyValue(config, "session.disable_cpu_ep_fallback"), "1") == 0);
  api()->ReleaseKeyValuePairs(config);
  return NULL;
}

static void check_created(const char* model, const char* claims, OrtStatus* (*look)(const OrtKernelInfo*)) {
  reset();
  control->claims[0] = claims;
  control->on_kernel_info = look;
  OrtSession* session = new_session(model, 1, NO_FALLBACK);
  api()->ReleaseSession(session);
}

static void test_a_kernel_learns_about_its_node(void) {
  check_created("attributes", "single probe", look_at_node);
}

static OrtStatus* look_at_strings(const OrtKernelInfo* info, OrtAllocator* allocator) {
  char** strings = NULL;
  size_t count = 0;
  TRY(api()->KernelInfoGetAttributeArray_string(info, "strings", allocator, &strings, &count));
  RETURN_UNLESS(count == 2 && strcmp(strings[0], "one") == 0 && strcmp(strings[1], "two") == 0);
  for (size_t i = 0; i < count; i++) TRY(api()->AllocatorFree(allocator, strings[i]));
  return api()->AllocatorFree(allocator, strings);
}

/* An allocator whose memory the host must not touch. */
static const OrtMemoryInfo* gpu_memory;

static void* ORT_API_CALL gpu_alloc(OrtAllocator* this_, size_t size) {
  (void)this_;
  return malloc(size);
}

static void ORT_API_CALL gpu_free(OrtAllocator* this_, void* p) {
  (void)this_;
  free(p);
}

static const OrtMemoryInfo* ORT_API_CALL gpu_info(const OrtAllocator* this_) {
  (void)this_;
  return gpu_memory;
}

static OrtStatus* look_at_tensor_on_a_device(const OrtKernelInfo* info) {
  OrtAllocator allocator = {.version = 16, .Alloc = gpu_alloc, .Free = gpu_free, .Info = gpu_info};
  OrtMemoryInfo* memory = NULL;
  OrtValue* tensor = NULL;
  TRY(api()->CreateMemoryInfo_V2("Gpu", OrtMemoryInfoDeviceType_GPU, 1, 0, OrtDeviceMemoryType_DEFAULT, 0,
                                 OrtDeviceAllocator, &memory));
  gpu_memory = memory;
  CHECK_FAILS(api()->KernelInfoGetAttribute_tensor(info, "t", &allocator, &tensor), ORT_NOT_IMPLEMENTED,
              "KernelInfoGetAttribute_tensor: the allocator's memory is a device's");
  CHECK(tensor == NULL);
  api()->ReleaseMemoryInfo(memory);
  return NULL;
}

static OrtStatus* look_at_tensor(const OrtKernelInfo* info, OrtAllocator* allocator) {
  OrtValue* tensor = NULL;
  const void* data = NULL;
  TRY(api()->KernelInfoGetAttribute_tensor(info, "t", allocator, &tensor));
  TRY(api()->GetTensorData(tensor, &data));
  int64_t last = ((const int64_t*)data)[3];
  api()->ReleaseValue(tensor);
  RETURN_UNLESS(last == 3);
  return NULL;
}

static OrtStatus* look_at_attributes(const OrtKernelInfo* info) {
  int64_t i = 0, ints[3] = {0};
  float f = 0, values[2] = {0};
  char text[8];
  size_t size = 0;
  OrtAllocator* allocator = NULL;
  OrtValue* tensor = NULL;
  TRY(api()->GetAllocatorWithDefaultOptions(&allocator));
  TRY(api()->KernelInfoGetAttribute_int64(info, "i", &i));
  TRY(api()->KernelInfoGetAttribute_float(info, "f", &f));
  RETURN_UNLESS(i == 7 && f == 0.5f);
  TRY(api()->KernelInfoGetAttribute_string(info, "s", NULL, &size));
  RETURN_UNLESS(size == 5);
  TRY(api()->KernelInfoGetAttribute_string(info, "s", text, &size));
  RETURN_UNLESS(strcmp(text, "text") == 0);
  TRY(api()->KernelInfoGetAttributeArray_int64(info, "ints", NULL, &size));
  RETURN_UNLESS(size == 3);
  size = 2;
  CHECK_FAILS(api()->KernelInfoGetAttributeArray_int64(info, "ints", ints, &size), ORT_INVALID_ARGUMENT,
              "3 are needed");
  TRY(api()->KernelInfoGetAttributeArray_int64(info, "ints", ints, &size));
  RETURN_UNLESS(ints[2] == 3);
  size = 2;
  TRY(api()->KernelInfoGetAttributeArray_float(info, "floats", values, &size));
  RETURN_UNLESS(values[1] == 2.5f);
  TRY(look_at_strings(info, allocator));
  TRY(look_at_tensor(info, allocator));
  TRY(look_at_tensor_on_a_device(info));
  CHECK_FAILS(api()->KernelInfoGetAttribute_int64(info, "none", &i), ORT_FAIL,
              "node 'probe' (Probe) has no attribute 'none'");
  CHECK_FAILS(api()->KernelInfoGetAttribute_int64(info, "f", &i), ORT_FAIL, "is of type float, not int");
  CHECK_FAILS(api()->KernelInfoGetAttribute_tensor(info, "i", allocator, &tensor), ORT_FAIL,
              "type int, not tensor");
  return NULL;
}

static void test_a_kernel_reads_attributes_of_every_kind(void) {
  check_created("attributes", "single probe", look_at_attributes);
}

static OrtStatus* look_at_default(const OrtKernelInfo* info) {
  float alpha = 0;
  TRY(api()->KernelInfoGetAttribute_float(info, "alpha", &alpha));
  RETURN_UNLESS(alpha > 0.0099f && alpha < 0.0101f);
  CHECK_FAILS(api()->KernelInfoGetAttribute_float(info, "beta", &alpha), ORT_FAIL, "no attribute 'beta'");
  return NULL;
}

static void test_an_attribute_that_is_not_set_has_the_operators_default(void) {
  check_created("defaults", "single leaky", look_at_default);
}

static OrtStatus* refuse(const OrtKernelInfo* info) {
  (void)info;
  return api()->CreateStatus(ORT_NOT_IMPLEMENTED, "no, thanks");
}

static void test_a_kernel_that_is_not_created_is_named(void) {
  OrtSession* session = NULL;
  reset();
  control->claims[0] = "single add;single mul;single relu";
  control->on_kernel_info = refuse;
  CHECK_FAILS(
      create_session("chain", 1, NO_FALLBACK, &session), ORT_NOT_IMPLEMENTED,
      "EP 'RunEp': its kernel for node 'add' (Add, ai.onnx, version 14) could not be created: no, thanks");
}

/* ---- What a kernel can do ---- */

static void count_up(void* counts, size_t index) {
  ((int*)counts)[index]++;
}

static OrtStatus* try_everything(OrtKernelContext* context) {
  const OrtMemoryInfo* memory = NULL;
  const OrtLogger* logger = NULL;
  const OrtValue* value = NULL;
  OrtValue* output = NULL;
  OrtAllocator* allocator = NULL;
  OrtSyncStream* stream = (OrtSyncStream*)1;
  void *scratch[2] = {NULL}, *handle = (void*)1;
  int counts[5] = {0};
  size_t count = 0;
  TRY(api()->KernelContext_GetInputCount(context, &count));
  RETURN_UNLESS(count == 3);
  TRY(api()->KernelContext_GetOutputCount(context, &count));
  RETURN_UNLESS(count == 1);
  TRY(api()->KernelContext_GetInput(context, 1, &value));
  RETURN_UNLESS(value == NULL); /* missing */
  TRY(api()->KernelContext_GetInput(context, 9, &value));
  RETURN_UNLESS(value == NULL);
  TRY(api()->KernelContext_GetOutput(context, 9, two_by_three, 2, &output));
  RETURN_UNLESS(output == NULL);
  TRY(api()->KernelContext_GetInput(context, 2, &value));
  TRY(api()->GetTensorMemoryInfo(value, &memory));
  TRY(api()->KernelContext_GetScratchBuffer(context, memory, 100, &scratch[0]));
  TRY(api()->KernelContext_GetScratchBuffer(context, memory, 100, &scratch[1]));
  RETURN_UNLESS(scratch[0] != scratch[1]);
  memset(scratch[0], 1, 100);
  memset(scratch[1], 1, 100);
  TRY(api()->KernelContext_GetAllocator(context, memory, &allocator));
  RETURN_UNLESS(allocator != NULL);
  for (int i = 0; i < 2; i++) TRY(api()->AllocatorFree(allocator, scratch[i]));
  TRY(api()->KernelContext_GetScratchBuffer(context, memory, 0, &scratch[0]));
  RETURN_UNLESS(scratch[0] == NULL);
  CHECK_FAILS(api()->KernelContext_GetScratchBuffer(context, memory, SIZE_MAX / 2, &scratch[1]),
              ORT_RUNTIME_EXCEPTION, "KernelContext_GetScratchBuffer: no memory in 'Cpu' for ");
  TRY(api()->KernelContext_ParallelFor(context, count_up, 5, 0, counts));
  for (int i = 0; i < 5; i++) RETURN_UNLESS(counts[i] == 1);
  TRY(api()->KernelContext_GetGPUComputeStream(context, &handle));
  TRY(api()->KernelContext_GetSyncStream(context, &stream));
  RETURN_UNLESS(handle == NULL && stream == NULL);
  CHECK_FAILS(api()->KernelContext_GetResource(context, 1, 0, &handle), ORT_INVALID_ARGUMENT,
              "of EP 'RunEp' runs on no stream");
  TRY(api()->KernelContext_GetLogger(context, &logger));
  return api()->Logger_LogMessage(logger, ORT_LOGGING_LEVEL_WARNING, "from a run", "file", 1, "function");
}

static void test_a_kernel_uses_its_context(void) {
  reset();
  control->claims[0] = "single probe";
  OrtSession* session = new_session("attributes", 1, NO_FALLBACK);
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  control->on_compute = try_everything;
  CHECK_OK(run1(session, "x", x, "y", &y));
  CHECK(strstr(logged, "from a run") != NULL);
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
  api()->ReleaseSession(session);
}

static void test_a_run_has_a_log_level_of_its_own(void) {
  OrtRunOptions* options = NULL;
  const char *input = "x", *output = "y";
  reset();
  control->claims[0] = "single probe";
  OrtSession* session = new_session("attributes", 1, NO_FALLBACK);
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  const OrtValue* values[] = {x};
  control->on_compute = try_everything;
  CHECK_OK(api()->CreateRunOptions(&options));
  CHECK_OK(api()->RunOptionsSetRunLogSeverityLevel(options, ORT_LOGGING_LEVEL_ERROR));
  CHECK_OK(api()->Run(session, options, &input, values, 1, &output, 1, &y));
  CHECK(strstr(logged, "from a run") == NULL);
  api()->ReleaseRunOptions(options);
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
  api()->ReleaseSession(session);
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return finish();
  RUN(test_a_definition_says_what_it_was_told);
  RUN(test_builders_refuse_nonsense);
  RUN(test_every_element_type_has_a_data_type);
  RUN(test_conflicting_kernels_are_refused);
  RUN(test_a_kernel_learns_about_its_node);
  RUN(test_a_kernel_reads_attributes_of_every_kind);
  RUN(test_an_attribute_that_is_not_set_has_the_operators_default);
  RUN(test_a_kernel_that_is_not_created_is_named);
  RUN(test_a_kernel_uses_its_context);
  RUN(test_a_run_has_a_log_level_of_its_own);
  return close_env();
}
