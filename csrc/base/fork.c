/* Locks and fork(). A child has only the thread that forked, and would wait for ever for a lock that another
 * thread had. So all guarded locks are taken before a fork: then what they guard is whole. A lock that stays
 * taken belongs to a thread inside a plugin, which may itself wait for the thread that forks (for Python's
 * GIL, say): it is left after a while, and is a new lock in the child. */
#include <time.h>

#include "base/base.h"

#define PATIENCE_MS 100 /* for all locks together: they are held for microseconds, or long */

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static ForkGuard* guards; /* under list_mutex */
static pthread_once_t handlers_once = PTHREAD_ONCE_INIT;

void mutex_init(pthread_mutex_t* mutex, bool is_recursive) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (is_recursive) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

static void before_fork(void) {
  struct timespec end;
  pthread_mutex_lock(&list_mutex);
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += PATIENCE_MS * 1000000L;
  end.tv_sec += end.tv_nsec / 1000000000L;
  end.tv_nsec %= 1000000000L;
  for (ForkGuard* guard = guards; guard != NULL; guard = guard->next)
    guard->is_held = pthread_mutex_timedlock(guard->mutex, &end) == 0;
}

static void after_fork_in_parent(void) {
  for (ForkGuard* guard = guards; guard != NULL; guard = guard->next) {
    if (guard->is_held) pthread_mutex_unlock(guard->mutex);
  }
  pthread_mutex_unlock(&list_mutex);
}

/* Unlocking would not do: a recursive mutex knows its owner by a number that is another one in the child. */
static void after_fork_in_child(void) {
  for (ForkGuard* guard = guards; guard != NULL; guard = guard->next)
    mutex_init(guard->mutex, guard->is_recursive);
  pthread_mutex_unlock(&list_mutex);
}

static void add_handlers(void) {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void fork_guard_open(ForkGuard* guard, pthread_mutex_t* mutex, bool is_recursive) {
  *guard = (ForkGuard){.mutex = mutex, .is_recursive = is_recursive};
  pthread_once(&handlers_once, add_handlers);
  pthread_mutex_lock(&list_mutex);
  guard->next = guards;
  if (guards != NULL) guards->previous = guard;
  guards = guard;
  pthread_mutex_unlock(&list_mutex);
}

void fork_guard_close(ForkGuard* guard) {
  pthread_mutex_lock(&list_mutex);
  if (guard->previous != NULL) guard->previous->next = guard->next;
  if (guard->next != NULL) guard->next->previous = guard->previous;
  if (guards == guard) guards = guard->next;
  pthread_mutex_unlock(&list_mutex);
}
