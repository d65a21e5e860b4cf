/* The exit gate: counts the calls that are inside Python and shuts the door before the interpreter goes. A
 * child process has only the thread that forked: the calls of the others are not inside any more. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "bridge.h"

#define GATE_CLOSED   ((uint64_t)1 << 63)
#define GATE_WAIT_MS  10000
#define GATE_SLICE_NS 1000000

static _Atomic uint64_t gate;
static _Thread_local uint64_t inside __attribute__((tls_model("initial-exec"))); /* calls of this thread */

bool bridge_gate_enter(void) {
  if (!(atomic_fetch_add(&gate, 1) & GATE_CLOSED)) {
    inside++;
    return true;
  }
  atomic_fetch_sub(&gate, 1);
  return false;
}

void bridge_gate_leave(void) {
  inside--;
  atomic_fetch_sub(&gate, 1);
}

static void count_again(void) {
  atomic_store(&gate, (atomic_load(&gate) & GATE_CLOSED) | inside);
}

__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(NULL, NULL, count_again);
}

/* Called from Python's atexit without the GIL. Returns 1 when nobody is inside any more, 0 if a callback does
 * not come back: the wait ends after ten seconds, a hanging callback must not hang the exit too. */
int bridge_gate_close(void) {
  atomic_fetch_or(&gate, GATE_CLOSED);
  for (int waited_ms = 0; atomic_load(&gate) != GATE_CLOSED; waited_ms++) {
    if (waited_ms >= GATE_WAIT_MS) return 0;
    nanosleep(&(struct timespec){.tv_nsec = GATE_SLICE_NS}, NULL);
  }
  return 1;
}
