/* What tests see and change of plain_device.c. */
#ifndef PLAIN_CONTROL_H
#define PLAIN_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ort_abi.h"

/* Exported by plain_device_control(). */
typedef struct PlainControl {
  _Atomic int64_t allocs, reserves, frees, shrinks; /* calls */
  _Atomic size_t largest_possible;                  /* what Alloc gives at most; 0: all that there is */
  _Atomic uint64_t copy_calls;
  size_t last_count; /* of the last copy call, as its other arguments were */
  bool last_had_streams;
  OrtSyncStream* last_streams[4]; /* the first of them */
  bool streams_fail;              /* CreateSyncStreamForDevice says OK and gives none */
} PlainControl;

#endif
