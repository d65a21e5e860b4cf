/* Plans: which unit runs when, where each value lies, and when nobody needs it any more. */
#include <string.h>

#include "create/create.h"

/* Slots are numbered as values are met. One for each graph. */
typedef struct Planner {
  OrtSession* session;
  Plan* plan;
  Arena* arena;
  size_t copy_capacity; /* an upper bound of the copies between places */
} Planner;

static const OrtTensorTypeAndShapeInfo* tensor_of(const OrtValueInfo* value) {
  return value->type != NULL && value->type->kind == ONNX_TYPE_TENSOR ? value->type->tensor : NULL;
}

/* The same of what a caller gives for it: an optional one is there. */
static const OrtTensorTypeAndShapeInfo* given_tensor(const OrtValueInfo* value) {
  const OrtTypeInfo* type = value->type;
  if (type != NULL && type->kind == ONNX_TYPE_OPTIONAL) type = type->optional.element;
  return type != NULL && type->kind == ONNX_TYPE_TENSOR ? type->tensor : NULL;
}

/* A new slot for the value, or the one it has. */
static int32_t slot_for(Planner* planner, OrtValueInfo* value, SlotKind kind) {
  if (value->slot >= 0) return (int32_t)value->slot;
  const OrtTensorTypeAndShapeInfo* tensor = tensor_of(value);
  Slot* slot = &planner->plan->slots[planner->plan->slot_count];
  slot->value = value;
  slot->kind = kind;
  slot->element_type = tensor != NULL ? tensor->element_type : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  slot->output = -1;
  slot->next_copy = -1;
  value->slot = (int64_t)planner->plan->slot_count++;
  return (int32_t)value->slot;
}

/* ---- Inputs and outputs of the graph ---- */

static OrtStatus* add_input(Planner* planner, OrtValueInfo* value) {
  Plan* plan = planner->plan;
  InputSpec* spec = &plan->inputs[plan->input_count++];
  *spec = (InputSpec){.value = value,
                      .name = value->name,
                      .slot = slot_for(planner, value, SLOT_INPUT),
                      .is_required = value->initializer == NULL,
                      .tensor = given_tensor(value)};
  return name_map_put(&plan->input_names, spec->name, spec) ? NULL : status_no_memory();
}

/* Of a subgraph: all are given, and so is what it captures, but for constants. */
static OrtStatus* plan_body_inputs(Planner* planner) {
  Plan* plan = planner->plan;
  const OrtGraph* graph = plan->graph;
  plan->inputs =
      arena_calloc(planner->arena, graph->input_count + graph->captured_count, sizeof *plan->inputs);
  if (plan->inputs == NULL) return status_no_memory();
  for (size_t i = 0; i < graph->input_count; i++) TRY(add_input(planner, graph->inputs[i]));
  plan->required_count = plan->input_count;
  for (size_t i = 0; i < graph->captured_count; i++) {
    if (!graph->captured[i]->is_constant) TRY(add_input(planner, graph->captured[i]));
  }
  return NULL;
}

static OrtStatus* plan_inputs(Planner* planner) {
  Plan* plan = planner->plan;
  const OrtGraph* graph = plan->graph;
  plan->inputs = arena_calloc(planner->arena, graph->input_count, sizeof *plan->inputs);
  if (plan->inputs == NULL) return status_no_memory();
  for (size_t i = 0; i < graph->input_count; i++) {
    if (graph->inputs[i]->initializer == NULL) TRY(add_input(planner, graph->inputs[i]));
  }
  plan->required_count = plan->input_count;
  for (size_t i = 0; i < graph->input_count; i++) {
    const OrtValueInfo* value = graph->inputs[i];
    if (value->initializer != NULL && !value->is_constant) TRY(add_input(planner, graph->inputs[i]));
  }
  return NULL;
}

