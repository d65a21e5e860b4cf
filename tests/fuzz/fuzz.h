/* What the parts of the model fuzzer share: random numbers, growing bytes, and one function a part. Each part
 * is deterministic: the same random numbers make the same model, the same inputs, the same calls. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ort_abi.h"

/* ---- Random numbers: xorshift64* ---- */

typedef struct Rng {
  uint64_t state; /* never 0 */
} Rng;

/* The numbers of execution `number`: those of neighbours have nothing in common. */
static inline Rng rng_for(uint64_t seed, uint64_t number) {
  uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + number * UINT64_C(0xD1B54A32D192ED03) + 1;
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  x ^= x >> 31;
  return (Rng){x != 0 ? x : 1};
}

static inline uint64_t rng_next(Rng* rng) {
  uint64_t x = rng->state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  rng->state = x;
  return x * UINT64_C(0x2545F4914F6CDD1D);
}

/* 0 to limit-1; `limit` is not 0. */
static inline uint32_t rng_below(Rng* rng, uint32_t limit) {
  return (uint32_t)((rng_next(rng) >> 32) * limit >> 32);
}

/* True `times` times in a thousand. */
static inline bool rng_often(Rng* rng, uint32_t times) {
  return rng_below(rng, 1000) < times;
}

/* A number at the edge of something. */
int64_t rng_edge(Rng* rng);

/* ---- Bytes, and protobuf messages in them ---- */

typedef struct Bytes {
  uint8_t* data; /* owned; released with free */
  size_t size, capacity;
} Bytes;

/* Ends the program when there is no memory. */
void bytes_reserve(Bytes* bytes, size_t more);

static inline void put_raw(Bytes* bytes, const void* data, size_t size) {
  bytes_reserve(bytes, size);
  if (size != 0) memcpy(bytes->data + bytes->size, data, size);
  bytes->size += size;
}

void put_varint(Bytes* bytes, uint64_t value);
void put_int(Bytes* bytes, unsigned field, int64_t value);
void put_float(Bytes* bytes, unsigned field, float value);
void put_bytes(Bytes* bytes, unsigned field, const void* data, size_t size);
void put_text(Bytes* bytes, unsigned field, const char* text);

/* A message within: what is put until put_end belongs to it. */
size_t put_begin(Bytes* bytes, unsigned field);
void put_end(Bytes* bytes, size_t mark);

/* ---- Elements ---- */

/* Bytes of an element of a type that fill_elements can make; 1 for types it does not know. */
size_t element_bytes(int type);

/* Small numbers; `hostility` times in a thousand what is at an edge, infinite, or no number. */
void fill_elements(Rng* rng, int type, size_t count, uint32_t hostility, void* out);

/* ---- The parts ---- */

/* Writes a model. `hostility` is how often in a thousand a choice is a bad one; 0: a valid model whose loops
 * end. */
void generate_model(Rng* rng, uint32_t hostility, Bytes* model);

typedef struct Model {
  const uint8_t* data;
  size_t size;
} Model;

/* Writes `model` with some of its fields or bytes changed; pieces of `other` may come in. */
void damage_fields(Rng* rng, Model model, Model other, Bytes* damaged);
void damage_bytes(Rng* rng, Model model, Model other, Bytes* damaged);

/* How far a model came. */
typedef enum Outcome { NOT_LOADED, NOT_RUN, TERMINATED, RAN, OUTCOMES } Outcome;

typedef struct Runner Runner;

/* Starts a host and a watchdog for the calling thread. Never NULL: ends the program on failure. */
Runner* runner_open(void);
void runner_close(Runner* runner);

/* Creates a session from the bytes, runs it once or twice and reads every output. What takes too long is
 * terminated; what does not end then ends the program. */
Outcome run_model(Runner* runner, Model model, Rng* rng);

#endif
