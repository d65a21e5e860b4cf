/* profiling: what a session that is profiled writes down, and what its EPs add to it. Nothing here runs in a
 * session that is not. */
#ifndef ORT_ABI_PROFILING_H
#define ORT_ABI_PROFILING_H

#include <stdio.h>

#include "session/session.h"

/* ---- profiling_event.c ---- */

/* One block of memory with all its texts. */
struct OrtProfilingEvent {
  OrtProfilingEventCategory category;
  int32_t process_id, thread_id;
  const char* name;
  int64_t timestamp_us, duration_us; /* the time is since profiling started */
  const char *const *keys, *const *values;
  size_t arg_count;
};

struct OrtProfilingEventsContainer {
  OrtProfilingEvent** events;
  size_t count, capacity;
};

/* gives (caller releases with ReleaseProfilingEvent): a copy, texts too. NULL: no memory. */
OrtProfilingEvent* profiling_event_copy(const OrtProfilingEvent* event);
/* takes `event` on success. False: no memory. */
bool profiling_events_add(OrtProfilingEventsContainer* container, OrtProfilingEvent* event);
void profiling_events_release(OrtProfilingEventsContainer* container); /* releases the events */
/* Writes them as a Chrome trace. Argument values that begin with '{' or '[' are JSON, all others text. */
void profiling_events_write(const OrtProfilingEventsContainer* container, FILE* file);

/* ---- profiler_memory.c ---- */

typedef enum ProfileMemoryKind {
  PROFILE_MEMORY_IN_USE,
  PROFILE_MEMORY_REQUESTED, /* in use, without what allocations are rounded up by */
  PROFILE_MEMORY_HELD,
  PROFILE_MEMORY_PEAK,
  PROFILE_MEMORY_KINDS,
} ProfileMemoryKind;

/* Bytes of the memory that an EP works in. */
typedef struct ProfileMemory {
  bool is_known[PROFILE_MEMORY_KINDS];
  int64_t bytes[PROFILE_MEMORY_KINDS];
} ProfileMemory;
ProfileMemory profile_memory(const Frame* frame, const Step* step);

typedef struct ProfileArg {
  const char* key;
  char text[24];
} ProfileArg;
#define PROFILE_MEMORY_ARGS (2 * PROFILE_MEMORY_KINDS)
/* What the step's event says; gives how many there are. `args`: room for PROFILE_MEMORY_ARGS. */
size_t profile_memory_args(const ProfileMemory* before, const ProfileMemory* after, ProfileArg* args);

/* ---- profiler.c: one file that is being made. Any thread, but for new, add_ep and free ---- */

/* What is being measured. */
typedef struct ProfileSpan {
  uint64_t start_ns;
  uint64_t id;          /* EPs know the event by it */
  ProfileMemory memory; /* of a step, before it */
} ProfileSpan;

/* gives (caller releases with profiler_free): opens "<prefix>_<time>.json" and starts the clock. `next`:
 * NULL, or a profiler that records all that this one records. borrows it and `logger`. */
OrtStatus* profiler_new(const OrtLogger* logger, const char* prefix, Profiler* next, Profiler** out);
/* Makes the EP's own profiler, if it has one, and starts it. What fails is logged: the session then runs
 * without this EP's events. */
void profiler_add_ep(Profiler* profiler, const SessionEp* ep);
/* Collects the EPs' events and writes the file. *path (borrows from the profiler) is "" when that was done
 * before. */
OrtStatus* profiler_end(Profiler* profiler, const char** path);
/* releases it and the EPs' profilers; writes the file if nobody has. NULL is fine. */
void profiler_free(Profiler* profiler);
/* When it started, in nanoseconds since 1970. */
uint64_t profiler_start_time(const Profiler* profiler);

ProfileSpan profiler_start(Profiler* profiler);
/* Records an event of the session. */
void profiler_stop(Profiler* profiler, const ProfileSpan* span, const char* name);
ProfileSpan profiler_start_step(Profiler* profiler, const Frame* frame, const Step* step);
/* Records that a step ran, with the shapes of what it read and made, and with what became of memory. */
void profiler_stop_step(Profiler* profiler, const ProfileSpan* span, const Frame* frame, const Step* step);

/* ---- A run; for the session, for a file of its own (RunOptionsEnableProfiling), or both ---- */

/* Sets frame->profiler, starts to measure the run. */
OrtStatus* profile_run_start(Frame* frame, const OrtRunOptions* options, ProfileSpan* span);
/* Writes the run's own file. What fails is logged: the run has its results. */
void profile_run_end(Frame* frame, const ProfileSpan* span);

#endif
