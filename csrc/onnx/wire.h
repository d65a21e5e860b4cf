/* wire: reads protobuf's wire format, field by field, never past the end of what it was given. Nothing is
 * copied or allocated. */
#ifndef ORT_ABI_WIRE_H
#define ORT_ABI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "ONNX stores tensors in little-endian order and the reader maps them as they are"
#endif

typedef enum WireType {
  WIRE_VARINT = 0,
  WIRE_FIXED64 = 1,
  WIRE_BYTES = 2,
  WIRE_FIXED32 = 5,
} WireType;

/* What a field's tag is: a switch over tags skips fields that are unknown or of another type than expected.
 */
#define WIRE_TAG(number, type) (((uint32_t)(number) << 3) | (uint32_t)(type))

/* A message (or the elements of a repeated field) that is being read. borrows its bytes. */
typedef struct Wire {
  const uint8_t* at;
  const uint8_t* end;
  const char* error; /* NULL, or why the bytes are no message; nothing more is read then */
} Wire;

typedef struct WireField {
  uint32_t tag;
  uint64_t value;      /* of a varint, fixed32 or fixed64 */
  const uint8_t* data; /* the bytes of the content: of a number its encoding */
  size_t size;
} WireField;

/* borrows `data`. */
Wire wire_of(const void* data, size_t size);
Wire wire_of_field(const WireField* field);
/* The next field; false at the end of the message and for bytes that are no message (`wire->error`). */
bool wire_next(Wire* wire, WireField* field);

/* Repeated numbers, packed or not: wire_of_field() over a field with the packed tag or with the number's own
 * tag gives its elements, these read one. False at the end and on an error. */
bool wire_varint(Wire* elements, uint64_t* value);
bool wire_fixed32(Wire* elements, uint32_t* value);
bool wire_fixed64(Wire* elements, uint64_t* value);
/* How many varints a field holds at most; exact when it is well formed. */
size_t wire_count_varints(const WireField* field);

#endif
