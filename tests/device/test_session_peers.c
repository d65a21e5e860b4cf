/* Two devices of one library, an EP for each: their streams know each other, so the device waits and not the
 * host, and values go from one to the other without the host. */
#include "order.h"

/* Mul is the first device's, Add the second's. */
#define THERE_AND_BACK "Mul x w2 a; Add a w3 b; Mul b a y"
#define ASIDE          "Mul x w2 a; Add a w3 b; Mul x w4 c; Mul c w5 d; Mul d w6 e; Mul b e y"
#define DIAMOND        "Mul x w2 a; Add a w3 b; Add b a c; Mul c b y"

static Device first, second;

static OrtSession* start_with(const char* model, bool has_peer_copies) {
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  open_env();
  second = first = plug("pair");
  CHECK_OK(api()->GetEpDevices(env, &all, &count));
  first.ep_device = all[count - 2];
  first.memory = api()->EpDevice_MemoryInfo(first.ep_device, OrtDeviceMemoryType_DEFAULT);
  CHECK_TEXT(api()->EpDevice_EpName(second.ep_device), "VirtualDeviceExecutionProvider.1");
  first.control->has_no_peer_copies = !has_peer_copies;
  return open_session(model, (Use[]){{&first, "ops=Mul"}, {&second, "ops=Add"}}, 2);
}

static OrtSession* start(const char* model) {
  return start_with(model, true);
}

static void stop(OrtSession* session) {
  api()->ReleaseSession(session);
  CHECK(first.control->live_chunks == 0);
  unplug(&first);
  close_env();
}

/* The counters are the library's: both devices are in them. */
static void test_the_device_waits(void) {
  OrtSession* session = start(THERE_AND_BACK);
  CHECK_RUN(session, THERE_AND_BACK, 0);
  Counts was = counts_of(&first);
  CHECK_RUN(session, THERE_AND_BACK, 1);
  CHECK_DID(&first, was, .to_device = 1, .on_device = 2, .to_host = 1, .with_stream = 4, .launches = 3,
            .notifications = 2, .activations = 2, .waits_on_device = 2, .run_starts = 2, .run_ends = 2,
            .flushes = 2);
  stop(session);
}

/* `a` goes to the second device once, `b` comes back once. */
static void test_a_stream_waits_once_for_what_it_needs(void) {
  OrtSession* session = start(DIAMOND);
  Counts was = counts_of(&first);
  CHECK_RUN(session, DIAMOND, 1);
  CHECK(first.control->copies_on_device - was.on_device == 3); /* a there, c and b back */
  CHECK(first.control->waits_on_device - was.waits_on_device == 2);
  CHECK(first.control->waits_on_host == was.waits_on_host);
  stop(session);
}

static void test_streams_remember_the_wait(void) {
  OrtSession* session = start(THERE_AND_BACK);
  OrtSyncStream *a = stream_on(&first), *b = stream_on(&second);
  OrtRunOptions* options = NULL;
  CHECK_OK(api()->CreateRunOptions(&options));
  api()->RunOptionsSetSyncStream(options, a);
  bool is_right = false;
  CHECK_OK(try_run(session, THERE_AND_BACK, options, 1, &is_right));
  CHECK(is_right);
  CHECK(api()->GetEpApi()->SyncStream_GetSyncId(a) == 1); /* the session's own stream waited for it */
  CHECK(api()->GetEpApi()->SyncStream_GetSyncId(b) == 0);
  api()->ReleaseRunOptions(options);
  api()->ReleaseSyncStream(a);
  api()->ReleaseSyncStream(b);
  stop(session);
}

/* The first device goes on while the second one still reads `a`. */
static void test_what_another_stream_reads_is_kept(void) {
  OrtSession* session = start(ASIDE);
  first.control->max_delay_us = 100;
  check_many_runs(session, ASIDE);
  stop(session);
}

static void test_every_wait_is_needed(void) {
  OrtSession* session = start(THERE_AND_BACK);
  first.control->max_delay_us = 30;
  check_many_runs(session, THERE_AND_BACK);
  check_every_wait_is_needed(&first, session, THERE_AND_BACK, 2);
  stop(session);
}

/* On the way through host memory: a copy may read that as soon as it is called, so there the host waits. */
static void test_host_memory_is_there_before_it_is_read(void) {
  OrtSession* session = start_with(THERE_AND_BACK, false);
  Counts was = counts_of(&first);
  CHECK_RUN(session, THERE_AND_BACK, 1);
  CHECK_DID(&first, was, .to_device = 3, .to_host = 3, .with_stream = 6, .launches = 3, .notifications = 2,
            .activations = 2, .waits_on_host = 2, .run_starts = 2, .run_ends = 2, .flushes = 2, .streams = 2);
  first.control->max_delay_us = 30;
  check_many_runs(session, THERE_AND_BACK);
  check_every_wait_is_needed(&first, session, THERE_AND_BACK, 2);
  stop(session);
}

