/* Generated models: values, nodes' parts and the model around them. The operators are in generate_ops.c,
 * those with graphs of their own in generate_bodies.c. */
#include "generate.h"

#include <stdio.h>

/* ---- Choices ---- */

int choose_type(Gen* gen, uint32_t types) {
  static const int common[] = {TYPE(FLOAT), TYPE(FLOAT),   TYPE(FLOAT), TYPE(FLOAT),   TYPE(INT64),
                               TYPE(INT64), TYPE(INT32),   TYPE(BOOL),  TYPE(DOUBLE),  TYPE(UINT8),
                               TYPE(INT8),  TYPE(FLOAT16), TYPE(INT16), TYPE(BFLOAT16)};
  if (is_bad(gen)) return 1 + (int)below(gen, 26);
  for (int tries = 0; tries < 4; tries++) {
    int type = common[below(gen, sizeof common / sizeof common[0])];
    if (types & 1u << type) return type;
  }
  int type = (int)below(gen, 32);
  while (!(types & 1u << type)) type = (type + 1) % 32;
  return type;
}

int64_t choose_axis(Gen* gen, int rank) {
  if (rank <= 0) return number(gen, (int64_t)below(gen, 2) - 1);
  return number(gen, (int64_t)below(gen, 2 * (uint32_t)rank) - rank);
}

/* ---- Values ---- */

static void name_value(Gen* gen, Value* value) {
  snprintf(value->name, sizeof value->name, "v%u", gen->names++);
}

void scope_add(Gen* gen, const Value* value) {
  if (gen->scope->count < GEN_VALUES) gen->scope->values[gen->scope->count++] = *value;
}

Value shaped(int type, int rank, const int64_t* dims) {
  Value value = {.type = type, .rank = rank > GEN_RANK ? -1 : rank};
  for (int i = 0; i < value.rank; i++) value.dims[i] = dims[i];
  return value;
}

int64_t elements_of(const Value* value) {
  int64_t count = 1;
  if (value->rank < 0) return -1;
  for (int i = 0; i < value->rank; i++) {
    if (value->dims[i] < 0 || value->dims[i] > 1 << 16) return -1;
    count *= value->dims[i];
    if (count > 1 << 16) return -1;
  }
  return count;
}

static Value random_shape(Gen* gen, int type) {
  Value value = {.type = type, .rank = (int)below(gen, 4)};
  for (int i = 0; i < value.rank; i++) value.dims[i] = below(gen, 20) == 0 ? 0 : 1 + below(gen, 3);
  return value;
}

/* Field 9 has little-endian elements; the typed fields are for the types that have one. */
static void put_elements(Gen* gen, int type, size_t count, const void* elements) {
  Bytes* out = gen->out;
  bool is_typed = below(gen, 4) == 0;
  if (type == TYPE(INT64) && is_typed) {
    size_t mark = put_begin(out, 7);
    for (size_t i = 0; i < count; i++) put_varint(out, ((const uint64_t*)elements)[i]);
    put_end(out, mark);
  } else if (type == TYPE(FLOAT) && is_typed) {
    put_bytes(out, 4, elements, count * 4);
  } else if (type == TYPE(STRING)) {
    for (size_t i = 0; i < count; i++) put_text(out, 6, "text");
  } else {
    put_bytes(out, 9, elements, count * element_bytes(type));
  }
}

void put_tensor(Gen* gen, unsigned field, const char* name, int type, int rank, const int64_t* dims,
                const void* elements) {
  uint64_t random[1024];
  int64_t count = 1;
  size_t mark = put_begin(gen->out, field);
  for (int i = 0; i < rank; i++) {
    count = count * dims[i] < 511 ? count * dims[i] : 511;
    put_int(gen->out, 1, number(gen, dims[i]));
  }
  put_int(gen->out, 2, number(gen, type));
  put_text(gen->out, 8, name);
  if (elements == NULL) {
    count = number(gen, count) & 511;
    fill_elements(gen->rng, type, (size_t)count, gen->hostility, random);
    elements = random;
  }
  put_elements(gen, type, (size_t)count, elements);
  put_end(gen->out, mark);
}

static void put_type(Gen* gen, const Value* value) {
  Bytes* out = gen->out;
  bool is_sequence = rng_often(gen->rng, gen->hostility / 8);
  size_t type = put_begin(out, 2);
  size_t sequence = is_sequence ? put_begin(out, below(gen, 2) ? 4 : 9) : 0;
  size_t element = is_sequence ? put_begin(out, 1) : 0;
  size_t tensor = put_begin(out, 1);
  put_int(out, 1, is_bad(gen) ? choose_type(gen, ANY | BIT(STRING)) : value->type);
  if (value->rank >= 0) {
    size_t shape = put_begin(out, 2);
    for (int i = 0; i < value->rank; i++) {
      size_t dim = put_begin(out, 1);
      if (below(gen, 6) == 0)
        put_text(out, 2, below(gen, 2) ? "n" : "m");
      else
        put_int(out, 1, number(gen, value->dims[i]));
      put_end(out, dim);
    }
    put_end(out, shape);
  }
  put_end(out, tensor);
  if (is_sequence) {
    put_end(out, element);
    put_end(out, sequence);
  }
  put_end(out, type);
}

