/* Graph capture: a run on device memory is recorded by the EP and replayed without its kernels. */
#include "sessions.h"

#define CHAIN  "Mul x w2 a; Add a x b; Relu b y"
#define ALL    "graph_capture=all"
#define SHAPES "graph_capture=shapes"

static Device device;
static OrtSession* session;
static OrtValue *x, *y; /* of the device */
static OrtRunOptions* options;

static void start(const char* model, const char* policy) {
  open_env();
  device = plug("virtual");
  session = open_session(model, (Use[]){{&device, policy}}, 1);
  x = tensor_on(&device, COUNT);
  y = tensor_on(&device, COUNT);
  CHECK_OK(api()->CreateRunOptions(&options));
}

static void stop(void) {
  api()->ReleaseRunOptions(options);
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
  api()->ReleaseSession(session);
  session = NULL;
  CHECK(device.control->live_chunks == 0 && device.control->live_objects == 3);
  unplug(&device);
  close_env();
}

static void use_graph(const char* id) {
  CHECK_OK(api()->AddRunConfigEntry(options, "gpu_graph_id", id));
}

static OrtStatus* run(const OrtValue* input, OrtValue** output) {
  const char *input_name = "x", *output_name = "y";
  return api()->Run(session, options, &input_name, &input, 1, &output_name, 1, output);
}

/* Fills x, runs, and looks at y. */
static bool run_on(float first) {
  OrtValue *source = host_tensor(COUNT, first), *back = host_tensor(COUNT, -1);
  CHECK_OK(copy(source, x, NULL));
  bool is_right = CHECK_OK(run(x, &y)) && CHECK_OK(copy(y, back, NULL)) && is_output(CHAIN, "y", first, back);
  api()->ReleaseValue(source);
  api()->ReleaseValue(back);
  return is_right;
}

static uint64_t replays(void) {
  return device.control->replays;
}

/* One Run warms up and captures; later ones only replay, with what x holds then. */
static void test_capture_and_replay(void) {
  start(CHAIN, ALL);
  Counts was = counts_of(&device);
  CHECK(run_on(1));
  Counts now = counts_of(&device);
  CHECK(now.run_starts - was.run_starts == 2); /* warmed up, captured */
  CHECK(now.launches - was.launches == 3);
  CHECK(device.control->captures == 1 && replays() == 0);
  for (int i = 0; i < 5; i++) {
    was = counts_of(&device);
    CHECK(run_on((float)(i - 2)));
    now = counts_of(&device);
    CHECK(now.launches == was.launches && now.run_starts == was.run_starts && now.run_ends == was.run_ends);
    CHECK(replays() == (uint64_t)i + 1);
  }
  stop();
}

/* Other sessions' work does not get the memory that the graph works in. */
static void test_a_graphs_memory_is_its_own(void) {
  start(CHAIN, ALL);
  CHECK(run_on(1));
  OrtSession* other = session_on(&device, CHAIN);
  for (int i = 0; i < 5; i++) {
    CHECK_RUN(other, CHAIN, (float)i);
    CHECK(run_on((float)i + 0.5f));
  }
  api()->ReleaseSession(other);
  CHECK(run_on(7));
  stop();
}

static void test_graphs_have_numbers(void) {
  start(CHAIN, ALL);
  use_graph("3");
  CHECK(run_on(1) && device.control->captures == 1);
  use_graph("8");
  CHECK(run_on(2) && device.control->captures == 2);
  use_graph("3");
  CHECK(run_on(3) && replays() == 1);
  use_graph("-1"); /* an ordinary run */
  uint64_t launches = device.control->launches;
  CHECK(run_on(4) && device.control->launches == launches + 3 && device.control->captures == 2);
  use_graph("8");
  CHECK(run_on(5) && replays() == 2);
  use_graph("eight");
  CHECK_FAILS(run(x, &y), ORT_INVALID_ARGUMENT, "gpu_graph_id");
  stop();
}

static void test_releasing_a_graph(void) {
  start(CHAIN, ALL);
  CHECK_FAILS(api()->SessionReleaseCapturedGraph(session, 0), ORT_INVALID_ARGUMENT, "no graph 0");
  CHECK(run_on(1));
  Alive was = alive_on(&device);
  CHECK_OK(api()->SessionReleaseCapturedGraph(session, 0));
  CHECK(alive_on(&device).objects < was.objects && alive_on(&device).chunks < was.chunks);
  CHECK_FAILS(api()->SessionReleaseCapturedGraph(session, 0), ORT_INVALID_ARGUMENT, "no graph 0");
  CHECK(run_on(2) && device.control->captures == 2 && replays() == 0); /* captured anew */
  fail_next(&device, "ReleaseCapturedGraph");
  CHECK_FAILS(api()->SessionReleaseCapturedGraph(session, 0), ORT_EP_FAIL,
              "OrtEp::ReleaseCapturedGraph failed");
  CHECK(run_on(3) && replays() == 1);
  stop();

  open_env();
  device = plug("virtual");
  session = session_on(&device, CHAIN);
  CHECK_OK(api()->SessionReleaseCapturedGraph(session, 0)); /* as in stock: there is nothing to release */
  CHECK_FAILS(api()->SessionReleaseCapturedGraph(NULL, 0), ORT_INVALID_ARGUMENT, "session");
  api()->ReleaseSession(session);
  unplug(&device);
  close_env();
}

