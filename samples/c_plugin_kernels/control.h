/* What tests watch in the sample: which of its kernels' functions the host called. */
#ifndef KERNEL_SAMPLE_CONTROL_H
#define KERNEL_SAMPLE_CONTROL_H

#include <stdatomic.h>

/* Exported by kernel_sample_control(). All but `kernels` and `private_buffers` only grow. */
typedef struct KernelSampleControl {
  _Atomic int prepacks;        /* PrePackWeight calls that packed a weight */
  _Atomic int stored;          /* those that gave it to a cache, to be shared */
  _Atomic int set_shared;      /* SetSharedPrePackedWeight calls */
  _Atomic int from_others;     /* those that brought what another kernel had stored */
  _Atomic int packed_computes; /* Mul runs on a packed weight */
  _Atomic int kernels;         /* alive */
  _Atomic int private_buffers; /* packed weights that kernels own now */
} KernelSampleControl;

typedef KernelSampleControl* (*KernelSampleControlFn)(void);

#endif