static OrtStatus* plan_outputs(Planner* planner) {
  Plan* plan = planner->plan;
  const OrtGraph* graph = plan->graph;
  plan->outputs = arena_calloc(planner->arena, graph->output_count, sizeof *plan->outputs);
  if (plan->outputs == NULL) return status_no_memory();
  for (size_t i = 0; i < graph->output_count; i++) {
    OrtValueInfo* value = graph->outputs[i];
    bool is_produced = value->producer != NULL;
    if (!is_produced && value->initializer == NULL && value->slot < 0)
      return status_new(ORT_INVALID_GRAPH, "nothing makes the output '%s' of graph '%s'", value->name,
                        graph->name);
    OutputSpec* spec = &plan->outputs[i];
    const OutputSpec* first = name_map_get(&plan->output_names, value->name);
    *spec = (OutputSpec){.value = value,
                         .name = value->name,
                         .slot = slot_for(planner, value, is_produced ? SLOT_OUTPUT : SLOT_CONSTANT),
                         .is_copied = !is_produced,
                         .first = first != NULL ? first->first : i,
                         .tensor = tensor_of(value)};
    plan->output_count = i + 1;
    if (first != NULL) continue;
    Slot* slot = &plan->slots[spec->slot];
    if (is_produced) slot->output = (int32_t)i;
    /* A caller of Run can do without what a kernel does not make. */
    slot->is_needed = slot->is_needed || !is_produced || graph->parent_node != NULL;
    if (!name_map_put(&plan->output_names, spec->name, spec)) return status_no_memory();
  }
  return NULL;
}

/* ---- Steps ---- */

/* A node that stands for a copy, so that it has a name in messages and in the plan. */
static OrtNode* copy_node(Planner* planner, const OrtValueInfo* value, bool is_to_host) {
  const char* op = is_to_host ? "MemcpyToHost" : "MemcpyFromHost";
  OrtNode* node = arena_alloc(planner->arena, sizeof *node);
  size_t room = strlen(op) + strlen(value->name) + 2;
  char* name = arena_alloc(planner->arena, room);
  if (node == NULL || name == NULL) return NULL;
  memcpy(name, op, strlen(op));
  name[strlen(op)] = '_';
  memcpy(name + strlen(op) + 1, value->name, strlen(value->name) + 1);
  *node = (OrtNode){.name = name, .op_type = (char*)op, .domain = (char*)"", .since_version = 1};
  return node;
}

/* `stream` if its EP can do such a copy itself, else 0. */
static int32_t copy_stream(const OrtSession* session, int32_t stream, const Slot* from, const Slot* to) {
  if (stream == 0) return 0;
  bool can =
      env_can_copy(session->env, session->streams[stream].ep->devices[0],
                   &session->places[from->place].memory->device, &session->places[to->place].memory->device);
  return can ? stream : 0;
}

/* `reader`: whose unit reads the result; NULL: it is read in host memory. */
static OrtStatus* add_copy_step(Planner* planner, int32_t from, int32_t to, SessionEp* reader) {
  Plan* plan = planner->plan;
  const OrtSession* session = planner->session;
  const Slot* source = &plan->slots[from];
  Slot* target = &plan->slots[to];
  int32_t readers = reader != NULL ? copy_stream(session, reader->stream, source, target) : 0;
  target->stream = readers != 0 ? readers : copy_stream(session, source->stream, source, target);
  SessionEp* ep = reader != NULL ? reader : session->places[source->place].ep;
  Unit* unit = arena_alloc(planner->arena, sizeof *unit);
  int32_t* slots = arena_calloc(planner->arena, 2, sizeof *slots);
  OrtNode* node = copy_node(planner, source->value, target->place == 0);
  if (unit == NULL || slots == NULL || node == NULL) return status_no_memory();
  slots[0] = from;
  slots[1] = to;
  *unit = (Unit){.ep = ep, .graph = plan->graph, .is_copy = true, .node = node};
  Step* step = &plan->steps[plan->step_count++];
  *step = (Step){.unit = unit,
                 .inputs = &slots[0],
                 .input_count = 1,
                 .read_count = 1,
                 .outputs = &slots[1],
                 .output_count = 1,
                 .stream = target->stream};
  return NULL;
}

/* True when the way from one place to the other is through host memory. */
static bool goes_through_host(const OrtSession* session, int32_t from, int32_t to) {
  return from != 0 && to != 0 &&
         !env_can_copy(session->env, NULL, &session->places[from].memory->device,
                       &session->places[to].memory->device);
}

/* The slot that shows the value of `slot` where `reader` (NULL: the host) reads it, in `place`: itself, a
 * copy that is there, or a new one. */
