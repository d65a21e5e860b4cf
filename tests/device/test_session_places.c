/* Where an EP with kernels keeps values: what its kernel definitions say, and which memory is its own. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "kernels_control.h"
#include "sessions.h"

static KernelsControl* control;

/* AddressSanitizer knows what is freed; without it nobody does. */
static bool is_released(const void* address, bool expected) {
#ifdef __SANITIZE_ADDRESS__
  (void)expected;
  return __asan_address_is_poisoned(address) != 0;
#else
  (void)address;
  return expected;
#endif
}

static const OrtEpDevice* plug_kernels(const char* name) {
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  char path[512];
  open_env();
  if (!CHECK_OK(try_plug(name))) exit(1);
  library_path(name, path, sizeof path);
  control = find_control(path, "kernel_device_control");
  CHECK_OK(api()->GetEpDevices(env, &all, &count));
  return control != NULL ? all[1] : NULL; /* behind the CPU's */
}

static void unplug_kernels(const char* name) {
  CHECK(control->live_blocks == 0);
  CHECK_OK(api()->UnregisterExecutionProviderLibrary(env, name));
  close_env();
}

/* On all devices of the EP, which stand in a row. */
static OrtStatus* try_on(size_t count, const char* model, OrtSession** session) {
  const OrtEpDevice* const* all = NULL;
  size_t known = 0;
  OrtSessionOptions* options = NULL;
  Message bytes = write_model(model);
  CHECK_OK(api()->GetEpDevices(env, &all, &known));
  CHECK_OK(api()->CreateSessionOptions(&options));
  CHECK_OK(api()->SessionOptionsAppendExecutionProvider_V2(options, env, &all[1], count, NULL, NULL, 0));
  OrtStatus* status = api()->CreateSessionFromArray(env, bytes.bytes, bytes.size, options, session);
  api()->ReleaseSessionOptions(options);
  return status;
}

static void check_copies(OrtSession* session, const char* model, uint64_t to_device, uint64_t to_host) {
  for (int run = 0; run < 2; run++) {
    uint64_t device_before = control->copies_to_device, host_before = control->copies_to_host;
    CHECK_RUN(session, model, (float)run - 1);
    check_at(__FILE__, __LINE__,
             control->copies_to_device - device_before == to_device &&
                 control->copies_to_host - host_before == to_host,
             "'%s': %llu and %llu copies", model,
             (unsigned long long)(control->copies_to_device - device_before),
             (unsigned long long)(control->copies_to_host - host_before));
  }
}

/* The result of Shape is made and read in host memory, by whichever EP. */
static void test_host_inputs_and_outputs_of_kernels(void) {
  static const struct {
    const char* model;
    uint64_t to_device, to_host;
  } all[] = {
      {"Relu x a; Shape a s; Reshape a s y", 1, 1},
      {"Relu x a; Shape a s; Identity s t; Reshape a t y", 1, 1},     /* t by the CPU EP */
      {"Neg x a; Relu a b; Shape b s; Reshape b s c; Neg c y", 1, 1}, /* and its neighbours */
      {"Relu x a; Shape a s; Neg a b; Reshape b s y", 2, 2},          /* a to Neg and b back */
  };
  CHECK(plug_kernels("kernels") != NULL);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    OrtSession* session = NULL;
    if (!CHECK_OK(try_on(1, all[i].model, &session))) continue;
    check_copies(session, all[i].model, all[i].to_device, all[i].to_host);
    api()->ReleaseSession(session);
  }
  unplug_kernels("kernels");
}

/* Weights that only the device reads are not kept in host memory beside it. */
static void test_weights_are_where_they_are_read(void) {
  static const struct {
    const char* model;
    bool is_kept;
  } all[] = {
      {"Relu w2 a; Add a x y", false},
      {"Relu w2 a; Add w2 x b; Add a b y", true}, /* the CPU EP reads it, too */
      {"Relu w2 a; Add a x y; Output w2", true},
  };
  CHECK(plug_kernels("kernels") != NULL);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    OrtSession* session = NULL;
    if (!CHECK_OK(try_on(1, all[i].model, &session))) continue;
    CHECK(is_released(control->last_uploaded, !all[i].is_kept) == !all[i].is_kept);
    CHECK_RUN(session, all[i].model, 1);
    api()->ReleaseSession(session);
  }
  unplug_kernels("kernels");
}

static void test_memories_that_do_not_agree(void) {
  OrtSession* session = NULL;
  CHECK(plug_kernels("kernels.two") != NULL);
  CHECK_FAILS(try_on(2, "Relu x y", &session), ORT_EP_FAIL,
              "EP 'KernelsExecutionProvider': its EP devices have different memory ('Kernels 0' and 'Kernels "
              "1'), and it has no GetDefaultMemoryDevice");
  CHECK_OK(try_on(1, "Relu x y", &session)); /* with one of them alone there is no question */
  check_copies(session, "Relu x y", 1, 1);
  api()->ReleaseSession(session);
  unplug_kernels("kernels.two");
}

static void test_a_default_memory_device(void) {
  const OrtMemoryInfo* memory = NULL;
  OrtSession* session = NULL;
  uint32_t device_id = 99;
  CHECK(plug_kernels("kernels.second") != NULL);
  CHECK_OK(try_on(2, "Relu x y", &session));
  CHECK_OK(api()->SessionGetMemoryInfoForInputs(session, &memory, 1));
  device_id =
      api()->GetEpApi()->MemoryDevice_GetDeviceId(api()->GetEpApi()->MemoryInfo_GetMemoryDevice(memory));
  CHECK(device_id == 1);
  check_copies(session, "Relu x y", 1, 1);
  api()->ReleaseSession(session);
  unplug_kernels("kernels.second");
}

static void test_a_default_memory_device_that_is_not_the_eps(void) {
  OrtSession* session = NULL;
  CHECK(plug_kernels("kernels.foreign") != NULL);
  CHECK_FAILS(try_on(2, "Relu x y", &session), ORT_EP_FAIL,
              "OrtEp::GetDefaultMemoryDevice names a memory device that none of its EP devices has");
  CHECK(session == NULL);
  unplug_kernels("kernels.foreign");
}

int main(void) {
  RUN(test_host_inputs_and_outputs_of_kernels);
  RUN(test_weights_are_where_they_are_read);
  RUN(test_memories_that_do_not_agree);
  RUN(test_a_default_memory_device);
  RUN(test_a_default_memory_device_that_is_not_the_eps);
  return finish();
}
