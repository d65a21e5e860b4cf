/* Order among streams. Steps are called one after the other, but work on a stream may go on after its call:
 * who reads what another stream makes waits for it, and what such work still reads is kept to the end of the
 * run. */
#include "run/run.h"

typedef struct Order {
  Plan* plan;
  Arena* arena;
  size_t* producer; /* a slot: the step that makes it, counted from 1; 0: none */
  size_t* waited;   /* a place: the last step on its stream that the host has waited for, counted from 1 */
  size_t* needed;   /* a place: what the current step needs, likewise */
  size_t place_count;
} Order;

static OrtStatus* add_waits(Order* order, Step* step) {
  size_t count = 0;
  for (size_t i = 0; i < order->place_count; i++) order->needed[i] = 0;
  for (size_t i = 0; i < step->read_count; i++) {
    size_t made_by = step->inputs[i] >= 0 ? order->producer[step->inputs[i]] : 0;
    if (made_by == 0) continue;
    int32_t stream = order->plan->steps[made_by - 1].stream;
    if (stream == 0 || stream == step->stream || order->waited[stream] >= made_by) continue;
    count += order->needed[stream] == 0;
    if (order->needed[stream] < made_by) order->needed[stream] = made_by;
  }
  if (count == 0) return NULL;
  int32_t* waits = arena_calloc(order->arena, count, sizeof *waits);
  if (waits == NULL) return status_no_memory();
  for (size_t i = 0; i < order->place_count; i++) {
    if (order->needed[i] == 0) continue;
    Step* made_by = &order->plan->steps[order->needed[i] - 1];
    if (made_by->notification < 0) made_by->notification = (int32_t)order->plan->notification_count++;
    waits[step->wait_count++] = made_by->notification;
    order->waited[i] = order->needed[i];
  }
  step->waits = waits;
  return NULL;
}

/* What the step's work reads after the call, from memory that its stream does not order. */
static void hold_inputs(Order* order, const Step* step) {
  if (step->stream == 0) return;
  for (size_t i = 0; i < step->read_count; i++) {
    Slot* slot = step->inputs[i] >= 0 ? &order->plan->slots[step->inputs[i]] : NULL;
    if (slot == NULL || slot->kind != SLOT_INTERMEDIATE || slot->place == step->stream) continue;
    slot->is_held = order->plan->has_held = true;
  }
}

OrtStatus* plan_order(OrtSession* session, Plan* plan) {
  OrtStatus* status = NULL;
  Order order = {.plan = plan, .arena = &session->arena, .place_count = session->place_count};
  for (size_t i = 0; i < plan->step_count; i++) plan->steps[i].notification = -1;
  if (session->place_count < 2) return NULL;
  order.producer = mem_calloc(plan->slot_count, sizeof *order.producer);
  order.waited = mem_calloc(session->place_count, sizeof *order.waited);
  order.needed = mem_calloc(session->place_count, sizeof *order.needed);
  if (order.producer == NULL || order.waited == NULL || order.needed == NULL) TRY_DONE(status_no_memory());
  for (size_t i = 0; i < plan->step_count; i++) {
    Step* step = &plan->steps[i];
    TRY_DONE(add_waits(&order, step));
    hold_inputs(&order, step);
    for (size_t k = 0; k < step->output_count; k++) {
      if (step->outputs[k] >= 0) order.producer[step->outputs[k]] = i + 1;
    }
  }
done:
  mem_free(order.producer);
  mem_free(order.waited);
  mem_free(order.needed);
  return status;
}