void put_declaration(Gen* gen, unsigned field, const Value* value, bool may_leave_type_out) {
  size_t mark = put_begin(gen->out, field);
  put_text(gen->out, 1, value->name);
  if (!may_leave_type_out || below(gen, 3) != 0) {
    Value said = *value;
    if (is_bad(gen)) said = random_shape(gen, said.type);
    put_type(gen, &said);
  }
  put_end(gen->out, mark);
}

Value new_constant(Gen* gen, int type, int rank, const int64_t* dims, const void* elements) {
  Value value = shaped(type, rank, dims);
  name_value(gen, &value);
  put_tensor(gen, 5, value.name, type, rank, dims, elements);
  if (is_bad(gen) && gen->scope->outer == NULL) put_declaration(gen, 11, &value, false); /* an input, too */
  scope_add(gen, &value);
  return value;
}

Value new_list(Gen* gen, const int64_t* values, size_t count) {
  int64_t dims[] = {(int64_t)count}, list[GEN_RANK + 2];
  for (size_t i = 0; i < count; i++) list[i] = number(gen, values[i]);
  if (is_bad(gen)) dims[0] += below(gen, 2) || count == 0 ? 1 : -1;
  if (dims[0] > (int64_t)count) list[count] = rng_edge(gen->rng);
  if (is_bad(gen)) return choose_value(gen, INDICES);
  return new_constant(gen, TYPE(INT64), 1, dims, list);
}

static Value new_value(Gen* gen, Value value) {
  if (gen->scope->outer != NULL || below(gen, 3) == 0)
    return new_constant(gen, value.type, value.rank, value.dims, NULL);
  name_value(gen, &value);
  put_declaration(gen, 11, &value, gen->hostility != 0 && is_bad(gen));
  scope_add(gen, &value);
  return value;
}

static bool fits(const Value* value, uint32_t types, int rank) {
  return value->type < 32 && (types & 1u << value->type) && (rank < 0 || value->rank == rank);
}

static bool find_value(Gen* gen, uint32_t types, int rank, Value* found) {
  if (is_bad(gen)) types = ANY;
  uint32_t seen = 0;
  for (const Scope* scope = gen->scope; scope != NULL; scope = scope->outer)
    for (size_t i = 0; i < scope->count; i++)
      if (fits(&scope->values[i], types, rank) && below(gen, ++seen) == 0) *found = scope->values[i];
  return seen != 0;
}

Value choose_value(Gen* gen, uint32_t types) {
  Value value;
  if (below(gen, 5) != 0 && find_value(gen, types, -1, &value)) return value;
  return new_value(gen, random_shape(gen, choose_type(gen, types)));
}

Value choose_ranked(Gen* gen, uint32_t types, int rank) {
  Value value;
  if (below(gen, 5) != 0 && find_value(gen, types, rank, &value)) return value;
  value = (Value){.type = choose_type(gen, types), .rank = rank};
  for (int i = 0; i < rank; i++) value.dims[i] = 1 + below(gen, 3);
  return new_value(gen, value);
}

Value broadcast(const Value* x, const Value* y, int type) {
  Value value = {.type = type, .rank = x->rank > y->rank ? x->rank : y->rank};
  if (x->rank < 0 || y->rank < 0) value.rank = -1;
  for (int i = 0; i < value.rank; i++) {
    int xi = i - value.rank + x->rank, yi = i - value.rank + y->rank;
    int64_t a = xi < 0 ? 1 : x->dims[xi], b = yi < 0 ? 1 : y->dims[yi];
    value.dims[i] = a == 1 ? b : a;
    if (a != b && a != 1 && b != 1) return (Value){.type = type, .rank = -1};
  }
  return value;
}

Value partner_of(Gen* gen, const Value* x) {
  Value found;
  if (below(gen, 2) && x->type < 32 && find_value(gen, 1u << x->type, -1, &found)) {
    if (broadcast(x, &found, 1).rank >= 0 || below(gen, 20) == 0) return found;
  }
  Value value = {.type = x->type, .rank = x->rank < 0 ? 0 : (int)below(gen, (uint32_t)x->rank + 1)};
  for (int i = 0; i < value.rank; i++)
    value.dims[i] = below(gen, 3) == 0 ? 1 : x->dims[x->rank - value.rank + i];
  return new_value(gen, value);
}

/* ---- Nodes ---- */

size_t node_begin(Gen* gen, const char* op_type) {
  char name[16];
  size_t mark = put_begin(gen->out, 1);
  put_text(gen->out, 4, op_type);
  snprintf(name, sizeof name, "n%u", gen->names++);
  put_text(gen->out, 3, name);
  return mark;
}

