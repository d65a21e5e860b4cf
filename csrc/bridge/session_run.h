/* A run of a session for Python, in one call: Python hands over addresses and shapes, and gets them back. */
#ifndef ORT_ABI_SESSION_RUN_H
#define ORT_ABI_SESSION_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "ort_abi.h"

/* What Python sees too. */
/* cdef begin */
typedef enum BridgeSessionLimit {
  BRIDGE_SESSION_MAX_VALUES = 16, /* inputs, and outputs: with more, Python makes the calls itself */
  BRIDGE_SESSION_MAX_RANK = 8,
  BRIDGE_SESSION_OUTPUT = 13, /* most numbers for one output: five and its dimensions */
} BridgeSessionLimit;

/* The names that runs of a session have in common. Python keeps it, and what it points to, from run to run;
 * it is never written again, so any number of threads may run with it. */
typedef struct BridgeSessionNames {
  const OrtApi* api;
  const OrtMemoryInfo* input_memory;  /* of the arrays that come in */
  const OrtMemoryInfo* output_memory; /* of outputs that need nobody else's memory: this, */
  const OrtMemoryInfo* arena_memory;  /* or this */
  size_t num_inputs;
  size_t num_outputs;
  const char* const* inputs;
  const char* const* outputs;
} BridgeSessionNames;

OrtStatus* bridge_session_run(const BridgeSessionNames* names, OrtSession* session, const void* const* data,
                              const int64_t* shapes, int64_t* outputs);
void bridge_session_release(const OrtApi* api, uintptr_t value, void* data);
/* cdef end */

#endif
