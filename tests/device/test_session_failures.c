/* Every callback that a session makes fails in turn, each of its calls once: a clear error, nothing left, the
 * next session and the next Run work. */
#include "sessions.h"

#define THREE "Mul x w2 a; Sigmoid a b; Add b w3 y"

static Device device;

static void start(void) {
  open_env();
  device = plug("virtual");
}

static void stop(void) {
  CHECK(device.control->live_chunks == 0 && device.control->live_objects == 3); /* what registration made */
  unplug(&device);
  close_env();
}

static void fail_call(const char* callback, int number) {
  device.control->failing_after = number;
  fail_next(&device, callback);
}

/* False when the callback was not called as often as that. */
static bool has_failed(void) {
  bool has = device.control->failing_callback[0] == '\0';
  device.control->failing_callback[0] = '\0';
  return has;
}

static const char* asked(const char* callback) {
  static char text[96];
  snprintf(text, sizeof text, "%s was asked to fail", callback);
  return text;
}

/* ---- Creation ---- */

static void check_creation_fails(const char* callback, int calls) {
  int failures = 0;
  for (;; failures++) {
    OrtSession* session = NULL;
    Alive was = alive_on(&device);
    fail_call(callback, failures);
    OrtStatus* status = try_session(THREE, (Use[]){{&device, NULL}}, 1, &session);
    if (!has_failed()) {
      CHECK_OK(status);
      CHECK_RUN(session, THREE, 1);
      api()->ReleaseSession(session);
      break;
    }
    if (!CHECK_FAILS(status, ORT_EP_FAIL, asked(callback))) break;
    CHECK(session == NULL);
    CHECK_ALIVE(&device, was);
  }
  check_at(__FILE__, __LINE__, failures == calls, "%s is called %d times, not %d", callback, failures, calls);
}

static void test_session_creation(void) {
  start();
  check_creation_fails("CreateEp", 1);
  check_creation_fails("CreateAllocator", 2); /* tensors, initializers */
  check_creation_fails("GetCapability", 1);
  check_creation_fails("Compile", 1);
  check_creation_fails("CreateState", 2);
  check_creation_fails("CopyTensors", 2); /* initializers: one call each */
  stop();
}

/* ---- Run ---- */

/* Of the first Run of a session, and of a later one. */
static void check_run_fails(const char* callback, int calls, bool is_first) {
  int failures = 0;
  for (;; failures++) {
    bool is_right = false;
    Alive without = alive_on(&device);
    OrtSession* session = session_on(&device, THREE);
    if (!is_first) CHECK_RUN(session, THREE, 2);
    Alive was = alive_on(&device);
    fail_call(callback, failures);
    OrtStatus* status = try_run(session, THREE, NULL, 1, &is_right);
    bool is_last = !has_failed();
    if (is_last) {
      CHECK_OK(status);
      CHECK(is_right);
    } else {
      CHECK_FAILS(status, ORT_EP_FAIL, asked(callback));
      CHECK_RUN(session, THREE, 0.5f);
      if (!is_first) CHECK_ALIVE(&device, was);
    }
    api()->ReleaseSession(session);
    CHECK_ALIVE(&device, without);
    if (is_last) break;
  }
  check_at(__FILE__, __LINE__, failures == calls, "%s is called %d times in %s Run, not %d", callback,
           failures, is_first ? "the first" : "a later", calls);
}

static void test_runs(void) {
  static const struct {
    const char* callback;
    int in_first, in_later;
  } all[] = {{"CreateSyncStreamForDevice", 1, 0},
             {"OnRunStart", 1, 1},
             {"CopyTensors", 4, 4},
             {"Compute", 2, 2},
             {"CreateNotification", 1, 1},
             {"Activate", 1, 1},
             {"WaitOnHost", 1, 1},
             {"OnSessionRunEnd", 1, 1},
             {"Flush", 1, 1},
             {"OnRunEnd", 1, 1}};
  start();
  device.control->max_delay_us = 200; /* a failed run leaves work behind that must be waited for */
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    check_run_fails(all[i].callback, all[i].in_first, true);
    check_run_fails(all[i].callback, all[i].in_later, false);
  }
  stop();
}

static void test_sync(void) {
  const char *input = "x", *output = "y";
  OrtValue* y = NULL;
  start();
  OrtSession* session = session_on(&device, THREE);
  OrtValue *x = host_tensor(COUNT, 1), *there = tensor_on(&device, COUNT);
  CHECK_OK(copy(x, there, NULL));
  fail_call("Sync", 0);
  CHECK_FAILS(api()->Run(session, NULL, &input, (const OrtValue* const*)&there, 1, &output, 1, &y),
              ORT_EP_FAIL, asked("Sync"));
  CHECK(has_failed() && y == NULL);
  CHECK_OK(api()->Run(session, NULL, &input, (const OrtValue* const*)&there, 1, &output, 1, &y));
  CHECK(is_output(THREE, "y", 1, y));
  api()->ReleaseValue(y);
  api()->ReleaseValue(x);
  api()->ReleaseValue(there);
  api()->ReleaseSession(session);
  stop();
}

/* ---- OK, and nothing there ---- */

static void get_nothing(const char* callback) {
  snprintf(device.control->giving_nothing, sizeof device.control->giving_nothing, "%s", callback);
}

static void check_creation_without(const char* callback, const char* part) {
  OrtSession* session = NULL;
  Alive was = alive_on(&device);
  get_nothing(callback);
  CHECK_FAILS(try_session(THREE, (Use[]){{&device, NULL}}, 1, &session), ORT_EP_FAIL, part);
  CHECK(session == NULL && device.control->giving_nothing[0] == '\0');
  CHECK_ALIVE(&device, was);
}

