/* How a test steers run_plugin.so: it opens the library (as the host does, so both see one copy) and changes
 * what run_plugin_control() points to. One test at a time. */
#ifndef TESTS_C_RUN_PLUGIN_H
#define TESTS_C_RUN_PLUGIN_H

#include <stdatomic.h>

#include "ort_abi.h"

#define RUN_EP_COUNT 2 /* factories: "RunEp" and "OtherEp" */

typedef enum RunFault {
  FAULT_NONE,
  FAULT_EP_IS_NULL,         /* CreateEp says OK and gives nothing */
  FAULT_NO_GET_NAME,        /* a required slot */
  FAULT_NAME_IS_NULL,       /* GetName gives NULL */
  FAULT_NO_COMPILE,         /* Compile is NULL although nodes are fused */
  FAULT_NO_RELEASE_INFOS,   /* ReleaseNodeComputeInfos is NULL */
  FAULT_COMPILE_HALF,       /* Compile fills in the first info, then fails */
  FAULT_COMPILE_FORGETS,    /* Compile says OK, the last info stays NULL */
  FAULT_NO_COMPUTE,         /* OrtNodeComputeInfo::Compute is NULL */
  FAULT_NO_OUTPUT,          /* Compute says OK and makes nothing */
  FAULT_GROWS,              /* Compute makes its output one row longer than its input, all 7 */
  FAULT_SHAPE_CHANGES,      /* Compute asks for its output twice, with two shapes */
  FAULT_STATUS_SAYS_OK,     /* Compute gives a status whose code is ORT_OK */
  FAULT_KERNEL_IS_NULL,     /* the create function says OK and gives nothing */
  FAULT_NO_KERNEL_COMPUTE,  /* OrtKernelImpl::Compute is NULL */
  FAULT_NOT_CONCURRENT,     /* IsConcurrentRunSupported says no */
  FAULT_UNKNOWN_CONSTRAINT, /* kernels constrain a type parameter that no operator has */
  FAULT_OLD_EP,             /* the OrtEp says version 23: no GetKernelRegistry, no IsConcurrentRunSupported */
} RunFault;

typedef struct RunControl {
  /* What an EP claims, by node names: "fuse a b; drop c d; single e; null; empty; foreign; twice a".
   *   fuse: one group; drop: the same without constant initializers; single: a kernel's node;
   *   null: AddNodesToFuse with a NULL node; empty: with none; foreign: a node of the graph asked about
   * before; twice: one claim that lists the node twice. Names that the graph does not have are left out. "":
   * nothing. */
  const char* claims[RUN_EP_COUNT];
  RunFault fault;
  bool has_run_hooks;
  bool claims_no_converted;                /* nodes of the internal NHWC domain are not claimed */
  bool has_layout;                         /* the EP has the two slots about layouts */
  int layout;                              /* what GetPreferredDataLayout says, an OrtEpDataLayout */
  const char* refused_op;                  /* ShouldConvertDataLayoutForOp: 0 for it */
  const char* wanted_op;                   /* the same: 1; else -1 */
  const uint64_t* budget;                  /* what GetAvailableResource says, in bytes; NULL: of no kind */
  long fail_at;                            /* the nth callback that can fail fails, from 0; negative: none */
  _Atomic long callbacks;                  /* callbacks that can fail, so far */
  _Atomic int eps, infos, states, kernels; /* alive */
  _Atomic int runs_now, most_runs_at_once; /* Compute calls */
  _Atomic int run_starts, run_ends;
  int refusals;          /* errors that the host gave to a claim */
  char seen_ep_name[32]; /* what Node_GetEpName told OtherEp about "probe"; "" for NULL */
  char last_fused_name[128], last_state_name[128];
  size_t last_input_count; /* of the last fused node that was compiled */
  int compile_calls;
  char dynamic_option[64];
  OrtStatus* (*on_kernel_info)(const OrtKernelInfo* info); /* called while a kernel is created */
  OrtStatus* (*on_compute)(OrtKernelContext* context);     /* called before a kernel or fused node computes */
} RunControl;

typedef RunControl* (*RunPluginControlFn)(void);

#endif
