/* Which EP gets which node: claims, what is refused, names, what a session says about it. */
#include "run_test.h"

static const float chain_result[] = {0, 2, 6, 12, 20, 30}; /* relu((x + 1) * x) */
static const float diamond_result[] = {0, 2, 4, 6, 8, 10}; /* 2 * relu(x) */
static const float pairs_result[] = {0, 4, 8, 12, 16, 20};

/* Which EP runs each step, and how many nodes: "RunEp:2 OtherEp:1". */
static const char* plan_of(const OrtSession* session) {
  static char text[512];
  text[0] = '\0';
  for (size_t i = 0; i < ortabi_session_step_count(session); i++) {
    OrtAbiPlanStep step;
    CHECK_OK(ortabi_session_step(session, i, &step));
    sprintf(text + strlen(text), "%s%s:%zu", i == 0 ? "" : " ", step.ep_name, step.original_nodes);
  }
  return text;
}

static void check_claims(const char* model, const char* first, const char* second, const char* plan,
                         const float* expected) {
  control->claims[0] = first;
  control->claims[1] = second;
  OrtSession* session = new_session(model, 2, NO_FALLBACK);
  if (session == NULL) return;
  CHECK_TEXT(plan_of(session), plan);
  check_run(session, expected);
  api()->ReleaseSession(session);
}

static void test_kernels_run_single_nodes(void) {
  reset();
  check_claims("chain", "single add;single mul;single relu", "", "RunEp:1 RunEp:1 RunEp:1", chain_result);
  CHECK(control->kernels == 0 && control->compile_calls == 0);
}

static void test_kernels_in_place_leave_alone_what_others_read(void) {
  reset();
  check_claims("pairs", "single a1;single b1;single a2;single b2;single probe", "",
               "RunEp:1 RunEp:1 RunEp:1 RunEp:1 RunEp:1", pairs_result);
}

static void test_groups_are_fused_and_compiled_in_one_call(void) {
  reset();
  check_claims("chain", "fuse add;fuse mul relu", "", "RunEp:1 RunEp:2", chain_result);
  CHECK(control->compile_calls == 1 && control->last_input_count == 2);
  CHECK(strncmp(control->last_fused_name, "RunEp_", 6) == 0);
  CHECK(strcmp(control->last_state_name, control->last_fused_name) == 0);
}

static void test_constants_are_inputs_unless_dropped(void) {
  reset();
  check_claims("chain", "fuse add mul relu", "", "RunEp:3", chain_result);
  CHECK(control->last_input_count == 2);
  check_claims("chain", "drop add mul relu", "", "RunEp:3", chain_result);
  CHECK(control->last_input_count == 1);
}

static void test_nodes_may_be_claimed_in_any_order(void) {
  reset();
  check_claims("chain", "fuse relu add mul", "", "RunEp:3", chain_result);
}

static void test_two_models_have_two_fused_names(void) {
  char first[sizeof control->last_fused_name];
  reset();
  check_claims("chain", "fuse add mul relu", "", "RunEp:3", chain_result);
  snprintf(first, sizeof first, "%s", control->last_fused_name);
  check_claims("diamond", "fuse first middle last", "", "RunEp:3", diamond_result);
  CHECK(strcmp(first, control->last_fused_name) != 0);
}

static void test_eps_share_a_model_in_the_users_order(void) {
  reset();
  check_claims("chain", "fuse mul", "fuse add;single relu", "OtherEp:1 RunEp:1 OtherEp:1", chain_result);
}

static void test_a_later_ep_sees_what_is_taken(void) {
  reset();
  check_claims("pairs", "single probe", "fuse a1 b1 a2 b2", "OtherEp:4 RunEp:1", pairs_result);
  CHECK(strcmp(control->seen_ep_name, "RunEp") == 0);
  check_claims("pairs", "fuse a1 b1 a2 b2", "single probe", "RunEp:4 OtherEp:1", pairs_result);
  CHECK(strcmp(control->seen_ep_name, "") == 0);
}

static void test_a_claim_on_a_node_of_another_ep_is_refused_whole(void) {
  reset();
  check_claims("chain", "single relu", "fuse mul relu;fuse add mul", "OtherEp:2 RunEp:1", chain_result);
  CHECK(strstr(logged,
               "EP 'OtherEp': its claim on 'mul' (Mul, ai.onnx, version 14), 'relu' (Relu, ai.onnx, "
               "version 14) is refused: EP 'RunEp' has 'relu' already") != NULL);
}

static void test_faulty_claims_are_refused_and_others_stand(void) {
  reset();
  check_claims("chain", "twice add;fuse add mul;single mul;single relu", "", "RunEp:2 RunEp:1", chain_result);
  CHECK(strstr(logged, "its claim on 'add' (Add, ai.onnx, version 14), 'add' (Add") != NULL);
  CHECK(strstr(logged, "it lists a node twice") != NULL);
  CHECK(strstr(logged, "on 'mul' (Mul, ai.onnx, version 14) is refused: the EP has claimed") != NULL);
}

