/* What tests see of kernel_device.c. */
#ifndef KERNELS_CONTROL_H
#define KERNELS_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

/* Exported by kernel_device_control(). Counters only grow. */
typedef struct KernelsControl {
  _Atomic uint64_t copies_to_device, copies_to_host, copies_with_stream, kernels_run;
  _Atomic uint64_t in_place;    /* kernels whose output took over the input's memory */
  _Atomic uint64_t second_hand; /* outputs in memory that another EP used since it was allocated */
  _Atomic uint64_t waits_on_host, waits_on_device, stream_allocations, syncs, flushes;
  const void* _Atomic last_uploaded; /* where the host had it */
  _Atomic int64_t live_blocks, live_notifications;
} KernelsControl;

#endif
