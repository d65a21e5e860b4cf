/* Order among streams. Steps are called one after the other, but work on a stream may go on after its call:
 * who reads what another stream makes waits for it, and what such work still reads is kept to the end of the
 * run. Streams that know each other wait on the device for what lies there, else the host waits. */
#include "create/create.h"

typedef struct Order {
  const OrtSession* session;
  Plan* plan;
  size_t* producer; /* a slot: the step that makes it, counted from 1; 0: none */
  size_t* needed;   /* a stream: the last step of it that the current step needs, likewise */
  bool* is_on_host; /* a stream: what is needed of it must be there when the step is called */
  size_t* seen;     /* [consumer][producer]: the last step of a stream that later work of another comes after.
                       What the calling thread (consumer 0) has waited for all later work comes after. */
  size_t count;     /* of streams */
} Order;

static size_t* seen_by(const Order* order, size_t consumer) {
  return order->seen + consumer * order->count;
}

static bool is_one_kind(const OrtMemoryDevice* a, const OrtMemoryDevice* b) {
  return a->device_type == b->device_type && a->vendor_id == b->vendor_id;
}

/* True when the two streams, of a run, know each other: one library made them, for devices of one kind. */
static bool can_wait_on_device(const OrtSession* session, size_t consumer, size_t producer) {
  if (consumer == 0) return false;
  const SessionEp *a = session->streams[consumer].ep, *b = session->streams[producer].ep;
  return a->devices[0]->library == b->devices[0]->library &&
         is_one_kind(&session->places[a->place].memory->device, &session->places[b->place].memory->device);
}

/* Finds what the step needs of other streams. Returns of how many. Host memory may be read as soon as the
 * step is called, even by a copy that runs on a stream. */
static size_t find_needs(Order* order, const Step* step) {
  size_t count = 0;
  for (size_t i = 0; i < order->count; i++) order->needed[i] = 0, order->is_on_host[i] = false;
  for (size_t i = 0; i < step->read_count; i++) {
    size_t made_by = step->inputs[i] >= 0 ? order->producer[step->inputs[i]] : 0;
    if (made_by == 0) continue;
    int32_t stream = order->plan->steps[made_by - 1].stream;
    if (stream == 0 || stream == step->stream) continue;
    bool is_on_host = order->plan->slots[step->inputs[i]].place == 0 ||
                      !can_wait_on_device(order->session, (size_t)step->stream, (size_t)stream);
    size_t seen = seen_by(order, 0)[stream];
    if (!is_on_host && seen < seen_by(order, (size_t)step->stream)[stream])
      seen = seen_by(order, (size_t)step->stream)[stream];
    if (seen >= made_by) continue;
    count += order->needed[stream] == 0;
    if (order->needed[stream] < made_by) order->needed[stream] = made_by;
    order->is_on_host[stream] = order->is_on_host[stream] || is_on_host;
  }
  return count;
}

static OrtStatus* add_waits(Order* order, Arena* arena, Step* step) {
  size_t count = find_needs(order, step);
  if (count == 0) return NULL;
  Wait* waits = arena_calloc(arena, count, sizeof *waits);
  if (waits == NULL) return status_no_memory();
  for (size_t i = 0; i < order->count; i++) {
    if (order->needed[i] == 0) continue;
    Step* made_by = &order->plan->steps[order->needed[i] - 1];
    bool is_on_device = !order->is_on_host[i];
    if (made_by->notification < 0) made_by->notification = (int32_t)order->plan->notification_count++;
    waits[step->wait_count++] = (Wait){made_by->notification, is_on_device};
    seen_by(order, is_on_device ? (size_t)step->stream : 0)[i] = order->needed[i];
  }
  step->waits = waits;
  return NULL;
}

/* What the step's work reads after the call, from memory that its stream does not order. */
static void hold_inputs(Order* order, const Step* step) {
  if (step->stream == 0) return;
  for (size_t i = 0; i < step->read_count; i++) {
    Slot* slot = step->inputs[i] >= 0 ? &order->plan->slots[step->inputs[i]] : NULL;
    if (slot == NULL || slot->kind != SLOT_INTERMEDIATE) continue;
    if (slot->place != 0 && slot->stream == step->stream) continue;
    slot->is_held = order->plan->has_held = true;
  }
}

OrtStatus* plan_order(OrtSession* session, Plan* plan) {
  OrtStatus* status = NULL;
  Order order = {.session = session, .plan = plan, .count = session->stream_count};
  for (size_t i = 0; i < plan->step_count; i++) plan->steps[i].notification = -1;
  if (order.count < 2) return NULL; /* no work goes on after its call */
  order.producer = mem_calloc(plan->slot_count, sizeof *order.producer);
  order.needed = mem_calloc(order.count, sizeof *order.needed);
  order.is_on_host = mem_calloc(order.count, sizeof *order.is_on_host);
  order.seen = mem_calloc(order.count * order.count, sizeof *order.seen);
  if (order.producer == NULL || order.needed == NULL || order.is_on_host == NULL || order.seen == NULL)
    TRY_DONE(status_no_memory());
  for (size_t i = 0; i < plan->step_count; i++) {
    Step* step = &plan->steps[i];
    TRY_DONE(add_waits(&order, &session->arena, step));
    hold_inputs(&order, step);
    for (size_t k = 0; k < step->output_count; k++) {
      if (step->outputs[k] >= 0) order.producer[step->outputs[k]] = i + 1;
    }
  }
done:
  mem_free(order.producer);
  mem_free(order.needed);
  mem_free(order.is_on_host);
  mem_free(order.seen);
  return status;
}