static OrtStatus* slot_in_place(Planner* planner, int32_t slot, int32_t place, SessionEp* reader,
                                int32_t* out) {
  Plan* plan = planner->plan;
  int32_t from = slot;
  bool is_constant = plan->slots[slot].kind == SLOT_CONSTANT;
  int32_t last = slot;
  for (int32_t at = slot; at >= 0; at = plan->slots[at].next_copy) {
    if (plan->slots[at].place == place) {
      *out = at;
      return NULL;
    }
    last = at;
  }
  if (!is_constant && goes_through_host(planner->session, plan->slots[slot].place, place)) {
    TRY(slot_in_place(planner, slot, 0, NULL, &from));
    while (plan->slots[last].next_copy >= 0) last = plan->slots[last].next_copy;
  }
  int32_t made = (int32_t)plan->slot_count++;
  Slot* source = &plan->slots[slot];
  plan->slots[made] = (Slot){.value = source->value,
                             .kind = is_constant ? SLOT_CONSTANT : SLOT_INTERMEDIATE,
                             .element_type = source->element_type,
                             .is_needed = true,
                             .output = -1,
                             .place = place,
                             .next_copy = -1};
  plan->slots[last].next_copy = made;
  *out = made;
  return is_constant ? NULL : add_copy_step(planner, from, made, reader);
}

/* Inputs may put copy steps before the unit's own. */
static OrtStatus* step_slots(Planner* planner, const Unit* unit, OrtValueInfo* const* values, size_t count,
                             bool is_input, int32_t stream, int32_t* slots) {
  for (size_t i = 0; i < count; i++) {
    OrtValueInfo* value = values[i];
    slots[i] = -1;
    if (value == NULL) continue;
    if (is_input && value->slot < 0 && value->initializer == NULL)
      return status_new(ORT_INVALID_GRAPH, "nothing makes the value '%s' that node '%s' of EP '%s' reads",
                        value->name, unit->node->name, unit->ep->name);
    slots[i] = slot_for(planner, value, is_input ? SLOT_CONSTANT : SLOT_INTERMEDIATE);
    Slot* slot = &planner->plan->slots[slots[i]];
    int32_t place = place_wanted(unit, i, !is_input, value);
    if (!is_input) {
      slot->place = place;
      slot->stream = stream;
      continue;
    }
    slot->is_needed = true;
    TRY(slot_in_place(planner, slots[i], place, place != 0 ? unit->ep : NULL, &slots[i]));
  }
  return NULL;
}

static OrtStatus* plan_graph(OrtSession* session, Plan* plan, OrtGraph* graph);

/* Plans the subgraphs of a node that a kernel runs. *captured: how many values they capture. */
static OrtStatus* plan_bodies(Planner* planner, const OrtNode* node, Body** out, size_t* captured) {
  *captured = 0;
  *out = NULL;
  if (node->subgraph_count == 0) return NULL;
  Body* bodies = arena_calloc(planner->arena, node->subgraph_count, sizeof *bodies);
  if (bodies == NULL) return status_no_memory();
  for (size_t i = 0; i < node->subgraph_count; i++) {
    Plan* plan = arena_alloc(planner->arena, sizeof *plan);
    if (plan == NULL) return status_no_memory();
    Plan* first = &planner->session->plan;
    plan->next = first->next;
    first->next = plan;
    bodies[i].plan = plan;
    TRY(plan_graph(planner->session, plan, node->subgraphs[i]));
    *captured += plan->input_count - plan_captured(plan);
  }
  *out = bodies;
  return NULL;
}

/* What the bodies capture is read in host memory. `slots`: room for all. */
static OrtStatus* captured_slots(Planner* planner, const Unit* unit, Body* bodies, int32_t* slots) {
  for (size_t i = 0; i < unit->node->subgraph_count; i++) {
    const Plan* plan = bodies[i].plan;
    bodies[i].captured = slots;
    for (size_t k = plan_captured(plan); k < plan->input_count; k++) {
      const OrtValueInfo* outer = plan->inputs[k].value->outer;
      if (outer->slot < 0)
        return status_new(ORT_INVALID_GRAPH,
                          "nothing makes the value '%s' that subgraphs of node '%s' of EP '%s' read",
                          outer->name, unit->node->name, unit->ep->name);
      planner->plan->slots[outer->slot].is_needed = true;
      TRY(slot_in_place(planner, (int32_t)outer->slot, 0, NULL, slots++));
    }
  }
  return NULL;
}