static void test_null_and_empty_claims_are_errors_for_the_ep(void) {
  reset();
  check_claims("chain", "null;empty;fuse add mul relu", "", "RunEp:3", chain_result);
  CHECK(control->refusals == 2);
}

static void test_a_foreign_node_is_refused(void) {
  reset();
  control->claims[0] =
      "foreign choice;fuse choice"; /* branches are asked about first: a node of one is foreign */
  OrtSession* session = NULL;
  CHECK_OK(create_session("if", 1, NO_FALLBACK, &session));
  CHECK(strstr(logged, "a node is not of the graph that the EP was asked about") != NULL);
  api()->ReleaseSession(session);
}

static void test_a_cycle_through_an_unclaimed_node_is_refused(void) {
  reset();
  check_claims("diamond", "fuse first last", "single first;single middle;single last",
               "OtherEp:1 OtherEp:1 OtherEp:1", diamond_result);
  CHECK(strstr(logged, "EP 'RunEp': its claim on 'first' (Relu, ai.onnx, version 14), 'last' (Add") != NULL);
  CHECK(strstr(logged, "wait for each other") != NULL);
}

static void test_a_claim_that_cannot_be_fused_costs_all_of_the_ep(void) {
  reset();
  check_claims("diamond", "single middle;fuse first last", "single first;single middle;single last",
               "OtherEp:1 OtherEp:1 OtherEp:1", diamond_result);
  CHECK(strstr(logged, "none of its claims on this graph stands") != NULL);
}

static void test_a_cycle_between_two_groups_costs_the_newer_one(void) {
  reset();
  check_claims("pairs", "fuse a1 a2;fuse b1 b2;single probe", "single b1;single b2",
               "OtherEp:1 RunEp:2 OtherEp:1 RunEp:1", pairs_result);
  CHECK(strstr(logged, "its claim on 'b1'") != NULL && strstr(logged, "its claim on 'a1'") == NULL);
}

static void test_a_claim_inside_a_fused_node_is_void(void) {
  reset();
  control->claims[0] = "single in_then;fuse in_else;fuse choice";
  OrtSession* session = new_session("if", 1, NO_FALLBACK);
  if (session == NULL) return;
  CHECK_TEXT(plan_of(session), "RunEp:1");
  CHECK(control->last_input_count == 2); /* c, and x that the branches capture */
  api()->ReleaseSession(session);
}

static void test_kernels_with_subgraphs_are_refused(void) {
  OrtSession* session = NULL;
  reset();
  control->claims[0] = "single in_then;single in_else;single choice";
  CHECK_FAILS(create_session("if", 1, NO_FALLBACK, &session), ORT_NOT_IMPLEMENTED,
              "node 'choice' (If, ai.onnx");
}

static void test_unclaimed_nodes_are_all_listed(void) {
  OrtSession* session = NULL;
  reset();
  control->claims[1] = "single mul";
  OrtStatus* status = create_session("chain", 2, NO_FALLBACK, &session);
  if (!CHECK(status != NULL)) return;
  const char* message = api()->GetErrorMessage(status);
  CHECK(strstr(message, "takes 2 nodes of the model (session.disable_cpu_ep_fallback is 1") != NULL);
  CHECK(strstr(message, "Asked: 'RunEp', 'OtherEp'.") != NULL);
  const char* add =
      strstr(message, "\n  'add' (Add, ai.onnx, version 14)\n    EP 'RunEp' has a kernel for it");
  const char* relu = strstr(message, "\n  'relu' (Relu, ai.onnx, version 14)\n    EP 'RunEp' has a kernel");
  CHECK(add != NULL && relu > add);
  CHECK(strstr(message, "'mul'") == NULL);
  api()->ReleaseStatus(status);
}

static void test_an_epcontext_node_names_its_source(void) {
  OrtSession* session = NULL;
  reset();
  CHECK_FAILS(
      create_session("context", 1, "", &session), ORT_NOT_IMPLEMENTED,
      "Asked: 'RunEp', 'CPUExecutionProvider'. Nobody's:\n  'compiled' (EPContext, com.microsoft, version 1) "
      "compiled by EP 'AcmeEp'");
}

static void test_the_cpu_ep_is_last_unless_it_is_off(void) {
  reset();
  control->claims[0] = "fuse mul";
  OrtSession* session = new_session("chain", 1, "");
  if (session == NULL) return;
  CHECK_TEXT(plan_of(session), "CPUExecutionProvider:1 RunEp:1 CPUExecutionProvider:1");
  check_run(session, chain_result);
  api()->ReleaseSession(session);
}

