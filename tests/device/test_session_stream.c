/* The caller's own stream for a Run: used, left as it was, and given back on every path. */
#include "sessions.h"

#define CHAIN "Mul x w2 a; Add a x y"
#define LONG  "Mul x w2 a; Add a x b; Mul b a c; Add c b y"
#define THREE "Mul x w2 a; Sigmoid a b; Add b w3 y"

static Device device;
static OrtSession* session;
static OrtSyncStream* stream;
static OrtRunOptions* options;

static void start(const char* model) {
  open_env();
  device = plug("virtual");
  session = session_on(&device, model);
  stream = stream_on(&device);
  CHECK_OK(api()->CreateRunOptions(&options));
  api()->RunOptionsSetSyncStream(options, stream);
}

static void stop(void) {
  api()->ReleaseRunOptions(options);
  api()->ReleaseSyncStream(stream);
  api()->ReleaseSession(session);
  CHECK(device.control->live_chunks == 0);
  unplug(&device);
  close_env();
}

static OrtStatus* run(const OrtRunOptions* with, const OrtValue* x, OrtValue** y) {
  const char *input = "x", *output = "y";
  return api()->Run(session, with, &input, &x, 1, &output, 1, y);
}

/* Copy in, Run and copy out on one stream: nobody waits before the end. */
static void test_copies_and_a_run_are_ordered_by_their_stream(void) {
  start(CHAIN);
  OrtValue *x_there = tensor_on(&device, COUNT), *y_there = tensor_on(&device, COUNT);
  device.control->max_delay_us = 500;
  for (int i = 0; i < 50; i++) {
    OrtValue *x = host_tensor(COUNT, (float)i), *y = host_tensor(COUNT, -1);
    CHECK_OK(copy(x, x_there, stream));
    Counts was = counts_of(&device);
    CHECK_OK(run(options, x_there, &y_there));
    Counts now = counts_of(&device);
    CHECK(now.launches - was.launches == 2);
    CHECK(now.streams == was.streams && now.syncs == was.syncs && now.flushes == was.flushes);
    CHECK(now.waits_on_host == was.waits_on_host && now.to_host == was.to_host &&
          now.to_device == was.to_device);
    CHECK_OK(copy(y_there, y, stream));
    wait_for(stream);
    CHECK(is_output(CHAIN, "y", (float)i, y));
    api()->ReleaseValue(x);
    api()->ReleaseValue(y);
  }
  api()->ReleaseValue(x_there);
  api()->ReleaseValue(y_there);
  stop();
}

/* What the host gets is there when Run returns. */
static void test_results_on_the_host_are_waited_for(void) {
  start(THREE);
  device.control->max_delay_us = 2000;
  for (int i = 0; i < 5; i++) {
    bool is_right = false;
    Counts was = counts_of(&device);
    CHECK_OK(try_run(session, THREE, options, (float)i / 4, &is_right));
    CHECK(is_right);
    Counts now = counts_of(&device);
    CHECK(now.streams == was.streams && now.waits_on_host - was.waits_on_host == 1);
    CHECK(now.with_stream - was.with_stream == 4);
  }
  stop();
}

static void test_the_sessions_stream_is_back_afterwards(void) {
  start(THREE);
  Counts was = counts_of(&device);
  bool is_right = false;
  CHECK_OK(try_run(session, THREE, options, 0.5f, &is_right));
  CHECK(is_right && counts_of(&device).streams == was.streams);
  api()->ReleaseSyncStream(stream); /* a run that still used it would touch freed memory */
  api()->RunOptionsSetSyncStream(options, NULL);
  stream = NULL;
  CHECK_RUN(session, THREE, 1);
  CHECK(counts_of(&device).streams == was.streams + 1);
  CHECK_OK(try_run(session, THREE, options, 0.25f, &is_right));
  CHECK(is_right && counts_of(&device).streams == was.streams + 1);
  stop();
}

static void test_the_sessions_stream_is_back_after_each_failure(void) {
  static const char* const callbacks[] = {"OnRunStart", "CopyTensors", "Compute", "CreateNotification",
                                          "Activate",   "WaitOnHost",  "Flush",   "OnRunEnd"};
  for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++) {
    start(THREE);
    CHECK_RUN(session, THREE, 1);
    device.control->max_delay_us = 300;
    Counts before = counts_of(&device);
    bool is_right = false;
    char expected[64];
    snprintf(expected, sizeof expected, "%s was asked to fail", callbacks[i]);
    fail_next(&device, callbacks[i]);
    CHECK_FAILS(try_run(session, THREE, options, 1, &is_right), ORT_EP_FAIL, expected);
    CHECK(counts_of(&device).streams == before.streams);
    api()->ReleaseSyncStream(stream);
    stream = NULL;
    CHECK_RUN(session, THREE, 2);
    CHECK(counts_of(&device).streams == before.streams);
    api()->RunOptionsSetSyncStream(options, NULL);
    stop();
  }
}

