/* The EP that a session asks last: found when nodes are left, never before, never twice. */
#include "run_test.h"

static const float chain_result[] = {0, 2, 6, 12, 20, 30}; /* relu((x + 1) * x) */

typedef struct Last {
  const OrtEpDevice* device;
  OrtErrorCode fails_with; /* ORT_OK: it does not */
  int calls;
} Last;

static OrtStatus* ORT_API_CALL find(void* state, const OrtEpDevice** device) {
  Last* last = state;
  last->calls++;
  if (last->fails_with != ORT_OK) return api()->CreateStatus(last->fails_with, "no way to find it");
  *device = last->device;
  return NULL;
}

/* A session of the model "chain" on RunEp, with `last` behind it. */
static OrtStatus* open_chain(Last* last, OrtSession** out) {
  char path[512];
  OrtSessionOptions *options = new_options(1, NO_FALLBACK), *copy = NULL;
  snprintf(path, sizeof path, "%s/chain.onnx", models);
  CHECK_OK(ortabi_session_options_set_last_ep(options, find, last));
  CHECK_OK(api()->CloneSessionOptions(options, &copy)); /* copies have it too */
  api()->ReleaseSessionOptions(options);
  *out = NULL;
  OrtStatus* status = api()->CreateSession(env, path, copy, out);
  api()->ReleaseSessionOptions(copy);
  return status;
}

static void check_fails(Last* last, OrtErrorCode code, const char* words) {
  OrtSession* session = NULL;
  OrtStatus* status = open_chain(last, &session);
  CHECK(session == NULL);
  CHECK_FAILS(status, code, words);
}

static void test_it_takes_what_is_left(void) {
  reset();
  Last last = {.device = ep_devices[1]};
  control->claims[0] = "fuse mul";
  control->claims[1] = "fuse add;single relu";
  OrtSession* session = NULL;
  if (!CHECK_OK(open_chain(&last, &session))) return;
  CHECK(last.calls == 1 && control->eps == 2);
  CHECK_TEXT(ortabi_session_ep_name(session, 0), "RunEp");
  CHECK_TEXT(ortabi_session_ep_name(session, 1), "OtherEp");
  CHECK(ortabi_session_ep_name(session, 2) == NULL);
  check_run(session, chain_result);
  api()->ReleaseSession(session);
}

static void test_it_is_not_looked_for_without_need(void) {
  reset();
  Last last = {.device = ep_devices[1]};
  control->claims[0] = "fuse add mul relu";
  OrtSession* session = NULL;
  if (!CHECK_OK(open_chain(&last, &session))) return;
  CHECK(last.calls == 0 && control->eps == 1);
  check_run(session, chain_result);
  api()->ReleaseSession(session);
}

static void test_nodes_that_it_leaves_are_nobodys(void) {
  reset();
  control->claims[0] = "fuse mul";
  control->claims[1] = "single relu";
  Last last = {.device = ep_devices[1]}, nothing = {.device = NULL}, same = {.device = ep_devices[0]};
  check_fails(&last, ORT_FAIL, "Asked: 'RunEp', 'OtherEp'. Nobody's:\n  'add'");
  check_fails(&nothing, ORT_FAIL, "Asked: 'RunEp'. Nobody's:\n  'add'");
  check_fails(&same, ORT_FAIL, "Asked: 'RunEp'. Nobody's:\n  'add'");
  CHECK(last.calls == 1 && nothing.calls == 1 && same.calls == 1);
}

static void test_its_failures_are_the_sessions(void) {
  reset();
  control->claims[0] = "fuse mul";
  Last last = {.fails_with = ORT_NOT_FOUND};
  check_fails(&last, ORT_NOT_FOUND, "no way to find it");
}

/* Each callback of the two EPs fails in turn. */
static void test_what_fails_leaves_nothing(void) {
  bool is_done = false;
  int failures = 0;
  for (long at = 0; !is_done; at++) {
    reset();
    Last last = {.device = ep_devices[1]};
    OrtSession* session = NULL;
    control->claims[0] = "fuse mul";
    control->claims[1] = "fuse add;single relu";
    control->fail_at = at;
    OrtStatus* status = open_chain(&last, &session);
    is_done = status == NULL;
    CHECK(is_done == (session != NULL));
    if (!is_done) failures++;
    api()->ReleaseStatus(status);
    api()->ReleaseSession(session);
  }
  CHECK(failures >= 6); /* CreateEp, GetCapability, Compile of both */
}

static void test_arguments(void) {
  OrtSessionOptions* options = new_options(0, "");
  CHECK_FAILS(ortabi_session_options_set_last_ep(NULL, find, NULL), ORT_INVALID_ARGUMENT, "options");
  CHECK_FAILS(ortabi_session_options_set_last_ep(options, NULL, NULL), ORT_INVALID_ARGUMENT, "find");
  api()->ReleaseSessionOptions(options);
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return finish();
  RUN(test_it_takes_what_is_left);
  RUN(test_it_is_not_looked_for_without_need);
  RUN(test_nodes_that_it_leaves_are_nobodys);
  RUN(test_its_failures_are_the_sessions);
  RUN(test_what_fails_leaves_nothing);
  RUN(test_arguments);
  return close_env();
}