static OrtStatus* plan_step(Planner* planner, Unit* unit) {
  const OrtNode* node = unit->node;
  Body* bodies = NULL;
  size_t captured = 0;
  TRY(plan_bodies(planner, node, &bodies, &captured));
  int32_t* inputs = arena_calloc(planner->arena, node->input_count + captured, sizeof *inputs);
  int32_t* outputs = arena_calloc(planner->arena, node->output_count, sizeof *outputs);
  if (inputs == NULL || outputs == NULL) return status_no_memory();
  /* A kernel that runs subgraphs waits for its inputs and for what it has started. */
  int32_t stream = bodies == NULL ? unit->ep->stream : 0;
  TRY(step_slots(planner, unit, node->inputs, node->input_count, true, stream, inputs));
  if (bodies != NULL) TRY(captured_slots(planner, unit, bodies, inputs + node->input_count));
  TRY(step_slots(planner, unit, node->outputs, node->output_count, false, stream, outputs));
  Step* step = &planner->plan->steps[planner->plan->step_count++];
  *step = (Step){.unit = unit,
                 .inputs = inputs,
                 .input_count = node->input_count,
                 .read_count = node->input_count + captured,
                 .outputs = outputs,
                 .output_count = node->output_count,
                 .stream = stream,
                 .bodies = bodies};
  return NULL;
}

/* Fills in Step::last_used: intermediates die after the last step that reads them, or the one that makes
 * them. */
static OrtStatus* plan_lifetimes(Planner* planner) {
  Plan* plan = planner->plan;
  OrtStatus* status = NULL;
  size_t* last = mem_calloc(plan->slot_count, sizeof *last); /* step + 1 */
  size_t* counts = mem_calloc(plan->step_count, sizeof *counts);
  if (last == NULL || counts == NULL) TRY_DONE(status_no_memory());
  for (size_t i = 0; i < plan->step_count; i++) {
    const Step* step = &plan->steps[i];
    for (size_t k = 0; k < step->read_count; k++) {
      if (step->inputs[k] >= 0) last[step->inputs[k]] = i + 1;
    }
    for (size_t k = 0; k < step->output_count; k++) {
      if (step->outputs[k] >= 0) last[step->outputs[k]] = i + 1;
    }
  }
  for (size_t i = 0; i < plan->slot_count; i++) {
    if (plan->slots[i].kind == SLOT_INTERMEDIATE && !plan->slots[i].is_held) counts[last[i] - 1]++;
  }
  for (size_t i = 0; i < plan->step_count; i++) {
    if (counts[i] == 0) continue;
    plan->steps[i].last_used = arena_calloc(planner->arena, counts[i], sizeof(int32_t));
    if (plan->steps[i].last_used == NULL) TRY_DONE(status_no_memory());
  }
  for (size_t i = 0; i < plan->slot_count; i++) {
    if (plan->slots[i].kind != SLOT_INTERMEDIATE || plan->slots[i].is_held) continue;
    Step* step = &plan->steps[last[i] - 1];
    ((int32_t*)step->last_used)[step->last_used_count++] = (int32_t)i;
  }
done:
  mem_free(last);
  mem_free(counts);
  return status;
}

static bool dies_here(const Step* step, int32_t slot) {
  for (size_t i = 0; i < step->last_used_count; i++) {
    if (step->last_used[i] == slot) return true;
  }
  return false;
}

static size_t times_read(const Step* step, int32_t slot) {
  size_t times = 0;
  for (size_t i = 0; i < step->read_count; i++) times += step->inputs[i] == slot;
  return times;
}

/* Which input's memory an output may take over, as the kernel allows: an intermediate that dies with this
 * step. */
static OrtStatus* plan_in_place(Planner* planner, Step* step) {
  if (step->unit->kernel_entry == NULL || step->unit->kernel_entry->def->alias_count == 0) return NULL;
  const OrtKernelDef* def = step->unit->kernel_entry->def;
  int32_t* in_place = arena_calloc(planner->arena, step->output_count, sizeof *in_place);
  if (in_place == NULL) return status_no_memory();
  for (size_t i = 0; i < step->output_count; i++) in_place[i] = -1;
  for (size_t i = 0; i < def->alias_count; i++) {
    const KernelAlias* alias = &def->aliases[i];
    if ((size_t)alias->input >= step->input_count || (size_t)alias->output >= step->output_count) continue;
    int32_t input = step->inputs[alias->input], output = step->outputs[alias->output];
    if (input < 0 || output < 0 || in_place[alias->output] >= 0) continue;
    const Slot *from = &planner->plan->slots[input], *to = &planner->plan->slots[output];
    if (from->place != to->place) continue;
    if (from->stream != step->stream) continue; /* earlier readers may still go on there */
    if (times_read(step, input) != 1 || !dies_here(step, input)) continue;
    bool is_given_away = false;
    for (size_t k = 0; k < step->output_count; k++) is_given_away = is_given_away || in_place[k] == input;
    if (!is_given_away) in_place[alias->output] = input;
  }
  step->in_place = in_place;
  return NULL;
}

