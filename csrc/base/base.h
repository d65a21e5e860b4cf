/* base: what everything stands on. Memory, statuses, logging, strings, arenas, name maps, calls into plugins.
 */
#ifndef ORT_ABI_BASE_H
#define ORT_ABI_BASE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guarded_calls.h"
#include "ort_abi.h"

#define PRINTF_LIKE(format_index, first) __attribute__((format(printf, format_index, first)))
/* Of functions that run when something went wrong: what leads to a call of them is kept out of the way. */
#define UNLIKELY_CALL __attribute__((cold))

/* ---- alloc.c: the one gate to malloc, so that any allocation can be made to fail (ortabi_fail_allocation)
 * ---- */

/* gives (caller releases with mem_free); NULL when out of memory. Size 0 gives a valid pointer. */
void* mem_alloc(size_t size);
/* The same, zeroed; `count * size` is checked for overflow. */
void* mem_calloc(size_t count, size_t size);
/* takes `block`, gives the grown one; on failure NULL and `block` stays the caller's. */
void* mem_realloc(void* block, size_t size);
/* releases; NULL is fine. */
void mem_free(void* block);
/* Gives what is free back to the system, where the libc can: worth its time after much was freed. */
void mem_trim(void);
/* gives (caller releases with mem_free_aligned), aligned to MEM_ALIGNMENT bytes; NULL when out of memory. */
void* mem_alloc_aligned(size_t size);
void mem_free_aligned(void* block); /* releases; NULL is fine */
#define MEM_ALIGNMENT 64

/* Multiplies and adds; false on overflow. */
bool size_mul(size_t a, size_t b, size_t* out);
bool size_add(size_t a, size_t b, size_t* out);

/* Makes room for `needed` items of `item_size` in `*items` (doubling). False when out of memory, nothing
 * changed. */
bool array_reserve(void** items, size_t* capacity, size_t needed, size_t item_size);
#define ARRAY_RESERVE(items, capacity, needed) \
  array_reserve((void**)&(items), &(capacity), (needed), sizeof *(items))

/* ---- status.c ---- */

/* gives (caller releases with ReleaseStatus). Never NULL: when out of memory, a static status says so. */
OrtStatus* status_new(OrtErrorCode code, const char* format, ...) PRINTF_LIKE(2, 3) UNLIKELY_CALL;
OrtStatus* status_new_v(OrtErrorCode code, const char* format, va_list arguments);
/* takes `cause`, gives a status of the same code (ORT_FAIL for ORT_OK, which a plugin can give) whose message
 * is
 * "<context>: <message of cause>"; what the cause begins with and the context has is not said twice. */
OrtStatus* status_wrap(OrtStatus* cause, const char* format, ...) PRINTF_LIKE(2, 3) UNLIKELY_CALL;
OrtStatus* status_wrap_v(OrtStatus* cause, const char* format, va_list arguments);
/* The same without arguments: ORT_FAIL, "out of memory". Allocates nothing. */
OrtStatus* status_no_memory(void) UNLIKELY_CALL;
OrtErrorCode status_code(const OrtStatus* status);
const char* status_message(const OrtStatus* status); /* borrows */
void status_release(OrtStatus* status);              /* releases; NULL is fine */

/* Returns from the calling function when `expression` is a failure. */
#define TRY(expression)                                             \
  do {                                                              \
    OrtStatus* try_status = (expression);                           \
    if (__builtin_expect(try_status != NULL, 0)) return try_status; \
  } while (0)
/* Sets the local `status` and jumps to the local label `done` when `expression` is a failure. */
#define TRY_DONE(expression)       \
  do {                             \
    status = (expression);         \
    if (status != NULL) goto done; \
  } while (0)
