/* Sessions and the environment's allocators: what a session has of them stays as long as the session,
 * whatever the application replaces, releases or registers. (kernel_device.c has no OrtEp::CreateAllocator.)
 */
#include <pthread.h>

#include "kernels_control.h"
#include "sessions.h"

#define MODEL        "Relu x a; Relu a y"
#define DEVICE_MODEL "Mul x w2 a; Add a x y"

/* Registers libkernels.so or libneighbours.so. */
static Device plug_kernels(const char* name) {
  Device device = {.ep_device = NULL};
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  if (!CHECK_OK(try_plug(name))) exit(1);
  CHECK_OK(api()->GetEpDevices(env, &all, &count));
  snprintf(device.name, sizeof device.name, "%s", name);
  device.ep_device = all[count - 1];
  device.memory = api()->EpDevice_MemoryInfo(device.ep_device, OrtDeviceMemoryType_DEFAULT);
  return device;
}

static int64_t stat_of(OrtAllocator* allocator, const char* key) {
  OrtKeyValuePairs* stats = NULL;
  CHECK_OK(api()->AllocatorGetStats(allocator, &stats));
  const char* text = api()->GetKeyValue(stats, key);
  int64_t number = text != NULL ? atoll(text) : -2;
  api()->ReleaseKeyValuePairs(stats);
  return number;
}

static OrtAllocator* replace_by_arena(const Device* device) {
  OrtAllocator* arena = NULL;
  CHECK_OK(api()->CreateSharedAllocator(env, device->ep_device, OrtDeviceMemoryType_DEFAULT,
                                        OrtArenaAllocator, NULL, &arena));
  return arena;
}

static void test_a_session_keeps_a_neighbours_allocator(void) {
  open_env();
  Device first = plug_kernels("kernels"), second = plug_kernels("neighbours");
  OrtSession* session = session_on(&second, "Neg x y");
  CHECK_FAILS(api()->UnregisterExecutionProviderLibrary(env, "kernels"), ORT_FAIL, "1 session allocator");
  CHECK_RUN(session, "Neg x y", 1);
  api()->ReleaseSession(session);
  unplug(&first);
  unplug(&second);
  close_env();
}

static OrtSession* session_with_env_allocators(const char* model, const char* wanted, const Device* device) {
  Message bytes = write_model(model);
  OrtSession* session = NULL;
  OrtSessionOptions* options = session_options(&(Use){device, NULL}, 1);
  CHECK_OK(api()->AddSessionConfigEntry(options, "session.use_env_allocators", wanted));
  if (!CHECK_OK(api()->CreateSessionFromArray(env, bytes.bytes, bytes.size, options, &session))) exit(1);
  api()->ReleaseSessionOptions(options);
  return session;
}

/* A session that has the arena goes on with it; a later one has the new allocator. */
static void test_a_replaced_allocator_serves_its_sessions(void) {
  open_env();
  Device device = plug("virtual");
  OrtAllocator* first = replace_by_arena(&device);
  OrtSession* session = session_with_env_allocators(DEVICE_MODEL, "1", &device);
  CHECK_RUN(session, DEVICE_MODEL, 1);
  CHECK(stat_of(first, "NumAllocs") > 0);
  OrtAllocator* second = replace_by_arena(&device);
  CHECK(second != first && stat_of(second, "NumAllocs") == 0);
  CHECK_RUN(session, DEVICE_MODEL, 2);
  CHECK(stat_of(second, "NumAllocs") == 0);
  OrtSession* later = session_with_env_allocators(DEVICE_MODEL, "1", &device);
  CHECK_RUN(later, DEVICE_MODEL, 3);
  CHECK(stat_of(second, "NumAllocs") > 0);
  CHECK_OK(api()->ReleaseSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT));
  CHECK(shared_allocator(device.memory) == NULL);
  CHECK_RUN(session, DEVICE_MODEL, 4);
  CHECK_RUN(later, DEVICE_MODEL, 5);
  api()->ReleaseSession(session);
  api()->ReleaseSession(later);
  unplug(&device);
  close_env();
}

