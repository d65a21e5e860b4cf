/* Memory budgets: where an EP's claims end, and when it is asked. The models' weight w and output y have
 * 24 bytes each, which are estimated to need 36; the shapes of other values are not known, which counts as
 * nothing. What stock ORT gives, and its files, are in tests/python/ep/test_budgets.py. */
#include "run_test.h"

#define SETTING "session.resource_cuda_partitioning_settings"

static const float chain_result[] = {0, 2, 6, 12, 20, 30}; /* relu((x + 1) * x) */
static const float weight_result[] = {2, 3, 4, 5, 6, 7};   /* x + 1 + 1 */

/* How many nodes RunEp runs when it says that it has `budget` bytes (NULL: nothing); the CPU runs the others.
 * -1: there is no session. */
static int nodes_of_ep(const char* model, const char* claims, const uint64_t* budget, const char* setting) {
  int count = 0;
  reset();
  control->claims[0] = claims;
  control->budget = budget;
  OrtSession* session = new_session(model, 1, setting);
  if (session == NULL) return -1;
  for (size_t i = 0; i < ortabi_session_step_count(session); i++) {
    OrtAbiPlanStep step;
    CHECK_OK(ortabi_session_step(session, i, &step));
    if (strcmp(step.ep_name, "RunEp") == 0) count += (int)step.original_nodes;
  }
  check_run(session, strcmp(model, "chain") == 0 ? chain_result : weight_result);
  api()->ReleaseSession(session);
  return count;
}

/* The same with the EP's own number. */
static int nodes_within(const char* model, const char* claims, uint64_t budget) {
  return nodes_of_ep(model, claims, &budget, SETTING "=,");
}

/* add: w; mul: nothing; relu: y */
static void test_claims_end_where_the_memory_ends(void) {
  const char* claims = "single add;single mul;single relu";
  CHECK(nodes_within("chain", claims, 35) == 0);
  CHECK(nodes_within("chain", claims, 36) == 2);
  CHECK(nodes_within("chain", claims, 71) == 2);
  CHECK(nodes_within("chain", claims, 72) == 3);
  CHECK(nodes_within("chain", claims, UINT64_MAX) == 3);
}

/* Nothing behind the first claim that does not fit is looked at, even if it would fit. */
static void test_the_first_claim_that_does_not_fit_is_the_last(void) {
  CHECK(nodes_within("chain", "single add;single mul", 35) == 0);
  CHECK(strstr(logged, "claim on 'add' (Add, ai.onnx, version 14) is refused: there is no memory left"));
  CHECK(strstr(logged, "claim on 'mul' (Mul, ai.onnx, version 14) is refused: there is no memory left"));
}

static void test_a_fused_claim_fits_whole_or_not_at_all(void) {
  CHECK(nodes_within("chain", "fuse add mul relu", 71) == 0);
  CHECK(nodes_within("chain", "fuse add mul relu", 72) == 3);
}

static void test_a_weight_counts_once(void) {
  CHECK(nodes_within("weight", "single one;single two", 71) == 1);
  CHECK(nodes_within("weight", "single one;single two", 72) == 2);
}

static void test_the_users_limit_comes_first(void) {
  const char* claims = "single add;single mul;single relu";
  uint64_t nothing = 0, much = 1 << 20;
  CHECK(nodes_of_ep("chain", claims, &nothing, SETTING "=1,") == 3);
  CHECK(nodes_of_ep("chain", claims, &much, SETTING "=0,") == 0);
}

static void test_without_the_setting_nobody_is_asked(void) {
  uint64_t nothing = 0;
  CHECK(nodes_of_ep("chain", "single add;single mul;single relu", &nothing, "a=b") == 3);
  CHECK(nodes_of_ep("chain", "single add;single mul;single relu", NULL, SETTING "=,") == 3);
}

static void test_what_is_no_number_is_refused(void) {
  static const char* const settings[] = {
      "x,", "1", "-18446744073709551615,", "1.5,", "99999999999999999999,", "18446744073709551615,"};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    char config[128];
    OrtSession* session = NULL;
    snprintf(config, sizeof config, SETTING "=%s", settings[i]);
    reset();
    CHECK_FAILS(create_session("chain", 1, config, &session), ORT_INVALID_ARGUMENT, settings[i]);
  }
}

static void test_an_ep_that_cannot_say_fails_the_session(void) {
  OrtSession* session = NULL;
  reset();
  control->fail_at = 3; /* after CreateEp, GetKernelRegistry, IsConcurrentRunSupported */
  CHECK_FAILS(create_session("chain", 1, SETTING "=,", &session), ORT_EP_FAIL,
              "EP 'RunEp': OrtEp::GetAvailableResource failed");
}

/* A file as stock ORT writes it for the model `chain`. */
static void write_stats(const char* text) {
  char path[512];
  snprintf(path, sizeof path, "%s/stats.csv", models);
  FILE* file = fopen(path, "w");
  if (!CHECK(file != NULL)) return;
  fputs(text, file);
  fclose(file);
}

static void test_what_stock_recorded(void) {
  const char *claims = "single add;single mul;single relu", *setting = SETTING "=2,stats.csv";
  uint64_t nothing = 0;
  write_stats(
      "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations\n"
      "add_18309055926384131946,24,0,1000,0\nrelu_7054912489531833298,0,0,1024,1\n");
  CHECK(nodes_of_ep("chain", claims, &nothing, setting) == 2); /* mul: nothing; relu: one byte too much */
  CHECK(nodes_of_ep("chain", "fuse add mul relu", &nothing, setting) == 0);
  char path[512];
  snprintf(path, sizeof path, "%s/chain.onnx", models);
  OrtSessionOptions* options = new_options(1, setting);
  for (int64_t n = 0, injected = 1; injected; n++) {
    OrtSession* session = NULL;
    reset();
    control->claims[0] = claims;
    control->budget = &nothing;
    int64_t count = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = api()->CreateSession(env, path, options, &session);
    ortabi_fail_allocation(-1);
    injected = ortabi_allocation_count() - count > n;
    CHECK((status == NULL) == (session != NULL) && (injected || status == NULL));
    api()->ReleaseStatus(status);
    api()->ReleaseSession(session);
  }
  api()->ReleaseSessionOptions(options);
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return finish();
  RUN(test_claims_end_where_the_memory_ends);
  RUN(test_the_first_claim_that_does_not_fit_is_the_last);
  RUN(test_a_fused_claim_fits_whole_or_not_at_all);
  RUN(test_a_weight_counts_once);
  RUN(test_the_users_limit_comes_first);
  RUN(test_without_the_setting_nobody_is_asked);
  RUN(test_what_is_no_number_is_refused);
  RUN(test_what_stock_recorded);
  RUN(test_an_ep_that_cannot_say_fails_the_session);
  return close_env();
}
