/* The exit gate: counts the calls that are inside Python and shuts the door before the interpreter goes. */
#include <stdatomic.h>
#include <time.h>

#include "bridge.h"

#define GATE_CLOSED   ((uint64_t)1 << 63)
#define GATE_WAIT_MS  10000
#define GATE_SLICE_NS 1000000

static _Atomic uint64_t gate;

bool bridge_gate_enter(void) {
  if (!(atomic_fetch_add(&gate, 1) & GATE_CLOSED)) return true;
  atomic_fetch_sub(&gate, 1);
  return false;
}

void bridge_gate_leave(void) {
  atomic_fetch_sub(&gate, 1);
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
