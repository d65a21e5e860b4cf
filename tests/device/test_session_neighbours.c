/* Two EPs of different libraries on one device: values stay where they are, and each EP sees only streams of
 * its own. (Their kernels, copies and allocators refuse others.) */
#include "kernels_control.h"
#include "sessions.h"

#define MODEL "Relu x a; Neg a b; Relu b c; Neg c y"

static KernelsControl *kernels, *neighbours;

static KernelsControl* plug_in(const char* name) {
  char path[512];
  if (!CHECK_OK(try_plug(name))) exit(1);
  library_path(name, path, sizeof path);
  return find_control(path, "kernel_device_control");
}

/* Registers the two, with streams or without. */
static OrtSession* start_with(const char* model, const char* first, const char* second) {
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  OrtSession* session = NULL;
  OrtSessionOptions* options = NULL;
  Message bytes = write_model(model);
  open_env();
  kernels = plug_in(first);
  neighbours = plug_in(second);
  CHECK_OK(api()->GetEpDevices(env, &all, &count));
  CHECK(count == 3);
  CHECK_OK(api()->CreateSessionOptions(&options));
  for (size_t i = 1; i < count; i++)
    CHECK_OK(api()->SessionOptionsAppendExecutionProvider_V2(options, env, &all[i], 1, NULL, NULL, 0));
  if (!CHECK_OK(api()->CreateSessionFromArray(env, bytes.bytes, bytes.size, options, &session))) exit(1);
  api()->ReleaseSessionOptions(options);
  return session;
}

static OrtSession* start(const char* first, const char* second) {
  return start_with(MODEL, first, second);
}

static void stop(OrtSession* session, const char* first, const char* second) {
  api()->ReleaseSession(session);
  CHECK(kernels->live_blocks == 0 && neighbours->live_blocks == 0);
  CHECK(kernels->live_notifications == 0 && neighbours->live_notifications == 0);
  CHECK_OK(api()->UnregisterExecutionProviderLibrary(env, second));
  CHECK_OK(api()->UnregisterExecutionProviderLibrary(env, first));
  close_env();
}

static void check_runs(OrtSession* session) {
  for (int run = 0; run < 3; run++) CHECK_RUN(session, MODEL, (float)run - 1);
  CHECK(kernels->kernels_run == 6 && neighbours->kernels_run == 6);
  CHECK(kernels->copies_to_device == 3 && neighbours->copies_to_device == 0);
  CHECK(kernels->copies_to_host + neighbours->copies_to_host == 3);
}

static void test_each_has_a_stream_of_its_own(void) {
  OrtSession* session = start("kernels.streams", "neighbours.streams");
  check_runs(session);
  CHECK(neighbours->copies_to_host == 3); /* by the EP whose stream made it */
  CHECK(kernels->copies_with_stream == 3 && neighbours->copies_with_stream == 3);
  CHECK(kernels->waits_on_host == 2 * 3 && neighbours->waits_on_host == 3); /* a and c; b */
  CHECK(kernels->waits_on_device == 0 && neighbours->waits_on_device == 0);
  /* The device's allocator is that of the first library, which does not know the other's streams. */
  CHECK(kernels->stream_allocations > 0 && neighbours->stream_allocations == 0);
  stop(session, "kernels.streams", "neighbours.streams");
}

static void test_only_the_first_has_streams(void) {
  OrtSession* session = start("kernels.streams", "neighbours");
  check_runs(session);
  CHECK(kernels->copies_with_stream == 3 && neighbours->copies_with_stream == 0);
  CHECK(kernels->waits_on_host == 2 * 3 && neighbours->waits_on_host == 0);
  stop(session, "kernels.streams", "neighbours");
}

static void test_only_the_second_has_streams(void) {
  OrtSession* session = start("kernels", "neighbours.streams");
  check_runs(session);
  CHECK(kernels->copies_with_stream == 0 && neighbours->copies_with_stream == 3);
  CHECK(kernels->waits_on_host == 0 && neighbours->waits_on_host == 3);
  CHECK(kernels->stream_allocations == 0 && neighbours->stream_allocations == 0);
  stop(session, "kernels", "neighbours.streams");
}

