/* What fails, where, and that nothing of it is left behind: every callback in turn, every allocation in turn,
 * and plugins that break the rules. Leaks are found by the sanitizer and by the plugin's own counts. */
#include "run_test.h"

static const int64_t two_by_three[] = {2, 3};
static const float chain_result[] = {0, 2, 6, 12, 20, 30};
static const char* const mixed = "fuse add mul;single relu"; /* both kinds of work */

/* ---- Every callback, every allocation ---- */

/* Creates a session, runs it twice and releases it. `tell_model`: the one to use. */
static OrtStatus* live(const char* model) {
  OrtSession* session = NULL;
  OrtStatus* status = create_session(model, 1, NO_FALLBACK, &session);
  if (status != NULL) return status;
  OrtValue* x = new_floats(2, two_by_three);
  for (int i = 0; i < 2 && status == NULL; i++) {
    OrtValue* y = NULL;
    status = run1(session, "x", x, "y", &y);
    CHECK((status == NULL) == (y != NULL));
    if (status == NULL) CHECK(floats(y)[5] == chain_result[5]);
    api()->ReleaseValue(y);
  }
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
  return status;
}

static void test_every_callback_fails_in_turn(void) {
  for (long n = 0;; n++) {
    reset(); /* also checks that nothing of the plugin is alive */
    control->claims[0] = mixed;
    control->has_run_hooks = true;
    control->fail_at = n;
    OrtStatus* status = live("chain");
    if (control->callbacks <= n) {
      CHECK_OK(status);
      CHECK(n > 15); /* creation and two runs */
      return;
    }
    if (!CHECK(status != NULL)) return;
    const char* message = api()->GetErrorMessage(status);
    CHECK(api()->GetErrorCode(status) == ORT_EP_FAIL);
    CHECK(strstr(message, "EP 'RunEp'") != NULL && strstr(message, "injected into ") != NULL);
    CHECK(control->run_starts == control->run_ends);
    api()->ReleaseStatus(status);
  }
}

