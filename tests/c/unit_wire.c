/* The wire reader at its edges. */
#include "harness.h"
#include "onnx/wire.h"

#define WIRE(...) wire_of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* The reader must give one error that holds `part`. */
static void check_error(Wire wire, const char* part) {
  WireField field;
  while (wire_next(&wire, &field)) continue;
  CHECK(wire.error != NULL && strstr(wire.error, part) != NULL);
  CHECK(!wire_next(&wire, &field));
}

static void test_nothing_is_an_empty_message(void) {
  WireField field;
  Wire wire = wire_of(NULL, 0);
  CHECK(!wire_next(&wire, &field));
  CHECK(wire.error == NULL);
}

static void test_every_wire_type(void) {
  Wire wire = WIRE(0x08, 0x96, 0x01, 0x12, 0x02, 'a', 'b', 0x1d, 1, 2, 3, 4, 0x21, 1, 0, 0, 0, 0, 0, 0, 0x80);
  WireField field;
  CHECK(wire_next(&wire, &field) && field.tag == WIRE_TAG(1, WIRE_VARINT) && field.value == 150);
  CHECK(wire_next(&wire, &field) && field.tag == WIRE_TAG(2, WIRE_BYTES) && field.size == 2);
  CHECK(memcmp(field.data, "ab", 2) == 0);
  CHECK(wire_next(&wire, &field) && field.tag == WIRE_TAG(3, WIRE_FIXED32) && field.value == 0x04030201);
  CHECK(wire_next(&wire, &field) && field.tag == WIRE_TAG(4, WIRE_FIXED64));
  CHECK(field.value == 0x8000000000000001);
  CHECK(!wire_next(&wire, &field) && wire.error == NULL);
}

static void test_largest_number(void) {
  Wire wire = WIRE(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
  WireField field;
  CHECK(wire_next(&wire, &field) && field.value == UINT64_MAX);
}

static void test_numbers_that_are_too_long(void) {
  check_error(WIRE(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02), "64 bits");
  check_error(WIRE(0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00), "64 bits");
}

static void test_messages_that_are_cut_off(void) {
  check_error(WIRE(0x08), "missing");
  check_error(WIRE(0x08, 0x80), "cut off");
  check_error(WIRE(0x80), "cut off");
  check_error(WIRE(0x0d, 1, 2, 3), "cut off");
  check_error(WIRE(0x09, 1, 2, 3, 4, 5, 6, 7), "cut off");
  check_error(WIRE(0x12), "missing");
  check_error(WIRE(0x12, 0x03, 'a', 'b'), "past the end");
}

static void test_lengths_that_overflow(void) {
  check_error(WIRE(0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 'a'), "past the end");
  check_error(WIRE(0x12, 0xff, 0xff, 0xff, 0xff, 0x0f, 'a'), "past the end");
}

static void test_groups_and_unknown_types_are_refused(void) {
  check_error(WIRE(0x0b, 0x0c), "group");
  check_error(WIRE(0x0c), "group");
  check_error(WIRE(0x0e), "unknown");
  check_error(WIRE(0x0f), "unknown");
}

static void test_field_numbers_out_of_range(void) {
  check_error(WIRE(0x00, 0x01), "out of range");
  check_error(WIRE(0x80, 0x80, 0x80, 0x80, 0x10, 0x01), "out of range");
}

static void test_packed_and_unpacked_numbers(void) {
  Wire wire = WIRE(0x08, 0x05, 0x0a, 0x03, 0x01, 0xac, 0x02);
  WireField field;
  uint64_t values[3] = {0};
  size_t count = 0, counted = 0;
  while (wire_next(&wire, &field)) {
    counted += wire_count_varints(&field);
    Wire elements = wire_of_field(&field);
    while (count < 3 && wire_varint(&elements, &values[count])) count++;
    CHECK(elements.error == NULL);
  }
  CHECK(count == 3 && counted == 3 && values[0] == 5 && values[1] == 1 && values[2] == 300);
}

static void test_packed_elements_that_are_cut_off(void) {
  uint64_t value;
  uint32_t half;
  Wire numbers = WIRE(0x01, 0x80);
  CHECK(wire_varint(&numbers, &value) && value == 1);
  CHECK(!wire_varint(&numbers, &value) && numbers.error != NULL);
  Wire floats = WIRE(1, 2, 3, 4, 5);
  CHECK(wire_fixed32(&floats, &half));
  CHECK(!wire_fixed32(&floats, &half) && floats.error != NULL);
  Wire doubles = WIRE(1, 2, 3, 4, 5, 6, 7);
  CHECK(!wire_fixed64(&doubles, &value) && doubles.error != NULL);
}

int main(void) {
  RUN(test_nothing_is_an_empty_message);
  RUN(test_every_wire_type);
  RUN(test_largest_number);
  RUN(test_numbers_that_are_too_long);
  RUN(test_messages_that_are_cut_off);
  RUN(test_lengths_that_overflow);
  RUN(test_groups_and_unknown_types_are_refused);
  RUN(test_field_numbers_out_of_range);
  RUN(test_packed_and_unpacked_numbers);
  RUN(test_packed_elements_that_are_cut_off);
  return finish();
}
