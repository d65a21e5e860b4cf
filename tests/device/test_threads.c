/* Many threads allocate, copy and make streams at once. */
#include <pthread.h>

#include "devices.h"

#define THREADS 8
#define ROUNDS  20
#define COUNT   100

static Device devices[2];

/* Host -> device -> other device -> host, on a stream of this thread, and back by a batch without one. */
static bool go_round(unsigned number, unsigned round) {
  const Device *one = &devices[number % 2], *two = &devices[1 - number % 2];
  float first = (float)(1000 * number + round);
  OrtSyncStream* stream = stream_on(one);
  OrtValue *source = host_tensor(COUNT, first), *back = host_tensor(COUNT, -1),
           *again = host_tensor(COUNT, -1);
  OrtValue *a = tensor_on(one, COUNT), *b = tensor_on(two, COUNT);
  CHECK_OK(copy(source, a, stream));
  wait_for(stream);
  CHECK_OK(copy(a, b, stream));
  CHECK_OK(copy(b, back, NULL));
  OrtValue *sources[] = {a, a}, *targets[] = {back, again};
  bool is_right = holds(back, COUNT, first);
  CHECK_OK(api()->CopyTensors(env, (const OrtValue* const*)sources, targets, NULL, 2));
  is_right = is_right && holds(back, COUNT, first) && holds(again, COUNT, first);
  OrtValue* all[] = {source, back, again, a, b};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) api()->ReleaseValue(all[i]);
  api()->ReleaseSyncStream(stream);
  return is_right;
}

static void* work(void* argument) {
  bool* is_right = argument;
  static _Atomic unsigned next_number = 0;
  unsigned number = next_number++;
  *is_right = true;
  for (unsigned round = 0; round < ROUNDS; round++) *is_right = go_round(number, round) && *is_right;
  return NULL;
}

static void test_many_threads_copy(void) {
  pthread_t threads[THREADS];
  bool is_right[THREADS];
  open_env();
  devices[0] = plug("virtual");
  devices[1] = plug("other");
  devices[0].control->max_delay_us = devices[1].control->max_delay_us = 50;
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, &is_right[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) CHECK(is_right[i]);
  CHECK(devices[0].control->live_chunks == 0 && devices[1].control->live_chunks == 0);
  unplug(&devices[0]);
  unplug(&devices[1]);
  close_env();
}

/* Libraries come and go beside the copies of others. */
static void* plug_and_unplug(void* argument) {
  (void)argument;
  for (int i = 0; i < 10; i++) {
    Device plain = plug("plain");
    OrtValue *source = host_tensor(4, 1), *there = tensor_on(&plain, 4);
    CHECK_OK(copy(source, there, NULL));
    api()->ReleaseValue(source);
    api()->ReleaseValue(there);
    OrtStatus* status = api()->UnregisterExecutionProviderLibrary(env, "plain");
    while (status != NULL) { /* another thread's copy just asks it */
      api()->ReleaseStatus(status);
      status = api()->UnregisterExecutionProviderLibrary(env, "plain");
    }
  }
  return NULL;
}

static void test_libraries_come_and_go_beside_copies(void) {
  pthread_t changer, copier;
  bool is_right = false;
  open_env();
  devices[0] = plug("virtual");
  devices[1] = plug("other");
  pthread_create(&changer, NULL, plug_and_unplug, NULL);
  pthread_create(&copier, NULL, work, &is_right);
  pthread_join(changer, NULL);
  pthread_join(copier, NULL);
  CHECK(is_right);
  close_env();
}

int main(void) {
  RUN(test_many_threads_copy);
  RUN(test_libraries_come_and_go_beside_copies);
  return finish();
}