static void mark_read_on_host(Plan* plan) {
  for (size_t i = 0; i < plan->step_count; i++) {
    const Step* step = &plan->steps[i];
    for (size_t k = 0; !step->unit->is_copy && k < step->read_count; k++) {
      if (step->inputs[k] < 0 || plan->slots[step->inputs[k]].kind != SLOT_INPUT) continue;
      InputSpec* spec = name_map_get(&plan->input_names, plan->slots[step->inputs[k]].value->name);
      if (spec != NULL) spec->is_read_on_host = true;
    }
  }
}

/* An input that no step reads and no output shows may be left out. */
static void mark_demanded(Plan* plan) {
  for (size_t i = 0; i < plan->required_count; i++) {
    InputSpec* spec = &plan->inputs[i];
    spec->is_demanded = plan->slots[spec->slot].is_needed;
    plan->demanded_count += spec->is_demanded;
  }
}

static size_t count_units(const OrtSession* session, const OrtGraph* graph) {
  size_t count = 0;
  for (size_t i = 0; i < session->unit_count; i++) count += session->units[i]->graph == graph;
  return count;
}

static OrtStatus* plan_steps(Planner* planner) {
  OrtStatus* status = NULL;
  Plan* plan = planner->plan;
  const OrtGraph* graph = plan->graph;
  OrtNode** order = mem_calloc(graph->node_count, sizeof *order);
  if (order == NULL) return status_no_memory();
  size_t count = 0;
  Unit* cycle = NULL;
  TRY_DONE(graph_order(graph, order, &count, &cycle));
  if (cycle != NULL || count != count_units(planner->session, graph))
    TRY_DONE(status_new(ORT_FAIL, "the claims on the nodes of graph '%s' have no order", graph->name));
  plan->steps = arena_calloc(planner->arena, count + planner->copy_capacity, sizeof *plan->steps);
  if (plan->steps == NULL) TRY_DONE(status_no_memory());
  for (size_t i = 0; i < count; i++) TRY_DONE(plan_step(planner, node_unit(order[i])));
  for (size_t i = 0; i < plan->step_count; i++)
    planner->session->streams[plan->steps[i].stream].has_work = true;
  TRY_DONE(plan_order(planner->session, plan));
  TRY_DONE(plan_lifetimes(planner));
  for (size_t i = 0; i < plan->step_count; i++) TRY_DONE(plan_in_place(planner, &plan->steps[i]));
  mark_read_on_host(plan);
  mark_demanded(plan);
done:
  mem_free(order);
  return status;
}

/* An upper bound of the copies that units of the graph need: to the host, and on from there. */
static size_t most_copies(const OrtSession* session, const OrtGraph* graph) {
  size_t count = 0;
  for (size_t i = 0; session->place_count > 1 && i < session->unit_count; i++) {
    const OrtNode* node = session->units[i]->node;
    if (session->units[i]->graph == graph) count += 2 * (node->input_count + node->implicit_input_count);
  }
  return count;
}

static OrtStatus* plan_graph(OrtSession* session, Plan* plan, OrtGraph* graph) {
  Planner planner = {.session = session,
                     .plan = plan,
                     .arena = &session->arena,
                     .copy_capacity = most_copies(session, graph)};
  plan->graph = graph;
  for (size_t i = 0; i < graph->values.capacity; i++) {
    if (graph->values.entries[i].name != NULL) ((OrtValueInfo*)graph->values.entries[i].value)->slot = -1;
  }
  size_t slots = graph->values.count + planner.copy_capacity;
  plan->slots = arena_calloc(&session->arena, slots, sizeof(Slot));
  if (plan->slots == NULL) return status_no_memory();
  if (slots > INT32_MAX) return status_new(ORT_NOT_IMPLEMENTED, "the model has too many values");
  TRY(graph->parent_node != NULL ? plan_body_inputs(&planner) : plan_inputs(&planner));
  TRY(plan_outputs(&planner));
  return plan_steps(&planner);
}

OrtStatus* plan_build(OrtSession* session) {
  return plan_graph(session, &session->plan, session->model->graph);
}
