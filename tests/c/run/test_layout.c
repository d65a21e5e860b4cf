/* EPs that want channels last: what becomes of the graph, and that results stay what they were. RunEp has
 * kernels for Conv and MaxPool only with channels last; the CPU EP has none for them, and runs the
 * Transposes. */
#include "run_test.h"

#define NHWC  "com.ms.internal.nhwc"
#define MODEL "conv_relu_conv"
#define NODES "single one;single two;single relu;single pool"

static void want_channels_last(void) {
  reset();
  control->has_layout = true;
  control->layout = OrtEpDataLayout_NHWC;
  control->claims[0] = NODES;
}

static size_t steps_of(const OrtSession* session, const char* op, const char* domain) {
  size_t count = 0;
  for (size_t i = 0; i < ortabi_session_step_count(session); i++) {
    OrtAbiPlanStep step;
    CHECK_OK(ortabi_session_step(session, i, &step));
    count += strcmp(step.op_type, op) == 0 && strcmp(step.domain, domain) == 0;
  }
  return count;
}

/* Runs the model on 0, 1, 2, ... and compares y with what the ONNX reference gave. */
static void check_result(OrtSession* session, const char* model) {
  const int64_t dims[] = {1, 2, 5, 4};
  float expected[256];
  char path[512];
  size_t size = 0;
  snprintf(path, sizeof path, "%s/%s.expected", models, model);
  FILE* file = fopen(path, "rb");
  if (!CHECK(file != NULL)) return;
  size_t count = fread(expected, sizeof *expected, sizeof expected / sizeof *expected, file);
  fclose(file);
  OrtValue *x = new_floats(4, dims), *y = NULL;
  if (CHECK_OK(run1(session, "x", x, "y", &y)) && CHECK_OK(api()->GetTensorSizeInBytes(y, &size)) &&
      CHECK(count != 0 && size == count * sizeof(float))) {
    for (size_t i = 0; i < count; i++)
      check_at(__FILE__, __LINE__, floats(y)[i] == expected[i], "%s: y[%zu] is %g, not %g", model, i,
               (double)floats(y)[i], (double)expected[i]);
  }
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
}

/* The model runs right, with so many converted nodes and Transposes. */
static void check_model(const char* model, size_t converted, size_t transposes) {
  want_channels_last();
  OrtSession* session = new_session(model, 1, "a=b");
  if (session == NULL) return;
  size_t found = steps_of(session, "Conv", NHWC) + steps_of(session, "MaxPool", NHWC);
  check_at(__FILE__, __LINE__, found == converted, "%s: %zu converted nodes", model, found);
  found = steps_of(session, "Transpose", "");
  check_at(__FILE__, __LINE__, found == transposes, "%s: %zu Transposes", model, found);
  CHECK(steps_of(session, "Conv", "") + steps_of(session, "MaxPool", "") == 0);
  check_result(session, model);
  api()->ReleaseSession(session);
}

static void test_a_node_stands_between_two_transposes(void) {
  check_model("conv", 1, 2);
}

static void test_transposes_that_meet_cancel(void) {
  check_model("conv_conv", 2, 2);
  check_model("pool_conv", 2, 2);
}

static void test_elementwise_nodes_do_not_keep_them_apart(void) {
  check_model("conv_relu_conv", 2, 2);
  check_model("conv_relu", 1, 2);
  check_model("residual", 2, 2);
}

static void test_two_readers_share_a_transpose(void) {
  check_model("twice", 2, 2);
}

/* Somebody else still needs the value with channels first. */
static void test_a_transpose_with_another_reader_stays(void) {
  check_model("read_twice", 2, 3);
}

/* Constants, lists of axes and Shape follow; the model's own Transpose is the one that is left out. */
static void test_transposes_move_through_what_can_do_without(void) {
  check_model("moved", 1, 1);
}

/* Nobody wants what the Shape makes, which alone reads what a converted node makes. */
static void test_a_node_without_an_output(void) {
  check_model("no_output", 2, 2);
}

/* The EP has no other kernels for the nodes of the branch: they were converted. */
static void test_nodes_of_a_subgraph_are_converted(void) {
  want_channels_last();
  OrtSession* session = new_session("if_conv", 1, "a=b");
  if (session == NULL) return;
  check_result(session, "if_conv");
  api()->ReleaseSession(session);
}

/* Relu's provider has seen it with channels first. */
static void test_nodes_of_another_ep_stay(void) {
  want_channels_last();
  control->claims[0] = "single relu";
  control->claims[1] = "single one;single two";
  OrtSession* session = new_session(MODEL, 2, "a=b");
  if (session == NULL) return;
  CHECK(steps_of(session, "Conv", NHWC) == 2 && steps_of(session, "Transpose", "") == 4);
  check_result(session, MODEL);
  api()->ReleaseSession(session);
}

/* Its providers read two Transposes that cancel: one of them becomes what the Conv makes, the other one an
 * Identity of that. */
static void test_names_that_another_ep_reads_stay(void) {
  want_channels_last();
  control->claims[0] = "single relu;single again";
  control->claims[1] = "single one";
  OrtSession* session = new_session("renamed", 2, "a=b");
  if (session == NULL) return;
  CHECK(steps_of(session, "Conv", NHWC) == 1 && steps_of(session, "Transpose", "") == 2);
  CHECK(steps_of(session, "Identity", "") == 1);
  check_result(session, "renamed");
  api()->ReleaseSession(session);
}