static void test_the_cpu_ep_can_be_given_but_not_with_fallback_off(void) {
  const OrtEpDevice* const* devices = NULL;
  size_t count = 0;
  char path[512];
  OrtSession* session = NULL;
  reset();
  CHECK_OK(api()->GetEpDevices(env, &devices, &count));
  OrtSessionOptions* options = new_options(0, "");
  CHECK_OK(api()->SessionOptionsAppendExecutionProvider_V2(options, env, &devices[0], 1, NULL, NULL, 0));
  snprintf(path, sizeof path, "%s/chain.onnx", models);
  CHECK_OK(api()->CreateSession(env, path, options, &session));
  CHECK_TEXT(plan_of(session), "CPUExecutionProvider:1 CPUExecutionProvider:1 CPUExecutionProvider:1");
  api()->ReleaseSession(session);
  CHECK_OK(api()->AddSessionConfigEntry(options, "session.disable_cpu_ep_fallback", "1"));
  CHECK_FAILS(api()->CreateSession(env, path, options, &session), ORT_INVALID_ARGUMENT,
              "the CPU EP was added");
  api()->ReleaseSessionOptions(options);
}

static void test_assignment_is_told_when_it_was_asked_for(void) {
  const OrtEpAssignedSubgraph* const* subgraphs = NULL;
  const OrtEpAssignedNode* const* nodes = NULL;
  const char *ep_name = NULL, *name = NULL, *domain = NULL, *op_type = NULL;
  size_t count = 0, node_count = 0;
  reset();
  control->claims[0] = "fuse add mul;single relu";
  OrtSession* session = new_session("chain", 1, NO_FALLBACK);
  CHECK_FAILS(api()->Session_GetEpGraphAssignmentInfo(session, &subgraphs, &count), ORT_FAIL,
              "session.record_ep_graph_assignment_info");
  api()->ReleaseSession(session);
  session = new_session("chain", 1, NO_FALLBACK " session.record_ep_graph_assignment_info=1");
  CHECK_OK(api()->Session_GetEpGraphAssignmentInfo(session, &subgraphs, &count));
  if (CHECK(count == 2)) {
    CHECK_OK(api()->EpAssignedSubgraph_GetEpName(subgraphs[0], &ep_name));
    CHECK_TEXT(ep_name, "RunEp");
    CHECK_OK(api()->EpAssignedSubgraph_GetNodes(subgraphs[0], &nodes, &node_count));
    CHECK(node_count == 2);
    CHECK_OK(api()->EpAssignedNode_GetName(nodes[1], &name));
    CHECK_TEXT(name, "mul");
    CHECK_OK(api()->EpAssignedNode_GetDomain(nodes[1], &domain));
    CHECK_TEXT(domain, "");
    CHECK_OK(api()->EpAssignedNode_GetOperatorType(nodes[1], &op_type));
    CHECK_TEXT(op_type, "Mul");
  }
  api()->ReleaseSession(session);
}

static void test_an_ep_is_given_once(void) {
  OrtSession* session = NULL;
  char path[512];
  reset();
  OrtSessionOptions* options = new_options(1, "");
  OrtStatus* status =
      api()->SessionOptionsAppendExecutionProvider_V2(options, env, &ep_devices[0], 1, NULL, NULL, 0);
  snprintf(path, sizeof path, "%s/chain.onnx", models);
  if (status == NULL) status = api()->CreateSession(env, path, options, &session);
  CHECK_FAILS(status, ORT_FAIL, "Provider RunEp has already been registered");
  api()->ReleaseSessionOptions(options);
}

static void test_a_library_in_use_stays(void) {
  reset();
  control->claims[0] = "fuse add mul relu";
  OrtSession* session = new_session("chain", 1, NO_FALLBACK);
  OrtStatus* status = api()->UnregisterExecutionProviderLibrary(env, "run");
  CHECK(status != NULL);
  api()->ReleaseStatus(status);
  check_run(session, chain_result);
  api()->ReleaseSession(session);
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return finish();
  RUN(test_kernels_run_single_nodes);
  RUN(test_kernels_in_place_leave_alone_what_others_read);
  RUN(test_groups_are_fused_and_compiled_in_one_call);
  RUN(test_constants_are_inputs_unless_dropped);
  RUN(test_nodes_may_be_claimed_in_any_order);
  RUN(test_two_models_have_two_fused_names);
  RUN(test_eps_share_a_model_in_the_users_order);
  RUN(test_a_later_ep_sees_what_is_taken);
  RUN(test_a_claim_on_a_node_of_another_ep_is_refused_whole);
  RUN(test_faulty_claims_are_refused_and_others_stand);
  RUN(test_null_and_empty_claims_are_errors_for_the_ep);
  RUN(test_a_foreign_node_is_refused);
  RUN(test_a_cycle_through_an_unclaimed_node_is_refused);
  RUN(test_a_claim_that_cannot_be_fused_costs_all_of_the_ep);
  RUN(test_a_cycle_between_two_groups_costs_the_newer_one);
  RUN(test_a_claim_inside_a_fused_node_is_void);
  RUN(test_kernels_with_subgraphs_are_refused);
  RUN(test_unclaimed_nodes_are_all_listed);
  RUN(test_an_epcontext_node_names_its_source);
  RUN(test_the_cpu_ep_is_last_unless_it_is_off);
  RUN(test_the_cpu_ep_can_be_given_but_not_with_fallback_off);
  RUN(test_assignment_is_told_when_it_was_asked_for);
  RUN(test_an_ep_is_given_once);
  RUN(test_a_library_in_use_stays);
  return close_env();
}
