/* What the files of the generator share. A graph is written from front to back: values come to be (as inputs,
 * as initializers, as outputs of nodes), nodes use what is there. */
#ifndef TESTS_FUZZ_GENERATE_H
#define TESTS_FUZZ_GENERATE_H

#include "fuzz.h"

#define GEN_RANK   6
#define GEN_VALUES 64
#define GEN_DEPTH  3 /* graphs within graphs */

#define TYPE(name)    ONNX_TENSOR_ELEMENT_DATA_TYPE_##name
#define BIT(name)     (1u << TYPE(name))
#define BOOLEAN       BIT(BOOL)
#define INDICES       (BIT(INT32) | BIT(INT64))
#define SIGNED        (INDICES | BIT(INT8) | BIT(INT16))
#define UNSIGNED      (BIT(UINT8) | BIT(UINT16) | BIT(UINT32) | BIT(UINT64))
#define WIDE_INTEGERS (INDICES | BIT(UINT32) | BIT(UINT64))
#define REALS         (BIT(FLOAT16) | BIT(BFLOAT16) | BIT(FLOAT) | BIT(DOUBLE))
#define NUMBERS       (SIGNED | UNSIGNED | REALS)
#define ANY           (NUMBERS | BOOLEAN)

typedef struct Value {
  char name[16];
  int type;
  int rank; /* -1: not known */
  int64_t dims[GEN_RANK];
} Value;

typedef struct Scope {
  struct Scope* outer; /* NULL: the model's own graph */
  size_t count;
  Value values[GEN_VALUES];
} Scope;

typedef struct Gen {
  Rng* rng;
  uint32_t hostility;
  Bytes* out;
  Scope* scope;
  int opset;
  unsigned names, depth;
} Gen;

/* ---- Choices ---- */

static inline bool is_bad(Gen* gen) {
  return rng_often(gen->rng, gen->hostility);
}

static inline uint32_t below(Gen* gen, uint32_t limit) {
  return rng_below(gen->rng, limit);
}

/* `good`, or now and then something at the edge. */
static inline int64_t number(Gen* gen, int64_t good) {
  return is_bad(gen) ? rng_edge(gen->rng) : good;
}

int choose_type(Gen* gen, uint32_t types);

/* An axis of `rank` dimensions, counted from either end. */
int64_t choose_axis(Gen* gen, int rank);

/* ---- Values. All of them may write into the graph, and so stand before node_begin. ---- */

/* One of the scope, or a new one. */
Value choose_value(Gen* gen, uint32_t types);
/* One of the scope whose rank is known to be `rank`, or a new one. */
Value choose_ranked(Gen* gen, uint32_t types, int rank);
/* A new initializer; elements are random, or `elements` where that is not NULL. */
Value new_constant(Gen* gen, int type, int rank, const int64_t* dims, const void* elements);
/* A list of int64. */
Value new_list(Gen* gen, const int64_t* values, size_t count);
/* A value of x's type that broadcasts with it. */
Value partner_of(Gen* gen, const Value* x);
/* What x and y broadcast to; of unknown rank where that is not known. */
Value broadcast(const Value* x, const Value* y, int type);
Value shaped(int type, int rank, const int64_t* dims);
/* How many elements; -1: not known. */
int64_t elements_of(const Value* value);

/* A TensorProto. */
void put_tensor(Gen* gen, unsigned field, const char* name, int type, int rank, const int64_t* dims,
                const void* elements);
/* A ValueInfoProto: what the value is, or is not, or only its name. */
void put_declaration(Gen* gen, unsigned field, const Value* value, bool may_leave_type_out);

/* ---- Nodes ---- */

size_t node_begin(Gen* gen, const char* op_type);
void node_input(Gen* gen, const Value* value);
void node_missing_input(Gen* gen);
/* A new value of the scope, of this type and shape. */
Value node_output(Gen* gen, Value shape);
void node_end(Gen* gen, size_t mark);
void attribute_int(Gen* gen, const char* name, int64_t value);
void attribute_float(Gen* gen, const char* name, float value);
void attribute_ints(Gen* gen, const char* name, const int64_t* values, size_t count);
/* A graph follows, up to attribute_end. */
size_t attribute_begin(Gen* gen, const char* name, int type);
void attribute_end(Gen* gen, size_t mark);

/* ---- Graphs ---- */

void scope_add(Gen* gen, const Value* value);
/* Up to `most` nodes of any operator. */
void generate_nodes(Gen* gen, uint32_t most);
/* Declares some of the scope's values. */
void declare_values(Gen* gen);

void generate_operator(Gen* gen);
void generate_if(Gen* gen);
void generate_loop(Gen* gen);
void generate_scan(Gen* gen);

#endif
