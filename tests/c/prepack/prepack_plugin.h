/* How a test steers prepack_plugin.so. Registered as DEVICE_NAME it works in device memory (which is
 * malloc'ed all the same), by any other name in the host's. A test opens the library (as the host does, so
 * both see one copy) and changes what prepack_plugin_control() points to. */
#ifndef TESTS_C_PREPACK_PLUGIN_H
#define TESTS_C_PREPACK_PLUGIN_H

#include <stdatomic.h>

#include "ort_abi.h"

/* What a Mul kernel does with its constant second input. Packed is reversed: an original that is used in its
 * place gives wrong results. */
typedef enum PackMode {
  PACK_NOTHING,          /* leaves is_packed as it is */
  PACK_PRIVATE,          /* packs, and does not store even if there is a cache */
  PACK_SHARED,           /* packs, and stores if there is a cache */
  PACK_TWO_BUFFERS,      /* the same in two buffers and a NULL one of no bytes */
  PACK_PADDED,           /* the same, with padding that is never the same */
  PACK_STORE_TWICE,      /* stores garbage, then the weight */
  PACK_STORE_SAME_TWICE, /* stores the weight, then the weight again */
  PACK_STORE_WRONGLY,    /* tries to store with every wrong argument, then does it right */
  PACK_STORE_UNPACKED,   /* stores, and says that it packed nothing */
  PACK_FAIL,             /* packs, and gives an error */
  PACK_FAIL_STORED,      /* stores, and gives an error */
} PackMode;

#define MAX_BUFFERS 64
#define DEVICE_NAME "prepack.device"

typedef struct PackControl {
  PackMode mode;
  uint32_t kernel_version;               /* what OrtKernelImpl says; 0 is said too */
  bool has_no_set_shared;                /* the slot is NULL */
  bool set_shared_fails;                 /* it gives an error */
  bool drops_constants;                  /* of fused nodes */
  bool runs_branches;                    /* If has a kernel, nodes in its branches are claimed */
  bool is_threaded;                      /* then what follows without _Atomic is left alone */
  _Atomic int packs, caches, set_shared; /* calls; those with a cache */
  _Atomic int kernels;                   /* alive */
  _Atomic int preset_true;               /* calls whose is_packed was not preset to false */
  _Atomic int null_allocators;
  int store_refusals;                          /* errors of StoreWeightData */
  void* buffers[MAX_BUFFERS];                  /* all that were allocated to be packed into */
  _Atomic int buffer_count;                    /* may go past MAX_BUFFERS */
  const void* shared[MAX_BUFFERS];             /* what SetSharedPrePackedWeight gave first, call by call */
  const void* dropped;                         /* the data that the last Sub took its copy from */
  const OrtValue* tensor;                      /* what the last PrePackWeight was lent */
  OrtSharedPrePackedWeightCache* cache;        /* the same */
  const OrtKernelInfo* kernel_info;            /* of the last Mul kernel */
  int tensor_device, allocator_device;         /* device types of what the last PrePackWeight got */
  int has_original;                            /* what HasValue said of the last Mul's second input */
  OrtStatus* (*on_compute)(OrtKernelContext*); /* called by Mul kernels */
} PackControl;

typedef PackControl* (*PackControlFn)(void);

#endif
