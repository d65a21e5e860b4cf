/* Proof that a session's waits order the work: with streams that delay at random all results are right, and
 * without any single one of the waits they are not. */
#ifndef TESTS_DEVICE_ORDER_H
#define TESTS_DEVICE_ORDER_H

#include "sessions.h"

#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif

enum { RUNS = 1000, TRIES = 20 };

static inline void check_many_runs(OrtSession* session, const char* model) {
  int wrong = 0;
  for (int run = 0; run < RUNS; run++) {
    bool is_right = false;
    if (!CHECK_OK(try_run(session, model, NULL, (float)(run % 97) / 16, &is_right))) return;
    wrong += !is_right;
  }
  check_at(__FILE__, __LINE__, wrong == 0, "'%s': %d of %d runs are wrong", model, wrong, RUNS);
}

static inline uint64_t waits_of(const Device* device) {
  return device->control->waits_on_device + device->control->waits_on_host;
}

#ifndef HAS_TSAN
/* How often a run without the device's wait `number` (of the run) is wrong. Each run has other inputs than
 * the one before it, whose results may still lie where the new ones belong. */
static inline int wrong_runs_without(const Device* device, OrtSession* session, const char* model,
                                     uint64_t number) {
  int wrong = 0;
  for (int run = 0; run < TRIES && wrong == 0; run++) {
    bool is_right = false;
    device->control->drop_wait = (int64_t)(waits_of(device) + number);
    CHECK_OK(try_run(session, model, NULL, (float)(run + 1) / 4, &is_right));
    wrong += !is_right;
  }
  device->control->drop_wait = -1;
  return wrong;
}
#endif

/* Every wait of a run is needed, and there are `waits` of them. */
static inline void check_every_wait_is_needed(const Device* device, OrtSession* session, const char* model,
                                              uint64_t waits) {
  uint64_t was = waits_of(device);
  CHECK_RUN(session, model, 0);
  CHECK(waits_of(device) - was == waits);
#ifndef HAS_TSAN /* what follows is a race on purpose */
  device->control->max_delay_us = 10000;
  for (uint64_t number = 0; number < waits; number++)
    check_at(__FILE__, __LINE__, wrong_runs_without(device, session, model, number) > 0,
             "'%s' is right without wait %llu", device->name, (unsigned long long)number);
#endif
  device->control->max_delay_us = 0;
  CHECK_RUN(session, model, 0);
}

#endif