/* The arena is the CPU's: of values between nodes and of outputs, which outlive all. */
static void test_sessions_may_use_the_environments_cpu_allocator(void) {
  OrtMemoryInfo* memory = NULL;
  open_env();
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  CHECK_OK(api()->CreateAndRegisterAllocator(env, memory, NULL));
  OrtAllocator* arena = shared_allocator(memory);
  OrtSession* without = session_with_env_allocators(MODEL, "0", NULL);
  CHECK_RUN(without, MODEL, 1);
  CHECK(stat_of(arena, "NumAllocs") == 0);
  OrtSession* with = session_with_env_allocators(MODEL, "1", NULL);
  CHECK_RUN(with, MODEL, 1);
  CHECK(stat_of(arena, "NumAllocs") == 2 && stat_of(arena, "InUse") > 0); /* a stays with the session */
  CHECK_OK(api()->UnregisterAllocator(env, memory));
  CHECK(shared_allocator(memory) == cpu_allocator());
  const char *input = "x", *output = "y";
  OrtValue *x = host_tensor(COUNT, 1), *y = NULL;
  CHECK_OK(api()->Run(with, NULL, &input, (const OrtValue* const*)&x, 1, &output, 1, &y));
  CHECK(stat_of(arena, "NumAllocs") == 3);
  api()->ReleaseSession(with);
  api()->ReleaseSession(without);
  CHECK(is_output(MODEL, "y", 1, y));
  api()->ReleaseEnv(env); /* y keeps the arena */
  CHECK(is_output(MODEL, "y", 1, y));
  api()->ReleaseValue(x);
  api()->ReleaseValue(y);
  api()->ReleaseMemoryInfo(memory);
}

/* An EP that makes its sessions' allocators is not asked for one then. */
static void test_sessions_may_use_the_environments_device_allocator(void) {
  open_env();
  Device device = plug("virtual");
  for (int i = 0; i < 2; i++) {
    OrtAllocator* arena = replace_by_arena(&device);
    Alive was = alive_on(&device);
    OrtSession* session = session_with_env_allocators(DEVICE_MODEL, i == 0 ? "0" : "1", &device);
    CHECK_RUN(session, DEVICE_MODEL, 1);
    CHECK((stat_of(arena, "NumAllocs") > 0) == (i == 1));
    CHECK(device.control->live_objects > was.objects);
    api()->ReleaseSession(session);
    CHECK(alive_on(&device).objects == was.objects);
  }
  unplug(&device);
  close_env();
}

static void test_arenas_are_not_asked_for_nothing(void) {
  int64_t none = 0;
  OrtValue* value = NULL;
  open_env();
  Device device = plug("virtual");
  OrtAllocator* arena = replace_by_arena(&device);
  CHECK_OK(api()->CreateTensorAsOrtValue(arena, &none, 1, FLOAT, &value));
  CHECK(data_of(value) == NULL);
  CHECK(stat_of(arena, "NumAllocs") == 0 && stat_of(arena, "TotalAllocated") == 0);
  api()->ReleaseValue(value);
  unplug(&device);
  close_env();
}

/* ---- Threads ---- */

enum { RUNS = 200, REPLACEMENTS = 100 };

/* Outputs on the device are of the allocator that is shared when they are made. */
static void* run_bound(void* session) {
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  OrtIoBinding* binding = NULL;
  OrtValue* x = host_tensor(COUNT, 1);
  CHECK_OK(api()->GetEpDevices(env, &all, &count));
  CHECK_OK(api()->CreateIoBinding(session, &binding));
  CHECK_OK(api()->BindInput(binding, "x", x));
  CHECK_OK(api()->BindOutputToDevice(
      binding, "y", api()->EpDevice_MemoryInfo(all[count - 1], OrtDeviceMemoryType_DEFAULT)));
  for (int i = 0; i < RUNS; i++) CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  api()->ReleaseIoBinding(binding);
  api()->ReleaseValue(x);
  return NULL;
}

static void test_allocators_are_replaced_while_sessions_run(void) {
  pthread_t threads[2];
  open_env();
  Device device = plug("virtual");
  OrtSession* session = session_on(&device, DEVICE_MODEL);
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run_bound, session);
  for (int i = 0; i < REPLACEMENTS; i++) replace_by_arena(&device);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  api()->ReleaseSession(session);
  unplug(&device);
  close_env();
}

int main(void) {
  RUN(test_a_session_keeps_a_neighbours_allocator);
  RUN(test_a_replaced_allocator_serves_its_sessions);
  RUN(test_sessions_may_use_the_environments_cpu_allocator);
  RUN(test_sessions_may_use_the_environments_device_allocator);
  RUN(test_arenas_are_not_asked_for_nothing);
  RUN(test_allocators_are_replaced_while_sessions_run);
  return finish();
}
