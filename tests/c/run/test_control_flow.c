/* Kernels that run subgraphs: a failure in each iteration, in each callback and in each allocation, and what
 * the host says to wrong helpers. Nodes in bodies run on the test's EP, If and Loop on the CPU EP. */
#include "run_test.h"

#define ITERATIONS 3

static const int64_t two_by_three[] = {2, 3};
static const float loop_result[] = {0, 4, 8, 12, 16, 20}; /* x + 3x */
static const char* const in_body = "single step";

static void check_message(const OrtStatus* status, const char* part) {
  const char* message = status != NULL ? api()->GetErrorMessage(status) : "OK";
  check_at(__FILE__, __LINE__, strstr(message, part) != NULL, "'%s' has no '%s'", message, part);
}

/* ---- Iterations ---- */

static void test_each_iteration_fails_in_turn(void) {
  reset();
  control->claims[0] = in_body;
  OrtSession* session = new_session("loop", 1, "");
  OrtValue* x = new_floats(2, two_by_three);
  for (int i = 0; i < ITERATIONS; i++) {
    char iteration[32];
    OrtValue* y = NULL;
    snprintf(iteration, sizeof iteration, "iteration %d: ", i);
    control->fail_at = control->callbacks + i;
    OrtStatus* status = run1(session, "x", x, "y", &y);
    CHECK(status != NULL && y == NULL && api()->GetErrorCode(status) == ORT_EP_FAIL);
    check_message(status, "EP 'CPUExecutionProvider': node 'loop' (Loop, ai.onnx, version 16) failed: ");
    check_message(status, iteration);
    check_message(status, "EP 'RunEp': node 'step' (Add, ai.onnx, version 14) failed: injected into ");
    api()->ReleaseStatus(status);
    control->fail_at = -1;
    check_run(session, loop_result);
  }
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

static void test_fused_nodes_in_a_body(void) {
  reset();
  control->claims[0] = "fuse step";
  OrtSession* session = new_session("loop", 1, "");
  CHECK(ortabi_session_step_count(session) == 1);
  long before = control->callbacks;
  check_run(session, loop_result);
  CHECK(control->callbacks - before == ITERATIONS);
  check_run(session, loop_result);
  api()->ReleaseSession(session);
}

/* Only branches read x: for the session's caller it is the If that does. */
static void test_ep_device_of_an_input_of_bodies(void) {
  const OrtEpDevice* devices[2] = {NULL, NULL};
  reset();
  control->claims[0] = "single in_then";
  OrtSession* session = new_session("if", 1, "");
  CHECK_OK(api()->SessionGetEpDeviceForInputs(session, devices, 2));
  for (int i = 0; i < 2; i++) {
    if (!CHECK(devices[i] != NULL)) continue;
    CHECK(strcmp(api()->EpDevice_EpName(devices[i]), "CPUExecutionProvider") == 0);
  }
  api()->ReleaseSession(session);
}

/* ---- Out of memory ---- */

/* Creates a session, runs it twice and releases it. */
static OrtStatus* live(void) {
  OrtSession* session = NULL;
  OrtStatus* status = create_session("loop", 1, "", &session);
  if (status != NULL) return status;
  const char* const name = "x";
  const char* const outputs[] = {"y", "seen"};
  for (int i = 0; i < 2 && status == NULL; i++) {
    ortabi_fail_allocation(-1);
    OrtValue *x = new_floats(2, two_by_three), *results[2] = {NULL, NULL};
    status = api()->Run(session, NULL, &name, (const OrtValue* const*)&x, 1, outputs, 2, results);
    if (status == NULL) CHECK(floats(results[0])[5] == 20 && floats(results[1])[17] == 20);
    for (int k = 0; k < 2; k++) api()->ReleaseValue(results[k]);
    api()->ReleaseValue(x);
  }
  api()->ReleaseSession(session);
  return status;
}

/* Runs alone: every allocation of a first and of a later one fails, and the next run is right. */
static void test_every_allocation_of_a_run_fails_in_turn(void) {
  const char* const name = "x";
  const char* const outputs[] = {"y", "seen"};
  reset();
  control->claims[0] = in_body;
  CHECK_OK(live());
  OrtValue* x = new_floats(2, two_by_three);
  for (int64_t n = 0;; n++) {
    OrtSession* session = new_session("loop", 1, "");
    OrtValue* results[2] = {NULL, NULL};
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = api()->Run(session, NULL, &name, (const OrtValue* const*)&x, 1, outputs, 2, results);
    ortabi_fail_allocation(-1);
    bool is_last = ortabi_allocation_count() - before <= n;
    check_at(__FILE__, __LINE__, (status == NULL) == is_last, "allocation %lld", (long long)n);
    api()->ReleaseStatus(status);
    for (int k = 0; k < 2; k++) api()->ReleaseValue(results[k]);
    check_run(session, loop_result);
    api()->ReleaseSession(session);
    if (!is_last) continue;
    CHECK(n > 20);
    break;
  }
  api()->ReleaseValue(x);
}

/* ---- Wrong calls ---- */

static int releases;

static void ORT_API_CALL loop_release(OrtLoopKernelHelper* helper) {
  (void)helper;
  releases++;
}

static void ORT_API_CALL scan_release(OrtScanKernelHelper* helper) {
  (void)helper;
  releases++;
}

static OrtStatus* ORT_API_CALL loop_concat(OrtLoopKernelHelper* helper, void* stream,
                                           const OrtValue* const* values, size_t count, void* output,
                                           size_t size) {
  (void)helper, (void)stream, (void)values, (void)count, (void)output, (void)size;
  return NULL;
}

static OrtStatus* ORT_API_CALL scan_transpose(OrtScanKernelHelper* helper, const size_t* permutation,
                                              size_t count, const OrtValue* input, OrtSyncStream* stream,
                                              OrtValue* output) {
  (void)helper, (void)permutation, (void)count, (void)input, (void)stream, (void)output;
  return NULL;
}

static void check_refused(OrtStatus* status, const OrtKernelImpl* kernel, const char* part) {
  CHECK(status != NULL && kernel == NULL);
  check_message(status, part);
  api()->ReleaseStatus(status);
}

/* The node is no If, Loop or Scan. What is refused stays its owner's. */
static OrtStatus* ask_for_kernels(const OrtKernelInfo* info) {
  const OrtEpApi* ep_api = api()->GetEpApi();
  OrtKernelImpl* kernel = NULL;
  OrtLoopKernelHelper loop = {ORT_API_VERSION, loop_release, loop_concat};
  OrtScanKernelHelper scan = {ORT_API_VERSION, scan_release, scan_transpose};
  check_refused(ep_api->CreateIfKernel(info, &kernel), kernel, "has no subgraph 'else_branch'");
  check_refused(ep_api->CreateLoopKernel(info, &loop, &kernel), kernel, "has no subgraph 'body'");
  check_refused(ep_api->CreateScanKernel(info, &scan, &kernel), kernel, "has no subgraph 'body'");
  check_refused(ep_api->CreateIfKernel(NULL, &kernel), kernel, "'kernel_info' is NULL");
  check_refused(ep_api->CreateLoopKernel(info, NULL, &kernel), kernel, "'helper' is NULL");
  check_refused(ep_api->CreateScanKernel(info, NULL, &kernel), kernel, "'helper' is NULL");
  check_refused(ep_api->CreateIfKernel(info, NULL), kernel, "'kernel_out' is NULL");
  loop.ConcatOutput = NULL;
  scan.Transpose = NULL;
  check_refused(ep_api->CreateLoopKernel(info, &loop, &kernel), kernel, "(OrtLoopKernelHelper: Release");
  check_refused(ep_api->CreateScanKernel(info, &scan, &kernel), kernel, "(OrtScanKernelHelper: Release");
  loop = (OrtLoopKernelHelper){23, loop_release, loop_concat};
  scan = (OrtScanKernelHelper){ORT_API_VERSION, NULL, scan_transpose};
  check_refused(ep_api->CreateLoopKernel(info, &loop, &kernel), kernel, "is 23, below 24");
  check_refused(ep_api->CreateScanKernel(info, &scan, &kernel), kernel, "required slot NULL");
  ep_api->ReleaseKernelImpl(NULL);
  CHECK(releases == 0);
  return NULL;
}

static void test_wrong_calls_are_refused(void) {
  reset();
  control->claims[0] = "single add";
  control->on_kernel_info = ask_for_kernels;
  api()->ReleaseSession(new_session("chain", 1, ""));
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return 1;
  RUN(test_each_iteration_fails_in_turn);
  RUN(test_fused_nodes_in_a_body);
  RUN(test_ep_device_of_an_input_of_bodies);
  RUN(test_every_allocation_of_a_run_fails_in_turn);
  RUN(test_wrong_calls_are_refused);
  return close_env();
}