/* A graph works on the addresses that it was captured with. */
static void test_other_values_than_the_captured_ones(void) {
  start(CHAIN, ALL);
  OrtValue *other = tensor_on(&device, COUNT), *host = host_tensor(COUNT, 1), *none = NULL;
  CHECK_FAILS(run(host, &y), ORT_INVALID_ARGUMENT, "input 'x'");
  CHECK_FAILS(run(x, &none), ORT_INVALID_ARGUMENT, "output 'y'");
  CHECK_FAILS(run(x, &host), ORT_INVALID_ARGUMENT, "output 'y'");
  CHECK(device.control->launches == 0);
  CHECK(run_on(1));
  CHECK_FAILS(run(other, &y), ORT_INVALID_ARGUMENT, "input 'x'");
  CHECK_FAILS(run(x, &other), ORT_INVALID_ARGUMENT, "output 'y'");
  CHECK_FAILS(run(host, &y), ORT_INVALID_ARGUMENT, "input 'x'");
  CHECK(replays() == 0);
  use_graph("1");
  CHECK_OK(run(x, &other));
  use_graph("-1");
  CHECK_OK(run(host, &none)); /* anything goes without a graph */
  CHECK(is_output(CHAIN, "y", 1, none));
  api()->ReleaseValue(none);
  api()->ReleaseValue(other);
  api()->ReleaseValue(host);
  stop();
}

static void test_failures(void) {
  start(CHAIN, ALL);
  fail_next(&device, "Compute");
  CHECK_FAILS(run(x, &y), ORT_EP_FAIL, "Compute was asked to fail");
  device.control->failing_after = 3; /* in the run that is recorded: no graph comes of it */
  fail_next(&device, "Compute");
  use_graph("1");
  CHECK_FAILS(run(x, &y), ORT_EP_FAIL, "Compute was asked to fail");
  CHECK(device.control->captures == 0);
  CHECK(run_on(1) && device.control->captures == 1);
  fail_next(&device, "ReplayGraph");
  CHECK_FAILS(run(x, &y), ORT_EP_FAIL, "OrtEp::ReplayGraph failed: ReplayGraph was asked to fail");
  CHECK(run_on(2) && replays() == 1);
  stop();
}

/* The EP ends a graph in OnRunEnd, which does not tell it that the run failed. */
static void test_a_failed_run_leaves_no_graph(void) {
  start(CHAIN, ALL);
  device.control->failing_after = 1;
  fail_next(&device, "Flush");
  CHECK_FAILS(run(x, &y), ORT_EP_FAIL, "Flush was asked to fail");
  CHECK(device.control->captures == 1);
  CHECK(run_on(1) && replays() == 0); /* captured anew */
  CHECK(run_on(2) && replays() == 1);
  stop();
}

static void test_a_terminated_run_replays_nothing(void) {
  start(CHAIN, ALL);
  CHECK(run_on(1));
  CHECK_OK(api()->RunOptionsSetTerminate(options));
  CHECK_FAILS(run(x, &y), ORT_FAIL, "terminate flag");
  CHECK(replays() == 0);
  CHECK_OK(api()->RunOptionsUnsetTerminate(options));
  CHECK(run_on(2));
  stop();
}

static void test_out_of_memory_in_creation(void) {
  Message bytes = write_model(CHAIN);
  open_env();
  device = plug("virtual");
  Alive was = alive_on(&device);
  OrtSessionOptions* session_with = session_options((Use[]){{&device, ALL}}, 1);
  for (int64_t n = 0, injected = 1; injected; n++) {
    session = NULL;
    int64_t count = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = api()->CreateSessionFromArray(env, bytes.bytes, bytes.size, session_with, &session);
    ortabi_fail_allocation(-1);
    injected = ortabi_allocation_count() - count > n;
    CHECK((status == NULL) == (session != NULL) && (injected || status == NULL));
    api()->ReleaseStatus(status);
    api()->ReleaseSession(session);
    CHECK_ALIVE(&device, was);
  }
  api()->ReleaseSessionOptions(session_with);
  unplug(&device);
  close_env();
}