/* A run does not wait for one on another stream, and so must not use its memory. */
static void check_runs_on_two_streams(void) {
  OrtSyncStream* streams[] = {stream, stream_on(&device)};
  OrtValue *xs[2], *ys[2];
  for (int i = 0; i < 2; i++) xs[i] = tensor_on(&device, COUNT), ys[i] = tensor_on(&device, COUNT);
  device.control->max_delay_us = 3000;
  for (int i = 0; i < 10; i++) {
    for (int k = 0; k < 2; k++) {
      OrtValue* x = host_tensor(COUNT, (float)(10 * i + k));
      CHECK_OK(copy(x, xs[k], streams[k]));
      api()->RunOptionsSetSyncStream(options, streams[k]);
      CHECK_OK(run(options, xs[k], &ys[k]));
      api()->ReleaseValue(x);
    }
    for (int k = 0; k < 2; k++) {
      OrtValue* y = host_tensor(COUNT, -1);
      CHECK_OK(copy(ys[k], y, streams[k]));
      wait_for(streams[k]);
      CHECK(is_output(LONG, "y", (float)(10 * i + k), y));
      api()->ReleaseValue(y);
    }
  }
  for (int i = 0; i < 2; i++) api()->ReleaseValue(xs[i]), api()->ReleaseValue(ys[i]);
  api()->ReleaseSyncStream(streams[1]);
}

static void test_runs_on_two_streams_do_not_share_memory(void) {
  start(LONG);
  check_runs_on_two_streams();
  stop();
}

/* What it frees at the end of a Run may be anybody's at once: that Run waits. */
static void test_an_allocator_that_knows_no_streams(void) {
  start(LONG);
  api()->ReleaseSession(session);
  device.control->has_plain_allocators = 1;
  session = session_on(&device, LONG);
  device.control->has_plain_allocators = 0;
  check_runs_on_two_streams();
  stop();
}

static void test_a_stream_of_another_device(void) {
  bool is_right = false;
  start(CHAIN);
  Device other = plug("other");
  OrtSyncStream* elsewhere = stream_on(&other);
  api()->RunOptionsSetSyncStream(options, elsewhere);
  CHECK_FAILS(try_run(session, CHAIN, options, 1, &is_right), ORT_INVALID_ARGUMENT, "stream");
  CHECK_RUN(session, CHAIN, 1);
  api()->RunOptionsSetSyncStream(options, stream);
  CHECK_OK(try_run(session, CHAIN, options, 1, &is_right));
  CHECK(is_right);
  api()->ReleaseSyncStream(elsewhere);
  unplug(&other);
  stop();
}

/* A caller who wants one output in host memory and in the device's. */
static void test_an_output_in_several_places(void) {
  start(CHAIN);
  device.control->max_delay_us = 500;
  for (int i = 0; i < 30; i++) {
    OrtValue *x = host_tensor(COUNT, (float)i), *there = tensor_on(&device, COUNT);
    OrtValue *back = host_tensor(COUNT, -1), *values[] = {there, NULL, host_tensor(COUNT, -1)};
    const char *input = "x", *outputs[] = {"y", "y", "y"};
    CHECK_OK(api()->Run(session, i % 2 ? options : NULL, &input, (const OrtValue* const*)&x, 1, outputs, 3,
                        values));
    CHECK(values[0] == there);
    CHECK_OK(copy(there, back, NULL));
    CHECK(is_output(CHAIN, "y", (float)i, back) && is_output(CHAIN, "y", (float)i, values[1]) &&
          is_output(CHAIN, "y", (float)i, values[2]));
    for (int k = 1; k < 3; k++) api()->ReleaseValue(values[k]);
    api()->ReleaseValue(back);
    api()->ReleaseValue(there);
    api()->ReleaseValue(x);
  }
  stop();
}

int main(void) {
  RUN(test_copies_and_a_run_are_ordered_by_their_stream);
  RUN(test_results_on_the_host_are_waited_for);
  RUN(test_the_sessions_stream_is_back_afterwards);
  RUN(test_the_sessions_stream_is_back_after_each_failure);
  RUN(test_runs_on_two_streams_do_not_share_memory);
  RUN(test_an_allocator_that_knows_no_streams);
  RUN(test_a_stream_of_another_device);
  RUN(test_an_output_in_several_places);
  return finish();
}
