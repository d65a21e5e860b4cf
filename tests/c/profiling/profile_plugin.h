/* How a test steers profile_plugin.so: the sample provider (Add, Mul, Relu, compiled) with a profiler. */
#ifndef TESTS_C_PROFILE_PLUGIN_H
#define TESTS_C_PROFILE_PLUGIN_H

#include <stdatomic.h>

#include "ort_abi.h"

typedef enum ProfileFault {
  PROFILE_FINE,
  PROFILE_NONE,         /* CreateProfiler gives NULL */
  PROFILE_NO_EVENTS,    /* StartEvent and StopEvent are NULL */
  PROFILE_VERSION_0,    /* the profiler carries no version */
  PROFILE_OLD_EP,       /* the OrtEp says 24: CreateProfiler is not its own */
  PROFILE_OLD,          /* the profiler says 24: before there were any */
  PROFILE_NO_END,       /* a required slot is NULL */
  PROFILE_CREATE_FAILS, /* these four give a status */
  PROFILE_START_FAILS,
  PROFILE_EVENTS_FAIL,
  PROFILE_END_FAILS,
} ProfileFault;

typedef struct ProfileControl {
  ProfileFault fault;
  _Atomic int creates, alive;  /* profilers */
  _Atomic int starts, ends;    /* StartProfiling, EndProfiling */
  _Atomic int begun, finished; /* events */
  _Atomic int out_of_order;    /* StopEvent for another event than the thread's last one, or an id twice */
  _Atomic int late;            /* events outside of StartProfiling ... EndProfiling */
  int64_t start_offset_ns;
} ProfileControl;

typedef ProfileControl* (*ProfileControlFn)(void);

#endif
