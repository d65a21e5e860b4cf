/* run: how a session runs. Any number of threads at once, each with a frame of its own. */
#ifndef ORT_ABI_RUN_H
#define ORT_ABI_RUN_H

#include "session/session.h"

/* ---- frame.c: the memory of one Run ---- */

/* gives (caller releases with frame_put). Any thread. NULL: no memory. */
Frame* frame_get(OrtSession* session, Plan* plan);
void frame_put(Frame* frame);  /* releases: the values of the run, and keeps the frame for the next one */
void frame_free(Frame* frame); /* releases */
/* Frees what idle frames keep in a place. Any thread. */
void frames_drop_buffers(OrtSession* session, int32_t place);
/* Makes the value of an intermediate slot in the frame's own memory; strings on the heap. `reuse`: a slot
 * whose buffer is taken over, or -1. */
OrtStatus* frame_make(Frame* frame, int32_t slot, size_t rank, const int64_t* dims, int32_t reuse);
void frame_drop(Frame* frame, int32_t slot); /* releases an intermediate's value */

/* ---- executor.c ---- */

/* What a run says that the client stopped: stock ORT's words, which clients look for. */
#define RUN_TERMINATED "Exiting due to terminate flag being set to true."

OrtStatus* session_run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
                       const OrtValue* const* inputs, size_t input_count, const char* const* output_names,
                       size_t output_count, OrtValue** outputs, const OrtMemoryInfo* const* output_memories);
/* The steps of a bound frame's plan, and around them what values on devices need. */
OrtStatus* frame_run(Frame* frame);
/* releases what a run left in the frame; what the caller gave stays the caller's. */
void frame_clean(Frame* frame, bool has_failed);

/* What a bound frame's run does: frame_run, and before and after it what EPs do. */
OrtStatus* run_bound(Frame* frame);

/* ---- shrink.c: runs that give memory back ---- */

/* An error if the run options ask for something else than there is. */
OrtStatus* shrink_check(const OrtSession* session, const OrtRunOptions* options);
/* Gives back what nobody uses where the (checked) options say so. The run is done: a failure is logged. */
void shrink_after(OrtSession* session, const OrtRunOptions* options);

/* ---- graph_capture.c: runs that an EP records and replays ---- */

/* Finds the EP that captures graphs. An error if it cannot with this model. */
OrtStatus* graph_capture_open(OrtSession* session);
void graph_capture_close(OrtSession* session); /* releases the frames of the graphs */
/* Replays the graph that the run options name, or runs until the EP has captured it. */
OrtStatus* graph_capture_run(Frame* frame);

/* ---- run_devices.c: a Run with values on devices ---- */

/* The frame's stream `stream`, if memory of the place may be allocated on it; else NULL. borrows. */
OrtSyncStream* stream_for_memory(const Frame* frame, int32_t stream, int32_t place);

/* Opens the streams and puts inputs where they are read. After a failure too, devices_end is called. */
OrtStatus* devices_begin(Frame* frame);
OrtStatus* devices_wait(Frame* frame, const Step* step);   /* before a step that has waits */
OrtStatus* devices_notify(Frame* frame, const Step* step); /* behind a step that has a notification */
OrtStatus* devices_copy(Frame* frame, const Step* step);   /* what a copy step does */
/* Copies outputs to where the caller wants them. */
OrtStatus* devices_fetch(Frame* frame);
/* takes `status` of the run so far. Waits for all work, tells the EPs; a first failure is given. */
OrtStatus* devices_end(Frame* frame, OrtStatus* status);
/* gives a copy of `source` in `*out`, or fills the value there: shapes must be equal. */
OrtStatus* copy_to_output(Frame* frame, const OutputSpec* spec, const OrtValue* source,
                          const OrtMemoryInfo* memory, OrtSyncStream* stream, OrtValue** out);
/* run_inputs.c: checks what the caller gave and puts it in the frame. */
OrtStatus* bind_inputs(Frame* frame, const char* const* names, const OrtValue* const* values, size_t count);
OrtStatus* bind_outputs(Frame* frame, const char* const* names, OrtValue* const* values, size_t count);
/* run_subset.c: for a bound frame that lacks demanded inputs. Sets Frame::is_skipped, so that what the wanted
 * outputs do not need does not run. An error if they need a missing input. */
OrtStatus* skip_unneeded(Frame* frame);

#endif
