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

/* Begins a loan: notes how its objects (0: no more) are now, with nobody but Python's side of the node having
 * them. weak: for each, how far in it has its list of weak references. a is an array if is_array. borrows the
 * objects until the last bridge_worst_loan. */
void bridge_lend(BridgeLoan* loan, const uintptr_t* weak, int is_array, uintptr_t a, uintptr_t b, uintptr_t c,
                 uintptr_t d) {
  const uintptr_t objects[BRIDGE_LENT_OBJECTS] = {a, b, c, d};
  size_t count = 0;
  for (; count < BRIDGE_LENT_OBJECTS && objects[count]; count++) {
    loan->objects[count] = objects[count];
    loan->weak[count] = weak[count] ? objects[count] + weak[count] : 0;
    loan->references[count] = word_at(objects[count]);
  }
  loan->count = count;
  loan->is_array = is_array;
  loan->is_odd = is_array && !fits((const Array*)a);
  if (is_array && !loan->is_odd) describe((const Array*)a, loan->fields);
}

static bool looks_as_before(const BridgeLoan* loan) {
  intptr_t now[BRIDGE_LENT_FIELDS];
  const Array* array = (const Array*)loan->objects[0];
  if (loan->is_odd || !fits(array)) return false;
  return !memcmp(now, loan->fields, describe(array, now) * sizeof *now);
}

static BridgeLoanState state_of(const BridgeLoan* loan) {
  bool same = true;
  for (size_t i = 0; i < loan->count; i++) {
    intptr_t references = word_at(loan->objects[i]);
    if (references > loan->references[i]) return BRIDGE_LOAN_KEPT;
    same = same && references == loan->references[i];
    same = same && !(loan->weak[i] && word_at(loan->weak[i]));
  }
  same = same && (!loan->is_array || looks_as_before(loan));
  return same ? BRIDGE_LOAN_AS_IT_WAS : BRIDGE_LOAN_CHANGED;
}

/* The worst of what somebody did to the objects of loans since: a BridgeLoanState. */
int bridge_worst_loan(BridgeLoan* const* loans, size_t count) {
  BridgeLoanState worst = BRIDGE_LOAN_AS_IT_WAS;
  for (size_t i = 0; i < count && worst != BRIDGE_LOAN_KEPT; i++) {
    BridgeLoanState state = state_of(loans[i]);
    if (state > worst) worst = state;
  }
  return (int)worst;
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