/* In an api_X function: refuses a NULL argument with a status that names slot and argument. */
#define REQUIRE_ARG(argument)                                                                             \
  do {                                                                                                    \
    if ((argument) == NULL)                                                                               \
      return status_new(ORT_INVALID_ARGUMENT, "%s: argument '%s' is NULL", slot_of(__func__), #argument); \
  } while (0)
/* "api_CreateEnv" -> "CreateEnv" */
const char* slot_of(const char* function_name);

/* ---- fork.c ---- */

/* Beside a mutex: it is free in a child that was forked while another thread had it. */
typedef struct ForkGuard {
  struct ForkGuard *previous, *next;
  pthread_mutex_t* mutex;
  bool is_recursive, is_held; /* is_held: by a thread that forks */
} ForkGuard;
/* borrows both until fork_guard_close. */
void fork_guard_open(ForkGuard* guard, pthread_mutex_t* mutex, bool is_recursive);
void fork_guard_close(ForkGuard* guard);
void mutex_init(pthread_mutex_t* mutex, bool is_recursive);

/* ---- log.c ---- */

struct OrtLogger {
  OrtLoggingFunction function; /* called on any thread */
  void* param;
  _Atomic OrtLoggingLevel severity; /* messages below are dropped; may be set while others log */
  const char* id;                   /* borrows: the owner of the logger keeps it alive */
};

/* Writes one message if the logger's severity admits it. `logger` NULL: the process-wide default logger. */
void log_write(const OrtLogger* logger, OrtLoggingLevel level, const char* file, int line,
               const char* function, const char* format, ...) PRINTF_LIKE(6, 7) UNLIKELY_CALL;
#define LOG(logger, level, ...) \
  log_write((logger), ORT_LOGGING_LEVEL_##level, __FILE__, __LINE__, __func__, __VA_ARGS__)
/* The process-wide default: what the environment installed, else one that writes WARNING and above to stderr.
 */
const OrtLogger* log_default(void);
/* Installs the environment's logger; NULL: back to stderr. keeps no reference: the caller keeps `logger`
 * alive. */
void log_set_default(const OrtLogger* logger);
/* OrtLoggingFunction that writes to stderr. */
void ORT_API_CALL log_to_stderr(void* param, OrtLoggingLevel severity, const char* category,
                                const char* logid, const char* code_location, const char* message);
/* Called by the stubs of slots that cannot return a status. */
void log_unimplemented_slot(const char* slot_name);
/* Number of failures that had no status to travel in (logged, neutral value returned) since the process
 * started. */
uint64_t log_unreported_failures(void);
/* Logs "<slot>: <message>" as an error and counts it: the one rule for slots that cannot carry a status. */
void log_unreported(const char* slot_name, const char* format, ...) PRINTF_LIKE(2, 3) UNLIKELY_CALL;

/* ---- strings.c ---- */

/* gives (caller releases with mem_free); NULL when out of memory or `text` is NULL. */
char* str_copy(const char* text);
char* str_copy_n(const char* text, size_t length);
/* copies `text` into `*field`, and releases what was there. */
OrtStatus* str_set(char** field, const char* text);
/* gives (caller releases with mem_free): the folder part of a path, "." if it has none. NULL: no memory. */
char* str_folder(const char* path);
/* gives (caller releases with mem_free): printf into a new string. NULL when out of memory. */
char* str_format(const char* format, ...) PRINTF_LIKE(1, 2);
bool str_equal(const char* a, const char* b);

/* A growing text; zero-initialised. `failed` is set when out of memory, later appends are no-ops. */
typedef struct StrBuf {
  char* text; /* NUL-terminated once anything was appended */
  size_t length, capacity;
  bool failed;
} StrBuf;
void strbuf_append(StrBuf* buffer, const char* format, ...) PRINTF_LIKE(2, 3);
void strbuf_release(StrBuf* buffer); /* releases */

/* ---- arena.c: many small things that die together ---- */

typedef struct ArenaBlock ArenaBlock;
typedef struct Arena {
  ArenaBlock* blocks; /* newest first */
  char* next;
  size_t left;
} Arena; /* zero-initialised */

/* borrows (the arena owns it), zeroed, 16-byte aligned; NULL when out of memory. */
void* arena_alloc(Arena* arena, size_t size);
void* arena_calloc(Arena* arena, size_t count, size_t size);
char* arena_str(Arena* arena, const char* text, size_t length);
void arena_release(Arena* arena); /* releases everything */

/* ---- name_map.c: text -> pointer, open addressing ---- */

typedef struct NameMapEntry {
  const char* name; /* borrows: NULL marks a free place */
  size_t length;
  uint64_t hash;
  void* value;
} NameMapEntry;
typedef struct NameMap {
  NameMapEntry* entries;
  size_t count, capacity;
} NameMap; /* zero-initialised; keeps pointers to names: they must outlive the map */

void* name_map_get(const NameMap* map, const char* name);
void* name_map_get_n(const NameMap* map, const char* name, size_t length);
/* Inserts or replaces. False when out of memory. */
bool name_map_put(NameMap* map, const char* name, void* value);
bool name_map_put_n(NameMap* map, const char* name, size_t length, void* value);
void name_map_release(NameMap* map); /* releases the map, not the values */

/* ---- plugin_call.c: what surrounds the calls of the generated plugin_calls.h, the only way into a plugin
 * ---- */

/* Whom this thread has called, for a report of a crash: read by a signal handler, so only what stays readable
 * while the call lasts is put here. */
typedef struct AtWork {
  const char* slot;      /* "OrtEp::Compile"; NULL: none */
  const char* kind;      /* "EP" or "EP library" */
  const char* owner;     /* its name; NULL: not known */
  const char* node_name; /* NULL: no single node is at work */
  const char* op_type;
  const struct Step* const* step; /* the step of a running plan; NULL: none runs */
} AtWork;
/* In the thread's first block: a signal handler may not allocate one. */
extern _Thread_local AtWork at_work __attribute__((tls_model("initial-exec")));
/* Notes whose slots are called next, and gives what was noted before: the caller puts that back. */
AtWork at_work_begin(const char* kind, const char* owner, const char* node_name, const char* op_type);

/* Calls that catch C++ exceptions; NULL: nobody throws any, as far as is known. */
extern const GuardedCalls* plugin_guard;
static inline const GuardedCalls* guarded_calls(void) {
  return __atomic_load_n(&plugin_guard, __ATOMIC_ACQUIRE);
}
/* After a plugin was loaded: puts the guard in place if there is C++ code in the process. A guard that is
 * missing is a warning, once; an error only when there is no memory to look for it. Any thread. */
OrtStatus* plugin_guard_load(void);

#endif
