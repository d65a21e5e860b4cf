/* Sessions over devices: results, and the exact number of copies, waits, notifications and launches. */
#include "sessions.h"

#define CHAIN "Mul x w2 a; Add a x b; Relu b y"
#define THREE "Mul x w2 a; Sigmoid a b; Add b w3 y"
#define TWO   "Mul x w2 a; Add a w3 b; Mul b w4 y"

static void test_one_device(void) {
  open_env();
  Device device = plug("virtual");
  Counts was = counts_of(&device);
  OrtSession* session = session_on(&device, CHAIN);
  CHECK(device.control->read_only_allocations == 1);
  CHECK(counts_of(&device).to_device - was.to_device == 1); /* w2, once and for all */
  for (int run = 0; run < 3; run++) {
    uint64_t allocations = device.control->stream_allocations;
    was = counts_of(&device);
    CHECK_RUN(session, CHAIN, (float)(run - 2));
    CHECK_DID(&device, was, .to_device = 1, .to_host = 1, .with_stream = 2, .launches = 3, .run_starts = 1,
              .run_ends = 1, .flushes = 1, .streams = run == 0);
    CHECK(run > 0 || device.control->stream_allocations > allocations);
  }
  CHECK(device.control->read_only_allocations == 1);
  api()->ReleaseSession(session);
  CHECK(device.control->live_chunks == 0);
  unplug(&device);
  close_env();
}

/* Device -> CPU -> device: one wait, where the CPU reads what the device wrote. */
static void test_split_three_ways(void) {
  open_env();
  Device device = plug("virtual");
  OrtSession* session = session_on(&device, THREE);
  CHECK(device.control->read_only_allocations == 2);
  for (int run = 0; run < 3; run++) {
    Counts was = counts_of(&device);
    CHECK_RUN(session, THREE, (float)run / 4);
    CHECK_DID(&device, was, .to_device = 2, .to_host = 2, .with_stream = 4, .waits_on_host = 1,
              .notifications = 1, .activations = 1, .launches = 2, .run_starts = 1, .run_ends = 1,
              .flushes = 1, .streams = run == 0);
  }
  api()->ReleaseSession(session);
  CHECK(device.control->live_chunks == 0);
  unplug(&device);
  close_env();
}

/* Device -> other device -> device, each time through the host. */
static void test_two_devices(void) {
  open_env();
  Device one = plug("virtual"), two = plug("other");
  OrtSession* session = open_session(TWO, (Use[]){{&one, "ops=Mul"}, {&two, "ops=Add"}}, 2);
  CHECK(one.control->read_only_allocations == 2 && two.control->read_only_allocations == 1);
  for (int run = 0; run < 3; run++) {
    Counts was_one = counts_of(&one), was_two = counts_of(&two);
    CHECK_RUN(session, TWO, (float)run);
    /* x and b go in, a and y come out */
    CHECK_DID(&one, was_one, .to_device = 2, .to_host = 2, .with_stream = 4, .waits_on_host = 1,
              .notifications = 1, .activations = 1, .launches = 2, .run_starts = 1, .run_ends = 1,
              .flushes = 1, .streams = run == 0);
    CHECK_DID(&two, was_two, .to_device = 1, .to_host = 1, .with_stream = 2, .waits_on_host = 1,
              .notifications = 1, .activations = 1, .launches = 1, .run_starts = 1, .run_ends = 1,
              .flushes = 1, .streams = run == 0);
  }
  api()->ReleaseSession(session);
  CHECK(one.control->live_chunks == 0 && two.control->live_chunks == 0);
  unplug(&one);
  unplug(&two);
  close_env();
}

/* A value with several readers elsewhere is copied there once; an initializer goes where it is read. */
static void test_one_copy_per_value_and_device(void) {
  static const char model[] =
      "Mul x w2 a; Neg a b; Sigmoid a c; Add b c d; Add d a y1; Neg a y2; Add x w2 y3";
  open_env();
  Device device = plug("virtual");
  OrtSession* session = session_on(&device, model);
  CHECK(device.control->read_only_allocations == 1);
  for (int run = 0; run < 2; run++) {
    Counts was = counts_of(&device);
    CHECK_RUN(session, model, (float)run);
    Counts now = counts_of(&device);
    CHECK(now.to_device - was.to_device == 3);         /* x, b, c */
    CHECK(now.to_host - was.to_host == 3);             /* a, y1, y3 */
    CHECK(now.waits_on_host - was.waits_on_host == 1); /* for a; Sigmoid and Neg read the same copy */
    CHECK(now.launches - was.launches == 4);
  }
  api()->ReleaseSession(session);
  unplug(&device);
  close_env();
}

/* An initializer that the CPU and the device read is in both memories. */
static void test_an_initializer_on_both_sides(void) {
  static const char model[] = "Mul x w2 a; Sigmoid a b; Sigmoid w2 c; Add b c y";
  open_env();
  Device device = plug("virtual");
  OrtSession* session = session_on(&device, model);
  Counts was = counts_of(&device);
  CHECK_RUN(session, model, 0.5f);
  Counts now = counts_of(&device);
  CHECK(now.to_device - was.to_device == 3 && now.to_host - was.to_host == 2); /* x b c, a y */
  api()->ReleaseSession(session);
  unplug(&device);
  close_env();
}

/* The caller gets a copy of its own. */
static void test_outputs_that_are_read_too(void) {
  static const char model[] = "Mul x w2 y1; Add y1 x y2; Sigmoid y2 y3";
  open_env();
  Device device = plug("virtual");
  OrtSession* session = session_on(&device, model);
  for (int run = 0; run < 2; run++) CHECK_RUN(session, model, (float)run);
  Counts was = counts_of(&device);
  CHECK_RUN(session, model, 5);
  Counts now = counts_of(&device);
  CHECK(now.to_host - was.to_host == 3 && now.to_device - was.to_device == 1); /* y1, y2 and for y3; x */
  CHECK(now.waits_on_host - was.waits_on_host == 1);
  api()->ReleaseSession(session);
  unplug(&device);
  close_env();
}

/* A session on the CPU alone asks nothing of a device that is registered beside it. */
static void test_a_device_without_nodes_is_left_alone(void) {
  static const char model[] = "Sigmoid x y";
  open_env();
  Device device = plug("virtual");
  OrtSession* session = session_on(&device, model);
  Counts was = counts_of(&device);
  CHECK_RUN(session, model, 0);
  CHECK_DID(&device, was, .run_starts = 1);
  api()->ReleaseSession(session);
  unplug(&device);
  close_env();
}

/* Work on a stream may read host memory long after the call: a and c stay what they are until then. */
static void test_host_memory_is_kept_for_streams(void) {
  static const char model[] =
      "Sigmoid x a; Add a w3 b; Neg a c; Mul c b d; Neg c e; Add e d f; Sigmoid e g; Mul f g y1; Neg g y2";
  open_env();
  Device device = plug("virtual");
  OrtSession* session = session_on(&device, model);
  device.control->reads_late = 1;
  device.control->max_delay_us = 500;
  for (int run = 0; run < 20; run++) CHECK_RUN(session, model, (float)run / 8);
  api()->ReleaseSession(session);
  unplug(&device);
  close_env();
}

int main(void) {
  RUN(test_one_device);
  RUN(test_split_three_ways);
  RUN(test_two_devices);
  RUN(test_one_copy_per_value_and_device);
  RUN(test_an_initializer_on_both_sides);
  RUN(test_outputs_that_are_read_too);
  RUN(test_a_device_without_nodes_is_left_alone);
  RUN(test_host_memory_is_kept_for_streams);
  return finish();
}