/* The caller's stream reads what another one made: it is done before that memory goes. */
static void test_a_callers_stream_among_others(void) {
  OrtSession* session = start(THERE_AND_BACK);
  OrtSyncStream* stream = stream_on(&first);
  OrtRunOptions* options = NULL;
  const char *input = "x", *output = "y";
  CHECK_OK(api()->CreateRunOptions(&options));
  api()->RunOptionsSetSyncStream(options, stream);
  OrtValue *x_there = tensor_on(&first, COUNT), *y_there = tensor_on(&first, COUNT);
  first.control->max_delay_us = 300;
  for (int i = 0; i < 50; i++) {
    OrtValue *x = host_tensor(COUNT, (float)i), *y = host_tensor(COUNT, -1);
    CHECK_OK(copy(x, x_there, stream));
    CHECK_OK(api()->Run(session, options, &input, (const OrtValue* const*)&x_there, 1, &output, 1, &y_there));
    CHECK_OK(copy(y_there, y, stream));
    wait_for(stream);
    CHECK(is_output(THERE_AND_BACK, "y", (float)i, y));
    api()->ReleaseValue(x);
    api()->ReleaseValue(y);
  }
  api()->ReleaseValue(x_there);
  api()->ReleaseValue(y_there);
  api()->ReleaseRunOptions(options);
  api()->ReleaseSyncStream(stream);
  stop(session);
}

static void test_a_failing_wait(void) {
  OrtSession* session = start(THERE_AND_BACK);
  bool is_right = false;
  CHECK_RUN(session, THERE_AND_BACK, 0);
  Alive was = alive_on(&first);
  strcpy(first.control->failing_callback, "WaitOnDevice");
  CHECK_FAILS(try_run(session, THERE_AND_BACK, NULL, 1, &is_right), ORT_EP_FAIL,
              "EP 'VirtualDeviceExecutionProvider.1': node 'MemcpyFromHost_a'");
  CHECK_RUN(session, THERE_AND_BACK, 2);
  CHECK_ALIVE(&first, was);
  stop(session);
}

/* A failed allocation is an error; nothing of the failed run or session is left, and the next run is right.
 */
static void test_out_of_memory(void) {
  OrtSession* session = start(DIAMOND);
  Message bytes = write_model(DIAMOND);
  OrtSessionOptions* options = session_options((Use[]){{&first, "ops=Mul"}, {&second, "ops=Add"}}, 2);
  api()->ReleaseSession(session);
  Alive was = alive_on(&first);
  bool injected = true;
  for (int64_t n = 0; injected; n++) {
    int64_t before = ortabi_allocation_count();
    session = NULL;
    ortabi_fail_allocation(n);
    OrtStatus* status = api()->CreateSessionFromArray(env, bytes.bytes, bytes.size, options, &session);
    ortabi_fail_allocation(-1);
    injected = ortabi_allocation_count() - before > n;
    CHECK((status == NULL) == (session != NULL) && (injected || status == NULL));
    api()->ReleaseStatus(status);
    api()->ReleaseSession(session);
    CHECK_ALIVE(&first, was);
  }
  OrtValue* x = host_tensor(COUNT, 1);
  injected = true;
  for (int64_t n = 0; injected; n++) {
    const char *input = "x", *output = "y";
    OrtValue* y = NULL;
    if (!CHECK_OK(api()->CreateSessionFromArray(env, bytes.bytes, bytes.size, options, &session))) break;
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = api()->Run(session, NULL, &input, (const OrtValue* const*)&x, 1, &output, 1, &y);
    ortabi_fail_allocation(-1);
    injected = ortabi_allocation_count() - before > n;
    CHECK((status == NULL) == (y != NULL) && injected == (status != NULL));
    api()->ReleaseStatus(status);
    api()->ReleaseValue(y);
    CHECK_RUN(session, DIAMOND, 2);
    api()->ReleaseSession(session);
    CHECK_ALIVE(&first, was);
  }
  api()->ReleaseValue(x);
  api()->ReleaseSessionOptions(options);
  stop(NULL);
}

int main(void) {
  RUN(test_the_device_waits);
  RUN(test_a_stream_waits_once_for_what_it_needs);
  RUN(test_streams_remember_the_wait);
  RUN(test_what_another_stream_reads_is_kept);
  RUN(test_every_wait_is_needed);
  RUN(test_host_memory_is_there_before_it_is_read);
  RUN(test_a_callers_stream_among_others);
  RUN(test_a_failing_wait);
  RUN(test_out_of_memory);
  return finish();
}
