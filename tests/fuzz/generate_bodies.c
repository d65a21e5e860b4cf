/* Generated If, Loop and Scan: graphs that see the values around them. */
#include <stdio.h>

#include "generate.h"

/* Opens the graph in an attribute. */
static size_t body_begin(Gen* gen, Scope* scope, const char* name, size_t* attribute) {
  scope->outer = gen->scope;
  scope->count = 0;
  *attribute = attribute_begin(gen, name, 5);
  size_t graph = put_begin(gen->out, 6);
  put_text(gen->out, 2, name);
  gen->scope = scope;
  gen->depth++;
  return graph;
}

static void body_end(Gen* gen, size_t attribute, size_t graph) {
  declare_values(gen);
  put_end(gen->out, graph);
  attribute_end(gen, attribute);
  gen->depth--;
  gen->scope = gen->scope->outer;
}

static Value body_input(Gen* gen, Value value) {
  snprintf(value.name, sizeof value.name, "v%u", gen->names++);
  if (rng_often(gen->rng, gen->hostility / 4)) value.name[1] = '0';
  put_declaration(gen, 11, &value, true);
  scope_add(gen, &value);
  return value;
}

/* A value of the type that a node of the body makes, so that it is the body's own. */
static Value body_result(Gen* gen, int type) {
  Value value = choose_value(gen, type < 32 ? 1u << type : ANY);
  if (value.type != type && !is_bad(gen)) value = new_constant(gen, type, 1, (int64_t[]){2}, NULL);
  size_t mark = node_begin(gen, "Identity");
  node_input(gen, &value);
  value = node_output(gen, value);
  node_end(gen, mark);
  return value;
}

static void body_output(Gen* gen, const Value* value) {
  if (!rng_often(gen->rng, gen->hostility / 4)) put_declaration(gen, 12, value, below(gen, 2));
}

/* ---- If ---- */

void generate_if(Gen* gen) {
  int types[2] = {choose_type(gen, ANY), choose_type(gen, ANY)};
  uint32_t count = 1 + below(gen, 2);
  Value condition = choose_ranked(gen, BOOLEAN, 0);
  size_t node = node_begin(gen, "If");
  node_input(gen, &condition);
  for (int branch = 0; branch < 2; branch++) {
    Scope scope;
    size_t attribute, graph = body_begin(gen, &scope, branch ? "else_branch" : "then_branch", &attribute);
    if (below(gen, 2)) generate_nodes(gen, 2);
    if (rng_often(gen->rng, gen->hostility / 4)) body_input(gen, condition);
    for (uint32_t i = 0; i < count; i++) {
      Value result = body_result(gen, types[i]);
      body_output(gen, &result);
    }
    body_end(gen, attribute, graph);
  }
  for (uint32_t i = 0; i < count; i++) node_output(gen, (Value){.type = types[i], .rank = -1});
  node_end(gen, node);
}

/* ---- Loop ---- */

static void loop_body(Gen* gen, const Value* carried, uint32_t count, const int* scanned, uint32_t scans,
                      bool ends) {
  Scope scope;
  size_t attribute, graph = body_begin(gen, &scope, "body", &attribute);
  body_input(gen, shaped(TYPE(INT64), 0, NULL));
  Value condition = body_input(gen, shaped(TYPE(BOOL), 0, NULL)), results[4];
  for (uint32_t i = 0; i < count; i++) body_input(gen, (Value){.type = carried[i].type, .rank = -1});
  if (below(gen, 2)) generate_nodes(gen, 2);
  if (ends) condition = new_constant(gen, TYPE(BOOL), 0, NULL, (uint8_t[]){0});
  size_t node = node_begin(gen, "Identity");
  node_input(gen, &condition);
  condition = node_output(gen, condition);
  node_end(gen, node);
  for (uint32_t i = 0; i < count + scans; i++)
    results[i] = body_result(gen, i < count ? carried[i].type : scanned[i - count]);
  body_output(gen, &condition);
  for (uint32_t i = 0; i < count + scans; i++) body_output(gen, &results[i]);
  body_end(gen, attribute, graph);
}

void generate_loop(Gen* gen) {
  uint32_t carried = 1 + below(gen, 2), scans = below(gen, 2);
  bool has_trips = below(gen, 4) != 0, has_condition = below(gen, 2);
  int64_t most = is_bad(gen) ? rng_edge(gen->rng) : (int64_t)below(gen, 4);
  int scanned[] = {choose_type(gen, ANY)};
  Value trips, condition, values[2];
  if (has_trips) trips = new_constant(gen, TYPE(INT64), 0, NULL, &most);
  if (has_condition) condition = new_constant(gen, TYPE(BOOL), 0, NULL, (uint8_t[]){below(gen, 4) != 0});
  for (uint32_t i = 0; i < carried; i++) values[i] = choose_value(gen, ANY);
  size_t node = node_begin(gen, "Loop");
  if (has_trips)
    node_input(gen, &trips);
  else
    node_missing_input(gen);
  if (has_condition)
    node_input(gen, &condition);
  else
    node_missing_input(gen);
  for (uint32_t i = 0; i < carried; i++) node_input(gen, &values[i]);
  loop_body(gen, values, carried, scanned, scans, !has_trips && !is_bad(gen));
  for (uint32_t i = 0; i < carried; i++) node_output(gen, (Value){.type = values[i].type, .rank = -1});
  if (scans != 0) node_output(gen, (Value){.type = scanned[0], .rank = -1});
  node_end(gen, node);
}

/* ---- Scan ---- */

static void scan_body(Gen* gen, const Value* values, uint32_t states, uint32_t scans, int out_type) {
  Scope scope;
  Value results[3];
  size_t attribute, graph = body_begin(gen, &scope, "body", &attribute);
  for (uint32_t i = 0; i < states + scans; i++) {
    Value value = values[i];
    if (i >= states) value.rank = -1;
    body_input(gen, value);
  }
  if (below(gen, 2)) generate_nodes(gen, 2);
  for (uint32_t i = 0; i <= states; i++)
    results[i] = body_result(gen, i < states ? values[i].type : out_type);
  for (uint32_t i = 0; i <= states; i++) body_output(gen, &results[i]);
  body_end(gen, attribute, graph);
}

void generate_scan(Gen* gen) {
  uint32_t states = below(gen, 2), scans = 1;
  Value values[2];
  int out_type = choose_type(gen, ANY);
  for (uint32_t i = 0; i < states; i++) values[i] = choose_value(gen, ANY);
  values[states] = choose_ranked(gen, ANY, 1 + (int)below(gen, 2));
  size_t node = node_begin(gen, "Scan");
  for (uint32_t i = 0; i < states + scans; i++) node_input(gen, &values[i]);
  attribute_int(gen, "num_scan_inputs", 1);
  if (below(gen, 3) == 0) attribute_ints(gen, "scan_input_directions", (int64_t[]){1}, 1);
  if (below(gen, 3) == 0) attribute_ints(gen, "scan_output_directions", (int64_t[]){1}, 1);
  if (below(gen, 3) == 0) attribute_ints(gen, "scan_input_axes", (int64_t[]){values[states].rank - 1}, 1);
  if (below(gen, 4) == 0) attribute_ints(gen, "scan_output_axes", (int64_t[]){below(gen, 2) ? -1 : 0}, 1);
  scan_body(gen, values, states, scans, out_type);
  for (uint32_t i = 0; i < states; i++) node_output(gen, (Value){.type = values[i].type, .rank = -1});
  node_output(gen, (Value){.type = out_type, .rank = -1});
  node_end(gen, node);
}