static void check_run_without(const char* callback, OrtErrorCode code, const char* part) {
  bool is_right = false;
  Alive was = alive_on(&device);
  OrtSession* session = session_on(&device, THREE);
  get_nothing(callback);
  CHECK_FAILS(try_run(session, THREE, NULL, 1, &is_right), code, part);
  CHECK(device.control->giving_nothing[0] == '\0');
  CHECK_RUN(session, THREE, 1);
  api()->ReleaseSession(session);
  CHECK_ALIVE(&device, was);
}

static void test_callbacks_that_give_nothing(void) {
  start();
  check_creation_without("CreateEp", "OrtEpFactory::CreateEp");
  check_creation_without("Compile", "OrtNodeComputeInfo");
  check_run_without("CreateSyncStreamForDevice", ORT_INVALID_ARGUMENT, "OrtSyncStreamImpl is NULL");
  check_run_without("CreateNotification", ORT_INVALID_ARGUMENT, "OrtSyncNotificationImpl is NULL");
  check_run_without("Compute", ORT_EP_FAIL, "did not make its output 'a'");
  stop();
}

/* An EP that has no allocator for its memory wants host memory. This one then finds nothing in its own. */
static void test_no_allocator_means_host_memory(void) {
  bool is_right = false;
  start();
  Alive was = alive_on(&device);
  get_nothing("CreateAllocator");
  OrtSession* session = session_on(&device, THREE);
  CHECK(device.control->giving_nothing[0] == '\0' && device.control->live_chunks == was.chunks);
  CHECK_FAILS(try_run(session, THREE, NULL, 1, &is_right), ORT_EP_FAIL, "is not in the device's memory");
  api()->ReleaseSession(session);
  CHECK_ALIVE(&device, was);
  stop();
}

/* A device full of somebody else's data. */
static void test_out_of_device_memory(void) {
  const int64_t huge = (int64_t)1 << 27; /* floats: half of the device */
  const char *input = "x", *output = "y";
  OrtValue *x = NULL, *y = NULL;
  start();
  OrtSession* session = session_on(&device, "Mul x w2 a; Add a x y");
  CHECK_RUN(session, "Mul x w2 a; Add a x y", 1);
  Alive was = alive_on(&device);
  CHECK_OK(api()->CreateTensorAsOrtValue(shared_allocator(device.memory), &huge, 1, FLOAT, &x));
  CHECK_FAILS(api()->Run(session, NULL, &input, (const OrtValue* const*)&x, 1, &output, 1, &y),
              ORT_RUNTIME_EXCEPTION, "VirtualDevice");
  api()->ReleaseValue(x);
  CHECK_RUN(session, "Mul x w2 a; Add a x y", 1);
  CHECK_ALIVE(&device, was);
  api()->ReleaseSession(session);
  stop();
}

/* ---- Out of host memory ---- */

static bool is_past_the_last(int64_t n, int64_t before, const OrtStatus* status) {
  bool injected = ortabi_allocation_count() - before > n;
  CHECK(injected || status == NULL);
  return !injected;
}

/* The model is made before: its own allocations are not the library's. */
static void test_out_of_memory_in_creation(void) {
  Message bytes = write_model(THREE);
  start();
  Alive was = alive_on(&device);
  OrtSessionOptions* options = session_options((Use[]){{&device, NULL}}, 1);
  for (int64_t n = 0;; n++) {
    OrtSession* session = NULL;
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = api()->CreateSessionFromArray(env, bytes.bytes, bytes.size, options, &session);
    ortabi_fail_allocation(-1);
    bool is_last = is_past_the_last(n, before, status);
    CHECK((status == NULL) == (session != NULL));
    api()->ReleaseStatus(status);
    if (session != NULL) CHECK_RUN(session, THREE, 1);
    api()->ReleaseSession(session);
    CHECK_ALIVE(&device, was);
    if (is_last) break;
  }
  api()->ReleaseSessionOptions(options);
  stop();
}

static OrtStatus* run(OrtSession* session, const OrtValue* x, OrtValue** y) {
  const char *input = "x", *output = "y";
  return api()->Run(session, NULL, &input, &x, 1, &output, 1, y);
}

static void check_out_of_memory_in_run(bool is_first) {
  OrtValue* x = host_tensor(COUNT, 1);
  Alive without = alive_on(&device);
  for (int64_t n = 0;; n++) {
    OrtValue* y = NULL;
    OrtSession* session = session_on(&device, THREE);
    if (!is_first) CHECK_RUN(session, THREE, 2);
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = run(session, x, &y);
    ortabi_fail_allocation(-1);
    bool is_last = is_past_the_last(n, before, status);
    check_at(__FILE__, __LINE__, is_last || status != NULL, "allocation %lld fails unnoticed", (long long)n);
    CHECK((y != NULL) == (status == NULL));
    api()->ReleaseStatus(status);
    api()->ReleaseValue(y);
    CHECK_RUN(session, THREE, 3);
    api()->ReleaseSession(session);
    CHECK_ALIVE(&device, without);
    if (is_last) break;
  }
  api()->ReleaseValue(x);
}

static void test_out_of_memory_in_runs(void) {
  start();
  device.control->max_delay_us = 100;
  check_out_of_memory_in_run(true);
  check_out_of_memory_in_run(false);
  stop();
}

int main(void) {
  RUN(test_session_creation);
  RUN(test_runs);
  RUN(test_sync);
  RUN(test_callbacks_that_give_nothing);
  RUN(test_no_allocator_means_host_memory);
  RUN(test_out_of_device_memory);
  RUN(test_out_of_memory_in_creation);
  RUN(test_out_of_memory_in_runs);
  return finish();
}