static void test_out_of_memory_in_runs(void) {
  for (int64_t n = 0, injected = 1; injected; n++) {
    start(CHAIN, ALL);
    int64_t count = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = run(x, &y);
    ortabi_fail_allocation(-1);
    injected = ortabi_allocation_count() - count > n;
    CHECK((status != NULL) == (injected != 0));
    api()->ReleaseStatus(status);
    CHECK(run_on((float)n));
    stop();
  }
}

/* ---- Which models can be captured ---- */

static void check_refused(const char* model, const char* policy, const char* part) {
  OrtSession* none = NULL;
  open_env();
  device = plug("virtual");
  CHECK_FAILS(try_session(model, (Use[]){{&device, policy}}, 1, &none), ORT_FAIL, part);
  CHECK(none == NULL && device.control->live_objects == 3);
  unplug(&device);
  close_env();
}

static void test_models_that_cannot_be_captured(void) {
  check_refused("Sigmoid w2 y2; Mul x w2 y", ALL, "'y2' (Sigmoid");
  check_refused("Mul x w2 a; Sigmoid a b; Add b w3 y", ALL, "'b' (Sigmoid");
  check_refused("Mul x w2 a; Sigmoid a b; Add b w3 y", SHAPES, "'a'"); /* a is copied */
  check_refused("Sigmoid w2 a; Mul x a y", SHAPES, "'a'");
}

/* Nodes on the CPU that exchange nothing with the device; a replay leaves out what they do. */
static void test_cpu_nodes_beside_the_graph(void) {
  static const char* const names[] = {"y2", "y"};
  const char* input = "x";
  start("Sigmoid w2 y2; Mul x w2 y", SHAPES);
  OrtValue *source = host_tensor(COUNT, 3), *host = NULL;
  CHECK_OK(api()->CreateTensorAsOrtValue(cpu_allocator(), NULL, 0, FLOAT, &host));
  CHECK_OK(copy(source, x, NULL));
  for (int i = 0; i < 3; i++) {
    OrtValue* outputs[] = {host, y};
    CHECK_OK(api()->Run(session, options, &input, (const OrtValue* const*)&x, 1, names, 2, outputs));
    CHECK(replays() == (uint64_t)i);
    CHECK(is_close(*data_of(host), 1 / (1 + expf(-2))));
  }
  api()->ReleaseValue(host);
  api()->ReleaseValue(source);
  stop();
}

/* With the option off, an EP that could capture is asked for nothing. */
static void test_without_the_option(void) {
  start(CHAIN, NULL);
  for (int i = 0; i < 3; i++) CHECK(run_on((float)i));
  CHECK(device.control->captures == 0 && replays() == 0 && device.control->launches == 9);
  stop();
}

/* The further place of an output that is asked for twice gets its copy behind every replay. */
static void test_an_output_in_two_places(void) {
  start(CHAIN, ALL);
  OrtSyncStream* stream = NULL;
  const char *input = "x", *outputs[] = {"y", "y", "y"};
  for (int i = 0; i < 4; i++) {
    OrtValue *source = host_tensor(COUNT, (float)i), *back = host_tensor(COUNT, -1);
    OrtValue* values[] = {y, NULL, host_tensor(COUNT, -1)};
    if (i == 2) { /* work may go on there when the EP's call returns */
      CHECK_OK(api()->CreateSyncStreamForEpDevice(device.ep_device, NULL, &stream));
      api()->RunOptionsSetSyncStream(options, stream);
    }
    CHECK_OK(copy(source, x, NULL));
    CHECK_OK(api()->Run(session, options, &input, (const OrtValue* const*)&x, 1, outputs, 3, values));
    CHECK(values[0] == y && values[1] != NULL && values[1] != y);
    CHECK_OK(copy(y, back, NULL));
    CHECK(is_output(CHAIN, "y", (float)i, back) && is_output(CHAIN, "y", (float)i, values[1]) &&
          is_output(CHAIN, "y", (float)i, values[2]));
    api()->ReleaseValue(values[1]);
    api()->ReleaseValue(values[2]);
    api()->ReleaseValue(source);
    api()->ReleaseValue(back);
  }
  CHECK(device.control->captures == 1 && replays() == 3);
  api()->RunOptionsSetSyncStream(options, NULL);
  api()->ReleaseSyncStream(stream);
  stop();
}

int main(void) {
  RUN(test_capture_and_replay);
  RUN(test_a_graphs_memory_is_its_own);
  RUN(test_graphs_have_numbers);
  RUN(test_releasing_a_graph);
  RUN(test_other_values_than_the_captured_ones);
  RUN(test_failures);
  RUN(test_a_failed_run_leaves_no_graph);
  RUN(test_a_terminated_run_replays_nothing);
  RUN(test_out_of_memory_in_creation);
  RUN(test_out_of_memory_in_runs);
  RUN(test_models_that_cannot_be_captured);
  RUN(test_cpu_nodes_beside_the_graph);
  RUN(test_without_the_option);
  RUN(test_an_output_in_two_places);
  return finish();
}