void node_missing_input(Gen* gen) {
  put_text(gen->out, 1, "");
}

void node_input(Gen* gen, const Value* value) {
  char later[16];
  if (!rng_often(gen->rng, gen->hostility / 4)) {
    put_text(gen->out, 1, value->name);
    return;
  }
  switch (below(gen, 4)) {
    case 0:
      node_missing_input(gen);
      break;
    case 1:
      snprintf(later, sizeof later, "v%u", below(gen, gen->names + 8));
      put_text(gen->out, 1, later);
      break;
    case 2: /* once more, or not at all */
      put_text(gen->out, 1, value->name);
      put_text(gen->out, 1, value->name);
      break;
    default:
      break;
  }
}

Value node_output(Gen* gen, Value shape) {
  Value value = shape;
  name_value(gen, &value);
  if (rng_often(gen->rng, gen->hostility / 8))
    snprintf(value.name, sizeof value.name, "v%u", below(gen, gen->names));
  if (!rng_often(gen->rng, gen->hostility / 8)) put_text(gen->out, 2, value.name);
  scope_add(gen, &value);
  return value;
}

void node_end(Gen* gen, size_t mark) {
  put_end(gen->out, mark);
}

size_t attribute_begin(Gen* gen, const char* name, int type) {
  size_t mark = put_begin(gen->out, 5);
  put_text(gen->out, 1, name);
  put_int(gen->out, 20, rng_often(gen->rng, gen->hostility / 8) ? (int64_t)below(gen, 16) : type);
  return mark;
}

void attribute_end(Gen* gen, size_t mark) {
  put_end(gen->out, mark);
}

void attribute_int(Gen* gen, const char* name, int64_t value) {
  if (rng_often(gen->rng, gen->hostility / 4)) return;
  size_t mark = attribute_begin(gen, name, 2);
  put_int(gen->out, 3, number(gen, value));
  attribute_end(gen, mark);
}

void attribute_float(Gen* gen, const char* name, float value) {
  if (rng_often(gen->rng, gen->hostility / 4)) return;
  if (is_bad(gen)) fill_elements(gen->rng, TYPE(FLOAT), 1, 1000, &value);
  size_t mark = attribute_begin(gen, name, 1);
  put_float(gen->out, 2, value);
  attribute_end(gen, mark);
}

void attribute_ints(Gen* gen, const char* name, const int64_t* values, size_t count) {
  if (rng_often(gen->rng, gen->hostility / 4)) return;
  size_t mark = attribute_begin(gen, name, 7), more = 0;
  for (size_t i = 0; i < count; i++) put_int(gen->out, 8, number(gen, values[i]));
  if (is_bad(gen)) more = below(gen, below(gen, 4) == 0 ? 80 : 3);
  for (size_t i = 0; i < more; i++) put_int(gen->out, 8, is_bad(gen) ? rng_edge(gen->rng) : (int64_t)i);
  attribute_end(gen, mark);
}

/* ---- The model ---- */

void generate_nodes(Gen* gen, uint32_t most) {
  uint32_t count = 1 + below(gen, most);
  for (uint32_t i = 0; i < count; i++) generate_operator(gen);
}

void declare_values(Gen* gen) {
  for (size_t i = 0; i < gen->scope->count; i++)
    if (below(gen, 4) == 0) put_declaration(gen, 13, &gen->scope->values[i], false);
}

/* The newest value, and some more. */
static void put_outputs(Gen* gen) {
  const Scope* scope = gen->scope;
  size_t last = scope->count - 1, count = 1 + below(gen, 3);
  for (size_t i = 0; i < count; i++) {
    size_t at = last > i ? last - i : 0;
    if (i > last && !is_bad(gen)) break; /* an output twice */
    put_declaration(gen, 12, &scope->values[at], below(gen, 2) == 0);
  }
}

static void put_opset(Gen* gen, const char* domain, int64_t version) {
  size_t mark = put_begin(gen->out, 8);
  put_text(gen->out, 1, domain);
  put_int(gen->out, 2, version);
  put_end(gen->out, mark);
}

void generate_model(Rng* rng, uint32_t hostility, Bytes* model) {
  static const int opsets[] = {13, 13, 14, 17, 18, 19, 21, 21, 9, 10, 11, 12, 7, 8, 6, 1};
  Scope scope = {.outer = NULL};
  Gen gen = {.rng = rng, .hostility = hostility, .out = model, .scope = &scope};
  gen.opset = opsets[rng_below(rng, hostility == 0 ? 8 : 16)];
  model->size = 0;
  put_int(model, 1, is_bad(&gen) ? 1 + (int64_t)below(&gen, 12) : 8);
  put_opset(&gen, "", rng_often(rng, hostility / 8) ? rng_edge(rng) : gen.opset);
  size_t graph = put_begin(model, 7);
  put_text(model, 2, "g");
  generate_nodes(&gen, 6);
  declare_values(&gen);
  put_outputs(&gen);
  put_end(model, graph);
}