/* One that it asks for, and one that is moved. */
static void test_nodes_are_fused(void) {
  static const char* const wanted[] = {"Relu", NULL};
  for (size_t i = 0; i < 2; i++) {
    want_channels_last();
    control->claims[0] = "single one;single two;fuse relu";
    control->wanted_op = wanted[i];
    OrtSession* session = new_session(MODEL, 1, "a=b");
    if (session == NULL) continue;
    CHECK(steps_of(session, "Transpose", "") == 2 && control->compile_calls == 1);
    check_result(session, MODEL);
    api()->ReleaseSession(session);
  }
}

static void test_channels_first_changes_nothing(void) {
  OrtSession* session = NULL;
  want_channels_last();
  control->layout = OrtEpDataLayout_NCHW;
  CHECK_FAILS(create_session("conv", 1, "a=b", &session), ORT_NOT_IMPLEMENTED, "no kernel");
}

/* The EP has a kernel for converted nodes only: what it refuses stays as it is. */
static void test_an_ep_refuses_an_operator(void) {
  OrtSession* session = NULL;
  want_channels_last();
  control->refused_op = "MaxPool";
  CHECK_FAILS(create_session("pool_conv", 1, "a=b", &session), ORT_NOT_IMPLEMENTED, "'pool'");
}

/* Relu has no kernel in the internal domain: that it is asked for shows that it was converted. */
static void test_an_ep_asks_for_an_operator(void) {
  OrtSession* session = NULL;
  want_channels_last();
  control->wanted_op = "Relu";
  CHECK_FAILS(create_session(MODEL, 1, "a=b", &session), ORT_NOT_IMPLEMENTED, "Relu, " NHWC);
}

static void test_a_converted_node_must_be_claimed(void) {
  OrtSession* session = NULL;
  want_channels_last();
  control->claims_no_converted = true;
  CHECK_FAILS(create_session("conv", 1, "a=b", &session), ORT_FAIL, "node 'one' (Conv) was converted");
}

static void test_a_layout_that_is_none(void) {
  OrtSession* session = NULL;
  want_channels_last();
  control->layout = 2;
  CHECK_FAILS(create_session("conv", 1, "a=b", &session), ORT_EP_FAIL, "GetPreferredDataLayout gave 2");
}

/* Each callback of the EP fails in turn; the ones about layouts are among them. */
static void test_callbacks_fail(void) {
  bool preferred = false, convert = false;
  for (long n = 0;; n++) {
    OrtSession* session = NULL;
    want_channels_last();
    control->fail_at = n;
    OrtStatus* status = create_session(MODEL, 1, "a=b", &session);
    CHECK((status == NULL) == (session != NULL));
    if (status == NULL) {
      api()->ReleaseSession(session);
      break;
    }
    const char* message = api()->GetErrorMessage(status);
    CHECK(strstr(message, "injected into") != NULL);
    preferred = preferred || strstr(message, "OrtEp::GetPreferredDataLayout failed") != NULL;
    convert = convert || strstr(message, "OrtEp::ShouldConvertDataLayoutForOp for 'Conv' failed") != NULL;
    api()->ReleaseStatus(status);
  }
  CHECK(preferred && convert);
}

static void check_allocations(const char* model) {
  for (int64_t n = 0;; n++) {
    OrtSession* session = NULL;
    char path[512];
    want_channels_last();
    OrtSessionOptions* options = new_options(1, "a=b");
    snprintf(path, sizeof path, "%s/%s.onnx", models, model);
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = api()->CreateSession(env, path, options, &session);
    bool injected = ortabi_allocation_count() - before > n;
    ortabi_fail_allocation(-1);
    api()->ReleaseSessionOptions(options);
    CHECK((status == NULL) == (session != NULL));
    CHECK(injected || status == NULL);
    api()->ReleaseStatus(status);
    if (session != NULL) check_result(session, model);
    api()->ReleaseSession(session);
    if (!injected) return;
  }
}

static void test_allocations_fail(void) {
  check_allocations(MODEL);
  check_allocations("moved");
  check_allocations("renamed");
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return finish();
  RUN(test_a_node_stands_between_two_transposes);
  RUN(test_transposes_that_meet_cancel);
  RUN(test_elementwise_nodes_do_not_keep_them_apart);
  RUN(test_two_readers_share_a_transpose);
  RUN(test_a_transpose_with_another_reader_stays);
  RUN(test_transposes_move_through_what_can_do_without);
  RUN(test_a_node_without_an_output);
  RUN(test_nodes_of_a_subgraph_are_converted);
  RUN(test_nodes_of_another_ep_stay);
  RUN(test_names_that_another_ep_reads_stay);
  RUN(test_nodes_are_fused);
  RUN(test_channels_first_changes_nothing);
  RUN(test_an_ep_refuses_an_operator);
  RUN(test_an_ep_asks_for_an_operator);
  RUN(test_a_converted_node_must_be_claimed);
  RUN(test_a_layout_that_is_none);
  RUN(test_callbacks_fail);
  RUN(test_allocations_fail);
  return close_env();
}
