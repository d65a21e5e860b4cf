/* What tests see of kernel_device.c. */
#ifndef KERNELS_CONTROL_H
#define KERNELS_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

/* Exported by kernel_device_control(). Counters only grow. */
typedef struct KernelsControl {
  _Atomic uint64_t copies_to_device, copies_to_host, kernels_run;
  _Atomic int64_t live_blocks;
} KernelsControl;

#endif
