/* Runs that lack inputs: fine where only outputs need them that nobody has asked for. */
#include "run/run.h"

/* Marks the slots that the wanted outputs need, and the steps that none of them needs. */
static void mark_needed(const Frame* frame, uint8_t* slots, uint8_t* is_skipped) {
  const Plan* plan = frame->plan;
  for (size_t i = 0; i < plan->output_count; i++) {
    if (frame->output_place[i] != 0) slots[plan->outputs[i].slot] = 1;
  }
  for (size_t i = plan->step_count; i-- > 0;) {
    const Step* step = &plan->steps[i];
    bool is_needed = false;
    for (size_t k = 0; k < step->output_count && !is_needed; k++)
      is_needed = step->outputs[k] >= 0 && slots[step->outputs[k]];
    is_skipped[i] = !is_needed;
    for (size_t k = 0; k < step->read_count && is_needed; k++) {
      if (step->inputs[k] >= 0) slots[step->inputs[k]] = 1;
    }
  }
}

/* An error that names what is missing of the slots that are needed; NULL: nothing is. */
static OrtStatus* missing_inputs(const Frame* frame, const uint8_t* slots) {
  const Plan* plan = frame->plan;
  StrBuf missing = {0};
  OrtStatus* status = NULL;
  for (size_t i = 0; i < plan->required_count; i++) {
    const InputSpec* spec = &plan->inputs[i];
    if (frame->input_given[i] || !slots[spec->slot]) continue;
    strbuf_append(&missing, "%s%s", missing.length == 0 ? "" : ", ", spec->name);
  }
  if (missing.length != 0 || missing.failed)
    status = status_new(ORT_INVALID_ARGUMENT, "Missing Input: %s", missing.failed ? "?" : missing.text);
  strbuf_release(&missing);
  return status;
}

OrtStatus* skip_unneeded(Frame* frame) {
  uint8_t* slots = mem_calloc(frame->plan->slot_count, sizeof *slots);
  uint8_t* is_skipped = mem_calloc(frame->plan->step_count, sizeof *is_skipped);
  OrtStatus* status = NULL;
  if (slots == NULL || is_skipped == NULL) TRY_DONE(status_no_memory());
  mark_needed(frame, slots, is_skipped);
  TRY_DONE(missing_inputs(frame, slots));
  frame->is_skipped = is_skipped;
  is_skipped = NULL;
done:
  mem_free(slots);
  mem_free(is_skipped);
  return status;
}
