/* What libort_abi.so and libort_abi_cxx_guard.so, which is C++, know of each other. */
#ifndef ORT_ABI_CXX_GUARD_H
#define ORT_ABI_CXX_GUARD_H

#include <stddef.h>

#include "guarded_calls.h"

/* What becomes of an exception is the host's to say. `type`: its C++ type; NULL: none of C++'s. `what`: its
 * text; NULL: it is no std::exception. Both are borrowed during the call. */
typedef struct GuardHost {
  OrtStatus* (*failure)(const char* type, const char* what); /* gives */
  /* From a slot that returns no status. `thrown` may be NULL. */
  void (*unreturned)(const char* slot, const char* type, const char* what, OrtStatus** thrown);
} GuardHost;

#ifdef __cplusplus
extern "C" {
#endif
/* The one function that the guard exports. borrows `host`, for ever. NULL: the guard is of another build. */
typedef const GuardedCalls* CxxGuardEntry(const GuardHost* host, size_t calls_size);
ORT_ABI_EXPORT CxxGuardEntry ortabi_cxx_guard;
#ifdef __cplusplus
}
#endif

#endif
