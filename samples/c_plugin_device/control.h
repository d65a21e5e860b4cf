/* What tests watch and change in the virtual device. */
#ifndef VIRTUAL_DEVICE_CONTROL_H
#define VIRTUAL_DEVICE_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

/* Exported by virtual_device_control(). Counters only grow. */
typedef struct VirtualDeviceControl {
  _Atomic int max_delay_us; /* every task of a stream first sleeps a random time up to this */
  _Atomic int64_t
      drop_wait; /* the wait of this number (waits_on_device + waits_on_host) is left out; -1: none */
  _Atomic int reads_late; /* copies from host memory on a stream read it when the stream comes to them */
  _Atomic int has_no_peer_copies;   /* devices of the library do not copy to each other */
  _Atomic int has_plain_allocators; /* those made from now on have no AllocOnStream */
  char failing_callback[64];        /* a call of this callback fails; emptied by it */
  char giving_nothing[64];          /* a call of this callback says OK and gives nothing; emptied by it */
  _Atomic int failing_after;        /* so many of its calls go well before that */
  _Atomic uint64_t copies_to_device, copies_to_host, copies_on_device, copies_with_stream;
  _Atomic uint64_t waits_on_device, waits_on_host, notifications, activations;
  _Atomic uint64_t streams, flushes, run_ends, launches, syncs, run_starts;
  _Atomic uint64_t read_only_allocations, stream_allocations;
  _Atomic uint64_t captures, replays;
  _Atomic int64_t live_chunks;  /* allocations not freed yet, device and host-accessible */
  _Atomic int64_t live_objects; /* streams, notifications, allocators, transfers, EPs, programs */
} VirtualDeviceControl;

#endif
