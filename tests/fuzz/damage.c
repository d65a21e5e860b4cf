/* Damaged models: some fields changed, so that the message stays well formed, or some bytes. */
#include <stdlib.h>

#include "fuzz.h"

enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };

#define MAX_DEPTH 16

/* A field. Bytes that can be read as a message are one: then its fields follow, up to `end`. */
typedef struct Field {
  uint32_t number;
  uint8_t kind;
  bool is_message;
  uint32_t parent; /* 0: the model itself, which is field 0 */
  uint32_t end;    /* behind the last field in it */
  uint64_t value;
  const uint8_t* bytes;
  size_t size;
} Field;

typedef struct Fields {
  Field* items; /* owned */
  uint32_t count, capacity;
} Fields;

/* ---- Reading ---- */

static bool read_varint(const uint8_t** at, const uint8_t* end, uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
    uint8_t byte = *(*at)++;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

static Field* add_field(Fields* fields) {
  if (fields->count == fields->capacity) {
    fields->capacity = fields->capacity * 2 + 256;
    fields->items = realloc(fields->items, fields->capacity * sizeof *fields->items);
    if (fields->items == NULL) exit(1);
  }
  return &fields->items[fields->count++];
}

static bool read_field(const uint8_t** at, const uint8_t* end, Field* field) {
  uint64_t tag, size;
  if (!read_varint(at, end, &tag) || tag >> 3 == 0 || tag >> 3 >= 64) return false;
  *field = (Field){.number = (uint32_t)(tag >> 3), .kind = tag & 7};
  if (field->kind == VARINT) return read_varint(at, end, &field->value);
  if (field->kind == BYTES) {
    if (!read_varint(at, end, &size)) return false;
  } else if (field->kind == FIXED64 || field->kind == FIXED32) {
    size = field->kind == FIXED64 ? 8 : 4;
  } else {
    return false;
  }
  if (size > (size_t)(end - *at)) return false;
  field->bytes = *at;
  field->size = (size_t)size;
  *at += size;
  return true;
}

/* Appends the fields of a message; nothing is left of them if it is none. */
static bool read_message(Fields* fields, const uint8_t* data, size_t size, uint32_t parent, unsigned depth) {
  uint32_t start = fields->count;
  const uint8_t *at = data, *end = data + size;
  while (at < end) {
    Field field;
    if (!read_field(&at, end, &field)) {
      fields->count = start;
      return false;
    }
    field.parent = parent;
    uint32_t index = fields->count;
    *add_field(fields) = field;
    bool is_message = field.kind == BYTES && field.size >= 2 && depth < MAX_DEPTH &&
                      read_message(fields, field.bytes, field.size, index, depth + 1);
    fields->items[index].is_message = is_message;
    fields->items[index].end = fields->count;
  }
  return true;
}

static bool read_model(Fields* fields, Model model) {
  *fields = (Fields){0};
  *add_field(fields) = (Field){.kind = BYTES, .is_message = true};
  bool is_read = read_message(fields, model.data, model.size, 0, 0);
  fields->items[0].end = fields->count;
  return is_read;
}

/* ---- Writing ---- */

typedef struct Damage {
  enum { CHANGE, RESIZE, DROP, REPEAT, MOVE, RENUMBER, TRANSPLANT, KINDS } kind;
  uint32_t field;     /* that is changed */
  const Field* other; /* TRANSPLANT: comes instead; MOVE: before this */
  uint64_t value;     /* CHANGE, RENUMBER, RESIZE: what to */
} Damage;

static void put_value(const Field* field, Bytes* out) {
  put_varint(out, (uint64_t)field->number << 3 | field->kind);
  if (field->kind == VARINT) put_varint(out, field->value);
  if (field->kind == BYTES) put_varint(out, field->size);
  if (field->kind != VARINT) put_raw(out, field->bytes, field->size);
}

/* Texts and tensors of numbers: one byte is another; messages and numbers: the value. */
static void put_changed(const Field* field, uint64_t value, Bytes* out) {
  size_t before = out->size;
  Field changed = *field;
  if (field->kind == VARINT) changed.value = value;
  put_value(&changed, out);
  size_t tail = field->kind == VARINT ? 0 : field->size;
  if (tail != 0 && out->size > before) out->data[out->size - tail + value % tail] = (uint8_t)(value >> 32);
}

static void put_resized(const Field* field, uint64_t value, Bytes* out) {
  static const uint8_t zeros[64];
  size_t size = field->size == 0 ? 0 : value % (field->size + 1), more = value >> 40 & 63;
  put_varint(out, (uint64_t)field->number << 3 | field->kind);
  if (field->kind == VARINT) {
    put_varint(out, field->value + (value & 1 ? 1 : (uint64_t)-1));
    return;
  }
  if (value >> 39 & 1) size = field->size;
  if (field->kind != BYTES) size = field->size, more = 0;
  if (field->kind == BYTES) put_varint(out, size + more);
  put_raw(out, field->bytes, size);
  put_raw(out, zeros, more);
}

static void put_fields(const Fields* fields, uint32_t parent, const Damage* damage, Bytes* out);

static void put_field(const Fields* fields, uint32_t index, const Damage* damage, Bytes* out) {
  const Field* field = &fields->items[index];
  if (damage != NULL && damage->field == index) {
    if (damage->kind == CHANGE && !field->is_message) put_changed(field, damage->value, out);
    if (damage->kind == RESIZE) put_resized(field, damage->value, out);
    if (damage->kind == TRANSPLANT) put_value(damage->other, out);
    if (damage->kind == REPEAT) put_value(field, out), put_value(field, out);
    if (damage->kind == RENUMBER) {
      Field renumbered = *field;
      renumbered.number = (uint32_t)damage->value;
      put_value(&renumbered, out);
    }
    return; /* MOVE: stands elsewhere; DROP and messages that CHANGE: nowhere */
  }
  bool holds = damage != NULL && damage->field > index && damage->field < field->end;
  holds = holds || (damage != NULL && damage->kind == MOVE && damage->other > field &&
                    damage->other < fields->items + field->end);
  if (!holds || !field->is_message) {
    put_value(field, out);
    return;
  }
  size_t mark = put_begin(out, field->number);
  put_fields(fields, index, damage, out);
  put_end(out, mark);
}

static void put_fields(const Fields* fields, uint32_t parent, const Damage* damage, Bytes* out) {
  for (uint32_t i = parent + 1; i < fields->items[parent].end; i = fields->items[i].end) {
    if (damage->kind == MOVE && damage->other == &fields->items[i])
      put_value(&fields->items[damage->field], out);
    put_field(fields, i, damage, out);
  }
}

/* ---- Damage to fields ---- */

static uint64_t other_value(Rng* rng, const Field* field) {
  if (field->kind != VARINT) return rng_next(rng);
  if (rng_below(rng, 3) == 0) return rng_below(rng, 40);
  return (uint64_t)rng_edge(rng);
}

static uint32_t any_field(Rng* rng, const Fields* fields) {
  return 1 + rng_below(rng, fields->count - 1);
}

/* One change. False if there is nothing to change. */
static bool damage_once(Rng* rng, Model model, Model other, Bytes* out) {
  Fields fields, others = {0};
  out->size = 0;
  bool is_read = read_model(&fields, model) && fields.count > 1;
  if (is_read) {
    uint32_t kind = rng_below(rng, KINDS + 2); /* CHANGE three times as often */
    Damage damage = {.kind = kind < KINDS ? kind : CHANGE, .field = any_field(rng, &fields)};
    if (damage.kind == CHANGE) /* leaves only: look for one near */
      while (fields.items[damage.field].is_message && damage.field + 1 < fields.count) damage.field++;
    const Field* field = &fields.items[damage.field];
    damage.value = damage.kind == RENUMBER ? 1 + rng_below(rng, 30) : other_value(rng, field);
    if (damage.kind == MOVE) damage.other = &fields.items[any_field(rng, &fields)];
    if (damage.kind == TRANSPLANT) {
      bool has_others = read_model(&others, other) && others.count > 1;
      damage.other = has_others ? &others.items[any_field(rng, &others)] : field;
    }
    put_fields(&fields, 0, &damage, out);
  }
  free(fields.items);
  free(others.items);
  return is_read;
}

void damage_fields(Rng* rng, Model model, Model other, Bytes* damaged) {
  Bytes before = {0};
  uint32_t times = 1 + (rng_below(rng, 3) == 0 ? rng_below(rng, 4) : 0);
  damaged->size = 0;
  put_raw(damaged, model.data, model.size);
  for (uint32_t i = 0; i < times; i++) {
    Bytes swapped = before;
    before = *damaged;
    *damaged = swapped;
    if (damage_once(rng, (Model){before.data, before.size}, other, damaged)) continue;
    damaged->size = 0;
    put_raw(damaged, before.data, before.size);
    break;
  }
  free(before.data);
}

/* ---- Damage to bytes ---- */

static void splice(Rng* rng, Model other, Bytes* damaged) {
  if (other.size == 0) return;
  size_t start = rng_next(rng) % other.size, size = 1 + rng_below(rng, 200),
         at = rng_next(rng) % damaged->size;
  if (size > other.size - start) size = other.size - start;
  bytes_reserve(damaged, size);
  if (rng_below(rng, 2)) { /* between what was there, not over it */
    memmove(damaged->data + at + size, damaged->data + at, damaged->size - at);
    damaged->size += size;
  }
  if (size > damaged->size - at) size = damaged->size - at;
  memcpy(damaged->data + at, other.data + start, size);
}

void damage_bytes(Rng* rng, Model model, Model other, Bytes* damaged) {
  static const uint8_t edges[] = {0, 1, 2, 7, 8, 16, 0x7f, 0x80, 0xff};
  uint32_t times = 1 + (rng_below(rng, 3) == 0 ? rng_below(rng, 4) : 0);
  damaged->size = 0;
  put_raw(damaged, model.data, model.size);
  for (uint32_t i = 0; i < times && damaged->size != 0; i++) {
    size_t at = rng_next(rng) % damaged->size;
    switch (rng_below(rng, 8)) {
      case 0:
        damaged->size = at;
        break;
      case 1:
      case 2:
        splice(rng, other, damaged);
        break;
      case 3:
      case 4:
      case 5:
        damaged->data[at] = edges[rng_below(rng, sizeof edges)];
        break;
      default:
        damaged->data[at] ^= (uint8_t)(1u << rng_below(rng, 8));
    }
  }
}