/* Copies go through who can, without a stream that it does not know. */
static void test_only_the_first_can_copy(void) {
  static const char* const models[] = {MODEL, "Relu x a; Neg a b; Sigmoid b c; Neg c y"};
  for (size_t i = 0; i < 2; i++) {
    OrtSession* session = start_with(models[i], "kernels.streams", "neighbours.no-copies");
    CHECK_RUN(session, models[i], 1);
    CHECK(kernels->copies_to_device == 1 + i && kernels->copies_to_host == 1 + i);
    CHECK(kernels->copies_with_stream == 1); /* of x */
    stop(session, "kernels.streams", "neighbours.no-copies");
  }
}

/* ---- Values and streams of the caller's ---- */

static OrtSyncStream* stream_of_device(size_t index) {
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  OrtSyncStream* stream = NULL;
  CHECK_OK(api()->GetEpDevices(env, &all, &count));
  CHECK_OK(api()->CreateSyncStreamForEpDevice(all[index], NULL, &stream));
  return stream;
}

static OrtValue* tensor_there(float first) {
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  CHECK_OK(api()->GetEpDevices(env, &all, &count));
  const OrtMemoryInfo* memory = api()->EpDevice_MemoryInfo(all[1], OrtDeviceMemoryType_DEFAULT);
  OrtValue *here = host_tensor(COUNT, first), *there = tensor_from(shared_allocator(memory), COUNT);
  CHECK_OK(copy(here, there, NULL));
  api()->ReleaseValue(here);
  return there;
}

/* A run with everything on the device already. `stream` may be NULL. */
static void check_run_there(OrtSession* session, const char* model, OrtSyncStream* stream) {
  const char *x = "x", *y = "y";
  OrtRunOptions* options = NULL;
  OrtValue *input = tensor_there(1), *output = tensor_there(-1), *back = host_tensor(COUNT, -2);
  const OrtValue* inputs[] = {input};
  CHECK_OK(api()->CreateRunOptions(&options));
  api()->RunOptionsSetSyncStream(options, stream);
  uint64_t was = kernels->flushes;
  CHECK_OK(api()->Run(session, options, &x, inputs, 1, &y, 1, &output));
  CHECK(kernels->flushes - was == 1);
  CHECK_OK(copy(output, back, NULL));
  CHECK(is_output(model, "y", 1, back));
  api()->ReleaseRunOptions(options);
  api()->ReleaseValue(back);
  api()->ReleaseValue(output);
  api()->ReleaseValue(input);
}

/* The caller's stream is the second EP's: the first one keeps its own. */
static void test_the_callers_stream_is_its_eps(void) {
  OrtSession* session = start("kernels.streams", "neighbours.streams");
  OrtSyncStream* stream = stream_of_device(2);
  check_run_there(session, MODEL, stream);
  api()->ReleaseSyncStream(stream);
  stop(session, "kernels.streams", "neighbours.streams");
}

/* What it reads of the other's goes with the run. */
static void test_the_callers_stream_is_done_before_what_it_reads_goes(void) {
  OrtSession* session = start("kernels.streams", "neighbours.streams");
  OrtSyncStream* stream = stream_of_device(1);
  check_run_there(session, MODEL, stream);
  api()->ReleaseSyncStream(stream);
  stop(session, "kernels.streams", "neighbours.streams");
}

/* Host memory that the stream's work may still write to is the run's own. */
static void test_the_callers_stream_is_done_before_host_memory_goes(void) {
  static const char model[] = "Relu x y; Shape y s";
  OrtSession* session = start_with(model, "kernels.streams", "neighbours.streams");
  OrtSyncStream* stream = stream_of_device(1);
  check_run_there(session, model, stream);
  api()->ReleaseSyncStream(stream);
  stop(session, "kernels.streams", "neighbours.streams");
}

/* Each has work that the caller may have started. */
static void test_both_are_synchronised_before_device_inputs(void) {
  OrtSession* session = start("kernels.streams", "neighbours.streams");
  check_run_there(session, MODEL, NULL);
  CHECK(kernels->syncs == 1 && neighbours->syncs == 1);
  stop(session, "kernels.streams", "neighbours.streams");
}

