/* What a kernel has in hand during a run, and whether it is still as it was afterwards. No function here
 * needs the GIL: a thread that could change a reference count would have a reference, which is what is looked
 * for. */
#include <string.h>

#include "bridge.h"

/* A NumPy array as the extension ABI of NumPy 1 and 2 lays it out (PyArrayObject_fields, "ndarraytypes.h").
 * Python holds it against a real array at import (bridge_array_fields), and lends nothing if it differs. */
typedef struct Array {
  intptr_t references;
  void* type;
  char* data;
  int rank;
  intptr_t* dims;
  intptr_t* strides;
  void* base;
  void* descr;
  int flags;
} Array;

/* A word of a living object. CPython has the reference count in the first. */
static intptr_t word_at(uintptr_t address) {
  return *(const volatile intptr_t*)address;
}

static bool fits(const Array* array) {
  return array->rank >= 0 && array->rank <= BRIDGE_LENT_RANK;
}

/* What must not change while an array is in other hands. Returns how many numbers there are. */
static size_t describe(const Array* array, intptr_t* out) {
  const size_t rank = (size_t)array->rank;
  out[0] = array->rank;
  out[1] = (intptr_t)array->data;
  out[2] = (intptr_t)array->base;
  out[3] = (intptr_t)array->descr;
  out[4] = array->flags;
  if (rank) memcpy(out + 5, array->dims, rank * sizeof *out);
  if (rank) memcpy(out + 5 + rank, array->strides, rank * sizeof *out);
  return 5 + 2 * rank;
}

/* For the check of the layout: what describe finds, at most BRIDGE_LENT_FIELDS numbers. */
size_t bridge_array_fields(uintptr_t array, intptr_t* out) {
  const Array* fields = (const Array*)array;
  return fits(fields) ? describe(fields, out) : 0;
}

/* The reference count of a living object. */
intptr_t bridge_references(uintptr_t object) {
  return word_at(object);
}

/* Notes how loan's objects are now, with nobody but Python's side of the node having them. borrows them until
 * the last bridge_loan_state. */
void bridge_lend(BridgeLoan* loan) {
  for (size_t i = 0; i < loan->count; i++) loan->references[i] = word_at(loan->objects[i]);
  loan->is_odd = loan->is_array && !fits((const Array*)loan->objects[0]);
  if (loan->is_array && !loan->is_odd) describe((const Array*)loan->objects[0], loan->fields);
}

static bool looks_as_before(const BridgeLoan* loan) {
  intptr_t now[BRIDGE_LENT_FIELDS];
  const Array* array = (const Array*)loan->objects[0];
  if (loan->is_odd || !fits(array)) return false;
  return !memcmp(now, loan->fields, describe(array, now) * sizeof *now);
}

/* What somebody did to it since: a BridgeLoanState. */
int bridge_loan_state(const BridgeLoan* loan) {
  bool same = true;
  for (size_t i = 0; i < loan->count; i++) {
    intptr_t references = word_at(loan->objects[i]);
    if (references > loan->references[i]) return BRIDGE_LOAN_KEPT;
    same = same && references == loan->references[i];
    same = same && !(loan->weak[i] && word_at(loan->objects[i] + loan->weak[i]));
  }
  same = same && (!loan->is_array || looks_as_before(loan));
  return same ? BRIDGE_LOAN_AS_IT_WAS : BRIDGE_LOAN_CHANGED;
}

/* True if all that the next run is to use again is as it was. */
bool bridge_run_is_clean(const BridgeRun* run) {
  for (size_t i = 0; i < run->num_loans; i++)
    if (bridge_loan_state(run->loans[i]) != BRIDGE_LOAN_AS_IT_WAS) return false;
  return true;
}

/* The inputs that authors get as copies get this run's elements. */
void bridge_run_copy_inputs(const BridgeRun* run) {
  for (size_t i = 0; i < run->num_inputs; i++) {
    const BridgeCopy* copy = &run->copies[i];
    if (copy->to) memcpy(copy->to, copy->from, copy->bytes);
  }
}

/* The outputs that authors write elsewhere. Returns false after a failure, recorded in run->call. */
bool bridge_run_copy_outputs(const BridgeRun* run) {
  for (size_t i = 0; i < run->num_copied_outputs; i++)
    if (!bridge_put(run->copied_outputs[i], run->copied_outputs[i]->source)) return false;
  return true;
}