static void test_a_failing_run_leaves_the_session_usable(void) {
  reset();
  control->claims[0] = "single add;single mul;single relu";
  OrtSession* session = new_session("chain", 1, NO_FALLBACK);
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  for (int i = 0; i < 3; i++) {
    control->fail_at = control->callbacks + i;
    OrtStatus* status = run1(session, "x", x, "y", &y);
    static const char* const nodes[] = {"node 'add' (Add, ai.onnx, version 14) failed: injected",
                                        "node 'mul' (Mul, ai.onnx, version 14) failed: injected",
                                        "node 'relu' (Relu, ai.onnx, version 14) failed: injected"};
    CHECK_FAILS(status, ORT_EP_FAIL, nodes[i]);
    CHECK(y == NULL);
    check_run(session, chain_result);
  }
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

static void test_a_failing_fused_node_is_named(void) {
  reset();
  control->claims[0] = "fuse add mul relu";
  OrtSession* session = new_session("chain", 1, NO_FALLBACK);
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  control->fail_at = control->callbacks;
  CHECK_FAILS(run1(session, "x", x, "y", &y), ORT_EP_FAIL,
              "(3 nodes, the first is 'add', Add) failed: injected");
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

/* What a failed run left half done must not be there in the next one. */
static void test_a_failed_run_leaves_no_values(void) {
  const int64_t three_by_three[] = {3, 3};
  reset();
  control->claims[0] = "single one;single two;single three";
  OrtSession* session = new_session("rows", 1, NO_FALLBACK);
  OrtValue *small = new_floats(2, two_by_three), *large = new_floats(2, three_by_three), *y = NULL;
  control->fail_at = control->callbacks + 2;
  CHECK_FAILS(run1(session, "x", small, "y", &y), ORT_EP_FAIL, "node 'three'");
  CHECK_OK(run1(session, "x", large, "y", &y));
  CHECK(floats(y)[8] == 8);
  api()->ReleaseValue(y);
  api()->ReleaseValue(small);
  api()->ReleaseValue(large);
  api()->ReleaseSession(session);
}

static OrtStatus* live_on_chain(void) {
  OrtSession* session = NULL;
  OrtSessionOptions* options = NULL;
  OrtMemoryInfo* memory = NULL;
  OrtValue *x = NULL, *y = NULL;
  char path[512];
  float data[6] = {0, 1, 2, 3, 4, 5};
  const char *input = "x", *output = "y";
  snprintf(path, sizeof path, "%s/chain.onnx", models);
  OrtStatus* status = api()->CreateSessionOptions(&options);
  if (status == NULL)
    status = api()->SessionOptionsAppendExecutionProvider_V2(options, env, &ep_devices[0], 1, NULL, NULL, 0);
  if (status == NULL) status = api()->CreateSession(env, path, options, &session);
  if (status == NULL) status = api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory);
  if (status == NULL)
    status = api()->CreateTensorWithDataAsOrtValue(memory, data, sizeof data, two_by_three, 2, FLOAT, &x);
  if (status == NULL)
    status = api()->Run(session, NULL, &input, (const OrtValue* const*)&x, 1, &output, 1, &y);
  api()->ReleaseValue(y);
  api()->ReleaseValue(x);
  api()->ReleaseMemoryInfo(memory);
  api()->ReleaseSession(session);
  api()->ReleaseSessionOptions(options);
  return status;
}

static void test_every_allocation_fails_in_turn(void) {
  reset();
  control->claims[0] = mixed;
  control->has_run_hooks = true;
  CHECK_ALLOCATION_FAILURES(live_on_chain);
}

/* ---- Plugins that break the rules ---- */

static void check_creation_fails(RunFault fault, const char* claims, OrtErrorCode code, const char* part) {
  OrtSession* session = NULL;
  reset();
  control->claims[0] = claims;
  control->fault = fault;
  CHECK_FAILS(create_session("chain", 1, NO_FALLBACK, &session), code, part);
  CHECK(session == NULL);
}

static void test_an_ep_must_be_given(void) {
  check_creation_fails(FAULT_EP_IS_NULL, mixed, ORT_EP_FAIL,
                       "OrtEpFactory::CreateEp said OK and gave no OrtEp");
}

static void test_required_slots_must_be_there(void) {
  check_creation_fails(FAULT_NO_GET_NAME, mixed, ORT_INVALID_ARGUMENT, "OrtEp::GetName is NULL");
  check_creation_fails(FAULT_NO_COMPUTE, mixed, ORT_INVALID_ARGUMENT, "OrtNodeComputeInfo::Compute is NULL");
  check_creation_fails(FAULT_NO_KERNEL_COMPUTE, mixed, ORT_INVALID_ARGUMENT,
                       "OrtKernelImpl::Compute is NULL");
}

static void test_an_ep_must_have_a_name(void) {
  check_creation_fails(FAULT_NAME_IS_NULL, mixed, ORT_EP_FAIL, "EP 'RunEp': OrtEp::GetName gave no name");
}

static void test_an_ep_that_fuses_must_compile(void) {
  check_creation_fails(FAULT_NO_COMPILE, mixed, ORT_EP_FAIL,
                       "claimed nodes to fuse, but its OrtEp::Compile is NULL");
  check_creation_fails(FAULT_NO_RELEASE_INFOS, mixed, ORT_INVALID_ARGUMENT,
                       "OrtEp::ReleaseNodeComputeInfos is NULL");
}

static void test_compile_that_fails_half_way_is_cleaned_up(void) {
  check_creation_fails(FAULT_COMPILE_HALF, "fuse add;fuse mul;fuse relu", ORT_EP_FAIL,
                       "OrtEp::Compile of 3 fused nodes");
  CHECK(control->infos == 0 && control->compile_calls == 1);
}

static void test_compile_must_give_every_info(void) {
  check_creation_fails(FAULT_COMPILE_FORGETS, "fuse add;fuse mul relu", ORT_EP_FAIL,
                       "OrtEp::Compile said OK and gave no OrtNodeComputeInfo for 'RunEp_");
  CHECK(control->infos == 0);
}

static void test_a_kernel_must_be_given(void) {
  check_creation_fails(FAULT_KERNEL_IS_NULL, mixed, ORT_EP_FAIL,
                       "its kernel for node 'relu' (Relu, ai.onnx, version 14) could not be created: its "
                       "OrtKernelCreateFunc said OK and gave no OrtKernelImpl");
}

static void test_an_old_ep_is_not_asked_for_what_it_has_not(void) {
  OrtSession* session = NULL;
  reset();
  control->claims[0] = "fuse add mul relu";
  control->fault = FAULT_OLD_EP;
  CHECK_OK(create_session("chain", 1, NO_FALLBACK, &session));
  check_run(session, chain_result);
  api()->ReleaseSession(session);
  check_creation_fails(FAULT_OLD_EP, mixed, ORT_NOT_IMPLEMENTED,
                       "no kernel for it: it has no kernel registry");
}

static void check_run_fails(RunFault fault, const char* claims, OrtErrorCode code, const char* part) {
  reset();
  control->claims[0] = claims;
  OrtSession* session = new_session("chain", 1, NO_FALLBACK);
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  control->fault = fault;
  CHECK_FAILS(run1(session, "x", x, "y", &y), code, part);
  CHECK(y == NULL);
  control->fault = FAULT_NONE;
  check_run(session, chain_result);
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

/* As in stock ORT. */
static void test_a_missing_output_of_the_model_is_a_value_without_content(void) {
  reset();
  control->claims[0] = "fuse add mul relu";
  OrtSession* session = new_session("chain", 1, NO_FALLBACK);
  OrtValue *x = new_floats(2, two_by_three), *y = NULL;
  int has_content = 1;
  control->fault = FAULT_NO_OUTPUT;
  CHECK_OK(run1(session, "x", x, "y", &y));
  CHECK_OK(api()->HasValue(y, &has_content));
  CHECK(!has_content);
  api()->ReleaseValue(y);
  OrtValue* given = new_floats(2, two_by_three); /* the caller's value stays as it is */
  CHECK_OK(run1(session, "x", x, "y", &given));
  CHECK(floats(given)[5] == 5);
  control->fault = FAULT_NONE;
  check_run(session, chain_result);
  api()->ReleaseValue(given);
  api()->ReleaseValue(x);
  api()->ReleaseSession(session);
}

static void test_a_missing_output_that_is_read_is_an_error(void) {
  check_run_fails(FAULT_NO_OUTPUT, "single add;single mul;single relu", ORT_EP_FAIL,
                  "node 'add' (Add, ai.onnx, version 14) failed: it said OK and did not make its output 'a'");
}

static void test_a_status_that_says_ok_is_a_failure(void) {
  check_run_fails(FAULT_STATUS_SAYS_OK, "fuse add mul relu", ORT_FAIL, "all is well, really");
}

static void test_an_output_has_one_shape(void) {
  check_run_fails(FAULT_SHAPE_CHANGES, "single add;single mul;single relu", ORT_INVALID_ARGUMENT,
                  "makes its output 'a' with shape [3,3], but it is float[2,3]");
}

static void test_a_claimed_node_needs_a_kernel_of_its_type(void) {
  OrtSession* session = NULL;
  reset();
  control->claims[0] = "single add";
  CHECK_FAILS(
      create_session("integers", 1, NO_FALLBACK, &session), ORT_NOT_IMPLEMENTED,
      "EP 'RunEp' claimed node 'add' (Add, ai.onnx, version 14), but it has no kernel for it: it has kernels "
      "for Add that take tensor(float) for 'T', the model has tensor(int32)");
  control->claims[0] = "single first;single middle;single last";
  control->fault = FAULT_UNKNOWN_CONSTRAINT;
  CHECK_FAILS(create_session("diamond", 1, NO_FALLBACK, &session), ORT_NOT_IMPLEMENTED,
              "it has a kernel for Relu that constrains 'Q', which is no type parameter of the op");
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return finish();
  RUN(test_every_callback_fails_in_turn);
  RUN(test_a_failing_run_leaves_the_session_usable);
  RUN(test_a_failing_fused_node_is_named);
  RUN(test_a_failed_run_leaves_no_values);
  RUN(test_every_allocation_fails_in_turn);
  RUN(test_an_ep_must_be_given);
  RUN(test_required_slots_must_be_there);
  RUN(test_an_ep_must_have_a_name);
  RUN(test_an_ep_that_fuses_must_compile);
  RUN(test_compile_that_fails_half_way_is_cleaned_up);
  RUN(test_compile_must_give_every_info);
  RUN(test_a_kernel_must_be_given);
  RUN(test_an_old_ep_is_not_asked_for_what_it_has_not);
  RUN(test_a_missing_output_of_the_model_is_a_value_without_content);
  RUN(test_a_missing_output_that_is_read_is_an_error);
  RUN(test_a_status_that_says_ok_is_a_failure);
  RUN(test_an_output_has_one_shape);
  RUN(test_a_claimed_node_needs_a_kernel_of_its_type);
  return close_env();
}