/* The first EP's stream cannot copy the input to the host, the second one's can. */
static void test_an_input_on_the_device_that_the_host_reads(void) {
  static const char model[] = "Sigmoid x a; Neg a b; Relu b y";
  OrtSession* session = start_with(model, "neighbours.no-copies", "kernels.streams");
  const char *x = "x", *y = "y";
  OrtValue *input = tensor_there(1), *output = NULL;
  const OrtValue* inputs[] = {input};
  CHECK_OK(api()->Run(session, NULL, &x, inputs, 1, &y, 1, &output));
  CHECK(is_output(model, "y", 1, output));
  api()->ReleaseValue(output);
  api()->ReleaseValue(input);
  stop(session, "neighbours.no-copies", "kernels.streams");
}

/* Who copies does not know the stream: its work is waited for, and the copy is done in the call. */
static void test_a_copy_by_another_ep_than_the_streams(void) {
  OrtSession* session = start("kernels.streams", "neighbours.no-copies");
  OrtSyncStream* stream = stream_of_device(2);
  OrtValue *there = tensor_there(1), *back = host_tensor(COUNT, -1);
  uint64_t with_stream = kernels->copies_with_stream;
  CHECK_OK(copy(there, back, stream));
  CHECK(holds(back, COUNT, 1));
  CHECK(neighbours->flushes == 1 && kernels->copies_with_stream == with_stream);
  api()->ReleaseValue(there);
  api()->ReleaseValue(back);
  api()->ReleaseSyncStream(stream);
  stop(session, "kernels.streams", "neighbours.no-copies");
}

/* ---- Memory ---- */

/* Another reader's work may still go on: to wait for who made the input is not enough. */
static void test_memory_is_taken_over_on_one_stream_only(void) {
  static const char model[] = "Relu x a; Relu a b; Neg b c; Neg c y";
  OrtSession* session = start_with(model, "kernels.streams", "neighbours.streams");
  CHECK_RUN(session, model, 1);
  CHECK(kernels->in_place == 2 && neighbours->in_place == 1); /* a, b and y, but not c */
  stop(session, "kernels.streams", "neighbours.streams");
}

static void test_memory_is_not_taken_over_while_a_stream_reads_it(void) {
  static const char model[] = "Relu x a; Relu a b; Neg a y1; Neg b y2";
  OrtSession* session = start_with(model, "kernels.streams", "neighbours");
  CHECK_RUN(session, model, 1);
  CHECK(kernels->in_place == 1 && neighbours->in_place == 0);
  stop(session, "kernels.streams", "neighbours");
}

/* What one stream's work may still use, another's does not get: a is done with when y is made. */
static void test_memory_of_a_run_stays_with_its_stream(void) {
  static const char model[] = "Relu x a; Shape a s; Reshape a s b; Neg b y";
  OrtSession* session = start_with(model, "kernels.streams", "neighbours.streams");
  CHECK_RUN(session, model, 1);
  CHECK(kernels->kernels_run == 3 && neighbours->kernels_run == 1);
  CHECK(neighbours->second_hand == 0);
  stop(session, "kernels.streams", "neighbours.streams");
}

int main(void) {
  RUN(test_each_has_a_stream_of_its_own);
  RUN(test_only_the_first_has_streams);
  RUN(test_only_the_second_has_streams);
  RUN(test_only_the_first_can_copy);
  RUN(test_the_callers_stream_is_its_eps);
  RUN(test_the_callers_stream_is_done_before_what_it_reads_goes);
  RUN(test_the_callers_stream_is_done_before_host_memory_goes);
  RUN(test_both_are_synchronised_before_device_inputs);
  RUN(test_an_input_on_the_device_that_the_host_reads);
  RUN(test_a_copy_by_another_ep_than_the_streams);
  RUN(test_memory_is_taken_over_on_one_stream_only);
  RUN(test_memory_is_not_taken_over_while_a_stream_reads_it);
  RUN(test_memory_of_a_run_stays_with_its_stream);
  return finish();
}
