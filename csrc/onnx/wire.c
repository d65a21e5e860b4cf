/* The wire format: a message is a row of (tag, content); a tag is field number and type. */
#include "onnx/wire.h"

#include <string.h>

Wire wire_of(const void* data, size_t size) {
  static const uint8_t nothing[1];
  const uint8_t* at = data != NULL ? data : nothing;
  return (Wire){at, at + (data != NULL ? size : 0), NULL};
}

Wire wire_of_field(const WireField* field) {
  return wire_of(field->data, field->size);
}

static bool fail(Wire* wire, const char* error) {
  wire->error = error;
  wire->at = wire->end;
  return false;
}

bool wire_varint(Wire* elements, uint64_t* value) {
  if (elements->at == elements->end) return false;
  uint64_t result = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (elements->at == elements->end) return fail(elements, "a number is cut off");
    uint8_t byte = *elements->at++;
    if (shift == 63 && byte > 1) return fail(elements, "a number has more than 64 bits");
    result |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return true;
    }
  }
  return fail(elements, "a number has more than 10 bytes");
}

/* Copies the next `size` bytes. */
static bool take(Wire* wire, void* out, size_t size) {
  if (wire->at == wire->end) return false;
  if ((size_t)(wire->end - wire->at) < size) return fail(wire, "a number is cut off");
  memcpy(out, wire->at, size);
  wire->at += size;
  return true;
}

bool wire_fixed32(Wire* elements, uint32_t* value) {
  return take(elements, value, sizeof *value);
}

bool wire_fixed64(Wire* elements, uint64_t* value) {
  return take(elements, value, sizeof *value);
}

size_t wire_count_varints(const WireField* field) {
  size_t count = 0;
  for (size_t i = 0; i < field->size; i++) count += field->data[i] < 0x80;
  return count;
}

/* Reads the content of a field whose type is `type`. */
static bool read_content(Wire* wire, uint32_t type, WireField* field) {
  uint32_t half = 0;
  uint64_t length = 0;
  field->value = 0;
  field->data = wire->at;
  switch (type) {
    case WIRE_VARINT:
      if (!wire_varint(wire, &field->value))
        return fail(wire, wire->error ? wire->error : "a number is missing");
      break;
    case WIRE_FIXED64:
      if (!wire_fixed64(wire, &field->value))
        return fail(wire, wire->error ? wire->error : "a number is missing");
      break;
    case WIRE_FIXED32:
      if (!wire_fixed32(wire, &half)) return fail(wire, wire->error ? wire->error : "a number is missing");
      field->value = half;
      break;
    case WIRE_BYTES:
      if (!wire_varint(wire, &length)) return fail(wire, wire->error ? wire->error : "a length is missing");
      if (length > (uint64_t)(wire->end - wire->at))
        return fail(wire, "a length is past the end of the message");
      field->data = wire->at;
      wire->at += length;
      break;
    default:
      return fail(wire, type == 3 || type == 4 ? "a group, which ONNX does not use" : "an unknown wire type");
  }
  field->size = (size_t)(wire->at - field->data);
  return true;
}

bool wire_next(Wire* wire, WireField* field) {
  uint64_t tag;
  if (!wire_varint(wire, &tag)) return false;
  if (tag > UINT32_MAX || tag >> 3 == 0) return fail(wire, "a field number is out of range");
  field->tag = (uint32_t)tag;
  return read_content(wire, (uint32_t)tag & 7, field);
}
