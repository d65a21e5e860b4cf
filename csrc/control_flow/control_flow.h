/* Kernels that run subgraphs. Their nodes' steps have bodies: plans of their own, which borrow streams,
 * options and captured values from the run around them. */
#ifndef ORT_ABI_CONTROL_FLOW_H
#define ORT_ABI_CONTROL_FLOW_H

#include "run/run.h"

/* ---- body.c: one subgraph while its node is computed ---- */

typedef struct BodyRun {
  OrtKernelContext* context; /* the node's */
  const Body* body;
  Frame* frame;                   /* taken once, used for every iteration */
  OrtValue** outputs;             /* what the last run made; owned, to be taken */
  const OrtMemoryInfo** memories; /* where outputs are to lie; NULL: in host memory */
  bool has_memories;
} BodyRun;

typedef struct BodyInput {
  OrtValue* value;
  bool is_owned; /* a run of the body made it: it may become an output as it is */
} BodyInput;

/* Takes a frame for subgraph `index` of the context's node. Output i of the body is output i - `offset` of
 * the node. body_close is called after a failure too. */
OrtStatus* body_open(OrtKernelContext* context, size_t index, size_t offset, BodyRun* out);
void body_close(BodyRun* run); /* releases the outputs that nobody took */
/* Runs the body once. borrows the inputs, one for each input of the graph. */
OrtStatus* body_run(BodyRun* run, const BodyInput* inputs);

/* takes `*value` (and clears it): output `index` of the node. Copies only where it has to. */
OrtStatus* give_output(OrtKernelContext* context, size_t index, OrtValue** value);
/* copies. */
OrtStatus* copy_output(OrtKernelContext* context, size_t index, const OrtValue* value);
/* borrows: output `index`, of the element type of `like`, which must be the model's; NULL if nobody wants it.
 */
OrtStatus* typed_output(OrtKernelContext* context, size_t index, const OrtValue* like, const int64_t* dims,
                        size_t rank, OrtValue** out);
/* The same: [`length`, dims of item...] */
OrtStatus* stacked_output(OrtKernelContext* context, size_t index, int64_t length, const OrtValue* item,
                          OrtValue** out);
/* Fills `target` with `source`, of the same shape and type. */
OrtStatus* copy_value(OrtKernelContext* context, const OrtValue* source, OrtValue* target);
/* Makes output `index` of the node with no elements: `length` 0 at `axis` of what the body would make. */
OrtStatus* empty_output(OrtKernelContext* context, size_t index, const OrtValueInfo* item, int64_t axis);
/* The only element of a tensor, wherever it lies. `what`: for messages. */
OrtStatus* read_bool(OrtKernelContext* context, const OrtValue* value, const char* what, bool* out);
OrtStatus* read_int64(OrtKernelContext* context, const OrtValue* value, const char* what, int64_t* out);
/* A status if the run was terminated. */
OrtStatus* check_terminated(const OrtKernelContext* context);
/* The stream of the node's EP in this run, or NULL. borrows. */
OrtSyncStream* ep_stream(const OrtKernelContext* context);
/* takes `status`. Waits for what the kernel started on its EP's stream: its step is on none. */
OrtStatus* finish_stream(OrtKernelContext* context, OrtStatus* status);

/* ---- control_flow.c ---- */

/* Place of the attribute's graph among the node's subgraphs. */
OrtStatus* find_subgraph(const OrtNode* node, const char* attribute, size_t* out);
/* The context's step must be the node that the kernel was made for. */
OrtStatus* check_context(const OrtKernelContext* context, const OrtNode* node);
OrtStatus* check_helper(uint32_t version, bool has_release, bool has_function, const char* names,
                        const OrtKernelInfo* info);

#endif
